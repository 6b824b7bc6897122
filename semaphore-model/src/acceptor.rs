//! The transition system of `proofs/Level2.v`, executable: it takes a log of the core's writes and says
//! which transition each of them is, or that the proved system has no such transition.
//!
//! # How it is held beside the definitions
//!
//! [`Acceptor`] is `state2`, [`Node`] is `node`, [`Home`] is `where_`, [`Label`] is `label2`; each arm
//! below names the line of `step2` that it is, and checks the guards of that line one by one. Four
//! things are not word for word the same:
//!
//! - *What a thread has in mind* (`phase2`) is what it has read, and the log has writes alone. Where a
//!   line of `step2` asks for a phase, the acceptor asks for what `mind_ok` says of that phase, which
//!   `step2_inv` proves whenever a thread is in it: for `Cert` that all older ones are settled, for a
//!   `Walk` that the run between is. So it accepts each run of the proved system, and perhaps a step
//!   that `step2` would only make from another phase.
//! - *Permits* come into a hand by `GiveBack` and `DropUntaken`, which write nothing. The acceptor makes
//!   these transitions when a hand needs them, and no sooner: `leased` and `untaken` have to have them.
//! - *Write* reads the state word and writes the private word at once, as the definition has it: the
//!   read is what `Publish` compares with, and `fits` is checked there.
//! - *Two queues* share one pool. Each line has a state word and a hint of its own, and its slots are
//!   listed there; the proofs have one (see `proofs/README.md`).
//!
//! Changes that keep generation, place and meaning of a word (who has the waker) are no transitions, and
//! neither are the words that the proofs leave out: waker cells, `parties`, `chain`, the count.

use std::collections::{BTreeMap, BTreeSet};

use semaphore_core::model::{Body, Handle, Line, Place, Role, State, Status, WaiterWord, Write};

/// `label2`: the transitions that write. (`GiveBack`, `DropUntaken` and `Collect` write nothing.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // Their names and their comments are those of `label2`.
pub enum Label {
    FastTake,
    Grow2,
    Forget2,
    Put,
    Fresh,
    Pop,
    Write,
    Publish,
    Withdraw,
    SetNewer,
    SetHint,
    GrantAll,
    GrantPart,
    CutW,
    CutS,
    CutAll,
    CancelIt,
    ShutIt,
    CloseIt,
    Recycle,
    /// No transition of `step2`: the words mean what they meant.
    Nothing,
}

/// `where_`: where a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In the free list.
    InPool,
    /// Out of it, its word still the old one.
    Popped(usize),
    /// Its word is written, and the state word does not name it yet.
    Private(usize),
    /// In that queue.
    Listed(Line),
    /// Cut out of the queue, or given up, and not yet freed.
    Out,
}

/// `node`: a slot.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// `gen`, `sta` and `pay`.
    pub word: WaiterWord,
    /// `want`.
    pub want: u64,
    /// `home`.
    pub home: Home,
    /// `arr`.
    pub arr: u64,
    /// The serial that the next use of the slot will show in its generation.
    serial: u64,
}

impl Node {
    /// `sta n = Waiting`.
    pub fn waits(&self) -> bool {
        self.word.status().is_waiting()
    }

    fn got(&self) -> u64 {
        u64::from(self.word.place().got())
    }
}

/// `thread`, as far as it can be seen.
#[derive(Clone, Copy, Debug, Default)]
struct Hand {
    /// `carry`.
    carry: u64,
    /// Slots that the thread has counted out of the unused ones, and not touched yet.
    fresh: u64,
    /// It has granted since the queue was closed: what it had `Chosen` before is used up.
    spent: bool,
}

/// `state2`.
#[derive(Clone, Debug)]
pub struct Acceptor {
    total: u64,
    main: State,
    gate: State,
    nodes: BTreeMap<u32, Node>,
    free_list: u64,
    threads: BTreeMap<usize, Hand>,
    leased: u64,
    untaken: u64,
    clock: u64,
    published: BTreeSet<u64>,
}

const SLOTS: u64 = (1 << 26) - 1;
const HANDLE: u64 = (1 << 54) - 1;
const GENERATIONS: u64 = (1 << 28) - 1;

type Verdict = Result<Label, String>;

