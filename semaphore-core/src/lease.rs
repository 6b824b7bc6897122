//! Leases: permits that somebody owns.

use alloc::sync::Arc;
use core::fmt;

use crate::error::MergeError;
use crate::observer::Observer;
use crate::semaphore::Semaphore;

macro_rules! lease {
    ($Lease:ident, $(#[$doc:meta])* [$($life:lifetime)?], $Ref:ty, $Shown:ty, $share:expr, $same:expr) => {
        $(#[$doc])*
        #[must_use = "a lease gives its permits back when it is dropped"]
        #[clippy::has_significant_drop]
        pub struct $Lease<$($life,)? O: Observer = ()> {
            semaphore: $Ref,
            permits: usize,
        }

        impl<$($life,)? O: Observer> $Lease<$($life,)? O> {
            #[inline(always)]
            pub(crate) fn new(semaphore: $Ref, permits: usize) -> Self {
                Self { semaphore, permits }
            }

            /// How many permits the lease holds.
            #[inline]
            pub fn num_permits(&self) -> usize {
                self.permits
            }

            /// The semaphore whose permits these are.
            #[inline]
            pub fn semaphore(&self) -> &$Shown {
                &self.semaphore
            }

            /// Gives the permits back. The same as dropping the lease, and as cheap.
            ///
            /// Lock-free; wakes the waiters that it serves, so foreign wakers run.
            #[inline]
            pub fn release(self) {
                drop(self);
            }

            /// Takes `n` permits out of this lease into one of their own, or `None` if it has fewer.
            ///
            /// `split(0)` gives an empty lease, and `split(all)` leaves one. Touches no shared memory
            /// but, for an owned lease, the reference count.
            pub fn split(&mut self, n: usize) -> Option<Self> {
                let rest = self.permits.checked_sub(n)?;
                let share: fn(&$Ref) -> $Ref = $share;
                let semaphore = share(&self.semaphore);
                self.permits = rest;
                Some(Self { semaphore, permits: n })
            }

            /// Adds the permits of `other` to this lease.
            ///
            /// # Errors
            ///
            /// If `other` is of another semaphore: then neither lease has changed, and `other` comes
            /// back in the error. (tokio panics there.)
            pub fn merge(&mut self, mut other: Self) -> Result<(), MergeError<Self>> {
                let same: fn(&$Ref, &$Ref) -> bool = $same;
                if !same(&self.semaphore, &other.semaphore) {
                    return Err(MergeError(other));
                }
                // No overflow: all permits of one semaphore together are `MAX_PERMITS` at most.
                self.permits += core::mem::take(&mut other.permits);
                Ok(())
            }

            /// Takes the permits out of the semaphore for good: its capacity shrinks by their number.
            ///
            /// Lock-free. Wakes those who wait for [`drained`](Semaphore::drained), if
            /// these were the last permits out.
            pub fn forget(mut self) {
                let permits = core::mem::take(&mut self.permits);
                self.semaphore.destroy(permits);
            }
        }

        impl<$($life,)? O: Observer> Drop for $Lease<$($life,)? O> {
            #[inline]
            fn drop(&mut self) {
                self.semaphore.raw.give_back(self.permits as u64);
            }
        }

        impl<$($life,)? O: Observer> fmt::Debug for $Lease<$($life,)? O> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Lease)).field("permits", &self.permits).finish_non_exhaustive()
            }
        }
    };
}

lease!(
    Lease,
    #[doc(alias = "SemaphoreGuard")]
    /// Permits of a borrowed semaphore, given back once: when the lease is dropped.
    ///
    /// There is no way to give them back twice:
    ///
    /// ```compile_fail,E0382
    /// # use semaphore_core::Semaphore;
    /// let semaphore = Semaphore::new(1);
    /// let lease = semaphore.try_acquire().unwrap();
    /// lease.release();
    /// lease.release(); // use of moved value
    /// ```
    ['a],
    &'a Semaphore<O>,
    Semaphore<O>,
    |semaphore| semaphore,
    |one, other| core::ptr::eq(*one, *other)
);

lease!(
    OwnedLease,
    #[doc(alias = "SemaphoreGuardArc")]
    /// Permits of a shared semaphore, given back once: when the lease is dropped. It keeps the semaphore
    /// alive, and can be sent along with the work.
    [],
    Arc<Semaphore<O>>,
    Arc<Semaphore<O>>,
    Arc::clone,
    Arc::ptr_eq
);

const _: () = assert!(size_of::<Lease<'_>>() == 2 * size_of::<usize>());
const _: () = assert!(size_of::<OwnedLease>() == 2 * size_of::<usize>());
