//! A JVM's flags as recorded.

use crate::diagnosis::flags_kept;
use crate::observe::hotspot::flags::Flags;
use crate::record::{FlagRecord, FlagsRecord};
use loadline_base::order::Order as _;

/// All flags, naming those that are not at their default.
pub(super) fn record(flags: Flags) -> FlagsRecord {
    let mut record = FlagsRecord::default();
    for flag in flags.list {
        match flag.origin {
            Some(origin) => record.set.push(FlagRecord { name: flag.name, value: flag.value, origin }),
            None => _ = record.defaults.insert(flag.name, flag.value),
        }
    }
    record.set.order_by(|one, other| one.name.cmp(&other.name));
    record
}

/// For a trial, which also keeps the defaults that its diagnosis uses.
pub(super) fn kept(flags: &Flags) -> FlagsRecord {
    let mut record = record(flags.clone());
    record.defaults.retain(|name, _| flags_kept().any(|kept| kept == name));
    record
}
