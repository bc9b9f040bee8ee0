//! `openssl s_server`: HTTP/1.0 over TLS, one connection at a time, responses until close.

use super::certificates::Certificates;
use super::laws::{drive_lawfully, gets};
use super::peer::Peer;
use loadline::load::{Failures, Plan, Target};
use loadline::scenario::{ExpectStatus, Tls};

/// `s_server` with these arguments, and its certificates.
pub(crate) fn start(words: &str) -> Option<(Peer, Certificates)> {
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::make(folder.path())?;
    std::fs::write(folder.path().join("file"), "0123456789").unwrap();
    let words = words.to_owned();
    let peer = Peer::start(folder, move |folder, port| {
        // Requests name files relative to its working directory.
        let folder = folder.display();
        let line = format!(
            "cd {folder} && exec openssl s_server -accept 127.0.0.1:{port} -cert cert.pem -key key.pem {words}"
        );
        ["sh", "-c", &line].map(str::to_owned).to_vec()
    });
    Some((peer, certificates))
}

fn plan(peer: &Peer, tls: Tls, path: &str) -> Plan {
    gets(Target { tls: Some(tls), ..peer.target() }, path, 2, 20)
}

#[test]
fn a_page_that_ends_with_the_connection_is_read_over_tls() {
    for version in ["-tls1_2", "-tls1_3"] {
        let Some((peer, certificates)) = start(&format!("-www {version}")) else { return };
        let mut plan = plan(&peer, certificates.trusted(), "/");
        plan.work.request.checks.body = Some("</HTML>".to_owned());
        let outcome = drive_lawfully(&plan);
        assert_eq!((outcome.ok, outcome.connections_opened), (20, 20), "{outcome:?} {:?}", outcome.tls_trouble);
        assert!(outcome.backend.ends_with(&version[4..].replace('_', ".")), "{}", outcome.backend);
    }
}

#[test]
fn a_file_that_ends_with_the_connection_is_read_over_tls() {
    let Some((peer, certificates)) = start("-WWW") else { return };
    let outcome = drive_lawfully(&plan(&peer, certificates.trusted(), "/file"));
    assert_eq!((outcome.ok, outcome.connections_opened), (20, 20), "{outcome:?} {:?}", outcome.tls_trouble);
    assert!(outcome.rows.iter().all(|row| row.body_bytes == 10));
}

#[test]
fn rejected_handshakes_do_not_stop_the_server() {
    let Some((peer, certificates)) = start("-www") else { return };
    let outcome = drive_lawfully(&plan(&peer, certificates.mistrusted(), "/"));
    assert_eq!(outcome.failures, Failures { tls: 20, ..Failures::default() }, "{:?}", outcome.tls_trouble);
    let mut plan = plan(&peer, Tls { insecure: true, ..Tls::default() }, "/");
    plan.work.expect = ExpectStatus::Exactly(200);
    assert_eq!(drive_lawfully(&plan).ok, 20);
}
