//! The page of a search for the load line: the answer, the trial in which memory is no concern, the line, and its proof
//! with the meaning. Then come every trial and the limits of other sizing rules.

use super::account::{answer as account_answer, owners};
use super::cells::{account_of, mib};
use super::comparison;
use super::facts::{self, trial_facts};
use super::next;
use super::tried::{cause_words, tried};
use super::{Sources, each_trial, finished};
use crate::chart::finds;
use crate::doubt::Doubt;
use crate::page::{Depth, Facts, Page, Part, Section, Topic, Verdict};
use crate::quantity::shown;
use crate::record::{
    Document, FindOutcome, FindRecord, Finding, LineRecord, ProbeStage, ProbeVerdict, ProofRecord, RuleRecord, Trial,
    Unit, Unknowns,
};
use crate::scenario::MarkPoint;
use crate::search::{PROOF_CONFIDENCE, cpu_per_request};
use crate::snippets;
use crate::table::Table;
use crate::units::{Bytes, per_second, several, trimmed};
use crate::words::Standing;
use loadline_base::numbers::median;

/// File pages charged to another cgroup are reported from this size on. The C library and locales, which every process
/// of a host shares, come to 2 to 3 MiB.
const FOREIGN_BYTES_MIN: u64 = 4 << 20;
/// Linux reads ahead 128 KiB by default. Up to this value, read-ahead hardly moves the line.
const READ_AHEAD_MAX: u64 = 256 << 10;
/// From this ratio on, the answer itself says what the line costs in CPU time: fresh JVMs differ by less.
const COSTS_FROM: f64 = 1.25;
/// From here on, minutes read better.
const MINUTES_FROM_S: f64 = 120.0;

/// Builds the page of a search, in place of the page of trials.
pub(super) fn page(of: Sources<'_>, find: &FindRecord, depth: Depth) -> Page {
    let (document, trials) = (of.document, &of.document.trials);
    let mut verdicts = vec![verdict(find, trials)];
    verdicts.extend(comparison::failing(&document.budgets));
    let what = what_was_sought(find);
    let mut parts = vec![Part::Facts(answer_facts(find, trials))];
    match depth.whole {
        true => parts.extend(finds(document).into_iter().map(Part::figure)),
        false => parts.push(Part::Table(tried(trials))),
    }
    parts.extend(others(find).map(Part::Table));
    parts.extend(snippets::parts(snippets::snippets(find, held_last(trials))));
    let mut conditions = facts::section(document, None);
    let reference = trials.iter().find(|trial| is_at(trial, ProbeStage::Reference));
    conditions.parts.extend(reference.map(|trial| Part::under(unconcerned(trial), [Part::Facts(trial_facts(trial))])));
    let answer = std::iter::once(Part::Verdicts(verdicts)).chain(ceilings(document)).chain(next::of_find(find));
    let mut sections = vec![
        Section::new(Topic::Answer, "", answer).id("verdict"),
        Section::new(Topic::Answer, what, parts).id("find"),
        comparison::budgets(&document.budgets),
        Section::new(
            Topic::Memory,
            reference.map(unconcerned).unwrap_or_default(),
            reference.map(memory).unwrap_or_default(),
        ),
        conditions,
    ];
    sections.extend(depth.each.then(|| each_trial(of, depth)));
    finished(of, &format!("its {what}"), sections, depth)
}

/// The memory that the subject may take by its own settings, where that is more than the limit to set.
fn ceilings(document: &Document) -> Option<Part> {
    document.findings.iter().find_map(|one| match &one.finding {
        Finding::CeilingsAboveLimit { limit_bytes, ceilings_bytes, .. } => Some(Part::Text(format!(
            "This limit is for this load. The server's own settings let it grow to {}, above the {}: bound what grows \
             (see what stands out, below).",
            Bytes(*ceilings_bytes),
            Bytes(*limit_bytes)
        ))),
        _ => None,
    })
}

fn verdict(find: &FindRecord, trials: &[Trial]) -> Verdict {
    let (standing, word) = match find.outcome {
        FindOutcome::Found => (Standing::Pass, what_was_sought(find)),
        FindOutcome::AtLowerBound => (Standing::Pass, "held"),
        FindOutcome::Grows => (Standing::Fail, "grows"),
        FindOutcome::NotHeld | FindOutcome::Never => (Standing::Fail, "not held"),
        FindOutcome::GivenUp => (Standing::Undecided, "no line"),
    };
    Verdict::new(standing, word, told(find, trials))
}

