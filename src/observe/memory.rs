//! `/proc/PID/mem` (man proc_pid_mem): the memory of a process. Reading a page that is not present would map it into
//! the process, so whoever reads must know from `pagemap` that it is.

use super::Unavailable;
use super::procfs::{Process, open_below};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Memory that can be read by address: of a process, or made up in a test.
pub trait Memory {
    /// Fills `into` from the address `at`; false where not all of it can be read.
    fn read(&self, at: u64, into: &mut [u8]) -> bool;
}

/// The memory of a running process.
#[derive(Debug)]
pub struct ProcessMemory {
    file: File,
}

impl ProcessMemory {
    /// Opens it; needs the permission to trace (`ptrace_scope`, same user or root).
    pub fn open(process: &Process) -> Result<Self, Unavailable> {
        let file = open_below(process.folder(), "mem").map_err(|e| Unavailable::io("mem", &e))?;
        Ok(Self { file })
    }
}

impl Memory for ProcessMemory {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        self.file.read_exact_at(into, at).is_ok()
    }
}
