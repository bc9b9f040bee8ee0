//! How far the kernel reads ahead in a disk's files. A faulted page brings this many others with it, so in a cgroup
//! short of memory each fault evicts others.
//!
//! `/sys/class/bdi/MAJOR:MINOR/read_ahead_kb` (Documentation/ABI/testing/sysfs-class-bdi), in KiB. A partition uses the
//! setting of its disk. File systems without a device (overlay, tmpfs) have no setting that their device number
//! identifies.

use rustix::fs::{major, minor};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The default read-ahead of Linux, in bytes (`VM_READAHEAD_PAGES` in `linux/mm.h`).
pub const USUAL_BYTES: u64 = 128 << 10;

/// Returns the read-ahead for this file, in bytes; `None` if unknown.
pub fn of(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(knob(file)?).ok()?;
    bytes(&text)
}

/// The file that controls the setting, in KiB.
pub fn knob(file: &Path) -> Option<PathBuf> {
    let device = fs::metadata(file).ok()?.dev();
    let number = format!("{}:{}", major(device), minor(device));
    let own = Path::new("/sys/class/bdi").join(&number).join("read_ahead_kb");
    let disk = fs::canonicalize(Path::new("/sys/dev/block").join(&number)).ok();
    let disk = disk.and_then(|partition| Some(partition.parent()?.join("queue/read_ahead_kb")));
    [Some(own), disk].into_iter().flatten().find(|knob| knob.is_file())
}

fn bytes(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kib_become_bytes_and_garbage_becomes_none() {
        assert_eq!(bytes("128\n"), Some(USUAL_BYTES));
        assert_eq!(bytes("0\n"), Some(0));
        for text in ["", "\n", "-1", "8k", "18446744073709551615"] {
            assert_eq!(bytes(text), None, "{text:?}");
        }
        assert_eq!(of(Path::new("/proc/self/status")), None);
    }
}
