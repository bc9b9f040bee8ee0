//! Kills for lack of memory, as the kernel's log tells them.

use super::ChargeRow;
use serde::{Deserialize, Serialize};

/// Schema of the document that `loadline post-mortem --json` prints.
pub const OOM_SCHEMA: &str = "loadline.oom/1";

/// The document that `loadline post-mortem --json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OomDocument {
    /// The type of this document and the version of its format.
    #[cfg_attr(test, schemars(extend("const" = OOM_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// The command that repeats it.
    pub command: String,
    /// The log: a file, `stdin`, or `/dev/kmsg`.
    pub log: String,
    /// Every time that memory ran out, the latest first.
    pub kills: Vec<OomRecord>,
}

/// One time that memory ran out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OomRecord {
    /// What the log has before its first line: mostly a time.
    pub stamp: String,
    /// The task that asked for memory when there was none; it need not be the one that held most.
    pub invoked_by: String,
    /// The cgroup whose limit was met; `null` where the machine ran out of memory, and where the log was cut.
    pub cgroup: Option<String>,
    /// Whether the machine ran out of memory.
    pub machine: bool,
    /// The limit of the cgroup.
    pub limit_bytes: Option<u64>,
    /// Its charge then.
    pub usage_bytes: Option<u64>,
    /// Its swap then, which is not part of the charge.
    pub swap_bytes: Option<u64>,
    /// The charge by owner, which adds up to `usage_bytes`; of a machine the processes alone.
    pub rows: Vec<ChargeRow>,
    /// The processes that the kernel killed.
    pub killed: Vec<OomKilled>,
    /// Whether all processes of the cgroup were to be killed together (`memory.oom.group`).
    pub group: bool,
    /// What held the memory, as far as the log tells.
    pub holder: OomHolder,
    /// Memory of JVMs, in bytes: processes named `java` or `jsvc`.
    pub jvm_bytes: u64,
    /// The same of other processes.
    pub other_bytes: u64,
}

/// A process that the kernel killed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OomKilled {
    /// Process id, as the kernel's own namespace has it.
    pub pid: u32,
    /// The kernel's name of it, at most 15 bytes.
    pub name: String,
    /// Its anonymous memory; `null` where the log was cut.
    pub anon_bytes: Option<u64>,
}

/// What held the memory when it ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OomHolder {
    /// JVMs: their settings bound most of it.
    Jvm,
    /// Other processes, of which no setting of a JVM bounds any.
    OtherProcesses,
    /// Files in memory and shared memory.
    MemoryFiles,
    /// The kernel: page tables, stacks, buffers of sockets.
    Kernel,
    /// The log does not tell.
    #[default]
    Unknown,
}
