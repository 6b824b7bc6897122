//! Four SQLite connections, sixty-four clients: the semaphore at its main job.
//!
//! ```text
//! cargo run --release --example pool -- [--connections 4] [--clients 64] [--seconds 3] \
//!     [--metrics]
//! ```
//!
//! The pool opens connections on demand and counts none of them: the semaphore alone decides how
//! many there are. Clients read and write through it; some set deadlines, some go away while they
//! wait or while their work runs, some find the queue full, and in the end the pool is closed
//! under all of them. Witnesses that know nothing of the semaphore stand around it: a gauge on
//! the connections, the books of the clients, and the data in the bank. Where one of them
//! disagrees, the run says so and exits with status 1; nonsense options exit with 2.

mod bank;
mod client;
mod dice;
mod gauge;
mod metrics;
mod options;
mod parade;
mod pool;
mod report;
mod tally;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::bank::Bank;
use crate::dice::Dice;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::pool::{Balance, Pool};
use crate::report::Report;
use crate::tally::Tally;

type Fault = Box<dyn Error + Send + Sync>;

/// What takes longer than this after `close()` is stuck, and the run has failed.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(4);

fn main() -> ExitCode {
    let options = Options::from_command_line();
    if cfg!(any(feature = "loom", feature = "shuttle")) {
        eprintln!("pool: built for a model checker; run it without `loom` and `shuttle`");
        return ExitCode::from(2);
    }
    let metrics = options.metrics.then(Metrics::install).transpose();
    match metrics.and_then(|metrics| Ok((run(&options)?, metrics))) {
        Ok((report, metrics)) => {
            println!("{}", report.table());
            if let Some(metrics) = metrics {
                println!("{}", metrics.table());
            }
            report.verdict(&options)
        }
        Err(fault) => {
            eprintln!("pool: {fault}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(options: &Options) -> Result<Report, Fault> {
    let directory = tempfile::tempdir()?;
    let bank = Bank::found(directory.path())?;
    let pool = Arc::new(Pool::new(options, bank)?);

    let mut people = JoinSet::new();
    for number in 0..options.clients {
        people.spawn(client::client(Arc::clone(&pool), Dice(u64::from(number))));
    }
    people.spawn(parade::parade(Arc::clone(&pool), Dice(u64::MAX)));
    people.spawn(client::housekeeper(Arc::clone(&pool), Dice(u64::MAX - 1)));
    sleep(Duration::from_secs(options.seconds.into())).await;

    let drained_in = close_and_drain(&pool).await;
    let tally = settle(people).await?;
    Ok(Report::new(&pool, tally, drained_in))
}

/// Closes the pool under its clients and waits until every lease is back.
async fn close_and_drain(pool: &Pool) -> Duration {
    let begun = Instant::now();
    pool.gate.close();
    let drained = timeout(SHUTDOWN_LIMIT, pool.gate.drained()).await.is_ok();
    let Balance { available, held, .. } = pool.balance();
    if !drained || held != 0 || available != pool.connections {
        let answer = if drained { "ready" } else { "pending" };
        let state = format!("{held} connections in use, {available} permits available");
        pool.faults().push(format!("drained() was {answer} with {state}").into());
    }
    begun.elapsed()
}

/// Waits for all the tasks, which leave when they meet the closed pool, and adds up their books.
async fn settle(mut people: JoinSet<Tally>) -> Result<Tally, Fault> {
    let mut total = Tally::default();
    let everybody = async {
        while let Some(tally) = people.join_next().await {
            total.add(&tally?)?;
        }
        Ok::<_, Fault>(())
    };
    timeout(SHUTDOWN_LIMIT, everybody)
        .await
        .map_err(|_| "a client still waits, though the pool is closed")??;
    Ok(total)
}
