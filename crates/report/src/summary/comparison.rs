//! The comparison of trials: verdicts in words and in a table, then dominated configurations, budgets, and disturbances
//! of blocks.

use super::super::quantity::{Estimate, Quantity, budget_number, shown};
use super::super::width::{first, last, width};
use super::super::words::{NONE, Pair, VERDICTS, answering_pairs, dash, gathered, metric_of, pairs, word_of};
use crate::comparison::{seconds_of_a_trial, split};
use crate::page::{Fold, Part, Section, Topic, Verdict};
use crate::record::{
    BudgetRecord, BudgetVerdict, ComparisonRecord, DifferenceVerdict, Document, LeastRecord, MetricRecord, Outcome,
    ParetoPoint, ParetoRecord, Trial, Unit, each_once, tells_nothing,
};
use crate::table::{Cell, Table};
use crate::units::{per_second, roughly, several, trimmed};
use crate::words::Standing;

/// Whether trials were repeated in blocks, so that differences have intervals.
pub(super) fn compares(document: &Document) -> bool {
    document.comparisons.iter().any(|row| row.blocks > 1)
}

/// A sentence per candidate: `serial against g1: better in rss.loaded, worse in rate.steady, …`.
pub(super) fn judged(document: &Document) -> Vec<Verdict> {
    answering_pairs(document).iter().map(verdict).collect()
}

/// A pair's sentence, marked by its worst verdict.
fn verdict(pair: &Pair<'_>) -> Verdict {
    let Pair { candidate, baseline, rows } = pair;
    let order = [DifferenceVerdict::Worse, DifferenceVerdict::Better, DifferenceVerdict::Equivalent];
    let most = order.into_iter().find(|verdict| rows.iter().any(|row| row.verdict == *verdict));
    let most = most.unwrap_or(DifferenceVerdict::CannotTell);
    Verdict::new(most.into(), word_of(most), sentence(rows)).about(format!("{candidate} vs. {baseline}"))
}

fn sentence(rows: &[&ComparisonRecord]) -> String {
    let memory = rows.iter().find(|row| row.unit == Unit::Bytes && !says_nothing(row));
    if tells_nothing(rows) {
        let memory = memory.map(|row| format!("; {} {}", row.metric, Estimate::judged(row)));
        return format!("no verdict on any of the {} metrics{}.", rows.len(), memory.unwrap_or_default());
    }
    // A significant difference needs its size; a difference in memory is always of interest.
    let told = |row: &&&ComparisonRecord| {
        let is_memory = memory.is_some_and(|memory| memory.metric == row.metric);
        match row.verdict {
            DifferenceVerdict::Better | DifferenceVerdict::Worse => format!("{} {}", row.metric, Estimate::judged(row)),
            DifferenceVerdict::CannotTell if is_memory => format!("{} {}", row.metric, Estimate::judged(row)),
            DifferenceVerdict::Equivalent | DifferenceVerdict::CannotTell => row.metric.clone(),
        }
    };
    let said = VERDICTS.into_iter().filter_map(|verdict| {
        let metrics: Vec<String> = rows.iter().filter(|row| row.verdict == verdict).map(|row| told(&row)).collect();
        let link = if verdict == DifferenceVerdict::CannotTell { " for" } else { " in" };
        (!metrics.is_empty()).then(|| format!("{}{link} {}", word_of(verdict), metrics.join(", ")))
    });
    format!("{}.", said.collect::<Vec<_>>().join("; "))
}

