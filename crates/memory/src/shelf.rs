//! A shelf: one place where memories lie.
//!
//! The user's own for a project, an agent's three, the team's: each is an opened directory, whose it is, how far it is
//! trusted, and what is known of it. Recall goes over shelves, whoever asks: a session, a command, a server. A shelf that is
//! being read again answers from what it knew before.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::Root;
use jiff::Timestamp;
use parking_lot::RwLock;

use crate::error::Error;
use crate::rank::{self, Hit, Question, Ranker};
use crate::recall::{self, Attachment};

/// Whose memories lie there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The user's own, for one project.
    Private,
    /// An agent's.
    Agent(String),
    /// Those that are shared with others.
    Team,
}

/// A place where memories lie.
#[derive(Debug)]
pub struct Shelf {
    scope: Scope,
    root: Root,
    ranker: RwLock<Option<Arc<Ranker>>>,
    /// Where what memories name is looked for.
    tree: Option<PathBuf>,
}

/// A memory that was found, and where.
#[derive(Debug, Clone)]
pub struct Found {
    /// The shelf.
    pub shelf: Arc<Shelf>,
    /// What was found on it.
    pub hit: Hit,
}

impl Shelf {
    /// A shelf in an opened directory. Nothing is read yet.
    pub fn new(root: Root, scope: Scope) -> Self {
        Self { scope, root, ranker: RwLock::default(), tree: None }
    }

    /// Names the working tree in which is looked for what memories name.
    #[must_use]
    pub fn with_tree(mut self, tree: &Path) -> Self {
        self.tree = Some(tree.to_owned());
        self
    }

    /// Opens a directory and reads what lies there.
    pub fn read(directory: impl AsRef<Path>, scope: Scope) -> Result<Self, Error> {
        let shelf = Self::new(Root::open(directory)?, scope);
        shelf.refresh()?;
        Ok(shelf)
    }

    /// The opened directory.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Whose it is.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Where a memory lies on the disk.
    pub fn file(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Reads what was added or changed since. Meanwhile it answers as before.
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

    /// What is known of it; nothing before the first reading.
    pub fn ranker(&self) -> Option<Arc<Ranker>> {
        self.ranker.read().clone()
    }

    /// Reads and renders a memory for a request; says who wrote it, where others do too and it is known.
    pub fn surface(
        &self,
        path: &str,
        older: &[String],
        author: Option<&str>,
        now: Timestamp,
    ) -> Result<Attachment, Error> {
        recall::surface_by(&self.root, path, older, self.tree.as_deref(), author, now)
    }
}

/// What of all shelves is to be surfaced for a question, the surest first, at most [`rank::MOST`]. What `admit` refuses is
/// passed over.
pub fn choose(shelves: &[Arc<Shelf>], question: &Question<'_>, admit: impl Fn(&Shelf, &str) -> bool) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for shelf in shelves {
        let hits = shelf.ranker().map(|ranker| ranker.choose(question, |path| admit(shelf, path)));
        found.extend(hits.into_iter().flatten().map(|hit| Found { shelf: shelf.clone(), hit }));
    }
    if shelves.len() > 1 {
        found.sort_by(|one, other| other.hit.confidence.total_cmp(&one.hit.confidence));
    }
    found.truncate(rank::MOST);
    found
}
