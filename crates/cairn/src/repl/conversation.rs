//! What stands behind the prompt, whatever the terminal can do: the agent, its session, and what commands do with them.
//!
//! It prints to a page and opens lists; how these reach a person is for the screen or the plain lines to say. It knows
//! no keys and waits for nobody.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::agent::Alone;
use engine::agents::Children;
use engine::context::Reach as Covered;
use engine::event::Listener;
use engine::hooks::Leaving;
use engine::{Agent, Event, Inbox};
use futures_util::future::BoxFuture;
use learning::dream::progress::Progress;
use mail::Mail;
use settings::permission::{Answer, Approver, Question};
use settings::{Bypass, Signals};
use tokio::sync::{mpsc, oneshot};
use tools::Scope;
use tools::permission::Mode;

use super::back::Choosing;
use super::expand::Shown;
use super::figures::Figures;
use super::jobs::Front;
use super::learnt::Learnt;
use super::page::Page;
use super::picker::Entry;
use super::put_away;
use super::status::Status;
use crate::args::RunArgs;
use crate::mailing::Mailing;
use crate::place::Place;
use crate::setup::{self, Ready};
use crate::sharing::Sharing;
use crate::span::{Colour, Look, first_line};

/// Where the agent's events and questions go.
#[derive(Clone)]
pub(super) struct Wires {
    pub(super) events: mpsc::UnboundedSender<Event>,
    pub(super) questions: mpsc::UnboundedSender<(Question, oneshot::Sender<Answer>)>,
}

impl Wires {
    /// An agent that is heard through these.
    pub(super) async fn agent(&self, args: &RunArgs, place: &Place) -> anyhow::Result<Ready> {
        let mut ready = setup::agent(args, place, Arc::new(self.clone()), self.listener()).await?;
        if let Some(dreaming) = ready.dreaming.take() {
            ready.agent = ready.agent.with_dreams(dreaming);
        }
        Ok(ready)
    }

    /// Who hears of events through these.
    fn listener(&self) -> Listener {
        let events = self.events.clone();
        Arc::new(move |event| drop(events.send(event)))
    }
}

impl Approver for Wires {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        let (reply, answer) = oneshot::channel();
        let gone = Answer::Unanswered { why: "The user has left.".to_owned() };
        if self.questions.send((question, reply)).is_err() {
            return Box::pin(std::future::ready(gone));
        }
        Box::pin(async move { answer.await.unwrap_or(gone) })
    }
}

/// How a person sees the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    /// On a screen of so many columns that is drawn anew.
    Screen {
        /// How wide it is.
        columns: usize,
    },
    /// In lines that stay as they were typed and printed, as long as they are.
    Lines,
}

/// A list to choose from, and what the choice is for.
pub(super) struct Choices {
    pub(super) title: String,
    pub(super) list: Vec<Entry>,
    pub(super) what: Choosing,
}

/// An agent, and what one can do with it.
pub(super) struct Conversation {
    pub(super) args: RunArgs,
    pub(super) place: Place,
    wires: Wires,
    pub(super) face: Face,
    /// What is to be shown.
    pub(super) page: Page,
    /// Not here while it works.
    pub(super) agent: Option<Agent>,
    pub(super) inbox: Inbox,
    pub(super) mail: Mail,
    pub(super) mailing: Mailing,
    pub(super) jobs: Arc<tools::Jobs>,
    /// The agents that can be sent out, and those that are.
    pub(super) agents: Option<Arc<Children>>,
    /// Why none can be, where none can.
    pub(super) alone: Option<Alone>,
    /// What is looked at as it goes on.
    pub(super) front: Option<Front>,
    /// A question of an agent in the background that is to be asked now.
    pub(super) taken: Option<(Question, oneshot::Sender<Answer>)>,
    pub(super) status: Status,
    /// What the user's own line is given to show, and how the session makes itself known.
    pub(super) figures: Figures,
    pub(super) signals: Signals,
    pub(super) thinks: bool,
    /// Where the agent works.
    pub(super) scope: Scope,
    /// Whether Shift-Tab leads to the mode that asks nothing: for those who started in it, or with leave to.
    pub(super) bypass_offered: bool,
    /// Whether the settings let anybody into that mode.
    pub(super) bypass: Bypass,
    /// Where memories lie, if memory is on.
    pub(super) memory: Option<PathBuf>,
    /// The memory that is shared with others, kept in step until the program ends.
    pub(super) sharing: Option<Sharing>,
    /// What was shown in one line and can be shown whole.
    pub(super) shown: VecDeque<Shown>,
    /// What was learnt in this session, the newest first.
    pub(super) learnt: Vec<Learnt>,
    /// The dream that is under way beside the session.
    pub(super) dreaming: Option<Progress>,
    /// The folder beside the session, and the tasks in it.
    pub(super) folder: PathBuf,
    pub(super) tasks: Vec<mail::tasks::Task>,
    /// Something to tell for a moment.
    pub(super) hint: Option<String>,
    /// A list that is open.
    pub(super) choices: Option<Choices>,
    /// What the prompt is to hold.
    pub(super) prompt: Option<String>,
    pub(super) leaving: bool,
    /// A compaction that was asked for: what is wished of it, and what it covers.
    pub(super) compacting: Option<(Option<String>, Covered)>,
    /// What a command says to the model in the user's place.
    pub(super) saying: Option<String>,
    /// A file that is to be opened in the user's editor.
    pub(super) editing: Option<PathBuf>,
    /// Files that the user has changed while the agent was at work.
    pub(super) edited: Vec<PathBuf>,
}

