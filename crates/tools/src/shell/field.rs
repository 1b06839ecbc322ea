//! What a word becomes when the shell is done with it: one field or several, each known, partly known or unknown.
//!
//! Values are followed as far as that is plain: variables that were set once in plain sight, braces, the home. All else
//! is unknown, with what is known of its beginning and of where it comes from.

use super::word::Piece;

/// One argument of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    /// Exactly this.
    Known(String),
    /// The home, and this behind it.
    Home(String),
    /// Whatever files match, or the pattern itself.
    Glob(String),
    /// Something else.
    Unknown {
        /// How it begins.
        prefix: String,
        /// Whether it may be no field or several.
        count: Count,
        /// Where it comes from.
        source: Source,
    },
}

/// How many fields an unknown word becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// One.
    One,
    /// None, one or several.
    Any,
}

/// Where an unknown text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// From anywhere.
    Anywhere,
    /// It is a number.
    Number,
    /// It is the id of a commit, or of several: letters and digits.
    Commit,
    /// Names of files below these places, as a listing of them prints them.
    Listing(Vec<Field>),
}

/// More fields than this from one word are not followed.
pub(super) const MOST: usize = 64;

/// What the name of a process substitution looks like.
pub(crate) const PROCESS: &str = "/dev/fd/63";

impl Field {
    /// The text, where it is known.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is surely one argument: a pattern may become several files, and what is not quoted may be taken apart.
    pub(crate) fn is_one(&self) -> bool {
        matches!(self, Self::Known(_) | Self::Home(_) | Self::Unknown { count: Count::One, .. })
    }

    /// Whether a program may take it for an option.
    pub(crate) fn may_be_option(&self) -> bool {
        match self {
            Self::Known(text) => text.len() > 1 && text.starts_with('-'),
            Self::Home(_) => false,
            Self::Glob(pattern) => pattern.starts_with(['-', '*', '?', '[']),
            Self::Unknown { source: Source::Number, .. } => false,
            Self::Unknown { prefix, source: Source::Commit, .. } => prefix.starts_with('-'),
            Self::Unknown { prefix, count: Count::One, .. } => prefix.is_empty() || prefix.starts_with('-'),
            Self::Unknown { count: Count::Any, .. } => true,
        }
    }

    /// What is surely its beginning.
    pub(crate) fn beginning(&self) -> &str {
        match self {
            Self::Known(text) => text,
            Self::Home(_) => "/",
            Self::Glob(pattern) => &pattern[..pattern.find(['*', '?', '[', '\\']).unwrap_or(pattern.len())],
            Self::Unknown { prefix, .. } => prefix,
        }
    }

    pub(crate) fn unknown(count: Count, source: Source) -> Self {
        Self::Unknown { prefix: String::new(), count, source }
    }
}

/// What a variable or a substitution is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// This.
    Field(Field),
    /// Anything of this kind.
    Unknown(Source),
}

/// The fields a word becomes. `value` says what a variable or a substitution is worth.
pub(super) fn fields(pieces: &[Piece], value: &mut dyn FnMut(&Piece) -> Value) -> Vec<Field> {
    match braces(pieces) {
        Some(words) => words.iter().map(|word| field(word, value)).collect(),
        None => vec![field(pieces, value)],
    }
}

fn field(pieces: &[Piece], value: &mut dyn FnMut(&Piece) -> Value) -> Field {
    // A bracket by itself matches nothing.
    if pieces == [Piece::Bare("[".into())] {
        return Field::Known("[".into());
    }
    let mut made = Making::default();
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Quoted(text) => made.literal(text),
            Piece::Bare(text) => {
                let rest = if index == 0 { tilde(text, pieces.len() == 1, &mut made) } else { text.as_str() };
                made.bare(rest);
                if rest.contains("=~") || rest.contains(":~") {
                    made.blur(Count::One, Source::Anywhere);
                }
            }
            Piece::Arithmetic { .. } => made.blur(Count::One, Source::Number),
            Piece::Process { .. } => made.literal(PROCESS),
            Piece::Variable { quoted, .. } | Piece::Command { quoted, .. } => {
                let several = matches!(piece, Piece::Variable { name, .. } if name == "@");
                let count = if *quoted && !several { Count::One } else { Count::Any };
                match value(piece) {
                    Value::Field(value) => made.put(&value, count),
                    Value::Unknown(source) => made.blur(count, source),
                }
            }
        }
    }
    made.done()
}

/// Takes a leading `~` off, where it is the home.
fn tilde<'a>(text: &'a str, alone: bool, made: &mut Making) -> &'a str {
    match text.strip_prefix('~') {
        Some(rest) if rest.starts_with('/') || (rest.is_empty() && alone) => {
            made.home = true;
            rest
        }
        Some(rest) => {
            made.blur(Count::One, Source::Anywhere);
            rest
        }
        None => text,
    }
}

/// A field that is being put together.
#[derive(Debug, Clone, Default)]
struct Making {
    text: String,
    home: bool,
    /// The text as a pattern, once a sign of one was found.
    pattern: Option<String>,
    /// From here on it is unknown.
    unknown: Option<(Count, Source)>,
}

impl Making {
    fn literal(&mut self, text: &str) {
        if self.unknown.is_some() {
            return self.follow(text);
        }
        if let Some(pattern) = &mut self.pattern {
            pattern.push_str(&escaped(text));
        }
        self.text.push_str(text);
    }

    fn bare(&mut self, text: &str) {
        if self.unknown.is_some() && !text.is_empty() {
            return self.follow(text);
        }
        if text.contains(['*', '?', '[']) {
            self.pattern.get_or_insert_with(|| escaped(&self.text)).push_str(text);
        } else if let Some(pattern) = &mut self.pattern {
            pattern.push_str(text);
        }
        self.text.push_str(text);
    }

