//! Whether a JVM sees the limit of its cgroup: it is started under one for a moment and says what it read.
//!
//! JDK 17 and 25 print, with `-Xlog:os+container=trace`:
//! `[0.003s][trace][os,container] Memory Limit is: 67108864`

use super::guarded::Spawner;
use super::jdk::FoundJdk;
use super::limit::MemoryCgroup;
use super::protocol::{Exit, Order};
use crate::error::{Error, Result};
use crate::kernel::cgroup::NO_LIMIT_MIN;
use crate::units::Bytes;
use std::time::Duration;

/// Enough for a JVM that only says its version.
const LIMIT: Bytes = Bytes::mib(64);
/// `java -version` takes a tenth of this on a slow machine.
const WITHIN: Duration = Duration::from_secs(10);
/// The log exists since JDK 9; what it says of limits is in order since 11.
const RELEASE_MIN: u32 = 11;
/// All that the log has, and the version.
const LINES: usize = 200;
/// Lines shown where the JVM did not even start.
const SAID_LINES: usize = 5;

/// Comes before the number, in the log of every release so far.
const SAYS: &str = "Memory Limit is: ";
/// Words of a JVM that looks for no limit: an option forbids it, or a controller is missing. JDK 17 wants all of cpu,
/// cpuset, cpuacct and memory, on v2 too; later ones do not.
const LOOKS_FOR_NONE: [&str; 4] =
    ["required controllers", "Required cgroup", "No relevant cgroup controllers", "Container Support not enabled"];

/// The limit as a JVM sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSeen {
    /// The very limit.
    Seen,
    /// Another limit.
    Other(Bytes),
    /// It sees no limit.
    Unseen,
    /// Nothing that is known here: the JVM is old, has no support for containers, or uses other words.
    NotSaid,
}

impl Spawner {
    /// Starts `java -version` of this JDK under a limit and compares.
    ///
    /// # Errors
    /// If no limit can be set, or the JVM does not start under it.
    pub fn limit_seen(&self, jdk: &FoundJdk) -> Result<LimitSeen> {
        if jdk.release < RELEASE_MIN {
            return Ok(LimitSeen::NotSaid);
        }
        let limited = MemoryCgroup::create(Some(LIMIT), self.clock)?;
        let order = Order {
            argv: vec![jdk.java.display().to_string(), "-Xlog:os+container=trace".to_owned(), "-version".to_owned()],
            cgroups: vec![limited.cgroup.folder.clone()],
            ..Order::default()
        };
        let (exit, output) = self.run_to_end(&order, WITHIN, &|| false)?;
        match exit {
            Some(Exit::Code(0)) => Ok(compare(&output.tail_texts(LINES), LIMIT)),
            Some(exit) => Err(Error::subject(format!("`java -version` ended with {exit} under a limit of {LIMIT}"))
                .said(output.tail_texts(SAID_LINES))),
            None => Err(Error::subject(format!("`java -version` did not end within {} s", WITHIN.as_secs()))),
        }
    }
}

/// The limit by these lines of the log. A JVM asks several times, also for cgroups above its own.
fn compare(lines: &[String], limit: Bytes) -> LimitSeen {
    let said: Vec<&str> = lines.iter().filter_map(|line| Some(line.split_once(SAYS)?.1.trim())).collect();
    let read: Vec<u64> = said.iter().filter_map(|text| text.parse().ok()).collect();
    let looks_for_none = lines.iter().any(|line| LOOKS_FOR_NONE.iter().any(|sign| line.contains(sign)));
    match read.iter().filter(|bytes| **bytes < NO_LIMIT_MIN).min() {
        _ if read.contains(&limit.0) => LimitSeen::Seen,
        Some(other) => LimitSeen::Other(Bytes(*other)),
        None if said.is_empty() && !looks_for_none => LimitSeen::NotSaid,
        None => LimitSeen::Unseen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_jvm_read_is_compared_with_what_was_set() {
        let check = |lines: &[&str], expect| {
            let lines: Vec<String> = lines.iter().map(|line| format!("[0.003s][trace][os,container] {line}")).collect();
            assert_eq!(compare(&lines, Bytes::mib(64)), expect, "{lines:?}");
        };
        check(&["Memory Limit is: 67108864", "Memory Soft Limit is: 9223372036854771712"], LimitSeen::Seen);
        // A limit above it counts only where it is smaller, and then it is asked for first.
        check(&["Memory Limit is: 9223372036854771712", "Hierarchical Memory Limit is: 67108864"], LimitSeen::Seen);
        check(&["Memory Limit is: 33554432"], LimitSeen::Other(Bytes::mib(32)));
        check(&["Memory Limit is: max"], LimitSeen::Unseen);
        check(&["Memory Limit is: 9223372036854771712", "Memory Limit is: Unlimited"], LimitSeen::Unseen);
        // JDK 17.0.15 on a kernel without cpuset; JDK 25.0.3 at a cgroup root, which has no such file.
        check(&["One or more required controllers disabled at kernel level."], LimitSeen::Unseen);
        check(&["Memory Limit is: 67108864", "Memory Limit failed: -2", "Memory Limit is: -2"], LimitSeen::Seen);
        check(&["OSContainer::init: Initializing Container Support"], LimitSeen::NotSaid);
        check(&[], LimitSeen::NotSaid);
    }
}
