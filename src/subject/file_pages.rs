//! Controls which cgroup pays for file pages. The kernel charges a page to its first reader for as long as it stays in
//! memory. This module drops pages so that the next reader pays, or reads them so that Loadline pays. It also finds the
//! processes that hold them.

use super::processes::{self, Process};
use super::work_folder::WorkFolder;
use crate::bounded;
use crate::clock::Clock;
use crate::error::plain;
use crate::kernel::mapping::{self, Mapping};
use rustix::fs::{Advice, fadvise, fstatfs};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Dirty pages cannot be dropped. The kernel writes them within 35 s by default; laptop settings take longer.
const MAY_BE_DIRTY_S: f64 = 600.0;
const READ_BYTES: usize = 1 << 20;
/// More files than any JDK has (500 to 2,000); a larger directory is not scanned further.
pub(super) const FILES_MAX: usize = 20_000;
/// Maximum directory depth; a JDK's is seven.
const DEPTH_MAX: usize = 16;
/// File systems whose pages exist only in memory (`linux/magic.h`): tmpfs, ramfs.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];
/// Bytes written by [`probe`]: more than one page.
const PROBE_BYTES: usize = 256 << 10;
/// Parts of a JDK that a JVM reads. In JDK 8 they are below `jre`.
const READ_BY_JVM: [&str; 6] = ["bin/java", "lib", "conf", "release", "jre/bin/java", "jre/lib"];
/// Parts of a JDK that no JVM reads: jmods, sources, examples, text files, headers.
pub(super) const NEVER_READ: [&str; 8] = ["jmods", "src.zip", "demo", "sample", "man", "legal", "docs", "include"];

/// The result of dropping the pages of some files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evicted {
    /// Files whose pages the kernel was asked to drop. It silently keeps mapped pages.
    pub files: u64,
    /// The total size of these files, in bytes.
    pub bytes: u64,
    /// Files whose pages cannot be dropped, each with its reason.
    pub refused: Vec<(PathBuf, String)>,
}

/// Drops these files' pages from memory, so that the next reader is charged for them. Skips missing and nonregular
/// files.
pub fn evict(files: &[PathBuf], clock: Clock) -> Evicted {
    let mut evicted = Evicted::default();
    for path in files {
        match evict_one(path, clock) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                evicted.files += 1;
                evicted.bytes += bytes;
            }
            Err(why) => evicted.refused.push((path.clone(), why)),
        }
    }
    evicted
}

/// Drops one file's pages; returns its size.
fn evict_one(path: &Path, clock: Clock) -> Result<Option<u64>, String> {
    let Some(file) = open_regular(path).map_err(|cause| plain(&cause))? else { return Ok(None) };
    let metadata = file.metadata().map_err(|cause| plain(&cause))?;
    if lies_in_memory(&file) {
        return Err("it is in memory (tmpfs), so its pages are charged to the process that wrote it".to_owned());
    }
    // Uses ctime because programs can set mtime back.
    if clock.unix_s() - (metadata.ctime() as f64) < MAY_BE_DIRTY_S {
        file.sync_data().map_err(|cause| plain(&cause))?;
    }
    drop_pages(&file).map_err(|cause| plain(&cause))?;
    Ok(Some(metadata.len()))
}

/// Drops all of a file's pages except mapped, dirty, and locked ones.
fn drop_pages(file: &File) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Opens only regular files: opening a device, for example, could have side effects.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound, Other};
    match bounded::open(path) {
        Ok(file) => Ok(Some(file)),
        // `Other` means neither file nor directory; no system call returns it.
        Err(cause) if matches!(cause.kind(), NotFound | NotADirectory | IsADirectory | Other) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Whether this open file is on a file system without a disk.
pub(super) fn lies_in_memory(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|system| IN_MEMORY.contains(&(system.f_type as u32)))
}

/// Reads these files completely, so that their pages are in memory. Loadline is charged only for pages that were not in
/// memory before; drop them first to pay for all. Returns the bytes read.
pub fn read_in(files: &[PathBuf]) -> u64 {
    let mut buffer = vec![0; READ_BYTES];
    files.iter().map(|path| read_one(path, &mut buffer)).sum()
}

/// An unreadable file has no pages that a subject of the same user could share.
fn read_one(path: &Path, buffer: &mut [u8]) -> u64 {
    let Ok(Some(file)) = open_regular(path) else { return 0 };
    // Limits the read if a file grows in the meantime, such as a log.
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut rest = file.take(length);
    let mut read = 0;
    loop {
        match rest.read(buffer) {
            Ok(0) => return read,
            Ok(bytes) => read += bytes as u64,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return read,
        }
    }
}

