//! The queue: who waits, in which order, and who gets the next permit.
//!
//! # The problem
//!
//! A semaphore has N permits. A request that finds too few waits, and waiters are served strictly
//! in the order in which they joined, whatever they ask for. Any of them may leave at any moment,
//! from any place in the line: futures are dropped and deadlines come. Nobody may take a lock. A
//! thread that is stopped in the middle of a call, for ever, must keep nobody else from finishing
//! theirs.
//!
//! # The idea
//!
//! Strict order means that nothing is available while somebody waits: a request takes what there is
//! and waits for the rest. So *how many are free* and *who is the newest waiter* are never both
//! needed, and share one word. A waiter is complete before that word names it; there is no moment
//! at which a demand is announced and its waiter cannot be found yet. And all that happens to a
//! waiter afterwards happens to one word of its own: a grant, a cancellation and a close race for
//! the same compare-exchange, and whoever wins it owns the consequence.
//!
//! ```text
//! acquire(k)   S = Available(a), a >= k        S -> Available(a - k)
//!              S = Available(a), a <  k        me = Head(a);  S -> Queue(me)
//!              S = Queue(t)                    me = Link(t);  S -> Queue(me);  t.newer = me
//! release(c)   while c > 0
//!                S = Available(a)              S -> Available(a + c), done
//!                h = oldest that waits, none   S -> Available(c), recycle all behind it, done
//!                h lacks more than c           h -> Head(got + c), done
//!                else                          h -> Granted; c -= lacked; collect h's waker
//!              wake what was collected
//! cancel(me)   me -> Cancelled, or lost: all permits are mine to release
//!              cut(whatever links to me);  release(got), if I was Head(got)
//! cut(x)       p = first that waits behind the settled run that x links to
//!              x -> Link(p) or Head(0), or S -> Queue(p) or Available(0); recycle the run
//! close        S |= CLOSED;  each that waits, newest first, -> Shut;  S -> Available(0)
//! ```
//!
//! # What makes it hard
//!
//! - Links point from newer to older, since that is all that a waiter knows when it joins. A
//!   release needs the oldest, and a leaver needs the one that links to it: both at the wrong end.
//! - Slots are reused at once, while others still look at them. Everything that is read may be of
//!   another waiter than it was a moment ago.
//! - A waiter that is complete and not yet published looks exactly like one that waits.
//! - A leaver may hold part of what it asked for, and that part must reach the next in line even
//!   though the next in line is leaving too.
//!
//! # A drawing
//!
//! ```text
//!  hint: #1g3, 1 behind                              state: Queue(#3g2)
//!          |                                                  |
//!          +------------------+                               |
//!                             v                               v
//!     +-----------+     +-----------+     +-----------+     +-----------+
//!     | #0g7      | <-- | #1g3      | <-- | #2g9      | <-- | #3g2      |
//!     | Granted   |     | First     |     | Cancelled |     | First     |
//!     | Head(2)   |     | Link(#0)  |     | Link(#1)  |     | Link(#2)  |
//!     +-----------+     +-----------+     +-----------+     +-----------+
//!       oldest            oldest that       cut when #3       newest
//!                         waits             links to #1
//!              - newer ->          - newer ->        - newer ->     (hints)
//! ```
//!
//! `#1g3` is slot 1 in its third use. Settled waiters stay linked until the word that their run
//! hangs on, their *anchor*, is changed to pass them by. Granted ones gather at the old end, about
//! eight of them, and leave at one stroke.
//!
//! # The state word
//!
//! | word | means | leads on to |
//! |---|---|---|
//! | `Available(a)` | `a` are free; the queue is empty | `Available`, by taking and giving; `Queue(me)`, by joining |
//! | `Queue(t)`, some wait | nothing is free; `t` joined last | `Queue(me)`; `Queue(p)`, by cutting settled ones from the end |
//! | `Queue(t)`, all settled | the same as `Available(0)` | the same; `Available(c)`, by a release; `Available(0)`, by a cut |
//! | `Queue(t)`, CLOSED | its waiters are being ended | `Queue(p)` and `Available(0)`, CLOSED |
//! | `Available(a)`, CLOSED | nobody waits, nobody will | `Available(a + c)`, CLOSED |
//! | `Available(stamp)`, DEBT | nothing is free, nobody waits, and a shrink may have permits to collect | another stamp, by a shrink; `Available(c)`, by who found the debt paid; `Queue(me)`, DEBT, by joining |
//! | `Queue(t)`, DEBT | the same, with a queue | `Queue`, DEBT, as above; `Available(stamp)`, DEBT, instead of `Available` |
//!
//! # The waiter word
//!
//! | status | means | the waker belongs to | is left for | the slot is freed by |
//! |---|---|---|---|---|
//! | `Bare` | waits; not polled yet | – | `Swapping`, or settled | – |
//! | `First` | waits; the first waker it had is in the cell | the word | `Swapping`, or settled | – |
//! | `Swapping` | waits; its owner is at the cell | the owner | `First`, `Replaced`, `GrantedBusy`, `Shut` | – |
//! | `Replaced` | waits; a later waker is in the cell | the word | `Swapping`, or settled | – |
//! | `Granted` | has all; no waker in the cell is anybody's | the granter has it, if there was one | final | the cutter |
//! | `GrantedBusy` | has all; somebody is still at the cell | the granter, or the owner if it was `Swapping` | final | the last of cutter and settler |
//! | `Cancelled` | left, owns nothing | its owner | final | the cutter |
//! | `Shut` | ended by `close`, owns nothing | the closer, or the owner if it was `Swapping` | final | the last of cutter, settler and owner |
//!
//! The place in the word is `Link(older)` or `Head(got)`. A private word, before publication, is
//! `Bare` or `First` with either place; a free slot has a settled status, and its place is the link
//! of the free list.
//!
//! # Transitions
//!
//! | from | to | by |
//! |---|---|---|
//! | private | `Bare`/`First`, `Link(t)` or `Head(a)` | the owner's store, then its exchange of the state word publishes it |
//! | waiting, `Link(n)` | the same, `Link(p)` or `Head(0)` | a cut: `collapse` or `unlink_alone`, or `cut_granted` for the granted run |
//! | waiting, `Head(got)` | the same, `Head(got + c)` | a release that is too small: `feed` |
//! | waiting, `Link(n)`, all older settled | the same, `Head(c)` | the same, which is a cut as well |
//! | waiting, all older settled | `Granted` or `GrantedBusy`, same place | a release: `feed` or `hand_over` |
//! | waiting | `Cancelled`, same place | the owner |
//! | waiting | `Shut`, same place | whoever ends a closed queue |
//! | `Bare`/`First`/`Replaced` | `Swapping` and on | the owner's poll with another waker; place and generation stay |
//!
//! # Invariants
//!
//! - **Q1** (one or the other). The state word says `Available` or `Queue`. While a published
//!   waiter waits it says `Queue`, and nothing is available. It goes from `Queue` to `Available`
//!   only by an exchange from a word whose whole queue was found settled.
//! - **Q2** (complete when seen). All fields of a waiter are written before the exchange of the
//!   state word that publishes it. The order of these exchanges is the order of the queue.
//! - **Q3** (a published handle is one waiter). A handle in the state word, the hint or a `newer`
//!   field names a waiter that was published, by slot and generation; nothing else is ever put
//!   there. So what is exchanged on a word that carries the handle's generation is exchanged on
//!   that waiter or fails.
//! - **Q4** (private stays private). The word of an unpublished waiter is changed by nobody but its
//!   owner. Others may read it, through an old link; they change a word only if they got to it by a
//!   handle (Q3) or by a walk whose anchor held after the word was read (Q8).
//! - **Q5** (settled is settled). A waiter goes from waiting to settled once. Then its status, and
//!   until it is cut its link, are frozen. After the cut the cutter may turn the link into one of
//!   the free list; status and generation stay until the next user of the slot stores its word.
//! - **Q6** (older only). The place of a waiting word changes from a link to an older link or to
//!   `Head`, and from `Head(got)` to more; never back. With Q5: two equal readings of a word mean
//!   that its place was the same in between.
//! - **Q7** (one head). A published word that waits and says `Head` is the oldest that waits, and
//!   has nothing linked behind it. So only the oldest has a partial grant.
//! - **Q8** (the anchor rule). Read the anchor, which is the state word or a word that waits;
//!   follow the frozen links of the settled behind it; read the anchor again. Unchanged: then all
//!   that was read was in the queue until then. Changed: then nothing that was read means anything.
//! - **Q9** (one door). A run of settled waiters hangs on one word that can change, its anchor.
//!   Whoever exchanges that word to pass the run by has cut it out, alone, and recycles it, once.
//! - **Q10** (a certificate stays true). A hint names a waiter that has nobody older than itself
//!   waiting. Nobody joins before it and nobody settled waits again, so that stays true of that
//!   waiter for ever, also when it is settled, or gone. While it waits it is the oldest.
//! - **Q11** (what `newer` is worth). Whoever stores `newer` of a slot had seen the named waiter
//!   link to the one that was in the slot then. The store may come late, when the slot has another
//!   user, of either queue. So it is believed only if the named waiter, in that very use, links to
//!   this slot or is granted, and if this slot is in the same use after that was read.
//! - **Q12** (nobody leaves a ghost). A cancellation returns when its waiter is out of the queue.
//!   So what is linked and settled is the run of the granted, and calls in flight.
//! - **Q13** (gone means granted). A slot leaves its owner behind in one way, by a grant: a
//!   cancelled one was given up by its owner, and a shut one is kept for it. An owner that finds
//!   another generation, or another serial, in its slot has its permits.
//! - **Q14** (a closed queue shrinks). Nobody joins after CLOSED. Waiters are ended from the newest
//!   to the oldest, so that those who still wait are always the oldest ones.
//! - **Q15** (one hand). A permit that left a word is in the hand of one running call until one
//!   exchange places it, in a waiter or in the state word. It counts as held meanwhile.
//! - **Q16** (debts first). There is a number of permits that exist, in a word of its own, and a
//!   number that there shall be, N. The first never exceeds the ceiling; their difference is the
//!   debt. A shrink has taken effect when DEBT is set, or set anew. While it is set nothing is
//!   available, and a release looks at the debt after it has chosen whom to serve. DEBT is cleared
//!   only from `Available(stamp)`, by who read that word, then found no debt, and then exchanged
//!   it. No stamp is used twice and each shrink changes the stamp: so at that exchange there had
//!   been no shrink since the debt was looked at. (With a queue the word may be what it was before
//!   a shrink; therefore DEBT stays until the queue has been empty.)
//!
//! Why Q8 holds. The anchor is unchanged between its two readings: a waiting word by Q6; the state
//! word because it names its tail with the generation, and a tail that was cut does not come back.
//! What hangs on it is settled up to the next that waits, frozen by Q5, and can only be cut by
//! exchanging this anchor, or a newer one that takes the anchor along; the latter needs the anchor
//! to be settled. `newer` fields and hints play no part in it: a wrong one costs time.
//!
//! # Linearization points
//!
//! | operation | takes effect at |
//! |---|---|
//! | `try_acquire`, `acquire` with enough free | the exchange S3, or S2 in `publish` |
//! | `try_acquire` that fails | the load, or the failed exchange, that showed too few, `Queue` or CLOSED |
//! | `acquire` that has to wait | joins at S2 (its place in the order); has its permits at W2 `-> Granted` on its word, made by a release; the poll only learns of it |
//! | `acquire_many(0)` | the load that found the word open, or the exchange S3 |
//! | `QueueFull` | the load of `count` that was at the limit; or the empty free list, with all slots in use |
//! | release of n, nobody waits | S4, or S2 in `release` |
//! | release of n, somebody waits | one point for each waiter that it serves, wholly or in part, and one for what is left over: each is one exchange, and together they are not atomic |
//! | cancel, timeout | W2 `-> Cancelled`; if the grant was first, none: the permits are released after that, or kept by a request that timed out |
//! | `close` | S5, the CLOSED bit; each waiter learns of it at W2 `-> Shut` |
//! | `drained`, ready | the S6 that found CLOSED and all N available; told by the CLOSED bit of the gate |
//! | growing | N at the exchange of `capacity`; the permits come to be at R2, in the hand, and go on as a release |
//! | shrinking | N at the exchange of `capacity`; in effect at the S2 that takes free permits, or sets DEBT or its stamp |
//! | `forget`, `forget_permits` | the permits at R2; N as in shrinking |
//! | `available_permits`, `is_closed`, the same in `snapshot` | one load, S1 |
//! | `waiters`, bounded | one load of `count`: those who wait, join or leave |
//! | `waiters`, unbounded | none: it walks. Exact if no call is in flight |
//!
//! # Races
//!
//! 1. *Release against cancel of the head.* Both exchange the head's word from the same value: one
//!    wins, and the loser sees who.
//! 2. *The head leaves with a part.* The leaver is out of the queue before it releases the part, so
//!    the part goes to whoever is oldest then.
//! 3. *Partial grant against cancel.* The canceller read `Head(got)` and its exchange fails when
//!    `got` has grown: it reads again and passes on all of it.
//! 4. *Grant against drop of the granted.* The drop finds `Granted`, or the slot in other hands
//!    (Q13), and releases all that was asked for.
//! 5. *Two neighbours leave at once.* Neither is waiting, so neither is an anchor: each finds the
//!    next that waits, or the state word, and the first exchange cuts both (Q9).
//! 6. *Join against a release that empties the queue.* Both exchange the state word from
//!    `Queue(t)`: a join that loses rewrites its private word and sees the permits.
//! 7. *Join, and stopped before the hint.* The waiter is in the queue; a release that lacks the
//!    hint walks from the tail, and mends the hints on its way.
//! 8. *A hint to a slot that was reused before publication.* The handle has the old generation and
//!    the private word the new one: not believed (Q3), and not touched (Q4).
//! 9. *A late `newer` in a slot of another user, perhaps of the other queue.* If the named waiter
//!    waits it does not link here, and is not believed; if it is settled it leads on, and comes to
//!    one that waits by a true link or not at all (Q11).
//! 10. *A late hint.* It names a waiter that is gone, or that has long been settled: the release
//!     follows it for at most `HOPS` steps, and then walks.
//! 11. *Two cuts of one run.* They have the same anchor, and one exchange fails (Q9).
//! 12. *A cut against a grant of its anchor.* The same word again: after the grant the anchor is
//!     settled, and the run hangs on the next newer one.
//! 13. *Close against join.* A join after the bit fails in its exchange, sees CLOSED, and takes
//!     back what was private.
//! 14. *Close against release.* A release that read the word open before the bit may place permits
//!     once more, and finds CLOSED in its next round; the part that it gave is collected when the
//!     waiter is shut.
//! 15. *Close against cancel.* If `Shut` is first the leaver lets go of its slot and owns nothing;
//!     if `Cancelled` is first the closer passes it by, and the leaver releases its part and then
//!     helps to close.
//! 16. *A closer is stopped half-way.* Whoever tries, joins, polls, leaves or releases at the
//!     closed semaphore ends the rest.
//! 17. *Close against a failed join's private `Head(a)`.* Links carry no generation, so the state
//!     word is read again after each waiter's word, and a private one is never shut (Q8).
//! 18. *Re-poll against grant.* The owner is `Swapping`: the granter takes no waker and says
//!     `GrantedBusy`, and the owner, who is awake, lets go of the slot in its place.
//! 19. *The waker is read before the exchange that grants.* The exchange is from `First`, which
//!     lasts from one write of the cell to no other (C1), so a reading that was torn belongs to an
//!     exchange that fails.
//! 20. *The last permit comes back against drained.* Whoever changes the closed state word, or N,
//!     looks afterwards by a read-modify-write, and the later of two sees both changes.
//! 21. *A release reads the oldest, and is stopped.* Its exchange fails if the waiter was settled,
//!     moved or given a part, and succeeds if it is still that waiter in that place, which is then
//!     still the oldest (Q10).
//! 22. *Grow against shrink.* Each changes N and then reads `existing` by a read-modify-write;
//!     whoever changes `existing` reads N again afterwards. So the last one makes them agree,
//!     whatever permits were made or destroyed for an N that is gone by then.
//! 23. *Shrink against a release that clears DEBT.* If the stamp is set first the release fails in
//!     its exchange; if it is first, what it freed is there for the shrink to take (Q16).
//! 24. *Shrink against a grant that was chosen before.* The grant is made, and the debt is paid by
//!     those who come back next.
//!
//! # Progress
//!
//! Lock-free: of the calls in flight one finishes within a bounded number of steps of all of them.
//! Every loop here goes round again only if an exchange failed or a walk found its anchor changed;
//! and so some other exchange on that word was made. The useful ones are a bounded number for each
//! call: one to take, give or join; for each waiter one to settle it and two for a poll with
//! another waker; for each piece of a release at most one that gives a part. The cuts are charged
//! to those whom they cut: each waiter is cut once. (A `compare_exchange_weak` may fail without a
//! reason, as the machine allows it.) Hints are stored without any exchange, and no loop waits for
//! one.
//!
//! No call that changes a word is wait-free: it can be overtaken for ever. Without a conflict a
//! cancellation takes constant time, and so does a release for each waiter that it serves; after a
//! conflict either may walk the queue. `close` takes time in proportion to the waiters, and so does
//! `waiters` without a bound.
//!
//! A thread that is stopped for ever, wherever it is, keeps
//!
//! - the permits that it holds or has in its hand,
//! - the wakes that it has collected and not delivered: one for each waiter that its call has
//!   settled,
//! - the slots that it has popped, or cut and not yet pushed, or whose waker cell it is at,
//! - a place in a bounded queue for each waiter that it has settled or prepared and not counted
//!   out,
//! - and, if it had yet to look whether a closed semaphore is drained, that look, until another
//!   call to the closed semaphore looks,
//! - the difference that its resizing makes, if it had changed N and not yet gone on; and DEBT with
//!   nothing owed, until the next release.
//!
//! It keeps nobody else from finishing a call, but a task whose wake it has is not woken.
//!
//! # Orderings
//!
//! Each site has its label; docs/ORDERINGS.md has them all in a table. How the release of a permit
//! comes to happen before all that follows its acquire:
//!
//! - *Fast to fast.* S4 releases, S3 acquires. Whatever others do to the state word in between is a
//!   read-modify-write (every write to it is one), and goes on with S4's release sequence.
//! - *Queue.* The granter's W2 releases, and W1 of the owner's poll acquires. Parts: each
//!   `Head(got)` is an exchange that acquires the one before, so the last granter publishes for
//!   all.
//! - *Free permits into a queue.* Who joins with `Head(a)` takes them by S2, which acquires.
//! - *Queue to free.* The exchange to `Available(c)` is S2, which releases.
//! - *Parts that are passed on,* by a canceller or a closer: their W2 acquires the word with the
//!   part, and whatever they release with next publishes it.
//! - *By a slot that was reused.* The owner may find, in place of the granter's word, that of a
//!   later user. Then: granter's W2, cutter's W1, its T2, the later user's T1, its W5, the owner's
//!   W1. Each reads from the one before or from what follows in its release sequence; all writes to
//!   the free list's top are read-modify-writes. A link of the free list in the same word is a
//!   release (W4) by the cutter, who had acquired.
//!
//! No store is followed by a load of another word that has to see it: nothing here needs more than
//! acquire and release. The look for *drained* would, and is a read-modify-write for that reason
//! (S6), and so do the two numbers of resizing (R1).
//!
//! # What is admitted
//!
//! Generations wrap, after 2^28 uses of one slot: see [`crate::state`]. A thread that is stopped
//! between the load of a waiter word and its exchange, for a multiple of that many uses of that
//! slot and no other number, and that then finds the same status and place, acts on the wrong
//! waiter: a grant may then overtake, and rebuild a waker that it had read in another life of the
//! slot. So the soundness of the crate rests on no thread being stopped like that; at 60 ns a use
//! the first such length of time is 16 seconds, and only that one to within 60 ns. An owner is told
//! apart from later users by the serial, however long its future lies unpolled. The tag of the free
//! list, 38 bits, is admitted in the same way.
//!
//! # Sources
//!
//! - The mark that freezes the link of a node that is leaving: T. Harris, *A pragmatic
//!   implementation of non-blocking linked-lists*, DISC 2001. Here mark and link share the word
//!   with the verdict.
//! - The free list: R. K. Treiber, *Systems programming: coping with parallelism*, IBM RJ 5118,
//!   1986, with a tag.
//! - Fair and abortable synchronization with a proof, by other means (an infinite array of cells):
//!   N. Koval, D. Khalanskiy, D. Alistarh, *CQS*, PLDI 2023.
//! - Earlier prototypes of this crate, and what they got wrong: docs/DESIGN.md.

