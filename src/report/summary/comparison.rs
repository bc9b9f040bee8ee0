//! What trials say together: the verdicts first, in words and in one table, then who is dominated, the budgets, and
//! what disturbed the blocks.

use super::super::quantity::{Estimate, budget_number, shown};
use super::super::width::{first, width};
use super::super::words::{Pair, VERDICTS, name_of, outcome_words, pairs, verdict_word};
use super::block::{Block, Table};
use super::cells::{NONE, cells};
use crate::record::{
    BlockRecord, BudgetRecord, BudgetVerdict, ComparisonRecord, DifferenceVerdict, Document, LeastRecord, MetricRecord,
    ParetoPoint, ParetoRecord, Trial, Unit, each_once, tells_nothing,
};
use crate::units::{grouped, several, trimmed};

/// A sentence for each candidate: `serial against g1: better in rss.loaded, worse in rate.steady, …`.
pub(super) fn sentences(document: &Document) -> Vec<String> {
    pairs(document, true).iter().map(sentence).collect()
}

fn sentence(Pair { candidate, baseline, rows }: &Pair<'_>) -> String {
    if tells_nothing(rows) {
        return format!("{candidate} against {baseline}: cannot tell in any of {} metrics.", rows.len());
    }
    let said = VERDICTS.into_iter().filter_map(|verdict| {
        let metrics: Vec<&str> =
            rows.iter().filter(|row| row.verdict == verdict).map(|row| row.metric.as_str()).collect();
        let link = if verdict == DifferenceVerdict::CannotTell { "" } else { " in" };
        (!metrics.is_empty()).then(|| format!("{}{link} {}", verdict_word(verdict), metrics.join(", ")))
    });
    format!("{candidate} against {baseline}: {}.", said.collect::<Vec<_>>().join("; "))
}

/// What ran, a line for each configuration: the JVM and what it was told.
pub(super) fn configuration_facts(document: &Document) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let first = |name: &str| document.trials.iter().find(|trial| trial.configuration == name);
    for trial in document.configurations().into_iter().filter_map(first) {
        let count = document.trials.iter().filter(|other| other.configuration == trial.configuration).count();
        let trials = several(count as u64, "trial");
        let jvm = trial.jvm.as_ref().map_or_else(
            || "JVM unknown".to_owned(),
            |jvm| {
                let options =
                    if jvm.options.is_empty() { String::new() } else { format!("; {}", jvm.options.join(" ")) };
                let version = jvm.version.as_deref().unwrap_or("JVM unknown");
                let collector = jvm.collector.as_ref().map(|gc| format!(", {gc} GC")).unwrap_or_default();
                format!("{version}{collector}{options}")
            },
        );
        facts.push((trial.configuration.clone(), format!("{trials}; {jvm}")));
    }
    facts
}

/// The judged metrics, verdict first: of one candidate with both medians, of several in one table.
pub(super) fn verdicts(document: &Document) -> Vec<Block> {
    let pairs = pairs(document, true);
    let rows: Vec<&ComparisonRecord> = pairs.iter().flat_map(|pair| &pair.rows).copied().collect();
    let mut table = match pairs.as_slice() {
        [] => return Vec::new(),
        [pair] => table_of(pair, ""),
        [Pair { baseline, .. }, others @ ..] if others.iter().all(|other| other.baseline == *baseline) => {
            table_of_several(&pairs, &format!("against {baseline}"))
        }
        _ => table_of_several(&pairs, "second against first"),
    };
    table.notes.extend(interval_note(&rows));
    table.notes.extend(needed(&rows));
    vec![Block::Table(table)]
}

/// All other metrics of each candidate.
pub(super) fn details(document: &Document) -> Vec<Block> {
    let table = |pair: &Pair<'_>| {
        let mut table = table_of(pair, "details, ");
        table.notes.extend(interval_note(&pair.rows));
        Block::Table(table)
    };
    pairs(document, false).iter().map(table).collect()
}

