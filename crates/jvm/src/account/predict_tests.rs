//! The policies of the collectors, on generated heaps: 1 GiB reserved, in regions of 1 MiB.

use super::super::evidence::Sizing;
use super::*;
use crate::kernel::mapping::Mapping;
use crate::observe::addresses::JvmAddresses;
use crate::observe::smaps::WeighedMapping;
use loadline_base::units::Bytes;

const START: u64 = 1 << 30;
const END: u64 = 2 << 30;

/// A heap with this many MiB committed and used, of which the last collection left `left`.
fn jvm(collector: Collector, committed: u64, used: u64, left: Option<u64>) -> Said {
    let old = match collector {
        Collector::Serial | Collector::Parallel => Some((Bytes(committed * 2 / 3 * MIB), Bytes(683 * MIB))),
        _ => None,
    };
    let (used, committed, capacity_max) = (Bytes(used * MIB), Bytes(committed * MIB), Bytes(1 << 30));
    let heap = HeapInfo { collector, used, committed, capacity_max, old, metaspace: None, class_space: None };
    let region_size = Some(Bytes(MIB));
    let info = JvmAddresses { heap_reserved: Some((START, END)), region_size, ..JvmAddresses::default() };
    let left_by_last_gc = left.map(|mib| mib * MIB);
    Said { info: Some(info), heap: Some(heap), left_by_last_gc, full_collections: Some(1), ..Said::default() }
}

/// Resident pages, in MiB from the bottom of the heap.
fn runs(list: &[(u64, u64)]) -> Vec<Run> {
    let run = |(from, to): &(u64, u64)| Run { start: START + from * MIB, end: START + to * MIB, swapped: false };
    list.iter().map(run).collect()
}

/// A heap that is committed in these ranges, in MiB from its bottom.
fn committed_at(list: &[(u64, u64)]) -> Smaps {
    let mapping = |(from, to): &(u64, u64)| Mapping {
        start: START + from * MIB,
        end: START + to * MIB,
        perms: "rw-p".into(),
        ..Mapping::default()
    };
    let mappings =
        list.iter().map(|part| WeighedMapping { mapping: mapping(part), ..WeighedMapping::default() }).collect();
    let mut smaps = Smaps::default();
    smaps.mappings = mappings;
    smaps
}

/// The same heap in one piece, with the JVM's committed size.
fn in_one_piece(said: &Said) -> Smaps {
    committed_at(&[(0, said.heap.map_or(0, |heap| heap.committed.0 / MIB))])
}

/// Returns the freed MiB, negative if RSS grows, or why they are unknown.
fn predicted(said: &Said, list: &[(u64, u64)]) -> Result<i64, Reason> {
    mebibytes(&gc(said, &in_one_piece(said), &runs(list), 0))
}

fn mebibytes(prediction: &Prediction) -> Result<i64, Reason> {
    let (Some(back), Some(grown)) = (prediction.bytes, prediction.grown) else { return Err(prediction.reason) };
    Ok((Bytes(back).signed() - Bytes(grown).signed()) / Bytes(MIB).signed())
}

#[test]
fn g1_keeps_at_most_its_ratio_free() {
    // 6 MiB is live, so 20 remain; eden is at the top of the committed range.
    let mut said = jvm(Collector::G1, 400, 60, Some(6));
    assert_eq!(predicted(&said, &[(0, 10), (300, 400)]), Ok(100));
    said.sizing = Sizing { heap_min: Some(350 * MIB), ..Sizing::default() };
    assert_eq!(predicted(&said, &[(0, 10), (300, 400)]), Ok(50));
    said.sizing.heap_min = Some(400 * MIB);
    assert_eq!(predicted(&said, &[(0, 10), (300, 400)]), Ok(0));
}

#[test]
fn objects_move_to_untouched_pages() {
    let mut said = jvm(Collector::G1, 64, 20, Some(9));
    said.sizing.heap_min = Some(64 * MIB);
    assert_eq!(predicted(&said, &[(0, 4), (40, 64)]), Ok(-5));
    // Serial's old generation begins where the young one may end, at 341 MiB; Parallel's begins at the bottom.
    let mut serial = jvm(Collector::Serial, 64, 20, Some(9));
    (serial.sizing.heap_min, serial.sizing.new_size) = (Some(64 * MIB), Some(21 * MIB));
    assert_eq!(predicted(&serial, &[(0, 20), (341, 345)]), Ok(-5));
    assert_eq!(predicted(&jvm(Collector::Parallel, 64, 20, Some(9)), &[(0, 12), (683, 690)]), Ok(0));
}

