//! Loadline's own directories for the duration of a recording, with names that options can contain.

use loadline_base::error::{Error, Result};
use loadline_jvm::observe::own_folder::{OwnFolder, open_above, own_user};
use rustix::fs::{AtFlags, CWD};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Number of names to try: each taken name belongs to another Loadline process.
const TRIES: u32 = 1000;

/// Whether a path can be passed to a JVM and to async-profiler unchanged. A JVM option ends at a space in
/// `JAVA_TOOL_OPTIONS`, a library's path at `=`, and an async-profiler option at a comma; the profiler replaces `%`.
pub(crate) fn is_plain(path: &Path) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+@~:".contains(byte);
    path.is_absolute() && path.as_os_str().as_encoded_bytes().iter().all(plain)
}

/// A new directory in the directory for temporary files, or in `/tmp` if options cannot contain that name. Fails if
/// none can be created.
pub(crate) fn temporary(files: &'static [&'static str]) -> Result<OwnFolder> {
    let chosen = std::env::temp_dir();
    let above = if is_plain(&chosen) { chosen } else { PathBuf::from("/tmp") };
    let made = || -> io::Result<OwnFolder> {
        let descriptor = open_above(&above)?;
        for number in 0..TRIES {
            let name = format!("loadline-profiler-{}-{number}", std::process::id());
            match OwnFolder::create(&descriptor, (&name, &above), files, own_user()) {
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    };
    made().map_err(|cause| Error::io("create a directory in", &above, &cause))
}

/// The beginning of a file as text; empty if the file is missing or cannot be read.
pub(crate) fn text(folder: &OwnFolder, name: &str, bytes_max: u64) -> String {
    let mut bytes = Vec::new();
    let read = folder.file(name).and_then(|file| file.take(bytes_max).read_to_end(&mut bytes));
    read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

pub(crate) fn exists(path: &Path) -> bool {
    rustix::fs::statat(CWD, path, AtFlags::empty()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_temporary_directory_is_private_and_removed() {
        let folder = temporary(&["a"]).unwrap();
        let path = folder.path().to_owned();
        assert!(is_plain(&path), "{}", path.display());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o700);
        folder.write("a", b"text").unwrap();
        assert_eq!(text(&folder, "a", 3), "tex");
        let other = temporary(&[]).unwrap();
        assert_ne!(other.path(), path);
        drop(folder);
        assert!(!exists(&path));
    }

    #[test]
    fn paths_that_an_agent_option_cannot_contain_are_recognized() {
        for plain in ["/tmp/x", "/home/a.b/c_d-e+1/lib.so", "/tmp/x@2"] {
            assert!(is_plain(Path::new(plain)), "{plain}");
        }
        for other in ["tmp", "/a b", "/a,b", "/a=b", "/a%p", "/a\nb", "/ä", "/a'b", "/a\"b", "/a*"] {
            assert!(!is_plain(Path::new(other)), "{other}");
        }
    }
}
