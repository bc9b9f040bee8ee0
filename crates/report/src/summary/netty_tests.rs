//! Pools in words: the strip, and an explanation only if the evidence shows it.

use super::*;
use crate::terminal::render_within;
use crate::units::MIB;
use proptest::prelude::*;

fn chunk(used: u64, kept: u64) -> NettyChunk {
    let buffers = kept / (32 << 10);
    NettyChunk {
        list: NettyList::Q000,
        bytes: 16 * MIB,
        free_bytes: Some(16 * MIB - used),
        cached_buffers: buffers,
        cached_bytes: kept,
        kept_bytes: kept,
        ..NettyChunk::default()
    }
}

fn allocator(chunks: Vec<NettyChunk>) -> NettyAllocator {
    let kept: u64 = chunks.iter().map(|chunk| chunk.kept_bytes).sum();
    let cache = NettyCache {
        thread: "loop-1".to_owned(),
        buffer_bytes: 32 << 10,
        buffers: kept / (32 << 10),
        bytes: kept,
        ..NettyCache::default()
    };
    NettyAllocator {
        class: "io.netty.buffer.PooledByteBufAllocator".to_owned(),
        kind: NettyKind::Pooled,
        found_by: vec!["event loops".to_owned(), "default".to_owned()],
        arenas: vec![NettyArena { chunks, ..NettyArena::default() }],
        caches: vec![cache],
        ..NettyAllocator::default()
    }
}

fn shown(allocator: NettyAllocator) -> String {
    let library = NettyLibrary { package: "io.netty".to_owned(), allocators: vec![allocator], ..Default::default() };
    let found = NettyPools { libraries: vec![library], ..NettyPools::default() };
    render_within(&[pools(&found, Some(25))], 80)
}

