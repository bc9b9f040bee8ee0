//! Finds a running server: resolves its name, and tries its addresses.

use crate::error::{Error, Result};
use crate::load::Address;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Longer than one SYN retry, but bearable after a typo in the address.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How often to check for an interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A server that accepted a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// Its address.
    pub address: Address,
    /// Whether it runs on this machine, so its CPU time is included in the machine's.
    pub here: bool,
    /// Whether the load uses the loopback interface.
    pub loopback: bool,
}

/// Finds a server's address with a test connection. Errors: `Request` if the name has no address; `Subject` if no
/// address accepts a connection; `Interrupted`.
pub fn reach(host: &str, port: u16, socket: Option<&Path>, interrupted: &dyn Fn() -> bool) -> Result<Reached> {
    let (sender, receiver) = channel();
    let (host, socket) = (host.to_owned(), socket.map(Path::to_owned));
    // Name resolution cannot be canceled, so it runs on its own thread.
    std::thread::spawn(move || {
        let reached = match socket {
            Some(path) => reach_socket(path),
            None => reach_port(&host, port),
        };
        // After an interrupt, the receiver is gone.
        let _ = sender.send(reached);
    });
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(reached) => return reached,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                return Err(Error::bug("the search for the server's address panicked"));
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) if interrupted() => return Err(Error::interrupted()),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}

fn reach_socket(path: PathBuf) -> Result<Reached> {
    match connect_within(&path, CONNECT_WITHIN) {
        Ok(()) => Ok(Reached { address: Address::Unix(path), here: true, loopback: false }),
        Err(Errno::AGAIN) => {
            let (path, seconds) = (path.display(), CONNECT_WITHIN.as_secs());
            let what = format!(
                "the Unix socket {path} did not accept a connection within {seconds} s: its queue is \
                                full"
            );
            Err(Error::subject(what).hint("check whether the server is stopped or hung"))
        }
        Err(cause) => Err(Error::subject(format!(
            "nothing listens on the Unix socket {}: {}",
            path.display(),
            crate::error::plain(&cause.into())
        ))
        .hint("start the server, or check `--unix-socket`")),
    }
}

/// Connects and closes immediately; `AGAIN` if the queue stays full for `within`.
fn connect_within(path: &Path, within: Duration) -> rustix::io::Result<()> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(within))?;
    net::connect(&socket, &SocketAddrUnix::new(path)?)
}

fn reach_port(host: &str, port: u16) -> Result<Reached> {
    let addresses: Vec<SocketAddr> = match (host, port).to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(cause) => {
            // Drops the words that Rust adds to the resolver's message.
            let cause = crate::error::plain(&cause);
            let cause = cause.rsplit(": ").next().unwrap_or(&cause).to_owned();
            return Err(no_address(host).at(cause));
        }
    };
    let mut refused = None;
    for address in &addresses {
        match TcpStream::connect_timeout(address, CONNECT_WITHIN) {
            Ok(stream) => {
                let loopback = address.ip().is_loopback();
                let here = loopback || stream.local_addr().is_ok_and(|local| local.ip() == address.ip());
                return Ok(Reached { address: Address::Tcp(*address), here, loopback });
            }
            Err(cause) => refused = refused.or(Some((*address, cause))),
        }
    }
    let (address, cause) = refused.ok_or_else(|| no_address(host))?;
    Err(unreachable(address, &cause))
}

fn no_address(host: &str) -> Error {
    Error::request(format!("`{host}` cannot be resolved")).hint("check the host name in the URL")
}

fn unreachable(address: SocketAddr, cause: &std::io::Error) -> Error {
    use std::io::ErrorKind;
    match cause.kind() {
        ErrorKind::ConnectionRefused => Error::subject(format!("nothing listens on {address}: connection refused"))
            .hint("start the server, or check the host and port in the URL"),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            Error::subject(format!("{address} did not accept a connection within {} s", CONNECT_WITHIN.as_secs()))
                .hint("check the host and port in the URL; a firewall may drop packets silently")
        }
        _ => Error::subject(format!("cannot connect to {address}: {}", crate::error::plain(cause)))
            .hint("check the host and port in the URL"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use std::net::TcpListener;

    #[test]
    fn a_listener_is_reached_and_a_missing_one_is_reported() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let reached = reach("127.0.0.1", port, None, &|| false).unwrap();
        assert_eq!((reached.here, reached.loopback), (true, true));
        drop(listener);
        let error = reach("127.0.0.1", port, None, &|| false).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Subject);
        assert_eq!(error.what, format!("nothing listens on 127.0.0.1:{port}: connection refused"));
        let error = reach("no such host", 80, None, &|| false).unwrap_err();
        assert_eq!((error.kind, error.what.as_str()), (ErrorKind::Request, "`no such host` cannot be resolved"));
        let error = reach("", 0, Some(Path::new("/no/such.sock")), &|| false).unwrap_err();
        assert!(error.what.starts_with("nothing listens on the Unix socket /no/such.sock"), "{error}");
    }
    #[test]
    fn waiting_for_a_socket_with_a_full_queue_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("full.sock");
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        net::listen(&socket, 0).unwrap();
        let within = Duration::from_millis(20);
        let queued = std::os::unix::net::UnixStream::connect(&path).unwrap();
        assert_eq!(connect_within(&path, within), Err(Errno::AGAIN));
        drop(queued);
    }
}
