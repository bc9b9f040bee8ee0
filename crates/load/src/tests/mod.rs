//! The engine against scripted servers. No test here depends on timing, except that everything must end.

mod contents;
mod models;

use super::scripted::{Exchange, Next, ScriptedServer, wait_until};
use super::*;
use crate::work::{Arrivals, Body, ExpectStatus, Method, Pool, Rate, Request, Schedule, Spacing, Until};
use loadline_base::units::{Bytes, Span};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

pub(super) fn plan(address: SocketAddr, connections: u32, until: Until) -> Plan {
    let mut work = Work::closed(Request::new(Method::Get, "/"), connections, until);
    // Long enough for a busy machine; tests of timeouts set their own.
    work.timeout = Span(Duration::from_secs(60));
    let (give_up, target) = (GiveUp::for_work(&work), Target::plain(address, address.to_string()));
    Plan { target, give_up, work, seed: 1, rows_max: 0, rows_failed_max: 0 }
}

/// An open model with this many starts per second.
pub(super) fn at_rate(rate: f64, until: Until, pool: Pool) -> Schedule {
    let arrivals = Arrivals::Rate { rate: Rate::Constant(rate), spacing: Spacing::Even, until };
    Schedule::Open { arrivals, pool }
}

/// Drives the plan and checks the laws that hold for every outcome.
pub(super) fn drive_lawfully(plan: &Plan) -> Outcome {
    drive_under(plan, &Control::default())
}

pub(super) fn drive_under(plan: &Plan, control: &Control) -> Outcome {
    let (mut ok, mut failed, mut merged, mut spans) = (0, 0, None, Vec::new());
    let outcome = drive(plan, Clock::start(), control, &mut |interval: &Interval| {
        ok += interval.ok;
        failed += interval.failed;
        spans.push((interval.start_ns, interval.end_ns));
        match &mut merged {
            None => merged = Some(interval.service.clone()),
            Some(merged) => merged.add(&interval.service).unwrap(),
        }
    })
    .unwrap();
    assert_eq!(outcome.requests, outcome.ok + outcome.failures.total());
    assert_eq!((ok, failed), (outcome.ok, outcome.failures.total()), "intervals add up");
    assert_eq!(merged.unwrap(), outcome.service, "merged interval histograms equal the total");
    assert!(spans.windows(2).all(|pair| pair[0].1 == pair[1].0), "{spans:?}");
    assert_eq!(outcome.service.len(), outcome.ok, "every correct response is in the histogram");
    assert!(outcome.response.as_ref().is_none_or(|response| response.len() == outcome.ok));
    assert!(outcome.lag.as_ref().is_none_or(|lag| lag.len() + outcome.failures.unanswered >= outcome.requests));
    assert_eq!(outcome.unanswered.len(), outcome.failures.unanswered);
    let (by_ok, by_failed) = outcome.by_request.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!((by_ok, by_failed + outcome.never_begun), (outcome.ok, outcome.failures.total()));
    // In HTTP/2, a connection that ends after a GOAWAY stays open while its successor is open. Each has at least one
    // last request.
    let at_once = if plan.work.protocol == Protocol::Http1 { 1 } else { 1 + u64::from(plan.work.protocol.streams()) };
    assert!(outcome.connections_open_max <= at_once * outcome.connections_asked);
    assert_eq!(outcome.rows.len() as u64, outcome.requests.min(plan.rows_max as u64));
    assert!(outcome.rate_ok <= outcome.ok);
    assert_eq!(outcome.failures.status, outcome.wrong_statuses.values().sum::<u64>());
    assert_eq!((control.ok(), control.failed()), (outcome.ok, outcome.failures.total()));
    assert_eq!(control.open_connections(), 0);
    if let Some(Until::Requests(n)) = plan.work.schedule.until() {
        assert!(outcome.requests + outcome.in_flight <= n);
    }
    if outcome.ended == End::Done {
        assert_eq!(outcome.in_flight, 0);
    }
    outcome
}