    fn put(&mut self, value: &Field, count: Count) {
        let splits = |text: &str| {
            count == Count::Any && (text.is_empty() || text.contains([' ', '\t', '\n', '*', '?', '[', '\\']))
        };
        match value {
            Field::Known(text) if !splits(text) => self.literal(text),
            // A match of a pattern is a file: its name may hold anything, and be taken apart.
            Field::Glob(pattern) if self.unknown.is_none() && count == Count::One => {
                let before = self.pattern.clone().unwrap_or_else(|| escaped(&self.text));
                self.pattern = Some(before + pattern);
                self.text.push_str(pattern);
            }
            Field::Home(rest) if self.text.is_empty() && self.unknown.is_none() && self.pattern.is_none() => {
                self.home = true;
                self.text.push_str(rest);
            }
            Field::Glob(_) => self.blur(count, Source::Listing(vec![value.clone()])),
            Field::Unknown { prefix, source, .. } => {
                if !splits(prefix) || prefix.is_empty() {
                    self.literal(prefix);
                }
                self.blur(count, source.clone());
            }
            _ => self.blur(count, Source::Anywhere),
        }
    }

    /// Text behind what is not known. A commit with a range or a step behind it names commits still, and so does that
    /// text alone, should there be no commit.
    fn follow(&mut self, text: &str) {
        let is_commit = matches!(self.unknown, Some((_, Source::Commit)));
        let names = text.starts_with(['^', '~']) || text.starts_with("..");
        if !(is_commit && names && is_revision(text)) {
            self.blur(Count::One, Source::Anywhere);
        }
    }

    /// What follows is not known.
    fn blur(&mut self, count: Count, source: Source) {
        let first = self.unknown.is_none() && self.text.is_empty() && !self.home;
        // The other end of a range.
        let range = self.unknown.is_none() && !self.home && self.text.ends_with("..") && is_revision(&self.text);
        let source = match source {
            source if first => source,
            Source::Commit if range => Source::Commit,
            source => mixed(&source),
        };
        let count = match self.unknown {
            Some((Count::Any, _)) => Count::Any,
            _ => count,
        };
        self.unknown = Some((count, source));
    }

    fn done(self) -> Field {
        match (self.unknown, self.home, self.pattern) {
            (Some((count, source)), false, pattern) => {
                // What a pattern stands for is not known either.
                let prefix = if pattern.is_some() { String::new() } else { self.text };
                Field::Unknown { prefix, count, source }
            }
            (Some((count, _)), true, _) => Field::Unknown { prefix: "/".into(), count, source: Source::Anywhere },
            (None, true, None) => Field::Home(self.text),
            (None, true, Some(_)) => Field::Unknown { prefix: "/".into(), count: Count::Any, source: Source::Anywhere },
            (None, false, Some(pattern)) => Field::Glob(pattern),
            (None, false, None) => Field::Known(self.text),
        }
    }
}

/// A text that is only a part of a field: a number stays one only by itself, and so does a name.
fn mixed(source: &Source) -> Source {
    match source {
        Source::Number => Source::Number,
        _ => Source::Anywhere,
    }
}

/// Whether a text can stand in the name of commits, and is neither an option nor a path that leads out.
pub(super) fn is_revision(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._/-^~@".contains(letter);
    let leads_out = text == ".." || text.contains("../") || text.contains("/..");
    text.chars().all(plain) && !text.starts_with(['-', '/']) && !leads_out
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

/// The words that braces make of one, where they are plain: one group of plain members. None: there are no braces.
/// Braces that are not plain become something unknown.
fn braces(pieces: &[Piece]) -> Option<Vec<Vec<Piece>>> {
    let opens = |piece: &Piece| matches!(piece, Piece::Bare(text) if text.contains('{'));
    let at = pieces.iter().position(opens)?;
    let closes = pieces[at..].iter().any(|piece| matches!(piece, Piece::Bare(text) if text.contains('}')));
    let divides = pieces[at..]
        .iter()
        .any(|piece| matches!(piece, Piece::Bare(text) if text.contains(',') || text.contains("..")));
    if !closes || !divides {
        return None;
    }
    let anything = Piece::Command { text: String::new(), quoted: false };
    let Piece::Bare(text) = &pieces[at] else { return None };
    let (before, rest) = text.split_once('{')?;
    let members = rest.split_once('}').and_then(|(inside, after)| {
        let plain = !inside.contains(['{', '$']) && !after.contains(['{', '}']);
        let others = pieces[at + 1..].iter().any(opens);
        (plain && !others).then(|| (members(inside), after))
    });
    let Some((Some(members), after)) = members else {
        // Something, and what stands before it.
        let mut word = pieces[..at].to_vec();
        word.push(Piece::Bare(before.to_owned()));
        word.push(anything);
        return Some(vec![word]);
    };
    let words = members.into_iter().map(|member| {
        let mut word = pieces[..at].to_vec();
        word.push(Piece::Bare(format!("{before}{member}{after}")));
        word.extend_from_slice(&pieces[at + 1..]);
        word
    });
    Some(words.collect())
}

fn members(inside: &str) -> Option<Vec<String>> {
    if inside.contains(',') {
        let members: Vec<String> = inside.split(',').map(str::to_owned).collect();
        return (members.len() <= MOST).then_some(members);
    }
    let (from, to) = inside.split_once("..")?;
    let number = |text: &str| (text.len() < 6 && !text.starts_with('0')).then(|| text.parse::<i64>().ok()).flatten();
    let (from, to) = (number(from)?, number(to)?);
    ((to - from).unsigned_abs() < MOST as u64).then(|| {
        let (least, most) = (from.min(to), from.max(to));
        (least..=most).map(|number| number.to_string()).collect()
    })
}
