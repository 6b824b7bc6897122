//! All scenarios.

use crate::scenario::Op::{
    Ask, AskDrained, Available, Cancel, CancelDrained, Close, Enqueue, Forget, ForgetPermits, Grow,
    Merge, Poll, Release, ReleasePart, Repoll, RepollDrained, SetCapacity, Split, TimeOut, Try,
};
use crate::scenario::{Op, Scenario};

const fn two(
    name: &'static str,
    permits: usize,
    setup: &'static [Op],
    threads: &'static [&'static [Op]],
) -> Scenario {
    Scenario {
        name,
        permits,
        max_waiters: None,
        setup,
        threads,
        loom_weak: None,
        loom_strong: Some(4),
        depth_first: Some(3),
    }
}

/// A pair that loom does not get to the end of in reasonable time: bounded in the test suite.
const fn long(
    name: &'static str,
    permits: usize,
    setup: &'static [Op],
    threads: &'static [&'static [Op]],
) -> Scenario {
    Scenario { loom_weak: Some(3), ..two(name, permits, setup, threads) }
}

/// Scenarios of two threads, explored by loom without a bound unless they say otherwise.
pub static PAIRS: &[Scenario] = &[
    two(
        "release_against_cancel_of_the_head",
        1,
        &[Try(0, 1), Ask(1, 1), Ask(2, 1)],
        &[&[Release(0)], &[Cancel(1)]],
    ),
    two(
        "release_against_cancel_of_the_middle",
        1,
        &[Try(0, 1), Ask(1, 1), Ask(2, 1), Ask(3, 1)],
        &[&[Release(0)], &[Cancel(2)]],
    ),
    two(
        "release_against_cancel_of_the_tail",
        1,
        &[Try(0, 1), Ask(1, 1), Ask(2, 1)],
        &[&[Release(0)], &[Cancel(2)]],
    ),
    two(
        "release_against_cancel_of_the_only_one",
        1,
        &[Try(0, 1), Ask(1, 1)],
        &[&[Release(0)], &[Cancel(1)]],
    ),
    long(
        "release_against_cancel_of_a_head_with_a_part",
        2,
        &[Try(0, 1), Ask(1, 2), Ask(2, 1)],
        &[&[Release(0)], &[Cancel(1)]],
    ),
    two(
        "grant_against_drop_of_the_granted",
        1,
        &[Try(0, 1), Ask(1, 1), Ask(2, 1), Release(0)],
        &[&[Cancel(1)], &[Poll(2)]],
    ),
    two("enqueue_against_release", 1, &[Try(0, 1)], &[&[Release(0)], &[Ask(1, 1)]]),
    two(
        "enqueue_behind_one_against_release",
        1,
        &[Try(0, 1), Ask(1, 1)],
        &[&[Release(0)], &[Ask(2, 1)]],
    ),
    two("enqueue_against_enqueue", 1, &[Try(0, 1)], &[&[Ask(1, 1)], &[Ask(2, 1)]]),
    two("enqueue_against_close", 1, &[Try(0, 1)], &[&[Close], &[Ask(1, 1)]]),
    long("close_against_release", 1, &[Try(0, 1), Ask(1, 1)], &[&[Close], &[Release(0)]]),
    long("close_against_cancel", 2, &[Try(0, 1), Ask(1, 2)], &[&[Close], &[Cancel(1)]]),
    long("close_against_close", 2, &[Try(0, 1), Ask(1, 2)], &[&[Close], &[Close]]),
    two("close_against_a_poll", 1, &[Try(0, 1), Ask(1, 1)], &[&[Close], &[Poll(1)]]),
    long(
        "close_against_a_poll_with_another_waker",
        1,
        &[Try(0, 1), Ask(1, 1)],
        &[&[Close], &[Repoll(1)]],
    ),
    two(
        "two_releases_against_a_weighted_head",
        2,
        &[Try(0, 1), Try(1, 1), Ask(2, 2)],
        &[&[Release(0)], &[Release(1)]],
    ),
    two(
        "two_releases_for_two",
        2,
        &[Try(0, 1), Try(1, 1), Ask(2, 1), Ask(3, 1)],
        &[&[Release(0)], &[Release(1)]],
    ),
    long(
        "two_neighbours_cancel",
        1,
        &[Try(0, 1), Ask(1, 1), Ask(2, 1), Ask(3, 1)],
        &[&[Cancel(1)], &[Cancel(2)]],
    ),
    two(
        "the_last_two_cancel",
        1,
        &[Try(0, 1), Ask(1, 1), Ask(2, 1)],
        &[&[Cancel(1)], &[Cancel(2)]],
    ),
    two(
        "another_waker_against_release",
        1,
        &[Try(0, 1), Ask(1, 1)],
        &[&[Repoll(1)], &[Release(0)]],
    ),
    two(
        "third_waker_against_release",
        1,
        &[Try(0, 1), Ask(1, 1), Repoll(1)],
        &[&[Repoll(1)], &[Release(0)]],
    ),
    two(
        "first_poll_of_an_enqueued_against_release",
        1,
        &[Try(0, 1), Enqueue(1, 1)],
        &[&[Poll(1)], &[Release(0)]],
    ),
    two("same_waker_against_release", 1, &[Try(0, 1), Ask(1, 1)], &[&[Poll(1)], &[Release(0)]]),
    two(
        "deadline_against_release",
        1,
        &[Try(0, 1), Ask(1, 1), Ask(2, 1)],
        &[&[TimeOut(1)], &[Release(0)]],
    ),
    two("try_against_release", 1, &[Try(0, 1), Ask(1, 1)], &[&[Try(2, 1)], &[Release(0)]]),
    long(
        "a_slot_reused_against_a_release_that_slept",
        1,
        &[Try(0, 1), Ask(1, 1)],
        &[&[Cancel(1), Ask(2, 1)], &[Release(0)]],
    ),
    two("grow_against_enqueue", 1, &[Try(0, 1)], &[&[Grow(1)], &[Ask(1, 1)]]),
    long(
        "a_node_unlinked_twice",
        1,
        &[Try(0, 1), Ask(1, 1), Ask(2, 1), Ask(3, 1)],
        &[&[Cancel(2), Ask(4, 1)], &[Cancel(3)]],
    ),
    long(
        "drained_against_the_last_release",
        1,
        &[Try(0, 1), Close],
        &[&[Release(0)], &[AskDrained(0)]],
    ),
    long(
        "drained_given_up_against_the_last_release",
        1,
        &[Try(0, 1), Close],
        &[&[Release(0)], &[AskDrained(0), CancelDrained(0)]],
    ),
    two(
        "the_last_release_against_forget",
        2,
        &[Try(0, 1), Try(1, 1), Close],
        &[&[Release(0)], &[Forget(1)]],
    ),
    long(
        "a_waker_swapped_while_its_slot_is_used_again",
        2,
        &[Try(0, 1), Try(9, 1), Ask(1, 1)],
        &[&[Repoll(1)], &[Release(0), Release(9), Ask(2, 2)]],
    ),
    long(
        "a_pop_that_slept_through_two_pops_and_a_push",
        1,
        &[Try(0, 1), Ask(1, 1), Ask(2, 1), Cancel(2), Cancel(1)],
        &[&[Ask(3, 1)], &[Ask(4, 1), Ask(5, 1), Cancel(4)]],
    ),
    long(
        "a_hint_that_leads_into_the_other_queue",
        1,
        &[Try(0, 1), AskDrained(0)],
        &[
            &[AskDrained(1)],
            &[CancelDrained(0), Ask(1, 1), Ask(2, 1), Release(0), Poll(1), Release(1)],
        ],
    ),
    long(
        "close_against_asking_for_drained",
        1,
        &[Try(0, 1), Release(0)],
        &[&[Close], &[AskDrained(0)]],
    ),
    long(
        "two_ask_for_drained_at_the_last_release",
        1,
        &[Try(0, 1), AskDrained(0), AskDrained(1), Close],
        &[&[Release(0)], &[CancelDrained(0)]],
    ),
];

