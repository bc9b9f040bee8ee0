//! Every reason to distrust a number, as one enum. Each says what was seen and what to do next.
//! Pure code computes the doubts. The archive stores them, and reports show them next to the number they touch.

/// The name of the only mark of an account.
pub const NOW: &str = "now";

/// Names a mark among several.
fn at(mark: &str) -> String {
    if mark == NOW { String::new() } else { format!(" at mark {mark}") }
}

/// Makes an enum of doubts: of each its values, what was seen, in one sentence, and one thing to do about it. Groups
/// with an enum of their own stand among the others in JSON, told apart by their kind.
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
            /// Returns what was seen, in one sentence.
            pub fn text(&self) -> String {
                match self {
                    $(Self::$kind $({ $($value),* })? => {
                        // A sentence need not have every value.
                        $($(let _ = $value;)*)?
                        $text
                    })*
                    $(Self::$group(doubt) => doubt.text(),)*
                }
            }

            /// Returns one thing to do about it.
            pub fn next(&self) -> &'static str {
                match self {
                    $(Self::$kind $({ $($value: _),* })? => $next,)*
                    $(Self::$group(doubt) => doubt.next(),)*
                }
            }

            /// Whether both doubt the same thing for the same reason, with whatever values.
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

doubts! {
    /// A reason to distrust a number of a trial.
    Doubt {
        /// Other programs used CPU, the hypervisor stole it, or memory was short, while the load ran.
        NoisyMachine {
            /// The phase disturbed.
            phase: String,
            /// CPU used by neither subject nor Loadline, in cores; `None` where it cannot be told from the server's.
            foreign_cores: Option<f64>,
            /// Share of all CPU time stolen by the hypervisor, 0–1.
            steal_share: f64,
            /// Share of the phase in which some program waited for memory, 0–1; `None` where that may be the subject
            /// under a limit of its own, and on a kernel that does not say.
            #[serde(default)]
            memory_stall_share: Option<f64>,
        } => noisy(phase, *foreign_cores, *steal_share, *memory_stall_share),
            "repeat it on a quiet machine, and more than once";
        /// The load generator used nearly all of its CPU: the rate may be its own limit.
        GeneratorSaturated {
            /// The phase affected.
            phase: String,
            /// CPU time of the generator over elapsed time, 0–1.
            cpu_share: f64,
            /// CPU time of the subject over elapsed time and its CPUs, 0–1, where known.
            subject_share: Option<f64>,
        } => {
            let subject = subject_share.map(|share| format!(", the subject {:.0} % of its own", share * 100.0));
            format!(
                "the load generator may be the limit: in {phase} it used {:.0} % of its CPU{}",
                cpu_share * 100.0,
                subject.unwrap_or_default()
            )
        },
            "give it its own CPU (`--load-cpus`) or more threads (`load --threads`), or read the rate as a \
                 lower bound";
        /// Subject and load generator share their CPUs.
        SharedCpus => "subject and load generator share their CPUs".to_owned(),
            "on a machine with two or more cores they are kept apart (`--cpus`, `--load-cpus`)";
        /// The JVM chose its collector by the few CPUs it was given, not by its own wish.
        CollectorByCpus {
            /// CPUs the subject may use.
            cpus: usize,
            /// CPUs of the machine.
            #[cfg_attr(test, schemars(range(min = 1)))]
            cores: u32,
            /// The collector in force.
            collector: String,
        } => format!("the JVM chose {collector} GC because it sees {cpus} of {cores} CPUs"),
            "choose your own (`-XX:+UseG1GC` in the command, or `--gc`), or give it more CPUs (`--cpus all` shares \
                 those of the load)";
        /// The CPU limit of the subject held it back in many periods.
        Throttled {
            /// The phase affected.
            phase: String,
            /// The share of its periods of 100 ms, 0–1.
            share: f64,
            /// The CPU limit, in thousandths of a CPU.
            cpu_limit_millicpus: u64,
        } => {
            let limit = Millicpus(*cpu_limit_millicpus);
            format!("in {phase} the limit of {limit} held the subject back in {:.0} % of the periods", share * 100.0)
        },
            "its times are those under that limit; to see the server's own, raise `--cpu-limit` or offer less";
        /// The warm-up ended before the subject was warm.
        NeverWarm {
            /// How long it took.
            seconds: f64,
            /// What still changed; nothing where the phase was too short to tell, or CPU time was not read.
            why: Vec<String>,
        } => {
            let why = match why.as_slice() {
                [] => "too few answers, or no CPU time, to tell".to_owned(),
                some => format!("in its last seconds {}", some.join(", ")),
            };
            format!("the subject was not warm after {seconds:.0} s of warm-up: {why}")
        },
            "read CPU times as those of a young JVM; `--warmup steady:5m` warms up for longer";
        /// Not one collection ran under the load, so what is resident of the heap depends on how long that lasted.
        NoCollection {
            /// How long the phases of work lasted.
            seconds: f64,
            /// Used heap after the load.
            heap_bytes: u64,
        } => {
            let heap = Bytes(*heap_bytes);
            format!("no collection ran in {seconds:.0} s of load: {heap} of heap held everything it allocated")
        },
            "to compare memory, give all sides one heap that the load fills (`--jvm=-Xmx64m`), or use a longer load";
        /// Options that were asked for and are not in force.
        FlagsIgnored {
            /// The options as typed, or the JVM's own line in backticks.
            flags: Vec<String>,
        } => format!("the JVM ignored {}", flags.join(" ")),
            "drop them or choose a JDK that knows them; two configurations may be equal";
        /// Options in force with another value than asked.
        FlagChanged {
            /// As typed.
            asked: String,
            /// As `VM.flags` shows it.
            in_force: String,
        } => format!("{asked} was requested, {in_force} is in force"),
            "compare the values in force, not those requested";
        /// Variables that were set for the subject and that the process which serves has not, or with other values.
        VariablesLost {
            /// As `NAME=VALUE`, as they were set.
            variables: Vec<String>,
        } => format!("the serving process lacks {}", variables.join(" ")),
            "its launcher sets its own environment: set them there";
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
        } => format!("{} of {} requests failed in {phase}: {kinds}", grouped(*failed), grouped(*requests)),
            "check the URL and `--expect-status`; a weighed server's output is in the archive";
        /// The server answered, and later refused connections.
        ServerGone {
            /// The phase affected.
            phase: String,
            /// Seconds of the phase after which most requests of a second failed.
            after_s: f64,
            /// Connections that were refused.
            refused: u64,
        } => format!(
            "the server answered, but {after_s:.0} s into {phase} it refused connections ({} in all): it died or was \
             restarted",
            grouped(*refused)
        ),
            "read its log; `loadline post-mortem` says whether the kernel killed it for lack of memory";
        /// A phase ended before its plan did.
        CutShort {
            /// The phase affected.
            phase: String,
            /// Why.
            why: String,
        } => format!("{phase} ended early: {why}"),
            "its figures cover less work than planned; do not compare them";
        /// The program that drove the load ended with a code by which it says that its own targets were missed.
        DriverThresholds {
            /// The phase affected.
            phase: String,
            /// Name of the tool.
            tool: String,
            /// Its exit code.
            code: i32,
        } => format!("{tool} ended with exit code {code} in {phase}: its own thresholds were crossed"),
            "the driver's log names them; the measurements do not depend on them";
        /// The program that drove the load printed no report of a known format.
        DriverNotRead {
            /// The phase affected.
            phase: String,
        } => format!("the output of the driver of {phase} was not read"),
            "its requests and times are unknown; let it print the report of wrk, ab, oha, k6, h2load or Hyperfoil";
        /// Operations that the subject counted as failed.
        OperationsFailed {
            /// The phase affected.
            phase: String,
            /// How many.
            failed: u64,
            /// The number of all operations.
            operations: u64,
        } => {
            let (failed, operations) = (grouped(*failed), grouped(*operations));
            format!("{failed} of {operations} operations of the subject failed in {phase}")
        },
            "look for the reason in the subject's log in the archive";
        /// The subject did not wait at its markers until it was weighed.
        MarkersNotAwaited {
            /// The marks affected.
            marks: Vec<String>,
            /// From a marker to the end of its weighing, at most, ms.
            late_ms: f64,
        } => {
            let marks = marks.join(", ");
            format!("the subject kept running while it was weighed at {marks}, up to {late_ms:.0} ms after its marker")
        },
            "print `wait=1` with the marker, and read a line from standard input before continuing";
        /// The JVM sized itself for more memory than its limit.
        LimitNotSeen {
            /// The limit in force.
            limit_bytes: u64,
            /// The largest heap the JVM chose by itself.
            heap_bytes_max: u64,
        } => {
            let (heap, limit) = (Bytes(*heap_bytes_max), Bytes(*limit_bytes));
            format!("the JVM does not see its limit: it may use a heap of {heap} under a limit of {limit}")
        },
            "see what stands out for the cause, or set `-Xmx`";
        /// Half of the answers took about 40 ms: Nagle's algorithm against delayed acknowledgements.
        Plateau40Ms {
            /// The phase affected.
            phase: String,
            /// Median service time.
            p50_ms: f64,
        } => format!("half of the answers in {phase} took about {p50_ms:.0} ms, the time of a delayed acknowledgement"),
            "set TCP_NODELAY; for the JDK's httpserver: `-Dsun.net.httpserver.nodelay=true`";
        /// The kernel gives huge pages to everyone: idle stacks and heaps weigh more.
        HugePagesAlways => "transparent huge pages are set to `always`".to_owned(),
            "compare with `madvise` in /sys/kernel/mm/transparent_hugepage/enabled";
        /// Part of the subject was swapped out, so RSS is less than what it holds.
        SwapInUse {
            /// Swapped out at the worst mark.
            swap_bytes: u64,
        } => format!("{} of the subject were swapped out, so RSS understates its memory", Bytes(*swap_bytes)),
            "turn swap off while weighing, or add it to RSS";
        /// The counters of the JVM could not be read; heap and GC figures are missing or coarser.
        CountersMissing {
            /// Why.
            why: String,
        } => format!("no JVM counters: {why}"),
            "leave `-XX:+UsePerfData` on (the default)";
        /// The JVM could not be asked; full GC, flags in force and NMT are missing.
        AttachMissing {
            /// Why.
            why: String,
        } => format!("the JVM could not be queried: {why}"),
            "leave attaching enabled, and run as the subject's user or as root";
        /// A figure of a mark could not be read.
        ReadFailed {
            /// The mark.
            mark: String,
            /// The figure, and why it could not be read.
            why: String,
        } => match at(mark) {
            of if of.is_empty() => why.clone(),
            of => format!("{}: {why}", of.trim_start()),
        },
            "if no other doubt says why, `loadline doctor` shows what can be read here";
        /// Part of what an account needs could not be read.
        AccountPartial {
            /// The first mark affected.
            mark: String,
            /// The missing source, and why it is missing.
            why: String,
        } => format!("the account{} lacks a source: {why}", at(mark)),
            "run Loadline as root or with CAP_SYS_PTRACE; if it already does, this kernel lacks the source";
        /// The script of `loadline capture` could not collect something.
        BundleLacks {
            /// The thing, and the reason.
            what: String,
        } => format!("the bundle lacks {what}"),
            "capture again where it is available, such as from a debug container; until then, rows may be missing";
        /// The heaps of malloc could not be split into live and retained, or not all.
        MallocUnsplit {
            /// The first mark affected.
            mark: String,
            /// How much is unsplit.
            unsplit_bytes: u64,
            /// Why.
            why: String,
        } => {
            let unsplit = Bytes(*unsplit_bytes);
            format!("{unsplit} of malloc are not split into live and retained{}: {why}", at(mark))
        },
            "with glibc, `jcmd PID System.trim_native_heap` (JDK 17.0.9 and newer) returns the retained memory";
        /// Options and variables were set that only another allocator heeds.
        AllocatorIgnores {
            /// Whose malloc it is.
            allocator: String,
            /// Names of variables and options.
            options: Vec<String>,
        } => format!("the allocator is {allocator}, which ignores these settings: {}", options.join(" ")),
            "use an image with glibc, or drop them";
        /// More of RSS than usual has no owner.
        Unexplained {
            /// The first mark affected.
            mark: String,
            /// Resident pages without an owner.
            unexplained_bytes: u64,
            /// The same as a share of RSS, 0–1.
            share: f64,
        } => format!("{} of RSS have no owner{} ({:.1} %)", Bytes(*unexplained_bytes), at(mark), share * 100.0),
            "`loadline account` lists it with `--by region`; NMT may know its owner";
        /// The process changed while its account was taken.
        AccountMoved {
            /// The first mark affected.
            mark: String,
            /// By how much what was read differs from the kernel's sums.
            moved_bytes: u64,
        } => format!("{} changed while the account{} was taken", Bytes(*moved_bytes), at(mark)),
            "repeat it on a quiet machine, where threads can be paused (an account: without `--no-stop`)";
        /// The Java heap is mapped several times, and RSS counts it as often (ZGC without generations).
        HeapMultiMapped {
            /// Java heap in RSS.
            rss_bytes: u64,
            /// Java heap in PSS, which counts it once.
            pss_bytes: u64,
        } => {
            let (rss, pss) = (Bytes(*rss_bytes), Bytes(*pss_bytes));
            format!("ZGC maps its heap several times: RSS counts {rss} for {pss} of memory")
        },
            "read the column PSS, which counts each page once";
        /// Part of the subject is in huge pages, each of which is resident as a whole.
        HugePagesInUse {
            /// How much.
            huge_bytes: u64,
        } => format!("{} are in transparent huge pages, which are resident as a whole", Bytes(*huge_bytes)),
            "compare with `madvise` or `never` in /sys/kernel/mm/transparent_hugepage/enabled";
        /// The heap, or another pool, was exhausted.
        OutOfMemoryError {
            /// As the JVM printed it.
            error: String,
            /// The pool that it names.
            #[serde(default)]
            pool: MemoryPool,
        } => format!("the subject printed `{error}`"),
            "raise the pool it names (`--heap` for the Java heap); no figure shows work that a dead thread left";
        /// Several JVMs run below the command; only one was weighed.
        SeveralJvms {
            /// The one weighed.
            pid: u32,
            /// The others.
            others: Vec<u32>,
        } => several("JVMs", *pid, others),
            "start the server itself as the command, or pick it by `--url`";
        /// Several processes run below the command of a subject that is no JVM; only one was weighed.
        SeveralProcesses {
            /// The one weighed.
            pid: u32,
            /// The others.
            others: Vec<u32>,
        } => several("processes", *pid, others),
            "weigh all of them (`processes: all`), or `exec` the server in the script";
        /// Several processes form the subject, and RSS counts the pages they share once for each.
        SharedCountedOften {
            /// How many.
            processes: u64,
            /// The sum of their RSS at the first mark.
            rss_bytes: u64,
            /// The sum of their PSS there.
            pss_bytes: u64,
        } => {
            let (rss, pss) = (Bytes(*rss_bytes), Bytes(*pss_bytes));
            format!("{processes} processes share pages: RSS counts {rss} for {pss} of memory")
        },
            "read PSS, which counts each page once; it is the weight of the subject";
        /// The subject has more processes than Loadline weighs, so every sum lacks the others.
        ProcessesLeftOut {
            /// Processes that were not weighed.
            left_out: u64,
            /// The most that are weighed.
            most: u64,
        } => format!("{left_out} processes of the subject were not weighed: the maximum is {most}"),
            "weigh the processes of one service, without `processes: all`";
        /// A process of the subject that an earlier mark has ended before the subject did.
        ProcessEnded {
            /// Its id.
            pid: u32,
            /// The program that it ran.
            name: String,
            /// When that was seen: a mark, or the end of a phase.
            at: String,
        } => format!("a process of the subject ended before the subject did: pid {pid} ({name}) was gone at {at}"),
            "look at the subject's log; marks before and after weigh different things";
        /// The folder of a trial could not be removed.
        WorkFolderLeft {
            /// The path of the folder.
            folder: String,
            /// Why.
            why: String,
        } => format!("the folder {folder} could not be removed: {why}"),
            "remove it by hand, or let the next start of Loadline try again";
        /// The subject's log could not be kept whole.
        LogIncomplete {
            /// Why.
            why: String,
        } => format!("the subject's log is incomplete: {why}"),
            "free space in the archive's folder";
        /// Fewer correct answers came than the plan offered.
        AchievedBelowOffered {
            /// The phase affected.
            phase: String,
            /// The rate that the plan asked for, per second.
            offered_per_s: f64,
            /// The rate of correct answers, per second.
            achieved_per_s: f64,
        } => {
            let percent = achieved_per_s / offered_per_s * 100.0;
            let [offered, achieved] = [offered_per_s, achieved_per_s].map(|rate| per_second(*rate));
            format!("offered {offered}/s in {phase}, achieved {achieved}/s ({percent:.1} %)")
        },
            "compare the lag (the generator) with the queue (`--connections`, `--connections-max`); if both are \
                 small, the server is the limit";
        /// The generator sent late although a connection was free.
        GeneratorLag {
            /// The phase affected.
            phase: String,
            /// 99th percentile of the delay.
            lag_ms_p99: f64,
        } => format!("the load generator was late in {phase}: 99th percentile {} ms", milliseconds(*lag_ms_p99)),
            "give it its own CPU (`--load-cpus`); response times include this delay, service times do not";
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
        } => {
            let time_wait = (!tw_reuse).then_some(*time_wait);
            spent(phase, grouped(*ports), time_wait, *connects_per_s)
        },
            "keep connections alive, or widen /proc/sys/net/ipv4/ip_local_port_range";
    }
    /// About what is allocated per request.
    Allocation,
    /// About trials that are compared.
    Comparing,
    /// About results of many nodes.
    Merging,
    /// About the node that does an entry of a plan.
    Place,
}

/// More runs than is weighed.
fn several(what: &str, pid: u32, others: &[u32]) -> String {
    let others = others.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    format!("several {what} run below the command; Loadline weighed {pid}, not {others}")
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
