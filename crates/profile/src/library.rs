//! Finds async-profiler's library and checks whether a JVM can load it.
//!
//! Searches in this order: the given path (the library, or the jar from Maven Central); next to the running program;
//! the newest version in the local Maven repository. A jar contains one library per machine:
//!
//! ```text
//! async-profiler-4.4.jar: linux-arm64/libasyncProfiler.so  linux-x64/libasyncProfiler.so  macos/libasyncProfiler.so
//! ```

use crate::elf::Elf;
use crate::folder::{exists, is_plain, temporary};
use flate2::read::DeflateDecoder;
use loadline_base::bounded;
use loadline_base::clock::Clock;
use loadline_base::error::{Error, Result, plain};
use loadline_jvm::kernel::mapping::Mapping;
use loadline_jvm::observe::maps::{self, Allocator};
use loadline_jvm::observe::own_folder::OwnFolder;
use loadline_jvm::observe::procfs::Process;
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Its file name.
pub const FILE_NAME: &str = "libasyncProfiler.so";
/// The newest version tested, with JDK 17, 25, and 27.
pub const VERSION: &str = "4.4";
/// Path in the local Maven repository.
const IN_REPOSITORY: &str = "tools/profiler/async-profiler";
/// The library of 4.4 is 0.6 MB.
const LIBRARY_BYTES_MAX: u64 = 32 << 20;
/// Maximum size of libjvm and a JVM's C library, whose symbols are read.
const SYSTEM_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of entries in a jar; async-profiler's has 20.
const ENTRIES_MAX: usize = 10_000;
/// Maximum number of functions listed in an error.
const MISSING_MAX: usize = 3;

/// async-profiler's library, ready to be loaded by a JVM on this machine.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    elf: Elf,
    bytes: Vec<u8>,
    /// The directory that it was unpacked into; removed with this value.
    unpacked: Option<OwnFolder>,
}

#[derive(Debug, Clone, Default)]
struct Places {
    /// The running program's directory.
    program: Option<PathBuf>,
    /// The local Maven repository.
    repository: Option<PathBuf>,
}

impl Places {
    fn here() -> Self {
        let program = std::env::current_exe().ok().and_then(|program| program.canonicalize().ok());
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let below_home = || named("HOME").map(|home| home.join(".m2/repository"));
        Self {
            program: program.and_then(|program| program.parent().map(Path::to_path_buf)),
            repository: named("MAVEN_REPO").or_else(below_home),
        }
    }

    /// The best existing file.
    fn candidate(&self) -> Option<PathBuf> {
        let beside = self
            .program
            .iter()
            .flat_map(|folder| [folder.join(FILE_NAME), folder.join("../lib/loadline").join(FILE_NAME)]);
        beside
            .into_iter()
            .find(|path| exists(path))
            .or_else(|| newest_jar(&self.repository.as_ref()?.join(IN_REPOSITORY)))
    }
}

/// The jar of the newest version in a directory of versions.
fn newest_jar(versions: &Path) -> Option<PathBuf> {
    let found = std::fs::read_dir(versions).ok()?.flatten().take(ENTRIES_MAX);
    let jar = |version: OsString| {
        let version = version.into_string().ok()?;
        let jar = versions.join(&version).join(format!("async-profiler-{version}.jar"));
        // A release takes precedence over its release candidates, such as `4.4-rc1`.
        let (numbers, rest) = version.split_once('-').unwrap_or((&version, "~"));
        let numbers: Vec<u64> = numbers.split('.').map(|part| part.parse().unwrap_or(0)).collect();
        exists(&jar).then(|| ((numbers, rest.to_owned()), jar))
    };
    found.filter_map(|entry| jar(entry.file_name())).max().map(|(_, jar)| jar)
}

/// The directory in the jar, such as `linux-x64`; `None` for machines without a library in the jar.
fn folder_in_jar(machine: &str) -> Option<&'static str> {
    match machine {
        "x86_64" => Some("linux-x64"),
        "aarch64" => Some("linux-arm64"),
        _ => None,
    }
}

impl Library {
    /// Finds the library. Checks only the given file; without one, searches the usual places. Fails if there is no such
    /// file, with the command that downloads one, or if it is not a library for this machine.
    pub fn find(given: Option<&Path>) -> Result<Self> {
        Self::find_in(given, &Places::here(), std::env::consts::ARCH)
    }

    fn find_in(given: Option<&Path>, places: &Places, machine: &str) -> Result<Self> {
        let path = given.map(Path::to_path_buf).or_else(|| places.candidate()).ok_or_else(|| {
            let get = format!("mvn dependency:get -Dartifact=tools.profiler:async-profiler:{VERSION}");
            Error::machine(format!(
                "async-profiler ({FILE_NAME}) was not found next to loadline or in the local Maven repository"
            ))
            .hint(format!("get it with `{get}`"))
        })?;
        Self::open(&path, machine)
    }

