//! A JVM copied from where Loadline could not run: the tar file from the script of `loadline capture`. It is unpacked
//! into a private directory, and read like a live process, as far as the copied files allow.
//!
//! ```text
//! loadline-capture/proc/7/smaps                and the other files of /proc/PID; of others, only the small ones
//! loadline-capture/proc/7/task/9/comm
//! loadline-capture/proc/7/pagemap.66912        the page map from this block of 4 KiB on
//! loadline-capture/cgroup/memory.stat
//! loadline-capture/jcmd/VM.metaspace+vslist    the reply to a command
//! loadline-capture/about                       last: format=loadline-capture/1, pid=7, page=4096, taken_s=1795862424
//! ```
//!
//! A bundle is untrusted: only regular files with these names are unpacked, up to a limit, and no links are created.

use super::identity::harmless;
use super::once::{AccountOptions, Collecting};
use super::watched::Watched;
use crate::bounded;
use crate::clock::Clock;
use crate::doubt::Doubt;
use crate::error::{Error, Result, plain};
use crate::kernel::process::{page_size, ticks_per_s};
use crate::observe::cgroup::MemoryCgroup;
use crate::observe::procfs::Process;
use crate::record::{AccountDocument, IdentityRecord, Machine};
use crate::scenario::Asking;
use crate::subject::WorkFolder;
use crate::units::{Bytes, utc};
use flate2::bufread::GzDecoder;
use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions, create_dir_all};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The format in the first line of `about`.
const FORMAT: &str = "loadline-capture/1";
/// The directory that contains everything.
const TOP: &str = "loadline-capture";
/// A JVM with 65,530 mappings has 50 MB of `smaps`; its page map has 8 bytes per resident page.
const BYTES_MAX: u64 = 1 << 30;
/// Five files for each of 65,536 threads.
const FILES_MAX: usize = 1 << 19;
/// A page map covers at most 57 address bits: blocks of 512 pages of 4 KiB.
const BLOCKS_MAX: u64 = 1 << 36;
const BLOCK: u64 = 4096;
/// `about` has ten lines or so.
const ABOUT_MAX: u64 = 64 << 10;
/// `VM.classloader_stats` has a line per loader.
const REPLY_MAX: u64 = 16 << 20;

/// The command that creates a bundle.
const CAPTURE: &str = "`loadline capture | kubectl exec -i POD -- sh > bundle.tar`";

/// Gzip's magic number (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The maximum number of omissions, and of characters in each.
const LEFT_OUT_MAX: usize = 8;
const WORDS_MAX: usize = 200;

/// Files of a process, and of a thread.
const OF_PROCESS: [&str; 13] = [
    "status",
    "stat",
    "statm",
    "cmdline",
    "smaps_rollup",
    "cgroup",
    "mountinfo",
    "fd.names",
    "fd.stat",
    "smaps",
    "maps",
    "environ",
    "hsperfdata",
];
const OF_THREAD: [&str; 5] = ["comm", "stat", "status", "schedstat", "syscall"];

#[derive(Debug)]
pub(crate) struct Bundle {
    folder: WorkFolder,
    /// The path as given by the user.
    path: PathBuf,
    about: BTreeMap<String, String>,
    /// A description of the data that the script could not collect.
    left_out: Vec<String>,
}

impl Bundle {
    /// Whether a file starts like a bundle, plain or compressed; false for a pipe, which can be read only once. Also
    /// accepts an unpacked directory.
    pub(crate) fn is_at(path: &Path) -> bool {
        let begins = |file| BufReader::new(file).fill_buf().is_ok_and(|start| start.starts_with(&GZIP) || is_of(start));
        let file = |of: Metadata| of.is_dir() || of.is_file() && bounded::open(path).is_ok_and(begins);
        std::fs::metadata(path).is_ok_and(file)
    }

