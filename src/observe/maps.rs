//! The mappings of a process without their weights, and what their paths tell: JDK, allocator.

use super::procfs::Process;
use super::{Read, Reading, Unavailable};
use crate::clock::Clock;
use crate::kernel::mapping::{MAPS_BYTES_MAX, Mapping, parse};

/// Reads the mappings of a process.
pub fn read(process: &Process, clock: &Clock) -> Read<Vec<Mapping>> {
    Reading::take(clock, || {
        let bytes = process.read_below("maps", MAPS_BYTES_MAX).map_err(|e| Unavailable::io("maps", &e))?;
        Ok(parse(&String::from_utf8_lossy(&bytes)))
    })
}

/// The library that `malloc` comes from, by the names of the mapped files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocator {
    /// The C library's own, ptmalloc.
    Glibc,
    /// Preloaded.
    Jemalloc,
    /// Preloaded.
    Mimalloc,
    /// Preloaded, gperftools or Google's.
    Tcmalloc,
    /// The C library's own (Alpine).
    Musl,
    /// No known library is mapped; it may be linked statically.
    Unknown,
}

impl Allocator {
    /// The name in documents and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Jemalloc => "jemalloc",
            Self::Mimalloc => "mimalloc",
            Self::Tcmalloc => "tcmalloc",
            Self::Musl => "musl",
            Self::Unknown => "unknown",
        }
    }

    /// A preloaded allocator comes before the C library's.
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
            // glibc's `libc.so` is a text for linkers; a library of that name is musl's where it has no other (Debian).
            () if name.starts_with("ld-musl-") || name.starts_with("libc.musl-") || name == "libc.so" => Self::Musl,
            () => Self::Unknown,
        }
    }
}

/// The path of the HotSpot library, as named in the process's own mount namespace.
pub fn libjvm<'m>(mappings: impl IntoIterator<Item = &'m Mapping>) -> Option<&'m str> {
    mappings.into_iter().find(|mapping| mapping.file_name() == "libjvm.so").and_then(Mapping::file)
}

/// Whether the JVM is an OpenJ9, whose library goes by HotSpot's name, too.
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
    fn a_preloaded_allocator_wins() {
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
}
