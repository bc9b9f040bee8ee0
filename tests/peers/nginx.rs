//! nginx: its counts (`stub_status`) match the engine's, for every way to respond.

use super::laws::{drive_lawfully, drive_lawfully_on, gets, sends};
use super::peer::{Peer, program};
use loadline::load::{Failures, Outcome, Plan};
use loadline::scenario::{Arrivals, ExpectStatus, Method, Pace, Pool, Rate, Request, Schedule, Spacing, Until};
use loadline::units::{Bytes, Span};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

pub(crate) const MIB: u64 = 1 << 20;

/// nginx on TCP and on the Unix sockets `socket` and `status` in its directory.
pub(crate) struct Nginx {
    pub(crate) peer: Peer,
}

/// nginx's counts since its start, or between two times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) accepted: u64,
    pub(crate) requests: u64,
}

impl Nginx {
    /// Starts nginx in cleartext, with files of 12 bytes and 1 MiB.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(tempfile::tempdir().unwrap(), "")
    }

    /// `listen` continues the `listen` directive after its port; anything after a `;` goes into the server block.
    pub(crate) fn start_with(folder: tempfile::TempDir, listen: &str) -> Option<Self> {
        let nginx = program("nginx")?.display().to_string();
        let html = folder.path().join("html");
        std::fs::create_dir_all(html.join("up")).unwrap();
        std::fs::write(html.join("12"), "hello world\n").unwrap();
        std::fs::write(html.join("large"), mebibyte()).unwrap();
        let listen = listen.to_owned();
        let peer = Peer::start(folder, move |folder, port| {
            let file = folder.join("nginx.conf");
            std::fs::write(&file, configuration(folder, port, &listen)).unwrap();
            let words =
                [&nginx, "-e", "stderr", "-p", &folder.display().to_string(), "-c", &file.display().to_string()];
            words.map(str::to_owned).to_vec()
        });
        Some(Self { peer })
    }

    /// Drives the plan; returns the outcome and nginx's counts for it.
    pub(crate) fn drive(&self, plan: &Plan) -> (Outcome, Counts) {
        self.drive_on(plan, 1)
    }

    pub(crate) fn drive_on(&self, plan: &Plan, threads: u32) -> (Outcome, Counts) {
        let before = self.counts();
        let outcome = if threads == 1 { drive_lawfully(plan) } else { drive_lawfully_on(plan, threads) };
        let after = self.counts();
        // Excludes the second query itself.
        let counts =
            Counts { accepted: after.accepted - before.accepted - 1, requests: after.requests - before.requests - 1 };
        (outcome, counts)
    }

    /// Drives a plan in which all requests succeed on this many connections, according to both sides.
    #[track_caller]
    pub(crate) fn all_ok(&self, plan: &Plan, requests: u64, connections: u64) -> Outcome {
        self.all_ok_on(1, plan, requests, connections)
    }

    /// The same on several threads.
    #[track_caller]
    pub(crate) fn all_ok_on(&self, threads: u32, plan: &Plan, requests: u64, connections: u64) -> Outcome {
        let (outcome, counts) = self.drive_on(plan, threads);
        assert_eq!((outcome.ok, outcome.failures), (requests, Failures::default()), "{:?}", outcome.tls_trouble);
        assert_eq!(counts, Counts { accepted: connections, requests });
        assert_eq!(outcome.connections_opened, connections);
        outcome
    }

    /// Counts since the start, including this query: `Active …`, a line of names, ` ACCEPTED HANDLED REQUESTS`.
    fn counts(&self) -> Counts {
        let mut stream = UnixStream::connect(self.peer.folder.path().join("status")).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let line = page.lines().skip_while(|line| !line.starts_with("server accepts")).nth(1);
        let numbers: Vec<u64> = line.unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect();
        Counts { accepted: numbers[0], requests: numbers[2] }
    }
}

/// Varied text.
pub(crate) fn mebibyte() -> Vec<u8> {
    (0..MIB).map(|at| b'a' + (at * at % 23) as u8).collect()
}

