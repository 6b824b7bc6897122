//! Foreign code (SPEC.md 11): wakers that call back into the semaphore, that panic, that are many, and
//! that are forgotten; in each place where one is cloned, woken or dropped.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use common::foreign::{Event, Foreign};
use common::{Count, Order, Timer, at_rest, poll, poll_with, refused, served, waits};
use semaphore_core::{AcquireError, AcquireOwned, Builder, OwnedLease, Semaphore};

type Request = Pin<Box<dyn Future<Output = Result<OwnedLease, AcquireError>> + Send>>;

/// Where a waker's code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    WokenByRelease,
    WokenBySecondOfRelease,
    WokenByCancelOfPartialHead,
    WokenByTimeOutOfPartialHead,
    WokenByDropOfGranted,
    WokenByClose,
    WokenByAddPermits,
    ClonedAtFirstPoll,
    ClonedAtReplacement,
    ClonedAtPollAfterEnqueue,
    DroppedAtReplacement,
    DroppedAtCancel,
    DroppedAtTimeOut,
}

impl Place {
    const ALL: [Self; 13] = [
        Self::WokenByRelease,
        Self::WokenBySecondOfRelease,
        Self::WokenByCancelOfPartialHead,
        Self::WokenByTimeOutOfPartialHead,
        Self::WokenByDropOfGranted,
        Self::WokenByClose,
        Self::WokenByAddPermits,
        Self::ClonedAtFirstPoll,
        Self::ClonedAtReplacement,
        Self::ClonedAtPollAfterEnqueue,
        Self::DroppedAtReplacement,
        Self::DroppedAtCancel,
        Self::DroppedAtTimeOut,
    ];

    fn event(self) -> Event {
        match self {
            Self::ClonedAtFirstPoll
            | Self::ClonedAtReplacement
            | Self::ClonedAtPollAfterEnqueue => Event::Clone,
            Self::DroppedAtReplacement | Self::DroppedAtCancel | Self::DroppedAtTimeOut => {
                Event::Drop
            }
            _ => Event::Wake,
        }
    }
}

/// What a waker does to the semaphore when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Release,
    ReleaseAll,
    TryAcquire,
    AcquireAndKeep,
    AcquireAndDrop,
    CancelAnother,
    RepollAnother,
    TimeOutAnother,
    Close,
    AddPermits,
    Forget,
    Drained,
    Look,
    Panic,
    ReleaseAndPanic,
    CloseAndPanic,
}

impl Act {
    const ALL: [Self; 16] = [
        Self::Release,
        Self::ReleaseAll,
        Self::TryAcquire,
        Self::AcquireAndKeep,
        Self::AcquireAndDrop,
        Self::CancelAnother,
        Self::RepollAnother,
        Self::TimeOutAnother,
        Self::Close,
        Self::AddPermits,
        Self::Forget,
        Self::Drained,
        Self::Look,
        Self::Panic,
        Self::ReleaseAndPanic,
        Self::CloseAndPanic,
    ];

    fn panics(self) -> bool {
        matches!(self, Self::Panic | Self::ReleaseAndPanic | Self::CloseAndPanic)
    }
}

/// What a waker has at hand.
struct Tools {
    semaphore: Arc<Semaphore>,
    lease: Mutex<Option<OwnedLease>>,
    other: Mutex<Option<AcquireOwned>>,
    kept: Mutex<Vec<AcquireOwned>>,
    ran: AtomicUsize,
}

