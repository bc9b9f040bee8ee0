//! The next command, in a line below the answer.

use super::comparison::{compares, seconds_of_a_block, undecided};
use super::explanation::{code_behind, heap_unseen, is_code, is_steady, main_holder};
use super::findings::{rss_of, weighty};
use crate::doubt::Doubt;
use crate::owner::Owner;
use crate::page::{Literal, Part};
use crate::record::{
    AccountDocument, AccountRecord, BudgetVerdict, ChangesDocument, Document, DoubtRecord, ExplanationRecord,
    FindRecord, FindingRecord, FlagOrigin, FlagsRecord, FleetDocument, GrowthWord, LoadDocument, NamedJvm, Outcome,
    Trial, Unknowns, WatchedJvm,
};
use crate::scenario::shell_word;
use crate::units::{Bytes, roughly};
use crate::words::answering_pairs;
use loadline_jvm::observe::vm_flags::{set_by, short_name};
use std::path::Path;

/// The command to run more blocks for undecided metrics, with its cost.
pub(super) fn of_comparison(document: &Document) -> Option<Part> {
    let rows = answering_pairs(document).into_iter().flat_map(|pair| pair.rows).collect::<Vec<_>>();
    let command = document.conditions.command.replacen("loadline run ", "loadline compare ", 1);
    // Archives cannot get more blocks.
    let is_open = document.archives.is_empty() && undecided(&rows).next().is_some();
    let needed = undecided(&rows).filter_map(|row| row.blocks_needed).max().unwrap_or(0);
    let most = BLOCKS_MORE.max(2 * document.blocks.len() as u32).max(needed);
    let price = seconds_of_a_block(document).map(|seconds| {
        format!(
            " (at most \
        {})",
            roughly(seconds * f64::from(most))
        )
    });
    let title = format!("next: run up to {most} blocks until these metrics are decided{}", price.unwrap_or_default());
    let lines = vec![until_sure(&command, most)];
    (is_open && command.starts_with("loadline compare ")).then_some(Part::Literal(Literal { title, lines }))
}

/// The default of `--until-sure`.
const BLOCKS_MORE: u32 = 30;

/// The same command, but run until every metric is decided, in up to `most` blocks.
fn until_sure(command: &str, most: u32) -> String {
    with(command, &["--until-sure"], &format!("--until-sure {most}"))
}

/// The option for the length of the load, which is not a plain number.
const DURATION: [&str; 2] = ["-d", "--duration"];

/// A command without these numeric options, and with others added. Words after `--` belong to the server.
fn with(command: &str, without: &[&str], others: &str) -> String {
    let (ours, server) = command.split_once(" -- ").map_or((command, None), |(ours, server)| (ours, Some(server)));
    let mut words: Vec<&str> = ours.split(' ').collect();
    for option in without {
        if let Some(at) = words.iter().position(|word| word.split('=').next() == Some(option)) {
            let has_number = words.get(at + 1).is_some_and(|word| word.parse::<f64>().is_ok());
            let has_value = has_number || DURATION.contains(option);
            let end = at + 1 + usize::from(words[at] == *option && has_value);
            words.drain(at..end.min(words.len()));
        }
    }
    let server = server.map(|server| format!(" -- {server}")).unwrap_or_default();
    format!("{} {others}{server}", words.join(" "))
}

