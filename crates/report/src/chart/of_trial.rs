//! Charts of one trial: timeline, requests, and account at each mark.

use super::model::{Anchor, Axis, Band, Chart, Figure, Guide, Item, Panel, Sign};
use super::owners;
use super::scale::Scale;
use super::thin::{self, Density, Point, WIDTH};
use super::values::MIB;
use crate::owner::label;
use crate::record::{AccountRecord, Evidence, IntervalRecord, PhaseRecord, Sample, Trial};
use crate::scenario::MarkPoint;
use crate::summary::{account_of, mib};
use crate::table::Table;
use crate::units::{grouped, milliseconds, shortened};
use crate::words::dash;
use loadline_base::order::Order as _;

/// More requests than this are drawn as a density.
const DOTS_MAX: u64 = 2000;
/// Owners in the timeline's legend; the account's bars name every owner.
const OWNERS_NAMED: usize = 6;
/// Characters of a mark's name above its bar.
const MARK_CHARS: usize = 30;
/// Maximum failures drawn; the table counts all of them.
const CROSSES_MAX: usize = 300;
const ROWS_MAX: usize = 40;
const REQUESTS_HEIGHT: u32 = 200;
/// Cells of a density plot, horizontally and vertically.
const CELLS: (u32, u32) = (500, 50);
const LEVELS: u32 = 6;
/// Time classes are at most a tenth of a decade wide.
const CLASS_RATIO: f64 = 1.259;

/// Data shared by a trial's charts: time axis, marks, and phases.
struct Course<'a> {
    trial: &'a Trial,
    evidence: &'a Evidence,
    x: Axis,
}

/// The charts of account, timeline, and requests for which there is data.
pub(crate) fn figures(trial: &Trial, evidence: Option<&Evidence>) -> [Option<Figure>; 3] {
    let none = Evidence::default();
    let evidence = evidence.unwrap_or(&none);
    let ends = [
        evidence.timeline.last().map(|sample| sample.at_s),
        evidence.intervals.last().map(|interval| interval.at_s + interval.seconds),
        evidence.requests.last().map(|request| request.at_s),
        trial.marks.last().map(|mark| mark.at_s),
    ];
    let end = ends.into_iter().flatten().filter(|end| end.is_finite()).fold(1.0, f64::max);
    let x = Axis::new(Scale::linear(0.0, end * 1.01), "seconds since the command was started", " s", 8);
    let course = Course { trial, evidence, x };
    [accounts(trial), course.timeline(), course.requests()]
}

