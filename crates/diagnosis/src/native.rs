//! Native memory outside the JVM's own: held by garbage in the Java heap, or managed by libraries.

use super::compilers::compile;
use super::facts::{Facts, holds, share, sum};
use super::found::{file_name, first, found, listed, so_far};
use crate::owner::Owner;
use crate::record::{
    AccountRecord, DetailRecord, DiskFileRecord, Finding, FindingRecord, Mark, NativeHolder, OwnerFreed,
};
use crate::remedy::changes::{collect_each, young_of};
use crate::scenario::{Change, MarkPoint};
use crate::units::{Bytes, grouped};
use loadline_base::order::Order as _;
use loadline_jvm::account::foreign;

/// Any JVM incidentally frees up to this size or share of RSS.
const SHARE_MIN: f64 = 0.05;
const BYTES_MIN: u64 = 8 << 20;
/// If compilers use more CPU time between two marks, freed memory is attributed to them.
const COMPILED_S_MAX: f64 = 0.2;
/// HotSpot caches chunks freed by compilations, and releases them at this interval (`ChunkPoolCleaner` in arena.cpp,
/// JDK 11 to 25).
const POOLS_CLEANED_EACH_S: f64 = 5.0;
/// The maximum cached per second of compiler CPU time; measured on a small server, JDK 17: 4.2 MiB.
const POOLED_BYTES_PER_COMPILED_S: f64 = (8 << 20) as f64;
/// The arenas used by compiler threads: one for C1, one for C2.
const ARENAS_OF_COMPILERS: u64 = 2;
/// Owners whose memory is freed by a Cleaner or `close`. Direct buffers have their own finding.
const FREED_BY_CLEANERS: [Owner; 4] = [Owner::MallocLive, Owner::MallocNonHotspot, Owner::MallocMmapped, Owner::Native];
/// How often a proposed young generation should fill, in seconds.
const COLLECT_EACH_S: f64 = 2.0;
pub(crate) const YOUNG_LEAST: u64 = 4 << 20;
const YOUNG_USUAL: u64 = 8 << 20;
/// A proposed young generation is at most this fraction of the heap used before the collection.
const YOUNG_PART: u64 = 4;

/// Garbage owns native memory: a full collection freed it. `java.lang.ref.Cleaner` frees memory after the collector
/// finds its owner dead (JDK 11–27), but owners are small and do not fill a young generation. Source: seichi_infra
/// #5486 and #5489 (flat with `G1PeriodicGCInterval`), aws-glue-schema-registry #203; measured: 1,200 `Deflater`s that
/// were never ended held 275 MiB, of which a collection left 2.
pub(super) fn held_by_garbage(facts: &Facts) -> Option<FindingRecord> {
    let Collected { before, owners, freed_bytes, least, rss, .. } = collected(facts)?;
    if freed_bytes < least || share(freed_bytes, rss) < SHARE_MIN {
        return None;
    }
    let collections = before.heap.collections;
    let remedies = sooner(facts, before);
    let (freed, so_far) = (Bytes(freed_bytes), so_far(collections));
    let text = format!("{freed} of native memory belonged to unreachable Java objects: a full GC freed it{so_far}");
    let close = "close whatever owns native memory (`end()` on a `Deflater` or `Inflater`, `close()` on \
         everything else)";
    let next = match first(&remedies) {
        Some(first) if first.starts_with("-Xmn") && facts.flags.is_typed("MaxNewSize") => {
            let sooner = "a young generation that fills sooner is collected sooner";
            let tune = "`loadline tune --may-remove -Xmn` finds the value";
            format!("{close}. Until then, lower `-Xmn`, for example to `{first}` ({tune}): {sooner}")
        }
        Some(first) => format!("{close}. Until then, collect more often: `{first}`"),
        None => close.to_owned(),
    };
    let finding = Finding::NativeHeldByGarbage { freed_bytes, owners, collections };
    let found = found(finding, text, next);
    Some(FindingRecord { costs_bytes: freed_bytes, gain_bytes_max: Some(freed_bytes), remedies, ..found })
}

/// A full collection that frees a larger share is no evidence against garbage.
const SPARED_SHARE_MAX: f64 = 0.1;

