//! Circumstances of trials other than the subject: the single list of possible reasons for a difference that is not due
//! to the subject.

use super::{Conditions, Jvm, Trial, each_once};
use crate::scenario::Cpus;
use crate::units::{Bytes, clipped};
use std::fmt;

/// Entries shown per side if a circumstance is a list; the archives have all of them.
const TOLD_MAX: usize = 6;
/// Characters shown per entry: enough for a phase's load, but not for a class path.
const CHARACTERS_MAX: usize = 120;

/// A trial's known circumstances other than its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circumstances(Vec<Circumstance>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Circumstance {
    label: &'static str,
    /// A single value, or all entries of a list.
    entries: Vec<String>,
}

/// A circumstance that is known on both sides and differs: `JDK: 17.0.15 | 21.0.3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// Its name.
    pub label: &'static str,
    /// Its earlier value, shortened; for a list, the entries only on this side.
    pub before: String,
    /// Its later value.
    pub after: String,
}

impl fmt::Display for Differing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} | {}", self.label, self.before, self.after)
    }
}

impl Circumstances {
    /// The circumstances of a run and, if given, of one of its trials.
    pub fn of(conditions: &Conditions, trial: Option<&Trial>) -> Self {
        let machine = &conditions.machine;
        let jvm = trial.and_then(|trial| trial.jvm.as_ref());
        let of_jvm = |read: fn(&Jvm) -> &Option<String>| jvm.and_then(|jvm| read(jvm).clone());
        let limit = |trial: &Trial| trial.limit_bytes.map_or("none".to_owned(), |limit| Bytes(limit).to_string());
        let cpus = |trial: &Trial| match &trial.subject_cpus {
            Some(cpus) => Cpus::Only(cpus.clone()).to_string(),
            None => "any".to_owned(),
        };
        let memory_gib = Bytes(machine.memory_bytes).as_mib() / 1024.0;
        let one = |label, entry: Option<String>| Some(Circumstance { label, entries: vec![entry?] });
        let known = [
            one("JDK", of_jvm(|jvm| &jvm.version)),
            one("JVM", of_jvm(|jvm| &jvm.name)),
            one("collector", of_jvm(|jvm| &jvm.collector)),
            one("allocator", of_jvm(|jvm| &jvm.allocator)),
            one("limit", trial.map(limit)),
            one("CPU limit", trial.map(|trial| trial.cpu_limit().map_or("none".to_owned(), |limit| limit.to_string()))),
            one("CPUs", trial.map(cpus)),
            one("CPU", machine.cpu_model.clone()),
            // The memory that a kernel leaves available differs by a few KiB between kernels.
            one("machine", Some(format!("{} cores, {memory_gib:.1} GiB", machine.cores))),
            one("kernel", Some(machine.kernel.clone())),
            one("cgroup", Some(machine.cgroup.clone())),
            one("huge pages", machine.transparent_huge_pages.clone()),
            one("scenario", Some(conditions.scenario.clone())),
            Some(Circumstance { label: "load", entries: conditions.load.clone() }),
            one("Loadline", Some(conditions.loadline.clone())),
            jvm.map(options),
            trial.map(agents),
        ];
        Self(known.into_iter().flatten().collect())
    }

    /// The circumstances known on both sides that differ; `self` is the earlier side.
    pub fn differing(&self, after: &Self) -> Vec<Differing> {
        let differing = |before: &Circumstance| {
            let after = after.0.iter().find(|after| after.label == before.label && after.entries != before.entries)?;
            let label = before.label;
            Some(Differing { label, before: told(before, after), after: told(after, before) })
        };
        self.0.iter().filter_map(differing).collect()
    }
}

/// The nondefault flags in effect or, if unknown, the requested options.
fn options(jvm: &Jvm) -> Circumstance {
    let (label, words) = jvm.flags.as_ref().map_or(("options", &jvm.options), |flags| ("flags", flags));
    let mut words = each_once(words.iter().map(String::as_str));
    words.sort_unstable();
    Circumstance { label, entries: words.into_iter().map(str::to_owned).collect() }
}

