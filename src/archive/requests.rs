//! Individual requests as CSV (RFC 4180), one row each: writes and reads the format of `loadline load --rows` and a
//! trial's `requests.csv`. Also writes the columns of `ab -g`.

use super::lines::{Gaps, Lines, TextLine};
use super::whole_file::WholeFile;
use crate::error::{Error, Result};
use crate::record::{RequestRow, Row, Trial};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The file name in a trial's directory.
pub(super) const FILE: &str = "requests.csv";
/// Later versions may add columns; readers look them up by name.
pub(super) const HEAD: &str = "phase,request,connection,intended_s,started_s,connect_ms,first_byte_ms,service_ms,\
    response_ms,status,body_bytes,failure\n";
/// The columns of `ab -g`.
const AB_HEAD: &str = "starttime\tseconds\tctime\tdtime\tttime\twait\n";
/// A row takes about 100 bytes plus the phase's name.
const ROW_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct Common<'a> {
    pub(super) phase: &'a str,
    /// Whether response times exist.
    pub(super) open: bool,
    /// Time zero of the seconds, on the clock of the rows.
    pub(super) origin_ns: u64,
}

/// Writes a row. Durations are in ms, exact to the nanosecond; points in time are rounded to microseconds.
pub(super) fn write_row(out: &mut impl Write, common: &Common<'_>, row: &Row) -> io::Result<()> {
    let since = |ns: u64| Decimals(ns.saturating_sub(common.origin_ns).saturating_add(500) / 1000);
    let ms = |from: u64, to: u64| Decimals(to.saturating_sub(from));
    write!(out, "{},", quoted(common.phase))?;
    // Empty if the request never began: its kind in the mix had not been drawn yet.
    for number in [row.request, row.connection] {
        number.map_or(Ok(()), |number| write!(out, "{number}"))?;
        write!(out, ",")?;
    }
    write!(out, "{},{},", since(row.intended_ns), since(row.started_ns))?;
    for end_ns in [row.connected_ns, row.first_byte_ns, row.ended_ns] {
        write!(out, "{},", ms(row.started_ns, end_ns))?;
    }
    if common.open {
        write!(out, "{}", ms(row.intended_ns, row.ended_ns))?;
    }
    writeln!(out, ",{},{},{}", row.status, row.body_bytes, row.failure.unwrap_or_default())
}

/// Millionths, printed with six decimals.
struct Decimals(u64);

impl std::fmt::Display for Decimals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Quotes a CSV cell (RFC 4180).
pub(super) fn quoted(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => Cow::Borrowed(text),
    }
}

/// A `requests.csv` that is written phase by phase.
#[derive(Debug)]
pub(super) struct RequestFile(WholeFile);

impl RequestFile {
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        WholeFile::create(path).map(Self)
    }

    #[cfg(test)]
    pub(super) fn begin(file: WholeFile) -> Self {
        Self(file)
    }

    pub(super) fn append(&mut self, common: &Common<'_>, rows: &[Row]) -> Result<()> {
        let head = if self.0.is_empty() { HEAD } else { "" };
        self.0.append(|file| {
            let mut out = BufWriter::new(file);
            let written = out.write_all(head.as_bytes());
            let written = written.and_then(|()| rows.iter().try_for_each(|row| write_row(&mut out, common, row)));
            let written = written.and_then(|()| out.flush());
            // Prevents the dropped buffer from retrying the failed rows.
            drop(out.into_parts());
            written
        })
    }

    /// Empties the file to make room for the trial's own line. `Err` reports that requests were lost.
    pub(super) fn give_up(&mut self) -> Result<()> {
        match (self.0.is_empty(), self.0.clear()) {
            (false, Ok(())) => Err(self.0.error(&rustix::io::Errno::NOSPC.into())),
            _ => Ok(()),
        }
    }
}

/// A trial's individual requests: all of them, or a uniform sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Requests {
    /// In phase order, then by start; includes failed requests.
    pub rows: Vec<RequestRow>,
    /// Seconds from the Unix epoch to the command's start; `None` if `phases.hlog` does not show it.
    pub started_unix_s: Option<f64>,
    /// Unreadable parts, each with the reason.
    pub missing: Vec<String>,
}

impl Requests {
    /// The correct responses in the columns of `ab -g`, sorted by time, so the row number is the rank. The timestamps
    /// of `ab` are local time; these are UTC, and count from the epoch if the start is unknown.
    pub fn ab(&self) -> String {
        let mut rows: Vec<&RequestRow> = self.rows.iter().filter(|row| row.failure.is_none()).collect();
        rows.sort_by(|a, b| a.service_ms.total_cmp(&b.service_ms));
        let epoch_s = self.started_unix_s.unwrap_or(0.0);
        let lines = rows.into_iter().map(|row| {
            let times = [row.connect_ms, row.service_ms - row.connect_ms, row.service_ms];
            ab_row(epoch_s + row.started_s, times, (row.first_byte_ms - row.connect_ms).max(0.0))
        });
        std::iter::once(AB_HEAD.to_owned()).chain(lines).collect()
    }
}