/// Evidence against garbage as the holder: a full collection freed hardly any of the native memory.
pub(super) fn spared(facts: &Facts) -> Option<String> {
    let Collected { had_bytes, freed_bytes, rss, .. } = collected(facts)?;
    let matters = had_bytes >= BYTES_MIN && share(had_bytes, rss) >= SHARE_MIN;
    let (freed, had) = (Bytes(freed_bytes), Bytes(had_bytes));
    (matters && share(freed_bytes, had_bytes) <= SPARED_SHARE_MAX).then(|| {
        format!("a full GC freed only {freed} of the {had} of native memory, so unreachable objects do not hold it")
    })
}

/// Native memory that Cleaners can free, before and after a full collection.
struct Collected<'a> {
    before: &'a Mark,
    /// Bytes before.
    had_bytes: u64,
    /// Freed bytes by owner, largest first, and their sum.
    owners: Vec<OwnerFreed>,
    freed_bytes: u64,
    /// Any JVM incidentally frees less than this.
    least: u64,
    /// RSS at the mark that is judged.
    rss: u64,
}

/// `None` without a full collection, or if compilers were running, because they also free malloc memory.
fn collected<'a>(facts: &Facts<'a>) -> Option<Collected<'a>> {
    let (_, weighed) = facts.weighed()?;
    let at = facts.marks.iter().position(|mark| mark.name == MarkPoint::Collected.word())?;
    let (before, after) = (facts.marks[..at].last()?, &facts.marks[at]);
    let (had, has) = (before.account.as_ref()?, after.account.as_ref()?);
    if !before.processes.is_empty() || compiled_s(before, after) > COMPILED_S_MAX {
        return None;
    }
    let (owners, freed_bytes) = more(had, has, FREED_BY_CLEANERS);
    let least = match more_of_compilers(had, has) {
        Some(_) => BYTES_MIN,
        None => BYTES_MIN.max(pooled_bytes_max(&facts.marks[..at])),
    };
    let had_bytes = sum(FREED_BY_CLEANERS.into_iter().map(|owner| holds(had, owner)));
    Some(Collected { before, had_bytes, owners, freed_bytes, least, rss: weighed.total_bytes })
}

/// The growth of these owners from account `than` to `one`, largest first, and the sum. Excludes compiler memory, which
/// is freed without a collection.
fn more(one: &AccountRecord, than: &AccountRecord, owners: [Owner; 4]) -> (Vec<OwnerFreed>, u64) {
    let of_compilers = more_of_compilers(one, than).unwrap_or(0);
    let more = owners.map(|owner| {
        let bytes = holds(one, owner).saturating_sub(holds(than, owner));
        let theirs = if owner == Owner::MallocLive { of_compilers } else { 0 };
        OwnerFreed { owner: owner.name().to_owned(), bytes: bytes.saturating_sub(theirs) }
    });
    let mut more: Vec<OwnerFreed> = more.into_iter().filter(|of| of.bytes > 0).collect();
    more.largest_first(|of| of.bytes);
    let bytes = sum(more.iter().map(|of| of.bytes));
    (more, bytes)
}

/// The growth of used memory in the compilers' arenas, minus the growth of other threads' arenas, because threads share
/// arenas. `None` if the arenas are unknown.
fn more_of_compilers(one: &AccountRecord, than: &AccountRecord) -> Option<u64> {
    let live = |account: &AccountRecord| account.malloc.as_ref()?.compilers_live_bytes;
    let theirs = live(one)?.saturating_sub(live(than)?);
    let all = holds(one, Owner::MallocLive).saturating_sub(holds(than, Owner::MallocLive));
    let others = one.malloc.as_ref()?.arenas.saturating_sub(ARENAS_OF_COMPILERS).max(1);
    Some(theirs.saturating_sub(ARENAS_OF_COMPILERS * (all.saturating_sub(theirs) / others)))
}

/// Compiler CPU time between two marks.
fn compiled_s(before: &Mark, after: &Mark) -> f64 {
    compilers_s(after) - compilers_s(before)
}