/// The command that finds the limit of a measured server, or intervals if trials were not repeated. `archive` has the
/// result, if known.
pub(super) fn of_trials(document: &Document, archive: Option<&Path>) -> Option<Part> {
    let trials = &document.trials;
    if let [Trial { explanation: Some(found), jvm, .. }] = trials.as_slice() {
        let flags = jvm.as_ref().and_then(|jvm| jvm.flags_kept.as_ref());
        let findings = weighty(&document.findings, rss_of(trials));
        let growth = found.live_growth.as_ref();
        let grows = growth.is_some_and(|growth| growth.bytes_per_request.is_some());
        let is_of_code = grows || is_held(found, findings) && !growth.is_some_and(is_steady);
        let cure = of_cure(findings, flags, "` with these arguments").filter(|_| !is_of_code);
        let is_code = || findings.first().is_some_and(|first| code_behind(first, found).is_some());
        if let Some(next) = cure.or_else(|| (is_of_code || is_code()).then(|| mend(grows))) {
            return Some(next);
        }
    }
    let is_complete = |trial: &Trial| trial.outcome == Outcome::Completed;
    if compares(document) {
        return None;
    }
    if document.budgets.iter().any(|budget| budget.verdict == BudgetVerdict::Fail) {
        let (_, rest) = document.conditions.command.split_once(" --baseline ")?;
        let baseline = rest.split(' ').next()?;
        let title = "next: see which owners account for the difference".to_owned();
        let archive = archive.map_or("ARCHIVE".into(), Path::to_string_lossy);
        let lines = vec![format!("loadline compare {baseline} {}", shell_word(&archive))];
        return Some(Part::Literal(Literal { title, lines }));
    }
    let text = match trials.as_slice() {
        [one] if is_complete(one) && one.marks.iter().any(|mark| mark.account.is_some()) => {
            "`loadline find` with the same arguments finds the smallest limit that meets the target."
        }
        [first, .., last] if first.configuration != last.configuration && trials.iter().all(is_complete) => {
            "`loadline compare` with the same arguments repeats the trials and gives each difference an interval."
        }
        _ => return None,
    };
    Some(line(text))
}

/// Whether a single holder keeps more of the heap than the first finding costs.
fn is_held(found: &ExplanationRecord, findings: &[FindingRecord]) -> bool {
    let costs = findings.first().map_or(0, |first| first.costs_bytes);
    main_holder(found).is_some_and(|holder| holder.retained_bytes > costs)
}

/// Suggests a code change, and the command that shows whether it helped.
fn mend(grows: bool) -> Part {
    line(match grows {
        true => "change that code and rerun the command: the live heap should no longer grow.",
        false => {
            "change that code. `loadline weigh --trials 5 --out before` with the same arguments, `--out after` with \
             the change, and `loadline compare before after` show the difference."
        }
    })
}

/// Suggests a constant rate after a closed load, and a threshold after an open one.
pub(super) fn of_load(document: &LoadDocument) -> Option<Part> {
    let phase = document.phases.iter().rfind(|phase| phase.works())?;
    let text = match &phase.response_ms {
        Some(times) if document.thresholds.is_empty() => {
            let bound = rounded_up(times.p99 * CHECK_ROOM)?;
            format!("add `--require 'p99<{bound}ms'` to turn this load into a check with an exit code.")
        }
        None => {
            let rate = rounded_up(phase.achieved_per_s * STEADY_SHARE)?;
            format!("use `--rate {rate}` to offer 70% of that rate and time each request from when it was due.")
        }
        Some(_) => return None,
    };
    Some(line(&text))
}

/// The share of a closed load's rate that a server sustains without a growing queue.
const STEADY_SHARE: f64 = 0.7;
/// A threshold relative to the p99 of one load.
const CHECK_ROOM: f64 = 1.5;

/// Rounds to two digits; `None` below 1.
fn rounded_up(value: f64) -> Option<u64> {
    let step = 10f64.powf(value.log10().floor() - 1.0).max(1.0);
    (value >= 1.0).then(|| ((value / step).ceil() * step) as u64)
}

