//! `semaphore-core`.

use std::future::Future;
use std::sync::Arc;

use semaphore_core::{Lease, Semaphore};

use super::{Blocking, Contender, Owned, Sound};

/// The semaphore of this project.
#[derive(Debug)]
pub struct Ours(Semaphore);

impl Contender for Ours {
    const NAME: &'static str = "semaphore-core";
    const FIFO: bool = true;

    type Lease<'a> = Lease<'a>;

    fn new(permits: usize) -> Self {
        Self(Semaphore::new(permits))
    }

    #[inline]
    fn try_acquire(&self, n: u32) -> Option<Lease<'_>> {
        self.0.try_acquire_many(n).ok()
    }

    #[inline]
    fn acquire(&self, n: u32) -> impl Future<Output = Lease<'_>> + Send {
        Sound::new(self.0.acquire_many(n))
    }

    fn available(&self) -> usize {
        self.0.available_permits()
    }
}

impl Blocking for Ours {
    #[inline]
    fn acquire_blocking(&self) -> Lease<'_> {
        self.0.acquire_blocking().expect("not closed")
    }
}

impl Owned for Arc<Semaphore> {
    const NAME: &'static str = <Ours as Contender>::NAME;

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
