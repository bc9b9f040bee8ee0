//! Everything that a trial needs: a value that can be stored, sent, and executed elsewhere.
//!
//! A plan's text contains everything except the contents of files, whose hash is in `Configuration::inputs`. Plans with
//! equal text, with paths relative to their directories, are the same trial.

use super::{
    Arrivals, Body, Collect, Configuration, Cpus, Explain, LoadPlan, MarkPoint, Objects, PhaseKind, Scenario, Schedule,
    Subject, Time, Work, is_default,
};
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A trial to run. The same plan gives the same trial wherever its files are: no other part of a scenario is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialPlan {
    /// The purpose of the trial, in words.
    pub title: String,
    /// Position in the series, from 0.
    pub index: u32,
    /// Which repetition of all configurations, from 0.
    pub block: u32,
    /// The disturbed block that this trial's block repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// The program to measure.
    pub subject: Subject,
    /// The way to run it.
    pub configuration: Configuration,
    /// The load on the subject.
    pub load: LoadPlan,
    /// The moments at which the subject is weighed, in the order of [`MarkPoint`].
    pub marks: Vec<MarkPoint>,
    /// Full GCs before the mark `collected` and before phase marks of that kind.
    #[serde(default)]
    pub collect: Collect,
    /// Seed for all random choices.
    pub seed: u64,
    /// Timeline samples per second, 1–100.
    pub sample_hz: u32,
    /// CPUs for the load engine and the rest of Loadline.
    pub load_cpus: Cpus,
    /// How closely to observe the subject.
    #[serde(default)]
    pub look: Look,
    /// When to query a JVM for data that can be read from outside it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub asking: Asking,
    /// The bounds that end the trial early; none if no phase is named.
    #[serde(default)]
    pub guard: Guard,
    /// Whether live objects are listed at the end, and for a fresh JVM as soon as it is ready.
    #[serde(default, skip_serializing_if = "is_default")]
    pub objects: Objects,
    /// The new file for a heap dump at the end of the first trial of a series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_dump: Option<PathBuf>,
    /// A second start after all measurements, which shows the code that holds memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explain>,
    /// How often to force a full GC in the last load, to show the live heap in a mark [`LIVE_MARK`]; `None` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_every: Option<Span>,
    /// Whether file pages are charged to the subject; `None` leaves them as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// Whether the files that the subject has mapped or open at the end of the load are listed.
    #[serde(default)]
    pub list_files: bool,
}

impl TrialPlan {
    /// A trial of a scenario's configuration with its marks; the first of its series.
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
            asking: scenario.asking,
            guard: Guard::default(),
            objects: scenario.objects,
            heap_dump: scenario.heap_dump.clone(),
            explain: scenario.explain.clone(),
            live_every: None,
            pages: None,
            list_files: false,
        }
    }

    /// Distinct files that the trial may need, in plan order. Some may not exist, because every word of a command that
    /// could be a file name is included.
    pub fn files(&self) -> Vec<PathBuf> {
        let Self { subject, configuration, load, .. } = self;
        let folder = subject.dir.as_deref().unwrap_or(Path::new(""));
        let tls = subject.tls.iter().flat_map(|tls| [&tls.ca, &tls.cert, &tls.key]).flatten().cloned();
        let preload = configuration.preload.iter().filter(|library| library.contains('/')).map(PathBuf::from);
        let mut files: Vec<PathBuf> =
            tls.chain(configuration.code.clone()).chain(subject.artifact.clone()).chain(preload).collect();
        // A container's command refers to files in the image.
        if subject.image.is_none() {
            let program =
                subject.command.first().filter(|program| program.contains('/') && !program.ends_with("/java"));
            let words = program.into_iter().chain(subject.command.iter().skip(1)).chain(&configuration.args);
            let options = configuration.jvm.iter();
            let words = words.chain(options).filter(|word| !WRITES.iter().any(|begin| word.starts_with(begin)));
            files.extend(words.flat_map(|word| named_in(word)).map(|name| folder.join(name)));
        }
        for phase in load {
            match &phase.kind {
                PhaseKind::Work(work) => files.extend(files_of(work)),
                PhaseKind::Driver(driver) => {
                    let from = driver.dir.as_deref().unwrap_or(Path::new(""));
                    let words = driver.command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
                    files.extend(words.flat_map(named_in).map(|name| from.join(name)));
                }
                PhaseKind::Own(_) | PhaseKind::Idle(_) => {}
            }
        }
        let mut seen = std::collections::HashSet::new();
        files.retain(|file| seen.insert(file.clone()));
        files
    }
}

