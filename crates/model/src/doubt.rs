//! Every reason to distrust a number, as one enum. Each says what was seen and what to do next.
//! Doubts are computed by pure code, stored in the archive and shown beside the number they touch.

mod allocation;
mod comparing;
mod merging;
pub mod noise;
mod place;

pub use allocation::Allocation;
pub use comparing::Comparing;
pub use loadline_jvm::accounting::AllocatedBy;
pub use merging::{ClockSlip, Merging};
pub use place::Place;

use crate::units::{Bytes, grouped, milliseconds, per_second};
use serde::{Deserialize, Serialize};
use std::mem::discriminant;

/// The memory that a JVM can run out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryPool {
    /// Buffers outside of the heap.
    DirectMemory,
    /// Any other: the heap, metaspace, threads.
    #[default]
    Other,
}

impl MemoryPool {
    /// The pool that a `java.lang.OutOfMemoryError` names: `Direct buffer memory` (JDK 11), `Cannot reserve … bytes of
    /// direct buffer memory` (17 and newer).
    pub fn named_in(error: &str) -> Self {
        if error.to_ascii_lowercase().contains("direct") { Self::DirectMemory } else { Self::Other }
    }
}

/// A reason to distrust a number of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Doubt {
    /// Other programs used CPU, the hypervisor stole it, or memory was short, while the load ran.
    NoisyMachine {
        /// The phase disturbed.
        phase: String,
        /// CPU used by neither subject nor Loadline, in cores; `None` where it cannot be told from the server's.
        foreign_cores: Option<f64>,
        /// Share of all CPU time stolen by the hypervisor, 0–1.
        steal_share: f64,
        /// Share of the phase in which some program waited for memory, 0–1; `None` where that may be the subject under
        /// a limit of its own, and on a kernel that does not say.
        #[serde(default)]
        memory_stall_share: Option<f64>,
    },
    /// The load generator used nearly all of its CPU: the rate may be its own limit.
    GeneratorSaturated {
        /// The phase affected.
        phase: String,
        /// CPU time of the generator over elapsed time, 0–1.
        cpu_share: f64,
        /// CPU time of the subject over elapsed time and its CPUs, 0–1, where known.
        subject_share: Option<f64>,
    },
    /// Subject and load generator share their CPUs.
    SharedCpus,
    /// The JVM chose its collector by the few CPUs it was given, not by its own wish.
    CollectorByCpus {
        /// CPUs the subject may use.
        cpus: usize,
        /// CPUs of the machine.
        #[cfg_attr(test, schemars(range(min = 1)))]
        cores: u32,
        /// The collector in force.
        collector: String,
    },
    /// Options that were asked for and are not in force.
    FlagsIgnored {
        /// The options as typed, or the JVM's own line in backticks.
        flags: Vec<String>,
    },
    /// Options in force with another value than asked.
    FlagChanged {
        /// As typed.
        asked: String,
        /// As `VM.flags` shows it.
        in_force: String,
    },
    /// Variables that were set for the subject and that the process which serves has not, or with other values.
    VariablesLost {
        /// As `NAME=VALUE`, as they were set.
        variables: Vec<String>,
    },
    /// Requests failed.
    LoadFailures {
        /// The phase affected.
        phase: String,
        /// How many failed.
        failed: u64,
        /// The number of all requests.
        requests: u64,
        /// In words, by kind.
        kinds: String,
    },
    /// A phase ended before its plan did.
    CutShort {
        /// The phase affected.
        phase: String,
        /// Why.
        why: String,
    },
    /// The program that drove the load ended with a code by which it says that its own targets were missed.
    DriverThresholds {
        /// The phase affected.
        phase: String,
        /// Name of the tool.
        tool: String,
        /// Its exit code.
        code: i32,
    },
    /// The program that drove the load printed no report of a known format.
    DriverNotRead {
        /// The phase affected.
        phase: String,
    },
    /// Operations that the subject counted as failed.
    OperationsFailed {
        /// The phase affected.
        phase: String,
        /// How many.
        failed: u64,
        /// The number of all operations.
        operations: u64,
    },
    /// The subject did not wait at its markers until it was weighed.
    MarkersNotAwaited {
        /// The marks affected.
        marks: Vec<String>,
        /// From a marker to the end of its weighing, at most, ms.
        late_ms: f64,
    },
    /// The JVM sized itself for more memory than its limit.
    LimitNotSeen {
        /// The limit in force.
        limit_bytes: u64,
        /// The largest heap the JVM chose by itself.
        heap_bytes_max: u64,
    },
    /// Half of the answers took about 40 ms: Nagle's algorithm against delayed acknowledgements.
    Plateau40Ms {
        /// The phase affected.
        phase: String,
        /// Median service time.
        p50_ms: f64,
    },
    /// The kernel gives huge pages to everyone: idle stacks and heaps weigh more.
    HugePagesAlways,
    /// Part of the subject was swapped out, so RSS is less than what it holds.
    SwapInUse {
        /// Swapped out at the worst mark.
        swap_bytes: u64,
    },
    /// The counters of the JVM could not be read; heap and GC figures are missing or coarser.
    CountersMissing {
        /// Why.
        why: String,
    },
    /// The JVM could not be asked; full GC, flags in force and NMT are missing.
    AttachMissing {
        /// Why.
        why: String,
    },
    /// A figure of a mark could not be read.
    ReadFailed {
        /// The mark.
        mark: String,
        /// The figure, and why it could not be read.
        why: String,
    },
    /// Part of what an account needs could not be read.
    AccountPartial {
        /// The first mark affected.
        mark: String,
        /// The missing source, and why it is missing.
        why: String,
    },
    /// The heaps of malloc could not be split into live and retained, or not all.
    MallocUnsplit {
        /// The first mark affected.
        mark: String,
        /// How much is unsplit.
        unsplit_bytes: u64,
        /// Why.
        why: String,
    },
    /// Options and variables were set that only another allocator heeds.
    AllocatorIgnores {
        /// Whose malloc it is.
        allocator: String,
        /// Names of variables and options.
        options: Vec<String>,
    },
    /// More of RSS than usual has no owner.
    Unexplained {
        /// The first mark affected.
        mark: String,
        /// Resident pages without an owner.
        unexplained_bytes: u64,
        /// The same as a share of RSS, 0–1.
        share: f64,
    },
    /// The process changed while its account was taken.
    AccountMoved {
        /// The first mark affected.
        mark: String,
        /// By how much what was read differs from the kernel's sums.
        moved_bytes: u64,
    },
    /// The Java heap is mapped several times, and RSS counts it as often (ZGC without generations).
    HeapMultiMapped {
        /// Java heap in RSS.
        rss_bytes: u64,
        /// Java heap in PSS, which counts it once.
        pss_bytes: u64,
    },
    /// Part of the subject is in huge pages, each of which is resident as a whole.
    HugePagesInUse {
        /// How much.
        huge_bytes: u64,
    },
    /// The heap, or another pool, was exhausted.
    OutOfMemoryError {
        /// As the JVM printed it.
        error: String,
        /// The pool that it names.
        #[serde(default)]
        pool: MemoryPool,
    },
    /// Several JVMs run below the command; only one was weighed.
    SeveralJvms {
        /// The one weighed.
        pid: u32,
        /// The others.
        others: Vec<u32>,
    },
    /// Several processes run below the command of a subject that is no JVM; only one was weighed.
    SeveralProcesses {
        /// The one weighed.
        pid: u32,
        /// The others.
        others: Vec<u32>,
    },
    /// Several processes form the subject, and RSS counts the pages they share once for each.
    SharedCountedOften {
        /// How many.
        processes: u64,
        /// The sum of their RSS at the first mark.
        rss_bytes: u64,
        /// The sum of their PSS there.
        pss_bytes: u64,
    },
    /// A process of the subject that an earlier mark has ended before the subject did.
    ProcessEnded {
        /// Its id.
        pid: u32,
        /// The program that it ran.
        name: String,
        /// When that was seen: a mark, or the end of a phase.
        at: String,
    },
    /// The folder of a trial could not be removed.
    WorkFolderLeft {
        /// The path of the folder.
        folder: String,
        /// Why.
        why: String,
    },
    /// The subject's log could not be kept whole.
    LogIncomplete {
        /// Why.
        why: String,
    },
    /// Fewer correct answers came than the plan offered.
    AchievedBelowOffered {
        /// The phase affected.
        phase: String,
        /// The rate that the plan asked for, per second.
        offered_per_s: f64,
        /// The rate of correct answers, per second.
        achieved_per_s: f64,
    },
    /// The generator sent late although a connection was free.
    GeneratorLag {
        /// The phase affected.
        phase: String,
        /// 99th percentile of the delay.
        lag_ms_p99: f64,
    },
    /// Nearly all local ports were in use or not yet free again.
    PortsNearExhaustion {
        /// The phase affected.
        phase: String,
        /// Sockets of this machine in TIME_WAIT at its end.
        time_wait: u64,
        /// Local ports that connections may take.
        ports: u64,
        /// Whether the kernel takes a port again after a second.
        tw_reuse: bool,
        /// Connections opened per second.
        connects_per_s: f64,
    },
    /// About what is allocated per request.
    #[serde(untagged)]
    Allocation(Allocation),
    /// About trials that are compared.
    #[serde(untagged)]
    Comparing(Comparing),
    /// About results of many nodes.
    #[serde(untagged)]
    Merging(Merging),
    /// About the node that does an entry of a plan.
    #[serde(untagged)]
    Place(Place),
}

