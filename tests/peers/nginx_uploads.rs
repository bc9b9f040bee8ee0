//! Uploads to nginx, which writes them to files (WebDAV): the content arrives unchanged.

use super::laws::sends;
use super::nginx::{MIB, Nginx, mebibyte};
use loadline::load::Failures;
use loadline::scenario::{Body, Method, Request};
use loadline::units::Bytes;
use std::collections::BTreeMap;

fn put(path: &str, body: Body) -> Request {
    Request { body, ..Request::new(Method::Put, path) }
}

/// The files in `up`, by number.
fn uploaded(nginx: &Nginx) -> BTreeMap<u64, Vec<u8>> {
    let entries = std::fs::read_dir(nginx.peer.folder.path().join("html/up")).unwrap();
    let numbered = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().parse().unwrap(), std::fs::read(path).unwrap())
    };
    entries.map(|entry| numbered(entry.unwrap().path())).collect()
}

#[test]
fn every_upload_arrives_complete_and_once() {
    let Some(nginx) = Nginx::start() else { return };
    let file = nginx.peer.folder.path().join("sent");
    std::fs::write(&file, mebibyte()).unwrap();
    let outcome = nginx.all_ok(&sends(nginx.peer.target(), put("/up/{seq}", Body::File(file)), 3, 20), 20, 3);
    assert!((20 * MIB..20 * (MIB + 500)).contains(&outcome.bytes_sent), "{}", outcome.bytes_sent);
    let files = uploaded(&nginx);
    assert_eq!(files.keys().copied().collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    assert!(files.values().all(|file| *file == mebibyte()));
}

#[test]
fn bodies_of_every_kind_and_size_are_uploaded() {
    let Some(nginx) = Nginx::start() else { return };
    let large = 5 * MIB + 3;
    let text = Body::Text("number {seq}".to_owned());
    let check = |body: Body, length: u64| {
        nginx.all_ok_on(2, &sends(nginx.peer.target(), put("/up/{seq}", body), 2, 6), 6, 2);
        let files = uploaded(&nginx);
        assert!(files.len() == 6 && files.values().all(|file| file.len() as u64 == length), "{length}");
        files
    };
    check(Body::Zero(Bytes(1)), 1);
    let files = check(Body::Zero(Bytes(large)), large);
    assert!(files.values().flatten().all(|byte| *byte == 0));
    let files = check(Body::Generated(Bytes(large)), large);
    assert!(files.values().flatten().all(u8::is_ascii_graphic));
    let files = check(text, 8);
    assert!(files.iter().all(|(number, file)| *file == format!("number {number}").into_bytes()), "{files:?}");
}

#[test]
fn a_body_waits_for_100_continue() {
    let Some(nginx) = Nginx::start() else { return };
    for body in [Bytes(10), Bytes(3 * MIB)] {
        let request = Request { expect_continue: true, ..put("/up/{seq}", Body::Generated(body)) };
        let outcome = nginx.all_ok(&sends(nginx.peer.target(), request, 2, 20), 20, 2);
        assert!(uploaded(&nginx).values().all(|file| file.len() as u64 == body.0));
        // Without `100 Continue`, each request would wait for a second.
        assert!(outcome.service.value_at_quantile(0.5) < 1_000_000_000, "{outcome:?}");
    }
}

#[test]
fn a_refused_upload_counts_by_its_status() {
    let Some(nginx) = Nginx::start() else { return };
    for waits in [true, false] {
        let request = Request { expect_continue: waits, ..put("/small/x", Body::Generated(Bytes(8 * MIB))) };
        let (outcome, counts) = nginx.drive(&sends(nginx.peer.target(), request, 2, 10));
        assert_eq!(outcome.failures, Failures { status: 10, ..Failures::default() }, "{outcome:?}");
        assert_eq!(outcome.wrong_statuses, BTreeMap::from([(413, 10)]));
        assert_eq!(counts.requests, 10);
        assert!(!waits || outcome.bytes_sent < 10 * 1000, "the refused body was sent: {} bytes", outcome.bytes_sent);
    }
}
