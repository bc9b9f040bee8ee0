//! The answer of a tuning in words: what to set, its saving with the interval, its cost, and the evidence.

use super::find::{percent, sentence, times};
use crate::comparison::{CPU_OF_JIT, CPU_WITHOUT_JIT, split};
use crate::page::Facts;
use crate::quantity::{Estimate, shown};
use crate::record::{
    ComparisonRecord, Fate, FindRecord, LeastRecord, LinesRecord, NO_TIME, Trial, TuneOutcome, TuneRecord, TuneStage,
    Unit, each_once,
};
use crate::scenario::{Objective, WARMUP, shell_words};
use crate::units::several;
use loadline_base::order::Order as _;

pub(crate) const AS_IS: &str = "as it is";
/// Owners named if nothing was proved.
const OWNERS_TOLD: usize = 3;
/// The least saving of a remedy that two trials can distinguish from three trials as it is, in standard deviations of
/// one trial: 1.5 standard errors, as tuning judges it.
const SEEN: f64 = 1.37;

/// The first trial of the baseline whose JVM is known; otherwise the first trial as it is.
pub(crate) fn as_is_trial(trials: &[Trial]) -> Option<&Trial> {
    let as_is = |trial: &&Trial| trial.tuned.as_ref().is_some_and(|of| of.remedies.is_empty());
    let usual = |trial: &&Trial| trial.tuned.as_ref().is_some_and(|of| of.stage == TuneStage::Baseline);
    let known = |trial: &&Trial| usual(trial) && as_is(trial) && trial.jvm.is_some();
    trials.iter().find(known).or(trials.iter().find(as_is))
}

/// The answer in a sentence or two.
pub(crate) fn told(tune: &TuneRecord) -> String {
    told_each(tune).join(" ")
}

/// Returns the sentences of [`told`]. Text between backticks is literal.
pub(crate) fn told_each(tune: &TuneRecord) -> Vec<String> {
    let next = match tune.outcome {
        TuneOutcome::Proved if !tune.changes.is_empty() => {
            let costs = costs(tune).map(|costs| format!("It costs: {costs}."));
            let proof = proof(tune).map(|proof| format!("Proved by {proof}."));
            return std::iter::once(set_told(tune)).chain(costs).chain(proof).collect();
        }
        TuneOutcome::Unpriced => {
            let why = unpriced(tune).map(|why| format!("Its price is not proved: {why}."));
            return std::iter::once(not_yet(tune)).chain(why).collect();
        }
        TuneOutcome::NothingProved => Some("Leave it as it is.".to_owned()),
        TuneOutcome::NotHeld => Some(NO_SETTING.to_owned()),
        TuneOutcome::Planned => Some(planned(tune)),
        TuneOutcome::Proved | TuneOutcome::GivenUp => None,
    };
    std::iter::once(sentence(&tune.text)).chain(next).collect()
}

const NO_SETTING: &str = "No setting that saves memory can help: give the server more CPU, another configuration, a \
                          lower rate or a looser target.";

/// How many of the remedies a plan would try.
fn planned(tune: &TuneRecord) -> String {
    let all = tune.remedies.len();
    let tried = match tune.remedies.iter().filter(|of| of.fate == Fate::Planned).count() {
        1 => format!("One remedy of {all} would be tried."),
        count => format!("{count} remedies of {all} would be tried."),
    };
    let each = tune.seconds / f64::from(tune.trials.max(1));
    let how = "Without `--dry-run` a tuning makes 20 to 50 trials";
    if each > 0.0 { format!("{tried} {how}, and one took {each:.0} s here.") } else { format!("{tried} {how}.") }
}

/// Says what to set and what that saves.
pub(super) fn set_told(tune: &TuneRecord) -> String {
    let (saves, out) = (it_saves(tune), shell_words(&tune.taken_out()));
    match (tune.answer.is_empty(), out.is_empty()) {
        (_, true) => format!("Set `{}`{saves}.", shell_words(&tune.answer)),
        (true, false) => format!("Take out `{out}`{saves}."),
        (false, false) => format!("Set `{}` and take out `{out}`{saves}.", shell_words(&tune.answer)),
    }
}

/// Says what not to set yet, and what it would save.
fn not_yet(tune: &TuneRecord) -> String {
    let (answer, out) = (shell_words(&tune.answer), shell_words(&tune.taken_out()));
    let each = [("set", answer), ("take out", out)].into_iter().filter(|(_, words)| !words.is_empty());
    let each: Vec<String> = each.map(|(verb, words)| format!("{verb} `{words}`")).collect();
    format!("Do not {} yet{}.", each.join(" and "), it_saves(tune))
}

/// `: it saves 412.3 MiB of 1413.0 MiB RSS`.
fn it_saves(tune: &TuneRecord) -> String {
    saves(tune).map_or(String::new(), |(verb, text)| format!(": it {verb} {text}"))
}

