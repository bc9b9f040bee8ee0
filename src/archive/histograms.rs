//! HdrHistogram's interval log (`.hlog`, version 1.3): one line per interval, times in seconds since the epoch, values
//! in ns, `Interval_Max` in ms. Standard viewers can read it.

use super::whole_file::WholeFile;
use crate::error::{Error, Result};
use crate::record::IntervalTimes;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

const HEADER: &str = "#[Histogram log format version 1.3]\n\
    #[Values: ns; tags: PHASE-service, from the actual start; PHASE-response, from the intended start]\n\
    \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
/// ns to ms, for the `Interval_Max` column.
const MAX_VALUE_DIVISOR: f64 = 1e6;

pub(super) struct HistogramLog {
    file: WholeFile,
    serializer: V2DeflateSerializer,
}

impl std::fmt::Debug for HistogramLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HistogramLog({:?})", self.file)
    }
}

impl HistogramLog {
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        Self::begin(WholeFile::create(path)?)
    }

    pub(super) fn begin(mut file: WholeFile) -> Result<Self> {
        file.append(|mut file| file.write_all(HEADER.as_bytes()))?;
        Ok(Self { file, serializer: V2DeflateSerializer::new() })
    }

    /// Appends the times of a phase's interval, tagged `PHASE-service` and, in an open model, `PHASE-response`. Writes
    /// both lines or neither, so it can be retried.
    pub(super) fn append_times(&mut self, phase: &str, times: &IntervalTimes<'_>) -> Result<()> {
        let mut lines = self.line(&tagged(phase, "service"), times.service, times.start, times.length)?;
        if let Some(response) = times.response {
            lines.push_str(&self.line(&tagged(phase, "response"), response, times.start, times.length)?);
        }
        self.file.append(|mut file| file.write_all(lines.as_bytes()))
    }

    /// One interval. A fresh builder for each line works because builders write no header.
    fn line(&mut self, tag: &str, histogram: &Histogram<u64>, start: Duration, length: Duration) -> Result<String> {
        let mut line = Vec::new();
        let written = IntervalLogWriterBuilder::new()
            .begin_log_with(&mut line, &mut self.serializer)
            .map_err(|cause| cause.to_string())
            .and_then(|mut log| {
                log.write_histogram(histogram, start, length, Tag::new(tag)).map_err(|cause| cause.to_string())
            });
        written.map_err(|cause| Error::bug(format!("cannot encode a histogram: {cause}")))?;
        Ok(rescale_max(&line, histogram.max()))
    }
}

/// The tag for a phase's timing, without characters that would end the tag.
pub(super) fn tagged(phase: &str, time: &str) -> String {
    format!("{phase}-{time}").chars().map(|c| if c == ',' || c.is_whitespace() { '_' } else { c }).collect()
}

/// Converts the maximum to ms. (The crate's own divisor would add a comment to every line.)
fn rescale_max(line: &[u8], max_ns: u64) -> String {
    let line = String::from_utf8_lossy(line);
    let raw = format!(",{:.3},", max_ns as f64);
    line.replacen(&raw, &format!(",{:.3},", max_ns as f64 / MAX_VALUE_DIVISOR), 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn a_written_histogram_log_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.hlog");
        let mut log = HistogramLog::create(path.clone()).unwrap();
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        histogram.record(20_000_000).unwrap();
        let (start, length) = (Duration::from_secs(1000), Duration::from_secs(1));
        let times = IntervalTimes { service: &histogram, response: None, start, length };
        log.append_times("steady phase,1", &times).unwrap();
        let text = std::fs::read(&path).unwrap();
        let entries: Vec<_> = IntervalLogIterator::new(&text).collect::<Result<_, _>>().unwrap();
        let [LogEntry::Interval(interval)] = entries.as_slice() else { panic!("{entries:?}") };
        assert_eq!(interval.tag().unwrap().as_str(), "steady_phase_1-service");
        assert!((interval.max() - 20.0).abs() < 0.1, "{}", interval.max());
        let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
        let back: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(back.len(), 1);
    }
}
