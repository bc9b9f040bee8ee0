//! A search's unknowns, bounds, and target, and the record of its result.

use super::{SearchSpec, conclude, pace, rules};
use crate::comparison;
use crate::error::{Error, Result};
use crate::record::{FindRecord, ProbeRecord, ProbeStage, Trial, Unknowns};
use crate::scenario::{Budget, Change, Configuration, FindSettings, Gc, Kind, MarkPoint, RamShare, Scenario};
use crate::units::{Bytes, Span};

/// Options with which a user sets the heap.
const HEAP_GIVEN: [&str; 2] = ["-Xmx", "-XX:MaxHeapSize="];
/// Options with which a user lets the JVM derive the heap from the limit: shares of small memory, shares of large
/// memory, and others.
const OF_SMALL: [&str; 2] = ["-XX:MinRAMPercentage=", "-XX:MinRAMFraction="];
const OF_LARGE: [&str; 2] = ["-XX:MaxRAMPercentage=", "-XX:MaxRAMFraction="];
const MAX_RAM: [&str; 1] = ["-XX:MaxRAM="];
/// The option with which a user limits direct memory.
const DIRECT_GIVEN: &str = "-XX:MaxDirectMemorySize=";

/// The default target of a load: nearly all of the offered rate, without errors. A closed model varies on its own.
/// Errors: `Bug` if it cannot be parsed.
pub fn usual_target(is_open: bool) -> Result<Vec<Budget>> {
    let rate = if is_open { "rate>=98%" } else { "rate>=90%" };
    [rate, "failed==0"].into_iter().map(|text| text.parse().map_err(Error::bug)).collect()
}

/// Applies the options of a search to a scenario, and checks that it can be searched. Adds the marks that a search
/// needs: the heap guess uses the live set at the mark `collected`. Errors: `Request`, as for [`Scenario::validate`]
/// and [`check`].
pub fn settle(scenario: &mut Scenario, typed: FindSettings) -> Result<()> {
    scenario.find.apply(typed);
    if scenario.find.target.is_empty() {
        scenario.find.target = usual_target(scenario.load.is_open())?;
    }
    let wanted = [MarkPoint::Start, MarkPoint::Loaded, MarkPoint::Collected];
    scenario.marks = scenario.marks_possible().into_iter().filter(|mark| wanted.contains(mark)).collect();
    scenario.validate()?;
    check(scenario)
}

/// Whether a scenario can be searched. Errors: `Request`, with the problem in its configurations, target, or bounds.
pub fn check(scenario: &Scenario) -> Result<()> {
    let [configuration] = scenario.configurations.as_slice() else {
        let names: Vec<&str> = scenario.configurations.iter().map(|of| of.name.as_str()).collect();
        return Err(Error::request("a search allows only one configuration")
            .hint(format!("choose one of them with `--only`: {}", names.join(", "))));
    };
    pace::check_minutes(scenario)?;
    let phases = scenario.load.works();
    for target in &scenario.find.target {
        comparison::check_target(target, &phases).map_err(Error::request)?;
    }
    let find = &scenario.find;
    if find.max_rate && (configuration.limit.is_none() || scenario.load.rate_per_s().is_none()) {
        return Err(Error::request("the search for the highest rate needs a limit, and a rate to start with")
            .hint("specify both: `--limit 128m --rate 200`, or `limit` and an open model in the scenario"));
    }
    let limits = [configuration.limit, find.limit_max].into_iter().flatten();
    if let (Some(heap), Some(limit)) = (configuration.heap, limits.min())
        && heap >= limit
    {
        return Err(Error::request(format!("the heap of {heap} does not fit within the limit of {limit}"))
            .hint("omit `heap` to search for it, or raise the limit"));
    }
    if find.as_is && scenario.subject.kind == Kind::Native {
        return Err(Error::request("a native program has no heap for a JVM to size").hint("remove `--as-is`"));
    }
    if find.as_is && unknowns(scenario, configuration) == Unknowns::Limit {
        return Err(Error::request("the heap size is both given and left to the JVM")
            .hint("remove either `--as-is` or the heap size (`--heap`, `-Xmx`)"));
    }
    Ok(())
}

