//! Which code holds the memory, as a second start of the same command showed it: it ran under a profiler, went through
//! the same load, and left a heap dump. Nothing of it was weighed.

use serde::{Deserialize, Serialize};

/// Code and objects that hold the memory of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ExplanationRecord {
    /// The library that recorded native memory; `null` where none was used.
    pub profiler: Option<String>,
    /// Parts that are missing, each with its reason.
    pub missing: Vec<String>,
    /// Native memory by the code that allocated it, the largest first.
    pub sites: Vec<SiteRecord>,
    /// The objects of the Java heap by what keeps them; `null` where there is no heap dump.
    pub heap: Option<HeldHeapRecord>,
}

/// Native memory that one place in the code allocated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SiteRecord {
    /// The owner in accounts that this memory belongs to: `direct`, `malloc.live`, ….
    pub owner: String,
    /// The memory in words: `direct memory`, `zlib`, `JNI librocksdbjni.so`, `C2 compiler`.
    pub kind: String,
    /// The first frame that is neither of the JDK nor of a framework, `Orders.export(Orders.java:88)`; where there is
    /// none, the frame or the part of the JVM that stands for it.
    pub site: String,
    /// The frames from the site down to the allocation.
    pub frames: Vec<String>,
    /// Allocated and not yet freed when the load ended.
    pub loaded_bytes: u64,
    /// Of those, what was left after a full collection.
    pub kept_bytes: u64,
    /// The most that was allocated and not freed at any moment.
    pub peak_bytes: u64,
    /// Allocations that were recorded.
    pub allocations: u64,
}

/// The live objects of a Java heap and what keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HeldHeapRecord {
    /// All reachable objects.
    pub live_bytes: u64,
    /// How many they are.
    pub objects: u64,
    /// What the holders below keep together.
    pub covered_bytes: u64,
    /// The holders, the largest first.
    pub holders: Vec<HolderRecord>,
}

/// What keeps objects alive: without it they would be garbage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HolderRecord {
    /// A static field, a thread, a pool: `java.io.DeleteOnExitHook.files`.
    pub name: String,
    /// The fields from there down to where objects gather.
    pub path: Vec<String>,
    /// The size of all that it keeps alive.
    pub retained_bytes: u64,
    /// How many objects these are.
    pub objects: u64,
    /// The classes that most of it is of, the largest first.
    pub classes: Vec<HeldClassRecord>,
}

/// The objects of one class that a holder keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HeldClassRecord {
    /// As Java writes it.
    pub name: String,
    /// How many.
    pub instances: u64,
    /// Their shallow size.
    pub bytes: u64,
}
