//! Real threads: thousands of short-lived semaphores, each used by all threads at once and in
//! every way, closed at a random moment or not at all, and counted exactly at its end.
//!
//! What would show a fault:
//!
//! - *Too much granted*: a counter of the test's own, moved after each grant and before each return,
//!   never passes N; and a counter that is only touched under a lease of all N permits, by a load
//!   and a store, misses no increment.
//! - *A permit lost or made*: at the end of each semaphore's life all N are free.
//! - *A wake-up lost*: two thirds of the requests are polled again only when the waker that they
//!   were polled with last has been woken. One that is not woken is never polled, its thread never
//!   ends, and after [`PATIENCE`] without any progress the test fails and shows the semaphore.
//! - *A waker of an earlier poll woken instead*: it belongs to nobody's current poll, which is the same
//!   as a lost wake-up.
//! - *A waiter stranded by close*: the same.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]
#![allow(clippy::cast_precision_loss, reason = "figures to be printed")]

mod common;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use common::{Count, poll, poll_with};
use fastrand::Rng;
use semaphore_core::{AcquireError, AcquireOwned, OwnedLease, Semaphore, TryAcquireError};

/// So long nothing may have happened on any thread before a waiter counts as stranded. A failure
/// detector, and no part of what is tested.
const PATIENCE: Duration = Duration::from_secs(20);

/// Requests that a thread has in the queue at most, in the busiest of rounds: with few cores it is this
/// that makes the queue long.
const IN_FLIGHT: usize = 6;

/// With so many permits nobody has to wait.
const ROOMY: u32 = 1000;

/// Requests that a thread still tries on a closed semaphore: they all end alike.
const AFTER_CLOSE: u32 = 20;

/// Leases that a thread keeps at most.
const IN_HAND: usize = 3;

/// The waker of one poll of one request.
struct Alarm {
    thread: Thread,
    rung: AtomicBool,
}

impl Alarm {
    fn new() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), rung: AtomicBool::new(false) })
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, SeqCst);
        self.thread.unpark();
    }
}

/// A deadline that is over at its n-th poll.
struct Polls(u32);

impl Future for Polls {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

type Request = Pin<Box<dyn Future<Output = Result<OwnedLease, AcquireError>>>>;

/// A request in the queue.
struct Flight {
    request: Request,
    alarm: Option<Arc<Alarm>>,
    /// Polled when its alarm rings and at no other time, and never given up.
    patient: bool,
}

#[derive(Default, Debug, Clone, Copy)]
struct Totals {
    requests: u64,
    calls: u64,
    granted: u64,
    tried: u64,
    cancelled: u64,
    timed_out: u64,
    closed: u64,
    refused: u64,
    exclusive: u64,
    semaphores: u64,
    closes: u64,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        let Self {
            requests,
            calls,
            granted,
            tried,
            cancelled,
            timed_out,
            closed,
            refused,
            exclusive,
            semaphores,
            closes,
        } = other;
        self.requests += requests;
        self.calls += calls;
        self.granted += granted;
        self.tried += tried;
        self.cancelled += cancelled;
        self.timed_out += timed_out;
        self.closed += closed;
        self.refused += refused;
        self.exclusive += exclusive;
        self.semaphores += semaphores;
        self.closes += closes;
    }
}

/// One semaphore's life.
struct Round {
    semaphore: Arc<Semaphore>,
    permits: u32,
    /// Permits in leases, by the test's own count.
    held: AtomicU64,
    /// Moved under a lease of all permits only, and then without a read-modify-write.
    exclusive: AtomicU64,
    /// Requests that a thread has in the queue at most.
    in_flight: usize,
    /// So many in 16 steps start a request.
    eager: u32,
    /// The request at which somebody closes; never if it does not come to that.
    close_at: usize,
    requests: AtomicUsize,
    progress: AtomicU64,
    failed: AtomicBool,
}

struct Worker<'a> {
    round: &'a Round,
    rng: Rng,
    flights: Vec<Flight>,
    leases: VecDeque<OwnedLease>,
    after_close: u32,
    totals: Totals,
}

