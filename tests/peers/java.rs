//! JVM servers: the JDK's own, Tomcat, and Netty, with the same paths and request counters.

use super::laws::{drive_lawfully, drive_lawfully_on, gets, sends};
use super::peer::{Peer, skip};
use loadline::clock::Clock;
use loadline::load::{Failures, Outcome, Plan};
use loadline::scenario::{Body, ExpectStatus, Method, Request};
use loadline::subject::jdk::{FoundJdk, Places, discover};
use loadline::units::Bytes;
use loadline_test_support::answer;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Bytes of the chunked response.
const CHUNKED_BYTES: u64 = 100_000;

/// A server's counts, excluding `/counted`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    requests: u64,
    /// Connections that carried at least one of them.
    connections: u64,
}

struct JavaPeer {
    peer: Peer,
    /// Requests per connection before the server closes it.
    requests_max: u64,
}

/// A JDK that can run a source file.
fn jdk() -> Option<FoundJdk> {
    let found = discover(&Places::usual(), Clock::start()).into_iter().find(|jdk| jdk.has_javac && jdk.release >= 17);
    if found.is_none() {
        skip("no JDK 17 or newer was found");
    }
    found
}

/// The directory from `tests/peers/fetch`; `None` if it was not run.
fn jars(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("peers");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    if entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(name)) {
        return Some(folder);
    }
    skip(&format!("there is no {name} jar: run `tests/peers/fetch`"));
    None
}

impl JavaPeer {
    /// Runs `java SOURCE PORT`.
    fn start(source: &str, jars: Option<&Path>, requests_max: u64) -> Option<Self> {
        let java = jdk()?.java.display().to_string();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(source).display().to_string();
        let class_path = jars.map(|jars| format!("{}/*", jars.display()));
        let peer = Peer::start(tempfile::tempdir().unwrap(), move |folder, port| {
            let mut words = vec![java.clone(), "-Xmx128m".to_owned(), "-XX:+UseSerialGC".to_owned()];
            words.extend(["-Dsun.net.httpserver.nodelay=true".to_owned(), "-XX:TieredStopAtLevel=1".to_owned()]);
            words.push(format!("-Djava.io.tmpdir={}", folder.display()));
            words.extend(class_path.iter().flat_map(|path| ["-cp".to_owned(), path.clone()]));
            words.extend([source.clone(), port.to_string()]);
            words
        });
        Some(Self { peer, requests_max })
    }

    fn counts(&self) -> Counts {
        let head = "GET /counted HTTP/1.1\r\nHost: localhost\r\nConnection: close";
        let answer = answer(self.peer.address(), head);
        let line = answer.lines().find_map(|line| line.strip_prefix("counted ")).unwrap();
        let (requests, connections) = line.split_once(' ').unwrap();
        Counts { requests: requests.parse().unwrap(), connections: connections.parse().unwrap() }
    }

    /// Drives on this many threads; the server must have counted what the engine reports.
    fn drive_on(&self, plan: &Plan, threads: u32) -> Outcome {
        let before = self.counts();
        let outcome = if threads == 1 { drive_lawfully(plan) } else { drive_lawfully_on(plan, threads) };
        let after = self.counts();
        let seen =
            Counts { requests: after.requests - before.requests, connections: after.connections - before.connections };
        assert_eq!(seen, Counts { requests: outcome.requests, connections: outcome.connections_opened }, "{outcome:?}");
        outcome
    }

    #[track_caller]
    fn all_ok(&self, plan: &Plan) -> Outcome {
        let outcome = self.drive_on(plan, 1);
        assert_eq!((outcome.ok, outcome.failures), (outcome.requests, Failures::default()), "{outcome:?}");
        let connections = u64::from(plan.work.schedule.connections());
        let reused = outcome.requests.div_ceil(self.requests_max).max(connections);
        assert!((connections..=reused + connections).contains(&outcome.connections_opened), "{outcome:?}");
        outcome
    }
}

/// Sends the same requests to each server.
fn converse(server: &JavaPeer) {
    let get = |path: &str, connections, requests| gets(server.peer.target(), path, connections, requests);
    let mut fixed = get("/fixed", 5, 1003);
    fixed.work.request.checks.body = Some("hello world\n".to_owned());
    fixed.work.request.checks.length = Some(Bytes(12));
    server.all_ok(&fixed);
    assert_eq!(server.drive_on(&fixed, 3).ok, 1003);
    fixed.work.keep_alive = false;
    let outcome = server.drive_on(&fixed, 1);
    assert_eq!((outcome.ok, outcome.connections_opened), (1003, 1003));

    let mut chunked = get("/chunked", 3, 100);
    chunked.work.request.checks.length = Some(Bytes(CHUNKED_BYTES));
    chunked.work.request.checks.headers = vec![("transfer-encoding".to_owned(), Some("chunked".to_owned()))];
    server.all_ok(&chunked);

    let head = sends(server.peer.target(), Request::new(Method::Head, "/fixed"), 3, 100);
    let outcome = server.all_ok(&head);
    assert!(outcome.rows.iter().all(|row| row.body_bytes == 0));

    let outcome = server.drive_on(&get("/last", 3, 100), 1);
    assert_eq!((outcome.ok, outcome.connections_opened), (100, 100), "{outcome:?}");

    let mut none = get("/none", 3, 60);
    let outcome = server.drive_on(&none, 1);
    assert_eq!((outcome.ok, outcome.wrong_statuses), (0, BTreeMap::from([(404, 60)])));
    none.work.expect = ExpectStatus::Exactly(404);
    assert_eq!(server.drive_on(&none, 1).ok, 60);
    upload(server);
}

fn upload(server: &JavaPeer) {
    for (bytes, waits) in [(0, false), (10, false), (10, true), (3 << 20, false), (3 << 20, true)] {
        let request = Request {
            body: Body::Generated(Bytes(bytes)),
            expect_continue: waits,
            ..Request::new(Method::Put, "/length")
        };
        let mut plan = sends(server.peer.target(), request, 2, 20);
        plan.work.request.checks.body = Some(format!("got {bytes}\n"));
        let outcome = server.all_ok(&plan);
        // Without `100 Continue`, each request would wait for a second.
        assert!(outcome.service.value_at_quantile(0.5) < 1_000_000_000, "{outcome:?}");
    }
}

#[test]
fn the_jdks_http_server_serves_all_requests() {
    let Some(server) = JavaPeer::start("JdkPeer.java", None, u64::MAX) else { return };
    converse(&server);
}

#[test]
fn tomcat() {
    let Some(jars) = jars("tomcat-embed-core") else { return };
    // By default, Tomcat closes a connection after 100 requests and announces it.
    let Some(server) = JavaPeer::start("TomcatPeer.java", Some(&jars), 100) else { return };
    converse(&server);
}

#[test]
fn netty() {
    let Some(jars) = jars("netty-codec-http") else { return };
    let Some(server) = JavaPeer::start("NettyPeer.java", Some(&jars), u64::MAX) else { return };
    converse(&server);
    let outcome = server.drive_on(&gets(server.peer.target(), "/endless", 3, 60), 1);
    assert_eq!((outcome.ok, outcome.connections_opened), (60, 60), "each body ends with its connection: {outcome:?}");
    assert!(outcome.rows.iter().all(|row| row.body_bytes == CHUNKED_BYTES));
}
