//! The table of every metric that an export names: its name, unit and help, and where its value comes from. The
//! OpenMetrics text, the scrape of `watch`, OTLP and the rows of searches and tunings in the CSV follow from it.
//! A new metric is a row here.

mod of_jvm;
mod of_result;

use super::points::Points;
use crate::record::{Document, FleetDocument, ServiceRecord, Trial, WatchDocument, WatchEnds, WatchSample, WatchedJvm};
use crate::scenario::MarkPoint;
use crate::summary::fleet::ALL;
use crate::summary::tried::Reached;

/// A row of the table.
#[derive(Debug)]
pub(super) struct Metric {
    /// The name: in Prometheus' text behind `loadline_` and before `_total`, in the CSV the whole of it. It is empty
    /// where only OTLP has the metric. It ends with its unit, one of [`UNITS`].
    pub(super) name: &'static str,
    /// Whether it is a total that only rises.
    pub(super) counts: bool,
    /// The help of Prometheus' text.
    pub(super) help: &'static str,
    /// The same in OTLP, where it has that.
    pub(super) otlp: Option<Otlp>,
    pub(super) source: Source,
}

/// The name of a metric, its unit after UCUM, and attributes of all its points.
#[derive(Debug, Clone, Copy)]
pub(super) struct Otlp {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) attributes: Attributes,
}

