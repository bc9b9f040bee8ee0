//! What to run, as plain validated values: the subject, its configurations, the load plan and the marks.
//! Made from a scenario file (`file`) or from the options of a verb; everything after this works on these values only.

use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Everything one run is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Names the archive.
    pub name: String,
    /// The program weighed.
    pub subject: Subject,
    /// The ways to run it; at least one, names unique, in the order they run.
    pub configurations: Vec<Configuration>,
    /// What is done to it, in order; at least one phase.
    pub load: Vec<Phase>,
    /// The moments at which it is weighed, in the order of [`MarkPoint`].
    pub marks: Vec<MarkPoint>,
    /// How long it rests after the load before the mark `rested`.
    pub rest: Span,
    /// Trials of each configuration.
    pub trials: u32,
    /// Seeds everything that is drawn at random.
    pub seed: u64,
    /// Timeline samples per second, 1–100.
    pub sample_hz: u32,
}

/// The program weighed and how it is started, found ready and ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Run once in `dir` by `sh -c` before the first trial.
    pub build: Option<String>,
    /// Program and arguments. Placeholders: `{jvm}`, `{port}`, `{jdk}` (path of the JDK's `java`), `{args}`.
    pub command: Vec<String>,
    /// Working directory; absolute once resolved.
    pub dir: Option<PathBuf>,
    /// Environment for all configurations.
    pub env: Vec<(String, String)>,
    /// Where it listens. Without a port a free one is chosen and passed as `{port}`.
    pub host: String,
    /// Fixed port, or `None` for a free one.
    pub port: Option<u16>,
    /// What shows that it is ready.
    pub ready: Ready,
    /// How long that may take.
    pub ready_within: Span,
    /// How long it may take to end after TERM before it is killed.
    pub end_within: Span,
}

/// What shows that the subject is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// An HTTP answer with a status below 400 to GET of this path.
    Http(String),
    /// The port accepts a connection.
    Tcp,
    /// A line of its output matches this regular expression.
    Log(String),
    /// It prints the phase marker `loadline: phase=NAME`.
    Phase(String),
}

impl FromStr for Ready {
    type Err = String;

    /// `http:/path`, `tcp`, `log:REGEX`, `phase:NAME`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once(':').unwrap_or((text, ""));
        match (kind, value) {
            ("http", path) if path.starts_with('/') => Ok(Self::Http(path.to_owned())),
            ("http", "") => Ok(Self::Http("/".to_owned())),
            ("tcp", "") => Ok(Self::Tcp),
            ("log", pattern) if !pattern.is_empty() => match regex_lite::Regex::new(pattern) {
                Ok(_) => Ok(Self::Log(pattern.to_owned())),
                Err(cause) => Err(format!("`{pattern}` is not a regular expression: {cause}")),
            },
            ("phase", name) if !name.is_empty() => Ok(Self::Phase(name.to_owned())),
            _ => Err(format!("`{text}` is none of `http:/PATH`, `tcp`, `log:REGEX`, `phase:NAME`")),
        }
    }
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(path) => write!(f, "http:{path}"),
            Self::Tcp => f.write_str("tcp"),
            Self::Log(pattern) => write!(f, "log:{pattern}"),
            Self::Phase(name) => write!(f, "phase:{name}"),
        }
    }
}

/// One way to run the subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Configuration {
    /// Unique within the scenario.
    pub name: String,
    /// `-Xms` and `-Xmx`: minimum and maximum of the heap.
    pub heap: Option<Bytes>,
    /// The collector.
    pub gc: Option<Gc>,
    /// Further JVM options, as typed.
    pub jvm: Vec<String>,
    /// The JDK; `None` is the one the command itself finds.
    pub jdk: Option<Jdk>,
    /// Environment on top of the subject's.
    pub env: Vec<(String, String)>,
    /// Memory limit, enforced by a cgroup.
    pub limit: Option<Bytes>,
    /// Arguments appended to the command (or put at `{args}`).
    pub args: Vec<String>,
    /// CPUs for the subject.
    pub cpus: Cpus,
    /// Native Memory Tracking.
    pub nmt: Nmt,
}

impl Configuration {
    /// The JVM options that heap, collector and NMT stand for, then those typed.
    pub fn jvm_options(&self) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(heap) = self.heap {
            options.push(format!("-Xms{}", heap.java()));
            options.push(format!("-Xmx{}", heap.java()));
        }
        options.extend(self.gc.iter().flat_map(|gc| gc.flags()).map(|&flag| flag.to_owned()));
        if self.nmt == Nmt::Summary {
            options.push("-XX:NativeMemoryTracking=summary".to_owned());
        }
        options.extend(self.jvm.iter().cloned());
        options
    }
}

