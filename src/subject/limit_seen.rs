//! Tests whether a JVM sees its cgroup's limit: briefly starts it with a limit and reads its log.
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

/// Enough for a JVM that prints its version.
const LIMIT: Bytes = Bytes::mib(64);
/// `java -version` takes a tenth of this on a slow machine.
const WITHIN: Duration = Duration::from_secs(10);
/// The log has existed since JDK 9, and its limits have been reliable since 11.
const RELEASE_MIN: u32 = 11;
/// More lines than the log and the version output contain.
const LINES: usize = 200;
/// Lines shown if the JVM did not start.
const SAID_LINES: usize = 5;

/// The text before the number, in every release so far.
const SAYS: &str = "Memory Limit is: ";
/// Messages of a JVM that does not look for a limit, because of an option or a missing controller. JDK 17 requires cpu,
/// cpuset, cpuacct, and memory, even on v2; later ones do not.
const LOOKS_FOR_NONE: [&str; 4] =
    ["required controllers", "Required cgroup", "No relevant cgroup controllers", "Container Support not enabled"];

/// The limit that a JVM sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSeen {
    /// The correct limit.
    Seen,
    /// A different limit.
    Other(Bytes),
    /// No limit.
    Unseen,
    /// No known message: the JVM is old, lacks container support, or uses other wording.
    NotSaid,
}

impl Spawner {
    /// Starts this JDK's `java -version` with a limit and compares that with the limit that the JVM sees. Fails if no
    /// limit can be set, or if the JVM does not start.
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
            Some(exit) => Err(Error::subject(format!("`java -version` exited with {exit} under a limit of {LIMIT}"))
                .said(output.tail_texts(SAID_LINES))),
            None => Err(Error::subject(format!("`java -version` did not finish within {} s", WITHIN.as_secs()))),
        }
    }
}

/// The limit in these log lines. A JVM queries it several times, including ancestors of its cgroup.
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
    fn the_limit_a_jvm_reads_is_compared_with_the_one_set() {
        let check = |lines: &[&str], expect| {
            let lines: Vec<String> = lines.iter().map(|line| format!("[0.003s][trace][os,container] {line}")).collect();
            assert_eq!(compare(&lines, Bytes::mib(64)), expect, "{lines:?}");
        };
        check(&["Memory Limit is: 67108864", "Memory Soft Limit is: 9223372036854771712"], LimitSeen::Seen);
        // An ancestor's limit matters only if it is smaller, and then it is queried first.
        check(&["Memory Limit is: 9223372036854771712", "Hierarchical Memory Limit is: 67108864"], LimitSeen::Seen);
        check(&["Memory Limit is: 33554432"], LimitSeen::Other(Bytes::mib(32)));
        check(&["Memory Limit is: max"], LimitSeen::Unseen);
        check(&["Memory Limit is: 9223372036854771712", "Memory Limit is: Unlimited"], LimitSeen::Unseen);
        // JDK 17.0.15 on a kernel without cpuset; JDK 25.0.3 in the root cgroup, which has no such file.
        check(&["One or more required controllers disabled at kernel level."], LimitSeen::Unseen);
        check(&["Memory Limit is: 67108864", "Memory Limit failed: -2", "Memory Limit is: -2"], LimitSeen::Seen);
        check(&["OSContainer::init: Initializing Container Support"], LimitSeen::NotSaid);
        check(&[], LimitSeen::NotSaid);
    }
}
