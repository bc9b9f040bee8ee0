//! A fleet as OpenMetrics text, for a history of nights: lines, limits, what is wasted, verdicts, entries.

use super::{Samples, of_document, written};
use crate::record::FleetDocument;
use crate::report::summary::fleet::ALL;

/// The text, ending with `# EOF`: of the services, and of the comparison that nodes made blocks of.
pub fn fleet_openmetrics(document: &FleetDocument) -> String {
    let mut samples = Samples::default();
    match &document.comparison {
        Some(comparison) => of_document(&mut samples, comparison),
        None => {
            let labels = [("version", document.plan.loadline.as_str()), ("scenario", document.plan.name.as_str())];
            samples.push("build_info", &labels, Some(1.0));
        }
    }
    let standing = &document.standing;
    for (state, number) in [
        ("answered", standing.answered as usize),
        ("missing", standing.missing.len()),
        ("failed", standing.failed.len()),
        ("double", standing.double.len()),
    ] {
        samples.push("fleet_entries", &[("state", state)], Some(number as f64));
    }
    samples.push("fleet_node_seconds", &[], Some(document.node_seconds));
    if !document.services.is_empty() {
        samples.push("fleet_to_win_bytes", &[], Some(document.wasted_bytes as f64));
    }
    for of in &document.services {
        let labels = vec![("service", of.name.as_str())];
        let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
        samples.push("fleet_line_bytes", &labels, bytes(of.line.as_ref().map(|line| line.limit_bytes)));
        samples.push("fleet_limit_bytes", &labels, bytes(of.limit_bytes));
        samples.push("fleet_declared_bytes", &labels, bytes(of.declared_bytes));
        samples.push("fleet_wasted_bytes", &labels, of.wasted_bytes.map(|bytes| bytes as f64));
        samples.push_state("fleet_verdict", &labels, &ALL, of.verdict);
    }
    written(&samples)
}

#[cfg(test)]
mod tests {
    use super::super::super::{consumers::check_openmetrics, samples};
    use super::*;
    use crate::report::fleet_sample;

    #[test]
    fn lines_limits_and_verdicts_have_their_places() {
        let found = check_openmetrics(&fleet_openmetrics(&fleet_sample::fleet()));
        let value = |series: &str| found.iter().find(|(name, _)| name == series).map(|(_, value)| *value);
        let mib = |number: f64| Some(number * samples::MIB);
        assert_eq!(value("loadline_fleet_line_bytes{service=\"export\"}"), mib(300.0));
        assert_eq!(value("loadline_fleet_limit_bytes{service=\"export\"}"), mib(330.0));
        assert_eq!(value("loadline_fleet_wasted_bytes{service=\"export\"}"), mib(-74.0));
        assert_eq!(value("loadline_fleet_line_bytes{service=\"journal\"}"), None);
        assert_eq!(value("loadline_fleet_verdict{service=\"gateway\",verdict=\"not_held\"}"), Some(1.0));
        assert_eq!(value("loadline_fleet_verdict{service=\"gateway\",verdict=\"proved\"}"), Some(0.0));
        assert_eq!(value("loadline_fleet_entries{state=\"missing\"}"), Some(2.0));
        assert_eq!(value("loadline_fleet_node_seconds"), Some(9_000.0));
        assert_eq!(value("loadline_build_info{version=\"0.1.0\",scenario=\"shop\"}"), Some(1.0));
    }

    #[test]
    fn the_grammar_holds_for_any_text_and_beside_a_comparison() {
        for text in samples::hostile_texts() {
            check_openmetrics(&fleet_openmetrics(&fleet_sample::hostile(&text)));
        }
        let document = FleetDocument { comparison: Some(Box::new(samples::compared())), ..fleet_sample::fleet() };
        let found = check_openmetrics(&fleet_openmetrics(&document));
        assert!(found.iter().any(|(name, _)| name.starts_with("loadline_comparison_ratio{")));
    }
}
