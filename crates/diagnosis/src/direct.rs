//! Direct memory: buffers that wait for a collection, and chunks of Netty that hold next to nothing.

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

/// Less of RSS is not worth a ceiling.
const DIRECT_SHARE_MIN: f64 = 0.05;
/// A full collection that frees less than this share has found little that waited.
const FREED_SHARE_MIN: f64 = 0.25;
/// Under a ceiling of this many times what is reserved, no collection comes soon.
const CEILING_TIMES_MIN: u64 = 2;
/// Without a full collection as evidence, one collection in this many seconds counts as few.
const SECONDS_PER_COLLECTION: f64 = 10.0;
/// Room that a ceiling leaves above what lives, and the least of it.
const ROOM_TIMES: u64 = 2;
const CEILING_LEAST: u64 = 16 << 20;
/// Chunks from this size on are always mapped alone (`DEFAULT_MMAP_THRESHOLD_MAX`, malloc/malloc.c).
const MMAPPED_ALWAYS: u64 = 32 << 20;
/// Netty's chunks of which less than this share is handed out are mostly free.
const HANDED_OUT_SHARE_MAX: f64 = 0.5;

/// Direct buffers wait for a collection. Their memory goes when the collector finds the buffer dead. The JDK calls
/// `System.gc()` only at the ceiling, which is the heap's unless it was set. Source: `java.nio.Bits` and
/// `java.lang.ref.Cleaner` (JDK 11–25). Measured: a database on JDK 25 with 1,063 MB in 239 buffers and 29 MiB of live
/// heap.
pub(super) fn waits(facts: &Facts) -> Option<FindingRecord> {
    let (mark, account) = facts.weighed()?;
    let direct = mark.direct?;
    let direct_bytes = direct.reserved_bytes;
    let left = facts.at(MarkPoint::Collected).and_then(|mark| mark.direct).map(|direct| direct.reserved_bytes);
    let ceiling_bytes = ceiling(facts, &direct, mark);
    let is_high = ceiling_bytes.is_some_and(|ceiling| ceiling >= direct_bytes.saturating_mul(CEILING_TIMES_MIN));
    let waited = direct_bytes.saturating_sub(left.unwrap_or(0));
    let shows = match left {
        Some(_) => share(waited, direct_bytes) >= FREED_SHARE_MIN,
        // Netty frees the buffers that it counts itself.
        None => is_high && direct.netty_bytes.is_none() && are_few(facts, mark),
    };
    if !shows || share(waited, account.total_bytes) < DIRECT_SHARE_MIN {
        return None;
    }
    let frees = match left {
        Some(left) => format!("; a full GC left {} of it", Bytes(left)),
        None => ", which only a collection frees".to_owned(),
    };
    let collections = mark.heap.collections;
    let most = ceiling_bytes.map(|ceiling| format!("; they may become {}", Bytes(ceiling))).unwrap_or_default();
    let text = format!("{}{frees}{}{most}", are_in(direct_bytes, direct.buffers), so_far(collections));
    let remedies = remedies(facts, direct_bytes, left);
    // Live buffers fail at a ceiling, so one is set only after a full collection.
    let next = match (first(&remedies), left) {
        (Some(first), Some(_)) => format!("bound it with `{first}`, or reuse the buffers"),
        (Some(first), None) => format!(
            "see what a full GC leaves (`jcmd PID GC.run`, or the mark collected); where they were garbage, bound it \
             with `{first}`"
        ),
        (None, _) => "lower your own `-XX:MaxDirectMemorySize`, or reuse the buffers".to_owned(),
    };
    let (buffers, left_by_gc_bytes) = (direct.buffers, left);
    let finding = Finding::DirectMemoryWaits { direct_bytes, buffers, left_by_gc_bytes, ceiling_bytes, collections };
    let found = found(finding, text, next);
    Some(FindingRecord { costs_bytes: direct_bytes, gain_bytes_max: Some(waited), remedies, ..found })
}

fn are_in(bytes: u64, buffers: u64) -> String {
    format!("{} are in {}", Bytes(bytes), several(buffers, "direct buffer"))
}

