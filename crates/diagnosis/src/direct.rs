//! Direct memory: buffers that wait for a collection, and mostly empty Netty chunks.

use super::facts::{Facts, holds, share, sum};
use super::found::{first, found, so_far, typed};
use super::malloc::THRESHOLDS;
use crate::doubt::MemoryPool;
use crate::owner::Owner;
use crate::record::{
    CeilingCause, DirectHolder, DirectRecord, Finding, FindingRecord, Mark, NettyAllocator, NettyChunksRecord,
    NettyKind, NettyMemory, ThreadBuffersRecord, whole,
};
use crate::remedy::changes::{self, KEPT_FOR_A_THREAD, jvm};
use crate::scenario::{Change, MarkPoint};
use crate::units::{Bytes, grouped, several};

/// A smaller share of RSS does not justify a ceiling.
const DIRECT_SHARE_MIN: f64 = 0.05;
/// If a full collection frees less than this share, little was waiting.
const FREED_SHARE_MIN: f64 = 0.25;
/// If the ceiling is this many times the reserved memory, no collection will come soon.
const CEILING_TIMES_MIN: u64 = 2;
/// Without evidence from a full collection, at most one collection per this many seconds counts as few.
const SECONDS_PER_COLLECTION: f64 = 10.0;
/// The room that a ceiling leaves above the live memory, and its minimum.
const ROOM_TIMES: u64 = 2;
const CEILING_LEAST: u64 = 16 << 20;
/// Chunks of at least this size are always mapped separately (`DEFAULT_MMAP_THRESHOLD_MAX`, malloc/malloc.c).
const MMAPPED_ALWAYS: u64 = 32 << 20;
/// If a smaller share of Netty's chunks is allocated, they are mostly free.
const HANDED_OUT_SHARE_MAX: f64 = 0.5;

/// Direct buffers wait for a collection: their memory is freed when the collector finds the buffer dead. The JDK calls
/// `System.gc()` only at the ceiling, by default the heap's. Source: `java.nio.Bits` and `java.lang.ref.Cleaner` (JDK
/// 11–25). Measured: a database on JDK 25 with 1,063 MB in 239 buffers and 29 MiB of live heap.
pub(super) fn waits(facts: &Facts) -> Option<FindingRecord> {
    let (mark, account) = facts.weighed()?;
    let direct = mark.direct?;
    let direct_bytes = direct.reserved_bytes;
    let left = facts.at(MarkPoint::Collected).and_then(|mark| mark.direct).map(|direct| direct.reserved_bytes);
    let ceiling_bytes = ceiling(facts, &direct, mark);
    let is_high = ceiling_bytes.is_some_and(|ceiling| ceiling >= direct_bytes.saturating_mul(CEILING_TIMES_MIN));
    // No collection frees buffers that living threads hold.
    let held = mark.thread_buffers.map_or(0, |of| of.bytes);
    let waited = direct_bytes.saturating_sub(left.unwrap_or(held));
    let shows = match left {
        Some(_) => share(waited, direct_bytes) >= FREED_SHARE_MIN,
        // Netty itself frees the buffers that it counts.
        None => is_high && direct.netty_bytes.is_none() && are_few(facts, mark),
    };
    if !shows || share(waited, account.total_bytes) < DIRECT_SHARE_MIN {
        return None;
    }
    let frees = match left {
        Some(left) => format!("; a full GC left {} of it", Bytes(left)),
        None => ", which only a GC frees".to_owned(),
    };
    let collections = mark.heap.collections;
    let most = ceiling_bytes.map(|ceiling| format!("; the JVM allows up to {}", Bytes(ceiling))).unwrap_or_default();
    let text = format!("{}{frees}{}{most}", are_in(direct_bytes, direct.buffers), so_far(collections));
    let remedies = remedies(facts, direct_bytes, left.unwrap_or(held.max(direct_bytes / 4)));
    // Allocation fails if live buffers reach a ceiling, so propose one only after a full collection.
    let next = match (first(&remedies), left) {
        (Some(first), Some(_)) => format!("cap it with `{first}`, or reuse the buffers"),
        (Some(first), None) => format!(
            "see how much a full GC leaves ({}, or the mark `collected`); if the buffers were garbage, cap direct \
             memory with `{first}`",
            facts.jcmd("GC.run")
        ),
        (None, _) => "lower `-XX:MaxDirectMemorySize`, or reuse the buffers".to_owned(),
    };
    let (buffers, left_by_gc_bytes) = (direct.buffers, left);
    let finding = Finding::DirectMemoryWaits { direct_bytes, buffers, left_by_gc_bytes, ceiling_bytes, collections };
    let found = found(finding, text, next);
    Some(FindingRecord { costs_bytes: direct_bytes, gain_bytes_max: Some(waited), remedies, ..found })
}

