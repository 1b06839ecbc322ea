//! Processes of teammates, each with a session of its own.
//!
//! A teammate is started below the session's guard, among its jobs, so it ends with its lead however that ends. Its
//! first task is a message in its mailbox like any later one. It has no more permissions than the lead: it gets the
//! lead's flags and is held to the lead's mode; permission requests go to the lead's side, under its name. Stopping the
//! lead interrupts it too, but it stays.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mail::mailbox::{ControlMessage, LEAD, Mailbox, Message};
use mail::task_file::TaskBoard;
use mail::{MessageOrigin, Messenger, Team, TeamInvitation, TeamMember, name_of};
use parking_lot::Mutex;
use session::World;
use session::stats::Teammate;
use settings::agent_definitions::{Definition, Isolation};
use settings::permission::{Approver, PermissionAnswer, Policy, Question, SharedMode};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;
use tools::permission::Mode;
use tools::{JobState, Jobs, Scope};
use transcript::price::Prices;

use super::lead_service::{LeadContacts, LeadPolicy, LeadService, Questions};
use crate::event::{Event, Listener, TeammateNews};

/// Time for which a teammate that has announced its end is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Default type of a teammate.
const TEAMMATE: &str = "teammate";
/// Task text of a resumed teammate.
const GOES_ON: &str = "goes on with what it knew";
/// Flag that makes a teammate work in its own worktree.
const IN_WORKTREE: &str = "--in-worktree";
/// Reminder for the model about teammates that were stopped with it.
const INTERRUPTED: &str =
    "were interrupted by the user. They are idle and know what they knew: write to one, and it goes on.";
/// Reminder for the model about teammates that had to end.
const GONE: &str = "ended when this session last ended. Tasks they had begun are pending again. Write to one, and it \
                    goes on where it was.";
/// First message to a teammate.
const PROMPT: &str = include_str!("../prompts/teammate.md");

/// Starts teammates for a session. Clones share the team.
#[derive(Clone)]
pub struct Teammates {
    inner: Arc<TeammatesInner>,
}

struct TeammatesInner {
    team: Team,
    post: Messenger,
    board: TaskBoard,
    mode: SharedMode,
    begun: AtomicBool,
    /// True while the lead is leaving.
    leaves: Arc<AtomicBool>,
    lead: Lead,
    /// Permission requests that wait until somebody looks.
    questions: Questions,
    state: Mutex<TeammatesState>,
}

#[derive(Default)]
struct TeammatesState {
    /// Approver of the teammates' requests, and receiver of their events.
    contacts: Option<LeadContacts>,
    /// The lead's permission policy; `None` if no session leads them.
    policy: Option<LeadPolicy>,
    answering: Option<AbortOnDropHandle<()>>,
    /// Names and sessions of started teammates that are not yet in the lead's log.
    started: Vec<(String, String)>,
    /// Tasks that clean up after each started teammate.
    ending: BTreeMap<String, JoinHandle<()>>,
    /// Sessions that were active here: their teammate, and their number of lines before.
    sessions: BTreeMap<String, (String, usize)>,
    /// Latest label of each teammate.
    labels: BTreeMap<String, String>,
    /// Reminders for the model's next turn.
    untold: Vec<String>,
    /// Lock that shows that the lead is present.
    held: Option<files::Lock>,
}

/// The lead, as far as its teammates need to know it.
#[derive(Debug, Clone)]
pub struct Lead {
    /// Its session.
    pub session: String,
    /// Folder of its own task list.
    pub folder: PathBuf,
    /// Folder of its project's sessions, which holds those of its teammates.
    pub sessions: PathBuf,
    /// Prices of tokens.
    pub prices: Prices,
    /// Its working directory.
    pub directory: PathBuf,
    /// The program that teammates run.
    pub program: PathBuf,
    /// The lead's flags that apply to its teammates too.
    pub flags: Vec<String>,
    /// The guard, if there is one.
    pub guard: Option<PathBuf>,
    /// The clock.
    pub world: World,
}

