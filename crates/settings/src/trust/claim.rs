//! Claims: the things that a project's file asks for and that need trust.

use std::path::Path;

use serde_json::Value;

use super::TrustSite;
use super::server_claims::{ProjectServers, claim_words};
use crate::keys::{self, MaySet};
use crate::kind::ValuePart;
use crate::{File, LoadedSettings, PathStep, SetValue, SettingsSource, ValueOrigin, ValueStatus};

/// One thing that a file asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Its kind.
    pub kind: Kind,
    /// A description in one line.
    pub what: String,
    /// Its file and line.
    pub place: String,
    /// A hash of its content: other content makes another claim.
    pub fingerprint: String,
}

/// Kinds of claims, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Commands that run by themselves.
    Hook,
    /// Servers whose tools are used.
    Server,
    /// A command for the status line and the like.
    Helper,
    /// An agent, with what its definition adds.
    Agent,
    /// A skill or a command that does more than be read.
    Skill,
    /// A plugin that the user has installed.
    Plugin,
    /// Calls that run without asking.
    Rule,
    /// A permission mode.
    Mode,
    /// A change of the sandbox.
    Sandbox,
    /// More directories to work in.
    Directory,
    /// A file from outside the project that becomes instructions.
    Include,
    /// Variables for commands.
    Variable,
    /// Any other setting.
    Setting,
}

/// Each kind with its name and effect, in the order of the enum.
const KINDS: [(Kind, &str, &str); 13] = [
    (Kind::Hook, "hook", "run commands by themselves"),
    (Kind::Server, "server", "start or connect to servers"),
    (Kind::Helper, "helper", "run a command for the status line and the like"),
    (Kind::Agent, "agent", "define agents, which replace others of the same name"),
    (Kind::Skill, "skill", "let skills run commands, allow tools or choose a model"),
    (Kind::Plugin, "plugin", "use plugins that you have installed"),
    (Kind::Rule, "allow rule", "let these calls run without asking"),
    (Kind::Mode, "mode", "choose how much happens without asking"),
    (Kind::Sandbox, "sandbox setting", "change the sandbox"),
    (Kind::Directory, "directory", "work in more directories"),
    (Kind::Include, "include", "read files from outside the project as instructions"),
    (Kind::Variable, "variable", "set variables for commands"),
    (Kind::Setting, "setting", "change other settings"),
];

impl Kind {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|(kind, ..)| *kind)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The effect of it.
    pub fn words(self) -> &'static str {
        KINDS[self as usize].2
    }
}

impl Claim {
    /// A claim of the files in a site. `content` is what the fingerprint covers.
    pub fn new(kind: Kind, what: impl Into<String>, content: &str, place: impl Into<String>, site: &TrustSite) -> Self {
        let within = site.directory.strip_prefix(&site.top).unwrap_or(Path::new(""));
        let mut hasher = blake3::Hasher::new();
        for part in [kind.name(), &within.to_string_lossy(), content] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        let fingerprint = hasher.finalize().to_hex()[..32].to_owned();
        Self { kind, what: what.into(), place: place.into(), fingerprint }
    }

