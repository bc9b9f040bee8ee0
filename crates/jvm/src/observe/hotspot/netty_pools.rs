//! The chunks of Netty's direct memory pools (`PooledByteBufAllocator` of Netty 4.1 and 4.2, shaded or not): their
//! total bytes, and how many of those are handed out. Chunks of the adaptive allocator are not read, because only its
//! buffers refer to a chunk that is full.
//!
//! Starting points are `PooledByteBufAllocator.DEFAULT`, and each allocator for which a Netty thread has a cache
//! (`FastThreadLocalThread.threadLocalMap` → `indexedVariables` → `PoolThreadCache.directArena` → `PoolArena.parent`).
//! From there: `directArenas` → `PoolArena.q050` and its five siblings → `PoolChunkList.head` → `PoolChunk.next`. The
//! class name of each object is verified before it is read; a pass in which this fails is discarded.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::classes::{Field, supers};
use super::objects::Objects;
use super::threads::Threads;
use super::{SOURCE, Tables};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Chunks move between lists while the program runs, and a pass may lose the rest of a list, so the pass that finds the
/// most chunks wins. Measured: two threads that only allocated hid up to half of 38 chunks from a single pass.
const PASSES: usize = 8;
/// Maximum number of copies of Netty in one JVM.
const LIBRARIES_MAX: usize = 16;
/// Maximum number of allocators in all copies; a program has one or two.
const ALLOCATORS_MAX: usize = 64;
/// Maximum number of arenas per allocator; Netty creates at most two per CPU.
const ARENAS_MAX: u32 = 4096;
/// Maximum number of chunks in all arenas: 64 GiB in chunks of 4 MiB.
const CHUNKS_MAX: usize = 1 << 14;
/// Maximum number of threads searched for caches, and of variables per thread.
const THREADS_MAX: usize = 2000;
const VARIABLES_MAX: u32 = 1 << 12;
/// Cells of a counter: one per CPU, rounded up to a power of two.
const CELLS_MAX: u32 = 1 << 12;
/// A chunk is full if less than one part in this many is free, and nearly empty if less than that is handed out.
const EDGE: u64 = 8;

/// Netty's classes, even if a jar has relocated them.
const ALLOCATOR: &str = "netty/buffer/PooledByteBufAllocator";
const ARENA: &str = "/buffer/PoolArena$DirectArena";
const LIST: &str = "netty/buffer/PoolChunkList";
const CHUNK: &str = "netty/buffer/PoolChunk";
const CACHE: &str = "netty/buffer/PoolThreadCache";
const THREAD: &str = "netty/util/concurrent/FastThreadLocalThread";
const VARIABLES: &str = "netty/util/internal/InternalThreadLocalMap";
const LISTS: [&str; 6] = ["qInit", "q000", "q025", "q050", "q075", "q100"];
/// The JDK's counters, which Netty extends.
const COUNTER: &str = "java/util/concurrent/atomic/Striped64";
const CELL: &str = "java/util/concurrent/atomic/Striped64$Cell";

/// Direct memory chunks of Netty's pools; with several copies of Netty, those of the copy that holds the most.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NettyChunksRecord {
    /// `io.netty`, or its shaded name, which prefixes its options.
    pub package: String,
    /// Number of chunks in all pools.
    pub chunks: u64,
    /// Number of chunks that are more than seven eighths allocated.
    pub full_chunks: u64,
    /// Number of chunks that are less than an eighth allocated.
    pub nearly_empty_chunks: u64,
    /// Size of all chunks and of buffers larger than a chunk.
    pub held_bytes: u64,
    /// Part that is not free: allocated, or in thread caches.
    pub used_bytes: u64,
    /// Allocated part; `null` if this version of Netty does not count it (use `used_bytes`).
    pub handed_out_bytes: Option<u64>,
}