/// Request for a teammate.
#[derive(Debug, Clone)]
pub struct TeammateRequest {
    /// Its name.
    pub name: String,
    /// Its task.
    pub prompt: String,
    /// Its type, the name of an existing definition.
    pub kind: Option<String>,
    /// The model, if it differs from the lead's.
    pub model: Option<String>,
    /// True if it has to plan first, and wait for the lead's approval.
    pub plans: bool,
    /// Isolation of its working directory.
    pub isolation: Isolation,
}

impl TeammateRequest {
    /// Applies a definition. Explicit values win, except that plan mode of the definition stays.
    #[must_use]
    pub fn of_type(self, definition: Definition) -> Self {
        let words = definition.initial_prompt.into_iter().chain([self.prompt]);
        Self {
            name: self.name,
            prompt: words.collect::<Vec<_>>().join("\n\n"),
            kind: Some(definition.name),
            model: self.model.or(definition.model).filter(|model| model != "inherit"),
            plans: self.plans || definition.mode == Some(Mode::Plan),
            isolation: match self.isolation {
                Isolation::None => definition.isolation,
                Isolation::Worktree => Isolation::Worktree,
            },
        }
    }
}

impl fmt::Debug for Teammates {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "teammates of {}", self.inner.lead.session)
    }
}

impl Teammates {
    /// For a session that leads a team, once it has one.
    pub fn new(team: Team, post: Messenger, board: TaskBoard, mode: SharedMode, lead: Lead) -> Self {
        Self {
            inner: Arc::new(TeammatesInner {
                team: team.held_to(mode.clone()),
                post,
                board,
                mode,
                begun: AtomicBool::new(false),
                leaves: Arc::default(),
                lead,
                questions: Questions::default(),
                state: Mutex::default(),
            }),
        }
    }

    /// The team.
    pub fn team(&self) -> &Team {
        &self.inner.team
    }

    /// Sets the approver of the teammates' requests.
    pub fn answered_by(&self, approver: Arc<dyn Approver>, listener: Listener) {
        self.inner.state.lock().contacts = Some((approver, listener));
    }

    /// Sets the lead's current permission policy.
    pub(crate) fn judged_by(&self, policy: Policy, scope: Scope) {
        self.inner.state.lock().policy = Some(LeadPolicy { policy, scope });
    }

    /// Teammates that wait with a permission request until somebody looks.
    pub fn asking(&self) -> Vec<String> {
        self.inner.questions.names()
    }

    /// Takes a teammate's waiting permission request, if any; the caller answers it.
    pub fn take_question(&self, name: &str) -> Option<(Question, oneshot::Sender<PermissionAnswer>)> {
        self.inner.questions.take(name)
    }

    /// Starts a teammate. When this returns, it runs and has its first message.
    pub fn start(&self, wanted: &TeammateRequest, jobs: &Jobs) -> Result<String, String> {
        let TeammatesInner { team, post, lead, .. } = &*self.inner;
        self.begin()?;
        let said = |error: mail::mailbox::MailError| error.to_string();
        let (name, now) = (wanted.name.as_str(), lead.world.now());
        if name.eq_ignore_ascii_case(LEAD) {
            return Err(format!("{LEAD} is the lead's own name"));
        }
        let (kind, session) = (wanted.kind.as_deref().unwrap_or(TEAMMATE), post.fresh());
        let isolation = wanted.isolation;
        team.invite(&TeamInvitation { name, kind, session: &session, isolation }, &lead.directory, now)
            .map_err(said)?;
        let first = Message::new(post.fresh(), LEAD, &wanted.prompt, now);
        let mut words = self.words(name, if wanted.plans { Mode::Plan } else { self.inner.mode.get() });
        words.push(format!("--session-id={session}"));
        words.extend((isolation == Isolation::Worktree).then(|| IN_WORKTREE.to_owned()));
        words.extend(wanted.kind.iter().map(|kind| format!("--agent-type={kind}")));
        if let Some(model) = &wanted.model {
            words.retain(|word| !word.starts_with("--model="));
            words.push(format!("--model={model}"));
        }
        let sent = team.write_to(name, &first).map_err(said);
        let about = wanted.prompt.lines().next().unwrap_or_default();
        sent.and_then(|()| self.run((name, about), words, jobs)).inspect_err(|_| {
            let _ = team.dismiss(name); // the next lead of this team begins without it in any case
        })?;
        post.mail().works(name, &first.id);
        let mut state = self.inner.state.lock();
        state.sessions.insert(session.clone(), (name.to_owned(), 0));
        state.started.push((name.to_owned(), session));
        drop(state);
        self.inner.tell(name, TeammateNews::Started);
        Ok(format!("{name} works in a process of its own. It tells you when it is idle; write to it with SendMessage."))
    }

