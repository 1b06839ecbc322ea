//! The agents of a session: which there are, who is out, and what came back.
//!
//! When it goes, so do all that are out. So many are out at once and no more; so deep do agents send out agents and no
//! deeper.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use learning::knowledge::InheritedInstructions;
use mail::MessageOrigin;
use mail::mailbox::{MailError, Message};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};
use session::subagent_files::DEPTH;
use settings::Weight;
use settings::agents::{Definition, Isolation, Registry};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tools::permission::{Rules, git_runs_programs};

use super::child::ParentSnapshot;
use super::worktree::Worktree;
use crate::driver::SubagentHost;
use crate::subagent::{Subagent, SubagentPhase, SubagentResult};

/// How many may be out at the same time.
pub const MOST_OUT: usize = 20;
/// How many that have ended are remembered.
const REMEMBERED: usize = 100;
/// After so long nobody waits for an agent any longer: it goes on in the background.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whether a turn ends while agents are out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtEnd {
    /// It does: somebody is there who is told later.
    LeavesThem,
    /// It waits for them: nobody would be told.
    WaitsForThem,
}

/// Agents a session may send out, and those that are.
pub struct Subagents {
    registry: Mutex<KnownAgents>,
    /// How many are above: 0 for a person's session.
    depth: u32,
    at_end: AtEnd,
    patience: Duration,
    memory: Option<super::MemoryPlaces>,
    state: Mutex<State>,
    news: Notify,
    stop: CancellationToken,
}

/// The agents there are, and those of them that the program has defined which drives this one.
#[derive(Default)]
struct KnownAgents {
    registry: Arc<Registry>,
    defined: Map<String, Value>,
    /// The rules of the session that sends them out.
    rules: Rules,
}

#[derive(Default)]
struct State {
    /// The session as it was when it last started or wrote to one: whoever is woken by another begins from there.
    parent: Option<Arc<ParentSnapshot>>,
    /// The instruction files of the session, as those are told that it sends out.
    instructions: Option<InheritedInstructions>,
    out: Vec<(Arc<Subagent>, Option<AbortOnDropHandle<()>>)>,
    /// Those that ended in the background, until the conversation has heard of it.
    unheard: VecDeque<Arc<Subagent>>,
    /// Those that ended while they were waited for, until what they used is written down.
    unaccounted: Vec<Arc<Subagent>>,
}

impl SubagentHost for Subagents {
    fn held_to(&self, rules: &Rules) {
        Subagents::held_to(self, rules);
    }

    fn listing(&self) -> String {
        Subagents::listing(self)
    }

    fn sent_by(&self, call: &str) -> Option<Arc<Subagent>> {
        self.list().into_iter().rev().find(|one| one.call.as_deref() == Some(call))
    }
}

impl Subagents {
    /// Of a session that a person, or a program, talks to.
    pub fn new(registry: Arc<Registry>, at_end: AtEnd) -> Arc<Self> {
        Arc::new(Self::at(registry, 0, at_end, PATIENCE))
    }

    /// The same, with another patience: for those who test it.
    pub fn patient(registry: Arc<Registry>, at_end: AtEnd, patience: Duration) -> Arc<Self> {
        Arc::new(Self::at(registry, 0, at_end, patience))
    }

    fn at(registry: Arc<Registry>, depth: u32, at_end: AtEnd, patience: Duration) -> Self {
        let (state, news, stop) = (Mutex::default(), Notify::new(), CancellationToken::new());
        Self {
            registry: Mutex::new(KnownAgents { registry, ..KnownAgents::default() }),
            depth,
            at_end,
            patience,
            memory: None,
            state,
            news,
            stop,
        }
    }

    /// For an agent that is sent out; none where it is too deep.
    pub(super) fn below(&self) -> Option<Arc<Self>> {
        Some(self.deeper()).filter(|below| !below.is_too_deep())
    }

    /// The same, for one that is offered all that its parent is: where it is too deep, each call is refused.
    pub(super) fn deeper(&self) -> Arc<Self> {
        let mut below = Self::at(self.registry(), self.depth + 1, AtEnd::WaitsForThem, self.patience);
        below.memory.clone_from(&self.memory);
        below.instruct(self.instructions());
        Arc::new(below)
    }

    /// Whether no agent can be sent out from here.
    pub(super) fn is_too_deep(&self) -> bool {
        self.depth >= DEPTH
    }

    /// Lets agents keep memories of their own there.
    #[must_use]
    pub fn with_memory(mut self: Arc<Self>, places: super::MemoryPlaces) -> Arc<Self> {
        if let Some(own) = Arc::get_mut(&mut self) {
            own.memory = Some(places);
        }
        self
    }

