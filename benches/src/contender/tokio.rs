//! tokio's `Semaphore`: a mutex around an intrusive list. The reference of all ratios.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Blocking, Contender, Owned, Sound};

/// `tokio::sync::Semaphore`.
#[derive(Debug)]
pub struct Tokio(Semaphore);

impl Contender for Tokio {
    const NAME: &'static str = "tokio";
    const FIFO: bool = true;

    type Lease<'a> = SemaphorePermit<'a>;

    fn new(permits: usize) -> Self {
        Self(Semaphore::new(permits))
    }

    #[inline]
    fn try_acquire(&self, n: u32) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire_many(n).ok()
    }

    #[inline]
    fn acquire(&self, n: u32) -> impl Future<Output = SemaphorePermit<'_>> + Send {
        Sound::new(self.0.acquire_many(n))
    }

    fn available(&self) -> usize {
        self.0.available_permits()
    }
}

/// It has no blocking acquire: an executor of one future stands in for it.
impl Blocking for Tokio {
    #[inline]
    fn acquire_blocking(&self) -> SemaphorePermit<'_> {
        futures_executor::block_on(self.acquire(1))
    }
}

impl Owned for Arc<Semaphore> {
    const NAME: &'static str = <Tokio as Contender>::NAME;

    fn new(permits: usize) -> Self {
        Self::new(Semaphore::new(permits))
    }

    #[inline]
    fn acquire_owned(self) -> impl Future<Output: Send> {
        Sound::new(Semaphore::acquire_owned(self))
    }

    fn available(&self) -> usize {
        self.available_permits()
    }
}
