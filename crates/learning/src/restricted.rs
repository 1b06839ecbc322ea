//! What an agent may do that nobody watches: look around, and keep memories.
//!
//! It may read and search in the working directories, the memory directory and this project's sessions; run commands that
//! only look there, in a sandbox, where one holds; and write memories ([`saving`]), of which every change is kept before it is
//! made, so that it can be taken back. All else is refused with a reason it can act on, and counted. Whatever it tries, nothing
//! outside the memory directory changes: that directory is an opened handle, and there is no other tool that writes.
//!
//! What a user's rules deny or would ask about is refused; what they allow widens nothing. Of sessions that nothing is learnt
//! from it sees nothing, and commands see no sessions at all.

mod saving;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memory::changes::{Change, Changes, Head, Writer};
use memory::echo::Injected;
use memory::remember::Origin;
use memory::store::{Indexing, Store};
use parking_lot::Mutex;
use serde_json::Value;
use session::World;
use settings::sandbox;
use tools::permission::{Confined, Decision, Mode, Rules, Situation, Wall, decide};
use tools::sandbox::{Confinement, Leaves, Sandbox, Standing};
use tools::{Access, Scope, Subject, Tool};
use transcript::tool_names;

use crate::apart::Apart;
use crate::fork::{Judge, ToolPolicy};

/// Where an agent works and who it is.
pub struct Ground {
    /// The agent: what its changes and costs go under.
    pub agent: &'static str,
    /// The memory directory.
    pub memory: PathBuf,
    /// Whether its index is kept.
    pub indexing: Indexing,
    /// Where the sessions of this project lie, its own and others'.
    pub sessions: Vec<PathBuf>,
    /// Files and directories that nothing is learnt from: rules for Read that deny.
    pub excluded: Rules,
    /// The config home: commands see nothing of it but what may be read.
    pub config: PathBuf,
    /// Where changes are kept.
    pub changes: Changes,
    /// The user's rules.
    pub rules: Rules,
    /// How well commands can be confined.
    pub standing: Standing,
    /// How much it may write.
    pub limits: Limits,
    /// Text that no memory may be made from.
    pub injected: Injected,
    /// The session it works for.
    pub session: Option<String>,
    /// The newest message it was told of.
    pub message: Option<String>,
    /// The model.
    pub model: String,
    /// The time and fresh names.
    pub world: World,
}

/// How much an agent may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in all.
    pub bytes: usize,
    /// Memories that are made or changed.
    pub files: usize,
    /// Memories that are removed.
    pub removed: usize,
}

/// What an agent did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls that were refused.
    pub denied: u32,
    /// Those of them that would have written.
    pub denied_writes: u32,
    /// Memories that were made or changed, each once.
    pub saved: Vec<String>,
    /// Memories that were removed.
    pub removed: Vec<String>,
    /// How many bytes were written.
    pub bytes: usize,
}

impl Tally {
    /// How many memories were made or changed, and how many of them are shared with the team.
    pub fn counted(&self) -> (usize, usize) {
        (self.saved.len(), self.saved.iter().filter(|path| path.starts_with(TEAM)).count())
    }
}

/// Where the memories of the team lie, below the memory directory.
const TEAM: &str = "team/";

/// The policy of an agent that nobody watches.
pub struct Restricted {
    ground: Ground,
    store: Store,
    /// The memory directory, links followed.
    directory: PathBuf,
    /// Where it may look, links followed.
    looks: Vec<PathBuf>,
    /// What of it commands see.
    commands_look: Vec<PathBuf>,
    apart: Arc<Apart>,
    /// What memories name is looked for here.
    tree: PathBuf,
    tally: Mutex<Tally>,
    /// The changes, from the first one on.
    run: Mutex<Option<Writer>>,
}

