//! Policy of an agent that nobody watches: it may read, and keep memories.
//!
//! It may read and search in the working directories and the memory directory; run commands that only read there, in a
//! sandbox, if one can be enforced; and write memories ([`Saver`]), of which every change is kept beforehand, so that
//! it can be undone. Everything else is refused with a reason it can act on, and counted. Whatever it tries, nothing
//! outside the memory directory changes: that directory is an opened handle, and there is no other tool that writes.
//!
//! Calls that the user's rules deny or would ask about are refused, and so is what the user excluded from learning;
//! rules that allow widen nothing. Of the config home it sees nothing but the memories, wherever it works: no sessions,
//! no changes, no settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use settings::sandbox;
use tools::permission::{ConfinementLevel, Decision, Mode, RuleVerdict, Rules, Situation, Wall, decide};
use tools::sandbox::{Confinement, Sandbox, SandboxExit, SandboxStatus};
use tools::{Access, Scope, Subject, Tool};
use transcript::tool_names;

use crate::fork::{Judge, ToolPolicy};
use crate::saver::{Author, Saver, SavingLimits, SavingPlace};
use crate::saving;

/// Context of an unattended agent.
pub struct UnattendedContext {
    /// Place of its memories.
    pub place: SavingPlace,
    /// Access to the memories about the user, which hold in every project.
    pub user: UserShelfAccess,
    /// The agent as an author.
    pub author: Author,
    /// Limits of its writing.
    pub limits: SavingLimits,
    /// Files and directories that nothing is learnt from: rules for Read that deny.
    pub excluded: Rules,
    /// The config home, of which nothing is shown but the memories.
    pub config: PathBuf,
    /// The user's rules.
    pub rules: Rules,
    /// State of the sandbox.
    pub standing: SandboxStatus,
}

/// An agent's access to the user's memories that hold in every project.
#[derive(Debug, Clone)]
pub enum UserShelfAccess {
    /// It knows of none.
    None,
    /// It reads them, and saves nothing there.
    Reads(SavingPlace),
    /// It saves there what is about the user.
    Saves(SavingPlace),
}

/// The policy of an agent that nobody watches.
pub struct UnattendedPolicy {
    saver: Arc<Saver>,
    /// The memory directories it may see, links followed: the one it saves in, and that of the user.
    memories: Vec<PathBuf>,
    /// The config home, links followed.
    config: PathBuf,
    rules: Rules,
    standing: SandboxStatus,
    /// Directories it may read, links followed.
    looks: Vec<PathBuf>,
}

impl UnattendedPolicy {
    /// Opens the memory directory and creates it if it is missing. The working directories are those of the scope.
    pub fn new(context: UnattendedContext, scope: &Scope) -> Result<Arc<Self>, memory::Error> {
        let UnattendedContext { place, user, author, limits, excluded, config, mut rules, standing } = context;
        rules.allow.clear();
        rules.deny.extend(excluded.deny);
        let saver = Saver::new(place, author, limits, scope.project())?;
        let of_user = match &user {
            UserShelfAccess::None => None,
            UserShelfAccess::Reads(place) | UserShelfAccess::Saves(place) => Some(place.directory.clone()),
        };
        let saver = Arc::new(match user {
            UserShelfAccess::None => saver,
            UserShelfAccess::Reads(user) => saver.knowing_user(&user),
            UserShelfAccess::Saves(user) => saver.with_user(user)?,
        });
        let memories: Vec<PathBuf> = std::iter::once(saver.directory().to_owned()).chain(of_user).collect();
        let looks = scope.directories().into_iter().chain(memories.clone()).collect();
        let config = files::real(&config).unwrap_or(config);
        Ok(Arc::new(Self { saver, memories, config, rules, standing, looks }))
    }

    /// The policy for forks, over the tools that their requests name.
    pub fn policy(self: &Arc<Self>, tools: &[Arc<dyn Tool>], scope: &Scope) -> ToolPolicy {
        let tools = tools.iter().map(|tool| match tool.name() {
            tool_names::WRITE => Arc::new(saving::WriteMemory(self.saver.clone())) as Arc<dyn Tool>,
            tool_names::EDIT => Arc::new(saving::EditMemory(self.saver.clone())),
            _ => tool.clone(),
        });
        let (parent, policy) = (scope.clone(), self.clone());
        let may_show = move |named: &Path, real: &Path| policy.shows(named, real) && parent.may_show(named, real);
        let scope = scope.fork().with_readable(Arc::new(may_show));
        scope.set_sandbox(Some(Arc::new(self.sandbox())));
        ToolPolicy::Tools { tools: tools.collect(), scope, judge: self.clone() }
    }

