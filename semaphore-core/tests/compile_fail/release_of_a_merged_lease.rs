//! Must fail with E0382.

use semaphore_core::Semaphore;

fn main() {
    let semaphore = Semaphore::new(2);
    let mut one = semaphore.try_acquire().unwrap();
    let other = semaphore.try_acquire().unwrap();
    one.merge(other).unwrap();
    drop(other);
}