/// Confirms the limit that a search found: several starts at the line, one at the limit to set.
pub(super) fn of_find(document: &Document, find: &FindRecord) -> Option<Part> {
    const STARTS: u32 = 29;
    let limit = find.limit_bytes.filter(|_| find.prove_bytes.is_none() && find.unknowns != Unknowns::Rate)?;
    let heap = find.heap_bytes.map(|heap| format!(" --jvm=-Xmx{}", Bytes(heap).java())).unwrap_or_default();
    // A limit that depends on the length of the load must pass the longer load, too.
    let longer_s =
        find.soak.as_ref().filter(|soak| !soak.failed_bytes.is_empty()).map(|soak| (soak.seconds - 0.5).ceil());
    let of_trial_s = find.seconds / f64::from(find.trials.max(1)) + longer_s.unwrap_or(0.0);
    let time = roughly(of_trial_s * f64::from(STARTS));
    let title = format!("next: test the limit to set with {STARTS} starts (about {time})");
    let longer = longer_s.map(|seconds| format!(" -d {seconds:.0}s")).unwrap_or_default();
    let options = format!("--prove {} --proofs {STARTS}{heap}{longer}", Bytes(limit).java());
    let mut without = vec!["--proofs", "--minutes", "--trials-max"];
    without.extend(longer_s.map(|_| DURATION).into_iter().flatten());
    let lines = vec![with(&document.conditions.command, &without, &options)];
    Some(Part::Literal(Literal { title, lines }))
}

/// The next run for the same services.
pub(super) fn of_fleet(document: &FleetDocument) -> Option<Part> {
    let all_answered = document.standing.missing.is_empty() && document.standing.failed.is_empty();
    let text = "save these load lines with `--json fleet.json`, and plan the next check with `loadline plan FLEET \
        --last fleet.json`.";
    (all_answered && !document.services.is_empty()).then(|| line(text))
}

/// How to find the holder of a large unexplained owner, or else whether the JVM grows.
pub(super) fn of_account(document: &AccountDocument) -> Part {
    if has_no_answers(document) {
        return line(
            "capture again with `jcmd` (on the PATH, in `JAVA_HOME`, or next to the process's `java`). If the image \
             has none, run `loadline account --all` on the node. Without it, some memory areas of the JVM cannot \
             be told apart.",
        );
    }
    if let Some(bundle) = &document.bundle {
        let trim = trim(document.jvm.pid);
        let before = if may_trim(document) { format!("run {trim} in the container and ") } else { String::new() };
        return line(&format!(
            "{before}capture again later; `loadline account --from LATER --against {bundle}` then shows what changed."
        ));
    }
    let open = document.mark.account.as_ref().and_then(|account| open(account, &document.findings));
    open.and_then(|open| open.next(document)).map_or_else(|| watch(document), |next| line(&format!("{next}.")))
}

fn watch(document: &AccountDocument) -> Part {
    line(&format!("`loadline watch {}` shows whether it grows.", document.jvm.pid))
}

fn of_cure(findings: &[FindingRecord], flags: Option<&FlagsRecord>, server: &str) -> Option<Part> {
    let options = findings.first()?.remedies.first()?.typed();
    let tries = format!("{server} tries `{}` and shows what it saves", options.join(" "));
    (!options.is_empty()).then(|| tune(&options, flags, &tries))
}

/// Suggests a tuning of this server, and shows the effect of these options, which may replace a flag set by the user.
fn tune(options: &[String], flags: Option<&FlagsRecord>, server: &str) -> Part {
    let set = |name: &str| {
        let mut set = flags.into_iter().flat_map(|flags| &flags.set);
        set.any(|flag| flag.name == name && flag.origin != FlagOrigin::Ergonomic)
    };
    let own = options.iter().find_map(|option| Some((option, set_by(option)?.0)).filter(|(_, name)| set(name)));
    let own = own.map(|(option, name)| short_name(option).unwrap_or(name));
    let own = own.map(|name| format!(" --may-remove {name}")).unwrap_or_default();
    line(&format!("`loadline tune{own}{server}."))
}

/// After a recording: a test of a remedy, another recording if this one shows little, or whether the JVM grows.
pub(super) fn of_recorded(document: &AccountDocument) -> Part {
    const SERVER: &str = " --url URL --rate N -- COMMAND`";
    let flags = document.flags.as_ref();
    let sites = || document.explanation.iter().flat_map(|found| &found.sites);
    // More frequent collections free what dead objects hold.
    let dead = sites().next().filter(|site| is_code(site) && site.kept_bytes < site.loaded_bytes / 2);
    let sooner = format!("{SERVER} tries a smaller young generation, which makes GCs more frequent");
    let dead = dead.map(|_| tune(&["-Xmn".to_owned()], flags, &sooner));
    let findings = weighty(&document.findings, document.mark.rss_bytes);
    if document.explanation.as_ref().is_some_and(|found| is_held(found, findings)) {
        return of_recorded_heap(document);
    }
    let cure = of_cure(findings, flags, SERVER);
    cure.or_else(|| again(document)).or(dead).unwrap_or_else(|| of_recorded_heap(document))
}

