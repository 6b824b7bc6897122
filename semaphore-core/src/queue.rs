//! The queue (essay to come).

use core::task::{Poll, Waker};

use crate::state::{
    Body, Certificate, Handle, MAX_AVAILABLE, Place, SlotIndex, State, Status, WaiterWord,
};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{Line, Role, Word};
use crate::waiter::{Party, Pool, Prepared, Registered, Slot, Ticket, Woken};
use crate::wake::{Wakes, placing};

/// So many granted waiters may stay linked at the old end of a queue before they are cut, all at
/// once: the cut and the push to the free list are then an eighth of a read-modify-write a wait.
const RUN: u32 = 8;

/// How far a release follows hints before it walks the queue instead.
const HOPS: u32 = 4 * RUN;

/// Slots beyond the waiters themselves that a bounded semaphore sets up: settled waiters that are
/// still linked, and slots that a running call has popped or not yet pushed.
const SLACK: u64 = 4 * RUN as u64;

/// How often `waiters()` walks a queue that changes under it before it settles for a count that was
/// never true at one moment.
const COUNT_ATTEMPTS: u32 = 8;

/// One queue: who is in it, and who is the oldest.
pub(crate) struct Queue {
    state: Word,
    hint: Word,
    count: Word,
    limit: u64,
}

/// The queue has no bound, and so nobody counts.
pub(crate) const UNBOUNDED: u64 = u64::MAX;

/// All of a semaphore but the observer.
#[allow(missing_debug_implementations)]
pub struct Raw {
    main: Queue,
    gate: Queue,
    capacity: Word,
    ceiling: u64,
    pub(crate) pool: Pool,
}

/// What came of a request.
pub(crate) enum Joined {
    /// The permits were there and are the caller's.
    Taken,
    /// In the queue.
    Queued(Ticket),
    /// The semaphore is closed.
    Closed,
    /// The queue is as long as it may be.
    Full,
}

/// What came of leaving.
pub(crate) enum Left {
    /// Left the queue with nothing. The waker is to be dropped last.
    Cancelled(Option<Waker>),
    /// The grant was first: the permits are the caller's.
    Granted,
    /// The close was first.
    Closed,
}

/// The oldest waiter of a queue.
enum Front {
    /// It, with its word, and about how many settled ones are linked behind it.
    Waiter(Handle, WaiterWord, u32),
    /// All in the queue are settled.
    Nobody,
    /// The queue changed under the walk.
    Changed,
}

macro_rules! raw_new {
    ($($const:tt)?) => {
        impl Queue {
            $($const)? fn new(line: Line, state: State, limit: u64) -> Self {
                Self {
                    state: Word::new(Role::State(line), state.0),
                    hint: Word::new(Role::Hint(line), 0),
                    count: Word::new(Role::Count(line), 0),
                    limit,
                }
            }
        }

        impl Raw {
            pub(crate) $($const)? fn new(permits: u64, ceiling: u64, limit: u64) -> Self {
                Self {
                    main: Queue::new(Line::Main, State::available(permits), limit),
                    gate: Queue::new(Line::Gate, State::available(0), UNBOUNDED),
                    capacity: Word::new(Role::Capacity, permits),
                    ceiling,
                    pool: Pool::new(),
                }
            }
        }
    };
}

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
raw_new!(const);
#[cfg(any(feature = "loom", feature = "shuttle"))]
raw_new!();

impl Queue {
    #[inline(always)]
    fn state(&self) -> State {
        // ORDERING(S1): pairs with S2; brings the fields of the waiter that the word names, and
        // of all older ones.
        State(self.state.load(Acquire))
    }

    #[inline(always)]
    fn exchange(&self, from: State, to: State) -> bool {
        // ORDERING(S2): release publishes a waiter (S1), or permits with all that came before
        // their release (S3); acquire takes permits, and takes over a run that is then recycled.
        self.state.compare_exchange(from.0, to.0, AcqRel, Relaxed).is_ok()
    }

