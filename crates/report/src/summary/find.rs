//! The page of a search for the load line: the answer, the trial with ample memory, the line, its confirmation, and
//! what that confirmation shows. Then come every trial and the limits that other sizing rules give.

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
use crate::words::{Standing, sentence};
use loadline_base::numbers::median;

/// File pages charged to another cgroup are reported if they reach this size. The C library and locales, shared by all
/// processes of a host, are 2 to 3 MiB.
const FOREIGN_BYTES_MIN: u64 = 4 << 20;
/// Linux's default read-ahead is 128 KiB. Up to this value, read-ahead hardly affects the line.
const READ_AHEAD_MAX: u64 = 256 << 10;
/// At this ratio or above, the answer itself states the line's cost in CPU time: fresh JVMs vary by less.
const COSTS_FROM: f64 = 1.25;
/// From this value on, durations are given in minutes.
const MINUTES_FROM_S: f64 = 120.0;

/// The page of a search, which replaces the page of trials.
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
    let answer = std::iter::once(Part::Verdicts(verdicts)).chain(ceilings(document));
    let mut sections = vec![
        Section::new(Topic::Answer, "", answer).id("verdict"),
        Section::new(Topic::Answer, "", next::of_find(document, find)),
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
    let title = if find.prove_bytes.is_some() { what.to_owned() } else { format!("{what} found") };
    finished(of, &title, sections, depth)
}

