//! Netty's pools in a generated JVM: found in every form, and read without hanging when their objects are changed.

use super::super::HotSpot;
use super::super::netty_pools::{NettyChunksRecord, read};
use super::classes::{Form, HEAP, Header, Loaded, References, planted};
use super::{PAGE, PlanBytes};
use crate::observe::Unavailable;

const KIB: u64 = 1 << 10;
const LISTS: [&str; 6] = ["qInit", "q000", "q025", "q050", "q075", "q100"];
/// Fields of an object come after the longest header, eight bytes each; a static field is in the mirror.
const AT: [u64; 7] = [16, 24, 32, 40, 48, 56, 64];
const DEFAULT_AT: u64 = 64;
const PLAIN: Form = Form { references: References::Wide, header: Header::Narrow { shift: 0 }, stream: true, spread: 0 };

/// The classes and objects of one allocator with two arenas; the first has chunks.
struct Pools {
    made: Loaded,
    hotspot: HotSpot,
    allocator: u64,
    arena: u64,
    chunks: Vec<u64>,
    chunk_class: u64,
}

impl Pools {
    /// Three chunks of 64 KiB: full, with a buffer of 1 KiB, and half in use by caches only. A buffer of 100 KiB is
    /// larger than a chunk.
    fn of(form: Form, package: &str) -> Self {
        let mut made = Loaded::of(form);
        made.loader(0, false);
        let refers = |name: &str, at: u64| planted(name, "Ljava/lang/Object;", at, false, 0);
        let name = |class: &str| format!("{package}/netty/buffer/{class}").into_bytes();
        let root = planted("DEFAULT", "Ljava/lang/Object;", DEFAULT_AT, true, 0);
        // Its mirror is the first object, at the start of the heap.
        let allocator_class = made.class(&name("PooledByteBufAllocator"), vec![root, refers("directArenas", AT[0])]);
        let lists = LISTS.iter().zip(AT).map(|(list, at)| refers(list, at));
        let fields = lists.chain([refers("activeBytesHuge", AT[6])]).collect();
        let pool_arena = made.class(&name("PoolArena"), fields);
        let arena_class = made.class(&name("PoolArena$DirectArena"), Vec::new());
        let list_class = made.class(&name("PoolChunkList"), vec![refers("head", AT[0])]);
        let sizes = [planted("chunkSize", "I", AT[2], false, 0), planted("freeBytes", "I", AT[3], false, 0)];
        let fields = [refers("next", AT[0]), refers("pinnedBytes", AT[1])].into_iter().chain(sizes).collect();
        let chunk_class = made.class(&name("PoolChunk"), fields);
        let fields = vec![planted("base", "J", AT[0], false, 0), refers("cells", AT[1])];
        let striped = made.class(b"java/util/concurrent/atomic/Striped64", fields);
        let adder = made.class(b"java/util/concurrent/atomic/LongAdder", Vec::new());
        let fields = vec![planted("value", "J", AT[0], false, 0)];
        let cell_class = made.class(b"java/util/concurrent/atomic/Striped64$Cell", fields);
        made.memory.word(arena_class + made.at(6), pool_arena);
        made.memory.word(adder + made.at(6), striped);

        // A part of a counter can be negative, but not the sum.
        let counter = |made: &mut Loaded, base: u64, in_cell: u64| {
            let [counter, cell] = [adder, cell_class].map(|class| made.object(class, 32));
            made.memory.word(counter + AT[0], base);
            made.memory.word(cell + AT[0], in_cell);
            let cells = array(made, adder, &[0, cell]);
            made.refer(counter + AT[1], cells);
            counter
        };
        let arenas = [arena_class; 2].map(|class| made.object(class, 80));
        let mut heads = Vec::new();
        for at in arenas.iter().flat_map(|arena| AT[..6].iter().map(move |at| arena + at)) {
            let list = made.object(list_class, 24);
            made.refer(at, list);
            heads.push(list + AT[0]);
        }
        let mut chunks = Vec::new();
        for (base, in_cell, free) in [(64 * KIB, 0, 0), (KIB.wrapping_neg(), 2 * KIB, 56), (0, 0, 32)] {
            let (chunk, pinned) = (made.object(chunk_class, 56), counter(&mut made, base, in_cell));
            made.refer(chunk + AT[1], pinned);
            made.memory.half(chunk + AT[2], 64 << 10);
            made.memory.half(chunk + AT[3], free << 10);
            chunks.push(chunk);
        }
        made.refer(heads[5], chunks[0]);
        made.refer(heads[1], chunks[1]);
        made.refer(chunks[1] + AT[0], chunks[2]);
        let huge = counter(&mut made, 100 * KIB, 0);
        made.refer(arenas[1] + AT[6], huge);
        let (allocator, both) = (made.object(allocator_class, 24), array(&mut made, adder, &arenas));
        made.refer(allocator + AT[0], both);
        made.refer(HEAP + DEFAULT_AT, allocator);
        let hotspot = made.hotspot();
        Self { made, hotspot, allocator, arena: arenas[0], chunks, chunk_class }
    }

    fn read(&self) -> Result<NettyChunksRecord, Unavailable> {
        read(&self.made.memory, &self.hotspot.tables, &self.made.objects(&self.hotspot))
    }