/// Unjudged figures: a different startup time, and CPU time as cores.
pub(super) fn also(document: &Document) -> Option<Part> {
    let [pair] = pairs(document, true).try_into().ok()?;
    let start_up = document.comparisons.iter().find(|row| row.metric == "start_up" && !row.primary && is_decided(row));
    let start_up = start_up.map(|row| {
        let [before, after] = medians_of(row);
        format!("startup {before} to {after}, {}: {}", word_of(row.verdict), Estimate::judged(row))
    });
    let cores = pair.rows.iter().find_map(|row| {
        let phase = row.metric.strip_prefix("cpu_per_1000.")?;
        let mut phases = document.trials.iter().flat_map(|trial| &trial.phases).filter(|of| of.name == phase);
        let rate = phases.find_map(|of| of.offered_per_s)?;
        let [before, after] = [row.baseline_median, row.candidate_median].map(|seconds| seconds * rate / 1000.0);
        let verdict = word_of(row.verdict);
        Some(format!("CPU {before:.3} to {after:.3} cores at {}/s, {verdict}", per_second(rate)))
    });
    let told: Vec<String> = start_up.into_iter().chain(cores).collect();
    (!told.is_empty()).then(|| Part::Text(format!("Medians: {}.", told.join("; "))))
}

/// Noise that may explain undecided metrics.
pub(super) fn noise(document: &Document) -> Option<Part> {
    let pairs = answering_pairs(document);
    let is_open = pairs.iter().any(|pair| undecided(&pair.rows).next().is_some());
    let used = || document.blocks.iter().filter(|block| block.used);
    let disturbed: Vec<(u32, &str)> =
        used().filter_map(|block| Some((block.block + 1, block.disturbed.as_deref()?))).collect();
    let (block, how) = disturbed.first().filter(|_| is_open)?;
    let (how, _) = how.split_once(" (")?;
    let counts = format!("{} of {}", disturbed.len(), several(used().count() as u64, "block"));
    let shown = format!("{counts} were disturbed (block {block}: {how}). A quiet machine needs fewer blocks.");
    Some(Part::Text(shown))
}

fn is_decided(row: &ComparisonRecord) -> bool {
    matches!(row.verdict, DifferenceVerdict::Better | DifferenceVerdict::Worse)
}

/// The judged metrics, verdict first: with both medians for one candidate, in one table for several.
pub(super) fn verdicts(document: &Document) -> Vec<Part> {
    let answering = answering_pairs(document);
    let mut tables: Vec<Table> = match document.effects.is_empty() {
        true => table_of_pairs(&answering, "").into_iter().collect(),
        false => {
            let by_axis =
                gathered(answering.iter().map(|pair| (pair.baseline, pair.clone())), |one, other| one == other);
            by_axis.iter().filter_map(|(_, pairs)| table_of_pairs(pairs, ", averaged over the other axes")).collect()
        }
    };
    let rows = rows_of(&answering);
    if let Some(last) = tables.last_mut() {
        last.notes.extend(notes(&rows, answering.len() == 1));
        last.notes.extend(needed(document, &rows));
    }
    if !document.effects.is_empty() {
        let each = pairs(document, true);
        let table = table_of_pairs(&each, ", one by one");
        tables.extend(table.map(|table| table.noted(interval_note(&rows_of(&each)))));
    }
    tables.into_iter().map(Part::Table).collect()
}

fn rows_of<'a>(pairs: &[Pair<'a>]) -> Vec<&'a ComparisonRecord> {
    pairs.iter().flat_map(|pair| &pair.rows).copied().collect()
}

/// The table of these pairs, which have a common baseline unless they are archives; `how` completes its title.
fn table_of_pairs(pairs: &[Pair<'_>], how: &str) -> Option<Table> {
    Some(match pairs {
        [] => return None,
        [pair] => table_of(pair, "", how),
        [Pair { baseline, .. }, others @ ..] if others.iter().all(|other| other.baseline == *baseline) => {
            table_of_several(pairs, &format!("vs. {baseline}{how}"))
        }
        _ => table_of_several(pairs, "second archive vs. first"),
    })
}

/// Every metric, for users who want more than the judged ones.
pub(super) fn all_metrics(document: &Document) -> Section {
    let table = |pair: &Pair<'_>| {
        let mut table = table_of(pair, "details, ", "");
        table.notes.extend(notes(&pair.rows, true));
        Part::Table(table)
    };
    let mut parts: Vec<Part> = pairs(document, false).iter().map(table).collect();
    // Trials of searches and tunings differ on purpose, so their medians are meaningless.
    let searched = document.find.is_some() || document.tune.is_some();
    if document.comparisons.is_empty() && !searched && !document.metrics.is_empty() {
        parts.push(Part::Table(medians(&document.metrics)));
    }
    Section::titled(Topic::Details, "all metrics", parts).id("details").folded(Fold::Closed)
}