impl Tools {
    fn act(&self, act: Act) {
        self.ran.fetch_add(1, SeqCst);
        let lease = || self.lease.lock().unwrap().take();
        let other = || self.other.lock().unwrap().take();
        match act {
            Act::Release | Act::ReleaseAndPanic => {
                // Outside of the mutex of the test: this may wake.
                let part = self.lease.lock().unwrap().as_mut().and_then(|lease| lease.split(1));
                drop(part);
            }
            Act::ReleaseAll => drop(lease()),
            Act::TryAcquire => drop(self.semaphore.try_acquire()),
            Act::AcquireAndKeep => {
                let mut request = self.semaphore.clone().acquire_many_owned(2);
                if poll(&mut request).is_pending() {
                    self.kept.lock().unwrap().push(request);
                }
            }
            Act::AcquireAndDrop => {
                let mut request = self.semaphore.acquire();
                let _ = poll(&mut request);
                drop(self.semaphore.acquire().enqueue());
            }
            Act::CancelAnother => drop(other()),
            Act::RepollAnother => {
                if let Some(mut request) = other()
                    && poll_with(&mut request, &Count::waker().1).is_pending()
                {
                    *self.other.lock().unwrap() = Some(request);
                }
            }
            Act::TimeOutAnother => {
                if let Some(request) = other() {
                    let mut timed = request.with_deadline(std::future::ready(()));
                    assert!(poll(&mut timed).is_ready());
                }
            }
            Act::Close | Act::CloseAndPanic => self.semaphore.close(),
            Act::AddPermits => self.semaphore.add_permits(1).unwrap(),
            Act::Forget => {
                if let Some(lease) = lease() {
                    lease.forget();
                }
            }
            Act::Drained => {
                let mut drained = self.semaphore.drained();
                let _ = poll(&mut drained);
            }
            Act::Look => {
                let _ = format!("{:?} {:?}", self.semaphore, self.semaphore.snapshot());
            }
            Act::Panic => {}
        }
        assert!(!act.panics(), "a bad waker");
    }
}

