//! OOM kills: which process was killed by which limit, what held the memory, whether a JVM setting bounds it, and what
//! other files show.

use super::cells::rounds_to_none;
use super::charged;
use crate::page::{Facts, Page, Part, Section, Topic, Verdict};
use crate::record::{
    ChargeKind, ChargeRow, Lacked, OomDocument, OomHolder, OomKilled, OomRecord, Trace, TraceRecord, each_once,
};
use crate::units::{Bytes, several};
use loadline_base::order::Order as _;
use loadline_jvm::observe::charged::{SOCKET_BUFFERS, THREAD_STACKS};

/// Maximum kills shown, latest first; the document has all of them.
const KILLS_MAX: usize = 5;
/// If JVMs held at least the larger part divided by this, they are worth limiting, too.
const NEAR: u64 = 2;
/// Maximum number of processes named in a sentence.
const NAMED_MAX: usize = 3;

/// The page of the kills in a log, latest first, and of other traces.
pub fn summarize_oom(document: &OomDocument) -> Page {
    let number = document.kills.len();
    let none = || Verdict::told(format!("{} contains no OOM kill.", document.log));
    let kills = own_first(document);
    let kill = kills.first().map(|first| Verdict::told(sentence(first)));
    let kill = kill.or_else(|| (!document.log.is_empty()).then(none));
    let named = document.traces.len() > 1 || kill.is_some();
    let traces = document.traces.iter().map(|of| {
        let told = Verdict::told(trace(&of.trace) + in_its_cgroup(&of.trace, &kills));
        if named { told.about(of.file.clone()) } else { told }
    });
    let answers: Vec<Verdict> = kill.into_iter().chain(traces).collect();
    let next = match (kills.first(), document.traces.is_empty()) {
        (Some(first), _) => Some(next(first)),
        (None, false) => next_of_traces(document),
        (None, true) => None,
    };
    let next = next.map(|next| Part::Text(next.to_owned()));
    let mut sections = vec![Section::new(Topic::Answer, "", std::iter::once(Part::Verdicts(answers)).chain(next))];
    sections.extend(kills.iter().take(KILLS_MAX).enumerate().map(|(place, kill)| section(kill, place > 0)));
    if number > KILLS_MAX {
        let more = format!("{} not shown: `--json` lists them all.", several((number - KILLS_MAX) as u64, "kill"));
        sections.push(Section::new(Topic::Details, "", [Part::Text(more)]));
    }
    let files = document.traces.iter().map(|of| of.file.as_str());
    let files = std::iter::once(document.log.as_str()).filter(|log| !log.is_empty()).chain(files);
    let files = each_once(files).join(", ");
    Page::new(format!("{files}, read by loadline {}", document.loadline), sections)
}

/// The kills, latest first, except that kills in the cgroup of a container whose status was read come first.
fn own_first(document: &OomDocument) -> Vec<&OomRecord> {
    let is_own = |kill: &OomRecord| {
        let cgroup = kill.cgroup.as_deref();
        cgroup.is_some_and(|cgroup| document.traces.iter().any(|of| of.trace.owns(cgroup) == Some(true)))
    };
    let mut kills: Vec<&OomRecord> = document.kills.iter().collect();
    kills.order_by_key(|kill| !is_own(kill));
    kills
}

/// A sentence on whether the log shows the kill of this container, if it was killed.
fn in_its_cgroup(of: &Trace, kills: &[&OomRecord]) -> &'static str {
    let owned = kills.iter().filter_map(|kill| of.owns(kill.cgroup.as_deref()?));
    match owned.reduce(|one, other| one || other).filter(|_| was_killed(of)) {
        None => "",
        Some(true) => " The log shows that kill.",
        Some(false) => " The log shows no kill in its cgroup, so the log is from another node or another time.",
    }
}

fn was_killed(of: &Trace) -> bool {
    match of {
        Trace::Container { oom_killed, exit_code, .. } => *oom_killed || *exit_code == 137,
        Trace::MemoryEvents { oom_kills, .. } => *oom_kills > 0,
        _ => false,
    }
}

