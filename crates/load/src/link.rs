//! A socket with or without TLS: plaintext in, plaintext out. It knows nothing about HTTP.

use super::tally::Failure;
use super::tls::{Session, Sessions};
use super::{Address, Target};
use crate::work::Pace;
use loadline_base::error::{Error, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, getrlimit};

/// Maximum bytes per read; a shorter read means that the socket is empty.
pub(super) const READ_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Dialler {
    address: SocketAddrAny,
    sessions: Option<Sessions>,
    undelayed: bool,
    /// Bytes that the kernel may buffer for a slow reader.
    receive_buffer: Option<usize>,
}

impl Dialler {
    /// `undelayed`: no part of a request may wait for an ACK. `protocols` are offered under TLS. Errors: the path of a
    /// Unix socket is too long; certificates cannot be read.
    pub(super) fn new(target: &Target, pace: Pace, undelayed: bool, protocols: &[&str]) -> Result<Self> {
        let address = match &target.address {
            Address::Tcp(address) => SocketAddrAny::from(*address),
            Address::Unix(path) => net::SocketAddrUnix::new(path.as_path())
                .map_err(|_| Error::request(format!("`{}` is too long for a Unix socket", path.display())))?
                .into(),
        };
        let sessions = target.tls.as_ref().map(|tls| Sessions::new(tls, &target.host, protocols)).transpose()?;
        let receive_buffer = pace.receive.map(|bytes| usize::try_from(bytes.0 / 4).unwrap_or(usize::MAX).max(4096));
        Ok(Self { address, sessions, undelayed, receive_buffer })
    }

    /// Begins a connection. The link may be connected or still connecting; the first write shows which, and why a
    /// connect failed. After trouble with this link, the next one may still succeed. Errors: no socket can be created
    /// at all, because of limits of the process or the machine.
    pub(super) fn dial(&self) -> Result<Result<Link, Trouble>> {
        let family = self.address.address_family();
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None).map_err(no_socket)?;
        // Nagle's algorithm would hold back the last piece of a large body until the server's delayed ACK, 40 ms.
        if self.undelayed && family != AddressFamily::UNIX {
            sockopt::set_tcp_nodelay(&socket, true).map_err(no_socket)?;
        }
        if let Some(bytes) = self.receive_buffer {
            // Set before the connect, which announces the window. If this fails, the buffer stays larger, and the peer
            // is less slow.
            let _ = sockopt::set_socket_recv_buffer_size(&socket, bytes.min(1 << 20));
        }
        let session = match self.sessions.as_ref().map(Sessions::begin).transpose() {
            Ok(session) => session.map(Box::new),
            Err(why) => return Ok(Err(Trouble::Tls(why))),
        };
        Ok(match net::connect(&socket, &self.address) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Link { socket, session }),
            Err(errno) => Err(Trouble::Os(errno)),
        })
    }
}

/// A connection to the server, possibly still being established.
#[derive(Debug)]
pub(super) struct Link {
    socket: OwnedFd,
    session: Option<Box<Session>>,
}

/// Why a link is no longer usable.
#[derive(Debug)]
pub(super) enum Trouble {
    Os(Errno),
    Tls(String),
}

pub(super) enum Read {
    /// This many bytes of plaintext; more may be available immediately.
    Bytes {
        length: usize,
        more: bool,
    },
    Nothing,
    /// Nothing more, ever.
    End,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Link {
    /// Whether plaintext can be sent as soon as the socket accepts it.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.is_ready())
    }

    #[inline]
    pub(super) fn is_tls(&self) -> bool {
        self.session.is_some()
    }

    pub(super) fn negotiated(&self) -> Option<(String, Option<String>)> {
        self.session.as_ref().filter(|session| session.is_ready()).map(|session| session.negotiated())
    }

    /// Sends as much plaintext as the kernel accepts. Under TLS, accepted data may still be pending: see
    /// [`Link::flush`]. Errors: `AGAIN` if the socket currently accepts nothing.
    #[inline]
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<usize, Trouble> {
        if self.session.is_some() {
            return self.write_tls(bytes);
        }
        net::send(&self.socket, bytes, SendFlags::NOSIGNAL).map_err(Trouble::Os)
    }

    fn write_tls(&mut self, bytes: &[u8]) -> Result<usize, Trouble> {
        self.flush()?;
        let Some(session) = self.session.as_mut().filter(|session| session.is_ready()) else {
            return Err(Trouble::Os(Errno::AGAIN));
        };
        let taken = session.send(bytes).map_err(Trouble::Tls)?;
        match self.flush() {
            // TLS has accepted it, so the next flush sends it.
            Ok(()) | Err(Trouble::Os(Errno::AGAIN)) => Ok(taken),
            Err(trouble) => Err(trouble),
        }
    }

    /// Sends TLS's pending data. Errors: `AGAIN` if the socket currently accepts nothing.
    #[inline]
    pub(super) fn flush(&mut self) -> Result<(), Trouble> {
        let Some(session) = &mut self.session else { return Ok(()) };
        while !session.pending().is_empty() {
            let sent = net::send(&self.socket, session.pending(), SendFlags::NOSIGNAL).map_err(Trouble::Os)?;
            session.was_sent(sent);
        }
        Ok(())
    }

    /// Reads plaintext into `buffer`, which has [`READ_BYTES`]. `limit` is the maximum to take from the socket. `raw`
    /// has the same size and holds bytes not decrypted yet.
    #[inline]
    pub(super) fn read(&mut self, buffer: &mut [u8], raw: &mut [u8], limit: usize) -> Result<Read, Trouble> {
        if self.session.is_some() {
            return self.read_tls(buffer, raw, limit);
        }
        let limit = limit.min(buffer.len());
        self.receive(&mut buffer[..limit])
    }