/// Runs a waker that does `act` in `place`, between two ordinary waiters and one that the waker may
/// play with, and sees that nothing is lost.
#[expect(clippy::too_many_lines, reason = "one scenario, told from its start to its end")]
fn run(place: Place, act: Act, max_waiters: Option<usize>) {
    let what = format!("{act:?} in {place:?}");
    let builder = Semaphore::builder().permits(6).ceiling(100);
    let builder = max_waiters.into_iter().fold(builder, Builder::max_waiters);
    let semaphore = Arc::new(builder.build().unwrap());
    let mut held = semaphore.clone().try_acquire_many_owned(4).unwrap();
    let tools = Arc::new(Tools {
        semaphore: semaphore.clone(),
        lease: Mutex::new(Some(semaphore.clone().try_acquire_many_owned(2).unwrap())),
        other: Mutex::new(None),
        kept: Mutex::default(),
        ran: AtomicUsize::new(0),
    });
    let foreign = Foreign::new();
    let (before, before_waker) = Count::waker();
    let (after, after_waker) = Count::waker();
    let timer = Timer::default();

    // Whoever stands in front of the subject.
    let mut front: Option<Request> = match place {
        Place::WokenByCancelOfPartialHead => {
            Some(Box::pin(semaphore.clone().acquire_many_owned(6)))
        }
        Place::WokenByTimeOutOfPartialHead => {
            Some(Box::pin(semaphore.clone().acquire_many_owned(6).with_deadline(timer.clone())))
        }
        Place::WokenBySecondOfRelease | Place::WokenByDropOfGranted => {
            Some(Box::pin(semaphore.clone().acquire_owned()))
        }
        _ => None,
    };
    if let Some(front) = &mut front {
        assert!(poll_with(front, &before_waker).is_pending());
    }

    // The subject.
    let request = semaphore.clone().acquire_owned();
    let mut subject: Option<Request> = Some(match place {
        Place::DroppedAtTimeOut => Box::pin(request.with_deadline(timer.clone())),
        Place::ClonedAtPollAfterEnqueue => Box::pin(request.enqueue()),
        _ => Box::pin(request),
    });
    let first_waker = match place {
        Place::ClonedAtFirstPoll | Place::ClonedAtPollAfterEnqueue => None,
        Place::ClonedAtReplacement => Some(before_waker.clone()),
        _ => Some(foreign.waker()),
    };
    if let (Some(subject), Some(waker)) = (&mut subject, &first_waker) {
        assert!(poll_with(subject, waker).is_pending());
    }

    // Whoever stands behind it.
    let mut behind = semaphore.clone().acquire_owned();
    assert!(poll_with(&mut behind, &after_waker).is_pending());
    let mut other = semaphore.clone().acquire_many_owned(2);
    waits(&mut other);
    *tools.other.lock().unwrap() = Some(other);

    match place {
        Place::WokenByCancelOfPartialHead | Place::WokenByTimeOutOfPartialHead => {
            drop(held.split(1));
        }
        Place::WokenByDropOfGranted => drop(held.split(1)),
        _ => {}
    }

    foreign.once(place.event(), {
        let tools = tools.clone();
        move || tools.act(act)
    });
    let mut result: Option<Poll<Result<OwnedLease, AcquireError>>> = None;
    let panicked = catch_unwind(AssertUnwindSafe(|| match place {
        Place::WokenByRelease => drop(held.split(1)),
        Place::WokenBySecondOfRelease => drop(held.split(3)),
        Place::WokenByCancelOfPartialHead | Place::WokenByDropOfGranted => drop(front.take()),
        Place::WokenByTimeOutOfPartialHead => {
            timer.fire();
            assert!(poll(front.as_mut().unwrap()).is_ready());
        }
        Place::WokenByClose => semaphore.close(),
        Place::WokenByAddPermits => semaphore.add_permits(1).unwrap(),
        Place::ClonedAtFirstPoll | Place::ClonedAtReplacement | Place::ClonedAtPollAfterEnqueue => {
            result = Some(poll_with(subject.as_mut().unwrap(), &foreign.waker()));
        }
        Place::DroppedAtReplacement => {
            result = Some(poll_with(subject.as_mut().unwrap(), &before_waker));
        }
        Place::DroppedAtCancel => drop(subject.take()),
        Place::DroppedAtTimeOut => {
            timer.fire();
            result = Some(poll(subject.as_mut().unwrap()));
        }
    }))
    .is_err();
    assert_eq!(tools.ran.load(SeqCst), 1, "{what}: it ran");
    assert_eq!(panicked, act.panics(), "{what}: the panic is passed on");
    foreign.calm();
    drop(first_waker);

    // All that is held comes back, and all that waits is served or told of the close. (The head that
    // wants all is served by what the others give back, and so looked at first.)
    drop((held, tools.lease.lock().unwrap().take()));
    // A poll that panicked in the drop of its waker is over; one that panicked in the clone has not
    // joined, or has kept its place.
    let over =
        matches!(result, Some(Poll::Ready(_))) || (place == Place::DroppedAtTimeOut && panicked);
    drop(result);
    drop(tools.other.lock().unwrap().take());
    tools.kept.lock().unwrap().clear();
    if let Some(mut front) = front.filter(|_| place != Place::WokenByTimeOutOfPartialHead) {
        assert!(poll(&mut front).is_ready(), "{what}: the one in front is served");
    }
    if let Some(mut subject) = subject.filter(|_| !over) {
        assert!(poll(&mut subject).is_ready(), "{what}: the one with the foreign waker is served");
    }
    assert!(after.wakes() == 1, "{what}: the one behind is woken once");
    let polled = poll(&mut behind);
    assert!(polled.is_ready(), "{what}: the one behind is served");
    drop((polled, behind));
    assert!(before.wakes() <= 1);
    assert_eq!(semaphore.waiters(), 0, "{what}: {semaphore:?}");
    assert_eq!(semaphore.available_permits(), semaphore.capacity(), "{what}: {semaphore:?}");
    assert_eq!(foreign.live(), 0, "{what}: wakers leaked or dropped twice");
}

#[test]
fn wakers_that_reenter_every_operation_in_every_place_lose_nothing() {
    for place in Place::ALL {
        for act in Act::ALL.into_iter().filter(|act| !act.panics()) {
            for max_waiters in [None, Some(8)] {
                run(place, act, max_waiters);
            }
        }
    }
}

#[test]
fn wakers_that_panic_in_every_place_lose_nothing() {
    for place in Place::ALL {
        for act in Act::ALL.into_iter().filter(|act| act.panics()) {
            for max_waiters in [None, Some(8)] {
                run(place, act, max_waiters);
            }
        }
    }
}