const fn three(
    name: &'static str,
    permits: usize,
    setup: &'static [Op],
    threads: &'static [&'static [Op]],
) -> Scenario {
    Scenario {
        name,
        permits,
        max_waiters: None,
        setup,
        threads,
        loom_weak: Some(1),
        loom_strong: Some(2),
        depth_first: Some(2),
    }
}

/// Scenarios of three threads, bounded.
pub static TRIPLES: &[Scenario] = &[
    Scenario {
        ..three(
            "an_unpublished_node_believed_by_its_slot",
            2,
            &[Try(0, 1), Try(9, 1), Ask(1, 1), Ask(2, 1), Cancel(2)],
            &[&[Ask(3, 1)], &[Release(0)], &[Ask(4, 1), Release(9)]],
        )
    },
    three(
        "release_cancel_enqueue",
        1,
        &[Try(0, 1), Ask(1, 1)],
        &[&[Release(0)], &[Cancel(1)], &[Ask(2, 1)]],
    ),
    Scenario {
        // Loads that may return old stores: with a bound of 1 there are minutes of them.
        loom_weak: Some(0),
        loom_strong: Some(3),
        ..three(
            "release_close_enqueue",
            1,
            &[Try(0, 1), Ask(1, 1)],
            &[&[Release(0)], &[Close], &[Ask(2, 1)]],
        )
    },
    three(
        "two_releases_and_a_cancel",
        2,
        &[Try(0, 1), Try(1, 1), Ask(2, 2), Ask(3, 1)],
        &[&[Release(0)], &[Release(1)], &[Cancel(2)]],
    ),
    Scenario {
        // As above. With a fourth behind these three one order of the threads did not end in six minutes.
        loom_weak: Some(0),
        ..three(
            "three_neighbours_cancel",
            1,
            &[Try(0, 1), Ask(1, 1), Ask(2, 1), Ask(3, 1)],
            &[&[Cancel(1)], &[Cancel(2)], &[Cancel(3)]],
        )
    },
    Scenario {
        // Loads that may return old stores: with a bound of 1 there are minutes of them.
        loom_weak: Some(0),
        loom_strong: Some(2),
        ..three(
            "close_release_cancel",
            2,
            &[Try(0, 1), Ask(1, 2), Ask(2, 1)],
            &[&[Close], &[Release(0)], &[Cancel(1)]],
        )
    },
];

