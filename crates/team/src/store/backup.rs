//! A backup: all tables as lines of JSON in one file, which either database can read back.

use std::io::{BufRead, Write};

use serde_json::{Value as Json, json};

use super::rows::{DatabaseRow, Value};
use super::{Store, Time, audit_log};
use crate::error::Error;

/// A table: its name, its columns, and the statements that read and write it.
struct Table {
    name: &'static str,
    read: &'static str,
    write: &'static str,
    /// The columns that hold numbers, so that an empty value keeps its type.
    numbers: &'static [usize],
}

/// A table's two statements, from its columns and their order.
macro_rules! table {
    ($name:literal by $order:literal, $numbers:expr, $columns:literal = $values:literal) => {
        Table {
            name: $name,
            read: concat!("SELECT ", $columns, " FROM ", $name, " ORDER BY ", $order),
            write: concat!("INSERT INTO ", $name, " (", $columns, ") VALUES (", $values, ")"),
            numbers: &$numbers,
        }
    };
}

/// All tables, in the order in which they can be written. Visits are left out: everybody signs in again.
const TABLES: [Table; 8] = [
    table!("members" by "id", [3, 4],
        "id, name, subject, is_admin, created" = "$1, $2, $3, $4, $5"),
    table!("tokens" by "id", [4, 5],
        "id, member, hash, label, created, expires" = "$1, $2, $3, $4, $5, $6"),
    table!("repositories" by "name", [1, 3],
        "name, version, checksum, modified" = "$1, $2, $3, $4"),
    table!("rights" by "repository, member", [],
        "repository, member, level" = "$1, $2, $3"),
    table!("entries" by "repository, key", [5, 7],
        "repository, key, folded, text, checksum, version, author, at" = "$1, $2, $3, $4, $5, $6, $7, $8"),
    table!("history" by "repository, key, version", [2, 6, 8],
        "repository, key, version, text, checksum, author, at, base, put_back" = "$1, $2, $3, $4, $5, $6, $7, $8, $9"),
    table!("invitations" by "id", [4, 5, 6],
        "id, hash, repository, level, is_admin, created, expires, used_by" = "$1, $2, $3, $4, $5, $6, $7, $8"),
    table!("audit" by "id", [1],
        "id, at, who, action, repository, detail" = "$1, $2, $3, $4, $5, $6"),
];

/// Number of columns of the history.
const HISTORY_COLUMNS: usize = 9;
/// The first line of a backup.
const FORMAT: &str = "cairn team backup 1";

impl Store {
    /// Writes all tables, as of one moment.
    pub async fn back_up(&self, out: &mut (dyn Write + Send)) -> Result<(), Error> {
        let mut snapshot = self.database.snapshot().await?;
        line(out, &json!({"format": FORMAT}))?;
        let mut lines = 0_u64;
        for table in &TABLES {
            for row in snapshot.rows(table.read, Vec::new()).await? {
                line(out, &json!([table.name, values(row)]))?;
                lines += 1;
            }
        }
        line(out, &json!({"end": lines}))
    }

    /// Reads a backup into an empty database. Nothing is written unless the backup is complete.
    pub async fn restore(&self, backup: &mut (dyn BufRead + Send), now: Time) -> Result<(), Error> {
        let bad = |why: &str| Error::Schema(format!("the backup: {why}"));
        let mut transaction = self.database.begin().await?;
        transaction.lock("cairn team: members").await?;
        let members = transaction.row("SELECT COUNT(*) FROM members", Vec::new()).await?;
        if members.map_or(Ok(0), |row| row.number(0))? > 0 {
            return Err(Error::Invalid(
                "a backup can only be restored into an empty database, and this one has members".to_owned(),
            ));
        }
        transaction.run("DELETE FROM invitations", Vec::new()).await?;
        transaction.run("DELETE FROM audit", Vec::new()).await?;
        let (mut lines, mut ended) = (0_u64, false);
        for (number, text) in backup.lines().enumerate() {
            let text = text.map_err(|error| bad(&error.to_string()))?;
            let json: Json = serde_json::from_str(&text).map_err(|_| bad(&format!("line {} is cut", number + 1)))?;
            match &json {
                Json::Object(first) if number == 0 => {
                    if first.get("format").and_then(Json::as_str) != Some(FORMAT) {
                        return Err(bad("it has another format"));
                    }
                }
                Json::Object(last) => ended = last.get("end").and_then(Json::as_u64) == Some(lines),
                Json::Array(row) => {
                    let name = row.first().and_then(Json::as_str).unwrap_or_default();
                    let table = TABLES.iter().find(|table| table.name == name);
                    let table = table.ok_or_else(|| bad(&format!("it has a table {name}")))?;
                    let mut row = row.get(1).and_then(Json::as_array).cloned().unwrap_or_default();
                    // Older backups have fewer columns of the history.
                    if name == "history" {
                        row.resize(HISTORY_COLUMNS, Json::Null);
                    }
                    let values = row.into_iter().enumerate().map(|(at, value)| from_json(value, table, at));
                    transaction.run(table.write, values.collect::<Result<_, _>>()?).await?;
                    lines += 1;
                }
                _ => return Err(bad(&format!("line {} is not of it", number + 1))),
            }
        }
        if !ended {
            return Err(bad("its end is missing"));
        }
        audit_log::note(&mut transaction, "the server", audit_log::Action::RestoredBackup, None, "", now).await?;
        transaction.commit().await
    }
}

fn values(row: DatabaseRow) -> Vec<Json> {
    let json = |value| match value {
        Value::Text(text) => text.into(),
        Value::Number(number) => number.into(),
    };
    row.values().into_iter().map(json).collect()
}

fn from_json(value: Json, table: &Table, at: usize) -> Result<Value, Error> {
    match value {
        Json::String(text) => Ok(text.into()),
        Json::Null if table.numbers.contains(&at) => Ok(Value::Number(None)),
        Json::Null => Ok(Value::Text(None)),
        other => other
            .as_i64()
            .map(Value::from)
            .ok_or_else(|| Error::Schema(format!("the backup: {} has the value {other}", table.name))),
    }
}

fn line(out: &mut (dyn Write + Send), json: &Json) -> Result<(), Error> {
    writeln!(out, "{json}").map_err(|error| Error::Database(sqlx::Error::Io(error)))
}
