//! HTTP/2 against nghttpd (in cleartext and over TLS), nginx (which counts), and servers without HTTP/2.

use super::certificates::Certificates;
use super::laws::{drive_lawfully, drive_lawfully_on, gets, sends};
use super::nginx::{MIB, Nginx};
use super::openssl;
use super::peer::{Peer, program};
use loadline::load::{Failures, GiveUp, Plan, Target};
use loadline::scenario::{Arrivals, Spacing, Until};
use loadline::scenario::{Body, ExpectStatus, Method, Pool, Protocol, Rate, Request, Schedule};
use loadline::units::Bytes;

/// nghttpd with these arguments; for TLS, they end with `key`, which becomes key and certificate. `file` has ten bytes.
fn nghttpd(words: &str) -> Option<(Peer, Certificates)> {
    let nghttpd = program("nghttpd")?.display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::make(folder.path())?;
    std::fs::write(folder.path().join("file"), "0123456789").unwrap();
    std::fs::write(folder.path().join("large"), vec![b'x'; 20_000_000]).unwrap();
    let words = words.to_owned();
    let peer = Peer::start(folder, move |folder, port| {
        let folder = folder.display();
        let (options, keys) = words.split_once(" key").map_or((&words[..], String::new()), |(options, _)| {
            (options, format!("{folder}/key.pem {folder}/cert.pem"))
        });
        let line = format!("exec {nghttpd} -a 127.0.0.1 -d {folder} {options} {port} {keys}");
        ["sh", "-c", &line].map(str::to_owned).to_vec()
    });
    Some((peer, certificates))
}

fn over_http2(mut plan: Plan, streams: u32) -> Plan {
    plan.work.protocol = Protocol::Http2 { streams };
    plan.give_up = GiveUp::for_work(&plan.work);
    plan
}

#[test]
fn nghttpd_serves_all_requests_without_tls() {
    let Some((peer, _)) = nghttpd("--no-tls") else { return };
    let mut plan = over_http2(gets(peer.target(), "/file", 3, 10_000), 10);
    plan.work.request.checks.body = Some("456".to_owned());
    plan.work.request.checks.length = Some(Bytes(10));
    for threads in [1, 2] {
        let outcome = drive_lawfully_on(&plan, threads);
        assert_eq!((outcome.ok, outcome.connections_opened), (10_000, 3), "{outcome:?}");
        assert_eq!(outcome.backend, "http/2 (h2 crate)");
        assert!(outcome.rows.iter().all(|row| (row.status, row.body_bytes) == (200, 10)));
    }
    let head = over_http2(sends(peer.target(), Request::new(Method::Head, "/file"), 1, 500), 5);
    assert_eq!(drive_lawfully(&head).ok, 500);
    let mut none = over_http2(gets(peer.target(), "/none", 1, 100), 5);
    assert_eq!(drive_lawfully(&none).wrong_statuses, [(404, 100)].into());
    none.work.expect = ExpectStatus::Exactly(404);
    assert_eq!(drive_lawfully(&none).ok, 100);
}

#[test]
fn nghttpd_serves_all_requests_over_tls() {
    let Some((peer, certificates)) = nghttpd("-v key") else { return };
    let target = Target { tls: Some(certificates.trusted()), ..peer.target() };
    let outcome = drive_lawfully(&over_http2(gets(target.clone(), "/file", 2, 5000), 10));
    assert_eq!((outcome.ok, outcome.connections_opened), (5000, 2), "{outcome:?} {:?}", outcome.tls_trouble);
    assert!(outcome.backend.starts_with("http/2 (h2 crate) over TLSv1."), "{}", outcome.backend);
    let outcome = drive_lawfully(&over_http2(gets(target, "/large", 2, 12), 3));
    assert_eq!(outcome.ok, 12, "{outcome:?}");
    assert!(outcome.bytes_received > 12 * 20_000_000);
    let stranger = Target { tls: Some(certificates.mistrusted()), ..peer.target() };
    let outcome = drive_lawfully(&over_http2(gets(stranger, "/file", 2, 12), 3));
    assert_eq!(outcome.failures, Failures { tls: 12, ..Failures::default() }, "{:?}", outcome.tls_trouble);
}

#[test]
fn nghttpd_with_one_stream_echoes_uploads() {
    let Some((peer, _)) = nghttpd("--no-tls --echo-upload -m 1") else { return };
    let mut upload = Request::new(Method::Post, "/");
    upload.body = Body::Generated(Bytes(3 * MIB));
    upload.checks.length = Some(Bytes(3 * MIB));
    let outcome = drive_lawfully(&over_http2(sends(peer.target(), upload, 2, 40), 10));
    assert_eq!((outcome.ok, outcome.connections_opened), (40, 2), "{outcome:?}");
    assert!(outcome.bytes_sent > 120 * MIB && outcome.bytes_received > 120 * MIB);
}

