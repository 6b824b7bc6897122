//! Who is served how often: most against least.
//!
//! ```text
//! cargo run --release --example fairness -- [--seconds 1]
//! ```
//!
//! First: eight tasks on two workers compete for one permit. A fair semaphore serves them in turns. One
//! that lets whoever comes first take what another was woken for (*barging*) makes more acquisitions, all
//! of them by a task that has never waited.
//!
//! Second: one task wants all eight permits, while seven others come and go with one each. Printed is
//! how often the large request was served, and how many small ones were served while it waited, at
//! most: in strict order no more than were ahead of it.

use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use futures_util::FutureExt;
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, yield_now};

/// Shows how evenly semaphores serve.
#[derive(Parser)]
#[command(name = "fairness", version)]
struct Options {
    /// How long each run takes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
}

const TASKS: usize = 8;

trait Limit: Send + Sync + 'static {
    fn with_permits(n: usize) -> Self;
    fn permit(&self) -> impl Future<Output: Send> + Send;
}

/// One that can be asked for several permits at once.
trait Weighted: Limit {
    fn permits(&self, n: u32) -> impl Future<Output: Send> + Send;
}

macro_rules! limit {
    ($Semaphore:ty) => {
        impl Limit for $Semaphore {
            fn with_permits(n: usize) -> Self {
                Self::new(n)
            }

            fn permit(&self) -> impl Future<Output: Send> + Send {
                self.acquire()
            }
        }
    };
}

limit!(semaphore_core::Semaphore);
limit!(tokio::sync::Semaphore);
limit!(smol::lock::Semaphore);

macro_rules! weighted {
    ($Semaphore:ty) => {
        impl Weighted for $Semaphore {
            fn permits(&self, n: u32) -> impl Future<Output: Send> + Send {
                self.acquire_many(n)
            }
        }
    };
}

weighted!(semaphore_core::Semaphore);
weighted!(tokio::sync::Semaphore);

fn main() -> ExitCode {
    let options = Options::parse();
    if cfg!(any(feature = "loom", feature = "shuttle")) {
        eprintln!("fairness: built for a model checker; run it without `loom` and `shuttle`");
        return ExitCode::from(2);
    }
    let time = Duration::from_secs(options.seconds);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("two workers");
    let competition = [
        ("semaphore-core", compete::<semaphore_core::Semaphore>(&runtime, time)),
        ("tokio", compete::<tokio::sync::Semaphore>(&runtime, time)),
        ("async-lock", compete::<smol::lock::Semaphore>(&runtime, time)),
    ];
    let crowds = [
        ("semaphore-core", crowd::<semaphore_core::Semaphore>(&runtime, time)),
        ("tokio", crowd::<tokio::sync::Semaphore>(&runtime, time)),
    ];
    let mut table =
        aligned(&["8 tasks, 1 permit", "served per s", "most", "least", "most / least"]);
    for (name, served) in competition {
        let (most, least) = (served.iter().max(), served.iter().min());
        let (most, least) = (*most.expect("eight"), *least.expect("eight"));
        table.add_row([
            name.to_owned(),
            (served.iter().sum::<u64>() / options.seconds).to_string(),
            most.to_string(),
            least.to_string(),
            ratio(most, least),
        ]);
    }
    println!("{table}\n");
    let mut table = aligned(&[
        "1 large, 7 small, 8 permits",
        "large per s",
        "small per s",
        "small while a large one waited, at most",
    ]);
    for (name, Crowd { large, small, overtook }) in crowds {
        table.add_row([
            name.to_owned(),
            (large / options.seconds).to_string(),
            (small / options.seconds).to_string(),
            overtook.to_string(),
        ]);
    }
    println!("{table}");
    ExitCode::SUCCESS
}

fn aligned(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn ratio(most: u64, least: u64) -> String {
    if least == 0 {
        "somebody never".to_owned()
    } else {
        format!("{:.2}", most as f64 / least as f64)
    }
}

/// How often each of the tasks was served.
fn compete<L: Limit>(runtime: &Runtime, time: Duration) -> Vec<u64> {
    let (limit, over) = (Arc::new(L::with_permits(1)), Arc::new(AtomicBool::new(false)));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (limit, over) = (Arc::clone(&limit), Arc::clone(&over));
        let task = async move {
            let mut served = 0;
            while !over.load(SeqCst) {
                let permit = limit.permit().await;
                served += 1;
                work();
                drop(permit);
            }
            served
        };
        tasks.spawn_on(task, runtime.handle());
    }
    // Not by the runtime's timer: a task that never waits may keep the workers from it.
    thread::sleep(time);
    over.store(true, SeqCst);
    runtime.block_on(tasks.join_all())
}

/// About a microsecond.
fn work() {
    std::hint::black_box((0..1_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
}

struct Crowd {
    large: u64,
    small: u64,
    overtook: u64,
}

fn crowd<W: Weighted>(runtime: &Runtime, time: Duration) -> Crowd {
    let (limit, over) = (Arc::new(W::with_permits(TASKS)), Arc::new(AtomicBool::new(false)));
    let small = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS - 1 {
        let (limit, over, small) = (Arc::clone(&limit), Arc::clone(&over), Arc::clone(&small));
        let task = async move {
            while !over.load(SeqCst) {
                let permit = limit.permit().await;
                small.fetch_add(1, SeqCst);
                yield_now().await;
                drop(permit);
            }
        };
        tasks.spawn_on(task, runtime.handle());
    }
    let large = runtime.spawn({
        let (limit, over, small) = (Arc::clone(&limit), Arc::clone(&over), Arc::clone(&small));
        async move {
            let (mut served, mut overtook) = (0, 0);
            while !over.load(SeqCst) {
                let mut request = pin!(limit.permits(TASKS as u32));
                let permits = if let Some(permits) = request.as_mut().now_or_never() {
                    permits
                } else {
                    // In the queue. From the grant on nobody else has a permit.
                    let before = small.load(SeqCst);
                    let permits = request.await;
                    overtook = overtook.max(small.load(SeqCst) - before);
                    permits
                };
                served += 1;
                yield_now().await;
                drop(permits);
            }
            (served, overtook)
        }
    });
    thread::sleep(time);
    over.store(true, SeqCst);
    runtime.block_on(tasks.join_all());
    let (large, overtook) = runtime.block_on(large).expect("it does not panic");
    Crowd { large, small: small.load(SeqCst), overtook }
}
