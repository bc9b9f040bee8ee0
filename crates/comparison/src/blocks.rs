//! Blocks: the order of configurations within a block, and a record of each block afterward.

use super::metrics::configurations;
use crate::doubt::Doubt;
use crate::record::{BlockRecord, Outcome, Trial};
use loadline_base::order::Order as _;
use loadline_stats::random;

/// The order of configurations within a block: a new permutation per block, reproducible from the seed. Drift over
/// several hours therefore favors none of them.
pub fn order(seed: u64, block: u32, configurations: usize) -> Vec<usize> {
    let mut random = random::stream(seed, u64::from(block));
    let mut order: Vec<usize> = (0..configurations).collect();
    // Fisher and Yates, as in Knuth, volume 2, algorithm 3.4.2P.
    for last in (1..configurations).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

/// The blocks of these trials, ascending: when each configuration ran, what disturbed it, and which blocks count.
///
/// A block is disturbed if one of its trials has a noisy machine among its doubts. Its values still count until a later
/// block that replaces it is complete.
pub fn blocks(trials: &[Trial]) -> Vec<BlockRecord> {
    let mut numbers: Vec<u32> = trials.iter().map(|trial| trial.block).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let all = configurations(trials);
    let own = |block: u32| trials.iter().filter(move |trial| trial.block == block);
    let complete = |block: u32| {
        let completed =
            |name: &String| own(block).any(|trial| trial.configuration == *name && trial.outcome == Outcome::Completed);
        all.iter().all(completed)
    };
    let mut blocks: Vec<BlockRecord> = numbers
        .iter()
        .map(|&block| {
            let mut ran: Vec<&Trial> = own(block).collect();
            ran.order_by_key(|trial| trial.index);
            BlockRecord {
                block,
                order: ran.iter().map(|trial| trial.configuration.clone()).collect(),
                disturbed: disturbed(&ran),
                repeats: ran.iter().find_map(|trial| trial.repeats).filter(|repeated| *repeated < block),
                used: true,
            }
        })
        .collect();
    let repeated: Vec<u32> =
        blocks.iter().filter(|block| complete(block.block)).filter_map(|block| block.repeats).collect();
    for block in &mut blocks {
        block.used = block.disturbed.is_none() || !repeated.contains(&block.block);
    }
    blocks
}

/// Numbers of the blocks whose values do not count.
pub(super) fn unused(trials: &[Trial]) -> Vec<u32> {
    blocks(trials).iter().filter(|block| !block.used).map(|block| block.block).collect()
}

/// Describes how the machine disturbed these trials: the worst of each kind, and the affected configurations. `None` if
/// the machine was quiet.
fn disturbed(trials: &[&Trial]) -> Option<String> {
    let (mut cores_max, mut steal_max, mut stall_max) = (0.0f64, 0.0f64, 0.0f64);
    let mut names: Vec<&str> = Vec::new();
    for trial in trials {
        for doubt in &trial.doubts {
            let Doubt::NoisyMachine { foreign_cores, steal_share, memory_stall_share, .. } = &doubt.doubt else {
                continue;
            };
            cores_max = cores_max.max(foreign_cores.unwrap_or(0.0));
            steal_max = steal_max.max(*steal_share);
            stall_max = stall_max.max(memory_stall_share.unwrap_or(0.0));
            if !names.contains(&trial.configuration.as_str()) {
                names.push(&trial.configuration);
            }
        }
    }
    let said = [
        (cores_max >= 0.05).then(|| format!("other programs used up to {cores_max:.1} cores")),
        (steal_max >= 0.001).then(|| format!("up to {:.1}% of the CPU time was stolen", steal_max * 100.0)),
        (stall_max >= 0.001)
            .then(|| format!("programs stalled on memory for up to {:.1}% of the time", stall_max * 100.0)),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    (!names.is_empty()).then(|| format!("{} (in trials of `{}`)", said.join(", "), names.join("`, `")))
}

/// The mean duration of the completed trials, without pauses between them; `None` if there are none.
pub fn seconds_of_a_trial(trials: &[Trial]) -> Option<f64> {
    let completed = trials.iter().filter(|trial| trial.outcome == Outcome::Completed);
    let seconds: Vec<f64> = completed.filter_map(Trial::seconds).collect();
    (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / seconds.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DoubtRecord;

    fn trial(configuration: &str, block: u32, index: u32) -> Trial {
        Trial { outcome: Outcome::Completed, ..Trial::new(configuration, block, index) }
    }

    fn noisy(mut trial: Trial) -> Trial {
        let doubt = Doubt::NoisyMachine {
            phase: "steady".to_owned(),
            foreign_cores: Some(0.5),
            steal_share: 0.0,
            memory_stall_share: None,
        };
        trial.doubts.push(DoubtRecord::from(doubt));
        trial
    }

    fn repeats(mut trial: Trial, block: u32) -> Trial {
        trial.repeats = Some(block);
        trial
    }

    #[test]
    fn an_order_is_a_reproducible_permutation() {
        for block in 0..50 {
            let mut order = super::order(7, block, 5);
            assert_eq!(order, super::order(7, block, 5));
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
        assert_eq!(super::order(1, 0, 0), [] as [usize; 0]);
        assert_eq!(super::order(1, 0, 1), [0]);
    }

    /// Each of the six orders of three is about equally frequent: within five standard deviations.
    #[test]
    fn all_orders_are_equally_likely() {
        let mut counts = std::collections::BTreeMap::new();
        for block in 0..6_000 {
            *counts.entry(super::order(3, block, 3)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (856..1144).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_disturbed_block_counts_until_its_replacement_is_complete() {
        let mut trials =
            vec![trial("g1", 0, 0), noisy(trial("serial", 0, 1)), trial("serial", 1, 2), trial("g1", 1, 3)];
        let first = blocks(&trials);
        assert_eq!(first[0].order, ["g1", "serial"]);
        assert_eq!(first[1].order, ["serial", "g1"]);
        assert_eq!(first[0].disturbed.as_deref(), Some("other programs used up to 0.5 cores (in trials of `serial`)"));
        assert!(first[0].used && first[1].used && first[1].disturbed.is_none());

        trials.push(repeats(trial("g1", 2, 4), 0));
        assert!(blocks(&trials)[0].used, "the repetition lacks a configuration");
        trials.push(repeats(Trial::new("serial", 2, 5), 0));
        assert!(blocks(&trials)[0].used, "the disturbed block counts while its repetition is incomplete");
        trials[5].outcome = Outcome::Completed;
        let last = blocks(&trials);
        assert_eq!(last[2].repeats, Some(0));
        assert!(!last[0].used && last[1].used && last[2].used);
        assert_eq!(unused(&trials), [0]);
    }

    #[test]
    fn a_quiet_block_is_not_dropped() {
        let trials = [repeats(trial("g1", 0, 0), 0), repeats(trial("g1", 1, 1), 0)];
        assert!(blocks(&trials).iter().all(|block| block.used));
        assert_eq!(blocks(&trials)[0].repeats, None);
        assert_eq!(blocks(&[]), []);
    }
}
