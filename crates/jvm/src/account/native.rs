//! Memory mapped by libraries other than the JVM's: which stretches may be theirs, and the evidence for it.
//!
//! A stretch may belong to a library if it is anonymous and neither the JVM, nor a file, nor malloc claims it. It does
//! belong to the library if one of these holds:
//! - A walk of an allocator inside the library found the stretch.
//! - The library's data, or memory already attributed to it, contains a pointer into the stretch.
//! - A malloc object named by the library's data points to its first byte, and no structure of HotSpot does.
//! - The kernel has a name for it that comes neither from malloc nor from the JVM.
//!
//! Other unclaimed memory may be HotSpot's and stays unexplained.

use super::claims::Claim;
use crate::observe::ranges::gaps;
use crate::owner::Owner;
use std::collections::BTreeSet;

/// Libraries that never map memory of their own: the C library's parts, and libraries that the JDK itself links to.
/// Names are cut at the first dot or hyphen.
const OF_THE_SYSTEM: [&str; 14] = [
    "ld",
    "libc",
    "libm",
    "libdl",
    "libpthread",
    "librt",
    "libresolv",
    "libgcc_s",
    "libstdc++",
    "libz",
    "libnss_files",
    "libnss_dns",
    "libnsl",
    "libutil",
];

/// The evidence for the owner of a stretch, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NativeEvidence {
    /// Allocated, according to a walk of the library's jemalloc.
    InUse,
    /// Free, according to the same walk.
    Free,
    /// Managed by the same jemalloc, but free memory could not be distinguished from memory in use.
    NotSplit,
    /// The library's own data points into it.
    Data,
    /// Memory attributed to the library points into it.
    Memory,
    /// A malloc object named by the library's data points to its first byte.
    Object,
    /// The kernel has a name for it.
    Name,
}

impl NativeEvidence {
    /// Whether the range is known to the byte.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::InUse | Self::Free | Self::NotSplit)
    }

    fn words(self) -> &'static str {
        match self {
            Self::InUse => "in use, according to jemalloc",
            Self::Free => "free, according to jemalloc",
            Self::NotSplit => "according to jemalloc, not split",
            Self::Data => "referenced by its data",
            Self::Memory => "referenced by memory it owns",
            Self::Object => "referenced by one of its objects",
            Self::Name => "named by the kernel",
        }
    }
}

/// A stretch that a library mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeRange {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// The library's file, or the kernel's name for the mapping.
    pub of: String,
    /// The library's allocator, if known: `mimalloc`.
    pub allocator: Option<&'static str>,
    /// The evidence for it.
    pub evidence: NativeEvidence,
}

/// Memory mapped by libraries other than the JVM's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NativeMappings {
    /// In any order.
    pub ranges: Vec<NativeRange>,
    /// First addresses of pages that HotSpot's own structures refer to; `None` unless such libraries are loaded.
    pub tables: Option<BTreeSet<u64>>,
}

impl NativeMappings {
    /// The claims on ranges with this kind of evidence.
    pub(super) fn claims(&self, which: impl Fn(NativeEvidence) -> bool) -> Vec<Claim> {
        let wanted = self.ranges.iter().filter(|range| which(range.evidence));
        let claim = |range: &NativeRange| {
            let owner = if range.evidence == NativeEvidence::Free { Owner::NativeRetained } else { Owner::Native };
            Claim::new(range.start, range.end, owner, "library", &range.name())
        };
        // Exactly known ranges take precedence, even free ones.
        let exact = self.ranges.iter().filter(|range| range.evidence.is_exact());
        let mut exact: Vec<(u64, u64)> = exact.map(|range| (range.start, range.end)).collect();
        exact.sort_unstable();
        let cut = |range: &NativeRange| {
            let from = exact.partition_point(|(_, end)| *end <= range.start);
            let within = exact[from..].iter().take_while(|(start, _)| *start < range.end).copied();
            let parts = gaps(range.start, range.end, within);
            parts.map(|(start, end)| Claim { start, end, ..claim(range) }).collect()
        };
        wanted.flat_map(|range| if range.evidence.is_exact() { vec![claim(range)] } else { cut(range) }).collect()
    }
}

