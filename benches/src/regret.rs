//! What is missed of what was cleared, on recorded sessions.
//!
//! Each session is played through the layers in a window of 100,000 tokens, twice: with results cleared by age alone, and
//! by what will be missed. Then the record tells what the model did next. Two things show that something was cleared too
//! early: an edit that replaces a line which only a cleared result had shown, and a file that is read again though its
//! result was in view before. What a summary covers is not counted: it would have gone either way.
//!
//! The recordings lie beside the project; a folder of others can be named in `REGRET_SESSIONS`. The targets are those of
//! several hundred sessions: of a handful the figures are only printed.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use engine::context::Layers;
use engine::context::layer_settings::ClearRule;
use serde_json::Value;
use session::price::file_lines;
use session::record;
use session::replay::{SUMMARY_TOKENS, replay};
use transcript::block::Kind;
use transcript::line::{Body, Line};
use transcript::window::{Window, WindowHints};
use transcript::{Block, Id, Log};

use crate::table::{Row, Unit};

/// Where the recordings lie, from the root of the repository.
const RECORDINGS: &str = "../shared/fixtures/transcripts";
/// Names a folder of others.
const OTHERS: &str = "REGRET_SESSIONS";
const WINDOW: u64 = 100_000;
/// With fewer edits after a clearing nothing is judged.
const ENOUGH_EDITS: u64 = 500;
/// Regret is to be half of what it was, for so much less freed.
const HALF: f64 = 0.5;
const FREED: f64 = 0.9;

/// What was seen in some sessions.
#[derive(Debug, Default)]
struct Seen {
    sessions: u64,
    freed: u64,
    /// Edits after a clearing, and those of them that replace a line which only a cleared result had shown.
    edits: u64,
    missed: u64,
    /// Files read again after their result was cleared.
    reread: u64,
}

/// The figures for both rules.
pub(crate) fn measure(_: &Path) -> Result<Vec<Row>> {
    let mut files = sessions(Path::new(RECORDINGS));
    if let Some(folder) = std::env::var_os(OTHERS) {
        files.extend(sessions(Path::new(&folder)));
    }
    if files.is_empty() {
        bail!("there are no recordings at {RECORDINGS}; name a folder of others in {OTHERS}");
    }
    let (by_age, by_use) = (play(&files, ClearRule::Age)?, play(&files, ClearRule::Use)?);
    let share = |seen: &Seen| seen.missed as f64 / seen.edits.max(1) as f64;
    let mut rows = vec![Row::figure("sessions", by_use.sessions.to_string())];
    for (rule, seen) in [("by age", &by_age), ("by use", &by_use)] {
        let missed = format!("{} of {} ({:.1} %)", seen.missed, seen.edits, share(seen) * 100.0);
        rows.push(Row::figure(format!("{rule}: edits of what only a cleared result had shown"), missed));
        rows.push(Row::figure(format!("{rule}: files read again"), seen.reread.to_string()));
        rows.push(Row::figure(format!("{rule}: tokens freed"), seen.freed.to_string()));
    }
    if by_age.edits >= ENOUGH_EDITS {
        let of = |new: f64, old: f64| new / old.max(f64::EPSILON);
        rows.push(Row::at_most("edits, against age", Unit::Times, of(share(&by_use), share(&by_age)), HALF));
        let reread = of(by_use.reread as f64, by_age.reread as f64);
        rows.push(Row::at_most("read again, against age", Unit::Times, reread, HALF));
        rows.push(Row::at_least(
            "freed, against age",
            Unit::Times,
            of(by_use.freed as f64, by_age.freed as f64),
            FREED,
        ));
    }
    Ok(rows)
}

fn sessions(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")).collect();
    files.sort();
    files
}

