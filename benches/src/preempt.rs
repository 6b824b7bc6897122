//! Threads that are stopped at random moments, the same for every contender.
//!
//! A signal is sent to a thread chosen at random; its handler sleeps. So a thread stands still
//! wherever it happens to be, in the middle of an operation too, as it does when the kernel takes
//! its processor away, only more often. A thread counts its own naps, so that what it was itself
//! asleep for can be told from what it waited for others.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long a thread stands still.
pub const NAP: Duration = Duration::from_micros(500);
/// Between one nap and the next, of all threads together, at most.
pub const PAUSE: Duration = Duration::from_micros(400);

thread_local! {
    // Has no destructor and needs no initialisation, so that the handler may use it.
    static NAPS: Cell<u64> = const { Cell::new(0) };
}

/// How many naps this thread has had.
#[must_use]
pub fn naps() -> u64 {
    NAPS.get()
}

extern "C" fn nap(_signal: libc::c_int) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: i64::from(NAP.subsec_nanos()) };
    // SAFETY: `nanosleep` may be called from a handler; `time` lives for the length of the call.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
    NAPS.set(NAPS.get() + 1);
}

/// A thread that can be sent a signal for as long as it runs.
#[derive(Clone, Copy, Debug)]
pub struct Target(libc::pthread_t);

impl Target {
    /// The calling thread.
    #[must_use]
    pub fn current() -> Self {
        // SAFETY: has no conditions.
        Self(unsafe { libc::pthread_self() })
    }
}

/// Lets the kernel run [`nap`] when the signal comes.
///
/// # Panics
///
/// If the kernel refuses.
pub fn install() {
    let handler = nap as extern "C" fn(libc::c_int);
    // SAFETY: all zero is a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler calls nothing that a handler may not call.
    let result = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
    assert_eq!(result, 0, "sigaction");
}

/// Sends the signal to one after the other of `targets`, chosen at random, until `stop`. All of them
/// have to run until this has returned.
pub fn disturb(targets: &[Target], stop: &AtomicBool) {
    let mut random = fastrand::Rng::with_seed(7);
    while !stop.load(Relaxed) {
        std::thread::sleep(PAUSE.mul_f64(random.f64()));
        let Target(thread) = targets[random.usize(..targets.len())];
        // SAFETY: the thread runs still, as the caller promises by when it lets threads end.
        unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
    }
}
