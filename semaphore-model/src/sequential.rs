//! Sequences of calls on the real semaphore, one after the other, each held against the specification.
//!
//! Nothing is modelled here: the semaphore is the one that ships, on the atomics of the machine. There is one
//! thread, so [`Spec`] leaves no choice: each call has one right answer. What random sequences reach, and the
//! scenarios of the catalogue do not, is length: hundreds of calls, with slots that are used again and again.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use semaphore_core::{
    AcquireError, AcquireOwned, OwnedLease, Semaphore, TryAcquireError, WithDeadline,
};

use crate::op::{Op, Said};
use crate::spec::Spec;

/// A call, with the requests and leases that it is made on counted among those that there are then.
///
/// Where there are none nothing is called; so each part of a sequence is a sequence, and shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `try_acquire_many`.
    Try(u32),
    /// A request for so many is polled for the first time.
    Ask(u32),
    /// A request for so many takes its place and is not polled.
    Enqueue(u32),
    /// A request is polled with the waker that it had last.
    Poll(u8),
    /// A request is polled with a waker that it has not seen.
    Repoll(u8),
    /// A request is dropped.
    Cancel(u8),
    /// A request's deadline comes, and it is polled.
    TimeOut(u8),
    /// A lease is given back.
    Release(u8),
    /// A permit of a lease is given back.
    ReleasePart(u8),
    /// A lease of two permits or more gives one to a new lease.
    Split(u8),
    /// A lease takes in another.
    Merge(u8, u8),
    /// A lease is forgotten.
    Forget(u8),
    /// Permits are added.
    Grow(u8),
    /// The semaphore is closed.
    Close,
}

impl Choice {
    /// The choice that three bytes stand for; each has some.
    pub fn from_bytes([kind, a, b]: [u8; 3]) -> Self {
        let weight = u32::from(a % 5);
        match kind % 32 {
            0..=2 => Self::Try(weight),
            3..=8 => Self::Ask(weight),
            9..=11 => Self::Enqueue(weight),
            12..=14 => Self::Poll(a),
            15 | 16 => Self::Repoll(a),
            17..=19 => Self::Cancel(a),
            20 | 21 => Self::TimeOut(a),
            22..=25 => Self::Release(a),
            26 => Self::ReleasePart(a),
            27 => Self::Split(a),
            28 => Self::Merge(a, b),
            29 => Self::Forget(a),
            30 => Self::Grow(a % 3),
            _ if b < 32 => Self::Close,
            _ => Self::Poll(a),
        }
    }
}

/// Counts how often it was woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A deadline that comes when it is told to.
#[derive(Clone, Default)]
struct Deadline(Arc<AtomicUsize>);

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.load(Ordering::Relaxed) == 0 { Poll::Pending } else { Poll::Ready(()) }
    }
}

struct Request {
    future: WithDeadline<AcquireOwned, Deadline>,
    deadline: Deadline,
    bell: Arc<Bell>,
    polled: bool,
}

/// The two side by side.
struct Both {
    real: Arc<Semaphore>,
    spec: Spec,
    requests: BTreeMap<usize, Request>,
    leases: BTreeMap<usize, OwnedLease>,
    next: usize,
}

/// Where the semaphore and its specification part.
#[derive(Debug)]
pub struct Parted(String);

impl fmt::Display for Parted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Parted {}

fn nth<V>(of: &BTreeMap<usize, V>, n: u8) -> Option<usize> {
    let at = usize::from(n).checked_rem(of.len())?;
    of.keys().nth(at).copied()
}

impl Both {
    fn new(permits: u32, ceiling: u32, limit: Option<usize>) -> Self {
        let mut builder = Semaphore::builder().permits(permits as usize).ceiling(ceiling as usize);
        if let Some(limit) = limit {
            builder = builder.max_waiters(limit);
        }
        Self {
            real: Arc::new(builder.build().expect("a sensible semaphore")),
            spec: Spec::new(permits.into(), ceiling.into(), limit),
            requests: BTreeMap::new(),
            leases: BTreeMap::new(),
            next: 0,
        }
    }

