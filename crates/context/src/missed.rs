//! Which old results will be missed, and which will not.
//!
//! A result is **superseded** when a newer one that is in view shows the same: the file read again, or written whole; the
//! same search, listing, page or command once more. Nobody misses it.
//!
//! A result that shows text of a file will be missed at the next edit, and for want of it the file is read again. How
//! likely that is hardly depends on how large the result is, nor, after the first few rounds, on how old; what it costs to
//! carry does. So it stays until carrying it has cost as much as the round in which it would be read again, times the
//! likelihood of that round: the small ones long, the large ones a few rounds. Whoever pays rent until it reaches the price
//! never pays much more than one who knows the future.
//!
//! Rules over calls and their inputs: no model is asked, and no file is looked at.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use transcript::view::{Answered, Stands, View};

use crate::clear::YOUNG_ROUNDS;
use crate::worth::Rates;

/// How likely a file is read or edited again from what an old result of it showed: two to three of five were in recorded
/// sessions. The only number here that was fitted, on half of them: higher frees less, lower is missed more.
const LIKELY: f64 = 0.6;
/// What the call that reads it again is written with, in tokens.
const CALL_OUTPUT: f64 = 150.0;
/// Bytes a token, as results have them.
const RESULT_BYTES: f64 = 3.0;

/// What decides which results go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rule {
    /// What will be missed.
    #[default]
    Use,
    /// How old they are, and nothing else; to compare with.
    Age,
}

/// How much is held back of what will be missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// All that the rules say.
    All,
    /// What is half as likely to be missed goes.
    Half,
    /// Nothing: what is old goes.
    Nothing,
}

/// What is known of a result by its place: the item of its reply, and its call's id there.
type Place<'a> = (usize, &'a str);

/// What may go though it is young, and what is to stay though it is old.
#[derive(Debug, Default)]
pub struct Missed<'a> {
    superseded: HashSet<Place<'a>>,
    held: HashSet<Place<'a>>,
}

impl<'a> Missed<'a> {
    /// Looks at what is in view.
    pub fn of(view: &'a View, rates: &Rates, held: Held) -> Self {
        let shown = shown(view);
        let superseded = superseded(&shown);
        let likely = match held {
            Held::All => LIKELY,
            Held::Half => LIKELY / 2.0,
            Held::Nothing => 0.0,
        };
        let again = likely * (view.tally().count() as f64 * rates.read + CALL_OUTPUT * rates.output);
        let carried = |one: &Shown<'_>| one.bytes as f64 / RESULT_BYTES * one.age as f64 * rates.read;
        let is_held = |one: &&Shown<'_>| {
            let shows_file = one.file.is_some() && matches!(one.does, Does::Reads | Does::Runs);
            shows_file && carried(one) <= again && !superseded.contains(&one.place)
        };
        let held = shown.iter().filter(is_held).map(|one| one.place).collect();
        Self { superseded, held }
    }

    /// Whether a newer result shows what this one does.
    pub fn is_superseded(&self, item: usize, id: &str) -> bool {
        self.superseded.contains(&(item, id))
    }

    /// Whether a result stays though it is old.
    pub fn is_held(&self, item: usize, id: &str) -> bool {
        self.held.contains(&(item, id))
    }
}

/// A result in view, with what it shows.
struct Shown<'a> {
    place: Place<'a>,
    /// How many rounds ago; 0 is the newest.
    age: usize,
    bytes: usize,
    does: Does,
    /// The file it shows text of, and which lines.
    file: Option<(String, Lines)>,
    /// The same call again shows the same, later.
    again: Option<String>,
}

/// What a call does with its file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Reads,
    Changes,
    /// Its input has the whole file.
    Writes,
    Looks,
    Runs,
}

/// Lines of a file, from the first to behind the last.
type Lines = (u64, u64);

const ALL: Lines = (0, u64::MAX);
/// Which lines is not known.
const NONE: Lines = (0, 0);