/// The objects, if not examined yet; the code that fills the main holder, if any; or else whether the JVM grows.
fn of_recorded_heap(document: &AccountDocument) -> Part {
    let pid = document.jvm.pid;
    if heap_unseen(document).is_some() {
        return line(&format!(
            "`loadline explain {pid} --objects` also examines the heap. It runs a full GC and pauses the JVM while a \
             heap dump is written."
        ));
    }
    match document.explanation.as_ref().and_then(main_holder) {
        Some(_) => line(&format!(
            "change the code that fills it, and compare both builds under the same load (`loadline explain -- \
             COMMAND`); `loadline account {pid} --heap-dump FILE` saves the objects."
        )),
        None => watch(document),
    }
}

/// After two accounts: the holder of the live heap, if it grew most, or of a large owner. For a bundle, the commands
/// to run in its container.
pub(super) fn of_changes(document: &ChangesDocument) -> Option<Part> {
    let [then, now] =
        [&document.then, &document.now].map(|of| of.mark.account.as_ref().map_or(0, AccountRecord::heap_bytes));
    let live = document.now.objects.as_ref().and_then(|now| Some((now.at_start?.bytes, now.total.bytes)));
    let grown = live.map_or_else(|| now.saturating_sub(then), |(then, now)| now.saturating_sub(then));
    let is_most = live.is_some() || grown as i64 >= document.rss_growth_bytes / 2;
    let (is_heap, pid) = (grown >= HEAP_GROWN_MIN && is_most, document.now.jvm.pid);
    let text = match (&document.now.bundle, is_heap) {
        (None, true) => format!("`loadline explain {pid} --objects` shows which objects fill the heap."),
        (None, false) => return Some(of_account(&document.now)),
        (Some(_), true) => {
            format!(
                "in the container, `jcmd {pid} GC.class_histogram` lists the live objects by class, after a full GC."
            )
        }
        (Some(_), false) => {
            let grown = document.owners.iter().filter_map(|one| Some((one.growth_bytes?, one)));
            let (_, most) = grown.max_by_key(|(bytes, _)| *bytes).filter(|(bytes, _)| *bytes >= OWNER_GROWN_MIN)?;
            let owner = Owner::ALL.into_iter().find(|owner| owner.name() == most.name)?;
            let open = OpenOwner { bytes: most.now_bytes?, owner, by: holders(owner)? };
            format!("{}.", open.next(&document.now)?)
        }
    };
    Some(line(&text))
}

/// A heap that grew by less is not worth a heap dump.
const HEAP_GROWN_MIN: u64 = 1 << 20;
/// Smaller growth of an owner is not worth examining.
pub(super) const OWNER_GROWN_MIN: i64 = 1 << 20;

/// Another recording, if this one shows less than half of what a large owner held before.
pub(super) fn again(document: &AccountDocument) -> Option<Part> {
    let recorded: u64 = document.explanation.iter().flat_map(|found| &found.sites).map(|site| site.loaded_bytes).sum();
    let open = open(document.mark.account.as_ref()?, &document.findings)?;
    (recorded < open.bytes / 2).then(|| {
        line(&format!(
            "record again under load, or from startup (`loadline explain -- COMMAND`), because the {} was allocated \
             before the recording.",
            open.named()
        ))
    })
}

/// A large owner that no finding explains.
pub(super) struct OpenOwner {
    bytes: u64,
    owner: Owner,
    /// The options that list its holders, after `loadline` and the pid, and the kind of holder.
    by: (&'static str, &'static str, &'static str),
}

impl OpenOwner {
    /// `277.9 MiB of malloc live`
    fn named(&self) -> String {
        format!("{} of {}", Bytes(self.bytes), self.owner.entry().label)
    }

