//! stall: lock-freedom as a test.
//!
//! A thread is stopped at some step, for as long as the others have anything left to do: they finish
//! their calls, whatever they own is polled, given back and wound up, more is asked of the semaphore, and it is
//! closed. Of each *call* of the others it is required that it returns within [`BOUND`] steps of
//! its own thread; of the whole that the audit holds with what the stopped hand has, that the history
//! is linearizable with a call that never returned (which says that nobody waits who could be served with
//! the permits outside of that hand), and that a wake is missing only if the stopped thread owes
//! it. Then the stopped thread goes on, and in the end nothing is lost.
//!
//! That is done for each thread and each of its steps, and for each pair of threads, under several
//! schedules of the others: in turns, each to its end in either order, and at random from a seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use shuttle::Runner;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

use crate::op::Op;
use crate::scenario::{Scenario, Stage, run_stalled};

/// The steps of its own thread within which a call returns. A step is an access to shared memory.
///
/// More than three times the longest call that was seen. It is no property of the algorithm, whose calls take
/// longer if more wait, but what a call that waits for another thread runs into.
pub const BOUND: usize = 500;

/// How the threads that are not stopped are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// The stopped ones first run up to where they stop; then each to its end, by number.
    After,
    /// The one with the highest number first, each to its end; the stopped ones run whenever nobody else can.
    Before,
    /// In turns of a step.
    Turns,
    /// At random, from a seed.
    Random(u64),
}

impl Others {
    /// Those that are tried.
    pub const ALL: [Self; 7] = [
        Self::After,
        Self::Before,
        Self::Turns,
        Self::Random(1),
        Self::Random(2),
        Self::Random(3),
        Self::Random(4),
    ];
}

/// Who is stopped, and after how many steps of his.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The thread, from 1.
    pub thread: usize,
    /// After so many of its steps.
    pub after: usize,
}

#[derive(Debug, Default)]
struct Control {
    racing: bool,
    thawed: bool,
    stops: Vec<Stop>,
    steps: Vec<usize>,
    /// For each thread the call that it is in, and how many steps ago it began.
    calls: Vec<Option<(Op, usize)>>,
    longest: BTreeMap<&'static str, usize>,
    stuck: Option<String>,
}

impl Control {
    fn is_stopped(&self, thread: usize) -> bool {
        let steps = self.steps.get(thread).copied().unwrap_or(0);
        self.stops.iter().any(|stop| stop.thread == thread && steps >= stop.after)
    }

