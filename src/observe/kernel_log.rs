//! The kernel's log, `/dev/kmsg` (Documentation/ABI/testing/dev-kmsg): a record a read, oldest first. Reading needs
//! CAP_SYSLOG where `kernel.dmesg_restrict` is 1.
//!
//! ```text
//! 6,1234,98765432,-;oom-kill:constraint=CONSTRAINT_MEMCG,…
//! ```

use super::Unavailable;
use crate::kernel::oom::Killed;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

const SOURCE: &str = "kernel log";
/// A record has at most so many bytes (`CONSOLE_EXT_LOG_MAX`).
const RECORD_BYTES_MAX: usize = 8192;
/// Records of a log buffer of 16 MiB at 64 bytes.
const RECORDS_MAX: usize = 1 << 18;

/// What the log says of the process that had this pid when it was killed for want of memory; the last where the pid
/// came twice. `Ok(None)` where it says nothing.
///
/// # Errors
/// Where the log may not be read.
pub fn killed(pid: u32) -> Result<Option<Killed>, Unavailable> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let log = open("/dev/kmsg", flags, Mode::empty()).map_err(|cause| Unavailable::io(SOURCE, &cause.into()))?;
    let mut record = [0; RECORD_BYTES_MAX];
    let mut killed: Option<Killed> = None;
    for _ in 0..RECORDS_MAX {
        let length = match read(&log, &mut record) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(length) => length,
            // The record was overwritten meanwhile; the next one is there.
            Err(Errno::PIPE | Errno::INTR) => continue,
            Err(cause) => return Err(Unavailable::io(SOURCE, &cause.into())),
        };
        let text = String::from_utf8_lossy(&record[..length]);
        let Some(line) = Killed::parse(&text).filter(|killed| killed.pid == pid) else { continue };
        killed = Some(match killed.take() {
            // The first line of a kill begins another one.
            Some(before) if line.of.is_none() => before.and(line),
            _ => line,
        });
    }
    Ok(killed)
}