use core::task::{Poll, Waker};

use crate::state::{
    Body, Certificate, Handle, MAX_AVAILABLE, Place, SlotIndex, State, Status, WaiterWord,
};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{Line, Role, Word};
use crate::waiter::{Party, Pool, Prepared, Registered, Slot, Ticket, Woken};
use crate::wake::{Unused, Wakes, is_waking, placing, wake_one};

/// So many granted waiters may stay linked at the old end of a queue before they are cut, all at
/// once: the cut and the push to the free list are then an eighth of a read-modify-write a wait.
const RUN: u32 = 8;

/// How far a release follows hints before it walks the queue instead.
const HOPS: u32 = 4 * RUN;

/// Slots beyond the waiters themselves that a bounded semaphore sets up: settled waiters that are
/// still linked, and slots that a running call has popped or not yet pushed.
const SLACK: u64 = 4 * RUN as u64;

/// How often `waiters()` walks a queue that changes under it before it settles for the length of the
/// part that it saw last.
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
    existing: Word,
    stamps: Word,
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
    Cancelled(Unused),
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
                    existing: Word::new(Role::Existing, permits),
                    stamps: Word::new(Role::Stamps, 0),
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
/// behind it was in the queue (Q8), and whoever exchanges it cuts the run (Q9).
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

    /// The next older one, with the anchor found unchanged after its word was read (Q8).
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

    /// What a shrink has still to collect.
    pub(crate) fn debt(&self) -> u64 {
        // ORDERING: relaxed: a figure.
        self.existing.load(Relaxed).saturating_sub(self.capacity())
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

    /// Takes `need` permits from `queue` or joins it. A waker that is not needed comes back, to be dropped
    /// when the caller has put down what came of the request: its drop is foreign code.
    pub(crate) fn join(&self, queue: &Queue, need: u32, waker: Option<&Waker>) -> (Joined, Unused) {
        if queue.state().is_closed() {
            return (Joined::Closed, None.into());
        }
        // Foreign code, so before anything is ours to lose.
        let waker = waker.cloned();
        if !queue.enter() {
            return (Joined::Full, waker.into());
        }
        let Some(index) = self.pool.pop() else {
            queue.leave();
            return (Joined::Full, waker.into());
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
    fn publish(
        &self,
        queue: &Queue,
        need: u32,
        index: SlotIndex,
        prepared: Prepared,
    ) -> (Joined, Unused) {
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
                // Publication (Q2). Until then nobody else has the handle (Q3), nor after a failure.
                if !queue.exchange(state, state.with(Body::Queue(me))) {
                    continue;
                }
                match state.body() {
                    Body::Available(_) => queue.set_hint(me, 0),
                    Body::Queue(tail) => self.slot(tail).set_newer(me),
                }
                return (Joined::Queued(ticket), None.into());
            };
            let waker = slot.withdraw(prepared);
            self.pool.push(index);
            queue.leave();
            return (joined, waker.into());
        }
    }

    /// Places `hand` permits: with the oldest waiters, as far as they go, or with the free ones.
    ///
    /// ```text
    /// Available(a)           -> Available(a + hand)
    /// Available, DEBT        :  pays the debt; with what is left, -> Available(hand)
    /// Queue, all settled     -> Available(hand), or Available with DEBT and on with all of it
    /// oldest lacks more      :  Head(got) -> Head(got + hand)
    /// oldest lacks no more   :  waiting -> Granted, and on with the rest
    /// Queue, DEBT            :  pays the debt first
    /// CLOSED and Queue       :  its waiters are ended first
    /// ```
    pub(crate) fn release(&self, mut hand: u64, wakes: &mut Wakes) {
        let queue = &self.main;
        while hand > 0 {
            let state = queue.state();
            match state.body() {
                Body::Available(_) if state.in_debt() => {
                    self.lift_debt(state, &mut hand);
                }
                Body::Available(some) => {
                    if queue.exchange(state, state.with(Body::Available(some + hand))) {
                        hand = 0;
                    }
                }
                Body::Queue(_) if state.is_closed() => hand += self.end_waiters(queue, wakes),
                Body::Queue(tail) => match self.front(queue, state, tail) {
                    Front::Waiter(at, word, behind) => {
                        // Chosen. If the semaphore is closed by now the choice may have come after that, as
                        // others leave meanwhile: then nobody is granted any more (Q14). If it is in
                        // debt, that comes first (Q16).
                        let now = queue.state();
                        if now.is_plain() || self.may_grant(now, &mut hand) {
                            hand -= self.feed(queue, hand, at, word, behind, wakes);
                        }
                    }
                    Front::Nobody => {
                        if queue.exchange(state, self.emptied(state, hand)) {
                            self.recycle(tail.slot(), None);
                            if !state.in_debt() {
                                hand = 0;
                            }
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

    /// Whether a release may serve a waiter of a queue that is closed or in debt: with what is left in its
    /// hand after the debt.
    #[cold]
    fn may_grant(&self, state: State, hand: &mut u64) -> bool {
        !state.is_closed() && self.collect(hand) && *hand > 0
    }

    /// The state word of a queue in which all are settled, once it is emptied, with so many free: none, in
    /// debt.
    #[inline(always)]
    fn emptied(&self, state: State, free: u64) -> State {
        if state.in_debt() {
            state.indebted(self.stamp())
        } else {
            state.with(Body::Available(free))
        }
    }

    /// A number that was never used before.
    #[cold]
    fn stamp(&self) -> u64 {
        // ORDERING: relaxed: only that it is another one matters.
        self.stamps.fetch_add(1, Relaxed)
    }

    /// Brings the number of permits that exist to N, as far as the hand goes: destroys what a shrink has
    /// still to collect, or makes what a growth has not made yet. True if they agreed.
    ///
    /// ```text
    /// existing > N, hand > 0  :  existing falls, with the hand, by the difference or the hand
    /// existing < N            :  existing rises to N, and the hand with it
    /// ```
    #[cold]
    fn collect(&self, hand: &mut u64) -> bool {
        loop {
            // ORDERING(R1): pairs with itself and R2. Whoever changes N reads `existing` by this
            // afterwards, and whoever changes `existing` reads N afterwards: of two the later in the
            // order of `existing` sees both.
            let mut existing = self.existing.fetch_add(0, AcqRel);
            loop {
                // ORDERING: relaxed: R1 orders it.
                let capacity = self.capacity.load(Relaxed);
                if existing == capacity {
                    return true;
                }
                if existing > capacity && *hand == 0 {
                    return false;
                }
                let to = if existing > capacity {
                    existing - (existing - capacity).min(*hand)
                } else {
                    capacity
                };
                // ORDERING(R2): as R1, and it is looked at N again.
                if self.existing.compare_exchange(existing, to, AcqRel, Relaxed).is_err() {
                    break;
                }
                *hand = *hand + to - existing;
                existing = to;
            }
        }
    }

    /// Pays the debt of an empty queue out of the hand, and if all is paid, frees what is left of it (Q16).
    /// True if that was done.
    ///
    /// ```text
    /// Available, DEBT  -> Available(hand), if existing = N
    /// ```
    #[cold]
    fn lift_debt(&self, state: State, hand: &mut u64) -> bool {
        let lifted = self.collect(hand) && self.main.exchange(state, state.debt_free(*hand));
        if lifted {
            *hand = 0;
        }
        lifted
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
        // If the slot has another user by now this is nonsense, and the exchange fails (Q3). If it
        // succeeds the waiter is still the oldest (Q10).
        let lacks = u64::from(slot.need().saturating_sub(got));
        if hand < lacks {
            if !slot.move_to(word, Place::Head(got + hand as u32)) {
                return 0;
            }
            queue.set_hint(at, 0);
            if let Place::Link(older) = word.place() {
                // From a link to `Head`: that was a cut (Q9) of all that is older, settled by Q10.
                self.recycle(older, None);
            }
            return hand;
        }
        let Ok(woken) = slot.grant(word, wakes.is_full()) else { return 0 };
        queue.leave();
        self.advance(queue, slot, at, behind + 1);
        wakes.add(self, at.slot(), woken);
        lacks
    }

    /// After a grant: names the next waiter in the hint, and cuts the settled ones if they are many.
    #[inline(always)]
    fn advance(&self, queue: &Queue, slot: &Slot, granted: Handle, behind: u32) {
        if let Some(next) = slot.newer() {
            let word = self.slot(next).word();
            // Q11, as in `follower`.
            if word.waits_behind(next, granted.slot()) && slot.word().is_of(granted) {
                if behind < RUN {
                    queue.set_hint(next, behind);
                } else {
                    self.cut_granted(queue, granted, next, word, behind);
                }
                return;
            }
        } else if behind < RUN {
            // The last: the hint stays with it, unless it was cut and its slot reused already.
            if slot.word().is_of(granted) {
                queue.set_hint(granted, behind);
            }
            return;
        }
        self.advance_slow(queue, granted, behind);
    }

    /// Cuts the granted run, which hangs on `next` (Q9, Q10).
    #[inline(never)]
    fn cut_granted(
        &self,
        queue: &Queue,
        granted: Handle,
        next: Handle,
        word: WaiterWord,
        behind: u32,
    ) {
        if self.slot(next).move_to(word, Place::Head(0)) {
            queue.set_hint(next, 0);
            self.recycle(granted.slot(), None);
        } else {
            queue.set_hint(next, behind);
        }
    }

    #[inline(never)]
    fn advance_slow(&self, queue: &Queue, granted: Handle, behind: u32) {
        let slot = self.slot(granted);
        match self.follower(granted) {
            Some((next, word)) if word.status().is_waiting() => queue.set_hint(next, behind),
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

    /// The waiter behind `settled`, if the hint to it can be believed (Q11): then all that is older than
    /// it is settled, given that all that is older than `settled` is.
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

    /// The oldest waiter: by the hint (Q10) and at most `HOPS` steps, or else by a walk (Q8).
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

    /// Cuts the run of settled waiters behind `anchor` out of the queue (Q8, Q9), up to the next live
    /// one.
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
                let to = match live {
                    Some(live) => state.with(Body::Queue(live)),
                    None => self.emptied(state, 0),
                };
                if !queue.exchange(state, to) {
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

    /// Frees the run that the caller has just cut, from `first` to before `stop`. The cut made it the
    /// caller's (Q9), and its links are frozen until the caller changes them (Q5).
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

    /// What has become of a waiter (Q13). If it waits, `waker` is the one that will be woken.
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
                    if queue.state().is_queue() {
                        placing(self, |wakes| self.finish_close(queue, wakes));
                    }
                    return Poll::Ready(false);
                }
                status if !status.is_waiting() => return Poll::Ready(true),
                _ => {
                    let unused = match slot.register(ticket, waker) {
                        Registered::Waits(old) if queue.state().is_closed() => {
                            placing(self, |wakes| self.finish_close(queue, wakes));
                            [old, None.into()]
                        }
                        Registered::Waits(old) => {
                            drop(old);
                            return Poll::Pending;
                        }
                        Registered::Settled(unused) => [unused, None.into()],
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

    /// Whether a waiter was granted, as far as one look tells (Q13).
    #[inline(always)]
    pub(crate) fn is_granted(&self, ticket: Ticket) -> bool {
        let slot = self.pool.slot(ticket.slot());
        let word = slot.word();
        !slot.is_of(word, ticket) || matches!(word.status(), Status::Granted | Status::GrantedBusy)
    }

    /// Gives back `n` permits of the caller's.
    #[inline(always)]
    pub(crate) fn give_back(&self, n: u64) {
        if n != 0 && !self.try_give(n) {
            self.give_back_slow(n);
        }
    }

    #[inline(never)]
    fn give_back_slow(&self, n: u64) {
        if is_waking(self) {
            return self.give_back_all(n, None);
        }
        match self.hand_over(n) {
            Some((waker, lacked)) if lacked == n => wake_one(self, waker),
            Some((waker, lacked)) => self.give_back_all(n - lacked, Some(waker)),
            None => self.give_back_all(n, None),
        }
    }

    #[inline(never)]
    fn give_back_all(&self, n: u64, woken: Option<Waker>) {
        placing(self, |wakes| {
            if let Some(waker) = woken {
                wakes.push(waker);
            }
            self.release(n, wakes);
        });
    }

    /// One round of [`release`](Self::release), straight through, for the common case: the hint names the
    /// oldest (Q10), or the last one that was granted and is followed by the oldest; that one waits with its
    /// first waker, and lacks no more than `n`. Says what it lacked. Otherwise nothing is done.
    #[inline(always)]
    fn hand_over(&self, n: u64) -> Option<(Waker, u64)> {
        let queue = &self.main;
        let Certificate { mut of, mut behind } = queue.hint()?;
        let mut slot = self.slot(of);
        let mut word = slot.word();
        if word.is_of(of) && word.status() == Status::Granted {
            (of, word) = self.follower(of)?;
            slot = self.slot(of);
            behind += 1;
        }
        // If the slot has another user by now this is nonsense, and the exchange fails (Q3).
        let lacks = u64::from(slot.need()).wrapping_sub(u64::from(word.place().got()));
        // Chosen; then the look at CLOSED and DEBT, as in `release` (Q14, Q16).
        if !word.is_first_of(of) || lacks > n || !queue.state().is_plain() {
            return None;
        }
        let waker = slot.grant_first(word)?;
        queue.leave();
        self.advance(queue, slot, of, behind + 1);
        Some((waker, lacks))
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
                    if queue.state().is_queue() {
                        self.finish_close(queue, wakes);
                    }
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
        Left::Cancelled(waker.into())
    }

    /// [`cancel`](Self::cancel), straight through, for the common case: a waiter that has no permits yet
    /// leaves. Otherwise nothing is done, and there is no answer.
    #[inline(always)]
    pub(crate) fn leave_with_nothing(&self, queue: &Queue, ticket: Ticket) -> Option<Unused> {
        let slot = self.pool.slot(ticket.slot());
        let word = slot.word();
        if !slot.is_of(word, ticket) || !word.status().is_waiting() || word.place().got() > 0 {
            return None;
        }
        let waker = slot.cancel(word).ok()?;
        if !self.unlink_alone(queue, slot, ticket.handle(), word) {
            self.unlink(queue, ticket.handle());
        }
        queue.leave();
        if queue.state().is_closed() {
            placing(self, |wakes| self.finish_close(queue, wakes));
        }
        Some(waker.into())
    }

    /// [`collapse`](Self::collapse) for a run of one: cuts a cancelled waiter whose older neighbour waits, or
    /// that has none. False, and nothing is done, if it is not like that or changed meanwhile.
    #[inline(always)]
    fn unlink_alone(&self, queue: &Queue, slot: &Slot, gone: Handle, was: WaiterWord) -> bool {
        let older = was.place().older();
        let state = queue.state();
        if state.body() == Body::Queue(gone) {
            let to = match older {
                None => self.emptied(state, 0),
                Some(older) => {
                    let word = self.pool.slot(older).word();
                    // Q8: the anchor once more, after what hangs on it.
                    if !word.status().is_waiting() || queue.state() != state {
                        return false;
                    }
                    state.with(Body::Queue(word.handle_at(older)))
                }
            };
            if !queue.exchange(state, to) {
                return false;
            }
        } else {
            let Some(newer) = slot.newer() else { return false };
            let anchor = self.slot(newer);
            let word = anchor.word();
            // Q11, as in `unlink`.
            if !word.waits_behind(newer, gone.slot()) || !slot.word().is_of(gone) {
                return false;
            }
            match older {
                None => {
                    if !anchor.move_to(word, Place::Head(0)) {
                        return false;
                    }
                    queue.set_hint(newer, 0);
                }
                Some(older) => {
                    let neighbour = self.pool.slot(older);
                    // Q8, as above.
                    if !neighbour.word().status().is_waiting()
                        || anchor.word() != word
                        || !anchor.move_to(word, Place::Link(older))
                    {
                        return false;
                    }
                    neighbour.set_newer(newer);
                }
            }
        }
        // Cut by this exchange, and cancelled: nobody else is a party to it.
        self.pool.push(gone.slot());
        true
    }

    /// Gets a cancelled waiter out of its queue (Q12): by its own hand, or it finds that it is out.
    #[inline(never)]
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
                // could be to a later user of it (Q11).
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

    /// Ends the waiters of a closed queue, newest first (Q14); returns the permits that they had in
    /// part.
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
            if settled && queue.exchange(state, self.emptied(state, 0)) {
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
        loop {
            // ORDERING(S6): pairs with itself and S2, S4.
            let state = State(self.main.state.fetch_or(0, AcqRel));
            let Body::Available(some) = state.body() else { return };
            if !state.is_closed() {
                return;
            }
            if state.in_debt() {
                // Paid, perhaps, and the payer was stopped before it could say so.
                let mut hand = 0;
                if self.lift_debt(state, &mut hand) {
                    continue;
                }
                return self.release(hand, wakes);
            }
            // ORDERING: relaxed: its last change is before S6 of the call that made it.
            if some == self.existing.load(Relaxed) {
                // ORDERING(S5): as S2.
                self.gate.state.fetch_or(State::CLOSED_BIT, AcqRel);
                self.end_waiters(&self.gate, wakes);
            }
            return;
        }
    }

    /// N becomes what `change` makes of it, or stays if it makes nothing of it. Then the permits follow.
    pub(crate) fn resize(
        &self,
        wakes: &mut Wakes,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<(), u64> {
        self.change_capacity(change)?;
        self.follow_capacity(wakes);
        Ok(())
    }

    fn change_capacity(&self, change: impl Fn(u64) -> Option<u64>) -> Result<(), u64> {
        // ORDERING: relaxed, all: only the number matters, and R1 or R2 comes after it.
        let mut now = self.capacity.load(Relaxed);
        while let Some(to) = change(now) {
            match self.capacity.compare_exchange_weak(now, to, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(seen) => now = seen,
            }
        }
        Err(now)
    }

    /// Makes the permits that are missing to N, and hands them out; or takes out of the free ones those that are
    /// too many, and leaves the rest as a debt.
    ///
    /// ```text
    /// Available(a), a >= owed  -> Available(a - owed)
    /// Available(a), a <  owed  -> Available, DEBT; the a pay
    /// Available, DEBT          -> the same with another stamp
    /// Queue(t)                 -> Queue(t), DEBT
    /// ```
    fn follow_capacity(&self, wakes: &mut Wakes) {
        let queue = &self.main;
        let mut hand = 0;
        let mut told = false;
        while !self.collect(&mut hand) && !told {
            let state = queue.state();
            let owed = self.debt();
            let (to, taken) = match state.body() {
                Body::Queue(_) => (state.queue_indebted(), 0),
                Body::Available(some) if some >= owed && !state.in_debt() => {
                    (state.with(Body::Available(some - owed)), owed)
                }
                Body::Available(some) => (state.indebted(self.stamp()), some),
            };
            // The linearization point of a shrink.
            if queue.exchange(state, to) {
                told = to.in_debt();
                hand += taken;
            }
        }
        self.release(hand, wakes);
        let state = queue.state();
        if state.in_debt() && state.body() == Body::Available(0) {
            let mut hand = 0;
            self.lift_debt(state, &mut hand);
            self.release(hand, wakes);
        }
        if state.is_closed() {
            self.look_whether_drained(wakes);
        }
    }

    /// `n` permits of the caller's hand cease to exist, and N falls by as many, or to zero.
    ///
    /// N first: in between others may collect what these permits are going to pay, and then this call makes
    /// it anew. The other way round somebody could make permits for an N that is about to fall.
    pub(crate) fn shrink_by_hand(&self, n: u64, wakes: &mut Wakes) {
        let changed = self.change_capacity(|now| Some(now.saturating_sub(n)));
        debug_assert!(changed.is_ok());
        // ORDERING(R2): as in `collect`.
        self.existing.fetch_sub(n, AcqRel);
        self.follow_capacity(wakes);
    }

    /// Up to `n` free permits, in the caller's hand.
    pub(crate) fn take_free(&self, n: u64) -> u64 {
        loop {
            let state = self.main.state();
            let Body::Available(some) = state.body() else { return 0 };
            let taken = some.min(n);
            if taken == 0 || self.main.exchange(state, state.with(Body::Available(some - taken))) {
                return taken;
            }
        }
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
