//! controlled: one step at a time, and a look at each named point.
//!
//! A script says which thread runs and until when; at that point everybody stands still, in the midst of
//! calls, and the figures are compared with those of the script. Time is a step of the script as well: a
//! deadline has fired when the call that polls it late has begun, and has not run until its first step.

use std::sync::{Arc, Mutex};

use shuttle::Runner;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

use crate::audit::Audit;
use crate::linearize::Before;
use crate::op::Op;
use crate::scenario::{Scenario, look, run};
use crate::trace::What;

/// A point to stop at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The request waits in the queue.
    Queued(usize),
    /// The request was chosen by a release: granted, and not polled yet.
    Chosen(usize),
    /// The deadline of the request has fired: the late poll has begun, and has not taken a step.
    Fired(usize),
    /// The call has begun, and has not taken a step.
    Begun(Op),
    /// The call has returned.
    Returned(Op),
    /// The semaphore is closed.
    Closed,
    /// The thread can do no more.
    Done,
}

/// What is true at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Permits that are available.
    pub available: u64,
    /// Permits of leases, and in the hands of running calls.
    pub held: u64,
    /// Permits in part with the oldest, and granted and not yet taken.
    pub reserved: u64,
    /// Requests that wait.
    pub waiting: usize,
}

/// A step of a script: that thread runs up to that point, and there these are the figures. The threads are
/// numbered from 1; `owns` says how many permits the leases of that thread hold.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Who runs.
    pub thread: usize,
    /// Up to where.
    pub until: Point,
    /// What is then.
    pub figures: Figures,
    /// Permits of the thread's leases.
    pub owns: u64,
}

fn reached(point: Point, audit: &Audit) -> bool {
    let began = |wanted: Op| {
        audit.log().iter().any(|moment| matches!(moment.what, What::Begins(op) if op == wanted))
    };
    match point {
        Point::Queued(request) => audit.waits(request),
        Point::Chosen(request) => audit.is_untaken(request),
        Point::Fired(request) => began(Op::TimeOut(request)),
        Point::Begun(op) => began(op),
        Point::Returned(wanted) => (audit.log().iter())
            .any(|moment| matches!(moment.what, What::Returns(op, _) if op == wanted)),
        Point::Closed => audit.is_closed(),
        Point::Done => false,
    }
}

struct Script {
    steps: Vec<Step>,
    at: usize,
    begun: bool,
    wrong: Arc<Mutex<Option<String>>>,
    /// How many threads are played. They are the tasks from 1 on; task 0 is the main thread.
    threads: usize,
    raced: bool,
}

impl Script {
    fn compare(&self, step: &Step, audit: &Audit) {
        let found = Figures {
            available: audit.available(),
            held: audit.held() + u64::try_from(audit.in_hands()).unwrap_or(0),
            reserved: audit.reserved(),
            waiting: audit.waiting(),
        };
        let owns = audit.held_by(step.thread);
        if found != step.figures || owns != step.owns {
            let text = format!(
                "step {}, thread {} at {:?}: {found:?} and it owns {owns}, where {:?} and {} were expected",
                self.at, step.thread, step.until, step.figures, step.owns
            );
            self.wrong.lock().unwrap().get_or_insert(text);
        }
    }
}

impl Scheduler for Script {
    fn new_execution(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.begun, true)).then(|| Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        _: bool,
    ) -> Option<TaskId> {
        let find = |wanted: usize| {
            runnable.iter().map(|task| task.id()).find(|id| usize::from(*id) == wanted)
        };
        // The main thread sets up, and has no part of its own in the race.
        self.raced |= find(self.threads).is_some();
        if !self.raced {
            return find(0).or(current);
        }
        while let Some(step) = self.steps.get(self.at).copied() {
            let able = find(step.thread);
            let there = match (step.until, able) {
                (Point::Done, None) => true,
                (_, None) => {
                    let text =
                        format!("step {}: the thread ended before {:?}", self.at, step.until);
                    self.wrong.lock().unwrap().get_or_insert(text);
                    true
                }
                (point, Some(_)) => look(|audit| reached(point, audit)).unwrap_or(false),
            };
            if !there {
                return able;
            }
            look(|audit| self.compare(&step, audit));
            self.at += 1;
        }
        current
            .and_then(|id| find(usize::from(id)))
            .or_else(|| runnable.first().map(|task| task.id()))
    }

    fn next_u64(&mut self) -> u64 {
        unreachable!("no scenario draws random numbers")
    }
}

/// Plays a script. The scenario's last thread has to be an empty one, which the harness runs on the main thread;
/// all others are played.
///
/// # Panics
///
/// If a figure is not as expected, a point is not reached, or an oracle fails.
pub fn play(scenario: &'static Scenario, steps: &[Step]) -> String {
    let threads = scenario.threads.len();
    assert!(scenario.threads[threads - 1].is_empty(), "the main thread has no part in a script");
    let wrong = Arc::<Mutex<Option<String>>>::default();
    let outcome = Arc::<Mutex<String>>::default();
    let script = Script {
        steps: steps.to_vec(),
        at: 0,
        begun: false,
        wrong: Arc::clone(&wrong),
        threads: threads - 1,
        raced: false,
    };
    let order: Vec<usize> = (0..threads).collect();
    let said = Arc::clone(&outcome);
    Runner::new(script, super::shuttle::config()).run(move || {
        *said.lock().unwrap() = run(scenario, &order, Before::Returned);
    });
    if let Some(text) = wrong.lock().unwrap().take() {
        panic!("{text}");
    }
    let outcome = outcome.lock().unwrap();
    outcome.clone()
}
