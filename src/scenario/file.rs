//! The scenario file: YAML text → [`Scenario`]. Unknown keys are errors that show the line and the nearest valid key.

use super::derived::FigureFile;
use super::load_file::{PhaseFile, resolve_load};
use super::matrix::{Matrix, preload};
use super::written::{Named, Scalar, pairs};
use super::*;
use crate::error::{Error, Result};
use crate::units::{Bytes, Span};
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
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("not" = schema::both(&["configurations", "matrix"]))))]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Names the archive.
    #[cfg_attr(test, schemars(with = "Scalar"))]
    name: String,
    /// The program weighed, and how it is started, found ready and ended.
    subject: SubjectFile,
    /// The ways to run it, by name, in the order they run.
    #[cfg_attr(test, schemars(extend("minProperties" = 1, "propertyNames" = schema::file_names())))]
    configurations: Option<Named<ConfigurationFile>>,
    /// Every combination of the values given; an alternative to `configurations`.
    matrix: Option<Matrix>,
    /// What is done to the subject, in order; at least one phase of work. A phase named `warmup` comes before the mark
    /// `warm`.
    #[cfg_attr(test, schemars(with = "Vec<schema::OnePhase>", extend("minItems" = 1)))]
    load: Vec<Named<PhaseFile>>,
    /// When to weigh; where left out, all moments that the load plan has, without `trimmed`, which needs JDK 17 or
    /// newer with glibc.
    #[cfg_attr(test, schemars(with = "Option<Vec<schema::MarkWord>>"))]
    marks: Option<Vec<String>>,
    /// What is done before the mark `collected`, and before a phase's own mark of that kind.
    #[serde(default)]
    collect: CollectFile,
    /// Trials of each configuration, a fresh JVM each.
    #[cfg_attr(test, schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 1)))]
    trials: Option<u32>,
    /// How the configurations are compared.
    #[serde(default)]
    compare: CompareFile,
    /// What must not be exceeded, such as `rss.loaded<=60MiB`, `p99<=20ms`, or against a baseline `rss.loaded<=+2%`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Budget>"))]
    budgets: Vec<String>,
    /// What must hold in every trial of a search for the load line, such as `p99<50ms`, `rate>=98%`, `failed==0`,
    /// `gc_share<10%`, `start_up<5s`; what is usual for the load where left out.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Budget>"))]
    target: Vec<String>,
    /// How the load line is searched.
    #[serde(default)]
    find: FindFile,
    /// How it is tuned: what is tried against memory.
    #[serde(default)]
    tune: TuneFile,
    /// What is derived from the marks of each trial: metrics like all others.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("maxItems" = 32)))]
    figures: Vec<FigureFile>,
    /// Seeds everything drawn at random.
    #[cfg_attr(test, schemars(extend("default" = 1)))]
    seed: Option<u64>,
    /// Timeline samples per second.
    #[cfg_attr(test, schemars(extend("minimum" = 1, "maximum" = 100, "default" = 10)))]
    sample_hz: Option<u32>,
    /// Ask the JVM by its attach socket for what is read from outside where it can be.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    attach: Option<bool>,
    /// List the live objects by class at the end of each trial, by a full GC that nothing measured sees, and what grew
    /// since the start, for which the server is started once more afterwards, without load. Not of a `native` subject.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    classes: Option<bool>,
    /// CPUs of the load engine and the rest of Loadline.
    #[cfg_attr(test, schemars(with = "Option<schema::Cpus>"))]
    load_cpus: Option<Scalar>,
}

