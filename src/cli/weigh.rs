//! `loadline weigh`: one configuration under load.

use super::args::Weigh;
use super::exit::Code;
use super::judging::judgement;
use super::options::{mark, scenario_of};
use super::session::{Interrupt, Session};
use crate::clock::Clock;
use crate::error::Result;

pub(super) fn weigh(verb: Weigh, typed: String, clock: Clock, interrupt: Interrupt) -> Result<Code> {
    let mut scenario = scenario_of(&verb.command, &verb.options)?;
    mark(&mut scenario, &verb.marking)?;
    let judgement = judgement(&scenario, None, &verb.judging)?;
    Session::new(verb.options.output, typed, clock, interrupt).run(&scenario, &judgement)
}
