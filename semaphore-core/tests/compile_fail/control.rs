//! Must compile.

use semaphore_core::Semaphore;

static STATIC: Semaphore = Semaphore::new(1);

fn main() {
    let semaphore = Semaphore::new(1);
    let lease = semaphore.try_acquire().unwrap();
    lease.release();
    let request = semaphore.acquire().enqueue();
    drop(request);
    drop(semaphore);
    drop(STATIC.try_acquire());
}
