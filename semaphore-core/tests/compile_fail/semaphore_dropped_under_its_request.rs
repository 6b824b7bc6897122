//! Must fail with E0505.

use semaphore_core::Semaphore;

fn main() {
    let semaphore = Semaphore::new(1);
    let request = semaphore.acquire().enqueue();
    drop(semaphore);
    drop(request);
}
