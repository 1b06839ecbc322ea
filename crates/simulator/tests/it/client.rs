//! A client just big enough to ask, and to read what comes back.

use serde_json::{Value, json};
use simulator::{Options, Script, Simulator};

/// 512 tokens are enough to be cached on this model.
pub(crate) const MODEL: &str = "claude-opus-5";

/// What makes HTTP clients. They want a TLS library, though nothing here is encrypted.
pub(crate) fn http() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default(); // another test may have
    reqwest::Client::builder().no_proxy()
}

pub(crate) struct Client {
    pub(crate) simulator: Simulator,
    http: reqwest::Client,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect(&self.text)
    }

    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }

    /// The events of a stream: name and data.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        self.text
            .split("\n\n")
            .filter(|event| !event.is_empty())
            .map(|event| {
                let (name, data) = event.split_once('\n').expect(event);
                let name = name.strip_prefix("event: ").expect(event).to_owned();
                (name, serde_json::from_str(data.strip_prefix("data: ").expect(event)).expect(data))
            })
            .collect()
    }
}

impl Client {
    pub(crate) async fn new(script: &str) -> Self {
        Self::with(script, Options::default()).await
    }

    pub(crate) async fn with(script: &str, options: Options) -> Self {
        let simulator = Simulator::start(Script::parse(script).unwrap(), options).await.unwrap();
        Self { simulator, http: http().build().unwrap() }
    }

    pub(crate) fn post(&self, path: &str) -> reqwest::RequestBuilder {
        self.http
            .post(format!("{}{path}", self.simulator.url()))
            .header("x-api-key", "test")
            .header("anthropic-version", "2023-06-01")
    }

    pub(crate) fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.http.get(format!("{}{path}", self.simulator.url()))
    }

    pub(crate) async fn send(&self, body: &Value) -> Answer {
        self.send_with_beta(body, "").await
    }

    pub(crate) async fn send_with_beta(&self, body: &Value, beta: &str) -> Answer {
        read(self.post("/v1/messages").header("anthropic-beta", beta).body(body.to_string())).await
    }

    /// The reply, which must be one.
    pub(crate) async fn reply(&self, body: &Value) -> Value {
        let answer = self.send(body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    /// The usage: input, creation, read.
    pub(crate) async fn usage(&self, body: &Value) -> [u64; 3] {
        let usage = self.reply(body).await["usage"].clone();
        ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
            .map(|key| usage[key].as_u64().expect(key))
    }
}

pub(crate) async fn read(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Answer { status, headers, text: response.text().await.unwrap() }
}

/// A request with these messages.
pub(crate) fn body(messages: Value) -> Value {
    json!({"model": MODEL, "max_tokens": 1024, "messages": messages})
}

/// A text block of about `tokens` tokens that begins with `name`.
pub(crate) fn text(name: &str, tokens: usize) -> Value {
    json!({"type": "text", "text": format!("{name} {}", "word ".repeat(tokens * 100 / 136))})
}

pub(crate) fn marked(mut block: Value, ttl: &str) -> Value {
    block["cache_control"] = json!({"type": "ephemeral", "ttl": ttl});
    block
}
