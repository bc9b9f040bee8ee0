//! Native memory outside the JVM's own: what garbage in the Java heap holds, and what libraries manage themselves.

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

/// Less of RSS, or less than this, is what any JVM frees by the way.
const SHARE_MIN: f64 = 0.05;
const BYTES_MIN: u64 = 8 << 20;
/// CPU time of the compilers between two marks above which what they free is taken for theirs.
const COMPILED_S_MAX: f64 = 0.2;
/// HotSpot keeps the chunks that a compilation freed, and frees them every so many seconds (`ChunkPoolCleaner` in
/// arena.cpp, JDK 11 to 25).
const POOLS_CLEANED_EACH_S: f64 = 5.0;
/// The most that it keeps for a second of the compilers' CPU time; measured on a small server, JDK 17: 4.2 MiB.
const POOLED_BYTES_PER_COMPILED_S: f64 = (8 << 20) as f64;
/// The arenas that compiler threads allocate from: C1 has one, and C2.
const ARENAS_OF_COMPILERS: u64 = 2;
/// Owners whose memory goes when a Cleaner or `close` frees it. Direct buffers have a finding of their own.
const FREED_BY_CLEANERS: [Owner; 4] = [Owner::MallocLive, Owner::MallocNonHotspot, Owner::MallocMmapped, Owner::Native];
/// How often a young generation of the size that is proposed fills, in seconds.
const COLLECT_EACH_S: f64 = 2.0;
pub(crate) const YOUNG_LEAST: u64 = 4 << 20;
const YOUNG_USUAL: u64 = 8 << 20;
/// A proposed young generation is at most this part of what the heap held before the collection.
const YOUNG_PART: u64 = 4;

/// Native memory whose owners are garbage: a full collection freed it. `java.lang.ref.Cleaner` frees memory once the
/// collector has found its owner dead (JDK 11–27), and owners are small, so that they do not fill a young generation.
/// Source: seichi_infra #5486 and #5489 (flat with `G1PeriodicGCInterval`), aws-glue-schema-registry #203; measured:
/// 1,200 `Deflater`s that were never ended held 275 MiB, of which a collection left 2.
pub(super) fn held_by_garbage(facts: &Facts) -> Option<FindingRecord> {
    let Collected { before, owners, freed_bytes, least, rss, .. } = collected(facts)?;
    if freed_bytes < least || share(freed_bytes, rss) < SHARE_MIN {
        return None;
    }
    let collections = before.heap.collections;
    let remedies = sooner(facts, before);
    let (freed, so_far) = (Bytes(freed_bytes), so_far(collections));
    let text =
        format!("{freed} of native memory belong to Java objects that are garbage: a full GC freed them{so_far}");
    let close = "close what owns native memory (`end()` of a `Deflater` or `Inflater`, `close()` of all else)";
    let next = match first(&remedies) {
        Some(first) if first.starts_with("-Xmn") && facts.flags.is_typed("MaxNewSize") => {
            let sooner = "a young generation that fills sooner is collected sooner";
            let tune = "`loadline tune --may-remove -Xmn` finds the value";
            format!("{close}; until then lower the `-Xmn` that you set, such as to `{first}` ({tune}): {sooner}")
        }
        Some(first) => format!("{close}; until then collect sooner: `{first}`"),
        None => close.to_owned(),
    };
    let finding = Finding::NativeHeldByGarbage { freed_bytes, owners, collections };
    let found = found(finding, text, next);
    Some(FindingRecord { costs_bytes: freed_bytes, gain_bytes_max: Some(freed_bytes), remedies, ..found })
}

/// A full collection that frees more than this share is no evidence against garbage.
const SPARED_SHARE_MAX: f64 = 0.1;

/// Speaks against it: a full collection freed next to nothing of much native memory.
pub(super) fn spared(facts: &Facts) -> Option<String> {
    let Collected { had_bytes, freed_bytes, rss, .. } = collected(facts)?;
    let matters = had_bytes >= BYTES_MIN && share(had_bytes, rss) >= SHARE_MIN;
    let (freed, had) = (Bytes(freed_bytes), Bytes(had_bytes));
    (matters && share(freed_bytes, had_bytes) <= SPARED_SHARE_MAX)
        .then(|| format!("a full GC freed {freed} of the {had} of native memory, so garbage does not hold it"))
}

/// Native memory that Cleaners may free, before a full collection and after it.
struct Collected<'a> {
    before: &'a Mark,
    /// Bytes before.
    had_bytes: u64,
    /// Bytes that went, by owner, the largest first, and their sum.
    owners: Vec<OwnerFreed>,
    freed_bytes: u64,
    /// Less than this is what any JVM frees by the way.
    least: u64,
    /// RSS where the weight is judged.
    rss: u64,
}

/// `None` without a full collection, or where compilers worked meanwhile: they free memory of malloc, too.
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