/// The results that are in view as the tools returned them, the newest first.
fn shown(view: &View) -> Vec<Shown<'_>> {
    let replies = view.visible().rev().filter(|entry| entry.stands() == Stands::Reply);
    let mut all: Vec<Shown<'_>> = Vec::new();
    for (age, entry) in replies.enumerate() {
        let whole = |call: &Answered<'_>| call.result.is_some_and(|result| result.is_same(call.shown));
        all.extend(entry.calls().rev().filter(whole).map(|call| Shown::of(entry.index(), age, &call)));
    }
    let known: HashSet<String> = all.iter().filter_map(|one| Some(one.file.as_ref()?.0.clone())).collect();
    for one in all.iter_mut().filter(|one| one.file.is_none()) {
        one.file = one.again.as_ref().and_then(|call| printed(call, &known)).map(|file| (file, NONE));
    }
    all
}

impl<'a> Shown<'a> {
    fn of(item: usize, age: usize, call: &Answered<'a>) -> Self {
        let input = call.call.input().unwrap_or_default();
        let path = ["file_path", "notebook_path"].iter().find_map(|key| input.get(key)?.as_str().map(str::to_owned));
        let number = |key: &str| input.get(key).and_then(Value::as_u64);
        let (does, lines) = match call.tool {
            "Read" => {
                let first = number("offset").unwrap_or(0);
                (Does::Reads, (first, number("limit").map_or(u64::MAX, |limit| first.saturating_add(limit))))
            }
            "Write" => (Does::Writes, ALL),
            "Edit" | "MultiEdit" | "NotebookEdit" => (Does::Changes, NONE),
            "Bash" | "PowerShell" => (Does::Runs, NONE),
            _ => (Does::Looks, NONE),
        };
        let is_again = matches!(does, Does::Looks | Does::Runs);
        let again = is_again.then(|| format!("{} {input}", call.tool));
        let file = path.filter(|_| !is_again).map(|path| (path, lines));
        Self { place: (item, call.id), age, bytes: call.shown.size().result_bytes, does, file, again }
    }
}

/// Commands that print a file.
const PRINTS: [&str; 7] = ["cat", "sed", "head", "tail", "nl", "less", "bat"];

/// The file, of those that tools have named, that a command prints text of.
fn printed(call: &str, known: &HashSet<String>) -> Option<String> {
    let is_between = |c: char| c.is_whitespace() || "\"'`;|&(){}<>=,:\\".contains(c);
    let words: Vec<&str> = call.split(is_between).filter(|word| !word.is_empty()).collect();
    if !words.iter().any(|word| PRINTS.contains(word)) {
        return None;
    }
    let is_named = |path: &&String| {
        let named = |word: &str| word.contains('.') && path.ends_with(word.trim_start_matches("./"));
        words.iter().any(|word| named(word) && at_a_name(path, word))
    };
    known.iter().filter(is_named).min().cloned()
}

/// Whether a path ends with a word that is one or more whole names of it.
fn at_a_name(path: &str, word: &str) -> bool {
    let before = path.len() - word.trim_start_matches("./").len();
    before == 0 || word.starts_with('/') || path.as_bytes()[before - 1] == b'/'
}