    /// Reads the chunks while the field at `at` refers to another object.
    fn with(&mut self, at: u64, object: u64) -> Result<NettyChunksRecord, Unavailable> {
        let whole = self.made.memory.clone();
        self.made.refer(at, object);
        let read = self.read();
        self.made.memory = whole;
        read
    }
}

/// An array of references. No reader checks its class.
fn array(made: &mut Loaded, class: u64, elements: &[u64]) -> u64 {
    let length_at = if made.form.header == Header::InMark { 8 } else { 12 };
    let size = if matches!(made.form.references, References::Narrow { .. }) { 4 } else { 8 };
    let object = made.object(class, 24 + 8 * elements.len() as u64);
    made.memory.half(object + length_at, elements.len() as u32);
    let first = object + (length_at + 4_u64).next_multiple_of(size);
    for (n, element) in (0..).zip(elements) {
        made.refer(first + size * n, *element);
    }
    object
}

fn whole(package: &str) -> NettyChunksRecord {
    NettyChunksRecord {
        package: package.to_owned(),
        chunks: 3,
        full_chunks: 1,
        nearly_empty_chunks: 2,
        held_bytes: (3 * 64 + 100) * KIB,
        used_bytes: (64 + 8 + 32 + 100) * KIB,
        handed_out_bytes: Some((64 + 1 + 100) * KIB),
    }
}

#[test]
fn chunks_are_found_in_every_form() {
    let mut seen = 0;
    for (kind, number) in (0..10).flat_map(|kind| (0..12).map(move |number| (kind, number))) {
        let form = Form::of(&mut PlanBytes::of(&[kind, number]));
        // Arrays are not read if objects identify their class by its address.
        if form.header != Header::Wide {
            assert_eq!(Pools::of(form, "io").read(), Ok(whole("io.netty")), "{form:?}");
            seen += 1;
        }
    }
    assert_eq!(Pools::of(PLAIN, "a/shaded/io").read(), Ok(whole("a.shaded.io.netty")));
    assert_eq!(seen, 80);
}

#[test]
fn structures_unlike_nettys_are_rejected_or_skipped() {
    let mut pools = Pools::of(PLAIN, "io");
    let [full, empty, cached] = pools.chunks[..] else { panic!("{:?}", pools.chunks) };
    for (what, at, object) in [("itself", full, full), ("one before", cached, empty), ("another list", full, empty)] {
        assert_eq!(pools.with(at + AT[0], object), Ok(whole("io.netty")), "a chunk leads to {what}");
    }
    for (what, at, object) in [
        ("a chunk leads to an arena", full + AT[0], pools.arena),
        ("a chunk leads nowhere", full + AT[0], HEAP + (1 << 30)),
        ("an arena without a list", pools.arena + AT[3], 0),
        ("an arena with a chunk for a list", pools.arena + AT[3], full),
    ] {
        assert!(pools.with(at, object).is_err(), "{what}");
    }
    for (what, at, object) in [
        ("no allocator yet", HEAP + DEFAULT_AT, 0),
        ("an allocator of another class", HEAP + DEFAULT_AT, full),
        ("no arenas", pools.allocator + AT[0], 0),
    ] {
        assert_eq!(pools.with(at, object), Ok(NettyChunksRecord::default()), "{what}");
    }
    for (bytes, free) in [(0, 0), (64, 65)] {
        let mut pools = Pools::of(PLAIN, "io");
        pools.made.memory.half(full + AT[2], bytes);
        pools.made.memory.half(full + AT[3], free);
        assert!(pools.read().is_err_and(|why| why.is_early), "{free} free of {bytes} bytes is impossible");
    }
    let uncounted = pools.with(full + AT[1], 0).unwrap();
    assert_eq!((uncounted.handed_out_bytes, uncounted.full_chunks), (None, 1), "judged by the bytes that are not free");
}

#[test]
fn reading_pools_ends_for_any_object_contents() {
    let mut pools = Pools::of(PLAIN, "io");
    let chunk = pools.chunks[0];
    let pages: Vec<u64> = pools.made.memory.pages.range(HEAP..HEAP + (1 << 30)).map(|(start, _)| *start).collect();
    let whole = pools.made.memory.clone();
    for at in pages.into_iter().flat_map(|page| (page..page + PAGE).step_by(8)) {
        for word in [0, 1, chunk, pools.arena, pools.chunk_class, 1 << 32 | 0xffff, u64::MAX] {
            pools.made.memory = whole.clone();
            pools.made.memory.word(at, word);
            let _ = pools.read();
        }
        pools.made.memory = whole.clone();
        pools.made.memory.hole = at..at + 8;
        let _ = pools.read();
    }
}

#[test]
fn an_endless_list_is_rejected() {
    let mut pools = Pools::of(PLAIN, "io");
    let mut last = pools.chunks[2];
    for _ in 0..1 << 14 {
        let chunk = pools.made.object(pools.chunk_class, 56);
        pools.made.memory.half(chunk + AT[2], 64 << 10);
        pools.made.refer(last + AT[0], chunk);
        last = chunk;
    }
    assert!(pools.read().is_err());
}
