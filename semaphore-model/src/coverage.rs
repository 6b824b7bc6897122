//! Which edges of the two state machines were taken: that of the state word and that of a waiter word.
//!
//! An edge is made of the words before and after, as the facade sees them, and of nothing that the core
//! would say of itself. The one thing that a pair of words does not tell, whether a new tail joined or an older
//! one was left by a cut, the audit knows from earlier words: a tail that was in a queue before is old.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use semaphore_core::model::{Body, Line, Place, State, Status, WaiterWord};

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge(u16);

const LINES: [Line; 2] = [Line::Main, Line::Gate];

/// What can become of a state word.
const STATES: [&str; 10] = [
    "Available(a) -> fewer",
    "Available(a) -> more",
    "Available(a) -> Queue(me)",
    "Queue(t) -> Queue(me)",
    "Queue(t) -> Queue(older)",
    "Queue(t) -> Available(0)",
    "Queue(t) -> Available(c)",
    "Available(a) -> the same, CLOSED",
    "Queue(t) -> the same, CLOSED",
    "no change",
];

const STATUSES: [Status; 8] = [
    Status::Granted,
    Status::GrantedBusy,
    Status::Cancelled,
    Status::Shut,
    Status::Bare,
    Status::First,
    Status::Swapping,
    Status::Replaced,
];

/// What can become of the word of a slot that is in no queue.
const PRIVATE: [&str; 4] =
    ["free -> prepared", "prepared -> again", "prepared -> withdrawn", "link of the free list"];

const PRIVATES: u16 = 40;
const WAITERS: u16 = 64;
const EDGES: usize = WAITERS as usize + 2 * 16 * 16;

fn kind(word: WaiterWord) -> u16 {
    (word.status() as u16) << 1 | u16::from(matches!(word.place(), Place::Head(_)))
}

impl Edge {
    /// Its number, as [`take`] tells it.
    pub fn number(self) -> u16 {
        self.0
    }

    /// A word was written as it was: the look by a read-modify-write.
    pub fn is_nothing(self) -> bool {
        self.0 < PRIVATES && STATES[usize::from(self.0 >> 2)] == "no change"
    }

    const fn state(line: Line, closed: bool, how: u16) -> Self {
        Self((how << 1 | closed as u16) << 1 | line as u16)
    }

    /// The edge of a state word. `joined`: its new tail was in no queue before.
    pub fn of_state(line: Line, before: State, after: State, joined: bool) -> Self {
        let how = match (before.body(), after.body()) {
            (Body::Available(_), _) if before.body() == after.body() && before != after => 7,
            (Body::Queue(_), _) if before.body() == after.body() && before != after => 8,
            (Body::Available(from), Body::Available(to)) if to < from => 0,
            (Body::Available(from), Body::Available(to)) if to > from => 1,
            (Body::Available(_), Body::Queue(_)) => 2,
            (Body::Queue(from), Body::Queue(to)) if from != to => 3 + u16::from(!joined),
            (Body::Queue(_), Body::Available(0)) => 5,
            (Body::Queue(_), Body::Available(_)) => 6,
            _ => 9,
        };
        Self::state(line, before.is_closed(), how)
    }

    const fn waiter(line: Line, from: u16, to: u16) -> Self {
        Self(WAITERS + (line as u16) * 256 + from * 16 + to)
    }

    /// The edge of a waiter word; without a line it is in no queue.
    pub fn of_waiter(line: Option<Line>, before: WaiterWord, after: WaiterWord) -> Self {
        if let Some(line) = line {
            return Self::waiter(line, kind(before), kind(after));
        }
        let which = match (before.status().is_waiting(), after.status().is_waiting()) {
            (false, true) => 0,
            (true, true) => 1,
            (true, false) => 2,
            (false, false) => 3,
        };
        Self(PRIVATES + which)
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |gate| if gate { "gate" } else { "main" };
        if self.0 >= WAITERS {
            let at = self.0 - WAITERS;
            let half = |kind: u16| {
                let place = if kind & 1 == 1 { "Head" } else { "Link" };
                format!("{:?} {place}", STATUSES[usize::from(kind >> 1)])
            };
            let (from, to) = (half(at % 256 / 16), half(at % 16));
            write!(f, "waiter, {}: {from} -> {to}", line(at >= 256))
        } else if self.0 >= PRIVATES {
            write!(f, "slot: {}", PRIVATE[usize::from(self.0 - PRIVATES)])
        } else {
            let (gate, closed, how) = (self.0 & 1 == 1, self.0 & 2 == 2, usize::from(self.0 >> 2));
            let closed = if closed { ", CLOSED" } else { "" };
            write!(f, "state, {}{closed}: {}", line(gate), STATES[how])
        }
    }
}

