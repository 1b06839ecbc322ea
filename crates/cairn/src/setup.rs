//! From flags, settings and environment to an agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::Agent;
use engine::agent::Parts;
use engine::agents::{AtEnd, Children, left_behind};
use engine::context::Layers;
use engine::event::Listener;
use engine::hooks::{Hooks, Start};
use engine::journal::Journal;
use engine::label::Latest;
use engine::parts::MAX_OUTPUT_TOKENS;
use engine::prompt::BARE;
use learning::dream::beside::Dreaming;
use learning::knowledge::outside;
use learning::ledger::{Ledger, Spender};
use mail::{AskLead, mode_below};
use session::{Home, World};
use settings::hooks::HookSettings;
use settings::permission::{Approver, ChosenBy, Who};
use settings::trust::{self, Claim, Trust};
use settings::{Bypass, Flag, Ground, Learning, Loaded, Settings, Weight, keys};
use tools::permission::{Confined, Mode, Rule, Rules};
use tools::sandbox::Sandbox;
use transcript::price::Prices;
use transcript::window::{AutoCompact, Window, WindowHints};
use transcript::{Effort, tool_names};

use crate::args::RunArgs;
use crate::knowledge::{self, Plan};
use crate::mailing::Mailing;
use crate::model::{self, Chosen};
use crate::opening::{open_session, resumed_model};
use crate::reload::{self, Follower};
use crate::workplace::Workplace;
use crate::{agents, asking, dreaming, env, manner, surroundings};

/// How long a run that begins with a message waits for its memories to be read. A thousand take a tenth of it.
const MEMORY_PATIENCE: Duration = Duration::from_secs(1);

/// The tool that sends agents out, as it is called and as it was.
const AGENT_NAMES: [&str; 2] = [tool_names::AGENT, tool_names::TASK];

/// The largest template for notes that is read.
const NOTES_BYTES: u64 = 100_000;

/// Where this program runs.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The config home.
    pub(crate) home: Home,
    /// The working directory.
    pub(crate) directory: PathBuf,
    /// What `~` stands for.
    pub(crate) user_home: Option<PathBuf>,
}

impl Place {
    /// From the environment.
    pub(crate) fn from_env() -> anyhow::Result<Self> {
        let directory = env::directory()?;
        let user_home = env::home();
        let home = match (env::CONFIG_DIR.get(), &user_home) {
            (Some(path), _) => directory.join(path),
            (None, Some(home)) => home.join(".claude"),
            (None, None) => anyhow::bail!("no home directory: set {} or {}", env::HOME.name, env::CONFIG_DIR.name),
        };
        Ok(Self { home: Home::at(home), directory, user_home })
    }