/// The record of a search, computed only from its scenario and its trials.
pub fn found(scenario: &Scenario, trials: &[Trial]) -> Option<FindRecord> {
    let configuration = scenario.configurations.first()?;
    let first = |of: &ProbeRecord| matches!(of.stage, ProbeStage::Reference | ProbeStage::Rate);
    let asked = trials.iter().find(|trial| trial.probe.as_ref().is_some_and(first))?;
    let spec = spec(scenario, configuration, asked.limit_bytes?);
    let mut record = conclude(&spec, &scenario.find, trials);
    let heap = record.line.as_ref().and_then(|line| line.heap_bytes);
    let direct = record.line.as_ref().and_then(|line| line.direct_bytes);
    let given = given(record.heap_bytes, direct).filter_map(|change| change.option());
    record.options = given.chain(configuration.jvm_options()).collect();
    record.options.extend(asked.collector_by_cpus().into_iter().flat_map(Gc::options));
    if let Some(line) = &record.line {
        let classes = asked.probe.as_ref().and_then(|probe| probe.classes);
        let live = asked.marks.iter().rev().find_map(|mark| mark.heap.live_bytes);
        let set = heap.or_else(|| heap_given(scenario, configuration));
        // No rule sizes a heap that is set in the server's own command.
        let needed = set.or_else(|| live.filter(|_| asked.heap_typed().is_none()));
        record.others = needed.map(|heap| rules(heap, line.limit_bytes, classes)).unwrap_or_default();
        let share =
            record.heap_bytes.or(set).zip(record.limit_bytes).map(|(heap, limit)| RamShare::options(heap, limit));
        record.share_options = share.unwrap_or_default();
    }
    Some(record)
}

/// The settings for a search of this configuration, with ample memory at `limit_max` bytes.
pub fn spec(scenario: &Scenario, configuration: &Configuration, limit_max: u64) -> SearchSpec {
    let find = &scenario.find;
    SearchSpec {
        unknowns: unknowns(scenario, configuration),
        step: find.step,
        proofs: find.proofs,
        limit_min: find.limit_min.map(|limit| limit.0),
        limit_max,
        rate_per_s: scenario.load.rate_per_s().filter(|_| find.max_rate),
        prove: find.prove.map(|limit| limit.0),
        headroom: find.headroom,
        soak_s: (find.soak > Span::default() && scenario.load.can_last(find.soak)).then(|| find.soak.as_s()),
        trials_max: find.trials_max,
        seconds_max: find.minutes.map(|minutes| minutes * 60.0),
        warm: find.warm,
        starts_alone: starts_alone(scenario),
        direct_given: words(scenario, configuration).any(|word| word.starts_with(DIRECT_GIVEN)),
        ram_share: ram_share(scenario, configuration),
    }
}

/// Whether a subject becomes ready without load as it does with load: it works only on request, and its readiness
/// check does not depend on the load's expectations.
fn starts_alone(scenario: &Scenario) -> bool {
    let (load, ready) = (&scenario.load, &scenario.subject.ready);
    let is_usual = load.ready_status(ready).is_none_or(|status| (200..300).contains(&status));
    load.is_driven() && !load.has_own_work() && is_usual
}

/// The shares of a limit that the JVM uses for its heap, from the last options that set them.
fn ram_share(scenario: &Scenario, configuration: &Configuration) -> RamShare {
    let last = |[percentage, fraction]: [&str; 2], usual: f64| {
        let share = |word: &str| {
            let percent = word.strip_prefix(percentage).and_then(|percent| percent.parse::<f64>().ok());
            let fraction = word.strip_prefix(fraction).and_then(|fraction| fraction.parse::<f64>().ok());
            percent.map(|percent| percent / 100.0).or(fraction.map(|fraction| 1.0 / fraction))
        };
        let shares = words(scenario, configuration).filter_map(share).filter(|share| *share > 0.0 && *share <= 1.0);
        shares.last().unwrap_or(usual)
    };
    let usual = RamShare::default();
    RamShare { small: last(OF_SMALL, usual.small), large: last(OF_LARGE, usual.large) }
}

/// The maximum heap that a user set, in bytes, from the last option that sets it.
fn heap_given(scenario: &Scenario, configuration: &Configuration) -> Option<u64> {
    let size = |word: &str| HEAP_GIVEN.iter().find_map(|option| word.strip_prefix(option))?.parse::<Bytes>().ok();
    let typed = words(scenario, configuration).filter_map(size).last();
    configuration.heap.or(typed).map(|heap| heap.0)
}

/// All JVM options, word by word, from the command line, the image, and the environment.
fn words<'a>(scenario: &'a Scenario, configuration: &'a Configuration) -> impl Iterator<Item = &'a str> {
    let of_image = scenario.subject.image.iter().flat_map(|image| &image.heap_options);
    let values = scenario.subject.env.iter().chain(&configuration.env).flat_map(|(_, value)| value.split(' '));
    let said = scenario.subject.command.iter().chain(of_image).map(String::as_str);
    said.chain(values).chain(configuration.jvm.iter().map(String::as_str))
}

/// The unknowns: the heap only if there is one and the user has not set it.
pub(super) fn unknowns(scenario: &Scenario, configuration: &Configuration) -> Unknowns {
    let begins = |beginnings: &[&str]| {
        words(scenario, configuration).any(|word| beginnings.iter().any(|beginning| word.starts_with(beginning)))
    };
    match () {
        () if scenario.find.max_rate => Unknowns::Rate,
        () if scenario.subject.kind == Kind::Native => Unknowns::Limit,
        () if configuration.heap.is_some() || begins(&HEAP_GIVEN[..]) => Unknowns::Limit,
        () if scenario.find.as_is || [&OF_SMALL[..], &OF_LARGE, &MAX_RAM].into_iter().any(begins) => Unknowns::AsIs,
        () => Unknowns::HeapAndLimit,
    }
}

