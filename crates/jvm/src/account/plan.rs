//! Cuts the mappings along the claims, and lists the readings needed to find the owners of the rest.

use super::claims::{Claim, Claims};
use super::native;
use crate::kernel::mapping::Mapping;
use crate::observe::glibc::HEAP_MAX;
use crate::observe::smaps::Smaps;
use crate::owner::Owner;

/// A stretch of one mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// The claim on it; `None` if no owner claims it yet.
    pub claim: Option<Claim>,
}

/// The reading that a mapping needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// None: one owner owns all of it.
    None,
    /// Which pages are present, because several owners share it.
    Pages,
    /// Whether it is a malloc heap, and what it contains.
    Heap,
    /// Whether the unclaimed parts contain malloc chunks with their own mappings.
    Chunks,
}

/// A mapping with resident or swapped pages, cut along the claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Index into the mappings.
    pub index: usize,
    /// Its stretches, in address order; together, they cover it.
    pub segments: Vec<Segment>,
    /// The reading that it needs.
    pub question: Question,
}

impl Planned {
    /// Returns the unowned addresses at which a glibc heap may begin. All heaps but the main one are aligned to their
    /// maximum size.
    pub fn heap_starts(&self, mapping: &Mapping) -> Vec<u64> {
        if !mapping.perms.starts_with("rw") || mapping.inode != 0 {
            return Vec::new();
        }
        let free = self.segments.iter().filter(|segment| segment.claim.is_none());
        let within = |segment: &Segment| {
            let first = segment.start.checked_next_multiple_of(HEAP_MAX).unwrap_or(segment.end);
            (first..segment.end).step_by(HEAP_MAX as usize)
        };
        free.flat_map(within).collect()
    }
}

/// The mappings with resident or swapped pages, each cut along the claims, with the reading that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountPlan {
    /// In address order.
    pub mappings: Vec<Planned>,
}

impl AccountPlan {
    /// Cuts the mappings with resident or swapped pages along the claims.
    pub fn new(smaps: &Smaps, claims: &Claims) -> Self {
        let holding = smaps.mappings.iter().enumerate().filter(|(_, weighed)| {
            let weight = &weighed.weight;
            weight.rss.0 > 0 || weight.swap.0 > 0
        });
        let mappings = holding.map(|(index, weighed)| {
            let mapping = &weighed.mapping;
            let segments = cut(mapping, claims.within(mapping.start, mapping.end));
            let question = question(mapping, &segments);
            Planned { index, segments, question }
        });
        Self { mappings: mappings.collect() }
    }
}

/// The segments of a mapping: claimed ones, and those between them. The latter get the claim implied by the mapping's
/// own name, if any.
fn cut(mapping: &Mapping, claims: &[Claim]) -> Vec<Segment> {
    let own = own_claim(mapping);
    let mut segments = Vec::new();
    let mut at = mapping.start;
    let mut push = |start: u64, end: u64, claim: Option<Claim>| {
        if start < end {
            segments.push(Segment { start, end, claim });
        }
    };
    for claim in claims {
        push(at, claim.start.max(at), own.clone());
        let (start, end) = (claim.start.max(mapping.start), claim.end.min(mapping.end));
        push(start, end, Some(claim.clone()));
        at = end;
    }
    push(at, mapping.end, own);
    segments
}

fn own_claim(mapping: &Mapping) -> Option<Claim> {
    let claim = |owner, kind, name: &str| Some(Claim::new(mapping.start, mapping.end, owner, kind, name));
    let name = mapping.file_name();
    match &*mapping.path {
        "" | "[heap]" => None,
        "[stack]" => claim(Owner::ThreadStacks, "thread", "main (launcher)"),
        path if path.starts_with("[anon") => None,
        path if path.starts_with("anon_inode:") => {
            let kind = path.trim_start_matches("anon_inode:").trim_matches(['[', ']']);
            claim(Owner::Native, "library", &native::named_by_kernel(kind))
        }
        path if path.starts_with('[') => claim(Owner::Libraries, "file", path),
        path if path.starts_with("/memfd:java_heap") => claim(Owner::JavaHeap, "file", path),
        _ if name.ends_with(".jsa") => claim(Owner::Cds, "file", &mapping.path),
        _ if name == "libjvm.so" => claim(Owner::Libjvm, "file", &mapping.path),
        _ if is_library(name) => claim(Owner::Libraries, "file", &mapping.path),
        path => claim(Owner::MappedFiles, "file", path),
    }
}

/// `libz.so.1.2.13`, `ld-linux-x86-64.so.2`, and the launcher itself.
pub(super) fn is_library(name: &str) -> bool {
    name.ends_with(".so") || name.contains(".so.") || name == "java"
}

fn question(mapping: &Mapping, segments: &[Segment]) -> Question {
    let unclaimed = segments.iter().any(|segment| segment.claim.is_none());
    let writable = mapping.perms.starts_with("rw");
    match segments {
        _ if &*mapping.path == "[heap]" => Question::Heap,
        [one] if one.claim.is_some() => Question::None,
        [_] if writable && may_be_heap(mapping) => Question::Heap,
        _ if unclaimed => Question::Chunks,
        _ => Question::Pages,
    }
}

/// Whether the mapping may be a glibc heap: all but the main one are aligned to their maximum size.
fn may_be_heap(mapping: &Mapping) -> bool {
    mapping.start.is_multiple_of(HEAP_MAX) && mapping.size().0 <= HEAP_MAX && mapping.inode == 0
}
