//! Permits that travel with the work come back with its end, however it ends.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use common::at_rest;
use semaphore_core::{OwnedLease, Semaphore};

fn leased() -> (Arc<Semaphore>, OwnedLease) {
    let semaphore = Arc::new(Semaphore::new(2));
    let lease = semaphore.clone().try_acquire_many_owned(2).unwrap();
    (semaphore, lease)
}

/// What the work holds. Dropped, it says how many permits were free.
struct Resource(Arc<Semaphore>, std::sync::mpsc::Sender<usize>);

impl Drop for Resource {
    fn drop(&mut self) {
        self.1.send(self.0.available_permits()).unwrap();
    }
}

fn resource(semaphore: &Arc<Semaphore>) -> (Resource, std::sync::mpsc::Receiver<usize>) {
    let (sender, receiver) = std::sync::mpsc::channel();
    (Resource(semaphore.clone(), sender), receiver)
}

#[test]
fn work_that_ends() {
    let (semaphore, lease) = leased();
    let (held, freed_with) = resource(&semaphore);
    let job = lease.wrap(|| {
        let held = held;
        held.0.available_permits()
    });
    assert_eq!(semaphore.available_permits(), 0);
    assert_eq!(job(), 0, "the work has the permits while it runs");
    at_rest(&semaphore);
    assert_eq!(freed_with.recv(), Ok(0), "what the work holds is free before its permits are");
}

#[test]
fn work_that_panics() {
    let (semaphore, lease) = leased();
    let (held, freed_with) = resource(&semaphore);
    let job = lease.wrap(move || {
        let _held = held;
        panic!("as the test wants it");
    });
    assert!(catch_unwind(AssertUnwindSafe(job)).is_err());
    at_rest(&semaphore);
    assert_eq!(freed_with.recv(), Ok(0));
}

#[test]
fn work_that_never_runs() {
    let (semaphore, lease) = leased();
    let (held, freed_with) = resource(&semaphore);
    let job = lease.wrap(move || drop(held));
    assert_eq!(semaphore.available_permits(), 0);
    drop(job);
    at_rest(&semaphore);
    assert_eq!(freed_with.recv(), Ok(0));
}

#[test]
fn a_result_outlives_the_permits() {
    let (semaphore, lease) = leased();
    let (held, freed_with) = resource(&semaphore);
    let result = lease.wrap(move || held)();
    at_rest(&semaphore);
    drop(result);
    assert_eq!(freed_with.recv(), Ok(2));
}

#[test]
fn work_that_crosses_threads() {
    let (semaphore, lease) = leased();
    let job = lease.wrap(|| 42);
    assert_eq!(std::thread::spawn(job).join().unwrap(), 42);
    at_rest(&semaphore);
}

#[test]
fn a_future_that_is_ready_gives_back_in_that_poll() {
    let (semaphore, lease) = leased();
    let (held, freed_with) = resource(&semaphore);
    let mut future = pin!(lease.wrap_future(async move {
        let held = held;
        ready(held.0.available_permits()).await
    }));
    assert_eq!(semaphore.available_permits(), 0);
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(future.as_mut().poll(&mut cx), Poll::Ready(0));
    at_rest(&semaphore);
    assert_eq!(freed_with.recv(), Ok(0));
    let again = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx)));
    assert!(again.is_err(), "polled after it was ready");
    at_rest(&semaphore);
}

#[test]
fn a_future_that_is_dropped_unpolled_or_pending() {
    for polled in [false, true] {
        let (semaphore, lease) = leased();
        let (held, freed_with) = resource(&semaphore);
        let mut future = Box::pin(lease.wrap_future(async move {
            let _held = held;
            pending::<()>().await;
        }));
        if polled {
            assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(semaphore.available_permits(), 0);
        drop(future);
        at_rest(&semaphore);
        assert_eq!(freed_with.recv(), Ok(0));
    }
}

#[tokio::test]
async fn tasks_that_panic_or_are_aborted() {
    let (semaphore, mut lease) = leased();
    let aborted = tokio::spawn(lease.split(1).unwrap().wrap_future(pending::<()>()));
    let panics = tokio::spawn(lease.wrap_future(async { panic!("as the test wants it") }));
    assert!(panics.await.unwrap_err().is_panic());
    assert_eq!(semaphore.available_permits(), 1);
    aborted.abort();
    assert!(aborted.await.unwrap_err().is_cancelled());
    at_rest(&semaphore);
}

/// The async caller goes away while its job runs on the blocking pool (CASES.md, 26).
#[tokio::test]
async fn a_caller_that_goes_away_leaves_the_permit_with_the_work() {
    let semaphore = Arc::new(Semaphore::new(1));
    let (go_on, may_end) = std::sync::mpsc::channel::<()>();
    let lease = semaphore.clone().acquire_owned().await.unwrap();
    let job = lease.wrap(move || may_end.recv());
    let caller = tokio::spawn(async move { tokio::task::spawn_blocking(job).await });
    tokio::task::yield_now().await;
    caller.abort();
    assert!(caller.await.is_err());
    assert_eq!(semaphore.available_permits(), 0, "the job runs on");
    go_on.send(()).unwrap();
    drop(semaphore.acquire().await.unwrap());
    at_rest(&semaphore);
}
