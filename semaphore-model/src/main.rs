//! The command line of the model checker.
//!
//! Exit status: 0, nothing was found; 1, a failure was found; 2, wrong usage, or a file that cannot be used.

#[cfg(any(feature = "loom", feature = "shuttle"))]
#[path = "cli.rs"]
mod cli;

#[cfg(any(feature = "loom", feature = "shuttle"))]
fn main() -> std::process::ExitCode {
    cli::main()
}

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
fn main() -> std::process::ExitCode {
    eprintln!(
        "error: built without a checker\n\n\
         One binary has one checker, for each replaces the atomics of the semaphore by its own:\n  \
         cargo run --release -p semaphore-model --features shuttle -- --help\n  \
         cargo run --release -p semaphore-model --features loom -- --help"
    );
    std::process::ExitCode::from(2)
}