    /// The command that names the holders, in a running JVM or a bundle; `None` if a bundle lacks them.
    pub(super) fn next(&self, document: &AccountDocument) -> Option<String> {
        let (pid, (verb, options, which)) = (document.jvm.pid, self.by);
        let (of, options, which) = match (&document.bundle, self.owner) {
            // The comparison has only one row for it if the earlier account could not split it.
            (None, Owner::MallocUnsplit) if was_walked(document) => {
                return Some(format!("`loadline account {pid}` breaks down the {}", self.named()));
            }
            (None, _) => (format!("{verb} {pid}"), options, which),
            (Some(_), Owner::MallocUnsplit) if trims(document) => {
                let named = self.named();
                return Some(format!(
                    "in the container, run {} to trim the {named} and see how much is released",
                    trim(pid)
                ));
            }
            (Some(bundle), owner) => {
                let (options, which) = match owner {
                    Owner::Metaspace | Owner::ClassSpace => ("--by loader", "which loader"),
                    Owner::ThreadStacks => ("--by pool", "which thread pool"),
                    _ if verb == EXPLAIN => return None,
                    _ => (options, which),
                };
                (format!("account --from {bundle}"), options, which)
            }
        };
        Some(format!("`loadline {of} {options}` shows {which} holds the {}", self.named()))
    }

    /// The owner. For a bundle, the command follows, because `Next:` shows a different one. A trim has its own line.
    pub(super) fn told(&self, document: &AccountDocument) -> String {
        let is_told = document.bundle.is_some() && self.owner != Owner::MallocUnsplit;
        let next = self.next(document).filter(|_| is_told);
        next.map_or_else(|| self.named(), |next| format!("{}: {next}", self.named()))
    }

