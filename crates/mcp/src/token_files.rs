//! Tokens of earlier logins, and where they are kept.
//!
//! Tokens are bound to the address they were given for: those of one server are never loaded for another, whatever it is
//! called. They are in no Debug output.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most bytes of a file of tokens. Access tokens are a few kilobytes at most.
const LARGEST: u64 = 256 << 10;
/// The longest wait for a process that renews the same tokens.
const PATIENCE: Duration = Duration::from_secs(30);
/// Characters of the address's hash in a file's name.
const HASH: usize = 16;
/// Characters of the server's name in a file's name.
const NAME: usize = 40;

/// Place for the tokens of one server.
pub trait TokenStore: Send + Sync {
    /// The tokens, if there was a login.
    fn load(&self) -> Result<Option<Tokens>, String>;
    /// Keeps tokens.
    fn save(&self, tokens: &Tokens) -> Result<(), String>;
    /// Forgets them.
    fn clear(&self) -> Result<(), String>;
    /// Keeps other processes from renewing them until the value is dropped. May block for a while.
    fn lock(&self) -> Result<Box<dyn Send>, String> {
        Ok(Box::new(()))
    }
}

/// Tokens of one server, with the client they were given to.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    /// The address they were given for.
    #[serde(default)]
    pub(crate) url: String,
    /// Credentials from the authorization server, as rmcp writes them.
    #[serde(default)]
    pub(crate) credentials: Value,
    /// Secret of a client that was registered with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<String>,
    /// Scopes that the server asked for since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) wanted_scopes: Vec<String>,
}

impl Tokens {
    /// The same with scopes that the next login asks for.
    pub(crate) fn wanting(mut self, scope: &str) -> Self {
        for scope in scope.split_whitespace() {
            if !self.wanted_scopes.iter().any(|known| known == scope) {
                self.wanted_scopes.push(scope.to_owned());
            }
        }
        self
    }

    /// True if there was a login, rather than only a wish for one.
    pub fn has_login(&self) -> bool {
        !self.credentials["token_response"].is_null()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("has_login", &self.has_login()).finish_non_exhaustive()
    }
}

/// The client as which a login is made.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LoginClient {
    /// Client that was registered beforehand; none: its metadata document, or registration.
    pub id: Option<String>,
    /// Its secret. Never shown.
    pub secret: Option<String>,
    /// Scopes to ask for, in place of those that the server names.
    pub scopes: Vec<String>,
    /// Address of the authorization server's metadata, in place of discovery.
    pub metadata_url: Option<String>,
    /// Address of our client metadata document, if we publish one.
    pub document_url: Option<String>,
}

impl fmt::Debug for LoginClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginClient").field("id", &self.id).field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

/// Tokens in files of mode 0600, one for each server.
#[derive(Debug, Clone)]
pub struct TokenFiles {
    folder: PathBuf,
}

impl TokenFiles {
    /// Files below a folder, which is made when the first is written.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The place for a server's tokens. A server of the same name at another address has another one.
    pub fn of(&self, server: &str, url: &str) -> Arc<dyn TokenStore> {
        let readable: String =
            server.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).take(NAME).collect();
        let hash = blake3::hash(format!("{server}\n{url}").as_bytes()).to_hex();
        let path = self.folder.join(format!("{readable}-{}.json", &hash[..HASH]));
        Arc::new(TokenFile { path, url: url.to_owned() })
    }
}

struct TokenFile {
    path: PathBuf,
    url: String,
}

impl TokenStore for TokenFile {
    fn load(&self) -> Result<Option<Tokens>, String> {
        let snapshot = match files::read(&self.path, LARGEST) {
            Ok(snapshot) => snapshot,
            Err(files::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        // A text that serde quotes could be a token.
        let tokens: Tokens = serde_json::from_slice(&snapshot.bytes)
            .map_err(|_| format!("{} is damaged: log in again", self.path.display()))?;
        Ok(Some(tokens).filter(|tokens| tokens.url == self.url))
    }

    fn save(&self, tokens: &Tokens) -> Result<(), String> {
        let tokens = Tokens { url: self.url.clone(), ..tokens.clone() };
        let bytes =
            serde_json::to_vec_pretty(&tokens).map_err(|_| "the tokens cannot be written as JSON".to_owned())?;
        files::replace_private(&self.path, &bytes).map_err(|error| error.to_string())
    }

    fn clear(&self) -> Result<(), String> {
        match files::remove(&self.path) {
            Ok(()) | Err(files::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn lock(&self) -> Result<Box<dyn Send>, String> {
        let (Some(folder), Some(name)) = (self.path.parent(), self.path.file_stem()) else {
            return Err(format!("{} names no file", self.path.display()));
        };
        let root = files::Root::create(folder).map_err(|error| error.to_string())?;
        let name = format!("{}.lock", name.to_string_lossy());
        Ok(Box::new(root.lock_within(name, PATIENCE).map_err(|error| error.to_string())?))
    }
}
