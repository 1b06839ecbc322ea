//! What a call does and what it is about, as permission rules see it.

use std::path::PathBuf;

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It only looks.
    ReadOnly,
    /// It changes nothing but what the session itself made, such as a command in the background: nobody has to be asked.
    Session,
    /// It changes nothing by itself, and is for the user to decide each time, such as a plan to be approved.
    Asks,
    /// It may change something.
    Changes,
}

/// What a permission rule is matched against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A shell command.
    Command(String),
    /// A file or a directory.
    Path {
        /// As it was named, made absolute.
        named: PathBuf,
        /// Where it leads once symbolic links are followed.
        real: PathBuf,
    },
    /// One of several that go by name, such as an agent: rules match whose pattern is that name.
    Name(String),
    /// The call as a whole: only rules without a pattern match.
    Whole,
}
