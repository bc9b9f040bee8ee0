//! The end of a trial: the subject's exit in words, and the outcome.

use crate::clock::Clock;
use crate::error::{Error, ErrorKind};
use crate::record::{End, EndCause, Outcome, PhaseRecord, Trial};
use crate::scenario::Kind;
use crate::subject::{Exit, RunningSubject, SubjectEnd};
use crate::units::several;
use std::time::Duration;

/// Lines of the subject's output kept in the record.
pub(super) const KEPT_LINES: usize = 20;

/// The guardian reports an exit code immediately; this bounds the wait if a JVM died below a script that continues.
const EXIT_TOLD_WITHIN: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The hint for a subject that ends before it is measured.
pub(super) const LET_IT_WAIT: &str =
    "have it wait at its last marker: print `wait=1`, then read a line from standard input";

/// The outcome of a trial, given the error that stopped it, if any.
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

pub(super) fn record(mut ended: SubjectEnd) -> End {
    let why = match ended.cause {
        EndCause::AsAsked => "it exited when asked to",
        EndCause::KilledAfterTerm => "it did not exit when asked to, so it was killed",
        EndCause::ByItself => "it exited on its own",
        EndCause::OomKill => "the kernel killed it because its memory limit was reached",
        EndCause::OutOfMemoryError => "it exited on its own after an OutOfMemoryError",
        EndCause::GuardianLost => "it was killed along with its guardian",
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

/// The result of a trial, however it ended.
#[derive(Debug)]
pub struct Conducted {
    /// All measurements before its end.
    pub trial: Trial,
    /// The error that stopped the trial early.
    pub error: Option<Error>,
}

/// The subject died while it was needed.
pub(super) fn died(running: &dyn RunningSubject, clock: Clock) -> Error {
    let until = clock.now() + EXIT_TOLD_WITHIN;
    while running.ended().is_none() && !running.lost() && clock.now() < until {
        clock.sleep(LOOK_EVERY);
    }
    let gone = if running.launch().subject.kind == Kind::Jvm {
        "its JVM no longer exists"
    } else {
        "its process no longer exists"
    };
    let how = running.ended().map_or_else(|| gone.to_owned(), |exit| exit.to_string());
    let what = if running.oom_kills() > 0 {
        format!("the server was killed because its memory limit was reached: {how}")
    } else if let Some(error) = running.output().out_of_memory_error() {
        format!("the server died after `{error}`: {how}")
    } else {
        format!("the server died: {how}")
    };
    let error = running.output().said_in(Error::subject(what));
    if running.oom_kills() > 0 { error.hint("raise `--limit`, or lower `--heap`") } else { error }
}

/// No response in a phase was correct; the subject's output may contain the reason.
pub(super) fn no_answer_of_subject(phase: &PhaseRecord, tls: Option<&str>, running: &dyn RunningSubject) -> Error {
    let error = running.output().said_in(no_answer(phase, tls));
    if let Some(out_of_memory) = running.output().out_of_memory_error() {
        return error
            .at(format!("it printed `{out_of_memory}`"))
            .hint("raise the limit of the named pool (`--heap` for the Java heap)");
    }
    error.hint("read the server's log in the archive")
}

/// No response in a phase was correct, so its numbers are meaningless. `tls` is the TLS error, if nothing else reports
/// it.
pub(super) fn no_answer(phase: &PhaseRecord, tls: Option<&str>) -> Error {
    let failed = phase.failed.describe();
    let what = match phase.requests {
        0 => format!("the server did not respond in phase {}", phase.name),
        n => format!("none of {} in phase {} succeeded: {failed}", several(n, "request"), phase.name),
    };
    let mut error = Error::subject(what);
    if let Some(why) = &phase.cut_short {
        error = error.at(format!("Loadline gave up: {why}"));
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
            error.hint("check the path of the URL, or set the expected status with `--expect-status`")
        }
        () if failed.check > 0 => error.hint("compare a response (`curl -i URL`) with the `--expect-…` options"),
        () if failed.tls > 0 => {
            error.hint("check the certificate (`openssl s_client -connect HOST:PORT`); `--ca` adds a CA certificate")
        }
        () if failed.timeout > 0 || failed.unanswered > 0 => {
            error.hint("the server accepts connections but does not respond; read its log, or raise `--timeout`")
        }
        () if failed.protocol > 0 => {
            let over_2 = phase.backend.as_ref().is_some_and(|backend| backend.starts_with("http/2"));
            let protocol = if over_2 { "HTTP/2" } else { "HTTP/1.1" };
            error.hint(format!("the port does not speak {protocol}; check the URL"))
        }
        () => error,
    }
}
