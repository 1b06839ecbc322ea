//! Cutting a command into words and operators, in one pass.
//!
//! This is the guard before the grammar: it bounds length and nesting, takes comments out, finds here-documents and where
//! substitutions end, and refuses what the grammar and bash could read differently: `((`, `word(`, array subscripts,
//! `case` inside of a substitution. The grammar gets these tokens and no others.

pub(crate) mod word;

use word::{Cursor, ParseRefusal, Piece, is_meta};

/// The longest command that is taken apart, in bytes.
pub(crate) const LONGEST: usize = 16 * 1024;

/// Limit on the nesting of substitutions, groups and loops. The grammar recurses, and stacks are small.
pub(crate) const DEEPEST: usize = 32;

/// Limit on `case` in one command: the grammar reads each twice, and so those inside of it four times.
const CASES: usize = 4;

const OPERATORS: [&str; 22] = [
    "&>>", "<<-", "<<<", ";;&", "&&", "||", ";;", ";&", "|&", ">>", "<<", "<&", ">&", "<>", ">|", "&>", "|", "&", ";",
    "<", ">", "(",
];

/// One token, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Word(String),
    Operator(String),
    /// The body of a here-document.
    Body(String),
}

/// A here-document whose body is still to come.
struct PendingHereDocument {
    /// Index of its body among the tokens.
    slot: usize,
    tag: String,
    tabs: bool,
    expands: bool,
}

/// The tokens of a whole command.
pub(crate) fn tokens(text: &str, depth: usize) -> Result<Vec<Token>, ParseRefusal> {
    if text.len() > LONGEST {
        return Err("too long to analyse");
    }
    let mut cursor = Cursor::new(text, depth);
    let found = until_close(&mut cursor, LexerEnd::All)?;
    nesting(&found, depth)?;
    Ok(found)
}