fn are_in(bytes: u64, buffers: u64) -> String {
    format!("{} is in {}", Bytes(bytes), several(buffers, "direct buffer"))
}

/// Evidence against waiting buffers: a full collection kept most of the direct memory.
pub(super) fn spared(facts: &Facts) -> Option<String> {
    let (mark, account) = facts.weighed()?;
    let direct_bytes = mark.direct?.reserved_bytes;
    let left = facts.at(MarkPoint::Collected).and_then(|mark| mark.direct)?.reserved_bytes;
    let freed_share = share(direct_bytes.saturating_sub(left), direct_bytes);
    let matters = share(direct_bytes, account.total_bytes) >= DIRECT_SHARE_MIN;
    let (left, direct) = (Bytes(left.min(direct_bytes)), Bytes(direct_bytes));
    (matters && freed_share < FREED_SHARE_MIN)
        .then(|| format!("a full GC left {left} of the {direct} of direct memory, so its buffers are in use"))
}

/// The ceiling of direct memory: the one that was set, or else the maximum heap size.
pub(super) fn ceiling(facts: &Facts, direct: &DirectRecord, mark: &Mark) -> Option<u64> {
    let set = facts.flags.number("MaxDirectMemorySize").filter(|bytes| *bytes > 0);
    direct.max_bytes.or(set).or(mark.heap.max_bytes).filter(|bytes| *bytes > 0)
}

fn are_few(facts: &Facts, mark: &Mark) -> bool {
    let seconds = |collections: u64| collections as f64 * SECONDS_PER_COLLECTION;
    match (mark.heap.collections, facts.age_s()) {
        (Some(0), _) => true,
        (Some(collections), Some(age_s)) => seconds(collections) <= age_s.max(SECONDS_PER_COLLECTION),
        _ => false,
    }
}

/// Proposes a ceiling above the live memory, unless one was set.
fn remedies(facts: &Facts, direct_bytes: u64, live: u64) -> Vec<Change> {
    let room = whole(live.saturating_mul(ROOM_TIMES).max(CEILING_LEAST));
    let is_useful = room < direct_bytes && facts.flags.is_free("MaxDirectMemorySize");
    is_useful.then_some(Change::DirectMax(Bytes(room))).into_iter().collect()
}

/// Direct memory left by a full collection; `None` without one.
fn left(facts: &Facts) -> Option<u64> {
    facts.at(MarkPoint::Collected).filter(|mark| mark.direct.is_some()).map(Mark::direct_bytes)
}

/// At this share of a ceiling, the next buffer may not fit.
const AT_CEILING_SHARE_MIN: f64 = 0.85;

