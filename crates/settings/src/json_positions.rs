//! Positions of everything in a JSON text, for messages with a line and for edits that leave the rest unchanged.
//!
//! A real parser checks the text first; this module only finds positions in valid JSON. Of a key that appears twice the
//! last counts, as in the parser.

use std::ops::Range;

use serde_json::Value;

/// A JSON text, its value, and the position of each part.
#[derive(Debug, Clone)]
pub struct Json {
    text: String,
    value: Value,
    root: Node,
}

/// A text that is not JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidJson {
    /// The reason.
    pub why: String,
    /// The line, from one.
    pub line: usize,
    /// The column, from one.
    pub column: usize,
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// To an object's member.
    Name(String),
    /// To an element of a list.
    Element(usize),
}

/// A value in the text.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) inside: JsonContent,
}

#[derive(Debug, Clone)]
pub(super) enum JsonContent {
    Object(Vec<ObjectMember>),
    List(Vec<Node>),
    Plain,
}

/// A member of an object.
#[derive(Debug, Clone)]
pub(super) struct ObjectMember {
    pub(super) name: String,
    pub(super) start: usize,
    pub(super) value: Node,
}

impl Json {
    /// Reads a text.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidJson> {
        if bytes.starts_with(b"\xef\xbb\xbf") {
            let why = "it begins with a byte order mark; save it without one".to_owned();
            return Err(InvalidJson { why, line: 1, column: 1 });
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            let text = error.to_string();
            let why = text.split(" at line ").next().unwrap_or_default().to_owned();
            InvalidJson { why, line: error.line().max(1), column: error.column().max(1) }
        })?;
        let text = String::from_utf8(bytes.to_vec()).map_err(|error| {
            let good = &bytes[..error.utf8_error().valid_up_to()];
            let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
            InvalidJson { why: "it is not UTF-8".to_owned(), line, column: 1 }
        })?;
        let root = Scanner { bytes: text.as_bytes(), at: 0 }.value();
        Ok(Self { text, value, root })
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parsed value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    pub(super) fn root(&self) -> &Node {
        &self.root
    }

    /// Line and column, from one, of the name that these steps lead to, or of the value if it has no name. If they lead
    /// nowhere, of the last step that exists.
    pub fn place(&self, steps: &[PathStep]) -> (usize, usize) {
        let (mut node, mut at) = (&self.root, self.root.span.start);
        for step in steps {
            match (step, &node.inside) {
                (PathStep::Name(name), JsonContent::Object(members)) => {
                    let Some(member) = last(members, name) else { break };
                    (node, at) = (&member.value, member.start);
                }
                (PathStep::Element(index), JsonContent::List(list)) => {
                    let Some(element) = list.get(*index) else { break };
                    (node, at) = (element, element.span.start);
                }
                _ => break,
            }
        }
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

pub(super) fn last<'a>(members: &'a [ObjectMember], name: &str) -> Option<&'a ObjectMember> {
    members.iter().rev().find(|member| member.name == name)
}

/// Walks a text that is valid JSON. It never fails; in any other text it would find wrong positions.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn value(&mut self) -> Node {
        self.blanks();
        let start = self.at;
        let inside = match self.bytes.get(self.at) {
            Some(b'{') => self.object(),
            Some(b'[') => self.list(),
            Some(b'"') => {
                self.string();
                JsonContent::Plain
            }
            _ => {
                while self.bytes.get(self.at).is_some_and(|byte| !b",]} \t\r\n".contains(byte)) {
                    self.at += 1;
                }
                JsonContent::Plain
            }
        };
        Node { span: start..self.at, inside }
    }

    fn object(&mut self) -> JsonContent {
        let mut members = Vec::new();
        while self.more(b'}') {
            let start = self.at;
            let name = self.string();
            self.blanks();
            self.at += 1; // the colon
            let value = self.value();
            members.push(ObjectMember { name, start, value });
        }
        JsonContent::Object(members)
    }

    fn list(&mut self) -> JsonContent {
        let mut list = Vec::new();
        while self.more(b']') {
            list.push(self.value());
        }
        JsonContent::List(list)
    }

    /// Moves past the opening bracket or a comma to the next element, or past the closing bracket if there is none.
    fn more(&mut self, closing: u8) -> bool {
        self.blanks();
        let byte = self.bytes.get(self.at).copied();
        if byte == Some(closing) {
            self.at += 1;
            return false;
        }
        self.at += 1;
        self.blanks();
        match self.bytes.get(self.at) {
            None => false,
            Some(byte) if *byte == closing => {
                self.at += 1;
                false
            }
            Some(_) => true,
        }
    }

    fn string(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => break,
                _ => {}
            }
        }
        let written = self.bytes.get(start..self.at).unwrap_or_default();
        serde_json::from_slice(written).unwrap_or_default()
    }

    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> PathStep {
        PathStep::Name(name.to_owned())
    }

    #[test]
    fn everything_is_found_where_it_stands() {
        let json =
            Json::parse(b"{\r\n  \"a\\u0062\" : [1, {\"x\": \"}\\\"\"}],\r\n  \"c\":{ }, \"c\": null}\n").unwrap();
        assert_eq!(json.place(&[name("ab")]), (2, 3));
        assert_eq!(json.place(&[name("ab"), PathStep::Element(1)]), (2, 19));
        assert_eq!(json.place(&[name("ab"), PathStep::Element(1), name("x")]), (2, 20));
        assert_eq!(json.place(&[name("c")]), (3, 12), "of two the last");
        assert_eq!(json.place(&[name("nowhere")]), (1, 1));
    }

    /// CONF-1: what is no JSON is told with line and column.
    #[test]
    fn what_is_no_json_says_where() {
        let broken = Json::parse(b"{\n  \"a\": 1,\n  oops\n}").unwrap_err();
        assert_eq!((broken.line, broken.column), (3, 3));
        let mark = Json::parse(b"\xef\xbb\xbf{}").unwrap_err();
        assert!(mark.why.contains("byte order mark") && (mark.line, mark.column) == (1, 1));
        for text in [&b""[..], b"{", b"{\"a\":\"\xff\"}", b"[1,]", &b"[".repeat(100_000)] {
            assert!(Json::parse(text).is_err());
        }
    }
}
