//! Asks for permission: rules decide what they can, a person or program the rest.

mod update;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tools::permission::{Decision, Mode, Places, Rights, Rule, RuleVerdict, Rules, Situation, always, decide};
use tools::sandbox::SandboxExit;
use tools::{Access, Scope, Subject, Tool};
use transcript::tool_names;

use crate::agent_definitions::ToolRestriction;
use crate::sandbox;
use crate::values::BypassPermission;

pub use update::{PermissionUpdate, RuleBehavior, RuleText};

/// The mode and the rules in force.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// The current mode.
    pub mode: SharedMode,
    /// Rules of settings and flags.
    pub rules: Rules,
    /// Rules that hold for this turn only, of the skills that were called in it.
    pub of_turn: Rules,
    /// Availability of the mode `bypassPermissions`.
    pub bypass: BypassPermission,
    /// Restriction of the tools, for a subagent.
    pub narrowed: ToolRestriction,
}

/// The mode of a session. Clones share it: it can change during a turn and applies from the next decision on.
#[derive(Clone, Default)]
pub struct SharedMode {
    own: Arc<Mutex<(Mode, ChosenBy)>>,
    /// Upper limit, if there is one.
    above: Option<Arc<dyn Fn() -> Mode + Send + Sync>>,
}

impl fmt::Debug for SharedMode {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:?}", self.get())
    }
}

/// The origin of a choice: what was chosen by hand is not changed by a changed file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChosenBy {
    /// The settings, or the default.
    #[default]
    Settings,
    /// The user: a flag, a key, a command.
    Hand,
}

impl SharedMode {
    /// The mode.
    pub fn get(&self) -> Mode {
        let own = self.own.lock().0;
        self.above.as_ref().map_or(own, |above| stricter(own, above()))
    }

    /// A separate mode that never allows more than this one.
    #[must_use]
    pub fn below(&self, mode: Mode) -> Self {
        let above = self.clone();
        Self::held_to(move || above.get(), mode)
    }

    /// A mode that never allows more than that of another process.
    pub fn held_to(above: impl Fn() -> Mode + Send + Sync + 'static, mode: Mode) -> Self {
        Self { own: Arc::new(Mutex::new((mode, ChosenBy::Hand))), above: Some(Arc::new(above)) }
    }

    /// Sets it by hand, for everyone who shares it.
    pub fn set(&self, mode: Mode) {
        *self.own.lock() = (mode, ChosenBy::Hand);
    }

    /// Makes it stricter, if `mode` is stricter.
    pub fn narrow(&self, mode: Mode) {
        let mut now = self.own.lock();
        *now = (stricter(now.0, mode), ChosenBy::Hand);
    }

    /// Sets it from the settings, unless it was chosen by hand.
    pub fn follow(&self, mode: Mode) {
        let mut now = self.own.lock();
        if now.1 == ChosenBy::Settings {
            now.0 = mode;
        }
    }
}

impl From<Mode> for SharedMode {
    fn from(mode: Mode) -> Self {
        Self { own: Arc::new(Mutex::new((mode, ChosenBy::Settings))), above: None }
    }
}

/// The stricter of two modes.
pub(crate) fn stricter(one: Mode, other: Mode) -> Mode {
    let rank = |mode: Mode| match mode {
        Mode::Plan => 0,
        Mode::Default => 1,
        Mode::AcceptEdits => 2,
        Mode::BypassPermissions => 3,
    };
    if rank(one) <= rank(other) { one } else { other }
}

/// A question to whoever gives permission.
#[derive(Debug, Clone)]
pub enum Question {
    /// A call that is neither allowed nor denied.
    Call(Box<CallQuestion>),
    /// The first message from another session. The answer is kept.
    Sender(SenderQuestion),
    /// An include from outside the project by an instruction file. The answer is kept.
    Include(IncludeQuestion),
    /// What a server asks in the middle of a call. The answer is for it, and permits nothing.
    Server(Box<mcp::ElicitationRequest>),
}

impl Question {
    /// The reason for asking.
    pub fn why(&self) -> &str {
        match self {
            Self::Call(call) => &call.why,
            Self::Sender(_) => "it could write from now on; your answer is remembered",
            Self::Include(_) => {
                "it would become instructions for the model, and is outside the project; your answer is remembered"
            }
            Self::Server(_) => "what you answer goes to this server",
        }
    }

    /// The tool, the sender, or the place that includes the file.
    pub fn asker(&self) -> &str {
        match self {
            Self::Call(call) => &call.tool,
            Self::Sender(sender) => &sender.from,
            Self::Include(include) => &include.place,
            Self::Server(request) => request.server(),
        }
    }
}