/// Lists the user's own options that the diagnosis blames and that stay, each once, with how to try without it.
pub(super) fn blamed(tune: &TuneRecord) -> Vec<(String, String)> {
    let blaming = |option: &&str| tune.remedies.iter().find(|of| of.blames.as_deref() == Some(option));
    let options = each_once(tune.remedies.iter().filter_map(|of| of.blames.as_deref()));
    let told = options.iter().filter_map(blaming).map(|of| format!("{}: {}", of.why, of.what));
    let mut facts = Facts::default();
    facts.list("yours", told);
    facts.0
}

/// Lists what to set, its saving, its cost and its proof; if the target does not hold, the missed numbers. Empty if
/// there is neither.
pub(crate) fn answer(tune: &TuneRecord) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    let has_answer = matches!(tune.outcome, TuneOutcome::Proved | TuneOutcome::Unpriced);
    if has_answer && !tune.changes.is_empty() {
        let is_proved = tune.outcome == TuneOutcome::Proved;
        let [set, out] = if is_proved { ["set", "take out"] } else { ["candidate", "without"] };
        facts.add(set, Some(shell_words(&tune.answer)).filter(|text| !text.is_empty()));
        facts.add(out, Some(shell_words(&tune.taken_out())).filter(|text| !text.is_empty()));
        saves(tune).into_iter().for_each(|(verb, text)| facts.add(verb, text));
        // An open price tells CPU time itself, by the pairs of trials that left it open.
        facts.add("costs", costs(tune).filter(|_| is_proved));
        facts.add("price", unpriced(tune).map(|why| format!("not proved: {why}")).or_else(|| allowed(tune)));
        facts.add("evidence", proof(tune).map(|text| format!("{text}; none of the search's trials is among them")));
        facts.add("limit", tune.lines.as_ref().and_then(limits));
    }
    if tune.outcome == TuneOutcome::NotHeld {
        facts.list("missed", tune.as_is.iter().flat_map(|as_is| as_is.why.clone()));
    }
    facts.0
}

/// If nothing was proved: the largest owners, the savings too small to see, and the next measurements.
pub(super) fn unsettled(tune: &TuneRecord) -> Vec<(String, String)> {
    let mut facts = Facts::default();
    if !matches!(tune.outcome, TuneOutcome::NothingProved | TuneOutcome::Unpriced) {
        return facts.0;
    }
    let mut held: Vec<_> = tune.as_is.iter().flat_map(|as_is| &as_is.owners).collect();
    held.largest_first(|of| of.bytes as u64);
    let held: Vec<String> = held.into_iter().take(OWNERS_TOLD).map(|of| held_by(&of.owner, of.bytes)).collect();
    facts.add("largest", (!held.is_empty()).then(|| format!("{} as it is", held.join(", "))));
    let least = tune.noise.map(|noise| shown(Unit::Bytes, Some(SEEN * noise.bytes)));
    facts.add("not seen", least.map(|least| format!("savings below {least}: fresh processes differ by about as much")));
    facts.list("to go on", to_go_on(tune));
    facts.0
}

fn held_by(owner: &str, bytes: f64) -> String {
    format!("{owner} {}", shown(Unit::Bytes, Some(bytes)))
}

/// The next things to ask for.
fn to_go_on(tune: &TuneRecord) -> Vec<String> {
    let mut next = Vec::new();
    let costly = tune.remedies.iter().filter(|of| of.fate == Fate::TooCostly);
    let costly = costly.filter_map(|of| Some((of, of.saved_bytes?, of.cpu_ratio? - 1.0)));
    if let Some((of, saved, cost)) = costly.max_by(|one, other| one.1.total_cmp(&other.1)) {
        let (saved, price) = (shown(Unit::Bytes, Some(saved)), (cost * 100.0).ceil());
        next.push(format!("`{}` saves {saved}, and `--price {price:.0}%` would allow what it costs", of.id));
    }
    let late = tune.remedies.iter().filter(|of| of.why == NO_TIME).count();
    if late > 0 {
        let remedies = if late == 1 { "remedy" } else { "remedies" };
        next.push(format!("{late} {remedies} had no time: give more `--minutes` or `--trials-max`"));
    }
    if tune.remedies.iter().any(|of| of.why.contains("--warmup steady")) {
        next.push("some remedies show their cost on a warm JVM only: `--warmup steady:5m`".to_owned());
    }
    next
}

/// Why the price of the answer is not proved; `None` if it is proved.
fn unpriced(tune: &TuneRecord) -> Option<String> {
    let attempt = tune.confirmations.iter().find(|of| !of.confirmed && of.remedies == kept(tune))?;
    (tune.outcome == TuneOutcome::Unpriced).then(|| attempt.why.clone())
}

