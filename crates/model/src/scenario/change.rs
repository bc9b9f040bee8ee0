//! A change to a configuration. Matrix axes, command-line options, and a search's attempts consist of such changes.

use super::{Configuration, Cpus, Gc, Jdk, Nmt};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A change to a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Another collector.
    Gc(Gc),
    /// Minimum and maximum heap.
    Heap(Bytes),
    /// The maximum heap alone, which overrides earlier settings.
    HeapMax(Bytes),
    /// The maximum direct memory, which overrides earlier settings.
    DirectMax(Bytes),
    /// Another JDK.
    Jdk(Jdk),
    /// Another memory limit.
    Limit(Bytes),
    /// Native Memory Tracking on or off.
    Nmt(Nmt),
    /// Further JVM options; they override earlier ones.
    Jvm(Vec<String>),
    /// Options of the subject to remove, as typed or as the JVM reports them.
    Without(Vec<String>),
    /// Further environment variables; they override earlier ones.
    Env(Vec<(String, String)>),
    /// Another library to preload, or none.
    Preload(Option<String>),
    /// Further arguments.
    Args(Vec<String>),
    /// Other code.
    Code(PathBuf),
    /// Other CPUs.
    Cpus(Cpus),
}

impl Change {
    /// Applies the change.
    pub fn apply(self, configuration: &mut Configuration) {
        match self {
            Self::Gc(gc) => configuration.gc = Some(gc),
            Self::Heap(heap) => configuration.heap = Some(heap),
            Self::HeapMax(_) | Self::DirectMax(_) => configuration.jvm.extend(self.option()),
            Self::Jdk(jdk) => configuration.jdk = Some(jdk),
            Self::Limit(limit) => configuration.limit = Some(limit),
            Self::Nmt(nmt) => configuration.nmt = nmt,
            Self::Jvm(options) => configuration.jvm.extend(options),
            Self::Without(words) => configuration.without.extend(words),
            Self::Env(env) => configuration.env.extend(env),
            Self::Preload(library) => configuration.preload = library,
            Self::Args(args) => configuration.args.extend(args),
            Self::Code(path) => configuration.code = Some(path),
            Self::Cpus(cpus) => configuration.cpus = cpus,
        }
    }

    /// The JVM option that sets the maximum heap or direct memory; `None` for other changes.
    pub fn option(&self) -> Option<String> {
        match self {
            Self::HeapMax(heap) => Some(format!("-Xmx{}", heap.java())),
            Self::DirectMax(direct) => Some(format!("-XX:MaxDirectMemorySize={}", direct.java())),
            _ => None,
        }
    }

    /// The change as typed, one unquoted word per setting: a JVM option (`-Xmx128m`), an environment variable
    /// (`MALLOC_ARENA_MAX=1`), or an argument of the subject; a Loadline option for its own settings (`--limit=128m`),
    /// and a `--vary` axis for code (`code=app.jar`). Removed options give no word.
    pub fn typed(&self) -> Vec<String> {
        let variable = |(name, value): &(String, String)| format!("{name}={value}");
        match self {
            Self::Gc(gc) => gc.flags().iter().map(|&flag| flag.to_owned()).collect(),
            Self::Heap(heap) => vec![format!("-Xms{}", heap.java()), format!("-Xmx{}", heap.java())],
            Self::HeapMax(_) | Self::DirectMax(_) => self.option().into_iter().collect(),
            Self::Jdk(jdk) => vec![format!("--jdk={jdk}")],
            Self::Limit(limit) => vec![format!("--limit={}", limit.java())],
            Self::Nmt(nmt) => vec![format!("-XX:NativeMemoryTracking={}", nmt.word())],
            Self::Jvm(words) | Self::Args(words) => words.clone(),
            Self::Without(_) => Vec::new(),
            Self::Env(variables) => variables.iter().map(variable).collect(),
            Self::Preload(library) => vec![format!("LD_PRELOAD={}", library.as_deref().unwrap_or_default())],
            Self::Code(path) => vec![format!("code={}", path.display())],
            Self::Cpus(cpus) => vec![format!("--cpus={cpus}")],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_as_command_line_text() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let typed = [
            (Change::Gc(Gc::Epsilon), vec!["-XX:+UnlockExperimentalVMOptions", "-XX:+UseEpsilonGC"]),
            (Change::Heap(Bytes::mib(64)), vec!["-Xms64m", "-Xmx64m"]),
            (Change::HeapMax(Bytes::mib(128)), vec!["-Xmx128m"]),
            (Change::DirectMax(Bytes::mib(2048)), vec!["-XX:MaxDirectMemorySize=2g"]),
            (Change::Jdk(Jdk::Release(25)), vec!["--jdk=25"]),
            (Change::Limit(Bytes::mib(90)), vec!["--limit=90m"]),
            (Change::Nmt(Nmt::Off), vec!["-XX:NativeMemoryTracking=off"]),
            (Change::Jvm(vec!["-XX:TrimNativeHeapInterval=5000".into()]), vec!["-XX:TrimNativeHeapInterval=5000"]),
            (Change::Env(vec![pair("MALLOC_ARENA_MAX", "1"), pair("A", "")]), vec!["MALLOC_ARENA_MAX=1", "A="]),
            (Change::Preload(Some("libjemalloc.so.2".into())), vec!["LD_PRELOAD=libjemalloc.so.2"]),
            (Change::Preload(None), vec!["LD_PRELOAD="]),
            (Change::Without(vec!["-Xmn320m".into()]), vec![]),
            (Change::Args(vec!["--port".into(), "1".into()]), vec!["--port", "1"]),
            (Change::Code("a.jar".into()), vec!["code=a.jar"]),
            (Change::Cpus("0-2,5".parse().unwrap()), vec!["--cpus=0,1,2,5"]),
            (Change::Cpus(Cpus::All), vec!["--cpus=all"]),
        ];
        for (change, words) in typed {
            assert_eq!(change.typed(), words);
        }
    }

    #[test]
    fn the_last_heap_bound_applies() {
        let mut configuration = Configuration { heap: Some(Bytes::mib(64)), ..Configuration::default() };
        let changes = [
            Change::HeapMax(Bytes::mib(8)),
            Change::DirectMax(Bytes::mib(2)),
            Change::Limit(Bytes::mib(90)),
            Change::Env(vec![("A".to_owned(), "b".to_owned())]),
        ];
        for change in changes {
            let written = serde_json::to_string(&change).unwrap();
            assert_eq!(serde_json::from_str::<Change>(&written).unwrap(), change);
            change.apply(&mut configuration);
        }
        assert_eq!(configuration.jvm_options(), ["-Xms64m", "-Xmx64m", "-Xmx8m", "-XX:MaxDirectMemorySize=2m"]);
        assert_eq!((configuration.limit, configuration.env.len()), (Some(Bytes::mib(90)), 1));
    }
}
