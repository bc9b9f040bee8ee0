//! The memory of a process as it stands, read without bringing in a page: what is present is read, what is not comes
//! from the file that is mapped there, or is zero because it was never written. Swapped pages stay where they are, and
//! cannot be read.
//!
//! What was read may be read again a moment later, and be another thing: readers check what must belong together.

use super::Unavailable;
use super::memory::{Memory, ProcessMemory};
use super::procfs::{Process, open_below};
use crate::kernel::mapping::{DELETED, Mapping};
use rustix::fs::{Advice, fadvise};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Pages as `pagemap` counts them; on machines with larger ones nothing is read this way.
const PAGE: u64 = 4096;
/// Pages that are kept, each in the place that its number gives it: 256 KiB.
const KEPT: usize = 64;
/// Entries of `pagemap` that are read at once: of 256 KiB.
const STRETCH: usize = 64;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// The number of no page.
const NONE: u64 = u64::MAX;

/// A process whose pages are left as they are.
#[derive(Debug)]
pub struct Untouched<'p> {
    process: &'p Process,
    maps: &'p [Mapping],
    memory: ProcessMemory,
    pagemap: File,
    files: RefCell<BTreeMap<&'p str, Option<File>>>,
    kept: RefCell<Kept>,
}

/// Pages that were read, and what `pagemap` said of those around the last one that was looked up.
#[derive(Debug)]
struct Kept {
    numbers: [u64; KEPT],
    bytes: Vec<u8>,
    stretch: u64,
    entries: [u8; 8 * STRETCH],
}

impl<'p> Untouched<'p> {
    /// Opens it; needs the permission to trace, as memory does.
    ///
    /// # Errors
    /// Where that is not given, or pages are not of 4 KiB.
    pub fn open(process: &'p Process, maps: &'p [Mapping]) -> Result<Self, Unavailable> {
        if crate::kernel::process::page_size().0 != PAGE {
            return Err(Unavailable::new("mem", "pages are not of 4 KiB"));
        }
        let pagemap = open_below(process.folder(), "pagemap").map_err(|e| Unavailable::io("pagemap", &e))?;
        let memory = ProcessMemory::open(process)?;
        let bytes = vec![0; KEPT * PAGE as usize];
        let kept = Kept { numbers: [NONE; KEPT], bytes, stretch: NONE, entries: [0; 8 * STRETCH] };
        Ok(Self { process, maps, memory, pagemap, files: RefCell::default(), kept: RefCell::new(kept) })
    }

    /// What `pagemap` says of a page: a moment ago of one that is present, and now of one that is not, since the
    /// process may have written there since. Behind the last mapping it says nothing.
    fn entry(&self, page: u64, stretch: &mut u64, entries: &mut [u8; 8 * STRETCH]) -> Option<u64> {
        let (of, inside) = (page / STRETCH as u64, page as usize % STRETCH);
        let known = |entries: &[u8]| entries.chunks_exact(8).nth(inside)?.try_into().ok().map(u64::from_ne_bytes);
        if *stretch == of {
            let entry = known(entries)?;
            if entry & PRESENT != 0 {
                return Some(entry);
            }
        }
        *stretch = NONE;
        let read = self.pagemap.read_at(entries, of * 8 * STRETCH as u64).ok()?;
        entries[read..].fill(0);
        *stretch = of;
        known(entries)
    }

    /// One page, from wherever it is.
    fn page(&self, entry: u64, start: u64, into: &mut [u8]) -> bool {
        match entry {
            entry if entry & PRESENT != 0 => self.memory.read(start, into),
            entry if entry & SWAPPED != 0 => false,
            _ => self.page_of_file(start, into),
        }
    }

    /// A page that nobody has touched yet.
    fn page_of_file(&self, start: u64, into: &mut [u8]) -> bool {
        let at = self.maps.partition_point(|mapping| mapping.end <= start);
        let Some(mapping) = self.maps.get(at).filter(|mapping| mapping.start <= start) else { return false };
        into.fill(0);
        if mapping.inode == 0 {
            return true;
        }
        let mut files = self.files.borrow_mut();
        let file = files.entry(&mapping.path).or_insert_with(|| open_mapped(self.process, mapping).ok());
        let Some(file) = file else { return false };
        let mut filled = 0;
        while filled < into.len() {
            match file.read_at(&mut into[filled..], start - mapping.start + mapping.offset + filled as u64) {
                // Behind the end of its file a page is zero.
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(_) => return false,
            }
        }
        true
    }
}

impl Memory for Untouched<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        let Kept { numbers, bytes, stretch, entries } = &mut *self.kept.borrow_mut();
        let (mut at, mut into) = (at, into);
        while !into.is_empty() {
            let (page, inside) = (at / PAGE, (at % PAGE) as usize);
            let place = page as usize % KEPT;
            let kept = &mut bytes[place * PAGE as usize..][..PAGE as usize];
            if numbers[place] != page {
                numbers[place] = NONE;
                let entry = self.entry(page, stretch, entries);
                if !entry.is_some_and(|entry| self.page(entry, page * PAGE, kept)) {
                    return false;
                }
                numbers[place] = page;
            }
            let len = into.len().min(PAGE as usize - inside);
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
/// Where it cannot be opened, or another file has its name by now.
pub(super) fn open_mapped(process: &Process, mapping: &Mapping) -> io::Result<File> {
    let file = find_mapped(process, mapping)?;
    // A file system that does not take advice reads ahead as it does.
    let _ = fadvise(&file, 0, None, Advice::Random);
    Ok(file)
}

fn find_mapped(process: &Process, mapping: &Mapping) -> io::Result<File> {
    let by_range = || open_below(process.folder(), &format!("map_files/{:x}-{:x}", mapping.start, mapping.end));
    let path = mapping.file().ok_or(io::ErrorKind::NotFound)?;
    if mapping.path.ends_with(DELETED) {
        return by_range();
    }
    let file = open_below(process.folder(), &format!("root{path}"))?;
    match file.metadata()?.ino() == mapping.inode {
        true => Ok(file),
        // File systems in layers may give a file two numbers.
        false => by_range().or(Ok(file)),
    }
}
