//! Every finding there is, with all that one can say.

use loadline::record::{
    AllocatedRecord, BesideRecord, CachedFileRecord, CallPurpose, CallRecord, CdsCause, Ceiling, CeilingCause,
    ChargeRecord, ChildProgram, CompilationRecord, DentriesRecord, DirectHolder, DiskFileRecord, ExplanationRecord,
    Finding, FindingRecord, FlameFrameRecord, FlameMoment, FlameRecord, FlameStackRecord, FrameCode, GrowthSpan,
    HeldClassRecord, HeldHeapRecord, HolderRecord, HumongousRecord, IdleCause, IdleFlag, IdlePool, LiveBy,
    LiveClassRecord, LiveGrowthRecord, LoaderSpan, LoaderSum, MemoryFilesRecord, NativeHolder, NettyChunksRecord,
    ObserverOn, OfTrials, OwnerFreed, ProcessRecord, RuledOutRecord, SiteRecord, SlabRecord, StaticCollectionRecord,
    ThreadBuffersRecord, ThreadValuesRecord, UnseenCause,
};
use loadline::scenario::{Change, Gc};
use loadline::units::Bytes;
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;

/// All that a second start under a profiler can show.
pub(crate) fn explanation() -> ExplanationRecord {
    let site = SiteRecord {
        owner: "malloc.direct".to_owned(),
        kind: "direct memory".to_owned(),
        site: "Orders.export(Orders.java:88)".to_owned(),
        frames: vec!["Orders.export(Orders.java:88)".to_owned()],
        loaded_bytes: 8 * MIB,
        kept_bytes: 8 * MIB,
        peak_bytes: 9 * MIB,
        allocations: 2,
        made: 0,
    };
    let class = HeldClassRecord { name: "java.lang.String".to_owned(), instances: 90_000, bytes: MIB };
    let holder = HolderRecord {
        name: "java.io.DeleteOnExitHook.files".to_owned(),
        path: vec!["java.util.HashSet.map".to_owned()],
        retained_bytes: 26 * MIB,
        objects: 450_003,
        classes: vec![class],
    };
    let flame = FlameRecord {
        kind: "direct memory".to_owned(),
        at: FlameMoment::Loaded,
        bytes: 9 * MIB,
        left_out_bytes: MIB,
        frames: vec![FlameFrameRecord { name: site.site.clone(), code: FrameCode::Application }],
        stacks: vec![FlameStackRecord { outer_left_out: 3, frames: vec![0], bytes: 8 * MIB }],
    };
    ExplanationRecord {
        live_growth: Some(LiveGrowthRecord {
            collections: 24,
            needed: 21,
            seconds: 30.5,
            requests: 6000,
            live_bytes_first: 20 * MIB,
            live_bytes_last: 27 * MIB,
            live_bytes_min: 24 * MIB,
            live_bytes_max: 27 * MIB,
            bytes_per_request: Some(512.5),
            bytes_per_request_low: Some(480.5),
            bytes_per_request_high: Some(540.5),
        }),
        profiler: Some("libasyncProfiler.so".to_owned()),
        missing: vec!["the recording was cut off".to_owned()],
        sites: vec![site],
        flames: vec![flame],
        heap: Some(HeldHeapRecord {
            live_bytes: 27 * MIB,
            objects: 460_000,
            covered_bytes: 26 * MIB,
            holders: vec![holder],
        }),
        objects: vec![AllocatedRecord {
            class: "byte[]".to_owned(),
            site: "Pages.load(Pages.java:21)".to_owned(),
            frames: vec!["Pages.load(Pages.java:21)".to_owned()],
            samples: 161,
            bytes: 160 * MIB,
        }],
        calls: vec![CallRecord {
            purpose: CallPurpose::StartsProcess,
            site: "Ocr.read(Ocr.java:18)".to_owned(),
            frames: vec![
                "Ocr.read(Ocr.java:18)".to_owned(),
                "ProcessBuilder.start(ProcessBuilder.java:1073)".to_owned(),
            ],
            calls: 4,
        }],
    }
}

