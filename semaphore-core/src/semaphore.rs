//! The semaphore.

use alloc::sync::Arc;
use core::fmt;

use crate::acquire::{Acquire, AcquireOwned, Drained};
use crate::error::{BuildError, CeilingError, MAX_PERMITS, TryAcquireError};
use crate::lease::{Lease, OwnedLease};
use crate::observer::Observer;
use crate::queue::{Raw, UNBOUNDED};
use crate::state::State;
use crate::wake::placing;

/// A fair, lock-free counting semaphore.
///
/// The [crate documentation](crate) has the contract; [`builder`](Semaphore::builder) has all options.
pub struct Semaphore<O: Observer = ()> {
    pub(crate) raw: Raw,
    observer: O,
}

// Most of it are the pointers to the chunks of the pool.
#[cfg(all(target_pointer_width = "64", not(any(feature = "loom", feature = "shuttle"))))]
const _: () = assert!(size_of::<Semaphore>() == 368);

impl Semaphore {
    /// The most permits that a semaphore can have.
    pub const MAX_PERMITS: usize = MAX_PERMITS;
}

macro_rules! constructors {
    ($($const:tt)?) => {
        impl Semaphore {
            /// A semaphore with `permits` permits, and never more.
            ///
            /// Does not allocate; the first request that has to wait does.
            ///
            /// # Panics
            ///
            /// If `permits` is zero or above [`MAX_PERMITS`](Self::MAX_PERMITS). In a
            /// constant that is a compile error.
            ///
            /// ```
            /// use semaphore_core::Semaphore;
            /// static CONNECTIONS: Semaphore = Semaphore::new(4);
            /// assert_eq!(CONNECTIONS.available_permits(), 4);
            /// ```
            #[must_use]
            pub $($const)? fn new(permits: usize) -> Self {
                assert!(permits != 0, "a semaphore of zero permits grants nothing: see `growable`");
                assert!(permits <= MAX_PERMITS, "more permits than a semaphore can have: see `MAX_PERMITS`");
                Self { raw: Raw::new(permits as u64, permits as u64, UNBOUNDED), observer: () }
            }

            /// A semaphore with `permits` permits, and never more.
            ///
            /// # Errors
            ///
            /// If `permits` is zero or above [`MAX_PERMITS`](Self::MAX_PERMITS).
            pub $($const)? fn try_new(permits: usize) -> Result<Self, BuildError> {
                if permits == 0 {
                    return Err(BuildError::ZeroPermits);
                }
                if permits > MAX_PERMITS {
                    return Err(BuildError::TooManyPermits { permits });
                }
                let permits = permits as u64;
                Ok(Self { raw: Raw::new(permits, permits, UNBOUNDED), observer: () })
            }

            /// A semaphore that starts with `permits` permits and can have up to
            /// [`MAX_PERMITS`](Self::MAX_PERMITS), as every semaphore of tokio can. None to start with
            /// is fine: see [`add_permits`](Self::add_permits).
            ///
            /// # Panics
            ///
            /// If `permits` is above [`MAX_PERMITS`](Self::MAX_PERMITS).
            #[must_use]
            pub $($const)? fn growable(permits: usize) -> Self {
                assert!(permits <= MAX_PERMITS, "more permits than a semaphore can have: see `MAX_PERMITS`");
                Self { raw: Raw::new(permits as u64, MAX_PERMITS as u64, UNBOUNDED), observer: () }
            }
        }
    };
}

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
constructors!(const);
#[cfg(any(feature = "loom", feature = "shuttle"))]
constructors!();

impl Semaphore {
    /// All options.
    ///
    /// ```
    /// use semaphore_core::Semaphore;
    /// let semaphore = Semaphore::builder().permits(4).max_waiters(100).build()?;
    /// # assert_eq!(semaphore.capacity(), 4);
    /// # Ok::<(), semaphore_core::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder { permits: 0, ceiling: None, max_waiters: None, observer: () }
    }
}

