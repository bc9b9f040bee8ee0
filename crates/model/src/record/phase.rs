//! The record of a phase: requests, responses, times, and costs.

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
    /// Load model: when requests start.
    pub model: Model,
    /// Seconds from the start of the command to the start of the phase.
    pub at_s: f64,
    /// Duration up to the last response.
    pub seconds: f64,
    /// Requests started: `ok` + `failed`.
    pub requests: u64,
    /// Number of correct responses.
    pub ok: u64,
    /// Failed requests, by kind.
    pub failed: Failures,
    /// The planned rate, in requests per second; `null` in a closed model.
    pub offered_per_s: Option<f64>,
    /// Correct responses per second of `seconds`, or of the time reported by a driver or the subject.
    pub achieved_per_s: f64,
    /// Time from the intended start to the last byte; `null` in a closed model.
    pub response_ms: Option<Quantiles>,
    /// Time from the actual start to the last byte; `null` without correct responses.
    pub service_ms: Option<Quantiles>,
    /// Statistics of the load generator; `null` in an idle phase and if another program drove the load.
    pub generator: Option<Generator>,
    /// External program that drove the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverRecord>,
    /// The subject in this phase.
    pub subject: SubjectWork,
    /// Why it ended early, if it did.
    pub cut_short: Option<String>,
    /// Whether the subject was warm at the end of this warm-up: compilers idle, CPU time and allocation per request
    /// stable, and little newly compiled code; `null` in other phases and if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<bool>,
    /// Statuses in `failed.status`, with counts; absent if there were none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wrong_statuses: BTreeMap<u16, u64>,
    /// First TLS error behind `failed.tls`, if any.
    #[serde(default)]
    pub tls_trouble: Option<String>,
    /// Protocol, such as `http/1.1`; `null` in an idle phase.
    #[serde(default)]
    pub backend: Option<String>,
    /// Connections of the load; `null` in an idle phase.
    #[serde(default)]
    pub connections: Option<ConnectionsRecord>,
    /// Requests that waited for a free connection; `null` in a closed model.
    #[serde(default)]
    pub queue: Option<QueueRecord>,
    /// Ages of the requests in `failed.unanswered` at the end of the drain; `null` if there were none.
    #[serde(default)]
    pub unanswered_ms: Option<Ages>,
    /// Requests in flight when the phase was cut short, not included in any other value; `null` in an idle phase.
    #[serde(default)]
    pub in_flight: Option<u64>,
    /// Requests that came due but never started. They count in `failed.unanswered` but not in `by_request`; `null`
    /// except in an open model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_begun: Option<u64>,
    /// Requests of a mix, in the order of the plan; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<RequestRecord>,
    /// Counters reported by the subject, if it generates its own work.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
}

/// The maximum allocation rate over these phases, in bytes per second.
pub fn allocated_per_s_max(phases: &[PhaseRecord]) -> Option<f64> {
    let lasting = phases.iter().filter(|phase| phase.seconds > 0.0);
    lasting.filter_map(|phase| Some(phase.subject.allocated_bytes? as f64 / phase.seconds)).reduce(f64::max)
}

impl PhaseRecord {
    /// Whether this is the warm-up, which is not measured.
    pub fn is_warmup(&self) -> bool {
        self.name == crate::scenario::WARMUP
    }

    /// Whether any work was done.
    pub fn works(&self) -> bool {
        self.model != Model::Idle
    }

    /// Whether requests followed a schedule, so that they have an intended start.
    pub fn is_open(&self) -> bool {
        self.model == Model::Open
    }

    /// Whether each request waited for the previous response.
    pub fn is_closed(&self) -> bool {
        self.model == Model::Closed
    }

    /// Whether the load engine sent requests.
    pub fn is_sent(&self) -> bool {
        self.works() && self.driver.is_none() && !self.is_own()
    }

    /// Whether the subject generated its own work.
    pub fn is_own(&self) -> bool {
        self.model == Model::Subject
    }

    /// Whether requests were counted: not if a driver's report is unreadable, or if the subject has no counters.
    pub fn is_counted(&self) -> bool {
        match &self.driver {
            Some(driver) => driver.reported.is_some(),
            None if self.is_own() => self.requests > 0,
            None => self.works(),
        }
    }

    /// The times that users experience: response times in an open model, service times in a closed one.
    pub fn usual_ms(&self) -> Option<Quantiles> {
        self.response_ms.or(self.service_ms)
    }

    /// Java heap bytes allocated per correct response, without allocation at rest; `None` if either was not counted.
    pub fn alloc_per_request(&self) -> Option<f64> {
        let bytes = self.subject.allocated_bytes?.saturating_sub(self.subject.allocated_idle_bytes.unwrap_or(0));
        (self.is_counted() && self.ok > 0).then(|| bytes as f64 / self.ok as f64)
    }

    /// The share of time in collections.
    pub fn gc_share(&self) -> Option<f64> {
        self.subject.gc_ms.filter(|_| self.seconds > 0.0).map(|gc_ms| gc_ms / 1e3 / self.seconds)
    }

    /// The share of periods in which the CPU limit throttled the subject.
    pub fn throttled_share(&self) -> Option<f64> {
        self.subject.throttling?.share()
    }

    /// Correct responses as a share of the offered rate; `None` in a closed model.
    pub fn share_of_offered(&self) -> Option<f64> {
        let offered_per_s = self.offered_per_s.filter(|offered| *offered > 0.0)?;
        Some(self.achieved_per_s / offered_per_s)
    }
}

