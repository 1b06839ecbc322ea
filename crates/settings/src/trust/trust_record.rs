//! The user's answers on disk, and those that Claude Code has kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use files::Root;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Claim, TrustFault};

/// Our folder below the config home.
const FOLDER: &str = "cairn";
/// The file of the record.
const FILE: &str = "trust.json";
/// The lock against concurrent writes.
const LOCK: &str = "trust.lock";
/// File mode: only the user reads what they trust.
const PRIVATE: u32 = 0o600;
/// The largest record that is read.
const LIMIT: u64 = 16 * 1024 * 1024;
/// The largest file of Claude Code that is read: it has much else in it.
const CLAUDE_LIMIT: u64 = 64 * 1024 * 1024;

/// The record of the user's trust.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    /// By canonical root: trusted claims, fingerprint and description.
    #[serde(default)]
    directories: BTreeMap<PathBuf, BTreeMap<String, String>>,
    /// In the same form: declined claims, which are not asked about again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    declined: BTreeMap<PathBuf, BTreeMap<String, String>>,
    /// Roots for which a yes in Claude Code was taken over, which happens once.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    taken_over: BTreeSet<PathBuf>,
}

/// A directory that the user was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRecord {
    /// Its canonical root.
    pub root: PathBuf,
    /// Trusted claims.
    pub claims: Vec<String>,
    /// Declined claims.
    pub declined: Vec<String>,
}

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrustDecision {
    Yes,
    No,
}

impl Record {
    /// Fingerprints of the claims with this answer, for a root.
    pub(super) fn known(&self, root: &Path, said: TrustDecision) -> BTreeSet<String> {
        let answers = match said {
            TrustDecision::Yes => &self.directories,
            TrustDecision::No => &self.declined,
        };
        answers.get(root).into_iter().flatten().map(|(fingerprint, _)| fingerprint.clone()).collect()
    }

    /// True if a yes in Claude Code was taken over for a root.
    pub(super) fn is_taken_over(&self, root: &Path) -> bool {
        self.taken_over.contains(root)
    }

    fn add(&mut self, root: &Path, claims: &[Claim], said: TrustDecision) {
        let Self { directories, declined, .. } = self;
        let (now, before) = match said {
            TrustDecision::Yes => (directories, declined),
            TrustDecision::No => (declined, directories),
        };
        for claim in claims {
            let what = format!("{}: {}", claim.kind.name(), claim.what);
            now.entry(root.to_owned()).or_default().insert(claim.fingerprint.clone(), what);
            if let Some(before) = before.get_mut(root) {
                before.remove(&claim.fingerprint);
            }
        }
        before.retain(|_, claims| !claims.is_empty());
    }
}

/// The path of the record.
pub fn file(config_home: &Path) -> PathBuf {
    config_home.join(FOLDER).join(FILE)
}

/// The record; an empty one if there is none. An invalid one is an error, and nothing is trusted.
pub(super) fn read(config_home: &Path) -> Result<Record, String> {
    let path = file(config_home);
    let left = |why: String| format!("{}: {why}; nothing is trusted until it is fixed or removed", path.display());
    match files::read(&path, LIMIT) {
        Ok(file) => serde_json::from_slice(&file.bytes).map_err(|error| left(error.to_string())),
        Err(files::Error::NotFound { .. }) => Ok(Record::default()),
        Err(error) => Err(left(error.to_string())),
    }
}

/// Adds trusted or declined claims of a root. The last answer counts.
pub(super) fn add(config_home: &Path, root: &Path, claims: &[Claim], said: TrustDecision) -> Result<(), TrustFault> {
    change(config_home, |record| record.add(root, claims, said))
}

/// Trusts these claims of a root, once: if another process has taken a yes over meanwhile, that one counts. Returns the
/// fingerprints of all trusted claims.
pub(super) fn take_over(config_home: &Path, root: &Path, claims: &[Claim]) -> Result<BTreeSet<String>, TrustFault> {
    change(config_home, |record| {
        if record.taken_over.insert(root.to_owned()) {
            record.add(root, claims, TrustDecision::Yes);
        }
        record.known(root, TrustDecision::Yes)
    })
}

fn change<T>(config_home: &Path, change: impl FnOnce(&mut Record) -> T) -> Result<T, TrustFault> {
    let root = Root::create(config_home.join(FOLDER))?;
    let _lock = root.lock(LOCK)?;
    let mut record = read(config_home).map_err(TrustFault::Broken)?;
    let changed = change(&mut record);
    let text = serde_json::to_string_pretty(&record).unwrap_or_default();
    root.replace(FILE, format!("{text}\n").as_bytes(), PRIVATE)?;
    Ok(changed)
}

/// The user's answers, by directory.
pub fn list(config_home: &Path) -> Result<Vec<TrustRecord>, TrustFault> {
    let Record { mut directories, mut declined, .. } = read(config_home).map_err(TrustFault::Broken)?;
    let roots: BTreeSet<PathBuf> = directories.keys().chain(declined.keys()).cloned().collect();
    let words = |claims: Option<BTreeMap<String, String>>| claims.unwrap_or_default().into_values().collect();
    let entry = |root: PathBuf| TrustRecord {
        claims: words(directories.remove(&root)),
        declined: words(declined.remove(&root)),
        root,
    };
    Ok(roots.into_iter().map(entry).collect())
}

/// Forgets the answers for a root; returns true if there were any. A yes in Claude Code is not taken over again.
pub fn revoke(config_home: &Path, root: &Path) -> Result<bool, TrustFault> {
    change(config_home, |record| record.directories.remove(root).is_some() | record.declined.remove(root).is_some())
}

/// True if Claude Code was told to trust one of these directories.
pub(super) fn trusted_by_claude_code(file: &Path, directories: &[&Path]) -> bool {
    #[derive(Deserialize)]
    struct ClaudeProjects {
        #[serde(default)]
        projects: BTreeMap<String, Value>,
    }
    let Ok(file) = files::read(file, CLAUDE_LIMIT) else { return false };
    let Ok(known) = serde_json::from_slice::<ClaudeProjects>(&file.bytes) else { return false };
    let accepted = |directory: &&Path| {
        let project = directory.to_str().and_then(|directory| known.projects.get(directory));
        project.is_some_and(|project| project["hasTrustDialogAccepted"] == true)
    };
    directories.iter().any(accepted)
}
