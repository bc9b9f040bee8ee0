//! Generated processes on musl, walked intact and damaged.

use super::super::hotspot::made_up::{PAGE, corpus};
use super::super::mallocng_made_up::{DATA, MadeUpHeap, SECRET, check, laws};
use super::*;
use proptest::prelude::*;

/// Metas of 40 bytes each follow the area's 24-byte header; offsets of `mem`, masks, and flags.
const GROUP_AT: u64 = 16;
const BITS_AT: u64 = 32;

/// Changes a group and its meta.
type Damage = fn(&mut MadeUpHeap, u64, u64);

fn some() -> MadeUpHeap {
    MadeUpHeap::of(&(0..400u32).map(|n| (n * 7 + n / 9) as u8).collect::<Vec<_>>(), true)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn planted_memory_is_found(plan in prop::collection::vec(any::<u8>(), 1..600), constant in any::<bool>()) {
        let made = MadeUpHeap::of(&plan, constant);
        let walk = made.walk().unwrap();
        laws(&made, &walk);
        prop_assert_eq!((walk.broken.len(), walk.donated.len()), (0, 0));
        let (live, truth) = (walk.live(), made.truth);
        prop_assert_eq!((walk.asked.count, walk.asked.bytes), (truth.chunks, truth.asked));
        prop_assert_eq!(live.count + walk.mmapped.len() as u64, truth.chunks);
        prop_assert_eq!((walk.group_count(), walk.mmapped.len() as u64), (truth.groups, truth.alone));
        prop_assert_eq!(walk.free().bytes, truth.free);
        let tags = walk.groups.iter().flat_map(|group| &group.tagged).map(|(_, chunks)| (chunks.count, chunks.asked));
        let alone = walk.mmapped.iter().filter_map(|chunk| chunk.tag).map(|tag| (1, tag.asked));
        let tagged = tags.chain(alone).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        prop_assert_eq!(tagged, (truth.tagged, truth.tagged_asked));
    }

    #[test]
    fn results_from_a_damaged_heap_are_consistent(input in prop::collection::vec(any::<u8>(), 2..900)) {
        check(&input);
    }
}

#[test]
fn larger_pages_give_the_same_result() {
    for page in [16 << 10, 64 << 10] {
        let made = some();
        let mut large = made.clone();
        large.memory = large.memory.with_pages_of(page);
        let mut pages_of = |start: u64, end: u64| {
            assert!(start.is_multiple_of(page) && end.is_multiple_of(page), "unaligned: {start:x} to {end:x}");
            large.runs(start, end)
        };
        let places = [(DATA, DATA + page)];
        let context = find(&large, &mut pages_of, &places, SECRET).unwrap();
        let mut walker = Walker::begin(&large, &mut pages_of, context).unwrap();
        while walker.step(&large, &mut pages_of) {}
        let (walk, small) = (walker.finish().unwrap(), made.walk().unwrap());
        assert_eq!((walk.broken.len(), walk.asked, walk.group_count()), (0, small.asked, small.group_count()));
        assert_eq!((walk.live().bytes, walk.free().bytes), (small.live().bytes, small.free().bytes));
        let tags = |walk: &Walk| walk.mmapped.iter().map(|chunk| (chunk.start, chunk.tag)).collect::<Vec<_>>();
        assert!(!walk.mmapped.is_empty() && tags(&walk) == tags(&small));
        assert!(walk.mmapped.iter().all(|chunk| chunk.end.is_multiple_of(page)));
        assert!(walk.areas.iter().all(|(start, end)| end - start == page && start.is_multiple_of(page)));
        assert!(walk.free_pages().is_multiple_of(page));
    }
}

/// Tries prefixes of the inputs that fuzzing found or starts with, on every toolchain.
#[test]
fn results_from_the_mallocng_corpus_are_consistent() {
    corpus("mallocng", check);
}

#[test]
fn a_torn_group_is_skipped_and_others_are_kept() {
    let whole = some().walk().unwrap();
    let (group, meta) = some().tops[3];
    let damages: [(&str, Damage); 4] = [
        ("a group that does not point to its meta", |made, group, meta| made.word(group, meta + 40)),
        ("a group with an invalid size class", |made, _, meta| {
            made.put(meta + 24, &[0; 8]);
            made.word(meta + BITS_AT, 1 | 1 << 5 | 50 << 6 | 1 << 12);
        }),
        ("a group with an impossible size", |made, _, meta| made.word(meta + BITS_AT, 31 | 1 << 5 | 47 << 6 | 1 << 12)),
        ("a group with more free slots than slots", |made, _, meta| {
            made.put(meta + 24, &[255; 8]);
            made.word(meta + BITS_AT, 3 | 1 << 5 | 1 << 12);
        }),
    ];
    for (why, damage) in damages {
        let mut made = some();
        damage(&mut made, group, meta);
        let walk = made.walk().unwrap();
        laws(&made, &walk);
        assert_eq!(walk.broken.iter().map(|group| (group.start, group.why)).collect::<Vec<_>>(), [(group, why)]);
        let tops = |walk: &Walk| walk.groups.len() + walk.mmapped.len();
        assert_eq!(tops(&walk), tops(&whole) - 1, "{why}");
    }
}

