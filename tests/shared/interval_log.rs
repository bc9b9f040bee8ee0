//! A run's histogram log, read by the reference library.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::collections::BTreeMap;
use std::path::Path;

/// Values in an interval log by tag.
pub(crate) fn logged(file: &Path) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for entry in IntervalLogIterator::new(&std::fs::read(file).unwrap()) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
            let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            *counted.entry(interval.tag().unwrap().as_str().to_owned()).or_default() += histogram.len();
        }
    }
    counted
}