/// One of each kind.
pub(crate) fn every() -> Vec<FindingRecord> {
    let record = |finding| FindingRecord {
        finding,
        of: Some(OfTrials { configuration: "serial".to_owned(), trial: 0, trials_alike: 1 }),
        text: "what was seen".to_owned(),
        next: "one thing to do".to_owned(),
        costs_bytes: MIB,
        gain_bytes_max: Some(MIB),
        remedies: vec![
            Change::HeapMax(Bytes::mib(8)),
            Change::Gc(Gc::Serial),
            Change::Env(vec![("MALLOC_ARENA_MAX".to_owned(), "1".to_owned())]),
        ],
    };
    growing().into_iter().chain(causes()).chain(weighing()).chain(coming()).map(record).collect()
}

fn growing() -> Vec<Finding> {
    let sum = LoaderSum { loaders: 412, classes: 412, hidden_classes: 0, taken_bytes: 10 * MIB, used_bytes: 9 * MIB };
    let (from, to) = ("warm".to_owned(), "loaded".to_owned());
    let span = LoaderSpan { from: from.clone(), to: to.clone(), ok: 400, added: sum, ended: LoaderSum::default() };
    let grown = GrowthSpan { from, to, ok: 400, growth_bytes: MIB };
    let loader = "groovy.lang.GroovyClassLoader".to_owned();
    vec![
        Finding::LoadersKeepComing { loader, spans: vec![span], live_after_gc: Some(sum) },
        Finding::MetaspaceKeepsGrowing { spans: vec![grown], kept_by_gc: true },
    ]
}

/// Each cause of its own, with each holder of direct memory.
fn causes() -> Vec<Finding> {
    let sum = LoaderSum { loaders: 4800, classes: 4800, hidden_classes: 0, taken_bytes: MIB, used_bytes: MIB };
    let caches = DirectHolder::ThreadCaches {
        bytes: MIB,
        threads: 2,
        largest_bytes: MIB,
        pool: Some("web-*".to_owned()),
        malloc_keeps_bytes: 1,
    };
    let direct =
        |holder| Finding::DirectMemoryLives { direct_bytes: MIB, buffers: 2, left_by_gc_bytes: Some(MIB), holder };
    let tail = ChildProgram { name: "tail".to_owned(), processes: 4, bytes: MIB };
    vec![
        Finding::NativeHeldByGarbage {
            freed_bytes: MIB,
            owners: vec![OwnerFreed { owner: "malloc.live".to_owned(), bytes: MIB }],
            collections: Some(0),
        },
        direct(caches),
        direct(DirectHolder::Netty { bytes: MIB, chunks: None, rested: false }),
        direct(DirectHolder::Netty { bytes: MIB, chunks: Some(netty_chunks()), rested: true }),
        direct(DirectHolder::Program),
        Finding::LibraryMemory { bytes: MIB, library: "libduck.so".to_owned() },
        Finding::HumongousTails { objects: 1, object_bytes: MIB, tail_bytes: MIB, region_bytes: MIB },
        Finding::LoadersMany { loader: "x.Defining".to_owned(), now: sum, came_last: Some(0) },
        Finding::HeapHeldByStatics { live_bytes: MIB, holders: vec![static_collection()] },
        Finding::CompilerPeak { bytes: MIB, compilation: compilation() },
        Finding::HeapHeldByThreadLocals { live_bytes: MIB, values: thread_values() },
        Finding::VirtualThreadsParked { threads: 9000, stack_bytes: MIB, live_bytes: MIB },
        Finding::FinalizersWait { waiting: 9000, live_bytes: MIB, classes: vec![live_class()] },
        Finding::HeapLives { live_bytes: MIB, classes: vec![live_class()] },
        native(NativeHolder::ForeignArenas { arenas: 200 }),
        native(NativeHolder::Zlib { objects: 200 }),
        native(NativeHolder::Library { name: "librocksdbjni.so".to_owned() }),
        native(NativeHolder::Unknown),
        Finding::MappedFiles { bytes: MIB, files: vec![disk_file()] },
        Finding::ClassesGenerated { loader: "a.AppLoader".to_owned(), classes: 9000, bytes: MIB },
        at_ceiling(CeilingCause::CollectionsDisabled),
        at_ceiling(CeilingCause::Alive),
        at_ceiling(CeilingCause::Unknown),
        Finding::HeapExhausted { error: "java.lang.OutOfMemoryError".to_owned(), max_bytes: Some(MIB) },
        Finding::HeapShareUnheeded { memory_bytes: 4 * MIB, heap_bytes_max: 2 * MIB, asked_bytes: 3 * MIB },
        Finding::ThreadsPileUp { pool: export_pool(), grown: 910 },
        Finding::KernelRemembersNames { kernel_bytes: MIB, names: 9000, missing: 8000 },
        Finding::PageCacheOfFiles { bytes: MIB, files: vec![disk_file()] },
        Finding::ChildProcesses { bytes: MIB, programs: vec![tail] },
        Finding::FilesInMemory { bytes: MIB, places: vec![memory_files()] },
    ]
}

