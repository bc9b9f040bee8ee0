//! Classes loaded at a moment, as the JVM counts them, and the loaders that hold them, folded by type.

pub use crate::observe::hsperfdata::ClassCounts;

use crate::units::growth;
use serde::{Deserialize, Serialize};

/// The class loaders at a mark, folded by the class of the loader.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoadersRecord {
    /// All loaders together.
    pub total: LoaderSum,
    /// The change since the mark before; `null` at the first.
    pub change: Option<LoaderChange>,
    /// Types, the heaviest and those that grew most first.
    pub types: Vec<LoaderType>,
    /// Types that are left out of the list.
    pub types_left_out: u64,
}

/// The loaders of one type.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoaderType {
    /// Class of the loaders, as the JVM spells it; `<boot class loader>` for that one.
    pub name: String,
    /// Those that live.
    pub now: LoaderSum,
    /// The change since the mark before; `null` at the first.
    pub change: Option<LoaderChange>,
}

/// Loaders and what their classes hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoaderSum {
    /// How many.
    pub loaders: u64,
    /// Classes loaded by them, hidden ones among them.
    pub classes: u64,
    /// Hidden classes among them: lambdas, proxies, scripts.
    pub hidden_classes: u64,
    /// Chunks of metaspace and class space that they have taken; not all of it need be resident.
    pub taken_bytes: u64,
    /// Bytes of those chunks that are used.
    pub used_bytes: u64,
}

/// The change of loaders between two marks. A loader is identified by the address of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoaderChange {
    /// Loaders that were not there before.
    pub added: LoaderSum,
    /// Loaders that are gone, as they were at the mark before.
    pub ended: LoaderSum,
    /// Growth of the loaders that were there before.
    pub kept_classes_growth: i64,
    /// The same in bytes taken.
    pub kept_taken_bytes_growth: i64,
}

impl LoaderSum {
    /// Both together.
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
    /// Both together: of two types, or of two spans that follow each other.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            added: self.added.plus(other.added),
            ended: self.ended.plus(other.ended),
            kept_classes_growth: self.kept_classes_growth.saturating_add(other.kept_classes_growth),
            kept_taken_bytes_growth: self.kept_taken_bytes_growth.saturating_add(other.kept_taken_bytes_growth),
        }
    }

    /// By how many classes all of it grew.
    pub fn classes_growth(&self) -> i64 {
        growth(self.ended.classes, self.added.classes).saturating_add(self.kept_classes_growth)
    }

    /// By how many bytes of taken chunks all of it grew.
    pub fn taken_bytes_growth(&self) -> i64 {
        growth(self.ended.taken_bytes, self.added.taken_bytes).saturating_add(self.kept_taken_bytes_growth)
    }

    /// How many loaders more there are.
    pub fn loaders_growth(&self) -> i64 {
        growth(self.ended.loaders, self.added.loaders)
    }
}
