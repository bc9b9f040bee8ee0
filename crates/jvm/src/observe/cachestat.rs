//! The system call `cachestat` (Linux 6.5, kernel `mm/filemap.c`): how much of an open file is in the page cache. No
//! crate offers it as a safe function.
#![expect(unsafe_code, reason = "a system call with pointers; its arguments are checked here and nowhere else")]

use crate::kernel::process::page_size;
use loadline_base::units::Bytes;
use nix::libc;
use std::os::fd::{AsFd, AsRawFd};

/// The system call's number on every architecture.
const CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range`: from an offset; length 0 means up to the end of the file.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// `struct cachestat`, in pages.
#[repr(C)]
#[derive(Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The part of a file that is in the page cache, whichever cgroup is charged for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cached {
    pub(super) bytes: Bytes,
    /// The part not yet written to disk.
    pub(super) dirty: Bytes,
}

/// Queries the kernel; `None` if the kernel is older, or refuses: since Linux 6.14, the caller must own the file or
/// have write access.
pub(super) fn of(file: impl AsFd) -> Option<Cached> {
    let (range, mut pages) = (Range { offset: 0, length: 0 }, Pages::default());
    let file = file.as_fd().as_raw_fd();
    // SAFETY: the descriptor stays open during the call, the kernel reads `range` and writes `pages`, whose layouts
    // match its structures, and the flags must be 0.
    let answer = unsafe { libc::syscall(CACHESTAT, file, &raw const range, &raw mut pages, 0) };
    let bytes = |pages: u64| Bytes(pages.saturating_mul(page_size().0));
    (answer == 0).then(|| Cached { bytes: bytes(pages.cached), dirty: bytes(pages.dirty + pages.writeback) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_new_file_is_fully_cached() {
        let mut file = tempfile::tempfile_in(std::env::var("CARGO_MANIFEST_DIR").unwrap()).unwrap();
        file.write_all(&vec![7; (3 << 20) + 1]).unwrap();
        let Some(cached) = of(&file) else { return loadline_test_support::skip("cachestat", "Linux before 6.5") };
        assert_eq!(cached.bytes.0, (3 << 20) + page_size().0);
        assert!(cached.dirty <= cached.bytes);
    }
}
