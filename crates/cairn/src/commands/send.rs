//! `cairn send`: a message to an agent at work.

use std::path::{Path, PathBuf};

use clap::Args;
use mail::mailbox::{Mailbox, Message};
use mail::{SOCKET, Team, socket};
use session::World;

use crate::exit::Code;
use crate::message_socket;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{bold, dim};

/// Send a message to an agent at work: a teammate by its name, a session by its id.
///
/// It is on disk when this command returns. The recipient reads it at its next round; if it is idle, it wakes up. A session asks
/// its user once whether you may write to it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SendArgs {
    /// A teammate (`scout`, or `scout@TEAM`), a session by the beginning of its id, or uds:PATH.
    #[arg(required_unless_present = "list")]
    to: Option<String>,

    /// The message.
    #[arg(required_unless_present = "list")]
    text: Option<String>,

    /// A few words that summarise it.
    #[arg(long)]
    summary: Option<String>,

    /// Only print who can be written to.
    #[arg(long, conflicts_with_all = ["to", "text"])]
    list: bool,
}

const EXAMPLES: &str = "\
Examples:
  cairn send --list                        who can be written to
  cairn send scout 'look at src/net too'   to a teammate
  cairn send 0199a8c2 'the API has moved'  to a session";

/// One who can be written to.
enum Recipient {
    Mate(Team, String),
    Session(String, PathBuf),
}

impl Recipient {
    fn name(&self) -> String {
        match self {
            Self::Mate(team, name) => format!("{name}@{}", team.name()),
            Self::Session(id, _) => id.clone(),
        }
    }

    /// True if `to` refers to this one.
    fn is(&self, to: &str) -> bool {
        match self {
            Self::Mate(_, name) => name == to || self.name() == to,
            Self::Session(id, _) => id.starts_with(to),
        }
    }
}

/// Sends it.
pub(crate) async fn run(args: &SendArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let all = recipients(&place);
    let (Some(to), Some(text)) = (&args.to, &args.text) else {
        for one in &all {
            let kind = if matches!(one, Recipient::Mate(..)) { "teammate" } else { "session" };
            data!([bold(&one.name()), "  ", dim(kind)])?;
        }
        if all.is_empty() {
            talk!("There is nobody to write to.");
        }
        return Ok(Code::Success);
    };
    let world = World::real();
    let message = Message::new(world.fresh_id().to_string(), "shell", text, world.now());
    let message = Message { summary: args.summary.clone(), ..message };
    if let Some(path) = to.strip_prefix(SOCKET) {
        socket::send(Path::new(path), &message).await?;
        return Ok(Code::Success);
    }
    let mut meant = all.iter().filter(|one| !to.is_empty() && one.is(to));
    let names: Vec<String> = all.iter().map(Recipient::name).collect();
    let known = if names.is_empty() {
        "nobody can be written to".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    match (meant.next(), meant.next()) {
        (None, _) => anyhow::bail!("{to:?} is not running; {known}"),
        (Some(one), Some(other)) => anyhow::bail!("{to:?} may be {} or {}: say which", one.name(), other.name()),
        (Some(Recipient::Mate(team, name)), None) => Mailbox::of(&team.inboxes(), name)?.send(&message)?,
        (Some(Recipient::Session(_, path)), None) => socket::send(path, &message).await?,
    }
    talk!("Sent.");
    Ok(Code::Success)
}

fn recipients(place: &ProgramPaths) -> Vec<Recipient> {
    let teams = teams(place).into_iter().filter(Team::is_led);
    let teammates = teams.flat_map(|team| {
        team.others().into_iter().map(move |name| Recipient::Mate(team.clone(), name)).collect::<Vec<_>>()
    });
    let sessions = message_socket::sessions(&message_socket::folder(place)).into_iter();
    teammates.chain(sessions.map(|(id, path)| Recipient::Session(id, path))).collect()
}

/// The teams there are, as their lead sees them.
pub(super) fn teams(place: &ProgramPaths) -> Vec<Team> {
    let folders = files::list(place.home.path().join("teams")).unwrap_or_default();
    let names = folders.iter().filter_map(|entry| entry.name.to_str());
    names.filter_map(|name| Team::of(place.home.path(), name, mail::mailbox::LEAD).ok()).collect()
}
