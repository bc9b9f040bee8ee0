//! The files of `loadline load`: histograms, the time series, a row for each request. Created before the load begins,
//! so that a path that cannot be written costs nothing; formats are in `docs/load.md`.

use super::histograms::{HistogramLog, IntervalTimes};
use super::percentiles;
use super::requests::{self, Common, quoted};
use super::whole_file::WholeFile;
use crate::error::{Error, Result};
use crate::record::{Quantiles, Row, Second};
use hdrhistogram::Histogram;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The files that are wanted, by their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadPaths {
    /// Histograms about every second, `.hlog`.
    pub hlog: Option<PathBuf>,
    /// The distribution of a whole phase, `.hgrm`.
    pub hgrm: Option<PathBuf>,
    /// The time series.
    pub csv: Option<PathBuf>,
    /// A row for each request.
    pub rows: Option<PathBuf>,
    /// A row for each correct answer in the columns of `ab -g`.
    pub gnuplot: Option<PathBuf>,
}

/// A phase whose distribution and requests are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredPhase {
    /// Name of the phase.
    pub name: String,
    /// Whether there are response times beside the service times.
    pub open: bool,
}

/// What is known of a phase when it is over.
#[derive(Debug)]
pub struct PhaseTimes<'a> {
    /// Name of the phase.
    pub name: &'a str,
    /// One row for each request, or a sample.
    pub rows: &'a [Row],
    /// Service times of correct answers, ns.
    pub service: &'a Histogram<u64>,
    /// Response times of the same; `None` in a closed model.
    pub response: Option<&'a Histogram<u64>>,
}

const SECONDS_HEAD: &str = "phase,at_s,seconds,ok,failed,achieved_per_s,received_bytes,open_connections,queue,\
    service_ms_p50,service_ms_p90,service_ms_p99,service_ms_p999,service_ms_max,\
    response_ms_p50,response_ms_p90,response_ms_p99,response_ms_p999,response_ms_max\n";

/// A distribution file: of which phase, of which times.
#[derive(Debug)]
struct Distribution {
    phase: String,
    response: bool,
    file: TextFile,
}

/// The files of a load being written.
#[derive(Debug)]
pub struct LoadFiles {
    hlog: Option<HistogramLog>,
    distributions: Vec<Distribution>,
    csv: Option<TextFile>,
    rows: Option<TextFile>,
    gnuplot: Option<TextFile>,
    /// Correct answers for the columns of `ab -g`, which are sorted over all phases.
    answers: Vec<Row>,
    /// Seconds from the Unix epoch to the origin of the clock.
    epoch_s: f64,
    /// When the first phase began, on the clock: the origin of the columns in seconds.
    origin_ns: Option<u64>,
}

impl LoadFiles {
    /// Creates the files, with their heads. `epoch_s` is the Unix time at the clock's origin.
    ///
    /// # Errors
    /// Where a file cannot be created, or two are the same.
    pub fn create(paths: &LoadPaths, measured: &[MeasuredPhase], epoch_s: f64) -> Result<Self> {
        let mut wanted: Vec<PathBuf> = Vec::new();
        let singles = [&paths.hlog, &paths.csv, &paths.rows, &paths.gnuplot];
        wanted.extend(singles.into_iter().flatten().cloned());
        let names = paths.hgrm.as_deref().map(|path| distribution_paths(path, measured)).unwrap_or_default();
        wanted.extend(names.iter().map(|(path, _, _)| path.clone()));
        if let Some(twice) = wanted.iter().enumerate().find(|(at, path)| wanted[..*at].contains(path)) {
            return Err(Error::request(format!("two outputs would be written to {}", twice.1.display()))
                .hint("give each a name of its own"));
        }
        let file = |path: &Option<PathBuf>, head: &str| {
            path.as_deref().map(|path| TextFile::create(path).and_then(|file| file.begun(head))).transpose()
        };
        let distribution = |(path, phase, response): (PathBuf, String, bool)| {
            TextFile::create(&path).map(|file| Distribution { phase, response, file })
        };
        Ok(Self {
            hlog: paths.hlog.as_deref().map(log).transpose()?,
            distributions: names.into_iter().map(distribution).collect::<Result<_>>()?,
            csv: file(&paths.csv, SECONDS_HEAD)?,
            rows: file(&paths.rows, requests::HEAD)?,
            gnuplot: file(&paths.gnuplot, requests::GNUPLOT_HEAD)?,
            answers: Vec::new(),
            epoch_s,
            origin_ns: None,
        })
    }

    /// The first phase begins.
    pub fn begin(&mut self, now_ns: u64) {
        self.origin_ns.get_or_insert(now_ns);
    }

    /// About a second of a phase.
    ///
    /// # Errors
    /// `Machine` where it cannot be written; the other files were tried too.
    pub fn second(&mut self, second: &Second, times: &IntervalTimes<'_>) -> Result<()> {
        let logged = self.hlog.as_mut().map_or(Ok(()), |log| log.append_times(&second.phase, times));
        let listed = self.csv.as_mut().map_or(Ok(()), |csv| csv.write(&second_row(second)));
        // A reader may follow the series while it grows.
        logged.and(listed).and(self.csv.as_mut().map_or(Ok(()), TextFile::flush))
    }