    /// Unpacks a bundle, plain or gzipped, or copies an unpacked one; `-` is stdin. Errors: `Request` if it cannot be
    /// read, is not a bundle, is truncated, or has a different format or page size; `Machine` if it cannot be unpacked.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let refuse =
            |what: String| Error::request(what).at(path.display().to_string()).hint(format!("{CAPTURE} creates one"));
        let folder = WorkFolder::create()?;
        let unpacked = match path {
            _ if path == Path::new("-") => unpack(io::stdin().lock(), folder.path()),
            _ if path.is_dir() => copy(path, folder.path(), BYTES_MAX),
            _ => bounded::open(path).and_then(|file| unpack(file, folder.path())),
        };
        unpacked.map_err(|cause| match cause.kind() {
            io::ErrorKind::Unsupported => {
                refuse("this is not the output of the script from `loadline capture`".to_owned())
            }
            _ if cause.raw_os_error().is_some() => refuse(format!("the bundle cannot be read: {}", plain(&cause))),
            // The tar reader's message could quote arbitrary file content.
            _ => cut(path),
        })?;
        let text = bounded::text(&folder.path().join("about"), ABOUT_MAX).map_err(|_| cut(path))?;
        let lines = || text.lines().filter_map(|line| line.split_once('='));
        let left_out = lines().filter(|(key, _)| *key == "left_out");
        let left_out = left_out.map(|(_, what)| harmless(what, WORDS_MAX)).take(LEFT_OUT_MAX).collect();
        let about = lines().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let bundle = Self { folder, path: path.to_owned(), about, left_out };
        match bundle.word("format") {
            FORMAT => {}
            other => return Err(refuse(format!("its format is `{other}`; this release reads {FORMAT}"))),
        }
        if bundle.number("page") != page_size().0 {
            let (page, here) = (bundle.word("page"), page_size().0);
            return Err(refuse(format!("its machine uses {page}-byte pages, but this one uses {here}-byte pages")));
        }
        Ok(bundle)
    }

    fn word(&self, key: &str) -> &str {
        self.about.get(key).map_or("", String::as_str)
    }

    fn number(&self, key: &str) -> u64 {
        self.word(key).parse().unwrap_or(0)
    }

    fn seconds(&self, key: &str) -> f64 {
        self.word(key).parse().unwrap_or(0.0)
    }

    /// The account of the captured JVM; the caller adds the command and the findings. Errors: `Request` if the bundle
    /// lacks its process or its mappings.
    pub(crate) fn weigh(&self, clock: &Clock) -> Result<AccountDocument> {
        let [proc, cgroup] = ["proc", "cgroup"].map(|name| self.folder.path().join(name));
        let pid = u32::try_from(self.number("pid")).unwrap_or(0);
        let process = Process::open_copy(pid, &proc).map_err(|_| cut(&self.path))?;
        let cgroup = MemoryCgroup::open_copy(&cgroup, &proc).ok();
        let mut doubts: Vec<Doubt> =
            self.left_out.iter().map(|what| Doubt::BundleLacks { what: what.clone() }).collect();
        let watched = Watched::of_copy(process, cgroup, self.replies(), *clock, &mut doubts);
        let options = AccountOptions { stop: false, netty: false, asking: Asking::Always };
        let weighed = options.weigh_watched(watched, doubts, &Collecting::default(), &mut |_| ());
        let mut weighed = weighed.map_err(|_| cut(&self.path))?;
        // The JVM continued to run while the script copied.
        let seconds = (self.seconds("ended_uptime_s") - self.seconds("uptime_s")).max(0.0);
        weighed.mark.took_ms = seconds * 1e3;
        if let Some(account) = &mut weighed.mark.account {
            account.took_ms = weighed.mark.took_ms;
        }
        if let Some(charge) = &mut weighed.mark.charge {
            charge.cgroup = harmless(self.word("cgroup"), WORDS_MAX);
        }
        let machine = Machine {
            cores: u32::try_from(self.number("cores")).unwrap_or(0),
            memory_bytes: Bytes::kib(self.number("memory_kib")).0,
            kernel: self.word("kernel").to_owned(),
            cgroup: weighed.mark.charge.as_ref().map_or("none".to_owned(), |charge| charge.version.clone()),
            ..Machine::default()
        };
        let taken_s = self.number("taken_s");
        let identity = weighed.identity.map(|identity| {
            let age = (self.seconds("uptime_s") as u64).saturating_sub(identity.started_ticks / ticks_per_s());
            let started = Some(utc(taken_s.saturating_sub(age) as f64));
            IdentityRecord { started, boot_id: Some(self.word("boot_id").to_owned()), ..identity }
        });
        let (taken, bundle) = (utc(taken_s as f64), Some(self.path.display().to_string()));
        Ok(AccountDocument { machine, taken, identity, bundle, ..weighed })
    }

    /// The JVM's replies by command.
    fn replies(&self) -> BTreeMap<String, String> {
        let files = std::fs::read_dir(self.folder.path().join("jcmd")).into_iter().flatten().flatten();
        let reply = |file: std::fs::DirEntry| {
            let text = bounded::text(&file.path(), REPLY_MAX).ok()?;
            // The first line of `jcmd` contains the pid.
            let text = text.split_once('\n').filter(|(first, _)| first.ends_with(':')).map_or(&*text, |(_, rest)| rest);
            Some((file.file_name().to_str()?.replace('+', " "), text.to_owned()))
        };
        files.filter_map(reply).collect()
    }
}

