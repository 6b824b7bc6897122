//! The oracle accepts what a semaphore does and rejects what it must not do.

use semaphore_model::linearize::{Before, History, Part};
use semaphore_model::op::Op::{
    Ask, AskDrained, Available, Cancel, Close, Enqueue, Forget, Grow, Poll, Release, ReleasePart,
    Split, TimeOut, Try,
};
use semaphore_model::op::Said::{
    Closed, Drained, Figure, Full, Lease, NoPermits, Nothing, PassedOn, Pending, TimedOut,
};
use semaphore_model::op::{Op, Said};
use semaphore_model::spec::Spec;

/// A beginning of a call by a thread, or what its call says.
enum Event {
    Begin(usize, Op),
    End(usize, Said),
}

use Event::{Begin, End};

fn run(permits: u64, limit: Option<usize>, before: Before, events: &[Event]) -> Result<(), String> {
    let mut history = History::new(Spec::new(permits, 10, limit), before);
    for event in events {
        match *event {
            Begin(thread, op) => history.begin(thread, Part::Race, op),
            End(thread, said) => history.end(thread, said),
        }
    }
    history.check()
}

fn accepts(permits: u64, events: &[Event]) {
    assert_eq!(run(permits, None, Before::Returned, events), Ok(()));
}

fn rejects(permits: u64, events: &[Event]) {
    let story = run(permits, None, Before::Returned, events).unwrap_err();
    assert!(story.starts_with("no order of these calls"), "{story}");
}

/// One thread does one thing after the other.
fn line(calls: &[(Op, Said)]) -> Vec<Event> {
    calls.iter().flat_map(|(op, said)| [Begin(0, *op), End(0, *said)]).collect()
}

#[test]
fn a_whole_life() {
    accepts(
        3,
        &line(&[
            (Try(0, 2), Lease),
            (Ask(1, 2), Pending),
            (Ask(2, 1), Pending),
            (Available, Figure(0)),
            (Try(3, 1), NoPermits),
            (ReleasePart(0, 1), Nothing),
            (Poll(1), Lease),
            (Poll(2), Pending),
            (Split(1, 1, 4), Nothing),
            (Release(4), Nothing),
            (Poll(2), Lease),
            (Release(0), Nothing),
            (Available, Figure(1)),
            (Forget(1), Nothing),
            (Grow(1), Nothing),
            (Close, Nothing),
            (Try(5, 1), Closed),
            (AskDrained(0), Drained(false)),
            (Release(2), Nothing),
            (AskDrained(0), Drained(true)),
        ]),
    );
}

#[test]
fn a_permit_made_from_nothing() {
    rejects(1, &line(&[(Try(0, 1), Lease), (Try(1, 1), Lease)]));
}

#[test]
fn a_permit_lost_by_a_cancel() {
    rejects(
        2,
        &line(&[
            (Try(0, 1), Lease),
            (Ask(1, 2), Pending),
            (Ask(2, 1), Pending),
            (Cancel(1), Nothing),
            (Poll(2), Pending),
        ]),
    );
}

#[test]
fn a_granted_request_dropped_that_keeps_its_permit() {
    let calls =
        [(Try(0, 1), Lease), (Ask(1, 1), Pending), (Release(0), Nothing), (Cancel(1), PassedOn)];
    accepts(1, &line(&[&calls[..], &[(Try(2, 1), Lease)]].concat()));
    rejects(1, &line(&[&calls[..], &[(Try(2, 1), NoPermits)]].concat()));
}

#[test]
fn the_second_in_line_is_served_first() {
    let asked =
        [(Try(0, 1), Lease), (Ask(1, 1), Pending), (Ask(2, 1), Pending), (Release(0), Nothing)];
    accepts(1, &line(&[&asked[..], &[(Poll(1), Lease)]].concat()));
    rejects(1, &line(&[&asked[..], &[(Poll(2), Lease)]].concat()));
}

#[test]
fn two_that_joined_at_once_may_be_served_either_way_and_only_one() {
    let joined = || {
        vec![
            Begin(0, Try(0, 1)),
            End(0, Lease),
            Begin(1, Ask(1, 1)),
            Begin(2, Ask(2, 1)),
            End(1, Pending),
            End(2, Pending),
            Begin(0, Release(0)),
            End(0, Nothing),
        ]
    };
    for served in [1, 2] {
        let mut events = joined();
        events.extend([Begin(0, Poll(served)), End(0, Lease)]);
        events.extend([Begin(0, Poll(3 - served)), End(0, Pending)]);
        accepts(1, &events);
    }
    let mut events = joined();
    events.extend([Begin(0, Poll(1)), End(0, Lease), Begin(0, Poll(2)), End(0, Lease)]);
    rejects(1, &events);
}

