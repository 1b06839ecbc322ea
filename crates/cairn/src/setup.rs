//! From flags, settings and environment to an agent.

use std::sync::Arc;
use std::time::Duration;

use engine::Agent;
use engine::activity::LastRequest;
use engine::agent::Parts;
use engine::agents::{Subagents, SubagentsAtEnd, left_behind};
use engine::configuration::Configuration;
use engine::event::Listener;
use engine::hooks::SessionStart;
use engine::journal::Journal;
use engine::parts::Outlets;
use engine::prompt::BARE;
use engine::servers::{ServerTools, SessionServer, SessionServers, ToolSearch};
use engine::skills::CallSkill;
use engine::web::WebFetch;
use engine::web_search::WebSearch;
use extensions::plugin::Plugin;
use extensions::skill::ModelUse;
use learning::dream::session_dreams::SessionDreams;
use learning::knowledge::Selector;
use mail::{AskLead, mode_below};
use settings::agent_definitions::Registry;
use settings::permission::{Approver, ChosenBy, Respondent};
use settings::{BypassPermission, SandboxSettings, Weight};
use tools::NotebookEdit;
use tools::permission::{ConfinementLevel, Mode};
use tools::sandbox::Sandbox;
use transcript::price::Prices;
use transcript::tool_names;
use transcript::window::Window;

use crate::args::{RunArgs, ThinkingWish};
use crate::configure::{Inputs, added, configure};
use crate::memory_setup::MemorySetup;
use crate::messaging::SessionMail;
use crate::model;
use crate::notebooks::has_notebooks;
use crate::open_session::{open_session, resumed_model};
use crate::program_paths::ProgramPaths;
use crate::reload::{self, SettingsReloader};
use crate::teammate_worktree::TeammateWorktree;
use crate::{dream_setup, env, server_setup, skill_sources, system_facts, trust_prompt, trusted_settings};

/// Tokens for thinking where it is switched on and no budget is set: enough for a plan of some steps.
const THINKING: u64 = 10_000;

/// Time that a run with a message waits for its memories to be read. A thousand take a tenth of it.
const MEMORY_PATIENCE: Duration = Duration::from_secs(1);

/// Time that a session waits for servers whose tools are in every request, as Claude Code has it.
const SERVER_PATIENCE: Duration = Duration::from_secs(5);

/// Time after which a call of a server's tool goes to the background, as Claude Code has it.
const CALL_PATIENCE: Duration = Duration::from_secs(120);

/// The tool that sends agents out, as it is called and as it was.
const AGENT_NAMES: [&str; 2] = [tool_names::AGENT, tool_names::TASK];

/// An agent, and what is to be known around it.
pub(crate) struct PreparedSession {
    /// The agent.
    pub(crate) agent: Agent,
    /// The dreams alongside it, for sessions that people sit at.
    pub(crate) dreaming: Option<SessionDreams>,
    /// Prices of tokens.
    pub(crate) prices: Prices,
    /// Warnings for the user before it starts.
    pub(crate) warnings: Vec<String>,
    /// The model's window.
    pub(crate) window: Window,
    /// Availability of the mode `bypassPermissions`.
    pub(crate) bypass: BypassPermission,
    /// Names of other servers in the settings.
    pub(crate) providers: Vec<String>,
    /// Messages to and from others.
    pub(crate) mailing: SessionMail,
    /// The worktree it works in, where it has one of its own.
    pub(crate) worktree: Option<TeammateWorktree>,
    /// Its plugins.
    pub(crate) plugins: Vec<Plugin>,
}

/// The sandbox for the commands of an agent, as well as this system can hold it.
pub(crate) async fn sandbox(said: &SandboxSettings, place: &ProgramPaths, agent: &Agent) -> anyhow::Result<Sandbox> {
    let made = settings::sandbox::sandbox(said, agent.scope(), place.home.path()).await;
    Ok(made.map_err(session::Error::from)?)
}