impl Worker<'_> {
    fn run(mut self, requests: u64) -> Totals {
        while self.totals.requests < requests
            && self.after_close < AFTER_CLOSE
            && !self.round.failed.load(Relaxed)
        {
            if self.rng.u32(..16) < self.round.eager {
                if self.rng.u32(..8) == 0 {
                    self.try_acquire();
                } else if self.flights.len() < self.round.in_flight {
                    self.start();
                } else if self.rng.bool() {
                    self.sleep();
                }
            }
            match self.rng.u32(..16) {
                0..6 => {
                    self.answer_alarms();
                }
                6..9 => self.meddle(),
                9..14 => self.give_back(),
                14 => self.play_with_leases(),
                _ => thread::yield_now(),
            }
        }
        self.finish();
        self.totals
    }

    fn weight(&mut self) -> u32 {
        // Enough for all, so that nearly nobody waits and the fast paths race each other.
        if self.round.permits >= ROOMY {
            return self.rng.u32(1..=2);
        }
        // All of N often enough, for the exclusive counter; and small ones, so that many fit.
        match self.rng.u32(..8) {
            0 => self.round.permits,
            1..4 => self.rng.u32(1..=self.round.permits),
            _ => 1,
        }
    }

    fn asked(&mut self) {
        self.totals.requests += 1;
        self.after_close += u32::from(self.round.semaphore.is_closed());
        if self.round.requests.fetch_add(1, Relaxed) == self.round.close_at {
            self.round.semaphore.close();
            self.totals.closes += 1;
            assert!(self.round.semaphore.is_closed());
        }
    }

    fn start(&mut self) {
        self.asked();
        let n = self.weight();
        let mut request: AcquireOwned = self.round.semaphore.clone().acquire_many_owned(n);
        let enqueued = self.rng.bool();
        if enqueued {
            request = request.enqueue();
            self.totals.calls += 1;
        }
        // Dropped here at once, given a deadline, or left to `meddle`: a third is given up in the end.
        let kind = self.rng.u32(..24);
        if kind < 4 {
            self.totals.cancelled += 1;
            self.totals.calls += 1;
            return drop(request);
        }
        let request: Request = if kind < 8 {
            Box::pin(request.with_deadline(Polls(self.rng.u32(..4))))
        } else {
            Box::pin(request)
        };
        let mut flight = Flight { request, alarm: None, patient: kind >= 13 };
        if !self.poll(&mut flight) {
            self.flights.push(flight);
        }
    }

    /// Polls with a new waker, so that all earlier ones are worth nothing. True if it is over.
    fn poll(&mut self, flight: &mut Flight) -> bool {
        self.totals.calls += 1;
        let alarm = Alarm::new();
        let polled = poll_with(&mut flight.request, &Waker::from(alarm.clone()));
        flight.alarm = Some(alarm);
        self.note(polled)
    }

    /// Polls with the waker of the last poll.
    fn poll_again(&mut self, flight: &mut Flight) -> bool {
        let Some(alarm) = flight.alarm.clone() else { return self.poll(flight) };
        self.totals.calls += 1;
        let polled = poll_with(&mut flight.request, &Waker::from(alarm));
        self.note(polled)
    }

    fn note(&mut self, polled: Poll<Result<OwnedLease, AcquireError>>) -> bool {
        match polled {
            Poll::Pending => return false,
            Poll::Ready(Ok(lease)) => {
                self.totals.granted += 1;
                self.took(lease);
            }
            Poll::Ready(Err(AcquireError::Closed)) => {
                assert!(self.round.semaphore.is_closed());
                self.totals.closed += 1;
            }
            Poll::Ready(Err(AcquireError::QueueFull)) => self.totals.refused += 1,
            Poll::Ready(Err(AcquireError::TimedOut)) => self.totals.timed_out += 1,
            Poll::Ready(Err(error)) => panic!("{error}"),
        }
        self.round.progress.fetch_add(1, Relaxed);
        true
    }

    fn took(&mut self, lease: OwnedLease) {
        let round = self.round;
        let n = lease.num_permits() as u64;
        let held = round.held.fetch_add(n, SeqCst) + n;
        assert!(held <= u64::from(round.permits), "{held} held of {}", round.permits);
        if n == u64::from(round.permits) {
            self.totals.exclusive += 1;
            let seen = round.exclusive.load(Relaxed);
            if self.rng.u32(..64) == 0 {
                thread::yield_now();
            }
            round.exclusive.store(seen + 1, Relaxed);
        }
        self.leases.push_back(lease);
        if self.leases.len() > IN_HAND {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        if let Some(lease) = self.leases.pop_front() {
            self.totals.calls += 1;
            self.round.held.fetch_sub(lease.num_permits() as u64, SeqCst);
            drop(lease);
            self.round.progress.fetch_add(1, Relaxed);
        }
    }

    fn try_acquire(&mut self) {
        self.asked();
        self.totals.calls += 1;
        let n = self.weight();
        match self.round.semaphore.clone().try_acquire_many_owned(n) {
            Ok(lease) => {
                self.totals.tried += 1;
                self.took(lease);
            }
            Err(TryAcquireError::NoPermits) => {}
            Err(TryAcquireError::Closed) => assert!(self.round.semaphore.is_closed()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Polls those whose alarm has rung. True if there was one.
    fn answer_alarms(&mut self) -> bool {
        let mut any = false;
        let mut i = 0;
        while i < self.flights.len() {
            let rung = self.flights[i].alarm.as_ref().is_some_and(|a| a.rung.load(Acquire));
            if !rung {
                i += 1;
                continue;
            }
            any = true;
            let mut flight = self.flights.swap_remove(i);
            // Woken means settled: there are no spurious wakes.
            assert!(self.poll_again(&mut flight), "woken for nothing");
        }
        any
    }

    /// Does something to an impatient request that nobody asked for.
    fn meddle(&mut self) {
        let impatient: Vec<usize> =
            (0..self.flights.len()).filter(|&i| !self.flights[i].patient).collect();
        let Some(&i) = self.rng.choice(&impatient) else {
            // A patient one may be moved to another waker, if that is then waited for.
            if let Some(i) = self.rng.choice(0..self.flights.len()) {
                let mut flight = self.flights.swap_remove(i);
                if !self.poll(&mut flight) {
                    self.flights.push(flight);
                }
            }
            return;
        };
        let mut flight = self.flights.swap_remove(i);
        match self.rng.u32(..4) {
            0 => {
                if !self.poll(&mut flight) {
                    self.flights.push(flight);
                }
            }
            1 => {
                if !self.poll_again(&mut flight) {
                    self.flights.push(flight);
                }
            }
            _ => {
                self.totals.cancelled += 1;
                self.totals.calls += 1;
                drop(flight);
                self.round.progress.fetch_add(1, Relaxed);
            }
        }
    }

    fn play_with_leases(&mut self) {
        let Some(mut lease) = self.leases.pop_front() else { return };
        let all = lease.num_permits();
        let part = lease.split(self.rng.usize(..=all)).unwrap();
        if let Some(other) = self.leases.front_mut() {
            other.merge(lease).unwrap();
        } else {
            self.leases.push_back(lease);
        }
        self.totals.calls += 2;
        if self.rng.u32(..4) == 0 && !self.round.semaphore.is_closed() {
            // Down and up again: N is never above what it was, and ends as it was.
            let n = part.num_permits();
            self.round.held.fetch_sub(n as u64, SeqCst);
            part.forget();
            self.round.semaphore.add_permits(n).unwrap();
            self.totals.calls += 2;
        } else {
            self.leases.push_back(part);
        }
    }

    /// Waits for all that is in flight, by its alarms alone.
    fn finish(&mut self) {
        let mut i = 0;
        while i < self.flights.len() {
            if self.flights[i].patient {
                i += 1;
            } else {
                self.totals.cancelled += 1;
                drop(self.flights.swap_remove(i));
            }
        }
        while !self.flights.is_empty() && !self.round.failed.load(Relaxed) {
            self.sleep();
        }
        while !self.leases.is_empty() {
            self.give_back();
        }
    }

    /// Sleeps until an alarm rings, or for ever: nobody looks after a request that was not woken.
    fn sleep(&mut self) {
        let mut seen = (self.round.progress.load(Relaxed), Instant::now());
        // Nobody sleeps with something in hand.
        while !self.leases.is_empty() {
            self.give_back();
        }
        while !self.answer_alarms() {
            if self.round.failed.load(Relaxed) || !self.flights.iter().any(|f| f.alarm.is_some()) {
                return;
            }
            thread::park_timeout(PATIENCE / 10);
            let now = self.round.progress.load(Relaxed);
            if now != seen.0 {
                seen = (now, Instant::now());
            } else if seen.1.elapsed() > PATIENCE {
                self.round.failed.store(true, Relaxed);
                let flights = self.flights.len();
                panic!(
                    "{flights} requests were never woken: {:?}, {:?}, held by count: {}",
                    self.round.semaphore,
                    self.round.semaphore.snapshot(),
                    self.round.held.load(SeqCst),
                );
            }
        }
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        // Whoever panics ends the others.
        if thread::panicking() {
            self.round.failed.store(true, Relaxed);
        }
    }
}

/// One semaphore, from its making to its end.
fn round(rng: &mut Rng, threads: usize, requests: u64) -> Totals {
    let permits = *rng.choice(&[1, 1, 2, 3, 5, 8, 17, ROOMY as usize, ROOMY as usize]).unwrap();
    let mut builder = Semaphore::builder().permits(permits);
    if rng.u32(..3) == 0 {
        builder = builder.max_waiters(rng.usize(..threads * IN_FLIGHT / 2));
    }
    let total = requests as usize * threads;
    let round = Round {
        semaphore: Arc::new(builder.build().unwrap()),
        permits: permits as u32,
        held: AtomicU64::new(0),
        exclusive: AtomicU64::new(0),
        in_flight: rng.usize(1..=IN_FLIGHT),
        eager: rng.u32(2..=14),
        // Half of them early on, a quarter late, a quarter never.
        close_at: match rng.u32(..4) {
            0 => usize::MAX,
            1 => rng.usize(total / 2..total),
            _ => rng.usize(..=total / 8),
        },
        requests: AtomicUsize::new(0),
        progress: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    };
    let (drained_woken, drained_waker) = Count::waker();
    let mut drained = round.semaphore.drained();
    assert!(poll_with(&mut drained, &drained_waker).is_pending());

    let mut totals = Totals::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (rng, round) = (rng.fork(), &round);
                scope.spawn(move || {
                    let worker = Worker {
                        round,
                        rng,
                        flights: Vec::new(),
                        leases: VecDeque::new(),
                        after_close: 0,
                        totals: Totals::default(),
                    };
                    worker.run(requests)
                })
            })
            .collect();
        for worker in workers {
            totals.add(&worker.join().unwrap());
        }
    });

    let semaphore = &round.semaphore;
    assert_eq!(round.held.load(SeqCst), 0);
    assert_eq!(semaphore.capacity(), permits);
    assert_eq!(semaphore.available_permits(), permits, "{semaphore:?}");
    assert_eq!(semaphore.waiters(), 0, "{semaphore:?}");
    assert_eq!(round.exclusive.load(SeqCst), totals.exclusive, "under all permits at once");
    assert_eq!(drained_woken.wakes(), usize::from(semaphore.is_closed()));
    assert_eq!(poll(&mut drained).is_ready(), semaphore.is_closed());
    drop(drained);
    assert_eq!(Arc::strong_count(semaphore), 1, "all futures are gone");
    totals.semaphores = 1;
    totals
}