impl Course<'_> {
    fn chart(&self, what: &str, title: String, description: String) -> Chart {
        let guides = self.trial.marks.iter();
        let phases = self.trial.phases.iter();
        Chart {
            name: format!("{what}-trial-{}", self.trial.index + 1),
            title,
            description,
            group: format!("trial-{}", self.trial.index + 1),
            x: Some(self.x.clone()),
            panels: Vec::new(),
            guides: guides.map(|mark| Guide { x: self.x.across(mark.at_s), label: mark.name.clone() }).collect(),
            bands: phases
                .map(|phase| Band {
                    from: self.x.across(phase.at_s),
                    to: self.x.across(phase.at_s + phase.seconds),
                    label: phase.name.clone(),
                })
                .collect(),
            legend: Vec::new(),
        }
    }

    fn name(&self) -> String {
        format!("{}, trial {}", self.trial.configuration, self.trial.index + 1)
    }

    // ---- The timeline ----

    fn timeline(&self) -> Option<Figure> {
        if self.evidence.timeline.is_empty() {
            return None;
        }
        let title = format!("Timeline of {}", self.name());
        let description = "Memory, rate of successful responses, and GC time over the trial; vertical lines are \
            marks, shaded areas are phases.";
        let mut chart = self.chart("timeline", title, description.to_owned());
        let (memory, legend) = self.memory();
        chart.panels.push(memory);
        chart.legend = legend;
        chart.panels.extend(self.rate());
        chart.panels.extend(self.allocation());
        chart.panels.extend(self.collections());
        Some(Figure { chart, table: self.timeline_table() })
    }

    fn memory(&self) -> (Panel, Vec<(Sign, String)>) {
        type Value = fn(&Sample) -> Option<u64>;
        const SERIES: [(&str, &str, Value); 5] = [
            ("charge", "line l-charge", |sample| sample.charge_bytes),
            ("heap committed", "line l-committed", |sample| sample.heap_committed_bytes),
            ("heap used", "line l-used", |sample| sample.heap_used_bytes),
            ("direct memory", "line l-direct-line", |sample| sample.direct_bytes),
            ("RSS", "line l-rss", |sample| Some(sample.rss_bytes)),
        ];
        let samples = &self.evidence.timeline;
        let direct =
            if samples.iter().any(|sample| sample.direct_bytes.is_some()) { Vec::new() } else { self.direct() };
        let all = samples.iter().flat_map(|sample| SERIES.iter().filter_map(|(.., value)| value(sample)));
        let all = all.map(|bytes| bytes as f64 / MIB).chain(direct.iter().map(|(_, mib)| *mib));
        let y = Axis::new(Scale::from_zero(all), "MiB", " MiB", 5);
        let height = 220;
        let (mut items, areas) = self.owners(&y, height);
        let mut legend = Vec::new();
        for (name, class, value) in SERIES {
            let known = samples.iter().filter_map(|sample| Some((sample.at_s, value(sample)?)));
            let points: Vec<Point> =
                known.map(|(at, bytes)| (self.x.across(at), y.down(bytes as f64 / MIB, height))).collect();
            if !points.is_empty() {
                items.push(Item::line(&points, class, name));
                legend.insert(0, (Sign::Line(class.to_owned()), name.to_owned()));
            }
        }
        for (at, mib) in &direct {
            let at = (self.x.across(*at), y.down(*mib, height));
            items.push(Item::mark(at, 2, "l-direct", format!("direct memory {mib:.1} MiB")));
        }
        if !direct.is_empty() {
            let words = "direct memory (NMT's Other, at marks)".to_owned();
            legend.push((Sign::Mark(2, "l-direct".to_owned()), words));
        }
        legend.extend(areas);
        (Panel::plot("memory, MiB; areas: owners at marks", y, height, items), legend)
    }

    /// Owners stacked from mark to mark, with a legend for the largest.
    fn owners(&self, y: &Axis, height: u32) -> (Vec<Item>, Vec<(Sign, String)>) {
        let marks = self.trial.marks.iter();
        let accounts: Vec<(f64, &AccountRecord)> =
            marks.filter_map(|mark| Some((mark.at_s, account_of(mark)?))).collect();
        if accounts.len() < 2 {
            return (Vec::new(), Vec::new());
        }
        let of_accounts = accounts.iter().flat_map(|(_, account)| &account.owners);
        let names = owners::in_order(of_accounts.map(|owner| owner.name.as_str()));
        let mut below = vec![0.0; accounts.len()];
        let mut items = Vec::new();
        for name in &names {
            let above: Vec<f64> =
                accounts.iter().zip(&below).map(|((_, account), sum)| sum + account.holds(name) as f64 / MIB).collect();
            let edge = |tops: &[f64]| -> Vec<Point> {
                accounts.iter().zip(tops).map(|((at, _), top)| (self.x.across(*at), y.down(*top, height))).collect()
            };
            let (lower, upper) = (edge(&below), edge(&above));
            if lower != upper {
                let points = lower.into_iter().chain(upper.into_iter().rev()).collect();
                items.push(Item::Fill { points, class: owners::class(name) });
            }
            below = above;
        }
        let most = |name: &str| accounts.iter().map(|(_, account)| account.holds(name)).max().unwrap_or(0);
        let mut largest = names;
        largest.largest_first(|name| most(name));
        largest.truncate(OWNERS_NAMED);
        let keys = largest.into_iter().map(|name| owners::key(name, label(name).to_owned())).collect();
        (items, keys)
    }

    /// Direct buffers at the marks, in MiB, if samples lack them. NMT counts them as Other.
    fn direct(&self) -> Vec<(f64, f64)> {
        let other = |mark: &crate::record::Mark| {
            let nmt = mark.nmt.as_ref()?;
            let other = nmt.categories.iter().find(|category| category.name == "Other")?;
            Some((mark.at_s, other.committed_bytes as f64 / MIB))
        };
        self.trial.marks.iter().filter_map(other).collect()
    }

    /// Correct responses per second, from intervals or else between samples.
    fn rates(&self) -> Vec<(f64, f64, f64)> {
        let intervals = &self.evidence.intervals;
        if !intervals.is_empty() {
            let rate = |interval: &IntervalRecord| {
                let seconds = interval.seconds.max(1e-3);
                (interval.at_s, interval.at_s + seconds, interval.ok as f64 / seconds)
            };
            return intervals.iter().map(rate).collect();
        }
        let mut found = Vec::new();
        let mut before: Option<&Sample> = None;
        for sample in &self.evidence.timeline {
            match before {
                // A span of at least a second smooths out uneven samples. A lower count means that a new phase began.
                Some(last) if sample.ok >= last.ok && sample.at_s - last.at_s < 1.0 => continue,
                Some(last) if sample.ok > last.ok => {
                    let rate = (sample.ok - last.ok) as f64 / (sample.at_s - last.at_s);
                    found.push((last.at_s, sample.at_s, rate));
                }
                _ => {}
            }
            before = Some(sample);
        }
        found
    }

    fn rate(&self) -> Option<Panel> {
        let rates = self.rates();
        if rates.is_empty() {
            return None;
        }
        let height = 80;
        let y = Axis::new(Scale::from_zero(rates.iter().map(|(.., rate)| *rate)), "per second", "/s", 3);
        let mut points: Vec<Point> = Vec::new();
        let mut end = f64::NEG_INFINITY;
        for (from, to, rate) in &rates {
            let (left, right, level) = (self.x.across(*from), self.x.across(*to), y.down(*rate, height));
            // There are no responses between phases.
            if from - end > 0.2 {
                if end.is_finite() {
                    points.push((self.x.across(end), height * 10));
                }
                points.push((left, height * 10));
            }
            points.extend([(left, level), (right, level)]);
            end = *to;
        }
        points.push((self.x.across(end), height * 10));
        let line = Item::line(&points, "line l-rate", "successful responses");
        Some(Panel::plot("successful responses per second", y, height, vec![line]))
    }

    /// GC time between successive samples: the later sample's time, and the GC time in ms.
    fn pauses(&self) -> Vec<(f64, f64)> {
        let known: Vec<(f64, f64)> =
            self.evidence.timeline.iter().filter_map(|sample| Some((sample.at_s, sample.gc_ms?))).collect();
        let between = known.windows(2).map(|pair| (pair[1].0, pair[1].1 - pair[0].1));
        between.filter(|(_, ms)| *ms > 0.0).collect()
    }

    /// Bytes allocated in the Java heap between readings of the counters.
    fn allocation(&self) -> Option<Panel> {
        let seen = self.evidence.timeline.iter().filter_map(|sample| Some((sample.at_s, sample.allocated_bytes?)));
        let seen: Vec<(f64, u64)> = seen.collect();
        let rates: Vec<(f64, f64, f64)> = seen
            .windows(2)
            .filter(|pair| pair[1].0 > pair[0].0)
            .map(|pair| (pair[0].0, pair[1].0, pair[1].1.saturating_sub(pair[0].1) as f64 / (pair[1].0 - pair[0].0)))
            .collect();
        if rates.is_empty() {
            return None;
        }
        let height = 64;
        let y = Axis::new(Scale::from_zero(rates.iter().map(|(.., rate)| rate / MIB)), "MiB/s", " MiB/s", 3);
        let points = rates.iter().flat_map(|(from, to, rate)| {
            let level = y.down(rate / MIB, height);
            [(self.x.across(*from), level), (self.x.across(*to), level)]
        });
        let line = Item::line(&points.collect::<Vec<Point>>(), "line l-alloc", "allocated");
        Some(Panel::plot("MiB allocated in the Java heap per second", y, height, vec![line]))
    }

    fn collections(&self) -> Option<Panel> {
        if self.evidence.timeline.iter().all(|sample| sample.gc_ms.is_none()) {
            return None;
        }
        let pauses = self.pauses();
        let height = 64;
        let y = Axis::new(Scale::from_zero(pauses.iter().map(|(_, ms)| *ms)), "ms", " ms", 3);
        let mut points: Vec<Point> = pauses.iter().map(|(at, ms)| (self.x.across(*at), y.down(*ms, height))).collect();
        // Keeps only the longest pause per column; the y axis points down.
        points.sort_unstable();
        points.dedup_by_key(|point| point.0 * thin::COLUMNS / WIDTH);
        let name = "time in GC".to_owned();
        let items = vec![Item::Stems { points, class: "line l-gc".to_owned(), name }];
        Some(Panel::plot("GC time per sample, ms", y, height, items))
    }

    fn timeline_table(&self) -> Table {
        let samples = &self.evidence.timeline;
        let every = samples.len().div_ceil(ROWS_MAX).max(1);
        let rows = samples.chunks(every).filter_map(|part| Some(timeline_row(part, part.first()?, part.last()?)));
        let note = match every {
            1 => "Every sample.".to_owned(),
            every => {
                format!("One row per {every} samples: their highest RSS, and the other values from the last sample.")
            }
        };
        let head = ["from s", "to s", "RSS MiB", "heap used", "committed", "charge", "direct", "GCs", "GC ms"];
        Table::new("Timeline as a table", head, rows).noted([note])
    }

    // ---- Requests ----

    fn requests(&self) -> Option<Figure> {
        let Evidence { intervals, requests, .. } = self.evidence;
        let counted: u64 = intervals.iter().flat_map(|interval| &interval.classes).map(|(_, count)| *count).sum();
        if counted == 0 && requests.is_empty() {
            return None;
        }
        let dense = counted > DOTS_MAX;
        let times = intervals.iter().flat_map(|interval| interval.classes.iter().map(|class| class.0));
        let times = times.chain(requests.iter().map(|request| request.ms.max(0.001)));
        let y = Axis::new(Scale::log_around(times), "ms", " ms", 8);
        let failures: Vec<Point> = requests.iter().filter(|request| request.failed).map(|r| self.dot(&y, r)).collect();
        let mut legend = Vec::new();
        let mut items = Vec::new();
        if dense {
            let area = |level: u32| Sign::Area(format!("d{level}"), false);
            legend.push((area(1), "few responses".to_owned()));
            legend.push((area(LEVELS), "many responses (each shade is a multiple of the one before)".to_owned()));
            items.extend(self.density(&y));
            for (quantile, class, name) in [(0.5, "line l-p50", "median"), (0.99, "line l-p99", "p99")] {
                items.extend(self.quantile_line(&y, quantile, class, name));
                legend.push((Sign::Line(class.to_owned()), name.to_owned()));
            }
        } else {
            legend.push((Sign::Dot("dots".to_owned()), "a request".to_owned()));
            let ok = requests.iter().filter(|request| !request.failed).map(|request| self.dot(&y, request));
            items.push(Item::Dots { points: thin::dots(ok), class: "dots".to_owned() });
        }
        if !failures.is_empty() {
            legend.push((Sign::Cross, "a failed request".to_owned()));
            items.push(Item::Crosses(thin::evenly(&thin::dots(failures.into_iter()), CROSSES_MAX)));
        }
        let open = self.trial.phases.iter().any(PhaseRecord::is_open);
        let what = if open { "Response times" } else { "Service times" };
        let shown = if dense { "a heat map of response counts" } else { "a dot for each request" };
        let mut chart = self.chart(
            "requests",
            format!("{what} of {}", self.name()),
            format!("{shown}, at its actual start; the time scale is logarithmic. Crosses are failed requests."),
        );
        chart.panels = vec![Panel::plot(format!("{what}, ms"), y, REQUESTS_HEIGHT, items)];
        chart.legend = legend;
        Some(Figure { chart, table: self.requests_table() })
    }

    fn dot(&self, y: &Axis, request: &crate::record::RequestDot) -> Point {
        (self.x.across(request.at_s), y.down(request.ms.max(0.001), REQUESTS_HEIGHT))
    }

    fn density(&self, y: &Axis) -> Vec<Item> {
        let mut density = Density::new(CELLS.0, CELLS.1);
        let column = |at: f64| self.x.across(at) * CELLS.0 / (WIDTH + 1);
        let row = |ms: f64| y.down(ms, REQUESTS_HEIGHT) * CELLS.1 / (REQUESTS_HEIGHT * 10 + 1);
        for interval in &self.evidence.intervals {
            let (from, to) = (column(interval.at_s), column(interval.at_s + interval.seconds));
            // The column where an interval ends belongs to the next interval.
            let across = (from, if to > from { to - 1 } else { from });
            let mut below = 0.0f64;
            for (edge, count) in &interval.classes {
                let lower = below.max(edge / CLASS_RATIO);
                below = *edge;
                if *count > 0 {
                    density.add(across, (row(*edge), row(lower * 1.001)), *count as f64);
                }
            }
        }
        let (width, height) = (WIDTH / CELLS.0, REQUESTS_HEIGHT * 10 / CELLS.1);
        let levels = density.levels(LEVELS).into_iter().enumerate();
        levels
            .map(|(level, stretches)| Item::Stretches {
                runs: stretches
                    .iter()
                    .map(|s| ((s.from * width, s.row * height + height / 2), (s.to - s.from) * width))
                    .collect(),
                thick: height,
                class: format!("run d{}", level + 1),
            })
            .collect()
    }

    fn quantile_line(&self, y: &Axis, quantile: f64, class: &str, name: &str) -> Vec<Item> {
        // One line per phase, because there is nothing between phases.
        let phases = self.evidence.intervals.chunk_by(|left, right| left.phase == right.phase);
        let line = |intervals: &[IntervalRecord]| {
            let point = |interval: &IntervalRecord| {
                let ms = class_quantile(&interval.classes, quantile)?;
                Some((self.x.across(interval.at_s + interval.seconds / 2.0), y.down(ms, REQUESTS_HEIGHT)))
            };
            let points: Vec<Point> = intervals.iter().filter_map(point).collect();
            Item::line(&points, class, name)
        };
        phases.map(line).filter(|item| !matches!(item, Item::Line { points, .. } if points.is_empty())).collect()
    }

    fn requests_table(&self) -> Table {
        let intervals = &self.evidence.intervals;
        let every = intervals.len().div_ceil(ROWS_MAX).max(1);
        let phases = intervals.chunk_by(|left, right| left.phase == right.phase);
        let rows = phases.flat_map(|same| same.chunks(every)).map(|part| self.requests_row(part));
        let failed = self.evidence.requests.iter().filter(|request| request.failed).count();
        let notes = [
            format!("{failed} of the {} recorded requests failed.", self.evidence.requests.len()),
            "Quantiles are the upper bounds of their histogram buckets.".to_owned(),
        ];
        let head = ["phase", "from s", "to s", "responses", "p50 ms", "p90", "p99", "longest"];
        Table::new("Requests as a table", head, rows).noted(notes)
    }

    fn requests_row(&self, part: &[IntervalRecord]) -> Vec<String> {
        let mut classes: Vec<(f64, u64)> = part.iter().flat_map(|interval| interval.classes.iter().copied()).collect();
        classes.order_by(|left, right| left.0.total_cmp(&right.0));
        let first = part.first().map(|of| (of.phase.clone(), format!("{:.1}", of.at_s)));
        let (phase, from) = first.unwrap_or_default();
        let to = part.last().map_or(String::new(), |of| format!("{:.1}", of.at_s + of.seconds));
        let answers = grouped(classes.iter().map(|(_, count)| *count).sum());
        let times = [0.5, 0.9, 0.99, 1.0].map(|q| class_quantile(&classes, q).map_or_else(dash, milliseconds));
        [phase, from, to, answers].into_iter().chain(times).collect()
    }
}

