//! The client as the protocol's conformance suite drives it: `conformance client --command target/debug/examples/conformance`.
//!
//! It connects to the address in its last argument, logs in wherever the server wants that, agreeing to everything, and calls
//! every tool, or those that `MCP_CONFORMANCE_CONTEXT` names. Nothing here knows which scenario runs.

#![allow(clippy::disallowed_methods, reason = "the suite speaks by environment variables and the exit code")]
#![allow(clippy::print_stderr, reason = "the suite shows it")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mcp::{
    Callback, CallbackListener, Elicitation, ElicitationAnswer, ElicitationRequest, Endpoint, Error, HttpEndpoint,
    Login, LoginClient, McpServer, ServerLimits, ServerOptions, ServerState, TokenStore, Tokens,
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// The most logins in one run. A server that wants more asks without end.
const MOST_LOGINS: usize = 3;
/// For the browser's way back, and for the answer to the first question.
const PATIENCE: Duration = Duration::from_secs(25);
/// The document that the suite knows.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Agrees to every form; defaults fill it.
struct AgreeableUser;

impl Elicitation for AgreeableUser {
    fn ask(&self, _request: ElicitationRequest) -> BoxFuture<'static, ElicitationAnswer> {
        Box::pin(async { ElicitationAnswer::Accept(Map::new()) })
    }
}

#[derive(Default)]
struct MemoryTokens(Mutex<Option<Tokens>>);

impl TokenStore for MemoryTokens {
    fn load(&self) -> Result<Option<Tokens>, String> {
        Ok(self.0.lock().clone())
    }

    fn save(&self, tokens: &Tokens) -> Result<(), String> {
        *self.0.lock() = Some(tokens.clone());
        Ok(())
    }

    fn clear(&self) -> Result<(), String> {
        *self.0.lock() = None;
        Ok(())
    }
}

/// One run.
struct Run {
    server: McpServer,
    endpoint: HttpEndpoint,
    logins: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let url = std::env::args().next_back().unwrap_or_default();
    let text = |key: &str| context[key].as_str().map(str::to_owned);
    let client = LoginClient {
        id: text("client_id"),
        secret: text("client_secret"),
        document_url: Some(DOCUMENT.to_owned()),
        ..LoginClient::default()
    };
    let tokens: Arc<dyn TokenStore> = Arc::new(MemoryTokens::default());
    let endpoint = HttpEndpoint { url, headers: BTreeMap::new(), helper: None, tokens: Some(tokens), client };
    // The suite starts all scenarios at once, on machines of any size.
    let limits = ServerLimits { probe: PATIENCE, ..ServerLimits::default() };
    let options = ServerOptions { limits, elicitation: Some(Arc::new(AgreeableUser)), ..ServerOptions::default() };
    let server = McpServer::new("conformance", Endpoint::Http(endpoint.clone()), options);
    let mut run = Run { server, endpoint, logins: 0 };
    let outcome = run.run(&context).await;
    run.server.switch_off().await;
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

impl Run {
    async fn run(&mut self, context: &Value) -> Result<(), String> {
        self.connect().await?;
        for (tool, arguments) in self.calls(context) {
            while let Err(error) = self.server.call(&tool, arguments.clone(), None).await {
                eprintln!("{error}");
                if !matches!(error, Error::NeedsLogin { .. }) {
                    break;
                }
                self.log_in().await?;
                self.connect().await?;
            }
        }
        Ok(())
    }

    async fn connect(&mut self) -> Result<(), String> {
        loop {
            let status = self.server.connect().await;
            match &status.state {
                ServerState::Ready => {
                    status.problems.iter().for_each(|problem| eprintln!("{problem}"));
                    return Ok(());
                }
                ServerState::NeedsLogin => self.log_in().await?,
                other => return Err(format!("{other:?}")),
            }
        }
    }

    async fn log_in(&mut self) -> Result<(), String> {
        self.logins += 1;
        if self.logins > MOST_LOGINS {
            return Err(format!("the server wants more than {MOST_LOGINS} logins"));
        }
        let listener = CallbackListener::bind(None).await?;
        let told = |error: Error| error.to_string();
        let back = listener.redirect_uri();
        let login = Login::begin("conformance", &self.endpoint, self.server.challenge(), &back).await.map_err(told)?;
        let callback = async { tokio::join!(login.callback(&listener), reqwest::get(login.url())).0 };
        let callback: Callback = tokio::time::timeout(PATIENCE, callback).await.map_err(|_| "nobody came back")?;
        login.finish(&callback).await.map_err(told)
    }

    /// Calls that the context asks for, else one of each tool.
    fn calls(&self, context: &Value) -> Vec<(String, Map<String, Value>)> {
        let wanted = context.get("toolCalls").or_else(|| context.get("tool_calls")).and_then(Value::as_array);
        if let Some(wanted) = wanted {
            let call = |call: &Value| {
                let arguments = call["arguments"].as_object().cloned().unwrap_or_default();
                Some((call["name"].as_str()?.to_owned(), arguments))
            };
            return wanted.iter().filter_map(call).collect();
        }
        let status = self.server.status();
        status.tools.iter().map(|tool| (tool.name.clone(), arguments(&tool.input_schema))).collect()
    }
}

/// Values for the arguments that a tool requires.
fn arguments(schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("test"),
    };
    required.map(|name| (name.to_owned(), value(name))).collect()
}
