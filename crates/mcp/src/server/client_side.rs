//! Requests of a server: the folders it may know, and questions to the user. Nothing else: no sampling.

#![expect(deprecated, reason = "folders are for servers of revisions that still have them")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    ErrorData, FormElicitationCapability, Implementation, ListRootsResult, ProgressNotificationParam, ProtocolVersion,
    Root, RootsCapabilities, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value};
use url::Url;

use super::shared::{List, OneMore, ServerCore};
use crate::elicitation::{ElicitationAnswer, ElicitationRequest};
use crate::names::cut;

/// The most questions at once.
const MOST_QUESTIONS: usize = 3;
/// The most bytes of a question.
const LONGEST_QUESTION: usize = 4096;

/// Our side of a connection.
pub(super) struct ClientSide(pub(super) Arc<ServerCore>);

impl ClientSide {
    /// Asks the user, or declines where there is no way to.
    pub(super) async fn elicit(&self, params: ElicitRequestParams) -> ElicitResult {
        let decline = || ElicitResult::new(ElicitationAction::Decline);
        let Some(elicitation) = self.0.elicitation.clone() else { return decline() };
        // Nobody expects a question from a server that was asked nothing, or more than a few at once.
        let is_idle = self.0.requests.load(Ordering::Acquire) == 0;
        if is_idle || self.0.questions.load(Ordering::Acquire) >= MOST_QUESTIONS {
            return decline();
        }
        let server = self.0.name.clone();
        let short = |message: &str| cut(message, LONGEST_QUESTION).into_owned();
        let (request, schema) = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let Ok(schema) = serde_json::to_value(&requested_schema) else { return decline() };
                (ElicitationRequest::Form { server, message: short(&message), schema: schema.clone() }, Some(schema))
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                // A page is for a browser: no file, no program.
                let is_page = Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
                if !is_page {
                    return decline();
                }
                (ElicitationRequest::Url { server, message: short(&message), url }, None)
            }
            _ => return decline(),
        };
        // While it is open, the clock of calls that wait stands still.
        let _open = OneMore::of(&self.0.questions);
        match elicitation.ask(request).await {
            ElicitationAnswer::Accept(values) => {
                let accepted = ElicitResult::new(ElicitationAction::Accept);
                match schema {
                    Some(schema) => accepted.with_content(Value::Object(with_defaults(values, &schema))),
                    None => accepted,
                }
            }
            ElicitationAnswer::Decline => decline(),
            ElicitationAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    /// The folders that the server may know.
    pub(super) fn roots(&self) -> ListRootsResult {
        let root = |path: &std::path::PathBuf| {
            let url = Url::from_directory_path(path).ok()?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let root = Root::new(url.as_str().trim_end_matches('/'));
            Some(match name {
                Some(name) => root.with_name(name),
                None => root,
            })
        };
        ListRootsResult::new(self.0.roots.lock().iter().filter_map(root).collect())
    }
}

/// The values with those that the schema has by default for the rest.
fn with_defaults(mut values: Map<String, Value>, schema: &Value) -> Map<String, Value> {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let (Some(default), false) = (property.get("default"), values.contains_key(name)) {
            values.insert(name.clone(), default.clone());
        }
    }
    values
}

impl ClientHandler for ClientSide {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let mut roots = RootsCapabilities::default();
        roots.list_changed = Some(true);
        capabilities.roots = Some(roots);
        capabilities.elicitation = self.0.elicitation.as_ref().map(|_| {
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::new())
                .with_url(UrlElicitationCapability::default())
        });
        let client = Implementation::new("cairn", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let withdrawn = context.ct.cancelled().map(|()| ElicitResult::new(ElicitationAction::Cancel));
        tokio::select! {
            answer = self.elicit(request) => Ok(answer),
            answer = withdrawn => Ok(answer),
        }
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.0.waiting.report(params);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.stale.mark(List::Tools);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.stale.mark(List::Prompts);
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.stale.mark(List::Resources);
    }
}
