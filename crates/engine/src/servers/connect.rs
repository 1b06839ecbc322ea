//! The way to a server: a program below the guard, an address, or the program that drives the session.
//!
//! A definition's variables are looked up here and nowhere else.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::{
    Endpoint, HeadersHelper, HttpDefinition, HttpEndpoint, McpServer, OpenPipes, Pipes, ServerLimits, ServerOptions,
    ServerTransport, TokenFiles,
};
use settings::servers::DefinedServer;
use tokio::io::{AsyncWrite, WriteHalf};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tools::program::{Program, ProgramEnd};
use tools::server_process::{ServerProcess, ServerProgram};
use tools::{Credentials, Environment};

use super::ServerSurroundings;

/// Limit on a command that prints headers, as Claude Code has it.
const HELPER_LIMIT: Duration = Duration::from_secs(10);

/// A server within the program that drives the session.
pub(super) fn hosted(name: &str, surroundings: &ServerSurroundings) -> Option<McpServer> {
    let pipes = surroundings.hosted.get(name)?.clone();
    Some(McpServer::new(name, Endpoint::Stdio(pipes), options(surroundings, None)))
}

/// A server as it is defined. Problems of its variables are added to the findings.
pub(super) fn server(
    defined: &DefinedServer,
    surroundings: &ServerSurroundings,
    findings: &mut Vec<String>,
) -> McpServer {
    let expanded = defined.definition.expand(&|name| (surroundings.variable)(name));
    let problem = |problem: &mcp::DefinitionError| format!("{}: MCP server {}: {problem}", defined.place, defined.name);
    findings.extend(expanded.problems.iter().map(problem));
    let limit = expanded.definition.call_timeout;
    let endpoint = match expanded.definition.transport {
        ServerTransport::Stdio(stdio) => Endpoint::Stdio(Arc::new(ProgramPipes {
            words: [stdio.command].into_iter().chain(stdio.args).collect(),
            variables: stdio.env,
            surroundings: surroundings.clone(),
        })),
        ServerTransport::Http(http) => Endpoint::Http(endpoint(&defined.name, http, surroundings)),
    };
    McpServer::new(&defined.name, endpoint, options(surroundings, limit))
}

/// The address of a server, with its variables filled in; none for a program.
pub fn http_endpoint(defined: &DefinedServer, surroundings: &ServerSurroundings) -> Option<HttpEndpoint> {
    match defined.definition.expand(&|name| (surroundings.variable)(name)).definition.transport {
        ServerTransport::Http(http) => Some(endpoint(&defined.name, http, surroundings)),
        ServerTransport::Stdio(_) => None,
    }
}

fn endpoint(name: &str, http: HttpDefinition, surroundings: &ServerSurroundings) -> HttpEndpoint {
    let client = http.login_client();
    let helper = http.headers_helper.map(|command| {
        let (server, url) = (name.to_owned(), http.url.clone());
        Arc::new(HelperCommand { command, server, url, surroundings: surroundings.clone() }) as Arc<dyn HeadersHelper>
    });
    let tokens = Some(TokenFiles::new(surroundings.tokens.clone()).of(name, &http.url));
    HttpEndpoint { url: http.url, headers: http.headers, helper, tokens, client }
}

fn options(surroundings: &ServerSurroundings, limit: Option<Duration>) -> ServerOptions {
    let usual = ServerLimits::default();
    ServerOptions {
        limits: ServerLimits { call: limit.unwrap_or(usual.call), ..usual },
        roots: surroundings.roots.clone(),
        elicitation: surroundings.elicitation.clone(),
    }
}

/// A server's program, started anew for each connection.
struct ProgramPipes {
    words: Vec<String>,
    variables: BTreeMap<String, String>,
    surroundings: ServerSurroundings,
}

impl OpenPipes for ProgramPipes {
    fn open(&self) -> BoxFuture<'static, Result<Pipes, String>> {
        let ServerSurroundings { directory, environment, guard, .. } = &self.surroundings;
        let mut variables = self.variables.clone();
        variables.entry("CLAUDE_PROJECT_DIR".to_owned()).or_insert_with(|| directory.display().to_string());
        let (words, guard) = (self.words.clone(), guard.as_deref());
        let started = ServerProgram { words, directory, variables, environment, guard }.start();
        let opened = started.map(|(process, socket)| {
            let (read, write) = tokio::io::split(socket);
            let last_words = Some(process.last_words());
            Pipes { read: Box::new(read), write: Box::new(ProgramInput { write, _process: process }), last_words }
        });
        std::future::ready(opened).boxed()
    }
}

/// The input of a program, which ends with it.
struct ProgramInput {
    write: WriteHalf<UnixStream>,
    _process: ServerProcess,
}

impl AsyncWrite for ProgramInput {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.write).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(cx)
    }
}

/// A command that prints headers as a JSON object.
struct HelperCommand {
    command: String,
    server: String,
    url: String,
    surroundings: ServerSurroundings,
}

impl HeadersHelper for HelperCommand {
    fn headers(&self) -> BoxFuture<'static, Result<BTreeMap<String, String>, String>> {
        let ServerSurroundings { directory, environment, guard, .. } = self.surroundings.clone();
        let (words, server, url) = (Program::shell(&self.command), self.server.clone(), self.url.clone());
        async move { run_helper(words, directory, environment, guard, [server, url]).await }.boxed()
    }
}

async fn run_helper(
    words: Vec<String>,
    directory: PathBuf,
    environment: Environment,
    guard: Option<PathBuf>,
    [server, url]: [String; 2],
) -> Result<BTreeMap<String, String>, String> {
    let named = [("CLAUDE_CODE_MCP_SERVER_NAME", server), ("CLAUDE_CODE_MCP_SERVER_URL", url)];
    let named = named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let environment = Environment { credentials: Credentials::Withheld, named, ..environment };
    let program = Program {
        words,
        input: String::new(),
        directory: &directory,
        environment: &environment,
        guard: guard.as_deref(),
        confinement: None,
        limit: HELPER_LIMIT,
    };
    let ended = program.run(&CancellationToken::new()).await?;
    match ended.end {
        ProgramEnd::Exited(0) => serde_json::from_str(&ended.out)
            .map_err(|_| "the headers helper did not print a JSON object of strings".to_owned()),
        ProgramEnd::Exited(code) => Err(format!("the headers helper ended with exit code {code}")),
        ProgramEnd::TimedOut => Err(format!("the headers helper took longer than {} s", HELPER_LIMIT.as_secs())),
        ProgramEnd::Cancelled => Err("the headers helper was stopped".to_owned()),
    }
}