/// A garbage collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gc {
    /// Serial.
    Serial,
    /// Garbage-First.
    G1,
    /// Parallel.
    Parallel,
    /// Z.
    #[serde(alias = "zgc")]
    Z,
    /// Shenandoah.
    Shenandoah,
    /// Epsilon: allocates, never collects.
    Epsilon,
}

impl Gc {
    /// All, in the order of the help.
    pub const ALL: [Self; 6] = [Self::Serial, Self::G1, Self::Parallel, Self::Z, Self::Shenandoah, Self::Epsilon];

    /// The word a user types.
    pub fn word(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::G1 => "g1",
            Self::Parallel => "parallel",
            Self::Z => "z",
            Self::Shenandoah => "shenandoah",
            Self::Epsilon => "epsilon",
        }
    }

    /// The JVM options that select it.
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Serial => &["-XX:+UseSerialGC"],
            Self::G1 => &["-XX:+UseG1GC"],
            Self::Parallel => &["-XX:+UseParallelGC"],
            Self::Z => &["-XX:+UseZGC"],
            Self::Shenandoah => &["-XX:+UseShenandoahGC"],
            Self::Epsilon => &["-XX:+UnlockExperimentalVMOptions", "-XX:+UseEpsilonGC"],
        }
    }
}

impl FromStr for Gc {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let word = text.to_ascii_lowercase();
        let word = word.strip_suffix("gc").unwrap_or(&word);
        Self::ALL.into_iter().find(|gc| gc.word() == word).ok_or_else(|| {
            let words: Vec<_> = Self::ALL.iter().map(|gc| gc.word()).collect();
            format!("`{text}` is no collector; one of {}", words.join(", "))
        })
    }
}

/// Which JDK runs the subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jdk {
    /// The newest one found of this feature release, e.g. 17.
    Release(u32),
    /// The one in this folder (`JAVA_HOME`).
    Home(PathBuf),
}

impl FromStr for Jdk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<u32>() {
            Ok(release) => Ok(Self::Release(release)),
            Err(_) if text.contains('/') => Ok(Self::Home(PathBuf::from(text))),
            Err(_) => Err(format!("`{text}` is neither a JDK release such as `17` nor a folder")),
        }
    }
}

impl fmt::Display for Jdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release(release) => write!(f, "{release}"),
            Self::Home(home) => write!(f, "{}", home.display()),
        }
    }
}

/// Which CPUs a process may run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Cpus {
    /// Subject and load apart where there are two or more, else everything shared.
    #[default]
    Apart,
    /// No pinning.
    All,
    /// These, ascending.
    Only(Vec<u32>),
}

impl FromStr for Cpus {
    type Err = String;

    /// `apart`, `all`, or a list such as `0-2,5`.
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is no list of CPUs; write it as `0`, `0-2,5`, `all` or `apart`");
        match text {
            "all" => return Ok(Self::All),
            "apart" => return Ok(Self::Apart),
            _ => {}
        }
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.trim().parse().map_err(|_| refuse())?;
            let last: u32 = last.trim().parse().map_err(|_| refuse())?;
            // 4096 is the kernel's own CONFIG_NR_CPUS ceiling on x86 distributions' kernels, rounded down.
            if first > last || last >= 4096 {
                return Err(refuse());
            }
            cpus.extend(first..=last);
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Self::Only(cpus))
    }
}

/// Native Memory Tracking in the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Nmt {
    /// Not asked for: it costs memory, so speed and RSS are weighed without it.
    #[default]
    Off,
    /// `-XX:NativeMemoryTracking=summary`: the table by category.
    Summary,
}

impl FromStr for Nmt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "summary" => Ok(Self::Summary),
            _ => Err(format!("`{text}` is neither `off` nor `summary`")),
        }
    }
}

/// A stretch of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Unique within the scenario.
    pub name: String,
    /// What happens in it.
    pub kind: PhaseKind,
}

impl Phase {
    /// Whether this is the warm-up: the phase named `warmup`. The mark `warm` follows it.
    pub fn is_warmup(&self) -> bool {
        self.name == "warmup"
    }
}

/// What happens in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// The load engine works.
    Work(Work),
    /// Nothing is sent.
    Idle(Span),
}

