//! Row C1, and scaling: threads that never block.

use std::sync::Barrier;
use std::task::Context;
use std::time::Instant;

use super::uncontended::acquire_once;
use crate::contender::Contender;
use crate::measure::Run;
use crate::places::waker;

/// Threads that take a permit and give it back, with a permit for each of them. Nanoseconds from the
/// first start to the last end, for each pair of operations of one thread.
#[must_use]
pub fn never_blocks<C: Contender>(threads: usize) -> Run {
    let semaphore = C::new(threads);
    Box::new(move |operations| {
        let start = Barrier::new(threads);
        let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
            let work = || {
                let waker = waker();
                let mut cx = Context::from_waker(&waker);
                start.wait();
                let begun = Instant::now();
                (0..operations).for_each(|_| acquire_once(&semaphore, 1, &mut cx));
                (begun, Instant::now())
            };
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        assert_eq!(semaphore.available(), threads);
        let begun = spans.iter().map(|span| span.0).min().expect("a thread");
        let ended = spans.iter().map(|span| span.1).max().expect("a thread");
        vec![(ended - begun).as_nanos() as f64 / operations as f64]
    })
}
