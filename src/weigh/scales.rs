//! The scales of a subject under way: all that a trial asks of its processes. `processes::Processes` implements them,
//! and weighs each process by `weighing::MarkSettings::weigh`; tests of a trial use made-up scales.

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

/// Lists the living processes of the subject; asked only where all of them form it, because it costs milliseconds.
pub(crate) type Living<'a> = &'a dyn Fn() -> Vec<Process>;

/// Weighs a subject, asks it, and counts what it uses. "The process" is the one that serves.
pub(crate) trait Scales {
    /// The JVM's description of itself, and doubts about options that are not in force as asked.
    fn identify(&mut self, options: &[String], complaints: &[Complaint], doubts: &mut Vec<Doubt>) -> Identity;

    /// Describes the JVM in the same way without asking it anything.
    fn describe_unasked(&mut self, options: &[String], complaints: &[Complaint], doubts: &mut Vec<Doubt>) -> Jvm;

    /// Weighs the subject: the process and, where all form it, the others with it.
    fn weigh(&mut self, weigh: MarkSettings, mark: &str, living: Living<'_>, doubts: &mut Vec<Doubt>) -> MarkReading;

    /// Netty's pools, by the agent that the JVM was started with; `None` where it was started without.
    fn survey(&self) -> Option<Result<NettyPools, String>>;

    /// Why a full collection is more than this JVM does when asked for one, once that is known.
    fn collects_not(&self) -> Option<&'static str>;

    /// Sends a diagnostic command to every JVM of the subject, the serving one first. `None` where it cannot be asked;
    /// what others do not follow is added to `failed`.
    fn tell(&mut self, command: &str, doubts: &mut Vec<Doubt>, failed: &mut Vec<String>) -> Option<Result<(), String>>;

    /// Returns the bytes that the collection just made has left, without what a load has allocated since; `None` where
    /// the JVM does not tell them. With several processes it is `None` too: each has a heap of its own, which is asked
    /// for when it is weighed.
    fn heap_left(&mut self) -> Option<u64>;

    /// The live objects of the process by class, after a full collection, which this asks for.
    fn histogram(&mut self, doubts: &mut Vec<Doubt>) -> Result<ClassHistogram, String>;

    /// Has the process write its heap into this new file.
    fn dump_heap(&mut self, path: &Path, doubts: &mut Vec<Doubt>) -> Result<HeapDumpRecord, String>;

    /// CPU time, collections and allocated bytes of the subject so far.
    fn used(&mut self, living: Living<'_>, doubts: &mut Vec<Doubt>) -> Used;

    /// The same as far as it is read from outside, of the processes that are known. To be called each [`READ_EACH`]
    /// while the subject works, since the CPU time of a thread that ends must have been read before.
    ///
    /// [`READ_EACH`]: crate::observe::thread_purposes::READ_EACH
    fn glance(&mut self) -> Used;

    /// Whether the process is still the same and alive.
    fn lives(&self) -> bool;

    /// Its RSS in bytes, at its cheapest; `None` once it has gone.
    fn rss(&self) -> Option<u64>;

    /// The sources of the JVM that another thread may read from outside.
    fn inside(&self) -> Inside;

    /// For another thread to ask through; `None` where the JVM cannot be asked.
    fn attached(&self) -> Option<Arc<Attach>>;

    /// The cost of asking so far.
    fn observer(&self) -> Observer;
}
