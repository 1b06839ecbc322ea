//! Turns on the screen: what the user says, what the agent says and does.

use std::sync::Arc;
use std::time::Duration;

use engine::agent::Turn;
use engine::event::{SubagentNews, TeammateNews};
use engine::run::TurnEnd;
use engine::subagent::Subagent;
use engine::{Agent, Event};
use mail::mailbox::IdleReason;
use settings::permission::{PermissionAnswer, Question};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use transcript::{Block, Outcome, tool_names};

use super::activity::TurnActivity;
use super::background_list::done_by;
use super::call_result::{self, ChangeDisplay};
use super::conversation_view::about;
use super::expand::{is_own, recalled};
use super::page::PagePart;
use super::question::{OpenQuestion, QuestionStep, reason_shown};
use super::{Repl, RunningTurn, notice, permission_rules};
use crate::event_text;
use crate::styled_text::{Colour, Span, TextStyle, first_line, without_escapes};

/// Tools whose effect is seen in the task list.
const TASK_LIST_TOOLS: [&str; 4] =
    [tool_names::TASK_CREATE, tool_names::TASK_GET, tool_names::TASK_LIST, tool_names::TASK_UPDATE];
/// For how long after a key the user counts as typing.
const A_MOMENT: Duration = Duration::from_secs(1);

/// Waits for the end of the turn under way; forever, if there is none.
pub(super) async fn ended(working: &mut Option<RunningTurn>) -> Option<(Agent, Turn)> {
    match working {
        Some(working) => (&mut working.task).await.ok(),
        None => std::future::pending().await,
    }
}

/// True if a message tells the same.
pub(super) fn is_said(news: &TeammateNews) -> bool {
    matches!(news, TeammateNews::Rests(IdleReason::Available | IdleReason::Failed))
}

impl Repl {
    /// Begins a turn.
    pub(super) fn start(&mut self, said: Vec<Block>) {
        self.work("waiting for the model", |mut agent, cancel| async move {
            let turn = agent.turn(said, &cancel).await;
            (agent, turn)
        });
    }

    /// Runs a command of the user's own; the model sees it with the next message.
    pub(super) fn start_shell(&mut self, command: &str) {
        let command = command.to_owned();
        self.talk.view.page.begin(PagePart::Said);
        self.talk
            .view
            .page
            .line(&[Span::new("! ", TextStyle::of(Colour::Yellow)), Span::new(&command, TextStyle::BOLD)], 2);
        self.work(&format!("$ {}", first_line(&command, 60)), |mut agent, cancel| async move {
            let turn = agent.shell(&command, &cancel).await;
            (agent, turn)
        });
    }

    /// Compacts, if that was asked for.
    pub(super) fn start_compaction(&mut self) {
        let Some((wish, part)) = self.talk.requests.compacting.take() else { return };
        self.work("compacting", |mut agent, cancel| async move {
            let turn = agent.compaction(wish, part, &cancel).await;
            (agent, turn)
        });
    }

    fn work<Work, Doing>(&mut self, doing: &str, work: Doing)
    where
        Doing: FnOnce(Agent, CancellationToken) -> Work,
        Work: Future<Output = (Agent, Turn)> + Send + 'static,
    {
        let Some(agent) = self.talk.session.agent.take() else { return };
        self.typed_at = None; // what began this was typed to its end
        let cancel = CancellationToken::new();
        let task = tokio::spawn(work(agent, cancel.clone()));
        self.working = Some(RunningTurn { task, cancel, activity: TurnActivity::new(doing, Instant::now()) });
    }

