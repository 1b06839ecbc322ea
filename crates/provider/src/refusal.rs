//! Meaning of a server's errors.
//!
//! An error comes as an HTTP status with a JSON body, or as an event in the middle of a stream, or as something else
//! altogether from a proxy on the way. All of them are classified here, by what the caller can do about them. The
//! shapes and words are those of every dialect at once: servers that speak two of them report errors in only one.

use reqwest::Response;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, FailedAttempt, NextAttempt};
use crate::http::{EXCERPT, Server};
use crate::overflow;
use crate::retry::{is_worth_retrying, requested_wait};

/// Size limit for reading an error's body.
const BODY_LIMIT: usize = 64 << 10;
/// Characters of the API's own words that an error repeats.
const WORDS: usize = 2_000;

/// Phrases of servers that cannot call tools, because of the model or of how they were started: Ollama, llama.cpp,
/// vLLM, OpenRouter, Groq. llama.cpp uses status 500.
const NO_TOOLS: [&str; 6] = [
    "does not support tools",
    "tools param requires --jinja",
    "requires --enable-auto-tool-choice",
    "found that support tool use",
    "does not support function calling",
    "tool calling` is not supported",
];

/// Phrases that llama.cpp sends with status 500 although the request itself is wrong and would fail again.
const WRONG_ALL_THE_SAME: [&str; 2] = ["is not supported", "jinja"];

/// `{"error":{…}}` or `{"error":"…"}`, in a body or an event.
#[derive(Debug, Deserialize)]
pub(crate) struct Complaint {
    error: RefusalBody,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RefusalBody {
    Words(String),
    Details(Details),
}

/// Any of it may be missing or null.
#[derive(Debug, Default, Deserialize)]
struct Details {
    #[serde(rename = "type")]
    kind: Option<String>,
    message: Option<String>,
    /// A name at OpenAI, an HTTP status elsewhere.
    code: Option<Value>,
    #[serde(rename = "n_prompt_tokens")]
    tokens: Option<u64>,
    #[serde(rename = "n_ctx")]
    limit: Option<u64>,
}

impl Details {
    fn of_words(words: String) -> Self {
        Self { message: Some(words), ..Self::default() }
    }

