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
use provider::anthropic::{self, Anthropic, Auth};
use transcript::window::provider_name;
use transcript::{Thinking, price::Prices};

use crate::args::RunArgs;
use crate::env;

/// The model when nobody names one.
const DEFAULT_MODEL: &str = "claude-sonnet-5";
/// The most a reply may be when nobody says.
pub(crate) const MAX_OUTPUT_TOKENS: u64 = 32_000;
/// Thinking below this is refused by the API.
const LEAST_THINKING: u64 = 1_024;

/// Short names for models.
const ALIASES: [(&str, &str); 4] =
    [("opus", "claude-opus-5"), ("sonnet", DEFAULT_MODEL), ("haiku", "claude-haiku-4-5"), ("default", DEFAULT_MODEL)];

/// No key to talk to a model with.
#[derive(Debug, thiserror::Error)]
#[error("no API key: neither {} nor {} is set", env::API_KEY.name, env::AUTH_TOKEN.name)]
pub(crate) struct NoKey;

impl NoKey {
    /// What to do.
    pub(crate) fn hint(&self) -> String {
        format!("export {}=…   or see it work without one: cairn demo", env::API_KEY.name)
    }
}

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

    fn ground(&self) -> Ground<'_> {
        Ground { directory: &self.directory, home: self.user_home.as_deref() }
    }

    /// The settings in force, weakest file first.
    fn settings(&self, flag: Option<&str>) -> anyhow::Result<Settings> {
        let project = self.directory.join(".claude");
        let mut paths = vec![
            self.home.path().join("settings.json"),
            project.join("settings.json"),
            project.join("settings.local.json"),
        ];
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
}

/// Makes an agent from flags, settings and environment.
pub(crate) fn agent(
    args: &RunArgs,
    place: &Place,
    approver: Arc<dyn Approver>,
    listener: Listener,
) -> anyhow::Result<Ready> {
    let settings = place.settings(args.settings.as_deref())?;
    let mut warnings = settings.warnings.clone();
    let model = anthropic_from_env()?;
    let (session, skipped) = open_session(args, place)?;
    warnings.extend(
        skipped
            .iter()
            .map(|line| format!("{}: line {} was skipped: {}", session.path().display(), line.number, line.why)),
    );

    let known = session.log().view().prologue().cloned();
    let name = args.model.clone().or_else(|| known.as_ref().map(|known| known.model.clone()));
    let name = name.or(settings.model.clone()).or_else(|| env::MODEL.get()).unwrap_or_else(|| DEFAULT_MODEL.to_owned());
    let name = provider_name(&resolve_alias(&name)).to_owned();

    let mut policy = Policy { mode: tools::permission::Mode::default(), rules: settings.rules.clone() };
    policy.mode = args.permission_mode.map(Into::into).or(settings.mode).unwrap_or_default();
    policy.rules.allow.extend(settings::rules(&args.allowed_tools, &place.ground()).map_err(engine::Error::from)?);
    policy.rules.deny.extend(settings::rules(&args.disallowed_tools, &place.ground()).map_err(engine::Error::from)?);

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
        model: &name,
        max_tokens,
        thinking: thinking(env::MAX_THINKING.number()?, max_tokens),
        betas: Vec::new(),
        tools: tools.iter().map(|tool| tool.definition()).collect(),
        directory: &place.directory,
        extra_directories: &directories,
        branch: &branch,
        custom: args.system_prompt.as_deref(),
        appended: args.append_system_prompt.as_deref(),
        now: session.world().now(),
    };
    let prologue = prompt::prologue(&ingredients, known.as_deref());
    let temporary = session.path().with_extension("");
    let denied = policy.rules.clone();
    let mut scope = tools::Scope::new(&place.directory, temporary)
        .with_directories(directories)
        .with_readable(Arc::new(move |path| may_read(&denied, path)));
    if let Some(home) = &place.user_home {
        scope = scope.with_home(home.clone());
    }
    let parts = Parts {
        session,
        model,
        tools,
        scope,
        policy,
        approver,
        limits: Limits { max_rounds: args.max_turns },
        ttl: settings.cache_ttl.unwrap_or_default(),
        listener,
    };
    Ok(Ready { agent: Agent::new(parts, &prologue)?, prices: settings.prices, warnings })
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

fn anthropic_from_env() -> anyhow::Result<Arc<dyn provider::Model>> {
    let key = env::API_KEY.get().map(|key| Auth::ApiKey(key.into()));
    let auth = key.or_else(|| env::AUTH_TOKEN.get().map(|token| Auth::AuthToken(token.into()))).ok_or(NoKey)?;
    let base = env::BASE_URL.get().unwrap_or_else(|| anthropic::BASE_URL.to_owned());
    let mut config = anthropic::Config::new(base, auth);
    if let Some(retries) = env::MAX_RETRIES.number()? {
        config.retry.attempts = u32::try_from(retries).unwrap_or(u32::MAX).saturating_add(1);
    }
    Ok(Arc::new(Anthropic::new(config)?))
}

/// Whether no rule keeps a file from being read; searches leave out those that one does.
fn may_read(rules: &tools::permission::Rules, path: &Path) -> bool {
    let subject = tools::Subject::Path { named: path.to_owned(), real: path.to_owned() };
    !matches!(rules.decide("Read", &subject), tools::permission::Verdict::Deny(_))
}

fn resolve_alias(name: &str) -> String {
    let (short, suffix) = name.strip_suffix("[1m]").map_or((name, ""), |short| (short, "[1m]"));
    let full = ALIASES.iter().find(|(alias, _)| *alias == short).map_or(short, |(_, full)| full);
    format!("{full}{suffix}")
}

/// A budget for thinking that the API takes: at least 1,024 and below the output limit.
fn thinking(budget: Option<u64>, max_tokens: u64) -> Option<Thinking> {
    let budget = budget.filter(|&budget| budget > 0)?;
    let most = max_tokens.checked_sub(1).filter(|&most| most >= LEAST_THINKING)?;
    Some(Thinking::Enabled { budget_tokens: budget.clamp(LEAST_THINKING, most) })
}