impl<O: Observer> Semaphore<O> {
    /// Asks for one permit.
    ///
    /// The future is ready with a [`Lease`] as soon as there is a permit and nobody else has been
    /// waiting for one. It joins the queue at its first poll (or at
    /// [`enqueue`](Acquire::enqueue)) and then keeps its place.
    ///
    /// Lock-free. If nobody waits it is one compare-exchange. If it has to wait it takes a slot
    /// of a pool; the pool grows, by allocating, when more wait at once than ever before, unless
    /// [`max_waiters`](Builder::max_waiters) set it up. Clones the waker then.
    ///
    /// A future of this kind that was granted and not polled holds its permit: two futures in one
    /// task, of which only one is polled, can wait for each other.
    ///
    /// # Errors
    ///
    /// [`Closed`](crate::AcquireError::Closed), [`QueueFull`](crate::AcquireError::QueueFull).
    ///
    /// # Cancel safety
    ///
    /// Dropped, the future gives up its place in the queue; a permit that it was granted meanwhile
    /// goes to the next waiter.
    #[inline]
    pub fn acquire(&self) -> Acquire<'_, O> {
        self.acquire_many(1)
    }

    /// Asks for `n` permits at once.
    ///
    /// As [`acquire`](Self::acquire). A request at the head of the queue gathers permits as they come
    /// back, and holds up those behind it, whatever they ask for: that is what keeps it from
    /// starving. A request for more permits than there are now waits until there are (it can
    /// wait for ever, if [`capacity`](Self::capacity) never grows). A request for none is ready
    /// at once, with an empty lease, unless the semaphore is closed.
    ///
    /// # Errors
    ///
    /// Besides those of [`acquire`](Self::acquire)
    /// [`ExceedsCapacity`](crate::AcquireError::ExceedsCapacity), if there can never be so many permits.
    #[inline]
    pub fn acquire_many(&self, n: u32) -> Acquire<'_, O> {
        Acquire::new(self, n)
    }

    /// [`acquire`](Self::acquire) with a lease that owns a share of the semaphore.
    #[doc(alias = "acquire_arc")]
    #[inline]
    pub fn acquire_owned(self: Arc<Self>) -> AcquireOwned<O> {
        self.acquire_many_owned(1)
    }

    /// [`acquire_many`](Self::acquire_many) with a lease that owns a share of the semaphore.
    #[inline]
    pub fn acquire_many_owned(self: Arc<Self>, n: u32) -> AcquireOwned<O> {
        AcquireOwned::new(self, n)
    }

    /// Takes a permit if there is one and nobody waits.
    ///
    /// Lock-free, one compare-exchange; allocates nothing.
    ///
    /// # Errors
    ///
    /// [`NoPermits`](TryAcquireError::NoPermits), [`Closed`](TryAcquireError::Closed).
    #[doc(alias = "tryAcquire")]
    #[inline]
    pub fn try_acquire(&self) -> Result<Lease<'_, O>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits if they are there and nobody waits.
    ///
    /// # Errors
    ///
    /// [`NoPermits`](TryAcquireError::NoPermits), [`Closed`](TryAcquireError::Closed),
    /// [`ExceedsCapacity`](TryAcquireError::ExceedsCapacity).
    #[inline]
    pub fn try_acquire_many(&self, n: u32) -> Result<Lease<'_, O>, TryAcquireError> {
        self.try_take(n)?;
        Ok(Lease::new(self, n as usize))
    }

    /// [`try_acquire`](Self::try_acquire) with a lease that owns a share of the semaphore.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    #[doc(alias = "try_acquire_arc")]
    #[inline]
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedLease<O>, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// [`try_acquire_many`](Self::try_acquire_many) with a lease that owns a share of the semaphore.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_many`](Self::try_acquire_many).
    #[inline]
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedLease<O>, TryAcquireError> {
        self.try_take(n)?;
        Ok(OwnedLease::new(self, n as usize))
    }

    #[inline]
    fn try_take(&self, n: u32) -> Result<(), TryAcquireError> {
        self.raw.try_take(n).or_else(|state| self.not_taken(n, state))
    }

    #[cold]
    fn not_taken(&self, n: u32, state: State) -> Result<(), TryAcquireError> {
        if state.is_closed() {
            placing(&self.raw, |wakes| self.raw.finish_close(self.raw.main(), wakes));
            Err(TryAcquireError::Closed)
        } else if n == 0 {
            Ok(())
        } else if u64::from(n) > self.raw.ceiling() {
            Err(TryAcquireError::ExceedsCapacity { requested: n, ceiling: self.ceiling() })
        } else {
            Err(TryAcquireError::NoPermits)
        }
    }

    /// Closes the semaphore: no request succeeds any more, and those who wait end with
    /// [`Closed`](crate::AcquireError::Closed).
    ///
    /// Leases in hand stay valid and are given back as before, and a request that was granted already
    /// gets its lease when it is polled. When this returns nobody is pending. Idempotent.
    /// Its linearization point is the setting of the CLOSED bit.
    ///
    /// Lock-free: work in proportion to the number of waiters. Wakes them all.
    pub fn close(&self) {
        placing(&self.raw, |wakes| self.raw.close(wakes));
    }

    /// Whether the semaphore is closed.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.raw.state().is_closed()
    }

    /// Ready when the semaphore is closed and all its permits are back: no lease is left, and no
    /// granted request that was not polled yet. Any number of callers may wait. Does not close the
    /// semaphore. Once ready it stays so, whatever is done to the capacity afterwards.
    ///
    /// Lock-free. Takes a slot of the pool while it waits.
    ///
    /// ```
    /// # use semaphore_core::Semaphore;
    /// # use futures_util::future::FutureExt;
    /// let semaphore = Semaphore::new(2);
    /// let lease = semaphore.try_acquire().unwrap();
    /// semaphore.close();
    /// assert!(semaphore.drained().now_or_never().is_none());
    /// drop(lease);
    /// assert!(semaphore.drained().now_or_never().is_some());
    /// ```
    pub fn drained(&self) -> Drained<'_, O> {
        Drained::new(self)
    }

    /// How many permits there shall be: N. There are as many, and the [debt](Snapshot::debt).
    pub fn capacity(&self) -> usize {
        self.raw.capacity() as usize
    }

    /// The most permits that there may ever be.
    pub fn ceiling(&self) -> usize {
        self.raw.ceiling() as usize
    }

    /// How many permits could be taken at once. None, while anybody waits.
    ///
    /// One load. Old news by the time it is looked at.
    #[doc(alias = "availablePermits")]
    pub fn available_permits(&self) -> usize {
        self.raw.state().free() as usize
    }

    /// How many requests wait. Exact if no other call is in flight.
    ///
    /// With [`max_waiters`](Builder::max_waiters) it is one load. Without, nobody counts: it walks
    /// the queue, and if that keeps changing under it, the answer is the length of the part
    /// that it saw last. Lock-free.
    #[doc(alias = "getQueueLength")]
    #[doc(alias = "hasQueuedThreads")]
    pub fn waiters(&self) -> usize {
        self.raw.waiters() as usize
    }

    /// All figures.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.raw.state();
        Snapshot {
            available: state.free() as usize,
            closed: state.is_closed(),
            capacity: self.capacity(),
            debt: self.raw.debt() as usize,
            ceiling: self.ceiling(),
            waiters: self.waiters(),
            max_waiters: self.raw.limit().map(|limit| limit as usize),
        }
    }

    /// Adds `n` permits to those that exist, and gives them to those who wait, in order.
    ///
    /// Works on a closed semaphore, and does not open it. Lock-free; wakes those that it serves.
    ///
    /// # Errors
    ///
    /// If there would be more than the ceiling. A semaphore made by [`new`](Semaphore::new) starts at
    /// its ceiling, so only what was forgotten before can be added there: a permit that came back
    /// with its lease and is added once more is an error, and not a permit too many.
    pub fn add_permits(&self, n: usize) -> Result<(), CeilingError> {
        self.resize(|now| now.saturating_add(n as u64))
    }

    /// Takes up to `n` of the free permits out of the semaphore for good, and says how many those were.
    ///
    /// Nothing is free while anybody waits, and nothing that is in use is touched: see
    /// [`set_capacity`](Self::set_capacity) for that. Lock-free. Those who wait for
    /// [`drained`](Self::drained) are woken if these were the last ones.
    pub fn forget_permits(&self, n: usize) -> usize {
        let taken = self.raw.take_free(n as u64) as usize;
        self.destroy(taken);
        taken
    }

    /// From now on there are `n` permits.
    ///
    /// If that is more than before, those who wait are served, in order. If it is less, the free ones go
    /// first, and the rest is a *debt*: the next permits that come back go there, before any waiter is
    /// served. Nothing is ever taken from a lease, nor from the head of the queue what it has got already. A
    /// request for more than `n` stays in its place and waits until there are more, and those behind it
    /// wait with it. To change the number again while in debt is fine: only the difference
    /// counts. `0` is fine, too.
    ///
    /// A release that had chosen its waiter before the change may serve it after. Works on a closed
    /// semaphore, and does not open it. Lock-free; wakes those that it serves. After a shrink into debt
    /// each release costs a read-modify-write more, until the queue has been empty once.
    ///
    /// ```
    /// # use semaphore_core::Semaphore;
    /// let semaphore = Semaphore::new(4);
    /// let mut leases = semaphore.try_acquire_many(3)?;
    /// semaphore.set_capacity(2)?;
    /// let figures = semaphore.snapshot();
    /// assert_eq!((figures.capacity, figures.available, figures.debt), (2, 0, 1));
    /// drop(leases.split(1));
    /// let figures = semaphore.snapshot();
    /// assert_eq!((figures.capacity, figures.available, figures.debt), (2, 0, 0));
    /// drop(leases);
    /// assert_eq!(semaphore.available_permits(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If `n` is over the ceiling.
    pub fn set_capacity(&self, n: usize) -> Result<(), CeilingError> {
        self.resize(|_| n as u64)
    }

    fn resize(&self, to: impl Fn(u64) -> u64) -> Result<(), CeilingError> {
        let ceiling = self.raw.ceiling();
        placing(&self.raw, |wakes| {
            self.raw.resize(wakes, |now| Some(to(now)).filter(|to| *to <= ceiling))
        })
        .map_err(|now| CeilingError {
            permits: usize::try_from(to(now)).unwrap_or(usize::MAX),
            ceiling: self.ceiling(),
        })
    }

    /// The observer that the semaphore was built with.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Permits of a lease cease to exist.
    pub(crate) fn destroy(&self, permits: usize) {
        if permits > 0 {
            placing(&self.raw, |wakes| self.raw.shrink_by_hand(permits as u64, wakes));
        }
    }
}

