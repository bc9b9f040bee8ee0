//! Limits the disk space of histories and accounts. Deletes the oldest data first, but data about running JVMs last,
//! whichever watch wrote it: it must survive until after a kill.

use super::account::is_asked;
use super::history::{ASIDE, whose};
use super::kept::Kept;
use super::lives::{files, in_three};
use crate::kernel::machine::boot_id;
use crate::kernel::private_file;
use crate::kernel::process::Stat;
use crate::units::Bytes;
use loadline_base::order::Order as _;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const BLOCK_BYTES: u64 = 512;
/// Sweep the directory after this many turns …
const SWEPT_TURNS: u64 = 360;
/// … or after this many new files: short-lived JVMs leave 12 KiB each.
const SWEPT_FILES: u64 = 64;

/// Schedules sweeps: about once an hour, or more often if JVMs come and go.
#[derive(Debug, Default)]
pub struct Sweeps {
    turns: u64,
    begun: u64,
}

impl Sweeps {
    /// Whether to sweep after this turn, given the number of files created so far.
    pub fn is_due(&mut self, begun: u64) -> bool {
        let is_due = self.turns.is_multiple_of(SWEPT_TURNS) || begun >= self.begun + SWEPT_FILES;
        self.turns += 1;
        if is_due {
            self.begun = begun;
        }
        is_due
    }
}

/// File kinds, in the order in which the files of a life are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileKind {
    Account,
    /// A renamed file that had a history's name.
    Aside,
    History,
}

#[derive(Debug)]
struct WrittenFile {
    kind: FileKind,
    when: SystemTime,
    bytes: u64,
    path: PathBuf,
}

/// Whether a JVM is running, least likely first, which is the order of deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Liveness {
    Ended,
    /// No history shows it, and a process has its pid.
    Unknown,
    Runs,
}

/// Deletes files until the directory takes up at most `most` bytes: first the lives that ended, oldest end first, then
/// accounts of running JVMs, oldest first. Their histories stay, as do files that cannot be deleted. `watched` are
/// histories that the caller writes. Returns the deleted files.
pub fn keep_within(folder: &Path, most: Bytes, watched: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let lives = lives(folder);
    let mut taken: u64 = lives.values().flatten().map(|file| file.bytes).sum();
    let mut removed = Vec::new();
    if taken <= most.0 {
        return removed;
    }
    for file in in_order(folder, lives, watched) {
        if taken <= most.0 {
            break;
        }
        if fs::remove_file(&file.path).is_ok() {
            taken -= file.bytes;
            removed.push(file.path);
        }
    }
    removed
}

/// The files of each life, by file name stem.
fn lives(folder: &Path) -> BTreeMap<String, Vec<WrittenFile>> {
    let mut lives: BTreeMap<String, Vec<WrittenFile>> = BTreeMap::new();
    for (name, entry) in files(folder) {
        let Some((stem, kind)) = stem(&name) else { continue };
        // For a renamed symbolic link, deletes the link itself.
        let Some(about) = entry.metadata().ok().filter(|about| !about.is_dir()) else { continue };
        let when = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let file = WrittenFile { kind, when, bytes: about.blocks() * BLOCK_BYTES, path: entry.path() };
        lives.entry(stem.to_owned()).or_default().push(file);
    }
    lives
}

fn stem(name: &str) -> Option<(&str, FileKind)> {
    if let Some(stem) = name.strip_suffix(".history") {
        return Some((stem, FileKind::History));
    }
    if let Some((stem, _)) = name.split_once(".history").filter(|(_, rest)| rest.starts_with(ASIDE)) {
        return Some((stem, FileKind::Aside));
    }
    // `.part` is an incomplete account of a killed watch.
    let of = name.strip_suffix(".account.json").or_else(|| name.strip_suffix(".account.part"))?;
    let (stem, _age, _why) = in_three(of)?;
    Some((stem, FileKind::Account))
}

