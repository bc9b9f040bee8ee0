//! An observed process, usually a JVM: its sources, opened once, and its own description.

use super::answering::Answering;
use super::direct_reader::DirectReader;
use super::flags;
use super::loaders::KnownLoaders;
use crate::account::{Explicit, Shrinks, Sizing};
use crate::clock::Clock;
use crate::doubt::{self, Doubt};
use crate::error::{Error, Result};
use crate::observe::Unavailable;
use crate::observe::addresses::JvmRange;
use crate::observe::agent::{self, SubjectAgent};
use crate::observe::attach::Attach;
use crate::observe::cgroup::{CgroupMemory, MemoryCgroup};
use crate::observe::charged::{self, Owners};
use crate::observe::class_histogram::{self, ClassHistogram, ClassRow};
use crate::observe::heap_dump::{self, Dumped};
use crate::observe::hotspot::compiling::Compilers;
use crate::observe::hotspot::{self, flags::Flags as AllFlags};
use crate::observe::hsperfdata::{Counters, HsPerf, JvmIdentity, JvmSample};
use crate::observe::maps::{self, Allocator};
use crate::observe::procfs::Process;
use crate::observe::vm_flags::{Flags, differences};
use crate::observe::vm_version::VmVersion;
use crate::record::{ChargeRecord, DirectRecord, HeapDumpRecord, Jvm, LiveClassRecord, NettyPools, Observer};
use crate::scenario::{Asking, Kind};
use crate::subject::{Complaint, ComplaintKind};
use crate::units::Bytes;
use loadline_jvm::accounting::{AllocatedSoFar, Allocation, IN_SAFEPOINT, allocated_as_told};
use loadline_jvm::accounting::{JvmTables, Look, TablesRead};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Enough for a full collection and a walk of a 100 GB heap.
const COLLECTED_WITHIN: Duration = Duration::from_secs(600);

/// The number of classes listed from the live heap, largest first.
const LIVE_CLASSES: usize = 12;
/// Classes whose instance count reveals a cause, regardless of size: parked virtual threads, pending finalizers,
/// unclosed arenas of foreign memory, Netty chunks, zlib memory.
const TELLING: [&str; 10] = [
    "io.netty.buffer.PoolChunk",
    "jdk.internal.vm.StackChunk",
    "java.lang.VirtualThread",
    "java.lang.ref.Finalizer",
    "jdk.internal.foreign.SharedSession",
    "jdk.internal.foreign.ConfinedSession",
    "jdk.internal.foreign.ImplicitSession",
    "jdk.internal.foreign.NativeMemorySegmentImpl",
    "java.util.zip.Inflater",
    "java.util.zip.Deflater",
];

/// Why a JVM without an attach connection reports nothing.
const DEAF: &str = "the JVM cannot be queried";

/// A process and its readable sources. If it is not a JVM, it is never attached to.
pub(crate) struct Watched {
    pub(crate) kind: Kind,
    pub(crate) clock: Clock,
    pub(crate) process: Process,
    counters: Option<HsPerf>,
    /// Allocation, from the JVM's tables; `None` if they lack it.
    pub(crate) allocation: Option<Allocation>,
    /// Direct memory; `None` if not read from outside the JVM.
    pub(crate) direct: Option<DirectReader>,
    /// Only if the subject has its own cgroup.
    pub(crate) cgroup: Option<MemoryCgroup>,
    /// `None` before the first mark, and if attaching is impossible.
    attach: Option<Arc<Attach>>,
    attach_tried: bool,
    /// A copied process's replies by command; `None` for a live process.
    replies: Option<BTreeMap<String, String>>,
    /// The JVM's tables; `None` if not found.
    tables: Option<JvmTables>,
    /// When to attach for data that its tables also have.
    pub(crate) asking: Asking,
    /// The cost of answering; `None` before the first command.
    answering: Option<Answering>,
    /// The known cost of observing it.
    pub(crate) observer: Observer,
    /// The JVM's agent, if any.
    pub(crate) agent: Option<SubjectAgent>,
    pub(super) loaders: KnownLoaders,
    /// Whether NMT has a baseline for comparison.
    pub(crate) baseline: bool,
    /// Why this JVM does not perform a full collection on request, once known.
    pub(crate) collects_not: Option<&'static str>,
    /// The bounds of the heap when it shrinks, once known.
    pub(crate) sizing: Sizing,
}