/// Reads the chunks of all pools found; none if there is no pool. Fails if classes cannot be read, or objects move
/// during each pass.
pub fn read(memory: &dyn Memory, tables: &Tables, objects: &Objects) -> Result<NettyChunksRecord, Unavailable> {
    let (mut libraries, classes) = (Vec::new(), objects.classes());
    classes.walk(memory, |_, class| {
        let is_one = || classes.name_of(memory, class).is_some_and(|name| name.ends_with(memory, ALLOCATOR));
        if libraries.len() < LIBRARIES_MAX && is_one() {
            libraries.push(class);
        }
    })?;
    if libraries.is_empty() {
        return Ok(NettyChunksRecord::default());
    }
    let super_class = tables.offset(&["Klass::_super"])?;
    let mut pools = Pools { memory, objects, super_class, fields: HashMap::new(), proven: HashMap::new() };
    let mut once = || {
        let allocators = pools.allocators(tables, &libraries);
        pools.chunks(&allocators)
    };
    let found = (0..PASSES).filter_map(|_| once()).max_by_key(|found| found.held_bytes);
    found.ok_or_else(|| Unavailable::early(SOURCE, "Netty's pools were changing"))
}

/// Traverses Netty's objects; caches facts about their classes.
struct Pools<'a> {
    memory: &'a dyn Memory,
    objects: &'a Objects,
    super_class: u64,
    fields: HashMap<(u64, &'static str), Option<Field>>,
    /// Whether a class has this name or extends a class that does.
    proven: HashMap<(u64, &'static str), bool>,
}

impl Pools<'_> {
    /// The allocators that a static field or a thread's cache leads to.
    fn allocators(&mut self, tables: &Tables, libraries: &[u64]) -> BTreeSet<u64> {
        let (memory, objects) = (self.memory, self.objects);
        let of_library =
            |class: &u64| objects.static_object(memory, *class, &objects.classes().field(memory, *class, "DEFAULT")?);
        let mut found: BTreeSet<u64> = libraries.iter().filter_map(of_library).collect();
        found.retain(|allocator| self.is(*allocator, ALLOCATOR));
        let mut looked_at = HashSet::new();
        for (_, thread) in Threads::with_objects(memory, tables, objects, THREADS_MAX).into_iter().flatten() {
            for variable in self.variables(thread).unwrap_or_default() {
                // Most refer to the same object, which means "unset".
                if found.len() < ALLOCATORS_MAX && looked_at.insert(variable) && self.is(variable, CACHE) {
                    found.extend(self.of_cache(variable));
                }
            }
        }
        found
    }

    fn variables(&mut self, thread: u64) -> Option<Vec<u64>> {
        self.is(thread, THREAD).then_some(())?;
        let variables = self.follow(thread, "threadLocalMap", VARIABLES).filter(|of| *of != 0)?;
        self.elements(variables, "indexedVariables", VARIABLES_MAX)
    }

    fn of_cache(&mut self, cache: u64) -> Option<u64> {
        let arena = self.follow(cache, "directArena", ARENA).filter(|arena| *arena != 0)?;
        self.follow(arena, "parent", ALLOCATOR).filter(|allocator| *allocator != 0)
    }

    /// The chunks of these allocators; `None` if a reference along the way is null, or its object is being moved.
    fn chunks(&mut self, allocators: &BTreeSet<u64>) -> Option<NettyChunksRecord> {
        let (mut found, mut seen) = (BTreeMap::<String, NettyChunksRecord>::new(), HashSet::new());
        for allocator in allocators {
            for arena in self.elements(*allocator, "directArenas", ARENAS_MAX)? {
                let name = self.objects.classes().spelled(self.memory, self.objects.class_of(self.memory, arena)?)?;
                let package = name.strip_suffix(&ARENA.replace('/', "."))?.to_owned();
                let none = |package: &String| NettyChunksRecord {
                    package: package.clone(),
                    handed_out_bytes: Some(0),
                    ..Default::default()
                };
                self.add_arena(arena, found.entry(package).or_insert_with_key(none), &mut seen)?;
            }
        }
        Some(found.into_values().max_by_key(|of| of.held_bytes).unwrap_or_default())
    }

    fn add_arena(&mut self, arena: u64, of: &mut NettyChunksRecord, seen: &mut HashSet<u64>) -> Option<()> {
        for list in LISTS {
            let list = self.follow(arena, list, LIST).filter(|list| *list != 0)?;
            let mut chunk = self.follow(list, "head", CHUNK)?;
            // If a chunk has moved to another list, the walk continues in that list.
            while chunk != 0 && seen.insert(chunk) {
                (seen.len() <= CHUNKS_MAX).then_some(())?;
                self.add_chunk(chunk, of)?;
                chunk = self.follow(chunk, "next", CHUNK)?;
            }
        }
        let huge = self.count(arena, "activeBytesHuge").unwrap_or(0);
        of.held_bytes = of.held_bytes.saturating_add(huge);
        of.used_bytes = of.used_bytes.saturating_add(huge);
        of.handed_out_bytes = of.handed_out_bytes.map(|bytes| bytes.saturating_add(huge));
        Some(())
    }

    fn add_chunk(&mut self, chunk: u64, of: &mut NettyChunksRecord) -> Option<()> {
        let (bytes, free) = (self.number(chunk, "chunkSize")?, self.number(chunk, "freeBytes")?);
        let used = bytes.checked_sub(free).filter(|_| bytes > 0)?;
        let pinned = self.count(chunk, "pinnedBytes").filter(|pinned| *pinned <= bytes);
        let handed_out = pinned.unwrap_or(used);
        of.chunks += 1;
        of.full_chunks += u64::from(handed_out > bytes - bytes / EDGE);
        of.nearly_empty_chunks += u64::from(handed_out < bytes / EDGE);
        of.held_bytes = of.held_bytes.saturating_add(bytes);
        of.used_bytes = of.used_bytes.saturating_add(used);
        of.handed_out_bytes = of.handed_out_bytes.zip(pinned).map(|(sum, pinned)| sum.saturating_add(pinned));
        Some(())
    }

    /// A counter: a number itself, or the sum of a base and its cells.
    fn count(&mut self, object: u64, name: &'static str) -> Option<u64> {
        if let Some(number) = self.number(object, name) {
            return Some(number);
        }
        let counter = self.follow(object, name, COUNTER).filter(|counter| *counter != 0)?;
        let mut sum = self.number(counter, "base")?;
        for cell in self.elements(counter, "cells", CELLS_MAX)? {
            self.is(cell, CELL).then_some(())?;
            sum = sum.wrapping_add(self.number(cell, "value")?);
        }
        u64::try_from(sum.cast_signed()).ok()
    }

    /// The elements of the array that a field refers to; none if it is null.
    fn elements(&mut self, object: u64, name: &'static str, most: u32) -> Option<Vec<u64>> {
        match self.reference(object, name)? {
            0 => Some(Vec::new()),
            array => self.objects.elements(self.memory, array, most),
        }
    }

    /// The object that a field refers to, of a class with this name suffix; 0 if it is null.
    fn follow(&mut self, object: u64, name: &'static str, end: &'static str) -> Option<u64> {
        let found = self.reference(object, name)?;
        (found == 0 || self.is(found, end)).then_some(found)
    }

    fn reference(&mut self, object: u64, name: &'static str) -> Option<u64> {
        let field = self.field(object, name)?.offset;
        self.objects.reference(self.memory, object.checked_add(field)?)
    }

    fn number(&mut self, object: u64, name: &'static str) -> Option<u64> {
        let (memory, objects) = (self.memory, self.objects);
        objects.number_in(memory, object, self.field(object, name)?)
    }

    fn field(&mut self, object: u64, name: &'static str) -> Option<&Field> {
        let class = self.objects.class_of(self.memory, object)?;
        if !self.fields.contains_key(&(class, name)) {
            let mut supers = supers(self.memory, self.super_class, class);
            let field = supers.find_map(|class| self.objects.classes().field(self.memory, class, name));
            self.fields.insert((class, name), field);
        }
        self.fields.get(&(class, name))?.as_ref()
    }

    fn is(&mut self, object: u64, end: &'static str) -> bool {
        let Some(class) = self.objects.class_of(self.memory, object) else { return false };
        if let Some(is) = self.proven.get(&(class, end)) {
            return *is;
        }
        let name = |class| self.objects.classes().name_of(self.memory, class);
        let mut supers = supers(self.memory, self.super_class, class);
        let is = supers.any(|class| name(class).is_some_and(|name| name.ends_with(self.memory, end)));
        self.proven.insert((class, end), is);
        is
    }
}
