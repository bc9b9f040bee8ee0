//! The engine against scripted HTTP/2 servers. No test here depends on timing, except that everything must end.

use super::scripted::{self, Exchange, ScriptedOrder, pause};
use crate::scripted::{Next, ScriptedServer};
use crate::tests::{at_rate, check_silence, check_stop, drive_lawfully, failures, plan as http1_plan};
use crate::work::{Body, Method, Pool, Protocol, Request, Schedule, Until};
use crate::{Control, End, Failures, GiveUp, Outcome, Plan};
use bytes::Bytes;
use h2::Reason;
use h2::server::Builder;
use loadline_base::clock::Clock;
use loadline_base::units::{Bytes as Size, Span};
use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, ErrorKind::WouldBlock, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

fn plan(address: SocketAddr, connections: u32, streams: u32, until: Until) -> Plan {
    let mut plan = http1_plan(address, connections, until);
    plan.work.protocol = Protocol::Http2 { streams };
    plan.give_up = GiveUp::for_work(&plan.work);
    plan
}

/// Sends exactly `requests` requests over `connections` connections, with `streams` streams each, to this script.
fn exactly<S, F>(connections: u32, streams: u32, requests: u64, script: S) -> (Outcome, ScriptedServer)
where
    S: Fn(Exchange) -> F + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    let server = scripted::start(script);
    let outcome = drive_lawfully(&plan(server.address, connections, streams, Until::Requests(requests)));
    assert_eq!(outcome.requests, requests);
    assert_eq!(outcome.ended, End::Done);
    (outcome, server)
}

async fn ok(mut exchange: Exchange) {
    exchange.say(200, "hi");
}

#[test]
fn http_2_sends_exactly_the_requested_number_of_requests() {
    let (outcome, server) = exactly(3, 10, 10_000, ok);
    assert_eq!((outcome.ok, server.requests()), (10_000, 10_000));
    assert_eq!((outcome.connections_asked, outcome.connections_opened, server.connections()), (3, 3, 3));
    assert_eq!((outcome.connections_open_max, outcome.backend.as_str()), (3, "http/2 (h2 crate)"));
    assert!(server.busy_max() <= 30, "{}", server.busy_max());
    assert!(outcome.bytes_sent > 10_000 && outcome.bytes_received > 10_000 * 2 * 9 && outcome.cpu_ns > 0);
    assert!(outcome.response.is_none() && outcome.lag.is_none() && outcome.offered.is_none());
}

#[test]
fn streams_are_concurrent_up_to_the_given_number() {
    let (outcome, server) = exactly(2, 5, 60, async |mut exchange: Exchange| {
        pause(5).await;
        exchange.say(200, "hi");
    });
    assert_eq!((outcome.ok, server.connections(), server.busy_max()), (60, 2, 10));
}

#[test]
fn many_slots_send_no_extra_requests() {
    for (requests, connections) in [(3, 3), (0, 0)] {
        let (outcome, server) = exactly(50, 20, requests, ok);
        assert_eq!((outcome.ok, server.connections()), (requests, connections));
    }
}

#[test]
fn slow_and_large_bodies_are_received() {
    let (outcome, _) = exactly(2, 4, 20, async |mut exchange: Exchange| {
        let mut stream = exchange.head(200);
        for _ in 0..10 {
            stream.send_data(Bytes::from_static(b"piece"), false).unwrap();
            pause(1).await;
        }
        // An empty last frame, as many servers send it.
        stream.send_data(Bytes::new(), true).unwrap();
    });
    assert_eq!(outcome.ok, 20);
    let (outcome, _) = exactly(2, 4, 16, async |mut exchange: Exchange| exchange.say(200, vec![b'x'; 8 << 20]));
    assert_eq!(outcome.ok, 16);
    assert!(outcome.bytes_received > 16 * (8 << 20));
}

#[test]
fn a_thousand_streams_of_small_pieces_are_not_an_attack() {
    let (outcome, server) = exactly(1, 1000, 5000, async |mut exchange: Exchange| {
        let mut stream = exchange.head(200);
        for _ in 0..5 {
            stream.send_data(Bytes::from_static(b"x"), false).unwrap();
        }
        stream.send_data(Bytes::from_static(b"x"), true).unwrap();
    });
    assert_eq!((outcome.ok, server.connections()), (5000, 1));
}

