//! `loadline run`: everything a scenario file asks, changed by the options.

use super::args::Run;
use super::exit::Code;
use super::judgement::Judgement;
use super::options::change;
use super::preparing::Rebuild;
use super::session::{Interrupt, Session};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::scenario::{Scenario, parse};
use std::path::Path;

pub(super) fn run(verb: Run, typed: String, clock: Clock, interrupt: Interrupt) -> Result<Code> {
    let session = Session::new(verb.options.output.clone(), typed, clock, interrupt);
    let session = session.building(Rebuild::of(&verb.options));
    let mut scenario = load(&verb.scenario, &session.releases())?;
    select(&mut scenario, &verb.only)?;
    change(&mut scenario, &verb.options)?;
    let judgement = Judgement::of(&scenario, None, &verb.options.judging)?;
    session.run(&scenario, &judgement)
}

pub(super) fn load(file: &Path, releases: &[u32]) -> Result<Scenario> {
    let text = std::fs::read_to_string(file).map_err(|cause| {
        Error::request(format!("cannot read the scenario {}: {}", file.display(), crate::error::plain(&cause)))
    })?;
    let base = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    parse(&text, base, releases).map_err(|error| error.at(format!("scenario: {}", file.display())))
}

/// Keeps the configurations named; all where none is.
pub(super) fn select(scenario: &mut Scenario, only: &[String]) -> Result<()> {
    let names: Vec<_> = scenario.configurations.iter().map(|configuration| configuration.name.clone()).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        return Err(Error::request(format!("no configuration is named `{unknown}`"))
            .hint(format!("the scenario has {}", names.join(", "))));
    }
    scenario.configurations.retain(|configuration| only.is_empty() || only.contains(&configuration.name));
    Ok(())
}
