//! What an embedded program brings along: an allocator, a panic handler, and something that polls.
//!
//! `consumer_run` queues, grants, cancels and closes, and returns 0 if all went as it should. `main.c`
//! calls it; the build alone shows that the crate needs no `std`.
#![no_std]

extern crate alloc;

use alloc::sync::Arc;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::pin::Pin;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};

use semaphore_core::{AcquireError, Semaphore};

const HEAP: usize = 64 * 1024;

/// Hands out one piece of memory from front to back, and takes nothing back.
struct Bump {
    memory: UnsafeCell<[u8; HEAP]>,
    used: AtomicUsize,
}

// SAFETY: each byte is handed out once.
unsafe impl Sync for Bump {}

// SAFETY: what is returned is inside of `memory`, aligned, and not handed out twice: the range was
// reserved by the exchange.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.memory.get().addr();
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let start = (base + used).next_multiple_of(layout.align()) - base;
            let end = start + layout.size();
            if end > HEAP {
                return null_mut();
            }
            match self.used.compare_exchange(used, end, Ordering::Relaxed, Ordering::Relaxed) {
                // SAFETY: `start` is inside of `memory`, by the check above.
                Ok(_) => return unsafe { self.memory.get().cast::<u8>().add(start) },
                Err(now) => used = now,
            }
        }
    }

    unsafe fn dealloc(&self, _at: *mut u8, _layout: Layout) {}
}

#[global_allocator]
static HEAP_MEMORY: Bump = Bump { memory: UnsafeCell::new([0; HEAP]), used: AtomicUsize::new(0) };

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    loop {}
}

static PERMITS: Semaphore = Semaphore::new(1);

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Runs the semaphore through its paces: 0 if all is well, or the number of the step that failed.
#[unsafe(no_mangle)]
pub extern "C" fn consumer_run() -> i32 {
    let Ok(held) = PERMITS.try_acquire() else { return 1 };
    let mut first = PERMITS.acquire().enqueue();
    let gone = PERMITS.acquire().enqueue();
    let mut last = PERMITS.acquire().enqueue();
    if poll(&mut first).is_ready() || PERMITS.waiters() != 3 {
        return 2;
    }
    drop(gone);
    held.release();
    let Poll::Ready(Ok(lease)) = poll(&mut first) else { return 3 };
    PERMITS.close();
    if !matches!(poll(&mut last), Poll::Ready(Err(AcquireError::Closed))) {
        return 4;
    }
    drop(lease);
    if poll(&mut PERMITS.drained()).is_pending() {
        return 5;
    }
    let shared = Arc::new(Semaphore::growable(0));
    let mut owned = Arc::clone(&shared).acquire_many_owned(2);
    if poll(&mut owned).is_ready() || shared.add_permits(2).is_err() {
        return 6;
    }
    let Poll::Ready(Ok(lease)) = poll(&mut owned) else { return 7 };
    if lease.wrap(|| shared.available_permits())() != 0 || shared.available_permits() != 2 {
        return 8;
    }
    0
}