/// Direct memory is at its ceiling. The JDK then calls `System.gc()` so that Cleaners free dead buffers. With
/// `-XX:+DisableExplicitGC`, that call does nothing, and allocations fail although the memory is garbage. Source:
/// `java.nio.Bits.reserveMemory` (JDK 11–27). Measured: 128 MiB of garbage, and every request failed.
pub(super) fn at_ceiling(facts: &Facts) -> Option<FindingRecord> {
    let (mark, _) = facts.weighed()?;
    let (direct, direct_bytes) = (mark.direct?, mark.direct_bytes());
    let ceiling_bytes = ceiling(facts, &direct, mark)?;
    let error = facts.error_of(MemoryPool::DirectMemory);
    let is_at = share(direct_bytes, ceiling_bytes) >= AT_CEILING_SHARE_MIN && direct_bytes >= LIVES_LEAST;
    if !is_at && error.is_none() {
        return None;
    }
    let lives = left(facts).is_some_and(|left| share(left, direct_bytes) >= LIVES_SHARE_MIN);
    let cause = match lives {
        true => CeilingCause::Alive,
        false if facts.flags.is("DisableExplicitGC", "true") => CeilingCause::CollectionsDisabled,
        false => CeilingCause::Unknown,
    };
    // Without an error, buffers at the ceiling are freed when the next one does not fit.
    if cause == CeilingCause::Unknown && error.is_none() {
        return None;
    }
    let higher = Change::DirectMax(Bytes(whole(direct_bytes.max(ceiling_bytes).saturating_mul(ROOM_TIMES))));
    let (why, next, remedies) = match cause {
        CeilingCause::CollectionsDisabled => {
            let mut remedies = vec![jvm(["-XX:-DisableExplicitGC"])];
            if facts.collector() == "G1" {
                remedies.push(jvm(["-XX:-DisableExplicitGC", "-XX:+ExplicitGCInvokesConcurrent"]));
            }
            (
                "; garbage buffers pile up because `-XX:+DisableExplicitGC` keeps the JDK from collecting when \
                 direct memory is full",
                "remove `-XX:+DisableExplicitGC` (with G1, `-XX:+ExplicitGCInvokesConcurrent` makes such \
                 collections concurrent), or reuse the buffers. A higher cap only delays the failure"
                    .to_owned(),
                remedies,
            )
        }
        CeilingCause::Alive => {
            let next = format!(
                "the cap is lower than what is in use: raise it (`{}`) if the limit has room, or keep fewer \
                 buffers. No GC can free them",
                typed(&higher)
            );
            (", and a full GC does not free them", next, vec![higher])
        }
        CeilingCause::Unknown => (
            "",
            format!(
                "see how much a full GC leaves ({}): reuse the buffers that turn out to be garbage, and raise the cap \
                 for those in use",
                facts.jcmd("GC.run")
            ),
            vec![higher],
        ),
    };
    let is_own = facts.flags.is_typed("MaxDirectMemorySize");
    let of = if is_own { "your `-XX:MaxDirectMemorySize`" } else { "the heap size" };
    let said = error.as_ref().map(|error| format!("; the server printed `{error}`")).unwrap_or_default();
    let (are_in, ceiling) = (are_in(direct_bytes, direct.buffers), Bytes(ceiling_bytes));
    let text = format!("{are_in}, right at the cap of {ceiling} set by {of}{why}{said}");
    let finding = Finding::DirectMemoryAtCeiling { direct_bytes, ceiling_bytes, cause, error };
    Some(FindingRecord { costs_bytes: direct_bytes, remedies, ..found(finding, text, next) })
}

/// If a full collection leaves a smaller share, not all direct memory is live.
const LIVES_SHARE_MIN: f64 = 0.75;
/// A holder with at least this share of direct memory is named.
const HOLDER_SHARE_MIN: f64 = 0.5;
const LIVES_LEAST: u64 = 8 << 20;

/// Direct memory is live: a full collection keeps it. Source: `sun.nio.ch.Util` (JDK 11–27), ehcache3 #2868 (300
/// threads × 10 MB), scala-maxmind-iplookups #186; measured: 128 MiB from 32 threads, none of which a collection frees.
pub(super) fn lives(facts: &Facts) -> Option<FindingRecord> {
    let (mark, account) = facts.weighed()?;
    let (direct, direct_bytes) = (mark.direct?, mark.direct_bytes());
    let left = left(facts);
    let caches = mark.thread_buffers.filter(|of| share(of.bytes, direct_bytes) >= HOLDER_SHARE_MIN);
    let lives = match left {
        Some(left) => share(left, direct_bytes) >= LIVES_SHARE_MIN,
        // A thread refers to its cached buffers.
        None => caches.is_some(),
    };
    if !lives || direct_bytes < LIVES_LEAST || share(direct_bytes, account.total_bytes) < DIRECT_SHARE_MIN {
        return None;
    }
    // Without `Unsafe`, Netty takes its chunks from the JDK, whose counter includes them.
    let has_chunks =
        || most_are_chunks(facts, direct.buffers) && direct.netty_loaded || chunks_of(mark, direct_bytes).is_some();
    let holder = match (caches, direct.netty_bytes) {
        (Some(ThreadBuffersRecord { bytes, threads, largest_bytes, .. }), _) => {
            let malloc_keeps_bytes = kept_by_malloc(facts, threads, largest_bytes).min(bytes);
            let pool = pool_of(mark, threads);
            DirectHolder::ThreadCaches { bytes, threads, largest_bytes, pool, malloc_keeps_bytes }
        }
        (_, Some(bytes)) if share(bytes, direct_bytes) >= HOLDER_SHARE_MIN => held_by_netty(facts, mark, bytes),
        (_, None) if has_chunks() => held_by_netty(facts, mark, direct_bytes),
        _ => DirectHolder::Program,
    };
    let uncounted = mark.thread_buffers.filter(|_| direct_bytes > direct.bytes()).map_or(0, |kept| kept.buffers);
    let buffers = direct.buffers.saturating_add(uncounted);
    let mut stays = if left.is_some() { ", and a full GC does not free them" } else { "" }.to_owned();
    if uncounted > 0 {
        stays.push_str(", although this JDK's counters show none of it");
    }
    let all = format!("{}{stays}", are_in(direct_bytes, buffers));
    let (text, next, gain_bytes_max, remedies) = told_of(&holder, facts, &all);
    let finding = Finding::DirectMemoryLives { direct_bytes, buffers, left_by_gc_bytes: left, holder };
    Some(FindingRecord { costs_bytes: direct_bytes, gain_bytes_max, remedies, ..found(finding, text, next) })
}

