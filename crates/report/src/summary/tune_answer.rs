//! A tuning's answer in words: what to set, its saving with the interval, its cost, and the evidence.

use super::find::{passed, percent};
use crate::comparison::{CPU_OF_JIT, CPU_WITHOUT_JIT, split};
use crate::owner::label;
use crate::page::Facts;
use crate::quantity::{Estimate, shown};
use crate::record::{
    ComparisonRecord, Fate, FindRecord, LeastRecord, LinesRecord, NO_TIME, Trial, TuneOutcome, TuneRecord, TuneStage,
    Unit, each_once,
};
use crate::scenario::{Objective, WARMUP, shell_words};
use crate::units::several;
use crate::words::sentence;
use loadline_base::order::Order as _;

pub(crate) const AS_IS: &str = "baseline";
/// Maximum number of owners named if nothing was confirmed.
const OWNERS_TOLD: usize = 3;
/// The smallest saving that two trials with a remedy can distinguish from three without, in standard deviations of one
/// trial: 1.5 standard errors, as in the tuning.
const SEEN: f64 = 1.37;

/// The first baseline trial with a known JVM, else the first unchanged trial.
pub(crate) fn as_is_trial(trials: &[Trial]) -> Option<&Trial> {
    let as_is = |trial: &&Trial| trial.tuned.as_ref().is_some_and(|of| of.remedies.is_empty());
    let usual = |trial: &&Trial| trial.tuned.as_ref().is_some_and(|of| of.stage == TuneStage::Baseline);
    let known = |trial: &&Trial| usual(trial) && as_is(trial) && trial.jvm.is_some();
    trials.iter().find(known).or(trials.iter().find(as_is))
}

pub(crate) fn told(tune: &TuneRecord) -> String {
    told_each(tune).join(" ")
}

/// The sentences of [`told`]. Text in backticks is literal.
pub(crate) fn told_each(tune: &TuneRecord) -> Vec<String> {
    let next = match tune.outcome {
        TuneOutcome::Proved if !tune.changes.is_empty() => {
            let costs = costs(tune).map(|costs| format!("Cost: {costs}."));
            let proof = proof(tune).map(|proof| format!("Evidence: {proof}."));
            return std::iter::once(set_told(tune)).chain(costs).chain(proof).collect();
        }
        TuneOutcome::Unpriced => {
            let why = unpriced(tune).map(|why| format!("Its cost is not confirmed: {why}."));
            return std::iter::once(not_yet(tune)).chain(why).collect();
        }
        TuneOutcome::NothingProved if late(tune) > 0 => Some(more_time(tune)),
        TuneOutcome::NothingProved => Some("Leave the settings unchanged.".to_owned()),
        TuneOutcome::NotHeld => Some(NO_SETTING.to_owned()),
        TuneOutcome::Planned => Some(planned(tune)),
        TuneOutcome::Proved | TuneOutcome::GivenUp => None,
    };
    std::iter::once(sentence(&tune.text)).chain(next).collect()
}

const NO_SETTING: &str = "Saving memory will not help. Give the server more CPU, change the configuration, lower the \
    rate, or relax the target.";

/// How many remedies a plan would try.
fn planned(tune: &TuneRecord) -> String {
    let all = tune.remedies.len();
    let tried = match tune.remedies.iter().filter(|of| of.fate == Fate::Planned).count() {
        1 => format!("Tuning would try 1 of {all} remedies."),
        count => format!("Tuning would try {count} of {all} remedies."),
    };
    format!("{tried} Without `--dry-run`, it runs {}.", usual_trials(tune))
}

fn usual_trials(tune: &TuneRecord) -> String {
    let each = tune.seconds / f64::from(tune.trials.max(1));
    if each > 0.0 { format!("20 to 50 trials of about {each:.0} s each") } else { "20 to 50 trials".to_owned() }
}

/// Number of remedies that were not tried for lack of time.
fn late(tune: &TuneRecord) -> usize {
    tune.remedies.iter().filter(|of| of.why == NO_TIME).count()
}

fn more_time(tune: &TuneRecord) -> String {
    format!("Raise `--minutes` or `--trials-max`: tuning usually takes {}.", usual_trials(tune))
}

pub(super) fn set_told(tune: &TuneRecord) -> String {
    let (saves, out) = (it_saves(tune), shell_words(&tune.taken_out()));
    match (tune.answer.is_empty(), out.is_empty()) {
        (_, true) => format!("Set `{}`{saves}.", shell_words(&tune.answer)),
        (true, false) => format!("Remove `{out}`{saves}."),
        (false, false) => format!("Set `{}` and remove `{out}`{saves}.", shell_words(&tune.answer)),
    }
}

