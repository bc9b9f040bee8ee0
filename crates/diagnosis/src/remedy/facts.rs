//! Facts about the unchanged subject, which determine the remedies worth a trial.

use crate::numbers;
use crate::owner::{Owner, is_heap};
use crate::record::{FindingRecord, FlagOrigin, Jvm, Mark, Trial, each_once};
use crate::scenario::{MarkPoint, Scenario};
use crate::units::{Bytes, MIB};
use loadline_jvm::observe::vm_flags::set_by;
use std::collections::{BTreeMap, BTreeSet};

/// Known facts about the unchanged subject. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// RSS, at the mark after the load or after the rest, whichever is larger.
    pub rss: u64,
    /// Bytes per owner at that mark.
    pub owners: BTreeMap<Owner, u64>,
    /// The live set after a full collection; `None` if unknown.
    pub live: Option<u64>,
    /// The maximum direct memory at any mark.
    pub direct: u64,
    /// The direct memory that a full collection left; `None` if unknown.
    pub direct_live: Option<u64>,
    /// The predicted bytes that a trim would return.
    pub trim: Option<u64>,
    /// Whether Netty is in use.
    pub netty: bool,
    /// The collector in effect.
    pub collector: Option<String>,
    /// The JDK's release as numbers.
    pub release: Option<[u64; 3]>,
    /// The C allocator.
    pub allocator: Option<String>,
    /// The JVM's flags among [`crate::flags_kept`], and those that were set; `None` if unreadable.
    pub flags: Option<BTreeSet<String>>,
    /// Flags set by the user, with values; only if the flags were readable.
    pub chosen: BTreeMap<String, String>,
    /// All words that configure the JVM: options, `-D`, and variables as `NAME=VALUE`.
    pub words: Vec<String>,
    /// The rest after the load, in seconds.
    pub rest_s: f64,
    /// Whether every trial was warm after its warm-up; `None` if CPU time by purpose is unknown.
    pub is_warm: Option<bool>,
    /// Alternative allocator libraries that are installed.
    pub libraries: Vec<String>,
    /// A writable directory for a class archive.
    pub scratch: Option<String>,
    /// The diagnosis of the same trials, from which some remedies are derived.
    pub findings: Vec<FindingRecord>,
    /// The user's flags that may be removed, as given.
    pub may_remove: Vec<String>,
}

impl Facts {
    /// Reads the facts from trials of the unchanged subject.
    pub fn of(scenario: &Scenario, trials: &[&Trial]) -> Self {
        let mut facts = Self {
            words: words(scenario),
            libraries: scenario.tune.allocators.clone(),
            scratch: scenario.tune.scratch.clone(),
            findings: crate::of_configuration(trials.iter().copied()).findings,
            may_remove: scenario.tune.may_remove.clone(),
            ..Self::default()
        };
        let Some(first) = trials.first() else { return facts };
        let largest: Vec<&Mark> = trials.iter().filter_map(|trial| trial.heaviest()).collect();
        facts.rss = median(largest.iter().map(|mark| mark.rss_bytes));
        let accounts = || largest.iter().filter_map(|mark| mark.account.as_ref());
        let held = |owner: Owner| median(accounts().map(|account| account.holds(owner.name())));
        facts.owners = Owner::ALL.map(|owner| (owner, held(owner))).into();
        facts.live = of_marks(trials, |mark| mark.heap.live_bytes);
        facts.direct = of_marks(trials, |mark| mark.direct.map(|direct| direct.bytes())).unwrap_or(0);
        let collected = trials.iter().filter_map(|trial| trial.at(MarkPoint::Collected));
        facts.direct_live = collected.filter_map(|mark| mark.direct.map(|direct| direct.bytes())).max();
        let trims = largest.iter().filter_map(|mark| mark.account.as_ref()?.would_return.trim_bytes);
        facts.trim = Some(median(trims)).filter(|bytes| *bytes > 0);
        let mut marks = trials.iter().flat_map(|trial| &trial.marks);
        facts.netty = marks.any(|mark| mark.netty.is_some() || mark.direct.is_some_and(|of| of.netty_loaded));
        let jvm = first.jvm.as_ref();
        facts.collector = jvm.and_then(|jvm| jvm.collector.clone());
        facts.allocator = jvm.and_then(|jvm| jvm.allocator.clone());
        facts.release = jvm.and_then(Jvm::release);
        if let Some(flags) = trials.iter().find_map(|trial| trial.jvm.as_ref()?.flags_kept.as_ref()) {
            let set = flags.set.iter().map(|flag| &flag.name);
            facts.flags = Some(set.chain(flags.defaults.keys()).cloned().collect());
            let by_user = flags.set.iter().filter(|flag| flag.origin != FlagOrigin::Ergonomic);
            facts.chosen = by_user.map(|flag| (flag.name.clone(), flag.value.clone())).collect();
        }
        let rests = first.phases.iter().rev().take_while(|phase| !phase.works());
        facts.rest_s = rests.map(|phase| phase.seconds).sum();
        let is_split = first.phases.iter().any(|phase| phase.subject.cpu_by_purpose.is_some());
        let is_warm = |trial: &&Trial| trial.phases.iter().any(|phase| phase.steady == Some(true));
        facts.is_warm = is_split.then(|| trials.iter().all(is_warm));
        facts
    }