    fn hint(&self) -> Option<Certificate> {
        // ORDERING(H3): pairs with H4; brings the waiter that it names.
        Certificate::unpack(self.hint.load(Acquire))
    }

    fn set_hint(&self, of: Handle, behind: u32) {
        // ORDERING(H4): pairs with H3; publishes the waiter to those who come by the hint.
        self.hint.store(Certificate { of, behind }.pack(), Release);
    }

    /// One more in the queue, if the bound allows it.
    #[inline(always)]
    fn enter(&self) -> bool {
        if self.limit == UNBOUNDED {
            return true;
        }
        // ORDERING: relaxed, all: only the count matters, and each change is on the same word.
        let mut count = self.count.load(Relaxed);
        while count < self.limit {
            match self.count.compare_exchange_weak(count, count + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        false
    }

    /// One fewer.
    #[inline(always)]
    fn leave(&self) {
        if self.limit != UNBOUNDED {
            // ORDERING: relaxed, as in `enter`.
            self.count.fetch_sub(1, Relaxed);
        }
    }
}

/// From where a run of settled waiters is seen: while the anchor does not change, all that was read
/// behind it was in the queue.
#[derive(Clone, Copy)]
enum Anchor {
    /// The state word: the run starts at the tail.
    State(State),
    /// A waiter that waits: the run starts at its older neighbour.
    Waiter(Handle, WaiterWord),
}

/// A walk from the newest to the oldest.
struct Walk<'a> {
    raw: &'a Raw,
    queue: &'a Queue,
    anchor: Anchor,
    next: Option<SlotIndex>,
}

enum Step {
    Live(Handle, WaiterWord),
    Settled(Handle),
    End,
    Changed,
}

impl<'a> Walk<'a> {
    fn new(raw: &'a Raw, queue: &'a Queue, anchor: Anchor) -> Self {
        let next = match anchor {
            Anchor::State(state) => match state.body() {
                Body::Queue(tail) => Some(tail.slot()),
                Body::Available(_) => None,
            },
            Anchor::Waiter(_, word) => word.place().older(),
        };
        Self { raw, queue, anchor, next }
    }

    /// The next older one, with the anchor found unchanged after its word was read.
    fn step(&mut self) -> Step {
        let Some(index) = self.next else { return Step::End };
        let word = self.raw.pool.slot(index).word();
        let holds = match self.anchor {
            Anchor::State(state) => self.queue.state() == state,
            Anchor::Waiter(at, seen) => self.raw.slot(at).word() == seen,
        };
        if !holds {
            return Step::Changed;
        }
        self.next = word.place().older();
        let at = word.handle_at(index);
        if word.status().is_waiting() { Step::Live(at, word) } else { Step::Settled(at) }
    }

    fn anchor_at(&mut self, at: Handle, word: WaiterWord) {
        self.anchor = Anchor::Waiter(at, word);
    }
}

impl Raw {
    #[inline(always)]
    fn slot(&self, at: Handle) -> &Slot {
        self.pool.slot(at.slot())
    }

    /// Makes room for so many waiters, or says that there cannot be so many.
    pub(crate) fn reserve(&self, waiters: u64) -> bool {
        let slots = waiters.saturating_add(SLACK);
        let possible = SlotIndex::nth(slots - 1).is_some();
        if possible {
            self.pool.reserve(slots);
        }
        possible
    }

    pub(crate) fn ceiling(&self) -> u64 {
        self.ceiling
    }

    pub(crate) fn capacity(&self) -> u64 {
        // ORDERING: relaxed: a figure.
        self.capacity.load(Relaxed)
    }

    pub(crate) fn state(&self) -> State {
        self.main.state()
    }

    pub(crate) fn limit(&self) -> Option<u64> {
        (self.main.limit != UNBOUNDED).then_some(self.main.limit)
    }

    pub(crate) fn main(&self) -> &Queue {
        &self.main
    }

    pub(crate) fn gate(&self) -> &Queue {
        &self.gate
    }

