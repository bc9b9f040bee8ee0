//! Finds the machine's HotSpot JVMs: processes that have mapped the code of a `libjvm.so` (`/proc/PID/maps`, man
//! proc_pid_maps). Names are not trusted where mappings are readable, and no process is queried. So this also finds
//! JVMs without hsperfdata, with attaching disabled, in a container, or inside another program.
//!
//! ```text
//! 7f2f7e800000-7f2f7eae3000 r-xp 00400000 fe:00 315638                     /opt/jdk-25/lib/server/libjvm.so
//! ```

use crate::kernel::mapping::{Line, each_line};
use crate::kernel::process::{Stat, strings, ticks_per_s};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::DirEntryExt;
use std::path::Path;

/// Maximum number of processes read; Linux hands out no more pids (`PID_MAX_LIMIT`).
const PROCESSES_MAX: usize = 1 << 22;
/// Maximum size of the mappings text that is searched: 1,000,000 mappings with paths of ordinary length.
const MAPS_BYTES_MAX: u64 = 256 << 20;
const PROC: &str = "/proc";
/// The file with HotSpot's code.
const LIBRARY: &str = "libjvm.so";
/// Bytes read of a command line when searching only for a name.
const ARGUMENTS_BYTES_MAX: u64 = 256 << 10;

/// The JVMs found among all processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Jvms {
    /// Processes that have mapped HotSpot's code, by pid.
    pub known: Vec<ProcessSummary>,
    /// Processes with unreadable mappings whose program is called `java`, by pid.
    pub perhaps: Vec<ProcessSummary>,
    /// Number of other processes that Loadline has no permission to read.
    pub hidden: u64,
}

/// The publicly visible facts about a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessSummary {
    /// Process id, as Loadline sees it.
    pub pid: u32,
    /// The kernel's name for it, at most 15 bytes.
    pub comm: String,
    /// Its arguments; empty if unreadable.
    pub arguments: Vec<String>,
}

/// The result of reading the mappings of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapped {
    /// It runs HotSpot.
    Hotspot,
    /// It runs something else, or is gone.
    Other,
    /// The mappings are unreadable, or more than any JVM has.
    Hidden,
    /// They could not be read this time, for instance for lack of a descriptor; that says nothing about the process.
    Unread,
}

/// A process to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessCandidate {
    /// Process id, as Loadline sees it.
    pub pid: u32,
    inode: u64,
}

/// Finds JVMs repeatedly without checking every process each time. Checks a young process that is not a JVM again,
/// because launchers become JVMs; checks an older one rarely, because programs can still load a JVM.
#[derive(Debug, Default)]
pub struct Finder {
    /// Checked processes, by pid.
    seen: BTreeMap<u32, LookedAt>,
    turn: u32,
}

#[derive(Debug)]
struct LookedAt {
    /// Its inode in `/proc`, which a later process with the same pid does not share.
    inode: u64,
    mapped: Mapped,
    looks: u32,
}

/// The pids of one search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pids {
    /// JVMs, by pid.
    pub pids: Vec<u32>,
    /// Other processes that Loadline has no permission to read.
    pub hidden: Vec<u32>,
}

/// Number of checks before a process that is not a JVM counts as old.
pub const LOOKS_YOUNG: u32 = 4;
/// Turns between two checks of an old process that is not a JVM.
pub const TURNS_OLD: u32 = 20;

impl Finder {
    /// Returns the processes to check now; the result of each check goes to [`Self::saw`]. Fails if the processes
    /// cannot be listed; in that case, nothing is forgotten.
    pub fn begin(&mut self) -> io::Result<Vec<ProcessCandidate>> {
        self.begin_below(Path::new(PROC))
    }

    fn begin_below(&mut self, proc: &Path) -> io::Result<Vec<ProcessCandidate>> {
        let mut now = HashMap::new();
        for entry in fs::read_dir(proc)?.take(PROCESSES_MAX) {
            let entry = entry?;
            if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) {
                now.insert(pid, entry.ino());
            }
        }
        self.turn = self.turn.wrapping_add(1);
        self.seen.retain(|pid, seen| now.get(pid) == Some(&seen.inode));
        let is_due = |pid: u32| match self.seen.get(&pid) {
            None => true,
            Some(seen) if seen.mapped == Mapped::Hotspot => false,
            Some(seen) => seen.looks < LOOKS_YOUNG || pid.wrapping_add(self.turn).is_multiple_of(TURNS_OLD),
        };
        let due = now.into_iter().filter(|(pid, _)| is_due(*pid)).map(|(pid, inode)| ProcessCandidate { pid, inode });
        let mut due: Vec<ProcessCandidate> = due.collect();
        due.sort_unstable();
        Ok(due)
    }

    /// Records the result of a check.
    pub fn saw(&mut self, ProcessCandidate { pid, inode }: ProcessCandidate, mapped: Mapped) {
        if mapped != Mapped::Unread {
            let looks = self.seen.get(&pid).map_or(0, |seen| seen.looks).saturating_add(1);
            self.seen.insert(pid, LookedAt { inode, mapped, looks });
        }
    }

    /// Returns the processes found so far.
    pub fn pids(&self) -> Pids {
        let of = |mapped: Mapped| self.seen.iter().filter(move |(_, seen)| seen.mapped == mapped).map(|(pid, _)| *pid);
        Pids { pids: of(Mapped::Hotspot).collect(), hidden: of(Mapped::Hidden).collect() }
    }

    /// Checks all processes that are due in a directory such as `/proc`.
    pub fn find_below(&mut self, proc: &Path) -> io::Result<Pids> {
        for candidate in self.begin_below(proc)? {
            self.saw(candidate, mapped(&proc.join(candidate.pid.to_string())));
        }
        Ok(self.pids())
    }
}

