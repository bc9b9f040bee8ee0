//! `/proc/PID/pagemap` (man proc_pid_pagemap; kernel `admin-guide/mm/pagemap.rst`): which pages are backed by memory.
//! Uses the `PAGEMAP_SCAN` ioctl if the kernel has it (6.7), otherwise reads eight bytes per page.

use super::Unavailable;
use super::pagemap_scan::{self, PRESENT, PageRegion, SWAPPED, ZERO};
use super::procfs::{Process, open_below};
use crate::kernel::process::page_size;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Maximum number of runs per call: 24 KiB.
const REGIONS: usize = 1024;
/// Entries per read if the kernel cannot scan: 64 KiB.
const ENTRIES: usize = 8192;

/// Consecutive pages that are all in memory, or all swapped out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Swapped out instead of present.
    pub swapped: bool,
}

/// Returns the present or swapped pages of `[start, end)`, in address order; none if they cannot be read.
pub type PagesOf<'a> = dyn FnMut(u64, u64) -> Vec<Run> + 'a;

impl Run {
    /// Length in bytes.
    pub fn size(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// Present and swapped bytes of `[start, end)`, in runs that all end after `start`.
pub fn sum<'r>(runs: impl Iterator<Item = &'r Run>, start: u64, end: u64) -> (u64, u64) {
    let (mut resident, mut swapped) = (0u64, 0u64);
    for run in runs.take_while(|run| run.start < end) {
        let part = run.end.min(end).saturating_sub(run.start.max(start));
        let sum = if run.swapped { &mut swapped } else { &mut resident };
        *sum = sum.saturating_add(part);
    }
    (resident, swapped)
}

/// The page tables of a process, read-only.
#[derive(Debug)]
pub struct PageMap {
    file: File,
    scans: bool,
    regions: Vec<PageRegion>,
    entries: Vec<u8>,
}

impl PageMap {
    /// Opens the page map; needs the same permission as `smaps`.
    pub fn open(process: &Process) -> Result<Self, Unavailable> {
        let file = open_below(process.folder(), "pagemap").map_err(Unavailable::io("pagemap"))?;
        Ok(Self { file, scans: true, regions: vec![PageRegion::default(); REGIONS], entries: Vec::new() })
    }

    /// The runs of present or swapped pages in `[start, end)`, in address order; the first and last page count in full.
    /// Omits the zero page, which weighs nothing, if the kernel distinguishes it.
    pub fn list(&mut self, start: u64, end: u64) -> Result<Vec<Run>, Unavailable> {
        // The kernel scans only from the start of a page.
        let page = page_size().0;
        let (start, end) = (start & !(page - 1), end.checked_next_multiple_of(page).unwrap_or(end));
        if self.scans {
            match self.scan(start, end) {
                Err(rustix::io::Errno::NOTTY) => self.scans = false,
                other => return other.map_err(Unavailable::io("pagemap")),
            }
        }
        self.read(start, end).map_err(Unavailable::io("pagemap"))
    }

    fn scan(&mut self, start: u64, end: u64) -> Result<Vec<Run>, rustix::io::Errno> {
        let (mut runs, mut at) = (Vec::new(), start);
        while at < end {
            let found = pagemap_scan::scan(&self.file, at, end, &mut self.regions)?;
            for region in &self.regions[..found] {
                if region.categories & ZERO == 0 {
                    let swapped = region.categories & SWAPPED != 0 && region.categories & PRESENT == 0;
                    runs.push(Run { start: region.start, end: region.end, swapped });
                }
            }
            // More can follow only if the slice is full.
            at = match self.regions[..found].last() {
                Some(last) if found == self.regions.len() => last.end.max(at + page_size().0),
                _ => end,
            };
        }
        Ok(runs)
    }

    fn read(&mut self, start: u64, end: u64) -> io::Result<Vec<Run>> {
        let page = page_size().0;
        self.entries.resize(ENTRIES * 8, 0);
        let (mut runs, mut at) = (Vec::<Run>::new(), start);
        while at < end {
            let pages = ((end - at) / page).clamp(1, ENTRIES as u64) as usize;
            let read = self.file.read_at(&mut self.entries[..pages * 8], at / page * 8)?;
            if read < 8 {
                break;
            }
            for entry in self.entries[..read].chunks_exact(8) {
                let entry = u64::from_ne_bytes(entry.try_into().unwrap_or_default());
                let (present, swapped) = (entry >> 63 != 0, entry >> 62 & 1 != 0);
                let run = Run { start: at, end: at + page, swapped: swapped && !present };
                match runs.last_mut() {
                    _ if !present && !swapped => {}
                    Some(last) if last.end == run.start && last.swapped == run.swapped => last.end = run.end,
                    _ => runs.push(run),
                }
                at += page;
            }
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both methods agree on our own memory, of which every third page was touched.
    #[test]
    fn scan_and_read_agree() {
        let page = page_size().0 as usize;
        let mut memory = vec![0u8; 64 << 20];
        let base = (memory.as_ptr() as u64).next_multiple_of(page as u64);
        let first = (base - memory.as_ptr() as u64) as usize;
        for n in 0..2000 {
            memory[first + n * 3 * page] = 1;
        }
        let process = Process::open(std::process::id()).unwrap();
        let runs = |mut map: PageMap| map.list(base, base + 6000 * page as u64).unwrap();
        let scanned = runs(PageMap::open(&process).unwrap());
        let read = runs(PageMap { scans: false, ..PageMap::open(&process).unwrap() });
        let differ = scanned.iter().zip(&read).find(|(one, other)| one != other);
        assert_eq!((differ, scanned.len()), (None, read.len()), "both methods agree from {base:x}");
        let touched: u64 = scanned.iter().map(|run| run.size()).sum();
        assert!(touched >= 2000 * page as u64, "{touched}");
        assert_eq!(memory[first], 1);
    }
}
