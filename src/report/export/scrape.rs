//! What is watched as metrics to scrape: OpenMetrics text (1.0) for whom it asks, else Prometheus' older text (0.0.4).
//! Only gauges, and totals as counters; a JVM is named by `jvm`, never by its pid, which is in `loadline_jvm_info`.
//! `loadline_memory_rss_bytes{jvm="prod/shop-6f4d-x2v/app",kind="anon"} 524288000`

use super::openmetrics::label_value;
use crate::record::{GrowthRecord, GrowthWord, WATCH_OWNERS_MAX, WatchDocument, WatchEnds, WatchedJvm};
use std::collections::BTreeSet;
use std::fmt::Write;

/// In which text samples are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text 0.0.4.
    Prometheus,
}

impl Exposition {
    /// By what an `Accept` header asks for, the more wanted of both (RFC 9110, section 12.5.1).
    pub fn of(accept: &str) -> Self {
        let wanted = |media_type: &str| {
            let ranges = accept.split(',').map(|range| range.split(';').map(str::trim));
            let own = ranges.filter_map(|mut range| {
                range.next().filter(|name| name.eq_ignore_ascii_case(media_type))?;
                let weight = range.find_map(|word| word.strip_prefix("q="));
                Some(weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
            });
            own.fold(0.0, f64::max)
        };
        let open = wanted("application/openmetrics-text");
        if open > 0.0 && open >= wanted("text/plain") { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// How a family is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gauge,
    Counter,
}

/// Name without `loadline_` and without `_total`, unit, kind, help.
type Family = (&'static str, &'static str, Kind, &'static str);

const FAMILIES: [Family; 31] = [
    ("jvm_info", "", Kind::Gauge, "A JVM that is watched; always 1."),
    ("jvm_age_seconds", "seconds", Kind::Gauge, "Age of the JVM."),
    ("memory_rss_bytes", "bytes", Kind::Gauge, "Resident memory by kind of page: anon, file or shmem."),
    ("memory_swap_bytes", "bytes", Kind::Gauge, "Memory of the JVM in swap."),
    ("memory_counted_bytes", "bytes", Kind::Gauge, "Resident memory by owner now, as far as counters tell."),
    ("memory_resident_bytes", "bytes", Kind::Gauge, "Resident memory by owner when the JVM was weighed last."),
    ("memory_account_age_seconds", "seconds", Kind::Gauge, "How long ago the JVM was weighed."),
    ("memory_unreclaimable_bytes", "bytes", Kind::Gauge, "Anonymous and kernel memory: what no reclaim takes back."),
    ("memory_limit_bytes", "bytes", Kind::Gauge, "The smallest limit on the path, or the machine's memory."),
    ("memory_headroom_bytes", "bytes", Kind::Gauge, "Limit less what no reclaim takes back."),
    (
        "memory_growth_bytes_per_second",
        "bytes_per_second",
        Kind::Gauge,
        "Growth, where there is any: bound low, estimate or high.",
    ),
    ("memory_limit_eta_seconds", "seconds", Kind::Gauge, "Time to the limit, where it grows: bound soonest or latest."),
    ("growth_verdict", "", Kind::Gauge, "1 for the verdict on what the JVM does over time, 0 for the others."),
    (
        "memory_near_limit",
        "",
        Kind::Gauge,
        "1 where headroom is small and gone within the hour at the pace of the last minutes.",
    ),
    ("jvm_heap_used_bytes", "bytes", Kind::Gauge, "Java heap in use, as of the last collection."),
    ("jvm_heap_committed_bytes", "bytes", Kind::Gauge, "Java heap promised; it may not be resident."),
    ("jvm_heap_floor_bytes", "bytes", Kind::Gauge, "What the last collection of the old generation left in the heap."),
    ("jvm_threads", "", Kind::Gauge, "Threads."),
    ("jvm_classes", "", Kind::Gauge, "Classes loaded."),
    ("gc_pause_seconds", "seconds", Kind::Counter, "Time in collections."),
    ("cgroup_oom_kills", "", Kind::Counter, "Processes of the cgroup that the kernel killed for want of memory."),
    ("watch_sample_seconds", "seconds", Kind::Counter, "What sampling the JVM took Loadline."),
    ("watch_unreadable", "", Kind::Gauge, "Sources of the JVM that cannot be read."),
    (
        "jvm_ends",
        "",
        Kind::Counter,
        "JVMs of this name that ended: how killed, by the kernel for want of memory, or other.",
    ),
    ("watch_info", "", Kind::Gauge, "The watch; always 1."),
    ("watch_hidden_processes", "", Kind::Gauge, "Processes that may not be looked into; JVMs may be among them."),
    ("watch_left_out_jvms", "", Kind::Gauge, "JVMs that are more than can be watched at once."),
    ("watch_set_aside_processes", "", Kind::Gauge, "Processes that do not answer in time; JVMs may be among them."),
    ("watch_set_aside", "", Kind::Gauge, "1 for a JVM of which the last turn saw nothing."),
    ("watch_turns", "", Kind::Counter, "Turns in which all JVMs were looked at."),
    ("watch_finds_failed", "", Kind::Counter, "Looks for JVMs that failed, and changed nothing."),
];

/// Labels beside `jvm`.
type Labels<'a> = [(&'a str, &'a str)];

/// All samples, in the order of the families.
struct Samples<'a> {
    lines: Vec<(&'static str, String)>,
    seen: BTreeSet<String>,
    jvm: Option<&'a str>,
}

/// The text of a scrape; `ends` are of those that have gone, too.
pub fn scrape(document: &WatchDocument, ends: &[WatchEnds], text: Exposition) -> String {
    let mut samples = Samples { lines: Vec::new(), seen: BTreeSet::new(), jvm: None };
    samples.push("watch_info", &[("version", &document.loadline)], Some(1.0));
    samples.push("watch_hidden_processes", &[], Some(document.hidden as f64));
    samples.push("watch_left_out_jvms", &[], Some(document.left_out as f64));
    samples.push("watch_set_aside_processes", &[], Some(document.set_aside as f64));
    samples.push("watch_turns", &[], Some(document.turns as f64));
    samples.push("watch_finds_failed", &[], Some(document.finds_failed as f64));
    for jvm in &document.jvms {
        samples.jvm = Some(&jvm.name);
        of_jvm(&mut samples, jvm);
    }
    for one in ends {
        samples.jvm = Some(&one.name);
        samples.push("jvm_ends", &[("how", "killed")], Some(one.killed as f64));
        samples.push("jvm_ends", &[("how", "other")], Some(one.other as f64));
    }
    let mut out = String::new();
    for (name, unit, kind, help) in FAMILIES {
        let mut lines = samples.lines.iter().filter(|(family, _)| *family == name).peekable();
        if lines.peek().is_none() {
            continue;
        }
        let (word, suffix) = match (kind, text) {
            (Kind::Gauge, _) => ("gauge", ""),
            (Kind::Counter, Exposition::OpenMetrics) => ("counter", ""),
            // There the family has the name of its samples.
            (Kind::Counter, Exposition::Prometheus) => ("counter", "_total"),
        };
        let _ = writeln!(out, "# TYPE loadline_{name}{suffix} {word}");
        if text == Exposition::OpenMetrics && !unit.is_empty() {
            let _ = writeln!(out, "# UNIT loadline_{name} {unit}");
        }
        let _ = writeln!(out, "# HELP loadline_{name}{suffix} {help}");
        lines.for_each(|(_, line)| out.push_str(line));
    }
    if text == Exposition::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

impl Samples<'_> {
    fn push(&mut self, family: &'static str, labels: &Labels<'_>, value: Option<f64>) {
        debug_assert!(FAMILIES.iter().any(|of| of.0 == family), "{family} is no family");
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        let own = self.jvm.map(|jvm| ("jvm", jvm));
        let all = own.iter().chain(labels).map(|(name, value)| format!("{name}=\"{}\"", label_value(value)));
        let labels = all.collect::<Vec<_>>().join(",");
        let counts = FAMILIES.iter().any(|of| of.0 == family && of.2 == Kind::Counter);
        let suffix = if counts { "_total" } else { "" };
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        let sample = format!("loadline_{family}{suffix}{labels}");
        // A scraper refuses a sample that comes twice.
        if self.seen.insert(sample.clone()) {
            self.lines.push((family, format!("{sample} {value}\n")));
        }
    }

    fn bytes(&mut self, family: &'static str, labels: &Labels<'_>, value: Option<u64>) {
        self.push(family, labels, value.map(|value| value as f64));
    }
}

fn of_jvm(samples: &mut Samples<'_>, jvm: &WatchedJvm) {
    let pid = jvm.pid.to_string();
    let [version, collector] = [&jvm.version, &jvm.collector].map(|text| text.as_deref().unwrap_or(""));
    let mut info = vec![("pid", pid.as_str()), ("version", version), ("collector", collector)];
    info.extend(jvm.labels.iter().map(|label| (label.name.as_str(), label.value.as_str())));
    samples.push("jvm_info", &info, Some(1.0));
    samples.push("jvm_age_seconds", &[], Some(jvm.age_s));
    let now = &jvm.now;
    for (kind, bytes) in [("anon", now.rss_anon_bytes), ("file", now.rss_file_bytes), ("shmem", now.rss_shmem_bytes)] {
        samples.bytes("memory_rss_bytes", &[("kind", kind)], bytes);
    }
    samples.bytes("memory_swap_bytes", &[], now.swap_bytes);
    for owner in &jvm.owners {
        samples.bytes("memory_counted_bytes", &[("owner", &owner.name)], Some(owner.bytes));
    }
    if let Some(account) = &jvm.account {
        for owner in account.owners.iter().take(WATCH_OWNERS_MAX) {
            samples.bytes("memory_resident_bytes", &[("owner", &owner.name)], Some(owner.bytes));
        }
        samples.push("memory_account_age_seconds", &[], Some(account.age_s));
    }
    let limit = jvm.limit.as_ref().map(|limit| limit.bytes);
    samples.bytes("memory_unreclaimable_bytes", &[], now.unreclaimable_bytes);
    samples.bytes("memory_limit_bytes", &[], limit);
    let headroom = limit.zip(now.unreclaimable_bytes).map(|(limit, held)| limit.saturating_sub(held));
    samples.bytes("memory_headroom_bytes", &[], headroom);
    of_growth(samples, &jvm.growth);
    samples.bytes("jvm_heap_used_bytes", &[], now.heap_used_bytes);
    samples.bytes("jvm_heap_committed_bytes", &[], now.heap_committed_bytes);
    samples.bytes("jvm_heap_floor_bytes", &[], now.heap_floor_bytes);
    samples.bytes("jvm_threads", &[], now.threads);
    samples.bytes("jvm_classes", &[], now.classes);
    samples.push("gc_pause_seconds", &[], now.gc_ms.map(|ms| ms as f64 / 1e3));
    samples.bytes("cgroup_oom_kills", &[], now.oom_kills);
    samples.push("watch_sample_seconds", &[], Some(jvm.sampling_ms / 1e3));
    samples.push("watch_unreadable", &[], Some(jvm.unreadable.len() as f64));
    samples.push("watch_set_aside", &[], jvm.set_aside.as_ref().map(|_| 1.0));
}

fn of_growth(samples: &mut Samples<'_>, growth: &GrowthRecord) {
    let owner = growth.owner.as_deref().unwrap_or("");
    let slopes =
        [("low", growth.bytes_per_hour_low), ("estimate", growth.bytes_per_hour), ("high", growth.bytes_per_hour_high)];
    for (bound, slope) in slopes {
        let labels = [("bound", bound), ("owner", owner)];
        samples.push("memory_growth_bytes_per_second", &labels, slope.map(|slope| slope / 3600.0));
    }
    // Of a hint there is one pace and no interval: no alert may take it for one.
    if growth.verdict == GrowthWord::Grows {
        for (bound, seconds) in [("soonest", growth.limit_in_s), ("latest", growth.limit_in_s_latest)] {
            samples.push("memory_limit_eta_seconds", &[("bound", bound)], seconds);
        }
    }
    for word in [GrowthWord::Steady, GrowthWord::Warming, GrowthWord::Grows, GrowthWord::CannotTell] {
        let is = f64::from(u8::from(word == growth.verdict));
        samples.push("growth_verdict", &[("verdict", word.name())], Some(is));
    }
    samples.push("memory_near_limit", &[], Some(f64::from(u8::from(growth.near_limit))));
}

#[cfg(test)]
mod tests {
    use super::super::{consumers, otlp, samples};
    use super::*;
    use crate::record::{WatchAccount, WatchLabel, WatchLimit, WatchOwner, WatchSample};

    /// Two JVMs, one that grows and one of which nothing could be read.
    fn watched(name: &str) -> WatchDocument {
        let mib = |mib: u64| Some(mib << 20);
        let now = WatchSample {
            rss_anon_bytes: mib(500),
            rss_file_bytes: mib(30),
            heap_used_bytes: mib(300),
            heap_floor_bytes: mib(200),
            unreclaimable_bytes: mib(510),
            gc_ms: Some(1_500),
            oom_kills: Some(0),
            ..WatchSample::default()
        };
        let growth = GrowthRecord {
            verdict: GrowthWord::Grows,
            owner: Some("direct".to_owned()),
            bytes_per_hour: Some(3_600_000.0),
            bytes_per_hour_low: Some(3_200_000.0),
            bytes_per_hour_high: Some(4_000_000.0),
            limit_in_s: Some(7_200.0),
            ..GrowthRecord::default()
        };
        let one = WatchedJvm {
            name: name.to_owned(),
            labels: vec![WatchLabel { name: "pod".to_owned(), value: name.to_owned() }],
            pid: 7,
            version: Some(name.to_owned()),
            now,
            limit: Some(WatchLimit { bytes: 600 << 20, cgroup: "/shop".to_owned() }),
            growth,
            owners: vec![WatchOwner { name: "direct".to_owned(), bytes: 100 << 20 }],
            ..WatchedJvm::default()
        };
        let blind = WatchedJvm { name: "blind".to_owned(), unreadable: vec!["no".to_owned()], ..WatchedJvm::default() };
        WatchDocument { jvms: vec![one, blind], loadline: "0.1.0".to_owned(), ..WatchDocument::default() }
    }

    #[test]
    fn what_is_watched_has_its_place() {
        let found = consumers::check_openmetrics(&scrape(&watched("shop"), &[], Exposition::OpenMetrics));
        let value = |series: &str| found.iter().find(|(name, _)| name == series).map(|(_, value)| *value);
        let mib = f64::from(1 << 20);
        for (series, expected) in [
            ("loadline_memory_rss_bytes{jvm=\"shop\",kind=\"anon\"}", Some(500.0 * mib)),
            ("loadline_memory_headroom_bytes{jvm=\"shop\"}", Some(90.0 * mib)),
            ("loadline_memory_growth_bytes_per_second{jvm=\"shop\",bound=\"estimate\",owner=\"direct\"}", Some(1000.0)),
            ("loadline_memory_limit_eta_seconds{jvm=\"shop\",bound=\"soonest\"}", Some(7200.0)),
            ("loadline_memory_limit_eta_seconds{jvm=\"shop\",bound=\"latest\"}", None),
            ("loadline_growth_verdict{jvm=\"shop\",verdict=\"grows\"}", Some(1.0)),
            ("loadline_growth_verdict{jvm=\"blind\",verdict=\"cannot_tell\"}", Some(1.0)),
            ("loadline_gc_pause_seconds_total{jvm=\"shop\"}", Some(1.5)),
            ("loadline_watch_unreadable{jvm=\"blind\"}", Some(1.0)),
            ("loadline_memory_rss_bytes{jvm=\"blind\",kind=\"anon\"}", None),
        ] {
            assert_eq!(value(series), expected, "{series}");
        }
    }

    #[test]
    fn what_has_gone_still_has_its_ends() {
        let ends = [WatchEnds { name: "gone".to_owned(), killed: 2, other: 1 }];
        let found = consumers::check_openmetrics(&scrape(&watched("shop"), &ends, Exposition::OpenMetrics));
        for (how, count) in [("killed", 2.0), ("other", 1.0)] {
            let series = format!("loadline_jvm_ends_total{{jvm=\"gone\",how=\"{how}\"}}");
            assert!(found.contains(&(series, count)), "{found:?}");
        }
    }

    #[test]
    fn owners_of_an_account_are_bounded_and_told_with_its_age() {
        let owners = (0..1000).map(|n| WatchOwner { name: format!("o{n}"), bytes: 1 << 20 }).collect();
        let mut document = watched("shop");
        document.jvms[0].account = Some(WatchAccount { age_s: 90.0, owners, ..WatchAccount::default() });
        let text = scrape(&document, &[], Exposition::OpenMetrics);
        let found = consumers::check_openmetrics(&text);
        let of = |family: &str| found.iter().filter(|(name, _)| name.starts_with(family)).count();
        assert_eq!(
            (of("loadline_memory_resident_bytes{"), of("loadline_memory_counted_bytes{")),
            (WATCH_OWNERS_MAX, 1)
        );
        assert!(found.contains(&("loadline_memory_account_age_seconds{jvm=\"shop\"}".to_owned(), 90.0)), "{text}");
        let json = otlp(&document, &[], 1);
        assert_eq!(json.matches("loadline.memory.owner").count(), WATCH_OWNERS_MAX + 1);
        assert!(
            !scrape(&watched("shop"), &[], Exposition::OpenMetrics).contains("account"),
            "no age without an account"
        );
    }

    #[test]
    fn a_hint_is_no_time_to_the_limit_that_an_alert_could_take_for_one() {
        let mut document = watched("shop");
        document.jvms[0].growth.verdict = GrowthWord::Warming;
        assert!(!scrape(&document, &[], Exposition::OpenMetrics).contains("eta"));
    }

    #[test]
    fn the_older_text_has_neither_units_nor_an_end() {
        let text = scrape(&watched("shop"), &[], Exposition::of("text/plain"));
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
        assert!(text.contains("# TYPE loadline_gc_pause_seconds_total counter\n"), "{text}");
        for (accept, expected) in [
            ("application/openmetrics-text;version=1.0.0,*/*;q=0.1", Exposition::OpenMetrics),
            // Prometheus 2.42 and 3.5.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Exposition::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;q=0.3",
                Exposition::OpenMetrics,
            ),
            ("text/plain;version=0.0.4, application/openmetrics-text;q=0.5", Exposition::Prometheus),
            ("application/openmetrics-text;q=0", Exposition::Prometheus),
            ("*/*", Exposition::Prometheus),
        ] {
            assert_eq!(Exposition::of(accept), expected, "{accept}");
        }
    }

    #[test]
    fn alerts_and_dashboard_name_what_is_exported() {
        let named = |(name, _, kind, _): &Family| {
            let total = if *kind == Kind::Counter { "_total" } else { "" };
            format!("loadline_{name}{total}")
        };
        let exported: BTreeSet<String> = FAMILIES.iter().map(named).collect();
        for text in [
            include_str!("../../../monitoring/dashboard.json"),
            include_str!("../../../monitoring/loadline.rules.yaml"),
            include_str!("../../../monitoring/loadline.rules.test.yaml"),
        ] {
            let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let names: BTreeSet<&str> = words.filter(|word| word.starts_with("loadline_")).collect();
            assert!(!names.is_empty());
            let unknown: Vec<&&str> = names.iter().filter(|name| !exported.contains(**name)).collect();
            assert!(unknown.is_empty(), "{unknown:?}");
        }
    }

    #[test]
    fn the_grammar_holds_for_any_text() {
        for text in samples::hostile_texts() {
            consumers::check_openmetrics(&scrape(&watched(&text), &[], Exposition::OpenMetrics));
            let json: serde_json::Value = serde_json::from_str(&otlp(&watched(&text), &[], 1)).unwrap();
            assert_eq!(json["resourceMetrics"].as_array().unwrap().len(), 2);
        }
        let nothing = consumers::check_openmetrics(&scrape(&WatchDocument::default(), &[], Exposition::OpenMetrics));
        assert_eq!(nothing.len(), 6, "that the watch runs: {nothing:?}");
    }
}