/// Returns by how much each of these owners is larger in one account than in another, the largest first, and the sum;
/// without what compilers hold, which they free by themselves.
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

/// By how much more is in use in the arenas of the compilers than in another account, beyond what the arenas of other
/// threads have more: threads share arenas. `None` where those arenas are not known.
fn more_of_compilers(one: &AccountRecord, than: &AccountRecord) -> Option<u64> {
    let live = |account: &AccountRecord| account.malloc.as_ref()?.compilers_live_bytes;
    let theirs = live(one)?.saturating_sub(live(than)?);
    let all = holds(one, Owner::MallocLive).saturating_sub(holds(than, Owner::MallocLive));
    let others = one.malloc.as_ref()?.arenas.saturating_sub(ARENAS_OF_COMPILERS).max(1);
    Some(theirs.saturating_sub(ARENAS_OF_COMPILERS * (all.saturating_sub(theirs) / others)))
}

/// CPU time of the JVM's compilers between two marks.
fn compiled_s(before: &Mark, after: &Mark) -> f64 {
    compilers_s(after) - compilers_s(before)
}

/// CPU time of the JVM's compilers until a mark.
fn compilers_s(mark: &Mark) -> f64 {
    mark.pools.iter().filter(|pool| compile(pool)).map(|pool| pool.cpu_s).sum()
}

/// The most memory that compilations freed and HotSpot still keeps at the last of these marks. HotSpot will free it
/// by itself.
fn pooled_bytes_max(marks: &[Mark]) -> u64 {
    let Some((last, earlier)) = marks.split_last() else { return 0 };
    let cleaned = earlier.iter().rfind(|mark| mark.at_s <= last.at_s - POOLS_CLEANED_EACH_S);
    (cleaned.map_or(compilers_s(last), |mark| compiled_s(mark, last)) * POOLED_BYTES_PER_COMPILED_S) as u64
}

/// Returns changes that make collections come sooner: periodic ones of G1 at rest, and a young generation that fills
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
    // The nearest power of two: the rate of one server differs from trial to trial, and its proposal should not.
    let young = Bytes(1 << (fills.clamp(YOUNG_LEAST, most) as f64).log2().round() as u32);
    let set = ["MaxNewSize", "NewSize"].into_iter().find(|name| flags.is_typed(name));
    let is_smaller = set.is_none_or(|name| flags.number(name).is_some_and(|bytes| young.0 < bytes));
    if is_generational && is_smaller && flags.is_free("NewRatio") {
        remedies.push(young_of(young));
    }
    remedies
}

/// Bytes that the program allocates in a second of load.
fn allocated_per_s(facts: &Facts) -> Option<f64> {
    let phase = facts.loads().next_back()?;
    Some(phase.subject.allocated_bytes? as f64 / phase.seconds)
}

/// Native memory of a program below this, or this share of RSS, is what the JVM and its libraries come to need.
const LIVES_MIN: u64 = 32 << 20;
const LIVES_SHARE_MIN: f64 = 0.15;
/// Fewer objects that own native memory are those of any program.
const OBJECTS_MIN: u64 = 100;
/// Owners that malloc serves; direct buffers have a row, and a finding, of their own.
const OF_MALLOC: [Owner; 4] = [Owner::MallocLive, Owner::MallocNonHotspot, Owner::MallocMmapped, Owner::MallocUnsplit];
/// Libraries that no program brings: fonts, and allocators that only work for others. Beginnings of file names.
const OF_ALL_PROGRAMS: [&str; 5] = ["libfreetype.", "libfontconfig.", "libjemalloc.", "libtcmalloc", "libmimalloc."];

/// The program, or a library of it, took native memory during the load, and a full collection left it. Source:
/// `Unsafe.allocateMemory`, JEP 454 (arenas that are shared or global live until they are closed), JNI stores such as
/// RocksDB (facebook/rocksdb #4112); measured: 1,200 arenas of 128 KiB.
pub(super) fn program(facts: &Facts) -> Option<FindingRecord> {
    let (_, weighed) = facts.weighed()?;
    let first = facts.at(MarkPoint::Start)?.account.as_ref()?;
    let mark = facts.at(MarkPoint::Collected).filter(|mark| mark.processes.is_empty())?;
    let account = mark.account.as_ref()?;
    let (owners, bytes) = more(account, first, OF_MALLOC);
    // Compilers that work hold what they will free, and an allocator that cannot be split may hold what was freed.
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
        "{came} of native memory came with the load, and a full GC leaves them: malloc holds them for {whose}; no \
         counter of the JDK has them"
    );
    let next = format!("{next}. Neither `-Xmx` nor `-XX:MaxDirectMemorySize` nor arenas of malloc bound them");
    Some(FindingRecord { costs_bytes: bytes, ..found(Finding::NativeMemoryLives { bytes, owners, by }, text, next) })
}

