//! The charge of file pages. The kernel charges a page of a file to the process that reads it first, as long as the
//! page is in memory. This module drops pages so that the next reader pays, or reads them so that Loadline has paid. It
//! also finds the processes that hold them.

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

/// A page that was not written to the disk yet cannot be dropped. The kernel writes it by itself within 35 s, with its
/// usual settings; a machine tuned for laptops waits longer.
const MAY_BE_DIRTY_S: f64 = 600.0;
/// Read at once.
const READ_BYTES: usize = 1 << 20;
/// More files than any JDK has (500 to 2,000); a folder with more is not followed further.
pub(super) const FILES_MAX: usize = 20_000;
/// Folders within folders; those of a JDK are nested seven deep.
const DEPTH_MAX: usize = 16;
/// File systems that have no other place for a page than memory (`linux/magic.h`): tmpfs, ramfs.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];
/// The bytes that [`probe`] writes: more than one page.
const PROBE_BYTES: usize = 256 << 10;
/// Parts of a JDK that a JVM reads from. In JDK 8 they lie below `jre`.
const READ_BY_JVM: [&str; 6] = ["bin/java", "lib", "conf", "release", "jre/bin/java", "jre/lib"];
/// Parts of a JDK that no JVM reads: material for building images, sources, examples, texts, headers.
pub(super) const NEVER_READ: [&str; 8] = ["jmods", "src.zip", "demo", "sample", "man", "legal", "docs", "include"];

/// The fate of the pages of some files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evicted {
    /// Files whose pages the kernel was asked to drop. It keeps, without a word, those that a process has mapped.
    pub files: u64,
    /// The size of these files, in bytes.
    pub bytes: u64,
    /// Files whose pages cannot be dropped, with the reason.
    pub refused: Vec<(PathBuf, String)>,
}

/// Drops the pages of these files from memory, so that the next reader is charged for them. Skips files that
/// are gone or are not regular files.
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

/// The size of a file whose pages were dropped.
fn evict_one(path: &Path, clock: Clock) -> Result<Option<u64>, String> {
    let Some(file) = open_regular(path).map_err(|cause| plain(&cause))? else { return Ok(None) };
    let metadata = file.metadata().map_err(|cause| plain(&cause))?;
    if lies_in_memory(&file) {
        return Err("it lies in memory (tmpfs), so its pages are charged to whoever wrote it".to_owned());
    }
    // The time of the last change of any kind: unlike that of the content, no program sets it back.
    if clock.unix_s() - (metadata.ctime() as f64) < MAY_BE_DIRTY_S {
        file.sync_data().map_err(|cause| plain(&cause))?;
    }
    drop_pages(&file).map_err(|cause| plain(&cause))?;
    Ok(Some(metadata.len()))
}

/// To the end of the file; pages that are mapped, dirty or locked stay.
fn drop_pages(file: &File) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Opens what is there and a regular file; others, such as a device, might not bear it.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound, Other};
    match bounded::open(path) {
        Ok(file) => Ok(Some(file)),
        // `Other` is what is neither a file nor a folder: no call of the system fails so.
        Err(cause) if matches!(cause.kind(), NotFound | NotADirectory | IsADirectory | Other) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Whether what is open here lies on a file system without a disk.
pub(super) fn lies_in_memory(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|system| IN_MEMORY.contains(&(system.f_type as u32)))
}

/// Reads these files to their ends, so that their pages are in memory. Those that were not before are charged to
/// Loadline; to be charged for all, drop them first. Returns the bytes read.
pub fn read_in(files: &[PathBuf]) -> u64 {
    let mut buffer = vec![0; READ_BYTES];
    files.iter().map(|path| read_one(path, &mut buffer)).sum()
}

/// A file that cannot be read has no pages that a subject of the same user could have in memory.
fn read_one(path: &Path, buffer: &mut [u8]) -> u64 {
    let Ok(Some(file)) = open_regular(path) else { return 0 };
    // A file that grows while it is read, such as a log, has no end.
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

/// The files of a JDK that its JVMs read: libraries, modules, class data, settings. Links are resolved, each file is
/// named once.
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

/// The regular files below the home of a JDK without what no JVM reads, at most [`FILES_MAX`]. Links are followed, but
/// not in circles.
pub(super) fn regular_files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(root, &mut Vec::new(), &mut found);
    found
}

/// `above` are the folders on the way, by device and inode.
fn collect(path: &Path, above: &mut Vec<(u64, u64)>, found: &mut Vec<PathBuf>) {
    // A link to nowhere does not count as a file.
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

/// The processes that have some files mapped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holders {
    /// Processes that have one of them mapped, so that its pages stay, charged to their first reader.
    pub processes: Vec<Process>,
    /// Processes of which that may not be known.
    pub unread: usize,
}

impl Holders {
    /// Whether somebody is known to hold them.
    pub fn are_there(&self) -> bool {
        !self.processes.is_empty()
    }
}

