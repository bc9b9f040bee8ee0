//! How much address space a library takes, from its program headers (man 5 elf): behind what is mapped from its file
//! lies its zero-initialised data, which no name in `maps` gives away.

use super::procfs::{Process, open_below, read_from_start};
use crate::kernel::mapping::{DELETED, Mapping};
use std::collections::BTreeMap;

/// Header and program headers; the largest seen have 13 of 56 bytes.
const HEAD: usize = 4096;
const PT_LOAD: u32 = 1;

/// A library in memory, with its zero-initialised data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// First address.
    pub start: u64,
    /// First address behind.
    pub end: u64,
    /// The file of the library.
    pub path: String,
}

/// From the lowest to the highest address of its segments, in whole pages: 64-bit little-endian only.
pub fn span(head: &[u8]) -> Option<u64> {
    let number = |at: usize, len: usize| {
        let bytes = head.get(at..at.checked_add(len)?)?;
        Some(bytes.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    (head.get(..6)? == b"\x7fELF\x02\x01").then_some(())?;
    let (table, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    let mut ends: Option<(u64, u64)> = None;
    for n in 0..count {
        let at = usize::try_from(table.checked_add(n * size)?).ok()?;
        if number(at, 4)? as u32 == PT_LOAD {
            let start = number(at + 0x10, 8)?;
            let end = start.checked_add(number(at + 0x28, 8)?)?;
            ends = Some(ends.map_or((start, end), |(low, high)| (low.min(start), high.max(end))));
        }
    }
    let (low, high) = ends?;
    let page = 4096;
    Some(high.checked_next_multiple_of(page)? - low / page * page)
}

/// The libraries among the mappings that take more address space than their file gives.
pub fn images(process: &Process, maps: &[Mapping]) -> Vec<Image> {
    let mut spans: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    let mut images = Vec::new();
    for first in maps.iter().filter(|mapping| mapping.offset == 0 && mapping.inode != 0) {
        let Some(path) = first.file().filter(|_| !first.path.ends_with(DELETED)) else { continue };
        let executable = |mapping: &Mapping| mapping.path == first.path && mapping.perms.contains('x');
        if !maps.iter().any(executable) {
            continue;
        }
        let span = *spans.entry(path).or_insert_with(|| {
            let mut buffer = [0; HEAD];
            let file = open_below(process.folder(), &format!("root{path}")).ok()?;
            span(read_from_start(&file, &mut buffer).ok()?)
        });
        if let Some(span) = span {
            images.push(Image { start: first.start, end: first.start.saturating_add(span), path: path.to_owned() });
        }
    }
    images
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_executable_ends_behind_its_file() {
        let process = Process::open(std::process::id()).unwrap();
        let maps = super::super::maps::read(&process, &crate::clock::Clock::start()).unwrap().value;
        let exe = process.exe().unwrap();
        let image = images(&process, &maps).into_iter().find(|image| image.path == exe.to_str().unwrap()).unwrap();
        // A backtrace of another test maps the file once more, elsewhere.
        let near = |mapping: &&Mapping| mapping.start.abs_diff(image.start) < 1 << 30;
        let own = maps.iter().filter(|mapping| mapping.path == image.path).filter(near);
        let last = own.map(|mapping| mapping.end).max().unwrap();
        assert!(image.end >= last && image.end - last < 64 << 20, "{image:?} {last:x}");
    }

    #[test]
    fn foreign_bytes_have_no_span() {
        assert_eq!(span(b""), None);
        assert_eq!(span(&[0x7f; 4096]), None);
        let mut head = vec![0xff; 4096];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert_eq!(span(&head), None);
    }
}
