//! shuttle: every schedule up to a bound, or random ones; sequentially consistent.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, Runner};

use super::Found;
use crate::scenario::{Scenario, run};

/// Depth-first search over all schedules with at most `bound` preemptions.
///
/// Not shuttle's own, which has no such bound and does not end for scenarios of this size.
#[derive(Debug)]
pub struct DepthFirst {
    bound: Option<usize>,
    /// At each step: the choices, and which one is being explored.
    levels: Vec<(Vec<TaskId>, usize)>,
    depth: usize,
    preemptions: usize,
    begun: bool,
}

impl DepthFirst {
    /// `None`: all schedules.
    pub fn new(bound: Option<usize>) -> Self {
        Self { bound, levels: Vec::new(), depth: 0, preemptions: 0, begun: false }
    }
}

impl Scheduler for DepthFirst {
    fn new_execution(&mut self) -> Option<Schedule> {
        if self.begun {
            while let Some((choices, at)) = self.levels.last_mut() {
                if *at + 1 < choices.len() {
                    *at += 1;
                    break;
                }
                self.levels.pop();
            }
            if self.levels.is_empty() {
                return None;
            }
        }
        self.begun = true;
        self.depth = 0;
        self.preemptions = 0;
        Some(Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        _: bool,
    ) -> Option<TaskId> {
        let stays = current.filter(|now| runnable.iter().any(|task| task.id() == *now));
        if self.depth == self.levels.len() {
            let mut choices: Vec<TaskId> = stays.into_iter().collect();
            if stays.is_none() || self.bound.is_none_or(|bound| self.preemptions < bound) {
                choices
                    .extend(runnable.iter().map(|task| task.id()).filter(|id| Some(*id) != stays));
            }
            self.levels.push((choices, 0));
        }
        let (choices, at) = &self.levels[self.depth];
        let next = choices[*at];
        self.depth += 1;
        if stays.is_some_and(|now| now != next) {
            self.preemptions += 1;
        }
        Some(next)
    }

    fn next_u64(&mut self) -> u64 {
        unreachable!("no scenario draws random numbers")
    }
}

fn drive(
    scenario: &'static Scenario,
    order: &[usize],
    scheduler: impl Scheduler + 'static,
) -> Found {
    let executions = Arc::new(AtomicU64::new(0));
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    let mut config = Config::new();
    config.silence_warnings = true;
    {
        let (executions, outcomes) = (Arc::clone(&executions), Arc::clone(&outcomes));
        let order = order.to_vec();
        Runner::new(scheduler, config).run(move || {
            executions.fetch_add(1, Ordering::Relaxed);
            let outcome = run(scenario, &order);
            outcomes.lock().unwrap().insert(outcome);
        });
    }
    let outcomes = outcomes.lock().unwrap().clone();
    Found { executions: executions.load(Ordering::Relaxed), outcomes }
}

/// Every schedule with at most `bound` preemptions.
pub fn depth_first(scenario: &'static Scenario, order: &[usize], bound: Option<usize>) -> Found {
    drive(scenario, order, DepthFirst::new(bound))
}

/// So many random schedules from a seed.
pub fn random(scenario: &'static Scenario, order: &[usize], seed: u64, executions: usize) -> Found {
    drive(scenario, order, RandomScheduler::new_from_seed(seed, executions))
}

/// So many schedules of probabilistic concurrency testing, with that many preemptions, from a seed.
pub fn pct(
    scenario: &'static Scenario,
    order: &[usize],
    depth: usize,
    seed: u64,
    executions: usize,
) -> Found {
    drive(scenario, order, PctScheduler::new_from_seed(seed, depth, executions))
}
