//! A cgroup's counters, one name and number per line: `memory.events` (v2; Linux, `cgroup-v2.rst`) and
//! `memory.oom_control` (v1, with `oom_kill` since Linux 4.13).

use crate::record::Trace;

pub(super) fn read(text: &str) -> Option<Trace> {
    let count = |line: &str| {
        let (name, number) = line.trim().split_once(' ')?;
        Some((name.to_owned(), number.trim().parse::<u64>().ok()?))
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    // A line in any other form means that this is a different file.
    let counts = lines.map(count).collect::<Option<Vec<_>>>()?;
    let of = |wanted: &str| counts.iter().find(|(name, _)| name == wanted).map(|(_, number)| *number);
    Some(Trace::MemoryEvents { oom_kills: of("oom_kill")?, at_limit: of("max") })
}
