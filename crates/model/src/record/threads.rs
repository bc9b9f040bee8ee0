//! Threads at a moment, one by one and by pool.

use serde::{Deserialize, Serialize};

/// A thread that lives.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThreadRecord {
    /// Its id, as seen from here.
    pub tid: u32,
    /// As far as the kernel keeps it: 15 bytes.
    pub name: String,
    /// Resident pages of its stack; `null` where the thread ran when it was looked at.
    pub stack_bytes: Option<u64>,
    /// CPU time that it has used since it began.
    pub cpu_s: f64,
    /// Bytes that it has allocated in the Java heap since it began; `null` for a thread that is no Java thread, and
    /// where they could not be read.
    pub allocated_bytes: Option<u64>,
}

/// Threads whose names differ in numbers only.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThreadPoolRecord {
    /// Their name with `*` for the numbers that differ, as far as the kernel keeps it: 15 bytes.
    pub name: String,
    /// How many live.
    pub threads: u64,
    /// Resident pages of their stacks; those of threads that ran when they were looked at are not known.
    pub stack_bytes: u64,
    /// CPU time that those which live have used so far.
    pub cpu_s: f64,
    /// Bytes that the live ones have allocated in the Java heap so far; `null` for threads that are no Java threads,
    /// and where they could not be read.
    pub allocated_bytes: Option<u64>,
}

impl ThreadPoolRecord {
    /// Takes in the threads of another; what is known of one alone counts for both.
    pub fn add(&mut self, more: &Self) {
        self.threads = self.threads.saturating_add(more.threads);
        self.stack_bytes = self.stack_bytes.saturating_add(more.stack_bytes);
        self.cpu_s += more.cpu_s;
        if let Some(bytes) = more.allocated_bytes {
            self.allocated_bytes = Some(self.allocated_bytes.unwrap_or(0).saturating_add(bytes));
        }
    }
}
