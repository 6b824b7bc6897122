//! Resizing (SPEC.md 13): growing in order, shrinking into debt, and changing again while in debt.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::thread;

use common::{Count, at_rest, poll, poll_with, served, waits};
use semaphore_core::{Semaphore, TryAcquireError};

/// N, free, debt, waiters.
#[track_caller]
fn figures(semaphore: &Semaphore, expected: (usize, usize, usize, usize)) {
    let now = semaphore.snapshot();
    assert_eq!((now.capacity, now.available, now.debt, now.waiters), expected, "{now:?}");
}

#[test]
fn growing_serves_those_who_wait_in_order() {
    let semaphore = Semaphore::builder().permits(1).ceiling(10).build().unwrap();
    let held = semaphore.try_acquire().unwrap();
    let (mut first, mut second, mut third) =
        (semaphore.acquire_many(2), semaphore.acquire(), semaphore.acquire());
    let (woken, waker) = Count::waker();
    assert!(poll_with(&mut first, &waker).is_pending());
    assert!(poll_with(&mut second, &waker).is_pending());
    assert!(poll_with(&mut third, &waker).is_pending());
    semaphore.set_capacity(2).unwrap();
    figures(&semaphore, (2, 0, 0, 3));
    assert_eq!(woken.wakes(), 0);
    semaphore.set_capacity(4).unwrap();
    assert_eq!(woken.wakes(), 2);
    let first = served(&mut first);
    let second = served(&mut second);
    waits(&mut third);
    drop((first, second, held));
    drop(served(&mut third));
    figures(&semaphore, (4, 4, 0, 0));
}

#[test]
fn shrinking_takes_the_free_ones_first() {
    let semaphore = Semaphore::new(8);
    let held = semaphore.try_acquire_many(3).unwrap();
    semaphore.set_capacity(5).unwrap();
    figures(&semaphore, (5, 2, 0, 0));
    semaphore.set_capacity(3).unwrap();
    figures(&semaphore, (3, 0, 0, 0));
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    drop(held);
    at_rest(&semaphore);
    figures(&semaphore, (3, 3, 0, 0));
}

#[test]
fn a_debt_is_paid_by_what_comes_back_and_before_any_waiter() {
    let semaphore = Semaphore::new(4);
    let mut held = semaphore.try_acquire_many(4).unwrap();
    let mut waiting = semaphore.acquire();
    waits(&mut waiting);
    semaphore.set_capacity(2).unwrap();
    figures(&semaphore, (2, 0, 2, 1));
    drop(held.split(1));
    figures(&semaphore, (2, 0, 1, 1));
    drop(held.split(1));
    figures(&semaphore, (2, 0, 0, 1));
    waits(&mut waiting);
    drop(held.split(1));
    let lease = served(&mut waiting);
    figures(&semaphore, (2, 0, 0, 0));
    drop((held, lease));
    at_rest(&semaphore);
}

#[test]
fn one_release_pays_and_serves_with_what_is_left() {
    let semaphore = Semaphore::new(4);
    let held = semaphore.try_acquire_many(4).unwrap();
    let mut waiting = semaphore.acquire();
    waits(&mut waiting);
    semaphore.set_capacity(2).unwrap();
    drop(held);
    drop(served(&mut waiting));
    figures(&semaphore, (2, 2, 0, 0));
}

#[test]
fn in_debt_nothing_is_to_be_had_and_a_newcomer_joins() {
    let semaphore = Semaphore::new(2);
    let mut held = semaphore.try_acquire_many(2).unwrap();
    semaphore.set_capacity(1).unwrap();
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    let mut waiting = semaphore.acquire();
    waits(&mut waiting);
    drop(held.split(1));
    waits(&mut waiting);
    drop(held);
    drop(served(&mut waiting));
    figures(&semaphore, (1, 1, 0, 0));
}

#[test]
fn shrinking_below_held_and_growing_again_admits_only_the_real_spare() {
    let semaphore = Semaphore::builder().permits(4).ceiling(8).build().unwrap();
    let held = semaphore.try_acquire_many(4).unwrap();
    semaphore.set_capacity(1).unwrap();
    figures(&semaphore, (1, 0, 3, 0));
    semaphore.set_capacity(3).unwrap();
    figures(&semaphore, (3, 0, 1, 0));
    semaphore.set_capacity(5).unwrap();
    figures(&semaphore, (5, 1, 0, 0));
    assert_eq!(semaphore.try_acquire_many(2).unwrap_err(), TryAcquireError::NoPermits);
    drop(semaphore.try_acquire().unwrap());
    drop(held);
    figures(&semaphore, (5, 5, 0, 0));
}

