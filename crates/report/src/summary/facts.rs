//! The facts before any number, each under its label: machine, load, JVM, flags, limit.

use super::sides;
use crate::page::{Part, Section, Topic};
use crate::record::{BlockRecord, Conditions, Document, EndCause, Jvm, Machine, Outcome, Trial};
use crate::units::{Bytes, several, shortened};
use crate::words::outcome_words;

/// Lines of a subject that failed, and characters of each.
const WORDS_MAX: usize = 10;
const WORDS_CHARS: usize = 200;

/// The heading of what may explain a difference that the change does not.
pub(crate) const DIFFERING: &str = "conditions that differ";

/// Cores, memory and kernel of a machine.
pub(super) fn machine_text(machine: &Machine) -> String {
    let memory_gib = machine.memory_bytes as f64 / (1u64 << 30) as f64;
    format!("{} cores, {memory_gib:.1} GiB, Linux {}", machine.cores, machine.kernel)
}

/// The machine with what its kernel offers for limits.
pub(super) fn host_text(machine: &Machine) -> String {
    format!("{}, memory cgroup {}", machine_text(machine), machine.cgroup)
}

/// CPUs by number, or that any may be used.
pub(super) fn cpus_text(cpus: Option<&[u32]>) -> String {
    match cpus {
        Some(cpus) => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        None => "any".to_owned(),
    }
}

/// The conditions that all trials share, but for the command that repeats them.
fn shared_facts(conditions: &Conditions) -> Vec<(String, String)> {
    let machine = &conditions.machine;
    let mut facts = vec![("machine".to_owned(), host_text(machine))];
    if !conditions.started.is_empty() {
        facts.insert(0, ("started".to_owned(), conditions.started.clone()));
    }
    if let Some(load) = machine.load_average_1m {
        facts.push(("host load".to_owned(), format!("{load:.2} before the first trial (1 min average)")));
    }
    for (index, line) in conditions.load.iter().enumerate() {
        facts.push((if index == 0 { "load" } else { "" }.to_owned(), line.clone()));
    }
    facts.push(("seed".to_owned(), conditions.seed.to_string()));
    facts
}

/// The conditions with the command that repeats the trials; those of a trial too, where it is the only one.
pub(super) fn section(document: &Document, alone: Option<&Trial>) -> Section {
    let conditions = &document.conditions;
    let mut facts = shared_facts(conditions);
    facts.extend(alone.into_iter().flat_map(trial_facts));
    if document.trials.len() > 1 && document.find.is_none() && document.tune.is_none() {
        facts.extend(configurations(document));
    }
    facts.push(("repeat".to_owned(), conditions.command.clone()));
    let disturbed = disturbed(&document.blocks);
    let disturbed = (!disturbed.is_empty()).then(|| Part::under("disturbed", [Part::Facts(disturbed)]));
    let differing = sides::differing(document);
    let differing = (!differing.is_empty()).then(|| Part::under(DIFFERING, [Part::Facts(differing)]));
    let parts = [Part::Facts(facts)].into_iter().chain(disturbed).chain(differing);
    Section::new(Topic::Conditions, "conditions", parts).id("conditions")
}

fn cpus(trial: &Trial) -> String {
    let (subject, load) = (cpus_text(trial.subject_cpus.as_deref()), cpus_text(trial.load_cpus.as_deref()));
    format!("subject on {subject}, load on {load}")
}

/// Returns what a trial ran and how it ended; unknown facts are left out.
pub(super) fn trial_facts(trial: &Trial) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |label: &str, text: String| facts.push((label.to_owned(), text));
    if let Some(jvm) = &trial.jvm {
        fact("jvm", jvm_text(jvm));
        fact("options", options_text(jvm));
        match &jvm.flags {
            Some(flags) => fact("in force", flags_text(flags)),
            None => fact("in force", "unknown: the JVM could not be asked".to_owned()),
        }
        if let Some(allocator) = &jvm.allocator {
            fact("malloc", allocator.clone());
        }
    }
    fact("command", crate::scenario::shell_words(&trial.command));
    fact("cpus", cpus(trial));
    fact("limit", limit_text(trial));
    if let Some(ready) = trial.ready_s {
        fact("ready", format!("after {ready:.2} s"));
    }
    if trial.outcome != Outcome::Completed {
        fact("outcome", format!("{}: {}", outcome_words(trial.outcome).1, trial.why.as_deref().unwrap_or("unknown")));
        if let Some(failed) = &trial.failed_in {
            fact("ended in", format!("phase {}; no mark of this trial is in any estimate", failed.phase));
        }
    }
    if let Some(end) = trial.end.as_ref().filter(|end| end.cause != EndCause::AsAsked) {
        fact("end", end.text.clone());
    }
    let words = trial.last_words();
    for (index, line) in words[words.len().saturating_sub(WORDS_MAX)..].iter().enumerate() {
        fact(if index == 0 { "last words" } else { "" }, shortened(line, WORDS_CHARS));
    }
    facts
}

