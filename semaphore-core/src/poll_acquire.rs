//! A request for callers that have a `poll_ready` and no place to pin a future.

use alloc::sync::Arc;
use core::fmt;
use core::task::{Context, Poll};

use crate::acquire::{AcquireOwned, Request};
use crate::error::AcquireError;
use crate::lease::OwnedLease;
use crate::observer::Observer;
use crate::semaphore::Semaphore;

/// One request after the other, polled by hand: no box, no pin.
///
/// For a `poll_ready`, or a hand-written future that acquires over and over. It keeps at most one
/// request in the queue. A clone shares the semaphore, and not the request.
///
/// ```
/// use std::{future::poll_fn, sync::Arc};
/// use semaphore_core::{PollAcquire, Semaphore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), semaphore_core::AcquireError> {
/// let mut permits = PollAcquire::new(Arc::new(Semaphore::new(4)));
/// for _ in 0..8 {
///     let lease = poll_fn(|cx| permits.poll_acquire(cx)).await?;
///     // ...
/// #   drop(lease);
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "PollSemaphore")]
pub struct PollAcquire<O: Observer = ()> {
    request: AcquireOwned<O>,
}

impl<O: Observer> PollAcquire<O> {
    /// A handle without a request.
    pub fn new(semaphore: Arc<Semaphore<O>>) -> Self {
        Self { request: AcquireOwned::new(semaphore, 1) }
    }

    /// Asks for a permit, or goes on asking for it.
    ///
    /// Ready with a lease, or an error, it is at its start again: the next call asks anew. Pending, the
    /// request keeps its place in the queue, and the last waker it was polled with is woken.
    ///
    /// Lock-free; allocates as [`Semaphore::acquire`] says.
    ///
    /// # Errors
    ///
    /// As [`Semaphore::acquire`].
    #[inline]
    pub fn poll_acquire(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<OwnedLease<O>, AcquireError>> {
        self.poll_acquire_many(cx, 1)
    }

    /// Asks for `n` permits at once, or goes on asking for them.
    ///
    /// A request for another number that waits is given up, and the new one queues behind all others.
    ///
    /// # Errors
    ///
    /// As [`Semaphore::acquire_many`].
    #[inline]
    pub fn poll_acquire_many(
        &mut self,
        cx: &mut Context<'_>,
        n: u32,
    ) -> Poll<Result<OwnedLease<O>, AcquireError>> {
        self.request.restart(n);
        self.request.poll_request(cx)
    }

    /// Gives up the request: it leaves the queue, and permits that it was granted go on to the next.
    pub fn cancel(&mut self) {
        self.request.give_up();
    }

    /// Whether there is a request in the queue, or granted there and not polled since.
    pub fn is_waiting(&self) -> bool {
        self.request.is_started()
    }

    /// The semaphore that it asks.
    pub fn semaphore(&self) -> &Arc<Semaphore<O>> {
        self.request.semaphore()
    }
}

impl<O: Observer> Clone for PollAcquire<O> {
    /// Another handle of the semaphore, without a request.
    fn clone(&self) -> Self {
        Self::new(Arc::clone(self.semaphore()))
    }
}

impl<O: Observer> fmt::Debug for PollAcquire<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollAcquire")
            .field("semaphore", self.semaphore())
            .field("waiting", &self.is_waiting())
            .finish()
    }
}
