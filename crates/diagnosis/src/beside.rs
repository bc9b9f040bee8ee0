//! Memory charged to the container outside the JVM: child processes and memory-backed files.

use super::facts::{Facts, share, sum};
use super::found::{found, listed};
use crate::record::{ChildProgram, Finding, FindingRecord, Mark, MemoryFilesRecord, ProcessRecord};
use crate::scenario::MarkPoint;
use crate::units::{Bytes, grouped, several};

/// Such memory is ignored below this share of RSS, or below this many bytes.
const SHARE_MIN: f64 = 0.05;
const BYTES_MIN: u64 = 4 << 20;
/// The maximum number of programs and places named in a finding.
const NAMED_MAX: usize = 3;

fn matters(bytes: u64, rss: u64) -> bool {
    bytes >= BYTES_MIN && share(bytes, rss) >= SHARE_MIN
}

pub(super) fn of_children(mark: &Mark) -> u64 {
    sum(mark.beside.children.iter().map(ProcessRecord::bytes))
}

/// The JVM's children use memory. Source: mitodl/ol-infrastructure #5066 (OCR helpers: killed at 2 GiB although all
/// parts of the JVM were limited to 1,792 MiB), grobid #1036 and #1038 (a limit for each helper).
pub(super) fn children(facts: &Facts) -> Option<FindingRecord> {
    let (children, rss) = match facts.weighed() {
        Some((mark, account)) => (mark.beside.children.clone(), account.total_bytes),
        None => helpers(facts.at(MarkPoint::Loaded)?)?,
    };
    let bytes = sum(children.iter().map(ProcessRecord::bytes));
    if !matters(bytes, rss) {
        return None;
    }
    let mut programs = ChildProgram::of(&children);
    programs.truncate(NAMED_MAX);
    let told = |of: &ChildProgram| format!("{} `{}` ({})", grouped(of.processes), of.name, Bytes(of.bytes));
    let list = listed(&programs, told);
    let count = children.len() as u64;
    let processes = if count == 1 { "1 child process holds" } else { "child processes hold" };
    let bytes_held = Bytes(bytes);
    let text =
        format!("{processes} {bytes_held} outside the JVM, and all of it counts toward the container's limit: {list}");
    let each = Bytes(bytes / count.max(1));
    let next = format!(
        "run fewer of them at once, or cap the memory of each (`prlimit --as`, or its own cgroup). No JVM flag limits \
         them, so size the container for the JVM plus {each} per process"
    );
    Some(FindingRecord { costs_bytes: bytes, ..found(Finding::ChildProcesses { bytes, programs }, text, next) })
}

/// The subject's processes that run a program other than the server, and the memory of the server itself.
fn helpers(mark: &Mark) -> Option<(Vec<ProcessRecord>, u64)> {
    let (first, others) = mark.processes.split_first()?;
    let helpers = others.iter().filter(|process| process.name != first.name).cloned();
    Some((helpers.collect(), first.bytes()))
}

/// Memory-backed files are open. Source: tmpfs(5); kubernetes #128339, docker/docs #25741: an `emptyDir` in memory and
/// `/dev/shm` count against the container's limit, and cannot be reclaimed without swap.
pub(super) fn files_in_memory(facts: &Facts) -> Option<FindingRecord> {
    let (mark, account) = facts.weighed()?;
    let bytes = sum(mark.beside.files.iter().map(|place| place.bytes));
    if !matters(bytes, account.total_bytes) {
        return None;
    }
    let mut places = mark.beside.files.clone();
    places.truncate(NAMED_MAX);
    let told = |of: &MemoryFilesRecord| {
        let deleted = match of.deleted {
            0 => String::new(),
            all if all == of.files => ", all deleted but still open".to_owned(),
            some => format!(", {} of them deleted but still open", grouped(some)),
        };
        format!("{} in {}{deleted}", several(of.files, "file"), of.place)
    };
    let list: Vec<String> = places.iter().map(told).collect();
    let (all, list) = (Bytes(bytes), list.join("; "));
    let text = format!(
        "the JVM has {all} of in-memory files open: {list}. They count toward the container's limit but do not \
         show up in RSS"
    );
    let next = "close them when you are done: a deleted file is freed only when it is closed. Keep long-lived files \
         in a directory on disk (`-Djava.io.tmpdir` for temporary files), and give a tmpfs volume a size limit";
    let found = found(Finding::FilesInMemory { bytes, places }, text, next);
    Some(FindingRecord { costs_bytes: bytes, gain_bytes_max: Some(bytes), ..found })
}
