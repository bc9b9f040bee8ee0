//! `loadline advise`: suggests sizes for running JVMs from observation, without a trial.

use super::account::pid;
use super::exit::Code;
use super::session::{Call, Interrupt};
use super::watch::usual_folder;
use crate::archive::run_files;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{
    ADVICE_SCHEMA, AccountDocument, AdviceDocument, AdviceRecord, NamedJvm, UnreadCause, UnreadRecord, each_once,
};
use crate::report::{self, PatchHost, Progress, patch, render, summarize_advice};
use crate::result::{compare_vpa, read_vpa};
use crate::scenario::{Asking, shell_word};
use crate::series::{machine_now, search};
use crate::units::{several, utc};
use crate::watch::{ByAccount, NamedHistories, place};
use crate::weigh::container::CgroupRequest;
use crate::weigh::{AccountOptions, Candidates, LIST_JVMS, tool_options, weigh_candidate};
use clap::{ArgGroup, Parser};
use search::{Seen, advise};
use std::path::{Path, PathBuf};

/// `loadline advise`
///
/// For each JVM, takes an account without pausing any threads, and reads its history from `loadline watch`. Prints the
/// limit, `-Xmx`, the arithmetic, the amount of data, and the `loadline find --prove` command that tests the limit. The
/// limit is never below the observed peak minus the heap that `-Xmx` removes. Exit code 1: there is no advice for a
/// JVM, because its memory grows or its heap use is unknown. 4: a JVM could not be read.
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
#[command(group = ArgGroup::new("what").required(true).args(["of", "all", "of_pod", "of_history"]))]
pub(super) struct Verb {
    /// PIDs of JVMs, or the archive or `--json` output of a run
    #[arg(value_name = "PID | ARCHIVE")]
    of: Vec<PathBuf>,
    /// Advise on all JVMs on this machine, including those in containers
    #[arg(long)]
    all: bool,
    /// Advise on the JVMs of a pod on this node: `NAME` or `NAMESPACE/NAME`
    #[arg(long = "pod", value_name = "NAME")]
    of_pod: Option<String>,
    /// Use a history from `loadline watch`, together with all histories of the same name in its directory
    #[arg(long = "history", value_name = "FILE")]
    of_history: Option<PathBuf>,
    /// Compare with a VerticalPodAutoscaler: the output of `kubectl get vpa -o yaml`
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Print settings for this platform instead of the summary
    #[arg(long, value_name = "HOST", conflicts_with = "json")]
    patch: Option<PatchHost>,
    /// Print JSON instead of the summary
    #[arg(long)]
    json: bool,
    /// Print no progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  loadline advise 4711
  loadline advise --all --json
  loadline advise --pod prod/shop-6f4d --patch kubernetes
  loadline advise --history shop.service.1763890000.4711.history
  loadline advise loadline-archive/app-20260101-120000
  loadline advise 4711 --against vpa.yaml";

/// The advice for each JVM, with the options variable of its process.
#[derive(Default)]
struct Advised {
    advice: Vec<AdviceRecord>,
    own_options: Vec<Option<String>>,
    unread: Vec<UnreadRecord>,
}

impl Advised {
    fn add(&mut self, advice: AdviceRecord, own_options: Option<String>) {
        self.advice.push(advice);
        self.own_options.push(own_options);
    }