/// The evidence in a file, and whether a JVM setting would have helped.
fn trace(of: &Trace) -> String {
    match of {
        Trace::MemoryEvents { oom_kills: 0, at_limit } => {
            format!("The kernel killed no process at the cgroup's limit{}.", met(*at_limit))
        }
        Trace::MemoryEvents { oom_kills, at_limit } => {
            format!("The kernel killed {} at the cgroup's limit{}.", several(*oom_kills, "process"), met(*at_limit))
        }
        Trace::FatalError { problem, lacked, heap_used_bytes, heap_max_bytes, limit_bytes, usage_bytes, .. } => {
            fatal_error(problem, *lacked, heap_used_bytes.zip(*heap_max_bytes), usage_bytes.zip(*limit_bytes))
        }
        Trace::GcLog { collections, full, left_bytes, heap_bytes, was_full } => {
            let [left, heap] = [*left_bytes, *heap_bytes].map(Bytes);
            match was_full {
                true => format!(
                    "The Java heap was full: the last of {} left {left} of {heap}. Raise `-Xmx` or reduce the live \
                     objects; a larger limit alone does not help.",
                    several(*full, "full GC")
                ),
                false => format!(
                    "No sign of a full Java heap: the last of {} left {left} of {heap}. If the limit killed the JVM, \
                     look outside the live objects.",
                    several(*collections, "GC")
                ),
            }
        }
        Trace::Container { name, reason, oom_killed, exit_code, limit_bytes, time, .. } => {
            let time = if time.is_empty() { String::new() } else { format!(" at {time}") };
            let why = why_ended(reason, *oom_killed, *exit_code, *limit_bytes);
            format!("Container {name} {why} (exit code {exit_code}){time}.")
        }
    }
}

fn met(at_limit: Option<u64>) -> String {
    let met = at_limit.filter(|times| *times > 0);
    met.map(|times| format!(", which the charge reached {}", several(times, "time"))).unwrap_or_default()
}

/// `heap` and `charge` are used and maximum bytes.
fn fatal_error(problem: &str, lacked: Lacked, heap: Option<(u64, u64)>, charge: Option<(u64, u64)>) -> String {
    let held = |what: &str, (used, most): (u64, u64)| format!(" The {what} held {} of {}.", Bytes(used), Bytes(most));
    let heap = heap.map(|of| held("Java heap", of)).unwrap_or_default();
    let charge = charge.map(|of| held("cgroup", of)).unwrap_or_default();
    let (began, help) = match lacked {
        Lacked::Heap => (
            "The JVM exited on its own",
            " Raise `-Xmx` or reduce the live objects; a larger limit alone does not help.",
        ),
        Lacked::Metaspace => (
            "The JVM exited on its own",
            " Raise `-XX:MaxMetaspaceSize`, or find the class loaders that are never unloaded.",
        ),
        Lacked::Native => (
            "The JVM could not get memory from the kernel",
            " A larger heap does not help: raise the limit or `ulimit -v`, or reduce the memory outside the heap.",
        ),
        Lacked::Nothing => ("The JVM crashed for a reason other than memory", ""),
    };
    format!("{began}: {}.{heap}{charge}{help}", problem.trim_end_matches('.'))
}

/// Exit codes are 128 plus the signal number (signal(7)); 3 is `ExitOnOutOfMemoryError` (JDK 8u92 to 27).
fn why_ended(reason: &str, oom_killed: bool, exit_code: i64, limit_bytes: Option<u64>) -> String {
    let limit = limit_bytes.map_or_else(|| "a limit".to_owned(), |limit| format!("its limit of {}", Bytes(limit)));
    match exit_code {
        _ if oom_killed => format!("was killed for exceeding {limit}"),
        0 => "exited normally".to_owned(),
        3 => "exited on its own, because of `-XX:+ExitOnOutOfMemoryError`".to_owned(),
        134 => "aborted; its error file (`hs_err_pid*.log`) has the reason".to_owned(),
        // On cgroup v1, Podman 4.3 does not report whether the limit caused a kill.
        137 => format!(
            "was killed; the runtime does not say whether the cause was {limit}, a probe, an eviction, or a user"
        ),
        143 => "was asked to stop".to_owned(),
        _ if reason.is_empty() => "exited with an error".to_owned(),
        _ => format!("ended: {reason}"),
    }
}

