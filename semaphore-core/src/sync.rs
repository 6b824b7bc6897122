//! The facade over the atomics: the only module that knows of loom or shuttle.
//!
//! [`Word`] and [`Ptr`] are the only shared memory of the crate. In a normal build they are
//! `core::sync::atomic` and nothing else; [`Role`] names what a word is for and compiles to
//! nothing. In a model build they are the checker's atomics, every load and store can be turned
//! into a read-modify-write (see [`crate::model`] for why one wants that), and every write is
//! reported, with the word before and after, to the tap that a checker has installed.
//!
//! No line of the algorithm is written for the checkers: layout, constants and code are the same.

pub(crate) use core::sync::atomic::Ordering;

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
pub(crate) use plain::{Ptr, Word};

#[cfg(any(feature = "loom", feature = "shuttle"))]
pub(crate) use modelled::{Ptr, Word};

/// Which of the two queues of a semaphore a word belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Line {
    /// The queue of those who want permits.
    Main,
    /// The queue of those who wait for the semaphore to be drained.
    Gate,
}

/// What a shared word is for. Declared where the word is made, used by model builds alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The state word of a queue.
    State(Line),
    /// The hint that names the oldest waiter of a queue.
    Hint(Line),
    /// The number of requests in a bounded queue.
    Count(Line),
    /// N, the number of permits that there shall be.
    Capacity,
    /// The number of permits that there are: N, and the debt.
    Existing,
    /// The number of stamps that were used.
    Stamps,
    /// The top of the free list.
    Free,
    /// The number of slots that were ever used.
    Fresh,
    /// A chunk pointer of the pool.
    Chunk(u32),
    /// The word of the waiter in a slot.
    Waiter(u32),
    /// A slot's link to the next newer waiter (a hint).
    Newer(u32),
    /// A slot's reuse count.
    Serial(u32),
    /// How many permits the waiter in a slot asks for.
    Need(u32),
    /// The hand-shake of those who let go of a slot.
    Parties(u32),
    /// A slot's link in a chain of waiters to be woken.
    Chain(u32),
    /// Half of a slot's waker: its data.
    WakerData(u32),
    /// Half of a slot's waker: its functions.
    WakerTable(u32),
}

#[cfg(not(any(target_has_atomic = "64", feature = "portable-atomic")))]
compile_error!(
    "semaphore-core needs 64-bit atomics, which this target does not have: the feature `portable-atomic` brings them along, at the price of being lock-free"
);

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod plain {
    use super::{Ordering, Role};
    use core::sync::atomic::AtomicPtr;
    #[cfg(not(feature = "portable-atomic"))]
    use core::sync::atomic::AtomicU64;
    #[cfg(feature = "portable-atomic")]
    use portable_atomic::AtomicU64;

    /// A shared 64-bit word.
    #[repr(transparent)]
    pub(crate) struct Word(AtomicU64);

    impl Word {
        #[inline(always)]
        pub(crate) const fn new(_role: Role, value: u64) -> Self {
            Self(AtomicU64::new(value))
        }

        #[inline(always)]
        pub(crate) fn load(&self, order: Ordering) -> u64 {
            self.0.load(order)
        }

        #[inline(always)]
        pub(crate) fn store(&self, value: u64, order: Ordering) {
            self.0.store(value, order);
        }

        #[inline(always)]
        pub(crate) fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            self.0.compare_exchange(current, new, success, failure)
        }

        #[inline(always)]
        pub(crate) fn compare_exchange_weak(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            self.0.compare_exchange_weak(current, new, success, failure)
        }

        #[inline(always)]
        pub(crate) fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
            self.0.fetch_or(bits, order)
        }

        #[inline(always)]
        pub(crate) fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
            self.0.fetch_add(n, order)
        }

        #[inline(always)]
        pub(crate) fn fetch_sub(&self, n: u64, order: Ordering) -> u64 {
            self.0.fetch_sub(n, order)
        }
    }

    /// A shared pointer.
    #[repr(transparent)]
    pub(crate) struct Ptr<T>(AtomicPtr<T>);

    impl<T> Ptr<T> {
        #[inline(always)]
        pub(crate) const fn null(_role: Role) -> Self {
            Self(AtomicPtr::new(core::ptr::null_mut()))
        }

        #[inline(always)]
        pub(crate) fn load(&self, order: Ordering) -> *mut T {
            self.0.load(order)
        }

        #[inline(always)]
        pub(crate) fn store(&self, value: *mut T, order: Ordering) {
            self.0.store(value, order);
        }

        #[inline(always)]
        pub(crate) fn compare_exchange(
            &self,
            current: *mut T,
            new: *mut T,
            success: Ordering,
            failure: Ordering,
        ) -> Result<*mut T, *mut T> {
            self.0.compare_exchange(current, new, success, failure)
        }
    }
}

#[cfg(any(feature = "loom", feature = "shuttle"))]
mod modelled {
    use super::{Ordering, Role};
    use crate::model::{self, Write};

    // With both features on (as `--all-features` has it) loom wins.
    #[cfg(feature = "loom")]
    use loom::sync::atomic::{AtomicPtr, AtomicU64};
    #[cfg(all(feature = "shuttle", not(feature = "loom")))]
    use shuttle::sync::atomic::{AtomicPtr, AtomicU64};

