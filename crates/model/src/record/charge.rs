//! The charge of a memory cgroup, as recorded.

use super::{CachedFileRecord, ChargeRow, DoubtRecord, Machine, SlabRecord};
use serde::{Deserialize, Serialize};

/// Schema of the document that `loadline account --cgroup --json` prints.
pub const CHARGE_SCHEMA: &str = "loadline.charge/1";

/// The charge of a memory cgroup, by kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ChargeRecord {
    /// The whole charge, which is compared with the limit.
    pub usage_bytes: u64,
    /// Anonymous pages.
    pub anon_bytes: u64,
    /// Page cache, without shared memory.
    pub file_bytes: u64,
    /// Page cache that was not used lately; `null` in older records. Without it the charge is Kubernetes' working set.
    pub inactive_file_bytes: Option<u64>,
    /// Page cache that a disk does not have yet; `null` in older records.
    pub dirty_file_bytes: Option<u64>,
    /// Shared memory and tmpfs.
    pub shmem_bytes: u64,
    /// Kernel memory: page tables, stacks, slab, sockets; `null` if the cgroup does not report it.
    pub kernel_bytes: Option<u64>,
    /// Swapped-out memory, which is not part of the charge; `null` if swap is not accounted.
    pub swap_bytes: Option<u64>,
    /// The smallest limit of this cgroup and its ancestors; `null` if there is none.
    pub limit_bytes: Option<u64>,
    /// `v1` or `v2`.
    #[cfg_attr(test, schemars(extend("enum" = ["v1", "v2"])))]
    pub version: String,
    /// The cgroup's folder below its mount, such as `/system.slice/app.service`.
    pub cgroup: String,
    /// Processes in it.
    pub processes: u64,
    /// The ancestor cgroup that carries the limit; absent if it is this one or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_cgroup: Option<String>,
    /// On cgroup v2: controllers that JDKs without JDK-8349988 look for in `/proc/cgroups` and that are not listed
    /// there as enabled. Absent if all are listed or the file cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlisted: Vec<String>,
    /// The charge by owner. The rows add up to `usage_bytes`; absent where the owners were not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<ChargeRow>,
    /// Processes of the cgroup that could not be read.
    pub unread_processes: u64,
    /// Files on disks in the page cache that its processes have open or mapped, the largest. Another cgroup may be
    /// charged for them. Absent where the kernel does not tell it (Linux 6.5 or newer; of files that one may write).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cached_files: Vec<CachedFileRecord>,
    /// The largest caches of kernel objects of the whole machine; absent if the kernel's memory is small, or its caches
    /// are among the rows, or only root may read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_slabs: Vec<SlabRecord>,
}

impl ChargeRecord {
    /// The part that the kernel cannot take back, which is all that gets the cgroup killed; `None` where the owners
    /// were not read.
    pub fn kept_bytes(&self) -> Option<u64> {
        let kept = self.rows.iter().filter(|row| !row.reclaimable).map(|row| row.bytes).sum::<i64>();
        (!self.rows.is_empty()).then(|| u64::try_from(kept).unwrap_or(0))
    }

    /// The charge without the page cache that was not used lately: the `working_set` of Kubernetes (kubelet, cAdvisor).
    pub fn working_set_bytes(&self) -> Option<u64> {
        Some(self.usage_bytes.saturating_sub(self.inactive_file_bytes?))
    }
}

/// The document that `loadline account --cgroup --json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChargeDocument {
    /// The type of this document and the version of its format.
    #[cfg_attr(test, schemars(extend("const" = CHARGE_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// When it was taken: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub taken: String,
    /// The command that repeats it.
    pub command: String,
    /// The machine and how busy it was.
    pub machine: Machine,
    /// The charge, by kind and by owner.
    pub charge: ChargeRecord,
    /// The largest charge so far, in bytes; `null` on v2 before Linux 5.19.
    pub peak_bytes: Option<u64>,
    /// Processes of the cgroup that the kernel killed for lack of memory, so far.
    pub oom_kills: u64,
    /// The JVMs in the cgroup.
    pub jvms: Vec<NamedJvm>,
    /// Reasons to distrust a number, each with the next step.
    pub doubts: Vec<DoubtRecord>,
}

/// A JVM that was found and not weighed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NamedJvm {
    /// Process id, as seen from here.
    pub pid: u32,
    /// Its program, as far as its command line tells.
    pub name: String,
}