/// Makes an agent from flags, settings and environment.
pub(crate) async fn agent(
    args: &RunArgs,
    place: &ProgramPaths,
    approver: Arc<dyn Approver>,
    listener: Listener,
) -> anyhow::Result<PreparedSession> {
    let listener = args.telemetry.hearing(listener);
    let watch = reload::watch(args, place)?;
    let judged = trusted_settings::judge(place, args.settings.as_deref(), args.one_run())?;
    let settings = &judged.settings;
    let mut warnings = settings.warnings();
    warnings.extend(judged.trust.warning.clone());
    warnings.extend(trust_prompt::claims_note(&judged));
    let known_model = resumed_model(args, place);
    let chosen = model::choose(args.model.as_deref(), known_model.as_deref(), settings).await?;
    let inputs = Inputs::read(args, place, &judged, &chosen, None)?;
    warnings.extend(inputs.warnings.iter().cloned());
    let (configuration, of_flags) = configure(&inputs)?;
    warnings.extend(of_flags);
    let told = warnings.clone();
    warnings.extend(chosen.note.clone());
    let (mut session, skipped) = open_session(args, place)?;
    let file = session.path().display().to_string();
    warnings.extend(skipped.iter().map(|line| format!("{file}: line {} was skipped: {}", line.number, line.why)));

    let bare = args.is_bare();
    let ledger = Arc::new(place.ledger(settings, session.id()));
    let journal = Journal::new(session.id(), session.world().clone(), settings.signals.event_log.clone());
    let heard = journal.hearing(listener.clone());
    let dreaming =
        if bare { None } else { dream_setup::session_dreams(place, settings, &chosen, session.id(), &ledger, heard) };
    let mut parts = Parts::new(chosen.model.clone(), chosen.name.clone()).configured(configuration.clone());
    parts.out = Outlets { listener, journal: Some(journal), ledger: ledger.clone(), ..parts.out };
    if args.mode().is_some() {
        parts.consent.policy.mode.set(configuration.mode);
    }
    let mailing = SessionMail::open(args, place, settings, &session, &parts.consent.policy.mode)?;
    warnings.extend(mailing.warnings.iter().cloned());
    parts.consent.approver = approver;
    join(&mut parts, &mailing, configuration.mode, bare);
    if let (Some(registry), Some(plan)) = (&configuration.agents, &inputs.plan) {
        warnings.extend(send_out(&mut parts, registry, plan));
        parts.prompt.system_facts = system_facts::look(place, &parts.work.environment).await;
        let (home, guard) = (place.home.path(), env::program());
        let left = left_behind(home, &place.directory, session.path(), &parts.work.environment, guard.as_deref());
        warnings.extend(left.await);
    }
    for folder in &args.plugin_dir {
        anyhow::ensure!(place.directory.join(folder).is_dir(), "--plugin-dir {}: no such directory", folder.display());
    }
    if !bare {
        let fetch = WebFetch::of(&parts, session.world().clone(), settings.private_hosts.clone());
        parts.work.tools.push(Arc::new(fetch));
        parts.work.tools.extend(WebSearch::of(&parts, settings.web_search).map(|search| Arc::new(search) as _));
        if has_notebooks(&place.directory) {
            parts.work.tools.push(Arc::new(NotebookEdit));
        }
        warnings.extend(judged.plugins.warnings());
        warnings.extend(judged.plugins.make_data_folders());
        let skills = Arc::new(skill_sources::skills(place, &judged.trust, &judged.plugins, &added(args, place)));
        let broken = skills.troubles().into_iter().filter(|trouble| trouble.weight == Weight::Error);
        warnings.extend(broken.map(|trouble| trouble.to_string()));
        if skills.all().iter().any(|skill| skill.model_use != ModelUse::Hidden) {
            parts.work.tools.push(Arc::new(CallSkill::of(skills.clone())));
        }
        parts.work.skills = Some(skills);
    }
    if !bare {
        let added = added(args, place);
        let servers = server_setup::servers(args, place, &judged, added, &parts)?;
        warnings.extend(servers.findings().iter().cloned());
        equip_with_servers(&mut parts, servers).await;
    }
    if let Some(offered) = offered(&args.tools, &parts.work.tools)? {
        parts.work.tools.retain(|tool| offered.contains(&tool.name()));
        parts.contacts.agents = parts.contacts.agents.filter(|_| AGENT_NAMES.iter().any(|name| offered.contains(name)));
    }
    if let (Some(_), Some(plan)) = (&configuration.agents, &inputs.plan) {
        parts.prompt.sections = plan.sections(&parts.work.tools);
    }
    for directory in added(args, place) {
        anyhow::ensure!(directory.is_dir(), "--add-dir {}: no such directory", directory.display());
    }
    let budget = env::MAX_THINKING.number()?;
    parts.talk.thinking = match args.thinking {
        Some(ThinkingWish::On) => budget.filter(|budget| *budget > 0).or(Some(THINKING)),
        Some(ThinkingWish::Off) => None,
        None => budget,
    };
    parts.talk.limits.max_rounds = args.max_turns;
    parts.talk.limits.cost = args.max_budget_usd;
    if args.max_budget_usd.is_some() {
        let name = &parts.talk.name;
        anyhow::ensure!(
            ledger.price(name).is_some(),
            "--max-budget-usd: the price of {name} is not known; set one in `prices`"
        );
    }
    parts.prompt.system = args.system_prompt.clone().or_else(|| bare.then(|| BARE.to_owned()));
    parts.prompt.system_suffix = mailing.appended(args.append_system_prompt.as_deref());
    parts.prompt.budget = args.task_budget;
    parts.work.user_home.clone_from(&place.user_home);
    parts.work.guard = env::program();
    parts.work.variable = Some(env::named);
    let mut remembers = None;
    if let Some(kind) = &args.agent_type {
        let definition = parts.contacts.agents.as_ref().and_then(|agents| agents.registry().find(kind).cloned());
        let definition = definition.ok_or_else(|| anyhow::anyhow!("there is no agent of the type {kind}"))?;
        remembers = engine::agents::take_role(&mut parts, &definition, &place.base_paths(), session.path())?;
    }
    let worktree = TeammateWorktree::enter(args, place, &mut session, &parts.work.environment).await?;
    let copy = worktree.as_ref().map(|worktree| worktree.worktree.copied());
    if let Some(worktree) = &worktree {
        worktree.worktree.furnish(&mut parts);
    }
    let plan = inputs.plan;
    let follower = SettingsReloader::new(args, place, &judged, known_model, chosen, copy.clone(), told);
    parts.reload = Some(reload::reload(watch, follower));
    let Configuration { layers, knowledge_settings, learning, sandbox, .. } = configuration;
    let model = parts.talk.model.clone();
    let has_person = parts.consent.approver.respondent() == Respondent::Person;
    let mut agent = Agent::new(session, parts)?.starting(start(args)).with_mail(mailing.post.mail().clone());
    warnings.extend(confine(&mut agent, args, place, &sandbox).await?);
    if has_person {
        let patience = env::CALL_PATIENCE.number()?.map_or(CALL_PATIENCE, Duration::from_millis);
        agent.scope().jobs().move_calls_after(patience);
    }
    if let Some(plan) = plan {
        let selector = knowledge_settings.and_then(|said| said.selector).map(|name| Selector { model, name, ledger });
        let mut knowledge = plan.knowledge(selector, agent.session(), judged.trust.clone());
        warnings.append(&mut knowledge.warnings());
        if let Some(copy) = copy {
            knowledge = knowledge.in_copy(copy);
        }
        agent = agent.with_knowledge(knowledge);
    }
    if let Some(learning) = learning {
        agent = agent.with_learning(learning);
    }
    if let Some(directory) = remembers {
        agent = agent.remembering(&directory);
    }
    if (args.print || args.prompt.is_some())
        && let Some(knowledge) = agent.knowledge()
    {
        // Nobody types meanwhile: without this the first message would find memory still unread.
        let _ = tokio::time::timeout(MEMORY_PATIENCE, knowledge.ready()).await;
    }
    Ok(PreparedSession {
        agent,
        dreaming,
        bypass: settings.bypass,
        providers: settings.providers.keys().cloned().collect(),
        prices: judged.settings.prices,
        warnings,
        window: layers.window,
        mailing,
        worktree,
        plugins: judged.plugins.list,
    })
}