/// A row per metric and configuration.
fn medians(metrics: &[MetricRecord]) -> Table {
    let row = |of: &MetricRecord| -> Vec<Cell> {
        let [median, interval] = Cell::estimate(Estimate::new(of.unit, of.median, of.low.zip(of.high)));
        let used = of.values.iter().filter(|value| value.used).count().to_string();
        vec![of.configuration.as_str().into(), of.metric.as_str().into(), median, interval, used.into()]
    };
    let head = ["configuration", "metric", "median", "interval", "trials"];
    Table::new("medians of all trials", head, metrics.iter().map(row)).worded(2, 0)
}

fn table_of(Pair { candidate, baseline, rows }: &Pair<'_>, what: &str, how: &str) -> Table {
    let [before, after] = brief([baseline, candidate]);
    let head = ["verdict", "metric", &before, &after, "difference", "interval"];
    let rows = rows.iter().map(|row| with_medians(row, &row.metric).to_vec());
    Table::new(format!("{what}{candidate} vs. {baseline}{how}"), head, rows).worded(2, 0)
}

/// A metric's row: verdict, both medians, and the difference with its interval.
pub(super) fn with_medians(row: &ComparisonRecord, metric: &str) -> [Cell; 6] {
    let ([before, after], [difference, interval]) = (medians_of(row).map(Cell::from), difference(row));
    [Cell::judged(row.verdict), metric.into(), before, after, difference, interval]
}

fn medians_of(row: &ComparisonRecord) -> [Quantity; 2] {
    [row.baseline_median, row.candidate_median].map(|value| Quantity::new(row.unit, value))
}

/// The difference with its interval, unless that is uninformative.
fn difference(row: &ComparisonRecord) -> [Cell; 2] {
    unless_vague(row, Estimate::judged(row))
}

/// This estimate of a row's difference with its interval, unless the row is uninformative.
pub(super) fn unless_vague(row: &ComparisonRecord, estimate: Estimate) -> [Cell; 2] {
    match says_nothing(row) {
        true => [dash().into(), "no information".into()],
        false => Cell::estimate(estimate),
    }
}

/// If the ends of an undecided ratio's interval differ by more than this factor, the interval is uninformative: it
/// cannot distinguish half from the whole.
const APART_MAX: f64 = 2.0;

/// Whether an undecided row's interval is uninformative. The interval of an amount is, if it allows negative amounts.
fn says_nothing(row: &ComparisonRecord) -> bool {
    let is_vague = match row.least {
        LeastRecord::Relative(_) => row.ratio_low.zip(row.ratio_high).is_some_and(|(low, high)| high > APART_MAX * low),
        LeastRecord::Absolute(least) => row.low.is_some_and(|low| row.baseline_median + low < -least),
    };
    is_vague && row.verdict == DifferenceVerdict::CannotTell
}

/// In a longer table, a candidate without any verdict has one row.
const PAIRS_SHOWN_MAX: usize = 3;

/// The table for several candidates. Their medians are in the table of memory and speed. A candidate without any result
/// has one row.
fn table_of_several(pairs: &[Pair<'_>], title: &str) -> Table {
    let row = |row: &&ComparisonRecord| -> Vec<Cell> {
        let [difference, interval] = difference(row);
        let [candidate, metric] = [&row.candidate, &row.metric].map(|name| name.as_str().into());
        vec![Cell::judged(row.verdict), candidate, metric, difference, interval]
    };
    let is_long = pairs.len() > PAIRS_SHOWN_MAX;
    let of_pair = |Pair { candidate, rows, .. }: &Pair<'_>| match is_long && tells_nothing(rows) {
        true => {
            let all = format!("all {}", rows.len());
            let rest = [*candidate, all.as_str(), NONE, NONE].map(Cell::from);
            vec![std::iter::once(Cell::judged(DifferenceVerdict::CannotTell)).chain(rest).collect()]
        }
        false => rows.iter().map(row).collect(),
    };
    let head = ["verdict", "candidate", "metric", "difference", "interval"];
    Table::new(title, head, pairs.iter().flat_map(of_pair)).worded(3, 0)
}