impl ProcessCandidate {
    /// Checks the process. May block if a file system of the process does not respond.
    pub fn look(self) -> Mapped {
        mapped(&Path::new(PROC).join(self.pid.to_string()))
    }
}

/// Checks all processes visible to Loadline, including those in other containers and namespaces. Reading the mappings
/// costs a process only its mmap lock while the kernel writes them.
pub fn find() -> io::Result<Jvms> {
    find_below(Path::new(PROC))
}

fn find_below(proc: &Path) -> io::Result<Jvms> {
    let Pids { pids, hidden } = Finder::default().find_below(proc)?;
    let found = |pid: u32| found(&proc.join(pid.to_string()), pid);
    let (perhaps, hidden): (Vec<_>, Vec<_>) = hidden.into_iter().map(found).partition(is_called_java);
    Ok(Jvms { known: pids.into_iter().map(found).collect(), perhaps, hidden: hidden.len() as u64 })
}

/// Whether the process in this directory of `/proc` has HotSpot's code mapped now.
fn mapped(folder: &Path) -> Mapped {
    let mut file = match File::open(folder.join("maps")) {
        Ok(file) => file.take(MAPS_BYTES_MAX),
        Err(cause) => return unread(&cause),
    };
    let mut is_found = false;
    // Nothing more is read once it is found.
    let read = each_line(&mut file, |line| {
        is_found = runs_hotspot(line);
        if is_found { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
    });
    match read {
        _ if is_found => Mapped::Hotspot,
        Err(cause) => unread(&cause),
        // The text beyond the limit may still name HotSpot.
        Ok(()) if file.limit() == 0 => Mapped::Hidden,
        Ok(()) => Mapped::Other,
    }
}

fn unread(cause: &io::Error) -> Mapped {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => Mapped::Hidden,
        // A process that has just ended is not a JVM.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Mapped::Other,
        _ if cause.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Mapped::Other,
        _ => Mapped::Unread,
    }
}

/// Whether a line maps HotSpot's code: a debugger maps the file to read it; only a JVM executes it. Nearly all lines
/// are for other files, so a search for the library's name comes before parsing.
fn runs_hotspot(line: &str) -> bool {
    let mapping = line.contains(LIBRARY).then(|| Line::parse(line.trim_end())).flatten();
    mapping.is_some_and(|one| one.perms.as_bytes().get(2) == Some(&b'x') && one.file_name() == LIBRARY)
}

fn found(folder: &Path, pid: u32) -> ProcessSummary {
    let read = |name: &str| {
        let mut bytes = Vec::new();
        let read =
            File::open(folder.join(name)).and_then(|file| file.take(ARGUMENTS_BYTES_MAX).read_to_end(&mut bytes));
        // A file truncated by an error is useless.
        if read.is_ok() { bytes } else { Vec::new() }
    };
    let stat = Stat::parse(&String::from_utf8_lossy(&read("stat")), ticks_per_s());
    ProcessSummary { pid, comm: stat.map(|stat| stat.comm).unwrap_or_default(), arguments: strings(&read("cmdline")) }
}

