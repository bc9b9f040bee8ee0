//! The code that holds the memory, as a second start of the same command showed it. That start ran under a profiler,
//! went through the same load, and left a heap dump. Nothing of it was weighed.

use serde::{Deserialize, Serialize};

/// Code and objects that hold the memory of a configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ExplanationRecord {
    /// The library that recorded native memory; `null` if none was used.
    pub profiler: Option<String>,
    /// Parts that are missing, each with its reason.
    pub missing: Vec<String>,
    /// Native memory by the code that allocated it, the largest first.
    pub sites: Vec<SiteRecord>,
    /// The same memory by full stack: a flame graph for each kind that held at least 1 MiB, largest first.
    pub flames: Vec<FlameRecord>,
    /// The objects of the Java heap by holder; `null` if there is no heap dump.
    pub heap: Option<HeldHeapRecord>,
    /// Objects of the Java heap that were alive at the end, by class and allocating code, most bytes first. Estimated
    /// from samples.
    pub objects: Vec<AllocatedRecord>,
    /// Whether the live heap grows under load, which a start of its own showed; `null` if that was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_growth: Option<LiveGrowthRecord>,
    /// Child processes that were started and files that were opened for writing, by calling code, most calls first.
    /// Empty with async-profiler before 4.2.
    pub calls: Vec<CallRecord>,
}

/// The beginning of an entry of [`ExplanationRecord::missing`] that says why there are no objects.
pub const NO_OBJECTS: &str = "No objects by what keeps them";

impl ExplanationRecord {
    /// Whether a heap dump was asked for and could not be had.
    pub fn misses_objects(&self) -> bool {
        self.missing.iter().any(|why| why.starts_with(NO_OBJECTS))
    }
}

/// The live heap after each of some full collections under a steady load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LiveGrowthRecord {
    /// Full collections that were judged.
    pub collections: u32,
    /// Full collections that a verdict needs.
    pub needed: u32,
    /// Seconds of load from the first of them to the last.
    pub seconds: f64,
    /// Correct answers meanwhile.
    pub requests: u64,
    /// Live heap after the first of these collections.
    pub live_bytes_first: u64,
    /// Live heap after the last.
    pub live_bytes_last: u64,
    /// Smallest live heap after a collection of the last window.
    pub live_bytes_min: u64,
    /// Largest live heap after a collection of the last window.
    pub live_bytes_max: u64,
    /// Bytes that each answer adds to the live heap; `null` if no growth is certain.
    pub bytes_per_request: Option<f64>,
    /// Lower end of the interval of `bytes_per_request`, with 95 % confidence.
    pub bytes_per_request_low: Option<f64>,
    /// Upper end of that interval.
    pub bytes_per_request_high: Option<f64>,
}

/// Native memory that one place in the code allocated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SiteRecord {
    /// The owner in accounts that this memory belongs to: `malloc.direct`, `malloc.live`. If a thread or a class is the
    /// reason for it, the owner of the larger part: `thread_stacks`, `metaspace`.
    pub owner: String,
    /// The memory in words: `direct memory`, `zlib`, `JNI librocksdbjni.so`, `C2 compiler`.
    pub kind: String,
    /// The first frame outside the JDK and frameworks, `Orders.export(Orders.java:88)`. If there is none, the frame or
    /// the part of the JVM that represents it.
    pub site: String,
    /// The frames from the site down to the allocation.
    pub frames: Vec<String>,
    /// Allocated and not yet freed when the load ended.
    pub loaded_bytes: u64,
    /// Part of `loaded_bytes` that was left after a full collection.
    pub kept_bytes: u64,
    /// The most that was allocated and not yet freed at any moment.
    pub peak_bytes: u64,
    /// Allocations that were recorded.
    pub allocations: u64,
    /// Threads started or class loaders created here that still existed when the load ended; 0 for other memory.
    pub made: u64,
}