impl Restricted {
    /// Opens the memory directory, making it where it is missing. The working directories are those of the scope.
    pub fn new(mut ground: Ground, scope: &Scope) -> Result<Arc<Self>, memory::Error> {
        let store = Store::create(&ground.memory, ground.indexing)?;
        ground.rules.allow.clear();
        let real = |path: &PathBuf| files::real(path).unwrap_or_else(|_| path.clone());
        let directory = real(&ground.memory);
        let sessions: Vec<PathBuf> = ground.sessions.iter().map(real).collect();
        let commands_look: Vec<PathBuf> = scope.directories().into_iter().chain([directory.clone()]).collect();
        let looks = commands_look.iter().chain(&sessions).cloned().collect();
        let apart = Arc::new(Apart::new(sessions, ground.excluded.clone(), scope.clone()));
        let (tally, run, tree) = (Mutex::default(), Mutex::default(), scope.project().to_owned());
        Ok(Arc::new(Self { store, directory, looks, commands_look, apart, tree, tally, run, ground }))
    }

    /// The policy, over the tools its requests name and where the parent's run.
    pub fn policy(self: &Arc<Self>, tools: &[Arc<dyn Tool>], scope: &Scope) -> ToolPolicy {
        let tools = tools.iter().map(|tool| match tool.name() {
            tool_names::WRITE => Arc::new(saving::Write(self.clone())) as Arc<dyn Tool>,
            tool_names::EDIT => Arc::new(saving::Edit(self.clone())),
            _ => tool.clone(),
        });
        let (parent, looks, apart) = (scope.clone(), self.looks.clone(), self.apart.clone());
        let may_show =
            move |named: &Path, real: &Path| inside(real, &looks) && parent.may_show(named, real) && !apart.has(real);
        let scope = scope.fork().with_readable(Arc::new(may_show));
        scope.set_sandbox(Some(Arc::new(self.sandbox())));
        ToolPolicy::Tools { tools: tools.collect(), scope, judge: self.clone() }
    }

    /// Whether a file belongs to a session that nothing is learnt from.
    pub(crate) fn is_apart(&self, path: &Path) -> bool {
        let real = files::real(path).unwrap_or_else(|_| path.to_owned());
        self.apart.has(&real)
    }

    /// What it did so far.
    pub fn tally(&self) -> Tally {
        self.tally.lock().clone()
    }

    /// The run under which its changes are kept, if there are any.
    pub fn run(&self) -> Option<String> {
        self.run.lock().as_ref().map(|run| run.id().to_owned())
    }

    /// It is over: file and index are in step. Says under which run its changes are kept.
    pub fn end(&self) -> Option<String> {
        let run = self.run.lock().take()?;
        let id = run.id().to_owned();
        let _ = run.end(); // without this line they are looked at once more
        Some(id)
    }

    /// Commands see what may be read, change nothing, and run in it or not at all.
    fn sandbox(&self) -> Sandbox {
        let mut confinement = Confinement::looking_at(self.commands_look.clone(), Vec::new(), None);
        confinement.hidden.push(self.ground.config.clone());
        Sandbox::new(confinement, self.ground.standing.clone()).closed().required()
    }

    fn may(&self, tool: &dyn Tool, input: &Value, scope: &Scope) -> Result<(), String> {
        let subject = tool.subject(input, scope);
        match tool.name() {
            tool_names::READ | tool_names::GREP | tool_names::GLOB => {
                if let Subject::Path { real, .. } = &subject
                    && self.is_apart(real)
                {
                    return Err(format!(
                        "{} belongs to a session that nothing is learnt from: the user was private in it, or it touched \
                         what they excluded. Leave it.",
                        real.display()
                    ));
                }
                self.may_look(tool.name(), Access::ReadOnly, &subject, scope, &self.looks)
            }
            tool_names::BASH => {
                if input["run_in_background"] == Value::Bool(true) {
                    return Err("No command runs in the background here.".to_owned());
                }
                if sandbox::confined(scope, &subject, input) != Confined::Wholly {
                    return Err(
                        "Commands do not run here: there is no sandbox that holds. Use Read, Grep and Glob.".into()
                    );
                }
                self.may_look(tool_names::BASH, Access::Changes, &subject, scope, &self.commands_look)
            }
            tool_names::WRITE | tool_names::EDIT => self.place(&subject).map(drop),
            other => Err(format!(
                "{other} does not run here. Read, Grep and Glob look; Write and Edit keep memories in {}.",
                self.directory.display()
            )),
        }
    }

