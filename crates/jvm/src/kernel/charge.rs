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
    /// Parses `memory.stat`.
    pub fn parse(text: &str, version: CgroupVersion) -> Option<Self> {
        match version {
            CgroupVersion::V1 => Self::v1(text),
            CgroupVersion::V2 => Self::v2(text),
        }
    }

    /// Lines of `total_rss 2379776`, bytes; those without `total_` leave out the cgroups below.
    fn v1(text: &str) -> Option<Self> {
        let number = |key| keyed_number(text, key);
        let refaults = number("total_workingset_refault_file").or_else(|| number("total_workingset_refault"));
        let shmem = number("total_shmem").unwrap_or(0);
        Some(Self {
            anon: Bytes(number("total_rss")?),
            file: Bytes(number("total_cache")?.saturating_sub(shmem)),
            file_mapped: Bytes(number("total_mapped_file").unwrap_or(0)),
            shmem: Bytes(shmem),
            kernel: None,
            file_refaults: refaults.unwrap_or(0),
            major_faults: number("total_pgmajfault").unwrap_or(0),
        })
    }

    /// Lines of `anon 2379776`, bytes; `file` counts shared memory in.
    fn v2(text: &str) -> Option<Self> {
        let number = |key| keyed_number(text, key);
        // `kernel` since 5.18; before, its parts.
        let parts = ["kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock", "vmalloc", "slab"];
        let kernel = number("kernel")
            .unwrap_or_else(|| parts.iter().filter_map(|part| number(part)).fold(0, u64::saturating_add));
        let shmem = number("shmem").unwrap_or(0);
        Some(Self {
            anon: Bytes(number("anon")?),
            file: Bytes(number("file")?.saturating_sub(shmem)),
            file_mapped: Bytes(number("file_mapped").unwrap_or(0)),
            shmem: Bytes(shmem),
            kernel: Some(Bytes(kernel)),
            file_refaults: number("workingset_refault_file").or_else(|| number("workingset_refault")).unwrap_or(0),
            major_faults: number("pgmajfault").unwrap_or(0),
        })
    }
}
