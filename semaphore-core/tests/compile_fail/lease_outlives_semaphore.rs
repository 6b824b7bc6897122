//! Must fail with E0597.

use semaphore_core::Semaphore;

fn main() {
    let lease = {
        let semaphore = Semaphore::new(1);
        semaphore.try_acquire().unwrap()
    };
    drop(lease);
}