    fn open(path: &Path, machine: &str) -> Result<Self> {
        let shown = path.display();
        let is_jar = path.extension().is_some_and(|extension| extension == "jar");
        let bytes = match is_jar {
            true => unpack(path, machine)?,
            false => bounded::bytes(path, LIBRARY_BYTES_MAX).map_err(|cause| Error::io("read", path, &cause))?,
        };
        let elf =
            Elf::parse(&bytes).ok_or_else(|| Error::request(format!("{shown} is not a 64-bit native library")))?;
        if elf.machine() != machine {
            let what = format!("{shown} is a library for {}, but this machine is {machine}", elf.machine());
            return Err(Error::request(what));
        }
        if !elf.given.iter().any(|name| name == "Agent_OnAttach") {
            let what = format!("{shown} is not a JVM agent: it has no `Agent_OnAttach`");
            return Err(Error::request(what).hint(format!("specify async-profiler's {FILE_NAME}, or its jar")));
        }
        let whole = std::path::absolute(path).map_err(|cause| Error::io("find", path, &cause))?;
        let mut library = Self { path: whole, elf, bytes, unpacked: None };
        if is_jar || !is_plain(&library.path) {
            let folder = temporary(&[FILE_NAME])?;
            let written = folder.write(FILE_NAME, &library.bytes);
            written.map_err(|cause| Error::io("write", folder.path(), &cause))?;
            library.path = folder.path().join(FILE_NAME);
            library.unpacked = Some(folder);
        }
        Ok(library)
    }

    /// Its path, for a JVM that this program starts, with only characters that options can contain. The file is removed
    /// with this value if it came from a jar or if its own path has other characters.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its contents, to be copied to where a JVM in a container sees them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Checks whether a running JVM can load it: machine and C library. Fails if it cannot, with the machines or C
    /// libraries of both, or if the JVM's mappings cannot be read.
    pub fn fits(&self, process: &Process, clock: &Clock) -> Result<()> {
        let mappings = maps::read(process, clock).map_err(|cause| Error::machine(cause.why))?.value;
        let read = |mapping: &Mapping| {
            let path = format!("/proc/{}/root{}", process.pid(), mapping.file()?);
            Elf::parse(&bounded::bytes(Path::new(&path), SYSTEM_BYTES_MAX).ok()?)
        };
        // After an upgrade, the JVM's file may be gone: then the JVM itself reports what it cannot load.
        let Some(libjvm) = mappings.iter().find(|mapping| mapping.file_name() == "libjvm.so") else {
            return Err(Error::request(format!("process {} has no libjvm.so: it is not a HotSpot JVM", process.pid())));
        };
        if let Some(jvm) = read(libjvm).filter(|jvm| jvm.machine() != self.elf.machine()) {
            let (own, theirs) = (self.elf.machine(), jvm.machine());
            return Err(Error::request(format!("the profiler is built for {own}, but the JVM is for {theirs}")));
        }
        let musl = mappings.iter().find(|mapping| Allocator::of([*mapping]) == Allocator::Musl);
        match musl.and_then(read) {
            Some(musl) => self.fits_musl(&musl),
            None => Ok(()),
        }
    }

    fn fits_musl(&self, musl: &Elf) -> Result<()> {
        let given: std::collections::HashSet<&str> = musl.given.iter().map(String::as_str).collect();
        let missing: Vec<&str> =
            self.elf.wanted.iter().map(String::as_str).filter(|name| !given.contains(name)).take(MISSING_MAX).collect();
        if !self.elf.needs_glibc() || missing.is_empty() {
            return Ok(());
        }
        let what = "the profiler is built for glibc, but the JVM is for musl";
        Err(Error::request(format!("{what}, which has no `{}`", missing.join("`, `")))
            .hint(format!("use async-profiler {VERSION}, which supports both")))
    }
}

