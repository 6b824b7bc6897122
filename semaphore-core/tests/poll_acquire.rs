//! `PollAcquire`: one request after the other, by hand.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use common::{Count, at_rest};
use semaphore_core::{AcquireError, OwnedLease, PollAcquire, Semaphore};

fn ask(handle: &mut PollAcquire, n: u32) -> Poll<Result<OwnedLease, AcquireError>> {
    handle.poll_acquire_many(&mut Context::from_waker(Waker::noop()), n)
}

fn leased(handle: &mut PollAcquire, n: u32) -> OwnedLease {
    match ask(handle, n) {
        Poll::Ready(Ok(lease)) => lease,
        other => panic!("a lease was due: {other:?}"),
    }
}

fn handle(permits: usize) -> (Arc<Semaphore>, PollAcquire) {
    let semaphore = Arc::new(Semaphore::new(permits));
    (semaphore.clone(), PollAcquire::new(semaphore))
}

#[test]
fn it_is_used_again_and_again() {
    let (semaphore, mut handle) = handle(2);
    for _ in 0..3 {
        let (one, other) = (leased(&mut handle, 1), leased(&mut handle, 1));
        assert!(ask(&mut handle, 1).is_pending() && handle.is_waiting());
        assert!(ask(&mut handle, 1).is_pending());
        assert_eq!(semaphore.waiters(), 1, "one request, however often it is polled");
        drop(one);
        let third = leased(&mut handle, 1);
        assert!(!handle.is_waiting());
        drop((other, third));
    }
    at_rest(&semaphore);
}

#[test]
fn the_last_waker_is_woken() {
    let (_, mut handle) = handle(1);
    let held = leased(&mut handle, 1);
    let ((first, first_waker), (last, last_waker)) = (Count::waker(), Count::waker());
    assert!(handle.poll_acquire(&mut Context::from_waker(&first_waker)).is_pending());
    assert!(handle.poll_acquire(&mut Context::from_waker(&last_waker)).is_pending());
    drop(held);
    assert_eq!((first.wakes(), last.wakes()), (0, 1));
}

#[test]
fn another_number_is_another_request() {
    let (semaphore, mut handle) = handle(4);
    let mut held = leased(&mut handle, 3);
    assert!(ask(&mut handle, 2).is_pending());
    let behind = semaphore.clone().acquire_owned().enqueue();
    assert_eq!(semaphore.available_permits(), 0, "the one that is left is with the head");
    // Gives way, so the one behind gets it, and queues at the end.
    assert!(ask(&mut handle, 1).is_pending());
    assert_eq!(semaphore.waiters(), 1);
    drop(held.split(1));
    drop(leased(&mut handle, 1));
    drop((held, behind));
    at_rest(&semaphore);
}

#[test]
fn a_grant_that_was_not_polled_goes_on_when_the_handle_is_dropped_or_cancelled() {
    for cancelled in [false, true] {
        let (semaphore, mut handle) = handle(1);
        let held = leased(&mut handle, 1);
        assert!(ask(&mut handle, 1).is_pending());
        let mut next = handle.clone();
        assert!(!next.is_waiting(), "a clone has no request");
        assert!(ask(&mut next, 1).is_pending());
        drop(held);
        if cancelled {
            handle.cancel();
            assert!(!handle.is_waiting());
        } else {
            drop(handle);
        }
        drop(leased(&mut next, 1));
        at_rest(&semaphore);
    }
}

#[test]
fn errors_do_not_use_it_up() {
    let (semaphore, mut handle) = handle(1);
    let exceeds = AcquireError::ExceedsCapacity { requested: 2, ceiling: 1 };
    assert!(matches!(ask(&mut handle, 2), Poll::Ready(Err(error)) if error == exceeds));
    let held = leased(&mut handle, 1);
    assert!(ask(&mut handle, 1).is_pending());
    semaphore.close();
    for _ in 0..2 {
        assert!(matches!(ask(&mut handle, 1), Poll::Ready(Err(AcquireError::Closed))));
    }
    drop(held);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn it_is_small_unpin_and_shows_its_state() {
    fn unpin<T: Unpin + Send + Sync>(_: &T) {}
    let (_, mut handle) = handle(1);
    unpin(&handle);
    assert!(size_of_val(&handle) <= 4 * size_of::<usize>());
    drop(leased(&mut handle, 1));
    let shown = format!("{handle:?}");
    assert!(shown.contains("waiting: false") && shown.contains("available: 1"), "{shown}");
}
