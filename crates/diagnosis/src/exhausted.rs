//! The subject's own words: an `OutOfMemoryError` of the heap, also where every request failed.

use super::facts::Facts;
use super::found::found;
use super::{ceilings, live};
use crate::doubt::MemoryPool;
use crate::record::{Finding, FindingRecord};
use crate::units::Bytes;

/// The JVM's messages about a full heap (JDK 11–27).
const OF_HEAP: [&str; 3] = ["Java heap space", "GC overhead limit exceeded", "Requested array size exceeds"];

/// The heap was exhausted. A heap that is full of what lives is told by who holds it.
pub(super) fn heap(facts: &Facts) -> Option<FindingRecord> {
    let error = facts.error_of(MemoryPool::Other)?;
    let is_told = ceilings::share_unheeded(facts).is_some() || live::statics(facts).is_some();
    if is_told || !OF_HEAP.iter().any(|sign| error.contains(sign)) {
        return None;
    }
    let max_bytes = facts.heap_max().filter(|bytes| *bytes > 0);
    let of = max_bytes.map(|bytes| format!(", which may become {}", Bytes(bytes))).unwrap_or_default();
    let text = format!("the heap{of}, was exhausted: the subject printed `{error}`");
    let next = "see what fills it (`-XX:+HeapDumpOnOutOfMemoryError`): what grows without a bound fills any heap; \
        where all of it is needed, raise `-Xmx`, and the limit with it";
    Some(found(Finding::HeapExhausted { error, max_bytes }, text, next))
}
