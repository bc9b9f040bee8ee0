//! Listening sockets and their processes: `/proc/PID/net/tcp`, `tcp6` (man proc_pid_net), `/proc/PID/fd`.

use super::text::read;
use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};

/// A listening TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// The address that it listens on.
    pub address: SocketAddr,
    /// Identifies the socket in `/proc/PID/fd`.
    pub inode: u64,
}

impl Listener {
    /// A line of `tcp` or `tcp6`; `None` for a socket that is not listening. The address is in the byte order of the
    /// machine, word by word, and state `0A` is LISTEN:
    /// `   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1589 1 …`
    pub fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if *fields.get(3)? != "0A" {
            return None;
        }
        let (address, port) = fields.get(1)?.split_once(':')?;
        let address = SocketAddr::new(parse_address(address)?, u16::from_str_radix(port, 16).ok()?);
        Some(Self { address, inode: fields.get(9)?.parse().ok()? })
    }
}

fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => Some(word(0)?.into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            Some(<[u8; 16]>::try_from(words.as_flattened()).ok()?.into())
        }
        _ => None,
    }
}

/// The listening sockets in the network namespace of a process.
pub fn listeners(pid: u32) -> Vec<Listener> {
    let tables = ["tcp", "tcp6"].iter().filter_map(|table| read(format!("/proc/{pid}/net/{table}")).ok());
    tables.flat_map(|table| table.lines().filter_map(Listener::parse).collect::<Vec<_>>()).collect()
}

/// The inodes of a process's sockets; empty if its descriptors are not readable.
pub fn inodes(pid: u32) -> HashSet<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return HashSet::new() };
    let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()).collect()
}

/// The sockets that one process listens on.
pub fn listening(pid: u32) -> Vec<Listener> {
    let held = inodes(pid);
    let mut found = listeners(pid);
    found.retain(|listener| held.contains(&listener.inode));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_in_both_tables_are_read() {
        let v4 = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1589 1 0";
        let v6 = "   0: 0000000000000000FFFF00000100007F:4831 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 30838 1 0";
        let established = v4.replace(" 0A ", " 01 ");
        let found = Listener::parse(v4).unwrap();
        assert_eq!((found.address.to_string().as_str(), found.inode), ("127.0.0.1:8080", 1589));
        let found = Listener::parse(v6).unwrap();
        assert_eq!((found.address.to_string().as_str(), found.inode), ("[::ffff:127.0.0.1]:18481", 30838));
        assert_eq!(Listener::parse(&established), None);
        for end in 0..v6.len() {
            let _ = Listener::parse(&v6[..end]);
        }
    }

    #[test]
    fn our_own_listener_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(listening(std::process::id()).iter().any(|found| found.address == address));
    }
}
