//! Names that code written for tokio uses.

use crate::lease::{Lease, OwnedLease};
use crate::semaphore::Semaphore;

/// tokio's name for a [`Lease`], so that a change of the import is enough.
pub type SemaphorePermit<'a, O = ()> = Lease<'a, O>;

/// tokio's name for an [`OwnedLease`], so that a change of the import is enough.
pub type OwnedSemaphorePermit<O = ()> = OwnedLease<O>;

macro_rules! const_new {
    ($($const:tt)?) => {
        impl Semaphore {
            /// tokio's name for a [`new`](Self::new) that is `const`.
            ///
            /// # Panics
            ///
            /// As [`new`](Self::new).
            #[deprecated(note = "`Semaphore::new` is `const`")]
            #[must_use]
            pub $($const)? fn const_new(permits: usize) -> Self {
                Self::new(permits)
            }
        }
    };
}

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
const_new!(const);
#[cfg(any(feature = "loom", feature = "shuttle"))]
const_new!();