/// The files that a JDK's JVMs read: libraries, modules, class data, settings. Links are resolved, without duplicates.
pub fn of_jdk(home: &Path) -> Vec<PathBuf> {
    let is_read = |file: &PathBuf| {
        file.strip_prefix(home).is_ok_and(|name| READ_BY_JVM.iter().any(|part| name.starts_with(part)))
    };
    let found = regular_files(home).into_iter().filter(is_read);
    let mut files: Vec<PathBuf> = found.filter_map(|file| file.canonicalize().ok()).collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// Up to [`FILES_MAX`] regular files in a JDK that a JVM may read. Follows links, but not cycles.
pub(super) fn regular_files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(root, &mut Vec::new(), &mut found);
    found
}

/// `above` contains the enclosing directories by device and inode.
fn collect(path: &Path, above: &mut Vec<(u64, u64)>, found: &mut Vec<PathBuf>) {
    // Skips dangling links.
    let Ok(metadata) = fs::metadata(path) else { return };
    if metadata.is_file() {
        found.push(path.to_path_buf());
    }
    let this = (metadata.dev(), metadata.ino());
    if !metadata.is_dir() || above.len() >= DEPTH_MAX || above.contains(&this) {
        return;
    }
    let mut entries: Vec<_> = fs::read_dir(path).into_iter().flatten().flatten().collect();
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    above.push(this);
    for entry in entries.iter().filter(|entry| !NEVER_READ.iter().any(|name| entry.file_name() == *name)) {
        if found.len() >= FILES_MAX {
            break;
        }
        collect(&entry.path(), above, found);
    }
    above.pop();
}

/// The processes that map some files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holders {
    /// Processes that map a file, so its pages stay charged to their first reader.
    pub processes: Vec<Process>,
    /// Processes whose mappings may be unknown.
    pub unread: usize,
}

impl Holders {
    /// Whether any process is known to hold the files.
    pub fn are_there(&self) -> bool {
        !self.processes.is_empty()
    }
}

/// Processes other than `own` that map one of these files. Only root sees those of all users.
///
/// Compares inode and name, because `/proc/PID/maps` and `stat` disagree on the device on btrfs and overlayfs, and a
/// path means a different file in a container.
pub fn held_by_others(files: &[PathBuf], own: &[u32]) -> Holders {
    let known: HashSet<(u64, String)> = files.iter().filter_map(|file| identity(file)).collect();
    let mut holders = Holders::default();
    let is_known = |mapping: &Mapping| known.contains(&(mapping.inode, mapping.file_name().to_owned()));
    for process in processes::all().into_iter().filter(|process| !own.contains(&process.pid)) {
        match mapping::of(process.pid) {
            Ok(maps) if maps.iter().any(is_known) => holders.processes.push(process),
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => holders.unread += 1,
            // The process maps none of the files, or has ended.
            _ => {}
        }
    }
    holders
}

fn identity(file: &Path) -> Option<(u64, String)> {
    let inode = fs::metadata(file).ok()?.ino();
    Some((inode, file.file_name()?.to_string_lossy().into_owned()))
}

/// Whether file pages can be dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Eviction {
    /// Yes: the test file's pages were gone afterward.
    Seen,
    /// The kernel accepts the request but shows no effect.
    NotSeen,
    /// No, for this reason.
    Impossible(String),
}

/// Tests dropping with a temporary file in this directory.
pub fn probe(folder: &Path) -> Eviction {
    let work = match WorkFolder::create_in(folder) {
        Ok(work) => work,
        Err(error) => return Eviction::Impossible(error.what),
    };
    let tried = probe_in(work.path());
    // The next start removes leftovers.
    let _ = work.remove();
    tried.unwrap_or_else(|cause| Eviction::Impossible(plain(&cause)))
}

fn probe_in(folder: &Path) -> io::Result<Eviction> {
    let path = folder.join("pages");
    let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
    if lies_in_memory(&file) {
        return Ok(Eviction::Impossible("it is in memory (tmpfs)".to_owned()));
    }
    file.write_all(&vec![1; PROBE_BYTES])?;
    file.sync_data()?;
    drop_pages(&file)?;
    Ok(match read_from_disk(&path) {
        Some(bytes) if bytes >= PROBE_BYTES as u64 => Eviction::Seen,
        _ => Eviction::NotSeen,
    })
}