/// The name of marks taken during a load by [`TrialPlan::live_every`].
pub const LIVE_MARK: &str = "live";

/// Options that name a file for the JVM to write, or no file at all.
const WRITES: [&str; 2] = ["-Xlog", "-XX:"];

/// The parts of a word that could be file names: all of it, or parts as in `-cp a.jar:b.jar` and `-javaagent:a.jar=x`.
fn named_in(word: &str) -> impl Iterator<Item = &str> {
    let parts = word.split([':', '=', ',', '@']).filter(move |part| *part != word);
    std::iter::once(word).chain(parts).filter(|name| !name.is_empty())
}

fn files_of(work: &Work) -> impl Iterator<Item = PathBuf> {
    let starts = match &work.schedule {
        Schedule::Open { arrivals: Arrivals::File(file), .. } => Some(file.clone()),
        _ => None,
    };
    let bodies = work.requests().filter_map(|request| match &request.body {
        Body::File(file) => Some(file.clone()),
        _ => None,
    });
    starts.into_iter().chain(bodies)
}

/// When to query a JVM over its attach socket for its memory layout, which its own tables also show without a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Asking {
    /// Only if its own tables do not show it.
    #[default]
    IfNeeded,
    /// Always, which adds 0.2 to 0.3 MiB to the JVM.
    Always,
}

impl Asking {
    /// The setting for a command line with or without `--attach`.
    pub fn typed(attach: bool) -> Self {
        if attach { Self::Always } else { Self::IfNeeded }
    }
}

/// How closely to observe a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// The subject is weighed at the marks of the plan; a JVM is queried, and gets an agent if one was requested.
    #[default]
    Full,
    /// Only its files in `/proc`, its counters, and its cgroup are read, so it uses no more than it would by itself.
    /// There are no marks then, whatever the plan names.
    Outside,
}

/// Whether file pages are charged to the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pages {
    /// The page cache is cold, so the subject is charged for every page that it touches.
    Cold,
    /// The pages are cached already and not charged to the subject.
    Warm,
}

/// Bounds that end a trial early.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Guard {
    /// The bounds of each phase; a phase without bounds is not listed.
    pub phases: Vec<PhaseGuard>,
}

/// The bounds of a phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PhaseGuard {
    /// Name of the phase; if the subject generates its own work in it, the marker that begins it.
    pub name: String,
    /// Maximum duration of the phase.
    pub seconds_max: Option<f64>,
    /// How many responses may exceed each bound.
    pub late: Vec<Late>,
    /// The most requests that may fail.
    pub failed_max: Option<u64>,
    /// The lowest rate of correct responses per second over about 3 s, while the plan sends requests.
    pub rate_min_per_s: Option<f64>,
}

/// How many responses may be late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Late {
    /// A response that takes longer is late.
    pub bound_ms: f64,
    /// The time that the bound applies to; service time if there is no response time.
    pub time: Time,
    /// The most responses that may be late.
    pub requests_max: u64,
}

#[cfg(test)]
mod tests {
    use super::super::{parse, vary};
    use super::*;

    fn read_back(plan: &TrialPlan) -> TrialPlan {
        serde_json::from_str(&serde_json::to_string(plan).unwrap()).unwrap()
    }

