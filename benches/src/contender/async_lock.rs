//! async-lock's `Semaphore`: a counter and an event to listen to. Barges.

use std::future::Future;
use std::sync::Arc;

use async_lock::{Semaphore, SemaphoreGuard};

use super::{Blocking, Contender, Owned};

/// `async_lock::Semaphore`. One permit a request.
#[derive(Debug)]
pub struct AsyncLock(Semaphore);

impl Contender for AsyncLock {
    const NAME: &'static str = "async-lock";
    const FIFO: bool = false;
    const MANY: bool = false;

    type Lease<'a> = SemaphoreGuard<'a>;

    fn new(permits: usize) -> Self {
        Self(Semaphore::new(permits))
    }

    #[inline]
    fn try_acquire(&self, n: u32) -> Option<SemaphoreGuard<'_>> {
        debug_assert_eq!(n, 1);
        self.0.try_acquire()
    }

    #[inline]
    fn acquire(&self, n: u32) -> impl Future<Output = SemaphoreGuard<'_>> + Send {
        debug_assert_eq!(n, 1);
        self.0.acquire()
    }

    fn available(&self) -> usize {
        self.0.available_permits()
    }
}

impl Blocking for AsyncLock {
    #[inline]
    fn acquire_blocking(&self) -> SemaphoreGuard<'_> {
        self.0.acquire_blocking()
    }
}

impl Owned for Arc<Semaphore> {
    const NAME: &'static str = <AsyncLock as Contender>::NAME;

    fn new(permits: usize) -> Self {
        Self::new(Semaphore::new(permits))
    }

    #[inline]
    fn acquire_owned(self) -> impl Future<Output: Send> {
        self.acquire_arc()
    }

    fn available(&self) -> usize {
        self.available_permits()
    }
}
