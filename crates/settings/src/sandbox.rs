//! The sandbox of a session: what the settings say of it, as far as this system can hold it.
//!
//! What the settings want and the sandbox cannot do (single hosts, single sockets) opens more than was said, so commands
//! in it are then asked about like any others. It never opens more without a question.

pub(crate) mod wishes;

use std::path::Path;

use serde_json::Value;
use tools::permission::{BadRule, ConfinementLevel};
use tools::sandbox::{Confinement, Network, Sandbox, SandboxExit, SandboxStatus, Sockets};
use tools::{Scope, Subject};

use crate::effective_values::BasePaths;
use crate::rules::rules;

pub use wishes::SandboxSettings;

/// Every host.
const ANY: &str = "*";

/// Makes the sandbox for the commands of a session. `config` is where sessions and keys of ours lie.
pub async fn sandbox(said: &SandboxSettings, scope: &Scope, config: &Path) -> Result<Sandbox, BadRule> {
    let standing = SandboxStatus::find_out(scope.guard()).await;
    let mut confinement = Confinement::working_in(scope.directories(), scope.home());
    confinement.hidden.push(config.to_owned());
    confinement.hidden.extend(said.deny_read.iter().cloned());
    confinement.readable.extend(said.allow_read.iter().chain(&said.sockets).cloned());
    confinement.writable.extend(said.allow_write.iter().cloned());
    confinement.read_only.extend(said.deny_write.iter().cloned());
    confinement.variables.clone_from(&said.hidden_variables);
    if !said.allowed_domains.is_empty() {
        confinement.network = Network::All;
    }
    if said.all_sockets == Some(true) || !said.sockets.is_empty() {
        confinement.sockets = Sockets::All;
    }
    let sandbox = Sandbox::new(confinement, standing).with_repositories();
    let mut sandbox = sandbox.with_outside(outside(said, scope)?);
    let any = said.allowed_domains.iter().any(|host| host == ANY) && said.denied_domains.is_empty();
    if !said.allowed_domains.is_empty() && !any {
        sandbox = sandbox.asked("settings name single hosts, and the whole network is open");
    }
    if !said.sockets.is_empty() && said.all_sockets != Some(true) {
        sandbox = sandbox.asked("settings name single sockets, and all that it sees are open");
    }
    if said.unasked == Some(false) {
        sandbox = sandbox.asked("autoAllowBashIfSandboxed is off");
    }
    if said.allow_without == Some(false) {
        sandbox = sandbox.closed();
    }
    Ok(if said.must == Some(true) { sandbox.required() } else { sandbox })
}

/// The commands that run outside of it, as rules: a name stands for whatever it is called with.
fn outside(said: &SandboxSettings, scope: &Scope) -> Result<Vec<tools::permission::Rule>, BadRule> {
    let covers = |text: &String| if text.ends_with('*') { format!("Bash({text})") } else { format!("Bash({text}:*)") };
    let texts: Vec<String> = said.excluded.iter().map(covers).collect();
    rules(&texts, &BasePaths { directory: scope.project(), home: scope.home() })
}

/// How far a call is confined, if it is a command.
pub fn confined(scope: &Scope, subject: &Subject, input: &Value) -> ConfinementLevel {
    match (scope.sandbox(), subject) {
        (Some(sandbox), Subject::Command(command)) => sandbox.confined(command, leaves(input)),
        _ => ConfinementLevel::No,
    }
}

/// Whether a command asks to run outside of the sandbox.
pub(crate) fn leaves(input: &Value) -> SandboxExit {
    if input["dangerouslyDisableSandbox"] == Value::Bool(true) { SandboxExit::Yes } else { SandboxExit::No }
}
