//! `loadline weigh`: one configuration under load.

use super::dumps::new_dump;
use super::exit::Code;
use super::of_jar::of_jar;
use super::session::{Call, RunOptions, Session};
use crate::detect::TypedJar;
use crate::error::{Error, Result};
use crate::result::{Judgement, JudgementSettings};
use crate::scenario::{Inside, Marking, Scenario};
use clap::Parser;
use std::path::PathBuf;

/// `loadline weigh`
#[derive(Debug, Parser)]
pub(super) struct Verb {
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    marking: Marking,
    #[command(flatten)]
    inside: Inside,
    #[command(flatten)]
    judging: JudgementSettings,
    /// Server jar. Without `--url`, Loadline first starts it once to find its address
    #[arg(value_name = "JAR", conflicts_with = "image")]
    jar: Option<PathBuf>,
    /// Command that starts the server, such as `java` or a script; after a jar or image, its arguments. `{port}`
    /// expands to a free port
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let mut session = Session::of(&verb.options, call)?;
    let asked = &verb.options.asked;
    let check = |mut scenario: Scenario| {
        scenario.mark(&verb.marking)?;
        Judgement::of(&scenario, verb.judging.clone())?.check_metrics(&scenario, &scenario.marks)
    };
    let mut scenario = match &verb.jar {
        Some(path) => of_jar(TypedJar { path, arguments: &verb.command, options: asked }, &mut session, &check)?,
        None if verb.command.is_empty() && asked.subject.image.is_none() => {
            return Err(Error::request("nothing to weigh").hint("specify a jar, or a command after `--`"));
        }
        None => Scenario::of_command(&verb.command, asked)?,
    };
    scenario.mark(&verb.marking)?;
    scenario.look_inside(new_dump(verb.inside)?)?;
    let judgement = Judgement::of(&scenario, verb.judging)?;
    session.run(&scenario, &judgement)
}