/// Sends exactly `requests` requests over `connections` connections to a server with this script.
fn exactly(
    connections: u32,
    requests: u64,
    script: impl Fn(&mut Exchange<'_>) -> io::Result<Next> + Send + Sync + 'static,
) -> (Outcome, ScriptedServer) {
    let server = ScriptedServer::start(script);
    let outcome = drive_lawfully(&plan(server.address, connections, Until::Requests(requests)));
    assert_eq!(outcome.requests, requests);
    assert_eq!(outcome.ended, End::Done);
    (outcome, server)
}

/// The outcome of a plan on a server that accepts `connections` in turn and calls `serve` for each.
fn drive_on(mut plan: Plan, connections: usize, serve: impl Fn(&mut TcpStream) + Send) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    plan.target.address = Address::Tcp(listener.local_addr().unwrap());
    thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..connections {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                serve(&mut stream);
            }
        });
        drive_lawfully(&plan)
    })
}

/// A placeholder address: no test connects to it.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

pub(super) fn failures(outcome: &Outcome) -> Failures {
    assert_eq!(outcome.ok, 0);
    outcome.failures
}

#[test]
fn keep_alive_sends_exactly_the_requested_number_of_requests() {
    let (outcome, server) = exactly(5, 1003, |exchange| exchange.say(OK));
    assert_eq!((outcome.ok, server.requests()), (1003, 1003));
    assert_eq!((outcome.connections_opened, server.connections()), (5, 5));
    assert_eq!(outcome.bytes_received, 1003 * OK.len() as u64);
    assert!(outcome.response.is_none() && outcome.lag.is_none() && outcome.offered.is_none());
    assert!(outcome.achieved_per_s() > 0.0 && outcome.cpu_ns > 0);
}

#[test]
fn connections_are_limited_by_the_number_of_requests() {
    let (outcome, server) = exactly(50, 3, |exchange| exchange.say(OK));
    assert_eq!((outcome.ok, server.connections()), (3, 3));
    let (outcome, server) = exactly(50, 0, |exchange| exchange.say(OK));
    assert_eq!((outcome.requests, server.connections()), (0, 0));
}

#[test]
fn an_ipv6_server_is_reached() {
    if TcpListener::bind("[::1]:0").is_err() {
        return loadline_test_support::skip("LOADLINE_MACHINE", "there is no IPv6");
    }
    let server = ScriptedServer::start_at("[::1]:0", |exchange| exchange.say(OK));
    assert_eq!(drive_lawfully(&plan(server.address, 2, Until::Requests(10))).ok, 10);
}

#[test]
fn each_request_has_its_own_connection_if_requested() {
    let server = ScriptedServer::start(|exchange| {
        assert!(exchange.head.contains("Connection: close"));
        exchange.say(OK)?;
        Ok(Next::Close)
    });
    let mut plan = plan(server.address, 4, Until::Requests(200));
    plan.work.keep_alive = false;
    let outcome = drive_lawfully(&plan);
    assert_eq!((outcome.ok, outcome.connections_opened, server.connections()), (200, 200, 200));
}

#[test]
fn an_announced_close_is_not_a_failure() {
    let (outcome, server) = exactly(2, 20, |exchange| {
        exchange.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
        Ok(Next::Close)
    });
    assert_eq!((outcome.ok, server.connections()), (20, 20));
}

#[test]
fn an_unannounced_close_costs_at_most_the_next_request() {
    let (outcome, _) = exactly(2, 100, |exchange| {
        exchange.say(OK)?;
        Ok(if exchange.nth % 5 == 4 { Next::Close } else { Next::Keep })
    });
    assert!(outcome.ok >= 80, "{outcome:?}");
    assert_eq!(outcome.failures.total(), outcome.failures.reset, "{outcome:?}");
}

#[test]
fn a_chunked_response_in_single_bytes_is_read() {
    let (outcome, server) = exactly(2, 6, |exchange| {
        for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" {
            exchange.stream.write_all(&[*byte])?;
        }
        Ok(Next::Keep)
    });
    assert_eq!((outcome.ok, server.connections()), (6, 2));
}

#[test]
fn a_response_split_at_any_byte_is_read() {
    let (outcome, _) = exactly(4, OK.len() as u64, |exchange| {
        let (first, second) = OK.as_bytes().split_at(exchange.nth as usize);
        exchange.stream.write_all(first)?;
        thread::sleep(Duration::from_millis(1));
        exchange.stream.write_all(second)?;
        Ok(Next::Keep)
    });
    assert_eq!(outcome.ok, OK.len() as u64);
}

