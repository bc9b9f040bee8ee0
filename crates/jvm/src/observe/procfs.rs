//! A process's directory in `/proc` (man 5 proc), opened once. A reused pid cannot be mistaken for it, because every
//! read uses that directory's descriptor, and the kernel returns ESRCH once the process is gone.
//!
//! The small files stay open and are reread from the start: 4–15 µs per read, without allocation.

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
/// Bytes read of arguments when searching only for a name.
const ARGUMENTS_START: u64 = 256 << 10;
/// `status` is about 1.5 KiB, more with many CPUs, NUMA nodes, and groups.
const STATUS_MAX: usize = 8 << 10;
/// The wanted lines of a thread's status may follow the list of all its groups.
const THREAD_STATUS_MAX: u64 = 1 << 20;
/// `stat` is about 300 bytes.
const STAT_MAX: u64 = 2048;
/// Three numbers of at most 20 digits.
const SCHEDSTAT_MAX: u64 = 64;
/// A name takes 15 bytes plus a newline.
const NAME_MAX: u64 = 64;

/// Most `/proc` files that are read once are smaller.
const SMALL_FILE_BYTES: u64 = 4096;

/// A running process.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    folder: OwnedFd,
    /// Opened on first use.
    statm: OnceLock<File>,
    status: File,
    stat: File,
    start_ticks: u64,
    is_copied: bool,
}

impl Process {
    /// Opens a process by its pid as Loadline sees it.
    pub fn open(pid: u32) -> Result<Self, Unavailable> {
        Self::open_at(pid, Path::new("/proc"), false)
    }

    /// Opens the copy of a process: `proc` has a directory with copied files per process. They are read like those of a
    /// living process; a copy cannot be paused, queried, or signaled, and has no memory.
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

    /// Whether this is a copy: a live process with the same pid is unrelated.
    pub fn is_copied(&self) -> bool {
        self.is_copied
    }

    /// Returns an error for a copy, which lacks the data of a living process.
    pub(super) fn must_live(&self, source: &'static str) -> Result<(), Unavailable> {
        if self.is_copied { Err(Unavailable::new(source, "a capture does not include it")) } else { Ok(()) }
    }

    /// The pid as Loadline sees it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Clock ticks between boot and the start of the process.
    pub fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// Whether this very process is still running. A zombie is not.
    pub fn is_alive(&self) -> bool {
        self.stat_now().is_ok_and(|stat| !stat.has_ended() && stat.start_ticks == self.start_ticks)
    }

