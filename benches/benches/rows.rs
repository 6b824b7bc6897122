//! Rows of the table under criterion, for its comparison with an earlier run of the same contender.
//!
//! Criterion runs one contender after the other; the bin `table` is what interleaves them, and is
//! what RESULTS.md is made of.
#![allow(clippy::cast_precision_loss, reason = "counts become figures")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion};
use semaphore_benches::rows::catalogue;

/// Rows, each with the figure that is followed.
const FOLLOWED: [(&str, usize); 11] = [
    ("A", 0),
    ("B1", 0),
    ("B2", 0),
    ("C1", 0),
    ("D 1", 2),
    ("D 1024", 2),
    ("D around 1024", 0),
    ("E 1024 random", 0),
    ("F", 0),
    ("G k=8", 0),
    ("G batch", 0),
];

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(250))
        .configure_from_args();
    for row in catalogue::all() {
        let Some((_, figure)) = FOLLOWED.into_iter().find(|(id, _)| *id == row.id) else {
            continue;
        };
        let mut group = criterion.benchmark_group(format!("{}: {}", row.id, row.what));
        for mut entry in (row.entries)() {
            if entry.name == "saa" && row.id.starts_with('D') {
                continue; // A wait of its takes 60 µs: the table has it.
            }
            group.bench_function(BenchmarkId::from_parameter(entry.name), |bencher| {
                bencher.iter_custom(|iterations| {
                    let each = (entry.run)(iterations)[figure];
                    Duration::from_secs_f64(each * iterations as f64 / 1e9)
                });
            });
        }
        group.finish();
    }
    criterion.final_summary();
}
