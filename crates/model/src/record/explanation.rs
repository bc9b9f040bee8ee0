//! The code that holds the memory, from a second start of the same command with a profiler, the same load, and a heap
//! dump. None of it comes from a measured trial.

use serde::{Deserialize, Serialize};

/// Code and objects behind the memory of a configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ExplanationRecord {
    /// Library that recorded native memory; `null` if none was used.
    pub profiler: Option<String>,
    /// Missing parts, each with the reason.
    pub missing: Vec<String>,
    /// Native memory by allocating code, largest first.
    pub sites: Vec<SiteRecord>,
    /// Native memory by full stack: a flame graph for each kind of at least 1 MiB, largest first.
    pub flames: Vec<FlameRecord>,
    /// Heap objects by holder; `null` without a heap dump.
    pub heap: Option<HeldHeapRecord>,
    /// Heap objects live at the end, by class and allocating code, largest first; estimated from samples.
    pub objects: Vec<AllocatedRecord>,
    /// Growth of the live heap under load, tested in a separate JVM; `null` if not tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_growth: Option<LiveGrowthRecord>,
    /// Child processes started and files opened for writing, by calling code, most calls first. Empty with
    /// async-profiler before 4.2.
    pub calls: Vec<CallRecord>,
}

/// Prefix of the entry in [`ExplanationRecord::missing`] that explains missing objects.
pub const NO_OBJECTS: &str = "No objects by what keeps them";

impl ExplanationRecord {
    /// Whether a requested heap dump failed.
    pub fn misses_objects(&self) -> bool {
        self.missing.iter().any(|why| why.starts_with(NO_OBJECTS))
    }
}

/// Growth of the live heap over several full GCs under a steady load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LiveGrowthRecord {
    /// Requests of this load, such as `GET /orders`; empty in records of older versions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub load: String,
    /// Number of full GCs judged.
    pub collections: u32,
    /// Number of full GCs needed for a verdict.
    pub needed: u32,
    /// Seconds of load from the first GC to the last.
    pub seconds: f64,
    /// Correct responses in that time.
    pub requests: u64,
    /// Live heap after the first of these GCs.
    pub live_bytes_first: u64,
    /// Live heap after the last.
    pub live_bytes_last: u64,
    /// Smallest live heap after a GC in the last window.
    pub live_bytes_min: u64,
    /// Largest live heap after a GC in the last window.
    pub live_bytes_max: u64,
    /// Growth of the live heap per response; `null` if growth is uncertain.
    pub bytes_per_request: Option<f64>,
    /// Lower end of the 95% confidence interval of `bytes_per_request`.
    pub bytes_per_request_low: Option<f64>,
    /// Upper end of the interval.
    pub bytes_per_request_high: Option<f64>,
}

/// Native memory allocated at one site in the code.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SiteRecord {
    /// Owner of this memory in accounts, such as `malloc.direct` or `malloc.live`. For threads and classes, the owner
    /// of the larger part: `thread_stacks` or `metaspace`.
    pub owner: String,
    /// Kind of memory: `direct memory`, `zlib`, `JNI librocksdbjni.so`, `C2 compiler`.
    pub kind: String,
    /// First frame outside the JDK and frameworks, such as `Orders.export(Orders.java:88)`; if there is none, a
    /// representative frame or part of the JVM.
    pub site: String,
    /// Frames from the site down to the allocation.
    pub frames: Vec<String>,
    /// Live memory at the end of the load.
    pub loaded_bytes: u64,
    /// Part of `loaded_bytes` left after a full GC.
    pub kept_bytes: u64,
    /// Peak of the live memory.
    pub peak_bytes: u64,
    /// Number of recorded allocations.
    pub allocations: u64,
    /// Number of threads or class loaders created at this site that still existed at the end of the load; 0 for other
    /// memory.
    pub made: u64,
}

/// Live objects of one class that were allocated at one site in the code.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AllocatedRecord {
    /// Fully qualified class name; `byte[]` for an array.
    pub class: String,
    /// First frame outside the JDK and frameworks, such as `Pages.load(Pages.java:21)`.
    pub site: String,
    /// Frames from the site down to the allocation.
    pub frames: Vec<String>,
    /// Number of sampled objects.
    pub samples: u64,
    /// Estimated size of all such objects.
    pub bytes: u64,
}

/// Calls with one purpose from one site in the code.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CallRecord {
    /// The purpose.
    pub purpose: CallPurpose,
    /// First frame outside the JDK and frameworks, such as `Ocr.read(Ocr.java:18)`.
    pub site: String,
    /// Frames from the site down to the call.
    pub frames: Vec<String>,
    /// Number of calls since the start of the JVM or of the recording.
    pub calls: u64,
}

/// Purpose of a recorded call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallPurpose {
    /// It started a child process.
    #[default]
    StartsProcess,
    /// It opened a file for writing.
    OpensFile,
}

/// Native memory of one kind by allocating stack, for a flame graph.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FlameRecord {
    /// Kind of memory: `direct memory`, `zlib`, `C2 compiler` (for everything that it compiled).
    pub kind: String,
    /// The moment that it shows.
    pub at: FlameMoment,
    /// All memory of this kind that was live at that moment.
    pub bytes: u64,
    /// Part of it in omitted stacks, which are the smallest.
    pub left_out_bytes: u64,
    /// Frames of the stacks, without duplicates.
    pub frames: Vec<FlameFrameRecord>,
    /// Stacks, largest first; with `left_out_bytes`, they add up to `bytes`.
    pub stacks: Vec<FlameStackRecord>,
}

/// The moment of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlameMoment {
    /// The end of the load.
    #[default]
    Loaded,
    /// An earlier peak, because less than 1 MiB was live at the end of the load.
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

/// Kind of code of a frame.
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
    /// Number of outermost frames omitted before `frames`.
    pub outer_left_out: u64,
    /// Indexes into the list of frames, from 0, outermost first.
    pub frames: Vec<u32>,
    /// Live memory allocated by this stack.
    pub bytes: u64,
}

/// Live objects of a Java heap and what holds them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HeldHeapRecord {
    /// Size of all reachable objects.
    pub live_bytes: u64,
    /// Number of these objects.
    pub objects: u64,
    /// Total size of the objects that the listed holders keep alive.
    pub covered_bytes: u64,
    /// Holders, largest first.
    pub holders: Vec<HolderRecord>,
}

/// A holder of objects that would be garbage without it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HolderRecord {
    /// Static field, thread, or pool, such as `java.io.DeleteOnExitHook.files`.
    pub name: String,
    /// Fields from the holder down to where objects accumulate.
    pub path: Vec<String>,
    /// Size of everything that it keeps alive.
    pub retained_bytes: u64,
    /// Number of these objects.
    pub objects: u64,
    /// Classes that make up most of it, largest first.
    pub classes: Vec<HeldClassRecord>,
}

/// Objects of one class that a holder keeps alive.
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
