//! Caches of kernel objects: `/proc/slabinfo` (man 5 slabinfo), and `memory.kmem.slabinfo` of a v1 memory cgroup, which
//! Linux 3.8 to 5.8 fill in.

use super::process::page_size;
use loadline_base::order::Order as _;
use loadline_base::units::Bytes;

/// A cache and the memory of its slabs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slab {
    /// Name, such as `dentry`.
    pub name: String,
    /// Pages of its slabs, in bytes.
    pub bytes: Bytes,
}

impl Slab {
    /// Whether the kernel reclaims its objects under memory pressure: file names and inodes.
    pub fn is_reclaimable(&self) -> bool {
        self.name == "dentry" || self.name.ends_with("inode_cache") || self.name.ends_with("inode")
    }
}

/// The caches that have slabs, largest first; skips unrecognized lines.
///
/// ```text
/// # name <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables … : slabdata <active> <num_slabs> …
/// dentry 340322 392364 192 21 1 : tunables 0 0 0 : slabdata 18684 18684 0
/// ```
pub fn parse(text: &str) -> Vec<Slab> {
    let mut slabs: Vec<Slab> = text.lines().filter_map(of_line).filter(|slab| slab.bytes.0 > 0).collect();
    slabs.largest_first(|slab| slab.bytes);
    slabs
}

fn of_line(line: &str) -> Option<Slab> {
    let (objects, slabs) = line.split_once(": slabdata")?;
    let mut objects = objects.split_whitespace();
    let (name, pages) = (objects.next()?, objects.nth(4)?.parse::<u64>().ok()?);
    let slabs: u64 = slabs.split_whitespace().nth(1)?.parse().ok()?;
    let bytes = slabs.checked_mul(pages)?.checked_mul(page_size().0)?;
    Some(Slab { name: name.to_owned(), bytes: Bytes(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_have_their_size_and_truncation_affects_one_line() {
        let text = "slabinfo - version: 2.1\n# name <active_objs> <num_objs> : slabdata <active_slabs> <num_slabs>\n\
            kmalloc-1k 64 64 1024 16 4 : tunables 0 0 0 : slabdata 4 4 0\n\
            ext4_inode_cache 0 0 1096 29 8 : tunables 0 0 0 : slabdata 0 0 0\n\
            dentry 340322 392364 192 21 1 : tunables 0 0 0 : slabdata 18684 18684 0\n";
        let found = parse(text);
        let told: Vec<_> = found.iter().map(|slab| (slab.name.as_str(), slab.is_reclaimable())).collect();
        assert_eq!(told, [("dentry", true), ("kmalloc-1k", false)]);
        assert_eq!(found[0].bytes.0, 18684 * page_size().0);
        for end in 0..text.len() {
            assert!(parse(&text[..end]).len() <= 2);
        }
    }
}
