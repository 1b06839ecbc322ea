//! Memory of the layers: one fold over the lines of a session.
//!
//! Whoever appends a line folds it in, and a resumed session folds in the lines of its file: so the layers know the
//! same whoever asks. It holds nothing that the log does not say.

use std::collections::HashSet;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Deserialize;
use transcript::block::Kind;
use transcript::commit::{Act, Commit};
use transcript::line::{Body, Line, TextSource};
use transcript::{Block, Id, Log, Prologue, Usage};

use crate::account::{self, ClearingAccount};
use crate::cache_economics::TurnPace;
use crate::fact::Fact;
use crate::standing_instructions::{self, StandingInstruction};
use crate::summary_text;

/// Forks whose output goes into the notes.
const NOTE_TAKERS: [&str; 2] = ["notes", DIGESTS];
/// Forks that write digests.
const DIGESTS: &str = "clear";

/// Background runs that write memories, of this session and of earlier ones.
const LEARNERS: [&str; 2] = ["extract", "extract-earlier"];

/// Memory of the layers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// Time of the newest reply.
    pub replied_at: Option<Timestamp>,
    /// Lengths of turns.
    pub pace: TurnPace,
    /// Progress of the notes.
    pub progress: NotesProgress,
    /// True if notes may mention something that was taken back since they were written.
    pub outdated: bool,
    /// The last line that notes cover.
    pub covered: Option<Id>,
    /// Usage of all requests, forks included.
    pub used: Usage,
    /// The part of it that was used for notes.
    pub used_by_notes: Usage,
    /// The part of it that was used for extraction.
    pub used_by_extract: Usage,
    /// Savings by notes, in tokens of uncached input.
    pub saved_by_notes: u64,
    /// Compactions in a row that failed or freed too little.
    pub failures: u32,
    /// True if the user was told that there will be no more automatic ones.
    pub is_reported: bool,
    /// Replies since the newest compaction was made or tried; none if there was none.
    pub rounds_since: Option<u32>,
    /// Files that were read or written, the oldest first, each with the call that did it.
    pub seen: Vec<(Option<String>, PathBuf)>,
    /// The window in use: its size, and the same without room for a reply.
    pub window: Option<(u64, u64)>,
    /// The span that is to be collapsed next.
    pub staged: Option<StagedSpan>,
    /// Account of clearing.
    pub clearing: ClearingAccount,
    /// Standing instructions, the oldest first.
    pub standing: Vec<StandingInstruction>,
    /// Other words of the user's that may be such instructions, the oldest first.
    pub other_words: Vec<StandingInstruction>,
    /// Sentences of the user's that the newest compaction left word for word.
    pub words_in_summary: HashSet<String>,
    /// Line of the newest reply when sent bytes were last changed.
    pub changed_behind: Option<Id>,
    /// The newest prologue.
    prologue: Option<Prologue>,
    newest: Option<Id>,
    newest_line: Option<Id>,
}

/// A span that is to be collapsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedSpan {
    /// Its first line.
    pub first: Id,
    /// Its last one.
    pub last: Id,
    /// State of its summary.
    pub summary: Summary,
}

/// State of a span's summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Summary {
    /// It is being written.
    Awaited,
    /// It is ready.
    Written(String),
    /// It could not be written.
    Failed,
}

/// Progress of the notes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NotesProgress {
    /// The conversation's tokens at the last update.
    pub tokens: Option<u64>,
    /// Calls since.
    pub calls: u32,
    /// True if the newest reply made calls.
    pub calling: bool,
    /// True if they were updated since only a compaction can make room.
    pub ready: bool,
}

/// Fields of a line besides its message, as far as they matter here.
#[derive(Deserialize)]
struct SideFields {
    seen: ReadFile,
}

#[derive(Deserialize)]
struct ReadFile {
    path: PathBuf,
}

