//! The audit: the invariant, at every transition.
//!
//! The core's facade hands each write to a shared word to a tap, with no scheduling point in between.
//! From these words alone, before and after, the audit keeps a shadow of the queue, and from the
//! harness it learns which call each thread is in and which leases exist. It recomputes
//! what is available and what is reserved from the words; what a thread's transitions take out
//! of these two is in that thread's *hand*. Then at every transition
//!
//! - `available + reserved + held + hands = N + debt`, where `held` is counted from the harness's
//!   leases, N and the debt from their words, and no hand is negative: permits are not made from
//!   nothing;
//! - at the return of each call the hand is exactly what the call says that it gives to the caller:
//!   permits are not lost;
//!
//! and besides
//!
//! - a waiter is settled once: granted, cancelled and shut exclude each other, and are final;
//! - a grant, in part or in full, goes to the oldest that waits in its queue;
//! - nothing is available while anybody waits;
//! - a link moves to older waiters only, over settled ones;
//! - nobody changes the word of a slot that another thread has not yet published;
//! - a slot is used again only after it was cut out of its queue;
//! - a call that has seen nothing but debt since it began hands nothing out;
//! - nothing is shut in an open queue.

use std::collections::BTreeMap;

use semaphore_core::model::{
    Body, Handle, Line, Place, Role, SlotIndex, State, Status, WaiterWord, Write,
};

use crate::coverage::{self, Edge};
use crate::linearize::{Before, History, Part};
use crate::op::{Op, Said};
use crate::rt;
use crate::spec::Spec;
use crate::trace::{Moment, What, Where};

/// A call of the harness into the semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Asks on behalf of that request, polls it, or gives it up.
    Request(usize),
    /// Gives back or destroys a lease of so many permits.
    Lease(u64),
    /// Makes so many permits.
    Grow(u64),
    /// Anything that comes with no permits.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Life {
    /// Being filled in by a thread, or put back by it.
    Private(usize),
    /// In a queue since it was published, the n-th to be so.
    Listed { line: Line, arrival: u64, request: Option<usize> },
    /// Cut out of its queue.
    Out,
}

#[derive(Clone, Debug)]
struct Shadow {
    word: WaiterWord,
    need: u64,
    life: Life,
}

#[derive(Debug, Default)]
struct Thread {
    hand: i128,
    held: u64,
    call: Option<Call>,
    /// The semaphore was closed already when the call began.
    late: bool,
    /// The semaphore was in debt when the call began, and has been ever since.
    indebted: bool,
}

/// The ghost state of one execution.
#[derive(Debug)]
pub struct Audit {
    main: State,
    gate: State,
    /// N.
    capacity: u64,
    /// N, and the debt.
    existing: u64,
    slots: BTreeMap<u32, Shadow>,
    free: u64,
    fresh: u64,
    /// Full grants that no call has returned yet: request -> permits.
    untaken: BTreeMap<usize, u64>,
    /// Requests that were granted in the queue, or had their permits as they joined it.
    granted: Vec<usize>,
    /// Who settled which request.
    settled_by: BTreeMap<usize, usize>,
    arrivals: u64,
    ids: Vec<(rt::ThreadId, usize)>,
    threads: Vec<Thread>,
    /// Permits that all threads' leases hold.
    held: u64,
    part: Part,
    history: History,
    log: Vec<Moment>,
    detailed: bool,
    whereabouts: Vec<Vec<(Where, u64)>>,
}

const FREE_NOBODY: u64 = (1 << 26) - 1;

impl Audit {
    /// For a semaphore of so many permits, driven by so many threads besides the main one.
    pub fn new(permits: u64, threads: usize, start: Spec, before: Before) -> Self {
        Self {
            main: State(permits << 3),
            gate: State(0),
            capacity: permits,
            existing: permits,
            slots: BTreeMap::new(),
            free: FREE_NOBODY,
            fresh: 0,
            untaken: BTreeMap::new(),
            granted: Vec::new(),
            settled_by: BTreeMap::new(),
            arrivals: 0,
            ids: Vec::new(),
            threads: (0..=threads).map(|_| Thread::default()).collect(),
            part: Part::SetUp,
            history: History::new(start, before),
            log: Vec::new(),
            detailed: false,
            whereabouts: Vec::new(),
            held: 0,
        }
    }

