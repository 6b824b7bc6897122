//! No ghosts (SPEC.md 8) and no allocation while waiting (SPEC.md 10), by an allocator that counts.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use common::counting_alloc::{CountingAlloc, Heap};
use common::{Count, Timer, at_rest, poll, poll_with, refused, served, waits};
use semaphore_core::{Acquire, AcquireError, Semaphore};

#[global_allocator]
static HEAP: CountingAlloc = CountingAlloc;

const MILLION: usize = 1_000_000;

/// One permit, held; a live waiter at the head and, in a storm, always one at the tail.
fn storm(cancel: fn(&Semaphore, usize)) {
    let semaphore = Semaphore::new(1);
    let held = semaphore.try_acquire().unwrap();
    let (woken, waker) = Count::waker();
    let mut head = semaphore.acquire();
    assert!(poll_with(&mut head, &waker).is_pending());

    // The slots for as many as are ever in the queue at once.
    cancel(&semaphore, 1000);
    let before = Heap::now();
    cancel(&semaphore, MILLION);
    assert_eq!(Heap::since(before), Heap::UNTOUCHED);
    assert_eq!(semaphore.waiters(), 1);

    let mut tail = semaphore.acquire();
    assert!(poll_with(&mut tail, &waker).is_pending());
    assert_eq!(semaphore.waiters(), 2);
    drop(held);
    assert_eq!(woken.wakes(), 1);
    drop(served(&mut head));
    assert_eq!(woken.wakes(), 2);
    drop(served(&mut tail));
    assert_eq!(Heap::since(before), Heap::UNTOUCHED);
    at_rest(&semaphore);
}

#[test]
fn a_million_cancellations_from_the_tail_behind_a_live_head_leave_memory_flat() {
    storm(|semaphore, times| {
        for _ in 0..times {
            let mut request = semaphore.acquire();
            waits(&mut request);
        }
    });
}

#[test]
fn a_million_cancellations_from_the_middle_between_a_live_head_and_a_live_tail_leave_memory_flat() {
    storm(|semaphore, times| {
        let mut tail = semaphore.acquire();
        waits(&mut tail);
        for i in 0..times {
            // The new tail comes before the old one goes, which is in the middle then.
            let mut newer = semaphore.acquire();
            waits(&mut newer);
            drop(mem::replace(&mut tail, newer));
            if i % 1000 == 0 {
                assert_eq!(semaphore.waiters(), 2);
            }
        }
    });
}

#[test]
fn a_million_deadlines_between_a_live_head_and_a_live_tail_leave_memory_flat() {
    storm(|semaphore, times| {
        let mut tail = semaphore.acquire();
        waits(&mut tail);
        for i in 0..times {
            let timer = std::future::ready(());
            let request = semaphore.acquire().enqueue();
            if i % 2 == 0 {
                tail = semaphore.acquire();
                waits(&mut tail);
            }
            let mut request = request.with_deadline(timer);
            assert_eq!(refused(&mut request), AcquireError::TimedOut);
        }
    });
}

#[test]
fn a_million_waiters_at_once_cancelled_in_every_order_leave_the_two_at_the_ends() {
    type Order = fn(usize) -> usize;
    // Odd, and no divisor of what it steps through.
    const STRIDE: usize = 387_413;
    let semaphore = Semaphore::new(1);
    let mut held = Some(semaphore.try_acquire().unwrap());
    let orders: [(&str, Order); 3] = [
        ("oldest first", |i| i),
        ("newest first", |i| MILLION - 1 - i),
        ("all over", |i| i * STRIDE % MILLION),
    ];
    let mut middle: Vec<Option<Acquire<'_>>> = (0..MILLION).map(|_| None).collect();
    let mut took = Vec::with_capacity(orders.len());
    let mut warm: Option<Heap> = None;
    for (order, at) in orders {
        let mut head = semaphore.acquire();
        waits(&mut head);
        for place in &mut middle {
            waits(place.insert(semaphore.acquire()));
        }
        let mut tail = semaphore.acquire();
        waits(&mut tail);
        assert_eq!(semaphore.waiters(), MILLION + 2);
        // The second and third time round the slots are there.
        let before = *warm.get_or_insert_with(Heap::now);
        let begun = Instant::now();
        for i in 0..MILLION {
            middle[at(i)] = None;
        }
        let each = begun.elapsed().as_nanos() / MILLION as u128;
        took.push((order, each));
        assert_eq!(semaphore.waiters(), 2);
        drop(held.take());
        drop(served(&mut head));
        held = Some(served(&mut tail));
        assert_eq!(Heap::since(before), Heap::UNTOUCHED, "{order}");
    }
    drop(held);
    for (order, each) in took {
        println!("{order}: {each} ns for a cancellation among a million");
    }
    at_rest(&semaphore);
}

