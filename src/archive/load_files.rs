//! The files of `loadline load`: histograms, the time series, one row per request. They are created before the load
//! begins, so that an unwritable path fails early. `docs/load.md` describes the formats.

use super::histograms::HistogramLog;
use super::requests::{self, Common, quoted};
use super::whole_file::WholeFile;
use crate::error::{Error, Result};
use crate::record::{IntervalTimes, Quantiles, Row, Second};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The requested files, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct LoadPaths {
    /// Write per-second histograms, as an HdrHistogram log.
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
    /// Write a CSV row for each second.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write a CSV row for each request, or for a random sample of them.
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
}

/// The requests of a finished phase.
#[derive(Debug)]
pub struct PhaseRows<'a> {
    /// Name of the phase.
    pub name: &'a str,
    /// Whether the model is open, so response times exist.
    pub open: bool,
    /// One row per request, or a sample.
    pub rows: &'a [Row],
}

const SECONDS_HEAD: &str = "phase,at_s,seconds,ok,failed,achieved_per_s,received_bytes,open_connections,queue,\
    service_ms_p50,service_ms_p90,service_ms_p99,service_ms_p999,service_ms_max,\
    response_ms_p50,response_ms_p90,response_ms_p99,response_ms_p999,response_ms_max\n";

/// The output files of a running load.
#[derive(Debug)]
pub struct LoadFiles {
    hlog: Option<HistogramLog>,
    csv: Option<TextFile>,
    rows: Option<TextFile>,
    /// When the first phase began, on the clock: time zero of the columns.
    origin_ns: Option<u64>,
}

impl LoadFiles {
    /// Creates the files with their headers. Fails if a file cannot be created, or if two paths are equal.
    pub fn create(paths: &LoadPaths) -> Result<Self> {
        let wanted: Vec<&PathBuf> = [&paths.hlog, &paths.csv, &paths.rows].into_iter().flatten().collect();
        if let Some(twice) = wanted.iter().enumerate().find(|(at, path)| wanted[..*at].contains(path)) {
            return Err(Error::request(format!("two outputs would be written to {}", twice.1.display()))
                .hint("give each its own name"));
        }
        let file =
            |path: &Option<PathBuf>, head: &str| path.as_deref().map(|path| TextFile::create(path, head)).transpose();
        Ok(Self {
            hlog: paths.hlog.as_deref().map(log).transpose()?,
            csv: file(&paths.csv, SECONDS_HEAD)?,
            rows: file(&paths.rows, requests::HEAD)?,
            origin_ns: None,
        })
    }

    /// Marks the beginning of the first phase.
    pub fn begin(&mut self, now_ns: u64) {
        self.origin_ns.get_or_insert(now_ns);
    }

    /// Writes about one second of a phase. Errors: `Machine` if a write fails; writes to the other files are still
    /// attempted.
    pub fn second(&mut self, second: &Second, times: &IntervalTimes<'_>) -> Result<()> {
        let logged = self.hlog.as_mut().map_or(Ok(()), |log| log.append_times(&second.phase, times));
        let listed = self.csv.as_mut().map_or(Ok(()), |csv| csv.write(&second_row(second)));
        // Users can follow the growing series.
        logged.and(listed).and(self.csv.as_mut().map_or(Ok(()), TextFile::flush))
    }

    /// Writes a finished measured phase.
    pub fn phase(&mut self, phase: &PhaseRows<'_>) -> Result<()> {
        let Some(file) = &mut self.rows else { return Ok(()) };
        let common = Common { phase: phase.name, open: phase.open, origin_ns: self.origin_ns.unwrap_or(0) };
        file.write_rows(&common, phase.rows)?;
        file.flush()
    }
}

fn log(path: &Path) -> Result<HistogramLog> {
    let file = File::create(path).map_err(|cause| cannot_create(path, &cause))?;
    HistogramLog::begin(WholeFile::begin(path.to_owned(), file))
}

/// A missing directory is probably a typo; any other cause is a problem with the machine.
fn cannot_create(path: &Path, cause: &std::io::Error) -> Error {
    use std::io::ErrorKind;
    match cause.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            Error::request(format!("cannot create {}: {}", path.display(), crate::error::plain(cause)))
                .hint("specify a file in an existing directory")
        }
        _ => Error::io("create", path, cause),
    }
}

fn second_row(second: &Second) -> String {
    let queue = second.queue.map(|queue| queue.to_string()).unwrap_or_default();
    let mut cells = vec![
        quoted(&second.phase).into_owned(),
        format!("{:.3}", second.at_s),
        format!("{:.3}", second.seconds),
        second.ok.to_string(),
        second.failed.to_string(),
        format!("{:.1}", second.achieved_per_s),
        second.received_bytes.to_string(),
        second.open_connections.to_string(),
        queue,
    ];
    for times in [second.service_ms, second.response_ms] {
        let five = |times: Quantiles| [times.p50, times.p90, times.p99, times.p999, times.max];
        let shown = times.map(|times| five(times).map(|ms| format!("{ms:.3}")));
        cells.extend(shown.unwrap_or_default());
    }
    format!("{}\n", cells.join(","))
}

#[derive(Debug)]
struct TextFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl TextFile {
    fn create(path: &Path, head: &str) -> Result<Self> {
        let file = File::create(path).map_err(|cause| cannot_create(path, &cause))?;
        let mut file = Self { path: path.to_owned(), file: BufWriter::new(file) };
        file.write(head).map(|()| file)
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.file.write_all(text.as_bytes()).map_err(|cause| Error::io("write", &self.path, &cause))
    }

    fn write_rows(&mut self, common: &Common<'_>, rows: &[Row]) -> Result<()> {
        let written = rows.iter().try_for_each(|row| requests::write_row(&mut self.file, common, row));
        written.map_err(|cause| Error::io("write", &self.path, &cause))
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(|cause| Error::io("write", &self.path, &cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_outputs_to_one_file_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().join("x"));
        let paths = LoadPaths { csv: path.clone(), rows: path, ..LoadPaths::default() };
        let error = LoadFiles::create(&paths).unwrap_err();
        assert!(error.what.starts_with("two outputs would be written to"), "{error}");
    }

    #[test]
    fn rows_have_as_many_cells_as_the_header() {
        let columns = |text: &str| text.trim_end().split(',').count();
        assert_eq!(columns(&second_row(&Second::default())), columns(SECONDS_HEAD));
    }
}
