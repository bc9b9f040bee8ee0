//! Finds lives with histories in a directory, which is read once for all new JVMs.

use super::history::{Past, whose};
use super::kept::Kept;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of files to read in a directory.
const FILES_MAX: usize = 100_000;

/// Finds each process's existing history, with its description. The clock and the process's name may have been
/// different when it was created.
pub(super) fn own(folder: &Path, of: &[&Kept]) -> Vec<Option<(PathBuf, Kept)>> {
    let mut own: Vec<Option<(PathBuf, Kept)>> = of.iter().map(|_| None).collect();
    let places: HashMap<u32, usize> = of.iter().enumerate().map(|(place, kept)| (kept.pid, place)).collect();
    for (name, file) in files(folder) {
        let Some(place) = parts(&name).and_then(|(.., pid)| places.get(&pid.parse().ok()?)) else { continue };
        let (kept, found, path) = (of[*place], &mut own[*place], file.path());
        let there = whose(&path).ok().filter(|there| there.is_of(kept));
        // Prefers one with the same sampling rate.
        let is_better = |there: &Kept| found.is_none() || there.every_ms == kept.every_ms;
        if let Some(there) = there.filter(is_better) {
            *found = Some((path, there));
        }
    }
    own
}

/// Applies `of_past` to the previous life of each name; `None` if that has no history.
pub(super) fn before<T>(folder: &Path, of: &[&Kept], of_past: impl Fn(&Past) -> T) -> Vec<Option<T>> {
    let mut last: Vec<Option<(u64, PathBuf)>> = of.iter().map(|_| None).collect();
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    of.iter().enumerate().for_each(|(place, kept)| places.entry(kept.plain_name()).or_default().push(place));
    for (name, file) in files(folder) {
        let Some((name, started, _)) = parts(&name) else { continue };
        let Ok(started) = started.parse::<u64>() else { continue };
        let path = file.path();
        for place in places.get(name).into_iter().flatten() {
            let is_later = last[*place].as_ref().is_none_or(|(known, at)| (*known, at) < (started, &path));
            if started < of[*place].started_unix_s && is_later {
                last[*place] = Some((started, path.clone()));
            }
        }
    }
    let past = |(last, kept): (Option<(u64, PathBuf)>, &&Kept)| {
        let past = Past::read(&last?.1).ok()?;
        // A different sampling rate has other windows, and different names can have the same file name.
        let is_its_own = (past.kept.every_ms, &past.kept.name) == (kept.every_ms, &kept.name);
        is_its_own.then(|| of_past(&past))
    };
    last.into_iter().zip(of).map(past).collect()
}

/// The histories of other lives with this name.
pub(super) fn of_name(kept: &Kept, own: &Path) -> Vec<PathBuf> {
    let folder = own.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_like = |name: &str| parts(name).is_some_and(|(plain, ..)| plain == kept.plain_name());
    let like = files(folder).filter(|(name, _)| is_like(name)).map(|(_, file)| file.path());
    // Different names can have the same file name.
    like.filter(|path| path.file_name() != own.file_name() && whose(path).is_ok_and(|of| of.name == kept.name))
        .collect()
}

/// Name, start, and pid in `NAME.START.PID.history`.
fn parts(file: &str) -> Option<(&str, &str, &str)> {
    in_three(file.strip_suffix(".history")?)
}

/// Splits `a.b.1.2` into `a.b`, `1`, and `2`.
pub(super) fn in_three(name: &str) -> Option<(&str, &str, &str)> {
    let (rest, last) = name.rsplit_once('.')?;
    let (first, middle) = rest.rsplit_once('.')?;
    Some((first, middle, last))
}

pub(super) fn files(folder: &Path) -> impl Iterator<Item = (String, fs::DirEntry)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX);
    files.filter_map(|file| Some((file.file_name().into_string().ok()?, file)))
}
