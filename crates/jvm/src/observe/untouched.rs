//! Reads the memory of a process in its current state, without paging anything in. Present pages are read. Other pages
//! come from the mapped file, or are zero because they were never written. Swapped pages stay swapped and cannot be
//! read.
//!
//! Memory may change between reads, so readers must check that related values are consistent.

use super::Unavailable;
use super::inside;
use super::memory::{Memory, PAGE_MIN, ProcessMemory};
use super::procfs::{Process, open_below, read_from};
use crate::kernel::mapping::{DELETED, Mapping};
use crate::kernel::process::page_size;
use rustix::fs::{Advice, fadvise};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Memory is read in blocks of this size, which divides any page size: most reads are short, even with 64 KiB pages.
const BLOCK: u64 = PAGE_MIN;
/// Number of cached blocks, direct-mapped by number: 256 KiB. A walk through all classes alternates between metadata,
/// symbols, and mirrors; with 64 KiB, hardly any block was hit again.
const KEPT: usize = 64;
/// Entries of `pagemap` per read: 256 KiB with 4 KiB pages.
const STRETCH: usize = 64;
/// Number of stretches whose entries are cached, also direct-mapped.
const STRETCHES: usize = 64;
/// Bits of an entry (`Documentation/admin-guide/mm/pagemap.rst`).
const PRESENT: u32 = 63;
const SWAPPED: u32 = 62;
/// A number that no block or stretch has.
const NONE: u64 = u64::MAX;
/// The cost of fetching a page, in reads of a page already fetched: about 700 ns to 20 ns.
const PAGE_COST: u64 = 32;
/// Bytes that can be copied in the time of one more read.
const COPIED_PER_COST: u64 = 256;
/// The read budget, a few seconds; once spent, every read fails. Reading every class of the largest JVM takes a tenth
/// of it; lists faked by a hostile process never end.
const COST_MAX: u64 = 1 << 27;
/// Maximum number of open files per process; a JVM has its library and two class archives.
const FILES_MAX: usize = 16;

/// A process whose pages are left unchanged.
#[derive(Debug)]
pub struct Untouched<'p> {
    process: &'p Process,
    maps: &'p [Mapping],
    memory: ProcessMemory,
    pagemap: File,
    page: u64,
    files: RefCell<BTreeMap<&'p str, Option<File>>>,
    kept: RefCell<Kept>,
    left: Cell<u64>,
}

/// Cached blocks, and the `pagemap` state of the pages around them.
#[derive(Debug)]
struct Kept {
    numbers: [u64; KEPT],
    bytes: Vec<u8>,
    stretches: [Stretch; STRETCHES],
}

/// The state of neighboring pages from `pagemap`, one bit each.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    number: u64,
    present: u64,
    swapped: u64,
}

impl Stretch {
    const UNKNOWN: Self = Self { number: NONE, present: 0, swapped: 0 };

    /// Reads the stretch with this number; there is none after the last mapping.
    fn read(pagemap: &File, number: u64) -> Option<Self> {
        let mut entries = [0; 8 * STRETCH];
        pagemap.read_at(&mut entries, number.checked_mul(8 * STRETCH as u64)?).ok()?;
        let mut stretch = Self { number, ..Self::UNKNOWN };
        for (bit, entry) in entries.chunks_exact(8).enumerate() {
            let entry = u64::from_ne_bytes(entry.try_into().ok()?);
            stretch.present |= (entry >> PRESENT & 1) << bit;
            stretch.swapped |= (entry >> SWAPPED & 1) << bit;
        }
        Some(stretch)
    }
}

impl<'p> Untouched<'p> {
    /// Opens the process's memory; fails without permission to trace, which reading memory requires, too.
    pub fn open(process: &'p Process, maps: &'p [Mapping]) -> Result<Self, Unavailable> {
        let pagemap = open_below(process.folder(), "pagemap").map_err(Unavailable::io("pagemap"))?;
        let memory = ProcessMemory::open(process)?;
        Ok(Self::of(process, maps, memory, (pagemap, page_size().0)))
    }