/// A line for each configuration: the JVM and its options.
fn configurations(document: &Document) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let first = |name: &str| document.trials.iter().find(|trial| trial.configuration == name);
    for trial in document.configurations().into_iter().filter_map(first) {
        let count = document.trials.iter().filter(|other| other.configuration == trial.configuration).count();
        let trials = several(count as u64, "trial");
        let jvm = trial.jvm.as_ref().map_or_else(
            || "JVM unknown".to_owned(),
            |jvm| {
                let options =
                    if jvm.options.is_empty() { String::new() } else { format!("; {}", jvm.options.join(" ")) };
                let version = jvm.version.as_deref().unwrap_or("JVM unknown");
                let collector = jvm.collector.as_ref().map(|gc| format!(", {gc} GC")).unwrap_or_default();
                format!("{version}{collector}{options}")
            },
        );
        facts.push((trial.configuration.clone(), format!("{trials}; {jvm}")));
    }
    facts
}

/// Blocks that something disturbed, and what became of them.
fn disturbed(blocks: &[BlockRecord]) -> Vec<(String, String)> {
    let fact = |block: &BlockRecord| {
        let why = block.disturbed.as_ref()?;
        let became = if block.used { "it counts" } else { "it was repeated and does not count" };
        Some((format!("block {}", block.block + 1), format!("{why}; {became}")))
    };
    blocks.iter().filter_map(fact).collect()
}

fn limit_text(trial: &Trial) -> String {
    trial.limit_bytes.map_or("none".to_owned(), |limit| Bytes(limit).to_string())
}

/// Name, version, collector and command of a JVM, as far as they are known.
pub(super) fn jvm_text(jvm: &Jvm) -> String {
    let parts = [jvm.name.clone(), jvm.version.clone(), jvm.collector.as_ref().map(|gc| format!("{gc} GC"))];
    let java = jvm.java.as_ref().map(|java| format!(" ({java})"));
    format!("{}{}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "), java.unwrap_or_default())
}

fn options_text(jvm: &Jvm) -> String {
    match (jvm.options.is_empty(), jvm.options_through.as_str()) {
        (true, _) => "none added".to_owned(),
        (false, "JDK_JAVA_OPTIONS") => format!("{} (through JDK_JAVA_OPTIONS)", jvm.options.join(" ")),
        (false, _) => jvm.options.join(" "),
    }
}

/// Flags in force that say how memory is sized; all of them are in the JSON document.
fn flags_text(flags: &[String]) -> String {
    let shown: Vec<String> = flags.iter().filter_map(|flag| telling(flag.trim_start_matches("-XX:"))).collect();
    match flags.len() - shown.len() {
        0 => shown.join(" "),
        rest => format!("{} and {rest} more (--json)", shown.join(" ")),
    }
}

/// A flag worth a place in the summary, sizes in Java's spelling: `MaxHeapSize=6m`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FailedIn;

    #[test]
    fn a_trial_that_failed_is_told_with_its_phase_and_its_last_words() {
        let lines = |count: usize| (0..count).map(|index| format!("line {index}")).collect::<Vec<_>>();
        let failed_in = Some(FailedIn { phase: "steady".to_owned(), last_lines: lines(12) });
        let why = Some("not one of 10 requests was answered correctly".to_owned());
        let failed = Trial { outcome: Outcome::SubjectFailed, why, failed_in, ..Trial::new("a", 0, 0) };
        let told = trial_facts(&failed);
        let of = |label: &str| told.iter().find(|(known, _)| known == label).map(|(_, text)| text.as_str());
        assert_eq!(of("outcome"), Some("the subject failed: not one of 10 requests was answered correctly"));
        assert_eq!(of("ended in"), Some("phase steady; no mark of this trial is in any estimate"));
        assert_eq!(of("last words"), Some("line 2"), "the last ten");
        assert_eq!(told.last(), Some(&(String::new(), "line 11".to_owned())));
        let interrupted = Trial { outcome: Outcome::Aborted, ..failed.clone() };
        assert!(trial_facts(&interrupted).iter().all(|(label, _)| label != "last words"), "it has not failed");
        let completed = Trial { outcome: Outcome::Completed, ..failed };
        assert!(trial_facts(&completed).iter().all(|(label, _)| label != "last words" && label != "ended in"));
    }
}
