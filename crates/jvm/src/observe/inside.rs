//! Opens files below the root that a process sees (`/proc/PID/root`). This root may belong to a hostile container, so
//! no link may lead out of it (man openat2, `RESOLVE_IN_ROOT`). Opens only regular files: opening a device can have
//! side effects.

use super::procfs::Process;
use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

/// Maximum number of names read in a directory: a hostile one may have any number.
const NAMES_MAX: usize = 100_000;
/// How many times a name is looked up again if it changes during the lookup.
const TRIES: usize = 8;

/// A directory below a process's root.
#[derive(Debug)]
pub(super) struct Inside(OwnedFd);

impl Inside {
    pub(super) fn folder(process: &Process, path: &str) -> io::Result<Self> {
        Self::below(folder_of(process, "root")?.as_fd(), path)
    }

    /// Opens the directory at this path below another; links cannot lead out of it.
    fn below(root: BorrowedFd<'_>, path: &str) -> io::Result<Self> {
        resolve(root, path, OFlags::PATH | OFlags::DIRECTORY).map(Self)
    }

    pub(super) fn names(&self) -> io::Result<impl Iterator<Item = String> + use<>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = Dir::new(openat(&self.0, ".", flags, Mode::empty())?)?;
        Ok(folder.take(NAMES_MAX).filter_map(|entry| Some(entry.ok()?.file_name().to_str().ok()?.to_owned())))
    }

    /// Opens a regular file in a subdirectory for reading; neither may be a link.
    pub(super) fn file(&self, folder: &str, name: &str) -> io::Result<File> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&self.0, folder, flags | OFlags::DIRECTORY, Mode::empty())?;
        readable(&openat(&folder, name, flags, Mode::empty())?)
    }

    /// The directory's descriptor.
    pub(super) fn into_fd(self) -> OwnedFd {
        self.0
    }
}

/// Opens the regular file that the process sees at this path, for reading.
pub(super) fn file(process: &Process, path: &str) -> io::Result<File> {
    readable(&resolve(folder_of(process, "root")?.as_fd(), path, OFlags::PATH)?)
}

/// Like [`file`], for a path that may be relative to the process's working directory. No `..` or link leads out.
pub(super) fn file_as_named(process: &Process, name: &str) -> io::Result<File> {
    match name.starts_with('/') {
        true => file(process, name),
        false => file_beneath(folder_of(process, "cwd")?.as_fd(), name),
    }
}

fn file_beneath(folder: BorrowedFd<'_>, name: &str) -> io::Result<File> {
    readable(&resolve_by(folder, name, OFlags::PATH, ResolveFlags::BENEATH)?)
}

/// Whether anything exists at this path as the process sees it, including a dangling link.
pub(super) fn has(process: &Process, path: &str) -> bool {
    folder_of(process, "root").and_then(|root| resolve(root.as_fd(), path, OFlags::PATH | OFlags::NOFOLLOW)).is_ok()
}

/// Opens the regular file that is mapped at these addresses, regardless of its current name, for reading.
pub(super) fn mapped(process: &Process, start: u64, end: u64) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    readable(&openat(process.folder(), format!("map_files/{start:x}-{end:x}"), flags, Mode::empty())?)
}

/// Opens the directory that a kernel link in a process's directory points to: `root`, `cwd`.
pub(super) fn folder_of(process: &Process, link: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(process.folder(), link, flags, Mode::empty())?)
}

/// Resolves a path as if `root` were the root. Before Linux 5.6, or if a seccomp filter blocks the call, links are not
/// followed at all.
fn resolve(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    resolve_by(root, path, flags, ResolveFlags::IN_ROOT)
}

fn resolve_by(root: BorrowedFd<'_>, path: &str, flags: OFlags, how: ResolveFlags) -> io::Result<OwnedFd> {
    for _ in 0..TRIES {
        match openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), how | ResolveFlags::NO_MAGICLINKS) {
            Ok(file) => return Ok(file),
            Err(Errno::AGAIN) => {}
            Err(Errno::NOSYS | Errno::PERM) => return step_by_step(root, path, flags),
            Err(cause) => return Err(cause.into()),
        }
    }
    Err(Errno::AGAIN.into())
}

/// Resolves a path one name at a time; none may be a link or `..`.
fn step_by_step(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = openat(root, ".", folder, Mode::empty())?;
    let mut names = Path::new(path).components().filter(|part| *part != Component::RootDir).peekable();
    while let Some(part) = names.next() {
        let Component::Normal(name) = part else { return Err(Errno::LOOP.into()) };
        let flags = if names.peek().is_some() { folder } else { flags | OFlags::NOFOLLOW | OFlags::CLOEXEC };
        at = openat(&at, name, flags, Mode::empty())?;
    }
    Ok(at)
}

