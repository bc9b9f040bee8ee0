//! The rule for options that have no effect.

use super::facts::Facts;
use super::flags::{COLLECTORS, Flags};
use super::found::{found, listed};
use crate::record::{Finding, FindingRecord, IdleCause, IdleFlag};
use crate::units::Bytes;

/// Flags that users copy although their defaults are the same in JDK 11, 17, 21, and 25 (`-XX:+PrintFlagsFinal` of
/// each; tests/jvm/findings.rs checks the installed JVMs).
pub const COPIED_DEFAULTS: &[(&str, &str)] = &[
    ("BackgroundCompilation", "true"),
    ("ClassUnloading", "true"),
    ("DisableExplicitGC", "false"),
    ("G1HeapWastePercent", "5"),
    ("G1ReservePercent", "10"),
    ("InitialRAMPercentage", "1.5625"),
    ("InitiatingHeapOccupancyPercent", "45"),
    ("MaxHeapFreeRatio", "70"),
    ("MaxRAMPercentage", "25"),
    ("MinHeapFreeRatio", "40"),
    ("MinRAMPercentage", "50"),
    ("NativeMemoryTracking", "off"),
    ("NewRatio", "2"),
    ("OmitStackTraceInFastThrow", "true"),
    ("ResizeTLAB", "true"),
    ("SoftRefLRUPolicyMSPerMB", "1000"),
    ("SurvivorRatio", "8"),
    ("TieredCompilation", "true"),
    ("UseAdaptiveSizePolicy", "true"),
    ("UseContainerSupport", "true"),
    ("UseGCOverheadLimit", "true"),
    ("UseLargePages", "false"),
    ("UseNUMA", "false"),
    ("UsePerfData", "true"),
    ("UseStringDeduplication", "false"),
    ("UseTLAB", "true"),
    ("UseTransparentHugePages", "false"),
    ("Xshare", "auto"),
];

/// Launcher options that are not flags.
const NOT_FLAGS: [&str; 4] = ["Flags", "VMOptionsFile", "Flag", "Xshare"];
/// The maximum number of options listed per JVM.
const IDLE_MAX: usize = 12;

/// Options that have no effect: unknown to this JVM, overridden by a later or stronger one, meant for another
/// collector, or equal to the default. Source: TechEmpower/FrameworkBenchmarks #7376, which rejected tuned flags, many
/// of which were defaults; `arguments.cpp` of JDK 11–25 (the last option for a name wins; `MaxRAMPercentage` is ignored
/// if `MaxHeapSize` was set). In a trial, doubts already report ignored or changed options.
pub(super) fn idle(facts: &Facts) -> Option<FindingRecord> {
    let flags = &facts.flags;
    let typed = flags.typed();
    let mut idle: Vec<IdleFlag> = Vec::new();
    for (at, (option, name, value)) in typed.iter().enumerate() {
        let later = typed[at + 1..].iter().find(|(_, other, _)| other == name).map(|(later, ..)| *later);
        let heap = typed.iter().rev().find(|(_, name, _)| *name == "MaxHeapSize").map(|(option, ..)| *option);
        let cause = match () {
            () if later.is_some_and(|later| later != *option) => (IdleCause::Overridden, later),
            () if later.is_some() => continue,
            () if ["MaxRAMPercentage", "MinRAMPercentage"].contains(name) && heap.is_some() => {
                (IdleCause::Overridden, heap)
            }
            () if !NOT_FLAGS.contains(name) && flags.lacks(name) => (IdleCause::Unknown, None),
            () if is_of_another(flags, name) => (IdleCause::OtherCollector, Some(facts.collector())),
            () if is_default(name, value) => (IdleCause::Default, None),
            () => continue,
        };
        let by = cause.1.unwrap_or_default().to_owned();
        idle.push(IdleFlag { option: (*option).to_owned(), cause: cause.0, by });
    }
    idle.truncate(IDLE_MAX);
    let text = format!("options that have no effect: {}", listed(&idle, told));
    let next = "remove them";
    (!idle.is_empty()).then(|| found(Finding::FlagsIdle { flags: idle }, text, next))
}

fn told(flag: &IdleFlag) -> String {
    let IdleFlag { option, by, .. } = flag;
    match flag.cause {
        IdleCause::Unknown => format!("`{option}` (this JVM has no such flag)"),
        IdleCause::Overridden => format!("`{option}` (overridden by `{by}`)"),
        IdleCause::OtherCollector if by.is_empty() => format!("`{option}` (for another collector)"),
        IdleCause::OtherCollector => format!("`{option}` (the collector is {by})"),
        IdleCause::Default => format!("`{option}` (already the default)"),
    }
}

/// Whether the flag belongs to a collector that is known not to be in use.
fn is_of_another(flags: &Flags, name: &str) -> bool {
    // `UncommitDelay` in `ZUncommitDelay`, but not `ero` in `Zero`.
    let starts_word = |rest: &str| rest.starts_with(|c: char| c.is_ascii_uppercase());
    let is_own = |begin: &str| !begin.is_empty() && name.strip_prefix(begin).is_some_and(starts_word);
    let of = COLLECTORS.iter().find(|(_, begin)| is_own(begin));
    let chosen = COLLECTORS.iter().any(|(flag, _)| flags.is(flag, "true"));
    of.is_some_and(|(flag, _)| chosen && !flags.is(flag, "true"))
}

fn is_default(name: &str, value: &str) -> bool {
    let default = COPIED_DEFAULTS.iter().find(|(known, _)| *known == name).map(|(_, default)| *default);
    default.is_some_and(|default| default == value || same_amount(default, value))
}

/// `25` equals `25.0`; sizes are compared in bytes.
fn same_amount(one: &str, other: &str) -> bool {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => (one - other).abs() < 1e-9,
        _ => matches!((one.parse::<Bytes>(), other.parse::<Bytes>()), (Ok(one), Ok(other)) if one == other),
    }
}