    pub(super) fn memory(&self) -> Option<&super::MemoryPlaces> {
        self.memory.as_ref()
    }

    /// The agents there are.
    pub fn registry(&self) -> Arc<Registry> {
        self.known().registry.clone()
    }

    /// More of them, which the program that drives this one has defined. Says what is wrong with them.
    pub fn define(&self, agents: &Map<String, Value>) -> Vec<String> {
        let mut known = self.known();
        let told = known.registry.troubles().to_vec();
        known.registry = Arc::new(Registry::clone(&known.registry).with(agents));
        known.defined.extend(agents.clone());
        let new = known.registry.troubles().iter().filter(|one| !told.contains(one));
        new.filter(|one| one.weight > Weight::Note).map(ToString::to_string).collect()
    }

    /// Others in their place, as the settings now say; what a program has defined stays.
    pub(crate) fn replace(&self, registry: Registry) {
        let mut known = self.known();
        known.registry = Arc::new(registry.with(&known.defined));
    }

    /// These rules hold for the session from now on.
    pub(crate) fn held_to(&self, rules: &Rules) {
        self.known().rules.clone_from(rules);
    }

    /// Whether a rule keeps one from being sent out.
    pub fn denies(&self, agent: &Definition) -> bool {
        agent.is_denied(&self.known().rules)
    }

