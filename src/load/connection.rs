//! One connection slot: its socket, the request under way on it, and what the kernel's errors mean.

use super::response::Reader;
use super::tally::Failure;
use crate::error::{Error, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, SocketAddrAny, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, getrlimit};

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Doing {
    /// Free for a request; the socket may be open.
    #[default]
    Nothing,
    /// Connecting, or the request is not wholly in the kernel's hands.
    Sending,
    /// Waiting for the answer or reading it.
    Receiving,
}

/// A place for one request at a time. The socket comes and goes; the slot stays.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) socket: Option<OwnedFd>,
    pub(super) doing: Doing,
    /// From the plan; equal to `started_ns` in a closed model.
    pub(super) intended_ns: u64,
    /// When the first byte was sent or, on a new connection, the connect began.
    pub(super) started_ns: u64,
    /// Bytes of the request the kernel has taken.
    pub(super) sent: usize,
    /// The handshake is over: a send has succeeded.
    pub(super) established: bool,
    pub(super) watched: Watched,
    pub(super) reader: Reader,
}

/// What epoll reports about the socket, always as edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
pub(super) enum Watched {
    #[default]
    Nothing,
    /// Enough while requests fit the send buffer: saves an event for each new connection.
    Input,
    Both,
}

impl Connection {
    /// Begins a request.
    #[inline]
    pub(super) fn begin(&mut self, intended_ns: u64, started_ns: u64) {
        self.doing = Doing::Sending;
        self.intended_ns = intended_ns;
        self.started_ns = started_ns;
        self.sent = 0;
    }

    /// Closes the socket, which also takes it out of epoll, and forgets the answer under way.
    /// Tells whether the connection had been established.
    pub(super) fn close(&mut self) -> bool {
        let established = self.established;
        *self = Self { doing: self.doing, ..Self::default() };
        established
    }
}

/// What opening a socket came to.
pub(super) enum Opened {
    /// Connected or connecting: the first send tells which, and why not.
    Socket(OwnedFd),
    /// The request fails; the next may fare better.
    Failed(Failure),
}

/// A non-blocking socket on its way to `address`. `undelayed`: nothing of a request may wait for an ACK.
///
/// # Errors
/// No socket can be made at all: limits of the process or the machine.
pub(super) fn open(address: &SocketAddrAny, undelayed: bool) -> Result<Opened> {
    let family = address.address_family();
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None).map_err(no_socket)?;
    // Nagle's algorithm would hold the last piece of a large body back until the server's delayed ACK, 40 ms.
    if undelayed {
        sockopt::set_tcp_nodelay(&socket, true).map_err(no_socket)?;
    }
    match net::connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(Opened::Socket(socket)),
        Err(errno) => Ok(Opened::Failed(failure(errno, false))),
    }
}

/// What an error of connect, send or recv says about the request.
pub(super) fn failure(errno: Errno, established: bool) -> Failure {
    match errno {
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => Failure::Ports,
        // The kernel's own patience with the peer is over.
        Errno::TIMEDOUT => Failure::Timeout,
        Errno::CONNRESET | Errno::PIPE => Failure::Reset,
        // Refused, unreachable, forbidden by a firewall.
        _ if !established => Failure::Refused,
        _ => Failure::Reset,
    }
}

fn no_socket(errno: Errno) -> Error {
    match errno {
        Errno::MFILE => descriptors_short("the process has no file descriptor left".to_owned()),
        Errno::NFILE => {
            Error::machine("the machine has no file descriptor left").hint("raise `fs.file-max` with sysctl")
        }
        errno => Error::machine(format!("cannot make a socket: {}", crate::error::plain(&errno.into()))),
    }
}

/// Refuses early what would fail in the middle: more connections than file descriptors.
///
/// # Errors
/// The connections do not fit under the limit.
pub(super) fn check_descriptors(connections: u64) -> Result<()> {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(()) };
    // Without /proc the first failing socket tells.
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    if connections + open < limit {
        return Ok(());
    }
    Err(descriptors_short(format!(
        "{connections} connections and the {open} files open now need more file descriptors than the limit of {limit}"
    )))
}

fn descriptors_short(what: String) -> Error {
    Error::machine(what).hint("raise the limit with `ulimit -n N` before starting Loadline, or use fewer connections")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_kernel_have_one_meaning() {
        for (errno, established, expected) in [
            (Errno::CONNREFUSED, false, Failure::Refused),
            (Errno::HOSTUNREACH, false, Failure::Refused),
            (Errno::CONNRESET, true, Failure::Reset),
            (Errno::PIPE, true, Failure::Reset),
            (Errno::ADDRNOTAVAIL, false, Failure::Ports),
            (Errno::TIMEDOUT, true, Failure::Timeout),
        ] {
            assert_eq!(failure(errno, established), expected, "{errno:?}");
        }
    }

    #[test]
    fn too_many_connections_are_refused_with_the_numbers_and_a_way_out() {
        assert!(check_descriptors(1).is_ok());
        let error = check_descriptors(1 << 40).unwrap_err();
        assert!(error.what.contains("1099511627776 connections"), "{error}");
        assert!(error.hint.unwrap().contains("ulimit -n"));
    }
}