/// The changes that the search itself makes to a configuration.
pub fn given(heap: Option<u64>, direct: Option<u64>) -> impl Iterator<Item = Change> {
    let heap = heap.map(|heap| Change::HeapMax(Bytes(heap)));
    heap.into_iter().chain(direct.map(|direct| Change::DirectMax(Bytes(direct))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;
    use std::path::Path;

    fn scenario(configurations: &str, more: &str, load: &str) -> Scenario {
        scenario_with("", configurations, more, load)
    }

    /// The same, with options in the command itself.
    fn scenario_with(options: &str, configurations: &str, more: &str, load: &str) -> Scenario {
        let text = format!(
            "name: x\nsubject: {{command: [java, \"{{jvm}}\"{options}, -jar, x.jar]}}\n\
             configurations: {{{configurations}}}\n{more}\nload: [{load}]\n"
        );
        parse(&text, Path::new("/x"), &[17]).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    const CLOSED: &str = "steady: {closed: {connections: 1, requests: 1}, get: /}";
    const OPEN: &str = "steady: {constant: {rate: 200, duration: 1s}, get: /}";

    #[test]
    fn a_load_has_a_default_target() {
        let of = |load: &str| {
            usual_target(scenario("a: {}", "", load).load.is_open())
                .unwrap()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(CLOSED), ["rate>=90%", "failed==0"]);
        assert_eq!(of(OPEN), ["rate>=98%", "failed==0"]);
    }

    #[test]
    fn unsearchable_scenarios_are_explained() {
        let refused = |configurations: &str, more: &str, load: &str, expect: &str| match (
            super::check(&scenario(configurations, more, load)),
            expect,
        ) {
            (Ok(()), "") => {}
            (Err(error), expect) if !expect.is_empty() && error.what.starts_with(expect) => {}
            (other, expect) => panic!("{other:?} and not `{expect}`: {configurations} {more}"),
        };
        refused("a: {}", "", CLOSED, "");
        refused("a: {heap: 8m}, b: {heap: 9m}", "", CLOSED, "a search allows only one configuration");
        let absent = "the target `p99.absent<5ms` cannot be used: no phase is named `absent`";
        refused("a: {}", "target: ['p99.absent<5ms']", CLOSED, absent);
        refused("a: {limit: 64m}", "find: {max_rate: true}", OPEN, "");
        refused("a: {}", "find: {max_rate: true}", OPEN, "the search for the highest rate needs a limit");
        refused("a: {limit: 64m}", "find: {max_rate: true}", CLOSED, "the search for the highest rate needs a limit");
        refused(
            "a: {heap: 64m, limit: 64m}",
            "",
            CLOSED,
            "the heap of 64.0 MiB does not fit within the limit of 64.0 MiB",
        );
        refused("a: {heap: 64m}", "find: {limit_max: 63m}", CLOSED, "the heap of 64.0 MiB does not fit");
        refused("a: {heap: 63m}", "find: {limit_max: 64m}", CLOSED, "");
        refused("a: {heap: 63m}", "find: {as_is: true}", CLOSED, "the heap size is both given and left to the JVM");
        refused("a: {}", "find: {as_is: true}", CLOSED, "");
    }

    fn check(options: &str, configuration: &str, find: &str, expect: Unknowns) {
        let scenario = scenario_with(options, &format!("a: {{{configuration}}}"), find, CLOSED);
        assert_eq!(unknowns(&scenario, &scenario.configurations[0]), expect, "{options} {configuration} {find}");
    }

    #[test]
    fn a_native_program_has_no_heap_to_search() {
        let text = "name: x\nsubject: {kind: native, command: [serves, \"{port}\"]}\nload: [steady: {constant: \
                    {rate: 9, duration: 1s}, get: /}]\n";
        let scenario = parse(text, Path::new("/x"), &[]).unwrap();
        assert_eq!(unknowns(&scenario, &scenario.configurations[0]), Unknowns::Limit);
        let mut left = scenario.clone();
        left.find.as_is = true;
        assert!(super::check(&left).unwrap_err().what.starts_with("a native program has no heap"));
    }

    #[test]
    fn the_heap_is_searched_only_if_not_set() {
        check("", "", "", Unknowns::HeapAndLimit);
        check("", "heap: 64m", "", Unknowns::Limit);
        check(", -Xmx64m", "", "", Unknowns::Limit);
        check("", "jvm: [\"-XX:MaxHeapSize=64m\"]", "", Unknowns::Limit);
        check("", "env: {JAVA_TOOL_OPTIONS: \"-Dx=y -Xmx1g\"}", "", Unknowns::Limit);
        check("", "jvm: [\"-XX:MaxRAMPercentage=75\"]", "", Unknowns::AsIs);
        check("", "jvm: [\"-XX:MinRAMPercentage=6.6\"]", "", Unknowns::AsIs);
        check("", "", "find: {as_is: true}", Unknowns::AsIs);
    }
}
