//! Scenarios: operations per thread, run on the real core under the audit.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use semaphore_core::{
    AcquireError, AcquireOwned, OwnedLease, Semaphore, TryAcquireError, WithDeadline, model,
};

use crate::audit::{Audit, Call};
use crate::linearize::{Before, Part};
pub use crate::op::{Op, Said};
use crate::rt;
use crate::spec::Spec;
use crate::trace::{Moment, Where};

/// The most permits that a scenario may come to.
const CEILING: usize = 1 << 20;

/// A scenario: what is set up first, and what then happens at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name, a sentence.
    pub name: &'static str,
    /// Permits to start with.
    pub permits: usize,
    /// The bound of the queue.
    pub max_waiters: Option<usize>,
    /// Done before the race, by one thread.
    pub setup: &'static [Op],
    /// Done at the same time, each by its own thread.
    pub threads: &'static [&'static [Op]],
    /// The bound on preemptions in loom's weak mode; `None`: no bound.
    pub loom_weak: Option<usize>,
    /// The bound on preemptions in loom's strong mode.
    pub loom_strong: Option<usize>,
    /// The bound on preemptions in shuttle's depth-first search.
    pub depth_first: Option<usize>,
}

/// A waker that counts. Ghost state: no checker schedules it.
#[derive(Debug, Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Bell {
    fn rung(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

struct Request {
    future: WithDeadline<AcquireOwned, Deadline>,
    /// The waker of the last poll that was pending, and how often it had been rung before.
    bell: Arc<Bell>,
    asked: bool,
    late: Arc<AtomicBool>,
}

struct Drain {
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    bell: Arc<Bell>,
}

/// A timer by hand: ready if the poll that it is in was said to be late.
#[derive(Debug)]
struct Deadline(Arc<AtomicBool>);

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Who stands at the side of an execution and is told when a call begins and returns, and what comes next.
#[cfg_attr(feature = "loom", expect(dead_code, reason = "loom has no stage"))]
pub(crate) trait Stage: Send + Sync {
    /// The threads are there, and may run.
    fn race(&self);
    /// A call of that thread begins.
    fn begins(&self, thread: usize, op: Op);
    /// And returns.
    fn returns(&self, thread: usize);
    /// The threads that are stopped may go on.
    fn thaw(&self);
    /// Whether a thread is stopped.
    fn is_stopped(&self, thread: usize) -> bool;
}

/// What the threads of an execution share.
struct World {
    semaphore: Arc<Semaphore>,
    audit: Arc<Mutex<Audit>>,
    wakers: Arc<Mutex<Vec<Arc<Bell>>>>,
    stage: Option<Arc<dyn Stage>>,
}

impl Clone for World {
    fn clone(&self) -> Self {
        Self {
            semaphore: Arc::clone(&self.semaphore),
            audit: Arc::clone(&self.audit),
            wakers: Arc::clone(&self.wakers),
            stage: self.stage.clone(),
        }
    }
}

/// What one thread owns.
#[derive(Default)]
struct Owned {
    requests: BTreeMap<usize, Request>,
    leases: BTreeMap<usize, OwnedLease>,
    drains: BTreeMap<usize, Drain>,
    said: String,
}

impl World {
    fn new(scenario: &Scenario, before: Before) -> Self {
        let mut builder = Semaphore::builder().permits(scenario.permits).ceiling(CEILING);
        if let Some(waiters) = scenario.max_waiters {
            builder = builder.max_waiters(waiters);
        }
        let semaphore = Arc::new(builder.build().expect("a scenario is well formed"));
        let permits = scenario.permits as u64;
        let spec = Spec::new(permits, CEILING as u64, scenario.max_waiters);
        let audit = Audit::new(permits, scenario.threads.len(), spec, before);
        let audit = Arc::new(Mutex::new(audit));
        let world =
            Self { semaphore, audit: Arc::clone(&audit), wakers: Arc::default(), stage: None };
        world.audit().enter(0);
        if DETAILED.get() {
            world.audit().detail();
        }
        if let Some(last) = CURRENT.replace(Some(Arc::clone(&audit))) {
            let log = last.lock().unwrap_or_else(PoisonError::into_inner).take_log();
            world.audit().recycle_log(log);
        }
        model::listen(Some(Box::new(move |write| audit.lock().unwrap().write(write))));
        world
    }

    fn audit(&self) -> MutexGuard<'_, Audit> {
        self.audit.lock().unwrap()
    }

    fn fail(&self, what: &str) -> ! {
        self.audit().fail(what)
    }

    /// Runs a call under the audit; `judge` tells what it said, and the permits of the lease that it gave.
    fn call<R>(
        &self,
        op: Op,
        call: Call,
        run: impl FnOnce() -> R,
        judge: impl FnOnce(&R) -> (Said, Option<u64>),
    ) -> R {
        self.begin(op, call);
        let result = run();
        let (said, lease) = judge(&result);
        self.end(op, said, lease);
        result
    }

    fn begin(&self, op: Op, call: Call) {
        let me = self.audit().begin(op, call);
        if let Some(stage) = &self.stage {
            stage.begins(me, op);
        }
    }

    fn end(&self, op: Op, said: Said, lease: Option<u64>) {
        let me = self.audit().end(op, said, lease);
        if let Some(stage) = &self.stage {
            stage.returns(me);
        }
    }

    fn bell(&self) -> Arc<Bell> {
        let bell = Arc::new(Bell::default());
        self.wakers.lock().unwrap().push(Arc::clone(&bell));
        bell
    }

    fn request(&self, k: u32, enqueue: bool) -> Request {
        let mut future = Arc::clone(&self.semaphore).acquire_many_owned(k);
        if enqueue {
            future = future.enqueue();
        }
        let late = Arc::<AtomicBool>::default();
        Request {
            future: future.with_deadline(Deadline(Arc::clone(&late))),
            bell: self.bell(),
            asked: false,
            late,
        }
    }

    /// Polls a request; it stays in `owned` while it is pending.
    fn poll(&self, owned: &mut Owned, r: usize, op: Op) -> Option<Said> {
        let request = owned.requests.get_mut(&r)?;
        let waker = Waker::from(Arc::clone(&request.bell));
        request.late.store(matches!(op, Op::TimeOut(_)), Ordering::Relaxed);
        let result = self.call(
            op,
            Call::Request(r),
            || Pin::new(&mut request.future).poll(&mut Context::from_waker(&waker)),
            |result| match result {
                Poll::Pending => (Said::Pending, None),
                Poll::Ready(Ok(lease)) => (Said::Lease, Some(lease.num_permits() as u64)),
                Poll::Ready(Err(error)) => (
                    match error {
                        AcquireError::Closed => Said::Closed,
                        AcquireError::TimedOut => Said::TimedOut,
                        AcquireError::QueueFull => Said::Full,
                        AcquireError::ExceedsCapacity { .. } => Said::TooMany,
                    },
                    None,
                ),
            },
        );
        request.asked = true;
        let Poll::Ready(result) = result else { return Some(Said::Pending) };
        owned.requests.remove(&r);
        self.audit().gone(r);
        Some(match result {
            Ok(lease) => {
                owned.leases.insert(r, lease);
                Said::Lease
            }
            Err(AcquireError::Closed) => Said::Closed,
            Err(AcquireError::TimedOut) => Said::TimedOut,
            Err(AcquireError::QueueFull) => Said::Full,
            Err(AcquireError::ExceedsCapacity { .. }) => Said::TooMany,
        })
    }

    fn poll_drained(&self, op: Op, drain: &mut Drain) -> bool {
        let waker = Waker::from(Arc::clone(&drain.bell));
        self.call(
            op,
            Call::Other,
            || drain.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready(),
            |ready| (Said::Drained(*ready), None),
        )
    }

    fn give(&self, op: Op, lease: OwnedLease, how: impl FnOnce(OwnedLease)) {
        let n = lease.num_permits() as u64;
        self.call(op, Call::Lease(n), || how(lease), |()| (Said::Nothing, None));
    }

    fn perform(&self, owned: &mut Owned, op: Op) {
        let said = match op {
            Op::Try(l, k) => Some(self.try_acquire(owned, op, l, k)),
            Op::Enqueue(r, k) => {
                // What `enqueue` takes at once is in the future's hand: reserved for it.
                self.begin(op, Call::Request(r));
                let request = self.request(k, true);
                self.audit().keep(r);
                self.end(op, Said::Nothing, None);
                owned.requests.insert(r, request);
                None
            }
            Op::Ask(r, k) => {
                let request = self.request(k, false);
                owned.requests.insert(r, request);
                self.poll(owned, r, op)
            }
            Op::Poll(r) | Op::TimeOut(r) => self.poll(owned, r, op),
            Op::Repoll(r) => {
                if let Some(request) = owned.requests.get_mut(&r) {
                    request.bell = self.bell();
                }
                self.poll(owned, r, op)
            }
            Op::Cancel(r) => owned.requests.remove(&r).map(|request| {
                self.call(op, Call::Request(r), || drop(request), |()| (Said::Nothing, None));
                self.audit().gone(r);
                if self.audit().was_granted(r) { Said::PassedOn } else { Said::Nothing }
            }),
            Op::Available => Some(Said::Figure(self.call(
                op,
                Call::Other,
                || self.semaphore.available_permits() as u64,
                |n| (Said::Figure(*n), None),
            ))),
            Op::AskDrained(d) => Some(Said::Drained(self.ask_drained(owned, d))),
            Op::RepollDrained(d) => owned.drains.remove(&d).map(|mut drain| {
                drain.bell = self.bell();
                let ready = self.poll_drained(op, &mut drain);
                if !ready {
                    owned.drains.insert(d, drain);
                }
                Said::Drained(ready)
            }),
            _ => {
                self.perform_unanswered(owned, op);
                return;
            }
        };
        let said = said.map_or_else(|| "-".to_owned(), |said| said.to_string());
        let _ = match op {
            Op::Try(n, _) => write!(owned.said, "try{n}={said} "),
            Op::Ask(n, _) => write!(owned.said, "ask{n}={said} "),
            Op::Poll(n) => write!(owned.said, "poll{n}={said} "),
            Op::Repoll(n) => write!(owned.said, "repoll{n}={said} "),
            Op::TimeOut(n) => write!(owned.said, "late{n}={said} "),
            Op::AskDrained(n) | Op::RepollDrained(n) => write!(owned.said, "drained{n}={said} "),
            Op::Available => write!(owned.said, "available={said} "),
            Op::Cancel(n) if said == "passed on" => write!(owned.said, "cancel{n}:release "),
            Op::Cancel(n) if said == "()" => write!(owned.said, "cancel{n}:cancel "),
            _ => Ok(()),
        };
    }

    /// The operations that have nothing to answer.
    fn perform_unanswered(&self, owned: &mut Owned, op: Op) {
        let quiet = |(): &()| (Said::Nothing, None);
        match op {
            Op::Release(l) => {
                if let Some(lease) = owned.leases.remove(&l) {
                    self.give(op, lease, OwnedLease::release);
                }
            }
            Op::ReleasePart(l, n) => {
                if let Some(part) = owned.leases.get_mut(&l).and_then(|lease| lease.split(n)) {
                    self.give(op, part, OwnedLease::release);
                }
            }
            Op::Panic(l) => {
                if let Some(lease) = owned.leases.remove(&l) {
                    self.give(op, lease, |lease| {
                        let task = AssertUnwindSafe(|| {
                            let _lease = lease;
                            // Not `panic!`, which would call the hook.
                            resume_unwind(Box::new("a task panics"));
                        });
                        assert!(catch_unwind(task).is_err());
                    });
                }
            }
            Op::Forget(l) => {
                if let Some(lease) = owned.leases.remove(&l) {
                    self.give(op, lease, OwnedLease::forget);
                }
            }
            Op::Split(from, n, to) => {
                if let Some(lease) = owned.leases.get_mut(&from)
                    && lease.num_permits() >= n
                {
                    let part =
                        self.call(op, Call::Other, || lease.split(n), |_| (Said::Nothing, None));
                    owned.leases.insert(to, part.expect("it has as many"));
                }
            }
            Op::Merge(to, from) => {
                if owned.leases.contains_key(&to)
                    && let Some(other) = owned.leases.remove(&from)
                {
                    let lease = owned.leases.get_mut(&to).expect("just seen");
                    let merged = self.call(
                        op,
                        Call::Other,
                        || lease.merge(other),
                        |_| (Said::Nothing, None),
                    );
                    assert!(merged.is_ok(), "leases of one semaphore");
                }
            }
            Op::Grow(n) => {
                let _ = self.call(
                    op,
                    Call::Grow(n as u64),
                    || self.semaphore.add_permits(n),
                    |done| (if done.is_ok() { Said::Nothing } else { Said::TooMany }, None),
                );
            }
            Op::SetCapacity(n) => {
                let judge = |done: &Result<_, _>| {
                    (if done.is_ok() { Said::Nothing } else { Said::TooMany }, None)
                };
                let _ = self.call(op, Call::Other, || self.semaphore.set_capacity(n), judge);
            }
            Op::ForgetPermits(n) => {
                self.call(
                    op,
                    Call::Other,
                    || self.semaphore.forget_permits(n),
                    |n| (Said::Figure(*n as u64), None),
                );
            }
            Op::Close => self.call(op, Call::Other, || self.semaphore.close(), quiet),
            Op::CancelDrained(d) => {
                let drain = owned.drains.remove(&d);
                self.call(op, Call::Other, || drop(drain), quiet);
            }
            _ => unreachable!("{op:?} answers"),
        }
    }

    fn try_acquire(&self, owned: &mut Owned, op: Op, l: usize, k: u32) -> Said {
        let judge = |result: &Result<OwnedLease, TryAcquireError>| match result {
            Ok(lease) => (Said::Lease, Some(lease.num_permits() as u64)),
            Err(TryAcquireError::NoPermits) => (Said::NoPermits, None),
            Err(TryAcquireError::Closed) => (Said::Closed, None),
            Err(TryAcquireError::ExceedsCapacity { .. }) => (Said::TooMany, None),
        };
        let result = self.call(
            op,
            Call::Other,
            || Arc::clone(&self.semaphore).try_acquire_many_owned(k),
            judge,
        );
        let (said, _) = judge(&result);
        if let Ok(lease) = result {
            owned.leases.insert(l, lease);
        }
        said
    }

    fn ask_drained(&self, owned: &mut Owned, d: usize) -> bool {
        let semaphore = Arc::clone(&self.semaphore);
        let future = Box::pin(async move { semaphore.drained().await });
        let mut drain = Drain { future, bell: self.bell() };
        let ready = self.poll_drained(Op::AskDrained(d), &mut drain);
        if !ready {
            owned.drains.insert(d, drain);
        }
        ready
    }

    /// The requests and leases of the setup that the operations of a thread name.
    fn share(&self, setup: &mut Owned, thread: usize, ops: &[Op]) -> Owned {
        let mut owned = Owned::default();
        for op in ops {
            if let Op::CancelDrained(d) | Op::RepollDrained(d) = *op
                && let Some(drain) = setup.drains.remove(&d)
            {
                owned.drains.insert(d, drain);
            }
            for number in op.uses().into_iter().flatten() {
                if let Some(request) = setup.requests.remove(&number) {
                    owned.requests.insert(number, request);
                }
                if let Some(lease) = setup.leases.remove(&number) {
                    self.audit().hand_over(0, thread, lease.num_permits() as u64);
                    owned.leases.insert(number, lease);
                }
            }
        }
        owned
    }

    /// All that a thread has goes to another.
    fn collect(&self, all: &mut Owned, owned: &mut Owned, from: usize, to: usize) {
        let permits = owned.leases.values().map(|lease| lease.num_permits() as u64).sum();
        self.audit().hand_over(from, to, permits);
        all.requests.append(&mut owned.requests);
        all.leases.append(&mut owned.leases);
        all.drains.append(&mut owned.drains);
    }

    /// Polls all requests, in the order of their numbers; says what they said. Whoever slept and is ready
    /// was woken, unless `excused` knows who has its wake.
    fn poll_all(&self, all: &mut Owned, excused: impl Fn(usize) -> bool) -> Vec<(usize, Said)> {
        let mut found = Vec::new();
        for r in all.requests.keys().copied().collect::<Vec<_>>() {
            let asked = all.requests[&r].asked;
            let bell = Arc::clone(&all.requests[&r].bell);
            let Some(said) = self.poll(all, r, Op::Poll(r)) else { continue };
            if said != Said::Pending && asked && bell.rung() == 0 && !excused(r) {
                self.fail(&format!("request {r} is ready ({said}) and nobody woke it"));
            }
            found.push((r, said));
        }
        found
    }

    fn release_all(&self, all: &mut Owned) {
        for l in all.leases.keys().copied().collect::<Vec<_>>() {
            self.perform(all, Op::Release(l));
        }
    }

    /// After the race: nobody sleeps who was served, everybody is served once all is given back, and nothing is
    /// left behind. `excused` knows of requests that were settled by a thread that did not wake them in time.
    fn finish(&self, mut all: Owned, said: &mut String, excused: impl Fn(usize) -> bool) {
        for (r, found) in self.poll_all(&mut all, &excused) {
            let _ = write!(said, "{r}={found} ");
        }
        while !all.leases.is_empty() {
            self.release_all(&mut all);
            self.poll_all(&mut all, &excused);
        }
        if !all.requests.is_empty() {
            let left = all.requests.keys();
            self.fail(&format!("all permits are back, and these still wait: {left:?}"));
        }
        let closed = self.semaphore.is_closed();
        for (d, mut drain) in std::mem::take(&mut all.drains) {
            let rung = drain.bell.rung() > 0;
            let ready = self.poll_drained(Op::AskDrained(d), &mut drain);
            if (rung, ready) != (closed, closed) {
                self.fail(&format!(
                    "with all permits back drained {d} was {}woken and is {}ready, and the semaphore is {}closed",
                    if rung { "" } else { "not " },
                    if ready { "" } else { "not " },
                    if closed { "" } else { "not " },
                ));
            }
        }
        let figures = self.semaphore.snapshot();
        if figures.available != figures.capacity || figures.waiters != 0 {
            self.fail(&format!("with no lease and no request left: {figures:?}"));
        }
        self.audit().linearizes();
        self.audit().quiescent();
        let mut wakers = self.wakers.lock().unwrap();
        if wakers.drain(..).any(|bell| Arc::strong_count(&bell) != 1) {
            self.fail("a waker was kept");
        }
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Mutex<Audit>>>> = const { RefCell::new(None) };
    static DETAILED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether the executions of this OS thread keep note of where each permit is, for a timeline.
pub fn detailed(on: bool) {
    DETAILED.set(on);
}

/// What happened in the last execution on this OS thread, whether it ended well or not.
pub fn last_log() -> Vec<Moment> {
    look(|audit| audit.log().to_vec()).unwrap_or_default()
}

/// Where the permits were after each moment of it, if [`detailed`] was asked for.
pub fn last_whereabouts() -> Vec<Vec<(Where, u64)>> {
    look(|audit| audit.whereabouts().to_vec()).unwrap_or_default()
}

/// Looks at the audit of the execution that is under way on this OS thread.
pub fn look<R>(at: impl FnOnce(&Audit) -> R) -> Option<R> {
    CURRENT.with_borrow(|current| {
        current.as_ref().map(|audit| at(&audit.lock().unwrap_or_else(PoisonError::into_inner)))
    })
}

/// Runs one execution in which a scheduler stops some threads for as long as the others have anything left to do.
///
/// The others finish their calls, all that they own is wound up, and then some more is asked of the semaphore
/// and it is closed. Only then may those that were stopped go on, and the end has to be whole again.
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
pub(crate) fn run_stalled(scenario: &Scenario, stage: &Arc<dyn Stage>) {
    /// Numbers of requests and leases that no scenario uses.
    const FIRST: usize = 100;

    let mut world = World::new(scenario, Before::Returned);
    world.stage = Some(Arc::clone(stage));
    let mut setup = Owned::default();
    for op in scenario.setup {
        world.perform(&mut setup, *op);
    }
    let done: Arc<Mutex<BTreeMap<usize, Owned>>> = Arc::default();
    world.audit().enter_part(Part::Race);
    let threads: Vec<_> = (scenario.threads.iter().zip(1..))
        .map(|(ops, number)| {
            let mut owned = world.share(&mut setup, number, ops);
            let (world, done) = (world.clone(), Arc::clone(&done));
            rt::spawn(move || {
                world.audit().enter(number);
                for op in *ops {
                    world.perform(&mut owned, *op);
                }
                done.lock().unwrap().insert(number, owned);
            })
        })
        .collect();
    stage.race();
    shuttle::thread::yield_now();

    // Only those that are stopped are left.
    let mut all = setup;
    for (number, mut owned) in std::mem::take(&mut *done.lock().unwrap()) {
        world.collect(&mut all, &mut owned, number, 0);
    }
    let excused =
        |request| world.audit().settler(request).is_some_and(|settler| stage.is_stopped(settler));
    world.poll_all(&mut all, excused);
    for lease in all.leases.keys().copied().collect::<Vec<_>>() {
        world.perform(&mut all, Op::Release(lease));
        world.poll_all(&mut all, excused);
    }
    for op in [
        Op::Available,
        Op::Try(FIRST, 1),
        Op::Ask(FIRST + 1, 2),
        Op::Ask(FIRST + 2, 1),
        Op::Cancel(FIRST + 1),
        Op::Grow(1),
        Op::Repoll(FIRST + 2),
        Op::Release(FIRST),
        Op::Ask(FIRST + 3, 3),
        Op::Close,
        Op::TimeOut(FIRST + 3),
        Op::Poll(FIRST + 2),
        Op::Release(FIRST + 2),
        Op::AskDrained(FIRST),
    ] {
        world.perform(&mut all, op);
    }
    world.poll_all(&mut all, excused);
    world.release_all(&mut all);
    if !all.requests.is_empty() {
        world.fail(&format!("closed, and these still wait: {:?}", all.requests.keys()));
    }
    world.audit().linearizes();

    stage.thaw();
    for thread in threads {
        thread.join().unwrap();
    }
    world.audit().enter_part(Part::WindUp);
    for (number, mut owned) in std::mem::take(&mut *done.lock().unwrap()) {
        world.collect(&mut all, &mut owned, number, 0);
    }
    world.finish(all, &mut String::new(), |_| false);
    model::listen(None);
}

/// Runs one execution, with the threads started in `order` (the last of them is the main one), and
/// says what came of it. `before` says what the checker's clock is worth.
pub fn run(scenario: &Scenario, order: &[usize], before: Before) -> String {
    let world = World::new(scenario, before);
    let mut setup = Owned::default();
    for op in scenario.setup {
        world.perform(&mut setup, *op);
    }
    let mut shares: Vec<Owned> = (scenario.threads.iter().zip(1..))
        .map(|(ops, thread)| world.share(&mut setup, thread, ops))
        .collect();
    world.audit().enter_part(Part::Race);
    let (last, spawned) = order.split_last().expect("a scenario has threads");
    let running: Vec<_> = spawned
        .iter()
        .map(|number| {
            let number = *number;
            let (world, mut owned) = (world.clone(), std::mem::take(&mut shares[number]));
            let ops = scenario.threads[number];
            rt::spawn(move || {
                world.audit().enter(number + 1);
                for op in ops {
                    world.perform(&mut owned, *op);
                }
                owned
            })
        })
        .collect();
    world.audit().enter(*last + 1);
    for op in scenario.threads[*last] {
        world.perform(&mut shares[*last], *op);
    }
    for (number, thread) in spawned.iter().zip(running) {
        shares[*number] = thread.join().unwrap();
    }
    world.audit().enter_part(Part::WindUp);

    let mut said = std::mem::take(&mut setup.said);
    let mut all = Owned::default();
    world.collect(&mut all, &mut setup, 0, *last + 1);
    for (number, mut owned) in shares.into_iter().enumerate() {
        let _ = write!(said, "| T{}: {}", number + 1, owned.said);
        world.collect(&mut all, &mut owned, number + 1, *last + 1);
    }
    said.push_str("| end: ");
    world.finish(all, &mut said, |_| false);
    model::listen(None);
    said
}
