//! A history over many runs: selected metrics by point, changes, and the owners that changed.

use super::commits::Commits;
use super::history_points::{Point, Run, points, records, usual};
use crate::comparison::{self, Followed, Holdings};
use crate::error::{Error, Result};
use crate::record::{
    ChangeRecord, Conditions, HISTORY_SCHEMA, HistoryBy, HistoryDocument, HistoryOrder, MetricHistory, MetricRecord,
    OwnerMove, PointRecord, PointValue, SeriesRecord, TrendRecord, Trial, Unit, each_once,
};
use crate::scenario::{Compare, CompareSettings, Derived};
use loadline_base::order::Order as _;
use std::collections::{BTreeMap, BTreeSet};

/// The default metrics: loaded and peak memory, the live heap, and allocation per request. Unmeasured ones are omitted.
const USUAL: [&str; 5] = ["rss.loaded", "pss.loaded", "rss_peak", "heap_live.collected", "alloc_per_request"];
/// Fixed, so that the same archives always give the same result.
const SEED: u64 = 1;
/// Maximum points per series; the latest are kept.
const POINTS_MAX: usize = 1_000;
/// Maximum messages about omitted data; a damaged disk may cause thousands.
const LEFT_OUT_MAX: usize = 50;
/// Maximum owners listed per change.
const OWNERS_MAX: usize = 5;
/// An owner that moves by a smaller share of the metric's change does not explain it.
const OWNER_SHARE: f64 = 0.1;
/// Nor does one that moves by fewer bytes.
const OWNER_BYTES: f64 = (256 << 10) as f64;
/// Metric families that are sums of owners at the same mark.
const SUMS: [&str; 5] = ["rss", "pss", "anon", "charge", "rss_in_use"];

/// The settings of a history.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct HistoryAsked {
    /// Metrics to follow (by default the usual ones), the least differences that matter, and the confidence of changes.
    #[command(flatten)]
    pub comparing: CompareSettings,
    /// How to group trials into points [default: commit if every archive has one, else build, else date]
    #[arg(long, value_name = "WHAT")]
    pub by: Option<HistoryBy>,
    /// Include only these configurations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Commits in order; empty if the date determines the order.
    #[arg(skip)]
    pub commits: Commits,
}

impl HistoryAsked {
    /// The metrics or metric families to follow.
    fn words(&self) -> Vec<&str> {
        match self.comparing.metrics.is_empty() {
            true => USUAL.to_vec(),
            false => self.comparing.metrics.iter().map(String::as_str).collect(),
        }
    }
}

/// Collects runs one by one, keeping only the data needed.
#[derive(Debug, Default)]
pub struct History {
    asked: HistoryAsked,
    runs: Vec<Run>,
    left_out: Vec<String>,
    seen: BTreeSet<String>,
    /// All metrics of the last run, to list what is available.
    last: Vec<Trial>,
}

impl History {
    /// An empty history.
    pub fn of(asked: HistoryAsked) -> Self {
        Self { asked, ..Self::default() }
    }

    /// Adds a run. `figures` are its scenario's derived figures, if still to be computed.
    pub fn add(&mut self, archive: &str, conditions: &Conditions, mut trials: Vec<Trial>, figures: &[Derived]) {
        if super::is_search(&trials) || super::is_tuning(&trials) {
            let what = if super::is_search(&trials) { "search" } else { "tuning" };
            return self.leave_out(format!("{archive} is a {what}, whose trials are not comparable over time"));
        }
        if !figures.is_empty() {
            trials.iter_mut().for_each(|trial| trial.figures = comparison::figures(figures, trial));
        }
        self.seen.extend(trials.iter().map(|trial| trial.configuration.clone()));
        let only = &self.asked.only;
        trials.retain(|trial| only.is_empty() || only.contains(&trial.configuration));
        let words = self.asked.words();
        let fits = |name: &str| words.iter().any(|word| comparison::fits(word, name));
        let at_mark = |mark: &str| words.iter().any(|word| word.rsplit_once('.').is_some_and(|(_, at)| at == mark));
        let runs = Run::of(archive, conditions, &trials, &fits, &at_mark);
        if runs.is_empty() && !trials.is_empty() {
            self.left_out.push(format!("{archive} has no completed trials"));
        }
        self.runs.extend(runs);
        self.last = trials;
    }

    /// Records that something is missing from the history.
    pub fn leave_out(&mut self, what: String) {
        self.left_out.push(what);
    }

