//! A small HTTP server in a thread: responds by path, and counts requests.

use loadline_test_support::ReceivedRequest;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The requests so far.
#[derive(Default)]
struct RequestLog {
    requests: AtomicU64,
    connections: AtomicU64,
    closed: AtomicBool,
    /// The last request: its head, and the length of its body.
    last: Mutex<(String, usize)>,
}

/// Listens until dropped. `/hello` returns `hello world!`, `/slow` takes 20 ms, `/never` does not respond; all
/// else returns 404.
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<RequestLog>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(RequestLog::default());
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.closed.load(Ordering::Relaxed) {
                    return;
                }
                stream.set_nodelay(true).unwrap();
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let (reader, shared) = (stream.try_clone().unwrap(), Arc::clone(&shared));
                thread::spawn(move || serve(reader, stream, &shared));
            }
        });
        Self { address, seen }
    }

    /// The same on a Unix socket, until the test ends.
    pub(crate) fn on_socket(path: &Path) {
        let listener = UnixListener::bind(path).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let reader = stream.try_clone().unwrap();
                thread::spawn(move || serve(reader, stream, &RequestLog::default()));
            }
        });
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::Relaxed)
    }

    /// Accepted connections, including that of the initial check.
    pub(crate) fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// Head and body length of the last request.
    pub(crate) fn last(&self) -> (String, usize) {
        self.seen.last.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.seen.closed.store(true, Ordering::Relaxed);
        // Wakes the listener, which then ends.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(reader: impl Read, mut writer: impl Write, seen: &RequestLog) -> Option<()> {
    let mut reader = BufReader::new(reader);
    loop {
        let mut request = ReceivedRequest::read_head(&mut reader)?;
        if request.header("expect").is_some() {
            writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
        request.read_body(&mut reader)?;
        let path = request.head.split(' ').nth(1)?.to_owned();
        let closes = request.header("connection") == Some("close");
        *seen.last.lock().unwrap() = (request.head, request.body.len());
        seen.requests.fetch_add(1, Ordering::Relaxed);
        let (status, text) = match path.split('?').next()? {
            "/hello" => ("200 OK", "hello world!"),
            "/slow" => {
                thread::sleep(Duration::from_millis(20));
                ("200 OK", "slow")
            }
            "/never" => {
                thread::sleep(Duration::from_secs(60));
                return None;
            }
            _ => ("404 Not Found", ""),
        };
        let length = text.len();
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nX-Kind: plain\r\n\r\n{text}");
        writer.write_all(answer.as_bytes()).ok()?;
        if closes {
            return None;
        }
    }
}