/// The first message from another session.
#[derive(Debug, Clone)]
pub struct SenderQuestion {
    /// Its address.
    pub from: String,
    /// Its text.
    pub message: String,
    /// The teammate it is for, if that is not this session.
    pub teammate: Option<String>,
}

/// An include from outside the project.
#[derive(Debug, Clone)]
pub struct IncludeQuestion {
    /// The instruction file that names it.
    pub place: String,
    /// The file, with symlinks resolved.
    pub file: PathBuf,
    /// The teammate that would include it, if that is not this session.
    pub teammate: Option<String>,
}

/// A call that is neither allowed nor denied.
#[derive(Debug, Clone)]
pub struct CallQuestion {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Value,
    /// The path, command or other subject of the call.
    pub subject: Subject,
    /// The directory in which it would run.
    pub directory: PathBuf,
    /// The reason for asking.
    pub why: String,
    /// The id of the subagent that asks, if one does.
    pub agent: Option<String>,
    /// The mode in which it would not be asked, if that is `acceptEdits`.
    pub allowed_in_mode: Option<Mode>,
    /// Rules under which it would not be asked again, as written; empty if there is no "always".
    pub always: Vec<(String, Rule)>,
}

impl CallQuestion {
    /// Suggested permanent answers, in Claude Code's format.
    pub fn suggestions(&self) -> Vec<PermissionUpdate> {
        let mode = self.allowed_in_mode.map(|mode| PermissionUpdate::SetMode { mode, destination: update::SESSION });
        let rules: Vec<RuleText> = self.always.iter().map(|(text, _)| RuleText::of(text)).collect();
        let (behavior, destination) = (RuleBehavior::Allow, update::LOCAL_SETTINGS);
        let rules = (!rules.is_empty()).then_some(PermissionUpdate::AddRules { rules, behavior, destination });
        mode.into_iter().chain(rules).collect()
    }
}

/// The answer to a question.
#[derive(Debug, Clone)]
pub enum PermissionAnswer {
    /// It may run.
    Allow,
    /// It may run, and so may whatever these rules cover from now on.
    Always(Vec<Rule>),
    /// It may run with this input, if no rule denies that; `None` is the input as it was.
    With {
        /// The new input.
        input: Option<Value>,
        /// Changes of rules and modes, in Claude Code's format.
        permissions: Vec<Value>,
    },
    /// It may not, and the model is told the reason.
    Deny {
        /// The reason, for the model.
        why: String,
    },
    /// Nobody has answered, so it may not.
    Unanswered {
        /// The reason, for the model.
        why: String,
    },
}

/// A person or program that can be asked.
pub trait Approver: Send + Sync {
    /// Decides.
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer>;

    /// The kind of respondent.
    fn respondent(&self) -> Respondent {
        Respondent::Person
    }
}

/// The kind of respondent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Respondent {
    /// Nobody is there.
    Nobody,
    /// A program, which may ask a person.
    Program,
    /// A person, who may take a while.
    Person,
}

/// Denies whatever needs asking, because nobody is there.
#[derive(Debug, Clone, Copy)]
pub struct NoApprover;

impl Approver for NoApprover {
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer> {
        let why = format!(
            "{} needs permission ({}), and nobody is there to give it. Do what you can without it.",
            question.asker(),
            question.why()
        );
        Box::pin(std::future::ready(PermissionAnswer::Unanswered { why }))
    }

    fn respondent(&self) -> Respondent {
        Respondent::Nobody
    }
}

/// The decision of rules and mode on a call.
#[derive(Debug, Clone)]
pub enum RuleDecision {
    /// It may run, with these rights.
    Allow(Rights),
    /// It may not.
    Deny {
        /// The reason, for the model.
        why: String,
    },
    /// Somebody has to be asked.
    Ask(Box<CallQuestion>),
}

/// Grant of a hook for a call, beyond the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallGrant {
    /// Nothing.
    None,
    /// As if a rule allowed it: deny and ask rules still apply.
    AsByRule,
    /// Nothing, and somebody has to be asked even if the rules allow it.
    AskAnyway,
}

impl Policy {
    /// Decides on a call, and asks if the rules do not decide.
    pub async fn judge(
        &self,
        tool: &dyn Tool,
        input: &Value,
        scope: &Scope,
        approver: &dyn Approver,
    ) -> PermissionAnswer {
        match self.weigh(tool, input, scope, CallGrant::None) {
            RuleDecision::Allow(_) => PermissionAnswer::Allow,
            RuleDecision::Deny { why } => PermissionAnswer::Deny { why },
            RuleDecision::Ask(question) => match approver.ask(Question::Call(question)).await {
                PermissionAnswer::Unanswered { why } => PermissionAnswer::Deny { why },
                answer => answer,
            },
        }
    }

