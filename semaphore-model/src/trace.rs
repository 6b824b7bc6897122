//! What happened, for a person to read: a column for each thread, a line for each transition.

use std::fmt::Write as _;

use semaphore_core::model::{Role, State, WaiterWord, Write};

use crate::op::{Op, Said};

/// Something that happened in an execution.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// To which thread.
    pub thread: usize,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// A call begins.
    Begins(Op),
    /// A call returns.
    Returns(Op, Said),
    /// A word is changed.
    Writes(Write),
}

/// Where a permit can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Where {
    /// Available.
    Free,
    /// In part with a request that waits.
    Part(usize),
    /// With a request that was granted and has not been polled since.
    Granted(usize),
    /// In the hand of a running call of that thread.
    Hand(usize),
    /// In a lease of that thread.
    Held(usize),
}

/// How much is shown.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// The width of a column.
    pub width: usize,
    /// Hints, links for search, the free list and wakers, too.
    pub all: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 46, all: false }
    }
}

/// A word as its owner would write it.
fn word(role: Role, value: u64) -> String {
    match role {
        Role::State(_) => format!("{:?}", State(value)),
        Role::Waiter(_) => format!("{:?}", WaiterWord(value)),
        _ => format!("{value:#x}"),
    }
}

fn name(role: Role) -> String {
    use semaphore_core::model::{Line, SlotIndex};
    match role {
        Role::State(Line::Main) => "S".to_owned(),
        Role::State(Line::Gate) => "gate".to_owned(),
        Role::Waiter(slot) => format!("{:?}", SlotIndex(slot)),
        Role::Capacity => "N".to_owned(),
        Role::Existing => "existing".to_owned(),
        Role::Stamps => "stamps".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// One moment as text, or `None` if it is a detail that nobody asked for.
pub fn line(what: &What, all: bool) -> Option<String> {
    match *what {
        What::Begins(op) => Some(format!("{op:?}")),
        What::Returns(op, said) => Some(format!("{op:?} = {said}")),
        What::Writes(Write { role, before, after }) => {
            let main =
                matches!(role, Role::State(_) | Role::Waiter(_) | Role::Capacity | Role::Existing);
            // The read-modify-write that only looks.
            if (!main && !all) || before == Some(after) {
                return None;
            }
            let from = before.map_or_else(String::new, |before| format!("{} ", word(role, before)));
            Some(format!("  {}: {from}-> {}", name(role), word(role, after)))
        }
    }
}

/// The whole of it, in columns. Long lines go over into the next column rather than onto a line of their own.
pub fn columns(log: &[Moment], style: &Style) -> String {
    let mut threads: Vec<usize> = log.iter().map(|moment| moment.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let mut text = String::new();
    for (column, thread) in threads.iter().enumerate() {
        let title = if *thread == 0 { "set up".to_owned() } else { format!("thread {thread}") };
        let width = if column + 1 == threads.len() { 0 } else { style.width };
        let _ = write!(text, "{title:<width$}");
    }
    text.push('\n');
    let wide = style.width;
    for moment in log {
        let Some(line) = line(&moment.what, style.all) else { continue };
        let column = threads.iter().position(|thread| *thread == moment.thread).unwrap_or(0);
        let _ = writeln!(text, "{:indent$}{line}", "", indent = column * wide);
    }
    text
}
