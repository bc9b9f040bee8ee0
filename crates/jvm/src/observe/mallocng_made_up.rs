//! A process on musl generated from a plan of arbitrary bytes, as `enframe`, `set_size`, `alloc_group`, and
//! `alloc_meta` of musl 1.2.3 would write it; for tests and fuzzing only. The expected walk is recorded with it.
//!
//! [`MadeUpHeap::read`] checks the most basic invariant: absent pages are never read.

use super::hotspot::made_up::{self, PAGE, PlanBytes};
use super::mallocng::{Context, Walk, Walker, find};
use super::memory::Memory;
use super::pagemap::Run;
use std::collections::BTreeSet;

pub(super) const SECRET: u64 = 0x5ec2_e7b9_01d4_a86f;
/// The C library's data, with the context near the end of its first page.
pub(super) const DATA: u64 = 0x7f10_0000_0000;
const CONTEXT: u64 = DATA + PAGE - 48;
const AREAS: u64 = 0x7f20_0000_0000;
const GROUPS: u64 = 0x7f30_0000_0000;
const METAS: u64 = 101;
/// `size_classes`, in units of 16 bytes.
const CLASSES: [u64; 48] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18, 20, 25, 31, 36, 42, 50, 63, 72, 84, 102, 127, 146, 170, 204, 255, 292,
    340, 409, 511, 584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191,
];
/// Maximum size of a planned group, to keep tests fast.
const GROUP_MAX: u64 = 160 << 10;
const DEPTH_MAX: u32 = 3;

/// The planted counts and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Truth {
    pub(super) chunks: u64,
    pub(super) asked: u64,
    pub(super) tagged: u64,
    pub(super) tagged_asked: u64,
    pub(super) free: u64,
    pub(super) groups: u64,
    pub(super) alone: u64,
}

/// Memory whose pages may be swapped out; pages that were never written are absent.
#[derive(Debug, Clone, Default)]
pub(super) struct MadeUpHeap {
    pub(super) memory: made_up::MadeUpMemory,
    swapped: BTreeSet<u64>,
    pub(super) truth: Truth,
    /// The address of each group that is not nested, and of its meta.
    pub(super) tops: Vec<(u64, u64)>,
    metas: u64,
    end: u64,
}

impl Memory for MadeUpHeap {
    fn page(&self) -> u64 {
        self.memory.page()
    }

    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        for page in (at & !(PAGE - 1)..at + into.len() as u64).step_by(PAGE as usize) {
            let is_present = self.memory.pages.contains_key(&page) && !self.swapped.contains(&page);
            assert!(is_present, "{page:#x} is not present and was read");
        }
        self.memory.read(at, into)
    }
}

impl MadeUpHeap {
    /// Generates the heap from this plan; `constant`: whether the build has a constant page size.
    pub(super) fn of(plan: &[u8], constant: bool) -> Self {
        let mut made = Self { end: GROUPS, ..Self::default() };
        let mut rest = PlanBytes::of(plan);
        while !rest.is_over() {
            made.top(&mut rest);
        }
        made.context(constant);
        made
    }

    pub(super) fn put(&mut self, at: u64, bytes: &[u8]) {
        self.memory.put(at, bytes);
    }

    pub(super) fn word(&mut self, at: u64, word: u64) {
        self.memory.word(at, word);
    }

    pub(super) fn swap(&mut self, page: u64) {
        self.swapped.insert(page);
    }

    pub(super) fn runs(&self, start: u64, end: u64) -> Vec<Run> {
        if start >= end {
            return Vec::new();
        }
        let mut runs: Vec<Run> = Vec::new();
        for page in self.memory.pages.range(start & !(PAGE - 1)..end).map(|(page, _)| *page) {
            let swapped = self.swapped.contains(&page);
            match runs.last_mut() {
                Some(last) if last.end == page && last.swapped == swapped => last.end += PAGE,
                _ => runs.push(Run { start: page, end: page + PAGE, swapped }),
            }
        }
        runs
    }

    pub(super) fn area(n: u64) -> u64 {
        AREAS + n * 3 * PAGE
    }

    fn area_count(&self) -> u64 {
        self.metas.div_ceil(METAS).max(1)
    }

    fn context(&mut self, constant: bool) {
        let areas = self.area_count();
        for n in 0..areas {
            let next = if n + 1 < areas { Self::area(n + 1) } else { 0 };
            self.word(Self::area(n), SECRET);
            self.word(Self::area(n) + 8, next);
            self.put(Self::area(n) + 16, &(METAS as u32).to_le_bytes());
        }
        // Only the secret, as a stray copy.
        self.word(DATA + 64, SECRET);
        let more = if constant { 0 } else { 8 };
        let words = [SECRET, PAGE, 1 | 7 << 32, 0, 0, 0, 0, 3, Self::area(0), Self::area(areas - 1), 0, 0];
        self.word(CONTEXT, words[0]);
        self.word(CONTEXT + 8, words[1]);
        for (n, word) in words[2..].iter().enumerate() {
            self.word(CONTEXT + 8 + more + 8 * n as u64, *word);
        }
    }

