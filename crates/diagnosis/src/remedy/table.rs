//! The table of remedies, and the conditions under which each is considered at all.

use super::offers::Level;
use super::{Facts, NotOffered, Offer, changes, cures, heap, others};
use crate::owner::Owner;
use crate::record::PriceClass;

/// Remedies of which one excludes the others: levels of one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// How much the heap may hold.
    Heap,
    /// The memory that malloc keeps.
    Malloc,
    /// The memory that the heap gives back.
    HeapReturn,
    /// How much direct memory there may be.
    Direct,
    /// The buffers that each thread keeps for its I/O.
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
    /// The size of G1's regions.
    Regions,
    /// The share of memory that the heap may take.
    HeapShare,
    /// The methods that may be compiled, and the memory of a compilation.
    Compilation,
    /// Collections that the program or the JDK asks for.
    ExplicitCollections,
    /// Native Memory Tracking.
    Tracking,
    /// Agents.
    Agents,
    /// A remedy that a user named, by its index; each is a group of its own.
    Own(usize),
}

/// A row of the table.
pub struct Remedy {
    /// Names it in options, records and documents.
    pub id: &'static str,
    /// The setting whose level it is.
    pub group: Group,
    /// Its effect, in plain words.
    pub what: &'static str,
    /// The owners of the pages that it moves.
    pub owners: &'static [Owner],
    /// The cost that it may have.
    pub price: PriceClass,
    /// Its place among the levels of its group in the first bundle, the highest that is offered; 0 where it is tried
    /// alone.
    pub rank: u8,
    /// The share of RSS that its owners must hold before it is worth a trial, 0–1.
    pub share_min: f64,
    /// The measurement of its effect: where, and by whom.
    pub source: &'static str,
    /// The known objections to it; empty if there are none.
    pub against: &'static str,
    /// Conditions that must hold before the remedy is considered, in the order in which they are checked.
    pub(super) needs: &'static [Need],
    /// The changes that it would make here.
    pub(super) offering: Offering,
}

/// The function that returns what a remedy would change here, or why it is not tried.
#[derive(Clone, Copy)]
pub(super) enum Offering {
    /// One set of changes.
    One(fn(&Facts) -> Result<Offer, NotOffered>),
    /// A ceiling whose value is searched: its levels, the loosest first.
    Levels(fn(&Facts) -> Result<Vec<Level>, NotOffered>),
}

/// A condition of a remedy.
#[derive(Debug, Clone, Copy)]
pub(super) enum Need {
    /// The user set none of these flags, options and variables.
    Unset(&'static [&'static str]),
    /// The JVM has this flag, or its flags are not known. Records of trials keep it ([`crate::flags_kept`]).
    Flag(&'static str),
    /// The C allocator is glibc's, or is not known.
    Glibc,
    /// Each trial was warm, or none tells: a young JVM hides the price.
    Warm,
}

