//! The kernel's log, `/dev/kmsg` (Documentation/ABI/testing/dev-kmsg): one record per read, oldest first. Reading needs
//! CAP_SYSLOG if `kernel.dmesg_restrict` is 1.
//!
//! ```text
//! 6,1234,98765432,-;oom-kill:constraint=CONSTRAINT_MEMCG,…
//! ```

use super::Unavailable;
use crate::kernel::oom::Killed;
use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
use rustix::io::{Errno, read};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

const SOURCE: &str = "kernel log";
/// Maximum size of a record (`CONSOLE_EXT_LOG_MAX`).
const RECORD_BYTES_MAX: usize = 8192;
/// Maximum number of records per call, read in about 20 ms. The next call reads the rest.
const RECORDS_MAX: usize = 1 << 14;
/// More than the largest log that a kernel keeps (`log_buf_len`).
const LOG_BYTES_MAX: usize = 64 << 20;
/// Maximum number of kills kept: callers ask for one within moments.
const KILLS_MAX: usize = 64;

/// The kernel's log since it was opened. Each record is read once.
#[derive(Debug)]
pub struct KernelLog {
    records: OwnedFd,
    /// The most recent kills, oldest first.
    kills: VecDeque<Killed>,
}

impl KernelLog {
    /// Opens the log after its last record.
    pub fn open() -> Result<Self, Unavailable> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let records = open("/dev/kmsg", flags, Mode::empty()).map_err(Unavailable::io(SOURCE))?;
        seek(&records, SeekFrom::End(0)).map_err(Unavailable::io(SOURCE))?;
        Ok(Self { records, kills: VecDeque::new() })
    }

    /// Reads the records written since the last call. Call it regularly, so little is left to read at the moment of a
    /// kill.
    pub fn advance(&mut self) -> Result<(), Unavailable> {
        let mut record = [0; RECORD_BYTES_MAX];
        for _ in 0..RECORDS_MAX {
            match read(&self.records, &mut record) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(length) => self.take(&String::from_utf8_lossy(&record[..length])),
                // The record was overwritten in the meantime; the next one is available.
                Err(Errno::PIPE | Errno::INTR) => {}
                Err(cause) => return Err(Unavailable::io(SOURCE)(cause)),
            }
        }
        Ok(())
    }

    fn take(&mut self, record: &str) {
        let Some(line) = Killed::parse(record) else { return };
        match self.kills.back_mut() {
            // The first line of a kill starts a new one.
            Some(last) if last.pid == line.pid && line.of.is_none() => *last = last.clone().and(line),
            _ => self.kills.push_back(line),
        }
        if self.kills.len() > KILLS_MAX {
            self.kills.pop_front();
        }
    }

    /// The OOM kill of the process with this pid; the last one if there are several. `Ok(None)` if the log has none.
    pub fn killed(&mut self, pid: u32) -> Result<Option<Killed>, Unavailable> {
        self.advance()?;
        Ok(self.kills.iter().rev().find(|kill| kill.pid == pid).cloned())
    }
}

/// Everything in the kernel's log, one line per record.
pub fn whole() -> Result<String, Unavailable> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let records = open("/dev/kmsg", flags, Mode::empty()).map_err(Unavailable::io(SOURCE))?;
    let (mut text, mut record) = (String::new(), [0; RECORD_BYTES_MAX]);
    // The log is a few MiB; without a limit, a log written as fast as it is read would never end.
    while text.len() < LOG_BYTES_MAX {
        match read(&records, &mut record) {
            Ok(0) | Err(Errno::AGAIN) => break,
            // Lines that begin with a space are labels of the record (`SUBSYSTEM=…`).
            Ok(length) => {
                text.push_str(&as_dmesg(&String::from_utf8_lossy(&record[..length])));
                text.push('\n');
            }
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(cause) => return Err(Unavailable::io(SOURCE)(cause)),
        }
    }
    Ok(text)
}

/// A record's first line as `dmesg` prints it: `6,1234,98765432,-;usb 1-1` becomes `[   98.765432] usb 1-1`.
fn as_dmesg(record: &str) -> String {
    let line = record.lines().next().unwrap_or_default();
    let split = line.split_once(';').and_then(|(head, said)| {
        let us = head.split(',').nth(2)?.parse::<u64>().ok()?;
        Some(format!("[{:>5}.{:06}] {said}", us / 1_000_000, us % 1_000_000))
    });
    split.unwrap_or_else(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::oom::OutOf;
    use rustix::pipe::{PipeFlags, pipe_with};

    const FIRST: &str = "6,1,9,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/a,task_memcg=/a/b,\
                         task=java,pid=7,uid=0";
    const SECOND: &str = "3,2,9,-;Memory cgroup out of memory: Killed process 7 (java) total-vm:9kB, anon-rss:8kB, \
                          file-rss:2kB, shmem-rss:0kB";

    /// A log that a test writes: a packet pipe also returns one record per read.
    fn made_up() -> (KernelLog, OwnedFd) {
        let (records, write) = pipe_with(PipeFlags::DIRECT | PipeFlags::NONBLOCK).unwrap();
        (KernelLog { records, kills: VecDeque::new() }, write)
    }

    fn say(log: &OwnedFd, record: &str) {
        rustix::io::write(log, record.as_bytes()).unwrap();
    }

    #[test]
    fn a_kill_is_assembled_from_its_lines() {
        let (mut log, write) = made_up();
        assert_eq!(log.killed(7), Ok(None));
        for record in ["6,0,8,-;usb 1-1: new device", FIRST] {
            say(&write, record);
        }
        log.advance().unwrap();
        say(&write, SECOND);
        let kill = log.killed(7).unwrap().unwrap();
        assert_eq!((kill.of, kill.anon.map(|anon| anon.0)), (Some(OutOf::Cgroup("/a".to_owned())), Some(8 << 10)));
        assert_eq!(log.killed(8), Ok(None));
        // Another process with this pid.
        say(&write, &FIRST.replace("oom_memcg=/a,", "oom_memcg=/z,"));
        let kill = log.killed(7).unwrap().unwrap();
        assert_eq!((kill.of, kill.anon), (Some(OutOf::Cgroup("/z".to_owned())), None));
    }

    #[test]
    fn a_record_is_formatted_like_dmesg() {
        assert_eq!(as_dmesg("6,1234,98765432,-;usb 1-1\n SUBSYSTEM=usb\n"), "[   98.765432] usb 1-1");
        for other in ["", "6,1", "no record; at all", "6,1,x,-;a"] {
            assert_eq!(as_dmesg(other), other);
        }
    }

    #[test]
    fn memory_and_read_sizes_are_limited() {
        let (mut log, write) = made_up();
        for pid in 1..=200 {
            say(&write, &FIRST.replace("pid=7,", &format!("pid={pid},")));
            log.advance().unwrap();
        }
        assert_eq!(log.kills.len(), KILLS_MAX);
        assert!(log.killed(200).unwrap().is_some() && log.killed(1).unwrap().is_none());
        // An endless file whose bytes are always available.
        log.records = open("/dev/zero", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        assert!(log.killed(200).unwrap().is_some());
    }
}
