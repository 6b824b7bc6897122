//! A thread explosion, and its repair: admission before submission.
//!
//! ```text
//! cargo run --release --example importer
//! ```
//!
//! An importer takes 128 records, rows of a SQLite file, and blocks for 120 ms on each, as a call to some
//! other service would. No more than four may be at it. Where the permit is taken decides how many
//! *threads* that takes: inside the blocking job, each waiting job is a thread of the blocking pool
//! that sleeps; before the job is submitted, only those that have a permit are threads.
//!
//! Each variant runs on a fresh tokio runtime. The threads of the process are counted every 10 ms, so
//! that a peak is a floor of the true one. What is claimed is checked: the exit status is 1 if a check
//! fails, and 75 if the whole takes longer than the watchdog allows. `docs/ADMISSION.md` explains.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use rusqlite::{Connection, OpenFlags, params};
use semaphore_core::Semaphore;
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinSet;

type Fault = Box<dyn Error + Send + Sync>;

const RECORDS: usize = 128;
const LIMIT: usize = 4;
const BLOCK: Duration = Duration::from_millis(120);
/// How often the threads are counted.
const SAMPLE: Duration = Duration::from_millis(10);
/// A fixed variant may not have more threads than this.
const FEW_THREADS: usize = 24;
/// A fixed variant has at least so many times fewer threads than the broken one.
const TIMES_FEWER: usize = 3;
/// How far the elapsed times may be apart, in percent.
const SAME_TIME: u128 = 25;
/// The status of a run that the watchdog ended: `EX_TEMPFAIL`.
const TOO_LATE: u8 = 75;

/// Imports records with a limit, in several ways, and counts the threads.
#[derive(Parser)]
#[command(name = "importer", version)]
struct Options {
    /// Seconds after which the run is ended with status 75
    #[arg(long, value_name = "N", default_value_t = 120)]
    watchdog: u64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if cfg!(any(feature = "loom", feature = "shuttle")) {
        eprintln!("importer: built for a model checker; run it without `loom` and `shuttle`");
        return ExitCode::from(2);
    }
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(options.watchdog));
        eprintln!("importer: not done after {} s", options.watchdog);
        std::process::exit(TOO_LATE.into());
    });
    match run() {
        Ok(failed) if failed.is_empty() => {
            println!("all checks passed");
            ExitCode::SUCCESS
        }
        Ok(failed) => {
            for check in failed {
                println!("FAILED: {check}");
            }
            ExitCode::FAILURE
        }
        Err(fault) => {
            eprintln!("importer: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Vec<String>, Fault> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("records.db");
    found(&file)?;
    let mut runs = Vec::new();
    for (variant, times) in [
        (Variant::InTheJob, 1),
        (Variant::ThreadSubmits, 2),
        (Variant::AsyncSubmits, 2),
        (Variant::AsyncCallsThread, 2),
        (Variant::Structured, 1),
    ] {
        for _ in 0..times {
            runs.push(measure(variant, &file)?);
        }
    }
    println!("{}", table(&runs));
    Ok(check(&runs))
}

/// Where the permit is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    /// By the job itself, on the blocking pool: broken.
    InTheJob,
    /// Before submission, by a thread that blocks.
    ThreadSubmits,
    /// Before submission, awaited; then the job hops to the blocking pool.
    AsyncSubmits,
    /// Before submission, by the function of `ThreadSubmits`; async code calls it, on the blocking pool.
    AsyncCallsThread,
    /// Awaited, as is the work: nothing blocks.
    Structured,
}

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Self::InTheJob => "inside the job (broken)",
            Self::ThreadSubmits => "before submission, by a thread",
            Self::AsyncSubmits => "before submission, awaited",
            Self::AsyncCallsThread => "before submission, by a hop",
            Self::Structured => "structured, nothing blocks",
        }
    }

    fn is_fixed(self) -> bool {
        matches!(self, Self::ThreadSubmits | Self::AsyncSubmits | Self::AsyncCallsThread)
    }

    fn run(self, runtime: &Runtime, importer: &Arc<Importer>) -> Result<usize, Fault> {
        match self {
            Self::InTheJob => runtime.block_on(importer.permit_inside_the_job()),
            Self::ThreadSubmits => {
                let jobs = importer.submit_all(runtime.handle())?;
                runtime.block_on(total(jobs))
            }
            Self::AsyncSubmits => runtime.block_on(importer.submit_from_async()),
            Self::AsyncCallsThread => runtime.block_on(importer.call_the_blocking_api()),
            Self::Structured => runtime.block_on(importer.structured()),
        }
    }
}

