//! Reading one word of a command: what it is made of, quote by quote.
//!
//! The same reader finds where a word ends and says what stands in it, so the two cannot disagree. It refuses whatever
//! it cannot read as bash surely does: `$[…]`, `$"…"`, `${ cmd; }`, backslashes in backquotes, a `\` before a newline in
//! the middle of a word, control characters. Refused means unknown; nothing is guessed.

use crate::lexer;

/// The reason a text is not understood.
pub(crate) type ParseRefusal = &'static str;

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text as it stands: between quotes, or escaped.
    Quoted(String),
    /// Text outside of quotes, in which `*`, `?`, `[`, `{` and `~` mean something.
    Bare(String),
    /// The value of a variable: `$x`, `${x}`, `${x%.rs}`.
    Variable {
        /// Its name, or the sign of a special one.
        name: String,
        /// True if the value is used unchanged.
        plain: bool,
        /// Words in the expansion: defaults, or patterns to compare with.
        words: Vec<Vec<Piece>>,
        /// True if the expansion may set the variable (`${x:=y}`).
        assigns: bool,
        quoted: bool,
    },
    /// The output of a command.
    Command { text: String, quoted: bool },
    /// The result of a calculation, with the pieces in it.
    Arithmetic { pieces: Vec<Piece> },
    /// A file that stands for what a command reads or prints.
    Process { text: String },
}

/// Position of the reader in the text.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    /// Number of substitutions around it.
    pub(crate) depth: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str, depth: usize) -> Self {
        Self { text, at: 0, depth }
    }

    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn starts_with(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    pub(crate) fn take(&mut self, text: &str) -> bool {
        let taken = self.starts_with(text);
        if taken {
            self.at += text.len();
        }
        taken
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads something nested one level deeper.
    pub(crate) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ParseRefusal>,
    ) -> Result<T, ParseRefusal> {
        if self.depth >= lexer::DEEPEST {
            return Err("too deeply nested");
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Everything up to a character, which is taken too.
    fn until(&mut self, end: char) -> Option<&'a str> {
        let length = self.rest().find(end)?;
        let found = &self.rest()[..length];
        self.at += length + end.len_utf8();
        Some(found)
    }
}

/// End of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordEnd {
    /// A blank or an operator, as in a command.
    AtBlank,
    /// This sign, as in `${x:-word}`.
    At(char),
    /// The end of the text.
    Never,
}

/// Reads one word of a command.
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Vec<Piece>, ParseRefusal> {
    pieces(cursor, WordEnd::AtBlank)
}

/// The pieces of a text that is one word as a whole.
pub(crate) fn whole(text: &str, depth: usize) -> Result<Vec<Piece>, ParseRefusal> {
    // A word cannot begin with these signs but here.
    let process = text.strip_prefix("<(").or_else(|| text.strip_prefix(">("));
    if let Some(text) = process.and_then(|rest| rest.strip_suffix(')')) {
        return Ok(vec![Piece::Process { text: text.to_owned() }]);
    }
    pieces(&mut Cursor::new(text, depth), WordEnd::Never)
}

/// The pieces of a here-document, in which quotes mean nothing.
pub(crate) fn document(text: &str, depth: usize) -> Result<Vec<Piece>, ParseRefusal> {
    let mut cursor = Cursor::new(text, depth);
    let mut found = Vec::new();
    inside_quotes(&mut cursor, None, &mut found)?;
    Ok(found)
}

