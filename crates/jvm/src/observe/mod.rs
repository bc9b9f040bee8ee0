//! One file per data source about a process, each of which turns text into values and never combines two sources.
//! [`crate::kernel`] has the Linux formats.
//!
//! Every reading contains its time and cost ([`Reading`]). A missing source is data, not a crash ([`Unavailable`]): an
//! account of a JVM without hsperfdata is still an account.
//!
//! At a mark: [`attach::Attach`] once, then [`smaps`], [`procfs`], [`hsperfdata`], [`cgroup`], `GC.heap_info`, NMT. In
//! a sampler: [`procfs::Process::statm`], [`procfs::Process::status`], [`hsperfdata::HsPerf::sample`],
//! [`cgroup::MemoryCgroup::usage`], none of which allocates.

pub mod addresses;
pub mod agent;
pub mod attach;
mod attach_guard;
mod attach_reply;
mod attach_trigger;
mod cachestat;
pub mod cgroup;
pub mod charged;
pub mod class_histogram;
pub mod class_loaders;
pub mod classes;
pub mod code_heaps;
pub mod elf;
pub mod glibc;
mod glibc_layout;
pub mod heap_dump;
pub mod heap_info;
pub mod hold;
pub mod hotspot;
pub mod hsperfdata;
mod hsperfdata_find;
mod hsperfdata_format;
mod inside;
pub mod jemalloc;
pub mod jvms;
pub mod kernel_log;
pub mod machine;
pub mod mallocng;
mod mallocng_group;
#[cfg(any(test, fuzzing))]
mod mallocng_made_up;
pub mod maps;
pub mod memory;
pub mod memory_files;
pub mod metaspace_nodes;
pub mod netty;
pub mod nmt;
pub mod nmt_header;
pub mod open_files;
pub mod own_folder;
pub mod pagemap;
mod pagemap_scan;
mod pages;
pub mod pointers;
pub mod procfs;
pub mod ranges;
pub mod smaps;
pub mod stacks;
mod text;
pub mod thread_print;
pub mod thread_purposes;
pub mod thread_stats;
pub mod untouched;
pub mod vm_flags;
pub mod vm_version;

use loadline_base::clock::Clock;
use std::fmt;

/// For `fuzz/`: panics if the walk of a generated and damaged musl process goes wrong.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz_mallocng(input: &[u8]) {
    mallocng_made_up::check(input);
}

/// For `fuzz/`: panics if reading the tables of names of a generated HotSpot goes wrong.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz_hotspot_tables(input: &[u8]) {
    hotspot::made_up::tables::check(input);
}

/// For `fuzz/`: the same for its threads, while they run.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz_hotspot_threads(input: &[u8]) {
    hotspot::made_up::threads::check(input);
}

/// For `fuzz/`: the same for its loaders and classes.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz_hotspot_classes(input: &[u8]) {
    hotspot::made_up::classes::check(input);
}

/// A value with the time and cost of reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading<T> {
    /// When the read began, in nanoseconds since the clock's origin.
    pub at_ns: u64,
    /// How long the read took, in nanoseconds.
    pub cost_ns: u64,
    /// The value that was read.
    pub value: T,
}

impl<T> Reading<T> {
    /// Reads once, and measures the time.
    pub fn take<E>(clock: &Clock, read: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        let at_ns = clock.now_ns();
        let value = read()?;
        Ok(Self { at_ns, cost_ns: clock.now_ns().saturating_sub(at_ns), value })
    }

    /// Keeps time and cost, and derives another value.
    pub fn map<U>(self, derive: impl FnOnce(T) -> U) -> Reading<U> {
        Reading { at_ns: self.at_ns, cost_ns: self.cost_ns, value: derive(self.value) }
    }
}

/// A source that cannot be read, and why; includes the remedy if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// The source, as a user would call it: `smaps`, `hsperfdata`, `attach`.
    pub source: &'static str,
    /// One lowercase sentence without a period.
    pub why: String,
    /// Whether the source may become available soon: the JVM is still starting, or another tool uses it.
    pub is_early: bool,
}

impl Unavailable {
    /// A source and the reason why it cannot be read.
    pub fn new(source: &'static str, why: impl Into<String>) -> Self {
        Self { source, why: why.into(), is_early: false }
    }

    /// Translates a source's I/O error into words that a user understands.
    pub fn io<E: Into<std::io::Error>>(source: &'static str) -> impl Fn(E) -> Self {
        use std::io::ErrorKind as Kind;
        move |cause| {
            let cause = cause.into();
            let why = match cause.kind() {
                Kind::NotFound => "it does not exist",
                Kind::PermissionDenied => "permission denied; run Loadline as the same user as the JVM, or as root",
                _ if cause.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => "the process has exited",
                _ => return Self::new(source, loadline_base::error::plain(&cause)),
            };
            Self::new(source, why)
        }
    }

    /// A source that may become available soon, and why it is not yet.
    pub fn early(source: &'static str, why: impl Into<String>) -> Self {
        Self { is_early: true, ..Self::new(source, why) }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.why)
    }
}

impl std::error::Error for Unavailable {}

/// The result of most reads.
pub type Read<T> = Result<Reading<T>, Unavailable>;