/// The memory that the subject's own settings allow, if it exceeds the limit to set.
fn ceilings(document: &Document) -> Option<Part> {
    document.findings.iter().find_map(|one| match &one.finding {
        Finding::CeilingsAboveLimit { limit_bytes, ceilings_bytes, .. } => Some(Part::Text(format!(
            "This limit fits this load. The server's own settings let it grow to {}, which exceeds the limit of {}. \
                Cap what can grow (see the findings below).",
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
        FindOutcome::NotHeld | FindOutcome::Never => (Standing::Fail, "missed"),
        FindOutcome::GivenUp => (Standing::Undecided, "no line"),
    };
    Verdict::new(standing, word, told(find, trials))
}

fn what_was_sought(find: &FindRecord) -> &'static str {
    match find.unknowns {
        Unknowns::Rate => "highest rate",
        _ if find.prove_bytes.is_some() => "limit tested",
        _ => "load line",
    }
}

/// The trial with ample memory.
fn unconcerned(trial: &Trial) -> String {
    format!("with ample memory (trial {})", trial.index + 1)
}

/// The owners of memory at the end of the load.
fn memory(trial: &Trial) -> Vec<Part> {
    let loaded = trial.at(MarkPoint::Loaded).and_then(account_of);
    let account = loaded.or_else(|| trial.marks.iter().rev().find_map(account_of));
    account.map_or(Vec::new(), |account| vec![Part::Text(account_answer(account)), Part::Table(owners(account))])
}

/// The last trial that passed, from the confirmation if there was one.
fn held_last(trials: &[Trial]) -> Option<&Trial> {
    let proof = |trial: &&Trial| holds(trial) && is_at(trial, ProbeStage::Limit);
    trials.iter().rfind(proof).or(trials.iter().rfind(holds))
}

// ---- The answer ----

pub(crate) fn told(find: &FindRecord, trials: &[Trial]) -> String {
    if find.unknowns == Unknowns::Rate {
        return rate_told(find, trials);
    }
    if let Some(limit) = find.prove_bytes.map(Bytes) {
        return match (find.outcome, &find.line) {
            (FindOutcome::GivenUp, _) => sentence(&find.text),
            (_, Some(line)) => format!("The target is met at {limit}: {}.", passed(line.held, line.tried())),
            (_, None) => format!("{} Use more memory, a lower rate, or a looser target.", sentence(&find.text)),
        };
    }
    match (find.outcome, &find.line) {
        (FindOutcome::Found | FindOutcome::Grows, Some(line)) => line_told(find, line, trials),
        (FindOutcome::AtLowerBound, Some(line)) => format!(
            "The target is met at {}{}, the smallest limit allowed, so the load line may be lower. To find it, lower \
                `--limit-min`.",
            Bytes(line.limit_bytes),
            with_heap(find, line, trials)
        ),
        (FindOutcome::NotHeld, _) => format!(
            "{} A larger limit will not help. Give the server more CPU, change the configuration, lower the rate, or \
                relax the target.",
            sentence(&find.text)
        ),
        (FindOutcome::Never, _) => {
            format!("{} Use a larger `--limit-max`, a lower rate, or a looser target.", sentence(&find.text))
        }
        _ if own_heap(trials).is_some() => format!(
            "No load line: the server sets its own heap (`{}`), so Loadline cannot vary it. To search for the limit \
                alone, use `--as-is`.",
            own_heap(trials).unwrap_or_default()
        ),
        _ => {
            let known = known(trials).map_or_else(String::new, |known| format!(" {known}"));
            format!("{}{known}", sentence(&find.text))
        }
    }
}

/// A heap in effect that differs from the requested one, such as a start script's.
fn own_heap(trials: &[Trial]) -> Option<String> {
    trials.iter().flat_map(|trial| &trial.doubts).find_map(|of| match &of.doubt {
        Doubt::FlagChanged { asked, in_force } if asked.contains("-Xmx") => Some(in_force.clone()),
        _ => None,
    })
}

/// The line with its evidence and cost, and what to set.
fn line_told(find: &FindRecord, line: &LineRecord, trials: &[Trial]) -> String {
    let (limit, heap) = (Bytes(line.limit_bytes), with_heap(find, line, trials));
    let passed = passed(line.held, line.tried());
    let found = match find.cut_short {
        true => format!(
            "The load line is at most {limit}{heap}: {passed}, and time ran out before all smaller limits were tried."
        ),
        false => format!("The load line, the smallest limit that meets the target, is {limit}{heap}: {passed}."),
    };
    let cost = costs(line, trials).filter(|of| of.ratio >= COSTS_FROM);
    let cost = cost.map(|of| format!(" {}", sentence(&of.told))).unwrap_or_default();
    match (find.limit_bytes, &find.soak) {
        (Some(limit), Some(soak)) => {
            let failed = soak.failed_bytes.iter().max().map(|most| format!(", after {} failed", Bytes(*most)));
            let (set, failed) = (set_words(find, limit), failed.unwrap_or_default());
            let seconds = span(soak.seconds);
            match soak.limit_bytes.filter(|held| *held != limit) {
                None => format!("Set {set}: one start passed {seconds} of load{failed}. {found}{cost}"),
                Some(held) => format!(
                    "Set {set}: {} passed {seconds} of load{failed}, and {} headroom is added. Memory grew during that \
                     load; `--soak 10m` shows whether it continues to grow. {found}{cost}",
                    Bytes(held),
                    percent(find.headroom)
                ),
            }
        }
        (Some(limit), None) => {
            let (set, headroom) = (set_words(find, limit), percent(find.headroom));
            format!("Set {set}: the load line plus {headroom} headroom. {found}{cost}")
        }
        (None, Some(soak)) => {
            let most = Bytes(soak.failed_bytes.iter().max().copied().unwrap_or_default());
            let seconds = span(soak.seconds);
            format!(
                "{found} Do not use this limit: even {most} failed under {seconds} of load, so something keeps \
                growing."
            )
        }
        (None, None) => format!("{found}{cost}"),
    }
}

/// The answer of a search for the highest rate.
fn rate_told(find: &FindRecord, trials: &[Trial]) -> String {
    let limit = trials.iter().find_map(|trial| trial.limit_bytes);
    let limit = limit.map_or_else(|| "the limit".to_owned(), |limit| Bytes(limit).to_string());
    match (find.outcome, &find.rate) {
        (_, Some(rate)) => {
            let above = rate.above_per_s.map(|above| format!(" At {}/s, the target was missed.", per_second(above)));
            let (most, passed) = (per_second(rate.rate_per_s), passed(rate.held, rate.tried()));
            let above = above.unwrap_or_default();
            format!("The highest rate with {limit} is {most}/s: {passed}.{above}")
        }
        (FindOutcome::Never, None) => {
            let rates = trials.iter().filter_map(|trial| trial.probe.as_ref()?.rate_per_s);
            let least = rates.reduce(f64::min).map(|rate| format!(", down to {}/s", per_second(rate)));
            let least = least.unwrap_or_default();
            format!(
                "With {limit}, the target was missed at every rate tried{least}. Use more memory or a looser target."
            )
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
            None => " with the JVM's default heap".to_owned(),
        },
        // A native program, or a JVM whose own command sets its heap.
        (None, _) if find.options.is_empty() => String::new(),
        (None, _) => " with the configured heap".to_owned(),
    }
}

/// The results of an unfinished search.
fn known(trials: &[Trial]) -> Option<String> {
    let of = |verdict: ProbeVerdict| {
        trials.iter().filter_map(move |trial| {
            let probe = trial.probe.as_ref()?;
            trial.limit_bytes.filter(|_| probe.stage == ProbeStage::Limit && probe.verdict == verdict)
        })
    };
    let (held, failed) = (of(ProbeVerdict::Holds).min(), of(ProbeVerdict::Fails).max());
    let held = held.map(|held| format!("{} passed", Bytes(held)));
    let failed = failed.map(|failed| format!("{} failed", Bytes(failed)));
    let known: Vec<String> = held.into_iter().chain(failed).collect();
    (!known.is_empty()).then(|| format!("So far, {}.", known.join(" and ")))
}

// ---- The facts ----

/// The line, its confirmation, and related facts.
fn answer_facts(find: &FindRecord, trials: &[Trial]) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    if let Some(line) = &find.line {
        let label = if find.prove_bytes.is_some() { "limit" } else { "load line" };
        let limit = Bytes(line.limit_bytes);
        facts.add(label, format!("{limit}{} (with a cold page cache)", with_heap(find, line, trials)));
        facts.add("evidence", proof(&limit.to_string(), line.held, line.proof, Some(line.failing_share_max)));
        facts.add("", at_limit_to_set(find));
        facts.add("below", below(line));
        facts.add("edge", edge(line));
        facts.add("cpu", costs(line, trials).map(|of| of.told));
        facts.add("charge", charge(line, trials));
        facts.add("file pages", foreign(trials));
        facts.add("read-ahead", read_ahead(trials));
    }
    facts.add("warm cache", find.warm.as_ref().map(warm_text));
    if let Some(limit) = find.limit_bytes {
        let text = match find.headroom {
            share if share > 0.0 => {
                let (set, share) = (set_words(find, limit), percent(share));
                let raised = find.soak.as_ref().is_some_and(|soak| !soak.failed_bytes.is_empty());
                let raised = if raised { ", raised after a failed soak" } else { "" };
                format!("{share} (`--headroom`) on top of the load line{raised}: set {set}")
            }
            _ => format!("none: set {}", set_words(find, limit)),
        };
        facts.add("headroom", text);
        let options = snippets::options(find);
        let none = "none other than those in the command".to_owned();
        facts.add("options", if options.is_empty() { none } else { crate::scenario::shell_words(&options) });
        facts.add("percentage", as_shares(find, limit));
    }
    facts.add("soak", soaked(find, trials));
    facts.add("knee", knee(find));
    if let Some(rate) = &find.rate {
        facts.add("rate", format!("{}/s", per_second(rate.rate_per_s)));
        let at = format!("{}/s", per_second(rate.rate_per_s));
        facts.add("evidence", proof(&at, rate.held, rate.proof, rate.failing_share_max));
        let not_held = "the target was missed".to_owned();
        let why = if rate.cause_text.is_empty() { not_held } else { rate.cause_text.join("; ") };
        facts.add("above", rate.above_per_s.map(|above| format!("at {}/s, {why}", per_second(above))));
    }
    facts.add("collector", facts::collector_by_cpus(trials));
    facts.add("target", (!find.target.is_empty()).then(|| find.target.join(", ")));
    let mut spent = several(u64::from(find.trials), "trial");
    let starts = trials.iter().filter(|trial| is_at(trial, ProbeStage::HeapStart)).count();
    if starts > 0 {
        spent.push_str(&format!(" (including {} without load)", several(starts as u64, "start")));
    }
    let fresh = find.proofs.saturating_sub(u32::from(find.prove_bytes.is_none())).max(1);
    let row = if fresh == 1 { "" } else { " in a row" };
    let fresh = several(u64::from(fresh), "fresh trial");
    let how = match find.prove_bytes {
        Some(_) => format!("{fresh}{row} had to pass"),
        None if find.cut_short => {
            format!("{fresh}{row} had to pass; time ran out before all smaller limits had been tried")
        }
        None => {
            let varied = if find.unknowns == Unknowns::Rate { "rates" } else { "limits" };
            format!("{varied} were {} apart, and {fresh}{row} had to pass", percent(find.step))
        }
    };
    facts.add("spent", format!("{spent} in {}, excluding pauses; {how}", span(find.seconds)));
    facts.0
}

/// `118.0 MiB and -Xmx13m`.
fn set_words(find: &FindRecord, limit: u64) -> String {
    let heap = find.heap_bytes.map_or_else(String::new, |heap| format!(" with -Xmx{}", Bytes(heap).java()));
    format!("the limit to {}{heap}", Bytes(limit))
}

/// CPU time per request at the line.
struct Costs {
    /// Relative to that with ample memory.
    ratio: f64,
    told: String,
}

/// CPU time per request at the line relative to the first passed trial with ample memory; `None` if either is unknown.
fn costs(line: &LineRecord, trials: &[Trial]) -> Option<Costs> {
    let ample =
        trials.iter().filter(holds).find(|trial| is_at(trial, ProbeStage::Reference)).and_then(cpu_per_request)?;
    let at_line: Vec<f64> = at_line(line, trials).filter(holds).filter_map(cpu_per_request).collect();
    let at_line = median(&at_line)?;
    let [line, most] = [at_line, ample].map(|cpu_s| shown(Unit::Seconds, Some(cpu_s)));
    let ratio = at_line / ample;
    let told = match ratio < 1.0 {
        // Less memory saves no CPU time; the trial with ample memory had more to compile.
        true => format!("a request takes no more CPU time at the load line ({line}) than with ample memory ({most})"),
        false => format!(
            "a request takes {line} of CPU time at the load line and {most} with ample memory (+{})",
            percent(ratio - 1.0)
        ),
    };
    Some(Costs { ratio, told })
}

/// How much more memory the soak used than shorter trials at the line.
fn soak_peak(line: &LineRecord, trials: &[Trial]) -> Option<String> {
    let peak = |trial: &Trial| trial.cgroup?.anon_peak_bytes;
    let soak = trials.iter().filter(holds).rfind(|trial| is_at(trial, ProbeStage::Soak)).and_then(peak)?;
    let before = middle(at_line(line, trials).filter(holds).filter_map(peak))?;
    let [soak, before] = [soak, before].map(Bytes);
    Some(format!(
        "; anonymous and kernel memory peaked at {soak}, compared with {before} in the shorter trials at \
        the load line"
    ))
}

/// The result of the soak, or a sentence saying that there was none.
fn soaked(find: &FindRecord, trials: &[Trial]) -> Option<String> {
    let line = find.line.as_ref().filter(|_| find.prove_bytes.is_none())?;
    let Some(soak) = &find.soak else {
        let limited = trials.iter().filter(|trial| is_at(trial, ProbeStage::Limit));
        let longest = span(limited.map(Trial::measured_s).reduce(f64::max)?);
        return Some(format!("not run: the longest load was {longest}, too short to reveal a leak or a growing cache"));
    };
    let sizes: Vec<String> = soak.failed_bytes.iter().map(|bytes| Bytes(*bytes).to_string()).collect();
    let failed = (!sizes.is_empty()).then(|| format!("{} failed ({})", sizes.join(", "), soak.why.join("; ")));
    let held = soak.limit_bytes.map(|limit| {
        let more = percent(limit as f64 / line.limit_bytes as f64 - 1.0);
        let more = if failed.is_some() { format!(", {more} above the load line") } else { String::new() };
        let peak = soak_peak(line, trials).unwrap_or_default();
        format!("{} passed {} of load{more}{peak}", Bytes(limit), span(soak.seconds))
    });
    Some(held.into_iter().chain(failed).collect::<Vec<_>>().join("; "))
}

/// The options that give the same heap as a share of the limit to set.
fn as_shares(find: &FindRecord, limit: u64) -> Option<String> {
    let shares = (!find.share_options.is_empty()).then(|| find.share_options.join(" "))?;
    Some(format!("{shares} set the same heap as -Xmx at {}, and let the heap scale with the limit", Bytes(limit)))
}

/// The evidence from the trials, and the share of starts that may still fail.
fn proof(at: &str, held: u32, proof: Option<ProofRecord>, failing_share_max: Option<f64>) -> String {
    let tried = proof.map_or(held, |proof| proof.tried);
    let chosen = proof.map_or_else(String::new, chosen);
    let bound = failing_share_max.filter(|share| *share < 1.0).map(|share| {
        let (confidence, fewer) = (PROOF_CONFIDENCE * 100.0, share * 100.0);
        format!("fewer than {fewer:.0}% of starts fail under this load on this host ({confidence:.0}% confidence)")
    });
    let bound = bound.unwrap_or_else(|| "that is too few to tell how often a start fails".to_owned());
    format!("{} at {at}{chosen}; {bound}", passed(held, tried))
}

/// How many of the trials are fresh, if some were used to choose the value.
fn chosen(proof: ProofRecord) -> String {
    let ProofRecord { tried, choosing, candidates } = proof;
    if choosing == 0 {
        return String::new();
    }
    let fresh = tried.saturating_sub(choosing);
    let after = match candidates.saturating_sub(1) {
        0 => String::new(),
        failed => format!(", after {} failed the same test", several(u64::from(failed), "other candidate")),
    };
    format!(" (1 to choose it, {fresh} fresh ones to confirm it{after})")
}

/// `5 of 5 starts passed`.
pub(super) fn passed(held: u32, tried: u32) -> String {
    format!("{held} of {} passed", several(u64::from(tried), "start"))
}

/// How often the limit to set, which is not the line, passed.
fn at_limit_to_set(find: &FindRecord) -> Option<String> {
    let limit = find.limit_bytes.filter(|limit| find.line.as_ref().is_some_and(|line| line.limit_bytes != *limit))?;
    Some(match find.soak.as_ref().and_then(|soak| soak.limit_bytes) {
        Some(held) if held == limit => format!("1 start passed at {}, the limit to set", Bytes(limit)),
        _ => format!("{}, the limit to set, was not itself tested", Bytes(limit)),
    })
}

fn below(line: &LineRecord) -> Option<String> {
    let below = Bytes(line.below_bytes?);
    let what = line.cause.map_or("the target was missed", |cause| cause_words(cause).1);
    let why = if line.cause_text.is_empty() { String::new() } else { format!(" ({})", line.cause_text.join("; ")) };
    Some(format!("at {below}, {what}{why}"))
}

fn edge(line: &LineRecord) -> Option<String> {
    (line.edge_width > 0.0).then(|| {
        let width = percent(line.edge_width);
        format!(
            "results vary: a limit {width} above the smallest one that passed also failed; the load line is above both"
        )
    })
}

/// The parts of the charge in trials at the line, and its variation between fresh JVMs.
fn charge(line: &LineRecord, trials: &[Trial]) -> Option<String> {
    let cgroups: Vec<_> = at_line(line, trials).filter_map(|trial| trial.cgroup).collect();
    let anon = middle(cgroups.iter().filter_map(|cgroup| cgroup.anon_peak_bytes))?;
    let file = middle(cgroups.iter().filter_map(|cgroup| cgroup.file_bytes));
    let file = file.map_or_else(String::new, |file| {
        format!("; {} of file pages were charged at the end of the load", Bytes(file))
    });
    let held = |trial: &&Trial| {
        let probe = trial.probe.as_ref();
        probe.is_some_and(|of| of.verdict == ProbeVerdict::Holds && of.heap_bytes == line.heap_bytes)
    };
    let limited = trials.iter().filter(|trial| is_at(trial, ProbeStage::Limit)).filter(held);
    let peaks: Vec<u64> = limited.filter_map(|trial| trial.cgroup?.anon_peak_bytes).collect();
    let (least, most) = (peaks.iter().min().copied().unwrap_or(anon), peaks.iter().max().copied().unwrap_or(anon));
    let range = match most - least > anon / 50 {
        true => format!(" ({} to {} across the starts that passed)", Bytes(least), Bytes(most)),
        false => String::new(),
    };
    Some(format!("anonymous and kernel memory peaked at {}{range}{file}", Bytes(anon)))
}

/// File pages not charged to trials on a cold host.
fn foreign(trials: &[Trial]) -> Option<String> {
    let cold = trials.iter().filter(|trial| is_at(trial, ProbeStage::Limit));
    let most = cold.filter_map(|trial| trial.cgroup?.foreign_file_bytes).max()?;
    let most = Some(most).filter(|most| *most >= FOREIGN_BYTES_MIN).map(Bytes)?;
    Some(format!(
        "up to {most} of its mapped file pages were charged to another cgroup; without that, the server needs more \
            memory"
    ))
}

/// Warns of a disk with large read-ahead, which affects the line.
fn read_ahead(trials: &[Trial]) -> Option<String> {
    let bytes = trials.iter().find_map(|trial| trial.probe.as_ref()?.read_ahead_bytes);
    let bytes = bytes.filter(|bytes| *bytes > READ_AHEAD_MAX).map(Bytes)?;
    Some(format!(
        "{bytes} on the JDK's disk (128 KiB is the default): every page that is reread evicts others, so a host with \
            less read-ahead needs a smaller limit; `loadline doctor` shows how to change it"
    ))
}

fn holds(trial: &&Trial) -> bool {
    trial.probe.as_ref().is_some_and(|of| of.verdict == ProbeVerdict::Holds)
}

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
        "{} if the file pages are already cached and charged to another cgroup ({}); do not rely on this",
        Bytes(warm.limit_bytes),
        passed(warm.held, warm.tried())
    )
}