    /// `need` permits at once, or the word that does not have them.
    #[inline(always)]
    pub(crate) fn try_take(&self, need: u32) -> Result<(), State> {
        // ORDERING: relaxed: the exchange decides.
        let mut state = State(self.main.state.load(Relaxed));
        while let Some(rest) = state.take(need) {
            // ORDERING(S3): pairs with S4 and S2; all that came before the release of any of these
            // permits. (Others that take permits in between go on with the release sequence.)
            match self.main.state.compare_exchange_weak(state.0, rest.0, Acquire, Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => state = State(now),
            }
        }
        Err(state)
    }

    /// `n` permits back, if nobody waits and the semaphore is open.
    #[inline(always)]
    pub(crate) fn try_give(&self, n: u64) -> bool {
        // ORDERING: relaxed: the exchange decides.
        let mut state = State(self.main.state.load(Relaxed));
        while let Some(more) = state.give(n) {
            // ORDERING(S4): pairs with S3 and S2; publishes what came before the release.
            match self.main.state.compare_exchange_weak(state.0, more.0, Release, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = State(now),
            }
        }
        false
    }

    /// Takes `need` permits from `queue` or joins it.
    pub(crate) fn join(&self, queue: &Queue, need: u32, waker: Option<&Waker>) -> Joined {
        if queue.state().is_closed() {
            return Joined::Closed;
        }
        // Foreign code, so before anything is ours to lose.
        let waker = waker.cloned();
        if !queue.enter() {
            return Joined::Full;
        }
        let Some(index) = self.pool.pop() else {
            queue.leave();
            return Joined::Full;
        };
        let prepared = self.pool.slot(index).prepare(need, waker);
        self.publish(queue, need, index, prepared)
    }

    /// Puts a prepared waiter into the queue.
    ///
    /// ```text
    /// Available(a), a >= need -> Available(a - need)     took the permits after all
    /// Available(a), a < need  -> Queue(me)               with me = Head(a)
    /// Queue(t)                -> Queue(me)               with me = Link(t)
    /// CLOSED                  -> unchanged
    /// ```
    #[inline(always)]
    fn publish(&self, queue: &Queue, need: u32, index: SlotIndex, prepared: Prepared) -> Joined {
        let slot = self.pool.slot(index);
        let ticket = prepared.ticket(index);
        let me = ticket.handle();
        loop {
            let state = queue.state();
            let joined = if state.is_closed() {
                Joined::Closed
            } else if let Some(rest) = state.take(need) {
                if !queue.exchange(state, rest) {
                    continue;
                }
                Joined::Taken
            } else {
                let place = match state.body() {
                    // Fewer than `need`, so they fit.
                    Body::Available(some) => Place::Head(some as u32),
                    Body::Queue(tail) => Place::Link(tail.slot()),
                };
                slot.set_private(prepared, place);
                if !queue.exchange(state, state.with(Body::Queue(me))) {
                    continue;
                }
                match state.body() {
                    Body::Available(_) => queue.set_hint(me, 0),
                    Body::Queue(tail) => self.slot(tail).set_newer(me),
                }
                return Joined::Queued(ticket);
            };
            let waker = slot.withdraw(prepared);
            self.pool.push(index);
            queue.leave();
            drop(waker);
            return joined;
        }
    }

    /// Places `hand` permits: with the oldest waiters, as far as they go, or with the free ones.
    ///
    /// ```text
    /// Available(a)           -> Available(a + hand)
    /// Queue, all settled     -> Available(hand)
    /// oldest lacks more      :  Head(got) -> Head(got + hand)
    /// oldest lacks no more   :  waiting -> Granted, and on with the rest
    /// CLOSED and Queue       :  its waiters are ended first
    /// ```
    pub(crate) fn release(&self, mut hand: u64, wakes: &mut Wakes) {
        let queue = &self.main;
        while hand > 0 {
            let state = queue.state();
            match state.body() {
                Body::Available(some) => {
                    if queue.exchange(state, state.with(Body::Available(some + hand))) {
                        hand = 0;
                    }
                }
                Body::Queue(_) if state.is_closed() => hand += self.end_waiters(queue, wakes),
                Body::Queue(tail) => match self.front(queue, state, tail) {
                    Front::Waiter(at, word, behind) => {
                        hand -= self.feed(queue, hand, at, word, behind, wakes);
                    }
                    Front::Nobody => {
                        if queue.exchange(state, state.with(Body::Available(hand))) {
                            self.recycle(tail.slot(), None);
                            hand = 0;
                        }
                    }
                    Front::Changed => {}
                },
            }
            if hand == 0 && state.is_closed() {
                self.look_whether_drained(wakes);
            }
        }
    }

