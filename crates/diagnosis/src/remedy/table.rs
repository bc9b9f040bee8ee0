//! The table of remedies, and the preconditions of each.

use super::offers::Level;
use super::{Facts, NotOffered, Offer, changes, cures, heap, others};
use crate::owner::Owner;
use crate::record::PriceClass;

/// Mutually exclusive remedies: levels of one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// The heap's maximum.
    Heap,
    /// Memory retained by malloc.
    Malloc,
    /// Memory returned by the heap.
    HeapReturn,
    /// The maximum of direct memory.
    Direct,
    /// I/O buffers cached per thread.
    BufferCache,
    /// Netty's pools.
    Netty,
    /// The collector.
    Collector,
    /// The compilers.
    Compiler,
    /// Headers of objects.
    Headers,
    /// The source of classes.
    Classes,
    /// The size of the young generation.
    Young,
    /// The size of G1 regions.
    Regions,
    /// The heap's share of memory.
    HeapShare,
    /// Which methods may be compiled, and a compilation's memory.
    Compilation,
    /// Explicit collections by the program or the JDK.
    ExplicitCollections,
    /// Native Memory Tracking.
    Tracking,
    /// Agents.
    Agents,
    /// A user-defined remedy by index; each is its own group.
    Own(usize),
}

/// A row of the table.
pub struct Remedy {
    /// Identifies it in options, records, and documents.
    pub id: &'static str,
    /// The group of alternatives that it belongs to.
    pub group: Group,
    /// A plain description of its effect.
    pub what: &'static str,
    /// The owners of the affected pages.
    pub owners: &'static [Owner],
    /// Its possible cost.
    pub price: PriceClass,
    /// Its priority for the first bundle within its group, highest first; 0 if it is only tried alone.
    pub rank: u8,
    /// The share of RSS, 0–1, that its owners must hold to be worth a trial.
    pub share_min: f64,
    /// The source that measured its effect.
    pub source: &'static str,
    /// Known objections, if any.
    pub against: &'static str,
    /// Preconditions in the order of checking.
    pub(super) needs: &'static [Need],
    /// Computes its changes for this subject.
    pub(super) offering: Offering,
}

