//! The scenario file: YAML text → [`Scenario`]. Errors for unknown keys show the line and the closest valid key.

use super::derived::FigureFile;
use super::load_file::{OnePhase, resolve_load};
use super::load_settings::PhaseSettings;
use super::matrix::Matrix;
use super::written::{Named, Scalar, parsed};
use super::*;
use crate::error::{Error, Result};
use crate::units::Span;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Parses the text of a scenario file.
///
/// Resolves relative paths against `base`. `found` lists the machine's JDK releases, for the matrix value `found`.
/// Errors: `Request` with the line and the closest valid word; `Machine` if `found` is empty.
pub fn parse(text: &str, base: &Path, found: &[u32]) -> Result<Scenario> {
    let file: File = yaml::read(text)?;
    let scenario = file.resolve(base, found)?;
    scenario.validate()?;
    Ok(scenario)
}

/// The full description of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Scenario {
    /// Name of the scenario and its archives.
    pub name: String,
    /// The program to measure.
    pub subject: Subject,
    /// The ways to run it, in order; at least one, with unique names.
    pub configurations: Vec<Configuration>,
    /// The phases of its load, in order; at least one.
    pub load: LoadPlan,
    /// The moments at which the subject is weighed, in the order of [`MarkPoint`].
    pub marks: Vec<MarkPoint>,
    /// Full GCs before the mark `collected` and before phase marks of that kind.
    #[serde(default)]
    pub collect: Collect,
    /// Trials of each configuration.
    pub trials: u32,
    /// How to compare the configurations.
    #[serde(default)]
    pub compare: Compare,
    /// The budgets that must not be exceeded.
    #[serde(default)]
    pub budgets: Vec<Budget>,
    /// The settings of a search for the load line.
    #[serde(default)]
    pub find: Find,
    /// The settings of tuning.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tune: Tune,
    /// Whether live objects are listed at the end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub objects: Objects,
    /// The new file for a heap dump at the end of the first trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_dump: Option<PathBuf>,
    /// A second start of the first trial of each configuration, which shows the code that holds memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explain>,
    /// The figures derived from the marks of each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Derived>,
    /// Seed for all random choices.
    pub seed: u64,
    /// Timeline samples per second, 1–100.
    pub sample_hz: u32,
    /// When to query a JVM for data that can be read from outside it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub asking: Asking,
    /// CPUs for the load engine and the rest of Loadline.
    pub load_cpus: Cpus,
}

impl Scenario {
    /// The marks that are possible with this load plan.
    pub fn marks_possible(&self) -> Vec<MarkPoint> {
        let has_moment = |mark: &MarkPoint| match mark {
            MarkPoint::Warm => self.load.iter().any(Phase::is_warmup),
            MarkPoint::Rested => self.load.rests(),
            MarkPoint::Collected | MarkPoint::Trimmed => self.subject.kind == Kind::Jvm,
            MarkPoint::Start | MarkPoint::Loaded => true,
        };
        MarkPoint::ALL.into_iter().filter(has_moment).collect()
    }

    /// A trial's mark names: first those of [`MarkPoint`], then those of phases.
    pub fn mark_names(&self) -> Vec<&str> {
        self.marks.iter().map(|mark| mark.word()).chain(self.load.marks()).collect()
    }

    /// The default marks: all possible ones except `trimmed`, which only some JVMs support.
    pub fn marks_usual(&self) -> Vec<MarkPoint> {
        self.marks_possible().into_iter().filter(|mark| *mark != MarkPoint::Trimmed).collect()
    }

    /// Changes trial settings other than the load: rest, sampling rate, and how to query the JVM.
    pub(super) fn change_trial(&mut self, typed: &TrialOptions) {
        if let Some(rest) = typed.rest {
            let last = self.load.last_work().map_or(0, |last| last + 1);
            self.load.truncate(last);
            if rest.0.is_zero() {
                self.marks.retain(|mark| *mark != MarkPoint::Rested);
            } else {
                self.load.push(Phase::new("rest", PhaseKind::Idle(rest)));
            }
        }
        self.sample_hz = typed.sample_hz.unwrap_or(self.sample_hz);
        if typed.attach {
            self.asking = Asking::Always;
        }
    }

