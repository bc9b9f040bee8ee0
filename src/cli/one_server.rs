//! Shared by `compare`, `find`, and `tune`: reading the request, and resuming an archive.

use super::live::Live;
use super::of_jar::{Check, of_jar};
use super::run;
use super::session::{RunOptions, Session};
use crate::archive::Archive;
use crate::detect::{TypedJar, is_named_jar};
use crate::error::{Error, Result};
use crate::record::{Conditions, Trial};
use crate::scenario::{Scenario, ScenarioOptions};
use crate::series::Archived;
use crate::units::several;
use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Args, Command, Id};
use std::path::Path;

pub(super) struct ServerArguments<'a> {
    pub(super) scenario: Option<&'a Path>,
    pub(super) only: &'a [String],
    pub(super) options: &'a RunOptions,
    pub(super) command: &'a [String],
    /// Applied before a jar is started to find its address.
    pub(super) check: Check<'a>,
}

/// A server's scenario and its origin.
pub(super) struct ServerScenario {
    pub(super) scenario: Scenario,
    /// Whether it comes from a file rather than the command line.
    pub(super) is_of_file: bool,
}

impl ServerArguments<'_> {
    /// Reads the scenario; `None` without a file or command. Errors: `Request` if it cannot be read, both are given, or
    /// an option does not apply.
    pub(super) fn asked(&self, session: &mut Session) -> Result<Option<ServerScenario>> {
        let asked = &self.options.asked;
        let is_image = self.scenario.is_none() && asked.subject.image.is_some();
        let mut server = match (self.scenario, !self.command.is_empty() || is_image) {
            (Some(path), _) if is_named_jar(path) => {
                let typed = TypedJar { path, arguments: self.command, options: asked };
                ServerScenario { scenario: of_jar(typed, session, self.check)?, is_of_file: false }
            }
            (Some(file), false) => {
                let mut scenario = run::load(file, &session.releases())?;
                scenario.select(self.only)?;
                scenario.change(asked)?;
                ServerScenario { scenario, is_of_file: true }
            }
            (None, true) => ServerScenario { scenario: Scenario::of_command(self.command, asked)?, is_of_file: false },
            (Some(file), true) => {
                let what = format!("specify either `{}` or a command, not both", file.display());
                return Err(Error::request(what).hint("arguments after `--` work only with a jar"));
            }
            (None, false) => return Ok(None),
        };
        if !server.is_of_file && !asked.load.names_warmup() {
            server.scenario.load.warm_by_evidence();
        }
        Ok(Some(server))
    }
}

/// A server's running trials, and their archive.
pub(super) struct Underway {
    pub(super) scenario: Scenario,
    pub(super) conditions: Conditions,
    pub(super) trials: Vec<Trial>,
    pub(super) store: Archived<Live>,
}

impl Underway {
    /// Resumes after an archive's trials, prepared like the first; `asked` is its scenario with the given bounds.
    /// Errors: as [`Session::prepare`], or if the archive cannot be written.
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
    format!("continuing after {}", several(trials.len() as u64, "trial"))
}

/// Makes `--resume` reject all options of the scenario or search except bounds, because the archive contains the
/// others.
pub(super) fn resumed<O: Args>(verb: Command) -> Command {
    let options = ScenarioOptions::augment_args(O::augment_args(Command::default()));
    let ids = options.get_arguments().map(|option| option.get_id().clone());
    let refused: Vec<Id> = ids.filter(|id| !["minutes", "trials_max"].contains(&id.as_str())).collect();
    verb.mut_arg("resume", |resume| resume.conflicts_with_all(refused))
}

/// Parses an axis with its values: `gc=serial,g1`. An empty value keeps the setting unchanged.
pub(super) fn variation(text: &str) -> Result<(String, Vec<String>), String> {
    let refuse = || format!("`{text}` has no values; write it as `gc=serial,g1`");
    let (axis, values) = text.split_once('=').ok_or_else(refuse)?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    match !axis.is_empty() && values.iter().any(|value| !value.is_empty()) {
        true => Ok((axis.trim().to_owned(), values)),
        false => Err(refuse()),
    }
}

/// Options that do not exist, with an alternative for each.
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
