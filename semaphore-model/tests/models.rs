//! Every scenario of the catalogue, under the checker that the crate is built for.
//!
//! Each is one test; its name says what is bounded and by how much. Each prints how often it was executed,
//! and asserts that the outcomes it found, over all modes and orders together, are exactly those in
//! `outcomes/`. The files are the same for loom and for shuttle: what one finds and the other does
//! not fails a test. `BLESS=1` writes them anew. `BOUND=4` or `BOUND=none` stands in for the bounds of the
//! catalogue, in every mode; without a bound some scenarios take hours.

#[cfg(any(feature = "loom", feature = "shuttle"))]
mod models {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::time::Instant;
    use std::{env, fs};

    use libtest_mimic::{Arguments, Failed, Trial};
    use semaphore_model::backend::{Found, permutations};
    use semaphore_model::catalogue::{PAIRS, RESIZES, TRIPLES};
    use semaphore_model::scenario::Scenario;

    /// Runs `explore` for each order of the threads, and says what it found.
    fn each_order(
        scenario: &'static Scenario,
        how: &str,
        outcomes: &mut BTreeSet<String>,
        explore: impl Fn(&[usize]) -> Found,
    ) {
        for order in permutations(scenario.threads.len()) {
            let begun = Instant::now();
            let found = explore(&order);
            println!(
                "{:<48} {how:<24} order {order:?} {:>8} executions {:>3} outcomes {:>6.1} s",
                scenario.name,
                found.executions,
                found.outcomes.len(),
                begun.elapsed().as_secs_f64(),
            );
            outcomes.extend(found.outcomes);
        }
    }

    /// The outcomes are those that stand in the file of the scenario.
    fn compare(scenario: &Scenario, outcomes: &BTreeSet<String>) -> Result<(), Failed> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("outcomes")
            .join(scenario.name)
            .with_extension("txt");
        let mut found = String::new();
        for outcome in outcomes {
            found.push_str(outcome.trim());
            found.push('\n');
        }
        if env::var_os("BLESS").is_some() {
            fs::write(&path, &found)?;
        }
        let expected = fs::read_to_string(&path)?;
        for outcome in expected.lines() {
            println!("    {outcome}");
        }
        if found == expected {
            Ok(())
        } else {
            Err(format!("found these outcomes:\n{found}and not those of {}", path.display()).into())
        }
    }

    /// The bound to explore with: that of the catalogue, unless `BOUND` says otherwise.
    fn chosen(of_the_catalogue: Option<usize>) -> Option<usize> {
        match env::var("BOUND").as_deref() {
            Err(_) => of_the_catalogue,
            Ok("none") => None,
            Ok(bound) => Some(bound.parse().expect("BOUND is a number or `none`")),
        }
    }

    fn bound(bound: Option<usize>) -> String {
        bound.map_or_else(|| "no bound".to_owned(), |bound| format!("bound {bound}"))
    }

    #[cfg(feature = "loom")]
    fn trial(scenario: &'static Scenario) -> Trial {
        use semaphore_model::backend::loom::{Mode, explore};

        let (weak_bound, strong_bound) = (chosen(scenario.loom_weak), chosen(scenario.loom_strong));
        let (weak, strong) = (bound(weak_bound), bound(strong_bound));
        Trial::test(format!("{} [weak: {weak}, strong: {strong}]", scenario.name), move || {
            let mut outcomes = BTreeSet::new();
            each_order(scenario, &format!("loom weak, {weak}"), &mut outcomes, |order| {
                explore(scenario, order, Mode::Weak, weak_bound)
            });
            each_order(scenario, &format!("loom strong, {strong}"), &mut outcomes, |order| {
                explore(scenario, order, Mode::Strong, strong_bound)
            });
            compare(scenario, &outcomes)
        })
    }

    #[cfg(all(feature = "shuttle", not(feature = "loom")))]
    fn trial(scenario: &'static Scenario) -> Trial {
        use semaphore_model::backend::shuttle::depth_first;

        let depth_bound = chosen(scenario.depth_first);
        let how = bound(depth_bound);
        Trial::test(format!("{} [depth first: {how}]", scenario.name), move || {
            let mut outcomes = BTreeSet::new();
            each_order(scenario, &format!("shuttle DFS, {how}"), &mut outcomes, |order| {
                depth_first(scenario, order, depth_bound)
            });
            compare(scenario, &outcomes)
        })
    }

    /// So many schedules of each kind, from each seed, for a scenario with too many to enumerate.
    #[cfg(all(feature = "shuttle", not(feature = "loom")))]
    fn crowd(scenario: &'static Scenario) -> Trial {
        use semaphore_model::backend::shuttle::{pct, random};
        const SCHEDULES: usize = 4_000;
        const SEEDS: [u64; 2] = [1, 2026];
        const DEPTH: usize = 5;

        let name = format!(
            "{} [{SCHEDULES} random and PCT schedules of depth {DEPTH} per seed]",
            scenario.name
        );
        Trial::test(name, move || {
            let order: Vec<_> = (0..scenario.threads.len()).collect();
            for seed in SEEDS {
                let (walk, pct) = (
                    random(scenario, &order, seed, SCHEDULES),
                    pct(scenario, &order, DEPTH, seed, SCHEDULES),
                );
                println!(
                    "{:<48} shuttle, seed {seed}: random {} executions {} outcomes, PCT {} executions {} outcomes",
                    scenario.name,
                    walk.executions,
                    walk.outcomes.len(),
                    pct.executions,
                    pct.outcomes.len(),
                );
            }
            Ok(())
        })
    }

    pub(crate) fn main() {
        let trials = PAIRS.iter().chain(RESIZES).chain(TRIPLES).map(trial);
        #[cfg(all(feature = "shuttle", not(feature = "loom")))]
        let trials = trials.chain(semaphore_model::catalogue::CROWDS.iter().map(crowd));
        let trials = trials.collect();
        libtest_mimic::run(&Arguments::from_args(), trials).exit();
    }
}

#[cfg(any(feature = "loom", feature = "shuttle"))]
fn main() {
    models::main();
}

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
fn main() {
    println!("built without a checker: try `--features loom` or `--features shuttle`");
}
