//! The reports that the kernel logs when memory runs out (`mm/oom_kill.c`, `mm/memcontrol.c`, Linux 4.4 to 6.18), from
//! the line `… invoked oom-killer` to the last process that it killed:
//!
//! ```text
//! java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=969
//! memory: usage 262144kB, limit 262144kB, failcnt 3041
//! Memory cgroup stats for /kubepods/pod1/8c9:
//! anon 264241152
//! Tasks state (memory values in pages):
//! [  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name
//! [  50624] 10000 50624  1493152    63030    60100     2930         0   891136        0           969 java
//! oom-kill:constraint=CONSTRAINT_MEMCG,…
//! Memory cgroup out of memory: Killed process 50624 (java) total-vm:5972608kB, anon-rss:240400kB, …
//! ```
//!
//! `dmesg`, `dmesg -T`, `/dev/kmsg`, and the journal each prefix lines differently, and other lines may come between.
//! So each line is recognized by its own words, wherever they begin.

use super::oom::{Killed, OutOf};
use loadline_base::units::Bytes;
use std::collections::BTreeMap;

/// Maximum number of reports kept; older ones are dropped.
const REPORTS_MAX: usize = 1_000;
/// Maximum number of processes in a report; a machine has a few thousand.
const TASKS_MAX: usize = 100_000;
const INVOKED: &str = " invoked oom-killer";
const STATS: &str = "Memory cgroup stats for ";
const GROUP: &str = "are going to be killed due to memory.oom.group set";
/// Page sizes, the usual one first.
const PAGES: [u64; 3] = [4096, 16_384, 65_536];

/// One kernel report that memory ran out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OomReport {
    /// The text before its first line in the log, usually a time.
    pub stamp: String,
    /// The task whose allocation failed.
    pub invoked_by: String,
    /// The cgroup or node that ran out of memory; `None` if the log is truncated.
    pub of: Option<OutOf>,
    /// The cgroup's charge at that time.
    pub usage: Option<Bytes>,
    /// Its limit; `None` for a machine.
    pub limit: Option<Bytes>,
    /// How many times the charge had reached the limit.
    pub at_limit: Option<u64>,
    /// The cgroup's kernel memory, on v1.
    pub kernel: Option<Bytes>,
    /// Its swap usage.
    pub swap: Option<Bytes>,
    /// Its `memory.stat`, in bytes and counts.
    pub stat: BTreeMap<String, u64>,
    /// The processes that were eligible for killing.
    pub tasks: Vec<OomTask>,
    /// The processes that were killed.
    pub killed: Vec<Killed>,
    /// Whether all processes in the cgroup were to be killed together (`memory.oom.group`).
    pub group: bool,
}

/// A process at the time memory ran out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OomTask {
    /// Process id in the kernel's own namespace.
    pub pid: u32,
    /// The kernel's name for it, at most 15 bytes.
    pub name: String,
    /// Its address space, in pages.
    total_vm: u64,
    /// Its resident memory.
    pub rss: Bytes,
    /// Its anonymous memory; `None` before Linux 6.8.
    pub anon: Option<Bytes>,
    /// Its tmpfs files and shared memory; `None` before Linux 6.8.
    pub shmem: Option<Bytes>,
    /// Its page tables; `None` before Linux 4.20.
    pub page_tables: Option<Bytes>,
    /// Its swap usage.
    pub swap: Bytes,
    /// The value added to its score; -1000 protects it.
    pub score_adjustment: i32,
}

/// The reports in a log, oldest first.
pub fn parse(log: &str) -> Vec<OomReport> {
    let mut reader = Reader::default();
    log.lines().for_each(|line| reader.take(line));
    reader.finish()
}

/// A report in progress.
#[derive(Debug, Default)]
struct Reader {
    done: Vec<OomReport>,
    report: Option<OomReport>,
    /// Columns of the process table, once its header has been seen.
    columns: Vec<String>,
    /// Whether the current lines are `memory.stat`.
    lists_stat: bool,
}