/// Resizing. Two threads, or three with a bound.
pub static RESIZES: &[Scenario] = &[
    two("shrink_against_release", 2, &[Try(0, 2)], &[&[SetCapacity(1)], &[Release(0)]]),
    long(
        "shrink_against_release_with_a_waiter",
        2,
        &[Try(0, 2), Ask(1, 1)],
        &[&[SetCapacity(1)], &[Release(0)]],
    ),
    long(
        "shrink_then_grow_against_release",
        2,
        &[Try(0, 2)],
        &[&[SetCapacity(1), SetCapacity(2)], &[Release(0)]],
    ),
    long(
        "shrink_in_debt_against_the_release_that_pays_it",
        3,
        &[Try(0, 1), Try(1, 2), SetCapacity(2)],
        &[&[SetCapacity(1)], &[Release(0)]],
    ),
    long(
        "grow_in_debt_against_release",
        2,
        &[Try(0, 1), Try(1, 1), SetCapacity(1), Ask(2, 1)],
        &[&[SetCapacity(2)], &[Release(0)]],
    ),
    long(
        "two_releases_in_debt",
        3,
        &[Try(0, 1), Try(1, 2), SetCapacity(2), Ask(2, 1)],
        &[&[Release(1)], &[Release(0)]],
    ),
    long("shrink_against_shrink", 3, &[Try(0, 2)], &[&[SetCapacity(2)], &[SetCapacity(1)]]),
    long("shrink_against_grow", 2, &[Try(0, 2)], &[&[SetCapacity(1)], &[Grow(1)]]),
    long("shrink_against_enqueue", 2, &[Try(0, 1)], &[&[SetCapacity(1)], &[Ask(1, 1)]]),
    long(
        "enqueue_in_debt_against_release",
        2,
        &[Try(0, 2), SetCapacity(1)],
        &[&[Ask(1, 1)], &[Release(0)]],
    ),
    long(
        "cancel_in_debt_against_release",
        2,
        &[Try(0, 1), Try(1, 1), Ask(2, 1), SetCapacity(1)],
        &[&[Cancel(2)], &[Release(0)]],
    ),
    long(
        "a_head_with_a_part_leaves_in_debt_against_release",
        3,
        &[Try(0, 2), Ask(1, 3), Ask(2, 1), SetCapacity(1)],
        &[&[Cancel(1)], &[Release(0)]],
    ),
    long("forget_against_grow", 2, &[Try(0, 1), Ask(1, 2)], &[&[Forget(0)], &[Grow(1)]]),
    long(
        "forget_against_release_in_debt",
        3,
        &[Try(0, 1), Try(1, 2), SetCapacity(2)],
        &[&[Forget(0)], &[Release(1)]],
    ),
    two("forget_permits_against_try", 2, &[], &[&[ForgetPermits(1)], &[Try(0, 2)]]),
    long("resize_against_close", 2, &[Try(0, 2), Ask(1, 1)], &[&[SetCapacity(1)], &[Close]]),
    long(
        "resize_of_a_closed_one_against_the_last_release",
        2,
        &[Try(0, 2), Close, AskDrained(0)],
        &[&[SetCapacity(1)], &[Release(0)]],
    ),
    three("shrink_grow_release", 2, &[Try(0, 2)], &[&[SetCapacity(1)], &[Grow(1)], &[Release(0)]]),
    three(
        "two_shrinks_and_a_release_with_a_waiter",
        3,
        &[Try(0, 3), Ask(1, 1)],
        &[&[SetCapacity(2)], &[SetCapacity(1)], &[Release(0)]],
    ),
];