    /// The owner with a trial's command; `None` if no further trial would name its holders.
    pub(super) fn next_trial(&self) -> Option<String> {
        let (verb, _, which) = self.by;
        let text = format!("{}; `loadline explain` with the same arguments shows {which} holds it", self.named());
        (verb == EXPLAIN).then_some(text)
    }
}

/// Less memory than this, or a smaller share of RSS, needs no explanation.
const OPEN_SHARE_MIN: f64 = 0.25;
const OPEN_BYTES_MIN: u64 = 32 << 20;

/// The largest owner, if it is large, its holders can be named, and no finding has half its weight.
pub(super) fn open(account: &AccountRecord, findings: &[FindingRecord]) -> Option<OpenOwner> {
    let named = Owner::ALL.into_iter().filter_map(|owner| Some((account.holds(owner.name()), owner, holders(owner)?)));
    let (bytes, owner, by) = named.max_by_key(|(bytes, ..)| *bytes)?;
    let is_large = bytes >= OPEN_BYTES_MIN && bytes as f64 >= OPEN_SHARE_MIN * account.total_bytes as f64;
    let is_explained = findings.iter().any(|found| found.costs_bytes.max(found.worth_bytes()) >= bytes / 2);
    (is_large && !is_explained).then_some(OpenOwner { bytes, owner, by })
}

const EXPLAIN: &str = "explain";

/// Whether the JVM can trim its allocator, and `jcmd` is available.
pub(super) fn trims(document: &AccountDocument) -> bool {
    document.jvm.allocator.as_deref() == Some("glibc") && !has_no_answers(document)
}

/// Whether a bundle was created without `jcmd`.
fn has_no_answers(document: &AccountDocument) -> bool {
    let lacks = |of: &DoubtRecord| matches!(&of.doubt, Doubt::BundleLacks { what } if what.contains("jcmd"));
    document.doubts.iter().any(lacks)
}

/// Whether much of a bundle's memory may be freed memory that glibc retains.
fn may_trim(document: &AccountDocument) -> bool {
    let account = document.mark.account.as_ref();
    let unsplit_bytes = account.map_or(0, |account| account.holds(Owner::MallocUnsplit.name()));
    trims(document) && unsplit_bytes > document.mark.rss_bytes / TRIM_PART
}

/// A trim is worthwhile if unsplit malloc memory exceeds RSS divided by this.
const TRIM_PART: u64 = 10;

/// Whether malloc was split in the measurement.
fn was_walked(document: &AccountDocument) -> bool {
    document.mark.account.as_ref().is_some_and(|account| account.malloc.is_some())
}

pub(super) fn trim(pid: u32) -> String {
    format!("`jcmd {pid} System.trim_native_heap` (JDK 17.0.9 and newer)")
}

/// The command that names an owner's holders. `None` for the heap, which findings judge by its live set, for memory
/// that every JVM needs, and for memory without a holder.
fn holders(owner: Owner) -> Option<(&'static str, &'static str, &'static str)> {
    match owner {
        Owner::MallocLive
        | Owner::MallocNonHotspot
        | Owner::MallocMmapped
        | Owner::MallocUnsplit
        | Owner::MallocDirect
        | Owner::Native
        | Owner::Metaspace
        | Owner::ClassSpace
        | Owner::ThreadStacks => Some((EXPLAIN, "--for 30s", "which code")),
        Owner::Libraries | Owner::MappedFiles => Some(("account", "--by file", "which file")),
        Owner::Anonymous | Owner::Unexplained => Some(("account", "--by region", "which address")),
        _ => None,
    }
}

pub(super) fn of_charged(jvm: &NamedJvm) -> Part {
    line(&format!(
        "`loadline account {}` shows what {} uses its memory for and how much its helper processes add.",
        jvm.pid, jvm.name
    ))
}

/// An OOM kill that left a cgroup without processes.
pub(super) fn of_dead() -> Part {
    line("`loadline post-mortem` shows which process the kernel killed and what held its memory.")
}

pub(super) fn of_accounts(pid: u32) -> Part {
    line(&format!("`loadline account {pid}` shows what the largest JVM uses its memory for."))
}

/// How to find the holder of a watched JVM's memory, preferably of growing memory.
pub(super) fn of_watched(jvm: &WatchedJvm) -> Part {
    let pid = jvm.pid;
    let grows = jvm.growth.verdict == GrowthWord::Grows;
    line(&match jvm.growth.owner.as_deref().filter(|_| grows) {
        Some("heap") => format!(
            "`loadline explain {pid} --objects` shows which objects fill the heap and which code allocated them."
        ),
        Some(_) => format!(
            "`loadline account {pid}` shows what holds the memory, and `loadline explain {pid}` shows which code \
             allocated it."
        ),
        None if !jvm.growth.unsure.is_empty() => format!(
            "for a faster answer, compare two counts of live objects: run `loadline account {pid} --classes \
             --json > FILE`, and after some load `loadline account {pid} --classes --against FILE`."
        ),
        None => format!("`loadline account {pid}` shows what the memory is used for."),
    })
}

/// The same for a growing JVM among the watched ones, or else for the largest.
pub(super) fn of_all_watched(jvms: &[WatchedJvm]) -> Option<Part> {
    let weight = |jvm: &&WatchedJvm| (jvm.growth.verdict == GrowthWord::Grows, jvm.now.unreclaimable_bytes);
    jvms.iter().max_by_key(weight).map(of_watched)
}

fn line(text: &str) -> Part {
    Part::Text(format!("Next: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_continues_with_its_own_command() {
        let of = |command: &str| until_sure(command, 30);
        assert_eq!(of("loadline compare a.yaml --trials 3"), "loadline compare a.yaml --trials 3 --until-sure 30");
        assert_eq!(of("loadline compare --until-sure 7 a.yaml"), "loadline compare a.yaml --until-sure 30");
        assert_eq!(of("loadline compare --until-sure a.yaml"), "loadline compare a.yaml --until-sure 30");
        let server = of("loadline compare --until-sure=9 --vary gc=serial,g1 -- x --until-sure 1");
        assert_eq!(server, "loadline compare --vary gc=serial,g1 --until-sure 30 -- x --until-sure 1");
    }
}
