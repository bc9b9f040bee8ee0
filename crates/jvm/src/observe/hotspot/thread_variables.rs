//! The `ThreadLocal` variables of threads: `ThreadLocalMap.table` → `Entry.value` (JDK 11–27). The class of each object
//! is verified before it is read.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::classes::{Field, FoundClasses};
use super::objects::Objects;

/// The thread class, and its field with the variables.
pub(super) const THREAD: &str = "java/lang/Thread";
pub(super) const LOCALS: &str = "threadLocals";
/// The classes of a thread's variables.
pub(super) const MAP: &str = "java/lang/ThreadLocal$ThreadLocalMap";
pub(super) const ENTRY: &str = "java/lang/ThreadLocal$ThreadLocalMap$Entry";
/// A thread has about ten variables; their table has at least twice as many slots.
const VARIABLES_MAX: u32 = 1 << 16;

/// The fields on the path from a thread's map to the values, and the expected classes.
pub(super) struct Variables<'a> {
    memory: &'a dyn Memory,
    objects: &'a Objects,
    map: u64,
    entry: u64,
    table: Field,
    value: Field,
}

impl<'a> Variables<'a> {
    /// From the classes found, including `MAP` and `ENTRY`. Fails if this JVM stores variables differently.
    pub(super) fn of(
        memory: &'a dyn Memory,
        objects: &'a Objects,
        found: &FoundClasses<'_>,
    ) -> Result<Self, Unavailable> {
        let (map, entry) = (found.class(MAP)?, found.class(ENTRY)?);
        let (table, value) = (found.field(MAP, "table")?, found.field(ENTRY, "value")?);
        Ok(Self { memory, objects, map, entry, table, value })
    }

    /// The entries of a map; `None` if the object is not a map, or is being moved.
    pub(super) fn entries(&self, map: u64) -> Option<Vec<u64>> {
        let Self { memory, objects, .. } = *self;
        (objects.class_of(memory, map)? == self.map).then_some(())?;
        objects.elements(memory, objects.follow(memory, map, &self.table)?, VARIABLES_MAX)
    }

    /// The object that an entry refers to.
    pub(super) fn value(&self, entry: u64) -> Option<u64> {
        (self.objects.class_of(self.memory, entry)? == self.entry).then_some(())?;
        self.objects.follow(self.memory, entry, &self.value)
    }
}
