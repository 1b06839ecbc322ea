//! Settings of the sandbox, under Claude Code's `sandbox` key.

use std::path::PathBuf;

use crate::effective_values::{BasePaths, EffectiveValues, path};
use crate::keys;

/// Settings of the sandbox; none where nothing is set. Paths are absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxSettings {
    /// `enabled`.
    pub enabled: Option<bool>,
    /// `autoAllowBashIfSandboxed`.
    pub unasked: Option<bool>,
    /// `allowUnsandboxedCommands`.
    pub allow_without: Option<bool>,
    /// `failIfUnavailable`.
    pub must: Option<bool>,
    /// `excludedCommands`: they run outside the sandbox.
    pub excluded: Vec<String>,
    /// `filesystem.allowWrite`.
    pub allow_write: Vec<PathBuf>,
    /// `filesystem.denyWrite`, stronger than `allow_write`.
    pub deny_write: Vec<PathBuf>,
    /// `filesystem.allowRead`, stronger than `deny_read`.
    pub allow_read: Vec<PathBuf>,
    /// `filesystem.denyRead`, and the files of `credentials.files`.
    pub deny_read: Vec<PathBuf>,
    /// `network.allowedDomains`.
    pub allowed_domains: Vec<String>,
    /// `network.deniedDomains`.
    pub denied_domains: Vec<String>,
    /// `network.allowUnixSockets`.
    pub sockets: Vec<PathBuf>,
    /// `network.allowAllUnixSockets`.
    pub all_sockets: Option<bool>,
    /// `credentials.envVars`: removed from the environment.
    pub hidden_variables: Vec<String>,
}

impl SandboxSettings {
    pub(crate) fn of(sets: &EffectiveValues<'_>, base_paths: &BasePaths<'_>) -> Self {
        let mut deny_read = sets.paths(&keys::SANDBOX_NO_READ, base_paths);
        let files = sets.of(&keys::SANDBOX_NO_FILES);
        deny_read.extend(files.filter_map(|set| Some(path(set.value["path"].as_str()?, &set.origin, base_paths))));
        let variables = sets.of(&keys::SANDBOX_NO_VARIABLES);
        let hidden_variables = variables.filter_map(|set| set.value["name"].as_str().map(str::to_owned)).collect();
        Self {
            enabled: sets.one(&keys::SANDBOX),
            unasked: sets.one(&keys::SANDBOX_UNASKED),
            allow_without: sets.one(&keys::SANDBOX_WITHOUT),
            must: sets.one(&keys::SANDBOX_MUST),
            excluded: sets.texts(&keys::SANDBOX_EXCLUDED),
            allow_write: sets.paths(&keys::SANDBOX_WRITE, base_paths),
            deny_write: sets.paths(&keys::SANDBOX_NO_WRITE, base_paths),
            allow_read: sets.paths(&keys::SANDBOX_READ, base_paths),
            deny_read,
            allowed_domains: sets.texts(&keys::SANDBOX_DOMAINS),
            denied_domains: sets.texts(&keys::SANDBOX_NO_DOMAINS),
            sockets: sets.paths(&keys::SANDBOX_SOCKETS, base_paths),
            all_sockets: sets.one(&keys::SANDBOX_ALL_SOCKETS),
            hidden_variables,
        }
    }
}