impl Conversation {
    /// With an agent that was just made.
    pub(super) fn new(args: RunArgs, place: Place, wires: Wires, ready: Ready, face: Face) -> Self {
        let columns = match face {
            Face::Screen { columns } => columns,
            Face::Lines => usize::MAX,
        };
        Self {
            status: Status::of(&ready),
            figures: Figures::new(),
            signals: ready.agent.signals().clone(),
            thinks: ready.agent.thinks(),
            scope: ready.agent.scope().clone(),
            bypass: ready.bypass,
            bypass_offered: args.allow_dangerously_skip_permissions
                || ready.agent.mode().get() == Mode::BypassPermissions,
            inbox: ready.agent.inbox().clone(),
            jobs: ready.agent.scope().jobs().clone(),
            agents: ready.agent.agents().cloned(),
            alone: ready.agent.alone(),
            front: None,
            taken: None,
            memory: memory_of(&ready.agent),
            mail: ready.agent.mail().clone(),
            tasks: ready.mailing.board.tasks(ready.agent.scope().temporary()),
            folder: ready.agent.scope().temporary().to_owned(),
            sharing: Sharing::start(&place, &ready, wires.listener()),
            learnt: super::learnt::of(ready.agent.session()),
            agent: Some(ready.agent),
            mailing: ready.mailing,
            args,
            place,
            wires,
            face,
            page: Page::new(columns),
            shown: VecDeque::new(),
            dreaming: None,
            hint: None,
            choices: None,
            prompt: None,
            leaving: false,
            compacting: None,
            saying: None,
            editing: None,
            edited: Vec::new(),
        }
    }

    /// Opens another session, or this one with other arguments, in place of the present one. Says whether it could.
    pub(super) async fn reopen(&mut self, change: impl FnOnce(&mut RunArgs)) -> anyhow::Result<bool> {
        let before = self.args.clone();
        let session = self.status.session.clone();
        change(&mut self.args);
        self.args.prompt = None;
        let unused = self.agent.as_ref().is_some_and(|agent| agent.session().log().is_empty());
        // The session is held by its agent: it has to go before the file can be opened again.
        if let Some(agent) = self.agent.take() {
            let fresh = self.args.resume.is_none() && !self.args.continue_;
            put_away(agent, if fresh { Leaving::Clear } else { Leaving::Resume }).await;
            self.mailing.close();
        }
        if unused && self.args.resume.as_ref() == Some(&session) {
            self.args.resume = None; // there is nothing to go on with
        }
        let (ready, done) = match self.wires.agent(&self.args, &self.place).await {
            Ok(ready) => (ready, true),
            Err(error) => {
                self.page.note(&format!("{error:#}"), Look::of(Colour::Red));
                self.args = before;
                let resume = (!unused).then_some(session);
                (self.args.resume, self.args.continue_, self.args.session_id) = (resume, false, None);
                (self.wires.agent(&self.args, &self.place).await?, false)
            }
        };
        self.take_over(ready);
        Ok(done)
    }

    fn take_over(&mut self, ready: Ready) {
        (self.status, self.figures) = (Status::of(&ready), Figures::new());
        (self.signals, self.scope) = (ready.agent.signals().clone(), ready.agent.scope().clone());
        self.bypass = ready.bypass;
        self.inbox = ready.agent.inbox().clone();
        self.jobs = ready.agent.scope().jobs().clone();
        self.mail = ready.agent.mail().clone();
        self.mailing = ready.mailing;
        (self.agents, self.alone, self.front) = (ready.agent.agents().cloned(), ready.agent.alone(), None);
        self.memory = memory_of(&ready.agent);
        self.folder = ready.agent.scope().temporary().to_owned();
        self.read_tasks();
        for warning in &ready.warnings {
            self.page.warning(warning);
        }
        self.learnt = super::learnt::of(ready.agent.session());
        self.agent = Some(ready.agent);
        self.shown.clear();
        self.dreaming = None;
    }

    /// Waits until others have written something that is not heard yet.
    pub(super) async fn mail_waits(&self) {
        self.mail.arrives().await;
    }

    /// Sends what waits for others, if that takes only a moment.
    pub(super) async fn part_from_team(&mut self) {
        if let Some(sharing) = self.sharing.take() {
            sharing.close().await;
        }
    }

    /// Whether a call is a command of the user's own.
    pub(super) fn is_own(call: &str) -> bool {
        call.starts_with("shell-")
    }

    /// Opens a list.
    pub(super) fn choose(&mut self, title: &str, list: Vec<Entry>, what: Choosing) {
        self.choices = Some(Choices { title: title.to_owned(), list, what });
    }

    /// A path as people write it: from the project, or from their home.
    pub(super) fn short(&self, path: &Path) -> String {
        if let Ok(inside) = path.strip_prefix(&self.place.directory)
            && inside != Path::new("")
        {
            return inside.display().to_string();
        }
        let home = self.place.user_home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        home.map_or_else(|| path.to_owned(), |inside| PathBuf::from("~").join(inside)).display().to_string()
    }

    /// What a call is about, in a few words.
    pub(super) fn about(&self, input: &serde_json::Value) -> String {
        let keys = ["command", "file_path", "pattern", "path", "description"];
        let Some((key, text)) = keys.iter().find_map(|key| Some((*key, input[*key].as_str()?))) else {
            let asked = engine::plan::ask::inquiries(input).unwrap_or_default();
            return first_line(&asked.iter().map(|one| one.question.as_str()).collect::<Vec<_>>().join(" "), 200);
        };
        let text = if key.ends_with("path") { self.short(Path::new(text)) } else { text.to_owned() };
        first_line(&text, 200)
    }
}

fn memory_of(agent: &Agent) -> Option<PathBuf> {
    agent.knowledge()?.memory_directory().map(Path::to_owned)
}