    /// Gives the oldest waiter of an open queue what it lacks out of `hand`; says how much it took.
    #[inline(always)]
    fn feed(
        &self,
        queue: &Queue,
        hand: u64,
        at: Handle,
        word: WaiterWord,
        behind: u32,
        wakes: &mut Wakes,
    ) -> u64 {
        let slot = self.slot(at);
        let got = word.place().got();
        // If the slot has another user by now this is nonsense, and the exchange fails.
        let lacks = u64::from(slot.need().saturating_sub(got));
        if hand < lacks {
            if !slot.move_to(word, Place::Head(got + hand as u32)) {
                return 0;
            }
            queue.set_hint(at, 0);
            if let Place::Link(older) = word.place() {
                self.recycle(older, None);
            }
            return hand;
        }
        let Ok(woken) = slot.grant(word, wakes.is_full()) else { return 0 };
        self.advance(queue, at, behind + 1);
        queue.leave();
        wakes.add(self, at.slot(), woken);
        lacks
    }

    /// After a grant: names the next waiter in the hint, and cuts the settled ones if they are many.
    #[inline(always)]
    fn advance(&self, queue: &Queue, granted: Handle, behind: u32) {
        let slot = self.slot(granted);
        match self.follower(granted) {
            Some((next, word)) if word.status().is_waiting() => {
                if behind >= RUN
                    && word.place() == Place::Link(granted.slot())
                    && self.slot(next).move_to(word, Place::Head(0))
                {
                    queue.set_hint(next, 0);
                    self.recycle(granted.slot(), None);
                } else {
                    queue.set_hint(next, behind);
                }
            }
            _ => {
                // Cut and reused already: then there is a better hint than this.
                if !slot.word().is_of(granted) {
                    return;
                }
                queue.set_hint(granted, behind);
                if behind >= RUN {
                    let state = queue.state();
                    if state.body() == Body::Queue(granted)
                        && !state.is_closed()
                        && queue.exchange(state, state.with(Body::Available(0)))
                    {
                        self.recycle(granted.slot(), None);
                    }
                }
            }
        }
    }

    /// The waiter behind `settled`, if the hint to it can be believed: then all that is older than it
    /// is settled, given that all that is older than `settled` is.
    #[inline(always)]
    fn follower(&self, settled: Handle) -> Option<(Handle, WaiterWord)> {
        let next = self.slot(settled).newer()?;
        let word = self.slot(next).word();
        let follows = word.is_of(next)
            && (word.place() == Place::Link(settled.slot())
                || matches!(word.status(), Status::Granted | Status::GrantedBusy));
        // The slot still in the same use after that: so it was its hint, and its link.
        (follows && self.slot(settled).word().is_of(settled)).then_some((next, word))
    }

    /// The oldest waiter: by the hint and at most `HOPS` steps, or else by a walk.
    #[inline(always)]
    fn front(&self, queue: &Queue, state: State, tail: Handle) -> Front {
        let mut hint = queue.hint();
        for _ in 0..HOPS {
            let Some(Certificate { of, behind }) = hint else { break };
            let word = self.slot(of).word();
            if !word.is_of(of) {
                break;
            }
            if word.status().is_waiting() {
                return Front::Waiter(of, word, behind);
            }
            if of == tail {
                return Front::Nobody;
            }
            hint = self.follower(of).map(|(next, _)| Certificate { of: next, behind: behind + 1 });
        }
        self.search(queue, state)
    }

