//! When to try again, and how long to wait before.
//!
//! The wait grows exponentially and is spread by a jitter that is a function of the request's bytes and the attempt:
//! no randomness, so a test can tell the wait beforehand, and two sessions still do not march in step. A server that
//! says how long to wait is obeyed to the letter, up to a limit beyond which waiting is the user's decision; one that asks
//! for less than our first wait, or for none, gets our own waits, or ten attempts would come at once.
//!
//! An attempt that failed is a *retry*; a reply that was lost on the way is a *restart*. Restarts cost the output that
//! was already paid for, so there are fewer of them. They do not resume in the middle: the request goes out again byte
//! for byte, and the prompt cache makes reading it cheap.

use std::future::Future;
use std::hash::Hasher;
use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::error::{Error, FailedAttempt, NextAttempt};
use crate::event::{Emit, Event};

/// Limits on attempts and waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Limit on attempts, the first included.
    pub attempts: u32,
    /// Limit on restarts after a reply that broke off.
    pub restarts: u32,
    /// The first wait; each further one is twice as long.
    pub first: Duration,
    /// The longest wait of our own choosing.
    pub longest: Duration,
    /// The longest wait a server may ask for. If it asks for more, the request fails at once and says so.
    pub longest_requested: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 10,
            restarts: 3,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(60),
            longest_requested: Duration::from_secs(300),
        }
    }
}

impl Retry {
    /// As persistent as the default, but without waits of its own. For tests and for servers on this machine.
    pub fn immediate() -> Self {
        Self { first: Duration::ZERO, ..Self::default() }
    }

    /// One attempt only.
    pub fn never() -> Self {
        Self { attempts: 1, restarts: 0, ..Self::default() }
    }

    /// The wait after `failed` attempts; none if the server asks for more than we are willing to wait.
    fn wait(&self, failed: u32, asked: Option<Duration>, seed: u64) -> Option<Duration> {
        if let Some(asked) = asked.filter(|asked| *asked >= self.first) {
            return (asked <= self.longest_requested).then_some(asked);
        }
        let doublings = failed.saturating_sub(1).min(31);
        let full = self.first.saturating_mul(1 << doublings).min(self.longest);
        // Between half of it and all of it.
        Some(full.mul_f64(0.5 + 0.5 * fraction(seed, failed)))
    }
}

/// Runs attempts until one succeeds or another makes no sense, telling the caller of each wait.
pub(crate) async fn persist<T, Attempt>(
    policy: &Retry,
    body: &[u8],
    emit: &Emit,
    attempt: impl Fn() -> Attempt,
) -> Result<T, Error>
where
    Attempt: Future<Output = Result<T, FailedAttempt>>,
{
    let mut failed = 0;
    let mut restarts = 0;
    loop {
        let FailedAttempt { error, then } = match attempt().await {
            Ok(value) => return Ok(value),
            Err(failure) => failure,
        };
        failed += 1;
        tracing::debug!(failed, %error, ?then, "attempt failed");
        let asked = match then {
            NextAttempt::GiveUp => return Err(error),
            NextAttempt::Retry(asked) => asked,
            NextAttempt::Restart if restarts < policy.restarts => {
                restarts += 1;
                None
            }
            NextAttempt::Restart => return Err(error),
        };
        if failed >= policy.attempts {
            return Err(error);
        }
        let Some(after) = policy.wait(failed, asked, seed(body)) else { return Err(error) };
        if emit.has_shown() {
            emit.send(Event::Restarted).await;
        }
        emit.send(Event::Retrying { attempt: failed, after, why: error }).await;
        tokio::time::sleep(after).await;
    }
}

/// True if a status is worth another attempt. The server's `x-should-retry` decides first.
pub(crate) fn is_worth_retrying(status: u16, headers: &HeaderMap) -> bool {
    match text(headers, "x-should-retry") {
        Some("true") => true,
        Some("false") => false,
        _ => matches!(status, 408 | 409 | 429 | 500..),
    }
}

