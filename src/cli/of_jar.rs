//! A subject whose address is unknown: it is started once before all trials, to see where it answers.

use super::session::Session;
use crate::detect::{self, Detected, JarTarget, TypedJar};
use crate::error::{Error, Result};
use crate::report::Progress;
use crate::scenario::{Scenario, TrialPlan};
use crate::series::machine_now;
use crate::subject::{FirstAnswer, Usual};
use crate::trial;

/// The scenario of a jar; its URL is settled, and is part of the command line that repeats the run.
///
/// # Errors
/// `Request` where it cannot be started; `Subject` where it answers nowhere.
pub(super) fn of_jar(typed: TypedJar<'_>, session: &mut Session) -> Result<Scenario> {
    let sought = match typed.target()? {
        JarTarget::Known(scenario) => return Ok(*scenario),
        JarTarget::ToDetect(sought) => sought,
    };
    let mut progress = Progress::new(session.output.quiet);
    progress.step(&format!("starting {} once, to see where it answers ({})", typed.path.display(), sought.kind));
    let found = first_answer(session, &sought.scenario, &sought.usual)?;
    progress.step(&detect::describe(&found));
    let Detected { scenario, words } = sought.settle(&found)?;
    session.typed.insert(words);
    Ok(scenario)
}

/// Starts the subject of a scenario once, as its first configuration, and sees where it answers.
///
/// # Errors
/// As [`trial::first_answer`].
pub(super) fn first_answer(session: &Session, scenario: &Scenario, usual: &Usual) -> Result<FirstAnswer> {
    scenario.validate()?;
    let configuration = scenario.configurations.first().ok_or_else(|| Error::bug("no configuration"))?;
    let machine = machine_now(session.clock);
    trial::first_answer(&TrialPlan::of(scenario, configuration), &session.tools(&machine), usual)
}