    /// From here on the log says where the permits are.
    pub fn detail(&mut self) {
        self.detailed = true;
    }

    /// The next part of the execution begins.
    pub fn enter_part(&mut self, part: Part) {
        self.part = part;
    }

    /// What has happened.
    pub fn log(&self) -> &[Moment] {
        &self.log
    }

    /// Takes what has happened.
    pub fn take_log(&mut self) -> Vec<Moment> {
        std::mem::take(&mut self.log)
    }

    /// All calls so far, against the specification.
    ///
    /// Not if it was resized into debt: that is the audit's affair alone.
    pub fn linearizes(&self) {
        if self.history.resizes() {
            return;
        }
        if let Err(story) = self.history.check_once() {
            self.fail(&format!("not linearizable: {story}"));
        }
    }

    /// A lease of so many permits changes hands.
    pub fn hand_over(&mut self, from: usize, to: usize, permits: u64) {
        self.threads[from].held -= permits;
        self.threads[to].held += permits;
    }

    fn note(&mut self, thread: usize, what: What) {
        self.log.push(Moment { thread, what });
        self.note_places();
    }

    fn note_places(&mut self) {
        if self.detailed {
            self.whereabouts.push(self.places());
        }
    }

    /// Where the permits were after each moment of the log, if that was asked for.
    pub fn whereabouts(&self) -> &[Vec<(Where, u64)>] {
        &self.whereabouts
    }

    /// Room for a log, from an execution that is over.
    pub fn recycle_log(&mut self, mut log: Vec<Moment>) {
        log.clear();
        self.log = log;
    }

    /// Where the permits are.
    fn places(&self) -> Vec<(Where, u64)> {
        let mut places = vec![(Where::Free, self.available())];
        for slot in self.slots.values() {
            if let Life::Listed { line: Line::Main, request: Some(request), .. } = slot.life
                && slot.word.status().is_waiting()
            {
                places.push((Where::Part(request), u64::from(slot.word.place().got())));
            }
        }
        places.extend(self.untaken.iter().map(|(request, n)| (Where::Granted(*request), *n)));
        for (number, thread) in self.threads.iter().enumerate() {
            places.push((Where::Hand(number), u64::try_from(thread.hand).unwrap_or(0)));
            places.push((Where::Held(number), thread.held));
        }
        places.retain(|(_, n)| *n > 0);
        places
    }

    /// Permits that leases hold.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Permits that the leases of a thread hold.
    pub fn held_by(&self, thread: usize) -> u64 {
        self.threads[thread].held
    }

    /// Permits in the hands of running calls.
    pub fn in_hands(&self) -> i128 {
        self.threads.iter().map(|thread| thread.hand).sum()
    }

    /// How many wait for permits.
    pub fn waiting(&self) -> usize {
        self.pending(Line::Main).count()
    }

    /// Whether a request waits in the queue.
    pub fn waits(&self, of: usize) -> bool {
        self.slots.values().any(|slot| {
            matches!(slot.life, Life::Listed { line: Line::Main, request: Some(request), .. } if request == of)
                && slot.word.status().is_waiting()
        })
    }

    /// Whether a request was granted and no call has taken its permits since.
    pub fn is_untaken(&self, request: usize) -> bool {
        self.untaken.contains_key(&request)
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.main.is_closed()
    }

    /// The thread whose transition settled a request, by a grant or by a close.
    pub fn settler(&self, request: usize) -> Option<usize> {
        self.settled_by.get(&request).copied()
    }

    /// This thread is the one of that number from now on.
    pub fn enter(&mut self, number: usize) {
        let id = rt::current().id();
        self.ids.retain(|(known, _)| *known != id);
        self.ids.push((id, number));
    }

    fn me(&self) -> usize {
        let id = rt::current().id();
        self.ids.iter().find(|(known, _)| *known == id).map_or(0, |(_, number)| *number)
    }

