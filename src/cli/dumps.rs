//! The path of a heap dump: a file that is not there yet, named from where the JVM can find it.

use crate::error::{Error, Result};
use crate::scenario::Inside;
use std::path::{Path, PathBuf};

/// Returns the request with the file of a dump as an absolute path.
///
/// # Errors
/// `Request` where the file is there already, or its folder is not.
pub(super) fn new_dump(mut asked: Inside) -> Result<Inside> {
    asked.heap_dump = asked.heap_dump.as_deref().map(new_file).transpose()?;
    Ok(asked)
}

/// As [`new_dump`], of the file alone.
pub(super) fn new_file(file: &Path) -> Result<PathBuf> {
    let shown = file.display();
    let refuse = |why: String| Error::request(format!("the heap dump cannot go to {shown}: {why}"));
    let path = std::path::absolute(file).map_err(|cause| refuse(crate::error::plain(&cause)))?;
    if path.symlink_metadata().is_ok() {
        return Err(refuse("it is there already".to_owned()).hint("name a new file; none is overwritten"));
    }
    match path.parent() {
        Some(folder) if folder.is_dir() => Ok(path),
        _ => Err(refuse("its folder is not there".to_owned()).hint("make the folder first")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_new_file_in_a_folder_takes_a_dump() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| new_file(&folder.path().join(name));
        assert_eq!(of("a.hprof").unwrap(), folder.path().join("a.hprof"));
        std::fs::write(folder.path().join("b"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("c")).unwrap();
        for (name, why) in [("b", "is there already"), ("c", "is there already"), ("x/y", "its folder is not there")] {
            let error = of(name).unwrap_err();
            assert!(error.what.contains(why), "{}", error.what);
        }
    }
}
