//! The packed words: what is in them, and their transitions as pure functions.
//!
//! Each word is decoded once, into an enum, and no other module knows a bit of it.
//!
//! # Bit budget
//!
//! ```text
//! State        63 ................ 3 | 2    | 1      | 0
//!              permits or tail handle| DEBT | CLOSED | QUEUE
//!              in debt: a stamp, for permits
//!
//! Handle       53 ........... 26 | 25 .................. 0
//!              generation (28)   | slot (26): chunk 4..0, offset 25..5
//!
//! WaiterWord   63 ........... 36 | 35 33  | 32   | 31 ........ 0
//!              generation (28)   | status | HEAD | slot of the older waiter, or granted so far
//!
//! Hint         63 ....... 54 | 53 ......... 0
//!              settled behind| handle; all zero: none
//! ```
//!
//! | what | bits | wraps after |
//! |---|---|---|
//! | available permits | 61 | never: `MAX_PERMITS` is 2^61 - 1 |
//! | slots | 26 | 29,360,120 waiters, then `QueueFull` |
//! | partial grant | 32 | never: below the request, a `u32` |
//! | generation in a word | 28 | 2^28 reuses of one slot |
//! | serial of a slot, seen by its owner | 48 | 2^48 reuses of one slot |
//! | tag of the free list | 38 | 2^38 pops |
//! | stamp of a state word in debt | 61 | 2^61 shrinks |
//!
//! A slot that is reused every 60 ns without a break brings its generation round in 16 seconds,
//! the free list its tag in four and a half hours, the serial in half a year. The first two matter
//! to a thread that is stopped *within* a call, between a load and its compare-exchange, for
//! exactly a multiple of that many reuses, and that then finds all the rest of the word equal too.
//! A future that stays unpolled is told from a later user of its slot by the serial.

/// The state word's QUEUE flag.
const QUEUE: u64 = 1;
const CLOSED: u64 = 2;
const DEBT: u64 = 4;
const FLAGS: u64 = QUEUE | CLOSED | DEBT;
const BODY_SHIFT: u32 = 3;

/// The most permits that a state word can hold.
pub(crate) const MAX_AVAILABLE: u64 = u64::MAX >> BODY_SHIFT;

/// The state word of a queue: the permits that are available, or the newest waiter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State(pub u64);

/// What a [`State`] says, apart from its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// So many permits are free, and nobody is in the queue. None are, while DEBT is set.
    Available(u64),
    /// The newest waiter. If all of the queue is settled this means the same as `Available(0)`.
    Queue(Handle),
}

impl State {
    pub(crate) const fn available(n: u64) -> Self {
        Self(n << BODY_SHIFT)
    }

    /// Same flags, other body. In debt there is but one body besides `Queue`: [`indebted`](Self::indebted).
    pub(crate) const fn with(self, body: Body) -> Self {
        let flags = self.0 & FLAGS & !QUEUE;
        match body {
            Body::Available(n) => Self(flags | n << BODY_SHIFT),
            Body::Queue(tail) => Self(flags | QUEUE | tail.0 << BODY_SHIFT),
        }
    }

    /// The body of the word.
    pub const fn body(self) -> Body {
        let value = self.0 >> BODY_SHIFT;
        if self.0 & QUEUE != 0 {
            Body::Queue(Handle(value))
        } else if self.in_debt() {
            Body::Available(0)
        } else {
            Body::Available(value)
        }
    }

    /// Nothing is free, nobody in the queue, and a shrink has permits to collect. With a stamp that was
    /// never used before the word is one that was never there before.
    pub(crate) const fn indebted(self, stamp: u64) -> Self {
        Self(self.0 & CLOSED | DEBT | stamp << BODY_SHIFT)
    }

    /// A queue, and a shrink has permits to collect.
    pub(crate) const fn queue_indebted(self) -> Self {
        Self(self.0 | DEBT)
    }

    /// Nothing is left to collect, and so many permits are free.
    pub(crate) const fn debt_free(self, n: u64) -> Self {
        Self(self.0 & CLOSED | n << BODY_SHIFT)
    }