/// Truncates two names to leave room for numbers, keeping the parts that differ.
pub(super) fn brief(names: [&str; 2]) -> [String; 2] {
    const WIDTH: usize = 12;
    let cut = |name: &str, short: &dyn Fn() -> String| if width(name) > WIDTH { short() } else { name.to_owned() };
    let begin = names.map(|name| cut(name, &|| format!("{}…", first(name, WIDTH - 1))));
    let end = || names.map(|name| cut(name, &|| format!("…{}", last(name, WIDTH - 1))));
    if begin[0] == begin[1] { end() } else { begin }
}

/// The lines below a table of differences, which may contain both medians.
fn notes(rows: &[&ComparisonRecord], has_medians: bool) -> impl Iterator<Item = String> {
    let contradicts = |row: &&ComparisonRecord| {
        let moved = row.candidate_median - row.baseline_median;
        let (judged, least) = match (row.least, row.ratio) {
            (LeastRecord::Relative(share), Some(ratio)) => (ratio - 1.0, share * row.baseline_median.abs()),
            (LeastRecord::Relative(least) | LeastRecord::Absolute(least), _) => (row.difference, least),
        };
        moved * judged < 0.0 && moved.abs() >= least && !says_nothing(row)
    };
    let open = rows.iter().filter(|row| says_nothing(row)).min_by_key(|row| row.blocks);
    let open = open.map(|row| {
        let (blocks, family) = (several(row.blocks.into(), "block"), split(&row.metric).0);
        format!(
            "No information yet: after {blocks}, the interval spans more than a factor of 2 or includes negative \
             values. Run longer phases and more blocks; with `--least {family}=20%`, fewer are enough."
        )
    });
    let paired = (has_medians && rows.iter().any(contradicts))
        .then(|| "A difference is the median of paired differences, not the difference of the medians.".to_owned());
    interval_note(rows).into_iter().chain(open).chain(paired)
}

fn interval_note(rows: &[&ComparisonRecord]) -> Option<String> {
    let row = rows.iter().find(|row| row.low.is_some())?;
    let blocks = several(rows.iter().map(|row| row.blocks).min().unwrap_or(0).into(), "block");
    let (confidence, least) = (confidence(row, 2), least(rows));
    Some(format!(
        "The intervals hold jointly with {confidence}, based on {blocks} of one trial per configuration. Differences \
         smaller than {least} do not count."
    ))
}

/// `95% confidence (99% each)`, with at most `digits` decimals.
pub(super) fn confidence(row: &ComparisonRecord, digits: usize) -> String {
    let percent = |share: f64| trimmed(share * 100.0, digits);
    let each = (row.confidence_each > row.confidence).then(|| format!(" ({}% each)", percent(row.confidence_each)));
    format!("{}% confidence{}", percent(row.confidence), each.unwrap_or_default())
}

/// `1.0 MiB or 2%, depending on the metric`.
fn least(rows: &[&ComparisonRecord]) -> String {
    let text = |row: &&ComparisonRecord| match row.least {
        LeastRecord::Absolute(amount) => shown(row.unit, Some(amount)),
        LeastRecord::Relative(share) => Estimate::change(share, None).to_string(),
    };
    let each = each_once(rows.iter().map(text));
    match each.as_slice() {
        [one, two] => format!("{one} or {two}, depending on the metric,"),
        [first @ .., last] if !first.is_empty() => format!("{}, or {last}, depending on the metric,", first.join(", ")),
        one => one.concat(),
    }
}

/// The undecided metrics.
pub(super) fn undecided<'a>(rows: &[&'a ComparisonRecord]) -> impl Iterator<Item = &'a ComparisonRecord> {
    rows.iter().copied().filter(|row| row.verdict == DifferenceVerdict::CannotTell)
}

