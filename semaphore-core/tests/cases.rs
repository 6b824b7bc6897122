//! CASES.md, row by row: faults that other semaphores had, each as its smallest scenario.
//!
//! Races are stated here as their sequential outcomes; the model runs the same rows concurrently.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]
#![allow(clippy::cast_precision_loss, reason = "figures to be printed")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use common::counting_alloc::{CountingAlloc, Heap};
use common::foreign::{Event, Foreign};
use common::{Count, Order, Timer, at_rest, poll, poll_with, refused, served, waits};
use semaphore_core::{
    AcquireError, AcquireOwned, BuildError, CeilingError, MAX_PERMITS, OwnedLease, Semaphore,
    TryAcquireError,
};

#[global_allocator]
static HEAP: CountingAlloc = CountingAlloc;

/// A semaphore with all permits in a lease.
fn all_held(permits: u32) -> (Arc<Semaphore>, OwnedLease) {
    let semaphore = Arc::new(Semaphore::new(permits as usize));
    let lease = semaphore.clone().try_acquire_many_owned(permits).unwrap();
    (semaphore, lease)
}

/// A request that waits with a waker of its own.
fn queued(semaphore: &Arc<Semaphore>, n: u32) -> (AcquireOwned, Arc<Count>) {
    let (count, waker) = Count::waker();
    let mut request = semaphore.clone().acquire_many_owned(n);
    assert!(poll_with(&mut request, &waker).is_pending());
    (request, count)
}

