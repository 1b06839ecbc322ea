//! The state behind the prompt, whatever the terminal can do: the agent, its session, and what commands do with them.
//!
//! It prints to a page and opens lists; the screen or the plain session shows them to a person. It knows no keys and
//! waits for nobody.

use std::sync::Arc;

use engine::Event;
use engine::agent::AttachmentSource;
use engine::event::Listener;
use engine::hooks::ExitReason;
use futures_util::future::BoxFuture;
use learning::dream::progress::DreamProgress;
use settings::permission::{Approver, PermissionAnswer, Question};
use tokio::sync::{mpsc, oneshot};
use tools::permission::Mode;

use super::conversation_view::{ConversationView, Display};
use super::put_away;
use super::requests::{PendingQuestion, PendingRequests};
use super::screen_choices::ScreenChoices;
use super::session_state::SessionState;
use crate::args::RunArgs;
use crate::program_paths::ProgramPaths;
use crate::setup::{self, PreparedSession};
use crate::styled_text::{Colour, TextStyle};
use crate::team_memory::TeamMemory;

/// Channels for the agent's events and questions.
#[derive(Clone)]
pub(super) struct AgentChannels {
    pub(super) events: mpsc::UnboundedSender<Event>,
    pub(super) questions: mpsc::UnboundedSender<PendingQuestion>,
}

impl AgentChannels {
    /// An agent that is heard through these.
    pub(super) async fn agent(&self, args: &RunArgs, place: &ProgramPaths) -> anyhow::Result<PreparedSession> {
        let mut ready = setup::agent(args, place, Arc::new(self.clone()), self.listener()).await?;
        ready.agent.attach_files_of(AttachmentSource::Messages);
        if let Some(dreaming) = ready.dreaming.take() {
            ready.agent = ready.agent.with_dreams(dreaming);
        }
        Ok(ready)
    }

    /// The listener that sends events into these channels.
    fn listener(&self) -> Listener {
        let events = self.events.clone();
        Arc::new(move |event| drop(events.send(event)))
    }
}

impl Approver for AgentChannels {
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer> {
        let (reply, answer) = oneshot::channel();
        let gone = PermissionAnswer::Unanswered { why: "The user has left.".to_owned() };
        if self.questions.send((question, reply)).is_err() {
            return Box::pin(std::future::ready(gone));
        }
        Box::pin(async move { answer.await.unwrap_or(gone) })
    }
}

/// An agent, and what one can do with it.
pub(super) struct Conversation {
    pub(super) args: RunArgs,
    pub(super) place: ProgramPaths,
    channels: AgentChannels,
    pub(super) session: SessionState,
    pub(super) requests: PendingRequests,
    pub(super) view: ConversationView,
    /// True if the model was thinking before answers when the program began.
    pub(super) thinks: bool,
    /// Colours and keys chosen by a command.
    pub(super) screen_choices: ScreenChoices,
    /// True if Shift-Tab leads to `bypassPermissions`: for those who started in it, or with permission to.
    pub(super) bypass_offered: bool,
    /// The memory that is shared with others, kept in step until the program ends.
    pub(super) sharing: Option<TeamMemory>,
}

impl Conversation {
    /// With an agent that was just made.
    pub(super) fn new(
        args: RunArgs,
        place: ProgramPaths,
        channels: AgentChannels,
        ready: PreparedSession,
        face: Display,
    ) -> Self {
        Self {
            thinks: ready.agent.thinks(),
            bypass_offered: args.allow_dangerously_skip_permissions
                || ready.agent.mode().get() == Mode::BypassPermissions,
            screen_choices: ScreenChoices::default(),
            sharing: TeamMemory::start(&place, &ready, channels.listener()),
            session: SessionState::of(ready),
            requests: PendingRequests::default(),
            view: ConversationView::new(face),
            args,
            place,
            channels,
        }
    }

    /// Opens another session, or this one with other arguments, in place of the present one. Says whether it could.
    pub(super) async fn reopen(&mut self, change: impl FnOnce(&mut RunArgs)) -> anyhow::Result<bool> {
        let before = self.args.clone();
        let session = self.session.status.session.clone();
        change(&mut self.args);
        self.args.prompt = None;
        let unused = self.session.agent.as_ref().is_some_and(|agent| agent.session().log().is_empty());
        // The session is held by its agent: it has to go before the file can be opened again.
        if let Some(agent) = self.session.agent.take() {
            let fresh = self.args.resume.is_none() && !self.args.continue_;
            put_away(agent, if fresh { ExitReason::Clear } else { ExitReason::Resume }).await;
            self.session.background.mailing.close();
        }
        if unused && self.args.resume.as_ref() == Some(&session) {
            self.args.resume = None; // there is nothing to go on with
        }
        let (mut ready, done) = match self.channels.agent(&self.args, &self.place).await {
            Ok(ready) => (ready, true),
            Err(error) => {
                self.view.page.note(&format!("{error:#}"), TextStyle::of(Colour::Red));
                self.args = before;
                let resume = (!unused).then_some(session);
                (self.args.resume, self.args.continue_, self.args.session_id) = (resume, false, None);
                (self.channels.agent(&self.args, &self.place).await?, false)
            }
        };
        for warning in std::mem::take(&mut ready.warnings) {
            self.view.page.warning(&warning);
        }
        self.session = SessionState::of(ready);
        self.view.shown.clear();
        Ok(done)
    }

    /// Waits until others have written something that is not heard yet.
    pub(super) async fn mail_waits(&self) {
        self.session.background.mail.arrives().await;
    }

    /// Sends what waits for others, if that takes only a moment.
    pub(super) async fn part_from_team(&mut self) {
        if let Some(sharing) = self.sharing.take() {
            sharing.close().await;
        }
    }

    /// Takes in what an event tells, whoever shows it.
    pub(super) fn heard(&mut self, event: &Event) {
        self.session.status.heard(event);
        self.view.heard(event);
        match event {
            Event::ToolEnded { tool, .. } if tool.starts_with("Task") => self.session.background.read_tasks(),
            Event::Extracted(outcome) => self.was_learnt(outcome),
            Event::Dream(progress) => {
                self.session.background.dreaming = Some((**progress).clone()).filter(DreamProgress::is_under_way);
            }
            _ => {}
        }
    }
}