impl Reader {
    fn take(&mut self, line: &str) {
        if let Some(at) = line.find(INVOKED) {
            self.close();
            let (stamp, name) = split_stamp(&line[..at]);
            self.report =
                Some(OomReport { stamp: stamp.to_owned(), invoked_by: name.to_owned(), ..OomReport::default() });
            return;
        }
        // A truncated log may begin with the kill.
        let killed = Killed::parse(line);
        if self.report.is_none() && killed.is_none() {
            return;
        }
        let report = self.report.get_or_insert_with(|| {
            let stamp = ["oom-kill:", "Memory cgroup out of", "Out of memory", "Killed process"];
            let at = stamp.iter().filter_map(|words| line.find(words)).min().unwrap_or(0);
            OomReport { stamp: line[..at].trim().to_owned(), ..OomReport::default() }
        });
        if let Some(killed) = killed {
            return report.take_killed(killed);
        }
        if line.contains(GROUP) {
            report.group = true;
        } else if let Some((_, rest)) = line.split_once(STATS) {
            self.lists_stat = true;
            report.take_old_stat(rest);
        } else if let Some((_, rest)) = line.split_once(" killed as a result of limit of ") {
            report.of = Some(OutOf::Cgroup(rest.trim().to_owned()));
        } else if let Some(columns) = columns(line) {
            (self.columns, self.lists_stat) = (columns, false);
        } else if let Some(task) = task(line, &self.columns) {
            if report.tasks.len() < TASKS_MAX {
                report.tasks.push(task);
            }
        } else if !report.take_sum(line)
            && let Some((key, value)) = stat(line).filter(|_| self.lists_stat)
        {
            report.stat.insert(key.to_owned(), value);
        }
    }

    fn close(&mut self) {
        (self.columns, self.lists_stat) = (Vec::new(), false);
        let Some(report) = self.report.take() else { return };
        self.done.push(report.in_bytes());
        if self.done.len() > REPORTS_MAX {
            self.done.remove(0);
        }
    }

    fn finish(mut self) -> Vec<OomReport> {
        self.close();
        self.done
    }
}

impl OomReport {
    /// Two lines report each kill; after `oom.group`, there are several kills.
    fn take_killed(&mut self, killed: Killed) {
        self.of = self.of.take().or_else(|| killed.of.clone());
        match self.killed.iter_mut().find(|known| known.pid == killed.pid) {
            Some(known) => *known = known.clone().and(killed),
            None => self.killed.push(killed),
        }
    }

    /// `memory: usage 262144kB, limit 262144kB, failcnt 3041`; returns whether the line has this form.
    fn take_sum(&mut self, line: &str) -> bool {
        let of = |name: &str| {
            let rest = &line[line.find(name)? + name.len()..];
            let (usage, rest) = rest.split_once("kB, limit ")?;
            let limit = rest.split_once("kB")?.0;
            Some((kib(usage)?, kib(limit)?))
        };
        let preceded = |name: &str| line.find(name).is_some_and(|at| !line[..at].ends_with(['+', 'k']));
        if let Some((usage, _)) = of("kmem: usage ") {
            self.kernel = Some(usage);
        } else if let Some((usage, _)) = of("memory+swap: usage ") {
            self.swap = self.usage.map(|memory| Bytes(usage.0.saturating_sub(memory.0)));
        } else if let Some((usage, _)) = of("swap: usage ") {
            self.swap = Some(usage);
        } else if let (Some((usage, limit)), true) = (of("memory: usage "), preceded("memory: usage ")) {
            (self.usage, self.limit) = (Some(usage), Some(limit));
            self.at_limit = line.rsplit_once("failcnt ").and_then(|(_, count)| count.trim_end().parse().ok());
        } else {
            return false;
        }
        true
    }

    /// `/docker/8c9: cache:0KB rss:524288KB mapped_file:0KB`, before Linux 5.3.
    fn take_old_stat(&mut self, rest: &str) {
        let Some((_, list)) = rest.split_once(": ") else { return };
        for word in list.split_ascii_whitespace() {
            let Some((key, value)) = word.split_once(':') else { continue };
            if let Some(bytes) = value.strip_suffix("KB").and_then(kib) {
                self.stat.insert(key.to_owned(), bytes.0);
            }
        }
    }

    /// The page size: the table gives a process's address space in pages, and the line about its kill in kB.
    fn page(&self) -> u64 {
        let told = self.killed.iter().find_map(|killed| {
            let task = self.tasks.iter().find(|task| task.pid == killed.pid)?;
            killed.address_space?.0.checked_div(task.total_vm)
        });
        told.filter(|page| PAGES.contains(page)).unwrap_or(PAGES[0])
    }

    /// Converts process sizes to bytes; the table counts pages, whose size follows from the kill's line.
    fn in_bytes(mut self) -> Self {
        let page = self.page();
        for task in &mut self.tasks {
            let bytes = |pages: Bytes| Bytes(pages.0.saturating_mul(page));
            (task.rss, task.swap) = (bytes(task.rss), bytes(task.swap));
            (task.anon, task.shmem) = (task.anon.map(bytes), task.shmem.map(bytes));
        }
        self
    }
}

