//! Closes accounts from evidence that no real process would give: mangled mappings, duplicate or missing pages, ranges
//! at the ends of the address space. Nothing may panic, and the sum must equal the RSS to the byte.

use super::super::evidence::Sizing;
use super::super::heap::{split_heap, used_resident};
use super::super::ledger::Holding;
use super::super::malloc::musl_ranges;
use super::super::native::{NativeEvidence, NativeMappings, NativeRange};
use super::super::plan::AccountPlan;
use super::super::predict::{gc, trim};
use super::*;
use crate::observe::addresses::{JvmAddresses, JvmRange};
use crate::observe::elf::Image;
use crate::observe::glibc::{Chunks, HeapCandidate, HeapWalk, Walk, WalkError};
use crate::observe::heap_info::HeapInfo;
use crate::observe::mallocng::{self, BrokenGroup, GroupWalk};
use crate::observe::metaspace_nodes::MetaspaceNode;
use crate::observe::nmt::NativeMemory;
use crate::observe::nmt_header::Tag;
use crate::observe::smaps::Smaps;
use loadline_base::units::Bytes;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// From a JVM with G1 (see `tests/samples`).
const SMAPS: &str = include_str!("../../../../tests/samples/21/smaps.txt");
const INFO: &str = include_str!("../../../../tests/samples/21/vm_info-g1.txt");
const NMT: &str = include_str!("../../../../tests/samples/21/nmt_summary.txt");

/// Addresses from the samples and the ends of the address space.
fn address() -> impl Strategy<Value = u64> {
    let told: Vec<u64> = Smaps::parse(SMAPS).maps().flat_map(|mapping| [mapping.start, mapping.end]).collect();
    prop_oneof![
        8 => select(told.clone()),
        8 => (select(told), 0u64..0x40).prop_map(|(at, pages)| at.saturating_add(pages * 4096)),
        1 => any::<u64>(),
        1 => (0u64..0x3000).prop_map(|back| u64::MAX - back),
        1 => 0u64..0x3000,
    ]
}

/// Any two addresses, in either order.
fn span() -> impl Strategy<Value = (u64, u64)> {
    prop_oneof![
        1 => (address(), address()),
        3 => (address(), 0u64..0x400).prop_map(|(at, pages)| (at, at.saturating_add(pages * 4096))),
    ]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![2 => 0u64..1 << 32, 1 => any::<u64>(), 1 => Just(u64::MAX), 1 => Just(0)]
}

/// Lines of the sample, some duplicated elsewhere, some with one byte changed.
fn smaps() -> impl Strategy<Value = Smaps> {
    let byte = prop_oneof![Just(b'9'), Just(b'0'), Just(b'f'), Just(b'-'), Just(b' '), any::<u8>()];
    let bytes = prop::collection::vec((any::<Index>(), byte), 0..40);
    let again = prop::collection::vec((any::<Index>(), any::<Index>(), 1usize..40), 0..6);
    // Weights that no kernel would report.
    let absurd = prop::collection::vec((any::<Index>(), select(vec!["Rss", "Pss", "Swap"]), size()), 0..3);
    (bytes, again, absurd).prop_map(|(bytes, again, absurd)| {
        let mut raw = SMAPS.as_bytes().to_vec();
        bytes.into_iter().for_each(|(at, byte)| raw[at.index(SMAPS.len())] = byte);
        let text = String::from_utf8_lossy(&raw).into_owned();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (from, to, count) in again {
            let from = from.index(lines.len());
            let block: Vec<String> = lines[from..].iter().take(count).cloned().collect();
            let to = to.index(lines.len());
            lines.splice(to..to, block);
        }
        for (at, key, size) in absurd {
            lines.insert(at.index(lines.len()), format!("{key}: {size}"));
        }
        Smaps::parse(&lines.join("\n"))
    })
}

fn runs() -> impl Strategy<Value = Vec<Run>> {
    let run = (span(), any::<bool>()).prop_map(|((start, end), swapped)| Run { start, end, swapped });
    prop::collection::vec(run, 0..12)
}

fn info() -> impl Strategy<Value = JvmAddresses> {
    let purposes = vec![Purpose::JavaHeap, Purpose::CodeCache, Purpose::GcTable];
    let range =
        (span(), prop::option::of(address()), select(purposes)).prop_map(|((start, end), committed_end, purpose)| {
            JvmRange { start, end, committed_end, purpose, name: format!("{purpose:?}") }
        });
    let (ranges, used) = (prop::collection::vec(range, 0..8), prop::collection::vec(span(), 0..6));
    (any::<bool>(), ranges, used, prop::option::of(span()), prop::option::of(size())).prop_map(
        |(told, mut ranges, used_ranges, heap_reserved, region)| {
            if told {
                ranges.extend(JvmAddresses::parse(INFO, 4096).unwrap().ranges);
            }
            JvmAddresses { ranges, used_ranges, heap_reserved, region_size: region.map(Bytes) }
        },
    )
}