#[test]
fn a_bounded_queue_counts_exactly_through_a_million_cancellations() {
    let semaphore = Semaphore::builder().permits(1).max_waiters(3).build().unwrap();
    let before = Heap::now();
    let held = semaphore.try_acquire().unwrap();
    let mut head = semaphore.acquire();
    let mut tail = semaphore.acquire();
    waits(&mut head);
    waits(&mut tail);
    for i in 0..MILLION {
        let mut newer = semaphore.acquire();
        waits(&mut newer);
        if i % 10_000 == 0 {
            assert_eq!(refused(&mut semaphore.acquire()), AcquireError::QueueFull);
        }
        tail = newer;
        assert_eq!(semaphore.waiters(), 2);
    }
    drop(held);
    drop(served(&mut head));
    drop(served(&mut tail));
    assert_eq!(Heap::since(before), Heap::UNTOUCHED);
    at_rest(&semaphore);
}

/// The shortest of many hand-overs from a lease to the one waiter, in nanoseconds, and their median.
fn hand_over(semaphore: &Semaphore, before: impl Fn()) -> (Duration, Duration) {
    const TIMES: usize = 2001;
    let mut times: Vec<_> = (0..TIMES)
        .map(|_| {
            let held = semaphore.try_acquire().unwrap();
            let mut head = semaphore.acquire();
            waits(&mut head);
            before();
            let mut tail = semaphore.acquire();
            waits(&mut tail);
            let begun = Instant::now();
            drop(held);
            let took = begun.elapsed();
            drop(served(&mut head));
            drop(served(&mut tail));
            took
        })
        .collect();
    times.sort_unstable();
    (times[0], times[TIMES / 2])
}

#[test]
fn the_release_after_a_storm_is_printed_against_the_one_before() {
    // Printed, not asserted: that the queue is as short as before is what is asserted above.
    let semaphore = Semaphore::new(1);
    // The same work elsewhere in calm, so that the caches are as they are in the storm.
    let elsewhere = Semaphore::new(1);
    let _held = elsewhere.try_acquire().unwrap();
    let cancel_500 = |semaphore: &Semaphore| {
        for _ in 0..250 {
            let older = semaphore.acquire().enqueue();
            let newer = semaphore.acquire().enqueue();
            drop(older);
            drop(newer);
        }
    };
    let calm = hand_over(&semaphore, || cancel_500(&elsewhere));
    let stormy = hand_over(&semaphore, || cancel_500(&semaphore));
    println!(
        "release, median of 2001: {:?} in calm, {:?} after 500 cancellations each (a million in all): ratio {:.2}",
        calm.1,
        stormy.1,
        stormy.1.as_secs_f64() / calm.1.as_secs_f64()
    );
    at_rest(&semaphore);
}

#[test]
fn the_fast_paths_and_an_unpolled_request_allocate_nothing() {
    let semaphore = Semaphore::new(4);
    let shared = Arc::new(Semaphore::new(4));
    let before = Heap::now();
    for _ in 0..100 {
        drop(semaphore.try_acquire_many(4).unwrap());
        drop(served(&mut semaphore.acquire_many(2)));
        drop(served(&mut semaphore.acquire().with_deadline(std::future::ready(()))));
        let mut lease = served(&mut shared.clone().acquire_many_owned(3));
        let part = lease.split(1).unwrap();
        lease.merge(part).unwrap();
        drop(semaphore.acquire());
        assert!(semaphore.acquire_many(5).now_fails());
    }
    semaphore.close();
    assert!(poll(&mut semaphore.drained()).is_ready());
    assert_eq!(Heap::since(before), Heap::UNTOUCHED);
}

trait NowFails {
    fn now_fails(self) -> bool;
}

impl NowFails for Acquire<'_> {
    fn now_fails(mut self) -> bool {
        matches!(poll(&mut self), std::task::Poll::Ready(Err(_)))
    }
}

/// Waits in all ways, with `len` in the queue at a time.
fn wait_in_all_ways<'a>(semaphore: &'a Semaphore, len: usize, futures: &mut Vec<Acquire<'a>>) {
    let (first, second) = (Count::waker().1, Count::waker().1);
    let before = Heap::now();
    let all = u32::try_from(semaphore.capacity()).unwrap();
    for round in 0..20 {
        let mut held = semaphore.try_acquire_many(all).unwrap();
        for i in 0..len {
            let mut request = semaphore.acquire();
            if i % 3 == 0 {
                request = request.enqueue();
            }
            if i % 3 != 1 {
                assert!(poll_with(&mut request, &first).is_pending());
            }
            assert!(poll_with(&mut request, &second).is_pending());
            futures.push(request);
        }
        assert_eq!(semaphore.waiters(), len);
        match round % 4 {
            // All granted at once, polled afterwards.
            0 => {
                drop(held);
                while let Some(mut request) = futures.pop() {
                    drop(served(&mut request));
                }
            }
            // All granted, one by one; dropped unpolled.
            1 => {
                while held.num_permits() > 0 {
                    drop(held.split(1));
                }
                futures.clear();
            }
            // Cancelled, oldest first and newest first.
            2 => futures.drain(..).for_each(drop),
            _ => while futures.pop().is_some() {},
        }
        assert_eq!(semaphore.waiters(), 0);
    }
    assert_eq!(Heap::since(before), Heap::UNTOUCHED);
    at_rest(semaphore);
}

