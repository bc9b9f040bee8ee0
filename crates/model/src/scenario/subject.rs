//! The subject: its settings in a file and on a command line, and values derived from them.

use super::load_settings::TlsSettings;
use super::schema;
use super::written::{Named, Scalar, texts, texts_by_name};
use super::*;
use crate::error::{Error, Result};
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The program to measure, and how to start it, detect that it is ready, and stop it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Subject {
    /// A command run once by `sh -c` in `dir` before the first trial.
    pub build: Option<String>,
    /// The kind of program.
    #[serde(default)]
    pub kind: Kind,
    /// Which processes of the subject to measure.
    #[serde(default)]
    pub processes: Processes,
    /// The container image that starts it. The command is then the arguments of the image's entrypoint, and may be
    /// empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Program and arguments. Placeholders: `{jvm}`, `{port}`, `{jdk}` (path of the JDK's `java`), `{args}`, `{code}`,
    /// `{artifact}`, `{work}` (an empty directory for this trial alone).
    pub command: Vec<String>,
    /// The value of `{artifact}`: the file that a build tool made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<PathBuf>,
    /// Working directory; the directory of the scenario file if the file names none.
    pub dir: Option<PathBuf>,
    /// Environment variables for all configurations.
    pub env: Vec<(String, String)>,
    /// The host on which it listens. Without a port, a free one is chosen and passed as `{port}`.
    pub host: String,
    /// Fixed port, or `None` for a free one.
    pub port: Option<u16>,
    /// The block of ports that begins with `port`.
    #[serde(default)]
    pub ports: Ports,
    /// The TLS settings, if the load uses TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The Unix socket on which it listens, if the load does not use TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// The sign that the subject is ready.
    pub ready: Ready,
    /// Time to wait until the server is ready.
    pub ready_within: Span,
    /// Time to wait after SIGTERM before killing the server.
    pub end_within: Span,
}

impl Default for Subject {
    /// A JVM without a command, with defaults for all other settings.
    fn default() -> Self {
        Self {
            build: None,
            kind: Kind::default(),
            processes: Processes::default(),
            image: None,
            command: Vec::new(),
            artifact: None,
            dir: None,
            env: Vec::new(),
            host: "127.0.0.1".to_owned(),
            port: None,
            ports: Ports::default(),
            tls: None,
            socket: None,
            ready: Ready::Tcp,
            ready_within: defaults::READY_WITHIN,
            end_within: defaults::END_WITHIN,
        }
    }
}

/// The sign that the subject is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// An HTTP response to a GET of this path, with a status below 400 or the status that the load expects for that
    /// path.
    Http(String),
    /// A connection that the port accepts.
    Tcp,
    /// Regular expression that a line of its output matches.
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
            _ => Err(format!("`{text}` is not one of `http:/PATH`, `tcp`, `log:REGEX`, or `phase:NAME`")),
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

/// The program to measure.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, clap::Args, schemars::JsonSchema)]
#[schemars(rename = "SubjectFile", extend("anyOf" = schema::started()))]
#[command(next_help_heading = "Server")]
#[serde(deny_unknown_fields, default)]
pub struct SubjectSettings {
    /// Command run once with `sh -c` in the subject's directory before the first trial; skipped if its inputs are
    /// unchanged.
    #[arg(skip)]
    pub build: Option<String>,
    /// Kind of program. A `native` program is not a JVM; it is measured only through the kernel and glibc's heaps.
    #[arg(skip)]
    #[schemars(extend("default" = "jvm"))]
    pub kind: Kind,
    /// Processes to measure: the `one` that serves requests; `all`, the command and its descendants, by PSS; or all in
    /// a dedicated memory `cgroup`, whose charge each mark then lists by owner.
    #[arg(long, value_enum, hide_possible_values = true, value_name = "WHICH", help = PROCESSES)]
    #[schemars(with = "Processes", extend("default" = "one"))]
    pub processes: Option<Processes>,
    /// Container image, run with podman or docker and never pulled. `command` replaces the image's command as the
    /// arguments of its entrypoint; `dir` is only the directory for `build`.
    #[arg(long, value_name = "IMAGE", help = IMAGE)]
    #[schemars(extend("minLength" = 1))]
    pub image: Option<String>,
    /// Build output that replaces `{artifact}` in the command
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub artifact: Option<PathBuf>,
    /// Program and arguments; for an image, optional arguments. Placeholders: `{port}` is the port, `{work}` an empty
    /// directory for each trial, `{jvm}` the configuration's JVM options, `{jdk}` its JDK's java, `{args}` its
    /// arguments, `{code}` its code, and `{artifact}` the file given with `--artifact`.
    #[arg(skip)]
    #[schemars(with = "Vec<Scalar>")]
    #[serde(deserialize_with = "texts")]
    pub command: Vec<String>,
    /// The settings of every configuration; a file gives them per configuration.
    #[command(flatten)]
    #[serde(skip)]
    pub configuration: ConfigurationSettings,
    /// Working directory, relative to the scenario file.
    #[arg(long, value_name = "DIR", help = "Working directory of the server")]
    pub dir: Option<PathBuf>,
    /// Environment variables for all configurations.
    #[arg(skip)]
    #[schemars(with = "Option<Named<Scalar>>")]
    #[serde(deserialize_with = "texts_by_name")]
    pub env: Vec<(String, String)>,
    /// Host that it listens on.
    #[arg(skip)]
    #[schemars(extend("default" = "127.0.0.1"))]
    pub host: Option<String>,
    /// Fixed port; if omitted, a free one.
    #[arg(skip)]
    #[schemars(extend("minimum" = 1, "maximum" = 65535))]
    pub port: Option<u16>,
    /// TLS: `true`, or how to check the subject's certificate.
    #[arg(skip)]
    pub(super) tls: Option<TlsFile>,
    /// Unix socket to use instead of TCP, relative to the scenario file.
    #[arg(skip)]
    pub socket: Option<PathBuf>,
    /// Run the scenario's build step even if its inputs are unchanged
    #[arg(long)]
    #[serde(skip)]
    pub rebuild: bool,
    /// Readiness check; if omitted, an HTTP response to the load's first GET or, without one, a connection to its port.
    #[command(flatten)]
    pub ready: ReadySettings,
    /// Time to wait after SIGTERM before killing the server.
    #[arg(long, value_name = "TIME", help = "Time to wait after SIGTERM before killing the server [default: 10s]")]
    #[schemars(extend("default" = "10s"))]
    pub end_within: Option<Span>,
    /// Whether to list Netty's buffer pools at each mark, with an agent (`-javaagent`). Applies to configurations
    /// without their own setting.
    #[arg(skip)]
    pub netty: bool,
}

