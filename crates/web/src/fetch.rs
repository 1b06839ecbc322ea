//! Fetches a page: one look-up of its name for each request, a judgement of every address, and a connection to exactly these.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use tokio::time::timeout;

use crate::address::is_public;
use crate::body::{Packing, decoded};
use crate::html::markdown_of;
use crate::page_url::PageUrl;

/// The most redirects that are followed.
const MOST_REDIRECTS: usize = 10;
/// The name of the program, for servers.
const PROGRAM: &str = concat!("cairn/", env!("CARGO_PKG_VERSION"));
/// Types of pages that are asked for: text that needs no conversion first.
const WANTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1";

/// Limits of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes that are read, packed or not.
    pub bytes: usize,
    /// Characters of the text that comes of it.
    pub characters: usize,
    /// Time for a connection.
    pub connect: Duration,
    /// Time for all of it, redirects included.
    pub whole: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            bytes: 5 * 1024 * 1024,
            // What a small model reads at once, as in Claude Code.
            characters: 100_000,
            connect: Duration::from_secs(10),
            whole: Duration::from_secs(60),
        }
    }
}

/// Finds the addresses of a name.
type LookUp = dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;
/// Judges whether an address may be contacted for a host.
type MayContact = dyn Fn(&PageUrl, IpAddr) -> bool + Send + Sync;

/// Fetches pages.
#[derive(Clone)]
pub struct PageFetch {
    limits: FetchLimits,
    look_up: Arc<LookUp>,
    may_contact: Arc<MayContact>,
}

/// The outcome of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedPage {
    /// The page.
    Page(WebPage),
    /// It is on another host now, which was not contacted.
    Moved {
        /// Its address there.
        to: String,
    },
}

/// A page as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebPage {
    /// Its address, after redirects.
    pub url: String,
    /// Its text; that of HTML as Markdown.
    pub text: String,
    /// True if it is longer than what is kept of it.
    pub is_cut: bool,
}

/// The reason why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address, or one that a redirect names, cannot be fetched.
    #[error("{0}")]
    Address(String),
    /// The host is not one of the public internet.
    #[error("{host} is at {address}, which is not a public address; the user's setting `webPrivateHosts` can allow it")]
    Private {
        /// The host.
        host: String,
        /// The first address that is not public.
        address: IpAddr,
    },
    /// Its name has no address, or the connection failed.
    #[error("{host} was not reached: {why}")]
    Unreached {
        /// The host.
        host: String,
        /// The reason.
        why: String,
    },
    /// The server answered that there is no such page, or with an error.
    #[error("{host} answered with the status {status}")]
    Status {
        /// The host.
        host: String,
        /// The status.
        status: u16,
    },
    /// The page is not text, or packed in a way that is not known.
    #[error("the page is {0}, which cannot be read as text")]
    NotText(String),
    /// It took too long.
    #[error("the page did not come within {} s", .0.as_secs())]
    Late(Duration),
}

