//! Weight against speed: the configurations that another one beats in both respects.

use super::differences::weight;
use super::metrics::{configurations_of, find};
use super::names::principal;
use crate::record::{Better, MetricRecord, ParetoPoint, ParetoRecord};

/// RSS under load (PSS if the subject has several processes) against the rate and against the 99th percentile of the
/// principal phase, by medians. Empty for fewer than two configurations.
pub fn pareto(metrics: &[MetricRecord]) -> Vec<ParetoRecord> {
    let phase = principal(metrics).unwrap_or_default();
    ["rate", "p99"].iter().filter_map(|speed| against(metrics, weight(metrics), &format!("{speed}.{phase}"))).collect()
}

fn against(metrics: &[MetricRecord], x: &str, y: &str) -> Option<ParetoRecord> {
    let named = |name: &str| metrics.iter().find(|metric| metric.metric == name);
    let (x_better, y_better) = (named(x)?.better, named(y)?.better);
    let point = |configuration: String| {
        let [x, y] = [x, y].map(|name| find(metrics, name, &configuration).map(|metric| metric.median));
        Some(ParetoPoint { x: x?, y: y?, configuration, dominated_by: None })
    };
    let mut points: Vec<ParetoPoint> = configurations_of(metrics).into_iter().filter_map(point).collect();
    if points.len() < 2 {
        return None;
    }
    let beats = |one: &ParetoPoint, other: &ParetoPoint| {
        let (x, y) = (gain(x_better, one.x, other.x), gain(y_better, one.y, other.y));
        x >= 0.0 && y >= 0.0 && (x > 0.0 || y > 0.0)
    };
    let front: Vec<ParetoPoint> =
        points.iter().filter(|point| !points.iter().any(|other| beats(other, point))).cloned().collect();
    for point in &mut points {
        // If any point beats this one, a point of the front does too.
        point.dominated_by = front.iter().find(|best| beats(best, point)).map(|best| best.configuration.clone());
    }
    Some(ParetoRecord { x: x.to_owned(), y: y.to_owned(), points })
}

/// How much better `one` is than `other`.
fn gain(better: Better, one: f64, other: f64) -> f64 {
    match better {
        Better::Lower => other - one,
        Better::Higher => one - other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{metrics, simulated};

    fn point(configuration: &str, metric: &str, better: Better, median: f64) -> MetricRecord {
        let mut record = metrics(&simulated::trials(1, &["x"], 1)).swap_remove(0);
        (record.metric, record.configuration) = (metric.to_owned(), configuration.to_owned());
        (record.better, record.median) = (better, median);
        record
    }

    #[test]
    fn a_dominated_point_names_the_better_one() {
        let mut records = Vec::new();
        for (name, rss, rate) in
            [("a", 60.0, 100.0), ("b", 70.0, 90.0), ("c", 50.0, 80.0), ("d", 60.0, 100.0), ("e", 65.0, 95.0)]
        {
            records.push(point(name, "rss.loaded", Better::Lower, rss));
            records.push(point(name, "rate.steady", Better::Higher, rate));
        }
        let found = pareto(&records);
        assert_eq!(found.len(), 1, "an unmeasured p99 gives no Pareto front");
        let dominated: Vec<Option<&str>> = found[0].points.iter().map(|point| point.dominated_by.as_deref()).collect();
        assert_eq!(dominated, [None, Some("a"), None, None, Some("a")]);
        assert_eq!((found[0].x.as_str(), found[0].y.as_str()), ("rss.loaded", "rate.steady"));
    }

    #[test]
    fn a_single_configuration_has_no_comparison() {
        assert_eq!(pareto(&metrics(&simulated::trials(3, &["a"], 1))), []);
        assert_eq!(pareto(&metrics(&simulated::trials(3, &["a", "b"], 1))).len(), 2);
        assert_eq!(pareto(&[]), []);
    }
}
