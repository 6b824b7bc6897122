//! Named situations, one step at a time: the figures at each point, in the midst of calls.

#![cfg(all(feature = "shuttle", not(feature = "loom")))]

use semaphore_core::{BuildError, Semaphore};
use semaphore_model::backend::controlled::{Figures, Point, Step, play};
use semaphore_model::op::Op;
use semaphore_model::op::Op::{
    Ask, Cancel, Close, Forget, Grow, Panic, Poll, Release, ReleasePart, TimeOut, Try,
};
use semaphore_model::scenario::Scenario;

use Point::{Begun, Chosen, Closed, Done, Fired, Queued, Returned};

const fn scene(
    permits: usize,
    setup: &'static [Op],
    threads: &'static [&'static [Op]],
) -> Scenario {
    Scenario {
        name: "controlled",
        permits,
        max_waiters: None,
        setup,
        threads,
        loom_weak: None,
        loom_strong: None,
        depth_first: None,
    }
}

/// Thread, point, then available, held, reserved, waiting, and what the thread's leases hold. At the beginning of
/// a release the lease is in the hand of the call, and no longer the thread's.
fn at(thread: usize, until: Point, figures: [u64; 4], owns: u64) -> Step {
    let [available, held, reserved, waiting] = figures;
    let figures = Figures { available, held, reserved, waiting: waiting as usize };
    Step { thread, until, figures, owns }
}

#[test]
fn invalid_capacity() {
    assert_eq!(Semaphore::try_new(0).map(drop), Err(BuildError::ZeroPermits));
    assert_eq!(Semaphore::builder().build().map(drop), Err(BuildError::ZeroPermits));
    let permits = Semaphore::MAX_PERMITS + 1;
    assert_eq!(Semaphore::try_new(permits).map(drop), Err(BuildError::TooManyPermits { permits }));
}

#[test]
fn first_in_first_out_with_one_permit() {
    static SCENE: Scenario = scene(
        1,
        &[Try(0, 1)],
        &[&[Ask(1, 1), Poll(1), Release(1)], &[Ask(2, 1), Poll(2)], &[Release(0)], &[]],
    );
    play(
        &SCENE,
        &[
            at(1, Queued(1), [0, 1, 0, 1], 0),
            at(2, Queued(2), [0, 1, 0, 2], 0),
            at(3, Chosen(1), [0, 0, 1, 1], 0),
            at(3, Done, [0, 0, 1, 1], 0),
            at(2, Begun(Poll(2)), [0, 0, 1, 1], 0),
            at(2, Done, [0, 0, 1, 1], 0),
            at(1, Begun(Release(1)), [0, 1, 0, 1], 0),
            at(1, Chosen(2), [0, 0, 1, 0], 0),
        ],
    );
}

#[test]
fn several_permits_gather_with_the_oldest() {
    static SCENE: Scenario = scene(
        3,
        &[Try(0, 3)],
        &[&[Ask(1, 2), Poll(1)], &[Ask(2, 1)], &[ReleasePart(0, 1), Release(0)], &[]],
    );
    play(
        &SCENE,
        &[
            at(1, Queued(1), [0, 3, 0, 1], 0),
            at(2, Done, [0, 3, 0, 2], 0),
            at(3, Begun(Release(0)), [0, 2, 1, 2], 0),
            at(3, Chosen(1), [0, 1, 2, 1], 0),
            at(3, Chosen(2), [0, 0, 3, 0], 0),
            at(1, Done, [0, 2, 1, 0], 2),
        ],
    );
}

#[test]
fn cancel_of_the_head_with_a_part() {
    static SCENE: Scenario =
        scene(2, &[Try(0, 1), Ask(1, 2), Ask(2, 1)], &[&[Cancel(1)], &[Poll(2)], &[]]);
    play(
        &SCENE,
        &[
            at(1, Begun(Cancel(1)), [0, 1, 1, 2], 0),
            at(1, Chosen(2), [0, 1, 1, 0], 0),
            at(1, Done, [0, 1, 1, 0], 0),
            at(2, Done, [0, 2, 0, 0], 1),
        ],
    );
}

#[test]
fn cancel_of_the_middle() {
    static SCENE: Scenario = scene(
        1,
        &[Try(0, 1), Ask(1, 1), Ask(2, 1), Ask(3, 1)],
        &[&[Cancel(2)], &[Release(0)], &[Poll(1), Release(1)], &[]],
    );
    play(
        &SCENE,
        &[
            at(1, Done, [0, 1, 0, 2], 0),
            at(2, Chosen(1), [0, 0, 1, 1], 0),
            at(3, Begun(Release(1)), [0, 1, 0, 1], 0),
            at(3, Chosen(3), [0, 0, 1, 0], 0),
        ],
    );
}

