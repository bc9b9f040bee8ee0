//! A small server for scrapes: one thread, 16 connections, 5 seconds each, GET and HEAD only. The caller answers from
//! the last sample; a scrape never triggers sampling.
//!
//! Beyond 16 connections, the client with the most connections loses its longest-idle one. A flood from one address
//! therefore affects only its own connections.

use crate::clock::Clock;
use crate::error::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::{socket_acceptconn, socket_peercred};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, acceptfrom_with, connect, getsockname, socket_with,
};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use rustls::{ServerConfig, ServerConnection};
use std::cmp::Reverse;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const CONNECTIONS_MAX: usize = 16;
/// The time limit from the first byte that can be sent to the last byte accepted.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// A scrape request is about 200 bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;
/// The first descriptor passed by systemd (`SD_LISTEN_FDS_START`).
const HANDED_OVER: i32 = 3;
/// The pause after a failed accept.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// The maximum delay before a stop is noticed.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A Unix socket path.
    Unix(PathBuf),
    /// The socket passed by systemd (`LISTEN_FDS`, man sd_listen_fds).
    Activation,
}

impl std::str::FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some(path) if !path.is_empty() => Ok(Self::Unix(PathBuf::from(path))),
            None if text == "systemd" => Ok(Self::Activation),
            _ => text.parse().map(Self::Tcp).map_err(|_| {
                format!("`{text}` is not an address; write `127.0.0.1:9773`, `unix:/run/loadline.sock`, or `systemd`")
            }),
        }
    }
}

/// The parsed parts of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// The path, without the query.
    pub path: String,
    /// The `Accept` header, or an empty string.
    pub accept: String,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// `200 OK`.
    pub status: &'static str,
    /// Its media type.
    pub content_type: &'static str,
    /// Its body.
    pub body: String,
}

impl HttpResponse {
    fn plain(status: &'static str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: format!("{status}\n") }
    }
}

/// A running server; stops on drop.
#[derive(Debug)]
pub struct HttpServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The address as shown to users.
    pub at: String,
}

impl HttpServer {
    /// Listens, with TLS if given, until dropped. Errors: `Machine` if it cannot listen at the address.
    pub fn start(
        place: &ListenAddress,
        tls: Option<Arc<ServerConfig>>,
        clock: Clock,
        answer: impl Fn(&HttpRequest) -> Option<HttpResponse> + Send + 'static,
    ) -> Result<Self> {
        let listener = Listener::open(place).map_err(|cause| {
            Error::machine(format!("cannot listen on {place}: {cause}")).hint("choose another address with `--listen`")
        })?;
        let (stop, at) = (Arc::new(AtomicBool::new(false)), listener.shown(place));
        let in_thread = Arc::clone(&stop);
        let mut serving = Serving { listener, tls, clock, connections: Vec::new() };
        let thread = std::thread::spawn(move || {
            while !in_thread.load(Ordering::Relaxed) {
                serving.turn_whatever_happens(&answer);
            }
        });
        Ok(Self { stop, thread: Some(thread), at })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panic has already been reported.
            let _ = thread.join();
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
            Self::Activation => f.write_str("the systemd socket"),
        }
    }
}

/// A listening socket. If its path was created here, it is deleted at the end.
struct Listener {
    socket: OwnedFd,
    made: Option<PathBuf>,
}

impl Listener {
    fn open(place: &ListenAddress) -> io::Result<Self> {
        let (socket, made) = match place {
            ListenAddress::Tcp(address) => (TcpListener::bind(address)?.into(), None),
            ListenAddress::Unix(path) => {
                remove_dead(path);
                (UnixListener::bind(path)?.into(), Some(path.clone()))
            }
            ListenAddress::Activation => (handed_over()?, None),
        };
        let listener = Self { socket, made };
        ioctl_fionbio(&listener.socket, true)?;
        Ok(listener)
    }

    fn shown(&self, place: &ListenAddress) -> String {
        let at = getsockname(&self.socket).ok();
        let address = at.clone().and_then(|at| SocketAddr::try_from(at).ok());
        let unix = at.and_then(|at| SocketAddrUnix::try_from(at).ok());
        match (address, unix.as_ref().and_then(SocketAddrUnix::path_bytes)) {
            (Some(address), _) => address.to_string(),
            (None, Some(path)) => format!("unix:{}", String::from_utf8_lossy(path)),
            (None, None) => place.to_string(),
        }
    }

