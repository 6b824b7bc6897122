//! Two to sixty-four threads that never have to wait: what sharing one semaphore costs. With more
//! threads than processors it shows what preemption does to each contender, and no speed-up.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_wrap, reason = "counts become figures")]

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use semaphore_benches::contender::{
    AsyncLock, Asyncband, Bare, Contender, Embassy, IntrusiveFair, IntrusiveUnfair, Maitake, Ours,
    OwnMutex, Saa, Tokio,
};
use semaphore_benches::measure::{Entry, interleave};
use semaphore_benches::plot::{Frame, Line, draw};
use semaphore_benches::rows::contended::never_blocks;

/// Measures what more threads cost.
#[derive(Parser)]
struct Options {
    /// Fewer rounds of fewer operations.
    #[arg(long)]
    quick: bool,
    /// Where the plot goes; none without it.
    #[arg(long)]
    plots: Option<PathBuf>,
    /// The table in Markdown.
    #[arg(long)]
    markdown: bool,
}

const THREADS: [usize; 6] = [2, 4, 8, 16, 32, 64];

fn entries(threads: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    macro_rules! push {
        ($($Contender:ty),*) => {
            $(if <$Contender>::MAX_PERMITS >= threads {
                let run = never_blocks::<$Contender>(threads);
                entries.push(Entry { name: <$Contender>::NAME, run });
            })*
        };
    }
    push!(
        Ours,
        Tokio,
        IntrusiveFair,
        IntrusiveUnfair,
        Maitake,
        Asyncband,
        AsyncLock,
        Saa,
        Embassy,
        OwnMutex,
        Bare
    );
    entries
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let processors = std::thread::available_parallelism()?.get();
    let (rounds, operations) = if options.quick { (3, 16_384) } else { (11, 131_072) };
    let mut table = Table::new();
    let preset =
        if options.markdown { presets::ASCII_MARKDOWN } else { presets::UTF8_FULL_CONDENSED };
    table.load_preset(preset);
    let mut header = vec!["ns of wall time an operation, all threads together".to_owned()];
    header.extend(THREADS.map(|threads| {
        let mark = if threads > processors { " (oversubscribed)" } else { "" };
        format!("{threads}{mark}")
    }));
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut lines: Vec<Line> = Vec::new();
    let mut cells: Vec<Vec<String>> = Vec::new();
    for (column, threads) in THREADS.into_iter().enumerate() {
        let each = operations / threads as u64 * 2;
        for figure in &interleave(entries(threads), 1, rounds, each)[0] {
            let at = lines.iter().position(|line| line.name == figure.name).unwrap_or_else(|| {
                lines.push(Line { name: figure.name.to_owned(), points: Vec::new() });
                cells.push(vec!["–".to_owned(); THREADS.len()]);
                lines.len() - 1
            });
            let each = |part| figure.quantile(part) / threads as f64;
            lines[at].points.push((threads as f64, each(0.5)));
            cells[at][column] = format!("{:.1} ({:.1} – {:.1})", each(0.5), each(0.25), each(0.75));
        }
    }
    for (line, cells) in lines.iter().zip(cells) {
        table.add_row([vec![line.name.clone()], cells].concat());
    }
    println!("medians of {rounds} rounds, quartiles; {processors} processors\n\n{table}");
    if let Some(folder) = &options.plots {
        std::fs::create_dir_all(folder)?;
        let frame = Frame {
            title: "Threads that never have to wait",
            x: "threads, more than the processors",
            y: "ns an operation",
            label: |x| format!("{x:.0}"),
        };
        draw(&folder.join("scaling.svg"), &frame, &lines)?;
    }
    Ok(())
}