/// Whether the program, or its first thread, has the launcher's name.
fn is_called_java(process: &ProcessSummary) -> bool {
    let program = process.arguments.first().and_then(|word| word.rsplit('/').next());
    process.comm == "java" || program == Some("java")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mapping::LINE_BYTES_MAX;
    use std::path::PathBuf;
    use tempfile::TempDir;

    const CODE: &str = "7f2f7e800000-7f2f7eae3000 r-xp 00400000 fe:00 315638   /opt/jdk 25/lib/server/libjvm.so";

    /// A generated `/proc`.
    struct Proc(TempDir);

    impl Proc {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn process(&self, pid: &str, comm: &str, arguments: &str) -> PathBuf {
            let folder = self.0.path().join(pid);
            fs::create_dir(&folder).unwrap();
            let fields = "S 1 7 7 0 -1 0 8 0 3 0 150 50 30 12 20 0 1 0 99 0";
            fs::write(folder.join("stat"), format!("{pid} ({comm}) {fields}\n")).unwrap();
            fs::write(folder.join("cmdline"), arguments.replace(' ', "\0")).unwrap();
            folder
        }

        fn mapping(&self, pid: &str, comm: &str, arguments: &str, maps: &str) {
            fs::write(self.process(pid, comm, arguments).join("maps"), maps).unwrap();
        }

        fn pids(&self) -> Vec<u32> {
            find_below(self.0.path()).unwrap().known.iter().map(|jvm| jvm.pid).collect()
        }
    }

    #[test]
    fn a_jvm_is_found_by_its_mapped_code() {
        let proc = Proc::new();
        proc.mapping("30", "launcher", "/opt/app/launcher", &format!("1000-2000 rw-p 0 0:0 0\n{CODE}\n"));
        proc.mapping("7", "java", "java -jar a.jar", &format!("{CODE} (deleted)\n"));
        proc.mapping("8", "java", "java", "1000-2000 r-xp 0 0:0 7 /usr/bin/java\n");
        proc.mapping("9", "gdb", "gdb", &CODE.replace("r-xp", "r--p"));
        proc.mapping("10", "x", "x", "1000-2000 r-xp 0 0:0 7 /x/libjvm.so.debug\n1000-2000 r-xp 0 0:0 7 /notlibjvm.so");
        proc.process("11", "ended", "");
        fs::create_dir(proc.0.path().join("self")).unwrap();
        assert_eq!(proc.pids(), [7, 30]);
        let found = find_below(proc.0.path()).unwrap();
        assert_eq!((found.perhaps.len(), found.hidden), (0, 0));
        assert_eq!((found.known[0].comm.as_str(), found.known[0].arguments.len()), ("java", 3));
        assert!(find_below(&proc.0.path().join("nowhere")).is_err(), "a missing /proc is an error, not an empty list");
    }

    #[test]
    fn truncated_and_long_mappings_are_read() {
        let text = format!("1000-2000 rw-p 0 0:0 0\n{CODE}\n");
        for end in 0..=text.len() {
            let proc = Proc::new();
            proc.mapping("5", "java", "java", &text[..end]);
            let whole = end >= text.trim_end().len();
            assert_eq!(proc.pids(), if whole { vec![5] } else { vec![] }, "{end}");
        }
        let proc = Proc::new();
        let long = format!("1000-2000 r-xp 0 0:0 7 /{}/libjvm.so\n{CODE}\n", "x".repeat(3 * LINE_BYTES_MAX));
        proc.mapping("5", "java", "java", &long);
        assert_eq!(proc.pids(), [5]);
    }

    #[test]
    fn old_processes_are_rarely_checked() {
        let proc = Proc::new();
        (1..=1_000).for_each(|pid: u32| fs::create_dir(proc.0.path().join(pid.to_string())).unwrap());
        let looked_at = |finder: &mut Finder| {
            let looks = |finder: &Finder| finder.seen.values().map(|seen| seen.looks).sum::<u32>();
            let before = looks(finder);
            finder.find_below(proc.0.path()).unwrap();
            looks(finder) - before
        };
        let mut finder = Finder::default();
        let young: Vec<u32> = (0..LOOKS_YOUNG).map(|_| looked_at(&mut finder)).collect();
        assert_eq!(young, [1_000; LOOKS_YOUNG as usize]);
        let old: Vec<u32> = (0..TURNS_OLD).map(|_| looked_at(&mut finder)).collect();
        assert_eq!(old, [50; TURNS_OLD as usize]);
        assert!(finder.seen.values().all(|seen| seen.looks == LOOKS_YOUNG + 1), "every process is remembered");
        // An old launcher becomes a JVM: found within those turns.
        fs::write(proc.0.path().join("711/maps"), CODE).unwrap();
        assert!((0..TURNS_OLD).any(|_| finder.find_below(proc.0.path()).unwrap().pids == [711]));
        assert_eq!(finder.find_below(proc.0.path()).unwrap().pids, [711]);
        // Neither a failed search nor a failed read of one process's mappings forgets anything.
        assert!(finder.find_below(&proc.0.path().join("nowhere")).is_err());
        assert_eq!(finder.pids().pids, [711]);
        finder.saw(ProcessCandidate { pid: 711, inode: 1 }, unread(&Errno::MFILE.into()));
        assert_eq!(finder.pids().pids, [711]);
        assert_eq!(unread(&Errno::SRCH.into()), Mapped::Other);
    }

    #[test]
    fn unreadable_processes_are_classified_by_name() {
        let found = |comm: &str, arguments: &[&str]| ProcessSummary {
            pid: 1,
            comm: comm.to_owned(),
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
        };
        assert!(is_called_java(&found("java", &[])));
        assert!(is_called_java(&found("main", &["/opt/jdk/bin/java", "-jar", "a.jar"])));
        assert!(!is_called_java(&found("javac", &["javac"])) && !is_called_java(&found("", &[])));
    }

    #[test]
    fn the_test_process_is_not_listed_as_a_jvm() {
        assert!(find().unwrap().known.iter().all(|jvm| jvm.pid != std::process::id()));
    }

    #[test]
    fn a_jvm_behind_36_mb_of_mappings_is_found() {
        let proc = Proc::new();
        let line = "1000-2000 r--s 00000000 fe:00 7    /index/segment/of/a/very/long/name/that/is/mapped/again.cfs\n";
        let maps = line.repeat((36 << 20) / line.len()) + CODE + "\n";
        proc.mapping("5", "java", "java", &maps);
        assert_eq!(proc.pids(), [5]);
    }
}
