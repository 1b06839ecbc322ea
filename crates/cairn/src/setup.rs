//! From flags, settings and environment to an agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::agent::{Listener, Parts};
use engine::home::git_branch;
use engine::permission::{Approver, Policy};
use engine::prompt::{self, Ingredients};
use engine::run::Limits;
use engine::session::Fork;
use engine::settings::{self, Ground, Settings};
use engine::{Agent, Home, Session, World};
use transcript::window::{Window, WindowHints};
use transcript::{Thinking, price::Prices};

use crate::args::RunArgs;
use crate::knowledge::Plan;
use crate::{env, model};

/// The most a reply may be when nobody says.
pub(crate) const MAX_OUTPUT_TOKENS: u64 = 32_000;
/// Thinking below this is refused by the API.
const LEAST_THINKING: u64 = 1_024;

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

    /// The project's committed settings.
    pub(crate) fn project_settings(&self) -> PathBuf {
        self.directory.join(".claude/settings.json")
    }

    /// The checkout's own settings.
    pub(crate) fn local_settings(&self) -> PathBuf {
        self.directory.join(".claude/settings.local.json")
    }

    fn ground(&self) -> Ground<'_> {
        Ground { directory: &self.directory, home: self.user_home.as_deref() }
    }

    /// The settings in force, weakest file first.
    pub(crate) fn settings(&self, flag: Option<&str>) -> anyhow::Result<Settings> {
        let mut paths = vec![self.home.path().join("settings.json"), self.project_settings(), self.local_settings()];
        let mut inline = None;
        match flag {
            Some(json) if json.trim_start().starts_with('{') => {
                let mut file = tempfile::NamedTempFile::new()?;
                std::io::Write::write_all(&mut file, json.as_bytes())?;
                paths.push(file.path().to_owned());
                inline = Some(file);
            }
            Some(path) => {
                let path = self.directory.join(path);
                files::stamp(&path)?;
                paths.push(path);
            }
            None => {}
        }
        let settings = Settings::load(&paths, &self.ground());
        drop(inline);
        Ok(settings?)
    }
}

/// An agent, and what is to be known around it.
pub(crate) struct Ready {
    /// The agent.
    pub(crate) agent: Agent,
    /// What tokens cost.
    pub(crate) prices: Prices,
    /// What the user should know before it starts.
    pub(crate) warnings: Vec<String>,
    /// How much may happen without asking.
    pub(crate) mode: tools::permission::Mode,
    /// The model's window.
    pub(crate) window: Window,
}

