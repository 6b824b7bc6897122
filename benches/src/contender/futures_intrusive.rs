//! futures-intrusive's `Semaphore`: everything under one mutex of `parking_lot`.

use std::future::Future;

use futures_intrusive::sync::{Semaphore, SemaphoreReleaser, SharedSemaphore};

use super::{Contender, Owned};

/// `futures_intrusive::sync::Semaphore`, fair or not.
#[derive(Debug)]
pub struct Intrusive<const FAIR: bool>(Semaphore);

/// The fair one.
pub type IntrusiveFair = Intrusive<true>;
/// The one that barges.
pub type IntrusiveUnfair = Intrusive<false>;

impl<const FAIR: bool> Contender for Intrusive<FAIR> {
    const NAME: &'static str = if FAIR { "f-intrusive" } else { "f-intrusive unfair" };
    const FIFO: bool = FAIR;

    type Lease<'a> = SemaphoreReleaser<'a>;

    fn new(permits: usize) -> Self {
        Self(Semaphore::new(FAIR, permits))
    }

    #[inline]
    fn try_acquire(&self, n: u32) -> Option<SemaphoreReleaser<'_>> {
        self.0.try_acquire(n as usize)
    }

    #[inline]
    fn acquire(&self, n: u32) -> impl Future<Output = SemaphoreReleaser<'_>> + Send {
        self.0.acquire(n as usize)
    }

    fn available(&self) -> usize {
        self.0.permits()
    }
}

/// The fair one, shared.
#[derive(Clone, Debug)]
pub struct SharedIntrusive(SharedSemaphore);

impl Owned for SharedIntrusive {
    const NAME: &'static str = <IntrusiveFair as Contender>::NAME;

    fn new(permits: usize) -> Self {
        Self(SharedSemaphore::new(true, permits))
    }

    #[inline]
    fn acquire_owned(self) -> impl Future<Output: Send> {
        self.0.acquire(1)
    }

    fn available(&self) -> usize {
        self.0.permits()
    }
}
