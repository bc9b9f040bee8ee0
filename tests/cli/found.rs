//! Every finding there is, with all that one can say.

use loadline::record::{
    CdsCause, Ceiling, Finding, FindingRecord, GrowthSpan, IdleCause, IdleFlag, IdlePool, LiveBy, LoaderSpan,
    LoaderSum, ObserverOn, OfTrials, UnseenCause,
};
use loadline::scenario::{Change, Gc};
use loadline::units::Bytes;

const MIB: u64 = 1 << 20;

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
    growing().into_iter().chain(weighing()).chain(coming()).map(record).collect()
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
