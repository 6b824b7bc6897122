//! The waiter's slot: its word, its waker cell, and the pool that all slots come from.
//!
//! The unsafe code of the crate is here and in [`crate::wake`]. Everything above works with
//! handles and words.
//!
//! # Who may touch what
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `word` | private: the owner; published: whoever wins its compare-exchange; settled and cut: the cutter | anybody, at any time |
//! | `newer` | anybody, at any time: a hint | anybody |
//! | `serial` | whoever popped the slot, before it is published | the owner of any use of the slot |
//! | `need` | the same | anybody; the value means something if a compare-exchange on `word` succeeds afterwards |
//! | `parties` | the two or three who let go of a busy or shut waiter | they |
//! | `chain` | whoever settled the waiter and has yet to take its waker | he |
//! | `data`, `table` | the owner, while the word does not say that they hold a waker | the owner; whoever settles the waiter |
//!
//! # Invariants
//!
//! - **P1** (chunks stay). A chunk pointer goes from null to a leaked `Box<[Slot]>` once and keeps
//!   that value until the pool is dropped. So a slot may be touched for as long as the pool is
//!   borrowed, whoever uses it.
//! - **P2** (slots are known before they are named). A [`SlotIndex`] is made by [`Pool::fresh`]
//!   alone, after the slot's chunk is there, and reaches other threads through words that are
//!   released and acquired. So whoever has one finds the chunk pointer.
//! - **C1** (first waker). Within one use of a slot the status `First` is entered once, by its owner
//!   and after the cell was written, and the cell is not written again while it lasts; `First`
//!   left is not entered again. So if a compare-exchange takes a word from `First`, the two halves
//!   that were read between loading that word and the exchange are the waker.
//! - **C2** (the cell's user). The owner of a published waiter writes to the cell in `Swapping` alone.
//!   Who takes the word from `Replaced` or `First` to `GrantedBusy` or `Shut` has the waker to itself;
//!   if the word is taken from `Swapping` to `GrantedBusy`, the owner still has the cell. Either
//!   way the slot is not freed before the one who has the cell says so in `parties`; in
//!   `Shut` not before the owner says so, too.
//! - **C3** (one owner). The waker in a cell belongs to the word: one transition out of a status
//!   with a waker takes it out of the cell, and it is rebuilt once, by whoever made that
//!   transition.
//! - **F1** (exclusive). A slot between its pop from the free list and its publication belongs to the
//!   thread that popped it; a slot that was cut out of its queue and that nobody else has to let go
//!   of belongs to the cutter.

use alloc::boxed::Box;
use core::mem::ManuallyDrop;
use core::task::{RawWakerVTable, Waker};

use crate::state::{FreeTop, Generation, Handle, Place, SlotIndex, Status, WaiterWord};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{Ptr, Role, Word};
use crate::wake::Unused;

/// One of the parties that let go of a waiter before its slot can be freed.
#[derive(Clone, Copy)]
pub(crate) enum Party {
    /// Whoever cut it out of the queue.
    List = 1,
    /// Whoever settled it and took its waker.
    Settler = 2,
    /// The future.
    Owner = 4,
}

/// A slot. Its own cache line.
#[repr(align(64))]
pub(crate) struct Slot {
    word: Word,
    newer: Word,
    serial: Word,
    need: Word,
    parties: Word,
    chain: Word,
    data: Ptr<()>,
    table: Ptr<RawWakerVTable>,
}

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
const _: () = assert!(size_of::<Slot>() == 64);

/// The two halves of a waker, as they stand in a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Halves {
    data: *mut (),
    table: *mut RawWakerVTable,
}

impl Halves {
    fn of(waker: &Waker) -> Self {
        Self {
            data: waker.data().cast_mut(),
            table: core::ptr::from_ref(waker.vtable()).cast_mut(),
        }
    }

    fn into_halves(waker: Waker) -> Self {
        Self::of(&ManuallyDrop::new(waker))
    }

