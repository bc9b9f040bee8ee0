//! The outputs of a result: the terminal or JSON on stdout, and files. Paths are tested before the measurement, so that
//! a typo costs nothing.

use crate::error::{Error, ErrorKind, Result};
use crate::record::Document;
use crate::report::export::{self, Format, Unchanged};
use crate::report::{self, Depth, Progress};
use crate::result;
use crate::scenario::shell_word;
use clap::{Arg, ArgMatches, Args, FromArgMatches, Parser, value_parser};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Files for a result in addition to the summary. `-` is stdout, in place of the summary.
#[derive(Debug, Clone, Default, Parser)]
#[command(next_help_heading = HEADING)]
pub(super) struct Exports {
    #[command(flatten)]
    files: Files,
    /// Write the comment even if nothing changed
    #[arg(long, requires = "comment")]
    comment_always: bool,
    /// In GitHub Actions, write a step summary and annotate each exceeded budget
    #[arg(long)]
    pub(super) github: bool,
}

/// A file per requested format, in the order of formats.
#[derive(Debug, Clone, Default)]
struct Files(Vec<(PathBuf, Format)>);

const HEADING: &str = "Files";

/// One option per format, named after it.
impl Args for Files {
    fn augment_args(command: clap::Command) -> clap::Command {
        let option = |format: Format| {
            let of_path = Arg::new(format.word()).value_name("FILE").value_parser(value_parser!(PathBuf));
            of_path.long(format.word()).help(format.help()).help_heading(HEADING)
        };
        command.args(Format::ALL.map(option))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Files {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let path = |format: Format| Some((matches.get_one::<PathBuf>(format.word())?.clone(), format));
        Ok(Self(Format::ALL.into_iter().filter_map(path).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The variable that names GitHub Actions' step summary file.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

impl Exports {
    pub(super) fn of(files: impl IntoIterator<Item = (Option<PathBuf>, Format)>) -> Self {
        let asked = files.into_iter().filter_map(|(path, format)| Some((path?, format)));
        Self { files: Files(asked.collect()), ..Self::default() }
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, Format)> {
        let unchanged = if self.comment_always { Unchanged::Told } else { Unchanged::Silent };
        self.files.0.iter().map(move |(path, format)| match format {
            Format::Comment(_) => (path.as_path(), Format::Comment(unchanged)),
            format => (path.as_path(), *format),
        })
    }

    pub(super) fn has_comment(&self) -> bool {
        self.files().any(|(_, format)| matches!(format, Format::Comment(_)))
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files().map(|(path, _)| path)
    }

    /// Whether an export replaces the summary on stdout.
    pub(super) fn on_stdout(&self) -> bool {
        self.paths().any(is_stdout)
    }

    /// Tests every path. Errors: `Request` if two exports use stdout, or a directory does not exist; `Machine` if a
    /// file cannot be written.
    pub(super) fn check(&self, json: bool) -> Result<()> {
        let on_stdout = self.paths().filter(|path| is_stdout(path)).count();
        if on_stdout + usize::from(json) > 1 {
            return Err(Error::request("only one output can go to stdout").hint("write the others to files"));
        }
        for path in self.paths().filter(|path| !is_stdout(path)) {
            let existed = path.exists();
            OpenOptions::new().append(true).create(true).open(path).map_err(|cause| cannot_write(path, &cause))?;
            if !existed {
                // Only a test, so that a failed run leaves nothing behind. A file that cannot be removed does no harm.
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }

    /// Writes all files, even after an error; returns the first error.
    pub(super) fn write(&self, result: &Shown<'_>, progress: &mut Progress) -> Result<()> {
        let written = self.write_texts(|format| result.text(format), progress);
        written.and(self.write_beside(result.document, progress))
    }

    /// Writes outputs without a path of their own: additional tables, and the output for GitHub.
    pub(super) fn write_beside(&self, document: &Document, progress: &mut Progress) -> Result<()> {
        let mut first = Ok(());
        let tables = self.files().filter(|(path, format)| *format == Format::Csv && !is_stdout(path));
        for (path, _) in tables.filter(|_| !document.comparisons.is_empty()) {
            // Comparisons have other columns, so they get their own table: `a.comparisons.csv` next to `a.csv`.
            first = write(&path.with_extension("comparisons.csv"), &export::comparisons_csv(document));
        }
        if self.github {
            first = first.and(github(document, progress));
        }
        first
    }

    pub(super) fn write_texts(&self, text: impl Fn(Format) -> String, progress: &mut Progress) -> Result<()> {
        let mut first = Ok(());
        for (path, format) in self.files() {
            let written = write(path, &text(format));
            if written.is_ok() && !is_stdout(path) {
                progress.step(&format!("{}: {}", format.word(), path.display()));
            }
            first = first.and(written);
        }
        first
    }
}

/// A missing directory is a typo or an omission; any other problem is the machine's.
fn cannot_write(path: &Path, cause: &std::io::Error) -> Error {
    let error = Error::io("write", path, cause);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    match folder {
        Some(folder) => Error { kind: ErrorKind::Request, ..error }
            .hint(format!("create the directory first: `mkdir -p {}`", shell_word(&folder.to_string_lossy()))),
        None if path.is_dir() => Error { kind: ErrorKind::Request, ..error }.hint("specify a file in that directory"),
        None => error,
    }
}

/// A result and the directories of its trials.
pub(super) struct Shown<'a> {
    pub(super) document: &'a Document,
    /// The archives in order.
    pub(super) folders: &'a [PathBuf],
    pub(super) missing: &'a [String],
    /// The comparison with a baseline archive, which comments show; `None` without one.
    pub(super) against: Option<&'a Document>,
}

impl Shown<'_> {
    pub(super) fn text(&self, format: Format) -> String {
        let html = || report::html(self.document, &result::evidence(self.document, self.folders), self.missing);
        format.text(self.document, self.against, html)
    }

    /// Prints the document or the summary, unless another output uses stdout, and writes the files. Errors: `Machine`
    /// if a write fails.
    pub(super) fn show(&self, json: bool, depth: Depth, exports: &Exports, progress: &mut Progress) -> Result<()> {
        let text = match json {
            true => Some(report::document(self.document)),
            false if exports.on_stdout() => None,
            false => {
                let archive = if let [folder] = self.folders { Some(folder.as_path()) } else { None };
                Some(report::render(&report::summarize_archived(self.document, archive, self.missing, depth)))
            }
        };
        if let Some(text) = text {
            report::print(&text)?;
        }
        exports.write(self, progress)
    }
}

pub(super) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes to a file, or to stdout if the path is `-`.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    match is_stdout(path) {
        true => report::print(text),
        false => std::fs::write(path, text).map_err(|cause| Error::io("write", path, &cause)),
    }
}

/// Writes the step summary, and an annotation for each exceeded budget. Outside GitHub, prints a warning.
fn github(document: &Document, progress: &mut Progress) -> Result<()> {
    let Some(path) = std::env::var_os(STEP_SUMMARY).map(PathBuf::from) else {
        progress.warn(&format!("warning: `--github` has no effect: {STEP_SUMMARY} is not set"));
        return Ok(());
    };
    let summary = export::github_summary(document);
    let appended = OpenOptions::new().append(true).create(true).open(&path);
    appended
        .and_then(|mut file| file.write_all(summary.as_bytes()))
        .map_err(|cause| Error::io("append to", &path, &cause))?;
    // GitHub reads commands from both streams; stdout is for the result.
    progress.warn(export::github_annotations(document).trim_end());
    Ok(())
}
