//! Why a simulator could not be started. Refusals of requests are not errors: they are answers.

/// Problem with a script or a port.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The script is not TOML of the documented form.
    #[error("the script cannot be read: {0}")]
    Format(#[source] Box<toml::de::Error>),
    /// A regular expression or a template of the script is wrong.
    #[error("rule \"{rule}\" of the script is wrong: {problem}")]
    Rule {
        /// The rule's name, or what the fault does.
        rule: String,
        /// The parser's message.
        problem: String,
    },
    /// The port could not be opened.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Bind {
        /// The port asked for.
        port: u16,
        /// The system's error.
        source: std::io::Error,
    },
}
