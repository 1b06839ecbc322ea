//! A JSON reader that parses no more than it has to.
//!
//! Most of a session file is never looked at, and to skip a value it is enough to know where its strings end and how
//! deep its brackets nest. So a [`Cursor`] walks through a JSON text once and returns its parts as slices. It checks
//! the shape of the text only: whoever keeps a part has to validate it, or know that it is valid.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A string that borrows from its input unless it holds escapes. Null is the empty string.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'a> Text<'a> {
    /// The string, unless it is empty.
    pub(crate) fn get(&self) -> Option<&str> {
        Some(self.0.as_ref()).filter(|text| !text.is_empty())
    }

    /// Reads a string literal or null.
    pub(crate) fn read(json: &'a str) -> Result<Self, serde_json::Error> {
        match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(inside) if is_plain(inside) => Ok(Self(Cow::Borrowed(inside))),
            _ => serde_json::from_str(json),
        }
    }
}

/// True if the inside of a string literal is the text itself. (No early return, so that it is vectorised.)
fn is_plain(inside: &str) -> bool {
    inside.bytes().fold(true, |plain, byte| plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\'))
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or null")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(Borrow)
    }
}

/// Reason a text could not be read.
#[derive(Debug)]
pub(crate) enum TextFault {
    /// It is cut off or no JSON; a strict parse of all of it finds the position.
    Shape,
    /// A part of it has the wrong type.
    Part(serde_json::Error),
}

impl From<serde_json::Error> for TextFault {
    fn from(error: serde_json::Error) -> Self {
        Self::Part(error)
    }
}

/// A position in a JSON text.
pub(crate) struct Cursor<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start.
    pub(crate) fn new(json: &'a str) -> Self {
        Self { json, at: 0 }
    }

    /// The next byte that is not white space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.json.as_bytes().get(self.at).copied() {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                byte => return byte,
            }
        }
    }

    /// Current position.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Checks that only white space follows.
    pub(crate) fn end(&mut self) -> Result<(), TextFault> {
        if self.peek().is_none() { Ok(()) } else { Err(TextFault::Shape) }
    }

    /// Skips a value and returns it.
    pub(crate) fn value(&mut self) -> Result<&'a str, TextFault> {
        let bytes = self.json.as_bytes();
        let end = match self.peek() {
            Some(b'"') => end_of_string(bytes, self.at).ok_or(TextFault::Shape)?,
            Some(b'{' | b'[') => end_of_nested(bytes, self.at).ok_or(TextFault::Shape)?,
            _ => {
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b' ' | b'\n' | b'\t' | b'\r');
                bytes[self.at..].iter().position(is_end).map_or(bytes.len(), |len| self.at + len)
            }
        };
        let value = self.json.get(self.at..end).filter(|value| !value.is_empty()).ok_or(TextFault::Shape)?;
        self.at = end;
        Ok(value)
    }

    /// Walks through an object: `each` gets a key and has to skip its value.
    pub(crate) fn members(
        &mut self,
        mut each: impl FnMut(Cow<'a, str>, &mut Self) -> Result<(), TextFault>,
    ) -> Result<(), TextFault> {
        self.parts(b'{', b'}', |cursor| {
            let key = cursor.value()?;
            if !key.starts_with('"') || !cursor.take(b':') {
                return Err(TextFault::Shape);
            }
            each(Text::read(key)?.0, cursor)
        })
    }

    /// Walks through an array: `each` has to skip an element.
    pub(crate) fn elements(&mut self, each: impl FnMut(&mut Self) -> Result<(), TextFault>) -> Result<(), TextFault> {
        self.parts(b'[', b']', each)
    }

    fn parts(
        &mut self,
        open: u8,
        close: u8,
        mut each: impl FnMut(&mut Self) -> Result<(), TextFault>,
    ) -> Result<(), TextFault> {
        if !self.take(open) {
            return Err(TextFault::Shape);
        }
        if self.take(close) {
            return Ok(());
        }
        loop {
            each(self)?;
            if !self.take(b',') {
                return if self.take(close) { Ok(()) } else { Err(TextFault::Shape) };
            }
        }
    }

    /// Skips a byte if it is the next one.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }
}

/// The position just after the string literal that starts at `open`.
pub(crate) fn end_of_string(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        let found = quote(bytes, at)?;
        // A quote is part of the text if it is escaped, and it is if the backslashes before it are odd in number.
        let backslashes = bytes[at..found].iter().rev().take_while(|&&byte| byte == b'\\').count();
        at = found + 1;
        if backslashes % 2 == 0 {
            return Some(at);
        }
    }
}

