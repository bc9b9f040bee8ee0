//! Phases and addresses as text.

use crate::scenario::{OwnWork, Phase, PhaseKind, PhaseMark, Protocol, Work};
use crate::units::several;

/// A load plan as text, one line per phase.
pub fn describe_load(load: &[Phase]) -> Vec<String> {
    load.iter().map(|phase| format!("{}: {}", phase.name, describe(phase))).collect()
}

/// A phase as text: `GET /hello, closed, 25 connections, 50,000 requests, keep-alive`.
pub(super) fn describe(phase: &Phase) -> String {
    let what = match &phase.kind {
        PhaseKind::Idle(span) => format!("idle, {span}"),
        PhaseKind::Driver(driver) => format!("driven by `{}`", driver.command),
        PhaseKind::Own(own) => describe_own(own),
        PhaseKind::Work(work) => describe_work(work),
    };
    let what = if phase.until_steady { format!("{what}, or until the server is warm") } else { what };
    match phase.mark {
        PhaseMark::None => what,
        PhaseMark::AsItIs => format!("{what}, weighed at its end"),
        PhaseMark::Collected => format!("{what}, weighed at its end after full GCs"),
    }
}

/// `the program's own work, weighed at empty, spike, valley, each after 2 full GCs`.
fn describe_own(own: &OwnWork) -> String {
    let collected = match own.collect {
        0 => String::new(),
        1 => ", each after a full GC".to_owned(),
        n => format!(", each after {n} full GCs"),
    };
    format!("the program's own work, weighed at {}{collected}", own.phases.join(", "))
}

/// `GET /hello`, `GET /hello and 2 other requests`.
pub(super) fn describe_requests(work: &Work) -> String {
    let first = format!("{} {}", work.request.method.as_str(), work.request.path);
    match work.others.len() {
        0 => first,
        others => format!("{first} and {}", several(others as u64, "other request")),
    }
}

fn describe_work(work: &Work) -> String {
    let mut parts = vec![describe_requests(work), work.schedule.to_string()];
    parts.push(match work.protocol {
        Protocol::Http1 if work.keep_alive => "keep-alive".to_owned(),
        Protocol::Http1 => "a connection for each request".to_owned(),
        Protocol::Http2 { streams: 1 } => "HTTP/2".to_owned(),
        Protocol::Http2 { streams } => format!("HTTP/2 with {streams} streams"),
    });
    parts.extend(work.pace.send.map(|rate| format!("sending {} B/s on each", rate.0)));
    parts.extend(work.pace.receive.map(|rate| format!("reading {} B/s from each", rate.0)));
    parts.extend(work.stop.iter().map(|condition| format!("until {condition}")));
    parts.join(", ")
}
