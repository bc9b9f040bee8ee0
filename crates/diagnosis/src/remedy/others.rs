//! Remedies of malloc, the collector, the compilers, headers, classes, Netty and I/O.

use super::changes::{self, jvm};
use super::{Facts, NotOffered, Offer};
use crate::owner::Owner;
use crate::scenario::{Change, Gc};

/// Flags by which somebody chose a collector.
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
/// The share of the code cache that may hold code of the second compiler and profiled code (measured on small servers).
const SECOND_SHARE: f64 = 0.6;
/// The bytes that the arenas of that compiler may hold in addition.
const COMPILER_ARENAS: u64 = 4 << 20;
/// The share of class metadata that an archive may replace.
const ARCHIVED_SHARE: f64 = 0.5;
/// The share of retained memory that one arena may save: what a trim returns, and chunks that then live elsewhere.
const ARENAS_SHARE: f64 = 0.9;
/// The owners of what glibc retains.
pub(super) const RETAINED: &[Owner] = &[Owner::MallocRetained, Owner::MallocUnsplit];

/// These changes, which save what glibc retains, or what a trim would return if that is more.
pub(super) fn retained(facts: &Facts, changes: impl Into<Vec<Change>>) -> Result<Offer, NotOffered> {
    let rows = (facts.held_by(RETAINED) as f64 * ARENAS_SHARE) as u64;
    Ok(Offer::of(changes.into(), rows.max(facts.trim.unwrap_or(0))))
}

/// Another allocator, where its library was found.
pub(super) fn preload(facts: &Facts, name: &str) -> Result<Offer, NotOffered> {
    let Some(library) = facts.libraries.iter().find(|library| library.contains(name)) else {
        return Err(NotOffered::NotHere(format!("no library of {name} was found where the loader looks")));
    };
    retained(facts, [Change::Preload(Some(library.clone()))])
}

/// Buffers that threads keep for I/O from arrays (`sun.nio.ch.Util`, unbounded by default).
pub(super) fn buffer_cache(facts: &Facts) -> Result<Offer, NotOffered> {
    // Buffers that Netty counts are its own, not those of threads.
    if facts.netty {
        return Err(NotOffered::NotHere("Netty does its own I/O".to_owned()));
    }
    Ok(Offer::of(vec![changes::small_buffers()], facts.direct))
}

/// Netty's pools: one of its properties.
pub(super) fn netty(facts: &Facts, property: &str) -> Result<Offer, NotOffered> {
    if !facts.netty {
        return Err(NotOffered::NotHere("no Netty was seen".to_owned()));
    }
    Ok(Offer::of(vec![changes::netty_allocator(property)], facts.direct))
}

/// The collector without tables.
pub(super) fn serial(facts: &Facts) -> Result<Offer, NotOffered> {
    if facts.collector.as_deref() == Some("Serial") {
        return Err(NotOffered::NotHere("the collector is Serial".to_owned()));
    }
    let gain = facts.held(Owner::Gc).saturating_add(facts.heap().saturating_sub(facts.live.unwrap_or(0)) / 2);
    Ok(Offer::of(vec![Change::Gc(Gc::Serial)], gain))
}

/// No second compiler.
pub(super) fn first_compiler(facts: &Facts) -> Result<Offer, NotOffered> {
    let gain = (facts.held(Owner::CodeCache) as f64 * SECOND_SHARE) as u64;
    Ok(Offer::of(vec![changes::first_compiler()], gain.saturating_add(COMPILER_ARENAS)))
}

const HEADERS_FAULT: &str =
    "JDK-8380060: it corrupts byte arrays silently; the fix came with JDK 27, where it is the default";

/// Headers of 8 bytes (JEP 450, 519). C2 corrupts byte arrays with them (JDK-8380060). The fix went into JDK 27 in
/// April 2026 (openjdk/jdk 30775), a month after JDK 26 came out, and no notes of a later 25 or 26 name it.
pub(super) fn compact_headers(facts: &Facts) -> Result<Offer, NotOffered> {
    match facts.release.map(|[major, ..]| major) {
        Some(24..=26) => Err(NotOffered::Fault(HEADERS_FAULT)),
        Some(27..) => Err(NotOffered::NotHere("it is the default (JEP 534)".to_owned())),
        _ => Err(NotOffered::Unknown("the release of the JDK")),
    }
}

/// An archive of the application's classes, written at the end of a run that comes first (JEP 350, JDK 13).
pub(super) fn class_archive(facts: &Facts) -> Result<Offer, NotOffered> {
    trained(facts, "classes.jsa", ["SharedArchiveFile", "ArchiveClassesAtExit"])
}

/// A cache of classes that are linked already, with profiles of their methods, written in the same way (JEP 483, 514).
pub(super) fn aot_cache(facts: &Facts) -> Result<Offer, NotOffered> {
    trained(facts, "classes.aot", ["AOTCache", "AOTCacheOutput"])
}

/// A file that a run makes which comes first, and the flags that read it and write it.
fn trained(facts: &Facts, name: &str, [reads, writes]: [&str; 2]) -> Result<Offer, NotOffered> {
    let Some(folder) = &facts.scratch else {
        return Err(NotOffered::NotHere("there is no place that the subject could write an archive to".to_owned()));
    };
    let held = facts.held_by(&[Owner::Metaspace, Owner::ClassSpace]);
    let set = |flag: &str| vec![jvm([format!("-XX:{flag}={folder}/{name}")])];
    let offer = Offer::of(set(reads), (held as f64 * ARCHIVED_SHARE) as u64);
    Ok(Offer { training: set(writes), ..offer })
}
