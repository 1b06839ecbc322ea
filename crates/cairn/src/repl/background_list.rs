//! `/tasks`: what runs in the background, commands and agents alike, also while the agent works.

use std::path::PathBuf;
use std::sync::Arc;

use engine::Agent;
use engine::agent::NoSubagents;
use engine::agents::Subagents;
use engine::subagent::{Subagent, SubagentPhase};
use learning::dream::progress::DreamProgress;
use mail::Mail;
use settings::permission::Question;
use tools::{JobKind, JobState};
use transcript::price::Prices;

use super::activity::look_of;
use super::complete::Completion;
use super::conversation_view::{ConversationView, about};
use super::page::PagePart;
use super::requests::PendingQuestion;
use crate::messaging::SessionMail;
use crate::program_paths::ProgramPaths;
use crate::styled_text::{Span, TextStyle, bold, first_line, without_escapes};

/// The last lines of a job that are shown.
const SHOWN: usize = 40;

/// The job in the foreground: what it does or prints is shown as it goes on.
pub(super) enum ForegroundJob {
    /// An agent, by its id.
    Agent(String),
    /// A command.
    Command {
        /// Its id.
        id: String,
        /// Bytes of its output that were shown.
        shown: u64,
    },
}

/// Background work: commands, agents, teammates, a dream, and the task list.
pub(super) struct Background {
    pub(super) jobs: Arc<tools::Jobs>,
    /// The agents that can be started, and those that run.
    pub(super) agents: Option<Arc<Subagents>>,
    /// Why none can be, where none can.
    pub(super) alone: Option<NoSubagents>,
    /// The job in the foreground.
    pub(super) front: Option<ForegroundJob>,
    pub(super) mail: Mail,
    pub(super) mailing: SessionMail,
    /// The dream that is under way alongside the session.
    pub(super) dreaming: Option<DreamProgress>,
    /// The folder next to the session, and the tasks in it.
    pub(super) folder: PathBuf,
    pub(super) tasks: Vec<mail::task_file::Task>,
}

impl Background {
    /// Of a session that was just opened.
    pub(super) fn of(agent: &Agent, mailing: SessionMail) -> Self {
        let folder = agent.scope().temporary().to_owned();
        Self {
            jobs: agent.scope().jobs().clone(),
            agents: agent.agents().cloned(),
            alone: agent.alone(),
            front: None,
            mail: agent.mail().clone(),
            dreaming: None,
            tasks: mailing.board.tasks(&folder),
            folder,
            mailing,
        }
    }

    /// Shows them all, or what one printed or does; or stops one, or brings it to the front. Returns a question that is to
    /// be asked now.
    pub(super) fn show(
        &mut self,
        argument: &str,
        prices: &Prices,
        view: &mut ConversationView,
        place: &ProgramPaths,
    ) -> Option<PendingQuestion> {
        match argument.split_once(' ').unwrap_or((argument, "")) {
            ("", _) => self.list_background(view),
            ("stop", id) => self.stop_one(id.trim(), view),
            ("front", id) => return self.bring_to_front(id.trim(), view, place),
            (id, _) => {
                if let Some(subagent) = self.subagent(id) {
                    return look_at(&subagent, view, place);
                }
                let taken = self.mailing.teammates.as_ref().and_then(|teammates| teammates.take_question(id));
                if taken.is_none() && !self.look_at_teammate(id, prices, view, place) {
                    self.show_printed(id, view);
                }
                return taken;
            }
        }
        None
    }

    /// What is at work, by the ids that `/tasks stop` and `/tasks front` take.
    pub(super) fn completions(&self) -> Vec<Completion> {
        let jobs = self.jobs.list().into_iter().filter(|job| job.state == JobState::Running);
        let jobs = jobs.map(|job| Completion { about: first_line(&job.command, 100), text: job.id });
        let is_at_work = |subagent: &Arc<Subagent>| !matches!(subagent.phase(), SubagentPhase::Ended(_));
        let agents = self.subagents().into_iter().filter(is_at_work);
        let agents = agents.map(|subagent| Completion {
            text: subagent.id.clone(),
            about: format!("{}: {}", subagent.kind, first_line(&subagent.description, 100)),
        });
        jobs.chain(agents).collect()
    }

    /// The agents that are out, and those that lately were.
    pub(super) fn subagents(&self) -> Vec<Arc<Subagent>> {
        self.agents.as_ref().map(|agents| agents.list()).unwrap_or_default()
    }

    fn subagent(&self, id: &str) -> Option<Arc<Subagent>> {
        self.agents.as_ref().and_then(|agents| agents.find(id))
    }