    /// Changes the marks and the number of trials. Call it last, because other settings determine the possible marks.
    /// Errors: `Request` for a word that is not a mark.
    pub fn mark(&mut self, typed: &Marking) -> Result<()> {
        if let Some(words) = &typed.marks {
            self.marks = parse_marks(words.split(','))?;
        }
        self.trials = typed.trials.unwrap_or(self.trials);
        Ok(())
    }

    /// Explains memory by restarting the first trial of each configuration. A profiler's path must be absolute. Errors:
    /// `Request` if the subject is not a JVM, or its code is in a container.
    pub fn explain(&mut self, typed: Explain) -> Result<()> {
        if self.subject.kind != Kind::Jvm {
            return Err(Error::request("only JVM code can be explained, and the server is not a JVM"));
        }
        if self.subject.image.is_some() {
            return Err(Error::request("a profiler cannot be added to a container (`--image`)")
                .hint("start the server without a container, or explain a running one: `loadline explain PID`"));
        }
        self.explain = Some(typed);
        Ok(())
    }

    /// Inspects the heap at the end of trials, in addition to what the scenario requests. A dump's path must be
    /// absolute. Errors: `Request` if the subject is not a JVM, or if a dump would be written inside a container.
    pub fn look_inside(&mut self, typed: Inside) -> Result<()> {
        let asked = if typed.classes { "--classes" } else { "--heap-dump" };
        let any = typed.classes || typed.heap_dump.is_some();
        if any && self.subject.kind != Kind::Jvm {
            return Err(Error::request(format!("`{asked}` needs a JVM, and the server is not one")));
        }
        if typed.heap_dump.is_some() && self.subject.image.is_some() {
            return Err(Error::request(
                "`--heap-dump` would write inside the container, which is removed at \
                 the end",
            )
            .hint(
                "run the server without `--image`, or use `loadline account PID` on a container that keeps \
                     running",
            ));
        }
        if typed.classes {
            self.objects = Objects::Listed;
        }
        self.heap_dump = typed.heap_dump;
        Ok(())
    }
}

/// Trial settings besides the load.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Trial")]
pub struct TrialOptions {
    /// Idle time after the load [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub rest: Option<Span>,
    /// Timeline samples per second [default: 10]
    #[arg(long, value_name = "HZ")]
    pub sample_hz: Option<u32>,
    /// Use the attach API even for data that can be read from outside the JVM; costs the JVM 0.2 to 0.3 MiB
    #[arg(long)]
    pub attach: bool,
}

/// When to weigh the subject, and how many trials to run. A search decides both by itself.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Trial")]
pub struct Marking {
    /// When to measure memory: start,warm,loaded,rested,collected,trimmed [default: all but trimmed]
    #[arg(long, value_name = "MARKS")]
    pub marks: Option<String>,
    /// Trials per configuration, each in a fresh JVM [default: 1; 5 with `compare`]
    #[arg(long, value_name = "N")]
    pub trials: Option<u32>,
}

/// A second start of a command after all measurements, under a profiler with the same load. It leaves a heap dump.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, Args)]
#[command(next_help_heading = "Profiling")]
pub struct Explain {
    /// async-profiler library, or the `tools.profiler:async-profiler` jar [default: next to loadline, else the newest
    /// in the local Maven repository]
    #[arg(long, value_name = "FILE")]
    pub profiler: Option<PathBuf>,
}

/// Inspection of the heap, after all measurements.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Trial")]
pub struct Inside {
    /// List live objects by class after each trial, with their growth since startup. Forces a full GC after all
    /// measurements, and starts the server once more, without load, as a reference
    #[arg(long)]
    pub classes: bool,
    /// Dump the heap to a new FILE at the end of the first trial. Forces a full GC, then pauses the JVM while it writes
    /// a file about as large as the live heap
    #[arg(long, value_name = "FILE")]
    pub heap_dump: Option<PathBuf>,
}

