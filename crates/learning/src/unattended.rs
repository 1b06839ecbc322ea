//! What an agent may do that nobody watches: look around, and keep memories.
//!
//! It may read and search in the working directories and the memory directory; run commands that only look there, in a
//! sandbox, where one holds; and write memories ([`Saver`]), of which every change is kept before it is made, so that it can
//! be taken back. All else is refused with a reason it can act on, and counted. Whatever it tries, nothing outside the memory
//! directory changes: that directory is an opened handle, and there is no other tool that writes.
//!
//! What a user's rules deny or would ask about is refused, and so is what the user excluded from learning; what the rules
//! allow widens nothing. Of the config home it sees nothing but the memories, wherever it works: no sessions, no changes,
//! no settings.

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

/// Where an agent works and who it is.
pub struct UnattendedContext {
    /// Where it saves.
    pub place: SavingPlace,
    /// Where it saves what is about the user wherever they work; none where all stays in one place.
    pub user: Option<SavingPlace>,
    /// Who it is.
    pub author: Author,
    /// How much it may write.
    pub limits: SavingLimits,
    /// Files and directories that nothing is learnt from: rules for Read that deny.
    pub excluded: Rules,
    /// The config home, of which nothing is shown but the memories.
    pub config: PathBuf,
    /// The user's rules.
    pub rules: Rules,
    /// How well commands can be confined.
    pub standing: SandboxStatus,
}

/// The policy of an agent that nobody watches.
pub struct UnattendedPolicy {
    saver: Arc<Saver>,
    /// The memory directories, links followed: the one it saves in, and that of the user.
    memories: Vec<PathBuf>,
    /// The config home, links followed.
    config: PathBuf,
    rules: Rules,
    standing: SandboxStatus,
    /// Where it may look, links followed.
    looks: Vec<PathBuf>,
}

impl UnattendedPolicy {
    /// Opens the memory directory, making it where it is missing. The working directories are those of the scope.
    pub fn new(ground: UnattendedContext, scope: &Scope) -> Result<Arc<Self>, memory::Error> {
        let UnattendedContext { place, user, author, limits, excluded, config, mut rules, standing } = ground;
        rules.allow.clear();
        rules.deny.extend(excluded.deny);
        let saver = Saver::new(place, author, limits, scope.project())?;
        let of_user = user.as_ref().map(|user| user.directory.clone());
        let saver = Arc::new(match user {
            Some(user) => saver.with_user(user)?,
            None => saver,
        });
        let memories: Vec<PathBuf> = std::iter::once(saver.directory().to_owned()).chain(of_user).collect();
        let looks = scope.directories().into_iter().chain(memories.clone()).collect();
        let config = files::real(&config).unwrap_or(config);
        Ok(Arc::new(Self { saver, memories, config, rules, standing, looks }))
    }

    /// The policy, over the tools its requests name and where the parent's run.
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

    /// Whether a file, found by a search, may be shown.
    fn shows(&self, named: &Path, real: &Path) -> bool {
        let subject = Subject::Path { named: named.to_owned(), real: real.to_owned() };
        let denied = matches!(self.rules.decide(tool_names::READ, &subject), RuleVerdict::Deny(_));
        inside(real, &self.looks) && !self.is_closed(real) && !denied
    }

    /// Whether a file belongs to the config home and is no memory that may be changed here.
    fn is_closed(&self, real: &Path) -> bool {
        real.starts_with(&self.config) && !inside(real, &self.memories)
    }

    /// The way it saves.
    pub fn saver(&self) -> &Arc<Saver> {
        &self.saver
    }

    /// Commands see what may be read, change nothing, and run in it or not at all.
    fn sandbox(&self) -> Sandbox {
        let mut confinement = Confinement::looking_at(self.looks.clone(), Vec::new(), None);
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
                    return Err(
                        "Commands do not run here: there is no sandbox that holds. Use Read, Grep and Glob.".into()
                    );
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

    /// Whether a call that only looks may run, as if nobody could be asked.
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
        let judged = self.may(tool, input, scope);
        if judged.is_err() {
            self.saver.refused(tool.access(input) == Access::Changes);
        }
        judged
    }
}

fn inside(path: &Path, directories: &[PathBuf]) -> bool {
    directories.iter().any(|directory| path.starts_with(directory))
}