fn unpack(jar: &Path, machine: &str) -> Result<Vec<u8>> {
    let shown = jar.display();
    let Some(folder) = folder_in_jar(machine) else {
        return Err(Error::machine(format!(
            "async-profiler has no library for {machine}; it supports x86_64 and aarch64"
        )));
    };
    let wanted = format!("{folder}/{FILE_NAME}");
    let file = bounded::open(jar).map_err(|cause| Error::io("read", jar, &cause))?;
    let refuse = |cause: rawzip::Error| Error::request(format!("{shown} is not a jar: {cause}"));
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_file(file, &mut buffer).map_err(refuse)?;
    let mut entries = archive.entries(&mut buffer);
    for _ in 0..ENTRIES_MAX {
        let Some(entry) = entries.next_entry().map_err(refuse)? else { break };
        let path = entry.file_path();
        let name: &[u8] = path.as_ref();
        if name != wanted.as_bytes() {
            continue;
        }
        let inner = archive.get_entry(entry.wayfinder()).map_err(refuse)?;
        let bytes = match entry.compression_method() {
            CompressionMethod::STORE => bounded::bytes_of(inner.reader(), LIBRARY_BYTES_MAX),
            _ => bounded::bytes_of(DeflateDecoder::new(inner.reader()), LIBRARY_BYTES_MAX),
        };
        return bytes.map_err(|cause| Error::request(format!("{wanted} in {shown} cannot be read: {}", plain(&cause))));
    }
    Err(Error::request(format!("{shown} has no {wanted}"))
        .hint("specify the jar of `tools.profiler:async-profiler`, or its library"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::made_up;
    use loadline_test_support::jar;

    const X86: u16 = 62;
    const ARM: u16 = 183;

    fn agent(machine: u16) -> Vec<u8> {
        made_up(machine, &["libc.so.6"], &["malloc", "gnu_get_libc_version"], &["Agent_OnAttach"])
    }

    #[test]
    fn a_jar_contains_the_machines_library() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b,c.jar");
        let whole =
            jar(&[("linux-x64/libasyncProfiler.so", &agent(X86)), ("linux-arm64/libasyncProfiler.so", &agent(ARM))]);
        std::fs::write(&path, &whole).unwrap();
        let library = Library::open(&path, "aarch64").unwrap();
        let unpacked = library.path().to_owned();
        assert_eq!(std::fs::read(&unpacked).unwrap(), agent(ARM));
        assert!(is_plain(&unpacked));
        drop(library);
        assert!(!exists(unpacked.parent().unwrap()), "the directory is removed with the library");
        let why = Library::open(&path, "riscv64").unwrap_err().what;
        assert_eq!(why, "async-profiler has no library for riscv64; it supports x86_64 and aarch64");
        for cut in (0..whole.len()).step_by(7) {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(Library::open(&path, "aarch64").is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn another_machine_is_rejected_with_both_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, agent(ARM)).unwrap();
        let why = Library::open(&path, "x86_64").unwrap_err().what;
        assert_eq!(why, format!("{} is a library for aarch64, but this machine is x86_64", path.display()));
        std::fs::write(&path, made_up(X86, &[], &[], &["main"])).unwrap();
        let why = Library::open(&path, "x86_64").unwrap_err().what;
        assert!(why.contains("no `Agent_OnAttach`"), "{why}");
        std::fs::write(&path, "text").unwrap();
        let why = Library::open(&path, "x86_64").unwrap_err().what;
        assert!(why.ends_with("is not a 64-bit native library"), "{why}");
    }

    #[test]
    fn a_library_next_to_the_program_precedes_the_newest_in_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join("repository");
        for version in ["4.1", "4.10", "4.10-rc1", "4.9", "5.0"] {
            let place = repository.join(IN_REPOSITORY).join(version);
            std::fs::create_dir_all(&place).unwrap();
            // Maven tried to download this version but failed, so there is no jar.
            if version != "5.0" {
                std::fs::write(place.join(format!("async-profiler-{version}.jar")), "").unwrap();
            }
        }
        let mut places = Places { program: Some(folder.path().join("bin")), repository: Some(repository) };
        let candidate = |places: &Places| places.candidate().unwrap();
        assert!(candidate(&places).ends_with("4.10/async-profiler-4.10.jar"));
        let beside = folder.path().join("bin/../lib/loadline");
        std::fs::create_dir_all(folder.path().join("bin")).unwrap();
        std::fs::create_dir_all(&beside).unwrap();
        std::fs::write(beside.join(FILE_NAME), "").unwrap();
        assert!(candidate(&places).ends_with("lib/loadline/libasyncProfiler.so"));
        places = Places::default();
        let error = Library::find_in(None, &places, "x86_64").unwrap_err();
        assert!(error.hint.unwrap().contains("`mvn dependency:get -Dartifact=tools.profiler:async-profiler:4.4`"));
    }

    #[test]
    fn a_glibc_library_is_rejected_if_musl_lacks_its_functions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, agent(X86)).unwrap();
        let library = Library::open(&path, "x86_64").unwrap();
        let musl = |given: &[&str]| Elf::parse(&made_up(X86, &[], &[], given)).unwrap();
        let why = library.fits_musl(&musl(&["malloc"])).unwrap_err().what;
        assert!(why.ends_with("the JVM is for musl, which has no `gnu_get_libc_version`"), "{why}");
        assert!(library.fits_musl(&musl(&["malloc", "gnu_get_libc_version"])).is_ok());
    }
}
