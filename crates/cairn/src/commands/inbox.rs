//! `cairn inbox`: what waits for agents, and what they have lately heard.

use clap::Args;
use mail::mailbox::{Mailbox, Message, names};
use mail::{in_words, name_of};
use serde_json::{Value, json};

use super::send::teams;
use crate::exit::Code;
use crate::message_socket::INBOX;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{bold, cyan, dim, one_line};

/// List messages between agents: those that wait, and the last that were delivered.
///
/// The mailboxes of all teams, and those of this project's sessions. Looking changes nothing.
#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    /// Only those for one recipient.
    name: Option<String>,

    /// One JSON array.
    #[arg(long)]
    json: bool,
}

/// A message, and for whom it is.
struct InboxRow {
    to: String,
    team: Option<String>,
    message: Message,
    delivered: bool,
}

/// Prints them.
pub(crate) fn run(args: &InboxArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let mut rows = Vec::new();
    for team in teams(&place) {
        for name in names(&team.inboxes())? {
            add(&mut rows, Mailbox::of(&team.inboxes(), &name), &name, Some(team.name()));
        }
    }
    for session in place.home.sessions(&place.directory)? {
        let folder = session::folder_of(&session.path);
        if folder.join(format!("{INBOX}.json")).is_file() {
            let id = session.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            add(&mut rows, Mailbox::of(&folder, INBOX), &id, None);
        }
    }
    if let Some(name) = &args.name {
        rows.retain(|row| row.to == *name || row.team.is_none() && row.to.starts_with(name.as_str()));
    }
    if args.json {
        data!("{}", rows.iter().map(object).collect::<Value>())?;
        return Ok(Code::Success);
    }
    if rows.is_empty() {
        talk!("No messages.");
    }
    for InboxRow { to, team, message, delivered } in &rows {
        let state = if *delivered { dim("heard") } else { cyan("waits") };
        let team = team.as_ref().map(|team| format!("@{team}")).unwrap_or_default();
        let (from, time) = (name_of(&message.from), one_line(&message.timestamp, 40));
        data!([bold(&from), dim(" → "), bold(to), dim(&team), "  ", dim(&time), "  ", state])?;
        data!(["  ", one_line(&in_words(message), 200)])?;
    }
    Ok(Code::Success)
}

fn add(rows: &mut Vec<InboxRow>, mailbox: Result<Mailbox, mail::mailbox::MailError>, to: &str, team: Option<&str>) {
    match mailbox.and_then(|mailbox| mailbox.all()) {
        Ok(all) => rows.extend(all.into_iter().map(|(message, delivered)| InboxRow {
            to: to.to_owned(),
            team: team.map(str::to_owned),
            message,
            delivered,
        })),
        Err(error) => crate::out::warn(&error.to_string()),
    }
}

fn object(row: &InboxRow) -> Value {
    let Message { id, from, text, summary, timestamp } = &row.message;
    json!({
        "id": id, "to": row.to, "team": row.team, "from": from, "text": text, "summary": summary,
        "timestamp": timestamp, "read": row.delivered,
    })
}
