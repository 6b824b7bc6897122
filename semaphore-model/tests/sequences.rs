//! Random sequences of calls: the semaphore answers what its specification answers.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

use proptest::collection::vec;
use proptest::prelude::*;
use semaphore_model::sequential::{Choice, check};

fn choice() -> impl Strategy<Value = Choice> {
    let weight = 0..5_u32;
    prop_oneof![
        2 => weight.clone().prop_map(Choice::Try),
        6 => weight.clone().prop_map(Choice::Ask),
        3 => weight.prop_map(Choice::Enqueue),
        3 => any::<u8>().prop_map(Choice::Poll),
        2 => any::<u8>().prop_map(Choice::Repoll),
        3 => any::<u8>().prop_map(Choice::Cancel),
        2 => any::<u8>().prop_map(Choice::TimeOut),
        4 => any::<u8>().prop_map(Choice::Release),
        1 => any::<u8>().prop_map(Choice::ReleasePart),
        1 => any::<u8>().prop_map(Choice::Split),
        1 => any::<(u8, u8)>().prop_map(|(to, from)| Choice::Merge(to, from)),
        1 => any::<u8>().prop_map(Choice::Forget),
        1 => (0..3_u8).prop_map(Choice::Grow),
    ]
}

/// Most sequences are not closed, or all that follows is a refusal.
fn sequence() -> impl Strategy<Value = Vec<Choice>> {
    let end = prop_oneof![3 => Just(vec![]), 1 => vec(choice(), 0..20)];
    (vec(choice(), 1..120), any::<bool>(), end).prop_map(|(mut all, close, end)| {
        if close {
            all.push(Choice::Close);
            all.extend(end);
        }
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn the_answers_are_those_of_the_specification(
        permits in 1..6_u32,
        more in 0..4_u32,
        limit in prop_oneof![Just(None), (1..6_usize).prop_map(Some)],
        choices in sequence(),
    ) {
        check(permits, permits + more, limit, choices)?;
    }

    #[test]
    fn so_are_those_of_any_bytes(bytes in vec(any::<[u8; 3]>(), 1..200)) {
        check(3, 5, Some(8), bytes.into_iter().map(Choice::from_bytes))?;
    }
}