fn pieces(cursor: &mut Cursor<'_>, ends: WordEnd) -> Result<Vec<Piece>, ParseRefusal> {
    let mut found = Vec::new();
    let mut bare = String::new();
    while let Some(next) = cursor.peek() {
        match ends {
            WordEnd::AtBlank if is_meta(next) => break,
            WordEnd::At(end) if next == end => break,
            _ => {}
        }
        let piece = match next {
            '\'' => {
                cursor.next();
                Piece::Quoted(cursor.until('\'').ok_or("a quote is not closed")?.to_owned())
            }
            '"' => {
                cursor.next();
                flush(&mut bare, &mut found);
                // Empty quotes make a word of their own.
                found.push(Piece::Quoted(String::new()));
                inside_quotes(cursor, Some('"'), &mut found)?;
                continue;
            }
            '\\' => {
                cursor.next();
                match cursor.next() {
                    None | Some('\n') => return Err("a line continuation in the middle of a word"),
                    Some(escaped) => Piece::Quoted(escaped.to_string()),
                }
            }
            '$' if cursor.starts_with("$'") => {
                cursor.at += 2;
                Piece::Quoted(ansi(cursor)?)
            }
            '$' if cursor.starts_with("$\"") => return Err("$\"…\" is translated"),
            '$' | '`' => match expansion(cursor, false)? {
                Some(piece) => piece,
                None => Piece::Quoted("$".into()),
            },
            other if other.is_control() && !matches!(other, '\t' | '\n') => return Err("a control character"),
            _ => {
                bare.push(next);
                cursor.next();
                continue;
            }
        };
        flush(&mut bare, &mut found);
        found.push(piece);
    }
    flush(&mut bare, &mut found);
    Ok(found)
}

fn flush(bare: &mut String, found: &mut Vec<Piece>) {
    if !bare.is_empty() {
        found.push(Piece::Bare(std::mem::take(bare)));
    }
}

/// Characters that end a word.
pub(crate) fn is_meta(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '|' | '&' | ';' | '(' | ')' | '<' | '>')
}

/// Reads text between double quotes, or a here-document where there is no closing quote.
fn inside_quotes(cursor: &mut Cursor<'_>, close: Option<char>, found: &mut Vec<Piece>) -> Result<(), ParseRefusal> {
    let mut text = String::new();
    loop {
        let Some(next) = cursor.peek() else {
            if close.is_some() {
                return Err("a quote is not closed");
            }
            break;
        };
        if Some(next) == close {
            cursor.next();
            break;
        }
        match next {
            '\\' => {
                cursor.next();
                match cursor.next() {
                    None => text.push('\\'),
                    Some('\n') => {}
                    Some(escaped @ ('$' | '`' | '\\')) => text.push(escaped),
                    Some('"') if close.is_some() => text.push('"'),
                    Some(other) => {
                        text.push('\\');
                        text.push(other);
                    }
                }
            }
            '$' | '`' => match expansion(cursor, true)? {
                Some(piece) => {
                    if !text.is_empty() {
                        found.push(Piece::Quoted(std::mem::take(&mut text)));
                    }
                    found.push(piece);
                }
                None => text.push('$'),
            },
            other if other.is_control() && !matches!(other, '\t' | '\n') => return Err("a control character"),
            other => {
                text.push(other);
                cursor.next();
            }
        }
    }
    if !text.is_empty() {
        found.push(Piece::Quoted(text));
    }
    Ok(())
}

