//! Records of a running JVM's flags.

pub use crate::observe::hotspot::flags::FlagOrigin;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Every flag in effect.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FlagsRecord {
    /// Flags that were set, including by the JVM itself, by name.
    pub set: Vec<FlagRecord>,
    /// Values of flags left at their defaults, by name.
    pub defaults: BTreeMap<String, String>,
}

/// A flag with a non-default value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FlagRecord {
    /// Name without `-XX:` and `+` or `-`.
    pub name: String,
    /// Value as `VM.flags` prints it: `true`, `8388608`, `75.000000`.
    pub value: String,
    /// The origin of its value.
    pub origin: FlagOrigin,
}

impl FlagsRecord {
    /// The number of flags.
    pub fn count(&self) -> usize {
        self.set.len() + self.defaults.len()
    }

    /// Whether the JVM rejects attaching.
    pub fn disables_attaching(&self) -> bool {
        self.set.iter().any(|flag| flag.name == "DisableAttachMechanism" && flag.value == "true")
    }
}
