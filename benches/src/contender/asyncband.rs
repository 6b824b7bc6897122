//! asyncband's `Semaphore` (formerly mea): a counter, and a mutex around a slab of waiters.

use std::future::Future;
use std::sync::Arc;

use asyncband::semaphore::{Semaphore, SemaphorePermit};

use super::{Contender, Owned};

/// `asyncband::semaphore::Semaphore`.
#[derive(Debug)]
pub struct Asyncband(Semaphore);

impl Contender for Asyncband {
    const NAME: &'static str = "asyncband";
    const FIFO: bool = true;

    type Lease<'a> = SemaphorePermit<'a>;

    fn new(permits: usize) -> Self {
        Self(Semaphore::new(permits))
    }

    #[inline]
    fn try_acquire(&self, n: u32) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire(n as usize)
    }

    #[inline]
    fn acquire(&self, n: u32) -> impl Future<Output = SemaphorePermit<'_>> + Send {
        self.0.acquire(n as usize)
    }

    fn available(&self) -> usize {
        self.0.available_permits()
    }
}

impl Owned for Arc<Semaphore> {
    const NAME: &'static str = <Asyncband as Contender>::NAME;

    fn new(permits: usize) -> Self {
        Self::new(Semaphore::new(permits))
    }

    #[inline]
    fn acquire_owned(self) -> impl Future<Output: Send> {
        Semaphore::acquire_owned(self, 1)
    }

    fn available(&self) -> usize {
        self.available_permits()
    }
}