    fn list_background(&mut self, view: &mut ConversationView) {
        let jobs = self.jobs.list();
        let (busy, asking) = (self.mail.busy(), self.teammates_asking());
        let job = |job: &tools::Job| {
            let state = match (job.kind, job.state) {
                (JobKind::Teammate, JobState::Running) if asking.contains(&job.id) => "asks you".to_owned(),
                (JobKind::Teammate, JobState::Running) if busy.contains(&job.id) => "at work".to_owned(),
                (JobKind::Teammate, JobState::Running) => "idle".to_owned(),
                (_, now) => state(now),
            };
            let what = if job.kind == JobKind::Teammate { "teammate: " } else { "" };
            let doing = self.teammate_label(&job.id).filter(|_| job.kind == JobKind::Teammate);
            let doing = doing.map(|label| format!(" ({label})")).unwrap_or_default();
            let about = format!("{state:<12} {what}{}{doing}", first_line(&job.command, 200));
            (bold(&job.id), vec![Span::plain(&about)])
        };
        let agent = |subagent: &Arc<Subagent>| {
            let doing = subagent.progress().label.map(|label| format!(" ({label})")).unwrap_or_default();
            let about = format!(": {}{doing}", first_line(&subagent.description, 100));
            let kind = Span::new(&subagent.kind, look_of(subagent));
            let phase = Span::plain(&format!("{:<12} ", phase(subagent)));
            (bold(&subagent.id), vec![phase, kind, Span::plain(&about)])
        };
        let dream = self.dreaming.iter().map(|dream| {
            let how = format!("{:<12} {} (/dream status, /dream stop)", dream.phase.word(), dream.line());
            (bold("dream"), vec![Span::plain(&how)])
        });
        let rows: Vec<(Span, Vec<Span>)> =
            jobs.iter().map(job).chain(self.subagents().iter().map(agent)).chain(dream).collect();
        self.read_tasks();
        if rows.is_empty() && self.tasks.is_empty() {
            view.hint = Some("nothing is running in the background, and there are no tasks".into());
            return;
        }
        if !rows.is_empty() {
            view.styled_table(&rows);
        }
        self.show_tasks(view);
    }

    fn show_printed(&self, id: &str, view: &mut ConversationView) {
        match self.jobs.recent(id) {
            Ok(text) if text.trim().is_empty() => view.hint = Some(format!("{id} has printed nothing yet")),
            Ok(text) => {
                let text = without_escapes(&text);
                let lines: Vec<&str> = text.lines().collect();
                view.page.begin(PagePart::Note);
                view.show_lines(&lines[lines.len().saturating_sub(SHOWN)..]);
            }
            Err(error) => view.hint = Some(error.to_string()),
        }
    }

    /// From now on what it does is shown, and what it asks is asked at once.
    fn bring_to_front(
        &mut self,
        id: &str,
        view: &mut ConversationView,
        place: &ProgramPaths,
    ) -> Option<PendingQuestion> {
        let Some(subagent) = self.subagent(id) else {
            self.bring_command_to_front(id, view);
            return None;
        };
        subagent.bring_to_front();
        let taken = look_at(&subagent, view, place);
        if subagent.is_out() {
            self.front = Some(ForegroundJob::Agent(subagent.id.clone()));
            view.page.note("its work is shown as it happens", TextStyle::DIM);
        }
        taken
    }

    fn bring_command_to_front(&mut self, id: &str, view: &mut ConversationView) {
        if !self.jobs.list().iter().any(|job| job.id == id && job.state == JobState::Running) {
            return self.show_printed(id, view);
        }
        view.page.note(&format!("the output of {id} is shown as it comes"), TextStyle::DIM);
        self.front = Some(ForegroundJob::Command { id: id.to_owned(), shown: 0 });
        self.follow(view);
    }

    /// The first question that an agent or a teammate waits with.
    pub(super) fn take_question(&self) -> Option<PendingQuestion> {
        let of_agent = self.subagents().into_iter().filter(|agent| agent.is_background()).find_map(|agent| {
            let (question, reply) = agent.take_question()?;
            Some((Question::Call(Box::new(question)), reply))
        });
        let teammates = self.mailing.teammates.as_ref();
        of_agent.or_else(|| teammates?.asking().iter().find_map(|name| teammates?.take_question(name)))
    }

    /// The agents that the turn waits for.
    pub(super) fn waited_for(&self) -> Vec<Arc<Subagent>> {
        let mut agents = self.subagents();
        agents.retain(|subagent| subagent.is_out() && !subagent.is_background());
        agents
    }

