//! The tables, and their migrations.

use super::rows::Database;
use crate::error::Error;

/// The migrations, each from one version of the tables to the next. One that was released is never changed.
const STEPS: [&str; 4] = [
    include_str!("steps/1_tables.sql"),
    include_str!("steps/2_used_tokens.sql"),
    include_str!("steps/3_base_of_history.sql"),
    include_str!("steps/4_put_back.sql"),
];

/// Brings the tables up to date. If several servers start together, one does it, and the others wait and find it done.
pub(super) async fn migrate(database: &Database) -> Result<(), Error> {
    let mut transaction = database.begin().await?;
    transaction.lock("cairn team: tables").await?;
    transaction.run("CREATE TABLE IF NOT EXISTS steps (step BIGINT PRIMARY KEY)", Vec::new()).await?;
    let done = transaction.row("SELECT COUNT(*) FROM steps", Vec::new()).await?;
    let done = done.map_or(Ok(0), |row| row.number(0))? as usize;
    if done > STEPS.len() {
        return Err(Error::Schema(format!("its tables are at step {done}, this version knows {}", STEPS.len())));
    }
    for (step, statements) in STEPS.iter().enumerate().skip(done) {
        for statement in statements.split(';').filter(|statement| !statement.trim().is_empty()) {
            transaction.run(statement, Vec::new()).await?;
        }
        transaction.run("INSERT INTO steps (step) VALUES ($1)", vec![(step as i64).into()]).await?;
    }
    transaction.commit().await
}