    fn op(&mut self, choice: Choice) -> Option<Op> {
        let new = self.next;
        self.next += 1;
        let request = |n| nth(&self.requests, n);
        let lease = |n| nth(&self.leases, n);
        let permits = |l: &usize| self.leases[l].num_permits();
        Some(match choice {
            Choice::Try(k) => Op::Try(new, k),
            Choice::Ask(k) => Op::Ask(new, k),
            Choice::Enqueue(k) => Op::Enqueue(new, k),
            Choice::Poll(n) => Op::Poll(request(n)?),
            Choice::Repoll(n) => Op::Repoll(request(n)?),
            Choice::Cancel(n) => Op::Cancel(request(n)?),
            Choice::TimeOut(n) => Op::TimeOut(request(n)?),
            Choice::Release(n) => Op::Release(lease(n)?),
            Choice::ReleasePart(n) => Op::ReleasePart(lease(n).filter(|l| permits(l) > 0)?, 1),
            Choice::Split(n) => Op::Split(lease(n).filter(|l| permits(l) > 1)?, 1, new),
            Choice::Merge(to, from) => {
                let (to, from) = (lease(to)?, lease(from)?);
                (to != from).then_some(Op::Merge(to, from))?
            }
            Choice::Forget(n) => Op::Forget(lease(n)?),
            Choice::Grow(n) => Op::Grow(n.into()),
            Choice::Close => Op::Close,
        })
    }

    fn ask(&mut self, r: usize, k: u32, enqueue: bool) {
        let deadline = Deadline::default();
        let future = Arc::clone(&self.real).acquire_many_owned(k);
        let future = if enqueue { future.enqueue() } else { future };
        let future = future.with_deadline(deadline.clone());
        let bell = Arc::default();
        self.requests.insert(r, Request { future, deadline, bell, polled: false });
    }

    fn poll(&mut self, r: usize) -> Result<Said, Parted> {
        let request = self.requests.get_mut(&r).expect("a request");
        let waker = Waker::from(Arc::clone(&request.bell));
        let result = Pin::new(&mut request.future).poll(&mut Context::from_waker(&waker));
        let slept = std::mem::replace(&mut request.polled, true);
        let late = request.deadline.0.load(Ordering::Relaxed) != 0;
        let Poll::Ready(result) = result else { return Ok(Said::Pending) };
        if slept && !late && request.bell.0.load(Ordering::Relaxed) == 0 {
            return Err(Parted(format!("request {r} slept, is ready, and was not woken")));
        }
        self.requests.remove(&r);
        Ok(match result {
            Ok(lease) => {
                self.leases.insert(r, lease);
                Said::Lease
            }
            Err(AcquireError::Closed) => Said::Closed,
            Err(AcquireError::TimedOut) => Said::TimedOut,
            Err(AcquireError::QueueFull) => Said::Full,
            Err(AcquireError::ExceedsCapacity { .. }) => Said::TooMany,
        })
    }

