//! Places for futures, made before the clock runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// A row of places, each pinned for good: filling and clearing one allocates nothing.
#[derive(Debug)]
pub struct Places<F>(Vec<Pin<Box<Option<F>>>>);

impl<F: Future> Places<F> {
    /// So many places, all empty.
    #[must_use]
    pub fn new(n: usize) -> Self {
        Self((0..n).map(|_| Box::pin(None)).collect())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts a future into place `at` and polls it.
    #[inline(always)]
    pub fn start(&mut self, at: usize, future: F, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0[at].as_mut().set(Some(future));
        self.poll(at, cx)
    }

    /// Polls the future in place `at`.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline(always)]
    pub fn poll(&mut self, at: usize, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0[at].as_mut().as_pin_mut().expect("a future").poll(cx)
    }

    /// Drops the future in place `at`.
    #[inline(always)]
    pub fn clear(&mut self, at: usize) {
        self.0[at].as_mut().set(None);
    }
}

/// What a waker costs at least: a count of references, and nobody to wake.
struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}

    fn wake_by_ref(self: &Arc<Self>) {}
}

/// A waker that counts its references and does nothing else.
#[must_use]
pub fn waker() -> Waker {
    Waker::from(Arc::new(Nobody))
}