/// Scenarios of five to eight threads, for random schedules.
pub static CROWDS: &[Scenario] = &[
    three(
        "five_threads_of_everything",
        3,
        &[Try(0, 2), Try(1, 1), Ask(2, 3), Ask(3, 1), Enqueue(4, 2)],
        &[
            &[Release(0), Ask(5, 1), Poll(5), Release(5)],
            &[Cancel(2), Ask(6, 2), Repoll(6), Release(6)],
            &[Repoll(3), Poll(3), Release(3)],
            &[Poll(4), TimeOut(4), Try(7, 1), Release(7)],
            &[Release(1), Ask(8, 3), Cancel(8)],
        ],
    ),
    three(
        "six_threads_and_a_close",
        2,
        &[Try(0, 1), Try(1, 1), Ask(2, 2), Ask(3, 1), Ask(4, 1), AskDrained(0)],
        &[
            &[Release(0), Ask(5, 1)],
            &[Cancel(3), Ask(6, 1), Cancel(6)],
            &[Repoll(2), Repoll(2)],
            &[Close, AskDrained(1)],
            &[Release(1), Try(7, 1)],
            &[CancelDrained(0), Poll(4)],
        ],
    ),
    three(
        "eight_threads_around_one_permit",
        1,
        &[Try(0, 1), Ask(1, 1), Ask(2, 1), Ask(3, 1), Ask(4, 1)],
        &[
            &[Release(0)],
            &[Cancel(1)],
            &[Cancel(2), Ask(5, 1)],
            &[Poll(3), Release(3)],
            &[Repoll(4), Poll(4), Release(4)],
            &[Ask(6, 1), Cancel(6)],
            &[Ask(7, 1), TimeOut(7)],
            &[Grow(1), Ask(8, 2)],
        ],
    ),
];

