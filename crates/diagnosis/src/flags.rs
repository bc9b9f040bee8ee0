//! A JVM's flags as the rules query them.
//!
//! The JVM's own list has all flags and their origins (JDK 17 and later). Without it, `VM.flags` shows the nondefault
//! values, and only the command line shows who set them.

use crate::record::{AccountDocument, FlagOrigin, FlagRecord, FlagsRecord, Trial};
use crate::remedy::flags_needed;
use loadline_jvm::observe::vm_flags::set_by;

/// Flags that rules read even at their defaults.
const OF_RULES: [&str; 35] = [
    "AlwaysPreTouch",
    "CompressedClassSpaceSize",
    "DisableExplicitGC",
    "ExplicitGCInvokesConcurrent",
    "FlightRecorder",
    "G1PeriodicGCInterval",
    "InitialHeapSize",
    "ManagementServer",
    "MaxDirectMemorySize",
    "MaxHeapFreeRatio",
    "MaxHeapSize",
    "MaxMetaspaceSize",
    "MaxRAM",
    "MaxRAMPercentage",
    "MinHeapFreeRatio",
    "MinHeapSize",
    "MinRAMPercentage",
    "NativeMemoryTracking",
    "ReservedCodeCacheSize",
    "SharedArchiveFile",
    "ShrinkHeapInSteps",
    "SoftMaxHeapSize",
    "ThreadStackSize",
    "TieredCompilation",
    "TieredStopAtLevel",
    "TrimNativeHeapInterval",
    "UseContainerSupport",
    "UseG1GC",
    "UseParallelGC",
    "UseSerialGC",
    "UseSharedSpaces",
    "UseShenandoahGC",
    "UseTransparentHugePages",
    "UseZGC",
    "ZUncommitDelay",
];

/// Flags whose defaults a trial records too: those that rules and remedies need. If a trial's record lacks one, the JVM
/// does not have it. May contain duplicates.
pub fn flags_kept() -> impl Iterator<Item = &'static str> {
    OF_RULES.into_iter().chain(flags_needed())
}

pub(super) struct Flags<'a> {
    /// The flags that were set, and the defaults of all flags, or only of [`flags_kept`].
    record: Option<&'a FlagsRecord>,
    has_all: bool,
    /// Without a record, the nondefault flags in command-line form.
    spelled: &'a [String],
    /// Potential options in the order in which the JVM reads them.
    words: Vec<&'a str>,
}

impl<'a> Flags<'a> {
    pub(super) fn of_trial(trial: &'a Trial) -> Self {
        let jvm = trial.jvm.as_ref();
        let record = jvm.and_then(|jvm| jvm.flags_kept.as_ref());
        let spelled = jvm.filter(|_| record.is_none()).and_then(|jvm| jvm.flags.as_deref()).unwrap_or_default();
        let options = jvm.into_iter().flat_map(|jvm| &jvm.options);
        // Options that reach the JVM through the command line are already in it.
        let asked = options.filter(|option| !trial.command.contains(option)).map(String::as_str);
        let words = asked.chain(options_of(&trial.command)).collect();
        Self { record, has_all: false, spelled, words }
    }

    pub(super) fn of_account(document: &'a AccountDocument) -> Self {
        let record = document.flags.as_ref();
        let spelled = document.jvm.flags.as_deref().filter(|_| record.is_none()).unwrap_or_default();
        Self { record, has_all: record.is_some(), spelled, words: options_of(&document.subject_command).collect() }
    }

