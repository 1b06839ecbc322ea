//! Headers of requests and answers, and what the head of an answer means.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode, Url};
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError, StreamableHttpError};

use super::Failure;

/// Names of the protocol's own headers.
pub(super) const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
/// Headers that belong to the protocol, not to a definition.
const RESERVED: [&str; 6] = ["accept", "content-length", "content-type", "host", "last-event-id", "mcp-session-id"];

/// Headers of a definition, as far as they are its own to set.
pub(super) fn header_map(headers: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let parsed =
            HeaderName::try_from(name.as_str()).map_err(|_| format!("the header {name:?} has an invalid name"))?;
        if RESERVED.contains(&parsed.as_str()) {
            return Err(format!("the header {name:?} belongs to the protocol"));
        }
        let mut value =
            HeaderValue::try_from(value.as_str()).map_err(|_| format!("the header {name:?} has an invalid value"))?;
        value.set_sensitive(true);
        map.insert(parsed, value);
    }
    Ok(map)
}

pub(super) fn protocol_headers(
    session: Option<&str>,
    last_event: Option<&str>,
    custom: HashMap<HeaderName, HeaderValue>,
) -> HeaderMap {
    let mut headers: HeaderMap = custom.into_iter().collect();
    for (name, value) in [(SESSION, session), (LAST_EVENT, last_event)] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}

/// The failure of a response that asks for a login or for more rights.
pub(super) fn challenged(response: &Response) -> Option<Failure> {
    let header = response.headers().get(WWW_AUTHENTICATE).and_then(|header| header.to_str().ok());
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(header.unwrap_or_default().to_owned())))
        }
        StatusCode::FORBIDDEN => {
            let header = header.filter(|header| header.contains("insufficient_scope"))?;
            let error = InsufficientScopeError::new(header.to_owned(), scope_of(header));
            Some(StreamableHttpError::InsufficientScope(error))
        }
        _ => None,
    }
}

/// The scope that a challenge names.
pub(crate) fn scope_of(header: &str) -> Option<String> {
    let rest = header.split_once("scope=")?.1;
    let scope = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split([',', ' ']).next(),
    };
    scope.filter(|scope| !scope.is_empty()).map(str::to_owned)
}

pub(super) fn redirected(response: &Response) -> Failure {
    let location = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
    let host = location.and_then(|to| Url::parse(to).ok()).and_then(|to| to.host_str().map(str::to_owned));
    let to = host.map_or_else(String::new, |host| format!(" to {host}"));
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!(
        "a redirect{to}, which is not followed: put the final address into the definition"
    )))
}

pub(super) fn has_type(response: &Response, kind: &str) -> bool {
    let header = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    header.is_some_and(|header| header.get(..kind.len()).is_some_and(|own| own.eq_ignore_ascii_case(kind.as_bytes())))
}

/// The beginning of a body, for an error.
pub(super) fn quoted(body: &[u8]) -> String {
    const EXCERPT: usize = 200;
    let text = String::from_utf8_lossy(&body[..body.len().min(EXCERPT)]).into_owned();
    if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) }
}
