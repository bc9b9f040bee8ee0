//! The web-config file of Prometheus exporters (exporter-toolkit, `docs/web-configuration.md`): supports
//! `tls_server_config` with certificate, key, and client CAs.
//!
//! ```yaml
//! tls_server_config: {cert_file: server.crt, key_file: server.key, client_ca_file: clients.crt}
//! ```

use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::scenario;
use crate::tls::{certificates, key, provider};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use serde::Deserialize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// TLS settings of a server.
pub type ServerTls = ServerConfig;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WebConfig {
    tls_server_config: Option<TlsServerConfig>,
    basic_auth_users: Option<serde_json::Value>,
    /// HTTP/2 and header settings; unsupported, so a file with them is rejected.
    http_server_config: Option<serde_json::Value>,
    rate_limit: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TlsServerConfig {
    cert_file: PathBuf,
    key_file: PathBuf,
    client_ca_file: Option<PathBuf>,
    client_auth_type: Option<String>,
    min_version: Option<String>,
}

/// The TLS settings in this file; `None` if it has none. Its paths are relative to its directory. Errors: `Request` if
/// it cannot be read or requests unsupported features, or if its certificate or key files are unusable.
pub fn web_config(file: &Path) -> Result<Option<Arc<ServerTls>>> {
    let shown = file.display();
    let wrong = |what: String| Error::request(format!("{shown}: {what}"));
    let read = bounded::text_named(file, scenario::YAML_BYTES_MAX);
    let text = read.map_err(|cause| wrong(format!("cannot be read: {}", plain(&cause))))?;
    scenario::yaml_within_bounds(&text).map_err(|error| error.at(format!("file: {shown}")))?;
    let config: WebConfig = yaml_serde::from_str(&text).map_err(|cause| wrong(cause.to_string()))?;
    if config.basic_auth_users.is_some() {
        return Err(wrong("`basic_auth_users` is not supported".to_owned())
            .hint("use client certificates: `client_ca_file` and `client_auth_type: RequireAndVerifyClientCert`"));
    }
    if config.rate_limit.is_some() || config.http_server_config.is_some() {
        return Err(wrong("only `tls_server_config` is supported".to_owned())
            .hint("remove the others; the limits are fixed (16 concurrent connections, 5 seconds each)"));
    }
    let Some(tls) = config.tls_server_config else { return Ok(None) };
    if tls.cert_file.as_os_str().is_empty() || tls.key_file.as_os_str().is_empty() {
        return Err(wrong("`tls_server_config` has no `cert_file` or no `key_file`".to_owned())
            .hint("write `tls_server_config: {cert_file: server.crt, key_file: server.key}`"));
    }
    tls.server(file).map(|config| Some(Arc::new(config)))
}

impl TlsServerConfig {
    /// Builds the configuration; paths are relative to the directory of `file`.
    fn server(&self, file: &Path) -> Result<ServerConfig> {
        let wrong = |what: String| Error::request(format!("{}: {what}", file.display()));
        let folder = file.parent().unwrap_or(Path::new("."));
        let versions = match self.min_version.as_deref() {
            Some("TLS13") => vec![&rustls::version::TLS13],
            None | Some("TLS12") => vec![&rustls::version::TLS13, &rustls::version::TLS12],
            Some(other) => {
                return Err(wrong(format!("`min_version: {other}` is not supported"))
                    .hint("write `min_version: TLS12` or `min_version: TLS13`"));
            }
        };
        let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&versions);
        let builder = builder.map_err(|cause| wrong(cause.to_string()))?;
        let builder = match (&self.client_ca_file, self.client_auth_type.as_deref()) {
            (None, None | Some("NoClientCert")) => builder.with_no_client_auth(),
            (Some(authorities), None | Some("RequireAndVerifyClientCert")) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(&folder.join(authorities))? {
                    roots.add(certificate).map_err(|cause| wrong(format!("{}: {cause}", authorities.display())))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
                builder.with_client_cert_verifier(verifier.map_err(|cause| wrong(cause.to_string()))?)
            }
            (None, Some("RequireAndVerifyClientCert")) => {
                return Err(wrong("`RequireAndVerifyClientCert` needs a `client_ca_file`".to_owned())
                    .hint("specify the CA certificates of the accepted clients: `client_ca_file: ca.crt`"));
            }
            (_, Some(other)) => {
                return Err(wrong(format!("`client_auth_type: {other}` does not match these files")).hint(
                    "write `RequireAndVerifyClientCert` with a `client_ca_file`, or omit both to accept clients \
                         without a certificate",
                ));
            }
        };
        let files = Files { certificate: folder.join(&self.cert_file), key: folder.join(&self.key_file) };
        let renewed = Renewed { read: Mutex::new((files.stamps(), files.read()?)), files };
        Ok(builder.with_cert_resolver(Arc::new(renewed)))
    }
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// Changes when a file is rewritten or a link retargeted: modification time, device and inode, size.
type Stamp = Option<(i64, i64, u64, u64)>;

impl Files {
    fn stamps(&self) -> [Stamp; 2] {
        [&self.certificate, &self.key].map(|file| {
            let about = std::fs::metadata(file).ok()?;
            Some((about.mtime(), about.mtime_nsec(), about.ino(), about.len()))
        })
    }

    fn read(&self) -> Result<Arc<CertifiedKey>> {
        let (chain, key) = (certificates(&self.certificate)?, key(&self.key)?);
        let read = CertifiedKey::from_der(chain, key, &provider()).map_err(|cause| {
            Error::request(format!("{} and {}: {cause}", self.certificate.display(), self.key.display()))
                .hint("the certificate and the key must match")
        })?;
        Ok(Arc::new(read))
    }
}

/// A certificate that is reloaded when its files change, because a watch may run for years. If the new one cannot be
/// read or is incomplete, the old one stays in use.
#[derive(Debug)]
struct Renewed {
    files: Files,
    read: Mutex<([Stamp; 2], Arc<CertifiedKey>)>,
}

impl ResolvesServerCert for Renewed {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = self.files.stamps();
        if stamps != read.0
            && let Ok(renewed) = self.files.read()
        {
            *read = (stamps, renewed);
        }
        Some(Arc::clone(&read.1))
    }
}