/// Gives it what it has as a member of a team, or as a session that others reach.
fn join(parts: &mut Parts, mailing: &SessionMail, mode: Mode, bare: bool) {
    if let Some(team) = &mailing.member_of {
        parts.consent.policy.mode = mode_below(team.clone(), mode);
        parts.consent.approver = Arc::new(AskLead::new(mailing.post.clone(), team.clone()));
        parts.lineage.latest = Some(LastRequest::default()); // it says what it is doing
    } else if parts.consent.approver.respondent() != Respondent::Nobody && !bare {
        parts.work.tools.extend(engine::plan::offered(&parts.consent.policy.mode, &mailing.board));
    }
    mailing.equip(&mut parts.work.tools, mode);
    parts.work.tasks = Some(mailing.board.clone());
    parts.contacts.teammates.clone_from(&mailing.teammates);
    parts.contacts.post = Some(mailing.post.clone());
}

/// Lets it send out agents. Says what is wrong with their definitions.
fn send_out(parts: &mut Parts, registry: &Registry, plan: &MemorySetup) -> Vec<String> {
    let at_end = match parts.consent.approver.respondent() {
        Respondent::Person => SubagentsAtEnd::LeavesThem,
        _ => SubagentsAtEnd::WaitsForThem,
    };
    let subagents = Subagents::new(Arc::new(registry.clone()), at_end);
    parts.contacts.agents = Some(plan.agent_memory().into_iter().fold(subagents, Subagents::with_memory));
    let told = registry.troubles().iter().filter(|trouble| trouble.weight > Weight::Note);
    told.map(ToString::to_string).collect()
}

