//! Maps object identifiers to small numbers: a bitmap of the heap with ranks, 22 bytes per KiB of heap.
//!
//! Identifiers are addresses and therefore close together. A binary search would miss the cache about 25 times per
//! reference in the dump; this misses it once or twice.

use std::collections::HashMap;

/// Identifiers per page.
const SLOTS: u64 = 512;
const WORDS: usize = (SLOTS / 64) as usize;
const ABSENT: u32 = u32::MAX;

/// The error if an identifier does not fit the granule: the dump must be read with a finer one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooCoarse;

#[derive(Clone)]
struct Page {
    bits: [u64; WORDS],
    /// Number of identifiers in this page before each word.
    before: [u16; WORDS],
    /// Number of identifiers in all pages before this one.
    rank: u32,
}

/// The identifiers of all objects. Insert all of them, then call `finish`, then look up their numbers.
#[derive(Default)]
pub(crate) struct Ids {
    /// Identifiers are multiples of 2 to this power.
    shift: u32,
    pages: Vec<Page>,
    keys: HashMap<u64, u32>,
    /// The page of the last identifier, by key.
    last: Option<(u64, u32)>,
    /// Pages by key minus `first`, if the keys are close together; otherwise empty, and `keys` is used.
    direct: Vec<u32>,
    first: u64,
    count: u64,
}

impl Ids {
    /// Creates an empty set. `shift` is the binary logarithm of a divisor of all identifiers.
    pub(crate) fn new(shift: u32) -> Self {
        Self { shift, ..Self::default() }
    }

    /// Adds an identifier, which may already exist.
    pub(crate) fn insert(&mut self, id: u64) -> Result<(), TooCoarse> {
        if id & ((1 << self.shift) - 1) != 0 {
            return Err(TooCoarse);
        }
        let slot = id >> self.shift;
        let key = slot / SLOTS;
        let page = match self.last {
            Some((last, page)) if last == key => page,
            _ => {
                let next = self.pages.len() as u32;
                let page = *self.keys.entry(key).or_insert(next);
                if page == next {
                    self.pages.push(Page { bits: [0; WORDS], before: [0; WORDS], rank: 0 });
                }
                self.last = Some((key, page));
                page
            }
        };
        let word = &mut self.pages[page as usize].bits[(slot % SLOTS / 64) as usize];
        let bit = 1 << (slot % 64);
        self.count += u64::from(*word & bit == 0);
        *word |= bit;
        Ok(())
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The approximate memory that this structure uses.
    pub(crate) fn bytes(&self) -> u64 {
        (self.pages.capacity() * size_of::<Page>() + self.keys.capacity() * 17 + self.direct.capacity() * 4) as u64
    }

    /// Computes the ranks. At most `u32::MAX` identifiers.
    pub(crate) fn finish(&mut self) {
        let mut rank = 0u32;
        for page in &mut self.pages {
            page.rank = rank;
            let mut before = 0u16;
            for (word, bits) in page.bits.iter().enumerate() {
                page.before[word] = before;
                before += bits.count_ones() as u16;
            }
            rank = rank.saturating_add(u32::from(before));
        }
        let (Some(first), Some(last)) = (self.keys.keys().min(), self.keys.keys().max()) else { return };
        let span = (last - first).saturating_add(1);
        if span <= self.pages.len() as u64 * 16 + (1 << 16) {
            self.first = *first;
            self.direct = vec![ABSENT; span as usize];
            for (key, page) in &self.keys {
                self.direct[(key - self.first) as usize] = *page;
            }
            self.keys = HashMap::new();
        }
    }

    /// The number of an object, from 0.
    #[inline]
    pub(crate) fn index(&self, id: u64) -> Option<u32> {
        if id & ((1 << self.shift) - 1) != 0 {
            return None;
        }
        let slot = id >> self.shift;
        let key = slot / SLOTS;
        let page = if self.direct.is_empty() {
            *self.keys.get(&key)?
        } else {
            *self.direct.get(usize::try_from(key.checked_sub(self.first)?).ok()?)?
        };
        let page = self.pages.get(page as usize)?;
        let word = (slot % SLOTS / 64) as usize;
        let bit = 1u64 << (slot % 64);
        if page.bits[word] & bit == 0 {
            return None;
        }
        Some(page.rank + u32::from(page.before[word]) + (page.bits[word] & (bit - 1)).count_ones())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_has_a_unique_number() {
        for (shift, ids) in [(3, vec![8, 16, 4096 * 7, 1 << 40, 4096 * 7 + 8]), (0, vec![1, 2, 3, u64::MAX, 1000])] {
            let mut found = Ids::new(shift);
            for id in ids.iter().chain(&ids) {
                found.insert(*id).expect("the ID fits in its range");
            }
            assert_eq!(found.count(), ids.len() as u64);
            found.finish();
            let mut numbers: Vec<_> = ids.iter().map(|id| found.index(*id).expect("it was inserted")).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..ids.len() as u32).collect::<Vec<_>>());
            assert_eq!(found.index(24), None);
        }
        assert_eq!(Ids::new(3).insert(9), Err(TooCoarse));
    }
}