impl Doubt {
    /// Returns what was seen, in one sentence.
    pub fn text(&self) -> String {
        match self {
            Self::NoisyMachine { phase, foreign_cores, steal_share, memory_stall_share } => {
                noisy(phase, *foreign_cores, *steal_share, *memory_stall_share)
            }
            Self::GeneratorSaturated { phase, cpu_share, subject_share } => {
                saturated(phase, *cpu_share, *subject_share)
            }
            Self::SharedCpus => "subject and load generator share their CPUs".to_owned(),
            Self::CollectorByCpus { cpus, cores, collector } => by_cpus(*cpus, *cores, collector),
            Self::FlagsIgnored { flags } => format!("the JVM ignored {}", flags.join(" ")),
            Self::FlagChanged { asked, in_force } => format!("asked {asked}, in force is {in_force}"),
            Self::VariablesLost { variables } => lost(variables),
            Self::LoadFailures { phase, failed, requests, kinds } => load_failures(phase, *failed, *requests, kinds),
            Self::CutShort { phase, why } => format!("{phase} ended early: {why}"),
            Self::DriverThresholds { phase, tool, code } => {
                format!("{tool} ended with exit code {code} in {phase}: thresholds of its own were crossed")
            }
            Self::DriverNotRead { phase } => format!("what the driver of {phase} printed was not read"),
            Self::OperationsFailed { phase, failed, operations } => operations_failed(phase, *failed, *operations),
            Self::MarkersNotAwaited { marks, late_ms } => not_awaited(marks, *late_ms),
            Self::LimitNotSeen { limit_bytes, heap_bytes_max } => {
                let (heap, limit) = (Bytes(*heap_bytes_max), Bytes(*limit_bytes));
                format!("the JVM does not see its limit: it may use a heap of {heap} under a limit of {limit}")
            }
            Self::Plateau40Ms { phase, p50_ms } => format!(
                "half of the answers in {phase} took about {p50_ms:.0} ms, the time of a delayed acknowledgement"
            ),
            Self::HugePagesAlways => "transparent huge pages are set to `always`".to_owned(),
            Self::SwapInUse { swap_bytes } => swapped(Bytes(*swap_bytes)),
            Self::CountersMissing { why } => format!("no JVM counters: {why}"),
            Self::AttachMissing { why } => format!("the JVM could not be asked: {why}"),
            Self::ReadFailed { mark, why } => format!("at mark {mark}: {why}"),
            Self::AccountPartial { mark, why } => format!("the account at mark {mark} lacks a source: {why}"),
            Self::MallocUnsplit { mark, unsplit_bytes, why } => unsplit(mark, Bytes(*unsplit_bytes), why),
            Self::AllocatorIgnores { allocator, options } => unheeded(allocator, options),
            Self::Unexplained { mark, unexplained_bytes, share } => {
                format!("at mark {mark} {} of RSS have no owner ({:.1} %)", Bytes(*unexplained_bytes), share * 100.0)
            }
            Self::AccountMoved { mark, moved_bytes } => {
                format!("{} changed while the account at mark {mark} was taken", Bytes(*moved_bytes))
            }
            Self::HeapMultiMapped { rss_bytes, pss_bytes } => multi_mapped(*rss_bytes, *pss_bytes),
            Self::HugePagesInUse { huge_bytes } => {
                format!("{} are in transparent huge pages, which are resident as a whole", Bytes(*huge_bytes))
            }
            Self::OutOfMemoryError { error, .. } => format!("the subject printed `{error}`"),
            Self::SeveralJvms { pid, others } => several("JVMs", *pid, others),
            Self::SeveralProcesses { pid, others } => several("processes", *pid, others),
            Self::SharedCountedOften { processes, rss_bytes, pss_bytes } => shared(*processes, *rss_bytes, *pss_bytes),
            Self::ProcessEnded { pid, name, at } => gone(*pid, name, at),
            Self::WorkFolderLeft { folder, why } => format!("the folder {folder} could not be removed: {why}"),
            Self::LogIncomplete { why } => format!("the subject's log is incomplete: {why}"),
            Self::AchievedBelowOffered { phase, offered_per_s, achieved_per_s } => {
                missed(phase, *offered_per_s, *achieved_per_s)
            }
            Self::GeneratorLag { phase, lag_ms_p99 } => {
                format!("the load generator was late in {phase}: 99th percentile {} ms", milliseconds(*lag_ms_p99))
            }
            Self::PortsNearExhaustion { phase, time_wait, ports, tw_reuse, connects_per_s } => {
                let time_wait = (!tw_reuse).then_some(*time_wait);
                spent(phase, grouped(*ports), time_wait, *connects_per_s)
            }
            Self::Allocation(doubt) => doubt.text(),
            Self::Comparing(doubt) => doubt.text(),
            Self::Merging(doubt) => doubt.text(),
            Self::Place(doubt) => doubt.text(),
        }
    }

