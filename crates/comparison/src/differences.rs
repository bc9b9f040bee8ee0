//! Compares each candidate with the baseline: differences within blocks, their intervals, two-step verdicts.

use super::amounts::{fits, least, least_of};
use super::metrics::{configurations_of, in_order, median, names_of, used};
use super::names::{principal, resolve};
use super::verdict::{Scale, blocks_needed, judge};
use crate::record::{ComparisonRecord, MetricRecord};
use crate::scenario::{Amount, Compare};
use loadline_stats::interval::{Estimate, Resamples, Sample};
use std::collections::BTreeMap;

/// For judged metrics: the ends vary by about 1% of the interval's length between seeds.
const RESAMPLES_JUDGED: usize = 10_000;
/// For the hundreds of details: the ends vary by about 6%.
const RESAMPLES_DETAIL: usize = 500;

/// The metrics that a comparison will judge, and what it cannot do although the user asked for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JudgingPlan {
    /// The configuration to compare with; `None` if none has the requested name, or there is no configuration.
    pub baseline: Option<String>,
    /// Full names of the judged metrics, in the order requested.
    pub judged: Vec<String>,
    /// Why it cannot do these things, one sentence each.
    pub refused: Vec<String>,
}

/// Plans the part of the requested comparison that these metrics allow.
pub fn plan(metrics: &[MetricRecord], asked: &Compare) -> JudgingPlan {
    let configurations = configurations_of(metrics);
    let mut plan = JudgingPlan::default();
    plan.baseline = match &asked.baseline {
        None => configurations.first().cloned(),
        Some(name) if configurations.contains(name) => Some(name.clone()),
        Some(name) => {
            let near = configurations.iter().min_by_key(|known| strsim::damerau_levenshtein(name, known));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            plan.refused.push(format!("no trial of the baseline `{name}` completed{near}"));
            None
        }
    };
    for word in &asked.metrics {
        match resolve(word, metrics) {
            Ok(name) if plan.judged.contains(&name) => {}
            Ok(name) => plan.judged.push(name),
            Err(why) => plan.refused.push(why),
        }
    }
    if asked.metrics.is_empty() {
        plan.judged = usual(metrics);
    }
    plan.refused.extend(asked.least.iter().filter_map(|(word, amount)| unused_least(word, *amount, metrics)));
    plan
}

/// Why a requested least difference is not used; `None` if it is.
fn unused_least(word: &str, amount: Amount, metrics: &[MetricRecord]) -> Option<String> {
    let fitting: Vec<&MetricRecord> = metrics.iter().filter(|metric| fits(word, &metric.metric)).collect();
    let Some(first) = fitting.first() else {
        return Some(format!("the smallest difference for `{word}` does not apply to any measured metric"));
    };
    if fitting.iter().any(|metric| least_of(amount, metric.unit).is_ok()) {
        return None;
    }
    let why = least_of(amount, first.unit).err()?;
    Some(format!("the smallest difference for `{word}` is not used: {why}"))
}

/// Returns the metrics judged by default: weight, speed, and the cost of a response in CPU time and heap bytes. There
/// are only four, because each further metric widens all intervals. Figures are added, because the scenario requests
/// them.
fn usual(metrics: &[MetricRecord]) -> Vec<String> {
    let measured = |name: &String| metrics.iter().any(|metric| metric.metric == *name);
    let phase = principal(metrics).unwrap_or_default();
    let open = measured(&format!("response.p99.{phase}"));
    let speed = if open { "p99" } else { "rate" };
    let cost = ["cpu_per_1000", "alloc_per_request"].map(|what| format!("{what}.{phase}"));
    let names = [weight(metrics).to_owned(), format!("{speed}.{phase}")].into_iter().chain(cost);
    let figures = metrics.iter().filter(|metric| metric.unit.is_of_figures()).map(|metric| metric.metric.as_str());
    names.filter(measured).chain(in_order(figures)).collect()
}

/// The metric for a subject's weight under load. RSS of several processes counts shared memory once per process.
pub(super) fn weight(metrics: &[MetricRecord]) -> &'static str {
    let several = metrics.iter().any(|metric| metric.metric == "processes.loaded");
    if several { "pss.loaded" } else { "rss.loaded" }
}

/// Two configurations in the blocks that they share.
pub(super) struct Pairing<'a> {
    pub(super) baseline: &'a MetricRecord,
    pub(super) candidate: &'a MetricRecord,
    pub(super) values: Values,
    pub(super) primary: bool,
}

