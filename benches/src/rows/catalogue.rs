//! All rows, with their contenders and goals.

use std::sync::Arc;

use super::queue::Order;
use super::{contended, queue, tasks, uncontended};
use crate::contender::{
    AsyncLock, Asyncband, Bare, Contender, Embassy, IntrusiveFair, IntrusiveUnfair, Maitake, Ours,
    OwnMutex, Owned, Saa, SharedIntrusive, Tokio,
};
use crate::goals::{Goal, Limit};
use crate::measure::Entry;

/// One figure of a row.
#[derive(Clone, Debug)]
pub struct Column {
    /// What it is.
    pub what: &'static str,
    /// In which unit.
    pub unit: &'static str,
    /// What is aimed at.
    pub goal: Goal,
}

/// How much of a row makes a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Hundreds of thousands of short operations, many rounds.
    Operations,
    /// A million of them, few rounds.
    Storm,
    /// A hundred thousand, by tasks of a runtime, six rounds.
    Tasks,
    /// So many that a worker that is kept from running for a moment makes no difference.
    Turns,
}

/// A row of the table.
#[allow(missing_debug_implementations)]
pub struct Row {
    /// Its letter, with what it is run with.
    pub id: String,
    /// What is done.
    pub what: String,
    /// Its figures.
    pub columns: Vec<Column>,
    /// How much of it makes a measurement.
    pub weight: Weight,
    /// Makes the contenders.
    pub entries: Box<dyn Fn() -> Vec<Entry>>,
}

/// Lengths of the queue that row D is run with.
pub const LENGTHS: [usize; 5] = [1, 16, 1024, 8192, 65_536];
/// Queues that row E cancels.
pub const CANCELLED: [usize; 2] = [1024, 65_536];
/// Waiters that one release serves in the batch of row G.
pub const BATCH: usize = 64;

/// What a contender must be able to do to be in a row.
#[derive(Clone, Copy)]
struct Needs {
    waiters: usize,
    permits: usize,
    many: bool,
}

impl Needs {
    const LITTLE: Self = Self { waiters: 0, permits: 1, many: false };

    const fn waiters(waiters: usize) -> Self {
        Self { waiters, ..Self::LITTLE }
    }

    fn fits<C: Contender>(self) -> bool {
        C::MAX_WAITERS >= self.waiters && C::MAX_PERMITS >= self.permits && (C::MANY || !self.many)
    }
}

/// The work as an entry for each contender that can do it.
macro_rules! contenders {
    ($needs:expr, $C:ident => $run:expr) => {
        contenders!($needs, $C => $run; Ours Tokio IntrusiveFair IntrusiveUnfair Maitake Asyncband
            AsyncLock Saa Embassy OwnMutex Bare)
    };
    ($needs:expr, $C:ident => $run:expr; $($Contender:ident)*) => {
        Box::new(move || {
            let mut entries = Vec::new();
            $({
                type $C = $Contender;
                if $needs.fits::<$C>() {
                    entries.push(Entry { name: <$C as Contender>::NAME, run: $run });
                }
            })*
            entries
        })
    };
}

macro_rules! blockers {
    ($($Contender:ty),*) => {
        Box::new(|| vec![$(Entry {
            name: <$Contender as Contender>::NAME,
            run: uncontended::acquire_blocking::<$Contender>(),
        }),*])
    };
}

macro_rules! owners {
    ($($Owned:ty),*) => {
        Box::new(|| vec![$(
            Entry { name: <$Owned as Owned>::NAME, run: uncontended::acquire_owned::<$Owned>() }
        ),*])
    };
}

const fn nanoseconds(what: &'static str, goal: Goal) -> Column {
    Column { what, unit: "ns", goal }
}

fn row(
    id: impl Into<String>,
    what: impl Into<String>,
    columns: Vec<Column>,
    entries: Box<dyn Fn() -> Vec<Entry>>,
) -> Row {
    Row { id: id.into(), what: what.into(), columns, weight: Weight::Operations, entries }
}

