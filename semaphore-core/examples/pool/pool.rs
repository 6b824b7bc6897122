//! The pool: connections behind a semaphore.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::task::{JoinHandle, spawn, spawn_blocking};
use tokio::time::{sleep, timeout};

use crate::Fault;
use crate::bank::{Bank, Job};
use crate::client::{Answer, Temper};
use crate::gauge::Gauge;
use crate::metrics::{Metrics, Watch};
use crate::options::Options;

/// The semaphore and what it gives, with whoever watches it.
pub(crate) type Semaphore = semaphore_core::Semaphore<Watch>;
pub(crate) type OwnedLease = semaphore_core::OwnedLease<Watch>;
pub(crate) type AcquireOwned = semaphore_core::AcquireOwned<Watch>;

/// Connections behind a semaphore.
pub(crate) struct Pool {
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) connections: usize,
    pub(crate) bank: Bank,
    /// The connections that nobody uses. The shelf starts empty, and an empty shelf makes `work`
    /// open one more: a lease too many is a connection too many, and is seen.
    shelf: Mutex<Vec<Connection>>,
    pub(crate) opened: AtomicUsize,
    /// Connections somebody works on.
    pub(crate) in_use: Gauge,
    /// Requests without an answer.
    pub(crate) asking: Gauge,
    /// Jobs done, whether or not anybody waited for their end.
    pub(crate) finished: AtomicU64,
    faults: Mutex<Vec<Fault>>,
}

impl Pool {
    #[allow(clippy::unit_arg, reason = "without the feature `metrics` nobody watches")]
    pub(crate) fn new(options: &Options, bank: Bank) -> Result<Self, Fault> {
        let connections = usize::from(options.connections);
        let gate = semaphore_core::Semaphore::builder()
            .permits(connections)
            .max_waiters(options.max_waiters())
            .observer(Metrics::watch(options.metrics))
            .build()?;
        Ok(Self {
            gate: Arc::new(gate),
            connections,
            bank,
            shelf: Mutex::default(),
            opened: AtomicUsize::new(0),
            in_use: Gauge::default(),
            asking: Gauge::default(),
            finished: AtomicU64::new(0),
            faults: Mutex::default(),
        })
    }

    /// One request for `permits` permits, made in the given temper.
    pub(crate) async fn ask(&self, permits: u16, temper: Temper) -> Answer {
        let _asking = self.asking.enter();
        let request = Arc::clone(&self.gate).acquire_many_owned(permits.into());
        match temper {
            Temper::Patient => request.await.into(),
            // The semaphore's own deadline: it races the grant, and loses to one that came first.
            Temper::Hurried(limit) => request.with_deadline(sleep(limit)).await.into(),
            Temper::Fickle(patience) => Self::wait_for_a_while(request, patience).await,
        }
    }

    /// Waits in a task, and aborts it when patience runs out. All that the semaphore learns is that
    /// the future is dropped, be it queued, or granted and not yet polled again.
    async fn wait_for_a_while(request: AcquireOwned, patience: Duration) -> Answer {
        let mut task = spawn(request);
        let end = match timeout(patience, &mut task).await {
            Ok(end) => end,
            Err(_elapsed) => {
                task.abort();
                task.await
            }
        };
        match end {
            Ok(result) => result.into(),
            Err(error) if error.is_cancelled() => Answer::Cancelled,
            Err(error) => resume_unwind(error.into_panic()),
        }
    }

    /// Does the job on a connection, with the lease travelling along.
    ///
    /// SQLite blocks: on its file, and on another connection's write lock for up to seconds.
    /// In place, even in a short transaction, a few writers that queue for that lock would stop
    /// the runtime's workers, and with them every timer that a deadline hangs on. So the job goes
    /// to a blocking thread; there are never more of them than leases, and so none waits for one.
    /// A blocking job cannot be cancelled, though: when its client goes away it runs on. With a
    /// borrowed lease in the client's hands, the permit would then come back while the connection
    /// is still in use. The job owns its lease, and the permit returns when the work ends.
    pub(crate) fn put_to_work(self: &Arc<Self>, lease: OwnedLease, job: Job) -> JoinHandle<()> {
        let pool = Arc::clone(self);
        spawn_blocking(move || pool.work(lease, job))
    }

    fn work(&self, lease: OwnedLease, job: Job) {
        let in_use = self.in_use.enter();
        if let Err(fault) = self.work_on_connection(job) {
            self.faults().push(fault);
        }
        self.finished.fetch_add(1, SeqCst);
        // The gauge lets go first, or it would count this connection and the next holder's.
        drop(in_use);
        drop(lease);
    }

    fn work_on_connection(&self, job: Job) -> Result<(), Fault> {
        let idle = self.shelf().pop();
        let mut connection = idle.map_or_else(|| self.open_another(), Ok)?;
        let result = self.bank.perform(job, &mut connection);
        let in_use = self.in_use.now();
        if job == Job::Checkpoint && in_use != 1 {
            return Err(format!("{in_use} connections in use during a checkpoint").into());
        }
        self.shelf().push(connection);
        result
    }

    fn open_another(&self) -> Result<Connection, Fault> {
        self.opened.fetch_add(1, SeqCst);
        self.bank.open()
    }

    fn shelf(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What went wrong in the work, also in that which nobody waited for.
    pub(crate) fn faults(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the permits are. Exact when no job and no request is under way.
    pub(crate) fn balance(&self) -> Balance {
        Balance {
            available: self.gate.available_permits(),
            held: self.in_use.now(),
            reserved: self.asking.now(),
        }
    }
}

/// Where the permits are, by witnesses other than the semaphore for all that is not available.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Balance {
    pub(crate) available: usize,
    /// Jobs that run, each on a connection of its own.
    pub(crate) held: usize,
    /// Requests without an answer, the only ones that permits can be reserved for.
    pub(crate) reserved: usize,
}

impl Balance {
    pub(crate) fn sum(self) -> usize {
        self.available + self.held + self.reserved
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { available, held, reserved } = self;
        write!(f, "{available} + {held} + {reserved} = {}", self.sum())
    }
}
