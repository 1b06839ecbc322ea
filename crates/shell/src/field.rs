//! Expansion of a word: one field or several, each known or not.
//!
//! Only the obvious is followed: variables that were set to one text, braces, the home directory. All else is unknown.

use crate::lexer::word::Piece;

/// One argument of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// Exactly this text, written as it is.
    Plain(String),
    /// This text, after variables and braces are expanded.
    Known(String),
    /// The home directory, followed by this.
    Home(String),
    /// The files that match this pattern, or the pattern itself.
    Glob(String),
    /// Unknown, with this beginning.
    Unknown(String),
}

/// Limit on the fields of one word; beyond it they are unknown.
const MOST: usize = 64;

/// Sample name of a process substitution.
pub const PROCESS: &str = "/dev/fd/63";

impl Field {
    /// The text, if it is known.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Plain(text) | Self::Known(text) => Some(text),
            _ => None,
        }
    }

    /// The text as far as it is known.
    pub fn beginning(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Known(text) | Self::Unknown(text) => text,
            Self::Home(_) => "~",
            Self::Glob(pattern) => &pattern[..pattern.find(['*', '?', '[', '\\']).unwrap_or(pattern.len())],
        }
    }

    /// A dash and something behind it.
    pub fn is_option(&self) -> bool {
        self.beginning().len() > 1 && self.beginning().starts_with('-')
    }

    /// A field of which nothing is known.
    pub fn unknown() -> Self {
        Self::Unknown(String::new())
    }
}

/// The fields of a word. `value` returns a variable's value.
pub(crate) fn fields(pieces: &[Piece], value: &dyn Fn(&str) -> Option<String>) -> Vec<Field> {
    match braces(pieces) {
        None => vec![field(pieces, value)],
        Some(words) => {
            let made = words.iter().map(|word| match field(word, value) {
                Field::Plain(text) => Field::Known(text),
                other => other,
            });
            // bash drops a member that is empty and not quoted.
            made.filter(|field| field.text() != Some("")).collect()
        }
    }
}

fn field(pieces: &[Piece], value: &dyn Fn(&str) -> Option<String>) -> Field {
    // A bracket by itself matches nothing.
    if pieces == [Piece::Bare("[".into())] {
        return Field::Plain("[".into());
    }
    let mut made = FieldBuilder::default();
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Quoted(text) => made.literal(text),
            Piece::Bare(text) => {
                let rest = if index == 0 { tilde(text, pieces.len() == 1, &mut made) } else { text.as_str() };
                made.bare(rest);
            }
            Piece::Process { .. } => {
                made.derived = true;
                made.literal(PROCESS);
            }
            Piece::Variable { name, plain: true, quoted, .. } => {
                made.derived = true;
                let splits =
                    |text: &str| !quoted && (text.is_empty() || text.contains([' ', '\t', '\n', '*', '?', '[', '\\']));
                match value(name).filter(|text| !splits(text)) {
                    Some(text) => made.literal(&text),
                    None if name == "HOME" && made.is_empty() => made.home = true,
                    None if name == "PWD" && made.is_empty() => made.literal("."),
                    None => made.unknown = true,
                }
            }
            Piece::Variable { .. } | Piece::Command { .. } | Piece::Arithmetic { .. } => made.unknown = true,
        }
    }
    made.done()
}

/// Removes a leading `~` that stands for the home directory.
fn tilde<'a>(text: &'a str, alone: bool, made: &mut FieldBuilder) -> &'a str {
    match text.strip_prefix('~') {
        Some(rest) if rest.starts_with('/') || (rest.is_empty() && alone) => {
            made.home = true;
            rest
        }
        Some(rest) => {
            made.unknown = true;
            rest
        }
        None => text,
    }
}

/// A field under construction.
#[derive(Debug, Clone, Default)]
struct FieldBuilder {
    text: String,
    home: bool,
    /// The text as a pattern, once it contains a pattern character.
    pattern: Option<String>,
    /// True if it differs from how it was written.
    derived: bool,
    /// True if the rest is unknown.
    unknown: bool,
}

impl FieldBuilder {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && !self.home && !self.unknown && self.pattern.is_none()
    }

    fn literal(&mut self, text: &str) {
        if self.unknown {
            return;
        }
        if let Some(pattern) = &mut self.pattern {
            pattern.push_str(&escaped(text));
        }
        self.text.push_str(text);
    }

    fn bare(&mut self, text: &str) {
        // Behind these a `~` may be the home as well.
        self.unknown |= text.contains("=~") || text.contains(":~");
        if self.unknown {
            return;
        }
        if text.contains(['*', '?', '[']) {
            self.pattern.get_or_insert_with(|| escaped(&self.text)).push_str(text);
        } else if let Some(pattern) = &mut self.pattern {
            pattern.push_str(text);
        }
        self.text.push_str(text);
    }

    fn done(self) -> Field {
        match (self.unknown, self.home, self.pattern) {
            (true, false, None) => Field::Unknown(self.text),
            (true, true, _) | (_, true, Some(_)) => Field::Unknown("/".into()),
            (true, false, Some(_)) => Field::unknown(),
            (false, true, None) => Field::Home(self.text),
            (false, false, Some(pattern)) => Field::Glob(pattern),
            (false, false, None) if self.derived => Field::Known(self.text),
            (false, false, None) => Field::Plain(self.text),
        }
    }
}

fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// The words that braces expand to, if there is one group of plain members; `None` if there are no braces. Other braces
/// become an unknown field.
fn braces(pieces: &[Piece]) -> Option<Vec<Vec<Piece>>> {
    let opens = |piece: &Piece| matches!(piece, Piece::Bare(text) if text.contains('{'));
    let at = pieces.iter().position(opens)?;
    let bare = |sign: &str| pieces[at..].iter().any(|piece| matches!(piece, Piece::Bare(text) if text.contains(sign)));
    if !bare("}") || !(bare(",") || bare("..")) {
        return None;
    }
    let Piece::Bare(text) = &pieces[at] else { return None };
    let (before, rest) = text.split_once('{')?;
    let members = rest.split_once('}').and_then(|(inside, after)| {
        let plain = !inside.contains(['{', '$']) && !after.contains(['{', '}']);
        let others = pieces[at + 1..].iter().any(opens);
        (plain && !others).then(|| members(inside).map(|members| (members, after))).flatten()
    });
    let word = |made: String| {
        let mut word = pieces[..at].to_vec();
        word.push(Piece::Bare(made));
        word
    };
    let Some((members, after)) = members else {
        // Something, and what stands before it.
        let mut word = word(before.to_owned());
        word.push(Piece::Command { text: String::new(), quoted: false });
        return Some(vec![word]);
    };
    let words = members.into_iter().map(|member| {
        let mut word = word(format!("{before}{member}{after}"));
        word.extend_from_slice(&pieces[at + 1..]);
        word
    });
    Some(words.collect())
}

fn members(inside: &str) -> Option<Vec<String>> {
    let members: Vec<String> = inside.split(',').map(str::to_owned).collect();
    (inside.contains(',') && members.len() <= MOST).then_some(members)
}