/// How many blocks the undecided metrics need, and their duration: per metric for one candidate, the maximum for
/// several.
fn needed(document: &Document, rows: &[&ComparisonRecord]) -> Vec<String> {
    let foreseen: Vec<(u32, &str)> =
        undecided(rows).filter_map(|row| Some((row.blocks_needed?, row.metric.as_str()))).collect();
    let one = rows.iter().all(|row| row.candidate == rows[0].candidate);
    let block_s = seconds_of_a_block(document);
    let blocks = |count: u32| {
        let time = block_s.map(|seconds| format!(" ({})", roughly(seconds * f64::from(count)))).unwrap_or_default();
        format!("would take about {} in total{time}", several(u64::from(count), "block"))
    };
    if one {
        return foreseen.iter().map(|(count, metric)| format!("Settling {metric} {}.", blocks(*count))).collect();
    }
    let what = match foreseen.len() == undecided(rows).count() {
        true => ["all metrics", ""],
        false => ["all metrics that can be predicted", " The other differences are too close to the threshold."],
    };
    foreseen
        .iter()
        .map(|(count, _)| *count)
        .max()
        .map(|most| {
            format!(
                "Settling {} \
        {}.{}",
                what[0],
                blocks(most),
                what[1]
            )
        })
        .into_iter()
        .collect()
}

/// The duration of a block, without pauses between trials; `None` if no trial completed.
pub(super) fn seconds_of_a_block(document: &Document) -> Option<f64> {
    let completed = || document.trials.iter().filter(|trial| trial.outcome == Outcome::Completed);
    let of_a_block = each_once(completed().map(|trial| trial.configuration.as_str())).len();
    seconds_of_a_trial(&document.trials).map(|seconds| seconds * of_a_block as f64)
}

/// Memory and speed in one table: which configurations are dominated, and in which speed.
pub(super) fn pareto(document: &Document) -> Option<Part> {
    let unit = |metric: &str| document.metrics.iter().find(|record| record.metric == metric).map(|record| record.unit);
    let value = |metric: &str, value: f64| shown(unit(metric).unwrap_or(Unit::Count), Some(value));
    let records: Vec<&ParetoRecord> = document.pareto.iter().filter(|record| differs(record)).collect();
    let weight = &records.first()?.x;
    let mut head = vec!["configuration", weight];
    head.extend(records.iter().map(|record| record.y.as_str()).chain([""]));
    let row = |point: &ParetoPoint| {
        let own = |record: &ParetoRecord| -> Option<ParetoPoint> {
            record.points.iter().find(|other| other.configuration == point.configuration).cloned()
        };
        let mut row = vec![point.configuration.clone(), value(weight, point.x)];
        row.extend(records.iter().map(|record| own(record).map_or_else(dash, |point| value(&record.y, point.y))));
        let dominated = |record: &&&ParetoRecord| own(record).is_some_and(|point| point.dominated_by.is_some());
        let speeds: Vec<&str> =
            records.iter().filter(dominated).map(|record| record.y.split('.').next().unwrap_or_default()).collect();
        let how =
            if is_by_medians(document, &records, &point.configuration) { "dominated by medians" } else { "dominated" };
        row.push(match speeds.len() {
            0 => String::new(),
            all if all == records.len() => how.to_owned(),
            _ => format!("{how} ({})", speeds.join(", ")),
        });
        row
    };
    let table = Table::new(format!("{weight} vs. speed, medians"), head, records.first()?.points.iter().map(row));
    let note = "A configuration is dominated if another one is at least as good on both metrics.";
    let mut points = records.first()?.points.iter();
    let is_open = points.any(|point| is_by_medians(document, &records, &point.configuration));
    let open = is_open.then(|| "By medians: no judged interval confirms it.".to_owned());
    let notes = [note.to_owned()].into_iter().chain(open);
    Some(Part::Table(table.worded(1, 1).noted(notes)))
}

