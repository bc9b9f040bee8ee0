//! Holders of much live heap: static fields, thread-local variables, virtual threads, pending finalizers, or objects
//! without a known holder.

use super::facts::{Facts, share};
use super::found::{found, listed};
use crate::record::{Finding, FindingRecord, LiveClassRecord, Mark, StaticCollectionRecord};
use crate::scenario::MarkPoint;
use crate::units::{Bytes, grouped, several};
use loadline_base::java_names::is_of_jdk;
use loadline_base::order::Order as _;

/// Any program has a live set below this share of RSS, or below this size.
const LIVE_SHARE_MIN: f64 = 0.15;
const LIVE_MIN: u64 = 16 << 20;
/// Without a holder, a live set is a cause only if it is most of the resident memory.
const ALONE_SHARE_MIN: f64 = 0.35;
const ALONE_MIN: u64 = 48 << 20;
/// A map entry with its key takes at least about 40 bytes, so fewer entries cannot hold this share of the live set.
const ENTRY_BYTES_LEAST: u64 = 40;
const HELD_SHARE_MIN: f64 = 0.1;
/// The minimum share of the live set for a holder that is not a Java collection.
const HOLDER_SHARE_MIN: f64 = 0.3;
/// The number of static fields and classes to name.
const NAMED_MAX: usize = 3;
/// Fewer virtual threads may be serving current requests, and fewer finalizers are the JDK's own.
const VIRTUAL_MIN: u64 = 1000;
const FINALIZERS_MIN: u64 = 1000;

/// The live set after a full collection, with its mark, if it is large.
fn much<'a>(facts: &Facts<'a>) -> Option<(u64, &'a Mark)> {
    let (_, account) = facts.weighed()?;
    let mark = facts.at(MarkPoint::Collected)?;
    let live_bytes = mark.heap.live_bytes?;
    let is_much = live_bytes >= LIVE_MIN && share(live_bytes, account.total_bytes) >= LIVE_SHARE_MIN;
    is_much.then_some((live_bytes, mark))
}

fn of_class<'a>(mark: &'a Mark, name: &str) -> Option<&'a LiveClassRecord> {
    mark.live_classes.iter().find(|of| of.class == name)
}

/// Much of the heap is live, and static fields refer to large collections, which retain their contents. Source: iceberg
/// #13738 (millions of paths in `DeleteOnExitHook`), netty #10560, bisq #3817; measured: 150,000 paths, 26 MiB.
pub(super) fn statics(facts: &Facts) -> Option<FindingRecord> {
    let (live_bytes, mark) = much(facts)?;
    let least = |of: &StaticCollectionRecord| of.bytes.max(of.entries.saturating_mul(ENTRY_BYTES_LEAST));
    let holds = |of: &&StaticCollectionRecord| share(least(of), live_bytes) >= HELD_SHARE_MIN;
    let mut holders: Vec<StaticCollectionRecord> = mark.static_collections.iter().filter(holds).cloned().collect();
    holders.largest_first(|of| least(of));
    holders.truncate(NAMED_MAX);
    let told = |of: &StaticCollectionRecord| {
        let bytes = if of.bytes > 0 { format!(" (at least {})", Bytes(of.bytes)) } else { String::new() };
        format!("`{}.{}` with {} entries{bytes}", of.class, of.field, grouped(of.entries))
    };
    let first = holders.first()?;
    let (live, list) = (Bytes(live_bytes), listed(&holders, told));
    let text = format!("{live} of the heap is live after a full GC, and static fields hold large collections: {list}");
    let StaticCollectionRecord { class, field, .. } = first;
    let next = match cure_of_holder(&format!("{class}.{field}")) {
        Some(cure) => format!("{cure}. A larger heap does not fix this"),
        None => format!(
            "bound `{class}.{field}` or remove its entries; a larger heap only delays the failure. To see the \
             entries' size, use `loadline account PID --classes` or a heap dump"
        ),
    };
    let finding = Finding::HeapHeldByStatics { live_bytes, holders };
    Some(FindingRecord { costs_bytes: live_bytes, ..found(finding, text, next) })
}

/// The remedy for a JDK collection that only grows (JDK 11–27), by its static field; `None` for other holders.
pub fn cure_of_holder(name: &str) -> Option<&'static str> {
    let cures = [
        (
            "java.io.DeleteOnExitHook.",
            "do not call `File.deleteOnExit()` if the code deletes the file itself: the JVM keeps every path \
             until it exits",
        ),
        (
            "java.lang.ApplicationShutdownHooks.",
            "register the shutdown hook only once, or remove it: the JVM keeps every hook until it exits",
        ),
    ];
    cures.into_iter().find(|(class, _)| name.starts_with(class)).map(|(_, cure)| cure)
}

/// Thread-local variables hold much of the heap, once per thread. Source: `ThreadLocal` (JDK 11–27: a value lives as
/// long as its thread); measured: 32 threads × 4 MiB.
pub(super) fn thread_values(facts: &Facts) -> Option<FindingRecord> {
    let (live_bytes, mark) = much(facts)?;
    let held = mark.thread_values.clone().filter(|of| share(of.bytes, live_bytes) >= HOLDER_SHARE_MIN)?;
    let each = held.bytes / held.threads.max(1);
    let [hang, live, each, largest] = [held.bytes, live_bytes, each, held.largest_bytes].map(Bytes);
    let text = format!(
        "`ThreadLocal` variables of {} hold {hang} of the {live} of live heap, {each} for each thread; the \
         largest value is a `{}` that holds {largest}",
        several(held.threads, "thread"),
        spelled(&held.class)
    );
    let next = "call `ThreadLocal.remove()` when a request ends, or share or bound the value; fewer threads also \
         help. A larger `-Xmx` does not";
    let costs_bytes = held.bytes;
    let finding = Finding::HeapHeldByThreadLocals { live_bytes, values: held };
    Some(FindingRecord { costs_bytes, ..found(finding, text, next) })
}