    /// Whether both doubt the same thing for the same reason, with whatever values.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Comparing(one), Self::Comparing(other)) => discriminant(one) == discriminant(other),
            (Self::Merging(one), Self::Merging(other)) => discriminant(one) == discriminant(other),
            (Self::Place(one), Self::Place(other)) => discriminant(one) == discriminant(other),
            _ => discriminant(self) == discriminant(other),
        }
    }

    /// One thing to do about it.
    pub fn next(&self) -> &'static str {
        match self {
            Self::NoisyMachine { .. } => "repeat it on a quiet machine, and more than once",
            Self::GeneratorSaturated { .. } => {
                "give it a CPU of its own (`--load-cpus`) or more threads (`load --threads`), or read the rate as a \
                 lower bound"
            }
            Self::SharedCpus => "on a machine with two or more cores they are kept apart (`--cpus`, `--load-cpus`)",
            Self::CollectorByCpus { .. } => {
                "choose the collector (`--gc`), or give it the CPUs it will have (`--cpus`)"
            }
            Self::FlagsIgnored { .. } => "drop them or choose a JDK that knows them; two configurations may be equal",
            Self::FlagChanged { .. } => "compare what is in force, not what was asked",
            Self::VariablesLost { .. } => "what starts it sets its own environment: set them there",
            Self::LoadFailures { .. } => {
                "check the URL and `--expect-status`; what a weighed server printed is in the archive"
            }
            Self::CutShort { .. } => "its figures cover less work than planned; do not compare them",
            Self::DriverThresholds { .. } => "read which in the driver's log; what was weighed does not depend on them",
            Self::DriverNotRead { .. } => {
                "its requests and times are unknown; let it print the report of wrk, ab, oha, k6, h2load or Hyperfoil"
            }
            Self::OperationsFailed { .. } => "look for the reason in the subject's log in the archive",
            Self::MarkersNotAwaited { .. } => {
                "print `wait=1` with the marker, and read a line from the standard input before going on"
            }
            Self::LimitNotSeen { .. } => "see what stands out for the cause, or set `-Xmx`",
            Self::Plateau40Ms { .. } => {
                "set TCP_NODELAY; for the JDK's httpserver: `-Dsun.net.httpserver.nodelay=true`"
            }
            Self::HugePagesAlways => "compare with `madvise` in /sys/kernel/mm/transparent_hugepage/enabled",
            Self::SwapInUse { .. } => "turn swap off while weighing, or add it to RSS",
            Self::CountersMissing { .. } => "leave `-XX:+UsePerfData` on (the default)",
            Self::AttachMissing { .. } => "leave attaching enabled, and run as the subject's user or as root",
            Self::ReadFailed { .. } => "if no other doubt says why, `loadline doctor` tells what can be read here",
            Self::AccountPartial { .. } => {
                "run Loadline as root, or with CAP_SYS_PTRACE, or set /proc/sys/kernel/yama/ptrace_scope to 0"
            }
            Self::MallocUnsplit { .. } => "read `malloc.unsplit` as both together; glibc's and musl's own can be split",
            Self::AllocatorIgnores { .. } => "use an image with glibc, or drop them",
            Self::Unexplained { .. } => "list it with `loadline account PID --by region`; NMT may know its owner",
            Self::AccountMoved { .. } => "hold the threads while it is read (without `--no-stop`), or repeat it",
            Self::HeapMultiMapped { .. } => "read the column PSS, which counts each page once",
            Self::HugePagesInUse { .. } => NO_HUGE_PAGES,
            Self::OutOfMemoryError { .. } => {
                "raise the pool it names (`--heap` for the Java heap); what a dead thread did not do is in no figure"
            }
            Self::SeveralJvms { .. } => "start the server itself as the command, or pick it by `--url`",
            Self::SeveralProcesses { .. } => "weigh all of them (`processes: all`), or `exec` the server in the script",
            Self::SharedCountedOften { .. } => "read PSS, which counts each page once; it is the weight of the subject",
            Self::ProcessEnded { .. } => "look at the subject's log; marks before and after weigh different things",
            Self::WorkFolderLeft { .. } => "remove it by hand, or let the next start of Loadline try again",
            Self::LogIncomplete { .. } => "free space in the archive's folder",
            Self::AchievedBelowOffered { .. } => {
                "compare the lag (the generator) with the queue (`--connections`, `--connections-max`); if both are \
                 small, the server is the limit"
            }
            Self::GeneratorLag { .. } => {
                "give it a CPU of its own (`--load-cpus`); the response times contain this delay, the service times not"
            }
            Self::PortsNearExhaustion { .. } => {
                "keep connections alive, or widen /proc/sys/net/ipv4/ip_local_port_range"
            }
            Self::Allocation(doubt) => doubt.next(),
            Self::Comparing(doubt) => doubt.next(),
            Self::Merging(doubt) => doubt.next(),
            Self::Place(doubt) => doubt.next(),
        }
    }
}