/// A scenario as written.
#[derive(Default, Deserialize, schemars::JsonSchema)]
#[schemars(extend("not" = schema::both(&["configurations", "matrix"])))]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Name of the scenario and its archives.
    #[schemars(with = "Scalar")]
    pub(super) name: String,
    /// The program to measure, and how to start it, detect that it is ready, and stop it.
    pub(super) subject: SubjectSettings,
    /// Ways to run the subject, by name, in order.
    #[schemars(extend("minProperties" = 1, "propertyNames" = schema::file_names()))]
    pub(super) configurations: Option<Named<ConfigurationSettings>>,
    /// All combinations of these values, as an alternative to `configurations`.
    matrix: Option<Matrix>,
    /// Phases of the load, in order, at least one with work. A phase named `warmup` precedes the mark `warm`.
    #[schemars(with = "Vec<OnePhase>", extend("minItems" = 1))]
    load: Vec<Named<PhaseSettings>>,
    /// When to measure memory. Default: all marks that the load plan allows, except `trimmed`, which needs glibc and
    /// JDK 17 or newer.
    #[schemars(with = "Option<Vec<schema::MarkWord>>")]
    marks: Option<Vec<String>>,
    /// Full GCs before the mark `collected` and before phase marks of that kind.
    #[serde(default)]
    collect: CollectFile,
    /// Trials of each configuration, each in a fresh JVM.
    #[schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 1))]
    trials: Option<u32>,
    /// How to compare the configurations.
    #[serde(default)]
    compare: CompareSettings,
    /// Budgets, such as `rss.loaded<=60MiB`, `p99<=20ms`, or, against a baseline, `rss.loaded<=+2%`.
    #[serde(default)]
    budgets: Vec<Budget>,
    /// Conditions that every trial of a search for the load line must meet, such as `p99<50ms`, `rate>=98%`,
    /// `failed==0`, `gc_share<10%`, `start_up<5s`; if omitted, the defaults for the load.
    #[serde(default)]
    target: Vec<Budget>,
    /// How to search for the load line.
    #[serde(default)]
    find: FindSettings,
    /// How to tune the subject's memory use.
    #[serde(default)]
    tune: TuneSettings,
    /// Figures derived from the marks of each trial, used like any other metric.
    #[serde(default)]
    #[schemars(extend("maxItems" = 32))]
    figures: Vec<FigureFile>,
    /// Seed for all random choices.
    #[schemars(extend("default" = 1))]
    seed: Option<u64>,
    /// Timeline samples per second.
    #[schemars(extend("minimum" = 1, "maximum" = 100, "default" = 10))]
    sample_hz: Option<u32>,
    /// Use the attach API even for data that can be read from outside the JVM.
    #[schemars(extend("default" = false))]
    attach: Option<bool>,
    /// List live objects by class after each trial, with their growth since startup. Forces a full GC after all
    /// measurements, and starts the server once more, without load, as a reference. Not for a `native` subject.
    #[schemars(extend("default" = false))]
    classes: Option<bool>,
    /// CPUs for the load generator and the rest of Loadline.
    #[schemars(with = "Option<schema::Cpus>")]
    #[serde(default, deserialize_with = "parsed")]
    load_cpus: Option<Cpus>,
}

impl File {
    fn resolve(mut self, base: &Path, found: &[u32]) -> Result<Scenario> {
        let load = resolve_load(std::mem::take(&mut self.load), base)?;
        self.with_load(load, Some(base), found)
    }

