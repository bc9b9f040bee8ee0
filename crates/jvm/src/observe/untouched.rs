//! The memory of a process in its current state, read without bringing in a page. Present pages are read. Other pages
//! come from the file that is mapped there, or are zero because they were never written. Swapped pages stay where they
//! are, and cannot be read.
//!
//! The same memory may hold something else when it is read again: readers check what must belong together.

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

/// Memory is read in blocks of this size, which any page is made of: with pages of 64 KiB, too, most reads are short.
const BLOCK: u64 = PAGE_MIN;
/// Blocks that are kept, each in the place that its number gives it: 256 KiB. A walk through all classes goes back and
/// forth between their metadata, symbols and mirrors: with 64 KiB hardly a block was still there.
const KEPT: usize = 64;
/// Entries of `pagemap` that are read at once: of 256 KiB, where pages are of 4 KiB.
const STRETCH: usize = 64;
/// Stretches whose entries are kept, each likewise in the place that its number gives it.
const STRETCHES: usize = 64;
/// Bits of an entry (`Documentation/admin-guide/mm/pagemap.rst`).
const PRESENT: u32 = 63;
const SWAPPED: u32 = 62;
/// The number of no block and no stretch.
const NONE: u64 = u64::MAX;
/// The cost of a page that has to be fetched, in reads of a page already fetched: some 700 ns to 20 ns.
const PAGE_COST: u64 = 32;
/// Bytes that are copied in the time of one more read.
const COPIED_PER_COST: u64 = 256;
/// The budget of reads, some seconds; when it is spent, every read fails. Every class of the largest JVM takes a tenth
/// of it; lists that a hostile process made up do not end.
const COST_MAX: u64 = 1 << 27;
/// Files of one process that are open at once; a JVM has its library and two archives of classes.
const FILES_MAX: usize = 16;

/// A process whose pages are left as they are.
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

/// Blocks that were read, and what `pagemap` said of the pages around them.
#[derive(Debug)]
struct Kept {
    numbers: [u64; KEPT],
    bytes: Vec<u8>,
    stretches: [Stretch; STRETCHES],
}

/// The state of neighbouring pages as `pagemap` gives it, a bit for each.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    number: u64,
    present: u64,
    swapped: u64,
}

impl Stretch {
    const UNKNOWN: Self = Self { number: NONE, present: 0, swapped: 0 };

    /// Reads those of this number; what lies behind the last mapping has no entry.
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
    /// Opens it; needs the permission to trace, as memory does.
    ///
    /// # Errors
    /// Fails if that permission is not given.
    pub fn open(process: &'p Process, maps: &'p [Mapping]) -> Result<Self, Unavailable> {
        let pagemap = open_below(process.folder(), "pagemap").map_err(Unavailable::io("pagemap"))?;
        let memory = ProcessMemory::open(process)?;
        Ok(Self::of(process, maps, memory, (pagemap, page_size().0)))
    }

    /// The same, and no more than so many reads of it.
    pub fn within(self, reads: u64) -> Self {
        Self { left: Cell::new(reads), ..self }
    }

    /// How many reads are left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Whether there is this much left, which is spent then.
    fn spend(&self, cost: u64) -> bool {
        let left = self.left.get().checked_sub(cost);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// `pagemap` with the size of the pages that it has entries for.
    fn of(process: &'p Process, maps: &'p [Mapping], memory: ProcessMemory, (pagemap, page): (File, u64)) -> Self {
        let bytes = vec![0; KEPT * BLOCK as usize];
        let kept = Kept { numbers: [NONE; KEPT], bytes, stretches: [Stretch::UNKNOWN; STRETCHES] };
        let (files, kept, left) = (RefCell::default(), RefCell::new(kept), Cell::new(COST_MAX));
        Self { process, maps, memory, pagemap, page, files, kept, left }
    }

    /// The block at this address, from wherever it is. A page that was present a moment ago counts as present; any
    /// other is looked up now, since the process may have written there since.
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

    /// A block of a page that is not in memory: from its file, or zero if it has no file.
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
        // Behind the end of its file a page is zero.
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

/// Opens the very file that is mapped, in the process's own mount namespace, without read-ahead: pages around those
/// that are read would be charged to Loadline, and later be free for a process whose memory is limited.
///
/// # Errors
/// Fails if the file cannot be opened, or another file has its name by now.
pub(super) fn open_mapped(process: &Process, mapping: &Mapping) -> io::Result<File> {
    let file = find_mapped(process, mapping)?;
    // A file system that does not take advice reads ahead as it does.
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
        // File systems in layers may give a file two numbers.
        false => by_range().or(Ok(file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory of our own, and a page map that says of pages of 64 KiB: the first is present, the second was never
    /// touched, the third is swapped out.
    #[test]
    fn what_is_present_goes_by_pages_of_any_size() {
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
            assert!(untouched.read(start + page - 8, &mut bytes), "over the edge of a page");
            assert_eq!(bytes, [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
            assert!(untouched.read(start + page - 16, &mut bytes) && bytes == [7; 16]);
            assert!(untouched.read(start + 2 * page - 16, &mut bytes) && bytes == [0; 16]);
            assert!(!untouched.read(start + 3 * page - 16, &mut bytes), "swapped out");
            assert_eq!((untouched.page(), memory[0]), (page, 7));
        }
    }

    #[test]
    fn a_budget_of_reads_runs_out_and_stays_so() {
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
        // A page that has to be fetched, and a long stretch, cost more than is left; then nothing is.
        let (page, long) = (within(PAGE_COST), within(PAGE_COST + BLOCK / COPIED_PER_COST));
        assert!(!page.read(start, &mut bytes) && !long.read(start, &mut vec![0; BLOCK as usize]));
        assert_eq!((page.left(), long.left(), memory[0]), (0, 0, 7));
        assert_eq!(within(u64::MAX).u64(start), Some(0x0707_0707_0707_0707));
    }
}