/// The files that may be deleted, in order of deletion.
fn in_order(folder: &Path, lives: BTreeMap<String, Vec<WrittenFile>>, watched: &BTreeSet<PathBuf>) -> Vec<WrittenFile> {
    let boot = boot_id();
    let (mut ended, mut running) = (Vec::new(), Vec::new());
    for (stem, mut files) in lives {
        files.order_by_key(|file| (file.kind, file.when));
        match state(&folder.join(format!("{stem}.history")), &stem, watched, boot.as_deref()) {
            Liveness::Runs => {
                files.retain(|file| file.kind != FileKind::History);
                // The last account may be the one before the kill, and without any account, a watch would attach again.
                let last = files.iter().rposition(|file| file.kind == FileKind::Account);
                let spared = |(at, file): (usize, WrittenFile)| (Some(at) == last || is_asked(&file.path), file);
                running.extend(files.into_iter().enumerate().map(spared));
            }
            state => {
                let last = files.iter().map(|file| file.when).max();
                ended.push((state, last, files));
            }
        }
    }
    ended.order_by_key(|(state, last, _)| (*state, *last));
    running.order_by_key(|(is_spared, file)| (*is_spared, file.when));
    ended.into_iter().flat_map(|(.., files)| files).chain(running.into_iter().map(|(_, file)| file)).collect()
}

fn state(history: &Path, stem: &str, watched: &BTreeSet<PathBuf>, boot: Option<&str>) -> Liveness {
    if watched.contains(history) {
        return Liveness::Runs;
    }
    let process = |pid: u32| Stat::of(pid).filter(Stat::lives);
    match whose(history) {
        Ok(kept) => {
            let now = process(kept.pid).map(|stat| Kept {
                pid: kept.pid,
                started_ticks: stat.start_ticks,
                boot_id: boot.map(str::to_owned),
                ..Kept::default()
            });
            let runs = now.is_some_and(|now| kept.is_of(&now));
            // Another watch that shares the directory may see processes that are invisible here.
            if runs || is_written(history) { Liveness::Runs } else { Liveness::Ended }
        }
        Err(_) => {
            let pid = stem.rsplit_once('.').and_then(|(_, pid)| pid.parse().ok());
            if pid.and_then(process).is_some() { Liveness::Unknown } else { Liveness::Ended }
        }
    }
}

