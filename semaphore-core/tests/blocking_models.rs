//! Threads that wait, under the model checkers: a wake that is lost is a deadlock, which both report.
#![cfg(all(feature = "std", any(feature = "loom", feature = "shuttle")))]

#[cfg(feature = "loom")]
use loom::{sync::Arc, thread};
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
use shuttle::{sync::Arc, thread};

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use semaphore_core::{AcquireError, Semaphore};

/// Explores `scenario` and returns what it returned: under loom all interleavings, or those of so many
/// preemptions; under shuttle schedules that are drawn.
fn explore<R: Ord + Send + 'static>(
    preemptions: Option<usize>,
    scenario: fn() -> R,
) -> BTreeSet<R> {
    let found = std::sync::Arc::new(Mutex::new((0_usize, BTreeSet::new())));
    let sink = std::sync::Arc::clone(&found);
    let once = move || {
        let result = scenario();
        let mut found = sink.lock().unwrap();
        found.0 += 1;
        found.1.insert(result);
    };
    #[cfg(feature = "loom")]
    {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = preemptions;
        model.check(once);
    }
    #[cfg(all(feature = "shuttle", not(feature = "loom")))]
    {
        shuttle::check_pct(once, 10_000, preemptions.unwrap_or(3));
    }
    let mut found = found.lock().unwrap();
    println!("{} executions, {} outcomes", found.0, found.1.len());
    std::mem::take(&mut found.1)
}

/// With a close it is 7,152 executions; without a bound 170,256, which take a minute and pass as well.
const CLOSE_BOUND: Option<usize> = Some(3);

fn one_permit() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1))
}

fn rests(semaphore: &Semaphore) {
    assert_eq!((semaphore.available_permits(), semaphore.waiters()), (semaphore.capacity(), 0));
}

#[test]
fn wait_against_release() {
    let outcomes = explore(None, || {
        let semaphore = one_permit();
        let other = Arc::clone(&semaphore);
        let held = semaphore.try_acquire().unwrap();
        let waiter = thread::spawn(move || other.acquire_blocking().map(drop));
        drop(held);
        let result = waiter.join().unwrap();
        rests(&semaphore);
        result.is_ok()
    });
    assert_eq!(outcomes, [true].into());
}

#[test]
fn wait_against_close() {
    let outcomes = explore(CLOSE_BOUND, || {
        let semaphore = one_permit();
        let other = Arc::clone(&semaphore);
        let held = semaphore.try_acquire().unwrap();
        let waiter = thread::spawn(move || other.acquire_blocking().map(drop));
        semaphore.close();
        drop(held);
        let result = waiter.join().unwrap();
        rests(&semaphore);
        result == Err(AcquireError::Closed)
    });
    assert_eq!(outcomes, [true].into());
}

#[test]
fn a_timeout_against_release() {
    let outcomes = explore(None, || {
        let semaphore = one_permit();
        let other = Arc::clone(&semaphore);
        let held = semaphore.try_acquire().unwrap();
        let waiter =
            thread::spawn(move || other.acquire_blocking_timeout(Duration::from_secs(1)).map(drop));
        drop(held);
        let result = waiter.join().unwrap();
        rests(&semaphore);
        result.map_err(|error| error.to_string())
    });
    let expected = [Ok(()), Err(AcquireError::TimedOut.to_string())];
    assert_eq!(outcomes, expected.into());
}

#[test]
fn two_threads_take_turns() {
    let outcomes = explore(None, || {
        let semaphore = one_permit();
        let other = Arc::clone(&semaphore);
        let waiter = thread::spawn(move || {
            drop(other.acquire_blocking().unwrap());
        });
        drop(semaphore.acquire_blocking().unwrap());
        waiter.join().unwrap();
        rests(&semaphore);
    });
    assert_eq!(outcomes.len(), 1);
}
