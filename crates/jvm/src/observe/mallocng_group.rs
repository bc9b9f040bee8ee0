//! Groups of musl's malloc and their slots (mallocng of musl 1.2.1–1.2.5: `struct meta`, `struct group`, `get_stride`,
//! `get_nominal_size`, `enframe` in `src/malloc/mallocng/meta.h`, `size_classes` in `malloc.c`).
//!
//! A group has up to 32 slots of one size after a header that refers to its meta; the meta records which slots are
//! free. A slot in use contains a chunk, or a whole group of smaller slots, which is walked on the spot.

use super::glibc::Chunks;
use super::memory::{Memory, number};
use super::nmt_header::{self, Tag};
use super::pagemap::Run;
use super::pages::Pages;
use std::collections::BTreeSet;
use std::ops::AddAssign;

/// `UNIT`: the unit of sizes and offsets, and the size of a group's header.
const UNIT: u64 = 16;
/// `IB`: bytes before each chunk, which belong to the previous slot.
const IB: u64 = 4;
/// The size and alignment of `struct meta_area`, and the unit of `maplen`: a constant in musl, whatever the machine's
/// page size.
const AREA: u64 = 4096;
/// `size_classes`, in units.
const SIZE_CLASSES: [u64; 48] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18, 20, 25, 31, 36, 42, 50, 63, 72, 84, 102, 127, 146, 170, 204, 255, 292,
    340, 409, 511, 584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191,
];
/// The size class of a chunk with its own mapping.
const ALONE: u8 = 63;
/// The slots of a group take less than 65,536 units, and page rounding at most 64 KiB: in units of 4 KiB.
const GROUP_PAGES_MAX: u64 = 512;
/// Marks a chunk that starts later in its slot: `7 << 5` in the slot's own header.
const STARTS_LATER: u64 = 7 << 5;
/// Marks a slot that contains a group.
const HOLDS_GROUP: u64 = 6;
/// Marks a chunk whose unused bytes are counted at the end of its slot.
const COUNTED_BEHIND: u64 = 5;

const NOT_NAMED: &str = "a group that does not point to its meta";

/// The sizes that the program requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedAmount {
    /// Chunks in use whose headers contain the requested size, including those with their own mapping.
    pub count: u64,
    /// Bytes requested in them, without rounding.
    pub bytes: u64,
}

impl AddAssign for RequestedAmount {
    fn add_assign(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// A `struct meta` in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meta {
    /// Its own address.
    pub(super) at: u64,
    pub(super) group: u64,
    /// A bit for each free slot: `avail_mask | freed_mask`.
    free: u32,
    /// Number of slots.
    count: u64,
    /// False if the loader donated the memory to malloc.
    freeable: bool,
    class: u8,
    /// Number of 4 KiB units mapped for it; 0 for a group in a slot or in a library's data.
    pub(super) pages: u64,
}

impl Meta {
    /// `sizeof (struct meta)`.
    pub(super) const SIZE: usize = 40;

    /// `None` if it has no group.
    pub(super) fn parse(at: u64, bytes: &[u8]) -> Option<Self> {
        let word = |n: usize| bytes.get(8 * n..8 * n + 8).map(number);
        let (group, masks, bits) = (word(2)?, word(3)?, word(4)?);
        (group != 0).then_some(Self {
            at,
            group,
            free: masks as u32 | (masks >> 32) as u32,
            count: (bits & 31) + 1,
            freeable: bits >> 5 & 1 == 1,
            class: (bits >> 6 & 63) as u8,
            pages: bits >> 12,
        })
    }

    /// The meta at this address, whose page must be present.
    pub(super) fn read(memory: &dyn Memory, at: u64) -> Option<Self> {
        let mut bytes = [0; Self::SIZE];
        if memory.read(at, &mut bytes) { Self::parse(at, &bytes) } else { None }
    }

    pub(super) fn is_nested(&self) -> bool {
        self.pages == 0 && self.freeable
    }

    /// Whether its group is a single chunk with its own mapping.
    pub(super) fn is_alone(&self) -> bool {
        self.class == ALONE
    }

    /// The end address of its mapping, if it has one.
    pub(super) fn end(&self) -> Option<u64> {
        self.group.checked_add(self.pages.checked_mul(AREA)?).filter(|end| *end > self.group && *end < 1 << 56)
    }

    /// Bytes from one slot to the next; `None` for an invalid class.
    fn stride(&self) -> Option<u64> {
        match self.pages {
            1.. if self.count == 1 => self.pages.checked_mul(AREA)?.checked_sub(UNIT),
            _ => SIZE_CLASSES.get(usize::from(self.class)).map(|units| units * UNIT),
        }
    }

