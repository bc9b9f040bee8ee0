//! The code heaps (`CodeCache::_heaps`, `CodeHeap::_memory`, JDK 17–25): three, or one if the code cache is not
//! segmented. Their bounds are those that `Compiler.codecache` prints.

use super::super::Unavailable;
use super::super::addresses::{JvmRange, Purpose};
use super::super::code_heaps::CodeHeapRecord;
use super::super::memory::Memory;
use super::fields::{Fields, VirtualSpace, absurd, unread};
use super::tables::Tables;

/// There are at most three.
const HEAPS_MAX: u32 = 16;
/// Maximum size of a code heap's own structure, which contains the address of its name.
const HEAP_BYTES_MAX: u64 = 4096;
/// The prefix of code heap names, and the name if there is only one (`codeCache.cpp`).
const SEGMENT: &str = "CodeHeap '";
const WHOLE: &str = "CodeCache";

/// Reads the ranges of compiled code, in the JVM's own order. Fails if this JVM does not describe its code heaps, or
/// its values are inconsistent.
pub fn heaps(memory: &dyn Memory, tables: &Tables) -> Result<Vec<(JvmRange, Option<CodeHeapRecord>)>, Unavailable> {
    let fields = Fields { memory, tables };
    let list = fields.of_class(&["CodeCache::_heaps"])?;
    let count = fields.half(list, &["GrowableArrayBase::_len", "GenericGrowableArray::_len"])?;
    let data = fields.word(list, &["GrowableArray<int>::_data"])?;
    if !(1..=HEAPS_MAX).contains(&count) {
        return Err(absurd("the list of code heaps"));
    }
    let heap = |n: u32| {
        let heap = data.checked_add(8 * u64::from(n)).and_then(|at| memory.u64(at)).ok_or_else(unread)?;
        let space = fields.virtual_space(fields.place(heap, &["CodeHeap::_memory"])?)?;
        let named = name(memory, heap, tables.size("CodeHeap")?.min(HEAP_BYTES_MAX));
        let (at, name) = named.unwrap_or_else(|| (0, WHOLE.to_owned()));
        let of = CodeHeapRecord { name: name.clone(), reserved_bytes: space.reserved(), ..CodeHeapRecord::default() };
        let full = fullness(fields, heap, at, space);
        let full = full.map(|(used_bytes, used_bytes_peak)| CodeHeapRecord { used_bytes, used_bytes_peak, ..of });
        let (start, end, committed_end) = (space.start, space.end, Some(space.high));
        Ok((JvmRange { start, end, committed_end, purpose: Purpose::CodeCache, name }, full))
    };
    (0..count).map(heap).collect()
}

/// Finds a code heap's name, and the offset of its address within the heap. No field describes it, but only one word of
/// the heap is the address of such a string.
fn name(memory: &dyn Memory, heap: u64, size: u64) -> Option<(u64, String)> {
    let words = (0..size / 8).filter_map(|n| heap.checked_add(8 * n).and_then(|at| Some((at, memory.u64(at)?))));
    let mut texts = words.filter(|(_, word)| *word >= 1 << 16).filter_map(|(at, word)| Some((at, memory.text(word)?)));
    let (at, found) = texts.find(|(_, text)| text == WHOLE || text.starts_with(SEGMENT))?;
    Some((at, found.strip_prefix(SEGMENT).unwrap_or(&found).trim_end_matches('\'').to_owned()))
}

/// Bytes in use, and their maximum so far. `None` unless the fields between the heap's segment size and name are
/// consistent (`heap.hpp`): the next segment, four words about free blocks, and the maximum. One of the four is the
/// number of segments in free blocks.
///
/// ```text
/// segment size, its logarithm, next segment, free list, insertion point, free segments, free blocks, most bytes, name
/// ```
fn fullness(fields: Fields<'_>, heap: u64, name_at: u64, space: VirtualSpace) -> Option<(u64, u64)> {
    let log2_at = fields.place(heap, &["CodeHeap::_log2_segment_size"]).ok()?;
    let word = |n: u64| fields.memory.u64(log2_at.checked_add(8 * n)?);
    (log2_at.checked_add(56)? == name_at).then_some(())?;
    let (log2, next, free, most) = (fields.memory.u32(log2_at)?, word(1)?, word(4)?, word(6)?);
    let segment = 1u64.checked_shl(log2)?;
    (fields.memory.u64(log2_at.checked_sub(8)?)? == segment).then_some(())?;
    let used = next.checked_sub(free)?.checked_mul(segment)?;
    let fits = next.checked_mul(segment)? <= space.committed() && used <= most && most <= space.reserved();
    fits.then_some((used, most))
}
