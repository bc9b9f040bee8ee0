//! The flags of a running JVM, as recorded.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Every flag in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FlagsRecord {
    /// Those that somebody set, the JVM itself among them, by name.
    pub set: Vec<FlagRecord>,
    /// The values of those at their default, by name.
    pub defaults: BTreeMap<String, String>,
}

/// A flag that is not at its default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FlagRecord {
    /// Without `-XX:` and sign.
    pub name: String,
    /// As `VM.flags` prints it: `true`, `8388608`, `75.000000`.
    pub value: String,
    /// Who set it.
    pub origin: FlagOrigin,
}

/// Who set a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlagOrigin {
    /// The command line, `JDK_JAVA_OPTIONS` among it.
    CommandLine,
    /// `JAVA_TOOL_OPTIONS` or `_JAVA_OPTIONS`.
    Environment,
    /// A file named by `-XX:Flags` or `-XX:VMOptionsFile`.
    File,
    /// Somebody at run time, or another way.
    #[default]
    Other,
    /// The JVM itself, by the machine or by other flags.
    Ergonomic,
}

impl FlagsRecord {
    /// How many flags there are.
    pub fn count(&self) -> usize {
        self.set.len() + self.defaults.len()
    }

    /// Whether the JVM takes no request to attach.
    pub fn disables_attaching(&self) -> bool {
        self.set.iter().any(|flag| flag.name == "DisableAttachMechanism" && flag.value == "true")
    }
}
