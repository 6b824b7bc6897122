//! Every execution of the catalogue is a run of the transition system of `proofs/Level2.v`; and one with
//! a transition too many is not.
//!
//! Under shuttle alone, where memory is sequentially consistent, as it is in `proofs/`. At most two
//! preemptions, so that this takes seconds: `tests/models.rs` has the large bounds, and loom's memory.

#![cfg(all(feature = "shuttle", not(feature = "loom")))]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use semaphore_core::model::{Line, Role, WaiterWord, Write};
use semaphore_model::acceptor::{Acceptor, Home, Label};
use semaphore_model::catalogue::{PAIRS, TRIPLES};
use semaphore_model::linearize::Before;
use semaphore_model::scenario::{Scenario, last_log, run};
use semaphore_model::trace::{Moment, What};

/// How often each transition was met, and how many executions there were.
#[derive(Debug, Default)]
struct Met {
    executions: u64,
    labels: BTreeMap<Label, u64>,
    planted: BTreeMap<&'static str, u64>,
}

fn writes(log: &[Moment]) -> impl Iterator<Item = (usize, Write)> + '_ {
    log.iter().filter_map(|moment| match moment.what {
        What::Writes(write) => Some((moment.thread, write)),
        _ => None,
    })
}

/// Runs one execution and replays its log.
fn replay(scenario: &Scenario, order: &[usize], before: Before, met: &Mutex<Met>) {
    run(scenario, order, before);
    let mut acceptor = Acceptor::new(scenario.permits as u64);
    let mut met = met.lock().unwrap();
    met.executions += 1;
    for (thread, write) in writes(&last_log()) {
        plant(&acceptor, &mut met);
        match acceptor.accept(thread, &write) {
            Ok(label) => *met.labels.entry(label).or_default() += 1,
            Err(why) => panic!("ACCEPTOR: {}: {why}: {write:?}", scenario.name),
        }
    }
    acceptor.at_rest().unwrap();
}

/// Transitions that the proved system does not have, wherever they can be planted in a log.
fn plant(acceptor: &Acceptor, met: &mut Met) {
    let mut planted = Vec::new();
    let status = |word: WaiterWord, status: u64| word.0 & !(7 << 33) | status << 33;
    let oldest = acceptor
        .nodes()
        .values()
        .filter(|node| node.home == Home::Listed(Line::Main) && node.waits())
        .map(|node| node.arr)
        .min();
    for (&slot, node) in acceptor.nodes() {
        let mut word = |name, after| {
            let write = Write { role: Role::Waiter(slot), before: Some(node.word.0), after };
            planted.push((name, write));
        };
        match node.home {
            Home::Listed(Line::Main) if node.waits() => {
                word("the next generation in the queue", node.word.0 + (1 << 36));
                if !acceptor.main().is_closed() {
                    word("shut in an open queue", status(node.word, 3));
                }
                if oldest != Some(node.arr) {
                    word("a grant before its turn", status(node.word, 0));
                    word("a part before its turn", node.word.0 & !0xffff_ffff | 1 << 32 | 1);
                }
            }
            Home::Listed(_) if !node.waits() => {
                word(
                    "settled twice",
                    status(node.word, if node.word.0 >> 33 & 7 == 2 { 0 } else { 2 }),
                );
                word("settled and waits again", status(node.word, 4));
            }
            Home::Private(_) => word("an unpublished slot is changed", node.word.0 ^ 1),
            Home::InPool => word("a free slot is changed", node.word.0 ^ 1),
            _ => {}
        }
    }
    let state = acceptor.main().0;
    let mut words = |name, after| {
        planted.push((name, Write { role: Role::State(Line::Main), before: Some(state), after }));
    };
    if oldest.is_some() {
        words("free while somebody waits", 1 << 3 | state & 2);
    }
    if acceptor.main().is_closed() {
        words("opened again", state & !2);
    }
    words("more permits than there are", 1000 << 3 | state & 2);
    for (name, write) in planted {
        // By a thread that has done nothing so far.
        assert!(acceptor.clone().accept(99, &write).is_err(), "{name} is accepted: {write:?}");
        *met.planted.entry(name).or_default() += 1;
    }
}

fn report(met: &Met) {
    println!("{} executions", met.executions);
    for (label, times) in &met.labels {
        println!("{times:>10} {label:?}");
    }
    println!("planted and rejected:");
    for (name, times) in &met.planted {
        println!("{times:>10} {name}");
    }
}

fn all(met: &Arc<Mutex<Met>>) {
    use semaphore_model::backend::shuttle::DepthFirst;
    use semaphore_model::catalogue::CROWDS;
    use shuttle::scheduler::{RandomScheduler, Scheduler};
    use shuttle::{Config, Runner};

    fn drive(
        scenario: &'static Scenario,
        scheduler: impl Scheduler + 'static,
        met: &Arc<Mutex<Met>>,
    ) {
        let met = Arc::clone(met);
        let mut config = Config::new();
        config.silence_warnings = true;
        Runner::new(scheduler, config).run(move || {
            let order: Vec<_> = (0..scenario.threads.len()).collect();
            replay(scenario, &order, Before::Returned, &met);
        });
    }

    for scenario in PAIRS.iter().chain(TRIPLES) {
        drive(scenario, DepthFirst::new(Some(2)), met);
    }
    for scenario in CROWDS {
        drive(scenario, RandomScheduler::new_from_seed(2026, 200), met);
    }
}

/// All transitions of the proofs are met, and nothing else; and each that is planted is rejected.
#[test]
fn every_execution_is_a_run_of_the_proved_system() {
    let met = Arc::<Mutex<Met>>::default();
    all(&met);
    let met = met.lock().unwrap();
    report(&met);
    for label in [
        Label::FastTake,
        Label::Grow2,
        Label::Forget2,
        Label::Put,
        Label::Fresh,
        Label::Pop,
        Label::Write,
        Label::Publish,
        Label::Withdraw,
        Label::SetNewer,
        Label::SetHint,
        Label::GrantAll,
        Label::GrantPart,
        Label::CutW,
        Label::CutS,
        Label::CutAll,
        Label::CancelIt,
        Label::ShutIt,
        Label::CloseIt,
        Label::Recycle,
    ] {
        assert!(met.labels.contains_key(&label), "no execution has {label:?}");
    }
    assert_eq!(met.planted.len(), 11, "each kind was planted: {:?}", met.planted.keys());
}