/// Whether compilers hold much at a mark; right after a collection they mostly rest.
fn compile_now(mark: &Mark) -> bool {
    mark.nmt.is_some() && super::facts::tagged(mark, "Compiler").is_some_and(|bytes| bytes >= LIVES_MIN / 2)
}

/// The largest library that is neither of the JDK nor of the system.
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

/// Describes the holder, and says what helps.
fn told_of(by: &NativeHolder) -> (String, &'static str) {
    match by {
        NativeHolder::ForeignArenas { arenas } => (
            format!("{} arenas or segments of the foreign memory API that are still referred to", grouped(*arenas)),
            "close each arena (`try (Arena arena = Arena.ofConfined())`): memory of `Arena.global()` is never freed, \
             that of a shared or confined one when it is closed, that of `ofAuto()` when a collection finds it dead",
        ),
        NativeHolder::Zlib { objects } => (
            format!("{} `Inflater`s and `Deflater`s that are still referred to", grouped(*objects)),
            "end them (`end()`, or close their stream), or keep fewer",
        ),
        NativeHolder::Library { name } => (
            format!("the program or a native library of it, such as `{name}`"),
            limit_of(name).unwrap_or(
                "set that library's own limit (caches, buffers, pools), and close what it hands out; the container \
                 needs heap + library + the rest",
            ),
        ),
        NativeHolder::Unknown => (
            "the program: `Unsafe.allocateMemory`, or native code that it calls".to_owned(),
            "free what is allocated there, or bound that store or cache in its own settings; the container needs heap \
             + this + the rest",
        ),
    }
}

/// How libraries that many servers use are bounded, by the beginnings of their file names. Source: DuckDB, "Limits";
/// RocksDB's wiki, "Write Buffer Manager"; sqlite.org/pragma.html; javacpp #309, #559.
const LIMITS: [(&str, &str); 4] = [
    (
        "libduckdb",
        "`SET memory_limit = '128MB'`, or as much as its queries need, when the database is opened; without it DuckDB \
         takes up to 80 % of the machine's memory",
    ),
    (
        "librocksdb",
        "one `LRUCache` for all column families, and a `WriteBufferManager` that is charged to it; close iterators \
         and options",
    ),
    ("libsqlite", "`PRAGMA cache_size` of each connection, and fewer connections"),
    ("libopencv", "`-Dorg.bytedeco.javacpp.maxPhysicalBytes=512m` if JavaCPP brings it; release each `Mat`"),
];

fn limit_of(library: &str) -> Option<&'static str> {
    LIMITS.iter().find(|(beginning, _)| library.starts_with(beginning)).map(|(_, limit)| *limit)
}

/// A library manages memory of its own outside of malloc. Source: duckdb-java #182, sqrl #2059, yaci-store #867 (80 %
/// of the machine's memory unless it is bounded), and measured on DuckDB.
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
    let text = format!("`{library}` manages {} itself, outside of malloc and of the JVM", Bytes(bytes));
    let next = match limit_of(&library) {
        Some(limit) => format!("{limit}: no flag of the JVM bounds it; the container needs heap + library + the rest"),
        None => "set that library's own limit: no flag of the JVM bounds it, and many take a share of the machine's \
            memory as their default; the container needs heap + library + the rest"
            .to_owned(),
    };
    Some(FindingRecord { costs_bytes: bytes, ..found(Finding::LibraryMemory { bytes, library }, text, next) })
}

/// Files that any JVM maps.
const MAPPED_BY_ANY: [&str; 5] = [".jar", ".so", ".jsa", ".aot", "/modules"];

/// Files that the program mapped are resident: buffers of `FileChannel.map`, indices of Lucene or Kafka. Source:
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
    // The largest is named whatever it holds.
    let large = files.iter().skip(1).take_while(|file| file.bytes >= MAPPED_NAMED_MIN).count();
    files.truncate((1 + large).min(MAPPED_NAMED));
    let list = listed(&files, |file| format!("`{}` with {}", file_name(&file.path), Bytes(file.bytes)));
    let text = format!("the program mapped files, of which {} are in RSS: {list}", Bytes(bytes));
    let next = "map less of them at once, or read them in pieces; pages that are clean are dropped before the kernel \
        kills, so the limit need not hold all of them. No flag of the JVM bounds them";
    Some(FindingRecord { costs_bytes: bytes, ..found(Finding::MappedFiles { bytes, files }, text, next) })
}

/// Less than this, or this share of RSS, is what any program maps.
const MAPPED_MIN: u64 = 16 << 20;
const MAPPED_SHARE_MIN: f64 = 0.15;
/// Files that are named, and the least that a further one holds.
const MAPPED_NAMED: usize = 3;
const MAPPED_NAMED_MIN: u64 = 1 << 20;
