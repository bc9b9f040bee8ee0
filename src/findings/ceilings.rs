//! What may come: all that may grow against the limit, and a limit that the JVM does not see.

use super::direct;
use super::facts::{Facts, holds};
use super::found::risk;
use crate::owner::Owner;
use crate::record::{Ceiling, Finding, FindingRecord, UnseenCause};
use crate::scenario::Change;
use crate::units::{Bytes, grouped};

/// The sum of ceilings over the limit above which it is said: not all of them are reached at once, and the code cache
/// hardly ever is.
const OVER_LIMIT_MIN: f64 = 1.25;
/// Rounding of a heap to regions and generations.
const ROUNDING: f64 = 1.1;
/// `MaxRAMPercentage` and `MinRAMPercentage` unless they were set (JDK 11–25).
const HEAP_SHARE: f64 = 0.25;
const HEAP_SHARE_SMALL: f64 = 0.50;
/// `MaxHeapSize` before the memory is looked at: 96 MiB, scaled by 1.3 for 64 bits.
const HEAP_USUAL: u64 = (96 << 20) / 10 * 13;
/// What a thread's stack reserves where no flag tells (JDK 11–25, x86-64).
const STACK_KIB: u64 = 1024;
/// The least ceiling of direct memory that is proposed.
const DIRECT_LEAST: u64 = 32 << 20;

/// All that may grow, grown to its ceiling, is more than the limit. Source: the formula of java-buildpack's memory
/// calculator (heap, direct, metaspace, code cache, stacks); `MaxDirectMemorySize` is the heap's unless set
/// (`jdk.internal.misc.VM`, JDK 11–25).
pub(super) fn above_limit(facts: &Facts) -> Option<FindingRecord> {
    let (mark, account) = facts.weighed()?;
    let limit_bytes = facts.limit.filter(|limit| *limit > 0)?;
    let flags = &facts.flags;
    let heap_max = mark.heap.max_bytes.or_else(|| flags.number("MaxHeapSize"))?;
    let direct_now = mark.direct.unwrap_or_default();
    let direct_max = direct::ceiling(facts, &direct_now, mark).unwrap_or(heap_max);
    let now = holds(account, Owner::Metaspace).saturating_add(holds(account, Owner::ClassSpace));
    let typed = flags.is_typed("MaxMetaspaceSize").then(|| flags.number("MaxMetaspaceSize")).flatten();
    let reserved = mark.code.iter().map(|heap| heap.reserved_bytes).fold(0, u64::saturating_add);
    let code = flags.number("ReservedCodeCacheSize").unwrap_or(reserved);
    let stack_kib = flags.number("ThreadStackSize").filter(|kib| *kib > 0).unwrap_or(STACK_KIB);
    let threads = mark.threads.unwrap_or(0);
    let stacks = threads.saturating_mul(stack_kib.saturating_mul(1 << 10));
    let ceiling = |what: String, bytes: u64| Ceiling { what, bytes };
    let mut ceilings = vec![
        ceiling("heap".to_owned(), heap_max),
        ceiling("direct memory".to_owned(), direct_max),
        ceiling("code cache".to_owned(), code),
        ceiling(if typed.is_some() { "metaspace" } else { "metaspace as it is" }.to_owned(), typed.unwrap_or(now)),
        ceiling(format!("{} stacks", grouped(threads)), stacks),
    ];
    ceilings.retain(|of| of.bytes > 0);
    ceilings.sort_by_key(|of| std::cmp::Reverse(of.bytes));
    let ceilings_bytes = ceilings.iter().map(|of| of.bytes).fold(0, u64::saturating_add);
    // A heap as if there were no limit is said by itself.
    if ceilings_bytes as f64 <= limit_bytes as f64 * OVER_LIMIT_MIN || not_seen(facts).is_some() {
        return None;
    }
    let parts: Vec<String> = ceilings.iter().map(|of| format!("{} {}", of.what, Bytes(of.bytes))).collect();
    let (sum, limit) = (Bytes(ceilings_bytes), Bytes(limit_bytes));
    let text = format!("it may grow to {sum} under a limit of {limit}: {}", parts.join(", "));
    let room = direct::round_up(direct_now.bytes().saturating_mul(2)).max(DIRECT_LEAST);
    let bounds = flags.is_free("MaxDirectMemorySize") && room < direct_max;
    let remedies: Vec<Change> = bounds.then_some(Change::DirectMax(Bytes(room))).into_iter().collect();
    let next = match remedies.first() {
        Some(first) => format!("bound what grows: `{}` here, then the heap", first.typed().join(" ")),
        None => "lower the ceiling of the heap, or raise the limit; `loadline find` searches both".to_owned(),
    };
    let finding = Finding::CeilingsAboveLimit { limit_bytes, ceilings_bytes, ceilings };
    Some(FindingRecord { remedies, ..risk(finding, text, next) })
}

