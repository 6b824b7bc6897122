//! What can go wrong, as types.

use core::fmt;

/// The most permits that a semaphore can have: `usize::MAX >> 3`.
pub const MAX_PERMITS: usize = usize::MAX >> 3;

/// Why an `acquire` did not get its permits. It owns nothing then.
///
/// If more than one applies, the first in this order is reported: `Closed`, `ExceedsCapacity`,
/// `QueueFull`, `TimedOut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcquireError {
    /// The semaphore is closed.
    Closed,
    /// The queue holds as many requests as [`Builder::max_waiters`](crate::Builder::max_waiters)
    /// allows (or as many as there can be: about 29 million).
    QueueFull,
    /// The request is for more permits than there can ever be.
    ExceedsCapacity {
        /// Permits asked for.
        requested: u32,
        /// The most that the semaphore may ever have.
        ceiling: usize,
    },
    /// The deadline came before the permits.
    TimedOut,
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the semaphore is closed"),
            Self::QueueFull => f.write_str("the queue of the semaphore is full"),
            Self::ExceedsCapacity { requested, ceiling } => write!(
                f,
                "{requested} permits requested from a semaphore that can have {ceiling} at most"
            ),
            Self::TimedOut => f.write_str("the deadline came before the permits"),
        }
    }
}

impl core::error::Error for AcquireError {}

/// Why a `try_acquire` did not get its permits.
///
/// If more than one applies, the first in this order is reported: `Closed`, `ExceedsCapacity`,
/// `NoPermits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TryAcquireError {
    /// The semaphore is closed.
    Closed,
    /// Too few permits are available, or somebody waits already.
    NoPermits,
    /// The request is for more permits than there can ever be.
    ExceedsCapacity {
        /// Permits asked for.
        requested: u32,
        /// The most that the semaphore may ever have.
        ceiling: usize,
    },
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Closed => AcquireError::Closed.fmt(f),
            Self::NoPermits => f.write_str("no permits available"),
            Self::ExceedsCapacity { requested, ceiling } => {
                AcquireError::ExceedsCapacity { requested, ceiling }.fmt(f)
            }
        }
    }
}

impl core::error::Error for TryAcquireError {}

/// Why a semaphore could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BuildError {
    /// A bounded semaphore without permits would never grant anything.
    ZeroPermits,
    /// More permits than [`MAX_PERMITS`].
    TooManyPermits {
        /// Permits asked for.
        permits: usize,
    },
    /// More permits than the ceiling.
    AboveCeiling {
        /// Permits asked for.
        permits: usize,
        /// The most that the semaphore may ever have.
        ceiling: usize,
    },
    /// A bound of the queue beyond what a queue can hold.
    TooManyWaiters {
        /// The bound asked for.
        waiters: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroPermits => f.write_str(
                "a semaphore with a ceiling of zero permits grants nothing; to start with none, give it a higher ceiling",
            ),
            Self::TooManyPermits { permits } => {
                write!(f, "{permits} permits are more than the {MAX_PERMITS} that there can be")
            }
            Self::AboveCeiling { permits, ceiling } => {
                write!(f, "{permits} permits are more than the ceiling of {ceiling}")
            }
            Self::TooManyWaiters { waiters } => {
                write!(f, "a queue of {waiters} requests is more than a semaphore can hold")
            }
        }
    }
}

impl core::error::Error for BuildError {}

/// Permits were added beyond the ceiling. The semaphore is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CeilingError {
    /// Permits that there would be.
    pub permits: usize,
    /// The most that the semaphore may ever have.
    pub ceiling: usize,
}

impl fmt::Display for CeilingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { permits, ceiling } = self;
        write!(f, "{permits} permits would be more than the ceiling of {ceiling}")
    }
}

impl core::error::Error for CeilingError {}

/// Two leases of different semaphores cannot be merged. Both are as they were; this one is given back.
pub struct MergeError<L>(
    /// The lease that was to be merged into the other.
    pub L,
);

impl<L> fmt::Debug for MergeError<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MergeError")
    }
}

impl<L> fmt::Display for MergeError<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the leases are of different semaphores")
    }
}

impl<L> core::error::Error for MergeError<L> {}