#[test]
fn a_waker_whose_clone_grants_it_and_whose_drop_panics_keeps_the_permit() {
    // The clone gives a permit back, so that the request takes it without a wait, and the clone
    // is dropped.
    let semaphore = Arc::new(Semaphore::new(1));
    let held = semaphore.clone().try_acquire_owned().unwrap();
    let foreign = Foreign::new();
    foreign.once(Event::Clone, move || drop(held));
    foreign.on(Event::Drop, || panic!("a bad waker"));
    let waker = foreign.waker();
    let mut request = semaphore.clone().acquire_owned();
    let polled = catch_unwind(AssertUnwindSafe(|| poll_with(&mut request, &waker)));
    foreign.calm();
    assert_eq!(foreign.count(Event::Drop), 1, "the clone was dropped");
    drop((polled, request, waker));
    assert_eq!(foreign.live(), 0);
    at_rest(&semaphore);
}

#[test]
fn a_waker_whose_clone_settles_a_queued_request_and_whose_drop_panics_keeps_the_permit() {
    for close in [false, true] {
        let semaphore = Arc::new(Semaphore::new(1));
        let held = semaphore.clone().try_acquire_owned().unwrap();
        let mut request = semaphore.clone().acquire_owned();
        waits(&mut request);
        let foreign = Foreign::new();
        let mut held = Some(held);
        let inner = semaphore.clone();
        foreign.once(Event::Clone, move || {
            if close {
                inner.close();
            }
            drop(held.take());
        });
        foreign.on(Event::Drop, || panic!("a bad waker"));
        let waker = foreign.waker();
        let polled = catch_unwind(AssertUnwindSafe(|| poll_with(&mut request, &waker).is_ready()));
        assert!(polled.is_err());
        foreign.calm();
        drop((request, waker));
        assert_eq!(foreign.live(), 0);
        at_rest(&semaphore);
    }
}

#[test]
fn a_waker_whose_clone_fills_the_queue_makes_its_request_fail_with_queue_full() {
    let semaphore = Arc::new(Semaphore::builder().permits(1).max_waiters(1).build().unwrap());
    let held = semaphore.clone().try_acquire_owned().unwrap();
    let foreign = Foreign::new();
    let first = Arc::new(Mutex::new(None));
    foreign.once(Event::Clone, {
        let (semaphore, first) = (semaphore.clone(), first.clone());
        move || *first.lock().unwrap() = Some(semaphore.acquire_owned().enqueue())
    });
    let mut request = semaphore.clone().acquire_owned();
    let polled = poll_with(&mut request, &foreign.waker());
    assert!(matches!(polled, Poll::Ready(Err(AcquireError::QueueFull))));
    assert_eq!((semaphore.waiters(), foreign.live()), (1, 0));
    drop(held);
    let mut first = first.lock().unwrap().take().unwrap();
    drop(served(&mut first));
    at_rest(&semaphore);
}

#[test]
fn wakers_of_drained_may_reenter_and_panic() {
    for panics in [false, true] {
        let semaphore = Arc::new(Semaphore::new(1));
        let lease = semaphore.clone().try_acquire_owned().unwrap();
        let foreign = Foreign::new();
        foreign.on(Event::Wake, {
            let semaphore = Arc::downgrade(&semaphore);
            move || {
                let semaphore = semaphore.upgrade().unwrap();
                semaphore.close();
                assert!(poll(&mut semaphore.drained()).is_ready());
                assert!(!panics, "a bad waker");
            }
        });
        let (count, waker) = Count::waker();
        let mut first = semaphore.drained();
        let mut bad = semaphore.drained();
        let mut last = semaphore.drained();
        assert!(poll_with(&mut first, &waker).is_pending());
        assert!(poll_with(&mut bad, &foreign.waker()).is_pending());
        assert!(poll_with(&mut last, &waker).is_pending());
        semaphore.close();
        let panicked = catch_unwind(AssertUnwindSafe(|| drop(lease))).is_err();
        assert_eq!((panicked, foreign.count(Event::Wake), count.wakes()), (panics, 1, 2));
        for drained in [&mut first, &mut bad, &mut last] {
            assert!(poll(drained).is_ready());
        }
        assert_eq!(foreign.live(), 0);
        at_rest(&semaphore);
    }
}

