//! The model's task list: above the prompt while it is not done, and by a command.

use mail::task_file::{Task, TaskStatus};
use session::stats::SessionUse;
use tools::{JobKind, JobState};
use transcript::block::Kind;
use transcript::line::Body;
use transcript::price::Prices;

use super::background_list::Background;
use super::conversation_view::{ConversationView, about};
use super::page::PagePart;
use crate::event_text;
use crate::program_paths::ProgramPaths;
use crate::styled_text::{Colour, Span, TextStyle, first_line};

/// The most tasks above the prompt.
const SHOWN: usize = 5;
/// The most characters of each.
const LONGEST: usize = 100;

impl Background {
    /// Looks at the list again.
    pub(super) fn read_tasks(&mut self) {
        self.tasks = self.mailing.board.tasks(&self.folder);
    }

    /// The tasks that are not done, for above the prompt.
    pub(super) fn task_rows(&self) -> Vec<Vec<Span>> {
        let open: Vec<&Task> = self.tasks.iter().filter(|task| task.status != TaskStatus::Completed).collect();
        let mut rows: Vec<Vec<Span>> = open.iter().take(SHOWN).map(|task| vec![span(task)]).collect();
        if open.len() > SHOWN {
            rows.push(vec![Span::new(&format!("  and {} more: /tasks", open.len() - SHOWN), TextStyle::DIM)]);
        }
        rows
    }

    /// The teammates that are there.
    pub(super) fn teammates(&self) -> Vec<String> {
        let is_one = |job: &tools::Job| job.kind == JobKind::Teammate && job.state == JobState::Running;
        self.jobs.list().into_iter().filter(is_one).map(|job| job.id).collect()
    }

    /// Those of them who wait with a question.
    pub(super) fn teammates_asking(&self) -> Vec<String> {
        self.mailing.teammates.as_ref().map(|teammates| teammates.asking()).unwrap_or_default()
    }

    /// Label of a teammate at work.
    pub(super) fn teammate_label(&self, name: &str) -> Option<String> {
        self.mailing.teammates.as_ref().and_then(|teammates| teammates.label(name))
    }

    /// Shows what a teammate does and did, from its own session. Returns false if there is none of that name.
    pub(super) fn look_at_teammate(
        &self,
        name: &str,
        prices: &Prices,
        view: &mut ConversationView,
        place: &ProgramPaths,
    ) -> bool {
        let members = self.mailing.teammates.as_ref().map(|teammates| teammates.team().members()).unwrap_or_default();
        let member = members.into_iter().find(|member| member.name == name && member.session_id.is_some());
        let Some(session) = member.and_then(|member| member.session_id) else { return false };
        let file = self.folder.with_file_name(format!("{session}.jsonl"));
        let Ok(record) = session::record::read(&file) else { return false };
        let blocks = record.log.lines().iter().rev().filter_map(|line| match &line.body {
            Body::Assistant { blocks, .. } => Some(blocks.iter().rev()),
            _ => None,
        });
        let (mut called, mut said) = (None, None);
        for block in blocks.flatten() {
            match block.kind() {
                Kind::ToolUse { name, .. } if called.is_none() => {
                    called = Some(format!("{name} {}", about(&block.input().unwrap_or_default(), place)));
                }
                Kind::Text if said.is_none() => said = block.as_text().map(|text| first_line(&text, 200)),
                _ => {}
            }
            if called.is_some() && said.is_some() {
                break;
            }
        }
        let mut rows = vec![(name.to_owned(), "teammate".to_owned())];
        rows.extend(self.teammate_label(name).map(|label| ("doing".to_owned(), label)));
        rows.extend(called.map(|called| ("last call".to_owned(), called)));
        rows.extend(said.map(|said| ("said last".to_owned(), said)));
        rows.push(("used".to_owned(), event_text::used(&SessionUse::of(record.log.lines(), prices))));
        rows.push(("session".to_owned(), place.short(&file)));
        view.table(&rows, TextStyle::BOLD);
        true
    }

    /// Interrupts those who are at work. Says whether any were.
    pub(super) fn interrupt_teammates(&self, view: &mut ConversationView) -> bool {
        let stopped = self.mailing.teammates.as_ref().map(|teammates| teammates.interrupt()).unwrap_or_default();
        if !stopped.is_empty() {
            view.hint = Some(format!("interrupting {}", stopped.join(", ")));
        }
        !stopped.is_empty()
    }

    /// Shows all of them.
    pub(super) fn show_tasks(&self, view: &mut ConversationView) {
        if !self.tasks.is_empty() {
            view.page.begin(PagePart::Note);
        }
        for task in &self.tasks {
            view.page.line(&[span(task)], 4);
        }
    }
}

fn span(task: &Task) -> Span {
    let (mark, look) = match task.status {
        TaskStatus::Pending => ("☐", TextStyle::DIM),
        TaskStatus::InProgress => ("▶", TextStyle::of(Colour::Cyan)),
        TaskStatus::Completed => ("✓", TextStyle::DIM),
    };
    let owner = task.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
    let name = task.active_form.as_ref().filter(|_| task.status == TaskStatus::InProgress).unwrap_or(&task.subject);
    Span::new(&format!("  {mark} {}{owner}", first_line(name, LONGEST)), look)
}
