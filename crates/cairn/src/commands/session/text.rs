//! Prints a session's conversation for people.

use transcript::block::Kind;
use transcript::{Log, Role};

use crate::out::data;
use crate::styled_text::{bold, cyan, dim, green, one_line, red};

/// Prints the conversation, or the messages as the model sees them.
pub(super) fn show(log: &Log, as_json: bool) -> anyhow::Result<()> {
    let messages = log.view().messages();
    if as_json {
        data!("{}", serde_json::to_string(&messages)?)?;
        return Ok(());
    }
    for message in &messages {
        for block in &message.blocks {
            match (message.role, block.kind()) {
                (Role::User, Kind::Text) => {
                    let text = block.as_text().unwrap_or_default();
                    let (first, rest) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
                    data!([cyan("› "), first])?;
                    data!("{rest}{}", if rest.is_empty() { "" } else { "\n" })?;
                }
                (Role::Assistant, Kind::Text) => data!("{}\n", block.as_text().unwrap_or_default().trim())?,
                (_, Kind::ToolUse { name, .. }) => {
                    let input = block.input().unwrap_or_default().to_string();
                    data!([bold(name), " ", dim(&one_line(&input, 100))])?;
                }
                (_, Kind::ToolResult { failed, .. }) => {
                    let text = block.result_text();
                    let mark = if *failed { red("  ✗ ") } else { green("  ✓ ") };
                    let rest = text.lines().count().saturating_sub(1);
                    let more = if rest > 0 { format!(" (+{rest} lines)") } else { String::new() };
                    let first = one_line(text.lines().next().unwrap_or_default(), 100);
                    data!([mark, dim(&format!("{first}{more}"))])?;
                    data!("")?;
                }
                (_, Kind::Thinking) => data!([dim("(thinking)")])?,
                (_, kind) => data!([dim(&format!("({kind:?})"))])?,
            }
        }
    }
    Ok(())
}