/// Names the goal of a search.
fn what_was_sought(find: &FindRecord) -> &'static str {
    match find.unknowns {
        Unknowns::Rate => "highest rate",
        _ if find.prove_bytes.is_some() => "proof",
        _ => "load line",
    }
}

/// The trial in which memory was no concern.
fn unconcerned(trial: &Trial) -> String {
    format!("with ample memory (trial {})", trial.index + 1)
}

/// The holders of memory when the load ended.
fn memory(trial: &Trial) -> Vec<Part> {
    let loaded = trial.at(MarkPoint::Loaded).and_then(account_of);
    let account = loaded.or_else(|| trial.marks.iter().rev().find_map(account_of));
    account.map_or(Vec::new(), |account| vec![Part::Text(account_answer(account)), Part::Table(owners(account))])
}

/// The last trial that held; it is a trial of the proof, if there is a proof.
fn held_last(trials: &[Trial]) -> Option<&Trial> {
    let proof = |trial: &&Trial| holds(trial) && is_at(trial, ProbeStage::Limit);
    trials.iter().rfind(proof).or(trials.iter().rfind(holds))
}

// ---- The answer ----

/// The answer in a sentence or two.
pub(crate) fn told(find: &FindRecord, trials: &[Trial]) -> String {
    if find.unknowns == Unknowns::Rate {
        return rate_told(find, trials);
    }
    if let Some(limit) = find.prove_bytes.map(Bytes) {
        return match (find.outcome, &find.line) {
            (FindOutcome::GivenUp, _) => sentence(&find.text),
            (_, Some(line)) => format!("The target holds at {limit}, {}.", times(line.held, line.tried())),
            (_, None) => format!("{} Give more memory, a lower rate or a looser target.", sentence(&find.text)),
        };
    }
    match (find.outcome, &find.line) {
        (FindOutcome::Found | FindOutcome::Grows, Some(line)) => line_told(find, line, trials),
        (FindOutcome::AtLowerBound, Some(line)) => format!(
            "The target holds at {}{}, the smallest limit allowed: the load line is there or below. Give a \
             smaller `--limit-min` to find it.",
            Bytes(line.limit_bytes),
            with_heap(find, line, trials)
        ),
        (FindOutcome::NotHeld, _) => format!(
            "{} No limit can help: give the server more CPU, another configuration, a lower rate or a looser target.",
            sentence(&find.text)
        ),
        (FindOutcome::Never, _) => {
            format!("{} Give a larger `--limit-max`, a lower rate or a looser target.", sentence(&find.text))
        }
        _ if own_heap(trials).is_some() => format!(
            "No line: the server sets its heap itself (`{}`), so the heap cannot be searched. Search the limit alone: \
             `--as-is`.",
            own_heap(trials).unwrap_or_default()
        ),
        _ => {
            let known = known(trials).map_or_else(String::new, |known| format!(" {known}"));
            format!("{}{known}", sentence(&find.text))
        }
    }
}

/// The heap that is in force in the place of the one that was asked for, such as that of a start script.
fn own_heap(trials: &[Trial]) -> Option<String> {
    trials.iter().flat_map(|trial| &trial.doubts).find_map(|of| match &of.doubt {
        Doubt::FlagChanged { asked, in_force } if asked.contains("-Xmx") => Some(in_force.clone()),
        _ => None,
    })
}

/// The line with its evidence and its cost, and what is to be set.
fn line_told(find: &FindRecord, line: &LineRecord, trials: &[Trial]) -> String {
    let (limit, tried) = (Bytes(line.limit_bytes), several(u64::from(line.tried()), "start"));
    let mut told =
        vec![format!("The load line is {limit}{}: {} of {tried} held.", with_heap(find, line, trials), line.held)];
    told.extend(costs(line, trials).filter(|of| of.ratio >= COSTS_FROM).map(|of| sentence(&of.told)));
    told.extend(match (find.limit_bytes, &find.soak) {
        (Some(limit), Some(soak)) => {
            let failed = soak.failed_bytes.iter().max().map(|most| format!("; {} failed", Bytes(*most)));
            let (set, failed) = (set_words(find, limit), failed.unwrap_or_default());
            Some(format!("Set {set}: it held {} of load{failed}.", span(soak.seconds)))
        }
        (Some(limit), None) => {
            Some(format!("With {} of headroom, set {}.", percent(find.headroom), set_words(find, limit)))
        }
        (None, Some(soak)) => {
            let most = Bytes(soak.failed_bytes.iter().max().copied().unwrap_or_default());
            let seconds = span(soak.seconds);
            Some(format!("Do not set it: under {seconds} of load it failed even with {most}, so something grows."))
        }
        (None, None) => None,
    });
    told.join(" ")
}

