//! A private copy of a JDK. While any process maps a page of a JDK, that page stays in memory, charged to its first
//! reader, and cannot be dropped. The copy's pages can be dropped between trials.

use super::file_pages::{self, FILES_MAX};
use super::jdk::FoundJdk;
use super::work_folder::{self, WorkFolder};
use crate::clock::Clock;
use crate::error::{Error, Result, plain};
use crate::units::Bytes;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes to leave free on the disk after the copy, because archives may share it.
const LEFT_FREE: Bytes = Bytes::mib(64);
/// Files occupy whole blocks.
const BLOCK: u64 = 4096;

/// A copy of a JDK in its own directory, removed on drop. The next start removes the copy of a killed Loadline.
#[derive(Debug)]
pub struct PrivateJdk {
    /// Removes the copy on drop.
    _folder: WorkFolder,
    /// The copy as a regular JDK.
    pub jdk: FoundJdk,
    /// All files of the copy.
    pub files: Vec<PathBuf>,
}

impl PrivateJdk {
    /// Copies a JDK, without files that no JVM reads, into the first of these directories that is on disk, has enough
    /// space, and allows execution. Afterward, all of it is on disk and none in memory. Removes leftovers in these
    /// directories. Errors: `Machine` if no directory is suitable, with the reason for each, or if the copy fails;
    /// `Interrupted`.
    pub fn copy(jdk: &FoundJdk, places: &[PathBuf], clock: Clock, interrupted: &dyn Fn() -> bool) -> Result<Self> {
        let files = wanted_files(&jdk.home)?;
        for place in places {
            // Leftovers only take space; the start of each search reports them.
            work_folder::sweep_in(place);
        }
        let bytes = Bytes(files.iter().map(|file| file.bytes.div_ceil(BLOCK) * BLOCK).sum());
        let folder = room(jdk, bytes, places)?;
        let name = jdk.home.file_name().unwrap_or("jdk".as_ref());
        let home = folder.path().join(name);
        let mut copied = Vec::with_capacity(files.len());
        for file in &files {
            if interrupted() {
                return Err(Error::interrupted());
            }
            let target = home.join(&file.name);
            file.copy_to(&target).map_err(|cause| failed(jdk, &file.source, &cause))?;
            copied.push(target);
        }
        let java = home.join(jdk.java.strip_prefix(&jdk.home).unwrap_or("bin/java".as_ref()));
        let jdk = FoundJdk { java, home, ..jdk.clone() };
        let private = Self { _folder: folder, jdk, files: copied };
        // The files were just written, so `evict` also flushes them to disk.
        match file_pages::evict(&private.files, clock).refused.first() {
            Some((file, why)) => Err(Error::machine(format!("cannot write {} to disk: {why}", file.display()))),
            None => Ok(private),
        }
    }

    /// The copy's directory: `JAVA_HOME`.
    pub fn home(&self) -> &Path {
        &self.jdk.home
    }
}

/// Directories for a copy, best first: the one where the next start looks for leftovers, then the archive's, if any.
pub(crate) fn places(archive: Option<&Path>) -> Vec<PathBuf> {
    let absolute = |path: &Path| std::path::absolute(path).ok();
    let beside = archive.and_then(absolute).and_then(|archive| archive.parent().map(Path::to_path_buf));
    let mut places = work_folder::usual_parents();
    places.extend(beside.filter(|beside| !places.contains(beside)));
    places
}

struct JdkFile {
    /// Relative to the home.
    name: PathBuf,
    source: PathBuf,
    bytes: u64,
}

impl JdkFile {
    /// Copies content, permissions, and modification time, following links: the JVM rejects a class data archive if its
    /// source files look changed.
    fn copy_to(&self, target: &Path) -> io::Result<()> {
        if let Some(folder) = target.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut from = File::open(&self.source)?;
        let metadata = from.metadata()?;
        let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
        io::copy(&mut from, &mut to)?;
        to.set_times(FileTimes::new().set_modified(metadata.modified()?))?;
        to.set_permissions(Permissions::from_mode((metadata.mode() & 0o777) | 0o400))
    }
}

/// All regular files of a JDK, except those that no JVM reads.
fn wanted_files(home: &Path) -> Result<Vec<JdkFile>> {
    let unreadable = |cause: io::Error| Error::io("read", home, &cause);
    fs::read_dir(home).map_err(unreadable)?;
    let sources = file_pages::regular_files(home);
    if sources.len() >= FILES_MAX {
        let what = format!("{} has {FILES_MAX} files or more, too many for a JDK to copy", home.display());
        return Err(Error::machine(what).hint("specify a directory that contains only a JDK: `--jdk /path/to/jdk`"));
    }
    let wanted = |source: PathBuf| {
        let bytes = fs::metadata(&source)?.len();
        let name = source.strip_prefix(home).unwrap_or(&source).to_path_buf();
        Ok(JdkFile { name, source, bytes })
    };
    sources.into_iter().map(wanted).collect::<io::Result<_>>().map_err(unreadable)
}

/// A new directory with room for this many bytes.
fn room(jdk: &FoundJdk, bytes: Bytes, places: &[PathBuf]) -> Result<WorkFolder> {
    let mut refusals = Vec::new();
    for place in places {
        let made = fitting(place, bytes).and_then(|place| WorkFolder::create_in(&place).map_err(|error| error.what));
        match made {
            Ok(folder) => return Ok(folder),
            Err(why) => refusals.push(format!("{}: {why}", place.display())),
        }
    }
    let needed = Bytes(bytes.0 + LEFT_FREE.0);
    let error =
        Error::machine(format!("no directory has room for a private copy of JDK {}: it needs {needed}", jdk.release))
            .at("another process has this JDK's file pages in memory, so an accurate limit needs a copy of it");
    Err(refusals.into_iter().fold(error, Error::at).hint(format!(
        "stop the other JVMs that use {}, or set TMPDIR to a directory with enough room on a disk",
        jdk.home.display()
    )))
}

