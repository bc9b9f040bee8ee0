//! Memory that the program freed and malloc retains.

use super::facts::{Facts, holds, least, share};
use super::found::{first, found};
use crate::owner::Owner;
use crate::record::{Finding, FindingRecord, MallocRecord};
use crate::remedy::changes;
use crate::scenario::Change;
use crate::units::{Bytes, several};

/// A trim returned 76 to 87% of the row (measured; docs/memory.md). This bound is used if there is no prediction.
const TRIMMED_SHARE: f64 = 0.9;
/// Memory retained outside the compilers' arenas is ignored below this share of RSS.
const OWN_SHARE_MIN: f64 = 0.04;
/// Setting any of these disables glibc's dynamic threshold (mallopt(3)), so a finding proposes a threshold only if
/// none of them is set.
pub(super) const THRESHOLDS: [&str; 4] =
    ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_"];

/// Malloc retains freed memory. Source: bigbluebutton #25309 (two arenas: RSS −63 MB), SapMachine #2110 (one arena by
/// default), glibc's manual for thresholds, hotspot-dev 2021-08 054323 and JDK-8293114 (trim by the JVM), and measured:
/// Netty's uploads 632 to 184 MB with one arena, a trim returns 76 to 87% of the row.
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
    let text = format!("malloc retains {} that the program has freed, kept by {keeper}", Bytes(retained_bytes));
    let next = match (is_glibc, first(&remedies)) {
        (true, Some(first)) => format!("try `{first}` under load, and watch the CPU time per request"),
        (true, None) => "this remains even with the options already set; try another `MALLOC_ARENA_MAX` or another \
             allocator"
            .to_owned(),
        (false, _) => format!(
            "{allocator} ignores glibc's variables and `-XX:TrimNativeHeapInterval`; both work in an image with glibc"
        ),
    };
    let finding = Finding::MallocRetained { retained_bytes, trim_bytes, arenas: malloc.arenas, allocator };
    let found = found(finding, text, next);
    Some(FindingRecord { costs_bytes: retained_bytes, gain_bytes_max: Some(bound), remedies, ..found })
}

/// Whether nearly all of it is in the JIT compiler threads' arenas. Such memory grows only once, during warm-up, and
/// fewer arenas do not reduce it. Measured: small servers retain 10 to 40 MiB, nearly all of it in these arenas.
fn is_of_compilers(malloc: &MallocRecord, retained_bytes: u64, rss: u64) -> bool {
    let Some(compilers) = malloc.compilers_retained_bytes else { return false };
    let own = retained_bytes.saturating_sub(compilers);
    share(own, rss) < OWN_SHARE_MIN || own < retained_bytes / 4
}

/// Evidence against retained malloc memory as a problem: the retained memory belongs to the compilers.
pub(super) fn of_compilers(facts: &Facts) -> Option<String> {
    let (_, account) = facts.weighed()?;
    let (retained, malloc) = (holds(account, Owner::MallocRetained), account.malloc.as_ref()?);
    let compilers = malloc.compilers_retained_bytes?;
    let theirs = retained >= least(account.total_bytes) && is_of_compilers(malloc, retained, account.total_bytes);
    let (compilers, retained) = (Bytes(compilers.min(retained)), Bytes(retained));
    theirs.then(|| {
        format!(
            "the JIT compilers freed {compilers} of the {retained} that malloc retains: fewer arenas would not lower \
                that, but a trim might"
        )
    })
}

fn remedies(facts: &Facts, arenas: u64) -> Vec<Change> {
    let tuned = facts.is_set("GLIBC_TUNABLES");
    let mut remedies = Vec::new();
    if arenas > 1 && !tuned && !facts.is_set("MALLOC_ARENA_MAX") {
        remedies.push(changes::one_arena());
    }
    // Only for JVMs with the flag: 17.0.9, 21.0.1, and 22 introduced it; 11 does not have it.
    if facts.flags.has_free("TrimNativeHeapInterval") {
        remedies.push(changes::trim_often(facts.release()));
    }
    if !tuned && !THRESHOLDS.iter().any(|name| facts.is_set(name)) {
        remedies.push(changes::thresholds(["MALLOC_TRIM_THRESHOLD_"]));
    }
    remedies
}
