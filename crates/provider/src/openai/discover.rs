//! Servers on this machine, found by asking.
//!
//! Each address is asked for its models, all at once and with little patience; whoever answers with a list of them is a
//! server. The list also tells what kind it is, and often how long a prompt may be; Ollama and LM Studio are asked once
//! more for that. Only addresses of this machine are ever asked, whatever the caller passes in.
//!
//! The window is what the server runs with now, not what the model was trained for: Ollama loads a model of 128 K with a
//! window of 4 K and silently cuts what does not fit. Where only the latter is known, the window is not.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Url;
use reqwest::header::HeaderMap;
use secrecy::SecretString;
use serde_json::Value;

use crate::http::{APP, Patience, Server, is_loopback};

/// Default addresses of the usual servers: Ollama, llama.cpp, LM Studio, vLLM.
pub const USUAL: [&str; 4] =
    ["http://127.0.0.1:11434/v1", "http://127.0.0.1:8080/v1", "http://127.0.0.1:1234/v1", "http://127.0.0.1:8000/v1"];

/// Time limits for a server on this machine to list its models.
pub const QUICK: Patience = Patience {
    connect: Duration::from_millis(300),
    answer: Duration::from_millis(1000),
    idle: Duration::from_millis(1000),
};

/// Size limit of a list of models, in bytes.
const LIST_LIMIT: usize = 4 << 20;

/// A server that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredServer {
    /// Its address, as given by the caller.
    pub base_url: String,
    /// Its kind, as far as its answer tells.
    pub kind: Kind,
    /// The models it offers, in its order.
    pub models: Vec<String>,
    /// Current limit on the tokens of a prompt with its reply: the smallest of all models whose window is known.
    pub window: Option<u64>,
}

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Ollama.
    Ollama,
    /// llama.cpp's own server, or one built on it.
    LlamaCpp,
    /// LM Studio.
    LmStudio,
    /// vLLM.
    Vllm,
    /// Another one.
    Other,
}

/// The servers among these addresses, in their order; see [`USUAL`] and [`QUICK`].
pub async fn discover(base_urls: &[&str], patience: Patience) -> Vec<DiscoveredServer> {
    let found = join_all(base_urls.iter().map(|base_url| ask(base_url, patience))).await;
    found.into_iter().flatten().collect()
}

async fn ask(base_url: &str, patience: Patience) -> Option<DiscoveredServer> {
    let host = Url::parse(base_url).ok()?.host_str()?.to_owned();
    if !is_loopback(&host) {
        return None;
    }
    let server = Server::new(base_url, super::root, APP, &HeaderMap::new(), SecretString::default(), patience).ok()?;
    let list = get(&server, "models").await?;
    let listed = list["data"].as_array()?;
    let models: Vec<String> = listed.iter().filter_map(|model| Some(model["id"].as_str()?.to_owned())).collect();
    if models.len() < listed.len() {
        return None;
    }
    let kind = kind(listed);
    let window = match kind {
        Kind::Ollama => smallest(&get(&server, "../api/ps").await.unwrap_or_default(), "models", &["context_length"]),
        Kind::LmStudio => {
            smallest(&get(&server, "../api/v0/models").await.unwrap_or_default(), "data", &["loaded_context_length"])
        }
        Kind::LlamaCpp => match smallest(&list, "data", &["meta", "n_ctx"]) {
            Some(window) => Some(window),
            // Older versions tell only here.
            None => get(&server, "../props").await.unwrap_or_default()["default_generation_settings"]["n_ctx"].as_u64(),
        },
        Kind::Vllm | Kind::Other => smallest(&list, "data", &["max_model_len"]),
    };
    Some(DiscoveredServer { base_url: base_url.to_owned(), kind, models, window })
}

/// Kind of server, from the owner that its models name.
fn kind(models: &[Value]) -> Kind {
    let owner = models.iter().find_map(|model| model["owned_by"].as_str());
    match owner {
        Some("llamacpp") => Kind::LlamaCpp,
        Some("vllm") => Kind::Vllm,
        Some("library") => Kind::Ollama,
        Some("organization_owner") => Kind::LmStudio,
        _ => Kind::Other,
    }
}

/// The smallest number at a place in each entry of a list, where there is one.
fn smallest(answer: &Value, list: &str, place: &[&str]) -> Option<u64> {
    let entries = answer[list].as_array()?;
    entries.iter().filter_map(|entry| place.iter().fold(entry, |value, key| &value[*key]).as_u64()).min()
}

/// The server's JSON answer; none if it refuses or answers otherwise.
async fn get(server: &Server, path: &str) -> Option<Value> {
    let response = server.get(path).await.ok().filter(|response| response.status().is_success())?;
    let body = server.whole(response, LIST_LIMIT).await.ok()?;
    serde_json::from_slice(&body).ok()
}
