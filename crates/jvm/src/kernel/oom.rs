//! The kernel's log lines for an OOM kill (`mm/oom_kill.c`, Linux 4.19 to 6.18):
//!
//! ```text
//! oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=ID,mems_allowed=0-1,oom_memcg=/a,task_memcg=/a/b,task=…
//! Memory cgroup out of memory: Killed process 50624 (java) total-vm:59726088kB, anon-rss:8225208kB, file-rss:26912kB…
//! ```
//!
//! A node list may contain commas, so fields are found by name, not by splitting at commas.

use loadline_base::units::Bytes;

/// A process that was OOM-killed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Killed {
    /// Process id in the kernel's own namespace.
    pub pid: u32,
    /// The kernel's name for it.
    pub task: String,
    /// The cgroup or machine that ran out of memory; `None` if only the second line was seen.
    pub of: Option<OutOf>,
    /// Resident anonymous pages, from the second line; `None` if only the first was seen.
    pub anon: Option<Bytes>,
    /// Resident file pages at that time.
    pub file: Option<Bytes>,
    /// Its address space.
    pub address_space: Option<Bytes>,
}

/// The cgroup or machine that ran out of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutOf {
    /// The cgroup with this path, which can differ from the process's.
    Cgroup(String),
    /// The machine, or a part of it.
    Machine,
}

const FIRST: &str = "oom-kill:constraint=";
const SECOND: &str = "Killed process ";

impl Killed {
    /// Parses a line of the kernel's log; `None` for any other line, or a truncated one.
    pub fn parse(line: &str) -> Option<Self> {
        line.find(FIRST).map(|at| Self::of_first(&line[at..])).or_else(|| {
            let at = line.find(SECOND)? + SECOND.len();
            Some(Self::of_second(&line[at..]))
        })?
    }

    fn of_first(line: &str) -> Option<Self> {
        let field = |name: &str, next: &str| {
            let (_, rest) = line.split_once(&format!(",{name}="))?;
            Some(rest.split(next).next().unwrap_or(rest))
        };
        let of = if line[FIRST.len()..].starts_with("CONSTRAINT_MEMCG") {
            OutOf::Cgroup(field("oom_memcg", ",task_memcg=")?.to_owned())
        } else {
            OutOf::Machine
        };
        let task = field("task", ",pid=")?.to_owned();
        Some(Self { pid: number(field("pid", ",uid=")?)?, task, of: Some(of), ..Self::default() })
    }

    fn of_second(rest: &str) -> Option<Self> {
        let (pid, rest) = rest.split_once(" (")?;
        // A name may contain parentheses.
        let (task, sizes) = rest.split_once(") total-vm:")?;
        let size = |name: &str| {
            let (_, rest) = sizes.split_once(name)?;
            Some(Bytes(number::<u64>(rest.split_once("kB")?.0)? << 10))
        };
        let (anon, file) = (size("anon-rss:"), size("file-rss:"));
        let address_space =
            sizes.split_once("kB").and_then(|(kib, _)| Some(Bytes(number::<u64>(kib)?.checked_mul(1024)?)));
        Some(Self { pid: number(pid)?, task: task.to_owned(), of: None, anon, file, address_space })
    }

    /// Completes this kill with the data from another line about it.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            of: self.of.or(other.of),
            anon: self.anon.or(other.anon),
            file: self.file.or(other.file),
            address_space: self.address_space.or(other.address_space),
            ..self
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 3] = [
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=8c1,mems_allowed=0-1,3,\
         oom_memcg=/kubepods/podX,task_memcg=/kubepods/podX/8c1,task=java,pid=50624,uid=10000",
        "Memory cgroup out of memory: Killed process 50624 (java) total-vm:59726088kB, anon-rss:8225208kB, \
         file-rss:26912kB, shmem-rss:0kB, UID:10000 pgtables:21384kB oom_score_adj:969",
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,\
         task_memcg=/user.slice,task=my (java),pid=7,uid=0",
    ];

    #[test]
    fn both_lines_of_a_kill_are_read() {
        let [first, second, machine] = LINES.map(|line| Killed::parse(line).unwrap());
        assert_eq!(first.of, Some(OutOf::Cgroup("/kubepods/podX".to_owned())));
        assert_eq!((second.pid, second.anon), (50_624, Some(Bytes(8_225_208 << 10))));
        let both = first.and(second);
        assert_eq!((both.task.as_str(), both.of.is_some(), both.file), ("java", true, Some(Bytes(26_912 << 10))));
        assert_eq!((machine.pid, machine.task.as_str(), machine.of), (7, "my (java)", Some(OutOf::Machine)));
        assert_eq!(Killed::parse("Out of memory: Kill process 7 (java) score 900"), None, "before Linux 5.3");
    }

    #[test]
    fn truncated_input_does_not_panic() {
        for line in LINES {
            for cut in 0..line.len() {
                let _ = Killed::parse(&line[..cut]);
                let _ = Killed::parse(&line[cut..]);
            }
        }
    }
}
