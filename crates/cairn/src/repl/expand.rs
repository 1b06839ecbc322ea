//! Shows in full what was shown in one line.

use engine::Event;
use engine::event::RecalledMemory;

use super::conversation_view::ConversationView;
use super::page::PagePart;
use crate::event_text::count;
use crate::program_paths::ProgramPaths;
use crate::styled_text::{Span, TextStyle};

/// The most items that can be expanded.
const REMEMBERED: usize = 20;
/// Tags around a memory that are for the model only.
const TAGS: [&str; 4] = ["<system-reminder>", "</system-reminder>", "<memory>", "</memory>"];

/// Something that was shown in one line and can be shown whole.
pub(super) enum ExpandableItem {
    /// A call.
    Call {
        id: String,
        tool: String,
        input: serde_json::Value,
        /// Its result, once there is one.
        text: Option<String>,
    },
    /// Memories that were recalled.
    Memories(Vec<RecalledMemory>),
}

impl ConversationView {
    /// Takes in what can be shown whole later.
    pub(super) fn heard(&mut self, event: &Event) {
        match event {
            Event::ToolStarted { id, tool, input } if !is_own(id) => {
                let (id, tool, input) = (id.clone(), tool.clone(), input.clone());
                self.remember(ExpandableItem::Call { id, tool, input, text: None });
            }
            Event::ToolEnded { id: ended, output, .. } => {
                for shown in &mut self.shown {
                    if let ExpandableItem::Call { id, text, .. } = shown
                        && id == ended
                    {
                        *text = Some(output.text());
                    }
                }
            }
            Event::Recalled { memories } => self.remember(ExpandableItem::Memories(memories.clone())),
            _ => {}
        }
    }

    fn remember(&mut self, shown: ExpandableItem) {
        self.shown.push_back(shown);
        if self.shown.len() > REMEMBERED {
            self.shown.pop_front();
        }
    }

    /// The input of a call.
    pub(super) fn input_of(&self, call: &str) -> Option<&serde_json::Value> {
        self.shown.iter().find_map(|shown| match shown {
            ExpandableItem::Call { id, input, .. } if id == call => Some(input),
            _ => None,
        })
    }

    /// Shows whole what was shown in one line: the newest that was not yet.
    pub(super) fn expand(&mut self, place: &ProgramPaths) {
        match self.shown.pop_back() {
            None => self.hint = Some("nothing to expand".into()),
            Some(ExpandableItem::Call { id, tool, input, text }) => {
                self.expand_call(&tool, &input, text.as_deref());
                if text.is_none() {
                    self.remember(ExpandableItem::Call { id, tool, input, text }); // its end is still to come
                }
            }
            Some(ExpandableItem::Memories(memories)) => self.expand_memories(&memories, place),
        }
    }

    fn expand_call(&mut self, tool: &str, input: &serde_json::Value, text: Option<&str>) {
        self.page.begin(PagePart::Note);
        self.page.line(&[Span::new(tool, TextStyle::BOLD), Span::new(" was called with", TextStyle::DIM)], 2);
        for (key, value) in input.as_object().into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let mut lines = text.lines();
            let first = lines.next().unwrap_or_default();
            self.page.line(&[Span::new(&format!("  {key}: "), TextStyle::DIM), Span::plain(first)], 4);
            self.show_lines(&lines.collect::<Vec<_>>());
        }
        self.page.line(&[Span::new("and gave", TextStyle::DIM)], 2);
        self.show_lines(&text.unwrap_or("(it still runs)").lines().collect::<Vec<_>>());
    }

    fn expand_memories(&mut self, memories: &[RecalledMemory], place: &ProgramPaths) {
        for RecalledMemory { path, file, text } in memories {
            self.page.begin(PagePart::Note);
            let from = format!(" from {}", place.short(file));
            self.page.line(&[Span::new(path, TextStyle::BOLD), Span::new(&from, TextStyle::DIM)], 2);
            let lines: Vec<&str> = text.lines().filter(|line| !TAGS.contains(line)).collect();
            self.show_lines(&lines);
        }
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
