//! What the run shows, and whether it is as promised.

use std::process::ExitCode;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};

use crate::Fault;
use crate::options::Options;
use crate::pool::{Balance, Pool};
use crate::tally::Tally;

/// What the run shows, collected when everybody has left.
pub(crate) struct Report {
    connections: usize,
    most_in_use: usize,
    opened: usize,
    finished: u64,
    transfers: u64,
    tally: Tally,
    drained_in: Duration,
    balance: Balance,
    waiters: usize,
    faults: Vec<Fault>,
}

impl Report {
    pub(crate) fn new(pool: &Pool, tally: Tally, drained_in: Duration) -> Self {
        let mut faults = std::mem::take(&mut *pool.faults());
        faults.extend(pool.bank.last_audit().err());
        Self {
            connections: pool.connections,
            most_in_use: pool.in_use.most(),
            opened: pool.opened.load(SeqCst),
            finished: pool.finished.load(SeqCst),
            transfers: pool.bank.transfers(),
            tally,
            drained_in,
            balance: pool.balance(),
            waiters: pool.gate.waiters(),
            faults,
        }
    }

    pub(crate) fn table(&self) -> Table {
        let Self { tally, finished, transfers, .. } = self;
        let Tally { waits, in_line, out_of_order, .. } = tally;
        let wait = |quantile| millis(Duration::from_micros(waits.value_at_quantile(quantile)));
        let rows = [
            ("served", waits.len().to_string()),
            ("timed out", tally.timed_out.to_string()),
            ("refused, queue full", tally.refused.to_string()),
            ("cancelled, client went away", tally.cancelled.to_string()),
            ("closed at shutdown", tally.closed.to_string()),
            ("served, client left the work", tally.left_at_work.to_string()),
            ("leases of the whole pool", tally.whole_pool.to_string()),
            ("order of service", format!("{in_line} watched, {out_of_order} out of order")),
            ("jobs finished", format!("{finished}, of them {transfers} transfers")),
            ("connections ever opened", self.opened.to_string()),
            ("most connections in use at once", self.most_in_use.to_string()),
            ("wait p50", wait(0.5)),
            ("wait p99", wait(0.99)),
            ("wait max", wait(1.0)),
            ("close() to drained()", millis(self.drained_in)),
            ("available + held + reserved = N", self.balance.to_string()),
        ];

        let mut table = Table::new();
        table.load_preset(presets::UTF8_BORDERS_ONLY);
        table.add_rows(rows.map(|(what, value)| [what.to_owned(), value]));
        if let Some(values) = table.column_mut(1) {
            values.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    /// Tells each check that failed, and the exit status that follows.
    pub(crate) fn verdict(&self, options: &Options) -> ExitCode {
        let mut failures = self.broken_promises();
        if options.are_the_defaults() {
            failures.extend(self.idle_categories());
        }
        for failure in &failures {
            eprintln!("pool: CHECK FAILED: {failure}");
        }
        if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// What the semaphore promises and this run did not see kept.
    fn broken_promises(&self) -> Vec<String> {
        let n = self.connections;
        let given = self.tally.leases();
        let Self { most_in_use, opened, finished, balance, waiters, .. } = self;
        let out_of_order = self.tally.out_of_order;
        let checks = [
            (*most_in_use <= n, format!("{most_in_use} of {n} connections in use")),
            (*opened <= n, format!("{opened} connections opened for {n} permits")),
            (out_of_order == 0, format!("{out_of_order} served out of order")),
            (*finished == given, format!("{given} leases, {finished} jobs finished")),
            (balance.available == n, format!("not all permits are available: {balance}")),
            (balance.sum() == n, format!("{balance}, and N is {n}")),
            (*waiters == 0, format!("{waiters} waiters left in a closed pool")),
        ];
        let broken = checks.into_iter().filter(|(kept, _)| !kept);
        let faults = self.faults.iter().map(ToString::to_string);
        broken.map(|(_, what)| what).chain(faults).collect()
    }

    /// What this run was meant to exercise and did not.
    fn idle_categories(&self) -> Vec<String> {
        let tally = &self.tally;
        let categories = [
            (tally.waits.len(), "was served"),
            (tally.timed_out, "timed out"),
            (tally.refused, "was refused"),
            (tally.cancelled, "went away while waiting"),
            (tally.closed, "met the closed pool"),
            (tally.left_at_work, "went away from running work"),
            (tally.whole_pool, "had the whole pool"),
            (tally.in_line, "was watched in the line"),
            (self.transfers, "wrote"),
        ];
        let idle = categories.into_iter().filter(|&(count, _)| count == 0);
        let mut failures: Vec<_> = idle.map(|(_, what)| format!("nobody {what}")).collect();
        if self.most_in_use < self.connections {
            failures.push("the connections were never all in use".to_owned());
        }
        failures
    }
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
