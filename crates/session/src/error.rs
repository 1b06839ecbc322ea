//! Errors before or beside a turn. What goes wrong inside one is how the turn ended.

use std::path::PathBuf;

/// Why a session could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk said no.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// There is no such session.
    #[error("no session {id} in {folder}")]
    NoSession {
        /// As it was asked for.
        id: String,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// A name that fits several sessions.
    #[error("several sessions match {id}: {}", found.join(", "))]
    Ambiguous {
        /// As it was asked for.
        id: String,
        /// Those it fits.
        found: Vec<String>,
    },
    /// A session id that cannot be a file's name.
    #[error("{id:?} is not a session id: use a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057")]
    BadId {
        /// As it was given.
        id: String,
    },
    /// A new session would overwrite an old one.
    #[error("session {id} exists already")]
    Exists {
        /// The id.
        id: String,
    },
    /// Not a single line of the file could be read.
    #[error("{path} is not a session: none of its {lines} lines could be read")]
    NotASession {
        /// The file.
        path: PathBuf,
        /// The number of its lines.
        lines: usize,
    },
    /// There is no such commit, or it does not count.
    #[error("there is nothing to undo: {commit} is not a commit that is in effect")]
    NothingToUndo {
        /// As it was asked for.
        commit: String,
    },
    /// Taking a commit back would bring more into view than the window holds.
    #[error("it cannot be undone: the view would have {tokens} tokens, and the window holds {window}")]
    WouldNotFit {
        /// The view without the commit.
        tokens: u64,
        /// The window without the room for a reply.
        window: u64,
    },
    /// A permission rule nobody understands.
    #[error(transparent)]
    Rule(#[from] tools::permission::BadRule),
}

impl Error {
    /// A hint for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Files(files::Error::Held { .. }) => {
                Some("close the other one, or continue in a copy: cairn --resume ID --fork-session".into())
            }
            Self::NoSession { .. } => Some("cairn session list shows the sessions of this project".into()),
            Self::Ambiguous { .. } => Some("give more of the id".into()),
            Self::Exists { .. } => Some("continue it with --resume, or leave out --session-id".into()),
            _ => None,
        }
    }
}