/// Bytes that each job imported.
type Jobs = JoinSet<Result<usize, Fault>>;

async fn total(mut jobs: Jobs) -> Result<usize, Fault> {
    let mut bytes = 0;
    while let Some(job) = jobs.join_next().await {
        bytes += job??;
    }
    Ok(bytes)
}

struct Importer {
    file: PathBuf,
    gate: Arc<Semaphore>,
    holders: AtomicUsize,
    most_holders: AtomicUsize,
}

impl Importer {
    /// The importing of a record, which has to be done with a permit.
    fn import(&self, record: usize) -> Result<usize, Fault> {
        let _holder = Holder::enter(self);
        let bytes = self.read(record)?;
        thread::sleep(BLOCK);
        Ok(bytes)
    }

    /// The same, with the waiting awaited.
    async fn import_async(&self, record: usize) -> Result<usize, Fault> {
        let _holder = Holder::enter(self);
        let bytes = self.read(record)?;
        tokio::time::sleep(BLOCK).await;
        Ok(bytes)
    }

    fn read(&self, record: usize) -> Result<usize, Fault> {
        let connection = Connection::open_with_flags(&self.file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let text: String =
            connection
                .query_row("SELECT text FROM record WHERE id = ?1", [record], |row| row.get(0))?;
        if text == text_of(record) {
            Ok(text.len())
        } else {
            Err("a record is not as it was".into())
        }
    }

    /// Broken. The pool starts a thread for each job, and all but four of them sleep.
    async fn permit_inside_the_job(self: &Arc<Self>) -> Result<usize, Fault> {
        let mut jobs = Jobs::new();
        for record in 0..RECORDS {
            let importer = Arc::clone(self);
            jobs.spawn_blocking(move || {
                let _lease = importer.gate.acquire_blocking()?;
                importer.import(record)
            });
        }
        total(jobs).await
    }

    /// Fixed, with a synchronous API: the caller blocks until there is room.
    fn submit_all(self: &Arc<Self>, runtime: &Handle) -> Result<Jobs, Fault> {
        let mut jobs = Jobs::new();
        for record in 0..RECORDS {
            let lease = Arc::clone(&self.gate).acquire_blocking_owned()?;
            let importer = Arc::clone(self);
            jobs.spawn_blocking_on(lease.wrap(move || importer.import(record)), runtime);
        }
        Ok(jobs)
    }

    /// Fixed, with an async API: the caller awaits room, and the job that has it hops.
    async fn submit_from_async(self: &Arc<Self>) -> Result<usize, Fault> {
        let mut jobs = Jobs::new();
        for record in 0..RECORDS {
            let lease = Arc::clone(&self.gate).acquire_owned().await?;
            let importer = Arc::clone(self);
            jobs.spawn_blocking(lease.wrap(move || importer.import(record)));
        }
        total(jobs).await
    }

    /// Fixed, with a synchronous API that async code calls: *one* thread of the pool waits for all.
    async fn call_the_blocking_api(self: &Arc<Self>) -> Result<usize, Fault> {
        let (importer, runtime) = (Arc::clone(self), Handle::current());
        let jobs = tokio::task::spawn_blocking(move || importer.submit_all(&runtime)).await??;
        total(jobs).await
    }

    /// The work can be awaited as well: no thread waits for anything.
    async fn structured(self: &Arc<Self>) -> Result<usize, Fault> {
        let mut jobs = Jobs::new();
        for record in 0..RECORDS {
            let lease = Arc::clone(&self.gate).acquire_owned().await?;
            let importer = Arc::clone(self);
            jobs.spawn(lease.wrap_future(async move { importer.import_async(record).await }));
        }
        total(jobs).await
    }
}

/// Somebody who has a permit.
struct Holder<'a>(&'a Importer);

impl<'a> Holder<'a> {
    fn enter(importer: &'a Importer) -> Self {
        let now = importer.holders.fetch_add(1, SeqCst) + 1;
        importer.most_holders.fetch_max(now, SeqCst);
        Self(importer)
    }
}

impl Drop for Holder<'_> {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, SeqCst);
    }
}

