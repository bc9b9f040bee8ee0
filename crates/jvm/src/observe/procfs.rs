//! A process by its folder in `/proc` (man 5 proc), opened once: a pid that is used again cannot be mistaken for it,
//! because every read goes through that folder's descriptor, and the kernel answers ESRCH once the process is gone.
//!
//! The small files stay open and are read again from their beginning: 4–15 µs a read, nothing allocated.

use super::{Read, Reading, Unavailable};
use crate::kernel::process::{Stat, Statm, Status, page_size, schedstat_cpu, strings, ticks_per_s};
use loadline_base::clock::Clock;
use nix::time::ClockId;
use nix::unistd::Pid;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, StatxFlags, openat, readlinkat, statx};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// `/proc/PID/{cmdline,environ}` are bounded by the kernel's stack limit for arguments, usually 2 MiB.
const ARGUMENTS_MAX: u64 = 8 << 20;
/// Bytes read of arguments in which only a name is looked for.
const ARGUMENTS_START: u64 = 256 << 10;
/// `status` has about 1.5 KiB, more with many CPUs, NUMA nodes and groups.
const STATUS_MAX: usize = 8 << 10;
/// The wanted lines of a thread's status may come after the list of all its groups.
const THREAD_STATUS_MAX: u64 = 1 << 20;
/// `stat` has some 300 bytes.
const STAT_MAX: u64 = 2048;
/// Three numbers of 20 digits at most.
const SCHEDSTAT_MAX: u64 = 64;
/// A name has 15 bytes and the end of its line.
const NAME_MAX: u64 = 64;

/// Most files of `/proc` that are read once have fewer bytes.
const SMALL_FILE_BYTES: u64 = 4096;

/// A running process.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    folder: OwnedFd,
    /// Opened when it is first asked for.
    statm: OnceLock<File>,
    status: File,
    stat: File,
    start_ticks: u64,
    is_copied: bool,
}

impl Process {
    /// Opens a process by its pid as seen from here.
    pub fn open(pid: u32) -> Result<Self, Unavailable> {
        Self::open_at(pid, Path::new("/proc"), false)
    }

    /// Opens the copy of a process: `proc` has a folder for each, with copies of its files. They are read as those of a
    /// living process; a copy is not held, asked or signalled, and has no memory.
    pub fn open_copy(pid: u32, proc: &Path) -> Result<Self, Unavailable> {
        Self::open_at(pid, proc, true)
    }