    /// Neither closed nor in debt.
    #[inline(always)]
    pub(crate) const fn is_plain(self) -> bool {
        self.0 & (CLOSED | DEBT) == 0
    }

    /// Whether anybody is in the queue, settled ones included.
    pub(crate) const fn is_queue(self) -> bool {
        self.0 & QUEUE != 0
    }

    /// Whether the semaphore is closed.
    pub const fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// Whether a shrink may have permits to collect. The fast paths step aside for it.
    pub const fn in_debt(self) -> bool {
        self.0 & DEBT != 0
    }

    pub(crate) const CLOSED_BIT: u64 = CLOSED;

    /// Permits that can be taken at once.
    pub const fn free(self) -> u64 {
        match self.body() {
            Body::Available(n) => n,
            Body::Queue(_) => 0,
        }
    }

    /// `n` permits out of an open, unqueued, undebted word: the fast path of acquire.
    #[inline(always)]
    pub(crate) const fn take(self, n: u32) -> Option<Self> {
        let n = (n as u64) << BODY_SHIFT;
        if self.0 & FLAGS == 0 && self.0 >= n { Some(Self(self.0 - n)) } else { None }
    }

    /// `n` permits into an open, unqueued, undebted word: the fast path of release.
    ///
    /// Cannot overflow: there are never more permits than `MAX_AVAILABLE`.
    #[inline(always)]
    pub(crate) const fn give(self, n: u64) -> Option<Self> {
        if self.0 & FLAGS == 0 { Some(Self(self.0 + (n << BODY_SHIFT))) } else { None }
    }
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.body() {
            Body::Available(n) => write!(f, "Available({n})")?,
            Body::Queue(tail) => write!(f, "Queue({tail:?})")?,
        }
        if self.is_closed() {
            f.write_str("+CLOSED")?;
        }
        if self.in_debt() {
            f.write_str("+DEBT")?;
        }
        Ok(())
    }
}

const CHUNK_BITS: u32 = 5;
const OFFSET_BITS: u32 = 21;
const SLOT_BITS: u32 = CHUNK_BITS + OFFSET_BITS;
const GEN_BITS: u32 = 28;

/// A slot of the pool: which chunk, and where in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotIndex(pub u32);

impl SlotIndex {
    /// The first chunk has 2^3 slots, each one twice that of the one before up to 2^21.
    pub(crate) const FIRST_CHUNK_BITS: u32 = 3;
    /// Chunks there may be. One fewer than five bits can say, so that no slot is all ones.
    pub(crate) const CHUNKS: usize = (1 << CHUNK_BITS) - 1;

    pub(crate) const fn chunk_len(chunk: u32) -> u32 {
        let bits = Self::FIRST_CHUNK_BITS + chunk;
        1 << if bits < OFFSET_BITS { bits } else { OFFSET_BITS }
    }

    pub(crate) const fn chunk(self) -> usize {
        (self.0 & ((1 << CHUNK_BITS) - 1)) as usize
    }

    pub(crate) const fn offset(self) -> usize {
        (self.0 >> CHUNK_BITS) as usize
    }

    pub(crate) const fn new(chunk: u32, offset: u32) -> Self {
        Self(offset << CHUNK_BITS | chunk)
    }

    /// The slot that is the `n`-th to be used for the first time, or `None` past the last.
    pub(crate) const fn nth(mut n: u64) -> Option<Self> {
        let mut chunk = 0;
        while chunk < Self::CHUNKS as u32 {
            let len = Self::chunk_len(chunk) as u64;
            if n < len {
                return Some(Self::new(chunk, n as u32));
            }
            n -= len;
            chunk += 1;
        }
        None
    }
}

impl core::fmt::Debug for SlotIndex {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.chunk() == 0 {
            write!(f, "#{}", self.offset())
        } else {
            write!(f, "#{}.{}", self.chunk(), self.offset())
        }
    }
}

/// The low bits of a slot's serial, as far as a word has room for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Generation(u32);

