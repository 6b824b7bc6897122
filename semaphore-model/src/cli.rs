//! What the binary does, with the checker that it is built for.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
#[cfg(not(feature = "loom"))]
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

use clap::{Args, Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use semaphore_model::backend::permutations;
use semaphore_model::catalogue::{CROWDS, EDGES, PAIRS, TRIPLES, WIDE};
use semaphore_model::coverage;
use semaphore_model::scenario::Scenario;
use semaphore_model::timeline::escape;
#[cfg(not(feature = "loom"))]
use semaphore_model::timeline::page;
use semaphore_model::trace::{Style, columns};

#[derive(Parser)]
#[command(
    name = "semaphore-model",
    about = "Checks the semaphore over its interleavings",
    after_help = "Exit status: 0 nothing found, 1 a failure found, 2 wrong usage.\n\
                  The checker is chosen when this is built: --features shuttle, or --features loom."
)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Lists the scenarios.
    List,
    /// Runs a scenario, or all.
    Run {
        #[command(flatten)]
        what: What,
        /// Draws one execution as a page: the failing one, or the first. For a single scenario, with shuttle.
        #[arg(long, value_name = "FILE")]
        timeline: Option<PathBuf>,
        /// Where the file goes that replays a failure.
        #[arg(long, value_name = "FILE", default_value = "failure.replay")]
        save: PathBuf,
    },
    /// Runs again the schedule of a file that `run` has left.
    Replay {
        /// The file.
        file: PathBuf,
        /// Draws it as a page.
        #[arg(long, value_name = "FILE")]
        timeline: Option<PathBuf>,
        /// Shows every word that was written, hints and links of the free list, too.
        #[arg(long)]
        all: bool,
    },
    /// Prints which edges of the state machines the scenarios take.
    Coverage {
        #[command(flatten)]
        what: What,
    },
    /// Runs scenarios and writes a page about them.
    Report {
        #[command(flatten)]
        what: What,
        /// The page.
        #[arg(long, value_name = "FILE", default_value = "report.html")]
        out: PathBuf,
    },
}

#[derive(Args)]
struct What {
    /// A name that `list` prints, or `all`.
    #[arg(default_value = "all")]
    scenario: String,
    /// How the interleavings are chosen; by default as the tests do.
    #[arg(long, value_enum)]
    backend: Option<Backend>,
    /// The bound on preemptions, or `none`; the depth, for pct. By default that of the scenario.
    #[arg(long, value_parser = bound)]
    bound: Option<Bound>,
    /// The seed of random and pct.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many schedules random and pct try.
    #[arg(long, default_value_t = 4_000)]
    executions: usize,
    /// The i-th of n parts of the work: every n-th scenario and order.
    #[arg(long, value_name = "I/N", value_parser = shard, default_value = "1/1")]
    shard: (usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// loom, loads as they are: weak memory.
    LoomWeak,
    /// loom, loads as read-modify-writes: the interleavings that loom misses.
    LoomStrong,
    /// shuttle, every schedule up to a bound.
    Dfs,
    /// shuttle, random schedules.
    Random,
    /// shuttle, probabilistic concurrency testing.
    Pct,
    /// shuttle, with one thread stopped at each of its steps.
    Stall,
}

#[derive(Clone, Copy, Debug)]
struct Bound(Option<usize>);

fn bound(text: &str) -> Result<Bound, String> {
    if text == "none" {
        return Ok(Bound(None));
    }
    match text.parse() {
        Ok(n) if n <= 1_000 => Ok(Bound(Some(n))),
        _ => Err("a bound is a number from 0 to 1000, or `none`".to_owned()),
    }
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err("a shard is I/N with 1 <= I <= N, like 2/8".to_owned()),
    }
}

/// Wrong usage.
struct Usage(String);

