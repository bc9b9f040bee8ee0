//! A start before all trials, to see where a subject answers; nothing is weighed.

use super::conductor::{Given, prepare};
use super::tools::Tools;
use crate::error::Result;
use crate::scenario::TrialPlan;
use crate::subject::{CpuPlan, FirstAnswer, Usual, WorkFolder, launch};

/// Starts the subject of a plan, asks its usual paths, and ends it.
///
/// # Errors
/// If it cannot be started, answers none of them well, or the user wants to stop.
pub fn first_answer(plan: &TrialPlan, tools: &Tools<'_>, usual: &Usual) -> Result<FirstAnswer> {
    let cpus = CpuPlan::new(&plan.configuration.cpus, &plan.load_cpus, &tools.spawner.cpus)?;
    let work = launch::needs_work(&plan.subject, &plan.configuration).then(WorkFolder::create).transpose()?;
    let given = Given { cpus: &cpus, work: work.as_ref().map(WorkFolder::path), agent: None };
    let launch = prepare(plan, tools, &given)?;
    let mut running = tools.spawner.start(&launch, None)?;
    let found = running.first_answer(usual, plan.subject.ready_within.0, &|| tools.interrupted());
    running.end(plan.subject.end_within.0);
    found
}
