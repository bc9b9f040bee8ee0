//! Which processes of the machine are HotSpot JVMs: those that have mapped the code of a `libjvm.so` (`/proc/PID/maps`,
//! man proc_pid_maps). No name is trusted where the mappings can be read, and none is asked anything: a JVM without
//! hsperfdata, with attaching disabled, in a container or inside of another program is found as well.
//!
//! ```text
//! 7f2f7e800000-7f2f7eae3000 r-xp 00400000 fe:00 315638                     /opt/jdk-25/lib/server/libjvm.so
//! ```

use crate::kernel::mapping::{MAPS_BYTES_MAX, Mapping};
use crate::kernel::process::{Stat, strings, ticks_per_s};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::DirEntryExt;
use std::path::Path;

/// Processes looked at; Linux gives out no more pids than this (`PID_MAX_LIMIT`).
const PROCESSES_MAX: usize = 1 << 22;
/// A path of a mapping has at most 4,096 bytes, each written as four where it is escaped.
const LINE_BYTES_MAX: usize = 20 << 10;
/// The file of HotSpot's code.
const LIBRARY: &str = "libjvm.so";
/// What is read of a command line; it is looked at for a name only.
const ARGUMENTS_BYTES_MAX: u64 = 256 << 10;

/// What a look at all processes found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Jvms {
    /// Processes that have mapped the code of HotSpot, by pid.
    pub known: Vec<Found>,
    /// Processes whose mappings may not be read and whose program is called `java`, by pid.
    pub perhaps: Vec<Found>,
    /// How many further processes may not be looked into.
    pub hidden: u64,
}

/// A process with what everybody may see of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// Process id, as seen from here.
    pub pid: u32,
    /// The kernel's name of it, at most 15 bytes.
    pub comm: String,
    /// Its arguments; empty where they may not be read.
    pub arguments: Vec<String>,
}

/// What the mappings of a process say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mapped {
    Hotspot,
    Other,
    /// They may not be read.
    Hidden,
}

/// Finds JVMs again and again without looking at every process each time: one that is none is looked at again while it
/// is young, since launchers become JVMs, and seldom later, since programs may load one.
#[derive(Debug, Default)]
pub struct Finder {
    /// Processes that are no JVMs, by pid: their inode in `/proc`, which a process that takes the pid does not share,
    /// and how often they were looked at.
    others: HashMap<u32, (u64, u32)>,
    known: HashMap<u32, u64>,
    turn: u32,
}

/// What [`Finder::find`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pids {
    /// JVMs, by pid.
    pub pids: Vec<u32>,
    /// Further processes, which may not be looked into.
    pub hidden: Vec<u32>,
}

/// Looks at a process that is no JVM before it counts as old, and turns between two looks at an old one.
const LOOKS_YOUNG: u32 = 4;
const TURNS_OLD: u32 = 20;

impl Finder {
    /// The JVMs that are there now.
    pub fn find(&mut self) -> Pids {
        self.find_below(Path::new("/proc"))
    }

    fn find_below(&mut self, proc: &Path) -> Pids {
        let Ok(entries) = fs::read_dir(proc) else { return Pids::default() };
        let process = |entry: fs::DirEntry| Some((entry.file_name().to_str()?.parse().ok()?, entry.ino()));
        let mut now: Vec<(u32, u64)> = entries.flatten().take(PROCESSES_MAX).filter_map(process).collect();
        now.sort_unstable();
        self.turn = self.turn.wrapping_add(1);
        let (mut others, mut known, mut found) = (HashMap::new(), HashMap::new(), Pids::default());
        for (pid, inode) in now {
            let looks = self.others.get(&pid).filter(|(other, _)| *other == inode).map_or(0, |(_, looks)| *looks);
            if self.known.get(&pid) == Some(&inode) {
                known.insert(pid, inode);
                found.pids.push(pid);
            } else if looks >= LOOKS_YOUNG && !pid.wrapping_add(self.turn).is_multiple_of(TURNS_OLD) {
                others.insert(pid, (inode, looks));
            } else {
                match mapped(&proc.join(pid.to_string())) {
                    Mapped::Hotspot => {
                        known.insert(pid, inode);
                        found.pids.push(pid);
                    }
                    Mapped::Hidden => found.hidden.push(pid),
                    Mapped::Other => _ = others.insert(pid, (inode, looks.saturating_add(1))),
                }
            }
        }
        (self.others, self.known) = (others, known);
        found
    }
}

/// Looks at all processes that can be seen from here, those of other containers and namespaces too. Reading the
/// mappings costs a process nothing but its mapping lock, for as long as the kernel writes them down.
pub fn find() -> Jvms {
    find_below(Path::new("/proc"))
}

fn find_below(proc: &Path) -> Jvms {
    let Pids { pids, hidden } = Finder::default().find_below(proc);
    let found = |pid: u32| found(&proc.join(pid.to_string()), pid);
    let (perhaps, hidden): (Vec<_>, Vec<_>) = hidden.into_iter().map(found).partition(is_called_java);
    Jvms { known: pids.into_iter().map(found).collect(), perhaps, hidden: hidden.len() as u64 }
}

