//! What the fuzz targets do with their bytes. Each function panics on a fault.

mod wakers;

use semaphore_model::sequential::{Choice, check};

pub use wakers::wakers;

/// A sequence of calls, held against the specification: two bytes for the semaphore, three for each call.
pub fn sequential(bytes: &[u8]) {
    let [first, second, calls @ ..] = bytes else { return };
    let permits = 1 + u32::from(first & 7);
    let ceiling = permits + u32::from(first >> 3 & 3);
    let limit = (second & 1 == 1).then_some(usize::from(second >> 1 & 7) + 1);
    let choices = calls.as_chunks().0.iter().copied().map(Choice::from_bytes);
    if let Err(parted) = check(permits, ceiling, limit, choices) {
        panic!("{parted}");
    }
}