#[test]
fn a_wrong_status_fails_the_request_and_keeps_the_connection() {
    let (outcome, server) = exactly(1, 4, 20, async |mut exchange: Exchange| {
        let status = if exchange.nth.is_multiple_of(2) { 200 } else { 503 };
        exchange.say(status, "");
    });
    assert_eq!((outcome.ok, outcome.failures.status, server.connections()), (10, 10, 1));
    assert_eq!(outcome.wrong_statuses, [(503, 10)].into());
}

#[test]
fn a_reset_stream_does_not_affect_others() {
    let (outcome, server) = exactly(1, 4, 40, async |mut exchange: Exchange| match exchange.nth % 4 {
        0 => exchange.respond.send_reset(Reason::INTERNAL_ERROR),
        1 => {
            let mut stream = exchange.head(200);
            stream.send_data(Bytes::from_static(b"half"), false).unwrap();
            pause(2).await;
            stream.send_reset(Reason::CANCEL);
        }
        _ => exchange.say(200, "hi"),
    });
    assert_eq!((outcome.ok, server.connections()), (20, 1));
    assert_eq!(outcome.failures, Failures { reset: 20, ..Failures::default() });
}

#[test]
fn requests_not_processed_before_a_goaway_are_sent_again() {
    let (outcome, server) = exactly(2, 5, 500, async |mut exchange: Exchange| {
        if exchange.nth % 50 == 49 {
            exchange.order(ScriptedOrder::GoAway);
        }
        pause(1).await;
        exchange.say(200, "hi");
    });
    assert!(server.connections() > 5, "{}", server.connections());
    assert_eq!(outcome.connections_opened, server.connections());
    // The server sends back the requests that it did not process, and receives them again.
    assert_eq!((outcome.ok, server.requests()), (500, 500), "{outcome:?}");
}

#[test]
fn a_closed_connection_fails_its_streams_and_is_reopened() {
    let (outcome, server) = exactly(1, 4, 100, async |mut exchange: Exchange| {
        if exchange.nth % 20 == 10 {
            exchange.order(ScriptedOrder::HangUp);
            exchange.hang().await;
        }
        exchange.say(200, "hi");
    });
    assert!((5..=20).contains(&outcome.failures.reset), "{outcome:?}");
    assert_eq!(outcome.ok + outcome.failures.reset, 100);
    assert!(server.connections() >= 5, "{}", server.connections());
}

#[test]
fn a_single_stream_server_gets_one_at_a_time() {
    let server = scripted::start_with(Builder::new().max_concurrent_streams(1), ok);
    let outcome = drive_lawfully(&plan(server.address, 1, 10, Until::Requests(200)));
    assert_eq!((outcome.ok, outcome.failures.total()), (200, 0));
    assert_eq!((server.connections(), server.busy_max()), (1, 1));
    // In an open model, a request waits for a stream as for a connection, and its response time shows it.
    let slow = scripted::start_with(Builder::new().max_concurrent_streams(1), async |mut exchange: Exchange| {
        pause(5).await;
        exchange.say(200, "hi");
    });
    let mut open_model = plan(slow.address, 1, 10, Until::Requests(40));
    open_model.work.schedule = at_rate(1000.0, Until::Requests(40), Pool::fixed(1));
    let outcome = drive_lawfully(&open_model);
    assert_eq!((outcome.ok, slow.busy_max()), (40, 1));
    assert!(outcome.queued >= 35 && outcome.queue_max >= 20, "{} {}", outcome.queued, outcome.queue_max);
    let (service, response) = (outcome.service.value_at_quantile(0.5), outcome.response.unwrap().max());
    assert!(response > 4 * service, "{response} {service}");
}

#[test]
fn an_open_model_sends_every_request_of_the_plan() {
    let server = scripted::start(ok);
    let mut open_model = plan(server.address, 2, 10, Until::Requests(500));
    open_model.work.schedule = at_rate(2000.0, Until::Requests(500), Pool::fixed(2));
    let outcome = drive_lawfully(&open_model);
    assert_eq!((outcome.ok, outcome.requests, outcome.offered), (500, 500, Some(500)));
    assert_eq!((outcome.response.unwrap().len(), outcome.lag.unwrap().len()), (500, 500));
    assert!(server.connections() <= 2);
}

#[test]
fn a_pool_grows_when_its_slots_are_taken() {
    let server = scripted::start(async |mut exchange: Exchange| {
        pause(40).await;
        exchange.say(200, "hi");
    });
    let mut growing = plan(server.address, 1, 4, Until::Requests(100));
    growing.work.schedule = at_rate(500.0, Until::Requests(100), Pool { connections: 1, connections_max: 20 });
    let outcome = drive_lawfully(&growing);
    assert_eq!(outcome.ok, 100);
    // 500 requests per second at 40 ms each need 20 slots. That is 5 connections, or more if a busy machine delays
    // responses, but not one for each request that waits for a handshake. The server sees at least half of the requests
    // in flight.
    let slots_needed = 2 * server.busy_max() + outcome.queue_max;
    assert!(server.connections() >= 3 && 4 * (server.connections() - 1) <= slots_needed, "{outcome:?}");
    assert_eq!(outcome.connections_asked, server.connections());
}

