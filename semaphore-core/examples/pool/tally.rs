//! The books of the clients.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::Fault;

/// A client's books. The semaphore has no part in them.
pub(crate) struct Tally {
    /// Of those served, in microseconds.
    pub(crate) waits: Histogram<u64>,
    pub(crate) timed_out: u64,
    pub(crate) refused: u64,
    pub(crate) cancelled: u64,
    pub(crate) closed: u64,
    /// Served, and gone before the work was done.
    pub(crate) left_at_work: u64,
    /// Served with all the permits at once.
    pub(crate) whole_pool: u64,
    /// Served in a cohort, whose order was watched.
    pub(crate) in_line: u64,
    /// Found waiting in a cohort behind somebody younger who was served.
    pub(crate) out_of_order: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            waits: Histogram::new(3).expect("three significant digits are allowed"),
            timed_out: 0,
            refused: 0,
            cancelled: 0,
            closed: 0,
            left_at_work: 0,
            whole_pool: 0,
            in_line: 0,
            out_of_order: 0,
        }
    }
}

impl Tally {
    pub(crate) fn served(&mut self, wait: Duration) {
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.waits.record(micros).expect("the histogram grows as needed");
    }

    pub(crate) fn add(&mut self, other: &Self) -> Result<(), Fault> {
        self.waits.add(&other.waits)?;
        self.timed_out += other.timed_out;
        self.refused += other.refused;
        self.cancelled += other.cancelled;
        self.closed += other.closed;
        self.left_at_work += other.left_at_work;
        self.whole_pool += other.whole_pool;
        self.in_line += other.in_line;
        self.out_of_order += other.out_of_order;
        Ok(())
    }

    /// All the leases that anybody was given.
    pub(crate) fn leases(&self) -> u64 {
        self.waits.len() + self.in_line + self.whole_pool
    }
}
