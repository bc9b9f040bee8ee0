//! `loadline weigh`: one configuration under load.

use super::args::Weigh;
use super::dumps::new_dump;
use super::exit::Code;
use super::judging::judgement;
use super::session::{Interrupt, Session};
use crate::clock::Clock;
use crate::error::Result;
use crate::scenario::Scenario;

pub(super) fn weigh(verb: Weigh, typed: String, clock: Clock, interrupt: Interrupt) -> Result<Code> {
    let mut scenario = Scenario::of_command(&verb.command, &verb.options.asked)?;
    scenario.mark(&verb.marking)?;
    scenario.look_inside(new_dump(verb.inside)?)?;
    let judgement = judgement(&scenario, None, &verb.judging)?;
    Session::new(verb.options.output, typed, clock, interrupt).run(&scenario, &judgement)
}
