//! The work that is timed.
//!
//! A function here takes a contender as its type and returns a [`Run`](crate::measure::Run): the
//! work, with all that it needs made before. A run asserts that it did what it was to do: that polls
//! were ready or pending when they had to be, and that all permits are back in the end.

pub mod catalogue;
pub mod contended;
pub mod counted;
pub mod latency;
pub mod queue;
pub mod tasks;
pub mod uncontended;

/// A semaphore for the rest of the process, for futures that outlive the function that makes them.
fn leaked<C: crate::contender::Contender>(permits: usize) -> &'static C {
    Box::leak(Box::new(C::new(permits)))
}
