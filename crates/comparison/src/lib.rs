//! Combines the results of trials: metrics, differences within blocks with intervals, verdicts, budgets, doubts.
//!
//! This crate only computes, with seeded randomness: the same trials and seed give the same output. `docs/compare.md`
//! explains the method and has simulation results.

use loadline_base::{numbers, units};
use loadline_jvm::owner;
use loadline_model::{doubt, record, scenario};

mod account_changes;
mod amounts;
mod blocks;
mod budgets;
mod catalogue;
mod differences;
mod doubts;
mod effects;
mod figures;
mod history;
mod metrics;
mod names;
mod owners;
mod pareto;
mod ranking;
mod target;
mod verdict;

#[cfg(test)]
mod laws_tests;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod simulation_tests;

pub use account_changes::{loader_changes, owner_changes, part_changes};
pub use amounts::fits;
pub use blocks::{blocks, order, seconds_of_a_trial};
pub use budgets::{check_budget, judge_budgets};
pub use catalogue::{CPU_OF_JIT, CPU_WITHOUT_JIT, possible, split};
pub use differences::{JudgingPlan, compare, compare_apart, of_pairs, plan};
pub use doubts::doubts;
pub use effects::effects;
pub use figures::{check_figures, figures, refusal};
pub use history::{Followed, Moves, Shift, Trend, apart, centred, moves};
pub use metrics::{measured, metrics, metrics_in_order};
pub use names::{foresee, resolve};
pub use owners::{Holdings, told_bytes, unsplit_alike};
pub use pareto::pareto;
pub use ranking::{Column, group_pss_bytes, rank};
pub use target::{Judged, check_target, judge as judge_target, speaks_of};
