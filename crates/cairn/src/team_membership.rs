//! The directories that share their team memory, each with its server and token.
//!
//! The list is kept with the user, never in a project: cloning a repository joins nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use team::Repository;
use team::client::Client;
use team::mirror::Mirror;
use team::sync::Deletions;

use crate::program_paths::ProgramPaths;
use crate::{env, trusted_settings};

/// The largest file of memberships that is read.
const LIMIT: u64 = 1_000_000;
/// The largest configuration of git that is read.
const GIT_LIMIT: u64 = 1_000_000;

/// A directory that shares.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Membership {
    /// The server's address.
    pub(crate) server: String,
    /// The repository there.
    pub(crate) repository: Repository,
    /// The token.
    token: String,
}

impl Membership {
    pub(crate) fn new(server: String, repository: Repository, token: String) -> Self {
        Self { server, repository, token }
    }

    /// The token; one in the environment is stronger.
    pub(crate) fn token(&self) -> String {
        env::TEAM_TOKEN.get().unwrap_or_else(|| self.token.clone())
    }

    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.server, &self.token(), self.repository.clone())?)
    }

    /// The mirror of the repository in a folder.
    pub(crate) fn mirror(&self, place: &ProgramPaths, folder: &Path) -> anyhow::Result<Mirror> {
        let state = self.state(place, folder);
        Ok(Mirror::open(folder, &state, self.client()?, deletions(place))?)
    }

    /// The file of the state that a folder and the server agreed on. Each checkout has one: what is missing in one was
    /// not deleted in the other. A server that moved is the same team.
    pub(crate) fn state(&self, place: &ProgramPaths, folder: &Path) -> PathBuf {
        let name = format!("{}\n{}", self.repository, folder.display());
        let name = blake3::hash(name.as_bytes()).to_hex();
        place.home.path().join("cairn/team").join(format!("{}.json", &name[..16]))
    }
}

/// The effect of deleting a file here: for everyone or not. No project file has a say in it.
fn deletions(place: &ProgramPaths) -> Deletions {
    match trusted_settings::settings(place, None).ok().and_then(|settings| settings.team_deletions) {
        Some(false) => Deletions::ComeBack,
        _ => Deletions::Travel,
    }
}

/// The repository that all checkouts of this project are of.
fn root(place: &ProgramPaths) -> PathBuf {
    memory::place::canonical_root(&place.directory)
}

fn file(place: &ProgramPaths) -> PathBuf {
    place.home.path().join("cairn/team.json")
}

fn all(place: &ProgramPaths) -> anyhow::Result<BTreeMap<PathBuf, Membership>> {
    let path = file(place);
    match files::read(&path, LIMIT) {
        Ok(file) => serde_json::from_slice(&file.bytes).with_context(|| format!("{} is broken", path.display())),
        Err(files::Error::NotFound { .. }) => Ok(BTreeMap::new()),
        Err(error) => Err(error.into()),
    }
}

/// This project's membership.
pub(crate) fn here(place: &ProgramPaths) -> anyhow::Result<Option<Membership>> {
    Ok(all(place)?.remove(&root(place)))
}

/// This project's membership, or what to do.
pub(crate) fn required(place: &ProgramPaths) -> anyhow::Result<Membership> {
    here(place)?.context("this repository is not shared\n\nhint: cairn team join SERVER --invitation CODE")
}

/// Changes this project's membership. Returns what it was.
pub(crate) fn change(place: &ProgramPaths, membership: Option<Membership>) -> anyhow::Result<Option<Membership>> {
    let path = file(place);
    let folder = files::Root::create(path.parent().unwrap_or(Path::new("/")))?;
    let _held = folder.lock("team.lock")?;
    let mut all = all(place)?;
    let before = match membership {
        Some(membership) => all.insert(root(place), membership),
        None => all.remove(&root(place)),
    };
    folder.replace("team.json", serde_json::to_string_pretty(&all)?.as_bytes(), 0o600)?;
    Ok(before)
}

/// The repository by its git remote, read without running git.
pub(crate) fn remote(place: &ProgramPaths) -> anyhow::Result<Repository> {
    let path = root(place).join(".git/config");
    let text = files::read(&path, GIT_LIMIT).context("this is not a git repository; name it with --repo OWNER/NAME")?;
    let text = String::from_utf8_lossy(&text.bytes).into_owned();
    let (mut inside, mut found) = ("", Vec::new());
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line;
        } else if let Some((key, value)) = line.split_once('=')
            && inside.starts_with("[remote ")
            && key.trim().eq_ignore_ascii_case("url")
        {
            found.push((inside, value.trim().trim_matches('"')));
        }
    }
    let origin = found.iter().find(|(name, _)| name.contains("\"origin\"")).or(found.first());
    let (_, address) = origin.context("this repository has no remote; name it with --repo OWNER/NAME")?;
    Ok(Repository::of_remote(address)?)
}
