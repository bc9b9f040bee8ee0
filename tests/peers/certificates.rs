//! Certificates for one test, made with `openssl`: an authority, and the certificate that it signed for `localhost`.

use super::peer::program;
use loadline::scenario::Tls;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An authority, its certificate for `localhost`, and an unrelated authority.
pub(crate) struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Creates them in this directory; `None` without `openssl`.
    pub(crate) fn make(folder: &Path) -> Option<Self> {
        program("openssl")?;
        let made = Self { folder: folder.to_path_buf() };
        for authority in ["ca", "other"] {
            made.openssl(&format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=loadline-{authority} \
                 -keyout {authority}.key -out {authority}.pem"
            ));
        }
        made.openssl(
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -keyout key.pem -out csr.pem",
        );
        std::fs::write(folder.join("extensions"), "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n").unwrap();
        made.openssl(
            "x509 -req -days 2 -in csr.pem -CA ca.pem -CAkey ca.key -set_serial 1 -extfile extensions -out cert.pem",
        );
        Some(made)
    }

    /// Runs `openssl` in the directory; fast, because all keys are elliptic-curve keys.
    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        let said = command.args(arguments.split_whitespace()).current_dir(&self.folder).stdin(Stdio::null()).output();
        let said = said.unwrap();
        assert!(said.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&said.stderr));
    }

    /// Trusts the signing authority.
    pub(crate) fn trusted(&self) -> Tls {
        Tls { ca: Some(self.folder.join("ca.pem")), ..Tls::default() }
    }

    /// The same, with a client certificate that it signed.
    pub(crate) fn shown(&self) -> Tls {
        let file = |name: &str| Some(self.folder.join(name));
        Tls { cert: file("cert.pem"), key: file("key.pem"), ..self.trusted() }
    }

    /// Trusts the unrelated authority.
    pub(crate) fn mistrusted(&self) -> Tls {
        Tls { ca: Some(self.folder.join("other.pem")), ..Tls::default() }
    }

    /// A self-signed certificate as created by `openssl req -x509`, its key, and TLS settings that trust it.
    pub(crate) fn self_signed(&self) -> (&'static str, &'static str, Tls) {
        self.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
             -addext subjectAltName=DNS:localhost -keyout self.key -out self.pem",
        );
        ("self.pem", "self.key", Tls { ca: Some(self.folder.join("self.pem")), ..Tls::default() })
    }
}
