//! One POST of JSON to a URL, such as a hook's: to that host alone, without following redirects.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;

use super::{APP, Patience, Server};

/// Size limit of an answer.
const LIMIT: usize = 4 << 20;

/// Answer of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The text.
    pub text: String,
}

/// Posts JSON. The error says in words why it failed.
pub async fn post(
    url: &str,
    headers: &BTreeMap<String, String>,
    body: String,
    patience: Duration,
) -> Result<HttpAnswer, String> {
    let mut all = HeaderMap::new();
    all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is not a valid header name"))?;
        let mut value: HeaderValue = value.parse().map_err(|_| format!("the header {name} has an invalid value"))?;
        value.set_sensitive(true);
        all.insert(name, value);
    }
    let patience = Patience { connect: patience, answer: patience, idle: patience };
    let mut server = Server::new(url, str::to_owned, APP, &HeaderMap::new(), SecretString::default(), patience)
        .map_err(|error| error.to_string())?;
    // As it was given: what is no API has no root.
    server.base = Url::parse(url.trim()).map_err(|error| error.to_string())?;
    let request = server.client.post(server.base.clone()).headers(all).body(body);
    let response = match tokio::time::timeout(patience.answer, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(super::deepest(&error)),
        Err(_) => return Err(format!("no answer within {} s", patience.answer.as_secs_f64())),
    };
    let status = response.status().as_u16();
    let body = server.whole(response, LIMIT).await.map_err(|broken| broken.to_string())?;
    Ok(HttpAnswer { status, text: String::from_utf8_lossy(&body).into_owned() })
}
