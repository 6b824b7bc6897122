//! saa's `Semaphore`: one word, and a queue of waiters that one releaser at a time walks. 63 permits
//! at most; spins before it waits.

use std::sync::atomic::Ordering::Relaxed;

use saa::Semaphore;

use super::{Blocking, Contender};

/// `saa::Semaphore`.
#[derive(Debug)]
pub struct Saa(Semaphore);

/// Its permits, which it does not guard itself.
#[derive(Debug)]
pub struct Permits<'a> {
    semaphore: &'a Semaphore,
    n: usize,
}

impl Drop for Permits<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.n == 1 {
            self.semaphore.release();
        } else {
            self.semaphore.release_many(self.n);
        }
    }
}

impl Contender for Saa {
    const NAME: &'static str = "saa";
    const FIFO: bool = false;
    const MAX_PERMITS: usize = Semaphore::MAX_PERMITS;
    /// A release and a cancel walk the whole queue.
    const MAX_WAITERS: usize = 1024;
    /// It spins for tens of microseconds before it waits.
    const SLOWNESS: u64 = 256;

    type Lease<'a> = Permits<'a>;

    fn new(permits: usize) -> Self {
        Self(Semaphore::with_permits(permits))
    }

    #[inline]
    fn try_acquire(&self, n: u32) -> Option<Permits<'_>> {
        let n = n as usize;
        self.0.try_acquire_many(n).then(|| Permits { semaphore: &self.0, n })
    }

    #[inline]
    async fn acquire(&self, n: u32) -> Permits<'_> {
        let n = n as usize;
        assert!(self.0.acquire_many_async(n).await, "as many as it can have");
        Permits { semaphore: &self.0, n }
    }

    fn available(&self) -> usize {
        self.0.available_permits(Relaxed)
    }
}

impl Blocking for Saa {
    #[inline]
    fn acquire_blocking(&self) -> Permits<'_> {
        self.0.acquire_sync();
        Permits { semaphore: &self.0, n: 1 }
    }
}