/// The next command if the kernel's log shows no kill.
fn next_of_traces(document: &OomDocument) -> Option<&'static str> {
    let of_heap = |of: &TraceRecord| {
        matches!(of.trace, Trace::GcLog { was_full: true, .. } | Trace::FatalError { lacked: Lacked::Heap, .. })
    };
    match () {
        () if document.traces.iter().any(|of| was_killed(&of.trace)) => {
            Some("Next: `dmesg -T | loadline post-mortem -` on the node shows what held the memory.")
        }
        () if document.traces.iter().any(of_heap) => Some(
            "Next: `loadline account PID --objects` on a JVM of that service shows which objects fill the \
                 heap.",
        ),
        () => None,
    }
}

/// The killed processes, the limit, and the holders of the memory.
fn sentence(of: &OomRecord) -> String {
    let named = |killed: &OomKilled| format!("{} (pid {})", killed.name, killed.pid);
    let mut names: Vec<String> = of.killed.iter().take(NAMED_MAX).map(named).collect();
    if of.killed.len() > NAMED_MAX {
        names.push(format!("{} more", of.killed.len() - NAMED_MAX));
    }
    let names = if names.is_empty() { "a process".to_owned() } else { names.join(", ") };
    let together = if of.group { ", along with its whole cgroup (`memory.oom.group`)" } else { "" };
    let limit = of.limit_bytes.map(|limit| format!("the {} limit of ", Bytes(limit))).unwrap_or_default();
    let by = match (&of.cgroup, of.machine) {
        (Some(cgroup), _) => format!("{limit}{cgroup}"),
        (None, true) => "the machine, which ran out of memory".to_owned(),
        (None, false) => "a limit that the log does not name".to_owned(),
    };
    format!("{names} killed by {by}{together}. {}", held(of))
}

fn held(of: &OomRecord) -> String {
    let [jvm, other] = [of.jvm_bytes, of.other_bytes].map(Bytes);
    match of.holder {
        OomHolder::Jvm => {
            let others =
                if rounds_to_none(of.other_bytes) { String::new() } else { format!(" and other processes {other}") };
            format!("JVMs held {jvm}{others}, so JVM settings can limit most of it.")
        }
        OomHolder::OtherProcesses => {
            let helper = largest_helper(of).unwrap_or_default();
            format!("Other processes held {other}{helper} and JVMs {jvm}. {}", limited(of, other))
        }
        OomHolder::MemoryFiles => {
            let files = sum(of, ChargeKind::MemoryFiles);
            format!("In-memory files held {files} and JVMs {jvm}. {}", limited(of, files))
        }
        OomHolder::Kernel => {
            let kernel = sum(of, ChargeKind::Kernel);
            let part = |row: &ChargeRow| format!(" ({} {})", row.owner, Bytes(row.bytes.unsigned_abs()));
            let part = largest_of_kernel(of).map(part).unwrap_or_default();
            format!("The kernel itself held {kernel}{part} and JVMs {jvm}. {}", limited(of, kernel))
        }
        OomHolder::Unknown => "The log does not show what held the memory.".to_owned(),
    }
}

/// Whether a JVM setting limits the larger part, which no JVM held, or the JVMs' part if it is at least half as large.
fn limited(of: &OomRecord, larger: Bytes) -> String {
    let by_threads = largest_of_kernel(of).is_some_and(|row| row.owner == THREAD_STACKS);
    let larger_part = match of.holder {
        OomHolder::Kernel if by_threads => "Fewer threads would shrink the larger part.",
        _ => "No JVM setting limits the larger part.",
    };
    let is_near = of.jvm_bytes.saturating_mul(NEAR) >= larger.0;
    let jvms = if is_near { " JVM settings can limit only the JVMs' part." } else { "" };
    format!("{larger_part}{jvms}")
}

