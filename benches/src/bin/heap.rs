//! Memory: what a semaphore, a future and a wait take, and what a storm of cancellations leaves.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_wrap, reason = "counts become figures")]

use std::alloc::System;
use std::future::Future;
use std::pin::pin;
use std::task::Context;

use comfy_table::{CellAlignment, Table, presets};
use semaphore_benches::contender::{
    AsyncLock, Asyncband, Contender, Embassy, IntrusiveFair, IntrusiveUnfair, Maitake, Ours,
    OwnMutex, Saa, Tokio,
};
use semaphore_benches::places::{Places, waker};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const STORM: u64 = 1_000_000;

/// Its semaphore, its future, allocations of 1,000 warm waits, and bytes left by a storm.
fn row<C: Contender>() -> [String; 5] {
    let semaphore: &'static C = Box::leak(Box::new(C::new(1)));
    let waker = waker();
    let mut cx = Context::from_waker(&waker);
    let mut futures = Places::new(3);
    let wait = |futures: &mut Places<_>| {
        let lease = semaphore.try_acquire(1);
        assert!(lease.is_some());
        assert!(
            futures.start(0, semaphore.acquire(1), &mut Context::from_waker(&waker)).is_pending()
        );
        drop(lease);
        assert!(futures.poll(0, &mut Context::from_waker(&waker)).is_ready());
        futures.clear(0);
    };
    // Warm: as often as a slot and a buffer need.
    (0..64).for_each(|_| wait(&mut futures));
    let region = Region::new(HEAP);
    (0..1000).for_each(|_| wait(&mut futures));
    let waits = region.change();
    let per_wait = waits.allocations as f64 / 1000.0;

    let storm = if C::MAX_WAITERS < 1025 {
        "–".to_owned()
    } else {
        let lease = semaphore.try_acquire(1);
        for at in [0, 1] {
            assert!(futures.start(at, semaphore.acquire(1), &mut cx).is_pending());
        }
        let mut tail = 1;
        let region = Region::new(HEAP);
        for _ in 0..STORM {
            let next = 3 - tail;
            assert!(futures.start(next, semaphore.acquire(1), &mut cx).is_pending());
            futures.clear(tail);
            tail = next;
        }
        let stats = region.change();
        drop(lease);
        (stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
            + stats.bytes_reallocated as i64)
            .to_string()
    };
    (0..3).for_each(|at| futures.clear(at));
    let future = {
        let future = pin!(semaphore.acquire(1));
        size_of_val(&*future as &dyn Future<Output = C::Lease<'_>>)
    };
    [
        C::NAME.to_owned(),
        size_of::<C>().to_string(),
        future.to_string(),
        format!("{per_wait:.2}"),
        storm,
    ]
}

fn main() {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([
        "contender",
        "semaphore, bytes",
        "future, bytes",
        "allocations a warm wait",
        "bytes left by a million cancellations",
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    macro_rules! rows {
        ($($Contender:ty),*) => { $(table.add_row(row::<$Contender>());)* };
    }
    rows!(
        Ours,
        Tokio,
        IntrusiveFair,
        IntrusiveUnfair,
        Maitake,
        Asyncband,
        AsyncLock,
        Saa,
        Embassy,
        OwnMutex
    );
    println!("{table}");
}
