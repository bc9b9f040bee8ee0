//! The lives whose histories lie in a folder.

use super::history::{Past, whose};
use super::kept::Kept;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of a folder looked at.
const FILES_MAX: usize = 100_000;

/// The history of this very process, with what it says: whatever the clock said when it was begun, and whatever the
/// process was called then.
pub(super) fn own(folder: &Path, kept: &Kept) -> Option<(PathBuf, Kept)> {
    let ends = format!(".{}.history", kept.pid);
    let paths = files(folder).filter(|(name, _)| name.ends_with(&ends)).map(|(_, path)| path);
    let of_it = paths.filter_map(|path| Some((whose(&path).ok()?, path))).filter(|(there, _)| there.is_of(kept));
    of_it.max_by_key(|(there, _)| there.every_ms == kept.every_ms).map(|(there, path)| (path, there))
}

/// The last life of this name that began earlier, as far as its history is there.
pub(super) fn before(folder: &Path, kept: &Kept) -> Option<Past> {
    let own = kept.plain_name();
    let began = |name: &str| {
        let (rest, _pid) = name.strip_suffix(".history")?.rsplit_once('.')?;
        let (name, started) = rest.rsplit_once('.')?;
        let started: u64 = started.parse().ok()?;
        (name == own && started < kept.started_unix_s).then_some(started)
    };
    let (_, path) = files(folder).filter_map(|(name, path)| Some((began(&name)?, path))).max()?;
    // Windows of another rate of samples are other windows; and other names may look alike as names of files.
    Past::read(&path).ok().filter(|past| (past.kept.every_ms, &past.kept.name) == (kept.every_ms, &kept.name))
}

fn files(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX);
    files.filter_map(|file| Some((file.file_name().into_string().ok()?, file.path())))
}