#[test]
fn no_wait_allocates_once_the_pool_is_warm() {
    const LEN: usize = 1000;
    let semaphore = Semaphore::new(LEN);
    let mut futures = Vec::with_capacity(LEN);
    let held = semaphore.try_acquire_many(LEN as u32).unwrap();
    let cold = Heap::now();
    // As many as will wait, and the few that are granted and not yet cut out of the queue.
    futures.extend((0..LEN + 64).map(|_| semaphore.acquire().enqueue()));
    assert!(Heap::since(cold).calls > 0, "the counter counts");
    futures.clear();
    futures.shrink_to(LEN);
    drop(held);
    wait_in_all_ways(&semaphore, LEN, &mut futures);
}

#[test]
fn nothing_allocates_after_build_with_a_bounded_queue() {
    for len in [1, 2, 7, 8, 9, 31, 32, 33, 56, 57, 100, 1000, 4096] {
        let semaphore = Semaphore::builder().permits(len).max_waiters(len).build().unwrap();
        wait_in_all_ways(&semaphore, len, &mut Vec::with_capacity(len));
    }
}

/// So many more join, each polled with both wakers; and then the queue is full.
fn fill<'a>(
    semaphore: &'a Semaphore,
    len: usize,
    wakers: [&Waker; 2],
    futures: &mut Vec<Acquire<'a>>,
) {
    for _ in 0..len {
        let mut request = semaphore.acquire();
        for waker in wakers {
            assert!(poll_with(&mut request, waker).is_pending());
        }
        futures.push(request);
    }
    assert_eq!(refused(&mut semaphore.acquire()), AcquireError::QueueFull);
}

#[test]
fn nothing_allocates_with_the_queue_full_and_as_many_granted_and_untaken() {
    const LEN: usize = 500;
    let semaphore = Semaphore::builder().permits(LEN).max_waiters(LEN).build().unwrap();
    let mut waiting: Vec<Acquire<'_>> = Vec::with_capacity(LEN);
    let mut untaken: Vec<Acquire<'_>> = Vec::with_capacity(LEN);
    let (first, second) = (Count::waker().1, Count::waker().1);
    let before = Heap::now();
    let held = semaphore.try_acquire_many(LEN as u32).unwrap();
    fill(&semaphore, LEN, [&first, &second], &mut untaken);
    drop(held);
    // All of these are granted and not polled; a full queue of others comes behind them.
    fill(&semaphore, LEN, [&first, &second], &mut waiting);
    for _ in 0..10 {
        untaken.clear();
        std::mem::swap(&mut untaken, &mut waiting);
        fill(&semaphore, LEN, [&first, &second], &mut waiting);
    }
    assert_eq!(semaphore.waiters(), LEN);
    // And all are ended.
    semaphore.close();
    for mut request in waiting.drain(..) {
        assert_eq!(refused(&mut request), AcquireError::Closed);
    }
    for mut request in untaken.drain(..) {
        drop(served(&mut request));
    }
    assert_eq!(Heap::since(before).calls, 0);
    at_rest(&semaphore);
}

#[test]
fn a_released_batch_and_a_close_of_any_size_allocate_nothing() {
    for len in [1, 16, 17, 18, 1000, 20_000] {
        for close in [false, true] {
            let semaphore = Semaphore::new(len);
            let held = semaphore.try_acquire_many(len as u32).unwrap();
            let waker = Count::waker().1;
            let mut requests: Vec<_> = (0..len).map(|_| semaphore.acquire()).collect();
            for request in &mut requests {
                assert!(poll_with(request, &waker).is_pending());
            }
            let before = Heap::now();
            if close {
                semaphore.close();
                drop(held);
            } else {
                drop(held);
            }
            assert_eq!(Heap::since(before), Heap::UNTOUCHED);
            drop(requests);
            at_rest(&semaphore);
        }
    }
}

#[test]
fn a_dropped_semaphore_gives_all_its_memory_back() {
    let before = Heap::now();
    for len in [0, 1, 8, 9, 1000, 10_000] {
        let semaphore = Semaphore::new(1);
        let held = semaphore.try_acquire().unwrap();
        let requests: Vec<_> = (0..len).map(|_| semaphore.acquire().enqueue()).collect();
        let timer = Timer::default();
        let mut timed = semaphore.acquire().with_deadline(timer);
        waits(&mut timed);
        drop((held, requests, timed));
        at_rest(&semaphore);
        drop(Semaphore::builder().permits(1).max_waiters(len).build().unwrap());
    }
    assert_eq!(Heap::since(before).bytes, 0);
}
