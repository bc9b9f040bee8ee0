//! Which processes of the machine are HotSpot JVMs: those that have mapped the code of a `libjvm.so` (`/proc/PID/maps`,
//! man proc_pid_maps). No name is trusted where the mappings can be read, and none is asked anything: a JVM without
//! hsperfdata, with attaching disabled, in a container or inside of another program is found as well.
//!
//! ```text
//! 7f2f7e800000-7f2f7eae3000 r-xp 00400000 fe:00 315638                     /opt/jdk-25/lib/server/libjvm.so
//! ```

use crate::kernel::mapping::{MAPS_BYTES_MAX, Mapping};
use crate::kernel::process::{Stat, strings, ticks_per_s};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Processes looked at; Linux gives out no more pids than this (`PID_MAX_LIMIT`).
const PROCESSES_MAX: usize = 1 << 22;
/// A path of a mapping has at most 4,096 bytes, each written as four where it is escaped.
const LINE_BYTES_MAX: u64 = 20 << 10;
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

/// Looks at all processes that can be seen from here, those of other containers and namespaces too. Reading the
/// mappings costs a process nothing but its mapping lock, for as long as the kernel writes them down.
pub fn find() -> Jvms {
    find_below(Path::new("/proc"))
}

fn find_below(proc: &Path) -> Jvms {
    let Ok(entries) = fs::read_dir(proc) else { return Jvms::default() };
    let mut pids: Vec<u32> =
        entries.flatten().take(PROCESSES_MAX).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    let mut jvms = Jvms::default();
    for pid in pids {
        let folder = proc.join(pid.to_string());
        match mapped(&folder) {
            Mapped::Hotspot => jvms.known.push(found(&folder, pid)),
            Mapped::Other => {}
            Mapped::Hidden => match found(&folder, pid) {
                java if is_called_java(&java) => jvms.perhaps.push(java),
                _ => jvms.hidden += 1,
            },
        }
    }
    jvms
}

/// Whether the process in this folder of `/proc` has mapped the code of HotSpot now.
fn mapped(folder: &Path) -> Mapped {
    let file = match File::open(folder.join("maps")) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => return Mapped::Hidden,
        // A process that has gone meanwhile is none.
        Err(_) => return Mapped::Other,
    };
    let mut lines = BufReader::new(file.take(MAPS_BYTES_MAX));
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) => return Mapped::Other,
            Ok(_) if Mapping::parse(String::from_utf8_lossy(&line).trim_end()).is_some_and(|one| is_hotspot(&one)) => {
                return Mapped::Hotspot;
            }
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => return Mapped::Hidden,
            Err(_) => return Mapped::Other,
        }
    }
}

/// A debugger maps the file to read it; only a JVM runs it.
fn is_hotspot(mapping: &Mapping) -> bool {
    mapping.perms.as_bytes().get(2) == Some(&b'x') && mapping.file_name() == "libjvm.so"
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
        let long = format!("1000-2000 r-xp 0 0:0 7 /{}/libjvm.so\n{CODE}\n", "x".repeat(3 * LINE_BYTES_MAX as usize));
        proc.mapping("5", "java", "java", &long);
        assert_eq!(proc.pids(), [5]);
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
