//! Code that holds memory, in words.

use super::*;
use crate::export::samples;
use crate::page::Page;
use crate::record::{DetailRecord, FlameRecord, HeldClassRecord, HeldHeapRecord, LoaderSum, OwnerRecord};
use crate::terminal::render_within;
use crate::units::MIB;

fn site(kind: &str, site: &str, [loaded, kept, peak]: [u64; 3]) -> SiteRecord {
    let frames = [site, "FileChannelImpl.read(FileChannelImpl.java:231)", "IOUtil.read(IOUtil.java:284)"];
    SiteRecord {
        owner: "direct".to_owned(),
        kind: kind.to_owned(),
        site: site.to_owned(),
        frames: frames.map(str::to_owned).to_vec(),
        loaded_bytes: loaded * MIB,
        kept_bytes: kept * MIB,
        peak_bytes: peak * MIB,
        allocations: 32,
        made: 0,
    }
}

fn holder(name: &str, bytes: u64) -> HolderRecord {
    HolderRecord {
        name: name.to_owned(),
        path: vec![name.to_owned(), "LinkedHashSet.map".to_owned()],
        retained_bytes: bytes,
        objects: 270_004,
        classes: vec![HeldClassRecord { name: "java.lang.String".to_owned(), instances: 90_000, bytes: bytes / 4 }],
    }
}

fn explained(sites: Vec<SiteRecord>, holders: Vec<HolderRecord>) -> Trial {
    let covered_bytes = holders.iter().map(|holder| holder.retained_bytes).sum();
    let heap = HeldHeapRecord { live_bytes: 40 * MIB, objects: 500_000, covered_bytes, holders };
    let account = Some(samples::account(&[("direct", 131 * MIB)]));
    let loaded = Mark { name: "loaded".to_owned(), account, ..Mark::default() };
    let explanation = ExplanationRecord {
        profiler: Some("async-profiler 4.1".to_owned()),
        sites,
        heap: (heap.covered_bytes > 0).then_some(heap),
        ..ExplanationRecord::default()
    };
    Trial { marks: vec![loaded], explanation: Some(explanation), ..Trial::new("app", 0, 0) }
}

fn text(trial: &Trial, depth: Depth) -> String {
    let section = of_trial(trial, depth).unwrap();
    render_within(&Page::new("", [section]).sections.into_iter().map(Part::Section).collect::<Vec<_>>(), 100)
}

#[test]
fn the_largest_owner_comes_first_with_its_code_and_garbage() {
    let compiled = site("C2 compiler", "Rules.evaluate(Rules.java)", [0, 0, 300]);
    let sites = vec![
        site("direct memory", "Catalog.main(Catalog.java:45)", [128, 128, 128]),
        site("zlib", "Responses.answer(Responses.java:12)", [60, 0, 61]),
        SiteRecord { loaded_bytes: MIB / 50, ..compiled },
        site("zlib", "Small.tool(Small.java:1)", [0, 0, 0]),
    ];
    let trial = explained(sites, vec![holder("java.io.DeleteOnExitHook.files", 26 * MIB)]);
    let shown = text(&trial, Depth::default());
    assert!(shown.contains("  C2 compiler: 300.0 MiB at its peak"), "{shown}");
    insta::assert_snapshot!(shown);
    insta::assert_snapshot!(text(&trial, Depth { whole: true, ..Depth::default() }));
}

#[test]
fn threads_and_class_loaders_are_shown_with_stacks_and_metaspace() {
    let made = |owner: &str, line: &str, loaded_bytes: u64, made: u64| SiteRecord {
        owner: owner.to_owned(),
        loaded_bytes,
        made,
        ..site("", line, [0, 0, 0])
    };
    let mut trial = explained(
        vec![
            made("thread_stacks", "Pool.grow(Pool.java:31)", MIB / 2, 150),
            made("metaspace", "Rules.compile(Rules.java:7)", 6 * MIB, 4800),
            made("metaspace", "App.main(App.java:1)", MIB, 0),
            made("metaspace", "java.lang.ClassLoader.defineClass1(ClassLoader.java)", MIB, 0),
            made("thread_stacks", "threads", MIB / 4, 0),
        ],
        Vec::new(),
    );
    let detail = DetailRecord { kind: "thread".to_owned(), count: 200, ..DetailRecord::default() };
    let row = |name: &str, mib: u64| OwnerRecord { detail: vec![detail.clone()], ..samples::owner(name, mib * MIB) };
    let account = trial.marks[0].account.as_mut().unwrap();
    account.owners = vec![row("thread_stacks", 20), row("metaspace", 60)];
    let text = text(&trial, Depth::default());
    insta::assert_snapshot!(text);
    // Three quarters of class-loading memory, and of all threads.
    assert!(!text.contains("defineClass1"), "a JDK method that loads all classes is not named: {text}");
    assert!(text.contains("about 45.0 of 60.0 MiB") && text.contains("about 15.0 of 20.0 MiB"), "{text}");
}