    /// The document of all runs. Errors: `Request` if there is nothing to follow: no run, configuration, or metric.
    pub fn document(self) -> Result<HistoryDocument> {
        self.refuse_nothing()?;
        let Self { asked, runs, mut left_out, last, .. } = self;
        let mut compare = Compare::default();
        compare.apply(CompareSettings { metrics: Vec::new(), ..asked.comparing.clone() });
        let by = asked.by.unwrap_or_else(|| usual(&runs));
        let mut by_name: BTreeMap<(String, String), Vec<Run>> = BTreeMap::new();
        for run in runs {
            by_name.entry((run.scenario.clone(), run.configuration.clone())).or_default().push(run);
        }
        let (family, mut series) = (by_name.len(), Vec::new());
        for ((scenario, configuration), runs) in by_name {
            let mut points = points(runs, by, &asked.commits, &mut left_out);
            let more = points.len().saturating_sub(POINTS_MAX);
            if more > 0 {
                left_out.push(format!(
                    "the {more} oldest points of {scenario}, {configuration}: the maximum is \
                                   {POINTS_MAX}"
                ));
                points.drain(..more);
            }
            let followed = Series { points: &points, asked: &asked, compare: &compare, family };
            let records = records(&points, by, &asked.commits);
            let (metrics, refused) = followed.metrics(&records);
            if !points.is_empty() {
                series.push(SeriesRecord { scenario, configuration, points: records, metrics, refused });
            }
        }
        refuse_unmeasured(&series, &asked, &last)?;
        if series.is_empty() {
            return Err(Error::request("no archives are left").at(left_out.first().cloned().unwrap_or_default()));
        }
        left_out.sort();
        left_out.dedup();
        let more = left_out.len().saturating_sub(LEFT_OUT_MAX);
        left_out.truncate(LEFT_OUT_MAX);
        left_out.extend((more > 0).then(|| format!("and {more} more")));
        let order = if asked.commits.is_empty() { HistoryOrder::Date } else { HistoryOrder::Commits };
        let loadline = env!("CARGO_PKG_VERSION").to_owned();
        Ok(HistoryDocument { schema: HISTORY_SCHEMA.to_owned(), loadline, by, order, series, left_out })
    }

    fn refuse_nothing(&self) -> Result<()> {
        if let Some(name) = self.asked.only.iter().find(|name| !self.seen.contains(*name)) {
            let known: Vec<&str> = self.seen.iter().take(10).map(String::as_str).collect();
            return Err(Error::request(format!("no archive has a configuration named `{name}`"))
                .hint(format!("the configurations are {}", known.join(", "))));
        }
        if self.runs.is_empty() {
            let error = Error::request("there are no trials to show");
            let error = self.left_out.iter().take(5).fold(error, |error, what| error.at(what.clone()));
            return Err(error.hint("specify directories of archives, or the output of `--json`"));
        }
        Ok(())
    }
}

/// Rejects a history in which no requested metric was measured, with the reason.
fn refuse_unmeasured(series: &[SeriesRecord], asked: &HistoryAsked, last: &[Trial]) -> Result<()> {
    if asked.comparing.metrics.is_empty() || series.iter().any(|of| !of.metrics.is_empty()) {
        return Ok(());
    }
    let metrics = comparison::metrics(last);
    let why = asked.comparing.metrics.iter().find_map(|word| comparison::resolve(word, &metrics).err());
    Err(Error::request(why.unwrap_or_else(|| "none of the requested metrics was measured".to_owned())))
}

/// A configuration over its points.
struct Series<'a> {
    points: &'a [Point],
    asked: &'a HistoryAsked,
    compare: &'a Compare,
    /// The number of configurations followed together.
    family: usize,
}