    pub(super) fn with_load(self, load: Vec<Phase>, folder: Option<&Path>, found: &[u32]) -> Result<Scenario> {
        let base = folder.unwrap_or(Path::new(""));
        let usual = Configuration { netty: Netty::written(self.subject.netty), ..Configuration::default() };
        let configurations = match (self.configurations, self.matrix) {
            (Some(_), Some(_)) => return Err(Error::request("specify either `configurations` or `matrix`, not both")),
            (Some(named), None) => {
                let of = |(name, settings)| {
                    let mut configuration = Configuration { name, ..usual.clone() };
                    configuration.apply(settings, base);
                    configuration
                };
                named.0.into_iter().map(of).collect()
            }
            (None, Some(matrix)) => matrix.expand(&usual, base, found)?,
            (None, None) => vec![Configuration { name: "default".to_owned(), ..usual }],
        };
        let subject = self.subject.resolve(folder, &load)?;
        let (mut compare, mut tune) = (Compare::default(), Tune::default());
        let mut find = Find { target: self.target, ..Find::default() };
        let trials = self.compare.trials.or(self.trials).unwrap_or(1);
        compare.apply(self.compare);
        find.apply(self.find);
        tune.apply(self.tune);
        let mut scenario = Scenario {
            name: self.name,
            subject,
            configurations,
            load: LoadPlan(load),
            objects: if self.classes == Some(true) { Objects::Listed } else { Objects::Unread },
            heap_dump: None,
            explain: None,
            marks: Vec::new(),
            collect: Collect { times: self.collect.times.unwrap_or(1), settle: self.collect.settle },
            trials,
            compare,
            budgets: self.budgets,
            find,
            tune,
            figures: self.figures.into_iter().map(FigureFile::resolve).collect::<Result<_>>()?,
            seed: self.seed.unwrap_or(defaults::SEED),
            sample_hz: self.sample_hz.unwrap_or(defaults::SAMPLE_HZ),
            asking: Asking::typed(self.attach.unwrap_or(false)),
            load_cpus: self.load_cpus.unwrap_or_default(),
        };
        scenario.marks = match self.marks {
            Some(words) => parse_marks(words.iter().map(String::as_str))?,
            None => scenario.marks_usual(),
        };
        Ok(scenario)
    }
}

/// Full GCs before a collected mark.
#[derive(Deserialize, Default, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct CollectFile {
    /// Number of consecutive full GCs.
    #[schemars(extend("minimum" = 1, "maximum" = 10, "default" = 1))]
    times: Option<u32>,
    /// How long to wait after the last GC before the measurement; if omitted, until RSS is stable.
    settle: Option<Span>,
}

