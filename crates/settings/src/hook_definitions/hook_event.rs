//! The events at which hooks run, and what is particular to each.

use std::time::Duration;

/// Defines the enum of events, the list of all and their names.
macro_rules! moments {
    ($($(#[$about:meta])* $hook_event:ident,)*) => {
        /// An event at which hooks run, by Claude Code's names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum HookEvent { $($(#[$about])* $hook_event,)* }

        impl HookEvent {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$hook_event),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$hook_event => stringify!($hook_event),)* }
            }
        }
    };
}

moments! {
    /// Before a call runs.
    PreToolUse,
    /// After a call succeeded.
    PostToolUse,
    /// After a call failed.
    PostToolUseFailure,
    /// After all calls of a reply.
    PostToolBatch,
    /// Before somebody is asked about a call.
    PermissionRequest,
    /// After a call was denied.
    PermissionDenied,
    /// Before a message of the user is sent.
    UserPromptSubmit,
    /// When a session starts.
    SessionStart,
    /// When it ends.
    SessionEnd,
    /// When the model has answered.
    Stop,
    /// When a subagent starts.
    SubagentStart,
    /// When a subagent has answered.
    SubagentStop,
    /// When a turn ends with an error.
    StopFailure,
    /// Before a compaction.
    PreCompact,
    /// After one.
    PostCompact,
    /// When an instruction file is loaded.
    InstructionsLoaded,
    /// When a settings file changes.
    ConfigChange,
    /// When the working directory changes.
    CwdChanged,
    /// When a file changes.
    FileChanged,
    /// When the session waits for the user.
    Notification,
}

/// The effect of exit code 2 at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// It prevents what was about to happen.
    Prevents,
    /// Too late to prevent anything: the model is told.
    Tells,
    /// Nothing is prevented: the user is told.
    Nothing,
}

impl HookEvent {
    /// The event of a name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|hook_event| hook_event.name() == name)
    }

    /// The effect of exit code 2.
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

    /// True if plain output of a hook becomes context.
    pub fn takes_plain_text(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::SessionStart)
    }

    /// True if the hook's input includes the mode.
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

    /// True if its commands may set variables for later commands.
    pub fn leaves_variables(self) -> bool {
        matches!(self, Self::SessionStart | Self::CwdChanged | Self::FileChanged)
    }

    /// Default timeout of a command or request, and the upper limit of one that is set.
    pub(super) fn patience(self) -> (Duration, Option<Duration>) {
        match self {
            Self::UserPromptSubmit => (Duration::from_secs(30), None),
            Self::SessionEnd => (Duration::from_millis(1_500), Some(Duration::from_secs(60))),
            _ => (Duration::from_secs(600), None),
        }
    }
}