/// Connects the servers in the background, and gives it the tools for them. Servers whose tools are in every request are
/// waited for.
async fn equip_with_servers(parts: &mut Parts, servers: SessionServers) {
    let servers = Arc::new(servers);
    let tools = ServerTools::of(servers.clone());
    if !servers.is_empty() {
        servers.start();
        if servers.all().iter().any(|server| server.is_always_loaded()) {
            servers.settled(SERVER_PATIENCE, SessionServer::is_always_loaded).await;
            parts.work.tools.extend(tools.always_loaded());
        }
        parts.work.tools.push(Arc::new(ToolSearch::of(tools.clone())));
    }
    parts.work.servers = Some(tools);
}

/// Puts its commands into a sandbox, where that is wanted. Says how far it does not hold.
async fn confine(
    agent: &mut Agent,
    args: &RunArgs,
    place: &ProgramPaths,
    sandbox_settings: &SandboxSettings,
) -> anyhow::Result<Option<String>> {
    let choice = if args.sandbox.is_some() { ChosenBy::Hand } else { ChosenBy::Settings };
    if sandbox_settings.enabled != Some(true) {
        agent.set_sandbox(None, choice);
        return Ok(None);
    }
    let sandbox = sandbox(sandbox_settings, place, agent).await?;
    let loose = sandbox.status().confined() != ConfinementLevel::Wholly;
    let told = loose.then(|| format!("the sandbox: {}", sandbox.describe().lines().next().unwrap_or_default()));
    agent.set_sandbox(Some(sandbox), choice);
    Ok(told)
}

/// Why a session starts, as hooks are told.
fn start(args: &RunArgs) -> SessionStart {
    match (args.resume.is_some() || args.continue_, args.fork_session, args.cleared) {
        (true, true, _) => SessionStart::Fork,
        (true, false, _) => SessionStart::Resume,
        (false, _, true) => SessionStart::Clear,
        (false, _, false) => SessionStart::Startup,
    }
}

/// The tools that `--tools` names; none where it leaves all.
fn offered<'a>(named: &'a [String], all: &[Arc<dyn tools::Tool>]) -> anyhow::Result<Option<Vec<&'a str>>> {
    let names: Vec<&str> =
        named.iter().flat_map(|text| text.split([',', ' '])).filter(|name| !name.is_empty()).collect();
    if named.is_empty() || names.contains(&"default") {
        return Ok(None);
    }
    let known: Vec<&str> = all.iter().map(|tool| tool.name()).chain(AGENT_NAMES).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        anyhow::bail!("--tools: there is no tool called {unknown}; there are {}", known.join(", "));
    }
    Ok(Some(names))
}