    /// Adds the advice for a JVM measured at this time.
    fn add_weighed(&mut self, taken: String, weighed: AccountDocument) {
        let own_options = tool_options(weighed.jvm.pid);
        self.add(of_account(&AccountDocument { taken, ..weighed }), own_options);
    }
}

pub(super) fn run(verb: Verb, Call { typed, clock }: Call) -> Result<Code> {
    // Reads the file first, so that a typo in its name costs the JVMs nothing.
    let recommended = verb.against.as_deref().map(read_vpa).transpose()?;
    let interrupt = Interrupt::listen()?;
    let (machine, taken) = (machine_now(clock), utc(clock.unix_s()));
    let mut advised = match (&verb.of_history, verb.all, &verb.of_pod) {
        (Some(file), ..) => of_history(file, clock)?,
        (None, true, _) => of_jvms(&Candidates::find()?.jvms, &verb, clock, &interrupt)?,
        (None, false, Some(pod)) => of_jvms(&of_pod(pod, clock)?, &verb, clock, &interrupt)?,
        (None, false, None) => of_words(&verb, clock, &interrupt)?,
    };
    if let Some(recommended) = &recommended {
        compare_vpa(&mut advised.advice, recommended);
        if advised.advice.iter().all(|one| one.vpa.is_none()) {
            let names: Vec<&str> = recommended.iter().map(|vpa| vpa.container.as_str()).collect();
            return Err(Error::request(format!("none of these JVMs runs in a container named {}", names.join(", ")))
                .hint("specify a single JVM and the VPA of its workload"));
        }
    }
    let Advised { advice, own_options, unread } = advised;
    let (schema, loadline) = (ADVICE_SCHEMA.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let document = AdviceDocument { schema, loadline, taken, command: typed.to_string(), machine, advice, unread };
    report::print(&match (verb.json, verb.patch) {
        (true, _) => report::document(&document),
        (false, Some(host)) => {
            let all = document.advice.iter().zip(&own_options);
            all.map(|(one, own)| patch(host, one, own.as_deref())).collect::<Vec<_>>().join("---\n")
        }
        (false, None) => render(&summarize_advice(&document)),
    })?;
    ended(&document, &interrupt)
}

/// The exit code: an interrupt first, then unreadable JVMs, then JVMs without advice.
fn ended(document: &AdviceDocument, interrupt: &Interrupt) -> Result<Code> {
    let refused = document.unread.iter().filter(|one| one.cause == UnreadCause::Refused).count();
    match (interrupt.seen(), refused) {
        (true, _) => Err(Error::interrupted()),
        (false, 0) => Ok(Code::of(document.advice.iter().all(|one| one.limit_bytes.is_some()))),
        (false, refused) => {
            let jvms = several(refused as u64, "JVM");
            Err(Error::new(ErrorKind::Machine, format!("{jvms} could not be read; the others are above"))
                .hint("run Loadline as root, or as the user of each JVM"))
        }
    }
}

/// Interprets the arguments as process IDs or as paths of runs; mixing them is an error.
fn of_words(verb: &Verb, clock: Clock, interrupt: &Interrupt) -> Result<Advised> {
    let is_pid = |word: &&PathBuf| word.to_str().is_some_and(|text| text.parse::<u32>().is_ok()) && !word.exists();
    let pids: Vec<&PathBuf> = verb.of.iter().filter(is_pid).collect();
    if pids.is_empty() {
        let is_name = |word: &&PathBuf| !word.exists();
        if let Some(word) = verb.of.iter().find(is_name) {
            let word = word.display();
            return Err(Error::request(format!("`{word}` is neither a process ID nor an archive"))
                .hint("write a process ID as a number, such as `4711`, or specify the archive of a run"));
        }
        return of_runs(&verb.of);
    }
    if pids.len() < verb.of.len() {
        return Err(Error::request("process IDs and archives cannot be mixed").hint("run the command once for each"));
    }
    let pids = pids.iter().filter_map(|word| word.to_str()).map(pid).collect::<Result<Vec<u32>, String>>();
    let pids = pids.map_err(|why| Error::request(why).hint(LIST_JVMS))?;
    let jvms: Vec<NamedJvm> =
        each_once(pids.into_iter()).into_iter().map(|pid| NamedJvm { pid, ..NamedJvm::default() }).collect();
    match jvms.as_slice() {
        [one] => {
            let mut advised = Advised::default();
            advised.add_weighed(utc(clock.unix_s()), LOOK.weigh(one.pid, &clock)?);
            Ok(advised)
        }
        all => of_jvms(all, verb, clock, interrupt),
    }
}

/// Pauses no threads, because sizes do not need a consistent snapshot.
const LOOK: AccountOptions = AccountOptions { stop: false, netty: false, asking: Asking::IfNeeded };

fn of_pod(pod: &str, clock: Clock) -> Result<Vec<NamedJvm>> {
    let jvms = CgroupRequest::Pod(pod.to_owned()).weigh(&clock)?.jvms;
    match jvms.is_empty() {
        true => Err(Error::request(format!("no JVM runs in the pod `{pod}`"))
            .hint("`loadline account --pod NAME` shows the memory charged to the pod")),
        false => Ok(jvms),
    }
}

/// Measures the JVMs one by one; after an interrupt, keeps those already measured.
fn of_jvms(jvms: &[NamedJvm], verb: &Verb, clock: Clock, interrupt: &Interrupt) -> Result<Advised> {
    let (mut advised, mut talk) = (Advised::default(), Progress::new(verb.quiet));
    for (at, jvm) in jvms.iter().enumerate() {
        if interrupt.seen() {
            break;
        }
        talk.live_text(&format!("{} of {}: pid {} {}", at + 1, jvms.len(), jvm.pid, jvm.name));
        let taken = utc(clock.unix_s());
        match weigh_candidate(jvm, LOOK, &clock)? {
            Ok(weighed) => advised.add_weighed(taken, weighed),
            Err(why) => advised.unread.push(why),
        }
    }
    talk.clear_line();
    Ok(advised)
}

/// Advice from a JVM's account, and from its history if a watch writes one.
fn of_account(account: &AccountDocument) -> AdviceRecord {
    let identity = account.identity.clone().unwrap_or_default();
    let history = usual_folder().and_then(|folder| {
        let boot_id = identity.boot_id.as_deref();
        NamedHistories::of_process(&folder, account.jvm.pid, identity.started_ticks, boot_id)
    });
    of_both(account, history.as_ref())
}

fn of_both(account: &AccountDocument, history: Option<&NamedHistories>) -> AdviceRecord {
    let mut seen = Seen::of_account(account);
    if let Some(history) = history {
        let heap = account.mark.account.as_ref().map_or(0, |account| account.heap_bytes());
        let promised = account.mark.heap.committed_bytes.unwrap_or(0).max(1);
        let heap_resident = (heap as f64 / promised as f64).min(1.0);
        let watched = history.seen(Some(ByAccount { heap_resident }));
        if watched.heap.old_collections > 0 {
            // A single reading counts objects promoted since the last old collection as live.
            (seen.heap.left, seen.heap.old_collections) = (None, 0);
        }
        seen = seen.with(watched);
    }
    let main = account.identity.as_ref().map_or("", |identity| identity.name.as_str());
    let cgroup = account.mark.charge.as_ref().map_or("", |charge| charge.cgroup.as_str());
    let (name, place) = place(cgroup, main);
    AdviceRecord { name, place, pid: Some(account.jvm.pid), ..advise(&seen, &account.subject_command) }
}

/// Advice from a history, plus an account if the JVM still runs here: an account reveals more than counters do.
fn of_history(file: &Path, clock: Clock) -> Result<Advised> {
    let histories = NamedHistories::read(file).map_err(|cause| {
        Error::request(format!("{} cannot be read as a history: {cause}", file.display()))
            .hint("specify a file `NAME.START.PID.history` that `loadline watch` wrote")
    })?;
    let kept = &histories.kept;
    let mut advised = Advised::default();
    let is_same = |account: &AccountDocument| {
        let identity = account.identity.as_ref();
        identity.is_some_and(|of| of.started_ticks == kept.started_ticks && of.boot_id == kept.boot_id)
    };
    let taken = utc(clock.unix_s());
    match LOOK.weigh(kept.pid, &clock).ok().filter(is_same) {
        Some(weighed) => {
            let own_options = tool_options(kept.pid);
            advised.add(of_both(&AccountDocument { taken, ..weighed }, Some(&histories)), own_options);
        }
        None => {
            let (_, place) = place(kept.cgroup.as_deref().unwrap_or(""), &kept.name);
            let name = kept.name.clone();
            // A history does not contain the JVM's options.
            advised.add(AdviceRecord { name, place, ..advise(&histories.seen(None), &[]) }, None);
        }
    }
    Ok(advised)
}

fn of_runs(places: &[PathBuf]) -> Result<Advised> {
    let mut advised = Advised::default();
    for file in run_files(places)? {
        let run = file.read()?;
        for name in each_once(run.trials.iter().map(|trial| trial.configuration.clone())) {
            let of = || run.trials.iter().filter(|trial| trial.configuration == name);
            let Some(mut seen) = Seen::of_trials(of()) else { continue };
            if let Some(scenario) = &run.scenario {
                seen.scenario = shell_word(&file.path.to_string_lossy());
                if scenario.configurations.len() > 1 {
                    seen.scenario.push_str(&format!(" --only {}", shell_word(&name)));
                }
            }
            let command = of().find_map(|trial| (!trial.command.is_empty()).then(|| of_now(&trial.command)));
            let name = format!("{} {name}", run.conditions.scenario).trim().to_owned();
            advised.add(AdviceRecord { name, ..advise(&seen, &command.unwrap_or_default()) }, None);
        }
    }
    match advised.advice.is_empty() {
        true => {
            Err(Error::request("no successful trial has an account").hint("specify an archive of `loadline weigh`"))
        }
        false => Ok(advised),
    }
}

/// The command of a trial, with `java` instead of the path of the trial's JDK copy, which no longer exists.
fn of_now(command: &[String]) -> Vec<String> {
    let is_gone = |program: &String| Path::new(program).is_absolute() && !Path::new(program).exists();
    let program = command.first().map(|program| if is_gone(program) { "java".to_owned() } else { program.clone() });
    program.into_iter().chain(command.iter().skip(1).cloned()).collect()
}