    fn known(&self) -> MutexGuard<'_, KnownAgents> {
        self.registry.lock()
    }

    /// How long an agent is waited for.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// The session is about to start or write to some, and is like this.
    pub(crate) fn set_parent(&self, parent: Arc<ParentSnapshot>) {
        self.state().parent = Some(parent);
    }

    /// The session says which instruction files it has.
    pub(crate) fn instruct(&self, instructions: Option<InheritedInstructions>) {
        self.state().instructions = instructions;
    }

    pub(super) fn instructions(&self) -> Option<InheritedInstructions> {
        self.state().instructions.clone()
    }

    pub(super) fn parent(&self) -> Option<Arc<ParentSnapshot>> {
        self.state().parent.clone()
    }

    /// Whether an agent gets a worktree, and making one runs programs that the repository's configuration names.
    pub(crate) fn makes_git_run_programs(&self, isolation: Option<&str>, kind: Option<&str>) -> bool {
        let Some(parent) = self.parent() else { return false };
        let definition = kind.and_then(|kind| self.registry().find(kind).cloned());
        let isolated = isolation == Some("worktree")
            || definition.is_some_and(|definition| definition.isolation == Isolation::Worktree);
        isolated && git_runs_programs(&parent.directory, parent.scope.home()).is_some()
    }

    /// Whether its agents can have worktrees; why not, if not.
    pub(crate) async fn can_have_worktrees(&self) -> Result<(), String> {
        let parent = self.parent().ok_or("no agent can be sent out from here")?;
        Worktree::check((&*parent).into()).await
    }

    /// Those that are out, and those that lately were; oldest first.
    pub fn list(&self) -> Vec<Arc<Subagent>> {
        self.state().out.iter().map(|(subagent, _)| subagent.clone()).collect()
    }

    /// The one of an id or a name; of several with one name the newest.
    pub fn find(&self, name: &str) -> Option<Arc<Subagent>> {
        let state = self.state();
        let found = state.out.iter().rev().find(|(one, _)| one.id == name || one.name.as_deref() == Some(name));
        found.map(|(subagent, _)| subagent.clone())
    }

    /// Puts a message into the queue of one that is out, by its id or name. An agent cannot end between the look and this.
    pub(super) fn hand(
        &self,
        to: &str,
        message: &Message,
        origin: MessageOrigin,
    ) -> Result<Option<Arc<Subagent>>, MailError> {
        let state = self.state();
        let meant =
            |subagent: &Subagent| subagent.is_out() && (subagent.id == to || subagent.name.as_deref() == Some(to));
        let found = state.out.iter().rev().map(|(subagent, _)| subagent).find(|subagent| meant(subagent));
        let Some(subagent) = found else { return Ok(None) };
        subagent.mail.take(message, origin)?;
        Ok(Some(subagent.clone()))
    }

    /// What stops all of them.
    pub(super) fn stop_token(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Stops all that are out. Each ends soon after.
    pub fn stop_all(&self) {
        self.list().iter().for_each(|subagent| subagent.stop());
    }

    /// Stops all that are out and waits until nothing of them is left.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.stop_all();
        for subagent in self.list() {
            subagent.ended().await;
        }
        self.state().out.clear();
        self.state().parent = None;
    }

    /// Drops all that are out where they stand, as the end of the process would.
    pub fn abandon(&self) {
        let mut state = self.state();
        (state.out, state.parent) = (Vec::new(), None);
        (state.unheard, state.unaccounted) = (VecDeque::new(), Vec::new());
    }

    /// How many are out in the background.
    pub fn in_background(&self) -> usize {
        self.state().out.iter().filter(|(subagent, _)| subagent.is_background()).count()
    }

    /// Whether a turn cannot end yet: one of them is out, or has ended and was not heard.
    pub(crate) fn is_waited_for(&self) -> bool {
        // Asked in this order: one that ends in between is unheard.
        self.at_end == AtEnd::WaitsForThem && (self.in_background() > 0 || self.has_news())
    }

    /// Waits until one of those in the background has something to say.
    pub(crate) async fn news(&self) {
        loop {
            let heard = self.news.notified();
            if !self.state().unheard.is_empty() || self.in_background() == 0 {
                return;
            }
            heard.await;
        }
    }

    /// Whether one has ended that the conversation has not heard of.
    pub fn has_news(&self) -> bool {
        !self.state().unheard.is_empty()
    }

    /// Those that ended in the background since this was last asked.
    pub(crate) fn take_news(&self) -> Vec<Arc<Subagent>> {
        self.state().unheard.drain(..).collect()
    }

    /// The conversation has heard of one's end by another way.
    pub(super) fn heard_of(&self, subagent: &Subagent) {
        let mut state = self.state();
        if let Some(at) = state.unheard.iter().position(|one| one.id == subagent.id)
            && let Some(one) = state.unheard.remove(at)
        {
            state.unaccounted.push(one);
        }
    }

    /// Those whose use is still to be written down.
    pub(crate) fn take_unaccounted(&self) -> Vec<Arc<Subagent>> {
        std::mem::take(&mut self.state().unaccounted)
    }

    /// Takes one in, unless too many are out.
    pub(super) fn take_in(&self, subagent: &Arc<Subagent>) -> Result<(), String> {
        let mut state = self.state();
        let out = state.out.iter().filter(|(one, _)| one.is_out()).count();
        if out >= MOST_OUT {
            return Err(format!("{out} agents are out, and no more can be at once. Wait until one has reported."));
        }
        let mut over = state.out.iter().filter(|(one, _)| !one.is_out()).count();
        state.out.retain(|(one, _)| {
            let goes = over > REMEMBERED && !one.is_out();
            over -= usize::from(goes);
            !goes
        });
        state.out.retain(|(one, _)| one.id != subagent.id); // one that goes on takes its own place
        state.out.push((subagent.clone(), None));
        Ok(())
    }

    /// Its task, which ends with this.
    pub(super) fn works(&self, subagent: &Subagent, task: AbortOnDropHandle<()>) {
        if let Some((_, slot)) = self.state().out.iter_mut().find(|(one, _)| one.id == subagent.id) {
            *slot = Some(task);
        }
    }

    /// One that was taken in cannot begin: nobody waits for it.
    pub(super) fn give_up(&self, subagent: &Subagent) {
        self.state().out.retain(|(one, _)| one.id != subagent.id);
    }

    /// One has ended: whoever waits for it hears of it at once, and the conversation of any other at its next round.
    pub(super) fn ended(&self, subagent: &Arc<Subagent>, ended: SubagentResult) {
        let mut state = self.state();
        match subagent.end(ended) {
            SubagentPhase::Background => state.unheard.push_back(subagent.clone()),
            _ => state.unaccounted.push(subagent.clone()),
        }
        drop(state);
        self.news.notify_waiters();
    }

    /// What the model is told of the agents there are; not of those that a rule denies.
    pub fn listing(&self) -> String {
        let registry = self.registry();
        let told = registry.agents().filter(|agent| !self.denies(agent));
        let lines: Vec<String> = told.map(|agent| format!("- {}", agent.listing())).collect();
        if lines.is_empty() {
            return "Agents for the Agent tool: none.".to_owned();
        }
        format!("Agents for the Agent tool:\n{}", lines.join("\n"))
    }

    /// The agent of a name, or which there are.
    pub(crate) fn named(&self, name: &str) -> Result<Definition, String> {
        let registry = self.registry();
        registry.find(name).cloned().ok_or_else(|| {
            let there = registry.agents().filter(|agent| !self.denies(agent));
            let names: Vec<&str> = there.map(|agent| agent.name.as_str()).collect();
            format!("There is no agent named {name:?}. There are: {}.", names.join(", "))
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