fn table_of(Pair { candidate, baseline, rows }: &Pair<'_>, what: &str) -> Table {
    let row = |row: &&ComparisonRecord| {
        let judged = Estimate::judged(row);
        vec![
            verdict_word(row.verdict).to_owned(),
            row.metric.clone(),
            shown(row.unit, Some(row.baseline_median)),
            shown(row.unit, Some(row.candidate_median)),
            judged.centre.to_string(),
            judged.interval(),
        ]
    };
    let head = ["verdict", "metric", &brief(baseline), &brief(candidate), "difference", "interval"];
    Table::new(format!("{what}{candidate} against {baseline}"), head, rows.iter().map(row)).worded(2, 0)
}

/// Several candidates: their medians stand beside each other in the table of weight and speed. One of which nothing can
/// be told takes one row.
fn table_of_several(pairs: &[Pair<'_>], title: &str) -> Table {
    let row = |row: &&ComparisonRecord| {
        let judged = Estimate::judged(row);
        let (difference, interval) = (judged.centre.to_string(), judged.interval());
        vec![verdict_word(row.verdict).to_owned(), row.candidate.clone(), row.metric.clone(), difference, interval]
    };
    let of_pair = |Pair { candidate, rows, .. }: &Pair<'_>| match tells_nothing(rows) {
        true => {
            let verdict = verdict_word(DifferenceVerdict::CannotTell);
            vec![cells([verdict, candidate, &format!("all {}", rows.len()), NONE, NONE])]
        }
        false => rows.iter().map(row).collect(),
    };
    let head = ["verdict", "candidate", "metric", "difference", "interval"];
    Table::new(title, head, pairs.iter().flat_map(of_pair)).worded(3, 0)
}

/// A name that leaves room for numbers.
fn brief(name: &str) -> String {
    const WIDTH: usize = 12;
    match width(name) {
        columns if columns > WIDTH => format!("{}…", first(name, WIDTH - 1)),
        _ => name.to_owned(),
    }
}

/// What the intervals promise.
fn interval_note(rows: &[&ComparisonRecord]) -> Option<String> {
    let row = rows.iter().find(|row| row.low.is_some())?;
    let percent = |share: f64| trimmed(share * 100.0, 2);
    let together = match row.confidence_each > row.confidence {
        true => format!(" ({} % each)", percent(row.confidence_each)),
        false => String::new(),
    };
    let blocks = rows.iter().map(|row| row.blocks).min().unwrap_or(0);
    Some(format!(
        "Intervals hold together with {} % confidence{together}; {}. Least differences that matter: {}.",
        percent(row.confidence),
        several(u64::from(blocks), "block"),
        least(rows)
    ))
}

/// `1.0 MiB of memory, 2 % of all else`, as far as the rows tell.
fn least(rows: &[&ComparisonRecord]) -> String {
    let mut said: Vec<String> = Vec::new();
    for row in rows {
        let text = match row.least {
            LeastRecord::Absolute(amount) => shown(row.unit, Some(amount)),
            LeastRecord::Relative(share) => Estimate::change(share, None).to_string(),
        };
        if !said.contains(&text) {
            said.push(text);
        }
    }
    said.join(" or ")
}

/// How many blocks would decide what these do not: of one candidate for each metric, of several the most.
fn needed(rows: &[&ComparisonRecord]) -> Vec<String> {
    let undecided = || rows.iter().filter(|row| row.verdict == DifferenceVerdict::CannotTell);
    let foreseen: Vec<(u32, &str)> =
        undecided().filter_map(|row| Some((row.blocks_needed?, row.metric.as_str()))).collect();
    let one = rows.iter().all(|row| row.candidate == rows[0].candidate);
    let blocks = |count: u32| format!("About {} blocks in all would decide", grouped(u64::from(count)));
    if one {
        return foreseen.iter().map(|(count, metric)| format!("{} {metric}.", blocks(*count))).collect();
    }
    let most = foreseen.iter().map(|(count, _)| *count).max();
    match most {
        Some(most) if foreseen.len() == undecided().count() => vec![format!("{} all of it.", blocks(most))],
        Some(most) => {
            vec![format!("{} what can be foreseen; some differences are too near to what matters.", blocks(most))]
        }
        None => Vec::new(),
    }
}

