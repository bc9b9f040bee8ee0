//! Each doubt about a comparison is raised by its cause, and only by that.

use super::*;
use crate::record::{AccountRecord, DoubtRecord, Jvm, Mark, PhaseRecord};
use crate::scenario::Compare;
use crate::{blocks, compare, metrics, simulated};
use std::collections::BTreeMap;

fn trials(count: u32) -> Vec<Trial> {
    let mut trials = simulated::trials(count, &["a", "b"], 1);
    for trial in &mut trials {
        let option = if trial.configuration == "a" { "-XX:+UseG1GC" } else { "-Xmx64m" };
        let port = 18_080 + trial.index;
        trial.env = Some(BTreeMap::new());
        trial.command = vec!["java".to_owned(), option.to_owned(), "-jar".to_owned(), "x".to_owned(), port.to_string()];
        trial.jvm = Some(Jvm {
            version: Some("17.0.1".to_owned()),
            options: vec![option.to_owned()],
            flags: Some(vec![format!("-XX:Mark={}", trial.configuration)]),
            ..Jvm::default()
        });
    }
    trials
}

fn found(trials: &[Trial]) -> Vec<Doubt> {
    let asked = Compare { metrics: vec!["rss_peak".to_owned()], ..Compare::default() };
    let mut metrics = metrics(trials);
    metrics.retain(|metric| metric.metric == "rss_peak");
    doubts(trials, &blocks(trials), &compare(&metrics, &asked, 1))
}

#[test]
fn trials_that_differ_only_in_options_raise_no_doubt() {
    assert_eq!(found(&trials(5)), []);
    assert_eq!(found(&[]), []);
    assert_eq!(found(&simulated::trials(1, &["a"], 1)), []);
}

#[test]
fn few_blocks_raise_a_doubt() {
    assert_eq!(found(&trials(4)), [Doubt::Comparing(Comparing::FewBlocks { blocks: 4 })]);
    let mut disturbed = trials(5);
    disturbed[8].outcome = Outcome::Killed;
    assert_eq!(found(&disturbed), [Doubt::Comparing(Comparing::FewBlocks { blocks: 4 })]);
}

#[test]
fn equal_effective_settings_are_equal_in_every_visible_way() {
    let mut equal = trials(5);
    equal.iter_mut().for_each(|trial| trial.jvm.as_mut().unwrap().flags = Some(vec!["-XX:+UseG1GC".to_owned()]));
    let names = vec![equal[0].configuration.clone(), equal[1].configuration.clone()];
    assert_eq!(found(&equal), [Doubt::Comparing(Comparing::EqualConfigurations { configurations: names })]);
    let but = |change: fn(&mut Trial)| {
        let mut trials = equal.clone();
        trials.iter_mut().filter(|trial| trial.configuration == "b").for_each(change);
        assert_eq!(found(&trials), []);
    };
    but(|trial| trial.env = Some(BTreeMap::from([("MALLOC_ARENA_MAX".to_owned(), "1".to_owned())])));
    but(|trial| trial.env = None);
    but(|trial| trial.limit_bytes = Some(1));
    but(|trial| trial.command.push("--fast".to_owned()));
    but(|trial| trial.jvm = None);
    but(|trial| trial.jvm.as_mut().unwrap().flags = None);
    but(|trial| trial.jvm.as_mut().unwrap().collector = Some("Serial".to_owned()));
    // No flag shows the effect of a property or an agent.
    but(|trial| trial.jvm.as_mut().unwrap().options.push("-Dx=1".to_owned()));
    // The same options: the intended difference is elsewhere.
    but(|trial| {
        trial.jvm.as_mut().unwrap().options = vec!["-XX:+UseG1GC".to_owned()];
        trial.command[1] = "-XX:+UseG1GC".to_owned();
    });
}

#[test]
fn unequal_work_is_reported_by_phase() {
    let mut unequal = trials(5);
    unequal.iter_mut().filter(|trial| trial.configuration == "b").for_each(|trial| trial.phases[1].ok = 49_600);
    assert_eq!(found(&unequal), [], "a difference of work within one percent is ignored");
    unequal.iter_mut().filter(|trial| trial.configuration == "b").for_each(|trial| trial.phases[1].ok = 49_000);
    let expected = Doubt::Comparing(Comparing::UnequalWork {
        phase: "steady".to_owned(),
        least: "b".to_owned(),
        ok_least: 49_000,
        most: "a".to_owned(),
        ok_most: 50_000,
    });
    assert_eq!(found(&unequal), [expected]);
}

#[test]
fn builds_and_generators_are_reported() {
    let mut mixed = trials(5);
    let name = mixed[0].configuration.clone();
    mixed[0].jvm.as_mut().unwrap().version = Some("17.0.2".to_owned());
    let versions = vec!["17.0.2".to_owned(), "17.0.1".to_owned()];
    assert_eq!(found(&mixed), [Doubt::Comparing(Comparing::DifferentBuilds { configuration: name, versions })]);

    let mut limited = trials(5);
    let doubt = Doubt::GeneratorSaturated { phase: "steady".to_owned(), cpu_share: 0.95, subject_share: None };
    limited[0].doubts.push(DoubtRecord::from(doubt));
    let configurations = vec![limited[0].configuration.clone()];
    assert_eq!(
        found(&limited),
        [Doubt::Comparing(Comparing::GeneratorLimit { phase: "steady".to_owned(), configurations })]
    );
}

#[test]
fn compiler_memory_is_reported_only_after_a_short_rest() {
    let of = |rest_s: f64, live_mib: [u64; 3]| {
        let mut trials = simulated::trials(3, &["a"], 1);
        for (trial, mib) in trials.iter_mut().zip(live_mib) {
            let account = Some(AccountRecord::holding([(MallocLive.name(), mib * MIB)]));
            let phase = |name: &str, at_s| PhaseRecord { name: name.to_owned(), at_s, ..PhaseRecord::default() };
            trial.phases = vec![phase("steady", 10.0), phase("rest", 20.0)];
            trial.marks = vec![Mark { name: "rested".to_owned(), at_s: 20.0 + rest_s, account, ..Mark::default() }];
        }
        doubts(&trials, &blocks(&trials), &[])
    };
    let told =
        Comparing::CompilerMemory { configuration: "a".to_owned(), mark: "rested".to_owned(), spread_bytes: 17 * MIB };
    assert_eq!(of(5.0, [15, 31, 14]), [Doubt::Comparing(told)]);
    assert_eq!(of(12.0, [15, 31, 14]), []);
    assert_eq!(of(5.0, [15, 16, 14]), []);
}