    /// Whether it has ended, zombies included. A failed read does not count as ended.
    pub fn has_gone(&self) -> bool {
        match self.stat_now() {
            Ok(stat) => stat.has_ended() || stat.start_ticks != self.start_ticks,
            Err(cause) => cause.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()),
        }
    }

    /// RSS by the cheapest method.
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

    /// The number of threads, from the link count of its `task` directory (`proc_task_getattr`, fs/proc/base.c): two,
    /// plus one per thread. `status` has the same number and takes ten times as long. `None` once the process is gone.
    pub fn threads_count(&self) -> Option<u64> {
        let links = statx(self.folder(), "task", AtFlags::empty(), StatxFlags::NLINK).ok()?.stx_nlink;
        u64::from(links).checked_sub(2)
    }

    /// CPU time and state.
    pub fn stat(&self, clock: &Clock) -> Read<Stat> {
        Reading::take(clock, || self.stat_now().map_err(Unavailable::io("stat")))
    }

    /// CPU time of all threads, including ended ones. Read from the process's CPU clock in ns (man
    /// clock_getcpuclockid), or else from `stat` in ticks of 10 ms.
    pub fn cpu_time(&self, clock: &Clock) -> Option<Duration> {
        self.must_live("CPU time").ok()?;
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?);
        match ClockId::pid_cpu_clock_id(pid).and_then(ClockId::now) {
            // The pid may belong to another process by now.
            Ok(time) if self.is_alive() => Some(Duration::from(time)),
            _ => self.stat(clock).ok().map(|stat| stat.value.cpu()),
        }
    }

    pub(super) fn stat_now(&self) -> io::Result<Stat> {
        let mut buffer = [0; 2048];
        let text = read_from_start(&self.stat, &mut buffer)?;
        Stat::parse(&String::from_utf8_lossy(text), ticks_per_s())
            .ok_or_else(|| io::Error::other("it has an unknown format"))
    }

    /// The arguments it was started with, as it sees them now. Empty for a zombie.
    pub fn cmdline(&self) -> Result<Vec<String>, Unavailable> {
        self.strings("cmdline", ARGUMENTS_MAX)
    }

    /// The first arguments, enough to find a name: a hostile process may have millions.
    pub fn cmdline_start(&self) -> Result<Vec<String>, Unavailable> {
        self.strings("cmdline", ARGUMENTS_START)
    }

    /// The environment it was started with, as `NAME=value`.
    pub fn environ(&self) -> Result<Vec<String>, Unavailable> {
        self.strings("environ", ARGUMENTS_MAX)
    }

    fn strings(&self, name: &'static str, max: u64) -> Result<Vec<String>, Unavailable> {
        self.read_below(name, max).map(|bytes| strings(&bytes)).map_err(Unavailable::io(name))
    }

    /// The program file in the process's own mount namespace.
    pub fn exe(&self) -> Result<PathBuf, Unavailable> {
        self.link("exe").map_err(Unavailable::io("exe"))
    }

    /// The ids of its threads, as Loadline sees them.
    pub fn threads(&self) -> Result<Vec<u32>, Unavailable> {
        Ok(self.numbers_in("task")?.collect())
    }

    /// CPU time, state, and faults of a thread; `None` once it is gone.
    pub(super) fn thread_stat(&self, tid: u32) -> Option<Stat> {
        Stat::parse(&self.text_below(&format!("task/{tid}/stat"), STAT_MAX).ok()?, ticks_per_s())
    }

    /// A thread's name as the kernel keeps it; `None` once it is gone.
    pub(super) fn thread_name(&self, tid: u32) -> Option<String> {
        let name = self.text_below(&format!("task/{tid}/comm"), NAME_MAX).ok()?;
        Some(name.trim_end_matches('\n').to_owned())
    }

    /// A thread's CPU time in ns, or in ticks if the kernel counts nothing else; `None` once it is gone.
    pub(super) fn thread_cpu(&self, tid: u32) -> Option<Duration> {
        let told = self.text_below(&format!("task/{tid}/schedstat"), SCHEDSTAT_MAX).ok();
        told.and_then(|text| schedstat_cpu(&text)).or_else(|| self.thread_stat(tid).map(|stat| stat.cpu()))
    }

    /// A thread's ids and tracer, with the memory of all threads.
    pub(super) fn thread_status(&self, tid: u32) -> Option<Status> {
        Status::parse(&self.text_below(&format!("task/{tid}/status"), THREAD_STATUS_MAX).ok()?)
    }

    /// The numeric entries of `task` or `fd`. Fails if they cannot be listed, or the process is gone.
    pub(super) fn numbers_in(&self, name: &'static str) -> Result<impl Iterator<Item = u32> + use<>, Unavailable> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(self.folder(), name, flags, Mode::empty()).and_then(Dir::new);
        let folder = folder.map_err(Unavailable::io(name))?;
        Ok(folder.filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok()))
    }

    /// Returns the target of a link in its directory: `exe`, `cwd`, `ns/user`.
    pub(super) fn link(&self, name: &str) -> io::Result<PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        let target = readlinkat(&self.folder, name, Vec::new())?;
        Ok(std::ffi::OsString::from_vec(target.into_bytes()).into())
    }

    /// A path in `/proc` to something below its directory, such as `root/tmp`: valid as long as the process lives. Only
    /// tests may open one, since links below it lead out of a container.
    #[cfg(test)]
    pub(super) fn path(&self, below: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{below}", self.pid))
    }

    /// The directory's descriptor, to open files relative to it.
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Reads a file below its directory, at most `max` bytes.
    pub(super) fn read_below(&self, name: &str, max: u64) -> io::Result<Vec<u8>> {
        // A growing buffer would first ask the kernel for 32 bytes.
        let mut bytes = Vec::with_capacity(max.min(SMALL_FILE_BYTES) as usize);
        open_below(self.folder(), name)?.take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Like [`Self::read_below`], as text; replaces bytes that are not UTF-8.
    pub(super) fn text_below(&self, name: &str, max: u64) -> io::Result<String> {
        self.read_below(name, max).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Opens a file relative to a directory, for reading. Never blocks, even if the file is a pipe.
pub(super) fn open_below(folder: BorrowedFd<'_>, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    Ok(openat(folder, name, flags, Mode::empty())?.into())
}

/// Rereads a small file from the start into the buffer.
pub(super) fn read_from_start<'b>(file: &File, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    read_from(file, 0, buffer)
}

/// Reads a file from `start`, until the buffer is full or the file ends.
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

/// Rereads an open `/proc` file and parses it.
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
            .ok_or_else(|| Unavailable::new(source, "it has an unknown format; the process may be exiting"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_base::units::Bytes;

    #[test]
    fn the_test_process_can_be_read_from_proc() {
        let (clock, process) = (Clock::start(), Process::open(std::process::id()).unwrap());
        let (statm, status) = (process.statm(&clock).unwrap(), process.status(&clock).unwrap());
        assert!(statm.value.resident > Bytes::kib(500) && status.value.rss > Bytes::kib(500));
        assert!(status.value.threads >= 1 && statm.cost_ns > 0);
        // Other threads of this process come and go.
        assert!(process.threads_count().unwrap() >= 1);
        assert!(process.is_alive());
        assert!(process.exe().unwrap().is_absolute());
        assert!(!process.cmdline().unwrap().is_empty());
        assert_eq!(process.stat(&clock).unwrap().value.start_ticks, process.start_ticks());
    }

    #[test]
    fn a_missing_process_is_reported_plainly() {
        assert_eq!(Process::open(u32::MAX).unwrap_err().why, format!("there is no process {}", u32::MAX));
    }
}