impl State {
    /// The state after these lines.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Self {
        let mut state = Self::default();
        lines.into_iter().for_each(|line| state.fold(line));
        state
    }

    /// The state after a log, in which the user may have gone back.
    pub fn of_log(log: &Log) -> Self {
        let mut state = Self::of(log.lines());
        if log.lines().iter().any(|line| matches!(&line.body, Body::Commit(commit) if commit.moves_tip())) {
            state.find_standing(log);
        }
        state
    }

    /// Finds the standing instructions again after the user went back: what was taken back does not count, neither an
    /// instruction nor its lifting.
    pub fn find_standing(&mut self, log: &Log) {
        self.standing.clear();
        self.other_words.clear();
        for line in log.lines().iter().filter(|line| !line.sidechain) {
            match &line.body {
                Body::User { source: TextSource::Direct, .. } => {
                    let is_taken_back = line.id.as_ref().is_some_and(|id| log.view().is_taken_back(id));
                    if !is_taken_back {
                        self.instructed(line);
                    }
                }
                Body::Meta(_) => {
                    if let Some(fact @ Fact::Lifted { .. }) = Fact::of(line) {
                        self.learn(fact);
                    }
                }
                _ => {}
            }
        }
    }

    /// Folds in the next line.
    pub fn fold(&mut self, line: &Line) {
        if line.sidechain {
            return;
        }
        match &line.body {
            Body::Commit(commit) if commit.act.changes_sent() => self.changed_behind.clone_from(&self.newest_line),
            Body::Prologue(prologue) => {
                if self.prologue.as_ref().is_none_or(|known| !known.is_same_prefix(prologue)) {
                    self.changed_behind.clone_from(&self.newest_line);
                }
                self.prologue = Some(prologue.clone());
            }
            Body::Assistant { .. } => self.newest_line.clone_from(&line.id),
            _ => {}
        }
        match &line.body {
            Body::User { blocks, source } => self.user_text(line, blocks, *source),
            Body::Assistant { id, usage, blocks, .. } => self.replied(line.time, id, *usage, blocks),
            Body::Commit(commit) if matches!(commit.act, Act::Compact { .. }) => {
                self.clearing.reset_view();
                // Its summary follows.
                self.words_in_summary.clear();
                self.rounds_since = Some(0);
                self.progress.tokens = self.progress.tokens.map(|_| 0);
                self.progress.ready = false;
                self.staged = None;
            }
            Body::Commit(commit) if matches!(commit.act, Act::Collapse { .. }) => self.staged = None,
            Body::Commit(Commit { act: Act::Clear { results, .. }, reason }) => {
                let idle = account::idle(self.replied_at, line.time);
                self.clearing.cleared(results, reason.freed.unwrap_or_default(), idle);
            }
            Body::Commit(commit) if matches!(commit.act, Act::Rewind { .. } | Act::Undo { .. }) => {
                self.outdated |= matches!(commit.act, Act::Rewind { .. });
                self.clearing.reset_view();
                self.words_in_summary.clear();
            }
            Body::Meta(_) => Fact::of(line).into_iter().for_each(|fact| self.learn(fact)),
            _ => {}
        }
    }

    fn user_text(&mut self, line: &Line, blocks: &[Block], source: TextSource) {
        let call = blocks.iter().find_map(|block| match block.kind() {
            Kind::ToolResult { id, .. } => Some(id.to_string()),
            _ => None,
        });
        blocks.iter().for_each(|block| self.clearing.came(block));
        if call.is_none() && source == TextSource::Direct {
            self.pace.turn();
            self.instructed(line);
        }
        if source == TextSource::Summary {
            let texts: Vec<String> = blocks.iter().filter_map(Block::as_text).collect();
            let sentences =
                texts.iter().flat_map(|text| summary_text::words_in(text)).flat_map(standing_instructions::split);
            self.words_in_summary = sentences.map(|one| one.text.to_owned()).collect();
        }
        let beside = line.extra.as_ref().and_then(|extra| serde_json::from_str::<SideFields>(extra.get()).ok());
        self.seen.extend(beside.map(|beside| (call, beside.seen.path)));
    }

    /// Records instructions that a line gives or lifts.
    fn instructed(&mut self, line: &Line) {
        let Some(id) = &line.id else { return };
        for text in line.typed() {
            for said in standing_instructions::split(&text) {
                let Some(permission) = standing_instructions::permission(said.text) else { continue };
                let is_lifted = |one: &StandingInstruction| {
                    permission.lifts(one.strength) && standing_instructions::is_about(said.text, &one.text)
                };
                self.standing.retain(|one| !is_lifted(one));
                self.other_words.retain(|one| !is_lifted(one));
            }
            let sentences = standing_instructions::sentences(&text);
            let again: HashSet<&str> = sentences.iter().map(|(sentence, _)| *sentence).collect();
            self.standing.retain(|one| !again.contains(one.text.as_str()));
            self.other_words.retain(|one| !again.contains(one.text.as_str()));
            for (sentence, strength) in sentences {
                let list = if strength.is_certain() { &mut self.standing } else { &mut self.other_words };
                list.push(StandingInstruction { text: sentence.to_owned(), strength, line: id.clone() });
            }
        }
        standing_instructions::forget_weakest(&mut self.other_words);
    }

    fn replied(&mut self, at: Option<Timestamp>, id: &Id, usage: Option<Usage>, blocks: &[Block]) {
        let calls = blocks.iter().filter(|block| matches!(block.kind(), Kind::ToolUse { .. })).count();
        self.replied_at = at.or(self.replied_at);
        self.progress.calls += calls as u32;
        self.progress.calling = calls > 0;
        // Several lines may be one reply.
        if self.newest.as_ref() != Some(id) {
            self.newest = Some(id.clone());
            self.pace.round();
            self.used += usage.unwrap_or_default();
            self.rounds_since = self.rounds_since.map(|rounds| rounds + 1);
            self.clearing.answered(&usage.unwrap_or_default());
        }
        self.clearing.called(blocks);
    }

    fn learn(&mut self, fact: Fact) {
        match fact {
            Fact::Side { agent, usage, .. } => {
                self.used += usage;
                if NOTE_TAKERS.contains(&agent.as_str()) {
                    self.used_by_notes += usage;
                }
                if agent == DIGESTS {
                    self.clearing.digests += usage;
                }
                if LEARNERS.contains(&agent.as_str()) {
                    self.used_by_extract += usage;
                }
            }
            Fact::Notes { covers, tokens, ready } => {
                self.outdated &= covers.is_none();
                self.covered = covers.or(self.covered.take());
                self.progress = NotesProgress { tokens: Some(tokens), calls: 0, ready, ..self.progress };
            }
            Fact::CompactionMade { tokens } => {
                (self.failures, self.is_reported) = (0, false);
                self.progress.tokens = self.progress.tokens.map(|_| tokens);
            }
            Fact::CompactionFailed { .. } => {
                self.failures += 1;
                self.rounds_since = Some(0);
            }
            Fact::CompactionStopped => self.is_reported = true,
            Fact::NotesUsed { saved } => self.saved_by_notes += saved,
            Fact::Staged { first, last } => self.staged = Some(StagedSpan { first, last, summary: Summary::Awaited }),
            Fact::Summarised { first, last, summary } => {
                if let Some(staged) = self.staged.as_mut().filter(|one| one.first == first && one.last == last) {
                    staged.summary = summary.map_or(Summary::Failed, Summary::Written);
                }
            }
            Fact::Window { window } | Fact::Refused { window, .. } => self.window = Some(window),
            Fact::Lifted { text } => self.standing.retain(|one| one.text != text),
            Fact::CacheBreak { .. } | Fact::Teammate { .. } => {}
        }
    }
}
