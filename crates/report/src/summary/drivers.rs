//! Phases driven by an external program, in the load table: reported figures and their source.

use crate::record::{DriverRecord, PhaseRecord, Times, Timing};
use crate::units::{grouped, milliseconds};
use crate::words::{dash, gathered};

/// Requests, failures, rate, and five times; a dash if not reported.
pub(super) fn cells(phase: &PhaseRecord, driver: &DriverRecord) -> Vec<String> {
    let Some(reported) = &driver.reported else {
        return [vec!["not read".to_owned()], vec![dash(); 7]].concat();
    };
    let failed = reported.failed.map_or_else(dash, |failed| grouped(failed.total()));
    let mut cells = vec![grouped(phase.requests), failed, grouped(phase.achieved_per_s.round() as u64)];
    let Times { p50, p90, p99, p999, max, .. } = reported.times_ms;
    cells.extend([p50, p90, p99, p999, max].map(|time| time.map_or_else(dash, milliseconds)));
    cells
}

pub(super) fn times(phase: &PhaseRecord) -> Option<Times> {
    Some(phase.driver.as_ref()?.reported.as_ref()?.times_ms)
}

/// A sentence per kind of driver: the source of the figures.
pub(super) fn notes(phases: &[PhaseRecord]) -> Vec<String> {
    let driven = phases.iter().filter_map(|phase| Some((sentence(phase.driver.as_ref()?), phase.name.as_str())));
    let told = gathered(driven, String::eq).into_iter();
    told.map(|(sentence, names)| format!("{}: {sentence}", names.join(", "))).collect()
}

fn sentence(driver: &DriverRecord) -> String {
    let Some(reported) = &driver.reported else {
        return "driven by an external tool, whose output was not read.".to_owned();
    };
    let times = match reported.timing {
        Timing::Service => "service times, from the actual start",
        Timing::Response => "response times, from the intended start",
    };
    format!("driven by {}, which reported requests, rate, and times; the times are {times}.", reported.tool.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Failures, Reported, Tool};

    fn phase(reported: Option<Reported>) -> PhaseRecord {
        let requests = reported.as_ref().map_or(0, |reported| reported.requests);
        let driver = DriverRecord { command: "wrk".to_owned(), reported, ..DriverRecord::default() };
        PhaseRecord {
            name: "steady".to_owned(),
            requests,
            achieved_per_s: 99.6,
            driver: Some(driver),
            ..PhaseRecord::default()
        }
    }

    fn reported() -> Reported {
        Reported {
            tool: Tool::Wrk,
            requests: 1200,
            failed: None,
            seconds: Some(12.0),
            requests_per_s: Some(100.0),
            times_ms: Times { p50: Some(3.0), max: Some(41.0), ..Times::default() },
            timing: Timing::Service,
            received_bytes: None,
        }
    }

    #[test]
    fn values_that_a_driver_did_not_report_are_dashes() {
        let driven = phase(Some(reported()));
        let row = cells(&driven, driven.driver.as_ref().unwrap());
        assert_eq!(row, ["1,200", "-", "100", "3.00", "-", "-", "-", "41.0"]);
        let counted = phase(Some(Reported { failed: Some(Failures::default()), ..reported() }));
        assert_eq!(cells(&counted, counted.driver.as_ref().unwrap())[1], "0");
        let unread = phase(None);
        assert_eq!(cells(&unread, unread.driver.as_ref().unwrap())[..3], ["not read", "-", "-"]);
        assert!(!unread.is_counted() && driven.is_counted() && PhaseRecord::default().is_counted());
    }

    #[test]
    fn a_note_names_the_tool_that_reported_the_numbers() {
        let wrk = || phase(Some(reported()));
        let corrected = phase(Some(Reported { timing: Timing::Response, tool: Tool::Wrk2, ..reported() }));
        let notes = notes(&[wrk(), PhaseRecord::default(), corrected, wrk()]);
        let [wrk, wrk2] = notes.as_slice() else { panic!("{notes:?}") };
        assert!(wrk.starts_with("steady, steady: driven by wrk,") && wrk.contains("actual start"), "{wrk}");
        assert!(wrk2.starts_with("steady: driven by wrk2,") && wrk2.contains("intended start"), "{wrk2}");
    }
}