/// Reads a trial's individual requests from the archive in this directory. Errors: `Request` if the trial has none.
pub fn requests(folder: &Path, trial: &Trial) -> Result<Requests> {
    let Some(folder) = super::trial_folder(folder, trial) else {
        return Err(Error::request(format!("trial {} has no directory in the archive", trial.index + 1)));
    };
    let path = folder.join(FILE);
    let mut found = Requests::default();
    let gaps = read(&path, &mut |row| found.rows.push(row.owned()));
    if let Some(why) = gaps.unopened() {
        return Err(Error::request(format!("no record of individual requests at {}: {why}", path.display()))
            .hint("`loadline run` and `loadline weigh` record them if Loadline drives the load"));
    }
    found.missing.extend(gaps.words());
    found.started_unix_s = super::evidence_times::started_unix_s(&folder, trial);
    Ok(found)
}

/// A row in the columns of `ab -g`. `times` are the connect time, the time from then to the end, and their sum, in ms.
fn ab_row(start_unix_s: f64, times: [f64; 3], wait_ms: f64) -> String {
    let start_s = start_unix_s as i64;
    let start = jiff::Timestamp::from_second(start_s).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let [connect, rest, total] = times;
    let start = start.strftime("%a %b %d %H:%M:%S %Y");
    format!("{start}\t{start_s}\t{connect:.3}\t{rest:.3}\t{total:.3}\t{wait_ms:.3}\n")
}

// ---- Reading ----

/// A row as stored in the file.
#[derive(Debug)]
pub(super) struct Read<'a> {
    pub(super) phase: Cow<'a, str>,
    pub(super) started_s: f64,
    pub(super) service_ms: f64,
    pub(super) response_ms: Option<f64>,
    pub(super) failure: Option<&'a str>,
    cells: Cells<'a>,
}

impl Read<'_> {
    /// Copies all columns; damaged values in less important ones are replaced by defaults.
    fn owned(&self) -> RequestRow {
        let cells = &self.cells;
        RequestRow {
            phase: self.phase.clone().into_owned(),
            request: cells.number("request"),
            connection: cells.number("connection"),
            intended_s: cells.time("intended_s").unwrap_or(self.started_s),
            started_s: self.started_s,
            connect_ms: cells.time("connect_ms").unwrap_or_default(),
            first_byte_ms: cells.time("first_byte_ms").unwrap_or(self.service_ms),
            service_ms: self.service_ms,
            response_ms: self.response_ms,
            status: cells.number("status").unwrap_or_default(),
            body_bytes: cells.number("body_bytes").unwrap_or_default(),
            failure: self.failure.map(str::to_owned),
        }
    }
}

/// Reads rows one by one; returns the unreadable parts.
pub(super) fn read(path: &Path, each: &mut dyn FnMut(&Read<'_>)) -> Gaps {
    let mut gaps = Gaps::of(FILE);
    let Some(mut lines) = gaps.open(path, ROW_BYTES_MAX) else { return gaps };
    let Some(columns) = head(&mut lines, &mut gaps) else { return gaps };
    let mut ranges = Vec::new();
    while let Some(line) = gaps.next(&mut lines) {
        let row = std::str::from_utf8(line.bytes).ok().and_then(|text| row(text, &columns, &mut ranges, each));
        if row.is_none() {
            gaps.damaged(line.number);
        }
    }
    gaps
}

fn head(lines: &mut Lines<File>, gaps: &mut Gaps) -> Option<Vec<String>> {
    let TextLine { bytes, number } = gaps.next(lines)?;
    let text = String::from_utf8_lossy(bytes);
    let columns: Vec<String> = text.trim_end().split(',').map(str::to_owned).collect();
    // Nothing can be shown without these columns.
    if ["phase", "started_s", "service_ms"].iter().all(|name| columns.iter().any(|column| column == name)) {
        return Some(columns);
    }
    gaps.damaged(number);
    None
}

/// `None` if the row is damaged.
fn row(text: &str, columns: &[String], ranges: &mut Vec<Range<usize>>, each: &mut dyn FnMut(&Read<'_>)) -> Option<()> {
    let text = text.trim_end_matches(['\n', '\r']);
    split(text, ranges)?;
    if ranges.len() != columns.len() {
        return None;
    }
    let cells = Cells { text, columns, ranges };
    let read = Read {
        phase: cells.unquoted("phase")?,
        started_s: cells.time("started_s")?,
        service_ms: cells.time("service_ms")?,
        response_ms: cells.time("response_ms"),
        failure: cells.get("failure").filter(|failure| !failure.is_empty()),
        cells,
    };
    each(&read);
    Some(())
}

/// Finds the ranges of a row's cells, including quotes; `None` if a quote is not closed.
fn split(text: &str, ranges: &mut Vec<Range<usize>>) -> Option<()> {
    ranges.clear();
    let (mut begin, mut in_quotes) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => in_quotes = !in_quotes,
            b',' if !in_quotes => {
                ranges.push(begin..at);
                begin = at + 1;
            }
            _ => {}
        }
    }
    ranges.push(begin..text.len());
    (!in_quotes).then_some(())
}