    /// The end address of the group. Fails if it cannot be a group; the error says why.
    pub(super) fn check(&self) -> Result<u64, &'static str> {
        let all = (2u64 << (self.count - 1)) - 1;
        if u64::from(self.free) & !all != 0 {
            return Err("a group with more free slots than slots");
        }
        let stride = self.stride().ok_or("a group with an invalid size class")?;
        let needed = stride.checked_mul(self.count).and_then(|slots| slots.checked_add(UNIT));
        let slots_end = needed.and_then(|needed| self.group.checked_add(needed));
        let end = if self.pages > 0 { self.end() } else { slots_end };
        let impossible = "a group with an impossible size";
        let end = end.filter(|end| slots_end.is_some_and(|slots| slots <= *end)).ok_or(impossible)?;
        let fits = match self.is_alone() {
            true => self.count == 1 && self.pages > 0 && self.free == 0,
            false => self.pages <= GROUP_PAGES_MAX,
        };
        let aligned = self.group.is_multiple_of(if self.pages > 0 { AREA } else { UNIT });
        if fits && aligned { Ok(end) } else { Err(impossible) }
    }
}

/// The result of walking a group, including the groups in its slots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupWalk {
    /// First address.
    pub start: u64,
    /// End address of its mapping, exclusive.
    pub end: u64,
    /// Number of groups: itself and those in its slots.
    pub groups: u64,
    /// Slots in use without an NMT header, plus musl's own overhead: headers, and memory after the last slot.
    pub live: Chunks,
    /// Slots in use with an NMT header, by NMT's tag number, in ascending order.
    pub tagged: Vec<(u8, Chunks)>,
    /// Free slots.
    pub free: Chunks,
    /// Resident bytes of completely free pages.
    pub free_pages: u64,
}

/// A group with everything else found in its headers.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) group: GroupWalk,
    pub(super) asked: RequestedAmount,
    /// Slots in use with implausible headers: paused inside malloc or free, or misread.
    pub(super) torn: u64,
    /// For a chunk with its own mapping: its tag, if it has one.
    pub(super) mmapped: Option<Option<Tag>>,
}

/// Walks a checked group that ends at `end`. `runs` are its pages, `areas` the addresses of all meta areas. Fails if
/// the group, or one in its slots, does not belong to its meta; the error says which.
pub(super) fn walk(
    memory: &dyn Memory,
    runs: &[Run],
    areas: &BTreeSet<u64>,
    meta: &Meta,
    end: u64,
) -> Result<Walked, &'static str> {
    let group = GroupWalk { start: meta.group, end, ..GroupWalk::default() };
    let found = Walked { group, ..Walked::default() };
    let mut walker = GroupWalker { memory, areas, pages: Pages::new(memory, runs), found, hole: None };
    if meta.is_alone() {
        walker.alone(meta)?;
    } else {
        walker.slots(meta, end)?;
        walker.close_hole();
    }
    Ok(walker.found)
}

enum Slot {
    /// A chunk: its start, and the requested bytes, unless their count is swapped out.
    Chunk(u64, Option<u64>),
    Group(u64),
    /// Unknown, because its header is implausible.
    Torn,
    /// Unknown, because its header is swapped out.
    Unread,
}

struct GroupWalker<'a> {
    memory: &'a dyn Memory,
    areas: &'a BTreeSet<u64>,
    pages: Pages<'a>,
    found: Walked,
    /// The free stretch that ends at the current position.
    hole: Option<(u64, u64)>,
}

