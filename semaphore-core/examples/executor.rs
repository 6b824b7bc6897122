//! The semaphore inside an executor: one thread per core, and a limit on what is in flight.
//!
//! ```text
//! cargo run --release --example executor -- [--limit 8] [--tasks 64] [--requests 2000]
//! ```
//!
//! Each core has a thread with an executor of its own, which runs its tasks and steals from nobody; the
//! semaphore is the one thing that the threads share. Each task makes requests, one after the other: it
//! acquires a permit, does a few steps of work between which it lets others run, and gives the
//! permit back. Printed is how long a request waited for its permit, and took as a whole, with
//! this semaphore and with tokio's, in turns.
//!
//! The second table is about tokio's cooperative budget. A task of tokio's that acquires and succeeds
//! without ever waiting would keep its worker for itself; tokio's semaphore spends of the task's
//! budget, and makes it yield when that is used up. A future that needs no runtime cannot know of
//! that. [`cooperative`] makes it take part: one word where the request is made.

use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use hdrhistogram::Histogram;
use smol::LocalExecutor;
use smol::future::yield_now;
use tokio::task::coop::cooperative;

/// A thread-per-core executor with a limit on what is in flight.
#[derive(Clone, Copy, Parser)]
#[command(name = "executor", version)]
struct Options {
    /// Permits: requests in flight on all cores together
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Tasks on each core
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    tasks: u32,
    /// Requests that each task makes
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    requests: u32,
    /// How often each semaphore has its turn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// Steps of work that a request does with its permit.
const STEPS: usize = 3;
/// Acquisitions in a row of the task that does not want to let go of its worker.
const GREEDY: u64 = 10_000;

/// What limits the requests.
trait Limit: Send + Sync + 'static {
    fn with_permits(n: usize) -> Self;
    async fn permit(&self) -> impl Sized;
}

impl Limit for semaphore_core::Semaphore {
    fn with_permits(n: usize) -> Self {
        Self::new(n)
    }

    async fn permit(&self) -> impl Sized {
        self.acquire().await.expect("nobody closes it")
    }
}

impl Limit for tokio::sync::Semaphore {
    fn with_permits(n: usize) -> Self {
        Self::new(n)
    }

    async fn permit(&self) -> impl Sized {
        self.acquire().await.expect("nobody closes it")
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    if cfg!(any(feature = "loom", feature = "shuttle")) {
        eprintln!("executor: built for a model checker; run it without `loom` and `shuttle`");
        return ExitCode::from(2);
    }
    let mut rows = [("semaphore-core", Times::new()), ("tokio", Times::new())];
    for _ in 0..options.rounds {
        rows[0].1.add(&run::<semaphore_core::Semaphore>(options));
        rows[1].1.add(&run::<tokio::sync::Semaphore>(options));
    }
    let cores = cores();
    println!(
        "{cores} cores, {} tasks each, {} requests per task, {} in flight at most, {} rounds\n",
        options.tasks, options.requests, options.limit, options.rounds
    );
    println!("{}\n", latencies(&rows));
    println!("{}", budgets());
    ExitCode::SUCCESS
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, Into::into)
}

/// How long requests waited, how long they took as a whole, and how long all of them took.
struct Times {
    waited: Histogram<u64>,
    took: Histogram<u64>,
    elapsed: Duration,
}

impl Times {
    fn new() -> Self {
        let histogram = || Histogram::new(3).expect("three digits are few enough");
        Self { waited: histogram(), took: histogram(), elapsed: Duration::ZERO }
    }

    fn add(&mut self, other: &Self) {
        self.waited += &other.waited;
        self.took += &other.took;
        self.elapsed += other.elapsed;
    }
}

/// One thread per core; each runs its own tasks to their end.
fn run<L: Limit>(options: Options) -> Times {
    let limit = Arc::new(L::with_permits(options.limit as usize));
    let start = Arc::new(Barrier::new(cores()));
    let threads: Vec<_> = (0..cores())
        .map(|_| {
            let (limit, start) = (Arc::clone(&limit), Arc::clone(&start));
            thread::spawn(move || {
                let executor = Rc::new(LocalExecutor::new());
                start.wait();
                let begun = Instant::now();
                let mut times = Times::new();
                let tasks: Vec<_> = (0..options.tasks)
                    .map(|_| executor.spawn(client(Arc::clone(&limit), options.requests)))
                    .collect();
                smol::block_on(executor.run(async {
                    for task in tasks {
                        times.add(&task.await);
                    }
                }));
                times.elapsed = begun.elapsed();
                times
            })
        })
        .collect();
    let mut total = Times::new();
    for thread in threads {
        let times = thread.join().expect("no task panics");
        total.elapsed = total.elapsed.max(times.elapsed);
        total.add(&Times { elapsed: Duration::ZERO, ..times });
    }
    total
}

async fn client<L: Limit>(limit: Arc<L>, requests: u32) -> Times {
    let mut times = Times::new();
    for _ in 0..requests {
        let begun = Instant::now();
        let permit = limit.permit().await;
        let waited = begun.elapsed();
        for _ in 0..STEPS {
            yield_now().await;
        }
        drop(permit);
        times.waited += nanoseconds(waited);
        times.took += nanoseconds(begun.elapsed());
    }
    times
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn latencies(rows: &[(&str, Times)]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header([
        "microseconds",
        "",
        "p50",
        "p99",
        "p99.9",
        "max",
        "requests per s",
    ]);
    for (name, times) in rows {
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 requests")]
        let rate = times.took.len() as f64 / times.elapsed.as_secs_f64();
        for (what, histogram) in [("waited", &times.waited), ("as a whole", &times.took)] {
            let quantile = |q| micros(histogram.value_at_quantile(q));
            table.add_row([
                (*name).to_owned(),
                what.to_owned(),
                quantile(0.5),
                quantile(0.99),
                quantile(0.999),
                micros(histogram.max()),
                format!("{rate:.0}"),
            ]);
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[expect(clippy::cast_precision_loss, reason = "a latency")]
fn micros(nanoseconds: u64) -> String {
    format!("{:.1}", nanoseconds as f64 / 1_000.0)
}

/// How many permits, free each time, one task of tokio's takes in a row before its neighbour on the
/// same worker gets its turn.
fn budgets() -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_header(["on one worker of tokio's", "acquisitions before the neighbour ran"]);
    let ours = Arc::new(semaphore_core::Semaphore::new(1));
    let tokios = Arc::new(tokio::sync::Semaphore::new(1));
    let rows = [
        ("tokio", before_the_neighbour(async || drop(tokios.acquire().await))),
        ("semaphore-core", before_the_neighbour(async || drop(ours.acquire().await))),
        (
            "semaphore-core, cooperative(…)",
            before_the_neighbour(async || drop(cooperative(ours.acquire()).await)),
        ),
    ];
    for (name, acquisitions) in rows {
        let shown = acquisitions.map_or_else(|| format!("all {GREEDY}"), |n| n.to_string());
        table.add_row([name.to_owned(), shown]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn before_the_neighbour(acquire: impl AsyncFn()) -> Option<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("one thread");
    runtime.block_on(async {
        let (ran, taken) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
        let neighbour = tokio::spawn({
            let ran = Arc::clone(&ran);
            async move { ran.store(true, SeqCst) }
        });
        while taken.load(SeqCst) < GREEDY && !ran.load(SeqCst) {
            acquire().await;
            taken.fetch_add(1, SeqCst);
        }
        let first = ran.load(SeqCst).then(|| taken.load(SeqCst));
        neighbour.await.expect("it does not panic");
        first
    })
}
