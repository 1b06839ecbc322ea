//! The program that drives a session, where it has MCP servers of its own.

use std::fmt;
use std::sync::Arc;

use mcp::OpenPipes;

/// The program that drives a session, as one that has servers of its own.
#[derive(Clone, Default)]
pub(crate) struct ServerHost {
    program: Option<Arc<dyn ServerHosting>>,
    /// Names of servers it has, besides those that flags name.
    servers: Vec<String>,
}

/// Opens the way to a server within a program.
pub(crate) trait ServerHosting: Send + Sync {
    /// The way to the server of this name.
    fn pipes(self: Arc<Self>, server: &str) -> Arc<dyn OpenPipes>;
}

impl ServerHost {
    /// A program that has servers.
    pub(crate) fn of(program: Arc<dyn ServerHosting>, servers: Vec<String>) -> Self {
        Self { program: Some(program), servers }
    }

    /// The program, and the names of its servers that no flag names.
    pub(crate) fn get(&self) -> Option<(&Arc<dyn ServerHosting>, &[String])> {
        self.program.as_ref().map(|program| (program, self.servers.as_slice()))
    }
}

impl fmt::Debug for ServerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHost").field("servers", &self.servers).finish_non_exhaustive()
    }
}