/// Speaks against it: a full collection left most of much direct memory.
pub(super) fn spared(facts: &Facts) -> Option<String> {
    let (mark, account) = facts.weighed()?;
    let direct_bytes = mark.direct?.reserved_bytes;
    let left = facts.at(MarkPoint::Collected).and_then(|mark| mark.direct)?.reserved_bytes;
    let freed_share = share(direct_bytes.saturating_sub(left), direct_bytes);
    let matters = share(direct_bytes, account.total_bytes) >= DIRECT_SHARE_MIN;
    let (left, direct) = (Bytes(left.min(direct_bytes)), Bytes(direct_bytes));
    (matters && freed_share < FREED_SHARE_MIN)
        .then(|| format!("a full GC left {left} of the {direct} of direct memory: its buffers are in use"))
}

/// The most that direct buffers may reserve: what was set, or else as much as the heap.
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

/// Returns a ceiling above what lives, unless one was set.
fn remedies(facts: &Facts, direct_bytes: u64, left: Option<u64>) -> Vec<Change> {
    let live = left.unwrap_or(direct_bytes / 4);
    let room = whole(live.saturating_mul(ROOM_TIMES).max(CEILING_LEAST));
    let is_useful = room < direct_bytes && facts.flags.is_free("MaxDirectMemorySize");
    is_useful.then_some(Change::DirectMax(Bytes(room))).into_iter().collect()
}

/// Direct memory that a full collection left; `None` without such a collection.
fn left(facts: &Facts) -> Option<u64> {
    facts.at(MarkPoint::Collected).filter(|mark| mark.direct.is_some()).map(Mark::direct_bytes)
}

/// From this share of a ceiling on, the next buffer may not fit.
const AT_CEILING_SHARE_MIN: f64 = 0.85;

/// Direct memory is at its ceiling. At the ceiling the JDK calls `System.gc()`, so that Cleaners free dead buffers.
/// With `-XX:+DisableExplicitGC` no collection comes, and allocations fail although the memory is garbage. Source:
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
                "; garbage buffers stay, because `-XX:+DisableExplicitGC` keeps the JDK from collecting when it \
                 is full",
                "drop your own `-XX:+DisableExplicitGC` (G1: `-XX:+ExplicitGCInvokesConcurrent` makes such collections \
                 concurrent), or reuse the buffers; a higher ceiling only delays it"
                    .to_owned(),
                remedies,
            )
        }
        CeilingCause::Alive => {
            let next = format!(
                "the ceiling is below what is alive: raise it (`{}`) where the limit has room, or keep fewer buffers; \
                 collections free none of them",
                typed(&higher)
            );
            (", and a full GC leaves them", next, vec![higher])
        }
        CeilingCause::Unknown => (
            "",
            "see what a full GC leaves (`jcmd PID GC.run`): reuse buffers that are garbage, and raise the ceiling for \
             those that are alive"
                .to_owned(),
            vec![higher],
        ),
    };
    let is_own = facts.flags.is_typed("MaxDirectMemorySize");
    let of = if is_own { "your own `-XX:MaxDirectMemorySize`" } else { "the size of the heap" };
    let said = error.as_ref().map(|error| format!("; the subject printed `{error}`")).unwrap_or_default();
    let (are_in, ceiling) = (are_in(direct_bytes, direct.buffers), Bytes(ceiling_bytes));
    let text = format!("{are_in}, at a ceiling of {ceiling} by {of}{why}{said}");
    let finding = Finding::DirectMemoryAtCeiling { direct_bytes, ceiling_bytes, cause, error };
    Some(FindingRecord { costs_bytes: direct_bytes, remedies, ..found(finding, text, next) })
}

/// Less of direct memory that a full collection leaves is not all alive.
const LIVES_SHARE_MIN: f64 = 0.75;
/// A holder of this share of direct memory is named.
const HOLDER_SHARE_MIN: f64 = 0.5;
const LIVES_LEAST: u64 = 8 << 20;