    /// # Safety
    ///
    /// The halves came from one [`Halves::into_halves`], and this is the only call for it (C3).
    unsafe fn into_waker(self) -> Waker {
        // SAFETY: `table` is the `&'static` vtable of a `Waker` that was taken apart.
        let table = unsafe { &*self.table };
        // SAFETY: data and vtable are of one waker, which nobody else will use (C3).
        unsafe { Waker::new(self.data, table) }
    }
}

/// What became of an attempt to give a waiter its waker, and which wakers are left to be dropped.
pub(crate) enum Registered {
    /// The waiter waits, and that waker will be woken.
    Waits(Unused),
    /// The waiter is settled, and its slot may have another user by now.
    Settled(Unused),
    /// Granted while its owner was at the cell: the owner has to let go of the slot as the settler.
    GrantedAtCell([Unused; 2]),
    /// Shut while its owner was at the cell.
    ShutAtCell([Unused; 2]),
}

impl Slot {
    fn new(index: SlotIndex) -> Self {
        let SlotIndex(slot) = index;
        let unused = WaiterWord::new(Generation::of_serial(0), Status::Cancelled, Place::Head(0));
        Self {
            word: Word::new(Role::Waiter(slot), unused.0),
            newer: Word::new(Role::Newer(slot), 0),
            serial: Word::new(Role::Serial(slot), 0),
            need: Word::new(Role::Need(slot), 0),
            parties: Word::new(Role::Parties(slot), 0),
            chain: Word::new(Role::Chain(slot), 0),
            data: Ptr::null(Role::WakerData(slot)),
            table: Ptr::null(Role::WakerTable(slot)),
        }
    }

    /// The waiter word now.
    #[inline(always)]
    pub(crate) fn word(&self) -> WaiterWord {
        // ORDERING(W1): pairs with W2, W3, W4 and W5; brings all that led to the word: the
        // releases that granted, and the fields that were written before it was published.
        WaiterWord(self.word.load(Acquire))
    }

    /// `from -> to`, or the word that was there instead.
    #[inline(always)]
    fn exchange(&self, from: WaiterWord, to: WaiterWord) -> Result<(), WaiterWord> {
        // ORDERING(W2): release, for W1 of whoever finds the word settled, promoted or collapsed:
        // a granter publishes what its caller did before the release. Acquire, for permits
        // given by others that are passed on (a partial grant in a cancelled or shut
        // waiter), and for the fields of a run that is recycled on the strength of it.
        // Failure acquires as W1 does: the word is looked at as if it had been loaded.
        match self.word.compare_exchange(from.0, to.0, AcqRel, Acquire) {
            Ok(_) => Ok(()),
            Err(now) => Err(WaiterWord(now)),
        }
    }

    /// Changes the place of a waiter that waits: promotes, collapses or grants in part.
    #[inline(always)]
    pub(crate) fn move_to(&self, from: WaiterWord, place: Place) -> bool {
        debug_assert!(from.status().is_waiting());
        self.exchange(from, from.with_place(place)).is_ok()
    }

    /// Permits the waiter asks for.
    #[inline(always)]
    pub(crate) fn need(&self) -> u32 {
        // ORDERING: relaxed. Written before publication (W1 brings it), and a value of another use
        // of the slot is never acted on: the compare-exchange that follows fails.
        self.need.load(Relaxed) as u32
    }

    /// The hint to the next newer waiter.
    #[inline(always)]
    pub(crate) fn newer(&self) -> Option<Handle> {
        // ORDERING(N1): pairs with N2; brings the chunk and the fields of the waiter it names.
        Handle::from_word(self.newer.load(Acquire))
    }

    /// Leaves the hint to the next newer waiter.
    #[inline(always)]
    pub(crate) fn set_newer(&self, newer: Handle) {
        // ORDERING(N2): pairs with N1; publishes the waiter to those who come by this hint.
        self.newer.store(newer.0, Release);
    }

