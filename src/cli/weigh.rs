//! `loadline weigh`: one configuration under load.

use super::args::Weigh;
use super::dumps::new_dump;
use super::exit::Code;
use super::judging::judgement;
use super::of_jar::of_jar;
use super::session::{CommandLine, Interrupt, Session};
use crate::clock::Clock;
use crate::detect::TypedJar;
use crate::error::{Error, Result};
use crate::scenario::Scenario;

pub(super) fn weigh(verb: Weigh, typed: CommandLine, clock: Clock, interrupt: Interrupt) -> Result<Code> {
    let mut session = Session::of(&verb.options, typed, clock, interrupt);
    let asked = &verb.options.asked;
    let mut scenario = match &verb.jar {
        Some(path) => of_jar(TypedJar { path, arguments: &verb.command, options: asked }, &mut session)?,
        None if verb.command.is_empty() && asked.subject.image.is_none() => {
            return Err(Error::request("weigh what?").hint("name a jar, or give a command after `--`"));
        }
        None => Scenario::of_command(&verb.command, asked)?,
    };
    scenario.mark(&verb.marking)?;
    scenario.look_inside(new_dump(verb.inside)?)?;
    let judgement = judgement(&scenario, None, &verb.judging)?;
    session.run(&scenario, &judgement)
}
