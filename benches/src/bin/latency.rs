//! Latency as a distribution: taking and giving back, and hand-off; undisturbed, with more threads
//! than processors, and with threads that are stopped at random moments.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_wrap, reason = "counts become figures")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use hdrhistogram::Histogram;
use semaphore_benches::contender::{
    AsyncLock, Asyncband, Bare, Contender, Embassy, IntrusiveFair, IntrusiveUnfair, Maitake, Ours,
    OwnMutex, Saa, Tokio,
};
use semaphore_benches::plot::{Frame, Line, draw};
use semaphore_benches::preempt;
use semaphore_benches::rows::latency::{self, Load};

/// Measures how long single operations take.
#[derive(Parser)]
struct Options {
    /// Shorter runs.
    #[arg(long)]
    quick: bool,
    /// Where the plots go; none without it.
    #[arg(long)]
    plots: Option<PathBuf>,
    /// Tables in Markdown.
    #[arg(long)]
    markdown: bool,
}

/// Rounds in which the contenders take turns; what they add is one histogram each.
const ROUNDS: usize = 3;

type Measure = fn(Load, Duration) -> Histogram<u64>;

fn tell(
    title: &str,
    file: &str,
    contenders: &[(&'static str, Measure)],
    load: Load,
    options: &Options,
) -> Result<(), Box<dyn Error>> {
    let time = Duration::from_millis(if options.quick { 50 } else { 1000 });
    let mut histograms: Vec<Histogram<u64>> =
        contenders.iter().map(|_| latency::histogram()).collect();
    for round in 0..ROUNDS {
        for turn in 0..contenders.len() {
            let at = (turn + round) % contenders.len();
            histograms[at].add((contenders[at].1)(load, time))?;
        }
    }
    let mut table = Table::new();
    let preset =
        if options.markdown { presets::ASCII_MARKDOWN } else { presets::UTF8_FULL_CONDENSED };
    table.load_preset(preset);
    table.set_header(["contender, ns", "p50", "p99", "p99.9", "p99.99", "most", "operations"]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut lines = Vec::new();
    for ((name, _), histogram) in contenders.iter().zip(&histograms) {
        let at = |part: f64| histogram.value_at_quantile(part).to_string();
        table.add_row([
            (*name).to_owned(),
            at(0.5),
            at(0.99),
            at(0.999),
            at(0.9999),
            histogram.max().to_string(),
            histogram.len().to_string(),
        ]);
        // One in 1 to one in a million.
        let points = (0..=60)
            .map(|step| 10f64.powf(f64::from(step) / 10.0))
            .take_while(|one_in| *one_in <= histogram.len() as f64)
            .map(|one_in| {
                let value = histogram.value_at_quantile(1.0 - 1.0 / one_in);
                (one_in, value.max(1) as f64)
            })
            .collect();
        lines.push(Line { name: (*name).to_owned(), points });
    }
    println!("\n### {title}\n\n{table}");
    if let Some(folder) = &options.plots {
        std::fs::create_dir_all(folder)?;
        let frame = Frame {
            title,
            x: "one operation in",
            y: "takes so many ns, or longer",
            label: |x| format!("{x:.0}"),
        };
        draw(&folder.join(file), &frame, &lines)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    preempt::install();
    macro_rules! of {
        ($measure:ident: $($Contender:ty),*) => {
            [$((<$Contender as Contender>::NAME, latency::$measure::<$Contender> as Measure)),*]
        };
    }
    let acquire = of!(acquire: Ours, Tokio, IntrusiveFair, IntrusiveUnfair, Maitake, Asyncband,
        AsyncLock, Saa, Embassy, OwnMutex, Bare);
    let hand_off = of!(hand_off: Ours, Tokio, IntrusiveFair, IntrusiveUnfair, Maitake, Asyncband,
        AsyncLock, Saa, Embassy, OwnMutex);
    for (threads, naps, how, name) in [
        (2, false, "two threads", "idle"),
        (8, false, "eight threads on two processors", "oversubscribed"),
        (8, true, "eight threads, stopped at random moments", "stopped"),
    ] {
        let load = Load { threads, naps };
        tell(
            &format!("Acquire and release, nobody has to wait: {how}"),
            &format!("latency-acquire-{name}.svg"),
            &acquire,
            load,
            &options,
        )?;
        tell(
            &format!("Hand-off to a parked thread: {how}"),
            &format!("latency-hand-off-{name}.svg"),
            &hand_off,
            load,
            &options,
        )?;
    }
    Ok(())
}
