//! The memory of a process as it stands, read without bringing in a page: what is present is read, what is not comes
//! from the file that is mapped there, or is zero because it was never written. Swapped pages stay where they are, and
//! cannot be read.
//!
//! A page is read once: all that is read through one [`Untouched`] of a page is of one moment.

use super::Unavailable;
use super::memory::{Memory, ProcessMemory};
use super::procfs::{Process, open_below};
use crate::kernel::mapping::{DELETED, Mapping};
use rustix::fs::{Advice, fadvise};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Pages as `pagemap` counts them; on machines with larger ones nothing is read this way.
const PAGE: u64 = 4096;
/// 1 MiB; when it is full, it begins anew.
const PAGES_MAX: usize = 256;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;

/// A process whose pages are left as they are.
#[derive(Debug)]
pub struct Untouched<'p> {
    process: &'p Process,
    maps: &'p [Mapping],
    memory: ProcessMemory,
    pagemap: File,
    files: RefCell<BTreeMap<&'p str, Option<File>>>,
    pages: RefCell<HashMap<u64, Box<[u8; PAGE as usize]>>>,
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
        Ok(Self { process, maps, memory, pagemap, files: RefCell::default(), pages: RefCell::default() })
    }

    /// One page, from wherever it is.
    fn page(&self, start: u64, into: &mut [u8; PAGE as usize]) -> bool {
        let mut entry = [0; 8];
        if self.pagemap.read_exact_at(&mut entry, start / PAGE * 8).is_err() {
            return false;
        }
        match u64::from_ne_bytes(entry) {
            entry if entry & PRESENT != 0 => self.memory.read(start, into),
            entry if entry & SWAPPED != 0 => false,
            _ => self.page_of_file(start, into),
        }
    }

    /// A page that nobody has touched yet.
    fn page_of_file(&self, start: u64, into: &mut [u8; PAGE as usize]) -> bool {
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
        let mut pages = self.pages.borrow_mut();
        let (mut at, mut into) = (at, into);
        while !into.is_empty() {
            let (start, inside) = (at - at % PAGE, (at % PAGE) as usize);
            if !pages.contains_key(&start) {
                let mut page = Box::new([0; PAGE as usize]);
                if !self.page(start, &mut page) {
                    return false;
                }
                if pages.len() == PAGES_MAX {
                    pages.clear();
                }
                pages.insert(start, page);
            }
            let len = into.len().min(PAGE as usize - inside);
            let (now, later) = into.split_at_mut(len);
            now.copy_from_slice(&pages[&start][inside..inside + len]);
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