#[test]
fn tables_are_touched_by_the_first_collection_and_shrink_with_the_heap() {
    let mut said = jvm(Collector::G1, 640, 60, Some(6));
    assert_eq!(mebibytes(&gc(&said, &in_one_piece(&said), &runs(&[(0, 10)]), 32 * MIB)), Ok(31));
    (said.full_collections, said.sizing.heap_min) = (Some(0), Some(640 * MIB));
    assert_eq!(mebibytes(&gc(&said, &in_one_piece(&said), &runs(&[(0, 10)]), 32 * MIB)), Ok(-10));
}

#[test]
fn archived_objects_stay_at_the_top() {
    let said = jvm(Collector::G1, 101, 8, Some(4));
    let resident = runs(&[(0, 3), (90, 100), (1023, 1024)]);
    assert_eq!(mebibytes(&gc(&said, &committed_at(&[(0, 100), (1023, 1024)]), &resident, 0)), Ok(10));
}

#[test]
fn a_collection_is_predicted_with_young_regions_far_above_others() {
    // 40 remain: the lower 20, and the lower 20 of the upper 40.
    let mut said = jvm(Collector::G1, 60, 20, Some(6));
    said.sizing.heap_min = Some(40 * MIB);
    let committed = committed_at(&[(0, 20), (900, 940)]);
    assert_eq!(mebibytes(&gc(&said, &committed, &runs(&[(0, 20), (905, 940)]), 0)), Ok(20));
    // If only 2 of the lower 20 are resident, 4 are touched.
    assert_eq!(mebibytes(&gc(&said, &committed, &runs(&[(0, 2), (905, 940)]), 0)), Ok(20 - 4));
}

#[test]
fn a_prediction_needs_a_collection_unless_little_is_used() {
    let open = jvm(Collector::G1, 400, 300, None);
    assert_eq!(predicted(&open, &[(100, 400)]), Err(Reason::NotCollected));
    let small = jvm(Collector::G1, 400, 4, None);
    assert_eq!(predicted(&small, &[(396, 400)]), Ok(2));
    // A twentieth of 80 MiB, plus 1 MiB, moves to the bottom of the old generation; anything more may be data.
    let started = |used| predicted(&jvm(Collector::Parallel, 400, used, None), &[(700, 700 + used)]);
    assert_eq!((started(80), started(81)), (Ok(-5), Err(Reason::NotCollected)));
    let old = jvm(Collector::G1, 400, 300, Some(100));
    assert_eq!(predicted(&old, &[(0, 400)]), Err(Reason::LiveSetOpen));
}

#[test]
fn serial_steps_count_only_after_the_first_collection() {
    let mut said = jvm(Collector::Serial, 600, 20, Some(12));
    said.full_collections = Some(0);
    let resident = [(0, 200), (341, 741)];
    assert_eq!(predicted(&said, &resident), Ok(0));
    said.full_collections = Some(1);
    assert_eq!(predicted(&said, &resident), Err(Reason::StepsOpen));
    said.sizing.shrinks = Shrinks::AtOnce;
    // The old generation keeps 40 MiB of 400, the young one 20 of 200.
    assert_eq!(predicted(&said, &resident), Ok(360 + 180));
}

#[test]
fn many_unloadable_classes_prevent_a_prediction() {
    let mut said = jvm(Collector::Parallel, 64, 20, Some(9));
    said.unloadable = Some(5 * MIB);
    assert!(predicted(&said, &[(0, 64)]).is_ok());
    said.unloadable = Some(5 * MIB + 1);
    assert_eq!(predicted(&said, &[(0, 64)]), Err(Reason::ClassesOpen));
}

#[test]
fn a_concurrent_collection_is_reported_as_such() {
    let mut said = jvm(Collector::G1, 400, 60, Some(6));
    said.sizing.explicit = Explicit::Concurrent;
    assert_eq!(predicted(&said, &[(0, 10)]), Err(Reason::Concurrent));
    said.heap = None;
    assert_eq!(predicted(&said, &[(0, 10)]), Err(Reason::NotAsked));
    let unread = jvm(Collector::G1, 400, 60, Some(6));
    assert_eq!(predicted(&unread, &[]), Err(Reason::NoAddresses));
    for (collector, reason) in [(Collector::Z, Reason::Later), (Collector::Epsilon, Reason::CollectsNothing)] {
        let prediction = gc(&jvm(collector, 400, 60, Some(6)), &Smaps::default(), &[], 0);
        assert_eq!((prediction.bytes, prediction.reason), (Some(0), reason));
    }
}

#[test]
fn a_trim_on_musl_is_predicted_to_return_nothing() {
    for musl in [None, Some(Err("made up")), Some(Ok(Default::default()))] {
        let predicted = trim(&ProcessReadings { allocator: Some(Allocator::Musl), musl, ..ProcessReadings::default() });
        assert_eq!((predicted.bytes, predicted.why.as_str()), (Some(0), NO_TRIM));
    }
    assert_eq!(trim(&ProcessReadings { allocator: Some(Allocator::Glibc), ..ProcessReadings::default() }).bytes, None);
}