/// The JVM took a heap as if there were no limit. Source: JDK-8230305 (cgroup v2: JDK 15, 11.0.16, 8u372);
/// `Arguments::set_heap_size` (JDK 11–25), and measured: 126 MiB under a limit of 300 MiB that was seen.
pub(super) fn not_seen(facts: &Facts) -> Option<FindingRecord> {
    let flags = &facts.flags;
    let limit_bytes = facts.limit.filter(|limit| *limit > 0)?;
    let seen = flags.number("MaxHeapSize");
    let heap_bytes_max = seen.or_else(|| facts.weighed()?.0.heap.max_bytes).filter(|_| !flags.heap_is_typed())?;
    let taken = heap_by(facts, limit_bytes);
    let most = (taken as f64 * ROUNDING) as u64;
    if heap_bytes_max <= direct::round_up(most) || flags.is_typed("InitialHeapSize") {
        return None;
    }
    let version = facts.marks.iter().find_map(|mark| mark.charge.as_ref()).map(|charge| charge.version.as_str());
    let cause = match facts.release() {
        _ if flags.is("UseContainerSupport", "false") => UnseenCause::SwitchedOff,
        Some([8, 0, ..372] | [9 | 10 | 12..15, ..] | [11, 0, ..16]) if version == Some("v2") => {
            UnseenCause::BeforeCgroupV2
        }
        _ => UnseenCause::Unknown,
    };
    let why = match cause {
        UnseenCause::SwitchedOff => " (`-XX:-UseContainerSupport`)",
        UnseenCause::BeforeCgroupV2 => ", for this release knows no cgroups v2",
        UnseenCause::Unknown => "",
    };
    let (heap, limit) = (Bytes(heap_bytes_max), Bytes(limit_bytes));
    let text = format!("the JVM did not size itself by its limit{why}: it may use a heap of {heap} under {limit}");
    let set = Change::HeapMax(Bytes(direct::round_up(taken)));
    let next = match cause {
        UnseenCause::SwitchedOff => "drop your own `-XX:-UseContainerSupport`, or set `-Xmx`".to_owned(),
        UnseenCause::BeforeCgroupV2 => format!("take a newer JDK, or set `{}`", set.typed().join(" ")),
        UnseenCause::Unknown => {
            format!("set `{}`, or see `java -Xlog:os+container=trace -version` under it", set.typed().join(" "))
        }
    };
    let finding = Finding::LimitNotSeen { limit_bytes, heap_bytes_max, cause };
    Some(FindingRecord { remedies: vec![set], ..risk(finding, text, next) })
}

/// The heap that a JVM takes by itself that sees this much memory (`Arguments::set_heap_size`): half of a small one,
/// else a quarter, but no less than it would without looking.
fn heap_by(facts: &Facts, memory: u64) -> u64 {
    let of = |name, usual| (memory as f64 * facts.flags.share(name).unwrap_or(usual)) as u64;
    match of("MinRAMPercentage", HEAP_SHARE_SMALL) {
        small if small < HEAP_USUAL => small,
        _ => of("MaxRAMPercentage", HEAP_SHARE).max(HEAP_USUAL),
    }
}
