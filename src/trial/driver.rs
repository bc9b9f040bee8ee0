//! A phase driven by another program, which runs on the load's CPUs. Its output is read when it ends; the subject is
//! measured as with the built-in engine.

use super::engine_thread::LOOK_EVERY;
use super::phase::Ran;
use super::trialling::Trialling;
use super::world::RunningDriver;
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::load::external;
use crate::record::{DriverRecord, Model, PhaseRecord, Quantiles, Reported, Times, Timing, Tool};
use crate::scenario::{Driver, bracketed};
use crate::subject::{DriverEnd, DriverLaunch, Exit};
use crate::units::several;
use std::time::Duration;

/// Lines of driver output shown on failure.
const SAID_LINES: usize = 10;
/// Shell exit codes for a missing command, and for a file that is not executable.
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;
/// With this code, k6 reports crossed thresholds; the test itself succeeded.
const K6_THRESHOLDS: i32 = 99;

enum Waited {
    Ended,
    Stopped,
    TooLong,
}

impl Trialling<'_> {
    /// Runs a driver to completion. Stops it if it takes too long, the user interrupts, or the subject dies.
    pub(super) fn driver(&mut self, name: &str, driver: &Driver) -> Result<Ran> {
        let line = driver.line(&self.url(), &self.plan.subject.host, self.address.port());
        let log = self.notes.sink.log().map(|log| log.with_file_name(format!("driver-{name}.log")));
        let cpus = self.notes.trial.load_cpus.clone().unwrap_or_else(|| self.stage.cpus.to_vec());
        let launch = DriverLaunch { line, dir: driver.dir.clone(), cpus, log };
        let began = self.stage.clock.now();
        let running = self.stage.world.start_driver(&launch).map_err(|error| error.at(format!("in phase {name}")))?;
        let waited = self.await_driver(name, driver, &*running);
        let cpu = running.cpu();
        let took = self.stage.clock.now().saturating_sub(began);
        let end = running.end();
        let reported = match waited {
            Waited::Ended => external::read(&launch.line, &end.text),
            Waited::Stopped | Waited::TooLong => None,
        };
        let mut ran = Ran::new(record(reported.as_ref(), took));
        ran.outside_cpu = cpu.unwrap_or_default();
        ran.doubts.extend(end.log_trouble.iter().map(|trouble| Doubt::LogIncomplete { why: trouble.what.clone() }));
        match waited {
            Waited::Ended => ran.judge(name, &end, reported.as_ref()),
            Waited::Stopped => ran.record.cut_short = Some("it was stopped".to_owned()),
            Waited::TooLong => {
                let what = format!("the driver did not finish within {}", driver.within);
                ran.record.cut_short = Some(what.clone());
                let error = Error::request(what);
                ran.error =
                    Some(error.hint("give it more time with `within` next to `driver`, or make it finish sooner"));
            }
        }
        if end.left > 0 {
            let text = format!("{} could not be killed", several(end.left as u64, "driver process"));
            ran.error.get_or_insert_with(|| Error::machine(text));
        }
        let in_words = |error: Error| error.at(format!("command: {}", launch.line)).said(end.last_lines(SAID_LINES));
        ran.error = ran.error.map(in_words);
        let file = launch.log.as_ref().and_then(|log| log.file_name());
        ran.record.driver = Some(DriverRecord {
            command: launch.line,
            exit_code: end.exit.and_then(Exit::code),
            cpu_s: cpu.map(|cpu| cpu.as_secs_f64()),
            log: file.map(|name| name.to_string_lossy().into_owned()),
            reported,
        });
        Ok(ran)
    }

    /// The subject's address, without a path.
    fn url(&self) -> String {
        let subject = &self.plan.subject;
        let scheme = if subject.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}:{}", bracketed(&subject.host), self.address.port())
    }

    fn await_driver(&mut self, name: &str, driver: &Driver, running: &dyn RunningDriver) -> Waited {
        let until = self.stage.clock.now() + driver.within.0;
        loop {
            if running.has_ended() {
                return Waited::Ended;
            }
            if self.stage.interrupted() || self.has_died() || self.is_hopeless() {
                return Waited::Stopped;
            }
            if self.stage.clock.now() >= until {
                return Waited::TooLong;
            }
            self.next_message(Some(name), LOOK_EVERY);
        }
    }
}

impl Ran {
    /// Judges a driver's exit and output: whether the phase is valid, and doubts about it.
    fn judge(&mut self, name: &str, end: &DriverEnd, reported: Option<&Reported>) {
        let tool = reported.map(|reported| reported.tool);
        self.error = match (end.exit, tool) {
            (Some(Exit::Code(0)), _) => None,
            (Some(Exit::Code(K6_THRESHOLDS)), Some(tool @ Tool::K6)) => {
                let (phase, tool) = (name.to_owned(), tool.name().to_owned());
                self.doubts.push(Doubt::DriverThresholds { phase, tool, code: K6_THRESHOLDS });
                None
            }
            (Some(Exit::Code(NOT_FOUND)), _) => Some(
                Error::request(format!("the driver's command was not found: exit code {NOT_FOUND}"))
                    .hint("install the tool, or specify its path; `sh -c` runs the line in the scenario's directory"),
            ),
            (Some(Exit::Code(NOT_EXECUTABLE)), _) => Some(
                Error::request(format!("the driver's command cannot be executed: exit code {NOT_EXECUTABLE}"))
                    .hint("make it executable (`chmod +x`), or start it through its interpreter"),
            ),
            (Some(exit), _) => Some(
                Error::request(format!("the driver failed: {exit}"))
                    .hint("run it by hand against the server; its output is in its log in the archive"),
            ),
            (None, _) => Some(Error::machine("the driver's guardian process was killed, and the driver with it")),
        };
        if self.error.is_none() && tool.is_none() {
            self.doubts.push(Doubt::DriverNotRead { phase: name.to_owned() });
        }
    }
}

/// The phase's figures that the driver reported.
fn record(reported: Option<&Reported>, took: Duration) -> PhaseRecord {
    let mut record = PhaseRecord { model: Model::Driver, ..PhaseRecord::default() };
    let Some(reported) = reported else { return record };
    record.requests = reported.requests;
    record.failed = reported.failed.unwrap_or_default();
    record.ok = reported.ok();
    let seconds = reported.seconds.filter(|seconds| *seconds > 0.0).unwrap_or(took.as_secs_f64());
    record.achieved_per_s = if seconds > 0.0 { record.ok as f64 / seconds } else { 0.0 };
    let times = quantiles(&reported.times_ms);
    match reported.timing {
        Timing::Service => record.service_ms = times,
        Timing::Response => record.response_ms = times,
    }
    record
}

/// `None` unless all were reported.
fn quantiles(times: &Times) -> Option<Quantiles> {
    Some(Quantiles {
        p50: times.p50?,
        p90: times.p90?,
        p99: times.p99?,
        p999: times.p999?,
        max: times.max?,
        mean: times.mean?,
        p75: None,
        p9999: None,
    })
}
