//! The code heaps (`CodeCache::_heaps`, `CodeHeap::_memory`, JDK 17–25): three of them, or one where the code cache is
//! not segmented. What `Compiler.codecache` says of their bounds.

use super::super::Unavailable;
use super::super::addresses::{JvmRange, Purpose};
use super::super::memory::Memory;
use super::fields::{Fields, absurd, unread};
use super::tables::Tables;

/// There are three.
const HEAPS_MAX: u32 = 16;
/// A code heap's own bytes, of which one word is the address of its name.
const HEAP_BYTES_MAX: u64 = 4096;
/// What names of code heaps begin with, and the name of the only one (`codeCache.cpp`).
const SEGMENT: &str = "CodeHeap '";
const WHOLE: &str = "CodeCache";

/// Where compiled code lies, in the JVM's own order.
///
/// # Errors
/// Where this JVM does not describe its code heaps, or what it has contradicts itself.
pub fn heaps(memory: &dyn Memory, tables: &Tables) -> Result<Vec<JvmRange>, Unavailable> {
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
        let name = name(memory, heap, tables.size("CodeHeap")?.min(HEAP_BYTES_MAX));
        Ok(JvmRange {
            start: space.start,
            end: space.end,
            committed_end: Some(space.high),
            purpose: Purpose::CodeCache,
            name: name.unwrap_or_else(|| WHOLE.to_owned()),
        })
    };
    (0..count).map(heap).collect()
}

/// The name of a code heap. No field of it is described, but only one word of the heap is the address of such a text.
fn name(memory: &dyn Memory, heap: u64, size: u64) -> Option<String> {
    let words = (0..size / 8).filter_map(|n| memory.u64(heap.checked_add(8 * n)?));
    let mut texts = words.filter(|word| *word >= 1 << 16).filter_map(|word| memory.text(word));
    let found = texts.find(|text| text == WHOLE || text.starts_with(SEGMENT))?;
    Some(found.strip_prefix(SEGMENT).unwrap_or(&found).trim_end_matches('\'').to_owned())
}