/// The processes but `own` that have one of these files mapped. Only root sees those of all users.
///
/// A file is known by inode and name: `/proc/PID/maps` and `stat` disagree on the device on btrfs and overlayfs, and a
/// path means another file in a container.
pub fn held_by_others(files: &[PathBuf], own: &[u32]) -> Holders {
    let known: HashSet<(u64, String)> = files.iter().filter_map(|file| identity(file)).collect();
    let mut holders = Holders::default();
    let is_known = |mapping: &Mapping| known.contains(&(mapping.inode, mapping.file_name().to_owned()));
    for process in processes::all().into_iter().filter(|process| !own.contains(&process.pid)) {
        match mapping::of(process.pid) {
            Ok(maps) if maps.iter().any(is_known) => holders.processes.push(process),
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => holders.unread += 1,
            // The process holds none of the files, or has ended.
            _ => {}
        }
    }
    holders
}

fn identity(file: &Path) -> Option<(u64, String)> {
    let inode = fs::metadata(file).ok()?.ino();
    Some((inode, file.file_name()?.to_string_lossy().into_owned()))
}

/// Whether pages of files can be dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Eviction {
    /// Yes: the pages of a file of ours were gone afterwards.
    Seen,
    /// The kernel takes the request, but it does not show what came of it.
    NotSeen,
    /// No, with the reason.
    Impossible(String),
}

/// Tries it on a file of our own in this folder.
pub fn probe(folder: &Path) -> Eviction {
    let work = match WorkFolder::create_in(folder) {
        Ok(work) => work,
        Err(error) => return Eviction::Impossible(error.what),
    };
    let tried = probe_in(work.path());
    // A leftover goes at the next start.
    let _ = work.remove();
    tried.unwrap_or_else(|cause| Eviction::Impossible(plain(&cause)))
}

fn probe_in(folder: &Path) -> io::Result<Eviction> {
    let path = folder.join("pages");
    let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
    if lies_in_memory(&file) {
        return Ok(Eviction::Impossible("it lies in memory (tmpfs)".to_owned()));
    }
    file.write_all(&vec![1; PROBE_BYTES])?;
    file.sync_data()?;
    drop_pages(&file)?;
    Ok(match read_from_disk(&path) {
        Some(bytes) if bytes >= PROBE_BYTES as u64 => Eviction::Seen,
        _ => Eviction::NotSeen,
    })
}

/// The bytes that the disk must give while a file is read to its end, which are those that were not in memory. `None`
/// where the kernel does not count them (`read_bytes` of `/proc/PID/io`, man proc_pid_io), or the file is not read.
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

    /// On a disk, if the temporary folder lies on one.
    fn on_disk() -> Option<tempfile::TempDir> {
        let folder = tempfile::tempdir().unwrap();
        let in_memory = lies_in_memory(File::open(folder.path()).unwrap());
        if in_memory {
            skip("LOADLINE_LIMITS", "the temporary folder lies in memory");
        }
        (!in_memory).then_some(folder)
    }

    #[test]
    fn what_was_just_written_is_dropped_and_read_in_again() {
        let Some(folder) = on_disk() else { return };
        let files = [written(folder.path(), "a", PROBE_BYTES), written(folder.path(), "b", 10)];
        let all = PROBE_BYTES as u64;
        let Some(given) = read_from_disk(&files[0]) else {
            return skip("LOADLINE_LIMITS", "the kernel does not count what disks give");
        };
        assert_eq!(given, 0, "what was just written is in memory");
        assert_eq!(evict(&files, Clock::start()), Evicted { files: 2, bytes: all + 10, refused: Vec::new() });
        assert!(read_from_disk(&files[0]).is_some_and(|given| given >= all));
        assert_eq!(evict(&files, Clock::start()).refused, []);
        assert_eq!(read_in(&files), all + 10);
        assert_eq!(read_from_disk(&files[0]), Some(0), "what was read in is in memory");
    }

    #[test]
    fn what_is_gone_or_no_file_is_passed_over_and_a_file_in_memory_is_refused() {
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
            assert_eq!(probe(folder.path()), Eviction::Impossible("it lies in memory (tmpfs)".to_owned()));
        }
    }

    #[test]
    fn a_probe_answers_and_leaves_nothing() {
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
    fn the_files_of_a_jdk_are_what_a_jvm_reads_each_once_without_circles() {
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
    fn this_very_program_is_held_by_us_and_a_new_file_by_nobody() {
        let us = std::process::id();
        let program = std::env::current_exe().unwrap();
        let holders = held_by_others(&[program], &[]);
        assert!(holders.are_there() && holders.processes.iter().any(|process| process.pid == us));
        let folder = tempfile::tempdir().unwrap();
        let holders = held_by_others(&[written(folder.path(), "x", 1), folder.path().join("gone")], &[us]);
        assert!(!holders.are_there(), "{holders:?}");
    }
}
