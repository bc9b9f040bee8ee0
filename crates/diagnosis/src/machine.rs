//! Huge pages, and observers of the JVM: Native Memory Tracking, JMX, flight recordings, agents.

use super::facts::{Facts, sum, tagged};
use super::found::{file_name, found};
use crate::doubt::Doubt;
use crate::record::{Finding, FindingRecord, ObserverOn};
use crate::scenario::{Change, Nmt};
use crate::units::Bytes;

/// The measured weight of each observer, minimum and maximum, in bytes (docs/method.md: JDK 17 and 25, a small server).
const JMX: (u64, u64) = (8_000_000, 14_000_000);
const JFR: (u64, u64) = (22_000_000, 36_000_000);
const NMT: (u64, u64) = (600_000, 2_600_000);
const NMT_DETAIL: (u64, u64) = (600_000, 5_000_000);
const AGENTS_MAX: usize = 4;
/// Loadline's own agent, which it loads for a reading.
const OWN_AGENT: &str = "loadline";

/// Memory in transparent huge pages. Source: JDK-8303215 and JDK-8312182 (stacks; 11u-dev #3223: 10,020 threads, 13
/// GB), glibc's `glibc.malloc.hugetlb` (2.35; default since 2.43 on aarch64, BZ #34081).
pub(super) fn huge_pages(facts: &Facts) -> Option<FindingRecord> {
    let huge_bytes = facts.doubts.iter().find_map(|doubt| match doubt.doubt {
        Doubt::HugePagesInUse { huge_bytes } => Some(huge_bytes),
        _ => None,
    })?;
    let asked = facts.flags.is("UseTransparentHugePages", "true");
    let huge = Bytes(huge_bytes);
    let text = format!("{huge} is in transparent huge pages, which are fully resident even if only partly used");
    let next = match asked {
        true => "remove `-XX:+UseTransparentHugePages`, and compare",
        false => "compare with `madvise` in /sys/kernel/mm/transparent_hugepage/enabled (a setting of the host)",
    };
    Some(FindingRecord { costs_bytes: huge_bytes, ..found(Finding::HugePages { huge_bytes, asked }, text, next) })
}

/// Observers run inside the JVM. Source: measured (docs/method.md): JMX with 20 polls, a flight recording, NMT.
pub(super) fn observers(facts: &Facts) -> Option<FindingRecord> {
    let flags = &facts.flags;
    let on = |what: &str, price: (u64, u64)| ObserverOn {
        what: what.to_owned(),
        bytes_min: Some(price.0),
        bytes_max: Some(price.1),
    };
    let mut observers = Vec::new();
    let nmt = flags.get("NativeMemoryTracking").filter(|level| *level != "off" && !level.is_empty());
    if let Some(level) = nmt {
        let own = facts.weighed().and_then(|(mark, _)| tagged(mark, "Native Memory Tracking"));
        let usual = if level == "detail" { NMT_DETAIL } else { NMT };
        observers.push(on("NMT", own.map_or(usual, |bytes| (bytes, bytes))));
    }
    let remote = flags.words("-Dcom.sun.management.jmxremote").next().is_some();
    if remote || flags.is("ManagementServer", "true") {
        observers.push(on("JMX", JMX));
    }
    if flags.words("-XX:StartFlightRecording").next().is_some() || flags.is("FlightRecorder", "true") {
        observers.push(on("JFR", JFR));
    }
    let kinds = ["-javaagent:", "-agentlib:", "-agentpath:"];
    let agents = kinds.iter().flat_map(|kind| flags.words(kind)).filter(|word| !word.contains(OWN_AGENT));
    let agent = |word: &str| ObserverOn { what: file(word), bytes_min: None, bytes_max: None };
    observers.extend(agents.map(agent).take(AGENTS_MAX));
    let of_all = |bytes: fn(&ObserverOn) -> Option<u64>| sum(observers.iter().filter_map(bytes));
    let (costs_bytes, gain) = (of_all(|of| of.bytes_min), of_all(|of| of.bytes_max));
    let list: Vec<String> = observers.iter().map(told).collect();
    let text = format!("monitoring features of the JVM cost memory: {}", list.join("; "));
    let next = "turn off those you do not use, and weigh again; `loadline compare` shows what each one costs";
    let remedies = if nmt.is_some() { vec![Change::Nmt(Nmt::Off)] } else { Vec::new() };
    (!observers.is_empty()).then(|| {
        let found = found(Finding::ObserversOn { observers }, text, next);
        FindingRecord { costs_bytes, gain_bytes_max: Some(gain), remedies, ..found }
    })
}

/// The file or library in an option, without directory and arguments.
fn file(option: &str) -> String {
    let named = option.split_once(':').map_or(option, |(_, rest)| rest).split('=').next().unwrap_or_default();
    file_name(named).to_owned()
}

fn told(observer: &ObserverOn) -> String {
    match (observer.bytes_min, observer.bytes_max) {
        (Some(least), Some(most)) if least == most => format!("{}, {}", observer.what, Bytes(least)),
        (Some(least), Some(most)) => {
            format!("{}, usually {:.1} to {}", observer.what, Bytes(least).as_mib(), Bytes(most))
        }
        _ => format!("`{}`, at an unknown cost", observer.what),
    }
}