/// Weight against speed, in one table: who is dominated, and in which speed.
pub(super) fn pareto(document: &Document) -> Option<Block> {
    let unit = |metric: &str| document.metrics.iter().find(|record| record.metric == metric).map(|record| record.unit);
    let value = |metric: &str, value: f64| shown(unit(metric).unwrap_or(Unit::Count), Some(value));
    let records: Vec<&ParetoRecord> = document.pareto.iter().filter(|record| record.points.len() > 1).collect();
    let weight = &records.first()?.x;
    let mut head = vec!["configuration", weight];
    head.extend(records.iter().map(|record| record.y.as_str()).chain([""]));
    let row = |point: &ParetoPoint| {
        let own = |record: &ParetoRecord| -> Option<ParetoPoint> {
            record.points.iter().find(|other| other.configuration == point.configuration).cloned()
        };
        let mut row = vec![point.configuration.clone(), value(weight, point.x)];
        row.extend(records.iter().map(|record| own(record).map_or(NONE.to_owned(), |point| value(&record.y, point.y))));
        let dominated = |record: &&&ParetoRecord| own(record).is_some_and(|point| point.dominated_by.is_some());
        let speeds: Vec<&str> =
            records.iter().filter(dominated).map(|record| record.y.split('.').next().unwrap_or_default()).collect();
        row.push(match speeds.len() {
            0 => String::new(),
            all if all == records.len() => "dominated".to_owned(),
            _ => format!("dominated ({})", speeds.join(", ")),
        });
        row
    };
    let table = Table::new(format!("{weight} against speed, medians"), head, records.first()?.points.iter().map(row));
    let note = "A configuration is dominated where another one is at least as good in both.";
    Some(Block::Table(table.worded(1, 1).noted([note.to_owned()])))
}

/// Every budget with its verdict, and what was measured.
pub(super) fn budgets(budgets: &[BudgetRecord]) -> Option<Block> {
    if budgets.is_empty() {
        return None;
    }
    let row = |budget: &BudgetRecord| {
        let text = |value: Option<f64>| budget_number(budget, value);
        let interval = match (budget.low, budget.high) {
            (Some(_), Some(_)) => format!("{} … {}", text(budget.low), text(budget.high)),
            _ => NONE.to_owned(),
        };
        vec![
            name_of(budget.verdict),
            budget.expression.clone(),
            budget.configuration.clone(),
            text(budget.value),
            interval,
        ]
    };
    let unmeasured = budgets.iter().filter(|budget| budget.value.is_none());
    let mut notes: Vec<String> = unmeasured.map(|budget| format!("{}: {}.", budget.expression, budget.why)).collect();
    notes.dedup();
    let head = ["verdict", "budget", "configuration", "measured", "interval"];
    Some(Block::Table(Table::new("budgets", head, budgets.iter().map(row)).worded(3, 0).noted(notes)))
}

/// Budgets that are broken, said before everything else.
pub(super) fn failing(budgets: &[BudgetRecord]) -> Vec<String> {
    let failed = budgets.iter().filter(|budget| budget.verdict == BudgetVerdict::Fail);
    failed
        .map(|budget| format!("budget {} is broken by {}: {}", budget.expression, budget.configuration, budget.why))
        .collect()
}

/// Blocks that something disturbed, and what became of them.
pub(super) fn disturbed(blocks: &[BlockRecord]) -> Vec<Block> {
    let fact = |block: &BlockRecord| {
        let why = block.disturbed.as_ref()?;
        let became = if block.used { "it counts" } else { "it was repeated and does not count" };
        Some((format!("block {}", block.block + 1), format!("{why}; {became}")))
    };
    headed("disturbed", blocks.iter().filter_map(fact).collect())
}

/// Facts under a heading; nothing where there are none.
fn headed(heading: &str, facts: Vec<(String, String)>) -> Vec<Block> {
    match facts.is_empty() {
        true => Vec::new(),
        false => vec![Block::Heading(heading.to_owned()), Block::Facts(facts)],
    }
}