#[test]
fn a_newcomer_overtakes() {
    rejects(
        1,
        &line(&[
            (Try(0, 1), Lease),
            (Ask(1, 1), Pending),
            (Release(0), Nothing),
            (Ask(2, 1), Lease),
        ]),
    );
}

#[test]
fn a_release_that_returned_has_served() {
    let mut events = line(&[(Try(0, 1), Lease), (Ask(1, 1), Pending)]);
    events.extend([Begin(0, Release(0)), End(0, Nothing), Begin(1, Poll(1)), End(1, Pending)]);
    rejects(1, &events);
    // While it runs both are possible.
    let mut events = line(&[(Try(0, 1), Lease), (Ask(1, 1), Pending)]);
    events.extend([Begin(0, Release(0)), Begin(1, Poll(1)), End(1, Pending), End(0, Nothing)]);
    accepts(1, &events);
}

#[test]
fn a_large_release_is_many_steps() {
    // 1 has its permit, and 2, who gets one from the same release, not yet.
    accepts(
        2,
        &[
            Begin(0, Try(0, 2)),
            End(0, Lease),
            Begin(0, Enqueue(1, 1)),
            End(0, Nothing),
            Begin(0, Enqueue(2, 1)),
            End(0, Nothing),
            Begin(0, Release(0)),
            Begin(1, Poll(1)),
            End(1, Lease),
            Begin(1, Poll(2)),
            End(1, Pending),
            End(0, Nothing),
        ],
    );
}

#[test]
fn a_call_that_never_returned_may_have_acted_or_not() {
    let asked = || line(&[(Try(0, 1), Lease), (Ask(1, 1), Pending)]);
    for said in [Pending, Lease] {
        let mut events = asked();
        events.extend([Begin(0, Release(0)), Begin(1, Poll(1)), End(1, said)]);
        accepts(1, &events);
    }
    // But not taken back what it did.
    let mut events = asked();
    events.extend([Begin(0, Release(0)), Begin(1, Poll(1)), End(1, Lease)]);
    events.extend([Begin(1, Try(2, 1)), End(1, Lease)]);
    rejects(1, &events);
}

#[test]
fn granted_after_the_close() {
    rejects(
        1,
        &line(&[
            (Try(0, 1), Lease),
            (Ask(1, 1), Pending),
            (Close, Nothing),
            (Release(0), Nothing),
            (Poll(1), Lease),
        ]),
    );
    rejects(1, &line(&[(Close, Nothing), (Try(0, 1), Lease)]));
    rejects(
        1,
        &line(&[(Try(0, 1), Lease), (Ask(1, 1), Pending), (Close, Nothing), (Poll(1), Pending)]),
    );
}

#[test]
fn drained_too_early() {
    rejects(1, &line(&[(Try(0, 1), Lease), (Close, Nothing), (AskDrained(0), Drained(true))]));
    rejects(1, &line(&[(AskDrained(0), Drained(true))]));
}

#[test]
fn a_time_out_with_the_permits_in_hand() {
    rejects(
        1,
        &line(&[
            (Try(0, 1), Lease),
            (Ask(1, 1), Pending),
            (Release(0), Nothing),
            (TimeOut(1), TimedOut),
        ]),
    );
}

#[test]
fn full_needs_as_many_as_the_bound() {
    let calls = |said| line(&[(Try(0, 1), Lease), (Ask(1, 1), Pending), (Ask(2, 1), said)]);
    assert_eq!(run(1, Some(1), Before::Returned, &calls(Full)), Ok(()));
    assert!(run(1, Some(1), Before::Returned, &calls(Pending)).is_err());
    assert!(run(1, Some(2), Before::Returned, &calls(Full)).is_err());
}

#[test]
fn without_a_common_clock_old_news_is_good_news() {
    let events = || vec![Begin(0, Try(0, 1)), End(0, Lease), Begin(1, Try(1, 1)), End(1, Lease)];
    // Two leases of one permit are wrong by any clock,
    assert!(run(1, None, Before::Program, &events()).is_err());
    // and one that does not see a release that returned is wrong by a common one alone.
    let stale = || {
        let mut events =
            vec![Begin(0, Try(0, 1)), End(0, Lease), Begin(0, Release(0)), End(0, Nothing)];
        events.extend([Begin(1, Try(1, 1)), End(1, NoPermits)]);
        events
    };
    assert!(run(1, None, Before::Returned, &stale()).is_err());
    assert_eq!(run(1, None, Before::Program, &stale()), Ok(()));
}
