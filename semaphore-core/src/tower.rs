//! A concurrency limit for tower's services.
//!
//! [`ConcurrencyLimitLayer`] does what the layer of that name in `tower` does, on this crate's
//! semaphore: at most so many calls of the service are in flight, and whoever asked first goes
//! first. In addition the queue of those who wait can be bounded
//! ([`max_waiters`](crate::Builder::max_waiters)), which makes `poll_ready` fail with
//! [`QueueFull`](crate::AcquireError::QueueFull) instead of piling up; the semaphore can be shared
//! with other parts of the program; and closing it ends all who wait.
//!
//! - A permit that `poll_ready` reserved belongs to the clone that was polled. That clone gives it back
//!   when it is dropped.
//! - `call` hands the permit to the response's future, which gives it back when it is ready, with
//!   whatever result, or dropped.
//! - A clone that is polled once, pending, and then neither polled nor dropped keeps its place in
//!   the queue, and what it is granted.
//!
//! ```
//! use semaphore_core::tower::ConcurrencyLimitLayer;
//! use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let service = ServiceBuilder::new()
//!     .layer(ConcurrencyLimitLayer::new(4))
//!     .service(service_fn(|n: u32| async move { Ok::<_, BoxError>(n + 1) }));
//! assert_eq!(service.oneshot(41).await?, 42);
//! # Ok(())
//! # }
//! ```

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::error::Error;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::lease::OwnedLease;
use crate::observer::Observer;
use crate::poll_acquire::PollAcquire;
use crate::semaphore::Semaphore;
use crate::wrap::WithLease;

/// What tower's middleware fails with: the service's own error, or an
/// [`AcquireError`](crate::AcquireError).
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Limits how many calls of a service are in flight. See the [module](self).
pub struct ConcurrencyLimitLayer<O: Observer = ()> {
    semaphore: Arc<Semaphore<O>>,
}

impl ConcurrencyLimitLayer {
    /// At most `max` calls at once, by all services that the layer is put on together.
    ///
    /// (In tower each service gets a semaphore of its own, and its `GlobalConcurrencyLimitLayer` shares
    /// one. Here it is one for each layer.)
    ///
    /// # Panics
    ///
    /// If `max` is zero or above [`MAX_PERMITS`](crate::MAX_PERMITS).
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self::with_semaphore(Arc::new(Semaphore::new(max)))
    }
}

impl<O: Observer> ConcurrencyLimitLayer<O> {
    /// As many calls at once as the semaphore has permits.
    pub fn with_semaphore(semaphore: Arc<Semaphore<O>>) -> Self {
        Self { semaphore }
    }
}

impl<O: Observer> Clone for ConcurrencyLimitLayer<O> {
    fn clone(&self) -> Self {
        Self::with_semaphore(Arc::clone(&self.semaphore))
    }
}

impl<O: Observer> fmt::Debug for ConcurrencyLimitLayer<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimitLayer").field("semaphore", &self.semaphore).finish()
    }
}

impl<S, O: Observer> Layer<S> for ConcurrencyLimitLayer<O> {
    type Service = ConcurrencyLimit<S, O>;

    fn layer(&self, service: S) -> Self::Service {
        ConcurrencyLimit::with_semaphore(service, Arc::clone(&self.semaphore))
    }
}

/// A service of which only so many calls are in flight. See the [module](self).
pub struct ConcurrencyLimit<S, O: Observer = ()> {
    inner: S,
    permits: PollAcquire<O>,
    /// Reserved by `poll_ready`, for the next `call`.
    lease: Option<OwnedLease<O>>,
}

impl<S> ConcurrencyLimit<S> {
    /// At most `max` calls at once, by all clones together.
    ///
    /// # Panics
    ///
    /// If `max` is zero or above [`MAX_PERMITS`](crate::MAX_PERMITS).
    pub fn new(inner: S, max: usize) -> Self {
        Self::with_semaphore(inner, Arc::new(Semaphore::new(max)))
    }
}

impl<S, O: Observer> ConcurrencyLimit<S, O> {
    /// As many calls at once as the semaphore has permits.
    pub fn with_semaphore(inner: S, semaphore: Arc<Semaphore<O>>) -> Self {
        Self { inner, permits: PollAcquire::new(semaphore), lease: None }
    }

    /// The service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The service, without the limit.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// The semaphore whose permits the calls take.
    pub fn semaphore(&self) -> &Arc<Semaphore<O>> {
        self.permits.semaphore()
    }
}

impl<S: Clone, O: Observer> Clone for ConcurrencyLimit<S, O> {
    /// Shares the limit. A permit that this one has reserved stays with it.
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), permits: self.permits.clone(), lease: None }
    }
}

impl<S: fmt::Debug, O: Observer> fmt::Debug for ConcurrencyLimit<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimit")
            .field("inner", &self.inner)
            .field("semaphore", self.semaphore())
            .field("reserved", &self.lease.is_some())
            .finish_non_exhaustive()
    }
}

impl<S, O, Request> Service<Request> for ConcurrencyLimit<S, O>
where
    S: Service<Request>,
    S::Error: Into<BoxError>,
    O: Observer,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, O>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.lease.is_none() {
            self.lease = Some(ready!(self.permits.poll_acquire(cx))?);
        }
        // The permit is kept while the service itself is not ready, as in tower.
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    /// # Panics
    ///
    /// Without a `poll_ready` before that was ready.
    fn call(&mut self, request: Request) -> Self::Future {
        let lease = self.lease.take().expect("a service is called after `poll_ready` was ready");
        ResponseFuture { response: lease.wrap_future(self.inner.call(request)) }
    }
}

pin_project! {
    /// The response of a [`ConcurrencyLimit`]; it has the permit of its call.
    #[must_use = "a future does nothing until it is polled"]
    #[derive(Debug)]
    pub struct ResponseFuture<F, O: Observer = ()> {
        #[pin]
        response: WithLease<F, O>,
    }
}

impl<F, O, R, E> Future for ResponseFuture<F, O>
where
    F: Future<Output = Result<R, E>>,
    E: Into<BoxError>,
    O: Observer,
{
    type Output = Result<R, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().response.poll(cx).map_err(Into::into)
    }
}
