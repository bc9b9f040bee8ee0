//! Record of one phase: its requests, answers, times and costs.

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
    /// Its name in the scenario.
    pub name: String,
    /// The load model: what starts a request, and when.
    pub model: Model,
    /// Seconds from the start of the command to the start of the phase.
    pub at_s: f64,
    /// Duration in seconds, up to the last answer.
    pub seconds: f64,
    /// Requests started: `ok` + `failed`.
    pub requests: u64,
    /// Requests answered correctly.
    pub ok: u64,
    /// Failed requests, by kind.
    pub failed: Failures,
    /// The planned rate, in requests per second; `null` in a closed model.
    pub offered_per_s: Option<f64>,
    /// Correct answers per second of `seconds`, or of the time that a driver or the subject reported.
    pub achieved_per_s: f64,
    /// Time from the intended start to the last byte; `null` in a closed model, which has no intended start.
    pub response_ms: Option<Quantiles>,
    /// Time from the actual start to the last byte; `null` if no request was answered correctly.
    pub service_ms: Option<Quantiles>,
    /// The load generator's view of itself; `null` in an idle phase and if another program drove the load.
    pub generator: Option<Generator>,
    /// The program that drove the load instead of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverRecord>,
    /// The subject in this phase.
    pub subject: SubjectWork,
    /// Why it ended early, if it did.
    pub cut_short: Option<String>,
    /// Whether the subject was warm at the end of this warm-up: its compilers were idle, and CPU time, allocated bytes
    /// and compiled code per request were stable. `null` in other phases and if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<bool>,
    /// The statuses behind `failed.status`, with the number of each; absent if there were none.
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
    /// Ages of the requests behind `failed.unanswered` at the end of the drain; `null` if there were none.
    #[serde(default)]
    pub unanswered_ms: Option<Ages>,
    /// Requests in flight when it was stopped or given up, not included in any other figure; `null` in an idle phase.
    #[serde(default)]
    pub in_flight: Option<u64>,
    /// Requests that came due but never began. They are in `failed.unanswered` and not in `by_request`; `null` except
    /// in an open model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_begun: Option<u64>,
    /// Each request of a mix, in the order of the plan; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<RequestRecord>,
    /// Counters that the subject reported for it, if the subject works by itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
}

/// The most that the program allocated in a second of a phase, in bytes.
pub fn allocated_per_s_max(phases: &[PhaseRecord]) -> Option<f64> {
    let lasting = phases.iter().filter(|phase| phase.seconds > 0.0);
    lasting.filter_map(|phase| Some(phase.subject.allocated_bytes? as f64 / phase.seconds)).reduce(f64::max)
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

    /// Whether each request followed the answer to the previous one.
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

    /// Whether 0 requests would mean that there were none. A driver that was not read, or a subject that reported no
    /// counters, counted nothing.
    pub fn is_counted(&self) -> bool {
        match &self.driver {
            Some(driver) => driver.reported.is_some(),
            None if self.is_own() => self.requests > 0,
            None => self.works(),
        }
    }

    /// The times that a user experiences: response times in an open model, service times in a closed one.
    pub fn usual_ms(&self) -> Option<Quantiles> {
        self.response_ms.or(self.service_ms)
    }

    /// Bytes allocated in the Java heap per correct answer, without what the subject allocates at rest; `None` if
    /// either was not counted.
    pub fn alloc_per_request(&self) -> Option<f64> {
        let bytes = self.subject.allocated_bytes?.saturating_sub(self.subject.allocated_idle_bytes.unwrap_or(0));
        (self.is_counted() && self.ok > 0).then(|| bytes as f64 / self.ok as f64)
    }

    /// The share of its time spent in collections.
    pub fn gc_share(&self) -> Option<f64> {
        self.subject.gc_ms.filter(|_| self.seconds > 0.0).map(|gc_ms| gc_ms / 1e3 / self.seconds)
    }

    /// The share of periods in which its CPU limit throttled it.
    pub fn throttled_share(&self) -> Option<f64> {
        self.subject.throttling?.share()
    }

    /// Correct answers as a share of the offered rate; `None` in a closed model.
    pub fn share_of_offered(&self) -> Option<f64> {
        let offered_per_s = self.offered_per_s.filter(|offered| *offered > 0.0)?;
        Some(self.achieved_per_s / offered_per_s)
    }
}

