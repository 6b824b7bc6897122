//! The semaphores that are measured, behind one trait.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

mod async_lock;
mod asyncband;
mod bare;
mod embassy;
mod futures_intrusive;
mod maitake;
mod ours;
mod own_mutex;
mod saa;
mod tokio;

pub use async_lock::AsyncLock;
pub use asyncband::Asyncband;
pub use bare::Bare;
pub use embassy::Embassy;
pub use futures_intrusive::{Intrusive, IntrusiveFair, IntrusiveUnfair, SharedIntrusive};
pub use maitake::Maitake;
pub use ours::Ours;
pub use own_mutex::OwnMutex;
pub use saa::Saa;
pub use tokio::Tokio;

/// The name of the contender that ratios are taken to.
pub const REFERENCE: &str = <Tokio as Contender>::NAME;
/// The name of this project's semaphore.
pub const SUBJECT: &str = <Ours as Contender>::NAME;
/// The name of the floor: an atomic without a queue.
pub const FLOOR: &str = <Bare as Contender>::NAME;

/// A semaphore.
pub trait Contender: Send + Sync + Sized + 'static {
    /// As it stands in the tables.
    const NAME: &'static str;
    /// Strictly first in, first out.
    const FIFO: bool;
    /// Permits it can have.
    const MAX_PERMITS: usize = usize::MAX >> 4;
    /// Waiters that it is measured with. Less than all where it has a bound of its own, or takes
    /// quadratic time.
    const MAX_WAITERS: usize = usize::MAX;
    /// In rows of waiting it does one in so many of the operations, since it takes so much longer.
    const SLOWNESS: u64 = 1;
    /// A request can ask for more than one permit.
    const MANY: bool = true;

    /// Permits that are given back when this is dropped.
    type Lease<'a>: Send;

    /// A semaphore with so many permits.
    fn new(permits: usize) -> Self;

    /// Permits, if they are there now.
    fn try_acquire(&self, n: u32) -> Option<Self::Lease<'_>>;

    /// Permits, in time.
    fn acquire(&self, n: u32) -> impl Future<Output = Self::Lease<'_>> + Send;

    /// Free permits.
    fn available(&self) -> usize;
}

/// A semaphore that is shared by counted references; this is one of them.
pub trait Owned: Clone + 'static {
    /// As it stands in the tables.
    const NAME: &'static str;

    /// A semaphore with so many permits.
    fn new(permits: usize) -> Self;

    /// A permit that keeps the semaphore alive. Drops as a lease does.
    fn acquire_owned(self) -> impl Future<Output: Send>;

    /// Free permits.
    fn available(&self) -> usize;
}

/// A semaphore that a thread can wait for.
pub trait Blocking: Contender {
    /// A permit; blocks the thread.
    fn acquire_blocking(&self) -> Self::Lease<'_>;
}

pin_project_lite::pin_project! {
    /// A future that does not fail: nothing here closes a semaphore or bounds its queue.
    pub(crate) struct Sound<F> {
        #[pin]
        inner: F,
    }
}

impl<F> Sound<F> {
    pub(crate) const fn new(inner: F) -> Self {
        Self { inner }
    }
}

impl<T, E: std::fmt::Debug, F: Future<Output = Result<T, E>>> Future for Sound<F> {
    type Output = T;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.project().inner.poll(cx).map(|result| result.expect("neither closed nor full"))
    }
}
