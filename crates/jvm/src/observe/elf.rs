//! A library's ELF file (man 5 elf), 64-bit little-endian only: its size in the address space, and its symbols. The
//! size comes from its program headers. `maps` lacks it, because zero-initialized data after the mapped file has no
//! name in `maps`.
//!
//! Parsed by hand and piece by piece: a crate would keep all symbols of libjvm in memory at once, about 8 MB.

use super::memory::{Memory, ProcessMemory};
use super::pagemap::PageMap;
use super::procfs::{Process, open_below, read_from_start};
use super::{inside, memory};
use crate::kernel::mapping::{DELETED, Mapping};
use crate::kernel::process::page_size;
use memchr::memmem::Finder;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Header and program headers; at most 13 headers of 56 bytes have been seen.
const HEAD: usize = 4096;
const PT_LOAD: u32 = 1;
const MAGIC: &[u8; 6] = b"\x7fELF\x02\x01";

/// A loaded library, including its zero-initialized data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// The file of the library.
    pub path: String,
}

/// The length from its segments' lowest to highest address, in whole pages of this size; 64-bit little-endian only.
pub fn span(head: &[u8], page: u64) -> Option<u64> {
    let number = |at: usize, len: usize| number(head, at, len);
    (head.get(..6)? == MAGIC).then_some(())?;
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
    Some(high.checked_next_multiple_of(page)? - low / page * page)
}

/// A library's two symbol tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// `.dynsym`: exported symbols.
    Exported,
    /// `.symtab`: all symbols, unless the library was stripped.
    All,
}

/// `sizeof (Elf64_Shdr)` and `sizeof (Elf64_Sym)`.
const SECTION: u64 = 64;
const SYMBOL: usize = 24;
/// Bytes per read.
const PIECE: usize = 64 << 10;
/// A library has about 40 sections.
const SECTIONS_MAX: u64 = 4096;
/// The names of a libjvm with debug symbols take about 10 MB.
const SECTION_BYTES_MAX: u64 = 256 << 20;
/// A library contains a name once, and a few longer names that end with it.
const PLACES_MAX: usize = 4096;
/// `SHT_SYMTAB` and `SHT_DYNSYM`.
const SYMBOLS_ALL: u32 = 2;
const SYMBOLS_EXPORTED: u32 = 11;

/// A stretch of a file.
#[derive(Debug, Clone, Copy)]
struct Section {
    kind: u32,
    /// Index of the section with the names.
    link: u32,
    start: u64,
    size: u64,
}

/// Returns the offsets of these symbols from the library's first address, in bytes; `None` for those that it does not
/// define. libjvm's whole table (2.4 MB with 5 MB of names) takes about 3 ms. Fails if the file cannot be read, is
/// truncated, or has an impossibly large section.
pub fn symbols<const N: usize>(file: &File, names: Names, wanted: [&str; N]) -> io::Result<[Option<u64>; N]> {
    let mut found = [None; N];
    let sections = sections(file)?;
    let kind = if names == Names::Exported { SYMBOLS_EXPORTED } else { SYMBOLS_ALL };
    let Some(table) = sections.iter().find(|section| section.kind == kind) else { return Ok(found) };
    let Some(strings) = sections.get(table.link as usize) else { return Ok(found) };
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    let ends: Vec<Finder> =
        wanted.iter().map(|name| Finder::new(&[name.as_bytes(), b"\0"].concat()).into_owned()).collect();
    let overlap = ends.iter().map(|name| name.needle().len()).max().unwrap_or(0);
    pieces(file, *strings, overlap, |at, piece| {
        for (n, name) in ends.iter().enumerate() {
            // Linkers let a name share the end of a longer one.
            let room = PLACES_MAX.saturating_sub(places.len());
            places.extend(name.find_iter(piece).take(room).map(|inside| ((at + inside as u64) as u32, n)));
        }
    })?;
    pieces(file, *table, 0, |_, piece| {
        for symbol in piece.chunks_exact(SYMBOL) {
            let [a, b, c, d, _, _, section @ ..] = symbol else { continue };
            let place = places.get(&u32::from_le_bytes([*a, *b, *c, *d]));
            if let Some(n) = place.filter(|_| section[..2] != [0, 0]) {
                found[*n] = number(symbol, 8, 8);
            }
        }
    })?;
    Ok(found)
}

