//! The scales of a running subject: everything a trial needs from its processes. `processes::Processes` implements
//! them, using `weighing::MarkSettings::weigh` for each process; tests of a trial simulate them.

use super::sampler::Inside;
use super::used::Used;
use super::watched::Identity;
use super::weighing::{MarkReading, MarkSettings};
use crate::doubt::Doubt;
use crate::observe::attach::Attach;
use crate::observe::class_histogram::ClassHistogram;
use crate::record::{HeapDumpRecord, Jvm, NettyPools, Observer};
use crate::subject::Complaint;
use crate::subject::processes::Process;
use std::path::Path;
use std::sync::Arc;

/// Lists the subject's live processes; called only if all of them are measured, because it costs milliseconds.
pub(crate) type Living<'a> = &'a dyn Fn() -> Vec<Process>;

/// Measures a subject, sends it commands, and counts its usage. "The process" is the serving one.
pub(crate) trait Scales {
    /// The JVM's description, and doubts about options that are not in effect as requested.
    fn identify(&mut self, options: &[String], complaints: &[Complaint], doubts: &mut Vec<Doubt>) -> Identity;

    /// Like `identify`, without attaching.
    fn describe_unasked(&mut self, options: &[String], complaints: &[Complaint], doubts: &mut Vec<Doubt>) -> Jvm;

    /// Measures the subject: the process and, if they belong to the subject, the others.
    fn weigh(&mut self, weigh: MarkSettings, mark: &str, living: Living<'_>, doubts: &mut Vec<Doubt>) -> MarkReading;

    /// Netty's pools, from the JVM's agent; `None` without one.
    fn survey(&self) -> Option<Result<NettyPools, String>>;

    /// Why this JVM does not perform a full collection on request, once known.
    fn collects_not(&self) -> Option<&'static str>;

    /// Sends a diagnostic command to every JVM of the subject, the serving one first. `None` if attaching is
    /// impossible; failures of other processes are added to `failed`.
    fn tell(&mut self, command: &str, doubts: &mut Vec<Doubt>, failed: &mut Vec<String>) -> Option<Result<(), String>>;

    /// The heap in bytes right after the last collection, excluding later allocations; `None` if the JVM does not
    /// report it. Also `None` with several processes, because each heap is queried at the measurement.
    fn heap_left(&mut self) -> Option<u64>;

    /// The process's live objects by class; triggers a full collection.
    fn histogram(&mut self, doubts: &mut Vec<Doubt>) -> Result<ClassHistogram, String>;

    /// Makes the process write a heap dump to this new file.
    fn dump_heap(&mut self, path: &Path, doubts: &mut Vec<Doubt>) -> Result<HeapDumpRecord, String>;

    /// The subject's CPU time, collections, and allocated bytes so far.
    fn used(&mut self, living: Living<'_>, doubts: &mut Vec<Doubt>) -> Used;

    /// Like `used`, but only for known processes, and only what is readable from outside. Call it every [`READ_EACH`]
    /// while the subject works, because a thread's CPU time is lost when it ends.
    ///
    /// [`READ_EACH`]: crate::observe::thread_purposes::READ_EACH
    fn glance(&mut self) -> Used;

    /// Whether the process is unchanged and alive.
    fn lives(&self) -> bool;

    /// Its RSS in bytes, from the cheapest source; `None` if it is gone.
    fn rss(&self) -> Option<u64>;

    /// JVM readers for use by another thread.
    fn inside(&self) -> Inside;

    /// An attach connection for another thread; `None` if attaching is impossible.
    fn attached(&self) -> Option<Arc<Attach>>;

    /// The cost of attaching so far.
    fn observer(&self) -> Observer;
}
