//! Memory charged to the container besides the JVM: child processes, and files in memory.

use super::facts::{Facts, share, sum};
use super::found::{found, listed};
use crate::record::{ChildProgram, Finding, FindingRecord, Mark, MemoryFilesRecord, ProcessRecord};
use crate::scenario::MarkPoint;
use crate::units::{Bytes, grouped, several};

/// Below this share of RSS, or below this many bytes, such memory does not matter.
const SHARE_MIN: f64 = 0.05;
const BYTES_MIN: u64 = 4 << 20;
/// The most programs and places that a finding names.
const NAMED_MAX: usize = 3;

fn matters(bytes: u64, rss: u64) -> bool {
    bytes >= BYTES_MIN && share(bytes, rss) >= SHARE_MIN
}

/// The memory of all children of the JVM.
pub(super) fn of_children(mark: &Mark) -> u64 {
    sum(mark.beside.children.iter().map(ProcessRecord::bytes))
}

/// Children of the JVM hold memory. Source: mitodl/ol-infrastructure #5066 (OCR helpers: killed at 2 GiB with all parts
/// of the JVM bounded to 1,792 MiB), grobid #1036 and #1038 (a limit for each helper).
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
    let told = |of: &ChildProgram| format!("{} of `{}` with {}", grouped(of.processes), of.name, Bytes(of.bytes));
    let list = listed(&programs, told);
    let count = children.len() as u64;
    let processes = if count == 1 { "1 child process holds" } else { "child processes hold" };
    let bytes_held = Bytes(bytes);
    let text = format!("{processes} {bytes_held} in addition to the JVM, and the container pays for it: {list}");
    let each = Bytes(bytes / count.max(1));
    let next = format!(
        "run fewer of them at once, or bound the memory of each (`prlimit --as`, a cgroup of its own); the container \
         needs the JVM + their number × {each}: no flag of the JVM bounds them"
    );
    Some(FindingRecord { costs_bytes: bytes, ..found(Finding::ChildProcesses { bytes, programs }, text, next) })
}

/// The processes of a subject of several that are of other programs than the one that serves, and the memory of that.
fn helpers(mark: &Mark) -> Option<(Vec<ProcessRecord>, u64)> {
    let (first, others) = mark.processes.split_first()?;
    let helpers = others.iter().filter(|process| process.name != first.name).cloned();
    Some((helpers.collect(), first.bytes()))
}

/// Files in memory are open. Source: tmpfs(5); kubernetes #128339, docker/docs #25741: an `emptyDir` in memory and
/// `/dev/shm` count against the container's limit, and are not reclaimed without swap.
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
            all if all == of.files => ", all deleted and still open".to_owned(),
            some => format!(", {} of them deleted and still open", grouped(some)),
        };
        format!("{} in {}{deleted}", several(of.files, "file"), of.place)
    };
    let list: Vec<String> = places.iter().map(told).collect();
    let (all, list) = (Bytes(bytes), list.join("; "));
    let text = format!(
        "{all} are files in memory that the JVM has open: {list}; they count against the container's limit, and no \
         RSS shows them"
    );
    let next = "close them when they are done: a deleted file is freed when it is closed. Keep what must \
        stay in a folder on disk (`-Djava.io.tmpdir` for temporary files); give a tmpfs volume a size limit";
    let found = found(Finding::FilesInMemory { bytes, places }, text, next);
    Some(FindingRecord { costs_bytes: bytes, gain_bytes_max: Some(bytes), ..found })
}