/// Connections of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConnectionsRecord {
    /// Planned connections, including growth of the pool.
    pub asked: u64,
    /// Connections established, including reconnections.
    pub opened: u64,
    /// Peak number of open connections.
    pub open_max: u64,
}

/// Open-model requests that waited for a free connection.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueRecord {
    /// Number of requests that waited.
    pub requests: u64,
    /// Maximum queue length.
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

/// A request of a mix.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequestRecord {
    /// Method and path.
    pub request: String,
    /// Relative frequency of this request.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub weight: u32,
    /// Number of correct responses.
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
    /// The quantiles of a histogram in nanoseconds; `None` if it is empty.
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

/// An interval's times, in ns.
#[derive(Debug, Clone, Copy)]
pub struct IntervalTimes<'a> {
    /// From the actual start, for correct responses.
    pub service: &'a Histogram<u64>,
    /// From the intended start; `None` in a closed model.
    pub response: Option<&'a Histogram<u64>>,
    /// The interval's start, since the Unix epoch.
    pub start: Duration,
    /// The interval's length.
    pub length: Duration,
}

/// Statistics of the load generator itself.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Generator {
    /// CPU time of the generator's threads per request.
    pub cpu_us_per_request: f64,
    /// CPU time divided by elapsed time and threads.
    pub cpu_share: f64,
    /// 99th percentile of the lag, the delay between a request being due with a free connection and its actual start;
    /// `null` in a closed model.
    pub lag_ms_p99: Option<f64>,
    /// Median lag; `null` in a closed model.
    #[serde(default)]
    pub lag_ms_p50: Option<f64>,
    /// Maximum lag; `null` in a closed model.
    #[serde(default)]
    pub lag_ms_max: Option<f64>,
    /// Number of connections opened, including reconnections.
    pub connections_opened: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent; `null` in archives of older versions.
    #[serde(default)]
    pub sent_bytes: Option<u64>,
    /// Number of load generator threads; `null` in archives of older versions.
    #[serde(default)]
    pub threads: Option<u32>,
}

/// An external program that drove a phase. The counts of the phase come from its report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriverRecord {
    /// Command line for `sh -c`.
    pub command: String,
    /// Exit code; `null` if it was killed.
    pub exit_code: Option<i32>,
    /// CPU time of all its exited processes.
    pub cpu_s: Option<f64>,
    /// File with its output, in the trial's directory; `null` without an archive.
    pub log: Option<String>,
    /// Its report; `null` if unreadable, which leaves the counts of the phase at 0.
    pub reported: Option<Reported>,
}

/// The subject in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubjectWork {
    /// CPU time of all threads.
    pub cpu_s: Option<f64>,
    /// `cpu_s` by purpose of the threads; `null` if thread names did not reveal it, as with JVMs other than HotSpot,
    /// native images, and older archives.
    #[serde(default)]
    pub cpu_by_purpose: Option<CpuByPurpose>,
    /// Number of GCs, including pauses of concurrent collectors.
    pub gc_count: Option<u64>,
    /// Time spent in GC.
    pub gc_ms: Option<f64>,
    /// Highest RSS on the timeline.
    pub rss_bytes_max: Option<u64>,
    /// Bytes allocated in the Java heap by all threads; `null` if unreadable.
    #[serde(default)]
    pub allocated_bytes: Option<u64>,
    /// The source of `allocated_bytes`.
    #[serde(default)]
    pub allocated_by: Option<AllocatedBy>,
    /// Allocation at the idle rate over the same time, part of `allocated_bytes`; `null` if the trial has no rest.
    #[serde(default)]
    pub allocated_idle_bytes: Option<u64>,
    /// Throttling by its CPU limit; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
}

/// Throttling of the subject by a CPU limit, from `cpu.stat` of its cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Throttling {
    /// Number of 100 ms periods with runnable threads.
    pub periods: u64,
    /// Number of periods in which it exhausted its quota.
    pub throttled_periods: u64,
    /// Throttled time, summed over CPUs.
    pub throttled_s: f64,
}

impl From<Throttled> for Throttling {
    fn from(of: Throttled) -> Self {
        Self { periods: of.periods, throttled_periods: of.throttled, throttled_s: of.time.as_secs_f64() }
    }
}

impl Throttling {
    /// The share of throttled periods; `None` without periods.
    pub fn share(&self) -> Option<f64> {
        (self.periods > 0).then(|| self.throttled_periods as f64 / self.periods as f64)
    }
}

/// CPU seconds by purpose of HotSpot's threads (JDK 11 to 27), adding up to `cpu_s`. The purpose comes from thread
/// names (man `proc_pid_comm`), the time from `schedstat`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuByPurpose {
    /// Application and libraries: the rest of `cpu_s`.
    pub app_s: f64,
    /// The JIT compilers.
    pub jit_s: f64,
    /// Garbage collector; for Serial, the `VM Thread`.
    pub gc_s: f64,
    /// The other threads of the JVM: safepoints, timers, references, finalizers, signals.
    pub vm_s: f64,
}

impl CpuByPurpose {
    /// CPU time without the JIT's, which ends when the program is compiled, in seconds.
    pub fn without_jit_s(&self) -> f64 {
        self.app_s + self.gc_s + self.vm_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_is_a_share_of_busy_periods() {
        let counted = Throttled { periods: 10, throttled: 5, time: Duration::from_millis(1500) };
        let of = Throttling::from(counted);
        assert_eq!((of.share(), of.throttled_s), (Some(0.5), 1.5));
        assert_eq!(Throttling::from(Throttled::default()).share(), None);
    }
}
