//! The processes that held the memory at an OOM kill, from the kernel's report.

use crate::record::{ChargeKind, ChargeRow, OomHolder, OomKilled, OomRecord};
use loadline_base::order::Order as _;
use loadline_base::units::Bytes;
use loadline_jvm::kernel::charge::Charge;
use loadline_jvm::kernel::oom::OutOf;
use loadline_jvm::kernel::oom_report::{OomReport, OomTask};
use loadline_jvm::observe::charged::{ACTIVE, rows_of};

/// The inactive page cache in `memory.stat`, on v2 and v1; not every kernel logs it.
const INACTIVE: [&str; 2] = ["inactive_file", "total_inactive_file"];
/// The kernel's names for a JVM: the launchers of the JDK and of Apache Commons Daemon.
const JVMS: [&str; 3] = ["java", "jsvc", "jsvc.exec"];

/// The record of a kernel report, with the largest kind of memory.
pub fn of_oom(report: &OomReport) -> OomRecord {
    let (cgroup, machine) = match &report.of {
        Some(OutOf::Cgroup(path)) => (Some(path.clone()), false),
        Some(OutOf::Machine) => (None, true),
        None => (None, false),
    };
    let (jvms, others): (Vec<&OomTask>, Vec<_>) =
        report.tasks.iter().partition(|task| JVMS.contains(&task.name.as_str()));
    let [jvm_bytes, other_bytes] =
        [jvms, others].map(|tasks| tasks.into_iter().map(|task| anonymous(task, report).0).sum());
    let mut record = OomRecord {
        stamp: report.stamp.clone(),
        invoked_by: report.invoked_by.clone(),
        cgroup,
        machine,
        limit_bytes: report.limit.map(|bytes| bytes.0),
        usage_bytes: report.usage.map(|bytes| bytes.0),
        at_limit: report.at_limit,
        swap_bytes: report.swap.map(|bytes| bytes.0),
        rows: rows(report),
        killed: report.killed.iter().map(killed).collect(),
        group: report.group,
        holder: OomHolder::Unknown,
        jvm_bytes,
        other_bytes,
    };
    record.holder = holder(&record);
    record
}

fn killed(killed: &loadline_jvm::kernel::oom::Killed) -> OomKilled {
    OomKilled { pid: killed.pid, name: killed.task.clone(), anon_bytes: killed.anon.map(|bytes| bytes.0) }
}

/// Anonymous memory of a process. Before Linux 6.8, the table has only RSS, which includes mapped files. For the killed
/// process, the kill line has the anonymous part.
fn anonymous(task: &OomTask, report: &OomReport) -> Bytes {
    let by_kill = || report.killed.iter().find(|killed| killed.pid == task.pid).and_then(|killed| killed.anon);
    task.anon.or_else(by_kill).unwrap_or(task.rss)
}

/// The charge by owner; for a machine, or without a charge, only the processes.
fn rows(report: &OomReport) -> Vec<ChargeRow> {
    let row = |task: &OomTask| ChargeRow {
        kind: ChargeKind::Anonymous,
        owner: task.name.clone(),
        bytes: i64::try_from(anonymous(task, report).0).unwrap_or(i64::MAX),
        pid: Some(task.pid),
        ..ChargeRow::default()
    };
    let mut processes: Vec<ChargeRow> = report.tasks.iter().map(row).filter(|row| row.bytes > 0).collect();
    processes.largest_first(|row| row.bytes);
    let Some(usage) = report.usage else { return processes };
    let mut rows = rows_of(usage, &charge(report), processes, Vec::new(), &[]);
    if !INACTIVE.iter().any(|name| report.stat.contains_key(*name)) {
        rows.iter_mut().filter(|row| row.owner == ACTIVE).for_each(|row| row.owner = "active or inactive".to_owned());
    }
    // Without `rss_anon`, process sizes include mapped files.
    let has_rss = report.tasks.iter().any(|task| task.anon.is_none());
    let is_excess = |row: &&mut ChargeRow| row.kind == ChargeKind::Anonymous && row.pid.is_none() && row.bytes < 0;
    if let Some(excess) = rows.iter_mut().find(is_excess).filter(|_| has_rss) {
        excess.owner = "mapped files, already counted above".to_owned();
    }
    rows
}

