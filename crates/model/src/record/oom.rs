//! OOM kills from the kernel's log, and other evidence of how a process ended.

use super::{ChargeKind, ChargeRow};
use serde::{Deserialize, Serialize};

/// Schema of the output of `loadline post-mortem --json`.
pub const OOM_SCHEMA: &str = "loadline.oom/1";

/// The document that `loadline post-mortem --json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OomDocument {
    /// Document type and format version.
    #[cfg_attr(test, schemars(extend("const" = OOM_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// The command that repeats it.
    pub command: String,
    /// The kernel's log: a file, `stdin`, or `/dev/kmsg`; empty if only other files were given.
    pub log: String,
    /// All events in which memory ran out, latest first.
    pub kills: Vec<OomRecord>,
    /// The other files, in command-line order.
    #[serde(default)]
    pub traces: Vec<TraceRecord>,
}

/// A file other than the kernel's log that shows how a process ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TraceRecord {
    /// The file, or `stdin`.
    pub file: String,
    /// The evidence in it.
    pub trace: Trace,
}

/// Evidence in one file of how a process ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Trace {
    /// The counters of a cgroup: `memory.events` (v2) or `memory.oom_control` (v1).
    MemoryEvents {
        /// Processes killed at its limit.
        oom_kills: u64,
        /// How often its charge reached the limit; `null` on v1.
        at_limit: Option<u64>,
    },
    /// The error file of a JVM that aborted: `hs_err_pid*.log`.
    FatalError {
        /// The problem, in the JVM's words.
        problem: String,
        /// The kind of memory that it lacked.
        lacked: Lacked,
        /// When it ended, as written in the file.
        time: String,
        /// Bytes of the Java heap that held objects; `null` if the file does not show it.
        heap_used_bytes: Option<u64>,
        /// Maximum heap size, in bytes.
        heap_max_bytes: Option<u64>,
        /// RSS in bytes (JDK 17 and newer).
        rss_bytes: Option<u64>,
        /// The memory limit of its cgroup; `null` without one.
        limit_bytes: Option<u64>,
        /// The charge of its cgroup.
        usage_bytes: Option<u64>,
    },
    /// The log of a collector (`-Xlog:gc`, JDK 11 and newer).
    GcLog {
        /// Number of GCs.
        collections: u64,
        /// Number of full GCs.
        full: u64,
        /// Bytes left by the last GC, or by the last full GC if the heap was full.
        left_bytes: u64,
        /// Heap size at that time.
        heap_bytes: u64,
        /// Whether consecutive full GCs freed next to nothing.
        was_full: bool,
    },
    /// A container, as `docker inspect`, `podman inspect`, or `kubectl get pod -o json` describes it.
    Container {
        /// Its name.
        name: String,
        /// The runtime's own reason, such as `OOMKilled`; may be empty.
        reason: String,
        /// Whether the runtime reported an OOM kill.
        oom_killed: bool,
        /// Its last exit code.
        exit_code: i64,
        /// Its memory limit; `null` without one.
        limit_bytes: Option<u64>,
        /// When it ended, as the runtime reports it.
        time: String,
        /// The runtime's ID of the container that ended; `null` if the status has none.
        #[serde(default)]
        id: Option<String>,
        /// The pod's UID; `null` outside Kubernetes.
        #[serde(default)]
        pod_uid: Option<String>,
    },
}

impl Trace {
    /// Whether a cgroup belongs to this container or to its whole pod; `None` if the status has no ID. Runtimes put the
    /// container's ID into the name of its cgroup. The kubelet names the pod's cgroup after the pod's UID, with `_`
    /// instead of `-` if systemd manages cgroups (Kubernetes 1.35).
    pub fn owns(&self, cgroup: &str) -> Option<bool> {
        let Self::Container { id, pod_uid, .. } = self else { return None };
        let (_, last) = cgroup.rsplit_once('/').unwrap_or_default();
        let is_own = |id: &String| cgroup.contains(id.as_str());
        let is_of_pod = |uid: &String| last.contains(uid.as_str()) || last.contains(&uid.replace('-', "_"));
        let found = [id.as_ref().map(is_own), pod_uid.as_ref().map(is_of_pod)];
        found.into_iter().flatten().reduce(|one, other| one || other)
    }
}

/// The memory that a JVM lacked when it aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Lacked {
    /// The Java heap was full.
    Heap,
    /// Metaspace or class space was full.
    Metaspace,
    /// Native memory: the kernel or malloc returned none.
    Native,
    /// None: it crashed for another reason.
    Nothing,
}

/// One event in which memory ran out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OomRecord {
    /// Prefix of its first line in the log, usually a time.
    pub stamp: String,
    /// Task whose allocation triggered the kill; not necessarily the largest.
    pub invoked_by: String,
    /// The cgroup whose limit was reached; `null` if the machine ran out of memory, or the log is truncated.
    pub cgroup: Option<String>,
    /// Whether the machine ran out of memory.
    pub machine: bool,
    /// The limit of the cgroup.
    pub limit_bytes: Option<u64>,
    /// Its charge at that time.
    pub usage_bytes: Option<u64>,
    /// How many times the charge had reached the limit; `null` if the log is truncated.
    #[serde(default)]
    pub at_limit: Option<u64>,
    /// Its swap at that time, which is not part of the charge.
    pub swap_bytes: Option<u64>,
    /// The charge by owner, which adds up to `usage_bytes`; for a machine, only processes.
    pub rows: Vec<ChargeRow>,
    /// The processes that the kernel killed.
    pub killed: Vec<OomKilled>,
    /// Whether all processes of the cgroup were to be killed together (`memory.oom.group`).
    pub group: bool,
    /// What held the memory, as far as the log shows.
    pub holder: OomHolder,
    /// Memory of JVMs, in bytes: processes named `java` or `jsvc`.
    pub jvm_bytes: u64,
    /// Memory of other processes, in bytes.
    pub other_bytes: u64,
}

impl OomRecord {
    /// The rows of a kind that the kernel could not reclaim, which are those that lead to a kill.
    pub fn kept(&self, kind: ChargeKind) -> impl Iterator<Item = &ChargeRow> {
        self.rows.iter().filter(move |row| row.kind == kind && !row.reclaimable && row.bytes > 0)
    }
}

/// A process that the kernel killed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OomKilled {
    /// Process ID in the kernel's own namespace.
    pub pid: u32,
    /// The kernel's name for it, at most 15 bytes.
    pub name: String,
    /// Its anonymous memory; `null` if the log is truncated.
    pub anon_bytes: Option<u64>,
}

/// What held the memory when it ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OomHolder {
    /// JVMs: their settings can limit most of it.
    Jvm,
    /// Other processes, which no JVM setting limits.
    OtherProcesses,
    /// In-memory files and shared memory.
    MemoryFiles,
    /// The kernel: page tables, stacks, socket buffers.
    Kernel,
    /// Unknown: the log does not show it.
    #[default]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_kept_by_a_kill_exclude_reclaimable_memory() {
        let row = |kind, bytes, reclaimable| ChargeRow { kind, bytes, reclaimable, ..ChargeRow::default() };
        let (kernel, files) = (ChargeKind::Kernel, ChargeKind::MemoryFiles);
        let rows = vec![row(kernel, 9, true), row(kernel, 5, false), row(kernel, -2, false), row(files, 7, false)];
        let record = OomRecord { rows, ..OomRecord::default() };
        let kept = |kind| record.kept(kind).map(|row| row.bytes).collect::<Vec<_>>();
        assert_eq!((kept(kernel), kept(files)), (vec![5], vec![7]));
    }
}
