//! A shelf: one place where memories are stored.
//!
//! The user's own for a project, an agent's three, the team's: each is an opened directory with its owner, its trust,
//! and its ranker. Recall goes over shelves, whoever asks: a session, a command, a server. A shelf that is being read
//! again answers from its previous state.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::Root;
use jiff::Timestamp;
use parking_lot::RwLock;

use crate::error::Error;
use crate::quoted_sentences::Register;
use crate::rank::{self, Hit, OlderMemory, RankQuestion, Ranker};
use crate::recall::{self, Attachment, RecallContext, Trust};
use crate::store;
use crate::taxonomy::Kind;

/// Owner of the memories on a shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShelfScope {
    /// The user's own, for one project.
    Project,
    /// The user's own, across projects.
    User,
    /// An agent's.
    Agent(String),
    /// Memories shared with others.
    Team,
}

/// A place where memories are stored.
#[derive(Debug)]
pub struct Shelf {
    scope: ShelfScope,
    root: Root,
    ranker: RwLock<Option<Arc<Ranker>>>,
    /// Working tree in which the things that memories name are looked up.
    tree: Option<PathBuf>,
    /// Register of memories' quotations of the user's own words.
    register: Option<Register>,
}

/// A memory that was found, and its shelf.
#[derive(Debug, Clone)]
pub struct ShelfHit {
    /// The shelf.
    pub shelf: Arc<Shelf>,
    /// The hit on it.
    pub hit: Hit,
}

impl Shelf {
    /// A shelf in an opened directory. Nothing is read yet.
    pub fn new(root: Root, scope: ShelfScope) -> Self {
        Self { scope, root, ranker: RwLock::default(), tree: None, register: None }
    }

    /// Sets the working tree in which the things that memories name are looked up.
    #[must_use]
    pub fn with_tree(mut self, tree: &Path) -> Self {
        self.tree = Some(tree.to_owned());
        self
    }

    /// Sets the register of memories' quotations of the user's own words.
    #[must_use]
    pub fn with_register(mut self, register: Register) -> Self {
        self.register = Some(register);
        self
    }

    /// Opens a directory and reads its memories.
    pub fn read(directory: impl AsRef<Path>, scope: ShelfScope) -> Result<Self, Error> {
        let shelf = Self::new(Root::open(directory)?, scope);
        shelf.refresh()?;
        Ok(shelf)
    }

    /// The opened directory.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Its owner.
    pub fn scope(&self) -> &ShelfScope {
        &self.scope
    }

    /// Owner of a memory on it: in the project's directory one folder is shared with others.
    pub fn scope_of(&self, path: &str) -> ShelfScope {
        match &self.scope {
            ShelfScope::Project if path.starts_with(store::TEAM) => ShelfScope::Team,
            scope => scope.clone(),
        }
    }

    /// Trust in a memory on it.
    pub fn trust(&self, path: &str) -> Trust {
        match self.scope_of(path) {
            ShelfScope::Team => Trust::Shared,
            ShelfScope::Project | ShelfScope::User | ShelfScope::Agent(_) => Trust::Own,
        }
    }

    /// Path of a memory on disk.
    pub fn file(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Unique name of a memory among those of several shelves: the relative path for those of the project, the full
    /// path for others.
    pub fn key(&self, path: &str) -> String {
        match self.scope {
            ShelfScope::Project | ShelfScope::Team => path.to_owned(),
            ShelfScope::User | ShelfScope::Agent(_) => self.file(path).display().to_string(),
        }
    }

    /// Reads added and changed files. Meanwhile it answers as before.
    pub fn refresh(&self) -> Result<(), Error> {
        let fresh = match self.ranker() {
            Some(known) => known.fresh(&self.root)?,
            None => Some(Ranker::load(&self.root)?),
        };
        if let Some(fresh) = fresh {
            *self.ranker.write() = Some(Arc::new(fresh));
        }
        Ok(())
    }

    /// The ranker over its memories; `None` before the first read.
    pub fn ranker(&self) -> Option<Arc<Ranker>> {
        self.ranker.read().clone()
    }

    /// Reads and renders a memory for a request; names its author if it is shared and the author is known.
    pub fn surface(
        &self,
        path: &str,
        older: &[OlderMemory],
        author: Option<&str>,
        now: Timestamp,
    ) -> Result<Attachment, Error> {
        let quotations = self.register.as_ref().map(Register::read);
        let (tree, quotations) = (self.tree.as_deref(), quotations.as_ref());
        recall::surface(
            &self.root,
            path,
            &RecallContext { trust: self.trust(path), older, tree, author, quotations },
            now,
        )
    }
}

/// Returns true if a memory is about the user wherever they work: of type `user`, and naming no path, repository or
/// host. A memory that names one stays in its project until it is moved.
pub fn is_about_the_user(kind: Option<Kind>, text: &str) -> bool {
    kind == Some(Kind::User) && !text.split_whitespace().any(names_a_place)
}

/// Returns true if a word is a path, a repository, an address, or a host.
fn names_a_place(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '~' | '.')).trim_end_matches('.');
    let is_host = || {
        let host = word.rsplit('@').next().unwrap_or(word).split(':').next().unwrap_or(word);
        let labels: Vec<&str> = host.split('.').collect();
        let named = |label: &&str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-');
        let last = labels.last().copied().unwrap_or_default();
        let numbers = labels.len() == 4 && labels.iter().all(|label| label.parse::<u8>().is_ok());
        labels.len() > 1
            && labels.iter().all(named)
            && (numbers || last.len() > 1 && last.chars().all(char::is_alphabetic))
    };
    word.contains("://") || word.contains('/') || word.starts_with('~') || word == "localhost" || is_host()
}

/// The memories of all shelves to surface for a question, the surest first, at most [`rank::MOST`]. Memories that
/// `admit` refuses are skipped.
pub fn choose(
    shelves: &[Arc<Shelf>],
    question: &RankQuestion<'_>,
    admit: impl Fn(&Shelf, &str) -> bool,
) -> Vec<ShelfHit> {
    let mut found: Vec<ShelfHit> = Vec::new();
    for shelf in shelves {
        let hits = shelf.ranker().map(|ranker| ranker.choose(question, |path| admit(shelf, path)));
        found.extend(hits.into_iter().flatten().map(|hit| ShelfHit { shelf: shelf.clone(), hit }));
    }
    if shelves.len() > 1 {
        found.sort_by(|one, other| other.hit.confidence.total_cmp(&one.hit.confidence));
    }
    found.truncate(rank::MOST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHELF-3: nothing of a project gets onto the user's shelf by itself.
    #[test]
    fn what_names_a_place_is_not_about_the_user_alone() {
        let is = |text: &str| is_about_the_user(Some(Kind::User), text);
        assert!(is("Prefers short answers, tabs, and version 3.5 of everything. Works e.g. at night."));
        for text in [
            "Keeps keys in ~/vault.",
            "Owns src/parser and its tests.",
            "Deploys to db-1.example.org by hand.",
            "Reviews acme/billing.",
            "Runs it at 10.0.0.7 or localhost",
            "Reads https://example.org daily",
            "Logs in as root@build.internal:22",
        ] {
            assert!(!is(text), "{text}");
        }
        assert!(!is_about_the_user(Some(Kind::Project), "Prefers tabs.") && !is_about_the_user(None, "Prefers tabs."));
    }
}
