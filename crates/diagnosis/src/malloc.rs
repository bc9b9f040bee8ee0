//! Memory that the program freed and malloc retains.

use super::facts::{Facts, holds, least, share};
use super::found::{first, found};
use crate::owner::Owner;
use crate::record::{Finding, FindingRecord, MallocRecord};
use crate::remedy::changes;
use crate::scenario::Change;
use crate::units::{Bytes, several};

/// A trim returned 76 to 87 % of the row (measured; docs/memory.md), where no prediction can be had.
const TRIMMED_SHARE: f64 = 0.9;
/// Below this share of RSS, what is retained outside the arenas of the compilers does not matter.
const OWN_SHARE_MIN: f64 = 0.04;
/// Each of these switches glibc's own threshold off (mallopt(3)), so that a second one is another remedy's business.
pub(super) const THRESHOLDS: [&str; 4] =
    ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_"];

/// Malloc retains what was freed. Source: bigbluebutton #25309 (two arenas: RSS −63 MB),
/// SapMachine #2110 (one arena by default), glibc's manual for thresholds, hotspot-dev 2021-08 054323 and JDK-8293114
/// (trim by the JVM), and measured: Netty's uploads 632 to 184 MB with one arena, a trim returns 76 to 87 % of the row.
pub(super) fn retained(facts: &Facts) -> Option<FindingRecord> {
    let (_, account) = facts.weighed()?;
    let retained_bytes = holds(account, Owner::MallocRetained);
    let malloc = account.malloc.as_ref()?;
    if is_of_compilers(malloc, retained_bytes, account.total_bytes) {
        return None;
    }
    let is_glibc = malloc.allocator == "glibc";
    let trim_bytes = account.would_return.trim_bytes.filter(|_| is_glibc);
    let bound = trim_bytes.unwrap_or((retained_bytes as f64 * TRIMMED_SHARE) as u64).min(retained_bytes);
    let remedies = if is_glibc { remedies(facts, malloc.arenas) } else { Vec::new() };
    let allocator = malloc.allocator.clone();
    let keeper = match malloc.arenas {
        0 => allocator.clone(),
        arenas => format!("{allocator} in {}", several(arenas, "arena")),
    };
    let trim = trim_bytes.map(|bytes| format!("; a trim would return {}", Bytes(bytes))).unwrap_or_default();
    let text = format!("malloc retains {}, freed by the program and kept by {keeper}{trim}", Bytes(retained_bytes));
    let next = match (is_glibc, first(&remedies)) {
        (true, Some(first)) => format!("try `{first}` under the load, and watch the CPU time per request"),
        (true, None) => "what is set already leaves this; another `MALLOC_ARENA_MAX` or allocator is left".to_owned(),
        (false, _) => format!(
            "{allocator} heeds no variable of glibc and no `-XX:TrimNativeHeapInterval`; an image with glibc does"
        ),
    };
    let finding = Finding::MallocRetained { retained_bytes, trim_bytes, arenas: malloc.arenas, allocator };
    let found = found(finding, text, next);
    Some(FindingRecord { costs_bytes: retained_bytes, gain_bytes_max: Some(bound), remedies, ..found })
}

/// Whether nearly all of it is in the arenas of the JIT's compiler threads: what a compiler frees grows once, while the
/// program warms up, and no number of arenas makes it less. Measured: small servers retain 10 to 40 MiB, nearly all of
/// it there.
fn is_of_compilers(malloc: &MallocRecord, retained_bytes: u64, rss: u64) -> bool {
    let Some(compilers) = malloc.compilers_retained_bytes else { return false };
    let own = retained_bytes.saturating_sub(compilers);
    share(own, rss) < OWN_SHARE_MIN || own < retained_bytes / 4
}

/// Speaks against it: what malloc retains is the compilers'.
pub(super) fn of_compilers(facts: &Facts) -> Option<String> {
    let (_, account) = facts.weighed()?;
    let (retained, malloc) = (holds(account, Owner::MallocRetained), account.malloc.as_ref()?);
    let compilers = malloc.compilers_retained_bytes?;
    let theirs = retained >= least(account.total_bytes) && is_of_compilers(malloc, retained, account.total_bytes);
    let (compilers, retained) = (Bytes(compilers.min(retained)), Bytes(retained));
    theirs.then(|| {
        format!(
            "malloc retains {retained}, of which the JIT compilers freed {compilers}: fewer arenas would not lower \
             that, but a trim may"
        )
    })
}

fn remedies(facts: &Facts, arenas: u64) -> Vec<Change> {
    let tuned = facts.is_set("GLIBC_TUNABLES");
    let mut remedies = Vec::new();
    if arenas > 1 && !tuned && !facts.is_set("MALLOC_ARENA_MAX") {
        remedies.push(changes::one_arena());
    }
    // Only a JVM that has the flag: 17.0.9 and 21.0.1 got it, 22 was the first; 11 has none.
    if facts.flags.has_free("TrimNativeHeapInterval") {
        remedies.push(changes::trim_often(facts.release()));
    }
    if !tuned && !THRESHOLDS.iter().any(|name| facts.is_set(name)) {
        remedies.push(changes::thresholds(["MALLOC_TRIM_THRESHOLD_"]));
    }
    remedies
}