    /// Finds all scenario files in and below a directory.
    fn scenario_files(folder: &Path, found: &mut Vec<PathBuf>) {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => scenario_files(&path, found),
                false if path.to_string_lossy().ends_with(".loadline.yaml") => found.push(path),
                false => {}
            }
        }
    }

    #[test]
    fn every_scenarios_plans_round_trip_and_can_be_relocated() {
        let mut files = Vec::new();
        scenario_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios"), &mut files);
        assert!(files.len() > 10, "{files:?}");
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let of = |base: &str| parse(&text, Path::new(base), &[17, 21, 25]).unwrap();
            let (here, there) = (of("/here/a"), of("/there/b/c"));
            let heaps = [("heap".to_owned(), ["64m", "1000k"].map(str::to_owned).to_vec())];
            let varied = |scenario: &Scenario| match here.subject.kind {
                super::super::Kind::Jvm => vary(&heaps, &scenario.configurations, Path::new(""), &[]).unwrap(),
                super::super::Kind::Native => Vec::new(),
            };
            let all = |scenario: &Scenario| [scenario.configurations.clone(), varied(scenario)].concat();
            for (one, other) in all(&here).iter().zip(all(&there)) {
                let plan = TrialPlan::of(&here, one);
                assert_eq!(read_back(&plan), plan, "{}", file.display());
                let handed = plan.clone().seen_from(Path::new("/here/a"));
                let same = TrialPlan::of(&there, &other).seen_from(Path::new("/there/b/c"));
                let text = |plan: &TrialPlan| serde_json::to_string(plan).unwrap();
                assert_eq!(text(&handed), text(&same), "{}", file.display());
                assert_eq!(handed.put_into(Path::new("/here/a")), plan, "{}", file.display());
            }
        }
    }

    fn planned(base: &str) -> TrialPlan {
        let text = "name: x\nsubject: {command: [./run.sh, -jar, lib/a.jar, -cp, 'b.jar:lib/c.jar', '{port}'], \
            dir: app, tls: {ca: ca.pem}}\n\
            configurations: {a: {heap: 64m, limit: 200m, preload: native/lib.so, jdk: 17, args: [conf=x.yaml], \
            jvm: ['-javaagent:agent.jar=k', '-Xlog:gc:file=gc.log']}}\nload:\n  - warmup: {same: steady}\n  \
            - steady: {schedule: {file: starts}, post: /, body: {file: body.bin}, stop: ['p99>1.5ms', 'failed>0.0001%']}\n  \
            - other: {driver: \"wrk -s 'post.lua' {url}\"}\n";
        let scenario = parse(text, Path::new(base), &[17]).unwrap_or_else(|error| panic!("{error}"));
        let late = Late { bound_ms: 0.1 + 0.2, time: Time::Usual, requests_max: 12 };
        let guard = PhaseGuard { name: "steady".to_owned(), late: vec![late], ..PhaseGuard::default() };
        let mut plan = TrialPlan {
            index: 4,
            repeats: Some(1),
            look: Look::Outside,
            guard: Guard { phases: vec![guard] },
            pages: Some(Pages::Cold),
            ..TrialPlan::of(&scenario, &scenario.configurations[0])
        };
        plan.subject.ready_within.0 = std::time::Duration::from_nanos(1_234_567_891);
        plan.subject.end_within.0 = std::time::Duration::from_nanos(1_500_001);
        plan
    }

    #[test]
    fn a_plan_does_not_depend_on_its_directory_and_round_trips_exactly() {
        let (one, other) = (planned("/one"), planned("/another/folder"));
        assert_ne!(one, other);
        let (handed, same) = (one.clone().seen_from(Path::new("/one")), other.seen_from(Path::new("/another/folder")));
        let text = serde_json::to_string(&handed).unwrap();
        assert_eq!(text, serde_json::to_string(&same).unwrap());
        assert!(!text.contains("/one"), "{text}");
        assert_eq!(read_back(&handed).put_into(Path::new("/one")), one);
    }

    #[test]
    fn a_plan_lists_the_files_it_may_need() {
        let files = planned("").files();
        let files: Vec<_> = files.iter().filter_map(|file| file.to_str()).collect();
        let needed = [
            "ca.pem",
            "native/lib.so",
            "app/./run.sh",
            "app/lib/a.jar",
            "app/b.jar",
            "app/lib/c.jar",
            "app/x.yaml",
            "app/agent.jar",
            "starts",
            "body.bin",
            "post.lua",
        ];
        let found: Vec<_> =
            needed.iter().filter(|name| files.iter().any(|file| Path::new(file) == Path::new(name))).collect();
        assert_eq!(found.len(), needed.len(), "{files:?}");
        assert!(!files.iter().any(|file| file.contains("gc.log")), "{files:?}");
    }
}
