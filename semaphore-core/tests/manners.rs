//! What one expects of any type: `Send`, `Sync`, `Unpin`, unwind safety, `Debug` that shows state, and
//! errors that say what is wrong. For the types that `contract.rs` does not cover.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

use std::cell::Cell;
use std::error::Error;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

use semaphore_core::{
    AcquireError, BuildError, MAX_PERMITS, Observer, OwnedLease, PollAcquire, Semaphore,
    TryAcquireError, WithLease,
};

const fn free<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}

const _: () = {
    free::<PollAcquire>();
    free::<PollAcquire<(Nobody, Option<Nobody>)>>();
    free::<WithLease<std::future::Ready<()>>>();
    #[cfg(feature = "tower")]
    {
        use semaphore_core::tower::{ConcurrencyLimit, ConcurrencyLimitLayer, ResponseFuture};
        free::<ConcurrencyLimitLayer>();
        free::<ConcurrencyLimit<u8>>();
        free::<ResponseFuture<std::future::Ready<()>>>();
    }
    #[cfg(feature = "tracing")]
    free::<semaphore_core::TracingObserver>();
};

#[cfg(feature = "metrics")]
const fn shared<T: Send + Sync + Unpin + Clone>() {}
#[cfg(feature = "metrics")]
const _: () = shared::<semaphore_core::MetricsObserver>();

/// An observer that can go anywhere.
struct Nobody;

impl Observer for Nobody {
    type Stamp = ();
    fn queued(&self) {}
}

/// Neither `Send` nor `Sync`, and so neither is what holds it.
struct OnThisThread(#[allow(dead_code, reason = "it is here for its type")] Rc<Cell<u8>>);

impl Observer for OnThisThread {
    type Stamp = ();
    fn queued(&self) {}
}

/// Which of two inherent-looking methods is found tells whether `T: Send`.
struct Probe<T>(std::marker::PhantomData<T>);

trait NotSend {
    const SEND: bool = false;
}

impl<T> NotSend for Probe<T> {}

impl<T: Send> Probe<T> {
    const SEND: bool = true;
}

#[test]
#[expect(clippy::assertions_on_constants, reason = "they are about types")]
fn what_holds_an_observer_is_as_sendable_as_that() {
    assert!(Probe::<OwnedLease<Nobody>>::SEND);
    assert!(!Probe::<OwnedLease<OnThisThread>>::SEND);
    assert!(!Probe::<PollAcquire<OnThisThread>>::SEND);
}

#[test]
fn debug_shows_state() {
    let shows = |value: &dyn std::fmt::Debug, pieces: &[&str]| {
        let shown = format!("{value:?}");
        println!("{shown}");
        assert!(
            pieces.iter().all(|piece| shown.contains(piece)),
            "{shown} has not all of {pieces:?}"
        );
    };
    let semaphore = Arc::new(Semaphore::new(4));
    let lease = semaphore.clone().try_acquire_many_owned(3).unwrap();
    let waiting = semaphore.acquire_many(2).enqueue();
    shows(&semaphore, &["capacity: 4", "available: 0", "waiters: 1", "closed: false"]);
    shows(&waiting, &["Acquire", "queued"]);
    let wrapped = lease.wrap_future(async {});
    shows(&wrapped, &["WithLease", "permits: 3"]);
    drop((waiting, wrapped));
    let handle = PollAcquire::new(semaphore.clone());
    shows(&handle, &["PollAcquire", "capacity: 4", "available: 4", "waiting: false"]);
    #[cfg(feature = "tower")]
    shows(
        &semaphore_core::tower::ConcurrencyLimit::with_semaphore("service", semaphore.clone()),
        &["service", "capacity: 4", "reserved: false"],
    );
}

/// Every error that a user can meet; `--nocapture` shows them.
#[test]
fn errors_say_what_is_wrong() {
    let exceeds = AcquireError::ExceedsCapacity { requested: 9, ceiling: 4 };
    let (small, other) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
    let mut lease = small.clone().try_acquire_owned().unwrap();
    let errors: Vec<(Box<dyn Error>, &str)> = vec![
        (AcquireError::Closed.into(), "the semaphore is closed"),
        (AcquireError::QueueFull.into(), "the queue of the semaphore is full"),
        (exceeds.into(), "9 permits requested from a semaphore that can have 4 at most"),
        (AcquireError::TimedOut.into(), "the deadline came before the permits"),
        (TryAcquireError::Closed.into(), "the semaphore is closed"),
        (TryAcquireError::NoPermits.into(), "no permits available"),
        (
            TryAcquireError::ExceedsCapacity { requested: 9, ceiling: 4 }.into(),
            "9 permits requested from a semaphore that can have 4 at most",
        ),
        (
            Semaphore::try_new(0).unwrap_err().into(),
            "a semaphore with a ceiling of zero permits grants nothing; to start with none, give it a higher ceiling",
        ),
        (
            BuildError::AboveCeiling { permits: 9, ceiling: 4 }.into(),
            "9 permits are more than the ceiling of 4",
        ),
        (
            BuildError::TooManyWaiters { waiters: 1 << 30 }.into(),
            "a queue of 1073741824 requests is more than a semaphore can hold",
        ),
        (small.add_permits(1).unwrap_err().into(), "2 permits would be more than the ceiling of 1"),
        (
            lease.merge(other.clone().try_acquire_owned().unwrap()).unwrap_err().into(),
            "the leases are of different semaphores",
        ),
    ];
    for (error, says) in errors {
        println!("{error}");
        assert_eq!(error.to_string(), says);
    }
    let too_many = Semaphore::try_new(MAX_PERMITS + 1).unwrap_err().to_string();
    println!("{too_many}");
    assert!(too_many.ends_with(&format!("are more than the {MAX_PERMITS} that there can be")));
    at_rest(&other);
}

#[track_caller]
fn at_rest(semaphore: &Semaphore) {
    assert_eq!(semaphore.available_permits(), semaphore.capacity());
}
