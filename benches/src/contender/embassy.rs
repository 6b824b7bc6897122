//! embassy-sync's `FairSemaphore`: a critical section around a fixed array of wakers.

use std::future::Future;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::semaphore::{FairSemaphore, Semaphore, SemaphoreReleaser};

use super::{Contender, Sound};

const QUEUE: usize = 1024;

type Inner = FairSemaphore<CriticalSectionRawMutex, QUEUE>;

/// `embassy_sync::semaphore::FairSemaphore`, with a queue of 1,024.
#[derive(Debug)]
pub struct Embassy(Inner);

impl Contender for Embassy {
    const NAME: &'static str = "embassy-sync";
    const FIFO: bool = true;
    const MAX_WAITERS: usize = QUEUE;

    type Lease<'a> = SemaphoreReleaser<'a, Inner>;

    fn new(permits: usize) -> Self {
        Self(Inner::new(permits))
    }

    #[inline]
    fn try_acquire(&self, n: u32) -> Option<Self::Lease<'_>> {
        self.0.try_acquire(n as usize)
    }

    #[inline]
    fn acquire(&self, n: u32) -> impl Future<Output = Self::Lease<'_>> + Send {
        Sound::new(self.0.acquire(n as usize))
    }

    /// It does not tell: takes all, and looks how many they were.
    fn available(&self) -> usize {
        self.0.try_acquire_all(0).map_or(0, |all| all.permits())
    }
}
