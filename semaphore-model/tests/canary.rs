//! The gap in loom 0.7.3, as a canary: on the day that loom closes it this fails, and half of what is done here
//! because of it can go.
//!
//! loom keeps one last access per atomic (its issues #166 and #392, open). A load that is followed by a
//! compare-exchange of the same thread hides the load: the order in which another thread's write comes
//! between the two is not explored, even without a bound.

#![cfg(feature = "loom")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

/// `A: r = x.load` against `B: v = x.load; x.compare_exchange(v, 1)`: every r that A was seen to read, with A
/// on the main thread or B, and how many executions there were.
fn explored(strong: bool, a_is_main: bool) -> (BTreeSet<u64>, usize) {
    let read = move |x: &AtomicU64| {
        if strong { x.fetch_add(0, Ordering::AcqRel) } else { x.load(Ordering::Acquire) }
    };
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let executions = Arc::new(Mutex::new(0));
    let (all, count) = (Arc::clone(&seen), Arc::clone(&executions));
    loom::model(move || {
        *count.lock().unwrap() += 1;
        let x = Arc::new(AtomicU64::new(0));
        let b = {
            let x = Arc::clone(&x);
            move || {
                let v = read(&x);
                let _ = x.compare_exchange(v, 1, Ordering::AcqRel, Ordering::Acquire);
            }
        };
        let a = {
            let (x, all) = (Arc::clone(&x), Arc::clone(&all));
            move || {
                all.lock().unwrap().insert(read(&x));
            }
        };
        if a_is_main {
            let b = thread::spawn(b);
            a();
            b.join().unwrap();
        } else {
            let a = thread::spawn(a);
            b();
            a.join().unwrap();
        }
    });
    let seen = seen.lock().unwrap().clone();
    let executions = *executions.lock().unwrap();
    (seen, executions)
}

/// What is right, by hand: A may run before B's exchange or after it.
const BOTH: [u64; 2] = [0, 1];

#[test]
fn loom_misses_an_interleaving_of_a_load_and_a_compare_exchange() {
    let [one, other] = [true, false].map(|a_is_main| explored(false, a_is_main));
    println!("loads: {one:?} with A first, {other:?} with B first");
    let missed = [&one, &other].iter().any(|(seen, _)| *seen != BTreeSet::from(BOTH));
    assert!(
        missed,
        "loom explores a load against a load and compare-exchange in full: the canary has died"
    );
}

#[test]
fn as_read_modify_writes_it_misses_none() {
    for a_is_main in [true, false] {
        let (seen, executions) = explored(true, a_is_main);
        println!("read-modify-writes: {seen:?} in {executions} executions");
        assert_eq!(seen, BTreeSet::from(BOTH));
    }
}
