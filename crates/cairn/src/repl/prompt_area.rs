//! The bottom of the screen: what is being written, what is under way, the prompt, the status line.

use tokio::time::Instant;
use transcript::Block;

use super::editor::window;
use super::screen::Area;
use super::status_line::BackgroundWork;
use super::width::{spans_width, wrap};
use super::{Repl, new_memory};
use crate::styled_text::{Colour, Span, TextStyle, first_line};

/// The most characters of a queued message that are shown.
const QUEUED: usize = 200;
/// Rows below the menu that the screen needs: the status line, and one where the cursor may be.
const BELOW_MENU: usize = 2;

impl Repl {
    /// The area below everything that was printed.
    pub(super) fn area(&self) -> Area {
        let columns = self.screen.columns();
        // What can be long takes at most half of the window.
        let half = (self.screen.lines() / 2).max(3);
        let mut rows = Vec::new();
        let pending = self.markdown.pending();
        if !pending.is_empty() {
            let wrapped = wrap(&[Span::plain(pending)], columns, 0);
            rows.extend(wrapped[wrapped.len().saturating_sub(half)..].iter().cloned());
        }
        if !self.talk.view.page.is_blank() {
            rows.push(Vec::new());
        }
        self.add_doing(&mut rows);
        if !self.tasks_hidden {
            rows.extend(self.talk.session.background.task_rows());
        }
        for said in self.talk.session.inbox.peek() {
            let text = said.iter().find_map(Block::as_text).unwrap_or_default();
            rows.push(vec![Span::new(&format!("queued: {}", first_line(&text, QUEUED)), TextStyle::DIM)]);
        }
        for command in &self.queued {
            rows.push(vec![Span::new(&format!("queued: {}", first_line(command, QUEUED)), TextStyle::DIM)]);
        }
        let escape = if self.working.is_some() { "stops the turn" } else { "says no" };
        if let Some(asking) = self.asking.front().filter(|asking| asking.is_left()) {
            rows.extend(asking.rows(columns, escape).0);
        }
        let (lines, cursor) = if let Some(asking) = self.asking.front().filter(|asking| !asking.is_left()) {
            asking.rows(columns, escape)
        } else if let Some(picker) = &self.picker {
            picker.rows(columns, self.screen.lines().saturating_sub(rows.len() + BELOW_MENU))
        } else {
            let (lines, cursor) = self.editor.rows(&Span::new("› ", TextStyle::of(self.meaning().1)), columns);
            window(lines, cursor, half)
        };
        let cursor = (rows.len() + cursor.0, cursor.1);
        rows.extend(lines);
        let below = self.line.rows().len() + BELOW_MENU;
        rows.extend(self.menu.rows(columns, self.screen.lines().saturating_sub(rows.len() + below)));
        rows.extend(self.line.rows().iter().map(|row| super::width::fit(row, columns)));
        let background = &self.talk.session.background;
        let subagents = background.subagents();
        let out: Vec<_> = subagents.iter().filter(|subagent| subagent.is_background()).collect();
        let (names, mut asking) = (background.teammates(), background.teammates_asking());
        let teammates = names.len();
        let work = BackgroundWork {
            background: self.running_jobs() - teammates,
            teammates,
            busy: background.mail.busy().len().min(teammates),
            questions: self.asking.len(),
            waiting: out.iter().filter(|subagent| subagent.waits_for().is_some()).count() + asking.len(),
            asks: asking.pop(),
            dream: background
                .dreaming
                .as_ref()
                .map(|dream| format!("dream: {}, round {}", dream.phase.word(), dream.rounds)),
            label: out.iter().rev().find_map(|subagent| subagent.progress().label),
            teammate_label: names.iter().rev().find_map(|name| background.teammate_label(name)),
        };
        rows.push(match &self.talk.view.hint {
            Some(hint) => vec![Span::new(hint, TextStyle::of(Colour::Yellow))],
            None => self.status_row(&work, columns),
        });
        Area { rows, cursor }
    }

    /// The status line, with what is special about the prompt at its beginning.
    fn status_row(&self, work: &BackgroundWork, columns: usize) -> Vec<Span> {
        let (meaning, colour) = self.meaning();
        let vim = self.editor.vim_mode().map(|mode| Span::new(&format!("{mode} · "), TextStyle::BOLD));
        let meaning = meaning.map(|meaning| Span::new(&format!("{meaning} · "), TextStyle::of(colour)));
        let mut row: Vec<Span> = vim.into_iter().chain(meaning).collect();
        row.extend(self.talk.session.status.row(work, columns.saturating_sub(spans_width(&row))));
        row
    }

    /// What becomes of the text in the prompt, where that is no message; and the colour of its mark.
    fn meaning(&self) -> (Option<&'static str>, Colour) {
        let text = self.editor.text();
        match text.strip_prefix('!') {
            Some(_) => (Some("runs as a command"), Colour::Yellow),
            None if new_memory::fact_in(text).is_some() => (Some("saves a memory"), Colour::Green),
            None => (None, Colour::Cyan),
        }
    }

    /// The number of commands and agents in the background, teammates included.
    pub(super) fn running_jobs(&self) -> usize {
        let commands =
            self.talk.session.background.jobs.list().iter().filter(|job| job.state == tools::JobState::Running).count();
        commands + self.talk.session.background.agents.as_ref().map_or(0, |agents| agents.in_background())
    }

    fn add_doing(&self, rows: &mut Vec<Vec<Span>>) {
        let Some(working) = self.working.as_ref().filter(|_| self.asking.is_empty()) else { return };
        let background = &self.talk.session.background;
        let (commands, agents) = (background.jobs.foreground(), background.waited_for());
        let clocks = (self.ticks, Instant::now(), session::World::real().now());
        rows.extend(working.activity.rows(&commands, &agents, clocks, self.screen.columns()));
    }
}
