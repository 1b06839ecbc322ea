//! Commands in the text of a skill: `` !`command` `` at the start of a line or after a blank, and fences that open with
//! ```` ```! ````. It finds them and runs nothing.

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segment<'t> {
    /// Text.
    Text(&'t str),
    /// A command.
    Command(&'t str),
}

const FENCE: &str = "```";
const SHELL_FENCE: &str = "```!";
const INLINE: &str = "!`";

/// True if a text has commands in it.
pub(crate) fn has_shell_lines(text: &str) -> bool {
    segments(text).iter().any(|segment| matches!(segment, Segment::Command(_)))
}

/// The parts of a text, in order; together with the marks of commands they are all of it.
pub(crate) fn segments(text: &str) -> Vec<Segment<'_>> {
    let (mut found, mut kept, mut at) = (Vec::new(), 0, 0);
    while let Some(next) = text[at..].find(['!', '`']).map(|offset| at + offset) {
        let Some((command, end)) = command_at(text, next) else {
            // A run of backticks is passed as one, so that no mark begins within it.
            let run = text[next..].bytes().take_while(|byte| *byte == b'`').count();
            at = next + run.max(1);
            continue;
        };
        if kept < next {
            found.push(Segment::Text(&text[kept..next]));
        }
        found.push(Segment::Command(command));
        (kept, at) = (end, end);
    }
    if kept < text.len() || found.is_empty() {
        found.push(Segment::Text(&text[kept..]));
    }
    found
}

/// The command that begins at a place, and where it ends.
fn command_at(text: &str, at: usize) -> Option<(&str, usize)> {
    let (before, rest) = text.split_at(at);
    if let Some(inside) = rest.strip_prefix(SHELL_FENCE) {
        let starts_line = before.rsplit('\n').next().unwrap_or_default().trim().is_empty();
        let end = inside.find(FENCE).filter(|_| starts_line)?;
        let command = inside[..end].trim();
        return (!command.is_empty()).then_some((command, at + SHELL_FENCE.len() + end + FENCE.len()));
    }
    let inside = rest.strip_prefix(INLINE)?;
    let stands_alone = before.chars().next_back().is_none_or(char::is_whitespace);
    let end = inside.find('`').filter(|end| stands_alone && *end > 0)?;
    let command = inside[..end].trim();
    (!command.is_empty()).then_some((command, at + INLINE.len() + end + 1))
}
