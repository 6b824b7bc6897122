//! Watching a semaphore at work.

use crate::error::AcquireError;

/// Is told what happens to the requests of a semaphore.
///
/// It is a type parameter of the semaphore that defaults to `()`, which hears nothing and costs
/// nothing. Each method has an empty default. They run on the thread of the call that they tell of,
/// after its permits are placed and with nothing held; they are *foreign code*: one that
/// panics passes the panic to that call's caller.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use semaphore_core::{AcquireError, Observer, Semaphore};
///
/// #[derive(Default)]
/// struct Refusals(AtomicUsize);
///
/// impl Observer for Refusals {
///     type Stamp = ();
///     fn queued(&self) {}
///     fn refused(&self, _why: &AcquireError) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let semaphore = Semaphore::builder().permits(1).observer(Refusals::default()).build()?;
/// let too_many = semaphore.acquire_many(2).enqueue();
/// assert_eq!(semaphore.observer().0.load(Ordering::Relaxed), 1);
/// # drop(too_many);
/// # Ok::<(), semaphore_core::BuildError>(())
/// ```
pub trait Observer {
    /// What a waiting request carries from [`queued`](Self::queued) to its end: a point in
    /// time, most often. It is stored in the future, so `()` keeps that small.
    type Stamp: Copy + Unpin;

    /// A request joined the queue.
    fn queued(&self) -> Self::Stamp;

    /// A request that had waited was polled and has its permits.
    fn granted(&self, since: Self::Stamp) {
        let _ = since;
    }

    /// A future was dropped while it waited.
    fn cancelled(&self, since: Self::Stamp) {
        let _ = since;
    }

    /// A deadline came before the permits.
    fn timed_out(&self, since: Self::Stamp) {
        let _ = since;
    }

    /// A request that had waited was ended by `close`.
    fn closed(&self, since: Self::Stamp) {
        let _ = since;
    }

    /// A request failed without joining the queue.
    fn refused(&self, why: &AcquireError) {
        let _ = why;
    }
}

impl Observer for () {
    type Stamp = ();

    #[inline(always)]
    fn queued(&self) {}
}