fn knee(find: &FindRecord) -> Option<String> {
    let (knee, line) = (find.knee?, find.line.as_ref()?);
    let heap = Bytes(knee.heap_bytes).java();
    let more = Bytes(knee.limit_bytes.saturating_sub(line.limit_bytes));
    Some(format!(
        "-Xmx{heap} with a limit of {}, {more} more, would take {} less CPU per request (calculated, not tested)",
        Bytes(knee.limit_bytes),
        percent(1.0 - knee.cpu_ratio)
    ))
}

/// `2%`, `0.5%`.
pub(super) fn percent(share: f64) -> String {
    format!("{}%", trimmed(share * 100.0, 1))
}

pub(super) fn span(seconds: f64) -> String {
    match seconds {
        seconds if seconds < MINUTES_FROM_S => format!("{seconds:.0} s"),
        seconds => format!("{:.1} minutes", seconds / 60.0),
    }
}

/// The limits of other sizing rules, if any are known.
fn others(find: &FindRecord) -> Option<Table> {
    ways(&find.others, find.line.as_ref()?.limit_bytes, "vs. load line")
}

/// Limits of other rules relative to this one, which the last column names.
pub(super) fn ways(rules: &[RuleRecord], limit: u64, of: &str) -> Option<Table> {
    let row = |rule: &RuleRecord| {
        let ratio = rule.limit_bytes as f64 / limit.max(1) as f64;
        vec![rule.name.clone(), mib(rule.limit_bytes), format!("{ratio:.2}x")]
    };
    let how = |rule: &RuleRecord| format!("{}: {}.", rule.name, rule.how);
    let title = "limits that other sizing rules would give, MiB";
    Table::new(title, ["rule", "limit", of], rules.iter().map(row)).noted(rules.iter().map(how)).filled()
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
