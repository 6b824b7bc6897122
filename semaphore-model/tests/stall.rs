//! Lock-freedom: whoever is stopped, and wherever, the others finish their calls.

#![cfg(all(feature = "shuttle", not(feature = "loom")))]

use semaphore_model::backend::stall::{BOUND, Stalled, one, two};
use semaphore_model::catalogue::{CROWDS, EDGES, PAIRS, TRIPLES};

fn add(all: &mut Stalled, found: Stalled) {
    all.executions += found.executions;
    for (kind, steps) in found.longest {
        let longest = all.longest.entry(kind).or_default();
        *longest = steps.max(*longest);
    }
}

fn tell(how: &str, all: &Stalled) {
    println!("{how}: {} executions; the longest call of each kind, in steps:", all.executions);
    for (kind, steps) in &all.longest {
        println!("    {kind:<20} {steps:>5} of {BOUND}");
    }
    assert!(all.longest.values().all(|steps| *steps <= BOUND));
    for (kind, steps) in &all.longest {
        // What touches no shared memory takes no step, and all else takes some.
        assert_eq!(*steps == 0, ["split", "merge"].contains(kind), "{kind}: {steps} steps");
    }
}

#[test]
fn one_of_two_stopped_after_each_of_its_steps() {
    let mut all = Stalled::default();
    for scenario in PAIRS {
        add(&mut all, one(scenario));
    }
    tell("one of two stopped", &all);
}

#[test]
fn two_of_two_stopped_after_each_of_their_steps() {
    let mut all = Stalled::default();
    for scenario in PAIRS {
        add(&mut all, two(scenario, 3));
    }
    tell("both stopped, every third step", &all);
}

#[test]
fn one_of_three_or_more_stopped_after_each_of_its_steps() {
    let mut all = Stalled::default();
    for scenario in TRIPLES.iter().chain(CROWDS).chain(EDGES) {
        add(&mut all, one(scenario));
    }
    tell("one of three or more stopped", &all);
}

#[test]
fn two_of_three_stopped() {
    let mut all = Stalled::default();
    for scenario in TRIPLES {
        add(&mut all, two(scenario, 3));
    }
    tell("two of three stopped, every third step", &all);
}