    /// The bytes of an owner.
    pub fn held(&self, owner: Owner) -> u64 {
        self.owners.get(&owner).copied().unwrap_or(0)
    }

    /// The total bytes of these owners.
    pub fn held_by(&self, owners: &[Owner]) -> u64 {
        owners.iter().map(|owner| self.held(*owner)).fold(0, u64::saturating_add)
    }

    /// The resident bytes of the Java heap.
    pub fn heap(&self) -> u64 {
        self.owners.iter().filter(|(owner, _)| is_heap(owner.name())).map(|(_, bytes)| bytes).sum()
    }

    /// The user's setting, as given, that conflicts with changing one of these flags, options, or variables, and must
    /// not be removed.
    pub fn in_the_way(&self, names: &[&str]) -> Option<String> {
        self.own(names).find(|word| !self.may_go(word))
    }

    /// The user's conflicting settings that may be removed.
    pub(super) fn removable(&self, names: &[&str]) -> Vec<String> {
        self.own(names).filter(|word| self.may_go(word)).collect()
    }

    /// The user's settings of these flags, options, and variables: as given, or else as the JVM reports them.
    pub(super) fn own<'f>(&'f self, names: &'f [&str]) -> impl Iterator<Item = String> + use<'f> {
        let is_typed = |flag: &str| self.words.iter().any(|word| subject_of(word) == subject_of(flag));
        let typed = self.words.iter().filter(|word| names.iter().any(|name| is_of(word, name))).cloned();
        let chosen = self.chosen.keys().filter(move |flag| names.contains(&flag.as_str()) && !is_typed(flag));
        each_once(typed.chain(chosen.map(|flag| self.spelled(flag)))).into_iter()
    }

    /// A flag that the user set indirectly, in option form. `-Xmn` and `-Xms` set two flags each, to the same value.
    fn spelled(&self, name: &str) -> String {
        let value = |name: &str| self.chosen.get(name).map(String::as_str).unwrap_or_default();
        let short = SHORT
            .into_iter()
            .find(|(_, flags)| flags.contains(&name) && flags.iter().all(|flag| value(flag) == value(name)));
        match short.and_then(|(option, _)| Some((option, value(name).parse().ok()?))) {
            Some((option, bytes)) => format!("{option}{}", Bytes(bytes).java()),
            None => spelled(name, value(name)),
        }
    }

    /// All of the user's options and flags that may be removed.
    pub(super) fn may_all_go(&self) -> Vec<String> {
        self.settings().into_iter().filter(|word| self.may_go(word)).collect()
    }

    /// The user's options as given, then other flags that the user set.
    fn settings(&self) -> Vec<String> {
        let options = self.words.iter().filter(|word| KINDS.iter().any(|kind| word.starts_with(kind)));
        let is_typed = |flag: &str| self.words.iter().any(|word| subject_of(word) == subject_of(flag));
        let chosen = self.chosen.keys().filter(|flag| !is_typed(flag));
        each_once(options.cloned().chain(chosen.map(|flag| self.spelled(flag))))
    }

    fn may_go(&self, word: &str) -> bool {
        self.may_remove.iter().any(|meant| subject_of(meant) == subject_of(word))
    }

    /// Checks that `--may-remove` names only flags that were set. Errors: the first flag that was not, and those that
    /// were. Never fails if the flags are unknown.
    pub fn check_removals(&self) -> Result<(), (String, Vec<String>)> {
        let all = self.settings();
        let absent = |meant: &&String| !all.iter().any(|word| subject_of(word) == subject_of(meant));
        match self.may_remove.iter().find(absent).filter(|_| self.flags.is_some()) {
            Some(meant) => Err((meant.clone(), all)),
            None => Ok(()),
        }
    }
}

/// Short size options, and the flags that each sets.
const SHORT: [(&str, &[&str]); 3] =
    [("-Xmx", &["MaxHeapSize"]), ("-Xmn", &["MaxNewSize", "NewSize"]), ("-Xms", &["InitialHeapSize", "MinHeapSize"])];

/// The prefixes of JVM options.
const KINDS: [&str; 4] = ["-X", "-D", "-javaagent", "-agent"];

/// The flag name for any spelling of an option: `MaxNewSize` for `-Xmn8m`, `-XX:MaxNewSize=8m`, and `MaxNewSize`.
pub(super) fn subject_of(option: &str) -> &str {
    let flag = || option.strip_prefix("-XX:").unwrap_or(option).trim_start_matches('+');
    let name = set_by(option).map_or_else(|| flag().split(['=', ':']).next().unwrap_or_default(), |(name, _)| name);
    SHORT.into_iter().find(|(_, flags)| flags.contains(&name)).map_or(name, |(_, flags)| flags[0])
}

