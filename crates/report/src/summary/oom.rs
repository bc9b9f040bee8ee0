//! Kills for lack of memory: who was killed by which limit, who held what, and whether a setting of a JVM bounds it;
//! and what other files tell of the end.

use super::cells::rounds_to_none;
use super::charged;
use crate::page::{Facts, Page, Part, Section, Topic, Verdict};
use crate::record::{Lacked, OomDocument, OomHolder, OomKilled, OomRecord, Trace, TraceRecord, each_once};
use crate::units::{Bytes, several};

/// Kills that are shown, the latest; the document has all of them.
const KILLS_MAX: usize = 5;
/// Processes named in a sentence.
const NAMED_MAX: usize = 3;

/// Summarizes the kills of a log, the latest first, and the other traces of an end.
pub fn summarize_oom(document: &OomDocument) -> Page {
    let number = document.kills.len();
    let none = || Verdict::told(format!("{} has no kill for lack of memory.", document.log));
    let kill = document.kills.first().map(|latest| Verdict::told(sentence(latest)));
    let kill = kill.or_else(|| (!document.log.is_empty()).then(none));
    let named = document.traces.len() > 1 || kill.is_some();
    let traces = document.traces.iter().map(|of| match named {
        true => Verdict::told(trace(&of.trace)).about(of.file.clone()),
        false => Verdict::told(trace(&of.trace)),
    });
    let answers: Vec<Verdict> = kill.into_iter().chain(traces).collect();
    let next = match (document.kills.first(), document.traces.is_empty()) {
        (Some(latest), _) => Some(next(latest.holder)),
        (None, false) => next_of_traces(document),
        (None, true) => None,
    };
    let next = next.map(|next| Part::Text(next.to_owned()));
    let mut sections = vec![Section::new(Topic::Answer, "", std::iter::once(Part::Verdicts(answers)).chain(next))];
    sections.extend(document.kills.iter().take(KILLS_MAX).enumerate().map(|(place, kill)| section(kill, place > 0)));
    if number > KILLS_MAX {
        let more = format!("{} earlier: `--json` has all.", several((number - KILLS_MAX) as u64, "kill"));
        sections.push(Section::new(Topic::Details, "", [Part::Text(more)]));
    }
    let files = document.traces.iter().map(|of| of.file.as_str());
    let files = std::iter::once(document.log.as_str()).filter(|log| !log.is_empty()).chain(files);
    let files = each_once(files).join(", ");
    Page::new(format!("{files}, read by loadline {}", document.loadline), sections)
}

/// The evidence in a file, and whether a setting of the JVM would have helped.
fn trace(of: &Trace) -> String {
    match of {
        Trace::MemoryEvents { oom_kills: 0, at_limit } => {
            format!("The cgroup's limit killed nothing{}.", met(*at_limit))
        }
        Trace::MemoryEvents { oom_kills, at_limit } => {
            format!("The cgroup's limit killed {}{}.", several(*oom_kills, "process"), met(*at_limit))
        }
        Trace::FatalError { .. } => fatal_error(of),
        Trace::GcLog { collections, full, left_bytes, heap_bytes, was_full } => {
            let [left, heap] = [*left_bytes, *heap_bytes].map(Bytes);
            match was_full {
                true => format!(
                    "The Java heap was full: the last of {} left {left} of {heap}. A larger `-Xmx` or \
                     fewer live objects help; a larger limit alone does not.",
                    several(*full, "full collection")
                ),
                false => format!(
                    "No sign of a full Java heap: the last of {} left {left} of {heap}. If the limit killed the JVM, \
                     look outside the live objects.",
                    several(*collections, "collection")
                ),
            }
        }
        Trace::Container { .. } => container(of),
    }
}

fn met(at_limit: Option<u64>) -> String {
    let met = at_limit.filter(|times| *times > 0);
    met.map(|times| format!("; the charge reached it {}", several(times, "time"))).unwrap_or_default()
}

fn fatal_error(of: &Trace) -> String {
    let Trace::FatalError { problem, lacked, heap_used_bytes, heap_max_bytes, limit_bytes, usage_bytes, .. } = of
    else {
        return String::new();
    };
    let heap = heap_used_bytes.map(Bytes).zip(heap_max_bytes.map(Bytes));
    let heap = heap.map(|(used, most)| format!(" The Java heap held {used} of {most}.")).unwrap_or_default();
    let charge = usage_bytes.map(Bytes).zip(limit_bytes.map(Bytes));
    let charge = charge.map(|(usage, limit)| format!(" The cgroup held {usage} of {limit}.")).unwrap_or_default();
    let (began, help) = match lacked {
        Lacked::Heap => {
            ("The JVM ended itself", " A larger `-Xmx` or fewer live objects help; a larger limit alone does not.")
        }
        Lacked::Metaspace => {
            ("The JVM ended itself", " Raise `-XX:MaxMetaspaceSize`, or find the class loaders that stay.")
        }
        Lacked::Native => (
            "The JVM got no memory from the kernel",
            " No larger heap helps: raise the limit or `ulimit -v`, or lower what the process holds outside the heap.",
        ),
        Lacked::Nothing => ("The JVM crashed, and not for lack of memory", ""),
    };
    format!("{began}: {}.{heap}{charge}{help}", problem.trim_end_matches('.'))
}