    /// Accepts a client. The socket becomes a `File`, so both kinds can be handled the same way.
    fn accept(&self) -> io::Result<(File, Client)> {
        let (stream, from) = acceptfrom_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
        let client = match from.map(SocketAddr::try_from) {
            Some(Ok(address)) => Client::at(address.ip()),
            _ => Client::User(socket_peercred(&stream).map_or(0, |who| who.uid.as_raw())),
        };
        Ok((stream.into(), client))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.made {
            // It may have been deleted already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The first socket passed by systemd, descriptor 3.
fn handed_over() -> io::Result<OwnedFd> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let meant = number("LISTEN_PID") == Some(std::process::id()) && number("LISTEN_FDS").is_some_and(|n| n > 0);
    if !meant {
        return Err(io::Error::other("LISTEN_FDS is not set for this process: it was not started by a socket unit"));
    }
    // Borrowing a descriptor by number requires unsafe code; a pidfd can duplicate it safely.
    let own = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    let handed = pidfd_getfd(own, HANDED_OVER, PidfdGetfdFlags::empty())?;
    if !socket_acceptconn(&handed)? {
        return Err(io::Error::other(
            "the socket from systemd does not listen; its unit needs `ListenStream=` and `Accept=no`",
        ));
    }
    Ok(handed)
}

/// A connection's client, as known to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    /// A machine; for IPv6, its 64-bit network, in which it can use any address.
    Machine(u64),
    User(u32),
}

impl Client {
    fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::Machine(u64::from(u32::from(address))),
            IpAddr::V6(address) => Self::Machine((u128::from(address) >> 64) as u64),
        }
    }
}

/// Deletes a socket without a listener.
fn remove_dead(path: &Path) {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    if is_socket && connect_at_once(path) == Err(Errno::CONNREFUSED) {
        let _ = std::fs::remove_file(path);
    }
}

/// Connects without blocking: a stopped listener with a full queue would block forever.
fn connect_at_once(path: &Path) -> rustix::io::Result<()> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)
}

struct Serving {
    listener: Listener,
    tls: Option<Arc<ServerConfig>>,
    clock: Clock,
    /// Sorted oldest first.
    connections: Vec<Connection>,
}

struct Connection {
    stream: File,
    client: Client,
    tls: Option<Box<ServerConnection>>,
    request: Vec<u8>,
    /// Whether the client has closed its sending direction.
    ended: bool,
    answer: Vec<u8>,
    sent: usize,
    /// The latest of: connected, request complete, part of the response accepted.
    since: Duration,
    ends: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionState {
    Goes,
    Over,
}

impl Serving {
    /// Runs a turn; a panic drops current connections, but the server continues.
    fn turn_whatever_happens(&mut self, answer: &dyn Fn(&HttpRequest) -> Option<HttpResponse>) {
        // A panic leaves no inconsistent state except in connections, which are dropped.
        if catch_unwind(AssertUnwindSafe(|| self.turn(answer))).is_err() {
            self.connections.clear();
            self.clock.sleep(LOOK_AGAIN_AFTER);
        }
    }

    /// Waits for events and handles them.
    fn turn(&mut self, answer: &dyn Fn(&HttpRequest) -> Option<HttpResponse>) {
        let (ready, accepts) = {
            let mut fds = vec![PollFd::new(&self.listener.socket, PollFlags::IN)];
            for one in &self.connections {
                fds.push(PollFd::new(&one.stream, one.waits_for()));
            }
            if poll(&mut fds, Some(&LOOK_EVERY)).is_err() {
                return;
            }
            let ready: Vec<bool> = fds[1..].iter().map(|fd| !fd.revents().is_empty()).collect();
            (ready, !fds[0].revents().is_empty())
        };
        let now = self.clock.now();
        let mut ready = ready.into_iter();
        self.connections.retain_mut(|one| {
            let state = if ready.next() == Some(true) { one.go_on(now, answer) } else { ConnectionState::Goes };
            state == ConnectionState::Goes && now < one.ends
        });
        if accepts && self.accept(now).is_err() {
            // For example, no descriptors are left. The client is still queued, and the pause avoids a busy loop.
            self.clock.sleep(LOOK_AGAIN_AFTER);
        }
    }

