//! The layer: what tower expects of its own concurrency limit (its `tests/limit/concurrency.rs`, test by
//! test, under the same names), what ours adds, and a load.
#![cfg(all(feature = "tower", not(any(feature = "loom", feature = "shuttle"))))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use futures_util::FutureExt;
use semaphore_core::tower::{BoxError, ConcurrencyLimit, ConcurrencyLimitLayer};
use semaphore_core::{AcquireError, Semaphore};
use tower::{Service, ServiceExt, service_fn};
use tower_test::mock::future::ResponseFuture as MockFuture;
use tower_test::{assert_request_eq, mock};

type Limited = mock::Spawn<ConcurrencyLimit<mock::Mock<&'static str, &'static str>>>;
type Handle = mock::Handle<&'static str, &'static str>;

fn limited(max: usize) -> (Limited, Handle) {
    mock::spawn_layer(ConcurrencyLimitLayer::new(max))
}

#[track_caller]
fn ready(service: &mut Limited) {
    assert!(matches!(service.poll_ready(), Poll::Ready(Ok(()))));
}

#[track_caller]
fn waits(service: &mut Limited) {
    assert!(service.poll_ready().is_pending());
}

#[tokio::test]
async fn basic_service_limit_functionality_with_poll_ready() {
    let (mut service, mut handle) = limited(2);
    ready(&mut service);
    let r1 = service.call("hello 1");
    ready(&mut service);
    let r2 = service.call("hello 2");
    waits(&mut service);
    assert!(!service.is_woken());
    assert_request_eq!(handle, "hello 1").send_response("world 1");
    assert_eq!(r1.await.unwrap(), "world 1");
    assert!(service.is_woken());
    ready(&mut service);
    let r3 = service.call("hello 3");
    waits(&mut service);
    assert_request_eq!(handle, "hello 2").send_response("world 2");
    assert_eq!(r2.await.unwrap(), "world 2");
    assert_request_eq!(handle, "hello 3").send_response("world 3");
    assert_eq!(r3.await.unwrap(), "world 3");
}

#[tokio::test]
async fn basic_service_limit_functionality_without_poll_ready() {
    let (mut service, mut handle) = limited(2);
    ready(&mut service);
    let r1 = service.call("hello 1");
    ready(&mut service);
    let r2 = service.call("hello 2");
    waits(&mut service);
    assert_request_eq!(handle, "hello 1").send_response("world 1");
    assert_eq!(r1.await.unwrap(), "world 1");
    ready(&mut service);
    let r3 = service.call("hello 3");
    assert_request_eq!(handle, "hello 2").send_response("world 2");
    assert_eq!(r2.await.unwrap(), "world 2");
    assert_request_eq!(handle, "hello 3").send_response("world 3");
    assert_eq!(r3.await.unwrap(), "world 3");
}

#[tokio::test]
async fn request_without_capacity() {
    // In tower a limit of zero is a service that is never ready; here one that is growable.
    let (mut service, _handle): (Limited, Handle) =
        mock::spawn_layer(ConcurrencyLimitLayer::with_semaphore(Arc::new(Semaphore::growable(0))));
    waits(&mut service);
    service.get_ref().semaphore().add_permits(1).unwrap();
    assert!(service.is_woken());
    ready(&mut service);
}

#[tokio::test]
async fn reserve_capacity_without_sending_request() {
    let (mut s1, mut handle) = limited(1);
    let mut s2 = s1.clone();
    ready(&mut s1);
    waits(&mut s2);
    let r1 = s1.call("hello");
    assert_request_eq!(handle, "hello").send_response("world");
    assert_eq!(r1.await.unwrap(), "world");
    ready(&mut s2);
}

#[tokio::test]
async fn service_drop_frees_capacity() {
    let (mut s1, _handle) = limited(1);
    let mut s2 = s1.clone();
    ready(&mut s1);
    waits(&mut s2);
    drop(s1);
    assert!(s2.is_woken());
    ready(&mut s2);
}

#[tokio::test]
async fn response_error_releases_capacity() {
    let (mut s1, mut handle) = limited(1);
    let mut s2 = s1.clone();
    ready(&mut s1);
    let r1 = s1.call("hello");
    assert_request_eq!(handle, "hello").send_error("boom");
    assert_eq!(r1.await.unwrap_err().to_string(), "boom");
    ready(&mut s2);
}

#[tokio::test]
async fn response_future_drop_releases_capacity() {
    let (mut s1, _handle) = limited(1);
    let mut s2 = s1.clone();
    ready(&mut s1);
    let r1 = s1.call("hello");
    waits(&mut s2);
    drop(r1);
    assert!(s2.is_woken());
    ready(&mut s2);
}

