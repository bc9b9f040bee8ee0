//! Probes a port: does it accept a connection, and does it speak HTTP?

use crate::clock::Clock;
use crate::error::plain;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A local port accepts or refuses immediately; a full accept queue drops the SYN, and the probe is repeated.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// A cold JVM's first response takes a long time; a server that was not ready when asked may never respond.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How often to check whether to continue waiting.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Reads this much of the response so that the subject does not log a broken connection.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// Bytes shown of a response that is not HTTP.
const SHOWN_BYTES: usize = 40;

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProbeAnswer {
    /// The subject is ready.
    Ready,
    /// The subject responds with this status, which the text describes.
    OtherStatus(u16, String),
    /// Why there is no such response.
    NotYet(String),
}

/// Probes by connecting.
pub(super) fn tcp(address: SocketAddr) -> ProbeAnswer {
    match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
        Ok(_) => ProbeAnswer::Ready,
        Err(cause) => ProbeAnswer::NotYet(plain(&cause).to_ascii_lowercase()),
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct HttpQuestion<'a> {
    /// The address to probe.
    pub address: SocketAddr,
    /// For the `Host` header.
    pub host: &'a str,
    /// Path and query.
    pub path: &'a str,
}

/// Sends GET and returns the status or an error message. Stops early if `abandon` returns true.
pub(super) fn status_of(question: HttpQuestion, clock: Clock, abandon: &dyn Fn() -> bool) -> Result<u16, String> {
    let answer = ask(question, clock, abandon).map_err(|cause| plain(&cause).to_ascii_lowercase())?;
    status_or_words(&answer)
}

fn ask(question: HttpQuestion, clock: Clock, abandon: &dyn Fn() -> bool) -> io::Result<Vec<u8>> {
    let HttpQuestion { address, host, path } = question;
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_WITHIN)?;
    stream.set_write_timeout(Some(CONNECT_WITHIN))?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let port = address.port();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: loadline\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let until = clock.now() + ANSWER_WITHIN;
    let (mut answer, mut buffer) = (Vec::new(), [0; 8192]);
    while answer.len() < ANSWER_BYTES_MAX {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                answer.extend_from_slice(&buffer[..n]);
                // Not every server closes on request.
                if is_complete(&answer) {
                    break;
                }
            }
            // A body without a length stalls; the rest would not change the result.
            Err(cause) if waits(cause.kind()) && status(&answer).is_some() => break,
            Err(cause) if waits(cause.kind()) && clock.now() < until && !abandon() => {}
            // After a status line, the result is known, whatever happens next.
            Err(_) if status(&answer).is_some() => break,
            Err(cause) if waits(cause.kind()) => {
                return Err(io::Error::other("connected, but no response"));
            }
            Err(cause) => return Err(cause),
        }
    }
    Ok(answer)
}

/// Whether the response has all the bytes it announced.
fn is_complete(answer: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(head)) = response.parse(answer) else { return false };
    let length = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse::<usize>().ok());
    length.is_some_and(|length| answer.len() - head >= length)
}

fn waits(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The expected status, or any below 400, means ready.
pub(super) fn judge(status: Result<u16, String>, expected: Option<u16>) -> ProbeAnswer {
    match (status, expected) {
        (Ok(status), None) if status < 400 => ProbeAnswer::Ready,
        (Ok(status), Some(expected)) if status == expected => ProbeAnswer::Ready,
        (Ok(status), None) => ProbeAnswer::OtherStatus(status, format!("status {status}")),
        (Ok(status), Some(expected)) => {
            ProbeAnswer::OtherStatus(status, format!("status {status} instead of {expected}"))
        }
        (Err(why), _) => ProbeAnswer::NotYet(why),
    }
}

fn status_or_words(answer: &[u8]) -> Result<u16, String> {
    status(answer).ok_or_else(|| match answer {
        [] => "the connection was closed without a response".to_owned(),
        _ => format!("not HTTP: `{}`", answer[..answer.len().min(SHOWN_BYTES)].escape_ascii()),
    })
}

/// The status in `HTTP/1.1 503 Service Unavailable`.
fn status(answer: &[u8]) -> Option<u16> {
    let rest = answer.strip_prefix(b"HTTP/1.")?;
    let code = std::str::from_utf8(rest.get(2..5)?).ok()?;
    (rest.get(1) == Some(&b' ')).then(|| code.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn readiness_responses_are_judged_by_status() {
        let judged = |answer: &str| judge(status_or_words(answer.as_bytes()), None);
        let check = |answer: &str, why: &str| assert_eq!(judged(answer), ProbeAnswer::NotYet(why.to_owned()));
        assert_eq!(judged("HTTP/1.1 200 OK\r\n\r\nx"), ProbeAnswer::Ready);
        assert_eq!(judged("HTTP/1.0 302 Found\r\n"), ProbeAnswer::Ready);
        let unavailable = ProbeAnswer::OtherStatus(503, "status 503".to_owned());
        assert_eq!(judged("HTTP/1.1 503 Service Unavailable\r\n"), unavailable);
        check("SSH-2.0-OpenSSH\r\n", "not HTTP: `SSH-2.0-OpenSSH\\r\\n`");
        check("", "the connection was closed without a response");
        check("HTTP/1.1", "not HTTP: `HTTP/1.1`");
        check("HTTP/1.1 xyz", "not HTTP: `HTTP/1.1 xyz`");
        assert_eq!(judge(Ok(404), Some(404)), ProbeAnswer::Ready);
        let other = ProbeAnswer::OtherStatus(200, "status 200 instead of 404".to_owned());
        assert_eq!(judge(Ok(200), Some(404)), other);
    }

    #[test]
    fn a_response_is_complete_according_to_its_length() {
        let check = |answer: &str, expect: bool| assert_eq!(is_complete(answer.as_bytes()), expect, "{answer}");
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", false);
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi\n", true);
        check("HTTP/1.1 200 OK\r\n\r\nhi\n", false);
        check("HTTP/1.1 200 OK\r\nContent-Le", false);
    }

    #[test]
    fn a_readiness_request_is_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            let n = stream.read(&mut request).unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            String::from_utf8_lossy(&request[..n]).into_owned()
        });
        let question = HttpQuestion { address, host: "localhost", path: "/a?b" };
        assert_eq!(status_of(question, Clock::start(), &|| false), Ok(204));
        assert!(server.join().unwrap().starts_with("GET /a?b HTTP/1.1\r\nHost: localhost:"));
        assert_eq!(tcp(address), ProbeAnswer::NotYet("connection refused".to_owned()));
    }

    #[test]
    fn waiting_for_a_silent_server_can_be_interrupted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let question = HttpQuestion { address, host: "localhost", path: "/" };
        let answer = status_of(question, Clock::start(), &|| true);
        assert_eq!(answer, Err("connected, but no response".to_owned()));
    }
}