/// Parked virtual threads keep their stacks in the heap. Source: JEP 444 (stack chunks are heap objects); measured:
/// 28,000 parked threads, 105 MiB.
pub(super) fn virtual_threads(facts: &Facts) -> Option<FindingRecord> {
    let (live_bytes, mark) = much(facts)?;
    let threads = of_class(mark, "java.lang.VirtualThread")?.instances;
    let stack_bytes = of_class(mark, "jdk.internal.vm.StackChunk")?.bytes;
    if threads < VIRTUAL_MIN || share(stack_bytes, live_bytes) < HOLDER_SHARE_MIN {
        return None;
    }
    let (parked, [stacks, live]) = (grouped(threads), [stack_bytes, live_bytes].map(Bytes));
    let kib = stack_bytes as f64 / threads as f64 / 1024.0;
    let text = format!(
        "{parked} virtual threads are parked, and their stacks take up {stacks} of the {live} of live heap ({kib:.1} \
         KiB each)"
    );
    let next = format!(
        "limit how many run at once (a `Semaphore` in front of the work), set a timeout on whatever they wait for, and \
         stop those that wait forever: {} shows where they are parked. A larger `-Xmx` only delays the failure",
        facts.jcmd("Thread.dump_to_file FILE")
    );
    let finding = Finding::VirtualThreadsParked { threads, stack_bytes, live_bytes };
    Some(FindingRecord { costs_bytes: stack_bytes, ..found(finding, text, next) })
}

/// Objects wait for the single finalizer thread. Source: JEP 421 (finalization is deprecated); measured: 2,000 objects
/// a second whose finalizers take 5 ms each.
pub(super) fn finalizers(facts: &Facts) -> Option<FindingRecord> {
    let (live_bytes, mark) = much(facts)?;
    let waiting = of_class(mark, "java.lang.ref.Finalizer").filter(|of| of.instances >= FINALIZERS_MIN)?.instances;
    if share(live_bytes, facts.rss()) < ALONE_SHARE_MIN {
        return None;
    }
    let classes = heaviest(mark);
    // A class with about as many objects as there are finalizers: they wait, or are referenced by objects that do.
    let of = mark
        .live_classes
        .iter()
        .find(|of| !of.class.starts_with('[') && !is_of_jdk(&of.class) && of.instances >= waiting / 2);
    let whose = of.map(|of| format!(", {} of them instances of `{}`", grouped(of.instances), spelled(&of.class)));
    let (objects, whose, live) = (grouped(waiting), whose.unwrap_or_default(), Bytes(live_bytes));
    let text = format!(
        "the heap holds {objects} objects with a finalizer{whose}. They keep {live} alive, counting what they \
         refer to, until the single finalizer thread gets to them"
    );
    let next = "replace `finalize()` with `AutoCloseable` or a `java.lang.ref.Cleaner`. Until then, keep it fast, \
         because one thread runs all finalizers. A larger `-Xmx` only delays the failure";
    let finding = Finding::FinalizersWait { waiting, live_bytes, classes };
    Some(FindingRecord { costs_bytes: live_bytes, ..found(finding, text, next) })
}

fn heaviest(mark: &Mark) -> Vec<LiveClassRecord> {
    mark.live_classes.iter().take(NAMED_MAX).cloned().collect()
}

/// Most resident memory is live heap without a known holder, so an object's field, a queue, or a thread holds it.
pub(super) fn unheld(facts: &Facts) -> Option<FindingRecord> {
    let (live_bytes, mark) = much(facts)?;
    let is_most = live_bytes >= ALONE_MIN && share(live_bytes, facts.rss()) >= ALONE_SHARE_MIN;
    let holders: [fn(&Facts) -> Option<FindingRecord>; 4] = [statics, thread_values, virtual_threads, finalizers];
    let has_humongous = super::humongous::tails(facts).is_some();
    if !is_most || has_humongous || mark.live_classes.is_empty() || holders.iter().any(|rule| rule(facts).is_some()) {
        return None;
    }
    let classes = heaviest(mark);
    let told =
        |of: &LiveClassRecord| format!("{} in {} of `{}`", Bytes(of.bytes), grouped(of.instances), spelled(&of.class));
    let (live, list) = (Bytes(live_bytes), listed(&classes, told));
    let text = format!(
        "{live} of the heap is live after a full GC: {list}. No static collection or thread variable holds it, so \
         a field of some object does, such as a cache or a queue"
    );
    let next = "in a heap dump (`--heap-dump FILE`), find what references these objects, and bound that cache or \
         queue; a larger `-Xmx` only delays the failure";
    Some(FindingRecord { costs_bytes: live_bytes, ..found(Finding::HeapLives { live_bytes, classes }, text, next) })
}

/// Converts `[B` to `byte[]`.
fn spelled(class: &str) -> &str {
    match class {
        "[B" => "byte[]",
        "[C" => "char[]",
        "[I" => "int[]",
        "[J" => "long[]",
        "[D" => "double[]",
        "[Ljava.lang.Object;" => "Object[]",
        other => other,
    }
}
