//! A waker that runs the test's code when it is cloned, woken or dropped.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{RawWaker, RawWakerVTable, Waker};

/// What is done to a waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Before the clone exists: if the hook panics there is none.
    Clone,
    /// By value; the waker is gone afterwards, also if the hook panics.
    Wake,
    /// The same.
    Drop,
}

type Hook = Box<dyn FnMut() + Send>;

/// What its wakers have in common.
#[derive(Default)]
pub(crate) struct Foreign {
    hooks: [Mutex<Option<Hook>>; 3],
    counts: [AtomicUsize; 3],
    live: AtomicIsize,
}

impl Foreign {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// From now on `hook` runs at each such event (but not within itself).
    pub(crate) fn on(&self, event: Event, hook: impl FnMut() + Send + 'static) {
        *self.hooks[event as usize].lock().unwrap() = Some(Box::new(hook));
    }

    /// `hook` runs at the next such event, and never again.
    pub(crate) fn once(&self, event: Event, hook: impl FnOnce() + Send + 'static) {
        let mut hook = Some(hook);
        self.on(event, move || {
            if let Some(hook) = hook.take() {
                hook();
            }
        });
    }

    /// No hooks from now on.
    pub(crate) fn calm(&self) {
        for hook in &self.hooks {
            drop(hook.lock().unwrap().take());
        }
    }

    /// How often that happened.
    pub(crate) fn count(&self, event: Event) -> usize {
        self.counts[event as usize].load(SeqCst)
    }

    /// Wakers that exist now.
    pub(crate) fn live(&self) -> isize {
        self.live.load(SeqCst)
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        self.live.fetch_add(1, SeqCst);
        let data = Arc::into_raw(self.clone()).cast();
        // SAFETY: the functions of the vtable treat `data` as the share of an `Arc<Foreign>`
        // that it is, and `Foreign` is `Send + Sync`.
        unsafe { Waker::new(data, &VTABLE) }
    }

    fn run(&self, event: Event) {
        self.counts[event as usize].fetch_add(1, SeqCst);
        // Not locked while it runs, and put back also if it panics.
        let hook = self.hooks[event as usize].lock().unwrap().take();
        if let Some(hook) = hook {
            let mut back = PutBack { foreign: self, event, hook: Some(hook) };
            if let Some(hook) = &mut back.hook {
                hook();
            }
        }
    }
}

struct PutBack<'a> {
    foreign: &'a Foreign,
    event: Event,
    hook: Option<Hook>,
}

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        let mut place = self.foreign.hooks[self.event as usize].lock().unwrap();
        if place.is_none() {
            *place = self.hook.take();
        }
    }
}

/// One waker less, however it ends.
struct Gone(Arc<Foreign>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, SeqCst);
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

fn clone(data: *const ()) -> RawWaker {
    // SAFETY: `data` is a share that belongs to the waker, which outlives the call.
    let this = ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<Foreign>()) });
    this.run(Event::Clone);
    this.live.fetch_add(1, SeqCst);
    RawWaker::new(Arc::into_raw(Arc::clone(&this)).cast(), &VTABLE)
}

fn wake(data: *const ()) {
    // SAFETY: `data` is the share of the waker that ends here.
    let this = Gone(unsafe { Arc::from_raw(data.cast::<Foreign>()) });
    this.0.run(Event::Wake);
}

fn wake_by_ref(data: *const ()) {
    // SAFETY: `data` is a share that belongs to the waker, which outlives the call.
    let this = ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<Foreign>()) });
    this.run(Event::Wake);
}

fn drop_waker(data: *const ()) {
    // SAFETY: `data` is the share of the waker that ends here.
    let this = Gone(unsafe { Arc::from_raw(data.cast::<Foreign>()) });
    this.0.run(Event::Drop);
}
