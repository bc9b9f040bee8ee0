//! The effect of each axis of a matrix, averaged over the other axes: main effects of a full factorial design (Box,
//! Hunter, and Hunter, *Statistics for Experimenters*, 2nd ed., chapter 5).
//!
//! Every trial contributes to the effect of every axis, so effects have narrower intervals than pairs.

use super::differences::{Pairing, paired, plan, records};
use super::metrics::{find, median, used};
use crate::record::{ComparisonRecord, MetricRecord, ValueRecord, each_once};
use crate::scenario::{Compare, Configuration, Level};
use std::collections::BTreeMap;

/// Compares the values on each axis with the baseline's value on it, in the judged metrics.
///
/// A block's value for a level is the mean over all configurations with that level. All intervals hold simultaneously.
/// Empty unless there are two or more axes, and every combination of their values was measured.
pub fn effects(
    metrics: &[MetricRecord],
    configurations: &[Configuration],
    asked: &Compare,
    seed: u64,
) -> Vec<ComparisonRecord> {
    let plan = plan(metrics, asked);
    let Some(axes) = axes(configurations, plan.baseline.as_deref()) else { return Vec::new() };
    let several = |name: &str| axes.iter().filter(|axis| axis.levels.contains(&name)).count() > 1;
    let label = |axis: &Axis<'_>, level: &str| match several(level) {
        true => format!("{}={level}", axis.word),
        false => level.to_owned(),
    };
    let pooled: Vec<Vec<Vec<MetricRecord>>> = axes
        .iter()
        .map(|axis| {
            let of_level = |(at, level): (usize, &&str)| {
                let with =
                    |metric: &String| pool(metrics, metric, configurations, |of| of.levels[axis.at].name == *level);
                let named =
                    |record: MetricRecord| MetricRecord { configuration: label(axis, axis.levels[at]), ..record };
                plan.judged.iter().filter_map(with).map(named).collect()
            };
            axis.levels.iter().enumerate().map(of_level).collect()
        })
        .collect();
    let pairings: Vec<Pairing<'_>> = pooled.iter().flat_map(|levels| pairings(levels)).collect();
    records(&pairings, asked, seed)
}

struct Axis<'a> {
    /// Its position in a configuration's levels.
    at: usize,
    word: &'a str,
    /// The baseline's level first.
    levels: Vec<&'a str>,
}

/// The axes of a full factorial design; `None` for other sets of configurations.
fn axes<'a>(configurations: &'a [Configuration], baseline: Option<&str>) -> Option<Vec<Axis<'a>>> {
    let first = configurations.iter().find(|of| Some(of.name.as_str()) == baseline)?;
    let same_axes = |of: &Configuration| {
        of.levels.len() == first.levels.len() && of.levels.iter().zip(&first.levels).all(|(a, b)| a.axis == b.axis)
    };
    if first.levels.len() < 2 || !configurations.iter().all(same_axes) {
        return None;
    }
    let axis = |(at, Level { axis, name }): (usize, &'a Level)| {
        let others = configurations.iter().map(|of| of.levels[at].name.as_str());
        Axis { at, word: axis, levels: each_once(std::iter::once(name.as_str()).chain(others)) }
    };
    let axes: Vec<Axis<'_>> = first.levels.iter().enumerate().map(axis).collect();
    // Names are unique, so the right number of combinations means that each occurs once.
    let combinations: usize = axes.iter().map(|axis| axis.levels.len()).product();
    (combinations == configurations.len()).then_some(axes)
}

/// A metric's mean over the configurations with a property, block by block. `None` if a block lacks a configuration and
/// no other block has all.
fn pool(
    metrics: &[MetricRecord],
    metric: &str,
    configurations: &[Configuration],
    has: impl Fn(&Configuration) -> bool,
) -> Option<MetricRecord> {
    let of = |configuration: &Configuration| find(metrics, metric, &configuration.name);
    let records: Vec<&MetricRecord> = configurations.iter().filter(|of| has(of)).map(of).collect::<Option<Vec<_>>>()?;
    let mut by_block: BTreeMap<u32, Vec<&ValueRecord>> = BTreeMap::new();
    for value in records.iter().flat_map(|record| &record.values).filter(|value| value.used) {
        by_block.entry(value.block).or_default().push(value);
    }
    let whole = by_block.into_values().filter(|values| values.len() == records.len());
    let values: Vec<ValueRecord> = whole
        .map(|values| {
            let value = values.iter().map(|of| of.value).sum::<f64>() / values.len() as f64;
            ValueRecord { value, ..*values[0] }
        })
        .collect();
    let record = MetricRecord { values, ..(*records.first()?).clone() };
    let median = median(&used(&record));
    (!record.values.is_empty()).then_some(MetricRecord { median, low: None, high: None, ..record })
}

