//! The order of service, watched where the order of joining is known.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use semaphore_core::AcquireError;
use tokio::time::sleep;

use crate::bank::Job;
use crate::dice::Dice;
use crate::pool::{AcquireOwned, OwnedLease, Pool, Semaphore};
use crate::tally::Tally;

/// How many places in the line one cohort takes.
const COHORT: usize = 8;
/// The time between two cohorts.
const PAUSE: Duration = Duration::from_millis(6);

/// Sends cohorts through the line, among all the others, and watches the order of service.
pub(crate) async fn parade(pool: Arc<Pool>, mut dice: Dice) -> Tally {
    let mut tally = Tally::default();
    loop {
        let _asking = pool.asking.enter();
        let mut cohort = Cohort::join(&pool.gate);
        while let Some(leases) = poll_fn(|cx| cohort.poll_served(cx)).await {
            for lease in leases {
                tally.in_line += 1;
                pool.put_to_work(lease, Job::draw(&mut dice));
            }
        }
        tally.out_of_order += cohort.out_of_order;
        if cohort.closed {
            return tally;
        }
        sleep(PAUSE).await;
    }
}

/// Requests that joined the line in a known order, since one task put them there.
pub(crate) struct Cohort {
    /// Those without an answer, the oldest first.
    waiting: Vec<AcquireOwned>,
    out_of_order: u64,
    closed: bool,
}

impl Cohort {
    fn join(gate: &Arc<Semaphore>) -> Self {
        let request = || Arc::clone(gate).acquire_owned().enqueue();
        let waiting = std::iter::repeat_with(request).take(COHORT).collect();
        Self { waiting, out_of_order: 0, closed: false }
    }

    /// The leases that were granted since the last poll; `None` when nobody waits any more.
    ///
    /// Polls the youngest first. Whoever is found served was served before its elders are
    /// looked at; so each of them must be found served too, whatever else runs meanwhile.
    fn poll_served(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<OwnedLease>>> {
        let mut leases = Vec::new();
        for place in (0..self.waiting.len()).rev() {
            match Pin::new(&mut self.waiting[place]).poll(cx) {
                Poll::Pending if leases.is_empty() => continue,
                Poll::Pending => {
                    self.out_of_order += 1;
                    continue;
                }
                Poll::Ready(Ok(lease)) => leases.push(lease),
                Poll::Ready(Err(error)) => self.closed |= matches!(error, AcquireError::Closed),
            }
            drop(self.waiting.remove(place));
        }
        if !leases.is_empty() {
            Poll::Ready(Some(leases))
        } else if self.waiting.is_empty() {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    }
}
