//! The `PAGEMAP_SCAN` ioctl (kernel 6.7, man 2 PAGEMAP_SCAN): the present pages of a range, as runs. No crate offers
//! this ioctl, and the kernel fills a slice that it is given.
#![expect(unsafe_code, reason = "an ioctl with pointers; its arguments are checked here and nowhere else")]

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::ffi::c_void;
use std::os::fd::AsFd;

/// `struct page_region`: pages `[start, end)` with the same categories.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PageRegion {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) categories: u64,
}

/// `PAGE_IS_PRESENT`: in memory.
pub(super) const PRESENT: u64 = 1 << 3;
/// `PAGE_IS_SWAPPED`: swapped out.
pub(super) const SWAPPED: u64 = 1 << 4;
/// `PAGE_IS_PFNZERO`: the shared zero page, which weighs nothing.
pub(super) const ZERO: u64 = 1 << 5;

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Argument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// One call: its argument, and the slice that the kernel writes.
struct Scan<'a> {
    argument: Argument,
    into: &'a mut [PageRegion],
}

// SAFETY: the opcode is that of PAGEMAP_SCAN, `_IOWR('f', 16, struct pm_scan_arg)`, and `as_ptr` gives it exactly that
// structure. `vec` and `vec_len` describe `into`, which outlives the call because `Scan` borrows it.
unsafe impl Ioctl for Scan<'_> {
    /// Number of regions filled.
    type Output = usize;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Argument>(b'f', 16)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument.vec = self.into.as_mut_ptr() as u64;
        self.argument.vec_len = self.into.len() as u64;
        (&raw mut self.argument).cast()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _argument: *mut c_void) -> Result<Self::Output, Errno> {
        Ok(usize::try_from(out).unwrap_or(0))
    }
}

/// Fills `into` with the runs of present or swapped pages of `[start, end)` and returns their number. If `into` is
/// full, there may be more after the last one. (`walk_end` does not show this: Linux 6.18 leaves it where its own
/// buffer of 512 regions was last full.) Returns `Errno::NOTTY` on kernels older than 6.7.
pub(super) fn scan(pagemap: impl AsFd, start: u64, end: u64, into: &mut [PageRegion]) -> Result<usize, Errno> {
    let argument = Argument {
        size: size_of::<Argument>() as u64,
        start,
        end,
        category_anyof_mask: PRESENT | SWAPPED,
        return_mask: PRESENT | SWAPPED | ZERO,
        ..Argument::default()
    };
    // SAFETY: see `Ioctl for Scan`; the descriptor stays open during the call.
    let found = unsafe { ioctl(pagemap, Scan { argument, into: &mut *into }) }?;
    Ok(found.min(into.len()))
}
