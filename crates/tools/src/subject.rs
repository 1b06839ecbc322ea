//! Access and subject of a call, as permission rules see them.

use std::path::PathBuf;

/// Effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It only reads.
    ReadOnly,
    /// It changes only what the session itself made, such as a background command: nobody has to be asked.
    Session,
    /// It changes nothing by itself, and the user decides each time, such as on a plan.
    Asks,
    /// It reads from another machine, which learns what is asked for: a rule allows it, or the user is asked.
    Network,
    /// It may change something.
    Changes,
}

/// Subject that a permission rule is matched against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A shell command.
    Command(String),
    /// A file or a directory.
    Path {
        /// Its absolute path as named.
        named: PathBuf,
        /// Its real path, with symlinks resolved.
        real: PathBuf,
    },
    /// One of several with a name, such as an agent or `domain:example.com`: rules match whose pattern is that name. In
    /// patterns of domains `*` stands for anything.
    Name(String),
    /// The call as a whole: only rules without a pattern match.
    Whole,
}