/// Compiler CPU time up to a mark.
fn compilers_s(mark: &Mark) -> f64 {
    mark.pools.iter().filter(|pool| compile(pool)).map(|pool| pool.cpu_s).sum()
}

/// The upper bound of memory freed by compilations that HotSpot still caches at the last of these marks and will
/// release on its own.
fn pooled_bytes_max(marks: &[Mark]) -> u64 {
    let Some((last, earlier)) = marks.split_last() else { return 0 };
    let cleaned = earlier.iter().rfind(|mark| mark.at_s <= last.at_s - POOLS_CLEANED_EACH_S);
    (cleaned.map_or(compilers_s(last), |mark| compiled_s(mark, last)) * POOLED_BYTES_PER_COMPILED_S) as u64
}

/// Changes that make collections more frequent: periodic G1 collections at rest, and a young generation that fills
/// every few seconds.
fn sooner(facts: &Facts, before: &Mark) -> Vec<Change> {
    let flags = &facts.flags;
    let mut remedies = Vec::new();
    if facts.collector() == "G1" && flags.has_free("G1PeriodicGCInterval") {
        remedies.push(collect_each(2000));
    }
    let is_generational = ["Serial", "Parallel", "G1"].contains(&facts.collector());
    let fills = allocated_per_s(facts).map_or(YOUNG_USUAL, |rate| (rate * COLLECT_EACH_S) as u64);
    let most = before.heap.used_bytes.map_or(YOUNG_USUAL, |used| used / YOUNG_PART).max(YOUNG_LEAST);
    // Rounded to a power of two: a server's rate varies between trials, but the proposal should not.
    let young = Bytes(1 << (fills.clamp(YOUNG_LEAST, most) as f64).log2().round() as u32);
    let set = ["MaxNewSize", "NewSize"].into_iter().find(|name| flags.is_typed(name));
    let is_smaller = set.is_none_or(|name| flags.number(name).is_some_and(|bytes| young.0 < bytes));
    if is_generational && is_smaller && flags.is_free("NewRatio") {
        remedies.push(young_of(young));
    }
    remedies
}

/// Bytes allocated per second of load.
fn allocated_per_s(facts: &Facts) -> Option<f64> {
    let phase = facts.loads().next_back()?;
    Some(phase.subject.allocated_bytes? as f64 / phase.seconds)
}

/// The JVM and its libraries normally use up to this size or share of RSS.
const LIVES_MIN: u64 = 32 << 20;
const LIVES_SHARE_MIN: f64 = 0.15;
/// Any program has up to this many objects with native memory.
const OBJECTS_MIN: u64 = 100;
/// Owners served by malloc; direct buffers have their own row and finding.
const OF_MALLOC: [Owner; 4] = [Owner::MallocLive, Owner::MallocNonHotspot, Owner::MallocMmapped, Owner::MallocUnsplit];
/// Libraries not specific to a program: fonts and allocators. File name prefixes.
const OF_ALL_PROGRAMS: [&str; 5] = ["libfreetype.", "libfontconfig.", "libjemalloc.", "libtcmalloc", "libmimalloc."];

