//! Contents: sent and received data, correct responses; slow peers, resets at every byte, Unix sockets.

use super::*;
use crate::work::{Checks, Pace};
use rustix::net::sockopt::set_socket_linger;
use std::io::Read;

/// Sends exactly `requests` requests on one connection, with changed work.
fn changed(
    requests: u64,
    change: impl FnOnce(&mut Work),
    script: impl Fn(&mut Exchange<'_>) -> io::Result<Next> + Send + Sync + 'static,
) -> (Outcome, ScriptedServer) {
    let server = ScriptedServer::start(script);
    let mut plan = plan(server.address, 1, Until::Requests(requests));
    change(&mut plan.work);
    (drive_lawfully(&plan), server)
}

#[test]
fn a_response_to_head_never_has_a_body() {
    let (outcome, server) = changed(
        5,
        |work| work.request.method = Method::Head,
        |exchange| {
            assert!(exchange.head.starts_with("HEAD / "));
            match exchange.nth % 2 {
                0 => exchange.say("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
                _ => exchange.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            }
        },
    );
    assert_eq!((outcome.ok, server.connections()), (5, 1));
}

#[test]
fn redirects_are_not_followed() {
    let (outcome, server) =
        changed(3, |_| {}, |exchange| exchange.say("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!((failures(&outcome).status, server.requests()), (3, 3));
    assert_eq!(outcome.wrong_statuses, [(302, 3)].into());
}

#[test]
fn a_mix_is_drawn_by_weight_with_separate_checks() {
    let mix = |work: &mut Work| {
        work.request = Request { weight: 3, ..Request::new(Method::Get, "/a") };
        let checks = Checks { status: Some(ExpectStatus::Exactly(201)), ..Checks::default() };
        work.others = vec![
            Request { checks, body: Body::Text("<{seq}>".to_owned()), ..Request::new(Method::Post, "/b") },
            Request::new(Method::Delete, "/c"),
        ];
    };
    let (outcome, _) = changed(500, mix, |exchange| match exchange.head.split(' ').nth(1) {
        Some("/a") => exchange.say(OK),
        Some("/b") => {
            assert_eq!(exchange.body, format!("<{}>", exchange.nth).as_bytes());
            exchange.say("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        }
        _ => exchange.say("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
    });
    let [(a, 0), (b, 0), (0, c)] = outcome.by_request[..] else { panic!("{:?}", outcome.by_request) };
    // Five standard deviations of 500 requests with weights 3, 1, 1.
    assert!((245..355).contains(&a) && (55..145).contains(&b) && (55..145).contains(&c), "{a} {b} {c}");
    assert_eq!(outcome.failures.status, c);
}

#[test]
fn checks_of_length_header_and_text() {
    let chunked = "HTTP/1.1 200 OK\r\nX-Kind: fresh\r\nTransfer-Encoding: chunked\r\n\r\n";
    let check = |checks: Checks, ok: bool| {
        let answer = move |exchange: &mut Exchange<'_>| {
            exchange.say(chunked)?;
            for piece in ["3\r\nhel\r\n", "8\r\nlo world\r\n", "0\r\n\r\n"] {
                exchange.say(piece)?;
                thread::sleep(Duration::from_millis(1));
            }
            Ok(Next::Keep)
        };
        let (outcome, server) = changed(2, |work| work.request.checks = checks.clone(), answer);
        let expected = if ok { (2, 0) } else { (0, 2) };
        assert_eq!((outcome.ok, outcome.failures.check), expected, "{checks:?}");
        assert_eq!(server.connections(), 1, "a failed check keeps the connection");
    };
    let header = |name: &str, value: Option<&str>| Checks {
        headers: vec![(name.to_owned(), value.map(str::to_owned))],
        ..Checks::default()
    };
    check(Checks { length: Some(Bytes(11)), ..Checks::default() }, true);
    check(Checks { length: Some(Bytes(10)), ..Checks::default() }, false);
    check(header("x-kind", Some("fresh")), true);
    check(header("x-kind", None), true);
    check(header("x-kind", Some("stale")), false);
    check(header("x-other", None), false);
    check(Checks { body: Some("hello w".to_owned()), ..Checks::default() }, true);
    check(Checks { body: Some("hello  w".to_owned()), ..Checks::default() }, false);
}

#[test]
fn a_text_is_searched_until_the_close() {
    let checks = Checks { body: Some("end".to_owned()), ..Checks::default() };
    let (outcome, _) = changed(
        4,
        |work| work.request.checks = checks,
        |exchange| {
            exchange.say("HTTP/1.1 200 OK\r\n\r\nthe e")?;
            exchange.say(if exchange.nth % 2 == 0 { "nd" } else { "rr" })?;
            Ok(Next::Close)
        },
    );
    assert_eq!((outcome.ok, outcome.failures.check), (2, 2));
}

fn read_until(stream: &mut impl Read, end: &str) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(end.as_bytes()) && stream.read(&mut byte).unwrap() == 1 {
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

fn upload(requests: u64) -> Plan {
    let mut plan = plan(NOWHERE, 1, Until::Requests(requests));
    plan.work.request.method = Method::Put;
    plan.work.request.body = Body::Text("contents".to_owned());
    plan.work.request.expect_continue = true;
    plan
}

#[test]
fn a_body_waits_for_100_continue() {
    let outcome = drive_on(upload(3), 1, |stream| {
        for _ in 0..3 {
            assert!(read_until(stream, "\r\n\r\n").contains("Expect: 100-continue\r\n"));
            thread::sleep(Duration::from_millis(20));
            stream.set_nonblocking(true).unwrap();
            assert!(stream.read(&mut [0]).is_err(), "the body must not arrive before the 100 response");
            stream.set_nonblocking(false).unwrap();
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
            assert_eq!(read_until(stream, "contents"), "contents");
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    assert_eq!(outcome.ok, 3);
}

#[test]
fn a_rejected_body_is_not_sent() {
    let outcome = drive_on(upload(2), 2, |stream| {
        read_until(stream, "\r\n\r\n");
        stream.write_all(b"HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n").unwrap();
        assert_eq!(read_until(stream, "contents"), "", "the client closes the connection without sending the body");
    });
    assert_eq!(outcome.wrong_statuses, [(417, 2)].into());
}

#[test]
fn a_body_does_not_wait_forever() {
    let outcome = drive_on(upload(1), 1, |stream| {
        read_until(stream, "\r\n\r\n");
        assert_eq!(read_until(stream, "contents"), "contents");
        stream.write_all(OK.as_bytes()).unwrap();
    });
    assert_eq!(outcome.ok, 1);
    assert!(outcome.service.max() >= 990_000_000, "the client waits one second for the 100 response");
}

#[test]
fn a_long_body_is_sent_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    let bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&file, &bytes).unwrap();
    let (outcome, server) = changed(
        3,
        |work| work.request = Request { body: Body::File(file), ..Request::new(Method::Put, "/") },
        move |exchange| {
            assert!(exchange.body == bytes);
            exchange.say(OK)
        },
    );
    assert_eq!((outcome.ok, server.connections()), (3, 1));
}

#[test]
fn a_slow_sender_keeps_its_pace() {
    let slow = |work: &mut Work| {
        work.request = Request { body: Body::Generated(Bytes(2000)), ..Request::new(Method::Put, "/") };
        work.pace = Pace { send: Some(Bytes(10_000)), receive: None };
    };
    let (outcome, _) = changed(2, slow, |exchange| exchange.say(OK));
    assert_eq!(outcome.ok, 2);
    // 2,000 bytes and a head at 10,000 bytes a second, the first portion immediately.
    assert!(outcome.service.min() >= 190_000_000, "{}", outcome.service.min());
}

#[test]
fn a_slow_connection_does_not_catch_up_after_waiting() {
    let slow = |work: &mut Work| {
        work.request = Request { body: Body::Generated(Bytes(1000)), ..Request::new(Method::Put, "/") };
        work.pace = Pace { send: Some(Bytes(10_000)), receive: Some(Bytes(10_000)) };
        let Schedule::Closed { think, .. } = &mut work.schedule else { unreachable!() };
        *think = Span(Duration::from_millis(300));
    };
    let (outcome, _) = changed(3, slow, |exchange| {
        thread::sleep(Duration::from_millis(300));
        exchange.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{}", "x".repeat(1000)))
    });
    assert_eq!(outcome.ok, 3);
    // 1,000 bytes and a head each way at 10,000 bytes a second, plus the server's own time.
    assert!(outcome.service.min() >= 490_000_000, "{}", outcome.service.min());
}

#[test]
fn a_slow_body_that_waits_for_100_continue_is_sent() {
    let mut plan = upload(1);
    plan.work.pace.send = Some(Bytes(1000));
    let outcome = drive_on(plan, 1, |stream| {
        read_until(stream, "\r\n\r\n");
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        assert_eq!(read_until(stream, "contents"), "contents");
        stream.write_all(OK.as_bytes()).unwrap();
    });
    assert_eq!(outcome.ok, 1);
}

#[test]
fn a_slow_reader_keeps_its_pace_and_delays_the_server() {
    let slow = |work: &mut Work| work.pace = Pace { send: None, receive: Some(Bytes(1 << 20)) };
    let (outcome, _) = changed(1, slow, |exchange| {
        exchange.say("HTTP/1.1 200 OK\r\nContent-Length: 4194304\r\n\r\n")?;
        // Far more than the kernel's send buffer.
        exchange.stream.write_all(&vec![b'x'; 4 << 20])?;
        Ok(Next::Keep)
    });
    assert_eq!(outcome.ok, 1);
    assert!(outcome.service.min() >= 3_900_000_000, "4 MiB at 1 MiB/s take four seconds: {}", outcome.service.min());
}

#[test]
fn a_body_that_never_ends_is_a_timeout() {
    let forever = |exchange: &mut Exchange<'_>| {
        exchange.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        loop {
            exchange.say("5\r\nmore.\r\n")?;
            thread::sleep(Duration::from_millis(1));
        }
    };
    let (outcome, _) = changed(2, |work| work.timeout = Span(Duration::from_millis(100)), forever);
    assert_eq!(failures(&outcome), Failures { timeout: 2, ..Failures::default() });
    assert!(outcome.bytes_received > 0);
}

#[test]
fn a_connection_reset_after_any_byte_counts_as_reset() {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
    let (outcome, _) = exactly(1, answer.len() as u64, move |exchange| {
        let cut = exchange.nth as usize;
        exchange.stream.write_all(&answer.as_bytes()[..cut])?;
        thread::sleep(Duration::from_millis(1));
        // A zero linger time turns the close into a reset.
        set_socket_linger(&*exchange.stream, Some(Duration::ZERO))?;
        Ok(Next::Abort)
    });
    assert_eq!((outcome.ok, outcome.failures.total()), (0, answer.len() as u64));
    assert_eq!(outcome.failures.reset, answer.len() as u64, "{:?}", outcome.failures);
}

#[test]
fn a_close_after_any_byte_counts_as_reset_or_short() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let (outcome, _) = exactly(1, answer.len() as u64, move |exchange| {
        exchange.stream.write_all(&answer.as_bytes()[..exchange.nth as usize])?;
        Ok(Next::Close)
    });
    let expected = Failures { reset: 1, short: answer.len() as u64 - 1, ..Failures::default() };
    assert_eq!(outcome.failures, expected);
}

#[test]
fn garbage_in_place_of_every_byte_of_a_head_ends_every_request() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let head = answer.len() as u64 - 2;
    let (outcome, _) = exactly(2, head, move |exchange| {
        let mut bytes = answer.as_bytes().to_vec();
        bytes[exchange.nth as usize] = 0;
        exchange.stream.write_all(&bytes)?;
        Ok(Next::Close)
    });
    assert_eq!((outcome.requests, outcome.ok), (head, 0), "{:?}", outcome.failures);
}

#[test]
fn rows_describe_each_request_as_it_happened() {
    let server = ScriptedServer::start(|exchange| match exchange.nth % 2 {
        0 => exchange.say(OK),
        _ => exchange.say("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),
    });
    let mut plan = plan(server.address, 2, Until::Requests(10));
    plan.rows_max = 100;
    let outcome = drive_lawfully(&plan);
    assert!(outcome.rows.windows(2).all(|pair| pair[0].started_ns <= pair[1].started_ns));
    for row in &outcome.rows {
        assert!(row.intended_ns <= row.started_ns && row.started_ns <= row.connected_ns, "{row:?}");
        assert!(row.connected_ns <= row.first_byte_ns && row.first_byte_ns <= row.ended_ns, "{row:?}");
        let expected = if row.status == 200 { (None, 2) } else { (Some("wrong status"), 0) };
        assert_eq!((row.failure, row.body_bytes), expected);
    }
    assert_eq!(outcome.rows.iter().filter(|row| row.failure.is_none()).count(), 5);
}

#[test]
fn unix_sockets_carry_the_same_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut plan = plan(NOWHERE, 1, Until::Requests(20));
    plan.target.address = Address::Unix(path.clone());
    plan.give_up.failures_in_a_row = 5;
    let outcome = drive_lawfully(&plan);
    assert_eq!(failures(&outcome).refused, outcome.requests, "no server listens, so all are refused");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..20 {
            read_until(&mut stream, "\r\n\r\n");
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let outcome = drive_lawfully(&plan);
    server.join().unwrap();
    assert_eq!((outcome.ok, outcome.connections_opened), (20, 1));
    plan.target.address = Address::Unix("x".repeat(200).into());
    let error = drive(&plan, Clock::start(), &Control::default(), &mut |_| {}).unwrap_err();
    assert!(error.what.contains("too long"), "{error}");
}

#[test]
fn a_server_without_tls_fails_the_session() {
    let server = ScriptedServer::start(|exchange| exchange.say(OK));
    let mut over_tls = plan(server.address, 1, Until::Elapsed(Span::seconds(60)));
    over_tls.target.tls = Some(Tls { insecure: true, ..Tls::default() });
    over_tls.give_up.failures_in_a_row = 3;
    // The scripted server waits for the end of a head, which a client hello lacks.
    over_tls.work.timeout = Span(Duration::from_millis(100));
    over_tls.give_up.silence_ns = 250_000_000;
    let outcome = drive_lawfully(&over_tls);
    assert_eq!(failures(&outcome).timeout, outcome.requests);
    let speaks_clear = |stream: &mut TcpStream| {
        stream.read_exact(&mut [0; 5]).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    };
    let counted = plan(NOWHERE, 1, Until::Requests(3));
    over_tls = Plan { target: over_tls.target, ..counted };
    let outcome = drive_on(over_tls.clone(), 3, speaks_clear);
    assert_eq!(failures(&outcome), Failures { tls: 3, ..Failures::default() });
    assert!(outcome.tls_trouble.is_some() && outcome.tls_untold() == outcome.tls_trouble.as_deref());
    over_tls.give_up.failures_in_a_row = 2;
    let outcome = drive_on(over_tls, 2, speaks_clear);
    let End::GaveUp(why) = &outcome.ended else { panic!("{outcome:?}") };
    assert!(why.contains(outcome.tls_trouble.as_deref().unwrap()), "{why}");
    assert_eq!(outcome.tls_untold(), None);
}
