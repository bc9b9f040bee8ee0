//! A copy of a JDK for Loadline alone. While any process has a page of a JDK mapped, that page stays in memory and
//! charged to its first reader, and no request drops it. The pages of a copy can be dropped between trials.

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

/// Bytes that must be left of a disk after the copy: archives are written to the same disk.
const LEFT_FREE: Bytes = Bytes::mib(64);
/// A file takes whole blocks.
const BLOCK: u64 = 4096;

/// A copy of a JDK in a folder of its own, which goes when the copy is dropped; that of a Loadline that was killed goes
/// at the next start.
#[derive(Debug)]
pub struct PrivateJdk {
    /// Removes the copy when it is dropped.
    _folder: WorkFolder,
    /// The copy, as a JDK like any other.
    pub jdk: FoundJdk,
    /// All files of the copy.
    pub files: Vec<PathBuf>,
}

impl PrivateJdk {
    /// Copies a JDK without what no JVM reads, into the first of these folders that is on a disk, has the room and may
    /// hold programs. All of it is on the disk then and none of it in memory. Leftovers in these folders are removed.
    ///
    /// # Errors
    /// `Machine` where no folder will do, with the reason for each, or where the copy fails; `Interrupted`.
    pub fn copy(jdk: &FoundJdk, places: &[PathBuf], clock: Clock, interrupted: &dyn Fn() -> bool) -> Result<Self> {
        let files = wanted_files(&jdk.home)?;
        for place in places {
            // One that stays takes room and does no other harm; the start of each search tells of it.
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
        // Each file was changed just now, so `evict` also writes it to the disk.
        match file_pages::evict(&private.files, clock).refused.first() {
            Some((file, why)) => Err(Error::machine(format!("cannot write {} to the disk: {why}", file.display()))),
            None => Ok(private),
        }
    }

    /// The folder of the copy: `JAVA_HOME`.
    pub fn home(&self) -> &Path {
        &self.jdk.home
    }
}

/// Folders for a copy, the best first: the one in which the next start looks for leftovers, then the folder of the
/// archive, if there is an archive.
pub(crate) fn places(archive: Option<&Path>) -> Vec<PathBuf> {
    let absolute = |path: &Path| std::path::absolute(path).ok();
    let beside = archive.and_then(absolute).and_then(|archive| archive.parent().map(Path::to_path_buf));
    let mut places = work_folder::usual_parents();
    places.extend(beside.filter(|beside| !places.contains(beside)));
    places
}

/// A file to copy.
struct JdkFile {
    /// Below the home.
    name: PathBuf,
    source: PathBuf,
    bytes: u64,
}

impl JdkFile {
    /// The content, whatever links led to it, with its permissions and time of change: a class data archive is refused
    /// where the files it was made from look changed.
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

/// All regular files of a JDK but those that no JVM reads.
fn wanted_files(home: &Path) -> Result<Vec<JdkFile>> {
    let unreadable = |cause: io::Error| Error::io("read", home, &cause);
    fs::read_dir(home).map_err(unreadable)?;
    let sources = file_pages::regular_files(home);
    if sources.len() >= FILES_MAX {
        let what = format!("{} has {FILES_MAX} files or more, too many for a JDK to copy", home.display());
        return Err(Error::machine(what).hint("name the folder of a JDK that holds nothing else: `--jdk /path/to/jdk`"));
    }
    let wanted = |source: PathBuf| {
        let bytes = fs::metadata(&source)?.len();
        let name = source.strip_prefix(home).unwrap_or(&source).to_path_buf();
        Ok(JdkFile { name, source, bytes })
    };
    sources.into_iter().map(wanted).collect::<io::Result<_>>().map_err(unreadable)
}

/// An empty folder where there is room for so much.
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
        Error::machine(format!("no folder can take a private copy of JDK {}: {needed} are needed", jdk.release))
            .at("another process uses this JDK and holds its file pages, so an honest limit needs a copy of it");
    Err(refusals.into_iter().fold(error, Error::at).hint(format!(
        "end the other JVMs of {}, or set TMPDIR to a folder on a disk with room for programs",
        jdk.home.display()
    )))
}

/// The folder itself, links resolved; or why it will not do.
fn fitting(place: &Path, bytes: Bytes) -> Result<PathBuf, String> {
    let place = place.canonicalize().map_err(|cause| plain(&cause))?;
    let folder = File::open(&place).map_err(|cause| plain(&cause))?;
    if file_pages::lies_in_memory(&folder) {
        return Err("it lies in memory (tmpfs), not on a disk".to_owned());
    }
    let system = statvfs(&place).map_err(|cause| plain(&cause.into()))?;
    if system.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err("programs must not be started from it (noexec)".to_owned());
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
        io::ErrorKind::StorageFull => error.hint("free some space, or set TMPDIR to a folder on a larger disk"),
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
    fn a_copy_has_what_a_jvm_reads_with_modes_and_times_and_goes_when_dropped() {
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
    fn a_place_that_will_not_do_is_named_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let jdk = jdk_in(folder.path());
        let places = [PathBuf::from("/proc/self"), PathBuf::from("/dev/shm"), folder.path().join("none")];
        let error = copy(&jdk, &places).unwrap_err();
        assert_eq!(error.what, "no folder can take a private copy of JDK 99: 64.0 MiB are needed");
        assert_eq!(error.context.len(), 4, "{error}");
        assert!(error.context[3].ends_with("none: No such file or directory"), "{error}");
        assert!(
            fitting(folder.path(), Bytes(u64::MAX)).unwrap_err().ends_with(" MiB are free")
                || file_pages::lies_in_memory(File::open(folder.path()).unwrap())
        );
    }

    #[test]
    fn an_interrupted_copy_and_a_missing_jdk_leave_nothing() {
        let (folder, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let jdk = jdk_in(folder.path());
        let places = [place.path().to_path_buf()];
        assert!(PrivateJdk::copy(&jdk, &places, Clock::start(), &|| true).is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        let gone = FoundJdk { home: folder.path().join("gone"), ..jdk };
        assert!(copy(&gone, &places).unwrap_err().what.starts_with("cannot read "));
    }

    #[test]
    fn the_archive_is_the_last_place() {
        let usual = places(None);
        assert!(!usual.is_empty());
        assert_eq!(
            places(Some(Path::new("/data/archives/one"))),
            [usual.clone(), vec!["/data/archives".into()]].concat()
        );
        assert_eq!(places(Some(&usual[0].join("one"))), usual);
    }
}
