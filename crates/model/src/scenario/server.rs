//! The server under load: host and port, or a Unix socket, and its certificate check.

use super::load_settings::{LoadOptions, TlsSettings};
use super::{Subject, Tls, Url, bracketed};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// The server under load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name or address.
    pub host: String,
    /// `None` if a free one will be chosen.
    pub port: Option<u16>,
    /// TLS settings, if any.
    pub tls: Option<Tls>,
    /// The server's Unix socket, instead of TCP.
    pub socket: Option<PathBuf>,
}

impl Server {
    pub(super) fn of(url: &Url) -> Self {
        Self { host: url.host.clone(), port: url.port, tls: url.tls.then(Tls::default), socket: None }
    }

    pub(super) fn of_subject(subject: &Subject) -> Self {
        let Subject { host, port, tls, socket, .. } = subject.clone();
        Self { host, port, tls, socket }
    }

    /// The `Host` header, without the scheme's default port (RFC 9110, section 7.2).
    pub fn authority(&self) -> String {
        let host = bracketed(&self.host);
        let usual = if self.tls.is_some() { 443 } else { 80 };
        match self.port {
            Some(port) if port != usual => format!("{host}:{port}"),
            _ => host,
        }
    }

    pub(super) fn into_subject(self, subject: &mut Subject) {
        (subject.host, subject.port, subject.tls, subject.socket) = (self.host, self.port, self.tls, self.socket);
    }

    /// Applies options. Errors: `Request` for certificates without TLS.
    pub(super) fn change(&mut self, typed: &LoadOptions) -> Result<()> {
        self.socket = typed.unix_socket.clone().or(self.socket.take());
        let TlsSettings { ca, insecure, cert, .. } = &typed.tls;
        let about = [("--insecure", *insecure), ("--ca", ca.is_some()), ("--cert", cert.is_some())];
        let Some((option, _)) = about.into_iter().find(|(_, given)| *given) else { return Ok(()) };
        let tls = self.tls.as_mut().ok_or_else(|| {
            Error::request(format!("`{option}` requires HTTPS, but the load uses plain HTTP"))
                .hint("write the URL with `https://`, or remove the option")
        })?;
        typed.tls.clone().apply(tls, Path::new(""));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_omits_the_default_port() {
        let check = |url: &str, expect: &str| assert_eq!(Server::of(&Url::parse(url).unwrap()).authority(), expect);
        check("http://localhost/x", "localhost");
        check("http://localhost:8080/x", "localhost:8080");
        check("https://localhost:443/", "localhost");
        check("https://localhost:80/", "localhost:80");
        check("http://[::1]:81/", "[::1]:81");
    }
}
