//! A subject whose address is unknown: starts it once before all trials to find where it responds.

use super::session::Session;
use crate::detect::{self, Detected, JarTarget, TypedJar};
use crate::error::{Error, ErrorKind, Result};
use crate::report::Progress;
use crate::scenario::{Scenario, TrialPlan};
use crate::series::machine_now;
use crate::subject::{FirstAnswer, Usual};
use crate::trial;

/// A check of a scenario by the verb that will run it.
pub(super) type Check<'a> = &'a dyn Fn(Scenario) -> Result<()>;

/// The scenario of a jar. Its URL is settled and becomes part of the command line that repeats the run. Invalid
/// settings are rejected before the jar is started.
///
/// # Errors
/// `Request` if it cannot be started, and those of `check`; `Subject` if it responds nowhere.
pub(super) fn of_jar(typed: TypedJar<'_>, session: &mut Session, check: Check<'_>) -> Result<Scenario> {
    let sought = match typed.target()? {
        JarTarget::Known(scenario) => return Ok(*scenario),
        JarTarget::ToDetect(sought) => sought,
    };
    sought.scenario.validate()?;
    check(sought.scenario.clone())?;
    let mut progress = Progress::new(session.output.quiet);
    progress.step(&format!("starting {} once to find its port and path ({})", typed.path.display(), sought.kind));
    let found = first_answer(session, &sought.scenario, &sought.usual).map_err(with_hint)?;
    progress.step(&detect::describe(&found));
    let Detected { scenario, words } = sought.settle(&found)?;
    session.typed.insert(words);
    Ok(scenario)
}

/// A jar that does not start may need arguments.
fn with_hint(error: Error) -> Error {
    match error.kind {
        ErrorKind::Subject => {
            error.hint("if the jar takes arguments, specify them after `--`; `{port}` stands for a free port")
        }
        _ => error,
    }
}

/// Starts the subject of a scenario once, as its first configuration, and finds where it responds.
pub(super) fn first_answer(session: &Session, scenario: &Scenario, usual: &Usual) -> Result<FirstAnswer> {
    scenario.validate()?;
    let configuration = scenario.configurations.first().ok_or_else(|| Error::bug("no configuration"))?;
    let machine = machine_now(session.clock);
    trial::first_answer(&TrialPlan::of(scenario, configuration), &session.tools(&machine), usual)
}
