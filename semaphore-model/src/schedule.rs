//! A schedule as text: which thread runs for how many steps, one after the other. And the files that replay one.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use crate::scenario::Scenario;

/// A thread runs, for so many steps or until it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The checker's number of the thread.
    pub thread: usize,
    /// How many steps; `None`: as many as there are.
    pub steps: Option<usize>,
}

/// Turns, one after the other. After the last of them whoever runs goes on until it cannot, and then the one
/// with the lowest number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns(pub Vec<Turn>);

impl Turns {
    /// From the thread of each step.
    pub fn of_steps(steps: impl IntoIterator<Item = usize>) -> Self {
        let mut turns: Vec<Turn> = Vec::new();
        for thread in steps {
            match turns.last_mut() {
                Some(Turn { thread: last, steps: Some(steps) }) if *last == thread => *steps += 1,
                _ => turns.push(Turn { thread, steps: Some(1) }),
            }
        }
        Self(turns)
    }

    /// The same with one turn less, or with one turn without an end, or with one step less in a turn:
    /// the shorter ones first.
    pub fn simpler(&self) -> Vec<Self> {
        let mut simpler = Vec::new();
        for at in 0..self.0.len() {
            let mut fewer = self.0.clone();
            fewer.remove(at);
            simpler.push(Self(fewer));
        }
        for at in 0..self.0.len() {
            if self.0[at].steps.is_some() {
                let mut longer = self.0.clone();
                longer[at].steps = None;
                simpler.push(Self(longer));
            }
        }
        simpler
    }
}

impl fmt::Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Turn { thread, steps }) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            match steps {
                Some(steps) => write!(f, "{space}{thread}x{steps}")?,
                None => write!(f, "{space}{thread}x*")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Turns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let turn = |word: &str| {
            let (thread, steps) = word.split_once('x')?;
            let thread = thread.parse().ok()?;
            let steps = if steps == "*" { None } else { Some(steps.parse().ok()?) };
            Some(Turn { thread, steps })
        };
        let turns = text.split_whitespace().map(|word| turn(word).ok_or_else(|| word.to_owned()));
        turns.collect::<Result<_, _>>().map(Self).map_err(|word| {
            format!(
                "`{word}` is no turn: it would be like 2x14, thread 2 for 14 steps, or 2x*, for all"
            )
        })
    }
}

/// A failure that can be had again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The name of the scenario.
    pub scenario: String,
    /// What the scenario was, in short: a changed scenario is not the one that failed.
    pub fingerprint: u64,
    /// The order in which its threads are started.
    pub order: Vec<usize>,
    /// The schedule.
    pub turns: Turns,
}

const TITLE: &str = "semaphore-model replay, version 1";

/// FNV-1a.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// What tells a scenario from another.
pub fn fingerprint(scenario: &Scenario) -> u64 {
    let Scenario { name, permits, max_waiters, setup, threads, .. } = scenario;
    fnv(&format!("{name} {permits} {max_waiters:?} {setup:?} {threads:?}"))
}

impl Replay {
    /// As a file.
    pub fn to_text(&self) -> String {
        let order: Vec<String> = self.order.iter().map(usize::to_string).collect();
        let mut text = format!(
            "{TITLE}\nscenario: {}\nfingerprint: {:016x}\norder: {}\nschedule: {}\n",
            self.scenario,
            self.fingerprint,
            order.join(" "),
            self.turns
        );
        let sum = fnv(&text);
        let _ = writeln!(text, "sum: {sum:016x}");
        text
    }

    /// From a file.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return Err(format!("line 1: not a replay file; the first line would be `{TITLE}`"));
        }
        let mut field = |number: usize, name: &str| {
            let line = lines.next().unwrap_or_default();
            line.strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(": "))
                .map(str::to_owned)
                .ok_or_else(|| format!("line {number}: expected `{name}: ...`, found `{line}`"))
        };
        let hex = |line, text: &str| {
            u64::from_str_radix(text, 16).map_err(|error| format!("line {line}: {error}: `{text}`"))
        };
        let scenario = field(2, "scenario")?;
        let fingerprint = hex(3, &field(3, "fingerprint")?)?;
        let order = field(4, "order")?;
        let order = (order.split_whitespace().map(str::parse).collect::<Result<Vec<usize>, _>>())
            .map_err(|error| format!("line 4: {error}: `{order}`"))?;
        let turns = field(5, "schedule")?.parse().map_err(|error| format!("line 5: {error}"))?;
        let sum = hex(6, &field(6, "sum")?)?;
        let replay = Self { scenario, fingerprint, order, turns };
        if fnv(replay.to_text().rsplit_once("sum: ").map_or("", |(body, _)| body)) != sum {
            return Err("line 6: the sum does not match: the file was changed or cut".to_owned());
        }
        Ok(replay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay() -> Replay {
        let turns = Turns::of_steps([0, 0, 1, 1, 1, 2, 0]);
        Replay { scenario: "a_scenario".to_owned(), fingerprint: 77, order: vec![1, 0], turns }
    }

    #[test]
    fn round_trip() {
        assert_eq!(Replay::from_text(&replay().to_text()), Ok(replay()));
        let turns: Turns = "0x2 1x3 2x*".parse().unwrap();
        assert_eq!(turns.to_string(), "0x2 1x3 2x*");
    }

    #[test]
    fn damage_is_told() {
        let text = replay().to_text();
        let says = |text: &str| Replay::from_text(text).unwrap_err();
        assert!(says("").starts_with("line 1: not a replay file"));
        assert!(says(&text.replace("0x2", "0y2")).starts_with("line 5: `0y2` is no turn"));
        assert!(says(&text.replace("0x2", "0x3")).starts_with("line 6: the sum does not match"));
        assert!(says(&text.replace("order: 1 0", "order: 1 z")).starts_with("line 4"));
        assert!(says(&text[..text.len() / 2]).starts_with("line "));
    }
}