/// The answer of a search for the highest rate.
fn rate_told(find: &FindRecord, trials: &[Trial]) -> String {
    let limit = trials.iter().find_map(|trial| trial.limit_bytes);
    let limit = limit.map_or_else(|| "the limit".to_owned(), |limit| Bytes(limit).to_string());
    match (find.outcome, &find.rate) {
        (_, Some(rate)) => {
            let above = rate.above_per_s.map(|above| format!("; at {}/s it failed", per_second(above)));
            let (most, times) = (per_second(rate.rate_per_s), times(rate.held, rate.tried()));
            let above = above.unwrap_or_default();
            format!("{most}/s is the highest rate that {limit} can carry, {times}{above}.")
        }
        (FindOutcome::Never, None) => {
            let rates = trials.iter().filter_map(|trial| trial.probe.as_ref()?.rate_per_s);
            let least = rates.reduce(f64::min).map(|rate| format!(", down to {}/s", per_second(rate)));
            let least = least.unwrap_or_default();
            format!("With {limit} the target held at no rate tried{least}. Give more memory, or loosen the target.")
        }
        _ => sentence(&find.text),
    }
}

fn with_heap(find: &FindRecord, line: &LineRecord, trials: &[Trial]) -> String {
    let direct = line.direct_bytes.map(|direct| format!(" -XX:MaxDirectMemorySize={}", Bytes(direct).java()));
    match (line.heap_bytes, find.unknowns) {
        (Some(heap), _) => format!(" with -Xmx{}{}", Bytes(heap).java(), direct.unwrap_or_default()),
        (None, Unknowns::AsIs) => match trials.iter().find_map(Trial::heap_typed) {
            Some(heap) => format!(" with the server's own -Xmx{}", Bytes(heap).java()),
            None => " with the heap that the JVM chooses".to_owned(),
        },
        // A native program, or a JVM whose own command sets its heap.
        (None, _) if find.options.is_empty() => String::new(),
        (None, _) => " with the configured heap".to_owned(),
    }
}

/// States the results of an unfinished search.
fn known(trials: &[Trial]) -> Option<String> {
    let of = |verdict: ProbeVerdict| {
        trials.iter().filter_map(move |trial| {
            let probe = trial.probe.as_ref()?;
            trial.limit_bytes.filter(|_| probe.stage == ProbeStage::Limit && probe.verdict == verdict)
        })
    };
    let (held, failed) = (of(ProbeVerdict::Holds).min(), of(ProbeVerdict::Fails).max());
    let held = held.map(|held| format!("held at {}", Bytes(held)));
    let failed = failed.map(|failed| format!("failed at {}", Bytes(failed)));
    let known: Vec<String> = held.into_iter().chain(failed).collect();
    (!known.is_empty()).then(|| format!("It {}.", known.join(" and ")))
}

/// A phrase as a sentence.
pub(super) fn sentence(phrase: &str) -> String {
    let mut rest = phrase.chars();
    let first: String = rest.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if phrase.ends_with('.') || phrase.is_empty() { "" } else { "." };
    format!("{first}{}{end}", rest.as_str())
}

// ---- The facts ----

