//! The next command of an answer, in a line below it.

use super::comparison::{compares, seconds_of_a_block, undecided};
use super::explanation::{code_behind, heap_unseen, is_code, is_steady, main_holder};
use super::findings::{rss_of, weighty};
use crate::doubt::Doubt;
use crate::owner::Owner;
use crate::page::{Literal, Part};
use crate::record::{
    AccountDocument, AccountRecord, BudgetVerdict, ChangesDocument, Document, ExplanationRecord, FindRecord,
    FindingRecord, FlagOrigin, FlagsRecord, FleetDocument, GrowthWord, LoadDocument, NamedJvm, Outcome, Trial,
    Unknowns, WatchedJvm,
};
use crate::units::{Bytes, roughly};
use crate::words::pairs;
use loadline_jvm::observe::vm_flags::{set_by, short_name};

/// The command that makes more blocks for what is open, with its price.
pub(super) fn of_comparison(document: &Document) -> Option<Part> {
    let rows = pairs(document, true).into_iter().flat_map(|pair| pair.rows).collect::<Vec<_>>();
    let command = document.conditions.command.replacen("loadline run ", "loadline compare ", 1);
    // Archives get no more blocks.
    let is_open = document.archives.is_empty() && undecided(&rows).next().is_some();
    let most = BLOCKS_MORE.max(2 * document.blocks.len() as u32);
    let price = seconds_of_a_block(document).map(|seconds| format!(", at most {}", roughly(seconds * f64::from(most))));
    let title = format!("next: up to {most} blocks, until these metrics are decided{}", price.unwrap_or_default());
    let lines = vec![until_sure(&command, most)];
    (is_open && command.starts_with("loadline compare ")).then_some(Part::Literal(Literal { title, lines }))
}

/// The blocks of `--until-sure` without a number.
const BLOCKS_MORE: u32 = 30;

/// The same command until every metric is decided, in so many blocks at most. What follows `--` is the server's own.
fn until_sure(command: &str, most: u32) -> String {
    const OPTION: &str = "--until-sure";
    let (ours, server) = command.split_once(" -- ").map_or((command, None), |(ours, server)| (ours, Some(server)));
    let mut words: Vec<&str> = ours.split(' ').collect();
    if let Some(at) = words.iter().position(|word| word.starts_with(OPTION)) {
        let has_number = words.get(at + 1).is_some_and(|word| word.parse::<u32>().is_ok());
        words.drain(at..at + 1 + usize::from(words[at] == OPTION && has_number));
    }
    let server = server.map(|server| format!(" -- {server}")).unwrap_or_default();
    format!("{} {OPTION} {most}{server}", words.join(" "))
}

/// The limit of a server that was weighed; an interval for trials that were not repeated.
pub(super) fn of_trials(document: &Document) -> Option<Part> {
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
        return Some(line(&format!("`loadline compare {baseline} ARCHIVE` names the owners of the difference.")));
    }
    let text = match trials.as_slice() {
        [one] if is_complete(one) && one.marks.iter().any(|mark| mark.account.is_some()) => {
            "`loadline find` with the same arguments finds the smallest limit that holds."
        }
        [first, .., last] if first.configuration != last.configuration && trials.iter().all(is_complete) => {
            "`loadline compare` with the same arguments repeats them and gives each difference an interval."
        }
        _ => return None,
    };
    Some(line(text))
}

/// Whether one holder keeps more of the heap than the first finding costs.
fn is_held(found: &ExplanationRecord, findings: &[FindingRecord]) -> bool {
    let costs = findings.first().map_or(0, |first| first.costs_bytes);
    main_holder(found).is_some_and(|holder| holder.retained_bytes > costs)
}

/// A change of the code, and the command that shows whether it helped.
fn mend(grows: bool) -> Part {
    line(match grows {
        true => "change that code, and run the same command again: the live heap should no longer grow.",
        false => {
            "change that code. `loadline weigh --trials 5 --out before` with the same arguments, `--out after` with \
             the change, and `loadline compare before after` show the difference."
        }
    })
}