/// Makes an agent from flags, settings and environment.
pub(crate) async fn agent(
    args: &RunArgs,
    place: &Place,
    approver: Arc<dyn Approver>,
    listener: Listener,
) -> anyhow::Result<Ready> {
    let settings = place.settings(args.settings.as_deref())?;
    let mut warnings = settings.warnings.clone();
    let known_model = resumed_model(args, place);
    let chosen = model::choose(args.model.as_deref(), known_model.as_deref(), &settings).await?;
    warnings.extend(chosen.note.clone());
    let (session, skipped) = open_session(args, place)?;
    warnings.extend(
        skipped
            .iter()
            .map(|line| format!("{}: line {} was skipped: {}", session.path().display(), line.number, line.why)),
    );

    let known = session.log().view().prologue().cloned();
    let mut plan = Plan::new(place, &settings);
    let sections = plan.sections();

    let mut policy = Policy { mode: tools::permission::Mode::default(), rules: settings.rules.clone() };
    policy.mode = args.permission_mode.map(Into::into).or(settings.mode).unwrap_or_default();
    policy.rules.allow.extend(settings::rules(&args.allowed_tools, &place.ground()).map_err(engine::Error::from)?);
    policy.rules.deny.extend(settings::rules(&args.disallowed_tools, &place.ground()).map_err(engine::Error::from)?);

    let temporary = session.path().with_extension("");
    let mut allowed = plan.prepare();
    // Results that were put into files can be read again.
    allowed.push(format!("Read(/{}/**)", temporary.display()));
    policy.rules.allow.extend(settings::rules(&allowed, &place.ground()).map_err(engine::Error::from)?);
    warnings.append(&mut plan.warnings);

    let mut directories = settings.directories.clone();
    for directory in &args.add_dir {
        let directory = place.directory.join(directory);
        anyhow::ensure!(directory.is_dir(), "--add-dir {}: no such directory", directory.display());
        directories.push(directory);
    }
    let tools = tools::standard();
    let max_tokens = env::MAX_OUTPUT.number()?.or(settings.max_output_tokens).unwrap_or(MAX_OUTPUT_TOKENS);
    let branch = git_branch(&place.directory);
    let ingredients = Ingredients {
        model: &chosen.name,
        max_tokens,
        thinking: thinking(env::MAX_THINKING.number()?, max_tokens),
        betas: Vec::new(),
        tools: tools.iter().map(|tool| tool.definition()).collect(),
        directory: &place.directory,
        extra_directories: &directories,
        branch: &branch,
        sections,
        custom: args.system_prompt.as_deref(),
        appended: args.append_system_prompt.as_deref(),
        now: session.world().now(),
    };
    let prologue = prompt::prologue(&ingredients, known.as_deref());
    let denied = policy.rules.clone();
    let mut scope = tools::Scope::new(&place.directory, temporary)
        .with_directories(directories)
        .with_readable(Arc::new(move |path| may_read(&denied, path)));
    if let Some(home) = &place.user_home {
        scope = scope.with_home(home.clone());
    }
    let window = Window::of(&WindowHints {
        model: &chosen.full_name,
        configured: chosen.window,
        max_context_tokens: env::MAX_CONTEXT.number()?,
        auto_compact_window: env::COMPACT_WINDOW.number()?,
        max_output: max_tokens,
        ..WindowHints::default()
    });
    let mode = policy.mode;
    let selector = chosen.selector(&settings);
    let parts = Parts {
        session,
        model: chosen.model,
        tools,
        scope,
        policy,
        approver,
        limits: Limits { max_rounds: args.max_turns },
        ttl: settings.cache_ttl.unwrap_or_default(),
        listener,
    };
    let agent = plan.give(Agent::new(parts, &prologue)?, selector);
    Ok(Ready { agent, prices: settings.prices, warnings, mode, window })
}

/// The model a session that is to be resumed talked to, read before it is opened for writing.
fn resumed_model(args: &RunArgs, place: &Place) -> Option<String> {
    let path = match &args.resume {
        Some(id) if id.ends_with(".jsonl") => place.directory.join(id),
        Some(id) => place.home.find(&place.directory, id).ok()?.path,
        None if args.continue_ => place.home.sessions(&place.directory).ok()?.into_iter().next()?.path,
        None => return None,
    };
    let (lines, _) = engine::record::lines(&path).ok()?;
    lines.into_iter().rev().find_map(|line| match line.body {
        transcript::line::Body::Prologue(prologue) => Some(prologue.model),
        _ => None,
    })
}

fn open_session(args: &RunArgs, place: &Place) -> anyhow::Result<(Session, Vec<engine::record::Skipped>)> {
    let world = World::real();
    let fork = if args.fork_session { Fork::Yes } else { Fork::No };
    if let Some(id) = &args.resume {
        let path = Path::new(id);
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let path = files::real(place.directory.join(path))?;
            return Ok(Session::resume_file(&place.home, &place.directory, &path, fork, world)?);
        }
        return Ok(Session::resume(&place.home, &place.directory, id, fork, world)?);
    }
    if args.continue_ {
        let newest = place.home.sessions(&place.directory)?.into_iter().next();
        let newest = newest
            .ok_or_else(|| anyhow::anyhow!("there is no session to continue in {}", place.directory.display()))?;
        return Ok(Session::resume_file(&place.home, &place.directory, &newest.path, fork, world)?);
    }
    let session = Session::create(&place.home, &place.directory, args.session_id.as_deref(), world)?;
    Ok((session, Vec::new()))
}

/// Whether no rule keeps a file from being read; searches leave out those that one does.
fn may_read(rules: &tools::permission::Rules, path: &Path) -> bool {
    let subject = tools::Subject::Path { named: path.to_owned(), real: path.to_owned() };
    !matches!(rules.decide("Read", &subject), tools::permission::Verdict::Deny(_))
}

/// A budget for thinking that the API takes: at least 1,024 and below the output limit.
fn thinking(budget: Option<u64>, max_tokens: u64) -> Option<Thinking> {
    let budget = budget.filter(|&budget| budget > 0)?;
    let most = max_tokens.checked_sub(1).filter(|&most| most >= LEAST_THINKING)?;
    Some(Thinking::Enabled { budget_tokens: budget.clamp(LEAST_THINKING, most) })
}