/// Exit codes: 128 and the number of the signal (signal(7)); 3 is that of `ExitOnOutOfMemoryError` (JDK 8u92 to 27).
fn container(of: &Trace) -> String {
    let Trace::Container { name, reason, oom_killed, exit_code, limit_bytes, time } = of else { return String::new() };
    let time = if time.is_empty() { String::new() } else { format!(" at {time}") };
    let limit = limit_bytes.map_or_else(|| "a limit".to_owned(), |limit| format!("its limit of {}", Bytes(limit)));
    let why = match exit_code {
        _ if *oom_killed => format!("was killed by {limit}"),
        0 => "ended as it should".to_owned(),
        3 => "ended itself: `-XX:+ExitOnOutOfMemoryError` ends a JVM this way".to_owned(),
        134 => "aborted itself: its error file (`hs_err_pid*.log`) says why".to_owned(),
        // On cgroup v1 Podman 4.3 reports a kill by the limit like any other.
        137 => format!("was killed, and the runtime does not say by what: {limit}, a probe, an eviction or a person"),
        143 => "was asked to end".to_owned(),
        _ if reason.is_empty() => "ended with an error of its own".to_owned(),
        _ => format!("ended: {reason}"),
    };
    format!("Container {name} {why} (exit code {exit_code}){time}.")
}

/// The next command where no kill is known from the kernel's log.
fn next_of_traces(document: &OomDocument) -> Option<&'static str> {
    let killed = |of: &TraceRecord| match of.trace {
        Trace::Container { oom_killed, exit_code, .. } => oom_killed || exit_code == 137,
        Trace::MemoryEvents { oom_kills, .. } => oom_kills > 0,
        _ => false,
    };
    let of_heap = |of: &TraceRecord| {
        matches!(of.trace, Trace::GcLog { was_full: true, .. } | Trace::FatalError { lacked: Lacked::Heap, .. })
    };
    match () {
        () if document.traces.iter().any(killed) => {
            Some("Next: `dmesg -T | loadline post-mortem -` on the node says who held the memory.")
        }
        () if document.traces.iter().any(of_heap) => {
            Some("Next: `loadline account PID --objects` of a JVM of that service says which objects fill the heap.")
        }
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
    let together = if of.group { ", all of its cgroup together (`memory.oom.group`)" } else { "" };
    let limit = of.limit_bytes.map(|limit| format!("the limit of {} of ", Bytes(limit))).unwrap_or_default();
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
                if rounds_to_none(of.other_bytes) { String::new() } else { format!(", other processes {other}") };
            format!("JVMs held {jvm}{others}: settings of the JVM bound most of it.")
        }
        OomHolder::OtherProcesses => format!(
            "Other processes held {other}{}, JVMs {jvm}: no JVM setting bounds the larger part.",
            largest_helper(of).unwrap_or_default()
        ),
        OomHolder::MemoryFiles => {
            format!("Files in memory held most (JVMs {jvm}): no setting of a JVM bounds them.")
        }
        OomHolder::Kernel => format!("The kernel itself held most (JVMs {jvm}): no setting of a JVM bounds it."),
        OomHolder::Unknown => "The log does not say who held the memory.".to_owned(),
    }
}

/// ` (tesseract: 4 of 154.0 MiB at most)`: the command whose processes held most, and the largest of them.
fn largest_helper(of: &OomRecord) -> Option<String> {
    let rows = || of.rows.iter().filter(|row| row.pid.is_some() && row.bytes > 0);
    let sum = |name: &str| rows().filter(|row| row.owner == name).map(|row| row.bytes).sum::<i64>();
    let name = &rows().max_by_key(|row| sum(&row.owner))?.owner;
    let own: Vec<i64> = rows().filter(|row| row.owner == *name).map(|row| row.bytes).collect();
    let most = Bytes(own.iter().copied().max()?.unsigned_abs());
    Some(format!(" ({name}: {} of {most} at most)", own.len()))
}

fn next(holder: OomHolder) -> &'static str {
    match holder {
        OomHolder::Jvm => {
            "Next: `loadline account PID` of a JVM of that service says who holds its memory; `loadline find` finds \
             the smallest limit that holds."
        }
        OomHolder::OtherProcesses => {
            "Next: allow fewer helpers at once, or raise the limit by what each additional one takes; the charge was \
             cut off at the limit, so they may need more."
        }
        OomHolder::MemoryFiles => {
            "Next: put temporary files into a folder on disk, or give the volume in memory a size limit \
             (`/dev/shm`, `emptyDir` with `medium: Memory`)."
        }
        OomHolder::Kernel => "Next: `loadline account --cgroup PATH` of a running container says which part grows.",
        OomHolder::Unknown => {
            "Next: give the whole log, from `invoked oom-killer` to `Killed process`: `dmesg -T` or `journalctl -k`."
        }
    }
}

/// A kill; one that is not the answer of the page says itself who was killed.
fn section(of: &OomRecord, tells: bool) -> Section {
    let told = tells.then(|| Part::Text(sentence(of)));
    let mut facts = Facts::default();
    facts.add("invoked by", (!of.invoked_by.is_empty()).then(|| of.invoked_by.clone()));
    facts.add("cgroup", of.cgroup.clone());
    let usage = of.usage_bytes.map(Bytes).zip(of.limit_bytes.map(Bytes));
    facts.add("charge", usage.map(|(usage, limit)| format!("{usage} of {limit}")));
    facts.add("swap", of.swap_bytes.filter(|bytes| *bytes > 0).map(|bytes| Bytes(bytes).to_string()));
    let table = charged::table_of(&of.rows, of.usage_bytes, "what was charged, MiB");
    let parts = told.into_iter().chain([Part::Facts(facts.0)]).chain(table.map(Part::Table));
    let stamp = if of.stamp.is_empty() { "a kill without a time" } else { of.stamp.as_str() };
    Section::new(Topic::Memory, stamp.to_owned(), parts)
}