fn configuration(folder: &Path, port: u16, listen: &str) -> String {
    let folder = folder.display();
    // As root, nginx would switch to a user who cannot access the directory; as another user, it only warns.
    format!(
        "daemon off;
user root root;
worker_processes 1;
pid {folder}/pid;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    root {folder}/html;
    keepalive_requests 1000000;
    server {{ listen unix:{folder}/status; location / {{ stub_status; }} }}
    server {{
        listen 127.0.0.1:{port} {listen};
        listen unix:{folder}/socket;
        location = /nothing {{ return 204; }}
        location = /silent {{ return 444; }}
        location = /busy {{ return 503; }}
        location /few/ {{ keepalive_requests 10; alias {folder}/html/; }}
        location /last/ {{ keepalive_timeout 0; alias {folder}/html/; }}
        location /idle/ {{ keepalive_timeout 1s; alias {folder}/html/; }}
        location /slow/ {{ limit_rate 64k; alias {folder}/html/; }}
        location /zipped/ {{ gzip on; gzip_min_length 1; gzip_types *; alias {folder}/html/; }}
        location /up/ {{ dav_methods PUT; client_max_body_size 64m; }}
        location /small/ {{ dav_methods PUT; client_max_body_size 1k; }}
    }}
}}
"
    )
}

#[test]
fn connections_to_nginx_are_kept_alive() {
    let Some(nginx) = Nginx::start() else { return };
    let plan = gets(nginx.peer.target(), "/12", 7, 2003);
    let outcome = nginx.all_ok(&plan, 2003, 7);
    assert_eq!(outcome.backend, "http/1.1");
    assert_eq!(outcome.bytes_sent % 2003, 0);
    assert!(outcome.rows.iter().all(|row| (row.status, row.body_bytes) == (200, 12)));
    let outcome = nginx.all_ok_on(3, &plan, 2003, 7);
    assert_eq!(outcome.threads, 3);
}

#[test]
fn nginx_gets_a_connection_for_each_request() {
    let Some(nginx) = Nginx::start() else { return };
    let mut plan = gets(nginx.peer.target(), "/12", 5, 301);
    plan.work.keep_alive = false;
    for threads in [1, 2] {
        nginx.all_ok_on(threads, &plan, 301, 301);
    }
}

#[test]
fn announced_closes_fail_no_requests() {
    let Some(nginx) = Nginx::start() else { return };
    nginx.all_ok(&gets(nginx.peer.target(), "/last/12", 3, 100), 100, 100);
    nginx.all_ok(&gets(nginx.peer.target(), "/few/12", 1, 100), 100, 10);
}

#[test]
fn responses_without_a_body_are_read() {
    let Some(nginx) = Nginx::start() else { return };
    let head = sends(nginx.peer.target(), Request::new(Method::Head, "/large"), 2, 50);
    let outcome = nginx.all_ok(&head, 50, 2);
    assert!(outcome.bytes_received < 50 * 1000, "{}", outcome.bytes_received);
    nginx.all_ok(&gets(nginx.peer.target(), "/nothing", 2, 50), 50, 2);
    let mut unchanged = gets(nginx.peer.target(), "/large", 2, 50);
    unchanged.work.request.headers = vec![("If-Modified-Since".to_owned(), last_modified(&nginx))];
    unchanged.work.expect = ExpectStatus::Exactly(304);
    let outcome = nginx.all_ok(&unchanged, 50, 2);
    assert!(outcome.bytes_received < 50 * 1000, "{}", outcome.bytes_received);
}

/// The large file's `Last-Modified` header, as nginx formats it.
fn last_modified(nginx: &Nginx) -> String {
    let mut stream = UnixStream::connect(nginx.peer.folder.path().join("socket")).unwrap();
    stream.write_all(b"HEAD /large HTTP/1.0\r\n\r\n").unwrap();
    let mut head = String::new();
    stream.read_to_string(&mut head).unwrap();
    head.lines().find_map(|line| line.strip_prefix("Last-Modified: ")).unwrap().to_owned()
}