    fn set(&self, name: &str) -> Option<&'a FlagRecord> {
        self.record?.set.iter().find(|flag| flag.name == name)
    }

    /// The value in effect; `None` if unknown.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let set = self.set(name).map(|flag| flag.value.as_str());
        let default = || self.record?.defaults.get(name).map(String::as_str);
        let mut parsed = self.spelled.iter().rev().filter_map(|option| parse(option));
        set.or_else(default).or_else(|| parsed.find(|(known, _)| *known == name).map(|(_, value)| value))
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let value = self.get(name)?;
        value.parse().ok().or_else(|| Some(value.parse::<f64>().ok()? as u64))
    }

    pub(super) fn share(&self, name: &str) -> Option<f64> {
        Some(self.get(name)?.parse::<f64>().ok()? / 100.0).filter(|share| (0.0..=1.0).contains(share))
    }

    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == Some(value)
    }

    /// Whether this JVM has the flag; `None` if its flag names are unknown.
    pub(super) fn has(&self, name: &str) -> Option<bool> {
        let has = self.get(name).is_some();
        let is_listed = || self.has_all || self.record.is_some() && flags_kept().any(|kept| kept == name);
        (has || is_listed()).then_some(has)
    }

    /// The options that set flags, in the order in which the JVM reads them: the option, the flag, and the value, as
    /// given.
    pub(super) fn typed(&self) -> Vec<(&'a str, &'a str, &'a str)> {
        let of = |word: &&'a str| parse(word).map(|(name, value)| (*word, name, value));
        self.words.iter().filter_map(of).collect()
    }

    /// Whether all flag names are known, and this is not one of them. For a trial, only some names are known.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.has_all && self.has(name) == Some(false)
    }

    /// Whether the flag was set, but not by the JVM itself.
    pub(super) fn is_typed(&self, name: &str) -> bool {
        let by_word = || self.words.iter().any(|word| parse(word).is_some_and(|(known, _)| known == name));
        self.set(name).is_some_and(|flag| flag.origin != FlagOrigin::Ergonomic) || by_word()
    }

    /// Whether the user did not set the flag, and the JVM is not known to lack it.
    pub(super) fn is_free(&self, name: &str) -> bool {
        self.has(name) != Some(false) && !self.is_typed(name)
    }

    /// Whether the user did not set the flag, and the JVM is known to have it.
    pub(super) fn has_free(&self, name: &str) -> bool {
        self.has(name) == Some(true) && !self.is_typed(name)
    }

    pub(super) fn collector_is_typed(&self) -> bool {
        COLLECTORS.iter().any(|(flag, _)| self.is_typed(flag))
    }

    /// Whether the heap's size is fixed, independent of any limit.
    pub(super) fn heap_is_given(&self) -> bool {
        ["MaxHeapSize", "MaxRAMFraction"].iter().any(|name| self.is_typed(name))
    }

    /// Whether the heap is bounded, in bytes or as a share.
    pub(super) fn heap_is_typed(&self) -> bool {
        ["MaxHeapSize", "MaxRAMPercentage", "MaxRAM", "MaxRAMFraction"].iter().any(|name| self.is_typed(name))
    }

    pub(super) fn words(&self, begin: &str) -> impl Iterator<Item = &'a str> {
        self.words.iter().copied().filter(move |word| word.starts_with(begin))
    }
}

/// Collectors: the flag that selects one, and the prefix of its own flags.
pub(super) const COLLECTORS: [(&str, &str); 5] =
    [("UseG1GC", "G1"), ("UseShenandoahGC", "Shenandoah"), ("UseZGC", "Z"), ("UseSerialGC", ""), ("UseParallelGC", "")];

/// JVM options in a command line: up to the main class or archive.
fn options_of(command: &[String]) -> impl Iterator<Item = &str> {
    /// Launcher options whose value is the next word.
    const WITH_VALUE: [&str; 8] =
        ["-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules", "-d", "--upgrade-module-path"];
    let mut words = command.iter().skip(1).map(String::as_str);
    std::iter::from_fn(move || {
        let option = words.next().filter(|word| word.starts_with('-') && *word != "-jar")?;
        if WITH_VALUE.contains(&option) {
            words.next();
        }
        Some(option)
    })
}

/// The flag that an option sets, with the value as given; `-Xshare:auto` counts as a flag.
fn parse(option: &str) -> Option<(&str, &str)> {
    option.strip_prefix("-Xshare:").map(|value| ("Xshare", value)).or_else(|| set_by(option))
}