    /// A turn is over and the agent is back.
    pub(super) fn turn_ended(&mut self, ended: Option<(Agent, Turn)>) -> anyhow::Result<()> {
        self.working = None;
        self.asking.retain(OpenQuestion::is_wanted);
        (self.talk.view.hint, self.armed) = (None, false);
        let rows = self.markdown.finish();
        self.talk.view.page.rows(rows);
        let Some((agent, turn)) = ended else {
            anyhow::bail!(
                "the turn failed; what was written is safe: cairn --resume {}",
                self.talk.session.status.session
            );
        };
        self.talk.session.agent = Some(agent);
        self.talk.take_in_edited();
        self.idle_at = Some(Instant::now() + self.talk.session.signals.patience);
        if let Some(trouble) = event_text::trouble_and_hint(&turn.end) {
            self.talk.view.page.note(&trouble, TextStyle::of(Colour::Red));
        }
        if matches!(turn.end, TurnEnd::Ended(_)) {
            // What came too late for the turn's last round begins the next one; the rest joins it.
            if let Some(said) = self.talk.session.inbox.next() {
                self.start(said);
            } else {
                self.start_with_reports();
            }
        } else {
            self.take_all_back();
        }
        Ok(())
    }

    /// Puts queued messages back into the prompt, before what is being typed there.
    fn take_all_back(&mut self) {
        let mut texts = Vec::new();
        while let Some(said) = self.talk.session.inbox.next() {
            texts.extend(said.iter().find_map(Block::as_text));
        }
        if !texts.is_empty() {
            let typed = self.editor.take();
            texts.extend((!typed.is_empty()).then_some(typed));
            self.editor.set(&texts.join("\n"));
        }
    }

