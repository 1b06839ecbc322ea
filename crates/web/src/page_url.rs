//! Addresses of pages: `http` and `https`, without credentials; and which of them are on the same host.

use std::fmt;

use reqwest::Url;

/// The longest address. Longer ones carry something else.
const LONGEST: usize = 2_000;

/// The address of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageUrl(Url);

impl PageUrl {
    /// Reads an address. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > LONGEST {
            return Err(format!("the address has more than {LONGEST} characters"));
        }
        Self::of(Url::parse(text).map_err(|error| format!("this is not the address of a page: {error}"))?)
    }

    /// The address that a redirect from here names.
    pub(crate) fn join(&self, location: &str) -> Result<Self, String> {
        if location.len() > LONGEST {
            return Err(format!("it redirects to an address of more than {LONGEST} characters"));
        }
        Self::of(
            self.0
                .join(location)
                .map_err(|error| format!("it redirects to something that is not an address: {error}"))?,
        )
    }

    fn of(url: Url) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("only http and https can be fetched, not {}", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the address has a user name or password in it, which are not sent".to_owned());
        }
        match url.host_str() {
            Some(host) if !host.is_empty() => Ok(Self(url)),
            _ => Err("the address names no host".to_owned()),
        }
    }

    /// The host, in small letters; IPv6 addresses without brackets.
    pub fn host(&self) -> &str {
        let host = self.0.host_str().unwrap_or_default();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port, the usual one if none is named.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or_default()
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// True if it is on the host of another, with or without `www.`, and no less protected on the way.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        let plain = |url: &Self| url.host().strip_prefix("www.").unwrap_or(url.host()).to_owned();
        let is_secured =
            other.0.scheme() == "http" && self.0.scheme() == "https" && (other.port(), self.port()) == (80, 443);
        let same_way = self.0.scheme() == other.0.scheme() && self.port() == other.port();
        plain(self) == plain(other) && (same_way || is_secured)
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WEB-1: pages are fetched by http and https alone, without credentials.
    #[test]
    fn only_pages_have_addresses() {
        for (text, why) in [
            ("file:///etc/passwd", "not file"),
            ("ftp://example.com/", "not ftp"),
            ("data:text/html,x", "not data"),
            ("javascript:alert(1)", "not javascript"),
            ("gopher://example.com", "not gopher"),
            ("https://user@example.com/", "user name or password"),
            ("https://:secret@example.com/", "user name or password"),
            ("https://", "not the address"),
            ("example.com", "not the address"),
        ] {
            let error = PageUrl::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(PageUrl::parse(&format!("https://example.com/{}", "a".repeat(LONGEST))).is_err());
        // However a number is written, it is that address.
        for text in ["http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.0.0.1./"] {
            assert_eq!(PageUrl::parse(text).unwrap().host(), "127.0.0.1", "{text}");
        }
        assert_eq!(PageUrl::parse("http://[::1]:8080/x").unwrap().host(), "::1");
    }

    /// WEB-1: the same host is the same name, way and port.
    #[test]
    fn a_redirect_stays_on_its_host() {
        let from = |text: &str| PageUrl::parse(text).unwrap();
        let stays = |start: &str, to: &str| from(start).join(to).is_ok_and(|to| to.is_beside(&from(start)));
        for (start, to) in [
            ("https://a.com/x", "/y"),
            ("https://a.com/x", "https://www.a.com/"),
            ("https://www.a.com/x", "https://A.com/"),
            ("http://a.com/x", "https://a.com/"),
        ] {
            assert!(stays(start, to), "{start} to {to}");
        }
        for (start, to) in [
            ("https://a.com/x", "https://b.com/"),
            ("https://a.com/x", "https://sub.a.com/"),
            ("https://a.com/x", "http://a.com/"),
            ("https://a.com/x", "https://a.com:8443/"),
            ("http://a.com:8080/x", "https://a.com/"),
            ("https://a.com/x", "//a.com.b.com/"),
            ("https://a.com/x", "file:///etc/passwd"),
            ("https://a.com/x", "https://u:p@a.com/"),
        ] {
            assert!(!stays(start, to), "{start} to {to}");
        }
    }
}
