//! The scenario file: YAML text → [`Scenario`]. Unknown keys are errors that show the line and the nearest valid key.

use super::derived::FigureFile;
use super::load_file::{OnePhase, PhaseFile, resolve_load};
use super::matrix::Matrix;
use super::written::{Named, Scalar, parsed};
use super::*;
use crate::error::{Error, Result};
use crate::units::Span;
use serde::Deserialize;
use std::path::Path;

/// Parses the text of a scenario file.
///
/// `base` is the folder relative paths start from; `found` are the JDK releases on the machine, for the axis value
/// `found` of a matrix.
///
/// # Errors
/// `Request` with line and nearest valid word; `Machine` when `found` finds nothing.
pub fn parse(text: &str, base: &Path, found: &[u32]) -> Result<Scenario> {
    let file: File = yaml::read(text)?;
    let scenario = file.resolve(base, found)?;
    scenario.validate()?;
    Ok(scenario)
}

/// A scenario as it is written.
#[derive(Default, Deserialize, schemars::JsonSchema)]
#[schemars(extend("not" = schema::both(&["configurations", "matrix"])))]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Names the archive.
    #[schemars(with = "Scalar")]
    pub(super) name: String,
    /// The program weighed, and how it is started, found ready and ended.
    pub(super) subject: SubjectSettings,
    /// The ways to run it, by name, in the order they run.
    #[schemars(extend("minProperties" = 1, "propertyNames" = schema::file_names()))]
    pub(super) configurations: Option<Named<ConfigurationSettings>>,
    /// Every combination of the values given; an alternative to `configurations`.
    matrix: Option<Matrix>,
    /// What is done to the subject, in order; at least one phase of work. A phase named `warmup` comes before the mark
    /// `warm`.
    #[schemars(with = "Vec<OnePhase>", extend("minItems" = 1))]
    load: Vec<Named<PhaseFile>>,
    /// When to weigh; where left out, all moments that the load plan has, without `trimmed`, which needs JDK 17 or
    /// newer with glibc.
    #[schemars(with = "Option<Vec<schema::MarkWord>>")]
    marks: Option<Vec<String>>,
    /// What is done before the mark `collected`, and before a phase's own mark of that kind.
    #[serde(default)]
    collect: CollectFile,
    /// Trials of each configuration, a fresh JVM each.
    #[schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 1))]
    trials: Option<u32>,
    /// How the configurations are compared.
    #[serde(default)]
    compare: CompareSettings,
    /// What must not be exceeded, such as `rss.loaded<=60MiB`, `p99<=20ms`, or against a baseline `rss.loaded<=+2%`.
    #[serde(default)]
    budgets: Vec<Budget>,
    /// What must hold in every trial of a search for the load line, such as `p99<50ms`, `rate>=98%`, `failed==0`,
    /// `gc_share<10%`, `start_up<5s`; what is usual for the load where left out.
    #[serde(default)]
    target: Vec<Budget>,
    /// How the load line is searched.
    #[serde(default)]
    find: FindSettings,
    /// How it is tuned: what is tried against memory.
    #[serde(default)]
    tune: TuneSettings,
    /// What is derived from the marks of each trial: metrics like all others.
    #[serde(default)]
    #[schemars(extend("maxItems" = 32))]
    figures: Vec<FigureFile>,
    /// Seeds everything drawn at random.
    #[schemars(extend("default" = 1))]
    seed: Option<u64>,
    /// Timeline samples per second.
    #[schemars(extend("minimum" = 1, "maximum" = 100, "default" = 10))]
    sample_hz: Option<u32>,
    /// Ask the JVM by its attach socket for what is read from outside where it can be.
    #[schemars(extend("default" = false))]
    attach: Option<bool>,
    /// List the live objects by class at the end of each trial, by a full GC that nothing measured sees, and what grew
    /// since the start, for which the server is started once more afterwards, without load. Not of a `native` subject.
    #[schemars(extend("default" = false))]
    classes: Option<bool>,
    /// CPUs of the load engine and the rest of Loadline.
    #[schemars(with = "Option<schema::Cpus>")]
    #[serde(default, deserialize_with = "parsed")]
    load_cpus: Option<Cpus>,
}

impl File {
    fn resolve(mut self, base: &Path, found: &[u32]) -> Result<Scenario> {
        let load = resolve_load(std::mem::take(&mut self.load), base)?;
        self.with_load(load, Some(base), found)
    }

    /// The scenario with this load: of a file in this folder, or of a command line.
    pub(super) fn with_load(self, load: Vec<Phase>, folder: Option<&Path>, found: &[u32]) -> Result<Scenario> {
        let base = folder.unwrap_or(Path::new(""));
        let usual = Configuration { netty: Netty::written(self.subject.netty), ..Configuration::default() };
        let configurations = match (self.configurations, self.matrix) {
            (Some(_), Some(_)) => return Err(Error::request("give either `configurations` or `matrix`, not both")),
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
            objects: Objects::typed(self.classes.unwrap_or(false)),
            heap_dump: None,
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

/// What is done before a collected mark, as written.
#[derive(Deserialize, Default, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct CollectFile {
    /// Full collections, one after the other.
    #[schemars(extend("minimum" = 1, "maximum" = 10, "default" = 1))]
    times: Option<u32>,
    /// How long the weighing waits after the last; where left out, until RSS stands still.
    settle: Option<Span>,
}

/// Words to marks, in the order they happen, each once.
///
/// # Errors
/// `Request` for a word that is no mark.
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
    fn reads_a_whole_scenario() {
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
    fn live_objects_are_listed_where_the_file_or_the_command_line_asks() {
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
    fn netty_is_listed_for_all_or_for_one() {
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
    fn a_misspelt_key_names_line_and_nearest() {
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
        check("gc: [g1, serial]", "gc: [g2]", "`g2` is no collector");
        check("heap: [6m]", "heap: [6q]", "`6q` is not a size");
        check("heap: [6m]", "heap: [1.5]", "`1.5` is not a size");
        check("heap: [6m]", "heap: [64]", "`heap` is 64 bytes, too little for any process");
        check("heap: [6m]", "limit: [512]", "write mebibytes as `64m`");
        check("load:", "find: {limit_min: 64}\nload:", "`find.limit_min` is 64 bytes");
        check("load:", "find: {limit_max: 1024}\nload:", "`find.limit_max` is 1,024 bytes");
        check("load:", "find: {prove: 107}\nload:", "`find.prove` is 107 bytes");
        check("connections: 25", "connections: 0", "between 1 and 100000");
        check("requests: 50000", "requests: 0", "between 1");
        check("same: steady", "same: stedy", "no phase is named `stedy`");
        check("same: steady", "same: stedy", "did you mean `steady`?");
        check("get: /hello}", "get: hello}", "begins with `/`");
        check("idle: 5s", "idle: 5x", "not a span");
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