/// The program weighed.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("anyOf" = schema::started())))]
#[serde(deny_unknown_fields)]
struct SubjectFile {
    /// Run once by `sh -c` in the subject's folder before the first trial; skipped where nothing it reads has changed
    /// since it ran.
    build: Option<String>,
    /// What the program is. A `native` one is no JVM: it is weighed by what the kernel says of it and what glibc's
    /// heaps hold, and asked nothing.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "jvm")))]
    kind: Kind,
    /// Which of its processes are weighed: the `one` that serves, or `all` below the command as one subject, whose
    /// weight is PSS.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "one")))]
    processes: Processes,
    /// The container image that starts the server, run by podman or docker and never fetched. `command` is then what
    /// follows its entrypoint, instead of its own command; `dir` is only where `build` runs.
    #[cfg_attr(test, schemars(extend("minLength" = 1)))]
    image: Option<String>,
    /// Program and arguments; of an image, its arguments, and none where it has a command of its own. `{port}` stands
    /// for the port, `{jvm}` for the configuration's JVM options, `{jdk}` for its JDK's java, `{args}` for its
    /// arguments, `{code}` for its code, `{work}` for an empty folder of this trial alone, `{artifact}` for the file
    /// that `--artifact` names, as a build tool does.
    #[serde(default)]
    command: Vec<Scalar>,
    /// Working directory, relative to the scenario file.
    dir: Option<std::path::PathBuf>,
    /// Environment for all configurations.
    env: Option<Named<Scalar>>,
    /// Where it listens.
    #[cfg_attr(test, schemars(extend("default" = "127.0.0.1")))]
    host: Option<String>,
    /// A fixed port; a free one is chosen where left out.
    #[cfg_attr(test, schemars(extend("minimum" = 1, "maximum" = 65535)))]
    port: Option<u16>,
    /// How it is spoken to over TLS: `true`, or how its certificate is checked.
    tls: Option<TlsFile>,
    /// The Unix socket it listens on, where the load does not go over TCP; relative to the scenario file.
    socket: Option<std::path::PathBuf>,
    /// What shows that it is ready; an HTTP answer to the first GET of the load, else its port, where left out.
    ready: Option<ReadyFile>,
    /// How long it may take to end after TERM before it is killed.
    #[cfg_attr(test, schemars(extend("default" = "10s")))]
    end_within: Option<Span>,
    /// Whether the buffer pools of Netty are listed at each mark, by an agent that the JVM is started with
    /// (`-javaagent`); for all configurations that do not say otherwise.
    #[serde(default)]
    netty: bool,
}

/// `true`, or how the certificate is checked.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "`true`, or a map such as `{ca: ca.pem}` or `{insecure: true}`")]
enum TlsFile {
    Switch(bool),
    How(TlsHow),
}

/// How the certificate of a server is checked, and what is shown to it.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("dependentRequired" = schema::needs("key", "cert"))))]
#[serde(deny_unknown_fields)]
struct TlsHow {
    /// Certificates (PEM) that are trusted beside those of the machine; relative to the scenario file.
    ca: Option<std::path::PathBuf>,
    /// Whether any certificate is good enough.
    #[serde(default)]
    insecure: bool,
    /// The certificate (PEM) shown to a server that asks for one; relative to the scenario file.
    cert: Option<std::path::PathBuf>,
    /// Its key (PEM); where left out, the key stands in the file of the certificate.
    key: Option<std::path::PathBuf>,
}

impl TlsFile {
    fn resolve(self, base: &Path) -> Result<Option<Tls>> {
        Ok(match self {
            Self::Switch(on) => on.then(Tls::default),
            Self::How(TlsHow { cert: None, key: Some(_), .. }) => {
                return Err(Error::request("`tls` has a `key` but no `cert` to show"));
            }
            Self::How(how) => {
                let file = |path: Option<std::path::PathBuf>| path.map(|path| base.join(path));
                Some(Tls { ca: file(how.ca), insecure: how.insecure, cert: file(how.cert), key: file(how.key) })
            }
        })
    }
}

/// At most one sign of readiness.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("not" = schema::two_of(&["http", "tcp", "log", "phase"]))))]
#[serde(deny_unknown_fields)]
struct ReadyFile {
    /// GET of this path is answered with a status below 400.
    #[cfg_attr(test, schemars(extend("pattern" = "^/[^ \\r\\n]*$")))]
    http: Option<String>,
    /// The port accepts a connection.
    tcp: Option<bool>,
    /// A line of its output matches this regular expression.
    #[cfg_attr(test, schemars(extend("minLength" = 1)))]
    log: Option<String>,
    /// It prints the marker `loadline: phase=NAME`.
    #[cfg_attr(test, schemars(extend("minLength" = 1)))]
    phase: Option<String>,
    /// How many consecutive ports the subject has, `{port}` being the first; each must answer.
    #[cfg_attr(test, schemars(extend("minimum" = 1, "maximum" = 100, "default" = 1)))]
    ports: Option<u16>,
    /// Whether one of these ports suffices; the load goes to the one that answered.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    any: Option<bool>,
    /// How long that may take.
    #[cfg_attr(test, schemars(extend("default" = "60s")))]
    within: Option<Span>,
}