fn native(by: NativeHolder) -> Finding {
    let owners = vec![OwnerFreed { owner: "malloc.live".to_owned(), bytes: MIB }];
    Finding::NativeMemoryLives { bytes: MIB, owners, by }
}

fn at_ceiling(cause: CeilingCause) -> Finding {
    let error = Some("java.lang.OutOfMemoryError: Direct buffer memory".to_owned());
    Finding::DirectMemoryAtCeiling { direct_bytes: MIB, ceiling_bytes: MIB, cause, error }
}

fn export_pool() -> IdlePool {
    IdlePool { name: "export-*".to_owned(), threads: 900, stack_bytes: MIB, cpus: 0.1 }
}

fn thread_values() -> ThreadValuesRecord {
    ThreadValuesRecord { threads: 32, bytes: MIB, class: "[B".to_owned(), largest_bytes: 1 }
}

fn netty_chunks() -> NettyChunksRecord {
    let (package, handed_out_bytes) = ("io.netty".to_owned(), Some(1));
    NettyChunksRecord { package, chunks: 1, held_bytes: MIB, handed_out_bytes, ..NettyChunksRecord::default() }
}

fn live_class() -> LiveClassRecord {
    LiveClassRecord { class: "[B".to_owned(), instances: 9, bytes: MIB }
}

fn disk_file() -> DiskFileRecord {
    DiskFileRecord { path: "/logs/app.log".to_owned(), bytes: MIB }
}

fn static_collection() -> StaticCollectionRecord {
    StaticCollectionRecord {
        class: "java.io.DeleteOnExitHook".to_owned(),
        field: "files".to_owned(),
        collection: "java.util.LinkedHashSet".to_owned(),
        entries: 150_000,
        bytes: MIB,
    }
}

fn memory_files() -> MemoryFilesRecord {
    MemoryFilesRecord { place: "/dev/shm".to_owned(), files: 3, deleted: 1, bytes: MIB }
}

/// A compilation during which RSS grew.
pub(crate) fn compilation() -> CompilationRecord {
    let method = "a.Scores::of".to_owned();
    CompilationRecord { method, tier: 4, at_s: 1.5, seconds: 2.5, rss_growth_bytes: MIB }
}