/// Reads an expansion that begins with `$` or a backquote. `None` if the `$` is a plain character.
fn expansion(cursor: &mut Cursor<'_>, quoted: bool) -> Result<Option<Piece>, ParseRefusal> {
    if cursor.take("`") {
        let text = cursor.until('`').ok_or("a backquote is not closed")?;
        if text.contains('\\') || (quoted && text.contains('"')) {
            return Err("escapes in backquotes");
        }
        return Ok(Some(Piece::Command { text: text.to_owned(), quoted }));
    }
    if cursor.starts_with("$((") {
        return cursor.deeper(arithmetic).map(Some);
    }
    if cursor.take("$(") {
        let text = lexer::substitution(cursor)?;
        return Ok(Some(Piece::Command { text, quoted }));
    }
    if cursor.starts_with("$[") {
        return Err("the old arithmetic $[…]");
    }
    if cursor.take("${") {
        return cursor.deeper(|cursor| braced(cursor, quoted)).map(Some);
    }
    cursor.next();
    let plain = |name: String| Piece::Variable { name, plain: true, words: Vec::new(), assigns: false, quoted };
    match cursor.peek() {
        Some(sign @ ('@' | '*' | '#' | '?' | '-' | '$' | '!' | '0'..='9')) => {
            cursor.next();
            Ok(Some(plain(sign.to_string())))
        }
        _ => {
            let name = name(cursor);
            if !name.is_empty() {
                return Ok(Some(plain(name.to_owned())));
            }
            // A `$` before a blank, a quote or the end stands for itself; before anything else we do not say.
            match cursor.peek() {
                None
                | Some(
                    ' ' | '\t' | '\n' | '"' | '/' | ')' | '|' | '\\' | ',' | '.' | ':' | '=' | ']' | '}' | '%' | '+'
                    | '^' | '~' | ';',
                ) if quoted => Ok(None),
                None | Some(' ' | '\t' | '\n' | ';' | '|' | '&') if !quoted => Ok(None),
                _ => Err("a lone $"),
            }
        }
    }
}

fn name<'a>(cursor: &mut Cursor<'a>) -> &'a str {
    let rest = cursor.rest();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let length = match rest.chars().next() {
        Some(first) if first.is_ascii_digit() => 0,
        _ => rest.find(|letter| !is_name(letter)).unwrap_or(rest.len()),
    };
    cursor.at += length;
    &rest[..length]
}

/// Reads `${…}` behind its opening. Subscripts, indirection, substrings and `@` are refused: they calculate.
fn braced(cursor: &mut Cursor<'_>, quoted: bool) -> Result<Piece, ParseRefusal> {
    let length = cursor.starts_with("#") && !cursor.starts_with("#}");
    if length {
        cursor.next();
    }
    let mut found = name(cursor).to_owned();
    if found.is_empty() {
        let sign = cursor.next().ok_or("a brace is not closed")?;
        if !matches!(sign, '@' | '*' | '#' | '?' | '$' | '0'..='9') {
            return Err("an unknown form of ${…}");
        }
        found.push(sign);
    }
    let variable = |plain, words, assigns| Piece::Variable { name: found.clone(), plain, words, assigns, quoted };
    if cursor.take("}") {
        return Ok(variable(!length, Vec::new(), false));
    }
    if length {
        return Err("an unknown form of ${…}");
    }
    let mut assigns = false;
    let slashes = cursor.starts_with("/");
    if cursor.take(":") {
        match cursor.next() {
            Some('-' | '+' | '?') => {}
            Some('=') => assigns = true,
            // `${x:0:7}`: numbers calculate nothing.
            Some('0'..='9') => {
                let rest = cursor.rest();
                let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != ':').unwrap_or(rest.len());
                cursor.at += end;
                if !cursor.take("}") {
                    return Err("a computed substring");
                }
                return Ok(variable(false, Vec::new(), false));
            }
            _ => return Err("a computed substring"),
        }
    } else {
        match cursor.next() {
            Some('-' | '+' | '?') => {}
            Some('=') => assigns = true,
            Some('%') => drop(cursor.take("%")),
            Some('#') => drop(cursor.take("#")),
            Some('/') => drop(cursor.take("/")),
            Some('^') => drop(cursor.take("^")),
            Some(',') => drop(cursor.take(",")),
            _ => return Err("an unknown form of ${…}"),
        }
    }
    let mut words = vec![argument(cursor, quoted)?];
    // The pattern and what takes its place are read as one word: only what runs in them matters.
    if slashes && cursor.take("/") {
        words.push(argument(cursor, quoted)?);
    }
    if !cursor.take("}") {
        return Err("a brace is not closed");
    }
    Ok(variable(false, words, assigns))
}