impl Watched {
    /// Opens the sources that do not affect the JVM.
    pub(crate) fn open(pid: u32, own_cgroup: bool, kind: Kind, clock: Clock, doubts: &mut Vec<Doubt>) -> Result<Self> {
        let process = Process::open(pid).map_err(|cause| {
            let what = if kind == Kind::Jvm { "JVM" } else { "process" };
            Error::subject(format!("the {what} with pid {pid} exited before it was weighed: {cause}"))
        })?;
        let cgroup = own_cgroup.then(|| MemoryCgroup::of(&process).ok()).flatten();
        let mut watched = Self { cgroup, ..Self::reading(process, kind, clock, doubts) };
        if kind == Kind::Jvm {
            let allocation = watched.find_tables().and_then(|()| watched.found_tables()?.allocation(&watched.process));
            let unread = |cause: &Unavailable| doubt::Allocation::AllocationUnread { why: cause.to_string() };
            doubts.extend(allocation.as_ref().err().map(unread).map(Doubt::from));
            watched.allocation = allocation.ok();
        }
        Ok(watched)
    }

    /// A process with its JVM counters, if any; opens nothing else.
    fn reading(process: Process, kind: Kind, clock: Clock, doubts: &mut Vec<Doubt>) -> Self {
        let mut counters = || {
            HsPerf::open(&process, &clock)
                .inspect_err(|cause| doubts.push(Doubt::CountersMissing { why: cause.why.clone() }))
                .ok()
        };
        let counters = if kind == Kind::Jvm { counters() } else { None };
        Self {
            kind,
            clock,
            process,
            counters,
            allocation: None,
            direct: None,
            cgroup: None,
            attach: None,
            replies: None,
            attach_tried: kind == Kind::Native,
            tables: None,
            asking: Asking::default(),
            answering: None,
            observer: Observer::default(),
            agent: None,
            loaders: KnownLoaders::default(),
            baseline: false,
            collects_not: None,
            sizing: Sizing::default(),
        }
    }

    /// A copied JVM with its replies.
    pub(super) fn of_copy(
        process: Process,
        cgroup: Option<MemoryCgroup>,
        replies: BTreeMap<String, String>,
        clock: Clock,
        doubts: &mut Vec<Doubt>,
    ) -> Self {
        let mut watched = Self::reading(process, Kind::Jvm, clock, doubts);
        (watched.cgroup, watched.replies, watched.attach_tried) = (cgroup, Some(replies), true);
        watched.asking = Asking::Always;
        watched
    }

    /// Sets when to attach.
    pub(crate) fn asked(self, asking: Asking) -> Self {
        Self { asking, ..self }
    }

    /// Attaches once, and from then on counts the memory that answering adds to the JVM. No other part of a measurement
    /// adds any.
    pub(crate) fn attach(&mut self, doubts: &mut Vec<Doubt>) {
        if std::mem::replace(&mut self.attach_tried, true) {
            return;
        }
        self.answering = Answering::begin(&self.process, &self.clock);
        match Attach::connect(&self.process, &self.clock) {
            Ok(attached) => {
                self.observer.attach_ms = Some(attached.cost_ns as f64 / 1e6);
                self.attach = Some(Arc::new(attached.value));
            }
            Err(cause) => doubts.push(Doubt::AttachMissing { why: cause.why }),
        }
    }

    /// Finds its tables unless already found: a JVM creates them shortly after its start.
    fn find_tables(&mut self) -> std::result::Result<(), Unavailable> {
        if self.tables.is_none() {
            let tables = self.tables.insert(JvmTables::find(&self.process, &self.clock)?);
            self.direct = tables.objects().ok().cloned().map(DirectReader::of);
        }
        Ok(())
    }

    fn found_tables(&self) -> std::result::Result<&JvmTables, Unavailable> {
        self.tables.as_ref().ok_or_else(|| Unavailable::new(hotspot::SOURCE, "they were not found"))
    }

    /// All flags in effect, read from outside the JVM; also determines how the heap is sized.
    pub(super) fn flags(&mut self) -> std::result::Result<AllFlags, Unavailable> {
        self.find_tables()?;
        let flags = self.found_tables()?.flags(&self.process, &self.clock)?;
        self.heed(&flags);
        Ok(flags)
    }