#[test]
fn a_silent_stream_times_out_and_the_connection_continues() {
    let server = scripted::start(async |mut exchange: Exchange| match exchange.nth % 4 {
        3 => exchange.hang().await,
        _ => exchange.say(200, "hi"),
    });
    let mut some = plan(server.address, 1, 4, Until::Requests(40));
    // Long enough that other responses do not time out, even on a busy machine.
    some.work.timeout = Span(Duration::from_secs(1));
    let outcome = drive_lawfully(&some);
    assert_eq!((outcome.ok, outcome.failures.timeout, server.connections()), (30, 10, 1));
}

/// A server that responds to each request after 30 ms and ignores everything else; returns its number of connections.
fn answer_late(listener: &std::net::TcpListener, over: &AtomicBool) -> u64 {
    let mut connections = 0;
    while let (Ok((mut stream, _)), false) = (listener.accept(), over.load(SeqCst)) {
        connections += 1;
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        stream.write_all(b"\0\0\0\x04\0\0\0\0\0").unwrap();
        let (clock, mut bytes, mut due, mut piece) = (Clock::start(), Vec::new(), VecDeque::new(), [0; 65536]);
        // The preface is not a frame.
        let mut at = 24;
        while let Ok(length) = stream.read(&mut piece).or_else(|e| matches!(e.kind(), WouldBlock).then_some(0).ok_or(e))
        {
            bytes.extend_from_slice(&piece[..length]);
            while let Some(head) = bytes.get(at..at + 9) {
                if head[3] == 1 {
                    due.push_back((clock.now_ns() + 30_000_000, head[5..9].to_vec()));
                }
                at += 9 + usize::from(head[0]) * 65536 + usize::from(head[1]) * 256 + usize::from(head[2]);
            }
            while due.front().is_some_and(|(at_ns, _)| *at_ns <= clock.now_ns())
                && let Some((_, id)) = due.pop_front()
            {
                if stream.write_all(&[&b"\0\0\x01\x01\x05"[..], &id, b"\x88"].concat()).is_err() {
                    break;
                }
            }
            if over.load(SeqCst) {
                break;
            }
        }
    }
    connections
}

#[test]
fn late_responses_to_forgotten_streams_are_ignored() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, over) = (listener.local_addr().unwrap(), AtomicBool::new(false));
    thread::scope(|scope| {
        let server = scope.spawn(|| answer_late(&listener, &over));
        let mut impatient = plan(address, 1, 100, Until::Requests(3000));
        impatient.work.timeout = Span(Duration::from_millis(8));
        impatient.give_up.failures_in_a_row = u64::MAX;
        let outcome = drive_lawfully(&impatient);
        over.store(true, SeqCst);
        // The server may be waiting for a connection.
        drop(std::net::TcpStream::connect(address));
        assert_eq!((failures(&outcome).timeout, server.join().unwrap()), (3000, 1));
    });
}

#[test]
fn a_silent_server_times_out_and_is_abandoned() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let outcome = check_silence(|until| plan(address, 2, 3, until));
    assert_eq!((outcome.ended, outcome.connections_opened), (End::Done, 6));
}