/// One way to run the subject.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct ConfigurationFile {
    /// Minimum and maximum of the heap, `-Xms` and `-Xmx`.
    heap: Option<Bytes>,
    /// The collector.
    #[cfg_attr(test, schemars(with = "Option<schema::Collector>"))]
    gc: Option<String>,
    /// Further JVM options, as typed.
    jvm: Vec<String>,
    /// The JDK; the one the command itself finds, where left out.
    #[cfg_attr(test, schemars(with = "Option<schema::Jdk>"))]
    jdk: Option<Scalar>,
    /// Environment on top of the subject's.
    env: Option<Named<Scalar>>,
    /// A library that the loader puts before all others (`LD_PRELOAD`): a path from the folder of this file, or a name
    /// that the loader finds; `none` for none.
    preload: Option<String>,
    /// What `{code}` in the command stands for: the jar or folder with the code that runs, from the folder of this
    /// file.
    code: Option<std::path::PathBuf>,
    /// Memory limit, enforced by a cgroup.
    limit: Option<Bytes>,
    /// Arguments appended to the command, or put at `{args}`.
    args: Vec<Scalar>,
    /// CPUs of the subject.
    #[cfg_attr(test, schemars(with = "Option<schema::Cpus>"))]
    cpus: Option<Scalar>,
    /// Native Memory Tracking; it costs memory, so RSS and speed are weighed without it.
    #[cfg_attr(test, schemars(with = "Option<Nmt>", extend("default" = "off")))]
    nmt: Option<String>,
    /// Whether it is left out, and that said, where its JDK, its build or its code is missing; else that ends the run.
    optional: bool,
    /// Run once by `sh -c` in the subject's folder, after the subject's own build step.
    build: Option<String>,
    /// Whether the buffer pools of Netty are listed at each mark; as the subject says where left out.
    netty: Option<bool>,
}

impl File {
    fn resolve(self, base: &Path, found: &[u32]) -> Result<Scenario> {
        let netty = self.subject.netty;
        let configurations = match (self.configurations, self.matrix) {
            (Some(_), Some(_)) => return Err(Error::request("give either `configurations` or `matrix`, not both")),
            (Some(named), None) => {
                let own = |(name, c): (String, ConfigurationFile)| (c.netty.is_some(), c.resolve(name, base));
                let resolved = named.0.into_iter().map(own);
                resolved.map(|(own, c)| c.map(|c| if own { c } else { listing(c, netty) })).collect::<Result<_>>()?
            }
            (None, Some(matrix)) => matrix.expand(base, found)?.into_iter().map(|c| listing(c, netty)).collect(),
            (None, None) => vec![listing(Configuration { name: "default".to_owned(), ..Default::default() }, netty)],
        };
        let load = resolve_load(self.load, base)?;
        let subject = self.subject.resolve(base, &load)?;
        let mut scenario = Scenario {
            name: self.name,
            subject,
            configurations,
            load: LoadPlan(load),
            objects: Objects::typed(self.classes.unwrap_or(false)),
            heap_dump: None,
            marks: Vec::new(),
            collect: Collect { times: self.collect.times.unwrap_or(1), settle: self.collect.settle },
            trials: self.compare.trials.or(self.trials).unwrap_or(1),
            compare: self.compare.resolve()?,
            budgets: self.budgets.iter().map(|text| text.parse().map_err(Error::request)).collect::<Result<_>>()?,
            find: self.find.resolve(&self.target)?,
            tune: self.tune.resolve()?,
            figures: self.figures.into_iter().map(FigureFile::resolve).collect::<Result<_>>()?,
            seed: self.seed.unwrap_or(defaults::SEED),
            sample_hz: self.sample_hz.unwrap_or(defaults::SAMPLE_HZ),
            asking: Asking::typed(self.attach.unwrap_or(false)),
            load_cpus: cpus(self.load_cpus)?,
        };
        scenario.marks = match self.marks {
            Some(words) => parse_marks(words.iter().map(String::as_str))?,
            None => scenario.marks_usual(),
        };
        Ok(scenario)
    }
}

