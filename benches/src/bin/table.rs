//! The rows, all contenders side by side: interleaved rounds, medians and spreads, ratios to tokio
//! and to the bare atomic, and how the goals fared.

use std::io::Write as _;

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use semaphore_benches::contender::{FLOOR, REFERENCE};
use semaphore_benches::goals::Verdict;
use semaphore_benches::measure::{Figure, interleave};
use semaphore_benches::rows::catalogue::{self, Row, Weight};
use serde_json::json;

/// Measures what semaphores cost.
#[derive(Parser)]
#[allow(clippy::struct_excessive_bools, reason = "switches")]
struct Options {
    /// Fewer rounds of fewer operations.
    #[arg(long)]
    quick: bool,
    /// Only rows whose name begins so, such as `A`, `D 1024` or `E`; several with commas.
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Tables in Markdown.
    #[arg(long)]
    markdown: bool,
    /// One object a row, in place of tables: medians, quartiles, extremes and goals.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Fails if a goal is missed.
    #[arg(long)]
    strict: bool,
    /// Rounds, in place of the usual.
    #[arg(long)]
    rounds: Option<usize>,
}

impl Options {
    fn wants(&self, row: &Row) -> bool {
        let named = |name: &String| {
            row.id == *name || row.id.starts_with(&format!("{name} ")) || {
                let letter = row.id.split(' ').next().unwrap_or_default();
                letter.trim_end_matches(|c: char| c.is_ascii_digit()) == name
            }
        };
        self.rows.is_empty() || self.rows.iter().any(named)
    }

    /// Rounds, and operations in each.
    fn amount(&self, weight: Weight) -> (usize, u64) {
        let (rounds, operations) = match (weight, self.quick) {
            (Weight::Operations, false) => (21, 131_072),
            (Weight::Operations, true) => (7, 16_384),
            (Weight::Storm, false) => (11, 1_000_000),
            (Weight::Storm, true) => (5, 100_000),
            (Weight::Tasks, false) => (6, 100_000),
            (Weight::Tasks, true) => (6, 20_000),
            (Weight::Turns, false) => (6, 1_000_000),
            (Weight::Turns, true) => (3, 300_000),
        };
        (self.rounds.unwrap_or(rounds), operations)
    }
}

fn ratio(figures: &[Figure], of: &Figure, to: &str) -> Option<f64> {
    let to = figures.iter().find(|figure| figure.name == to)?;
    (to.median() > 0.0).then(|| of.median() / to.median())
}

fn text(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}"))
}

fn table(figures: &[Figure], unit: &str, markdown: bool) -> Table {
    let mut table = Table::new();
    table.load_preset(if markdown {
        presets::ASCII_MARKDOWN
    } else {
        presets::UTF8_FULL_CONDENSED
    });
    table.set_header([
        "contender",
        &format!("median {unit}"),
        "quartiles",
        "least – most",
        "× tokio",
        "× bare",
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for figure in figures {
        let span =
            |low, high| format!("{:.2} – {:.2}", figure.quantile(low), figure.quantile(high));
        table.add_row([
            figure.name.to_owned(),
            format!("{:.2}", figure.median()),
            span(0.25, 0.75),
            span(0.0, 1.0),
            text(ratio(figures, figure, REFERENCE)),
            text(ratio(figures, figure, FLOOR)),
        ]);
    }
    table
}

fn object(
    row: &Row,
    at: usize,
    figures: &[Figure],
    verdict: Option<&Verdict>,
) -> serde_json::Value {
    let column = &row.columns[at];
    let contenders: Vec<_> = figures
        .iter()
        .map(|figure| {
            json!({
                "name": figure.name,
                "median": figure.median(),
                "quartiles": [figure.quantile(0.25), figure.quantile(0.75)],
                "extremes": [figure.quantile(0.0), figure.quantile(1.0)],
                "rounds": figure.sorted.len(),
                "to_tokio": ratio(figures, figure, REFERENCE),
                "to_bare": ratio(figures, figure, FLOOR),
            })
        })
        .collect();
    json!({
        "row": row.id,
        "what": row.what,
        "figure": column.what,
        "unit": column.unit,
        "contenders": contenders,
        "goal": verdict.map(|verdict| &verdict.text),
        "met": verdict.map(|verdict| verdict.met),
    })
}

fn main() -> std::io::Result<()> {
    let options = Options::parse();
    let mut out = std::io::stdout();
    let mut verdicts: Vec<(String, Verdict)> = Vec::new();
    for row in catalogue::all().into_iter().filter(|row| options.wants(row)) {
        let (rounds, operations) = options.amount(row.weight);
        let results = interleave((row.entries)(), row.columns.len(), rounds, operations);
        if !options.json {
            writeln!(out, "\n### {}: {}\n", row.id, row.what)?;
        }
        for (at, column) in row.columns.iter().enumerate() {
            let verdict = column.goal.judge(&results, at);
            if options.json {
                writeln!(out, "{}", object(&row, at, &results[at], verdict.as_ref()))?;
            } else {
                writeln!(out, "{}, {rounds} rounds:\n", column.what)?;
                writeln!(out, "{}\n", table(&results[at], column.unit, options.markdown))?;
                if let Some(verdict) = &verdict {
                    writeln!(out, "{}\n", verdict.text)?;
                }
            }
            verdicts
                .extend(verdict.map(|verdict| (format!("{}, {}", row.id, column.what), verdict)));
        }
    }
    let missed = verdicts.iter().filter(|(_, verdict)| !verdict.met).count();
    if !options.json {
        writeln!(out, "\n### Goals: {} met, {missed} missed\n", verdicts.len() - missed)?;
        for (what, verdict) in &verdicts {
            writeln!(out, "- {what}: {}", verdict.text)?;
        }
    }
    if options.strict && missed > 0 {
        std::process::exit(1);
    }
    Ok(())
}