/// What not to set yet, and what it would save.
fn not_yet(tune: &TuneRecord) -> String {
    let (answer, out) = (shell_words(&tune.answer), shell_words(&tune.taken_out()));
    let each = [("set", answer), ("remove", out)].into_iter().filter(|(_, words)| !words.is_empty());
    let each: Vec<String> = each.map(|(verb, words)| format!("{verb} `{words}`")).collect();
    format!("Do not {} yet{}.", each.join(" and "), it_saves(tune))
}

/// `: it saves 412.3 MiB of 1413.0 MiB RSS`.
fn it_saves(tune: &TuneRecord) -> String {
    saves(tune).map_or(String::new(), |(verb, text)| format!(": it {verb} {text}"))
}

/// The user's own options that the diagnosis blames but that stay, and how to try the server without each.
pub(super) fn blamed(tune: &TuneRecord) -> Vec<(String, String)> {
    let blaming = |option: &&str| tune.remedies.iter().find(|of| of.blames.as_deref() == Some(option));
    let options = each_once(tune.remedies.iter().filter_map(|of| of.blames.as_deref()));
    let told = options.iter().filter_map(blaming).map(|of| format!("{}: {}", of.why, of.what));
    let mut facts = Facts::default();
    facts.list("yours", told);
    facts.0
}

/// What to set, its saving, cost, and evidence, or else the missed targets, if any.
pub(crate) fn answer(tune: &TuneRecord) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    let has_answer = matches!(tune.outcome, TuneOutcome::Proved | TuneOutcome::Unpriced);
    if has_answer && !tune.changes.is_empty() {
        let is_proved = tune.outcome == TuneOutcome::Proved;
        let [set, out] = if is_proved { ["set", "remove"] } else { ["candidate", "without"] };
        facts.add(set, Some(shell_words(&tune.answer)).filter(|text| !text.is_empty()));
        facts.add(out, Some(shell_words(&tune.taken_out())).filter(|text| !text.is_empty()));
        saves(tune).into_iter().for_each(|(verb, text)| facts.add(verb, text));
        // An undecided price is reported with the trials that left it open.
        facts.add("costs", costs(tune).filter(|_| is_proved));
        facts.add("cost limit", unpriced(tune).map(|why| format!("not confirmed: {why}")).or_else(|| allowed(tune)));
        facts.add("evidence", proof(tune).map(|text| format!("{text}; the search's own trials are not included")));
        facts.add("limit", tune.lines.as_ref().and_then(limits));
    }
    if tune.outcome == TuneOutcome::NotHeld {
        facts.list("missed", tune.as_is.iter().flat_map(|as_is| as_is.why.clone()));
    }
    facts.0
}

/// If nothing was confirmed: the largest owners, savings too small to detect, and the next measurements.
pub(super) fn unsettled(tune: &TuneRecord) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    if !matches!(tune.outcome, TuneOutcome::NothingProved | TuneOutcome::Unpriced) {
        return facts.0;
    }
    let mut held: Vec<_> = tune.as_is.iter().flat_map(|as_is| &as_is.owners).collect();
    held.largest_first(|of| of.bytes as u64);
    let held: Vec<String> = held.into_iter().take(OWNERS_TOLD).map(|of| held_by(&of.owner, of.bytes)).collect();
    facts.add("largest", (!held.is_empty()).then(|| format!("{} in the {AS_IS}", held.join(", "))));
    let least = tune.noise.map(|noise| shown(Unit::Bytes, Some(SEEN * noise.bytes)));
    facts.add(
        "undetected",
        least.map(|least| {
            format!(
                "savings below {least}, because fresh processes differ by about \
        as much"
            )
        }),
    );
    facts.list("next steps", to_go_on(tune));
    facts.0
}

fn held_by(owner: &str, bytes: f64) -> String {
    format!("{} {}", label(owner), shown(Unit::Bytes, Some(bytes)))
}