    /// An error's body. Some servers leave out the frame around it.
    fn of_body(body: &[u8]) -> Option<Self> {
        match serde_json::from_slice::<Complaint>(body) {
            Ok(Complaint { error: RefusalBody::Details(details) }) => Some(details),
            Ok(Complaint { error: RefusalBody::Words(words) }) => Some(Self::of_words(words)),
            Err(_) => serde_json::from_slice(body).ok().filter(|bare: &Self| bare.message.is_some()),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.kind.as_deref() == Some(name) || self.code.as_ref().and_then(Value::as_str) == Some(name)
    }

    /// The HTTP status that fits the error.
    fn status(&self) -> u16 {
        const STATUSES: [(&str, u16); 14] = [
            ("invalid_request_error", 400),
            ("exceed_context_size_error", 400),
            ("context_length_exceeded", 400),
            ("authentication_error", 401),
            ("invalid_api_key", 401),
            ("billing_error", 402),
            ("permission_error", 403),
            ("not_found_error", 404),
            ("conflict_error", 409),
            ("request_too_large", 413),
            ("rate_limit_error", 429),
            ("unavailable_error", 503),
            ("timeout_error", 504),
            ("overloaded_error", 529),
        ];
        let code = self.code.as_ref().and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let told = code.filter(|code| (400..600).contains(code));
        let named = || STATUSES.iter().find(|(name, _)| self.is_called(name)).map(|(_, status)| *status);
        told.or_else(named).unwrap_or(500)
    }
}

/// Classifies an answer whose status is not 2xx.
pub(crate) async fn of_response(server: &Server, response: Response) -> FailedAttempt {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = server.beginning(response, BODY_LIMIT).await;
    if (300..400).contains(&status) {
        let target = headers.get("location").and_then(|target| target.to_str().ok()).unwrap_or("another place");
        return server.malformed(format!("a redirection to {}, which is not followed", server.quote(target, EXCERPT)));
    }
    let (details, limit) = match Details::of_body(&body) {
        Some(details) => (details, WORDS),
        None if body.is_empty() => (Details::of_words("the answer is empty".to_owned()), WORDS),
        None => (Details::of_words(String::from_utf8_lossy(&body).into_owned()), EXCERPT),
    };
    let words = server.quote(details.message.as_deref().unwrap_or_default(), limit);
    judge(server.host(), status, &details, words, &headers)
}

/// Classifies an error in a body or stream whose status was 200.
pub(crate) fn of_complaint(server: &Server, complaint: &Complaint) -> FailedAttempt {
    let bare;
    let details = match &complaint.error {
        RefusalBody::Details(details) => details,
        RefusalBody::Words(words) => {
            bare = Details::of_words(words.clone());
            &bare
        }
    };
    let words = server.quote(details.message.as_deref().unwrap_or_default(), WORDS);
    judge(server.host(), details.status(), details, words, &HeaderMap::new())
}

fn judge(host: &str, status: u16, details: &Details, message: String, headers: &HeaderMap) -> FailedAttempt {
    let host = host.to_owned();
    let lower = message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|words| lower.contains(words));
    let is_too_long = || {
        let is_named = details.is_called("context_length_exceeded") || details.is_called("exceed_context_size_error");
        matches!(status, 400 | 422 | 500) && (is_named || overflow::is_meant(&message))
    };
    let error = match status {
        401 | 403 => Error::Auth { host, status, message },
        402 => Error::Billing { host, message },
        400 if message.contains("credit balance is too low") => Error::Billing { host, message },
        429 if details.is_called("insufficient_quota") => Error::Billing { host, message },
        413 => Error::Overflow { tokens: None, limit: None, message },
        _ if is_too_long() => {
            let (tokens, limit) = overflow::numbers(&message);
            Error::Overflow { tokens: details.tokens.or(tokens), limit: details.limit.or(limit), message }
        }
        400 if is_media(&lower) => Error::MediaTooLarge { host, place: place_in(&message), message },
        400..=501 if says(&NO_TOOLS) => Error::NoTools { host, message },
        500 if says(&WRONG_ALL_THE_SAME) => Error::Refused { host, status, message },
        408 | 409 | 429 | 500.. => Error::Busy { host, status, after: requested_wait(headers), message },
        _ => Error::Refused { host, status, message },
    };
    let then = match &error {
        // A status that is worth it in general, but not with these words.
        Error::Billing { .. } | Error::Overflow { .. } | Error::NoTools { .. } | Error::MediaTooLarge { .. } => {
            NextAttempt::GiveUp
        }
        Error::Refused { status: 500, .. } => NextAttempt::GiveUp,
        _ if is_worth_retrying(status, headers) => NextAttempt::Retry(requested_wait(headers)),
        _ => NextAttempt::GiveUp,
    };
    FailedAttempt { error, then }
}

/// True if a message says that a picture or document is too large, or that there are too many.
fn is_media(message: &str) -> bool {
    const MEDIA: [&str; 6] = ["image", "images", "pdf", "pdfs", "document", "documents"];
    let names = message.split(|c: char| !c.is_alphanumeric()).any(|word| MEDIA.contains(&word));
    let limits = ["exceed", "maximum", "too large", "too many", "at most"].iter().any(|word| message.contains(word));
    names && limits
}

/// The block that `messages.3.content.1…` names.
fn place_in(message: &str) -> Option<(usize, usize)> {
    let mut parts = message.split_once("messages.")?.1.split('.');
    let said = parts.next()?.parse().ok()?;
    let block = (parts.next()? == "content").then(|| parts.next())??;
    let digits = block.find(|c: char| !c.is_ascii_digit()).unwrap_or(block.len());
    Some((said, block[..digits].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;
    use serde_json::json;

    fn judged(status: u16, message: &str) -> FailedAttempt {
        judge("h", status, &Details::default(), message.to_owned(), &HeaderMap::new())
    }

    fn read(status: u16, body: &Value) -> FailedAttempt {
        let details = Details::of_body(body.to_string().as_bytes()).unwrap();
        let words = details.message.clone().unwrap_or_default();
        judge("h", status, &details, words, &HeaderMap::new())
    }

    #[test]
    fn too_long_is_told_with_its_numbers() {
        let message = "prompt is too long: 208310 tokens > 200000 maximum";
        let failure = judged(400, message);
        assert_eq!(failure.then, NextAttempt::GiveUp);
        let (tokens, limit) = (Some(208_310), Some(200_000));
        assert_eq!(failure.error, Error::Overflow { tokens, limit, message: message.into() });
        assert!(matches!(judged(413, "").error, Error::Overflow { tokens: None, .. }));
    }

    /// llama.cpp says it with numbers of their own, OpenAI with a name, vLLM without a frame, TGI in plain words.
    #[test]
    fn too_long_is_understood_in_every_shape() {
        for body in [
            json!({"error": {"code": 400, "message": "x", "type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 8}}),
            json!({"error": {"message": "maximum context length is 8 tokens. However, your messages resulted in 9 tokens", "code": "context_length_exceeded"}}),
            json!({"object": "error", "message": "maximum context length is 8 tokens. However, you requested 9 tokens", "code": 400}),
            json!({"error": "`inputs` tokens + `max_new_tokens` must be <= 8. Given: 9 `inputs` tokens"}),
        ] {
            let failure = read(400, &body);
            assert!(matches!(failure.error, Error::Overflow { tokens: Some(9), limit: Some(8), .. }), "{failure:?}");
        }
        let named = json!({"error": {"message": "Please shorten it.", "code": "context_length_exceeded"}});
        assert!(matches!(read(400, &named).error, Error::Overflow { tokens: None, limit: None, .. }));
        let failure = read(500, &json!({"error": "input length exceeds maximum context length"}));
        assert!(matches!(failure, FailedAttempt { error: Error::Overflow { .. }, then: NextAttempt::GiveUp }));
    }

    /// REACT-1: a picture that is too large is told from a request that is, with its place where the server names one.
    #[test]
    fn a_picture_that_is_too_large_is_named_by_its_place() {
        let message =
            "messages.2.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes";
        let failure = judged(400, message);
        assert!(matches!(failure.error, Error::MediaTooLarge { place: Some((2, 1)), .. }), "{failure:?}");
        assert_eq!(failure.then, NextAttempt::GiveUp);
        let pages = judged(400, "A maximum of 100 PDF pages may be provided.");
        assert!(matches!(pages.error, Error::MediaTooLarge { place: None, .. }));
        assert!(matches!(judged(400, "messages.0.content.1.image: field required").error, Error::Refused { .. }));
        let elsewhere = judged(400, "max_tokens: 99999 exceeds the maximum; see our documentation");
        assert!(matches!(elsewhere.error, Error::Refused { .. }), "{elsewhere:?}");
        assert!(matches!(judged(400, "Too many images: 101").error, Error::MediaTooLarge { .. }));
    }

    #[test]
    fn errors_are_sorted_by_what_can_be_done() {
        assert!(matches!(judged(401, "").error, Error::Auth { .. }));
        assert!(matches!(judged(403, "").error, Error::Auth { .. }));
        assert!(matches!(judged(402, "").error, Error::Billing { .. }));
        assert!(matches!(judged(400, "Your credit balance is too low to …").error, Error::Billing { .. }));
        assert!(matches!(judged(400, "messages.0: bad").error, Error::Refused { status: 400, .. }));
        assert!(matches!(judged(404, "model: x").error, Error::Refused { status: 404, .. }));
        for status in [408, 409, 429, 500, 503, 529] {
            let failure = judged(status, "");
            assert!(matches!(failure.error, Error::Busy { .. }));
            assert_eq!(failure.then, NextAttempt::Retry(None));
        }
        let broke = json!({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}});
        assert!(matches!(read(429, &broke), FailedAttempt { error: Error::Billing { .. }, then: NextAttempt::GiveUp }));
    }

    /// The status does not matter: waiting does not teach a model to call tools.
    #[test]
    fn a_model_without_tools_is_told_plainly_and_once() {
        for (status, message) in [
            (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
            (500, "tools param requires --jinja flag"),
            (400, "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"),
            (404, "No endpoints found that support tool use."),
        ] {
            let failure = judged(status, message);
            assert!(matches!(failure.error, Error::NoTools { .. }), "{failure:?}");
            assert_eq!(failure.then, NextAttempt::GiveUp);
            assert!(failure.error.to_string().contains("cannot call tools") && failure.error.hint().is_some());
        }
    }

    #[test]
    fn a_wrong_request_is_not_retried_though_the_server_takes_the_blame() {
        let failure = judged(500, "image input is not supported - hint: you may need to provide the mmproj");
        assert!(matches!(
            failure,
            FailedAttempt { error: Error::Refused { status: 500, .. }, then: NextAttempt::GiveUp }
        ));
    }

    #[test]
    fn an_error_in_a_stream_has_the_status_it_would_have_had() {
        for (body, status) in [
            (json!({"type": "overloaded_error"}), 529),
            (json!({"type": "server_error", "code": 503}), 503),
            (json!({"type": "server_error", "code": "server_error"}), 500),
            (json!({"type": null, "code": "invalid_api_key"}), 401),
            (json!({"code": 7}), 500),
        ] {
            assert_eq!(serde_json::from_value::<Details>(body).unwrap().status(), status);
        }
        assert!(serde_json::from_str::<Complaint>(r#"{"error":null}"#).is_err(), "no error at all");
    }

    #[test]
    fn a_limit_that_will_not_lift_is_not_retried() {
        let headers = [("x-should-retry", "false"), ("retry-after", "9")];
        let headers: HeaderMap =
            headers.map(|(k, v)| (k.parse().unwrap(), HeaderValue::from_static(v))).into_iter().collect();
        let failure = judge("h", 429, &Details::default(), "quota".into(), &headers);
        assert_eq!(failure.then, NextAttempt::GiveUp);
        assert!(matches!(failure.error, Error::Busy { after: Some(after), .. } if after.as_secs() == 9));
    }
}
