//! `loadline report`: any report again, from an archive, without a JVM.

use super::args::Report;
use super::exit::Code;
use super::exports::Shown;
use super::judging::{code, judgement};
use crate::archive::{self, Archive};
use crate::error::{Error, Result};
use crate::record::Document;
use crate::report::{self, Progress};
use crate::result;
use crate::scenario::MarkPoint;
use std::path::Path;

pub(super) fn report(verb: &Report) -> Result<Code> {
    verb.exports.check(verb.json)?;
    let archive = result::read(&verb.archive)?;
    if result::is_search(&archive.trials) {
        let found = result::of_search(&archive.conditions, &archive.scenario, &archive.trials);
        return show(verb, &archive, &found, None).map(|()| Code::Yes);
    }
    if result::is_tuning(&archive.trials) {
        let mut tuned = result::of_tuning(&archive.conditions, &archive.scenario, &archive.trials);
        result::add_lines(&mut tuned, &verb.archive);
        return show(verb, &archive, &tuned, None).map(|()| Code::Yes);
    }
    let judgement = judgement(&archive.scenario, Some(&verb.comparing), &verb.judging)?;
    // A metric that only these trials lack leaves its budget undecided.
    judgement.check_metrics(&archive.scenario, &MarkPoint::ALL)?;
    let result = judgement.document(&archive.conditions, &archive.trials);
    let mut against = None;
    if verb.exports.comment.is_some() {
        against = judgement.against_archive(&result, &archive.scenario, &verb.archive).transpose()?;
    }
    show(verb, &archive, &result, against.as_ref())?;
    code(&judgement, &result, &mut Progress::new(false))
}

fn show(verb: &Report, archive: &Archive, result: &Document, against: Option<&Document>) -> Result<()> {
    let mut progress = Progress::new(false);
    let folders = std::slice::from_ref(&verb.archive);
    let shown = Shown { document: result, folders, missing: &archive.missing, against };
    shown.show(verb.json, verb.view, &verb.exports, &mut progress)?;
    if verb.json || verb.exports.on_stdout() {
        archive.missing.iter().for_each(|what| progress.warn(&format!("warning: {what}")));
    }
    pictures(verb, &shown, &mut progress)
}

/// Writes what goes into folders: pictures and single requests.
fn pictures(verb: &Report, shown: &Shown<'_>, progress: &mut Progress) -> Result<()> {
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
