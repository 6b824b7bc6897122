//! Hooks for model checkers. Exists in builds with the feature `loom` or `shuttle` alone.
//!
//! A checker installs a *tap* with [`listen`]; from then on each write to a shared word of any
//! semaphore on this OS thread is handed to it, with the word before and after, and with no
//! scheduling point in between: what the tap keeps is ghost state. Both checkers run all their
//! model threads on one OS thread, so an ordinary thread-local is shared by them and by nobody else.
//!
//! loom keeps one last access per atomic, and so misses interleavings of a load with a later
//! compare-exchange even in an unbounded run (its issues #166 and #392). [`strong`] turns every
//! load and store into a read-modify-write, which loom does interleave in full. The weak memory
//! behaviours are only seen without it: run each scenario both ways.

use std::boxed::Box;
use std::cell::{Cell, RefCell};

pub use crate::queue::Raw;
pub use crate::state::{Body, Handle, Place, SlotIndex, State, Status, WaiterWord};
pub use crate::sync::{Line, Role};

/// A write to a shared word.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// What the word is for.
    pub role: Role,
    /// The word that was replaced; not known for a plain store.
    pub before: Option<u64>,
    /// The word now.
    pub after: u64,
}

type Tap = Box<dyn FnMut(&Write)>;

std::thread_local! {
    static TAP: RefCell<Option<Tap>> = const { RefCell::new(None) };
    static STRONG: Cell<bool> = const { Cell::new(false) };
}

/// Installs the tap of this OS thread and returns the one before it.
pub fn listen(tap: Option<Tap>) -> Option<Tap> {
    TAP.with(|cell| cell.replace(tap))
}

/// Whether every load and store is to be a read-modify-write from here on.
pub fn strong(on: bool) {
    STRONG.with(|cell| cell.set(on));
}

pub(crate) fn loads_are_rmws() -> bool {
    STRONG.with(Cell::get)
}

pub(crate) fn report(write: &Write) {
    TAP.with(|cell| {
        // A tap that touches a semaphore would report to itself: not borrowed twice, not told.
        if let Ok(mut tap) = cell.try_borrow_mut()
            && let Some(tap) = tap.as_mut()
        {
            tap(write);
        }
    });
}
