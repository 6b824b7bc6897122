//! shuttle: every schedule up to a bound, or random ones; sequentially consistent.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, FailurePersistence, Runner};

use super::Found;
use crate::linearize::Before;
use crate::scenario::{Scenario, detailed, last_log, last_whereabouts, run};
use crate::schedule::{Turn, Turns};
use crate::trace::{Moment, Where};

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

/// shuttle's, without what is of no use here: our own files replay a schedule.
pub(crate) fn config() -> Config {
    let mut config = Config::new();
    config.silence_warnings = true;
    config.failure_persistence = FailurePersistence::None;
    config
}

fn drive(
    scenario: &'static Scenario,
    order: &[usize],
    scheduler: impl Scheduler + 'static,
) -> Found {
    let executions = Arc::new(AtomicU64::new(0));
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    {
        let (executions, outcomes) = (Arc::clone(&executions), Arc::clone(&outcomes));
        let order = order.to_vec();
        Runner::new(scheduler, config()).run(move || {
            executions.fetch_add(1, Ordering::Relaxed);
            let outcome = run(scenario, &order, Before::Returned);
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

/// A scheduler that keeps note of what another one chooses.
struct Noting<S> {
    of: S,
    steps: Arc<Mutex<Vec<usize>>>,
    on: Option<Progress>,
    executions: Arc<AtomicU64>,
}

/// Told at each execution how many there were.
pub type Progress = Arc<dyn Fn(u64) + Send + Sync>;

impl<S: Scheduler> Scheduler for Noting<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        if let Some(on) = &self.on {
            on(self.executions.load(Ordering::Relaxed));
        }
        self.steps.lock().unwrap().clear();
        self.of.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        yielding: bool,
    ) -> Option<TaskId> {
        let next = self.of.next_task(runnable, current, yielding);
        self.steps.lock().unwrap().extend(next.map(usize::from));
        next
    }

    fn next_u64(&mut self) -> u64 {
        self.of.next_u64()
    }
}

/// Does what a list of turns says, once.
struct Following {
    turns: Vec<Turn>,
    at: usize,
    done: usize,
    begun: bool,
}

impl Scheduler for Following {
    fn new_execution(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.begun, true)).then(|| Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        _: bool,
    ) -> Option<TaskId> {
        while let Some(turn) = self.turns.get(self.at) {
            let able =
                runnable.iter().map(|task| task.id()).find(|id| usize::from(*id) == turn.thread);
            match able {
                Some(id) if turn.steps.is_none_or(|steps| self.done < steps) => {
                    self.done += 1;
                    return Some(id);
                }
                _ => {
                    self.at += 1;
                    self.done = 0;
                }
            }
        }
        let stays = current.filter(|now| runnable.iter().any(|task| task.id() == *now));
        stays.or_else(|| runnable.first().map(|task| task.id()))
    }

    fn next_u64(&mut self) -> u64 {
        unreachable!("no scenario draws random numbers")
    }
}

/// A failure: what is broken, the schedule that breaks it, and all that happened.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The broken assertion.
    pub what: String,
    /// The schedule.
    pub turns: Turns,
    /// What happened.
    pub log: Vec<Moment>,
    /// Where the permits were after each moment.
    pub places: Vec<Vec<(Where, u64)>>,
    /// How many executions there were before, and how many turns before it was shrunk.
    pub after: u64,
    /// Turns that the schedule had when it was found.
    pub turns_found: usize,
}

/// What a panic said, without the story before it.
fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic that says nothing".to_owned());
    text.rsplit_once("AUDIT: ").map_or(text.clone(), |(_, what)| what.to_owned())
}

/// How to look for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Every schedule with at most that many preemptions.
    DepthFirst(Option<usize>),
    /// So many random schedules from a seed.
    Random(u64, usize),
    /// So many schedules of probabilistic concurrency testing of that depth from a seed.
    Pct(usize, u64, usize),
}

/// Explores, and stops at the first failure.
///
/// # Errors
///
/// The failure, with a shrunk schedule.
pub fn hunt(
    scenario: &'static Scenario,
    order: &[usize],
    how: How,
    progress: Option<Progress>,
) -> Result<Found, Box<Failure>> {
    let steps = Arc::<Mutex<Vec<usize>>>::default();
    let executions = Arc::<AtomicU64>::default();
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    let scheduler: Box<dyn Scheduler + Send> = match how {
        How::DepthFirst(bound) => Box::new(DepthFirst::new(bound)),
        How::Random(seed, n) => Box::new(RandomScheduler::new_from_seed(seed, n)),
        How::Pct(depth, seed, n) => Box::new(PctScheduler::new_from_seed(seed, depth, n)),
    };
    let noting = Noting {
        of: scheduler,
        steps: Arc::clone(&steps),
        on: progress,
        executions: Arc::clone(&executions),
    };
    let result = {
        let (executions, outcomes) = (Arc::clone(&executions), Arc::clone(&outcomes));
        let order = order.to_vec();
        quietly(move || {
            Runner::new(noting, config()).run(move || {
                executions.fetch_add(1, Ordering::Relaxed);
                let outcome = run(scenario, &order, Before::Returned);
                outcomes.lock().unwrap().insert(outcome);
            });
        })
    };
    let after = executions.load(Ordering::Relaxed);
    if result.is_ok() {
        let outcomes = outcomes.lock().unwrap().clone();
        return Ok(Found { executions: after, outcomes });
    }
    let steps = steps.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let turns = Turns::of_steps(steps);
    let turns_found = turns.0.len();
    let turns = shrink(scenario, order, turns);
    let Err(mut failure) = follow(scenario, order, &turns) else {
        unreachable!("an execution is a function of its schedule")
    };
    failure.after = after;
    failure.turns_found = turns_found;
    Err(failure)
}

/// Runs `run` with panics caught and not printed.
fn quietly(run: impl FnOnce()) -> Result<(), String> {
    thread_local! { static QUIET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) }; }
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    QUIET.set(before);
    result.map_err(|payload| message(&*payload))
}

/// Runs one schedule.
///
/// # Errors
///
/// What it breaks, if it breaks anything.
pub fn follow(
    scenario: &'static Scenario,
    order: &[usize],
    turns: &Turns,
) -> Result<Timeline, Box<Failure>> {
    let following = Following { turns: turns.0.clone(), at: 0, done: 0, begun: false };
    let steps = Arc::<Mutex<Vec<usize>>>::default();
    let noting =
        Noting { of: following, steps: Arc::clone(&steps), on: None, executions: Arc::default() };
    let order = order.to_vec();
    detailed(true);
    let result = quietly(move || {
        Runner::new(noting, config()).run(move || {
            run(scenario, &order, Before::Returned);
        });
    });
    detailed(false);
    let (log, places) = (last_log(), last_whereabouts());
    match result {
        Ok(()) => Ok(Timeline { log, places }),
        Err(what) => Err(Box::new(Failure {
            what,
            turns: turns.clone(),
            log,
            places,
            after: 1,
            turns_found: turns.0.len(),
        })),
    }
}

/// What happened in an execution, and where the permits were after each moment of it.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// What happened.
    pub log: Vec<Moment>,
    /// Where the permits were.
    pub places: Vec<Vec<(Where, u64)>>,
}

/// Takes turns away and makes turns endless for as long as the schedule still breaks something.
fn shrink(scenario: &'static Scenario, order: &[usize], mut turns: Turns) -> Turns {
    'again: loop {
        for simpler in turns.simpler() {
            if follow(scenario, order, &simpler).is_err() {
                turns = simpler;
                continue 'again;
            }
        }
        return turns;
    }
}
