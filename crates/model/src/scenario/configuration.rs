//! A configuration of the subject: heap, collector, JDK, environment, limit, CPUs.

use super::schema;
use super::written::{Named, Scalar, parsed, texts, texts_by_name};
use crate::units::{Bytes, Millicpus};
use loadline_base::order::Order as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A configuration's value on an axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Level {
    /// The axis, such as `gc`.
    pub axis: String,
    /// The name of the value, such as `g1`.
    pub name: String,
}

/// One way to run the subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, schemars::JsonSchema)]
pub struct Configuration {
    /// Unique within the scenario.
    pub name: String,
    /// Its values on the axes that vary, if a matrix or `--vary` made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
    /// `-Xms` and `-Xmx`: minimum and maximum heap.
    pub heap: Option<Bytes>,
    /// Garbage collector.
    pub gc: Option<Gc>,
    /// Extra JVM options.
    pub jvm: Vec<String>,
    /// The subject's own options to remove. An option that is set only inside a program that the command starts is not
    /// removed; the configuration's options override it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// The JDK; `None` is the one that the command itself finds.
    pub jdk: Option<Jdk>,
    /// Environment variables in addition to the subject's.
    pub env: Vec<(String, String)>,
    /// A library to load before all others (`LD_PRELOAD`): a path, or a name that the loader finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preload: Option<String>,
    /// The value of `{code}` in the command: the jar or directory with the code that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<PathBuf>,
    /// Memory limit, enforced by a cgroup.
    pub limit: Option<Bytes>,
    /// CPU limit, enforced by a cgroup: a quota per period of 100 ms, as for a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<Millicpus>,
    /// Arguments appended to the command (or inserted at `{args}`).
    pub args: Vec<String>,
    /// CPUs for the subject.
    pub cpus: Cpus,
    /// Native Memory Tracking.
    pub nmt: Nmt,
    /// Whether the configuration is left out if its JDK, build, or code is missing; otherwise, that ends the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Command run once with `sh -c` in the subject's directory, after the subject's own build step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Whether Netty's buffer pools are listed.
    #[serde(default)]
    pub netty: Netty,
    /// SHA-256, in hexadecimal digits, of the contents of the files that its trials need, as they were before the first
    /// trial. It is `None` if they were not or could not be read. The hash covers the code of `{code}` (for a
    /// directory, every file below it, with its name), a library to preload, bodies, schedules, and certificates. It
    /// also covers every file named by a word of the command, the arguments, the JVM options, or a driver's command.
    /// It does not cover the JDK (named by its release or directory), an image, or class path directories. Nor
    /// does it cover files that the loader or `PATH` finds, or that environment variables, `-Xlog`, or `-XX` options
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
}

/// One way to run the subject.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, clap::Args, schemars::JsonSchema)]
#[schemars(rename = "ConfigurationFile")]
#[command(next_help_heading = "Server")]
#[serde(deny_unknown_fields, default)]
pub struct ConfigurationSettings {
    /// Minimum and maximum heap size, `-Xms` and `-Xmx`.
    #[arg(long, value_name = "SIZE", help = "Minimum and maximum heap size (-Xms and -Xmx)")]
    pub heap: Option<Bytes>,
    /// Garbage collector.
    #[arg(long, value_name = "GC", help = "Garbage collector: serial, g1, parallel, z, shenandoah, epsilon")]
    #[schemars(with = "Option<schema::Collector>")]
    #[serde(deserialize_with = "parsed")]
    pub gc: Option<Gc>,
    /// Extra JVM options.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true, help = "Extra JVM option (repeatable)")]
    pub jvm: Vec<String>,
    /// JDK; if omitted, the one that the command finds.
    #[arg(long, value_name = "JDK", help = "JDK, by release (`17`) or directory")]
    #[schemars(with = "Option<schema::Jdk>")]
    #[serde(deserialize_with = "parsed")]
    pub jdk: Option<Jdk>,
    /// Environment variables in addition to the subject's.
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment, help = "Environment variable (repeatable)")]
    #[schemars(with = "Option<Named<Scalar>>")]
    #[serde(deserialize_with = "texts_by_name")]
    pub env: Vec<(String, String)>,
    /// Library to preload (`LD_PRELOAD`): a path relative to this file, a name that the loader finds, or `none`.
    #[arg(skip)]
    pub preload: Option<String>,
    /// Jar or directory that replaces `{code}` in the command, relative to this file.
    #[arg(skip)]
    pub code: Option<PathBuf>,
    /// Memory limit, enforced by a cgroup.
    #[arg(long, value_name = "SIZE")]
    pub limit: Option<Bytes>,
    /// CPU limit, enforced by a cgroup as in a container: a quota per period of 100 ms, on any CPU.
    #[arg(long, value_name = "CPUS", help = "CPU limit, enforced by a cgroup as in a container: `500m`, `1.5`, `2`")]
    pub cpu_limit: Option<Millicpus>,
    /// Arguments appended to the command, or inserted at `{args}`.
    #[arg(skip)]
    #[schemars(with = "Vec<Scalar>")]
    #[serde(deserialize_with = "texts")]
    pub args: Vec<String>,
    /// CPUs of the subject.
    #[arg(
        long,
        value_name = "CPUS",
        help = "Pin the server to CPUs: a list (`0-2,5`), `all`, or `apart` from the load generator"
    )]
    #[schemars(with = "Option<schema::Cpus>")]
    #[serde(deserialize_with = "parsed")]
    pub cpus: Option<Cpus>,
    /// Native Memory Tracking; it costs memory, so measure RSS and speed without it.
    #[arg(long, value_name = "LEVEL", help = "Native Memory Tracking: off or summary [default: off]")]
    #[schemars(with = "Option<Nmt>", extend("default" = "off"))]
    #[serde(deserialize_with = "parsed")]
    pub nmt: Option<Nmt>,
    /// Whether to skip the configuration with a note, instead of failing, if its JDK, build, or code is missing.
    #[arg(skip)]
    pub optional: bool,
    /// Command run once with `sh -c` in the subject's directory, after the subject's own build step.
    #[arg(skip)]
    pub build: Option<String>,
    /// Whether to list Netty's buffer pools at each mark; if omitted, the subject's setting.
    #[arg(skip)]
    pub netty: Option<bool>,
}

