//! The flags of a JVM, as they are recorded.

use crate::observe::hotspot::flags::{Flags, Origin};
use crate::record::{FlagOrigin, FlagRecord, FlagsRecord};

/// All flags; those that are not at their default by name.
pub(super) fn record(flags: &Flags) -> FlagsRecord {
    let mut record = FlagsRecord::default();
    for flag in &flags.list {
        let origin = match flag.origin {
            Origin::Default => {
                record.defaults.insert(flag.name.clone(), flag.value.clone());
                continue;
            }
            Origin::CommandLine => FlagOrigin::CommandLine,
            Origin::Environment => FlagOrigin::Environment,
            Origin::File => FlagOrigin::File,
            Origin::Ergonomic => FlagOrigin::Ergonomic,
            Origin::Other => FlagOrigin::Other,
        };
        record.set.push(FlagRecord { name: flag.name.clone(), value: flag.value.clone(), origin });
    }
    record.set.sort_by(|one, other| one.name.cmp(&other.name));
    record
}
