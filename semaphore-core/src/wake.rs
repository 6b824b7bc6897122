//! Waking: after all permits are placed, one waker at a time, and never recursively.
//!
//! A call that settles waiters collects their wakers in a [`Wakes`] and runs them last, with
//! nothing held. A waker may call back into the semaphore, and that call may settle further
//! waiters: with the feature `std` it leaves them to the call that is waking already, on this
//! thread and for this semaphore, so that the stack does not grow with the length of a chain. Without
//! `std` there is no thread-local to find that call by, and the inner call wakes by itself.
//!
//! So a waker must not block until another wake of the same semaphore has come: if the call that
//! owes that wake is made within the waker itself, it comes when the waker has returned.
//!
//! A waker that panics is caught (with `std`); the others are woken, and then the first panic goes on,
//! unless the thread is unwinding already. Without `std` the others are woken while the panic unwinds,
//! and a second one aborts the process.
//!
//! # Invariants
//!
//! - **K1** (frames are alive). The thread-local list of frames names frames of this thread's stack
//!   alone, each taken off by a guard before it ends.
//! - **K2** (wakes are not aliased). While a frame is entered, the `Wakes` that it points to is used
//!   through it alone, and borrowed for the length of one `next`, or of one inner call's placing of
//!   permits; neither runs foreign code, so neither happens within another.

use core::task::Waker;

use crate::queue::Raw;
use crate::state::SlotIndex;
use crate::waiter::{Party, Woken};

/// Wakers that fit without touching the slots again.
const BATCH: usize = 16;

/// Wakers to be run, in the order in which they were added. Never allocates: what does not fit stays
/// in its slot, and the slots are chained.
pub(crate) struct Wakes {
    first: Option<Waker>,
    /// Made when a second waker comes.
    more: Option<Ring>,
    chain: Option<(SlotIndex, SlotIndex)>,
}

struct Ring {
    wakers: [Option<Waker>; BATCH],
    at: usize,
    len: usize,
}

impl Wakes {
    pub(crate) const fn new() -> Self {
        Self { first: None, more: None, chain: None }
    }

    fn is_empty(&self) -> bool {
        self.first.is_none()
            && self.more.as_ref().is_none_or(|r| r.len == 0)
            && self.chain.is_none()
    }

    /// No room for one more waker: the next has to stay in its slot.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.chain.is_some() || self.more.as_ref().is_some_and(|ring| ring.len == BATCH)
    }

    /// Adds what came of settling the waiter in `slot`.
    #[inline(always)]
    pub(crate) fn add(&mut self, raw: &Raw, slot: SlotIndex, woken: Woken) {
        match woken {
            Woken::Nobody => {}
            Woken::Waker(waker) => self.push(waker),
            Woken::InCell if self.is_full() => self.link(raw, slot),
            Woken::InCell => {
                let waker = raw.pool.slot(slot).fetch_waker();
                raw.let_go(slot, Party::Settler);
                self.push(waker);
            }
        }
    }

    /// Adds a waker, for which there is room.
    #[inline(always)]
    pub(crate) fn push(&mut self, waker: Waker) {
        if self.is_empty() {
            self.first = Some(waker);
        } else {
            self.push_more(waker);
        }
    }

    #[cold]
    fn push_more(&mut self, waker: Waker) {
        debug_assert!(!self.is_full());
        let ring = self.more.get_or_insert_with(|| Ring {
            wakers: [const { None }; BATCH],
            at: 0,
            len: 0,
        });
        ring.wakers[(ring.at + ring.len) % BATCH] = Some(waker);
        ring.len += 1;
    }

    #[cold]
    fn link(&mut self, raw: &Raw, slot: SlotIndex) {
        raw.pool.slot(slot).set_chained(None);
        self.chain = Some(match self.chain {
            None => (slot, slot),
            Some((first, last)) => {
                raw.pool.slot(last).set_chained(Some(slot));
                (first, slot)
            }
        });
    }

    fn next(&mut self, raw: &Raw) -> Option<Waker> {
        if let Some(waker) = self.first.take() {
            return Some(waker);
        }
        if let Some(ring) = &mut self.more
            && ring.len > 0
        {
            let waker = ring.wakers[ring.at].take();
            ring.at = (ring.at + 1) % BATCH;
            ring.len -= 1;
            return waker;
        }
        let (slot, last) = self.chain?;
        let waker = raw.pool.slot(slot).fetch_waker();
        self.chain = raw.pool.slot(slot).chained().map(|next| (next, last));
        raw.let_go(slot, Party::Settler);
        Some(waker)
    }
}

#[cfg(feature = "std")]
type Panic = alloc::boxed::Box<dyn core::any::Any + Send>;

/// Runs `place`, which settles waiters, and then wakes them; or leaves that to an outer call.
#[inline(always)]
pub(crate) fn placing<R>(raw: &Raw, place: impl FnOnce(&mut Wakes) -> R) -> R {
    #[cfg(feature = "std")]
    if let Some(outer) = frames::find(raw) {
        // SAFETY: K1: the frame is alive; K2: `place` runs no foreign code, and the outer call
        // has no borrow while it is in the waker that called us.
        return place(unsafe { &mut *outer });
    }
    let mut wakes = Wakes::new();
    let result = place(&mut wakes);
    if !wakes.is_empty() {
        wake_all(raw, &mut wakes);
    }
    result
}

