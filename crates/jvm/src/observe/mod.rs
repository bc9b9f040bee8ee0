//! One file per source of truth about a process: text → values; never adds two sources. The formats of Linux are those
//! of [`crate::kernel`].
//!
//! Every read says when it happened and what it cost ([`Reading`]). A source that is not there is data, not a crash
//! ([`Unavailable`]): an account of a JVM without hsperfdata is still an account.
//!
//! At a mark: [`attach::Attach`] once, then [`smaps`], [`procfs`], [`hsperfdata`], [`cgroup`], `GC.heap_info`, NMT.
//! In a sampler: [`procfs::Process::statm`], [`procfs::Process::status`], [`hsperfdata::HsPerf::sample`],
//! [`cgroup::MemoryCgroup::usage`]; none of them allocates on the way to its value.

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

/// For `fuzz/`: panics where a process on musl, made up and damaged by this input, is walked against a law.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz_mallocng(input: &[u8]) {
    mallocng_made_up::check(input);
}

/// For `fuzz/`: panics where the tables of names of a HotSpot that is made up are read against a law.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz_hotspot_tables(input: &[u8]) {
    hotspot::made_up::tables::check(input);
}

/// For `fuzz/`: the same of its threads, while it goes on.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz_hotspot_threads(input: &[u8]) {
    hotspot::made_up::threads::check(input);
}

/// For `fuzz/`: the same of its loaders and classes.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz_hotspot_classes(input: &[u8]) {
    hotspot::made_up::classes::check(input);
}

/// A value with the moment and the price of reading it.
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
    /// Reads once, with the time it takes.
    pub fn take<E>(clock: &Clock, read: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        let at_ns = clock.now_ns();
        let value = read()?;
        Ok(Self { at_ns, cost_ns: clock.now_ns().saturating_sub(at_ns), value })
    }

    /// Moment and price of this reading, with something derived from its value.
    pub fn map<U>(self, derive: impl FnOnce(T) -> U) -> Reading<U> {
        Reading { at_ns: self.at_ns, cost_ns: self.cost_ns, value: derive(self.value) }
    }
}

/// A source that cannot be read, and why; names the remedy where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// The source, as a user would call it: `smaps`, `hsperfdata`, `attach`.
    pub source: &'static str,
    /// One lower-case sentence without a full stop.
    pub why: String,
    /// Whether the source may be there in a moment: the JVM is still starting, another holds it just now.
    pub is_early: bool,
}

impl Unavailable {
    /// A source and the reason why it cannot be read.
    pub fn new(source: &'static str, why: impl Into<String>) -> Self {
        Self { source, why: why.into(), is_early: false }
    }

    /// Translates an input error of a source into words that a user understands.
    pub fn io<E: Into<std::io::Error>>(source: &'static str) -> impl Fn(E) -> Self {
        use std::io::ErrorKind as Kind;
        move |cause| {
            let cause = cause.into();
            let why = match cause.kind() {
                Kind::NotFound => "there is none",
                Kind::PermissionDenied => "no permission; run Loadline as the same user as the JVM, or as root",
                _ if cause.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => "the process has ended",
                _ => return Self::new(source, loadline_base::error::plain(&cause)),
            };
            Self::new(source, why)
        }
    }

    /// A source that may be there in a moment, and why it is not yet.
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
