//! Record of one phase: how much was asked, what was answered, how long it took, what it cost.

pub use crate::doubt::AllocatedBy;
pub use crate::load::Failures;
pub use crate::load::external::{Reported, Times, Timing, Tool};

use crate::scenario::Model;
use hdrhistogram::Histogram;
use loadline_jvm::kernel::cpu_cgroup::Throttled;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// One phase of a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PhaseRecord {
    /// As the scenario names it.
    pub name: String,
    /// The load model: what starts a request, and when.
    pub model: Model,
    /// Seconds from the command's start to the phase's.
    pub at_s: f64,
    /// How long it took, to the last answer.
    pub seconds: f64,
    /// Started; `ok` + `failed`.
    pub requests: u64,
    /// Answered correctly.
    pub ok: u64,
    /// The others, by kind.
    pub failed: Failures,
    /// The rate that the plan asked, requests per second; `null` in a closed model.
    pub offered_per_s: Option<f64>,
    /// Correct answers over `seconds`; what a driver or the subject told, over the time that it told.
    pub achieved_per_s: f64,
    /// From the intended start to the last byte; `null` in a closed model, where there is none.
    pub response_ms: Option<Quantiles>,
    /// From the actual start to the last byte; `null` where nothing was answered correctly.
    pub service_ms: Option<Quantiles>,
    /// The load generator's view of itself; `null` in an idle phase and where another program drove.
    pub generator: Option<Generator>,
    /// The program that drove the load instead of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverRecord>,
    /// The subject in this phase.
    pub subject: SubjectWork,
    /// Why it ended early, if it did.
    pub cut_short: Option<String>,
    /// Whether the subject was warm at the end of this warm-up: its compilers rested, and CPU time, allocated bytes and
    /// compiled code of a request stayed what they were. `null` in other phases, and where that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<bool>,
    /// The statuses behind `failed.status`, with how often each came; absent where there were none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wrong_statuses: BTreeMap<u16, u64>,
    /// The first TLS message about a failure behind `failed.tls`, if there was one.
    #[serde(default)]
    pub tls_trouble: Option<String>,
    /// The protocol spoken to the server, such as `http/1.1`; `null` in an idle phase.
    #[serde(default)]
    pub backend: Option<String>,
    /// The connections of the load; `null` in an idle phase.
    #[serde(default)]
    pub connections: Option<ConnectionsRecord>,
    /// Requests that waited for a free connection; `null` in a closed model, where none waits.
    #[serde(default)]
    pub queue: Option<QueueRecord>,
    /// How old the requests behind `failed.unanswered` were at the end of the drain; `null` where there were none.
    #[serde(default)]
    pub unanswered_ms: Option<Ages>,
    /// Requests under way when it was stopped or given up, which are in no other figure; `null` in an idle phase.
    #[serde(default)]
    pub in_flight: Option<u64>,
    /// Requests that came due and never began, which are in `failed.unanswered` and in none of `by_request`; `null` but
    /// in an open model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_begun: Option<u64>,
    /// Each request of a mix, in the order of the plan; empty where there is one only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<RequestRecord>,
    /// Counts that the subject kept in it, if it works by itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
}

impl PhaseRecord {
    /// Whether this is the warm-up, which is not measured.
    pub fn is_warmup(&self) -> bool {
        self.name == crate::scenario::WARMUP
    }

    /// Whether anything was done in it.
    pub fn works(&self) -> bool {
        self.model != Model::Idle
    }

    /// Whether requests followed a schedule, so that they have an intended start.
    pub fn is_open(&self) -> bool {
        self.model == Model::Open
    }

    /// Whether each request followed the answer to the one before.
    pub fn is_closed(&self) -> bool {
        self.model == Model::Closed
    }

    /// Whether the load engine sent something in it.
    pub fn is_sent(&self) -> bool {
        self.works() && self.driver.is_none() && !self.is_own()
    }

    /// Whether the subject worked by itself in it.
    pub fn is_own(&self) -> bool {
        self.model == Model::Subject
    }