/// What the load engine does in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// When requests are meant to start, and how many.
    pub schedule: Schedule,
    /// The request.
    pub request: Request,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// The status that counts as a correct answer.
    pub expect: ExpectStatus,
    /// How long one request may take before it counts as timed out.
    pub timeout: Span,
}

/// When requests are meant to start. One value, one code path in the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Closed model: each connection sends its next request after the answer to the last.
    Closed {
        /// Connections kept busy, at least 1.
        connections: u32,
        /// When it ends.
        until: Until,
    },
}

impl Schedule {
    /// The model's name in results.
    pub fn model(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
        }
    }

    /// Connections the engine may open.
    pub fn connections(&self) -> u32 {
        match self {
            Self::Closed { connections, .. } => *connections,
        }
    }

    /// When it ends.
    pub fn until(&self) -> Until {
        match self {
            Self::Closed { until, .. } => *until,
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { connections, until } => write!(f, "closed, {connections} connections, {until}"),
        }
    }
}

/// When a phase of work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// After this many requests, correct or failed.
    Requests(u64),
    /// After this time.
    Elapsed(Span),
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(n) => write!(f, "{} requests", crate::units::grouped(*n)),
            Self::Elapsed(span) => write!(f, "{span}"),
        }
    }
}

/// One HTTP request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Upper-case method.
    pub method: Method,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Headers on top of `Host`, `Content-Length` and `Connection`.
    pub headers: Vec<(String, String)>,
    /// What is sent after the head.
    pub body: Body,
}

/// HTTP methods the engine sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// GET.
    Get,
    /// PUT.
    Put,
    /// POST.
    Post,
}

impl Method {
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
        }
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_uppercase().as_str() {
            "GET" => Ok(Self::Get),
            "PUT" => Ok(Self::Put),
            "POST" => Ok(Self::Post),
            _ => Err(format!("`{text}` is none of GET, PUT, POST")),
        }
    }
}

/// What is sent after the head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// This many bytes of printable pseudo-random text, the same for every request.
    Generated(Bytes),
    /// The contents of this file.
    File(PathBuf),
}

/// The status that counts as a correct answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum ExpectStatus {
    /// Any of 200–299.
    #[default]
    Success,
    /// Exactly this one.
    Exactly(u16),
}

impl ExpectStatus {
    /// Whether this status is a correct answer.
    #[inline]
    pub fn accepts(self, status: u16) -> bool {
        match self {
            Self::Success => (200..300).contains(&status),
            Self::Exactly(expected) => status == expected,
        }
    }
}

/// A moment of a trial at which the subject is weighed. Ordered as they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkPoint {
    /// Ready, nothing sent but the readiness probe.
    Start,
    /// After the warm-up.
    Warm,
    /// At the end of the load, before anything rests.
    Loaded,
    /// After the rest.
    Rested,
    /// After a full collection.
    Collected,
}

impl MarkPoint {
    /// All, as they happen.
    pub const ALL: [Self; 5] = [Self::Start, Self::Warm, Self::Loaded, Self::Rested, Self::Collected];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Warm => "warm",
            Self::Loaded => "loaded",
            Self::Rested => "rested",
            Self::Collected => "collected",
        }
    }
}

impl FromStr for MarkPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|mark| mark.word() == text).ok_or_else(|| {
            let words: Vec<_> = Self::ALL.iter().map(|mark| mark.word()).collect();
            format!("`{text}` is no mark; one of {}", words.join(", "))
        })
    }
}

/// Defaults, each with its reason.
pub mod defaults {
    use crate::units::Span;

    /// ApacheBench's example of source A; enough to keep one core busy, few enough for any server.
    pub const CONNECTIONS: u32 = 25;
    /// Long enough for C2 to compile a small server's hot paths after an equal warm-up, short enough to wait for.
    pub const DURATION: Span = Span::seconds(10);
    /// Slow application servers take half a minute on one core.
    pub const READY_WITHIN: Span = Span::seconds(60);
    /// The grace Docker gives by default.
    pub const END_WITHIN: Span = Span::seconds(10);
    /// Longer than any pause a healthy server shows under a closed load.
    pub const TIMEOUT: Span = Span::seconds(10);
    /// G1's and ZGC's uncommit start later, but most freeing after load has happened.
    pub const REST: Span = Span::seconds(5);
    /// 10 Hz costs 0.1 % of a core and shows every phase.
    pub const SAMPLE_HZ: u32 = 10;
    /// Any fixed number makes a run repeatable.
    pub const SEED: u64 = 1;
}