#[test]
fn a_body_that_ends_with_the_connection_is_read() {
    let (outcome, server) = exactly(2, 10, |exchange| {
        exchange.say("HTTP/1.1 200 OK\r\n\r\n")?;
        exchange.say(&"x".repeat(100_000))?;
        Ok(Next::Close)
    });
    assert_eq!((outcome.ok, server.connections()), (10, 10));
    assert!(outcome.bytes_received > 1_000_000);
}

#[test]
fn interim_responses_and_responses_without_a_body() {
    let (outcome, server) = exactly(2, 10, |exchange| {
        exchange.say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n")?;
        thread::sleep(Duration::from_millis(1));
        exchange.say("HTTP/1.1 204 No Content\r\n\r\n")
    });
    assert_eq!((outcome.ok, server.connections()), (10, 2));
}

#[test]
fn a_wrong_status_fails_the_request_and_keeps_the_connection() {
    let (outcome, server) = exactly(2, 10, |exchange| match exchange.nth % 2 {
        0 => exchange.say(OK),
        _ => exchange.say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
    });
    assert_eq!((outcome.ok, outcome.failures.status, server.connections()), (5, 5, 2));
    assert_eq!(outcome.wrong_statuses, [(503, 5)].into());
    let server = ScriptedServer::start(|exchange| exchange.say("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"));
    let mut plan = plan(server.address, 1, Until::Requests(3));
    plan.work.expect = ExpectStatus::Exactly(404);
    assert_eq!(drive_lawfully(&plan).ok, 3);
}

#[test]
fn other_bytes_are_a_protocol_failure() {
    for answer in ["garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ntoo long"] {
        let (outcome, server) = exactly(1, 3, move |exchange| exchange.say(answer));
        assert_eq!(failures(&outcome), Failures { protocol: 3, ..Failures::default() });
        assert_eq!(server.connections(), 3);
    }
    let (outcome, _) = exactly(1, 2, |exchange| exchange.say(&format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(70_000))));
    assert_eq!(failures(&outcome).protocol, 2);
}

#[test]
fn a_server_that_dies_leaves_resets_and_refusals_and_an_exact_count() {
    let (outcome, server) = exactly(3, 60, |exchange| match exchange.nth {
        20 => Ok(Next::Die),
        _ => exchange.say(OK),
    });
    assert!((18..=25).contains(&outcome.ok), "{outcome:?}");
    assert!(server.requests() <= 25);
    assert!(outcome.failures.refused > 0, "{outcome:?}");
    assert_eq!(outcome.failures.total(), outcome.failures.refused + outcome.failures.reset);
}

/// Checks that a phase gives up on a server that never responds, and that six requests to it time out under the usual
/// limits. Returns the outcome of these six.
pub(super) fn check_silence(until: impl Fn(Until) -> Plan) -> Outcome {
    let impatient = |end: Until| {
        let mut plan = until(end);
        plan.work.timeout = Span(Duration::from_millis(60));
        plan
    };
    let mut timed = impatient(Until::Elapsed(Span::seconds(60)));
    timed.give_up = GiveUp::for_work(&timed.work);
    let outcome = drive_lawfully(&timed);
    let End::GaveUp(why) = &outcome.ended else { panic!("{outcome:?}") };
    assert!(why.starts_with("no successful response for 0.") && why.ends_with("the last timed out"), "{why}");
    let outcome = drive_lawfully(&impatient(Until::Requests(6)));
    assert_eq!(failures(&outcome), Failures { timeout: 6, ..Failures::default() });
    outcome
}

#[test]
fn a_silent_server_times_out_and_is_abandoned() {
    let server = ScriptedServer::start(|exchange| exchange.hang());
    assert_eq!(check_silence(|until| plan(server.address, 3, until)).ended, End::Done);
}

#[test]
fn a_late_response_is_a_timeout() {
    let (timeout, server) = (
        Duration::from_millis(20),
        ScriptedServer::start(|exchange| {
            thread::sleep(Duration::from_millis(22));
            exchange.say(OK)
        }),
    );
    let mut plan = plan(server.address, 1, Until::Requests(10));
    plan.work.timeout = Span(timeout);
    assert_eq!(failures(&drive_lawfully(&plan)), Failures { timeout: 10, ..Failures::default() });
}

