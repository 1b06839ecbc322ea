//! Errors of requests, by what the caller can do about them.
//!
//! The text says what happened and where; [`Error::hint`] says what to do. Text that came from a server is cut to a
//! sane length, has no control characters, and never contains the key that was sent.

use std::time::Duration;

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request is too long for the model or the server: shorten it and send again.
    #[error("the request is too long{}: {message}", Numbers(*tokens, *limit))]
    Overflow {
        /// Its length, if the server says so.
        tokens: Option<u64>,
        /// The limit, if the server says so.
        limit: Option<u64>,
        /// The server's words.
        message: String,
    },
    /// A picture or document is too large, or there are too many: leave it out and send again.
    #[error("{host} finds a picture or document too large: {message}")]
    MediaTooLarge {
        /// The server.
        host: String,
        /// Indexes of the message and of its block, if the server says so.
        place: Option<(usize, usize)>,
        /// The server's words.
        message: String,
    },
    /// The key is missing, wrong, or may not do this: the user has to act.
    #[error("{host} refused the credentials ({status}): {message}")]
    Auth {
        /// The server.
        host: String,
        /// 401 or 403.
        status: u16,
        /// The server's words.
        message: String,
    },
    /// The account cannot pay: the user has to act.
    #[error("{host} reports a billing problem with the account: {message}")]
    Billing {
        /// The server.
        host: String,
        /// The server's words.
        message: String,
    },
    /// The request is wrong: sending it again will not help.
    #[error("{host} refused the request ({status}): {message}")]
    Refused {
        /// The server.
        host: String,
        /// The HTTP status.
        status: u16,
        /// The server's words.
        message: String,
    },
    /// The model, or the server as it was started, cannot call tools: choose another one, or offer none.
    #[error("{host} cannot call tools with this model: {message}")]
    NoTools {
        /// The server.
        host: String,
        /// The server's words.
        message: String,
    },
    /// The server's API lacks this feature: do without. Nothing was sent.
    #[error("{host} offers no way to {what}")]
    Unsupported {
        /// The server.
        host: String,
        /// The missing feature.
        what: &'static str,
    },
    /// The server is overloaded, limits us, or is failing, at every attempt: try later.
    #[error("{host} is busy ({status}): {message}")]
    Busy {
        /// The server.
        host: String,
        /// The HTTP status, or the one that fits an error in the middle of a stream.
        status: u16,
        /// The wait that the server asked for.
        after: Option<Duration>,
        /// The server's words.
        message: String,
    },
    /// No connection: no network, no such name, nobody listening, no trusted certificate.
    #[error("cannot reach {host}: {cause}")]
    Unreachable {
        /// The server.
        host: String,
        /// The deepest cause.
        cause: String,
    },
    /// The connection broke before the reply was complete, every time.
    #[error("the connection to {host} broke before the reply was complete: {cause}")]
    Cut {
        /// The server.
        host: String,
        /// The cause.
        cause: String,
    },
    /// The server fell silent before the reply was complete, every time.
    #[error("{host} was silent for {} s before the reply was complete", silence.as_secs_f32())]
    Idle {
        /// The server.
        host: String,
        /// Time without a byte.
        silence: Duration,
    },
    /// The answer does not follow the protocol.
    #[error("{host} sent something that is not a reply: {message}")]
    Malformed {
        /// The server.
        host: String,
        /// The problem, with the beginning of the answer.
        message: String,
    },
    /// The client cannot be built or the request cannot be put on the wire as configured; nothing was sent.
    #[error("the provider's settings do not work: {message}")]
    Settings {
        /// The setting or header, and the problem with it.
        message: String,
    },
}

impl Error {
    /// Advice for the user, in one sentence.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Overflow { .. } => Some("shorten the conversation, for example by compacting it"),
            Self::MediaTooLarge { .. } => Some("use a smaller picture, or fewer pages"),
            Self::Auth { .. } => Some("check the API key or token, and that it belongs to this server"),
            Self::Billing { .. } => Some("check the plan and the credit balance of the account"),
            Self::Refused { status: 404, .. } => Some("check the model's name and the base URL"),
            Self::NoTools { .. } => Some(
                "choose a model that can call tools; llama.cpp needs --jinja for it, vLLM --enable-auto-tool-choice",
            ),
            Self::Refused { .. } | Self::Unsupported { .. } | Self::Settings { .. } => None,
            Self::Busy { .. } => Some("try again later"),
            Self::Unreachable { .. } => Some("check the network, the proxy and the base URL"),
            Self::Cut { .. } | Self::Idle { .. } => Some("try again; if it persists, check the network and the proxy"),
            Self::Malformed { .. } => Some("check that the base URL is that of the API it is used for"),
        }
    }
}

/// ` (N tokens, the limit is M)`, as far as they are known.
struct Numbers(Option<u64>, Option<u64>);

impl std::fmt::Display for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0, self.1) {
            (Some(tokens), Some(limit)) => write!(f, " ({tokens} tokens, the limit is {limit})"),
            (Some(tokens), None) => write!(f, " ({tokens} tokens)"),
            (None, Some(limit)) => write!(f, " (the limit is {limit} tokens)"),
            (None, None) => Ok(()),
        }
    }
}

/// A failed attempt: the error, and what may follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedAttempt {
    pub(crate) error: Error,
    pub(crate) then: NextAttempt,
}

/// Reaction to a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextAttempt {
    /// Nothing: it would fail again.
    GiveUp,
    /// Another attempt, after the wait the server asked for if it did.
    Retry(Option<Duration>),
    /// The same request again, because its answer was lost on the way. There are fewer restarts than retries.
    Restart,
}

/// State of the reply at the time of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyStart {
    Yes,
    No,
}

impl FailedAttempt {
    /// The same failure, given the state of the reply: asking again for one that has begun is a restart.
    pub(crate) fn after(mut self, begun: ReplyStart) -> Self {
        if let (ReplyStart::Yes, NextAttempt::Retry(_)) = (begun, self.then) {
            self.then = NextAttempt::Restart;
        }
        self
    }

    pub(crate) fn give_up(error: Error) -> Self {
        Self { error, then: NextAttempt::GiveUp }
    }

    pub(crate) fn restart(error: Error) -> Self {
        Self { error, then: NextAttempt::Restart }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflow_names_the_numbers_it_knows() {
        let error = Error::Overflow { tokens: Some(9), limit: Some(8), message: "prompt is too long".into() };
        assert_eq!(error.to_string(), "the request is too long (9 tokens, the limit is 8): prompt is too long");
        let error = Error::Overflow { tokens: None, limit: None, message: "body".into() };
        assert_eq!(error.to_string(), "the request is too long: body");
    }
}
