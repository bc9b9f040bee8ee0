//! Checks what the types of a scenario do not: bounds, unique names, marks that have a moment.

use super::*;
use crate::error::{Error, Result};

impl Scenario {
    /// Checks what the types do not: bounds, unique names, marks that have a moment.
    ///
    /// # Errors
    /// `Request`, naming the first value that is wrong and its valid range.
    pub fn validate(&self) -> Result<()> {
        if self.subject.command.is_empty() {
            return Err(
                Error::request("the subject has no command").hint("give one after `--`: `-- java -jar app.jar`")
            );
        }
        if let Some(port) = self.subject.port {
            within("port", u64::from(port), 1, 65_535)?;
        }
        within("trials", u64::from(self.trials), 1, 1000)?;
        within("sample_hz", u64::from(self.sample_hz), 1, 100)?;
        unique("configuration", self.configurations.iter().map(|c| c.name.as_str()))?;
        unique("phase", self.load.iter().map(|p| p.name.as_str()))?;
        if self.configurations.is_empty() {
            return Err(Error::request("no configuration is left to run"));
        }
        if self.last_work().is_none() {
            return Err(Error::request("the load has no phase that works")
                .hint("add one such as `- steady: {closed: {connections: 25, requests: 50000}, get: /}`"));
        }
        for phase in &self.load {
            validate_phase(phase)?;
        }
        let possible = self.marks_possible();
        match self.marks.iter().find(|mark| !possible.contains(mark)) {
            Some(MarkPoint::Warm) => Err(Error::request("mark `warm` needs a phase named `warmup`")),
            Some(_) => Err(Error::request("mark `rested` needs an idle phase after the last work")),
            None => Ok(()),
        }
    }
}

/// `name` must lie in `low..=high`.
fn within(name: &str, value: u64, low: u64, high: u64) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::request(format!("`{name}` is {value}; it must lie between {low} and {high}")))
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if name.is_empty() || name.contains(['/', '\0', '\n']) {
            return Err(Error::request(format!("`{name}` cannot name a {what}")));
        }
        if !seen.insert(name) {
            return Err(Error::request(format!("two {what}s are named `{name}`")));
        }
    }
    Ok(())
}

fn validate_phase(phase: &Phase) -> Result<()> {
    let PhaseKind::Work(work) = &phase.kind else { return Ok(()) };
    let at = |error: Error| error.at(format!("phase: {}", phase.name));
    within("connections", u64::from(work.schedule.connections()), 1, 100_000).map_err(at)?;
    if let Until::Requests(requests) = work.schedule.until() {
        within("requests", requests, 1, 1_000_000_000_000).map_err(at)?;
    }
    if let ExpectStatus::Exactly(status) = work.expect {
        within("expect", u64::from(status), 100, 999).map_err(at)?;
    }
    if work.timeout.0.is_zero() {
        return Err(at(Error::request("`timeout` must be longer than 0")));
    }
    if work.request.method == Method::Get && work.request.body != Body::None {
        return Err(at(Error::request("GET takes no body").hint("use `--method PUT` or `--method POST`")));
    }
    if !work.request.path.starts_with('/') || work.request.path.contains([' ', '\r', '\n']) {
        return Err(at(Error::request(format!("`{}` is no request path; it begins with `/`", work.request.path))));
    }
    let breaks_line = |text: &String| text.contains(['\r', '\n']);
    match work.request.headers.iter().find(|(name, value)| name.is_empty() || breaks_line(name) || breaks_line(value)) {
        Some((name, _)) => Err(at(Error::request(format!("header `{}` is empty or spans lines", name.escape_debug())))),
        None => Ok(()),
    }
}