#[test]
fn nghttpd_serves_an_open_schedule() {
    let Some((peer, _)) = nghttpd("--no-tls") else { return };
    let mut plan = over_http2(gets(peer.target(), "/file", 2, 1000), 10);
    let until = Until::Requests(1000);
    let arrivals = Arrivals::Rate { rate: Rate::Constant(2000.0), spacing: Spacing::Poisson, until };
    plan.work.schedule = Schedule::Open { arrivals, pool: Pool { connections: 1, connections_max: 4 } };
    let outcome = drive_lawfully(&plan);
    assert_eq!((outcome.ok, outcome.offered), (1000, Some(1000)), "{outcome:?}");
}

#[test]
fn nginx_counts_the_same_http_2_requests() {
    let folder = tempfile::tempdir().unwrap();
    let Some(nginx) = Nginx::start_with(folder, "http2") else { return };
    let plan = over_http2(gets(nginx.peer.target(), "/12", 4, 5003), 8);
    for threads in [1, 2] {
        nginx.all_ok_on(threads, &plan, 5003, 4);
    }
    let mut upload = Request::new(Method::Put, "/up/a");
    upload.body = Body::Zero(Bytes(5 * MIB));
    let (outcome, counts) = nginx.drive(&over_http2(sends(nginx.peer.target(), upload, 2, 20), 4));
    assert_eq!((outcome.ok, counts.requests), (20, 20), "{outcome:?}");
    let mut refused = Request::new(Method::Put, "/small/a");
    refused.body = Body::Zero(Bytes(5 * MIB));
    let (outcome, _) = nginx.drive(&over_http2(sends(nginx.peer.target(), refused, 2, 20), 4));
    assert_eq!(outcome.wrong_statuses, [(413, 20)].into(), "{outcome:?}");
}

#[test]
fn nginx_sends_goaway_after_every_ten_requests() {
    let folder = tempfile::tempdir().unwrap();
    let Some(nginx) = Nginx::start_with(folder, "http2; keepalive_requests 10") else { return };
    let (outcome, counts) = nginx.drive(&over_http2(gets(nginx.peer.target(), "/12", 2, 1000), 1));
    assert_eq!((outcome.ok, outcome.failures.total()), (1000, 0), "{outcome:?}");
    assert!((100..=110).contains(&counts.accepted) && counts.requests == 1000, "{counts:?}");
    // On GOAWAY, it returns in-flight requests, which are sent again.
    let (outcome, counts) = nginx.drive(&over_http2(gets(nginx.peer.target(), "/12", 2, 1000), 4));
    assert_eq!((outcome.ok, outcome.failures.total()), (1000, 0), "{outcome:?}");
    assert!((100..=110).contains(&counts.accepted) && counts.requests == 1000, "{counts:?}");
    // It accepts ten of fifty concurrent requests, and resets one that it has returned too often.
    let (outcome, counts) = nginx.drive(&over_http2(gets(nginx.peer.target(), "/12", 1, 1000), 50));
    assert_eq!(outcome.failures.total(), outcome.failures.reset, "{outcome:?}");
    assert!(counts.requests == outcome.ok && outcome.ok >= 500, "{counts:?}, {outcome:?}");
}

#[test]
fn a_server_without_http_2_is_reported() {
    for (words, chose) in [("-alpn http/1.1", "NoApplicationProtocol"), ("", "(it chose nothing)")] {
        let Some((peer, certificates)) = openssl::start(&format!("-www {words}")) else { return };
        let target = Target { tls: Some(certificates.trusted()), ..peer.target() };
        let outcome = drive_lawfully(&over_http2(gets(target, "/", 2, 12), 5));
        assert_eq!(outcome.failures, Failures { tls: 12, ..Failures::default() }, "{outcome:?}");
        assert!(outcome.tls_trouble.as_ref().is_some_and(|words| words.contains(chose)), "{:?}", outcome.tls_trouble);
    }
    let Some(nginx) = Nginx::start() else { return };
    let outcome = drive_lawfully(&over_http2(gets(nginx.peer.target(), "/12", 2, 12), 5));
    assert_eq!((outcome.ok, outcome.failures), (0, Failures { protocol: 12, ..Failures::default() }), "{outcome:?}");
}