    fn perform(&mut self, op: Op) -> Result<Said, Parted> {
        match op {
            Op::Try(l, k) => {
                return Ok(match Arc::clone(&self.real).try_acquire_many_owned(k) {
                    Ok(lease) => {
                        self.leases.insert(l, lease);
                        Said::Lease
                    }
                    Err(TryAcquireError::NoPermits) => Said::NoPermits,
                    Err(TryAcquireError::Closed) => Said::Closed,
                    Err(TryAcquireError::ExceedsCapacity { .. }) => Said::TooMany,
                });
            }
            Op::Ask(r, k) => {
                self.ask(r, k, false);
                return self.poll(r);
            }
            Op::Enqueue(r, k) => self.ask(r, k, true),
            Op::Poll(r) => return self.poll(r),
            Op::Repoll(r) => {
                let request = self.requests.get_mut(&r).expect("a request");
                let rung = request.bell.0.load(Ordering::Relaxed);
                request.bell = Arc::new(Bell(AtomicUsize::new(rung)));
                return self.poll(r);
            }
            Op::TimeOut(r) => {
                self.requests[&r].deadline.0.store(1, Ordering::Relaxed);
                return self.poll(r);
            }
            Op::Cancel(r) => {
                self.requests.remove(&r);
            }
            Op::Release(l) => {
                self.leases.remove(&l);
            }
            Op::ReleasePart(l, n) => {
                let part = self.leases.get_mut(&l).and_then(|lease| lease.split(n));
                part.expect("a part").release();
            }
            Op::Split(l, n, new) => {
                let part = self.leases.get_mut(&l).and_then(|lease| lease.split(n));
                self.leases.insert(new, part.expect("a part"));
            }
            Op::Merge(to, from) => {
                let other = self.leases.remove(&from).expect("a lease");
                self.leases.get_mut(&to).expect("a lease").merge(other).expect("of one semaphore");
            }
            Op::Forget(l) => self.leases.remove(&l).expect("a lease").forget(),
            Op::Grow(n) => {
                let grown = self.real.add_permits(n);
                return Ok(if grown.is_ok() { Said::Nothing } else { Said::TooMany });
            }
            Op::Close => self.real.close(),
            _ => unreachable!("no choice leads to {op:?}"),
        }
        Ok(Said::Nothing)
    }

    /// Makes a call on both, and compares what they say and how they stand.
    fn step(&mut self, op: Op) -> Result<(), Parted> {
        let said = self.perform(op)?;
        // Whether a dropped request had its permits cannot be seen from outside.
        let before = self.spec.clone();
        let mut hand = match self.spec.call(op, 0, Some(said)) {
            None if matches!(op, Op::Cancel(_)) => {
                self.spec = before;
                self.spec.call(op, 0, Some(Said::PassedOn))
            }
            hand => hand,
        }
        .ok_or_else(|| Parted(format!("{op:?} said {said}, and should not")))?;
        while hand > 0 {
            hand = self.spec.place(hand);
        }
        self.spec.arrive();
        let free = self.real.available_permits();
        if self.spec.call(Op::Available, 0, Some(Said::Figure(free as u64))).is_none() {
            return Err(Parted(format!("after {op:?} {free} are available, and should not be")));
        }
        Ok(())
    }

    /// All leases go back and all requests are polled, until nothing is left; then nothing may be missing.
    fn finish(mut self) -> Result<(), Parted> {
        while !(self.leases.is_empty() && self.requests.is_empty()) {
            for l in self.leases.keys().copied().collect::<Vec<_>>() {
                self.step(Op::Release(l))?;
            }
            for r in self.requests.keys().copied().collect::<Vec<_>>() {
                self.step(Op::Poll(r))?;
            }
            if self.leases.is_empty() && !self.requests.is_empty() {
                // What asks for more than there are waits for ever, and the others behind it.
                let oldest = *self.requests.keys().next().expect("one");
                self.step(Op::Cancel(oldest))?;
            }
        }
        let end = self.real.snapshot();
        if (end.available, end.waiters) == (end.capacity, 0) {
            Ok(())
        } else {
            Err(Parted(format!("with no lease and no request left: {end:?}")))
        }
    }
}

/// Makes these calls, and all that is needed to come to an end.
///
/// # Errors
///
/// Where the real semaphore does what the specification does not allow: with the calls up to there.
pub fn check(
    permits: u32,
    ceiling: u32,
    limit: Option<usize>,
    choices: impl IntoIterator<Item = Choice>,
) -> Result<(), Parted> {
    let mut both = Both::new(permits, ceiling, limit);
    for choice in choices {
        if let Some(op) = both.op(choice) {
            both.step(op)?;
        }
    }
    both.finish()
}