    /// The slot's reuse count, to tell one use from another for good.
    #[inline(always)]
    fn serial(&self) -> u64 {
        // ORDERING: relaxed. It is compared after W1 read the word of a later use, whose owner
        // had stored the new serial before it (W5): then the new one is seen.
        self.serial.load(Relaxed)
    }

    /// Whether `word`, just loaded from this slot, is of the owner's use of it. If not, that use is over
    /// and was granted: cancelled it was by the owner, and shut it would still be there.
    #[inline(always)]
    pub(crate) fn is_of(&self, word: WaiterWord, ticket: Ticket) -> bool {
        word.is_of(ticket.handle()) && self.serial() == ticket.serial()
    }

    fn halves(&self) -> Halves {
        // ORDERING(H1): pairs with H2, for the owner that compares wakers: if a half was written by a
        // later user of the slot, then the word that it loads next is not its own any more. (A
        // settler needs none of it: C1 or C2 says that it reads one waker.)
        Halves { data: self.data.load(Acquire), table: self.table.load(Acquire) }
    }

    fn set_halves(&self, halves: Halves) {
        // ORDERING(H2): pairs with H1; what a later user of the slot hands on is that the word of the
        // use before it was settled. To settlers the halves are published by the word (W3, W5).
        self.data.store(halves.data, Release);
        self.table.store(halves.table, Release);
    }

    /// Starts a new use of a slot that was just popped, with the waker that it will have.
    ///
    /// Until it is published the slot is the caller's alone (F1).
    #[inline(always)]
    pub(crate) fn prepare(&self, need: u32, waker: Option<Waker>) -> Prepared {
        let serial = self.serial().wrapping_add(1) & Ticket::SERIAL_MASK;
        // ORDERING: relaxed, all. The slot is private; W5 and then the exchange of the state
        // word publish them.
        self.serial.store(serial, Relaxed);
        self.need.store(u64::from(need), Relaxed);
        self.newer.store(0, Relaxed);
        self.parties.store(0, Relaxed);
        let status = match waker {
            Some(waker) => {
                self.set_halves(Halves::into_halves(waker));
                Status::First
            }
            None => Status::Bare,
        };
        Prepared { serial, status }
    }

    /// Writes the word that others will see once the state word names this use of the slot.
    ///
    /// ```text
    /// any settled word of an earlier use -> Bare | First, Link(tail) | Head(available)
    /// ```
    #[inline(always)]
    pub(crate) fn set_private(&self, prepared: Prepared, place: Place) {
        let word = WaiterWord::new(prepared.generation(), prepared.status, place);
        // ORDERING(W5): pairs with W1 of a former owner of the slot, for whom the change of
        // generation means that it was granted: release hands on what the granter published,
        // by the chain W2 -> cutter's W1 -> T2 -> T1 -> here.
        self.word.store(word.0, Release);
    }

    /// Takes back what was prepared: nobody has seen it. Returns its waker.
    pub(crate) fn withdraw(&self, prepared: Prepared) -> Option<Waker> {
        let word = WaiterWord::new(prepared.generation(), Status::Cancelled, Place::Head(0));
        // ORDERING(W5): as above.
        self.word.store(word.0, Release);
        match prepared.status {
            // SAFETY: C3, for a waiter that was never published: `prepare` took it apart.
            Status::First => Some(unsafe { self.halves().into_waker() }),
            _ => None,
        }
    }

    /// Writes the link of the free list, into the word of a slot that is the caller's (F1).
    fn set_free_link(&self, next: Option<SlotIndex>) {
        // ORDERING: relaxed load: only the one who has the slot to himself writes to it.
        let word = WaiterWord(self.word.load(Relaxed));
        debug_assert!(!word.status().is_waiting());
        let place = next.map_or(Place::Head(0), Place::Link);
        // ORDERING(W4): release, so that a former owner's W1 that reads this instead of the
        // granter's W2 is told the same: the cutter had acquired it.
        self.word.store(word.with_place(place).0, Release);
    }