/// The extra bytes that malloc is expected to retain if buffers are freed after each use. Each arena keeps the last
/// ones at its end, because freeing large chunks makes glibc raise its thresholds, up to 32 MiB (mallopt(3),
/// `M_MMAP_THRESHOLD`). Measured: 32 threads × 4 MiB in 16 arenas retained 49 and 61 MiB more.
fn kept_by_malloc(facts: &Facts, threads: u64, largest_bytes: u64) -> u64 {
    let Some((_, account)) = facts.weighed() else { return 0 };
    let arenas = account.malloc.as_ref().filter(|malloc| malloc.allocator == "glibc").map_or(0, |of| of.arenas);
    let fixed = THRESHOLDS.into_iter().chain(["GLIBC_TUNABLES"]).any(|name| facts.is_set(name));
    if fixed || largest_bytes >= MMAPPED_ALWAYS {
        return 0;
    }
    threads.min(arenas).saturating_mul(largest_bytes).saturating_sub(holds(account, Owner::MallocRetained))
}

/// Netty as the holder of these bytes, with its chunks after the load, or else at the mark that is judged.
fn held_by_netty(facts: &Facts, mark: &Mark, bytes: u64) -> DirectHolder {
    let after = [MarkPoint::Collected, MarkPoint::Rested].into_iter().filter_map(|point| facts.at(point));
    // A full collection does not end the requests of a JVM that is serving.
    let chunks_after = after.filter(|after| !std::ptr::eq(*after, mark)).find_map(|after| chunks_of(after, bytes));
    let rested = chunks_after.is_some();
    DirectHolder::Netty { bytes, chunks: chunks_after.or_else(|| chunks_of(mark, bytes)).cloned(), rested }
}

/// The Netty chunks read at a mark, if they hold at least half of these bytes.
fn chunks_of(mark: &Mark, bytes: u64) -> Option<&NettyChunksRecord> {
    mark.netty_chunks.as_ref().filter(|of| share(of.held_bytes, bytes) >= HOLDER_SHARE_MIN)
}

/// Whether at least half of the direct buffers are Netty chunks, according to a class histogram.
fn most_are_chunks(facts: &Facts, buffers: u64) -> bool {
    let live = facts.at(MarkPoint::Collected).into_iter().flat_map(|mark| &mark.live_classes);
    let chunks = sum(live.filter(|of| of.class.ends_with(CHUNK)).map(|of| of.instances));
    chunks > 0 && share(chunks, buffers) >= HOLDER_SHARE_MIN
}

/// A chunk of Netty's pools, even if Netty was relocated (shaded).
const CHUNK: &str = "netty.buffer.PoolChunk";

/// The pool with about as many threads as have cached buffers; if there are several, the one that allocated most.
fn pool_of(mark: &Mark, threads: u64) -> Option<String> {
    let fits = mark.pools.iter().filter(|pool| pool.threads >= threads.div_ceil(2) && pool.threads <= 2 * threads);
    let largest = fits.max_by_key(|pool| (pool.threads.min(threads), pool.allocated_bytes.unwrap_or(0)));
    largest.map(|pool| pool.name.clone())
}

