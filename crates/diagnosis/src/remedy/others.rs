//! Remedies for malloc, the collector, the compilers, headers, classes, Netty, and I/O.

use super::changes::{self, jvm};
use super::{Facts, NotOffered, Offer};
use crate::owner::Owner;
use crate::scenario::{Change, Gc};

/// Flags that select a collector.
pub(super) const COLLECTORS: &[&str] = &[
    "UseSerialGC",
    "UseParallelGC",
    "UseG1GC",
    "UseZGC",
    "UseShenandoahGC",
    "UseConcMarkSweepGC",
    "UseEpsilonGC",
    "AlwaysActAsServerClassMachine",
];
/// The share of the code cache that may contain C2 and profiled code (measured on small servers).
const SECOND_SHARE: f64 = 0.6;
/// Additional bytes in C2's arenas.
const COMPILER_ARENAS: u64 = 4 << 20;
/// The share of class metadata that an archive may replace.
const ARCHIVED_SHARE: f64 = 0.5;
/// The share of retained memory that a single arena may save: as much as a trim returns, minus chunks that move
/// elsewhere.
const ARENAS_SHARE: f64 = 0.9;
/// The owners of memory that glibc retains.
pub(super) const RETAINED: &[Owner] = &[Owner::MallocRetained, Owner::MallocUnsplit];

/// Changes that save retained memory, or as much as a trim would return if that is more.
pub(super) fn retained(facts: &Facts, changes: impl Into<Vec<Change>>) -> Result<Offer, NotOffered> {
    let rows = (facts.held_by(RETAINED) as f64 * ARENAS_SHARE) as u64;
    Ok(Offer::of(changes.into(), rows.max(facts.trim.unwrap_or(0))))
}

/// Another allocator, if its library is installed.
pub(super) fn preload(facts: &Facts, name: &str) -> Result<Offer, NotOffered> {
    let Some(library) = facts.libraries.iter().find(|library| library.contains(name)) else {
        return Err(NotOffered::NotHere(format!("the dynamic linker found no {name} library")));
    };
    retained(facts, [Change::Preload(Some(library.clone()))])
}

/// Buffers that threads cache for array I/O (`sun.nio.ch.Util`, unbounded by default).
pub(super) fn buffer_cache(facts: &Facts) -> Result<Offer, NotOffered> {
    // Buffers counted by Netty are not thread caches.
    if facts.netty {
        return Err(NotOffered::NotHere("Netty does its own I/O".to_owned()));
    }
    Ok(Offer::of(vec![changes::small_buffers()], facts.direct))
}

/// A property of Netty's pools.
pub(super) fn netty(facts: &Facts, property: &str) -> Result<Offer, NotOffered> {
    if !facts.netty {
        return Err(NotOffered::NotHere("Netty was not detected".to_owned()));
    }
    Ok(Offer::of(vec![changes::netty_allocator(property)], facts.direct))
}

/// A collector without side tables.
pub(super) fn serial(facts: &Facts) -> Result<Offer, NotOffered> {
    if facts.collector.as_deref() == Some("Serial") {
        return Err(NotOffered::NotHere("the collector is already Serial".to_owned()));
    }
    let gain = facts.held(Owner::Gc).saturating_add(facts.heap().saturating_sub(facts.live.unwrap_or(0)) / 2);
    Ok(Offer::of(vec![Change::Gc(Gc::Serial)], gain))
}

pub(super) fn first_compiler(facts: &Facts) -> Result<Offer, NotOffered> {
    let gain = (facts.held(Owner::CodeCache) as f64 * SECOND_SHARE) as u64;
    Ok(Offer::of(vec![changes::first_compiler()], gain.saturating_add(COMPILER_ARENAS)))
}

const HEADERS_FAULT: &str =
    "JDK-8380060: it silently corrupts byte arrays; the fix is in JDK 27, where the option is the default";

/// Headers of 8 bytes (JEP 450, 519). C2 corrupts byte arrays with them (JDK-8380060). The fix has been in JDK 27 since
/// April 2026 (openjdk/jdk 30775), a month after the release of JDK 26. No release notes of later 25 or 26 updates
/// mention it.
pub(super) fn compact_headers(facts: &Facts) -> Result<Offer, NotOffered> {
    match facts.release.map(|[major, ..]| major) {
        Some(24..=26) => Err(NotOffered::Fault(HEADERS_FAULT)),
        Some(27..) => Err(NotOffered::NotHere("it is already the default (JEP 534)".to_owned())),
        _ => Err(NotOffered::Unknown("the JDK release")),
    }
}

/// An archive of the application's classes, written at the end of a training run (JEP 350, JDK 13).
pub(super) fn class_archive(facts: &Facts) -> Result<Offer, NotOffered> {
    trained(facts, "classes.jsa", ["SharedArchiveFile", "ArchiveClassesAtExit"])
}

/// A cache of linked classes with method profiles, created the same way (JEP 483, 514).
pub(super) fn aot_cache(facts: &Facts) -> Result<Offer, NotOffered> {
    trained(facts, "classes.aot", ["AOTCache", "AOTCacheOutput"])
}

/// A file created by a training run, with the flags to read and write it.
fn trained(facts: &Facts, name: &str, [reads, writes]: [&str; 2]) -> Result<Offer, NotOffered> {
    let Some(folder) = &facts.scratch else {
        return Err(NotOffered::NotHere("the server has no place to write an archive".to_owned()));
    };
    let held = facts.held_by(&[Owner::Metaspace, Owner::ClassSpace]);
    let set = |flag: &str| vec![jvm([format!("-XX:{flag}={folder}/{name}")])];
    let offer = Offer::of(set(reads), (held as f64 * ARCHIVED_SHARE) as u64);
    Ok(Offer { training: set(writes), ..offer })
}