/// Splits off the time: `[12345.678901] java`, `Nov 24 10:11:12 node kernel: java`, `6,1,2,-;java`.
fn split_stamp(text: &str) -> (&str, &str) {
    let ends = [text.rfind("] ").map(|at| at + 2), text.rfind(": ").map(|at| at + 2), text.rfind(";").map(|at| at + 1)];
    let at = ends.into_iter().flatten().max().unwrap_or(0);
    (text[..at].trim(), text[at..].trim())
}

/// The columns of the process table: `[  pid  ]   uid  tgid total_vm      rss …`.
fn columns(line: &str) -> Option<Vec<String>> {
    let (before, rest) = line.split_once(']').and_then(|(before, rest)| {
        // A time in brackets may come first.
        if before.trim_end().ends_with("pid") { Some((before, rest)) } else { rest.split_once(']') }
    })?;
    let is_head = before.trim_end().ends_with("pid") && rest.trim_start().starts_with("uid");
    is_head.then(|| rest.split_ascii_whitespace().map(str::to_owned).collect())
}

/// A row of the table: `[  50624] 10000 50624 …  java`. A name may contain spaces.
fn task(line: &str, columns: &[String]) -> Option<OomTask> {
    if columns.is_empty() {
        return None;
    }
    let (pid, rest) = line.match_indices('[').find_map(|(at, _)| {
        let (pid, rest) = line[at + 1..].split_once(']')?;
        Some((pid.trim().parse::<u32>().ok()?, rest))
    })?;
    let numbers = columns.len() - 1;
    let mut words = rest.split_ascii_whitespace();
    let values: Vec<i64> = words.by_ref().take(numbers).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let name = words.collect::<Vec<_>>().join(" ");
    if values.len() != numbers || name.is_empty() {
        return None;
    }
    let value = |name: &str| {
        let at = columns.iter().position(|column| column == name)?;
        values.get(at).and_then(|value| u64::try_from(*value).ok()).map(Bytes)
    };
    let adjustment = columns.iter().position(|column| column == "oom_score_adj").and_then(|at| values.get(at));
    Some(OomTask {
        pid,
        name,
        total_vm: value("total_vm").unwrap_or_default().0,
        rss: value("rss")?,
        anon: value("rss_anon"),
        shmem: value("rss_shmem"),
        page_tables: value("pgtables_bytes"),
        swap: value("swapents").unwrap_or_default(),
        score_adjustment: adjustment.and_then(|value| i32::try_from(*value).ok()).unwrap_or(0),
    })
}

/// `anon 264241152`, after whatever prefix the log has.
fn stat(line: &str) -> Option<(&str, u64)> {
    let (key, value) = split_stamp(line).1.split_once(' ')?;
    let value = value.parse().ok()?;
    let is_key = key.starts_with(|c: char| c.is_ascii_lowercase())
        && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    is_key.then_some((key, value))
}

