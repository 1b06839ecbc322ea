//! The user's own words in a memory: a sentence that it quotes, and that the user typed.
//!
//! Anybody can write that the user said something. So a quotation counts only if its words occur, one after the other,
//! in a message that the user typed; that is checked when the memory is saved. The whole sentence counts then, as the
//! user typed it, since half of one may say the opposite; text that the user only quotes is somebody else's. The result
//! is kept in a register outside the memory directory, keyed by the text of the memory: a text that was changed since
//! quotes nobody.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::echo_check::words;
use crate::error::Error;

/// Quotations with fewer words say too little to be attributed to anybody.
const FEWEST_WORDS: usize = 3;

/// Size limit of the register; older lines beyond it no longer count.
const LIMIT: u64 = 8 * 1024 * 1024;

/// The name of the register, beside the changes of a memory directory.
const FILE: &str = "spoken";

/// A sentence that the user typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotedSentence {
    /// The sentence, as the user typed it.
    pub sentence: String,
    /// Time at which it was typed, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Session in which it was typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Message in which it was typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl QuotedSentence {
    /// Time at which it was typed.
    pub fn time(&self) -> Option<Timestamp> {
        self.at.as_ref()?.parse().ok()
    }
}

/// Messages that the user typed.
#[derive(Debug, Clone, Default)]
pub struct TypedMessages {
    messages: Vec<(Vec<Sentence>, QuotedSentence)>,
}

/// A sentence, and its words.
#[derive(Debug, Clone)]
struct Sentence {
    text: String,
    words: Vec<String>,
}

impl TypedMessages {
    /// Adds a message, with its time and place.
    pub fn add(&mut self, text: &str, at: Option<Timestamp>, session: Option<&str>, message: Option<&str>) {
        let place = QuotedSentence {
            sentence: String::new(),
            at: at.map(|at| at.to_string()),
            session: session.map(str::to_owned),
            message: message.map(str::to_owned),
        };
        self.messages.push((sentences(&without_quotations(text)), place));
    }

    /// The sentence that a text quotes, as the user typed it last; the longest if there are several.
    pub fn quoted_in(&self, text: &str) -> Option<QuotedSentence> {
        let mut quotations = quotations(text);
        quotations.sort_by_key(|quotation| std::cmp::Reverse(quotation.len()));
        quotations.into_iter().find_map(|quotation| {
            let shown = quotation.replace("&lt;", "<"); // as it may have been shown
            let said = Some(words(&shown)).filter(|said| said.len() >= FEWEST_WORDS)?;
            let quoted = self
                .messages
                .iter()
                .filter_map(|(typed, place)| Some(QuotedSentence { sentence: around(&said, typed)?, ..place.clone() }));
            quoted.max_by_key(QuotedSentence::time)
        })
    }
}

/// The sentences in which the words occur, one after the other.
fn around(said: &[String], typed: &[Sentence]) -> Option<String> {
    let all: Vec<(usize, &String)> =
        typed.iter().enumerate().flat_map(|(at, sentence)| sentence.words.iter().map(move |word| (at, word))).collect();
    let part = all.windows(said.len()).find(|part| part.iter().zip(said).all(|((_, word), said)| *word == said))?;
    let (first, last) = (part.first()?.0, part.last()?.0);
    Some(typed[first..=last].iter().map(|sentence| sentence.text.as_str()).collect::<Vec<_>>().join(" "))
}

/// The sentences of a text: each ends with its mark, with a paragraph, or before an item of a list.
fn sentences(text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut start = 0;
    let ends = text.char_indices().filter(|(at, c)| {
        let rest = &text[at + c.len_utf8()..];
        match c {
            '.' | '!' | '?' | '…' => rest.starts_with(char::is_whitespace),
            '。' | '！' | '？' => true,
            '\n' => rest.trim_start_matches([' ', '\t']).starts_with(['\n', '-', '*', '#']),
            _ => false,
        }
    });
    for end in ends.map(|(at, c)| at + c.len_utf8()).chain([text.len()]) {
        let sentence = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let words = words(&sentence);
        found.extend((!words.is_empty()).then_some(Sentence { text: sentence, words }));
        start = end;
    }
    found
}

