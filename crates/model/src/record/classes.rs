//! Loaded classes as counted by the JVM, and their loaders by type.

pub use crate::observe::hsperfdata::ClassCounts;

use crate::units::growth;
use serde::{Deserialize, Serialize};

/// The class loaders at a mark, grouped by the class of the loader.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoadersRecord {
    /// All loaders.
    pub total: LoaderSum,
    /// The change since the previous mark; `null` at the first mark.
    pub change: Option<LoaderChange>,
    /// Loader types, largest size and growth first.
    pub types: Vec<LoaderType>,
    /// Number of types omitted from the list.
    pub types_left_out: u64,
}

/// Class loaders of one type.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoaderType {
    /// Class of the loaders in the JVM's spelling; `<boot class loader>` for the boot loader.
    pub name: String,
    /// The live loaders.
    pub now: LoaderSum,
    /// The change since the previous mark; `null` at the first mark.
    pub change: Option<LoaderChange>,
}

/// Class loaders and the memory of their classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoaderSum {
    /// Number of loaders.
    pub loaders: u64,
    /// Classes loaded by them, including hidden classes.
    pub classes: u64,
    /// Hidden classes among them: lambdas, method handles, scripts.
    pub hidden_classes: u64,
    /// Size of their metaspace and class space chunks, resident or not.
    pub taken_bytes: u64,
    /// Used part of these chunks.
    pub used_bytes: u64,
}

/// Change in class loaders between two marks. Loaders are identified by the address of their data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoaderChange {
    /// Loaders that did not exist at the previous mark.
    pub added: LoaderSum,
    /// Loaders that no longer exist, as they were at the previous mark.
    pub ended: LoaderSum,
    /// Growth in classes of loaders that already existed.
    pub kept_classes_growth: i64,
    /// Growth in the same loaders' chunks.
    pub kept_taken_bytes_growth: i64,
}

impl LoaderSum {
    /// Adds both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            loaders: self.loaders.saturating_add(other.loaders),
            classes: self.classes.saturating_add(other.classes),
            hidden_classes: self.hidden_classes.saturating_add(other.hidden_classes),
            taken_bytes: self.taken_bytes.saturating_add(other.taken_bytes),
            used_bytes: self.used_bytes.saturating_add(other.used_bytes),
        }
    }
}

impl LoaderChange {
    /// Adds the changes of two types, or of two consecutive spans.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            added: self.added.plus(other.added),
            ended: self.ended.plus(other.ended),
            kept_classes_growth: self.kept_classes_growth.saturating_add(other.kept_classes_growth),
            kept_taken_bytes_growth: self.kept_taken_bytes_growth.saturating_add(other.kept_taken_bytes_growth),
        }
    }

    /// Growth in classes.
    pub fn classes_growth(&self) -> i64 {
        growth(self.ended.classes, self.added.classes).saturating_add(self.kept_classes_growth)
    }

    /// Growth in bytes of chunks.
    pub fn taken_bytes_growth(&self) -> i64 {
        growth(self.ended.taken_bytes, self.added.taken_bytes).saturating_add(self.kept_taken_bytes_growth)
    }

    /// Growth in loaders.
    pub fn loaders_growth(&self) -> i64 {
        growth(self.ended.loaders, self.added.loaders)
    }
}