    /// Grants a waiter all that it lacks.
    ///
    /// ```text
    /// Bare     -> Granted       no waker: the owner will see when it polls
    /// First    -> Granted       the waker is ours (C1)
    /// Replaced -> GrantedBusy   the waker is ours, the slot not yet free to go (C2)
    /// Swapping -> GrantedBusy   no waker: the owner is awake; it lets the slot go (C2)
    /// ```
    ///
    /// With `keep` a waker stays in the cell, to be fetched later by [`Slot::fetch_waker`].
    #[inline(always)]
    pub(crate) fn grant(&self, from: WaiterWord, keep: bool) -> Result<Woken, WaiterWord> {
        let busy = match from.status() {
            Status::First => keep,
            Status::Replaced => true,
            Status::Swapping => {
                self.exchange(from, from.with_status(Status::GrantedBusy))?;
                return Ok(Woken::Nobody);
            }
            _ => {
                self.exchange(from, from.with_status(Status::Granted))?;
                return Ok(Woken::Nobody);
            }
        };
        if busy {
            self.exchange(from, from.with_status(Status::GrantedBusy))?;
            return Ok(Woken::InCell);
        }
        let halves = self.halves();
        self.exchange(from, from.with_status(Status::Granted))?;
        // SAFETY: C1: the exchange took the word from `First`, so these are the halves of the
        // waker, and by C3 they are ours.
        Ok(Woken::Waker(unsafe { halves.into_waker() }))
    }

    /// `First -> Granted` alone, with the waker; nothing if the word was not `from` any more.
    #[inline(always)]
    pub(crate) fn grant_first(&self, from: WaiterWord) -> Option<Waker> {
        debug_assert!(from.status() == Status::First);
        let halves = self.halves();
        self.exchange(from, from.with_status(Status::Granted)).ok()?;
        // SAFETY: C1 and C3, as in `grant`.
        Some(unsafe { halves.into_waker() })
    }

    /// Ends a waiter because the semaphore is closed: any waiting status `-> Shut`.
    pub(crate) fn shut(&self, from: WaiterWord) -> Result<Woken, WaiterWord> {
        self.exchange(from, from.with_status(Status::Shut))?;
        Ok(if from.status().has_waker() { Woken::InCell } else { Woken::Nobody })
    }

    /// The owner leaves: any waiting status `-> Cancelled`. Returns its waker.
    pub(crate) fn cancel(&self, from: WaiterWord) -> Result<Option<Waker>, WaiterWord> {
        debug_assert!(from.status() != Status::Swapping, "the owner is the one that swaps");
        let halves = self.halves();
        self.exchange(from, from.with_status(Status::Cancelled))?;
        // SAFETY: by the exchange nobody else settled the waiter, so the waker that the owner itself
        // put into the cell is still its own (C3); read before, since others may now reuse it.
        Ok(from.status().has_waker().then(|| unsafe { halves.into_waker() }))
    }

    /// The waker of a waiter that the caller settled with [`Woken::InCell`].
    pub(crate) fn fetch_waker(&self) -> Waker {
        // SAFETY: C2 and C3: the caller made the transition, and calls this once for it (the
        // chain in `Wakes` holds each such slot once).
        unsafe { self.halves().into_waker() }
    }

    /// The owner of a waiter polls with `waker`: makes sure that it will be the one woken.
    ///
    /// ```text
    /// First | Replaced, same waker -> unchanged
    /// Bare                         -> Swapping -> First
    /// First | Replaced             -> Swapping -> Replaced
    /// ```
    ///
    /// Runs foreign code once: a clone, before the word is touched. What is to be dropped is returned.
    #[inline(always)]
    pub(crate) fn register(&self, ticket: Ticket, waker: &Waker) -> Registered {
        let word = self.word();
        if word.status().has_waker() && self.halves() == Halves::of(waker) {
            // The halves are of this use of the slot only if it still waits with that waker.
            // Case: granted and reused between the two loads by a request with our waker, while
            // the waker that we had registered, another one, was woken. Then the word has changed.
            return if self.still_waits(self.word(), ticket) {
                Registered::Waits(None.into())
            } else {
                Registered::Settled(None.into())
            };
        }
        self.swap(ticket, waker.clone())
    }

