//! Latency as a distribution.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::contender::Contender;
use crate::places::waker;
use crate::preempt::{Target, disturb, naps};

/// How the threads of a run are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// How many there are.
    pub threads: usize,
    /// They are stopped at random moments.
    pub naps: bool,
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// An empty histogram of up to a minute, in nanoseconds: a wider value counts as that.
#[must_use]
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("valid bounds")
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// Runs `work` on each thread until the time is up, which it is told by the flag.
fn run(
    load: Load,
    time: Duration,
    work: impl Fn(&AtomicBool, &mut Histogram<u64>) + Sync,
) -> Histogram<u64> {
    let stop = AtomicBool::new(false);
    let quiet = AtomicBool::new(false);
    let start = Barrier::new(load.threads + 1);
    let end = Barrier::new(load.threads + 1);
    let targets = Mutex::new(Vec::new());
    let mut all = histogram();
    std::thread::scope(|scope| {
        let body = || {
            targets.lock().expect("nobody panics").push(Target::current());
            let mut own = histogram();
            start.wait();
            work(&stop, &mut own);
            // A target stays until nobody sends signals any more.
            end.wait();
            own
        };
        let threads: Vec<_> = (0..load.threads).map(|_| scope.spawn(body)).collect();
        start.wait();
        let targets = targets.lock().expect("nobody panics").clone();
        let until = &quiet;
        let disturber = load.naps.then(|| scope.spawn(move || disturb(&targets, until)));
        std::thread::sleep(time);
        quiet.store(true, Relaxed);
        if let Some(disturber) = disturber {
            disturber.join().expect("it does not panic");
        }
        stop.store(true, Relaxed);
        end.wait();
        for thread in threads {
            all.add(thread.join().expect("it does not panic")).expect("the same bounds");
        }
    });
    all
}

/// How long it takes to take a permit and give it back, when there is one for each thread, and so
/// nobody ever has to wait. Calls in which the caller itself was stopped do not count.
#[must_use]
pub fn acquire<C: Contender>(load: Load, time: Duration) -> Histogram<u64> {
    let semaphore = C::new(load.threads);
    let all = run(load, time, |stop, histogram| {
        let waker = waker();
        let mut cx = Context::from_waker(&waker);
        while !stop.load(Relaxed) {
            let asleep = naps();
            let begun = Instant::now();
            let Poll::Ready(lease) = pin!(semaphore.acquire(1)).poll(&mut cx) else {
                panic!("there is a permit for each thread")
            };
            drop(lease);
            let took = begun.elapsed();
            if naps() == asleep {
                histogram.saturating_record(nanoseconds(took));
            }
        }
    });
    assert_eq!(semaphore.available(), load.threads);
    all
}

/// How long it takes from the moment at which a lease is dropped until the one who waited runs with
/// it: threads that park, and one permit. Hand-offs in which the one who waited was
/// itself stopped do not count.
#[must_use]
pub fn hand_off<C: Contender>(load: Load, time: Duration) -> Histogram<u64> {
    let permits = 1;
    let semaphore = C::new(permits);
    let clock = Instant::now();
    let released = AtomicU64::new(0);
    let all = run(load, time, |stop, histogram| {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut cx = Context::from_waker(&waker);
        while !stop.load(Relaxed) {
            let asleep = naps();
            let mut waited = false;
            let lease = {
                let mut request = pin!(semaphore.acquire(1));
                loop {
                    match request.as_mut().poll(&mut cx) {
                        Poll::Ready(lease) => break lease,
                        Poll::Pending => {
                            waited = true;
                            std::thread::park();
                        }
                    }
                }
            };
            // One permit: whoever has it is the only one to use `released`.
            let now = nanoseconds(clock.elapsed());
            if waited && naps() == asleep {
                histogram.saturating_record(now.saturating_sub(released.load(Acquire)).max(1));
            }
            released.store(nanoseconds(clock.elapsed()), Release);
            drop(lease);
        }
    });
    assert_eq!(semaphore.available(), permits);
    all
}
