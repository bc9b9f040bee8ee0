//! The record of the charge of a cgroup.

use crate::observe::cgroup::{CgroupMemory, MemoryCgroup};
use crate::record::ChargeRecord;

/// The charge of a cgroup, by kind.
pub(crate) fn charge_record(memory: &CgroupMemory, cgroup: &MemoryCgroup) -> ChargeRecord {
    let own = cgroup.cgroup();
    let above = memory.limit.as_ref().filter(|limit| limit.folder != own.folder);
    ChargeRecord {
        usage_bytes: memory.usage.0,
        anon_bytes: memory.charge.anon.0,
        file_bytes: memory.charge.file.0,
        shmem_bytes: memory.charge.shmem.0,
        kernel_bytes: memory.charge.kernel.map(|bytes| bytes.0),
        limit_bytes: memory.limit.as_ref().map(|limit| limit.bytes.0),
        version: own.version.name().to_owned(),
        cgroup: cgroup.name(),
        processes: cgroup.processes(),
        limit_cgroup: above.map(|limit| own.name_of(&limit.folder)),
        unlisted: cgroup.unlisted().iter().map(|name| (*name).to_owned()).collect(),
    }
}
