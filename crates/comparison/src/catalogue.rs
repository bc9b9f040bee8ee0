//! The table of all metrics: name, unit, direction, source, and requirements. A name is a family and, after a dot, the
//! mark or phase: `rss.loaded`, `p99.steady`. Each owner of an account is also a family, `malloc.retained.loaded`. The
//! scenario names the figures that it derives from marks; they have no mark or phase.

use super::figures::{better_of, unit_of};
use super::owners::{held, in_use};
use crate::record::{Better, CpuByPurpose, Mark, MetricRecord, PhaseRecord, Quantiles, Trial, Unit};
use crate::scenario::Derived;

#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    /// The part of a metric's name before the mark or phase.
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) better: Better,
    pub(super) place: ReadAt,
    /// The condition for measuring the family; empty if there is none.
    pub(super) needs: &'static str,
}

impl Family {
    /// The full name of its metric at a mark or in a phase; `place` is empty for a metric that is read once per trial.
    pub(super) fn at(&self, place: &str) -> String {
        if place.is_empty() { self.name.to_owned() } else { format!("{}.{place}", self.name) }
    }

    /// The marks or phases at which it is read; a single empty name if it is read once per trial.
    pub(super) fn places<'a>(&self, marks: &'a [&'a str], phases: &'a [&'a str]) -> &'a [&'a str] {
        match self.place {
            ReadAt::InTrial(_) => &[""],
            ReadAt::AtMark(_) => marks,
            ReadAt::InPhase(_) => phases,
        }
    }

    pub(super) fn read(&self, trial: &Trial, place: &str) -> Option<f64> {
        match self.place {
            ReadAt::InTrial(read) => read(trial),
            ReadAt::AtMark(read) => trial.mark(place).and_then(read),
            ReadAt::InPhase(read) => {
                trial.phases.iter().find(|phase| phase.works() && phase.name == place).and_then(read)
            }
        }
    }

    pub(super) fn is_near(&self, word: &str) -> bool {
        strsim::damerau_levenshtein(self.name, word) <= self.name.len() / 3
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ReadAt {
    /// Once per trial.
    InTrial(fn(&Trial) -> Option<f64>),
    AtMark(fn(&Mark) -> Option<f64>),
    /// In each phase in which requests were sent.
    InPhase(fn(&PhaseRecord) -> Option<f64>),
}

use Better::{Higher, Lower};
use ReadAt::{AtMark, InPhase, InTrial};
use Unit::{Bytes, BytesPerRequest, BytesPerSecond, Count, Milliseconds, PerSecond, Seconds, Share};

const COUNTERS: &str = "the JVM's counters (`-XX:+UsePerfData`, the default)";
const DIRECT: &str = "the JDK's direct memory counters (HotSpot 17 or newer, with `ptrace` permission)";
const ALLOCATION: &str = "the JVM's allocation counters (HotSpot 17 or newer, with `ptrace` permission), or `jcmd`";
const REQUESTS: &str = "requests that Loadline sent, a driver report that it can parse, or the program's own counters";
const PURPOSES: &str = "HotSpot, whose thread names identify their work, and a count of requests";
const RETAINED: &str = "an account that shows what malloc retains (glibc)";
const CHARGE: &str = "a limit (`--limit`), or `processes: cgroup`";
const OPEN: &str = "an open model, where response time and service time differ";

/// CPU time that continues after compilation: everything except the JIT's, that is, the sum of the application's and
/// the collector's.
pub const CPU_WITHOUT_JIT: &str = "cpu_without_jit_per_1000";
/// CPU time of the JIT, which ends once the program is compiled.
pub const CPU_OF_JIT: &str = "cpu_jit_per_1000";

/// All families except the owners of the account, in display order.
pub(super) const FAMILIES: &[Family] = &[
    family("rss", Bytes, Lower, AtMark(|m| Some(m.rss_bytes as f64)), ""),
    family("pss", Bytes, Lower, AtMark(|m| number(m.pss_bytes)), "`smaps_rollup`"),
    family("anon", Bytes, Lower, AtMark(|m| number(m.anon_bytes)), ""),
    family("file", Bytes, Lower, AtMark(|m| number(m.file_bytes)), ""),
    family("rss_in_use", Bytes, Lower, AtMark(in_use), RETAINED),
    family("charge", Bytes, Lower, AtMark(|m| number(m.charge_bytes)), CHARGE),
    family("unreclaimable", Bytes, Lower, AtMark(|m| number(m.charge.as_ref()?.kept_bytes())), CHARGE),
    family("heap_used", Bytes, Lower, AtMark(|m| number(m.heap.used_bytes)), COUNTERS),
    family("heap_committed", Bytes, Lower, AtMark(|m| number(m.heap.committed_bytes)), COUNTERS),
    family("heap_live", Bytes, Lower, AtMark(|m| number(m.heap.live_bytes)), "a mark after a full GC"),
    family("direct", Bytes, Lower, AtMark(|m| number(m.direct.map(|direct| direct.bytes()))), DIRECT),
    family("nmt_committed", Bytes, Lower, AtMark(nmt_committed), "`--nmt summary`"),
    family("processes", Count, Lower, AtMark(processes), "`processes: all`, or `cgroup`"),
    family("threads", Count, Lower, AtMark(|m| number(m.threads)), ""),
    family("rss_peak", Bytes, Lower, InTrial(|t| number(t.rss_bytes_peak)), ""),
    family("rate", PerSecond, Higher, InPhase(rate), REQUESTS),
    family("p50", Milliseconds, Lower, InPhase(|p| usual(p, |q| q.p50)), REQUESTS),
    family("p90", Milliseconds, Lower, InPhase(|p| usual(p, |q| q.p90)), REQUESTS),
    family("p99", Milliseconds, Lower, InPhase(|p| usual(p, |q| q.p99)), REQUESTS),
    family("p999", Milliseconds, Lower, InPhase(|p| usual(p, |q| q.p999)), REQUESTS),
    family("max", Milliseconds, Lower, InPhase(|p| usual(p, |q| q.max)), REQUESTS),
    family("mean", Milliseconds, Lower, InPhase(|p| usual(p, |q| q.mean)), REQUESTS),
    family("response.p50", Milliseconds, Lower, InPhase(|p| response(p, |q| q.p50)), OPEN),
    family("response.p90", Milliseconds, Lower, InPhase(|p| response(p, |q| q.p90)), OPEN),
    family("response.p99", Milliseconds, Lower, InPhase(|p| response(p, |q| q.p99)), OPEN),
    family("response.p999", Milliseconds, Lower, InPhase(|p| response(p, |q| q.p999)), OPEN),
    family("response.max", Milliseconds, Lower, InPhase(|p| response(p, |q| q.max)), OPEN),
    family("response.mean", Milliseconds, Lower, InPhase(|p| response(p, |q| q.mean)), OPEN),
    family("service.p50", Milliseconds, Lower, InPhase(|p| service(p, |q| q.p50)), OPEN),
    family("service.p90", Milliseconds, Lower, InPhase(|p| service(p, |q| q.p90)), OPEN),
    family("service.p99", Milliseconds, Lower, InPhase(|p| service(p, |q| q.p99)), OPEN),
    family("service.p999", Milliseconds, Lower, InPhase(|p| service(p, |q| q.p999)), OPEN),
    family("service.max", Milliseconds, Lower, InPhase(|p| service(p, |q| q.max)), OPEN),
    family("service.mean", Milliseconds, Lower, InPhase(|p| service(p, |q| q.mean)), OPEN),
    family("failed", Share, Lower, InPhase(failed), REQUESTS),
    family("cpu_per_1000", Seconds, Lower, InPhase(cpu_per_1000), REQUESTS),
    family(CPU_WITHOUT_JIT, Seconds, Lower, InPhase(|p| of_1000(p, CpuByPurpose::without_jit_s)), PURPOSES),
    family("cpu_app_per_1000", Seconds, Lower, InPhase(|p| of_1000(p, |of| of.app_s + of.vm_s)), PURPOSES),
    family(CPU_OF_JIT, Seconds, Lower, InPhase(|p| of_1000(p, |of| of.jit_s)), PURPOSES),
    family("cpu_gc_per_1000", Seconds, Lower, InPhase(|p| of_1000(p, |of| of.gc_s)), PURPOSES),
    family("alloc_per_request", BytesPerRequest, Lower, InPhase(PhaseRecord::alloc_per_request), ALLOCATION),
    family("alloc_rate", BytesPerSecond, Lower, InPhase(alloc_rate), ALLOCATION),
    family("gc_ms", Milliseconds, Lower, InPhase(|p| p.subject.gc_ms), COUNTERS),
    family("gc_count", Count, Lower, InPhase(|p| number(p.subject.gc_count)), COUNTERS),
    family("gc_share", Share, Lower, InPhase(PhaseRecord::gc_share), COUNTERS),
    family("throttled", Share, Lower, InPhase(PhaseRecord::throttled_share), "a CPU limit (`--cpu-limit`)"),
    family("rss_max", Bytes, Lower, InPhase(|p| number(p.subject.rss_bytes_max)), ""),
    family("start_up", Seconds, Lower, InTrial(|t| t.ready_s), ""),
];

/// Every metric that trials with these marks and phases can have, without values. Includes only owners that are certain
/// to be in the accounts. `phases` are those in which requests are sent, `figures` those that the scenario derives.
pub fn possible(marks: &[&str], phases: &[&str], figures: &[Derived]) -> Vec<MetricRecord> {
    let of_family = |family: &'static Family| {
        family
            .places(marks, phases)
            .iter()
            .map(move |place| without_values(family.at(place), family.unit, family.better, ""))
    };
    let of_figure = |figure: &Derived| {
        let unit = unit_of(&figure.way);
        without_values(figure.name.clone(), unit, better_of(unit), "")
    };
    FAMILIES.iter().flat_map(of_family).chain(figures.iter().map(of_figure)).collect()
}

/// A metric of a configuration, without measured values.
pub(super) fn without_values(metric: String, unit: Unit, better: Better, configuration: &str) -> MetricRecord {
    let (configuration, values) = (configuration.to_owned(), Vec::new());
    MetricRecord { metric, unit, better, configuration, values, median: 0.0, low: None, high: None }
}

pub(super) fn family_named(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}

/// Returns the value at a mark, from a family of marks or an owner of the account.
pub(super) fn at_mark(of: &str, mark: &Mark) -> Option<f64> {
    match family_named(of).map(|family| family.place) {
        Some(ReadAt::AtMark(read)) => read(mark),
        Some(_) => None,
        None => held(mark.account.as_ref()?, of),
    }
}

/// Splits a metric into its family and its mark or phase, which is empty for a family read once per trial. A name
/// outside the table is an owner of the account.
pub fn split(metric: &str) -> (&str, &str) {
    let within = |family: &Family| metric.strip_prefix(family.name)?.strip_prefix('.');
    // Family names are not phase names, so no shorter family can claim `response.p99.steady`.
    let known = FAMILIES.iter().find_map(|family| within(family).map(|place| (family.name, place)));
    match known {
        Some(known) => known,
        None if family_named(metric).is_some() => (metric, ""),
        None => metric.rsplit_once('.').unwrap_or((metric, "")),
    }
}

const fn family(name: &'static str, unit: Unit, better: Better, place: ReadAt, needs: &'static str) -> Family {
    Family { name, unit, better, place, needs }
}

fn number(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

/// The number of processes, if all of them were measured.
fn processes(mark: &Mark) -> Option<f64> {
    (!mark.processes.is_empty()).then_some(mark.processes.len() as f64)
}

fn nmt_committed(mark: &Mark) -> Option<f64> {
    mark.nmt.as_ref().map(|nmt| nmt.total_committed_bytes as f64)
}

/// The phase, if its requests were counted.
fn counted(phase: &PhaseRecord) -> Option<&PhaseRecord> {
    (phase.is_counted() && phase.requests > 0).then_some(phase)
}

fn rate(phase: &PhaseRecord) -> Option<f64> {
    counted(phase).map(|phase| phase.achieved_per_s)
}

fn usual(phase: &PhaseRecord, read: fn(&Quantiles) -> f64) -> Option<f64> {
    phase.usual_ms().as_ref().map(read)
}

/// Response times, if the phase also has service times.
fn response(phase: &PhaseRecord, read: fn(&Quantiles) -> f64) -> Option<f64> {
    phase.service_ms.and(phase.response_ms.as_ref()).map(read)
}

/// Service times, if the phase also has response times.
fn service(phase: &PhaseRecord, read: fn(&Quantiles) -> f64) -> Option<f64> {
    phase.response_ms.and(phase.service_ms.as_ref()).map(read)
}

fn failed(phase: &PhaseRecord) -> Option<f64> {
    counted(phase).map(|phase| phase.failed.total() as f64 / phase.requests as f64)
}

fn cpu_per_1000(phase: &PhaseRecord) -> Option<f64> {
    per_1000(phase, phase.subject.cpu_s)
}

/// Some threads' CPU time per 1,000 correct responses. The JVM's service threads count as the application's, because
/// the program causes their work. So the application's, the JIT's, and the collector's times add up to the total.
fn of_1000(phase: &PhaseRecord, read: fn(&CpuByPurpose) -> f64) -> Option<f64> {
    per_1000(phase, phase.subject.cpu_by_purpose.as_ref().map(read))
}

fn per_1000(phase: &PhaseRecord, cpu_s: Option<f64>) -> Option<f64> {
    let ok = counted(phase)?.ok;
    cpu_s.filter(|_| ok > 0).map(|cpu_s| cpu_s / ok as f64 * 1000.0)
}

fn alloc_rate(phase: &PhaseRecord) -> Option<f64> {
    phase.subject.allocated_bytes.filter(|_| phase.seconds > 0.0).map(|bytes| bytes as f64 / phase.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_splits_into_its_family_and_place() {
        for family in FAMILIES {
            let metric = format!("{}.steady", family.name);
            assert_eq!(split(&metric), (family.name, "steady"));
            assert_eq!(split(family.name), (family.name, ""));
        }
        assert_eq!(split("malloc.retained.loaded"), ("malloc.retained", "loaded"));
        assert_eq!(split("unexplained.loaded"), ("unexplained", "loaded"));
        assert_eq!(split("nonsense"), ("nonsense", ""));
    }

    #[test]
    fn cpu_time_by_purpose_adds_up() {
        let split = CpuByPurpose { app_s: 1.25, jit_s: 0.5, gc_s: 0.125, vm_s: 0.25 };
        let mut phase = PhaseRecord { requests: 600, ok: 500, ..PhaseRecord::default() };
        (phase.subject.cpu_s, phase.subject.cpu_by_purpose) = (Some(2.125), Some(split));
        let read = |phase: &PhaseRecord, name: &str| match family_named(name).map(|family| family.place) {
            Some(InPhase(read)) => read(phase),
            _ => panic!("{name} is not a phase family"),
        };
        let parts = ["cpu_app_per_1000", CPU_OF_JIT, "cpu_gc_per_1000", CPU_WITHOUT_JIT, "cpu_per_1000"];
        let told = |phase: &PhaseRecord| parts.map(|name| read(phase, name));
        assert_eq!(told(&phase), [3.0, 1.0, 0.25, 3.25, 4.25].map(Some));
        phase.subject.cpu_by_purpose = None;
        assert_eq!(told(&phase), [None, None, None, None, Some(4.25)]);
    }

    #[test]
    fn unreported_values_are_not_zero() {
        let mut phase = PhaseRecord { requests: 10, ok: 9, achieved_per_s: 3.0, ..PhaseRecord::default() };
        assert_eq!(rate(&phase), Some(3.0));
        phase.driver = Some(crate::record::DriverRecord::default());
        assert_eq!((rate(&phase), failed(&phase), cpu_per_1000(&phase)), (None, None, None));
    }
}
