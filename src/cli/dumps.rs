//! The path of a heap dump: a new file, absolute so that the JVM finds it.

use crate::error::{Error, Result};
use crate::scenario::Inside;
use std::path::{Path, PathBuf};

/// Makes the dump's path absolute. Errors: `Request` if the file exists, or its directory does not.
pub(super) fn new_dump(mut asked: Inside) -> Result<Inside> {
    asked.heap_dump = asked.heap_dump.as_deref().map(new_file).transpose()?;
    Ok(asked)
}

/// Like [`new_dump`], for a path.
pub(super) fn new_file(file: &Path) -> Result<PathBuf> {
    let shown = file.display();
    let refuse = |why: String| Error::request(format!("cannot write the heap dump to {shown}: {why}"));
    let path = std::path::absolute(file).map_err(|cause| refuse(crate::error::plain(&cause)))?;
    if path.symlink_metadata().is_ok() {
        return Err(refuse("it already exists".to_owned()).hint("specify a new file name; files are never overwritten"));
    }
    match path.parent() {
        Some(folder) if folder.is_dir() => Ok(path),
        _ => Err(refuse("its directory does not exist".to_owned()).hint("create the directory first")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_dump_needs_a_new_file_in_an_existing_directory() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| new_file(&folder.path().join(name));
        assert_eq!(of("a.hprof").unwrap(), folder.path().join("a.hprof"));
        std::fs::write(folder.path().join("b"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("c")).unwrap();
        for (name, why) in [("b", "already exists"), ("c", "already exists"), ("x/y", "its directory does not exist")] {
            let error = of(name).unwrap_err();
            assert!(error.what.contains(why), "{}", error.what);
        }
    }
}
