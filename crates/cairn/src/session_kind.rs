//! The kind of a session: a person's, a teammate's, or a subagent's.
//!
//! The beginning of its file says it: our own teammates write it first, Claude Code's on every line. It is a mark for
//! those who look at a list, and proves nothing.

use std::path::Path;

use mail::name_of;
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::Purpose;
use transcript::line::{Body, Line};

use crate::styled_text::one_line;

/// Name of the first line in a teammate's session.
const TEAMMATE: &str = "teammate";
/// So many lines are looked at.
const LINES: usize = 50;
/// Beginning of a message from a lead.
const MESSAGE: &str = "<agent-message";
/// The most characters of the first message that are shown.
const TITLE: usize = 70;

/// The kind of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionKind {
    /// Somebody talks, or talked, to it.
    Person,
    /// It works for a lead.
    Teammate {
        /// Its name.
        name: String,
        /// Its team, which has the lead's session in its name.
        team: String,
    },
    /// Another session sent it out.
    Agent,
}

/// The fields of a line that tell the kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionMark {
    team_name: Option<String>,
    agent_name: Option<String>,
    meta: Option<Value>,
}

impl SessionKind {
    /// The first line of a teammate's session.
    pub(crate) fn note(team: &str, name: &str) -> Value {
        json!({"kind": TEAMMATE, "team": team, "name": name})
    }

    /// Its mark in lists; none for a person's.
    pub(crate) fn mark(&self) -> Option<String> {
        match self {
            Self::Person => None,
            Self::Teammate { name, .. } => Some(format!("teammate {}", name_of(name))),
            Self::Agent => Some("agent".to_owned()),
        }
    }

    /// The same for programs: what it is, and a teammate's name and team.
    pub(crate) fn parts(&self) -> (&'static str, Option<&str>, Option<&str>) {
        match self {
            Self::Person => ("session", None, None),
            Self::Teammate { name, team } => (TEAMMATE, Some(name), Some(team)),
            Self::Agent => ("agent", None, None),
        }
    }
}

/// The kind of a session, and its first message.
pub(crate) fn look(path: &Path) -> (SessionKind, String) {
    let mut whose = SessionKind::Person;
    let Ok(mut lines) = files::Lines::open(path) else { return (whose, String::new()) };
    // An agent's talk may also stand in the session of a person.
    let mut agents = None;
    for _ in 0..LINES {
        let Ok(Some(line)) = lines.next() else { break };
        let files::Text::Whole(text) = line.text else { continue };
        if whose == SessionKind::Person {
            whose = teammate(text).unwrap_or(SessionKind::Person);
        }
        let Ok(line) = Line::parse(text) else { continue };
        match whose {
            SessionKind::Person if line.sidechain => {
                agents = agents.or_else(|| first_message(&line, &SessionKind::Agent));
            }
            _ => {
                if let Some(title) = first_message(&line, &whose) {
                    return (whose, one_line(&title, TITLE));
                }
            }
        }
    }
    match agents {
        Some(title) => (SessionKind::Agent, one_line(&title, TITLE)),
        None => (whose, String::new()),
    }
}

fn teammate(line: &[u8]) -> Option<SessionKind> {
    let SessionMark { team_name, agent_name, meta } = serde_json::from_slice(line).ok()?;
    let meta = meta.filter(|meta| meta["kind"] == TEAMMATE).unwrap_or_default();
    let text = |key: &str| meta[key].as_str().map(str::to_owned);
    let (team, name) = (text("team").or(team_name)?, text("name").or(agent_name)?);
    Some(SessionKind::Teammate { name, team })
}

/// The first message in a line. A teammate gets it from the lead, in a frame.
fn first_message(line: &Line, whose: &SessionKind) -> Option<String> {
    let Body::User { blocks, .. } = &line.body else { return None };
    let framed = || blocks.iter().find_map(transcript::Block::as_text).filter(|text| text.starts_with(MESSAGE));
    match (whose, line.injected()) {
        (SessionKind::Teammate { .. }, Some(Purpose::Message) | None) => {
            let framed = framed().map(|text| text.lines().nth(1).unwrap_or_default().to_owned());
            framed.or_else(|| line.typed().into_iter().next())
        }
        (_, Some(_)) => None,
        (SessionKind::Person | SessionKind::Agent, None) => line.typed().into_iter().next(),
    }
}
