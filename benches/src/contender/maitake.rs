//! maitake-sync's `Semaphore`: a spin lock around an intrusive list.

use std::future::Future;
use std::sync::Arc;

use maitake_sync::Semaphore;
use maitake_sync::semaphore::Permit;

use super::{Contender, Owned, Sound};

/// `maitake_sync::Semaphore`.
#[derive(Debug)]
pub struct Maitake(Semaphore);

impl Contender for Maitake {
    const NAME: &'static str = "maitake-sync";
    const FIFO: bool = true;

    type Lease<'a> = Permit<'a>;

    fn new(permits: usize) -> Self {
        Self(Semaphore::new(permits))
    }

    #[inline]
    fn try_acquire(&self, n: u32) -> Option<Permit<'_>> {
        self.0.try_acquire(n as usize).ok()
    }

    #[inline]
    fn acquire(&self, n: u32) -> impl Future<Output = Permit<'_>> + Send {
        Sound::new(self.0.acquire(n as usize))
    }

    fn available(&self) -> usize {
        self.0.available_permits()
    }
}

impl Owned for Arc<Semaphore> {
    const NAME: &'static str = <Maitake as Contender>::NAME;

    fn new(permits: usize) -> Self {
        Self::new(Semaphore::new(permits))
    }

    #[inline]
    fn acquire_owned(self) -> impl Future<Output: Send> {
        Sound::new(Semaphore::acquire_owned(&self, 1))
    }

    fn available(&self) -> usize {
        self.available_permits()
    }
}
