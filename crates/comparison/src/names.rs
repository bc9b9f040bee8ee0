//! Resolves words to metrics: full names, families, and the closest name to a typo.

use super::catalogue::{FAMILIES, Family, ReadAt, family_named, split};
use super::metrics::{in_order, names_of};
use crate::record::{MetricRecord, Unit};
use crate::scenario::WARMUP;
use std::fmt::Display;

/// With more names than this, a message becomes unreadable.
const NAMES_SHOWN: usize = 5;

/// The full name of the metric that a word refers to.
///
/// A full name refers to itself. A phase family (`p99`) refers to the last phase in which requests were sent, except
/// warm-ups. A mark family (`rss`) is ambiguous. Errors: why the word refers to none of these metrics (not a metric,
/// ambiguous, not measured), with the closest names.
pub fn resolve(word: &str, metrics: &[MetricRecord]) -> Result<String, String> {
    let names = names_of(metrics);
    if names.iter().any(|name| name == word) {
        return Ok(word.to_owned());
    }
    let places = |family: &str| -> Vec<String> {
        names.iter().filter(|name| name.as_str() != family && split(name).0 == family).cloned().collect()
    };
    let alone = places(word);
    if let Some(family) = family_named(word) {
        return match (family.place, principal(metrics)) {
            (ReadAt::InPhase(_), Some(phase)) if names.contains(&format!("{word}.{phase}")) => {
                Ok(format!("{word}.{phase}"))
            }
            (ReadAt::AtMark(_), _) if !alone.is_empty() => Err(which(word, &alone)),
            _ => Err(not_measured(word, Some(family), &alone)),
        };
    }
    if !alone.is_empty() {
        return Err(which(word, &alone));
    }
    let (family, place) = split(word);
    let measured = places(family);
    if !place.is_empty() && (family_named(family).is_some() || !measured.is_empty()) {
        return Err(not_measured(word, family_named(family), &measured));
    }
    Err(unknown(word, &names))
}

/// Whether a word can refer to a metric of trials that have not run yet but have these `possible` metrics. A name with
/// one of the marks may refer to an owner, and only the account lists its owners.
pub fn foresee(word: &str, possible: &[MetricRecord]) -> Result<Option<Unit>, String> {
    let unit = |name: &str| possible.iter().find(|metric| metric.metric == name).map(|metric| metric.unit);
    match resolve(word, possible) {
        Ok(name) => Ok(unit(&name)),
        Err(why) => {
            let (family, place) = split(word);
            let at_mark = possible.iter().any(|metric| metric.metric == format!("rss.{place}"));
            let slip = FAMILIES.iter().any(|known| known.is_near(family));
            if family_named(family).is_none() && at_mark && !slip { Ok(Some(Unit::Bytes)) } else { Err(why) }
        }
    }
}

/// The phase that a bare family name refers to: the last one except the warm-up, and one with a rate if any has a rate.
pub(super) fn principal(metrics: &[MetricRecord]) -> Option<String> {
    let of_phases = |name: &str| matches!(family_named(name).map(|family| family.place), Some(ReadAt::InPhase(_)));
    let phases = in_order(
        metrics
            .iter()
            .map(|metric| split(&metric.metric))
            .filter_map(|(family, place)| of_phases(family).then_some(place)),
    );
    // A self-driven subject may not count requests in each of its phases.
    let counted = |phase: &&String| metrics.iter().any(|metric| split(&metric.metric) == ("rate", phase.as_str()));
    let measured = || phases.iter().rev().filter(|phase| *phase != WARMUP);
    measured().find(counted).or(measured().next()).or(phases.last()).cloned()
}

fn which(word: &str, names: &[String]) -> String {
    format!("`{word}` is measured more than once; choose one of these: {}", listed(names))
}

fn not_measured(word: &str, family: Option<&Family>, measured: &[String]) -> String {
    let needs = family.map(|family| family.needs).filter(|needs| !needs.is_empty());
    match (measured, needs) {
        ([], Some(needs)) => format!("`{word}` is not measured; it needs {needs}"),
        ([], None) => format!("`{word}` is not measured in these trials"),
        _ => format!("`{word}` is not measured; these metrics are: {}", listed(measured)),
    }
}