    /// Whether 0 requests would mean that there were none: a driver that was not read, or a subject that told no
    /// counters, counted nothing.
    pub fn is_counted(&self) -> bool {
        match &self.driver {
            Some(driver) => driver.reported.is_some(),
            None if self.is_own() => self.requests > 0,
            None => self.works(),
        }
    }

    /// The times that a user waits: response times in an open model, service times in a closed one.
    pub fn usual_ms(&self) -> Option<Quantiles> {
        self.response_ms.or(self.service_ms)
    }

    /// Bytes allocated in the Java heap per correct answer, without what the subject allocates at rest; `None` where
    /// either was not counted.
    pub fn alloc_per_request(&self) -> Option<f64> {
        let bytes = self.subject.allocated_bytes?.saturating_sub(self.subject.allocated_idle_bytes.unwrap_or(0));
        (self.is_counted() && self.ok > 0).then(|| bytes as f64 / self.ok as f64)
    }

    /// The share of its time that went into collections.
    pub fn gc_share(&self) -> Option<f64> {
        self.subject.gc_ms.filter(|_| self.seconds > 0.0).map(|gc_ms| gc_ms / 1e3 / self.seconds)
    }

    /// The share of periods in which its CPU limit held it back.
    pub fn throttled_share(&self) -> Option<f64> {
        self.subject.throttling?.share()
    }

    /// Correct answers as a share of what was offered; `None` in a closed model.
    pub fn share_of_offered(&self) -> Option<f64> {
        let offered_per_s = self.offered_per_s.filter(|offered| *offered > 0.0)?;
        Some(self.achieved_per_s / offered_per_s)
    }
}

/// Connections of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConnectionsRecord {
    /// Connections that the plan has, those a growing pool came to included.
    pub asked: u64,
    /// Established, over and over where requests close them.
    pub opened: u64,
    /// The most that were established at once.
    pub open_max: u64,
}

/// Requests of an open model that waited for a free connection.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueRecord {
    /// Requests that waited, however shortly.
    pub requests: u64,
    /// The most that waited at once.
    pub length_max: u64,
}

/// Ages in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ages {
    /// The youngest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// The oldest.
    pub max: f64,
}

/// One request of a mix.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequestRecord {
    /// Method and path.
    pub request: String,
    /// How often it is drawn, relative to the others.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub weight: u32,
    /// Answered correctly.
    pub ok: u64,
    /// Failed.
    pub failed: u64,
}

/// Quantiles in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// Longest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// 75 %; `null` in archives of older versions.
    #[serde(default)]
    pub p75: Option<f64>,
    /// 99.99 %; `null` in archives of older versions.
    #[serde(default)]
    pub p9999: Option<f64>,
}

impl Quantiles {
    /// Returns the quantiles of a histogram in nanoseconds; `None` where it is empty.
    pub fn of(histogram: &Histogram<u64>) -> Option<Self> {
        if histogram.is_empty() {
            return None;
        }
        let ms = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e6;
        Some(Self {
            p50: ms(0.5),
            p90: ms(0.9),
            p99: ms(0.99),
            p999: ms(0.999),
            max: histogram.max() as f64 / 1e6,
            mean: histogram.mean() / 1e6,
            p75: Some(ms(0.75)),
            p9999: Some(ms(0.9999)),
        })
    }
}

/// The times of an interval, in ns.
#[derive(Debug, Clone, Copy)]
pub struct IntervalTimes<'a> {
    /// From the actual start of each correct answer.
    pub service: &'a Histogram<u64>,
    /// From the intended start; `None` in a closed model.
    pub response: Option<&'a Histogram<u64>>,
    /// The beginning of the interval, since the Unix epoch.
    pub start: Duration,
    /// The length of the interval.
    pub length: Duration,
}

/// The load generator's view of itself.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Generator {
    /// CPU time of the generator's threads per request.
    pub cpu_us_per_request: f64,
    /// CPU time over elapsed time and threads.
    pub cpu_share: f64,
    /// From the moment at which a request was due and a connection free for it, to its actual start: 99th percentile;
    /// `null` in a closed model.
    pub lag_ms_p99: Option<f64>,
    /// The median of the same; `null` in a closed model.
    #[serde(default)]
    pub lag_ms_p50: Option<f64>,
    /// The longest of the same; `null` in a closed model.
    #[serde(default)]
    pub lag_ms_max: Option<f64>,
    /// Connections opened, reconnections included.
    pub connections_opened: u64,
    /// Received.
    pub received_bytes: u64,
    /// Sent; `null` in archives of older versions.
    #[serde(default)]
    pub sent_bytes: Option<u64>,
    /// Threads that drove; `null` in archives of older versions.
    #[serde(default)]
    pub threads: Option<u32>,
}

