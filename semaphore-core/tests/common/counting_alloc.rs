//! An allocator that keeps count, for each thread apart: the test harness allocates on others.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// To be declared as `#[global_allocator]`.
pub(crate) struct CountingAlloc;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Calls that allocated, and bytes that were allocated and not freed, on this thread so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heap {
    pub(crate) calls: usize,
    pub(crate) bytes: isize,
}

impl Heap {
    pub(crate) fn now() -> Self {
        Self { calls: CALLS.get(), bytes: BYTES.get() }
    }

    /// What has changed from `before` to now.
    pub(crate) fn since(before: Self) -> Self {
        let now = Self::now();
        Self { calls: now.calls - before.calls, bytes: now.bytes - before.bytes }
    }

    pub(crate) const UNTOUCHED: Self = Self { calls: 0, bytes: 0 };
}

fn note(calls: usize, bytes: isize) {
    CALLS.set(CALLS.get() + calls);
    BYTES.set(BYTES.get() + bytes);
}

// SAFETY: all is done by `System`; the counters neither allocate nor have destructors.
unsafe impl GlobalAlloc for CountingAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size().cast_signed());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note(0, -layout.size().cast_signed());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size().cast_signed());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, size.cast_signed() - layout.size().cast_signed());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }
}