impl From<io::Error> for Usage {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

const BUILT_FOR: &str = if cfg!(feature = "loom") { "loom" } else { "shuttle" };

impl Backend {
    fn is_built(self) -> bool {
        matches!(self, Self::LoomWeak | Self::LoomStrong) == cfg!(feature = "loom")
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

fn scenarios() -> impl Iterator<Item = &'static Scenario> {
    PAIRS.iter().chain(TRIPLES).chain(CROWDS).chain(EDGES).chain(WIDE)
}

fn is_crowd(scenario: &Scenario) -> bool {
    CROWDS.iter().chain(EDGES).chain(WIDE).any(|crowd| crowd.name == scenario.name)
}

fn named(name: &str) -> Result<&'static Scenario, Usage> {
    scenarios().find(|scenario| scenario.name == name).ok_or_else(|| {
        let mut near: Vec<_> = scenarios().map(|scenario| scenario.name).collect();
        near.sort_by_key(|known| distance(name, known));
        near.truncate(3);
        Usage(format!(
            "there is no scenario `{name}`; near to it are {}; `list` prints all",
            near.join(", ")
        ))
    })
}

/// How many characters have to be changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, from) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, to) in other.iter().enumerate() {
            let change = corner + usize::from(from != *to);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

/// One scenario with one way to run it.
struct Job {
    scenario: &'static Scenario,
    backend: Backend,
    bound: Option<usize>,
    order: Vec<usize>,
}

/// What came of a job.
struct Row {
    job: Job,
    executions: u64,
    outcomes: usize,
    time: Duration,
    edges: BTreeSet<u16>,
    failure: Option<Failed>,
}

struct Failed {
    what: String,
    story: String,
    replay: Option<String>,
    page: Option<String>,
}

fn jobs(what: &What) -> Result<Vec<Job>, Usage> {
    if let Some(backend) = what.backend
        && !backend.is_built()
    {
        let other = if BUILT_FOR == "loom" { "shuttle" } else { "loom" };
        return Err(Usage(format!(
            "`{}` is not in this binary, which is built for {BUILT_FOR}; it is in\n  \
             cargo run --release -p semaphore-model --features {other} -- run ...",
            backend.name()
        )));
    }
    let chosen: Vec<_> = match what.scenario.as_str() {
        "all" => scenarios().collect(),
        name => vec![named(name)?],
    };
    let mut jobs = Vec::new();
    for scenario in chosen {
        let backends = match what.backend {
            Some(backend) => vec![backend],
            None if is_crowd(scenario) && cfg!(feature = "loom") => Vec::new(),
            None if cfg!(feature = "loom") => vec![Backend::LoomWeak, Backend::LoomStrong],
            None if is_crowd(scenario) => vec![Backend::Random, Backend::Pct],
            None => vec![Backend::Dfs],
        };
        for backend in backends {
            let default = match backend {
                Backend::LoomWeak => scenario.loom_weak,
                Backend::LoomStrong => scenario.loom_strong,
                Backend::Dfs => scenario.depth_first,
                Backend::Pct => Some(5),
                Backend::Random | Backend::Stall => None,
            };
            let bound = what.bound.map_or(default, |Bound(bound)| bound);
            let one = is_crowd(scenario) || backend == Backend::Stall;
            let threads = scenario.threads.len();
            let orders = if one { vec![(0..threads).collect()] } else { permutations(threads) };
            jobs.extend(orders.into_iter().map(|order| Job { scenario, backend, bound, order }));
        }
    }
    let (shard, shards) = what.shard;
    Ok(jobs.into_iter().skip(shard - 1).step_by(shards).collect())
}

impl Job {
    fn title(&self) -> String {
        let bound = match (self.backend, self.bound) {
            (Backend::Random | Backend::Stall, _) => String::new(),
            (_, None) => "no bound".to_owned(),
            (Backend::Pct, Some(depth)) => format!("depth {depth}"),
            (_, Some(bound)) => format!("bound {bound}"),
        };
        format!(
            "{:<48} {:<11} {bound:<8} order {:?}",
            self.scenario.name,
            self.backend.name(),
            self.order
        )
    }

    fn run(self, what: &What) -> Row {
        let bar = ProgressBar::new_spinner().with_message(self.title());
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg} {pos} executions, {per_sec}, {elapsed}")
                .expect("a template"),
        );
        coverage::take();
        let begun = Instant::now();
        let (executions, outcomes, failure) = explore(&self, what, &bar);
        let time = begun.elapsed();
        bar.finish_and_clear();
        Row { job: self, executions, outcomes, time, edges: coverage::take(), failure }
    }
}

