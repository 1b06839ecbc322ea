//! JSON read no further than it has to be.
//!
//! Most of a session file is never looked at, and to step over a value it is enough to know where its strings end and
//! how deep its brackets are. So [`members`] and [`elements`] find the parts of a JSON text by their ends, as slices of
//! it. They check its shape only: whoever keeps a part has to read it, or know that it is valid.

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

/// Whether the inside of a string literal is the text itself. (No early way out: so it is done many bytes at a time.)
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

/// The members of an object in order, values as they were written. None if it is no object, or cut off.
pub(crate) fn members(json: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    parts(json, (b'{', b'}'), 16, |cursor| {
        let key = cursor.value().filter(|key| key.starts_with('"'))?;
        cursor.take(b':')?;
        Some((Text::read(key).ok()?.0, cursor.value()?))
    })
}

/// The elements of an array as they were written. None if it is no array, or cut off.
pub(crate) fn elements(json: &str) -> Option<Vec<&str>> {
    parts(json, (b'[', b']'), 1, Cursor::value)
}

/// The position just behind the string literal that starts at `open`.
pub(crate) fn end_of_string(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        let found = at + memchr::memchr(b'"', bytes.get(at..)?)?;
        // A quote is part of the text if it is escaped, and it is if the backslashes before it are odd in number.
        let backslashes = bytes[at..found].iter().rev().take_while(|&&byte| byte == b'\\').count();
        at = found + 1;
        if backslashes % 2 == 0 {
            return Some(at);
        }
    }
}

fn parts<'a, T>(
    json: &'a str,
    (open, close): (u8, u8),
    usual: usize,
    read: impl Fn(&mut Cursor<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut cursor = Cursor { json, at: 0 };
    let mut parts = Vec::with_capacity(usual);
    cursor.take(open)?;
    if cursor.take(close).is_none() {
        loop {
            parts.push(read(&mut cursor)?);
            if cursor.take(b',').is_none() {
                cursor.take(close)?;
                break;
            }
        }
    }
    cursor.peek().is_none().then_some(parts)
}

/// A place in a JSON text.
struct Cursor<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.json.as_bytes().get(self.at).copied() {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                byte => return byte,
            }
        }
    }

    /// Passes over a byte if it is the next one.
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Passes over a value.
    fn value(&mut self) -> Option<&'a str> {
        let bytes = self.json.as_bytes();
        let end = match self.peek()? {
            b'"' => end_of_string(bytes, self.at)?,
            b'{' | b'[' => end_of_nested(bytes, self.at)?,
            _ => {
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b' ' | b'\n' | b'\t' | b'\r');
                bytes[self.at..].iter().position(is_end).map_or(bytes.len(), |len| self.at + len)
            }
        };
        let value = self.json.get(self.at..end).filter(|value| !value.is_empty())?;
        self.at = end;
        Some(value)
    }
}

/// The position just behind the object or array that starts at `at`.
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
    use super::*;

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