/// A flag in option form, with sizes in the largest unit.
fn spelled(name: &str, value: &str) -> String {
    match value {
        "true" => format!("-XX:+{name}"),
        "false" => format!("-XX:-{name}"),
        _ => match value.parse::<u64>() {
            Ok(bytes) if bytes >= MIB => format!("-XX:{name}={}", Bytes(bytes).java()),
            _ => format!("-XX:{name}={value}"),
        },
    }
}

/// Whether a word sets this flag (`-XX:+UseG1GC`, `-XX:MaxHeapSize=1g` for `MaxHeapSize`), option (`-Xmx`), property
/// (`-Dname`), or variable (`NAME`).
fn is_of(word: &str, name: &str) -> bool {
    let flag = word.strip_prefix("-XX:").map(|flag| flag.trim_start_matches(['+', '-']));
    match flag {
        Some(flag) => flag.split('=').next() == Some(name),
        None if name.starts_with("-X") || KINDS[2..].contains(&name) => word.starts_with(name),
        None => word.split('=').next() == Some(name),
    }
}

/// JVM options and variables from all sources.
fn words(scenario: &Scenario) -> Vec<String> {
    let configuration = scenario.configurations.first();
    let options = configuration.map(|of| of.jvm_options()).unwrap_or_default();
    let of_image = scenario.subject.image.iter().flat_map(|image| image.heap_options.clone());
    let command = scenario.subject.command.iter().filter(|word| word.starts_with('-')).cloned();
    let variables = scenario.subject.env.iter().chain(configuration.iter().flat_map(|of| &of.env));
    let of_variables = variables.flat_map(|(name, value)| {
        let options = value.split_whitespace().filter(|word| word.starts_with('-')).map(str::to_owned);
        std::iter::once(format!("{name}={value}")).chain(options).collect::<Vec<_>>()
    });
    let preload = configuration.and_then(|of| of.preload.as_ref()).map(|library| format!("LD_PRELOAD={library}"));
    options.into_iter().chain(of_image).chain(command).chain(of_variables).chain(preload).collect()
}

/// The maximum over all marks.
fn of_marks(trials: &[&Trial], read: impl Fn(&Mark) -> Option<u64>) -> Option<u64> {
    trials.iter().flat_map(|trial| &trial.marks).filter_map(read).max()
}

/// The median in whole bytes; 0 if empty.
fn median(values: impl Iterator<Item = u64>) -> u64 {
    let values: Vec<f64> = values.map(|bytes| bytes as f64).collect();
    numbers::median(&values).unwrap_or(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_options_are_named_as_given() {
        let facts = Facts {
            words: ["-Xmx64m", "-XX:+UseG1GC", "MALLOC_ARENA_MAX=4", "-Da.b=c"].map(str::to_owned).to_vec(),
            chosen: [("MaxRAMPercentage".to_owned(), "75.000000".to_owned())].into(),
            ..Facts::default()
        };
        let check = |names: &[&str], expect: Option<&str>| assert_eq!(facts.in_the_way(names).as_deref(), expect);
        check(&["-Xmx", "MaxHeapSize"], Some("-Xmx64m"));
        check(&["UseG1GC"], Some("-XX:+UseG1GC"));
        check(&["MALLOC_ARENA_MAX"], Some("MALLOC_ARENA_MAX=4"));
        check(&["-Da.b"], Some("-Da.b=c"));
        check(&["MaxRAMPercentage"], Some("-XX:MaxRAMPercentage=75.000000"));
        check(&["UseSerialGC", "MALLOC_TRIM_THRESHOLD_", "-Da"], None);
    }

    #[test]
    fn removable_options_match_exactly_by_prefix_or_by_flag_name() {
        let facts = |meant: &str| Facts {
            words: ["-Xmx64m", "-javaagent:a.jar=x"].map(str::to_owned).to_vec(),
            chosen: [("MaxNewSize", "335544320"), ("NewSize", "335544320"), ("DisableExplicitGC", "true")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            flags: Some(["MaxNewSize".to_owned()].into()),
            may_remove: vec![meant.to_owned()],
            ..Facts::default()
        };
        for (meant, names) in [
            ("-Xmn", &["-Xmn", "MaxNewSize", "NewSize"][..]),
            ("-Xmn320m", &["MaxNewSize"]),
            ("NewSize", &["MaxNewSize"]),
            ("-XX:+DisableExplicitGC", &["DisableExplicitGC"]),
            ("DisableExplicitGC", &["DisableExplicitGC"]),
            ("-Xmx", &["MaxHeapSize", "-Xmx"]),
            ("-javaagent", &["-javaagent"]),
        ] {
            let facts = facts(meant);
            assert_eq!(facts.in_the_way(names), None, "{meant}");
            assert!(!facts.removable(names).is_empty(), "{meant}");
            assert_eq!(facts.check_removals(), Ok(()), "{meant}");
        }
        let (meant, all) = facts("-Xmm").check_removals().unwrap_err();
        assert_eq!(meant, "-Xmm");
        for option in ["-Xmx64m", "-javaagent:a.jar=x", "-Xmn320m", "-XX:+DisableExplicitGC"] {
            assert!(all.iter().any(|known| known == option), "{all:?}");
        }
    }
}
