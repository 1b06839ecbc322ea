//! What the API's errors mean.
//!
//! An error comes as an HTTP status with a JSON body, or as an event in the middle of a stream, or as something else
//! altogether from a proxy on the way. All of them are judged here, by what the caller can do about them.

use reqwest::Response;
use reqwest::header::HeaderMap;
use serde::Deserialize;

use crate::error::{Error, Failure, Then};
use crate::http::Server;
use crate::retry::{asked_wait, is_worth_retrying};

/// How much of an error's body is read.
const BODY_LIMIT: usize = 64 << 10;
/// How much of the API's own words an error repeats.
const WORDS: usize = 2_000;
/// How much of a text that is not from the API an error repeats.
pub(crate) const EXCERPT: usize = 200;

/// `{"type":"error","error":{…}}`, in a body or an event.
#[derive(Debug, Deserialize)]
pub(crate) struct Complaint {
    error: Details,
}

#[derive(Debug, Deserialize)]
struct Details {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    message: String,
}

/// Judges an answer whose status is not 2xx.
pub(crate) async fn of_response(server: &Server, response: Response) -> Failure {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = server.beginning(response, BODY_LIMIT).await;
    let words = match serde_json::from_slice::<Complaint>(&body) {
        Ok(complaint) => server.quote(&complaint.error.message, WORDS),
        Err(_) if body.is_empty() => "the answer is empty".to_owned(),
        Err(_) => server.quote(&String::from_utf8_lossy(&body), EXCERPT),
    };
    if (300..400).contains(&status) {
        let target = headers.get("location").and_then(|target| target.to_str().ok()).unwrap_or("another place");
        return server.malformed(format!("a redirection to {}, which is not followed", server.quote(target, EXCERPT)));
    }
    judge(server.host(), status, words, &headers)
}

/// Judges an error told in a body or stream whose status was 200.
pub(crate) fn of_complaint(server: &Server, complaint: &Complaint) -> Failure {
    let status = match complaint.error.kind.as_str() {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "conflict_error" => 409,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    };
    judge(server.host(), status, server.quote(&complaint.error.message, WORDS), &HeaderMap::new())
}

fn judge(host: &str, status: u16, message: String, headers: &HeaderMap) -> Failure {
    let host = host.to_owned();
    let after = asked_wait(headers);
    let then = if is_worth_retrying(status, headers) { Then::Retry(after) } else { Then::GiveUp };
    let error = match status {
        401 | 403 => Error::Auth { host, status, message },
        402 => Error::Billing { host, message },
        400 if message.contains("credit balance is too low") => Error::Billing { host, message },
        413 => Error::Overflow { tokens: None, limit: None, message },
        400 if is_overflow(&message) => {
            let (tokens, limit) = numbers(&message);
            Error::Overflow { tokens, limit, message }
        }
        408 | 409 | 429 | 500.. => Error::Busy { host, status, after, message },
        _ => Error::Refused { host, status, message },
    };
    Failure { error, then }
}

/// The API's two ways to say it, and those of servers that imitate it.
fn is_overflow(message: &str) -> bool {
    let message = message.to_lowercase();
    [
        "prompt is too long",
        "exceed context limit",
        "input is too long",
        "context length",
        "context size",
        "context window",
    ]
    .iter()
    .any(|words| message.contains(words))
}

/// `… : N tokens > M maximum`, or `… : N + K > M` where K is the output asked for: N and M.
fn numbers(message: &str) -> (Option<u64>, Option<u64>) {
    let Some((before, after)) = message.split_once('>') else { return (None, None) };
    let before = before.rsplit(':').next().unwrap_or(before);
    (first_number(before), first_number(after))
}

fn first_number(text: &str) -> Option<u64> {
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '_').unwrap_or(digits.len());
    digits[..end].replace([',', '_'], "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    fn judged(status: u16, message: &str) -> Failure {
        judge("h", status, message.to_owned(), &HeaderMap::new())
    }

    #[test]
    fn too_long_is_told_with_its_numbers() {
        for (message, tokens, limit) in [
            ("prompt is too long: 208310 tokens > 200000 maximum", Some(208_310), Some(200_000)),
            ("prompt is too long: 1,208,310 tokens > 1,000,000 maximum", Some(1_208_310), Some(1_000_000)),
            (
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
                Some(190_000),
                Some(200_000),
            ),
            ("prompt is too long", None, None),
            ("the request exceeds the available context size", None, None),
            ("prompt is too long: 99999999999999999999999 tokens > many", None, None),
        ] {
            let failure = judged(400, message);
            assert_eq!(failure.then, Then::GiveUp);
            assert_eq!(failure.error, Error::Overflow { tokens, limit, message: message.into() });
        }
        assert!(matches!(judged(413, "").error, Error::Overflow { tokens: None, .. }));
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
            assert_eq!(failure.then, Then::Retry(None));
        }
    }

    #[test]
    fn a_limit_that_will_not_lift_is_not_retried() {
        let headers = [("x-should-retry", "false"), ("retry-after", "9")];
        let headers: HeaderMap =
            headers.map(|(k, v)| (k.parse().unwrap(), HeaderValue::from_static(v))).into_iter().collect();
        let failure = judge("h", 429, "quota".into(), &headers);
        assert_eq!(failure.then, Then::GiveUp);
        assert!(matches!(failure.error, Error::Busy { after: Some(after), .. } if after.as_secs() == 9));
    }
}
