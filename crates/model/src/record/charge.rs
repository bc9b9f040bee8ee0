//! A memory cgroup's charge as recorded.

use super::{CachedFileRecord, ChargeRow, DoubtRecord, Machine, SlabRecord};
use serde::{Deserialize, Serialize};

/// Schema of the output of `loadline account --cgroup --json`.
pub const CHARGE_SCHEMA: &str = "loadline.charge/1";

/// The charge of a memory cgroup, by kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ChargeRecord {
    /// Total charge, which the kernel compares with the limit.
    pub usage_bytes: u64,
    /// Anonymous pages.
    pub anon_bytes: u64,
    /// Page cache, without shared memory.
    pub file_bytes: u64,
    /// Inactive page cache; `null` in older records. The charge minus this is Kubernetes' working set.
    pub inactive_file_bytes: Option<u64>,
    /// Dirty page cache; `null` in older records.
    pub dirty_file_bytes: Option<u64>,
    /// Shared memory and tmpfs.
    pub shmem_bytes: u64,
    /// Kernel memory: page tables, stacks, slab, sockets; `null` if the cgroup does not report it.
    pub kernel_bytes: Option<u64>,
    /// Swapped-out memory, not part of the charge; `null` if swap is not accounted.
    pub swap_bytes: Option<u64>,
    /// Smallest limit of this cgroup and its ancestors; `null` if there is none.
    pub limit_bytes: Option<u64>,
    /// `v1` or `v2`.
    #[cfg_attr(test, schemars(extend("enum" = ["v1", "v2"])))]
    pub version: String,
    /// Path of the cgroup below its mount, such as `/system.slice/app.service`.
    pub cgroup: String,
    /// Number of processes in it.
    pub processes: u64,
    /// Ancestor cgroup that sets the limit; absent if this cgroup sets it or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_cgroup: Option<String>,
    /// On cgroup v2, controllers that JDKs without JDK-8349988 expect in `/proc/cgroups` but that are not enabled
    /// there. Absent if all are enabled or the file cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlisted: Vec<String>,
    /// Charge by owner, adding up to `usage_bytes`; absent if owners were not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<ChargeRow>,
    /// Number of its processes that could not be read.
    pub unread_processes: u64,
    /// Largest on-disk files in the page cache that its processes have open or mapped; another cgroup may be charged
    /// for them. Covers files that Loadline may write to, on Linux 6.5 or newer; absent otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cached_files: Vec<CachedFileRecord>,
    /// Largest slab caches of the whole machine; absent if kernel memory is small, the caches are among the rows, or
    /// only root can read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_slabs: Vec<SlabRecord>,
}

impl ChargeRecord {
    /// The unreclaimable part, which is what gets the cgroup killed; `None` if the owners were not read.
    pub fn kept_bytes(&self) -> Option<u64> {
        let kept = self.rows.iter().filter(|row| !row.reclaimable).map(|row| row.bytes).sum::<i64>();
        (!self.rows.is_empty()).then(|| u64::try_from(kept).unwrap_or(0))
    }

    /// The charge without inactive page cache: the `working_set` of Kubernetes (kubelet, cAdvisor).
    pub fn working_set_bytes(&self) -> Option<u64> {
        Some(self.usage_bytes.saturating_sub(self.inactive_file_bytes?))
    }
}

/// The document that `loadline account --cgroup --json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChargeDocument {
    /// Document type and format version.
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
    /// OOM kills in the cgroup so far.
    pub oom_kills: u64,
    /// The JVMs in the cgroup.
    pub jvms: Vec<NamedJvm>,
    /// Reasons to distrust a number, each with the next step.
    pub doubts: Vec<DoubtRecord>,
}

/// A JVM that was found but not weighed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NamedJvm {
    /// Process ID, in Loadline's pid namespace.
    pub pid: u32,
    /// Its program, if its command line shows it.
    pub name: String,
}
