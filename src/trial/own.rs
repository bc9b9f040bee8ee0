//! A phase in which the subject generates its own work. Awaits the subject's markers in order, measures at each one,
//! and records the operations counted between two markers as a work phase.

use super::description::describe;
use super::engine_thread::LOOK_EVERY;
use super::event::Event;
use super::markers::{counters, waits};
use super::phase::Snapshot;
use super::tally::Tally;
use super::trialling::Trialling;
use super::{ending, guard};
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::record::PhaseRecord;
use crate::scenario::{Look, OwnWork, Phase, Ready};
use crate::subject::{Exit, Marker};
use std::collections::BTreeMap;
use std::time::Duration;

/// After a longer delay, a measurement no longer shows the state at its marker.
const LATE_MAX: Duration = Duration::from_millis(100);

/// A phase between two markers.
struct Begun {
    name: String,
    /// When its marker arrived, on the clock.
    marked_at: Duration,
    /// When its work began to count, on the clock.
    since: Duration,
    /// The subject printed something before it was allowed to continue.
    early: bool,
    before: Snapshot,
    counters: BTreeMap<String, f64>,
    tally: Tally,
}

/// Markers at which the subject did not wait for the measurement.
#[derive(Default)]
struct Unawaited {
    names: Vec<String>,
    late: Duration,
}

impl Unawaited {
    /// `late` is the time from the marker to the end of the measurement.
    fn add(&mut self, name: &str, late: Duration) {
        self.names.push(name.to_owned());
        self.late = self.late.max(late);
    }
}

