//! Doubts about a comparison: reasons why its trials are not comparable, or too few.

use super::metrics::{configurations, in_order, median};
use super::owners::held_bytes;
use crate::doubt::{ANSWERS_OF_A_HALF_MIN, Comparing, Doubt};
use crate::owner::Owner::MallocLive;
use crate::record::{BlockRecord, ComparisonRecord, Outcome, PhaseRecord, Trial};
use crate::scenario::MarkPoint;
use crate::units::MIB;
use loadline_base::order::Order as _;

/// Measured: amounts of work that differ by less than this leave the same memory behind.
const WORK_SHARE_MAX: f64 = 0.01;
/// With fewer than five blocks, an interval depends more on Student's assumption than on the values.
const BLOCKS_MIN: u32 = 5;
/// Options that `VM.flags` shows, so their effect is visible.
const SHOWN_AS_FLAGS: &[&str] = &["-XX:", "-Xms", "-Xmx", "-Xmn", "-Xss"];
/// After a rest of this length, the compilers have released their memory. Their queue drains a few seconds after
/// the last request, and HotSpot frees unused arena chunks every 5 s (`ChunkPoolCleaner` in `arena.cpp`, JDK 11 to 25).
const SETTLED_S: f64 = 11.0;
/// The minimum spread of live malloc that shows a compiler's chunks, which take 10 to 18 MiB
/// (`bench/results/2026-11-25-rest.md`).
const COMPILERS_BYTES: u64 = 8 * MIB;
/// Ports that Loadline chooses for `{port}`. Commands that differ only by a number in this range count as the same.
const PORTS: std::ops::Range<u32> = 18_080..26_080;

/// Returns the doubts about these comparisons, each once.
pub fn doubts(trials: &[Trial], blocks: &[BlockRecord], comparisons: &[ComparisonRecord]) -> Vec<Doubt> {
    let completed: Vec<&Trial> = trials.iter().filter(|trial| trial.outcome == Outcome::Completed).collect();
    let names = configurations(trials);
    let mut doubts = builds(&completed, &names);
    doubts.extend(names.iter().filter_map(|name| compilers(&completed, name)));
    if names.len() > 1 {
        doubts.extend(equal(&completed, &names));
        doubts.extend(unequal_work(&completed, &names));
        doubts.extend(warmth_unknown(&completed));
        doubts.extend(generator(&completed, comparisons));
        doubts.extend(few(blocks, comparisons));
    }
    doubts.into_iter().map(Doubt::Comparing).collect()
}

/// Versions that differ within one configuration.
fn builds(trials: &[&Trial], names: &[String]) -> Vec<Comparing> {
    let of = |name: &String| {
        let own = trials.iter().filter(|trial| trial.configuration == *name);
        let versions = in_order(own.filter_map(|trial| trial.jvm.as_ref()?.version.as_deref()));
        (versions.len() > 1).then(|| Comparing::DifferentBuilds { configuration: name.clone(), versions })
    };
    names.iter().filter_map(of).collect()
}

/// Whether compilers of some JVMs still held memory after a short rest, while those of others had released it.
fn compilers(trials: &[&Trial], name: &str) -> Option<Comparing> {
    let live = |trial: &&Trial| {
        let mark = trial.at(MarkPoint::Rested)?;
        // The last phase that began before the mark is the rest.
        let began = trial.phases.iter().map(|phase| phase.at_s).filter(|at| *at <= mark.at_s).reduce(f64::max)?;
        let bytes = held_bytes(mark.account.as_ref()?, MallocLive.name())?;
        (mark.at_s - began < SETTLED_S).then_some(bytes)
    };
    let held = trials.iter().filter(|trial| trial.configuration == name);
    let held: Vec<u64> = held.filter_map(live).collect();
    let spread_bytes = held.iter().max()? - held.iter().min()?;
    let (configuration, mark) = (name.to_owned(), MarkPoint::Rested.word().to_owned());
    (spread_bytes >= COMPILERS_BYTES).then_some(Comparing::CompilerMemory { configuration, mark, spread_bytes })
}

/// Groups of configurations with different options but the same effective settings.
fn equal(trials: &[&Trial], names: &[String]) -> Vec<Comparing> {
    let first = |name: &String| trials.iter().find(|trial| trial.configuration == *name);
    let mut left: Vec<&Trial> = names.iter().filter_map(first).copied().collect();
    let mut doubts = Vec::new();
    while !left.is_empty() {
        let one = left.remove(0);
        let (same, others): (Vec<&Trial>, Vec<&Trial>) = left.into_iter().partition(|other| same_in_force(one, other));
        left = others;
        if !same.is_empty() {
            let configurations = std::iter::once(&one).chain(&same).map(|trial| trial.configuration.clone()).collect();
            doubts.push(Comparing::EqualConfigurations { configurations });
        }
    }
    doubts
}

