//! A full or nearly full disk.

use loadline_test_support::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of a few pages; unmounted on drop.
pub(crate) struct SmallDisk {
    pub(crate) folder: PathBuf,
}

impl SmallDisk {
    pub(crate) fn mount(below: &Path, size: &str) -> Option<Self> {
        let folder = below.join("disk");
        std::fs::create_dir(&folder).unwrap();
        let option = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &option, "none"]).arg(&folder).output();
        match mounted {
            Ok(mounted) if mounted.status.success() => Some(Self { folder }),
            other => {
                skip("LOADLINE_MACHINE", &format!("no file system can be mounted here: {other:?}"));
                None
            }
        }
    }

    /// Leaves this many bytes free, in whole pages.
    pub(crate) fn fill_but(&self, bytes: u64) {
        let size = rustix::fs::statvfs(&self.folder).map(|disk| disk.f_bavail * disk.f_bsize).unwrap();
        std::fs::write(self.folder.join("filler"), vec![b'x'; (size - bytes) as usize]).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Removing the parent directory would detect a leftover mount.
        let _ = Command::new("umount").arg(&self.folder).status();
    }
}
