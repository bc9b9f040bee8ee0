//! The markers that a subject prints for Loadline, line by line.

use crate::subject::{Marker, Output};
use std::collections::BTreeMap;

/// The key of a marker at which the subject waits for permission to continue.
const WAIT: &str = "wait";

#[derive(Debug, Default)]
pub(super) struct Markers(usize);

impl Markers {
    /// The next printed marker, if any. Lines with only counters are markers, too.
    pub(super) fn next(&mut self, output: &Output) -> Option<Marker> {
        output.marker(self.0).inspect(|_| self.0 += 1)
    }
}

pub(super) fn waits(marker: &Marker) -> bool {
    marker.values.iter().any(|(key, value)| key == WAIT && value != "0")
}

/// A marker's numbers, without the key reserved for Loadline.
pub(super) fn counters(marker: &Marker) -> BTreeMap<String, f64> {
    let keys = marker.values.iter().map(|(key, _)| key).filter(|key| *key != WAIT);
    keys.filter_map(|key| Some((key.clone(), marker.number(key)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_marker_shows_whether_it_waits_and_has_counters() {
        let marker = |line| Marker::parse(line, &[], Duration::ZERO).unwrap();
        let full = marker("loadline: phase=full wait=1 instances=10000 mode=memory share=0.5 bad=NaN");
        assert!(waits(&full));
        let expected = BTreeMap::from([("instances".to_owned(), 10_000.0), ("share".to_owned(), 0.5)]);
        assert_eq!(counters(&full), expected);
        assert!(!waits(&marker("loadline: phase=full")) && !waits(&marker("loadline: phase=full wait=0")));
    }
}