    /// Accepts waiting clients; if there are too many, each replaces another. Errors: the error that prevents
    /// accepting.
    fn accept(&mut self, now: Duration) -> io::Result<()> {
        for _ in 0..CONNECTIONS_MAX {
            let (stream, client) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(cause) => return Err(cause),
            };
            let tls = self.tls.as_ref().map(|config| ServerConnection::new(Arc::clone(config))).transpose();
            let tls = tls.map_err(io::Error::other)?.map(Box::new);
            if self.connections.len() >= CONNECTIONS_MAX {
                self.make_room();
            }
            let (request, answer, ends) = (Vec::new(), Vec::new(), now + ANSWERED_WITHIN);
            let (sent, ended, since) = (0, false, now);
            self.connections.push(Connection { stream, client, tls, request, ended, answer, sent, since, ends });
        }
        Ok(())
    }

    /// Drops the longest-idle connection of the client that has the most.
    fn make_room(&mut self) {
        let of = |client| self.connections.iter().filter(|one| one.client == client).count();
        let stands = |(_, one): &(usize, &Connection)| (Reverse(of(one.client)), one.since);
        if let Some((at, _)) = self.connections.iter().enumerate().min_by_key(stands) {
            self.connections.remove(at);
        }
    }
}

impl Connection {
    fn waits_for(&self) -> PollFlags {
        // TLS cannot accept the rest of the response until its pending data is sent.
        let writes = self.sent < self.answer.len() || self.is_stuck();
        if writes { PollFlags::OUT } else { PollFlags::IN }
    }

    fn go_on(&mut self, now: Duration, answer: &dyn Fn(&HttpRequest) -> Option<HttpResponse>) -> ConnectionState {
        if self.answer.is_empty() {
            match self.read() {
                Ok(true) => {}
                Ok(false) => return self.flush().unwrap_or(ConnectionState::Over),
                Err(_) => return ConnectionState::Over,
            }
            match answered(&self.request, answer) {
                Some(bytes) => self.answer = bytes,
                None if self.ended => return ConnectionState::Over,
                None => return ConnectionState::Goes,
            }
            self.since = now;
        }
        let before = self.sent;
        let state = self.write().unwrap_or(ConnectionState::Over);
        if self.sent > before {
            self.since = now;
        }
        state
    }

    /// Reads available data; returns whether the request grew. A client that closes its sending direction may still
    /// wait for the response.
    fn read(&mut self) -> io::Result<bool> {
        let before = self.request.len();
        let mut part = [0; 4096];
        while !self.ended && self.request.len() <= REQUEST_BYTES_MAX {
            let read = match &mut self.tls {
                None => self.stream.read(&mut part),
                Some(tls) => {
                    let come = tls.read_tls(&mut self.stream);
                    if let Err(cause) = tls.process_new_packets() {
                        // Sends an alert with the reason, without waiting.
                        let _ = tls.write_tls(&mut self.stream);
                        return Err(io::Error::other(cause));
                    }
                    match tls.reader().read(&mut part) {
                        Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                            come.and_then(|come| if come == 0 { Ok(0) } else { Err(cause) })
                        }
                        plain => plain,
                    }
                }
            };
            match read {
                Ok(0) => self.ended = true,
                Ok(read) => self.request.extend_from_slice(&part[..read]),
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        match self.request.len() > before {
            false if self.ended => Err(ErrorKind::UnexpectedEof.into()),
            more => Ok(more),
        }
    }

    /// Sends as much of the response as possible.
    fn write(&mut self) -> io::Result<ConnectionState> {
        while self.sent < self.answer.len() {
            let rest = &self.answer[self.sent..];
            let written = match &mut self.tls {
                None => self.stream.write(rest),
                Some(tls) => tls.writer().write(rest),
            };
            match written {
                // TLS's buffer is full.
                Ok(0) if self.tls.is_some() => {
                    if self.flush()? == ConnectionState::Goes && self.is_stuck() {
                        return Ok(ConnectionState::Goes);
                    }
                }
                Ok(0) => break,
                Ok(written) => self.sent += written,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
                Err(cause) => return Err(cause),
            }
        }
        if self.sent == self.answer.len()
            && let Some(tls) = &mut self.tls
        {
            tls.send_close_notify();
        }
        self.flush()
    }

    /// Whether the client currently accepts no more data.
    fn is_stuck(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Sends TLS's pending data.
    fn flush(&mut self) -> io::Result<ConnectionState> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                match tls.write_tls(&mut self.stream) {
                    Ok(_) => {}
                    Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(ConnectionState::Goes),
                    Err(cause) => return Err(cause),
                }
            }
        }
        let done = !self.answer.is_empty() && self.sent == self.answer.len();
        Ok(if done { ConnectionState::Over } else { ConnectionState::Goes })
    }
}