impl Generation {
    pub(crate) const fn of_serial(serial: u64) -> Self {
        Self((serial & ((1 << GEN_BITS) - 1)) as u32)
    }
}

/// One use of one slot: all that is needed to name a waiter for as long as it is in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

impl Handle {
    const BITS: u32 = SLOT_BITS + GEN_BITS;

    pub(crate) const fn new(slot: SlotIndex, generation: Generation) -> Self {
        Self((generation.0 as u64) << SLOT_BITS | slot.0 as u64)
    }

    /// The slot.
    pub const fn slot(self) -> SlotIndex {
        SlotIndex((self.0 & ((1 << SLOT_BITS) - 1)) as u32)
    }

    /// Which use of the slot.
    pub const fn generation(self) -> Generation {
        Generation((self.0 >> SLOT_BITS) as u32)
    }

    /// As a word, where zero is nobody. (One use in 2^28 of slot zero reads as nobody, too: a hint less.)
    pub(crate) const fn from_word(word: u64) -> Option<Self> {
        if word == 0 { None } else { Some(Self(word)) }
    }
}

impl core::fmt::Debug for Handle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}g{}", self.slot(), self.generation().0)
    }
}

const PLACE_SHIFT: u32 = 32;
const STATUS_SHIFT: u32 = 33;
const GEN_SHIFT: u32 = 36;
const HEAD: u64 = 1 << PLACE_SHIFT;
const PAYLOAD: u64 = HEAD - 1;

/// Where a waiter stands in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind the waiter in that slot.
    Link(SlotIndex),
    /// Oldest of all, with so many permits granted.
    Head(u32),
}

impl Place {
    /// Permits that were granted to the waiter so far.
    pub const fn got(self) -> u32 {
        match self {
            Self::Head(got) => got,
            Self::Link(_) => 0,
        }
    }

    pub(crate) const fn older(self) -> Option<SlotIndex> {
        match self {
            Self::Link(older) => Some(older),
            Self::Head(_) => None,
        }
    }
}

/// The state of a waiter. The first four are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Has all its permits. Whoever cuts it out of the queue frees the slot.
    Granted = 0,
    /// Has all its permits, and the granter has yet to take the waker out of the cell.
    GrantedBusy = 1,
    /// Left by itself and owns nothing.
    Cancelled = 2,
    /// Ended by `close`.
    Shut = 3,
    /// Waits; has no waker yet.
    Bare = 4,
    /// Waits; the waker in the cell is the first it had.
    First = 5,
    /// Waits; its owner is at the cell.
    Swapping = 6,
    /// Waits; the waker in the cell is not the first.
    Replaced = 7,
}

impl Status {
    /// Pending: may still be granted, cancelled or shut.
    pub const fn is_waiting(self) -> bool {
        self as u8 & 4 != 0
    }

    /// There is a waker in the cell, and it goes to whoever settles the waiter.
    pub const fn has_waker(self) -> bool {
        matches!(self, Self::First | Self::Replaced)
    }
}

/// A waiter in one word: which use of the slot, its status, and its place in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WaiterWord(pub u64);

impl WaiterWord {
    pub(crate) const fn new(generation: Generation, status: Status, place: Place) -> Self {
        let place = match place {
            Place::Link(SlotIndex(older)) => older as u64,
            Place::Head(got) => HEAD | got as u64,
        };
        Self((generation.0 as u64) << GEN_SHIFT | (status as u64) << STATUS_SHIFT | place)
    }

    /// Which use of the slot the word is of.
    pub const fn generation(self) -> Generation {
        Generation((self.0 >> GEN_SHIFT) as u32)
    }

    /// The status.
    pub const fn status(self) -> Status {
        match self.0 >> STATUS_SHIFT & 7 {
            0 => Status::Granted,
            1 => Status::GrantedBusy,
            2 => Status::Cancelled,
            3 => Status::Shut,
            4 => Status::Bare,
            5 => Status::First,
            6 => Status::Swapping,
            _ => Status::Replaced,
        }
    }

