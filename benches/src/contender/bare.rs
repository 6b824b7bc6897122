//! The floor: an atomic that is taken from by compare-exchange and given back to by an addition. It
//! has no queue, and so nobody can wait.

use std::future::{Future, ready};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{Contender, Owned};

/// An atomic number.
#[derive(Debug)]
pub struct Bare(AtomicUsize);

/// What was taken from it.
#[derive(Debug)]
pub struct Taken<'a> {
    from: &'a Bare,
    n: usize,
}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        self.from.0.fetch_add(self.n, Release);
    }
}

/// What was taken from it, with a counted reference to it.
#[derive(Debug)]
struct TakenOwned(Arc<Bare>);

impl Drop for TakenOwned {
    #[inline]
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Release);
    }
}

impl Bare {
    #[inline]
    fn take(&self, n: usize) -> bool {
        let mut free = self.0.load(Relaxed);
        while free >= n {
            match self.0.compare_exchange_weak(free, free - n, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => free = now,
            }
        }
        false
    }
}

impl Contender for Bare {
    const NAME: &'static str = "bare atomic";
    const FIFO: bool = false;
    const MAX_WAITERS: usize = 0;

    type Lease<'a> = Taken<'a>;

    fn new(permits: usize) -> Self {
        Self(AtomicUsize::new(permits))
    }

    #[inline]
    fn try_acquire(&self, n: u32) -> Option<Taken<'_>> {
        let n = n as usize;
        self.take(n).then(|| Taken { from: self, n })
    }

    #[inline]
    async fn acquire(&self, n: u32) -> Taken<'_> {
        self.try_acquire(n).expect("nobody can wait for a bare atomic")
    }

    fn available(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Owned for Arc<Bare> {
    const NAME: &'static str = <Bare as Contender>::NAME;

    fn new(permits: usize) -> Self {
        Self::new(Contender::new(permits))
    }

    #[inline]
    fn acquire_owned(self) -> impl Future<Output: Send> {
        assert!(self.take(1), "nobody can wait for a bare atomic");
        ready(TakenOwned(self))
    }

    fn available(&self) -> usize {
        Contender::available(&**self)
    }
}