    /// A copy's flags in effect; also determines how the heap is sized.
    pub(super) fn replied_flags(&mut self) -> Option<Vec<String>> {
        let flags = Flags::parse(self.replies.as_ref()?.get("VM.flags")?);
        (self.collects_not, self.sizing) = (collects_not(&flags), sizing(Some(&flags)));
        Some(flags.all_spelled())
    }

    fn heed(&mut self, flags: &AllFlags) {
        let changed = flags.changed();
        (self.collects_not, self.sizing) = (collects_not(&changed), sizing(Some(&changed)));
    }

    /// Reads from outside what a command would return. Errors: why nothing is readable, or that attaching is requested.
    pub(crate) fn tables(&mut self) -> std::result::Result<TablesRead, Unavailable> {
        if self.kind == Kind::Native {
            return Err(Unavailable::new(hotspot::SOURCE, "the process is not a JVM"));
        }
        if self.asking == Asking::Always {
            self.flags()?;
            return Err(Unavailable::new(hotspot::SOURCE, "querying the JVM was requested"));
        }
        self.find_tables()?;
        let read = self.found_tables()?.read(&self.process, &self.clock)?;
        self.heed(&read.flags);
        Ok(read)
    }

    /// The collector's table that no diagnostic command reports.
    pub(crate) fn region_table(&self) -> Option<JvmRange> {
        self.tables.as_ref()?.region_table(&self.process, &self.clock)
    }

    /// Sends a diagnostic command. `None` if attaching is impossible, for which `attach` adds a doubt once.
    pub(crate) fn ask(&self, command: &str) -> Option<std::result::Result<String, String>> {
        if let Some(replies) = &self.replies {
            return replies.get(command).cloned().map(Ok);
        }
        let attach = self.attach.as_ref()?;
        let reply = match &self.answering {
            Some(answering) if IN_SAFEPOINT.contains(&command) => {
                answering.in_safepoint(&self.process, || attach.jcmd(command))
            }
            _ => attach.jcmd(command),
        };
        Some(reply.map(|reply| reply.value).map_err(|cause| cause.to_string()))
    }

    /// Sends a command that makes the JVM work: a full collection or a trim.
    pub(crate) fn tell(&mut self, command: &str) -> Option<std::result::Result<String, String>> {
        if let Some(answering) = &mut self.answering {
            answering.count_libraries(&self.process, &self.clock);
        }
        self.ask(command)
    }

    /// Bytes allocated in its heap so far, from outside the JVM, or from the JVM if already attached.
    pub(crate) fn allocated(&mut self) -> Option<AllocatedSoFar> {
        match self.allocation {
            Some(_) => self.allocated_unasked(),
            None => allocated_as_told(|command| self.ask(command)),
        }
    }

    /// Like `allocated`, only from outside the JVM.
    pub(crate) fn allocated_unasked(&mut self) -> Option<AllocatedSoFar> {
        self.allocation.as_mut()?.so_far()
    }

    /// Direct memory from the counters of the JDK and Netty; `None` without readable tables. Errors: the name missing
    /// in the tables, or an object that kept moving.
    pub(crate) fn direct(&self) -> Option<std::result::Result<DirectRecord, Unavailable>> {
        let lacking = self.tables.as_ref()?.objects().err();
        let read = self.direct.as_ref().map(|reader| reader.read(&self.process, &self.clock));
        read.or(lacking.map(Err))
    }

    /// Reads heap objects; `None` without readable tables.
    pub(super) fn look<T>(&self, read: Look<T>) -> Option<T> {
        self.tables.as_ref()?.look(&self.process, &self.clock, read).ok()
    }

    /// The largest classes of the live heap, from a histogram, which triggers a collection; empty if attaching is
    /// impossible.
    pub(crate) fn live_classes(&self) -> Vec<LiveClassRecord> {
        let Ok(histogram) = self.histogram() else { return Vec::new() };
        let tells = |row: &ClassRow| TELLING.contains(&row.name.as_str());
        let (first, rest) = histogram.rows.split_at(histogram.rows.len().min(LIVE_CLASSES));
        let record =
            |row: &ClassRow| LiveClassRecord { class: row.name.clone(), instances: row.instances, bytes: row.bytes };
        first.iter().chain(rest.iter().filter(|row| tells(row))).map(record).collect()
    }

    /// The reader of the JIT compilers' tasks; `None` if the JVM's tables do not have them.
    pub(crate) fn compilers(&self) -> Option<Compilers> {
        self.tables.as_ref()?.compilers().ok()
    }