/// The response bytes; `None` while the request is incomplete.
fn answered(request: &[u8], answer: &dyn Fn(&HttpRequest) -> Option<HttpResponse>) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let (answer, head) = match parsed.parse(request).map(|status| status.is_complete()) {
        Ok(false) if request.len() <= REQUEST_BYTES_MAX => return None,
        Ok(false) => (HttpResponse::plain("431 Request Header Fields Too Large"), false),
        Err(_) => (HttpResponse::plain("400 Bad Request"), false),
        Ok(true) => {
            let method = parsed.method.unwrap_or_default();
            let accept = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case("accept"));
            let accept = accept.map(|header| String::from_utf8_lossy(header.value).into_owned()).unwrap_or_default();
            let path = parsed.path.unwrap_or_default();
            let path = path.split('?').next().unwrap_or_default().to_owned();
            let found =
                || answer(&HttpRequest { path, accept }).unwrap_or_else(|| HttpResponse::plain("404 Not Found"));
            match method {
                "GET" | "HEAD" => (found(), method == "HEAD"),
                _ => (HttpResponse::plain("405 Method Not Allowed"), false),
            }
        }
    };
    let HttpResponse { status, content_type, body } = answer;
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    if !head {
        bytes.extend_from_slice(body.as_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    fn start_with(answer: impl Fn(&HttpRequest) -> Option<HttpResponse> + Send + 'static) -> HttpServer {
        HttpServer::start(&"127.0.0.1:0".parse().unwrap(), None, Clock::start(), answer).unwrap()
    }

    fn start() -> HttpServer {
        start_with(|asked: &HttpRequest| {
            let body = format!("{} for {}\n", asked.path, asked.accept).repeat(20_000);
            (asked.path == "/metrics").then_some(HttpResponse { body, ..HttpResponse::plain("200 OK") })
        })
    }

    fn ask(server: &HttpServer, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(&server.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request).unwrap();
        let mut text = String::new();
        // An early rejection can end in a reset, because the request was not fully read.
        let _ = stream.read_to_string(&mut text);
        text
    }

    /// Reads until a clean end of the stream.
    fn answer(stream: impl Read) -> String {
        std::io::read_to_string(stream).unwrap()
    }

    #[test]
    fn scrapes_are_answered_and_other_requests_rejected() {
        let server = start();
        let whole = ask(&server, b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n");
        assert!(whole.starts_with("HTTP/1.1 200 OK\r\n") && whole.ends_with("/metrics for text/plain\n"));
        assert!(whole.len() > 400_000, "a complete response, although it exceeds the socket's buffer: {}", whole.len());
        let head = ask(&server, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: ") && head.ends_with("\r\n\r\n"));
        for (request, status) in [
            (&b"GET /etc/passwd HTTP/1.1\r\n\r\n"[..], "404"),
            (b"GET /../metrics HTTP/1.1\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\x16\x03\x01\x00\xa5\x01", "400"),
            (b"nonsense\r\n\r\n", "400"),
        ] {
            let answer = ask(&server, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        }
        let mut long = b"GET /metrics HTTP/1.1\r\n".to_vec();
        long.resize(REQUEST_BYTES_MAX + 100, b'a');
        assert!(ask(&server, &long).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn a_hundred_idle_connections_do_not_block_others() {
        let server = start();
        let idle: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(&server.at).unwrap()).collect();
        assert!(ask(&server, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
        drop(idle);
    }

    #[test]
    fn a_half_closed_client_gets_its_response() {
        let server = start();
        for request in [&b"GET /metrics HTTP/1.0\r\n\r\n"[..], b"GET /metrics HTTP/1.0\r\n"] {
            let mut stream = TcpStream::connect(&server.at).unwrap();
            stream.write_all(request).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let text = answer(stream);
            let whole = request.ends_with(b"\r\n\r\n");
            assert_eq!(text.starts_with("HTTP/1.1 200") && text.ends_with("/metrics for \n"), whole, "{}", text.len());
        }
    }

    fn connected(server: &HttpServer, from: [u8; 4]) -> TcpStream {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&socket, &SocketAddr::from((from, 0))).unwrap();
        connect(&socket, &server.at.parse::<SocketAddr>().unwrap()).unwrap();
        TcpStream::from(socket)
    }

    #[test]
    fn a_flood_from_one_address_spares_connections_of_another() {
        let server = start();
        let mut slow = connected(&server, [127, 0, 0, 1]);
        slow.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
        let mut flood: Vec<TcpStream> = (0..100).map(|_| connected(&server, [127, 0, 0, 2])).collect();
        // All have been accepted once the connection before the last sixteen was dropped.
        let read = flood[100 - CONNECTIONS_MAX].read(&mut [0; 1]);
        assert!(!read.is_ok_and(|read| read > 0));
        slow.write_all(b"\r\n").unwrap();
        let text = answer(slow);
        assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("/metrics for \n"), "{} bytes", text.len());
    }

    #[test]
    fn ipv6_clients_are_identified_by_network() {
        let client = |address: &str| Client::at(address.parse().unwrap());
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("::ffff:10.0.0.1"), client("10.0.0.1"));
        assert_ne!(client("10.0.0.1"), client("10.0.0.2"));
    }

    #[test]
    fn a_panic_drops_connections_but_not_the_server() {
        let server = start_with(|asked: &HttpRequest| {
            assert!(asked.path != "/panic", "the request asked for a panic");
            Some(HttpResponse::plain("200 OK"))
        });
        for _ in 0..2 {
            assert_eq!(ask(&server, b"GET /panic HTTP/1.1\r\n\r\n"), "");
            assert!(ask(&server, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
        }
    }

    #[test]
    fn a_listener_with_a_full_queue_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loadline.sock");
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&socket, 0).unwrap();
        let full = UnixStream::connect(&path).unwrap();
        assert_eq!(connect_at_once(&path), Err(Errno::AGAIN), "a listener with a full backlog refuses the connection");
        let place = ListenAddress::Unix(path.clone());
        assert!(HttpServer::start(&place, None, Clock::start(), |_| None).is_err(), "another server listens there");
        assert!(path.exists());
        drop(full);
    }

    #[test]
    fn scrapers_that_read_nothing_do_not_block_others() {
        let large = || HttpResponse { body: "x".repeat(4 << 20), ..HttpResponse::plain("200 OK") };
        let server = start_with(move |asked: &HttpRequest| {
            Some(if asked.path == "/metrics" { HttpResponse::plain("200 OK") } else { large() })
        });
        let greedy: Vec<TcpStream> = (0..100)
            .map(|_| {
                let mut stream = TcpStream::connect(&server.at).unwrap();
                // A connection dropped in favor of later ones can no longer write.
                let _ = stream.write_all(b"GET /large HTTP/1.1\r\n\r\n");
                stream
            })
            .collect();
        for _ in 0..3 {
            assert!(ask(&server, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
        }
        drop(greedy);
    }

    #[test]
    fn oversized_requests_and_unknown_paths_are_rejected() {
        let server = start();
        for begin in [&b"GET /metrics HTTP/1.1\r\nX: "[..], b"GET /", b"POST /metrics HTTP/1.1\r\n\r\n", b""] {
            let mut request = begin.to_vec();
            request.resize(1 << 20, b'a');
            let mut stream = TcpStream::connect(&server.at).unwrap();
            // The request is rejected before it is fully read, and the connection is closed.
            let _ = stream.write_all(&request);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
        }
        for path in ["/../../etc/passwd", "/metrics/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd"] {
            let answer = ask(&server, format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes());
            assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
        }
        assert!(ask(&server, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"), "the server continues");
    }

    #[test]
    fn the_server_listens_on_a_unix_socket_and_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loadline.sock");
        let place: ListenAddress = format!("unix:{}", path.display()).parse().unwrap();
        // Simulates a socket left by a killed process.
        drop(UnixListener::bind(&path).unwrap());
        let server = HttpServer::start(&place, None, Clock::start(), |_| Some(HttpResponse::plain("200 OK"))).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(answer(stream).ends_with("200 OK\n"));
        assert!(HttpServer::start(&place, None, Clock::start(), |_| None).is_err(), "another server listens there");
        drop(server);
        assert!(!path.exists());
    }

    #[test]
    fn listen_addresses_are_parsed() {
        assert!("0.0.0.0:9773".parse::<ListenAddress>().is_ok(), "a server may listen on all interfaces");
        assert_eq!("systemd".parse(), Ok(ListenAddress::Activation));
        for wrong in ["9773", ":9773", "localhost:9773", "unix:", ""] {
            assert!(wrong.parse::<ListenAddress>().is_err(), "{wrong}");
        }
    }
}