/// Agents in the command, which are not among the JVM's flags.
fn agents(trial: &Trial) -> Circumstance {
    let is_agent = |word: &&String| ["-javaagent:", "-agentpath:", "-agentlib:"].iter().any(|of| word.starts_with(of));
    Circumstance { label: "agents", entries: trial.command.iter().filter(is_agent).cloned().collect() }
}

/// The entries that only `one` has, or all if only the order differs.
fn told(one: &Circumstance, other: &Circumstance) -> String {
    let mut own: Vec<&String> = one.entries.iter().filter(|entry| !other.entries.contains(entry)).collect();
    if own.is_empty() && other.entries.iter().all(|entry| one.entries.contains(entry)) {
        own = one.entries.iter().collect();
    }
    let more = own.len().saturating_sub(TOLD_MAX);
    let more = (more > 0).then(|| format!("{more} more"));
    let told: Vec<String> =
        own.into_iter().take(TOLD_MAX).map(|entry| clipped(entry, CHARACTERS_MAX)).chain(more).collect();
    if told.is_empty() { "none".to_owned() } else { told.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differing(before: (&Conditions, &Trial), after: (&Conditions, &Trial)) -> Vec<String> {
        let of = |(conditions, trial)| Circumstances::of(conditions, Some(trial));
        of(before).differing(&of(after)).iter().map(Differing::to_string).collect()
    }

    fn with_flags(flags: &[&str]) -> Trial {
        let flags = Some(flags.iter().map(|flag| (*flag).to_owned()).collect());
        Trial { jvm: Some(Jvm { flags, ..Jvm::default() }), ..Trial::default() }
    }

    #[test]
    fn values_known_on_one_side_only_are_not_differences() {
        let (conditions, seen) = (Conditions::default(), with_flags(&["-XX:+UseSerialGC"]));
        assert_eq!(differing((&conditions, &Trial::default()), (&conditions, &seen)), [] as [&str; 0]);
        let unasked = Trial { jvm: Some(Jvm::default()), ..Trial::default() };
        assert_eq!(differing((&conditions, &unasked), (&conditions, &seen)), [] as [&str; 0]);
    }

    #[test]
    fn only_differing_list_entries_are_shown() {
        let conditions = Conditions::default();
        let (before, after) = (with_flags(&["-XX:B", "-XX:A"]), with_flags(&["-XX:A", "-XX:B", "-XX:C"]));
        assert_eq!(differing((&conditions, &before), (&conditions, &after)), ["flags: none | -XX:C"]);
        let many: Vec<String> = (0..9).map(|number| format!("-XX:{number}")).collect();
        let many = with_flags(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let told = "flags: -XX:0; -XX:1; -XX:2; -XX:3; -XX:4; -XX:5; 3 more | none";
        assert_eq!(differing((&conditions, &many), (&conditions, &with_flags(&[]))), [told]);
        let load = |phases: &[&str]| Conditions {
            load: phases.iter().map(|phase| (*phase).to_owned()).collect(),
            ..Conditions::default()
        };
        let (trial, one) = (Trial::default(), load(&["warmup 5s", "steady 5s"]));
        let told = |other: &[&str]| differing((&one, &trial), (&load(other), &trial));
        assert_eq!(told(&["warmup 5s", "steady 9s"]), ["load: steady 5s | steady 9s"]);
        assert_eq!(told(&["steady 5s", "warmup 5s"]), ["load: warmup 5s; steady 5s | steady 5s; warmup 5s"]);
    }

    #[test]
    fn a_few_kilobytes_are_not_a_difference_and_long_text_is_truncated() {
        let trial = Trial::default();
        let on = |memory_bytes: u64, kernel: &str| {
            let mut conditions = Conditions::default();
            (conditions.machine.memory_bytes, conditions.machine.kernel) = (memory_bytes, kernel.to_owned());
            conditions
        };
        let one = on(8 << 30, "6.1");
        assert_eq!(differing((&one, &trial), (&on((8 << 30) - 4096, "6.1"), &trial)), [] as [&str; 0]);
        let told = differing((&one, &trial), (&on(16 << 30, &"ü".repeat(200)), &trial));
        let kernel = format!("kernel: 6.1 | {}…", "ü".repeat(CHARACTERS_MAX));
        assert_eq!(told, ["machine: 0 cores, 8.0 GiB | 0 cores, 16.0 GiB", kernel.as_str()]);
    }
}