/// The wait the server asks for: `retry-after-ms`, or `retry-after` in seconds or as a date.
///
/// A date is measured against the server's own `date` header: its clock and ours need not agree, and ours is not read.
pub(crate) fn requested_wait(headers: &HeaderMap) -> Option<Duration> {
    if let Some(milliseconds) = text(headers, "retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let after = text(headers, RETRY_AFTER.as_str())?;
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let then = httpdate::parse_http_date(after).ok()?;
    let now = httpdate::parse_http_date(text(headers, DATE.as_str())?).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// A number computed from a request's bytes: the same for the same request.
pub(crate) fn seed(body: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(body);
    hasher.finish()
}

/// A number in 0..1 that looks random and is not: the finaliser of SplitMix64.
fn fraction(seed: u64, attempt: u32) -> f64 {
    let mut x = seed.wrapping_add(u64::from(attempt).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^= x >> 31;
    (x >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|&(k, v)| (HeaderName::from_static(k), HeaderValue::from_static(v)));
        pairs.collect()
    }

    #[test]
    fn waits_double_up_to_the_longest_and_stay_within_half() {
        let policy = Retry::default();
        for seed in 0..200 {
            for (failed, full) in [(1, 500), (2, 1000), (3, 2000), (7, 32_000), (8, 60_000), (40, 60_000)] {
                let wait = policy.wait(failed, None, seed).unwrap();
                let full = Duration::from_millis(full);
                assert!(wait >= full / 2 && wait <= full, "{failed}: {wait:?}");
            }
        }
    }

    #[test]
    fn the_same_request_waits_the_same_time_and_another_a_different_one() {
        let policy = Retry::default();
        let wait = |body: &[u8]| policy.wait(3, None, seed(body));
        assert_eq!(wait(b"one"), wait(b"one"));
        assert_ne!(wait(b"one"), wait(b"two"));
    }

    #[test]
    fn a_server_is_obeyed_within_limits() {
        let policy = Retry::default();
        assert_eq!(policy.wait(1, Some(Duration::from_secs(200)), 0), Some(Duration::from_secs(200)));
        let small = Some(Duration::from_millis(10));
        assert_eq!(policy.wait(9, Some(Duration::ZERO), 0), policy.wait(9, None, 0));
        assert_eq!(policy.wait(9, small, 0), policy.wait(9, None, 0));
        assert_eq!(Retry::immediate().wait(9, small, 0), small);
        assert_eq!(policy.wait(1, Some(Duration::from_secs(301)), 0), None);
    }

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        let read = |pairs: &[(&'static str, &'static str)]| requested_wait(&headers(pairs));
        assert_eq!(read(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(read(&[("retry-after", "1.5")]), Some(Duration::from_millis(1500)));
        assert_eq!(read(&[("retry-after", "7"), ("retry-after-ms", "20")]), Some(Duration::from_millis(20)));
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(read(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"), date]), Some(Duration::from_secs(30)));
        assert_eq!(read(&[("retry-after", "Sun, 06 Nov 1994 08:40:00 GMT"), date]), Some(Duration::ZERO));
        assert_eq!(read(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")]), None);
        for nonsense in ["", "soon", "-3", "inf", "NaN", "1e300"] {
            assert_eq!(read(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn the_server_has_the_last_word_on_whether_to_retry() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert!(is_worth_retrying(status, &headers(&[])));
            assert!(!is_worth_retrying(status, &headers(&[("x-should-retry", "false")])));
        }
        for status in [400, 401, 402, 403, 404, 413] {
            assert!(!is_worth_retrying(status, &headers(&[])));
            assert!(is_worth_retrying(status, &headers(&[("x-should-retry", "true")])));
        }
    }

    fn busy() -> Error {
        Error::Busy { host: "h".into(), status: 529, after: None, message: String::new() }
    }

    /// Time is paused: the waits of ten attempts pass at once.
    #[tokio::test(start_paused = true)]
    async fn attempts_and_restarts_have_their_own_limits() {
        let count = async |then: NextAttempt| {
            let tries = std::sync::atomic::AtomicU32::new(0);
            let outcome: Result<(), Error> = persist(&Retry::default(), b"", &Emit::silent(), || async {
                tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Err(FailedAttempt { error: busy(), then })
            })
            .await;
            assert_eq!(outcome, Err(busy()));
            tries.into_inner()
        };
        assert_eq!(count(NextAttempt::GiveUp).await, 1);
        assert_eq!(count(NextAttempt::Retry(None)).await, 10);
        assert_eq!(count(NextAttempt::Restart).await, 4);
        assert_eq!(count(NextAttempt::Retry(Some(Duration::from_secs(301)))).await, 1);
    }
}
