//! Future risks: all parts that can grow, compared with the limit, and a limit that the JVM does not see.

use super::facts::{Facts, holds, sum};
use super::found::{first, found, listed, typed};
use super::{beside, direct};
use crate::doubt::MemoryPool;
use crate::owner::Owner;
use crate::record::{Ceiling, ChargeRecord, Finding, FindingRecord, UnseenCause, whole};
use crate::remedy::changes;
use crate::scenario::{Change, RamShare};
use crate::units::{Bytes, grouped};
use loadline_base::order::Order as _;

/// The ratio of the ceilings' sum to the limit that triggers the finding. Ceilings are not all reached simultaneously,
/// and the code cache almost never reaches its own.
const OVER_LIMIT_MIN: f64 = 1.25;
/// A heap is rounded to regions and generations.
const ROUNDING: f64 = 1.1;
/// At about 32 GiB, compressed pointers bound the heap, and `MaxRAM` defaults to 128 GiB.
const MACHINE_MAX: u64 = 64 << 30;
/// The default stack size in KiB (JDK 11–25, x86-64).
const STACK_KIB: u64 = 1024;
/// The smallest ceiling proposed for direct memory.
const DIRECT_LEAST: u64 = 32 << 20;

/// The ceilings of all parts that can grow exceed the limit. Source: the formula of java-buildpack's memory calculator
/// (heap, direct, metaspace, code cache, stacks); `MaxDirectMemorySize` defaults to the heap's (`jdk.internal.misc.VM`,
/// JDK 11–25).
pub(super) fn above_limit(facts: &Facts) -> Option<FindingRecord> {
    let (mark, account) = facts.weighed()?;
    let limit_bytes = facts.limit.filter(|limit| *limit > 0)?;
    let flags = &facts.flags;
    let heap_max = mark.heap.max_bytes.or_else(|| flags.number("MaxHeapSize"))?;
    let direct_now = mark.direct.unwrap_or_default();
    let direct_max = direct::ceiling(facts, &direct_now, mark).unwrap_or(heap_max);
    let now = holds(account, Owner::Metaspace).saturating_add(holds(account, Owner::ClassSpace));
    let metaspace = flags.is_typed("MaxMetaspaceSize").then(|| flags.number("MaxMetaspaceSize")).flatten();
    let reserved = sum(mark.code.iter().map(|heap| heap.reserved_bytes));
    let code = flags.number("ReservedCodeCacheSize").unwrap_or(reserved);
    let stack_kib = flags.number("ThreadStackSize").filter(|kib| *kib > 0).unwrap_or(STACK_KIB);
    let threads = mark.threads.unwrap_or(0);
    let stacks = threads.saturating_mul(stack_kib.saturating_mul(1 << 10));
    let ceiling = |what: &str, bytes: u64| Ceiling { what: what.to_owned(), bytes };
    let mut ceilings = vec![
        ceiling("heap", heap_max),
        ceiling("direct memory", direct_max),
        ceiling("code cache", code),
        metaspace.map_or(ceiling("metaspace (currently; no cap)", now), |most| ceiling("metaspace", most)),
        ceiling(&format!("{} stacks", grouped(threads)), stacks),
        ceiling("child processes (currently)", beside::of_children(mark)),
    ];
    ceilings.retain(|of| of.bytes > 0);
    ceilings.largest_first(|of| of.bytes);
    let ceilings_bytes = sum(ceilings.iter().map(|of| of.bytes));
    // A heap sized without seeing the limit has its own finding.
    if ceilings_bytes as f64 <= limit_bytes as f64 * OVER_LIMIT_MIN || not_seen(facts).is_some() {
        return None;
    }
    let parts = listed(&ceilings, |of| format!("{} {}", of.what, Bytes(of.bytes)));
    let (all, limit) = (Bytes(ceilings_bytes), Bytes(limit_bytes));
    let text = format!("the JVM can grow to {all} ({parts}), but the limit is {limit}");
    let room = whole(direct_now.bytes().saturating_mul(2)).max(DIRECT_LEAST);
    let bounds = flags.is_free("MaxDirectMemorySize") && room < direct_max;
    let remedies: Vec<Change> = bounds.then_some(Change::DirectMax(Bytes(room))).into_iter().collect();
    let next = match first(&remedies) {
        Some(first) => format!("cap what can grow: start with `{first}`, then lower the heap"),
        None => "lower the maximum heap or raise the limit; `loadline find` searches for both".to_owned(),
    };
    let finding = Finding::CeilingsAboveLimit { limit_bytes, ceilings_bytes, ceilings };
    Some(FindingRecord { remedies, ..found(finding, text, next) })
}

