//! What a user's message takes from MCP servers: a prompt, called like a command, and resources named as `@server:uri`.
//!
//! The text is the server's. It is quoted and stands beside the message, never as the user's own words.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use extensions::expand::split_arguments;
use mcp::{PromptOffer, ServerState};
use memory::quoting::quoted;
use session::LineMeta;
use tokio_util::sync::CancellationToken;
use transcript::block::Kind;
use transcript::{Block, Injected, Outcome, Purpose};

use super::Agent;
use crate::live::LiveSession;
use crate::servers::{ServerTools, SessionServer};

/// The beginning of a line that calls a prompt.
const PROMPT: &str = "/mcp__";
/// Time that a message waits for the server that it names, as for tools.
const PATIENCE: Duration = Duration::from_secs(5);

/// Text of a server for the model, beside a message.
#[derive(Default)]
pub(super) struct ServerText {
    /// Pictures and documents, which stand before the message's text.
    pub(super) media: Vec<Block>,
    /// The text, if there is any.
    pub(super) text: Option<(Injected, LineMeta)>,
}

/// The prompt that a message calls, if it calls one; or why it cannot be called.
pub(super) async fn prompt_in(
    agent: &mut Agent,
    message: &str,
    cancel: &CancellationToken,
) -> Result<ServerText, String> {
    let nothing = ServerText::default();
    let Some(servers) = agent.driver.live.work.servers.clone().filter(|_| message.starts_with(PROMPT)) else {
        return Ok(nothing);
    };
    if servers.servers().is_empty() {
        return Ok(nothing);
    }
    let (name, typed) = message.split_once(char::is_whitespace).unwrap_or((message, ""));
    let not_called = |why: &str| format!("{name} was not called: {why}");
    servers.servers().settled(PATIENCE, |_| true).await;
    let found = servers.find_prompt(name.trim_start_matches('/'));
    let (server, prompt) = found.ok_or_else(|| not_called("no connected server has such a prompt; /mcp lists them"))?;
    let connection = server.connection().ok_or_else(|| not_called("its server is not connected"))?;
    let arguments = arguments(&prompt, typed).map_err(|why| not_called(&why))?;
    let reply = tokio::select! {
        reply = connection.prompt(&prompt.name, arguments) => reply.map_err(|error| not_called(&error.to_string()))?,
        () = cancel.cancelled() => return Err(not_called("it was cancelled")),
    };
    let heading = format!(
        "The user called {}, a prompt of the MCP server {}. Do what the user asks with it:",
        quoted(name),
        quoted(&server.name)
    );
    Ok(text(&mut agent.driver.live, &heading, reply.blocks, Purpose::Skill))
}

/// The resource that a word names, with its text; none if it names none. An error is for the user.
pub(super) async fn resource(
    agent: &mut Agent,
    word: &str,
    cancel: &CancellationToken,
) -> Option<Result<ServerText, String>> {
    let servers = agent.driver.live.work.servers.clone()?;
    let (server, uri) = named_resource(&servers, word)?;
    if agent.driver.gate.consent.policy.rules.forbid(&server.tool_name("read_resource")) {
        return Some(Err(format!("a rule denies what {} has", server.name)));
    }
    servers.servers().settled(PATIENCE, |other| other.name == server.name).await;
    let connection = server.connection()?;
    // The end of a sentence is no part of an address, unless the server has such a one.
    let is_offered = server.status().is_some_and(|status| status.resources.iter().any(|known| known.uri == uri));
    let uri = if is_offered { uri } else { uri.trim_end_matches(super::attachments::SENTENCE_ENDS) };
    let reply = tokio::select! {
        reply = connection.read_resource(uri) => reply,
        () = cancel.cancelled() => return Some(Err("it was cancelled".to_owned())),
    };
    Some(match reply {
        Ok(reply) if reply.outcome == Outcome::Done => {
            let heading =
                format!("The user's message names {}, a resource of an MCP server. It holds:", quoted(&word[1..]));
            Ok(text(&mut agent.driver.live, &heading, reply.blocks, Purpose::Attached))
        }
        Ok(_) => Err("the server could not read it".to_owned()),
        Err(error) => Err(error.to_string()),
    })
}

