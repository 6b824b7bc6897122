//! The clients: how they wait, and what becomes of their requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use semaphore_core::AcquireError;
use tokio::time::sleep;

use crate::bank::Job;
use crate::dice::Dice;
use crate::pool::{OwnedLease, Pool};
use crate::tally::Tally;

/// The longest that a client thinks between two requests.
const PAUSE: Duration = Duration::from_millis(6);
/// The longest deadline, and the longest that a client waits before it goes away. A few times a
/// common wait in the default run, so that both ways of each race happen.
const PATIENCE: Duration = Duration::from_millis(24);
/// How long the housekeeper rests between two requests for the whole pool.
const HOUSEKEEPING: Duration = Duration::from_millis(4);

/// How a client waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Temper {
    Patient,
    /// Gives the semaphore a deadline.
    Hurried(Duration),
    /// Goes away after a while.
    Fickle(Duration),
}

impl Temper {
    fn draw(dice: &mut Dice) -> Self {
        match dice.below(3) {
            0 => Self::Patient,
            1 => Self::Hurried(dice.up_to(PATIENCE)),
            _ => Self::Fickle(dice.up_to(PATIENCE)),
        }
    }
}

/// What became of a request.
pub(crate) enum Answer {
    Served(OwnedLease),
    TimedOut,
    Refused,
    Cancelled,
    Closed,
}

impl From<Result<OwnedLease, AcquireError>> for Answer {
    fn from(result: Result<OwnedLease, AcquireError>) -> Self {
        match result {
            Ok(lease) => Self::Served(lease),
            Err(AcquireError::TimedOut) => Self::TimedOut,
            Err(AcquireError::QueueFull) => Self::Refused,
            Err(AcquireError::Closed) => Self::Closed,
            Err(AcquireError::ExceedsCapacity { requested, ceiling }) => {
                unreachable!("asked for {requested} of {ceiling} connections")
            }
        }
    }
}

/// Asks, works, thinks, until the pool is closed.
pub(crate) async fn client(pool: Arc<Pool>, mut dice: Dice) -> Tally {
    let mut tally = Tally::default();
    loop {
        let asked = Instant::now();
        match pool.ask(1, Temper::draw(&mut dice)).await {
            Answer::Served(lease) => {
                tally.served(asked.elapsed());
                let work = pool.put_to_work(lease, Job::draw(&mut dice));
                if dice.below(8) == 0 {
                    tally.left_at_work += 1;
                    drop(work); // Goes away; the work and its lease go on.
                } else {
                    work.await.expect("a job does not panic");
                }
            }
            Answer::TimedOut => tally.timed_out += 1,
            Answer::Refused => tally.refused += 1,
            Answer::Cancelled => tally.cancelled += 1,
            Answer::Closed => {
                tally.closed += 1;
                return tally;
            }
        }
        sleep(dice.up_to(PAUSE)).await;
    }
}

/// Asks for the whole pool now and then. Small requests keep coming, and yet it is served: no
/// later one passes it, and its permits gather at the head of the line. It loses patience like
/// everybody else, and then those that it had gathered go to the next in line.
pub(crate) async fn housekeeper(pool: Arc<Pool>, mut dice: Dice) -> Tally {
    let mut tally = Tally::default();
    let everything = u16::try_from(pool.connections).expect("the option is a u16");
    loop {
        sleep(HOUSEKEEPING).await;
        match pool.ask(everything, Temper::draw(&mut dice)).await {
            Answer::Served(lease) => {
                tally.whole_pool += 1;
                pool.put_to_work(lease, Job::Checkpoint).await.expect("a job does not panic");
            }
            Answer::Closed => return tally,
            Answer::Refused | Answer::TimedOut | Answer::Cancelled => {}
        }
    }
}
