//! All that one trial needs: a value that can be written down, handed on, and carried out elsewhere.

use super::{Collect, Configuration, Cpus, LoadPlan, MarkPoint, Scenario, Subject, Time};
use serde::{Deserialize, Serialize};

/// A trial to make. The same plan makes the same trial wherever its files lie: nothing else of a scenario is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialPlan {
    /// What it is for, in words.
    pub title: String,
    /// Position in the series, from 0.
    pub index: u32,
    /// Which repetition of all configurations, from 0.
    pub block: u32,
    /// The disturbed block that this trial's block repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// The program weighed.
    pub subject: Subject,
    /// Which way to run it.
    pub configuration: Configuration,
    /// What is done to it.
    pub load: LoadPlan,
    /// The moments at which it is weighed, in the order of [`MarkPoint`].
    pub marks: Vec<MarkPoint>,
    /// What is done before the mark `collected`, and before a phase's own mark of that kind.
    #[serde(default)]
    pub collect: Collect,
    /// Seeds everything that is drawn at random.
    pub seed: u64,
    /// Timeline samples per second, 1–100.
    pub sample_hz: u32,
    /// CPUs for the load engine and the rest of Loadline.
    pub load_cpus: Cpus,
    /// How closely the subject is looked at.
    #[serde(default)]
    pub look: Look,
    /// What ends the trial early; nothing where no phase is named.
    #[serde(default)]
    pub guard: Guard,
    /// Who pays for file pages; `None` leaves them as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// Whether the files that the subject has mapped or open at the end of the load are listed.
    #[serde(default)]
    pub list_files: bool,
}

impl TrialPlan {
    /// A trial of a configuration as a scenario asks for it, weighed at its marks; the first of its series.
    pub fn of(scenario: &Scenario, configuration: &Configuration) -> Self {
        Self {
            title: configuration.name.clone(),
            index: 0,
            block: 0,
            repeats: None,
            subject: scenario.subject.clone(),
            configuration: configuration.clone(),
            load: scenario.load.clone(),
            marks: scenario.marks.clone(),
            collect: scenario.collect,
            seed: scenario.seed,
            sample_hz: scenario.sample_hz,
            load_cpus: scenario.load_cpus.clone(),
            look: Look::Full,
            guard: Guard::default(),
            pages: None,
            list_files: false,
        }
    }
}

/// How closely a subject is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// It is weighed at the marks of the plan; the JVM is asked, and given an agent where one is wanted.
    #[default]
    Full,
    /// Nobody speaks to it: its files in `/proc`, its counters and its cgroup are read and nothing else, so that it
    /// needs what it would need without Loadline. There are no marks then, whatever the plan says.
    Outside,
}

/// Who pays for file pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pages {
    /// Nobody has them in memory: all that the subject touches is charged to it.
    Cold,
    /// They are in memory and are charged to somebody else.
    Warm,
}

/// Bounds beyond which a trial is ended early.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Guard {
    /// Those of each phase; a phase without bounds is not named.
    pub phases: Vec<PhaseGuard>,
}

/// The bounds of a phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PhaseGuard {
    /// Name of the phase; of a phase in which the subject works by itself, the marker that begins it.
    pub name: String,
    /// The longest that it may last.
    pub seconds_max: Option<f64>,
    /// How many answers may be how late.
    pub late: Vec<Late>,
    /// Requests that may fail.
    pub failed_max: Option<u64>,
    /// The fewest correct answers per second over about 3 s, as long as the plan sends requests.
    pub rate_min_per_s: Option<f64>,
}

/// How many answers may be late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Late {
    /// An answer that took longer is late.
    pub bound_ms: f64,
    /// Which time is meant; service time stands in where there is no response time.
    pub time: Time,
    /// As many may be.
    pub requests_max: u64,
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use std::path::Path;

    #[test]
    fn a_plan_that_was_written_down_is_the_same_plan() {
        let text = "name: x\nsubject: {command: [java, '{jvm}', -jar, a.jar, '{port}'], ready: {http: /up}}\n\
            configurations: {small: {heap: 64m, gc: serial, env: {A: b}, limit: 200m}}\n\
            load:\n  - warmup: {same: steady}\n  - steady: {constant: {rate: 200, duration: 5s}, get: /x}\n  \
            - rest: {idle: 1s}\nseed: 7\n";
        let scenario = parse(text, Path::new("/x"), &[17]).unwrap_or_else(|error| panic!("{error}"));
        let late = Late { bound_ms: 50.0, time: Time::Usual, requests_max: 12 };
        let guard = PhaseGuard { name: "steady".to_owned(), late: vec![late], ..PhaseGuard::default() };
        let plan = TrialPlan {
            index: 4,
            repeats: Some(1),
            look: Look::Outside,
            guard: Guard { phases: vec![guard] },
            pages: Some(Pages::Cold),
            ..TrialPlan::of(&scenario, &scenario.configurations[0])
        };
        let written = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<TrialPlan>(&written).unwrap(), plan, "{written}");
        assert_eq!((plan.seed, plan.load.len(), plan.marks), (7, 3, scenario.marks));
    }
}