/// The results that a newer one makes needless. They come the newest first.
fn superseded<'a>(shown: &[Shown<'a>]) -> HashSet<Place<'a>> {
    let mut read: HashMap<&str, Vec<Lines>> = HashMap::new();
    let mut asked: HashSet<&str> = HashSet::new();
    let mut superseded = HashSet::new();
    for one in shown {
        let is_covered = match (&one.file, &one.again) {
            // What a command said before may tell what has changed since; it stays while it is young.
            (_, Some(call)) => !asked.insert(call) && (one.does != Does::Runs || one.age >= YOUNG_ROUNDS),
            (Some((path, lines)), None) => {
                let newer = read.entry(path).or_default();
                let is_covered = newer.iter().any(|newer| newer.0 <= lines.0 && lines.1 <= newer.1);
                newer.extend((*lines != NONE).then_some(*lines));
                is_covered && one.does == Does::Reads
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
    use serde_json::json;
    use transcript::line::{Body, Source};
    use transcript::{Id, Log, Outcome};

    const RATES: Rates = Rates { write: 1.25, read: 0.1, output: 5.0 };

    /// A session of calls, each a reply of its own.
    #[derive(Default)]
    struct Work {
        log: Log,
        calls: usize,
    }

    impl Work {
        fn write(&mut self, body: Body) {
            let id = Id::from(format!("line-{}", self.log.lines().len()));
            let parent = self.log.tip().cloned();
            self.log.append(transcript::line::Line::new(id, parent, jiff::Timestamp::UNIX_EPOCH, body));
        }

        fn call(&mut self, tool: &str, input: &Value, bytes: usize) -> String {
            self.calls += 1;
            let id = format!("call-{}", self.calls);
            let blocks = vec![transcript::Block::tool_use(&id, tool, input)];
            let reply = Id::from(format!("reply-{}", self.calls));
            self.write(Body::Assistant { id: reply, model: "m".into(), blocks, usage: None, stop: None });
            let text = transcript::Block::text("x".repeat(bytes));
            let blocks = vec![transcript::Block::tool_result(&id, &[text], Outcome::Done)];
            self.write(Body::User { blocks, source: Source::Said });
            id
        }

        fn read(&mut self, path: &str, bytes: usize) -> String {
            self.call("Read", &json!({"file_path": path}), bytes)
        }

        fn part(&mut self, path: &str, offset: u64) -> String {
            self.call("Read", &json!({"file_path": path, "offset": offset, "limit": 100}), 2_000)
        }

        /// Rounds in which nothing of the files is touched.
        fn elsewhere(&mut self, rounds: usize) {
            for round in 0..rounds {
                let command = format!("make {} {round}", self.calls);
                self.call("Bash", &json!({"command": command}), 1_000);
            }
        }

        fn superseded(&self) -> Vec<String> {
            ids(&Missed::of(self.log.view(), &RATES, Held::All).superseded)
        }

        fn held(&self, held: Held) -> Vec<String> {
            ids(&Missed::of(self.log.view(), &RATES, held).held)
        }
    }

    fn ids(places: &HashSet<Place<'_>>) -> Vec<String> {
        let mut places: Vec<_> = places.iter().copied().collect();
        places.sort_unstable();
        places.into_iter().map(|(_, id)| id.to_owned()).collect()
    }

    /// MICRO-8: a file read again, wholly or as far as the older one went, or written whole, makes the older result
    /// needless; so does the same search, listing or command. Another part, another command, or an edit does not.
    #[test]
    fn what_a_newer_result_shows_is_superseded() {
        let mut work = Work::default();
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

    /// MICRO-8: what showed a file stays until carrying it has cost as much as reading it again, as likely as that is: a
    /// small one long, a large one some rounds, whatever else is there; in half the room half as long; then it goes.
    #[test]
    fn what_shows_a_file_stays_until_its_rent_is_paid() {
        let mut work = Work::default();
        let large = work.read("/p/large.rs", 40_000);
        let (first, second) = (work.part("/p/a.rs", 0), work.part("/p/a.rs", 100));
        let edit = json!({"file_path": "/p/a.rs", "old_string": "a", "new_string": "b"});
        work.call("Edit", &edit, 300);
        assert_eq!(work.held(Held::All), [first.clone(), second.clone()], "21,000 tokens are read again for little");
        work.elsewhere(6);
        assert_eq!(work.held(Held::All), [first.clone(), second.clone()]);
        assert_eq!(work.held(Held::Half), [first, second]);
        assert_eq!(work.held(Held::Nothing), Vec::<String>::new());
        work.elsewhere(100);
        assert_eq!(work.held(Held::All), Vec::<String>::new(), "carried for so long, it has cost more than that");
        assert!(!work.held(Held::All).contains(&large));
    }

    /// MICRO-8: a command that prints a file shows it as reading does; a search in it, and a command that names it, do not.
    #[test]
    fn a_command_that_prints_a_file_shows_it() {
        let mut work = Work::default();
        let known = work.read("/p/src/lib.rs", 900);
        let printed = work.call("Bash", &json!({"command": "cd /p && sed -n '10,40p' src/lib.rs"}), 900);
        work.call("Grep", &json!({"pattern": "fn", "path": "/p/src/lib.rs"}), 900);
        work.call("Bash", &json!({"command": "cargo build # src/lib.rs"}), 900);
        work.call("Bash", &json!({"command": "cat other/xlib.rs"}), 900);
        assert_eq!(work.held(Held::All), [known, printed]);
    }
}