#[cfg(all(feature = "shuttle", not(feature = "loom")))]
fn explore(job: &Job, what: &What, bar: &ProgressBar) -> (u64, usize, Option<Failed>) {
    use semaphore_model::backend::shuttle::{How, hunt};
    use semaphore_model::backend::stall;
    use semaphore_model::schedule::{Replay, fingerprint};

    let how = match job.backend {
        Backend::Dfs => How::DepthFirst(job.bound),
        Backend::Random => How::Random(what.seed, what.executions),
        Backend::Pct => How::Pct(job.bound.unwrap_or(5), what.seed, what.executions),
        _ => {
            return match caught(|| stall::one(job.scenario)) {
                Ok(found) => (found.executions, 1, None),
                Err(failed) => (0, 0, Some(failed)),
            };
        }
    };
    let ticks = bar.clone();
    let progress = Arc::new(move |n: u64| {
        if n.is_multiple_of(256) {
            ticks.set_position(n);
        }
    });
    match hunt(job.scenario, &job.order, how, Some(progress)) {
        Ok(found) => (found.executions, found.outcomes.len(), None),
        Err(failure) => {
            let replay = Replay {
                scenario: job.scenario.name.to_owned(),
                fingerprint: fingerprint(job.scenario),
                order: job.order.clone(),
                turns: failure.turns.clone(),
            };
            let story = format!(
                "{}\nbroken: {}\nfound after {} executions; the schedule is shrunk from {} turns to {}: {}",
                columns(&failure.log, &Style::default()),
                failure.what,
                failure.after,
                failure.turns_found,
                failure.turns.0.len(),
                failure.turns
            );
            let page = page(job.scenario.name, &failure.what, &failure.log, &failure.places);
            let failed = Failed {
                what: failure.what.clone(),
                story,
                replay: Some(replay.to_text()),
                page: Some(page),
            };
            (failure.after, 0, Some(failed))
        }
    }
}

#[cfg(feature = "loom")]
fn explore(job: &Job, _: &What, bar: &ProgressBar) -> (u64, usize, Option<Failed>) {
    use semaphore_model::backend::loom::{Mode, explore};

    let mode = if job.backend == Backend::LoomWeak { Mode::Weak } else { Mode::Strong };
    bar.enable_steady_tick(Duration::from_millis(200));
    match caught(|| explore(job.scenario, &job.order, mode, job.bound)) {
        Ok(found) => (found.executions, found.outcomes.len(), None),
        Err(failed) => (0, 0, Some(failed)),
    }
}

/// A panic as a failure, with all that led to it.
fn caught<R>(run: impl FnOnce() -> R) -> Result<R, Failed> {
    std::panic::set_hook(Box::new(|_| {}));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    let _ = std::panic::take_hook();
    result.map_err(|payload| {
        let text = payload.downcast_ref::<String>().cloned().unwrap_or_default();
        let what = text.rsplit_once("AUDIT: ").map_or(text.clone(), |(_, what)| what.to_owned());
        let log = semaphore_model::scenario::last_log();
        let story = format!("{}\nbroken: {what}", columns(&log, &Style::default()));
        Failed { what, story, replay: None, page: None }
    })
}

fn plain(row: &Row) -> String {
    format!(
        "{} {:>9} executions {:>3} outcomes {:>8.2} s  {}",
        row.job.title(),
        row.executions,
        row.outcomes,
        row.time.as_secs_f64(),
        if row.failure.is_some() { "FAILED" } else { "ok" }
    )
}

/// Runs jobs up to the first failure, a line for each.
fn run_all(what: &What) -> Result<Vec<Row>, Usage> {
    let mut rows = Vec::new();
    for job in jobs(what)? {
        let row = job.run(what);
        println!("{}", plain(&row));
        let failed = row.failure.is_some();
        rows.push(row);
        if failed {
            break;
        }
    }
    let executions: u64 = rows.iter().map(|row| row.executions).sum();
    let time: Duration = rows.iter().map(|row| row.time).sum();
    println!("{} runs, {executions} executions, {:.1} s", rows.len(), time.as_secs_f64());
    Ok(rows)
}