fn kib(text: &str) -> Option<Bytes> {
    text.trim().parse::<u64>().ok()?.checked_mul(1024).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.8 and newer, cgroup v2, from `dmesg`: a JVM with two helper processes.
    const V2: &str = "\
[ 9001.100000] tesseract invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=969
[ 9001.100010] CPU: 1 UID: 10000 PID: 50700 Comm: tesseract Not tainted 6.8.0-45-generic #45
[ 9001.100020] Call Trace:
[ 9001.100030]  <TASK>
[ 9001.100100] memory: usage 262144kB, limit 262144kB, failcnt 3041
[ 9001.100110] swap: usage 1024kB, limit 9007199254740988kB, failcnt 0
[ 9001.100120] Memory cgroup stats for /kubepods.slice/kubepods-pod1_2.slice/cri-containerd-8c9.scope:
[ 9001.100130] anon 264241152
[ 9001.100131] file 1212416
[ 9001.100132] kernel 2981888
[ 9001.100133] usb 1-1: new high-speed USB device number 4
[ 9001.100134] shmem 1048576
[ 9001.100140] Tasks state (memory values in pages):
[ 9001.100150] [  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name
[ 9001.100160] [  50624] 10000 50624  1493152    43030    40100     2930         0   891136      256           969 java
[ 9001.100170] [  50700] 10000 50700    30000    12000    11000     1000         0   120000        0           969 tesseract
[ 9001.100180] [  50701] 10000 50701    30000    12000    11000      744       256   120000        0           969 tesseract
[ 9001.100190] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-8c9.scope,mems_allowed=0,oom_memcg=/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-8c9.scope,task_memcg=/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-8c9.scope,task=java,pid=50624,uid=10000
[ 9001.100200] Memory cgroup out of memory: Killed process 50624 (java) total-vm:5972608kB, anon-rss:160400kB, file-rss:11720kB, shmem-rss:0kB, UID:10000 pgtables:870kB oom_score_adj:969
[ 9001.200000] oom_reaper: reaped process 50624 (java), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB
";
    /// Linux 5.10, cgroup v1, from `dmesg -T`, with 64 KiB pages.
    const V1: &str = "\
[Tue Nov 24 10:11:12 2026] http-nio-8080-e invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[Tue Nov 24 10:11:12 2026] memory: usage 524288kB, limit 524288kB, failcnt 127
[Tue Nov 24 10:11:12 2026] memory+swap: usage 526336kB, limit 9007199254740988kB, failcnt 0
[Tue Nov 24 10:11:12 2026] kmem: usage 3652kB, limit 9007199254740988kB, failcnt 0
[Tue Nov 24 10:11:12 2026] Memory cgroup stats for /docker/8c9:
[Tue Nov 24 10:11:12 2026] cache 12288
[Tue Nov 24 10:11:12 2026] rss 530579456
[Tue Nov 24 10:11:12 2026] Tasks state (memory values in pages):
[Tue Nov 24 10:11:12 2026] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[Tue Nov 24 10:11:12 2026] [   2093]     0  2093   100000     8200   900000        0             0 java
[Tue Nov 24 10:11:12 2026] [   2094]     0  2094      100       10    40000        0         -1000 my [sh] pod
[Tue Nov 24 10:11:12 2026] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=8c9,mems_allowed=0,oom_memcg=/docker/8c9,task_memcg=/docker/8c9,task=java,pid=2093,uid=0
[Tue Nov 24 10:11:12 2026] Memory cgroup out of memory: Killed process 2093 (java) total-vm:6400000kB, anon-rss:518000kB, file-rss:6800kB, shmem-rss:0kB, UID:0 pgtables:880kB oom_score_adj:0
";
    /// Linux 4.19, cgroup v1, from the journal.
    const OLD: &str = "\
Nov 24 10:11:12 node-7 kernel: java invoked oom-killer: gfp_mask=0x6000c0(GFP_KERNEL), nodemask=(null), order=0, oom_score_adj=0
Nov 24 10:11:12 node-7 kernel: Task in /docker/8c9 killed as a result of limit of /docker
Nov 24 10:11:12 node-7 kernel: memory: usage 65536kB, limit 65536kB, failcnt 12
Nov 24 10:11:12 node-7 kernel: Memory cgroup stats for /docker/8c9: cache:120KB rss:64000KB rss_huge:0KB shmem:0KB mapped_file:0KB
Nov 24 10:11:12 node-7 kernel: [ pid ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
Nov 24 10:11:12 node-7 kernel: [ 2093]     0  2093   100000    16000   900000        0             0 java
Nov 24 10:11:12 node-7 kernel: Memory cgroup out of memory: Kill process 2093 (java) score 990 or sacrifice child
Nov 24 10:11:12 node-7 kernel: Killed process 2093 (java) total-vm:400000kB, anon-rss:62000kB, file-rss:2000kB, shmem-rss:0kB
";
    /// A cgroup killed as a group, and a whole machine, from `/dev/kmsg`.
    const MORE: &str = "\
6,1,100,-;java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
6,2,100,-;memory: usage 1024kB, limit 1024kB, failcnt 3
6,3,101,-;Tasks in /pod are going to be killed due to memory.oom.group set
6,4,101,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/pod,task_memcg=/pod/a,task=java,pid=7,uid=0
3,5,101,-;Memory cgroup out of memory: Killed process 7 (java) total-vm:9kB, anon-rss:8kB, file-rss:2kB, shmem-rss:0kB
3,6,102,-;Memory cgroup out of memory: Killed process 8 (sh) total-vm:9kB, anon-rss:1kB, file-rss:2kB, shmem-rss:0kB
6,7,900,-;kthreadd invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
6,8,900,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/a,task=java,pid=9,uid=0
3,9,901,-;Out of memory: Killed process 9 (java) total-vm:9kB, anon-rss:8kB, file-rss:2kB, shmem-rss:0kB
";

    fn one(log: &str) -> OomReport {
        let mut all = parse(log);
        assert_eq!(all.len(), 1, "{all:#?}");
        all.remove(0)
    }

    #[test]
    fn a_v2_report_has_its_processes_by_kind() {
        let report = one(V2);
        assert_eq!((report.stamp.as_str(), report.invoked_by.as_str()), ("[ 9001.100000]", "tesseract"));
        assert_eq!(
            (report.usage, report.limit, report.swap),
            (Some(Bytes::mib(256)), Some(Bytes::mib(256)), Some(Bytes::mib(1)))
        );
        assert!(matches!(&report.of, Some(OutOf::Cgroup(path)) if path.ends_with("cri-containerd-8c9.scope")));
        let stat = |key: &str| report.stat.get(key).copied();
        assert_eq!((stat("anon"), stat("kernel"), stat("shmem")), (Some(264_241_152), Some(2_981_888), Some(1 << 20)));
        assert_eq!(stat("number"), None, "a driver's line is not part of the statistics");
        let names: Vec<_> = report.tasks.iter().map(|task| (task.pid, task.name.as_str())).collect();
        assert_eq!(names, [(50_624, "java"), (50_700, "tesseract"), (50_701, "tesseract")]);
        let java = &report.tasks[0];
        assert_eq!((java.rss.0, java.anon, java.swap), (43_030 * 4096, Some(Bytes(40_100 * 4096)), Bytes::mib(1)));
        assert_eq!((java.page_tables, java.score_adjustment), (Some(Bytes(891_136)), 969));
        assert_eq!(report.tasks[2].shmem, Some(Bytes::mib(1)));
        assert_eq!((report.killed.len(), report.killed[0].pid, report.group), (1, 50_624, false));
    }

    #[test]
    fn a_v1_report_has_kernel_memory_and_page_size() {
        let report = one(V1);
        assert_eq!((report.usage, report.swap), (Some(Bytes::mib(512)), Some(Bytes::mib(2))));
        assert_eq!((report.kernel, report.stat.get("rss")), (Some(Bytes(3652 << 10)), Some(&530_579_456)));
        assert_eq!(report.stamp, "[Tue Nov 24 10:11:12 2026]");
        assert_eq!(report.tasks[0].rss, Bytes(8200 * 65_536), "RSS is counted in pages of 64 KiB");
        assert_eq!((report.tasks[1].name.as_str(), report.tasks[1].score_adjustment), ("my [sh] pod", -1000));
    }

    #[test]
    fn an_old_report_has_the_cgroup_with_the_limit() {
        let report = one(OLD);
        assert_eq!(report.of, Some(OutOf::Cgroup("/docker".to_owned())));
        assert_eq!((report.stat.get("rss"), report.tasks.len()), (Some(&(64_000 << 10)), 1));
        assert_eq!((report.invoked_by.as_str(), report.killed[0].anon), ("java", Some(Bytes(62_000 << 10))));
    }

    #[test]
    fn group_and_machine_kills_are_separate_reports() {
        let all = parse(MORE);
        assert_eq!(all.len(), 2, "{all:#?}");
        assert!(all[0].group && all[0].killed.iter().map(|killed| killed.pid).eq([7, 8]));
        assert_eq!(
            (all[1].of.clone(), all[1].limit, all[1].stamp.as_str()),
            (Some(OutOf::Machine), None, "6,7,900,-;")
        );
    }

    #[test]
    fn truncated_or_interleaved_logs_are_read_as_far_as_possible() {
        for log in [V2, V1, OLD, MORE] {
            for cut in (0..log.len()).filter(|at| log.is_char_boundary(*at)).step_by(7) {
                assert!(parse(&log[..cut]).len() <= 2);
                assert!(parse(&log[cut..]).len() <= 2);
            }
        }
        // Without its beginning, only the kill remains.
        let end = V2.find("oom-kill:").unwrap();
        let report = one(&V2[end..]);
        assert_eq!((report.killed.len(), report.tasks.len(), report.invoked_by.as_str()), (1, 0, ""));
        // Interleaved lines from two reports are attributed to the report in progress.
        let mixed: String =
            V2.lines().flat_map(|line| [line, "audit: type=1400 msg=(7)"]).map(|line| format!("{line}\n")).collect();
        assert_eq!(one(&mixed), one(V2));
    }

    #[test]
    fn memory_is_limited() {
        let many = "x invoked oom-killer: \n".repeat(REPORTS_MAX + 5);
        assert_eq!(parse(&many).len(), REPORTS_MAX);
    }
}
