//! The database, and the work on it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::Fault;
use crate::dice::Dice;

/// Accounts in a database file. Transfers move money and make none.
pub(crate) struct Bank {
    file: PathBuf,
    transfers: AtomicU64,
}

/// What a client does with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Adds up all accounts.
    Audit,
    Transfer(Transfer),
    /// Moves the log into the file and empties it; wants the database to itself.
    Checkpoint,
}

impl Job {
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        if dice.below(4) == 0 { Self::Transfer(Transfer::draw(dice)) } else { Self::Audit }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    giver: u64,
    taker: u64,
    amount: i64,
}

impl Transfer {
    fn draw(dice: &mut Dice) -> Self {
        let [giver, taker] = [(); 2].map(|()| dice.below(Bank::ACCOUNTS));
        let amount = i64::try_from(dice.below(100)).expect("below a hundred");
        Self { giver, taker, amount }
    }
}

impl Bank {
    const ACCOUNTS: u64 = 5_000;
    const DEPOSIT: u64 = 1_000;
    const SCHEMA: &str = "
        PRAGMA journal_mode = WAL;
        CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
        CREATE TABLE transfer (giver INTEGER, taker INTEGER, amount INTEGER);
    ";

    pub(crate) fn found(directory: &Path) -> Result<Self, Fault> {
        let bank = Self { file: directory.join("bank.sqlite"), transfers: AtomicU64::new(0) };
        let mut connection = bank.open()?;
        connection.execute_batch(Self::SCHEMA)?;
        let transaction = connection.transaction()?;
        for id in 0..Self::ACCOUNTS {
            transaction.execute("INSERT INTO account VALUES (?1, ?2)", (id, Self::DEPOSIT))?;
        }
        transaction.commit()?;
        Ok(bank)
    }

    pub(crate) fn open(&self) -> Result<Connection, Fault> {
        let connection = Connection::open(&self.file)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(connection)
    }

    pub(crate) fn perform(&self, job: Job, connection: &mut Connection) -> Result<(), Fault> {
        match job {
            Job::Audit => Self::audit(connection),
            Job::Transfer(order) => self.transfer(connection, order),
            Job::Checkpoint => Self::checkpoint(connection),
        }
    }

    fn audit(connection: &Connection) -> Result<(), Fault> {
        let total: u64 = connection
            .prepare_cached("SELECT sum(balance) FROM account")?
            .query_one((), |row| row.get(0))?;
        if total != Self::ACCOUNTS * Self::DEPOSIT {
            return Err(format!("the bank holds {total}").into());
        }
        Ok(())
    }

    fn transfer(&self, connection: &mut Connection, order: Transfer) -> Result<(), Fault> {
        const MOVE: &str = "UPDATE account SET balance = balance + ?2 WHERE id = ?1";
        const NOTE: &str = "INSERT INTO transfer VALUES (?1, ?2, ?3)";
        let Transfer { giver, taker, amount } = order;
        // Immediate: one that began as a reader could not become a writer behind another.
        let deal = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        deal.prepare_cached(MOVE)?.execute((giver, -amount))?;
        deal.prepare_cached(MOVE)?.execute((taker, amount))?;
        deal.prepare_cached(NOTE)?.execute((giver, taker, amount))?;
        deal.commit()?;
        self.transfers.fetch_add(1, SeqCst);
        Ok(())
    }

    fn checkpoint(connection: &Connection) -> Result<(), Fault> {
        let blocked: bool =
            connection.query_one("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
        if blocked {
            return Err("somebody else was in the database during a checkpoint".into());
        }
        Ok(())
    }

    /// How many transfers were committed.
    pub(crate) fn transfers(&self) -> u64 {
        self.transfers.load(SeqCst)
    }

    /// Whether the file still holds all the money and every transfer, and nothing else.
    pub(crate) fn last_audit(&self) -> Result<(), Fault> {
        let connection = self.open()?;
        Self::audit(&connection)?;
        let noted: u64 =
            connection.query_one("SELECT count(*) FROM transfer", (), |row| row.get(0))?;
        let made = self.transfers();
        if noted != made {
            return Err(format!("{made} transfers were made, {noted} are in the file").into());
        }
        Ok(())
    }
}
