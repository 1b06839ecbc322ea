//! `/mcp`: the servers of the session, their state and their tools, to connect again or switch off.

use std::sync::Arc;

use engine::servers::{SessionServer, SessionServers};
use settings::servers::ServerApproval;

use super::conversation_view::ConversationView;
use crate::server_setup::state_words;
use crate::styled_text::{TextStyle, one_line};

/// The most characters of a description in a list.
const ABOUT: usize = 80;

/// Lists the servers, shows one, or connects or switches off one.
pub(super) fn show_servers(servers: Option<&Arc<SessionServers>>, argument: &str, view: &mut ConversationView) {
    let servers = servers.map(|servers| servers.all()).unwrap_or_default();
    if servers.is_empty() {
        let text = "there are no MCP servers; `cairn mcp add` adds one, and a project has them in .mcp.json";
        return view.page.note(text, TextStyle::PLAIN);
    }
    let mut words = argument.split_whitespace();
    let (name, action) = (words.next().unwrap_or_default(), words.next());
    if name.is_empty() {
        let row = |server: &Arc<SessionServer>| {
            (server.name.clone(), format!("{}{}", state_text(server), origin_text(server)))
        };
        return view.table(&servers.iter().map(row).collect::<Vec<_>>(), TextStyle::BOLD);
    }
    let Some(server) = servers.iter().find(|server| server.name == name) else {
        return view.page.note(&format!("there is no MCP server {name}"), TextStyle::PLAIN);
    };
    match action {
        None => show(server, view),
        Some("off") => {
            let server = server.clone();
            view.page.note(&format!("{name} is switched off for this session"), TextStyle::PLAIN);
            tokio::spawn(async move { server.switch_off().await });
        }
        Some("on" | "reconnect") => {
            let server = server.clone();
            view.page.note(&format!("connecting {name}; /mcp shows the outcome"), TextStyle::PLAIN);
            tokio::spawn(async move { server.connect().await });
        }
        Some(other) => {
            let text = format!("/mcp {name} {other}: use on, off or reconnect");
            view.page.note(&text, TextStyle::PLAIN);
        }
    }
}

fn show(server: &Arc<SessionServer>, view: &mut ConversationView) {
    let mut rows = vec![(server.name.clone(), format!("{}{}", state_text(server), origin_text(server)))];
    if let Some(status) = server.status() {
        let named = server.tool_names().into_iter().zip(&status.tools);
        rows.extend(named.map(|(name, tool)| (name, one_line(&tool.description, ABOUT))));
        let named = server.prompt_names().into_iter().zip(&status.prompts);
        let about = |text: Option<&String>| one_line(text.map_or("", String::as_str), ABOUT);
        rows.extend(named.map(|(name, prompt)| (format!("/{name}"), about(prompt.description.as_ref()))));
        let resource =
            |resource: &mcp::ResourceOffer| (format!("@{}:{}", server.name, resource.uri), about(Some(&resource.name)));
        rows.extend(status.resources.iter().map(resource));
        rows.extend(status.problems.iter().map(|problem| ("problem".to_owned(), problem.clone())));
    }
    view.table(&rows, TextStyle::BOLD);
}

fn state_text(server: &SessionServer) -> String {
    match server.defined.as_ref().map(|defined| &defined.approval) {
        Some(ServerApproval::Needed(_)) => "not started: you have not agreed to it".to_owned(),
        Some(ServerApproval::Disabled(place)) => format!("switched off in {place}"),
        Some(ServerApproval::Approved) | None => state_words(server),
    }
}

fn origin_text(server: &SessionServer) -> String {
    server
        .defined
        .as_ref()
        .map(|defined| format!(" ({}, {})", defined.author.name(), defined.place))
        .unwrap_or_default()
}
