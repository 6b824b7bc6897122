//! Permits that travel with the work.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::lease::OwnedLease;
use crate::observer::Observer;

/// Work and its permits. The order of the fields is the order in which they are dropped: what the
/// work holds is free again before somebody else is let in.
struct Job<F, O: Observer> {
    work: F,
    lease: OwnedLease<O>,
}

impl<F, O: Observer> Job<F, O> {
    fn run<R>(self) -> R
    where
        F: FnOnce() -> R,
    {
        let Self { work, lease } = self;
        let result = work();
        drop(lease);
        result
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, O: Observer> {
        Runs {
            #[pin]
            work: F,
            lease: OwnedLease<O>,
        },
        Over,
    }
}

pin_project! {
    /// A future that owns permits for as long as it runs. See [`OwnedLease::wrap_future`].
    #[must_use = "a future does nothing until it is polled"]
    pub struct WithLease<F, O: Observer = ()> {
        #[pin]
        state: State<F, O>,
    }
}

impl<F: Future, O: Observer> Future for WithLease<F, O> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut state = self.project().state;
        let StateProjection::Runs { work, .. } = state.as_mut().project() else {
            panic!("a future was polled after it was ready")
        };
        let output = ready!(work.poll(cx));
        state.set(State::Over);
        Poll::Ready(output)
    }
}

impl<F, O: Observer> fmt::Debug for WithLease<F, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Runs { lease, .. } => f.debug_struct("WithLease").field("lease", lease).finish(),
            State::Over => f.write_str("WithLease(over)"),
        }
    }
}

impl<O: Observer> OwnedLease<O> {
    /// Ties the permits to `work`: they come back when it has ended, has panicked, or is dropped
    /// without having run.
    ///
    /// For work that is submitted: to a thread pool, to a blocking pool, over a channel. The permit is
    /// taken *before* the submission, so that what has been submitted is bounded, and comes back
    /// when the work *ends*, whoever goes away meanwhile.
    ///
    /// What `work` holds is dropped before the permits come back; its result is not. Allocates
    /// nothing.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use semaphore_core::Semaphore;
    /// let semaphore = Arc::new(Semaphore::new(4));
    /// let lease = semaphore.clone().try_acquire_owned()?;
    /// let job = lease.wrap(|| 6 * 7);
    /// assert_eq!(semaphore.available_permits(), 3);
    /// assert_eq!(std::thread::spawn(job).join().unwrap(), 42);
    /// assert_eq!(semaphore.available_permits(), 4);
    /// # Ok::<(), semaphore_core::TryAcquireError>(())
    /// ```
    pub fn wrap<F, R>(self, work: F) -> impl FnOnce() -> R + use<F, R, O>
    where
        F: FnOnce() -> R,
    {
        let job = Job { work, lease: self };
        move || job.run()
    }

    /// Ties the permits to a future: they come back when it is ready, before the poll that found it
    /// so returns, or when it is dropped, as executors do with a task that panicked or was aborted.
    ///
    /// What the future holds is dropped before the permits come back; its output is not. Allocates
    /// nothing.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use semaphore_core::Semaphore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), semaphore_core::AcquireError> {
    /// let semaphore = Arc::new(Semaphore::new(4));
    /// let lease = semaphore.clone().acquire_owned().await?;
    /// let task = tokio::spawn(lease.wrap_future(async { 6 * 7 }));
    /// assert_eq!(semaphore.available_permits(), 3);
    /// assert_eq!(task.await.unwrap(), 42);
    /// assert_eq!(semaphore.available_permits(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wrap_future<F: Future>(self, work: F) -> WithLease<F, O> {
        WithLease { state: State::Runs { work, lease: self } }
    }
}
