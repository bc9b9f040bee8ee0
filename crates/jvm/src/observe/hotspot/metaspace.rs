//! The nodes of metaspace, the address ranges from which it takes memory (`virtualSpaceList.hpp`,
//! `virtualSpaceNode.hpp`, JDK 17–25; metaspace was different before JDK 16), as `VM.metaspace vslist` lists them.
//!
//! HotSpot describes none of it to debuggers. So reading starts at the symbols of the two contexts, and every structure
//! must be verifiable. The context and the list contain their names. A node contains its range twice, and a bitmap of
//! its committed granules. The list contains the number of nodes, and their reserved and committed totals.
//!
//! ```text
//! MetaspaceContext  name, list, chunks
//! VirtualSpaceList  (table), name, first node, count (32 bits) …, limit, reserved words, committed words
//! VirtualSpaceNode  next, base, bytes, … base, words, words in use, committed granules: bitmap, number of bits
//! ```

use super::super::Unavailable;
use super::super::memory::Memory;
use super::super::metaspace_nodes::MetaspaceNode;
use super::super::text::ADDRESS_END;
use super::SOURCE;
use super::fields::{absurd, unread};
use loadline_base::units::Bytes;

/// The symbols of both contexts, and the names that they contain.
pub(super) const CONTEXTS: [&str; 2] = [
    "_ZN9metaspace16MetaspaceContext20_class_space_contextE",
    "_ZN9metaspace16MetaspaceContext23_nonclass_space_contextE",
];
const NAMES: [&str; 2] = ["class-space", "non-class-space"];

/// 64 MiB each: 4 TiB of metadata.
const NODES_MAX: u32 = 1 << 16;
/// The memory per bit in a node's bitmap, in bytes (`Settings::commit_granule_bytes`).
const GRANULE: u64 = 64 << 10;
/// The class space is the largest node; it is at most 4 GiB, and this limit leaves a margin.
const NODE_BYTES_MAX: u64 = 16 << 30;
/// The largest chunk, of level 0; each further level halves the size (`chunklevel.hpp`).
const CHUNK_BYTES_MAX: u64 = 16 << 20;
/// Chunks of 1 KiB.
const LEVEL_MAX: u64 = 14;
/// Maximum number of chunks per loader: 16 GiB in chunks of 16 KiB.
const CHUNKS_MAX: u32 = 1 << 20;
/// The words of a node, after the reserved space, in which a field may repeat its range.
const AGAIN_WORDS: std::ops::Range<u64> = 4..16;

/// Reads the nodes that contain class metadata, by address. `contexts` are the addresses of the variables in
/// `CONTEXTS`. Fails if the library was stripped, or the structures at these addresses cannot be verified.
pub fn nodes(memory: &dyn Memory, contexts: [Option<u64>; 2]) -> Result<Vec<MetaspaceNode>, Unavailable> {
    let stripped = || Unavailable::new(SOURCE, "the metaspace symbols were stripped from libjvm.so");
    let mut nodes = Vec::new();
    for (n, (variable, name)) in contexts.into_iter().zip(NAMES).enumerate() {
        let context = memory.u64(variable.ok_or_else(stripped)?).ok_or_else(unread)?;
        let class_space = n == 0;
        match context {
            // Without compressed class pointers there is no class space.
            0 if class_space => {}
            _ => nodes.extend(list(memory, context, name, class_space)?),
        }
    }
    nodes.sort_unstable_by_key(|node| node.start);
    let apart = nodes.windows(2).all(|pair| pair[0].end <= pair[1].start);
    if !apart { Err(absurd("metaspace")) } else { Ok(nodes) }
}

/// The chunks that loaders have taken from both spaces, checked against the nodes.
///
/// ```text
/// ClassLoaderData       …, loader, metaspace
/// ClassLoaderMetaspace  lock, type, arena, arena of the class space
/// MetaspaceArena        (lock), chunks of the context, policy, first chunk, number of chunks
/// Metachunk             base, words in use, words committed, level (8 bits) …, node, previous, next
/// ```
pub struct Chunks<'a> {
    memory: &'a dyn Memory,
    nodes: &'a [MetaspaceNode],
    /// The chunk managers of both contexts, which keep free chunks; an arena refers to the one it uses.
    managers: [Option<u64>; 2],
}

/// Metaspace taken by a loader, committed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoaderSpace {
    /// Bytes of all its chunks.
    pub bytes: u64,
    /// Bytes in use in these chunks.
    pub used_bytes: u64,
}

impl<'a> Chunks<'a> {
    /// Starts reading; `contexts` and `nodes` as in [`nodes`].
    pub fn of(memory: &'a dyn Memory, contexts: [Option<u64>; 2], nodes: &'a [MetaspaceNode]) -> Self {
        let manager = |variable: Option<u64>| {
            let context = memory.u64(variable?).filter(|context| *context != 0)?;
            memory.u64(context.checked_add(16)?)
        };
        Self { memory, nodes, managers: contexts.map(manager) }
    }