/// Gives a mark, as a document has it, all the evidence that tells causes.
pub(crate) fn add_evidence(mark: &mut Value) {
    let child = ProcessRecord { pid: 7, name: "tail".to_owned(), rss_bytes: 2, pss_bytes: Some(1) };
    mark["beside"] = json!(BesideRecord {
        children: vec![child],
        files: vec![memory_files()],
        disk_files: vec![disk_file()],
        dentries: Some(DentriesRecord { all: 9, negative: 1 }),
        shared_charge: Some(ChargeRecord {
            version: "v2".to_owned(),
            cached_files: vec![CachedFileRecord::default()],
            machine_slabs: vec![SlabRecord::default()],
            ..ChargeRecord::default()
        }),
    });
    mark["thread_values"] = json!(thread_values());
    mark["live_classes"] = json!([live_class()]);
    mark["thread_buffers"] = json!(ThreadBuffersRecord { threads: 2, buffers: 2, bytes: MIB, largest_bytes: MIB });
    mark["netty_chunks"] = json!(netty_chunks());
    mark["static_collections"] = json!([static_collection()]);
    mark["heap"]["humongous"] =
        json!(HumongousRecord { objects: 1, object_bytes: MIB, tail_bytes: MIB, region_bytes: MIB });
    mark["account"]["malloc"]["compilers_retained_bytes"] = json!(MIB);
    mark["account"]["malloc"]["compilers_live_bytes"] = json!(MIB);
}

fn weighing() -> Vec<Finding> {
    let allocator = || "glibc".to_owned();
    let pool = IdlePool { name: "http-nio-8080-e*".to_owned(), threads: 200, stack_bytes: MIB, cpus: 0.1 };
    let nmt = ObserverOn { what: "NMT".to_owned(), bytes_min: Some(1), bytes_max: Some(MIB) };
    vec![
        Finding::MallocRetained { retained_bytes: MIB, trim_bytes: Some(1), arenas: 4, allocator: allocator() },
        Finding::DirectMemoryWaits {
            direct_bytes: MIB,
            buffers: 3,
            left_by_gc_bytes: Some(1),
            ceiling_bytes: Some(9 * MIB),
            collections: Some(2),
        },
        Finding::NettyChunksFree { held_bytes: MIB, handed_out_bytes: 1, allocator: "Pooled".to_owned() },
        Finding::HeapFree { free_bytes: MIB, committed_bytes: Some(2 * MIB), rested: true },
        Finding::HeapFarAboveLive {
            heap_bytes: 9 * MIB,
            live_bytes: MIB,
            live_by: LiveBy::FullCollection,
            max_bytes: Some(10 * MIB),
        },
        Finding::G1OnSmallHeap { tables_bytes: MIB, heap_bytes: 9 * MIB },
        Finding::CodeLarge { code_bytes: MIB, compiler_bytes: Some(MIB) },
        Finding::ThreadsIdle { pools: vec![pool] },
        Finding::CdsMissing { cause: CdsCause::NotMapped { file: "app.jsa".to_owned() } },
        Finding::ObserversOn { observers: vec![nmt] },
        Finding::HugePages { huge_bytes: 2 * MIB, asked: false },
    ]
}

/// A cause that was ruled out.
pub(crate) fn ruled_out() -> Vec<RuledOutRecord> {
    let of = OfTrials { configuration: "a".to_owned(), trial: 1, trials_alike: 2 };
    vec![RuledOutRecord { kind: "compiler_peak".to_owned(), of: Some(of), text: "It took 1 MiB.".to_owned() }]
}

fn coming() -> Vec<Finding> {
    let ceiling = Ceiling { what: "heap".to_owned(), bytes: 9 * MIB };
    let flag = IdleFlag { option: "-Xmx1g".to_owned(), cause: IdleCause::Overridden, by: "-Xmx2g".to_owned() };
    vec![
        Finding::SerialUnasked { gc_share: 0.1, cpus: Some(1) },
        Finding::CeilingsAboveLimit { limit_bytes: MIB, ceilings_bytes: 9 * MIB, ceilings: vec![ceiling] },
        Finding::LimitNotSeen { limit_bytes: MIB, heap_bytes_max: 9 * MIB, cause: UnseenCause::Unknown },
        Finding::FlagsIdle { flags: vec![flag] },
    ]
}