    /// The decision of rules and mode on a call.
    pub fn weigh(&self, tool: &dyn Tool, input: &Value, scope: &Scope, leave: CallGrant) -> RuleDecision {
        let subject = tool.subject(input, scope);
        let access: Access = tool.access(input);
        let (directory, directories) = (scope.directory(), scope.directories());
        let mode = match (self.mode.get(), self.bypass) {
            (Mode::BypassPermissions, BypassPermission::Disabled) => Mode::Default,
            (mode, _) => mode,
        };
        let confined = sandbox::confined(scope, &subject, input);
        let with_turn = self.with_turn();
        let rules = with_turn.as_ref().unwrap_or(&self.rules);
        let with_leave = (leave == CallGrant::AsByRule).then(|| allowing(rules, tool.name(), &directory)).flatten();
        let situation = Situation {
            mode,
            rules: with_leave.as_ref().unwrap_or(rules),
            directories: &directories,
            directory: &directory,
            home: scope.home(),
            confined,
            wall: scope.wall(),
            leaves: sandbox::leaves(input),
        };
        let left = match self.narrowed.left(&situation, access, tool.name(), &subject) {
            Ok(left) => left,
            Err(why) => return RuleDecision::Deny { why },
        };
        let why = match decide(&situation, access, tool.name(), &subject) {
            Decision::Deny { why } => return RuleDecision::Deny { why },
            Decision::Allow(Rights::Full) if leave != CallGrant::AskAnyway => return RuleDecision::Allow(left),
            Decision::Allow(rights) if leave != CallGrant::AskAnyway => return RuleDecision::Allow(rights),
            Decision::Allow(_) => "a hook says to ask".to_owned(),
            Decision::Ask { why } => why,
        };
        let accepting = Situation { mode: Mode::AcceptEdits, ..situation };
        let spared = decide(&accepting, access, tool.name(), &subject).allows();
        let spared = spared || tool.name() == tool_names::EXIT_PLAN_MODE; // who approves a plan may let it be carried out at once
        let allowed_in_mode = (spared && leave != CallGrant::AskAnyway).then_some(Mode::AcceptEdits);
        let always = always(&situation, access, tool.name(), &subject);
        let leaves = scope.sandbox().is_some() && sandbox::leaves(input) == SandboxExit::Yes;
        let why = if leaves { format!("{why}; it would run outside of the sandbox") } else { why };
        let (id, tool, input) = (String::new(), tool.name().to_owned(), input.clone());
        let agent = None; // who is asked for it says for whom
        RuleDecision::Ask(Box::new(CallQuestion {
            id,
            tool,
            input,
            subject,
            directory,
            why,
            agent,
            allowed_in_mode,
            always,
        }))
    }

    /// The rules with those of this turn, if there are any.
    fn with_turn(&self) -> Option<Rules> {
        let Rules { allow, ask, deny } = &self.of_turn;
        (!allow.is_empty() || !ask.is_empty() || !deny.is_empty()).then(|| {
            let mut rules = self.rules.clone();
            rules.allow.extend(allow.iter().cloned());
            rules.ask.extend(ask.iter().cloned());
            rules.deny.extend(deny.iter().cloned());
            rules
        })
    }
}

/// The rules plus one that allows every call of a tool. Deny rules still override it.
fn allowing(rules: &Rules, tool: &str, directory: &Path) -> Option<Rules> {
    let places = Places { directory: directory.into(), settings: directory.into(), home: None, file: None };
    let mut rules = rules.clone();
    rules.allow.push(Rule::parse(tool, &places).ok()?);
    Some(rules)
}

/// Tells whether a file, given as named and with symlinks resolved, may be shown.
type Readable = dyn Fn(&Path, &Path) -> bool + Send + Sync;

/// A check that hides files which a rule denies reading.
pub fn readable(rules: &Rules) -> Arc<Readable> {
    let rules = rules.clone();
    Arc::new(move |named, real| may_read(&rules, named, real))
}

fn may_read(rules: &Rules, named: &Path, real: &Path) -> bool {
    let subject = Subject::Path { named: named.to_owned(), real: real.to_owned() };
    !matches!(rules.decide(tool_names::READ, &subject), RuleVerdict::Deny(_))
}