fn heap() -> impl Strategy<Value = HeapInfo> {
    (select(&Collector::ALL), size(), size(), size(), prop::option::of((size(), size()))).prop_map(
        |(collector, used, committed, most, old)| HeapInfo {
            collector,
            used: Bytes(used),
            committed: Bytes(committed),
            capacity_max: Bytes(most),
            old: old.map(|(committed, reserved)| (Bytes(committed), Bytes(reserved))),
            metaspace: None,
            class_space: None,
        },
    )
}

/// The sample's summary with absurd byte counts.
fn nmt() -> impl Strategy<Value = NativeMemory> {
    prop::collection::vec((size(), size()), 1..8).prop_map(|sizes| {
        let mut summary = NativeMemory::parse(NMT).unwrap();
        for (category, (malloc, arena)) in summary.categories.iter_mut().zip(sizes.iter().cycle()) {
            (category.malloc, category.nmt_arena) = (Bytes(*malloc), Bytes(*arena));
        }
        summary
    })
}

fn said() -> impl Strategy<Value = Said> {
    let node = (span(), any::<bool>()).prop_map(|((start, end), class_space)| {
        let committed = Bytes(0);
        MetaspaceNode { start, end, committed, class_space }
    });
    let image = (span(), any::<bool>()).prop_map(|((start, end), jvm)| {
        let path = if jvm { "/opt/jdk/lib/server/libjvm.so" } else { "/lib/libz.so.1" };
        Image { start, end, path: path.to_owned() }
    });
    let parts = (prop::collection::vec(node, 0..4), prop::collection::vec(image, 0..4));
    let numbers = (prop::option::of(size()), prop::option::of(size()));
    (prop::option::of(info()), parts, prop::option::of(heap()), prop::option::of(nmt()), numbers).prop_map(
        |(info, (nodes, images), heap, nmt, (left_by_last_gc, max_free_ratio))| {
            let thread_names = BTreeMap::from([(7, "main".to_owned())]);
            let heap_min = left_by_last_gc.map(|bytes| bytes / 2);
            let sizing = Sizing { heap_min, max_free_ratio, ..Sizing::default() };
            Said { info, nodes, heap, nmt, left_by_last_gc, sizing, images, thread_names, ..Said::default() }
        },
    )
}

fn chunks() -> impl Strategy<Value = Chunks> {
    (size(), size(), size(), size(), size()).prop_map(|(count, bytes, asked, resident, swapped)| Chunks {
        count,
        bytes,
        asked,
        resident,
        swapped,
    })
}

/// A malloc heap: its range, its mappings, the chunks found, and the outcome of the walk.
type Arena = ((u64, u64), Vec<Index>, (Chunks, Chunks, Vec<(u8, Chunks)>, u64), u8);

fn arena() -> impl Strategy<Value = Arena> {
    let tagged = prop::collection::vec((any::<u8>(), chunks()), 0..4);
    (span(), prop::collection::vec(any::<Index>(), 0..3), (chunks(), chunks(), tagged, size()), 0u8..4)
}

fn mmapped() -> impl Strategy<Value = Vec<MmappedChunk>> {
    let tag = prop::option::of((any::<u8>(), size()).prop_map(|(number, asked)| Tag { number, asked }));
    let chunk = (span(), tag).prop_map(|((start, end), tag)| MmappedChunk { start, end, tag });
    prop::collection::vec(chunk, 0..6)
}

/// Library mappings and addresses named by HotSpot, anywhere.
fn native() -> impl Strategy<Value = NativeMappings> {
    use NativeEvidence::{Data, Free, InUse, Name, NotSplit, Object};
    let evidence = select(vec![InUse, Free, NotSplit, Data, Object, Name]);
    let range = (span(), evidence).prop_map(|((start, end), evidence)| NativeRange {
        start,
        end,
        of: "/tmp/libduckdb_java.so".to_owned(),
        allocator: None,
        evidence,
    });
    let tables = prop::option::of(prop::collection::btree_set(address(), 0..20));
    (prop::collection::vec(range, 0..8), tables).prop_map(|(ranges, tables)| NativeMappings { ranges, tables })
}

