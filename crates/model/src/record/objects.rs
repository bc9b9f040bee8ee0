//! Objects of the Java heap by class, right after a full collection, and those of a fresh JVM when it was ready.

use serde::{Deserialize, Serialize};

/// The live objects of a JVM.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectsRecord {
    /// All live objects.
    pub total: ObjectSum,
    /// Live objects of another JVM of this configuration, when it was ready and before any load; `null` without such a
    /// JVM.
    pub at_start: Option<ObjectSum>,
    /// Sums over several classes.
    pub kinds: Vec<ObjectKind>,
    /// Classes, largest growth first; without `at_start`, heaviest first.
    pub classes: Vec<ObjectClass>,
    /// Number of classes with objects that are not in the list.
    pub classes_left_out: u64,
}

/// Objects and their shallow size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectSum {
    /// Number of objects.
    pub instances: u64,
    /// Shallow size of these objects, in bytes.
    pub bytes: u64,
}

/// The objects of one class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectClass {
    /// Class name as the JVM spells it: `[B` is `byte[]`. Classes of the same name from several loaders count as one.
    pub name: String,
    /// The objects now.
    pub now: ObjectSum,
    /// The objects at the start; see [`ObjectsRecord::at_start`].
    pub at_start: Option<ObjectSum>,
}

/// Objects of several classes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ObjectKind {
    /// The kind of classes.
    pub kind: ObjectKindName,
    /// The objects now.
    pub now: ObjectSum,
    /// The objects at the start; see [`ObjectsRecord::at_start`].
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
    /// Hash maps without a table, which never held anything. A lower bound: other empty collections cannot be
    /// recognised.
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
    /// Seconds for which the JVM was paused to write it.
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