impl<O: Observer> fmt::Debug for Semaphore<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot { available, closed, capacity, waiters, .. } = self.snapshot();
        f.debug_struct("Semaphore")
            .field("capacity", &capacity)
            .field("available", &available)
            .field("waiters", &waiters)
            .field("closed", &closed)
            .finish_non_exhaustive()
    }
}

/// The figures of a semaphore, as [`Semaphore::snapshot`] found them.
///
/// `available` and `closed` come from one load, and so belong together. Each of the others is read on
/// its own, later; all are exact together if no other call is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Permits that could be taken at once.
    pub available: usize,
    /// Whether the semaphore is closed.
    pub closed: bool,
    /// How many permits there shall be.
    pub capacity: usize,
    /// How many more than that there still are, because they are in use.
    pub debt: usize,
    /// The most there may ever be.
    pub ceiling: usize,
    /// How many requests wait.
    pub waiters: usize,
    /// How many requests may wait.
    pub max_waiters: Option<usize>,
}

/// Makes a [`Semaphore`]. See [`Semaphore::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<O = ()> {
    permits: usize,
    ceiling: Option<usize>,
    max_waiters: Option<usize>,
    observer: O,
}

impl<O: Observer> Builder<O> {
    /// How many permits there are to start with. Has to be said, unless there is a
    /// [`ceiling`](Self::ceiling).
    pub fn permits(self, permits: usize) -> Self {
        Self { permits, ..self }
    }