#[test]
fn a_debt_that_grows_and_falls_while_it_is_owed() {
    let semaphore = Semaphore::new(6);
    let mut held = semaphore.try_acquire_many(6).unwrap();
    semaphore.set_capacity(4).unwrap();
    semaphore.set_capacity(1).unwrap();
    figures(&semaphore, (1, 0, 5, 0));
    drop(held.split(2));
    figures(&semaphore, (1, 0, 3, 0));
    semaphore.set_capacity(3).unwrap();
    figures(&semaphore, (3, 0, 1, 0));
    drop(held.split(2));
    figures(&semaphore, (3, 1, 0, 0));
    drop(held);
    figures(&semaphore, (3, 3, 0, 0));
}

#[test]
fn a_head_keeps_its_part_through_a_shrink_and_waits_for_growth_if_it_asks_for_more() {
    let semaphore = Semaphore::new(5);
    let mut held = semaphore.try_acquire_many(3).unwrap();
    let mut head = semaphore.acquire_many(4);
    waits(&mut head);
    let mut next = semaphore.acquire();
    waits(&mut next);
    // Two are reserved for the head.
    semaphore.set_capacity(3).unwrap();
    figures(&semaphore, (3, 0, 2, 2));
    drop(held.split(2));
    figures(&semaphore, (3, 0, 0, 2));
    drop(held);
    // All three are the head's, and it wants four.
    figures(&semaphore, (3, 0, 0, 2));
    waits(&mut head);
    waits(&mut next);
    semaphore.set_capacity(4).unwrap();
    drop(served(&mut head));
    drop(served(&mut next));
    figures(&semaphore, (4, 4, 0, 0));
}

#[test]
fn a_head_that_leaves_pays_the_debt_with_its_part() {
    let semaphore = Semaphore::new(3);
    let held = semaphore.try_acquire().unwrap();
    let mut head = semaphore.acquire_many(3);
    waits(&mut head);
    let mut next = semaphore.acquire();
    waits(&mut next);
    semaphore.set_capacity(1).unwrap();
    figures(&semaphore, (1, 0, 2, 2));
    drop(head);
    figures(&semaphore, (1, 0, 0, 1));
    waits(&mut next);
    drop(held);
    drop(served(&mut next));
    figures(&semaphore, (1, 1, 0, 0));
}

