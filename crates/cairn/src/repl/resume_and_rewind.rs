//! Other places in time: another session, an earlier message of this one, and forward again.

use engine::context::CompactionReach;
use session::rewind::{RewindExtent, RewindResult};
use transcript::block::Kind;
use transcript::line::{Body, TextSource};
use transcript::{Id, Role};

use super::conversation::Conversation;
use super::conversation_view::about;
use super::learnt_memory::LearntMemory;
use super::memories::MemoryFile;
use super::page::PagePart;
use super::picker::PickerEntry;
use crate::event_text::{self, count};
use crate::styled_text::{Colour, Span, TextStyle, first_line};

/// Messages and replies shown again when a session is resumed; more if it takes more to begin with the user's words.
const REPLAYED: usize = 12;

/// Things that can be rewound: name, extent and description.
const SCOPES: [(&str, RewindExtent, &str); 3] = [
    ("both", RewindExtent::Both, "both as they were"),
    ("conversation", RewindExtent::Conversation, "files stay as they are"),
    ("files", RewindExtent::Files, "the conversation stays"),
];

/// Length of a short id: the time in it, to the millisecond, so that no two look the same.
const SHORT_ID: usize = 13;

/// The purpose of an open list.
pub(super) enum ListPurpose {
    Resume(Vec<String>),
    Rewind(Vec<Id>),
    RewindScope(Id),
    MemoryFile(Vec<MemoryFile>),
    MemoryFileWhat(MemoryFile),
    Learnt(Vec<LearntMemory>),
    LearntWhat(LearntMemory),
    CompactFrom(Vec<Id>, Option<String>),
    CompactUpTo(Vec<Id>, Option<String>),
    Snip(Vec<Id>),
    Model(Vec<String>),
    /// Commands, each with a value.
    Command(Vec<String>),
    /// Earlier input, to be edited and sent again.
    History(Vec<String>),
}

impl Conversation {
    /// Goes on with another session: the one named, or one that is chosen from a list.
    pub(super) async fn resume(&mut self, id: &str) -> anyhow::Result<()> {
        if !id.is_empty() {
            return self.resume_session(id.to_owned()).await;
        }
        let mut sessions = self.place.home.sessions(&self.place.directory)?;
        sessions.retain(|session| session.id != self.session.status.session);
        let (mut choices, mut ids) = (Vec::new(), Vec::new());
        for session in sessions {
            let (whose, said) = crate::session_kind::look(&session.path);
            if said.is_empty() {
                continue; // nothing was said in it
            }
            let label = whose.mark().map_or(said.clone(), |mark| format!("[{mark}] {said}"));
            let id = &session.id[..session.id.len().min(SHORT_ID)];
            let about = format!("{}  {id}", event_text::when(&session));
            choices.push(PickerEntry { label, about });
            ids.push(session.id);
        }
        if choices.is_empty() {
            self.view.hint = Some("there is no other session in this project".into());
            return Ok(());
        }
        self.requests.choose("Continue which session?", choices, ListPurpose::Resume(ids));
        Ok(())
    }

    async fn resume_session(&mut self, id: String) -> anyhow::Result<()> {
        if self.reopen(|args| (args.resume, args.continue_, args.session_id) = (Some(id), false, None)).await? {
            self.replay();
        }
        Ok(())
    }

