//! The visible session: a page, a hint, and items that can be expanded.

use std::collections::{HashSet, VecDeque};
use std::path::Path;

use super::expand::ExpandableItem;
use super::markdown::Markdown;
use super::page::{Page, PagePart};
use super::pager::Pager;
use super::slash::KEYS;
use crate::program_paths::ProgramPaths;
use crate::styled_text::{Colour, Span, TextStyle, first_line};

/// The most lines of a user's message that are echoed.
const SAID_LINES: usize = 12;
/// The most lines of a call, a memory or a command's output that are shown.
const SHOWN_LINES: usize = 200;

/// The kind of display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Display {
    /// On a screen of so many columns that is drawn anew.
    Screen {
        /// Its width.
        columns: usize,
    },
    /// In lines that stay as they were typed and printed, as long as they are.
    Lines,
}

/// The visible session.
pub(super) struct ConversationView {
    pub(super) face: Display,
    /// Rows to be shown.
    pub(super) page: Page,
    /// Something to tell for a moment.
    pub(super) hint: Option<String>,
    /// Items that were shown in one line and can be expanded.
    pub(super) shown: VecDeque<ExpandableItem>,
    /// Number of changes of these.
    pub(super) shown_changes: u64,
    /// These items whole, while they are being read.
    pub(super) pager: Option<Pager>,
    /// True if the pager shows these items.
    pub(super) pager_has_items: bool,
    /// A message that is sent, and what stood for it in the prompt.
    pub(super) said_as: Option<(String, String)>,
    /// Calls whose change of a file was shown when they were asked about.
    pub(super) changes_shown: HashSet<String>,
}

impl ConversationView {
    /// With nothing on it.
    pub(super) fn new(face: Display) -> Self {
        let columns = match face {
            Display::Screen { columns } => columns,
            Display::Lines => usize::MAX,
        };
        Self {
            face,
            page: Page::new(columns),
            hint: None,
            shown: VecDeque::new(),
            shown_changes: 0,
            pager: None,
            pager_has_items: false,
            said_as: None,
            changes_shown: HashSet::new(),
        }
    }

    /// A table that stands alone.
    pub(super) fn table(&mut self, rows: &[(String, String)], look: TextStyle) {
        self.page.begin(PagePart::Note);
        self.page.table(rows, look);
    }

    /// Names and what they stand for, each in a look of its own.
    pub(super) fn styled_table(&mut self, rows: &[(Span, Vec<Span>)]) {
        self.page.begin(PagePart::Note);
        self.page.styled_table(rows);
    }

    /// A text of the model's, or one that reads like it.
    pub(super) fn show_markdown(&mut self, text: &str) {
        let mut markdown = Markdown::new(self.page.columns());
        self.page.begin(PagePart::Reply);
        self.page.rows(markdown.push(text));
        self.page.rows(markdown.finish());
    }

    /// Echoes the user's message; only the beginning of a long one, since its author knows it.
    pub(super) fn show_said(&mut self, text: &str) {
        let shown = self.said_as.take_if(|(said, _)| said == text).map(|(_, shown)| shown);
        let text = shown.as_deref().unwrap_or(text);
        if text.is_empty() {
            return;
        }
        self.page.begin(PagePart::Said);
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().take(SAID_LINES).enumerate() {
            let lead = Span::new(if at == 0 { "› " } else { "  " }, TextStyle::of(Colour::Cyan));
            self.page.line(&[lead, Span::new(line, TextStyle::BOLD)], 2);
        }
        self.say_rest(lines.len(), SAID_LINES);
    }

    /// Shows the keys over the whole window.
    pub(super) fn show_keys(&mut self) {
        let mut page = Page::new(self.page.columns());
        let keys: Vec<(String, String)> = KEYS.iter().map(|(key, about)| ((*key).into(), (*about).into())).collect();
        page.table(&keys, TextStyle::BOLD);
        self.pager = Some(Pager::new(page.take(), 0));
        self.pager_has_items = false;
    }

    /// Shows what somebody else wrote, with their name.
    pub(super) fn show_message(&mut self, from: &str, text: &str) {
        self.page.begin(PagePart::Said);
        self.page.line(&[Span::new("✉ ", TextStyle::of(Colour::Yellow)), Span::new(from, TextStyle::BOLD)], 2);
        let lines: Vec<&str> = text.lines().collect();
        for line in lines.iter().take(SAID_LINES) {
            self.page.line(&[Span::plain("  "), Span::plain(line)], 2);
        }
        self.say_rest(lines.len(), SAID_LINES);
    }

    /// Lines of a text, up to a limit.
    pub(super) fn show_lines(&mut self, lines: &[&str]) {
        for line in lines.iter().take(SHOWN_LINES) {
            self.page.line(&[Span::plain("  "), Span::plain(line)], 2);
        }
        self.say_rest(lines.len(), SHOWN_LINES);
    }

    /// Says how many lines were not shown.
    pub(super) fn say_rest(&mut self, lines: usize, shown: usize) {
        if lines > shown {
            self.page.line(&[Span::new(&format!("  … {} more lines", lines - shown), TextStyle::DIM)], 2);
        }
    }
}

/// The subject of a call, in a few words.
pub(super) fn about(input: &serde_json::Value, place: &ProgramPaths) -> String {
    let keys = ["command", "file_path", "pattern", "path", "description"];
    let Some((key, text)) = keys.iter().find_map(|key| Some((*key, input[*key].as_str()?))) else {
        let asked = engine::plan::ask::inquiries(input).unwrap_or_default();
        return first_line(&asked.iter().map(|one| one.question.as_str()).collect::<Vec<_>>().join(" "), 200);
    };
    let text = if key.ends_with("path") { place.short(Path::new(text)) } else { text.to_owned() };
    first_line(&text, 200)
}