const NO_HUGE_PAGES: &str = "compare with `madvise` or `never` in /sys/kernel/mm/transparent_hugepage/enabled";

impl From<Allocation> for Doubt {
    fn from(doubt: Allocation) -> Self {
        Self::Allocation(doubt)
    }
}

impl From<Place> for Doubt {
    fn from(doubt: Place) -> Self {
        Self::Place(doubt)
    }
}

impl From<Comparing> for Doubt {
    fn from(doubt: Comparing) -> Self {
        Self::Comparing(doubt)
    }
}

impl From<Merging> for Doubt {
    fn from(doubt: Merging) -> Self {
        Self::Merging(doubt)
    }
}

fn by_cpus(cpus: usize, cores: u32, collector: &str) -> String {
    format!("the JVM chose {collector} GC because it sees {cpus} of {cores} CPUs")
}

fn lost(variables: &[String]) -> String {
    format!("the process that serves does not have {}", variables.join(" "))
}

fn unheeded(allocator: &str, options: &[String]) -> String {
    format!("the allocator is {allocator}, for which these do nothing: {}", options.join(" "))
}

fn unsplit(mark: &str, unsplit: Bytes, why: &str) -> String {
    format!("at mark {mark} {unsplit} of malloc are not split into live and retained: {why}")
}

