//! The corpus, replayed on stable; and as many random inputs, from fixed seeds.

use std::fs;
use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut replayed = 0;
    for entry in fs::read_dir(folder).unwrap() {
        run(&fs::read(entry.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed > 0, "an empty corpus");
    for seed in 0..2_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let len = random.usize(..600);
        run(&std::iter::repeat_with(|| random.u8(..)).take(len).collect::<Vec<_>>());
    }
    println!("{target}: {replayed} of the corpus, 2,000 random inputs");
}

#[test]
fn sequential() {
    replay("sequential", semaphore_fuzz::sequential);
}

#[test]
fn wakers() {
    replay("wakers", semaphore_fuzz::wakers);
}
