//! Rows D, E, F and the second half of G: those who wait, on one thread.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use super::leaked;
use crate::contender::Contender;
use crate::measure::{Run, Watch};
use crate::places::{Places, waker};

/// A burst that is timed as one is at least so many operations, so that reading the clock is small
/// beside it.
const BURST: usize = 64;

fn expect<T>(poll: Poll<T>) -> T {
    match poll {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the permit was handed over"),
    }
}

/// D: `waiters` join a queue, and then each is handed the permit: the lease dropped, the woken polled,
/// its future dropped. Figures: joining, hand-off, both together. With few waiters it does so on many
/// semaphores in turn.
///
/// The hand-offs drain the queue, so they see every length up to `waiters`.
#[must_use]
pub fn enqueue_and_hand_off<C: Contender>(waiters: usize) -> Run {
    let beds = BURST.div_ceil(waiters);
    let semaphores: Vec<&'static C> = (0..beds).map(|_| leaked(1)).collect();
    let mut futures = Places::new(beds * waiters);
    let waker = waker();
    Box::new(move |operations| {
        let mut cx = Context::from_waker(&waker);
        let (mut joining, mut handing) = (Watch::new(), Watch::new());
        let burst = futures.len() as u64;
        for _ in 0..(operations / C::SLOWNESS).div_ceil(burst) {
            let mut leases: Vec<_> =
                semaphores.iter().map(|s| Some(s.try_acquire(1).expect("free"))).collect();
            joining.time(burst, || {
                for (bed, semaphore) in semaphores.iter().enumerate() {
                    for at in bed * waiters..(bed + 1) * waiters {
                        let poll = futures.start(at, semaphore.acquire(1), &mut cx);
                        assert!(poll.is_pending());
                    }
                }
            });
            handing.time(burst, || {
                for (bed, lease) in leases.iter_mut().enumerate() {
                    for at in bed * waiters..(bed + 1) * waiters {
                        drop(lease.take());
                        *lease = Some(expect(futures.poll(at, &mut cx)));
                        futures.clear(at);
                    }
                }
            });
            drop(leases);
        }
        assert!(semaphores.iter().all(|s| s.available() == 1));
        let (joining, handing) = (joining.nanoseconds(), handing.nanoseconds());
        vec![joining, handing, joining + handing]
    })
}

/// D, both at one length: a queue of `waiters`, of which the first is handed the permit and joins
/// again as the last.
#[must_use]
pub fn around<C: Contender>(waiters: usize) -> Run {
    let semaphore = leaked::<C>(1);
    let mut futures = Places::new(waiters);
    let waker = waker();
    Box::new(move |operations| {
        let mut cx = Context::from_waker(&waker);
        let mut watch = Watch::new();
        let mut lease = semaphore.try_acquire(1);
        for at in 0..waiters {
            assert!(futures.start(at, semaphore.acquire(1), &mut cx).is_pending());
        }
        // From the ends of the queue it goes on in whole turns.
        let turns = (operations / C::SLOWNESS).div_ceil(waiters as u64);
        watch.time(turns * waiters as u64, || {
            for _ in 0..turns {
                for at in 0..waiters {
                    drop(lease.take());
                    lease = Some(expect(futures.poll(at, &mut cx)));
                    let poll = futures.start(at, semaphore.acquire(1), &mut cx);
                    assert!(poll.is_pending());
                }
            }
        });
        (0..waiters).for_each(|at| futures.clear(at));
        drop(lease.take());
        assert_eq!(semaphore.available(), 1);
        vec![watch.nanoseconds()]
    })
}

/// In which order waiters leave.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// The oldest first.
    Front,
    /// The newest first.
    Back,
    /// In no order, the same for each contender.
    Random,
    /// Every second one from the front, then the others.
    Alternate,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Front, Self::Back, Self::Random, Self::Alternate];

    /// As it stands in the tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Front => "front",
            Self::Back => "back",
            Self::Random => "random",
            Self::Alternate => "alternate",
        }
    }

    /// The order of so many waiters.
    #[must_use]
    pub fn of(self, waiters: usize) -> Vec<usize> {
        match self {
            Self::Front => (0..waiters).collect(),
            Self::Back => (0..waiters).rev().collect(),
            Self::Random => {
                let mut order: Vec<_> = (0..waiters).collect();
                fastrand::Rng::with_seed(42).shuffle(&mut order);
                order
            }
            Self::Alternate => (0..waiters).step_by(2).chain((1..waiters).step_by(2)).collect(),
        }
    }
}

