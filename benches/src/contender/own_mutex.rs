//! What one would write by hand: a mutex around a queue of wakers. A cancelled waiter leaves its
//! place empty, to be passed by when its turn comes.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::{Blocking, Contender, Owned};

#[derive(Debug)]
struct State {
    free: usize,
    /// The number of the oldest in the queue; whoever has a lower one was served.
    first: u64,
    queue: VecDeque<Option<(usize, Waker)>>,
}

/// A mutex and a deque.
#[derive(Debug)]
pub struct OwnMutex(Mutex<State>);

impl OwnMutex {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn release(&self, n: usize) {
        let mut state = self.lock();
        state.free += n;
        let mut woken = Vec::new();
        while let Some(front) = state.queue.front() {
            match front {
                Some((need, _)) if *need > state.free => break,
                Some((need, _)) => state.free -= *need,
                None => {}
            }
            state.first += 1;
            woken.extend(state.queue.pop_front().flatten().map(|(_, waker)| waker));
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// The number in line, or none if the permits are there.
    #[inline]
    fn join(&self, need: usize, waker: &Waker) -> Option<u64> {
        let mut state = self.lock();
        if state.queue.is_empty() && state.free >= need {
            state.free -= need;
            return None;
        }
        state.queue.push_back(Some((need, waker.clone())));
        Some(state.first + state.queue.len() as u64 - 1)
    }

    #[inline]
    fn is_served(&self, number: u64, need: usize, waker: &Waker) -> bool {
        let mut state = self.lock();
        let Some(place) = number.checked_sub(state.first) else { return true };
        state.queue[place as usize] = Some((need, waker.clone()));
        false
    }

    fn leave(&self, number: u64, need: usize) {
        let mut state = self.lock();
        if let Some(place) = number.checked_sub(state.first) {
            state.queue[place as usize] = None;
            drop(state);
            if place == 0 {
                self.release(0);
            }
        } else {
            drop(state);
            self.release(need);
        }
    }
}

/// Permits of it.
#[derive(Debug)]
pub struct Permits<S: AsRef<OwnMutex>>(S, usize);

impl<S: AsRef<OwnMutex>> Drop for Permits<S> {
    #[inline]
    fn drop(&mut self) {
        self.0.as_ref().release(self.1);
    }
}

impl AsRef<Self> for OwnMutex {
    fn as_ref(&self) -> &Self {
        self
    }
}

enum Phase {
    New,
    Waits(u64),
    Done,
}

struct Request<S: AsRef<OwnMutex>> {
    semaphore: S,
    need: usize,
    phase: Phase,
}

impl<S: AsRef<OwnMutex> + Clone + Unpin> Future for Request<S> {
    type Output = Permits<S>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Permits<S>> {
        let semaphore = self.semaphore.as_ref();
        let waits = match self.phase {
            Phase::New => semaphore.join(self.need, cx.waker()),
            Phase::Waits(number) => {
                (!semaphore.is_served(number, self.need, cx.waker())).then_some(number)
            }
            Phase::Done => panic!("polled after it was ready"),
        };
        if let Some(number) = waits {
            self.phase = Phase::Waits(number);
            return Poll::Pending;
        }
        self.phase = Phase::Done;
        Poll::Ready(Permits(self.semaphore.clone(), self.need))
    }
}

impl<S: AsRef<OwnMutex>> Drop for Request<S> {
    #[inline]
    fn drop(&mut self) {
        if let Phase::Waits(number) = self.phase {
            self.semaphore.as_ref().leave(number, self.need);
        }
    }
}

impl Contender for OwnMutex {
    const NAME: &'static str = "own mutex";
    const FIFO: bool = true;

    type Lease<'a> = Permits<&'a Self>;

    fn new(permits: usize) -> Self {
        Self(Mutex::new(State { free: permits, first: 0, queue: VecDeque::new() }))
    }

    #[inline]
    fn try_acquire(&self, n: u32) -> Option<Permits<&Self>> {
        let n = n as usize;
        let mut state = self.lock();
        let taken = state.queue.is_empty() && state.free >= n;
        if taken {
            state.free -= n;
        }
        drop(state);
        taken.then(|| Permits(self, n))
    }

    #[inline]
    fn acquire(&self, n: u32) -> impl Future<Output = Permits<&Self>> + Send {
        Request { semaphore: self, need: n as usize, phase: Phase::New }
    }

    fn available(&self) -> usize {
        self.lock().free
    }
}

impl Blocking for OwnMutex {
    #[inline]
    fn acquire_blocking(&self) -> Permits<&Self> {
        futures_executor::block_on(self.acquire(1))
    }
}

impl Owned for Arc<OwnMutex> {
    const NAME: &'static str = <OwnMutex as Contender>::NAME;

    fn new(permits: usize) -> Self {
        Self::new(Contender::new(permits))
    }

    #[inline]
    fn acquire_owned(self) -> impl Future<Output: Send> {
        Request { semaphore: self, need: 1, phase: Phase::New }
    }

    fn available(&self) -> usize {
        self.lock().free
    }
}