/// A steady rate after a closed load; a check after an open one.
pub(super) fn of_load(document: &LoadDocument) -> Option<Part> {
    let phase = document.phases.iter().rfind(|phase| phase.works())?;
    let text = match &phase.response_ms {
        Some(times) if document.thresholds.is_empty() => {
            let bound = rounded_up(times.p99 * CHECK_ROOM)?;
            format!("`--require 'p99<{bound}ms'` makes it a check, with an exit code.")
        }
        None => {
            let rate = rounded_up(phase.achieved_per_s * STEADY_SHARE)?;
            format!("`--rate {rate}` offers 70 % of that rate, and times each request from when it was due.")
        }
        Some(_) => return None,
    };
    Some(line(&text))
}

/// The share of the rate of a closed load that a server carries without a growing queue.
const STEADY_SHARE: f64 = 0.7;
/// The room of a check above the p99 of one load.
const CHECK_ROOM: f64 = 1.5;

/// Rounds to two digits; `None` below 1.
fn rounded_up(value: f64) -> Option<u64> {
    let step = 10f64.powf(value.log10().floor() - 1.0).max(1.0);
    (value >= 1.0).then(|| ((value / step).ceil() * step) as u64)
}

/// The proof of the limit that a search found: its own starts prove the line, and one start the limit to set.
pub(super) fn of_find(find: &FindRecord) -> Option<Part> {
    let limit = find.limit_bytes.filter(|_| find.prove_bytes.is_none() && find.unknowns != Unknowns::Rate)?;
    let heap = find.heap_bytes.map(|heap| format!(" and `--jvm=-Xmx{}`", Bytes(heap).java())).unwrap_or_default();
    let limit = Bytes(limit).java();
    Some(line(&format!(
        "`loadline find --prove {limit} --proofs 29` with the same arguments{heap} tries that limit 29 times."
    )))
}

/// The next look at the same services.
pub(super) fn of_fleet(document: &FleetDocument) -> Option<Part> {
    let all_answered = document.standing.missing.is_empty() && document.standing.failed.is_empty();
    let text = "`--json fleet.json` keeps these lines; `loadline plan FLEET --last fleet.json` plans to check them.";
    (all_answered && !document.services.is_empty()).then(|| line(text))
}

/// The holder of a large owner that no finding explains; else whether the JVM grows.
pub(super) fn of_account(document: &AccountDocument) -> Part {
    if let Some(bundle) = &document.bundle {
        return line(&format!(
            "capture again later; `loadline account --from LATER --against {bundle}` shows what grew."
        ));
    }
    let open = document.mark.account.as_ref().and_then(|account| open(account, &document.findings));
    open.and_then(|open| open.next(document)).map_or_else(|| watch(document), |next| line(&format!("{next}.")))
}

fn watch(document: &AccountDocument) -> Part {
    line(&format!("`loadline watch {}` shows whether it grows.", document.jvm.pid))
}

/// A trial of the options that the first of these findings proposes.
fn of_cure(findings: &[FindingRecord], flags: Option<&FlagsRecord>, server: &str) -> Option<Part> {
    let options = findings.first()?.remedies.first()?.typed();
    let tries = format!("{server} tries `{}` and shows what it saves", options.join(" "));
    (!options.is_empty()).then(|| tune(&options, flags, &tries))
}

/// A tuning of this server, and what it does with these options, of which one may replace a flag of the user's own.
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

/// After a recording: the proof of a cure, another recording if this one shows little, or whether the JVM grows.
pub(super) fn of_recorded(document: &AccountDocument) -> Part {
    const SERVER: &str = " --url URL --rate N -- COMMAND`";
    let flags = document.flags.as_ref();
    let sites = || document.explanation.iter().flat_map(|found| &found.sites);
    // A collection that comes sooner frees what dead objects hold.
    let dead = sites().next().filter(|site| is_code(site) && site.kept_bytes < site.loaded_bytes / 2);
    let sooner = format!("{SERVER} tries a smaller young generation, so that a GC comes sooner");
    let dead = dead.map(|_| tune(&["-Xmn".to_owned()], flags, &sooner));
    let findings = weighty(&document.findings, document.mark.rss_bytes);
    if document.explanation.as_ref().is_some_and(|found| is_held(found, findings)) {
        return of_recorded_heap(document);
    }
    let cure = of_cure(findings, flags, SERVER);
    cure.or_else(|| again(document)).or(dead).unwrap_or_else(|| of_recorded_heap(document))
}

