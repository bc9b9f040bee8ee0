//! Objects of the Java heap by class, right after a full collection, and those of a fresh JVM when it was ready.

use serde::{Deserialize, Serialize};

/// The live objects of a JVM.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectsRecord {
    /// All of them.
    pub total: ObjectSum,
    /// The same of another JVM of this configuration, when it was ready and before any load; `null` without one.
    pub at_start: Option<ObjectSum>,
    /// Sums over several classes.
    pub kinds: Vec<ObjectKind>,
    /// Classes, those that grew most first and, without a start, the heaviest first.
    pub classes: Vec<ObjectClass>,
    /// Classes with objects that are left out of the list.
    pub classes_left_out: u64,
}

/// Objects and their shallow size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectSum {
    /// How many.
    pub instances: u64,
    /// Bytes of these objects, without those they refer to.
    pub bytes: u64,
}

/// The objects of one class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectClass {
    /// As the JVM spells it: `[B` is `byte[]`; classes of one name and several loaders are one.
    pub name: String,
    /// Now.
    pub now: ObjectSum,
    /// As [`ObjectsRecord::at_start`].
    pub at_start: Option<ObjectSum>,
}

/// Objects of several classes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ObjectKind {
    /// Which classes.
    pub kind: ObjectKindName,
    /// Now.
    pub now: ObjectSum,
    /// As [`ObjectsRecord::at_start`].
    #[serde(default)]
    pub at_start: Option<ObjectSum>,
}

/// Kinds of objects that heaps are often full of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ObjectKindName {
    /// `java.lang.String`, without the arrays behind them.
    Strings,
    /// `byte[]`: characters of strings, buffers.
    ByteArrays,
    /// `Integer`, `Long` and the other six.
    Boxed,
    /// Hash maps without a table, at least so many: they never held anything. Other empty collections cannot be told.
    EmptyMaps,
}

/// A heap dump that was written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HeapDumpRecord {
    /// The path of the file, as the JVM sees it.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// For how long the JVM wrote it, standing still.
    pub seconds: f64,
}

impl ObjectSum {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            instances: self.instances.saturating_add(other.instances),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}
