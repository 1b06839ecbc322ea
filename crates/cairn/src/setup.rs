//! From flags, settings and environment to an agent.

use std::sync::Arc;
use std::time::Duration;

use engine::Agent;
use engine::agent::Parts;
use engine::agents::{AtEnd, Children, left_behind};
use engine::event::Listener;
use engine::hooks::Start;
use engine::journal::Journal;
use engine::label::Latest;
use engine::prompt::BARE;
use learning::dream::beside::Dreaming;
use mail::{AskLead, mode_below};
use settings::permission::{Approver, ChosenBy, Who};
use settings::{Bypass, Settings, Weight, keys};
use tools::permission::{Confined, Mode};
use tools::sandbox::Sandbox;
use transcript::price::Prices;
use transcript::tool_names;
use transcript::window::Window;

use crate::args::RunArgs;
use crate::knowledge::Plan;
use crate::mailing::Mailing;
use crate::model;
use crate::opening::{open_session, resumed_model};
use crate::place::Place;
use crate::precedence::{Shape, add_flags, added, effort, max_tokens, rules};
use crate::reload::{self, Follower};
use crate::teammate_worktree::TeammateWorktree;
use crate::{agents, asking, dreaming, env, judgement, manner, precedence, surroundings};

/// How long a run that begins with a message waits for its memories to be read. A thousand take a tenth of it.
const MEMORY_PATIENCE: Duration = Duration::from_secs(1);

/// The tool that sends agents out, as it is called and as it was.
const AGENT_NAMES: [&str; 2] = [tool_names::AGENT, tool_names::TASK];

/// An agent, and what is to be known around it.
pub(crate) struct Ready {
    /// The agent.
    pub(crate) agent: Agent,
    /// The dreams beside it, for sessions that people sit at.
    pub(crate) dreaming: Option<Dreaming>,
    /// What tokens cost.
    pub(crate) prices: Prices,
    /// What the user should know before it starts.
    pub(crate) warnings: Vec<String>,
    /// The model's window.
    pub(crate) window: Window,
    /// Whether the mode that asks nothing may be entered.
    pub(crate) bypass: Bypass,
    /// How it reaches others, and they it.
    pub(crate) mailing: Mailing,
    /// The worktree it works in, where it has one of its own.
    pub(crate) worktree: Option<TeammateWorktree>,
}

/// The sandbox for the commands of an agent, as well as this system can hold it.
pub(crate) async fn sandbox(settings: &Settings, place: &Place, agent: &Agent) -> anyhow::Result<Sandbox> {
    let made = settings::sandbox::sandbox(&settings.sandbox, agent.scope(), place.home.path()).await;
    Ok(made.map_err(session::Error::from)?)
}

