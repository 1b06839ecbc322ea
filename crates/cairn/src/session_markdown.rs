//! A session as Markdown.

use transcript::block::Kind;
use transcript::{Log, Role};

use crate::styled_text::one_line;

/// The conversation as Markdown, for people: without what only the model was told.
pub(crate) fn markdown(log: &Log) -> String {
    let mut out = String::new();
    for message in log.view().messages() {
        for block in &message.blocks {
            let text = || block.as_text().unwrap_or_default().trim().to_owned();
            let part = match (message.role, block.kind()) {
                (Role::User, Kind::Text) => match without_reminders(&text()).trim() {
                    "" => String::new(),
                    said => format!("## User\n\n{said}\n\n"),
                },
                (Role::Assistant, Kind::Text) => format!("## Assistant\n\n{}\n\n", text()),
                (_, Kind::ToolUse { name, .. }) => {
                    format!("**{name}** `{}`\n\n", one_line(&block.input().unwrap_or_default().to_string(), 200))
                }
                (_, Kind::ToolResult { .. }) => {
                    format!("~~~~text\n{}\n~~~~\n\n", without_reminders(&block.result_text()).trim_end())
                }
                _ => String::new(),
            };
            out.push_str(&part);
        }
    }
    out
}

/// A text without the reminders that programs put into it. One that has no end, or stands within a line, was written by
/// somebody who talks about reminders.
fn without_reminders(text: &str) -> String {
    const OPEN: &str = "<system-reminder>";
    const CLOSE: &str = "</system-reminder>";
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) =
        rest.match_indices(OPEN).map(|(at, _)| at).find(|&at| rest[..at].is_empty() || rest[..at].ends_with('\n'))
        && let Some(end) = rest[at..].find(CLOSE)
    {
        out.push_str(&rest[..at]);
        rest = rest[at + end + CLOSE.len()..].trim_start_matches('\n');
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reminders_are_left_out_and_talk_about_them_is_not() {
        let reminder = "<system-reminder>\nToday is Monday.\n</system-reminder>";
        for (text, rest) in [
            (reminder.to_owned(), String::new()),
            (format!("one\n{reminder}\n{reminder}\ntwo"), "one\ntwo".to_owned()),
            (
                "what is a <system-reminder>x</system-reminder>?".to_owned(),
                "what is a <system-reminder>x</system-reminder>?".to_owned(),
            ),
            ("<system-reminder>\nno end".to_owned(), "<system-reminder>\nno end".to_owned()),
        ] {
            assert_eq!(without_reminders(&text), rest);
        }
    }
}
