//! Errors of servers, by what the caller can do about them.
//!
//! A server's own words are cut to a sane length and have no control characters; tokens and headers never appear.

use std::time::Duration;

/// Why a server did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is not connected: reconnect it.
    #[error("the MCP server {server} is not connected: {why}")]
    NotConnected {
        /// The server.
        server: String,
        /// State it is in.
        why: String,
    },
    /// It wants a login: `cairn mcp login`.
    #[error("the MCP server {server} needs a login")]
    NeedsLogin {
        /// The server.
        server: String,
    },
    /// It answered with an error of its own.
    #[error("the MCP server {server} answered: {message}")]
    Refused {
        /// The server.
        server: String,
        /// JSON-RPC code.
        code: i32,
        /// Its words.
        message: String,
    },
    /// It did not answer in time.
    #[error("the MCP server {server} did not answer {what} within {} s", .after.as_secs())]
    TimedOut {
        /// The server.
        server: String,
        /// The unanswered request.
        what: String,
        /// The limit.
        after: Duration,
    },
    /// The connection ended or broke in the middle.
    #[error("the connection to the MCP server {server} broke: {message}")]
    Broken {
        /// The server.
        server: String,
        /// Cause, as far as it is known.
        message: String,
    },
    /// It sent more than the limit.
    #[error("the MCP server {server} sent {what} of more than {limit}")]
    TooLarge {
        /// The server.
        server: String,
        /// The oversized thing.
        what: &'static str,
        /// The limit, with its unit.
        limit: String,
    },
    /// It offers nothing of that name.
    #[error("the MCP server {server} has no {what} named {name:?}")]
    Unknown {
        /// The server.
        server: String,
        /// Tool, prompt or resource.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A login did not succeed.
    #[error("the login to the MCP server {server} failed: {message}")]
    Login {
        /// The server.
        server: String,
        /// Cause, in the words of the server or of this program.
        message: String,
    },
    /// The file of a server's tokens could not be read or written.
    #[error("the tokens of the MCP server {server}: {message}")]
    Tokens {
        /// The server.
        server: String,
        /// Cause.
        message: String,
    },
}
