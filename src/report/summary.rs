//! What there is to say about recorded trials: conditions first, then the numbers, then the doubts.
//! Pure: the same trials give the same words, from a fresh run or from an archive.

mod account;
mod comparison;
mod details;
mod drivers;
mod figures;
pub(super) mod find;
mod journey;
mod loads;
mod netty;
mod numbers;
mod own;
pub(super) mod owners;
pub(super) mod tried;

pub use account::summarize_account;
pub use details::Detail;
pub(super) use figures::figures;
pub(super) use journey::growth_notes;
pub use loads::summarize_load;
pub(super) use netty::{direct_bytes, explanations, shade};
pub(super) use numbers::{by_category, load, weights};

use crate::doubt::{Comparing, Doubt};
use crate::record::{Conditions, Document, DoubtRecord, EndCause, Jvm, Machine, Mark, Outcome, Trial};
use crate::units::Bytes;
use numbers::side_by_side;

/// Everything to say, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Top to bottom.
    pub blocks: Vec<Block>,
}

/// A piece of a summary.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// What does not hold, before everything else, a line each.
    Failing(Vec<String>),
    /// Begins a section.
    Heading(String),
    /// Labels with their text.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// A picture.
    Bars(Bars),
    /// A paragraph.
    Text(String),
    /// What was seen and what to do next.
    Doubts(Vec<(String, String)>),
    /// Lines to copy as they stand.
    Literal {
        /// Where they go.
        title: String,
        /// The lines.
        lines: Vec<String>,
    },
}

/// A table: the first column names the rows, the others hold numbers, the last ones perhaps words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// With the unit of its numbers.
    pub title: String,
    /// As many as each row has cells.
    pub head: Vec<String>,
    /// Cells; an absent number is `-`.
    pub rows: Vec<Vec<String>>,
    /// How many of the first columns hold words; the very first always does.
    pub lead: usize,
    /// How many of the last columns hold words.
    pub words: usize,
    /// Lines below.
    pub notes: Vec<String>,
}

/// Bars of one scale, each divided into the same parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bars {
    /// What is drawn.
    pub title: String,
    /// Top to bottom.
    pub bars: Vec<Bar>,
    /// For each part the letter that draws it and its words.
    pub legend: Vec<(char, String)>,
}

/// A bar.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bar {
    /// At its left.
    pub label: String,
    /// Sizes in bytes, as many as the legend has entries.
    pub parts: Vec<u64>,
}

/// How much to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Every trial, also where trials are compared.
    pub each: bool,
    /// Every metric that was compared, not only those judged.
    pub details: bool,
}

/// What to say of a result. `missing` says what an archive lacks.
///
/// Where several trials of several configurations were made, what they say together stands for them; `depth` asks for
/// more. So it is with the trials of a search for the load line.
pub fn summarize(document: &Document, missing: &[String], depth: Depth) -> Summary {
    if let Some(find) = &document.find {
        let mut blocks = find::blocks(document, find, depth);
        blocks.extend(lacking(missing));
        return Summary { blocks };
    }
    let (conditions, trials) = (&document.conditions, &document.trials);
    let compares = document.comparisons.iter().any(|row| row.blocks > 1);
    let mut blocks = vec![Block::Failing(comparison::failing(&document.budgets))];
    blocks.push(Block::Heading(format!("{}, weighed by loadline {}", conditions.scenario, conditions.loadline)));
    if compares {
        blocks.extend(comparison::sentences(document).into_iter().map(Block::Text));
    }
    blocks.push(Block::Facts(shared_facts(conditions)));
    if compares {
        blocks.extend(together(document, depth));
    }
    if !compares || depth.each {
        for trial in trials {
            blocks.extend(of_trial(trial, trials.len() > 1));
        }
    }
    if !compares && trials.len() > 1 {
        blocks.push(Block::Table(side_by_side(trials)));
    }
    blocks.extend(figures(document).map(Block::Table));
    blocks.extend(comparison::budgets(&document.budgets));
    // Trials that are not shown as a comparison are not too few for one.
    let shown =
        |doubt: &&DoubtRecord| compares || !matches!(doubt.doubt, Doubt::Comparing(Comparing::FewBlocks { .. }));
    let mut all: Vec<DoubtRecord> = document.doubts.iter().filter(shown).cloned().collect();
    if compares && !depth.each {
        all.extend(doubts_of_trials(trials));
    }
    blocks.extend(doubts(&all));
    blocks.extend(lacking(missing));
    Summary { blocks }
}

/// What an archive lacks.
fn lacking(missing: &[String]) -> Vec<Block> {
    let heading = (!missing.is_empty()).then(|| Block::Heading("missing".to_owned()));
    heading.into_iter().chain(missing.iter().map(|what| Block::Text(what.clone()))).collect()
}

/// What the trials say together, in place of each.
fn together(document: &Document, depth: Depth) -> Vec<Block> {
    let mut blocks = vec![Block::Facts(comparison::configuration_facts(document))];
    blocks.extend(comparison::verdicts(document));
    blocks.extend(comparison::pareto(document));
    if depth.details {
        blocks.extend(comparison::details(document));
    }
    if depth.each {
        blocks.extend(comparison::every_value(document));
    }
    blocks.extend(comparison::disturbed(&document.blocks));
    blocks.extend(comparison::incomplete(&document.trials));
    blocks
}

