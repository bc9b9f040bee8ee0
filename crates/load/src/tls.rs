//! TLS as bytes in, bytes out: rustls without its own buffers, so that an idle connection holds none.

use crate::files::{certificates, key, trusted};
use crate::work::Tls;
use loadline_base::error::{Error, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{UnbufferedClientConnection, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::fmt;
use std::sync::Arc;

/// Maximum plaintext per record (RFC 8446, section 5.1).
const RECORD_BYTES: usize = 16 * 1024;
/// Maximum overhead of a record in the offered cipher suites, rounded up.
const RECORD_EXTRA: usize = 256;

/// Creates sessions with one server. Clones for threads share resumption tickets.
#[derive(Debug, Clone)]
pub(super) struct Sessions {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Sessions {
    /// Sessions with the server `host` (a name or an address, with or without a port) that offer `protocols` (ALPN).
    /// Errors: `Request` if the client's certificates cannot be read; `Machine` if the machine trusts no authority.
    pub(super) fn new(tls: &Tls, host: &str, protocols: &[&str]) -> Result<Self> {
        let provider = crate::files::provider();
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|cause| Error::bug(format!("no TLS version is available: {cause}")))?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(Trust::new(tls, provider)?));
        let mut config = match &tls.cert {
            Some(cert) => builder
                .with_client_auth_cert(certificates(cert)?, key(tls.key.as_ref().unwrap_or(cert))?)
                .map_err(|cause| {
                    Error::request(format!("cannot present the certificate {}: {cause}", cert.display()))
                        .hint("the certificate and the key must match")
                })?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let bare = bare_host(host);
        let name = ServerName::try_from(bare.to_owned()).map_err(|_| {
            Error::request(format!("`{bare}` is not a valid server name for TLS"))
                .hint("use a host name or an IP address")
        })?;
        Ok(Self { config: Arc::new(config), name })
    }

    /// A new session, with its first message ready to send. Errors: rustls' message.
    pub(super) fn begin(&self) -> std::result::Result<Session, String> {
        let connection = UnbufferedClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|cause| cause.to_string())?;
        let mut session =
            Session { connection, kept: Vec::new(), out: Vec::new(), sent: 0, ready: false, peer_closed: false };
        session.advance(&mut [], &mut |_| {})?;
        Ok(session)
    }
}

/// `localhost:8443` and `[::1]:8443` without the port.
fn bare_host(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match host.split_once(':') {
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

pub(super) struct Session {
    connection: UnbufferedClientConnection,
    /// The beginning of a record that arrived in pieces.
    kept: Vec<u8>,
    /// Records to send; `sent` bytes are sent already.
    out: Vec<u8>,
    sent: usize,
    ready: bool,
    peer_closed: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("ready", &self.ready).field("peer_closed", &self.peer_closed).finish()
    }
}

impl Session {
    /// Whether the handshake has finished and plaintext can be sent.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Whether the server has announced that it sends nothing more.
    pub(super) fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Returns the negotiated version, such as `TLSv1.3`, and the protocol, such as `h2`.
    pub(super) fn negotiated(&self) -> (String, Option<String>) {
        let version = self.connection.protocol_version();
        let version = version.and_then(|version| version.as_str()).unwrap_or("TLS").replace("TLSv1_", "TLSv1.");
        let protocol = self.connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
        (version, protocol)
    }

    /// Records waiting to be sent.
    #[inline]
    pub(super) fn pending(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// Marks this many bytes of [`Session::pending`] as sent.
    pub(super) fn was_sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
    }

    /// Takes data from the server and passes on the plaintext. Errors: rustls' message about certificates, alerts, or
    /// broken records. The alert to the server is then pending.
    pub(super) fn receive(
        &mut self,
        bytes: &mut [u8],
        plaintext: &mut dyn FnMut(&[u8]),
    ) -> std::result::Result<(), String> {
        if self.kept.is_empty() {
            let used = self.advance(bytes, plaintext)?;
            self.kept.extend_from_slice(&bytes[used..]);
            return Ok(());
        }
        let mut whole = std::mem::take(&mut self.kept);
        whole.extend_from_slice(bytes);
        let used = self.advance(&mut whole, plaintext)?;
        whole.drain(..used);
        self.kept = whole;
        Ok(())
    }

    /// Encrypts at most one record; returns how much of the plaintext it took. Errors: rustls' message.
    pub(super) fn send(&mut self, plaintext: &[u8]) -> std::result::Result<usize, String> {
        let piece = &plaintext[..plaintext.len().min(RECORD_BYTES)];
        let start = self.out.len();
        self.out.resize(start + piece.len() + RECORD_EXTRA, 0);
        let UnbufferedStatus { state, .. } = self.connection.process_tls_records(&mut []);
        let written = match state.map_err(|cause| cause.to_string())? {
            ConnectionState::WriteTraffic(mut traffic) => traffic.encrypt(piece, &mut self.out[start..]),
            // A ready session has no other work pending, so consuming nothing is safe.
            _ => {
                self.out.truncate(start);
                return Ok(0);
            }
        };
        match written {
            Ok(written) => {
                self.out.truncate(start + written);
                Ok(piece.len())
            }
            Err(EncryptError::InsufficientSize(size)) => Err(format!("a record needs {} bytes", size.required_size)),
            Err(cause) => Err(cause.to_string()),
        }
    }

    /// Lets rustls process the bytes; returns how many it consumed.
    fn advance(&mut self, bytes: &mut [u8], plaintext: &mut dyn FnMut(&[u8])) -> std::result::Result<usize, String> {
        let mut used = 0;
        loop {
            let UnbufferedStatus { mut discard, state } = self.connection.process_tls_records(&mut bytes[used..]);
            let mut waits = false;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(|cause| cause.to_string())?;
                        discard += record.discard;
                        plaintext(record.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, &mut self.out)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::WriteTraffic(_)) => {
                    self.ready = true;
                    waits = true;
                }
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    self.peer_closed = true;
                    waits = true;
                }
                Ok(_) => waits = true,
                Err(cause) => {
                    self.say_last_words();
                    return Err(cause.to_string());
                }
            }
            used += discard;
            if waits {
                return Ok(used);
            }
        }
    }

    /// Encodes the alert that informs the server of the reason.
    fn say_last_words(&mut self) {
        if let Ok(ConnectionState::EncodeTlsData(mut data)) = self.connection.process_tls_records(&mut []).state {
            // The session is over, so a lost alert does not matter.
            let _ = encode(&mut data, &mut self.out);
        }
    }
}

