//! The flags of a JVM, as they are recorded.

use crate::observe::hotspot::flags::Flags;
use crate::record::{FlagRecord, FlagsRecord};

/// All flags; those that are not at their default by name.
pub(crate) fn record(flags: Flags) -> FlagsRecord {
    let mut record = FlagsRecord::default();
    for flag in flags.list {
        match flag.origin {
            Some(origin) => record.set.push(FlagRecord { name: flag.name, value: flag.value, origin }),
            None => _ = record.defaults.insert(flag.name, flag.value),
        }
    }
    record.set.sort_by(|one, other| one.name.cmp(&other.name));
    record
}