    /// Goes back: to before the Nth newest message, or one that is chosen from a list; conversation, files or both, or
    /// what is chosen.
    pub(super) fn rewind(&mut self, argument: &str) -> anyhow::Result<()> {
        let Some(agent) = &self.session.agent else { return Ok(()) };
        let points = agent.session().points();
        if points.is_empty() {
            self.view.hint = Some("nothing was said yet".into());
            return Ok(());
        }
        let mut words = argument.split_whitespace();
        if let Some(number) = words.next() {
            let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let Some(point) = at.and_then(|at| points.get(at)) else {
                self.view.hint =
                    Some(format!("there is no message {number}: 1 is the newest, {} the oldest", points.len()));
                return Ok(());
            };
            let scope = words.next().map(|word| SCOPES.iter().find(|(name, _, _)| *name == word));
            match scope {
                None => self.choose_scope(point.line.clone()),
                Some(Some((_, scope, _))) => return self.rewind_to(&point.line, *scope),
                Some(None) => self.view.hint = Some("name what to rewind: both, conversation or files".into()),
            }
            return Ok(());
        }
        let choices = points
            .iter()
            .map(|point| PickerEntry {
                label: first_line(&point.text, 60),
                about: format!("{} changed since", count(point.files, "file", "files")),
            })
            .collect();
        let lines = points.into_iter().map(|point| point.line).collect();
        self.requests.choose("Go back to before which message?", choices, ListPurpose::Rewind(lines));
        Ok(())
    }

    fn choose_scope(&mut self, line: Id) {
        let choice = |(name, _, about): &(&str, RewindExtent, &str)| {
            let label = if *name == "both" { "conversation and files" } else { name };
            PickerEntry { label: label.into(), about: (*about).into() }
        };
        self.requests.choose("What goes back?", SCOPES.iter().map(choice).collect(), ListPurpose::RewindScope(line));
    }

    /// A choice was made in an open list.
    pub(super) async fn chosen(&mut self, at: usize) -> anyhow::Result<()> {
        let Some(choices) = self.requests.choices.take() else { return Ok(()) };
        match choices.what {
            ListPurpose::Resume(mut ids) => return self.resume_session(ids.swap_remove(at)).await,
            ListPurpose::Rewind(mut lines) => self.choose_scope(lines.swap_remove(at)),
            ListPurpose::RewindScope(line) => return self.rewind_to(&line, SCOPES[at].1),
            ListPurpose::CompactFrom(mut lines, wish) => {
                self.requests.compacting = Some((wish, CompactionReach::From(lines.swap_remove(at))));
            }
            ListPurpose::CompactUpTo(mut lines, wish) => {
                self.requests.compacting = Some((wish, CompactionReach::UpTo(lines.swap_remove(at))));
            }
            ListPurpose::Snip(mut lines) => return self.session.snip_before(&lines.swap_remove(at), &mut self.view),
            ListPurpose::Model(mut names) => return self.model(&names.swap_remove(at)).await,
            ListPurpose::Command(mut lines) => return Box::pin(self.command(&lines.swap_remove(at))).await,
            ListPurpose::History(mut entries) => self.requests.prompt = Some(entries.swap_remove(at)),
            ListPurpose::Learnt(mut learnt) => self.choose_about(learnt.swap_remove(at)),
            ListPurpose::LearntWhat(one) => self.do_with(&one, at),
            ListPurpose::MemoryFile(mut files) => self.choose_what_with(files.swap_remove(at)),
            ListPurpose::MemoryFileWhat(file) => self.do_with_file(file, at),
        }
        Ok(())
    }

    fn rewind_to(&mut self, line: &Id, scope: RewindExtent) -> anyhow::Result<()> {
        let Some(agent) = &mut self.session.agent else { return Ok(()) };
        let text = agent.session().points().into_iter().find(|point| point.line == *line).map(|point| point.text);
        let text = text.unwrap_or_default();
        let rewound = agent.session_mut().rewind(line, scope)?;
        let what = match (scope, count(rewound.files.len(), "file", "files")) {
            (RewindExtent::Both, files) => format!("the conversation and {files}"),
            (RewindExtent::Conversation, _) => "the conversation".to_owned(),
            (RewindExtent::Files, files) => files,
        };
        self.say_moved(&format!("back to before “{}”: {what}; /undo undoes this", first_line(&text, 40)), &rewound);
        if rewound.commit.is_some() {
            self.replay();
            self.requests.prompt = Some(text);
        }
        Ok(())
    }