/// A setting that a matrix or `--vary` can vary.
#[derive(Debug, PartialEq)]
pub(super) struct Axis {
    /// Its key.
    pub(super) word: &'static str,
    /// Describes its values, in a matrix.
    pub(super) values: &'static str,
    /// Describes a value, in `exclude`.
    pub(super) value: &'static str,
    /// Whether a matrix names each value, instead of using the value as its name.
    pub(super) is_named: bool,
}

impl Axis {
    const fn listed(word: &'static str, values: &'static str, value: &'static str) -> Self {
        Self { word, values, value, is_named: false }
    }

    const fn named(word: &'static str, values: &'static str, value: &'static str) -> Self {
        Self { word, values, value, is_named: true }
    }
}

/// The settings that can vary, in the order in which they name a configuration.
pub(super) const AXES: [Axis; 11] = [
    Axis::listed("gc", "Collectors.", "This collector."),
    Axis::listed("heap", "Heap sizes.", "This heap."),
    Axis::listed("jdk", "JDKs; `found` is every JDK of release 17 or newer on this machine.", "This JDK."),
    Axis::listed("limit", "Memory limits.", "This limit."),
    Axis::listed("cpu_limit", "CPU limits.", "This CPU limit."),
    Axis::listed("nmt", "Native Memory Tracking levels.", "This level."),
    Axis::named("jvm", "Sets of JVM options, by name.", "The set of JVM options with this name."),
    Axis::named("env", "Sets of environment variables, by name.", "The environment with this name."),
    Axis::named("preload", "Libraries to preload, by name, or `none`.", "The library with this name."),
    Axis::named("args", "Sets of arguments, by name.", "The arguments with this name."),
    Axis::named("code", "Values of `{code}`, by name.", "The code with this name."),
];

impl ConfigurationSettings {
    /// The short names of settings that have one: `serial`, `6m`, `jdk17`, `limit-64m`.
    pub(super) fn names(&self) -> Vec<String> {
        let last = |home: &Path| home.file_name().unwrap_or(home.as_os_str()).to_string_lossy().into_owned();
        let jdk = self.jdk.as_ref().map(|jdk| match jdk {
            Jdk::Release(release) => format!("jdk{release}"),
            Jdk::Home(home) => last(home),
        });
        let names = [
            self.gc.map(|gc| gc.word().to_owned()),
            self.heap.map(Bytes::java),
            jdk,
            self.limit.map(|limit| format!("limit-{}", limit.java())),
            self.cpu_limit.map(|limit| format!("cpu-limit-{}", limit.word())),
            self.nmt.map(|nmt| format!("nmt-{}", nmt.word())),
        ];
        names.into_iter().flatten().collect()
    }
}

/// Preloads nothing, for comparison with a preloaded library.
const NO_PRELOAD: &str = "none";

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not an assignment; write it as `NAME=VALUE`")),
    }
}

/// A library by path, or by bare name, which the loader looks up; `none` preloads nothing.
fn preload(library: String, base: &Path) -> Option<String> {
    match library.as_str() {
        NO_PRELOAD => None,
        path if path.contains('/') => Some(base.join(path).to_string_lossy().into_owned()),
        _ => Some(library),
    }
}