#[test]
fn flame_graphs_follow_the_tables_collapsed_and_only_on_a_page() {
    let mut trial = explained(vec![site("zlib", "A.a(A.java:1)", [2, 2, 2])], vec![holder("Cache.ALL", MIB)]);
    let without = text(&trial, Depth { whole: true, ..Depth::default() });
    let flame = |kind: &str| FlameRecord { kind: kind.to_owned(), bytes: MIB, ..FlameRecord::default() };
    trial.explanation.as_mut().unwrap().flames = vec![flame("zlib"), flame("GC")];
    let parts = |depth| of_trial(&trial, depth).unwrap().parts;
    let is_graph = |part: &Part| matches!(part, Part::Section(of) if matches!(of.parts[0], Part::Figure(_)));
    let whole = parts(Depth { whole: true, ..Depth::default() });
    let folds: Vec<Fold> = whole
        .iter()
        .filter_map(|part| match part {
            Part::Section(of) => Some(of.fold),
            _ => None,
        })
        .collect();
    assert_eq!(folds, [Fold::Closed; 4], "both tables and both graphs are collapsed");
    assert_eq!(whole.iter().rev().take_while(|part| is_graph(part)).count(), 2);
    assert!(!parts(Depth::default()).iter().any(is_graph));
    assert_eq!(text(&trial, Depth { whole: true, ..Depth::default() }), without, "terminals do not print flame graphs");
}

#[test]
fn missing_parts_of_an_explanation_are_explained() {
    let mut trial = explained(Vec::new(), Vec::new());
    let missing = "No native memory by code: no profiler is here (mvn ...)".to_owned();
    trial.explanation.as_mut().unwrap().missing.push(missing);
    insta::assert_snapshot!(text(&trial, Depth::default()));
    assert_eq!(of_trial(&Trial::new("app", 0, 0), Depth::default()), None);
}

#[test]
fn a_difference_is_attributed_to_code() {
    let [before, after] = [10, 18].map(|bytes| {
        let sites = vec![
            site("direct memory", "Orders.export(Orders.java:88)", [bytes, bytes, bytes]),
            site("zlib", "Responses.answer(Responses.java:12)", [5, 5, 5]),
        ];
        explained(sites, vec![holder("Cache.ALL", (40 - bytes) * MIB)]).explanation.unwrap()
    });
    let told = differences(&before, &after);
    let told: Vec<&str> = told.iter().map(|(change, _)| change.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.contains(&"+8.0 MiB direct memory, allocated at Orders.export(Orders.java:88)"), "{told:?}");
    assert!(told.contains(&"-8.0 MiB Java heap, kept by Cache.ALL"), "{told:?}");
}

fn record_of(finding: Finding, text: &str) -> FindingRecord {
    let (text, next) = (text.to_owned(), String::new());
    FindingRecord { finding, text, next, of: None, costs_bytes: 0, gain_bytes_max: None, remedies: Vec::new() }
}

#[test]
fn a_finding_names_its_code() {
    let of = |owner: &str, kind: &str, line: &str, [loaded, kept]: [u64; 2], made: u64| SiteRecord {
        owner: owner.to_owned(),
        made,
        ..site(kind, line, [loaded, kept, loaded])
    };
    let sites = vec![
        of("malloc.direct", "direct memory", "Catalog.read(Catalog.java:28)", [128, 128], 0),
        of("malloc.live", "zlib", "Responses.answer(Responses.java:12)", [60, 0], 0),
        of("malloc.live", "native library libduckdb_java134.so", "Tables.open(Tables.java:9)", [2, 2], 0),
        of("metaspace", "class loading", "Rules.compile(Rules.java:7)", [3, 3], 4800),
        of("metaspace", "class loading", "App.main(App.java:1)", [9, 9], 0),
        of("malloc.live", "C2 compiler", "C2 compiler", [300, 300], 0),
    ];
    let found = explained(sites, Vec::new()).explanation.unwrap();
    let code = |finding| code_behind(&record_of(finding, ""), &found);
    let holder = crate::record::DirectHolder::Program;
    let direct = Finding::DirectMemoryLives { direct_bytes: 0, buffers: 1, left_by_gc_bytes: None, holder };
    assert_eq!(code(direct).unwrap(), "allocated at Catalog.read(Catalog.java:28) by FileChannelImpl.read");
    let garbage = Finding::NativeHeldByGarbage { freed_bytes: 0, owners: Vec::new(), collections: None };
    assert_eq!(
        code(garbage).unwrap(),
        "allocated at Responses.answer(Responses.java:12) by FileChannelImpl.read",
        "the code that allocated the freed memory is named"
    );
    let library = |name: &str| Finding::LibraryMemory { bytes: 0, library: name.to_owned() };
    let duckdb = code(library("libduckdb_java.so (jemalloc)"));
    assert_eq!(duckdb.unwrap(), "called at Tables.open(Tables.java:9) by FileChannelImpl.read");
    assert_eq!(code(library("librocksdbjni.so")), None);
    let loaders = Finding::LoadersMany { loader: "L".to_owned(), now: LoaderSum::default(), came_last: None };
    assert_eq!(
        code(loaders).unwrap(),
        "created at Rules.compile(Rules.java:7) by FileChannelImpl.read",
        "the code that created the loaders is named"
    );
}

