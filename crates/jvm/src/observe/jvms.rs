//! Which processes of the machine are HotSpot JVMs: those that have mapped the code of a `libjvm.so` (`/proc/PID/maps`,
//! man proc_pid_maps). No name is trusted where the mappings can be read, and none is asked anything: a JVM without
//! hsperfdata, with attaching disabled, in a container or inside of another program is found as well.
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

/// Processes looked at; Linux gives out no more pids than this (`PID_MAX_LIMIT`).
const PROCESSES_MAX: usize = 1 << 22;
/// Text of mappings that is looked through for HotSpot's: 1,000,000 of them with paths of usual length.
const MAPS_BYTES_MAX: u64 = 256 << 20;
const PROC: &str = "/proc";
/// The file of HotSpot's code.
const LIBRARY: &str = "libjvm.so";
/// Bytes read of a command line, in which only a name is looked for.
const ARGUMENTS_BYTES_MAX: u64 = 256 << 10;

/// The JVMs found by a look at all processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Jvms {
    /// Processes that have mapped the code of HotSpot, by pid.
    pub known: Vec<ProcessSummary>,
    /// Processes whose mappings may not be read and whose program is called `java`, by pid.
    pub perhaps: Vec<ProcessSummary>,
    /// How many further processes may not be looked into.
    pub hidden: u64,
}

/// A process with what everybody may see of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessSummary {
    /// Process id, as seen from here.
    pub pid: u32,
    /// The kernel's name of it, at most 15 bytes.
    pub comm: String,
    /// Its arguments; empty where they may not be read.
    pub arguments: Vec<String>,
}

/// The result of reading the mappings of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapped {
    /// It runs HotSpot.
    Hotspot,
    /// It runs something else, or has gone.
    Other,
    /// They may not be read, or are more than any JVM has.
    Hidden,
    /// They could not be read this time, as without a descriptor; that says nothing of the process.
    Unread,
}

/// A process to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessCandidate {
    /// Process id, as seen from here.
    pub pid: u32,
    inode: u64,
}

/// Finds JVMs again and again without looking at every process each time. It looks again at a process that is no JVM
/// while the process is young, since launchers become JVMs. Later it seldom does, since programs may load a JVM.
#[derive(Debug, Default)]
pub struct Finder {
    /// Processes that were looked at, by pid.
    seen: BTreeMap<u32, LookedAt>,
    turn: u32,
}

/// The result of the last look at a process.
#[derive(Debug)]
struct LookedAt {
    /// Its inode in `/proc`, which a process that takes the pid does not share.
    inode: u64,
    mapped: Mapped,
    looks: u32,
}

/// The pids found by a look at all processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pids {
    /// JVMs, by pid.
    pub pids: Vec<u32>,
    /// Further processes, which may not be looked into.
    pub hidden: Vec<u32>,
}

/// Looks at a process that is no JVM before it counts as old.
pub const LOOKS_YOUNG: u32 = 4;
/// Turns between two looks at an old process that is no JVM.
pub const TURNS_OLD: u32 = 20;

impl Finder {
    /// Returns the processes that have to be looked at now; the result of each look goes to [`Self::saw`].
    ///
    /// # Errors
    /// Fails if the processes cannot be listed: then nothing is known of any, and nothing is forgotten.
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

    /// Takes what a look at one of them said.
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

    /// Looks at all processes of a folder such as `/proc` that are due.
    ///
    /// # Errors
    /// Fails if the processes cannot be listed.
    pub fn find_below(&mut self, proc: &Path) -> io::Result<Pids> {
        for candidate in self.begin_below(proc)? {
            self.saw(candidate, mapped(&proc.join(candidate.pid.to_string())));
        }
        Ok(self.pids())
    }
}

impl ProcessCandidate {
    /// Looks at it. A file system of the process that does not answer may keep whoever asks.
    pub fn look(self) -> Mapped {
        mapped(&Path::new(PROC).join(self.pid.to_string()))
    }
}

