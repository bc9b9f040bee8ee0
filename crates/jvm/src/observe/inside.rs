//! Files below the root that a process sees (`/proc/PID/root`). This root may belong to a hostile container: no link in
//! it leads out (man openat2, `RESOLVE_IN_ROOT`). Only plain files are opened, since opening a device may have effects.

use super::procfs::Process;
use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

/// Names of a folder that are looked at: a hostile one may have any number.
const NAMES_MAX: usize = 100_000;
/// A name that is changed meanwhile is looked for again, so often.
const TRIES: usize = 8;

/// A folder below the root of a process.
#[derive(Debug)]
pub(super) struct Inside(OwnedFd);

impl Inside {
    /// The folder that the process finds under this path.
    pub(super) fn folder(process: &Process, path: &str) -> io::Result<Self> {
        Self::below(folder_of(process, "root")?.as_fd(), path)
    }

    /// The folder of this path below another, which links are not followed out of.
    fn below(root: BorrowedFd<'_>, path: &str) -> io::Result<Self> {
        resolve(root, path, OFlags::PATH | OFlags::DIRECTORY).map(Self)
    }

    /// The names in it that can be read as text.
    pub(super) fn names(&self) -> io::Result<impl Iterator<Item = String> + use<>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = Dir::new(openat(&self.0, ".", flags, Mode::empty())?)?;
        Ok(folder.take(NAMES_MAX).filter_map(|entry| Some(entry.ok()?.file_name().to_str().ok()?.to_owned())))
    }

    /// Opens a plain file of this folder's folder for reading; neither may be a link.
    pub(super) fn file(&self, folder: &str, name: &str) -> io::Result<File> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&self.0, folder, flags | OFlags::DIRECTORY, Mode::empty())?;
        readable(&openat(&folder, name, flags, Mode::empty())?)
    }

    /// The folder's descriptor.
    pub(super) fn into_fd(self) -> OwnedFd {
        self.0
    }
}

/// Opens the plain file that the process finds under this path, for reading.
pub(super) fn file(process: &Process, path: &str) -> io::Result<File> {
    readable(&resolve(folder_of(process, "root")?.as_fd(), path, OFlags::PATH)?)
}

/// As [`file`], by a path that may start from the process's own folder. Out of that no `..` and no link leads.
pub(super) fn file_as_named(process: &Process, name: &str) -> io::Result<File> {
    match name.starts_with('/') {
        true => file(process, name),
        false => file_beneath(folder_of(process, "cwd")?.as_fd(), name),
    }
}

fn file_beneath(folder: BorrowedFd<'_>, name: &str) -> io::Result<File> {
    readable(&resolve_by(folder, name, OFlags::PATH, ResolveFlags::BENEATH)?)
}

/// Whether the process is seen to find anything under this path; a link that leads nowhere is something.
pub(super) fn has(process: &Process, path: &str) -> bool {
    folder_of(process, "root").and_then(|root| resolve(root.as_fd(), path, OFlags::PATH | OFlags::NOFOLLOW)).is_ok()
}

/// Opens the plain file that is mapped at these addresses, whatever its name is by now, for reading.
pub(super) fn mapped(process: &Process, start: u64, end: u64) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    readable(&openat(process.folder(), format!("map_files/{start:x}-{end:x}"), flags, Mode::empty())?)
}

/// The folder that a link of the kernel's in the folder of a process leads to: `root`, `cwd`.
pub(super) fn folder_of(process: &Process, link: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(process.folder(), link, flags, Mode::empty())?)
}

/// Resolves a path as if `root` were the root. Before Linux 5.6, and where a filter of system calls refuses, links are
/// not followed at all.
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

/// Name by name, none of which may be a link or lead upwards.
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

/// Opens for reading a file that was found with `O_PATH`, if it is a plain file.
fn readable(found: &OwnedFd) -> io::Result<File> {
    if FileType::from_raw_mode(fstat(found)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is no plain file"));
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

    /// A container's root folder with a secret next to it, and the root's descriptor.
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
    fn no_link_leads_out_of_the_root() {
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
        assert!(through.is_err(), "an absolute path begins at the root of the container");
    }

    #[test]
    fn a_name_without_a_root_stays_in_its_folder() {
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
    fn what_a_process_names_is_found_where_it_looks() {
        let process = Process::open(std::process::id()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("file"), "text").unwrap();
        symlink("nowhere", path("link")).unwrap();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, folder.path().join("pipe"), FileType::Fifo, mode, 0).unwrap();
        assert_eq!(text(file_as_named(&process, &path("file"))).as_deref(), Some("text"));
        assert!(text(file_as_named(&process, "Cargo.toml")).is_some(), "from its own folder");
        assert!(file_as_named(&process, &path("pipe")).unwrap_err().to_string().contains("no plain file"));
        let found = ["file", "link", "pipe", "none", "none/file"].map(|name| has(&process, &path(name)));
        assert_eq!(found, [true, true, true, false, false]);
    }

    #[test]
    fn links_inside_are_followed_where_the_kernel_can() {
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
    fn pipes_folders_and_devices_are_not_opened() {
        let (outside, root) = hostile();
        let folder = outside.path().join("root/tmp/hsperfdata_app");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, folder.join("8"), FileType::Fifo, mode, 0).unwrap();
        fs::create_dir(folder.join("9")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.join("10")).unwrap();
        let tmp = Inside::below(root.as_fd(), "/tmp").unwrap();
        for name in ["8", "9", "10"] {
            let refused = tmp.file("hsperfdata_app", name).unwrap_err().to_string();
            assert!(refused.contains("no plain file"), "{name}: {refused}");
        }
        let devices = Inside(open("/dev", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap());
        assert!(devices.file(".", "zero").unwrap_err().to_string().contains("no plain file"), "it never ends");
        assert!(tmp.file("hsperfdata_app", "11").is_err(), "what is not there");
    }
}