#[test]
fn refused_connections_are_retried_with_pauses() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let mut plan = plan(address, 2, Until::Elapsed(Span::seconds(60)));
    plan.give_up.failures_in_a_row = 20;
    let outcome = drive_lawfully(&plan);
    assert_eq!(failures(&outcome).total(), outcome.failures.refused);
    assert_eq!(outcome.ended, End::GaveUp("20 requests in a row failed; the last was refused".to_owned()));
    assert!(outcome.elapsed_ns >= 90_000_000, "20 refusals on 2 connections cause nine pauses: {outcome:?}");
}

/// Stops a phase while `requests` requests on `connections` connections wait for a server that never responds.
pub(super) fn check_stop(plan: &Plan, server: &ScriptedServer, requests: u64, connections: u64) {
    let (control, clock) = (Control::default(), Clock::start());
    thread::scope(|scope| {
        let driving = scope.spawn(|| drive_under(plan, &control));
        wait_until(clock, || server.requests() == requests && control.open_connections() == connections);
        control.stop();
        let outcome = driving.join().unwrap();
        assert_eq!((outcome.ended, outcome.in_flight, outcome.requests), (End::Stopped, requests, 0));
    });
    assert!(clock.now_s() < 30.0);
}

#[test]
fn a_stop_works_while_the_server_is_silent() {
    let server = ScriptedServer::start(|exchange| exchange.hang());
    check_stop(&plan(server.address, 3, Until::Elapsed(Span::seconds(600))), &server, 3, 3);
}

#[test]
fn time_ends_the_phase_and_requests_in_flight_are_drained() {
    let server = ScriptedServer::start(|exchange| {
        thread::sleep(Duration::from_millis(if exchange.nth == 0 { 1500 } else { 1 }));
        exchange.say(OK)
    });
    let outcome = drive_lawfully(&plan(server.address, 2, Until::Elapsed(Span(Duration::from_millis(300)))));
    assert_eq!((outcome.ended.clone(), outcome.failures.total()), (End::Done, 0));
    assert_eq!(outcome.ok, server.requests(), "every request was counted");
    assert!(outcome.rate_span_ns <= 300_000_000, "the rate span ends with the planned time");
    assert!(outcome.rate_ok < outcome.ok, "a response after the planned end is not in the rate");
    assert!(outcome.service.max() >= 1_400_000_000 && outcome.elapsed_ns >= 1_400_000_000);
}

#[test]
fn a_large_upload_arrives_complete() {
    let server = ScriptedServer::start(|exchange| {
        assert_eq!(exchange.body.len(), 2 << 20);
        assert!(exchange.body.iter().all(u8::is_ascii_graphic));
        exchange.say(OK)
    });
    let mut plan = plan(server.address, 2, Until::Requests(6));
    plan.work.request.method = Method::Put;
    plan.work.request.body = Body::Generated(Bytes::mib(2));
    let outcome = drive_lawfully(&plan);
    assert_eq!((outcome.ok, server.connections()), (6, 2));
    assert!(outcome.bytes_sent > 12 << 20);
}

#[test]
fn a_large_response_is_received() {
    let (outcome, _) = exactly(2, 4, |exchange| {
        exchange.say("HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n")?;
        exchange.stream.write_all(&vec![b'x'; 8 << 20])?;
        Ok(Next::Keep)
    });
    assert_eq!(outcome.ok, 4);
    assert!(outcome.bytes_received > 32 << 20);
}

#[test]
fn a_half_refused_upload_counts_by_its_status() {
    let mut plan = plan(NOWHERE, 1, Until::Requests(1));
    plan.work.request.method = Method::Post;
    plan.work.request.body = Body::Generated(Bytes::mib(32));
    let outcome = drive_on(plan, 1, |stream| {
        stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").unwrap();
        // Closing with unread input resets the connection.
        thread::sleep(Duration::from_millis(20));
    });
    assert_eq!(outcome.wrong_statuses, [(413, 1)].into(), "{outcome:?}");
}

#[test]
fn a_phase_that_cannot_begin_is_an_error() {
    let mut impossible = plan(NOWHERE, 1, Until::Requests(1));
    impossible.work.request.body = Body::File("/nowhere".into());
    let error = drive(&impossible, Clock::start(), &Control::default(), &mut |_| {}).unwrap_err();
    assert!(error.what.contains("/nowhere"), "{error}");
    let crowded = plan(NOWHERE, u32::MAX, Until::Elapsed(Span::seconds(1)));
    let error = drive(&crowded, Clock::start(), &Control::default(), &mut |_| {}).unwrap_err();
    assert!(error.what.contains("file descriptors"), "{error}");
}
