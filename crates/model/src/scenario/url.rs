//! The URL under load: `http://HOST[:PORT][/PATH]`, or `https://`. The port may be the placeholder `{port}`.

use crate::error::{Error, Result};

/// The parts of an `http://` or `https://` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether it is `https`.
    pub tls: bool,
    /// Host name or address; IPv6 without brackets.
    pub host: String,
    /// `None` if the port is `{port}`, so a free one is chosen.
    pub port: Option<u16>,
    /// Path and query, starting with `/`.
    pub path: String,
}

/// A host as in a URL and the `Host` header: IPv6 in brackets (RFC 3986, section 3.2.2).
pub fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

impl Url {
    /// Parses a URL. The default port is 80 (443 with TLS), the default path `/`; a fragment is dropped. Errors:
    /// `Request` for other schemes and malformed ports.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |why: &str| {
            Error::request(format!("`{text}` is not a supported URL: {why}"))
                .hint("write it as `http://127.0.0.1:8080/hello`")
        };
        let (tls, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some((scheme, _)) => return Err(refuse(&format!("`{scheme}` is neither `http` nor `https`"))),
            None => return Err(refuse("it does not start with `http://` or `https://`")),
        };
        let (authority, path) = rest.find(['/', '?', '#']).map_or((rest, "/"), |at| rest.split_at(at));
        let usual_port = if tls { 443 } else { 80 };
        let (host, port) =
            split_port(authority, usual_port).ok_or_else(|| refuse("its port is not between 1 and 65535"))?;
        if host.is_empty() || host.contains(['@', ' ', '?', '#']) {
            return Err(refuse("it does not have a plain host name"));
        }
        let path = path.split('#').next().unwrap_or("/");
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { tls, host: host.to_owned(), port, path })
    }

    /// Whether the port is part of the text that this was parsed from, and not the scheme's default.
    pub fn names_port(&self, text: &str) -> bool {
        let authority =
            text.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
        authority.rsplit(']').next().is_some_and(|end| end.contains(':'))
    }
}

/// `[::1]:80`, `host:80`, `host:{port}`, `host` → host and port.
fn split_port(authority: &str, usual: u16) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':').unwrap_or(after))
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    match port {
        "" => Some((host, Some(usual))),
        "{port}" => Some((host, None)),
        digits => digits.parse().ok().filter(|&port| port != 0).map(|port| (host, Some(port))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_urls_are_parsed() {
        let check = |text: &str, host: &str, port: Option<u16>, path: &str| {
            let tls = text.starts_with("https");
            assert_eq!(Url::parse(text).unwrap(), Url { tls, host: host.into(), port, path: path.into() }, "{text}");
        };
        check("http://127.0.0.1:8080/hello?a=b#c", "127.0.0.1", Some(8080), "/hello?a=b");
        check("http://localhost", "localhost", Some(80), "/");
        check("https://localhost?a=b", "localhost", Some(443), "/?a=b");
        check("https://localhost:8443#x", "localhost", Some(8443), "/");
        check("http://[::1]:81/x", "::1", Some(81), "/x");
        check("http://127.0.0.1:{port}/", "127.0.0.1", None, "/");
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for text in ["", "localhost:8080", "ftp://x/", "http://", "http://x:0/", "http://x:99999/", "http://u@x/"] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