/// A process's mappings, with arbitrary findings in each.
fn seen() -> impl Strategy<Value = ProcessReadings> {
    let allocators =
        vec![None, Some(Allocator::Glibc), Some(Allocator::Jemalloc), Some(Allocator::Unknown), Some(Allocator::Musl)];
    let stack = (0u32..9, prop::option::of(address())).prop_map(|(tid, pointer)| ThreadStack { tid, pointer });
    let pages = prop::collection::vec((any::<Index>(), runs()), 0..12);
    let arenas = prop::option::of(prop::collection::vec(arena(), 0..4));
    let chunks = prop::collection::vec((any::<Index>(), mmapped()), 0..6);
    let musl = prop::option::of(prop_oneof![Just(Err("made up")), groups().prop_map(Ok)]);
    let whole = (smaps(), select(allocators), prop::collection::vec(stack, 0..5), musl, native());
    (whole, pages, arenas, chunks).prop_map(|((smaps, allocator, stacks, musl, native), pages, arenas, chunks)| {
        let count = smaps.mappings.len();
        let mut seen = ProcessReadings { smaps, allocator, stacks, musl, native, ..ProcessReadings::default() };
        if count == 0 {
            return seen;
        }
        seen.pages = pages.into_iter().map(|(index, runs)| (index.index(count), runs)).collect();
        seen.chunks = chunks.into_iter().map(|(index, chunks)| (index.index(count), chunks)).collect();
        let mut walk = arenas.is_some().then(Walk::default);
        for (n, (range, indices, found, fate)) in arenas.into_iter().flatten().enumerate() {
            let candidate = HeapCandidate { start: range.0, end: range.1, main: fate == 3, runs: Vec::new() };
            seen.candidates.push((candidate, indices.into_iter().map(|index| index.index(count)).collect()));
            let Some(walk) = &mut walk else { continue };
            let (live, free, tagged, trimmable) = found;
            match fate {
                0 => walk.errors.push(WalkError { index: n, at: range.0, why: "made up" }),
                1 => walk.others.push(n),
                _ => walk.heaps.push(HeapWalk { index: n, arena: 0, system: 0, live, tagged, free, trimmable }),
            }
        }
        seen.walk = walk;
        seen
    })
}

/// A possible walk of musl's malloc, ordered or not.
fn groups() -> impl Strategy<Value = mallocng::Walk> {
    let group = (span(), chunks(), chunks(), prop::collection::vec((any::<u8>(), chunks()), 0..3)).prop_map(
        |((start, end), live, free, tagged)| GroupWalk { start, end, live, free, tagged, ..GroupWalk::default() },
    );
    let broken = span().prop_map(|(start, end)| BrokenGroup { start, end, why: "made up" });
    let groups = prop::collection::vec(group, 0..6);
    (groups, prop::collection::vec(span(), 0..4), mmapped(), prop::collection::vec(broken, 0..3)).prop_map(
        |(groups, areas, mmapped, broken)| mallocng::Walk { groups, areas, mmapped, broken, ..Default::default() },
    )
}

fn sum(bytes: impl Iterator<Item = u64>) -> u128 {
    bytes.map(u128::from).sum()
}

/// Checks that the holdings add up to the kernel's weights wherever a sum fits 64 bits.
fn adds_up(account: &Account, smaps: &Smaps) -> Result<(), TestCaseError> {
    let weights = || smaps.mappings.iter().map(|weighed| &weighed.weight);
    // A mapping without resident or swapped pages has no PSS.
    let holding = weights().filter(|weight| weight.rss.0 > 0 || weight.swap.0 > 0);
    let (rss, pss) = (sum(weights().map(|weight| weight.rss.0)), sum(holding.map(|weight| weight.pss.0)));
    let swap = sum(weights().map(|weight| weight.swap.0));
    let held = |part: fn(&Holding) -> u64| sum(account.holdings.iter().map(part));
    let is_told = |sum: u128| sum <= u128::from(u64::MAX);
    if is_told(rss) {
        let shares = account.regions.iter().flat_map(|region| region.shares.iter().map(|(_, rss)| *rss));
        prop_assert_eq!((u128::from(account.rss), held(|h| h.rss), sum(shares)), (rss, rss, rss));
        let remainders = sum(account.remainders.iter().map(|remainder| remainder.rss));
        prop_assert_eq!(remainders, u128::from(account.rss_of(Owner::Unexplained)));
    }
    if is_told(pss) {
        prop_assert_eq!((u128::from(account.pss), held(|h| h.pss)), (pss, pss));
    }
    if is_told(swap) {
        prop_assert_eq!(held(|h| h.swap), swap);
    }
    for holding in &account.holdings {
        let details = sum(holding.detail.iter().map(|detail| detail.rss));
        prop_assert!(details <= u128::from(holding.rss) || !is_told(rss));
    }
    Ok(())
}