/// The line, its proof and all related facts, each with its label.
fn answer_facts(find: &FindRecord, trials: &[Trial]) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    if let Some(line) = &find.line {
        let label = if find.prove_bytes.is_some() { "limit" } else { "load line" };
        let limit = Bytes(line.limit_bytes);
        facts.add(label, format!("{limit}{}, with a cold page cache", with_heap(find, line, trials)));
        facts.add("evidence", proof(line.held, line.proof, Some(line.failing_share_max)));
        facts.add("below", below(line));
        facts.add("edge", edge(line));
        facts.add("cpu", costs(line, trials).map(|of| of.told));
        facts.add("charge", charge(line, trials));
        facts.add("file pages", foreign(trials));
        facts.add("read-ahead", read_ahead(trials));
    }
    facts.add("warm host", find.warm.as_ref().map(warm_text));
    if let Some(limit) = find.limit_bytes {
        let text = match find.headroom {
            share if share > 0.0 => {
                let (set, share) = (set_words(find, limit), percent(share));
                let raised = find.soak.as_ref().is_some_and(|soak| !soak.failed_bytes.is_empty());
                let raised = if raised { ", raised by the soak" } else { "" };
                format!("set {set}: the line plus a safety margin of {share} (`--headroom`){raised}")
            }
            _ => format!("set {}: no margin is added", set_words(find, limit)),
        };
        facts.add("headroom", text);
        let options = snippets::options(find);
        let none = "none besides the command's own".to_owned();
        facts.add("options", if options.is_empty() { none } else { crate::scenario::shell_words(&options) });
        facts.add("as shares", as_shares(find, limit));
    }
    facts.add("soak", soaked(find, trials));
    facts.add("knee", knee(find));
    if let Some(rate) = &find.rate {
        facts.add("rate", format!("{}/s", per_second(rate.rate_per_s)));
        facts.add("evidence", proof(rate.held, rate.proof, rate.failing_share_max));
        let not_held = "the target did not hold".to_owned();
        let why = if rate.cause_text.is_empty() { not_held } else { rate.cause_text.join("; ") };
        facts.add("above", rate.above_per_s.map(|above| format!("at {}/s {why}", per_second(above))));
    }
    facts.add("collector", facts::collector_by_cpus(trials));
    facts.add("target", (!find.target.is_empty()).then(|| find.target.join(", ")));
    let mut spent = several(u64::from(find.trials), "trial");
    let starts = trials.iter().filter(|trial| is_at(trial, ProbeStage::HeapStart)).count();
    if starts > 0 {
        spent.push_str(&format!(" ({starts} of them starts without load)"));
    }
    let fresh = find.proofs.saturating_sub(u32::from(find.prove_bytes.is_none())).max(1);
    let row = if fresh == 1 { "" } else { " in a row" };
    let fresh = several(u64::from(fresh), "fresh trial");
    let how = match find.prove_bytes {
        Some(_) => format!("{fresh}{row} had to hold"),
        None if find.cut_short => {
            format!("{fresh}{row} had to hold; the time was up before all smaller limits were tried")
        }
        None => format!("limits were {} apart, and {fresh}{row} had to hold", percent(find.step)),
    };
    facts.add("spent", format!("{spent} in {}, pauses not counted; {how}", span(find.seconds)));
    facts.0
}

/// `118.0 MiB and -Xmx13m`.
fn set_words(find: &FindRecord, limit: u64) -> String {
    let heap = find.heap_bytes.map_or_else(String::new, |heap| format!(" and -Xmx{}", Bytes(heap).java()));
    format!("{}{heap}", Bytes(limit))
}

/// CPU time of a request at the line.
struct Costs {
    /// The same over that with ample memory.
    ratio: f64,
    told: String,
}

/// CPU time of a request at the line against the first trial that held with ample memory; `None` where one is unknown.
fn costs(line: &LineRecord, trials: &[Trial]) -> Option<Costs> {
    let ample =
        trials.iter().filter(holds).find(|trial| is_at(trial, ProbeStage::Reference)).and_then(cpu_per_request)?;
    let at_line: Vec<f64> = at_line(line, trials).filter(holds).filter_map(cpu_per_request).collect();
    let at_line = median(&at_line)?;
    let [line, most] = [at_line, ample].map(|cpu_s| shown(Unit::Seconds, Some(cpu_s)));
    let ratio = at_line / ample;
    let change = percent(ratio - 1.0);
    let sign = if ratio < 1.0 { "" } else { "+" };
    Some(Costs {
        ratio,
        told: format!("a request takes {line} of CPU there, {most} with ample memory ({sign}{change})"),
    })
}

/// How much more memory the soak took than the shorter trials at the line.
fn soak_peak(line: &LineRecord, trials: &[Trial]) -> Option<String> {
    let peak = |trial: &Trial| trial.cgroup?.anon_peak_bytes;
    let soak = trials.iter().filter(holds).rfind(|trial| is_at(trial, ProbeStage::Soak)).and_then(peak)?;
    let before = middle(at_line(line, trials).filter(holds).filter_map(peak))?;
    let [soak, before] = [soak, before].map(Bytes);
    Some(format!("; anonymous and kernel memory peaked at {soak}, {before} in the shorter trials at the line"))
}

