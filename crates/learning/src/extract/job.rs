//! One run of learning as data: its turns, the context shown with them, and the text that no memory may be made from.
//! Built from a log alone, and judged turn by turn before a model is asked.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use memory::echo_check::InjectedWords;
use memory::quoted_sentences::TypedMessages;
use serde_json::Value;
use session::LineMeta;
use settings::ExtractFilter;
use tools::Scope;
use transcript::block::Kind;
use transcript::commit::{Act, Commit};
use transcript::line::{Body, Line, TextSource};
use transcript::{Block, Id, Log, Purpose, Request, tool_names};

use super::note::Note;
use super::turn_text;
use super::turns::{LATER, LoggedTurn, Turns};
use crate::excluded_sessions::ExcludedSessions;

/// Number of earlier turns shown with the new ones.
const BEFORE: usize = 2;
/// Characters of conversation shown in one run; the rest is for the next.
const CHARACTERS: usize = 60_000;

/// One run of learning.
pub(crate) struct Job {
    /// The session it is about.
    pub(crate) session: String,
    /// The session's file.
    pub(crate) file: PathBuf,
    /// Its working directory.
    pub(crate) directory: PathBuf,
    /// The turns that are new, in order.
    pub(crate) turns: Vec<NewTurn>,
    /// The turns before them.
    pub(crate) before: Vec<NewTurn>,
    /// The conversation itself, if a fork of it is cheaper.
    pub(crate) fork: Option<Request>,
    /// The texts shown to the model, and the user's words.
    pub(crate) texts: SessionTexts,
}

/// A turn, with what it is judged by.
#[derive(Debug, Clone)]
pub(crate) struct NewTurn {
    /// The line of the user's first words.
    pub(crate) id: Id,
    /// Its text for the model.
    pub(crate) text: String,
    /// Number of messages of the user and the model in it.
    pub(crate) messages: usize,
    /// The user's first words, and their time.
    pub(crate) first: (String, Option<Timestamp>),
    /// Time of the user's newest words.
    pub(crate) newest: Option<Timestamp>,
    /// The newest message in it.
    pub(crate) last: Option<Id>,
    /// The user's words.
    typed: String,
    calls: Vec<(String, String, Value)>,
    /// Number of calls before the user's last words.
    calls_before_words: usize,
    shown: Vec<Block>,
    /// Texts that came with its messages: files that they name, the user's own commands, reports.
    beside: Vec<String>,
}

impl NewTurn {
    fn of(log: &Log, turn: &LoggedTurn, zone: &TimeZone) -> Self {
        let mut new = Self {
            id: turn.id.clone(),
            text: turn_text::turn_text(log, turn, zone),
            messages: 0,
            first: (String::new(), None),
            newest: None,
            last: None,
            typed: String::new(),
            calls: Vec::new(),
            calls_before_words: 0,
            shown: Vec::new(),
            beside: Vec::new(),
        };
        for line in &log.lines()[turn.lines.clone()] {
            new.take(line);
        }
        new
    }

    fn take(&mut self, line: &Line) {
        match &line.body {
            Body::User { blocks, source: TextSource::Direct } => {
                let words = turn_text::words_of(blocks);
                self.shown.extend(blocks.iter().filter(|block| *block.kind() != Kind::Text).cloned());
                if !words.trim().is_empty() {
                    if self.typed.is_empty() {
                        self.first = (words.clone(), line.time);
                    }
                    self.typed = format!("{}{words}\n", self.typed);
                    self.newest = line.time;
                    self.calls_before_words = self.calls.len();
                    self.messages += 1;
                }
            }
            Body::User { blocks, source: TextSource::Injected } | Body::Attachment { blocks }
                if LineMeta::purpose_of(line).is_some_and(Purpose::shows_others) =>
            {
                self.beside.push(turn_text::words_of(blocks));
            }
            Body::Commit(Commit { act: Act::Restore { blocks }, .. }) => self.beside.push(turn_text::words_of(blocks)),
            Body::Assistant { blocks, .. } => {
                for block in blocks {
                    if let Kind::ToolUse { id, name } = block.kind() {
                        self.calls.push((id.to_string(), name.to_string(), block.input().unwrap_or_default()));
                    }
                }
                self.messages += 1;
                self.last.clone_from(&line.id);
            }
            _ => {}
        }
    }
}