/// Whether the process in this folder of `/proc` has mapped the code of HotSpot now.
fn mapped(folder: &Path) -> Mapped {
    let file = match File::open(folder.join("maps")) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => return Mapped::Hidden,
        // A process that has gone meanwhile is none.
        Err(_) => return Mapped::Other,
    };
    let (mut file, mut lines) = (file.take(MAPS_BYTES_MAX), Vec::with_capacity(LINE_BYTES_MAX));
    loop {
        let before = lines.len();
        match file.by_ref().take((LINE_BYTES_MAX - before) as u64).read_to_end(&mut lines) {
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => return Mapped::Hidden,
            Err(_) => return Mapped::Other,
        }
        let is_end = lines.len() < LINE_BYTES_MAX;
        // The last line may go on. One that is longer than any that the kernel writes is no mapping.
        let whole = match memchr::memrchr(b'\n', &lines) {
            Some(end) if !is_end => end + 1,
            _ => lines.len(),
        };
        if runs_hotspot(&lines[..whole]) {
            return Mapped::Hotspot;
        }
        if is_end {
            return Mapped::Other;
        }
        lines.drain(..whole);
    }
}

/// Whether one of these lines is a mapping of HotSpot's code. Nearly all are of other files, which a look at the bytes
/// tells.
fn runs_hotspot(lines: &[u8]) -> bool {
    memchr::memmem::find_iter(lines, LIBRARY).any(|at| {
        let start = memchr::memrchr(b'\n', &lines[..at]).map_or(0, |end| end + 1);
        let end = memchr::memchr(b'\n', &lines[at..]).map_or(lines.len(), |end| at + end);
        let line = String::from_utf8_lossy(&lines[start..end]);
        Mapping::parse(line.trim_end()).is_some_and(|one| is_hotspot(&one))
    })
}

/// A debugger maps the file to read it; only a JVM runs it.
fn is_hotspot(mapping: &Mapping) -> bool {
    mapping.perms.as_bytes().get(2) == Some(&b'x') && mapping.file_name() == LIBRARY
}

fn found(folder: &Path, pid: u32) -> Found {
    let read = |name: &str| {
        let mut bytes = Vec::new();
        let read =
            File::open(folder.join(name)).and_then(|file| file.take(ARGUMENTS_BYTES_MAX).read_to_end(&mut bytes));
        // A file that is cut short by an error is as good as none.
        if read.is_ok() { bytes } else { Vec::new() }
    };
    let stat = Stat::parse(&String::from_utf8_lossy(&read("stat")), ticks_per_s());
    Found { pid, comm: stat.map(|stat| stat.comm).unwrap_or_default(), arguments: strings(&read("cmdline")) }
}

/// Whether the program, or its first thread, goes by the name of the launcher.
fn is_called_java(process: &Found) -> bool {
    let program = process.arguments.first().and_then(|word| word.rsplit('/').next());
    process.comm == "java" || program == Some("java")
}

#[cfg(test)]
mod tests {
    use super::*;
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
            find_below(self.0.path()).known.iter().map(|jvm| jvm.pid).collect()
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
        let found = find_below(proc.0.path());
        assert_eq!((found.perhaps.len(), found.hidden), (0, 0));
        assert_eq!((found.known[0].comm.as_str(), found.known[0].arguments.len()), ("java", 3));
        assert_eq!(find_below(&proc.0.path().join("nowhere")), Jvms::default());
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
            let looks = |finder: &Finder| finder.others.values().map(|(_, looks)| *looks).sum::<u32>();
            let before = looks(finder);
            finder.find_below(proc.0.path());
            looks(finder) - before
        };
        let mut finder = Finder::default();
        let young: Vec<u32> = (0..LOOKS_YOUNG).map(|_| looked_at(&mut finder)).collect();
        assert_eq!(young, [1_000; LOOKS_YOUNG as usize]);
        let old: Vec<u32> = (0..TURNS_OLD).map(|_| looked_at(&mut finder)).collect();
        assert_eq!(old, [50; TURNS_OLD as usize]);
        assert!(finder.others.values().all(|(_, looks)| *looks == LOOKS_YOUNG + 1), "and none is forgotten");
        // A launcher that is old becomes a JVM: found within those turns.
        fs::write(proc.0.path().join("711/maps"), CODE).unwrap();
        assert!((0..TURNS_OLD).any(|_| finder.find_below(proc.0.path()).pids == [711]));
        assert_eq!(finder.find_below(proc.0.path()).pids, [711]);
    }

    /// What a find costs among ten thousand processes of 40 mappings each, for `bench/watch.sh`.
    #[test]
    #[ignore = "a measurement; bench/watch.sh runs it"]
    fn a_find_among_ten_thousand_processes() {
        let proc = Proc::new();
        let maps = "7f2f7e800000-7f2f7eae3000 r-xp 00400000 fe:00 315638   /usr/lib/libc.so.6\n".repeat(40);
        for pid in 1..=10_000 {
            let folder = proc.0.path().join(pid.to_string());
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("maps"), &maps).unwrap();
        }
        let (clock, mut finder) = (crate::clock::Clock::start(), Finder::default());
        let mut took = || {
            let began = clock.now();
            finder.find_below(proc.0.path());
            (clock.now() - began).as_secs_f64() * 1e3
        };
        let young = took();
        (1..LOOKS_YOUNG).for_each(|_| _ = took());
        let old = (0..TURNS_OLD).map(|_| took()).fold(0.0, f64::max);
        println!("| a find among 10,000 processes: {young:.1} ms the first four times, then {old:.1} ms at most |");
    }

    #[test]
    fn what_may_not_be_read_goes_by_its_name() {
        let found = |comm: &str, arguments: &[&str]| Found {
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
        assert!(find().known.iter().all(|jvm| jvm.pid != std::process::id()));
    }
}
