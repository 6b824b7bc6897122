//! loom: every interleaving that matters to it, with weak memory.
//!
//! loom 0.7.3 keeps one last access per atomic and so misses interleavings of a load with a later
//! compare-exchange (its issues #166 and #392). A scenario is therefore run in two [`Mode`]s and with
//! its threads in every order, and the outcomes are compared with those of another checker.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use semaphore_core::model;

use super::Found;
use crate::linearize::Before;
use crate::scenario::{Scenario, run};

/// How the facade presents loads and stores to loom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As they are: loom explores what weak memory allows.
    Weak,
    /// As read-modify-writes: loom explores all their interleavings.
    Strong,
}

/// Runs a scenario with its threads in the given order; `bound` limits the preemptions of an
/// execution, `None` does not.
pub fn explore(
    scenario: &'static Scenario,
    order: &[usize],
    mode: Mode,
    bound: Option<usize>,
) -> Found {
    let executions = Arc::new(AtomicU64::new(0));
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.max_branches = 50_000;
    // Both would end a run early and in silence.
    builder.max_duration = None;
    builder.max_permutations = None;
    {
        let (executions, outcomes) = (Arc::clone(&executions), Arc::clone(&outcomes));
        let order = order.to_vec();
        builder.check(move || {
            executions.fetch_add(1, Ordering::Relaxed);
            model::strong(mode == Mode::Strong);
            let before = match mode {
                Mode::Weak => Before::Program,
                Mode::Strong => Before::Returned,
            };
            let outcome = run(scenario, &order, before);
            outcomes.lock().unwrap().insert(outcome);
        });
    }
    model::strong(false);
    let outcomes = outcomes.lock().unwrap().clone();
    Found { executions: executions.load(Ordering::Relaxed), outcomes }
}