fn encode<D>(data: &mut rustls::unbuffered::EncodeTlsData<'_, D>, out: &mut Vec<u8>) -> Result<(), String> {
    let start = out.len();
    out.resize(start + RECORD_BYTES + RECORD_EXTRA, 0);
    loop {
        match data.encode(&mut out[start..]) {
            Ok(written) => {
                out.truncate(start + written);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(size)) => out.resize(start + size.required_size, 0),
            Err(cause) => return Err(cause.to_string()),
        }
    }
}

/// The certificates that a session trusts. In any case, handshake signatures must match the certificate.
#[derive(Debug)]
struct Trust {
    /// Verifies chains to an authority that the machine or the user trusts; `None` for `--insecure`, which accepts any
    /// certificate.
    chains: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates named by the user. Each is also trusted as a server certificate, under its own names. People test
    /// with `openssl req -x509`, which creates an authority whose extensions do not allow it to act as a server.
    named: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Trust {
    fn new(tls: &Tls, provider: Arc<CryptoProvider>) -> Result<Self> {
        let algorithms = provider.signature_verification_algorithms;
        if tls.insecure {
            return Ok(Self { chains: None, named: Vec::new(), algorithms });
        }
        let named = tls.ca.as_deref().map(certificates).transpose()?.unwrap_or_default();
        let roots = trusted(&named);
        if roots.is_empty() {
            return Err(Error::machine("this machine has no trusted CA certificates")
                .hint("install CA certificates, or specify `--ca FILE` or `--insecure`"));
        }
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|cause| Error::bug(format!("cannot create a certificate verifier: {cause}")))?;
        Ok(Self { chains: Some(chains), named, algorithms })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let Some(chains) = &self.chains else { return Ok(ServerCertVerified::assertion()) };
        let chain = chains.verify_server_cert(end_entity, intermediates, name, ocsp, now);
        if chain.is_err() && self.named.iter().any(|named| named == end_entity) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        chain
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_removed_from_a_host() {
        for (host, bare) in [("a:1", "a"), ("a", "a"), ("[::1]:8443", "::1"), ("::1", "::1"), ("1.2.3.4:5", "1.2.3.4")]
        {
            assert_eq!(bare_host(host), bare);
        }
    }

    #[test]
    fn a_file_without_certificates_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let tls = Tls { ca: Some(path.clone()), ..Tls::default() };
        assert!(Sessions::new(&tls, "localhost", &[]).unwrap_err().what.contains("ca.pem"));
        std::fs::write(&path, "nothing\n").unwrap();
        assert!(Sessions::new(&tls, "localhost", &[]).unwrap_err().what.contains("the file contains none"));
        let tls = Tls { insecure: true, cert: Some(path.clone()), ..Tls::default() };
        assert!(Sessions::new(&tls, "localhost", &[]).unwrap_err().what.contains("the file contains none"));
    }

    #[test]
    fn a_session_begins_with_a_client_hello_and_ends_with_an_alert() {
        let tls = Tls { insecure: true, ..Tls::default() };
        let mut session = Sessions::new(&tls, "localhost:1", &["http/1.1"]).unwrap().begin().unwrap();
        assert_eq!(session.pending()[..2], [22, 3], "the session begins with a handshake record");
        session.was_sent(session.pending().len());
        assert!(session.pending().is_empty() && !session.is_ready());
        let mut garbage = *b"HTTP/1.1 400 Bad Request\r\n\r\n";
        assert!(session.receive(&mut garbage, &mut |_| panic!("garbage must not yield plaintext")).is_err());
    }
}
