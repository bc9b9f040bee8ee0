//! The mappings of a process without their weights, and what their paths reveal: JDK, allocator.

use super::procfs::{Process, open_below};
use super::{Read, Reading, Unavailable};
use crate::kernel::mapping::{self, Line, Mapping, Texts, each_line, too_many};
use loadline_base::clock::Clock;
use std::io;

/// Maximum number of address ranges kept for reading tables: a JVM with 1,000 threads has about 3,000.
const WANTED_MAX: usize = 1 << 14;

/// Reads the mappings of a process.
pub fn read(process: &Process, clock: &Clock) -> Read<Vec<Mapping>> {
    Reading::take(clock, || {
        let file = open_below(process.folder(), "maps");
        file.and_then(mapping::read).map_err(Unavailable::io("maps"))
    })
}

/// Reads the mappings that may contain a JVM's own tables: its library, class archives, counters, and memory without a
/// file on disk, with neighbors merged. So 65,000 mappings of other files take no memory.
pub fn read_of_tables(process: &Process, clock: &Clock) -> Read<Vec<Mapping>> {
    Reading::take(clock, || {
        let file = open_below(process.folder(), "maps");
        file.and_then(of_tables).map_err(Unavailable::io("maps"))
    })
}

fn of_tables(from: impl io::Read) -> io::Result<Vec<Mapping>> {
    let (mut texts, mut kept) = (Texts::default(), Vec::<Mapping>::new());
    each_line(from, |line| {
        let Some(line) = Line::parse(line) else { return Ok(()) };
        // Memory without a file needs neither name nor permissions.
        let line = if line.inode == 0 { Line { perms: "rw-p", path: "", offset: 0, ..line } } else { line };
        match kept.last_mut() {
            Some(last) if goes_on(last, &line) => last.end = line.end,
            _ if line.inode == 0 || has_tables(&line) => kept.push(line.kept(&mut texts)),
            _ => {}
        }
        if kept.len() > WANTED_MAX { Err(too_many(WANTED_MAX)) } else { Ok(()) }
    })?;
    Ok(kept)
}

/// Whether a line continues the mapping, in memory and in the same memory file, if any.
fn goes_on(last: &Mapping, line: &Line<'_>) -> bool {
    let same = last.end == line.start && last.inode == line.inode && *last.path == *line.path;
    same && (line.inode == 0 || is_memory(line.path) && last.offset + last.size().0 == line.offset)
}

/// Whether a path is that of a memory file, which contains ZGC's heap.
fn is_memory(path: &str) -> bool {
    path.starts_with("/memfd:")
}

fn has_tables(line: &Line<'_>) -> bool {
    let path = line.path.strip_suffix(mapping::DELETED).unwrap_or(line.path);
    path.ends_with("/libjvm.so") || path.ends_with(".jsa") || path.contains("/hsperfdata_") || is_memory(path)
}

loadline_base::named! {
    /// The library that `malloc` comes from, by the names of the mapped files.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Allocator,
    /// The name in documents and on screen.
    fn name {
        /// The C library's own, ptmalloc.
        Glibc = "glibc",
        /// Preloaded.
        Jemalloc = "jemalloc",
        /// Preloaded.
        Mimalloc = "mimalloc",
        /// Preloaded, gperftools or Google's.
        Tcmalloc = "tcmalloc",
        /// The C library's own (Alpine).
        Musl = "musl",
        /// No known library is mapped; it may be linked statically.
        Unknown = "unknown",
    }
}

impl Allocator {
    /// A preloaded allocator takes precedence over the C library's.
    pub fn of<'m>(mappings: impl IntoIterator<Item = &'m Mapping>) -> Self {
        let rank = |found: &Self| match found {
            Self::Jemalloc | Self::Mimalloc | Self::Tcmalloc => 2,
            Self::Glibc | Self::Musl => 1,
            Self::Unknown => 0,
        };
        mappings.into_iter().map(|mapping| Self::of_file(mapping.file_name())).max_by_key(rank).unwrap_or(Self::Unknown)
    }

    fn of_file(name: &str) -> Self {
        let named = |start: &str| name.starts_with(start) && name.contains(".so");
        match () {
            () if named("libjemalloc") => Self::Jemalloc,
            () if named("libmimalloc") => Self::Mimalloc,
            () if named("libtcmalloc") => Self::Tcmalloc,
            () if name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so")) => Self::Glibc,
            // glibc's `libc.so` is a linker script; a mapped `libc.so` without another name is musl's (Debian).
            () if name.starts_with("ld-musl-") || name.starts_with("libc.musl-") || name == "libc.so" => Self::Musl,
            () => Self::Unknown,
        }
    }
}