/// Reads a substitution after its opening parenthesis, and returns its text.
pub(crate) fn substitution(cursor: &mut Cursor<'_>) -> Result<String, ParseRefusal> {
    let start = cursor.at;
    let found = cursor.deeper(|cursor| until_close(cursor, LexerEnd::Substitution))?;
    nesting(&found, cursor.depth)?;
    Ok(cursor.text[start..cursor.at - 1].to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LexerEnd {
    All,
    /// Ends with its closing parenthesis.
    Substitution,
}

fn until_close(cursor: &mut Cursor<'_>, within: LexerEnd) -> Result<Vec<Token>, ParseRefusal> {
    let mut found: Vec<Token> = Vec::new();
    let mut pending: Vec<PendingHereDocument> = Vec::new();
    let mut open = 0_usize;
    let mut cases = 0_usize;
    loop {
        while cursor.take(" ") || cursor.take("\t") || cursor.take("\\\n") {}
        let start = cursor.at;
        let Some(next) = cursor.peek() else {
            if within == LexerEnd::Substitution || !pending.is_empty() {
                return Err("it ends in the middle");
            }
            return Ok(found);
        };
        match next {
            '#' => {
                let rest = cursor.rest();
                cursor.at += rest.find('\n').unwrap_or(rest.len());
            }
            '\n' => {
                cursor.next();
                found.push(Token { kind: Kind::Operator("\n".into()), start, end: cursor.at });
                for pending in pending.drain(..) {
                    let body = body(cursor, &pending)?;
                    if pending.expands {
                        word::document(&body, cursor.depth)?;
                    }
                    found[pending.slot].kind = Kind::Body(body);
                }
            }
            ')' => {
                cursor.next();
                if open == 0 && cases == 0 {
                    if within == LexerEnd::Substitution && pending.is_empty() {
                        return Ok(found);
                    }
                    return Err("an unmatched closing parenthesis");
                }
                open = open.saturating_sub(1);
                found.push(Token { kind: Kind::Operator(")".into()), start, end: cursor.at });
            }
            '<' | '>' if cursor.starts_with("<(") || cursor.starts_with(">(") => {
                // Read as a word, so that the grammar sees one.
                if found.last().is_some_and(|before| before.end == start && matches!(before.kind, Kind::Word(_))) {
                    return Err("a process substitution in the middle of a word");
                }
                let direction = if next == '<' { "<" } else { ">" };
                cursor.at += 2;
                let text = substitution(cursor)?;
                if cursor.peek().is_some_and(|next| !is_meta(next)) {
                    return Err("a process substitution in the middle of a word");
                }
                found.push(Token { kind: Kind::Word(format!("{direction}({text})")), start, end: cursor.at });
            }
            '|' | '&' | ';' | '<' | '>' | '(' => {
                let operator = OPERATORS.iter().find(|operator| cursor.starts_with(operator)).ok_or("an operator")?;
                cursor.at += operator.len();
                if cursor.starts_with("\\\n") {
                    return Err("a line continuation after an operator");
                }
                if *operator == "(" {
                    open += 1;
                    let before = found.last();
                    if before.is_some_and(|before| before.end == start && matches!(before.kind, Kind::Word(_))) {
                        return Err("a parenthesis behind a word");
                    }
                    if before.is_some_and(|before| before.kind == Kind::Operator("(".into())) {
                        return Err("two parentheses, which may be arithmetic");
                    }
                }
                found.push(Token { kind: Kind::Operator((*operator).to_owned()), start, end: cursor.at });
                if matches!(*operator, "<<" | "<<-") {
                    let (tag, expands) = tag(cursor)?;
                    let (start, end) = (cursor.at - 1, cursor.at);
                    let slot = found.len() + 1;
                    let raw = if expands { tag.clone() } else { format!("'{tag}'") };
                    found.push(Token { kind: Kind::Word(raw.clone()), start, end });
                    found.push(Token { kind: Kind::Body(String::new()), start, end });
                    found.push(Token { kind: Kind::Word(raw), start, end });
                    pending.push(PendingHereDocument { slot, tag, tabs: *operator == "<<-", expands });
                }
            }
            _ => {
                word::read(cursor)?;
                let text = &cursor.text[start..cursor.at];
                if subscripted(text) {
                    return Err("an array assignment");
                }
                match cursor.peek() {
                    Some('(') => return Err("a parenthesis behind a word"),
                    Some('<' | '>') if text.starts_with('{') => return Err("a redirection with a name"),
                    Some('<' | '>') if text.len() > 3 && text.bytes().all(|digit| digit.is_ascii_digit()) => {
                        return Err("a redirection with an unusual number");
                    }
                    _ => {}
                }
                if text == "case" {
                    cases += 1;
                    if within == LexerEnd::Substitution || cases > CASES {
                        return Err("`case` with ambiguous parentheses");
                    }
                }
                found.push(Token { kind: Kind::Word(text.to_owned()), start, end: cursor.at });
            }
        }
    }
}

/// True if a word begins like an assignment to an element of an array.
fn subscripted(text: &str) -> bool {
    let name = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    let calculates = ["]=", "]+=", "$", "`"].iter().any(|sign| text.contains(sign));
    name > 0 && text[name..].starts_with('[') && calculates
}

/// The word that ends a here-document, and true if its text is expanded.
fn tag(cursor: &mut Cursor<'_>) -> Result<(String, bool), ParseRefusal> {
    while cursor.take(" ") || cursor.take("\t") {}
    let pieces = word::read(cursor)?;
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.!".contains(c));
    match pieces.as_slice() {
        [Piece::Bare(tag)] if plain(tag) => Ok((tag.clone(), true)),
        [Piece::Quoted(tag)] if plain(tag) => Ok((tag.clone(), false)),
        [Piece::Quoted(empty), Piece::Quoted(tag)] if empty.is_empty() && plain(tag) => Ok((tag.clone(), false)),
        _ => Err("a here-document with an unusual end"),
    }
}

/// Takes the body of a here-document, which starts at the cursor.
fn body(cursor: &mut Cursor<'_>, pending: &PendingHereDocument) -> Result<String, ParseRefusal> {
    let mut body = String::new();
    loop {
        let rest = cursor.rest();
        if rest.is_empty() {
            return Err("a here-document that does not end");
        }
        let line = rest.split('\n').next().unwrap_or_default();
        cursor.at += (line.len() + 1).min(rest.len());
        let bare = if pending.tabs { line.trim_start_matches('\t') } else { line };
        if bare == pending.tag {
            // The newline belongs to the line of the tag, and ends what stands before it.
            return Ok(body);
        }
        if pending.expands && line.ends_with('\\') {
            return Err("a line continuation in a here-document");
        }
        body.push_str(bare);
        body.push('\n');
    }
}

/// Holds the nesting of groups and loops to the limit.
fn nesting(tokens: &[Token], depth: usize) -> Result<(), ParseRefusal> {
    let mut open = depth;
    for token in tokens {
        match &token.kind {
            Kind::Operator(operator) if operator == "(" => open += 1,
            Kind::Operator(operator) if operator == ")" => open = open.saturating_sub(1),
            Kind::Word(word) => match word.as_str() {
                "{" | "if" | "while" | "until" | "for" | "case" | "[[" | "select" | "coproc" | "function" => {
                    open += 1;
                }
                "}" | "fi" | "done" | "esac" | "]]" => open = open.saturating_sub(1),
                _ => {}
            },
            _ => {}
        }
        if open > DEEPEST {
            return Err("too deeply nested");
        }
    }
    Ok(())
}