fn stress(threads: usize, requests: u64) {
    let seed = std::env::var("STRESS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    println!("seed {seed} (STRESS_SEED changes it), {threads} threads");
    let mut rng = Rng::with_seed(seed);
    let begun = Instant::now();
    let mut totals = Totals::default();
    while totals.requests < requests {
        // Short lives, for many closes, and a few long ones.
        let each = if rng.u32(..10) == 0 { 20_000 } else { rng.u64(50..3_000) };
        totals.add(&round(&mut rng, threads, each.min(requests)));
    }
    let took = begun.elapsed().as_secs_f64();
    println!("{totals:#?}");
    println!(
        "{:.1} s; {:.0} requests/s, {:.0} calls/s; every count exact",
        took,
        totals.requests as f64 / took,
        totals.calls as f64 / took
    );
    let given_up = totals.cancelled + totals.timed_out;
    println!(
        "given up: {:.0} % of the requests that could wait and were not closed",
        given_up as f64 / (given_up + totals.granted) as f64 * 100.0
    );
    assert!(totals.granted > 0 && totals.tried > 0 && totals.exclusive > 0);
    assert!(totals.cancelled > 0 && totals.timed_out > 0 && totals.refused > 0);
    assert!(totals.closed > 0 && totals.closes > 0);
}

#[test]
fn eight_threads_in_every_way_keep_every_count_exact() {
    stress(8, 200_000);
}

#[test]
#[ignore = "a minute or two: `just stress`"]
fn ten_million_operations_keep_every_count_exact() {
    stress(12, 10_000_000);
}