    /// The words around each compiler thread's thread-local variables; one of them is its arena's address.
    pub(crate) fn compiler_words(&self) -> Option<Vec<Vec<u64>>> {
        self.tables.as_ref()?.compiler_words(&self.process, &self.clock)
    }

    /// Lists Netty's pools with the JVM's agent, or with one that it loads.
    pub(crate) fn survey(&self) -> std::result::Result<NettyPools, String> {
        let pools = match (&self.agent, &self.attach) {
            (Some(agent), _) => agent.ask(&self.process, &self.clock),
            (None, Some(attach)) => agent::survey(&self.process, attach, &self.clock),
            (None, None) => return Err(format!("Netty's pools: {DEAF}")),
        };
        pools.map(|pools| pools.value).map_err(|cause| format!("Netty's pools: {cause}"))
    }

    /// Live objects by class; triggers a full collection.
    pub(crate) fn histogram(&self) -> std::result::Result<ClassHistogram, String> {
        let reply = self.attach.as_ref().ok_or(DEAF)?.jcmd_within(class_histogram::COMMAND, COLLECTED_WITHIN);
        let histogram = reply.and_then(|reply| ClassHistogram::parse(&reply.value));
        histogram.map_err(|cause| cause.to_string())
    }

    /// Makes the JVM write its heap to this new file after a full collection.
    pub(crate) fn dump_heap(&self, path: &Path) -> std::result::Result<HeapDumpRecord, String> {
        let dumped = heap_dump::write(&self.process, self.attach.as_ref().ok_or(DEAF)?, path);
        let record = |dumped: Dumped| {
            let path = path.display().to_string();
            HeapDumpRecord { path, bytes: dumped.bytes, seconds: dumped.seconds }
        };
        dumped.map(record).map_err(|cause| cause.to_string())
    }

    /// An attach connection for another thread; `None` if [`Watched::ask`] returns `None`.
    pub(crate) fn attached(&self) -> Option<Arc<Attach>> {
        self.attach.clone()
    }

    /// Updates the upper bound on the RSS that answering added.
    pub(super) fn count_answering(&mut self) {
        let added = self.answering.as_mut().map(|answering| answering.bytes(&self.process, &self.clock));
        let added = added.and_then(|bytes| i64::try_from(bytes).ok());
        self.observer.attach_rss_bytes = added.or(self.observer.attach_rss_bytes);
    }

    /// Whether the process is unchanged and alive.
    pub(crate) fn lives(&self) -> bool {
        self.process.is_alive()
    }

    /// All JVM counters now; `None` if it has none.
    pub(super) fn counters(&mut self) -> Option<Counters> {
        Some(self.counters.as_mut()?.counters(&self.clock).ok()?.value)
    }

    /// The few counters that change continuously.
    pub(super) fn sample(&mut self) -> Option<JvmSample> {
        Some(self.counters.as_mut()?.sample(&self.clock).ok()?.value)
    }

    /// The JVM's identity from its counters; empty without counters.
    pub(super) fn own_identity(&mut self) -> JvmIdentity {
        self.counters().map(|counters| counters.identity()).unwrap_or_default()
    }

    /// Its description from its counters, without attaching.
    pub(crate) fn describe_from_outside(&mut self) -> Jvm {
        let own = self.own_identity();
        self.sizing = sizing_of_arguments(own.vm_args.as_deref().unwrap_or_default());
        Jvm {
            pid: self.process.pid(),
            version: own.vm_version,
            name: own.vm_name,
            java: self.process.exe().ok().map(|exe| exe.display().to_string()),
            options_through: "none_needed".to_owned(),
            ..Jvm::default()
        }
    }

    /// Like `describe_from_outside`, with the allocator, and doubts from these options and the JVM's complaints.
    pub(crate) fn describe_unasked(
        &mut self,
        options: &[String],
        complaints: &[Complaint],
        doubts: &mut Vec<Doubt>,
    ) -> Jvm {
        doubts.extend(flag_doubts(options, None, complaints));
        doubts.extend(self.heap_changed(options));
        let mapped = maps::read(&self.process, &self.clock).ok();
        let allocator = mapped.map(|mapped| Allocator::of(&mapped.value).name().to_owned());
        Jvm { options: options.to_vec(), allocator, ..self.describe_from_outside() }
    }