/// Whether a configuration is dominated, but no verdict confirms it.
fn is_by_medians(document: &Document, records: &[&ParetoRecord], configuration: &str) -> bool {
    let own = records.iter().flat_map(|record| record.points.iter().map(move |point| (*record, point)));
    let mut dominated = own.filter(|(_, of)| of.configuration == configuration && of.dominated_by.is_some()).peekable();
    dominated.peek().is_some() && !dominated.any(|(record, point)| is_decided_against(document, record, point))
}

/// Whether a verdict on either metric distinguishes a point from the one that dominates it.
fn is_decided_against(document: &Document, record: &ParetoRecord, point: &ParetoPoint) -> bool {
    let Some(best) = point.dominated_by.as_deref() else { return false };
    let pair = [best, point.configuration.as_str()];
    let is_of_pair = |row: &&ComparisonRecord| pair.contains(&&*row.baseline) && pair.contains(&&*row.candidate);
    let is_metric = |row: &&ComparisonRecord| [&record.x, &record.y].contains(&&row.metric);
    document.comparisons.iter().filter(is_of_pair).filter(is_metric).any(is_decided)
}

/// Whether a record's speeds differ: a rate set by the load plan does not.
fn differs(record: &ParetoRecord) -> bool {
    const SAME: f64 = 1.001;
    let speeds = || record.points.iter().map(|point| point.y);
    record.points.len() > 1 && speeds().fold(0.0, f64::max) > SAME * speeds().fold(f64::INFINITY, f64::min)
}

/// Every budget with its verdict and measurement.
pub(super) fn budgets(budgets: &[BudgetRecord]) -> Section {
    let row = |budget: &BudgetRecord| {
        let text = |value: Option<f64>| budget_number(budget, value);
        let ends = budget.low.zip(budget.high);
        let interval = ends.map_or_else(dash, |(low, high)| format!("{} … {}", text(Some(low)), text(Some(high))));
        let [expression, configuration] = [&budget.expression, &budget.configuration].map(|name| name.as_str().into());
        vec![Cell::judged(budget.verdict), expression, configuration, text(budget.value).into(), interval.into()]
    };
    let unmeasured = budgets.iter().filter(|budget| budget.value.is_none());
    let mut notes: Vec<String> = unmeasured.map(|budget| format!("{}: {}.", budget.expression, budget.why)).collect();
    notes.dedup();
    let head = ["verdict", "budget", "configuration", "measured", "interval"];
    let table = Table::new("budgets", head, budgets.iter().map(row)).worded(3, 0).noted(notes);
    Section::titled(Topic::Answer, "budgets", table.filled().map(Part::Table)).id("budgets")
}

/// Exceeded budgets, which come first.
pub(super) fn failing(budgets: &[BudgetRecord]) -> impl Iterator<Item = Verdict> {
    let failed = budgets.iter().filter(|budget| budget.verdict == BudgetVerdict::Fail);
    failed.map(|budget| {
        let about = format!("budget {} was exceeded by {}", budget.expression, budget.configuration);
        Verdict::new(Standing::Fail, "broken", budget.why.clone()).about(about)
    })
}

/// A summary of budgets if none is exceeded, with the reason for the first undecided ones. Empty without budgets, or if
/// one is exceeded.
pub(super) fn kept(budgets: &[BudgetRecord]) -> Vec<Verdict> {
    let of = |verdict: BudgetVerdict| budgets.iter().filter(move |budget| budget.verdict == verdict);
    let [pass, fail, open] =
        [BudgetVerdict::Pass, BudgetVerdict::Fail, BudgetVerdict::Undecided].map(|v| of(v).count());
    if budgets.is_empty() || fail > 0 {
        return Vec::new();
    }
    let several_of = |count: usize| several(count as u64, "budget");
    let summary = match (pass, open) {
        (pass, 0) => return vec![Verdict::new(Standing::Pass, "kept", format!("{} met", several_of(pass)))],
        (0, open) => format!("{} undecided", several_of(open)),
        (pass, open) => format!("{} met, {open} undecided", several_of(pass)),
    };
    let undecided = |why: String| Verdict::new(Standing::Undecided, "undecided", why);
    let each = of(BudgetVerdict::Undecided).take(OPEN_TOLD_MAX).map(|budget| {
        let about = format!("budget {} is undecided for {}", budget.expression, budget.configuration);
        undecided(budget.why.clone()).about(about)
    });
    // A single line is its own summary.
    let is_alone = (pass, open) == (0, 1);
    (!is_alone).then(|| undecided(summary)).into_iter().chain(each).collect()
}