    fn new_meta(&mut self) -> u64 {
        self.metas += 1;
        let n = self.metas - 1;
        Self::area(n / METAS) + 24 + n % METAS * 40
    }

    fn meta(&mut self, at: u64, group: u64, free: u32, bits: [u64; 3]) {
        let [count, class, pages] = bits;
        // Half of the free slots were never handed out.
        let (avail, freed) = (free & 0x5555_5555, free & !0x5555_5555);
        self.word(at + 16, group);
        self.put(at + 24, &avail.to_le_bytes());
        self.put(at + 28, &freed.to_le_bytes());
        self.word(at + 32, (count - 1) | 1 << 5 | class << 6 | pages << 12);
        self.word(group, at);
    }

    /// A group with its own mapping, or a chunk with one.
    fn top(&mut self, plan: &mut PlanBytes) {
        let (kind, group, meta) = (plan.next(), self.end, self.new_meta());
        self.tops.push((group, meta));
        if kind % 8 == 0 {
            let pages = 33 + plan.next() % 4;
            let slot = (group + 16, pages * PAGE - 16);
            self.meta(meta, group, 0, [1, 63, pages]);
            self.truth.alone += 1;
            self.end = group + pages * PAGE;
            return self.chunk(group, 0, slot, plan);
        }
        let class = (kind % 48) as usize;
        let count = self.count_of(class, GROUP_MAX, plan);
        let pages = (16 + CLASSES[class] * 16 * count).div_ceil(PAGE) + u64::from(kind % 3 == 0 && count > 1);
        self.end = group + (pages + kind % 2) * PAGE;
        self.slots(group, meta, class, [count, pages], plan, 0);
    }

    /// The number of slots in a group of this class that fits into this many bytes.
    fn count_of(&self, class: usize, room: u64, plan: &mut PlanBytes) -> u64 {
        (1 + plan.next() % 32).min(room.saturating_sub(16) / (CLASSES[class] * 16)).max(1)
    }

    fn slots(&mut self, group: u64, meta: u64, class: usize, size: [u64; 2], plan: &mut PlanBytes, depth: u32) {
        let [count, pages] = size;
        let stride = if count == 1 && pages > 0 { pages * PAGE - 16 } else { CLASSES[class] * 16 };
        self.truth.groups += 1;
        let mut free = 0u32;
        for index in 0..count {
            let slot = (group + 16 + index * stride, stride);
            match plan.next() % 5 {
                0 => {
                    free |= 1 << index;
                    self.truth.free += stride;
                    if plan.next().is_multiple_of(2) {
                        self.put(slot.0 - 3, &[255, 0, 0]);
                    }
                }
                1 if stride > 64 && depth < DEPTH_MAX => self.nested(group, index, slot, class, plan, depth),
                _ => self.chunk(group, index, slot, plan),
            }
        }
        self.meta(meta, group, free, [count, class as u64, pages]);
    }

    fn nested(&mut self, group: u64, index: u64, slot: (u64, u64), class: usize, plan: &mut PlanBytes, depth: u32) {
        let (start, stride) = slot;
        let fits = CLASSES[..class].iter().take_while(|units| 16 + *units * 16 + 4 <= stride).count();
        let Some(last) = fits.checked_sub(1) else { return self.chunk(group, index, slot, plan) };
        let inner = plan.next() as usize % (last + 1);
        let count = self.count_of(inner, stride - 4, plan);
        let meta = self.new_meta();
        self.frame(group, index, start, start, 6);
        self.slots(start, meta, inner, [count, 0], plan, depth + 1);
    }

    /// Writes the header for the chunk or group that starts at `at` in the slot at `start`.
    fn frame(&mut self, group: u64, index: u64, start: u64, at: u64, unused: u64) {
        let offset = (at - group - 16) / 16;
        if at > start {
            let later = ((at - start) / 16) as u16;
            self.put(start - 3, &[7 << 5]);
            self.put(start - 2, &later.to_le_bytes());
        }
        self.put(at - 3, &[(index | unused << 5) as u8]);
        if offset > 0xffff {
            self.put(at - 8, &(offset as u32).to_le_bytes());
            self.put(at - 4, &[1]);
            self.put(at - 2, &[0, 0]);
        } else {
            self.put(at - 4, &[0]);
            self.put(at - 2, &(offset as u16).to_le_bytes());
        }
    }