/// Direct memory lives: a full collection leaves it. Source: `sun.nio.ch.Util` (JDK 11–27), ehcache3 #2868 (300 threads
/// × 10 MB), scala-maxmind-iplookups #186; measured: 128 MiB of 32 threads, of which a collection frees nothing.
pub(super) fn lives(facts: &Facts) -> Option<FindingRecord> {
    let (mark, account) = facts.weighed()?;
    let (direct, direct_bytes) = (mark.direct?, mark.direct_bytes());
    let left = left(facts);
    let caches = mark.thread_buffers.filter(|of| share(of.bytes, direct_bytes) >= HOLDER_SHARE_MIN);
    let lives = match left {
        Some(left) => share(left, direct_bytes) >= LIVES_SHARE_MIN,
        // The thread that a buffer is kept for refers to it.
        None => caches.is_some(),
    };
    if !lives || direct_bytes < LIVES_LEAST || share(direct_bytes, account.total_bytes) < DIRECT_SHARE_MIN {
        return None;
    }
    // Without `Unsafe` Netty takes its chunks from the JDK, whose counter has them.
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
    let mut stays = if left.is_some() { ", and a full GC leaves them" } else { "" }.to_owned();
    if uncounted > 0 {
        stays.push_str(", although the counters of this JDK have none of it");
    }
    let all = format!("{}{stays}", are_in(direct_bytes, buffers));
    let (text, next, gain_bytes_max, remedies) = told_of(&holder, facts, &all);
    let finding = Finding::DirectMemoryLives { direct_bytes, buffers, left_by_gc_bytes: left, holder };
    Some(FindingRecord { costs_bytes: direct_bytes, gain_bytes_max, remedies, ..found(finding, text, next) })
}

/// The bytes that malloc is expected to keep, beyond what it retains now, of buffers that are freed after each use.
/// Each arena keeps the last of them at its end: as large chunks are freed, glibc raises its thresholds, up to 32 MiB
/// (mallopt(3), `M_MMAP_THRESHOLD`). Measured: 32 threads × 4 MiB in 16 arenas left 49 and 61 MiB more.
fn kept_by_malloc(facts: &Facts, threads: u64, largest_bytes: u64) -> u64 {
    let Some((_, account)) = facts.weighed() else { return 0 };
    let arenas = account.malloc.as_ref().filter(|malloc| malloc.allocator == "glibc").map_or(0, |of| of.arenas);
    let fixed = THRESHOLDS.into_iter().chain(["GLIBC_TUNABLES"]).any(|name| facts.is_set(name));
    if fixed || largest_bytes >= MMAPPED_ALWAYS {
        return 0;
    }
    threads.min(arenas).saturating_mul(largest_bytes).saturating_sub(holds(account, Owner::MallocRetained))
}

/// Netty holds so many bytes, in the chunks that were read after the load, or else where the weight is judged.
fn held_by_netty(facts: &Facts, mark: &Mark, bytes: u64) -> DirectHolder {
    let after = [MarkPoint::Collected, MarkPoint::Rested].into_iter().filter_map(|point| facts.at(point));
    // A full collection of a JVM that serves ends no request.
    let chunks_after = after.filter(|after| !std::ptr::eq(*after, mark)).find_map(|after| chunks_of(after, bytes));
    let rested = chunks_after.is_some();
    DirectHolder::Netty { bytes, chunks: chunks_after.or_else(|| chunks_of(mark, bytes)).cloned(), rested }
}

/// The chunks of Netty's pools that were read at a mark, if they hold half of these bytes and more.
fn chunks_of(mark: &Mark, bytes: u64) -> Option<&NettyChunksRecord> {
    mark.netty_chunks.as_ref().filter(|of| share(of.held_bytes, bytes) >= HOLDER_SHARE_MIN)
}

/// Whether half of the direct buffers and more are chunks of Netty's pools, by a histogram of classes.
fn most_are_chunks(facts: &Facts, buffers: u64) -> bool {
    let live = facts.at(MarkPoint::Collected).into_iter().flat_map(|mark| &mark.live_classes);
    let chunks = sum(live.filter(|of| of.class.ends_with(CHUNK)).map(|of| of.instances));
    chunks > 0 && share(chunks, buffers) >= HOLDER_SHARE_MIN
}

