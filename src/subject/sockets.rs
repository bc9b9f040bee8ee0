//! Who listens on which port: `/proc/PID/net/tcp`, `tcp6` and the descriptors of processes; finding a free port.
//!
//! A line (proc(5)); the address is in the byte order of the machine, word by word, state `0A` is LISTEN:
//! `   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1589 1 …`

use super::processes::{self, Process};
use crate::error::{Error, Result, plain};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::atomic::{AtomicU16, Ordering};

/// First port tried. Well below 32768, where Linux begins to give ports to outgoing connections: a load generator's own
/// connections must not take the port before the subject binds it.
const FREE_PORT_FIRST: u16 = 18_080;
/// Ports tried from there.
const FREE_PORT_SPAN: u16 = 8_000;

/// A listening TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// Where.
    pub address: SocketAddr,
    /// Names the socket in `/proc/PID/fd`.
    pub inode: u64,
}

/// The listening sockets of the network namespace of this process (`self` for our own).
fn listeners(process: &str) -> Vec<Listener> {
    ["tcp", "tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(format!("/proc/{process}/net/{table}")).ok())
        .flat_map(|table| table.lines().filter_map(parse_line).collect::<Vec<_>>())
        .collect()
}

fn parse_line(line: &str) -> Option<Listener> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if *fields.get(3)? != "0A" {
        return None;
    }
    let (address, port) = fields.get(1)?.split_once(':')?;
    let address = SocketAddr::new(parse_address(address)?, u16::from_str_radix(port, 16).ok()?);
    Some(Listener { address, inode: fields.get(9)?.parse().ok()? })
}

fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let mut bytes = [0; 16];
            words.iter().flatten().zip(&mut bytes).for_each(|(from, to)| *to = *from);
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// The sockets a process holds; empty when its descriptors may not be read.
fn socket_inodes(pid: u32) -> HashSet<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return HashSet::new() };
    let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()).collect()
}

/// The sockets on which one process listens.
pub fn listening(pid: u32) -> Vec<Listener> {
    let held = socket_inodes(pid);
    let mut found = listeners(&pid.to_string());
    found.retain(|listener| held.contains(&listener.inode));
    found
}

/// Those of the processes that listen on this port.
pub(super) fn listening_on(processes: &[Process], port: u16) -> Vec<u32> {
    let listens = |pid| listening(pid).iter().any(|listener| listener.address.port() == port);
    processes.iter().map(|process| process.pid).filter(|&pid| listens(pid)).collect()
}

/// The ports on which the processes listen, ascending.
pub(super) fn ports(processes: &[Process]) -> Vec<u16> {
    let listeners = processes.iter().flat_map(|process| listening(process.pid));
    let mut ports: Vec<u16> = listeners.map(|listener| listener.address.port()).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// The addresses of a host, or why it has none.
pub(super) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match (bare, port).to_socket_addrs() {
        Ok(found) => Ok(found.collect()),
        Err(cause) => Err(Error::request(format!("the host `{host}` has no address: {}", plain(&cause)))
            .hint("`--url http://127.0.0.1:PORT/PATH` needs no name service")),
    }
}

/// An error that names the holder when something already listens where the subject is to listen.
pub fn check_port_free(host: &str, port: u16) -> Result<()> {
    for address in resolve(host, port)? {
        match TcpListener::bind(address) {
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::AddrInUse => return Err(taken(address)),
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Error::request(format!("no permission to listen on {address}"))
                    .hint("choose a port of 1024 or above, or run as root"));
            }
            // An address that is not of this machine (or IPv6 switched off) cannot be tried; readiness will tell.
            Err(_) => {}
        }
    }
    Ok(())
}

fn taken(address: SocketAddr) -> Error {
    let error = Error::request(format!("port {} is taken: something already listens there", address.port()))
        .hint("end it, or let Loadline choose a free port: put `{port}` into the command and leave the port out");
    match holder(address.port()) {
        Some(process) => error.at(format!("held by pid {}: {}", process.pid, process.command())),
        None => error.at("its holder cannot be read without root"),
    }
}

