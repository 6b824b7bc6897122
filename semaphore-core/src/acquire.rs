//! The futures: a request from its first poll to its lease.

use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;

use crate::error::AcquireError;
use crate::lease::{Lease, OwnedLease};
use crate::observer::Observer;
use crate::queue::{Joined, Left};
use crate::semaphore::Semaphore;
use crate::waiter::Ticket;
use crate::wake::{Unused, placing};

/// A request in its phases.
///
/// ```text
/// Start --------> Queued --> Done        polled, or given up
///   |  \--------> Taken  --> Done        `enqueue` found the permits
///   \-----------> Refused -> Done        `enqueue` found that there is no way
/// ```
#[derive(Clone, Copy)]
enum Phase<S> {
    /// Not in the queue yet.
    Start { need: u32 },
    /// In the queue, or settled there.
    Queued { ticket: Ticket, need: u32, since: S },
    /// Has its permits, and nobody knows yet.
    Taken { need: u32 },
    /// Failed, and nobody knows yet.
    Refused { why: Refusal, need: u32 },
    /// Over.
    Done,
}

#[derive(Clone, Copy)]
enum Refusal {
    Closed,
    QueueFull,
    ExceedsCapacity,
}

const _: () = assert!(size_of::<Phase<()>>() == 16);

impl<S: Copy + Unpin> Phase<S> {
    /// Goes on from `Start`: takes the permits, joins the queue, or is refused.
    #[inline]
    fn start<O: Observer<Stamp = S>>(
        &mut self,
        need: u32,
        semaphore: &Semaphore<O>,
        waker: Option<&Waker>,
    ) {
        if semaphore.raw.try_take(need).is_ok() {
            *self = Self::Taken { need };
        } else {
            self.start_slow(need, semaphore, waker);
        }
    }

    /// The phase is always written before foreign code runs: if that panics, the future still knows
    /// what it owns.
    #[inline(never)]
    fn start_slow<O: Observer<Stamp = S>>(
        &mut self,
        need: u32,
        semaphore: &Semaphore<O>,
        waker: Option<&Waker>,
    ) {
        let raw = &semaphore.raw;
        let closed = || placing(raw, |wakes| raw.finish_close(raw.main(), wakes));
        let mut unused = Unused::from(None);
        let why = if raw.state().is_closed() {
            closed();
            Refusal::Closed
        } else if need == 0 {
            *self = Self::Taken { need };
            return;
        } else if u64::from(need) > raw.ceiling() {
            Refusal::ExceedsCapacity
        } else {
            let (joined, waker) = raw.join(raw.main(), need, waker);
            unused = waker;
            match joined {
                Joined::Taken => {
                    *self = Self::Taken { need };
                    return;
                }
                Joined::Queued(ticket) => {
                    let joined = Unstamped { semaphore, ticket, need };
                    let since = semaphore.observer().queued();
                    core::mem::forget(joined);
                    *self = Self::Queued { ticket, need, since };
                    return;
                }
                Joined::Closed => {
                    closed();
                    Refusal::Closed
                }
                Joined::Full => Refusal::QueueFull,
            }
        };
        *self = Self::Refused { why, need };
        semaphore.observer().refused(&why.error(need, semaphore));
        drop(unused);
    }

    /// Polls the request; the permits are the caller's when it is ready with `Ok`.
    #[inline(always)]
    fn poll<O: Observer<Stamp = S>>(
        &mut self,
        semaphore: &Semaphore<O>,
        waker: &Waker,
    ) -> Poll<Result<u32, AcquireError>> {
        if let Self::Start { need } = *self {
            if semaphore.raw.try_take(need).is_ok() {
                *self = Self::Done;
                return Poll::Ready(Ok(need));
            }
            self.start_slow(need, semaphore, Some(waker));
            if let Self::Queued { .. } = *self {
                return Poll::Pending;
            }
        } else if let Self::Queued { ticket, need, since } = *self
            && semaphore.raw.is_granted(ticket)
        {
            // The phase first: the observer is foreign code. If it panics, the caller has no lease
            // and the permits go back.
            *self = Self::Taken { need };
            semaphore.observer().granted(since);
            *self = Self::Done;
            return Poll::Ready(Ok(need));
        }
        self.poll_started(semaphore, waker)
    }