/// Undecided budgets explained in the first lines; the table has all.
const OPEN_TOLD_MAX: usize = 2;

/// Every value of the judged metrics, one row per trial.
pub(super) fn every_value(document: &Document) -> Option<Part> {
    let primary = document.comparisons.iter().filter(|row| row.primary);
    let judged = each_once(primary.map(|row| row.metric.as_str()));
    let of = |metric: &str, trial: &Trial| -> Option<String> {
        let record = metric_of(document, metric, &trial.configuration)?;
        let value = record.values.iter().find(|value| value.trial == trial.index)?;
        Some(format!("{}{}", shown(record.unit, Some(value.value)), if value.used { "" } else { " *" }))
    };
    let row = |trial: &Trial| {
        let mut row = vec![trial.configuration.clone(), (trial.block + 1).to_string()];
        row.extend(judged.iter().map(|metric| of(metric, trial).unwrap_or_else(dash)));
        row
    };
    let left_out = document.blocks.iter().any(|block| !block.used);
    let note = left_out.then(|| "*: from a block that was repeated, so not counted.".to_owned());
    let head = ["trial", "block"].into_iter().chain(judged.iter().copied());
    let table = || Table::new("every trial", head, document.trials.iter().map(row)).worded(2, 0).noted(note);
    (!judged.is_empty()).then(|| Part::Table(table()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::samples;

    fn row(candidate: &str, metric: &str, verdict: DifferenceVerdict) -> ComparisonRecord {
        let compared = samples::comparison(metric, Unit::PerSecond, [100.0, 101.0], verdict);
        ComparisonRecord { baseline: "g1".to_owned(), candidate: candidate.to_owned(), ..compared }
    }

    fn of<'a>(candidate: &'a str, rows: &'a [ComparisonRecord]) -> Pair<'a> {
        Pair { candidate, baseline: "g1", rows: rows.iter().collect() }
    }

    #[test]
    fn two_long_names_are_shortened_to_stay_distinct() {
        let names = ["_JAVA_OPTIONS=-Xmn320m", "_JAVA_OPTIONS=-Xmn8m"];
        assert_eq!(brief(names), ["…NS=-Xmn320m", "…IONS=-Xmn8m"]);
        assert_eq!(brief(["g1", "a-long-name-of-a-side"]), ["g1", "a-long-name…"]);
    }

    #[test]
    fn an_uninformative_interval_is_shown_without_digits() {
        let of = |low: f64, high: f64, verdict| {
            let ratio_ends = (Some(low), Some(high));
            let of = row("serial", "p99.steady", verdict);
            ComparisonRecord { ratio_low: ratio_ends.0, ratio_high: ratio_ends.1, ..of }
        };
        let shown = |row: &ComparisonRecord| difference(row).map(|cell| cell.to_string());
        let amount = |low_mib: f64, verdict| {
            let of = samples::comparison("malloc_live.loaded", Unit::Bytes, [15_728_640.0, 23e6], verdict);
            let least = LeastRecord::Absolute(1048576.0);
            ComparisonRecord { least, low: Some(low_mib * 1048576.0), high: Some(1e9), ..of }
        };
        let of_amount = |low_mib, verdict| shown(&amount(low_mib, verdict)) == ["-", "no information"];
        assert!(of_amount(-16.5, DifferenceVerdict::CannotTell), "an interval below minus the total is uninformative");
        assert!(!of_amount(-15.0, DifferenceVerdict::CannotTell), "the interval may be at -100% after rounding");
        assert!(!of_amount(-16.5, DifferenceVerdict::Equivalent));
        let open = of(0.65, 1.711, DifferenceVerdict::CannotTell);
        assert_eq!(shown(&open), ["-", "no information"]);
        assert!(notes(&[&open], true).any(|note| note.starts_with("No information yet: after ")));
        let some = of(0.735, 1.074, DifferenceVerdict::CannotTell);
        assert_eq!(shown(&some), ["+1.0%", "-26.5 … +7.4"]);
        assert_eq!(shown(&of(1.2, 9.0, DifferenceVerdict::Worse))[1], "+20.0 … +800.0");
    }

    #[test]
    fn a_difference_against_the_medians_is_explained() {
        let paired = |medians: [f64; 2]| {
            let [baseline_median, candidate_median] = medians;
            let of = row("serial", "rate.steady", DifferenceVerdict::CannotTell);
            let of = ComparisonRecord { baseline_median, candidate_median, ..of };
            notes(&[&of], true).any(|note| note.contains("not the difference of the medians"))
        };
        assert_eq!((paired([100.0, 90.0]), paired([100.0, 110.0])), (true, false));
    }

    #[test]
    fn an_undecided_metric_brings_startup_cores_and_noise() {
        let mut document = samples::compared();
        let start_up = samples::comparison("start_up", Unit::Seconds, [0.32, 4.93], DifferenceVerdict::Worse);
        document.comparisons.push(ComparisonRecord { primary: false, ..start_up });
        document.trials[0].phases[0].name = "steady".to_owned();
        document.trials[0].phases[0].offered_per_s = Some(200.0);
        document.blocks[1].disturbed = Some("other programs used up to 1.9 cores (in trials of `g1`)".to_owned());
        let said = |part: Option<Part>| match part {
            Some(Part::Text(text)) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            said(also(&document)),
            "Medians: startup 320 ms to 4.93 s, worse: +1440.6% (+1439.6 … +1441.6); CPU 0.013 to 0.013 \
             cores at 200/s, equivalent."
        );
        assert!(
            said(noise(&document))
                .starts_with("1 of 3 blocks were disturbed (block 2: other programs used up to 1.9 cores). ")
        );
        document.comparisons.iter_mut().for_each(|row| row.verdict = DifferenceVerdict::Worse);
        assert_eq!(noise(&document), None, "decided metrics need no note on noise");
    }

    #[test]
    fn undecided_candidates_take_one_line_each_if_there_are_many() {
        use DifferenceVerdict::{Better as Improved, CannotTell};
        let rows = [
            row("serial", "rate.steady", Improved),
            row("serial", "p99.steady", CannotTell),
            row("z", "rate.steady", CannotTell),
            row("z", "p99.steady", CannotTell),
        ];
        let (serial, z) = (of("serial", &rows[..2]), of("z", &rows[2..]));
        let four = [serial.clone(), serial.clone(), z.clone(), z.clone()];
        assert_eq!(table_of_several(&four[1..], "vs. g1").rows.len(), 6, "few candidates have all rows");
        let table = table_of_several(&four, "vs. g1");
        let shown: Vec<[String; 3]> = table.rows.iter().map(|row| [0, 1, 2].map(|at| row[at].to_string())).collect();
        let expect = [
            ["better", "serial", "rate.steady"],
            ["cannot tell", "serial", "p99.steady"],
            ["better", "serial", "rate.steady"],
            ["cannot tell", "serial", "p99.steady"],
            ["cannot tell", "z", "all 2"],
            ["cannot tell", "z", "all 2"],
        ];
        assert_eq!(shown, expect);
        assert_eq!(verdict(&z).sentence(), "z vs. g1: no verdict on any of the 2 metrics.");
        let said = "serial vs. g1: better in rate.steady +1.0% (0.0 … +2.0); cannot tell for p99.steady.";
        assert_eq!(verdict(&serial).sentence(), said);
        // A single undecided metric is named.
        assert_eq!(verdict(&of("z", &rows[2..3])).sentence(), "z vs. g1: cannot tell for rate.steady.");
    }
}