    /// The most permits that there may ever be. By default as many as there are to start with.
    pub fn ceiling(self, ceiling: usize) -> Self {
        Self { ceiling: Some(ceiling), ..self }
    }

    /// The most requests that may wait at a time; one more fails with
    /// [`QueueFull`](crate::AcquireError::QueueFull). Zero is allowed: then nobody waits.
    ///
    /// The slots for them are allocated by [`build`](Self::build), so that waiting never
    /// allocates. Costs each wait two more read-modify-writes, to count.
    pub fn max_waiters(self, waiters: usize) -> Self {
        Self { max_waiters: Some(waiters), ..self }
    }

    /// Who is told what happens.
    pub fn observer<P: Observer>(self, observer: P) -> Builder<P> {
        let Self { permits, ceiling, max_waiters, observer: _ } = self;
        Builder { permits, ceiling, max_waiters, observer }
    }

    /// Makes the semaphore.
    ///
    /// # Errors
    ///
    /// If the ceiling is zero or above [`MAX_PERMITS`], the permits above the ceiling, or the bound of
    /// the queue above what a queue can hold (about 29 million).
    pub fn build(self) -> Result<Semaphore<O>, BuildError> {
        let Self { permits, ceiling, max_waiters, observer } = self;
        let ceiling = ceiling.unwrap_or(permits);
        if ceiling == 0 && permits == 0 {
            return Err(BuildError::ZeroPermits);
        }
        if permits > ceiling {
            return Err(BuildError::AboveCeiling { permits, ceiling });
        }
        if ceiling > MAX_PERMITS {
            return Err(BuildError::TooManyPermits { permits: ceiling });
        }
        let limit = max_waiters.map_or(UNBOUNDED, |waiters| waiters as u64);
        let raw = Raw::new(permits as u64, ceiling as u64, limit);
        if let Some(waiters) = max_waiters
            && !raw.reserve(waiters as u64)
        {
            return Err(BuildError::TooManyWaiters { waiters });
        }
        Ok(Semaphore { raw, observer })
    }
}
