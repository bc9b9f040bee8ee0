//! The contents of some owners: live objects by class, code cache by segment, threads individually and by pool.

use super::cells::{beginning, end, kib, mib, signed, sum};
use super::pools;
use crate::page::Part;
use crate::record::{
    HeapDumpRecord, Mark, ObjectClass, ObjectKindName, ObjectSum, ObjectsRecord, ThreadPoolRecord, ThreadRecord, Trial,
};
use crate::table::Table;
use crate::units::{Bytes, grouped, growth};
use crate::words::dash;
use loadline_base::java_names::{is_of_jdk, spelled};
use loadline_base::order::Order as _;

const CLASSES_MAX: usize = 15;
/// The maximum number of additional classes, and their minimum gain in objects relative to the largest (reciprocal).
const NUMEROUS_MAX: usize = 5;
const NUMEROUS_SHARE: u64 = 10;
const THREADS_MAX: usize = 40;
/// Room in characters for names next to numbers.
const NAME_MAX: usize = 34;
const POOL_MAX: usize = 30;

const CUT: &str = "The kernel truncates names to 15 bytes.";

const TIERS: &str = "Profiled nmethods are from tiers 2 and 3 and go away when tier 4 replaces them; non-profiled \
     ones are from tiers 1 and 4; non-nmethods are stubs and the interpreter.";

/// The code cache by segment, or why it is missing.
pub(super) fn code(mark: &Mark) -> Part {
    if mark.code.is_empty() {
        return Part::Text("The JVM did not report how full the code cache is.".to_owned());
    }
    let rows = mark.code.iter().map(|heap| {
        let sizes = [heap.rss_bytes, Some(heap.used_bytes), Some(heap.used_bytes_peak)].map(mib);
        let bounds = [heap.committed_bytes, Some(heap.reserved_bytes)].map(mib);
        [vec![beginning(&heap.name, POOL_MAX)], sizes.to_vec(), bounds.to_vec()].concat()
    });
    let head = ["segment", "RSS", "used", "peak", "committed", "reserved"];
    let notes = (mark.code.len() > 1).then(|| TIERS.to_owned());
    Part::Table(Table::new("code cache by segment, MiB", head, rows).noted(notes))
}

/// Threads by pool, or why they are missing.
pub(super) fn pools(mark: &Mark) -> Part {
    if mark.pools.is_empty() {
        return Part::Text("No thread could be identified.".to_owned());
    }
    let row = |pool: &ThreadPoolRecord| pools::row(&pool.name, pool, pool.cpu_s, pool.allocated_bytes);
    let title = "threads by pool: resident stacks, CPU time, and heap allocated so far";
    let note = format!("{CUT} `*` stands for a varying number.");
    Part::Table(pools::table(title, mark.pools.iter().map(row).collect(), note))
}

/// Individual threads: the top ones of each column, deepest stack first.
pub(super) fn threads(threads: &[ThreadRecord]) -> Part {
    let total = |of: fn(&ThreadRecord) -> f64| threads.iter().map(of).sum::<f64>().max(f64::MIN_POSITIVE);
    let columns: [fn(&ThreadRecord) -> f64; 3] = [
        |thread| thread.stack_bytes.unwrap_or(0) as f64,
        |thread| thread.cpu_s,
        |thread| thread.allocated_bytes.unwrap_or(0) as f64,
    ];
    let columns = columns.map(|of| (of, total(of)));
    let weight = |thread: &ThreadRecord| columns.iter().map(|(of, total)| of(thread) / total).fold(0.0, f64::max);
    let mut shown: Vec<&ThreadRecord> = threads.iter().collect();
    shown.order_by(|one, other| weight(other).total_cmp(&weight(one)));
    let left = shown.split_off(shown.len().min(THREADS_MAX));
    shown.largest_first(|thread| (thread.stack_bytes, thread.allocated_bytes));
    let row = |thread: &&ThreadRecord| {
        let cpu = format!("{:.2}", thread.cpu_s);
        let stack = thread.stack_bytes.map_or_else(dash, kib);
        vec![beginning(&thread.name, POOL_MAX), thread.tid.to_string(), stack, cpu, mib(thread.allocated_bytes)]
    };
    let (stacks, heap) = (sum(left.iter().filter_map(|of| of.stack_bytes)), left.iter().map(|of| of.allocated_bytes));
    let more = format!(
        "and {} more with {} KiB of stacks, which allocated {} MiB (--json)",
        grouped(left.len() as u64),
        kib(stacks),
        mib(sum(heap.flatten()))
    );
    let more = (!left.is_empty()).then_some(more);
    let head = ["thread", "tid", "stack KiB", "CPU s", "allocated MiB"];
    let title = "threads: resident stacks, CPU time, and heap allocated since each started";
    Part::Table(Table::new(title, head, shown.iter().map(row)).noted(more.into_iter().chain([CUT.to_owned()])))
}