/// Scenarios for edges of the state machines that the others do not take, and for calls that they do not make:
/// under random schedules, and with each thread stopped at each of its steps.
pub static EDGES: &[Scenario] = &[
    three(
        "waiters_that_were_never_polled",
        3,
        &[
            Try(0, 1),
            Try(9, 1),
            Try(8, 1),
            Enqueue(1, 2),
            Enqueue(2, 1),
            Enqueue(3, 1),
            Enqueue(4, 1),
        ],
        &[&[Release(0), Release(9)], &[Cancel(3), Cancel(1)], &[Release(8)]],
    ),
    three(
        "waiters_that_were_never_polled_and_a_close",
        2,
        &[Try(0, 1), Enqueue(1, 2), Enqueue(2, 1), Enqueue(3, 1)],
        &[&[Close], &[Cancel(2), Poll(3)], &[Release(0)]],
    ),
    three(
        "wakers_swapped_in_the_midst_of_a_queue",
        1,
        &[
            Try(0, 1),
            Ask(1, 1),
            Repoll(1),
            Ask(2, 1),
            Repoll(2),
            Ask(3, 1),
            Repoll(3),
            Ask(4, 1),
            Repoll(4),
        ],
        &[&[Repoll(4), Cancel(4)], &[Cancel(3), Cancel(1)], &[Repoll(2), Close]],
    ),
    three(
        "many_wait_to_be_drained",
        1,
        &[
            Try(0, 1),
            AskDrained(0),
            RepollDrained(0),
            AskDrained(1),
            RepollDrained(1),
            AskDrained(2),
            AskDrained(3),
            RepollDrained(3),
        ],
        &[
            &[RepollDrained(1), CancelDrained(1)],
            &[CancelDrained(2), RepollDrained(0), CancelDrained(0)],
            &[Close, Release(0)],
            &[RepollDrained(3), CancelDrained(3)],
        ],
    ),
    three(
        "leases_split_and_merged_while_others_wait",
        4,
        &[Try(0, 4), Ask(1, 2), Ask(2, 1)],
        &[
            &[Split(0, 2, 5), ReleasePart(0, 1), Merge(0, 5), Release(0)],
            &[Available, Cancel(2), Available],
            &[Poll(1), Grow(1), Available],
        ],
    ),
    three(
        "a_close_on_free_permits",
        2,
        &[Try(0, 1)],
        &[&[Close, Available], &[Release(0), Try(1, 1)], &[Ask(2, 2), Forget(2)]],
    ),
];

/// More waiters than a release carries wakers for: too many calls to stop a thread at each of its steps.
pub static WIDE: &[Scenario] = &[three(
    "one_release_wakes_more_than_it_can_carry",
    26,
    &[
        Try(0, 26),
        Ask(1, 1),
        Ask(2, 1),
        Ask(3, 1),
        Ask(4, 1),
        Ask(5, 1),
        Ask(6, 1),
        Ask(7, 1),
        Ask(8, 1),
        Ask(9, 1),
        Ask(10, 1),
        Ask(11, 1),
        Ask(12, 1),
        Ask(13, 1),
        Ask(14, 1),
        Ask(15, 1),
        Ask(16, 1),
        Ask(17, 1),
        Ask(18, 1),
        Ask(19, 1),
        Ask(20, 1),
        Ask(21, 1),
        Ask(22, 1),
        Ask(23, 1),
        Ask(24, 1),
        Ask(25, 1),
        Ask(26, 1),
    ],
    &[&[Release(0)], &[Cancel(26)]],
)];
