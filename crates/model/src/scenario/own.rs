//! A subject's own work: the phases that it announces on its output. Also marks at the end of other phases, and the
//! full collections before such a mark.

use super::validate::within;
use crate::error::{Error, Result};
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// After ten consecutive full collections, another one frees nothing.
const COLLECTIONS_MAX: u64 = 10;
/// Anything longer is a sentence rather than a name.
const NAME_CHARS_MAX: usize = 64;

/// A phase in which the subject generates its own work. It prints a marker for each of `phases`, in order, and is
/// weighed at each. Each marker but the last begins a phase of the trial that lasts until the next marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnWork {
    /// Names of the markers; at least one, each once.
    pub phases: Vec<String>,
    /// How long the subject may take to reach its next marker; for the first one, counted from the start of the work.
    pub within: Span,
    /// Additional marker format: a regular expression whose first group is the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Full GCs at each marker, before the subject is weighed; 0 for none.
    #[serde(default)]
    pub collect: u32,
    /// How long to wait after them before the measurement; if omitted, until RSS is stable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Span>,
}

impl OwnWork {
    /// The markers that begin a phase: all but the last, which ends the work.
    pub fn begun(&self) -> &[String] {
        self.phases.split_last().map_or(&[], |(_, others)| others)
    }

    /// The full collections at each marker, if any.
    pub fn collect(&self) -> Option<Collect> {
        (self.collect > 0).then_some(Collect { times: self.collect, settle: self.settle })
    }

    /// Checks that there are names, that a subject can print them, and that the pattern is valid.
    pub(super) fn validate(&self) -> Result<()> {
        if self.phases.is_empty() {
            return Err(Error::request("`phases` lists no markers").hint("write it as `phases: [empty, full, done]`"));
        }
        let spaced = |name: &&String| self.pattern.is_none() && name.contains(char::is_whitespace);
        if let Some(name) = self.phases.iter().find(spaced) {
            return Err(Error::request(format!("the marker `{name}` contains a space, which would end the name"))
                .hint("write it as one word, or specify a `pattern` that matches it"));
        }
        if let Some(name) = self.phases.iter().find(|name| name.chars().count() > NAME_CHARS_MAX) {
            return Err(Error::request(format!("the marker `{name}` is longer than {NAME_CHARS_MAX} characters")));
        }
        if self.within.0.is_zero() {
            return Err(Error::request("`within` must be greater than 0"));
        }
        if let Some(pattern) = &self.pattern {
            regex_lite::Regex::new(pattern)
                .map_err(|cause| Error::request(format!("`{pattern}` is not a regular expression: {cause}")))?;
        }
        if self.collect > 0 {
            within("collect", self.collect.into(), 1, COLLECTIONS_MAX)?;
        }
        match self.settle {
            Some(_) if self.collect == 0 => Err(Error::request("`settle` waits after GCs, but none were requested")
                .hint("set their number with `collect: 1`")),
            _ => Ok(()),
        }
    }
}

/// The full GCs before a mark at which garbage must not be weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Collect {
    /// Consecutive full GCs, at least 1. Memory that a cleaner frees is returned only by the next one.
    pub times: u32,
    /// How long to wait after the last GC before the measurement; if omitted, until RSS is stable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Span>,
}

impl Default for Collect {
    fn default() -> Self {
        Self { times: 1, settle: None }
    }
}

impl Collect {
    pub(super) fn validate(self) -> Result<()> {
        within("times", self.times.into(), 1, COLLECTIONS_MAX).map_err(|error| error.at("collect"))
    }
}

/// Whether a phase ends with a mark that has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PhaseMark {
    /// No mark.
    #[default]
    None,
    /// The subject is weighed without a GC.
    AsItIs,
    /// The subject is weighed after full GCs.
    Collected,
}

