//! Shared parts of TLS clients and servers: the cryptography provider, certificates and keys from files, and this
//! machine's trusted authorities.

use loadline_base::bounded;
use loadline_base::error::{Error, Result, plain};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;

/// A machine's entire trust store takes a quarter of this.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// The cryptography provider of all sessions.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificates of a PEM file, at least one. Errors: `Request` if it cannot be read or has none.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let refuse = |why: String| {
        Error::request(format!("cannot use the certificates in {}: {why}", path.display()))
            .hint("specify a PEM file with at least one certificate")
    };
    let text = bounded::text_named(path, PEM_BYTES_MAX).map_err(|cause| refuse(plain(&cause)))?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<std::result::Result<_, _>>()
        .map_err(|cause| refuse(cause.to_string()))?;
    if found.is_empty() {
        return Err(refuse("the file contains none".to_owned()));
    }
    Ok(found)
}

/// The first private key of a PEM file. Errors: `Request` if it cannot be read or has none.
pub fn key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let read = bounded::text_named(path, PEM_BYTES_MAX).map_err(|cause| plain(&cause));
    let key = read.and_then(|text| PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|cause| cause.to_string()));
    key.map_err(|why| {
        Error::request(format!("cannot use the key in {}: {why}", path.display()))
            .hint("specify a PEM file with a private key, without a passphrase")
    })
}

/// These authorities plus the machine's; may be empty.
pub fn trusted(named: &[CertificateDer<'static>]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(named.iter().cloned());
    // Unreadable certificates are skipped, as is customary.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
