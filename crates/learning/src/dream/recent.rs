//! Recent sessions in a dream's prompt: their names, and the user's words at their beginning and end.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use memory::quoting;
use session::home::SessionFile;

use super::sources::{DreamSources, SessionMessage, counted};
use crate::extract::turn_text::Speaker;
use crate::saver::Saver;

/// Number of sessions of which the user's words are shown.
const SHOWN: usize = 20;
/// Number of sessions that are named.
const NAMED: usize = 60;
/// Messages of the user that are shown of one: at its beginning, and at its end.
const FIRST: usize = 3;
const LAST: usize = 9;
/// Characters of each.
const EACH: usize = 400;

/// Text about these sessions, in about so many bytes. The user's words in it can be quoted in memories.
pub(super) fn recent_text(sources: &DreamSources, touched: &[SessionFile], saver: &Saver, room: usize) -> String {
    let mut text = String::new();
    let read = touched.iter().filter_map(|session| Some((session, sources.messages_of(session)?)));
    for (at, (session, messages)) in read.enumerate() {
        if at == NAMED || text.len() >= room {
            text.push_str("- and others; Sessions lists them\n");
            break;
        }
        let _ = writeln!(text, "- session {} ({})", session.id, counted(messages.len()));
        if at < SHOWN {
            shown(&mut text, session, &messages, saver, sources.zone());
        }
    }
    text
}

fn shown(text: &mut String, session: &SessionFile, messages: &[SessionMessage], saver: &Saver, zone: &TimeZone) {
    let own: Vec<&SessionMessage> = messages.iter().filter(|message| message.speaker == Speaker::User).collect();
    let cut = own.len().saturating_sub(LAST).max(FIRST.min(own.len()));
    for (at, message) in own.iter().enumerate() {
        if (FIRST..cut).contains(&at) {
            if at == FIRST {
                text.push_str("  […]\n");
            }
            continue;
        }
        saver.hear(&message.words, message.at, &session.id, message.id.as_deref());
        let _ = writeln!(text, "  > {}", line(message, zone));
    }
}

/// A message of the user on one line, with its date.
fn line(message: &SessionMessage, zone: &TimeZone) -> String {
    let said = message.words.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = said.chars().take(EACH).collect();
    let more = if cut.len() < said.len() { "…" } else { "" };
    let date = message.at.map(|at| at.to_zoned(zone.clone()).strftime("%A, %Y-%m-%d: ").to_string());
    format!("{}{}{more}", date.unwrap_or_default(), quoting::quoted(&cut))
}