/// The server and the address of a word such as `@server:uri`: of several servers, the one with the longest name.
fn named_resource<'w>(servers: &ServerTools, word: &'w str) -> Option<(Arc<SessionServer>, &'w str)> {
    let rest = word.strip_prefix('@')?;
    let all = servers.servers().all().into_iter().filter(|server| server.connection().is_some());
    let named = all.filter_map(|server| {
        let uri = rest.strip_prefix(server.name.as_str())?.strip_prefix(':')?;
        (!uri.is_empty()).then_some((server, uri))
    });
    named.max_by_key(|(server, _)| server.name.len())
}

/// Arguments of a prompt, from words as a shell has them; the last takes all that are left.
fn arguments(prompt: &PromptOffer, typed: &str) -> Result<BTreeMap<String, String>, String> {
    let mut words = split_arguments(typed);
    let count = prompt.arguments.len();
    if count == 0 && !words.is_empty() {
        return Err("it takes no arguments".to_owned());
    }
    if count > 0 && words.len() > count {
        let rest = words.split_off(count - 1).join(" ");
        words.push(rest);
    }
    if let Some(missing) = prompt.arguments.iter().skip(words.len()).find(|argument| argument.required) {
        let names: Vec<&str> = prompt.arguments.iter().map(|argument| argument.name.as_str()).collect();
        return Err(format!("{} is missing; it takes {}", missing.name, names.join(" ")));
    }
    Ok(prompt.arguments.iter().map(|argument| argument.name.clone()).zip(words).collect())
}

/// What a server says, bounded and quoted.
fn text(live: &mut LiveSession, heading: &str, blocks: Vec<Block>, purpose: Purpose) -> ServerText {
    let is_media = |block: &Block| matches!(block.kind(), Kind::Image | Kind::Document);
    let (media, texts): (Vec<Block>, Vec<Block>) = blocks.into_iter().partition(is_media);
    let whole = texts.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n");
    let id = format!("server-{}", live.session.world().fresh_id());
    let bounded = live.bounded_output(&id, &whole);
    let text = (!bounded.trim().is_empty()).then(|| format!("{heading}\n\n{}", quoted(&bounded)));
    ServerText { media, text: text.map(|text| (Injected::new(purpose, &text), LineMeta::default())) }
}

impl ServerTools {
    /// The prompt that is called by a name, if its server is connected.
    fn find_prompt(&self, name: &str) -> Option<(Arc<SessionServer>, PromptOffer)> {
        self.servers().all().into_iter().find_map(|server| {
            let status = server.status().filter(|status| status.state == ServerState::Ready)?;
            let at = server.prompt_names().iter().position(|known| known == name)?;
            Some((server, status.prompts.get(at)?.clone()))
        })
    }
}

#[cfg(test)]
mod tests {
    use mcp::PromptArgument;

    use super::*;

    fn prompt(names: &[(&str, bool)]) -> PromptOffer {
        let argument = |(name, required): &(&str, bool)| PromptArgument {
            name: (*name).to_owned(),
            description: None,
            required: *required,
        };
        PromptOffer { name: "p".to_owned(), description: None, arguments: names.iter().map(argument).collect() }
    }

    /// MCP-1: arguments of a prompt are words, quotes hold them together, and the last takes the rest.
    #[test]
    fn arguments_are_words_in_the_prompts_order() {
        let two = prompt(&[("city", true), ("state", false)]);
        let of = |typed: &str| arguments(&two, typed).map(|found| found.into_values().collect::<Vec<_>>());
        assert_eq!(of("'New York' NY"), Ok(vec!["New York".to_owned(), "NY".to_owned()]));
        assert_eq!(of("Rome"), Ok(vec!["Rome".to_owned()]));
        assert_eq!(of("Rome and all the rest"), Ok(vec!["Rome".to_owned(), "and all the rest".to_owned()]));
        assert_eq!(of(""), Err("city is missing; it takes city state".to_owned()));
        assert_eq!(arguments(&prompt(&[]), "x"), Err("it takes no arguments".to_owned()));
        assert_eq!(arguments(&prompt(&[]), " "), Ok(BTreeMap::new()));
    }
}