/// Whether two trials have equal settings although their options differ. A missing record is not evidence of that.
fn same_in_force(one: &Trial, other: &Trial) -> bool {
    let (Some(jvm), Some(with)) = (&one.jvm, &other.jvm) else { return false };
    let (Some(flags), Some(against)) = (&jvm.flags, &with.flags) else { return false };
    let sorted = |flags: &[String]| {
        let mut flags = flags.to_vec();
        flags.sort();
        flags
    };
    let lacking = |options: &'_ [String], others: &[String]| -> Vec<String> {
        options.iter().filter(|option| !others.contains(option)).cloned().collect()
    };
    let mut differing = lacking(&jvm.options, &with.options);
    differing.extend(lacking(&with.options, &jvm.options));
    let visible = |option: &String| SHOWN_AS_FLAGS.iter().any(|start| option.starts_with(start));
    // With equal options there is no doubt: the intended difference is elsewhere.
    !differing.is_empty()
        && differing.iter().all(visible)
        && sorted(flags) == sorted(against)
        && jvm.collector == with.collector
        && (&jvm.version, &jvm.java, &jvm.allocator) == (&with.version, &with.java, &with.allocator)
        && one.env.is_some()
        && (&one.env, one.limit_bytes, &one.subject_cpus) == (&other.env, other.limit_bytes, &other.subject_cpus)
        && one.cpu_limit_millicpus == other.cpu_limit_millicpus
        && command(one, &jvm.options) == command(other, &with.options)
}

/// The command without the configuration's options and the port.
fn command<'a>(trial: &'a Trial, options: &[String]) -> Vec<&'a str> {
    let is_port = |word: &str| word.parse().is_ok_and(|number| PORTS.contains(&number));
    let rest = trial.command.iter().filter(|word| !options.contains(word));
    rest.map(|word| if is_port(word) { "{port}" } else { word.as_str() }).collect()
}

/// Phases in which the configurations had different numbers of responses.
fn unequal_work(trials: &[&Trial], names: &[String]) -> Vec<Comparing> {
    let worked = trials.iter().flat_map(|trial| &trial.phases).filter(|phase| phase.works() && phase.requests > 0);
    let mut doubts = Vec::new();
    for phase in in_order(worked.map(|phase| phase.name.as_str())) {
        let done = |name: &String| {
            let own = trials.iter().filter(|trial| trial.configuration == *name);
            let answers =
                |trial: &&Trial| trial.phases.iter().find(|done| done.name == phase).map(|done| done.ok as f64);
            let answers: Vec<f64> = own.filter_map(answers).collect();
            (!answers.is_empty()).then(|| (name.clone(), median(&answers).round()))
        };
        let mut done: Vec<(String, f64)> = names.iter().filter_map(done).collect();
        done.order_by(|(_, a), (_, b)| a.total_cmp(b));
        let (Some((least, fewest)), Some((most, highest))) = (done.first(), done.last()) else { continue };
        if highest - fewest > WORK_SHARE_MAX * highest {
            let (least, ok_least) = (least.clone(), *fewest as u64);
            let (most, ok_most) = (most.clone(), *highest as u64);
            doubts.push(Comparing::UnequalWork { phase, least, ok_least, most, ok_most });
        }
    }
    doubts
}

/// The first measured phase that is too short for its halves to show whether the JVM was warm.
fn warmth_unknown(trials: &[&Trial]) -> Option<Comparing> {
    let is_short = |phase: &&PhaseRecord| {
        let is_read = phase.subject.allocated_bytes.is_some() && phase.by_request.is_empty() && phase.ok > 0;
        phase.works() && !phase.is_warmup() && is_read && phase.ok < 2 * ANSWERS_OF_A_HALF_MIN
    };
    let phase = trials.iter().flat_map(|trial| &trial.phases).find(is_short)?.name.clone();
    let short = || trials.iter().flat_map(|trial| &trial.phases).filter(is_short).filter(|of| of.name == phase);
    let (answers, count) = (short().map(|of| of.ok).min()?, short().count() as u64);
    Some(Comparing::WarmthUnknown { phase, answers, trials: count })
}

fn generator(trials: &[&Trial], comparisons: &[ComparisonRecord]) -> Vec<Comparing> {
    let compared = |trial: &Trial| {
        let is = |name: &str| trial.configuration == name;
        comparisons.iter().any(|comparison| is(&comparison.baseline) || is(&comparison.candidate))
    };
    let mut saturated: Vec<(&str, &str)> = Vec::new();
    for trial in trials.iter().filter(|trial| compared(trial)) {
        for doubt in &trial.doubts {
            if let Doubt::GeneratorSaturated { phase, .. } = &doubt.doubt {
                saturated.push((phase, &trial.configuration));
            }
        }
    }
    let of = |phase: String| {
        let own = saturated.iter().filter(|(of, _)| *of == phase).map(|(_, name)| *name);
        let configurations = in_order(own);
        Comparing::GeneratorLimit { phase, configurations }
    };
    in_order(saturated.iter().map(|(phase, _)| *phase)).into_iter().map(of).collect()
}

/// The smallest number of blocks in a judged comparison, if it is too small.
fn few(blocks: &[BlockRecord], comparisons: &[ComparisonRecord]) -> Option<Comparing> {
    let judged = comparisons.iter().filter(|comparison| comparison.primary).map(|comparison| comparison.blocks);
    let counted = blocks.iter().filter(|block| block.used).count() as u32;
    let fewest = judged.min().unwrap_or(counted);
    (fewest < BLOCKS_MIN).then_some(Comparing::FewBlocks { blocks: fewest })
}

#[cfg(test)]
#[path = "doubts_tests.rs"]
mod tests;
