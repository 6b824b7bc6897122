//! The rows of one thread as work whose instructions are counted: all that it needs is made before,
//! and nothing is dropped within.

use std::hint::black_box;
use std::task::{Context, Poll};

use super::leaked;
use super::queue::Order;
use super::uncontended::{PERMITS, acquire_once, acquire_owned_once, try_acquire_once};
use crate::contender::{Blocking, Contender, Owned};
use crate::places::{Places, waker};

/// Work with all that it needs.
pub type Work = Box<dyn FnMut()>;

/// Operations of a piece of work, unless it says otherwise.
pub const OPERATIONS: usize = 1024;

/// A: `try_acquire` and drop.
#[must_use]
pub fn try_acquire<C: Contender>() -> Work {
    let semaphore = leaked::<C>(PERMITS);
    Box::new(move || (0..OPERATIONS).for_each(|_| try_acquire_once(semaphore, 1)))
}

/// B1, and G with `n` permits: `acquire` polled once, ready, and drop.
#[must_use]
pub fn acquire<C: Contender>(n: u32) -> Work {
    let semaphore = leaked::<C>(PERMITS.max(n as usize));
    let waker = waker();
    Box::new(move || {
        let mut cx = Context::from_waker(&waker);
        (0..OPERATIONS).for_each(|_| acquire_once(semaphore, n, &mut cx));
    })
}

/// B2: the same, owned.
#[must_use]
pub fn acquire_owned<C: Owned>() -> Work {
    let semaphore = C::new(PERMITS);
    let waker = waker();
    Box::new(move || {
        let mut cx = Context::from_waker(&waker);
        (0..OPERATIONS).for_each(|_| acquire_owned_once(&semaphore, &mut cx));
    })
}

/// B3: blocking.
#[must_use]
pub fn acquire_blocking<C: Blocking>() -> Work {
    let semaphore = leaked::<C>(PERMITS);
    Box::new(move || {
        for _ in 0..OPERATIONS {
            drop(black_box(black_box(semaphore).acquire_blocking()));
        }
    })
}

/// What is counted of waiting.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Joining a queue of that many others.
    Enqueue,
    /// Being handed the permit, first of that many.
    HandOff,
}

/// D: 1,024 join a queue, or are served, that has `waiters` in it when it is longest, or as
/// many queues of `waiters` as make 1,024. All slots and buffers are warm.
///
/// # Panics
///
/// If `waiters` is neither a divisor nor a multiple of 1,024.
#[must_use]
pub fn wait<C: Contender>(waiters: usize, part: Part) -> Work {
    let beds = OPERATIONS.div_ceil(waiters);
    assert!(OPERATIONS.is_multiple_of(waiters) || waiters.is_multiple_of(OPERATIONS));
    let semaphores: Vec<&'static C> = (0..beds).map(|_| leaked(1)).collect();
    let mut futures = Places::new(beds * waiters);
    let waker = waker();
    let mut leases: Vec<_> =
        semaphores.iter().map(|s| Some(s.try_acquire(1).expect("free"))).collect();
    let mut cx = Context::from_waker(&waker);
    // In and out again, for pools and buffers to be as large as they will be: with few waiters so
    // often that each slot of a first chunk was in use.
    for _ in 0..(32 / waiters).max(1) {
        for (bed, semaphore) in semaphores.iter().enumerate() {
            for at in bed * waiters..(bed + 1) * waiters {
                assert!(futures.start(at, semaphore.acquire(1), &mut cx).is_pending());
            }
            for at in bed * waiters..(bed + 1) * waiters {
                drop(leases[bed].take());
                let Poll::Ready(lease) = futures.poll(at, &mut cx) else { panic!("handed over") };
                leases[bed] = Some(lease);
                futures.clear(at);
            }
        }
    }
    let counted = waiters.min(OPERATIONS);
    let before = match part {
        Part::Enqueue => waiters - counted,
        Part::HandOff => waiters,
    };
    for (bed, semaphore) in semaphores.iter().enumerate() {
        for at in bed * waiters..bed * waiters + before {
            assert!(futures.start(at, semaphore.acquire(1), &mut cx).is_pending());
        }
    }
    match part {
        Part::Enqueue => Box::new(move || {
            let mut cx = Context::from_waker(&waker);
            let _held = &leases;
            for (bed, semaphore) in semaphores.iter().enumerate() {
                for at in bed * waiters + before..(bed + 1) * waiters {
                    assert!(futures.start(at, semaphore.acquire(1), &mut cx).is_pending());
                }
            }
        }),
        Part::HandOff => Box::new(move || {
            let mut cx = Context::from_waker(&waker);
            for (bed, lease) in leases.iter_mut().enumerate() {
                for at in bed * waiters..bed * waiters + counted {
                    drop(lease.take());
                    let Poll::Ready(next) = futures.poll(at, &mut cx) else {
                        panic!("the permit was handed over")
                    };
                    *lease = Some(next);
                    futures.clear(at);
                }
            }
        }),
    }
}

/// D: the first wait on each of 1,024 new semaphores.
#[must_use]
pub fn first_wait<C: Contender>() -> Work {
    let semaphores: Vec<&'static C> = (0..OPERATIONS).map(|_| leaked(1)).collect();
    let leases: Vec<_> = semaphores.iter().map(|s| s.try_acquire(1).expect("free")).collect();
    let mut futures = Places::new(OPERATIONS);
    let waker = waker();
    Box::new(move || {
        let mut cx = Context::from_waker(&waker);
        let _held = &leases;
        for (at, semaphore) in semaphores.iter().enumerate() {
            assert!(futures.start(at, semaphore.acquire(1), &mut cx).is_pending());
        }
    })
}

/// E: 1,024 wait, and all leave.
#[must_use]
pub fn cancel<C: Contender>(order: Order) -> Work {
    let semaphore = leaked::<C>(1);
    let lease = semaphore.try_acquire(1).expect("free");
    let mut futures = Places::new(OPERATIONS);
    let waker = waker();
    let mut cx = Context::from_waker(&waker);
    for at in 0..OPERATIONS {
        assert!(futures.start(at, semaphore.acquire(1), &mut cx).is_pending());
    }
    let order = order.of(OPERATIONS);
    Box::new(move || {
        let _held = &lease;
        for at in &order {
            futures.clear(*at);
        }
    })
}

/// G: a release serves 64 at once, sixteen times.
#[must_use]
pub fn batch<C: Contender>() -> Work {
    const AT_ONCE: usize = 64;
    let rounds = OPERATIONS / AT_ONCE;
    let semaphores: Vec<&'static C> = (0..rounds).map(|_| leaked(AT_ONCE)).collect();
    let mut all: Vec<_> =
        semaphores.iter().map(|s| Some(s.try_acquire(AT_ONCE as u32).expect("free"))).collect();
    let mut futures = Places::new(OPERATIONS);
    let waker = waker();
    let mut cx = Context::from_waker(&waker);
    for (at, semaphore) in semaphores.iter().flat_map(|s| [s; AT_ONCE]).enumerate() {
        assert!(futures.start(at, semaphore.acquire(1), &mut cx).is_pending());
    }
    let mut leases = Vec::with_capacity(OPERATIONS);
    Box::new(move || {
        let mut cx = Context::from_waker(&waker);
        for (round, all) in all.iter_mut().enumerate() {
            drop(all.take());
            for at in round * AT_ONCE..(round + 1) * AT_ONCE {
                let Poll::Ready(lease) = futures.poll(at, &mut cx) else { panic!("served") };
                leases.push(lease);
                futures.clear(at);
            }
        }
    })
}