/// An outside program that drove a phase. The counts of the phase are those it told.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriverRecord {
    /// The line `sh -c` was given.
    pub command: String,
    /// `None` where it did not end by itself.
    pub exit_code: Option<i32>,
    /// CPU time it used, all processes that ended.
    pub cpu_s: Option<f64>,
    /// The file in the trial's folder with all it printed; `null` without an archive.
    pub log: Option<String>,
    /// Its report; `None` where it could not be read, and then the counts of the phase are 0 for want of any.
    pub reported: Option<Reported>,
}

/// The subject in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubjectWork {
    /// CPU time used, all threads.
    pub cpu_s: Option<f64>,
    /// `cpu_s` by what the threads are for; `null` where the kernel's names of them did not tell: a JVM that is not
    /// HotSpot, a native image, an archive of an older version.
    #[serde(default)]
    pub cpu_by_purpose: Option<CpuByPurpose>,
    /// Collections, pauses of concurrent collectors included.
    pub gc_count: Option<u64>,
    /// Time in them.
    pub gc_ms: Option<f64>,
    /// Highest RSS on the timeline.
    pub rss_bytes_max: Option<u64>,
    /// Allocated in the Java heap, by all threads; `null` where it could not be read.
    #[serde(default)]
    pub allocated_bytes: Option<u64>,
    /// The source of `allocated_bytes`.
    #[serde(default)]
    pub allocated_by: Option<AllocatedBy>,
    /// Part of `allocated_bytes` that it allocates at rest in as much time; `null` where the trial has no rest.
    #[serde(default)]
    pub allocated_idle_bytes: Option<u64>,
    /// How its CPU limit held it back; absent where it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
}

/// How a CPU limit held the subject back, by the `cpu.stat` of its cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Throttling {
    /// Periods of 100 ms in which it had something to run.
    pub periods: u64,
    /// Those in which it used up its quota before it was done.
    pub throttled_periods: u64,
    /// For how many s it was held back, added up over CPUs.
    pub throttled_s: f64,
}

impl From<Throttled> for Throttling {
    fn from(of: Throttled) -> Self {
        Self { periods: of.periods, throttled_periods: of.throttled, throttled_s: of.time.as_secs_f64() }
    }
}

impl Throttling {
    /// The share of its periods in which it was held back; `None` where it ran in none.
    pub fn share(&self) -> Option<f64> {
        (self.periods > 0).then(|| self.throttled_periods as f64 / self.periods as f64)
    }
}

/// CPU time by what the threads of HotSpot (JDK 11 to 27) are for, in seconds; the four add up to `cpu_s`. The kernel's
/// names of the threads tell the purpose (man `proc_pid_comm`), and their `schedstat` the time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuByPurpose {
    /// The program and its libraries: what is left of `cpu_s`.
    pub app_s: f64,
    /// The JIT compilers.
    pub jit_s: f64,
    /// The collector; with Serial the `VM Thread`, which collects.
    pub gc_s: f64,
    /// The other threads of the JVM: safepoints, timers, references, finalizers, signals.
    pub vm_s: f64,
}

impl CpuByPurpose {
    /// The CPU time that does not end once the program is compiled, in seconds: all but the JIT's.
    pub fn without_jit_s(&self) -> f64 {
        self.app_s + self.gc_s + self.vm_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_back_in_a_share_of_the_periods_in_which_there_was_work() {
        let counted = Throttled { periods: 10, throttled: 5, time: Duration::from_millis(1500) };
        let of = Throttling::from(counted);
        assert_eq!((of.share(), of.throttled_s), (Some(0.5), 1.5));
        assert_eq!(Throttling::from(Throttled::default()).share(), None);
    }
}
