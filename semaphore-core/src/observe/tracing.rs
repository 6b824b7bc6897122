//! An observer for the facade `tracing`.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use tracing::{debug, trace};

use crate::error::AcquireError;
use crate::observer::Observer;

/// Tells of the requests that wait, and of those that are refused, as events of `tracing`.
///
/// | event | level | fields besides `semaphore` |
/// |---|---|---|
/// | `queued` | trace | |
/// | `granted` | trace | `waited` |
/// | `cancelled`, `timed out`, `closed` | debug | `waited` |
/// | `refused` | debug | `error` |
///
/// The target is `semaphore_core`. An event belongs to the span of the call that it tells of: a grant is
/// told by the poll that finds it. A request that is served at once is not told of.
///
/// ```
/// use semaphore_core::{Semaphore, TracingObserver};
///
/// let semaphore =
///     Semaphore::builder().permits(4).observer(TracingObserver::new("connections")).build()?;
/// # drop(semaphore);
/// # Ok::<(), semaphore_core::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TracingObserver {
    name: Cow<'static, str>,
}

const TARGET: &str = "semaphore_core";

impl TracingObserver {
    /// An observer whose events have the field `semaphore = name`.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into() }
    }

    fn name(&self) -> &str {
        &self.name
    }
}

fn waited(since: Instant) -> Duration {
    since.elapsed()
}

impl Observer for TracingObserver {
    type Stamp = Instant;

    fn queued(&self) -> Instant {
        trace!(target: TARGET, semaphore = self.name(), "queued");
        Instant::now()
    }

    fn granted(&self, since: Instant) {
        trace!(target: TARGET, semaphore = self.name(), waited = ?waited(since), "granted");
    }

    fn cancelled(&self, since: Instant) {
        debug!(target: TARGET, semaphore = self.name(), waited = ?waited(since), "cancelled");
    }

    fn timed_out(&self, since: Instant) {
        debug!(target: TARGET, semaphore = self.name(), waited = ?waited(since), "timed out");
    }

    fn closed(&self, since: Instant) {
        debug!(target: TARGET, semaphore = self.name(), waited = ?waited(since), "closed");
    }

    fn refused(&self, why: &AcquireError) {
        debug!(target: TARGET, semaphore = self.name(), error = %why, "refused");
    }
}