    /// The place in the queue.
    pub const fn place(self) -> Place {
        if self.0 & HEAD == 0 {
            Place::Link(SlotIndex((self.0 & PAYLOAD) as u32))
        } else {
            Place::Head((self.0 & PAYLOAD) as u32)
        }
    }

    /// Whether this is the word of that very waiter.
    pub const fn is_of(self, handle: Handle) -> bool {
        self.0 >> GEN_SHIFT == handle.generation().0 as u64
    }

    /// Whether this is that very waiter, pending.
    pub(crate) const fn waits_as(self, handle: Handle) -> bool {
        self.is_of(handle) && self.status().is_waiting()
    }

    /// Whether this is that very waiter, waiting with its first waker.
    #[inline(always)]
    pub(crate) const fn is_first_of(self, handle: Handle) -> bool {
        self.is_of(handle) && self.0 >> STATUS_SHIFT & 7 == Status::First as u64
    }

    /// Whether this is that very waiter, waiting with a link to that slot.
    #[inline(always)]
    pub(crate) const fn waits_behind(self, handle: Handle, older: SlotIndex) -> bool {
        let link = Self::new(handle.generation(), Status::Bare, Place::Link(older)).0;
        // The four waiting statuses differ in two bits.
        (self.0 ^ link) & !(3 << STATUS_SHIFT) == 0
    }

    pub(crate) const fn with_status(self, status: Status) -> Self {
        Self(self.0 & !(7 << STATUS_SHIFT) | (status as u64) << STATUS_SHIFT)
    }

    pub(crate) const fn with_place(self, place: Place) -> Self {
        Self::new(self.generation(), self.status(), place)
    }

    pub(crate) const fn handle_at(self, slot: SlotIndex) -> Handle {
        Handle::new(slot, self.generation())
    }
}

impl core::fmt::Debug for WaiterWord {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "g{} {:?} {:?}", self.generation().0, self.status(), self.place())
    }
}

/// The hint word: a certificate that all older than a waiter is settled.
#[derive(Clone, Copy)]
pub(crate) struct Certificate {
    /// Everything older than this waiter is settled, which stays true for ever.
    pub(crate) of: Handle,
    /// About how many settled waiters are still linked behind it.
    pub(crate) behind: u32,
}

impl Certificate {
    const BEHIND_MAX: u32 = (1 << (u64::BITS - Handle::BITS)) - 1;

    pub(crate) const fn pack(self) -> u64 {
        let behind = if self.behind < Self::BEHIND_MAX { self.behind } else { Self::BEHIND_MAX };
        (behind as u64) << Handle::BITS | self.of.0
    }

    pub(crate) const fn unpack(word: u64) -> Option<Self> {
        match Handle::from_word(word & ((1 << Handle::BITS) - 1)) {
            Some(of) => Some(Self { of, behind: (word >> Handle::BITS) as u32 }),
            None => None,
        }
    }
}

/// The top of the free list: a slot or nobody, and how often the list was popped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct FreeTop(u64);

impl FreeTop {
    const NOBODY: u64 = (1 << SLOT_BITS) - 1;
    pub(crate) const EMPTY: Self = Self(Self::NOBODY);

    pub(crate) const fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(crate) const fn word(self) -> u64 {
        self.0
    }

    pub(crate) const fn slot(self) -> Option<SlotIndex> {
        let slot = self.0 & Self::NOBODY;
        if slot == Self::NOBODY { None } else { Some(SlotIndex(slot as u32)) }
    }

    pub(crate) const fn pushed(self, top: SlotIndex) -> Self {
        Self(self.0 & !Self::NOBODY | top.0 as u64)
    }

    pub(crate) const fn popped(self, next: Option<SlotIndex>) -> Self {
        let tag = (self.0 >> SLOT_BITS).wrapping_add(1) << SLOT_BITS;
        match next {
            Some(next) => Self(tag | next.0 as u64),
            None => Self(tag | Self::NOBODY),
        }
    }
}