/// The directory with links resolved, or the reason why it is unsuitable.
fn fitting(place: &Path, bytes: Bytes) -> Result<PathBuf, String> {
    let place = place.canonicalize().map_err(|cause| plain(&cause))?;
    let folder = File::open(&place).map_err(|cause| plain(&cause))?;
    if file_pages::lies_in_memory(&folder) {
        return Err("it is in memory (tmpfs), not on a disk".to_owned());
    }
    let system = statvfs(&place).map_err(|cause| plain(&cause.into()))?;
    if system.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err("it is mounted noexec".to_owned());
    }
    let free = Bytes(system.f_bavail.saturating_mul(system.f_frsize));
    match free.0.checked_sub(bytes.0) {
        Some(left) if left >= LEFT_FREE.0 => Ok(place),
        _ => Err(format!("only {free} are free")),
    }
}

fn failed(jdk: &FoundJdk, file: &Path, cause: &io::Error) -> Error {
    let error = Error::machine(format!("cannot copy {}: {}", file.display(), plain(cause)))
        .at(format!("while making a private copy of {jdk}"));
    match cause.kind() {
        io::ErrorKind::StorageFull => error.hint("free some space, or set TMPDIR to a directory on a larger disk"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_test_support::skip;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, UNIX_EPOCH};

    fn jdk_in(folder: &Path) -> FoundJdk {
        let home = folder.join("jdk-99");
        let outside = folder.join("etc");
        for (name, mode) in [
            ("bin/java", 0o755),
            ("lib/modules", 0o444),
            ("lib/server/libjvm.so", 0o644),
            ("lib/src.zip", 0o644),
            ("jmods/java.base.jmod", 0o644),
            ("man/man1/java.1", 0o644),
            ("release", 0o644),
        ] {
            let path = home.join(name);
            loadline_test_support::write(&path, name);
            let file = File::open(&path).unwrap();
            file.set_times(FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000))).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("jvm.cfg"), "-server KNOWN").unwrap();
        symlink(outside.join("jvm.cfg"), home.join("lib/jvm.cfg")).unwrap();
        symlink("../jdk-99", home.join("lib/circle")).unwrap();
        FoundJdk { java: home.join("bin/java"), home, release: 99, ..FoundJdk::default() }
    }

    fn copy(jdk: &FoundJdk, places: &[PathBuf]) -> Result<PrivateJdk> {
        PrivateJdk::copy(jdk, places, Clock::start(), &|| false)
    }

    #[test]
    fn a_jdk_copy_keeps_modes_and_times_and_is_removed_when_dropped() {
        let (folder, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let jdk = jdk_in(folder.path());
        let places = [folder.path().join("none"), place.path().to_path_buf()];
        let Ok(private) = copy(&jdk, &places).inspect_err(|error| skip("LOADLINE_LIMITS", &error.what)) else { return };
        let home = private.home().to_path_buf();
        assert!(home.starts_with(place.path().canonicalize().unwrap()) && home.ends_with("jdk-99"));
        assert_eq!(private.jdk.java, home.join("bin/java"));
        assert_eq!(private.files.len(), 5, "{:?}", private.files);
        assert_eq!(fs::read_to_string(home.join("lib/jvm.cfg")).unwrap(), "-server KNOWN");
        assert!(!home.join("lib/jvm.cfg").is_symlink());
        assert!(!home.join("jmods").exists() && !home.join("lib/src.zip").exists() && !home.join("man").exists());
        let modules = fs::metadata(home.join("lib/modules")).unwrap();
        assert_eq!((modules.mode() & 0o777, modules.mtime()), (0o444, 1_000_000));
        assert_eq!(fs::metadata(home.join("bin/java")).unwrap().mode() & 0o777, 0o755);
        drop(private);
        let second = copy(&jdk, &places).unwrap();
        drop(second);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn unsuitable_places_for_a_jdk_copy_are_named_with_reasons() {
        let folder = tempfile::tempdir().unwrap();
        let jdk = jdk_in(folder.path());
        let places = [PathBuf::from("/proc/self"), PathBuf::from("/dev/shm"), folder.path().join("none")];
        let error = copy(&jdk, &places).unwrap_err();
        assert_eq!(error.what, "no directory has room for a private copy of JDK 99: it needs 64.0 MiB");
        assert_eq!(error.context.len(), 4, "{error}");
        assert!(error.context[3].ends_with("none: No such file or directory"), "{error}");
        assert!(
            fitting(folder.path(), Bytes(u64::MAX)).unwrap_err().ends_with(" MiB are free")
                || file_pages::lies_in_memory(File::open(folder.path()).unwrap())
        );
    }

    #[test]
    fn an_interrupted_copy_or_missing_jdk_leaves_nothing() {
        let (folder, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let jdk = jdk_in(folder.path());
        let places = [place.path().to_path_buf()];
        assert!(PrivateJdk::copy(&jdk, &places, Clock::start(), &|| true).is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        let gone = FoundJdk { home: folder.path().join("gone"), ..jdk };
        assert!(copy(&gone, &places).unwrap_err().what.starts_with("cannot read "));
    }

    #[test]
    fn the_archives_directory_is_the_last_choice_for_a_copy() {
        let usual = places(None);
        assert!(!usual.is_empty());
        assert_eq!(
            places(Some(Path::new("/data/archives/one"))),
            [usual.clone(), vec!["/data/archives".into()]].concat()
        );
        assert_eq!(places(Some(&usual[0].join("one"))), usual);
    }
}
