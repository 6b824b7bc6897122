//! What is aimed at, and by how much it is met or missed.

use crate::contender::{FLOOR, REFERENCE, SUBJECT};
use crate::measure::Figure;

/// What a figure of the subject is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// So many times tokio's median.
    OfTokio(f64),
    /// So many times the bare atomic's median.
    OfBare(f64),
    /// So many times its own median of another figure of the row, by its place.
    OfOwn(usize, f64),
    /// That value.
    Value(f64),
}

/// A goal: met if each of its limits is met, or, of alternatives, one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// No goal.
    None,
    /// One limit.
    One(Limit),
    /// Both.
    Both(Limit, Limit),
    /// Either.
    Either(Limit, Limit),
}

/// How a goal fared.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Whether it is met.
    pub met: bool,
    /// In words and numbers.
    pub text: String,
}

fn median_of(figures: &[Figure], name: &str) -> Option<f64> {
    figures.iter().find(|figure| figure.name == name).map(Figure::median)
}

impl Limit {
    /// Whether the subject keeps to it, in words too; nothing if a contender is missing.
    fn judge(self, row: &[Vec<Figure>], at: usize) -> Option<Verdict> {
        let own = median_of(&row[at], SUBJECT)?;
        let (is, limit, unit) = match self {
            Self::OfTokio(limit) => (own / median_of(&row[at], REFERENCE)?, limit, " × tokio"),
            Self::OfBare(limit) => (own / median_of(&row[at], FLOOR)?, limit, " × bare"),
            Self::OfOwn(other, limit) => {
                (own / median_of(&row[other], SUBJECT)?, limit, " × the same without a storm")
            }
            Self::Value(limit) => (own, limit, ""),
        };
        let met = is <= limit;
        let text = if met {
            format!("{is:.2}{unit}, goal ≤ {limit}: met")
        } else if limit > 0.0 {
            let over = 100.0 * (is / limit - 1.0);
            format!("{is:.2}{unit}, goal ≤ {limit}: missed by {over:.0} %")
        } else {
            format!("{is:.2}{unit}, goal ≤ {limit}: missed")
        };
        Some(Verdict { met, text })
    }
}

impl Goal {
    /// How it fared for figure `at` of a row.
    #[must_use]
    pub fn judge(self, row: &[Vec<Figure>], at: usize) -> Option<Verdict> {
        let join = |one: Limit, other: Limit, word: &str, met: fn(bool, bool) -> bool| {
            let (one, other) = (one.judge(row, at)?, other.judge(row, at)?);
            Some(Verdict {
                met: met(one.met, other.met),
                text: format!("{}; {word} {}", one.text, other.text),
            })
        };
        match self {
            Self::None => None,
            Self::One(limit) => limit.judge(row, at),
            Self::Both(one, other) => join(one, other, "and", |a, b| a && b),
            Self::Either(one, other) => join(one, other, "or", |a, b| a || b),
        }
    }
}