/// The path of the HotSpot library in the process's own mount namespace.
pub fn libjvm<'m>(mappings: impl IntoIterator<Item = &'m Mapping>) -> Option<&'m str> {
    mappings.into_iter().find(|mapping| mapping.file_name() == "libjvm.so").and_then(Mapping::file)
}

/// Whether the JVM is OpenJ9, whose library has the same name as HotSpot's.
pub fn is_openj9<'m>(mappings: impl IntoIterator<Item = &'m Mapping>) -> bool {
    mappings.into_iter().any(|mapping| mapping.file_name().starts_with("libj9"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(path: &str) -> Mapping {
        Mapping::parse(&format!("1000-2000 r-xp 00000000 fe:00 7      {path}")).unwrap()
    }

    #[test]
    fn a_preloaded_allocator_takes_precedence() {
        for (paths, expect) in [
            (&["/lib/libc.so.6"][..], Allocator::Glibc),
            (&["/lib/libc-2.31.so", "/usr/lib/libjemalloc.so.2"], Allocator::Jemalloc),
            (&["/x/libmimalloc-secure.so.2.1", "/lib/libc.so.6"], Allocator::Mimalloc),
            (&["/lib/libc.so.6", "/x/libtcmalloc_minimal.so.4 (deleted)"], Allocator::Tcmalloc),
            (&["/lib/ld-musl-x86_64.so.1"], Allocator::Musl),
            (&["/lib/x86_64-linux-musl/libc.so"], Allocator::Musl),
            (&["/lib/ld-musl-x86_64.so.1", "/usr/lib/libjemalloc.so.2"], Allocator::Jemalloc),
            (&["/app", "[heap]", ""], Allocator::Unknown),
        ] {
            let mappings: Vec<_> = paths.iter().map(|path| mapped(path)).collect();
            assert_eq!(Allocator::of(&mappings), expect, "{paths:?}");
        }
    }

    #[test]
    fn hotspot_is_found_by_its_library() {
        assert_eq!(libjvm(&[mapped("/x y/libjvm.so")]), Some("/x y/libjvm.so"));
        assert!(
            !is_openj9(&[mapped("/x y/libjvm.so")])
                && is_openj9(&[mapped("/x/j9vm/libjvm.so"), mapped("/x/libj9vm29.so")])
        );
    }

    #[test]
    fn only_table_mappings_are_kept_and_neighbors_merged() {
        let mut text = "1000-3000 r--p 0 0:0 7 /x/libjvm.so\n3000-4000 rw-p 0 0:0 0 \n".to_owned();
        text += "4000-5000 ---p 0 0:0 0 [heap]\n5000-6000 r--s 0 0:0 8 /tmp/hsperfdata_me/5\n";
        text += "6000-7000 r--p 0 0:0 9 /x/classes.jsa (deleted)\n8000-9000 rw-p 0 0:0 0 \n";
        let files: String =
            (9..60_000).map(|n| format!("{n:x}000-{:x}000 r--s 0 0:0 {n} /index/_{n}.cfs\n", n + 1)).collect();
        let kept = of_tables((text + &files).as_bytes()).unwrap();
        let kept: Vec<_> = kept.iter().map(|one| (one.start, one.end, one.inode)).collect();
        let expect =
            [(0x1000, 0x3000, 7), (0x3000, 0x5000, 0), (0x5000, 0x6000, 8), (0x6000, 0x7000, 9), (0x8000, 0x9000, 0)];
        assert_eq!(kept, expect);
    }

    #[test]
    fn too_many_mappings_are_rejected_not_truncated() {
        let holes = (1..=WANTED_MAX as u64 + 1).map(|n| format!("{:x}000-{:x}000 rw-p 0 0:0 0 \n", 2 * n, 2 * n + 1));
        let refused = of_tables(holes.collect::<String>().as_bytes()).unwrap_err();
        assert!(refused.to_string().contains("more than 16384 mappings"), "{refused}");
    }
}
