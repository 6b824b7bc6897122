//! Linearizability: was there an order in which the specification says all that was said?
//!
//! A history is the calls of an execution: when each began, when it returned and what it said. It is accepted
//! if the steps of all calls can be put into one order, each within its call, in which the
//! [specification](crate::spec) gives the same answers. That is the search of Wing and Gong with memory, but
//! with calls of several steps: a request joins at one point and is granted at another, and a
//! release is a step for each waiter that it serves. Strict order of service needs no rule of its own:
//! the specification has a line.
//!
//! A call that never returned, since its thread is stopped, may have taken any of its steps.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Write as _;

use crate::op::{Op, Said};
use crate::spec::Spec;

/// Which call comes before which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Before {
    /// One that returned before another began, as a bystander with a clock sees it.
    Returned,
    /// The one before it on the same thread, and all before the race before all in it. For checkers with weak
    /// memory, whose threads may see old values for as long as nothing orders them: there no clock
    /// is right for all.
    Program,
}

/// Which part of an execution: set up, raced, or wound up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// One thread sets up.
    SetUp,
    /// All run.
    Race,
    /// One thread is left.
    WindUp,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Of which thread.
    pub thread: usize,
    /// In which part.
    pub part: Part,
    /// What was called.
    pub op: Op,
    /// When, in beginnings and ends of calls.
    pub began: u32,
    /// When it returned and what it said; `None`, if it never did.
    pub ended: Option<(u32, Said)>,
}

/// The calls of an execution, in the order of their beginnings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct History {
    before: Before,
    start: Spec,
    records: Vec<Record>,
    clock: u32,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    NotYet,
    Hand(u64),
    Over,
}

type Set = u128;
type State = (Spec, Vec<Stage>, Set);

impl History {
    /// The empty history of a semaphore that starts as that.
    pub fn new(start: Spec, before: Before) -> Self {
        Self { before, start, records: Vec::new(), clock: 0 }
    }

    /// A call begins.
    pub fn begin(&mut self, thread: usize, part: Part, op: Op) {
        self.records.push(Record { thread, part, op, began: self.clock, ended: None });
        self.clock += 1;
    }

    /// The call of that thread returns.
    ///
    /// # Panics
    ///
    /// If none is under way.
    pub fn end(&mut self, thread: usize, said: Said) {
        let call = self.records.iter_mut().rev().find(|call| call.thread == thread);
        let call = call.expect("a call that returns began");
        assert!(call.ended.is_none(), "a call returned twice");
        call.ended = Some((self.clock, said));
        self.clock += 1;
    }

    /// What makes one call come before another.
    pub fn before(&self) -> Before {
        self.before
    }

    /// Whether any call is of those that the specification leaves out.
    pub fn resizes(&self) -> bool {
        self.records.iter().any(|call| matches!(call.op, Op::SetCapacity(_) | Op::ForgetPermits(_)))
    }

    /// The calls.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    fn precedes(&self, one: &Record, other: &Record) -> bool {
        match self.before {
            Before::Returned => one.ended.is_some_and(|(at, _)| at < other.began),
            Before::Program => {
                one.ended.is_some()
                    && (one.part < other.part
                        || (one.thread == other.thread && one.began < other.began))
            }
        }
    }

    /// Whether there is such an order.
    ///
    /// # Errors
    ///
    /// There is none: the history, to be read by a person.
    ///
    /// # Panics
    ///
    /// If there are more than 128 calls.
    pub fn check(&self) -> Result<(), String> {
        assert!(self.records.len() <= 128, "a history of more calls than the search is made for");
        let after = |other: &Record| {
            let earlier =
                self.records.iter().enumerate().filter(|(_, one)| self.precedes(one, other));
            earlier.fold(0, |set: Set, (at, _)| set | 1 << at)
        };
        let meets =
            |one: &Record, other: &Record| !self.precedes(one, other) && !self.precedes(other, one);
        let search = Search {
            records: &self.records,
            after: self.records.iter().map(after).collect(),
            others: self
                .records
                .iter()
                .map(|one| self.records.iter().filter(|other| meets(one, other)).count() - 1)
                .collect(),
            returned: (self.records.iter().enumerate())
                .filter(|(_, call)| call.ended.is_some())
                .fold(0, |set, (at, _)| set | 1 << at),
        };
        if search.explains(&self.start) { Ok(()) } else { Err(self.story()) }
    }

    /// As [`check`](Self::check), remembering what was accepted before.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn check_once(&self) -> Result<(), String> {
        thread_local! { static ACCEPTED: RefCell<HashSet<History>> = RefCell::default(); }
        /// Enough for what one scenario brings; after that memory matters more.
        const KEPT: usize = 1 << 14;
        if ACCEPTED.with_borrow(|accepted| accepted.contains(self)) {
            return Ok(());
        }
        self.check()?;
        ACCEPTED.with_borrow_mut(|accepted| {
            if accepted.len() >= KEPT {
                accepted.clear();
            }
            accepted.insert(self.clone());
        });
        Ok(())
    }

    fn story(&self) -> String {
        let mut story = "no order of these calls is one of a semaphore:\n".to_owned();
        for call in &self.records {
            let (end, said) = call.ended.map_or_else(
                || ("never".to_owned(), "?".to_owned()),
                |(at, said)| (at.to_string(), said.to_string()),
            );
            let Record { thread, op, began, .. } = call;
            let _ = writeln!(story, "  T{thread} from {began:>3} to {end:>5}: {op:?} -> {said}");
        }
        story
    }
}

struct Search<'a> {
    records: &'a [Record],
    /// For each call those that have to be over before its first step.
    after: Vec<Set>,
    /// For each call how many others may be under way at the same time.
    others: Vec<usize>,
    /// The calls that have to be over at the end.
    returned: Set,
}

impl Search<'_> {
    /// Depth first, on a stack of its own: a checker's threads have little.
    fn explains(&self, start: &Spec) -> bool {
        let mut seen: HashSet<(Spec, Vec<Stage>)> = HashSet::new();
        let mut open = vec![(start.clone(), vec![Stage::NotYet; self.records.len()], 0)];
        let mut next = Vec::new();
        while let Some((spec, stages, over)) = open.pop() {
            if self.returned & !over == 0 {
                return true;
            }
            let state = (spec, stages);
            if seen.contains(&state) {
                continue;
            }
            self.steps(&state.0, &state.1, over, &mut next);
            seen.insert(state);
            // The first is to be tried first.
            open.extend(next.drain(..).rev());
        }
        false
    }

    /// What can come next.
    fn steps(&self, spec: &Spec, stages: &[Stage], over: Set, next: &mut Vec<State>) {
        for (at, call) in self.records.iter().enumerate() {
            if stages[at] == Stage::Over
                || (stages[at] == Stage::NotYet && self.after[at] & !over != 0)
            {
                continue;
            }
            let mut spec = spec.clone();
            let left = match stages[at] {
                Stage::Over => continue,
                Stage::NotYet => {
                    let said = call.ended.map(|(_, said)| said);
                    match spec.call(call.op, self.others[at], said) {
                        Some(hand) => hand,
                        None => continue,
                    }
                }
                Stage::Hand(hand) => spec.place(hand),
            };
            let mut stages = stages.to_vec();
            stages[at] = if left == 0 { Stage::Over } else { Stage::Hand(left) };
            let over = if left == 0 { over | 1 << at } else { over };
            next.push((spec, stages, over));
        }
        let mut spec = spec.clone();
        if spec.arrive() {
            next.push((spec, stages.to_vec(), over));
        }
    }
}