    /// Whether a call that only looks may run, as if nobody could be asked.
    fn may_look(
        &self,
        tool: &str,
        access: Access,
        subject: &Subject,
        scope: &Scope,
        looks: &[PathBuf],
    ) -> Result<(), String> {
        let directory = scope.directory();
        let situation = Situation {
            mode: Mode::Default,
            rules: &self.ground.rules,
            directories: looks,
            directory: &directory,
            home: scope.home(),
            confined: Confined::No, // being confined is no reason to run what does more than look
            wall: Wall::Whole,      // commands run in a sandbox in which nothing can be written, or not at all
            leaves: Leaves::No,
        };
        let why = match decide(&situation, access, tool, subject) {
            Decision::Allow(_) => return Ok(()),
            Decision::Ask { why } | Decision::Deny { why } => why,
        };
        let looks: Vec<String> = looks.iter().map(|path| path.display().to_string()).collect();
        Err(format!("{tool} was not run: {why}. Here you may only look, and only in {}.", looks.join(", ")))
    }

    /// The memory a path means, relative to the memory directory.
    fn place(&self, subject: &Subject) -> Result<String, String> {
        let shown = self.directory.display();
        let outside = || format!("Only memories can be written here: files `*.md` in {shown}.");
        let Subject::Path { named, real } = subject else { return Err(outside()) };
        let below = real.strip_prefix(&self.directory).map_err(|_| outside())?;
        let as_named = named.strip_prefix(&self.directory).or_else(|_| named.strip_prefix(&self.ground.memory));
        if as_named != Ok(below) {
            return Err(format!(
                "{} leads elsewhere by a link, and links are not followed. {}",
                named.display(),
                outside()
            ));
        }
        let path = below.to_str().ok_or_else(outside)?;
        if path.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case(memory::index::FILE)) {
            return Err(format!(
                "{path} is kept by itself: the line of a memory is its name and its description. Change these in its file."
            ));
        }
        memory::store::checked(path).map_err(|error| format!("{error}. {}", outside()))?;
        Ok(path.to_owned())
    }

    /// Keeps a change before it is made.
    fn keep(&self, change: &Change) -> Result<(), memory::Error> {
        let mut run = self.run.lock();
        let writer = match &mut *run {
            Some(writer) => writer,
            none => {
                let (ground, at) = (&self.ground, self.ground.world.now());
                let fresh = ground.world.fresh_id().to_string();
                let tail: String = fresh.chars().filter(char::is_ascii_alphanumeric).collect();
                let tail = &tail[tail.len().saturating_sub(8)..];
                let id = format!("{}-{}-{tail}", at.strftime("%Y%m%d-%H%M%S"), ground.agent);
                let head = Head {
                    agent: ground.agent.to_owned(),
                    session: ground.session.clone(),
                    model: Some(ground.model.clone()),
                    at: at.to_string(),
                    directory: self.directory.clone(),
                };
                none.insert(ground.changes.begin(&id, head)?)
            }
        };
        writer.keep(change)
    }

    fn origin(&self) -> Origin {
        let ground = &self.ground;
        Origin {
            session: ground.session.clone(),
            message: ground.message.clone(),
            agent: Some(ground.agent.to_owned()),
            model: Some(ground.model.clone()),
            at: Some(ground.world.now()),
        }
    }

    /// Counts a refusal, whoever refuses.
    fn refused(&self, access: Access) {
        let mut tally = self.tally.lock();
        tally.denied += 1;
        tally.denied_writes += u32::from(access == Access::Changes);
    }
}

impl Judge for Restricted {
    fn judge(&self, tool: &dyn Tool, input: &Value, scope: &Scope) -> Result<(), String> {
        let judged = self.may(tool, input, scope);
        if judged.is_err() {
            self.refused(tool.access(input));
        }
        judged
    }
}

fn inside(path: &Path, directories: &[PathBuf]) -> bool {
    directories.iter().any(|directory| path.starts_with(directory))
}