/// True if a turn began long after another.
fn is_later(turn: &NewTurn, other: &NewTurn) -> bool {
    let gap = turn.newest.zip(other.first.1).map(|(before, after)| after.duration_since(before));
    gap.is_some_and(|gap| gap >= LATER)
}

impl Job {
    /// A run about turns of a log, as many of the first as fit in one.
    pub(crate) fn new(
        session: (&str, &Path),
        directory: &Path,
        log: &Log,
        all: &Turns,
        turns: &[LoggedTurn],
        zone: &TimeZone,
    ) -> Option<Self> {
        let mut new: Vec<NewTurn> = Vec::new();
        let mut length = 0;
        for turn in turns {
            let turn = NewTurn::of(log, turn, zone);
            length += turn.text.chars().count();
            if new.last().is_some_and(|last| length > CHARACTERS || is_later(last, &turn)) {
                break;
            }
            new.push(turn);
        }
        let before = all.before(log, turns.first()?, BEFORE).into_iter().map(|turn| NewTurn::of(log, turn, zone));
        Some(Self {
            session: session.0.to_owned(),
            file: session.1.to_owned(),
            directory: directory.to_owned(),
            before: before.collect(),
            turns: new,
            fork: None,
            texts: SessionTexts::of(log, session.0),
        })
    }

    /// Ids of its turns.
    pub(crate) fn ids(&self) -> Vec<Id> {
        self.turns.iter().map(|turn| turn.id.clone()).collect()
    }

    /// Characters of conversation it shows.
    pub(crate) fn characters(&self) -> usize {
        self.turns.iter().chain(&self.before).map(|turn| turn.text.len()).sum()
    }

    /// Drops turns that are covered by now.
    pub(crate) fn without(mut self, known: &HashSet<Id>) -> Option<Self> {
        self.turns.retain(|turn| !known.contains(&turn.id));
        (!self.turns.is_empty()).then_some(self)
    }

    /// Drops the turns that nothing is learnt from, and returns notes that say which and why. Excluded turns are not
    /// shown as context either. It may read files.
    pub(crate) fn judge(&mut self, judge: &TurnJudge<'_>) -> Vec<Note> {
        let place = (self.file.as_path(), self.directory.as_path());
        let touched = |turn: &NewTurn| judge.touches(turn, place);
        self.before.retain(|turn| !touched(turn));
        let mut notes: Vec<Note> = Vec::new();
        let mut forkable = true;
        self.turns.retain(|turn| {
            let is_excluded = touched(turn);
            forkable &= !is_excluded;
            let why = match is_excluded {
                true => Some("it touched what nothing is learnt from"),
                false => judge.passes_over(turn),
            };
            notes.extend(why.map(|why| Note::skipped(vec![turn.id.clone()], why.to_owned())));
            why.is_none()
        });
        if !forkable || !judge.apart.exclusions().is_empty() {
            self.fork = None;
        }
        notes
    }
}

/// Judge of turns that nothing is learnt from.
pub(crate) struct TurnJudge<'a> {
    pub(crate) apart: &'a ExcludedSessions,
    pub(crate) scope: &'a Scope,
    /// The memory directory, links followed.
    pub(crate) memory: &'a Path,
    pub(crate) filter: ExtractFilter,
}