#[test]
fn other_protocols_fail_and_are_abandoned() {
    let headers_without_status = "\0\0\0\x01\x05\0\0\0\x01";
    let answers = ["HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "garbage\r\n\r\n", headers_without_status];
    for answer in answers {
        let server = ScriptedServer::start(move |exchange| {
            exchange.say(answer)?;
            exchange.hang()
        });
        let mut hopeless = plan(server.address, 2, 5, Until::Elapsed(Span::seconds(60)));
        hopeless.give_up.failures_in_a_row = 20;
        if answer == headers_without_status {
            // Only the stream is wrong; the connection continues, and the server sends nothing more.
            hopeless.work.timeout = Span(Duration::from_millis(50));
            hopeless.give_up.silence_ns = 300_000_000;
        }
        let outcome = drive_lawfully(&hopeless);
        assert!(failures(&outcome).protocol >= 2, "{outcome:?}");
        assert_eq!(outcome.failures.total(), outcome.failures.protocol + outcome.failures.timeout, "{outcome:?}");
        let End::GaveUp(why) = &outcome.ended else { panic!("{outcome:?}") };
        assert!(outcome.failures.timeout > 0 || why.ends_with("the last got a response that is not HTTP"), "{why}");
    }
}

#[test]
fn a_silent_close_is_a_reset_and_no_listener_is_refused() {
    let server = ScriptedServer::start(|_| Ok(Next::Close));
    let outcome = drive_lawfully(&plan(server.address, 2, 2, Until::Requests(8)));
    assert_eq!(failures(&outcome), Failures { reset: 8, ..Failures::default() });
    let address = server.address;
    drop(server);
    let mut refused = plan(address, 2, 10, Until::Elapsed(Span::seconds(60)));
    refused.give_up.failures_in_a_row = 20;
    let outcome = drive_lawfully(&refused);
    assert_eq!(failures(&outcome).total(), outcome.failures.refused);
    assert!(outcome.elapsed_ns >= 90_000_000, "20 refusals on 2 connections cause nine pauses: {outcome:?}");
}

/// A server that requires 500,000 ping acknowledgments before it reads any: more than sockets can hold.
#[test]
fn a_stalled_server_is_served_once_it_reads() {
    const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0pingpong";
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reading = stream.try_clone().unwrap();
        let reader = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            io::copy(&mut reading, &mut io::sink()).unwrap()
        });
        // First the settings; at the end `:status: 200` as the whole response.
        stream.write_all(b"\0\0\0\x04\0\0\0\0\0").unwrap();
        stream.write_all(&PING.repeat(500_000)).unwrap();
        stream.write_all(b"\0\0\x01\x01\x05\0\0\0\x01\x88").unwrap();
        drop(stream);
        reader.join().unwrap()
    });
    let outcome = drive_lawfully(&plan(address, 1, 1, Until::Requests(1)));
    assert_eq!(outcome.ok, 1, "{outcome:?}");
    let read = server.join().unwrap();
    assert!(read > 500_000 * PING.len() as u64 && outcome.bytes_sent == read, "{read}");
}

#[test]
fn uploads_larger_than_the_windows_arrive_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("body");
    std::fs::write(&path, "0123456789".repeat(200_000)).unwrap();
    let bodies = [
        Body::Generated(Size(300_000)),
        Body::Generated(Size::mib(5)),
        Body::Zero(Size::mib(3)),
        Body::File(path),
        Body::Text("<{seq}>".to_owned()),
    ];
    for body in bodies {
        let length = match &body {
            Body::Generated(size) | Body::Zero(size) => size.0,
            Body::Text(_) => 3,
            Body::None | Body::File(_) => 2_000_000,
        };
        let server = scripted::start(move |mut exchange: Exchange| async move {
            let got = exchange.body().await;
            let told = exchange.request.headers()["content-length"].to_str().unwrap().parse::<u64>().unwrap();
            let right = got.len() as u64 == length && told == length;
            exchange.say(if right { 200 } else { 500 }, "hi");
        });
        let mut upload = plan(server.address, 2, 3, Until::Requests(10));
        upload.work.request.method = Method::Put;
        upload.work.request.body = body.clone();
        let outcome = drive_lawfully(&upload);
        assert_eq!((outcome.ok, server.connections()), (10, 2), "{body:?} {outcome:?}");
        assert!(outcome.bytes_sent > 10 * length);
    }
}

