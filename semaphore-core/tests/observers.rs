//! Observers that report to other crates, and two observers at once.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use common::{Timer, poll, refused, served, waits};
use semaphore_core::{AcquireError, Observer, Semaphore};

/// One request of each end.
fn all_that_can_happen(semaphore: &Semaphore<impl Observer>) {
    let held = semaphore.try_acquire().unwrap();
    let mut granted = semaphore.acquire().enqueue();
    let refusal = refused(&mut semaphore.acquire().enqueue());
    assert_eq!(refusal, AcquireError::QueueFull);
    drop(held);
    let held = served(&mut granted);
    drop(semaphore.acquire().enqueue());
    let timer = Timer::default();
    let mut timed = Box::pin(semaphore.acquire().with_deadline(timer.clone()));
    waits(&mut timed);
    timer.fire();
    assert_eq!(refused(&mut timed), AcquireError::TimedOut);
    assert!(matches!(
        refused(&mut semaphore.acquire_many(2)),
        AcquireError::ExceedsCapacity { .. }
    ));
    let mut closed = semaphore.acquire().enqueue();
    semaphore.close();
    assert_eq!(refused(&mut closed), AcquireError::Closed);
    assert_eq!(refused(&mut semaphore.acquire()), AcquireError::Closed);
    drop(held);
    assert!(poll(&mut semaphore.drained()).is_ready());
}

fn observed<O: Observer>(observer: O) -> Semaphore<O> {
    Semaphore::builder().permits(1).max_waiters(1).observer(observer).build().unwrap()
}

#[derive(Default)]
struct Log(Mutex<Vec<(&'static str, usize)>>, AtomicUsize);

impl Log {
    fn note(&self, what: &'static str, stamp: usize) {
        self.0.lock().unwrap().push((what, stamp));
    }
}

impl Observer for Log {
    type Stamp = usize;

    fn queued(&self) -> usize {
        let stamp = self.1.fetch_add(1, SeqCst);
        self.note("queued", stamp);
        stamp
    }

    fn granted(&self, since: usize) {
        self.note("granted", since);
    }

    fn cancelled(&self, since: usize) {
        self.note("cancelled", since);
    }

    fn timed_out(&self, since: usize) {
        self.note("timed out", since);
    }

    fn closed(&self, since: usize) {
        self.note("closed", since);
    }

    fn refused(&self, why: &AcquireError) {
        self.note("refused", why.to_string().len());
    }
}

#[test]
fn a_pair_tells_both() {
    let semaphore = observed((Log::default(), Log::default()));
    all_that_can_happen(&semaphore);
    let (first, second) = semaphore.observer();
    let first = first.0.lock().unwrap();
    assert_eq!(*first, *second.0.lock().unwrap());
    let what: Vec<_> = first.iter().filter(|(what, _)| *what != "refused").copied().collect();
    let expected = [
        ("queued", 0),
        ("granted", 0),
        ("queued", 1),
        ("cancelled", 1),
        ("queued", 2),
        ("timed out", 2),
        ("queued", 3),
        ("closed", 3),
    ];
    assert_eq!(what, expected);
    assert_eq!(first.len() - what.len(), 3, "three were refused: {first:?}");
}

#[test]
fn an_option_tells_whom_there_is() {
    let told = observed((Some(Log::default()), Log::default()));
    all_that_can_happen(&told);
    let (some, always) = told.observer();
    assert_eq!(*some.as_ref().unwrap().0.lock().unwrap(), *always.0.lock().unwrap());
    let untold = observed(None::<Log>);
    all_that_can_happen(&untold);
    assert!(untold.observer().is_none());
}

#[cfg(feature = "metrics")]
#[test]
fn metrics() {
    use std::collections::BTreeMap;

    use metrics_util::debugging::{DebugValue, DebuggingRecorder};
    use semaphore_core::MetricsObserver;

    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        all_that_can_happen(&observed(MetricsObserver::new("door")));
    });
    let found: BTreeMap<String, u64> = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .map(|(key, _, _, value)| {
            let key = key.key();
            let labels: Vec<_> =
                key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            let value = match value {
                DebugValue::Counter(n) => n,
                DebugValue::Gauge(n) => {
                    assert!(n.abs() < f64::EPSILON, "nobody waits");
                    0
                }
                DebugValue::Histogram(samples) => samples.len() as u64,
            };
            (format!("{} {}", key.name(), labels.join(" ")), value)
        })
        .collect();
    let expected = [
        ("semaphore_refused_total semaphore=door reason=closed", 1),
        ("semaphore_refused_total semaphore=door reason=exceeds_capacity", 1),
        ("semaphore_refused_total semaphore=door reason=queue_full", 1),
        ("semaphore_wait_seconds semaphore=door outcome=cancelled", 1),
        ("semaphore_wait_seconds semaphore=door outcome=closed", 1),
        ("semaphore_wait_seconds semaphore=door outcome=granted", 1),
        ("semaphore_wait_seconds semaphore=door outcome=timed_out", 1),
        ("semaphore_waiting semaphore=door", 0),
    ];
    assert_eq!(found, expected.map(|(key, n)| (key.to_owned(), n)).into());
}

#[cfg(feature = "tracing")]
#[test]
fn tracing() {
    use std::fmt::{Debug, Write};
    use std::sync::Arc;

    use semaphore_core::TracingObserver;
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    struct Line(String);

    impl Visit for Line {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            if field.name() == "waited" {
                self.0.push_str(" waited");
            } else {
                write!(self.0, " {}={value:?}", field.name()).unwrap();
            }
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "semaphore_core"
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut line = Line(event.metadata().level().to_string());
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        all_that_can_happen(&observed(TracingObserver::new("door")));
    });
    let lines = lines.0.lock().unwrap();
    let expected = [
        "TRACE message=queued semaphore=\"door\"",
        "DEBUG message=refused semaphore=\"door\" error=the queue of the semaphore is full",
        "TRACE message=granted semaphore=\"door\" waited",
        "TRACE message=queued semaphore=\"door\"",
        "DEBUG message=cancelled semaphore=\"door\" waited",
        "TRACE message=queued semaphore=\"door\"",
        "DEBUG message=timed out semaphore=\"door\" waited",
        "DEBUG message=refused semaphore=\"door\" error=2 permits requested from a semaphore that can have 1 at most",
        "TRACE message=queued semaphore=\"door\"",
        "DEBUG message=closed semaphore=\"door\" waited",
        "DEBUG message=refused semaphore=\"door\" error=the semaphore is closed",
    ];
    assert_eq!(*lines, expected);
}