fn charge(report: &OomReport) -> Charge {
    let first = |names: &[&str]| Bytes(names.iter().find_map(|name| report.stat.get(*name).copied()).unwrap_or(0));
    let shmem = first(&["shmem", "total_shmem"]);
    let file = first(&["file", "total_cache", "cache"]);
    let stat: String = report.stat.iter().map(|(key, value)| format!("{key} {value}\n")).collect();
    let of_kernel = Charge::parse(&stat, loadline_jvm::kernel::cgroup::CgroupVersion::V2);
    let known = of_kernel.filter(|_| report.stat.contains_key("kernel_stack") || report.stat.contains_key("kernel"));
    Charge {
        anon: first(&["anon", "total_rss", "rss"]),
        file: Bytes(file.0.saturating_sub(shmem.0)),
        file_inactive: first(&INACTIVE),
        shmem,
        kernel: known.and_then(|charge| charge.kernel).or(report.kernel),
        kernel_parts: known.and_then(|charge| charge.kernel_parts),
        ..Charge::default()
    }
}

/// The kind with the most unreclaimable memory.
fn holder(record: &OomRecord) -> OomHolder {
    let of = |kind| record.kept(kind).map(|row| row.bytes.unsigned_abs()).sum::<u64>();
    let kinds = [
        (OomHolder::Jvm, record.jvm_bytes),
        (OomHolder::OtherProcesses, record.other_bytes),
        (OomHolder::MemoryFiles, of(ChargeKind::MemoryFiles)),
        (OomHolder::Kernel, of(ChargeKind::Kernel)),
    ];
    let most = kinds.into_iter().max_by_key(|(_, bytes)| *bytes).filter(|(_, bytes)| *bytes > 0);
    most.map_or(OomHolder::Unknown, |(holder, _)| holder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_jvm::kernel::oom_report::parse;

    /// A report for a cgroup with these processes and this much shared and kernel memory, in MiB.
    fn record(tasks: &[(&str, u64)], shmem: u64, kernel: u64) -> OomRecord {
        let anon: u64 = tasks.iter().map(|(_, mib)| mib).sum();
        let mib = |mib: u64| mib << 20;
        let mut log = format!(
            "java invoked oom-killer: order=0\nmemory: usage {}kB, limit {}kB, failcnt 1\nMemory cgroup stats for /a:\n\
             anon {}\nfile {}\nshmem {}\nkernel {}\n\
             [  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents \
             oom_score_adj name\n",
            (anon + shmem + kernel) << 10,
            (anon + shmem + kernel) << 10,
            mib(anon),
            mib(shmem),
            mib(shmem),
            mib(kernel),
        );
        for (at, (name, size)) in tasks.iter().enumerate() {
            log.push_str(&format!("[ {} ] 0 1 0 {} {} 0 0 0 0 0 {name}\n", at + 7, size << 8, size << 8));
        }
        log.push_str(
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/a,task_memcg=/a,task=java,pid=7,uid=0\n",
        );
        of_oom(&parse(&log)[0])
    }

    #[test]
    fn the_largest_row_gives_the_holder_and_rows_add_up() {
        for (tasks, shmem, kernel, holder) in [
            (&[("java", 200), ("sh", 1)][..], 10, 5, OomHolder::Jvm),
            (&[("java", 94), ("tesseract", 42), ("tesseract", 42), ("tesseract", 42)], 0, 5, OomHolder::OtherProcesses),
            (&[("java", 96)], 125, 5, OomHolder::MemoryFiles),
            (&[("java", 40)], 0, 200, OomHolder::Kernel),
        ] {
            let record = record(tasks, shmem, kernel);
            assert_eq!(record.holder, holder, "{record:#?}");
            let sum: i64 = record.rows.iter().map(|row| row.bytes).sum();
            assert_eq!(Some(sum as u64), record.usage_bytes, "{record:#?}");
            assert_eq!((record.cgroup.as_deref(), record.machine), (Some("/a"), false));
        }
    }

    #[test]
    fn a_truncated_report_has_an_unknown_holder() {
        let record = of_oom(&OomReport::default());
        assert_eq!((record.holder, record.rows.len(), record.cgroup), (OomHolder::Unknown, 0, None));
    }
}
