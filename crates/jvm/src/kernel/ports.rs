//! The machine's local ports: how many connections can use, and how many are still in TIME_WAIT.
//!
//! `/proc/net/sockstat` of Linux 6.18; the same line also counts IPv6 sockets in TIME_WAIT:
//!
//! ```text
//! TCP: inuse 12 orphan 0 tw 4211 alloc 14 mem 3
//! ```
//!
//! `/proc/sys/net/ipv4/ip_local_port_range` (`32768 60999`) and `tcp_tw_reuse` (0 off, 1 on, 2 for the loopback only)
//! apply to IPv6 too.

use super::text::numbers;
use std::fs;

/// The local ports at a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// Sockets in TIME_WAIT.
    pub time_wait: u64,
    /// Number of local ports that connections can use.
    pub range: u64,
    /// Which connections may reuse the port of a socket in TIME_WAIT after a second.
    pub reuse: Reuse,
}

/// Which connections may reuse the port of a socket in TIME_WAIT after a second (`tcp_tw_reuse`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// None.
    Off,
    /// All.
    On,
    /// Connections over the loopback.
    Loopback,
}

impl Ports {
    /// Queries the kernel; `None` if it does not report them.
    pub fn read() -> Option<Self> {
        let text = |path| fs::read_to_string(path).ok();
        Some(Self {
            time_wait: time_wait(&text("/proc/net/sockstat")?)?,
            range: range(&text("/proc/sys/net/ipv4/ip_local_port_range")?)?,
            // Kernels without the file reuse no ports.
            reuse: text("/proc/sys/net/ipv4/tcp_tw_reuse").map_or(Reuse::Off, |text| reuse(&text)),
        })
    }
}

/// The number after `tw` on the TCP line.
fn time_wait(sockstat: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_ascii_whitespace().skip_while(|word| *word != "tw");
    words.nth(1)?.parse().ok()
}

fn range(text: &str) -> Option<u64> {
    let mut ends = numbers::<u64>(text);
    let (low, high) = (ends.next()?, ends.next()?);
    high.checked_sub(low)?.checked_add(1)
}

fn reuse(text: &str) -> Reuse {
    match text.trim() {
        "1" => Reuse::On,
        "2" => Reuse::Loopback,
        _ => Reuse::Off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOCKSTAT: &str = "sockets: used 31\nTCP: inuse 12 orphan 0 tw 4211 alloc 14 mem 3\nUDP: inuse 0 mem 0\n";

    #[test]
    fn files_are_parsed() {
        assert_eq!(time_wait(SOCKSTAT), Some(4211));
        assert_eq!(range("32768\t60999\n"), Some(28232));
        assert_eq!((reuse("0\n"), reuse("1\n"), reuse("2\n")), (Reuse::Off, Reuse::On, Reuse::Loopback));
    }

    #[test]
    fn truncated_or_mangled_text_is_not_a_number() {
        for end in 0..SOCKSTAT.len() {
            assert!(time_wait(&SOCKSTAT[..end]).is_none_or(|number| number <= 4211));
        }
        for text in ["", "1", "x y", "5 1", "9 18446744073709551615 "] {
            assert!(range(text).is_none_or(|range| range > 0), "{text}");
        }
        assert_eq!((range("5 1"), range("0 18446744073709551615")), (None, None));
    }

    #[test]
    fn this_machine_can_be_read() {
        // A container may hide the files; then there is nothing to check.
        assert!(Ports::read().is_none_or(|ports| ports.range > 0));
    }
}