    /// A call begins. Says on which thread.
    pub fn begin(&mut self, op: Op, call: Call) -> usize {
        let me = self.me();
        assert!(self.threads[me].call.is_none(), "the harness nests calls");
        if let Call::Lease(n) = call {
            self.threads[me].held -= n;
            self.held -= n;
            self.threads[me].hand += i128::from(n);
        }
        self.threads[me].call = Some(call);
        self.threads[me].late = self.main.is_closed();
        // With weak memory a call may not have seen the shrink.
        self.threads[me].indebted = self.in_debt() && self.history.before() == Before::Returned;
        self.history.begin(me, self.part, op);
        self.note(me, What::Begins(op));
        me
    }

    /// A call returns, with what it said and with a lease of so many permits or with nothing. Says on which
    /// thread.
    pub fn end(&mut self, op: Op, said: Said, lease: Option<u64>) -> usize {
        let me = self.me();
        if let Some(Call::Request(request)) = self.threads[me].call.take()
            && let Some(n) = self.untaken.remove(&request)
        {
            // The call says of a granted request that it has the lease, or has passed it on.
            if lease.is_some() || self.threads[me].hand < 0 {
                self.threads[me].hand += i128::from(n);
            } else {
                self.untaken.insert(request, n);
            }
        }
        let given = lease.unwrap_or(0);
        if self.threads[me].hand != i128::from(given) {
            let hand = self.threads[me].hand;
            self.fail(&format!("a call returned {given} permits with {hand} in its hand"));
        }
        self.threads[me].hand = 0;
        self.threads[me].held += given;
        self.held += given;
        self.balance();
        let said = match op {
            Op::Cancel(request) if self.granted.contains(&request) => Said::PassedOn,
            _ => said,
        };
        self.history.end(me, said);
        self.note(me, What::Returns(op, said));
        let helps = match op {
            Op::Try(..) | Op::Ask(..) | Op::Enqueue(..) => {
                matches!(said, Said::Closed | Said::Nothing)
            }
            Op::Cancel(request) => {
                said == Said::PassedOn || !self.settled_by.contains_key(&request)
            }
            Op::Poll(_) | Op::Repoll(_) | Op::TimeOut(_) => {
                matches!(said, Said::Closed | Said::TimedOut)
            }
            Op::Release(_) | Op::Grow(_) | Op::Close => true,
            Op::AskDrained(_) | Op::RepollDrained(_) => said == Said::Drained(false),
            _ => false,
        };
        // With weak memory a call may not have seen what happened before it.
        let sees_all = self.history.before() == Before::Returned;
        if helps && sees_all && self.threads[me].late && self.pending(Line::Main).next().is_some() {
            self.fail(&format!("{op:?} met a closed semaphore, and returned while somebody waits"));
        }
        if sees_all && self.threads[me].late && said == Said::Pending {
            self.fail(&format!("{op:?} is pending, and began at a closed semaphore"));
        }
        me
    }

    /// The call that ends next keeps what is in its hand in the future of that request.
    pub fn keep(&mut self, request: usize) {
        let me = self.me();
        let hand = std::mem::take(&mut self.threads[me].hand);
        if let Ok(n @ 1..) = u64::try_from(hand) {
            self.untaken.insert(request, n);
            self.granted.push(request);
        }
    }

    /// Whether a request was granted in the queue.
    pub fn was_granted(&self, request: usize) -> bool {
        self.granted.contains(&request)
    }

    /// A request is gone: no call will ever ask for what it was granted.
    pub fn gone(&mut self, request: usize) {
        if let Some(n) = self.untaken.get(&request) {
            self.fail(&format!("request {request} is gone and its {n} permits with it"));
        }
    }

    /// Permits that the words say are available.
    pub fn available(&self) -> u64 {
        self.main.free()
    }

    /// Permits that the words say a waiter has in part, and full grants not yet taken.
    pub fn reserved(&self) -> u64 {
        let partial: u64 = self
            .slots
            .values()
            .filter(|slot| {
                matches!(slot.life, Life::Listed { line: Line::Main, .. })
                    && slot.word.status().is_waiting()
            })
            .map(|slot| u64::from(slot.word.place().got()))
            .sum();
        partial + self.untaken.values().sum::<u64>()
    }