/// The error for a bundle that lacks a required file.
fn cut(path: &Path) -> Error {
    Error::request(format!("{} is empty or truncated: its capture failed", path.display())).hint(format!(
        "the script printed the reason to stderr; capture again with {CAPTURE}, without `-t`, which corrupts the file"
    ))
}

fn is_of(start: &[u8]) -> bool {
    start.strip_prefix(b"./").unwrap_or(start).starts_with(TOP.as_bytes())
}

/// Unpacks known files below `into`. Returns `Unsupported` if the file is not a bundle.
fn unpack(file: impl Read, into: &Path) -> io::Result<()> {
    let mut file = BufReader::new(file);
    let is_compressed = file.fill_buf()?.starts_with(&GZIP);
    let bytes: Box<dyn Read + '_> = if is_compressed { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
    let mut bytes = BufReader::new(bytes.take(BYTES_MAX));
    let start = bytes.fill_buf()?;
    if !start.is_empty() && !is_of(start) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut archive = tar::Archive::new(bytes);
    for (at, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        if at >= FILES_MAX {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let name = entry.path_bytes().into_owned();
        let Some(place) = std::str::from_utf8(&name).ok().and_then(Place::of) else { continue };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        if place.put(&mut entry, into)? != entry.size() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Copies the known files of an unpacked bundle, or of the directory around it, below `into`; does not follow links.
/// Returns `Unsupported` if the directory is not a bundle.
fn copy(folder: &Path, into: &Path, bytes_max: u64) -> io::Result<()> {
    let is_dir = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|of| of.is_dir());
    let top = Some(folder.join(TOP)).filter(|top| is_dir(top)).unwrap_or_else(|| folder.to_owned());
    if !top.join("about").is_file() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (mut folders, mut files, mut left) = (vec![PathBuf::new()], 0, bytes_max);
    while let Some(below) = folders.pop() {
        for entry in std::fs::read_dir(top.join(&below))? {
            let entry = entry?;
            let (kind, name) = (entry.file_type()?, below.join(entry.file_name()));
            files += 1;
            if files > FILES_MAX {
                return Err(io::ErrorKind::Unsupported.into());
            }
            if kind.is_dir() {
                folders.push(name);
            } else if let Some(place) = name.to_str().filter(|_| kind.is_file()).and_then(Place::below) {
                left -= place.put(&mut bounded::open(&entry.path())?.take(left), into)?;
                // Prevents silent truncation at the limit.
                if left == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// Relative to the directory of the unpacked bundle.
    path: PathBuf,
    /// Its first block, if it is part of the page map.
    block: Option<u64>,
}

impl Place {
    /// The location of an entry; `None` for unknown names.
    fn of(name: &str) -> Option<Self> {
        let (_, below) = name.trim_start_matches("./").split_once('/').filter(|(top, _)| *top == TOP)?;
        Self::below(below)
    }

    /// Like `of`, without the top directory.
    fn below(name: &str) -> Option<Self> {
        let parts: Vec<&str> = name.split('/').collect();
        let is_number = |text: &&str| text.parse::<u32>().is_ok();
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._=+-".contains(&byte);
        let is_plain = |part: &&str| part.bytes().all(is_of_name) && !part.starts_with('.');
        let is_known = match parts.as_slice() {
            ["about"] => true,
            ["proc", pid, "task", tid, file] => is_number(pid) && is_number(tid) && OF_THREAD.contains(file),
            ["proc", pid, "root", path @ ..] => is_number(pid) && path.iter().all(is_plain),
            ["proc", pid, file] if OF_PROCESS.contains(file) => is_number(pid),
            ["proc", pid, file] if is_number(pid) => {
                let block = file.strip_prefix("pagemap.")?.parse().ok().filter(|block| *block < BLOCKS_MAX)?;
                return Some(Self { path: format!("proc/{pid}/pagemap").into(), block: Some(block) });
            }
            ["jcmd" | "cgroup", file] => is_plain(file),
            _ => false,
        };
        is_known.then(|| Self { path: name.into(), block: None })
    }

    /// Writes a file below `into`; returns its size.
    fn put(&self, from: &mut impl Read, into: &Path) -> io::Result<u64> {
        let path = into.join(&self.path);
        create_dir_all(path.parent().unwrap_or(into))?;
        let mut to = match self.block {
            // Page map blocks are combined in one sparse file.
            Some(_) => OpenOptions::new().create(true).truncate(false).write(true).open(&path)?,
            None => File::create(&path)?,
        };
        to.seek(SeekFrom::Start(self.block.unwrap_or(0) * BLOCK))?;
        io::copy(from, &mut to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tar::{Builder, EntryType, Header};

    fn bundle(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (name, bytes) in files {
            builder.append(&header(name, EntryType::Regular, bytes.len()), *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    /// A header with this exact name, valid or not.
    fn header(name: &str, kind: EntryType, bytes: usize) -> Header {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(bytes as u64);
        header.set_cksum();
        header
    }

    fn about(page: u64) -> String {
        format!("format={FORMAT}\npid=7\npage={page}\nleft_out=the answers\u{1b}[2J of the JVM\n")
    }

    fn opened(bytes: &[u8]) -> Result<Bundle> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        Bundle::open(file.path())
    }

    #[test]
    fn bundle_files_are_placed_and_page_map_blocks_joined() {
        let (about, library) = (about(page_size().0), ["proc/7/root", "usr/lib/libc-2.so.6"].join("/"));
        let files: [(&str, &[u8]); 5] = [
            ("loadline-capture/about", about.as_bytes()),
            ("./loadline-capture/proc/7/smaps", b"smaps"),
            (&format!("loadline-capture/{library}"), b"elf"),
            ("loadline-capture/proc/7/pagemap.66912", b"high"),
            ("loadline-capture/proc/7/pagemap.1", b"low"),
        ];
        let opened = opened(&bundle(&files)).unwrap();
        let read = |name: &str| std::fs::read(opened.folder.path().join(name)).unwrap();
        assert_eq!((read("proc/7/smaps"), read(&library)), (b"smaps".into(), b"elf".into()));
        let mut pages = File::open(opened.folder.path().join("proc/7/pagemap")).unwrap();
        let mut at = |place: u64| {
            let mut bytes = [0; 3];
            pages.seek(SeekFrom::Start(place)).unwrap();
            pages.read_exact(&mut bytes).unwrap();
            bytes
        };
        assert_eq!([at(BLOCK), at(66_912 * BLOCK), at(2 * BLOCK)], [*b"low", *b"hig", [0; 3]]);
        assert_eq!(opened.left_out, ["the answers\u{fffd}[2J of the JVM"]);
    }

    #[test]
    fn bundle_names_and_links_cannot_leave_the_directory() {
        for name in [
            "loadline-capture/../x",
            "loadline-capture/proc/7/../../../x",
            "/loadline-capture/about",
            "loadline-capture/proc/7/mem",
            "loadline-capture/proc/7/fd/5",
            "loadline-capture/proc/self/smaps",
            "loadline-capture/jcmd/..",
            "loadline-capture/cgroup/.x",
            "loadline-capture/proc/7/pagemap.99999999999999999999",
            "loadline-capture/proc/7/pagemap.68719476736",
            "other/about",
            "",
        ] {
            assert_eq!(Place::of(name), None, "{name}");
        }
        for below in ["../../x", ".x", "usr/../x", "a b"] {
            let name = ["loadline-capture/proc/7/root", below].join("/");
            assert_eq!(Place::of(&name), None, "{name}");
        }
        let mut builder = Builder::new(Vec::new());
        let mut link = header("loadline-capture/about", EntryType::Symlink, 0);
        link.set_link_name("/etc/passwd").unwrap();
        link.set_cksum();
        builder.append(&link, io::empty()).unwrap();
        let error = opened(&builder.into_inner().unwrap()).unwrap_err();
        assert!(error.what.contains("is empty or truncated"), "{error}");
    }

    #[test]
    fn an_unpacked_bundle_is_read_without_following_links() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let top = folder.path().join(TOP);
        create_dir_all(top.join("proc/7")).unwrap();
        assert!(Bundle::is_at(folder.path()));
        let error = Bundle::open(folder.path()).unwrap_err();
        assert!(error.what.starts_with("this is not the output of the script"), "{error}");
        std::fs::write(top.join("about"), about(page_size().0)).unwrap();
        std::fs::write(top.join("proc/7/pagemap.1"), b"low").unwrap();
        std::fs::write(elsewhere.path().join("smaps"), b"x").unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("smaps"), top.join("proc/7/smaps")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), top.join("jcmd")).unwrap();
        for path in [folder.path(), &top] {
            let opened = Bundle::open(path).unwrap();
            let copied = |name: &str| opened.folder.path().join(name).exists();
            let places = ["about", "proc/7/pagemap", "proc/7/smaps", "jcmd"].map(copied);
            assert_eq!(places, [true, true, false, false]);
            let small = tempfile::tempdir().unwrap();
            let error = copy(path, small.path(), 5).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "too much data is an error");
        }
    }

    #[test]
    fn truncated_damaged_or_foreign_bundles_are_rejected() {
        let whole = bundle(&[("loadline-capture/about", about(page_size().0).as_bytes())]);
        assert!(opened(&whole).is_ok());
        let refused = |bytes: &[u8]| opened(bytes).err().map(|error| error.what).unwrap_or_default();
        for cut in 0..512 + about(4096).len() {
            let is_of_a_bundle = cut == 0 || cut >= TOP.len();
            let what = if is_of_a_bundle { "is empty or truncated" } else { "this is not the output" };
            assert!(refused(&whole[..cut]).contains(what), "cut at {cut}");
        }
        assert_eq!(refused(b"#!/bin/sh\n"), "this is not the output of the script from `loadline capture`");
        for at in (0..whole.len()).step_by(7) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x41;
            let _ = refused(&damaged);
        }
        let of = |about: &str| refused(&bundle(&[("loadline-capture/about", about.as_bytes())]));
        assert!(of(&about(1 << 16)).contains("65536-byte pages"));
        assert!(of("format=loadline-capture/9\n").contains("its format is `loadline-capture/9`"));
        let error = opened(&whole).unwrap().weigh(&Clock::start()).unwrap_err();
        assert!(error.what.contains("is empty or truncated"), "{error}");
    }
}