/// Reads a file and returns the bytes that came from disk. `None` if the kernel does not count them (`read_bytes` in
/// `/proc/PID/io`, man proc_pid_io), or if the read fails.
fn read_from_disk(path: &Path) -> Option<u64> {
    let given = || {
        let counters = fs::read_to_string("/proc/thread-self/io").ok()?;
        counters.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse::<u64>().ok())
    };
    let before = given()?;
    let read = read_one(path, &mut vec![0; READ_BYTES]);
    let after = given()?;
    (read > 0).then_some(after.saturating_sub(before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_test_support::{skip, write};
    use std::os::unix::fs::symlink;

    fn written(folder: &Path, name: &str, bytes: usize) -> PathBuf {
        let path = folder.join(name);
        write(&path, vec![1; bytes]);
        path
    }

    /// A directory on disk, if the temporary directory is.
    fn on_disk() -> Option<tempfile::TempDir> {
        let folder = tempfile::tempdir().unwrap();
        let in_memory = lies_in_memory(File::open(folder.path()).unwrap());
        if in_memory {
            skip("LOADLINE_LIMITS", "the temporary directory is in memory");
        }
        (!in_memory).then_some(folder)
    }

    #[test]
    fn recently_written_pages_are_dropped_and_read_again() {
        let Some(folder) = on_disk() else { return };
        let files = [written(folder.path(), "a", PROBE_BYTES), written(folder.path(), "b", 10)];
        let all = PROBE_BYTES as u64;
        let Some(given) = read_from_disk(&files[0]) else {
            return skip("LOADLINE_LIMITS", "the kernel does not count reads from disks");
        };
        assert_eq!(given, 0, "recently written pages need no reads from disk");
        assert_eq!(evict(&files, Clock::start()), Evicted { files: 2, bytes: all + 10, refused: Vec::new() });
        assert!(read_from_disk(&files[0]).is_some_and(|given| given >= all));
        assert_eq!(evict(&files, Clock::start()).refused, []);
        assert_eq!(read_in(&files), all + 10);
        assert_eq!(read_from_disk(&files[0]), Some(0), "pages that were read are in memory");
    }

    #[test]
    fn missing_and_special_files_are_skipped_and_memory_files_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        let file = written(folder.path(), "file", 1);
        let files = [folder.path().join("gone"), file.join("below"), folder.path().to_path_buf(), pipe];
        let clock = Clock::start();
        assert_eq!((evict(&files, clock), read_in(&files)), (Evicted::default(), 0));
        let shared = Path::new("/dev/shm");
        if let Ok(folder) = tempfile::tempdir_in(shared)
            && lies_in_memory(File::open(folder.path()).unwrap())
        {
            let evicted = evict(&[written(folder.path(), "x", 1)], clock);
            assert_eq!((evicted.files, evicted.refused.len()), (0, 1));
            assert_eq!(probe(folder.path()), Eviction::Impossible("it is in memory (tmpfs)".to_owned()));
        }
    }

    #[test]
    fn an_eviction_probe_has_a_result_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        match probe(folder.path()) {
            Eviction::Impossible(why) => assert!(on_disk().is_none(), "{why}"),
            answer => println!("{answer:?}"),
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(
            matches!(probe(&folder.path().join("gone")), Eviction::Impossible(why) if why.starts_with("cannot create"))
        );
    }

    #[test]
    fn jdk_files_are_listed_once_without_following_cycles() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let home = root.join("jdk");
        let inside = ["bin/java", "lib/modules", "lib/server/libjvm.so", "conf/net.properties", "release"];
        let outside = ["bin/javac", "lib/src.zip", "jmods/java.base.jmod", "man/x", "include/jni.h", "README"];
        for name in inside.iter().chain(&outside) {
            written(&home, name, 1);
        }
        let settings = written(&root, "etc/jvm.cfg", 1);
        symlink("../../etc/jvm.cfg", home.join("lib/jvm.cfg")).unwrap();
        symlink("modules", home.join("lib/again")).unwrap();
        symlink("..", home.join("lib/circle")).unwrap();
        symlink("nowhere", home.join("lib/broken")).unwrap();
        let mut expect: Vec<PathBuf> = inside.iter().map(|name| home.join(name)).chain([settings]).collect();
        expect.sort_unstable();
        assert_eq!(of_jdk(&home), expect);
        assert_eq!(of_jdk(&root.join("none")), Vec::<PathBuf>::new());
    }

    #[test]
    fn our_executable_is_held_by_us_and_a_new_file_by_no_process() {
        let us = std::process::id();
        let program = std::env::current_exe().unwrap();
        let holders = held_by_others(&[program], &[]);
        assert!(holders.are_there() && holders.processes.iter().any(|process| process.pid == us));
        let folder = tempfile::tempdir().unwrap();
        let holders = held_by_others(&[written(folder.path(), "x", 1), folder.path().join("gone")], &[us]);
        assert!(!holders.are_there(), "{holders:?}");
    }
}
