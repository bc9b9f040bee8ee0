//! Conditions in which the two sides differ: what may explain a difference that the change does not.

use super::super::escape::code;
use super::Sides;
use crate::record::{Document, Jvm, Machine, Trial};
use crate::units::Bytes;

/// Flags shown of each side; the archives have the others.
const FLAGS_MAX: usize = 6;

/// A line for each condition that differs, the baseline's value first.
pub(super) fn lines(document: &Document, Sides { baseline, candidate }: &Sides<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut differ = |what: &str, before: Option<String>, after: Option<String>| {
        // What one of them does not say differs in nothing that is known.
        if let (Some(before), Some(after)) = (before, after)
            && before != after
        {
            lines.push(format!("{what}: {} → {}", code(&before), code(&after)));
        }
    };
    let trials = [baseline, candidate].map(|side| side.trial(document));
    let [before, after] = trials.map(|trial| trial.and_then(|trial| trial.jvm.as_ref()));
    for (what, read) in OF_JVM {
        differ(what, before.and_then(read), after.and_then(read));
    }
    for (what, read) in OF_TRIAL {
        differ(what, trials[0].and_then(read), trials[1].and_then(read));
    }
    let [old, new] = [baseline, candidate].map(|side| side.conditions(document));
    for (what, read) in OF_MACHINE {
        differ(what, read(&old.machine), read(&new.machine));
    }
    differ("load", Some(old.load.join("; ")), Some(new.load.join("; ")));
    differ("scenario", Some(old.scenario.clone()), Some(new.scenario.clone()));
    differ("Loadline", Some(old.loadline.clone()), Some(new.loadline.clone()));
    lines.extend(before.zip(after).and_then(|(before, after)| flags(before, after)));
    lines
}

/// What is read of a JVM.
type OfJvm = (&'static str, fn(&Jvm) -> Option<String>);
/// What is read of a trial.
type OfTrial = (&'static str, fn(&Trial) -> Option<String>);
/// What is read of a machine.
type OfMachine = (&'static str, fn(&Machine) -> Option<String>);

const OF_JVM: [OfJvm; 4] = [
    ("JDK", |jvm| jvm.version.clone()),
    ("JVM", |jvm| jvm.name.clone()),
    ("collector", |jvm| jvm.collector.clone()),
    ("malloc", |jvm| jvm.allocator.clone()),
];

const OF_TRIAL: [OfTrial; 2] = [
    ("limit", |trial| Some(trial.limit_bytes.map_or("none".to_owned(), |limit| Bytes(limit).to_string()))),
    ("CPUs of the subject", |trial| {
        let numbers = |cpus: &Vec<u32>| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        Some(trial.subject_cpus.as_ref().map_or("any".to_owned(), numbers))
    }),
];

const OF_MACHINE: [OfMachine; 6] = [
    ("CPU", |machine| machine.cpu_model.clone()),
    ("CPUs", |machine| Some(machine.cores.to_string())),
    ("memory", |machine| Some(Bytes(machine.memory_bytes).to_string())),
    ("kernel", |machine| Some(machine.kernel.clone())),
    ("memory cgroup", |machine| Some(machine.cgroup.clone())),
    ("huge pages", |machine| machine.transparent_huge_pages.clone()),
];

/// Flags that only one of them has in force, those that were asked for where a JVM could not be asked.
fn flags(before: &Jvm, after: &Jvm) -> Option<String> {
    let (what, before, after) = match (&before.flags, &after.flags) {
        (Some(before), Some(after)) => ("flags in force", before, after),
        _ => ("options", &before.options, &after.options),
    };
    let only = |one: &[String], other: &[String]| {
        let own: Vec<&String> = one.iter().filter(|flag| !other.contains(flag)).collect();
        let more = own.len().saturating_sub(FLAGS_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown: Vec<String> = own.iter().take(FLAGS_MAX).map(|flag| code(flag)).collect();
        if shown.is_empty() { "none".to_owned() } else { format!("{}{more}", shown.join(" ")) }
    };
    let (gone, come) = (only(before, after), only(after, before));
    (gone != come).then(|| format!("{what}: {gone} → {come}"))
}
