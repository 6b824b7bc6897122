//! What a semaphore is: a sequential program to be read aloud.
//!
//! A call is one step, [`Spec::call`], which decides what it answers and leaves some permits in its
//! hand. Then, as long as there are any, it takes steps of [`Spec::place`], each of which puts down
//! what one waiter lacks, or all that is left. Calls of other threads may come between any two of
//! these steps, and nowhere else. So a request has two points in time: it joins in a step of
//! its own, and is granted in a step of somebody's release.

use std::collections::BTreeMap;

use crate::op::{Op, Said};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Waiter {
    request: usize,
    need: u64,
    got: u64,
}

/// The semaphore, with its requests and leases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spec {
    /// N: how many permits exist.
    capacity: u64,
    /// The most that may ever exist.
    ceiling: u64,
    /// The most requests that may wait.
    limit: Option<usize>,
    /// Permits that may be taken. None, while anybody waits.
    free: u64,
    closed: bool,
    /// Closed, and all permits were back. For ever.
    drained: bool,
    /// Who waits, the oldest first.
    line: Vec<Waiter>,
    /// Requests that are decided, with the permits that they have, and that nobody polled since.
    decided: BTreeMap<usize, (Said, u64)>,
    leases: BTreeMap<usize, u64>,
    /// Parts of waiters that a close has ended, in the hands of whoever helped to end them.
    adrift: u64,
}

impl Spec {
    /// A semaphore of so many permits, open, with nobody in line.
    pub fn new(permits: u64, ceiling: u64, limit: Option<usize>) -> Self {
        Self { capacity: permits, ceiling, limit, free: permits, ..Self::default() }
    }

    /// The step in which `op` decides its answer. Says what is in its hand then; `None` if it cannot answer
    /// `said` now. With `said` unknown, as for a call that never returned, any answer will do.
    ///
    /// `others` calls are under way: each of them may count as one more in a bounded line.
    pub fn call(&mut self, op: Op, others: usize, said: Option<Said>) -> Option<u64> {
        let full = said == Some(Said::Full);
        let (answer, hand) = match op {
            Op::Try(lease, k) => {
                let answer = self.take(k);
                self.lease(lease, answer, k.into());
                (if answer == Said::Pending { Said::NoPermits } else { answer }, 0)
            }
            Op::Ask(request, k) => {
                let answer = self.join(request, k, full, others);
                self.lease(request, answer, u64::from(k));
                (answer, 0)
            }
            Op::Enqueue(request, k) => {
                let answer = self.join(request, k, full, others);
                if answer != Said::Pending {
                    self.decided.insert(request, (answer, u64::from(k)));
                }
                (Said::Nothing, 0)
            }
            Op::Poll(request) | Op::Repoll(request) => (self.poll(request), 0),
            Op::TimeOut(request) => match self.leave(request) {
                Some(got) => (Said::TimedOut, got),
                None => (self.poll(request), 0),
            },
            Op::Cancel(request) => match self.leave(request) {
                Some(got) => (Said::Nothing, got),
                None => match self.decided.remove(&request)? {
                    (Said::Lease, n) => (Said::PassedOn, n),
                    _ => (Said::Nothing, 0),
                },
            },
            Op::Release(lease) | Op::Panic(lease) => (Said::Nothing, self.leases.remove(&lease)?),
            Op::ReleasePart(lease, n) => (Said::Nothing, self.part(lease, n as u64)?),
            Op::Split(lease, n, new) => {
                let n = self.part(lease, n as u64)?;
                self.leases.insert(new, n);
                (Said::Nothing, 0)
            }
            Op::Merge(lease, other) => {
                let more = self.leases.remove(&other)?;
                *self.leases.get_mut(&lease)? += more;
                (Said::Nothing, 0)
            }
            Op::Forget(lease) => {
                self.capacity -= self.leases.remove(&lease)?;
                (Said::Nothing, 0)
            }
            Op::Grow(n) if self.capacity + n as u64 > self.ceiling => (Said::TooMany, 0),
            Op::Grow(n) => {
                self.capacity += n as u64;
                (Said::Nothing, n as u64)
            }
            // Debts are the audit's affair: these are never held against the specification.
            Op::SetCapacity(_) | Op::ForgetPermits(_) => return None,
            Op::Close => {
                self.closed = true;
                for waiter in self.line.drain(..) {
                    self.adrift += waiter.got;
                    self.decided.insert(waiter.request, (Said::Closed, 0));
                }
                (Said::Nothing, 0)
            }
            Op::Available => (Said::Figure(self.free), 0),
            Op::AskDrained(_) | Op::RepollDrained(_) => (Said::Drained(self.drained), 0),
            Op::CancelDrained(_) => (Said::Nothing, 0),
        };
        self.look();
        said.is_none_or(|said| said == answer).then_some(hand)
    }

    /// Puts down permits of a hand: to the oldest waiter what it lacks, or to the free ones all. Says what is
    /// left in the hand.
    pub fn place(&mut self, hand: u64) -> u64 {
        let Some(oldest) = self.line.first_mut() else {
            self.free += hand;
            self.look();
            return 0;
        };
        let lacks = oldest.need - oldest.got;
        if hand < lacks {
            oldest.got += hand;
            return 0;
        }
        self.decided.insert(oldest.request, (Said::Lease, oldest.need));
        self.line.remove(0);
        hand - lacks
    }

    /// The parts that a close has collected arrive. False, if there are none.
    pub fn arrive(&mut self) -> bool {
        let adrift = std::mem::take(&mut self.adrift);
        self.free += adrift;
        self.look();
        adrift > 0
    }

    fn look(&mut self) {
        self.drained |= self.closed && self.free == self.capacity;
    }

    /// Takes `k` permits, or says why not: `Pending` if they are not there.
    fn take(&mut self, k: u32) -> Said {
        let k = u64::from(k);
        match () {
            () if self.closed => Said::Closed,
            () if k > self.ceiling => Said::TooMany,
            () if k == 0 => Said::Lease,
            () if self.free < k => Said::Pending,
            () => {
                self.free -= k;
                Said::Lease
            }
        }
    }

    /// Takes `k` permits, or what there is and a place at the end of the line.
    fn join(&mut self, request: usize, k: u32, full: bool, others: usize) -> Said {
        let answer = self.take(k);
        if answer != Said::Pending {
            let busy = answer == Said::Lease && full && self.limit.is_some_and(|m| others >= m);
            return if busy { Said::Full } else { answer };
        }
        let there = self.line.len() + if full { others } else { 0 };
        if self.limit.is_some_and(|m| there >= m) {
            return Said::Full;
        }
        let got = std::mem::take(&mut self.free);
        self.line.push(Waiter { request, need: u64::from(k), got });
        Said::Pending
    }

    fn poll(&mut self, request: usize) -> Said {
        let Some((answer, n)) = self.decided.remove(&request) else { return Said::Pending };
        self.lease(request, answer, n);
        answer
    }

    fn leave(&mut self, request: usize) -> Option<u64> {
        let at = self.line.iter().position(|waiter| waiter.request == request)?;
        Some(self.line.remove(at).got)
    }

    fn lease(&mut self, lease: usize, answer: Said, n: u64) {
        if answer == Said::Lease {
            self.leases.insert(lease, n);
        }
    }

    fn part(&mut self, lease: usize, n: u64) -> Option<u64> {
        let has = self.leases.get_mut(&lease)?;
        *has = has.checked_sub(n)?;
        Some(n)
    }
}