    /// Something happened.
    pub(super) fn heard(&mut self, event: Event) {
        self.talk.heard(&event);
        self.working.iter_mut().for_each(|working| working.activity.heard(&event, Instant::now()));
        if self.talk.session.figures.heard(&event) {
            self.line.want();
        }
        match event {
            Event::SignalsChanged(signals) => {
                self.line.set(signals.status_line.clone());
                self.talk.session.signals = signals;
            }
            Event::PromptSubmitted { text, .. } => self.talk.view.show_said(&text),
            Event::TeammateAsks { name, .. } => {
                self.remark(&format!("{name} asks something: /tasks {name}"), TextStyle::DIM);
            }
            Event::Teammate { name, news, used, .. } => {
                // That one is idle, its own message says.
                if let Some(text) = event_text::mate_news(&name, &news, &used).filter(|_| !is_said(&news)) {
                    self.remark(&text, TextStyle::DIM);
                }
            }
            Event::MessageArrived { from, text } => self.talk.view.show_message(&from, &text),
            Event::RequestSent { .. } => self.doing("waiting for the model"),
            Event::Text(text) => {
                self.doing("writing");
                self.talk.view.page.begin(PagePart::Reply);
                let rows = self.markdown.push(&text);
                self.talk.view.page.rows(rows);
            }
            Event::Thinking(text) => {
                self.doing("thinking");
                self.working.iter_mut().for_each(|working| working.activity.thinks(&text));
            }
            Event::CallWriting { tool } => self.doing(&format!("writing a call to {tool}")),
            Event::Restarted => {
                self.markdown.finish();
                self.talk.view.page.note("(the reply broke off and begins again)", TextStyle::DIM);
            }
            Event::Replied { .. } => {
                let rows = self.markdown.finish();
                self.talk.view.page.rows(rows);
            }
            Event::ToolStarted { id, tool, input } => {
                if !is_own(&id) {
                    self.doing(&format!("{tool} {}", about(&input, &self.talk.place)));
                }
            }
            Event::Agent { subagent, news } => self.heard_of(&subagent, news),
            Event::ToolDenied { tool, input, why, .. } => {
                let (what, why) = (about(&input, &self.talk.place), reason_shown(&why));
                self.talk.view.page.call(
                    Span::new("✗ ", TextStyle::of(Colour::Red)),
                    &tool,
                    &what,
                    &first_line(&why, 200),
                );
            }
            Event::ToolEnded { id, tool, output } => self.tool_ended(&id, &tool, &output),
            Event::HooksStarted { hook_event, status } => {
                self.doing(&status.unwrap_or_else(|| format!("{} hooks", hook_event.name())));
            }
            Event::HookMessage { hook_event, text } => {
                self.remark(&format!("{} hook: {text}", hook_event.name()), TextStyle::DIM);
            }
            Event::Recalled { memories } => self.remark(&recalled(&memories), TextStyle::DIM),
            Event::InstructionsLoaded { files } => {
                let names: Vec<String> = files.iter().map(|file| self.talk.place.short(&file.path)).collect();
                self.remark(&format!("instructions loaded: {}", names.join(", ")), TextStyle::DIM);
            }
            Event::MemorySaved { path } => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                self.remark(&format!("memory saved: {name}"), TextStyle::of(Colour::Green));
            }
            Event::MemoryForgotten { path } => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                self.remark(&format!("memory forgotten: {name}"), TextStyle::of(Colour::Green));
            }
            Event::Extracted(_) => {
                if let Some(text) = event_text::of_layers(&event) {
                    let how =
                        if self.talk.requests.leaving { "cairn memory log: look" } else { "Ctrl-S: look, change" };
                    self.remark(&format!("{text} ({how}, take back)"), TextStyle::of(Colour::Green));
                }
            }
            Event::Warning(text) => self.talk.view.page.warning(&text),
            Event::TeamMemory { sentences: told, changed } => {
                told.iter().for_each(|text| self.remark(text, TextStyle::DIM));
                self.talk.view.team_changes(&changed);
            }
            Event::Compacting { .. } => self.doing("compacting"),
            // The row of the turn says it, while it matters.
            Event::Retrying { .. } => {}
            Event::SessionStarted { .. } | Event::ModelChanged { .. } | Event::TurnEnded { .. } => {}
            Event::Attached { .. } => {
                for line in event_text::of_layers(&event).unwrap_or_default().lines() {
                    self.remark(&format!("  {line}"), TextStyle::DIM);
                }
            }
            Event::Spilled { .. }
            | Event::Snipped { .. }
            | Event::Collapsed { .. }
            | Event::Cleared { .. }
            | Event::Regretted { .. }
            | Event::Compacted { .. }
            | Event::CompactionFailed { .. }
            | Event::NotesUpdated { .. }
            | Event::Dream(_)
            | Event::CacheBroke(_) => {
                if let Some(text) = event_text::of_layers(&event) {
                    self.remark(&text, TextStyle::DIM);
                }
            }
        }
    }

    /// Shows news of a subagent.
    fn heard_of(&mut self, subagent: &Arc<Subagent>, news: SubagentNews) {
        let in_front = self.talk.session.background.is_in_front(subagent);
        // It may have ended by the time this is heard.
        let is_behind = subagent.is_background() || subagent.ended_behind();
        if let Some(text) = event_text::subagent_news(subagent, &news) {
            self.remark(&text, TextStyle::DIM);
        }
        match news {
            SubagentNews::Does(event) => match *event {
                Event::ToolStarted { tool, input, .. } if !is_behind => {
                    let what = done_by(subagent, &tool, &input, &self.talk.place);
                    self.working.iter_mut().for_each(|working| working.activity.agent_does(&subagent.id, what.clone()));
                }
                Event::ToolStarted { tool, input, .. } if in_front => {
                    let text = done_by(subagent, &tool, &input, &self.talk.place);
                    self.remark(&text, TextStyle::DIM);
                }
                Event::ToolEnded { tool, output, .. } if output.rewrite.is_some() => {
                    let path = output.changed.as_ref().map(|path| self.talk.place.short(path)).unwrap_or_default();
                    let tool = format!("{}: {tool}", subagent.kind);
                    let page = &mut self.talk.view.page;
                    call_result::show(page, &tool, &path, &output, ChangeDisplay::Already);
                }
                Event::Warning(text) => self.talk.view.page.warning(&format!("{}: {text}", subagent.kind)),
                _ => {}
            },
            SubagentNews::Ended if subagent.ended_behind() => {
                if in_front {
                    self.talk.session.background.front = None;
                }
                self.start_with_reports();
            }
            SubagentNews::Started
            | SubagentNews::Backgrounded
            | SubagentNews::Asks
            | SubagentNews::Labelled
            | SubagentNews::Ended => {}
        }
    }

    /// Begins a turn with what agents in the background have reported, unless one is under way.
    fn start_with_reports(&mut self) {
        let idle = self.working.is_none() && self.talk.session.agent.is_some();
        if idle && self.talk.session.background.agents.as_ref().is_some_and(|agents| agents.has_news()) {
            self.start(Vec::new());
        }
    }

    /// Something the agent did beside its calls.
    fn remark(&mut self, text: &str, look: TextStyle) {
        self.talk.view.page.begin(PagePart::Calls);
        self.talk.view.page.line(&[Span::new(text, look)], 2);
    }

    fn doing(&mut self, what: &str) {
        if let Some(working) = self.working.as_mut().filter(|working| !working.cancel.is_cancelled()) {
            working.activity.does(what);
        }
    }

    fn tool_ended(&mut self, id: &str, tool: &str, output: &tools::Output) {
        if is_own(id) {
            // The user's own command: its output is what was wanted.
            self.talk.view.page.begin(PagePart::Calls);
            let text = without_escapes(&output.text());
            self.talk.view.show_lines(&text.lines().collect::<Vec<_>>());
            return;
        }
        // The list above the prompt says it.
        if output.outcome == Outcome::Done && TASK_LIST_TOOLS.contains(&tool) {
            return;
        }
        // A call that was not allowed has ended without having begun, and was told of already.
        let Some(what) = self.talk.view.input_of(id).map(|input| about(input, &self.talk.place)) else { return };
        let was_shown = self.talk.view.changes_shown.remove(id);
        let change = if was_shown { ChangeDisplay::Already } else { ChangeDisplay::Not };
        call_result::show(&mut self.talk.view.page, tool, &what, output, change);
    }

    /// Asks what agents in the background wait with, once nothing else is under way and nobody is typing.
    pub(super) fn ask_for_background(&mut self) {
        let is_free = self.is_idle() && self.asking.is_empty() && self.talk.view.pager.is_none() && !self.is_typing();
        if is_free && let Some((question, reply)) = self.talk.session.background.take_question() {
            self.asked(question, reply);
        }
    }

    /// The agent asks for permission.
    pub(super) fn asked(&mut self, question: Question, reply: oneshot::Sender<PermissionAnswer>) {
        if !self.is_typing() {
            notice::tell(self.talk.session.signals.channel, "Cairn needs your permission");
        }
        self.asking.push_back(OpenQuestion::new(question, reply));
        if self.asking.len() == 1 {
            self.show_question();
        }
    }

    fn show_question(&mut self) {
        let Some(mut asking) = self.asking.pop_front() else { return };
        if self.is_typing() {
            asking.leave();
        }
        asking.show(&mut self.talk.view.page, |path| self.talk.place.short(path));
        self.talk.view.changes_shown.extend(asking.changing().map(str::to_owned));
        self.asking.push_front(asking);
    }

    /// True if the user is typing a message, or was a moment ago: a message that has just been sent is often followed
    /// by another.
    fn is_typing(&self) -> bool {
        !self.editor.text().is_empty() || self.typed_at.is_some_and(|at| at.elapsed() < A_MOMENT)
    }

    /// The question was answered.
    pub(super) fn answered(&mut self, answered: &QuestionStep) {
        self.asking.pop_front();
        match answered {
            QuestionStep::Always(rules) => {
                for rule in rules {
                    let said = match permission_rules::allow(&self.talk.place, rule) {
                        Ok(path) => format!("  {rule} is allowed from now on: {}", self.talk.place.short(&path)),
                        Err(error) => format!("  {rule} is allowed in this session; it could not be written: {error}"),
                    };
                    self.talk.view.page.line(&[Span::new(&said, TextStyle::DIM)], 2);
                }
            }
            QuestionStep::Mode(mode) => self.talk.change_mode(*mode),
            QuestionStep::Stop => self.stop(),
            QuestionStep::Once | QuestionStep::No | QuestionStep::Not | QuestionStep::NotMeant => {}
        }
        self.show_question();
    }
}