    /// Limits the budget to this many reads.
    pub fn within(self, reads: u64) -> Self {
        Self { left: Cell::new(reads), ..self }
    }

    /// Number of reads left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Spends this much of the budget; returns whether enough was left.
    fn spend(&self, cost: u64) -> bool {
        let left = self.left.get().checked_sub(cost);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// From `pagemap`, with the page size of its entries.
    fn of(process: &'p Process, maps: &'p [Mapping], memory: ProcessMemory, (pagemap, page): (File, u64)) -> Self {
        let bytes = vec![0; KEPT * BLOCK as usize];
        let kept = Kept { numbers: [NONE; KEPT], bytes, stretches: [Stretch::UNKNOWN; STRETCHES] };
        let (files, kept, left) = (RefCell::default(), RefCell::new(kept), Cell::new(COST_MAX));
        Self { process, maps, memory, pagemap, page, files, kept, left }
    }

    /// The block at this address, from wherever it is. A page that was present a moment ago counts as present; the
    /// state of any other is read again, because the process may have written to it since.
    fn block(&self, at: u64, stretches: &mut [Stretch; STRETCHES], into: &mut [u8]) -> bool {
        let page = at / self.page;
        let (number, bit) = (page / STRETCH as u64, page % STRETCH as u64);
        let stretch = &mut stretches[number as usize % STRETCHES];
        if stretch.number != number || stretch.present >> bit & 1 == 0 {
            let Some(now) = Stretch::read(&self.pagemap, number) else { return false };
            *stretch = now;
        }
        match (stretch.present >> bit & 1, stretch.swapped >> bit & 1) {
            (1, _) => self.memory.read(at, into),
            (_, 1) => false,
            _ => self.block_of_file(at, into),
        }
    }

    /// A block of an absent page: from its file, or zero without a file.
    fn block_of_file(&self, start: u64, into: &mut [u8]) -> bool {
        let at = self.maps.partition_point(|mapping| mapping.end <= start);
        let Some(mapping) = self.maps.get(at).filter(|mapping| mapping.start <= start) else { return false };
        into.fill(0);
        if mapping.inode == 0 {
            return true;
        }
        let mut files = self.files.borrow_mut();
        if files.len() >= FILES_MAX && !files.contains_key(&*mapping.path) {
            return false;
        }
        let file = files.entry(&*mapping.path).or_insert_with(|| open_mapped(self.process, mapping).ok());
        let Some(file) = file else { return false };
        // Beyond the end of its file, a page is zero.
        read_from(file, start - mapping.start + mapping.offset, into).is_ok()
    }
}

impl Memory for Untouched<'_> {
    fn page(&self) -> u64 {
        self.page
    }

    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        let Kept { numbers, bytes, stretches } = &mut *self.kept.borrow_mut();
        let (mut at, mut into) = (at, into);
        if !self.spend(1 + into.len() as u64 / COPIED_PER_COST) {
            return false;
        }
        while !into.is_empty() {
            let (number, inside) = (at / BLOCK, (at % BLOCK) as usize);
            let place = number as usize % KEPT;
            let kept = &mut bytes[place * BLOCK as usize..][..BLOCK as usize];
            if numbers[place] != number {
                numbers[place] = NONE;
                if !self.spend(PAGE_COST) || !self.block(number * BLOCK, stretches, kept) {
                    return false;
                }
                numbers[place] = number;
            }
            let len = into.len().min(BLOCK as usize - inside);
            let (now, later) = into.split_at_mut(len);
            now.copy_from_slice(&kept[inside..inside + len]);
            into = later;
            let Some(next) = at.checked_add(len as u64) else { return into.is_empty() };
            at = next;
        }
        true
    }
}

