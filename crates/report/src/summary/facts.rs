//! The labeled facts before any numbers: machine, load, JVM, flags, limit.

use super::sides;
use crate::doubt::Doubt;
use crate::page::{Facts, Part, Section, Topic};
use crate::record::{BlockRecord, Document, DoubtRecord, EndCause, Jvm, Machine, Outcome, Trial};
use crate::units::{Bytes, several, shortened};
use crate::words::{outcome_words, sentence};

/// Lines shown of a failed subject's output, and characters of each.
const WORDS_MAX: usize = 10;
const WORDS_CHARS: usize = 200;

/// The heading of conditions that may explain a difference instead of the change.
pub(crate) const DIFFERING: &str = "conditions that differ";

pub(super) fn machine_text(machine: &Machine) -> String {
    format!("{} cores, {}, Linux {}", machine.cores, gib(machine.memory_bytes), machine.kernel)
}

/// `23.5 GiB`
pub(super) fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

/// The machine with its kernel's support for limits.
pub(super) fn host_text(machine: &Machine) -> String {
    format!("{}, memory cgroup {}", machine_text(machine), machine.cgroup)
}

pub(super) fn cpus_text(cpus: Option<&[u32]>) -> String {
    match cpus {
        Some(cpus) => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        None => "any".to_owned(),
    }
}

/// The conditions with the command to repeat the trials, including the trial's if there is only one.
pub(super) fn section(document: &Document, alone: Option<&Trial>) -> Section {
    let conditions = &document.conditions;
    let mut facts = Facts::default();
    facts.add("started", Some(conditions.started.clone()).filter(|started| !started.is_empty()));
    facts.add("machine", host_text(&conditions.machine));
    let load = conditions.machine.load_average_1m;
    facts.add("host load", load.map(|load| format!("{load:.2} before the first trial (1-minute average)")));
    facts.list("load", conditions.load.clone());
    facts.add("seed", conditions.seed.to_string());
    facts.0.extend(alone.into_iter().flat_map(trial_facts));
    if document.trials.len() > 1 && document.find.is_none() && document.tune.is_none() {
        facts.0.extend(configurations(document));
    }
    facts.add("repeat", conditions.command.clone());
    let under = |heading, facts| Part::under(heading, Part::Facts(facts).filled()).filled();
    let disturbed = under("disturbed", disturbed(&document.blocks));
    let differing = under(DIFFERING, sides::differing(document));
    let parts = [Part::Facts(facts.0)].into_iter().chain(disturbed).chain(differing);
    Section::new(Topic::Conditions, "conditions", parts).id("conditions")
}

/// The known facts of a trial's execution and end.
pub(super) fn trial_facts(trial: &Trial) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    if let Some(jvm) = &trial.jvm {
        facts.add("jvm", jvm_text(jvm));
        let through = if jvm.options_through == "JDK_JAVA_OPTIONS" { " (through JDK_JAVA_OPTIONS)" } else { "" };
        let options = format!("{}{through}", jvm.options.join(" "));
        facts.add("options", if jvm.options.is_empty() { "none added".to_owned() } else { options });
        let unknown = || "unknown: the JVM could not be queried".to_owned();
        facts.add("in effect", jvm.flags.as_deref().map_or_else(unknown, flags_text));
        facts.add("malloc", jvm.allocator.clone());
    }
    facts.add("command", crate::scenario::shell_words(&trial.command));
    let [subject, load] = [&trial.subject_cpus, &trial.load_cpus].map(|cpus| cpus_text(cpus.as_deref()));
    let limited = trial.cpu_limit().map(|limit| format!(", limited to {limit}")).unwrap_or_default();
    facts.add("cpus", format!("server on {subject}{limited}, load generator on {load}"));
    facts.add("limit", trial.limit_bytes.map_or("none".to_owned(), |limit| Bytes(limit).to_string()));
    facts.add("ready", trial.ready_s.map(|ready| format!("after {ready:.2} s")));
    if trial.outcome != Outcome::Completed {
        let why = trial.why.as_deref().unwrap_or("unknown");
        facts.add("outcome", format!("{}: {why}", outcome_words(trial.outcome).1));
        let failed = trial.failed_in.as_ref();
        let failed = failed.map(|of| format!("phase {}; its marks are not used in any estimate", of.phase));
        facts.add("ended in", failed);
    }
    let end = trial.end.as_ref().filter(|end| end.cause != EndCause::AsAsked);
    facts.add("end", end.map(|end| end.text.clone()));
    let words = trial.last_words();
    let last = &words[words.len().saturating_sub(WORDS_MAX)..];
    facts.list("last lines", last.iter().map(|line| shortened(line, WORDS_CHARS)));
    facts.0
}

/// A line per configuration: the JVM and its options.
fn configurations(document: &Document) -> Vec<(String, String)> {
    let fact = |name: &str| {
        let own = || document.trials.iter().filter(|trial| trial.configuration == name);
        let trials = several(own().count() as u64, "trial");
        let jvm = own().next()?.jvm.as_ref();
        let version = jvm.and_then(|jvm| jvm.version.as_deref()).unwrap_or("JVM unknown");
        let collector = jvm.and_then(|jvm| Some(format!(", {} GC", jvm.collector.as_ref()?)));
        let options = jvm.filter(|jvm| !jvm.options.is_empty()).map(|jvm| format!("; {}", jvm.options.join(" ")));
        let limited = own().find_map(Trial::cpu_limit).map(|limit| format!("; limited to {limit}"));
        let [collector, options, limited] = [collector, options, limited].map(Option::unwrap_or_default);
        Some((name.to_owned(), format!("{trials}; {version}{collector}{options}{limited}")))
    };
    document.configurations().into_iter().filter_map(fact).collect()
}