/// Corresponding values of two configurations.
pub(super) enum Values {
    /// The values of each, block by block.
    Blocks(Vec<(f64, f64)>),
    /// The trials have no common blocks, so the values are unpaired.
    Apart,
}

/// Compares every metric of each candidate with the baseline, judged ones first.
///
/// Judged metrics of all candidates form one family, all other metrics another. In each family, all intervals hold
/// simultaneously with the requested confidence (Bonferroni). Swapping baseline and candidate mirrors every record.
pub fn compare(metrics: &[MetricRecord], asked: &Compare, seed: u64) -> Vec<ComparisonRecord> {
    let plan = plan(metrics, asked);
    let Some(baseline) = &plan.baseline else { return Vec::new() };
    let candidates = configurations_of(metrics).into_iter().filter(|name| name != baseline);
    let pairs: Vec<_> = candidates.map(|candidate| (baseline.clone(), candidate)).collect();
    records(&pairings(metrics, &pairs, &plan.judged, paired), asked, seed)
}

/// The records of all pairings: the judged metrics are one family, the details another.
pub(super) fn records(pairings: &[Pairing<'_>], asked: &Compare, seed: u64) -> Vec<ComparisonRecord> {
    let judged = pairings.iter().filter(|pairing| pairing.primary).count();
    let details = pairings.len() - judged;
    let mut resamples = [(RESAMPLES_JUDGED, judged), (RESAMPLES_DETAIL, details)].map(|(count, family)| {
        (Resamples::new(seed, count), each(asked.confidence, family * asked.looks().len().max(1)))
    });
    let [(judging, judged_each), (detailing, detail_each)] = &mut resamples;
    let compared = pairings.iter().map(|pairing| match pairing.primary {
        true => record(pairing, asked, *judged_each, judging),
        false => record(pairing, asked, *detail_each, detailing),
    });
    compared.collect()
}

/// Compares the second configuration of each pair with the first, for trials without common blocks, such as those of
/// archives. Otherwise like [`compare`].
pub fn compare_apart(
    metrics: &[MetricRecord],
    pairs: &[(String, String)],
    asked: &Compare,
    seed: u64,
) -> Vec<ComparisonRecord> {
    let judged = plan(metrics, &Compare { baseline: None, ..asked.clone() }).judged;
    let apart = |baseline: &MetricRecord, candidate: &MetricRecord| {
        (!used(baseline).is_empty() && !used(candidate).is_empty()).then_some(Values::Apart)
    };
    records(&pairings(metrics, pairs, &judged, apart), asked, seed)
}

/// The center of differences within blocks and the ends of its interval, as one of `family` intervals that hold
/// simultaneously with this confidence. `None` without differences; no ends for fewer than three. The numbers are those
/// of [`compare`].
pub fn of_pairs(differences: &[f64], seed: u64, confidence: f64, family: usize) -> Option<(f64, Option<(f64, f64)>)> {
    let mut resamples = Resamples::new(seed, RESAMPLES_JUDGED);
    let estimate = resamples.one_sample(Sample::Differences, differences, each(confidence, family))?;
    Some((estimate.centre, estimate.ends))
}

/// The confidence of each interval of a family, so that all hold simultaneously (Bonferroni).
pub(super) fn each(confidence: f64, family: usize) -> f64 {
    1.0 - (1.0 - sane(confidence)) / family.max(1) as f64
}

/// Clamps a confidence to 0.5 to 0.999999, because 0 and 1 cannot be computed; the default if it is not finite.
fn sane(confidence: f64) -> f64 {
    if confidence.is_finite() { confidence.clamp(0.5, 0.999_999) } else { Compare::CONFIDENCE }
}

/// Each pair's baseline and candidate, metric by metric, judged metrics first. Omits those for which `values` finds no
/// common values.
fn pairings<'a>(
    metrics: &'a [MetricRecord],
    pairs: &[(String, String)],
    judged: &[String],
    values: impl Fn(&MetricRecord, &MetricRecord) -> Option<Values>,
) -> Vec<Pairing<'a>> {
    let mut by_name: BTreeMap<(&str, &str), &MetricRecord> = BTreeMap::new();
    for metric in metrics {
        by_name.entry((&metric.metric, &metric.configuration)).or_insert(metric);
    }
    let names = names_of(metrics);
    let details = names.iter().filter(|name| !judged.contains(name));
    let mut pairings = Vec::new();
    for name in judged.iter().chain(details) {
        let of = |configuration: &str| by_name.get(&(name.as_str(), configuration)).copied();
        let found = pairs.iter().filter_map(|(baseline, candidate)| {
            let (baseline, candidate) = (of(baseline)?, of(candidate)?);
            let values = values(baseline, candidate)?;
            Some(Pairing { baseline, candidate, values, primary: judged.contains(name) })
        });
        pairings.extend(found);
    }
    pairings
}