#[test]
fn other_statuses_are_failures_unless_expected() {
    let Some(nginx) = Nginx::start() else { return };
    for (path, status) in [("/none", 404), ("/busy", 503)] {
        let mut plan = gets(nginx.peer.target(), path, 3, 60);
        let (outcome, counts) = nginx.drive(&plan);
        assert_eq!((outcome.ok, outcome.failures.status, outcome.failures.total()), (0, 60, 60));
        assert_eq!(outcome.wrong_statuses, BTreeMap::from([(status, 60)]));
        assert_eq!(counts, Counts { accepted: 3, requests: 60 });
        plan.work.expect = ExpectStatus::Exactly(status);
        nginx.all_ok(&plan, 60, 3);
    }
}

#[test]
fn a_close_instead_of_a_response_is_a_reset() {
    let Some(nginx) = Nginx::start() else { return };
    let (outcome, counts) = nginx.drive(&gets(nginx.peer.target(), "/silent", 2, 20));
    assert_eq!(outcome.failures, Failures { reset: 20, ..Failures::default() });
    assert_eq!(counts, Counts { accepted: 20, requests: 20 });
}

#[test]
fn large_responses_are_read_completely() {
    let Some(nginx) = Nginx::start() else { return };
    let mut plan = gets(nginx.peer.target(), "/large", 3, 60);
    plan.work.request.checks.length = Some(Bytes(MIB));
    plan.work.request.checks.body = Some(String::from_utf8_lossy(&mebibyte()[MIB as usize - 50..]).into_owned());
    let outcome = nginx.all_ok(&plan, 60, 3);
    assert!((60 * MIB..60 * (MIB + 1000)).contains(&outcome.bytes_received), "{}", outcome.bytes_received);
    plan.work.request.checks.length = Some(Bytes(MIB - 1));
    assert_eq!(nginx.drive(&plan).0.failures, Failures { check: 60, ..Failures::default() });
}

#[test]
fn chunked_responses_are_joined() {
    let Some(nginx) = Nginx::start() else { return };
    let mut plan = gets(nginx.peer.target(), "/zipped/large", 3, 30);
    plan.work.request.headers = vec![("Accept-Encoding".to_owned(), "gzip".to_owned())];
    let is = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
    plan.work.request.checks.headers = vec![is("transfer-encoding", "chunked"), is("Content-Encoding", "gzip")];
    let outcome = nginx.all_ok(&plan, 30, 3);
    let bodies: Vec<u64> = outcome.rows.iter().map(|row| row.body_bytes).collect();
    assert!(bodies.iter().all(|bytes| *bytes == bodies[0] && *bytes > 0), "{bodies:?}");
}

#[test]
fn slow_responses_time_out() {
    let Some(nginx) = Nginx::start() else { return };
    let mut plan = gets(nginx.peer.target(), "/slow/large", 4, 8);
    plan.work.timeout = "300ms".parse().unwrap();
    let (outcome, counts) = nginx.drive(&plan);
    assert_eq!(outcome.failures, Failures { timeout: 8, ..Failures::default() });
    assert_eq!(counts, Counts { accepted: 8, requests: 8 });
    assert!(outcome.rows.iter().all(|row| row.status == 200), "rows have the status of the received head");
}

#[test]
fn nginx_is_reached_over_a_unix_socket() {
    let Some(nginx) = Nginx::start() else { return };
    let mut plan = gets(nginx.peer.target_at("socket"), "/12", 4, 1000);
    nginx.all_ok(&plan, 1000, 4);
    plan.work.keep_alive = false;
    nginx.all_ok(&plan, 1000, 1000);
    let nobody = gets(nginx.peer.target_at("nobody"), "/12", 2, 10);
    assert_eq!(nginx.drive(&nobody).0.failures, Failures { refused: 10, ..Failures::default() });
}

