//! Prediction of which old results will be needed again.
//!
//! A result is **superseded** when a newer one that is in view shows the same: the file read again, or written whole;
//! the same search, listing, page or command once more. Nobody misses it.
//!
//! A result that shows text of a file will be needed at the next edit; if it is gone, the file is read again. That
//! becomes less likely with every round, and hardly depends on the size of the result; what it costs to carry does. So it
//! stays until carrying it has cost as much as reading it again, times the expected number of times that it is needed:
//! small ones long, large ones a few rounds. That number is higher for a file that the user's last words name, or that was
//! edited in the last few rounds.
//!
//! Rules over calls and their inputs: no model is asked, and no file is opened.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use transcript::Block;
use transcript::tool_names;
use transcript::view::{AnsweredCall, ItemState, View};

use crate::cache_economics::Rates;
use crate::clear_numbers::ClearNumbers;
use crate::extent::YOUNG_ROUNDS;

/// Output tokens of a call that reads a file again.
const CALL_OUTPUT: f64 = 150.0;
/// Bytes per token in results.
const RESULT_BYTES: f64 = 3.0;

/// Place of a result: the item of its reply, and its call's id there.
type ResultPlace<'a> = (usize, &'a str);

/// Results that may go although they are young, and results to keep although they are old.
#[derive(Debug, Default)]
pub struct RereadCosts<'a> {
    superseded: HashSet<ResultPlace<'a>>,
    /// The caution from which on each result that shows a file is held back.
    held_from: HashMap<ResultPlace<'a>, f64>,
    named: HashSet<ResultPlace<'a>>,
}

impl<'a> RereadCosts<'a> {
    /// Looks at the results in view.
    pub fn of(view: &'a View, rates: &Rates, numbers: &ClearNumbers) -> Self {
        let shown = shown(view);
        let superseded = superseded(&shown);
        let named = named(view, &shown);
        let edited = edited(&shown, numbers.edited_rounds);
        let again = view.tally().count() as f64 * rates.read + CALL_OUTPUT * rates.output;
        let held_from = |one: &ShownResult<'a>| {
            let shows_file = matches!(one.does, FileUse::Reads | FileUse::Runs) && !superseded.contains(&one.place);
            let (path, _) = one.file.as_ref().filter(|_| shows_file)?;
            let is_likely = named.contains(name(path)) || edited.contains(&**path);
            let uses = if is_likely { numbers.likely_uses } else { numbers.uses };
            let carried = one.bytes as f64 / RESULT_BYTES * one.age as f64 * rates.read;
            Some((one.place, carried / (uses * again)))
        };
        let held_from = shown.iter().filter_map(held_from).collect();
        let is_named = |one: &&ShownResult<'_>| {
            one.does == FileUse::Reads && one.file.as_ref().is_some_and(|(path, _)| named.contains(name(path)))
        };
        let named = shown.iter().filter(is_named).map(|one| one.place).collect();
        Self { superseded, held_from, named }
    }

    /// True if a newer result shows the same.
    pub fn is_superseded(&self, item: usize, id: &str) -> bool {
        self.superseded.contains(&(item, id))
    }

    /// True if a result shows a file that the user's last words name, as reading it showed it.
    pub fn is_named(&self, item: usize, id: &str) -> bool {
        self.named.contains(&(item, id))
    }

    /// True if a result stays although it is old. `caution` is how much more than its price a second read counts.
    pub fn is_held(&self, item: usize, id: &str, caution: f64) -> bool {
        caution > 0.0 && self.held_from.get(&(item, id)).is_some_and(|from| *from <= caution)
    }
}

/// A result in view, with its content.
struct ShownResult<'a> {
    place: ResultPlace<'a>,
    /// Its age in rounds; 0 is the newest.
    age: usize,
    bytes: usize,
    does: FileUse,
    /// The file and the lines of it that it shows.
    file: Option<(Cow<'a, str>, LineRange)>,
    /// The tool and the input of a call that shows the same when it is made once more.
    again: Option<(&'a str, &'a str)>,
}

/// The part of a call's input that says which file it is about.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FileInput<'a> {
    #[serde(borrow)]
    file_path: Option<&'a RawValue>,
    #[serde(borrow)]
    notebook_path: Option<&'a RawValue>,
    #[serde(borrow)]
    offset: Option<&'a RawValue>,
    #[serde(borrow)]
    limit: Option<&'a RawValue>,
}

/// Use of a file by a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileUse {
    Reads,
    Changes,
    /// The input contains the whole file.
    Writes,
    Looks,
    Runs,
}