/// The result of the soak; without a soak, a sentence that says so.
fn soaked(find: &FindRecord, trials: &[Trial]) -> Option<String> {
    let line = find.line.as_ref().filter(|_| find.prove_bytes.is_none())?;
    let Some(soak) = &find.soak else {
        let limited = trials.iter().filter(|trial| is_at(trial, ProbeStage::Limit));
        let longest = span(limited.map(Trial::measured_s).reduce(f64::max)?);
        return Some(format!("none: the longest load was {longest}, too short to show a leak or a growing cache"));
    };
    let sizes: Vec<String> = soak.failed_bytes.iter().map(|bytes| Bytes(*bytes).to_string()).collect();
    let failed = (!sizes.is_empty()).then(|| format!("failed with {} ({})", sizes.join(", "), soak.why.join("; ")));
    let held = soak.limit_bytes.map(|limit| {
        let more = percent(limit as f64 / line.limit_bytes as f64 - 1.0);
        let more = if failed.is_some() { format!(", {more} above the line") } else { String::new() };
        let peak = soak_peak(line, trials).unwrap_or_default();
        format!("{} held {} of load{more}{peak}", Bytes(limit), span(soak.seconds))
    });
    Some(held.into_iter().chain(failed).collect::<Vec<_>>().join("; "))
}

/// Names the options that give the same heap as shares of the limit to set.
fn as_shares(find: &FindRecord, limit: u64) -> Option<String> {
    let shares = (!find.share_options.is_empty()).then(|| find.share_options.join(" "))?;
    Some(format!("{shares} set the same heap at {}, in place of -Xmx; it grows with the limit", Bytes(limit)))
}

/// States what the trials show, and what they leave open.
fn proof(held: u32, proof: Option<ProofRecord>, failing_share_max: Option<f64>) -> String {
    let tried = proof.map_or(held, |proof| proof.tried);
    let chosen = proof.map_or_else(String::new, chosen);
    let bound = failing_share_max.filter(|share| *share < 1.0).map(|share| {
        let (confidence, fewer) = (PROOF_CONFIDENCE * 100.0, share * 100.0);
        format!("fewer than {fewer:.0} % of starts fail under this load on this host ({confidence:.0} % confidence)")
    });
    let bound = bound.unwrap_or_else(|| "these are too few to bound how often a start fails".to_owned());
    format!("{held} of {} held{chosen}; {bound}", several(u64::from(tried), "start"))
}

/// How many of the trials are fresh, if the search chose the value by some of them.
fn chosen(proof: ProofRecord) -> String {
    let ProofRecord { tried, choosing, candidates } = proof;
    if choosing == 0 {
        return String::new();
    }
    let fresh = tried.saturating_sub(choosing);
    let after = match candidates.saturating_sub(1) {
        0 => String::new(),
        failed => format!(", after {} had failed the same test", several(u64::from(failed), "other candidate")),
    };
    format!(": one chose it, {fresh} fresh ones confirmed it{after}")
}

/// `5 of 5 times`.
pub(super) fn times(held: u32, tried: u32) -> String {
    format!("{held} of {}", several(u64::from(tried), "time"))
}

fn below(line: &LineRecord) -> Option<String> {
    let below = Bytes(line.below_bytes?);
    let what = line.cause.map_or("the target did not hold", |cause| cause_words(cause).1);
    let why = if line.cause_text.is_empty() { String::new() } else { format!(" ({})", line.cause_text.join("; ")) };
    Some(format!("at {below} {what}{why}"))
}

fn edge(line: &LineRecord) -> Option<String> {
    (line.edge_width > 0.0).then(|| {
        let width = percent(line.edge_width);
        format!("random: a limit {width} above the smallest that ever held has failed, and the line lies above both")
    })
}

/// Describes the parts of the charge in the trials at the line, and how far fresh JVMs differ in it.
fn charge(line: &LineRecord, trials: &[Trial]) -> Option<String> {
    let cgroups: Vec<_> = at_line(line, trials).filter_map(|trial| trial.cgroup).collect();
    let anon = middle(cgroups.iter().filter_map(|cgroup| cgroup.anon_peak_bytes))?;
    let file = middle(cgroups.iter().filter_map(|cgroup| cgroup.file_bytes));
    let file = file.map_or_else(String::new, |file| {
        format!(", and {} of file pages were charged when the load ended", Bytes(file))
    });
    let held = |trial: &&Trial| {
        let probe = trial.probe.as_ref();
        probe.is_some_and(|of| of.verdict == ProbeVerdict::Holds && of.heap_bytes == line.heap_bytes)
    };
    let limited = trials.iter().filter(|trial| is_at(trial, ProbeStage::Limit)).filter(held);
    let peaks: Vec<u64> = limited.filter_map(|trial| trial.cgroup?.anon_peak_bytes).collect();
    let (least, most) = (peaks.iter().min().copied().unwrap_or(anon), peaks.iter().max().copied().unwrap_or(anon));
    let range = match most - least > anon / 50 {
        true => format!(" (fresh JVMs that held: {} to {})", Bytes(least), Bytes(most)),
        false => String::new(),
    };
    Some(format!("the peak of anonymous and kernel memory was {}{range}{file}", Bytes(anon)))
}