impl NativeRange {
    /// `libduckdb_java.so: in use, according to jemalloc`; the same in every trial.
    fn name(&self) -> String {
        match (self.evidence, self.allocator) {
            (NativeEvidence::Name, _) => named_by_kernel(&self.of),
            (evidence, Some(allocator)) => format!("{} ({allocator}): {}", stable(&self.of), evidence.words()),
            (evidence, None) => format!("{}: {}", stable(&self.of), evidence.words()),
        }
    }
}

/// The label for memory known only by its name in `maps`.
pub(super) fn named_by_kernel(name: &str) -> String {
    format!("unknown library: the kernel names it `{name}`")
}

/// A library's file name without the digits that a program added when it unpacked the file.
fn stable(path: &str) -> String {
    const RANDOM_MIN: usize = 6;
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some(end) = name.find(".so") else { return name.to_owned() };
    let digits = name[..end].bytes().rev().take_while(u8::is_ascii_digit).count();
    let cut = if digits >= RANDOM_MIN { end - digits } else { end };
    format!("{}{}", name[..cut].trim_end_matches(['-', '_', '.']), &name[end..])
}

/// Whether a library belongs neither to the JVM nor to the system; `jvm` is libjvm's file.
pub fn foreign(path: &str, jvm: Option<&str>) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    // `HOME/lib/server/libjvm.so`.
    let home = jvm.and_then(|jvm| jvm.rsplitn(4, '/').nth(3));
    let of_jdk = home.is_some_and(|home| path.strip_prefix(home).is_some_and(|rest| rest.starts_with('/')));
    let stem = name.split(['.', '-']).next().unwrap_or(name);
    let of_system = OF_THE_SYSTEM.contains(&stem) || !name.contains(".so");
    !of_jdk && !of_system && name != "libjvm.so"
}

#[cfg(test)]
mod tests {
    use super::*;

    const JVM: Option<&str> = Some("/opt/jdk/lib/server/libjvm.so");

    #[test]
    fn jdk_and_system_libraries_are_not_foreign() {
        for path in [
            "/opt/jdk/lib/libnet.so",
            "/opt/jdk/lib/server/libjvm.so",
            "/lib/libc.so.6",
            "/lib/libm-2.31.so",
            "/lib/ld-musl-x86_64.so.1",
            "/usr/lib/libstdc++.so.6",
            "/lib/libz.so.1",
            "/opt/jdk/bin/java",
        ] {
            assert!(!foreign(path, JVM), "{path}");
        }
        for path in
            ["/tmp/libduckdb_java724.so", "/usr/lib/librocksdb.so.7", "/opt/jdk-agent/libagent.so", "/lib/libzstd.so"]
        {
            assert!(foreign(path, JVM), "{path}");
        }
    }

    #[test]
    fn a_library_has_the_same_name_in_every_trial() {
        for (path, name) in [
            ("/tmp/libduckdb_java7246049942183464125.so", "libduckdb_java.so"),
            ("/tmp/librocksdbjni17.so", "librocksdbjni17.so"),
            ("/usr/lib/libfoo-123456.so.2", "libfoo.so.2"),
            ("/x/odd", "odd"),
        ] {
            assert_eq!(stable(path), name);
        }
    }

    #[test]
    fn free_memory_is_retained_and_exact_ranges_come_first() {
        let range =
            |start, end, evidence| NativeRange { start, end, of: "/a/libx.so".into(), allocator: None, evidence };
        let ranges = vec![
            range(0, 100, NativeEvidence::Data),
            range(10, 20, NativeEvidence::InUse),
            range(20, 30, NativeEvidence::Free),
        ];
        let settled = super::super::claims::Claims::settle(NativeMappings { ranges, tables: None }.claims(|_| true));
        let found: Vec<_> = settled.all().iter().map(|claim| (claim.start, claim.owner, claim.name.as_str())).collect();
        let data = "libx.so: referenced by its data";
        let (used, free) = ("libx.so: in use, according to jemalloc", "libx.so: free, according to jemalloc");
        let (native, retained) = (Owner::Native, Owner::NativeRetained);
        assert_eq!(found, [(0, native, data), (10, native, used), (20, retained, free), (30, native, data)]);
    }
}