/// A chunk of Netty's pools, also where Netty was moved into another package.
const CHUNK: &str = "netty.buffer.PoolChunk";

/// The pool that has about as many threads as keep buffers, the one that allocated most where several have.
fn pool_of(mark: &Mark, threads: u64) -> Option<String> {
    let fits = mark.pools.iter().filter(|pool| pool.threads >= threads.div_ceil(2) && pool.threads <= 2 * threads);
    let largest = fits.max_by_key(|pool| (pool.threads.min(threads), pool.allocated_bytes.unwrap_or(0)));
    largest.map(|pool| pool.name.clone())
}

/// Text, which begins with `all`, next, gain and remedies.
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
                "{all}: for each of {of_threads}{pool} the JDK caches a buffer as large as its largest read or write \
                 of a channel, up to {largest}, {kept} in all"
            );
            let keeps = match malloc_keeps_bytes {
                0 => String::new(),
                kept => format!(
                    " (about {} less: malloc keeps the rest, unless `MALLOC_TRIM_THRESHOLD_=131072` is set, too)",
                    Bytes(gain.saturating_sub(*kept))
                ),
            };
            let set = first(&remedies).map(|option| format!(", or set `{option}`{keeps}")).unwrap_or_default();
            let next = format!(
                "read and write in pieces of 64 KiB, or into direct buffers{set}; fewer threads keep fewer. A lower \
                 `-XX:MaxDirectMemorySize` would make requests fail"
            );
            (text, next, Some(gain), remedies)
        }
        DirectHolder::Netty { chunks: Some(of), rested, .. } => {
            let (text, next, gain, remedies) = told_of_chunks(of, *rested, facts);
            (format!("{all}: {text}"), next, gain, remedies)
        }
        DirectHolder::Netty { bytes, .. } => {
            let text = format!("{all}: Netty counts {} of them as its own", Bytes(*bytes));
            let next =
                "list Netty's pools (`loadline account PID --netty`, or a trial with `--inside`): full chunks are \
                buffers that were never released (`-Dio.netty.leakDetection.level=paranoid` says which) or requests \
                under way; nearly empty ones are retained by a few buffers that are kept long"
                    .to_owned();
            (text, next, None, Vec::new())
        }
        DirectHolder::Program => {
            let next =
                "find who allocates and keeps them (`ByteBuffer.allocateDirect` in the program or a library; a heap \
                dump names who refers to them). A lower `-XX:MaxDirectMemorySize` would make allocations fail"
                    .to_owned();
            (format!("{all}: the program or a library of it refers to them"), next, None, Vec::new())
        }
    }
}