/// More runs than is weighed.
fn several(what: &str, pid: u32, others: &[u32]) -> String {
    let others = others.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    format!("several {what} run below the command; weighed is {pid}, not {others}")
}

fn shared(processes: u64, rss_bytes: u64, pss_bytes: u64) -> String {
    let (rss, pss) = (Bytes(rss_bytes), Bytes(pss_bytes));
    format!("{processes} processes share pages: RSS counts {rss} for {pss} of memory")
}

fn swapped(swap: Bytes) -> String {
    format!("{swap} of the subject were swapped out, so RSS is less than it holds")
}

fn multi_mapped(rss_bytes: u64, pss_bytes: u64) -> String {
    let (rss, pss) = (Bytes(rss_bytes), Bytes(pss_bytes));
    format!("ZGC maps its heap several times: RSS counts {rss} for {pss} of memory")
}

fn gone(pid: u32, name: &str, at: &str) -> String {
    format!("a process of the subject ended before it did: pid {pid} ({name}) was gone at {at}")
}

/// A rate that was offered and not achieved.
fn missed(phase: &str, offered_per_s: f64, achieved_per_s: f64) -> String {
    let percent = achieved_per_s / offered_per_s * 100.0;
    let [offered, achieved] = [offered_per_s, achieved_per_s].map(per_second);
    format!("offered {offered}/s in {phase}, achieved {achieved}/s ({percent:.1} %)")
}

