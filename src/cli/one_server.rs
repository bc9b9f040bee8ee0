//! The common part of the verbs that ask something of one server, `compare`, `find` and `tune`: what is asked, and how
//! an archive is continued.

use super::live::Live;
use super::of_jar::of_jar;
use super::run;
use super::session::{RunOptions, Session};
use crate::archive::Archive;
use crate::detect::{TypedJar, is_named_jar};
use crate::error::Result;
use crate::record::{Conditions, Trial};
use crate::scenario::{Scenario, ScenarioOptions};
use crate::series::Archived;
use crate::units::several;
use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Args, Command, Id};
use std::path::Path;

/// The arguments that name a server.
pub(super) struct ServerArguments<'a> {
    pub(super) scenario: Option<&'a Path>,
    pub(super) only: &'a [String],
    pub(super) options: &'a RunOptions,
    pub(super) command: &'a [String],
}

/// The scenario of a server, and where it comes from.
pub(super) struct ServerScenario {
    pub(super) scenario: Scenario,
    /// Whether a file says it, and not a command line.
    pub(super) is_of_file: bool,
}

impl ServerArguments<'_> {
    /// Reads the scenario; `None` where neither a file nor a command is given, or both are.
    ///
    /// # Errors
    /// `Request` where it cannot be read, or an option does not fit.
    pub(super) fn asked(&self, session: &mut Session) -> Result<Option<ServerScenario>> {
        let asked = &self.options.asked;
        let is_image = self.scenario.is_none() && asked.subject.image.is_some();
        let mut server = match (self.scenario, !self.command.is_empty() || is_image) {
            (Some(path), _) if is_named_jar(path) => {
                let typed = TypedJar { path, arguments: self.command, options: asked };
                ServerScenario { scenario: of_jar(typed, session)?, is_of_file: false }
            }
            (Some(file), false) => {
                let mut scenario = run::load(file, &session.releases())?;
                scenario.select(self.only)?;
                scenario.change(asked)?;
                ServerScenario { scenario, is_of_file: true }
            }
            (None, true) => ServerScenario { scenario: Scenario::of_command(self.command, asked)?, is_of_file: false },
            _ => return Ok(None),
        };
        if !server.is_of_file && !asked.load.names_warmup() {
            server.scenario.load.warm_by_evidence();
        }
        Ok(Some(server))
    }
}

/// Trials of one server under way, in their archive.
pub(super) struct Underway {
    pub(super) scenario: Scenario,
    pub(super) conditions: Conditions,
    pub(super) trials: Vec<Trial>,
    pub(super) store: Archived<Live>,
}

impl Underway {
    /// Goes on after the trials of an archive, prepared as before the first of them; `asked` is its scenario with the
    /// bounds that were typed.
    ///
    /// # Errors
    /// As [`Session::prepare`], and where it cannot be written to.
    pub(super) fn resume(session: &Session, path: &Path, archive: Archive, asked: Scenario) -> Result<Self> {
        let mut live = session.live();
        let scenario = session.prepare(&asked, &mut live)?.scenario;
        let Archive { conditions, trials, .. } = archive;
        live.progress.step(&going_on(&trials));
        let mut store = Archived::reopen(path, trials.len() as u32, live)?;
        if asked != archive.scenario {
            store.begin_again(&conditions, &scenario)?;
        }
        Ok(Self { scenario, conditions, trials, store })
    }
}

pub(super) fn going_on(trials: &[Trial]) -> String {
    format!("going on after {}", several(trials.len() as u64, "trial"))
}

/// Has `--resume` refuse each option of the scenario or the search but its bounds: its archive holds all others.
pub(super) fn resumed<O: Args>(verb: Command) -> Command {
    let options = ScenarioOptions::augment_args(O::augment_args(Command::default()));
    let ids = options.get_arguments().map(|option| option.get_id().clone());
    let refused: Vec<Id> = ids.filter(|id| !["minutes", "trials_max"].contains(&id.as_str())).collect();
    verb.mut_arg("resume", |resume| resume.conflicts_with_all(refused))
}

/// An axis with its values, as typed: `gc=serial,g1`. An empty value leaves the setting as it is given.
pub(super) fn variation(text: &str) -> Result<(String, Vec<String>), String> {
    let refuse = || format!("`{text}` varies nothing; write it as `gc=serial,g1`");
    let (axis, values) = text.split_once('=').ok_or_else(refuse)?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    match !axis.is_empty() && values.iter().any(|value| !value.is_empty()) {
        true => Ok((axis.trim().to_owned(), values)),
        false => Err(refuse()),
    }
}

/// Options that are not there, and what to use instead of each.
pub(super) fn refusing(
    target: &'static str,
    baseline: &'static str,
    trials: &'static str,
    marks: &'static str,
) -> [Arg; 6] {
    let options = [
        ("budget", "BUDGET", target),
        ("baseline", "NAME | ARCHIVE", baseline),
        ("undecided", "HOW", target),
        ("strict", "", target),
        ("trials", "N", trials),
        ("marks", "MARKS", marks),
    ];
    options.map(|(name, value, instead)| {
        let refusing = UnknownArgumentValueParser::suggest(instead);
        let arg = Arg::new(name).long(name).value_name(value).hide(true).value_parser(refusing);
        if value.is_empty() { arg.num_args(0).default_missing_value("") } else { arg }
    })
}