/// Opens exactly the mapped file, in the process's own mount namespace, without read-ahead. Otherwise, the surrounding
/// pages would be charged to Loadline, and a process with a memory limit could later use them uncharged. Fails if the
/// file cannot be opened, or if its name now belongs to another file.
pub(super) fn open_mapped(process: &Process, mapping: &Mapping) -> io::Result<File> {
    let file = find_mapped(process, mapping)?;
    // A file system that ignores the advice reads ahead as usual.
    let _ = fadvise(&file, 0, None, Advice::Random);
    Ok(file)
}

fn find_mapped(process: &Process, mapping: &Mapping) -> io::Result<File> {
    let by_range = || inside::mapped(process, mapping.start, mapping.end);
    let path = mapping.file().ok_or(io::ErrorKind::NotFound)?;
    if mapping.path.ends_with(DELETED) {
        return by_range();
    }
    let file = inside::file(process, path)?;
    match file.metadata()?.ino() == mapping.inode {
        true => Ok(file),
        // Layered file systems may give a file two inode numbers.
        false => by_range().or(Ok(file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Our own memory, and a page map with 64 KiB pages: the first is present, the second was never touched, the third
    /// is swapped out.
    #[test]
    fn presence_is_tracked_for_any_page_size() {
        for page in [16 << 10, 64 << 10] {
            let memory = vec![7u8; 4 * page as usize];
            let start = (memory.as_ptr() as u64).next_multiple_of(page);
            let pagemap = tempfile::tempfile().unwrap();
            pagemap.write_all_at(&(1u64 << PRESENT).to_ne_bytes(), start / page * 8).unwrap();
            pagemap.write_all_at(&(1u64 << SWAPPED).to_ne_bytes(), (start / page + 2) * 8).unwrap();
            let process = Process::open(std::process::id()).unwrap();
            let maps = [Mapping { start, end: start + 3 * page, ..Mapping::default() }];
            let own = ProcessMemory::open(&process).unwrap();
            let untouched = Untouched::of(&process, &maps, own, (pagemap, page));
            let mut bytes = [1; 16];
            assert!(untouched.read(start + page - 8, &mut bytes), "a read may cross a page boundary");
            assert_eq!(bytes, [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
            assert!(untouched.read(start + page - 16, &mut bytes) && bytes == [7; 16]);
            assert!(untouched.read(start + 2 * page - 16, &mut bytes) && bytes == [0; 16]);
            assert!(!untouched.read(start + 3 * page - 16, &mut bytes), "a swapped-out page cannot be read");
            assert_eq!((untouched.page(), memory[0]), (page, 7));
        }
    }

    #[test]
    fn an_exhausted_read_budget_stays_exhausted() {
        let memory = vec![7u8; 4 * BLOCK as usize];
        let start = (memory.as_ptr() as u64).next_multiple_of(BLOCK);
        let process = Process::open(std::process::id()).unwrap();
        let maps = [Mapping { start, end: start + BLOCK, ..Mapping::default() }];
        let within = |reads: u64| Untouched::open(&process, &maps).unwrap().within(reads);
        let untouched = within(PAGE_COST + 3);
        let mut bytes = [0; 8];
        for left in [2, 1, 0] {
            assert!(untouched.read(start, &mut bytes) && bytes == [7; 8]);
            assert_eq!(untouched.left(), left);
        }
        for _ in 0..3 {
            assert!(!untouched.read(start, &mut bytes) && !untouched.read(start, &mut []));
            assert_eq!(untouched.left(), 0);
        }
        // Fetching a page, or a long stretch, costs more than is left; then nothing is left.
        let (page, long) = (within(PAGE_COST), within(PAGE_COST + BLOCK / COPIED_PER_COST));
        assert!(!page.read(start, &mut bytes) && !long.read(start, &mut vec![0; BLOCK as usize]));
        assert_eq!((page.left(), long.left(), memory[0]), (0, 0, 7));
        assert_eq!(within(u64::MAX).u64(start), Some(0x0707_0707_0707_0707));
    }
}