    /// Takes the names and sessions of teammates started since the last call.
    pub(crate) fn take_started(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.inner.state.lock().started)
    }

    /// Resumes a teammate that has ended, with its old session. Returns whether there was one.
    pub async fn wake(&self, name: &str, jobs: &Jobs) -> Result<bool, String> {
        let team = &self.inner.team;
        if self.inner.post.mail().has_left(name) {
            // It has said that it ends: what is written to it now is for the one that goes on after it.
            self.has_ended(name).await; // one that hangs is there, and not woken
        }
        let left = team.members().into_iter().find(|member| member.name == name && !member.is_active);
        let Some(TeamMember { session_id: Some(session), agent_type: kind, isolation, .. }) = left else {
            return Ok(false);
        };
        self.begin()?;
        team.welcome(name).map_err(|error| error.to_string())?;
        self.inner.counts(name, &session);
        let mut words = self.words(name, self.inner.mode.get());
        words.push(format!("--resume={session}"));
        words.extend((isolation == Isolation::Worktree).then(|| IN_WORKTREE.to_owned()));
        words.extend((kind != TEAMMATE).then(|| format!("--agent-type={kind}")));
        self.run((name, GOES_ON), words, jobs).inspect_err(|_| {
            let _ = team.dismiss(name); // the next lead of this team begins without it in any case
        })?;
        self.inner.tell(name, TeammateNews::Started);
        Ok(true)
    }

    /// Waits for a while until the process of a leaving teammate has ended.
    async fn has_ended(&self, name: &str) {
        let ending = self.inner.state.lock().ending.remove(name);
        if let Some(ending) = ending {
            let _ = tokio::time::timeout(PATIENCE, ending).await;
        }
    }

    /// Runs a teammate's process, and cleans up after it has ended.
    fn run(&self, (name, about): (&str, &str), words: Vec<String>, jobs: &Jobs) -> Result<(), String> {
        let TeammatesInner { team, post, lead, .. } = &*self.inner;
        // A pipe is read once; what stands on a command line anybody can look at.
        let secret = team.secret_for(name).unwrap_or_default();
        let ended = jobs.start_teammate((name, about), words, secret, &lead.directory, lead.guard.as_deref())?;
        let (team, post, name, world) = (team.clone(), post.clone(), name.to_owned(), lead.world.clone());
        let (key, inner, leaves) = (name.clone(), Arc::downgrade(&self.inner), self.inner.leaves.clone());
        let ending = tokio::spawn(async move {
            let state = ended.await;
            if let Some(inner) = inner.upgrade() {
                inner.questions.withdraw(&name);
                inner.tell(&name, TeammateNews::Ended(state));
            }
            if state != JobState::Stopped || !leaves.load(Ordering::SeqCst) {
                let _ = team.dismiss(&name); // the next lead of this team begins without it in any case
            }
            post.mail().rests(&name);
            let unheard = Mailbox::of(&team.inboxes(), &name).and_then(|mailbox| mailbox.waiting());
            let unheard = unheard.map_or(0, |waiting| waiting.len());
            let is_well = state == JobState::Exited { code: Some(0) } || state == JobState::Stopped;
            if !is_well || unheard > 0 {
                let text = format!(
                    "[its process has ended; {unheard} messages to it were not read. Its tasks are pending again. \
                     Write to it, and it continues.]"
                );
                post.mail().push(Message::new(post.fresh(), name, text, world.now()), MessageOrigin::Process);
            }
            post.mail().ring();
        });
        self.inner.state.lock().ending.insert(key, ending);
        Ok(())
    }

    /// Continues with the team of a resumed session: messages written meanwhile are received.
    ///
    /// Returns the teammates that were working then and ended with their lead.
    pub fn go_on(&self) -> Result<Vec<String>, String> {
        let members = self.inner.team.members();
        if members.is_empty() {
            return Ok(Vec::new());
        }
        self.begin()?;
        let there = members.into_iter().filter(|member| member.is_active && member.name != LEAD);
        let gone: Vec<String> = there.map(|member| name_of(&member.name)).collect();
        self.inner.remind(&gone, GONE);
        Ok(gone)
    }

    /// Takes the reminders that the model was not yet given.
    pub(crate) fn take_untold(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.state.lock().untold)
    }

    /// Interrupts working teammates: each stops its turn, and stays. Returns their names.
    pub fn interrupt(&self) -> Vec<String> {
        let TeammatesInner { team, post, lead, questions, .. } = &*self.inner;
        let there = team.others();
        let mut busy = post.mail().busy();
        busy.retain(|name| there.contains(name));
        for name in &busy {
            let (now, id) = (lead.world.now(), post.fresh());
            let message = Message::new(id, LEAD, ControlMessage::Interrupt.to_text(LEAD, now).unwrap_or_default(), now);
            // One that cannot be written to ends with the lead.
            let _ = team.write_to(name, &message);
            questions.withdraw(name);
            post.mail().rests(name);
        }
        self.inner.remind(&busy, INTERRUPTED);
        busy
    }

    /// Takes in that a teammate is idle, and to whom it has given work.
    pub fn heard(&self, message: &Message) {
        if let ControlMessage::Idle { rest, handed, .. } = message.word() {
            let there = self.inner.team.others();
            for (name, id) in handed.iter().filter(|(name, _)| there.contains(name)) {
                self.inner.post.mail().works_for(name, &message.from, id);
            }
            self.inner.tell(&message.from, TeammateNews::Rests(rest));
        }
    }

    /// Label of a working teammate, if it has one.
    pub fn label(&self, name: &str) -> Option<String> {
        let is_busy = || self.inner.post.mail().busy().iter().any(|busy| busy == name);
        self.inner.state.lock().labels.get(name).filter(|_| is_busy()).cloned()
    }

    /// Usage of the teammates that were working since this began, from their own sessions.
    pub fn spent(&self) -> Vec<Teammate> {
        let Lead { sessions, prices, .. } = &self.inner.lead;
        let known = self.inner.state.lock().sessions.clone();
        let spent = |(session, (name, before)): (&String, &(String, usize))| {
            Teammate::of(sessions, (name, session), *before, prices)
        };
        known.iter().filter_map(spent).collect()
    }

    /// Waits for teammates that have announced their end, so that the rest of their usage is counted.
    pub async fn part(&self) {
        for name in self.inner.post.mail().left() {
            self.has_ended(&name).await; // one that hangs is ended with its lead
        }
    }

    /// Notes that the lead is leaving: teammates that end with it stay members, for when the session is resumed.
    pub(crate) fn leave(&self) {
        self.inner.leaves.store(true, Ordering::SeqCst);
    }

    /// Starts the team, with the first teammate.
    fn begin(&self) -> Result<(), String> {
        if self.inner.begun.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        self.open().inspect_err(|_| self.inner.begun.store(false, Ordering::SeqCst))
    }

    fn open(&self) -> Result<(), String> {
        let TeammatesInner { team, post, board, lead, .. } = &*self.inner;
        let mailbox =
            team.begin(&lead.session, &lead.directory, lead.world.now()).map_err(|error| error.to_string())?;
        post.mail().open(mailbox, MessageOrigin::Team);
        board.join(team.tasks(), LEAD, &lead.folder)?;
        post.join(team.clone());
        self.inner.state.lock().held = team.hold().ok(); // another has it who writes to this session as well: nothing is lost
        let [inner, judging, told] = std::array::from_fn(|_| Arc::downgrade(&self.inner));
        let asked = move || inner.upgrade().and_then(|inner| inner.state.lock().contacts.clone());
        let policy = move || judging.upgrade().and_then(|inner| inner.state.lock().policy.clone());
        let tell = move |name: &str, news: TeammateNews| {
            if let Some(inner) = told.upgrade() {
                inner.tell(name, news);
            }
        };
        let questions = self.inner.questions.clone();
        let side = LeadService { team: team.clone(), world: lead.world.clone(), mail: post.mail().clone(), questions };
        self.inner.state.lock().answering = Some(AbortOnDropHandle::new(tokio::spawn(side.serve(asked, policy, tell))));
        Ok(())
    }

    fn words(&self, name: &str, mode: Mode) -> Vec<String> {
        let TeammatesInner { team, lead, .. } = &*self.inner;
        let own = ["--print", "--team-name", team.name(), "--agent-name", name, "--permission-mode", mode.name()];
        let mut words = vec![lead.program.display().to_string()];
        words.extend(own.map(str::to_owned));
        words.extend(team.key().map(|key| format!("--lead-key={key}")));
        words.extend(lead.flags.iter().cloned());
        words
    }

    /// Ends the team with the session.
    pub fn end(&self) {
        // Whoever opens the session anew is the lead then, also while somebody still holds this.
        let mut state = self.inner.state.lock();
        let ended = (state.held.take(), state.answering.take());
        drop(state);
        drop(ended);
        if self.inner.begun.load(Ordering::SeqCst) {
            let _ = self.inner.team.end(); // what stays is found by the session that goes on here
        }
    }
}

