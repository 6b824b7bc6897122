//! Must fail with E0382.

use semaphore_core::Semaphore;

fn main() {
    let semaphore = Semaphore::new(1);
    let lease = semaphore.try_acquire().unwrap();
    lease.release();
    lease.release();
}