fn verdict(rows: &[Row]) -> ExitCode {
    ExitCode::from(u8::from(rows.iter().any(|row| row.failure.is_some())))
}

fn run(what: &What, timeline: Option<&PathBuf>, save: &PathBuf) -> Result<ExitCode, Usage> {
    if timeline.is_some() && what.scenario == "all" {
        return Err(Usage("--timeline draws one scenario: name it".to_owned()));
    }
    let rows = run_all(what)?;
    if let Some(failed) = rows.iter().find_map(|row| row.failure.as_ref()) {
        println!("\n{}", failed.story);
        if let Some(replay) = &failed.replay {
            fs::write(save, replay)?;
            println!("again: semaphore-model replay {}", save.display());
        }
        if let (Some(file), Some(page)) = (timeline, &failed.page) {
            fs::write(file, page)?;
        }
    } else if let Some(file) = timeline {
        fs::write(file, first(&rows)?)?;
        println!("drawn in {}", file.display());
    }
    Ok(verdict(&rows))
}

/// The page of the first execution.
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
fn first(rows: &[Row]) -> Result<String, Usage> {
    use semaphore_model::backend::shuttle::follow;
    use semaphore_model::schedule::Turns;

    let job = &rows.first().ok_or_else(|| Usage("nothing was run".to_owned()))?.job;
    match follow(job.scenario, &job.order, &Turns::default()) {
        Ok(seen) => Ok(page(job.scenario.name, "nothing is broken", &seen.log, &seen.places)),
        Err(failure) => Err(Usage(failure.what)),
    }
}

#[cfg(feature = "loom")]
fn first(_: &[Row]) -> Result<String, Usage> {
    Err(Usage("a timeline is drawn by the build for shuttle".to_owned()))
}

#[cfg(all(feature = "shuttle", not(feature = "loom")))]
fn replay(file: &PathBuf, timeline: Option<&PathBuf>, all: bool) -> Result<ExitCode, Usage> {
    use semaphore_model::backend::shuttle::follow;
    use semaphore_model::schedule::{Replay, fingerprint};

    let text = fs::read_to_string(file)
        .map_err(|error| Usage(format!("cannot read {}: {error}", file.display())))?;
    let replay = Replay::from_text(&text)
        .map_err(|error| Usage(format!("{} cannot be replayed: {error}", file.display())))?;
    let scenario = named(&replay.scenario)?;
    let mut order = replay.order.clone();
    order.sort_unstable();
    if fingerprint(scenario) != replay.fingerprint
        || order != (0..scenario.threads.len()).collect::<Vec<_>>()
    {
        return Err(Usage(format!(
            "{} cannot be replayed: the scenario `{}` is not what it was then",
            file.display(),
            scenario.name
        )));
    }
    let style = Style { all, ..Style::default() };
    let (log, places, what) = match follow(scenario, &replay.order, &replay.turns) {
        Ok(seen) => (seen.log, seen.places, None),
        Err(failure) => (failure.log, failure.places, Some(failure.what)),
    };
    let verdict = what
        .as_ref()
        .map_or_else(|| "nothing is broken any more".to_owned(), |what| format!("broken: {what}"));
    println!("{}\n{verdict}", columns(&log, &style));
    if let Some(file) = timeline {
        fs::write(file, page(scenario.name, &verdict, &log, &places))?;
    }
    Ok(ExitCode::from(u8::from(what.is_some())))
}

#[cfg(feature = "loom")]
fn replay(_: &PathBuf, _: Option<&PathBuf>, _: bool) -> Result<ExitCode, Usage> {
    Err(Usage("files are replayed by the build for shuttle: --features shuttle".to_owned()))
}

fn list() {
    for (title, scenarios) in [
        ("two threads", PAIRS),
        ("three threads", TRIPLES),
        ("crowds", CROWDS),
        ("for rare edges", EDGES),
    ] {
        println!("{title}:");
        for Scenario { name, permits, setup, threads, .. } in scenarios {
            println!("  {name:<52} N={permits}");
            println!("      first {setup:?}");
            for ops in *threads {
                println!("      then  {ops:?}");
            }
        }
    }
}