    fn still_waits(&self, word: WaiterWord, ticket: Ticket) -> bool {
        word.status().is_waiting() && self.is_of(word, ticket)
    }

    #[inline(never)]
    fn swap(&self, ticket: Ticket, fresh: Waker) -> Registered {
        // The clone was foreign code, and may have settled this waiter: the word decides.
        let mut word = self.word();
        let old = loop {
            if !self.still_waits(word, ticket) {
                return Registered::Settled(Some(fresh).into());
            }
            let halves = self.halves();
            match self.exchange(word, word.with_status(Status::Swapping)) {
                Ok(()) => break word.status().has_waker().then_some(halves),
                Err(now) => word = now,
            }
        };
        word = word.with_status(Status::Swapping);
        // SAFETY: C3: the exchange to `Swapping` took it out of the cell.
        let old = old.map(|halves| unsafe { halves.into_waker() });
        let status = if old.is_none() { Status::First } else { Status::Replaced };
        let fresh = Halves::into_halves(fresh);
        self.set_halves(fresh);
        loop {
            // ORDERING(W3) is that of W2: release publishes the halves to whoever settles.
            match self.exchange(word, word.with_status(status)) {
                Ok(()) => return Registered::Waits(old.into()),
                Err(now) if now.status().is_waiting() => word = now,
                Err(now) => {
                    // SAFETY: C3: the word never said that the cell holds it.
                    let fresh = unsafe { fresh.into_waker() };
                    let wakers = [old.into(), Some(fresh).into()];
                    return if now.status() == Status::GrantedBusy {
                        Registered::GrantedAtCell(wakers)
                    } else {
                        Registered::ShutAtCell(wakers)
                    };
                }
            }
        }
    }

    /// Lets go of a busy or shut waiter. True for the last party: it frees the slot.
    pub(crate) fn let_go(&self, who: Party) -> bool {
        // ORDERING: relaxed load: the caller has seen the settled word, which is frozen.
        let word = WaiterWord(self.word.load(Relaxed));
        let all = match word.status() {
            Status::Shut => Party::List as u64 | Party::Settler as u64 | Party::Owner as u64,
            _ => Party::List as u64 | Party::Settler as u64,
        };
        // ORDERING(L1): pairs with itself: the last party's acquire takes in all that the others did
        // with the slot, before it frees it (T2).
        self.parties.fetch_or(who as u64, AcqRel) | who as u64 == all
    }

    /// The next slot in a chain of waiters to be woken.
    pub(crate) fn chained(&self) -> Option<SlotIndex> {
        // ORDERING: relaxed: one thread writes and reads it.
        match self.chain.load(Relaxed) {
            0 => None,
            slot => Some(SlotIndex((slot - 1) as u32)),
        }
    }

    /// Ends a chain here, or goes on with `next`.
    pub(crate) fn set_chained(&self, next: Option<SlotIndex>) {
        // ORDERING: relaxed: one thread writes and reads it.
        self.chain.store(next.map_or(0, |slot| u64::from(slot.0) + 1), Relaxed);
    }
}

/// What the owner of a waiter keeps of it: the slot, and which use of the slot. Ten bytes, so that
/// a future has room for its phase in 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(2))]
pub(crate) struct Ticket {
    slot: SlotIndex,
    serial_low: u32,
    serial_high: u16,
}

impl Ticket {
    const SERIAL_MASK: u64 = (1 << 48) - 1;

    const fn new(slot: SlotIndex, serial: u64) -> Self {
        Self { slot, serial_low: serial as u32, serial_high: (serial >> 32) as u16 }
    }

    const fn serial(self) -> u64 {
        (self.serial_high as u64) << 32 | self.serial_low as u64
    }

    pub(crate) const fn slot(self) -> SlotIndex {
        self.slot
    }

    pub(crate) const fn handle(self) -> Handle {
        Handle::new(self.slot, Generation::of_serial(self.serial()))
    }
}

