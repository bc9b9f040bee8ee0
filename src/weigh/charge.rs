//! What a cgroup charges, as it is recorded.

use crate::observe::cgroup::{CgroupMemory, MemoryCgroup};
use crate::record::ChargeRecord;

/// What a cgroup counts, by kind.
pub(crate) fn charge_record(memory: &CgroupMemory, cgroup: &MemoryCgroup) -> ChargeRecord {
    ChargeRecord {
        usage_bytes: memory.usage.0,
        anon_bytes: memory.charge.anon.0,
        file_bytes: memory.charge.file.0,
        shmem_bytes: memory.charge.shmem.0,
        kernel_bytes: memory.charge.kernel.map(|bytes| bytes.0),
        limit_bytes: memory.limit.as_ref().map(|limit| limit.bytes.0),
        version: cgroup.cgroup().version.name().to_owned(),
        cgroup: cgroup.name(),
        processes: cgroup.processes(),
    }
}