pub(crate) fn of_trial(trial: &Trial) -> Option<Table> {
    let heap_used = trial.marks.last().and_then(|mark| mark.heap.live_bytes.or(mark.heap.used_bytes));
    trial.objects.as_ref().map(|found| objects(found, "a fresh JVM was ready", heap_used))
}

/// Live objects by class. If an earlier count is known, from the time `since`, the fastest-growing classes come first.
pub(super) fn objects(found: &ObjectsRecord, since: &str, heap_used: Option<u64>) -> Table {
    let row = |class: &ObjectClass| {
        let mut row = vec![end(&spelled(&class.name), NAME_MAX), grouped(class.now.instances), kib(class.now.bytes)];
        if found.at_start.is_some() {
            row.extend(class.at_start.map_or_else(|| [dash(), dash()], |start| grown(class.now, start)));
        }
        row
    };
    let numerous = numerous(found).filter(|(at, _)| *at >= CLASSES_MAX).map(|(_, class)| class);
    let numerous: Vec<&ObjectClass> = numerous.take(NUMEROUS_MAX).collect();
    let shown = found.classes.iter().take(CLASSES_MAX).chain(numerous.iter().copied());
    let mut rows: Vec<Vec<String>> = shown.map(row).collect();
    let all = ObjectClass { name: "all".to_owned(), now: found.total, at_start: found.at_start };
    rows.push(row(&all));
    let mut head = vec!["class", "objects", "KiB"];
    let title = match found.at_start {
        Some(_) => {
            head.extend(["objects +", "KiB +"]);
            format!("live objects by class, by growth since {since}")
        }
        None => "live objects by class".to_owned(),
    };
    let more = found.classes_left_out + (found.classes.len() + 1 - rows.len()) as u64;
    let heap = heap_used.map(|used| format!("The heap had {} in use when it was weighed.", Bytes(used)));
    let more = (more > 0).then(|| format!("and {} more classes (--json)", grouped(more)));
    let last = match numerous.len() {
        0 => None,
        1 => Some("Outside the JDK, the last class listed gained the most objects.".to_owned()),
        n => Some(format!("Outside the JDK, the last {n} classes listed gained the most objects.")),
    };
    Table::new(title, head, rows).noted(more.into_iter().chain(last).chain(kinds(found)).chain(heap))
}

/// Classes outside the JDK that gained the most objects, with their index, largest gain first; empty without an earlier
/// count. The objects that each request leaves behind may have few bytes.
pub(super) fn numerous(found: &ObjectsRecord) -> impl Iterator<Item = (usize, &ObjectClass)> {
    let gained = |class: &ObjectClass| class.now.instances.saturating_sub(class.at_start.map_or(0, |of| of.instances));
    let classes = found.classes.iter().enumerate().filter(|_| found.at_start.is_some());
    let mut own: Vec<(usize, &ObjectClass)> = classes.filter(|(_, class)| !is_of_jdk(&class.name)).collect();
    own.largest_first(|(_, class)| gained(class));
    let least = own.first().map_or(0, |(_, class)| gained(class) / NUMEROUS_SHARE).max(1);
    own.into_iter().take_while(move |(_, class)| gained(class) >= least)
}

fn grown(now: ObjectSum, start: ObjectSum) -> [String; 2] {
    [signed(growth(start.instances, now.instances), grouped), signed(growth(start.bytes, now.bytes), kib)]
}

/// A sentence with the sums of nonempty kinds.
fn kinds(found: &ObjectsRecord) -> Option<String> {
    let words = |kind| match kind {
        ObjectKindName::Strings => "strings",
        ObjectKindName::ByteArrays => "byte arrays",
        ObjectKindName::Boxed => "boxed numbers",
        ObjectKindName::EmptyMaps => "or more maps that never had an entry",
    };
    let told = found.kinds.iter().filter(|of| of.now.instances > 0).map(|of| {
        let grown = of.at_start.map(|start| format!(", {} KiB", signed(growth(start.bytes, of.now.bytes), kib)));
        let size = format!("{} KiB{}", kib(of.now.bytes), grown.unwrap_or_default());
        format!("{} {} ({size})", grouped(of.now.instances), words(of.kind))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("These include {}.", told.join(", ")))
}

pub(super) fn dump(found: &HeapDumpRecord) -> Part {
    let text = format!(
        "The heap dump is {}: {}, written in {:.2} s while the JVM was paused.",
        found.path,
        Bytes(found.bytes),
        found.seconds
    );
    Part::Text(text)
}

#[cfg(test)]
#[path = "inside_tests.rs"]
mod tests;
