//! SPEC.md, point by point, on one thread and with polls by hand: each test is named after what
//! it shows. Races of the same operations are the model's; here are their outcomes.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use std::mem;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use common::{Count, Order, Timer, at_rest, poll, poll_with, refused, served, waits};
use semaphore_core::{
    Acquire, AcquireError, AcquireOwned, BuildError, Builder, CeilingError, Drained, Lease,
    MAX_PERMITS, MergeError, Observer, OwnedLease, Semaphore, Snapshot, TryAcquireError,
    WithDeadline,
};

/// A semaphore with all permits in a lease.
fn all_held(permits: u32) -> (Arc<Semaphore>, OwnedLease) {
    let semaphore = Arc::new(Semaphore::new(permits as usize));
    let lease = semaphore.clone().try_acquire_many_owned(permits).unwrap();
    (semaphore, lease)
}

// 1. Ownership

#[test]
fn an_acquire_with_permits_free_is_ready_at_its_first_poll() {
    let semaphore = Semaphore::new(3);
    let one = served(&mut semaphore.acquire());
    let two = served(&mut semaphore.acquire_many(2));
    assert_eq!((one.num_permits(), two.num_permits()), (1, 2));
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn a_dropped_lease_and_a_released_one_are_back_at_once() {
    let semaphore = Semaphore::new(3);
    let lease = semaphore.try_acquire_many(2).unwrap();
    assert_eq!(semaphore.available_permits(), 1);
    drop(lease);
    assert_eq!(semaphore.available_permits(), 3);
    semaphore.try_acquire_many(3).unwrap().release();
    at_rest(&semaphore);
}

#[test]
fn owned_leases_work_as_borrowed_ones_and_keep_the_semaphore_alive() {
    let semaphore = Arc::new(Semaphore::new(4));
    let taken = served(&mut semaphore.clone().acquire_owned());
    let many = served(&mut semaphore.clone().acquire_many_owned(2));
    let tried = semaphore.clone().try_acquire_owned().unwrap();
    assert_eq!(
        semaphore.clone().try_acquire_many_owned(1).unwrap_err(),
        TryAcquireError::NoPermits
    );
    let weak = Arc::downgrade(&semaphore);
    drop(semaphore);
    assert_eq!(taken.semaphore().available_permits(), 0);
    taken.release();
    many.release();
    assert_eq!(tried.semaphore().available_permits(), 3);
    drop(tried);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_request_that_was_never_polled_owns_nothing_and_waits_nowhere() {
    let semaphore = Semaphore::new(1);
    let never = semaphore.acquire();
    assert_eq!(semaphore.available_permits(), 1);
    drop(never);
    at_rest(&semaphore);
}

#[test]
fn a_panic_while_a_lease_is_alive_gives_it_back() {
    let semaphore = Semaphore::new(2);
    let panicked = catch_unwind(|| {
        let _lease = served(&mut semaphore.acquire_many(2));
        panic!("the work failed");
    });
    assert!(panicked.is_err());
    at_rest(&semaphore);
}

#[test]
fn a_panic_while_a_request_waits_takes_it_out_of_the_queue() {
    let (semaphore, held) = all_held(1);
    let panicked = catch_unwind(|| {
        let mut request = semaphore.acquire();
        waits(&mut request);
        assert_eq!(semaphore.waiters(), 1);
        panic!("the task failed");
    });
    assert!(panicked.is_err());
    assert_eq!(semaphore.waiters(), 0);
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn a_panic_passes_the_permits_of_its_lease_to_the_next_waiter() {
    let semaphore = Semaphore::new(1);
    let held = semaphore.try_acquire().unwrap();
    let (count, waker) = Count::waker();
    let mut request = semaphore.acquire();
    assert!(poll_with(&mut request, &waker).is_pending());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _held = held;
        panic!("the work failed");
    }));
    assert!(panicked.is_err());
    assert_eq!(count.wakes(), 1);
    drop(served(&mut request));
    at_rest(&semaphore);
}

// 2. Strict FIFO

#[test]
fn requests_are_served_in_the_order_in_which_they_joined() {
    let (semaphore, mut held) = all_held(5);
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut requests: Vec<_> = (0..5).map(|_| semaphore.acquire()).collect();
    for (number, request) in requests.iter_mut().enumerate() {
        assert!(poll_with(request, &Order::waker(number, &log)).is_pending());
    }
    for done in 1..=5 {
        drop(held.split(1));
        assert_eq!(*log.lock().unwrap(), (0..done).collect::<Vec<_>>());
    }
    let leases: Vec<_> = requests.iter_mut().map(served).collect();
    assert_eq!(leases.len(), 5);
}