#[test]
fn one_that_panics_in_a_batch_leaves_the_rest_woken_wherever_it_stands() {
    const LEN: usize = 40;
    for close in [false, true] {
        for bad in 0..LEN {
            let semaphore = Arc::new(Semaphore::new(LEN));
            let held = semaphore.clone().try_acquire_many_owned(LEN as u32).unwrap();
            let foreign = Foreign::new();
            foreign.on(Event::Wake, || panic!("a bad waker"));
            let (count, waker) = Count::waker();
            let bad_waker = foreign.waker();
            let mut requests: Vec<_> =
                (0..LEN).map(|_| semaphore.clone().acquire_owned()).collect();
            for (i, request) in requests.iter_mut().enumerate() {
                let waker = if i == bad { &bad_waker } else { &waker };
                assert!(poll_with(request, waker).is_pending());
            }
            let mut held = Some(held);
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                if close {
                    semaphore.close();
                } else {
                    held = None;
                }
            }));
            assert!(panicked.is_err());
            drop(held);
            assert_eq!(count.wakes(), LEN - 1, "close: {close}, {bad} is bad");
            drop(requests);
            drop(bad_waker);
            assert_eq!(foreign.live(), 0);
            at_rest(&semaphore);
        }
    }
}

// With `std` each of several panics is caught; without, the second ends the process.
#[cfg(feature = "std")]
#[test]
fn all_that_panic_in_a_batch_are_woken_and_the_first_panic_is_passed_on() {
    const LEN: usize = 40;
    let semaphore = Arc::new(Semaphore::new(LEN));
    let held = semaphore.clone().try_acquire_many_owned(LEN as u32).unwrap();
    let mut bad = Vec::new();
    let (count, good) = Count::waker();
    let mut requests: Vec<_> = (0..LEN).map(|_| semaphore.clone().acquire_owned()).collect();
    for (i, request) in requests.iter_mut().enumerate() {
        if i % 2 == 0 {
            assert!(poll_with(request, &good).is_pending());
            continue;
        }
        let foreign = Foreign::new();
        foreign.on(Event::Wake, move || std::panic::panic_any(i));
        assert!(poll_with(request, &foreign.waker()).is_pending());
        bad.push(foreign);
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| drop(held))).unwrap_err();
    assert_eq!(panicked.downcast_ref(), Some(&1_usize));
    assert_eq!(count.wakes(), LEN / 2);
    assert!(bad.iter().all(|bad| bad.count(Event::Wake) == 1 && bad.live() == 0));
    drop(requests);
    at_rest(&semaphore);
}

// A lease dropped by a panic wakes somebody whose waker panics: with `std` that is no double panic.
#[cfg(feature = "std")]
#[test]
fn a_waker_that_panics_while_its_releaser_unwinds_does_not_abort() {
    let semaphore = Arc::new(Semaphore::new(1));
    let held = semaphore.clone().try_acquire_owned().unwrap();
    let foreign = Foreign::new();
    foreign.on(Event::Wake, || panic!("a bad waker"));
    let mut request = semaphore.clone().acquire_owned();
    assert!(poll_with(&mut request, &foreign.waker()).is_pending());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _held = held;
        std::panic::panic_any("the work failed");
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"the work failed"));
    assert_eq!(foreign.count(Event::Wake), 1);
    drop(served(&mut request));
    at_rest(&semaphore);
}