const PROCESSES: &str = "Processes to measure: one (the one that serves requests), all (the command and its \
     descendants), or cgroup (all in a dedicated cgroup) [default: one]";
const IMAGE: &str = "Container image to run with podman or docker; its arguments follow `--`";

/// `true`, or how to check the certificate.
#[derive(Debug, Clone, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "`true`, or a map such as `{ca: ca.pem}` or `{insecure: true}`")]
pub(super) enum TlsFile {
    Switch(bool),
    How(TlsSettings),
}

impl TlsFile {
    fn resolve(self, base: &Path) -> Result<Option<Tls>> {
        match self {
            Self::Switch(on) => Ok(on.then(Tls::default)),
            Self::How(TlsSettings { cert: None, key: Some(_), .. }) => {
                Err(Error::request("`tls` has a `key` but no `cert`"))
            }
            Self::How(how) => {
                let mut tls = Tls::default();
                how.apply(&mut tls, base);
                Ok(Some(tls))
            }
        }
    }
}

/// How to detect that the subject is ready; at most one check.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, clap::Args, schemars::JsonSchema)]
#[schemars(rename = "ReadyFile")]
#[schemars(extend("not" = schema::two_of(&["http", "tcp", "log", "phase"])))]
#[serde(deny_unknown_fields, default)]
pub struct ReadySettings {
    /// Readiness check: `http:/PATH`, `tcp`, `log:REGEX`, or `phase:NAME`
    // A file has a key for each of these.
    #[arg(id = "ready", long = "ready", value_name = "CHECK")]
    #[serde(skip)]
    pub sign: Option<Ready>,
    /// Path for which a GET returns a status below 400.
    #[arg(skip)]
    #[schemars(extend("pattern" = "^/[^ \\r\\n]*$"))]
    http: Option<String>,
    /// Whether accepting a connection on the port is enough.
    #[arg(skip)]
    tcp: Option<bool>,
    /// Regular expression that a line of its output matches.
    #[arg(skip)]
    #[schemars(extend("minLength" = 1))]
    log: Option<String>,
    /// Name in the marker `loadline: phase=NAME` that it prints.
    #[arg(skip)]
    #[schemars(extend("minLength" = 1))]
    phase: Option<String>,
    /// Number of consecutive ports, starting with `{port}`, that must be ready.
    #[arg(skip)]
    #[schemars(extend("minimum" = 1, "maximum" = 100, "default" = 1))]
    ports: Option<u16>,
    /// Whether one ready port is enough; the load goes to that port.
    #[arg(skip)]
    #[schemars(extend("default" = false))]
    any: Option<bool>,
    /// Time to wait until the server is ready.
    #[arg(id = "ready_within", long = "ready-within", value_name = "TIME")]
    #[arg(help = "Time to wait until the server is ready [default: 60s]")]
    #[schemars(extend("default" = "60s"))]
    pub within: Option<Span>,
}