/// What is done before a collected mark, as written.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct CollectFile {
    /// Full collections, one after the other.
    #[cfg_attr(test, schemars(extend("minimum" = 1, "maximum" = 10, "default" = 1)))]
    times: Option<u32>,
    /// How long the weighing waits after the last; where left out, until RSS stands still.
    settle: Option<Span>,
}

/// The configuration with what the subject says of Netty's pools.
fn listing(configuration: Configuration, netty: bool) -> Configuration {
    Configuration { netty: netty_of(netty), ..configuration }
}

fn netty_of(listed: bool) -> Netty {
    if listed { Netty::Listed } else { Netty::Unread }
}

/// How configurations are compared, as written.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct CompareFile {
    /// The configuration that the others are compared with; the first one where left out.
    baseline: Option<String>,
    /// Trials of each configuration, one in each block; the same as `trials`.
    #[cfg_attr(test, schemars(extend("minimum" = 1, "maximum" = 1000)))]
    trials: Option<u32>,
    /// The metrics to judge, such as `rss.loaded` or `p99`; the usual ones where left out.
    metrics: Vec<String>,
    /// The least difference that matters, by metric or family: `{rss: 1MiB, rate: 2%}`.
    least: Option<Named<Amount>>,
    /// Of all intervals of the judged metrics together: `95%` or `0.95`.
    #[cfg_attr(test, schemars(with = "Option<schema::Confidence>", extend("default" = "95%")))]
    confidence: Option<Scalar>,
    /// How many blocks may be repeated because the machine disturbed them.
    #[cfg_attr(test, schemars(extend("maximum" = 1000, "default" = 0)))]
    repeats: Option<u32>,
    /// Run blocks until every judged metric is decided, at most this many.
    #[cfg_attr(test, schemars(extend("minimum" = 5, "maximum" = 1000)))]
    until_sure: Option<u32>,
}

impl CompareFile {
    fn resolve(self) -> Result<Compare> {
        let confidence = self.confidence.map(|written| parse_confidence(&written.text())).transpose()?;
        Ok(Compare {
            baseline: self.baseline,
            metrics: self.metrics,
            least: self.least.map_or_else(Vec::new, |least| least.0),
            confidence: confidence.unwrap_or(Compare::CONFIDENCE),
            repeats: self.repeats.unwrap_or(0),
            until_sure: self.until_sure,
        })
    }
}

/// How the load line is searched, as written.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("not" = schema::rate_and_proof())))]
#[serde(deny_unknown_fields, default)]
struct FindFile {
    /// The relative step at which the search stops, from 0.1 % to 50 %.
    #[cfg_attr(test, schemars(with = "Option<schema::Step>", extend("default" = "2%")))]
    step: Option<Amount>,
    /// Trials in a row that must hold at the line.
    #[cfg_attr(test, schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 5)))]
    proofs: Option<u32>,
    /// What is added to the line in the answer, by choice and not by measurement; at most ten times the line.
    #[cfg_attr(test, schemars(with = "Option<schema::Headroom>", extend("default" = "10%")))]
    headroom: Option<Amount>,
    /// Leaves the heap to the JVM, which chooses it by the limit; only the limit is searched.
    as_is: bool,
    /// The smallest limit to ask.
    limit_min: Option<Bytes>,
    /// The largest limit to ask, and the one at which memory is to be no concern; what the machine has where left out.
    limit_max: Option<Bytes>,
    /// The one limit to prove, instead of a search for the smallest.
    prove: Option<Bytes>,
    /// Searches the highest rate that the configuration's limit carries, instead of a limit.
    max_rate: bool,
    /// Trials after which the search ends, whatever is known by then.
    #[cfg_attr(test, schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 60)))]
    trials_max: Option<u32>,
    /// Whether the line of a host that has the file pages in memory already is searched, too.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    warm: Option<bool>,
}

