//! What the model has to do, as it wrote it down: above the prompt while it is not done, and by a command.

use engine::plan::tasks::{Status, Task};
use tools::{JobKind, JobState};

use super::conversation::Conversation;
use super::page::Part;
use crate::span::{Colour, Look, Span, first_line};

/// How many tasks stand above the prompt.
const SHOWN: usize = 5;
/// How much is shown of each.
const LONGEST: usize = 100;

impl Conversation {
    /// Looks at the list again.
    pub(super) fn read_tasks(&mut self) {
        self.tasks = self.mailing.board.tasks(&self.folder);
    }

    /// The tasks that are not done, for above the prompt.
    pub(super) fn task_rows(&self) -> Vec<Vec<Span>> {
        let open: Vec<&Task> = self.tasks.iter().filter(|task| task.status != Status::Completed).collect();
        let mut rows: Vec<Vec<Span>> = open.iter().take(SHOWN).map(|task| vec![span(task)]).collect();
        if open.len() > SHOWN {
            rows.push(vec![Span::new(&format!("  and {} more: /tasks", open.len() - SHOWN), Look::DIM)]);
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
        self.mailing.teammates.as_ref().map(|mates| mates.asking()).unwrap_or_default()
    }

    /// Interrupts those who are at work. Says whether any were.
    pub(super) fn interrupt_teammates(&mut self) -> bool {
        let stopped = self.mailing.teammates.as_ref().map(|mates| mates.interrupt()).unwrap_or_default();
        if !stopped.is_empty() {
            self.hint = Some(format!("interrupting {}", stopped.join(", ")));
        }
        !stopped.is_empty()
    }

    /// Shows all of them.
    pub(super) fn show_tasks(&mut self) {
        if !self.tasks.is_empty() {
            self.page.begin(Part::Note);
        }
        for task in self.tasks.clone() {
            self.page.line(&[span(&task)], 4);
        }
    }
}

fn span(task: &Task) -> Span {
    let (mark, look) = match task.status {
        Status::Pending => ("☐", Look::DIM),
        Status::InProgress => ("▶", Look::of(Colour::Cyan)),
        Status::Completed => ("✓", Look::DIM),
    };
    let owner = task.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
    let name = task.active_form.as_ref().filter(|_| task.status == Status::InProgress).unwrap_or(&task.subject);
    Span::new(&format!("  {mark} {}{owner}", first_line(name, LONGEST)), look)
}