struct Run {
    variant: Variant,
    cores: usize,
    baseline: usize,
    peak: usize,
    holders: usize,
    elapsed: Duration,
}

fn measure(variant: Variant, file: &Path) -> Result<Run, Fault> {
    let cores = thread::available_parallelism()?.get();
    let importer = Arc::new(Importer {
        file: file.to_owned(),
        gate: Arc::new(Semaphore::new(LIMIT)),
        holders: AtomicUsize::new(0),
        most_holders: AtomicUsize::new(0),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build()?;
    let (over, peak) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (baseline, elapsed, bytes) = thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            while !over.load(SeqCst) {
                peak.fetch_max(threads()?, SeqCst);
                thread::sleep(SAMPLE);
            }
            Ok::<_, Fault>(())
        });
        let baseline = threads();
        let begun = Instant::now();
        let bytes = variant.run(&runtime, &importer);
        let elapsed = begun.elapsed();
        over.store(true, SeqCst);
        sampler.join().map_err(|_| "the sampler panicked")??;
        Ok::<_, Fault>((baseline?, elapsed, bytes?))
    })?;
    // Joins the threads, so that the next run begins where this one did.
    drop(runtime);
    if bytes != (0..RECORDS).map(|record| text_of(record).len()).sum::<usize>() {
        return Err("not all records were imported".into());
    }
    Ok(Run {
        variant,
        cores,
        baseline,
        peak: peak.into_inner(),
        holders: importer.most_holders.load(SeqCst),
        elapsed,
    })
}

/// How many threads this process has.
fn threads() -> Result<usize, Fault> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    Ok(line.ok_or("/proc/self/status does not tell the number of threads")?.trim().parse()?)
}

fn text_of(record: usize) -> String {
    format!("record {record}: {}", "x".repeat(record % 17))
}

/// Makes the file.
fn found(file: &Path) -> Result<(), Fault> {
    let mut connection = Connection::open(file)?;
    let transaction = connection.transaction()?;
    transaction.execute("CREATE TABLE record (id INTEGER PRIMARY KEY, text TEXT NOT NULL)", [])?;
    for record in 0..RECORDS {
        let row = params![record, text_of(record)];
        transaction.execute("INSERT INTO record VALUES (?1, ?2)", row)?;
    }
    Ok(transaction.commit()?)
}

fn table(runs: &[Run]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header([
        "permit taken",
        "items",
        "limit",
        "block ms",
        "cores",
        "baseline threads",
        "peak threads",
        "threads per core",
        "holders",
        "elapsed s",
    ]);
    for run in runs {
        #[expect(clippy::cast_precision_loss, reason = "a few hundred threads")]
        let per_core = run.peak as f64 / run.cores as f64;
        table.add_row([
            run.variant.name().to_owned(),
            RECORDS.to_string(),
            LIMIT.to_string(),
            BLOCK.as_millis().to_string(),
            run.cores.to_string(),
            run.baseline.to_string(),
            run.peak.to_string(),
            format!("{per_core:.1}"),
            run.holders.to_string(),
            format!("{:.2}", run.elapsed.as_secs_f64()),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// What is not as claimed.
fn check(runs: &[Run]) -> Vec<String> {
    let mut failed = Vec::new();
    let mut claim = |holds: bool, what: String| {
        if !holds {
            failed.push(what);
        }
    };
    let Some(broken) = runs.iter().find(|run| run.variant == Variant::InTheJob) else {
        return vec!["the broken variant did not run".to_owned()];
    };
    claim(
        broken.peak >= broken.baseline + RECORDS / 2,
        format!("inside the job there were only {} threads", broken.peak),
    );
    for run in runs {
        let name = run.variant.name();
        claim(
            run.holders == LIMIT,
            format!("{name}: {} at once have had a permit, of {LIMIT}", run.holders),
        );
        if run.variant.is_fixed() {
            claim(
                run.peak <= FEW_THREADS && run.peak * TIMES_FEWER <= broken.peak,
                format!("{name}: {} threads", run.peak),
            );
            let apart = run.elapsed.abs_diff(broken.elapsed).as_nanos() * 100;
            claim(
                apart <= broken.elapsed.as_nanos() * SAME_TIME,
                format!("{name}: {:?} against {:?}", run.elapsed, broken.elapsed),
            );
        }
    }
    failed
}