/// A share as it is written, or what is usual.
///
/// # Errors
/// `Request` for an amount of another kind.
fn share(written: Option<Amount>, word: &str, usual: f64) -> Result<f64> {
    match written {
        None => Ok(usual),
        Some(Amount::Share(share) | Amount::Number(share)) => Ok(share),
        Some(other) => Err(Error::request(format!("`{word}: {other}` is no share; write it as `2%`"))),
    }
}

impl FindFile {
    fn resolve(self, target: &[String]) -> Result<Find> {
        let usual = Find::default();
        Ok(Find {
            target: target.iter().map(|text| text.parse().map_err(Error::request)).collect::<Result<_>>()?,
            step: share(self.step, "step", usual.step)?,
            proofs: self.proofs.unwrap_or(usual.proofs),
            headroom: share(self.headroom, "headroom", usual.headroom)?,
            as_is: self.as_is,
            limit_min: self.limit_min,
            limit_max: self.limit_max,
            prove: self.prove,
            max_rate: self.max_rate,
            trials_max: self.trials_max.unwrap_or(usual.trials_max),
            warm: self.warm.unwrap_or(usual.warm),
        })
    }
}

/// How a scenario is tuned.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct TuneFile {
    /// What is made small: the larger of RSS after the load and after the rest, one of them, the peak, or what a limit
    /// cannot take back.
    #[cfg_attr(test, schemars(with = "Option<Objective>", extend("default" = "rss")))]
    objective: Option<Objective>,
    /// What the CPU time of a request may rise by.
    #[cfg_attr(test, schemars(with = "Option<schema::Step>", extend("default" = "2%")))]
    price: Option<Amount>,
    /// Remedies beside those that are known: a JVM option, `env.NAME=VALUE` or `args.WORD`.
    r#try: Vec<String>,
    /// Ids of remedies that are not tried, or how they begin.
    skip: Vec<String>,
    /// Minutes that tuning may take; the least promising remedies are left out for it.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
    minutes: Option<f64>,
    /// Trials after which the search for the winner ends.
    #[cfg_attr(test, schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 40)))]
    trials_max: Option<u32>,
    /// Keeps closed phases closed, instead of a constant rate taken from the first trial.
    closed: bool,
    /// Finds the smallest limit as well, as it is and with what was proved.
    find: bool,
}

impl TuneFile {
    fn resolve(self) -> Result<Tune> {
        let usual = Tune::default();
        Ok(Tune {
            objective: self.objective.unwrap_or_default(),
            price: share(self.price, "price", usual.price)?,
            tries: self.r#try.iter().map(|text| text.parse().map_err(Error::request)).collect::<Result<_>>()?,
            skip: self.skip,
            minutes: self.minutes,
            trials_max: self.trials_max.unwrap_or(usual.trials_max),
            closed: self.closed,
            find: self.find || self.objective == Some(Objective::Limit),
            ..usual
        })
    }
}

/// `95%` or `0.95`.
///
/// # Errors
/// `Request` for what is neither, or not between 50 % and 99.99 %.
pub fn parse_confidence(text: &str) -> Result<f64> {
    let share = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.trim().parse::<f64>(),
    };
    let sound = share.ok().filter(|share| (0.5..=0.9999).contains(share));
    sound.ok_or_else(|| Error::request(format!("`{text}` is no confidence; write it as `95%`, between 50% and 99.99%")))
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

fn cpus(text: Option<Scalar>) -> Result<Cpus> {
    text.map(|text| text.text().parse().map_err(Error::request)).transpose().map(Option::unwrap_or_default)
}