/// Consecutive samples as a row: the highest RSS, and the other values from the last sample that has them.
fn timeline_row(part: &[Sample], first: &Sample, last: &Sample) -> Vec<String> {
    vec![
        format!("{:.1}", first.at_s),
        format!("{:.1}", last.at_s),
        mib(part.iter().map(|sample| sample.rss_bytes).max()),
        mib(last.heap_used_bytes),
        mib(last.heap_committed_bytes),
        mib(last.charge_bytes),
        // Only about one sample per second has `direct_bytes`.
        mib(part.iter().rev().find_map(|sample| sample.direct_bytes)),
        last.gc_count.map_or_else(dash, grouped),
        last.gc_ms.map_or_else(dash, |ms| format!("{ms:.0}")),
    ]
}

/// The upper bound of the class that contains a quantile; classes are ascending.
fn class_quantile(classes: &[(f64, u64)], quantile: f64) -> Option<f64> {
    let total: u64 = classes.iter().map(|(_, count)| *count).sum();
    let wanted = (quantile * total as f64).ceil().max(1.0);
    let mut sum = 0;
    classes.iter().find_map(|(edge, count)| {
        sum += count;
        (sum as f64 >= wanted).then_some(*edge)
    })
}

// ---- The account ----

/// A bar per mark with an account, divided by owner.
fn accounts(trial: &Trial) -> Option<Figure> {
    let marks: Vec<(&str, &AccountRecord)> =
        trial.marks.iter().filter_map(|mark| Some((mark.name.as_str(), account_of(mark)?))).collect();
    // The legend shows the numbers of the most important mark.
    let shown = marks.iter().find(|(name, _)| *name == MarkPoint::Loaded.word()).or(marks.last()).copied()?;
    let names = owners::in_order(marks.iter().flat_map(|(_, of)| &of.owners).map(|owner| owner.name.as_str()));
    let total = |account: &AccountRecord| account.total_bytes as f64 / MIB;
    let scale = Scale::from_zero(marks.iter().map(|(_, account)| total(account)));
    let x = Axis::new(scale, "resident, MiB", " MiB", 8);
    let mut items = Vec::new();
    for (row, (mark, account)) in marks.iter().enumerate() {
        let top = row as u32 * 420;
        let words = format!("{}: {:.1} MiB", shortened(mark, MARK_CHARS), total(account));
        items.push(Item::words((0, top + 120), Anchor::Start, words, "strong"));
        let parts = names.iter().map(|name| (*name, held(account, name).unwrap_or(0) as f64));
        items.extend(owners::bar(parts, &x, top + 170, true));
    }
    let title = format!("Account of {}, trial {}, with MiB at {}", trial.configuration, trial.index + 1, shown.0);
    let legend = names.iter().map(|name| {
        let bytes = held(shown.1, name).unwrap_or(0);
        let words = if bytes > 0 { format!("{} {}", label(name), mib(bytes)) } else { label(name).to_owned() };
        owners::key(name, words)
    });
    let chart = Chart {
        name: format!("account-trial-{}", trial.index + 1),
        title,
        description: "One bar per mark: resident memory by owner.".to_owned(),
        x: Some(x),
        panels: vec![Panel::rows(marks.len() as u32 * 42, items)],
        legend: legend.collect(),
        ..Chart::default()
    };
    Some(Figure { chart, table: accounts_table(&marks, &names) })
}