/// The user set `-XX:MaxRAMPercentage`, but the JVM used `MinRAMPercentage`: half of so little memory is
/// less than the default maximum heap. Source: `Arguments::set_heap_size` (JDK 11–27); measured: 75% of 220 MiB gave a
/// heap of 110 MiB.
pub(super) fn share_unheeded(facts: &Facts) -> Option<FindingRecord> {
    let flags = &facts.flags;
    let max_ram = flags.number("MaxRAM").filter(|_| flags.is_typed("MaxRAM"));
    let memory_bytes = facts.limit.into_iter().chain(max_ram).filter(|bytes| *bytes > 0).min()?;
    let asked = flags.share("MaxRAMPercentage").filter(|_| flags.is_typed("MaxRAMPercentage"))?;
    let shares = shares(facts);
    let heap_bytes_max = facts.heap_max().filter(|_| !flags.heap_is_given())?;
    let part = |share: f64| (memory_bytes as f64 * share) as u64;
    let (asked_bytes, taken) = (part(asked), part(shares.small));
    if !shares.is_small(memory_bytes) || !is_like(heap_bytes_max, taken) || is_like(heap_bytes_max, asked_bytes) {
        return None;
    }
    let said = facts.error_of(MemoryPool::Other).map(|error| format!("; the server printed `{error}`"));
    let [asked_percent, min_percent] = [asked, shares.small].map(|share| share * 1e2);
    let [memory, heap, wanted] = [memory_bytes, heap_bytes_max, asked_bytes].map(Bytes);
    let text = format!(
        "your `-XX:MaxRAMPercentage` ({asked_percent:.0}%) has no effect: with only {memory} of memory, the JVM \
         uses `MinRAMPercentage` ({min_percent:.0}%), so the heap is {heap} instead of {wanted}{}",
        said.unwrap_or_default()
    );
    let same = changes::jvm([format!("-XX:MinRAMPercentage={asked_percent}")]);
    let next = format!(
        "set `{}`, which applies when memory is below about 250 MiB, or set the heap size directly (`-Xmx`); \
         leave room for everything else",
        typed(&same)
    );
    let finding = Finding::HeapShareUnheeded { memory_bytes, heap_bytes_max, asked_bytes };
    let costs_bytes = asked_bytes.abs_diff(heap_bytes_max);
    let remedies = vec![same, Change::HeapMax(Bytes(whole(asked_bytes)))];
    Some(FindingRecord { remedies, costs_bytes, ..found(finding, text, next) })
}

/// The JVM sized its heap without the limit, or for a different one, possibly with `MaxRAMPercentage`. Source:
/// `Arguments::set_heap_size` (JDK 11–25), and measured: 126 MiB under a visible limit of 300 MiB.
pub(super) fn not_seen(facts: &Facts) -> Option<FindingRecord> {
    let flags = &facts.flags;
    let limit_bytes = facts.limit.filter(|limit| *limit > 0)?;
    let heap_bytes_max = facts.heap_max().filter(|_| !flags.heap_is_given())?;
    let taken = shares(facts).heap(limit_bytes);
    let most = (taken as f64 * ROUNDING) as u64;
    let starts_so = flags.is_typed("InitialHeapSize") && flags.number("InitialHeapSize") >= Some(heap_bytes_max);
    if heap_bytes_max <= whole(most) || starts_so {
        return None;
    }
    let cause = unseen_cause(facts, limit_bytes, heap_bytes_max);
    let set = Change::HeapMax(Bytes(whole(taken)));
    let (why, next) = explained(facts, cause, &typed(&set));
    let (heap, limit) = (Bytes(heap_bytes_max), Bytes(limit_bytes));
    let text = format!(
        "the JVM did not size itself to its memory limit{why}; its heap may grow to {heap}, but \
         the limit is {limit}"
    );
    let finding = Finding::LimitNotSeen { limit_bytes, heap_bytes_max, cause };
    Some(FindingRecord { remedies: vec![set], ..found(finding, text, next) })
}

fn charge<'a>(facts: &Facts<'a>) -> Option<&'a ChargeRecord> {
    facts.marks.iter().find_map(|mark| mark.charge.as_ref())
}