    /// The oldest waiter, by a walk from the tail. Mends the hints on its way.
    #[cold]
    fn search(&self, queue: &Queue, state: State) -> Front {
        let mut walk = Walk::new(self, queue, Anchor::State(state));
        let mut oldest: Option<(Handle, WaiterWord)> = None;
        let mut behind = 0;
        loop {
            match walk.step() {
                Step::Live(at, word) => {
                    if let Some((newer, link)) = oldest
                        && link.place() == Place::Link(at.slot())
                        && self.slot(at).newer() != Some(newer)
                    {
                        self.slot(at).set_newer(newer);
                    }
                    oldest = Some((at, word));
                    behind = 0;
                    walk.anchor_at(at, word);
                }
                Step::Settled(_) => behind += 1,
                Step::End => break,
                Step::Changed => return Front::Changed,
            }
        }
        match oldest {
            Some((at, word)) => {
                queue.set_hint(at, behind);
                Front::Waiter(at, word, behind)
            }
            None => Front::Nobody,
        }
    }

    /// Cuts the run of settled waiters behind `anchor` out of the queue, up to the next live one.
    ///
    /// ```text
    /// Queue(n)  -> Queue(p) | Available(0)
    /// Link(n)   -> Link(p)  | Head(0)
    /// ```
    fn collapse(&self, queue: &Queue, anchor: Anchor) -> bool {
        let mut walk = Walk::new(self, queue, anchor);
        let first = walk.next;
        let live = loop {
            match walk.step() {
                Step::Live(at, _) => break Some(at),
                Step::Settled(_) => {}
                Step::End => break None,
                Step::Changed => return false,
            }
        };
        match anchor {
            Anchor::State(state) => {
                let body = live.map_or(Body::Available(0), Body::Queue);
                if !queue.exchange(state, state.with(body)) {
                    return false;
                }
            }
            Anchor::Waiter(at, word) => {
                let place = live.map_or(Place::Head(0), |live| Place::Link(live.slot()));
                if !self.slot(at).move_to(word, place) {
                    return false;
                }
                match live {
                    Some(live) => self.slot(live).set_newer(at),
                    None => queue.set_hint(at, 0),
                }
            }
        }
        if let Some(first) = first {
            self.recycle(first, live.map(Handle::slot));
        }
        true
    }

    /// Frees the run that the caller has just cut, from `first` to before `stop`.
    fn recycle(&self, first: SlotIndex, stop: Option<SlotIndex>) {
        let mut chain: Option<(SlotIndex, SlotIndex)> = None;
        let mut skipped = false;
        let mut at = Some(first);
        while let Some(index) = at
            && at != stop
        {
            let slot = self.pool.slot(index);
            let word = slot.word();
            at = word.place().older();
            let free = match word.status() {
                Status::GrantedBusy | Status::Shut => slot.let_go(Party::List),
                _ => true,
            };
            if !free {
                skipped = true;
                continue;
            }
            chain = Some(match chain {
                None => (index, index),
                Some((first, last)) => {
                    if skipped {
                        self.pool.link_free(last, index);
                    }
                    (first, index)
                }
            });
            skipped = false;
        }
        if let Some((first, last)) = chain {
            self.pool.push_chain(first, last);
        }
    }

    /// One party lets go of a slot; the last one frees it.
    pub(crate) fn let_go(&self, index: SlotIndex, who: Party) {
        if self.pool.slot(index).let_go(who) {
            self.pool.push(index);
        }
    }