/// A waiter before it is published.
#[derive(Clone, Copy)]
pub(crate) struct Prepared {
    serial: u64,
    status: Status,
}

impl Prepared {
    pub(crate) const fn ticket(self, slot: SlotIndex) -> Ticket {
        Ticket::new(slot, self.serial)
    }

    pub(crate) const fn generation(self) -> Generation {
        Generation::of_serial(self.serial)
    }
}

/// What the one who settled a waiter has to wake.
pub(crate) enum Woken {
    /// Nothing: the owner is awake.
    Nobody,
    /// This waker.
    Waker(Waker),
    /// The waker in the cell; the slot stays until its settler lets go of it.
    InCell,
}

/// All slots of a semaphore: chunks that are never freed before it, and a free list.
pub(crate) struct Pool {
    free: Word,
    fresh: Word,
    /// One more than there can be, so that five bits are an index without a check.
    chunks: [Ptr<Slot>; SlotIndex::CHUNKS + 1],
}

macro_rules! pool_new {
    ($($const:tt)?) => {
        pub(crate) $($const)? fn new() -> Self {
            Self {
                free: Word::new(Role::Free, FreeTop::EMPTY.word()),
                fresh: Word::new(Role::Fresh, 0),
                chunks: [
                    Ptr::null(Role::Chunk(0)), Ptr::null(Role::Chunk(1)), Ptr::null(Role::Chunk(2)),
                    Ptr::null(Role::Chunk(3)), Ptr::null(Role::Chunk(4)), Ptr::null(Role::Chunk(5)),
                    Ptr::null(Role::Chunk(6)), Ptr::null(Role::Chunk(7)), Ptr::null(Role::Chunk(8)),
                    Ptr::null(Role::Chunk(9)), Ptr::null(Role::Chunk(10)), Ptr::null(Role::Chunk(11)),
                    Ptr::null(Role::Chunk(12)), Ptr::null(Role::Chunk(13)), Ptr::null(Role::Chunk(14)),
                    Ptr::null(Role::Chunk(15)), Ptr::null(Role::Chunk(16)), Ptr::null(Role::Chunk(17)),
                    Ptr::null(Role::Chunk(18)), Ptr::null(Role::Chunk(19)), Ptr::null(Role::Chunk(20)),
                    Ptr::null(Role::Chunk(21)), Ptr::null(Role::Chunk(22)), Ptr::null(Role::Chunk(23)),
                    Ptr::null(Role::Chunk(24)), Ptr::null(Role::Chunk(25)), Ptr::null(Role::Chunk(26)),
                    Ptr::null(Role::Chunk(27)), Ptr::null(Role::Chunk(28)), Ptr::null(Role::Chunk(29)),
                    Ptr::null(Role::Chunk(30)), Ptr::null(Role::Chunk(31)),
                ],
            }
        }
    };
}

impl Pool {
    #[cfg(not(any(feature = "loom", feature = "shuttle")))]
    pool_new!(const);
    #[cfg(any(feature = "loom", feature = "shuttle"))]
    pool_new!();

    /// The slot of that index.
    #[inline(always)]
    pub(crate) fn slot(&self, index: SlotIndex) -> &Slot {
        // ORDERING: relaxed. The index came by a chain of release and acquire from whoever put the
        // chunk there (P2).
        let chunk = self.chunks[index.chunk()].load(Relaxed);
        debug_assert!(!chunk.is_null());
        // SAFETY: P2: the chunk is there, and has that many slots.
        let slot = unsafe { chunk.add(index.offset()) };
        // SAFETY: P1: it stays for as long as the pool is borrowed; slots are only ever shared.
        unsafe { &*slot }
    }