fn coverage_table(rows: &[Row]) -> (String, bool) {
    let mut text = String::new();
    let mut missing = false;
    let (edges, nevers) = coverage::machine();
    for edge in edges {
        let number = edge.number();
        let visits: BTreeSet<_> = rows
            .iter()
            .filter(|row| row.edges.contains(&number))
            .map(|row| row.job.scenario.name)
            .collect();
        missing |= visits.is_empty();
        let by = visits.first().copied().unwrap_or("NOBODY");
        let _ = writeln!(text, "{:<60} {:>3} scenarios, {by}", edge.to_string(), visits.len());
    }
    for never in nevers {
        let _ = writeln!(text, "{:<60} never: {}", never.edge.to_string(), never.why);
    }
    (text, missing)
}

fn report(rows: &[Row]) -> String {
    let mut table = String::new();
    for row in rows {
        let Row { job, executions, outcomes, time, edges, failure } = row;
        let bound = job.bound.map_or_else(|| "none".to_owned(), |bound| bound.to_string());
        let (class, verdict) = match failure {
            Some(failed) => ("bad", failed.what.as_str()),
            None => ("good", "nothing found"),
        };
        let _ = writeln!(
            table,
            "<tr><td>{}<td>{}<td>{bound}<td>{:?}<td class=n>{executions}<td class=n>{outcomes}<td class=n>{:.2}<td class=n>{}<td class={class}>{}",
            job.scenario.name,
            job.backend.name(),
            job.order,
            time.as_secs_f64(),
            edges.len(),
            escape(verdict)
        );
    }
    let executions: u64 = rows.iter().map(|row| row.executions).sum();
    let failed = rows.iter().filter(|row| row.failure.is_some()).count();
    let (edges, _) = coverage_table(rows);
    let stories: String = rows
        .iter()
        .filter_map(|row| row.failure.as_ref())
        .flat_map(|failed| {
            ["<h2>Failure</h2><pre>".to_owned(), escape(&failed.story), "</pre>".to_owned()]
        })
        .collect();
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>semaphore-model</title>\n<style>\
         body {{ font-family: sans-serif; margin: 2em }} table {{ border-collapse: collapse; font-size: 90% }} \
         td, th {{ padding: 2px 8px; border-bottom: 1px solid #ddd; text-align: left }} .n {{ text-align: right }} \
         .good {{ color: #2e8b57 }} .bad {{ color: #fff; background: #d1495b }} pre {{ background: #f6f6f6; padding: 1em; \
         overflow-x: auto }}</style>\n<h1>semaphore-model, {BUILT_FOR}</h1>\n\
         <p>{} runs, {executions} executions, {failed} failed.</p>\n{stories}\
         <table><tr><th>scenario<th>backend<th>bound<th>order<th>executions<th>outcomes<th>seconds<th>edges<th>verdict\n\
         {table}</table>\n<h2>Edges of the state machines</h2>\n<pre>{}</pre>\n",
        rows.len(),
        escape(&edges)
    )
}

fn execute(options: Options) -> Result<ExitCode, Usage> {
    match options.command {
        Command::List => {
            list();
            Ok(ExitCode::SUCCESS)
        }
        Command::Run { what, timeline, save } => run(&what, timeline.as_ref(), &save),
        Command::Replay { file, timeline, all } => replay(&file, timeline.as_ref(), all),
        Command::Coverage { what } => {
            let rows = run_all(&what)?;
            let (text, missing) = coverage_table(&rows);
            print!("{text}");
            Ok(ExitCode::from(u8::from(missing && what.scenario == "all" && what.shard.1 == 1)))
        }
        Command::Report { what, out } => {
            let rows = run_all(&what)?;
            fs::write(&out, report(&rows))?;
            println!("written to {}", out.display());
            Ok(verdict(&rows))
        }
    }
}

pub(crate) fn main() -> ExitCode {
    match execute(Options::parse()) {
        Ok(code) => code,
        Err(Usage(what)) => {
            eprintln!("error: {what}");
            ExitCode::from(2)
        }
    }
}