fn need(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

fn granted(status: Status) -> bool {
    matches!(status, Status::Granted | Status::GrantedBusy)
}

fn older(node: &Node) -> Option<u32> {
    match node.word.place() {
        Place::Link(older) => Some(older.0),
        Place::Head(_) => None,
    }
}

impl Acceptor {
    /// `init2`, for a semaphore of so many permits.
    pub fn new(permits: u64) -> Self {
        Self {
            total: permits,
            main: State(permits << 3),
            gate: State(0),
            nodes: BTreeMap::new(),
            free_list: SLOTS,
            threads: BTreeMap::new(),
            leased: 0,
            untaken: 0,
            clock: 0,
            published: BTreeSet::new(),
        }
    }

    /// The transition that a write is.
    ///
    /// # Errors
    ///
    /// What is missing for it to be one: the proved system has no such transition.
    pub fn accept(&mut self, thread: usize, write: &Write) -> Verdict {
        let Write { role, before, after } = *write;
        let label = match role {
            Role::State(line) => self.state(thread, line, before, State(after)),
            Role::Waiter(slot) => self.waiter(thread, slot, before, WaiterWord(after)),
            Role::Free => self.free(thread, before, after),
            Role::Fresh => {
                self.hand(thread).fresh += 1;
                Ok(Label::Fresh)
            }
            Role::Serial(slot) => self.serial(thread, slot, after),
            Role::Need(slot) => {
                self.popped(thread, slot)?.want = after;
                Ok(Label::Nothing)
            }
            Role::Newer(slot) => self.newer(thread, slot, after),
            Role::Hint(line) => self.hint(line, after),
            Role::Existing => self.capacity(thread, after),
            // N differs from `Existing` only in debt, which the proved system does not have.
            Role::Capacity
            | Role::Stamps
            | Role::Count(_)
            | Role::Chunk(_)
            | Role::Parties(_)
            | Role::Chain(_)
            | Role::WakerData(_)
            | Role::WakerTable(_) => Ok(Label::Nothing),
        }
        .map_err(|why| format!("thread {thread}, {role:?}: {why}"))?;
        self.conservation()?;
        Ok(label)
    }

    /// `conservation2`; and `j_sword`: nothing is free while anybody is listed.
    fn conservation(&self) -> Result<(), String> {
        let carried: u64 = self.threads.values().map(|thread| thread.carry).sum();
        let reserved: u64 =
            self.listed(Line::Main).filter(|node| node.waits()).map(Node::got).sum();
        let sum = self.main.free() + self.leased + carried + self.untaken + reserved;
        need(sum == self.total, "the permits do not add up")?;
        need(self.main.free() == 0 || self.listed(Line::Main).next().is_none(), "free, and queued")
    }

    /// With no call in flight: nothing is in any hand.
    ///
    /// # Errors
    ///
    /// Something is.
    pub fn at_rest(&self) -> Result<(), String> {
        match self.threads.iter().find(|(_, hand)| hand.carry > 0) {
            Some((thread, hand)) => Err(format!("thread {thread} still carries {}", hand.carry)),
            None => Ok(()),
        }
    }

    /// The slots that were ever used.
    pub fn nodes(&self) -> &BTreeMap<u32, Node> {
        &self.nodes
    }

    /// The state word of the queue for permits.
    pub fn main(&self) -> State {
        self.main
    }

    fn hand(&mut self, thread: usize) -> &mut Hand {
        self.threads.entry(thread).or_default()
    }

    fn sword(&mut self, line: Line) -> &mut State {
        match line {
            Line::Main => &mut self.main,
            Line::Gate => &mut self.gate,
        }
    }

    fn is_closed(&self, line: Line) -> bool {
        match line {
            Line::Main => self.main.is_closed(),
            Line::Gate => self.gate.is_closed(),
        }
    }

    fn listed(&self, line: Line) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(move |node| node.home == Home::Listed(line))
    }

    fn node(&self, slot: u32) -> Result<Node, String> {
        self.nodes.get(&slot).copied().ok_or_else(|| "a slot that nobody has popped".to_owned())
    }

    fn set(&mut self, slot: u32, node: Node) {
        self.nodes.insert(slot, node);
    }

    /// `home n = Popped t`.
    fn popped(&mut self, thread: usize, slot: u32) -> Result<&mut Node, String> {
        match self.nodes.get_mut(&slot) {
            Some(node) if node.home == Home::Popped(thread) => Ok(node),
            _ => Err("a slot that this thread has not popped".to_owned()),
        }
    }

    /// `between lo hi`, of those listed in that line: all are settled. What `walk_ok` and `cert` say.
    fn settled_between(&self, line: Line, lo: Option<u64>, hi: Option<u64>) -> Result<(), String> {
        let waits = |node: &Node| {
            lo.is_none_or(|lo| lo < node.arr) && hi.is_none_or(|hi| node.arr < hi) && node.waits()
        };
        need(!self.listed(line).any(waits), "over one that waits")
    }

    /// `cut lo hi`.
    fn cut(&mut self, line: Line, lo: Option<u64>, hi: Option<u64>) {
        for node in self.nodes.values_mut() {
            let between = lo.is_none_or(|lo| lo < node.arr) && hi.is_none_or(|hi| node.arr < hi);
            if node.home == Home::Listed(line) && between {
                node.home = Home::Out;
            }
        }
    }

    /// `GiveBack` and `DropUntaken`, as far as the hand has to be filled.
    fn carry(&mut self, thread: usize, at_least: u64) -> Result<(), String> {
        let lacks = at_least.saturating_sub(self.hand(thread).carry);
        let leased = lacks.min(self.leased);
        let untaken = lacks - leased;
        need(untaken <= self.untaken, "permits that nobody has")?;
        self.leased -= leased;
        self.untaken -= untaken;
        self.hand(thread).carry += lacks;
        Ok(())
    }

    /// The guard of `CutS` and `CutAll`: `m = 0 \/ m = c`.
    fn put_all(&mut self, thread: usize, m: u64) -> Result<(), String> {
        if m > 0 {
            self.carry(thread, m)?;
            need(self.hand(thread).carry == m, "not all that it carries")?;
            self.hand(thread).carry = 0;
        }
        Ok(())
    }

    /// `Choose2`: open, or chosen before it was closed; and that once.
    fn chosen(&mut self, thread: usize, line: Line) -> Result<(), String> {
        let closed = self.is_closed(line);
        let hand = self.hand(thread);
        need(!(closed && hand.spent), "chosen after the close")?;
        hand.spent = closed;
        Ok(())
    }

    fn state(&mut self, t: usize, line: Line, before: Option<u64>, after: State) -> Verdict {
        let old = *self.sword(line);
        need(before.is_none_or(|before| before == old.0), "it was another word")?;
        if old == after {
            return Ok(Label::Nothing);
        }
        if !old.is_closed() && after.is_closed() {
            // CloseIt => shut := true
            need(old.body() == after.body(), "a close and something else")?;
            *self.sword(line) = after;
            return Ok(Label::CloseIt);
        }
        need(old.is_closed() == after.is_closed() && old.in_debt() == after.in_debt(), "a flag")?;
        let label = match (old.body(), after.body()) {
            (Body::Available(a), Body::Available(rest)) if rest < a => {
                // FastTake k => sword s = Avail a /\ shut s = false /\ k <= a
                need(!old.is_closed(), "taken from a closed one")?;
                self.leased += a - rest;
                Label::FastTake
            }
            (Body::Available(a), Body::Available(more)) => {
                // Put t => thr s t c p /\ 0 < c /\ sword s = Avail a; Avail (a + c)
                self.put_all(t, more - a)?;
                Label::Put
            }
            (from, Body::Queue(h)) => {
                let node = self.node(h.slot().0)?;
                match (node.home, from) {
                    (Home::Private(owner), _) => {
                        // Publish t => thr s t c (Pub i k s0) /\ sword s = s0 /\ shut s = false
                        need(owner == t, "published what is another thread's")?;
                        need(!old.is_closed(), "joined a closed queue")?;
                        need(node.word.is_of(h) && node.waits(), "not the word that was written")?;
                        // fits n s0
                        let fits = match from {
                            Body::Available(a) => {
                                node.got() == a
                                    && matches!(node.word.place(), Place::Head(_))
                                    && a < node.want
                            }
                            Body::Queue(tail) => node.word.place() == Place::Link(tail.slot()),
                        };
                        need(fits, "a word that does not fit the state word")?;
                        let arr = self.clock;
                        self.set(h.slot().0, Node { home: Home::Listed(line), arr, ..node });
                        self.clock += 1;
                        self.published.insert(h.0);
                        Label::Publish
                    }
                    (Home::Listed(of), Body::Queue(tail)) if of == line => {
                        // CutS t m lo, cur = Some j => sword s = Queue (n, g) /\ cur <> Some n
                        need(tail != h && node.word.is_of(h), "another use of the slot")?;
                        self.settled_between(line, Some(node.arr), None)?;
                        self.cut(line, Some(node.arr), None);
                        Label::CutS
                    }
                    _ => return Err("the tail is not in this queue".to_owned()),
                }
            }
            (Body::Queue(_), Body::Available(m)) => {
                // CutS t m lo, cur = None, or CutAll t m => m = 0 \/ m = c
                self.settled_between(line, None, None)?;
                self.put_all(t, m)?;
                self.cut(line, None, None);
                Label::CutAll
            }
        };
        *self.sword(line) = after;
        Ok(label)
    }

    fn waiter(&mut self, t: usize, i: u32, before: Option<u64>, after: WaiterWord) -> Verdict {
        let node = self.node(i)?;
        let old = node.word;
        need(before.is_none_or(|before| before == old.0), "it was another word")?;
        let same_use = old.generation() == after.generation();
        let next = Node { word: after, ..node };
        match node.home {
            Home::Popped(owner) | Home::Private(owner) => {
                need(owner == t, "an unpublished slot is changed by another thread")?;
                let fresh = matches!(node.home, Home::Popped(_));
                // let g := match home n with Popped _ => S (gen n) | _ => gen n end
                if fresh {
                    need(after.0 >> 36 == node.serial & GENERATIONS, "not the next generation")?;
                } else {
                    need(same_use, "a new generation without a pop")?;
                }
                if after.status().is_waiting() {
                    // Write t => shut s = false /\ free s < k
                    need(u64::from(after.place().got()) < node.want, "had what it wants")?;
                    self.set(i, Node { home: Home::Private(t), ..next });
                    Ok(Label::Write)
                } else {
                    // Withdraw t => Nd g Gone (Head 0) (want n) Out (arr n)
                    need(after.status() == Status::Cancelled, "withdrawn as something else")?;
                    need(after.place() == Place::Head(0), "withdrawn with a place")?;
                    self.set(i, Node { home: Home::Out, ..next });
                    Ok(Label::Withdraw)
                }
            }
            Home::Out => {
                // Recycle i p b => home n = Out; gen and sta as they were
                need(same_use && old.status() == after.status(), "a slot that was cut out")?;
                self.set(i, next);
                Ok(Label::Recycle)
            }
            Home::InPool => Err("a free slot is written to".to_owned()),
            Home::Listed(line) => {
                need(same_use, "another generation while it is in the queue")?;
                need(node.waits(), "settled already")?;
                self.listed_waiter(t, i, line, node, next)
            }
        }
    }

    fn listed_waiter(&mut self, t: usize, i: u32, line: Line, node: Node, next: Node) -> Verdict {
        let (from, to) = (node.word.place(), next.word.place());
        if !next.waits() {
            need(from == to, "settled, and moved")?;
            let label = if granted(next.word.status()) {
                // GrantAll t => thr s t c (Chosen h) /\ lacks <= c
                self.settled_between(line, None, Some(node.arr))?;
                self.chosen(t, line)?;
                let lacks = node.want - node.got();
                self.carry(t, lacks)?;
                self.hand(t).carry -= lacks;
                self.untaken += node.want;
                Label::GrantAll
            } else if next.word.status() == Status::Cancelled {
                // CancelIt t => Th (c + got_in (pay n))
                self.hand(t).carry += node.got();
                Label::CancelIt
            } else {
                // ShutIt t => shut s = true; Th (c + got_in (pay n))
                need(self.is_closed(line), "shut in an open queue")?;
                self.hand(t).carry += node.got();
                Label::ShutIt
            };
            self.set(i, next);
            return Ok(label);
        }
        if from == to {
            // Another waker: the word means what it meant.
            self.set(i, next);
            return Ok(Label::Nothing);
        }
        need(node.word.status() == next.word.status(), "moved, and something else")?;
        match (from, to) {
            (Place::Link(_), Place::Link(c)) => {
                // CutW t lo, cur = Some c => pay m = Link n /\ cur <> Some n
                let older = self.node(c.0)?;
                need(
                    older.home == Home::Listed(line),
                    "a link to a slot that is not in the queue",
                )?;
                need(older.arr < node.arr, "a link to a newer one")?;
                self.settled_between(line, Some(older.arr), Some(node.arr))?;
                self.cut(line, Some(older.arr), Some(node.arr));
                self.set(i, next);
                Ok(Label::CutW)
            }
            (Place::Link(_), Place::Head(0)) => {
                // CutW t lo, cur = None; or GrantPart t 0 => a = 0 -> older (pay n) <> None
                self.settled_between(line, None, Some(node.arr))?;
                self.cut(line, None, Some(node.arr));
                self.set(i, next);
                Ok(Label::CutW)
            }
            (_, Place::Head(got)) => {
                // GrantPart t a => thr s t c (Chosen h) /\ a = c /\ a < want n - got_in (pay n)
                let a = u64::from(got).checked_sub(node.got()).filter(|a| *a > 0);
                let a = a.ok_or_else(|| "a partial grant is taken back".to_owned())?;
                need(u64::from(got) < node.want, "all of it, and not granted")?;
                self.settled_between(line, None, Some(node.arr))?;
                self.chosen(t, line)?;
                self.carry(t, a)?;
                need(self.hand(t).carry == a, "not all that it carries")?;
                self.hand(t).carry = 0;
                self.cut(line, None, Some(node.arr));
                self.set(i, next);
                Ok(Label::GrantPart)
            }
            (Place::Head(_), Place::Link(_)) => Err("the oldest becomes a link".to_owned()),
        }
    }

    /// `Pop t i k`, or `Recycle i p true` for each slot of the chain.
    fn free(&mut self, t: usize, before: Option<u64>, after: u64) -> Verdict {
        let old = self.free_list;
        need(before.is_none_or(|before| before == old), "it was another word")?;
        let top = |word: u64| u32::try_from(word & SLOTS).ok().filter(|_| word & SLOTS != SLOTS);
        self.free_list = after;
        if old >> 26 != after >> 26 {
            // Pop t i k => slot s i n /\ home n = InPool
            let i = top(old).ok_or_else(|| "popped from an empty list".to_owned())?;
            let node = self.node(i)?;
            need(node.home == Home::InPool, "popped what is not in the list")?;
            need(older(&node) == top(after), "popped over another one")?;
            self.set(i, Node { home: Home::Popped(t), ..node });
            return Ok(Label::Pop);
        }
        // Recycle i p true => home n = Out
        let mut at = top(after);
        while at != top(old) {
            let i = at.ok_or_else(|| "a chain that does not end at the list".to_owned())?;
            let node = self.node(i)?;
            need(node.home == Home::Out, "freed what was not cut out")?;
            self.set(i, Node { home: Home::InPool, ..node });
            at = older(&node);
        }
        Ok(Label::Recycle)
    }

    /// The generation that `Write` will show; and `Fresh t k` for a slot that was never used.
    fn serial(&mut self, t: usize, i: u32, serial: u64) -> Verdict {
        if !self.nodes.contains_key(&i) && self.hand(t).fresh > 0 {
            // Fresh t k => Nd 0 Gone (Head 0) 0 (Popped t) 0
            self.hand(t).fresh -= 1;
            let word = WaiterWord((Status::Cancelled as u64) << 33 | 1 << 32);
            let home = Home::Popped(t);
            self.set(i, Node { word, want: 0, home, arr: 0, serial: 0 });
        }
        let node = self.popped(t, i)?;
        need(serial == node.serial + 1, "a serial that is not the next one")?;
        node.serial = serial;
        Ok(Label::Nothing)
    }

    fn newer(&mut self, t: usize, i: u32, handle: u64) -> Verdict {
        if handle == 0 {
            // Its owner prepares it.
            self.popped(t, i)?;
            return Ok(Label::Nothing);
        }
        // SetNewer i h => has s h
        need(self.published.contains(&handle), "a hint to one that was never published")?;
        Ok(Label::SetNewer)
    }

    fn hint(&mut self, line: Line, word: u64) -> Verdict {
        // SetHint t => thr s t c (Cert h)
        let h = Handle(word & HANDLE);
        need(self.published.contains(&h.0), "a hint to one that was never published")?;
        let node = self.node(h.slot().0)?;
        if node.home == Home::Listed(line) && node.word.is_of(h) {
            self.settled_between(line, None, Some(node.arr))?;
        }
        Ok(Label::SetHint)
    }

    fn capacity(&mut self, t: usize, after: u64) -> Verdict {
        if let Some(k) = after.checked_sub(self.total) {
            // Grow2 t k
            self.total = after;
            self.hand(t).carry += k;
            return Ok(Label::Grow2);
        }
        // Forget2 m => m <= leased s; and Collect, as far as it was granted and not polled
        let m = self.total - after;
        let leased = m.min(self.leased);
        need(m - leased <= self.untaken, "permits that nobody has")?;
        self.leased -= leased;
        self.untaken -= m - leased;
        self.total = after;
        Ok(Label::Forget2)
    }
}