#[tokio::test]
async fn multi_waiters() {
    let (mut s1, _handle) = limited(1);
    let (mut s2, mut s3) = (s1.clone(), s1.clone());
    ready(&mut s1);
    waits(&mut s2);
    waits(&mut s3);
    drop(s1);
    assert!(s2.is_woken());
    assert!(!s3.is_woken());
    drop(s2);
    assert!(s3.is_woken());
    ready(&mut s3);
}

/// A permit belongs to the clone that was polled, and does not go along with a clone of it.
#[tokio::test]
async fn a_clone_does_not_share_what_was_reserved() {
    let (mut s1, _handle) = limited(1);
    ready(&mut s1);
    let mut s2 = s1.clone();
    waits(&mut s2);
    ready(&mut s1);
    assert_eq!(s1.get_ref().semaphore().available_permits(), 0);
}

#[tokio::test]
async fn a_response_that_is_ready_has_given_back_though_it_is_still_there() {
    let (mut service, mut handle) = limited(1);
    ready(&mut service);
    let mut response: std::pin::Pin<Box<semaphore_core::tower::ResponseFuture<MockFuture<_>>>> =
        Box::pin(service.call("hello"));
    assert_request_eq!(handle, "hello").send_response("world");
    assert_eq!(response.as_mut().await.unwrap(), "world");
    ready(&mut service);
    drop(response);
}

#[tokio::test]
async fn errors_of_the_semaphore_come_from_poll_ready() {
    let semaphore = Arc::new(Semaphore::builder().permits(1).max_waiters(0).build().unwrap());
    let layer = ConcurrencyLimitLayer::with_semaphore(semaphore.clone());
    let (mut s1, _handle): (Limited, Handle) = mock::spawn_layer(layer);
    let mut s2 = s1.clone();
    let error = |service: &mut Limited| match service.poll_ready() {
        Poll::Ready(Err(error)) => *error.downcast_ref::<AcquireError>().unwrap(),
        other => panic!("an error was due: {other:?}"),
    };
    ready(&mut s1);
    assert_eq!(error(&mut s2), AcquireError::QueueFull);
    semaphore.close();
    assert_eq!(error(&mut s2), AcquireError::Closed);
    ready(&mut s1); // reserved before
}

#[tokio::test]
async fn a_call_without_a_permit_panics() {
    let (service, _handle) = limited(1);
    let mut service = service.into_inner();
    let call = std::panic::AssertUnwindSafe(|| drop(service.call("hello")));
    assert!(std::panic::catch_unwind(call).is_err());
}

/// Many clones on two threads, some of which give up in `poll_ready` or in the response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load() {
    const LIMIT: usize = 3;
    const CLIENTS: usize = 64;
    const CALLS: usize = 200;
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let semaphore = Arc::new(Semaphore::new(LIMIT));
    let service = ConcurrencyLimit::with_semaphore(
        service_fn({
            let (inside, most) = (inside.clone(), most.clone());
            move |n: usize| {
                let guard = Inside::enter(&inside, &most);
                async move {
                    tokio::task::yield_now().await;
                    drop(guard);
                    if n.is_multiple_of(7) {
                        Err(BoxError::from("every seventh fails"))
                    } else {
                        Ok(n)
                    }
                }
            }
        }),
        semaphore.clone(),
    );
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let service = service.clone();
            tokio::spawn(async move {
                let (mut ok, mut failed, mut gone) = (0, 0, 0);
                for call in 0..CALLS {
                    let mut service = service.clone();
                    let number = client * CALLS + call;
                    match number % 5 {
                        0 => {
                            // Gives up while it waits, or with what it reserved.
                            let mut polled = Box::pin(service.ready());
                            let _ = polled.as_mut().now_or_never();
                            gone += 1;
                        }
                        1 => {
                            // Gives up while the call is in flight.
                            let mut response =
                                Box::pin(service.ready().await.unwrap().call(number));
                            let _ = response.as_mut().now_or_never();
                            gone += 1;
                        }
                        _ => match service.ready().await.unwrap().call(number).await {
                            Ok(_) => ok += 1,
                            Err(_) => failed += 1,
                        },
                    }
                }
                (ok, failed, gone)
            })
        })
        .collect();
    let mut total = (0, 0, 0);
    for client in clients {
        let (ok, failed, gone) = client.await.unwrap();
        total = (total.0 + ok, total.1 + failed, total.2 + gone);
    }
    println!("{total:?} answered, failed, given up; {} at once at most", most.load(SeqCst));
    assert_eq!(total.0 + total.1 + total.2, CLIENTS * CALLS);
    assert!(total.1 > 0, "some failed");
    assert_eq!(most.load(SeqCst), LIMIT);
    assert_eq!(inside.load(SeqCst), 0);
    assert_eq!((semaphore.available_permits(), semaphore.waiters()), (LIMIT, 0));
}

struct Inside(Arc<AtomicUsize>);

impl Inside {
    fn enter(inside: &Arc<AtomicUsize>, most: &AtomicUsize) -> Self {
        most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
        Self(inside.clone())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}