    /// A slot that nobody uses, or `None` if there are as many waiters as there can be.
    ///
    /// Lock-free. Allocates a chunk when there is no free slot: at most as often as the number of
    /// slots in use at one time doubles.
    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<SlotIndex> {
        // ORDERING(T1): pairs with T2; the slot's last user is done with it, and what its
        // granter published goes on to W5.
        let mut top = FreeTop::from_word(self.free.load(Acquire));
        loop {
            let Some(slot) = top.slot() else { return self.fresh() };
            // If the slot is popped, used and pushed by others in between, the tag has changed.
            let next = self.slot(slot).word().place().older();
            match self.free.compare_exchange(top.word(), top.popped(next).word(), Acquire, Acquire)
            {
                Ok(_) => return Some(slot),
                Err(now) => top = FreeTop::from_word(now),
            }
        }
    }

    /// Puts one slot back that is the caller's alone (F1).
    pub(crate) fn push(&self, slot: SlotIndex) {
        self.push_chain(slot, slot);
    }

    /// Puts a chain of slots back, linked by their words from `first` to `last`.
    pub(crate) fn push_chain(&self, first: SlotIndex, last: SlotIndex) {
        // ORDERING: relaxed: nothing is read through it before the exchange.
        let mut top = FreeTop::from_word(self.free.load(Relaxed));
        loop {
            self.slot(last).set_free_link(top.slot());
            // ORDERING(T2): pairs with T1; publishes the links, and that the last users are done.
            match self.free.compare_exchange(top.word(), top.pushed(first).word(), Release, Relaxed)
            {
                Ok(_) => return,
                Err(now) => top = FreeTop::from_word(now),
            }
        }
    }

    /// Links one slot of the caller's to the next in a chain that will be pushed.
    pub(crate) fn link_free(&self, slot: SlotIndex, next: SlotIndex) {
        self.slot(slot).set_free_link(Some(next));
    }

    /// A slot for its first use.
    #[cold]
    fn fresh(&self) -> Option<SlotIndex> {
        // ORDERING: relaxed, both: the number is all that matters. The load keeps the counter from
        // running away once all slots are in use.
        SlotIndex::nth(self.fresh.load(Relaxed))?;
        let index = SlotIndex::nth(self.fresh.fetch_add(1, Relaxed))?;
        self.ensure_chunk(index.chunk());
        Some(index)
    }

    /// Makes room for `slots` slots.
    pub(crate) fn reserve(&self, slots: u64) {
        if slots > 0 {
            let last = SlotIndex::nth(slots - 1).map_or(SlotIndex::CHUNKS - 1, SlotIndex::chunk);
            (0..=last).for_each(|chunk| self.ensure_chunk(chunk));
        }
    }

    fn ensure_chunk(&self, chunk: usize) {
        let cell = &self.chunks[chunk];
        // ORDERING(B1): pairs with B2; the chunk's slots are there.
        if !cell.load(Acquire).is_null() {
            return;
        }
        let number = chunk as u32;
        let slots: Box<[Slot]> = (0..SlotIndex::chunk_len(number))
            .map(|offset| Slot::new(SlotIndex::new(number, offset)))
            .collect();
        let slots = Box::into_raw(slots);
        let null = core::ptr::null_mut();
        // ORDERING(B2): pairs with B1 and, on the way of the index, with all others; publishes
        // the slots.
        if cell.compare_exchange(null, slots.cast(), Release, Acquire).is_err() {
            // SAFETY: made above, and nobody has seen it.
            drop(unsafe { Box::from_raw(slots) });
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (chunk, cell) in self.chunks.iter().enumerate() {
            // ORDERING: relaxed: the pool is exclusively ours.
            let slots = cell.load(Relaxed);
            if slots.is_null() {
                continue;
            }
            let len = SlotIndex::chunk_len(chunk as u32) as usize;
            let slots = core::ptr::slice_from_raw_parts_mut(slots, len);
            // SAFETY: P1: a leaked box of that length, and nobody is left to touch it.
            let slots = unsafe { Box::from_raw(slots) };
            for slot in &slots {
                if slot.word().status().has_waker() {
                    // SAFETY: C3: a waiter whose future was forgotten; it still owns its waker.
                    let waker = unsafe { slot.halves().into_waker() };
                    crate::wake::drop_quietly(waker);
                }
            }
        }
    }
}