/// The program or its library allocated native memory during the load, and a full collection kept it. Source:
/// `Unsafe.allocateMemory`, JEP 454 (shared and global arenas live until they are closed), JNI stores such as RocksDB
/// (facebook/rocksdb #4112); measured: 1,200 arenas of 128 KiB.
pub(super) fn program(facts: &Facts) -> Option<FindingRecord> {
    let (_, weighed) = facts.weighed()?;
    let first = facts.at(MarkPoint::Start)?.account.as_ref()?;
    let mark = facts.at(MarkPoint::Collected).filter(|mark| mark.processes.is_empty())?;
    let account = mark.account.as_ref()?;
    let (owners, bytes) = more(account, first, OF_MALLOC);
    // Running compilers hold memory that they will free, and an allocator whose memory cannot be split may hold freed
    // memory.
    let compiled = compile_now(mark) || super::compilers::peak(facts).is_some();
    if bytes < LIVES_MIN || share(bytes, weighed.total_bytes) < LIVES_SHARE_MIN || compiled {
        return None;
    }
    let count = |names: &[&str]| {
        sum(mark.live_classes.iter().filter(|of| names.contains(&of.class.as_str())).map(|of| of.instances))
    };
    let arenas = count(&[
        "jdk.internal.foreign.SharedSession",
        "jdk.internal.foreign.ConfinedSession",
        "jdk.internal.foreign.ImplicitSession",
    ]);
    let segments = count(&["jdk.internal.foreign.NativeMemorySegmentImpl"]);
    let zlib = count(&["java.util.zip.Inflater", "java.util.zip.Deflater"]);
    let library = foreign_library(account);
    let by = match library {
        _ if arenas.max(segments) >= OBJECTS_MIN => NativeHolder::ForeignArenas { arenas: arenas.max(segments) },
        _ if zlib >= OBJECTS_MIN => NativeHolder::Zlib { objects: zlib },
        Some(name) => NativeHolder::Library { name },
        None => NativeHolder::Unknown,
    };
    let (whose, next) = told_of(&by);
    let came = Bytes(bytes);
    let text = format!(
        "the load added {came} of native memory that a full GC does not free. It was allocated with malloc by \
            {whose}; no JDK counter shows it"
    );
    let next = format!("{next}. `-Xmx`, `-XX:MaxDirectMemorySize`, and fewer malloc arenas do not limit it");
    Some(FindingRecord { costs_bytes: bytes, ..found(Finding::NativeMemoryLives { bytes, owners, by }, text, next) })
}

/// Whether compilers hold much at a mark; right after a collection, they are usually idle.
fn compile_now(mark: &Mark) -> bool {
    mark.nmt.is_some() && super::facts::tagged(mark, "Compiler").is_some_and(|bytes| bytes >= LIVES_MIN / 2)
}

/// The largest library that belongs to neither the JDK nor the system.
fn foreign_library(account: &AccountRecord) -> Option<String> {
    let libraries = &account.owners.iter().find(|owner| owner.name == Owner::Libraries.name())?.detail;
    let names = || libraries.iter().map(|part| part.name.as_str());
    let jvm =
        names().find_map(|name| name.strip_suffix("/libjava.so")).map(|folder| format!("{folder}/server/libjvm.so"));
    let is_foreign = |path: &&str| {
        foreign(path, jvm.as_deref()) && !OF_ALL_PROGRAMS.iter().any(|known| file_name(path).starts_with(known))
    };
    names().find(is_foreign).map(|path| file_name(path).to_owned())
}

fn told_of(by: &NativeHolder) -> (String, &'static str) {
    match by {
        NativeHolder::ForeignArenas { arenas } => (
            format!("{} arenas or segments of the foreign memory API that are still referenced", grouped(*arenas)),
            "close each arena (`try (Arena arena = Arena.ofConfined())`). A shared or confined arena frees its \
             memory when closed, `ofAuto()` when a GC finds it unreachable, and `Arena.global()` never",
        ),
        NativeHolder::Zlib { objects } => (
            format!("{} `Inflater`s and `Deflater`s that are still referenced", grouped(*objects)),
            "call `end()` on them (or close their stream), or keep fewer",
        ),
        NativeHolder::Library { name } => (
            format!("the program or one of its native libraries, such as `{name}`"),
            limit_of(name).unwrap_or(
                "set that library's own limits (caches, buffers, pools), and close every object it returns; \
                 the container needs heap + library + the rest",
            ),
        ),
        NativeHolder::Unknown => (
            "the program: `Unsafe.allocateMemory`, or native code that it calls".to_owned(),
            "free this memory, or limit the store or cache in its own settings; the container needs heap + this + \
             the rest",
        ),
    }
}

/// How to limit common libraries, by file name prefix. Source: DuckDB, "Limits"; RocksDB's wiki, "Write Buffer
/// Manager"; sqlite.org/pragma.html; javacpp #309, #559.
const LIMITS: [(&str, &str); 4] = [
    (
        "libduckdb",
        "run `SET memory_limit = '128MB'`, or as much as the queries need, when you open the database; without \
         it, DuckDB uses up to 80% of the machine's memory",
    ),
    (
        "librocksdb",
        "share one `LRUCache` among all column families, with a `WriteBufferManager` charged to it; close \
         iterators and options",
    ),
    ("libsqlite", "lower `PRAGMA cache_size` on each connection, and use fewer connections"),
    (
        "libopencv",
        "set `-Dorg.bytedeco.javacpp.maxPhysicalBytes=512m` if it comes with JavaCPP; release each \
         `Mat`",
    ),
];