    /// True if a file found by a search may be shown.
    fn shows(&self, named: &Path, real: &Path) -> bool {
        let subject = Subject::Path { named: named.to_owned(), real: real.to_owned() };
        let denied = matches!(self.rules.decide(tool_names::READ, &subject), RuleVerdict::Deny(_));
        inside(real, &self.looks) && !self.is_closed(real) && !denied
    }

    /// True if a file belongs to the config home and is no memory that may be seen here.
    fn is_closed(&self, real: &Path) -> bool {
        real.starts_with(&self.config) && !inside(real, &self.memories)
    }

    /// Its saver.
    pub fn saver(&self) -> &Arc<Saver> {
        &self.saver
    }

    /// Sandbox of its commands: they see what may be read and change nothing, or do not run.
    fn sandbox(&self) -> Sandbox {
        let mut confinement = Confinement::read_only(self.looks.clone(), Vec::new(), None);
        confinement.hidden.push(self.config.clone());
        Sandbox::new(confinement, self.standing.clone()).closed().required()
    }

    fn may(&self, tool: &dyn Tool, input: &Value, scope: &Scope) -> Result<(), String> {
        let subject = tool.subject(input, scope);
        match tool.name() {
            tool_names::READ | tool_names::GREP | tool_names::GLOB => {
                if let Subject::Path { real, .. } = &subject
                    && self.is_closed(real)
                {
                    return Err(format!(
                        "{} was not run: {} belongs to the settings and records of this program. Here you may only look, \
                         and only in {}.",
                        tool.name(),
                        real.display(),
                        self.looks_shown()
                    ));
                }
                self.may_look(tool.name(), Access::ReadOnly, &subject, scope)
            }
            tool_names::BASH => {
                if input["run_in_background"] == Value::Bool(true) {
                    return Err("No command runs in the background here.".to_owned());
                }
                if sandbox::confined(scope, &subject, input) != ConfinementLevel::Wholly {
                    return Err("Commands do not run here: no sandbox can be enforced. Use Read, Grep and Glob.".into());
                }
                self.may_look(tool_names::BASH, Access::Changes, &subject, scope)
            }
            tool_names::WRITE | tool_names::EDIT => self.saver.place(&subject).map(drop),
            other => Err(format!(
                "{other} does not run here. Read, Grep and Glob look; Write and Edit keep memories in {}.",
                self.saver.directory().display()
            )),
        }
    }

    /// Checks a call that only reads, as if nobody could be asked.
    fn may_look(&self, tool: &str, access: Access, subject: &Subject, scope: &Scope) -> Result<(), String> {
        let directory = scope.directory();
        let situation = Situation {
            mode: Mode::Default,
            rules: &self.rules,
            directories: &self.looks,
            directory: &directory,
            home: scope.home(),
            confined: ConfinementLevel::No, // being confined is no reason to run what does more than look
            wall: Wall::Whole,              // commands run in a sandbox in which nothing can be written, or not at all
            leaves: SandboxExit::No,
        };
        let why = match decide(&situation, access, tool, subject) {
            Decision::Allow(_) => return Ok(()),
            Decision::Ask { why } | Decision::Deny { why } => why,
        };
        Err(format!("{tool} was not run: {why}. Here you may only look, and only in {}.", self.looks_shown()))
    }
}

impl UnattendedPolicy {
    fn looks_shown(&self) -> String {
        self.looks.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    }
}

impl Judge for UnattendedPolicy {
    fn judge(&self, tool: &dyn Tool, input: &Value, scope: &Scope) -> Result<(), String> {
        self.may(tool, input, scope).map_err(|why| {
            self.saver.refused(tool.access(input) == Access::Changes);
            let new = match tool.name() {
                tool_names::WRITE => input["content"].as_str(),
                tool_names::EDIT => input["new_string"].as_str(),
                _ => None,
            };
            why + &new.map(|text| self.saver.refuse_change(None, text, scope)).unwrap_or_default()
        })
    }
}

fn inside(path: &Path, directories: &[PathBuf]) -> bool {
    directories.iter().any(|directory| path.starts_with(directory))
}
