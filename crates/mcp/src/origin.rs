//! HTTP clients that stay at one origin.
//!
//! What is sent may be secret, so no redirect leads to another host, port or scheme, and none turns a request into another.

use std::time::Duration;

use reqwest::{StatusCode, Url, redirect};

/// For a connection, TLS included.
const CONNECT: Duration = Duration::from_secs(20);
/// Redirects within one origin, such as to the same path with a slash.
const MOST_REDIRECTS: usize = 3;

/// A client for one origin.
pub(crate) fn client(url: &Url) -> Result<reqwest::Client, String> {
    let _ = rustls::crypto::ring::default_provider().install_default(); // it may be so already
    let origin = url.origin();
    let policy = redirect::Policy::custom(move |attempt| {
        let same = attempt.url().origin() == origin;
        let repeated = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        match same && repeated && attempt.previous().len() <= MOST_REDIRECTS {
            true => attempt.follow(),
            false => attempt.stop(),
        }
    });
    let builder = reqwest::Client::builder()
        .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
        .redirect(policy)
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(CONNECT);
    let builder = if is_loopback(url) { builder.no_proxy() } else { builder };
    // A machine without certificates can still speak plain HTTP.
    let builder = if url.scheme() == "http" { builder.tls_certs_only([]) } else { builder };
    builder
        .build()
        .map_err(|_| "the HTTP client could not be set up: are there certificates on this machine?".to_owned())
}

/// True if an address is on this machine, whatever a resolver says.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
