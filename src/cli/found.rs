//! From the trials of a search to its document: the same right after the search and from its archive.

use crate::record::{Conditions, Document, FindRecord, RESULT_SCHEMA, SoughtRecord, SoughtStage, Trial, Unknowns};
use crate::scenario::{Configuration, PhaseKind, Scenario};
use crate::search::{self, Course};

/// Options by which a user has chosen the heap.
const HEAP_GIVEN: [&str; 2] = ["-Xmx", "-XX:MaxHeapSize="];
/// Options by which a user lets the JVM choose it by the limit.
const HEAP_BY_LIMIT: [&str; 3] = ["-XX:MaxRAMPercentage=", "-XX:MaxRAMFraction=", "-XX:MaxRAM="];

/// Whether these trials are those of a search.
pub(super) fn is_search(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| trial.sought.is_some())
}

/// The document of a search. Metrics and comparisons are of trials that ask the same; those of a search do not.
pub(super) fn document(conditions: &Conditions, scenario: &Scenario, trials: &[Trial]) -> Document {
    Document {
        schema: RESULT_SCHEMA.to_owned(),
        conditions: conditions.clone(),
        trials: trials.to_vec(),
        metrics: Vec::new(),
        blocks: Vec::new(),
        comparisons: Vec::new(),
        pareto: Vec::new(),
        doubts: Vec::new(),
        find: found(scenario, trials),
        findings: Vec::new(),
        budgets: Vec::new(),
    }
}

/// What a search has found, by its scenario and its trials alone.
fn found(scenario: &Scenario, trials: &[Trial]) -> Option<FindRecord> {
    let configuration = scenario.configurations.first()?;
    let first = |of: &SoughtRecord| matches!(of.stage, SoughtStage::Ask | SoughtStage::Rate);
    let asked = trials.iter().find(|trial| trial.sought.as_ref().is_some_and(first))?;
    let course = course(scenario, configuration, asked.limit_bytes?);
    let mut record = search::conclude(&course, &scenario.find, trials);
    let heap = record.line.as_ref().and_then(|line| line.heap_bytes);
    let direct = record.line.as_ref().and_then(|line| line.direct_bytes);
    let given = heap.map(max_heap).into_iter().chain(direct.map(max_direct));
    record.options = given.chain(configuration.jvm_options()).collect();
    if let Some(line) = &record.line {
        let classes = asked.sought.as_ref().and_then(|sought| sought.classes);
        let live = asked.marks.iter().rev().find_map(|mark| mark.heap.live_bytes);
        let needed = heap.or(configuration.heap.map(|heap| heap.0)).or(live);
        record.others = needed.map(|heap| search::rules(heap, line.limit_bytes, classes)).unwrap_or_default();
    }
    Some(record)
}

/// The course of a search of this configuration, where memory is no concern at `limit_max` bytes.
pub(super) fn course(scenario: &Scenario, configuration: &Configuration, limit_max: u64) -> Course {
    let find = &scenario.find;
    Course {
        unknowns: unknowns(scenario, configuration),
        step: find.step,
        proofs: find.proofs,
        limit_min: find.limit_min.map(|limit| limit.0),
        limit_max,
        rate_per_s: base_rate(scenario).filter(|_| find.max_rate),
        prove: find.prove.map(|limit| limit.0),
        trials_max: find.trials_max,
        warm: find.warm,
    }
}

/// What varies: the heap only where nobody has chosen it.
pub(super) fn unknowns(scenario: &Scenario, configuration: &Configuration) -> Unknowns {
    let begins = |beginnings: &[&str]| {
        let of_image = scenario.subject.image.iter().flat_map(|image| &image.heap_options);
        let words = configuration.jvm.iter().chain(&scenario.subject.command).chain(of_image).map(String::as_str);
        let values = scenario.subject.env.iter().chain(&configuration.env).flat_map(|(_, value)| value.split(' '));
        words.chain(values).any(|word| beginnings.iter().any(|beginning| word.starts_with(beginning)))
    };
    match () {
        () if scenario.find.max_rate => Unknowns::Rate,
        () if configuration.heap.is_some() || begins(&HEAP_GIVEN) => Unknowns::Limit,
        () if scenario.find.as_is || begins(&HEAP_BY_LIMIT) => Unknowns::AsIs,
        () => Unknowns::HeapAndLimit,
    }
}

/// The rate of the last measured phase with an open model, per second: what `--max-rate` raises.
pub(super) fn base_rate(scenario: &Scenario) -> Option<f64> {
    scenario.load.iter().rev().filter(|phase| !phase.is_warmup()).find_map(|phase| match &phase.kind {
        PhaseKind::Work(work) => work.schedule.rate().map(|rate| rate.max()),
        _ => None,
    })
}

/// The option that bounds direct memory.
pub(super) fn max_direct(bytes: u64) -> String {
    format!("-XX:MaxDirectMemorySize={}", crate::units::Bytes(bytes).java())
}

/// The option that bounds the heap.
pub(super) fn max_heap(bytes: u64) -> String {
    format!("-Xmx{}", crate::units::Bytes(bytes).java())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;
    use crate::units::Bytes;
    use std::path::Path;

    fn check(subject: &str, configuration: &str, find: &str, expect: Unknowns) {
        let text = format!(
            "name: x\nsubject: {{command: [java, \"{{jvm}}\"{subject}, -jar, x.jar]}}\n\
             configurations: {{a: {{{configuration}}}}}\n{find}\n\
             load: [steady: {{closed: {{connections: 1, requests: 1}}, get: /}}]\n"
        );
        let scenario = parse(&text, Path::new("/x"), &[17]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(unknowns(&scenario, &scenario.configurations[0]), expect, "{text}");
    }

    #[test]
    fn the_heap_is_searched_only_where_nobody_chose_it() {
        check("", "", "", Unknowns::HeapAndLimit);
        check("", "heap: 64m", "", Unknowns::Limit);
        check(", -Xmx64m", "", "", Unknowns::Limit);
        check("", "jvm: [\"-XX:MaxHeapSize=64m\"]", "", Unknowns::Limit);
        check("", "env: {JAVA_TOOL_OPTIONS: \"-Dx=y -Xmx1g\"}", "", Unknowns::Limit);
        check("", "jvm: [\"-XX:MaxRAMPercentage=75\"]", "", Unknowns::AsIs);
        check("", "", "find: {as_is: true}", Unknowns::AsIs);
        assert_eq!(max_heap(Bytes::mib(8).0), "-Xmx8m");
    }
}
