//! `/proc/PID/mem` (man proc_pid_mem): the memory of a process. Reading an absent page would map it into the process,
//! so callers must check `pagemap` first, or read through [`super::untouched`].

use super::Unavailable;
use super::procfs::{Process, open_below};
use crate::kernel::process::page_size;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The smallest page size on any Linux system; larger ones are multiples of it.
pub(super) const PAGE_MIN: u64 = 4096;

/// Memory that can be read by address: that of a process, or memory generated in a test. Numbers are little-endian.
pub trait Memory {
    /// Its page size in bytes, a power of two: 4, 16, or 64 KiB.
    fn page(&self) -> u64 {
        PAGE_MIN
    }

    /// Fills `into` from the address `at`; false if not all of it can be read.
    fn read(&self, at: u64, into: &mut [u8]) -> bool;

    /// Fills `into` with stretches of equal length from these addresses; false if not all of them can be read.
    fn read_each(&self, starts: &[u64], into: &mut [u8]) -> bool {
        let len = into.len() / starts.len().max(1);
        starts.iter().zip(into.chunks_exact_mut(len.max(1))).all(|(at, stretch)| self.read(*at, stretch))
    }

    /// The eight bytes at an address.
    fn u64(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(at, &mut bytes).then(|| u64::from_le_bytes(bytes))
    }

    /// The four bytes at an address.
    fn u32(&self, at: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(at, &mut bytes).then(|| u32::from_le_bytes(bytes))
    }

    /// The two bytes at an address.
    fn u16(&self, at: u64) -> Option<u16> {
        let mut bytes = [0; 2];
        self.read(at, &mut bytes).then(|| u16::from_le_bytes(bytes))
    }

    /// The byte at an address.
    fn u8(&self, at: u64) -> Option<u8> {
        let mut byte = [0];
        self.read(at, &mut byte).then_some(byte[0])
    }

    /// The zero-terminated string at an address, of at most 1 KiB.
    fn text(&self, at: u64) -> Option<String> {
        const STRETCH: u64 = 64;
        const MAX: usize = 1024;
        let mut text = Vec::new();
        let mut at = at;
        while text.len() < MAX {
            // No read crosses a page boundary, because the next page may be missing.
            let len = STRETCH - at % STRETCH;
            let mut stretch = [0; STRETCH as usize];
            let stretch = &mut stretch[..len as usize];
            self.read(at, stretch).then_some(())?;
            if let Some(end) = stretch.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&stretch[..end]);
                return String::from_utf8(text).ok();
            }
            text.extend_from_slice(stretch);
            at = at.checked_add(len)?;
        }
        None
    }
}

/// Reads a little-endian number of up to eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The eight-byte words. Ignores bytes after the last whole word.
pub(super) fn words(bytes: &[u8]) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

/// Maximum number of stretches per system call (`IOV_MAX`).
const STRETCHES_MAX: usize = 1024;

/// The memory of a running process; copies share one descriptor.
#[derive(Debug, Clone)]
pub struct ProcessMemory {
    file: Arc<File>,
    pid: Pid,
}

impl ProcessMemory {
    /// Opens it; needs permission to trace (`ptrace_scope`, same user or root).
    pub fn open(process: &Process) -> Result<Self, Unavailable> {
        process.must_live("mem")?;
        let file = Arc::new(open_below(process.folder(), "mem").map_err(Unavailable::io("mem"))?);
        Ok(Self { file, pid: Pid::from_raw(process.pid().cast_signed()) })
    }
}

impl Memory for ProcessMemory {
    fn page(&self) -> u64 {
        page_size().0
    }

    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        self.file.read_exact_at(into, at).is_ok()
    }

    /// One call per 1,024 stretches (man process_vm_readv), by pid. Callers must read something with [`Self::read`]
    /// afterward, which fails once the process is gone, even if another one has its pid.
    fn read_each(&self, starts: &[u64], into: &mut [u8]) -> bool {
        let len = into.len() / starts.len().max(1);
        let parts = starts.chunks(STRETCHES_MAX).zip(into.chunks_mut((STRETCHES_MAX * len).max(1)));
        parts.into_iter().all(|(starts, into)| {
            let remote: Vec<RemoteIoVec> = starts.iter().map(|at| RemoteIoVec { base: *at as usize, len }).collect();
            let expected = into.len();
            process_vm_readv(self.pid, &mut [IoSliceMut::new(into)], &remote) == Ok(expected)
        })
    }
}