    /// Reports a maximum heap that differs from the requested one. Command-line arguments follow those of
    /// `JAVA_TOOL_OPTIONS`, and the last one wins.
    fn heap_changed(&mut self, options: &[String]) -> Option<Doubt> {
        heap_changed(options, self.own_identity().vm_args.as_deref()?)
    }

    /// The JVM's description, and doubts about options that are not in effect as requested.
    pub(crate) fn identify(
        &mut self,
        options: &[String],
        complaints: &[Complaint],
        doubts: &mut Vec<Doubt>,
    ) -> Identity {
        let read = if self.asking == Asking::IfNeeded { self.flags().ok() } else { None };
        if read.is_none() {
            self.attach(doubts);
        }
        let mut jvm = self.describe_from_outside();
        let version = self.ask("VM.version").and_then(|reply| reply.ok()).and_then(|text| VmVersion::parse(&text).ok());
        if let Some(version) = version {
            (jvm.name, jvm.version) = (Some(version.name), Some(version.version));
        }
        let asked = || self.ask("VM.flags")?.ok().map(|text| Flags::parse(&text));
        let flags_kept = read.as_ref().map(flags::kept);
        let flags = read.map(|flags| flags.changed()).or_else(asked);
        self.collects_not = flags.as_ref().and_then(collects_not);
        self.sizing = sizing(flags.as_ref());
        doubts.extend(flag_doubts(options, flags.as_ref(), complaints));
        jvm.collector = flags.as_ref().and_then(Flags::collector).map(str::to_owned);
        jvm.flags = flags.as_ref().map(Flags::all_spelled);
        (jvm.options, jvm.flags_kept) = (options.to_vec(), flags_kept);
        Identity { jvm, flags, variables: self.process.environ().ok() }
    }
}

/// A cgroup's charge by kind and owner.
pub(super) fn charge_by_owner(cgroup: &MemoryCgroup, memory: &CgroupMemory, clock: &Clock) -> ChargeRecord {
    let Owners { rows, unread, cached_files, machine_slabs } = charged::owners(cgroup, memory, clock);
    ChargeRecord { rows, unread_processes: unread as u64, cached_files, machine_slabs, ..charge_of(cgroup, memory) }
}

/// A cgroup's charge by kind.
pub(super) fn charge(cgroup: &MemoryCgroup, clock: &Clock) -> Option<ChargeRecord> {
    Some(charge_of(cgroup, &cgroup.read(clock).ok()?.value))
}

fn charge_of(cgroup: &MemoryCgroup, memory: &CgroupMemory) -> ChargeRecord {
    let own = cgroup.cgroup();
    let above = memory.limit.as_ref().filter(|limit| limit.folder != own.folder);
    ChargeRecord {
        usage_bytes: memory.usage.0,
        anon_bytes: memory.charge.anon.0,
        file_bytes: memory.charge.file.0,
        inactive_file_bytes: Some(memory.charge.file_inactive.0),
        dirty_file_bytes: Some(memory.charge.file_dirty.0),
        shmem_bytes: memory.charge.shmem.0,
        kernel_bytes: memory.charge.kernel.map(|bytes| bytes.0),
        swap_bytes: memory.swap.map(|bytes| bytes.0),
        limit_bytes: memory.limit.as_ref().map(|limit| limit.bytes.0),
        version: own.version.name().to_owned(),
        cgroup: cgroup.name(),
        processes: cgroup.processes(),
        limit_cgroup: above.map(|limit| own.name_of(&limit.folder)),
        unlisted: cgroup.unlisted().iter().map(|name| (*name).to_owned()).collect(),
        ..ChargeRecord::default()
    }
}

/// The flags in effect that size the heap.
fn sizing(flags: Option<&Flags>) -> Sizing {
    let number = |name: &str| flags?.get(name)?.parse().ok();
    let set = |name: &str, value: &str| flags.and_then(|flags| flags.get(name)) == Some(value);
    Sizing {
        heap_min: number("MinHeapSize"),
        max_free_ratio: number("MaxHeapFreeRatio"),
        old_size: number("OldSize"),
        new_size: number("NewSize"),
        shrinks: if set("ShrinkHeapInSteps", "false") { Shrinks::AtOnce } else { Shrinks::InSteps },
        explicit: if set("ExplicitGCInvokesConcurrent", "true") { Explicit::Concurrent } else { Explicit::Stops },
    }
}

