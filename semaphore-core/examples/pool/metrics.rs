//! `--metrics`: what the semaphore's observer reports, through the facade `metrics`.
//!
//! The recorder is one that keeps all that it is told, for a table at the end; a service would install
//! an exporter in its place, and change nothing else.

#[cfg(feature = "metrics")]
pub(crate) use with_metrics::{Metrics, Watch};
#[cfg(not(feature = "metrics"))]
pub(crate) use without_metrics::{Metrics, Watch};

#[cfg(feature = "metrics")]
mod with_metrics {
    use comfy_table::{Table, presets};
    use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
    use semaphore_core::MetricsObserver;

    use crate::Fault;

    /// Who watches the semaphore: nobody, without `--metrics`.
    pub(crate) type Watch = Option<MetricsObserver>;

    /// What was reported so far.
    pub(crate) struct Metrics(Snapshotter);

    impl Metrics {
        /// Installs the recorder; before the observer is made.
        pub(crate) fn install() -> Result<Self, Fault> {
            let recorder = DebuggingRecorder::new();
            let metrics = Self(recorder.snapshotter());
            recorder.install()?;
            Ok(metrics)
        }

        /// Who watches the semaphore of a run with or without `--metrics`.
        pub(crate) fn watch(reporting: bool) -> Watch {
            reporting.then(|| MetricsObserver::new("connections"))
        }

        pub(crate) fn table(&self) -> Table {
            let mut rows: Vec<_> = self
                .0
                .snapshot()
                .into_vec()
                .into_iter()
                .map(|(key, _, _, value)| {
                    let labels = key.key().labels();
                    let labels: Vec<_> =
                        labels.map(|l| format!("{}={}", l.key(), l.value())).collect();
                    [key.key().name().to_owned(), labels.join(" "), shown(value)]
                })
                .collect();
            rows.sort();
            let mut table = Table::new();
            table.load_preset(presets::UTF8_BORDERS_ONLY);
            table.add_rows(rows);
            table
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    fn shown(value: DebugValue) -> String {
        match value {
            DebugValue::Counter(n) => n.to_string(),
            DebugValue::Gauge(n) => n.to_string(),
            DebugValue::Histogram(seconds) => {
                let (sum, max) =
                    seconds.iter().fold((0.0, 0.0_f64), |(sum, max), s| (sum + s.0, max.max(s.0)));
                let mean = sum / seconds.len().max(1) as f64;
                format!("{} times, mean {mean:.4}, max {max:.4}", seconds.len())
            }
        }
    }
}

#[cfg(not(feature = "metrics"))]
mod without_metrics {
    use std::convert::Infallible;

    use comfy_table::Table;

    use crate::Fault;

    /// Nobody watches the semaphore.
    pub(crate) type Watch = ();

    /// There are none.
    pub(crate) struct Metrics(Infallible);

    impl Metrics {
        pub(crate) fn install() -> Result<Self, Fault> {
            Err("built without metrics: cargo run --release --features metrics --example pool -- \
                 --metrics"
                .into())
        }

        pub(crate) fn watch(_reporting: bool) -> Watch {}

        pub(crate) fn table(&self) -> Table {
            match self.0 {}
        }
    }
}
