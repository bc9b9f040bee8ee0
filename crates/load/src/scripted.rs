//! A server for tests: one thread per connection, responses written by a closure of the test. Listener and counts are
//! the same for every protocol.

use loadline_base::clock::Clock;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// The server's next action after the closure.
pub(super) enum Next {
    Keep,
    Close,
    /// Drops the connection without a shutdown.
    Abort,
    /// Stops listening and closes everything.
    Die,
}

/// One request as the closure sees it.
pub(super) struct Exchange<'a> {
    pub(super) stream: &'a mut TcpStream,
    /// The head, without its empty line.
    pub(super) head: &'a str,
    /// The body, up to the announced length.
    pub(super) body: &'a [u8],
    /// The number of the request, from 0.
    pub(super) nth: u64,
    pub(super) over: &'a AtomicBool,
}

impl Exchange<'_> {
    /// Writes the text and keeps the connection open.
    pub(super) fn say(&mut self, text: &str) -> io::Result<Next> {
        self.stream.write_all(text.as_bytes())?;
        Ok(Next::Keep)
    }

    /// Sends nothing until the test ends.
    pub(super) fn hang(&self) -> io::Result<Next> {
        while !self.over.load(SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(Next::Close)
    }
}

#[derive(Default)]
pub(super) struct ServerCounts {
    pub(super) over: AtomicBool,
    pub(super) requests: AtomicU64,
    pub(super) connections: AtomicU64,
    /// Requests in flight, now and at the peak, if the protocol allows several per connection.
    pub(super) busy: AtomicU64,
    pub(super) busy_max: AtomicU64,
}

/// Listens until dropped.
pub(super) struct ScriptedServer {
    pub(super) address: SocketAddr,
    counts: Arc<ServerCounts>,
    thread: Option<thread::JoinHandle<()>>,
}

type Script = dyn Fn(&mut Exchange<'_>) -> io::Result<Next> + Send + Sync;

impl ScriptedServer {
    pub(super) fn start(script: impl Fn(&mut Exchange<'_>) -> io::Result<Next> + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", script)
    }

    pub(super) fn start_at(
        address: &str,
        script: impl Fn(&mut Exchange<'_>) -> io::Result<Next> + Send + Sync + 'static,
    ) -> Self {
        let script: Arc<Script> = Arc::new(script);
        Self::listen(address, move |listener, counts| accept(listener, counts, &script))
    }

    /// Listens at an address, on a thread that accepts until the test ends.
    pub(super) fn listen(address: &str, accept: impl FnOnce(TcpListener, &Arc<ServerCounts>) + Send + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(ServerCounts::default());
        let thread = thread::spawn({
            let counts = Arc::clone(&counts);
            move || accept(listener, &counts)
        });
        Self { address, counts, thread: Some(thread) }
    }

    pub(super) fn requests(&self) -> u64 {
        self.counts.requests.load(SeqCst)
    }

    /// Connections accepted so far.
    pub(super) fn connections(&self) -> u64 {
        self.counts.connections.load(SeqCst)
    }

    /// Maximum number of requests in flight.
    pub(super) fn busy_max(&self) -> u64 {
        self.counts.busy_max.load(SeqCst)
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.counts.over.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn accept(listener: TcpListener, counts: &Arc<ServerCounts>, script: &Arc<Script>) {
    let mut threads = Vec::new();
    while !counts.over.load(SeqCst) {
        match listener.accept() {
            Ok((mut stream, _)) => {
                counts.connections.fetch_add(1, SeqCst);
                let (counts, script) = (Arc::clone(counts), Arc::clone(script));
                threads.push(thread::spawn(move || {
                    // Many tests are about broken connections.
                    if !matches!(serve(&mut stream, &counts, &*script), Ok(Next::Abort)) {
                        let _ = stream.shutdown(Shutdown::Both);
                    }
                }));
            }
            Err(_) => thread::sleep(Duration::from_micros(200)),
        }
    }
    drop(listener);
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Serves until the script ends; returns how it ended.
fn serve(stream: &mut TcpStream, counts: &ServerCounts, script: &Script) -> io::Result<Next> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_millis(5)))?;
    let mut bytes = Vec::new();
    while let Some((head, body)) = read_request(stream, &mut bytes, &counts.over)? {
        if counts.over.load(SeqCst) {
            break;
        }
        let nth = counts.requests.fetch_add(1, SeqCst);
        let mut exchange = Exchange { stream, head: &head, body: &body, nth, over: &counts.over };
        match script(&mut exchange)? {
            Next::Keep => {}
            Next::Die => {
                counts.over.store(true, SeqCst);
                break;
            }
            end => return Ok(end),
        }
    }
    Ok(Next::Close)
}

/// The next request; `None` at the end of the stream or the test.
fn read_request(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    over: &AtomicBool,
) -> io::Result<Option<(String, Vec<u8>)>> {
    let end = loop {
        match bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            Some(end) => break end,
            None if read_more(stream, bytes, over)? => {}
            None => return Ok(None),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let whole = end + 4 + length.map_or(0, |length| length.parse::<usize>().unwrap());
    while bytes.len() < whole {
        if !read_more(stream, bytes, over)? {
            return Ok(None);
        }
    }
    let body = bytes[end + 4..whole].to_vec();
    bytes.drain(..whole);
    Ok(Some((head, body)))
}

/// Reads a few bytes: a slow reader, so that large uploads fill the send buffer.
fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>, over: &AtomicBool) -> io::Result<bool> {
    let mut piece = [0; 8192];
    loop {
        match stream.read(&mut piece) {
            Ok(length) => {
                bytes.extend_from_slice(&piece[..length]);
                return Ok(length > 0);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !over.load(SeqCst) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until the condition holds, for at most ten seconds.
pub(super) fn wait_until(clock: Clock, mut holds: impl FnMut() -> bool) {
    let give_up_s = clock.now_s() + 10.0;
    while !holds() {
        assert!(clock.now_s() < give_up_s, "the condition did not hold within ten seconds");
        thread::sleep(Duration::from_millis(1));
    }
}