#[test]
fn case_01_a_large_head_that_cancels_lets_the_small_one_behind_it_through_at_once() {
    let (semaphore, mut held) = all_held(2);
    drop(held.split(1));
    let (a, _) = queued(&semaphore, 2);
    let (mut b, b_woken) = queued(&semaphore, 1);
    drop(a);
    assert_eq!(b_woken.wakes(), 1);
    drop(served(&mut b));
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn case_02_a_chosen_waiter_dropped_before_it_runs_passes_its_permit_on() {
    let (semaphore, held) = all_held(1);
    let (a, a_woken) = queued(&semaphore, 1);
    let (mut b, b_woken) = queued(&semaphore, 1);
    drop(held);
    assert_eq!((a_woken.wakes(), b_woken.wakes()), (1, 0));
    drop(a);
    assert_eq!(b_woken.wakes(), 1);
    drop(served(&mut b));
    at_rest(&semaphore);
}

#[test]
fn case_03_who_releases_and_acquires_again_comes_after_the_one_that_waits() {
    let (semaphore, held) = all_held(1);
    let (mut b, _) = queued(&semaphore, 1);
    drop(held);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    let (mut again, again_woken) = queued(&semaphore, 1);
    drop(served(&mut b));
    assert_eq!(again_woken.wakes(), 1);
    drop(served(&mut again));
    at_rest(&semaphore);
}

#[test]
fn case_04_a_release_and_the_cancellation_of_its_waiter_in_one_step_lose_nothing() {
    for release_first in [true, false] {
        let (semaphore, held) = all_held(1);
        let (a, _) = queued(&semaphore, 1);
        if release_first {
            drop(held);
            drop(a);
        } else {
            drop(a);
            drop(held);
        }
        drop(served(&mut semaphore.acquire()));
        at_rest(&semaphore);
    }
}

#[test]
fn case_05_two_releases_back_to_back_wake_two_waiters() {
    let (semaphore, mut held) = all_held(2);
    let (mut a, a_woken) = queued(&semaphore, 1);
    let (mut b, b_woken) = queued(&semaphore, 1);
    drop(held.split(1));
    drop(held);
    assert_eq!((a_woken.wakes(), b_woken.wakes()), (1, 1));
    drop((served(&mut a), served(&mut b)));
    at_rest(&semaphore);
}

#[test]
fn case_06_permits_that_come_back_while_newcomers_queue_serve_as_many_as_fit_in_order() {
    let (semaphore, mut held) = all_held(4);
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut requests = Vec::new();
    let mut join = |number: usize| {
        let mut request = semaphore.clone().acquire_owned();
        assert!(poll_with(&mut request, &Order::waker(number, &log)).is_pending());
        requests.push(request);
    };
    join(0);
    join(1);
    drop(held.split(1));
    join(2);
    drop(held.split(2));
    join(3);
    join(4);
    assert_eq!(*log.lock().unwrap(), [0, 1, 2]);
    drop(held);
    assert_eq!(*log.lock().unwrap(), [0, 1, 2, 3]);
    assert_eq!(semaphore.waiters(), 1);
    drop(requests);
    at_rest(&semaphore);
}

#[test]
fn case_07_a_partial_grant_comes_back_on_cancellation_and_the_next_in_line_gets_it() {
    let (semaphore, mut held) = all_held(3);
    let (a, _) = queued(&semaphore, 3);
    let (mut b, b_woken) = queued(&semaphore, 2);
    drop(held.split(1));
    drop(held.split(1));
    assert_eq!(b_woken.wakes(), 0);
    drop(a);
    assert_eq!(b_woken.wakes(), 1);
    drop(served(&mut b));
    // The same with nobody behind.
    let (a, _) = queued(&semaphore, 3);
    drop(a);
    assert_eq!(semaphore.available_permits(), 2);
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn case_08_a_permit_that_appears_between_the_failed_try_and_the_enqueue_is_kept() {
    // The waker is cloned between the two: there the permit comes back.
    for cancel in [true, false] {
        let (semaphore, held) = all_held(1);
        let foreign = Foreign::new();
        foreign.once(Event::Clone, move || drop(held));
        let mut request = semaphore.clone().acquire_owned();
        let polled = poll_with(&mut request, &foreign.waker());
        assert_eq!(foreign.count(Event::Clone), 1);
        assert!(polled.is_ready(), "the permit was there when it would have joined");
        if !cancel {
            drop(polled);
        }
        drop(request);
        assert_eq!(foreign.live(), 0);
    }
}

#[test]
fn case_09_the_cancellation_of_a_waiter_that_was_never_granted_admits_nobody() {
    let (semaphore, held) = all_held(1);
    let (a, _) = queued(&semaphore, 1);
    let (mut b, b_woken) = queued(&semaphore, 1);
    drop(a);
    assert_eq!(b_woken.wakes(), 0);
    waits(&mut b);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    drop(b);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    assert_eq!(semaphore.available_permits(), 0);
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn case_10_a_try_between_the_grant_and_its_poll_is_refused() {
    let (semaphore, held) = all_held(1);
    let (mut b, b_woken) = queued(&semaphore, 1);
    drop(held);
    assert_eq!(b_woken.wakes(), 1);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    drop(served(&mut b));
    drop(semaphore.try_acquire().unwrap());
}

#[test]
fn case_11_shrunk_below_what_is_asked_for_and_grown_again_only_the_spare_is_admitted() {
    // Today a shrink is the `forget` of a lease.
    let (semaphore, mut held) = all_held(3);
    let (mut a, a_woken) = queued(&semaphore, 1);
    let (mut b, b_woken) = queued(&semaphore, 1);
    held.split(2).unwrap().forget();
    assert_eq!((semaphore.capacity(), held.num_permits()), (1, 1));
    assert_eq!((a_woken.wakes(), b_woken.wakes()), (0, 0));
    semaphore.add_permits(1).unwrap();
    assert_eq!((a_woken.wakes(), b_woken.wakes()), (1, 0));
    waits(&mut b);
    drop(held);
    drop((served(&mut a), served(&mut b)));
    assert_eq!(semaphore.capacity(), 2);
    at_rest(&semaphore);
}

#[test]
fn case_12_two_neighbours_that_cancel_leave_no_phantom() {
    const LEN: usize = 5;
    for first in 0..LEN - 1 {
        for (one, other) in [(first, first + 1), (first + 1, first)] {
            let (semaphore, mut held) = all_held(LEN as u32);
            let mut queue: Vec<_> = (0..LEN).map(|_| Some(queued(&semaphore, 1))).collect();
            queue[one] = None;
            queue[other] = None;
            assert_eq!(semaphore.waiters(), LEN - 2);
            let rest: Vec<_> = queue.into_iter().flatten().collect();
            for (i, (_, woken)) in rest.iter().enumerate() {
                assert_eq!(woken.wakes(), 0);
                drop(held.split(1));
                assert_eq!(woken.wakes(), 1, "waiter {i} of those left");
            }
            drop(held);
            for (mut request, _) in rest {
                drop(served(&mut request));
            }
            at_rest(&semaphore);
        }
    }
}

#[test]
fn case_13_many_short_timed_tries_and_then_one_large_release_serve_all_that_live() {
    const ROUNDS: usize = 2000;
    const LIVE: usize = 32;
    let (semaphore, held) = all_held(LIVE as u32);
    let mut live = Vec::new();
    for i in 0..ROUNDS {
        let timer = Timer::default();
        let mut short = semaphore.acquire().with_deadline(timer.clone());
        waits(&mut short);
        if i % (ROUNDS / LIVE) == 0 && live.len() < LIVE {
            live.push(queued(&semaphore, 1));
        }
        timer.fire();
        assert_eq!(refused(&mut short), AcquireError::TimedOut);
        assert_eq!(semaphore.waiters(), live.len());
    }
    assert_eq!(live.len(), LIVE);
    drop(held);
    for (mut request, woken) in live {
        assert_eq!(woken.wakes(), 1);
        drop(served(&mut request));
    }
    at_rest(&semaphore);
}

#[test]
fn case_14_a_waker_that_reenters_neither_deadlocks_nor_loses_a_permit() {
    // All places and operations: wakers.rs.
    for event in [Event::Clone, Event::Wake, Event::Drop] {
        let (semaphore, held) = all_held(1);
        let foreign = Foreign::new();
        let done = Arc::new(AtomicUsize::new(0));
        foreign.on(event, {
            let (semaphore, done) = (Arc::downgrade(&semaphore), done.clone());
            move || {
                let semaphore = semaphore.upgrade().unwrap();
                drop(semaphore.try_acquire());
                drop(semaphore.clone().acquire_owned().enqueue());
                let _ = semaphore.waiters();
                done.fetch_add(1, SeqCst);
            }
        });
        let mut request = semaphore.clone().acquire_owned();
        assert!(poll_with(&mut request, &foreign.waker()).is_pending());
        waits(&mut request);
        assert!(poll_with(&mut request, &foreign.waker()).is_pending());
        drop(held);
        drop(served(&mut request));
        assert!(done.load(SeqCst) > 0, "{event:?}");
        at_rest(&semaphore);
        assert_eq!(foreign.live(), 0);
    }
}

#[test]
fn case_15_a_waker_that_panics_in_wake_loses_no_permit_and_the_others_are_served() {
    // All places: wakers.rs.
    let (semaphore, held) = all_held(3);
    let foreign = Foreign::new();
    foreign.on(Event::Wake, || panic!("a bad waker"));
    let (mut a, a_woken) = queued(&semaphore, 1);
    let mut bad = semaphore.clone().acquire_owned();
    assert!(poll_with(&mut bad, &foreign.waker()).is_pending());
    let (mut c, c_woken) = queued(&semaphore, 1);
    let panicked = catch_unwind(AssertUnwindSafe(|| drop(held)));
    assert!(panicked.is_err(), "the panic is passed on");
    assert_eq!((a_woken.wakes(), c_woken.wakes()), (1, 1));
    drop((served(&mut a), served(&mut bad), served(&mut c)));
    at_rest(&semaphore);
    assert_eq!(foreign.live(), 0);
}

#[test]
fn case_16_a_permit_granted_and_dropped_unpolled_goes_on_down_the_whole_line() {
    let (semaphore, held) = all_held(1);
    let line: Vec<_> = (0..100).map(|_| queued(&semaphore, 1)).collect();
    let (mut last, last_woken) = queued(&semaphore, 1);
    drop(held);
    for (request, woken) in line {
        assert_eq!(woken.wakes(), 1);
        assert_eq!(last_woken.wakes(), 0);
        drop(request);
    }
    drop(served(&mut last));
    at_rest(&semaphore);
}

#[test]
fn case_17_a_million_polls_and_drops_with_no_release_leave_memory_flat() {
    let (semaphore, held) = all_held(1);
    let (mut live, _) = queued(&semaphore, 1);
    let before = Heap::now();
    for _ in 0..1_000_000 {
        let mut request = semaphore.acquire();
        waits(&mut request);
    }
    assert_eq!(Heap::since(before), Heap::UNTOUCHED);
    assert_eq!(semaphore.waiters(), 1);
    drop(held);
    drop(served(&mut live));
    at_rest(&semaphore);
}

#[test]
fn case_18_close_within_the_poll_of_a_queued_future_ends_it_with_closed_once() {
    // The second poll clones its waker, and that closes.
    let (semaphore, held) = all_held(1);
    let foreign = Foreign::new();
    foreign.once(Event::Clone, {
        let semaphore = semaphore.clone();
        move || semaphore.close()
    });
    let (mut request, woken) = queued(&semaphore, 1);
    let (mut other, other_woken) = queued(&semaphore, 1);
    let polled = poll_with(&mut request, &foreign.waker());
    assert!(matches!(polled, Poll::Ready(Err(AcquireError::Closed))));
    assert_eq!((woken.wakes(), other_woken.wakes()), (1, 1));
    assert_eq!(refused(&mut other), AcquireError::Closed);
    let again = catch_unwind(AssertUnwindSafe(|| poll(&mut request).is_ready()));
    assert!(again.is_err(), "not ready twice");
    drop((request, other, held));
    assert_eq!((foreign.live(), foreign.count(Event::Wake)), (0, 0));
    at_rest(&semaphore);
}

#[test]
fn case_19_forgetting_and_adding_permits_does_not_open_a_closed_semaphore() {
    let (semaphore, mut held) = all_held(4);
    semaphore.close();
    held.split(2).unwrap().forget();
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
    semaphore.add_permits(1).unwrap();
    assert!(semaphore.is_closed());
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
    assert_eq!(refused(&mut semaphore.acquire()), AcquireError::Closed);
    drop(held);
    assert_eq!(semaphore.capacity(), 3);
    at_rest(&semaphore);
}

#[test]
fn case_20_a_request_that_is_just_joining_when_close_comes_ends_with_closed() {
    let (semaphore, held) = all_held(1);
    let foreign = Foreign::new();
    foreign.once(Event::Clone, {
        let semaphore = semaphore.clone();
        move || semaphore.close()
    });
    let mut request = semaphore.clone().acquire_owned();
    let polled = poll_with(&mut request, &foreign.waker());
    assert!(matches!(polled, Poll::Ready(Err(AcquireError::Closed))));
    drop((request, held));
    assert_eq!(foreign.live(), 0);
    at_rest(&semaphore);
}

#[test]
fn case_21_counts_at_and_over_the_greatest_are_clear_errors_that_change_nothing() {
    let over = MAX_PERMITS + 1;
    assert_eq!(Semaphore::try_new(over).unwrap_err(), BuildError::TooManyPermits { permits: over });
    let semaphore = Semaphore::new(MAX_PERMITS);
    let full = CeilingError { permits: over, ceiling: MAX_PERMITS };
    assert_eq!(semaphore.add_permits(1), Err(full));
    let mut a = semaphore.try_acquire_many(u32::MAX).unwrap();
    let b = semaphore.try_acquire_many(u32::MAX).unwrap();
    assert_eq!(semaphore.add_permits(1), Err(full));
    a.merge(b).unwrap();
    assert_eq!(a.num_permits(), 2 * u32::MAX as usize);
    drop(a);
    at_rest(&semaphore);
    let small = Semaphore::new(3);
    assert_eq!(
        refused(&mut small.acquire_many(4)),
        AcquireError::ExceedsCapacity { requested: 4, ceiling: 3 }
    );
    at_rest(&small);
}

#[test]
fn case_22_a_queued_future_moved_to_another_task_wakes_that_one() {
    let (semaphore, held) = all_held(1);
    let (mut request, first) = queued(&semaphore, 1);
    let (second, waker) = Count::waker();
    let mut request = std::thread::spawn(move || {
        assert!(poll_with(&mut request, &waker).is_pending());
        request
    })
    .join()
    .unwrap();
    drop(held);
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    drop(served(&mut request));
}

#[test]
fn case_23_granted_then_closed_then_polled_gives_the_lease() {
    let (semaphore, held) = all_held(1);
    let (mut request, woken) = queued(&semaphore, 1);
    drop(held);
    semaphore.close();
    assert_eq!(woken.wakes(), 1);
    drop(served(&mut request));
    at_rest(&semaphore);
}

#[test]
fn case_24_a_granted_future_holds_its_permit_until_it_is_polled_or_dropped() {
    let (semaphore, held) = all_held(1);
    let (count, waker) = Count::waker();
    let mut one = semaphore.acquire();
    let mut other = semaphore.acquire();
    assert!(poll_with(&mut one, &waker).is_pending());
    assert!(poll_with(&mut other, &waker).is_pending());
    drop(held);
    assert_eq!(count.wakes(), 1);
    // The task polls the other one alone: as documented, that waits.
    for _ in 0..10 {
        assert!(poll_with(&mut other, &waker).is_pending());
    }
    assert_eq!(count.wakes(), 1);
    drop(one);
    assert_eq!(count.wakes(), 2);
    drop(served(&mut other));
    at_rest(&semaphore);
}

#[test]
fn case_25_after_the_last_waiter_left_with_permits_arriving_a_try_succeeds() {
    let (semaphore, mut held) = all_held(3);
    let (a, _) = queued(&semaphore, 3);
    drop(held.split(2));
    drop(a);
    assert_eq!(semaphore.available_permits(), 2);
    drop(semaphore.try_acquire_many(2).unwrap());
    // The release in between.
    let (a, _) = queued(&semaphore, 3);
    drop(held);
    drop(a);
    drop(semaphore.try_acquire_many(3).unwrap());
    at_rest(&semaphore);
}

#[test]
fn case_26_a_permit_moved_into_a_blocking_job_stays_with_the_job() {
    let (semaphore, held) = all_held(1);
    let (mut request, _) = queued(&semaphore, 1);
    drop(held);
    let lease = served(&mut request);
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let job = std::thread::spawn(move || {
        gone.recv().unwrap();
        lease.release();
    });
    // The async caller goes away; the work goes on.
    drop(request);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    go.send(()).unwrap();
    job.join().unwrap();
    at_rest(&semaphore);
}

#[test]
fn case_27_a_lease_assigned_over_a_live_one_releases_the_old() {
    let semaphore = Semaphore::new(3);
    let mut lease = semaphore.try_acquire_many(2).unwrap();
    assert_eq!((lease.num_permits(), semaphore.available_permits()), (2, 1));
    lease = semaphore.try_acquire().unwrap();
    assert_eq!((lease.num_permits(), semaphore.available_permits()), (1, 2));
    drop(lease);
    at_rest(&semaphore);
}

/// Nanoseconds for each step of a wait in the middle of `len` waiters; the least of some attempts.
fn cost_with_waiters(len: usize) -> [f64; 3] {
    const STEPS: usize = 1000;
    let (semaphore, mut held) = all_held(STEPS as u32);
    let mut line: Vec<_> = (0..len).map(|_| Some(semaphore.clone().acquire_owned())).collect();
    for request in line.iter_mut().flatten() {
        waits(request);
    }
    let each = |begun: Instant| begun.elapsed().as_nanos() as f64 / STEPS as f64;
    let begun = Instant::now();
    let mut newcomers: Vec<_> = (0..STEPS).map(|_| semaphore.clone().acquire_owned()).collect();
    newcomers.iter_mut().for_each(waits);
    let join = each(begun);
    // From all over the line, a third of it at most.
    let begun = Instant::now();
    for i in 0..STEPS {
        line[i * 3 % len] = None;
    }
    let cancel = each(begun);
    let begun = Instant::now();
    for _ in 0..STEPS {
        drop(held.split(1));
    }
    let release = each(begun);
    [join, cancel, release]
}

#[test]
fn case_28_the_cost_of_a_step_is_printed_for_short_and_long_queues() {
    // Printed, not asserted: time on a shared machine proves nothing. What would make a queue slow
    // makes it a thousand times slower here, and this test visibly so.
    let begun = Instant::now();
    let least = |len| {
        (0..5)
            .map(|_| cost_with_waiters(len))
            .fold([f64::MAX; 3], |least, now| std::array::from_fn(|i| f64::min(least[i], now[i])))
    };
    let (short, long) = (least(3_000), least(100_000));
    for (i, step) in ["join", "cancel", "release"].into_iter().enumerate() {
        println!(
            "{step:>8}: {:6.0} ns with 3,000 waiters, {:6.0} ns with 100,000: ratio {:.2}",
            short[i],
            long[i],
            long[i] / short[i]
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(120), "a failure detector: it takes a second");
}