/// File pages that were not charged to trials on a cold host.
fn foreign(trials: &[Trial]) -> Option<String> {
    let cold = trials.iter().filter(|trial| is_at(trial, ProbeStage::Limit));
    let most = cold.filter_map(|trial| trial.cgroup?.foreign_file_bytes).max()?;
    let most = Some(most).filter(|most| *most >= FOREIGN_BYTES_MIN).map(Bytes)?;
    Some(format!(
        "up to {most} of its mapped file pages were charged to another cgroup: a host that lacks them needs more"
    ))
}

/// Warns of a disk that reads far ahead, because that moves the line.
fn read_ahead(trials: &[Trial]) -> Option<String> {
    let bytes = trials.iter().find_map(|trial| trial.probe.as_ref()?.read_ahead_bytes);
    let bytes = bytes.filter(|bytes| *bytes > READ_AHEAD_MAX).map(Bytes)?;
    Some(format!(
        "the kernel reads {bytes} ahead on the disk of the JDK, where 128 KiB is usual: each page read again pushes \
         out others, so a host with less needs a smaller limit; `loadline doctor` says how to change it"
    ))
}

fn holds(trial: &&Trial) -> bool {
    trial.probe.as_ref().is_some_and(|of| of.verdict == ProbeVerdict::Holds)
}

/// The trials for the limit that had this line as theirs.
fn at_line<'t>(line: &LineRecord, trials: &'t [Trial]) -> impl Iterator<Item = &'t Trial> {
    let limit = Some(line.limit_bytes);
    trials.iter().filter(move |trial| is_at(trial, ProbeStage::Limit) && trial.limit_bytes == limit)
}

fn is_at(trial: &Trial, stage: ProbeStage) -> bool {
    trial.probe.as_ref().is_some_and(|probe| probe.stage == stage)
}

fn middle(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

fn warm_text(warm: &LineRecord) -> String {
    format!(
        "{} where the file pages are already in memory and charged to another cgroup (held {}); do not count on it",
        Bytes(warm.limit_bytes),
        times(warm.held, warm.tried())
    )
}

fn knee(find: &FindRecord) -> Option<String> {
    let (knee, line) = (find.knee?, find.line.as_ref()?);
    let heap = Bytes(knee.heap_bytes).java();
    let more = Bytes(knee.limit_bytes.saturating_sub(line.limit_bytes));
    Some(format!(
        "-Xmx{heap} at {}, {more} more, takes {} less CPU per request; computed, not proved",
        Bytes(knee.limit_bytes),
        percent(1.0 - knee.cpu_ratio)
    ))
}

/// `2 %`, `0.5 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", trimmed(share * 100.0, 1))
}

pub(super) fn span(seconds: f64) -> String {
    match seconds {
        seconds if seconds < MINUTES_FROM_S => format!("{seconds:.0} s"),
        seconds => format!("{:.1} minutes", seconds / 60.0),
    }
}

/// Lists the limits of other sizing rules; `None` if none is known.
fn others(find: &FindRecord) -> Option<Table> {
    ways(&find.others, find.line.as_ref()?.limit_bytes, "of the line")
}

/// Limits of rules beside this one, which the last head names.
pub(super) fn ways(rules: &[RuleRecord], limit: u64, of: &str) -> Option<Table> {
    let row = |rule: &RuleRecord| {
        let ratio = rule.limit_bytes as f64 / limit.max(1) as f64;
        vec![rule.name.clone(), mib(rule.limit_bytes), format!("{ratio:.2}")]
    };
    let how = |rule: &RuleRecord| format!("{}: {}.", rule.name, rule.how);
    let title = "limits that other sizing rules would set, MiB";
    Table::new(title, ["rule", "limit", of], rules.iter().map(row)).noted(rules.iter().map(how)).filled()
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
