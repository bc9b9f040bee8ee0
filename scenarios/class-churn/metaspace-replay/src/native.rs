//! The memory that a replay uses: blocks from malloc, and address space that is committed in granules.
//!
//! This is the program's only unsafe code. A block's size is known only when the trace is read, and the measured
//! memory must contain only blocks. So each block holds a link to the next one, which no safe collection supports.
#![expect(unsafe_code, reason = "malloc, free, malloc_trim, and mappings at fixed addresses have no safe equivalents")]

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::{c_int, c_void};
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(block: *mut c_void);
    #[cfg(target_env = "gnu")]
    fn malloc_trim(kept: usize) -> c_int;
}

/// The value that fills metadata words. It is nonzero so that no page remains mapped to the shared zero page.
const FILLED: u64 = 0x4d45_5441_4d45_5441;
const WORD_BYTES: usize = size_of::<u64>();

/// Whether a block starts with two additional words that link it into the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// No: a link to the next block replaces the block's first word of content.
    Absent,
    /// Yes: the two words link to the next and the previous block.
    TwoWords,
}

/// The start of a block; without a header, only `next` exists.
#[repr(C)]
struct Link {
    next: *mut Link,
    previous: *mut Link,
}

/// An arena's blocks, each allocated with `malloc`.
pub(crate) struct Blocks {
    head: *mut Link,
    header: Header,
    /// Marks the chain as the owner of its blocks.
    owned: PhantomData<Box<Link>>,
}

impl Blocks {
    /// Creates an empty chain whose blocks will have this header.
    pub(crate) fn new(header: Header) -> Self {
        Self { head: std::ptr::null_mut(), header, owned: PhantomData }
    }

    /// Allocates a block of this many words (but at least one) and fills it. Fails if there is no memory.
    pub(crate) fn push(&mut self, words: u32) -> io::Result<()> {
        let words = words.max(1) as usize;
        let header_words = if self.header == Header::TwoWords { 2 } else { 0 };
        let total = header_words + words;
        // SAFETY: malloc accepts any size; its result is checked before use.
        let block = unsafe { malloc(total * WORD_BYTES) }.cast::<u64>();
        if block.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // SAFETY: malloc's result is aligned for any type, and `block` has `total` words: at least 1, or 3 with a
        // header. So the link (or just its first word) and the words after it are inside the block. `head` is null or
        // points to a block like this one, which is still allocated: only `clear` frees blocks, and it leaves `head`
        // null. With a header, that block also has a `previous`.
        unsafe {
            for index in 1..total {
                block.add(index).write(FILLED);
            }
            let link = block.cast::<Link>();
            (&raw mut (*link).next).write(self.head);
            if self.header == Header::TwoWords {
                (&raw mut (*link).previous).write(std::ptr::null_mut());
                if !self.head.is_null() {
                    (&raw mut (*self.head).previous).write(link);
                }
            }
            self.head = link;
        }
        Ok(())
    }