    /// A shrink has taken effect and has permits to collect.
    fn in_debt(&self) -> bool {
        self.main.in_debt() && self.existing > self.capacity
    }

    /// Debts first: nothing is handed out by a call that has seen nothing but debt.
    fn debt_first(&self, me: usize, what: &str) {
        if self.threads[me].indebted {
            self.fail(&format!(
                "{what} while {} are owed, and were when the call began",
                self.existing - self.capacity
            ));
        }
    }

    fn balance(&self) {
        let hands: i128 = self.threads.iter().map(|thread| thread.hand).sum();
        let (available, reserved, held) = (self.available(), self.reserved(), self.held());
        let sum = i128::from(available) + i128::from(reserved) + i128::from(held) + hands;
        if sum != i128::from(self.existing) {
            self.fail(&format!(
                "available {available} + held {held} (+ {hands} in hands) + reserved {reserved} is not N + debt = {}",
                self.existing
            ));
        }
    }

    /// What the tap hears.
    pub fn write(&mut self, write: &Write) {
        let me = self.me();
        self.log.push(Moment { thread: me, what: What::Writes(*write) });
        let placed = self.available() + self.reserved();
        match write.role {
            Role::State(line) => self.state(me, line, State(write.after)),
            Role::Waiter(slot) => self.waiter(me, slot, WaiterWord(write.after)),
            Role::Serial(slot) => self.reuse(me, slot),
            Role::Need(slot) => {
                if let Some(shadow) = self.slots.get_mut(&slot) {
                    shadow.need = write.after;
                }
            }
            Role::Capacity => self.capacity = write.after,
            Role::Existing => {
                let change = i128::from(write.after) - i128::from(self.existing);
                self.existing = write.after;
                self.threads[me].hand += change;
            }
            Role::Free => self.free = write.after,
            Role::Fresh => self.fresh = write.after,
            _ => return self.note_places(),
        }
        if !self.in_debt() {
            for thread in &mut self.threads {
                thread.indebted = false;
            }
        }
        let now = self.available() + self.reserved();
        self.threads[me].hand += i128::from(placed) - i128::from(now);
        self.claim(me);
        self.note_places();
        if self.threads[me].hand < 0 {
            let hand = self.threads[me].hand;
            self.fail(&format!("{hand} permits in the hand of thread {me}: made from nothing"));
        }
        if self.available() > 0 && self.pending(Line::Main).next().is_some() {
            self.fail("permits are available while somebody waits");
        }
        if self.available() > 0 {
            self.debt_first(me, "permits became available");
        }
        self.balance();
    }

    /// A call that gives up a granted request passes its permits on.
    fn claim(&mut self, me: usize) {
        if self.threads[me].hand < 0
            && let Some(Call::Request(request)) = self.threads[me].call
            && let Some(n) = self.untaken.remove(&request)
        {
            self.threads[me].hand += i128::from(n);
        }
    }

