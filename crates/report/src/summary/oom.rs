//! Kills for lack of memory: who was killed by which limit, who held what, and whether a setting of a JVM bounds it.

use super::cells::rounds_to_none;
use super::charged;
use crate::page::{Facts, Page, Part, Section, Topic, Verdict};
use crate::record::{OomDocument, OomHolder, OomKilled, OomRecord};
use crate::units::{Bytes, several};

/// Kills that are shown, the latest; the document has all of them.
const KILLS_MAX: usize = 5;
/// Processes named in a sentence.
const NAMED_MAX: usize = 3;

/// Summarizes the kills of a log, the latest first.
pub fn summarize_oom(document: &OomDocument) -> Page {
    let number = document.kills.len();
    let answer = match document.kills.first() {
        None => Verdict::told(format!("{} has no kill for lack of memory.", document.log)),
        Some(latest) => Verdict::told(sentence(latest)),
    };
    let next = document.kills.first().map(|latest| Part::Text(next(latest.holder).to_owned()));
    let mut sections = vec![Section::new(Topic::Answer, "", std::iter::once(Part::Verdicts(vec![answer])).chain(next))];
    sections.extend(document.kills.iter().take(KILLS_MAX).enumerate().map(|(place, kill)| section(kill, place > 0)));
    if number > KILLS_MAX {
        let more = format!("{} earlier: `--json` has all.", several((number - KILLS_MAX) as u64, "kill"));
        sections.push(Section::new(Topic::Details, "", [Part::Text(more)]));
    }
    Page::new(format!("{}, read by loadline {}", document.log, document.loadline), sections)
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
            "Other processes held {other}{}, JVMs {jvm}: no setting of a JVM bounds the larger part.",
            largest_helper(of).unwrap_or_default()
        ),
        OomHolder::MemoryFiles => {
            format!("Files in memory held most (JVMs {jvm}): no setting of a JVM bounds them.")
        }
        OomHolder::Kernel => format!("The kernel itself held most (JVMs {jvm}): no setting of a JVM bounds it."),
        OomHolder::Unknown => "The log does not tell who held the memory.".to_owned(),
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
            "Next: allow fewer helpers at once, or raise the limit by what each more of them takes; the charge was cut \
             off at the limit, so they may need more."
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