/// The word in `${x:-word}`. Quotes in it are read differently by different shells, so only the plain ones are read.
fn argument(cursor: &mut Cursor<'_>, quoted: bool) -> Result<Vec<Piece>, ParseRefusal> {
    let start = cursor.at;
    let pieces = pieces(cursor, WordEnd::At('}'))?;
    let raw = &cursor.text[start..cursor.at];
    if quoted && raw.contains(['\'', '"', '\\', '{']) || raw.contains(['{', '\n']) && !raw.contains("$") {
        return Err("quotes inside of ${…}");
    }
    Ok(pieces)
}

/// Reads `$((…))`: numbers, operators, variables and substitutions.
fn arithmetic(cursor: &mut Cursor<'_>) -> Result<Piece, ParseRefusal> {
    cursor.at += 3;
    let mut found = Vec::new();
    let mut open = 0_usize;
    loop {
        let next = cursor.peek().ok_or("arithmetic is not closed")?;
        match next {
            '(' => {
                open += 1;
                cursor.next();
            }
            ')' if open > 0 => {
                open -= 1;
                cursor.next();
            }
            ')' => {
                if !cursor.take("))") {
                    return Err("$(( that is not arithmetic");
                }
                return Ok(Piece::Arithmetic { pieces: found });
            }
            '$' | '`' => match expansion(cursor, true)? {
                Some(piece) => found.push(piece),
                None => return Err("a lone $"),
            },
            '0'..='9' => {
                let rest = cursor.rest();
                let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
                cursor.at += end;
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let name = name(cursor).to_owned();
                found.push(Piece::Variable { name, plain: true, words: Vec::new(), assigns: false, quoted: true });
            }
            // No `=` by itself and no `[`: nothing is assigned and no subscript evaluated.
            '+' | '-' if cursor.starts_with("++") || cursor.starts_with("--") => return Err("arithmetic that assigns"),
            '+' | '-' | '*' | '/' | '%' | '<' | '>' | '!' | '&' | '|' | '^' | '~' | '?' | ':' | ',' | ' ' | '\t' => {
                cursor.next();
                if cursor.starts_with("=") && !cursor.starts_with("==") && !matches!(next, '<' | '>' | '!') {
                    return Err("arithmetic that assigns");
                }
                cursor.take("=");
            }
            '=' if cursor.take("==") => {}
            _ => return Err("arithmetic that is not plain"),
        }
    }
}

/// Reads `$'…'` behind its opening.
fn ansi(cursor: &mut Cursor<'_>) -> Result<String, ParseRefusal> {
    let mut text = String::new();
    loop {
        match cursor.next().ok_or("a quote is not closed")? {
            '\'' => return Ok(text),
            '\\' => {
                let decoded = match cursor.next().ok_or("a quote is not closed")? {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'e' | 'E' => '\u{1b}',
                    'f' => '\u{c}',
                    'v' => '\u{b}',
                    same @ ('\\' | '\'' | '"' | '?') => same,
                    'x' => code(cursor, 16, 2)?,
                    'u' => code(cursor, 16, 4)?,
                    digit @ '0'..='7' => {
                        cursor.at -= digit.len_utf8();
                        code(cursor, 8, 3)?
                    }
                    _ => return Err("an unknown escape in $'…'"),
                };
                text.push(decoded);
            }
            other => text.push(other),
        }
    }
}

fn code(cursor: &mut Cursor<'_>, radix: u32, most: usize) -> Result<char, ParseRefusal> {
    let refused = "an unknown escape in $'…'";
    let digits: String = cursor.rest().chars().take(most).take_while(|digit| digit.is_digit(radix)).collect();
    cursor.at += digits.len();
    let value = u32::from_str_radix(&digits, radix).map_err(|_| refused)?;
    // Beyond ASCII a byte is not a character.
    char::from_u32(value).filter(|letter| letter.is_ascii() && *letter != '\0').ok_or(refused)
}