impl FromStr for PhaseMark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "false" => Ok(Self::None),
            "true" => Ok(Self::AsItIs),
            "collected" => Ok(Self::Collected),
            word => Err(format!("`mark` is `true` or `collected`, not `{word}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Phase, Scenario, load_plan, parse, parse_load};
    use super::*;
    use std::path::Path;

    fn load(entries: &str) -> Result<Vec<Phase>> {
        parse_load(&format!("load:\n{entries}\n"), Path::new("/base")).map(|(load, _)| load)
    }

    fn own(keys: &str) -> OwnWork {
        load(&format!("- w: {{{keys}}}")).unwrap()[0].kind.own().unwrap().clone()
    }

    fn refused(entries: &str, why: &str) {
        let error = load(entries).unwrap_err();
        assert!(error.to_string().contains(why), "{entries}: {error}");
    }

    #[test]
    fn phases_that_the_subject_runs_itself_are_read() {
        let written =
            own("phases: [empty, spike, valley], within: 20s, collect: 2, settle: 1s, pattern: 'PHASE (\\w+)'");
        assert_eq!(written.phases, ["empty", "spike", "valley"]);
        assert_eq!(written.begun(), ["empty", "spike"]);
        assert_eq!((written.within, written.pattern.as_deref()), (Span::seconds(20), Some("PHASE (\\w+)")));
        assert_eq!(written.collect(), Some(Collect { times: 2, settle: Some(Span::seconds(1)) }));
        let short = own("phases: [a]");
        assert_eq!((short.within, short.collect(), short.begun().len()), (Span::seconds(300), None, 0));
    }

    #[test]
    fn phases_end_with_a_mark_if_requested() {
        let plan = "- a: {idle: 1s, mark: true}\n- b: {same: a, mark: collected}\n- c: {idle: 1s, mark: false}\n\
                    - w: {phases: [x, y]}\n- d: {driver: wrk, mark: true, within: 5s}";
        let load = load(plan).unwrap();
        let marks: Vec<_> = load.iter().map(|phase| phase.mark).collect();
        use PhaseMark::{AsItIs, Collected, None};
        assert_eq!(marks, [AsItIs, Collected, None, None, AsItIs]);
        assert_eq!(load_plan::marks(&load), ["a", "b", "x", "y", "d"]);
    }

    #[test]
    fn a_scenario_lists_its_marks_and_phases() {
        let text = "name: x\nsubject: {command: [java]}\ncollect: {times: 3, settle: 1s}\n\
                    load: [{w: {phases: [x, y, z]}}, {calm: {idle: 1s, mark: collected}}]\n";
        let scenario = parse(text, Path::new("/base"), &[]).unwrap();
        assert_eq!(scenario.collect, Collect { times: 3, settle: Some(Span::seconds(1)) });
        assert_eq!((scenario.load.marks(), scenario.load.works()), (vec!["x", "y", "z", "calm"], vec!["x", "y"]));
        assert!(scenario.load.rests() && scenario.load.has_own_work());
        // It does not listen, so its first marker shows that it is ready.
        assert_eq!(scenario.subject.ready, super::super::Ready::Phase("x".to_owned()));
        let kept = serde_json::to_string(&scenario).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&kept).unwrap(), scenario);
    }

    #[test]
    fn impossible_own_phases_are_rejected() {
        refused("- w: {phases: []}", "lists no markers");
        refused("- w: {phases: [a b]}", "contains a space");
        refused("- w: {phases: [a, a]}", "two phases are named `a`");
        refused("- w: {phases: [a, w]}", "two phases are named `w`");
        refused("- w: {phases: [a]}\n- a: {idle: 1s}", "two phases are named `a`");
        refused("- w: {phases: [loaded]}", "a phase cannot be named `loaded`");
        refused("- start: {idle: 1s, mark: true}", "a phase cannot be named `start`");
        refused("- w: {phases: [a], pattern: '('}", "not a regular expression");
        refused("- w: {phases: [a], collect: 11}", "between 1 and 10");
        refused("- w: {phases: [a], settle: 1s}", "none were requested");
        refused("- w: {phases: [a], within: 0s}", "greater than 0");
        refused("- w: {phases: [a], mark: true}", "`mark` would have no effect");
        refused("- w: {phases: [a], get: /}", "`get` would have no effect");
        refused("- w: {idle: 1s, collect: 1}", "`collect` would have no effect");
        refused("- w: {closed: {requests: 1}, get: /, pattern: x}", "`pattern`");
        refused("- w: {idle: 1s, mark: colected}", "`colected`");
        // Only phases that become marks must avoid the six standard names.
        assert!(load("- loaded: {idle: 1s}").is_ok());
    }
}
