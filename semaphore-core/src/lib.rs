// In a model build the examples stand aside: the checkers' atomics work within their runs alone.
// (First of all lines, so that it covers the documentation of the crate as well.)
#![cfg(not(all(doctest, any(feature = "loom", feature = "shuttle"))))]
//! A strictly fair, lock-free async semaphore: whoever asked first is served first, nobody takes a
//! lock, and a request that is cancelled leaves nothing behind.
//!
//! ```
//! use semaphore_core::{AcquireError, Semaphore};
//!
//! static CONNECTIONS: Semaphore = Semaphore::new(4);
//!
//! async fn query() -> Result<(), AcquireError> {
//!     let lease = CONNECTIONS.acquire().await?; // in line, if all four are out
//!     assert!(lease.semaphore().available_permits() < 4);
//!     Ok(())
//! } // the lease is dropped: straight to the next in line
//!
//! async fn shut_down() {
//!     CONNECTIONS.close(); // whoever waits ends with `Closed`
//!     CONNECTIONS.drained().await; // all four are back
//! }
//! # struct Unpark(std::thread::Thread);
//! # impl std::task::Wake for Unpark {
//! #     fn wake(self: std::sync::Arc<Self>) {
//! #         self.0.unpark();
//! #     }
//! # }
//! # fn block_on<F: Future>(future: F) -> F::Output {
//! #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
//! #     let mut context = std::task::Context::from_waker(&waker);
//! #     let mut future = std::pin::pin!(future);
//! #     loop {
//! #         match future.as_mut().poll(&mut context) {
//! #             std::task::Poll::Ready(output) => return output,
//! #             std::task::Poll::Pending => std::thread::park(),
//! #         }
//! #     }
//! # }
//! # std::thread::scope(|scope| {
//! #     (0..8).for_each(|_| drop(scope.spawn(|| block_on(query()).unwrap())));
//! # });
//! # block_on(shut_down());
//! # assert_eq!(block_on(query()), Err(AcquireError::Closed));
//! ```
//!
//! Names follow `tokio::sync::Semaphore` where the meaning is the same. It needs no runtime: a
//! future is polled by whatever polls futures, and a deadline is any future that the caller brings.
//!
//! # The contract
//!
//! Let N be the [capacity](Semaphore::capacity), *held* the permits that leases own, and *reserved*
//! those that are on their way to a chosen waiter: the part that the oldest one has gathered, and
//! grants that were not polled yet. Then at every step
//!
//! > available + held + reserved = N.
//!
//! - **Ownership.** A successful acquire gives a [`Lease`] or an [`OwnedLease`]. Dropping it gives
//!   its permits back, once. A request that was cancelled, timed out, refused or closed owns
//!   nothing.
//! - **Hand-off.** While anybody waits nothing is available: a release gives its permits to the
//!   oldest waiter in the same transition, and a newcomer cannot take them in between.
//! - **Deadlines** ([`with_deadline`](Acquire::with_deadline)). A grant that came before the
//!   deadline wins, even if both are there when the request is polled.
//! - **Bounds.** A semaphore has as many permits as it was made with, unless it is
//!   [`growable`](Semaphore::growable) or has a higher [`ceiling`](Builder::ceiling); a request for
//!   more than the ceiling is an error and no hang. [`max_waiters`](Builder::max_waiters) bounds
//!   the queue.
//! - **Close** ([`close`](Semaphore::close)). New requests fail, those who wait end with
//!   [`Closed`](AcquireError::Closed), and nobody waits when it returns. Leases, and grants not
//!   polled yet, stay good. [`drained`](Semaphore::drained) tells when all permits are back.
//! - **Errors**, if there are several: `Closed` before `ExceedsCapacity` before `QueueFull`.
//! - **Foreign code.** Wakers are cloned, woken and dropped with nothing exclusive held, and may
//!   call back into the semaphore. They run on the thread of the call that settled their waiter,
//!   after it has placed its permits. A future that was polled with several wakers wakes the last
//!   one.
//!
//! # Fairness
//!
//! Strictly first in, first out, by the order in which requests joined: at the first poll, or at
//! [`enqueue`](Acquire::enqueue). No [`acquire`](Semaphore::acquire), no
//! [`acquire_many`](Semaphore::acquire_many) and no [`try_acquire`](Semaphore::try_acquire) takes a
//! permit while an older request waits, whatever its size. So a large request holds up small ones
//! behind it; that is what keeps it from starving.
//!
//! A grant that nobody polls holds its permits until its future is polled or dropped. Two futures
//! of one semaphore in one task, of which only one is polled, can wait for each other.
//!
//! # Threads, work that is submitted, services
//!
//! - A thread waits in the same queue: [`acquire_blocking`](Semaphore::acquire_blocking), with a
//!   timeout or without, or [`wait`](Acquire::wait) on a request that is in line already.
//! - Work that goes to another thread or task takes its permits along: [`OwnedLease::wrap`] and
//!   [`OwnedLease::wrap_future`]. Taken before the submission, they bound what has been submitted.
//! - Whoever has a `poll_ready` and no place for a future uses [`PollAcquire`].
//! - Code for tokio's semaphore compiles with the import changed, but for a few differences, most of
//!   which are results where tokio panics. A task of tokio's that acquires over and over and never
//!   waits does not spend of its cooperative budget here; `tokio::task::coop::cooperative` around the
//!   request makes it do so.
//!
//! # Cancel safety
//!
//! Every future here may be dropped at any time, and needs no pinning. A dropped request gives up
//! its place; a part that it had gathered, or a grant that it was not polled for, goes to the next
//! in line. A cancellation is a single transition that the grant races for, costs the same anywhere
//! in the line as long as it meets no conflict, and leaves nothing behind that would have to be
//! swept up later.
//!
//! A request that is forgotten ([`mem::forget`](core::mem::forget)) keeps its place, and what it is
//! granted is lost to the semaphore.
//!
//! # Memory ordering
//!
//! All that happened before a permit was released happens before all that follows the acquire that
//! takes it: by [`try_acquire`](Semaphore::try_acquire) and through the queue alike, and for each
//! of the permits of an [`acquire_many`](Semaphore::acquire_many). A failed attempt orders nothing.
//!
//! # Lock-free
//!
//! There is no lock and no waiting for another thread: of all calls in flight one always finishes,
//! wherever the others are stopped. A thread that is stopped for ever keeps the permits that it
//! holds or is moving, the wakes that it has yet to deliver, its places in the queue's bound and a
//! few slots of the pool, and keeps nobody else from finishing a call. While nobody waits, an
//! acquire and a release are one compare-exchange each, repeated only if another one came in
//! between.
//!
//! What is admitted:
//!
//! - *Memory.* Waiters live in a pool of 64-byte slots. It grows in chunks, by the global
//!   allocator, which may lock, when more wait at once than ever before; it is freed with the
//!   semaphore. With [`max_waiters`](Builder::max_waiters) the slots are there from the start, with
//!   32 to spare for calls that are under way and for futures of [`drained`](Semaphore::drained),
//!   which take slots as well; more of those make it grow.
//! - *Size.* A semaphore has 29,360,120 slots at most. A request beyond that is
//!   [`QueueFull`](AcquireError::QueueFull); a future of `drained` wakes itself until it finds a
//!   slot.
//! - *Generations.* A slot is told from its earlier uses by 28 bits, in the midst of a call. A
//!   thread that is stopped between a load and a compare-exchange for exactly a multiple of 2^28
//!   reuses of one slot (16 seconds at 60 ns each), and then finds the rest of the word the same,
//!   is fooled by it, and safety rests on that not happening.
//! - *Without `std`* there are no thread-locals: a waker that calls back into the semaphore and so
//!   wakes others does so on top of the stack that it has, one level each. A waker that panics is
//!   not caught.
//! - *[`waiters`](Semaphore::waiters)*, without `max_waiters`, walks the queue.
//!
//! # Features
//!
//! | feature | default | what it does |
//! |---|---|---|
//! | `std` | yes | callers that [block](Semaphore::acquire_blocking); wakes of re-entrant calls run one after the other on a flat stack; a waker that panics loses none of the others, and its panic goes on afterwards |
//! | `tower` | no | the module `tower`: a concurrency limit for services |
//! | `metrics` | no | `MetricsObserver`: wait times, queue depth and refusals for the `metrics` facade |
//! | `tracing` | no | `TracingObserver`: the same as events of `tracing` |
//! | `portable-atomic` | no | 64-bit atomics for targets that have none: see [Targets](#targets) |
//! | `loom` | no | **model checking only**: replaces the atomics by loom's |
//! | `shuttle` | no | **model checking only**: replaces the atomics by shuttle's |
//!
//! `loom` and `shuttle` are not additive: with either, nothing here works outside of the checker,
//! and `const fn` constructors are no longer `const`. Never turn them on in a library, or in
//! anything that ships.
//!
//! Without default features the crate is `no_std` with `alloc`.
//!
//! # Targets
//!
//! All words are 64 bits wide, on each target. A target without 64-bit atomics (`target_has_atomic =
//! "64"`: most 32-bit microcontrollers, and not 32-bit x86 or 32-bit Arm A) is a compile error, unless
//! `portable-atomic` is on, which takes them from the crate of that name. What they are made of there
//! (disabled interrupts, or a global lock) is that crate's and the target's matter: **then nothing
//! said here about being lock-free holds.** A compare-exchange of at least one word is needed in any
//! case. On 32-bit targets [`MAX_PERMITS`] is 2^29 - 1. Tests run on 64-bit targets alone.
//!
//! The minimum supported Rust version is 1.88.
#![cfg_attr(not(feature = "std"), no_std)]
#![warn(clippy::undocumented_unsafe_blocks)]

