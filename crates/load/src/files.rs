//! Shared parts of TLS clients and servers: the one provider of cryptography, certificates and keys from files, and the
//! authorities that this machine trusts.

use loadline_base::bounded;
use loadline_base::error::{Error, Result, plain};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;

/// All authorities that a machine trusts have a quarter of it.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// The cryptography of all sessions.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificates of a PEM file, at least one.
///
/// # Errors
/// `Request` where it cannot be read or has none.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let refuse = |why: String| {
        Error::request(format!("cannot use the certificates {}: {why}", path.display()))
            .hint("name a PEM file with at least one certificate")
    };
    let text = bounded::text_named(path, PEM_BYTES_MAX).map_err(|cause| refuse(plain(&cause)))?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<std::result::Result<_, _>>()
        .map_err(|cause| refuse(cause.to_string()))?;
    if found.is_empty() {
        return Err(refuse("there is none in it".to_owned()));
    }
    Ok(found)
}

/// The first private key of a PEM file.
///
/// # Errors
/// `Request` where it cannot be read or has none.
pub fn key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let read = bounded::text_named(path, PEM_BYTES_MAX).map_err(|cause| plain(&cause));
    let key = read.and_then(|text| PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|cause| cause.to_string()));
    key.map_err(|why| {
        Error::request(format!("cannot use the key {}: {why}", path.display()))
            .hint("name a PEM file with a private key, without a passphrase")
    })
}

/// These authorities and those that the machine trusts; perhaps none.
pub fn trusted(named: &[CertificateDer<'static>]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(named.iter().cloned());
    // Certificates that cannot be read are left out, as everywhere.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