/// Whether an outer call on this thread is waking for the semaphore, and has to be left what there is to
/// wake.
#[inline(always)]
pub(crate) fn is_waking(raw: &Raw) -> bool {
    #[cfg(feature = "std")]
    return frames::find(raw).is_some();
    #[cfg(not(feature = "std"))]
    {
        let _ = raw;
        false
    }
}

/// Wakes one waiter, and then those whom its waker has settled. Not for a call within a waker: see
/// [`is_waking`].
#[cfg(feature = "std")]
pub(crate) fn wake_one(raw: &Raw, waker: Waker) {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    let mut wakes = Wakes::new();
    let frame = frames::Frame::new(raw, &mut wakes);
    let result = {
        let _entered = frame.enter();
        catch_unwind(AssertUnwindSafe(|| waker.wake()))
    };
    if result.is_ok() && wakes.is_empty() {
        // Nothing in it to be dropped.
        core::mem::forget(wakes);
    } else {
        wake_rest(raw, &mut wakes, result.err());
    }
}

/// Wakes one waiter.
#[cfg(not(feature = "std"))]
pub(crate) fn wake_one(_: &Raw, waker: Waker) {
    waker.wake();
}

#[cfg(feature = "std")]
fn wake_all(raw: &Raw, wakes: &mut Wakes) {
    wake_rest(raw, wakes, None);
}

/// Wakes all. Goes on with the first panic then: one that there was before, or the first of these.
#[cfg(feature = "std")]
#[inline(never)]
fn wake_rest(raw: &Raw, wakes: &mut Wakes, mut first: Option<Panic>) {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    let frame = frames::Frame::new(raw, wakes);
    {
        let _entered = frame.enter();
        loop {
            // SAFETY: K2: the borrow ends before the waker runs.
            let Some(waker) = (unsafe { &mut *frame.wakes() }).next(raw) else { break };
            // Unwind safety: nothing of ours is borrowed while it runs.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                if first.is_none() {
                    first = Some(panic);
                } else {
                    // A payload's drop is foreign code as well, and the first panic is enough.
                    core::mem::forget(panic);
                }
            }
        }
    }
    if let Some(panic) = first {
        if std::thread::panicking() {
            core::mem::forget(panic);
        } else {
            resume_unwind(panic);
        }
    }
}

#[cfg(not(feature = "std"))]
#[inline(never)]
fn wake_all(raw: &Raw, wakes: &mut Wakes) {
    /// Goes on with the rest when a waker panics.
    struct Rest<'a>(&'a Raw, &'a mut Wakes);

    impl Drop for Rest<'_> {
        fn drop(&mut self) {
            while let Some(waker) = self.1.next(self.0) {
                waker.wake();
            }
        }
    }

    let rest = Rest(raw, wakes);
    while let Some(waker) = rest.1.next(raw) {
        waker.wake();
    }
}

/// A waker, or none, that is not needed any more. Its drop is foreign code, and comes last in a call;
/// if that call is unwinding already, a second panic would abort the process, and ends here (with
/// `std`).
pub(crate) struct Unused(Option<Waker>);

impl From<Option<Waker>> for Unused {
    fn from(waker: Option<Waker>) -> Self {
        Self(waker)
    }
}

impl Drop for Unused {
    #[inline]
    fn drop(&mut self) {
        if let Some(waker) = self.0.take() {
            #[cfg(feature = "std")]
            if std::thread::panicking() {
                return drop_quietly(waker);
            }
            drop(waker);
        }
    }
}

/// Drops a waker that nobody waits for the drop of: a panic of its ends here (with `std`).
pub(crate) fn drop_quietly(waker: Waker) {
    #[cfg(feature = "std")]
    if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(waker))) {
        core::mem::forget(panic);
    }
    #[cfg(not(feature = "std"))]
    drop(waker);
}

#[cfg(feature = "std")]
mod frames {
    use core::cell::Cell;

    use super::{Raw, Wakes};
    use crate::sync::local;

    local! {
        static TOP: Cell<*const Frame> = Cell::new(core::ptr::null());
    }

    /// A call that is waking, on this thread's stack.
    pub(super) struct Frame {
        raw: *const Raw,
        outer: *const Frame,
        wakes: *mut Wakes,
    }

    impl Frame {
        /// The caller leaves `wakes` to the frame for as long as the frame is entered (K2).
        pub(super) fn new(raw: &Raw, wakes: &mut Wakes) -> Self {
            Self { raw, outer: TOP.with(Cell::get), wakes }
        }

        pub(super) fn wakes(&self) -> *mut Wakes {
            self.wakes
        }

        pub(super) fn enter(&self) -> Entered<'_> {
            TOP.with(|top| top.set(self));
            Entered(self)
        }
    }

    /// While it lives, inner calls find the frame (K1).
    pub(super) struct Entered<'a>(&'a Frame);

    impl Drop for Entered<'_> {
        fn drop(&mut self) {
            TOP.with(|top| top.set(self.0.outer));
        }
    }

    /// The wakes of the call that is waking for `raw` on this thread.
    #[inline(always)]
    pub(super) fn find(raw: &Raw) -> Option<*mut Wakes> {
        let mut at = TOP.with(Cell::get);
        while !at.is_null() {
            // SAFETY: K1.
            let frame = unsafe { &*at };
            if core::ptr::eq(frame.raw, raw) {
                return Some(frame.wakes);
            }
            at = frame.outer;
        }
        None
    }
}