/// Computes a remedy's changes for this subject, or the reason not to try it.
#[derive(Clone, Copy)]
pub(super) enum Offering {
    /// A single set of changes.
    One(fn(&Facts) -> Result<Offer, NotOffered>),
    /// The levels of a searched ceiling, loosest first.
    Levels(fn(&Facts) -> Result<Vec<Level>, NotOffered>),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Need {
    /// The user set none of these flags, options, and variables.
    Unset(&'static [&'static str]),
    /// The JVM has this flag, or its flags are unknown. Trials record it ([`crate::flags_kept`]).
    Flag(&'static str),
    /// The C allocator is glibc's or unknown.
    Glibc,
    /// No trial is known to have been still warming up: that would hide the price.
    Warm,
}

impl Need {
    /// Checks the precondition. Errors: why this subject does not meet it.
    pub(super) fn check(self, facts: &Facts) -> Result<(), NotOffered> {
        match self {
            Self::Unset(names) => facts.in_the_way(names).map_or(Ok(()), |text| Err(NotOffered::Chosen(text))),
            Self::Flag(name) => match &facts.flags {
                Some(flags) if !flags.contains(name) => Err(NotOffered::NoFlag(name)),
                _ => Ok(()),
            },
            Self::Glibc => match facts.allocator.as_deref() {
                Some("glibc") | None => Ok(()),
                Some(other) => Err(NotOffered::Allocator(other.to_owned())),
            },
            Self::Warm if facts.is_warm == Some(false) => Err(NotOffered::Young),
            Self::Warm => Ok(()),
        }
    }
}

use Need::{Flag, Glibc, Unset, Warm};
use Owner::{
    ClassSpace, CodeCache, Gc, JavaHeap, JavaHeapFree, JavaHeapGarbage, JavaHeapLive, JavaHeapUsed, MallocDirect,
    MallocLive, MallocMmapped, MallocNonHotspot, MallocRetained, MallocUnsplit, MappedFiles, Metaspace, ThreadStacks,
};
use PriceClass::{Cpu, Free, Program};

const MALLOC: &[Owner] = &[MallocRetained, MallocLive, MallocNonHotspot, MallocUnsplit];
const ALLOCATOR: &[Owner] = &[MallocRetained, MallocLive, MallocNonHotspot, MallocMmapped, MallocDirect, MallocUnsplit];
const HEAP: &[Owner] = &[JavaHeap, JavaHeapUsed, JavaHeapLive, JavaHeapGarbage, JavaHeapFree, Gc];
const COMPILER: &[Owner] = &[CodeCache, MallocLive, MallocRetained, MallocUnsplit, ThreadStacks];
const GARBAGE_OWNED: &[Owner] = &[
    MallocLive,
    MallocNonHotspot,
    MallocMmapped,
    MallocRetained,
    MallocUnsplit,
    Owner::Native,
    JavaHeap,
    JavaHeapUsed,
    JavaHeapLive,
    JavaHeapGarbage,
    JavaHeapFree,
    Gc,
];
const COMPILATION: &[Owner] =
    &[MallocRetained, MallocLive, MallocNonHotspot, MallocMmapped, MallocUnsplit, CodeCache, ThreadStacks];
const AGENT: &[Owner] = &[
    Metaspace,
    ClassSpace,
    CodeCache,
    MappedFiles,
    JavaHeap,
    JavaHeapUsed,
    JavaHeapLive,
    JavaHeapGarbage,
    JavaHeapFree,
    MallocLive,
    MallocRetained,
    MallocUnsplit,
    ThreadStacks,
];
const CLASSES: &[Owner] = &[Metaspace, ClassSpace, Owner::Cds, MappedFiles];

const YOUNG_UNSET: Need = Unset(&["-Xmn", "MaxNewSize", "NewSize", "NewRatio"]);
const CLASSES_UNSET: Need = Unset(&[
    "SharedArchiveFile",
    "ArchiveClassesAtExit",
    "AOTCache",
    "AOTCacheOutput",
    "AOTMode",
    "-Xshare",
    "AutoCreateSharedArchive",
]);
const HEAP_UNSET: Need = Unset(heap::CEILINGS);
const ARENAS_UNSET: Need = Unset(&["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"]);
const THRESHOLDS_UNSET: Need = Unset(&["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"]);
const TRIM_UNSET: Need = Unset(&["TrimNativeHeapInterval"]);
/// Checked against the JVM's own flags, because only later updates of 17 and 21 have it.
const TRIM: Need = Flag("TrimNativeHeapInterval");
/// Both thresholds; setting them disables glibc's dynamic adjustment (mallopt(3), `M_MMAP_THRESHOLD`).
const THRESHOLDS: [&str; 2] = ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"];

/// All remedies in display order.
pub const TABLE: &[Remedy] = &[
    Remedy {
        source: "measured (docs/tune.md); by default, the heap can grow to a quarter of memory (JDK 11-25)",
        against: "if too small, GC costs CPU, and untested load can cause OutOfMemoryError",
        needs: &[HEAP_UNSET],
        ..row("heap.max", "caps the heap; a search finds the ceiling", Offering::Levels(heap::ceilings))
    },
    Remedy {
        rank: 1,
        source: "bigbluebutton PR 25309: RSS -63 MB with 2 arenas; measured: Netty with 20 MB bodies, 632 to 192 MB",
        against: "threads contend for it if native code allocates heavily (hpcc 9441)",
        needs: &[ARENAS_UNSET, Glibc],
        ..malloc("malloc.arenas", "makes all threads share one malloc arena", |facts| {
            others::retained(facts, [changes::one_arena()])
        })
    },
    Remedy {
        rank: 2,
        source: "JDK-8293114 (hotspot-dev 2021-08: petclinic 649 to 471 MB); a trim returns 76-87% of malloc retained",
        against: "each trim briefly locks malloc's arenas",
        needs: &[TRIM_UNSET, TRIM, Glibc],
        ..malloc("malloc.trim", "makes the JVM trim malloc every 2 s", |facts| {
            others::retained(facts, [changes::trim_often(facts.release)])
        })
    },
    Remedy {
        rank: 3,
        source: "see malloc.arenas and malloc.trim",
        against: "see malloc.arenas and malloc.trim",
        needs: &[ARENAS_UNSET, Glibc, TRIM_UNSET, TRIM],
        ..malloc("malloc.arenas+trim", "combines one arena and a trim every 2 s", |facts| {
            others::retained(facts, [changes::one_arena(), changes::trim_often(facts.release)])
        })
    },
    Remedy {
        price: Cpu,
        source: "mallopt(3); measured: Netty 636 to 158 MB; halved the growth of a server that uses Deflater",
        against: "each large allocation costs an mmap and page faults; worse with one arena (concord 319)",
        needs: &[THRESHOLDS_UNSET, Glibc],
        ..malloc("malloc.thresholds", "allocates large chunks with mmap and returns them when freed", |facts| {
            others::retained(facts, [changes::thresholds(THRESHOLDS)])
        })
    },
    Remedy {
        price: Cpu,
        source: "see malloc.thresholds and malloc.trim",
        against: "see malloc.thresholds and malloc.trim",
        needs: &[THRESHOLDS_UNSET, Glibc, TRIM_UNSET, TRIM],
        ..malloc("malloc.thresholds+trim", "allocates large chunks with mmap, and trims every 2 s", |facts| {
            others::retained(facts, [changes::thresholds(THRESHOLDS), changes::trim_often(facts.release)])
        })
    },
    Remedy {
        price: Cpu,
        share_min: 0.1,
        owners: ALLOCATOR,
        source: "monitee-agent 272: 603 to 499 MB; measured: 1.72 times the memory on a server that uses Deflater",
        against: "the library must be in the image; it exposed HotSpot bugs (jemalloc 1919)",
        needs: &[Unset(&["LD_PRELOAD"]), Glibc],
        ..malloc("malloc.jemalloc", "replaces glibc's malloc with jemalloc", |facts| others::preload(facts, "jemalloc"))
    },
    Remedy {
        price: Cpu,
        share_min: 0.1,
        owners: ALLOCATOR,
        source: "measured: 1.21 times the memory on a server that uses Deflater",
        against: "the library must be in the image; by default, freed memory stays resident (mimalloc 776)",
        needs: &[Unset(&["LD_PRELOAD"]), Glibc],
        ..malloc("malloc.mimalloc", "replaces glibc's malloc with mimalloc", |facts| others::preload(facts, "mimalloc"))
    },
    Remedy {
        group: Group::HeapReturn,
        source: "java(1) in JDK 25 (-XX:MinHeapFreeRatio); Red Hat's footprint options",
        against: "such options broke services under a spike (quarkus 39084), so include a spike in the load",
        needs: &[Unset(&["MinHeapFreeRatio", "MaxHeapFreeRatio", "-Xms", "InitialHeapSize"])],
        ..heap(
            "heap.ratios",
            "makes the heap shrink until 20% is free, and grow when less than 10% is free",
            heap::ratios,
        )
    },
    Remedy {
        group: Group::HeapReturn,
        source: "JEP 346 (JDK 12); vcell 1899: one full GC cut memory from 1,934 to 1,032 MiB",
        against: "any young GC resets its timer (JDK-8317755), so it works only when idle",
        needs: &[Unset(&["G1PeriodicGCInterval"])],
        ..heap("heap.periodic", "makes G1 collect and return memory periodically when idle", heap::periodic)
    },
    Remedy {
        group: Group::Direct,
        owners: heap::DIRECT,
        source: "measured (docs/tune.md): buffers that only a GC frees accumulate up to this ceiling",
        against: "if too small, causes OutOfMemoryError: Direct buffer memory",
        needs: &[Unset(&["MaxDirectMemorySize"])],
        ..row("direct.max", "caps direct memory; a search finds the ceiling", Offering::Levels(heap::direct_ceilings))
    },
    Remedy {
        group: Group::BufferCache,
        owners: heap::DIRECT,
        source: "linkerd 1858, ehcache3 2868: each thread caches a buffer for its largest write",
        against: "larger I/O from heap buffers allocates a direct buffer each time",
        needs: &[Unset(&["-Djdk.nio.maxCachedBufferSize"])],
        ..heap("nio.cache", "stops threads from caching direct buffers above 256 KiB", others::buffer_cache)
    },
    Remedy {
        group: Group::Netty,
        owners: heap::DIRECT,
        source: "netty 9768: 7.5 instead of 37.7 MiB of chunks; the adaptive allocator had regressions (15850, 15206)",
        against: "can reduce throughput and increase latency under heavy I/O",
        needs: &[Unset(&["-Dio.netty.allocator.type"])],
        ..heap("netty.pooled", "switches Netty to its pooled allocator", |facts| others::netty(facts, "type=pooled"))
    },
    Remedy {
        group: Group::Netty,
        owners: heap::DIRECT,
        source: "netty 9768",
        against: "allocating and freeing every buffer costs CPU and throughput",
        needs: &[Unset(&["-Dio.netty.allocator.type"])],
        ..heap("netty.unpooled", "disables Netty's pools", |facts| others::netty(facts, "type=unpooled"))
    },
    Remedy {
        group: Group::Netty,
        owners: heap::DIRECT,
        source: "io.netty.allocator.maxOrder: chunks of 64 KiB instead of 4 or 16 MiB",
        against: "buffers above 64 KiB are not pooled",
        needs: &[Unset(&["-Dio.netty.allocator.maxOrder"])],
        ..heap("netty.small_chunks", "shrinks Netty's chunks to 64 KiB", |facts| others::netty(facts, "maxOrder=3"))
    },
    Remedy {
        group: Group::Collector,
        source: "JDK-8210708, JDK-8017163: G1's tables by release",
        against: "pauses grow with the live set; on two CPUs, another collector gave 36% more throughput (tmdevlab)",
        needs: &[Unset(others::COLLECTORS)],
        ..heap("gc.serial", "uses the Serial collector, which needs almost no GC tables", others::serial)
    },
    Remedy {
        group: Group::Compiler,
        owners: COMPILER,
        source: "measured with trim and one arena: 74.7 to 44.0 MB, at 0.78 times the throughput and 1.29 times the \
                 CPU",
        against: "all code uses more CPU",
        needs: &[Unset(&["TieredStopAtLevel", "TieredCompilation", "CompilationMode", "UseJVMCICompiler"]), Warm],
        ..heap("compiler.c1", "uses only the C1 compiler", others::first_compiler)
    },
    Remedy {
        group: Group::Headers,
        source: "JEP 519: 22% less heap in SPECjbb2015; measured: no visible effect on a small server",
        against: "JDK-8380060: silently corrupts byte arrays before JDK 27",
        needs: &[Flag("UseCompactObjectHeaders"), Unset(&["UseCompactObjectHeaders"])],
        ..heap("headers.compact", "shrinks object headers to 8 bytes", others::compact_headers)
    },
    Remedy {
        group: Group::Classes,
        owners: CLASSES,
        price: Program,
        source: "JEP 350; measured: 8-10 MB saved at start, no visible effect under load",
        against: "the archive must match the JDK, class path, and collector, or it is silently ignored",
        needs: &[CLASSES_UNSET, Flag("ArchiveClassesAtExit"), Warm],
        ..heap("cds.app", "loads application classes from an archive created in a training run", others::class_archive)
    },
    Remedy {
        group: Group::Classes,
        owners: CLASSES,
        price: Program,
        source: "JEP 483, 514, 515 (one training run: JDK 25)",
        against: "see cds.app; the training run takes several seconds longer to exit",
        needs: &[CLASSES_UNSET, Flag("AOTCacheOutput"), Warm],
        ..heap(
            "aot.cache",
            "loads linked classes and profiles from a cache created in a training run",
            others::aot_cache,
        )
    },
    Remedy {
        source: "native_held_by_garbage; measured: a GC freed 275 MiB of 1,200 Deflaters never closed with end()",
        against: "a GC every few seconds; short-lived objects can be promoted to the old generation",
        needs: &[YOUNG_UNSET],
        ..young("cure.young", "sizes the young generation so that it fills about every 2 s", |facts| {
            cures::young(facts, 2)
        })
    },
    Remedy {
        source: "see cure.young",
        against: "see cure.young; GCs are more frequent",
        needs: &[YOUNG_UNSET],
        ..young("cure.young.half", "uses half the size of cure.young", |facts| cures::young(facts, 1))
    },
    Remedy {
        source: "see cure.young",
        against: "see cure.young; GCs are less frequent",
        needs: &[YOUNG_UNSET, Warm],
        ..young("cure.young.double", "uses twice the size of cure.young", |facts| cures::young(facts, 4))
    },
    Remedy {
        group: Group::HeapReturn,
        source: "native_held_by_garbage; seichi_infra 5489: native memory stayed flat",
        against: "see heap.periodic: it works only if nothing else triggers a GC",
        needs: &[Unset(&["G1PeriodicGCInterval"])],
        ..young("cure.periodic", "makes G1 collect after 2 s without a GC", |facts| {
            cures::proposed(facts, "native_held_by_garbage", "-XX:G1PeriodicGCInterval")
        })
    },
    Remedy {
        group: Group::Regions,
        source: "humongous_tails; measured: 160 arrays of 1 MiB plus 16 bytes each take up 320 MiB",
        against: "saves almost nothing without a lower heap ceiling; leaves G1 fewer regions",
        needs: &[Unset(&["G1HeapRegionSize"])],
        ..heap("cure.regions", "sizes G1's regions for large objects, and lowers the heap ceiling", cures::regions)
    },
    Remedy {
        group: Group::HeapShare,
        source: "heap_share_unheeded; measured: 75% of 220 MiB gave a heap of 110 MiB",
        against: "see heap.max if the share is small",
        needs: &[Unset(&["MinRAMPercentage"])],
        ..heap("cure.heap_share", "sizes the heap as MaxRAMPercentage was meant to", cures::heap_share)
    },
    Remedy {
        source: "compiler_peak; measured: reduced a peak of 488 MiB to 62 MiB",
        against: "the method is interpreted, so its callers use more CPU",
        ..compilation(
            "cure.exclude",
            "keeps the JIT from compiling the method that took the most memory to compile",
            |facts| cures::proposed(facts, "compiler_peak", "-XX:CompileCommand=exclude"),
        )
    },
    Remedy {
        source: "compiler_peak; openjdk/jdk 16220 (JDK 23)",
        against: "methods that need more are compiled only by C1",
        ..compilation("cure.compile_memory", "limits each compilation to 64 MiB", |facts| {
            cures::proposed(facts, "compiler_peak", "-XX:CompileCommand=MemLimit")
        })
    },
    Remedy {
        group: Group::ExplicitCollections,
        owners: heap::DIRECT,
        source: "direct_memory_at_ceiling; measured: 128 MiB of garbage made every request fail",
        against: "System.gc() takes effect again for all callers",
        needs: &[Unset(&["DisableExplicitGC"])],
        ..heap("cure.explicit_gc", "lets the JDK trigger a GC when direct memory is full", |facts| {
            cures::proposed(facts, "direct_memory_at_ceiling", "-XX:-DisableExplicitGC")
        })
    },
    Remedy {
        group: Group::Direct,
        owners: heap::DIRECT,
        source: "direct_memory_at_ceiling",
        against: "ends the failures, but saves no memory",
        needs: &[Unset(&["MaxDirectMemorySize"])],
        ..heap(
            "cure.direct_ceiling",
            "raises the direct memory ceiling above what the live buffers use",
            cures::direct_ceiling,
        )
    },
    Remedy {
        group: Group::Tracking,
        owners: MALLOC,
        source: "observers_on; measured (docs/method.md): 0.6 to 5 MB",
        against: "the JVM no longer reports its native memory by category",
        needs: &[Unset(&["NativeMemoryTracking"])],
        ..heap("cure.nmt", "disables Native Memory Tracking", |facts| {
            cures::proposed(facts, "observers_on", "-XX:NativeMemoryTracking")
        })
    },
    Remedy {
        group: Group::Agents,
        owners: AGENT,
        source: "observers_on; the cost of your own agent was not measured",
        against: "the agent's data is lost",
        needs: &[Unset(cures::AGENTS)],
        ..heap("cure.agents", "runs the server without its agents", cures::agents)
    },
];

const fn heap(id: &'static str, what: &'static str, offer: fn(&Facts) -> Result<Offer, NotOffered>) -> Remedy {
    row(id, what, Offering::One(offer))
}

const fn row(id: &'static str, what: &'static str, offering: Offering) -> Remedy {
    let (group, owners, price) = (Group::Heap, HEAP, Cpu);
    Remedy { id, group, what, owners, price, rank: 0, share_min: 0.0, source: "", against: "", needs: &[], offering }
}

const fn young(id: &'static str, what: &'static str, offer: fn(&Facts) -> Result<Offer, NotOffered>) -> Remedy {
    Remedy { group: Group::Young, owners: GARBAGE_OWNED, ..heap(id, what, offer) }
}

const fn compilation(id: &'static str, what: &'static str, offer: fn(&Facts) -> Result<Offer, NotOffered>) -> Remedy {
    Remedy { group: Group::Compilation, owners: COMPILATION, ..heap(id, what, offer) }
}

const fn malloc(id: &'static str, what: &'static str, offer: fn(&Facts) -> Result<Offer, NotOffered>) -> Remedy {
    Remedy { group: Group::Malloc, owners: MALLOC, price: Free, ..heap(id, what, offer) }
}

/// Whether only a warm JVM shows the price of the remedy with this ID.
pub fn needs_warmth(id: &str) -> bool {
    TABLE.iter().any(|remedy| remedy.id == id && remedy.needs.iter().any(|need| matches!(need, Warm)))
}

pub(crate) fn flags_needed() -> impl Iterator<Item = &'static str> {
    let needs = TABLE.iter().flat_map(|remedy| remedy.needs);
    needs.filter_map(|need| if let Flag(name) = need { Some(*name) } else { None })
}

impl std::fmt::Debug for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_remedy_has_a_unique_name_evidence_and_owners() {
        for remedy in TABLE {
            assert!(!remedy.source.is_empty() && !remedy.owners.is_empty(), "{}", remedy.id);
            assert_eq!(TABLE.iter().filter(|other| other.id == remedy.id).count(), 1, "{}", remedy.id);
        }
    }

    #[test]
    fn bundled_levels_of_a_group_have_distinct_ranks() {
        for remedy in TABLE.iter().filter(|remedy| remedy.rank > 0) {
            let same = TABLE.iter().filter(|of| of.group == remedy.group && of.rank == remedy.rank);
            assert_eq!(same.count(), 1, "{}", remedy.id);
        }
    }

    #[test]
    fn a_flag_counts_as_missing_only_if_flags_were_read() {
        let lacks = |flags: Option<&str>| {
            let facts = Facts { flags: flags.map(|name| [name.to_owned()].into()), ..Facts::default() };
            Need::Flag("UseG1GC").check(&facts).err()
        };
        assert_eq!(lacks(None), None);
        assert_eq!(lacks(Some("UseG1GC")), None);
        assert_eq!(lacks(Some("UseZGC")), Some(NotOffered::NoFlag("UseG1GC")));
    }
}