impl Need {
    /// # Errors
    /// Why this subject does not meet it.
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
/// The JVM itself is asked: updates of 17 and 21 got it later.
const TRIM: Need = Flag("TrimNativeHeapInterval");
/// Both thresholds, which also ends that glibc moves them (mallopt(3), `M_MMAP_THRESHOLD`).
const THRESHOLDS: [&str; 2] = ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"];

/// All remedies, in the order in which they are shown.
pub const TABLE: &[Remedy] = &[
    Remedy {
        source: "measured (docs/tune.md); an unbounded heap may take a quarter of the machine (JDK 11-25)",
        against: "too small: collections take CPU, then OutOfMemoryError under a load that was not tried",
        needs: &[HEAP_UNSET],
        ..row("heap.max", "a heap ceiling, found by a search", Offering::Levels(heap::ceilings))
    },
    Remedy {
        rank: 1,
        source: "bigbluebutton PR 25309: RSS -63 MB with 2 arenas; here: Netty with bodies of 20 MB 632 to 192 MB",
        against: "threads wait for each other in native code that allocates much (hpcc 9441)",
        needs: &[ARENAS_UNSET, Glibc],
        ..malloc("malloc.arenas", "one arena of malloc for all threads", |facts| {
            others::retained(facts, [changes::one_arena()])
        })
    },
    Remedy {
        rank: 2,
        source: "JDK-8293114 (hotspot-dev 2021-08: petclinic 649 to 471 MB); here a trim returns 76-87 % of the row",
        against: "each trim holds the locks of malloc's arenas for a moment",
        needs: &[TRIM_UNSET, TRIM, Glibc],
        ..malloc("malloc.trim", "the JVM trims malloc's heaps every 2 s", |facts| {
            others::retained(facts, [changes::trim_often(facts.release)])
        })
    },
    Remedy {
        rank: 3,
        source: "as malloc.arenas and malloc.trim",
        against: "as malloc.arenas and malloc.trim",
        needs: &[ARENAS_UNSET, Glibc, TRIM_UNSET, TRIM],
        ..malloc("malloc.arenas+trim", "one arena, trimmed every 2 s", |facts| {
            others::retained(facts, [changes::one_arena(), changes::trim_often(facts.release)])
        })
    },
    Remedy {
        price: Cpu,
        source: "mallopt(3); here: Netty 636 to 158 MB, growth of a server with Deflater halved",
        against: "a mapping and its page faults for each large allocation; beside one arena worse (concord 319)",
        needs: &[THRESHOLDS_UNSET, Glibc],
        ..malloc("malloc.thresholds", "large chunks are mapped alone and given back", |facts| {
            others::retained(facts, [changes::thresholds(THRESHOLDS)])
        })
    },
    Remedy {
        price: Cpu,
        source: "as malloc.thresholds and malloc.trim",
        against: "as malloc.thresholds and malloc.trim",
        needs: &[THRESHOLDS_UNSET, Glibc, TRIM_UNSET, TRIM],
        ..malloc("malloc.thresholds+trim", "the same, trimmed every 2 s", |facts| {
            others::retained(facts, [changes::thresholds(THRESHOLDS), changes::trim_often(facts.release)])
        })
    },
    Remedy {
        price: Cpu,
        share_min: 0.1,
        owners: ALLOCATOR,
        source: "monitee-agent 272: 603 to 499 MB; here on a server with Deflater 1.72 times as much",
        against: "the library must be in the image; uncovered faults of HotSpot (jemalloc 1919)",
        needs: &[Unset(&["LD_PRELOAD"]), Glibc],
        ..malloc("malloc.jemalloc", "jemalloc in place of glibc's malloc", |facts| others::preload(facts, "jemalloc"))
    },
    Remedy {
        price: Cpu,
        share_min: 0.1,
        owners: ALLOCATOR,
        source: "here on a server with Deflater 1.21 times as much",
        against: "the library must be in the image; what it frees stays resident by default (mimalloc 776)",
        needs: &[Unset(&["LD_PRELOAD"]), Glibc],
        ..malloc("malloc.mimalloc", "mimalloc in place of glibc's malloc", |facts| others::preload(facts, "mimalloc"))
    },
    Remedy {
        group: Group::HeapReturn,
        source: "man java of JDK 25 (-XX:MinHeapFreeRatio); Red Hat's footprint options",
        against: "exactly such options took services down under spikes (quarkus 39084): try them with one",
        needs: &[Unset(&["MinHeapFreeRatio", "MaxHeapFreeRatio", "-Xms", "InitialHeapSize"])],
        ..heap("heap.ratios", "the heap shrinks to 20 % free and grows from 10 %", heap::ratios)
    },
    Remedy {
        group: Group::HeapReturn,
        source: "JEP 346 (JDK 12); vcell 1899: one full GC took 1,934 to 1,032 MiB",
        against: "any young collection resets its timer (JDK-8317755): it acts at rest only",
        needs: &[Unset(&["G1PeriodicGCInterval"])],
        ..heap("heap.periodic", "G1 collects and gives back when nothing was collected for long", heap::periodic)
    },
    Remedy {
        group: Group::Direct,
        owners: heap::DIRECT,
        source: "measured (docs/tune.md): buffers that only a collection frees wait for it below this ceiling",
        against: "too small: OutOfMemoryError: Direct buffer memory",
        needs: &[Unset(&["MaxDirectMemorySize"])],
        ..row("direct.max", "a ceiling of direct memory, found by a search", Offering::Levels(heap::direct_ceilings))
    },
    Remedy {
        group: Group::BufferCache,
        owners: heap::DIRECT,
        source: "linkerd 1858, ehcache3 2868: threads times their largest write",
        against: "larger I/O from heap buffers allocates each time",
        needs: &[Unset(&["-Djdk.nio.maxCachedBufferSize"])],
        ..heap("nio.cache", "threads keep no direct buffer above 256 KiB", others::buffer_cache)
    },
    Remedy {
        group: Group::Netty,
        owners: heap::DIRECT,
        source: "netty 9768: 7.5 against 37.7 MiB of chunks, and regressions the other way (15850, 15206)",
        against: "rate and latency of servers with much I/O",
        needs: &[Unset(&["-Dio.netty.allocator.type"])],
        ..heap("netty.pooled", "Netty's pooled allocator", |facts| others::netty(facts, "type=pooled"))
    },
    Remedy {
        group: Group::Netty,
        owners: heap::DIRECT,
        source: "netty 9768",
        against: "each buffer is allocated and freed: CPU, rate",
        needs: &[Unset(&["-Dio.netty.allocator.type"])],
        ..heap("netty.unpooled", "Netty without pools", |facts| others::netty(facts, "type=unpooled"))
    },
    Remedy {
        group: Group::Netty,
        owners: heap::DIRECT,
        source: "io.netty.allocator.maxOrder: chunks of 64 KiB in place of 4 or 16 MiB",
        against: "buffers above 64 KiB are not pooled",
        needs: &[Unset(&["-Dio.netty.allocator.maxOrder"])],
        ..heap("netty.small_chunks", "Netty's pools in chunks of 64 KiB", |facts| others::netty(facts, "maxOrder=3"))
    },
    Remedy {
        group: Group::Collector,
        source: "JDK-8210708, JDK-8017163: G1's tables by release",
        against: "pauses grow with what lives; on two CPUs leaving Serial gave 36 % more rate (tmdevlab)",
        needs: &[Unset(others::COLLECTORS)],
        ..heap("gc.serial", "the Serial collector, which has next to no tables", others::serial)
    },
    Remedy {
        group: Group::Compiler,
        owners: COMPILER,
        source: "measured: 74.7 to 44.0 MB with others, at 0.78 of the rate and 1.29 of the CPU time",
        against: "steady CPU time of all that is computed",
        needs: &[Unset(&["TieredStopAtLevel", "TieredCompilation", "CompilationMode", "UseJVMCICompiler"]), Warm],
        ..heap("compiler.c1", "only the first compiler", others::first_compiler)
    },
    Remedy {
        group: Group::Headers,
        source: "JEP 519: 22 % less heap in SPECjbb2015; here none resolved on a small server",
        against: "JDK-8380060: silent corruption of byte arrays before JDK 27",
        needs: &[Flag("UseCompactObjectHeaders"), Unset(&["UseCompactObjectHeaders"])],
        ..heap("headers.compact", "object headers of 8 bytes", others::compact_headers)
    },
    Remedy {
        group: Group::Classes,
        owners: CLASSES,
        price: Program,
        source: "JEP 350; here 8 to 10 MB at start and none resolved under load",
        against: "a file that must fit JDK, class path and collector; else it is silently not used",
        needs: &[CLASSES_UNSET, Flag("ArchiveClassesAtExit"), Warm],
        ..heap("cds.app", "an archive of the application's classes, from a training run", others::class_archive)
    },
    Remedy {
        group: Group::Classes,
        owners: CLASSES,
        price: Program,
        source: "JEP 483, 514, 515 (one training run: JDK 25)",
        against: "as cds.app; the end of the training run takes longer, by seconds",
        needs: &[CLASSES_UNSET, Flag("AOTCacheOutput"), Warm],
        ..heap("aot.cache", "a cache of linked classes and profiles, from a training run", others::aot_cache)
    },
    Remedy {
        source: "native_held_by_garbage; here: 1,200 Deflaters that were never ended, 275 MiB, went with a collection",
        against: "a collection each few seconds, and what survives by chance moves to the old generation",
        needs: &[YOUNG_UNSET],
        ..young("cure.young", "a young generation that fills every 2 s or so", |facts| cures::young(facts, 2))
    },
    Remedy {
        source: "as cure.young",
        against: "as cure.young, sooner",
        needs: &[YOUNG_UNSET],
        ..young("cure.young.half", "half of that young generation", |facts| cures::young(facts, 1))
    },
    Remedy {
        source: "as cure.young",
        against: "as cure.young, later",
        needs: &[YOUNG_UNSET, Warm],
        ..young("cure.young.double", "twice that young generation", |facts| cures::young(facts, 4))
    },
    Remedy {
        group: Group::HeapReturn,
        source: "native_held_by_garbage; seichi_infra 5489: native memory flat",
        against: "as heap.periodic: only while nothing else collects",
        needs: &[Unset(&["G1PeriodicGCInterval"])],
        ..young("cure.periodic", "G1 collects where nothing was collected for 2 s", |facts| {
            cures::proposed(facts, "native_held_by_garbage", "-XX:G1PeriodicGCInterval")
        })
    },
    Remedy {
        group: Group::Regions,
        source: "humongous_tails; measured: 160 arrays of 1 MiB and 16 bytes take 320 MiB",
        against: "without a lower ceiling of the heap next to nothing; fewer regions to choose among",
        needs: &[Unset(&["G1HeapRegionSize"])],
        ..heap("cure.regions", "regions that large objects fill, and a lower heap ceiling", cures::regions)
    },
    Remedy {
        group: Group::HeapShare,
        source: "heap_share_unheeded; measured: 75 % of 220 MiB gave a heap of 110 MiB",
        against: "as heap.max, where the share is small",
        needs: &[Unset(&["MinRAMPercentage"])],
        ..heap("cure.heap_share", "the share of memory that MaxRAMPercentage asked for in vain", cures::heap_share)
    },
    Remedy {
        source: "compiler_peak; here a peak of 488 MiB became 62",
        against: "the method is interpreted: CPU time of all that calls it",
        ..compilation("cure.exclude", "the method of the largest compilation is not compiled", |facts| {
            cures::proposed(facts, "compiler_peak", "-XX:CompileCommand=exclude")
        })
    },
    Remedy {
        source: "compiler_peak; openjdk/jdk 16220 (JDK 23)",
        against: "methods that need more are left to the first compiler",
        ..compilation("cure.compile_memory", "no compilation takes more than 64 MiB", |facts| {
            cures::proposed(facts, "compiler_peak", "-XX:CompileCommand=MemLimit")
        })
    },
    Remedy {
        group: Group::ExplicitCollections,
        owners: heap::DIRECT,
        source: "direct_memory_at_ceiling; measured: 128 MiB of garbage, and every request failed",
        against: "System.gc() collects again, whoever calls it",
        needs: &[Unset(&["DisableExplicitGC"])],
        ..heap("cure.explicit_gc", "the JDK may collect where direct memory is full", |facts| {
            cures::proposed(facts, "direct_memory_at_ceiling", "-XX:-DisableExplicitGC")
        })
    },
    Remedy {
        group: Group::Direct,
        owners: heap::DIRECT,
        source: "direct_memory_at_ceiling",
        against: "it saves nothing: it ends failures",
        needs: &[Unset(&["MaxDirectMemorySize"])],
        ..heap("cure.direct_ceiling", "a ceiling of direct memory above what is alive", cures::direct_ceiling)
    },
    Remedy {
        group: Group::Tracking,
        owners: MALLOC,
        source: "observers_on; measured (docs/method.md): 0.6 to 5 MB",
        against: "the JVM no longer reports its native memory by category",
        needs: &[Unset(&["NativeMemoryTracking"])],
        ..heap("cure.nmt", "no Native Memory Tracking", |facts| {
            cures::proposed(facts, "observers_on", "-XX:NativeMemoryTracking")
        })
    },
    Remedy {
        group: Group::Agents,
        owners: AGENT,
        source: "observers_on; the cost of your agent is not measured",
        against: "you lose what the agent reports",
        needs: &[Unset(cures::AGENTS)],
        ..heap("cure.agents", "the server without its agents", cures::agents)
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

/// Whether only a warm JVM shows the price of the remedy with this id.
pub fn needs_warmth(id: &str) -> bool {
    TABLE.iter().any(|remedy| remedy.id == id && remedy.needs.iter().any(|need| matches!(need, Warm)))
}

/// The flags that remedies need.
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
    fn every_remedy_has_a_name_of_its_own_its_evidence_and_its_owners() {
        for remedy in TABLE {
            assert!(!remedy.source.is_empty() && !remedy.owners.is_empty(), "{}", remedy.id);
            assert_eq!(TABLE.iter().filter(|other| other.id == remedy.id).count(), 1, "{}", remedy.id);
        }
    }

    #[test]
    fn levels_of_a_group_that_go_into_the_bundle_have_an_order() {
        for remedy in TABLE.iter().filter(|remedy| remedy.rank > 0) {
            let same = TABLE.iter().filter(|of| of.group == remedy.group && of.rank == remedy.rank);
            assert_eq!(same.count(), 1, "{}", remedy.id);
        }
    }

    #[test]
    fn a_flag_is_lacked_only_where_the_flags_were_read() {
        let lacks = |flags: Option<&str>| {
            let facts = Facts { flags: flags.map(|name| [name.to_owned()].into()), ..Facts::default() };
            Need::Flag("UseG1GC").check(&facts).err()
        };
        assert_eq!(lacks(None), None);
        assert_eq!(lacks(Some("UseG1GC")), None);
        assert_eq!(lacks(Some("UseZGC")), Some(NotOffered::NoFlag("UseG1GC")));
    }
}