/// Text beginning with `all`, the next step, the gain, and remedies.
fn told_of(holder: &DirectHolder, facts: &Facts, all: &str) -> (String, String, Option<u64>, Vec<Change>) {
    match holder {
        DirectHolder::ThreadCaches { bytes, threads, largest_bytes, pool, malloc_keeps_bytes } => {
            let gain = bytes.saturating_sub(threads.saturating_mul(KEPT_FOR_A_THREAD.min(*largest_bytes)));
            let free = facts.flags.words("-Djdk.nio.maxCachedBufferSize=").next().is_none();
            let bounds = free && *largest_bytes > KEPT_FOR_A_THREAD;
            let remedies: Vec<Change> = bounds.then(changes::small_buffers).into_iter().collect();
            let pool = pool.as_ref().map(|name| format!(" (such as `{name}`)")).unwrap_or_default();
            let (of_threads, [kept, largest]) = (several(*threads, "thread"), [*bytes, *largest_bytes].map(Bytes));
            let text = format!(
                "{all}. For each of {of_threads}{pool}, the JDK caches a buffer as large as the thread's largest \
                 channel read or write: up to {largest} each, {kept} in all"
            );
            let keeps = match malloc_keeps_bytes {
                0 => String::new(),
                kept => format!(
                    " (saves only about {} unless you also set `MALLOC_TRIM_THRESHOLD_=131072`, because malloc \
                     keeps the rest)",
                    Bytes(gain.saturating_sub(*kept))
                ),
            };
            let set = first(&remedies).map(|option| format!(", or set `{option}`{keeps}")).unwrap_or_default();
            let next = format!(
                "read and write in chunks of 64 KiB, or use direct buffers yourself{set}; fewer threads also \
                 help. A lower `-XX:MaxDirectMemorySize` would make requests fail"
            );
            (text, next, Some(gain), remedies)
        }
        DirectHolder::Netty { chunks: Some(of), rested, .. } => {
            let (text, next, gain, remedies) = told_of_chunks(of, *rested, facts);
            (format!("{all}: {text}"), next, gain, remedies)
        }
        DirectHolder::Netty { bytes, .. } => {
            let text = format!("{all}, and Netty accounts for {} of it", Bytes(*bytes));
            let next = "list Netty's pools (`loadline account PID --netty`, or a trial with `--inside`). Full chunks \
                 mean requests in progress or buffers that were never released \
                 (`-Dio.netty.leakDetection.level=paranoid` shows which). A few long-lived buffers keep each \
                 nearly empty chunk alive"
                .to_owned();
            (text, next, None, Vec::new())
        }
        DirectHolder::Program => {
            let next = "find what allocates and keeps the buffers (`ByteBuffer.allocateDirect` in the program or a \
                 library; a heap dump shows what references them). A lower `-XX:MaxDirectMemorySize` would \
                 make allocations fail"
                .to_owned();
            (format!("{all}, which the program or one of its libraries still references"), next, None, Vec::new())
        }
    }
}

/// The same for Netty's chunks, which are full of allocated buffers or kept alive by a few. Source: `PoolArena` and
/// `PoolThreadCache` (Netty 4.1.140, 4.2.20): a chunk is returned when none of it is in use, and buffers in a thread's
/// cache count as in use; measured in `scenarios/netty-pools`.
fn told_of_chunks(of: &NettyChunksRecord, rested: bool, facts: &Facts) -> (String, String, Option<u64>, Vec<Change>) {
    let out_bytes = of.handed_out_bytes.unwrap_or(of.used_bytes);
    let cached_bytes = of.used_bytes.saturating_sub(out_bytes);
    let (held, out, package) = (Bytes(of.held_bytes), Bytes(out_bytes), &of.package);
    let chunks = several(of.chunks, "chunk");
    let (are_out, or_cached) = match of.handed_out_bytes {
        Some(_) => ("is in use", ""),
        None => ("is in use or in per-thread caches", ", or buffers in thread caches"),
    };
    // A relocated Netty reads properties with its new package name.
    let unset = |properties: &[&str]| {
        let options: Vec<String> = properties.iter().map(|of| format!("-D{package}.allocator.{of}")).collect();
        let is_set = |option: &String| facts.flags.words(option.split_inclusive('=').next()?).next();
        let is_free = options.iter().all(|option| is_set(option).is_none());
        is_free.then(|| jvm(options)).into_iter().collect::<Vec<Change>>()
    };
    if share(out_bytes, of.held_bytes) >= HANDED_OUT_SHARE_MAX {
        let (or, first) = match rested {
            true => ("", ""),
            false => (", or requests in progress", "weigh again without traffic first; then "),
        };
        let when = if rested { " after the load" } else { "" };
        let text = format!(
            "Netty holds {held} in {chunks}, {} of them full; {out} {are_out}{when}. These are buffers that \
             were never released{or_cached}{or}",
            grouped(of.full_chunks)
        );
        let next = format!(
            "{first}set `-D{package}.leakDetection.level=paranoid`: for each leaked buffer, Netty then logs \
             `LEAK` and the place that last used it. If no such line appears, the program still references the \
             buffers, and a heap dump shows from where"
        );
        return (text, next, None, Vec::new());
    }
    let nearly_empty = grouped(of.nearly_empty_chunks);
    let begin = format!("Netty holds {held} in {chunks}, {nearly_empty} of them nearly empty; {out} {are_out}");
    let list = "`loadline account PID --netty`";
    let (text, remedies, by_option, next) = if share(cached_bytes, of.used_bytes) >= HOLDER_SHARE_MIN {
        let cached = Bytes(cached_bytes);
        let text = format!("{begin}. {cached} of freed buffers in per-thread caches keep the chunks alive");
        let remedies = unset(&["normalCacheSize=0", "smallCacheSize=0"]);
        let next = format!("{list} shows what each thread keeps");
        (text, remedies, "disable the per-thread caches, which adds lock contention", next)
    } else {
        let next = format!(
            "use fewer arenas (`-D{package}.allocator.numDirectArenas=1`) or release buffers sooner; {list} lists \
             the chunks"
        );
        (
            format!("{begin}. A few long-lived buffers keep the chunks from being released"),
            unset(&["maxOrder=3"]),
            "use smaller chunks",
            next,
        )
    };
    let next = match first(&remedies) {
        Some(option) => format!("{by_option} (`{option}`); {next}"),
        None => next,
    };
    (text, next, Some(of.held_bytes.saturating_sub(out_bytes)), remedies)
}