impl SubjectFile {
    fn resolve(self, base: &Path, load: &[Phase]) -> Result<Subject> {
        let first_get = load.iter().find_map(|phase| match &phase.kind {
            PhaseKind::Work(work) if work.request.method == Method::Get => Some(work.request.path.clone()),
            _ => None,
        });
        let within = self.ready.as_ref().and_then(|ready| ready.within).unwrap_or(defaults::READY_WITHIN);
        let ports = self.ready.as_ref().map(ReadyFile::ports).unwrap_or_default();
        let any = self.ready.as_ref().and_then(|ready| ready.any);
        let ready = match self.ready {
            Some(ready) => ready.resolve()?,
            None => None,
        };
        let tls = self.tls.map_or(Ok(None), |tls| tls.resolve(base))?;
        // The readiness probe speaks plain HTTP over TCP.
        let first_get = first_get.filter(|_| tls.is_none() && self.socket.is_none());
        // A subject that works by itself need not listen anywhere; its first marker shows that it runs.
        let by_itself = || match load.first().map(|phase| &phase.kind) {
            Some(PhaseKind::Own(own)) => own.phases.first().cloned().map_or(Ready::Tcp, Ready::Phase),
            _ => Ready::Tcp,
        };
        let ready = ready.unwrap_or_else(|| first_get.map_or_else(by_itself, Ready::Http));
        if any.is_some() && !matches!(ready, Ready::Http(_) | Ready::Tcp) {
            return Err(Error::request(format!("`any` has no effect: `{ready}` asks no port"))
                .hint("drop it, or let `ready` ask the ports by `http` or `tcp`"));
        }
        if self.image.is_some() && self.dir.is_some() && self.build.is_none() {
            return Err(Error::request("`dir` has no effect: the subject is an image, and nothing is built")
                .hint("leave it out; an image has its own working directory"));
        }
        Ok(Subject {
            image: self.image.map(Image::named),
            build: self.build,
            kind: self.kind,
            processes: self.processes,
            command: self.command.into_iter().map(Scalar::text).collect(),
            artifact: None,
            dir: Some(self.dir.map_or_else(|| base.to_owned(), |dir| base.join(dir))),
            env: pairs(self.env),
            host: self.host.unwrap_or_else(|| "127.0.0.1".to_owned()),
            port: self.port,
            ports,
            tls,
            socket: self.socket.map(|socket| base.join(socket)),
            ready,
            ready_within: within,
            end_within: self.end_within.unwrap_or(defaults::END_WITHIN),
        })
    }
}

impl ReadyFile {
    fn ports(&self) -> Ports {
        let answers = if self.any == Some(true) { Answers::Any } else { Answers::Each };
        Ports { count: self.ports.unwrap_or(1), answers }
    }

    /// `None` where only `within` is given.
    fn resolve(self) -> Result<Option<Ready>> {
        match (self.http, self.tcp.unwrap_or(false), self.log, self.phase) {
            (Some(path), false, None, None) => format!("http:{path}").parse().map(Some).map_err(Error::request),
            (None, true, None, None) => Ok(Some(Ready::Tcp)),
            (None, false, Some(pattern), None) => format!("log:{pattern}").parse().map(Some).map_err(Error::request),
            (None, false, None, Some(name)) => Ok(Some(Ready::Phase(name))),
            (None, false, None, None) => Ok(None),
            _ => Err(Error::request("`ready` takes at most one of `http`, `tcp`, `log`, `phase`")),
        }
    }
}

impl ConfigurationFile {
    fn resolve(self, name: String, base: &Path) -> Result<Configuration> {
        let at = |message: String| Error::request(message).at(format!("configuration: {name}"));
        Ok(Configuration {
            heap: self.heap,
            gc: self.gc.map(|word| word.parse().map_err(at)).transpose()?,
            jvm: self.jvm,
            jdk: self.jdk.map(|word| word.text().parse().map_err(at)).transpose()?,
            env: pairs(self.env),
            preload: self.preload.and_then(|library| preload(&library, base)),
            code: self.code.map(|path| base.join(path)),
            limit: self.limit,
            args: self.args.into_iter().map(Scalar::text).collect(),
            cpus: cpus(self.cpus)?,
            nmt: self.nmt.map(|word| word.parse().map_err(at)).transpose()?.unwrap_or_default(),
            optional: self.optional,
            build: self.build,
            netty: netty_of(self.netty.unwrap_or(false)),
            inputs: None,
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