#[test]
fn a_cancelled_waiter_in_debt_leaves_the_debt() {
    let semaphore = Semaphore::new(2);
    let mut held = semaphore.try_acquire_many(2).unwrap();
    semaphore.set_capacity(1).unwrap();
    let mut waiting = semaphore.acquire();
    waits(&mut waiting);
    drop(waiting);
    figures(&semaphore, (1, 0, 1, 0));
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    drop(held.split(1));
    figures(&semaphore, (1, 0, 0, 0));
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn down_to_nothing_and_up_again() {
    let semaphore = Semaphore::new(2);
    semaphore.set_capacity(0).unwrap();
    figures(&semaphore, (0, 0, 0, 0));
    let mut waiting = semaphore.acquire();
    waits(&mut waiting);
    semaphore.set_capacity(1).unwrap();
    let lease = served(&mut waiting);
    semaphore.set_capacity(0).unwrap();
    figures(&semaphore, (0, 0, 1, 0));
    drop(lease);
    figures(&semaphore, (0, 0, 0, 0));
    semaphore.set_capacity(2).unwrap();
    at_rest(&semaphore);
}

#[test]
fn none_are_to_be_had_at_once_by_those_who_want_none() {
    let semaphore = Semaphore::new(1);
    let held = semaphore.try_acquire().unwrap();
    semaphore.set_capacity(0).unwrap();
    assert_eq!(semaphore.try_acquire_many(0).unwrap().num_permits(), 0);
    assert_eq!(served(&mut semaphore.acquire_many(0)).num_permits(), 0);
    drop(held);
}

#[test]
fn over_the_ceiling_is_an_error_that_changes_nothing() {
    let semaphore = Semaphore::builder().permits(2).ceiling(3).build().unwrap();
    let error = semaphore.set_capacity(4).unwrap_err();
    assert_eq!((error.permits, error.ceiling), (4, 3));
    assert_eq!(error.to_string(), "4 permits would be more than the ceiling of 3");
    assert!(semaphore.set_capacity(usize::MAX).is_err());
    assert!(semaphore.add_permits(usize::MAX).is_err());
    figures(&semaphore, (2, 2, 0, 0));
}

#[test]
fn forget_permits_takes_free_ones_alone() {
    let semaphore = Semaphore::new(5);
    let held = semaphore.try_acquire_many(2).unwrap();
    assert_eq!(semaphore.forget_permits(2), 2);
    figures(&semaphore, (3, 1, 0, 0));
    assert_eq!(semaphore.forget_permits(9), 1);
    assert_eq!(semaphore.forget_permits(1), 0);
    figures(&semaphore, (2, 0, 0, 0));
    drop(held);
    let mut held = semaphore.try_acquire_many(2).unwrap();
    semaphore.set_capacity(1).unwrap();
    assert_eq!(semaphore.forget_permits(1), 0, "in debt nothing is free");
    drop(held.split(1));
    drop(held);
    figures(&semaphore, (1, 1, 0, 0));
}

#[test]
fn a_lease_forgotten_in_debt_lowers_both() {
    let semaphore = Semaphore::new(4);
    let mut held = semaphore.try_acquire_many(4).unwrap();
    semaphore.set_capacity(3).unwrap();
    held.split(1).unwrap().forget();
    figures(&semaphore, (2, 0, 1, 0));
    held.split(1).unwrap().forget();
    figures(&semaphore, (1, 0, 1, 0));
    held.split(2).unwrap().forget();
    figures(&semaphore, (0, 0, 0, 0));
    semaphore.set_capacity(4).unwrap();
    at_rest(&semaphore);
}

#[test]
fn a_closed_semaphore_can_be_resized_and_drains_when_the_debt_is_paid() {
    let semaphore = Semaphore::new(3);
    let mut held = semaphore.try_acquire_many(3).unwrap();
    let mut drained = Box::pin(semaphore.drained());
    let (woken, waker) = Count::waker();
    assert!(poll_with(&mut drained, &waker).is_pending());
    semaphore.set_capacity(1).unwrap();
    semaphore.close();
    drop(held.split(2));
    figures(&semaphore, (1, 0, 0, 0));
    assert_eq!(woken.wakes(), 0);
    drop(held);
    assert_eq!(woken.wakes(), 1);
    assert!(poll(&mut drained).is_ready());
}

#[test]
fn shrinking_a_closed_one_to_what_is_back_does_not_drain_it() {
    let semaphore = Semaphore::new(2);
    let held = semaphore.try_acquire().unwrap();
    semaphore.close();
    let mut drained = Box::pin(semaphore.drained());
    assert!(poll(&mut drained).is_pending());
    semaphore.set_capacity(0).unwrap();
    figures(&semaphore, (0, 0, 1, 0));
    assert!(poll(&mut drained).is_pending());
    drop(held);
    assert!(poll(&mut drained).is_ready());
}

/// Threads that take and give, and one that resizes all the while: never more at work than
/// the largest N, and at the end as many as the last N.
#[test]
fn threads_under_a_changing_capacity_keep_every_count() {
    const CEILING: usize = 6;
    let semaphore = Arc::new(Semaphore::builder().permits(3).ceiling(CEILING).build().unwrap());
    let at_work = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..6_u64)
            .map(|seed| {
                let (semaphore, at_work) = (&semaphore, &at_work);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    for _ in 0..20_000 {
                        let want = random.u32(1..=2);
                        let mut request = semaphore.acquire_many(want);
                        let mut result = poll(&mut request);
                        if result.is_pending() && random.bool() {
                            // Given up; what it has in part, or in full, goes on to the next.
                            continue;
                        }
                        while result.is_pending() {
                            thread::yield_now();
                            result = poll(&mut request);
                        }
                        let Poll::Ready(lease) = result else { unreachable!() };
                        let lease = lease.unwrap();
                        let now = at_work.fetch_add(want as usize, SeqCst) + want as usize;
                        assert!(now <= CEILING, "{now} at work");
                        at_work.fetch_sub(want as usize, SeqCst);
                        drop(lease);
                    }
                })
            })
            .collect();
        let mut random = fastrand::Rng::with_seed(99);
        while workers.iter().any(|worker| !worker.is_finished()) {
            match random.u32(0..4) {
                0 => _ = semaphore.add_permits(1),
                1 => _ = semaphore.forget_permits(1),
                _ => semaphore.set_capacity(random.usize(0..=CEILING)).unwrap(),
            }
            thread::yield_now();
            semaphore.set_capacity(random.usize(2..=CEILING)).unwrap();
        }
    });
    semaphore.set_capacity(5).unwrap();
    figures(&semaphore, (5, 5, 0, 0));
}
