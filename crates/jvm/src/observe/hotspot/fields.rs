//! Reads fields of HotSpot's structures by name from the memory of a running JVM.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::{SOURCE, Tables};

/// Reads fields; each is given as `Type::field`, with all names that releases use for it.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) memory: &'a dyn Memory,
    pub(super) tables: &'a Tables,
}

impl Fields<'_> {
    /// The eight bytes of a static field.
    pub(super) fn of_class(self, fields: &[&str]) -> Result<u64, Unavailable> {
        self.memory.u64(self.tables.address(fields)?).ok_or_else(unread)
    }

    /// Returns the address of a field of the structure at `object`.
    pub(super) fn place(self, object: u64, fields: &[&str]) -> Result<u64, Unavailable> {
        object.checked_add(self.tables.offset(fields)?).ok_or_else(unread)
    }

    /// The eight bytes of a field.
    pub(super) fn word(self, object: u64, fields: &[&str]) -> Result<u64, Unavailable> {
        self.memory.u64(self.place(object, fields)?).ok_or_else(unread)
    }

    /// The four bytes of a field.
    pub(super) fn half(self, object: u64, fields: &[&str]) -> Result<u32, Unavailable> {
        self.memory.u32(self.place(object, fields)?).ok_or_else(unread)
    }

    /// Reads a field that is a pointer; a null pointer is an error.
    pub(super) fn pointer(self, object: u64, fields: &[&str]) -> Result<u64, Unavailable> {
        Some(self.word(object, fields)?).filter(|at| *at != 0).ok_or_else(unread)
    }

    /// A `VirtualSpace`.
    pub(super) fn virtual_space(self, space: u64) -> Result<VirtualSpace, Unavailable> {
        let word = |field: &str| self.word(space, &[field]);
        let space = VirtualSpace {
            start: word("VirtualSpace::_low_boundary")?,
            low: word("VirtualSpace::_low")?,
            high: word("VirtualSpace::_high")?,
            end: word("VirtualSpace::_high_boundary")?,
        };
        space.plausible()
    }
}

/// Partly committed address space: `[low, high)` of `[start, end)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VirtualSpace {
    pub(super) start: u64,
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) end: u64,
}

impl VirtualSpace {
    /// The space, if its bounds are in order.
    pub(super) fn plausible(self) -> Result<Self, Unavailable> {
        let Self { start, low, high, end } = self;
        let ordered = start <= low && low <= high && high <= end && end <= super::super::text::ADDRESS_END;
        (ordered && start < end).then_some(self).ok_or_else(|| absurd("a virtual space"))
    }

    /// Committed bytes.
    pub(super) fn committed(self) -> u64 {
        self.high - self.low
    }

    /// Reserved bytes.
    pub(super) fn reserved(self) -> u64 {
        self.end - self.start
    }
}

/// Memory that cannot be read right now.
pub(super) fn unread() -> Unavailable {
    Unavailable::early(SOURCE, "memory could not be read")
}

/// Inconsistent values, as seen while they are being changed.
pub(super) fn absurd(what: &str) -> Unavailable {
    Unavailable::early(SOURCE, format!("{what} is inconsistent"))
}