/// Runs the test of that name in a process of its own, with `scenario` in it; it must not die.
#[cfg(feature = "std")]
fn survives(test: &str, scenario: fn()) {
    const INNER: &str = "SEMAPHORE_TEST_INNER";
    if std::env::var_os(INNER).is_some() {
        return scenario();
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(INNER, "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{told}", output.status);
}

#[cfg(feature = "std")]
#[test]
fn a_panicking_drop_of_a_cancelled_waker_after_a_panicking_wake_does_not_abort() {
    survives("a_panicking_drop_of_a_cancelled_waker_after_a_panicking_wake_does_not_abort", || {
        let semaphore = Arc::new(Semaphore::new(2));
        let held = semaphore.clone().try_acquire_owned().unwrap();
        let bad = Foreign::new();
        bad.on(Event::Drop, || panic!("a bad drop"));
        let bad_waker = bad.waker();
        let worse = Foreign::new();
        worse.on(Event::Wake, || panic!("a bad wake"));
        let mut head = semaphore.clone().acquire_many_owned(2);
        assert!(poll_with(&mut head, &bad_waker).is_pending());
        let mut next = semaphore.clone().acquire_owned();
        assert!(poll_with(&mut next, &worse.waker()).is_pending());
        // The partial grant goes to the next, whose waker panics; then the head's waker goes.
        let panicked = catch_unwind(AssertUnwindSafe(|| drop(head)));
        assert!(panicked.is_err());
        bad.calm();
        drop(served(&mut next));
        drop((held, bad_waker));
        assert_eq!((bad.live(), worse.live()), (0, 0));
        at_rest(&semaphore);
    });
}

#[cfg(feature = "std")]
#[test]
fn a_waker_whose_drop_panics_while_its_task_unwinds_does_not_abort() {
    survives("a_waker_whose_drop_panics_while_its_task_unwinds_does_not_abort", || {
        let semaphore = Arc::new(Semaphore::new(1));
        let held = semaphore.clone().try_acquire_owned().unwrap();
        let bad = Foreign::new();
        bad.on(Event::Drop, || panic!("a bad drop"));
        let waker = bad.waker();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut request = semaphore.clone().acquire_owned();
            assert!(poll_with(&mut request, &waker).is_pending());
            panic!("the task failed");
        }));
        assert!(panicked.is_err());
        bad.calm();
        drop((held, waker));
        assert_eq!(bad.live(), 0);
        at_rest(&semaphore);
    });
}

/// Takes its lease when it is woken, and gives it back at once, within the wake.
struct Link {
    request: Mutex<Option<AcquireOwned>>,
    served: Arc<AtomicUsize>,
}

impl std::task::Wake for Link {
    fn wake(self: Arc<Self>) {
        let request = self.request.lock().unwrap().take();
        if let Some(mut request) = request {
            drop(served(&mut request));
            self.served.fetch_add(1, SeqCst);
        }
    }
}

/// A line of such, behind the lease that is returned.
fn chain(semaphore: &Arc<Semaphore>, len: usize, served: &Arc<AtomicUsize>) -> OwnedLease {
    let held = semaphore.clone().try_acquire_owned().unwrap();
    for _ in 0..len {
        let link = Arc::new(Link { request: Mutex::default(), served: served.clone() });
        let mut request = semaphore.clone().acquire_owned();
        assert!(poll_with(&mut request, &Waker::from(link.clone())).is_pending());
        *link.request.lock().unwrap() = Some(request);
    }
    held
}

#[cfg(feature = "std")]
#[test]
fn a_chain_of_a_hundred_thousand_reentrant_releases_does_not_grow_the_stack() {
    const LEN: usize = 100_000;
    const STACK: usize = 256 << 10;
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(|| {
            let semaphore = Arc::new(Semaphore::new(1));
            let served = Arc::new(AtomicUsize::new(0));
            let held = chain(&semaphore, LEN, &served);
            assert_eq!(semaphore.waiters(), LEN);
            drop(held);
            assert_eq!(served.load(SeqCst), LEN);
            at_rest(&semaphore);
        })
        .unwrap()
        .join()
        .unwrap();
}

