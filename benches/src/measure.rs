//! Rounds, medians and spreads.

use std::time::{Duration, Instant};

/// One contender's work in one row. Given about how many operations to do, it says what each of
/// the row's figures came to.
pub type Run = Box<dyn FnMut(u64) -> Vec<f64>>;

/// One contender of a row.
#[allow(missing_debug_implementations)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Its work.
    pub run: Run,
}

/// What all contenders did for one figure of one row.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Which contender.
    pub name: &'static str,
    /// Its figures, one a round, sorted.
    pub sorted: Vec<f64>,
}

impl Figure {
    /// The value below which that part of the rounds lies.
    ///
    /// # Panics
    ///
    /// If there was no round.
    #[must_use]
    pub fn quantile(&self, part: f64) -> f64 {
        let last = self.sorted.len() - 1;
        self.sorted[(part * last as f64).round() as usize]
    }

    /// The median of the rounds.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Runs all entries `rounds` times, in turn, each round beginning with another one; a first round
/// does not count. Returns for each of the `figures` what each entry did.
#[must_use]
pub fn interleave(
    mut entries: Vec<Entry>,
    figures: usize,
    rounds: usize,
    operations: u64,
) -> Vec<Vec<Figure>> {
    let names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
    let mut samples = vec![vec![Vec::with_capacity(rounds); entries.len()]; figures];
    for round in 0..=rounds {
        for turn in 0..entries.len() {
            let at = (turn + round) % entries.len();
            let results = (entries[at].run)(operations);
            assert_eq!(results.len(), figures, "each figure of the row");
            if round > 0 {
                for (figure, result) in results.into_iter().enumerate() {
                    samples[figure][at].push(result);
                }
            }
        }
    }
    samples
        .into_iter()
        .map(|of_entries| {
            let sort = |(name, mut sorted): (&'static str, Vec<f64>)| {
                sorted.sort_by(f64::total_cmp);
                Figure { name, sorted }
            };
            names.iter().copied().zip(of_entries).map(sort).collect()
        })
        .collect()
}

/// A clock that adds up, without what reading it costs.
#[derive(Debug)]
pub struct Watch {
    total: Duration,
    operations: u64,
    reading: Duration,
}

impl Watch {
    /// A watch that stands at zero.
    #[must_use]
    pub fn new() -> Self {
        let reading = (0..64).map(|_| Instant::now().elapsed()).min().unwrap_or_default();
        Self { total: Duration::ZERO, operations: 0, reading }
    }

    /// Times `work`, which is that many operations.
    #[inline(always)]
    pub fn time<R>(&mut self, operations: u64, work: impl FnOnce() -> R) -> R {
        let begun = Instant::now();
        let result = work();
        self.total += begun.elapsed().saturating_sub(self.reading);
        self.operations += operations;
        result
    }

    /// Nanoseconds an operation.
    #[must_use]
    pub fn nanoseconds(&self) -> f64 {
        self.total.as_nanos() as f64 / self.operations as f64
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}
