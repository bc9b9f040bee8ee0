//! `loadline run`: executes everything in a scenario file, as modified by options.

use super::dumps::new_dump;
use super::exit::Code;
use super::session::{Call, RunOptions, Session};
use crate::archive;
use crate::bounded;
use crate::detect::{is_named_jar, program_error};
use crate::error::{Error, Result};
use crate::result::{Judgement, JudgementSettings};
use crate::scenario::{self, Inside, Marking, Scenario, parse};
use clap::Parser;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// `loadline run`
#[derive(Debug, Parser)]
pub(super) struct Verb {
    /// Scenario file `NAME.loadline.yaml`, or the directory NAME that contains it
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    /// Run the small version, `NAME-quick.loadline.yaml` in the same directory
    #[arg(long)]
    quick: bool,
    /// Run only these configurations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    marking: Marking,
    #[command(flatten)]
    inside: Inside,
    #[command(flatten)]
    judging: JudgementSettings,
}

/// The suffix of scenario files.
pub(super) const SUFFIX: &str = ".loadline.yaml";

pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let session = Session::of(&verb.options, call)?;
    let file = if verb.quick { quick(&verb.scenario) } else { verb.scenario.clone() };
    let mut scenario = load(&file, &session.releases())?;
    scenario.select(&verb.only)?;
    scenario.change(&verb.options.asked)?;
    scenario.mark(&verb.marking)?;
    scenario.look_inside(new_dump(verb.inside)?)?;
    let judgement = Judgement::of(&scenario, verb.judging)?;
    session.run(&scenario, &judgement)
}

/// Reads a scenario file, or an archive's scenario. In any other directory, reads the file named after the directory.
/// Errors: `Request` if there is no such file, or it is not a scenario.
pub(super) fn load(file: &Path, releases: &[u32]) -> Result<Scenario> {
    if is_named_jar(file) {
        return Err(Error::request(format!("{} is a jar, not a scenario", file.display()))
            .hint("`loadline weigh JAR` weighs it; `loadline init JAR` creates a scenario"));
    }
    if let Some(error) = program_error(file, "scenario") {
        return Err(error);
    }
    if archive::is_one(file) {
        let mut scenario = archive::read(file)?.scenario;
        // The time limits were chosen for that run.
        (scenario.find.minutes, scenario.tune.minutes) = (None, None);
        return Ok(scenario);
    }
    let file = &if file.is_dir() { of_folder(file) } else { file.to_owned() };
    let text = bounded::text_named(file, scenario::YAML_BYTES_MAX).map_err(|cause| {
        let is_yaml = file.extension().is_some_and(|end| end == "yaml" || end == "yml");
        if cause.kind() == ErrorKind::NotFound && !is_yaml {
            return Error::request(format!("there is no file `{}`", file.display())).hint(
                "specify a scenario file (`NAME.loadline.yaml`), a directory with one, an archive, or a jar (not for \
                 `run`)",
            );
        }
        let error = format!("cannot read the scenario {}: {}", file.display(), crate::error::plain(&cause));
        Error::request(error).hint("`loadline init` creates one from a project directory or a jar")
    })?;
    let base = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    parse(&text, base, releases).map_err(|error| error.at(format!("scenario: {}", file.display())))
}

/// `tiny-http/tiny-http.loadline.yaml` for `tiny-http`.
fn of_folder(folder: &Path) -> PathBuf {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    folder.join(format!("{name}{SUFFIX}"))
}

/// The quick version of a scenario: `tiny-http-quick.loadline.yaml` next to `tiny-http.loadline.yaml`.
fn quick(scenario: &Path) -> PathBuf {
    let file = if scenario.is_dir() { of_folder(scenario) } else { scenario.to_owned() };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(SUFFIX).unwrap_or(&name);
    file.with_file_name(format!("{stem}-quick{SUFFIX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_its_archive_or_scenario() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("tiny");
        std::fs::create_dir(&own).unwrap();
        assert_eq!(of_folder(&own), own.join("tiny.loadline.yaml"));
        assert_eq!(quick(&own), own.join("tiny-quick.loadline.yaml"));
        assert_eq!(quick(&own.join("other.loadline.yaml")), own.join("other-quick.loadline.yaml"));
        let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/archives/searched/archive.jsonl");
        let text =
            std::fs::read_to_string(archive).unwrap().replace("\"trials_max\":60", "\"trials_max\":7,\"minutes\":5.0");
        std::fs::write(own.join("archive.jsonl"), text).unwrap();
        assert_eq!(archive::read(&own).unwrap().scenario.find.minutes, Some(5.0));
        let of_archive = load(&own, &[17]).unwrap().find;
        assert_eq!((of_archive.minutes, of_archive.trials_max), (None, 7), "the archive's time limit is not adopted");
        std::fs::remove_file(own.join("archive.jsonl")).unwrap();
        let error = load(&own, &[17]).unwrap_err();
        assert!(error.what.contains("tiny/tiny.loadline.yaml"), "{}", error.what);
    }
}
