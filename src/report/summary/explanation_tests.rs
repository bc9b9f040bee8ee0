//! Code that holds memory, in words.

use super::*;
use crate::record::{AccountRecord, HeldClassRecord, HeldHeapRecord, Mark, OwnerRecord};
use crate::report::page::Page;
use crate::report::terminal::render_within;

const MIB: u64 = 1 << 20;

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
    let owner = OwnerRecord { name: "direct".to_owned(), rss_bytes: 131 * MIB, ..OwnerRecord::default() };
    let account = AccountRecord { owners: vec![owner], ..AccountRecord::default() };
    let loaded = Mark { name: "loaded".to_owned(), account: Some(account), ..Mark::default() };
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
fn the_heaviest_comes_first_with_its_code_and_what_a_collection_frees() {
    let sites = vec![
        site("direct memory", "Catalog.main(Catalog.java:45)", [128, 128, 128]),
        site("zlib", "Responses.answer(Responses.java:12)", [60, 0, 61]),
        site("C2 compiler", "Rules.evaluate(Rules.java)", [0, 0, 300]),
        site("zlib", "Small.tool(Small.java:1)", [0, 0, 0]),
    ];
    let trial = explained(sites, vec![holder("java.io.DeleteOnExitHook.files", 26 * MIB)]);
    insta::assert_snapshot!(text(&trial, Depth::default()));
    insta::assert_snapshot!(text(&trial, Depth { whole: true, ..Depth::default() }));
}

#[test]
fn what_is_missing_is_said_with_its_reason() {
    let mut trial = explained(Vec::new(), Vec::new());
    let missing = "No native memory by code: no profiler is here (mvn ...)".to_owned();
    trial.explanation.as_mut().unwrap().missing.push(missing);
    insta::assert_snapshot!(text(&trial, Depth::default()));
    assert_eq!(of_trial(&Trial::new("app", 0, 0), Depth::default()), None);
}

#[test]
fn a_difference_is_told_by_the_code_behind_it() {
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