thread_local! {
    static VISITED: RefCell<Box<[bool; EDGES]>> = RefCell::new(Box::new([false; EDGES]));
}

/// An edge was taken, on this OS thread.
pub fn visit(edge: Edge) {
    VISITED.with_borrow_mut(|visited| visited[usize::from(edge.0)] = true);
}

/// What was taken on this OS thread since this was asked last.
pub fn take() -> BTreeSet<u16> {
    VISITED.with_borrow_mut(|visited| {
        let taken =
            (0..).zip(visited.iter()).filter(|(_, taken)| **taken).map(|(at, _)| at).collect();
        visited.fill(false);
        taken
    })
}

/// The edge of a number that [`take`] gave.
pub fn edge(number: u16) -> Edge {
    Edge(number)
}

/// Edges that no execution takes, and why.
#[derive(Clone, Copy, Debug)]
pub struct Never {
    /// Which.
    pub edge: Edge,
    /// Why not.
    pub why: &'static str,
}

const GATE_GIVES_NOTHING: &str = "nothing is ever available at the gate, and no release gives to it: it is joined, left and closed";
const NO_WAKER_NO_GATE: &str =
    "a `drained` joins the gate with the waker of the poll that it is in";
const CLOSED_IS_CLOSED: &str = "nobody takes from, or joins, a closed queue";
const CLOSED_TWICE: &str = "CLOSED is set by an or, which changes nothing the second time";
const CLOSED_AVAILABLE: &str =
    "ends its waiters before it places permits: an emptied closed queue goes to Available(0)";

/// Every edge that could be told apart and makes sense of its words: those to be taken, and those that
/// cannot be.
pub fn machine() -> (Vec<Edge>, Vec<Never>) {
    let (mut edges, mut nevers) = (Vec::new(), Vec::new());
    for line in LINES {
        for how in 0..=8 {
            for closed in [false, true] {
                let why = match (line, closed, how) {
                    (Line::Gate, _, 0 | 1 | 6) => Some(GATE_GIVES_NOTHING),
                    (_, true, 0 | 2 | 3) => Some(CLOSED_IS_CLOSED),
                    (_, true, 7 | 8) => Some(CLOSED_TWICE),
                    (Line::Main, true, 6) => Some(CLOSED_AVAILABLE),
                    _ => None,
                };
                let edge = Edge::state(line, closed, how);
                match why {
                    Some(why) => nevers.push(Never { edge, why }),
                    None => edges.push(edge),
                }
            }
        }
        waiters(line, &mut edges, &mut nevers);
    }
    edges.extend((PRIVATES..PRIVATES + PRIVATE.len() as u16).map(Edge));
    (edges, nevers)
}

fn waiters(line: Line, edges: &mut Vec<Edge>, nevers: &mut Vec<Never>) {
    use Status::{Bare, Cancelled, First, Granted, GrantedBusy, Replaced, Shut, Swapping};

    let mut add = |from: (Status, bool), to: (Status, bool)| {
        let kind = |(status, head): (Status, bool)| (status as u16) << 1 | u16::from(head);
        let edge = Edge::waiter(line, kind(from), kind(to));
        let gives = matches!(to.0, Granted | GrantedBusy) || (from == to && from.1);
        let why = match line {
            Line::Gate if gives => Some(GATE_GIVES_NOTHING),
            Line::Gate if from.0 == Bare => Some(NO_WAKER_NO_GATE),
            _ => None,
        };
        match why {
            Some(why) => nevers.push(Never { edge, why }),
            None => edges.push(edge),
        }
    };
    for head in [false, true] {
        for (from, to) in [
            (Bare, Swapping),
            (First, Swapping),
            (Replaced, Swapping),
            (Swapping, First),
            (Swapping, Replaced),
            (Bare, Granted),
            (First, Granted),
            (First, GrantedBusy),
            (Replaced, GrantedBusy),
            (Swapping, GrantedBusy),
            (Bare, Cancelled),
            (First, Cancelled),
            (Replaced, Cancelled),
            (Bare, Shut),
            (First, Shut),
            (Swapping, Shut),
            (Replaced, Shut),
        ] {
            if !(line == Line::Gate && (from, to) == (Swapping, First)) {
                add((from, head), (to, head));
            }
        }
    }
    for status in [Bare, First, Swapping, Replaced] {
        // A cut up to one that waits, a cut of all that is older, and a part.
        add((status, false), (status, false));
        add((status, false), (status, true));
        add((status, true), (status, true));
    }
    if line == Line::Gate {
        for head in [false, true] {
            let kind = |status: Status| (status as u16) << 1 | u16::from(head);
            let edge = Edge::waiter(line, kind(Swapping), kind(First));
            nevers.push(Never { edge, why: NO_WAKER_NO_GATE });
        }
    }
}

const _: () = assert!((STATES.len() as u16) << 2 <= PRIVATES);
