//! The evidence for an account: the JVM's replies, and the readings of its memory.

use super::malloc::musl_ranges;
use super::native::NativeMappings;
use super::tables::is_inaccessible;
use crate::observe::addresses::JvmAddresses;
use crate::observe::class_loaders::ClassLoader;
use crate::observe::code_heaps::CodeHeapRecord;
use crate::observe::elf::Image;
use crate::observe::glibc::{HEAP_MAX, HeapCandidate, MmappedChunk, Walk};
use crate::observe::heap_info::HeapInfo;
use crate::observe::hotspot::heap::HumongousRecord;
use crate::observe::hsperfdata::HeapSizes;
use crate::observe::mallocng;
use crate::observe::maps::Allocator;
use crate::observe::metaspace_nodes::MetaspaceNode;
use crate::observe::nmt::NativeMemory;
use crate::observe::pagemap::Run;
use crate::observe::smaps::{Smaps, WeighedMapping};
use crate::observe::stacks::ThreadStack;
use std::collections::BTreeMap;

/// The JVM's replies and the contents of its files; `None` or empty if there is no value.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// Address ranges, and the size of a heap region.
    pub info: Option<JvmAddresses>,
    /// The metaspace nodes, which contain class metadata.
    pub nodes: Vec<MetaspaceNode>,
    /// Metaspace of classes whose loaders may be garbage, in bytes.
    pub unloadable: Option<u64>,
    /// The class loaders with their sizes in bytes; `None` if the sizes are unknown.
    pub loaders: Option<Vec<ClassLoader>>,
    /// How full the code cache is, by segment.
    pub code_heaps: Vec<CodeHeapRecord>,
    /// The Java heap.
    pub heap: Option<HeapInfo>,
    /// Whether the JVM did not report its memory layout, so its areas look like any other anonymous memory.
    pub unanswered: bool,
    /// Heap sizes from the JVM's counters, which locate the heap if nothing else does.
    pub heap_sizes: Option<HeapSizes>,
    /// G1's humongous objects, which have their own regions; `None` if unknown.
    pub humongous: Option<HumongousRecord>,
    /// Native memory by category, if it is tracked.
    pub nmt: Option<NativeMemory>,
    /// Direct memory, in bytes.
    pub direct: Option<u64>,
    /// Bytes that the last collection left in the heap; `None` if there has been no collection.
    pub left_by_last_gc: Option<u64>,
    /// Full collections so far, if known.
    pub full_collections: Option<u64>,
    /// The feature release of the JDK, if known.
    pub release: Option<u32>,
    /// The flags that size the Java heap after a full collection.
    pub sizing: Sizing,
    /// The loaded libraries.
    pub images: Vec<Image>,
    /// Names of threads by id.
    pub thread_names: BTreeMap<u32, String>,
}

/// How the Java heap is sized after a full collection. `None` means the JVM's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizing {
    /// The minimum heap size (`MinHeapSize`, `-Xms`), in bytes.
    pub heap_min: Option<u64>,
    /// `MaxHeapFreeRatio`, in percent.
    pub max_free_ratio: Option<u64>,
    /// `OldSize`, below which the old generation does not shrink, in bytes.
    pub old_size: Option<u64>,
    /// `NewSize`, the same for the young generation.
    pub new_size: Option<u64>,
    /// `ShrinkHeapInSteps`.
    pub shrinks: Shrinks,
    /// `ExplicitGCInvokesConcurrent`.
    pub explicit: Explicit,
}

/// How fast Serial frees unneeded heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shrinks {
    /// Nothing in the first full collection, then 10, 40, and 100% of that heap.
    #[default]
    InSteps,
    /// All of that heap.
    AtOnce,
}

/// The kind of collection that `GC.run` starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Explicit {
    /// A full collection that stops the program.
    #[default]
    Stops,
    /// A concurrent cycle of G1.
    Concurrent,
}

/// Readings of the process itself, taken in as short a time as possible.
#[derive(Debug, Clone, Default)]
pub struct ProcessReadings {
    /// The kernel's weights.
    pub smaps: Smaps,
    /// The allocator that provides `malloc`.
    pub allocator: Option<Allocator>,
    /// Present or swapped pages, by the index of their mapping; only for the mappings whose pages were read.
    pub pages: BTreeMap<usize, Vec<Run>>,
    /// Candidates for malloc heaps, each with the indices of its mappings.
    pub candidates: Vec<(HeapCandidate, Vec<usize>)>,
    /// The walk of the candidates; `None` if memory could not be read.
    pub walk: Option<Walk>,
    /// The walk of musl's malloc, or why it was refused; `None` if malloc is not musl's.
    pub musl: Option<Result<mallocng::Walk, &'static str>>,
    /// malloc chunks with their own mapping, by that mapping.
    pub chunks: BTreeMap<usize, Vec<MmappedChunk>>,
    /// The threads with their stack pointers.
    pub stacks: Vec<ThreadStack>,
    /// Memory mapped by libraries other than the JVM's.
    pub native: NativeMappings,
}

impl ProcessReadings {
    /// Ranges that a walk found to be malloc's and that may share a mapping with other memory, disjoint and in address
    /// order: musl's groups, and glibc's heaps except for the main one.
    pub fn malloc_ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges = self.musl_walk().map(musl_ranges).unwrap_or_default();
        ranges.extend(self.heaps().map(|(_, range)| range));
        ranges.sort_unstable();
        ranges
    }

    /// The ranges of glibc's main heap.
    pub fn main_heaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let candidates = self.candidates.iter().map(|(candidate, _)| candidate);
        candidates.filter(|candidate| candidate.main).map(|main| (main.start, main.end))
    }

    /// The mapped parts of glibc's heaps except for the main one, walked or not, by candidate index.
    pub(super) fn heaps(&self) -> impl Iterator<Item = (usize, (u64, u64))> {
        let walks = self.walk.iter().flat_map(|walk| {
            let walked = walk.heaps.iter().map(|heap| heap.index);
            walked.chain(walk.errors.iter().map(|error| error.index))
        });
        let unread = self.walk.is_none() && self.allocator == Some(Allocator::Glibc);
        let shaped = (0..self.candidates.len()).filter(move |index| unread && self.is_shaped_as_heap(*index));
        walks.chain(shaped).filter(|index| !self.candidates[*index].0.main).map(|index| {
            let (candidate, mappings) = &self.candidates[index];
            let mapped = mappings.iter().map(|mapping| self.smaps.mappings[*mapping].mapping.end).max();
            (index, (candidate.start, candidate.end.min(mapped.unwrap_or(candidate.end))))
        })
    }

    /// Whether a candidate has the layout of `new_heap` (glibc 2.12 to 2.43, `malloc/arena.c`): `HEAP_MAX` reserved,
    /// with an accessible beginning.
    fn is_shaped_as_heap(&self, index: usize) -> bool {
        let (candidate, mappings) = &self.candidates[index];
        let Some(last) = mappings.last() else { return false };
        let end = self.smaps.mappings[*last].mapping.end;
        self.smaps.mappings.get(last + 1).is_some_and(|WeighedMapping { mapping: hole, .. }| {
            hole.start == end && is_inaccessible(hole) && candidate.start + HEAP_MAX <= hole.end
        })
    }

    /// The walk of musl's malloc, if malloc is musl's and was walked.
    pub(super) fn musl_walk(&self) -> Option<&mallocng::Walk> {
        self.musl.as_ref()?.as_ref().ok()
    }
}