/// Live objects of one class that one place in the code allocated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AllocatedRecord {
    /// Class name with its package; `byte[]` for an array.
    pub class: String,
    /// The first frame outside the JDK and frameworks, `Pages.load(Pages.java:21)`.
    pub site: String,
    /// The frames from the site down to the allocation.
    pub frames: Vec<String>,
    /// Objects that were sampled.
    pub samples: u64,
    /// Estimate of the bytes of all such objects.
    pub bytes: u64,
}

/// Calls of one purpose from one place in the code.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CallRecord {
    /// The purpose.
    pub purpose: CallPurpose,
    /// The first frame outside the JDK and frameworks, `Ocr.read(Ocr.java:18)`.
    pub site: String,
    /// The frames from the site down to the call.
    pub frames: Vec<String>,
    /// Number of calls, from the start of the JVM or of the recording to its end.
    pub calls: u64,
}

/// The purpose of a call that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallPurpose {
    /// It started a child process.
    #[default]
    StartsProcess,
    /// It opened a file that may be written to.
    OpensFile,
}

/// Native memory of one kind by the stacks that allocated it, as a flame graph draws it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FlameRecord {
    /// The memory in words: `direct memory`, `zlib`, `C2 compiler` (for all that it compiled).
    pub kind: String,
    /// The moment at which the bytes were live.
    pub at: FlameMoment,
    /// All memory of this kind that was allocated and not yet freed at that moment.
    pub bytes: u64,
    /// Part of it in stacks that are left out, the smallest ones.
    pub left_out_bytes: u64,
    /// The frames of the stacks, each once.
    pub frames: Vec<FlameFrameRecord>,
    /// The stacks, largest first. Their bytes and `left_out_bytes` add up to `bytes`.
    pub stacks: Vec<FlameStackRecord>,
}

/// When the bytes of a flame graph were live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlameMoment {
    /// When the load ended.
    #[default]
    Loaded,
    /// The earlier peak of this kind of memory: less than 1 MiB of it was live when the load ended.
    Peak,
}

/// A frame of a flame graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FlameFrameRecord {
    /// `com.shop.Orders.export(Orders.java:88)`, or ``libz.so.1`deflateInit2_``; the middle of a long name is omitted.
    pub name: String,
    /// The kind of code.
    pub code: FrameCode,
}

/// The kind of code that a frame belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FrameCode {
    /// Code of the application.
    Application,
    /// Code of a framework, or generated code.
    Framework,
    /// Java code of the JDK.
    Jdk,
    /// Code of the JVM or of a native library.
    #[default]
    Native,
}

/// A stack of a flame graph.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FlameStackRecord {
    /// Number of outermost frames that are omitted before the first of `frames`.
    pub outer_left_out: u64,
    /// Indexes in the list of frames, from 0, outermost frame first.
    pub frames: Vec<u32>,
    /// Bytes that this stack allocated and that were not yet freed.
    pub bytes: u64,
}

/// The live objects of a Java heap and their holders.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HeldHeapRecord {
    /// All reachable objects.
    pub live_bytes: u64,
    /// Number of these objects.
    pub objects: u64,
    /// Bytes that the listed holders keep alive in total.
    pub covered_bytes: u64,
    /// The holders, the largest first.
    pub holders: Vec<HolderRecord>,
}

/// A holder that keeps objects alive: without it they would be garbage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HolderRecord {
    /// A static field, a thread, a pool: `java.io.DeleteOnExitHook.files`.
    pub name: String,
    /// The fields from the holder down to where objects accumulate.
    pub path: Vec<String>,
    /// The size of everything that it keeps alive.
    pub retained_bytes: u64,
    /// Number of these objects.
    pub objects: u64,
    /// The classes that make up most of it, largest first.
    pub classes: Vec<HeldClassRecord>,
}

/// The objects of one class that a holder keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HeldClassRecord {
    /// Class name as written in Java.
    pub name: String,
    /// Number of objects.
    pub instances: u64,
    /// Their shallow size.
    pub bytes: u64,
}