    pub(crate) fn ground(&self) -> Ground<'_> {
        Ground { directory: &self.directory, home: self.user_home.as_deref() }
    }

    /// Where an organisation's files lie: a directory that the environment names, and the system's own. The first is the
    /// weaker, so that it can add to what is managed and take nothing away.
    pub(crate) fn managed(&self) -> Vec<PathBuf> {
        let named = env::MANAGED_DIR.get().map(|directory| self.directory.join(directory));
        named.into_iter().chain([settings::managed_directory(std::env::consts::OS).to_owned()]).collect()
    }

    /// The files that settings are read from.
    pub(crate) fn settings_files(&self, flag: Option<&str>) -> anyhow::Result<settings::Files> {
        let mut files = settings::Files::usual(self.home.path(), &self.directory);
        files.managed = self.managed();
        files.flag = match flag {
            Some(json) if json.trim_start().starts_with('{') => Some(Flag::Text(json.to_owned())),
            Some(path) => {
                let path = self.directory.join(path);
                files::stamp(&path)?;
                Some(Flag::File(path))
            }
            None => None,
        };
        Ok(files)
    }

    /// What the user lets the files below the project do.
    pub(crate) fn trust(&self) -> Trust {
        let claude_json = match (env::CONFIG_DIR.get(), &self.user_home) {
            (None, Some(home)) => home.join(".claude.json"),
            _ => self.home.path().join(".claude.json"),
        };
        Trust::read(trust::Place {
            config_home: self.home.path(),
            claude_json: Some(&claude_json),
            directory: &self.directory,
            home: self.user_home.as_deref(),
        })
    }

    /// What is spent, and what may still be.
    pub(crate) fn ledger(&self, settings: &Settings, session: &str) -> Ledger {
        let spender = Spender { project: self.directory.clone(), session: session.to_owned() };
        Ledger::at(self.home.path(), spender, settings.prices.clone(), settings.budget, World::real())
    }

    /// The settings in force.
    pub(crate) fn settings(&self, flag: Option<&str>) -> anyhow::Result<Settings> {
        Ok(self.judged(flag, OneRun::No)?.settings)
    }

    /// The settings in force, and what of the project's files is left out.
    pub(crate) fn judged(&self, flag: Option<&str>, one_run: OneRun) -> anyhow::Result<Judged> {
        let loaded = Loaded::read(&self.settings_files(flag)?);
        let mut trust = self.trust();
        let (claims, agents) = (trust::claims(&loaded, trust.site()), agents::claims(self, trust.site()));
        trust.take_over(&claims);
        let (is_new_let_in, mut let_in) = match one_run {
            OneRun::No => (false, Vec::new()),
            OneRun::Trusted => (true, trust.missing(&[claims.clone(), agents.clone()].concat())),
            OneRun::With(claims) => (false, claims),
        };
        if !trust.admit(&let_in) {
            let_in.clear();
        }
        let (mut left_out, narrowed) = (trust.missing(&claims), trust.missing(&agents));
        let settings = Settings::of(&loaded, &self.ground(), &|set| trust.covers_set(set));
        env::extend(&settings.own_environment);
        let mut instructions = knowledge::instructions(self, &settings);
        loop {
            let outside = outside::settle(&mut instructions, &trust);
            let missing: Vec<Claim> = outside.into_iter().map(|outside| outside.claim).collect();
            // What is let in may ask for more.
            if is_new_let_in && !missing.is_empty() && trust.admit(&missing) {
                let_in.extend(missing);
            } else {
                left_out.extend(missing);
                return Ok(Judged { settings, trust, left_out, narrowed, let_in });
            }
        }
    }
}

/// Whether the project's files are trusted for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OneRun {
    /// As far as the user has said before.
    No,
    /// With all they ask for.
    Trusted,
    /// With what was let in when the run began.
    With(Vec<Claim>),
}

/// Settings, and what the project's files asked for.
pub(crate) struct Judged {
    /// What counts.
    pub(crate) settings: Settings,
    /// What the user lets the project's files do.
    pub(crate) trust: Trust,
    /// What is left out.
    pub(crate) left_out: Vec<Claim>,
    /// Agents of which only that counts which takes away.
    pub(crate) narrowed: Vec<Claim>,
    /// What is let in for this run alone.
    pub(crate) let_in: Vec<Claim>,
}

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
    pub(crate) worktree: Option<Workplace>,
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
    let judged = place.judged(args.settings.as_deref(), args.one_run())?;
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
        let agents = agents::registry(place, &judged, args.agents.as_deref())?;
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
    let window = shape.window;
    parts.talk.layers = shape.layers(settings, place);
    parts.consent.hooks = shape.hooks(&settings.hooks);
    let mut remembers = None;
    if let Some(kind) = &args.agent_type {
        let definition = parts.contacts.agents.as_ref().and_then(|agents| agents.registry().find(kind).cloned());
        let definition = definition.ok_or_else(|| anyhow::anyhow!("there is no agent of the type {kind}"))?;
        remembers = engine::agents::take_role(&mut parts, &definition, &place.ground(), session.path())?;
    }
    let worktree = Workplace::enter(args, place, &mut session, &parts.work.environment).await?;
    let copy = worktree.as_ref().map(|worktree| worktree.worktree.copied());
    if let Some(worktree) = &worktree {
        worktree.worktree.furnish(&mut parts);
    }
    let follower = Follower::new(args, place, &judged, known_model, chosen, ledger);
    parts.reload = Some(reload::reload(watch, follower.in_copy(copy.clone())));
    let (learning, why) = self::learning(args, place, settings, plan.as_ref());
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