/// The document that has the value, and how it is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// The version of a result or a fleet.
    Build,
    /// The median of the metric of this name, once in a trial.
    Once(&'static str),
    /// Medians of the metric of this name, at each place, which the label tells.
    At(&'static str, &'static str),
    /// Medians of several metrics, at each place: the label of the place, that of the metric, and its value for each.
    Each(&'static str, &'static str, Attributes),
    /// Medians of every owner of the account.
    Owners,
    /// Medians of every figure of a time.
    Times,
    /// Medians of metrics without a row of their own, by their unit.
    Others,
    /// Anything else of a result.
    Result(fn(&Document, &mut Points)),
    /// A fleet.
    Fleet(fn(&FleetDocument, &mut Points)),
    /// Each service of a fleet.
    Service(fn(&ServiceRecord, &mut Points)),
    /// The watch itself.
    Watch(fn(&WatchDocument, &mut Points)),
    /// The last sample of each watched JVM.
    Now(fn(&WatchSample) -> Option<u64>),
    /// Each watched JVM.
    Jvm(fn(&WatchedJvm, &mut Points)),
    /// The ends of JVMs of one name.
    Ends(fn(&WatchEnds, &mut Points)),
    /// A trial of a search for the load line, with the unit in the CSV.
    Searched(&'static str, fn(&Trial, &Reached) -> Option<f64>),
    /// A trial of a tuning.
    Tuned(&'static str, fn(&Trial, &Reached) -> Option<f64>),
}

use Source::{
    At, Build, Each, Ends, Fleet, Jvm, Now, Once, Others, Owners, Result, Searched, Service, Times, Tuned, Watch,
};

impl Source {
    /// Reads the points of a watched JVM; does nothing for any other source.
    pub(super) fn of_jvm(self, jvm: &WatchedJvm, to: &mut Points) {
        match self {
            Jvm(read) => read(jvm, to),
            Now(read) => to.whole(read(&jvm.now)),
            _ => {}
        }
    }
}

type Attributes = &'static [(&'static str, &'static str)];

const fn gauge(name: &'static str, help: &'static str, source: Source) -> Metric {
    Metric { name, counts: false, help, otlp: None, source }
}

const fn counter(name: &'static str, help: &'static str, source: Source) -> Metric {
    Metric { counts: true, ..gauge(name, help, source) }
}

/// Returns a metric of a trial, which only the CSV has.
const fn cell(name: &'static str, source: Source) -> Metric {
    gauge(name, "", source)
}

/// Only OTLP has it.
const fn sent(name: &'static str, unit: &'static str, attributes: Attributes, source: Source) -> Metric {
    gauge("", "", source).otlp(name, unit, attributes)
}

impl Metric {
    const fn otlp(self, name: &'static str, unit: &'static str, attributes: Attributes) -> Self {
        Self { otlp: Some(Otlp { name, unit, attributes }), ..self }
    }

    /// The unit in Prometheus' text; `None` of a number of things.
    pub(super) fn unit(&self) -> Option<&'static str> {
        UNITS.into_iter().find(|unit| self.name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')))
    }
}

/// Units of Prometheus' text, of two endings the longer first.
const UNITS: [&str; 5] = ["bytes_per_second", "per_second", "bytes", "seconds", "ratio"];
const KINDS: Attributes = &[("anon", "anon"), ("file", "file")];
const PARTS: Attributes = &[("heap_used", "used"), ("heap_committed", "committed"), ("heap_live", "live")];
const HEAP: Attributes = &[("jvm.memory.type", "heap"), ("jvm.memory.pool.name", "heap")];
const METASPACE: Attributes = &[("jvm.memory.type", "non_heap"), ("jvm.memory.pool.name", "Metaspace")];

/// All metrics, in the order of the texts.
pub(super) const TABLE: &[Metric] = &[
    // ---- A result ----
    gauge("build_info", "Version of Loadline and scenario; always 1.", Build),
    gauge("trials", "Trials by how they ended.", Result(of_result::trials)),
    gauge("memory_rss_bytes", "Resident memory at a mark, shared pages in full.", At("rss", "mark")),
    gauge("memory_in_use_bytes", "Resident memory at a mark without what malloc retains.", At("rss_in_use", "mark")),
    gauge("memory_pss_bytes", "Resident memory at a mark, shared pages divided.", At("pss", "mark")),
    gauge("memory_charge_bytes", "What the memory cgroup counts at a mark.", At("charge", "mark")),
    gauge("memory_rss_peak_bytes", "Highest resident memory of the trial.", Once("rss_peak")),
    gauge("memory_resident_bytes", "Resident memory at a mark by owner; in each trial they sum to RSS.", Owners),
    gauge(
        "memory_rss_kind_bytes",
        "Resident memory at a mark by kind of page: anon or file.",
        Each("mark", "kind", KINDS),
    ),
    gauge("heap_bytes", "The Java heap at a mark; committed is not resident.", Each("mark", "part", PARTS)),
    gauge("requests_per_second", "Correct answers per second of a phase.", At("rate", "phase")),
    gauge("request_time_seconds", "Time of correct answers in a phase.", Times),
    gauge("requests_failed_ratio", "Failed requests of a phase, of all.", At("failed", "phase")),
    gauge(
        "cpu_per_1000_requests_seconds",
        "CPU time of the subject per 1,000 correct answers.",
        At("cpu_per_1000", "phase"),
    ),
    gauge(
        "allocated_per_request_bytes",
        "Allocated in the Java heap per correct answer, without what is allocated at rest.",
        At("alloc_per_request", "phase"),
    ),
    gauge("allocated_bytes_per_second", "Allocated in the Java heap during a phase.", At("alloc_rate", "phase")),
    gauge("gc_seconds", "Time in collections during a phase.", At("gc_ms", "phase")),
    gauge("gc_collections", "Collections during a phase.", At("gc_count", "phase")),
    gauge("start_up_seconds", "From the command to the first sign of readiness.", Once("start_up")),
    gauge("metric_bytes", "Any other metric that is a size.", Others),
    gauge("metric_bytes_per_second", "Any other metric that is a size per second.", Others),
    gauge("metric_per_second", "Any other metric that is a rate.", Others),
    gauge("metric_seconds", "Any other metric that is a time.", Others),
    gauge("metric_ratio", "Any other metric that is a share, 0 to 1.", Others),
    gauge("metric_number", "Any other metric that is a number of things.", Others),
    gauge("figure_ratio", "A figure that is a ratio, such as an elasticity.", Others),
    gauge("figure_bytes", "A figure that is bytes for each thing counted.", Others),
    gauge("comparison_ratio", "Candidate over baseline, estimated within blocks.", Result(of_result::ratios)),
    gauge("comparison_verdict", "1 for the verdict on a difference, 0 for the others.", Result(of_result::comparisons)),
    gauge("budget_verdict", "1 for the verdict on a budget, 0 for the others.", Result(of_result::budgets)),
    gauge(
        "budget_value",
        "What was judged, in the unit of the budget.",
        Result(|of, to| of_result::of_budgets(of, to, |of| of.value)),
    ),
    gauge(
        "budget_bound",
        "What the budget allows, in the unit of the budget.",
        Result(|of, to| of_result::of_budgets(of, to, |of| of.bound)),
    ),
    gauge(
        "tuning_bytes",
        "What tuning makes small, as it is and tuned; medians of the confirmation.",
        Result(of_result::tuned_bytes),
    ),
    gauge(
        "tuning_cpu_ratio",
        "CPU time of a request tuned, over that as it is; estimated within blocks.",
        Result(of_result::tuned_cpu),
    ),
    // ---- A fleet ----
    gauge(
        "fleet_entries",
        "Entries of the plan by what became of them; a double one is answered or failed, too.",
        Fleet(of_result::entries),
    ),
    gauge("fleet_node_seconds", "How long the nodes were at work, in sum.", Fleet(|of, to| to.one(of.node_seconds))),
    gauge(
        "fleet_to_win_bytes",
        "What limits of production are larger than those to set, in sum.",
        Fleet(|of, to| to.one((!of.services.is_empty()).then_some(of.wasted_bytes as f64))),
    ),
    gauge(
        "fleet_line_bytes",
        "The smallest limit at which the target of a service holds.",
        Service(|of, to| to.whole(of.line.as_ref().map(|line| line.limit_bytes))),
    ),
    gauge(
        "fleet_limit_bytes",
        "The limit to set: the line with its headroom.",
        Service(|of, to| to.whole(of.limit_bytes)),
    ),
    gauge(
        "fleet_declared_bytes",
        "The limit that a service has in production.",
        Service(|of, to| to.whole(of.declared_bytes)),
    ),
    gauge(
        "fleet_wasted_bytes",
        "The limit of production without the limit to set; negative where too small.",
        Service(|of, to| to.one(of.wasted_bytes.map(|bytes| bytes as f64))),
    ),
    gauge(
        "fleet_verdict",
        "1 for what became of a line, 0 for the others.",
        Service(|of, to| to.states(&[], &ALL, of.verdict)),
    ),
    // ---- A trial of a search or a tuning ----
    cell("find.limit", Searched("bytes", |of, _| of.limit_bytes.map(|bytes| bytes as f64))),
    cell("find.heap", Searched("bytes", |of, _| Some(of.probe.as_ref()?.heap_bytes? as f64))),
    cell("find.peak", Searched("bytes", |of, _| Some(of.cgroup?.peak_bytes? as f64))),
    cell("find.asked", Searched("per_second", |of, _| of.probe.as_ref()?.rate_per_s)),
    cell("find.rate", Searched("per_second", |_, reached| reached.rate_per_s)),
    cell("find.p99", Searched("milliseconds", |_, reached| reached.p99_ms)),
    cell("find.cpu_per_request", Searched("milliseconds", |_, reached| reached.cpu_us.map(|us| us / 1e3))),
    cell("find.holds", Searched("count", |of, _| of_result::holds(of.probe.as_ref()?.verdict))),
    cell("tune.loaded", Tuned("bytes", |of, _| Some(of.at(MarkPoint::Loaded)?.weight().1 as f64))),
    cell("tune.rested", Tuned("bytes", |of, _| Some(of.at(MarkPoint::Rested)?.weight().1 as f64))),
    cell("tune.peak", Tuned("bytes", |of, _| of.rss_bytes_peak.map(|bytes| bytes as f64))),
    cell("tune.rate", Tuned("per_second", |_, reached| reached.rate_per_s)),
    cell("tune.p99", Tuned("milliseconds", |_, reached| reached.p99_ms)),
    cell("tune.cpu_per_request", Tuned("milliseconds", |_, reached| reached.cpu_us.map(|us| us / 1e3))),
    cell("tune.holds", Tuned("count", |of, _| of_result::holds(of.tuned.as_ref()?.verdict))),
    // ---- A watched JVM ----
    gauge("jvm_info", "A JVM that is watched; always 1.", Jvm(of_jvm::info)),
    gauge("jvm_age_seconds", "Age of the JVM.", Jvm(|of, to| to.one(of.age_s))),
    gauge("memory_rss_bytes", "Resident memory by kind of page: anon, file or shmem.", Jvm(of_jvm::rss_by_kind)),
    sent("process.memory.usage", "By", &[], Jvm(of_jvm::rss_in_all)),
    gauge("memory_swap_bytes", "Memory of the JVM in swap.", Now(|now| now.swap_bytes)),
    gauge(
        "memory_counted_bytes",
        "Resident memory by owner now, as far as counters tell.",
        Jvm(|of, to| of_jvm::owners(&of.owners, to)),
    )
    .otlp("loadline.memory.counted", "By", &[]),
    gauge("memory_resident_bytes", "Resident memory by owner when the JVM was weighed last.", Jvm(of_jvm::weighed))
        .otlp("loadline.memory.resident", "By", &[]),
    gauge(
        "memory_account_age_seconds",
        "How long ago the JVM was weighed.",
        Jvm(|of, to| to.one(of.account.as_ref().map(|account| account.age_s))),
    )
    .otlp("loadline.memory.account.age", "s", &[]),
    gauge(
        "memory_unreclaimable_bytes",
        "Anonymous and kernel memory: what no reclaim takes back.",
        Now(|now| now.unreclaimable_bytes),
    )
    .otlp("loadline.memory.unreclaimable", "By", &[]),
    gauge(
        "memory_limit_bytes",
        "The smallest limit on the path, or the machine's memory.",
        Jvm(|of, to| to.whole(of.limit.as_ref().map(|limit| limit.bytes))),
    )
    .otlp("loadline.memory.limit", "By", &[]),
    gauge("memory_headroom_bytes", "Limit less what no reclaim takes back.", Jvm(of_jvm::headroom)),
    gauge(
        "memory_growth_bytes_per_second",
        "Growth, where there is any: bound low, estimate or high.",
        Jvm(of_jvm::slope),
    ),
    gauge("memory_limit_eta_seconds", "Time to the limit, where it grows: bound soonest or latest.", Jvm(of_jvm::eta)),
    gauge("growth_verdict", "1 for the verdict on what the JVM does over time, 0 for the others.", Jvm(of_jvm::growth)),
    sent("loadline.growth", "1", &[], Jvm(|of, to| to.at(&[("verdict", of.growth.verdict.name())], 1.0))),
    gauge(
        "memory_near_limit",
        "1 where headroom is small and gone within the hour at the pace of the last minutes.",
        Jvm(|of, to| to.whole(u64::from(of.growth.near_limit))),
    ),
    gauge("jvm_heap_used_bytes", "Java heap in use, as of the last collection.", Now(|now| now.heap_used_bytes)).otlp(
        "jvm.memory.used",
        "By",
        HEAP,
    ),
    sent("jvm.memory.used", "By", METASPACE, Now(|now| now.metaspace_bytes)),
    gauge(
        "jvm_heap_committed_bytes",
        "Java heap promised; it may not be resident.",
        Now(|now| now.heap_committed_bytes),
    )
    .otlp("jvm.memory.committed", "By", HEAP),
    sent("jvm.memory.committed", "By", METASPACE, Now(|now| now.metaspace_bytes)),
    sent("jvm.memory.limit", "By", HEAP, Now(|now| now.heap_max_bytes)),
    gauge(
        "jvm_heap_floor_bytes",
        "What the last collection of the old generation left in the heap.",
        Now(|now| now.heap_floor_bytes),
    )
    .otlp("jvm.memory.used_after_last_gc", "By", HEAP),
    gauge("jvm_threads", "Threads.", Now(|now| now.threads)).otlp("jvm.thread.count", "{thread}", &[]),
    gauge("jvm_classes", "Classes loaded.", Now(|now| now.classes)).otlp("jvm.class.count", "{class}", &[]),
    counter("gc_pause_seconds", "Time in collections.", Jvm(|of, to| to.one(of.now.gc_ms.map(|ms| ms as f64 / 1e3)))),
    counter(
        "cgroup_oom_kills",
        "Processes of the cgroup that the kernel killed for want of memory.",
        Now(|now| now.oom_kills),
    ),
    counter("watch_sample_seconds", "What sampling the JVM took Loadline.", Jvm(|of, to| to.one(of.sampling_ms / 1e3))),
    gauge(
        "watch_unreadable",
        "Sources of the JVM that cannot be read.",
        Jvm(|of, to| to.whole(of.unreadable.len() as u64)),
    ),
    counter(
        "jvm_ends",
        "JVMs of this name that ended: how killed, by the kernel for want of memory, or other.",
        Ends(|of, to| {
            to.at(&[("how", "killed")], of.killed as f64);
            to.at(&[("how", "other")], of.other as f64);
        }),
    ),
    gauge("watch_info", "The watch; always 1.", Watch(|of, to| to.at(&[("version", &of.loadline)], 1.0))),
    gauge(
        "watch_hidden_processes",
        "Processes that may not be looked into; JVMs may be among them.",
        Watch(|of, to| to.whole(of.hidden)),
    ),
    gauge(
        "watch_left_out_jvms",
        "JVMs that are more than can be watched at once.",
        Watch(|of, to| to.whole(of.left_out)),
    ),
    gauge(
        "watch_set_aside_processes",
        "Processes that do not answer in time; JVMs may be among them.",
        Watch(|of, to| to.whole(of.set_aside)),
    ),
    gauge(
        "watch_set_aside",
        "1 for a JVM of which the last turn saw nothing.",
        Jvm(|of, to| to.whole(of.set_aside.as_ref().map(|_| 1))),
    ),
    counter("watch_turns", "Turns in which all JVMs were looked at.", Watch(|of, to| to.whole(of.turns))),
    counter(
        "watch_finds_failed",
        "Looks for JVMs that failed, and changed nothing.",
        Watch(|of, to| to.whole(of.finds_failed)),
    ),
];