#[test]
fn nearly_empty_chunks_of_cached_buffers_are_explained() {
    let cached = 19 * (32 << 10);
    let mut chunks = vec![chunk(cached, cached); 14];
    chunks.push(chunk(9 * MIB, 0));
    let text = lingering(&allocator(chunks)).unwrap();
    for words in [
        "Chunks linger because small freed buffers stay in thread caches: nothing else holds 14 of ",
        "the 15 chunks (224.0 MiB in total). 8.3 MiB (4%) of that is in use; 8.3 MiB (100%) of the memory in use ",
        "belongs to 266 freed buffers of up to 32 KiB, in the caches of 1 thread.",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn caches_with_unknown_chunks_are_explained_by_their_sum() {
    let mut of = allocator(vec![chunk(8 * MIB, 0); 10]);
    assert_eq!(lingering_in_sum(&of), None, "chunks without cached buffers are not explained");
    of.caches[0].bytes = 80 * MIB;
    let text = lingering_in_sum(&of).unwrap();
    let words = "10 chunks with 160.0 MiB in total have 80.0 MiB in use, and 80.0 MiB is in the caches of 1 thread.";
    assert!(text.contains(words), "{text}");
    of.arenas[0].chunks.truncate(1);
    assert_eq!(lingering_in_sum(&of), None, "an arena's first chunk always stays");
}

#[test]
fn netty_chunks_without_evidence_are_not_explained() {
    for chunks in [
        vec![],
        vec![chunk(0, 0); 3],
        // Not used by caches.
        vec![chunk(MIB, 0); 3],
        vec![chunk(MIB, MIB / 2); 3],
        // An arena's first chunk always stays.
        vec![chunk(MIB, MIB)],
    ] {
        assert_eq!(lingering(&allocator(chunks)), None);
    }
}

#[test]
fn chunks_stranded_by_netty_are_named() {
    let empty = |list: NettyList| NettyChunk { list, ..chunk(0, 0) };
    let of = |chunks: Vec<NettyChunk>| stranded(&allocator(chunks));
    let text =
        of(vec![empty(NettyList::Q075), empty(NettyList::QInit), empty(NettyList::Q075), empty(NettyList::Q100)])
            .unwrap();
    assert!(text.starts_with("Empty but kept: 3 chunks with 48.0 MiB in total, in the list q075, q100."), "{text}");
    assert_eq!(of(vec![empty(NettyList::QInit), empty(NettyList::Q000), chunk(MIB, 0)]), None);
}

#[test]
fn the_reason_comes_from_the_last_mark_that_has_one() {
    let mark = |name: &str, chunks: Vec<NettyChunk>| {
        let library = NettyLibrary { allocators: vec![allocator(chunks)], ..NettyLibrary::default() };
        let netty = Some(NettyPools { libraries: vec![library], ..NettyPools::default() });
        Mark { name: name.to_owned(), netty, ..Mark::default() }
    };
    let mut trial = Trial::new("c", 0, 0);
    let held = || vec![chunk(MIB, MIB); 3];
    trial.marks = vec![mark("loaded", held()), mark("rested", held()), mark("collected", vec![chunk(0, 0)])];
    let said = explanations(&trial);
    assert!(said.len() == 1 && said[0].starts_with("At mark rested: Chunks linger"), "{said:?}");
    let text = render_within(&of_trial(&trial), 80);
    assert!(text.contains("loaded") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    trial.marks.clear();
    assert_eq!(of_trial(&trial), []);
}

#[test]
fn each_chunk_has_a_cell() {
    let shades: Vec<usize> =
        [0, 1, 2 * MIB, 8 * MIB, 16 * MIB - 1, 16 * MIB].map(|used| shade(&chunk(used, 0))).to_vec();
    assert_eq!(shades, [0, 1, 2, 5, 8, 9]);
    let text =
        shown(allocator([chunk(0, 0), chunk(MIB, MIB), chunk(16 * MIB, 0)].into_iter().cycle().take(60).collect()));
    assert_eq!(text.matches('@').count(), 20 + 1, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("direct 0"), "{text}");
}

#[test]
fn the_absence_of_netty_is_reported() {
    let text = render_within(&[pools(&NettyPools::default(), None)], 80);
    assert!(text.contains("Netty is not loaded in this JVM, shaded or otherwise."), "{text}");
}

#[test]
fn the_jvms_agent_warning_is_mentioned_where_it_applies() {
    let mut found = NettyPools::default();
    found.agent.attached = true;
    let text = |release| render_within(&[pools(&found, release)], 80);
    assert!(text(Some(25)).contains("EnableDynamicAgentLoading"));
    assert!(!text(Some(17)).contains("EnableDynamicAgentLoading"));
}

#[test]
fn captured_netty_reports_fit_the_screen() {
    for text in [
        include_str!("../../../../tests/samples/netty/4.1.0.CR3-pooled.json"),
        include_str!("../../../../tests/samples/netty/4.2.20-pooled.json"),
        include_str!("../../../../tests/samples/netty/4.2.20-adaptive.json"),
    ] {
        let found: NettyPools = serde_json::from_str(text).unwrap();
        let text = render_within(&[pools(&found, Some(17))], 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

proptest! {
    #[test]
    fn any_netty_numbers_can_be_shown(numbers in proptest::collection::vec(any::<(u64, Option<u64>, u64)>(), 0..40)) {
        let chunks = numbers.into_iter().map(|(bytes, free_bytes, kept_bytes)| NettyChunk {
            bytes, free_bytes, kept_bytes, cached_bytes: kept_bytes, pinned_bytes: Some(kept_bytes),
            cached_buffers: kept_bytes, ..NettyChunk::default()
        });
        let allocator = NettyAllocator { caches: Vec::new(), ..allocator(Vec::new()) };
        let arena = NettyArena { chunks: chunks.collect(), ..NettyArena::default() };
        let _ = lingering(&NettyAllocator { arenas: vec![arena.clone()], ..allocator.clone() });
        let _ = shown(NettyAllocator { arenas: vec![arena], ..allocator });
    }
}
