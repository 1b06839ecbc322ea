//! The way to a server: pipes that the caller opens, or an address.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::token_files::{LoginClient, TokenStore};

/// The way to a server.
#[derive(Clone)]
pub enum Endpoint {
    /// A process that the caller starts.
    Stdio(Arc<dyn OpenPipes>),
    /// Streamable HTTP.
    Http(HttpEndpoint),
}

/// Starts a server's process and hands over its pipes, once for each connection.
pub trait OpenPipes: Send + Sync {
    /// Opens them; an error is shown as the server's state.
    fn open(&self) -> BoxFuture<'static, Result<Pipes, String>>;
}

/// The last words of a program, asked for once it is gone.
pub type LastWords = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// The two pipes of a process. Both are dropped when the connection ends, which is when the process should end.
pub struct Pipes {
    /// Its standard output.
    pub read: Box<dyn AsyncRead + Send + Unpin>,
    /// Its standard input.
    pub write: Box<dyn AsyncWrite + Send + Unpin>,
    /// The end of its standard error, shown if it dies.
    pub last_words: Option<LastWords>,
}

/// Makes headers fresh for each connection.
pub trait HeadersHelper: Send + Sync {
    /// Runs the helper; the caller bounds its time.
    fn headers(&self) -> BoxFuture<'static, Result<BTreeMap<String, String>, String>>;
}

/// An address with what is sent to it.
#[derive(Clone)]
pub struct HttpEndpoint {
    /// Address.
    pub url: String,
    /// Headers of every request, expanded. Never shown.
    pub headers: BTreeMap<String, String>,
    /// Source of more headers; called before each connection, and once more after a 401 or 403.
    pub helper: Option<Arc<dyn HeadersHelper>>,
    /// Tokens of earlier logins; none: no OAuth for this server.
    pub tokens: Option<Arc<dyn TokenStore>>,
    /// The client as the definition registers it.
    pub client: LoginClient,
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpEndpoint").field("headers", &self.headers.keys()).finish_non_exhaustive()
    }
}
