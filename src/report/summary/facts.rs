//! What is told before any number, each under its label: machine, load, JVM, flags, limit.

use super::block::Table;
use super::cells::NONE;
use crate::record::{Conditions, Document, EndCause, Jvm, Machine, Outcome, Trial};
use crate::report::markup::shortened;
use crate::report::words::outcome_words;
use crate::units::Bytes;

/// Lines of a subject that failed, and characters of each.
const WORDS_MAX: usize = 10;
const WORDS_CHARS: usize = 200;

/// Cores, memory and kernel of a machine.
pub(super) fn machine_text(machine: &Machine) -> String {
    let memory_gib = machine.memory_bytes as f64 / (1u64 << 30) as f64;
    format!("{} cores, {memory_gib:.1} GiB, Linux {}", machine.cores, machine.kernel)
}

/// The machine with what its kernel offers for limits.
pub(in crate::report) fn host_text(machine: &Machine) -> String {
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
pub(in crate::report) fn shared_facts(conditions: &Conditions) -> Vec<(String, String)> {
    let machine = &conditions.machine;
    let mut facts = vec![("machine".to_owned(), host_text(machine))];
    if let Some(load) = machine.load_average_1m {
        facts.push(("host load".to_owned(), format!("{load:.2} before the first trial (1 min average)")));
    }
    for (index, line) in conditions.load.iter().enumerate() {
        facts.push((if index == 0 { "load" } else { "" }.to_owned(), line.clone()));
    }
    facts.push(("seed".to_owned(), conditions.seed.to_string()));
    facts
}

/// The shared conditions with the command that repeats the trials at their end.
pub(super) fn repeatable_facts(conditions: &Conditions) -> Vec<(String, String)> {
    let repeat = ("repeat".to_owned(), conditions.command.clone());
    shared_facts(conditions).into_iter().chain([repeat]).collect()
}

/// What each of these configurations is, by its first trial; `None` without any trial of them. In a search the limit is
/// left out, since it varies from trial to trial.
pub(in crate::report) fn configurations(document: &Document, names: &[&str]) -> Option<Table> {
    let searched = document.find.is_some() || document.tune.is_some();
    let first = |name: &&str| document.trials.iter().find(|trial| trial.configuration == **name);
    let row = |trial: &Trial| {
        let jvm = trial.jvm.as_ref();
        let told = [jvm.map(jvm_text), jvm.map(options_text), jvm.and_then(|jvm| jvm.allocator.clone())];
        let told = told.into_iter().map(|text| text.unwrap_or_else(|| NONE.to_owned()));
        let limit = (!searched).then(|| limit_text(trial));
        std::iter::once(trial.configuration.clone()).chain(told).chain(limit).collect()
    };
    let rows: Vec<Vec<String>> = names.iter().filter_map(first).map(row).collect();
    let columns = ["configuration", "jvm", "options", "malloc", "limit"];
    let count = columns.len() - usize::from(searched);
    let head = columns.into_iter().take(count);
    (!rows.is_empty()).then(|| Table::new("Configurations", head, rows).worded(1, count - 1))
}

fn cpus(trial: &Trial) -> String {
    let (subject, load) = (cpus_text(trial.subject_cpus.as_deref()), cpus_text(trial.load_cpus.as_deref()));
    format!("subject on {subject}, load on {load}")
}

/// What a trial ran and how it ended; what is not known is left out.
pub(in crate::report) fn trial_facts(trial: &Trial) -> Vec<(String, String)> {
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
