//! What histories and accounts may take on the disk.

use crate::units::Bytes;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files of a folder looked at.
const FILES_MAX: usize = 100_000;
const BLOCK_BYTES: u64 = 512;

/// Removes the files of lives that ended, those written longest ago first, until the folder takes no more than `most`;
/// what is written now (`live`) stays. What cannot be removed stays as well. Returns what was removed.
pub fn keep_within(folder: &Path, most: Bytes, live: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX);
    let ours =
        |path: &Path| path.to_str().is_some_and(|path| path.ends_with(".history") || path.ends_with(".account.json"));
    let file = |entry: fs::DirEntry| {
        let (path, about) = (entry.path(), entry.metadata().ok()?);
        (about.is_file() && ours(&path))
            .then(|| (about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.blocks(), path))
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries.filter_map(file).collect();
    files.sort();
    let mut taken: u64 = files.iter().map(|(_, blocks, _)| blocks * BLOCK_BYTES).sum();
    let mut removed = Vec::new();
    for (_, blocks, path) in files.into_iter().filter(|(.., path)| !live.contains(path)) {
        if taken <= most.0 {
            break;
        }
        if fs::remove_file(&path).is_ok() {
            taken -= blocks * BLOCK_BYTES;
            removed.push(path);
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_what_is_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (age, name) in ["c.history", "b.account.json", "a.history", "notes.txt"].into_iter().enumerate() {
            fs::write(at(name), vec![1; 8192]).unwrap();
            let when = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000 + age as u64);
            fs::File::open(at(name)).unwrap().set_modified(when).unwrap();
        }
        let live = BTreeSet::from([at("c.history")]);
        assert_eq!(keep_within(folder.path(), Bytes(1 << 20), &live), Vec::<PathBuf>::new());
        assert_eq!(keep_within(folder.path(), Bytes(16_384), &live), [at("b.account.json")]);
        assert_eq!(keep_within(folder.path(), Bytes(0), &live), [at("a.history")]);
        assert!(at("notes.txt").exists() && at("c.history").exists(), "what is not ours, and what is written");
    }
}
