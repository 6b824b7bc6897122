//! The model checker of `semaphore-core`.
//!
//! A `scenario::Scenario` lists, for a handful of threads, the operations of each. It is set up
//! sequentially, raced by a backend over all of its interleavings (`backend::loom`) or over those of
//! shuttle's (`backend::shuttle`), and audited at every single transition by `audit::Audit`.
//!
//! Built without the feature `loom` or `shuttle` it drives the semaphore that ships, one call after the other:
//! `sequential`.

#![allow(clippy::missing_panics_doc)] // To panic is how a checker says what it found.

pub mod linearize;
pub mod op;
pub mod spec;

#[cfg(any(feature = "loom", feature = "shuttle"))]
pub mod acceptor;
#[cfg(any(feature = "loom", feature = "shuttle"))]
pub mod audit;
#[cfg(any(feature = "loom", feature = "shuttle"))]
pub mod backend;
#[cfg(any(feature = "loom", feature = "shuttle"))]
pub mod catalogue;
#[cfg(any(feature = "loom", feature = "shuttle"))]
pub mod coverage;
#[cfg(any(feature = "loom", feature = "shuttle"))]
mod rt;
#[cfg(any(feature = "loom", feature = "shuttle"))]
pub mod scenario;
#[cfg(any(feature = "loom", feature = "shuttle"))]
pub mod schedule;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
pub mod sequential;
#[cfg(any(feature = "loom", feature = "shuttle"))]
pub mod timeline;
#[cfg(any(feature = "loom", feature = "shuttle"))]
pub mod trace;
