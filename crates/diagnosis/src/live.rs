//! Holders that keep much of the heap alive: static fields, variables of threads, virtual threads, finalizers that
//! wait, or objects whose holder was not found.

use super::facts::{Facts, share};
use super::found::{found, listed};
use crate::record::{Finding, FindingRecord, LiveClassRecord, Mark, StaticCollectionRecord};
use crate::scenario::MarkPoint;
use crate::units::{Bytes, grouped, several};
use loadline_base::order::Order as _;

/// A live set below this share of RSS, or below this, is that of any program.
const LIVE_SHARE_MIN: f64 = 0.15;
const LIVE_MIN: u64 = 16 << 20;
/// Without a holder, a live set is a cause only where it is most of what is resident.
const ALONE_SHARE_MIN: f64 = 0.35;
const ALONE_MIN: u64 = 48 << 20;
/// An entry of a map with a key takes some 40 bytes and more: fewer of them hold no such share of the live set.
const ENTRY_BYTES_LEAST: u64 = 40;
const HELD_SHARE_MIN: f64 = 0.1;
/// The least share of the live set for a holder that is not a Java collection.
const HOLDER_SHARE_MIN: f64 = 0.3;
/// Static fields and classes that are named.
const NAMED_MAX: usize = 3;
/// Fewer virtual threads are the requests under way, and fewer finalizers those of the JDK.
const VIRTUAL_MIN: u64 = 1000;
const FINALIZERS_MIN: u64 = 1000;

/// Returns the live set after a full collection, with its mark, if it is large.
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

/// Much of the heap is alive, and static fields refer to large collections: what a program puts there stays. Source:
/// iceberg #13738 (millions of paths in `DeleteOnExitHook`), netty #10560, bisq #3817; measured: 150,000 paths, 26 MiB.
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
    let text =
        format!("{live} of the heap are alive after a full GC, and static fields keep large collections: {list}");
    let StaticCollectionRecord { class, field, .. } = first;
    let next = match cure_of_holder(&format!("{class}.{field}")) {
        Some(cure) => format!("{cure}. A larger heap does not cure this"),
        None => format!(
            "bound `{class}.{field}`, or remove its entries: a larger heap only delays the failure (`loadline account \
             PID --classes`, or a heap dump, shows their bytes)"
        ),
    };
    let finding = Finding::HeapHeldByStatics { live_bytes, holders };
    Some(FindingRecord { costs_bytes: live_bytes, ..found(finding, text, next) })
}

/// The cure for a collection of the JDK that only grows (JDK 11–27), by its static field; `None` for any other holder.
pub fn cure_of_holder(name: &str) -> Option<&'static str> {
    let cures = [
        (
            "java.io.DeleteOnExitHook.",
            "drop `File.deleteOnExit()` if the code deletes the file: the JVM keeps each path until it exits",
        ),
        (
            "java.lang.ApplicationShutdownHooks.",
            "register a shutdown hook once, or remove it: the JVM keeps each until it exits",
        ),
    ];
    cures.into_iter().find(|(class, _)| name.starts_with(class)).map(|(_, cure)| cure)
}

/// Variables of threads hold much of the heap, once for each thread. Source: `ThreadLocal` (JDK 11–27: a value lives as
/// long as its thread); measured: 32 threads × 4 MiB.
pub(super) fn thread_values(facts: &Facts) -> Option<FindingRecord> {
    let (live_bytes, mark) = much(facts)?;
    let held = mark.thread_values.clone().filter(|of| share(of.bytes, live_bytes) >= HOLDER_SHARE_MIN)?;
    let each = held.bytes / held.threads.max(1);
    let [hang, live, each, largest] = [held.bytes, live_bytes, each, held.largest_bytes].map(Bytes);
    let text = format!(
        "`ThreadLocal` variables of {} keep {hang} of the {live} that live in the heap, {each} for each thread; the \
         largest value is {largest} behind a `{}`",
        several(held.threads, "thread"),
        spelled(&held.class)
    );
    let next = "remove the value when a request ends (`ThreadLocal.remove()`), share or bound it; fewer threads hold \
        fewer. A larger `-Xmx` does not help";
    let costs_bytes = held.bytes;
    let finding = Finding::HeapHeldByThreadLocals { live_bytes, values: held };
    Some(FindingRecord { costs_bytes, ..found(finding, text, next) })
}

/// Virtual threads that are parked keep their stacks in the heap. Source: JEP 444 (stack chunks are objects of the
/// heap); measured: 28,000 parked threads, 105 MiB.
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
        "{parked} virtual threads are parked, and their stacks take {stacks} of the {live} that live in the heap \
         ({kib:.1} KiB each)"
    );
    let next = "bound how many run at once (a `Semaphore` before work is taken in), give what they wait for a timeout, \
        and end those that wait forever: `jcmd PID Thread.dump_to_file FILE` shows where they are parked. A larger \
        `-Xmx` only delays it";
    let finding = Finding::VirtualThreadsParked { threads, stack_bytes, live_bytes };
    Some(FindingRecord { costs_bytes: stack_bytes, ..found(finding, text, next) })
}

/// Objects wait for their finalizer, on which one thread works. Source: JEP 421 (finalization is deprecated); measured:
/// finalizers of 5 ms each with 2,000 objects a second.
pub(super) fn finalizers(facts: &Facts) -> Option<FindingRecord> {
    let (live_bytes, mark) = much(facts)?;
    let waiting = of_class(mark, "java.lang.ref.Finalizer").filter(|of| of.instances >= FINALIZERS_MIN)?.instances;
    if share(live_bytes, facts.rss()) < ALONE_SHARE_MIN {
        return None;
    }
    let classes = heaviest(mark);
    // A finalizer for each of the objects of a class: these are the ones that wait, or what they refer to.
    let of = mark.live_classes.iter().find(|of| !is_of_jdk(&of.class) && of.instances >= waiting / 2);
    let whose = of.map(|of| format!(", {} of them of `{}`", grouped(of.instances), spelled(&of.class)));
    let (objects, whose, live) = (grouped(waiting), whose.unwrap_or_default(), Bytes(live_bytes));
    let text = format!(
        "the heap holds {objects} objects with a finalizer{whose}; they and what they refer to keep {live} alive \
         until one thread has finalized them"
    );
    let next = "drop `finalize()`: close what it frees (`AutoCloseable`, or a `java.lang.ref.Cleaner`); until then \
        make it quick, because one thread runs all of them. A larger `-Xmx` only delays it";
    let finding = Finding::FinalizersWait { waiting, live_bytes, classes };
    Some(FindingRecord { costs_bytes: live_bytes, ..found(finding, text, next) })
}

fn is_of_jdk(class: &str) -> bool {
    ["[", "java.", "javax.", "jdk.", "sun.", "com.sun."].iter().any(|begin| class.starts_with(begin))
}

fn heaviest(mark: &Mark) -> Vec<LiveClassRecord> {
    mark.live_classes.iter().take(NAMED_MAX).cloned().collect()
}

/// Most of what is resident is live heap, and no known holder has it. So a field of an object, a queue or a thread
/// holds it.
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
        "{live} of the heap are alive after a full GC: {list}; no static collection and no variable of a thread holds \
         them, so a field of an object does, such as a cache or a queue"
    );
    let next = "see who refers to them in a heap dump (`--heap-dump FILE`), and bound that cache or queue: a larger \
        `-Xmx` only delays it";
    Some(FindingRecord { costs_bytes: live_bytes, ..found(Finding::HeapLives { live_bytes, classes }, text, next) })
}

/// `byte[]` of `[B`.
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