#[test]
fn a_half_refused_upload_counts_by_its_status() {
    let server = scripted::start(async |mut exchange: Exchange| exchange.say(413, "too large"));
    let mut upload = plan(server.address, 1, 3, Until::Requests(9));
    upload.work.request.method = Method::Post;
    upload.work.request.body = Body::Generated(Size::mib(32));
    let outcome = drive_lawfully(&upload);
    assert_eq!(outcome.wrong_statuses, [(413, 9)].into(), "{outcome:?}");
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_response_to_head_has_no_body() {
    let server = scripted::start(async |mut exchange: Exchange| {
        let response = http::Response::builder().header("content-length", "1000").body(()).unwrap();
        exchange.respond.send_response(response, true).unwrap();
    });
    let mut head = plan(server.address, 1, 2, Until::Requests(10));
    head.work.request.method = Method::Head;
    assert_eq!(drive_lawfully(&head).ok, 10);
}

#[test]
fn responses_are_checked() {
    let (server, good, bad) = (scripted::start(ok), "h", "x");
    let mut checked = plan(server.address, 1, 2, Until::Requests(10));
    checked.work.request.checks.headers = vec![("X-Kind".to_owned(), Some("test".to_owned()))];
    checked.work.request.checks.length = Some(Size(2));
    checked.work.request.checks.body = Some(good.to_owned());
    assert_eq!(drive_lawfully(&checked).ok, 10);
    let mut wrong = checked.clone();
    wrong.work.request.checks.body = Some(bad.to_owned());
    assert_eq!(failures(&drive_lawfully(&wrong)), Failures { check: 10, ..Failures::default() });
    let mut wrong = checked.clone();
    wrong.work.request.checks.length = Some(Size(3));
    assert_eq!(failures(&drive_lawfully(&wrong)).check, 10);
    checked.work.request.checks.headers = vec![("X-Other".to_owned(), None)];
    assert_eq!(failures(&drive_lawfully(&checked)).check, 10);
}

#[test]
fn mixes_are_sent_by_weight_with_the_authority() {
    let server = scripted::start(async |mut exchange: Exchange| {
        let uri = exchange.request.uri();
        let named = uri.authority().is_some_and(|authority| authority.as_str() == "named:1");
        let status = if named && uri.path().starts_with("/b/") { 201 } else { 200 };
        exchange.say(status, "hi");
    });
    let mut mix = plan(server.address, 2, 4, Until::Requests(1000));
    mix.work.request.weight = 3;
    mix.work.others = vec![Request {
        headers: vec![("Host".to_owned(), "named:1".to_owned())],
        checks: crate::work::Checks { status: Some(crate::work::ExpectStatus::Exactly(201)), ..Default::default() },
        ..Request::new(Method::Get, "/b/{seq}")
    }];
    let outcome = drive_lawfully(&mix);
    assert_eq!(outcome.ok, 1000);
    // Five standard deviations of a binomial with p = 0.25.
    assert!((180..320).contains(&outcome.by_request[1].0), "{:?}", outcome.by_request);
}

#[test]
fn rows_describe_each_request() {
    let server = scripted::start(ok);
    let mut rows = plan(server.address, 2, 3, Until::Requests(50));
    rows.rows_max = 100;
    let outcome = drive_lawfully(&rows);
    assert_eq!(outcome.rows.len(), 50);
    let fits = |row: &crate::Row| {
        let ordered = row.started_ns <= row.connected_ns && row.first_byte_ns <= row.ended_ns;
        ordered
            && (row.status, row.body_bytes, row.failure) == (200, 2, None)
            && row.connection.is_some_and(|of| of < 2)
    };
    assert!(outcome.rows.iter().all(fits), "{:?}", outcome.rows);
    assert_eq!(outcome.rows.iter().filter(|row| row.connected_ns > row.started_ns).count(), 2, "two had to connect");
}

#[test]
fn thinking_lowers_the_rate_and_time_ends_the_phase() {
    let server = scripted::start(ok);
    let mut thinking = plan(server.address, 1, 4, Until::Elapsed(Span(Duration::from_millis(300))));
    let Schedule::Closed { think, .. } = &mut thinking.work.schedule else { panic!() };
    *think = Span(Duration::from_millis(50));
    let outcome = drive_lawfully(&thinking);
    assert_eq!((outcome.ended.clone(), outcome.failures.total()), (End::Done, 0));
    assert!((4..=28).contains(&outcome.ok), "{outcome:?}");
}

#[test]
fn unanswered_requests_have_their_age() {
    let server = scripted::start(async |exchange: Exchange| exchange.hang().await);
    let mut plan = plan(server.address, 1, 3, Until::Elapsed(Span(Duration::from_millis(50))));
    plan.work.drain = Some(Span(Duration::from_millis(50)));
    let outcome = drive_lawfully(&plan);
    assert_eq!(failures(&outcome), Failures { unanswered: 3, ..Failures::default() });
    assert!(outcome.unanswered.max() >= 90_000_000, "{}", outcome.unanswered.max());
}

#[test]
fn a_stop_works_while_the_server_is_silent() {
    let server = scripted::start(async |exchange: Exchange| exchange.hang().await);
    check_stop(&plan(server.address, 2, 3, Until::Elapsed(Span::seconds(600))), &server, 6, 2);
}

#[test]
fn several_threads_share_the_work() {
    let server = scripted::start(ok);
    let plan = plan(server.address, 4, 5, Until::Requests(1001));
    let outcome = crate::drive_threads(&plan, Clock::start(), &Control::default(), 2, &[], &mut |_| {}).unwrap();
    assert_eq!((outcome.ok, outcome.threads, server.connections()), (1001, 2, 4));
}
