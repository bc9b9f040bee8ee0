//! The charge of a memory cgroup: `memory.stat`, v1 (kernel `Documentation/admin-guide/cgroup-v1/memory.rst`) and v2
//! (`cgroup-v2.rst`).

use super::cgroup::CgroupVersion;
use super::text::keyed_number;
use loadline_base::units::Bytes;

/// The parts of the charge of a cgroup and its nested cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charge {
    /// Anonymous pages.
    pub anon: Bytes,
    /// Page cache, without shared memory.
    pub file: Bytes,
    /// Page cache mapped by processes.
    pub file_mapped: Bytes,
    /// Inactive page cache: the kernel reclaims it first, and Kubernetes' working set excludes it.
    pub file_inactive: Bytes,
    /// Page cache not yet written to disk, including pages being written.
    pub file_dirty: Bytes,
    /// Shared memory and tmpfs.
    pub shmem: Bytes,
    /// Kernel memory: page tables, stacks, slab, sockets; `None` if it is in another file (v1).
    pub kernel: Option<Bytes>,
    /// Its parts; `None` on v1.
    pub kernel_parts: Option<KernelParts>,
    /// File pages that were read again soon after eviction, so far; a sign of thrashing.
    pub file_refaults: u64,
    /// Page faults that needed disk I/O, so far.
    pub major_faults: u64,
}

/// Memory that the kernel keeps for a cgroup, as v2 reports it (`cgroup-v2.rst`, `memory.stat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelParts {
    /// Thread stacks.
    pub stacks: Bytes,
    /// Page tables, including those of virtual machines.
    pub page_tables: Bytes,
    /// File names and inodes, which the kernel reclaims.
    pub slab_reclaimable: Bytes,
    /// Other kernel objects.
    pub slab_unreclaimable: Bytes,
    /// Per-CPU data.
    pub per_cpu: Bytes,
    /// Socket buffers.
    pub sockets: Bytes,
    /// Larger areas, mostly owned by modules or eBPF.
    pub vmalloc: Bytes,
}

impl KernelParts {
    fn parse(text: &str) -> Self {
        let bytes = |keys: &[&str]| {
            let parts = keys.iter().filter_map(|key| keyed_number(text, key));
            Bytes(parts.fold(0, u64::saturating_add))
        };
        Self {
            stacks: bytes(&["kernel_stack"]),
            page_tables: bytes(&["pagetables", "sec_pagetables"]),
            slab_reclaimable: bytes(&["slab_reclaimable"]),
            slab_unreclaimable: bytes(&["slab_unreclaimable"]),
            per_cpu: bytes(&["percpu"]),
            sockets: bytes(&["sock"]),
            vmalloc: bytes(&["vmalloc"]),
        }
    }

    /// Their sum.
    pub fn sum(&self) -> Bytes {
        let Self { stacks, page_tables, slab_reclaimable, slab_unreclaimable, per_cpu, sockets, vmalloc } = self;
        let parts = [stacks, page_tables, slab_reclaimable, slab_unreclaimable, per_cpu, sockets, vmalloc];
        Bytes(parts.into_iter().map(|part| part.0).fold(0, u64::saturating_add))
    }
}

impl Charge {
    /// Parses `memory.stat`, in bytes: v2 has lines such as `anon 2379776`, and its `file` includes shared memory. v1
    /// has lines such as `total_rss 2379776`, and those without `total_` exclude nested cgroups.
    pub fn parse(text: &str, version: CgroupVersion) -> Option<Self> {
        let (prefix, anon, file, mapped, dirty) = match version {
            CgroupVersion::V1 => ("total_", "rss", "cache", "mapped_file", ["dirty", "writeback"]),
            CgroupVersion::V2 => ("", "anon", "file", "file_mapped", ["file_dirty", "file_writeback"]),
        };
        let parts = (version == CgroupVersion::V2).then(|| KernelParts::parse(text));
        let number = |key: &str| keyed_number(text, &format!("{prefix}{key}"));
        let shmem = number("shmem").unwrap_or(0);
        let refaults = number("workingset_refault_file").or_else(|| number("workingset_refault"));
        Some(Self {
            anon: Bytes(number(anon)?),
            file: Bytes(number(file)?.saturating_sub(shmem)),
            file_mapped: Bytes(number(mapped).unwrap_or(0)),
            file_inactive: Bytes(number("inactive_file").unwrap_or(0)),
            file_dirty: Bytes(dirty.into_iter().filter_map(number).fold(0, u64::saturating_add)),
            shmem: Bytes(shmem),
            kernel: parts.map(|parts| kernel(text, parts)),
            kernel_parts: parts,
            file_refaults: refaults.unwrap_or(0),
            major_faults: number("pgmajfault").unwrap_or(0),
        })
    }
}

/// The kernel's own memory, from v2: `kernel` since 5.18, which excludes socket buffers; before that, its parts.
fn kernel(text: &str, parts: KernelParts) -> Bytes {
    let whole = keyed_number(text, "kernel").map(|kernel| Bytes(kernel.saturating_add(parts.sockets.0)));
    whole.unwrap_or_else(|| parts.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `memory.stat` of Linux 6.12, shortened.
    #[test]
    fn the_kernels_memory_is_split_and_sockets_count() {
        let text = "anon 8192\nfile 24576\nkernel 70000\nkernel_stack 16384\npagetables 20480\nsec_pagetables 4096\n\
            percpu 960\nsock 12288\nvmalloc 4096\nshmem 4096\nfile_mapped 8192\nfile_dirty 4096\nfile_writeback 4096\n\
            inactive_file 16384\nslab_reclaimable 9000\nslab_unreclaimable 7000\n";
        let charge = Charge::parse(text, CgroupVersion::V2).unwrap();
        assert_eq!((charge.kernel, charge.file), (Some(Bytes(82_288)), Bytes(20_480)));
        assert_eq!((charge.file_inactive, charge.file_dirty), (Bytes(16_384), Bytes(8192)));
        let parts = charge.kernel_parts.unwrap();
        assert_eq!((parts.page_tables, parts.sum()), (Bytes(24_576), Bytes(74_304)));
        // Linux before 5.18 has no `kernel`.
        let before = Charge::parse(&text.replace("kernel 70000\n", ""), CgroupVersion::V2).unwrap();
        assert_eq!(before.kernel, Some(parts.sum()));
    }

    #[test]
    fn v1_includes_nested_cgroups_and_has_no_kernel_parts() {
        let text = "cache 1\nrss 2\ninactive_file 3\ntotal_cache 24576\ntotal_rss 8192\ntotal_shmem 4096\n\
            total_inactive_file 4096\ntotal_dirty 8192\ntotal_writeback 4096\n";
        let charge = Charge::parse(text, CgroupVersion::V1).unwrap();
        assert_eq!((charge.anon, charge.file, charge.file_inactive), (Bytes(8192), Bytes(20_480), Bytes(4096)));
        assert_eq!((charge.file_dirty, charge.kernel, charge.kernel_parts), (Bytes(12_288), None, None));
    }
}