/// Lines of a file, from the first to after the last.
type LineRange = (u64, u64);

const ALL: LineRange = (0, u64::MAX);
/// An unknown range.
const NONE: LineRange = (0, 0);

/// The results that are in view as the tools returned them, the newest first.
fn shown(view: &View) -> Vec<ShownResult<'_>> {
    let replies = view.visible().rev().filter(|entry| entry.state() == ItemState::Reply);
    let mut all: Vec<ShownResult<'_>> = Vec::new();
    for (age, entry) in replies.enumerate() {
        let whole = |call: &AnsweredCall<'_>| call.result.is_some_and(|result| result.is_same(call.shown));
        all.extend(entry.calls().rev().filter(whole).map(|call| ShownResult::of(entry.index(), age, &call)));
    }
    let known: HashSet<Cow<'_, str>> = all.iter().filter_map(|one| Some(one.file.as_ref()?.0.clone())).collect();
    for one in all.iter_mut().filter(|one| one.file.is_none()) {
        one.file = one.again.and_then(|(_, input)| printed(input, &known)).map(|file| (file, NONE));
    }
    all
}

impl<'a> ShownResult<'a> {
    fn of(item: usize, age: usize, call: &AnsweredCall<'a>) -> Self {
        let raw = call.call.raw_input().unwrap_or_default();
        let input: FileInput<'a> = serde_json::from_str(raw).unwrap_or_default();
        let number = |field: Option<&RawValue>| field.and_then(|field| field.get().parse().ok());
        let (does, lines) = match call.tool {
            tool_names::READ => {
                let first: u64 = number(input.offset).unwrap_or(0);
                (FileUse::Reads, (first, number(input.limit).map_or(u64::MAX, |limit| first.saturating_add(limit))))
            }
            tool_names::WRITE => (FileUse::Writes, ALL),
            tool_names::EDIT | "MultiEdit" | "NotebookEdit" => (FileUse::Changes, NONE),
            tool_names::BASH | "PowerShell" => (FileUse::Runs, NONE),
            _ => (FileUse::Looks, NONE),
        };
        let is_again = matches!(does, FileUse::Looks | FileUse::Runs);
        let again = is_again.then_some((call.tool, raw));
        let path = input.file_path.and_then(text).or_else(|| input.notebook_path.and_then(text));
        let file = path.filter(|_| !is_again).map(|path| (path, lines));
        Self { place: (item, call.id), age, bytes: call.shown.size().result_bytes, does, file, again }
    }
}

/// A text, without a copy where nothing in it is escaped.
fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let raw = raw.get();
    serde_json::from_str(raw).map(Cow::Borrowed).or_else(|_| serde_json::from_str(raw).map(Cow::Owned)).ok()
}

/// A file's name, without the folders.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The files among those shown that the user's last words name, by their names without folders.
fn named<'s>(view: &View, shown: &'s [ShownResult<'_>]) -> HashSet<&'s str> {
    let files: HashSet<&str> = shown.iter().filter_map(|one| Some(name(&one.file.as_ref()?.0))).collect();
    let texts = view.user_messages().next_back().map(|said| said.blocks().iter().filter_map(Block::as_text));
    let is_between = |c: char| !(c.is_alphanumeric() || "._-+@[]$".contains(c));
    let mut named = HashSet::new();
    for text in texts.into_iter().flatten() {
        let words = text.split(is_between).map(|word| word.trim_end_matches('.'));
        named.extend(words.filter_map(|word| files.get(word).copied()));
    }
    named
}

/// The files that were changed in the last rounds.
fn edited<'s>(shown: &'s [ShownResult<'_>], rounds: usize) -> HashSet<&'s str> {
    let changes = |one: &&ShownResult<'_>| matches!(one.does, FileUse::Changes | FileUse::Writes);
    let newest = shown.iter().take_while(|one| one.age < rounds).filter(changes);
    newest.filter_map(|one| Some(&*one.file.as_ref()?.0)).collect()
}

/// Commands that print a file.
const PRINTS: [&str; 7] = ["cat", "sed", "head", "tail", "nl", "less", "bat"];

/// The file that a command prints, among those that tools have named.
fn printed<'a>(call: &str, known: &HashSet<Cow<'a, str>>) -> Option<Cow<'a, str>> {
    let is_between = |c: char| c.is_whitespace() || "\"'`;|&(){}<>=,:\\".contains(c);
    let words: Vec<&str> = call.split(is_between).filter(|word| !word.is_empty()).collect();
    if !words.iter().any(|word| PRINTS.contains(word)) {
        return None;
    }
    let is_named = |path: &&Cow<'a, str>| {
        let named = |word: &str| word.contains('.') && path.ends_with(word.trim_start_matches("./"));
        words.iter().any(|word| named(word) && at_a_name(path, word))
    };
    known.iter().filter(is_named).min().cloned()
}