#[derive(Debug, Clone, Copy)]
struct Cells<'a> {
    text: &'a str,
    columns: &'a [String],
    ranges: &'a [Range<usize>],
}

impl<'a> Cells<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        let at = self.columns.iter().position(|column| column == name)?;
        self.text.get(self.ranges.get(at)?.clone())
    }

    fn unquoted(&self, name: &str) -> Option<Cow<'a, str>> {
        let cell = self.get(name)?;
        match cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')) {
            Some(inner) => Some(Cow::Owned(inner.replace("\"\"", "\""))),
            None => Some(Cow::Borrowed(cell)),
        }
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.get(name)?.parse().ok()
    }

    /// A number of seconds or milliseconds.
    fn time(&self, name: &str) -> Option<f64> {
        self.number(name).filter(|time: &f64| time.is_finite() && *time >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Row = Row {
        intended_ns: 1_000_000_000,
        started_ns: 1_500_000_000,
        connected_ns: 1_501_000_000,
        first_byte_ns: 1_503_000_000,
        ended_ns: 1_504_000_007,
        body_bytes: 12,
        request: Some(1),
        connection: Some(3),
        status: 200,
        failure: None,
    };

    fn text(common: &Common<'_>, row: &Row) -> String {
        let mut out = Vec::new();
        write_row(&mut out, common, row).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn request_rows_match_the_header() {
        let common = Common { phase: "a,b", open: true, origin_ns: 1_000_000_000 };
        let expect = "\"a,b\",1,3,0.000000,0.500000,1.000000,3.000000,4.000007,504.000007,200,12,\n";
        assert_eq!(text(&common, &ROW), expect);
        let closed = Common { phase: "x", open: false, ..common };
        let failed = Row { failure: Some("timed out"), status: 0, ..ROW };
        let expect = "x,1,3,0.000000,0.500000,1.000000,3.000000,4.000007,,0,12,timed out\n";
        assert_eq!(text(&closed, &failed), expect);
        assert_eq!(expect.split(',').count(), HEAD.split(',').count());
    }

    #[test]
    fn written_request_rows_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let mut file = RequestFile::create(path.clone()).unwrap();
        for (phase, open) in [("a \"b\", c", true), ("steady", false)] {
            let rows = [ROW, Row { failure: Some("reset"), ..ROW }];
            file.append(&Common { phase, open, origin_ns: 0 }, &rows).unwrap();
        }
        let mut rows = Vec::new();
        let gaps = read(&path, &mut |row| rows.push(row.owned()));
        assert_eq!(gaps.words(), None);
        let expect = RequestRow {
            phase: "a \"b\", c".to_owned(),
            request: Some(1),
            connection: Some(3),
            intended_s: 1.0,
            started_s: 1.5,
            connect_ms: 1.0,
            first_byte_ms: 3.0,
            service_ms: 4.000_007,
            response_ms: Some(504.000_007),
            status: 200,
            body_bytes: 12,
            failure: None,
        };
        assert_eq!(rows[0], expect);
        assert_eq!(rows[1].failure.as_deref(), Some("reset"));
        assert_eq!((rows[2].phase.as_str(), rows[2].response_ms), ("steady", None));
        let found = Requests { rows, started_unix_s: Some(0.0), missing: Vec::new() };
        let line = "Thu Jan 01 00:00:01 1970\t1\t1.000\t3.000\t4.000\t2.000\n";
        assert_eq!(found.ab(), format!("{AB_HEAD}{line}{line}"));
    }

    #[test]
    fn columns_are_found_by_name_and_damaged_rows_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let text = "service_ms,later,phase,started_s\n2.5,x,a,1\nNaN,x,a,1\n-1,x,a,1\n3,x,\"a,1\n3,a,1\n4,\"\",b,2\n";
        std::fs::write(&path, text).unwrap();
        let mut rows = Vec::new();
        let gaps = read(&path, &mut |row| rows.push((row.phase.to_string(), row.started_s, row.service_ms)));
        assert_eq!(rows, [("a".to_owned(), 1.0, 2.5), ("b".to_owned(), 2.0, 4.0)]);
        let words = "requests.csv: 4 lines are damaged and were skipped; the first is line 3";
        assert_eq!(gaps.words().as_deref(), Some(words));
    }
}
