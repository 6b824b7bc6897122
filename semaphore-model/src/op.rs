//! The operations that scenarios are made of, and what a call may answer.

use std::fmt;

/// One operation. Requests and leases go by number; the lease of request `r` is lease `r`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// `try_acquire_many(k)`, as lease `l`.
    Try(usize, u32),
    /// Request `r` for `k` takes its place in the queue, and is not polled.
    Enqueue(usize, u32),
    /// Request `r` for `k` is polled for the first time.
    Ask(usize, u32),
    /// Request `r` is polled with the waker that it was polled with last (or its first).
    Poll(usize),
    /// Request `r` is polled with a waker that it has not seen.
    Repoll(usize),
    /// Request `r` is dropped.
    Cancel(usize),
    /// Request `r` is polled with a deadline that has passed.
    TimeOut(usize),
    /// Lease `l` is given back, if it came to be.
    Release(usize),
    /// So many permits of lease `l` are given back, if it came to be and has as many.
    ReleasePart(usize, usize),
    /// Lease `l` gives so many of its permits to a new lease, the last number.
    Split(usize, usize, usize),
    /// Lease `l` takes in the permits of another, the last number.
    Merge(usize, usize),
    /// A task that owns lease `l` panics.
    Panic(usize),
    /// Lease `l` is forgotten, if it came to be: N shrinks.
    Forget(usize),
    /// The permits grow by so many.
    Grow(usize),
    /// The permits become so many.
    SetCapacity(usize),
    /// Up to so many free permits are forgotten.
    ForgetPermits(usize),
    /// The semaphore is closed.
    Close,
    /// `available_permits()`.
    Available,
    /// `drained()` is asked for as number `d`, and polled once.
    AskDrained(usize),
    /// The `drained()` of that number is polled with a waker that it has not seen.
    RepollDrained(usize),
    /// The `drained()` of that number is dropped.
    CancelDrained(usize),
}

impl Op {
    /// The name of its kind, for tables by operation.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Try(..) => "try_acquire",
            Self::Enqueue(..) => "enqueue",
            Self::Ask(..) => "first poll",
            Self::Poll(_) => "poll",
            Self::Repoll(_) => "poll, other waker",
            Self::Cancel(_) => "cancel",
            Self::TimeOut(_) => "deadline",
            Self::Release(_) => "release",
            Self::ReleasePart(..) => "release of a part",
            Self::Split(..) => "split",
            Self::Merge(..) => "merge",
            Self::Panic(_) => "panic with a lease",
            Self::Forget(_) => "forget",
            Self::Grow(_) => "add_permits",
            Self::SetCapacity(_) => "set_capacity",
            Self::ForgetPermits(_) => "forget_permits",
            Self::Close => "close",
            Self::Available => "available_permits",
            Self::AskDrained(_) => "drained",
            Self::RepollDrained(_) => "drained, other waker",
            Self::CancelDrained(_) => "drop of drained",
        }
    }

    /// The requests and leases, by number, that the operation uses and that its thread has to own.
    pub fn uses(self) -> [Option<usize>; 2] {
        match self {
            Self::Try(n, _)
            | Self::Enqueue(n, _)
            | Self::Ask(n, _)
            | Self::Poll(n)
            | Self::Repoll(n)
            | Self::Cancel(n)
            | Self::TimeOut(n)
            | Self::Release(n)
            | Self::ReleasePart(n, _)
            | Self::Panic(n)
            | Self::Forget(n) => [Some(n), None],
            Self::Split(from, _, to) => [Some(from), Some(to)],
            Self::Merge(to, from) => [Some(to), Some(from)],
            Self::Grow(_)
            | Self::SetCapacity(_)
            | Self::ForgetPermits(_)
            | Self::Close
            | Self::Available
            | Self::AskDrained(_)
            | Self::RepollDrained(_)
            | Self::CancelDrained(_) => [None, None],
        }
    }
}

/// What a call answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Said {
    /// The call returns nothing.
    Nothing,
    /// A poll: not yet.
    Pending,
    /// The permits.
    Lease,
    /// `NoPermits`.
    NoPermits,
    /// `Closed`.
    Closed,
    /// `TimedOut`.
    TimedOut,
    /// `QueueFull`.
    Full,
    /// `ExceedsCapacity`.
    TooMany,
    /// `drained()`: ready, or not.
    Drained(bool),
    /// A request was dropped that had its permits: they went on.
    PassedOn,
    /// A figure.
    Figure(u64),
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "()",
            Self::Pending => "pending",
            Self::Lease => "lease",
            Self::NoPermits => "none",
            Self::Closed => "closed",
            Self::TimedOut => "timed out",
            Self::Full => "full",
            Self::TooMany => "too many",
            Self::Drained(true) => "yes",
            Self::Drained(false) => "no",
            Self::PassedOn => "passed on",
            Self::Figure(n) => return write!(f, "{n}"),
        })
    }
}