    /// What has become of a waiter. If it waits, `waker` is the one that will be woken.
    #[inline(always)]
    pub(crate) fn poll(&self, queue: &Queue, ticket: Ticket, waker: &Waker) -> Poll<bool> {
        let slot = self.pool.slot(ticket.slot());
        loop {
            let word = slot.word();
            if !slot.is_of(word, ticket) {
                return Poll::Ready(true);
            }
            match word.status() {
                Status::Shut => {
                    self.let_go(ticket.slot(), Party::Owner);
                    return Poll::Ready(false);
                }
                status if !status.is_waiting() => return Poll::Ready(true),
                _ => {
                    let unused = match slot.register(ticket, waker) {
                        Registered::Waits(old) if queue.state().is_closed() => {
                            placing(self, |wakes| self.finish_close(queue, wakes));
                            [old, None]
                        }
                        Registered::Waits(old) => {
                            drop(old);
                            return Poll::Pending;
                        }
                        Registered::Settled(unused) => [unused, None],
                        Registered::GrantedAtCell(unused) => {
                            self.let_go(ticket.slot(), Party::Settler);
                            unused
                        }
                        Registered::ShutAtCell(unused) => unused,
                    };
                    drop(unused);
                }
            }
        }
    }

    /// Gives back `n` permits of the caller's.
    #[inline]
    pub(crate) fn give_back(&self, n: u64) {
        if n != 0 && !self.try_give(n) {
            placing(self, |wakes| self.release(n, wakes));
        }
    }

    /// The owner of a waiter gives up.
    pub(crate) fn cancel(&self, queue: &Queue, ticket: Ticket, wakes: &mut Wakes) -> Left {
        let slot = self.pool.slot(ticket.slot());
        let (settled, waker) = loop {
            let word = slot.word();
            if !slot.is_of(word, ticket) {
                return Left::Granted;
            }
            match word.status() {
                Status::Shut => {
                    self.let_go(ticket.slot(), Party::Owner);
                    return Left::Closed;
                }
                status if !status.is_waiting() => return Left::Granted,
                _ => {
                    if let Ok(waker) = slot.cancel(word) {
                        break (word, waker);
                    }
                }
            }
        };
        self.unlink(queue, ticket.handle());
        queue.leave();
        let got = u64::from(settled.place().got());
        if got > 0 {
            self.release(got, wakes);
        }
        if queue.state().is_closed() {
            self.finish_close(queue, wakes);
        }
        Left::Cancelled(waker)
    }

    /// Gets a cancelled waiter out of its queue: by its own hand, or it finds that it is out.
    fn unlink(&self, queue: &Queue, gone: Handle) {
        let slot = self.slot(gone);
        loop {
            let state = queue.state();
            if state.body() == Body::Queue(gone) {
                if self.collapse(queue, Anchor::State(state)) {
                    return;
                }
                continue;
            }
            if let Some(newer) = slot.newer() {
                let word = self.slot(newer).word();
                // The slot of `gone` still in that use after its neighbour's word was read, or the link
                // could be to a later user of it.
                if word.waits_as(newer)
                    && word.place() == Place::Link(gone.slot())
                    && slot.word().is_of(gone)
                {
                    if self.collapse(queue, Anchor::Waiter(newer, word)) {
                        return;
                    }
                    continue;
                }
            }
            if !slot.word().is_of(gone) || self.sweep(queue, state, gone) {
                return;
            }
        }
    }

    /// Walks the queue until it meets `gone` and cuts it out. True if `gone` is out.
    #[cold]
    fn sweep(&self, queue: &Queue, state: State, gone: Handle) -> bool {
        let mut walk = Walk::new(self, queue, Anchor::State(state));
        loop {
            match walk.step() {
                Step::Live(at, word) => walk.anchor_at(at, word),
                Step::Settled(at) if at == gone => return self.collapse(queue, walk.anchor),
                Step::Settled(_) => {}
                Step::End => return true,
                Step::Changed => return false,
            }
        }
    }

    /// Closes the semaphore, and ends all who wait.
    pub(crate) fn close(&self, wakes: &mut Wakes) {
        // ORDERING(S5): as S2. The linearization point of `close`.
        self.main.state.fetch_or(State::CLOSED_BIT, AcqRel);
        self.finish_close(&self.main, wakes);
    }

