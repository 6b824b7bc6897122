//! Threads that wait, among themselves and with tasks. No test sleeps: where one thread has to see that
//! another waits, it asks the semaphore.
#![cfg(all(feature = "std", not(any(feature = "loom", feature = "shuttle"))))]

mod common;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::counting_alloc::{CountingAlloc, Heap};
use common::{at_rest, served, waits};
use semaphore_core::{AcquireError, Observer, Semaphore};

#[global_allocator]
static ALLOCATOR: CountingAlloc = CountingAlloc;

const NEVER: Duration = Duration::MAX;

/// Yields until so many wait.
fn until_waiting(semaphore: &Semaphore<impl Observer>, n: usize) {
    while semaphore.waiters() != n {
        thread::yield_now();
    }
}

#[test]
fn free_permits_are_taken_at_once() -> Result<(), AcquireError> {
    let semaphore = Arc::new(Semaphore::new(4));
    let leases = (
        semaphore.acquire_blocking()?,
        semaphore.acquire_many_blocking(2)?,
        Arc::clone(&semaphore).acquire_blocking_owned()?,
    );
    assert_eq!((semaphore.available_permits(), leases.1.num_permits()), (0, 2));
    drop(leases);
    let leases = (
        semaphore.acquire_blocking_timeout(Duration::ZERO)?,
        semaphore.acquire_many_blocking_timeout(0, Duration::ZERO)?,
        Arc::clone(&semaphore).acquire_blocking_timeout_owned(Duration::ZERO)?,
        Arc::clone(&semaphore).acquire_many_blocking_timeout_owned(2, NEVER)?,
    );
    assert_eq!(semaphore.available_permits(), 0);
    drop(leases);
    drop(Arc::clone(&semaphore).acquire_many_blocking_owned(4)?);
    at_rest(&semaphore);
    Ok(())
}

#[test]
fn a_thread_is_served_by_another() {
    let semaphore = Semaphore::new(1);
    thread::scope(|scope| {
        let held = semaphore.try_acquire().unwrap();
        let waiter = scope.spawn(|| semaphore.acquire_blocking().map(drop));
        until_waiting(&semaphore, 1);
        held.release();
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
    at_rest(&semaphore);
}

#[test]
fn threads_and_tasks_wait_in_one_queue() {
    let semaphore = Semaphore::new(1);
    let order = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let held = semaphore.try_acquire().unwrap();
        let mut first = semaphore.acquire().enqueue();
        let second = scope.spawn(|| {
            let lease = semaphore.acquire_blocking().unwrap();
            order.lock().unwrap().push("thread");
            drop(lease);
        });
        until_waiting(&semaphore, 2);
        let mut third = semaphore.acquire().enqueue();
        drop(held);
        waits(&mut third);
        let lease = served(&mut first);
        order.lock().unwrap().push("first task");
        waits(&mut third);
        drop(lease);
        second.join().unwrap();
        drop(served(&mut third));
        order.lock().unwrap().push("last task");
    });
    assert_eq!(order.into_inner().unwrap(), ["first task", "thread", "last task"]);
    at_rest(&semaphore);
}

#[test]
fn no_more_at_once_than_permits() {
    const THREADS: usize = 8;
    const TURNS: usize = 2_000;
    let semaphore = Arc::new(Semaphore::new(3));
    let (inside, most, turns) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (semaphore, inside, most, turns) = (&semaphore, &inside, &most, &turns);
            scope.spawn(move || {
                for _ in 0..TURNS {
                    let permits = 1 + number as u32 % 3;
                    let lease = semaphore.acquire_many_blocking(permits).unwrap();
                    most.fetch_max(
                        inside.fetch_add(lease.num_permits(), SeqCst) + lease.num_permits(),
                        SeqCst,
                    );
                    turns.fetch_add(1, SeqCst);
                    inside.fetch_sub(lease.num_permits(), SeqCst);
                }
            });
        }
    });
    assert!(most.into_inner() <= 3);
    assert_eq!(turns.into_inner(), THREADS * TURNS);
    at_rest(&semaphore);
}