/// Trials that did not complete: they are in no estimate.
pub(super) fn incomplete(trials: &[Trial]) -> Vec<Block> {
    let lost = trials.iter().filter(|trial| trial.outcome != crate::record::Outcome::Completed);
    let fact = |trial: &Trial| {
        let why = trial.why.as_deref().unwrap_or("unknown");
        let text = format!("{}: {}: {why}", trial.configuration, outcome_words(trial.outcome).1);
        (format!("trial {}", trial.index + 1), text)
    };
    headed("not completed, and in no estimate", lost.map(fact).collect())
}

/// Every value of the judged metrics: a row for each trial.
pub(super) fn every_value(document: &Document) -> Option<Block> {
    let primary = document.comparisons.iter().filter(|row| row.primary);
    let judged = each_once(primary.map(|row| row.metric.as_str()));
    let of = |metric: &str, trial: &Trial| -> Option<String> {
        let fits = |record: &&MetricRecord| record.metric == metric && record.configuration == trial.configuration;
        let record = document.metrics.iter().find(fits)?;
        let value = record.values.iter().find(|value| value.trial == trial.index)?;
        Some(format!("{}{}", shown(record.unit, Some(value.value)), if value.used { "" } else { " *" }))
    };
    let row = |trial: &Trial| {
        let mut row = vec![trial.configuration.clone(), (trial.block + 1).to_string()];
        row.extend(judged.iter().map(|metric| of(metric, trial).unwrap_or_else(|| NONE.to_owned())));
        row
    };
    let left_out = document.blocks.iter().any(|block| !block.used);
    let note = left_out.then(|| "* of a block that was repeated: not counted.".to_owned());
    let head = ["trial", "block"].into_iter().chain(judged.iter().copied());
    let table = || Table::new("every trial", head, document.trials.iter().map(row)).worded(2, 0).noted(note);
    (!judged.is_empty()).then(|| Block::Table(table()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Better;

    fn row(candidate: &str, metric: &str, verdict: DifferenceVerdict) -> ComparisonRecord {
        ComparisonRecord {
            metric: metric.to_owned(),
            unit: Unit::PerSecond,
            better: Better::Higher,
            baseline: "g1".to_owned(),
            candidate: candidate.to_owned(),
            primary: true,
            baseline_median: 100.0,
            candidate_median: 101.0,
            difference: 1.0,
            low: Some(-1.0),
            high: Some(3.0),
            ratio: Some(1.01),
            ratio_low: Some(0.99),
            ratio_high: Some(1.03),
            confidence: 0.95,
            confidence_each: 0.99,
            least: LeastRecord::Relative(0.02),
            verdict,
            blocks: 3,
            blocks_needed: None,
        }
    }

    fn of<'a>(candidate: &'a str, rows: &'a [ComparisonRecord]) -> Pair<'a> {
        Pair { candidate, baseline: "g1", rows: rows.iter().collect() }
    }

    #[test]
    fn a_candidate_of_which_nothing_can_be_told_takes_one_line() {
        use DifferenceVerdict::{Better as Improved, CannotTell};
        let rows = [
            row("serial", "rate.steady", Improved),
            row("serial", "p99.steady", CannotTell),
            row("z", "rate.steady", CannotTell),
            row("z", "p99.steady", CannotTell),
        ];
        let (serial, z) = (of("serial", &rows[..2]), of("z", &rows[2..]));
        let table = table_of_several(&[serial.clone(), z.clone()], "against g1");
        let shown: Vec<[&str; 3]> = table.rows.iter().map(|row| [0, 1, 2].map(|at| row[at].as_str())).collect();
        let expect = [
            ["better", "serial", "rate.steady"],
            ["cannot tell", "serial", "p99.steady"],
            ["cannot tell", "z", "all 2"],
        ];
        assert_eq!(shown, expect);
        assert_eq!(sentence(&z), "z against g1: cannot tell in any of 2 metrics.");
        let said = "serial against g1: better in rate.steady; cannot tell p99.steady.";
        assert_eq!(sentence(&serial), said);
        // A single metric that cannot be told is named.
        assert_eq!(sentence(&of("z", &rows[2..3])), "z against g1: cannot tell rate.steady.");
    }
}
