//! The sandbox of a session: its settings, as far as this system can enforce them.
//!
//! If the settings name single hosts or sockets, the sandbox has to open more than that, so commands in it are then
//! asked about like any others. It never opens more without asking.

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

/// Builds the sandbox for a session's commands. `config` is the directory of our sessions and keys.
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
        sandbox = sandbox.ask_because("settings name single hosts, but the whole network is open");
    }
    if !said.sockets.is_empty() && said.all_sockets != Some(true) {
        sandbox = sandbox.ask_because("settings name single sockets, but all visible ones are open");
    }
    if said.unasked == Some(false) {
        sandbox = sandbox.ask_because("autoAllowBashIfSandboxed is off");
    }
    if said.allow_without == Some(false) {
        sandbox = sandbox.closed();
    }
    Ok(if said.must == Some(true) { sandbox.required() } else { sandbox })
}

/// Rules for the commands that run outside the sandbox: a name stands for the command with any arguments.
fn outside(said: &SandboxSettings, scope: &Scope) -> Result<Vec<tools::permission::Rule>, BadRule> {
    let covers = |text: &String| if text.ends_with('*') { format!("Bash({text})") } else { format!("Bash({text}:*)") };
    let texts: Vec<String> = said.excluded.iter().map(covers).collect();
    rules(&texts, &BasePaths { directory: scope.project(), home: scope.home() })
}

/// The confinement of a call, if it is a command.
pub fn confined(scope: &Scope, subject: &Subject, input: &Value) -> ConfinementLevel {
    match (scope.sandbox(), subject) {
        (Some(sandbox), Subject::Command(command)) => sandbox.confined(command, leaves(input)),
        _ => ConfinementLevel::No,
    }
}

/// Tells whether a command asks to run outside the sandbox.
pub(crate) fn leaves(input: &Value) -> SandboxExit {
    if input["dangerouslyDisableSandbox"] == Value::Bool(true) { SandboxExit::Yes } else { SandboxExit::No }
}