fn to_go_on(tune: &TuneRecord) -> Vec<String> {
    let mut next = Vec::new();
    let costly = tune.remedies.iter().filter(|of| of.fate == Fate::TooCostly);
    let costly = costly.filter_map(|of| Some((of, of.saved_bytes?, of.cpu_ratio? - 1.0)));
    if let Some((of, saved, cost)) = costly.max_by(|one, other| one.1.total_cmp(&other.1)) {
        let (saved, price) = (shown(Unit::Bytes, Some(saved)), (cost * 100.0).ceil());
        next.push(format!("`{}` saves {saved}; `--price {price:.0}%` would allow its CPU cost", of.id));
    }
    let late = late(tune);
    if late > 0 {
        let remedies = if late == 1 { "remedy" } else { "remedies" };
        next.push(format!("time ran out for {late} {remedies}: raise `--minutes` or `--trials-max`"));
    }
    if tune.remedies.iter().any(|of| of.why.contains("--warmup steady")) {
        next.push("some remedies show their cost only on a warm JVM: use `--warmup steady:5m`".to_owned());
    }
    next
}

/// Why the answer's price is not confirmed, if that is the case.
fn unpriced(tune: &TuneRecord) -> Option<String> {
    let attempt = tune.confirmations.iter().find(|of| !of.confirmed && of.remedies == kept(tune))?;
    (tune.outcome == TuneOutcome::Unpriced).then(|| attempt.why.clone())
}

/// The CPU time that the answer was allowed to take; `None` without CPU time.
fn allowed(tune: &TuneRecord) -> Option<String> {
    let attempt = tune.confirmations.iter().find(|of| of.confirmed && of.price > 0.0)?;
    let millicores = tune.price_cpus? * 1000.0 * attempt.price / tune.price.max(f64::MIN_POSITIVE);
    let worth =
        if attempt.price > tune.price { ", because 4 GiB of saved memory counts as much as one core" } else { "" };
    Some(format!(
        "up to {} more CPU per request ({millicores:.0} millicores) was allowed{worth}",
        percent(attempt.price)
    ))
}

fn kept(tune: &TuneRecord) -> Vec<String> {
    tune.remedies.iter().filter(|of| of.fate == Fate::Kept).map(|of| of.id.clone()).collect()
}

/// `saves`, and `412.3 MiB of 1413.0 MiB RSS (29.2%), 398.0 to 427.1 MiB at 95% confidence`; `takes` if the winner uses
/// more.
fn saves(tune: &TuneRecord) -> Option<(&'static str, String)> {
    let gain = objective_gain(tune)?;
    let size = |value: f64| shown(gain.unit, Some(value));
    let (saved, before) = (-gain.difference, gain.baseline_median);
    let (verb, more) = if saved < 0.0 { ("takes", " more than the") } else { ("saves", " of") };
    let share = if before > 0.0 { format!(" ({})", percent(saved.abs() / before)) } else { String::new() };
    let ends = gain.low.zip(gain.high).map_or(String::new(), |(low, high)| {
        let confidence = percent(gain.confidence);
        format!(", {} to {} at {confidence} confidence", size(-high), size(-low))
    });
    let what = objective_words(tune.objective).0;
    Some((verb, format!("{}{more} {} {what}{share}{ends}", size(saved.abs()), size(before))))
}

/// The objective in a word or two, and in full.
pub(crate) fn objective_words(objective: Objective) -> (&'static str, &'static str) {
    match objective {
        Objective::Rss => ("RSS", "RSS, the larger of the values after the load and after the idle phase"),
        Objective::Loaded => ("RSS loaded", "RSS after the load"),
        Objective::Rested => ("RSS rested", "RSS after the idle phase"),
        Objective::Peak => ("peak RSS", "the highest RSS of the trial"),
        Objective::Limit => ("anonymous memory", "anonymous memory, which the kernel cannot reclaim under a limit"),
    }
}

/// CPU time, response times, and rates with the winner.
pub(super) fn costs(tune: &TuneRecord) -> Option<String> {
    let all = gains_told(tune);
    // CPU time and the usual percentile; the table has all metrics.
    let told = all.iter().filter(|gain| is_cpu(gain) || split(&gain.metric).0 == "p99");
    let costs: Vec<String> = told.map(|gain| cost(gain, &all)).collect();
    (!costs.is_empty()).then(|| costs.join("; "))
}

/// The confirmed objective: the judged size, else the first gain.
pub(crate) fn objective_gain(tune: &TuneRecord) -> Option<&ComparisonRecord> {
    tune.gains.iter().find(|gain| gain.primary && gain.unit == Unit::Bytes).or(tune.gains.first())
}

/// The confirmed gains without the warm-up's: objective first, then CPU time, then other judged ones.
pub(super) fn gains_told(tune: &TuneRecord) -> Vec<&ComparisonRecord> {
    let Some(objective) = objective_gain(tune) else { return Vec::new() };
    let others = tune.gains.iter().filter(|gain| !std::ptr::eq(*gain, objective));
    let mut others: Vec<&ComparisonRecord> = others.filter(|gain| split(&gain.metric).1 != WARMUP).collect();
    others.order_by_key(|gain| (!is_cpu(gain), split(&gain.metric).0 == CPU_OF_JIT, !gain.primary));
    std::iter::once(objective).chain(others).collect()
}

