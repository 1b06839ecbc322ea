//! The one way to remember, whoever asks: a command, a model's tool, a background agent, a server.
//!
//! A memory that holds a secret is refused, and so is one that says what another says already; the reason names the rule or
//! the file. What is saved says where it comes from: session, message, agent, model and time, under `metadata`, beside what
//! it names and was there ([`crate::drift`]). File and index are written under one lock.

use std::path::Path;

use jiff::Timestamp;

use crate::drift;
use crate::entry::{Memory, NAMED};
use crate::error::Error;
use crate::frontmatter;
use crate::index;
use crate::scan;
use crate::secrets::no_secret;
use crate::store::{MODE, New, Saved, Store, checked, file_name, render};

/// A memory larger than this is not settled.
const LIMIT: u64 = 1024 * 1024;

/// Where a memory comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The session in which it was learnt.
    pub session: Option<String>,
    /// The message.
    pub message: Option<String>,
    /// The agent that wrote it.
    pub agent: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// When.
    pub at: Option<Timestamp>,
}

impl Store {
    /// Saves a new memory. What it names is looked for below `tree`, the working tree, where one is given.
    pub fn remember(&self, new: &New, origin: &Origin, tree: Option<&Path>) -> Result<Saved, Error> {
        let path = match &new.path {
            Some(path) => checked(path)?.to_owned(),
            None => file_name(&new.name)?,
        };
        let text = render(new);
        let named = tree.map(|tree| drift::record(&text, tree)).unwrap_or_default();
        let text = origin.written_into(&text, &named);
        no_secret(&path, &text)?;
        let _held = self.lock()?;
        self.nothing_like(&new.body)?;
        self.root().create_new(&path, text.as_bytes(), MODE)?;
        self.indexed(&path, |text, target| index::put(text, &new.name, target, &new.description))
    }

    /// Brings what somebody else wrote into order: it gets the mode of a memory, where it comes from, what it names that is
    /// there, and a line in the index if it has none. What was left empty is forgotten.
    pub fn settle(&self, path: &str, origin: &Origin, tree: Option<&Path>) -> Result<Option<Saved>, Error> {
        if checked(path).is_err() {
            return Ok(None); // an index, a log, or no memory at all
        }
        let _held = self.lock()?;
        let file = self.root().read(path, LIMIT)?;
        if file.bytes.trim_ascii().is_empty() {
            self.root().remove(path)?;
            return self.indexed(path, index::take).map(Some);
        }
        let bytes = match std::str::from_utf8(&file.bytes) {
            Ok(text) => {
                let named = tree.map(|tree| drift::record(text, tree)).unwrap_or_default();
                origin.written_into(&frontmatter::mended(text), &named).into_bytes()
            }
            Err(_) => file.bytes,
        };
        self.root().replace_unchanged(path, &bytes, &file.stamp, MODE)?;
        let memory = Memory::parse(path, &bytes, None, bytes.len() as u64);
        let hook = memory.description.as_deref().unwrap_or_default();
        let saved = self.indexed(path, |text, target| {
            if index::links(text).iter().any(|link| link.target == target) {
                return text.to_owned();
            }
            index::put(text, &memory.name, target, hook)
        })?;
        Ok(Some(saved))
    }

    /// Fails if a memory says the same already. The lock is held.
    pub(crate) fn nothing_like(&self, body: &str) -> Result<(), Error> {
        let said = by_what_it_says(body);
        if said.is_empty() {
            return Ok(());
        }
        for path in scan::paths(self.root())? {
            let same = Memory::read(self.root(), &path).is_ok_and(|memory| by_what_it_says(&memory.body) == said);
            if same {
                return Err(Error::Known { by: path });
            }
        }
        Ok(())
    }
}

impl Origin {
    /// The text of a memory with its origin, and what it names, at the end of its frontmatter. Of one that was there before,
    /// who changed it and when.
    pub(crate) fn written_into(&self, text: &str, named: &[String]) -> String {
        let at = self.at.map(|at| at.to_string());
        let names = (!named.is_empty()).then(|| named.join(", "));
        let parts = [
            ("originSessionId", &self.session),
            ("originMessageId", &self.message),
            ("agent", &self.agent),
            ("model", &self.model),
            ("modified", &at),
            (NAMED, &names),
        ];
        let given = parts.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
        let front = frontmatter::read(text);
        if front.fields.get("metadata").is_some_and(|metadata| metadata.is_object()) {
            let first = |key: &str| key.starts_with("origin") && front.metadata(key).is_some();
            let set = |text: String, (key, value): (&str, &String)| {
                frontmatter::set_under(&text, "metadata", key, &scan::one_line(value, 400))
            };
            return given.filter(|(key, _)| !first(key)).fold(text.to_owned(), set);
        }
        let lines: String = given.map(|(key, value)| format!("  {key}: {}\n", scalar(value))).collect();
        if lines.is_empty() || !front.is_present() {
            return text.to_owned();
        }
        let text = frontmatter::remove(text, "metadata"); // what is there instead is no list of keys
        let end = frontmatter::read(&text).block.end;
        format!("{}metadata:\n{lines}{}", &text[..end], &text[end..])
    }
}

/// A value as YAML writes it: in quotes, where it could be read as something else.
fn scalar(value: &str) -> String {
    let value = scan::one_line(value, 400);
    let plain = value.starts_with(|c: char| c.is_alphanumeric())
        && value.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/'))
        && !value.ends_with(':');
    if plain { value } else { serde_json::Value::from(value).to_string() }
}

/// A text by its words.
pub(crate) fn by_what_it_says(body: &str) -> String {
    body.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