    #[inline(never)]
    fn poll_started<O: Observer<Stamp = S>>(
        &mut self,
        semaphore: &Semaphore<O>,
        waker: &Waker,
    ) -> Poll<Result<u32, AcquireError>> {
        let result = match *self {
            Self::Queued { ticket, need, since } => {
                match semaphore.raw.poll(semaphore.raw.main(), ticket, waker) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(true) => {
                        // The phase first: the observer is foreign code. If it panics, the caller
                        // has no lease and the permits go back.
                        *self = Self::Taken { need };
                        semaphore.observer().granted(since);
                        Ok(need)
                    }
                    Poll::Ready(false) => {
                        *self = Self::Done;
                        semaphore.observer().closed(since);
                        Err(AcquireError::Closed)
                    }
                }
            }
            Self::Taken { need } => Ok(need),
            Self::Refused { why, need } => Err(why.error(need, semaphore)),
            Self::Start { .. } | Self::Done => panic!("an acquire was polled after it was ready"),
        };
        *self = Self::Done;
        Poll::Ready(result)
    }

    /// The deadline has come: leaves the queue, unless the grant was first.
    fn time_out<O: Observer<Stamp = S>>(
        &mut self,
        semaphore: &Semaphore<O>,
    ) -> Result<u32, AcquireError> {
        let raw = &semaphore.raw;
        let Self::Queued { ticket, need, since } = core::mem::replace(self, Self::Done) else {
            unreachable!("a pending request is in the queue")
        };
        match placing(raw, |wakes| raw.cancel(raw.main(), ticket, wakes)) {
            Left::Granted => {
                *self = Self::Taken { need };
                semaphore.observer().granted(since);
                *self = Self::Done;
                Ok(need)
            }
            Left::Cancelled(waker) => {
                drop(waker);
                semaphore.observer().timed_out(since);
                Err(AcquireError::TimedOut)
            }
            Left::Closed => {
                semaphore.observer().closed(since);
                Err(AcquireError::Closed)
            }
        }
    }

    /// The future is dropped.
    #[inline(never)]
    fn abandon<O: Observer<Stamp = S>>(&mut self, semaphore: &Semaphore<O>) {
        let raw = &semaphore.raw;
        match core::mem::replace(self, Self::Done) {
            Self::Start { .. } | Self::Refused { .. } | Self::Done => {}
            Self::Taken { need } => raw.give_back(u64::from(need)),
            Self::Queued { ticket, need, since } => {
                if let Some(waker) = raw.leave_with_nothing(raw.main(), ticket) {
                    drop(waker);
                    semaphore.observer().cancelled(since);
                    return;
                }
                match placing(raw, |wakes| raw.cancel(raw.main(), ticket, wakes)) {
                    Left::Granted => {
                        raw.give_back(u64::from(need));
                        semaphore.observer().cancelled(since);
                    }
                    Left::Cancelled(waker) => {
                        drop(waker);
                        semaphore.observer().cancelled(since);
                    }
                    Left::Closed => semaphore.observer().closed(since),
                }
            }
        }
    }

    /// How many permits it asks for, while it is under way.
    fn need(&self) -> Option<u32> {
        match *self {
            Self::Start { need }
            | Self::Queued { need, .. }
            | Self::Taken { need }
            | Self::Refused { need, .. } => Some(need),
            Self::Done => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Start { .. } => "not polled yet",
            Self::Queued { .. } => "queued",
            Self::Taken { .. } => "permits taken",
            Self::Refused { .. } => "refused",
            Self::Done => "done",
        }
    }
}

/// A request that is in the queue while its observer is asked for a stamp: leaves, if that panics.
struct Unstamped<'a, O: Observer> {
    semaphore: &'a Semaphore<O>,
    ticket: Ticket,
    need: u32,
}

impl<O: Observer> Drop for Unstamped<'_, O> {
    fn drop(&mut self) {
        let raw = &self.semaphore.raw;
        match placing(raw, |wakes| raw.cancel(raw.main(), self.ticket, wakes)) {
            Left::Granted => raw.give_back(u64::from(self.need)),
            Left::Cancelled(_) | Left::Closed => {}
        }
    }
}

impl Refusal {
    fn error<O: Observer>(self, need: u32, semaphore: &Semaphore<O>) -> AcquireError {
        match self {
            Self::Closed => AcquireError::Closed,
            Self::QueueFull => AcquireError::QueueFull,
            Self::ExceedsCapacity => {
                AcquireError::ExceedsCapacity { requested: need, ceiling: semaphore.ceiling() }
            }
        }
    }
}

mod sealed {
    use core::task::{Context, Poll};

    use crate::error::AcquireError;

    /// What a deadline needs of the future that it is put on.
    pub trait Request {
        type Lease;

