//! Calls, memories and messages whole, in the order in which they came, for those that were shown in a line or a few.
//!
//! So much is kept and no more: of a longer output the file is named that has all of it.

use std::path::Path;

use engine::Event;
use engine::event::RecalledMemory;
use transcript::block::Kind;

use super::call_result;
use super::conversation_view::{ConversationView, about};
use super::page::{Page, PagePart};
use super::pager::Pager;
use crate::diff_rows::DiffRows;
use crate::event_text::{self, count};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{Colour, Span, TextStyle, first_line, without_escapes};

/// The most items that are kept.
const REMEMBERED: usize = 200;
/// The most bytes of texts that are kept together.
const BYTES: usize = 4_000_000;
/// The most bytes kept of one text. What a command prints beyond its limit is in a file.
const LONGEST: usize = 200_000;
/// The most lines of one item.
const LINES: usize = 2_000;
/// Tags around a memory that are for the model only.
const TAGS: [&str; 4] = ["<system-reminder>", "</system-reminder>", "<memory>", "</memory>"];
/// The folder of long results next to a session, and their endings.
const RESULTS: &str = "tool-results";
const ENDINGS: [&str; 2] = ["txt", "json"];

/// Something that can be shown whole.
pub(super) enum ExpandableItem {
    /// Message of the user, as a heading.
    Said(String),
    /// A call.
    Call {
        id: String,
        tool: String,
        input: serde_json::Value,
        /// Its result, once there is one.
        result: Option<CallResult>,
    },
    /// Memories that were recalled.
    Memories(Vec<RecalledMemory>),
    /// Thoughts of the model before a reply.
    Thought(String),
}

/// The result of a call.
pub(super) struct CallResult {
    text: String,
    /// True if the text is not all of it.
    is_cut: bool,
    summary: String,
    /// The change of a file.
    diff: Option<DiffRows>,
}

impl CallResult {
    fn of(output: &tools::Output) -> Self {
        let mut text = without_escapes(&output.text());
        let is_cut = text.len() > LONGEST;
        if is_cut {
            let end = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at)).unwrap_or_default();
            text.truncate(end);
        }
        let diff = output.rewrite.as_ref().map(|rewrite| call_result::diff_of(rewrite, output));
        Self { text, is_cut, summary: event_text::ended(output), diff }
    }
}

impl ExpandableItem {
    fn bytes(&self) -> usize {
        match self {
            Self::Said(text) | Self::Thought(text) => text.len(),
            Self::Call { result, .. } => result.as_ref().map_or(0, |result| result.text.len()),
            Self::Memories(memories) => memories.iter().map(|memory| memory.text.len()).sum(),
        }
    }

    fn show(&self, page: &mut Page, place: &ProgramPaths, folder: &Path) {
        match self {
            Self::Said(text) => {
                page.begin(PagePart::Said);
                let said = Span::new(&first_line(text, 200), TextStyle::BOLD);
                page.line(&[Span::new("› ", TextStyle::of(Colour::Cyan)), said], 2);
            }
            Self::Call { id, tool, input, result } => {
                show_call(page, tool, input, result.as_ref(), place);
                if let Some(result) = result.as_ref().filter(|result| result.diff.is_none()) {
                    show_result(page, result, kept(folder, id).map(|path| place.short(&path)).as_deref());
                }
            }
            Self::Memories(memories) => show_memories(page, memories, place),
            Self::Thought(text) => {
                page.begin(PagePart::Note);
                page.line(&[Span::new("thought:", TextStyle::BOLD)], 2);
                let italic = TextStyle { italic: true, ..TextStyle::DIM };
                text.lines().take(LINES).for_each(|line| page.line(&[Span::plain("  "), Span::new(line, italic)], 2));
            }
        }
    }
}

/// The file that has all of a result.
fn kept(folder: &Path, call: &str) -> Option<std::path::PathBuf> {
    // The id comes from a model: it names a file, and nothing but one.
    let is_plain = call.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if !is_plain {
        return None;
    }
    let named = |ending: &&str| folder.join(RESULTS).join(format!("{call}.{ending}"));
    ENDINGS.iter().map(named).find(|path| files::stamp(path).is_ok())
}

impl ConversationView {
    /// Takes in what can be shown whole later.
    pub(super) fn heard(&mut self, event: &Event) {
        match event {
            Event::PromptSubmitted { text, .. } => self.remember(ExpandableItem::Said(first_line(text, 200))),
            Event::ToolStarted { id, tool, input } if !is_own(id) => {
                let (id, tool, input) = (id.clone(), tool.clone(), input.clone());
                self.remember(ExpandableItem::Call { id, tool, input, result: None });
            }
            Event::ToolEnded { id: ended, output, .. } => {
                for shown in &mut self.shown {
                    if let ExpandableItem::Call { id, result, .. } = shown
                        && id == ended
                    {
                        *result = Some(CallResult::of(output));
                        self.shown_changes += 1;
                    }
                }
            }
            Event::Replied { reply } => {
                let thoughts = reply.blocks.iter().filter(|block| *block.kind() == Kind::Thinking);
                let text: Vec<String> =
                    thoughts.filter_map(|block| Some(block.value()["thinking"].as_str()?.to_owned())).collect();
                if !text.is_empty() {
                    self.remember(ExpandableItem::Thought(text.join("\n")));
                }
            }
            Event::Recalled { memories } => self.remember(ExpandableItem::Memories(memories.clone())),
            _ => {}
        }
    }

