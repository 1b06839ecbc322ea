//! Exit codes, by what a script can do about them.

use std::process::ExitCode;

/// The codes, each with its number and what it means.
macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $number:literal, $about:literal;)*) => {
        /// The exit code of the program.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Code { $($(#[$doc])* $code = $number,)* }

        /// Meaning of each code.
        pub(crate) const ALL: &[(Code, &str)] = &[$((Code::$code, $about)),*];
    };
}

codes! {
    /// It did what was asked.
    Success = 0, "done";
    /// Something else went wrong.
    Failure = 1, "failed";
    /// The arguments make no sense.
    Usage = 2, "bad arguments";
    /// The key is missing or refused, or the account cannot pay.
    Credentials = 3, "key missing or refused";
    /// The model's server cannot be reached or keeps failing.
    Unavailable = 4, "server unreachable or busy";
    /// A limit was reached: rounds, output, window, or the same call again and again.
    Limit = 5, "a limit was reached";
    /// The model declined, or its server refused the request.
    Refused = 6, "refused by the model or its server";
    /// A file or a session could not be read or written.
    Files = 7, "a file or session could not be read or written";
    /// The terminal has gone.
    HungUp = 129, "the terminal was closed";
    /// Interrupted from the keyboard.
    Interrupted = 130, "interrupted";
    /// Stdout was closed by its reader.
    Unread = 141, "stdout was closed";
    /// Ended from outside.
    Terminated = 143, "ended by a signal";
}

/// The section of `--help` about exit codes.
pub(crate) fn help() -> String {
    let codes: Vec<String> = ALL.iter().map(|(code, about)| format!("{} {about}", *code as u8)).collect();
    format!("Exit codes: {}.", codes.join(", "))
}

impl Code {
    /// Its meaning.
    pub(crate) fn about(self) -> &'static str {
        ALL.iter().find(|(code, _)| *code == self).map_or("", |(_, about)| about)
    }

    /// The code for an error that ended the program.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if let Some(error) = error.downcast_ref::<provider::Error>() {
            return Self::of_provider(error);
        }
        if error.downcast_ref::<crate::model::NoModel>().is_some() {
            return Self::Credentials;
        }
        if error.downcast_ref::<crate::error::ScanFailure>().is_some() {
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