/// True if a path ends with a word that consists of whole path components.
fn at_a_name(path: &str, word: &str) -> bool {
    let before = path.len() - word.trim_start_matches("./").len();
    before == 0 || word.starts_with('/') || path.as_bytes()[before - 1] == b'/'
}

fn covers(lines: &LineRange, others: &LineRange) -> bool {
    lines.0 <= others.0 && others.1 <= lines.1
}

/// The results that a newer one supersedes; `shown` has the newest first.
fn superseded<'a>(shown: &[ShownResult<'a>]) -> HashSet<ResultPlace<'a>> {
    let mut read: HashMap<&str, Vec<LineRange>> = HashMap::new();
    let mut asked = HashSet::new();
    let mut superseded = HashSet::new();
    for one in shown {
        let is_covered = match (&one.file, &one.again) {
            // What a command said before may tell what has changed since; it stays while it is young.
            (_, Some(call)) => !asked.insert(*call) && (one.does != FileUse::Runs || one.age >= YOUNG_ROUNDS),
            (Some((path, lines)), None) => {
                let newer = read.entry(path).or_default();
                let is_covered = newer.iter().any(|newer| covers(newer, lines));
                if *lines != NONE && !is_covered {
                    newer.retain(|newer| !covers(lines, newer));
                    newer.push(*lines);
                }
                is_covered && one.does == FileUse::Reads
            }
            (None, None) => false,
        };
        if is_covered {
            superseded.insert(one.place);
        }
    }
    superseded
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use transcript::line::{Body, TextSource};
    use transcript::{Id, Log, Outcome};

    const RATES: Rates = Rates { write: 1.25, read: 0.1, output: 5.0 };

    /// A session of calls, each a reply of its own.
    #[derive(Default)]
    struct CallsOfSession {
        log: Log,
        calls: usize,
    }

    impl CallsOfSession {
        fn write(&mut self, body: Body) {
            let id = Id::from(format!("line-{}", self.log.lines().len()));
            let parent = self.log.tip().cloned();
            self.log.append(transcript::line::Line::new(id, parent, jiff::Timestamp::UNIX_EPOCH, body));
        }

        fn say(&mut self, text: &str) {
            self.write(Body::User { blocks: vec![Block::text(text)], source: TextSource::Direct });
        }

        fn call(&mut self, tool: &str, input: &Value, bytes: usize) -> String {
            self.calls += 1;
            let id = format!("call-{}", self.calls);
            let blocks = vec![transcript::Block::tool_use(&id, tool, input)];
            let reply = Id::from(format!("reply-{}", self.calls));
            self.write(Body::Assistant { id: reply, model: "m".into(), blocks, usage: None, stop: None });
            let text = transcript::Block::text("x".repeat(bytes));
            let blocks = vec![transcript::Block::tool_result(&id, &[text], Outcome::Done)];
            self.write(Body::User { blocks, source: TextSource::Direct });
            id
        }

        fn read(&mut self, path: &str, bytes: usize) -> String {
            self.call("Read", &json!({"file_path": path}), bytes)
        }

        fn part(&mut self, path: &str, offset: u64) -> String {
            self.call("Read", &json!({"file_path": path, "offset": offset, "limit": 100}), 2_000)
        }

        /// Rounds in which none of the files is touched.
        fn elsewhere(&mut self, rounds: usize) {
            for round in 0..rounds {
                let command = format!("make {} {round}", self.calls);
                self.call("Bash", &json!({"command": command}), 1_000);
            }
        }

        fn superseded(&self) -> Vec<String> {
            ids(&RereadCosts::of(self.log.view(), &RATES, &ClearNumbers::default()).superseded)
        }

        fn held(&self, caution: f64) -> Vec<String> {
            let costs = RereadCosts::of(self.log.view(), &RATES, &ClearNumbers::default());
            let is_held = |(item, id): &ResultPlace<'_>| costs.is_held(*item, id, caution);
            ids(&costs.held_from.keys().copied().filter(is_held).collect())
        }
    }

    fn ids(places: &HashSet<ResultPlace<'_>>) -> Vec<String> {
        let mut places: Vec<_> = places.iter().copied().collect();
        places.sort_unstable();
        places.into_iter().map(|(_, id)| id.to_owned()).collect()
    }

    /// MICRO-8: a file read again, wholly or as far as the older one went, or written whole, makes the older result
    /// needless; so does the same search, listing or command. Another part, another command, or an edit does not.
    #[test]
    fn what_a_newer_result_shows_is_superseded() {
        let mut work = CallsOfSession::default();
        let whole = work.read("/p/a.rs", 900);
        let part = work.part("/p/b.rs", 100);
        let listing = work.call("Glob", &json!({"pattern": "*.rs"}), 900);
        let test = work.call("Bash", &json!({"command": "cargo test"}), 900);
        let written = work.read("/p/d.rs", 900);
        work.call("Edit", &json!({"file_path": "/p/c.rs", "old_string": "a", "new_string": "b"}), 900);
        assert_eq!(work.superseded(), Vec::<String>::new());
        work.part("/p/b.rs", 300);
        work.call("Bash", &json!({"command": "cargo test -q"}), 900);
        work.call("Edit", &json!({"file_path": "/p/a.rs", "old_string": "a", "new_string": "b"}), 900);
        assert_eq!(work.superseded(), Vec::<String>::new());
        work.read("/p/a.rs", 900);
        work.read("/p/b.rs", 900);
        work.call("Glob", &json!({"pattern": "*.rs"}), 900);
        work.call("Bash", &json!({"command": "cargo test"}), 900);
        work.call("Write", &json!({"file_path": "/p/d.rs", "content": "all"}), 40);
        assert_eq!(work.superseded(), [whole, part, listing, test, written, "call-7".into()]);
    }

    /// MICRO-8: what shows a file stays until carrying it has cost as much as reading it again, as likely as that is: a
    /// small one long, a large one some rounds, one that was edited just now longer; with more caution longer, without
    /// any not at all.
    #[test]
    fn what_shows_a_file_stays_until_its_rent_is_paid() {
        let mut work = CallsOfSession::default();
        let large = work.read("/p/large.rs", 40_000);
        let (medium, small) = (work.read("/p/medium.rs", 3_200), work.read("/p/small.rs", 400));
        work.elsewhere(6);
        assert_eq!(work.held(1.0), std::slice::from_ref(&small));
        assert_eq!(work.held(4.0), [medium.clone(), small.clone()]);
        assert_eq!(work.held(0.0), Vec::<String>::new());
        let edit = |file: &str| json!({"file_path": file, "old_string": "a", "new_string": "b"});
        work.call("Edit", &edit("/p/medium.rs"), 300);
        work.call("Edit", &edit("/p/large.rs"), 300);
        assert_eq!(work.held(1.0), [medium, small.clone()], "it is being worked on");
        work.elsewhere(5);
        assert_eq!(work.held(1.0), [small], "that was five rounds ago");
        work.elsewhere(300);
        assert_eq!(work.held(1.0), Vec::<String>::new(), "carried for so long, it has cost more than that");
        assert!(!work.held(1.0).contains(&large));
    }

    /// MICRO-8: a file that the user's last words name stays longer than another of its size: with its folders or without,
    /// but not as a part of another name, and not by words before the last.
    #[test]
    fn what_the_user_names_stays_longer() {
        let mut work = CallsOfSession::default();
        work.say("Look at other.rs.");
        let (named, other) = (work.read("/p/src/named.rs", 2_000), work.read("/p/src/other.rs", 2_000));
        work.elsewhere(8);
        assert_eq!(work.held(1.0), std::slice::from_ref(&other), "the words before");
        for words in ["Mend `src/named.rs`, please", "It is in named.rs.", "named.rs:12 fails"] {
            work.say(words);
            assert_eq!(work.held(1.0), std::slice::from_ref(&named), "{words}");
        }
        work.say("See renamed.rs and named.rs.old");
        assert_eq!(work.held(1.0), Vec::<String>::new());
    }

    /// MICRO-8: a command that prints a file shows it as reading does; a search in it, and a command that names it, do not.
    #[test]
    fn a_command_that_prints_a_file_shows_it() {
        let mut work = CallsOfSession::default();
        let known = work.read("/p/src/lib.rs", 250);
        let printed = work.call("Bash", &json!({"command": "cd /p && sed -n '10,40p' src/lib.rs"}), 250);
        work.call("Grep", &json!({"pattern": "fn", "path": "/p/src/lib.rs"}), 900);
        work.call("Bash", &json!({"command": "cargo build # src/lib.rs"}), 900);
        work.call("Bash", &json!({"command": "cat other/xlib.rs"}), 900);
        assert_eq!(work.held(1.0), [known, printed]);
    }
}