    /// All chunks of a `ClassLoaderMetaspace`. Fails if one of its arenas or chunks cannot be verified.
    pub fn of_loader(&self, metaspace: u64) -> Result<LoaderSpace, Unavailable> {
        let [class_space, others] = self.managers;
        let arenas = [(2, others), (3, class_space)];
        let mut taken = LoaderSpace::default();
        for (n, manager) in arenas {
            let one = match self.word(metaspace, n) {
                Some(0) => Some(LoaderSpace::default()),
                arena => arena.zip(manager).and_then(|(arena, manager)| self.arena(arena, manager)),
            };
            let one = one.ok_or_else(|| absurd("the metaspace of a loader"))?;
            taken = LoaderSpace { bytes: taken.bytes + one.bytes, used_bytes: taken.used_bytes + one.used_bytes };
        }
        Ok(taken)
    }

    fn arena(&self, arena: u64, manager: u64) -> Option<LoaderSpace> {
        (self.word(arena, 1)? == manager).then_some(())?;
        let (mut chunk, count) = (self.word(arena, 3)?, self.word(arena, 4)? as u32);
        (count <= CHUNKS_MAX).then_some(())?;
        let mut taken = LoaderSpace::default();
        for _ in 0..count {
            let (base, level) = (self.word(chunk, 0)?, self.word(chunk, 3)? & 0xff);
            let size = CHUNK_BYTES_MAX >> Some(level).filter(|level| *level <= LEVEL_MAX)?;
            let end = base.checked_add(size)?;
            let inside = self.nodes.iter().any(|node| node.start <= base && end <= node.end);
            (inside && base.is_multiple_of(size)).then_some(())?;
            let used = self.word(chunk, 1)?.checked_mul(8).filter(|used| *used <= size)?;
            taken = LoaderSpace { bytes: taken.bytes + size, used_bytes: taken.used_bytes + used };
            chunk = self.word(chunk, 6)?;
        }
        // The list must end after as many chunks as the arena counts.
        (chunk == 0).then_some(taken)
    }

    fn word(&self, object: u64, n: u64) -> Option<u64> {
        self.memory.u64(object.checked_add(8 * n)?)
    }
}

fn list(memory: &dyn Memory, context: u64, name: &str, class_space: bool) -> Result<Vec<MetaspaceNode>, Unavailable> {
    let word = |object: u64, n: u64| object.checked_add(8 * n).and_then(|at| memory.u64(at)).ok_or_else(unread);
    let unknown = || Unavailable::new(SOURCE, "its list of metaspace nodes has an unknown format");
    let list = word(context, 1)?;
    for (object, n) in [(context, 0), (list, 1)] {
        let said = memory.text(word(object, n)?);
        said.filter(|said| said == name).ok_or_else(unknown)?;
    }
    let (count, reserved, committed) = (word(list, 3)? as u32, word(list, 5)?, word(list, 6)?);
    if count > NODES_MAX {
        return Err(unknown());
    }
    let mut nodes = Vec::new();
    let mut at = word(list, 2)?;
    while at != 0 && nodes.len() < count as usize {
        nodes.push(node(memory, at, class_space).ok_or_else(unknown)?);
        at = word(at, 0)?;
    }
    let sum = |bytes: &dyn Fn(&MetaspaceNode) -> u64| nodes.iter().map(bytes).fold(0, u64::saturating_add);
    let all_reserved = sum(&|node| node.end - node.start) == reserved.saturating_mul(8);
    let all_committed = sum(&|node| node.committed.0) == committed.saturating_mul(8);
    let whole = at == 0 && nodes.len() == count as usize && all_reserved && all_committed;
    if whole { Ok(nodes) } else { Err(absurd("its list of metaspace nodes")) }
}

/// A node, if its redundant values agree.
fn node(memory: &dyn Memory, node: u64, class_space: bool) -> Option<MetaspaceNode> {
    let word = |n: u64| memory.u64(node.checked_add(8 * n)?);
    let (start, bytes) = (word(1)?, word(2)?);
    let end = start.checked_add(bytes)?;
    let plausible = bytes > 0 && bytes <= NODE_BYTES_MAX && end <= ADDRESS_END;
    (plausible && start.is_multiple_of(GRANULE) && bytes.is_multiple_of(GRANULE)).then_some(())?;
    let again = AGAIN_WORDS.into_iter().find(|n| word(*n) == Some(start) && word(n + 1) == Some(bytes / 8))?;
    let (bitmap, bits) = (word(again + 3)?, word(again + 4)?);
    (bits == bytes / GRANULE).then_some(())?;
    let mut map = vec![0; bits.div_ceil(64) as usize * 8];
    memory.read(bitmap, &mut map).then_some(())?;
    let granules: u64 = map.iter().map(|byte| u64::from(byte.count_ones())).sum();
    Some(MetaspaceNode { start, end, committed: Bytes(granules * GRANULE), class_space })
}