    fn end_of_call(&mut self, thread: usize) {
        if let Some(call) = self.calls.get_mut(thread)
            && let Some((op, steps)) = call.take()
        {
            let longest = self.longest.entry(op.kind()).or_default();
            *longest = steps.max(*longest);
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Control>>);

impl Shared {
    fn get(&self) -> MutexGuard<'_, Control> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Stage for Shared {
    fn race(&self) {
        self.get().racing = true;
    }

    fn begins(&self, thread: usize, op: Op) {
        let mut control = self.get();
        if control.calls.len() <= thread {
            control.calls.resize(thread + 1, None);
        }
        control.calls[thread] = Some((op, 0));
    }

    fn returns(&self, thread: usize) {
        let mut control = self.get();
        if control.racing && !control.thawed {
            control.end_of_call(thread);
        }
    }

    fn thaw(&self) {
        let mut control = self.get();
        control.thawed = true;
    }

    fn is_stopped(&self, thread: usize) -> bool {
        self.get().is_stopped(thread)
    }
}

struct Stalling {
    shared: Shared,
    plans: std::vec::IntoIter<(Vec<Stop>, Others)>,
    others: Others,
    seed: u64,
    executions: Arc<Mutex<u64>>,
}

impl Stalling {
    fn pick(&mut self, control: &Control, able: &[usize], current: usize) -> usize {
        let stopping = |thread: &usize| control.stops.iter().any(|stop| stop.thread == *thread);
        match self.others {
            Others::After => able.iter().copied().find(stopping).or_else(|| able.first().copied()),
            Others::Before => able
                .iter()
                .rev()
                .copied()
                .find(|thread| !stopping(thread))
                .or_else(|| able.last().copied()),
            Others::Turns => able
                .iter()
                .copied()
                .find(|thread| *thread > current)
                .or_else(|| able.first().copied()),
            Others::Random(_) => {
                // xorshift64*
                self.seed ^= self.seed >> 12;
                self.seed ^= self.seed << 25;
                self.seed ^= self.seed >> 27;
                let draw = self.seed.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
                Some(able[draw as usize % able.len()])
            }
        }
        .expect("somebody can run")
    }
}

impl Scheduler for Stalling {
    fn new_execution(&mut self) -> Option<Schedule> {
        if self.shared.get().stuck.is_some() {
            // The last execution was given up: that is what is to be told.
            return None;
        }
        let (stops, others) = self.plans.next()?;
        self.others = others;
        self.seed = match others {
            Others::Random(seed) => {
                let at: usize = stops.iter().map(|stop| stop.thread * 1_000 + stop.after).sum();
                (seed << 32 | at as u64) | 1 << 60
            }
            _ => 1,
        };
        let mut control = self.shared.get();
        let longest = std::mem::take(&mut control.longest);
        *control = Control { stops, longest, ..Control::default() };
        *self.executions.lock().unwrap() += 1;
        Some(Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        _: bool,
    ) -> Option<TaskId> {
        let shared = self.shared.clone();
        let mut control = shared.get();
        let all: Vec<usize> = runnable.iter().map(|task| usize::from(task.id())).collect();
        let able: Vec<usize> = (all.iter().copied())
            .filter(|task| control.thawed || (*task != 0 && !control.is_stopped(*task)))
            .collect();
        let next = if all.contains(&0) && (!control.racing || able.is_empty()) {
            0
        } else if able.is_empty() {
            let stops = &control.stops;
            control.stuck = Some(format!("everybody waits for one that is stopped: {stops:?}"));
            return None;
        } else {
            self.pick(&control, &able, current.map_or(0, usize::from))
        };
        if control.steps.len() <= next {
            control.steps.resize(next + 1, 0);
        }
        control.steps[next] += 1;
        if !control.thawed
            && let Some(Some((op, steps))) = control.calls.get_mut(next)
        {
            *steps += 1;
            if *steps > BOUND {
                let (op, stops) = (*op, control.stops.clone());
                control.stuck = Some(format!(
                    "{op:?} of thread {next} has not returned after {BOUND} steps, with {stops:?}"
                ));
                return None;
            }
        }
        runnable.iter().map(|task| task.id()).find(|id| usize::from(*id) == next)
    }

    fn next_u64(&mut self) -> u64 {
        unreachable!("no scenario draws random numbers")
    }
}

/// What came of stopping threads in a scenario.
#[derive(Clone, Debug, Default)]
pub struct Stalled {
    /// How often the scenario was executed.
    pub executions: u64,
    /// The most steps that a call of each kind took, of those that returned while others were stopped.
    pub longest: BTreeMap<&'static str, usize>,
}

/// Runs a scenario with those threads stopped, under each of these schedules of the others.
///
/// # Panics
///
/// If a call does not return, or any oracle fails.
pub fn stall(scenario: &'static Scenario, plans: Vec<(Vec<Stop>, Others)>) -> Stalled {
    let shared = Shared::default();
    let executions = Arc::<Mutex<u64>>::default();
    let scheduler = Stalling {
        shared: shared.clone(),
        plans: plans.into_iter(),
        others: Others::After,
        seed: 1,
        executions: Arc::clone(&executions),
    };
    let stage: Arc<dyn Stage> = Arc::new(shared.clone());
    Runner::new(scheduler, super::shuttle::config()).run(move || run_stalled(scenario, &stage));
    let control = shared.get();
    if let Some(stuck) = &control.stuck {
        crate::scenario::look(|audit| audit.fail(stuck));
    }
    let executions = *executions.lock().unwrap();
    Stalled { executions, longest: control.longest.clone() }
}

/// How many steps each thread takes, the threads one after the other.
fn lengths(scenario: &'static Scenario) -> Vec<usize> {
    let threads = scenario.threads.len();
    let mut lengths = vec![0; threads];
    for others in Others::ALL {
        let shared = Shared::default();
        let scheduler = Stalling {
            shared: shared.clone(),
            plans: vec![(Vec::new(), others)].into_iter(),
            others,
            seed: 1,
            executions: Arc::default(),
        };
        let stage: Arc<dyn Stage> = Arc::new(shared.clone());
        Runner::new(scheduler, super::shuttle::config()).run(move || run_stalled(scenario, &stage));
        let control = shared.get();
        for (thread, length) in lengths.iter_mut().enumerate() {
            *length = (*length).max(control.steps.get(thread + 1).copied().unwrap_or(0));
        }
    }
    lengths
}

/// Stops each thread after each of its steps, under all schedules of the others that there are here.
///
/// # Panics
///
/// As [`stall`].
pub fn one(scenario: &'static Scenario) -> Stalled {
    let stops = lengths(scenario)
        .into_iter()
        .zip(1..)
        .flat_map(|(length, thread)| (1..=length).map(move |after| vec![Stop { thread, after }]));
    let plans = stops.flat_map(|stops| Others::ALL.map(|others| (stops.clone(), others)));
    stall(scenario, plans.collect())
}

/// Stops each pair of threads after each pair of their steps, or after every `stride`-th of them, under three
/// schedules.
///
/// # Panics
///
/// As [`stall`].
pub fn two(scenario: &'static Scenario, stride: usize) -> Stalled {
    let lengths = lengths(scenario);
    let mut plans = Vec::new();
    for one in 1..=lengths.len() {
        for other in one + 1..=lengths.len() {
            for first in (1..=lengths[one - 1]).step_by(stride) {
                for second in (1..=lengths[other - 1]).step_by(stride) {
                    let stops = vec![
                        Stop { thread: one, after: first },
                        Stop { thread: other, after: second },
                    ];
                    for others in [Others::After, Others::Turns, Others::Random(1)] {
                        plans.push((stops.clone(), others));
                    }
                }
            }
        }
    }
    stall(scenario, plans)
}
