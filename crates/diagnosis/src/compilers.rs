//! The temporary memory of a JIT compilation.

use super::facts::{Facts, share, sum};
use super::found::{found, typed};
use crate::record::{CompilationRecord, Finding, FindingRecord, ThreadPoolRecord};
use crate::remedy::changes;
use crate::units::Bytes;
use loadline_jvm::purpose::Purpose;

/// Any JVM has a peak below this share of RSS, or below this size, during warm-up: 20 to 50 MiB in nine small servers.
const SHARE_MIN: f64 = 0.2;
const BYTES_MIN: u64 = 64 << 20;
/// The tier of the optimizing compiler.
const C2: u32 = 4;
/// The first release that can limit the memory of a compilation.
const MEM_LIMIT_RELEASE: u64 = 23;

/// Whether a pool's threads are compiler threads, which the JVM treats as Java threads.
pub(super) fn compile(pool: &ThreadPoolRecord) -> bool {
    Purpose::of(&pool.name) == Purpose::Jit
}

/// Finds the method whose compilations used the most memory. Returns its largest compilation, and how much memory they
/// used. RSS grew by this much during the compilations. Either the compiler threads' arenas still retain the memory, or
/// it was returned and shows up in the peak of RSS.
pub(super) fn largest<'a>(facts: &Facts<'a>) -> Option<(&'a CompilationRecord, u64)> {
    let (mark, _) = facts.weighed()?;
    let grown = |method: &str| {
        sum(facts.compilations.iter().filter(|one| one.method == method).map(|one| one.rss_growth_bytes))
    };
    let largest = facts.compilations.iter().max_by_key(|one| (grown(&one.method), one.rss_growth_bytes))?;
    let kept = facts.marks.iter().filter_map(|mark| mark.account.as_ref()?.malloc.as_ref()?.compilers_retained_bytes);
    // A running compiler holds memory that it will free.
    let kept = kept.max().unwrap_or(0);
    let given_back = facts.rss_peak.unwrap_or(0).saturating_sub(mark.rss_bytes);
    Some((largest, grown(&largest.method).min(kept.saturating_add(given_back))))
}

/// Compilations of one method use a lot of memory, which malloc then retains, so the peak determines the limit. Source:
/// JDK-8291665, openjdk/jdk 16220 (`MemLimit`, JDK 23), adoptium-support #1190 (1 to 10 GB within 10 s), sls-packaging
/// #1370; measured: one generated method of 7,752 bytes uses 290 to 400 MiB.
pub(super) fn peak(facts: &Facts) -> Option<FindingRecord> {
    let (largest, bytes) = largest(facts)?;
    if bytes < BYTES_MIN || share(bytes, facts.rss()) < SHARE_MIN {
        return None;
    }
    let compiler = if largest.tier == C2 { "C2" } else { "C1" };
    let (most, CompilationRecord { method, seconds, .. }) = (Bytes(bytes), largest);
    let text = format!(
        "{compiler} used up to {most} of malloc memory to compile `{method}` ({seconds:.1} s), and malloc keeps \
         what a compiler frees"
    );
    let command = |what: &str| changes::jvm([format!("-XX:CompileCommand={what}")]);
    let exclude = command(&format!("exclude,{method}"));
    let next = format!(
        "split the method, or exclude it from compilation: `{}`. The limit must cover this peak; fewer malloc \
         arenas do not lower it",
        typed(&exclude)
    );
    let mut remedies = vec![exclude];
    if facts.release().is_some_and(|[major, ..]| major >= MEM_LIMIT_RELEASE) {
        remedies.push(command("MemLimit,*.*,64m"));
    }
    if largest.tier == C2 && facts.flags.is_free("TieredStopAtLevel") {
        remedies.push(changes::first_compiler());
    }
    let found = found(Finding::CompilerPeak { bytes, compilation: largest.clone() }, text, next);
    Some(FindingRecord { costs_bytes: bytes, gain_bytes_max: Some(bytes), remedies, ..found })
}

/// Evidence against a compilation peak: no compilation used much memory.
pub(super) fn small(facts: &Facts) -> Option<String> {
    let (largest, bytes) = largest(facts).filter(|(_, bytes)| *bytes < BYTES_MIN)?;
    Some(format!("the largest compilation, of `{}`, used only {}", largest.method, Bytes(bytes)))
}