fn limit_of(library: &str) -> Option<&'static str> {
    LIMITS.iter().find(|(beginning, _)| library.starts_with(beginning)).map(|(_, limit)| *limit)
}

/// A library manages its own memory outside malloc. Source: duckdb-java #182, sqrl #2059, yaci-store #867 (80% of the
/// machine's memory by default), and measured on DuckDB.
pub(super) fn library(facts: &Facts) -> Option<FindingRecord> {
    let (_, account) = facts.weighed()?;
    let bytes = holds(account, Owner::Native);
    if bytes < BYTES_MIN || share(bytes, account.total_bytes) < SHARE_MIN {
        return None;
    }
    let own = account.owners.iter().find(|owner| owner.name == Owner::Native.name())?;
    let largest = own.detail.iter().max_by_key(|part| part.rss_bytes);
    // `libx.so (jemalloc): in use, by its tables`
    let library = largest.map_or("a library", |part| part.name.split(": ").next().unwrap_or(&part.name)).to_owned();
    let text = format!("`{library}` manages {} itself, outside malloc and the JVM", Bytes(bytes));
    let next = match limit_of(&library) {
        Some(limit) => format!("{limit}. No JVM flag limits it; the container needs heap + library + the rest"),
        None => "set that library's own limit: no JVM flag limits it, and many libraries use a share of the \
             machine's memory by default. The container needs heap + library + the rest"
            .to_owned(),
    };
    Some(FindingRecord { costs_bytes: bytes, ..found(Finding::LibraryMemory { bytes, library }, text, next) })
}

/// Files that any JVM maps.
const MAPPED_BY_ANY: [&str; 5] = [".jar", ".so", ".jsa", ".aot", "/modules"];

/// Files mapped by the program are resident: buffers from `FileChannel.map`, indexes of Lucene or Kafka. Source:
/// `/proc/PID/smaps`; kernel memory.stat (`file_mapped`); measured: an index of 160 MiB.
pub(super) fn mapped_files(facts: &Facts) -> Option<FindingRecord> {
    let (_, account) = facts.weighed()?;
    let owner = account.owners.iter().find(|owner| owner.name == Owner::MappedFiles.name())?;
    let is_own = |path: &str| !MAPPED_BY_ANY.iter().any(|end| path.trim_end_matches(" (deleted)").ends_with(end));
    let own = owner.detail.iter().filter(|part| is_own(&part.name));
    let file = |part: &DetailRecord| DiskFileRecord { path: part.name.clone(), bytes: part.rss_bytes };
    let mut files: Vec<DiskFileRecord> = own.map(file).collect();
    let bytes = sum(files.iter().map(|file| file.bytes));
    if bytes < MAPPED_MIN || share(bytes, account.total_bytes) < MAPPED_SHARE_MIN {
        return None;
    }
    files.largest_first(|file| file.bytes);
    // The largest is always named.
    let large = files.iter().skip(1).take_while(|file| file.bytes >= MAPPED_NAMED_MIN).count();
    files.truncate((1 + large).min(MAPPED_NAMED));
    let list = listed(&files, |file| format!("`{}` ({})", file_name(&file.path), Bytes(file.bytes)));
    let text = format!("{} of the files that the program mapped is resident: {list}", Bytes(bytes));
    let next = "map less at once, or read the files in chunks. The kernel drops clean pages before it kills \
         anything, so the limit does not have to cover all of them. No JVM flag limits them";
    Some(FindingRecord { costs_bytes: bytes, ..found(Finding::MappedFiles { bytes, files }, text, next) })
}

/// Any program maps up to this size or share of RSS.
const MAPPED_MIN: u64 = 16 << 20;
const MAPPED_SHARE_MIN: f64 = 0.15;
/// The maximum number of files named, and the minimum size of each further one.
const MAPPED_NAMED: usize = 3;
const MAPPED_NAMED_MIN: u64 = 1 << 20;
