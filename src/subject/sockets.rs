//! Ports: their listening processes, and free ports.

use super::processes::{self, Process};
use crate::error::{Error, Result, plain};
use crate::kernel::sockets::{inodes, listeners, listening};
use crate::scenario::Ports;
use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixListener};
use std::sync::{Mutex, PoisonError};

/// The first port to try. It is below 32768, where Linux starts to assign ports to outgoing connections: a load
/// generator's connection must not take the port before the subject binds it.
const FREE_PORT_FIRST: u16 = 18_080;
/// Ports claimed at a time: the most that one subject can need.
const WINDOW: u16 = Ports::COUNT_MAX;
/// The number of windows, and thus of concurrent Loadlines.
const WINDOWS: u16 = 80;

pub(super) fn listens(pid: u32, port: u16) -> bool {
    listening(pid).iter().any(|listener| listener.address.port() == port)
}

/// The ports on which the processes listen, ascending.
pub(super) fn ports(processes: &[Process]) -> Vec<u16> {
    let listeners = processes.iter().flat_map(|process| listening(process.pid));
    let mut ports: Vec<u16> = listeners.map(|listener| listener.address.port()).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// The addresses of a host, or the reason why there are none.
pub(super) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match (bare, port).to_socket_addrs() {
        Ok(found) => Ok(found.collect()),
        Err(cause) => Err(Error::request(format!("the host `{host}` cannot be resolved: {}", plain(&cause)))
            .hint("use an IP address: `--url http://127.0.0.1:PORT/PATH`")),
    }
}

/// Returns an error that names the owner if something already listens on the subject's address.
pub fn check_port_free(host: &str, port: u16) -> Result<()> {
    for address in resolve(host, port)? {
        match TcpListener::bind(address) {
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::AddrInUse => return Err(taken(address)),
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Error::request(format!("no permission to listen on {address}"))
                    .hint("choose a port of 1024 or above, or run as root"));
            }
            // Another machine's address (or disabled IPv6) cannot be tested; the readiness check will report it.
            Err(_) => {}
        }
    }
    Ok(())
}

fn taken(address: SocketAddr) -> Error {
    let error = Error::request(format!("port {} is in use: another process is listening on it", address.port()))
        .hint("stop it, or let Loadline choose a free port: put `{port}` in the command in place of the number");
    match holder(address.port()) {
        Some(process) => error.at(format!("used by pid {}: {}", process.pid, process.command())),
        None => error.at("only root can see which process uses it"),
    }
}

/// Returns an error if a process outside the subject listens on its port: load and measurement would go to different
/// processes. An unreadable owner is assumed to be the subject's.
pub(super) fn check_no_stranger(subject: &[Process], port: u16) -> Result<()> {
    match holder(port) {
        Some(process) if subject.iter().all(|own| own.pid != process.pid) => {
            let what = format!("port {port} responds, but another process is listening on it");
            Err(Error::subject(what)
                .at(format!("used by pid {}: {}", process.pid, process.command()))
                .hint("stop that process, or let Loadline choose a free port: put `{port}` in the command"))
        }
        _ => Ok(()),
    }
}

fn holder(port: u16) -> Option<Process> {
    let wanted: HashSet<u64> = listeners(std::process::id())
        .iter()
        .filter(|listener| listener.address.port() == port)
        .map(|listener| listener.inode)
        .collect();
    processes::all().into_iter().find(|process| !inodes(process.pid).is_disjoint(&wanted))
}

/// A port without a listener; see [`free_ports`], also for errors.
pub fn free_port(host: &str) -> Result<u16> {
    free_ports(host, 1)
}

/// The first of `count` consecutive ports without listeners. Concurrent processes never receive the same port, and one
/// process does not receive a port again soon. Fails if the host has no address, or if no such block is free.
pub fn free_ports(host: &str, count: u16) -> Result<u16> {
    static HELD: Mutex<Vec<Window>> = Mutex::new(Vec::new());
    let count = count.clamp(1, WINDOW);
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    for window in held.iter_mut() {
        if let Some(first) = window.next_free(host, count)? {
            return Ok(first);
        }
    }
    for number in 0..WINDOWS {
        let Some(mut window) = Window::claim(number) else { continue };
        let first = window.next_free(host, count)?;
        held.push(window);
        if let Some(first) = first {
            return Ok(first);
        }
    }
    let last = FREE_PORT_FIRST + WINDOWS * WINDOW - 1;
    let what = match count {
        1 => format!("no port from {FREE_PORT_FIRST} to {last} is free"),
        _ => format!("no {count} consecutive ports from {FREE_PORT_FIRST} to {last} are free"),
    };
    Err(Error::machine(what).hint("specify one with `--url`, or with `port` in the scenario"))
}