    fn pending(&self, of: Line) -> impl Iterator<Item = u64> + '_ {
        self.slots.values().filter_map(move |slot| match slot.life {
            Life::Listed { line, arrival, .. } if line == of && slot.word.status().is_waiting() => {
                Some(arrival)
            }
            _ => None,
        })
    }

    fn state_of(&self, line: Line) -> State {
        match line {
            Line::Main => self.main,
            Line::Gate => self.gate,
        }
    }

    fn state(&mut self, me: usize, line: Line, after: State) {
        let before = self.state_of(line);
        let joined = match after.body() {
            Body::Queue(tail) => self
                .slots
                .get(&tail.slot().0)
                .is_some_and(|slot| matches!(slot.life, Life::Private(_))),
            Body::Available(_) => false,
        };
        coverage::visit(Edge::of_state(line, before, after, joined));
        if before.is_closed() && !after.is_closed() {
            self.fail("a closed semaphore was opened");
        }
        match (before.body(), after.body()) {
            (_, Body::Queue(tail)) if before.body() != after.body() => {
                match self.slots.get(&tail.slot().0).map(|slot| slot.life.clone()) {
                    Some(Life::Private(owner)) if owner == me => {
                        self.publish(me, line, before, tail);
                    }
                    Some(Life::Private(owner)) => self.fail(&format!(
                        "thread {me} published the slot that thread {owner} prepares"
                    )),
                    Some(Life::Listed { .. }) => {
                        let Body::Queue(from) = before.body() else {
                            self.fail("a queue came to be out of nothing")
                        };
                        self.cut(from.slot(), Some(tail.slot()));
                    }
                    Some(Life::Out) | None => self.fail("the tail is a slot that is in no queue"),
                }
            }
            (Body::Queue(from), Body::Available(_)) => self.cut(from.slot(), None),
            _ => {}
        }
        match line {
            Line::Main => self.main = after,
            Line::Gate => self.gate = after,
        }
    }

    fn publish(&mut self, me: usize, line: Line, before: State, tail: Handle) {
        let request = match self.threads[me].call {
            Some(Call::Request(request)) => Some(request),
            _ => None,
        };
        let word = self.slots[&tail.slot().0].word;
        let expected = match before.body() {
            Body::Available(some) => Place::Head(u32::try_from(some).expect("less than asked for")),
            Body::Queue(older) => Place::Link(older.slot()),
        };
        if word.place() != expected || !word.status().is_waiting() || !word.is_of(tail) {
            self.fail(&format!("published as {word:?}, where {expected:?} was called for"));
        }
        if before.is_closed() {
            self.fail("somebody joined a closed queue");
        }
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.slots.get_mut(&tail.slot().0).expect("known").life =
            Life::Listed { line, arrival, request };
    }

    /// The run from `first` to before `stop` leaves its queue.
    fn cut(&mut self, first: SlotIndex, stop: Option<SlotIndex>) {
        let mut at = Some(first);
        while at != stop {
            let Some(index) = at else {
                self.fail("a run was cut that does not end where it should")
            };
            let shadow = self.slots[&index.0].clone();
            if shadow.word.status().is_waiting() {
                self.fail(&format!("{index:?} was cut out while it waits: {:?}", shadow.word));
            }
            if !matches!(shadow.life, Life::Listed { .. }) {
                self.fail(&format!("{index:?} was cut out of a queue that it is not in"));
            }
            self.slots.get_mut(&index.0).expect("known").life = Life::Out;
            at = match shadow.word.place() {
                Place::Link(older) => Some(older),
                Place::Head(_) => None,
            };
        }
    }

    /// A slot is being filled in for its next use.
    fn reuse(&mut self, me: usize, slot: u32) {
        let fresh = Shadow { word: WaiterWord(2 << 33 | 1 << 32), need: 0, life: Life::Out };
        let shadow = self.slots.entry(slot).or_insert(fresh);
        if shadow.life != Life::Out {
            let life = shadow.life.clone();
            self.fail(&format!("slot {slot} is used again while it is {life:?}"));
        }
        self.slots.get_mut(&slot).expect("known").life = Life::Private(me);
    }

    fn waiter(&mut self, me: usize, slot: u32, after: WaiterWord) {
        let Some(shadow) = self.slots.get(&slot).cloned() else {
            self.fail(&format!("the word of slot {slot}, which nobody has used"))
        };
        let before = shadow.word;
        let line = match shadow.life {
            Life::Listed { line, .. } => Some(line),
            Life::Private(_) | Life::Out => None,
        };
        coverage::visit(Edge::of_waiter(line, before, after));
        match shadow.life {
            Life::Private(owner) => {
                if owner != me {
                    self.fail(&format!(
                        "thread {me} changed slot {slot}, which thread {owner} has not published"
                    ));
                }
                if !after.status().is_waiting() {
                    // Withdrawn.
                    self.slots.get_mut(&slot).expect("known").life = Life::Out;
                }
            }
            Life::Out => {
                let same =
                    before.generation() == after.generation() && before.status() == after.status();
                if !same {
                    self.fail(&format!("a free slot went from {before:?} to {after:?}"));
                }
            }
            Life::Listed { line, arrival, request } => {
                self.listed(me, slot, (line, arrival, request), &shadow, after);
            }
        }
        self.slots.get_mut(&slot).expect("known").word = after;
    }

    fn listed(
        &mut self,
        me: usize,
        slot: u32,
        (line, arrival, request): (Line, u64, Option<usize>),
        shadow: &Shadow,
        after: WaiterWord,
    ) {
        let before = shadow.word;
        let step = || format!("slot {slot} went from {before:?} to {after:?}");
        if !before.status().is_waiting() {
            self.fail(&format!("settled twice: {}", step()));
        }
        if before.generation() != after.generation() {
            self.fail(&format!("another use while in the queue: {}", step()));
        }
        let oldest = self.pending(line).min() == Some(arrival);
        match (before.place(), after.place()) {
            (Place::Link(from), Place::Link(to)) if from != to => self.cut(from, Some(to)),
            (Place::Link(from), Place::Head(_)) => self.cut(from, None),
            (Place::Head(_), Place::Link(_)) => {
                self.fail(&format!("a link came to be: {}", step()))
            }
            (Place::Head(from), Place::Head(to)) if to < from => {
                self.fail(&format!("a partial grant was taken back: {}", step()));
            }
            _ => {}
        }
        if before.place().got() < after.place().got() && line == Line::Main {
            self.debt_first(me, "a part was granted");
        }
        if before.place().got() != after.place().got() && !oldest {
            self.fail(&format!("a part went to one that is not the oldest: {}", step()));
        }
        if u64::from(after.place().got()) >= shadow.need && line == Line::Main {
            self.fail(&format!(
                "as much as {} asked for, and not granted: {}",
                shadow.need,
                step()
            ));
        }
        if matches!(after.status(), Status::Granted | Status::GrantedBusy | Status::Shut)
            && let Some(request) = request
        {
            self.settled_by.insert(request, me);
        }
        match after.status() {
            Status::Granted | Status::GrantedBusy => {
                if !oldest {
                    self.fail(&format!("granted before its turn: {}", step()));
                }
                self.debt_first(me, "a waiter was granted");
                match request {
                    Some(request) => {
                        self.granted.push(request);
                        if self.untaken.insert(request, shadow.need).is_some() {
                            self.fail(&format!("request {request} was granted twice"));
                        }
                    }
                    None => self.fail(&format!("granted to nobody: {}", step())),
                }
            }
            Status::Shut if !self.state_of(line).is_closed() => {
                self.fail(&format!("shut in an open queue: {}", step()));
            }
            _ => {}
        }
    }

    /// With no call in flight: no hand holds anything, and no slot is lost.
    pub fn quiescent(&self) {
        if let Some(me) = self.threads.iter().position(|thread| thread.hand != 0) {
            self.fail(&format!("thread {me} still has permits in its hand"));
        }
        if self.existing < self.capacity || (self.existing > self.capacity && !self.in_debt()) {
            self.fail(&format!(
                "there are {} permits, and N is {}, in {:?}",
                self.existing, self.capacity, self.main
            ));
        }
        let mut idle = 0;
        let top = self.free & FREE_NOBODY;
        let mut at = (top != FREE_NOBODY).then(|| SlotIndex(u32::try_from(top).expect("26 bits")));
        while let Some(index) = at {
            idle += 1;
            if idle > self.fresh {
                self.fail("the free list is a ring");
            }
            let shadow = &self.slots[&index.0];
            if shadow.life != Life::Out {
                self.fail(&format!("{index:?} is free and {:?}", shadow.life));
            }
            at = match shadow.word.place() {
                Place::Link(next) => Some(next),
                Place::Head(_) => None,
            };
        }
        let listed =
            self.slots.values().filter(|slot| matches!(slot.life, Life::Listed { .. })).count()
                as u64;
        if idle + listed != self.fresh {
            self.fail(&format!(
                "{} slots were used, {idle} are free, {listed} are queued: the others are lost",
                self.fresh
            ));
        }
    }

    /// Ends the execution; the log has all that led to it.
    pub fn fail(&self, what: &str) -> ! {
        panic!(
            "{}AUDIT: {what}",
            crate::trace::columns(&self.log, &crate::trace::Style::default())
        );
    }
}
