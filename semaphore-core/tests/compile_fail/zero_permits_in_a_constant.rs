//! Must fail with E0080.

use semaphore_core::Semaphore;

static NEVER: Semaphore = Semaphore::new(0);

fn main() {
    let _ = NEVER.try_acquire();
}