/// The first level's records, paired with those of each other level.
fn pairings(levels: &[Vec<MetricRecord>]) -> Vec<Pairing<'_>> {
    let Some((first, others)) = levels.split_first() else { return Vec::new() };
    let paired = others.iter().flatten().filter_map(|candidate| {
        let baseline = first.iter().find(|of| of.metric == candidate.metric)?;
        Some(Pairing { baseline, candidate, values: paired(baseline, candidate)?, primary: true })
    });
    paired.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compare, metrics, simulated};
    use loadline_stats::random;

    const MIB: f64 = 1048576.0;

    fn configuration(levels: [(&str, &str); 2]) -> Configuration {
        let levels = levels.map(|(axis, name)| Level { axis: axis.to_owned(), name: name.to_owned() }).to_vec();
        let name = format!("{}-{}", levels[0].name, levels[1].name);
        Configuration { name, levels, ..Configuration::default() }
    }

    fn four() -> Vec<Configuration> {
        let of = |gc: &'static str| ["17", "25"].map(|jdk| configuration([("gc", gc), ("jdk", jdk)]));
        [of("serial"), of("g1")].concat()
    }

    /// RSS of every configuration in every block: G1 costs 14 MiB, JDK 25 costs 2, and the rest is noise.
    fn measured(configurations: &[Configuration], blocks: u32) -> Vec<MetricRecord> {
        let like = metrics(&simulated::trials(1, &["x"], 1)).swap_remove(0);
        let record = |(at, of): (usize, &Configuration)| {
            let cost = |name: &str, mib: f64| if of.levels.iter().any(|level| level.name == name) { mib } else { 0.0 };
            let value = |block: u32| {
                let noise = random::stream(u64::from(block), at as u64).below(11) as f64 - 5.0;
                let value = (140.0 + cost("g1", 14.0) + cost("25", 2.0) + noise) * MIB;
                ValueRecord { trial: 0, block, value, used: true }
            };
            let values = (0..blocks).map(value).collect();
            let metric = "rss.loaded".to_owned();
            MetricRecord { metric, configuration: of.name.clone(), values, ..like.clone() }
        };
        configurations.iter().enumerate().map(record).collect()
    }

    #[test]
    fn each_axis_has_an_effect_averaged_over_the_other() {
        let (configurations, asked) = (four(), Compare::default());
        let metrics = measured(&configurations, 20);
        let found = effects(&metrics, &configurations, &asked, 1);
        let pairs: Vec<[&str; 2]> = found.iter().map(|of| [&*of.candidate, &*of.baseline]).collect();
        assert_eq!(pairs, [["g1", "serial"], ["25", "17"]]);
        for (row, mib) in found.iter().zip([14.0, 2.0]) {
            assert!((row.difference - mib * MIB).abs() < 3.0 * MIB, "{row:?}");
            assert!(row.low < Some(mib * MIB) && row.high > Some(mib * MIB), "{row:?}");
        }
        let of_pairs = compare(&metrics, &asked, 1);
        let width = |row: &ComparisonRecord| row.high.unwrap() - row.low.unwrap();
        let of_pair = of_pairs.iter().map(width).sum::<f64>() / of_pairs.len() as f64;
        assert!(width(&found[0]) < of_pair, "twice as many trials give a narrower interval");
    }

    #[test]
    fn a_baseline_sets_the_level_to_compare_with() {
        let configurations = four();
        let asked = Compare { baseline: Some("g1-25".to_owned()), ..Compare::default() };
        let found = effects(&measured(&configurations, 5), &configurations, &asked, 1);
        let pairs: Vec<[&str; 2]> = found.iter().map(|of| [&*of.candidate, &*of.baseline]).collect();
        assert_eq!(pairs, [["serial", "g1"], ["17", "25"]]);
    }

    #[test]
    fn a_block_without_all_configurations_does_not_count() {
        let configurations = four();
        let mut metrics = measured(&configurations, 6);
        metrics[0].values.remove(2);
        metrics[1].values[3].used = false;
        let found = effects(&metrics, &configurations, &Compare::default(), 1);
        let blocks: Vec<u32> = found.iter().map(|of| of.blocks).collect();
        assert_eq!(blocks, [4, 4], "two blocks lack a serial trial, and each effect needs both levels");
    }

    #[test]
    fn only_a_full_matrix_has_effects() {
        let none = |configurations: &[Configuration]| {
            assert_eq!(effects(&measured(configurations, 5), configurations, &Compare::default(), 1), []);
        };
        none(&four()[..3]);
        none(&four()[..1]);
        none(&[]);
        let plain = four().into_iter().map(|of| Configuration { levels: of.levels[..1].to_vec(), ..of });
        none(&plain.collect::<Vec<_>>());
        let configurations = four();
        let failed = &measured(&configurations, 5)[..3];
        let of_jdk = effects(failed, &configurations, &Compare::default(), 1);
        assert!(of_jdk.is_empty(), "an average without one combination would be biased");
    }

    #[test]
    fn a_name_on_two_axes_is_shown_with_its_axis() {
        let of = |gc| ["as-given", "b"].map(|jvm| configuration([("gc", gc), ("jvm", jvm)]));
        let configurations = [of("as-given"), of("g1")].concat();
        let found = effects(&measured(&configurations, 5), &configurations, &Compare::default(), 1);
        let names: Vec<[&str; 2]> = found.iter().map(|of| [&*of.candidate, &*of.baseline]).collect();
        assert_eq!(names, [["g1", "gc=as-given"], ["b", "jvm=as-given"]]);
    }
}