/// Reopens a file found with `O_PATH` for reading, if it is a regular file.
fn readable(found: &OwnedFd) -> io::Result<File> {
    if FileType::from_raw_mode(fstat(found)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    Ok(open(format!("/proc/self/fd/{}", found.as_raw_fd()), flags, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A container's root directory with a secret next to it, and the root's descriptor.
    fn hostile() -> (TempDir, OwnedFd) {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("root");
        fs::create_dir_all(root.join("tmp/hsperfdata_app")).unwrap();
        fs::write(root.join("tmp/hsperfdata_app/7"), "counters").unwrap();
        fs::create_dir(outside.path().join("hsperfdata_evil")).unwrap();
        fs::write(outside.path().join("hsperfdata_evil/7"), "secret").unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open(&root, flags, Mode::empty()).unwrap();
        (outside, fd)
    }

    fn text(file: io::Result<File>) -> Option<String> {
        let mut text = String::new();
        file.ok()?.read_to_string(&mut text).ok()?;
        Some(text)
    }

    #[test]
    fn links_cannot_lead_out_of_the_root() {
        let (outside, root) = hostile();
        let below = outside.path().join("root");
        let secret = outside.path().join("hsperfdata_evil");
        symlink(&secret, below.join("tmp/hsperfdata_absolute")).unwrap();
        symlink("../../hsperfdata_evil", below.join("tmp/hsperfdata_relative")).unwrap();
        fs::create_dir(below.join("tmp/hsperfdata_file")).unwrap();
        symlink(secret.join("7"), below.join("tmp/hsperfdata_file/7")).unwrap();
        symlink("../../../hsperfdata_evil/7", below.join("tmp/hsperfdata_file/8")).unwrap();
        let tmp = Inside::below(root.as_fd(), "/tmp").unwrap();
        let mut names: Vec<String> = tmp.names().unwrap().filter(|name| name.starts_with("hsperfdata_")).collect();
        names.sort();
        let all = ["hsperfdata_absolute", "hsperfdata_app", "hsperfdata_file", "hsperfdata_relative"];
        assert_eq!(names, all);
        assert_eq!(text(tmp.file("hsperfdata_app", "7")).as_deref(), Some("counters"));
        for (folder, name) in [
            ("hsperfdata_absolute", "7"),
            ("hsperfdata_relative", "7"),
            ("hsperfdata_file", "7"),
            ("hsperfdata_file", "8"),
        ] {
            assert_eq!(text(tmp.file(folder, name)), None, "{folder}/{name}");
        }
        for path in ["/../hsperfdata_evil/7", "tmp/hsperfdata_relative/7", "tmp/hsperfdata_file/8"] {
            for found in [resolve(root.as_fd(), path, OFlags::PATH), step_by_step(root.as_fd(), path, OFlags::PATH)] {
                assert_eq!(text(found.and_then(|found| readable(&found))), None, "{path}");
            }
        }
        let through = resolve(root.as_fd(), &secret.join("7").display().to_string(), OFlags::PATH);
        assert!(through.is_err(), "an absolute path is relative to the container's root");
    }

    #[test]
    fn a_relative_name_stays_in_its_directory() {
        let (outside, _root) = hostile();
        let folder = outside.path().join("root");
        symlink("../hsperfdata_evil/7", folder.join("out")).unwrap();
        symlink(outside.path().join("hsperfdata_evil/7"), folder.join("absolute")).unwrap();
        symlink("tmp/hsperfdata_app/7", folder.join("in")).unwrap();
        let beneath = Inside(open(&folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap());
        let of = |name: &str| text(file_beneath(beneath.0.as_fd(), name));
        assert_eq!(of("tmp/hsperfdata_app/7").as_deref(), Some("counters"));
        assert_eq!(of("in").as_deref(), Some("counters"));
        for name in ["../hsperfdata_evil/7", "out", "absolute", "tmp/../../hsperfdata_evil/7", "none"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn paths_resolve_as_the_process_sees_them() {
        let process = Process::open(std::process::id()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("file"), "text").unwrap();
        symlink("nowhere", path("link")).unwrap();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, folder.path().join("pipe"), FileType::Fifo, mode, 0).unwrap();
        assert_eq!(text(file_as_named(&process, &path("file"))).as_deref(), Some("text"));
        assert!(text(file_as_named(&process, "Cargo.toml")).is_some(), "relative to the process's directory");
        assert!(file_as_named(&process, &path("pipe")).unwrap_err().to_string().contains("not a regular file"));
        let found = ["file", "link", "pipe", "none", "none/file"].map(|name| has(&process, &path(name)));
        assert_eq!(found, [true, true, true, false, false]);
    }

    #[test]
    fn inner_links_are_followed_if_the_kernel_can() {
        let (outside, root) = hostile();
        let below = outside.path().join("root");
        fs::rename(below.join("tmp"), below.join("scratch")).unwrap();
        symlink("/scratch", below.join("tmp")).unwrap();
        let tmp = Inside::below(root.as_fd(), "/tmp").unwrap();
        assert_eq!(text(tmp.file("hsperfdata_app", "7")).as_deref(), Some("counters"));
        assert!(step_by_step(root.as_fd(), "/tmp", OFlags::PATH | OFlags::DIRECTORY).is_err());
        assert!(step_by_step(root.as_fd(), "/scratch/hsperfdata_app", OFlags::PATH | OFlags::DIRECTORY).is_ok());
        let plain = step_by_step(root.as_fd(), "scratch/hsperfdata_app/7", OFlags::PATH).unwrap();
        assert_eq!(text(readable(&plain)).as_deref(), Some("counters"));
    }

    #[test]
    fn pipes_directories_and_devices_are_not_opened() {
        let (outside, root) = hostile();
        let folder = outside.path().join("root/tmp/hsperfdata_app");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, folder.join("8"), FileType::Fifo, mode, 0).unwrap();
        fs::create_dir(folder.join("9")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.join("10")).unwrap();
        let tmp = Inside::below(root.as_fd(), "/tmp").unwrap();
        for name in ["8", "9", "10"] {
            let refused = tmp.file("hsperfdata_app", name).unwrap_err().to_string();
            assert!(refused.contains("not a regular file"), "{name}: {refused}");
        }
        let devices = Inside(open("/dev", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap());
        assert!(devices.file(".", "zero").unwrap_err().to_string().contains("not a regular file"), "it never ends");
        assert!(tmp.file("hsperfdata_app", "11").is_err(), "a missing file");
    }
}