impl GroupWalker<'_> {
    /// The only slot of a chunk with its own mapping.
    fn alone(&mut self, meta: &Meta) -> Result<(), &'static str> {
        self.named_by(meta)?;
        let end = meta.check()?;
        let tag = match self.slot(meta, 0, meta.group + UNIT, end - IB) {
            Slot::Chunk(at, asked) => {
                self.found.asked += RequestedAmount { count: 1, bytes: asked.unwrap_or_default() };
                asked.and_then(|asked| self.tag(at, asked))
            }
            _ => None,
        };
        self.found.mmapped = Some(tag);
        Ok(())
    }

    /// The group's header must refer to the meta that refers to the group.
    fn named_by(&mut self, meta: &Meta) -> Result<(), &'static str> {
        let header = self.pages.unit(meta.group).ok_or("a group whose header is not in memory")?;
        if header.0 == meta.at { Ok(()) } else { Err(NOT_NAMED) }
    }

    /// Walks all slots of a group, whose memory ends at `end`.
    fn slots(&mut self, meta: &Meta, end: u64) -> Result<(), &'static str> {
        self.named_by(meta)?;
        let stride = meta.stride().ok_or(NOT_NAMED)?;
        self.found.group.groups += 1;
        self.own(meta.group, meta.group + UNIT);
        for index in 0..meta.count {
            let start = meta.group + UNIT + index * stride;
            let next = start + stride;
            if meta.free >> index & 1 == 1 {
                self.free(start, next);
                continue;
            }
            match self.slot(meta, index, start, next - IB) {
                Slot::Group(at) => self.nested(meta, start, at, next)?,
                Slot::Chunk(at, asked) => {
                    self.found.asked += RequestedAmount { count: 1, bytes: asked.unwrap_or_default() };
                    let tag = asked.and_then(|asked| self.tag(at, asked));
                    self.live(start, next, tag);
                }
                Slot::Torn => {
                    self.found.torn += 1;
                    self.live(start, next, None);
                }
                Slot::Unread => self.live(start, next, None),
            }
        }
        // The memory after the last slot is never used for slots.
        self.own(meta.group + UNIT + meta.count * stride, end);
        Ok(())
    }

    /// A group in the slot `[start, end)` of a larger class, which limits the nesting depth.
    fn nested(&mut self, outer: &Meta, start: u64, at: u64, end: u64) -> Result<(), &'static str> {
        let header = self.pages.unit(at).ok_or("a group whose header is not in memory")?;
        let known = self.areas.contains(&(header.0 & !(AREA - 1))) && header.0 % AREA <= AREA - Meta::SIZE as u64;
        let meta = if known { Meta::read(self.memory, header.0) } else { None };
        let meta = meta.filter(|meta| meta.group == at && meta.is_nested() && meta.class < outer.class);
        let meta = meta.ok_or("a slot with a group whose meta does not point to it")?;
        if meta.check()? > end {
            return Err("a group larger than the slot that holds it");
        }
        self.own(start, at);
        self.slots(&meta, end)
    }

    /// Returns the content of the used slot at `start`; its chunk ends at `end` or earlier.
    fn slot(&mut self, meta: &Meta, index: u64, start: u64, end: u64) -> Slot {
        let Some(first) = self.pages.unit(start - UNIT) else { return Slot::Unread };
        let at = start - UNIT + first_chunk(first.1);
        if at >= end {
            return Slot::Torn;
        }
        let Some((_, high)) = self.pages.unit(at - UNIT) else { return Slot::Unread };
        let (bytes, short) = header(high);
        // An offset that does not fit in 16 bits is stored before the header, marked by a byte.
        let offset = if bytes & 0xff == 0 { short } else { high & 0xffff_ffff };
        let (own_index, unused) = (bytes >> 8 & 31, bytes >> 13 & 7);
        if own_index != index || offset.checked_mul(UNIT) != at.checked_sub(meta.group + UNIT) {
            return Slot::Torn;
        }
        match unused {
            HOLDS_GROUP => Slot::Group(at),
            COUNTED_BEHIND => match self.pages.unit(end - (UNIT - IB)) {
                None => Slot::Chunk(at, None),
                Some((_, high)) => match (end - at).checked_sub(high & 0xffff_ffff) {
                    Some(asked) if high & 0xffff_ffff >= COUNTED_BEHIND => Slot::Chunk(at, Some(asked)),
                    _ => Slot::Torn,
                },
            },
            0..COUNTED_BEHIND => {
                (end - at).checked_sub(unused).map_or(Slot::Torn, |asked| Slot::Chunk(at, Some(asked)))
            }
            _ => Slot::Torn,
        }
    }

    /// NMT's header at the start of a chunk.
    fn tag(&mut self, at: u64, asked: u64) -> Option<Tag> {
        let (low, high) = self.pages.unit(at)?;
        nmt_header::tag_exact(low, high, asked)
    }

    /// Counts memory that musl needs for itself.
    fn own(&mut self, start: u64, end: u64) {
        self.close_hole();
        self.found.group.live += Chunks::within(&mut self.pages, start, end);
    }

    fn live(&mut self, start: u64, end: u64, tag: Option<Tag>) {
        self.close_hole();
        let asked = tag.map_or(0, |tag| tag.asked);
        let chunks = Chunks { count: 1, asked, ..Chunks::within(&mut self.pages, start, end) };
        let Some(tag) = tag else { return self.found.group.live += chunks };
        let tagged = &mut self.found.group.tagged;
        match tagged.binary_search_by_key(&tag.number, |(number, _)| *number) {
            Ok(known) => tagged[known].1 += chunks,
            Err(place) => tagged.insert(place, (tag.number, chunks)),
        }
    }

    fn free(&mut self, start: u64, end: u64) {
        self.found.group.free += Chunks { count: 1, ..Chunks::within(&mut self.pages, start, end) };
        match &mut self.hole {
            Some(hole) => hole.1 = end,
            None => self.hole = Some((start, end)),
        }
    }

    /// Counts the whole pages of a free stretch that ends here.
    fn close_hole(&mut self) {
        let Some((start, end)) = self.hole.take() else { return };
        let (first, last) = (self.pages.boundary(start), self.pages.boundary_before(end));
        if first < last {
            let whole = self.pages.backed(first, last).0;
            self.found.group.free_pages = self.found.group.free_pages.saturating_add(whole);
        }
    }
}

/// The four bytes before a slot, in the upper half of a word: two flag bytes, and a 16-bit offset in units.
fn header(high: u64) -> (u64, u64) {
    (high >> 32 & 0xffff, high >> 48)
}

/// Returns the start of a slot's chunk, in bytes from the unit before the slot. `high` is the upper half of that unit.
pub(super) fn first_chunk(high: u64) -> u64 {
    let (bytes, offset) = header(high);
    UNIT + if bytes >> 8 == STARTS_LATER { UNIT * offset } else { 0 }
}
