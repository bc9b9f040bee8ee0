//! The table of all exported metrics: name, unit, help, and source. It defines the OpenMetrics text, the scrape of
//! `watch`, OTLP, and the CSV rows of searches and tunings. A new metric is one more row in this table.

mod of_jvm;
mod of_result;

use super::points::Points;
use crate::record::{Document, FleetDocument, ServiceRecord, Trial, WatchDocument, WatchEnds, WatchSample, WatchedJvm};
use crate::scenario::MarkPoint;
use crate::summary::fleet::ALL;
use crate::summary::tried::Reached;

#[derive(Debug)]
pub(super) struct Metric {
    /// The name: in Prometheus text, the part between `loadline_` and `_total`; in CSV, the full name. Empty if only
    /// OTLP has the metric. Ends with its unit, one of [`UNITS`].
    pub(super) name: &'static str,
    /// Whether it is a counter.
    pub(super) counts: bool,
    /// The help in Prometheus text.
    pub(super) help: &'static str,
    /// Its form in OTLP, if any.
    pub(super) otlp: Option<Otlp>,
    pub(super) source: Source,
}

/// A metric's name, its UCUM unit, and attributes that all of its points share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Otlp {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) attributes: Attributes,
}

/// The document that contains the value, and how to read it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// The version of a result or fleet.
    Build,
    /// The median of this metric, which occurs once per trial.
    Once(&'static str),
    /// Medians of this metric at each place, which becomes a label.
    At(&'static str, &'static str),
    /// Medians of several metrics at each place: the place label, the metric label, and the values of the metric label.
    Each(&'static str, &'static str, Attributes),
    /// Medians of all account owners.
    Owners,
    /// Medians of all time figures.
    Times,
    /// Medians of metrics without a row, by unit.
    Others,
    /// Any other value in a result.
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
    /// The ends of all JVMs with the same name.
    Ends(fn(&WatchEnds, &mut Points)),
    /// A trial of a search for the load line, with the CSV unit.
    Searched(&'static str, fn(&Trial, &Reached) -> Option<f64>),
    /// A trial of a tuning.
    Tuned(&'static str, fn(&Trial, &Reached) -> Option<f64>),
}

use Source::{
    At, Build, Each, Ends, Fleet, Jvm, Now, Once, Others, Owners, Result, Searched, Service, Times, Tuned, Watch,
};

impl Source {
    /// Reads a watched JVM's points; ignores other sources.
    pub(super) fn of_jvm(self, jvm: &WatchedJvm, to: &mut Points) {
        match self {
            Jvm(read) => read(jvm, to),
            Now(read) => to.whole(read(&jvm.now)),
            _ => {}
        }
    }
}

type Attributes = &'static [(&'static str, &'static str)];

/// A metric without help belongs to a trial, and is only in the CSV.
const fn gauge(name: &'static str, source: Source) -> Metric {
    Metric { name, counts: false, help: "", otlp: None, source }
}

const fn counter(name: &'static str, source: Source) -> Metric {
    Metric { counts: true, ..gauge(name, source) }
}

/// A metric that is only in OTLP.
const fn sent(name: &'static str, unit: &'static str, attributes: Attributes, source: Source) -> Metric {
    gauge("", source).otlp(name, unit, attributes)
}

impl Metric {
    const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    const fn otlp(self, name: &'static str, unit: &'static str, attributes: Attributes) -> Self {
        Self { otlp: Some(Otlp { name, unit, attributes }), ..self }
    }

    /// The unit in Prometheus text; `None` for a count.
    pub(super) fn unit(&self) -> Option<&'static str> {
        UNITS.into_iter().find(|unit| self.name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')))
    }
}

/// Units in Prometheus text. If two are suffixes, the longer one comes first.
const UNITS: [&str; 5] = ["bytes_per_second", "per_second", "bytes", "seconds", "ratio"];
const KINDS: Attributes = &[("anon", "anon"), ("file", "file")];
const PARTS: Attributes = &[("heap_used", "used"), ("heap_committed", "committed"), ("heap_live", "live")];
const HEAP: Attributes = &[("jvm.memory.type", "heap"), ("jvm.memory.pool.name", "heap")];
const METASPACE: Attributes = &[("jvm.memory.type", "non_heap"), ("jvm.memory.pool.name", "Metaspace")];

/// All metrics, in output order.
pub(super) const TABLE: &[Metric] = &[
    // ---- A result ----
    gauge("build_info", Build).help("Version of Loadline and scenario; always 1."),
    gauge("trials", Result(of_result::trials)).help("Trials by outcome."),
    gauge("memory_rss_bytes", At("rss", "mark")).help("Resident memory at a mark, with shared pages counted in full."),
    gauge("memory_in_use_bytes", At("rss_in_use", "mark"))
        .help("Resident memory at a mark, minus what malloc retains."),
    gauge("memory_pss_bytes", At("pss", "mark")).help(
        "Resident memory at a mark, with shared pages divided among \
         their processes.",
    ),
    gauge("memory_charge_bytes", At("charge", "mark")).help("The charge of the memory cgroup at a mark."),
    gauge("memory_rss_peak_bytes", Once("rss_peak")).help("Highest resident memory of the trial."),
    gauge("memory_resident_bytes", Owners).help("Resident memory at a mark by owner; in each trial they sum to RSS."),
    gauge("memory_rss_kind_bytes", Each("mark", "kind", KINDS))
        .help("Resident memory at a mark by kind of page: anon or file."),
    gauge("heap_bytes", Each("mark", "part", PARTS)).help("The Java heap at a mark; committed is not resident."),
    gauge("requests_per_second", At("rate", "phase")).help("Successful responses per second in a phase."),
    gauge("request_time_seconds", Times).help("Response time of successful requests in a phase."),
    gauge("requests_failed_ratio", At("failed", "phase")).help(
        "Failed requests as a share of all requests of a \
         phase.",
    ),
    gauge("cpu_per_1000_requests_seconds", At("cpu_per_1000", "phase"))
        .help("CPU time of the server per 1,000 successful responses."),
    gauge("cpu_app_per_1000_requests_seconds", At("cpu_app_per_1000", "phase"))
        .help("CPU time of application threads and JVM service threads per 1,000 successful responses."),
    gauge("cpu_jit_per_1000_requests_seconds", At("cpu_jit_per_1000", "phase"))
        .help("CPU time of the JIT compilers per 1,000 successful responses."),
    gauge("cpu_gc_per_1000_requests_seconds", At("cpu_gc_per_1000", "phase"))
        .help("CPU time of the collector per 1,000 successful responses."),
    gauge("allocated_per_request_bytes", At("alloc_per_request", "phase"))
        .help("Bytes allocated in the Java heap per successful response, minus allocation at rest."),
    gauge("allocated_bytes_per_second", At("alloc_rate", "phase")).help("Allocated in the Java heap during a phase."),
    gauge("gc_seconds", At("gc_ms", "phase")).help("GC time during a phase."),
    gauge("gc_collections", At("gc_count", "phase")).help("GCs during a phase."),
    gauge("start_up_seconds", Once("start_up")).help("Time from starting the command to the first sign of readiness."),
    gauge("metric_bytes", Others).help("Any other metric in bytes."),
    gauge("metric_bytes_per_second", Others).help("Any other metric in bytes per second."),
    gauge("metric_per_second", Others).help("Any other rate."),
    gauge("metric_seconds", Others).help("Any other metric in seconds."),
    gauge("metric_ratio", Others).help("Any other ratio, from 0 to 1."),
    gauge("metric_number", Others).help("Any other count."),
    gauge("figure_ratio", Others).help("A derived figure that is a ratio, such as elasticity."),
    gauge("figure_bytes", Others).help("A derived figure in bytes per counted item."),
    gauge("comparison_ratio", Result(of_result::ratios)).help(
        "Ratio of the candidate to the baseline, estimated \
        within blocks.",
    ),
    gauge("comparison_verdict", Result(of_result::comparisons))
        .help("1 for the verdict on the difference, 0 for all other verdicts."),
    gauge("budget_verdict", Result(of_result::budgets))
        .help("1 for the verdict on the budget, 0 for all other verdicts."),
    gauge("budget_value", Result(|of, to| of_result::of_budgets(of, to, |of| of.value)))
        .help("The judged value, in the budget's unit."),
    gauge("budget_bound", Result(|of, to| of_result::of_budgets(of, to, |of| of.bound)))
        .help("The bound, in the budget's unit."),
    gauge("tuning_bytes", Result(of_result::tuned_bytes))
        .help("The tuning objective before and after; medians of the confirmation trials."),
    gauge("tuning_cpu_ratio", Result(of_result::tuned_cpu)).help(
        "CPU time per request with the tuned settings relative to the original ones, excluding the JIT if known; \
            estimated within blocks.",
    ),
    // ---- A fleet ----
    gauge("fleet_entries", Fleet(of_result::entries))
        .help("Plan entries by status; a duplicate entry also counts as answered or failed."),
    gauge("fleet_node_seconds", Fleet(|of, to| to.one(of.node_seconds))).help("Total working time of the nodes."),
    gauge("fleet_to_win_bytes", Fleet(|of, to| to.one((!of.services.is_empty()).then_some(of.wasted_bytes as f64))))
        .help("Total by which production limits exceed the limits to set."),
    gauge("fleet_line_bytes", Service(|of, to| to.whole(of.line.as_ref().map(|line| line.limit_bytes))))
        .help("The smallest limit at which the service meets its target."),
    gauge("fleet_limit_bytes", Service(|of, to| to.whole(of.limit_bytes)))
        .help("The limit to set: the load line plus headroom."),
    gauge("fleet_declared_bytes", Service(|of, to| to.whole(of.declared_bytes)))
        .help("The service's limit in production."),
    gauge("fleet_wasted_bytes", Service(|of, to| to.one(of.wasted_bytes.map(|bytes| bytes as f64))))
        .help("The production limit minus the limit to set; negative if the production limit is too small."),
    gauge("fleet_verdict", Service(|of, to| to.states(&[], &ALL, of.verdict)))
        .help("1 for the status of the load line, 0 for all other statuses."),
    // ---- A trial of a search or a tuning ----
    gauge("find.limit", Searched("bytes", |of, _| of.limit_bytes.map(|bytes| bytes as f64))),
    gauge("find.heap", Searched("bytes", |of, _| Some(of.probe.as_ref()?.heap_bytes? as f64))),
    gauge("find.peak", Searched("bytes", |of, _| Some(of.cgroup?.peak_bytes? as f64))),
    gauge("find.asked", Searched("per_second", |of, _| of.probe.as_ref()?.rate_per_s)),
    gauge("find.rate", Searched("per_second", |_, reached| reached.rate_per_s)),
    gauge("find.p99", Searched("milliseconds", |_, reached| reached.p99_ms)),
    gauge("find.cpu_per_request", Searched("milliseconds", |_, reached| reached.cpu_us.map(|us| us / 1e3))),
    gauge("find.holds", Searched("count", |of, _| of_result::holds(of.probe.as_ref()?.verdict))),
    gauge("tune.loaded", Tuned("bytes", |of, _| Some(of.at(MarkPoint::Loaded)?.weight().1 as f64))),
    gauge("tune.rested", Tuned("bytes", |of, _| Some(of.at(MarkPoint::Rested)?.weight().1 as f64))),
    gauge("tune.peak", Tuned("bytes", |of, _| of.rss_bytes_peak.map(|bytes| bytes as f64))),
    gauge("tune.rate", Tuned("per_second", |_, reached| reached.rate_per_s)),
    gauge("tune.p99", Tuned("milliseconds", |_, reached| reached.p99_ms)),
    gauge("tune.cpu_per_request", Tuned("milliseconds", |_, reached| reached.cpu_us.map(|us| us / 1e3))),
    gauge("tune.holds", Tuned("count", |of, _| of_result::holds(of.tuned.as_ref()?.verdict))),
    // ---- A watched JVM ----
    gauge("jvm_info", Jvm(of_jvm::info)).help("A watched JVM; always 1."),
    gauge("jvm_age_seconds", Jvm(|of, to| to.one(of.age_s))).help("Age of the JVM."),
    gauge("memory_rss_bytes", Jvm(of_jvm::rss_by_kind)).help("Resident memory by kind of page: anon, file, or shmem."),
    sent("process.memory.usage", "By", &[], Jvm(of_jvm::rss_in_all)),
    gauge("memory_swap_bytes", Now(|now| now.swap_bytes)).help("Memory of the JVM in swap."),
    gauge("memory_counted_bytes", Jvm(|of, to| of_jvm::owners(&of.owners, to)))
        .help("Current resident memory by owner, from JVM counters.")
        .otlp("loadline.memory.counted", "By", &[]),
    gauge("memory_resident_bytes", Jvm(of_jvm::weighed))
        .help("Resident memory by owner when the JVM was last weighed.")
        .otlp("loadline.memory.resident", "By", &[]),
    gauge("memory_account_age_seconds", Jvm(|of, to| to.one(of.account.as_ref().map(|account| account.age_s))))
        .help("Time since the JVM was last weighed.")
        .otlp("loadline.memory.account.age", "s", &[]),
    gauge("memory_unreclaimable_bytes", Now(|now| now.unreclaimable_bytes))
        .help("Anonymous and kernel memory, which cannot be reclaimed.")
        .otlp("loadline.memory.unreclaimable", "By", &[]),
    gauge(
        "memory_working_set_bytes",
        Jvm(|of, to| to.whole(of.charge.as_ref().map(|charge| charge.working_set_bytes))),
    )
    .help("Cgroup charge minus inactive page cache (the Kubernetes working set).")
    .otlp("loadline.memory.working_set", "By", &[]),
    gauge("memory_other_processes_bytes", Jvm(|of, to| to.whole(of.charge.as_ref().map(|charge| charge.others_bytes))))
        .help("Anonymous memory of other processes in the cgroup.")
        .otlp("loadline.memory.other_processes", "By", &[]),
    gauge("memory_limit_bytes", Jvm(|of, to| to.whole(of.limit.as_ref().map(|limit| limit.bytes))))
        .help("The smallest limit of the cgroup and its parents, or the machine's memory.")
        .otlp("loadline.memory.limit", "By", &[]),
    gauge("memory_headroom_bytes", Jvm(of_jvm::headroom)).help("Limit minus unreclaimable memory."),
    gauge("memory_growth_bytes_per_second", Jvm(of_jvm::slope))
        .help("Growth rate, if any; bound is low, estimate, or high."),
    gauge("memory_limit_eta_seconds", Jvm(of_jvm::eta))
        .help("Time until memory reaches the limit, if it grows; bound is soonest or latest."),
    gauge("growth_verdict", Jvm(of_jvm::growth)).help("1 for the growth verdict on the JVM, 0 for all other verdicts."),
    sent("loadline.growth", "1", &[], Jvm(|of, to| to.at(&[("verdict", of.growth.verdict.name())], 1.0))),
    gauge("memory_near_limit", Jvm(|of, to| to.whole(u64::from(of.growth.near_limit))))
        .help("1 if headroom is small and would run out within an hour at the rate of the last few minutes."),
    gauge("jvm_heap_used_bytes", Now(|now| now.heap_used_bytes)).help("Java heap in use after the last GC.").otlp(
        "jvm.memory.used",
        "By",
        HEAP,
    ),
    sent("jvm.memory.used", "By", METASPACE, Now(|now| now.metaspace_bytes)),
    gauge("jvm_heap_committed_bytes", Now(|now| now.heap_committed_bytes))
        .help("Java heap committed; it may not be resident.")
        .otlp("jvm.memory.committed", "By", HEAP),
    sent("jvm.memory.committed", "By", METASPACE, Now(|now| now.metaspace_bytes)),
    sent("jvm.memory.limit", "By", HEAP, Now(|now| now.heap_max_bytes)),
    gauge("jvm_heap_floor_bytes", Now(|now| now.heap_floor_bytes))
        .help("Java heap in use after the last old GC.")
        .otlp("jvm.memory.used_after_last_gc", "By", HEAP),
    gauge("jvm_threads", Now(|now| now.threads)).help("Threads.").otlp("jvm.thread.count", "{thread}", &[]),
    gauge("jvm_classes", Now(|now| now.classes)).help("Classes loaded.").otlp("jvm.class.count", "{class}", &[]),
    counter("gc_pause_seconds", Jvm(|of, to| to.one(of.now.gc_ms.map(|ms| ms as f64 / 1e3)))).help("GC time."),
    counter("cgroup_oom_kills", Now(|now| now.oom_kills)).help("Processes in the cgroup killed by the OOM killer."),
    counter("watch_sample_seconds", Jvm(|of, to| to.one(of.sampling_ms / 1e3)))
        .help("Loadline's own CPU time for sampling the JVM."),
    gauge("watch_unreadable", Jvm(|of, to| to.whole(of.unreadable.len() as u64)))
        .help("Data sources of the JVM that Loadline cannot read."),
    counter(
        "jvm_ends",
        Ends(|of, to| {
            to.at(&[("how", "killed")], of.killed as f64);
            to.at(&[("how", "other")], of.other as f64);
        }),
    )
    .help("JVMs with this name that exited; how is killed (by the OOM killer) or other."),
    gauge("watch_info", Watch(|of, to| to.at(&[("version", &of.loadline)], 1.0)))
        .help("Version of `loadline watch`; always 1."),
    gauge("watch_hidden_processes", Watch(|of, to| to.whole(of.hidden)))
        .help("Processes that Loadline is not permitted to inspect; some may be JVMs."),
    gauge("watch_left_out_jvms", Watch(|of, to| to.whole(of.left_out)))
        .help("JVMs not watched because more are running than one `loadline watch` can cover."),
    gauge("watch_set_aside_processes", Watch(|of, to| to.whole(of.set_aside)))
        .help("Processes that did not respond in time; some may be JVMs."),
    gauge("watch_set_aside", Jvm(|of, to| to.whole(of.set_aside.as_ref().map(|_| 1))))
        .help("1 if the JVM could not be read in the last round."),
    counter("watch_turns", Watch(|of, to| to.whole(of.turns))).help("Sampling rounds over all JVMs."),
    counter("watch_finds_failed", Watch(|of, to| to.whole(of.finds_failed))).help("Failed attempts to list JVMs."),
];
