//! Phases that an outside program drove, in the table of the load: what it told, and whose words that are.

use super::numbers::NONE;
use crate::record::{DriverRecord, PhaseRecord, Times, Timing};
use crate::units::{grouped, milliseconds};

/// Requests, failed, rate and five times; a dash for what was not told.
pub(super) fn cells(phase: &PhaseRecord, driver: &DriverRecord) -> Vec<String> {
    let Some(reported) = &driver.reported else {
        let mut cells = vec![NONE.to_owned(); 8];
        "not read".clone_into(&mut cells[0]);
        return cells;
    };
    let failed = reported.failed.map_or(NONE.to_owned(), |failed| grouped(failed.total()));
    let mut cells = vec![grouped(phase.requests), failed, grouped(phase.achieved_per_s.round() as u64)];
    let Times { p50, p90, p99, p999, max, .. } = reported.times_ms;
    cells.extend([p50, p90, p99, p999, max].map(|time| time.map_or(NONE.to_owned(), milliseconds)));
    cells
}

/// Whether 0 requests would mean that there were none.
pub(super) fn is_counted(phase: &PhaseRecord) -> bool {
    phase.driver.as_ref().is_none_or(|driver| driver.reported.is_some())
}

/// The times a driver told.
pub(super) fn times(phase: &PhaseRecord) -> Option<Times> {
    Some(phase.driver.as_ref()?.reported.as_ref()?.times_ms)
}

/// One sentence for a phase that was driven: whose figures they are.
pub(super) fn note(phase: &PhaseRecord) -> Option<String> {
    let driver = phase.driver.as_ref()?;
    let name = &phase.name;
    Some(match &driver.reported {
        None => format!("{name} was driven from outside; what its driver printed was not read."),
        Some(reported) => {
            let tool = reported.tool.name();
            let times = match reported.timing {
                Timing::Service => "service times, from the actual start",
                Timing::Response => "response times, from the intended start",
            };
            format!("{name} was driven by {tool}: requests, rate and times are its own words, the times {times}.")
        }
    })
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
    fn what_was_not_told_is_a_dash_and_never_zero() {
        let driven = phase(Some(reported()));
        let row = cells(&driven, driven.driver.as_ref().unwrap());
        assert_eq!(row, ["1,200", "-", "100", "3.00", "-", "-", "-", "41.0"]);
        let counted = phase(Some(Reported { failed: Some(Failures::default()), ..reported() }));
        assert_eq!(cells(&counted, counted.driver.as_ref().unwrap())[1], "0");
        let unread = phase(None);
        assert_eq!(cells(&unread, unread.driver.as_ref().unwrap())[..3], ["not read", "-", "-"]);
        assert!(!is_counted(&unread) && is_counted(&driven) && is_counted(&PhaseRecord::default()));
    }

    #[test]
    fn a_note_says_whose_words_they_are() {
        let note = note(&phase(Some(Reported { timing: Timing::Response, tool: Tool::Wrk2, ..reported() }))).unwrap();
        assert!(note.starts_with("steady was driven by wrk2") && note.contains("intended start"), "{note}");
        assert_eq!(super::note(&PhaseRecord::default()), None);
    }
}
