//! The files a result goes to. Their paths are tried before anything is measured, so that a slip costs nothing.

use super::args_compare::{Exports, View};
use crate::archive;
use crate::error::{Error, Result};
use crate::record::{Document, Evidence, Trial};
use crate::report::{self, Depth, Progress, export};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where GitHub Actions takes the summary of a step from.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Makes the text of a file.
type Text = fn(&Shown<'_>) -> String;

impl Exports {
    /// Each with its word and its text.
    fn files(&self) -> [(&Option<PathBuf>, &'static str, Text); 6] {
        [
            (&self.html, "html", |of| report::html(of.document, &of.evidence(), of.missing)),
            (&self.markdown, "markdown", |of| export::markdown(of.document)),
            (&self.csv, "csv", |of| export::csv(of.document)),
            (&self.junit, "junit", |of| export::junit(of.document)),
            (&self.jmh, "jmh", |of| export::jmh(of.document)),
            (&self.openmetrics, "openmetrics", |of| export::openmetrics(of.document)),
        ]
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files().into_iter().filter_map(|(path, ..)| path.as_deref())
    }

    /// Whether one of them takes the place of the summary on stdout.
    pub(super) fn on_stdout(&self) -> bool {
        self.paths().any(is_stdout)
    }

    /// Tries every path.
    ///
    /// # Errors
    /// `Request` where two are to go to stdout, `Machine` where one cannot be written.
    pub(super) fn check(&self, json: bool) -> Result<()> {
        let on_stdout = self.paths().filter(|path| is_stdout(path)).count();
        if on_stdout + usize::from(json) > 1 {
            return Err(Error::request("only one thing can go to stdout").hint("give the others a file"));
        }
        for path in self.paths().filter(|path| !is_stdout(path)) {
            let existed = path.exists();
            OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map_err(|cause| Error::io("write", path, &cause))?;
            if !existed {
                // Only tried: nothing is left behind where the run fails. That it cannot be removed does no harm.
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }

    /// Writes them all; the first that fails is the error, and the others are written all the same.
    ///
    /// # Errors
    /// `Machine` where one cannot be written.
    pub(super) fn write(&self, result: &Shown<'_>, progress: &mut Progress) -> Result<()> {
        let mut first = Ok(());
        for (path, word, text) in self.files() {
            let Some(path) = path.as_deref() else { continue };
            let written = write(path, &text(result));
            if written.is_ok() && !is_stdout(path) {
                progress.step(&format!("{word}: {}", path.display()));
            }
            first = first.and(written);
        }
        let beside = self.csv.as_deref().filter(|path| !is_stdout(path) && !result.document.comparisons.is_empty());
        if let Some(path) = beside {
            // A table of other columns: `a.csv` has `a.comparisons.csv` beside it.
            let table = export::comparisons_csv(result.document);
            first = first.and(write(&path.with_extension("comparisons.csv"), &table));
        }
        if self.github {
            first = first.and(github(result.document, progress));
        }
        first
    }
}

/// A result and where the folders of its trials lie.
pub(super) struct Shown<'a> {
    pub(super) document: &'a Document,
    /// The archives, in their order.
    pub(super) folders: &'a [PathBuf],
    pub(super) missing: &'a [String],
}

impl Shown<'_> {
    /// Prints the document or the summary, unless something else goes to stdout, and writes the files.
    ///
    /// # Errors
    /// `Machine` where something cannot be written.
    pub(super) fn show(&self, json: bool, view: View, exports: &Exports, progress: &mut Progress) -> Result<()> {
        let depth = Depth { each: view.each, details: view.details };
        let text = match json {
            true => Some(report::document(self.document)),
            false if exports.on_stdout() => None,
            false => Some(report::render(&report::summarize(self.document, self.missing, depth))),
        };
        if let Some(text) = text {
            report::print(&text).map_err(|cause| Error::io("write to", "standard output", &cause))?;
        }
        exports.write(self, progress)
    }

    /// What pictures are drawn from; nothing where no archive is at hand.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        // With one archive, all trials are its own.
        let from = |at: usize| self.document.archives.get(at).map(|archive| archive.index_from);
        let of = |(at, folder): (usize, &PathBuf)| {
            let own = from(at).unwrap_or(0)..from(at + 1).unwrap_or(u32::MAX);
            let trials: Vec<Trial> =
                self.document.trials.iter().filter(|trial| own.contains(&trial.index)).cloned().collect();
            archive::evidence(folder, &trials)
        };
        self.folders.iter().enumerate().flat_map(of).collect()
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes a file, or to stdout where the path is `-`.
///
/// # Errors
/// `Machine` where it cannot be written.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    match is_stdout(path) {
        true => report::print(text).map_err(|cause| Error::io("write to", "standard output", &cause)),
        false => std::fs::write(path, text).map_err(|cause| Error::io("write", path, &cause)),
    }
}

/// The summary of the step, and an annotation for each broken budget. Elsewhere it says that this is not GitHub.
fn github(document: &Document, progress: &mut Progress) -> Result<()> {
    let Some(path) = std::env::var_os(STEP_SUMMARY).map(PathBuf::from) else {
        progress.warn(&format!("warning: `--github` does nothing here: {STEP_SUMMARY} is not set"));
        return Ok(());
    };
    let summary = export::github_summary(document);
    let appended = OpenOptions::new().append(true).create(true).open(&path);
    appended
        .and_then(|mut file| file.write_all(summary.as_bytes()))
        .map_err(|cause| Error::io("append to", &path, &cause))?;
    // GitHub reads commands from both streams; stdout is the result's.
    progress.warn(export::github_annotations(document).trim_end());
    Ok(())
}
