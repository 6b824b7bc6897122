//! Threads, of whichever checker the crate is built for. With both features loom wins, as in the core.

#[cfg(feature = "loom")]
pub(crate) use loom::thread::{ThreadId, current, spawn};
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
pub(crate) use shuttle::thread::{ThreadId, current, spawn};