#[test]
fn a_group_with_a_reused_meta_is_gone() {
    let made = some();
    let mut moved = made.clone();
    let (_, meta) = made.tops[3];
    let context = made.find().unwrap();
    let mut walker = Walker::begin(&made, &mut |start, end| made.runs(start, end), context).unwrap();
    moved.word(meta + GROUP_AT, 0x7f40_0000_0000);
    while walker.step(&moved, &mut |start, end| moved.runs(start, end)) {}
    let walk = walker.finish().unwrap();
    assert_eq!(walk.groups.len() + walk.mmapped.len() + 1, made.tops.len());
    assert!(walk.broken.is_empty());
}

#[test]
fn areas_end_and_contain_the_secret() {
    let refused = |damage: fn(&mut MadeUpHeap)| {
        let mut made = MadeUpHeap::of(&[1; 20_000], true);
        damage(&mut made);
        made.walk().unwrap_err()
    };
    assert!(MadeUpHeap::of(&[1; 20_000], true).memory.pages.contains_key(&MadeUpHeap::area(2)), "it has three areas");
    assert_eq!(
        refused(|made| made.word(MadeUpHeap::area(1) + 8, MadeUpHeap::area(0))),
        "an endless list of meta areas"
    );
    assert_eq!(refused(|made| made.word(MadeUpHeap::area(1), SECRET ^ 1)), "a meta area without the secret");
    assert_eq!(refused(|made| made.word(MadeUpHeap::area(1) + 16, 100)), "a meta area without the secret");
    assert_eq!(refused(|made| made.word(MadeUpHeap::area(0) + 8, 8)), "a meta area at an impossible address");
    assert_eq!(refused(|made| made.word(MadeUpHeap::area(0) + 8, 1 << 60)), "a meta area that is not in memory");
    assert_eq!(refused(|made| made.swap(MadeUpHeap::area(1))), "a meta area that is not in memory");
}

#[test]
fn a_context_needs_more_than_the_secret() {
    let context = some().find().unwrap();
    assert!(context.at > DATA + 64 && context.head == MadeUpHeap::area(0));
    let mut damaged = some();
    damaged.word(context.at + 8, 0);
    assert_eq!(damaged.find(), None, "an uninitialized context is not found");
    damaged = some();
    damaged.word(MadeUpHeap::area(0), 0);
    assert_eq!(damaged.find(), None, "an area without the secret is not found");
    damaged = some();
    damaged.swap(DATA);
    assert_eq!(damaged.find(), None, "a context that is swapped out is not found");
    let places = [(DATA, DATA + PAGE * 2)];
    assert_eq!(find(&some(), &mut |start, end| some().runs(start, end), &places, 0), None, "zeros are not a secret");
}

#[test]
fn the_secret_is_the_second_half_of_at_random() {
    let pair = |kind: u64, value: u64| [kind.to_le_bytes(), value.to_le_bytes()].concat();
    let auxv = [pair(33, 1), pair(25, 0x7ffe_1230), pair(0, 0), pair(25, 2)].concat();
    assert_eq!(random_at(&auxv), Some(0x7ffe_1230));
    for cut in 0..32 {
        assert_eq!(random_at(&auxv[..cut]), None);
    }
    assert_eq!(random_at(&pair(0, 0)), None);
}

#[test]
fn the_context_is_searched_in_file_data_and_after_it() {
    let maps = crate::kernel::mapping::parse(
        "1000-2000 r-xp 0 08:01 5 /bin/x\n2000-3000 rw-p 0 08:01 5 /bin/x\n3000-4000 rw-p 0 00:00 0\n\
         5000-6000 rw-p 0 00:00 0 [heap]\n7000-8000 rw-p 0 00:00 0\n\
         9000-a000 rw-p 0 08:01 6 /lib/ld-musl-x86_64.so.1\na000-b000 rw-p 0 00:00 0\nb000-c000 ---p 0 00:00 0\n",
    );
    let found = places(&maps, |mapping| mapping.file_name().starts_with("ld-musl"));
    let starts: Vec<u64> = found.iter().map(|(start, _)| *start).collect();
    assert_eq!(starts, [0x9000, 0xa000, 0x2000, 0x3000]);
}
