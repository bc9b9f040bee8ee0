//! Calls to an API server: HTTP/1.0, one connection each, closed by the server.

use loadline::tls::{certificates, provider};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any of these requests takes.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
const JSON: &str = "application/json";
/// A patch that merges lists by name, like `kubectl`.
const MERGE: &str = "application/strategic-merge-patch+json";

/// An API server and its client.
#[derive(Clone)]
pub(crate) struct Api {
    port: u16,
    token: String,
    tls: Arc<ClientConfig>,
}

/// The server's response.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) code: u16,
    pub(crate) body: Value,
    /// Warnings about accepted but discouraged input.
    pub(crate) warnings: Vec<String>,
}

impl ApiResponse {
    /// The response body, after checking the status.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{:#}", self.body);
        self.body
    }
}

impl Api {
    /// A local API server, with certificates from a file.
    pub(crate) fn new(port: u16, token: &str, authority: &Path) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(authority).unwrap());
        let tls = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
        let tls = tls.with_root_certificates(roots).with_no_client_auth();
        Self { port, token: token.to_owned(), tls: Arc::new(tls) }
    }

    /// Sends a request and parses the object. A response that is not JSON becomes a string.
    fn call(&self, method: &str, path: &str, (kind, body): (&str, &str)) -> std::io::Result<ApiResponse> {
        let mut head =
            format!("{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n", self.token);
        let _ = write!(head, "Accept: {JSON}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
        let socket = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)), ANSWER_WITHIN)?;
        socket.set_read_timeout(Some(ANSWER_WITHIN))?;
        let name = ServerName::from(Ipv4Addr::LOCALHOST);
        let session = ClientConnection::new(self.tls.clone(), name).map_err(std::io::Error::other)?;
        let mut stream = StreamOwned::new(session, socket);
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let text = String::from_utf8_lossy(&answer);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.ok_or_else(|| std::io::Error::other(format!("not an HTTP response: {head}")))?;
        let warnings = head.lines().filter_map(|line| line.strip_prefix("Warning: ")).map(str::to_owned).collect();
        Ok(ApiResponse { code, body: serde_json::from_str(body).unwrap_or_else(|_| body.into()), warnings })
    }

    pub(crate) fn get(&self, path: &str) -> ApiResponse {
        self.try_get(path).unwrap()
    }

    pub(crate) fn try_get(&self, path: &str) -> std::io::Result<ApiResponse> {
        self.call("GET", path, (JSON, ""))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> ApiResponse {
        self.call("POST", path, (JSON, &body.to_string())).unwrap()
    }

    /// Sends a YAML document unchanged, including comments.
    pub(crate) fn post_yaml(&self, path: &str, text: &str) -> ApiResponse {
        self.call("POST", path, ("application/yaml", text)).unwrap()
    }

    pub(crate) fn patch(&self, path: &str, body: &Value) -> ApiResponse {
        self.call("PATCH", path, (MERGE, &body.to_string())).unwrap()
    }

    pub(crate) fn delete(&self, path: &str, options: &Value) -> ApiResponse {
        self.call("DELETE", path, (JSON, &options.to_string())).unwrap()
    }
}