/// Ports that are not free again: those in TIME_WAIT, or, where these do not count, those that a second takes.
fn spent(phase: &str, ports: String, time_wait: Option<u64>, connects_per_s: f64) -> String {
    match time_wait {
        Some(waiting) => {
            let waiting = grouped(waiting);
            format!("local ports run out: after {phase} {waiting} connections were in TIME_WAIT, of {ports} ports")
        }
        None => {
            let rate = per_second(connects_per_s);
            format!("local ports run out: {phase} opened {rate} connections per second from {ports} ports")
        }
    }
}

/// Says what others took of the machine, as far as it is known.
fn noisy(phase: &str, foreign_cores: Option<f64>, steal_share: f64, memory_stall_share: Option<f64>) -> String {
    let foreign = foreign_cores.map(|cores| format!(" other programs used {cores:.2} cores,")).unwrap_or_default();
    // A stall of less than a tenth of a percent is no news.
    let stalled = memory_stall_share.filter(|share| *share >= 0.0005);
    let stalled =
        stalled.map(|share| format!(", and for {:.1} % of the time a program waited for memory", share * 100.0));
    let stalled = stalled.unwrap_or_default();
    format!("noisy machine: during {phase}{foreign} {:.1} % was stolen{stalled}", steal_share * 100.0)
}

fn load_failures(phase: &str, failed: u64, requests: u64, kinds: &str) -> String {
    format!("{} of {} requests failed in {phase}: {kinds}", grouped(failed), grouped(requests))
}

fn operations_failed(phase: &str, failed: u64, operations: u64) -> String {
    format!("{} of {} operations of the subject failed in {phase}", grouped(failed), grouped(operations))
}

fn not_awaited(marks: &[String], late_ms: f64) -> String {
    format!("the subject went on while it was weighed at {}, up to {late_ms:.0} ms after its marker", marks.join(", "))
}

fn saturated(phase: &str, cpu_share: f64, subject_share: Option<f64>) -> String {
    let subject = subject_share.map(|s| format!(", the subject {:.0} % of its own", s * 100.0));
    format!(
        "the load generator may be the limit: in {phase} it used {:.0} % of its CPU{}",
        cpu_share * 100.0,
        subject.unwrap_or_default()
    )
}