impl Series<'_> {
    fn metrics(&self, records: &[PointRecord]) -> (Vec<MetricHistory>, Vec<String>) {
        let all: Vec<MetricRecord> = self.runs().flat_map(|run| run.metrics.iter().cloned()).collect();
        let (mut names, mut refused) = (Vec::new(), Vec::new());
        for word in self.asked.words() {
            match comparison::resolve(word, &all) {
                Ok(name) if !names.contains(&name) => names.push(name),
                Ok(_) => {}
                Err(why) => refused.extend((!self.asked.comparing.metrics.is_empty()).then_some(why)),
            }
        }
        if self.asked.comparing.metrics.is_empty() {
            // With several processes, RSS counts shared pages once per process; with one, PSS adds nothing.
            let several = self.runs().any(|run| run.metrics.iter().any(|of| of.metric == "processes.loaded"));
            names.retain(|name| if several { name != "rss.loaded" } else { name != "pss.loaded" });
        }
        let family = self.family * names.len();
        let metrics = names.iter().filter_map(|name| self.metric(name, &all, family, records)).collect();
        (metrics, refused)
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.points.iter().flat_map(|point| &point.runs)
    }

    fn metric(
        &self,
        name: &str,
        all: &[MetricRecord],
        family: usize,
        records: &[PointRecord],
    ) -> Option<MetricHistory> {
        let known = all.iter().find(|metric| metric.metric == name)?;
        let of_run = |run: &Run| -> Vec<f64> {
            let own = run.metrics.iter().filter(|metric| metric.metric == name);
            own.flat_map(|metric| &metric.values).filter(|value| value.used).map(|value| value.value).collect()
        };
        let values: Vec<Vec<f64>> =
            self.points.iter().map(|point| point.runs.iter().flat_map(of_run).collect()).collect();
        let followed = Followed { metric: name, unit: known.unit, better: known.better, values: &values };
        let moves = comparison::moves(&followed, family, self.compare, SEED);
        let count = |range: std::ops::Range<usize>| values[range].iter().map(Vec::len).sum::<usize>() as u32;
        let changed = |first: usize, last: usize| -> Vec<String> {
            let all = records[first..=last].iter().flat_map(|point| &point.conditions_changed);
            each_once(all.map(String::as_str)).into_iter().map(str::to_owned).collect()
        };
        let changes = moves.shifts.iter().map(|shift| {
            let [first, at, end] = shift.compared;
            ChangeRecord {
                point: shift.at as u32,
                point_first: shift.within.0 as u32,
                point_last: shift.within.1 as u32,
                difference: shift.difference,
                low: shift.ends.0,
                high: shift.ends.1,
                verdict: shift.verdict,
                trials_before: count(first..at),
                trials_after: count(at..end),
                // The last point with this metric may be further back.
                conditions_changed: changed(previous(&values, shift.within.0) + 1, shift.within.1),
                owners: self.owners(name, known.unit, shift.difference, [first, at, end]),
            }
        });
        let trends = moves.trends.iter().map(|trend| TrendRecord {
            point_first: trend.first as u32,
            point_last: trend.last as u32,
            difference: trend.difference,
            low: trend.ends.0,
            high: trend.ends.1,
            verdict: trend.verdict,
            conditions_changed: changed(trend.first + 1, trend.last),
            owners: {
                let middle = trend.first + (trend.last + 1 - trend.first) / 2;
                self.owners(name, known.unit, trend.difference, [trend.first, middle, trend.last + 1])
            },
        });
        Some(MetricHistory {
            metric: name.to_owned(),
            unit: known.unit,
            better: known.better,
            changes: changes.collect(),
            trends: trends.collect(),
            noise: moves.noise,
            values: values.iter().map(|values| value(values)).collect(),
        })
    }

    /// Owners behind a change, from the accounts at the metric's mark.
    fn owners(&self, metric: &str, unit: Unit, difference: f64, [first, at, end]: [usize; 3]) -> Vec<OwnerMove> {
        let Some((_, mark)) = metric.split_once('.').filter(|(family, _)| SUMS.contains(family)) else {
            return Vec::new();
        };
        let of = |range: std::ops::Range<usize>| -> Vec<&Holdings> {
            let runs = self.points[range].iter().flat_map(|point| &point.runs);
            runs.filter_map(|run| run.accounts.get(mark)).flatten().collect()
        };
        let (before, behind) = (of(first..at), of(at..end));
        let names: BTreeSet<&str> = before.iter().chain(&behind).flat_map(|held| held.owners()).collect();
        let values = |accounts: &[&Holdings], owner: &str| -> Vec<f64> {
            accounts.iter().filter_map(|held| held.bytes(owner)).map(|bytes| bytes as f64).collect()
        };
        let least = (difference.abs() * OWNER_SHARE).max(OWNER_BYTES);
        let moved = |owner: &str| {
            let (bytes, ends) = comparison::apart(&values(&before, owner), &values(&behind, owner), SEED)?;
            let told = bytes.abs() >= least && (ends.0 > 0.0 || ends.1 < 0.0);
            told.then(|| OwnerMove { owner: owner.to_owned(), bytes, bytes_low: ends.0, bytes_high: ends.1 })
        };
        let mut moved: Vec<OwnerMove> =
            if unit == Unit::Bytes { names.into_iter().filter_map(moved).collect() } else { Vec::new() };
        moved.order_by(|one, other| other.bytes.abs().total_cmp(&one.bytes.abs()));
        moved.truncate(OWNERS_MAX);
        moved
    }
}

/// The last earlier point with values.
fn previous(values: &[Vec<f64>], at: usize) -> usize {
    (0..at).rev().find(|before| !values[*before].is_empty()).unwrap_or(0)
}

fn value(values: &[f64]) -> Option<PointValue> {
    let (centre, ends) = comparison::centred(values)?;
    let (low, high) = ends.unzip();
    Some(PointValue { centre, low, high, trials: values.len() as u32 })
}