/// Consecutive ports reserved for this process: a subject binds its port some time after it receives the number, and
/// another Loadline must not choose it before then.
struct Window {
    first: u16,
    /// The next port to try, relative to `first`.
    next: u16,
    /// An abstract socket name, which only one process per network namespace can hold (unix(7)).
    _claim: UnixListener,
}

impl Window {
    /// Claims this window; `None` if another process has it.
    fn claim(number: u16) -> Option<Self> {
        let first = FREE_PORT_FIRST + number * WINDOW;
        let name = net::SocketAddr::from_abstract_name(format!("loadline-ports-{first}")).ok()?;
        Some(Self { first, next: 0, _claim: UnixListener::bind_addr(&name).ok()? })
    }

    /// The first of `count` consecutive free ports, after the last ones assigned.
    fn next_free(&mut self, host: &str, count: u16) -> Result<Option<u16>> {
        for _ in 0..WINDOW {
            let offset = if self.next + count > WINDOW { 0 } else { self.next };
            let first = self.first + offset;
            if is_block_free(host, first..first + count)? {
                self.next = offset + count;
                return Ok(Some(first));
            }
            self.next = offset + 1;
        }
        Ok(None)
    }
}

fn is_block_free(host: &str, mut ports: std::ops::Range<u16>) -> Result<bool> {
    let resolved = resolve(host, ports.start)?;
    Ok(ports.all(|port| {
        let everywhere = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
            .is_ok();
        everywhere && resolved.iter().all(|address| bindable(SocketAddr::new(address.ip(), port)))
    }))
}

fn bindable(address: SocketAddr) -> bool {
    // As in `check_port_free`, only a port in use counts.
    !matches!(TcpListener::bind(address), Err(cause) if cause.kind() == io::ErrorKind::AddrInUse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_names_its_holder() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = check_port_free("127.0.0.1", port).unwrap_err();
        assert_eq!(error.what, format!("port {port} is in use: another process is listening on it"));
        assert!(error.context[0].starts_with(&format!("used by pid {}: ", std::process::id())), "{error}");
        drop(listener);
        check_port_free("localhost", port).unwrap();
    }

    #[test]
    fn free_ports_differ_and_are_free() {
        let (one, two) = (free_port("127.0.0.1").unwrap(), free_port("localhost").unwrap());
        assert_ne!(one, two);
        check_port_free("127.0.0.1", one).unwrap();
    }

    #[test]
    fn a_block_of_ports_skips_a_taken_one() {
        let first = free_ports("127.0.0.1", 3).unwrap();
        assert!((first..first + 3).all(|port| check_port_free("127.0.0.1", port).is_ok()));
        let _taken = TcpListener::bind(("127.0.0.1", first + 1)).unwrap();
        assert!(!is_block_free("127.0.0.1", first..first + 3).unwrap());
        assert!(is_block_free("127.0.0.1", first..first + 1).unwrap());
    }

    #[test]
    fn a_port_window_has_one_holder_and_is_used_in_order() {
        let number = (0..WINDOWS).rev().find(|number| Window::claim(*number).is_some()).unwrap();
        let mut window = Window::claim(number).unwrap();
        assert!(Window::claim(number).is_none(), "a second process cannot claim the same window");
        let (one, two) = (window.next_free("127.0.0.1", 1).unwrap(), window.next_free("127.0.0.1", 60).unwrap());
        assert!(one < two, "{one:?} {two:?}");
        let again = window.next_free("127.0.0.1", 60).unwrap().unwrap();
        assert!((window.first..window.first + WINDOW).contains(&again), "{again} of {}", window.first);
        let _taken = TcpListener::bind(("127.0.0.1", window.first + 50)).unwrap();
        assert_eq!(window.next_free("127.0.0.1", WINDOW).unwrap(), None, "no block of this size avoids the taken port");
        drop(window);
        assert!(Window::claim(number).is_some());
    }
}
