//! The subagents of a session: definitions, running subagents, and their results.
//!
//! When this is dropped, all of them end. Their number at once and their depth are limited.

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
use settings::agent_definitions::{Definition, Isolation, Registry};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tools::permission::{Rules, git_runs_programs};

use super::child::ParentSnapshot;
use super::worktree::Worktree;
use crate::driver::SubagentHost;
use crate::subagent::{Subagent, SubagentPhase, SubagentResult};

/// Limit on running subagents.
pub const MOST_OUT: usize = 20;
/// Number of ended subagents that are remembered.
const REMEMBERED: usize = 100;
/// Time after which a foreground subagent moves to the background.
const PATIENCE: Duration = Duration::from_secs(120);

/// Behaviour of a turn's end while subagents run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubagentsAtEnd {
    /// The turn ends: somebody is there to be told later.
    LeavesThem,
    /// The turn waits for them: nobody could be told later.
    WaitsForThem,
}

/// Definitions and subagents of a session.
pub struct Subagents {
    registry: Mutex<KnownAgents>,
    /// Number of agents above: 0 for a person's session.
    depth: u32,
    at_end: SubagentsAtEnd,
    patience: Duration,
    memory: Option<super::MemoryPlaces>,
    state: Mutex<State>,
    news: Notify,
    stop: CancellationToken,
}

/// The definitions, and those among them that the embedding program added.
#[derive(Default)]
struct KnownAgents {
    registry: Arc<Registry>,
    defined: Map<String, Value>,
    /// The rules of the session that starts them.
    rules: Rules,
}

#[derive(Default)]
struct State {
    /// The session as it was when it last started or wrote to a subagent: one woken by another subagent starts from
    /// there.
    parent: Option<Arc<ParentSnapshot>>,
    /// The session's instruction files, as its subagents are given them.
    instructions: Option<InheritedInstructions>,
    out: Vec<(Arc<Subagent>, Option<AbortOnDropHandle<()>>)>,
    /// Subagents that ended in the background, until the conversation is told.
    unheard: VecDeque<Arc<Subagent>>,
    /// Subagents that ended in the foreground, until their usage is recorded.
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
    /// For the session of a person or of an embedding program.
    pub fn new(registry: Arc<Registry>, at_end: SubagentsAtEnd) -> Arc<Self> {
        Arc::new(Self::at(registry, 0, at_end, PATIENCE))
    }

    /// Like [`new`](Self::new), with another patience for tests.
    pub fn patient(registry: Arc<Registry>, at_end: SubagentsAtEnd, patience: Duration) -> Arc<Self> {
        Arc::new(Self::at(registry, 0, at_end, patience))
    }

    fn at(registry: Arc<Registry>, depth: u32, at_end: SubagentsAtEnd, patience: Duration) -> Self {
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

    /// For a subagent; `None` if it would be too deep.
    pub(super) fn below(&self) -> Option<Arc<Self>> {
        Some(self.deeper()).filter(|below| !below.is_too_deep())
    }

    /// Like [`below`](Self::below), for a fork, which is offered all of its parent's tools: if it is too deep, each
    /// call is refused.
    pub(super) fn deeper(&self) -> Arc<Self> {
        let mut below = Self::at(self.registry(), self.depth + 1, SubagentsAtEnd::WaitsForThem, self.patience);
        below.memory.clone_from(&self.memory);
        below.instruct(self.instructions());
        Arc::new(below)
    }

    /// Returns whether no subagent can be started from here.
    pub(super) fn is_too_deep(&self) -> bool {
        self.depth >= DEPTH
    }

    /// Lets subagents keep their own memories there.
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

    /// The definitions.
    pub fn registry(&self) -> Arc<Registry> {
        self.known().registry.clone()
    }

    /// Adds definitions of the embedding program. Returns the problems found in them.
    pub fn define(&self, agents: &Map<String, Value>) -> Vec<String> {
        let mut known = self.known();
        let told = known.registry.troubles().to_vec();
        known.registry = Arc::new(Registry::clone(&known.registry).with(agents));
        known.defined.extend(agents.clone());
        let new = known.registry.troubles().iter().filter(|one| !told.contains(one));
        new.filter(|one| one.weight > Weight::Note).map(ToString::to_string).collect()
    }

    /// Replaces the definitions from settings; those of the embedding program stay.
    pub(crate) fn replace(&self, registry: Registry) {
        let mut known = self.known();
        known.registry = Arc::new(registry.with(&known.defined));
    }

    /// Sets the session's rules.
    pub(crate) fn held_to(&self, rules: &Rules) {
        self.known().rules.clone_from(rules);
    }

    /// Returns whether a rule denies an agent.
    pub fn denies(&self, agent: &Definition) -> bool {
        agent.is_denied(&self.known().rules)
    }

    fn known(&self) -> MutexGuard<'_, KnownAgents> {
        self.registry.lock()
    }

    /// Time for which a foreground subagent is waited for.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Sets the parent's state, before it starts or writes to subagents.
    pub(crate) fn set_parent(&self, parent: Arc<ParentSnapshot>) {
        self.state().parent = Some(parent);
    }

    /// Sets the session's instruction files.
    pub(crate) fn instruct(&self, instructions: Option<InheritedInstructions>) {
        self.state().instructions = instructions;
    }

    pub(super) fn instructions(&self) -> Option<InheritedInstructions> {
        self.state().instructions.clone()
    }

    pub(super) fn parent(&self) -> Option<Arc<ParentSnapshot>> {
        self.state().parent.clone()
    }