    /// Undoes the newest of what the user can see change: going back, a compaction, a snip.
    pub(super) fn undo(&mut self) -> anyhow::Result<()> {
        match self.session.agent.as_ref().and_then(|agent| agent.session().newest_cover()) {
            Some(commit) => self.session.uncover(&commit, &mut self.view),
            None => self.undo_rewind(),
        }
    }

    /// Undoes the newest going back, files and conversation.
    fn undo_rewind(&mut self) -> anyhow::Result<()> {
        let Some(agent) = &mut self.session.agent else { return Ok(()) };
        let undone = match agent.session_mut().undo_rewind(&self.session.status.window) {
            Ok(Some(undone)) => undone,
            Ok(None) => {
                self.view.hint = Some("nothing to undo".into());
                return Ok(());
            }
            Err(error @ session::Error::WouldNotFit { .. }) => {
                self.view.page.note(&error.to_string(), TextStyle::of(Colour::Red));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let what = match (undone.commit.is_some(), undone.files.len()) {
            (true, 0) => "the conversation".to_owned(),
            (true, files) => format!("the conversation and {}", count(files, "file", "files")),
            (false, files) => count(files, "file", "files"),
        };
        self.say_moved(&format!("forward again: {what}"), &undone);
        if undone.commit.is_some() {
            self.requests.prompt = Some(String::new());
            self.replay();
        }
        Ok(())
    }

    fn say_moved(&mut self, text: &str, rewound: &RewindResult) {
        self.view.page.note(text, TextStyle::PLAIN);
        for (path, why) in &rewound.failed {
            self.view.page.warning(&format!("{} stays as it is: {why}", self.place.short(path)));
        }
    }

    /// Shows the last messages, as they looked when they were new.
    pub(super) fn replay(&mut self) {
        let Some(agent) = &self.session.agent else { return };
        let log = agent.session().log();
        let injected: Vec<&Id> = log
            .lines()
            .iter()
            .filter(|line| !matches!(line.body, Body::User { source: TextSource::Direct, .. } | Body::Assistant { .. }))
            .filter_map(|line| line.id.as_ref())
            .collect();
        let view = log.view();
        let mut blocks = Vec::new();
        for (item, role, block) in view.blocks() {
            if view.line_of(item).is_some_and(|line| !injected.contains(&line)) {
                blocks.push((item, role, block.clone()));
            }
        }
        let mut items: Vec<usize> = blocks.iter().map(|(item, _, _)| *item).collect();
        items.dedup();
        let is_said = |item: &usize| {
            blocks.iter().any(|(of, role, block)| of == item && *role == Role::User && *block.kind() == Kind::Text)
        };
        let newest = items.len().saturating_sub(REPLAYED);
        let first = items[..items.len().min(newest + 1)].iter().rposition(is_said).unwrap_or(newest);
        let from = items.get(first).copied().unwrap_or_default();
        let above = items[..first].iter().filter(|item| is_said(item)).count();
        if above > 0 {
            let text = format!(
                "{} above: cairn session show {}",
                count(above, "earlier message", "earlier messages"),
                self.session.status.session
            );
            self.view.page.note(&text, TextStyle::DIM);
        }
        for (_, role, block) in blocks.iter().filter(|(item, _, _)| *item >= from) {
            let text = block.as_text().unwrap_or_default();
            match (role, block.kind()) {
                (Role::User, Kind::Text) => self.view.show_said(&text),
                (Role::Assistant, Kind::Text) => {
                    self.view.show_markdown(&text);
                }
                (_, Kind::ToolUse { name, .. }) => {
                    let what = about(&block.input().unwrap_or_default(), &self.place);
                    self.view.page.begin(PagePart::Calls);
                    self.view.page.cut(&[Span::new(&format!("· {name} {what}"), TextStyle::DIM)]);
                }
                _ => {}
            }
        }
    }
}