fn is_cpu(gain: &ComparisonRecord) -> bool {
    split(&gain.metric).0.starts_with("cpu")
}

fn cost(gain: &ComparisonRecord, all: &[&ComparisonRecord]) -> String {
    let (gain, words) = (of_a_request(gain), cost_words(gain, all));
    // The JIT's CPU time may be dominant or negligible on either side.
    if is_cpu(&gain) && split(&gain.metric).0 != CPU_OF_JIT && gain.ratio.is_some() {
        return format!("{words} {}", Estimate::judged(&gain));
    }
    let [before, after] = [gain.baseline_median, gain.candidate_median].map(|value| shown(gain.unit, Some(value)));
    format!("{words} {before} before, {after} after")
}

/// Converts CPU time per 1,000 requests to CPU time per request, with the difference as a change. Leaves other metrics
/// unchanged.
pub(super) fn of_a_request(gain: &ComparisonRecord) -> ComparisonRecord {
    if !is_cpu(gain) {
        return gain.clone();
    }
    let scale = if split(&gain.metric).0.ends_with("per_1000") { 1e-3 } else { 1.0 };
    ComparisonRecord {
        baseline_median: gain.baseline_median * scale,
        candidate_median: gain.candidate_median * scale,
        difference: gain.difference * scale,
        low: gain.low.map(|end| end * scale),
        high: gain.high.map(|end| end * scale),
        least: match gain.least {
            LeastRecord::Relative(share) => LeastRecord::Relative(share),
            LeastRecord::Absolute(_) => LeastRecord::Relative(0.0),
        },
        ..gain.clone()
    }
}

/// A metric in plain words, if possible. CPU time names its phase if several phases have it.
pub(super) fn cost_words(gain: &ComparisonRecord, all: &[&ComparisonRecord]) -> String {
    let (family, place) = split(&gain.metric);
    let is_only = place.is_empty() || all.iter().filter(|gain| split(&gain.metric).0 == family).count() == 1;
    match family {
        _ if !is_cpu(gain) => gain.metric.clone(),
        CPU_OF_JIT if is_only => "JIT per request".to_owned(),
        CPU_OF_JIT => format!("JIT {place}"),
        CPU_WITHOUT_JIT if is_only => "CPU without JIT".to_owned(),
        CPU_WITHOUT_JIT => format!("{place} CPU without JIT"),
        _ if is_only => "CPU per request".to_owned(),
        _ => format!("CPU {place}"),
    }
}

/// The trials behind the numbers.
pub(super) fn proof(tune: &TuneRecord) -> Option<String> {
    let of_gains = objective_gain(tune).map(|gain| gain.blocks);
    let of_attempt = tune.confirmations.iter().rev().find(|of| of.confirmed).map(|of| of.blocks);
    let blocks = of_gains.or(of_attempt)?;
    Some(format!("{} of fresh JVMs, alternating between {AS_IS} and tuned", several(u64::from(blocks), "block")))
}

/// The smallest limits, how often each passed, and what to set.
pub(super) fn limits(lines: &LinesRecord) -> Option<String> {
    let size = |bytes: u64| shown(Unit::Bytes, Some(bytes as f64));
    let of = |find: &Option<FindRecord>| {
        let line = find.as_ref()?.line.as_ref()?;
        Some((line.limit_bytes, format!("{} ({})", size(line.limit_bytes), passed(line.held, line.tried()))))
    };
    let set = lines.tuned.as_ref().and_then(|find| {
        let limit = find.limit_bytes.filter(|_| find.headroom > 0.0)?;
        Some(format!("; with {} headroom, set {}", percent(find.headroom), size(limit)))
    });
    let set = set.unwrap_or_default();
    match (of(&lines.as_is), of(&lines.tuned)) {
        (Some((before, as_is)), Some((after, tuned))) => {
            let ratio = after as f64 / before.max(1) as f64;
            Some(format!("load line {tuned}, {ratio:.2} times that of the {AS_IS}, {as_is}{set}"))
        }
        (None, Some((_, tuned))) => Some(format!("load line {tuned}{set}")),
        (Some((_, as_is)), None) => Some(format!("{AS_IS} load line {as_is}")),
        (None, None) => None,
    }
}