#[test]
fn a_timeout_ends_the_wait_and_owns_nothing() {
    let semaphore = Arc::new(Semaphore::new(2));
    let held = semaphore.try_acquire().unwrap();
    for timeout in [Duration::ZERO, Duration::from_millis(1)] {
        assert_eq!(
            semaphore.acquire_many_blocking_timeout(2, timeout).err(),
            Some(AcquireError::TimedOut)
        );
        let owned = Arc::clone(&semaphore).acquire_many_blocking_timeout_owned(2, timeout);
        assert_eq!(owned.err(), Some(AcquireError::TimedOut));
        // The part that it had gathered is back.
        assert_eq!((semaphore.waiters(), semaphore.available_permits()), (0, 1));
    }
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn a_grant_before_the_deadline_wins_though_the_thread_looks_later() {
    let semaphore = Semaphore::new(1);
    let held = semaphore.try_acquire().unwrap();
    let request = semaphore.acquire().enqueue();
    drop(held);
    drop(request.wait_timeout(Duration::ZERO).expect("granted before the time was up"));
    at_rest(&semaphore);
}

/// Timeouts that come about when the grants do: whoever wins, no permit is lost.
#[test]
fn timeouts_race_grants() {
    const TURNS: u32 = 3_000;
    let semaphore = Semaphore::new(1);
    let ends = [(); 2].map(|()| AtomicUsize::new(0));
    thread::scope(|scope| {
        for thread in 0..4 {
            let (semaphore, ends) = (&semaphore, &ends);
            scope.spawn(move || {
                for turn in 0..TURNS {
                    let timeout =
                        Duration::from_nanos(u64::from((turn * 37 + thread * 211) % 2_000));
                    match semaphore.acquire_blocking_timeout(timeout) {
                        Ok(lease) => {
                            ends[0].fetch_add(1, SeqCst);
                            thread::yield_now();
                            drop(lease);
                        }
                        Err(error) => {
                            assert_eq!(error, AcquireError::TimedOut);
                            ends[1].fetch_add(1, SeqCst);
                        }
                    }
                }
            });
        }
    });
    let [leased, timed_out] = ends.map(AtomicUsize::into_inner);
    assert_eq!(leased + timed_out, 4 * TURNS as usize);
    at_rest(&semaphore);
}

#[test]
fn errors() {
    let semaphore = Semaphore::builder().permits(2).max_waiters(0).build().unwrap();
    let held = semaphore.acquire_many_blocking(2).unwrap();
    assert_eq!(semaphore.acquire_blocking().err(), Some(AcquireError::QueueFull));
    let exceeds = AcquireError::ExceedsCapacity { requested: 3, ceiling: 2 };
    assert_eq!(semaphore.acquire_many_blocking(3).err(), Some(exceeds));
    assert_eq!(semaphore.acquire_many_blocking_timeout(3, NEVER).err(), Some(exceeds));
    semaphore.close();
    assert_eq!(semaphore.acquire_blocking().err(), Some(AcquireError::Closed));
    assert_eq!(semaphore.acquire_many_blocking(3).err(), Some(AcquireError::Closed));
    assert_eq!(semaphore.acquire_many_blocking(0).err(), Some(AcquireError::Closed));
    drop(held);
    at_rest(&semaphore);
}

#[test]
fn close_ends_threads_that_wait() {
    let semaphore = Arc::new(Semaphore::new(1));
    let held = semaphore.try_acquire().unwrap();
    thread::scope(|scope| {
        let waiters = [
            scope.spawn(|| semaphore.acquire_blocking().map(drop)),
            scope.spawn(|| semaphore.acquire_blocking_timeout(NEVER).map(drop)),
            scope.spawn(|| Arc::clone(&semaphore).acquire_blocking_owned().map(drop)),
        ];
        until_waiting(&semaphore, 3);
        semaphore.close();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Err(AcquireError::Closed));
        }
    });
    drop(held);
    at_rest(&semaphore);
}

/// Blocks on another semaphore while it is told that somebody has joined.
struct Nested(Semaphore);

impl Observer for Nested {
    type Stamp = ();

    fn queued(&self) {
        // Served by the other thread, which also serves the request that is joining.
        drop(self.0.acquire_blocking());
    }
}

/// The wake of the outer wait comes while the inner one waits, and must not be lost in it.
#[test]
fn a_wait_within_a_wait() {
    let inner = Semaphore::new(1);
    let semaphore = Semaphore::builder().permits(1).observer(Nested(inner)).build().unwrap();
    let inner = &semaphore.observer().0;
    // The thread has an idle parker, which the outer wait takes.
    thread::scope(|scope| {
        let (outer_held, inner_held) = (semaphore.try_acquire(), inner.try_acquire());
        let waiter = scope.spawn(|| semaphore.acquire_blocking().map(drop));
        until_waiting(inner, 1);
        drop(outer_held);
        drop(inner_held);
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
    at_rest(inner);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn a_thread_that_was_unparked_by_a_stranger_goes_on_waiting() {
    let semaphore = Semaphore::new(1);
    thread::scope(|scope| {
        let held = semaphore.try_acquire().unwrap();
        let waiter = scope.spawn(|| semaphore.acquire_blocking().map(drop));
        until_waiting(&semaphore, 1);
        for _ in 0..100 {
            waiter.thread().unpark();
            thread::yield_now();
        }
        assert_eq!(semaphore.waiters(), 1);
        drop(held);
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
    at_rest(&semaphore);
}

#[test]
fn waiting_in_the_destructor_of_a_thread_local() {
    static SEMAPHORE: Semaphore = Semaphore::new(1);
    struct Last(Cell<bool>);
    impl Drop for Last {
        fn drop(&mut self) {
            assert_eq!(
                SEMAPHORE.acquire_blocking_timeout(Duration::from_millis(1)).err(),
                self.0.get().then_some(AcquireError::TimedOut)
            );
        }
    }
    thread_local! { static LAST: Last = const { Last(Cell::new(false)) } }
    let held = SEMAPHORE.try_acquire().unwrap();
    let waits = || {
        // Registered first, so destroyed last or first: either way the wait works.
        LAST.with(|last| last.0.set(true));
        SEMAPHORE.acquire_blocking_timeout(Duration::ZERO).err()
    };
    assert_eq!(thread::spawn(waits).join().unwrap(), Some(AcquireError::TimedOut));
    drop(held);
    at_rest(&SEMAPHORE);
}

#[test]
fn a_wait_allocates_nothing_after_the_first_of_its_thread() {
    let semaphore = Semaphore::builder().permits(1).max_waiters(1).build().unwrap();
    let held = semaphore.try_acquire().unwrap();
    let wait = || semaphore.acquire_blocking_timeout(Duration::from_micros(1)).is_err();
    assert!(wait());
    let before = Heap::now();
    assert!((0..100).all(|_| wait()));
    assert_eq!(Heap::since(before), Heap::UNTOUCHED);
    drop(held);
}
