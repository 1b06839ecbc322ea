//! Two databases behind one small interface: statements with numbered parameters, rows of texts and numbers.
//!
//! Both databases understand the same SQL as far as it is used here, so every operation of the store is written once.
//! They differ in how a transaction that writes begins: SQLite takes its one write lock at once, PostgreSQL locks rows.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Arguments, Column, PgPool, Pool, Postgres, Row as _, Sqlite, SqlitePool, TypeInfo, ValueRef};

use crate::error::Error;

/// Time limit for a writer that waits for another.
const PATIENCE: Duration = Duration::from_secs(30);
/// Limit on connections to the database.
const CONNECTIONS: u32 = 16;

/// A value in a statement or a row. A missing one has a type too, since databases ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(Option<String>),
    Number(Option<i64>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

/// A row of an answer.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseRow(Vec<Value>);

impl DatabaseRow {
    pub(crate) fn text(&self, at: usize) -> Result<String, Error> {
        match self.0.get(at) {
            Some(Value::Text(Some(text))) => Ok(text.clone()),
            other => Err(Error::Schema(format!("a text was expected, and there is {other:?}"))),
        }
    }

    pub(crate) fn number(&self, at: usize) -> Result<i64, Error> {
        match self.0.get(at) {
            Some(Value::Number(Some(number))) => Ok(*number),
            other => Err(Error::Schema(format!("a number was expected, and there is {other:?}"))),
        }
    }

    pub(crate) fn text_if_any(&self, at: usize) -> Result<Option<String>, Error> {
        match self.0.get(at) {
            Some(Value::Text(None) | Value::Number(None)) => Ok(None),
            _ => self.text(at).map(Some),
        }
    }

    pub(crate) fn number_if_any(&self, at: usize) -> Result<Option<i64>, Error> {
        match self.0.get(at) {
            Some(Value::Text(None) | Value::Number(None)) => Ok(None),
            _ => self.number(at).map(Some),
        }
    }

    pub(crate) fn values(self) -> Vec<Value> {
        self.0
    }
}

/// An open database.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    /// SQLite has one writer at a time: waiting for it in a queue of one connection is fairer than its own lock.
    Sqlite {
        read: SqlitePool,
        write: SqlitePool,
    },
    Postgres(PgPool),
}