impl ReadySettings {
    fn ports(&self) -> Ports {
        let answers = if self.any == Some(true) { Answers::Any } else { Answers::Each };
        Ports { count: self.ports.unwrap_or(1), answers }
    }

    /// The readiness check, if given.
    fn sign(&self) -> Result<Option<Ready>> {
        let signs = [
            self.sign.clone().map(Ok),
            self.http.as_ref().map(|path| format!("http:{path}").parse()),
            (self.tcp == Some(true)).then_some(Ok(Ready::Tcp)),
            self.log.as_ref().map(|pattern| format!("log:{pattern}").parse()),
            self.phase.clone().map(|name| Ok(Ready::Phase(name))),
        ];
        let mut signs = signs.into_iter().flatten();
        match (signs.next(), signs.next()) {
            (sign, None) => sign.transpose().map_err(Error::request),
            _ => Err(Error::request("`ready` can have only one of `http`, `tcp`, `log`, or `phase`")),
        }
    }
}

impl SubjectSettings {
    /// The subject of a file in this directory, or of a command line; omitted settings follow from the load.
    pub(super) fn resolve(self, folder: Option<&Path>, load: &[Phase]) -> Result<Subject> {
        let base = folder.unwrap_or(Path::new(""));
        let tls = self.tls.map_or(Ok(None), |tls| tls.resolve(base))?;
        // The readiness probe speaks plain HTTP over TCP.
        let usual = ready_by(load, tls.is_none() && self.socket.is_none());
        let ready = self.ready.sign()?.unwrap_or(usual);
        if self.ready.any.is_some() && !matches!(ready, Ready::Http(_) | Ready::Tcp) {
            return Err(Error::request(format!("`any` has no effect: `{ready}` does not check ports"))
                .hint("remove it, or have `ready` check the ports with `http` or `tcp`"));
        }
        if self.image.is_some() && self.dir.is_some() && self.build.is_none() {
            return Err(Error::request("`dir` has no effect with an image: nothing is built")
                .hint("remove it; an image has its own working directory"));
        }
        let unsaid = Subject::default();
        Ok(Subject {
            image: self.image.map(Image::named),
            build: self.build,
            kind: self.kind,
            processes: self.processes.unwrap_or_default(),
            command: self.command,
            artifact: self.artifact,
            dir: folder.map(|folder| self.dir.map_or_else(|| folder.to_owned(), |dir| folder.join(dir))),
            env: self.env,
            host: self.host.unwrap_or(unsaid.host),
            port: self.port,
            ports: self.ready.ports(),
            tls,
            socket: self.socket.map(|socket| base.join(socket)),
            ready,
            ready_within: self.ready.within.unwrap_or(unsaid.ready_within),
            end_within: self.end_within.unwrap_or(unsaid.end_within),
        })
    }
}

/// The default readiness check: the load's first GET over plain HTTP; for a self-driven subject, which need not listen,
/// its first marker; else the port.
fn ready_by(load: &[Phase], is_plain: bool) -> Ready {
    let mut firsts = load.iter().filter_map(|phase| Some(&phase.kind.work()?.request));
    let first_get = firsts.find(|request| request.method == Method::Get).map(|request| request.path.clone());
    match (first_get.filter(|_| is_plain), load.first().map(|phase| &phase.kind)) {
        (Some(path), _) => Ready::Http(path),
        (None, Some(PhaseKind::Own(own))) => own.phases.first().cloned().map_or(Ready::Tcp, Ready::Phase),
        (None, _) => Ready::Tcp,
    }
}

impl Subject {
    /// Applies options. Errors: `Request` if an option has no effect.
    pub(super) fn change(&mut self, typed: &SubjectSettings) -> Result<()> {
        self.change_image(typed)?;
        self.take_artifact(typed.artifact.as_deref())?;
        self.processes = typed.processes.unwrap_or(self.processes);
        self.dir = typed.dir.clone().or(self.dir.take());
        self.ready = typed.ready.sign.clone().unwrap_or(self.ready.clone());
        self.ready_within = typed.ready.within.unwrap_or(self.ready_within);
        self.end_within = typed.end_within.unwrap_or(self.end_within);
        Ok(())
    }

    /// Replaces the image, if one is given, but not its arguments. Errors: `Request` if the scenario has no image.
    fn change_image(&mut self, typed: &SubjectSettings) -> Result<()> {
        match (&typed.image, &mut self.image) {
            (None, None) => Ok(()),
            (Some(_), None) => {
                Err(Error::request("`--image` has no effect: the scenario starts its server with a command")
                    .hint("write `image: NAME` under `subject` in the scenario, with its arguments as `command`"))
            }
            (_, Some(_)) if typed.dir.is_some() => Err(Error::request("`--dir` has no effect with an image")
                .hint("remove it; an image has its own working directory")),
            (Some(name), Some(image)) => {
                *image = Image::named(name);
                Ok(())
            }
            (None, Some(_)) => Ok(()),
        }
    }
}