impl fmt::Debug for PageFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageFetch").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl PageFetch {
    /// Contacts public addresses, and these hosts wherever they are: `name` or `name:port`.
    pub fn new(private_hosts: Vec<String>) -> Self {
        let may_contact = move |url: &PageUrl, address: IpAddr| {
            let host = url.host();
            let is_named = |known: &String| *known == host || *known == format!("{host}:{}", url.port());
            is_public(address) || private_hosts.iter().any(is_named)
        };
        let look_up = |host: String, port: u16| -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            Box::pin(async move {
                let found = tokio::net::lookup_host((host, port)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        };
        Self { limits: FetchLimits::default(), look_up: Arc::new(look_up), may_contact: Arc::new(may_contact) }
    }

    /// The same with other limits.
    #[must_use]
    pub fn with_limits(self, limits: FetchLimits) -> Self {
        Self { limits, ..self }
    }

    /// Fetches a page. Dropping the future ends it.
    pub async fn fetch(&self, url: &PageUrl) -> Result<FetchedPage, FetchError> {
        let whole = self.limits.whole;
        timeout(whole, self.follow(url.clone())).await.unwrap_or(Err(FetchError::Late(whole)))
    }

    async fn follow(&self, mut url: PageUrl) -> Result<FetchedPage, FetchError> {
        for _ in 0..=MOST_REDIRECTS {
            let answer = self.ask(&url).await?;
            let status = answer.status();
            if !status.is_redirection() {
                return self.page(&url, answer).await.map(FetchedPage::Page);
            }
            let host = url.host().to_owned();
            let location = header(answer.headers(), LOCATION.as_str());
            let Some(location) = location else { return Err(FetchError::Status { host, status: status.as_u16() }) };
            let to = url.join(&location).map_err(FetchError::Address)?;
            if !to.is_beside(&url) {
                self.judged_as_written(&to)?;
                return Ok(FetchedPage::Moved { to: to.to_string() });
            }
            url = to;
        }
        Err(FetchError::Address(format!("{} redirects more than {MOST_REDIRECTS} times", url.host())))
    }

    /// Asks for a page at the addresses that its host has now, all of which are judged.
    async fn ask(&self, url: &PageUrl) -> Result<reqwest::Response, FetchError> {
        let host = url.host().to_owned();
        let unreached = |why: String| FetchError::Unreached { host: host.clone(), why };
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => (self.look_up)(host.clone(), url.port()).await.map_err(|error| unreached(error.to_string()))?,
        };
        if let Some(address) = addresses.iter().find(|address| !(self.may_contact)(url, **address)) {
            return Err(FetchError::Private { host, address: *address });
        }
        if addresses.is_empty() {
            return Err(unreached("its name has no address".to_owned()));
        }
        // Port 0 stands for the address's own.
        let addresses: Vec<SocketAddr> = addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
        let _ = rustls::crypto::ring::default_provider().install_default(); // it may be so already
        let client = reqwest::Client::builder()
            .user_agent(PROGRAM)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(self.limits.connect)
            .resolve_to_addrs(&host, &addresses);
        let client = match url.url().scheme() {
            // A machine without certificates can still speak plain HTTP.
            "http" => client.tls_certs_only([]).build(),
            _ => client.build(),
        };
        let client = client.map_err(|error| unreached(deepest(&error)))?;
        let request = client.get(url.url().clone()).header(ACCEPT, WANTED).header(ACCEPT_ENCODING, "gzip");
        request.send().await.map_err(|error| unreached(deepest(&error)))
    }

    /// An address that stands in a redirect as a number is judged, though it is not contacted.
    fn judged_as_written(&self, url: &PageUrl) -> Result<(), FetchError> {
        match url.host().parse::<IpAddr>() {
            Ok(address) if !(self.may_contact)(url, address) => {
                Err(FetchError::Private { host: url.host().to_owned(), address })
            }
            _ => Ok(()),
        }
    }

    async fn page(&self, url: &PageUrl, answer: reqwest::Response) -> Result<WebPage, FetchError> {
        let host = url.host().to_owned();
        if !answer.status().is_success() {
            return Err(FetchError::Status { host, status: answer.status().as_u16() });
        }
        let packed = header(answer.headers(), CONTENT_ENCODING.as_str()).unwrap_or_default();
        let packing = Packing::named(&packed).ok_or_else(|| FetchError::NotText(format!("packed as {packed:.40}")))?;
        let (kind, charset) = content_type(answer.headers());
        if !is_text(&kind) {
            return Err(FetchError::NotText(format!("of the type {kind:.80}")));
        }
        let (mut bytes, mut is_longer, mut pieces) = (Vec::new(), false, answer.bytes_stream());
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| FetchError::Unreached { host: host.clone(), why: deepest(&error) })?;
            bytes.extend_from_slice(&piece[..piece.len().min(self.limits.bytes - bytes.len())]);
            if bytes.len() == self.limits.bytes {
                is_longer = true;
                break;
            }
        }
        drop(pieces);
        let limits = self.limits;
        // A long page takes its time.
        let read = tokio::task::spawn_blocking(move || text_of(packing, bytes, &kind, charset.as_deref(), limits));
        let (text, is_cut) = read.await.map_err(|_| FetchError::NotText("damaged".to_owned()))?;
        Ok(WebPage { url: url.to_string(), text, is_cut: is_cut || is_longer })
    }
}

/// The text of a body, and whether there was more.
fn text_of(packing: Packing, bytes: Vec<u8>, kind: &str, charset: Option<&str>, limits: FetchLimits) -> (String, bool) {
    let (bytes, mut is_cut) = packing.unpack(bytes, limits.bytes);
    let mut text = decoded(&bytes, charset);
    let begins = |start: &str| text.trim_start().get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start));
    if kind.contains("html") || kind.is_empty() && (begins("<!doctype html") || begins("<html")) {
        text = markdown_of(&text);
    }
    if let Some((at, _)) = text.char_indices().nth(limits.characters) {
        text.truncate(at);
        is_cut = true;
    }
    (text, is_cut)
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The type of a page in small letters, empty if it has none, and its encoding.
fn content_type(headers: &HeaderMap) -> (String, Option<String>) {
    let text = header(headers, CONTENT_TYPE.as_str()).unwrap_or_default().to_ascii_lowercase();
    let (kind, parameters) = text.split_once(';').unwrap_or((text.as_str(), ""));
    let charset = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("charset="));
    (kind.trim().to_owned(), charset.map(|label| label.trim_matches(['"', '\'', ' ']).to_owned()))
}

fn is_text(kind: &str) -> bool {
    let texts = ["json", "xml", "javascript", "ecmascript", "yaml", "toml", "html", "markdown"];
    kind.is_empty()
        || kind.starts_with("text/")
        || kind.starts_with("application/") && texts.iter().any(|it| kind.contains(it))
}

/// The innermost reason of an error, which says the most.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests;
