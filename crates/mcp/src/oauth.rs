//! Logins: where to, as which client, and the tokens that come of it.
//!
//! Tokens are bound to the address they were given for and are sent nowhere else. They are in no Debug output, error or
//! log. Opening a browser is the caller's matter.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::callback::{Callback, CallbackListener};
use crate::endpoint::HttpEndpoint;
use crate::error::Error;

/// Place for the tokens of one server.
pub trait TokenStore: Send + Sync {
    /// The tokens, if there was a login.
    fn load(&self) -> Result<Option<Tokens>, String>;
    /// Keeps tokens.
    fn save(&self, tokens: &Tokens) -> Result<(), String>;
    /// Forgets them.
    fn clear(&self) -> Result<(), String>;
}

/// Tokens of one server, with the client they were given to.
#[derive(Clone)]
pub struct Tokens {
    pub(crate) json: String,
}

/// The client as which a login is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginClient {
    /// Client that was registered beforehand; none: its metadata document, or registration.
    pub id: Option<String>,
    /// Scopes to ask for, in place of those that the server names.
    pub scopes: Vec<String>,
    /// Address of the authorization server's metadata, in place of discovery.
    pub metadata_url: Option<String>,
    /// Address of our client metadata document, if we publish one.
    pub document_url: Option<String>,
}

/// Tokens in files of mode 0600, one for each server.
#[derive(Debug, Clone)]
pub struct TokenFiles {
    folder: PathBuf,
}

/// A login that waits for the user's consent in a browser.
pub struct Login {
    server: String,
    url: String,
}

impl TokenFiles {
    /// Files below a folder, which is made when the first is written.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}