/// Connections of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConnectionsRecord {
    /// Connections in the plan, including those that a growing pool reached.
    pub asked: u64,
    /// Connections established, including reconnections if requests close them.
    pub opened: u64,
    /// The most that were established at once.
    pub open_max: u64,
}

/// Requests of an open model that waited for a free connection.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueRecord {
    /// Requests that waited, however briefly.
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
    /// Requests answered correctly.
    pub ok: u64,
    /// Failed requests.
    pub failed: u64,
}

/// Percentiles in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Longest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// 75th percentile; `null` in archives of older versions.
    #[serde(default)]
    pub p75: Option<f64>,
    /// 99.99th percentile; `null` in archives of older versions.
    #[serde(default)]
    pub p9999: Option<f64>,
}

impl Quantiles {
    /// Returns the quantiles of a histogram in nanoseconds; `None` if it is empty.
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
    /// CPU time divided by elapsed time and threads.
    pub cpu_share: f64,
    /// Lag: the delay of the actual start after the request was due and a connection was free, 99th percentile; `null`
    /// in a closed model.
    pub lag_ms_p99: Option<f64>,
    /// Median lag; `null` in a closed model.
    #[serde(default)]
    pub lag_ms_p50: Option<f64>,
    /// Longest lag; `null` in a closed model.
    #[serde(default)]
    pub lag_ms_max: Option<f64>,
    /// Connections opened, including reconnections.
    pub connections_opened: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent; `null` in archives of older versions.
    #[serde(default)]
    pub sent_bytes: Option<u64>,
    /// Threads that drove the load; `null` in archives of older versions.
    #[serde(default)]
    pub threads: Option<u32>,
}

/// An external program that drove a phase. The counts of the phase are those that it reported.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriverRecord {
    /// The command line given to `sh -c`.
    pub command: String,
    /// Exit code; `None` if it did not end by itself.
    pub exit_code: Option<i32>,
    /// CPU time of all its processes that ended.
    pub cpu_s: Option<f64>,
    /// The file in the trial's folder with all its output; `null` without an archive.
    pub log: Option<String>,
    /// Its report; `None` if it could not be read. The counts of the phase are then 0.
    pub reported: Option<Reported>,
}

/// The subject in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubjectWork {
    /// CPU time of all threads.
    pub cpu_s: Option<f64>,
    /// `cpu_s` by purpose of the threads. `null` if the kernel's thread names did not reveal it: a JVM that is not
    /// HotSpot, a native image, an archive of an older version.
    #[serde(default)]
    pub cpu_by_purpose: Option<CpuByPurpose>,
    /// Collections, including pauses of concurrent collectors.
    pub gc_count: Option<u64>,
    /// Time in collections.
    pub gc_ms: Option<f64>,
    /// Highest RSS on the timeline.
    pub rss_bytes_max: Option<u64>,
    /// Bytes allocated in the Java heap by all threads; `null` if they could not be read.
    #[serde(default)]
    pub allocated_bytes: Option<u64>,
    /// The source of `allocated_bytes`.
    #[serde(default)]
    pub allocated_by: Option<AllocatedBy>,
    /// Part of `allocated_bytes` that it allocates at rest in the same time; `null` if the trial has no rest.
    #[serde(default)]
    pub allocated_idle_bytes: Option<u64>,
    /// Throttling by its CPU limit; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
}

/// Throttling of the subject by a CPU limit, from the `cpu.stat` of its cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Throttling {
    /// Periods of 100 ms in which it had something to run.
    pub periods: u64,
    /// Periods in which it used up its quota before it was done.
    pub throttled_periods: u64,
    /// Seconds for which it was throttled, summed over CPUs.
    pub throttled_s: f64,
}

impl From<Throttled> for Throttling {
    fn from(of: Throttled) -> Self {
        Self { periods: of.periods, throttled_periods: of.throttled, throttled_s: of.time.as_secs_f64() }
    }
}

impl Throttling {
    /// The share of its periods in which it was throttled; `None` if it ran in none.
    pub fn share(&self) -> Option<f64> {
        (self.periods > 0).then(|| self.throttled_periods as f64 / self.periods as f64)
    }
}

/// CPU time by purpose of the HotSpot threads (JDK 11 to 27), in seconds; the four values add up to `cpu_s`. The
/// kernel's thread names tell the purpose (man `proc_pid_comm`), and the threads' `schedstat` the time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuByPurpose {
    /// The program and its libraries: the rest of `cpu_s`.
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
