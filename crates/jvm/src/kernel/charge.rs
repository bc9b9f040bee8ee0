//! The charge of a memory cgroup: `memory.stat`, v1 (kernel `Documentation/admin-guide/cgroup-v1/memory.rst`) and v2
//! (`cgroup-v2.rst`).

use super::cgroup::CgroupVersion;
use super::text::keyed_number;
use loadline_base::units::Bytes;

/// The parts of the charge of a cgroup and those below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charge {
    /// Pages of no file.
    pub anon: Bytes,
    /// Page cache, without shared memory.
    pub file: Bytes,
    /// Page cache that a process has mapped.
    pub file_mapped: Bytes,
    /// Shared memory and tmpfs.
    pub shmem: Bytes,
    /// The kernel's own: page tables, stacks, slab; `None` where the file does not say (v1 keeps it elsewhere).
    pub kernel: Option<Bytes>,
    /// File pages that came back soon after they were dropped, so far: thrashing.
    pub file_refaults: u64,
    /// Page faults that needed a disk, so far.
    pub major_faults: u64,
}

impl Charge {
    /// Parses `memory.stat`: lines of `anon 2379776` of v2, where `file` counts shared memory in, or of
    /// `total_rss 2379776` of v1, where those without `total_` leave out the cgroups below; bytes.
    pub fn parse(text: &str, version: CgroupVersion) -> Option<Self> {
        let (prefix, anon, file, mapped) = match version {
            CgroupVersion::V1 => ("total_", "rss", "cache", "mapped_file"),
            CgroupVersion::V2 => ("", "anon", "file", "file_mapped"),
        };
        let number = |key: &str| keyed_number(text, &format!("{prefix}{key}"));
        let shmem = number("shmem").unwrap_or(0);
        let refaults = number("workingset_refault_file").or_else(|| number("workingset_refault"));
        Some(Self {
            anon: Bytes(number(anon)?),
            file: Bytes(number(file)?.saturating_sub(shmem)),
            file_mapped: Bytes(number(mapped).unwrap_or(0)),
            shmem: Bytes(shmem),
            kernel: (version == CgroupVersion::V2).then(|| kernel(text)),
            file_refaults: refaults.unwrap_or(0),
            major_faults: number("pgmajfault").unwrap_or(0),
        })
    }
}

/// The kernel's own memory, by v2: `kernel` since 5.18; before, its parts.
fn kernel(text: &str) -> Bytes {
    const PARTS: [&str; 7] = ["kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock", "vmalloc", "slab"];
    let parts = || PARTS.iter().filter_map(|part| keyed_number(text, part)).fold(0, u64::saturating_add);
    Bytes(keyed_number(text, "kernel").unwrap_or_else(parts))
}