/// From a JVM with G1 and a 64 MiB heap: its 128 KiB of cards follow a malloc chunk in the same stretch.
#[test]
fn tables_without_an_address_are_subtracted_from_unread_malloc() {
    let smaps = "fc000000-100000000 rw-p 0 00:00 0\nRss: 4096 kB\n\
                 7f0000000000-7f00000e1000 rw-p 0 00:00 0\nRss: 900 kB\n7f0000200000-7f0000202000 rw-p 0 00:00 0\nRss: 8 kB\n";
    let heap = (0xfc00_0000, 0x1_0000_0000);
    let range =
        JvmRange { start: heap.0, end: heap.1, committed_end: None, purpose: Purpose::JavaHeap, name: "".into() };
    let (heap_reserved, region_size) = (Some(heap), Some(Bytes(1 << 20)));
    let info = JvmAddresses { ranges: vec![range], heap_reserved, region_size, ..JvmAddresses::default() };
    let heap = HeapInfo::parse(
        " garbage-first heap   total 65536K, used 20090K [0x00000000fc000000, 0x0000000100000000)\n  region size 1024K, 15 young (15360K), 5 survivors (5120K)\n",
    );
    let said = Said { info: Some(info), heap: heap.ok(), ..Said::default() };
    let mut seen =
        ProcessReadings { allocator: Some(Allocator::Glibc), smaps: Smaps::parse(smaps), ..Default::default() };
    seen.pages = (1..3).map(|index| (index, vec![Run { start: 0, end: u64::MAX, swapped: false }])).collect();
    let account = close(&said, &seen);
    let held = [Owner::Gc, Owner::MallocUnsplit, Owner::Unexplained].map(|owner| account.rss_of(owner));
    let tables = (128 << 10) + 64 * (8 + 128);
    assert_eq!(held, [tables, (900 << 10) - tables, 8 << 10]);
    // A JVM that did not respond may have mapped these pages itself.
    let account = close(&Said { unanswered: true, ..said }, &seen);
    let held = [Owner::Anonymous, Owner::MallocUnsplit].map(|owner| account.rss_of(owner));
    assert_eq!(held, [900 << 10, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn the_sum_is_the_rss_for_any_evidence(
        said in said(),
        seen in seen(),
        heap_runs in runs(),
        live in any::<bool>(),
    ) {
        let maps: Vec<Mapping> = seen.smaps.maps().cloned().collect();
        let malloc = seen.musl.iter().flatten().flat_map(musl_ranges).collect::<Vec<_>>();
        let claims = claims(&said, &maps, &seen.stacks, &malloc);
        prop_assert!(claims.all().iter().all(|claim| claim.start < claim.end));
        prop_assert!(claims.all().windows(2).all(|pair| pair[0].end <= pair[1].start));
        let plan = AccountPlan::new(&seen.smaps, &claims);
        for planned in &plan.mappings {
            let mapping = &maps[planned.index];
            let mut at = mapping.start;
            for segment in &planned.segments {
                prop_assert!(segment.start == at && segment.start < segment.end);
                at = segment.end;
            }
            prop_assert_eq!(at, mapping.end, "the segments cover the mapping");
        }
        let mut account = close(&said, &seen);
        adds_up(&account, &seen.smaps)?;
        let heap = account.holding(Owner::JavaHeap).map_or((0, 0), |heap| (heap.rss, heap.pss));
        let used = used_resident(&said, &heap_runs, seen.smaps.page(), heap);
        split_heap(&mut account, used.unwrap_or(u64::MAX), live);
        adds_up(&account, &seen.smaps)?;
        prop_assert!(account.holdings.windows(2).all(|pair| pair[0].owner < pair[1].owner));
        let predicted = gc(&said, &seen.smaps, &heap_runs, account.rss_of(Owner::Gc));
        prop_assert!(predicted.bytes.is_some() || !predicted.why.is_empty());
        trim(&seen);
    }

    /// The same with values that the parsers may produce: if nothing saturates, the parts of a heap add up to the
    /// whole.
    #[test]
    fn a_heap_is_divided_without_remainder(rss in size(), pss in size(), swap in size(), used in size()) {
        let heap = Holding { owner: Owner::JavaHeap, rss, pss, swap, detail: Vec::new() };
        let mut account = Account { rss, pss, holdings: vec![heap], ..Account::default() };
        split_heap(&mut account, used, true);
        let held = |part: fn(&Holding) -> u64| sum(account.holdings.iter().map(part));
        prop_assert_eq!((held(|h| h.rss), held(|h| h.pss), held(|h| h.swap)), (rss.into(), pss.into(), swap.into()));
        prop_assert_eq!(account.rss_of(Owner::JavaHeapLive), used.min(rss));
    }
}