/// How much CPU time the answer was allowed to take, by which it was proved; `None` without CPU time.
fn allowed(tune: &TuneRecord) -> Option<String> {
    let attempt = tune.confirmations.iter().find(|of| of.confirmed && of.price > 0.0)?;
    let millicores = tune.price_cpus? * 1000.0 * attempt.price / tune.price.max(f64::MIN_POSITIVE);
    let worth = if attempt.price > tune.price { ", as the memory saved is worth a core for 4 GiB" } else { "" };
    Some(format!(
        "up to {} more CPU per request was allowed, {millicores:.0} millicores{worth}",
        percent(attempt.price)
    ))
}

/// The ids of the remedies of the answer.
fn kept(tune: &TuneRecord) -> Vec<String> {
    tune.remedies.iter().filter(|of| of.fate == Fate::Kept).map(|of| of.id.clone()).collect()
}

/// `saves`, and `412.3 MiB of 1413.0 MiB RSS (29.2 %), 398.0 to 427.1 MiB at 95 % confidence`; `takes` if the winner
/// weighs more.
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

/// Names the size to minimize: in a word or two, and in full.
pub(crate) fn objective_words(objective: Objective) -> (&'static str, &'static str) {
    match objective {
        Objective::Rss => ("RSS", "RSS, the larger of after the load and after the rest"),
        Objective::Loaded => ("RSS loaded", "RSS after the load"),
        Objective::Rested => ("RSS rested", "RSS after the rest"),
        Objective::Peak => ("peak RSS", "the highest RSS of all"),
        Objective::Limit => ("anonymous memory", "anonymous memory, which no limit can take back"),
    }
}

/// CPU time, times and rates with the winner.
pub(super) fn costs(tune: &TuneRecord) -> Option<String> {
    let all = gains_told(tune);
    // CPU time, and the usual percentile; the table has all metrics.
    let told = all.iter().filter(|gain| is_cpu(gain) || split(&gain.metric).0 == "p99");
    let costs: Vec<String> = told.map(|gain| cost(gain, &all)).collect();
    (!costs.is_empty()).then(|| costs.join("; "))
}

/// The confirmed objective: the judged size, or else the first gain.
pub(crate) fn objective_gain(tune: &TuneRecord) -> Option<&ComparisonRecord> {
    tune.gains.iter().find(|gain| gain.primary && gain.unit == Unit::Bytes).or(tune.gains.first())
}

/// Lists the confirmed gains without those of the warm-up: the objective first, CPU time next, then other judged ones.
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
    // The JIT's CPU time may be most of it or next to nothing, before or after.
    if is_cpu(&gain) && split(&gain.metric).0 != CPU_OF_JIT && gain.ratio.is_some() {
        return format!("{words} {}", Estimate::judged(&gain));
    }
    let [before, after] = [gain.baseline_median, gain.candidate_median].map(|value| shown(gain.unit, Some(value)));
    format!("{words} {before} before, {after} with it")
}

/// CPU time of 1,000 requests as that of one request, with its difference as a change. Any other metric is unchanged.
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

/// A metric in words, if there are plain ones. CPU time names its phase if several phases have it.
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

/// Names the trials behind the numbers.
pub(super) fn proof(tune: &TuneRecord) -> Option<String> {
    let of_gains = objective_gain(tune).map(|gain| gain.blocks);
    let of_attempt = tune.confirmations.iter().rev().find(|of| of.confirmed).map(|of| of.blocks);
    let blocks = of_gains.or(of_attempt)?;
    Some(format!("{} of fresh JVMs, {AS_IS} and tuned in turn", several(u64::from(blocks), "block")))
}

/// The smallest limits, each with how often it held, and what to set.
pub(super) fn limits(lines: &LinesRecord) -> Option<String> {
    let size = |bytes: u64| shown(Unit::Bytes, Some(bytes as f64));
    let of = |find: &Option<FindRecord>| {
        let line = find.as_ref()?.line.as_ref()?;
        Some((line.limit_bytes, format!("{} ({})", size(line.limit_bytes), times(line.held, line.tried()))))
    };
    let set = lines.tuned.as_ref().and_then(|find| {
        let limit = find.limit_bytes.filter(|_| find.headroom > 0.0)?;
        Some(format!("; with {} of headroom, set {}", percent(find.headroom), size(limit)))
    });
    let set = set.unwrap_or_default();
    match (of(&lines.as_is), of(&lines.tuned)) {
        (Some((before, as_is)), Some((after, tuned))) => {
            let ratio = after as f64 / before.max(1) as f64;
            Some(format!("{tuned} is the smallest that holds, {ratio:.2} of the {as_is} {AS_IS}{set}"))
        }
        (None, Some((_, tuned))) => Some(format!("{tuned} is the smallest that holds{set}")),
        (Some((_, as_is)), None) => Some(format!("{AS_IS}, {as_is} is the smallest that holds")),
        (None, None) => None,
    }
}