fn disturbed(blocks: &[BlockRecord]) -> Vec<(String, String)> {
    let fact = |block: &BlockRecord| {
        let why = block.disturbed.as_ref()?;
        let became = if block.used { "kept" } else { "repeated, so this one does not count" };
        Some((format!("block {}", block.block + 1), format!("{why}; {became}")))
    };
    blocks.iter().filter_map(fact).collect()
}

/// A JVM's name, version, collector, and command, if known.
pub(super) fn jvm_text(jvm: &Jvm) -> String {
    let parts = [jvm.name.clone(), jvm.version.clone(), jvm.collector.as_ref().map(|gc| format!("{gc} GC"))];
    let java = jvm.java.as_ref().map(|java| format!(" ({java})"));
    format!("{}{}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "), java.unwrap_or_default())
}

/// Memory flags in effect; all flags are in the JSON document.
fn flags_text(flags: &[String]) -> String {
    let shown: Vec<String> = flags.iter().filter_map(|flag| telling(flag.trim_start_matches("-XX:"))).collect();
    match flags.len() - shown.len() {
        0 => shown.join(" "),
        rest => format!("{} and {rest} more (--json)", shown.join(" ")),
    }
}

/// A flag relevant for the summary, with sizes in Java's form: `MaxHeapSize=6m`.
fn telling(flag: &str) -> Option<String> {
    const SIZES: [&str; 8] = [
        "InitialHeapSize",
        "MaxHeapSize",
        "MaxNewSize",
        "ReservedCodeCacheSize",
        "MaxDirectMemorySize",
        "MaxMetaspaceSize",
        "CompressedClassSpaceSize",
        "SoftMaxHeapSize",
    ];
    const OTHERS: [&str; 7] = [
        "ThreadStackSize",
        "MaxRAMPercentage",
        "NativeMemoryTracking",
        "TieredStopAtLevel",
        "ActiveProcessorCount",
        "TrimNativeHeapInterval",
        "+UseCompactObjectHeaders",
    ];
    let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
    let collector = name.starts_with("+Use") && name.ends_with("GC");
    match value.parse::<u64>() {
        Ok(bytes) if SIZES.contains(&name) => Some(format!("{name}={}", Bytes(bytes).java())),
        _ if collector || OTHERS.contains(&name) => Some(flag.to_owned()),
        _ => None,
    }
}

/// The doubt that the JVM chose its collector because of few CPUs; with another collector, the answer would differ.
pub(super) fn collector_doubt(trials: &[Trial]) -> Option<&DoubtRecord> {
    first_doubt(trials, |of| matches!(of, Doubt::CollectorByCpus { .. }))
}

/// The doubt that the server had no CPU time to spare, so that it answers no question about CPU time or latency.
pub(super) fn saturation_doubt(trials: &[Trial]) -> Option<&DoubtRecord> {
    first_doubt(trials, |of| matches!(of, Doubt::SubjectSaturated { .. }))
}

fn first_doubt(trials: &[Trial], is_it: impl Fn(&Doubt) -> bool) -> Option<&DoubtRecord> {
    trials.iter().flat_map(|trial| &trial.doubts).find(|of| is_it(&of.doubt))
}

/// A doubt with its next step.
pub(super) fn in_words(of: &DoubtRecord) -> Part {
    Part::Text(sentence(&format!("{}: {}", of.text, of.next)))
}

pub(super) fn collector_by_cpus(trials: &[Trial]) -> Option<String> {
    let doubt = &collector_doubt(trials)?.doubt;
    let Doubt::CollectorByCpus { cpus, cores, collector } = doubt else { return None };
    Some(format!(
        "the JVM chose {collector} GC because it sees only {cpus} of {cores} CPUs; the options set it explicitly, \
            because with more CPUs the JVM may choose another"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FailedIn;

    #[test]
    fn a_failed_trial_is_shown_with_its_phase_and_last_lines() {
        let lines = |count: usize| (0..count).map(|index| format!("line {index}")).collect::<Vec<_>>();
        let failed_in = Some(FailedIn { phase: "steady".to_owned(), last_lines: lines(12) });
        let why = Some("none of 10 requests in phase steady succeeded".to_owned());
        let failed = Trial { outcome: Outcome::SubjectFailed, why, failed_in, ..Trial::new("a", 0, 0) };
        let told = trial_facts(&failed);
        let of = |label: &str| told.iter().find(|(known, _)| known == label).map(|(_, text)| text.as_str());
        assert_eq!(of("outcome"), Some("the server failed: none of 10 requests in phase steady succeeded"));
        assert_eq!(of("ended in"), Some("phase steady; its marks are not used in any estimate"));
        assert_eq!(of("last lines"), Some("line 2"), "the last ten lines are listed");
        assert_eq!(told.last(), Some(&(String::new(), "line 11".to_owned())));
        let interrupted = Trial { outcome: Outcome::Aborted, ..failed.clone() };
        assert!(trial_facts(&interrupted).iter().all(|(label, _)| label != "last lines"), "it was only interrupted");
        let completed = Trial { outcome: Outcome::Completed, ..failed };
        assert!(trial_facts(&completed).iter().all(|(label, _)| label != "last lines" && label != "ended in"));
    }
}
