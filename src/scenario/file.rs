//! The scenario file: YAML text → [`Scenario`]. Unknown keys are errors that show the line and the nearest valid key.

use super::derived::FigureFile;
use super::load_file::{PhaseFile, resolve_load};
use super::matrix::{Matrix, preload};
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
    let file: File = yaml_serde::from_str(text).map_err(|cause| explain(text, &cause))?;
    let scenario = file.resolve(base, found)?;
    scenario.validate()?;
    Ok(scenario)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    subject: SubjectFile,
    configurations: Option<Named<ConfigurationFile>>,
    matrix: Option<Matrix>,
    load: Vec<Named<PhaseFile>>,
    marks: Option<Vec<String>>,
    #[serde(default)]
    collect: CollectFile,
    trials: Option<u32>,
    #[serde(default)]
    compare: CompareFile,
    #[serde(default)]
    budgets: Vec<String>,
    #[serde(default)]
    target: Vec<String>,
    #[serde(default)]
    find: FindFile,
    #[serde(default)]
    figures: Vec<FigureFile>,
    seed: Option<u64>,
    sample_hz: Option<u32>,
    load_cpus: Option<Scalar>,
}

/// A map that keeps the order of the file.
pub(super) struct Named<T>(pub(super) Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
            type Value = Named<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map from names")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Named(entries))
            }
        }
        from.deserialize_map(Visitor(std::marker::PhantomData))
    }
}

/// A value that may be written as text or as a number: `1`, `"1"`, `true`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a text or a number")]
pub(super) enum Scalar {
    Text(String),
    Whole(i64),
    Fraction(f64),
    Switch(bool),
}

impl Scalar {
    pub(super) fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Whole(n) => n.to_string(),
            Self::Fraction(n) => n.to_string(),
            Self::Switch(b) => b.to_string(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubjectFile {
    build: Option<String>,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    processes: Processes,
    image: Option<String>,
    #[serde(default)]
    command: Vec<Scalar>,
    dir: Option<std::path::PathBuf>,
    env: Option<Named<Scalar>>,
    host: Option<String>,
    port: Option<u16>,
    tls: Option<TlsFile>,
    socket: Option<std::path::PathBuf>,
    ready: Option<ReadyFile>,
    end_within: Option<Span>,
    #[serde(default)]
    netty: bool,
}

/// `true`, or how.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`true`, or a map such as `{ca: ca.pem}` or `{insecure: true}`")]
enum TlsFile {
    Switch(bool),
    How(TlsHow),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsHow {
    ca: Option<std::path::PathBuf>,
    #[serde(default)]
    insecure: bool,
    cert: Option<std::path::PathBuf>,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadyFile {
    http: Option<String>,
    tcp: Option<bool>,
    log: Option<String>,
    phase: Option<String>,
    ports: Option<u16>,
    any: Option<bool>,
    within: Option<Span>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ConfigurationFile {
    heap: Option<Bytes>,
    gc: Option<String>,
    jvm: Vec<String>,
    jdk: Option<Scalar>,
    env: Option<Named<Scalar>>,
    preload: Option<String>,
    code: Option<std::path::PathBuf>,
    limit: Option<Bytes>,
    args: Vec<Scalar>,
    cpus: Option<Scalar>,
    nmt: Option<String>,
    optional: bool,
    build: Option<String>,
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
            marks: Vec::new(),
            collect: Collect { times: self.collect.times.unwrap_or(1), settle: self.collect.settle },
            trials: self.compare.trials.or(self.trials).unwrap_or(1),
            compare: self.compare.resolve()?,
            budgets: self.budgets.iter().map(|text| text.parse().map_err(Error::request)).collect::<Result<_>>()?,
            find: self.find.resolve(&self.target)?,
            figures: self.figures.into_iter().map(FigureFile::resolve).collect::<Result<_>>()?,
            seed: self.seed.unwrap_or(defaults::SEED),
            sample_hz: self.sample_hz.unwrap_or(defaults::SAMPLE_HZ),
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
#[serde(deny_unknown_fields, default)]
struct CollectFile {
    times: Option<u32>,
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
#[serde(deny_unknown_fields, default)]
struct CompareFile {
    baseline: Option<String>,
    trials: Option<u32>,
    metrics: Vec<String>,
    least: Option<Named<Amount>>,
    confidence: Option<Scalar>,
    repeats: Option<u32>,
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
#[serde(deny_unknown_fields, default)]
struct FindFile {
    step: Option<Amount>,
    proofs: Option<u32>,
    headroom: Option<Amount>,
    as_is: bool,
    limit_min: Option<Bytes>,
    limit_max: Option<Bytes>,
    prove: Option<Bytes>,
    max_rate: bool,
    trials_max: Option<u32>,
    warm: Option<bool>,
}

impl FindFile {
    fn resolve(self, target: &[String]) -> Result<Find> {
        let usual = Find::default();
        let share = |written: Option<Amount>, word: &str, usual: f64| match written {
            None => Ok(usual),
            Some(Amount::Share(share) | Amount::Number(share)) => Ok(share),
            Some(other) => Err(Error::request(format!("`{word}: {other}` is no share; write it as `2%`"))),
        };
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

pub(super) fn pairs(named: Option<Named<Scalar>>) -> Vec<(String, String)> {
    named.map(|named| named.0.into_iter().map(|(k, v)| (k, v.text())).collect()).unwrap_or_default()
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
            name,
        })
    }
}

/// Turns a YAML error into one that shows the line and names the nearest valid key.
///
/// The words come from serde's own sentence: ``unknown field `comand`, expected one of `build`, `command` at line 3``.
pub(super) fn explain(text: &str, cause: &yaml_serde::Error) -> Error {
    let full = cause.to_string();
    let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.contains("unknown field").then(|| quoted.next()).flatten();
    let nearest = unknown.and_then(|word| nearest(word, quoted));
    let what = match unknown {
        Some(word) => format!("unknown key `{word}`"),
        None => in_plain_words(&message),
    };
    let mut error = match cause.location() {
        Some(place) => {
            let line = text.lines().nth(place.line().saturating_sub(1)).unwrap_or("").trim_end();
            Error::request(format!("line {}: {what}", place.line())).at(format!("{:>4} | {line}", place.line()))
        }
        None => Error::request(what),
    };
    if unknown.is_some() {
        error = match nearest {
            Some(word) => error.hint(format!("did you mean `{word}`?")),
            None => error.hint(message.split(", ").skip(1).collect::<Vec<_>>().join(", ")),
        };
    }
    error
}

/// What serde expected, without the names of Rust types.
fn in_plain_words(message: &str) -> String {
    let Some((seen, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    let expected = match expected {
        "u16" | "u32" | "u64" => "a whole number",
        "a sequence" => "a list such as `[a, b]`",
        "a boolean" => "`true` or `false`",
        other if other.starts_with("struct ") => "a map such as `{key: value}`",
        other => other,
    };
    format!("{seen}, expected {expected}")
}

/// The valid word nearest to `word`, if any is near enough to be a slip.
pub(super) fn nearest<'a>(word: &str, valid: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    valid
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
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
