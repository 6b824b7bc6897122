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

/// Both are told, the first one first.
impl<A: Observer, B: Observer> Observer for (A, B) {
    type Stamp = (A::Stamp, B::Stamp);

    fn queued(&self) -> Self::Stamp {
        (self.0.queued(), self.1.queued())
    }

    fn granted(&self, (a, b): Self::Stamp) {
        self.0.granted(a);
        self.1.granted(b);
    }

    fn cancelled(&self, (a, b): Self::Stamp) {
        self.0.cancelled(a);
        self.1.cancelled(b);
    }

    fn timed_out(&self, (a, b): Self::Stamp) {
        self.0.timed_out(a);
        self.1.timed_out(b);
    }

    fn closed(&self, (a, b): Self::Stamp) {
        self.0.closed(a);
        self.1.closed(b);
    }

    fn refused(&self, why: &AcquireError) {
        self.0.refused(why);
        self.1.refused(why);
    }
}

/// Told, if there is one.
impl<O: Observer> Observer for Option<O> {
    type Stamp = Option<O::Stamp>;

    fn queued(&self) -> Self::Stamp {
        self.as_ref().map(O::queued)
    }

    fn granted(&self, since: Self::Stamp) {
        if let Some((observer, since)) = self.as_ref().zip(since) {
            observer.granted(since);
        }
    }

    fn cancelled(&self, since: Self::Stamp) {
        if let Some((observer, since)) = self.as_ref().zip(since) {
            observer.cancelled(since);
        }
    }

    fn timed_out(&self, since: Self::Stamp) {
        if let Some((observer, since)) = self.as_ref().zip(since) {
            observer.timed_out(since);
        }
    }

    fn closed(&self, since: Self::Stamp) {
        if let Some((observer, since)) = self.as_ref().zip(since) {
            observer.closed(since);
        }
    }

    fn refused(&self, why: &AcquireError) {
        if let Some(observer) = self {
            observer.refused(why);
        }
    }
}