        fn poll_request(&mut self, cx: &mut Context<'_>)
        -> Poll<Result<Self::Lease, AcquireError>>;

        fn time_out(&mut self) -> Result<Self::Lease, AcquireError>;
    }
}

pub(crate) use sealed::Request;

macro_rules! acquire {
    ($Acquire:ident, $(#[$doc:meta])* [$($life:lifetime)?], $Ref:ty, $Lease:ty, $share:expr) => {
        $(#[$doc])*
        #[must_use = "a request does nothing until it is polled or enqueued"]
        pub struct $Acquire<$($life,)? O: Observer = ()> {
            semaphore: $Ref,
            phase: Phase<O::Stamp>,
        }

        impl<$($life,)? O: Observer> $Acquire<$($life,)? O> {
            #[inline]
            pub(crate) fn new(semaphore: $Ref, need: u32) -> Self {
                Self { semaphore, phase: Phase::Start { need } }
            }

            /// Takes the place in the queue now, before the first poll; or the permits, if they are
            /// there and nobody waits.
            ///
            /// Without it a request joins the queue at its first poll. An error is kept for
            /// the poll. Has no effect on a request that is past this.
            ///
            /// Lock-free; may allocate as [`Semaphore::acquire`] says.
            ///
            /// ```
            /// # use semaphore_core::Semaphore;
            /// let semaphore = Semaphore::new(1);
            /// let held = semaphore.try_acquire().unwrap();
            /// let first = semaphore.acquire().enqueue();
            /// let second = semaphore.acquire().enqueue();
            /// assert_eq!(semaphore.waiters(), 2);
            /// held.release(); // to `first`, whichever is polled first
            /// # drop((first, second));
            /// ```
            pub fn enqueue(mut self) -> Self {
                if let Phase::Start { need } = self.phase {
                    self.phase.start(need, &self.semaphore, None);
                }
                self
            }

            /// Gives up when `timer` is ready, with [`AcquireError::TimedOut`].
            ///
            /// The timer may be any future: a sleep of whatever runtime is in use, or a signal. It
            /// is polled after the request each time, and races the grant on one transition: a grant
            /// that came first wins, though the timer is ready; a timer that is ready at once still
            /// gets the permits if they are free.
            ///
            /// ```
            /// # use std::time::Duration;
            /// # use semaphore_core::{AcquireError, Semaphore};
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), AcquireError> {
            /// # let semaphore = Semaphore::new(2);
            /// # let patience = Duration::from_secs(1);
            /// // tokio
            /// let one = semaphore.acquire().with_deadline(tokio::time::sleep(patience)).await?;
            /// // smol, whose timer is ready with the time
            /// let timer = async { drop(smol::Timer::after(patience).await) };
            /// let other = semaphore.acquire().with_deadline(timer).await?;
            /// # drop((one, other));
            /// # Ok(())
            /// # }
            /// ```
            pub fn with_deadline<T: Future<Output = ()>>(self, timer: T) -> WithDeadline<Self, T> {
                WithDeadline { request: self, timer }
            }
        }

        impl<$($life,)? O: Observer> Request for $Acquire<$($life,)? O> {
            type Lease = $Lease;

            #[inline(always)]
            fn poll_request(
                &mut self,
                cx: &mut Context<'_>,
            ) -> Poll<Result<Self::Lease, AcquireError>> {
                let share: fn(&$Ref) -> $Ref = $share;
                self.phase.poll(&self.semaphore, cx.waker()).map(|result| {
                    result.map(|n| <$Lease>::new(share(&self.semaphore), n as usize))
                })
            }

            fn time_out(&mut self) -> Result<Self::Lease, AcquireError> {
                let share: fn(&$Ref) -> $Ref = $share;
                self.phase
                    .time_out(&self.semaphore)
                    .map(|n| <$Lease>::new(share(&self.semaphore), n as usize))
            }
        }

        impl<$($life,)? O: Observer> Future for $Acquire<$($life,)? O> {
            type Output = Result<$Lease, AcquireError>;

            #[inline(always)]
            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                self.poll_request(cx)
            }
        }

        impl<$($life,)? O: Observer> Drop for $Acquire<$($life,)? O> {
            #[inline]
            fn drop(&mut self) {
                if !matches!(self.phase, Phase::Done | Phase::Start { .. }) {
                    self.phase.abandon(&self.semaphore);
                }
            }
        }

        impl<$($life,)? O: Observer> fmt::Debug for $Acquire<$($life,)? O> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Acquire))
                    .field("phase", &self.phase.name())
                    .finish_non_exhaustive()
            }
        }
    };
}

