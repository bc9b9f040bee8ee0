//! Replies to `VM.metaspace vslist` (JDK 11–27): the nodes, which are the address ranges from which metaspace takes its
//! memory. [`super::heap_info`] and [`super::hsperfdata`] report its usage.
//!
//! ```text
//! vsl non-class-space:
//! - node #0: base 0x00007f45f3000000: reserved=65536.00 KB, committed=192.00 KB ( <1%), used=16384.00 KB ( 25%)
//! ```
//!
//! JDK 11 writes sizes with two decimals in any unit, but adds addresses, and puts the next heading after them:
//!
//! ```text
//!    Non-Class:
//! node @0x00007f0ba4122ba0: reserved=8.00 MB, committed=4.25 MB ( 53%), used=4.01 MB ( 50%)
//!    [0x00007f0b85800000, 0x00007f0b85c01c00, 0x00007f0b85c40000, 0x00007f0b86000000)       Class:
//! ```

use super::Unavailable;
use super::ranges::leave_out_overlaps;
use super::text::{ADDRESS_END, address, addresses, between, decimal_size};
use loadline_base::units::Bytes;

/// A node of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetaspaceNode {
    /// First address.
    pub start: u64,
    /// End address of the reserved range, exclusive.
    pub end: u64,
    /// Committed bytes. As of JDK 17, anywhere in the node, in granules of 64 KiB; on JDK 11, at its start.
    pub committed: Bytes,
    /// Whether it belongs to the class space; never without compressed class pointers.
    pub class_space: bool,
}

impl MetaspaceNode {
    /// `- node #0: base 0x00007f45f3000000: reserved=65536.00 KB, committed=192.00 KB ( <1%), …`
    fn of_17(line: &str, class_space: bool) -> Option<Self> {
        let sized = |key| between(line, key, &[',', '(']).and_then(decimal_size);
        let start = address(between(line, "base ", &[':'])?)?;
        let end = start.checked_add(sized("reserved=")?.0)?;
        Self { start, end, committed: sized("committed=")?, class_space }.plausible()
    }

    /// `[0x…, 0x…, 0x…, 0x…)`: start, end of the used part, end of the committed part, end.
    fn of_11(line: &str, class_space: bool) -> Option<Self> {
        let mut found = addresses(line.strip_prefix('[')?);
        let (start, _used_end) = (found.next()?, found.next()?);
        let (committed_end, end) = (found.next()?, found.next()?);
        Self { start, end, committed: Bytes(committed_end.checked_sub(start)?), class_space }.plausible()
    }

    fn plausible(self) -> Option<Self> {
        let possible = self.start < self.end && self.end <= ADDRESS_END;
        (possible && self.committed.0 <= self.end - self.start).then_some(self)
    }
}

/// Parses a reply into its nodes, by address; skips absurd and overlapping ones.
pub fn parse(text: &str) -> Result<Vec<MetaspaceNode>, Unavailable> {
    let mut nodes = Vec::new();
    // Without compressed class pointers, JDK 11 prints no heading.
    let (mut class_space, mut addresses_follow) = (false, false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("- node #") {
            nodes.extend(MetaspaceNode::of_17(line, class_space));
        } else if addresses_follow {
            nodes.extend(MetaspaceNode::of_11(line, class_space));
        }
        addresses_follow = line.starts_with("node @");
        if line.ends_with("Non-Class:") || line == "vsl non-class-space:" {
            class_space = false;
        } else if line.ends_with("Class:") || line == "vsl class-space:" {
            class_space = true;
        }
    }
    nodes.sort_unstable_by_key(|node: &MetaspaceNode| (node.start, node.end));
    leave_out_overlaps(&mut nodes, |node| (node.start, node.end));
    if nodes.is_empty() {
        return Err(Unavailable::new("VM.metaspace", "the response has an unknown format"));
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_after_addresses_belongs_to_the_next_node() {
        let text = "   Non-Class:\n1 nodes, current node: 0x0\n\nnode @0x9: reserved=8.00 MB, committed=4.25 MB ( 53%)\n   \
                    [0x0000000000800000, 0x0000000000801c00, 0x0000000000840000, 0x0000000001000000)       Class:\n\
                    1 nodes, current node: 0x0\n\nnode @0x8: reserved=1.00 GB, committed=512.00 KB ( <1%)\n   \
                    [0x0000000100000000, 0x0000000100061000, 0x0000000100080000, 0x0000000140000000)\n";
        let node = |start, end, committed, class_space| MetaspaceNode { start, end, committed, class_space };
        let expect = vec![
            node(0x80_0000, 0x100_0000, Bytes::kib(256), false),
            node(0x1_0000_0000, 0x1_4000_0000, Bytes::kib(512), true),
        ];
        assert_eq!(parse(text), Ok(expect));
    }

    #[test]
    fn nodes_of_both_spaces_are_read_and_invalid_ones_skipped() {
        let text = "vsl non-class-space:\n- node #0: base 0x30000000: reserved=65536.00 KB, committed=192.00 KB ( <1%)\n\
                    - node #1: base 0x10000000: reserved=64.50 MB, committed=0 bytes (  0%), used=0 bytes\n\
                    - node #2: base 0x30010000: reserved=64.00 KB, committed=0 bytes (  0%)\n\
                    - node #3: base 0x50000000: reserved=64.00 KB, committed=65.00 KB (101%)\n\
                    - node #4: base 0x60000000: reserved=999999999.00 GB, committed=1.00 KB\n\
                    vsl class-space:\n- node #0: base 0x40000000: reserved=1.00 GB, committed=1 bytes ( <1%)\n";
        let nodes = parse(text).unwrap();
        let starts: Vec<_> = nodes.iter().map(|node| (node.start, node.class_space)).collect();
        assert_eq!(starts, [(0x1000_0000, false), (0x3000_0000, false), (0x4000_0000, true)]);
        assert_eq!((nodes[0].end, nodes[0].committed), (0x1408_0000, Bytes(0)));
        assert_eq!((nodes[1].committed, nodes[2].committed), (Bytes::kib(192), Bytes(1)));
        assert!(parse("vsl class-space:\n").is_err());
    }
}
