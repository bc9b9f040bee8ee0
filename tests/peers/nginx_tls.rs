//! nginx with TLS: trusted certificates, negotiated versions, and messages when the handshake fails.

use super::certificates::Certificates;
use super::laws::{gets, sends};
use super::nginx::{Counts, MIB, Nginx};
use loadline::load::{End, Failures, Plan, Target};
use loadline::scenario::{Body, Method, Request, Tls};
use loadline::units::Bytes;

/// nginx with the certificate for `localhost`; `more` is added to its configuration, where `FOLDER` is its directory.
fn start(more: &str) -> Option<(Nginx, Certificates)> {
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::make(folder.path())?;
    let at = folder.path().display().to_string();
    let more = more.replace("FOLDER", &at);
    let listen = format!("ssl; ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem; {more}");
    Some((Nginx::start_with(folder, listen.trim_end_matches([';', ' ']))?, certificates))
}

fn target(nginx: &Nginx, tls: Tls) -> Target {
    Target { tls: Some(tls), ..nginx.peer.target() }
}

/// Checks that no request succeeds, and that the reason contains these words.
#[track_caller]
fn fails(nginx: &Nginx, mut plan: Plan, words: &[&str]) {
    let (outcome, counts) = nginx.drive(&plan);
    assert_eq!(outcome.failures, Failures { tls: outcome.requests, ..Failures::default() });
    assert_eq!((outcome.ok, outcome.requests), (0, 12));
    // The kernel has accepted the connections, but there is no TLS session.
    assert_eq!((counts.requests, outcome.connections_opened), (0, 0));
    let said = outcome.tls_trouble.unwrap();
    assert!(words.iter().any(|words| said.contains(words)), "{said}");
    plan.give_up.failures_in_a_row = 5;
    let End::GaveUp(why) = nginx.drive(&plan).0.ended else { panic!("the phase must be given up") };
    assert!(why.contains(&said), "{why}");
}

#[test]
fn a_custom_authority_is_trusted() {
    let Some((nginx, certificates)) = start("") else { return };
    for threads in [1, 2] {
        let plan = gets(target(&nginx, certificates.trusted()), "/12", 4, 1001);
        let outcome = nginx.all_ok_on(threads, &plan, 1001, 4);
        // nginx chooses the version.
        assert!(outcome.backend.starts_with("http/1.1 over TLSv1."), "{}", outcome.backend);
        assert_eq!(outcome.tls_trouble, None);
    }
}

#[test]
fn certificate_errors_are_reported_as_rustls_describes_them() {
    let Some((nginx, certificates)) = start("") else { return };
    fails(&nginx, gets(target(&nginx, certificates.mistrusted()), "/12", 2, 12), &["UnknownIssuer"]);
    let mut plan = gets(target(&nginx, certificates.trusted()), "/12", 2, 12);
    plan.target.host = "example.com".to_owned();
    fails(&nginx, plan, &["not valid for name", "NotValidForName"]);
}

#[test]
fn a_self_signed_certificate_is_trusted_only_if_given() {
    let folder = tempfile::tempdir().unwrap();
    let Some(certificates) = Certificates::make(folder.path()) else { return };
    let (certificate, key, trust) = certificates.self_signed();
    let at = folder.path().display().to_string();
    let listen = format!("ssl; ssl_certificate {at}/{certificate}; ssl_certificate_key {at}/{key}");
    let Some(nginx) = Nginx::start_with(folder, &listen) else { return };
    nginx.all_ok(&gets(target(&nginx, trust), "/12", 2, 12), 12, 2);
    fails(&nginx, gets(target(&nginx, certificates.trusted()), "/12", 2, 12), &["UnknownIssuer", "CaUsedAsEndEntity"]);
}

#[test]
fn insecure_accepts_any_certificate_and_name() {
    let Some((nginx, _)) = start("") else { return };
    let mut plan = gets(target(&nginx, Tls { insecure: true, ..Tls::default() }), "/12", 3, 100);
    plan.target.host = "example.com".to_owned();
    nginx.all_ok(&plan, 100, 3);
}

#[test]
fn a_client_certificate_is_sent_on_request() {
    for version in ["TLSv1.2", "TLSv1.3"] {
        let clients = "ssl_verify_client on; ssl_client_certificate FOLDER/ca.pem";
        let Some((nginx, certificates)) = start(&format!("ssl_protocols {version}; {clients}")) else { return };
        nginx.all_ok(&gets(target(&nginx, certificates.shown()), "/12", 2, 100), 100, 2);
        // nginx completes handshakes with strangers, then rejects each request and closes.
        let (outcome, counts) = nginx.drive(&gets(target(&nginx, certificates.trusted()), "/12", 2, 20));
        assert_eq!(outcome.failures, Failures { status: 20, ..Failures::default() });
        assert_eq!(outcome.wrong_statuses, [(400, 20)].into());
        assert_eq!(counts, Counts { accepted: 20, requests: 20 });
    }
}

#[test]
fn both_tls_versions_are_supported() {
    for version in ["TLSv1.2", "TLSv1.3"] {
        let Some((nginx, certificates)) = start(&format!("ssl_protocols {version}")) else { return };
        let mut plan = gets(target(&nginx, certificates.trusted()), "/large", 3, 30);
        plan.work.request.checks.length = Some(Bytes(MIB));
        let outcome = nginx.all_ok(&plan, 30, 3);
        assert_eq!(outcome.backend, format!("http/1.1 over {version}"));
        plan.work.keep_alive = false;
        nginx.all_ok(&plan, 30, 30);
    }
}

#[test]
fn an_unsupported_tls_version_is_a_failure() {
    let Some((nginx, certificates)) = start("ssl_protocols TLSv1.1; ssl_ciphers DEFAULT@SECLEVEL=0") else { return };
    let plan = gets(target(&nginx, certificates.trusted()), "/12", 2, 12);
    fails(
        &nginx,
        plan,
        &["ProtocolVersion", "HandshakeFailure", "closed the connection during the handshake", "InternalError"],
    );
}

#[test]
fn uploads_over_tls_arrive_complete() {
    let Some((nginx, certificates)) = start("") else { return };
    let body = Body::Generated(Bytes(3 * MIB));
    for waits in [false, true] {
        let request = Request { body: body.clone(), expect_continue: waits, ..Request::new(Method::Put, "/up/{seq}") };
        let (outcome, counts) = nginx.drive(&sends(target(&nginx, certificates.trusted()), request, 2, 12));
        assert_eq!((outcome.ok, counts.requests), (12, 12), "{outcome:?}");
    }
    for number in 0..12 {
        let file = nginx.peer.folder.path().join(format!("html/up/{number}"));
        assert_eq!(std::fs::metadata(file).unwrap().len(), 3 * MIB);
    }
}

#[test]
fn a_server_without_tls_is_a_failure() {
    let Some(nginx) = Nginx::start() else { return };
    let (outcome, _) = nginx.drive(&gets(target(&nginx, Tls { insecure: true, ..Tls::default() }), "/12", 2, 12));
    assert_eq!(outcome.failures, Failures { tls: 12, ..Failures::default() }, "{:?}", outcome.tls_trouble);
}