/// Whether a process runs a GraalVM native image, which exports its version (`VMFeature.java`).
pub fn is_native_image(process: &Process) -> bool {
    const VERSION: &str = "__svm_version_info";
    let program = open_below(process.folder(), "exe");
    program.and_then(|file| symbols(&file, Names::Exported, [VERSION])).is_ok_and(|[version]| version.is_some())
}

fn sections(file: &File) -> io::Result<Vec<Section>> {
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0)?;
    let cut = || io::Error::from(io::ErrorKind::InvalidData);
    let [Some(table), Some(size), Some(count)] =
        [number(&head, 0x28, 8), number(&head, 0x3a, 2), number(&head, 0x3c, 2)]
    else {
        return Err(cut());
    };
    if head[..6] != *MAGIC || size != SECTION || count > SECTIONS_MAX {
        return Err(cut());
    }
    let mut bytes = vec![0; (count * SECTION) as usize];
    file.read_exact_at(&mut bytes, table)?;
    let section = |bytes: &[u8]| {
        let (kind, link) = (number(bytes, 4, 4)? as u32, number(bytes, 40, 4)? as u32);
        Some(Section { kind, link, start: number(bytes, 24, 8)?, size: number(bytes, 32, 8)? })
    };
    bytes.chunks_exact(SECTION as usize).map(|bytes| section(bytes).ok_or_else(cut)).collect()
}

/// Passes a section to `each` piece by piece, with each piece's offset. All but the last end at a symbol boundary, and
/// each begins with the last `overlap` bytes of the previous one.
fn pieces(file: &File, section: Section, overlap: usize, mut each: impl FnMut(u64, &[u8])) -> io::Result<()> {
    if section.size > SECTION_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let whole = PIECE / SYMBOL * SYMBOL;
    let mut buffer = vec![0; whole + overlap];
    let mut at = 0;
    while at < section.size {
        let before = overlap.min(usize::try_from(at).unwrap_or(overlap));
        let len = usize::try_from(section.size - at).map_or(whole, |left| left.min(whole));
        let begin = at - before as u64;
        let from = section.start.checked_add(begin).ok_or(io::ErrorKind::InvalidData)?;
        let piece = &mut buffer[..before + len];
        file.read_exact_at(piece, from)?;
        each(begin, piece);
        at += len as u64;
    }
    Ok(())
}

/// A little-endian number of this many bytes.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    Some(memory::number(bytes.get(at..at.checked_add(len)?)?))
}

/// The libraries among the mappings that take more address space than their file suggests. Many programs delete a
/// library that they unpacked as soon as it is loaded; its headers are then read from memory.
pub fn images(process: &Process, maps: &[Mapping]) -> Vec<Image> {
    let mut spans: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    let mut images = Vec::new();
    let executable = maps.iter().filter(|mapping| mapping.perms.contains('x')).map(|mapping| &*mapping.path);
    let executable: HashSet<&str> = executable.collect();
    for first in maps.iter().filter(|mapping| mapping.offset == 0 && mapping.inode != 0) {
        let Some(path) = first.file().filter(|_| executable.contains(&*first.path)) else { continue };
        let span = *spans.entry(&first.path).or_insert_with(|| {
            let mut buffer = [0; HEAD];
            if first.path.ends_with(DELETED) {
                return span(mapped_head(process, first, &mut buffer)?, page_size().0);
            }
            let file = inside::file(process, path).ok()?;
            span(read_from_start(&file, &mut buffer).ok()?, page_size().0)
        });
        if let Some(span) = span {
            images.push(Image { start: first.start, end: first.start.saturating_add(span), path: path.to_owned() });
        }
    }
    images
}