fn accounts_table(marks: &[(&str, &AccountRecord)], names: &[&str]) -> Table {
    let row = |name: &str, bytes: &dyn Fn(&AccountRecord) -> Option<u64>| -> Vec<String> {
        let cells = marks.iter().map(|(_, account)| mib(bytes(account)));
        std::iter::once(name.to_owned()).chain(cells).collect()
    };
    let rows = names.iter().map(|name| row(label(name), &|account| held(account, name)));
    let head = std::iter::once("owner").chain(marks.iter().map(|(mark, _)| *mark));
    let total = row("RSS", &|account| Some(account.total_bytes));
    Table::new("Account as a table, MiB", head, rows.chain([total]))
}

/// An owner's bytes at a mark; `None` if the account does not list it.
fn held(account: &AccountRecord, name: &str) -> Option<u64> {
    let own = account.owners.iter().filter(|owner| owner.name == name);
    own.map(|owner| owner.rss_bytes).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_quantiles_are_class_edges() {
        let classes = [(1.0, 50), (2.0, 49), (10.0, 1)];
        for (quantile, expect) in [(0.5, 1.0), (0.51, 2.0), (0.99, 2.0), (1.0, 10.0)] {
            assert_eq!(class_quantile(&classes, quantile), Some(expect));
        }
        assert_eq!(class_quantile(&[], 0.5), None);
    }

    #[test]
    fn a_trial_without_evidence_has_no_timeline() {
        assert!(figures(&Trial::new("serial", 0, 0), None).iter().all(Option::is_none));
    }
}