    /// Does what is left to do for a closed queue, whoever closed it.
    #[cold]
    pub(crate) fn finish_close(&self, queue: &Queue, wakes: &mut Wakes) {
        let hand = self.end_waiters(queue, wakes);
        if hand > 0 {
            self.release(hand, wakes);
        } else {
            self.look_whether_drained(wakes);
        }
    }

    /// Ends the waiters of a closed queue; returns the permits that they had in part.
    ///
    /// ```text
    /// waiting                         -> Shut, one after the other from the tail
    /// CLOSED, Queue with all settled  -> CLOSED, Available(0)
    /// ```
    #[cold]
    fn end_waiters(&self, queue: &Queue, wakes: &mut Wakes) -> u64 {
        let mut hand = 0;
        loop {
            let state = queue.state();
            let Body::Queue(tail) = state.body() else { return hand };
            let mut walk = Walk::new(self, queue, Anchor::State(state));
            let settled = loop {
                match walk.step() {
                    Step::Live(at, word) => match self.slot(at).shut(word) {
                        Ok(woken) => {
                            hand += u64::from(word.place().got());
                            queue.leave();
                            match woken {
                                Woken::Nobody => self.let_go(at.slot(), Party::Settler),
                                woken => wakes.add(self, at.slot(), woken),
                            }
                        }
                        Err(_) => walk.next = Some(at.slot()),
                    },
                    Step::Settled(_) => {}
                    Step::End => break true,
                    Step::Changed => break false,
                }
            };
            if settled && queue.exchange(state, state.with(Body::Available(0))) {
                self.recycle(tail.slot(), None);
                return hand;
            }
        }
    }

    /// Lets those through who wait for a closed semaphore to have all its permits back.
    ///
    /// The state is read by a read-modify-write: whoever changes it or N calls this afterwards, and
    /// of two such calls the second in the order of the state word sees both changes.
    fn look_whether_drained(&self, wakes: &mut Wakes) {
        // ORDERING(S6): pairs with itself and S2, S4.
        let state = State(self.main.state.fetch_or(0, AcqRel));
        // ORDERING: relaxed: its last change is before S6 of the call that made it.
        if state.is_closed() && state.body() == Body::Available(self.capacity.load(Relaxed)) {
            // ORDERING(S5): as S2.
            self.gate.state.fetch_or(State::CLOSED_BIT, AcqRel);
            self.end_waiters(&self.gate, wakes);
        }
    }

    /// `n` more permits exist, in the caller's hand; or the number there would be.
    pub(crate) fn grow(&self, n: u64) -> Result<(), u64> {
        // ORDERING: relaxed, all: only the number matters; the permits are published by `release`.
        let mut now = self.capacity.load(Relaxed);
        loop {
            let more = now.saturating_add(n);
            if more > self.ceiling {
                return Err(more);
            }
            match self.capacity.compare_exchange_weak(now, more, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(seen) => now = seen,
            }
        }
    }

    /// `n` permits of the caller's hand cease to exist.
    pub(crate) fn shrink_by_hand(&self, n: u64, wakes: &mut Wakes) {
        // ORDERING: relaxed: S6 orders it with the state.
        self.capacity.fetch_sub(n, Relaxed);
        self.look_whether_drained(wakes);
    }

    /// How many wait. Exact if no call is in flight.
    pub(crate) fn waiters(&self) -> u64 {
        if self.main.limit != UNBOUNDED {
            // ORDERING: relaxed: a figure.
            return self.main.count.load(Relaxed);
        }
        let mut count = 0;
        for _ in 0..COUNT_ATTEMPTS {
            count = 0;
            let state = self.main.state();
            let mut walk = Walk::new(self, &self.main, Anchor::State(state));
            loop {
                match walk.step() {
                    Step::Live(at, word) => {
                        count += 1;
                        walk.anchor_at(at, word);
                    }
                    Step::Settled(_) => {}
                    Step::End => return count,
                    Step::Changed => break,
                }
            }
        }
        count
    }
}

const _: () = assert!(MAX_AVAILABLE == u64::MAX >> 3);