#[test]
fn one_release_serves_as_many_as_fit_and_in_order() {
    let (semaphore, held) = all_held(6);
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut requests: Vec<_> = [1, 2, 3, 1].map(|n| semaphore.acquire_many(n)).into();
    for (number, request) in requests.iter_mut().enumerate() {
        assert!(poll_with(request, &Order::waker(number, &log)).is_pending());
    }
    drop(held);
    assert_eq!(*log.lock().unwrap(), [0, 1, 2]);
    let rest = requests.split_off(3);
    let leases: Vec<_> = requests.iter_mut().map(served).collect();
    assert_eq!(leases.iter().map(Lease::num_permits).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(semaphore.waiters(), 1);
    drop((rest, leases));
    at_rest(&semaphore);
}

#[test]
fn a_large_request_at_the_head_holds_back_small_ones() {
    let (semaphore, mut held) = all_held(3);
    let mut large = semaphore.acquire_many(3);
    let mut small = semaphore.acquire();
    waits(&mut large);
    waits(&mut small);
    drop(held.split(2));
    waits(&mut large);
    waits(&mut small);
    drop(held);
    let lease = served(&mut large);
    assert_eq!(lease.num_permits(), 3);
    waits(&mut small);
    drop(lease);
    assert_eq!(served(&mut small).num_permits(), 1);
}

#[test]
fn no_later_request_of_any_size_takes_a_permit_while_somebody_waits() {
    let semaphore = Semaphore::new(3);
    let held = semaphore.try_acquire().unwrap();
    let mut large = semaphore.acquire_many(3);
    waits(&mut large);
    // Two permits are in the hand of `large` and of nobody else.
    assert_eq!(semaphore.available_permits(), 0);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    assert_eq!(semaphore.try_acquire_many(2).unwrap_err(), TryAcquireError::NoPermits);
    let mut one = semaphore.acquire();
    let mut enqueued = semaphore.acquire().enqueue();
    waits(&mut one);
    waits(&mut enqueued);
    drop(held);
    assert_eq!(served(&mut large).num_permits(), 3);
    drop((one, enqueued));
    at_rest(&semaphore);
}

#[test]
fn the_first_waiter_takes_what_is_free_as_a_partial_grant() {
    let semaphore = Semaphore::new(4);
    let held = semaphore.try_acquire().unwrap();
    let mut all = semaphore.acquire_many(4);
    waits(&mut all);
    assert_eq!(semaphore.available_permits(), 0);
    drop(all);
    assert_eq!(semaphore.available_permits(), 3);
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn partial_grants_gather_in_the_head_until_it_has_all() {
    let (semaphore, mut held) = all_held(5);
    let (count, waker) = Count::waker();
    let mut four = semaphore.acquire_many(4);
    assert!(poll_with(&mut four, &waker).is_pending());
    for _ in 0..3 {
        drop(held.split(1));
        assert!(poll_with(&mut four, &waker).is_pending());
        assert_eq!((count.wakes(), semaphore.available_permits()), (0, 0));
    }
    drop(held);
    assert_eq!(count.wakes(), 1);
    // The second of the two that came last was one too many.
    assert_eq!(semaphore.available_permits(), 1);
    assert_eq!(served(&mut four).num_permits(), 4);
}

#[test]
fn spurious_polls_change_nobodys_place() {
    let (semaphore, held) = all_held(1);
    let mut first = semaphore.acquire();
    let mut second = semaphore.acquire();
    waits(&mut first);
    waits(&mut second);
    for _ in 0..100 {
        waits(&mut second);
        waits(&mut first);
        waits(&mut second);
    }
    assert_eq!(semaphore.waiters(), 2);
    drop(held);
    waits(&mut second);
    drop(served(&mut first));
    drop(served(&mut second));
}

#[test]
fn a_place_in_line_is_taken_at_the_first_poll() {
    let (semaphore, held) = all_held(1);
    let mut made_first = semaphore.acquire();
    let mut polled_first = semaphore.acquire();
    waits(&mut polled_first);
    waits(&mut made_first);
    drop(held);
    waits(&mut made_first);
    drop(served(&mut polled_first));
    drop(served(&mut made_first));
}

#[test]
fn enqueue_takes_the_place_in_line_before_the_first_poll() {
    let (semaphore, held) = all_held(1);
    let mut first = semaphore.acquire().enqueue();
    let mut second = semaphore.acquire();
    waits(&mut second);
    assert_eq!(semaphore.waiters(), 2);
    drop(held);
    waits(&mut second);
    drop(served(&mut first));
    drop(served(&mut second));
}

#[test]
fn enqueue_takes_the_permits_if_they_are_free_and_gives_them_back_if_dropped() {
    let semaphore = Semaphore::new(2);
    let taken = semaphore.acquire_many(2).enqueue();
    assert_eq!(semaphore.available_permits(), 0);
    assert_eq!(semaphore.waiters(), 0);
    drop(taken);
    at_rest(&semaphore);
    let mut taken = semaphore.acquire().enqueue();
    assert_eq!(served(&mut taken).num_permits(), 1);
}

#[test]
fn enqueue_twice_or_after_a_poll_keeps_the_first_place() {
    let (semaphore, held) = all_held(1);
    let first = semaphore.acquire().enqueue();
    let mut second = semaphore.acquire();
    waits(&mut second);
    let mut first = first.enqueue();
    let second = second.enqueue();
    assert_eq!(semaphore.waiters(), 2);
    drop(held);
    drop(served(&mut first));
    let mut second = second;
    drop(served(&mut second));
}

#[test]
fn an_enqueued_request_that_was_granted_unpolled_is_ready_at_its_first_poll() {
    let (semaphore, held) = all_held(1);
    let mut request = semaphore.acquire().enqueue();
    drop(held);
    assert_eq!(semaphore.available_permits(), 0);
    let (count, waker) = Count::waker();
    assert!(matches!(poll_with(&mut request, &waker), Poll::Ready(Ok(_))));
    assert_eq!(count.wakes(), 0);
}

#[test]
fn enqueue_keeps_an_error_for_the_poll() {
    let (semaphore, _held) = all_held(1);
    let mut too_large = semaphore.acquire_many(2).enqueue();
    semaphore.close();
    let mut closed = semaphore.acquire().enqueue();
    assert_eq!(refused(&mut too_large), AcquireError::ExceedsCapacity { requested: 2, ceiling: 1 });
    assert_eq!(refused(&mut closed), AcquireError::Closed);
}

#[test]
fn borrowed_and_owned_requests_stand_in_one_line() {
    let (semaphore, mut held) = all_held(2);
    let mut owned = semaphore.clone().acquire_owned();
    let mut borrowed = semaphore.acquire();
    waits(&mut owned);
    waits(&mut borrowed);
    drop(held.split(1));
    waits(&mut borrowed);
    drop(served(&mut owned));
    drop(served(&mut borrowed));
    drop(held);
    at_rest(&semaphore);
}

// 3. Hand-off

#[test]
fn a_release_with_a_waiter_never_makes_its_permit_available() {
    let (semaphore, held) = all_held(1);
    let mut request = semaphore.acquire();
    waits(&mut request);
    drop(held);
    // Granted and not polled: it is reserved.
    assert_eq!(semaphore.available_permits(), 0);
    assert_eq!(semaphore.waiters(), 0);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    let mut late = semaphore.acquire();
    waits(&mut late);
    drop(served(&mut request));
    drop(served(&mut late));
    at_rest(&semaphore);
}

#[test]
fn try_acquire_is_refused_while_anybody_waits_even_for_no_more_than_is_left() {
    let (semaphore, mut held) = all_held(4);
    let mut large = semaphore.acquire_many(4);
    waits(&mut large);
    drop(held.split(3));
    for n in 1..=4 {
        assert_eq!(semaphore.try_acquire_many(n).unwrap_err(), TryAcquireError::NoPermits);
    }
    drop(large);
    assert_eq!(semaphore.try_acquire_many(3).unwrap().num_permits(), 3);
}

#[test]
fn a_waiter_is_woken_once_by_its_grant_and_not_before() {
    let (semaphore, held) = all_held(1);
    let (count, waker) = Count::waker();
    let mut request = semaphore.acquire();
    for _ in 0..10 {
        assert!(poll_with(&mut request, &waker).is_pending());
    }
    assert_eq!(count.wakes(), 0);
    drop(held);
    assert_eq!(count.wakes(), 1);
    assert!(poll_with(&mut request, &waker).is_ready());
    assert_eq!(count.wakes(), 1);
}

// 4. Release and cancellation

#[test]
fn a_cancelled_waiter_owns_nothing_and_the_next_is_served() {
    let (semaphore, held) = all_held(1);
    let mut first = semaphore.acquire();
    let mut second = semaphore.acquire();
    waits(&mut first);
    waits(&mut second);
    drop(first);
    assert_eq!(semaphore.waiters(), 1);
    drop(held);
    drop(served(&mut second));
    at_rest(&semaphore);
}

#[test]
fn a_partial_grant_goes_to_the_next_waiter_when_its_owner_leaves() {
    let (semaphore, mut held) = all_held(3);
    let (count, waker) = Count::waker();
    let mut large = semaphore.acquire_many(3);
    let mut small = semaphore.acquire_many(2);
    waits(&mut large);
    assert!(poll_with(&mut small, &waker).is_pending());
    drop(held.split(2));
    assert_eq!(count.wakes(), 0);
    drop(large);
    assert_eq!(count.wakes(), 1);
    drop(served(&mut small));
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn a_granted_future_dropped_unpolled_passes_its_permits_on_at_once() {
    let (semaphore, held) = all_held(2);
    let (count, waker) = Count::waker();
    let mut first = semaphore.acquire_many(2);
    waits(&mut first);
    let mut second = semaphore.acquire();
    assert!(poll_with(&mut second, &waker).is_pending());
    drop(held);
    assert_eq!(count.wakes(), 0);
    drop(first);
    assert_eq!(count.wakes(), 1);
    assert_eq!(semaphore.available_permits(), 1);
    drop(served(&mut second));
    at_rest(&semaphore);
}

#[test]
fn cancelling_at_every_position_of_a_queue_leaves_the_others_in_order() {
    const LEN: usize = 6;
    // Every subset of the queue is cancelled, in both directions.
    for gone in 0..1 << LEN {
        for forwards in [true, false] {
            let (semaphore, mut held) = all_held(LEN as u32);
            let log = Arc::new(Mutex::new(Vec::new()));
            let mut requests: Vec<_> = (0..LEN).map(|_| Some(semaphore.acquire())).collect();
            for (number, request) in requests.iter_mut().enumerate() {
                let waker = Order::waker(number, &log);
                assert!(poll_with(request.as_mut().unwrap(), &waker).is_pending());
            }
            let stay: Vec<_> = (0..LEN).filter(|i| gone >> i & 1 == 0).collect();
            let leave = |i: usize, requests: &mut Vec<Option<_>>| {
                if gone >> i & 1 == 1 {
                    requests[i] = None;
                }
            };
            if forwards {
                (0..LEN).for_each(|i| leave(i, &mut requests));
            } else {
                (0..LEN).rev().for_each(|i| leave(i, &mut requests));
            }
            assert_eq!(semaphore.waiters(), stay.len());
            while held.num_permits() > 0 {
                drop(held.split(1));
            }
            assert_eq!(*log.lock().unwrap(), stay);
            for request in requests.iter_mut().flatten() {
                drop(served(request));
            }
            at_rest(&semaphore);
        }
    }
}

// 5. Timeouts

#[test]
fn a_deadline_that_comes_first_ends_the_request_and_wakes_its_task() {
    let (semaphore, held) = all_held(1);
    let timer = Timer::default();
    let (count, waker) = Count::waker();
    let mut request = semaphore.acquire().with_deadline(timer.clone());
    assert!(poll_with(&mut request, &waker).is_pending());
    assert_eq!(semaphore.waiters(), 1);
    timer.fire();
    assert_eq!(count.wakes(), 1);
    assert_eq!(refused(&mut request), AcquireError::TimedOut);
    assert_eq!(semaphore.waiters(), 0);
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn a_grant_that_came_before_the_deadline_wins_though_both_have_come() {
    let (semaphore, held) = all_held(1);
    let timer = Timer::default();
    let mut request = semaphore.acquire().with_deadline(timer.clone());
    waits(&mut request);
    drop(held);
    timer.fire();
    assert_eq!(served(&mut request).num_permits(), 1);
    at_rest(&semaphore);
}

#[test]
fn a_deadline_that_came_before_the_release_but_was_not_polled_loses_to_the_grant() {
    let (semaphore, held) = all_held(1);
    let timer = Timer::default();
    let mut request = semaphore.acquire().with_deadline(timer.clone());
    waits(&mut request);
    timer.fire();
    drop(held);
    assert_eq!(served(&mut request).num_permits(), 1);
}

#[test]
fn an_expired_deadline_with_permits_free_still_gets_a_lease() {
    let semaphore = Semaphore::new(1);
    let timer = Timer::default();
    timer.fire();
    let lease = served(&mut semaphore.acquire().with_deadline(timer.clone()));
    assert_eq!(refused(&mut semaphore.acquire().with_deadline(timer)), AcquireError::TimedOut);
    drop(lease);
    at_rest(&semaphore);
}

#[test]
fn a_grant_from_within_the_timers_poll_wins() {
    struct GrantsAndExpires(Option<OwnedLease>);

    impl Future for GrantsAndExpires {
        type Output = ();

        fn poll(mut self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<()> {
            drop(self.0.take());
            Poll::Ready(())
        }
    }

    let (semaphore, held) = all_held(1);
    let mut request = semaphore.acquire().with_deadline(GrantsAndExpires(Some(held)));
    assert_eq!(served(&mut request).num_permits(), 1);
}

#[test]
fn a_timed_out_request_passes_its_partial_grant_on() {
    let (semaphore, mut held) = all_held(3);
    let timer = Timer::default();
    let mut large = semaphore.acquire_many(3).with_deadline(timer.clone());
    let mut small = semaphore.acquire();
    waits(&mut large);
    waits(&mut small);
    drop(held.split(2));
    timer.fire();
    assert_eq!(refused(&mut large), AcquireError::TimedOut);
    assert_eq!(semaphore.available_permits(), 1);
    drop(served(&mut small));
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn a_deadline_works_on_enqueued_and_on_owned_requests() {
    let (semaphore, held) = all_held(1);
    let timer = Timer::default();
    let mut enqueued = semaphore.acquire().enqueue().with_deadline(timer.clone());
    let mut owned = semaphore.clone().acquire_owned().with_deadline(timer.clone());
    waits(&mut enqueued);
    waits(&mut owned);
    drop(held);
    drop(served(&mut enqueued));
    drop(served(&mut owned));
    let held = semaphore.try_acquire().unwrap();
    timer.fire();
    let mut late = semaphore.clone().acquire_owned().enqueue().with_deadline(timer);
    assert_eq!(refused(&mut late), AcquireError::TimedOut);
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn a_request_with_a_deadline_dropped_while_it_waits_leaves_the_queue() {
    let (semaphore, held) = all_held(1);
    let mut request = semaphore.acquire().with_deadline(Timer::default());
    waits(&mut request);
    drop(request);
    assert_eq!(semaphore.waiters(), 0);
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn close_is_told_from_a_deadline_that_came_as_well() {
    let (semaphore, _held) = all_held(1);
    let timer = Timer::default();
    let mut request = semaphore.acquire().with_deadline(timer.clone());
    waits(&mut request);
    semaphore.close();
    timer.fire();
    assert_eq!(refused(&mut request), AcquireError::Closed);
}

// 6. Close

#[test]
fn after_close_every_new_request_fails_though_permits_are_free() {
    let semaphore = Arc::new(Semaphore::new(2));
    assert!(!semaphore.is_closed());
    semaphore.close();
    assert!(semaphore.is_closed());
    assert_eq!(refused(&mut semaphore.acquire()), AcquireError::Closed);
    assert_eq!(refused(&mut semaphore.acquire().enqueue()), AcquireError::Closed);
    assert_eq!(refused(&mut semaphore.clone().acquire_owned()), AcquireError::Closed);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
    assert_eq!(semaphore.clone().try_acquire_owned().unwrap_err(), TryAcquireError::Closed);
    at_rest(&semaphore);
}

#[test]
fn close_ends_and_wakes_every_pending_waiter() {
    let (semaphore, held) = all_held(2);
    let (count, waker) = Count::waker();
    let mut polled: Vec<_> = (0..5).map(|_| semaphore.acquire()).collect();
    for request in &mut polled {
        assert!(poll_with(request, &waker).is_pending());
    }
    let mut unpolled = semaphore.acquire_many(2).enqueue();
    semaphore.close();
    assert_eq!((count.wakes(), semaphore.waiters()), (5, 0));
    for request in &mut polled {
        assert_eq!(refused(request), AcquireError::Closed);
    }
    assert_eq!(refused(&mut unpolled), AcquireError::Closed);
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn a_closed_request_may_be_dropped_unpolled() {
    let (semaphore, held) = all_held(1);
    let mut first = semaphore.acquire();
    waits(&mut first);
    let second = semaphore.acquire().enqueue();
    semaphore.close();
    drop((first, second));
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn a_waiter_fulfilled_before_close_keeps_its_lease() {
    let (semaphore, held) = all_held(1);
    let mut request = semaphore.acquire();
    waits(&mut request);
    drop(held);
    semaphore.close();
    let lease = served(&mut request);
    assert_eq!(lease.num_permits(), 1);
    assert_eq!(semaphore.available_permits(), 0);
    drop(lease);
    at_rest(&semaphore);
}

#[test]
fn a_waiter_fulfilled_before_close_and_dropped_gives_its_permits_back() {
    let (semaphore, held) = all_held(1);
    let mut request = semaphore.acquire();
    waits(&mut request);
    drop(held);
    semaphore.close();
    drop(request);
    at_rest(&semaphore);
}

#[test]
fn a_request_that_took_its_permits_by_enqueue_before_close_keeps_them() {
    let semaphore = Semaphore::new(1);
    let mut request = semaphore.acquire().enqueue();
    semaphore.close();
    assert_eq!(served(&mut request).num_permits(), 1);
    at_rest(&semaphore);
}

#[test]
fn close_gives_a_partial_grant_back_and_keeps_the_count_exact() {
    let (semaphore, mut held) = all_held(3);
    let mut large = semaphore.acquire_many(3);
    waits(&mut large);
    drop(held.split(2));
    semaphore.close();
    assert_eq!(semaphore.available_permits(), 2);
    assert_eq!(refused(&mut large), AcquireError::Closed);
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn close_is_idempotent() {
    let (semaphore, held) = all_held(1);
    let (count, waker) = Count::waker();
    let mut request = semaphore.acquire();
    assert!(poll_with(&mut request, &waker).is_pending());
    semaphore.close();
    semaphore.close();
    assert_eq!(count.wakes(), 1);
    assert_eq!(refused(&mut request), AcquireError::Closed);
    semaphore.close();
    drop(held);
    at_rest(&semaphore);
    assert!(semaphore.is_closed());
}

#[test]
fn leases_of_a_closed_semaphore_split_merge_and_come_back() {
    let (semaphore, mut held) = all_held(4);
    semaphore.close();
    let mut part = held.split(3).unwrap();
    drop(part.split(1));
    held.merge(part).unwrap();
    assert_eq!(held.num_permits(), 3);
    assert_eq!(semaphore.available_permits(), 1);
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn drained_waits_for_close_and_for_the_last_lease() {
    let (semaphore, mut held) = all_held(3);
    let (count, waker) = Count::waker();
    let mut drained = semaphore.drained();
    assert!(poll_with(&mut drained, &waker).is_pending());
    drop(held.split(1));
    assert!(poll_with(&mut drained, &waker).is_pending());
    semaphore.close();
    assert!(poll_with(&mut drained, &waker).is_pending());
    drop(held.split(1));
    assert!(poll_with(&mut drained, &waker).is_pending());
    assert_eq!(count.wakes(), 0);
    drop(held);
    assert_eq!(count.wakes(), 1);
    assert!(poll_with(&mut drained, &waker).is_ready());
}

#[test]
fn drained_is_not_ready_with_all_permits_back_but_no_close() {
    let semaphore = Semaphore::new(1);
    let (count, waker) = Count::waker();
    let mut drained = semaphore.drained();
    assert!(poll_with(&mut drained, &waker).is_pending());
    drop(semaphore.try_acquire().unwrap());
    assert!(poll_with(&mut drained, &waker).is_pending());
    semaphore.close();
    assert_eq!(count.wakes(), 1);
    assert!(poll(&mut drained).is_ready());
    assert!(poll(&mut semaphore.drained()).is_ready());
}

#[test]
fn drained_serves_any_number_of_callers_each_woken_once() {
    const CALLERS: usize = 100;
    let (semaphore, held) = all_held(1);
    let wakers: Vec<_> = (0..CALLERS).map(|_| Count::waker()).collect();
    let mut callers: Vec<_> = (0..CALLERS).map(|_| semaphore.drained()).collect();
    for (caller, (_, waker)) in callers.iter_mut().zip(&wakers) {
        assert!(poll_with(caller, waker).is_pending());
    }
    // Some go away, from the middle and from both ends.
    callers.retain({
        let mut i = 0;
        move |_| {
            i += 1;
            i % 3 != 1
        }
    });
    semaphore.close();
    drop(held);
    for (i, (count, _)) in wakers.iter().enumerate() {
        assert_eq!(count.wakes(), usize::from(i % 3 != 0), "caller {i}");
    }
    assert!(callers.iter_mut().all(|caller| poll(caller).is_ready()));
    assert_eq!(semaphore.waiters(), 0);
}

#[test]
fn those_who_wait_for_drained_are_no_waiters_and_hold_nobody_up() {
    let semaphore = Semaphore::builder().permits(1).max_waiters(1).build().unwrap();
    let mut drained = semaphore.drained();
    waits(&mut drained);
    assert_eq!(semaphore.waiters(), 0);
    let lease = semaphore.try_acquire().unwrap();
    let mut request = semaphore.acquire();
    waits(&mut request);
    assert_eq!(semaphore.waiters(), 1);
    drop(lease);
    drop(served(&mut request));
    at_rest(&semaphore);
}

#[test]
fn drained_waits_for_a_granted_request_that_was_not_polled() {
    let (semaphore, held) = all_held(1);
    let mut request = semaphore.acquire();
    waits(&mut request);
    drop(held);
    semaphore.close();
    let mut drained = semaphore.drained();
    waits(&mut drained);
    drop(request);
    assert!(poll(&mut drained).is_ready());
}

#[test]
fn drained_counts_a_forgotten_lease_as_gone() {
    let (semaphore, mut held) = all_held(2);
    let (count, waker) = Count::waker();
    let mut drained = semaphore.drained();
    assert!(poll_with(&mut drained, &waker).is_pending());
    semaphore.close();
    drop(held.split(1));
    assert_eq!(count.wakes(), 0);
    held.forget();
    assert_eq!(count.wakes(), 1);
    assert!(poll(&mut drained).is_ready());
    assert_eq!(semaphore.capacity(), 1);
}

#[test]
fn drained_wakes_the_waker_of_the_last_poll() {
    let semaphore = Semaphore::new(1);
    let (old, old_waker) = Count::waker();
    let (new, new_waker) = Count::waker();
    let mut drained = semaphore.drained();
    assert!(poll_with(&mut drained, &old_waker).is_pending());
    assert!(poll_with(&mut drained, &new_waker).is_pending());
    semaphore.close();
    assert_eq!((old.wakes(), new.wakes()), (0, 1));
    assert!(poll(&mut drained).is_ready());
    // Ready it stays, polled again too.
    assert!(poll(&mut drained).is_ready());
}

#[test]
fn drained_stays_ready_whatever_is_done_to_the_capacity() {
    let semaphore = Semaphore::growable(0);
    semaphore.close();
    assert!(poll(&mut semaphore.drained()).is_ready());
    semaphore.add_permits(3).unwrap();
    assert!(poll(&mut semaphore.drained()).is_ready());
    at_rest(&semaphore);
}

// 7. Bounded queue, bounded permits

#[test]
fn a_request_beyond_the_bound_of_the_queue_fails_at_once() {
    let semaphore = Semaphore::builder().permits(1).max_waiters(2).build().unwrap();
    let held = semaphore.try_acquire().unwrap();
    let mut first = semaphore.acquire();
    let mut second = semaphore.acquire().enqueue();
    waits(&mut first);
    assert_eq!(semaphore.waiters(), 2);
    assert_eq!(refused(&mut semaphore.acquire()), AcquireError::QueueFull);
    assert_eq!(refused(&mut semaphore.acquire().enqueue()), AcquireError::QueueFull);
    assert_eq!(semaphore.waiters(), 2);
    // One leaves by cancellation, and there is room for one.
    drop(first);
    assert_eq!(semaphore.waiters(), 1);
    let mut third = semaphore.acquire();
    waits(&mut third);
    assert_eq!(refused(&mut semaphore.acquire()), AcquireError::QueueFull);
    // One leaves by a grant, polled or not.
    drop(held);
    let mut fourth = semaphore.acquire();
    waits(&mut fourth);
    assert_eq!(refused(&mut semaphore.acquire()), AcquireError::QueueFull);
    for request in [&mut second, &mut third, &mut fourth] {
        drop(served(request));
    }
    at_rest(&semaphore);
}

#[test]
fn a_queue_is_never_full_of_waiters_that_are_gone() {
    let semaphore = Semaphore::builder().permits(1).max_waiters(1).build().unwrap();
    let _held = semaphore.try_acquire().unwrap();
    for _ in 0..1000 {
        let mut request = semaphore.acquire();
        waits(&mut request);
        assert_eq!(semaphore.waiters(), 1);
    }
    assert_eq!(semaphore.waiters(), 0);
}

#[test]
fn with_a_bound_of_zero_nobody_waits_and_the_fast_path_works() {
    let semaphore = Semaphore::builder().permits(1).max_waiters(0).build().unwrap();
    let lease = served(&mut semaphore.acquire());
    assert_eq!(refused(&mut semaphore.acquire()), AcquireError::QueueFull);
    assert_eq!(refused(&mut semaphore.acquire().enqueue()), AcquireError::QueueFull);
    let mut timed = semaphore.acquire().with_deadline(Timer::default());
    assert_eq!(refused(&mut timed), AcquireError::QueueFull);
    assert_eq!(semaphore.snapshot().max_waiters, Some(0));
    drop(lease);
    drop(served(&mut semaphore.acquire()));
    at_rest(&semaphore);
}

#[test]
fn a_request_for_more_than_the_ceiling_fails_at_once_and_changes_nothing() {
    let semaphore = Semaphore::builder().permits(2).ceiling(4).build().unwrap();
    let error = AcquireError::ExceedsCapacity { requested: 5, ceiling: 4 };
    assert_eq!(refused(&mut semaphore.acquire_many(5)), error);
    assert_eq!(
        semaphore.try_acquire_many(u32::MAX).unwrap_err(),
        TryAcquireError::ExceedsCapacity { requested: u32::MAX, ceiling: 4 }
    );
    at_rest(&semaphore);
}

#[test]
fn a_request_above_the_capacity_but_within_the_ceiling_waits_for_growth() {
    let semaphore = Semaphore::builder().permits(2).ceiling(4).build().unwrap();
    assert_eq!(semaphore.try_acquire_many(4).unwrap_err(), TryAcquireError::NoPermits);
    let (count, waker) = Count::waker();
    let mut request = semaphore.acquire_many(4);
    assert!(poll_with(&mut request, &waker).is_pending());
    semaphore.add_permits(1).unwrap();
    assert!(poll_with(&mut request, &waker).is_pending());
    semaphore.add_permits(1).unwrap();
    assert_eq!(count.wakes(), 1);
    drop(served(&mut request));
    assert_eq!(semaphore.capacity(), 4);
    at_rest(&semaphore);
}

#[test]
fn added_permits_go_to_the_waiters_in_order_and_the_rest_is_free() {
    let semaphore = Semaphore::growable(0);
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut requests: Vec<_> = [2, 1, 1].map(|n| semaphore.acquire_many(n)).into();
    for (number, request) in requests.iter_mut().enumerate() {
        assert!(poll_with(request, &Order::waker(number, &log)).is_pending());
    }
    semaphore.add_permits(3).unwrap();
    assert_eq!(*log.lock().unwrap(), [0, 1]);
    semaphore.add_permits(4).unwrap();
    assert_eq!(*log.lock().unwrap(), [0, 1, 2]);
    assert_eq!((semaphore.available_permits(), semaphore.capacity()), (3, 7));
    drop(requests);
    at_rest(&semaphore);
}

#[test]
fn permits_added_beyond_the_ceiling_are_an_error_that_changes_nothing() {
    let semaphore = Semaphore::new(2);
    assert_eq!(semaphore.add_permits(1), Err(CeilingError { permits: 3, ceiling: 2 }));
    assert_eq!(semaphore.add_permits(0), Ok(()));
    // Forgotten permits may be added again, and not twice.
    semaphore.try_acquire().unwrap().forget();
    assert_eq!(semaphore.add_permits(2), Err(CeilingError { permits: 3, ceiling: 2 }));
    assert_eq!(semaphore.add_permits(1), Ok(()));
    assert_eq!(semaphore.add_permits(1), Err(CeilingError { permits: 3, ceiling: 2 }));
    at_rest(&semaphore);
    assert_eq!(semaphore.capacity(), 2);
}

#[test]
fn the_greatest_count_works_and_one_more_is_refused() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    assert_eq!(semaphore.available_permits(), MAX_PERMITS);
    let full = CeilingError { permits: MAX_PERMITS + 1, ceiling: MAX_PERMITS };
    assert_eq!(semaphore.add_permits(1), Err(full));
    assert_eq!(
        semaphore.add_permits(usize::MAX),
        Err(CeilingError { permits: usize::MAX, ceiling: MAX_PERMITS })
    );
    let lease = semaphore.try_acquire_many(u32::MAX).unwrap();
    assert_eq!(semaphore.available_permits(), MAX_PERMITS - u32::MAX as usize);
    drop(lease);
    at_rest(&semaphore);
    let growable = Semaphore::growable(MAX_PERMITS - 1);
    growable.add_permits(1).unwrap();
    assert_eq!(growable.add_permits(1), Err(full));
    at_rest(&growable);
}

#[test]
fn constructors_refuse_what_cannot_be() {
    let too_many = MAX_PERMITS + 1;
    assert_eq!(Semaphore::try_new(0).unwrap_err(), BuildError::ZeroPermits);
    assert_eq!(
        Semaphore::try_new(too_many).unwrap_err(),
        BuildError::TooManyPermits { permits: too_many }
    );
    assert_eq!(Semaphore::try_new(1).unwrap().capacity(), 1);
    assert_eq!(Semaphore::try_new(MAX_PERMITS).unwrap().capacity(), MAX_PERMITS);
    let build = |builder: Builder| builder.build().unwrap_err();
    assert_eq!(build(Semaphore::builder()), BuildError::ZeroPermits);
    assert_eq!(build(Semaphore::builder().ceiling(0)), BuildError::ZeroPermits);
    assert_eq!(
        build(Semaphore::builder().permits(3).ceiling(2)),
        BuildError::AboveCeiling { permits: 3, ceiling: 2 }
    );
    assert_eq!(
        build(Semaphore::builder().permits(too_many)),
        BuildError::TooManyPermits { permits: too_many }
    );
    assert_eq!(
        build(Semaphore::builder().permits(1).ceiling(usize::MAX)),
        BuildError::TooManyPermits { permits: usize::MAX }
    );
    for waiters in [usize::MAX, usize::MAX - 1, 1 << 40] {
        assert_eq!(
            build(Semaphore::builder().permits(1).max_waiters(waiters)),
            BuildError::TooManyWaiters { waiters }
        );
    }
}

#[test]
#[should_panic(expected = "a semaphore of zero permits grants nothing")]
fn new_panics_on_zero_permits() {
    let _ = Semaphore::new(0);
}

#[test]
#[should_panic(expected = "more permits than a semaphore can have")]
fn new_panics_above_the_greatest_count() {
    let _ = Semaphore::new(MAX_PERMITS + 1);
}

#[test]
#[should_panic(expected = "more permits than a semaphore can have")]
fn growable_panics_above_the_greatest_count() {
    let _ = Semaphore::growable(usize::MAX);
}

#[test]
fn a_growable_semaphore_may_start_with_none() {
    let semaphore = Semaphore::growable(0);
    assert_eq!((semaphore.capacity(), semaphore.ceiling()), (0, MAX_PERMITS));
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    let mut request = semaphore.acquire();
    waits(&mut request);
    semaphore.add_permits(1).unwrap();
    drop(served(&mut request));
    at_rest(&semaphore);
    let built = Semaphore::builder().ceiling(5).build().unwrap();
    assert_eq!((built.capacity(), built.ceiling()), (0, 5));
}

#[test]
fn a_snapshot_tells_every_figure() {
    let semaphore = Semaphore::builder().permits(3).ceiling(9).max_waiters(4).build().unwrap();
    let held = semaphore.try_acquire().unwrap();
    let at = |available, closed, waiters| {
        let Snapshot {
            available: a, closed: c, capacity, ceiling, waiters: w, max_waiters, ..
        } = semaphore.snapshot();
        assert_eq!((a, c, w), (available, closed, waiters));
        assert_eq!((capacity, ceiling, max_waiters), (3, 9, Some(4)));
    };
    at(2, false, 0);
    let mut request = semaphore.acquire_many(3);
    waits(&mut request);
    at(0, false, 1);
    semaphore.close();
    at(2, true, 0);
    drop(held);
    at(3, true, 0);
    assert_eq!(Semaphore::new(1).snapshot().max_waiters, None);
    assert_eq!(semaphore.snapshot(), semaphore.snapshot());
}

// 11. Foreign code: what needs no hooks. The rest is in wakers.rs.

#[test]
fn a_repoll_with_another_waker_wakes_the_last_one_only() {
    let (semaphore, held) = all_held(1);
    let wakers: Vec<_> = (0..4).map(|_| Count::waker()).collect();
    let mut request = semaphore.acquire();
    for (_, waker) in &wakers {
        assert!(poll_with(&mut request, waker).is_pending());
        assert!(poll_with(&mut request, waker).is_pending());
    }
    // All but the last are let go of.
    for (i, (count, _)) in wakers.iter().enumerate() {
        assert_eq!(Arc::strong_count(count), 2 + usize::from(i == 3));
    }
    drop(held);
    let woken: Vec<_> = wakers.iter().map(|(count, _)| count.wakes()).collect();
    assert_eq!(woken, [0, 0, 0, 1]);
    for (count, _) in &wakers {
        assert_eq!(Arc::strong_count(count), 2);
    }
    drop(served(&mut request));
}

#[test]
fn a_repoll_back_to_the_first_waker_wakes_that_one() {
    let (semaphore, held) = all_held(1);
    let (first, first_waker) = Count::waker();
    let (second, second_waker) = Count::waker();
    let mut request = semaphore.acquire().enqueue();
    for waker in [&first_waker, &second_waker, &first_waker] {
        assert!(poll_with(&mut request, waker).is_pending());
    }
    drop(held);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
}

#[test]
fn a_cancelled_request_lets_go_of_its_waker_and_wakes_nobody() {
    let (semaphore, _held) = all_held(1);
    let (count, waker) = Count::waker();
    let mut request = semaphore.acquire();
    assert!(poll_with(&mut request, &waker).is_pending());
    assert_eq!(Arc::strong_count(&count), 3);
    drop(request);
    assert_eq!((Arc::strong_count(&count), count.wakes()), (2, 0));
}

#[test]
fn a_forgotten_waiter_keeps_its_place_and_takes_the_permits_with_it() {
    let (semaphore, held) = all_held(1);
    let mut request = semaphore.acquire();
    waits(&mut request);
    mem::forget(request);
    assert_eq!(semaphore.waiters(), 1);
    let mut next = semaphore.acquire();
    waits(&mut next);
    drop(held);
    waits(&mut next);
    assert_eq!((semaphore.waiters(), semaphore.available_permits()), (1, 0));
}

// 13, 14. Edges

#[test]
fn forget_shrinks_the_capacity_by_the_permits_of_the_lease() {
    let semaphore = Semaphore::new(3);
    let mut lease = semaphore.try_acquire_many(3).unwrap();
    lease.split(2).unwrap().forget();
    assert_eq!((semaphore.capacity(), semaphore.ceiling()), (1, 3));
    assert_eq!(lease.num_permits(), 1);
    drop(lease);
    at_rest(&semaphore);
    semaphore.try_acquire_many(0).unwrap().forget();
    assert_eq!(semaphore.capacity(), 1);
}

#[test]
fn forget_admits_nobody() {
    let (semaphore, held) = all_held(1);
    let mut request = semaphore.acquire();
    waits(&mut request);
    held.forget();
    waits(&mut request);
    assert_eq!(semaphore.capacity(), 0);
    semaphore.add_permits(1).unwrap();
    drop(served(&mut request));
    at_rest(&semaphore);
}

#[test]
fn split_takes_permits_out_of_a_lease_and_no_more_than_it_has() {
    let semaphore = Semaphore::new(5);
    let mut lease = semaphore.try_acquire_many(4).unwrap();
    assert!(lease.split(5).is_none());
    assert_eq!(lease.num_permits(), 4);
    let none = lease.split(0).unwrap();
    assert_eq!((none.num_permits(), lease.num_permits()), (0, 4));
    let some = lease.split(1).unwrap();
    assert_eq!((some.num_permits(), lease.num_permits()), (1, 3));
    let all = lease.split(3).unwrap();
    assert_eq!((all.num_permits(), lease.num_permits()), (3, 0));
    assert!(lease.split(1).is_none());
    drop((none, lease));
    assert_eq!(semaphore.available_permits(), 1);
    drop(all);
    assert_eq!(semaphore.available_permits(), 4);
    drop(some);
    at_rest(&semaphore);
}

#[test]
fn merge_puts_two_leases_into_one() {
    let semaphore = Semaphore::new(3);
    let mut one = semaphore.try_acquire().unwrap();
    let two = semaphore.try_acquire_many(2).unwrap();
    one.merge(two).unwrap();
    assert_eq!((one.num_permits(), semaphore.available_permits()), (3, 0));
    one.merge(semaphore.try_acquire_many(0).unwrap()).unwrap();
    drop(one);
    at_rest(&semaphore);
}

#[test]
fn merging_leases_of_two_semaphores_fails_and_changes_neither() {
    let (one, other) = (Semaphore::new(2), Semaphore::new(2));
    let mut lease = one.try_acquire().unwrap();
    let MergeError(back) = lease.merge(other.try_acquire_many(2).unwrap()).unwrap_err();
    assert_eq!((lease.num_permits(), back.num_permits()), (1, 2));
    drop(lease);
    at_rest(&one);
    assert_eq!(other.available_permits(), 0);
    drop(back);
    at_rest(&other);
    let (one, mut held) = all_held(2);
    let (other, more) = all_held(2);
    // The error that is not looked at gives the lease back.
    assert!(held.merge(more).is_err());
    at_rest(&other);
    drop(held);
    at_rest(&one);
}

#[test]
fn merging_the_largest_leases_does_not_overflow() {
    let semaphore = Semaphore::new(MAX_PERMITS);
    let mut lease = semaphore.try_acquire_many(u32::MAX).unwrap();
    for _ in 0..3 {
        lease.merge(semaphore.try_acquire_many(u32::MAX).unwrap()).unwrap();
    }
    assert_eq!(lease.num_permits(), 4 * u32::MAX as usize);
    assert_eq!(semaphore.available_permits(), MAX_PERMITS - 4 * u32::MAX as usize);
    drop(lease);
    at_rest(&semaphore);
}

#[test]
fn a_request_for_none_is_ready_with_an_empty_lease_and_excludes_nobody() {
    let (semaphore, held) = all_held(1);
    let mut first = semaphore.acquire();
    waits(&mut first);
    // Neither an exhausted semaphore nor a queue hold it up.
    assert_eq!(served(&mut semaphore.acquire_many(0)).num_permits(), 0);
    assert_eq!(served(&mut semaphore.acquire_many(0).enqueue()).num_permits(), 0);
    assert_eq!(semaphore.try_acquire_many(0).unwrap().num_permits(), 0);
    assert_eq!(semaphore.waiters(), 1);
    drop(held);
    drop(served(&mut first));
    let empty = semaphore.try_acquire_many(0).unwrap();
    assert_eq!(semaphore.available_permits(), 1);
    drop(semaphore.try_acquire().unwrap());
    drop(empty);
    at_rest(&semaphore);
    semaphore.close();
    assert_eq!(refused(&mut semaphore.acquire_many(0)), AcquireError::Closed);
    assert_eq!(semaphore.try_acquire_many(0).unwrap_err(), TryAcquireError::Closed);
}

#[test]
fn an_empty_lease_does_not_keep_a_semaphore_from_being_drained() {
    let semaphore = Semaphore::new(1);
    let empty = semaphore.try_acquire_many(0).unwrap();
    semaphore.close();
    assert!(poll(&mut semaphore.drained()).is_ready());
    drop(empty);
}

#[test]
fn closed_comes_before_exceeds_capacity_before_queue_full_before_timed_out() {
    let semaphore = Semaphore::builder().permits(1).max_waiters(0).build().unwrap();
    let _held = semaphore.try_acquire().unwrap();
    let timer = Timer::default();
    timer.fire();
    let ask = |n| refused(&mut semaphore.acquire_many(n).with_deadline(timer.clone()));
    let exceeds = AcquireError::ExceedsCapacity { requested: 2, ceiling: 1 };
    assert_eq!(ask(2), exceeds);
    assert_eq!(ask(1), AcquireError::QueueFull);
    assert_eq!(
        semaphore.try_acquire_many(2).unwrap_err(),
        TryAcquireError::ExceedsCapacity { requested: 2, ceiling: 1 }
    );
    semaphore.close();
    assert_eq!(ask(2), AcquireError::Closed);
    assert_eq!(ask(1), AcquireError::Closed);
    assert_eq!(semaphore.try_acquire_many(2).unwrap_err(), TryAcquireError::Closed);
    // A request that is too large is told so in a queue that is not full, too.
    let roomy = Semaphore::builder().permits(1).max_waiters(9).build().unwrap();
    assert_eq!(refused(&mut roomy.acquire_many(2)), exceeds);
}

#[test]
#[should_panic(expected = "polled after it was ready")]
fn a_request_polled_after_it_was_ready_panics() {
    let semaphore = Semaphore::new(1);
    let mut request = semaphore.acquire();
    drop(served(&mut request));
    let _ = poll(&mut request);
}

#[test]
fn every_error_says_what_is_wrong() {
    let exceeds = "5 permits requested from a semaphore that can have 4 at most";
    let acquire = [
        (AcquireError::Closed, "the semaphore is closed"),
        (AcquireError::QueueFull, "the queue of the semaphore is full"),
        (AcquireError::ExceedsCapacity { requested: 5, ceiling: 4 }, exceeds),
        (AcquireError::TimedOut, "the deadline came before the permits"),
    ];
    for (error, text) in acquire {
        assert_eq!(error.to_string(), text);
    }
    let tried = [
        (TryAcquireError::Closed, "the semaphore is closed"),
        (TryAcquireError::NoPermits, "no permits available"),
        (TryAcquireError::ExceedsCapacity { requested: 5, ceiling: 4 }, exceeds),
    ];
    for (error, text) in tried {
        assert_eq!(error.to_string(), text);
    }
    let too_many = format!("7 permits are more than the {MAX_PERMITS} that there can be");
    let build = [
        (
            BuildError::ZeroPermits,
            "a semaphore with a ceiling of zero permits grants nothing; to start with none, give it a higher ceiling",
        ),
        (BuildError::TooManyPermits { permits: 7 }, too_many.as_str()),
        (
            BuildError::AboveCeiling { permits: 7, ceiling: 6 },
            "7 permits are more than the ceiling of 6",
        ),
        (
            BuildError::TooManyWaiters { waiters: 7 },
            "a queue of 7 requests is more than a semaphore can hold",
        ),
    ];
    for (error, text) in build {
        assert_eq!(error.to_string(), text);
    }
    assert_eq!(
        CeilingError { permits: 7, ceiling: 6 }.to_string(),
        "7 permits would be more than the ceiling of 6"
    );
    assert_eq!(MergeError(()).to_string(), "the leases are of different semaphores");
    assert_eq!(format!("{:?}", MergeError(())), "MergeError");
}

#[test]
fn debug_shows_the_figures_and_the_phase() {
    let semaphore = Arc::new(Semaphore::new(2));
    let lease = semaphore.try_acquire().unwrap();
    let owned = semaphore.clone().try_acquire_owned().unwrap();
    assert_eq!(format!("{lease:?}"), "Lease { permits: 1, .. }");
    assert_eq!(format!("{owned:?}"), "OwnedLease { permits: 1, .. }");
    let mut request = semaphore.acquire();
    assert_eq!(format!("{request:?}"), "Acquire { phase: \"not polled yet\", .. }");
    waits(&mut request);
    assert_eq!(format!("{request:?}"), "Acquire { phase: \"queued\", .. }");
    assert_eq!(
        format!("{semaphore:?}"),
        "Semaphore { capacity: 2, available: 0, waiters: 1, closed: false, .. }"
    );
    drop(owned);
    drop(served(&mut request));
    assert_eq!(format!("{request:?}"), "Acquire { phase: \"done\", .. }");
    let taken = semaphore.clone().acquire_owned().enqueue();
    assert_eq!(format!("{taken:?}"), "AcquireOwned { phase: \"permits taken\", .. }");
    drop(taken);
    semaphore.close();
    let over = semaphore.acquire().enqueue();
    assert_eq!(format!("{over:?}"), "Acquire { phase: \"refused\", .. }");
    assert_eq!(
        format!("{semaphore:?}"),
        "Semaphore { capacity: 2, available: 1, waiters: 0, closed: true, .. }"
    );
    assert_eq!(format!("{:?}", semaphore.drained()), "Drained { .. }");
    let timed = format!("{:?}", semaphore.acquire().with_deadline(std::future::ready(())));
    assert!(timed.contains("not polled yet"), "{timed}");
}

// The observer.

/// Writes down what it is told.
#[derive(Default)]
struct Log(Mutex<Vec<&'static str>>);

impl Log {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }
}

impl Observer for Log {
    type Stamp = u32;

    fn queued(&self) -> u32 {
        self.note("queued");
        7
    }
    fn granted(&self, since: u32) {
        assert_eq!(since, 7);
        self.note("granted");
    }
    fn cancelled(&self, since: u32) {
        assert_eq!(since, 7);
        self.note("cancelled");
    }
    fn timed_out(&self, since: u32) {
        assert_eq!(since, 7);
        self.note("timed out");
    }
    fn closed(&self, since: u32) {
        assert_eq!(since, 7);
        self.note("closed");
    }
    fn refused(&self, why: &AcquireError) {
        self.note(match why {
            AcquireError::Closed => "refused: closed",
            AcquireError::QueueFull => "refused: full",
            AcquireError::ExceedsCapacity { .. } => "refused: too large",
            AcquireError::TimedOut => "refused: timed out",
        });
    }
}

#[test]
fn an_observer_is_told_of_every_request_that_waited_or_was_refused_and_of_no_other() {
    let semaphore =
        Semaphore::builder().permits(1).max_waiters(1).observer(Log::default()).build().unwrap();
    let told = || mem::take(&mut *semaphore.observer().0.lock().unwrap());
    let held = served(&mut semaphore.acquire());
    assert!(told().is_empty());
    let mut request = semaphore.acquire();
    waits(&mut request);
    assert_eq!(told(), ["queued"]);
    assert_eq!(refused(&mut semaphore.acquire()), AcquireError::QueueFull);
    assert!(poll(&mut semaphore.acquire_many(2)).is_ready());
    assert_eq!(told(), ["refused: full", "refused: too large"]);
    drop(held);
    assert!(told().is_empty());
    let held = served(&mut request);
    assert_eq!(told(), ["granted"]);
    drop(semaphore.acquire().enqueue());
    assert_eq!(told(), ["queued", "cancelled"]);
    let timer = Timer::default();
    timer.fire();
    assert_eq!(refused(&mut semaphore.acquire().with_deadline(timer)), AcquireError::TimedOut);
    assert_eq!(told(), ["queued", "timed out"]);
    let mut request = semaphore.acquire().enqueue();
    semaphore.close();
    assert_eq!(refused(&mut request), AcquireError::Closed);
    assert_eq!(refused(&mut semaphore.acquire()), AcquireError::Closed);
    assert_eq!(told(), ["queued", "closed", "refused: closed"]);
    drop(held);
}

/// Panics at the call of that name.
struct Panics(&'static str);

impl Panics {
    fn at(&self, place: &'static str) {
        assert_ne!(self.0, place, "the observer fails");
    }
}

impl Observer for Panics {
    type Stamp = ();

    fn queued(&self) {
        self.at("queued");
    }
    fn granted(&self, (): ()) {
        self.at("granted");
    }
    fn cancelled(&self, (): ()) {
        self.at("cancelled");
    }
    fn timed_out(&self, (): ()) {
        self.at("timed out");
    }
    fn closed(&self, (): ()) {
        self.at("closed");
    }
    fn refused(&self, _: &AcquireError) {
        self.at("refused");
    }
}

/// Runs `trouble` with a semaphore of two permits, one of them held, whose observer panics there.
#[track_caller]
fn observer_panics_at(place: &'static str, trouble: fn(&Semaphore<Panics>, Lease<'_, Panics>)) {
    let semaphore =
        Semaphore::builder().permits(2).max_waiters(4).observer(Panics(place)).build().unwrap();
    let held = semaphore.try_acquire_many(2).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| trouble(&semaphore, held)));
    assert!(panicked.is_err(), "it ran");
    assert_eq!(semaphore.waiters(), 0, "at {place}");
    assert_eq!(semaphore.available_permits(), 2, "at {place}");
}

#[test]
fn an_observer_that_panics_at_queued_leaves_nobody_in_the_queue() {
    observer_panics_at("queued", |semaphore, _held| {
        let _ = poll(&mut semaphore.acquire());
    });
    observer_panics_at("queued", |semaphore, _held| drop(semaphore.acquire().enqueue()));
}

#[test]
fn an_observer_that_panics_elsewhere_loses_no_permit() {
    observer_panics_at("granted", |semaphore, held| {
        let mut request = semaphore.acquire();
        waits(&mut request);
        drop(held);
        let _ = poll(&mut request);
    });
    observer_panics_at("cancelled", |semaphore, _held| drop(semaphore.acquire().enqueue()));
    observer_panics_at("cancelled", |semaphore, held| {
        let granted = semaphore.acquire().enqueue();
        drop(held);
        drop(granted);
    });
    observer_panics_at("timed out", |semaphore, _held| {
        let timer = std::future::ready(());
        let _ = poll(&mut semaphore.acquire().with_deadline(timer));
    });
    observer_panics_at("closed", |semaphore, _held| {
        let mut request = semaphore.acquire().enqueue();
        semaphore.close();
        let _ = poll(&mut request);
    });
    observer_panics_at("refused", |semaphore, _held| drop(semaphore.acquire_many(3).enqueue()));
}

// Types.

static STATIC: Semaphore = Semaphore::new(3);
static GROWABLE: Semaphore = Semaphore::growable(0);
const TRIED: Result<Semaphore, BuildError> = Semaphore::try_new(0);

#[test]
fn a_semaphore_may_be_a_static() {
    let lease: Lease<'static> = STATIC.try_acquire().unwrap();
    let lease = std::thread::spawn(move || lease).join().unwrap();
    drop(lease);
    GROWABLE.add_permits(1).unwrap();
    drop(served(&mut GROWABLE.acquire()));
    at_rest(&STATIC);
    at_rest(&GROWABLE);
    assert!(matches!(TRIED, Err(BuildError::ZeroPermits)));
}

const fn free<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}
const fn error<T: std::error::Error + Send + Sync + Clone + 'static>() {}

const _: () = {
    type Deadline<R> = WithDeadline<R, std::future::Ready<()>>;
    free::<Semaphore>();
    free::<Lease<'_>>();
    free::<OwnedLease>();
    free::<Acquire<'_>>();
    free::<AcquireOwned>();
    free::<Deadline<Acquire<'_>>>();
    free::<Deadline<AcquireOwned>>();
    free::<Drained<'_>>();
    free::<Builder>();
    free::<Snapshot>();
    error::<AcquireError>();
    error::<TryAcquireError>();
    error::<BuildError>();
    error::<CeilingError>();
    free::<MergeError<OwnedLease>>();
};

#[cfg(target_pointer_width = "64")]
#[test]
fn sizes_are_as_documented() {
    assert_eq!(size_of::<Acquire<'_>>(), 24);
    assert_eq!(size_of::<AcquireOwned>(), 24);
    assert_eq!(size_of::<Lease<'_>>(), 16);
    assert_eq!(size_of::<Option<Lease<'_>>>(), 16);
    assert_eq!(size_of::<OwnedLease>(), 16);
    assert_eq!(size_of::<Result<OwnedLease, TryAcquireError>>(), 24);
    assert_eq!(size_of::<Drained<'_>>(), 24);
    // Two lines of the algorithm and 31 chunk pointers. No boxes before somebody waits.
    assert!(size_of::<Semaphore>() <= 6 * 64, "{}", size_of::<Semaphore>());
}