static BOUNDARY: Scenario =
    scene(1, &[Try(0, 1), Ask(1, 1), Ask(2, 1)], &[&[TimeOut(1)], &[Release(0)], &[]]);

#[test]
fn deadline_and_release_at_one_boundary_deadline_first() {
    let said = play(
        &BOUNDARY,
        &[
            at(1, Fired(1), [0, 1, 0, 2], 0),
            at(1, Done, [0, 1, 0, 1], 0),
            at(2, Chosen(2), [0, 0, 1, 0], 0),
        ],
    );
    assert!(said.contains("late1=timed out"), "{said}");
}

#[test]
fn deadline_and_release_at_one_boundary_release_first() {
    let said = play(
        &BOUNDARY,
        &[
            at(1, Fired(1), [0, 1, 0, 2], 0),
            at(2, Chosen(1), [0, 0, 1, 1], 0),
            at(1, Done, [0, 1, 0, 1], 1),
        ],
    );
    assert!(said.contains("late1=lease"), "{said}");
}

#[test]
fn acquire_before_a_close() {
    static SCENE: Scenario = scene(1, &[Try(0, 1)], &[&[Ask(1, 1), Poll(1)], &[Close], &[]]);
    let said = play(
        &SCENE,
        &[
            at(1, Queued(1), [0, 1, 0, 1], 0),
            at(2, Closed, [0, 1, 0, 1], 0),
            at(2, Done, [0, 1, 0, 0], 0),
        ],
    );
    assert!(said.contains("poll1=closed"), "{said}");
}

#[test]
fn acquire_during_a_close() {
    static SCENE: Scenario = scene(1, &[Try(0, 1)], &[&[Ask(1, 1)], &[Close], &[]]);
    let said = play(
        &SCENE,
        &[
            at(1, Begun(Ask(1, 1)), [0, 1, 0, 0], 0),
            at(2, Closed, [0, 1, 0, 0], 0),
            at(1, Done, [0, 1, 0, 0], 0),
        ],
    );
    assert!(said.contains("ask1=closed"), "{said}");
}

#[test]
fn acquire_after_a_close() {
    static SCENE: Scenario = scene(1, &[Try(0, 1)], &[&[Close], &[Ask(1, 1), Try(2, 1)], &[]]);
    let said = play(&SCENE, &[at(1, Done, [0, 1, 0, 0], 0), at(2, Done, [0, 1, 0, 0], 0)]);
    assert!(said.contains("ask1=closed try2=closed"), "{said}");
}

#[test]
fn a_task_that_panics_with_a_lease() {
    static SCENE: Scenario = scene(1, &[Try(0, 1), Ask(1, 1)], &[&[Panic(0)], &[Poll(1)], &[]]);
    play(&SCENE, &[at(1, Done, [0, 0, 1, 0], 0), at(2, Done, [0, 1, 0, 0], 1)]);
}

#[test]
fn a_large_request_behind_a_stream_of_short_ones_does_not_starve() {
    static SCENE: Scenario = scene(
        2,
        &[Try(0, 1), Try(1, 1)],
        &[
            &[Ask(5, 2), Poll(5)],
            &[Ask(10, 1), Ask(11, 1), Ask(12, 1), Try(13, 1), Ask(14, 1), Try(15, 1)],
            &[Release(0), Release(1)],
            &[],
        ],
    );
    play(
        &SCENE,
        &[
            at(1, Queued(5), [0, 2, 0, 1], 0),
            at(2, Returned(Ask(10, 1)), [0, 2, 0, 2], 0),
            at(3, Begun(Release(1)), [0, 1, 1, 2], 0),
            // One is free for the taking, but for the one that came first and wants two.
            at(2, Returned(Ask(11, 1)), [0, 1, 1, 3], 0),
            at(2, Done, [0, 1, 1, 5], 0),
            at(3, Chosen(5), [0, 0, 2, 4], 0),
            at(1, Done, [0, 2, 0, 4], 2),
        ],
    );
}

#[test]
fn forget_shrinks_and_growth_serves() {
    static SCENE: Scenario =
        scene(2, &[Try(0, 1), Ask(1, 2)], &[&[Forget(0)], &[Grow(1)], &[Poll(1)], &[]]);
    play(
        &SCENE,
        &[
            at(1, Done, [0, 0, 1, 1], 0),
            at(2, Chosen(1), [0, 0, 2, 0], 0),
            at(3, Done, [0, 2, 0, 0], 2),
        ],
    );
}