/// The first page of a mapping, unless reading it would page it in.
fn mapped_head<'b>(process: &Process, first: &Mapping, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let runs = PageMap::open(process).ok()?.list(first.start, first.start.checked_add(HEAD as u64)?).ok()?;
    let is_read = runs.iter().any(|run| !run.swapped) && ProcessMemory::open(process).ok()?.read(first.start, buffer);
    is_read.then_some(&*buffer)
}

/// The allocator whose name a library's file contains; `None` if it contains none or cannot be read.
pub fn allocator_named(process: &Process, path: &str) -> Option<&'static str> {
    const NAMES: [&str; 3] = ["mimalloc", "tcmalloc", "jemalloc"];
    let file = inside::file(process, path).ok()?;
    let size = file.metadata().ok()?.len().min(SECTION_BYTES_MAX);
    let finders = NAMES.map(Finder::new);
    let mut found = None;
    pieces(&file, Section { kind: 0, link: 0, start: 0, size }, 8, |_, piece| {
        let named = || NAMES.iter().zip(&finders).find(|(_, finder)| finder.find(piece).is_some());
        found = found.or_else(|| named().map(|(name, _)| *name));
    })
    .ok()?;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_executable_extends_beyond_its_file() {
        let process = Process::open(std::process::id()).unwrap();
        let maps = super::super::maps::read(&process, &loadline_base::clock::Clock::start()).unwrap().value;
        let exe = process.exe().unwrap();
        let image = images(&process, &maps).into_iter().find(|image| image.path == exe.to_str().unwrap()).unwrap();
        // Another test's backtrace maps the file again, elsewhere.
        let near = |mapping: &&Mapping| mapping.start.abs_diff(image.start) < 1 << 30;
        let own = maps.iter().filter(|mapping| *mapping.path == *image.path).filter(near);
        let last = own.map(|mapping| mapping.end).max().unwrap();
        assert!(image.end >= last && image.end - last < 64 << 20, "{image:?} {last:x}");
    }

    #[test]
    fn foreign_bytes_have_no_span() {
        assert_eq!(span(b"", 4096), None);
        assert_eq!(span(&[0x7f; 4096], 4096), None);
        let mut head = vec![0xff; 4096];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert_eq!(span(&head, 4096), None);
    }

    /// A library with the symbols `ab` (at 16) and `b` (undefined), whose names claim this size.
    fn library(names_size: u64) -> Vec<u8> {
        let names = b"\0ab\0";
        let symbol = |name: u32, section: u16, value: u64| {
            [&name.to_le_bytes()[..], &[0, 0], &section.to_le_bytes(), &value.to_le_bytes(), &[0; 8]].concat()
        };
        let symbols = [symbol(1, 1, 16), symbol(2, 0, 7)].concat();
        let section = |kind: u32, link: u32, start: u64, size: u64| {
            let numbers = [start, size].map(u64::to_le_bytes).concat();
            [&[0; 4], &kind.to_le_bytes()[..], &[0; 16], &numbers, &link.to_le_bytes(), &[0; 20]].concat()
        };
        let (table, start) = (64_u64, 64 + 2 * SECTION);
        let sections =
            [section(3, 0, start, names_size), section(SYMBOLS_EXPORTED, 0, start + 4, symbols.len() as u64)].concat();
        let mut head = vec![0; 64];
        head[..6].copy_from_slice(MAGIC);
        head[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        (head[0x3a], head[0x3c]) = (SECTION as u8, 2);
        [head, sections, names.to_vec(), symbols].concat()
    }

    fn found(library: &[u8]) -> io::Result<[Option<u64>; 2]> {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(library, 0).unwrap();
        symbols(&file, Names::Exported, ["ab", "b"])
    }

    #[test]
    fn symbols_are_found_and_truncated_libraries_are_rejected() {
        let whole = library(4);
        assert_eq!(found(&whole).unwrap(), [Some(16), None]);
        for end in 0..whole.len() {
            assert!(found(&whole[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn oversized_libraries_are_not_read() {
        for size in [SECTION_BYTES_MAX + 1, 1 << 40, u64::MAX] {
            assert_eq!(found(&library(size)).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        }
    }
}
