//! Exit codes, by what a script can do about them.

use std::process::ExitCode;

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// It did what was asked.
    Success = 0,
    /// Something else went wrong.
    Failure = 1,
    /// The arguments make no sense.
    Usage = 2,
    /// The key is missing or refused, or the account cannot pay.
    Credentials = 3,
    /// The model's server cannot be reached or keeps failing.
    Unavailable = 4,
    /// A limit was reached: rounds, output, window, or the same call again and again.
    Limit = 5,
    /// The model declined, or its server refused the request.
    Refused = 6,
    /// A file or a session could not be read or written.
    Files = 7,
    /// The terminal has gone.
    HungUp = 129,
    /// Interrupted from the keyboard.
    Interrupted = 130,
    /// Nobody read what was printed.
    Unread = 141,
    /// Ended from outside.
    Terminated = 143,
}

/// What each means.
pub(crate) const ALL: &[(Code, &str)] = &[
    (Code::Success, "done"),
    (Code::Failure, "failed"),
    (Code::Usage, "bad arguments"),
    (Code::Credentials, "key missing or refused"),
    (Code::Unavailable, "server unreachable or busy"),
    (Code::Limit, "a limit was reached"),
    (Code::Refused, "refused by the model or its server"),
    (Code::Files, "a file or session could not be read or written"),
    (Code::HungUp, "the terminal was closed"),
    (Code::Interrupted, "interrupted"),
    (Code::Unread, "nobody reads stdout"),
    (Code::Terminated, "ended by a signal"),
];

/// What `--help` says about them.
pub(crate) fn help() -> String {
    let codes: Vec<String> = ALL.iter().map(|(code, about)| format!("{} {about}", *code as u8)).collect();
    format!("Exit codes: {}.", codes.join(", "))
}

impl Code {
    /// The code for an error that ended the program.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if let Some(error) = error.downcast_ref::<provider::Error>() {
            return Self::of_provider(error);
        }
        if error.downcast_ref::<crate::model::NoModel>().is_some() {
            return Self::Credentials;
        }
        if error.downcast_ref::<crate::error::NotRead>().is_some() {
            return Self::Files;
        }
        if error.downcast_ref::<crate::error::NotBuilt>().is_some() {
            return Self::Usage;
        }
        match error.downcast_ref::<session::Error>() {
            Some(session::Error::BadId { .. } | session::Error::Rule(_)) => Self::Usage,
            Some(_) => Self::Files,
            None if error.downcast_ref::<files::Error>().is_some() => Self::Files,
            None => Self::Failure,
        }
    }

    /// The code for a request that got no reply.
    pub(crate) fn of_provider(error: &provider::Error) -> Self {
        use provider::Error as E;
        match error {
            E::Auth { .. } | E::Billing { .. } => Self::Credentials,
            E::Busy { .. } | E::Unreachable { .. } | E::Cut { .. } | E::Idle { .. } | E::Malformed { .. } => {
                Self::Unavailable
            }
            E::Overflow { .. } => Self::Limit,
            E::Refused { .. } | E::NoTools { .. } => Self::Refused,
            _ => Self::Failure,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}