impl TurnJudge<'_> {
    /// True if a turn touched what is excluded, or showed something of it.
    fn touches(&self, turn: &NewTurn, (file, directory): (&Path, &Path)) -> bool {
        let exclusions = self.apart.exclusions();
        if exclusions.is_empty() {
            return false;
        }
        let places = [self.scope.project(), directory];
        let calls: HashSet<&str> = turn.calls.iter().map(|(id, ..)| &**id).collect();
        let has_media = turn.shown.iter().any(|block| matches!(block.kind(), Kind::Image | Kind::Document));
        places.iter().any(|place| {
            exclusions.holds(place)
                || turn.calls.iter().any(|(_, _, input)| exclusions.touched_by(input, place))
                || turn.shown.iter().any(|block| exclusions.shown_in(&block.result_text(), place))
                || turn.beside.iter().any(|text| exclusions.shown_beside(text, place))
                || has_media && exclusions.named_in(&turn.typed, place) // a picture by its name
        }) || self.apart.sent_out_to_it(file, &calls)
    }

    /// The reason nothing is learnt from a turn, whatever was said in it.
    fn passes_over(&self, turn: &NewTurn) -> Option<&'static str> {
        let failed = |call: &str| {
            let is_it = |block: &Block| matches!(block.kind(), Kind::ToolResult { id, failed: true } if **id == *call);
            turn.shown.iter().any(is_it)
        };
        // What the user said after the model saved something was not saved with it.
        let mut written = turn.calls[turn.calls_before_words..]
            .iter()
            .filter(|(id, tool, _)| matches!(tool.as_str(), tool_names::WRITE | tool_names::EDIT) && !failed(id));
        let place = |input: &Value| Some(self.scope.place(input["file_path"].as_str()?).1);
        if written.any(|(_, _, input)| place(input).is_some_and(|real| real.starts_with(self.memory))) {
            return Some("memories were saved in the conversation itself");
        }
        let worth_it = self.filter == ExtractFilter::Open || memory::extraction_prompt::signals(&turn.typed);
        (!worth_it).then_some("nothing in it looked worth it")
    }
}

/// Texts of a session: those shown to the model, and those the user typed.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionTexts {
    injected: Vec<Block>,
    typed: Vec<(Block, Option<Timestamp>, Option<Id>)>,
    session: String,
}

impl SessionTexts {
    /// Those of a log. Text from private turns, or from another file, counts as shown to the model.
    pub(crate) fn of(log: &Log, session: &str) -> Self {
        let mut texts = Self { session: session.to_owned(), ..Self::default() };
        let mut private = false;
        let elsewhere = log.lines().iter().rposition(|line| Note::of(line) == Some(Note::Continued)).unwrap_or(0);
        for (index, line) in log.lines().iter().enumerate() {
            if let Some(Note::Private { on }) = Note::of(line) {
                private = on;
            }
            match &line.body {
                Body::Attachment { blocks }
                | Body::User { blocks, source: TextSource::Injected | TextSource::Summary } => {
                    texts.injected.extend(blocks.iter().cloned());
                }
                Body::User { blocks, source: TextSource::Direct } => {
                    for block in blocks {
                        let own = *block.kind() == Kind::Text && !private && index >= elsewhere;
                        match own {
                            true => texts.typed.push((block.clone(), line.time, line.id.clone())),
                            false => texts.injected.push(block.clone()),
                        }
                    }
                }
                _ => {}
            }
        }
        texts
    }

    /// Texts of a conversation in which nobody types.
    pub(crate) fn without_typed(self) -> Self {
        Self { typed: Vec::new(), ..self }
    }

    /// Word sequences that no memory may be made from.
    pub(crate) fn injected(&self) -> InjectedWords {
        let mut injected = InjectedWords::default();
        self.injected.iter().for_each(|block| injected.add(&text(block)));
        self.typed.iter().for_each(|(block, ..)| injected.leave_out_user_text(&text(block)));
        injected
    }

    /// Messages that the user typed.
    pub(crate) fn typed(&self) -> TypedMessages {
        let mut typed = TypedMessages::default();
        for (block, at, id) in &self.typed {
            typed.add(&text(block), *at, Some(&self.session), id.as_ref().map(ToString::to_string).as_deref());
        }
        typed
    }
}

/// The text of a block, also of a tool's result.
fn text(block: &Block) -> String {
    match block.kind() {
        Kind::ToolResult { .. } => block.result_text(),
        _ => block.as_text().unwrap_or_default(),
    }
}
