//! Every edge of the two state machines is taken by some scenario, and no edge that is said to be impossible.

#![cfg(all(feature = "shuttle", not(feature = "loom")))]

use std::collections::BTreeSet;

use semaphore_model::backend::shuttle::{depth_first, pct, random};
use semaphore_model::backend::stall;
use semaphore_model::catalogue::{CROWDS, EDGES, PAIRS, TRIPLES, WIDE};
use semaphore_model::coverage;

/// Preemptions: what is rare is what two threads do to each other, and that needs few.
const BOUND: usize = 1;
const SCHEDULES: usize = 1_000;
const DEPTH: usize = 5;

#[test]
fn every_edge_is_taken() {
    coverage::take();
    for scenario in PAIRS.iter().chain(TRIPLES) {
        let order: Vec<_> = (0..scenario.threads.len()).collect();
        depth_first(scenario, &order, Some(BOUND));
        stall::one(scenario);
    }
    for scenario in CROWDS.iter().chain(EDGES).chain(WIDE) {
        let order: Vec<_> = (0..scenario.threads.len()).collect();
        random(scenario, &order, 1, SCHEDULES);
        pct(scenario, &order, DEPTH, 1, SCHEDULES);
    }
    for scenario in EDGES {
        stall::one(scenario);
    }
    let taken = coverage::take();
    let (edges, nevers) = coverage::machine();
    let known: BTreeSet<u16> = edges.iter().map(|edge| edge.number()).collect();
    let missing: Vec<String> = edges
        .iter()
        .filter(|edge| !taken.contains(&edge.number()))
        .map(ToString::to_string)
        .collect();
    let wrong: Vec<String> = taken
        .difference(&known)
        .map(|number| coverage::edge(*number))
        .filter(|edge| !edge.is_nothing())
        .map(|edge| {
            let never = nevers.iter().find(|never| never.edge == edge);
            format!("{edge}: {}", never.map_or("not in the table", |never| never.why))
        })
        .collect();
    println!(
        "{} edges, {} of them taken, {} never",
        edges.len(),
        edges.len() - missing.len(),
        nevers.len()
    );
    assert!(missing.is_empty(), "nobody takes\n{}", missing.join("\n"));
    assert!(wrong.is_empty(), "taken, though they cannot be\n{}", wrong.join("\n"));
}