/// The doubts of all trials, those that ask for the same under one roof: the first of each kind, and how many trials.
fn doubts_of_trials(trials: &[Trial]) -> Vec<DoubtRecord> {
    let alike = |one: &DoubtRecord, other: &DoubtRecord| one.doubt.is_like(&other.doubt);
    let mut found: Vec<(DoubtRecord, usize)> = Vec::new();
    for trial in trials {
        let mut of_trial: Vec<&DoubtRecord> = Vec::new();
        for doubt in trial.doubts.iter().filter(|of| !tried::is_answer(trial, &of.doubt)) {
            if !of_trial.iter().any(|other| alike(other, doubt)) {
                of_trial.push(doubt);
            }
        }
        for doubt in of_trial {
            match found.iter_mut().find(|(other, _)| alike(other, doubt)) {
                Some((_, count)) => *count += 1,
                None => found.push((doubt.clone(), 1)),
            }
        }
    }
    let told = |(doubt, count): (DoubtRecord, usize)| DoubtRecord {
        text: if count > 1 { format!("{} (in {count} of {} trials)", doubt.text, trials.len()) } else { doubt.text },
        ..doubt
    };
    found.into_iter().map(told).collect()
}

fn machine_text(machine: &Machine) -> String {
    let memory_gib = machine.memory_bytes as f64 / (1u64 << 30) as f64;
    format!("{} cores, {memory_gib:.1} GiB, Linux {}", machine.cores, machine.kernel)
}

fn cpus_text(cpus: Option<&[u32]>) -> String {
    match cpus {
        Some(cpus) => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        None => "any".to_owned(),
    }
}

pub(super) fn shared_facts(conditions: &Conditions) -> Vec<(String, String)> {
    let machine = &conditions.machine;
    let text = format!("{}, memory cgroup {}", machine_text(machine), machine.cgroup);
    let mut facts = vec![("machine".to_owned(), text)];
    if let Some(load) = machine.load_average_1m {
        facts.push(("host load".to_owned(), format!("{load:.2} before the first trial (1 min average)")));
    }
    for (index, line) in conditions.load.iter().enumerate() {
        facts.push((if index == 0 { "load" } else { "" }.to_owned(), line.clone()));
    }
    facts.push(("seed".to_owned(), conditions.seed.to_string()));
    facts.push(("repeat".to_owned(), conditions.command.clone()));
    facts
}

fn cpus(trial: &Trial) -> String {
    let (subject, load) = (cpus_text(trial.subject_cpus.as_deref()), cpus_text(trial.load_cpus.as_deref()));
    format!("subject on {subject}, load on {load}")
}

fn of_trial(trial: &Trial, several: bool) -> Vec<Block> {
    let name = if several {
        format!("{} (trial {})", trial.configuration, trial.index + 1)
    } else {
        trial.configuration.clone()
    };
    let mut blocks = vec![Block::Heading(name), Block::Facts(trial_facts(trial))];
    if !trial.marks.is_empty() {
        blocks.push(Block::Table(weights(trial)));
    }
    blocks.extend(journey::journey(trial));
    if !trial.phases.is_empty() {
        blocks.push(Block::Table(load(trial)));
    }
    blocks.extend(by_category(trial).map(Block::Table));
    blocks.extend(netty::of_trial(trial));
    blocks.extend(doubts(&trial.doubts));
    blocks
}

fn doubts(doubts: &[DoubtRecord]) -> Vec<Block> {
    if doubts.is_empty() {
        return Vec::new();
    }
    let list = doubts.iter().map(|doubt| (doubt.text.clone(), doubt.next.clone())).collect();
    vec![Block::Heading("doubts".to_owned()), Block::Doubts(list)]
}

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
    fact("limit", trial.limit_bytes.map_or("none".to_owned(), |limit| Bytes(limit).to_string()));
    if let Some(ready) = trial.ready_s {
        fact("ready", format!("after {ready:.2} s"));
    }
    if trial.outcome != Outcome::Completed {
        fact("outcome", format!("{}: {}", outcome_text(trial.outcome), trial.why.as_deref().unwrap_or("unknown")));
    }
    if let Some(end) = trial.end.as_ref().filter(|end| end.cause != EndCause::AsAsked) {
        fact("end", end.text.clone());
    }
    facts
}

fn outcome_text(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::SubjectFailed => "the subject failed",
        Outcome::Killed => "killed for memory",
        Outcome::Aborted => "aborted",
    }
}

fn jvm_text(jvm: &Jvm) -> String {
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

/// What the subject weighs at a mark: RSS, or PSS where several processes form it.
fn weight(mark: Option<&Mark>) -> Option<u64> {
    mark.map(|mark| mark.weight().1)
}

/// The word for it.
fn weight_word(trial: &Trial) -> &'static str {
    trial.marks.first().map_or("RSS", |mark| mark.weight().0)
}
