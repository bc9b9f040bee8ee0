//! How a trial ended: the end of the subject in words, and which outcome that is.

use crate::clock::Clock;
use crate::error::{Error, ErrorKind};
use crate::record::{End, EndCause, Outcome, PhaseRecord, Trial};
use crate::scenario::Kind;
use crate::subject::{Exit, RunningSubject, SubjectEnd};
use crate::units::several;
use std::time::Duration;

/// Lines of the subject's output kept in the record.
pub(super) const KEPT_LINES: usize = 20;

/// The guardian tells an exit code at once; this bounds the wait for it where a JVM died below a script that goes on.
const EXIT_TOLD_WITHIN: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The hint for a subject that ends before it was weighed.
pub(super) const LET_IT_WAIT: &str =
    "let it wait at its last marker: print `wait=1` with it and read a line from the standard input";

/// The outcome of a trial that was stopped by this error, or by none.
pub(super) fn classify(trial: &mut Trial, error: Option<&Error>) {
    let cause = trial.end.as_ref().map(|end| end.cause);
    trial.outcome = match error.map(|error| error.kind) {
        None => Outcome::Completed,
        Some(ErrorKind::Subject) if cause == Some(EndCause::OomKill) => Outcome::Killed,
        Some(ErrorKind::Subject) => Outcome::SubjectFailed,
        Some(_) => Outcome::Aborted,
    };
    trial.why = error.map(|error| error.what.clone());
}

/// The end of the subject as it is recorded.
pub(super) fn record(mut ended: SubjectEnd) -> End {
    let why = match ended.cause {
        EndCause::AsAsked => "it ended when asked to",
        EndCause::KilledAfterTerm => "it did not end when asked to and was killed",
        EndCause::ByItself => "it ended by itself",
        EndCause::OomKill => "the kernel killed it because its memory limit was reached",
        EndCause::OutOfMemoryError => "it ended by itself after an OutOfMemoryError",
        EndCause::GuardianLost => "it was killed together with its guardian",
    };
    let text = match ended.exit {
        Some(exit) => format!("{why} ({exit})"),
        None => why.to_owned(),
    };
    let surplus = ended.tail.len().saturating_sub(KEPT_LINES);
    ended.tail.drain(..surplus);
    End {
        cause: ended.cause,
        exit_code: ended.exit.and_then(Exit::code),
        signal: ended.exit.and_then(Exit::signal),
        text,
        last_lines: ended.tail,
    }
}

/// The yield of a trial, however it ended.
#[derive(Debug)]
pub struct Conducted {
    /// All that was measured before it ended.
    pub trial: Trial,
    /// The error that stopped it before its plan was done.
    pub error: Option<Error>,
}

/// The subject died while it was needed.
pub(super) fn died(running: &dyn RunningSubject, clock: Clock) -> Error {
    let until = clock.now() + EXIT_TOLD_WITHIN;
    while running.ended().is_none() && !running.lost() && clock.now() < until {
        clock.sleep(LOOK_EVERY);
    }
    let gone = if running.launch().subject.kind == Kind::Jvm { "its JVM is gone" } else { "its process is gone" };
    let how = running.ended().map_or_else(|| gone.to_owned(), |exit| exit.to_string());
    let what = if running.oom_kills() > 0 {
        format!("the subject was killed because its memory limit was reached: {how}")
    } else if let Some(error) = running.output().out_of_memory_error() {
        format!("the subject died after `{error}`: {how}")
    } else {
        format!("the subject died: {how}")
    };
    let error = running.output().said_in(Error::subject(what));
    if running.oom_kills() > 0 { error.hint("raise `--limit`, or lower `--heap`") } else { error }
}

/// Not one answer of a phase of a trial was correct: what the subject printed may say why.
pub(super) fn no_answer_of_subject(phase: &PhaseRecord, tls: Option<&str>, running: &dyn RunningSubject) -> Error {
    let error = running.output().said_in(no_answer(phase, tls));
    if let Some(out_of_memory) = running.output().out_of_memory_error() {
        return error
            .at(format!("it printed `{out_of_memory}`"))
            .hint("raise the pool it names (`--heap` for the Java heap)");
    }
    error.hint("look at the subject's log in the archive")
}

/// Not one answer of a phase was correct, so no number of it means anything. `tls` is what TLS said, where nothing else
/// tells it.
pub(super) fn no_answer(phase: &PhaseRecord, tls: Option<&str>) -> Error {
    let failed = phase.failed.describe();
    let what = match phase.requests {
        0 => format!("the subject answered nothing in phase {}", phase.name),
        n => format!("not one of {} in phase {} was answered correctly: {failed}", several(n, "request"), phase.name),
    };
    let mut error = Error::subject(what);
    if let Some(why) = &phase.cut_short {
        error = error.at(format!("given up: {why}"));
    }
    if !phase.wrong_statuses.is_empty() {
        let statuses: Vec<_> =
            phase.wrong_statuses.iter().map(|(status, n)| format!("{status} ({})", several(*n, "time"))).collect();
        error = error.at(format!("statuses: {}", statuses.join(", ")));
    }
    if let Some(trouble) = tls {
        error = error.at(format!("TLS: {trouble}"));
    }
    let failed = &phase.failed;
    match () {
        () if failed.status > 0 => {
            error.hint("check the path of the URL, or name the status you expect with `--expect-status`")
        }
        () if failed.check > 0 => error.hint("look at one answer (`curl -i URL`) and at the `--expect-…` options"),
        () if failed.tls > 0 => {
            error.hint("look at the certificate (`openssl s_client -connect HOST:PORT`); `--ca` names an authority")
        }
        () if failed.timeout > 0 || failed.unanswered > 0 => {
            error.hint("the server accepts connections but does not answer; look at its log, or raise `--timeout`")
        }
        () if failed.protocol > 0 => {
            let over_2 = phase.backend.as_ref().is_some_and(|backend| backend.starts_with("http/2"));
            let protocol = if over_2 { "HTTP/2" } else { "HTTP/1.1" };
            error.hint(format!("the port does not speak {protocol}; check the URL"))
        }
        () => error,
    }
}