/// The same of Netty's chunks: full of buffers that are handed out, or kept by a few. Source: `PoolArena` and
/// `PoolThreadCache` (Netty 4.1.140, 4.2.20): a chunk goes back when nothing of it is in use, and a buffer that was
/// freed into a thread's cache is in use; measured in `scenarios/netty-pools`.
fn told_of_chunks(of: &NettyChunksRecord, rested: bool, facts: &Facts) -> (String, String, Option<u64>, Vec<Change>) {
    let out_bytes = of.handed_out_bytes.unwrap_or(of.used_bytes);
    let cached_bytes = of.used_bytes.saturating_sub(out_bytes);
    let (held, out, package) = (Bytes(of.held_bytes), Bytes(out_bytes), &of.package);
    let chunks = several(of.chunks, "chunk");
    let (are_out, or_cached) = match of.handed_out_bytes {
        Some(_) => ("are handed out", ""),
        None => ("are handed out or freed into caches of threads", ", or that threads keep"),
    };
    // A Netty that was moved into another package reads properties of that package.
    let unset = |properties: &[&str]| {
        let options: Vec<String> = properties.iter().map(|of| format!("-D{package}.allocator.{of}")).collect();
        let is_set = |option: &String| facts.flags.words(option.split_inclusive('=').next()?).next();
        let is_free = options.iter().all(|option| is_set(option).is_none());
        is_free.then(|| jvm(options)).into_iter().collect::<Vec<Change>>()
    };
    if share(out_bytes, of.held_bytes) >= HANDED_OUT_SHARE_MAX {
        let (or, first) = match rested {
            true => ("", ""),
            false => (", or requests under way", "weigh it again without traffic; "),
        };
        let when = if rested { " after the load" } else { "" };
        let full = grouped(of.full_chunks);
        let text = format!(
            "Netty holds {held} in {chunks}, {full} of them full, and {out} {are_out}{when}: buffers that were never \
             released{or_cached}{or}"
        );
        let next = format!(
            "{first}set `-D{package}.leakDetection.level=paranoid`: Netty's ResourceLeakDetector then logs `LEAK` with \
             the place that used a buffer last and lost it; without such a line the program still refers to the \
             buffers, and a heap dump names who does"
        );
        return (text, next, None, Vec::new());
    }
    let nearly_empty = grouped(of.nearly_empty_chunks);
    let begin = format!("Netty holds {held} in {chunks}, {nearly_empty} of them nearly empty, and {out} {are_out}");
    let list = "`loadline account PID --netty`";
    let (text, remedies, by_option, next) = if share(cached_bytes, of.used_bytes) >= HOLDER_SHARE_MIN {
        let cached = Bytes(cached_bytes);
        let text = format!("{begin}: {cached} of freed buffers in caches of threads keep the chunks");
        let remedies = unset(&["normalCacheSize=0", "smallCacheSize=0"]);
        (text, remedies, "keep none for threads, at the cost of locks", format!("{list} lists what each thread keeps"))
    } else {
        let next = format!(
            "have fewer arenas (`-D{package}.allocator.numDirectArenas=1`) or keep buffers less long; {list} lists the \
             chunks"
        );
        (format!("{begin}: a few buffers keep the chunks"), unset(&["maxOrder=3"]), "make chunks smaller", next)
    };
    let next = match first(&remedies) {
        Some(option) => format!("{by_option} (`{option}`); {next}"),
        None => next,
    };
    (text, next, Some(of.held_bytes.saturating_sub(out_bytes)), remedies)
}

/// Netty's chunks are mostly free. Source: netty #9768 (adaptive against pooled: 7.5 and 37.7 MiB of chunks) and
/// #15850, #15206 (the other way round), so both are to be tried; measured in `scenarios/netty-pools`.
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
    // A Netty that was moved into another package reads properties of that package.
    let pooled = of.kind == NettyKind::Adaptive && library.package == "io.netty" && !typed();
    let remedy = || changes::netty_allocator("type=pooled");
    let remedies: Vec<Change> = pooled.then(remedy).into_iter().collect();
    let class = of.class.rsplit('.').next().unwrap_or_default().to_owned();
    let chunks = grouped(of.arenas.iter().flat_map(|arena| &arena.chunks).count() as u64);
    let [held, out] = [held_bytes, handed_out_bytes].map(Bytes);
    let text = format!("Netty's {class} holds {held} of direct memory in {chunks} chunks; {out} of it is in use");
    let next = match first(&remedies) {
        Some(first) => format!("try `{first}`; which allocator holds less depends on the load"),
        None => "read which chunks linger and why (`account --netty`); fewer event loops hold fewer chunks".to_owned(),
    };
    let found = found(Finding::NettyChunksFree { held_bytes, handed_out_bytes, allocator: class }, text, next);
    Some(FindingRecord { costs_bytes: held_bytes, gain_bytes_max: Some(free), remedies, ..found })
}

/// Direct memory that an allocator holds: by its own metric, or else by its chunks.
fn held(allocator: &NettyAllocator) -> Option<u64> {
    let direct = allocator.arenas.iter().filter(|arena| arena.memory == NettyMemory::Direct);
    let chunks = || sum(direct.flat_map(|arena| &arena.chunks).map(|chunk| chunk.bytes));
    Some(allocator.used_direct_bytes.unwrap_or_else(chunks)).filter(|held| *held > 0)
}