/// How a session learns, if it does; and why not, where something is wrong.
pub(crate) fn learning(
    args: &RunArgs,
    place: &Place,
    settings: &Settings,
    plan: Option<&Plan>,
) -> (Option<Learning>, Option<String>) {
    let wanted = !args.print || args.extract || settings.extract.headless == Some(true);
    // What a long-lived session logs is distilled by dreams.
    let logs = settings.daily_log == Some(true);
    let Some(plan) = plan.filter(|plan| plan.directory.is_some()) else { return (None, None) };
    if !wanted || logs || env::REMOTE.flag() == Some(true) {
        return (None, None);
    }
    match settings.extract.learning(&place.home, &place.ground()) {
        Ok(learning) => {
            let team = plan.shared().map(Path::to_owned);
            let indexing = plan.indexing;
            (learning.map(|learning| Learning { team, indexing, ..learning }), None)
        }
        Err(error) => (None, Some(format!("nothing is learnt: {error}"))),
    }
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

/// What the layers depend on beside the settings.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    window: Window,
    model: String,
    bare: bool,
}

impl Shape {
    /// For a model.
    pub(crate) fn of(chosen: &Chosen, args: &RunArgs, max_tokens: u64) -> anyhow::Result<Self> {
        let window = Window::of(&WindowHints {
            model: &chosen.full_name,
            configured: chosen.window,
            max_context_tokens: env::MAX_CONTEXT.number()?,
            auto_compact_window: env::COMPACT_WINDOW.number()?,
            max_output: max_tokens,
            ..WindowHints::default()
        });
        Ok(Self { window, model: chosen.name.clone(), bare: args.is_bare() })
    }

    /// The hooks that run: none in a bare session.
    pub(crate) fn hooks(&self, hooks: &HookSettings) -> Hooks {
        if self.bare { Hooks::default() } else { Hooks::new(hooks.clone()) }
    }

    /// How a session keeps within its window.
    pub(crate) fn layers(&self, settings: &Settings, place: &Place) -> Layers {
        let mut layers = settings.layers.layers(self.window, settings.prices.of(&self.model));
        if env::NO_COMPACT.flag() == Some(true) {
            layers.auto_compact = AutoCompact::Off;
        }
        layers.collapse = env::COLLAPSE.flag().unwrap_or(layers.collapse);
        let notes = place.home.path().join("session-memory/config");
        let own = |name: &str| {
            files::read(notes.join(name), NOTES_BYTES).ok().and_then(|file| String::from_utf8(file.bytes).ok())
        };
        (layers.notes_template, layers.notes_prompt) = (own("template.md"), own("prompt.md"));
        if self.bare {
            (layers.notes, layers.notes_compact) = (false, false);
        }
        layers
    }
}

/// The most a reply may be.
pub(crate) fn max_tokens(settings: &Settings) -> anyhow::Result<u64> {
    Ok(env::MAX_OUTPUT.number()?.or(settings.max_output_tokens).unwrap_or(MAX_OUTPUT_TOKENS))
}

/// How hard the model tries: what is managed, what a flag says, what the settings say.
pub(crate) fn effort(args: &RunArgs, settings: &Settings) -> Option<Effort> {
    args.effort.filter(|_| !settings.is_managed(&keys::EFFORT)).or(settings.effort)
}

/// Rules from their texts.
pub(crate) fn rules(texts: &[String], place: &Place) -> anyhow::Result<Vec<Rule>> {
    Ok(settings::rules(texts, &place.ground()).map_err(session::Error::from)?)
}

/// Adds the rules that flags name.
pub(crate) fn add_flags(all: &mut Rules, args: &RunArgs, place: &Place) -> anyhow::Result<()> {
    all.allow.extend(rules(&args.allowed_tools, place)?);
    all.deny.extend(rules(&args.disallowed_tools, place)?);
    Ok(())
}

/// The directories that flags add.
pub(crate) fn added(args: &RunArgs, place: &Place) -> Vec<PathBuf> {
    args.add_dir.iter().map(|directory| place.directory.join(directory)).collect()
}

/// The mode the settings say.
pub(crate) fn mode_of(settings: &Settings) -> Mode {
    let mode = settings.mode.unwrap_or_default();
    if mode == Mode::BypassPermissions && settings.bypass == Bypass::Disabled { Mode::Default } else { mode }
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