#[test]
fn a_mix_is_counted_by_request() {
    let Some(nginx) = Nginx::start() else { return };
    let mut plan = gets(nginx.peer.target(), "/12", 4, 1000);
    plan.work.request.weight = 3;
    plan.work.others = vec![Request::new(Method::Get, "/none"), Request::new(Method::Head, "/large")];
    let (outcome, counts) = nginx.drive_on(&plan, 2);
    assert_eq!(counts, Counts { accepted: 4, requests: 1000 });
    let [(small, 0), (0, none), (large, 0)] = outcome.by_request[..] else { panic!("{:?}", outcome.by_request) };
    assert_eq!(small + none + large, 1000);
    assert_eq!((outcome.failures.status, outcome.ok), (none, small + large));
    // Ten standard deviations of a binomial with p = 0.6.
    assert!((445..=755).contains(&small), "{small}");
}

#[test]
fn an_open_model_offers_exactly_the_requested_rate() {
    let Some(nginx) = Nginx::start() else { return };
    let until = Until::Elapsed(Span::seconds(2));
    let arrivals = Arrivals::Rate { rate: Rate::Constant(1500.0), spacing: Spacing::Even, until };
    let mut plan = gets(nginx.peer.target(), "/12", 1, 1);
    plan.work.schedule = Schedule::Open { arrivals, pool: Pool::fixed(20) };
    for threads in [1, 2] {
        let (outcome, counts) = nginx.drive_on(&plan, threads);
        assert_eq!((outcome.ok, outcome.offered, counts.requests), (3000, Some(3000), 3000), "{outcome:?}");
        assert_eq!(counts.accepted, outcome.connections_opened);
        assert_eq!(outcome.lag.unwrap().len(), 3000);
    }
}

#[test]
fn a_phase_ended_by_time_counts_all_its_requests() {
    let Some(nginx) = Nginx::start() else { return };
    let mut plan = gets(nginx.peer.target(), "/12", 5, 1);
    plan.work.schedule.set_until(Until::Elapsed("400ms".parse().unwrap()));
    for threads in [1, 2] {
        let (outcome, counts) = nginx.drive_on(&plan, threads);
        assert!(outcome.ok > 0 && outcome.rate_span_ns <= 400_000_000, "{outcome:?}");
        assert_eq!((outcome.failures.total(), outcome.connections_opened), (0, 5));
        assert_eq!(counts, Counts { accepted: 5, requests: outcome.requests });
    }
}

#[test]
fn connections_beyond_the_servers_maximum_are_counted() {
    let Some(nginx) = Nginx::start() else { return };
    // nginx allows 512 connections in total.
    let mut plan = gets(nginx.peer.target(), "/12", 600, 3000);
    plan.work.timeout = "1s".parse().unwrap();
    let (outcome, counts) = nginx.drive(&plan);
    assert_eq!(outcome.requests, 3000, "{outcome:?}");
    // At first, it accepts most of the 600 connections; rejected ones retry.
    assert!(counts.requests >= outcome.ok && outcome.ok >= 400, "{counts:?}, {outcome:?}");
}

#[test]
fn connections_closed_while_idle_fail_no_requests() {
    let Some(nginx) = Nginx::start() else { return };
    let arrivals = Arrivals::Rate { rate: Rate::Constant(4.0), spacing: Spacing::Even, until: Until::Requests(18) };
    let mut plan = gets(nginx.peer.target(), "/idle/12", 1, 1);
    // Each of the ten is idle for 2.5 s, but nginx waits only 1 s.
    plan.work.schedule = Schedule::Open { arrivals, pool: Pool::fixed(10) };
    let outcome = nginx.all_ok(&plan, 18, 18);
    assert_eq!(outcome.connections_asked, 10);
}

#[test]
fn a_slow_reader_gets_complete_responses() {
    let Some(nginx) = Nginx::start() else { return };
    let mut plan = gets(nginx.peer.target(), "/large", 3, 6);
    plan.work.request.checks.length = Some(Bytes(MIB));
    plan.work.pace = Pace { send: None, receive: Some(Bytes(2 * MIB)) };
    let outcome = nginx.all_ok(&plan, 6, 3);
    // 1 MiB at 2 MiB/s, minus the initial burst.
    assert!(outcome.service.min() >= 300_000_000, "{} ns", outcome.service.min());
}
