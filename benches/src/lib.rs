//! What `semaphore-core` and its peers cost, side by side.
//!
//! - [`contender`]: one trait, and a small file for each semaphore that is measured.
//! - [`rows`]: the work that is timed, generic over the contender. Each run asserts its own result.
//! - [`measure`]: interleaved rounds, medians and spreads.
//! - [`goals`]: what is aimed at, and by how much it is met or missed.
//! - [`preempt`]: threads that are stopped at random moments.
//!
//! The programs are `table` (all rows, all contenders), `heap` (memory), `latency` and `scaling`;
//! the benches are `rows` (criterion) and `instructions` (iai-callgrind, with limits).
//!
//! # Panics
//!
//! All of it panics if a semaphore does not do what was asked of it.
#![allow(clippy::missing_panics_doc, reason = "said above, for all of the crate")]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "counts of operations and nanoseconds become figures of three digits"
)]

pub mod contender;
pub mod goals;
pub mod measure;
pub mod places;
pub mod plot;
pub mod preempt;
pub mod rows;