    /// Moves whatever the turn waits for to the background.
    pub(super) fn send_to_background(&self, view: &mut ConversationView) {
        let agents = self.waited_for().iter().filter(|agent| agent.send_to_background()).count();
        let commands = self.jobs.move_to_background();
        if agents + commands == 0 {
            view.hint = Some("nothing is running that could move to the background".into());
        }
    }

    /// True if what an agent does is shown as it goes on.
    pub(super) fn is_in_front(&self, subagent: &Subagent) -> bool {
        matches!(&self.front, Some(ForegroundJob::Agent(id)) if *id == subagent.id)
    }

    /// Shows what the command in front has printed since it was last looked at; it leaves the front with its end.
    pub(super) fn follow(&mut self, view: &mut ConversationView) {
        let Some(ForegroundJob::Command { id, shown }) = &self.front else { return };
        let (id, job) = (id.clone(), self.jobs.list().into_iter().find(|job| job.id == *id));
        let Some((job, (text, now))) = job.zip(self.jobs.printed_after(&id, *shown).ok()) else {
            self.front = None;
            return;
        };
        if !text.is_empty() {
            let text = without_escapes(&text);
            let lines: Vec<&str> = text.lines().collect();
            view.page.begin(PagePart::Note);
            view.show_lines(&lines[lines.len().saturating_sub(SHOWN)..]);
        }
        self.front = Some(ForegroundJob::Command { id: id.clone(), shown: now });
        if job.state != JobState::Running {
            view.page.note(&format!("{id}: {}", state(job.state)), TextStyle::DIM);
            self.front = None;
        }
    }

    fn stop_one(&self, id: &str, view: &mut ConversationView) {
        if let Some(subagent) = self.subagent(id).filter(|subagent| subagent.is_out()) {
            subagent.stop();
            view.page.note(&format!("stopping {id}"), TextStyle::PLAIN);
            return;
        }
        let runs = |job: &tools::Job| job.id == id && job.state == JobState::Running;
        if !self.jobs.list().iter().any(runs) {
            view.hint = Some(format!("nothing called {id:?} is running in the background; /tasks shows what is"));
            return;
        }
        view.page.note(&format!("stopping {id}"), TextStyle::PLAIN);
        let (all, id) = (self.jobs.clone(), id.to_owned());
        // It is given time to end by itself, which nobody has to wait for.
        tokio::spawn(async move { all.stop(&id).await.is_ok() });
    }
}

/// Shows what an agent does, or its result. A question that it waits with is asked now.
fn look_at(subagent: &Subagent, view: &mut ConversationView, place: &ProgramPaths) -> Option<PendingQuestion> {
    let progress = subagent.progress();
    let (calls, requests, tokens) = (progress.calls, progress.requests, progress.tokens);
    let used = format!("{calls} calls, {requests} requests, {tokens} tokens, ${:.4}", progress.cost_usd);
    let rows = [
        (subagent.id.clone(), format!("{}: {}", subagent.kind, first_line(&subagent.description, 200))),
        (phase(subagent).to_owned(), progress.label.or(progress.tool).unwrap_or_default()),
        ("used".to_owned(), used),
        ("transcript".to_owned(), place.short(&subagent.file)),
    ];
    view.table(&rows, TextStyle::BOLD);
    if let SubagentPhase::Ended(ended) = subagent.phase() {
        let lines: Vec<&str> = ended.report.lines().collect();
        view.show_lines(&lines[..lines.len().min(SHOWN)]);
    }
    subagent.take_question().map(|(question, reply)| (Question::Call(Box::new(question)), reply))
}

/// A call of an agent, in a line.
pub(super) fn done_by(subagent: &Subagent, tool: &str, input: &serde_json::Value, place: &ProgramPaths) -> String {
    format!("{}: {tool} {}", subagent.kind, about(input, place))
}

/// The state of an agent, in a word or two.
fn phase(subagent: &Subagent) -> &'static str {
    match subagent.phase() {
        SubagentPhase::Ended(ended) => match ended.how.status() {
            "completed" => "done",
            other => other,
        },
        _ if subagent.waits_for().is_some() => "asks you",
        _ => "running",
    }
}

fn state(state: JobState) -> String {
    match state {
        JobState::Running => "running".to_owned(),
        JobState::Exited { code: Some(0) } => "done".to_owned(),
        JobState::Exited { code: Some(code) } => format!("failed ({code})"),
        JobState::Exited { code: None } => "ended".to_owned(),
        JobState::TimedOut => "timed out".to_owned(),
        JobState::Stopped => "stopped".to_owned(),
    }
}
