//! Rows A, B and the first half of G: one thread, and permits enough.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll};

use super::leaked;
use crate::contender::{Blocking, Contender, Owned};
use crate::measure::{Run, Watch};
use crate::places::waker;

/// Permits of the semaphore in rows of single permits.
pub const PERMITS: usize = 4;

/// Times `operation`, that many times.
fn timed(operations: u64, mut operation: impl FnMut()) -> Vec<f64> {
    let mut watch = Watch::new();
    watch.time(operations, || (0..operations).for_each(|_| operation()));
    vec![watch.nanoseconds()]
}

/// Takes permits without waiting, and gives them back.
#[inline(always)]
pub fn try_acquire_once<C: Contender>(semaphore: &C, n: u32) {
    let Some(lease) = black_box(semaphore).try_acquire(n) else { panic!("the permits are there") };
    black_box(&lease);
}

/// Polls a request once, which is ready, and gives the permits back.
#[inline(always)]
pub fn acquire_once<C: Contender>(semaphore: &C, n: u32, cx: &mut Context<'_>) {
    let Poll::Ready(lease) = pin!(black_box(semaphore).acquire(n)).poll(cx) else {
        panic!("the permits are there")
    };
    black_box(&lease);
}

/// The same, with a lease that keeps the semaphore alive.
#[inline(always)]
pub fn acquire_owned_once<C: Owned>(semaphore: &C, cx: &mut Context<'_>) {
    let Poll::Ready(lease) = pin!(black_box(semaphore).clone().acquire_owned()).poll(cx) else {
        panic!("the permits are there")
    };
    black_box(&lease);
}

/// A: `try_acquire`, and drop.
#[must_use]
pub fn try_acquire<C: Contender>() -> Run {
    let semaphore = C::new(PERMITS);
    Box::new(move |operations| {
        let figures = timed(operations, || try_acquire_once(&semaphore, 1));
        assert_eq!(semaphore.available(), PERMITS);
        figures
    })
}

/// B1, and G with `n` permits: `acquire` polled once, ready, and drop.
#[must_use]
pub fn acquire<C: Contender>(n: u32) -> Run {
    let permits = PERMITS.max(n as usize);
    let semaphore = C::new(permits);
    Box::new(move |operations| {
        let waker = waker();
        let mut cx = Context::from_waker(&waker);
        let figures = timed(operations, || acquire_once(&semaphore, n, &mut cx));
        assert_eq!(semaphore.available(), permits);
        figures
    })
}

/// B2: the same, owned.
#[must_use]
pub fn acquire_owned<C: Owned>() -> Run {
    let semaphore = C::new(PERMITS);
    Box::new(move |operations| {
        let waker = waker();
        let mut cx = Context::from_waker(&waker);
        let figures = timed(operations, || acquire_owned_once(&semaphore, &mut cx));
        assert_eq!(semaphore.available(), PERMITS);
        figures
    })
}

/// B3: blocking.
#[must_use]
pub fn acquire_blocking<C: Blocking>() -> Run {
    let semaphore = leaked::<C>(PERMITS);
    Box::new(move |operations| {
        let figures =
            timed(operations, || drop(black_box(black_box(semaphore).acquire_blocking())));
        assert_eq!(semaphore.available(), PERMITS);
        figures
    })
}
