//! Threads that wait: the same queue, with a waker that unparks.
//!
//! A blocking call polls an ordinary request. Where a task would be put aside, the thread parks until
//! the request's waker was called, or its time is up; then the request leaves the queue by the same
//! transition as every deadline ([`time_out`](Request::time_out)), which the grant races for.

use alloc::sync::Arc;
use core::cell::Cell;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::task::Wake;
use std::time::Instant;

use crate::acquire::{Acquire, AcquireOwned, Request};
use crate::error::AcquireError;
use crate::lease::{Lease, OwnedLease};
use crate::observer::Observer;
use crate::semaphore::Semaphore;
use crate::sync::{Flag, Ordering, Thread, current_thread, local, park, park_until};

/// Unparks one thread.
struct Unpark {
    thread: Thread,
    /// A wake came since the thread last looked. The thread's own token will not do: foreign code
    /// that runs between the poll and the parking may park as well, and use it up.
    woken: Flag,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // ORDERING: release, pairs with the swap in `wait`: what the caller did before the wake is
        // seen by the poll that follows it. A swap as well, so that all wakes and looks are in one
        // order, in which each reads the one before it.
        self.woken.swap(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// What a thread waits with.
struct Parker {
    unpark: Arc<Unpark>,
    waker: Waker,
}

local! {
    /// Kept from wait to wait, so that only the first of a thread allocates. Empty while the thread
    /// waits: a wait within a wait (a waker or an observer that blocks) makes one of its own, or
    /// each could take the other's wake.
    static IDLE: Cell<Option<Parker>> = Cell::new(None);
}

impl Parker {
    fn take() -> Self {
        // Thread-locals may be gone already, in the destructor of another one.
        IDLE.try_with(Cell::take).ok().flatten().unwrap_or_else(|| {
            let unpark = Arc::new(Unpark { thread: current_thread(), woken: Flag::new(false) });
            Self { waker: Arc::clone(&unpark).into(), unpark }
        })
    }

    fn put_back(self) {
        // If it cannot be kept it is dropped.
        let _ = IDLE.try_with(|idle| idle.set(Some(self)));
    }

    /// Parks until a wake came, or the deadline. False for the deadline.
    fn wait(&self, deadline: Option<Instant>) -> bool {
        // ORDERING: acquire, pairs with the swap in `wake_by_ref`.
        while !self.unpark.woken.swap(false, Ordering::Acquire) {
            match deadline {
                None => park(),
                Some(deadline) if park_until(deadline) => {}
                Some(_) => return false,
            }
        }
        true
    }
}

/// Polls the request until it is ready, and parks in between.
fn block_on<R: Request>(
    mut request: R,
    deadline: Option<Instant>,
) -> Result<R::Lease, AcquireError> {
    let parker = Parker::take();
    let result = loop {
        match request.poll_request(&mut Context::from_waker(&parker.waker)) {
            Poll::Ready(result) => break result,
            Poll::Pending if parker.wait(deadline) => {}
            Poll::Pending => break request.time_out(),
        }
    };
    parker.put_back();
    result
}

/// The point in time, or none if it is beyond what the clock can say.
fn deadline_in(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

macro_rules! wait {
    ($Acquire:ident, $Lease:ty, [$($life:lifetime)?]) => {
        impl<$($life,)? O: Observer> $Acquire<$($life,)? O> {
            /// Blocks the thread until the permits are there.
            ///
            /// For threads, of which one may block: in async code await the request instead. A request
            /// that was [`enqueue`](Self::enqueue)d keeps its place.
            ///
            /// The wait of the semaphore is lock-free as that of a task is; the thread sleeps in
            /// [`park`](std::thread::park), and is unparked by the call that served it. The first
            /// wait of a thread allocates its waker.
            ///
            /// ```
            /// # use semaphore_core::Semaphore;
            /// let semaphore = Semaphore::new(1);
            /// let held = semaphore.try_acquire()?;
            /// let next = semaphore.acquire().enqueue(); // in line from here on
            /// std::thread::scope(|scope| {
            ///     scope.spawn(|| next.wait().map(drop));
            ///     held.release();
            /// });
            /// # Ok::<(), semaphore_core::TryAcquireError>(())
            /// ```
            ///
            /// # Errors
            ///
            /// Those of the request.
            ///
            /// # Panics
            ///
            /// If the request was ready before.
            pub fn wait(self) -> Result<$Lease, AcquireError> {
                block_on(self, None)
            }

            /// [`wait`](Self::wait), for `timeout` at most.
            ///
            /// A grant that came before the time was up wins, though the thread notices it later; no
            /// time at all still gets the permits if they are free. A timeout that is beyond what the
            /// clock can say never comes.
            ///
            /// # Errors
            ///
            /// Those of the request, and [`TimedOut`](AcquireError::TimedOut).
            ///
            /// # Panics
            ///
            /// If the request was ready before.
            pub fn wait_timeout(self, timeout: Duration) -> Result<$Lease, AcquireError> {
                block_on(self, deadline_in(timeout))
            }
        }
    };
}

wait!(Acquire, Lease<'a, O>, ['a]);
wait!(AcquireOwned, OwnedLease<O>, []);

impl<O: Observer> Semaphore<O> {
    /// [`acquire`](Self::acquire), blocking the thread until there is a permit.
    ///
    /// Threads and tasks wait in one queue, in the order in which they came. In async code a call
    /// that blocks stops the executor's thread: await [`acquire`](Self::acquire) there.
    ///
    /// Lock-free, and without a system call if nobody waits; else the thread sleeps in
    /// [`park`](std::thread::park) until it is served. The first wait of a thread allocates.
    ///
    /// ```
    /// # use semaphore_core::Semaphore;
    /// let semaphore = Semaphore::new(2);
    /// std::thread::scope(|scope| {
    ///     for _ in 0..8 {
    ///         scope.spawn(|| {
    ///             let lease = semaphore.acquire_blocking().unwrap();
    ///             // two at a time
    /// #           drop(lease);
    ///         });
    ///     }
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    #[inline]
    pub fn acquire_blocking(&self) -> Result<Lease<'_, O>, AcquireError> {
        self.acquire_many_blocking(1)
    }

    /// [`acquire_many`](Self::acquire_many), blocking the thread until there are `n` permits.
    ///
    /// As [`acquire_blocking`](Self::acquire_blocking).
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many).
    #[inline]
    pub fn acquire_many_blocking(&self, n: u32) -> Result<Lease<'_, O>, AcquireError> {
        if self.raw.try_take(n).is_ok() {
            return Ok(Lease::new(self, n as usize));
        }
        self.acquire_many(n).wait()
    }

    /// [`acquire_blocking`](Self::acquire_blocking), for `timeout` at most.
    ///
    /// A grant that came before the time was up wins; no time at all still gets a permit that is
    /// free.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`TimedOut`](AcquireError::TimedOut).
    #[inline]
    pub fn acquire_blocking_timeout(
        &self,
        timeout: Duration,
    ) -> Result<Lease<'_, O>, AcquireError> {
        self.acquire_many_blocking_timeout(1, timeout)
    }

    /// [`acquire_many_blocking`](Self::acquire_many_blocking), for `timeout` at most.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many), and [`TimedOut`](AcquireError::TimedOut).
    #[inline]
    pub fn acquire_many_blocking_timeout(
        &self,
        n: u32,
        timeout: Duration,
    ) -> Result<Lease<'_, O>, AcquireError> {
        if self.raw.try_take(n).is_ok() {
            return Ok(Lease::new(self, n as usize));
        }
        self.acquire_many(n).wait_timeout(timeout)
    }

    /// [`acquire_blocking`](Self::acquire_blocking) with a lease that owns a share of the semaphore.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    #[doc(alias = "acquire_arc_blocking")]
    #[inline]
    pub fn acquire_blocking_owned(self: Arc<Self>) -> Result<OwnedLease<O>, AcquireError> {
        self.acquire_many_blocking_owned(1)
    }

    /// [`acquire_many_blocking`](Self::acquire_many_blocking) with a lease that owns a share of the
    /// semaphore.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many).
    #[inline]
    pub fn acquire_many_blocking_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedLease<O>, AcquireError> {
        if self.raw.try_take(n).is_ok() {
            return Ok(OwnedLease::new(self, n as usize));
        }
        self.acquire_many_owned(n).wait()
    }

    /// [`acquire_blocking_timeout`](Self::acquire_blocking_timeout) with a lease that owns a share of
    /// the semaphore.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`TimedOut`](AcquireError::TimedOut).
    #[inline]
    pub fn acquire_blocking_timeout_owned(
        self: Arc<Self>,
        timeout: Duration,
    ) -> Result<OwnedLease<O>, AcquireError> {
        self.acquire_many_blocking_timeout_owned(1, timeout)
    }

    /// [`acquire_many_blocking_timeout`](Self::acquire_many_blocking_timeout) with a lease that owns
    /// a share of the semaphore.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many), and [`TimedOut`](AcquireError::TimedOut).
    #[inline]
    pub fn acquire_many_blocking_timeout_owned(
        self: Arc<Self>,
        n: u32,
        timeout: Duration,
    ) -> Result<OwnedLease<O>, AcquireError> {
        if self.raw.try_take(n).is_ok() {
            return Ok(OwnedLease::new(self, n as usize));
        }
        self.acquire_many_owned(n).wait_timeout(timeout)
    }
}
