//! What drives a scenario through its interleavings.

#[cfg(all(feature = "shuttle", not(feature = "loom")))]
pub mod controlled;
#[cfg(feature = "loom")]
pub mod loom;
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
pub mod shuttle;
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
pub mod stall;

use std::collections::BTreeSet;

/// What one run of a backend over one scenario found.
#[derive(Debug)]
pub struct Found {
    /// How often the scenario was executed.
    pub executions: u64,
    /// The distinct outcomes.
    pub outcomes: BTreeSet<String>,
}

/// All orders of `0..n`.
pub fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    permutations(n - 1)
        .into_iter()
        .flat_map(|shorter| {
            (0..n).map(move |at| {
                let mut order = shorter.clone();
                order.insert(at, n - 1);
                order
            })
        })
        .collect()
}
