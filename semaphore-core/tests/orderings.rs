//! What a permit protects: whoever gets it sees all that its last holders did.
//!
//! The data are relaxed atomics, of which loom shows an old value to whoever is not told of the new one
//! by the semaphore: so a test fails when an ordering on the way from the release to the acquire is too
//! weak. Two threads are explored with at most three preemptions, three threads with two.

#![cfg(feature = "loom")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;
use semaphore_core::{AcquireOwned, OwnedLease, Semaphore, model};

struct World {
    semaphore: Arc<Semaphore>,
    data: [AtomicUsize; 2],
}

impl World {
    fn new(permits: usize) -> Arc<Self> {
        let semaphore = Semaphore::builder().permits(permits).build().unwrap();
        Arc::new(Self {
            semaphore: Arc::new(semaphore),
            data: [AtomicUsize::new(0), AtomicUsize::new(0)],
        })
    }

    fn lease(&self, permits: u32) -> Option<OwnedLease> {
        Arc::clone(&self.semaphore).try_acquire_many_owned(permits).ok()
    }

    /// A request that is in the queue.
    fn waiter(&self, permits: u32) -> AcquireOwned {
        let mut request = Arc::clone(&self.semaphore).acquire_many_owned(permits);
        assert!(!poll(&mut request));
        request
    }

    /// The holder's last act.
    fn write_and_release(&self, which: usize, lease: OwnedLease) {
        self.data[which].store(1, Relaxed);
        drop(lease);
    }

    /// What a holder may rely on.
    fn sees(&self, which: usize) {
        assert_eq!(self.data[which].load(Relaxed), 1, "what the last holder wrote");
    }
}

/// Whether it has its permits. They go back at once: what they brought stays seen.
fn poll(request: &mut AcquireOwned) -> bool {
    match Pin::new(request).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result.is_ok(),
        Poll::Pending => false,
    }
}

/// In both modes of the facade: loom keeps one last access for each atomic, and so does not see each
/// interleaving of a load with a later exchange unless the load is an exchange, too.
fn explore(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let test = Arc::new(test);
    for strong in [false, true] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_duration = None;
        builder.max_permutations = None;
        let test = Arc::clone(&test);
        builder.check(move || {
            model::strong(strong);
            test();
        });
        model::strong(false);
    }
}

#[test]
fn a_release_to_a_fast_acquire() {
    explore(3, || {
        let world = World::new(1);
        let lease = world.lease(1).unwrap();
        let there = Arc::clone(&world);
        let thread = thread::spawn(move || there.write_and_release(0, lease));
        if let Some(_lease) = world.lease(1) {
            world.sees(0);
        }
        thread.join().unwrap();
    });
}

#[test]
fn two_releases_to_a_fast_acquire() {
    explore(2, || {
        let world = World::new(2);
        let (first, second) = (world.lease(1).unwrap(), world.lease(1).unwrap());
        let (there, elsewhere) = (Arc::clone(&world), Arc::clone(&world));
        let one = thread::spawn(move || there.write_and_release(0, first));
        let other = thread::spawn(move || elsewhere.write_and_release(1, second));
        if let Some(_lease) = world.lease(2) {
            world.sees(0);
            world.sees(1);
        }
        one.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_release_to_a_waiter() {
    explore(3, || {
        let world = World::new(1);
        let lease = world.lease(1).unwrap();
        let mut waiter = world.waiter(1);
        let there = Arc::clone(&world);
        let thread = thread::spawn(move || there.write_and_release(0, lease));
        if poll(&mut waiter) {
            world.sees(0);
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_release_to_one_that_joins() {
    explore(3, || {
        let world = World::new(1);
        let lease = world.lease(1).unwrap();
        let there = Arc::clone(&world);
        let thread = thread::spawn(move || there.write_and_release(0, lease));
        let mut request = Arc::clone(&world.semaphore).acquire_many_owned(1);
        if poll(&mut request) || poll(&mut request) {
            world.sees(0);
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_release_to_one_that_joins_with_what_was_free() {
    explore(2, || {
        let world = World::new(2);
        let (first, second) = (world.lease(1).unwrap(), world.lease(1).unwrap());
        let there = Arc::clone(&world);
        let elsewhere = Arc::clone(&world);
        let one = thread::spawn(move || there.write_and_release(0, first));
        let other = thread::spawn(move || elsewhere.write_and_release(1, second));
        let mut request = Arc::clone(&world.semaphore).acquire_many_owned(2);
        if poll(&mut request) || poll(&mut request) {
            world.sees(0);
            world.sees(1);
        }
        one.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn two_parts_to_a_waiter() {
    explore(2, || {
        let world = World::new(2);
        let (first, second) = (world.lease(1).unwrap(), world.lease(1).unwrap());
        let mut waiter = world.waiter(2);
        let (there, elsewhere) = (Arc::clone(&world), Arc::clone(&world));
        let one = thread::spawn(move || there.write_and_release(0, first));
        let other = thread::spawn(move || elsewhere.write_and_release(1, second));
        if poll(&mut waiter) {
            world.sees(0);
            world.sees(1);
        }
        one.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_part_that_a_canceller_passes_on() {
    explore(2, || {
        let world = World::new(2);
        let (first, _second) = (world.lease(1).unwrap(), world.lease(1).unwrap());
        let leaver = world.waiter(2);
        let mut waiter = world.waiter(1);
        let there = Arc::clone(&world);
        let one = thread::spawn(move || there.write_and_release(0, first));
        let other = thread::spawn(move || drop(leaver));
        if poll(&mut waiter) {
            world.sees(0);
        }
        one.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_queue_that_empties_to_a_fast_acquire() {
    explore(2, || {
        let world = World::new(1);
        let lease = world.lease(1).unwrap();
        let leaver = world.waiter(1);
        let there = Arc::clone(&world);
        let one = thread::spawn(move || there.write_and_release(0, lease));
        let other = thread::spawn(move || drop(leaver));
        if let Some(_lease) = world.lease(1) {
            world.sees(0);
        }
        one.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn the_last_release_to_drained() {
    explore(2, || {
        let world = World::new(1);
        let lease = world.lease(1).unwrap();
        let there = Arc::clone(&world);
        let elsewhere = Arc::clone(&world);
        let one = thread::spawn(move || there.write_and_release(0, lease));
        let other = thread::spawn(move || elsewhere.semaphore.close());
        {
            let mut drained = std::pin::pin!(world.semaphore.drained());
            if drained.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                world.sees(0);
            }
        }
        one.join().unwrap();
        other.join().unwrap();
    });
}
