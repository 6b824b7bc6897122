//! Rows H and J: tasks on two workers of tokio.

use std::future::Future;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::Poll;

use cpu_time::ProcessTime;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, yield_now};

use super::leaked;
use crate::contender::Contender;
use crate::measure::Run;

/// Workers of the runtime.
pub const WORKERS: usize = 2;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(WORKERS).build().expect("a runtime")
}

/// H: `tasks` take a permit of `permits`, yield once and give it back, so often that it comes to
/// `operations`. Processor time of the whole process, each.
#[must_use]
pub fn crowd<C: Contender>(tasks: u64, permits: usize) -> Run {
    let runtime = runtime();
    let semaphore = leaked::<C>(permits);
    Box::new(move |operations| {
        let each = (operations / C::SLOWNESS).div_ceil(tasks);
        let begun = ProcessTime::now();
        runtime.block_on(async {
            let mut set = JoinSet::new();
            for _ in 0..tasks {
                set.spawn(async move {
                    for _ in 0..each {
                        let lease = semaphore.acquire(1).await;
                        yield_now().await;
                        drop(lease);
                    }
                });
            }
            while let Some(done) = set.join_next().await {
                done.expect("no task panics");
            }
        });
        let used = begun.elapsed();
        assert_eq!(semaphore.available(), permits);
        vec![used.as_nanos() as f64 / (each * tasks) as f64]
    })
}

/// H without a semaphore: what the tasks and their yields cost alone.
#[must_use]
pub fn crowd_of_nothing(tasks: u64) -> Run {
    let runtime = runtime();
    Box::new(move |operations| {
        let each = operations.div_ceil(tasks);
        let begun = ProcessTime::now();
        runtime.block_on(async {
            let mut set = JoinSet::new();
            for _ in 0..tasks {
                set.spawn(async move {
                    for _ in 0..each {
                        yield_now().await;
                    }
                });
            }
            while let Some(done) = set.join_next().await {
                done.expect("no task panics");
            }
        });
        vec![begun.elapsed().as_nanos() as f64 / (each * tasks) as f64]
    })
}

/// One grant: when its request's first poll began and ended.
#[derive(Clone, Copy)]
struct Grant {
    task: usize,
    began: u64,
    joined: u64,
}

/// J: `tasks` take turns at one permit until there were `operations` grants. Figures: grants of the
/// task that got most by those of the one that got least; overtaken requests in a thousand.
///
/// A request is overtaken if another one, whose first poll began after its own had returned, was
/// granted before it.
#[must_use]
pub fn turns<C: Contender>(tasks: usize) -> Run {
    let runtime = runtime();
    let semaphore = leaked::<C>(1);
    Box::new(move |operations| {
        let operations = operations / C::SLOWNESS;
        let log = Arc::new(Mutex::new(Vec::with_capacity(operations as usize + tasks)));
        let clock = Arc::new(AtomicU64::new(1));
        let start = Arc::new(tokio::sync::Barrier::new(tasks));
        runtime.block_on(async {
            let mut set = JoinSet::new();
            for task in 0..tasks {
                let (log, clock, start) = (log.clone(), clock.clone(), start.clone());
                set.spawn(async move {
                    start.wait().await;
                    loop {
                        let began = clock.fetch_add(1, SeqCst);
                        let mut joined = 0;
                        let mut request = Box::pin(semaphore.acquire(1));
                        let lease = std::future::poll_fn(|cx| {
                            let poll: Poll<_> = request.as_mut().poll(cx);
                            if joined == 0 {
                                joined = clock.fetch_add(1, SeqCst);
                            }
                            poll
                        })
                        .await;
                        // One permit: the order of this log is that of the grants.
                        let full = {
                            let mut log = log.lock().expect("nobody panics");
                            log.push(Grant { task, began, joined });
                            log.len() as u64 >= operations
                        };
                        yield_now().await;
                        drop(lease);
                        if full {
                            break;
                        }
                    }
                });
            }
            while let Some(done) = set.join_next().await {
                done.expect("no task panics");
            }
        });
        assert_eq!(semaphore.available(), 1);
        let log = log.lock().expect("nobody panics");
        assert!(log.len() as u64 >= operations, "each grant is in the log");
        assert!(clock.load(Relaxed) > log.len() as u64);
        let mut grants = vec![0u64; tasks];
        let mut newest = 0;
        let mut overtaken = 0u64;
        for grant in log.iter() {
            grants[grant.task] += 1;
            overtaken += u64::from(newest > grant.joined);
            newest = newest.max(grant.began);
        }
        let most = grants.iter().max().expect("a task");
        let least = grants.iter().min().expect("a task");
        vec![*most as f64 / *least as f64, 1000.0 * overtaken as f64 / log.len() as f64]
    })
}