impl TeammatesInner {
    /// Adds a reminder for the model about some teammates.
    fn remind(&self, names: &[String], of: &str) {
        if !names.is_empty() {
            self.state.lock().untold.push(format!("Your teammates {} {of}", names.join(", ")));
        }
    }

    /// Counts a teammate's usage here from now on.
    fn counts(&self, name: &str, session: &str) {
        let file = self.lead.sessions.join(format!("{session}.jsonl"));
        let before = session::record::lines(&file).map_or(0, |(lines, _)| lines.len());
        self.state.lock().sessions.entry(session.to_owned()).or_insert_with(|| (name.to_owned(), before));
    }

    /// Sends an event about a teammate, with its usage.
    fn tell(&self, name: &str, news: TeammateNews) {
        match &news {
            TeammateNews::Labelled(label) => drop(self.state.lock().labels.insert(name.to_owned(), label.clone())),
            TeammateNews::Started | TeammateNews::Rests(_) | TeammateNews::Ended(_) => {
                drop(self.state.lock().labels.remove(name));
            }
        }
        let Some((_, listener)) = self.state.lock().contacts.clone() else { return };
        let member = self.team.members().into_iter().find(|member| member.name == name);
        let session = member.and_then(|member| member.session_id).unwrap_or_default();
        let Lead { sessions, prices, .. } = &self.lead;
        let used = Teammate::of(sessions, (name, &session), 0, prices).map(|mate| mate.used).unwrap_or_default();
        listener(Event::Teammate { name: name_of(name), session, news, used });
    }
}

/// First message to a teammate.
pub fn briefing(team: &Team) -> String {
    let values = minijinja::context! { name => team.me(), team => team.name() };
    minijinja::Environment::new().render_str(PROMPT, values).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MSG-1: a teammate is told its name, its lead, and how far to trust messages.
    #[test]
    fn a_teammate_is_told_who_it_is() {
        let team = Team::of(std::path::Path::new("/c"), "session-1", "scout").unwrap();
        let text = briefing(&team);
        assert!(text.contains("You are scout, a teammate in the team session-1."), "{text}");
        assert!(!text.contains("{{"), "{text}");
    }
}