/// ` (tesseract: 4 processes of up to 154.0 MiB each)`: the command whose processes held the most, and the largest of
/// them.
fn largest_helper(of: &OomRecord) -> Option<String> {
    let rows = || of.rows.iter().filter(|row| row.pid.is_some() && row.bytes > 0);
    let sum = |name: &str| rows().filter(|row| row.owner == name).map(|row| row.bytes).sum::<i64>();
    let name = &rows().max_by_key(|row| sum(&row.owner))?.owner;
    let own: Vec<i64> = rows().filter(|row| row.owner == *name).map(|row| row.bytes).collect();
    let most = Bytes(own.iter().copied().max()?.unsigned_abs());
    Some(match own.len() {
        1 => format!(" ({name}: {most})"),
        number => format!(" ({name}: {number} processes of up to {most} each)"),
    })
}

/// The largest part of the kernel's own memory that it could not reclaim.
fn largest_of_kernel(of: &OomRecord) -> Option<&ChargeRow> {
    of.kept(ChargeKind::Kernel).max_by_key(|row| row.bytes)
}

/// All memory of a kind.
fn sum(of: &OomRecord, kind: ChargeKind) -> Bytes {
    let bytes: i64 = of.rows.iter().filter(|row| row.kind == kind).map(|row| row.bytes).sum();
    Bytes(u64::try_from(bytes).unwrap_or(0))
}

fn next(of: &OomRecord) -> &'static str {
    match of.holder {
        OomHolder::Jvm => {
            "Next: `loadline account PID` on a JVM of that service shows what uses its memory, and `loadline find` \
             finds the smallest limit that works."
        }
        OomHolder::OtherProcesses => {
            "Next: run fewer helper processes at once, or raise the limit by the size of each additional one. They \
             may need even more, because the charge stopped at the limit."
        }
        OomHolder::MemoryFiles => {
            "Next: keep temporary files in a directory on disk, or give the in-memory volume a size limit \
             (`/dev/shm`, `emptyDir` with `medium: Memory`)."
        }
        OomHolder::Kernel => match largest_of_kernel(of).map(|row| row.owner.as_str()) {
            Some(SOCKET_BUFFERS) => {
                "Next: `ss -tm` in a running container lists its sockets with their buffers. Disconnect peers that \
                 read too slowly, or lower the maximum in `net.ipv4.tcp_wmem` or `net.ipv4.tcp_rmem`."
            }
            Some(THREAD_STACKS) => {
                "Next: `loadline account PID --by pool` on a JVM of that service shows which pools have the most \
                 threads."
            }
            _ => {
                "Next: on the node, `loadline account --pod NAME` or `--container ID` shows the parts in a running \
                 container; repeat it to see which one grows."
            }
        },
        OomHolder::Unknown => {
            "Next: provide the whole log, from `invoked oom-killer` to `Killed process`: `dmesg -T` or \
             `journalctl -k`."
        }
    }
}

/// A kill; names the killed process unless the page's answer does.
fn section(of: &OomRecord, tells: bool) -> Section {
    let told = tells.then(|| Part::Text(sentence(of)));
    let mut facts = Facts::default();
    facts.add("invoked by", (!of.invoked_by.is_empty()).then(|| of.invoked_by.clone()));
    facts.add("cgroup", of.cgroup.clone());
    let usage = of.usage_bytes.map(Bytes).zip(of.limit_bytes.map(Bytes));
    let met =
        of.at_limit.filter(|times| *times > 0).map(|times| format!(" (limit reached {})", several(times, "time")));
    let met = met.unwrap_or_default();
    facts.add("charge", usage.map(|(usage, limit)| format!("{usage} of {limit}{met}")));
    facts.add("swap", of.swap_bytes.filter(|bytes| *bytes > 0).map(|bytes| Bytes(bytes).to_string()));
    let table = charged::table_of(&of.rows, of.usage_bytes, "charge by owner, MiB");
    let parts = told.into_iter().chain([Part::Facts(facts.0)]).chain(table.map(Part::Table));
    let stamp = if of.stamp.is_empty() { "time unknown" } else { of.stamp.as_str() };
    Section::new(Topic::Memory, stamp.to_owned(), parts)
}
