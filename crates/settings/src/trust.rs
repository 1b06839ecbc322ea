//! Trust in a directory: the claims of its files, and the user's answers.
//!
//! Each thing a file asks for is a [`Claim`] with a fingerprint of its content. The user's yes is a set of
//! fingerprints, kept in the config home and not in the directory, by canonical git root, so that all worktrees share
//! it. What a later pull brings has another fingerprint, and is asked about alone. The home directory, its parents and
//! `/` are never trusted. A yes in Claude Code is taken over once, by fingerprint, for what exists at the first look
//! (`takeover`). A no is kept in the same way, so that nobody is asked twice.
//!
//! Nothing here asks anybody: whoever shows claims to a person calls [`Trust::remember`] or [`Trust::decline`] with
//! what was shown.

mod claim;
mod server_claims;
mod takeover;
mod trust_record;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::SetValue;
use trust_record::TrustDecision;

pub use claim::{Claim, Kind, claims};
pub use server_claims::PROJECT_SERVERS;
pub(crate) use server_claims::{ProjectServers, claim_words, texts};
pub use trust_record::{TrustRecord, file, list, revoke};

/// The paths needed to look up trust in a directory.
#[derive(Debug, Clone, Copy)]
pub struct TrustPlace<'a> {
    /// The config home, with the record.
    pub config_home: &'a Path,
    /// Claude Code's record.
    pub claude_json: Option<&'a Path>,
    /// The working directory.
    pub directory: &'a Path,
    /// The user's home.
    pub home: Option<&'a Path>,
}

/// The user's trust in the files of one directory.
#[derive(Debug, Clone)]
pub struct Trust {
    config_home: PathBuf,
    site: TrustSite,
    /// Fingerprints of trusted claims.
    known: BTreeSet<String>,
    /// Fingerprints of declined claims.
    declined: BTreeSet<String>,
    /// True if Claude Code was told to trust it and that was not taken over yet.
    awaits_takeover: bool,
    /// A warning about the record.
    pub warning: Option<String>,
}

/// A directory, and the repository it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustSite {
    /// The key of the record: the canonical git root. None if nothing there is ever trusted.
    pub root: Option<PathBuf>,
    /// The checkout's top directory; outside a repository, the directory itself.
    top: PathBuf,
    /// The directory.
    directory: PathBuf,
    /// The user's home.
    home: Option<PathBuf>,
}

impl TrustSite {
    /// The site of a directory.
    pub fn of(directory: &Path, home: Option<&Path>) -> Self {
        let real = |path: &Path| files::real(path).unwrap_or_else(|_| path.to_owned());
        let (directory, home) = (real(directory), home.map(real));
        let holds_home =
            |path: &Path| path.parent().is_none() || home.as_ref().is_some_and(|home| home.starts_with(path));
        let top = directory.ancestors().find(|above| files::real(above.join(".git")).is_ok_and(|git| git.exists()));
        let top = top.unwrap_or(&directory).to_owned();
        // With a repository in the home directory, each directory below stands for itself.
        let root = [memory::place::canonical_root(&directory), directory.clone()].into_iter();
        let root = root.into_iter().find(|root| !holds_home(root));
        Self { root, top, directory, home }
    }

    /// The top of the checkout; outside a repository, the directory itself.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A path for messages: relative if it is inside the directory.
    pub fn short(&self, path: &Path) -> String {
        path.strip_prefix(&self.directory).unwrap_or(path).display().to_string()
    }
}

impl Trust {
    /// The user's answers so far.
    pub fn read(place: TrustPlace<'_>) -> Self {
        let site = TrustSite::of(place.directory, place.home);
        let mut trust = Self {
            config_home: place.config_home.to_owned(),
            known: BTreeSet::new(),
            declined: BTreeSet::new(),
            awaits_takeover: false,
            warning: None,
            site,
        };
        let Some(root) = trust.site.root.clone() else { return trust };
        let record = match trust_record::read(place.config_home) {
            Ok(record) => record,
            Err(why) => {
                trust.warning = Some(why);
                return trust;
            }
        };
        (trust.known, trust.declined) =
            (record.known(&root, TrustDecision::Yes), record.known(&root, TrustDecision::No));
        trust.awaits_takeover = !record.is_taken_over(&root)
            && place.claude_json.is_some_and(|file| {
                let above = trust.site.directory.ancestors().take_while(|above| above.starts_with(&trust.site.top));
                let mut directories: Vec<&Path> = above.collect();
                directories.push(&root);
                directories.retain(|directory| TrustSite::of(directory, place.home).root.is_some());
                trust_record::trusted_by_claude_code(file, &directories)
            });
        trust
    }

    /// The directory it is about.
    pub fn site(&self) -> &TrustSite {
        &self.site
    }

    /// Takes over a yes in Claude Code for the current claims and keeps it: later ones are asked about. Declined claims
    /// stay declined, and what cannot be kept is not taken over.
    pub fn take_over(&mut self, claims: &[Claim]) {
        let Some(root) = self.site.root.clone().filter(|_| self.awaits_takeover) else { return };
        self.awaits_takeover = false;
        let covered = |claim: &&Claim| takeover::covers(claim, &self.site) && !self.is_settled(claim);
        let covered: Vec<Claim> = claims.iter().filter(covered).cloned().collect();
        match trust_record::take_over(&self.config_home, &root, &covered) {
            Ok(known) => self.known = known,
            Err(why) => self.warning = Some(format!("your trust in Claude Code could not be taken over: {why}")),
        }
    }

    /// True if the user trusts this claim.
    pub fn covers(&self, claim: &Claim) -> bool {
        self.site.root.is_some() && self.known.contains(&claim.fingerprint)
    }

    /// True if the user trusts this value of a project's file.
    pub fn covers_set(&self, set: &SetValue) -> bool {
        self.covers(&Claim::of_set(set, &self.site))
    }

    /// The claims that are not trusted.
    pub fn missing(&self, claims: &[Claim]) -> Vec<Claim> {
        claims.iter().filter(|claim| !self.covers(claim)).cloned().collect()
    }

    /// True if the user has declined this, or can never trust it.
    pub fn is_settled(&self, claim: &Claim) -> bool {
        self.site.root.is_none() || self.declined.contains(&claim.fingerprint)
    }

    /// Trusts these for the lifetime of this value; returns false if nothing here can be trusted.
    pub fn admit(&mut self, claims: &[Claim]) -> bool {
        self.known.extend(claims.iter().map(|claim| claim.fingerprint.clone()));
        self.site.root.is_some()
    }

    /// Keeps the user's yes to these.
    pub fn remember(&mut self, claims: &[Claim]) -> Result<(), TrustFault> {
        let root = self.site.root.clone().ok_or(TrustFault::Never)?;
        trust_record::add(&self.config_home, &root, claims, TrustDecision::Yes)?;
        self.admit(claims);
        Ok(())
    }

    /// Keeps the user's no to these.
    pub fn decline(&mut self, claims: &[Claim]) -> Result<(), TrustFault> {
        let root = self.site.root.clone().ok_or(TrustFault::Never)?;
        self.declined.extend(claims.iter().map(|claim| claim.fingerprint.clone()));
        trust_record::add(&self.config_home, &root, claims, TrustDecision::No)
    }
}

/// The reason why an answer was not kept.
#[derive(Debug, thiserror::Error)]
pub enum TrustFault {
    /// Nothing is ever trusted there.
    #[error("the home directory and its parents are never trusted")]
    Never,
    /// The record cannot be read, so it is not written either.
    #[error("{0}")]
    Broken(String),
    /// A file operation failed.
    #[error(transparent)]
    Files(#[from] files::Error),
}
