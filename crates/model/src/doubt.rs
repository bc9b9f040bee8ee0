//! Every reason to distrust a number, as one enum, with the observation and a next step. Pure code computes doubts, the
//! archive stores them, and reports show them next to the number concerned.

/// The name of an account's only mark.
pub const NOW: &str = "now";

/// Names a mark among several.
fn at(mark: &str) -> String {
    if mark == NOW { String::new() } else { format!(" at mark {mark}") }
}

/// Defines an enum of doubts, each with its values, a sentence on what was seen, and a next step. Groups with their own
/// enum are inlined in JSON, where the kind identifies them.
macro_rules! doubts {
    (
        $(#[$about:meta])*
        $name:ident {$(
            $(#[$of:meta])*
            $kind:ident $({ $($(#[$on:meta])* $value:ident: $type:ty,)* })? => $text:expr, $next:expr;
        )*}
        $($(#[$about_group:meta])* $group:ident,)*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum $name {
            $($(#[$of])* $kind $({ $($(#[$on])* $value: $type,)* })?,)*
            $($(#[$about_group])* #[serde(untagged)] $group($group),)*
        }

        impl $name {
            /// A sentence on what was seen.
            pub fn text(&self) -> String {
                match self {
                    $(Self::$kind $({ $($value),* })? => {
                        // Not every sentence uses every value.
                        $($(let _ = $value;)*)?
                        $text
                    })*
                    $(Self::$group(doubt) => doubt.text(),)*
                }
            }

            /// A next step.
            pub fn next(&self) -> &'static str {
                match self {
                    $(Self::$kind $({ $($value: _),* })? => $next,)*
                    $(Self::$group(doubt) => doubt.next(),)*
                }
            }

            /// Whether both are the same doubt, possibly with different values.
            pub fn is_like(&self, other: &Self) -> bool {
                match (self, other) {
                    $((Self::$group(one), Self::$group(other)) => one.is_like(other),)*
                    _ => std::mem::discriminant(self) == std::mem::discriminant(other),
                }
            }
        }

        $(impl From<$group> for $name {
            fn from(doubt: $group) -> Self {
                Self::$group(doubt)
            }
        })*
    };
}

mod allocation;
mod comparing;
mod merging;
pub mod noise;
mod place;

pub use allocation::{ANSWERS_OF_A_HALF_MIN, Allocation};
pub use comparing::Comparing;
pub use loadline_jvm::accounting::AllocatedBy;
pub use merging::{ClockSlip, Merging};
pub use place::Place;

use crate::units::{Bytes, Millicpus, grouped, milliseconds, per_second};
use serde::{Deserialize, Serialize};

/// Memory that a JVM can exhaust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryPool {
    /// Direct buffers.
    DirectMemory,
    /// Anything else: heap, metaspace, threads.
    #[default]
    Other,
}

impl MemoryPool {
    /// The pool in a `java.lang.OutOfMemoryError`: `Direct buffer memory` (JDK 11), `Cannot reserve … bytes of direct
    /// buffer memory` (17 and later).
    pub fn named_in(error: &str) -> Self {
        if error.to_ascii_lowercase().contains("direct") { Self::DirectMemory } else { Self::Other }
    }
}

doubts! {
    /// A reason to distrust a number of a trial.
    Doubt {
        /// While the load ran, other programs used CPU, the hypervisor stole it, or memory was short.
        NoisyMachine {
            /// The disturbed phase.
            phase: String,
            /// CPU used by neither subject nor Loadline, in cores; `None` if indistinguishable from the server's.
            foreign_cores: Option<f64>,
            /// Share of all CPU time stolen by the hypervisor, 0–1.
            steal_share: f64,
            /// Share of the phase in which any program waited for memory, 0–1; `None` if that may be the subject under
            /// its own limit, or if the kernel does not report it.
            #[serde(default)]
            memory_stall_share: Option<f64>,
        } => noisy(phase, *foreign_cores, *steal_share, *memory_stall_share),
            "repeat the measurement on a quiet machine, and more than once";
        /// The load generator used nearly all of its CPU, so it may have limited the rate.
        GeneratorSaturated {
            /// The affected phase.
            phase: String,
            /// CPU time of the generator divided by elapsed time, 0–1.
            cpu_share: f64,
            /// CPU time of the subject divided by elapsed time and its CPUs, 0–1, if known.
            subject_share: Option<f64>,
        } => {
            let subject = subject_share.map(|share| format!(", and the server used {:.0}% of its own", share * 100.0));
            format!(
                "the load generator may be the bottleneck: in {phase}, it used {:.0}% of its CPU{}",
                cpu_share * 100.0,
                subject.unwrap_or_default()
            )
        },
            "give it its own CPU (`--load-cpus`) or more threads (`load --threads`), or treat the rate as a lower \
             bound";
        /// At a fixed rate, the subject used nearly all of its CPU time, so the rate measures its limit.
        SubjectSaturated {
            /// The affected phase.
            phase: String,
            /// CPU time of the subject divided by elapsed time and its CPUs, 0–1.
            subject_share: f64,
        } => format!(
            "the server used {:.0}% of its CPU time in {phase}, so latency and CPU time per request mostly show this \
             limit",
            subject_share * 100.0
        ),
            "lower the rate, warm up longer, or give the server more CPUs";
        /// Subject and load generator share their CPUs.
        SharedCpus => "the server and the load generator share CPUs".to_owned(),
            "use a machine with two or more cores, or separate them with `--cpus` and `--load-cpus`";
        /// The JVM chose its collector only because it had few CPUs.
        CollectorByCpus {
            /// CPUs the subject may use.
            cpus: usize,
            /// CPUs of the machine.
            #[cfg_attr(test, schemars(range(min = 1)))]
            cores: u32,
            /// The collector in effect.
            collector: String,
        } => format!("the JVM chose {collector} GC because it sees only {cpus} of {cores} CPUs"),
            "choose a collector yourself (`-XX:+UseG1GC` in the command, or `--gc`), or give the JVM more CPUs \
             (`--cpus all` shares those of the load generator)";
        /// The subject's CPU limit throttled it in many periods.
        Throttled {
            /// The affected phase.
            phase: String,
            /// Share of its 100 ms periods that were throttled, 0–1.
            share: f64,
            /// The CPU limit, in thousandths of a CPU.
            cpu_limit_millicpus: u64,
        } => {
            let limit = Millicpus(*cpu_limit_millicpus);
            format!("in {phase}, the CPU limit of {limit} throttled the server in {:.0}% of the \
                 periods", share * 100.0)
        },
            "the times include this throttling; to see the server's own times, raise `--cpu-limit` or lower the load";
        /// The warm-up ended before the subject was warm.
        NeverWarm {
            /// Duration of the warm-up.
            seconds: f64,
            /// The quantities that still changed; empty if the phase was too short, or CPU time was not read.
            why: Vec<String>,
        } => {
            let why = match why.as_slice() {
                [] => "too few responses or no CPU times to judge by".to_owned(),
                some => format!("at the end, {}", some.join(", ")),
            };
            format!("the server was not warm after {seconds:.0} s of warm-up: {why}")
        },
            "CPU times include warm-up work; `--warmup steady:5m` allows a longer warm-up";
        /// No GC ran under load, so the heap's resident size depends on how long the load lasted.
        NoCollection {
            /// Total duration of the work phases.
            seconds: f64,
            /// Used heap after the load.
            heap_bytes: u64,
        } => {
            let heap = Bytes(*heap_bytes);
            format!("no GC ran during {seconds:.0} s of load, so the {heap} heap still holds everything that was \
                allocated")
        },
            "to compare memory, give every configuration the same heap, small enough for the load to fill \
             (`--jvm=-Xmx64m`), or run the load longer";
        /// Requested options that are not in effect.
        FlagsIgnored {
            /// The options as given, or the JVM's own line in backticks.
            flags: Vec<String>,
        } => format!("the JVM ignored {}", flags.join(" ")),
            "remove these options, or use a JDK that supports them; without them, two configurations may be \
             identical";
        /// Options in effect with a different value than requested.
        FlagChanged {
            /// As given.
            asked: String,
            /// As `VM.flags` shows it.
            in_force: String,
        } => format!("{asked} was requested, but {in_force} is in effect"),
            "compare the values in effect, not those requested";
        /// Variables set for the subject that the serving process lacks, or has with other values.
        VariablesLost {
            /// As `NAME=VALUE`, with the requested values.
            variables: Vec<String>,
        } => format!("the server process does not have {}", variables.join(" ")),
            "its launcher sets its own environment; set the variables in the launcher";
        /// Requests failed.
        LoadFailures {
            /// The affected phase.
            phase: String,
            /// Number of failed requests.
            failed: u64,
            /// Total number of requests.
            requests: u64,
            /// The failures in words, by kind.
            kinds: String,
        } => format!("{} of {} requests failed in {phase}: {kinds}", grouped(*failed), grouped(*requests)),
            "check the URL and `--expect-status`; the output of a server that Loadline started is in the archive";
        /// The server responded at first, and later refused connections.
        ServerGone {
            /// The affected phase.
            phase: String,
            /// Seconds into the phase after which most requests in each second failed.
            after_s: f64,
            /// Number of refused connections.
            refused: u64,
        } => format!(
            "the server responded at first, but {after_s:.0} s into {phase} it refused connections ({} in total): it \
                died or restarted",
            grouped(*refused)
        ),
            "read its log; `loadline post-mortem` shows whether the kernel killed it for lack of memory";
        /// A phase ended before its planned end.
        CutShort {
            /// The affected phase.
            phase: String,
            /// Why.
            why: String,
        } => format!("{phase} ended early: {why}"),
            "its numbers cover less work than planned, so do not compare them";
        /// The exit code of the program that drove the load means that its own thresholds were exceeded.
        DriverThresholds {
            /// The affected phase.
            phase: String,
            /// Name of the tool.
            tool: String,
            /// Its exit code.
            code: i32,
        } => format!("{tool} exited with code {code} in {phase} because its own thresholds were exceeded"),
            "the driver's log names the thresholds; the measurements do not depend on them";
        /// The program that drove the load printed no report in a known format.
        DriverNotRead {
            /// The affected phase.
            phase: String,
        } => format!("the driver's output in {phase} could not be read"),
            "its requests and times are unknown; it must print a report in the format of wrk, ab, oha, k6, h2load, or \
             Hyperfoil";
        /// Operations that the subject counted as failed.
        OperationsFailed {
            /// The affected phase.
            phase: String,
            /// Number of failed operations.
            failed: u64,
            /// Total number of operations.
            operations: u64,
        } => {
            let (failed, operations) = (grouped(*failed), grouped(*operations));
            format!("{failed} of {operations} operations that the program counted failed in {phase}")
        },
            "the server's log, which is in the archive, may show why";
        /// The subject did not wait at its markers to be weighed.
        MarkersNotAwaited {
            /// The affected marks.
            marks: Vec<String>,
            /// Longest time from a marker to the end of the measurement, in ms.
            late_ms: f64,
        } => {
            let marks = marks.join(", ");
            format!("the program kept running while it was weighed at {marks}, up to {late_ms:.0} ms after its marker")
        },
            "have the program print `wait=1` with the marker, and then read a line from standard input before it \
             continues";
        /// The JVM sized itself for more memory than its limit.
        LimitNotSeen {
            /// The limit in effect.
            limit_bytes: u64,
            /// Maximum heap size chosen by the JVM.
            heap_bytes_max: u64,
        } => {
            let (heap, limit) = (Bytes(*heap_bytes_max), Bytes(*limit_bytes));
            format!("the JVM does not see its memory limit: its heap may grow to {heap}, but the limit is {limit}")
        },
            "the findings show the cause; setting `-Xmx` avoids the problem";
        /// Half of the responses took about 40 ms: Nagle's algorithm combined with delayed ACKs.
        Plateau40Ms {
            /// The affected phase.
            phase: String,
            /// Median service time.
            p50_ms: f64,
        } => format!("half of the responses in {phase} took about {p50_ms:.0} ms, the usual wait for a delayed TCP \
            acknowledgment"),
            "set TCP_NODELAY; for the JDK's httpserver: `-Dsun.net.httpserver.nodelay=true`";
        /// The kernel gives huge pages to all processes, so idle stacks and heaps take more memory.
        HugePagesAlways => "transparent huge pages are set to `always`".to_owned(),
            "compare with `madvise` in /sys/kernel/mm/transparent_hugepage/enabled";
        /// Part of the subject was swapped out, so RSS understates its memory.
        SwapInUse {
            /// Swapped-out memory at the worst mark.
            swap_bytes: u64,
        } => format!("{} of the server's memory was swapped out, so RSS understates it", Bytes(*swap_bytes)),
            "turn swap off while you weigh, or add the swapped amount to RSS";
        /// The JVM's counters could not be read; heap and GC figures are missing or coarser.
        CountersMissing {
            /// Why.
            why: String,
        } => format!("no JVM counters: {why}"),
            "leave `-XX:+UsePerfData` on (the default)";
        /// The JVM could not be queried; the full GC, flags in effect, and NMT are missing.
        AttachMissing {
            /// Why.
            why: String,
        } => format!("the JVM could not be queried: {why}"),
            "leave attaching enabled, and run Loadline as the server's user or as root";
        /// A value at a mark could not be read.
        ReadFailed {
            /// The mark.
            mark: String,
            /// The value, and why it could not be read.
            why: String,
        } => match at(mark) {
            of if of.is_empty() => why.clone(),
            of => format!("{}: {why}", of.trim_start()),
        },
            "unless another doubt explains why, run `loadline doctor` to see what Loadline can read here";
        /// Part of the data for an account could not be read.
        AccountPartial {
            /// The first affected mark.
            mark: String,
            /// The missing source, and why it is missing.
            why: String,
        } => format!("the account{} could not use one of its sources: {why}", at(mark)),
            "run Loadline as root or with CAP_SYS_PTRACE; if it already runs that way, this kernel does not provide \
             the source";
        /// The script of `loadline capture` could not collect everything.
        BundleLacks {
            /// The missing item, and the reason.
            what: String,
        } => format!("the bundle lacks {what}"),
            "if possible, remove the cause and capture again; `jcmd` may also be in `JAVA_HOME` or next to the JVM's \
             `java`";
        /// Some or all malloc heaps could not be split into live and retained.
        MallocUnsplit {
            /// The first affected mark.
            mark: String,
            /// Unsplit memory.
            unsplit_bytes: u64,
            /// Why.
            why: String,
        } => {
            let unsplit = Bytes(*unsplit_bytes);
            format!("{unsplit} of malloc memory could not be split into live and retained{}: {why}", at(mark))
        },
            "with glibc, `jcmd PID System.trim_native_heap` (JDK 17.0.9 and newer) trims it and prints how much was \
             released; without `jcmd`, set `-XX:TrimNativeHeapInterval=2000`";
        /// Options or variables were set that only another allocator uses.
        AllocatorIgnores {
            /// The allocator in use.
            allocator: String,
            /// Names of variables and options.
            options: Vec<String>,
        } => format!("the allocator is {allocator}, which ignores these settings: {}", options.join(" ")),
            "use an image with glibc, or remove the settings";
        /// An unusually large part of RSS has no owner.
        Unexplained {
            /// The first affected mark.
            mark: String,
            /// Resident pages without an owner.
            unexplained_bytes: u64,
            /// The same as a share of RSS, 0–1.
            share: f64,
        } => format!("{} of RSS has no known owner{} ({:.1}%)", Bytes(*unexplained_bytes), at(mark), share * 100.0),
            "`loadline account` with `--by region` lists these pages; Native Memory Tracking may identify their owner";
        /// The process changed while its account was taken.
        AccountMoved {
            /// The first affected mark.
            mark: String,
            /// Difference between the pages read and the kernel's sums.
            moved_bytes: u64,
        } => format!("{} changed while the account{} was being taken", Bytes(*moved_bytes), at(mark)),
            "repeat it on a quiet machine, where Loadline can pause the threads (for an account, without \
             `--no-stop`)";
        /// The Java heap is mapped several times, and RSS counts every mapping (non-generational ZGC).
        HeapMultiMapped {
            /// Java heap in RSS.
            rss_bytes: u64,
            /// Java heap in PSS, which counts it once.
            pss_bytes: u64,
        } => {
            let (rss, pss) = (Bytes(*rss_bytes), Bytes(*pss_bytes));
            format!("ZGC maps its heap several times, so RSS counts {rss} for {pss} of memory")
        },
            "use the PSS column, which counts each page once";
        /// Part of the subject is in huge pages, each of which is resident as a whole.
        HugePagesInUse {
            /// Memory in huge pages.
            huge_bytes: u64,
        } => format!(
            "{} is in transparent huge pages, which are fully resident even if only partly used",
            Bytes(*huge_bytes)
        ),
            "compare with `madvise` or `never` in /sys/kernel/mm/transparent_hugepage/enabled";
        /// The heap, or another pool, was exhausted.
        OutOfMemoryError {
            /// The error, as the JVM printed it.
            error: String,
            /// The pool that it names.
            #[serde(default)]
            pool: MemoryPool,
        } => format!("the server printed `{error}`"),
            "raise the limit of the named pool (`--heap` for the Java heap). The numbers do not include work \
             that a dead thread left undone";
        /// Several JVMs run below the command; only one was weighed.
        SeveralJvms {
            /// The one weighed.
            pid: u32,
            /// The others.
            others: Vec<u32>,
        } => several("JVMs", *pid, others),
            "start the server directly as the command, or select it with `--url`";
        /// Several processes run below the command of a subject that is not a JVM; only one was weighed.
        SeveralProcesses {
            /// The one weighed.
            pid: u32,
            /// The others.
            others: Vec<u32>,
        } => several("processes", *pid, others),
            "weigh all of them (`processes: all`), or `exec` the server at the end of the script";
        /// Several processes form the subject, and their RSS counts shared pages once per process.
        SharedCountedOften {
            /// Number of processes.
            processes: u64,
            /// The sum of their RSS at the first mark.
            rss_bytes: u64,
            /// The sum of their PSS at that mark.
            pss_bytes: u64,
        } => {
            let (rss, pss) = (Bytes(*rss_bytes), Bytes(*pss_bytes));
            format!("{processes} processes share pages, so RSS counts {rss} for {pss} of memory")
        },
            "compare PSS instead, which counts each page once";
        /// The subject has more processes than Loadline weighs, so the sums exclude the others.
        ProcessesLeftOut {
            /// Number of processes that were not weighed.
            left_out: u64,
            /// Maximum number of processes weighed.
            most: u64,
        } => format!("{left_out} server processes were not weighed; the maximum is {most}"),
            "weigh the processes of a single service, without `processes: all`";
        /// A process included in an earlier mark exited before the subject did.
        ProcessEnded {
            /// Its id.
            pid: u32,
            /// The program that it ran.
            name: String,
            /// When this was noticed: at a mark, or at the end of a phase.
            at: String,
        } => format!("a server process exited before the server did: pid {pid} ({name}) no longer existed at \
                      {at}"),
            "read the server's log; marks before and after that time cover different sets of processes";
        /// The directory of a trial could not be removed.
        WorkFolderLeft {
            /// Its path.
            folder: String,
            /// Why.
            why: String,
        } => format!("the directory {folder} could not be removed: {why}"),
            "remove it yourself, or let the next Loadline run try again";
        /// The subject's log is incomplete.
        LogIncomplete {
            /// Why.
            why: String,
        } => format!("the server's log is incomplete: {why}"),
            "free some space on the disk that holds the archive";
        /// The subject logged many stack traces, whose memory and CPU time count as its own.
        StackTraces {
            /// Number of stack traces.
            count: u64,
            /// The line above the first one.
            first: String,
        } => format!("the server logged {} stack traces, the first one after `{first}`", grouped(*count)),
            "read its log in the archive and fix the cause: errors cost memory and CPU time, too";
        /// Fewer correct responses arrived than the plan offered.
        AchievedBelowOffered {
            /// The affected phase.
            phase: String,
            /// The planned rate, per second.
            offered_per_s: f64,
            /// The rate of correct responses, per second.
            achieved_per_s: f64,
        } => {
            let percent = achieved_per_s / offered_per_s * 100.0;
            let [offered, achieved] = [offered_per_s, achieved_per_s].map(|rate| per_second(*rate));
            format!("the load offered {offered}/s in {phase}, but only {achieved}/s was achieved ({percent:.1}%)")
        },
            "compare the lag (the load generator) with the queue (`--connections`, `--connections-max`). If both \
             are small, the server is the bottleneck";
        /// The generator sent requests late although a connection was free.
        GeneratorLag {
            /// The affected phase.
            phase: String,
            /// 99th percentile of the lag.
            lag_ms_p99: f64,
        } => format!("the load generator sent requests late in {phase} (99th percentile: {} \
            ms)", milliseconds(*lag_ms_p99)),
            "give it its own CPU (`--load-cpus`) or, if it has one, more of them or a lower rate; response times \
             include this delay, service times do not";
        /// Nearly all local ports were in use or not yet reusable.
        PortsNearExhaustion {
            /// The affected phase.
            phase: String,
            /// The machine's sockets in TIME_WAIT at the end of the phase.
            time_wait: u64,
            /// Local ports available for connections.
            ports: u64,
            /// Whether the kernel reuses a port after a second.
            tw_reuse: bool,
            /// Connections opened per second.
            connects_per_s: f64,
        } => {
            let time_wait = (!tw_reuse).then_some(*time_wait);
            spent(phase, grouped(*ports), time_wait, *connects_per_s)
        },
            "keep connections alive, or widen /proc/sys/net/ipv4/ip_local_port_range";
    }
    /// About allocation per request.
    Allocation,
    /// About compared trials.
    Comparing,
    /// About results from many nodes.
    Merging,
    /// About the node that runs a plan's entry.
    Place,
}

/// A sentence about several processes, of which only one was weighed.
fn several(what: &str, pid: u32, others: &[u32]) -> String {
    let others = others.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    format!("several {what} run under the command; Loadline weighed {pid}, not {others}")
}

/// Ports in use: those in TIME_WAIT or, if these do not count, those used per second.
fn spent(phase: &str, ports: String, time_wait: Option<u64>, connects_per_s: f64) -> String {
    match time_wait {
        Some(waiting) => {
            let waiting = grouped(waiting);
            format!(
                "local ports are running out: after {phase}, {waiting} connections were in TIME_WAIT, out of \
                 {ports} ports"
            )
        }
        None => {
            let rate = per_second(connects_per_s);
            format!("local ports are running out: {phase} opened {rate} connections per second from {ports} ports")
        }
    }
}

/// Known use of the machine by other programs.
fn noisy(phase: &str, foreign_cores: Option<f64>, steal_share: f64, memory_stall_share: Option<f64>) -> String {
    // A share that prints as 0.0% is irrelevant.
    let percent = |share: f64, what: &str| (share >= 0.0005).then(|| format!("{what} {:.1}%", share * 100.0));
    let foreign = foreign_cores.map(|cores| format!("other programs used {cores:.2} cores"));
    let stolen = percent(steal_share, "the hypervisor took").map(|text| text + " of the CPU time");
    let stalled = memory_stall_share.and_then(|share| percent(share, "programs waited for memory"));
    let stalled = stalled.map(|text| text + " of the time");
    let found: Vec<String> = foreign.into_iter().chain(stolen).chain(stalled).collect();
    format!("noisy machine: during {phase}, {}", found.join(", and "))
}