    /// A measured phase is over.
    ///
    /// # Errors
    /// `Machine` where it cannot be written; the other files were tried too.
    pub fn phase(&mut self, times: &PhaseTimes<'_>) -> Result<()> {
        let mut done = Ok(());
        for distribution in self.distributions.iter_mut().filter(|of| of.phase == times.name) {
            let histogram = if distribution.response { times.response } else { Some(times.service) };
            let text = histogram.map(percentiles::text).unwrap_or_default();
            done = done.and(distribution.file.write(&text).and_then(|()| distribution.file.flush()));
        }
        if let Some(file) = &mut self.rows {
            let origin_ns = self.origin_ns.unwrap_or(0);
            let common = Common { phase: times.name, open: times.response.is_some(), origin_ns };
            let written = file.write_rows(&common, times.rows);
            done = done.and(written.and_then(|()| file.flush()));
        }
        if self.gnuplot.is_some() {
            self.answers.extend(times.rows.iter().filter(|row| row.failure.is_none()));
        }
        done
    }

    /// Writes what needs all phases, and what is still in memory.
    ///
    /// # Errors
    /// `Machine` where it cannot be written.
    pub fn close(mut self) -> Result<()> {
        let Some(mut file) = self.gnuplot.take() else { return Ok(()) };
        // As ab does, so that the row number is the quantile.
        self.answers.sort_by_key(|row| row.ended_ns.saturating_sub(row.started_ns));
        self.answers.iter().try_for_each(|row| file.write(&gnuplot_row(row, self.epoch_s)))?;
        file.flush()
    }
}

fn log(path: &Path) -> Result<HistogramLog> {
    let file = File::create(path).map_err(|cause| cannot_create(path, &cause))?;
    HistogramLog::begin(WholeFile::begin(path.to_owned(), file))
}

/// A folder that is not there was mistyped; what else keeps a file from being created is the machine's.
fn cannot_create(path: &Path, cause: &std::io::Error) -> Error {
    use std::io::ErrorKind;
    match cause.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            Error::request(format!("cannot create {}: {}", path.display(), crate::error::plain(cause)))
                .hint("give a file in a folder that exists")
        }
        _ => Error::io("create", path, cause),
    }
}

/// The distribution files below this name: of the phase, where there are several; `.service` where a file of the
/// response times stands beside.
fn distribution_paths(path: &Path, measured: &[MeasuredPhase]) -> Vec<(PathBuf, String, bool)> {
    let mut found = Vec::new();
    for phase in measured {
        let own = if measured.len() > 1 { before_extension(path, &phase.name) } else { path.to_owned() };
        if phase.open {
            found.push((before_extension(&own, "service"), phase.name.clone(), false));
        }
        found.push((own, phase.name.clone(), phase.open));
    }
    found
}

/// `a/b.hgrm` with `x` is `a/b.x.hgrm`.
fn before_extension(path: &Path, word: &str) -> PathBuf {
    let mut name = path.file_stem().map(OsString::from).unwrap_or_default();
    name.push(format!(".{word}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
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

fn gnuplot_row(row: &Row, epoch_s: f64) -> String {
    let ms = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
    let connect = ms(row.started_ns, row.connected_ns);
    let times = [connect, ms(row.connected_ns, row.ended_ns), ms(row.started_ns, row.ended_ns)];
    requests::gnuplot_row(epoch_s + row.started_ns as f64 / 1e9, times, ms(row.connected_ns, row.first_byte_ns))
}

/// A text file being written.
#[derive(Debug)]
struct TextFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl TextFile {
    fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|cause| cannot_create(path, &cause))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file) })
    }

    fn begun(mut self, head: &str) -> Result<Self> {
        self.write(head)?;
        Ok(self)
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
    fn distributions_are_named_by_what_they_hold() {
        let phase = |name: &str, open| MeasuredPhase { name: name.to_owned(), open };
        let names = |measured: &[MeasuredPhase]| -> Vec<String> {
            let found = distribution_paths(Path::new("a/b.hgrm"), measured).into_iter();
            found.map(|(path, _, response)| format!("{} {response}", path.display())).collect()
        };
        assert_eq!(names(&[phase("steady", false)]), ["a/b.hgrm false"]);
        assert_eq!(names(&[phase("steady", true)]), ["a/b.service.hgrm false", "a/b.hgrm true"]);
        let several = names(&[phase("one", false), phase("two", true)]);
        assert_eq!(several, ["a/b.one.hgrm false", "a/b.two.service.hgrm false", "a/b.two.hgrm true"]);
        assert_eq!(before_extension(Path::new("plain"), "x"), Path::new("plain.x"));
    }

    #[test]
    fn no_two_outputs_share_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().join("x"));
        let paths = LoadPaths { csv: path.clone(), rows: path, ..LoadPaths::default() };
        let error = LoadFiles::create(&paths, &[], 0.0).unwrap_err();
        assert!(error.what.starts_with("two outputs would be written to"), "{error}");
    }

    #[test]
    fn rows_have_as_many_cells_as_the_head() {
        let row = Row {
            intended_ns: 1_000_000_000,
            started_ns: 1_500_000_000,
            connected_ns: 1_501_000_000,
            first_byte_ns: 1_503_000_000,
            ended_ns: 1_504_000_000,
            body_bytes: 12,
            request: 1,
            connection: 3,
            status: 200,
            failure: None,
        };
        assert_eq!(gnuplot_row(&row, 0.0), "Thu Jan 01 00:00:01 1970\t1\t1.000\t3.000\t4.000\t2.000\n");
        let columns = |text: &str| text.trim_end().split(',').count();
        assert_eq!(columns(&second_row(&Second::default())), columns(SECONDS_HEAD));
    }
}
