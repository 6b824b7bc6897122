//! An observer for the facade `metrics`.

use std::time::Instant;

use metrics::{Counter, Gauge, Histogram, SharedString, counter, gauge, histogram};

use crate::error::AcquireError;
use crate::observer::Observer;

/// Reports the requests that wait, and those that are refused, to the `metrics` facade.
///
/// | metric | kind | labels besides `semaphore` | is |
/// |---|---|---|---|
/// | `semaphore_waiting` | gauge | | requests that wait, or that were granted and not polled since |
/// | `semaphore_wait_seconds` | histogram | `outcome`: `granted`, `cancelled`, `timed_out`, `closed` | how long a request had waited when it ended so; its count is how many did |
/// | `semaphore_refused_total` | counter | `reason`: `closed`, `queue_full`, `exceeds_capacity` | requests that failed without waiting |
///
/// A request that is served at once is not counted: that path stays as it is without an observer. What
/// the facade's recorder does with a value (allocate, lock) is done on the thread of the call.
///
/// ```
/// use semaphore_core::{MetricsObserver, Semaphore};
///
/// // After the program has installed its recorder:
/// let semaphore =
///     Semaphore::builder().permits(4).observer(MetricsObserver::new("connections")).build()?;
/// # drop(semaphore);
/// # Ok::<(), semaphore_core::BuildError>(())
/// ```
#[derive(Clone)]
pub struct MetricsObserver {
    waiting: Gauge,
    granted: Histogram,
    cancelled: Histogram,
    timed_out: Histogram,
    closed: Histogram,
    refused_closed: Counter,
    refused_queue_full: Counter,
    refused_exceeds: Counter,
}

impl MetricsObserver {
    /// An observer that labels what it reports `semaphore = name`.
    ///
    /// It reports to the recorder that is installed when it is made.
    pub fn new(name: impl Into<SharedString>) -> Self {
        let name = name.into();
        let wait = |outcome: &'static str| histogram!("semaphore_wait_seconds", "semaphore" => name.clone(), "outcome" => outcome);
        let refused = |reason: &'static str| counter!("semaphore_refused_total", "semaphore" => name.clone(), "reason" => reason);
        Self {
            granted: wait("granted"),
            cancelled: wait("cancelled"),
            timed_out: wait("timed_out"),
            closed: wait("closed"),
            refused_closed: refused("closed"),
            refused_queue_full: refused("queue_full"),
            refused_exceeds: refused("exceeds_capacity"),
            waiting: gauge!("semaphore_waiting", "semaphore" => name),
        }
    }

    fn ended(&self, how: &Histogram, since: Instant) {
        self.waiting.decrement(1.0);
        how.record(since.elapsed());
    }
}

impl std::fmt::Debug for MetricsObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetricsObserver").finish_non_exhaustive()
    }
}

impl Observer for MetricsObserver {
    type Stamp = Instant;

    fn queued(&self) -> Instant {
        self.waiting.increment(1.0);
        Instant::now()
    }

    fn granted(&self, since: Instant) {
        self.ended(&self.granted, since);
    }

    fn cancelled(&self, since: Instant) {
        self.ended(&self.cancelled, since);
    }

    fn timed_out(&self, since: Instant) {
        self.ended(&self.timed_out, since);
    }

    fn closed(&self, since: Instant) {
        self.ended(&self.closed, since);
    }

    fn refused(&self, why: &AcquireError) {
        match why {
            AcquireError::Closed => self.refused_closed.increment(1),
            AcquireError::QueueFull => self.refused_queue_full.increment(1),
            AcquireError::ExceedsCapacity { .. } => self.refused_exceeds.increment(1),
            // Only a request that waits times out.
            AcquireError::TimedOut => {}
        }
    }
}