/// Makes an agent from flags, settings and environment.
pub(crate) async fn agent(
    args: &RunArgs,
    place: &Place,
    approver: Arc<dyn Approver>,
    listener: Listener,
) -> anyhow::Result<Ready> {
    let listener = args.telemetry.hearing(listener);
    let watch = reload::watch(args, place)?;
    let judged = judgement::judge(place, args.settings.as_deref(), args.one_run())?;
    let settings = &judged.settings;
    let mut warnings = settings.warnings();
    warnings.extend(judged.trust.warning.clone());
    warnings.extend(asking::told(&judged));
    let known_model = resumed_model(args, place);
    let chosen = model::choose(args.model.as_deref(), known_model.as_deref(), settings).await?;
    let max_tokens = max_tokens(settings)?;
    let shape = Shape::of(&chosen, args, max_tokens)?;
    warnings.extend(chosen.note.clone());
    let (mut session, skipped) = open_session(args, place)?;
    warnings.extend(
        skipped
            .iter()
            .map(|line| format!("{}: line {} was skipped: {}", session.path().display(), line.number, line.why)),
    );

    let bare = args.is_bare();
    let ledger = Arc::new(place.ledger(settings, session.id()));
    let (selector, small) = (chosen.selector(settings, &ledger), chosen.small(settings));
    let journal = Journal::new(session.id(), session.world().clone(), settings.signals.event_log.clone());
    let heard = journal.hearing(listener.clone());
    let dreaming = if bare { None } else { dreaming::beside(place, settings, &chosen, session.id(), &ledger, heard) };
    let mut plan = (!bare).then(|| Plan::new(place, settings));
    let mut parts = Parts::new(chosen.model.clone(), chosen.name.clone()).with_settings(settings);
    (parts.talk.small, parts.out.ledger) = (small, ledger.clone());
    let mode = mode(args, settings, &mut warnings);
    match args.mode() {
        Some(_) => parts.consent.policy.mode.set(mode),
        None => parts.consent.policy.mode.follow(mode),
    }
    add_flags(&mut parts.consent.policy.rules, args, place)?;
    let mailing = Mailing::open(args, place, settings, &session, &parts.consent.policy.mode)?;
    if let Some(team) = &mailing.member_of {
        parts.consent.policy.mode = mode_below(team.clone(), mode);
        parts.lineage.latest = Some(Latest::default()); // it says what it is doing
    }
    warnings.extend(mailing.warnings.iter().cloned());
    let approver = match &mailing.member_of {
        Some(team) => Arc::new(AskLead::new(mailing.post.clone(), team.clone())),
        None => approver,
    };
    if approver.who() != Who::Nobody && !bare && mailing.member_of.is_none() {
        parts.work.tools.extend(engine::plan::offered(&parts.consent.policy.mode, &mailing.board));
    }
    mailing.equip(&mut parts.work.tools, mode);
    parts.contacts.teammates.clone_from(&mailing.teammates);
    parts.contacts.post = Some(mailing.post.clone());
    if !bare {
        let agents = agents::registry(place, settings, &judged.trust, args.agents.as_deref())?;
        let told = agents.troubles().iter().filter(|trouble| trouble.weight > Weight::Note);
        warnings.extend(told.map(ToString::to_string));
        let at_end = if approver.who() == Who::Person { AtEnd::LeavesThem } else { AtEnd::WaitsForThem };
        let children = Children::new(Arc::new(agents), at_end);
        let memory = plan.as_ref().and_then(Plan::agent_memory);
        parts.contacts.agents = Some(memory.into_iter().fold(children, Children::with_memory));
        let guard = env::program();
        let (home, own) = (place.home.path(), session.path());
        let left = left_behind(home, &place.directory, own, &parts.work.environment, guard.as_deref()).await;
        warnings.extend(left);
    }
    if let Some(offered) = offered(&args.tools, &parts.work.tools)? {
        parts.work.tools.retain(|tool| offered.contains(&tool.name()));
        parts.contacts.agents = parts.contacts.agents.filter(|_| AGENT_NAMES.iter().any(|name| offered.contains(name)));
    }
    if let Some(plan) = &mut plan {
        parts.prompt.sections = plan.sections();
        parts.consent.policy.rules.allow.extend(rules(&plan.prepare(), place)?);
        warnings.append(&mut plan.warnings);
    }
    for directory in added(args, place) {
        anyhow::ensure!(directory.is_dir(), "--add-dir {}: no such directory", directory.display());
        parts.work.directories.push(directory);
    }
    if !bare {
        parts.prompt.surroundings = surroundings::look(place, &parts.work.environment).await;
    }
    let (manner, no_style) = manner::manner(settings, place);
    parts.prompt.manner = manner;
    warnings.extend(no_style);
    parts.talk.max_tokens = max_tokens;
    parts.talk.effort = effort(args, settings);
    if args.effort.is_some() && args.effort != parts.talk.effort {
        warnings.push("the effort is managed here; the flag does not count".to_owned());
    }
    parts.talk.thinking = env::MAX_THINKING.number()?;
    parts.prompt.system = args.system_prompt.clone().or_else(|| bare.then(|| BARE.to_owned()));
    parts.prompt.appended = mailing.appended(args.append_system_prompt.as_deref());
    parts.work.user_home.clone_from(&place.user_home);
    parts.work.guard = env::program();
    parts.work.variable = Some(env::named);
    parts.talk.limits.max_rounds = args.max_turns;
    parts.prompt.budget = args.task_budget;
    parts.consent.approver = approver;
    (parts.out.listener, parts.out.journal) = (listener, Some(journal));
    let window = shape.window();
    parts.talk.layers = shape.layers(settings, place);
    parts.consent.hooks = shape.hooks(&settings.hooks);
    let mut remembers = None;
    if let Some(kind) = &args.agent_type {
        let definition = parts.contacts.agents.as_ref().and_then(|agents| agents.registry().find(kind).cloned());
        let definition = definition.ok_or_else(|| anyhow::anyhow!("there is no agent of the type {kind}"))?;
        remembers = engine::agents::take_role(&mut parts, &definition, &place.ground(), session.path())?;
    }
    let worktree = TeammateWorktree::enter(args, place, &mut session, &parts.work.environment).await?;
    let copy = worktree.as_ref().map(|worktree| worktree.worktree.copied());
    if let Some(worktree) = &worktree {
        worktree.worktree.furnish(&mut parts);
    }
    let follower = Follower::new(args, place, &judged, known_model, chosen, ledger);
    parts.reload = Some(reload::reload(watch, follower.in_copy(copy.clone())));
    let (learning, why) = precedence::learning(args, place, settings, plan.as_ref());
    warnings.extend(why);
    let mut agent = Agent::new(session, parts)?.starting(start(args)).with_mail(mailing.post.mail().clone());
    if args.sandbox.or(settings.sandbox.enabled) == Some(true) {
        let sandbox = sandbox(settings, place, &agent).await?;
        if sandbox.standing().confined() != Confined::Wholly {
            warnings.push(format!("the sandbox: {}", sandbox.describe().lines().next().unwrap_or_default()));
        }
        let choice = if args.sandbox.is_some() { ChosenBy::Hand } else { ChosenBy::Settings };
        agent.set_sandbox(Some(sandbox), choice);
    } else if args.sandbox.is_some() {
        agent.set_sandbox(None, ChosenBy::Hand);
    }
    if let Some(plan) = plan {
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
        agent = agent.remembering(directory);
    }
    if (args.print || args.prompt.is_some())
        && let Some(knowledge) = agent.knowledge()
    {
        // Nobody types meanwhile: without this the first message would find memory still unread.
        let _ = tokio::time::timeout(MEMORY_PATIENCE, knowledge.ready()).await;
    }
    Ok(Ready {
        agent,
        dreaming,
        bypass: settings.bypass,
        prices: judged.settings.prices,
        warnings,
        window,
        mailing,
        worktree,
    })
}

/// Why a session starts, as hooks are told.
fn start(args: &RunArgs) -> Start {
    match (args.resume.is_some() || args.continue_, args.fork_session, args.cleared) {
        (true, true, _) => Start::Fork,
        (true, false, _) => Start::Resume,
        (false, _, true) => Start::Clear,
        (false, _, false) => Start::Startup,
    }
}

/// The mode a session starts in: what is managed, what a flag says, what the settings say.
fn mode(args: &RunArgs, settings: &Settings, warnings: &mut Vec<String>) -> Mode {
    let asked = args.mode().map(Mode::from);
    let (managed, said) = (settings.is_managed(&keys::MODE), settings.mode.unwrap_or_default());
    if managed && asked.is_some_and(|asked| asked != said) {
        warnings.push("the mode is managed here; the flag does not count".to_owned());
    }
    let mode = if managed { said } else { asked.unwrap_or(said) };
    if mode == Mode::BypassPermissions && settings.bypass == Bypass::Disabled {
        warnings
            .push("bypassPermissions is disabled by the settings; the session starts in the mode default".to_owned());
        return Mode::Default;
    }
    mode
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