    /// A chunk somewhere in a slot, with or without NMT's header.
    fn chunk(&mut self, group: u64, index: u64, slot: (u64, u64), plan: &mut PlanBytes) {
        let (start, stride) = slot;
        let end = start + stride - 4;
        let (kind, size) = (plan.next(), plan.next());
        let asked = (size * 7 * stride / 2048).min(stride - 4);
        let later = kind % 4 * ((stride - 4 - asked) / 16) / 3;
        let at = start + 16 * later;
        let unused = end - at - asked;
        self.frame(group, index, start, at, unused.min(5));
        if unused >= 5 {
            self.put(end - 4, &(unused as u32).to_le_bytes());
        }
        self.truth.chunks += 1;
        self.truth.asked += asked;
        if let Some(payload) = asked.checked_sub(18).filter(|_| kind % 16 > 10) {
            self.word(at, payload);
            self.word(at + 8, 0xE99E << 48 | (kind % 30) << 32 | 0x77);
            self.truth.tagged += 1;
            self.truth.tagged_asked += payload;
        }
    }

    /// Finds the context in the data of the C library.
    pub(super) fn find(&self) -> Option<Context> {
        let places = [(DATA, DATA + 16 * PAGE)];
        find(self, &mut |start, end| self.runs(start, end), &places, SECRET)
    }

    pub(super) fn walk(&self) -> Result<Walk, &'static str> {
        let context = self.find().ok_or("no context")?;
        let mut pages_of = |start, end| self.runs(start, end);
        let mut walker = Walker::begin(self, &mut pages_of, context)?;
        while walker.step(self, &mut pages_of) {}
        walker.finish()
    }
}

/// Checks the invariants of every walk: its findings are ordered, disjoint, and within the memory.
pub(super) fn laws(made: &MadeUpHeap, walk: &Walk) {
    let mut ranges: Vec<(u64, u64)> = walk.groups.iter().chain(&walk.donated).map(|one| (one.start, one.end)).collect();
    ranges.extend(walk.mmapped.iter().map(|chunk| (chunk.start, chunk.end)));
    ranges.sort_unstable();
    assert!(ranges.iter().all(|(start, end)| start < end), "{ranges:x?}");
    assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:x?}");
    assert!(walk.groups.windows(2).all(|pair| pair[0].end <= pair[1].start));
    for group in walk.groups.iter().chain(&walk.donated) {
        let all = || group.tagged.iter().map(|(_, chunks)| chunks).chain([&group.live, &group.free]);
        assert_eq!(all().map(|chunks| chunks.bytes).sum::<u64>(), group.end - group.start);
        let present = made.runs(group.start, group.end);
        let within = |run: &Run| run.end.min(group.end) - run.start.max(group.start);
        let resident = present.iter().filter(|run| !run.swapped).map(within).sum::<u64>();
        assert_eq!(all().map(|chunks| chunks.resident).sum::<u64>(), resident);
        assert!(group.free_pages <= group.free.resident && group.free_pages.is_multiple_of(PAGE));
        assert!(group.tagged.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}

/// For fuzzing and tests: a process from the first half of the input, in which the second half changes words of metas,
/// areas, context, and groups. Panics if a walk violates an invariant.
pub(super) fn check(input: &[u8]) {
    let (plan, changes) = input.split_at(input.len() / 2);
    let mut made = MadeUpHeap::of(plan, plan.first().is_none_or(|byte| byte % 2 == 0));
    let pages: Vec<u64> = made.memory.pages.keys().copied().collect();
    for change in changes.chunks_exact(8) {
        let page = pages[usize::from(change[0]) % pages.len()];
        let at = page + (u64::from(change[1]) * 16 + u64::from(change[2] % 2) * 8) % PAGE;
        // A word of the input, or an existing address.
        let word = match change[2] % 8 {
            0..4 => u64::from(u32::from_le_bytes([change[3], change[4], change[5], change[6]])),
            4 => pages[usize::from(change[3]) % pages.len()] + u64::from(change[4]) * 16,
            5 => MadeUpHeap::area(u64::from(change[3] % 3)) + u64::from(change[4]) * 8,
            6 => u64::MAX << (change[3] % 64),
            _ => u64::from_le_bytes([change[3], change[4], change[5], change[6], change[7], change[3], 0, 0]),
        };
        if change[7] % 16 == 0 {
            made.swap(page);
        }
        made.word(at, word);
    }
    if let Ok(walk) = made.walk() {
        laws(&made, &walk);
    }
}