impl Database {
    /// Opens `postgres://…`, or a file.
    pub(crate) async fn open(address: &str) -> Result<Self, Error> {
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            let options: PoolOptions<Postgres> =
                PoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(PATIENCE);
            return Ok(Self::Postgres(options.connect(address).await?));
        }
        let address = address.strip_prefix("sqlite:").unwrap_or(address);
        // Its owner's alone, before anything is in it. What SQLite puts next to it gets the same mode.
        for ending in ["", "-wal", "-shm"] {
            let path = PathBuf::from(format!("{address}{ending}"));
            if ending.is_empty() || files::glance(&path).is_some() {
                files::make_private(&path)?;
            }
        }
        let file = SqliteConnectOptions::from_str("sqlite:")?
            .filename(address)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(PATIENCE);
        let pool = |most| -> PoolOptions<Sqlite> { PoolOptions::new().max_connections(most).acquire_timeout(PATIENCE) };
        let write = pool(1).connect_with(file.clone()).await?;
        let read = pool(CONNECTIONS).connect_with(file.read_only(true)).await?;
        Ok(Self::Sqlite { read, write })
    }

    /// A transaction that writes.
    pub(crate) async fn begin(&self) -> Result<Transaction, Error> {
        Ok(match self {
            Self::Sqlite { write, .. } => Transaction::Sqlite(begun(write, "BEGIN IMMEDIATE").await?),
            Self::Postgres(pool) => Transaction::Postgres(begun(pool, "BEGIN").await?),
        })
    }

    /// The rows of one statement that reads.
    pub(crate) async fn rows(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<DatabaseRow>, Error> {
        match self {
            Self::Sqlite { read, .. } => sqlite::rows(read, sql, values).await,
            Self::Postgres(pool) => postgres::rows(pool, sql, values).await,
        }
    }

    /// Several reads that see one state.
    pub(crate) async fn snapshot(&self) -> Result<Transaction, Error> {
        Ok(match self {
            Self::Sqlite { read, .. } => Transaction::Sqlite(begun(read, "BEGIN").await?),
            Self::Postgres(pool) => {
                Transaction::Postgres(begun(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
            }
        })
    }

    /// Waits for running statements, and closes.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite { read, write } => {
                read.close().await;
                write.close().await;
            }
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

/// Begins a transaction, to its end even if nobody waits for it any more (a client has gone). Dropped halfway, it would
/// give its connection back to the pool inside a transaction that the next user knows nothing of.
async fn begun<D: sqlx::Database>(pool: &Pool<D>, sql: &'static str) -> Result<sqlx::Transaction<'static, D>, Error> {
    let pool = pool.clone();
    let begun = tokio::spawn(async move { pool.begin_with(sql).await }).await;
    Ok(begun.unwrap_or(Err(sqlx::Error::WorkerCrashed))?)
}

/// A transaction. Dropped without a commit, it is rolled back.
pub(crate) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

impl Transaction {
    pub(crate) async fn rows(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<DatabaseRow>, Error> {
        match self {
            Self::Sqlite(transaction) => sqlite::rows(&mut **transaction, sql, values).await,
            Self::Postgres(transaction) => postgres::rows(&mut **transaction, sql, values).await,
        }
    }

    /// The first row, if there is one.
    pub(crate) async fn row(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Option<DatabaseRow>, Error> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Runs a statement; returns the number of rows it changed.
    pub(crate) async fn run(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64, Error> {
        match self {
            Self::Sqlite(transaction) => sqlite::run(&mut **transaction, sql, values).await,
            Self::Postgres(transaction) => postgres::run(&mut **transaction, sql, values).await,
        }
    }

    /// Holds a name until the end: others who ask for it wait. SQLite's writers wait for one another anyway.
    pub(crate) async fn lock(&mut self, name: &str) -> Result<(), Error> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(transaction) => {
                let lock = "SELECT 1::bigint FROM (SELECT pg_advisory_xact_lock(hashtextextended($1, 0))) AS held";
                postgres::rows(&mut **transaction, lock, vec![name.into()]).await.map(drop)
            }
        }
    }

    pub(crate) async fn commit(self) -> Result<(), Error> {
        match self {
            Self::Sqlite(transaction) => Ok(transaction.commit().await?),
            Self::Postgres(transaction) => Ok(transaction.commit().await?),
        }
    }
}

/// The same few lines for each database, since its types differ.
macro_rules! adapter {
    ($module:ident, $database:ty, $arguments:ty, $number:literal) => {
        mod $module {
            use super::*;

            fn arguments(values: Vec<Value>) -> Result<$arguments, Error> {
                let mut arguments = <$arguments>::default();
                for value in values {
                    match value {
                        Value::Text(text) => arguments.add(text),
                        Value::Number(number) => arguments.add(number),
                    }
                    .map_err(sqlx::Error::Encode)?;
                }
                Ok(arguments)
            }

            fn row(row: &<$database as sqlx::Database>::Row) -> Result<DatabaseRow, Error> {
                let value = |at: usize| -> Result<Value, Error> {
                    let (held, declared) = (row.try_get_raw(at)?.type_info().into_owned(), row.column(at).type_info());
                    let is_number = [held.name(), declared.name()].contains(&$number);
                    Ok(if is_number { Value::Number(row.try_get(at)?) } else { Value::Text(row.try_get(at)?) })
                };
                (0..row.len()).map(value).collect::<Result<_, _>>().map(DatabaseRow)
            }

            pub(super) async fn rows<'c>(
                executor: impl sqlx::Executor<'c, Database = $database>,
                sql: &'static str,
                values: Vec<Value>,
            ) -> Result<Vec<DatabaseRow>, Error> {
                let found = sqlx::query_with(sql, arguments(values)?).fetch_all(executor).await?;
                found.iter().map(row).collect()
            }

            pub(super) async fn run<'c>(
                executor: impl sqlx::Executor<'c, Database = $database>,
                sql: &'static str,
                values: Vec<Value>,
            ) -> Result<u64, Error> {
                Ok(sqlx::query_with(sql, arguments(values)?).execute(executor).await?.rows_affected())
            }
        }
    };
}

adapter!(sqlite, Sqlite, sqlx::sqlite::SqliteArguments, "INTEGER");
adapter!(postgres, Postgres, sqlx::postgres::PgArguments, "INT8");
