//! The moments at which hooks run, and what is particular to each.

use std::time::Duration;

/// The enum of moments, with all of them in a list and the name of each.
macro_rules! moments {
    ($($(#[$about:meta])* $moment:ident,)*) => {
        /// A moment at which hooks run, by Claude Code's names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum HookEvent { $($(#[$about])* $moment,)* }

        impl HookEvent {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$moment),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$moment => stringify!($moment),)* }
            }
        }
    };
}

moments! {
    /// Before a call runs.
    PreToolUse,
    /// After it ran.
    PostToolUse,
    /// After it failed.
    PostToolUseFailure,
    /// After all calls of a reply.
    PostToolBatch,
    /// Before somebody is asked about a call.
    PermissionRequest,
    /// After a call was denied.
    PermissionDenied,
    /// Before what was said is sent.
    UserPromptSubmit,
    /// When a session starts.
    SessionStart,
    /// When it ends.
    SessionEnd,
    /// When the model has answered.
    Stop,
    /// When an agent is sent out.
    SubagentStart,
    /// When an agent that was sent out has answered.
    SubagentStop,
    /// When a turn ends by an error.
    StopFailure,
    /// Before a compaction.
    PreCompact,
    /// After one.
    PostCompact,
    /// When an instruction file is loaded.
    InstructionsLoaded,
    /// When a settings file changes.
    ConfigChange,
    /// When the working directory moves.
    CwdChanged,
    /// When a file changes.
    FileChanged,
    /// When a person is waited for.
    Notification,
}

/// What exit code 2 does at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// It prevents what was about to happen.
    Prevents,
    /// It is too late for that: the model is told.
    Tells,
    /// Nothing: the user is told.
    Nothing,
}

impl HookEvent {
    /// The moment of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|moment| moment.name() == name)
    }

    /// What exit code 2 does.
    pub fn block(self) -> Block {
        match self {
            Self::PreToolUse
            | Self::PermissionRequest
            | Self::UserPromptSubmit
            | Self::Stop
            | Self::SubagentStop
            | Self::PreCompact
            | Self::ConfigChange
            | Self::PostToolBatch => Block::Prevents,
            Self::PostToolUse | Self::PostToolUseFailure => Block::Tells,
            _ => Block::Nothing,
        }
    }

    /// Whether what a hook prints becomes context, without being asked to.
    pub fn takes_plain_text(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::SessionStart)
    }

    /// Whether its input tells the mode.
    pub fn tells_mode(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PostToolUse
                | Self::PostToolUseFailure
                | Self::PostToolBatch
                | Self::PermissionRequest
                | Self::PermissionDenied
                | Self::UserPromptSubmit
                | Self::Stop
                | Self::SubagentStop
        )
    }

    /// Whether its commands may leave variables for later ones.
    pub fn leaves_variables(self) -> bool {
        matches!(self, Self::SessionStart | Self::CwdChanged | Self::FileChanged)
    }

    /// How long a command or a server may take that does not say, and the most where it does.
    pub(super) fn patience(self) -> (Duration, Option<Duration>) {
        match self {
            Self::UserPromptSubmit => (Duration::from_secs(30), None),
            Self::SessionEnd => (Duration::from_millis(1_500), Some(Duration::from_secs(60))),
            _ => (Duration::from_secs(600), None),
        }
    }
}
