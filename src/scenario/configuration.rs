//! One way to run the subject: heap, collector, JDK, environment, limit, CPUs.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// One way to run the subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// A library that the loader puts before all others (`LD_PRELOAD`): a path, or a name that the loader finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preload: Option<String>,
    /// What `{code}` in the command stands for: the jar or folder with the code that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<PathBuf>,
    /// Memory limit, enforced by a cgroup.
    pub limit: Option<Bytes>,
    /// Arguments appended to the command (or put at `{args}`).
    pub args: Vec<String>,
    /// CPUs for the subject.
    pub cpus: Cpus,
    /// Native Memory Tracking.
    pub nmt: Nmt,
    /// Whether it is left out where its JDK, its build or its code is missing; else that ends the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Run once in the subject's folder by `sh -c`, after the subject's own build step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// The pools of Netty.
    #[serde(default)]
    pub netty: Netty,
    /// SHA-256, in hexadecimal digits, over the contents of the files that a trial of it needs, as they were before the
    /// first trial; `None` where they were not looked at, or could not be read. What is hashed: the code that `{code}`
    /// stands for (of a folder every file below it, with its name), a library to preload, bodies, schedules and
    /// certificates, and every file that a word of the command, of the arguments, of the JVM options or of a driver's
    /// line names. What is not: the JDK, which is named by its release or folder; an image; what the loader or `PATH`
    /// finds; folders of a class path; what environment variables and `-Xlog` or `-XX` options name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
}

impl Configuration {
    /// What the configuration adds to the environment: its own variables and `LD_PRELOAD`.
    pub fn env_shown(&self) -> BTreeMap<String, String> {
        let preload = self.preload.iter().map(|library| ("LD_PRELOAD".to_owned(), library.clone()));
        self.env.iter().cloned().chain(preload).collect()
    }

    /// The JVM options that heap, collector and NMT stand for, then those typed; what unlocks others comes first, as
    /// the JVM demands.
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
        options.sort_by_key(|option| !option.starts_with("-XX:+Unlock"));
        options
    }
}

/// Whether the pools of Netty are listed at each mark, by an agent that the JVM is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Netty {
    /// No agent.
    #[default]
    Unread,
    /// An agent, which weighs 1 to 3 MB itself.
    Listed,
}

/// Whether the live objects are listed by class after everything was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Objects {
    /// The heap is left alone.
    #[default]
    Unread,
    /// They are, at the end and of a fresh JVM that is ready.
    Listed,
}

impl Objects {
    /// As it was typed: whether `--classes` is there.
    pub(super) fn typed(classes: bool) -> Self {
        if classes { Self::Listed } else { Self::Unread }
    }

    pub(super) fn is_unread(&self) -> bool {
        *self == Self::Unread
    }
}

/// A garbage collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

impl fmt::Display for Cpus {
    /// As `from_str` reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apart => f.write_str("apart"),
            Self::All => f.write_str("all"),
            Self::Only(cpus) => f.write_str(&cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

/// Native Memory Tracking in the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_keep_their_order_but_for_those_that_unlock() {
        let jvm = ["-Xss256k", "-XX:+UnlockExperimentalVMOptions", "-Xmx8m"].map(str::to_owned).to_vec();
        let configuration =
            Configuration { heap: Some(Bytes::mib(6)), gc: Some(Gc::Z), jvm, ..Configuration::default() };
        let expect = ["-XX:+UnlockExperimentalVMOptions", "-Xms6m", "-Xmx6m", "-XX:+UseZGC", "-Xss256k", "-Xmx8m"];
        assert_eq!(configuration.jvm_options(), expect);
    }
}