fn is_written(history: &Path) -> bool {
    let Ok(file) = private_file::open(history) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use super::super::history::History;
    use super::*;
    use std::time::Duration;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// Creates a file with this modification time, in seconds since the epoch.
        fn written(&self, name: &str, when_s: u64) {
            fs::write(self.at(name), vec![1; 8192]).unwrap();
            self.last_written(name, when_s);
        }

        fn last_written(&self, name: &str, when_s: u64) {
            let when = SystemTime::UNIX_EPOCH + Duration::from_secs(when_s);
            fs::File::options().write(true).open(self.at(name)).unwrap().set_modified(when).unwrap();
        }

        /// Creates a history of a process with this pid, still open for writing.
        fn history(&self, name: &str, pid: u32, started_ticks: u64) -> History {
            let kept = Kept { pid, started_ticks, every_ms: 10_000, boot_id: boot_id(), ..Kept::default() };
            History::open(&self.at(name), &kept).unwrap()
        }

        /// The names of the files deleted to keep within this many bytes.
        fn removed(&self, most: u64, watched: &[&str]) -> Vec<String> {
            let watched = watched.iter().map(|name| self.at(name)).collect();
            let removed = keep_within(self.0.path(), Bytes(most), &watched);
            removed.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        }
    }

    #[test]
    fn the_directory_is_cleaned_every_hour_or_64_files() {
        let mut sweeps = Sweeps::default();
        let swept = |sweeps: &mut Sweeps, turns: u64, begun: &dyn Fn(u64) -> u64| {
            (0..turns).filter(|turn| sweeps.is_due(begun(*turn))).collect::<Vec<_>>()
        };
        assert_eq!(swept(&mut sweeps, 721, &|_| 63), [0, 360, 720], "without new JVMs, only hourly sweeps are due");
        // With ten new JVMs per turn, the directory exceeds its limit by at most 70 files.
        assert_eq!(swept(&mut sweeps, 30, &|turn| 63 + 10 * turn), [7, 14, 21, 28]);
        assert_eq!(swept(&mut sweeps, 3, &|_| 63 + 280 + 63), [0; 0]);
        assert_eq!(swept(&mut sweeps, 3, &|_| 63 + 280 + 400), [0], "many new files cause a single sweep");
    }

    /// Larger than any pid the kernel assigns.
    const NONE: u32 = 1 << 30;

    #[test]
    fn the_life_that_ended_first_is_deleted_first_with_its_files() {
        let folder = Folder::new();
        // An account of the life that ended later is the oldest file.
        folder.written(&format!("b.1.{NONE}.0000001.66-percent.account.json"), 500);
        folder.written(&format!("b.1.{NONE}.history"), 3000);
        folder.written(&format!("a.1.{NONE}.0000009.90-percent.account.json"), 900);
        folder.written(&format!("a.1.{NONE}.0000001.66-percent.account.part"), 800);
        folder.written(&format!("a.1.{NONE}.history"), 1000);
        folder.written("notes.txt", 1);
        folder.written("notes.account.json", 1);
        assert_eq!(folder.removed(1 << 20, &[]), [""; 0]);
        let account = format!("a.1.{NONE}.0000001.66-percent.account.part");
        assert_eq!(folder.removed(4 * 8192, &[]), [account], "only as many files as necessary are removed");
        let rest = folder.removed(0, &[]);
        let begins: Vec<&str> = rest.iter().map(|name| &name[..1]).collect();
        assert_eq!(begins, ["a", "a", "b", "b"], "{rest:?}");
        assert!(rest[1].ends_with(".history") && rest[3].ends_with(".history"), "{rest:?}");
        assert!(folder.at("notes.txt").exists() && folder.at("notes.account.json").exists());
    }

    #[test]
    fn files_of_running_jvms_are_deleted_last() {
        let folder = Folder::new();
        let own = std::process::id();
        let ticks = Stat::of(own).unwrap().start_ticks;
        // Watched by the caller; running but not watched; by a watch that sees other processes; ended.
        drop(folder.history(&format!("mine.1.{NONE}.history"), NONE, 1));
        drop(folder.history(&format!("runs.1.{own}.history"), own, ticks));
        let elsewhere = folder.history("other.1.7.history", NONE, 3);
        drop(folder.history("reused.1.1.history", own, ticks + 1));
        let accounts = ["mine.1.1073741824", &format!("runs.1.{own}"), "other.1.7", "reused.1.1"];
        for (at, stem) in accounts.into_iter().enumerate() {
            folder.written(&format!("{stem}.0000001.asked.account.json"), 1 + at as u64);
            folder.written(&format!("{stem}.0000002.66-percent.account.json"), 11 + at as u64);
            folder.written(&format!("{stem}.0000003.90-percent.account.json"), 21 + at as u64);
            folder.last_written(&format!("{stem}.history"), 31);
        }
        let mine = format!("mine.1.{NONE}.history");
        let gone = folder.removed(0, &[&mine]);
        let of_ended = gone.iter().take_while(|name| name.starts_with("reused")).count();
        assert_eq!(of_ended, 4, "{gone:?}");
        let running: Vec<&str> = gone[4..].iter().map(|name| name.split('.').nth_back(2).unwrap()).collect();
        let (first, last) = (["66-percent"; 3], ["asked", "asked", "asked", "90-percent", "90-percent", "90-percent"]);
        assert_eq!(running, [&first[..], &last[..]].concat(), "{gone:?}");
        for name in [mine, format!("runs.1.{own}.history"), "other.1.7.history".to_owned()] {
            assert!(folder.at(&name).exists(), "{name} belongs to a running JVM");
        }
        drop(elsewhere);
        assert_eq!(folder.removed(0, &[&format!("mine.1.{NONE}.history")]), ["other.1.7.history"]);
    }

    #[test]
    fn files_without_a_history_are_deleted_before_running_jvms_files() {
        let folder = Folder::new();
        let own = std::process::id();
        folder.written(&format!("shop.1.{own}.0000001.asked.account.json"), 1);
        folder.written(&format!("shop.1.{own}.history"), 1);
        folder.written(&format!("shop.1.{own}.history.aside-1"), 1);
        folder.written(&format!("bank.1.{NONE}.history"), 9);
        let gone = folder.removed(0, &[]);
        assert_eq!(gone.len(), 4);
        assert!(gone[0].starts_with("bank") && gone[3] == format!("shop.1.{own}.history"), "{gone:?}");
    }
}
