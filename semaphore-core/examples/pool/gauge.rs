//! A counter of those inside, which has never heard of the semaphore.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Counts who is inside, and how many were at the most. Sequentially consistent throughout: a
/// witness should need no argument.
#[derive(Default)]
pub(crate) struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Somebody who is inside, until it is dropped.
pub(crate) struct Inside<'g>(&'g Gauge);

impl Gauge {
    pub(crate) fn enter(&self) -> Inside<'_> {
        let now = self.now.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
        Inside(self)
    }

    pub(crate) fn now(&self) -> usize {
        self.now.load(SeqCst)
    }

    pub(crate) fn most(&self) -> usize {
        self.most.load(SeqCst)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
    }
}