/// An error when a process that is not of the subject answers on its port: one would be loaded and the other weighed.
/// A holder that cannot be read is given the benefit of the doubt.
pub(super) fn check_no_stranger(subject: &[Process], port: u16) -> Result<()> {
    match holder(port) {
        Some(process) if subject.iter().all(|own| own.pid != process.pid) => {
            let what = format!("port {port} answers, but it is not the subject that listens there");
            Err(Error::subject(what)
                .at(format!("held by pid {}: {}", process.pid, process.command()))
                .hint("end that process, or let Loadline choose a free port: put `{port}` into the command"))
        }
        _ => Ok(()),
    }
}

fn holder(port: u16) -> Option<Process> {
    let inodes: HashSet<u64> = listeners("self")
        .iter()
        .filter(|listener| listener.address.port() == port)
        .map(|listener| listener.inode)
        .collect();
    processes::all().into_iter().find(|process| !socket_inodes(process.pid).is_disjoint(&inodes))
}

/// A port on which nothing listens. Never the same twice in one process.
pub fn free_port(host: &str) -> Result<u16> {
    free_ports(host, 1)
}

/// The first of so many consecutive ports on which nothing listens. Never the same twice in one process.
pub fn free_ports(host: &str, count: u16) -> Result<u16> {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    // Two Loadlines at once should not race for the same one.
    let own_start = std::process::id() as u16 % FREE_PORT_SPAN;
    let count = count.clamp(1, FREE_PORT_SPAN);
    for _ in 0..FREE_PORT_SPAN {
        let offset = own_start.wrapping_add(TRIED.fetch_add(count, Ordering::Relaxed)) % FREE_PORT_SPAN;
        let first = FREE_PORT_FIRST + offset;
        if is_block_free(host, first..first + count)? {
            return Ok(first);
        }
    }
    let last = FREE_PORT_FIRST + FREE_PORT_SPAN - 1;
    let what = match count {
        1 => format!("no port from {FREE_PORT_FIRST} to {last} is free"),
        _ => format!("no {count} consecutive ports from {FREE_PORT_FIRST} to {last} are free"),
    };
    Err(Error::machine(what).hint("give one with `--url`, or with `port` in the scenario"))
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
    // As in `check_port_free`, only a taken port counts against it.
    !matches!(TcpListener::bind(address), Err(cause) if cause.kind() == io::ErrorKind::AddrInUse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_listeners_of_both_tables() {
        let v4 = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1589 1 0";
        let v6 = "   0: 0000000000000000FFFF00000100007F:4831 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 30838 1 0";
        let established = v4.replace(" 0A ", " 01 ");
        let found = parse_line(v4).unwrap();
        assert_eq!((found.address.to_string().as_str(), found.inode), ("127.0.0.1:8080", 1589));
        let found = parse_line(v6).unwrap();
        assert_eq!((found.address.to_string().as_str(), found.inode), ("[::ffff:127.0.0.1]:18481", 30838));
        assert_eq!(parse_line(&established), None);
        for end in 0..v6.len() {
            let _ = parse_line(&v6[..end]);
        }
    }

    #[test]
    fn a_taken_port_names_its_holder() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = check_port_free("127.0.0.1", port).unwrap_err();
        assert_eq!(error.what, format!("port {port} is taken: something already listens there"));
        assert!(error.context[0].starts_with(&format!("held by pid {}: ", std::process::id())), "{error}");
        assert!(listening(std::process::id()).iter().any(|found| found.address.port() == port));
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
    fn a_block_of_ports_steps_over_one_that_is_taken() {
        let first = free_ports("127.0.0.1", 3).unwrap();
        assert!((first..first + 3).all(|port| check_port_free("127.0.0.1", port).is_ok()));
        let _taken = TcpListener::bind(("127.0.0.1", first + 1)).unwrap();
        assert!(!is_block_free("127.0.0.1", first..first + 3).unwrap());
        assert!(is_block_free("127.0.0.1", first..first + 1).unwrap());
    }
}