    /// Returns whether a subagent would get a worktree and git would run programs that the repository configures.
    pub(crate) fn makes_git_run_programs(&self, isolation: Option<&str>, kind: Option<&str>) -> bool {
        let Some(parent) = self.parent() else { return false };
        let definition = kind.and_then(|kind| self.registry().find(kind).cloned());
        let isolated = isolation == Some("worktree")
            || definition.is_some_and(|definition| definition.isolation == Isolation::Worktree);
        isolated && git_runs_programs(&parent.directory, parent.scope.home()).is_some()
    }

    /// Checks that subagents can have worktrees; the error says why not.
    pub(crate) async fn can_have_worktrees(&self) -> Result<(), String> {
        let parent = self.parent().ok_or("no agent can be started here")?;
        Worktree::check((&*parent).into()).await
    }

    /// Running and recently ended subagents, oldest first.
    pub fn list(&self) -> Vec<Arc<Subagent>> {
        self.state().out.iter().map(|(subagent, _)| subagent.clone()).collect()
    }

    /// Finds a subagent by id or name; the newest if several share a name.
    pub fn find(&self, name: &str) -> Option<Arc<Subagent>> {
        let state = self.state();
        let found = state.out.iter().rev().find(|(one, _)| one.id == name || one.name.as_deref() == Some(name));
        found.map(|(subagent, _)| subagent.clone())
    }

    /// Delivers a message to a running subagent, by id or name. The subagent cannot end between lookup and delivery.
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

    /// A token that stops all of them.
    pub(super) fn stop_token(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Stops all running subagents. Each ends soon after.
    pub fn stop_all(&self) {
        self.list().iter().for_each(|subagent| subagent.stop());
    }

    /// Stops all running subagents and waits until they are gone.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.stop_all();
        for subagent in self.list() {
            subagent.ended().await;
        }
        self.state().out.clear();
        self.state().parent = None;
    }

    /// Drops all running subagents on the spot, as the end of the process would.
    pub fn abandon(&self) {
        let mut state = self.state();
        (state.out, state.parent) = (Vec::new(), None);
        (state.unheard, state.unaccounted) = (VecDeque::new(), Vec::new());
    }

    /// Number of subagents running in the background.
    pub fn in_background(&self) -> usize {
        self.state().out.iter().filter(|(subagent, _)| subagent.is_background()).count()
    }

    /// Returns whether a turn cannot end yet: a subagent is running in the background, or has an unheard report.
    pub(crate) fn is_waited_for(&self) -> bool {
        // Asked in this order: one that ends in between is unheard.
        self.at_end == SubagentsAtEnd::WaitsForThem && (self.in_background() > 0 || self.has_news())
    }

    /// Waits until a background subagent has news.
    pub(crate) async fn news(&self) {
        loop {
            let heard = self.news.notified();
            if !self.state().unheard.is_empty() || self.in_background() == 0 {
                return;
            }
            heard.await;
        }
    }

    /// Returns whether a subagent has ended that the conversation has not heard of.
    pub fn has_news(&self) -> bool {
        !self.state().unheard.is_empty()
    }

    /// Takes the subagents that ended in the background since the last call.
    pub(crate) fn take_news(&self) -> Vec<Arc<Subagent>> {
        self.state().unheard.drain(..).collect()
    }

    /// Marks a subagent's end as heard by another way.
    pub(super) fn heard_of(&self, subagent: &Subagent) {
        let mut state = self.state();
        if let Some(at) = state.unheard.iter().position(|one| one.id == subagent.id)
            && let Some(one) = state.unheard.remove(at)
        {
            state.unaccounted.push(one);
        }
    }

    /// Takes the subagents whose usage is not yet recorded.
    pub(crate) fn take_unaccounted(&self) -> Vec<Arc<Subagent>> {
        std::mem::take(&mut self.state().unaccounted)
    }

    /// Registers a subagent, unless too many are running.
    pub(super) fn take_in(&self, subagent: &Arc<Subagent>) -> Result<(), String> {
        let mut state = self.state();
        let out = state.out.iter().filter(|(one, _)| one.is_out()).count();
        if out >= MOST_OUT {
            return Err(format!("{out} agents are running, which is the limit. Wait until one has reported."));
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

    /// Sets the task of a subagent, which ends when this is dropped.
    pub(super) fn works(&self, subagent: &Subagent, task: AbortOnDropHandle<()>) {
        if let Some((_, slot)) = self.state().out.iter_mut().find(|(one, _)| one.id == subagent.id) {
            *slot = Some(task);
        }
    }

    /// Removes a registered subagent that cannot start.
    pub(super) fn give_up(&self, subagent: &Subagent) {
        self.state().out.retain(|(one, _)| one.id != subagent.id);
    }

    /// Records a subagent's end: a waiting caller hears of it at once, else the conversation at its next round.
    pub(super) fn ended(&self, subagent: &Arc<Subagent>, ended: SubagentResult) {
        let mut state = self.state();
        match subagent.end(ended) {
            SubagentPhase::Background => state.unheard.push_back(subagent.clone()),
            _ => state.unaccounted.push(subagent.clone()),
        }
        drop(state);
        self.news.notify_waiters();
    }

    /// Listing of the agents for the model, without those that a rule denies.
    pub fn listing(&self) -> String {
        let registry = self.registry();
        let told = registry.agents().filter(|agent| !self.denies(agent));
        let lines: Vec<String> = told.map(|agent| format!("- {}", agent.listing())).collect();
        if lines.is_empty() {
            return "Agents for the Agent tool: none.".to_owned();
        }
        format!("Agents for the Agent tool:\n{}", lines.join("\n"))
    }

    /// The definition of a name, or an error that lists the names.
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
