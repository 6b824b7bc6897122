//! A fair, lock-free async semaphore. (Docs to come.)
#![cfg_attr(not(feature = "std"), no_std)]
#![warn(clippy::undocumented_unsafe_blocks)]

extern crate alloc;

mod acquire;
mod error;
mod lease;
mod observer;
// Public in the model build, for checkers to read the words by.
#[cfg_attr(not(any(feature = "loom", feature = "shuttle")), allow(unreachable_pub))]
mod queue;
mod semaphore;
#[cfg_attr(not(any(feature = "loom", feature = "shuttle")), allow(unreachable_pub))]
mod state;
#[cfg_attr(not(any(feature = "loom", feature = "shuttle")), allow(unreachable_pub))]
mod sync;
mod waiter;
mod wake;

#[cfg(any(feature = "loom", feature = "shuttle"))]
pub mod model;

pub use acquire::{Acquire, AcquireOwned, Drained, WithDeadline};
pub use error::{AcquireError, BuildError, CeilingError, MAX_PERMITS, MergeError, TryAcquireError};
pub use lease::{Lease, OwnedLease};
pub use observer::Observer;
pub use semaphore::{Builder, Semaphore, Snapshot};

#[cfg(all(doctest, not(any(feature = "loom", feature = "shuttle"))))]
#[doc = include_str!("../../README.md")]
struct Readme;