/// The same, from the JVM's arguments.
fn sizing_of_arguments(arguments: &str) -> Sizing {
    let mut sizing = Sizing::default();
    for word in arguments.split_whitespace() {
        let size = |text: &str| text.parse::<Bytes>().ok().map(|bytes| bytes.0);
        if let Some(text) = word.strip_prefix("-Xms").or(word.strip_prefix("-XX:MinHeapSize=")) {
            sizing.heap_min = size(text);
        } else if let Some(text) = word.strip_prefix("-XX:MaxHeapFreeRatio=") {
            sizing.max_free_ratio = text.parse().ok();
        } else if word == "-XX:-ShrinkHeapInSteps" {
            sizing.shrinks = Shrinks::AtOnce;
        } else if word == "-XX:+ExplicitGCInvokesConcurrent" {
            sizing.explicit = Explicit::Concurrent;
        }
    }
    sizing
}

/// The JVM's description.
pub(crate) struct Identity {
    pub(crate) jvm: Jvm,
    pub(crate) flags: Option<Flags>,
    /// Its initial environment, `NAME=VALUE`; `None` if unreadable.
    pub(crate) variables: Option<Vec<String>>,
}

/// Options not followed, according to the flags in effect, if known, and the JVM's messages.
fn flag_doubts(options: &[String], flags: Option<&Flags>, complaints: &[Complaint]) -> Vec<Doubt> {
    let mut ignored = Vec::new();
    let mut doubts = Vec::new();
    for difference in flags.map(|flags| differences(options, flags)).unwrap_or_default() {
        match difference.in_force {
            Some(in_force) => doubts.push(Doubt::FlagChanged { asked: difference.asked, in_force }),
            None => ignored.push(difference.asked),
        }
    }
    for complaint in complaints.iter().filter(|complaint| complaint.kind == ComplaintKind::OptionIgnored) {
        let known = ignored.iter().any(|flag| complaint.line.contains(flag_name(flag)));
        if !known {
            ignored.push(format!("`{}`", complaint.line));
        }
    }
    if !ignored.is_empty() {
        doubts.push(Doubt::FlagsIgnored { flags: ignored });
    }
    doubts
}

fn heap_changed(options: &[String], arguments: &str) -> Option<Doubt> {
    let size = |option: &str| Some(option.strip_prefix("-Xmx").or(option.strip_prefix("-XX:MaxHeapSize="))?.to_owned());
    let bytes = |option: &str| size(option)?.parse::<Bytes>().ok();
    let asked = options.iter().rev().find(|option| bytes(option).is_some())?;
    let in_force = arguments.split_whitespace().rev().find(|option| bytes(option).is_some())?;
    (bytes(asked) != bytes(in_force))
        .then(|| Doubt::FlagChanged { asked: asked.clone(), in_force: in_force.to_owned() })
}

/// `UseX` in `-XX:+UseX`, `Y` in `-XX:Y=1`.
fn flag_name(flag: &str) -> &str {
    let name = flag.trim_start_matches("-XX:").trim_start_matches(['+', '-']);
    name.split('=').next().unwrap_or(name)
}

/// Why `GC.run` would leave garbage, so the used heap after it must not be called live.
fn collects_not(flags: &Flags) -> Option<&'static str> {
    let on = |flag| flags.get(flag) == Some("true");
    match () {
        () if on("UseEpsilonGC") => Some("Epsilon never collects"),
        () if on("DisableExplicitGC") => Some("`-XX:+DisableExplicitGC` forbids it"),
        () if on("ExplicitGCInvokesConcurrent") => Some("`-XX:+ExplicitGCInvokesConcurrent` makes it concurrent"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_heap_option_applies() {
        let changed = |options: &[&str], arguments: &str| {
            let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
            match heap_changed(&options, arguments) {
                Some(Doubt::FlagChanged { asked, in_force }) => Some(format!("{asked} {in_force}")),
                _ => None,
            }
        };
        assert_eq!(changed(&["-Xmx8m"], "-Xmx8m -Da=b -Xmx64m").as_deref(), Some("-Xmx8m -Xmx64m"));
        assert_eq!(changed(&["-Xmx8m", "-Xmx9m"], "-Xmx8m -Xmx9216k"), None);
        assert_eq!(
            (changed(&[], "-Xmx64m"), changed(&["-Xmx8m"], ""), changed(&["-Xmx8m"], "-Xmx-")),
            (None, None, None)
        );
    }
}