    fn remember(&mut self, shown: ExpandableItem) {
        self.shown.push_back(shown);
        self.shown_changes += 1;
        let mut bytes: usize = self.shown.iter().map(ExpandableItem::bytes).sum();
        while self.shown.len() > REMEMBERED || (bytes > BYTES && self.shown.len() > 1) {
            bytes -= self.shown.pop_front().map_or(0, |gone| gone.bytes());
        }
    }

    /// The input of a call.
    pub(super) fn input_of(&self, call: &str) -> Option<&serde_json::Value> {
        self.shown.iter().find_map(|shown| match shown {
            ExpandableItem::Call { id, input, .. } if id == call => Some(input),
            _ => None,
        })
    }

    /// True if there is something to expand.
    fn has_expandable(&self) -> bool {
        self.shown.iter().any(|item| !matches!(item, ExpandableItem::Said(_)))
    }

    /// All of it, whole, for the pager: the newest item at the top of the window.
    pub(super) fn open_pager(&mut self, place: &ProgramPaths, folder: &Path) {
        if !self.has_expandable() {
            self.hint = Some("nothing to expand".into());
            return;
        }
        let (rows, newest) = self.expanded(place, folder);
        self.pager = Some(Pager::new(rows, newest));
        self.pager_has_items = true;
    }

    /// The rows of all of it, and the first of the newest.
    pub(super) fn expanded(&self, place: &ProgramPaths, folder: &Path) -> (Vec<Vec<Span>>, usize) {
        let (mut page, mut rows, mut newest) = (Page::new(self.page.columns()), Vec::new(), 0);
        for item in &self.shown {
            newest = rows.len();
            item.show(&mut page, place, folder);
            rows.extend(page.take());
        }
        // It stands below a blank row.
        (rows, newest + usize::from(newest > 0))
    }

    /// Prints it all whole, once: where there is no window to scroll in.
    pub(super) fn expand(&mut self, place: &ProgramPaths, folder: &Path) {
        if !self.has_expandable() {
            self.hint = Some("nothing to expand".into());
            return;
        }
        for item in std::mem::take(&mut self.shown) {
            item.show(&mut self.page, place, folder);
            if let ExpandableItem::Call { result: None, .. } = item {
                self.shown.push_back(item); // its end is still to come
            }
        }
    }
}

fn show_call(
    page: &mut Page,
    tool: &str,
    input: &serde_json::Value,
    result: Option<&CallResult>,
    place: &ProgramPaths,
) {
    page.begin(PagePart::Note);
    let end = result.map_or_else(|| "it still runs".to_owned(), |result| result.summary.clone());
    let mut row = vec![Span::new(tool, TextStyle::BOLD)];
    if let Some(diff) = result.and_then(|result| result.diff.as_ref()) {
        row.extend([Span::plain(&format!(" {}", about(input, place))), Span::new(&format!(" {end}"), TextStyle::DIM)]);
        page.line(&row, 2);
        diff.clone().capped(LINES, "").iter().for_each(|row| page.line(row, 8));
        return;
    }
    row.push(Span::new(&format!(" — {end}"), TextStyle::DIM));
    page.line(&row, 2);
    for (key, value) in input.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        page.line(&[Span::new(&format!("  {key}: "), TextStyle::DIM), Span::plain(first)], 4);
        lines.take(LINES).for_each(|line| page.line(&[Span::plain("    "), Span::plain(line)], 4));
    }
}

fn show_result(page: &mut Page, result: &CallResult, whole: Option<&str>) {
    page.line(&[Span::new("  gave:", TextStyle::DIM)], 2);
    for line in result.text.lines().take(LINES) {
        page.line(&[Span::plain("  "), Span::plain(line)], 2);
    }
    let more = result.text.lines().count().saturating_sub(LINES);
    let rest = match (more, result.is_cut) {
        (0, false) => None,
        (0, true) => Some("  … and more".to_owned()),
        (more, false) => Some(format!("  … {more} more lines")),
        (more, true) => Some(format!("  … more than {more} more lines")),
    };
    let all = whole.map(|path| format!("all of it: {path}"));
    let text = match (rest, all) {
        (Some(rest), Some(all)) => format!("{rest}; {all}"),
        (Some(rest), None) => rest,
        (None, Some(all)) => format!("  {all}"),
        (None, None) => return,
    };
    page.line(&[Span::new(&text, TextStyle::DIM)], 2);
}

fn show_memories(page: &mut Page, memories: &[RecalledMemory], place: &ProgramPaths) {
    for RecalledMemory { path, file, text } in memories {
        page.begin(PagePart::Note);
        let from = format!(" from {}", place.short(file));
        page.line(&[Span::new(path, TextStyle::BOLD), Span::new(&from, TextStyle::DIM)], 2);
        let lines = text.lines().filter(|line| !TAGS.contains(line)).take(LINES);
        lines.for_each(|line| page.line(&[Span::plain("  "), Span::plain(line)], 2));
    }
}

/// The line that says memories were recalled.
pub(super) fn recalled(memories: &[RecalledMemory]) -> String {
    let paths: Vec<&str> = memories.iter().map(|one| one.path.as_str()).collect();
    format!("{} recalled: {}", count(memories.len(), "memory", "memories"), paths.join(", "))
}

/// True if a call is a command of the user's own.
pub(super) fn is_own(call: &str) -> bool {
    call.starts_with("shell-")
}