#[test]
fn a_finding_names_its_holder_and_its_creator() {
    let pages = HolderRecord {
        path: ["thread main", "Web.handler", "Pages.all", "AtomicReferenceArray.array"].map(str::to_owned).to_vec(),
        ..holder("thread main", 160 * MIB)
    };
    let holders = vec![pages, holder("Cache.ALL", 26 * MIB)];
    let mut found = explained(Vec::new(), holders).explanation.unwrap();
    let call = |purpose, site: &str, calls| CallRecord { purpose, site: site.to_owned(), calls, frames: Vec::new() };
    let bytes = |class: &str, site: &str, mib: u64| AllocatedRecord {
        class: class.to_owned(),
        site: site.to_owned(),
        bytes: mib * MIB,
        ..AllocatedRecord::default()
    };
    found.objects = vec![bytes("int[]", "Tables.of", 90), bytes("java.lang.String", "Pages.load(Pages.java:21)", 30)];
    found.calls = vec![
        call(CallPurpose::OpensFile, "Uploads.spool(Uploads.java:24)", 2000),
        call(CallPurpose::OpensFile, "Log.open(Log.java:3)", 1),
        call(CallPurpose::StartsProcess, "Ocr.read(Ocr.java:18)", 4),
    ];
    let code = |finding, text| code_behind(&record_of(finding, text), &found);
    let tails = Finding::HumongousTails { objects: 1, object_bytes: 1, tail_bytes: 1, region_bytes: 1 };
    let allocated = "allocated at Pages.load(Pages.java:21)";
    assert_eq!(
        code(tails.clone(), "").unwrap(),
        format!("kept by Pages.all > AtomicReferenceArray.array, {allocated}")
    );
    assert_eq!(
        code(tails, "thread main keeps it").unwrap(),
        format!("160.0 MiB, including everything it keeps alive, {allocated}")
    );
    let children = Finding::ChildProcesses { bytes: 0, programs: Vec::new() };
    assert_eq!(code(children, "").unwrap(), "started at Ocr.read(Ocr.java:18) (4 calls)");
    let files = Finding::FilesInMemory { bytes: 0, places: Vec::new() };
    assert_eq!(code(files, "").unwrap(), "opened at Uploads.spool(Uploads.java:24) (2,000 of 2,001 calls)");
    assert_eq!(code(Finding::ObserversOn { observers: Vec::new() }, ""), None);
}

#[test]
fn the_live_heap_is_judged_by_its_collections() {
    let of = |collections: u32, first: u64, least: u64, most: u64, slope: Option<f64>| LiveGrowthRecord {
        load: "GET /orders".to_owned(),
        collections,
        needed: 21,
        seconds: 58.4,
        requests: 11_600,
        live_bytes_first: first,
        live_bytes_last: most,
        live_bytes_min: least,
        live_bytes_max: most,
        bytes_per_request: slope,
        bytes_per_request_low: slope.map(|slope| slope - 9.0),
        bytes_per_request_high: slope.map(|slope| slope + 9.0),
    };
    let cases = [
        (of(24, 20 * MIB, 30 * MIB, 31 * MIB, Some(1_000.0)), false),
        (of(9, 20 * MIB, 20 * MIB, 20 * MIB, None), false),
        (of(24, 2 * MIB, 2 * MIB, 2 * MIB, None), false),
        (of(24, 20 * MIB, 19 * MIB, 20 * MIB + MIB / 2, None), true),
        (of(24, 3 * MIB, 28 * MIB, 29 * MIB, None), false),
        (of(24, 3 * MIB, 15 * MIB, 29 * MIB, None), false),
    ];
    insta::assert_snapshot!(cases.map(|(found, warmed)| growth(&found, warmed)).join("\n"));
}
