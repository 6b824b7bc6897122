//! Wakers that call back, that panic, and whose last drop calls back.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use semaphore_core::{AcquireOwned, OwnedLease, Semaphore};

const PERMITS: usize = 4;

thread_local! {
    static CASE: RefCell<Option<Arc<Case>>> = const { RefCell::new(None) };
}

/// What wakers and calls share. One thread has it, so nothing is borrowed while foreign code runs.
struct Case {
    semaphore: Arc<Semaphore>,
    bytes: Vec<u8>,
    at: Cell<usize>,
    depth: Cell<u32>,
    requests: RefCell<Vec<AcquireOwned>>,
    leases: RefCell<Vec<OwnedLease>>,
}

/// A waker has to be `Send`: it finds its case in a thread-local.
struct Enemy;

fn case() -> Option<Arc<Case>> {
    CASE.try_with(|case| case.try_borrow().ok()?.clone()).ok()?
}

impl Wake for Enemy {
    fn wake(self: Arc<Self>) {
        let Some(case) = case() else { return };
        case.step();
        if case.next() % 8 == 0 && !std::thread::panicking() {
            resume_unwind(Box::new("a waker panics"));
        }
    }
}

impl Drop for Enemy {
    fn drop(&mut self) {
        if let Some(case) = case() {
            case.step();
        }
    }
}

impl Case {
    /// The next byte; zeros when they have run out.
    fn next(&self) -> u8 {
        let at = self.at.replace(self.at.get() + 1);
        self.bytes.get(at).copied().unwrap_or(1)
    }

    fn poll(&self, mut request: AcquireOwned) {
        let waker = Waker::from(Arc::new(Enemy));
        match Pin::new(&mut request).poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => self.requests.borrow_mut().push(request),
            Poll::Ready(Ok(lease)) => self.leases.borrow_mut().push(lease),
            Poll::Ready(Err(_)) => {}
        }
    }

    fn some<T>(&self, of: &RefCell<Vec<T>>) -> Option<T> {
        let n = usize::from(self.next());
        let mut of = of.borrow_mut();
        let at = n.checked_rem(of.len())?;
        Some(of.swap_remove(at))
    }

    /// One call, from outside or from within a waker, not too deep.
    fn step(&self) {
        if self.depth.get() >= 8 || self.at.get() >= self.bytes.len() {
            return;
        }
        self.depth.set(self.depth.get() + 1);
        let k = u32::from(self.next() % 4);
        let result = catch_unwind(AssertUnwindSafe(|| match self.next() % 16 {
            0..=4 => self.poll(Arc::clone(&self.semaphore).acquire_many_owned(k)),
            5 | 6 => {
                let request = Arc::clone(&self.semaphore).acquire_many_owned(k).enqueue();
                self.requests.borrow_mut().push(request);
            }
            7..=9 => {
                if let Some(request) = self.some(&self.requests) {
                    self.poll(request);
                }
            }
            10 | 11 => drop(self.some(&self.requests)),
            12..=14 => drop(self.some(&self.leases)),
            _ if k == 3 => self.semaphore.close(),
            _ => {
                if let Ok(lease) = Arc::clone(&self.semaphore).try_acquire_many_owned(k) {
                    self.leases.borrow_mut().push(lease);
                }
            }
        }));
        self.depth.set(self.depth.get() - 1);
        if let Err(panic) = result {
            assert!(panic.is::<&str>(), "a panic that is not a waker's");
        }
    }
}

/// Calls, each with its own bytes; and calls from within the wakers, with the bytes that come then.
pub fn wakers(bytes: &[u8]) {
    let case = Arc::new(Case {
        semaphore: Arc::new(Semaphore::new(PERMITS)),
        bytes: bytes.to_vec(),
        at: Cell::new(0),
        depth: Cell::new(0),
        requests: RefCell::default(),
        leases: RefCell::default(),
    });
    CASE.set(Some(Arc::clone(&case)));
    while case.at.get() < bytes.len() {
        case.step();
        let figures = case.semaphore.snapshot();
        let held: usize = case.leases.borrow().iter().map(OwnedLease::num_permits).sum();
        assert!(figures.available + held <= PERMITS, "made from nothing: {held} held, {figures:?}");
    }
    // From here on wakers are quiet: no bytes are left.
    loop {
        let lease = case.leases.borrow_mut().pop();
        let quiet = catch_unwind(AssertUnwindSafe(|| drop(lease)));
        drop(quiet);
        if case.leases.borrow().is_empty() {
            break;
        }
    }
    loop {
        let request = case.requests.borrow_mut().pop();
        let Some(request) = request else { break };
        drop(catch_unwind(AssertUnwindSafe(|| drop(request))));
    }
    let figures = case.semaphore.snapshot();
    assert_eq!((figures.available, figures.waiters), (PERMITS, 0), "lost: {figures:?}");
    CASE.set(None);
}
