//! The bytes of a request, encoded once per phase: every request of a phase is the same.

use super::random::SplitMix64;
use crate::error::{Error, Result};
use crate::scenario::{Body, Method, Work};
use std::fs;

/// Headers the engine writes itself, because framing and persistence depend on them.
const OWN_HEADERS: [&str; 3] = ["Content-Length", "Connection", "Transfer-Encoding"];

/// The request of `work`, head and body in one piece.
///
/// # Errors
/// The body's file cannot be read, or path or headers cannot stand in a request.
pub(super) fn encode(work: &Work, host: &str, seed: u64) -> Result<Vec<u8>> {
    let request = &work.request;
    check_path(&request.path)?;
    let body = body(&request.body, seed)?;
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method.as_str(), request.path);
    if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head += &format!("Host: {host}\r\n");
    }
    for (name, value) in &request.headers {
        check_header(name, value)?;
        head += &format!("{name}: {value}\r\n");
    }
    if request.method != Method::Get || !body.is_empty() {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    if !work.keep_alive {
        head += "Connection: close\r\n";
    }
    head += "\r\n";
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

fn body(body: &Body, seed: u64) -> Result<Vec<u8>> {
    match body {
        Body::None => Ok(Vec::new()),
        Body::Generated(size) => Ok(text(size.0 as usize, seed)),
        Body::Zero(size) => Ok(vec![0; size.0 as usize]),
        Body::Text(text) => Ok(text.clone().into_bytes()),
        Body::File(path) => fs::read(path).map_err(|cause| Error::io("read", path, &cause)),
    }
}

/// Printable text that does not compress to nothing: 64 letters, ten from each random number.
fn text(length: usize, seed: u64) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut random = SplitMix64::new(seed);
    let mut bytes = Vec::with_capacity(length + 9);
    while bytes.len() < length {
        let drawn = random.next();
        bytes.extend((0..10).map(|i| LETTERS[(drawn >> (6 * i)) as usize & 63]));
    }
    bytes.truncate(length);
    bytes
}

fn check_path(path: &str) -> Result<()> {
    if path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Error::request(format!("`{path}` cannot stand in a request line"))
        .hint("begin the path with `/` and write other characters as %XX"))
}

fn check_header(name: &str, value: &str) -> Result<()> {
    if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(Error::request(format!("the header `{name}` is written by the load engine"))
            .hint("drop it; the body decides the length, and keep-alive or not is an option of its own"));
    }
    let sound = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
    if sound && !value.contains(['\r', '\n', '\0']) {
        return Ok(());
    }
    Err(Error::request(format!("`{}: {}` is no header", name.escape_debug(), value.escape_debug())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Request, Until};
    use crate::units::Bytes;

    fn work(method: Method, headers: &[(&str, &str)], body: Body, keep_alive: bool) -> Work {
        let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let request = Request { headers, body, ..Request::new(method, "/a?b") };
        Work { keep_alive, ..Work::closed(request, 1, Until::Requests(1)) }
    }

    fn encoded(work: &Work) -> String {
        String::from_utf8(encode(work, "h:1", 7).unwrap()).unwrap()
    }

    #[test]
    fn heads_hold_what_the_body_and_the_connection_need() {
        let get = work(Method::Get, &[("X-A", "b c")], Body::None, true);
        assert_eq!(encoded(&get), "GET /a?b HTTP/1.1\r\nHost: h:1\r\nX-A: b c\r\n\r\n");
        let post = work(Method::Post, &[("host", "other")], Body::None, false);
        assert_eq!(
            encoded(&post),
            "POST /a?b HTTP/1.1\r\nhost: other\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let put = encoded(&work(Method::Put, &[], Body::Generated(Bytes(25)), true));
        let (head, body) = put.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with("Content-Length: 25"), "{head}");
        assert_eq!(body.len(), 25);
        assert_eq!(put, encoded(&work(Method::Put, &[], Body::Generated(Bytes(25)), true)), "same seed, same text");
        assert_ne!(text(25, 1), text(25, 2));
    }

    #[test]
    fn bodies_come_from_files_and_a_missing_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("body");
        let put = work(Method::Put, &[], Body::File(path.clone()), true);
        let error = encode(&put, "h", 1).unwrap_err();
        assert!(error.what.contains(path.to_str().unwrap()), "{error}");
        fs::write(&path, "contents").unwrap();
        assert!(encoded(&put).ends_with("\r\n\r\ncontents"));
    }

    #[test]
    fn what_would_break_the_request_is_refused() {
        for (name, value) in [("connection", "close"), ("A", "b\r\nC: d"), ("", "x"), ("a b", "x")] {
            assert!(encode(&work(Method::Get, &[(name, value)], Body::None, true), "h", 1).is_err(), "{name}");
        }
        let mut odd = work(Method::Get, &[], Body::None, true);
        for path in ["", "a", "/a b", "/\u{fc}", "/\r\n"] {
            odd.request.path = path.to_owned();
            assert!(encode(&odd, "h", 1).is_err(), "{path}");
        }
    }
}