acquire!(
    Acquire,
    /// A request for permits of a borrowed semaphore. See [`Semaphore::acquire`].
    ///
    /// Dropped, it leaves the queue, and what it was granted goes to the next waiter. Forgotten
    /// (`mem::forget`) it keeps its place, and the permits that it is granted are lost to the
    /// semaphore; its slot is freed with the semaphore.
    ///
    /// # Panics
    ///
    /// If it is polled after it was ready.
    ['a],
    &'a Semaphore<O>,
    Lease<'a, O>,
    |semaphore| semaphore
);

acquire!(
    AcquireOwned,
    /// A request for permits of a shared semaphore. See [`Semaphore::acquire_owned`].
    ///
    /// Dropped, it leaves the queue, and what it was granted goes to the next waiter. Forgotten
    /// (`mem::forget`) it keeps the semaphore alive for ever, and its place in the queue.
    ///
    /// # Panics
    ///
    /// If it is polled after it was ready.
    [],
    Arc<Semaphore<O>>,
    OwnedLease<O>,
    Arc::clone
);

impl<O: Observer> AcquireOwned<O> {
    /// A request for `need` that is under way goes on; any other makes way for one at its start.
    #[inline]
    pub(crate) fn restart(&mut self, need: u32) {
        if self.phase.need() != Some(need) {
            self.phase.abandon(&self.semaphore);
            self.phase = Phase::Start { need };
        }
    }

    /// Dropped, but for the share of the semaphore.
    pub(crate) fn give_up(&mut self) {
        self.phase.abandon(&self.semaphore);
    }

    pub(crate) fn is_started(&self) -> bool {
        !matches!(self.phase, Phase::Start { .. } | Phase::Done)
    }

    pub(crate) fn semaphore(&self) -> &Arc<Semaphore<O>> {
        &self.semaphore
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Acquire<'_>>() == 24 && size_of::<AcquireOwned>() == 24);

pin_project! {
    /// A request with a deadline. See [`Acquire::with_deadline`].
    #[must_use = "a request does nothing until it is polled or enqueued"]
    #[derive(Debug)]
    pub struct WithDeadline<R, T> {
        request: R,
        #[pin]
        timer: T,
    }
}

impl<R: Request, T: Future<Output = ()>> Future for WithDeadline<R, T> {
    type Output = Result<R::Lease, AcquireError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(result) = this.request.poll_request(cx) {
            return Poll::Ready(result);
        }
        match this.timer.poll(cx) {
            Poll::Ready(()) => Poll::Ready(this.request.time_out()),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Ready when the semaphore is closed and all its permits are back. See [`Semaphore::drained`].
#[must_use = "a future does nothing until it is polled"]
pub struct Drained<'a, O: Observer = ()> {
    semaphore: &'a Semaphore<O>,
    phase: Waiting,
}

enum Waiting {
    NotYet,
    Queued(Ticket),
    Over,
}

impl<'a, O: Observer> Drained<'a, O> {
    pub(crate) fn new(semaphore: &'a Semaphore<O>) -> Self {
        Self { semaphore, phase: Waiting::NotYet }
    }
}

impl<O: Observer> Future for Drained<'_, O> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let raw = &self.semaphore.raw;
        if let Waiting::NotYet = self.phase {
            match raw.join(raw.gate(), 1, Some(cx.waker())).0 {
                Joined::Queued(ticket) => self.phase = Waiting::Queued(ticket),
                // The gate is closed when the semaphore is drained.
                Joined::Closed => self.phase = Waiting::Over,
                Joined::Taken | Joined::Full => {
                    // All slots are in use, 29 million: there is no place to leave a waker at.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
        if let Waiting::Queued(ticket) = self.phase {
            if raw.state().is_closed() {
                // Whoever closed it, or gave the last permit back, may have been stopped before it
                // looked. After joining: who looks later than this finds the waiter.
                placing(raw, |wakes| raw.finish_close(raw.main(), wakes));
            }
            if raw.poll(raw.gate(), ticket, cx.waker()).is_pending() {
                return Poll::Pending;
            }
        }
        self.phase = Waiting::Over;
        Poll::Ready(())
    }
}

impl<O: Observer> Drop for Drained<'_, O> {
    fn drop(&mut self) {
        if let Waiting::Queued(ticket) = self.phase {
            let raw = &self.semaphore.raw;
            drop(placing(raw, |wakes| raw.cancel(raw.gate(), ticket, wakes)));
        }
    }
}

impl<O: Observer> fmt::Debug for Drained<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drained").finish_non_exhaustive()
    }
}