/// Netty's chunks are mostly free. Source: netty #9768 (adaptive and pooled: 7.5 and 37.7 MiB of chunks) and #15850,
/// #15206 (the opposite), so try both; measured in `scenarios/netty-pools`.
pub(super) fn netty(facts: &Facts) -> Option<FindingRecord> {
    let (mark, _) = facts.weighed()?;
    let libraries = &mark.netty.as_ref()?.libraries;
    let known = libraries.iter().flat_map(|library| library.allocators.iter().map(move |of| (library, of)));
    let held = known.filter_map(|(library, of)| Some((library, of, held(of)?, of.pinned_direct_bytes?)));
    let mostly_free = held.filter(|(.., held, out)| share(*out, *held) < HANDED_OUT_SHARE_MAX);
    let (library, of, held_bytes, handed_out_bytes) =
        mostly_free.max_by_key(|(.., held, out)| held.saturating_sub(*out))?;
    let free = held_bytes.saturating_sub(handed_out_bytes);
    let typed = || facts.flags.words("-Dio.netty.allocator.type=").next().is_some();
    // A relocated Netty reads properties with its new package name.
    let pooled = of.kind == NettyKind::Adaptive && library.package == "io.netty" && !typed();
    let remedy = || changes::netty_allocator("type=pooled");
    let remedies: Vec<Change> = pooled.then(remedy).into_iter().collect();
    let class = of.class.rsplit('.').next().unwrap_or_default().to_owned();
    let chunks = grouped(of.arenas.iter().flat_map(|arena| &arena.chunks).count() as u64);
    let [held, out] = [held_bytes, handed_out_bytes].map(Bytes);
    let text = format!(
        "Netty's {class} holds {held} of direct memory in {chunks} chunks, but only {out} of it is \
         in use"
    );
    let next = match first(&remedies) {
        Some(first) => format!("try `{first}`; which allocator holds less depends on the load"),
        None => "see which chunks linger and why (`account --netty`); fewer event loops need fewer chunks".to_owned(),
    };
    let found = found(Finding::NettyChunksFree { held_bytes, handed_out_bytes, allocator: class }, text, next);
    Some(FindingRecord { costs_bytes: held_bytes, gain_bytes_max: Some(free), remedies, ..found })
}

/// Direct memory held by an allocator: from its metric if there is one, otherwise from its chunks.
fn held(allocator: &NettyAllocator) -> Option<u64> {
    let direct = allocator.arenas.iter().filter(|arena| arena.memory == NettyMemory::Direct);
    let chunks = || sum(direct.flat_map(|arena| &arena.chunks).map(|chunk| chunk.bytes));
    Some(allocator.used_direct_bytes.unwrap_or_else(chunks)).filter(|held| *held > 0)
}