/// Parses words into distinct marks in chronological order. Errors: `Request` for a word that is not a mark.
pub fn parse_marks<'a>(words: impl Iterator<Item = &'a str>) -> Result<Vec<MarkPoint>> {
    let mut marks = words.map(|word| word.trim().parse().map_err(Error::request)).collect::<Result<Vec<_>>>()?;
    marks.sort_unstable();
    marks.dedup();
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    const SCENARIO: &str = "\
name: tiny-http
subject:
  command: [java, '{jvm}', -jar, app.jar, '{port}']
  env: {LANG: C, N: 1}
  ready: {http: /hello, within: 30s}
matrix: {gc: [g1, serial], heap: [6m], jdk: [found], exclude: [{gc: g1, jdk: 17}]}
load:
  - warmup: {same: steady}
  - steady: {closed: {connections: 25, requests: 50000}, get: /hello}
  - rest: {idle: 5s}
";

    fn parse_here(text: &str) -> Result<Scenario> {
        parse(text, Path::new("/base"), &[11, 17, 25])
    }

    #[test]
    fn a_complete_scenario_is_read() {
        let scenario = parse_here(SCENARIO).unwrap();
        let names: Vec<_> = scenario.configurations.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["g1-jdk25", "serial-jdk17", "serial-jdk25"]);
        assert_eq!(scenario.configurations[0].heap, Some(Bytes::mib(6)));
        assert_eq!(scenario.load[0].kind, scenario.load[1].kind);
        assert!(scenario.load[0].is_warmup() && scenario.load.rests());
        assert_eq!(scenario.marks, MarkPoint::ALL[..5]);
        assert_eq!(scenario.subject.ready_within, Span::seconds(30));
        assert_eq!(scenario.subject.env[1], ("N".to_owned(), "1".to_owned()));
    }

    #[test]
    fn live_objects_are_listed_if_the_file_or_command_line_requests_it() {
        let with = |text: &str, typed: bool| {
            let mut scenario = parse_here(&format!("{SCENARIO}{text}")).unwrap();
            scenario.look_inside(Inside { classes: typed, heap_dump: None }).unwrap();
            scenario.objects
        };
        for text in ["", "classes: false\n"] {
            assert_eq!((with(text, false), with(text, true)), (Objects::Unread, Objects::Listed));
        }
        assert_eq!(with("classes: true\n", false), Objects::Listed);
        let native = "name: n\nsubject: {kind: native, command: [server]}\nclasses: true\n\
                      load:\n  - steady: {closed: {connections: 1, requests: 1}, get: /}\n";
        assert!(parse_here(native).unwrap_err().what.contains("`classes` has no effect"));
    }

    #[test]
    fn netty_can_be_listed_for_all_configurations_or_one() {
        let listed = |text: &str| {
            let all = parse_here(text).unwrap().configurations;
            all.iter().map(|configuration| configuration.netty == Netty::Listed).collect::<Vec<_>>()
        };
        assert_eq!(listed(SCENARIO), [false; 3]);
        assert_eq!(listed(&SCENARIO.replace("  env:", "  netty: true\n  env:")), [true; 3]);
        let named = |subject: &str| {
            let matrix = SCENARIO.lines().find(|line| line.starts_with("matrix")).unwrap();
            let named = "configurations: {a: {}, b: {netty: false}, c: {netty: true}}";
            listed(&SCENARIO.replace(matrix, named).replace("  env:", &format!("{subject}  env:")))
        };
        assert_eq!(named(""), [false, false, true]);
        assert_eq!(named("  netty: true\n"), [true, false, true]);
    }

    #[test]
    fn a_misspelled_scenario_key_names_line_and_nearest_key() {
        let error = parse_here(&SCENARIO.replace("  command:", "  comand:")).unwrap_err();
        assert_eq!(error.what, "line 3: unknown key `comand`");
        assert!(error.context[0].contains("comand: [java"), "{error}");
        assert_eq!(error.hint.as_deref(), Some("did you mean `command`?"));
        let error = parse_here(&SCENARIO.replace("connections:", "conections:")).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("did you mean `connections`?"));
    }

    #[test]
    fn wrong_values_say_what_is_valid() {
        let check = |from: &str, to: &str, expect: &str| {
            let error = parse_here(&SCENARIO.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(expect), "{error}");
        };
        check("gc: [g1, serial]", "gc: [g2]", "`g2` is not a collector");
        check("heap: [6m]", "heap: [6q]", "`6q` is not a size");
        check("heap: [6m]", "heap: [1.5]", "`1.5` is not a size");
        check("heap: [6m]", "heap: [64]", "`heap` is 64 bytes, which is too small for any process");
        check("heap: [6m]", "limit: [512]", "write mebibytes as `64m`");
        check("load:", "find: {limit_min: 64}\nload:", "`find.limit_min` is 64 bytes");
        check("load:", "find: {limit_max: 1024}\nload:", "`find.limit_max` is 1,024 bytes");
        check("load:", "find: {prove: 107}\nload:", "`find.prove` is 107 bytes");
        check("connections: 25", "connections: 0", "between 1 and 100000");
        check("requests: 50000", "requests: 0", "between 1");
        check("same: steady", "same: stedy", "no phase is named `stedy`");
        check("same: steady", "same: stedy", "did you mean `steady`?");
        check("get: /hello}", "get: hello}", "must start with `/`");
        check("idle: 5s", "idle: 5x", "is not a duration");
        check("idle: 5s", "idle: 5s, get: /x", "`get` would have no effect");
        check("same: steady", "same: steady, closed: {requests: 10}", "`closed` would have no effect");
        check("get: /hello}", "get: /hello, expect: 20}", "between 100 and 999");
        check("  env:", "  port: 0\n  env:", "between 1 and 65535");
        check("name: tiny-http", "name: [", "line");
        check("connections: 25", "connections: many", "string \"many\", expected a whole number");
        check("  command: [java", "  command: java # [java", "expected a list such as");
        check("  ready: {", "  ready: 5 # {", "expected a map such as `{key: value}`");
        check("  - rest: {idle: 5s}\n", "marks: [rested]\n", "needs an idle phase");
        check("  - rest: {idle: 5s}\n", "configurations: {a: {}}\n", "either");
    }
}