fn play(files: &[PathBuf], rule: ClearRule) -> Result<Seen> {
    let hints = WindowHints { configured: Some(WINDOW), max_output: 32_000, ..WindowHints::default() };
    let layers = Layers { window: Window::of(&hints), clear_rule: rule, ..Layers::default() };
    let mut seen = Seen::default();
    for file in files {
        let Ok((lines, _)) = record::lines(file) else { continue };
        seen.sessions += 1;
        let replayed = replay(lines.clone(), &layers, SUMMARY_TOKENS);
        let mut cleared_at: HashMap<usize, Vec<String>> = HashMap::new();
        for round in &replayed.rounds {
            let clearings = round.commits.iter().filter(|done| done.layer == "clear");
            for done in clearings {
                seen.freed += done.freed;
                cleared_at.entry(round.round).or_default().extend(done.results.iter().cloned());
            }
        }
        Told::default().follow(lines, &cleared_at, &mut seen);
    }
    Ok(seen)
}

/// What was said so far, and what of it was cleared.
#[derive(Default)]
struct Told {
    /// Lines that were said by anybody, or shown by a result that was not cleared: how often.
    shown: HashMap<String, u64>,
    results: HashMap<String, String>,
    cleared: HashSet<String>,
    /// Lines that a cleared result had shown.
    gone: HashSet<String>,
    /// The reads of each file.
    reads: HashMap<String, Vec<String>>,
}

impl Told {
    fn follow(mut self, lines: Vec<Line>, cleared_at: &HashMap<usize, Vec<String>>, seen: &mut Seen) {
        let mut live: Vec<Line> = Vec::new();
        Log::load_watching(lines, |_, line| live.push(line.clone()));
        let mut replies: HashSet<Id> = HashSet::new();
        for line in live {
            match &line.body {
                Body::Assistant { id, blocks, .. } => {
                    if replies.insert(id.clone()) {
                        for id in cleared_at.get(&replies.len()).into_iter().flatten() {
                            self.clear(id);
                        }
                    }
                    blocks.iter().for_each(|block| self.replied(block, seen));
                }
                Body::User { blocks, .. } | Body::Attachment { blocks } => {
                    blocks.iter().for_each(|block| self.said(block));
                }
                _ => {}
            }
        }
    }

    fn said(&mut self, block: &Block) {
        if let Kind::ToolResult { id, .. } = block.kind() {
            let text = block.result_text();
            self.show(&text);
            self.results.insert(id.to_string(), text);
        } else if let Some(text) = block.as_text() {
            self.show(&text);
        }
    }

    fn replied(&mut self, block: &Block, seen: &mut Seen) {
        if let Some(text) = block.as_text() {
            self.show(&text);
        }
        let Kind::ToolUse { id, name } = block.kind() else { return };
        let input = block.input().unwrap_or_default();
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let path = text("file_path").or_else(|| text("path")).unwrap_or_default().to_owned();
        match &**name {
            "Edit" | "edit" if !self.cleared.is_empty() => {
                let old = text("old_string").or_else(|| text("oldText")).unwrap_or_default();
                seen.edits += 1;
                let is_missed = |line: &str| self.gone.contains(line) && !self.shown.contains_key(line);
                seen.missed += u64::from(file_lines(old).any(is_missed));
            }
            "Read" | "read" => {
                let before = self.reads.entry(path).or_default();
                let all_cleared = !before.is_empty() && before.iter().all(|id| self.cleared.contains(id));
                seen.reread += u64::from(all_cleared);
                before.push(id.to_string());
            }
            _ => {}
        }
        if let Value::Object(input) = &input {
            input.values().filter_map(Value::as_str).for_each(|text| self.show(text));
        }
    }

    fn show(&mut self, text: &str) {
        for line in file_lines(text) {
            *self.shown.entry(line.to_owned()).or_default() += 1;
        }
    }

    fn clear(&mut self, id: &str) {
        let Some(text) = self.results.get(id) else { return };
        self.cleared.insert(id.to_owned());
        for line in file_lines(text) {
            self.gone.insert(line.to_owned());
            if let Some(count) = self.shown.get_mut(line) {
                *count -= 1;
                if *count == 0 {
                    self.shown.remove(line);
                }
            }
        }
    }
}
