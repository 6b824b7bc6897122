//! What the command line says.

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, value_parser};

/// A pool of database connections under a crowd of async clients, which checks itself.
#[derive(Debug, PartialEq, Eq, Parser)]
#[command(name = "pool", version, allow_negative_numbers = true)]
pub(crate) struct Options {
    /// Connections in the pool: the permits of the semaphore
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) connections: u16,
    /// Clients that share them; more than there are connections, or nobody would wait
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u16).range(2..=10_000))]
    pub(crate) clients: u16,
    /// How long they do so before the pool is closed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u16).range(1..=3600))]
    pub(crate) seconds: u16,
    /// Report what the semaphore's observer counts; needs the feature `metrics`
    #[arg(long)]
    pub(crate) metrics: bool,
}

impl Options {
    /// The options as given; what makes no sense ends the process with a message and status 2.
    pub(crate) fn from_command_line() -> Self {
        let options = Self::parse();
        if options.clients <= options.connections {
            let message = format!(
                "{} clients on {} connections: nobody would ever wait; \
                 ask for more clients than connections",
                options.clients, options.connections,
            );
            let mut command = Self::command();
            command.error(ErrorKind::ValueValidation, message).exit()
        }
        options
    }

    /// Room for three quarters of those who can wait at once: when all of them come, some are
    /// refused.
    pub(crate) fn max_waiters(&self) -> usize {
        let can_wait = usize::from(self.clients - self.connections);
        (can_wait * 3 / 4).max(1)
    }

    /// Whether this is the run whose every category has to occur.
    pub(crate) fn are_the_defaults(&self) -> bool {
        *self == Self::parse_from(["pool"])
    }
}