extern crate alloc;

mod acquire;
#[cfg(feature = "std")]
mod blocking;
mod compat;
mod error;
mod lease;
#[cfg(any(feature = "metrics", feature = "tracing"))]
mod observe;
mod observer;
mod poll_acquire;
// Public in the model build, for checkers to read the words by.
#[cfg_attr(not(any(feature = "loom", feature = "shuttle")), allow(unreachable_pub))]
mod queue;
mod semaphore;
#[cfg_attr(not(any(feature = "loom", feature = "shuttle")), allow(unreachable_pub))]
mod state;
#[cfg_attr(not(any(feature = "loom", feature = "shuttle")), allow(unreachable_pub))]
mod sync;
#[cfg(feature = "tower")]
pub mod tower;
mod waiter;
mod wake;
mod wrap;

#[cfg(any(feature = "loom", feature = "shuttle"))]
pub mod model;

pub use acquire::{Acquire, AcquireOwned, Drained, WithDeadline};
pub use compat::{OwnedSemaphorePermit, SemaphorePermit};
pub use error::{AcquireError, BuildError, CeilingError, MAX_PERMITS, MergeError, TryAcquireError};
pub use lease::{Lease, OwnedLease};
#[cfg(feature = "metrics")]
pub use observe::metrics::MetricsObserver;
#[cfg(feature = "tracing")]
pub use observe::tracing::TracingObserver;
pub use observer::Observer;
pub use poll_acquire::PollAcquire;
pub use semaphore::{Builder, Semaphore, Snapshot};
pub use wrap::WithLease;

#[cfg(all(doctest, not(any(feature = "loom", feature = "shuttle"))))]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "std", not(any(feature = "loom", feature = "shuttle"))))]
#[doc = include_str!("../../docs/ADMISSION.md")]
struct Admission;

#[cfg(all(doctest, feature = "std", not(any(feature = "loom", feature = "shuttle"))))]
#[doc = include_str!("../../docs/COMPARE.md")]
struct Compare;