/// The objects, if they were not looked at; the code that fills the main holder, if any; else whether it grows.
fn of_recorded_heap(document: &AccountDocument) -> Part {
    let pid = document.jvm.pid;
    if heap_unseen(document).is_some() {
        return line(&format!("`loadline explain {pid} --objects`: a full GC, then a pause while the JVM writes."));
    }
    match document.explanation.as_ref().and_then(main_holder) {
        Some(_) => line(&format!(
            "change the code that fills it, and compare both builds under one load (`loadline explain -- COMMAND`); \
             `loadline account {pid} --heap-dump FILE` keeps the objects."
        )),
        None => watch(document),
    }
}

/// After two accounts: what keeps the live heap, if that grew most; else the holder of a large owner. A bundle leads to
/// commands that run in its container.
pub(super) fn of_changes(document: &ChangesDocument) -> Option<Part> {
    let [then, now] =
        [&document.then, &document.now].map(|of| of.mark.account.as_ref().map_or(0, AccountRecord::heap_bytes));
    let live = document.now.objects.as_ref().and_then(|now| Some((now.at_start?.bytes, now.total.bytes)));
    let grown = live.map_or_else(|| now.saturating_sub(then), |(then, now)| now.saturating_sub(then));
    let is_most = live.is_some() || grown as i64 >= document.rss_growth_bytes / 2;
    let (is_heap, pid) = (grown >= HEAP_GROWN_MIN && is_most, document.now.jvm.pid);
    let text = match (&document.now.bundle, is_heap) {
        (None, true) => format!("`loadline explain {pid} --objects` names what keeps the heap."),
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

/// A heap that grew by less has no holder worth a heap dump.
const HEAP_GROWN_MIN: u64 = 1 << 20;
/// Growth of an owner by less has no cause worth a look.
pub(super) const OWNER_GROWN_MIN: i64 = 1 << 20;

/// Another recording, if this one shows less than half of what a large owner held before.
pub(super) fn again(document: &AccountDocument) -> Option<Part> {
    let recorded: u64 = document.explanation.iter().flat_map(|found| &found.sites).map(|site| site.loaded_bytes).sum();
    let open = open(document.mark.account.as_ref()?, &document.findings)?;
    (recorded < open.bytes / 2).then(|| {
        line(&format!(
            "record again under load, or from the start (`loadline explain -- COMMAND`): the {} were allocated before.",
            open.named()
        ))
    })
}

/// A large owner that no finding explains.
pub(super) struct OpenOwner {
    bytes: u64,
    owner: Owner,
    /// The options that list its holders, after `loadline` and the process id, and the kind of holder.
    by: (&'static str, &'static str, &'static str),
}

impl OpenOwner {
    /// `277.9 MiB of malloc live`
    fn named(&self) -> String {
        format!("{} of {}", Bytes(self.bytes), self.owner.entry().label)
    }

    /// The command that names the holders, in a JVM that runs or in a bundle; `None` where a bundle does not have them.
    pub(super) fn next(&self, document: &AccountDocument) -> Option<String> {
        let (pid, (verb, options, which)) = (document.jvm.pid, self.by);
        let (of, options, which) = match (&document.bundle, self.owner) {
            (None, _) => (format!("{verb} {pid}"), options, which),
            (Some(_), Owner::MallocUnsplit) if trims(document) => {
                let named = self.named();
                return Some(format!("in the container, {} returns the retained part of the {named}", trim(pid)));
            }
            (Some(bundle), owner) => {
                let (options, which) = match owner {
                    Owner::Metaspace | Owner::ClassSpace => ("--by loader", "which loader"),
                    Owner::ThreadStacks => ("--by pool", "which pool of threads"),
                    _ if verb == EXPLAIN => return None,
                    _ => (options, which),
                };
                (format!("account --from {bundle}"), options, which)
            }
        };
        Some(format!("`loadline {of} {options}` shows {which} holds the {}", self.named()))
    }

    /// The same of a trial; `None` where no other trial names them.
    pub(super) fn next_trial(&self) -> Option<String> {
        let (verb, _, which) = self.by;
        let text = format!("`loadline explain` with the same arguments shows {which} holds the {}", self.named());
        (verb == EXPLAIN).then_some(text)
    }
}

/// Less of RSS, or less than this, needs no explanation.
const OPEN_SHARE_MIN: f64 = 0.25;
const OPEN_BYTES_MIN: u64 = 32 << 20;

/// The largest owner, if it is large, something can name its holders, and no finding weighs half as much.
pub(super) fn open(account: &AccountRecord, findings: &[FindingRecord]) -> Option<OpenOwner> {
    let named = Owner::ALL.into_iter().filter_map(|owner| Some((account.holds(owner.name()), owner, holders(owner)?)));
    let (bytes, owner, by) = named.max_by_key(|(bytes, ..)| *bytes)?;
    let is_large = bytes >= OPEN_BYTES_MIN && bytes as f64 >= OPEN_SHARE_MIN * account.total_bytes as f64;
    let is_explained = findings.iter().any(|found| found.costs_bytes.max(found.worth_bytes()) >= bytes / 2);
    (is_large && !is_explained).then_some(OpenOwner { bytes, owner, by })
}

const EXPLAIN: &str = "explain";

/// Whether the JVM has an allocator that it can trim, and `jcmd` is at hand.
pub(super) fn trims(document: &AccountDocument) -> bool {
    let lacks_jcmd =
        document.doubts.iter().any(|of| matches!(&of.doubt, Doubt::BundleLacks { what } if what.contains("no jcmd")));
    document.jvm.allocator.as_deref() == Some("glibc") && !lacks_jcmd
}

/// The command that trims malloc.
pub(super) fn trim(pid: u32) -> String {
    format!("`jcmd {pid} System.trim_native_heap` (JDK 17.0.9 and newer)")
}

/// The command that names the holders of an owner; `None` for the heap, which findings judge by its live set, for what
/// a JVM needs, and for memory without a holder.
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
        Owner::Unexplained => Some(("account", "--by region", "which address")),
        _ => None,
    }
}

/// A JVM of a container.
pub(super) fn of_charged(jvm: &NamedJvm) -> Part {
    line(&format!(
        "`loadline account {}` says who holds the memory of {}, and what its helpers add.",
        jvm.pid, jvm.name
    ))
}

/// The kill that left a cgroup without a process.
pub(super) fn of_dead() -> Part {
    line("`loadline post-mortem` names the process that the kernel killed, and the owners of its memory.")
}

/// One JVM of many.
pub(super) fn of_accounts(pid: u32) -> Part {
    line(&format!("`loadline account {pid}` says who holds the memory of the largest."))
}

/// The holder of the memory of a watched JVM, above all of memory that grows.
pub(super) fn of_watched(jvm: &WatchedJvm) -> Part {
    let pid = jvm.pid;
    let grows = jvm.growth.verdict == GrowthWord::Grows;
    line(&match jvm.growth.owner.as_deref().filter(|_| grows) {
        Some("heap") => format!("`loadline explain {pid} --objects` names what keeps the heap, and the code."),
        Some(_) => format!("`loadline account {pid}` says who holds it; `loadline explain {pid}`, which code."),
        None if !jvm.growth.unsure.is_empty() => format!(
            "two counts of live objects show sooner what grows: `loadline account {pid} --classes --json > FILE`, and \
             after some load `loadline account {pid} --classes --against FILE`."
        ),
        None => format!("`loadline account {pid}` says who holds the memory."),
    })
}

/// One of several watched JVMs: one that grows, or the largest.
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
    fn a_comparison_goes_on_with_its_own_command() {
        let of = |command: &str| until_sure(command, 30);
        assert_eq!(of("loadline compare a.yaml --trials 3"), "loadline compare a.yaml --trials 3 --until-sure 30");
        assert_eq!(of("loadline compare --until-sure 7 a.yaml"), "loadline compare a.yaml --until-sure 30");
        assert_eq!(of("loadline compare --until-sure a.yaml"), "loadline compare a.yaml --until-sure 30");
        let server = of("loadline compare --until-sure=9 --vary gc=serial,g1 -- x --until-sure 1");
        assert_eq!(server, "loadline compare --vary gc=serial,g1 --until-sure 30 -- x --until-sure 1");
    }
}