    /// Reads as much data from the socket as fits into `room`.
    #[inline]
    fn receive(&self, room: &mut [u8]) -> Result<Read, Trouble> {
        match net::recv(&self.socket, &mut *room, RecvFlags::empty()) {
            Ok((0, _)) => Ok(Read::End),
            Ok((length, _)) => Ok(Read::Bytes { length, more: length == room.len() }),
            Err(Errno::AGAIN) => Ok(Read::Nothing),
            Err(Errno::INTR) => Ok(Read::Bytes { length: 0, more: true }),
            Err(errno) => Err(Trouble::Os(errno)),
        }
    }

    fn read_tls(&mut self, buffer: &mut [u8], raw: &mut [u8], limit: usize) -> Result<Read, Trouble> {
        // A record that began earlier may add its plaintext to the plaintext of the data read now.
        let limit = limit.min(raw.len()).min(buffer.len() / 2);
        if self.session.as_ref().is_none_or(|session| session.peer_closed()) {
            return Ok(Read::End);
        }
        let (read, more) = match self.receive(&mut raw[..limit])? {
            Read::Bytes { length, more } if length > 0 => (length, more),
            nothing => return Ok(nothing),
        };
        let Some(session) = &mut self.session else { return Ok(Read::End) };
        let mut length = 0;
        let mut take = |plaintext: &[u8]| {
            let end = (length + plaintext.len()).min(buffer.len());
            buffer[length..end].copy_from_slice(&plaintext[..end - length]);
            length = end;
        };
        let received = session.receive(&mut raw[..read], &mut take);
        // Sends alerts and the end of the handshake; unsent data goes out with the next write.
        match self.flush() {
            Ok(()) | Err(Trouble::Os(Errno::AGAIN)) => {}
            Err(trouble) if received.is_ok() => return Err(trouble),
            Err(_) => {}
        }
        received.map_err(Trouble::Tls)?;
        let closed = self.session.as_ref().is_some_and(|session| session.peer_closed());
        match (length, closed) {
            (0, true) => Ok(Read::End),
            (length, _) => Ok(Read::Bytes { length, more: more || closed }),
        }
    }
}

/// Maps an error of connect, send, or recv to the failure of the request.
pub(super) fn failure(errno: Errno, established: bool) -> Failure {
    match errno {
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => Failure::Ports,
        // The kernel's own timeout for the peer has expired.
        Errno::TIMEDOUT => Failure::Timeout,
        Errno::CONNRESET | Errno::PIPE => Failure::Reset,
        // Refused, unreachable, blocked by a firewall, a missing Unix socket, or one with a full backlog.
        _ if !established => Failure::Refused,
        _ => Failure::Reset,
    }
}

fn no_socket(errno: Errno) -> Error {
    match errno {
        Errno::MFILE => descriptors_short("this process has run out of file descriptors".to_owned(), None),
        Errno::NFILE => {
            Error::machine("this machine has run out of file descriptors").hint("raise `fs.file-max` with sysctl")
        }
        errno => Error::machine(format!("cannot create a socket: {}", loadline_base::error::plain(&errno.into()))),
    }
}

/// Raises the soft limit on file descriptors as far as the hard limit allows, so that a shortage shows up early.
/// Errors: the connections do not fit under the limit.
pub(super) fn check_descriptors(connections: u64) -> Result<()> {
    let limits = getrlimit(Resource::Nofile);
    let Some(limit) = limits.current else { return Ok(()) };
    // Without /proc, an exceeded limit shows up only when a socket fails.
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    // A few more for files that are opened later.
    let needed = connections + open + 16;
    if needed <= limit {
        return Ok(());
    }
    let raised = rustix::process::Rlimit { current: Some(needed), maximum: limits.maximum };
    if limits.maximum.is_none_or(|hard| needed <= hard) && rustix::process::setrlimit(Resource::Nofile, raised).is_ok()
    {
        return Ok(());
    }
    let hard = limits.maximum.unwrap_or(limit);
    Err(descriptors_short(
        format!("{connections} connections plus {open} open files exceed the limit of {hard} file descriptors"),
        Some(needed),
    ))
}

fn descriptors_short(what: String, needed: Option<u64>) -> Error {
    let needed = needed.map_or_else(|| "N".to_owned(), |needed| needed.to_string());
    Error::machine(what)
        .hint(format!("raise the limit with `ulimit -n {needed}` before starting Loadline, or use fewer connections"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_errors_map_to_failures() {
        for (errno, established, expected) in [
            (Errno::CONNREFUSED, false, Failure::Refused),
            (Errno::HOSTUNREACH, false, Failure::Refused),
            (Errno::NOENT, false, Failure::Refused),
            (Errno::AGAIN, false, Failure::Refused),
            (Errno::CONNRESET, true, Failure::Reset),
            (Errno::PIPE, true, Failure::Reset),
            (Errno::ADDRNOTAVAIL, false, Failure::Ports),
            (Errno::TIMEDOUT, true, Failure::Timeout),
        ] {
            assert_eq!(failure(errno, established), expected, "{errno:?}");
        }
    }

    #[test]
    fn too_many_connections_fail_with_numbers_and_a_hint() {
        assert!(check_descriptors(1).is_ok());
        let error = check_descriptors(1 << 40).unwrap_err();
        assert!(error.what.contains("1099511627776 connections"), "{error}");
        assert!(error.hint.unwrap().contains("ulimit -n 10995"));
    }
}
