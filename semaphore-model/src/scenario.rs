//! Scenarios: operations per thread, run on the real core under the audit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};

use semaphore_core::{
    AcquireError, AcquireOwned, OwnedLease, Semaphore, TryAcquireError, WithDeadline, model,
};

use crate::audit::{Audit, Call};
use crate::rt;

/// One operation. Requests and leases go by number; the lease of request `r` is lease `r`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `try_acquire_many(k)`, as lease `l`.
    Try(usize, u32),
    /// Request `r` for `k` takes its place in the queue, and is not polled.
    Enqueue(usize, u32),
    /// Request `r` for `k` is polled for the first time.
    Ask(usize, u32),
    /// Request `r` is polled with the waker that it was polled with last (or its first).
    Poll(usize),
    /// Request `r` is polled with a waker that it has not seen.
    Repoll(usize),
    /// Request `r` is dropped.
    Cancel(usize),
    /// Request `r` is polled with a deadline that has passed.
    TimeOut(usize),
    /// Lease `l` is given back, if it came to be.
    Release(usize),
    /// Lease `l` is forgotten, if it came to be: N shrinks.
    Forget(usize),
    /// The permits grow by so many.
    Grow(usize),
    /// The semaphore is closed.
    Close,
    /// `drained()` is asked for as number `d`, and polled once.
    AskDrained(usize),
    /// The `drained()` of that number is dropped.
    CancelDrained(usize),
}

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

/// What the threads of an execution share.
struct World {
    semaphore: Arc<Semaphore>,
    audit: Arc<Mutex<Audit>>,
    wakers: Arc<Mutex<Vec<Arc<Bell>>>>,
}