#[cfg(feature = "std")]
#[test]
fn a_chain_that_goes_to_and_fro_between_two_semaphores_does_not_grow_the_stack() {
    /// Woken by one semaphore, gives back a lease of the other.
    struct Cross(Mutex<Option<OwnedLease>>);

    impl std::task::Wake for Cross {
        fn wake(self: Arc<Self>) {
            let lease = self.0.lock().unwrap().take();
            drop(lease);
        }
    }

    const LEN: usize = 50_000;
    const STACK: usize = 256 << 10;
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(|| {
            let pair = [LEN, LEN].map(|permits| Arc::new(Semaphore::new(permits)));
            let mut held = pair.clone().map(|s| s.try_acquire_many_owned(LEN as u32).unwrap());
            let first = held[0].split(1);
            let mut requests = Vec::new();
            for i in 0..2 * LEN - 1 {
                let lease = held[(i + 1) % 2].split(1);
                let waker = Arc::new(Cross(Mutex::new(lease))).into();
                let mut request = pair[i % 2].clone().acquire_owned();
                assert!(poll_with(&mut request, &waker).is_pending());
                requests.push(request);
            }
            drop(first);
            for request in &mut requests {
                mem::forget(served(request).split(0));
            }
            drop((requests, held));
            for semaphore in &pair {
                at_rest(semaphore);
            }
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn a_short_chain_of_reentrant_releases_is_served_in_full() {
    const LEN: usize = 50;
    let semaphore = Arc::new(Semaphore::new(1));
    let served = Arc::new(AtomicUsize::new(0));
    drop(chain(&semaphore, LEN, &served));
    assert_eq!(served.load(SeqCst), LEN);
    at_rest(&semaphore);
}

#[cfg(feature = "std")]
#[test]
fn a_wake_does_not_run_within_the_wake_of_another_waiter() {
    use std::sync::atomic::AtomicBool;

    let semaphore = Arc::new(Semaphore::new(2));
    let mut held = semaphore.clone().try_acquire_many_owned(2).unwrap();
    let last = held.split(1);
    let inside = Arc::new(AtomicBool::new(false));
    let foreign = Foreign::new();
    let nested = Arc::new(AtomicBool::new(false));
    let second = Foreign::new();
    let mut a = semaphore.clone().acquire_owned();
    let mut b = semaphore.clone().acquire_owned();
    assert!(poll_with(&mut a, &foreign.waker()).is_pending());
    assert!(poll_with(&mut b, &second.waker()).is_pending());
    foreign.once(Event::Wake, {
        let inside = inside.clone();
        move || {
            inside.store(true, SeqCst);
            drop(last);
            inside.store(false, SeqCst);
        }
    });
    second.once(Event::Wake, {
        let nested = nested.clone();
        move || nested.store(inside.load(SeqCst), SeqCst)
    });
    drop(held);
    assert_eq!(second.count(Event::Wake), 1);
    assert!(!nested.load(SeqCst));
    drop((served(&mut a), served(&mut b)));
    at_rest(&semaphore);
}

#[test]
fn batches_of_every_size_are_woken_in_order_by_one_release_and_all_by_one_close() {
    for len in [1, 2, 15, 16, 17, 18, 32, 33, 100, 1000, 5000] {
        // The waker of a future that was polled with two is kept in another way.
        for replaced in [false, true] {
            let semaphore = Arc::new(Semaphore::new(len));
            let log = Arc::new(Mutex::new(Vec::new()));
            let join = || -> Vec<_> {
                (0..len)
                    .map(|i| {
                        let mut request = semaphore.clone().acquire_owned();
                        if replaced && i % 3 != 0 {
                            waits(&mut request);
                        }
                        assert!(poll_with(&mut request, &Order::waker(i, &log)).is_pending());
                        request
                    })
                    .collect()
            };
            let held = semaphore.clone().try_acquire_many_owned(len as u32).unwrap();
            let requests = join();
            drop(held);
            assert_eq!(mem::take(&mut *log.lock().unwrap()), (0..len).collect::<Vec<_>>());
            let leases: Vec<_> = requests.into_iter().map(|mut r| served(&mut r)).collect();
            let requests = join();
            semaphore.close();
            let mut woken = mem::take(&mut *log.lock().unwrap());
            woken.sort_unstable();
            assert_eq!(woken, (0..len).collect::<Vec<_>>());
            for mut request in requests {
                assert_eq!(refused(&mut request), AcquireError::Closed);
            }
            drop(leases);
            at_rest(&semaphore);
        }
    }
}

#[test]
fn one_waker_for_a_thousand_waiters_is_woken_and_dropped_a_thousand_times() {
    const LEN: usize = 1000;
    for close in [false, true] {
        let semaphore = Arc::new(Semaphore::new(LEN));
        let held = semaphore.clone().try_acquire_many_owned(LEN as u32).unwrap();
        let foreign = Foreign::new();
        let waker = foreign.waker();
        let mut requests: Vec<_> = (0..LEN).map(|_| semaphore.clone().acquire_owned()).collect();
        for request in &mut requests {
            assert!(poll_with(request, &waker).is_pending());
        }
        assert_eq!(foreign.live(), 1 + LEN.cast_signed());
        if close {
            semaphore.close();
        }
        drop(held);
        assert_eq!((foreign.count(Event::Wake), foreign.live()), (LEN, 1));
        drop(requests);
        at_rest(&semaphore);
    }
}

/// The state in which a future is forgotten.
#[derive(Clone, Copy, Debug)]
enum Forgotten {
    Waiting,
    WaitingWithAnotherWaker,
    PartlyGranted,
    Granted,
    Closed,
}

#[test]
fn the_waker_of_a_forgotten_future_is_dropped_once_with_the_semaphore_at_the_latest() {
    use Forgotten::{Closed, Granted, PartlyGranted, Waiting, WaitingWithAnotherWaker};
    for state in [Waiting, WaitingWithAnotherWaker, PartlyGranted, Granted, Closed] {
        for panics in [false, true] {
            let foreign = Foreign::new();
            let semaphore = Semaphore::new(2);
            let lease = semaphore.try_acquire_many(2).unwrap();
            let mut request = semaphore.acquire_many(2);
            if matches!(state, WaitingWithAnotherWaker) {
                waits(&mut request);
            }
            assert!(poll_with(&mut request, &foreign.waker()).is_pending());
            mem::forget(request);
            assert_eq!(foreign.live(), 1);
            match state {
                Waiting | WaitingWithAnotherWaker => mem::forget(lease),
                PartlyGranted => {
                    let mut lease = lease;
                    drop(lease.split(1));
                    mem::forget(lease);
                }
                Granted => drop(lease),
                Closed => {
                    semaphore.close();
                    drop(lease);
                    at_rest(&semaphore);
                }
            }
            let settled = matches!(state, Granted | Closed);
            assert_eq!(foreign.live(), isize::from(!settled), "{state:?}");
            if panics {
                // A panic in the drop of a semaphore would only hide the others.
                foreign.on(Event::Drop, || panic!("a bad waker"));
            }
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(semaphore)));
            // Without `std` there is no way to catch it.
            assert!(dropped.is_ok() || (panics && cfg!(not(feature = "std"))), "{state:?}");
            assert_eq!(foreign.live(), 0, "{state:?}");
            assert_eq!(foreign.count(Event::Wake), usize::from(settled));
        }
    }
}

#[test]
fn wakers_of_a_thousand_forgotten_futures_are_dropped_once_and_may_use_another_semaphore() {
    const LEN: usize = 1000;
    let other = Arc::new(Semaphore::new(1));
    let foreign = Foreign::new();
    foreign.on(Event::Drop, {
        let other = other.clone();
        move || drop(other.try_acquire().unwrap())
    });
    let semaphore = Semaphore::growable(0);
    let waker = foreign.waker();
    for i in 0..LEN {
        let mut request = semaphore.acquire();
        assert!(poll_with(&mut request, &waker).is_pending());
        if i % 2 == 0 {
            mem::forget(request);
        }
    }
    let mut drained = semaphore.drained();
    assert!(poll_with(&mut drained, &waker).is_pending());
    mem::forget(drained);
    assert_eq!(semaphore.waiters(), LEN / 2);
    assert_eq!(foreign.live(), 1 + LEN.cast_signed() / 2 + 1);
    drop(semaphore);
    assert_eq!(foreign.live(), 1);
    drop(waker);
    at_rest(&other);
}

#[test]
fn a_pending_poll_does_not_wake_itself() {
    let semaphore = Semaphore::new(1);
    let _held = semaphore.try_acquire().unwrap();
    let foreign = Foreign::new();
    let mut request = semaphore.acquire();
    let mut drained = semaphore.drained();
    let mut timed = semaphore.acquire().with_deadline(Timer::default());
    for _ in 0..10 {
        assert!(poll_with(&mut request, &foreign.waker()).is_pending());
        assert!(poll_with(&mut drained, &foreign.waker()).is_pending());
        assert!(poll_with(&mut timed, &foreign.waker()).is_pending());
    }
    assert_eq!(foreign.count(Event::Wake), 0);
}

#[test]
fn polls_with_the_same_waker_clone_it_once() {
    let semaphore = Semaphore::new(1);
    let _held = semaphore.try_acquire().unwrap();
    let foreign = Foreign::new();
    let waker = foreign.waker();
    let mut request = semaphore.acquire();
    for _ in 0..10 {
        assert!(poll_with(&mut request, &waker).is_pending());
    }
    assert_eq!(foreign.count(Event::Clone), 1);
}