    /// A shared 64-bit word, seen by the checker.
    pub(crate) struct Word {
        role: Role,
        cell: AtomicU64,
    }

    impl Word {
        pub(crate) fn new(role: Role, value: u64) -> Self {
            Self { role, cell: AtomicU64::new(value) }
        }

        fn report(&self, before: Option<u64>, after: u64) {
            model::report(&Write { role: self.role, before, after });
        }

        pub(crate) fn load(&self, order: Ordering) -> u64 {
            if model::loads_are_rmws() {
                self.cell.fetch_add(0, order)
            } else {
                self.cell.load(order)
            }
        }

        pub(crate) fn store(&self, value: u64, order: Ordering) {
            if model::loads_are_rmws() {
                let before = self.cell.swap(value, order);
                self.report(Some(before), value);
            } else {
                self.cell.store(value, order);
                self.report(None, value);
            }
        }

        pub(crate) fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            let done = self.cell.compare_exchange(current, new, success, failure);
            if done.is_ok() {
                self.report(Some(current), new);
            }
            done
        }

        pub(crate) fn compare_exchange_weak(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            self.compare_exchange(current, new, success, failure)
        }

        pub(crate) fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
            let before = self.cell.fetch_or(bits, order);
            self.report(Some(before), before | bits);
            before
        }

        pub(crate) fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
            let before = self.cell.fetch_add(n, order);
            self.report(Some(before), before.wrapping_add(n));
            before
        }

        pub(crate) fn fetch_sub(&self, n: u64, order: Ordering) -> u64 {
            let before = self.cell.fetch_sub(n, order);
            self.report(Some(before), before.wrapping_sub(n));
            before
        }
    }

    /// A shared pointer, seen by the checker.
    pub(crate) struct Ptr<T> {
        role: Role,
        cell: AtomicPtr<T>,
    }

    impl<T> Ptr<T> {
        pub(crate) fn null(role: Role) -> Self {
            Self { role, cell: AtomicPtr::new(core::ptr::null_mut()) }
        }

        /// A chunk pointer changes once, from null, and each step of the algorithm loads one: as
        /// read-modify-writes these would be most of what there is to interleave, and show nothing.
        fn strong(&self) -> bool {
            model::loads_are_rmws() && !matches!(self.role, Role::Chunk(_))
        }

        pub(crate) fn load(&self, order: Ordering) -> *mut T {
            if self.strong() {
                let null = core::ptr::null_mut();
                match self.cell.compare_exchange(null, null, order, order) {
                    Ok(seen) | Err(seen) => seen,
                }
            } else {
                self.cell.load(order)
            }
        }

        pub(crate) fn store(&self, value: *mut T, order: Ordering) {
            if self.strong() {
                self.cell.swap(value, order);
            } else {
                self.cell.store(value, order);
            }
        }

        pub(crate) fn compare_exchange(
            &self,
            current: *mut T,
            new: *mut T,
            success: Ordering,
            failure: Ordering,
        ) -> Result<*mut T, *mut T> {
            self.cell.compare_exchange(current, new, success, failure)
        }
    }
}

/// Declares a constant-initialised thread-local, of the checker's threads in a model build.
#[cfg(feature = "std")]
macro_rules! local {
    ($(#[$attr:meta])* static $name:ident: $t:ty = $init:expr;) => {
        #[cfg(not(any(feature = "loom", feature = "shuttle")))]
        std::thread_local! { $(#[$attr])* static $name: $t = const { $init }; }
        #[cfg(feature = "loom")]
        loom::thread_local! { $(#[$attr])* static $name: $t = $init; }
        #[cfg(all(feature = "shuttle", not(feature = "loom")))]
        shuttle::thread_local! { $(#[$attr])* static $name: $t = $init; }
    };
}
#[cfg(feature = "std")]
pub(crate) use local;

#[cfg(feature = "std")]
pub(crate) use threads::{Flag, Thread, current_thread, park, park_until};

/// Threads that park. `park_until` is false when the time is up; it may return early.
#[cfg(all(feature = "std", not(any(feature = "loom", feature = "shuttle"))))]
mod threads {
    pub(crate) use std::sync::atomic::AtomicBool as Flag;
    pub(crate) use std::thread::{Thread, current as current_thread, park};
    use std::time::Instant;

    pub(crate) fn park_until(deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::park_timeout(left);
        }
        !left.is_zero()
    }
}

/// The checkers have no time: there a deadline comes when the thread is scheduled next, so that both
/// sides of its race with the grant are explored.
#[cfg(any(feature = "loom", feature = "shuttle"))]
mod threads {
    #[cfg(feature = "loom")]
    pub(crate) use loom::{
        sync::atomic::AtomicBool as Flag,
        thread::{Thread, current as current_thread, park, yield_now},
    };
    #[cfg(all(feature = "shuttle", not(feature = "loom")))]
    pub(crate) use shuttle::{
        sync::atomic::AtomicBool as Flag,
        thread::{Thread, current as current_thread, park, yield_now},
    };

    pub(crate) fn park_until(_deadline: std::time::Instant) -> bool {
        yield_now();
        false
    }
}