impl Clone for World {
    fn clone(&self) -> Self {
        Self {
            semaphore: Arc::clone(&self.semaphore),
            audit: Arc::clone(&self.audit),
            wakers: Arc::clone(&self.wakers),
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
    fn audit(&self) -> MutexGuard<'_, Audit> {
        self.audit.lock().unwrap()
    }

    fn call<R>(
        &self,
        call: Call,
        run: impl FnOnce() -> R,
        lease: impl FnOnce(&R) -> Option<u64>,
    ) -> R {
        self.audit().begin(call);
        let result = run();
        self.audit().end(lease(&result));
        result
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
    fn poll(&self, owned: &mut Owned, r: usize, late: bool) -> &'static str {
        let Some(request) = owned.requests.get_mut(&r) else { return "-" };
        let waker = Waker::from(Arc::clone(&request.bell));
        request.late.store(late, Ordering::Relaxed);
        let result = self.call(
            Call::Request(r),
            || Pin::new(&mut request.future).poll(&mut Context::from_waker(&waker)),
            |result| match result {
                Poll::Ready(Ok(lease)) => Some(lease.num_permits() as u64),
                _ => None,
            },
        );
        request.asked = true;
        let said = match result {
            Poll::Pending => return "pending",
            Poll::Ready(Ok(lease)) => {
                owned.leases.insert(r, lease);
                "lease"
            }
            Poll::Ready(Err(AcquireError::Closed)) => "closed",
            Poll::Ready(Err(AcquireError::TimedOut)) => "timed out",
            Poll::Ready(Err(AcquireError::QueueFull)) => "full",
            Poll::Ready(Err(AcquireError::ExceedsCapacity { .. })) => "too many",
        };
        owned.requests.remove(&r);
        self.audit().gone(r);
        said
    }

    fn poll_drained(&self, drain: &mut Drain) -> bool {
        let waker = Waker::from(Arc::clone(&drain.bell));
        self.call(
            Call::Other,
            || drain.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready(),
            |_| None,
        )
    }

    fn perform(&self, owned: &mut Owned, op: Op) {
        match op {
            Op::Try(l, k) => {
                let result = self.call(
                    Call::Other,
                    || Arc::clone(&self.semaphore).try_acquire_many_owned(k),
                    |result| result.as_ref().ok().map(|lease| lease.num_permits() as u64),
                );
                let said = match result {
                    Ok(lease) => {
                        owned.leases.insert(l, lease);
                        "lease"
                    }
                    Err(TryAcquireError::NoPermits) => "none",
                    Err(TryAcquireError::Closed) => "closed",
                    Err(TryAcquireError::ExceedsCapacity { .. }) => "too many",
                };
                let _ = write!(owned.said, "try{l}={said} ");
            }
            Op::Enqueue(r, k) => {
                // What `enqueue` takes at once is in the future's hand: reserved for it.
                self.audit().begin(Call::Request(r));
                let request = self.request(k, true);
                self.audit().keep(r);
                self.audit().end(None);
                owned.requests.insert(r, request);
            }
            Op::Ask(r, k) => {
                let request = self.request(k, false);
                owned.requests.insert(r, request);
                let said = self.poll(owned, r, false);
                let _ = write!(owned.said, "ask{r}={said} ");
            }
            Op::Poll(r) => {
                let said = self.poll(owned, r, false);
                let _ = write!(owned.said, "poll{r}={said} ");
            }
            Op::Repoll(r) => {
                if let Some(request) = owned.requests.get_mut(&r) {
                    request.bell = self.bell();
                }
                let said = self.poll(owned, r, false);
                let _ = write!(owned.said, "repoll{r}={said} ");
            }
            Op::TimeOut(r) => {
                let said = self.poll(owned, r, true);
                let _ = write!(owned.said, "late{r}={said} ");
            }
            Op::Cancel(r) => {
                if let Some(request) = owned.requests.remove(&r) {
                    self.call(Call::Request(r), || drop(request), |()| None);
                    self.audit().gone(r);
                    let won = if self.audit().was_granted(r) { "release" } else { "cancel" };
                    let _ = write!(owned.said, "cancel{r}:{won} ");
                }
            }
            Op::Release(l) => {
                if let Some(lease) = owned.leases.remove(&l) {
                    let n = lease.num_permits() as u64;
                    self.call(Call::Lease(n), || lease.release(), |()| None);
                }
            }
            Op::Forget(l) => {
                if let Some(lease) = owned.leases.remove(&l) {
                    let n = lease.num_permits() as u64;
                    self.call(Call::Lease(n), || lease.forget(), |()| None);
                }
            }
            Op::Grow(n) => {
                let _ = self.call(Call::Grow(n as u64), || self.semaphore.add_permits(n), |_| None);
            }
            Op::Close => self.call(Call::Other, || self.semaphore.close(), |()| None),
            Op::AskDrained(d) => {
                let semaphore = Arc::clone(&self.semaphore);
                let future = Box::pin(async move { semaphore.drained().await });
                let mut drain = Drain { future, bell: self.bell() };
                let ready = self.poll_drained(&mut drain);
                let _ = write!(owned.said, "drained{d}={} ", if ready { "yes" } else { "no" });
                if !ready {
                    owned.drains.insert(d, drain);
                }
            }
            Op::CancelDrained(d) => {
                let drain = owned.drains.remove(&d);
                self.call(Call::Other, || drop(drain), |()| None);
            }
        }
    }
}

fn touched(op: Op) -> (Option<usize>, Option<usize>) {
    match op {
        Op::Try(l, _) | Op::Release(l) | Op::Forget(l) => (None, Some(l)),
        Op::Enqueue(r, _)
        | Op::Ask(r, _)
        | Op::Poll(r)
        | Op::Repoll(r)
        | Op::Cancel(r)
        | Op::TimeOut(r) => (Some(r), Some(r)),
        Op::Grow(_) | Op::Close | Op::AskDrained(_) | Op::CancelDrained(_) => (None, None),
    }
}

/// Runs one execution, with the threads started in `order` (the last of them is the main one), and
/// says what came of it.
pub fn run(scenario: &Scenario, order: &[usize]) -> String {
    let mut builder = Semaphore::builder().permits(scenario.permits).ceiling(1 << 20);
    if let Some(waiters) = scenario.max_waiters {
        builder = builder.max_waiters(waiters);
    }
    let semaphore = Arc::new(builder.build().expect("a scenario is well formed"));
    let audit = Arc::new(Mutex::new(Audit::new(scenario.permits as u64, scenario.threads.len())));
    let world = World { semaphore, audit: Arc::clone(&audit), wakers: Arc::default() };
    world.audit().enter(0);
    model::listen(Some(Box::new(move |write| audit.lock().unwrap().write(write))));

    let mut setup = Owned::default();
    for op in scenario.setup {
        world.perform(&mut setup, *op);
    }

    let mut shares: Vec<Owned> =
        scenario.threads.iter().map(|ops| share(&mut setup, ops)).collect();
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

    let mut said = setup.said.clone();
    let mut all = setup;
    for (number, mut owned) in shares.into_iter().enumerate() {
        let _ = write!(said, "| T{}: {}", number + 1, owned.said);
        all.requests.append(&mut owned.requests);
        all.leases.append(&mut owned.leases);
        all.drains.append(&mut owned.drains);
    }
    said.push_str("| end: ");
    finish(&world, all, &mut said);
    model::listen(None);
    said
}

/// The requests and leases of the setup that the operations of a thread name.
fn share(setup: &mut Owned, ops: &[Op]) -> Owned {
    let mut owned = Owned::default();
    for op in ops {
        if let Op::CancelDrained(d) = *op
            && let Some(drain) = setup.drains.remove(&d)
        {
            owned.drains.insert(d, drain);
        }
        let (request, lease) = touched(*op);
        if let Some(r) = request
            && let Some(request) = setup.requests.remove(&r)
        {
            owned.requests.insert(r, request);
        }
        if let Some(l) = lease
            && let Some(lease) = setup.leases.remove(&l)
        {
            owned.leases.insert(l, lease);
        }
    }
    owned
}

/// After the race: nobody sleeps who was served, everybody is served once all is given back, and nothing is
/// left behind.
fn finish(world: &World, mut all: Owned, said: &mut String) {
    let mut first = true;
    loop {
        for r in all.requests.keys().copied().collect::<Vec<_>>() {
            let asked = all.requests[&r].asked;
            let bell = Arc::clone(&all.requests[&r].bell);
            let found = world.poll(&mut all, r, false);
            assert!(
                found == "pending" || !asked || bell.rung() > 0,
                "request {r} is ready ({found}) and nobody woke it"
            );
            if first {
                let _ = write!(said, "{r}={found} ");
            }
        }
        first = false;
        if all.leases.is_empty() {
            break;
        }
        for l in all.leases.keys().copied().collect::<Vec<_>>() {
            world.perform(&mut all, Op::Release(l));
        }
    }
    assert!(
        all.requests.is_empty(),
        "all permits are back, and these still wait: {:?}",
        all.requests.keys()
    );
    let closed = world.semaphore.is_closed();
    for (d, mut drain) in std::mem::take(&mut all.drains) {
        let rung = drain.bell.rung() > 0;
        assert_eq!(rung, closed, "rang for drained {d}, and whether it is closed");
        assert_eq!(world.poll_drained(&mut drain), closed, "drained {d}, with all permits back");
    }
    let figures = world.semaphore.snapshot();
    assert_eq!(figures.available, figures.capacity, "available, with no lease left");
    assert_eq!(figures.waiters, 0, "waiters, with no request left");
    world.audit().quiescent();
    let mut wakers = world.wakers.lock().unwrap();
    for bell in wakers.drain(..) {
        assert_eq!(Arc::strong_count(&bell), 1, "a waker was kept");
    }
}
