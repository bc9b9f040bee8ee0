//! The collector: too heavy for its heap, or chosen by the JVM itself.

use super::facts::{Facts, holds};
use super::found::found;
use crate::owner::Owner;
use crate::record::{Finding, FindingRecord};
use crate::scenario::{Change, Gc};
use crate::units::Bytes;

/// Serial collects such heaps in a few milliseconds.
const SMALL_HEAP: u64 = 200 << 20;
/// Serial's card table has one byte per 512 bytes of heap.
const CARD_BYTES: u64 = 512;
/// If collections take a larger share of the time, another collector may be better.
const GC_SHARE_MAX: f64 = 0.05;

/// G1's tables are large relative to a small heap. Source: JDK-8210708 (JDK 20: one mark bitmap fewer, which is 1.5% of
/// the heap), JDK-8017163 and JDK-8336086 (remembered sets). The gain from Serial therefore shrinks with each release.
/// Measured with a 128 MiB heap: 4.8 MiB on JDK 17, 2.5 MiB on 25, and almost nothing before an idle JVM's first
/// marking.
pub(super) fn g1_on_small_heap(facts: &Facts) -> Option<FindingRecord> {
    let (_, account) = facts.weighed()?;
    let (tables_bytes, heap_bytes) = (holds(account, Owner::Gc), account.heap_bytes());
    let is_small = facts.collector() == "G1" && heap_bytes <= SMALL_HEAP;
    if !is_small {
        return None;
    }
    let gain = tables_bytes.saturating_sub(heap_bytes / CARD_BYTES);
    let is_typed = facts.flags.collector_is_typed();
    let remedies = if is_typed { Vec::new() } else { vec![Change::Gc(Gc::Serial)] };
    let text = format!("G1's internal tables take up {} for a heap of {}", Bytes(tables_bytes), Bytes(heap_bytes));
    let next = match is_typed {
        true => "you set `-XX:+UseG1GC`; Serial GC's tables take only 1/512 of the heap",
        false => "try `-XX:+UseSerialGC`, and watch the longest pause",
    };
    let found = found(Finding::G1OnSmallHeap { tables_bytes, heap_bytes }, text, next);
    Some(FindingRecord { costs_bytes: tables_bytes, gain_bytes_max: Some(gain), remedies, ..found })
}

/// The JVM itself chose Serial, and collections take much of the time under load. Source: `VM_Version` and
/// `os::is_server_class_machine` (JDK 11–26: below 2 CPUs or 1,792 MB, it chooses Serial; JEP 523 ends that in 27), and
/// tmdevlab's test of jaz, in which replacing Serial on 2 CPUs increased throughput by 36%.
pub(super) fn serial_unasked(facts: &Facts) -> Option<FindingRecord> {
    let is_chosen = facts.collector() == "Serial" && !facts.flags.collector_is_typed();
    let seconds: f64 = facts.loads().map(|phase| phase.seconds).sum();
    let gc_ms = facts.loads().map(|phase| phase.subject.gc_ms).sum::<Option<f64>>()?;
    let gc_share = gc_ms / 1e3 / seconds;
    if !is_chosen || !gc_share.is_finite() || gc_share < GC_SHARE_MAX {
        return None;
    }
    let cpus =
        facts.cpus.map(|cpus| format!(", because it sees few CPUs ({cpus}) or little memory")).unwrap_or_default();
    let text = format!(
        "the JVM chose Serial GC on its own{cpus}, and spent {:.0}% of the time under load in GC",
        gc_share * 1e2
    );
    let next = "try `-XX:+UseG1GC`, `-XX:+UseParallelGC`, or a larger heap";
    let found = found(Finding::SerialUnasked { gc_share, cpus: facts.cpus }, text, next);
    Some(FindingRecord { remedies: vec![Change::Gc(Gc::G1), Change::Gc(Gc::Parallel)], ..found })
}