    fn open_at(pid: u32, proc: &Path, is_copied: bool) -> Result<Self, Unavailable> {
        let opened = || -> io::Result<Self> {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = openat(CWD, proc.join(pid.to_string()), flags, Mode::empty())?;
            let open = |name: &str| open_below(folder.as_fd(), name);
            let (status, stat) = (open("status")?, open("stat")?);
            let mut process = Self { pid, folder, statm: OnceLock::new(), status, stat, start_ticks: 0, is_copied };
            process.start_ticks = process.stat_now()?.start_ticks;
            Ok(process)
        };
        opened().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => Unavailable::new("process", format!("there is no process {pid}")),
            _ => Unavailable::io("process")(e),
        })
    }

    /// Whether this is a copy: what lives here under the same pid is another process.
    pub fn is_copied(&self) -> bool {
        self.is_copied
    }

    /// Refuses a copy what only a living process has.
    pub(super) fn must_live(&self, source: &'static str) -> Result<(), Unavailable> {
        if self.is_copied { Err(Unavailable::new(source, "a capture has none")) } else { Ok(()) }
    }

    /// The pid as seen from here.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Clock ticks between boot and the start of the process.
    pub fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// Whether this very process still runs. A zombie does not.
    pub fn is_alive(&self) -> bool {
        self.stat_now().is_ok_and(|stat| !stat.has_ended() && stat.start_ticks == self.start_ticks)
    }

    /// Whether it has ended, a zombie too. A failed look says nothing of that.
    pub fn has_gone(&self) -> bool {
        match self.stat_now() {
            Ok(stat) => stat.has_ended() || stat.start_ticks != self.start_ticks,
            Err(cause) => cause.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()),
        }
    }

    /// RSS at its cheapest.
    pub fn statm(&self, clock: &Clock) -> Read<Statm> {
        let file = match self.statm.get() {
            Some(file) => file,
            None => {
                let file = open_below(self.folder(), "statm").map_err(Unavailable::io("statm"))?;
                self.statm.get_or_init(|| file)
            }
        };
        read_again::<256, _>("statm", file, clock, |text| Statm::parse(text, page_size()))
    }

    /// RSS by kind, its peak, threads, owner.
    pub fn status(&self, clock: &Clock) -> Read<Status> {
        read_again::<STATUS_MAX, _>("status", &self.status, clock, Status::parse)
    }

    /// The number of its threads by the links of its folder `task` (`proc_task_getattr`, fs/proc/base.c): two, and one
    /// for each thread. `status` says the same and takes ten times as long. `None` once the process has gone.
    pub fn threads_count(&self) -> Option<u64> {
        let links = statx(self.folder(), "task", AtFlags::empty(), StatxFlags::NLINK).ok()?.stx_nlink;
        u64::from(links).checked_sub(2)
    }

    /// CPU time and state.
    pub fn stat(&self, clock: &Clock) -> Read<Stat> {
        Reading::take(clock, || self.stat_now().map_err(Unavailable::io("stat")))
    }

    /// CPU time of all its threads, including those that ended. Read from the process's CPU clock, which counts ns (man
    /// clock_getcpuclockid), or else from `stat`, which counts ticks of 10 ms.
    pub fn cpu_time(&self, clock: &Clock) -> Option<Duration> {
        self.must_live("CPU time").ok()?;
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?);
        match ClockId::pid_cpu_clock_id(pid).and_then(ClockId::now) {
            // The pid may be that of another process by now.
            Ok(time) if self.is_alive() => Some(Duration::from(time)),
            _ => self.stat(clock).ok().map(|stat| stat.value.cpu()),
        }
    }

    fn stat_now(&self) -> io::Result<Stat> {
        let mut buffer = [0; 2048];
        let text = read_from_start(&self.stat, &mut buffer)?;
        Stat::parse(&String::from_utf8_lossy(text), ticks_per_s())
            .ok_or_else(|| io::Error::other("not in a known form"))
    }

    /// The arguments it was started with, as it sees them now. Empty for a zombie.
    pub fn cmdline(&self) -> Result<Vec<String>, Unavailable> {
        self.strings("cmdline", ARGUMENTS_MAX)
    }

    /// The first of its arguments, as many as a name takes to be found: a hostile process may have millions.
    pub fn cmdline_start(&self) -> Result<Vec<String>, Unavailable> {
        self.strings("cmdline", ARGUMENTS_START)
    }

    /// The environment it was started with, `NAME=value` each.
    pub fn environ(&self) -> Result<Vec<String>, Unavailable> {
        self.strings("environ", ARGUMENTS_MAX)
    }

    fn strings(&self, name: &'static str, max: u64) -> Result<Vec<String>, Unavailable> {
        self.read_below(name, max).map(|bytes| strings(&bytes)).map_err(Unavailable::io(name))
    }

    /// The program file, as named in the process's own mount namespace.
    pub fn exe(&self) -> Result<PathBuf, Unavailable> {
        self.link("exe").map_err(Unavailable::io("exe"))
    }

    /// The ids of its threads, as seen from here.
    pub fn threads(&self) -> Result<Vec<u32>, Unavailable> {
        Ok(self.numbers_in("task")?.collect())
    }

    /// CPU time, state and faults of one of its threads; `None` once it has gone.
    pub(super) fn thread_stat(&self, tid: u32) -> Option<Stat> {
        Stat::parse(&self.text_below(&format!("task/{tid}/stat"), STAT_MAX).ok()?, ticks_per_s())
    }

    /// The name of one of its threads as the kernel keeps it; `None` once it has gone.
    pub(super) fn thread_name(&self, tid: u32) -> Option<String> {
        let name = self.text_below(&format!("task/{tid}/comm"), NAME_MAX).ok()?;
        Some(name.trim_end_matches('\n').to_owned())
    }

    /// CPU time of one of its threads to the ns, or in ticks where the kernel counts no other; `None` once it has gone.
    pub(super) fn thread_cpu(&self, tid: u32) -> Option<Duration> {
        let told = self.text_below(&format!("task/{tid}/schedstat"), SCHEDSTAT_MAX).ok();
        told.and_then(|text| schedstat_cpu(&text)).or_else(|| self.thread_stat(tid).map(|stat| stat.cpu()))
    }

    /// Ids and tracer of one of its threads, with the memory of them all.
    pub(super) fn thread_status(&self, tid: u32) -> Option<Status> {
        Status::parse(&self.text_below(&format!("task/{tid}/status"), THREAD_STATUS_MAX).ok()?)
    }

    /// The entries of `task` or `fd`, which are numbers.
    ///
    /// # Errors
    /// Fails if they may not be listed, or the process has gone.
    pub(super) fn numbers_in(&self, name: &'static str) -> Result<impl Iterator<Item = u32> + use<>, Unavailable> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(self.folder(), name, flags, Mode::empty()).and_then(Dir::new);
        let folder = folder.map_err(Unavailable::io(name))?;
        Ok(folder.filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok()))
    }

    /// Returns the target of a link in its folder: `exe`, `cwd`, `ns/user`.
    pub(super) fn link(&self, name: &str) -> io::Result<PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        let target = readlinkat(&self.folder, name, Vec::new())?;
        Ok(std::ffi::OsString::from_vec(target.into_bytes()).into())
    }

    /// A path in `/proc` to something below its folder, such as `root/tmp`: valid as long as the process lives. Only
    /// tests may open one, since links below it lead out of a container.
    #[cfg(test)]
    pub(super) fn path(&self, below: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{below}", self.pid))
    }

    /// The folder's descriptor, to open files relative to it.
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Reads a file below its folder, at most `max` bytes.
    pub(super) fn read_below(&self, name: &str, max: u64) -> io::Result<Vec<u8>> {
        // A growing buffer would ask the kernel for 32 bytes first.
        let mut bytes = Vec::with_capacity(max.min(SMALL_FILE_BYTES) as usize);
        open_below(self.folder(), name)?.take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// As [`Self::read_below`], as text; bytes that are not UTF-8 are replaced.
    pub(super) fn text_below(&self, name: &str, max: u64) -> io::Result<String> {
        self.read_below(name, max).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Opens a file relative to a folder, for reading. Never waits, even if the file is a pipe.
pub(super) fn open_below(folder: BorrowedFd<'_>, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    Ok(openat(folder, name, flags, Mode::empty())?.into())
}

/// Reads a small file again from its beginning into the buffer.
pub(super) fn read_from_start<'b>(file: &File, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    read_from(file, 0, buffer)
}

/// Reads a file from here on, until the buffer is full or the file ends.
pub(super) fn read_from<'b>(file: &File, start: u64, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let mut end = 0;
    while end < buffer.len() {
        match file.read_at(&mut buffer[end..], start + end as u64)? {
            0 => break,
            n => end += n,
        }
    }
    Ok(&buffer[..end])
}