/// Why the limit was not seen, from the JVM, its cgroup, and its kernel. Sources: JDK-8230305 (cgroup v2: JDK 15,
/// 11.0.16, 8u372); JDK-8349988 with JDK-8347129 (`/proc/cgroups`: fixed in JDK 25, and in 21 since 21.0.10);
/// JDK-8322420 (limits of ancestor cgroups: openjdk/jdk 20646, JDK 24).
fn unseen_cause(facts: &Facts, limit_bytes: u64, heap_bytes_max: u64) -> UnseenCause {
    let (flags, release) = (&facts.flags, facts.release());
    let v2 = charge(facts).filter(|charge| charge.version == "v2");
    let lists_all = v2.is_none_or(|charge| charge.unlisted.is_empty());
    let needs_list = !matches!(release, Some([(25..), ..] | [21, 0, (10..)]));
    let is_above = v2.is_some_and(|charge| charge.limit_cgroup.is_some());
    match release {
        _ if flags.is("UseContainerSupport", "false") => UnseenCause::SwitchedOff,
        _ if flags.is_typed("MaxRAM") && flags.number("MaxRAM") > Some(limit_bytes) => UnseenCause::MaxRam,
        Some([8, 0, ..372] | [9 | 10 | 12..15, ..] | [11, 0, ..16]) if v2.is_some() => UnseenCause::BeforeCgroupV2,
        _ if !lists_all && needs_list => UnseenCause::ControllersUnlisted,
        Some([..24, ..]) if is_above => UnseenCause::LimitAbove,
        _ if took_other(facts, heap_bytes_max) => UnseenCause::LimitChanged,
        _ => UnseenCause::Unknown,
    }
}

/// Whether the heap does not match the machine's memory either. Above [`MACHINE_MAX`], other bounds determine the heap.
fn took_other(facts: &Facts, heap_bytes_max: u64) -> bool {
    let machine = facts.machine_bytes.filter(|bytes| *bytes <= MACHINE_MAX);
    machine.is_some_and(|machine| !is_like(heap_bytes_max, shares(facts).heap(machine)))
}

/// Whether two heap sizes are equal apart from rounding.
fn is_like(heap: u64, other: u64) -> bool {
    (heap as f64) < other as f64 * ROUNDING && heap as f64 > other as f64 / ROUNDING
}

/// A description of the cause, and a remedy; `set` is the heap of a JVM that sees the limit.
fn explained(facts: &Facts, cause: UnseenCause, set: &str) -> (String, String) {
    match cause {
        UnseenCause::SwitchedOff => {
            (" (`-XX:-UseContainerSupport`)".to_owned(), format!("remove `-XX:-UseContainerSupport`, or set `{set}`"))
        }
        UnseenCause::MaxRam => (
            " but to your `-XX:MaxRAM`".to_owned(),
            format!("remove `-XX:MaxRAM`, lower it to the limit, or set `{set}`"),
        ),
        UnseenCause::BeforeCgroupV2 => (
            ", because this JDK release does not support cgroup v2".to_owned(),
            format!(
                "use a newer JDK, or set \
                 `{set}`"
            ),
        ),
        UnseenCause::ControllersUnlisted => {
            let unlisted = charge(facts).map(|charge| charge.unlisted.as_slice()).unwrap_or_default();
            let bug = if unlisted.iter().any(|name| name == "memory") { "JDK-8349988" } else { "JDK-8347129" };
            let names = listed(unlisted, |name| format!("no `{name}`"));
            (
                format!(": it looks up controllers in `/proc/cgroups`, where this kernel lists {names} ({bug})"),
                format!("use JDK 25, 21.0.10, or another update that has the fix for {bug}, or set `{set}`"),
            )
        }
        UnseenCause::LimitAbove => {
            let above = charge(facts).and_then(|charge| charge.limit_cgroup.clone()).unwrap_or_default();
            let why = format!(
                ": the limit is set on the parent cgroup {above}, where JDKs before 24 do not look (JDK-8322420)"
            );
            (why, format!("use JDK 24 or newer, set the limit on the JVM's own cgroup, or set `{set}`"))
        }
        UnseenCause::LimitChanged => (
            ": the limit was different when the JVM started".to_owned(),
            format!("restart it under this limit, or set `{set}`"),
        ),
        UnseenCause::Unknown => (
            String::new(),
            format!(
                "set `{set}`, or run `java -Xlog:os+container=trace -version` under the limit \
                 to see why"
            ),
        ),
    }
}

/// The shares of memory from which the JVM computes its heap.
fn shares(facts: &Facts) -> RamShare {
    let (usual, of) = (RamShare::default(), |name| facts.flags.share(name));
    RamShare {
        small: of("MinRAMPercentage").unwrap_or(usual.small),
        large: of("MaxRAMPercentage").unwrap_or(usual.large),
    }
}
