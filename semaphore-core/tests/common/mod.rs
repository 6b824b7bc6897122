//! What the test files share: polling by hand, wakers that count, and a timer that is fired by hand.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod counting_alloc;
pub(crate) mod foreign;

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use semaphore_core::{AcquireError, Semaphore};

/// Polls once with `waker`.
pub(crate) fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Polls once with a waker that does nothing.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_with(future, Waker::noop())
}

/// The lease that must be there now.
#[track_caller]
pub(crate) fn served<L, F>(future: &mut F) -> L
where
    F: Future<Output = Result<L, AcquireError>> + Unpin,
{
    match poll(future) {
        Poll::Ready(Ok(lease)) => lease,
        Poll::Ready(Err(error)) => panic!("a lease was due, and came: {error}"),
        Poll::Pending => panic!("a lease was due, and the request still waits"),
    }
}

/// The error that must be there now.
#[track_caller]
pub(crate) fn refused<L, F>(future: &mut F) -> AcquireError
where
    F: Future<Output = Result<L, AcquireError>> + Unpin,
{
    match poll(future) {
        Poll::Ready(Err(error)) => error,
        Poll::Ready(Ok(_)) => panic!("an error was due, and a lease came"),
        Poll::Pending => panic!("an error was due, and the request still waits"),
    }
}

/// The request must not be ready. Polls it with a waker that does nothing.
#[track_caller]
pub(crate) fn waits<F: Future + Unpin>(future: &mut F) {
    assert!(poll(future).is_pending(), "the request should still wait");
}

/// Nothing is out: all permits are free and nobody waits.
#[track_caller]
pub(crate) fn at_rest(semaphore: &Semaphore) {
    assert_eq!(semaphore.waiters(), 0, "nobody waits: {semaphore:?}");
    assert_eq!(semaphore.available_permits(), semaphore.capacity(), "all are back: {semaphore:?}");
}

/// How often its wakers were woken.
#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn waker() -> (Arc<Self>, Waker) {
        let count = Arc::new(Self::default());
        (count.clone(), count.into())
    }

    pub(crate) fn wakes(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Writes its number down when it is woken.
pub(crate) struct Order {
    number: usize,
    log: Arc<Mutex<Vec<usize>>>,
}

impl Order {
    pub(crate) fn waker(number: usize, log: &Arc<Mutex<Vec<usize>>>) -> Waker {
        Arc::new(Self { number, log: log.clone() }).into()
    }
}

impl Wake for Order {
    fn wake(self: Arc<Self>) {
        self.log.lock().unwrap().push(self.number);
    }
}

/// A deadline that comes when the test says so.
#[derive(Clone, Default)]
pub(crate) struct Timer(Arc<(AtomicBool, Mutex<Option<Waker>>)>);

impl Timer {
    pub(crate) fn fire(&self) {
        self.0.0.store(true, SeqCst);
        let waker = self.0.1.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        *self.0.1.lock().unwrap() = Some(cx.waker().clone());
        if self.0.0.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    }
}