/// The values of both in the blocks that count and that both have, ascending by block; `None` if there are none.
pub(super) fn paired(baseline: &MetricRecord, candidate: &MetricRecord) -> Option<Values> {
    let by_block = |metric: &MetricRecord| -> BTreeMap<u32, f64> {
        metric.values.iter().filter(|value| value.used).map(|value| (value.block, value.value)).collect()
    };
    let candidate = by_block(candidate);
    let both = by_block(baseline).into_iter().filter_map(|(block, before)| Some((before, *candidate.get(&block)?)));
    let both: Vec<(f64, f64)> = both.collect();
    (!both.is_empty()).then_some(Values::Blocks(both))
}

/// An estimate of the difference and, if all values are positive, of the logarithm of the ratio.
type Estimates = (Option<Estimate>, Option<Estimate>);

/// The estimates of a pairing, and the number of its blocks.
fn estimates(pairing: &Pairing<'_>, confidence: f64, resamples: &mut Resamples) -> (Estimates, usize) {
    match &pairing.values {
        Values::Blocks(values) => {
            let (before, after): (Vec<f64>, Vec<f64>) = values.iter().copied().unzip();
            let of_blocks = |before: &[f64], after: &[f64]| {
                let within: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
                resamples.one_sample(Sample::Differences, &within, confidence)
            };
            (on_both_scales(&before, &after, of_blocks), values.len())
        }
        Values::Apart => {
            let (before, after) = (used(pairing.baseline), used(pairing.candidate));
            (estimates_apart(&before, &after, confidence, resamples), before.len().min(after.len()))
        }
    }
}

/// The estimates for unpaired values.
pub(super) fn estimates_apart(before: &[f64], after: &[f64], confidence: f64, resamples: &mut Resamples) -> Estimates {
    on_both_scales(before, after, |before, after| resamples.two_samples(before, after, confidence))
}

fn on_both_scales(
    before: &[f64],
    after: &[f64],
    mut estimate: impl FnMut(&[f64], &[f64]) -> Option<Estimate>,
) -> Estimates {
    let logarithms = logarithms(before).zip(logarithms(after));
    (estimate(before, after), logarithms.and_then(|(before, after)| estimate(&before, &after)))
}

/// `None` if a value is not positive.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().map(|value| (*value > 0.0).then(|| value.ln())).collect()
}

fn record(pairing: &Pairing<'_>, asked: &Compare, confidence: f64, resamples: &mut Resamples) -> ComparisonRecord {
    let Pairing { baseline, candidate, primary, .. } = pairing;
    let ((difference, ratio), blocks) = estimates(pairing, confidence, resamples);
    let difference = difference.unwrap_or(Estimate { centre: 0.0, ends: None });
    let [baseline_median, candidate_median] = [baseline, candidate].map(|metric| median(&used(metric)));
    let least = least(&baseline.metric, baseline.unit, asked);
    let scale = Scale::of(difference, ratio, least, [baseline_median, candidate_median]);
    ComparisonRecord {
        metric: baseline.metric.clone(),
        unit: baseline.unit,
        better: baseline.better,
        baseline: baseline.configuration.clone(),
        candidate: candidate.configuration.clone(),
        primary: *primary,
        baseline_median,
        candidate_median,
        ratio: ratio.map(|ratio| ratio.centre.exp()),
        ratio_low: ratio.and_then(|ratio| ratio.ends).map(|(low, _)| low.exp()),
        ratio_high: ratio.and_then(|ratio| ratio.ends).map(|(_, high)| high.exp()),
        difference: difference.centre,
        low: difference.ends.map(|(low, _)| low),
        high: difference.ends.map(|(_, high)| high),
        confidence: sane(asked.confidence),
        confidence_each: confidence,
        least,
        verdict: judge(&scale, baseline.better, blocks),
        blocks: blocks as u32,
        blocks_needed: blocks_needed(&scale, blocks, confidence),
    }
}
