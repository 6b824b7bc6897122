//! Checks code that is built on the semaphore: a pool of items, with a bug and without.
//!
//! `cargo run -p semaphore-model --features loom --example check_your_code` explores both, and shows what loom finds.
//! The guide is `docs/CHECK_YOUR_CODE.md`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::sync::Mutex;
use loom::thread;
use semaphore_core::{OwnedLease, Semaphore};

/// As many items as permits: whoever has a lease finds one.
struct Pool {
    permits: Arc<Semaphore>,
    items: Mutex<Vec<u32>>,
    /// Gives the permit back before the item.
    bug: bool,
}

struct Item {
    lease: OwnedLease,
    number: u32,
}

impl Pool {
    fn new(items: u32, bug: bool) -> Self {
        let permits = Arc::new(Semaphore::new(items as usize));
        Self { permits, items: Mutex::new((0..items).collect()), bug }
    }

    fn get(&self) -> Option<Item> {
        let lease = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        let number = self.items.lock().unwrap().pop().expect("a lease stands for an item");
        Some(Item { lease, number })
    }

    fn put(&self, Item { lease, number }: Item) {
        if self.bug {
            drop(lease);
            self.items.lock().unwrap().push(number);
        } else {
            self.items.lock().unwrap().push(number);
            drop(lease);
        }
    }
}

/// Two threads that take and put back, over all their interleavings; says how many there were.
fn explore(bug: bool) -> Result<usize, usize> {
    let executions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executions);
    let done = catch_unwind(AssertUnwindSafe(|| {
        loom::model(move || {
            count.fetch_add(1, Ordering::Relaxed);
            let pool = Arc::new(Pool::new(1, bug));
            let other = Arc::clone(&pool);
            let thread = thread::spawn(move || {
                if let Some(item) = other.get() {
                    other.put(item);
                }
            });
            if let Some(item) = pool.get() {
                pool.put(item);
            }
            thread.join().unwrap();
            assert_eq!(pool.permits.available_permits(), 1);
            assert_eq!(pool.items.lock().unwrap().len(), 1);
        });
    }));
    let executions = executions.load(Ordering::Relaxed);
    if done.is_ok() { Ok(executions) } else { Err(executions) }
}

fn main() -> ExitCode {
    println!("the permit goes back before the item:");
    let broken = explore(true);
    match broken {
        Ok(executions) => println!("nothing found in {executions} executions"),
        Err(executions) => println!("found in execution {executions}"),
    }
    println!("the item goes back before the permit:");
    let fixed = explore(false);
    match fixed {
        Ok(executions) => println!("nothing found in {executions} executions"),
        Err(executions) => println!("found in execution {executions}"),
    }
    ExitCode::from(u8::from(broken.is_ok() || fixed.is_err()))
}