/// E: all of `waiters` leave.
#[must_use]
pub fn cancel<C: Contender>(waiters: usize, order: Order) -> Run {
    let semaphore = leaked::<C>(1);
    let mut futures = Places::new(waiters);
    let waker = waker();
    let order = order.of(waiters);
    Box::new(move |operations| {
        let mut cx = Context::from_waker(&waker);
        let mut watch = Watch::new();
        for _ in 0..(operations / C::SLOWNESS).div_ceil(waiters as u64) {
            let lease = semaphore.try_acquire(1);
            assert!(lease.is_some());
            for at in 0..waiters {
                assert!(futures.start(at, semaphore.acquire(1), &mut cx).is_pending());
            }
            watch.time(waiters as u64, || order.iter().for_each(|at| futures.clear(*at)));
            drop(lease);
            assert_eq!(semaphore.available(), 1);
        }
        vec![watch.nanoseconds()]
    })
}

/// F: `operations` waiters join and leave between two that stay. Figures: joining and leaving of
/// one; the release after it all; the same release with no storm before.
///
/// The two releases are single ones, and cold.
#[must_use]
pub fn storm<C: Contender>() -> Run {
    let semaphore = leaked::<C>(1);
    let mut futures = Places::new(3);
    let waker = waker();
    Box::new(move |operations| {
        let mut cx = Context::from_waker(&waker);
        let (mut cancels, mut calm, mut after) = (Watch::new(), Watch::new(), Watch::new());
        for (release, storm) in [(&mut calm, 0), (&mut after, operations)] {
            let lease = semaphore.try_acquire(1);
            assert!(lease.is_some());
            // The head stays in place 0. The tail is in 1 or 2, and leaves when the next has joined.
            for at in [0, 1] {
                assert!(futures.start(at, semaphore.acquire(1), &mut cx).is_pending());
            }
            let mut tail = 1;
            cancels.time(storm, || {
                for _ in 0..storm {
                    let next = 3 - tail;
                    let poll = futures.start(next, semaphore.acquire(1), &mut cx);
                    assert!(poll.is_pending());
                    futures.clear(tail);
                    tail = next;
                }
            });
            release.time(1, || drop(lease));
            drop(expect(futures.poll(0, &mut cx)));
            drop(expect(futures.poll(tail, &mut cx)));
            (0..3).for_each(|at| futures.clear(at));
        }
        assert_eq!(semaphore.available(), 1);
        vec![cancels.nanoseconds(), after.nanoseconds(), calm.nanoseconds()]
    })
}

/// G: one release serves `waiters` at once, each of which is polled and dropped. For each of them.
#[must_use]
pub fn batch<C: Contender>(waiters: usize) -> Run {
    let semaphore = leaked::<C>(waiters);
    let mut futures = Places::new(waiters);
    let waker = waker();
    Box::new(move |operations| {
        let mut cx = Context::from_waker(&waker);
        let mut watch = Watch::new();
        let mut leases = VecDeque::with_capacity(waiters);
        for _ in 0..(operations / C::SLOWNESS).div_ceil(waiters as u64) {
            let all = semaphore.try_acquire(waiters as u32);
            assert!(all.is_some());
            for at in 0..waiters {
                assert!(futures.start(at, semaphore.acquire(1), &mut cx).is_pending());
            }
            watch.time(waiters as u64, || {
                drop(all);
                for at in 0..waiters {
                    leases.push_back(expect(futures.poll(at, &mut cx)));
                    futures.clear(at);
                }
            });
            leases.clear();
        }
        assert_eq!(semaphore.available(), waiters);
        vec![watch.nanoseconds()]
    })
}