    /// The claim of a value in a project's file.
    pub fn of_set(set: &SetValue, site: &TrustSite) -> Self {
        let text = set.value.as_str().map_or_else(|| set.value.to_string(), str::to_owned);
        let is = |key: &keys::SettingKey| set.key.name == key.name;
        let (kind, what, content) = if is(&keys::ALLOW) {
            (Kind::Rule, text.clone(), text)
        } else if is(&keys::DIRECTORIES) {
            let leads = leads_to(&text, site);
            (Kind::Directory, leads.clone(), leads)
        } else if is(&keys::MODE) {
            (Kind::Mode, text.clone(), text)
        } else if is(&keys::ENV) {
            let name = match &set.part {
                ValuePart::Entry(name) => name.as_str(),
                _ => "",
            };
            let content = format!("{name}={text}");
            (Kind::Variable, content.clone(), content)
        } else if let Some(event) = set.key.name.strip_prefix("hooks.") {
            let hook = &set.value["hook"];
            let matcher = set.value["matcher"].as_str().map(|matcher| format!(" ({matcher})")).unwrap_or_default();
            let what = ["command", "url", "prompt"].iter().find_map(|key| hook[*key].as_str());
            let call = hook["tool"].as_str().zip(hook["server"].as_str());
            let call = call.map(|(tool, server)| format!("{tool} of the server {server}"));
            let what = what.map(str::to_owned).or(call).unwrap_or_else(|| hook.to_string());
            let what = format!("{event}{matcher}: {what}");
            (Kind::Hook, what.clone(), format!("{what}\n{hook}"))
        } else if is(&keys::AGENTS) {
            let content = format!("{}: {}", set.name(), set.value);
            (Kind::Agent, content.clone(), content)
        } else if is(&keys::ENABLED_PLUGINS) {
            let ValuePart::Entry(id) = &set.part else { return Self::new(Kind::Plugin, text.clone(), &text, "", site) };
            let what = if set.value == true { id.clone() } else { format!("not {id}") };
            (Kind::Plugin, what.clone(), what)
        } else if is(&keys::SERVERS) {
            let name = match &set.part {
                ValuePart::Entry(name) => name.as_str(),
                _ => "",
            };
            (Kind::Server, claim_words(name, &set.value), format!("{name}\n{}", set.value))
        } else if is(&keys::STATUS_LINE) {
            let what = format!("{}: {}", set.key.name, set.value["command"].as_str().unwrap_or_default());
            (Kind::Helper, what.clone(), format!("{what}\n{}", set.value))
        } else if set.key.name.starts_with("sandbox.") {
            let text = if is_path(set.key) { leads_to(&text, site) } else { text };
            let content = format!("{}: {text}", set.key.name);
            (Kind::Sandbox, content.clone(), content)
        } else {
            let content = format!("{}: {}", set.name(), set.value);
            (Kind::Setting, content.clone(), content)
        };
        Self::new(kind, what, &content, place(&set.origin, site), site)
    }
}

fn is_path(key: &keys::SettingKey) -> bool {
    [keys::SANDBOX_WRITE, keys::SANDBOX_READ, keys::SANDBOX_SOCKETS].iter().any(|path| path.name == key.name)
}

/// The target of a path with symlinks resolved: the claim is about the place, not the name of a link.
fn leads_to(path: &str, site: &TrustSite) -> String {
    let path = match (path.strip_prefix("~/"), &site.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => site.directory.join(path),
    };
    let real = files::real(&path).unwrap_or(path);
    match real.strip_prefix(&site.top) {
        Ok(inside) => Path::new(".").join(inside).display().to_string(),
        Err(_) => real.display().to_string(),
    }
}

fn place(origin: &ValueOrigin, site: &TrustSite) -> String {
    let file = origin.file.as_deref().unwrap_or(Path::new(""));
    format!("{}:{}", file.strip_prefix(&site.directory).unwrap_or(file).display(), origin.line)
}

/// All claims of the files of a site, in the order in which they are shown.
pub fn claims(loaded: &LoadedSettings, site: &TrustSite) -> Vec<Claim> {
    let asks = |set: &&SetValue| {
        let needs_trust = set.origin.source.is_below_project() && set.key.reach != MaySet::Anyone;
        needs_trust && set.standing == ValueStatus::Counts
    };
    let mut claims: Vec<Claim> = loaded.sets.iter().filter(asks).map(|set| Claim::of_set(set, site)).collect();
    for file in loaded.files.iter().filter(|file| file.source.is_below_project()) {
        claims.extend(programs(file, site));
    }
    claims.extend(ProjectServers::read(site).iter().flat_map(|file| file.claims(site)));
    claims.sort_by_key(|claim| claim.kind);
    claims.dedup_by(|one, other| one.fingerprint == other.fingerprint);
    claims
}

/// Claims for programs that a settings file would run automatically.
fn programs(file: &File, site: &TrustSite) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut claim = |kind: Kind, steps: &[&str], what: String, value: &Value| {
        let steps: Vec<PathStep> = steps.iter().map(|name| PathStep::Name((*name).to_owned())).collect();
        let (line, column) = file.json.place(&steps);
        let origin = ValueOrigin { source: SettingsSource::Project, file: file.path.clone(), line, column };
        claims.push(Claim::new(kind, what.clone(), &format!("{what}\n{value}"), place(&origin, site), site));
    };
    let settings = file.json.value();
    for name in ["subagentStatusLine", "fileSuggestion"] {
        if let Some(command) = settings[name]["command"].as_str() {
            claim(Kind::Helper, &[name], format!("{name}: {command}"), &settings[name]);
        }
    }
    claims
}