impl Configuration {
    /// Applies the given settings; others keep their values. Resolves relative paths against `base`.
    pub(super) fn apply(&mut self, of: ConfigurationSettings, base: &Path) {
        self.heap = of.heap.or(self.heap);
        self.gc = of.gc.or(self.gc);
        self.jvm.extend(of.jvm);
        self.jdk = of.jdk.or(self.jdk.take());
        self.env.extend(of.env);
        if let Some(library) = of.preload {
            self.preload = preload(library, base);
        }
        self.code = of.code.map(|code| base.join(code)).or(self.code.take());
        self.limit = of.limit.or(self.limit);
        self.cpu_limit = of.cpu_limit.or(self.cpu_limit);
        self.args.extend(of.args);
        self.cpus = of.cpus.unwrap_or(std::mem::take(&mut self.cpus));
        self.nmt = of.nmt.unwrap_or(self.nmt);
        self.optional |= of.optional;
        self.build = of.build.or(self.build.take());
        self.netty = of.netty.map_or(self.netty, Netty::written);
    }

    /// Variables that the configuration adds to the environment, including `LD_PRELOAD`.
    pub fn env_shown(&self) -> BTreeMap<String, String> {
        let preload = self.preload.iter().map(|library| ("LD_PRELOAD".to_owned(), library.clone()));
        self.env.iter().cloned().chain(preload).collect()
    }

    /// The JVM options for heap, collector, and NMT, then the extra ones. Options that unlock others come first, as the
    /// JVM requires.
    pub fn jvm_options(&self) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(heap) = self.heap {
            options.push(format!("-Xms{}", heap.java()));
            options.push(format!("-Xmx{}", heap.java()));
        }
        options.extend(self.gc.into_iter().flat_map(Gc::options));
        if self.nmt == Nmt::Summary {
            options.push("-XX:NativeMemoryTracking=summary".to_owned());
        }
        options.extend(self.jvm.iter().cloned());
        options.order_by_key(|option| !option.starts_with("-XX:+Unlock"));
        options
    }
}

/// Whether Netty's buffer pools are listed at each mark, by an agent that the JVM starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Netty {
    /// No agent.
    #[default]
    Unread,
    /// An agent, which itself uses 1 to 3 MB.
    Listed,
}

impl Netty {
    /// Converts the setting to an enum.
    pub(super) fn written(listed: bool) -> Self {
        if listed { Self::Listed } else { Self::Unread }
    }
}

/// Whether live objects are listed by class after all measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Objects {
    /// The heap is left alone.
    #[default]
    Unread,
    /// Objects are listed at the end, and for a fresh JVM as soon as it is ready.
    Listed,
}

worded! {
    /// A garbage collector.
    Gc {
        /// Serial.
        Serial = "serial",
        /// Garbage-First.
        G1 = "g1",
        /// Parallel.
        Parallel = "parallel",
        /// Z.
        #[serde(alias = "zgc")]
        Z = "z",
        /// Shenandoah.
        Shenandoah = "shenandoah",
        /// Epsilon: allocates but never collects.
        Epsilon = "epsilon",
    }
}

impl Gc {
    /// The JVM options that select it, as a configuration stores them.
    pub fn options(self) -> impl Iterator<Item = String> {
        self.flags().iter().map(|&flag| flag.to_owned())
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
        Self::of_word(word).map_err(|words| format!("`{text}` is not a collector; use one of {words}"))
    }
}

/// The JDK that runs the subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Jdk {
    /// The newest one found of this feature release, e.g. 17.
    Release(u32),
    /// The one in this directory (`JAVA_HOME`).
    Home(PathBuf),
}

impl FromStr for Jdk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<u32>() {
            Ok(release) => Ok(Self::Release(release)),
            Err(_) if text.contains('/') => Ok(Self::Home(PathBuf::from(text))),
            Err(_) => Err(format!("`{text}` is neither a JDK release such as `17` nor a directory")),
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

/// CPUs that a process can run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cpus {
    /// Separate CPUs for subject and load if there are at least two; otherwise shared.
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
        let refuse = || format!("`{text}` is not a list of CPUs; write it as `0`, `0-2,5`, `all`, or `apart`");
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
            // The limit of distribution kernels on x86 (CONFIG_NR_CPUS), rounded down.
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

impl fmt::Display for Cpus {
    /// In the form that `from_str` parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apart => f.write_str("apart"),
            Self::All => f.write_str("all"),
            Self::Only(cpus) => f.write_str(&cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

worded! {
    /// Native Memory Tracking in the subject.
    #[derive(Default)]
    Nmt {
        /// Off. Tracking costs memory, so measure speed and RSS without it.
        #[default]
        Off = "off",
        /// `-XX:NativeMemoryTracking=summary`: the table by category.
        Summary = "summary",
    }
}

impl FromStr for Nmt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::of_word(text).map_err(|_| format!("`{text}` is neither `off` nor `summary`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_keep_their_order_except_unlocking_ones() {
        let jvm = ["-Xss256k", "-XX:+UnlockExperimentalVMOptions", "-Xmx8m"].map(str::to_owned).to_vec();
        let configuration =
            Configuration { heap: Some(Bytes::mib(6)), gc: Some(Gc::Z), jvm, ..Configuration::default() };
        let expect = ["-XX:+UnlockExperimentalVMOptions", "-Xms6m", "-Xmx6m", "-XX:+UseZGC", "-Xss256k", "-Xmx8m"];
        assert_eq!(configuration.jvm_options(), expect);
    }
}
