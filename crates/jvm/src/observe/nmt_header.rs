//! The header that HotSpot puts before each allocation if Native Memory Tracking is on (`mallocHeader.hpp`, JDK 17–25,
//! 64-bit): the requested size, the tag number at +12, the canary 0xE99E at +14.

/// Bytes before the payload.
const HEADER: u64 = 16;
/// Bytes of the canary after the payload.
const FOOTER: u64 = 2;
/// glibc's own header before the payload that malloc returns; glibc uses eight bytes of it.
const CHUNK_HEADER: u64 = 8;
const CANARY: u64 = 0xE99E;

/// The fields of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// NMT's number of the category, which differs between versions.
    pub number: u8,
    /// Bytes requested.
    pub asked: u64,
}

/// The header in the first 16 bytes of a chunk of `size` bytes, if it has one. The chunk must be as large as malloc
/// makes it for the requested size, or at most one smallest chunk larger.
pub fn tag(low: u64, high: u64, size: u64) -> Option<Tag> {
    let tag = parse(low, high)?;
    let needed = (tag.asked.checked_add(HEADER + FOOTER + CHUNK_HEADER)?).next_multiple_of(16).max(32);
    (size >= needed && size <= needed + 32).then_some(tag)
}

/// The header in the first 16 bytes of a chunk for which malloc knows the exact requested size.
pub fn tag_exact(low: u64, high: u64, asked: u64) -> Option<Tag> {
    parse(low, high).filter(|tag| tag.asked + HEADER + FOOTER == asked)
}

/// The header of a chunk with its own mapping, which ends at the end of its last page.
pub fn tag_loose(low: u64, high: u64, size: u64, page: u64) -> Option<Tag> {
    parse(low, high).filter(|tag| tag.asked < size && size - tag.asked < 2 * page)
}

fn parse(low: u64, high: u64) -> Option<Tag> {
    (high >> 48 == CANARY && low < 1 << 47).then_some(Tag { number: (high >> 32) as u8, asked: low })
}
