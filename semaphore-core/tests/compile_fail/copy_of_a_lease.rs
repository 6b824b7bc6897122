//! Must fail with E0599.

use semaphore_core::Semaphore;

fn main() {
    let semaphore = Semaphore::new(1);
    let lease = semaphore.try_acquire().unwrap();
    let _twin = lease.clone();
}