/// Reads an open `/proc` file again and parses it.
pub(super) fn read_again<const SIZE: usize, T>(
    source: &'static str,
    file: &File,
    clock: &Clock,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Read<T> {
    Reading::take(clock, || {
        let mut buffer = [0; SIZE];
        let text = read_from_start(file, &mut buffer).map_err(Unavailable::io(source))?;
        parse(&String::from_utf8_lossy(text))
            .ok_or_else(|| Unavailable::new(source, "not in a known form; the process may be ending"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_base::units::Bytes;

    #[test]
    fn reads_itself() {
        let (clock, process) = (Clock::start(), Process::open(std::process::id()).unwrap());
        let (statm, status) = (process.statm(&clock).unwrap(), process.status(&clock).unwrap());
        assert!(statm.value.resident > Bytes::kib(500) && status.value.rss > Bytes::kib(500));
        assert!(status.value.threads >= 1 && statm.cost_ns > 0);
        // Others of this process come and go.
        assert!(process.threads_count().unwrap() >= 1);
        assert!(process.is_alive());
        assert!(process.exe().unwrap().is_absolute());
        assert!(!process.cmdline().unwrap().is_empty());
        assert_eq!(process.stat(&clock).unwrap().value.start_ticks, process.start_ticks());
    }

    #[test]
    fn no_process_is_said_plainly() {
        assert_eq!(Process::open(u32::MAX).unwrap_err().why, format!("there is no process {}", u32::MAX));
    }
}