fn unknown(word: &str, names: &[String]) -> String {
    let families = FAMILIES.iter().map(|family| family.name.to_owned());
    let mut near: Vec<(usize, String)> = names
        .iter()
        .cloned()
        .chain(families)
        .map(|name| (strsim::damerau_levenshtein(word, &name), name))
        // A more distant name is a different word, not a typo.
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3)
        .collect();
    near.sort();
    near.dedup();
    let near: Vec<String> = near.into_iter().map(|(_, name)| name).take(NAMES_SHOWN).collect();
    match near.as_slice() {
        [] if word == "elasticity" => {
            "no figure is named `elasticity`; define it under `figures` in the scenario".to_owned()
        }
        [] => format!("no metric is named `{word}`; the measured metrics are {}", listed(names)),
        [only] => format!("no metric is named `{word}`; did you mean `{only}`?"),
        several => {
            format!("no metric is named `{word}`; similar names are {}", listed(several))
        }
    }
}

/// `a`, `b` and 3 more.
pub(super) fn listed(names: impl IntoIterator<Item = impl Display>) -> String {
    let mut quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    let more = quoted.len().saturating_sub(NAMES_SHOWN);
    quoted.truncate(NAMES_SHOWN);
    match (more, quoted.as_slice()) {
        (_, []) => "none".to_owned(),
        (0, [one]) => one.clone(),
        (0, [before @ .., last]) => format!("{} and {last}", before.join(", ")),
        (more, _) => format!("{} and {more} more", quoted.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics;
    use crate::record::Model;
    use crate::simulated;

    fn check(word: &str, expect: Result<&str, &[&str]>) {
        let metrics = metrics(&simulated::trials(3, &["a", "b"], 1));
        match (resolve(word, &metrics), expect) {
            (Ok(name), Ok(expected)) => assert_eq!(name, expected),
            (Err(why), Err(pieces)) => {
                for piece in pieces {
                    assert!(why.contains(piece), "`{word}`: `{why}` lacks `{piece}`");
                }
            }
            (found, _) => panic!("`{word}` gave {found:?}"),
        }
    }

    #[test]
    fn a_word_resolves_to_one_metric_or_an_error() {
        check("rss.loaded", Ok("rss.loaded"));
        check("p99", Ok("p99.steady"));
        check("p99.warmup", Ok("p99.warmup"));
        check("rss_peak", Ok("rss_peak"));
        check("start_up", Ok("start_up"));
        check("malloc.retained.loaded", Ok("malloc.retained.loaded"));
        check("rss", Err(&["choose one", "`rss.start`", "`rss.loaded`"]));
        check("malloc.retained", Err(&["choose one", "`malloc.retained.loaded`"]));
        check("rss.rested", Err(&["is not measured", "`rss.loaded`"]));
        check("p99.spike", Err(&["is not measured", "`p99.steady`"]));
        check("charge", Err(&["is not measured", "--limit"]));
        check("charge.loaded", Err(&["is not measured", "--limit"]));
        check("response.p99", Err(&["is not measured", "open model"]));
        check("rss.loadde", Err(&["is not measured", "`rss.loaded`"]));
        check("rsss.loaded", Err(&["no metric", "`rss.loaded`"]));
        check("p98", Err(&["no metric", "`p99`"]));
        check("", Err(&["no metric"]));
        check("<script>", Err(&["no metric", "the measured metrics are"]));
    }

    #[test]
    fn errors_offer_no_metrics_without_measurements() {
        assert!(resolve("banana", &[]).unwrap_err().contains("the measured metrics are none"));
        assert!(resolve("p99", &[]).unwrap_err().contains("is not measured"));
        assert_eq!(principal(&[]), None);
    }

    #[test]
    fn a_single_warm_up_is_the_principal_phase() {
        let mut trials = simulated::trials(1, &["a"], 1);
        trials[0].phases.retain(|phase| phase.name == WARMUP);
        assert_eq!(resolve("rate", &metrics(&trials)), Ok("rate.warmup".to_owned()));
    }

    #[test]
    fn a_phase_without_counts_is_skipped() {
        let mut trials = simulated::trials(1, &["a"], 1);
        let mut own = trials[0].phases.last().unwrap().clone();
        (own.name, own.model, own.requests) = ("own".to_owned(), Model::Subject, 0);
        trials[0].phases.push(own);
        assert_eq!(resolve("rate", &metrics(&trials)), Ok("rate.steady".to_owned()));
        assert!(resolve("rate.own", &metrics(&trials)).is_err());
    }
}