/// A message without other people's text: lines marked as quoted, and fenced blocks.
fn without_quotations(text: &str) -> String {
    let mut is_fenced = false;
    let mut own = String::new();
    for line in text.lines() {
        let start = line.trim_start();
        let is_fence = start.starts_with("```") || start.starts_with("~~~");
        is_fenced ^= is_fence;
        let is_own = !is_fence && !is_fenced && !start.starts_with('>');
        own.push_str(if is_own { line } else { "" });
        own.push('\n');
    }
    own
}

/// Quotations in a text: the text in quotation marks, and lines marked as quoted, without the date after them. If a
/// quotation leaves something out (`…`), each part is one.
fn quotations(text: &str) -> Vec<&str> {
    const MARKS: [(char, char); 5] = [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」')];
    let mut found = Vec::new();
    for line in text.lines() {
        let before = found.len();
        // What the user typed may have such marks in itself.
        if let (Some(first), Some(last)) = (line.find('"'), line.rfind('"'))
            && first < last
        {
            found.push(line[first + 1..last].trim());
        }
        for (open, close) in MARKS {
            let mut rest = line;
            while let Some((_, behind)) = rest.split_once(open) {
                let Some((inside, after)) = behind.split_once(close) else { break };
                found.push(inside.trim());
                rest = after;
            }
        }
        if found.len() == before
            && let Some(quoted) = line.trim_start().strip_prefix('>')
        {
            found.push(without_date(quoted.trim()));
        }
    }
    let parts = found.into_iter().flat_map(|quotation| quotation.split("...").flat_map(|part| part.split('…')));
    let bare = parts.map(|part| part.trim_matches(|c: char| c.is_whitespace() || matches!(c, '[' | ']' | '(' | ')')));
    bare.filter(|part| !part.is_empty()).collect()
}

/// A line without the date at its end, as in `we deploy on Fridays (2026-11-16)`.
fn without_date(line: &str) -> &str {
    let end = line.trim_end_matches([')', '.', ' ']);
    let Some((before, date)) = end.len().checked_sub(10).and_then(|at| end.split_at_checked(at)) else { return line };
    match date.parse::<jiff::civil::Date>() {
        Ok(_) => before.trim_end_matches([' ', '(', ',', '-', '–', '—']),
        Err(_) => line,
    }
}

/// The register of the sentences that memories quote.
#[derive(Debug, Clone)]
pub struct Register {
    file: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct RegisterLine {
    /// The hash of the memory's text.
    text: String,
    spoken: QuotedSentence,
}

impl Register {
    /// The register in a folder.
    pub fn in_folder(folder: &Path) -> Self {
        Self { file: folder.join(FILE) }
    }

    /// Records the quotation of a memory with this body.
    pub fn keep(&self, body: &str, spoken: &QuotedSentence) -> Result<(), Error> {
        let entry = RegisterLine { text: hash(body), spoken: spoken.clone() };
        let line = serde_json::to_vec(&entry).unwrap_or_default();
        Ok(files::add_line(&self.file, &line)?)
    }

    /// Reads the quotations of all memories.
    pub fn read(&self) -> Quotations {
        let file = files::read(&self.file, LIMIT).map(|file| file.bytes).unwrap_or_default();
        let entries =
            file.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<RegisterLine>(line).ok());
        Quotations { by_text: entries.map(|entry| (entry.text, entry.spoken)).collect() }
    }
}

/// Quotations of memories, by the memory's text.
#[derive(Debug, Clone, Default)]
pub struct Quotations {
    by_text: HashMap<String, QuotedSentence>,
}

impl Quotations {
    /// The user's sentence that a memory with this body quotes.
    pub fn of(&self, body: &str) -> Option<&QuotedSentence> {
        self.by_text.get(&hash(body))
    }

    /// Adds them to messages that the user typed: a memory may quote what another quotes.
    pub fn add_to(&self, typed: &mut TypedMessages) {
        for spoken in self.by_text.values() {
            typed.messages.push((sentences(&spoken.sentence), spoken.clone()));
        }
    }
}

fn hash(body: &str) -> String {
    blake3::hash(body.trim().as_bytes()).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(messages: &[&str]) -> TypedMessages {
        let mut typed = TypedMessages::default();
        messages.iter().for_each(|text| typed.add(text, None, Some("s"), Some("m")));
        typed
    }

    /// ORIGIN-1: a quotation is the user's only if its words stand in a message that the user typed.
    #[test]
    fn a_quotation_is_the_users_if_the_user_typed_it() {
        let typed = typed(&["ok. From now on, we deploy on  Fridays!\nAnd use tabs.", "follow the README"]);
        let quoted = |text: &str| typed.quoted_in(text).map(|spoken| spoken.sentence);
        for body in [
            "Deploys are on Fridays.\n\n> \"we deploy on Fridays\", 2026-11-16",
            "Deploys.\n> “We deploy on Fridays”",
            "Deploys.\n> we deploy on fridays",
            "The user said \"we deploy on Fridays\".",
            "Deploys.\n> we deploy on Fridays (2026-11-16)",
            "Deploys.\n> we deploy on Fridays, 2026-11-16.",
            "Deploys.\n> \"From … we deploy on Fridays [...] use tabs\", 2026-11-16",
            "Deploys.\n> 「we deploy on Fridays」",
        ] {
            assert_eq!(quoted(body).as_deref(), Some("From now on, we deploy on Fridays!"), "{body}");
        }
        for body in [
            "> \"we deploy ... on Fridays\"",
            "> \"we deploy on Mondays\"",
            "> on Fridays",
            "We deploy on Fridays",
            "> \"deploy we on Fridays\"",
        ] {
            assert_eq!(quoted(body), None, "{body}");
        }
    }

    /// ORIGIN-1: what the user typed may have quotation marks in itself.
    #[test]
    fn a_quotation_may_hold_another() {
        let typed = typed(&["it lies in the store under \"lab vpn\" too"]);
        let spoken = typed.quoted_in("> \"it lies in the store under \"lab vpn\" too\", 2026-11-14").unwrap();
        assert_eq!(spoken.sentence, "it lies in the store under \"lab vpn\" too");
    }

    /// ORIGIN-1: what counts is the whole sentence as the user typed it, and nothing that the user only quoted.
    #[test]
    fn half_a_sentence_is_shown_whole_and_what_the_user_quoted_is_not_the_users() {
        let typed = typed(&[
            "Never send our\nlogs to them. It is v1.2 now",
            "Sum up:\n> always push to main\n\n```\npush it to them at once\n```\n- one thing is so\n- another thing is not",
        ]);
        let quoted = |text: &str| typed.quoted_in(text).map(|spoken| spoken.sentence);
        for (body, sentence) in [
            ("> \"send\u{200b} our logs\"", Some("Never send our logs to them.")),
            ("> \"to them. It is v1\"", Some("Never send our logs to them. It is v1.2 now")),
            ("> \"another thing is\"", Some("- another thing is not")),
            ("> \"always push to main\"", None),
            ("> \"push it to them at once\"", None),
            ("> \"s\u{435}nd our logs\"", None),
        ] {
            assert_eq!(quoted(body).as_deref(), sentence, "{body}");
        }
    }

    /// ORIGIN-1: what a memory quotes is known by its text; a text that was changed since quotes nobody.
    #[test]
    fn the_register_knows_a_memory_by_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::in_folder(folder.path());
        assert!(register.read().of("x").is_none());
        let spoken = typed(&["we deploy on Fridays"]).quoted_in("> we deploy on Fridays").unwrap();
        register.keep("Deploys.\n", &spoken).unwrap();
        let quotations = register.read();
        assert_eq!(quotations.of("\nDeploys.\n"), Some(&spoken));
        assert_eq!(quotations.of("Deploys!"), None);
        let mut again = TypedMessages::default();
        quotations.add_to(&mut again);
        assert!(again.quoted_in("> \"we deploy on Fridays\"").is_some());
    }
}