    /// Frees all blocks, starting with the newest.
    pub(crate) fn clear(&mut self) {
        while !self.head.is_null() {
            let block = self.head;
            // SAFETY: `block` came from malloc in `push`, has not been freed, and begins with the link to the next
            // block, which is read before this one is freed.
            unsafe {
                self.head = (&raw const (*block).next).read();
                free(block.cast());
            }
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Asks the C library to return retained memory; `false` if that is unsupported, or if it returned nothing.
pub(crate) fn trim() -> bool {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` takes a number and affects only malloc's free memory.
    return unsafe { malloc_trim(0) } == 1;
    #[cfg(not(target_env = "gnu"))]
    false
}

/// Reserved address space, which is committed and uncommitted in granules.
pub(crate) struct Reservation {
    base: NonNull<c_void>,
    granule_bytes: usize,
    committed: Vec<bool>,
}

impl Reservation {
    /// Reserves this many granules, whose size must be a multiple of the page size.
    pub(crate) fn new(granules: usize, granule_bytes: usize) -> io::Result<Self> {
        let bytes = granules.checked_mul(granule_bytes).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses an unmapped location.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::empty(), flags) }?;
        let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, granule_bytes, committed: vec![false; granules] })
    }

    /// Commits these granules, and returns how many of them were not committed before.
    pub(crate) fn commit(&mut self, granules: Range<usize>) -> io::Result<usize> {
        let mut count = 0;
        for granule in granules {
            if self.committed[granule] {
                continue;
            }
            // SAFETY: the granule is inside this reservation (the index is checked above), and no references to it
            // exist.
            unsafe { mprotect(self.at(granule), self.granule_bytes, MprotectFlags::READ | MprotectFlags::WRITE) }?;
            self.committed[granule] = true;
            count += 1;
        }
        Ok(count)
    }

    /// Gives these granules' pages back to the kernel, and returns how many of the granules were committed.
    pub(crate) fn uncommit(&mut self, granules: Range<usize>) -> io::Result<usize> {
        let mut count = 0;
        for granule in granules {
            if !self.committed[granule] {
                continue;
            }
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
            // SAFETY: this replaces only pages of the reservation (the index is checked above), and no references to it
            // exist.
            unsafe { mmap_anonymous(self.at(granule), self.granule_bytes, ProtFlags::empty(), flags) }?;
            self.committed[granule] = false;
            count += 1;
        }
        Ok(count)
    }

    /// Fills the words in `bytes`, a range of word-aligned offsets. Fails unless all of them are committed.
    pub(crate) fn fill(&mut self, bytes: Range<usize>) -> io::Result<()> {
        let granules = bytes.start / self.granule_bytes..bytes.end.div_ceil(self.granule_bytes);
        let usable = self.committed.get(granules).is_some_and(|part| part.iter().all(|committed| *committed));
        if !usable || !bytes.start.is_multiple_of(WORD_BYTES) || !bytes.end.is_multiple_of(WORD_BYTES) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for word in bytes.start / WORD_BYTES..bytes.end / WORD_BYTES {
            // SAFETY: as checked above, the word is in a committed granule, which is readable and writable; the base
            // is page-aligned.
            unsafe { self.base.cast::<u64>().add(word).write(FILLED) };
        }
        Ok(())
    }

    /// The number of committed granules.
    #[cfg(test)]
    pub(crate) fn committed(&self) -> usize {
        self.committed.iter().filter(|committed| **committed).count()
    }

    /// The address of a granule.
    fn at(&self, granule: usize) -> *mut c_void {
        self.base.as_ptr().wrapping_byte_add(granule * self.granule_bytes)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let bytes = self.committed.len() * self.granule_bytes;
        // SAFETY: this unmaps exactly what `new` mapped, and no references to it exist.
        let unmapped = unsafe { munmap(self.base.as_ptr(), bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of {bytes} bytes: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_every_size_are_chained_and_freed() {
        for header in [Header::Absent, Header::TwoWords] {
            let mut blocks = Blocks::new(header);
            for _ in 0..2 {
                (0..1000).for_each(|words| blocks.push(words).unwrap());
                let mut count = 0;
                let mut link = blocks.head;
                while !link.is_null() {
                    count += 1;
                    // SAFETY: the chain contains only blocks that have not been freed.
                    let next = unsafe { (*link).next };
                    if header == Header::TwoWords && !next.is_null() {
                        // SAFETY: as above; with a header, both words exist.
                        assert_eq!(unsafe { (*next).previous }, link);
                    }
                    link = next;
                }
                assert_eq!(count, 1000);
                blocks.clear();
                assert!(blocks.head.is_null());
            }
        }
    }

    #[test]
    fn only_committed_memory_can_be_filled() {
        const GRANULE: usize = 64 << 10;
        let mut space = Reservation::new(4, GRANULE).unwrap();
        assert!(space.fill(0..8).is_err());
        space.commit(1..3).unwrap();
        space.commit(2..3).unwrap();
        assert_eq!(space.committed(), 2);
        space.fill(GRANULE..3 * GRANULE).unwrap();
        assert!(space.fill(GRANULE..3 * GRANULE + 8).is_err());
        assert!(space.fill(GRANULE - 8..GRANULE + 8).is_err());
        assert!(space.fill(GRANULE + 1..GRANULE + 9).is_err());
        assert!(space.fill(4 * GRANULE..4 * GRANULE + 8).is_err());
        assert_eq!(space.uncommit(0..3).unwrap(), 2);
        assert_eq!(space.uncommit(0..4).unwrap(), 0);
        assert!(space.fill(GRANULE..GRANULE + 8).is_err());
        space.commit(1..2).unwrap();
        space.fill(GRANULE..GRANULE + 8).unwrap();
    }
}