fn uncontended_rows() -> Vec<Row> {
    let needs = Needs::LITTLE;
    let mut rows = vec![
        row(
            "A",
            "try_acquire and drop",
            vec![nanoseconds("both", Goal::Either(Limit::OfTokio(0.55), Limit::OfBare(1.15)))],
            contenders!(needs, C => uncontended::try_acquire::<C>()),
        ),
        row(
            "B1",
            "acquire polled once, ready, and drop",
            vec![nanoseconds("both", Goal::One(Limit::OfTokio(0.33)))],
            contenders!(needs, C => uncontended::acquire::<C>(1)),
        ),
        row(
            "B2",
            "the same, owned",
            vec![nanoseconds("both", Goal::One(Limit::OfTokio(0.45)))],
            owners!(
                Arc<semaphore_core::Semaphore>,
                Arc<tokio::sync::Semaphore>,
                SharedIntrusive,
                Arc<maitake_sync::Semaphore>,
                Arc<asyncband::semaphore::Semaphore>,
                Arc<async_lock::Semaphore>,
                Arc<OwnMutex>,
                Arc<Bare>
            ),
        ),
        row(
            "B3",
            "blocking acquire and drop, permits free",
            vec![nanoseconds("both", Goal::One(Limit::OfTokio(0.25)))],
            blockers!(Ours, Tokio, AsyncLock, Saa, OwnMutex),
        ),
        row(
            "C1",
            "two threads, two permits, nobody ever waits",
            vec![nanoseconds("both", Goal::Both(Limit::OfTokio(0.30), Limit::OfBare(2.0)))],
            contenders!(needs, C => contended::never_blocks::<C>(2)),
        ),
    ];
    for k in [1, 8, 64] {
        let needs = Needs { permits: k as usize, many: k > 1, ..Needs::LITTLE };
        rows.push(row(
            format!("G k={k}"),
            format!("acquire_many({k}) polled once, ready, and drop"),
            vec![nanoseconds("both", Goal::One(Limit::OfTokio(0.33)))],
            contenders!(needs, C => uncontended::acquire::<C>(k)),
        ));
    }
    rows
}

fn queue_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for waiters in LENGTHS {
        rows.push(row(
            format!("D {waiters}"),
            format!("{waiters} join, then each is handed the permit"),
            vec![
                nanoseconds("enqueue", Goal::One(Limit::OfTokio(0.55))),
                nanoseconds("hand-off", Goal::One(Limit::OfTokio(0.42))),
                nanoseconds("both", Goal::One(Limit::OfTokio(0.45))),
            ],
            contenders!(Needs::waiters(waiters), C => queue::enqueue_and_hand_off::<C>(waiters)),
        ));
    }
    for waiters in LENGTHS {
        rows.push(row(
            format!("D around {waiters}"),
            format!("a queue of {waiters}: hand-off to the first, which joins again as the last"),
            vec![nanoseconds("both", Goal::One(Limit::OfTokio(0.45)))],
            contenders!(Needs::waiters(waiters), C => queue::around::<C>(waiters)),
        ));
    }
    for waiters in CANCELLED {
        let goal = Goal::One(Limit::OfTokio(if waiters > 1024 { 1.5 } else { 1.0 }));
        for order in Order::ALL {
            rows.push(row(
                format!("E {waiters} {}", order.name()),
                format!("{waiters} wait, all leave; order: {}", order.name()),
                vec![nanoseconds("cancel", goal)],
                contenders!(Needs::waiters(waiters), C => queue::cancel::<C>(waiters, order)),
            ));
        }
    }
    rows.push(Row {
        weight: Weight::Storm,
        ..row(
            "F",
            "waiters join and leave between two that stay",
            vec![
                nanoseconds("join and leave", Goal::One(Limit::OfTokio(0.70))),
                nanoseconds("release after it", Goal::One(Limit::OfOwn(2, 1.0))),
                nanoseconds("release without it", Goal::None),
            ],
            contenders!(Needs::waiters(1025), C => queue::storm::<C>()),
        )
    });
    let needs = Needs { permits: BATCH, many: true, waiters: BATCH };
    rows.push(row(
        "G batch",
        format!("one release serves {BATCH}, each polled and dropped; for each of them"),
        vec![nanoseconds("hand-off", Goal::One(Limit::OfTokio(0.50)))],
        contenders!(needs, C => queue::batch::<C>(BATCH)),
    ));
    rows
}

fn task_rows() -> Vec<Row> {
    let needs = Needs { permits: 64, ..Needs::waiters(1000) };
    let crowd: Box<dyn Fn() -> Vec<Entry>> = contenders!(needs, C => tasks::crowd::<C>(1000, 64));
    vec![
        Row {
            weight: Weight::Tasks,
            ..row(
                "H",
                "1,000 tasks on two workers, 64 permits, one yield with the lease",
                vec![Column {
                    what: "one turn",
                    unit: "ns of CPU",
                    goal: Goal::One(Limit::OfTokio(0.88)),
                }],
                Box::new(move || {
                    let mut entries = crowd();
                    let run = tasks::crowd_of_nothing(1000);
                    entries.push(Entry { name: "no semaphore", run });
                    entries
                }),
            )
        },
        Row {
            weight: Weight::Turns,
            ..row(
                "J",
                "8 tasks on two workers take turns at one permit",
                vec![
                    Column {
                        what: "most to least grants",
                        unit: "",
                        goal: Goal::One(Limit::Value(1.15)),
                    },
                    Column { what: "overtaken", unit: "‰", goal: Goal::One(Limit::Value(0.0)) },
                ],
                contenders!(Needs::waiters(8), C => tasks::turns::<C>(8)),
            )
        },
    ]
}

/// All rows, in the order of the table.
#[must_use]
pub fn all() -> Vec<Row> {
    let mut rows = uncontended_rows();
    rows.extend(queue_rows());
    rows.extend(task_rows());
    rows
}