impl Trialling<'_> {
    /// Skips a marker that showed readiness and begins no phase. If the subject waits at it, lets the subject continue.
    pub(super) fn pass_ready_marker(&mut self) {
        let Ready::Phase(name) = &self.plan.subject.ready else { return };
        let load = &self.plan.load;
        if !load.has_own_work() || load.own_works().any(|own| own.phases.contains(name)) {
            return;
        }
        while let Some(marker) = self.markers.next(self.subject.output()) {
            if marker.phase.as_ref() == Some(name) {
                if waits(&marker) {
                    self.subject.go();
                }
                return;
            }
        }
    }

    /// Follows the subject through its own phases. Errors: `Interrupted`; `Subject` if it died, or if a marker is
    /// missing or unexpected. Earlier measurements are recorded.
    pub(super) fn own_work(&mut self, phase: &Phase, own: &OwnWork) -> Result<()> {
        self.notes.sink.receive(&Event::PhaseStarted { name: &phase.name, description: describe(phase) });
        let mut begun: Option<Begun> = None;
        let mut unawaited = Unawaited::default();
        let mut done = Ok(());
        for index in 0..own.phases.len() {
            let came = self.await_marker(phase, own, index, begun.as_mut());
            let ended = match begun.take() {
                Some(begun) => {
                    if begun.early {
                        unawaited.add(&begun.name, begun.since.saturating_sub(begun.marked_at));
                    }
                    self.end_begun(begun, &came)
                }
                None => Ok(()),
            };
            let next = came.and_then(|marker| ended.map(|()| marker));
            match next {
                Ok(marker) => begun = self.reach(own, index, &marker, self.goes_on(phase, own, index), &mut unawaited),
                Err(error) => {
                    done = Err(error);
                    break;
                }
            }
        }
        self.guard.end();
        // Without full marks, a subject that does not wait causes no error.
        if !unawaited.names.is_empty() && self.plan.look == Look::Full {
            let late_ms = unawaited.late.as_secs_f64() * 1e3;
            self.notes.doubts.push(Doubt::MarkersNotAwaited { marks: unawaited.names, late_ms });
        }
        done
    }

    /// Whether any work follows this marker. At the last one, the subject stays paused, so that all later measurements
    /// see the same state.
    fn goes_on(&self, phase: &Phase, own: &OwnWork, index: usize) -> bool {
        let load = &self.plan.load;
        let later = load.iter().skip_while(|other| other.name != phase.name).skip(1);
        index + 1 < own.phases.len() || later.into_iter().any(|other| other.kind.works())
    }

    /// Measures at a marker, and begins its phase.
    fn reach(
        &mut self,
        own: &OwnWork,
        index: usize,
        marker: &Marker,
        goes_on: bool,
        unawaited: &mut Unawaited,
    ) -> Option<Begun> {
        let name = &own.phases[index];
        let counters = counters(marker);
        let begins = index + 1 < own.phases.len();
        let waits = waits(marker);
        // A subject that does not wait works during the measurement, which is therefore part of its phase.
        let early = (begins && !waits).then(|| self.snapshot());
        let lay = self.stage.clock.now().saturating_sub(marker.at);
        self.mark_at(name, own.collect(), counters.clone());
        self.pass_on_all(None);
        if !waits && (begins || lay > LATE_MAX) {
            unawaited.add(name, self.stage.clock.now().saturating_sub(marker.at));
        }
        if !begins {
            if goes_on && waits {
                self.subject.go();
            }
            return None;
        }
        let description = format!("the program runs until its marker `{}`", own.phases[index + 1]);
        self.notes.sink.receive(&Event::PhaseStarted { name, description });
        self.peaks.rss_bytes_max = 0;
        self.peaks.allocated.clear();
        let before = early.unwrap_or_else(|| self.snapshot());
        let since = if waits { self.stage.clock.now() } else { marker.at };
        self.guard.begin(&self.plan.guard, name, None, since.as_nanos() as u64);
        if waits {
            self.subject.go();
        }
        Some(Begun {
            name: name.clone(),
            marked_at: marker.at,
            since,
            early: false,
            before,
            counters,
            tally: Tally::default(),
        })
    }

    /// Waits for the next marker; counters before it belong to the current phase.
    fn await_marker(
        &mut self,
        phase: &Phase,
        own: &OwnWork,
        index: usize,
        mut begun: Option<&mut Begun>,
    ) -> Result<Marker> {
        let until = self.stage.clock.now() + own.within.0;
        let name = begun.as_ref().map_or(phase.name.as_str(), |begun| begun.name.as_str()).to_owned();
        let place = |error: Error| match index.checked_sub(1).and_then(|before| own.phases.get(before)) {
            Some(before) => error.at(format!("in phase {}, after the marker `{before}`", phase.name)),
            None => error.at(format!("in phase {}, before its first marker", phase.name)),
        };
        loop {
            if let Some(marker) = self.next_marker(begun.as_deref_mut()) {
                return self.judge_marker(own, index, marker).map_err(place);
            }
            if self.stage.interrupted() {
                return Err(place(Error::interrupted()));
            }
            if self.has_died() {
                let error = self.died_at_work(own, index);
                // Its last counts have been read by now.
                self.next_marker(begun.as_deref_mut());
                return Err(place(error));
            }
            if let Some(missed) = self.guard.check(self.stage.clock.now_ns()) {
                return Err(place(guard::ended_early(missed)));
            }
            if self.stage.clock.now() >= until {
                return Err(place(self.no_marker(own, index)));
            }
            self.next_message(Some(&name), LOOK_EVERY);
        }
    }

    /// The next marker that names a phase. Lines with only counters belong to the current phase, or are dropped if none
    /// runs.
    fn next_marker(&mut self, mut begun: Option<&mut Begun>) -> Option<Marker> {
        while let Some(marker) = self.markers.next(self.subject.output()) {
            if let Some(begun) = begun.as_deref_mut() {
                begun.early |= marker.at < begun.since;
                if marker.phase.is_none() {
                    begun.tally.add(&marker);
                }
            }
            if marker.phase.is_some() {
                return Some(marker);
            }
        }
        None
    }

    /// Returns the marker if it is the expected one.
    fn judge_marker(&self, own: &OwnWork, index: usize, marker: Marker) -> Result<Marker> {
        let name = marker.phase.clone().unwrap_or_default();
        let due = &own.phases[index];
        if name == *due {
            return Ok(marker);
        }
        let order = || format!("the order in `phases` is: {}", own.phases.join(", "));
        let named = self.plan.load.own_works().any(|own| own.phases.contains(&name));
        let error = if named && (own.phases[..index].contains(&name) || self.notes.trial.mark(&name).is_some()) {
            Error::subject(format!("the program printed the marker `{name}` twice")).hint(order())
        } else if named {
            Error::subject(format!("the program printed the marker `{name}`, but `{due}` was expected")).hint(order())
        } else {
            let error = Error::subject(format!("the program printed the marker `{name}`, which is not in `phases`"));
            error.at(format!("expected: `{due}`")).hint(order())
        };
        Err(self.subject.output().said_in(error))
    }

    fn no_marker(&self, own: &OwnWork, index: usize) -> Error {
        let awaited = match &own.pattern {
            Some(pattern) => format!("the marker `{}`, or a line in which `{pattern}` matches it,", own.phases[index]),
            None => format!("the marker `loadline: phase={}`", own.phases[index]),
        };
        let error = Error::subject(format!("the program did not print {awaited} within {}", own.within)).hint(
            "raise `within` next to `phases`, or check whether the program is waiting or does not flush its \
                   output",
        );
        let error = match self.subject.output().markers_full() {
            true => error.at("it printed more markers and counters than Loadline keeps").hint("count in larger steps"),
            false => error,
        };
        self.subject.output().said_in(error)
    }

    /// The error for a subject that died before a marker.
    fn died_at_work(&self, own: &OwnWork, index: usize) -> Error {
        let error = ending::died(self.subject, self.stage.clock)
            .at(format!("before it printed the marker `{}`", own.phases[index]));
        match self.subject.ended() {
            Some(Exit::Code(0)) => error.hint(
                "it exited on its own: list only markers that it prints in `phases`, and make it wait at \
                    the last one",
            ),
            _ => error,
        }
    }

    /// Records a phase that ended by a marker or an error.
    fn end_begun(&mut self, begun: Begun, came: &Result<Marker>) -> Result<()> {
        self.pass_on_all(Some(&begun.name));
        let after = self.snapshot();
        let until = came.as_ref().map_or_else(|_| self.stage.clock.now(), |marker| marker.at);
        let seconds = until.saturating_sub(begun.since).as_secs_f64();
        let mut record = PhaseRecord {
            name: begun.name,
            at_s: self.seconds(begun.since.as_nanos() as u64),
            seconds,
            counters: begun.counters,
            ..begun.tally.record(seconds)
        };
        let usage = self.used_in(&mut record, &begun.before, &after);
        record.cut_short = came.as_ref().err().map(|error| self.why_cut_short(error.what.clone()));
        self.notes.sink.receive(&Event::PhaseEnded(&record));
        self.doubt_phase(&record, &usage);
        let nothing = record.requests > 0 && record.ok == 0;
        let verdict = match nothing {
            true => Err(self.subject.output().said_in(Error::subject(format!(
                "all {} operations that the program counted in phase {} failed",
                record.requests, record.name
            )))),
            false => Ok(()),
        };
        self.notes.trial.phases.push(record);
        verdict
    }
}