/// Rounds of eight bytes before a search is worth its start-up cost: most strings are names and ids.
const SHORT: usize = 5;

/// The position of the next quote.
fn quote(bytes: &[u8], mut at: usize) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    for _ in 0..SHORT {
        let Some(eight) = bytes[at..].first_chunk() else { break };
        // A byte that is a quote becomes zero, and only the lowest zero byte surely borrows from its high bit.
        let other = u64::from_le_bytes(*eight) ^ (LOW * u64::from(b'"'));
        let found = other.wrapping_sub(LOW) & !other & (LOW << 7);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr::memchr(b'"', &bytes[at..]).map(|found| at + found)
}

/// Length in bytes of a string literal's text, without decoding it. None if the literal is not valid.
pub(crate) fn decoded_len(literal: &str) -> Option<usize> {
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    // No early way out: so it is done many bytes at a time.
    if rest.iter().fold(false, |control, byte| control | (*byte < b' ')) {
        return None;
    }
    let mut len = rest.len();
    while let Some(found) = memchr::memchr(b'\\', rest) {
        // `\n` is one byte; `\uXXXX` stands for two or three, a surrogate half for two.
        let (written, meant) = match rest.get(found + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => (2, 1),
            b'u' if rest.get(found + 2..found + 6)?.iter().all(u8::is_ascii_hexdigit) => (6, 2),
            _ => return None,
        };
        len -= written - meant;
        rest = &rest[found + written..];
    }
    Some(len)
}

/// The position just after the object or array that starts at `at`.
fn end_of_nested(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = end_of_string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn members(json: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
        let (mut cursor, mut all) = (Cursor::new(json), Vec::new());
        let read = cursor.members(|key, cursor| cursor.value().map(|value| all.push((key, value))));
        read.and_then(|()| cursor.end()).ok().map(|()| all)
    }

    fn elements(json: &str) -> Option<Vec<&str>> {
        let (mut cursor, mut all) = (Cursor::new(json), Vec::new());
        let read = cursor.elements(|cursor| cursor.value().map(|value| all.push(value)));
        read.and_then(|()| cursor.end()).ok().map(|()| all)
    }

    proptest! {
        /// A string literal is accepted exactly if a strict parser accepts it.
        #[test]
        fn a_literal_is_valid_if_a_strict_reader_says_so(inside in r#"([a-z"/é\x01\n]|\\["\\/bfnrtux]|\\u[0-9a-fA-Fx]{4}){0,40}"#) {
            let literal = format!("\"{inside}\"");
            if end_of_string(literal.as_bytes(), 0) == Some(literal.len()) {
                let strict = serde_json::from_str::<serde::de::IgnoredAny>(&literal);
                prop_assert_eq!(decoded_len(&literal).is_some(), strict.is_ok(), "{}", literal);
            }
        }

        /// Quotes are found at every position.
        #[test]
        fn a_string_ends_at_its_first_quote_that_is_not_escaped(inside in r#"([a-z\x01\u{80}-\u{ff}]|\\["\\]|!|#){0,99}"#) {
            let text = format!("\"{inside}\",\"");
            prop_assert_eq!(end_of_string(text.as_bytes(), 0), Some(inside.len() + 2));
        }
    }

    #[test]
    fn parts_are_found_by_their_ends() {
        let json = r#" { "a\n" : "q\"\\" , "b":[1,{"c":"]}"}] ,"d": null} "#;
        let found = members(json).unwrap();
        let found: Vec<(&str, &str)> = found.iter().map(|(key, value)| (key.as_ref(), *value)).collect();
        assert_eq!(found, [("a\n", r#""q\"\\""#), ("b", r#"[1,{"c":"]}"}]"#), ("d", "null")]);
        assert_eq!(elements(r#"[ 1 ,"x",[] , {} ]"#).unwrap(), ["1", r#""x""#, "[]", "{}"]);
        assert_eq!((members("{}"), elements("[ ]")), (Some(vec![]), Some(vec![])));
    }

    #[test]
    fn what_is_cut_off_or_something_else_has_no_parts() {
        let whole = r#"{"a":"x\\","b":[{"c":1}]}"#;
        assert!(members(whole).is_some());
        for end in 0..whole.len() {
            assert_eq!(members(&whole[..end]), None, "{}", &whole[..end]);
        }
        for json in ["", "[1]", "null", r#"{"a":1}{"#, r#"{"a"}"#, r#"{a:1}"#, r#"{"a":1,}"#, r#"{"a":"b{"c":1}"#] {
            assert_eq!(members(json), None, "{json}");
        }
        assert_eq!((elements("{}"), elements("[1,"), elements("[1,]"), elements("[,]")), (None, None, None, None));
    }
}