/// Looks at all processes that can be seen from here, those of other containers and namespaces too. Reading the
/// mappings costs a process nothing but its mapping lock, for as long as the kernel writes them down.
///
/// # Errors
/// Fails if the processes cannot be listed.
pub fn find() -> io::Result<Jvms> {
    find_below(Path::new(PROC))
}

fn find_below(proc: &Path) -> io::Result<Jvms> {
    let Pids { pids, hidden } = Finder::default().find_below(proc)?;
    let found = |pid: u32| found(&proc.join(pid.to_string()), pid);
    let (perhaps, hidden): (Vec<_>, Vec<_>) = hidden.into_iter().map(found).partition(is_called_java);
    Ok(Jvms { known: pids.into_iter().map(found).collect(), perhaps, hidden: hidden.len() as u64 })
}

/// Whether the process in this folder of `/proc` has mapped the code of HotSpot now.
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
        // The text behind the limit may still name HotSpot.
        Ok(()) if file.limit() == 0 => Mapped::Hidden,
        Ok(()) => Mapped::Other,
    }
}

/// Returns what a failure to read the mappings says of the process.
fn unread(cause: &io::Error) -> Mapped {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => Mapped::Hidden,
        // A process that has gone meanwhile is no JVM.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Mapped::Other,
        _ if cause.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Mapped::Other,
        _ => Mapped::Unread,
    }
}

/// Whether a line is a mapping of HotSpot's code: a debugger maps the file to read it; only a JVM runs it. Nearly all
/// lines are of other files, so a search for the library's name comes before the parsing.
fn runs_hotspot(line: &str) -> bool {
    let mapping = line.contains(LIBRARY).then(|| Line::parse(line.trim_end())).flatten();
    mapping.is_some_and(|one| one.perms.as_bytes().get(2) == Some(&b'x') && one.file_name() == LIBRARY)
}

fn found(folder: &Path, pid: u32) -> ProcessSummary {
    let read = |name: &str| {
        let mut bytes = Vec::new();
        let read =
            File::open(folder.join(name)).and_then(|file| file.take(ARGUMENTS_BYTES_MAX).read_to_end(&mut bytes));
        // A file that is cut short by an error is as good as none.
        if read.is_ok() { bytes } else { Vec::new() }
    };
    let stat = Stat::parse(&String::from_utf8_lossy(&read("stat")), ticks_per_s());
    ProcessSummary { pid, comm: stat.map(|stat| stat.comm).unwrap_or_default(), arguments: strings(&read("cmdline")) }
}

/// Whether the program, or its first thread, goes by the name of the launcher.
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

    /// A `/proc` that is made up.
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
    fn a_jvm_is_found_by_the_code_it_runs() {
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
        assert!(find_below(&proc.0.path().join("nowhere")).is_err(), "that is no machine without JVMs");
    }

    #[test]
    fn mappings_cut_anywhere_and_long_ones_do_no_harm() {
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
    fn old_processes_are_not_all_looked_at_again_and_again() {
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
        assert!(finder.seen.values().all(|seen| seen.looks == LOOKS_YOUNG + 1), "and none is forgotten");
        // A launcher that is old becomes a JVM: found within those turns.
        fs::write(proc.0.path().join("711/maps"), CODE).unwrap();
        assert!((0..TURNS_OLD).any(|_| finder.find_below(proc.0.path()).unwrap().pids == [711]));
        assert_eq!(finder.find_below(proc.0.path()).unwrap().pids, [711]);
        // A look that fails forgets nothing, and neither does one that could not read the mappings of one process.
        assert!(finder.find_below(&proc.0.path().join("nowhere")).is_err());
        assert_eq!(finder.pids().pids, [711]);
        finder.saw(ProcessCandidate { pid: 711, inode: 1 }, unread(&Errno::MFILE.into()));
        assert_eq!(finder.pids().pids, [711]);
        assert_eq!(unread(&Errno::SRCH.into()), Mapped::Other);
    }

    #[test]
    fn what_may_not_be_read_goes_by_its_name() {
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
    fn this_process_is_no_jvm() {
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
