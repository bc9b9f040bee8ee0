//! `loadline report`: prints any report from an archive, without a JVM.

use super::exit::Code;
use super::exports::{Exports, Shown};
use super::judging::code;
use super::session::Call;
use crate::archive::{self, Archive};
use crate::error::{Error, Result};
use crate::record::Document;
use crate::report::{self, Depth, Progress};
use crate::result::{self, Judgement, JudgementSettings};
use crate::scenario::{CompareSettings, MarkPoint};
use clap::Parser;
use std::path::{Path, PathBuf};

/// A directory for plots. Rejects names that look like a plot file.
fn folder_of_pictures(text: &str) -> Result<PathBuf, String> {
    const PICTURES: [&str; 5] = ["png", "svg", "pdf", "jpg", "jpeg"];
    let folder = PathBuf::from(text);
    let ending = folder.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    if PICTURES.contains(&ending.as_str()) {
        return Err(format!(
            "`{text}` is not a directory; each chart is a separate SVG file, so specify a directory such as `charts`"
        ));
    }
    Ok(folder)
}

/// `loadline report`
#[derive(Debug, Parser)]
pub(super) struct Verb {
    /// Archive directory, as printed on the last line of a run's output
    #[arg(value_name = "ARCHIVE")]
    archive: PathBuf,
    /// Print the result as JSON instead of the summary
    #[arg(long)]
    json: bool,
    /// Write each chart to this directory, as SVG
    #[arg(long, value_name = "DIR", help_heading = "Files", value_parser = folder_of_pictures)]
    plot: Option<PathBuf>,
    /// Write the requests of each trial to this directory, in `ab -g` format
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    ab: Option<PathBuf>,
    #[command(flatten)]
    depth: Depth,
    #[command(flatten)]
    exports: Exports,
    #[command(flatten)]
    comparing: CompareSettings,
    #[command(flatten)]
    judging: JudgementSettings,
}

pub(super) fn run(verb: Verb, _: Call) -> Result<Code> {
    verb.exports.check(verb.json)?;
    let archive = result::read(&verb.archive)?;
    if result::is_search(&archive.trials) {
        let found = result::of_search(&archive.conditions, &archive.scenario, &archive.trials);
        return show(&verb, &archive, &found, None).map(|()| Code::Yes);
    }
    if result::is_tuning(&archive.trials) {
        let mut tuned = result::of_tuning(&archive.conditions, &archive.scenario, &archive.trials);
        result::add_lines(&mut tuned, &verb.archive);
        return show(&verb, &archive, &tuned, None).map(|()| Code::Yes);
    }
    let asked = JudgementSettings { comparing: verb.comparing.clone(), ..verb.judging.clone() };
    let judgement = Judgement::of(&archive.scenario, asked)?;
    // A metric that is missing only from these trials leaves its budget undecided.
    judgement.check_metrics(&archive.scenario, &MarkPoint::ALL)?;
    let result = judgement.document(&archive.conditions, &archive.trials);
    let mut against = None;
    if verb.exports.has_comment() {
        against = judgement.against_archive(&result, &archive.scenario, &verb.archive).transpose()?;
    }
    show(&verb, &archive, &result, against.as_ref())?;
    code(&judgement, &result, &mut Progress::new(false))
}

fn show(verb: &Verb, archive: &Archive, result: &Document, against: Option<&Document>) -> Result<()> {
    let mut progress = Progress::new(false);
    let folders = std::slice::from_ref(&verb.archive);
    let shown = Shown { document: result, folders, missing: &archive.missing, against };
    shown.show(verb.json, verb.depth, &verb.exports, &mut progress)?;
    if verb.json || verb.exports.on_stdout() {
        archive.missing.iter().for_each(|what| progress.warn(&format!("warning: {what}")));
    }
    pictures(verb, &shown, &mut progress)
}

/// Writes the outputs that go to directories: plots and individual requests.
fn pictures(verb: &Verb, shown: &Shown<'_>, progress: &mut Progress) -> Result<()> {
    if let Some(folder) = &verb.plot {
        create(folder)?;
        for plot in report::plots(shown.document, &result::evidence(shown.document, shown.folders)) {
            put(&folder.join(format!("{}.svg", plot.name)), plot.svg.as_bytes())?;
        }
        progress.step(&format!("pictures: {}", folder.display()));
    }
    if let Some(folder) = &verb.ab {
        create(folder)?;
        for trial in &shown.document.trials {
            let requests = archive::requests(&verb.archive, trial)?;
            requests.missing.iter().for_each(|what| progress.warn(&format!("warning: {what}")));
            let name = format!("trial-{:03}-{}.tsv", trial.index + 1, trial.configuration.replace('/', "_"));
            put(&folder.join(name), requests.ab().as_bytes())?;
        }
        progress.step(&format!("requests: {}", folder.display()));
    }
    Ok(())
}

fn create(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|cause| Error::io("create", folder, &cause))
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|cause| Error::io("write", path, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plots_go_into_a_directory() {
        assert_eq!(folder_of_pictures("out/pictures"), Ok(PathBuf::from("out/pictures")));
        for file in ["x.png", "out/x.PNG", "x.svg"] {
            assert!(folder_of_pictures(file).unwrap_err().contains("a separate SVG file"), "{file}");
        }
    }
}
