//! `loadline account`: what uses a running JVM's resident memory, changes since an earlier account, and a comparison of
//! a machine's JVMs.

use super::dumps::new_file;
use super::exit::Code;
use super::session::{Call, Interrupt};
use crate::archive;
use crate::clock::Clock;
use crate::diagnosis;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{
    ACCOUNTS_SCHEMA, AccountDocument, AccountsDocument, ChargeDocument, Machine, UnreadCause, each_once,
};
use crate::report::{
    self, Detail, Page, Progress, print, render, summarize_account, summarize_accounts, summarize_changes,
    summarize_charge,
};
use crate::result::{self, Column};
use crate::scenario::Asking;
use crate::series;
use crate::units::{several, utc};
use crate::weigh::bundle::Bundle;
use crate::weigh::container::CgroupRequest;
use crate::weigh::{AccountOptions, Candidates, Collecting, weigh_candidate};
use clap::{ArgGroup, Parser};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Parses a process ID.
pub(super) fn pid(text: &str) -> Result<u32, String> {
    let refuse = || match Path::new(text).extension() {
        Some(_) => format!("`{text}` is not a process ID; `loadline account --from {text}` reads a captured bundle"),
        None => format!("`{text}` is not a process ID (a number > 0); `loadline account --all` lists all JVMs"),
    };
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(refuse)
}

/// The options that name a subject; exactly one is required.
const WHAT: [&str; 6] = ["pid", "all", "from", "cgroup", "container", "pod"];

/// `loadline account`
#[derive(Debug, Parser)]
#[command(override_usage = "loadline account [OPTIONS] <PID>\n       loadline account [OPTIONS] --all\n       \
    loadline account --cgroup PATH | --container ID | --pod NAME\n       loadline account [OPTIONS] --from BUNDLE")]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(WHAT))]
pub(super) struct Verb {
    /// PID of the JVM
    #[arg(value_name = "PID", value_parser = pid, conflicts_with_all = ["all", "cgroup", "container", "pod"])]
    pid: Option<u32>,
    /// Show all JVMs on this machine in one table, including those in containers
    ///
    /// Loadline recognizes a JVM by its mapped libjvm.so. It reads JVMs one at a time, in 20 to 100 ms each, and pauses
    /// each for 2 to 9 ms (longer on a busy machine, never with `--no-stop`). It uses the attach API only if the JVM's
    /// own tables are incomplete or Native Memory Tracking is on; the first use adds 0.1 to 0.3 MiB to the JVM's RSS.
    ///
    /// Exits with code 4 if Loadline lacks permission to read a JVM; it lists that JVM with the reason and prints
    /// the others. A JVM that exits during the scan is listed, but does not count as an error.
    #[arg(long, conflicts_with_all = ["by", "netty", "against", "classes", "heap_dump"])]
    all: bool,
    /// Read a bundle that `loadline capture` collected where Loadline can't run
    ///
    /// A bundle has no copy of the JVM's memory, so malloc and direct memory share one row.
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["all", "cgroup", "container", "pod"])]
    from: Option<PathBuf>,
    #[command(flatten)]
    container: ContainerOptions,
    /// Column to sort `--all` by [default: pss]
    // `requires` alone is not enforced if a pid, which conflicts with `all`, is given.
    #[arg(long, value_name = "COLUMN", requires = "all", conflicts_with = "pid")]
    sort: Option<Column>,
    /// Show changes since an earlier account: a bundle, or output of `loadline account PID --json`
    ///
    /// Shows changes by owner, thread pool, file, NMT tag, code heap, and class loader, and by class if both accounts
    /// used `--classes`. FILE can also be the output of `--all --json` or `--against FILE --json`. Comparing different
    /// processes prints a warning.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Add details by thread (stack, CPU time, allocation), pool (threads by name), file, tag (malloc by NMT tag),
    /// loader (classes by class loader), code (code cache by segment), region (mappings by address), or
    /// flag (non-default flags) (repeatable). `--json` includes all of them
    #[arg(long, value_name = "WHAT", value_delimiter = ',', hide_possible_values = true)]
    by: Vec<Detail>,
    /// Don't pause the JVM's threads; less exact, because memory changes while it is read
    #[arg(long)]
    no_stop: bool,
    /// Use the attach API even for data that can be read from outside the JVM; costs the JVM 0.2 to 0.3 MiB
    #[arg(long)]
    attach: bool,
    /// List the chunks of Netty's buffer pools; loads an agent into the JVM after the account
    #[arg(long)]
    netty: bool,
    /// List live objects by class after the account; forces a full GC
    #[arg(long)]
    classes: bool,
    /// Dump the heap to a new FILE, after everything else. Forces a full GC, then pauses the JVM while it writes a file
    /// about as large as the live heap
    #[arg(long, value_name = "FILE")]
    heap_dump: Option<PathBuf>,
    /// Print JSON instead of the summary
    #[arg(long)]
    json: bool,
    /// Print no progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

impl Verb {
    /// Rejects options that need a live JVM if the subject is a bundle, and two subjects.
    fn check_bundle(&self) -> Result<()> {
        let ask = [
            ("--netty", self.netty),
            ("--classes", self.classes),
            ("--heap-dump", self.heap_dump.is_some()),
            ("--attach", self.attach),
            ("--no-stop", self.no_stop),
        ];
        let asked = ask.into_iter().find_map(|(option, is_typed)| is_typed.then_some(option));
        match (&self.from, self.pid, asked) {
            (Some(bundle), Some(pid), _) => {
                let changes = format!("`loadline account {pid} --against {}` compares the two", bundle.display());
                Err(Error::request("specify either a process ID or `--from`, not both")
                    .hint(format!("remove one of them; {changes}")))
            }
            (Some(_), None, Some(option)) => {
                Err(Error::request(format!("`{option}` needs a running JVM; a bundle has no copy of its memory"))
                    .hint("remove it, or use `jcmd` in the JVM's container"))
            }
            _ => Ok(()),
        }
    }
}

/// Options that require a live JVM.
const OF_A_JVM: [&str; 7] = ["by", "netty", "against", "classes", "heap_dump", "attach", "no_stop"];

/// A container instead of a JVM.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Containers")]
struct ContainerOptions {
    /// Show the memory charged to a cgroup, given its directory or its path as in `/proc/PID/cgroup`
    ///
    /// Lists anonymous memory by process, in-memory files, page cache, and kernel memory, and marks memory that the
    /// kernel reclaims before an OOM kill. Works without a JVM.
    #[arg(long, value_name = "PATH", conflicts_with_all = OF_A_JVM)]
    cgroup: Option<PathBuf>,
    /// Show the memory charged to a container, given its ID or a prefix of it
    #[arg(long, value_name = "ID", conflicts_with_all = OF_A_JVM)]
    container: Option<String>,
    /// Show the memory charged to a pod on this node: `NAME` or `NAMESPACE/NAME`
    #[arg(long, value_name = "NAME", conflicts_with_all = OF_A_JVM)]
    pod: Option<String>,
}

impl ContainerOptions {
    /// The cgroup given on the command line, if any.
    fn request(&self) -> Option<CgroupRequest> {
        let path = self.cgroup.clone().map(CgroupRequest::Path);
        let container = self.container.clone().map(CgroupRequest::Container);
        path.or(container).or_else(|| self.pod.clone().map(CgroupRequest::Pod))
    }
}

/// Handles signals, so that Ctrl-C waits until the JVM's threads run again.
pub(super) fn run(verb: Verb, Call { typed, clock }: Call) -> Result<Code> {
    let typed = typed.to_string();
    verb.check_bundle()?;
    if verb.against.is_some() && verb.by.contains(&Detail::Region) {
        return Err(Error::request("`--by region` cannot be compared: addresses differ from one account to the next")
            .hint("remove it, or specify `thread`, `file`, `tag`, `loader`, or `code`"));
    }
    if verb.against.is_some() && verb.by.contains(&Detail::Flag) {
        return Err(Error::request("`--by flag` cannot be compared: flags rarely change while a JVM runs")
            .hint("remove it; `loadline doctor PID` shows where each was set"));
    }
    // Reads the file before touching the JVM, so that a typo costs the JVM nothing. It does so before handling signals,
    // too, so that a signal can end a wait for a pipe without a writer.
    let earlier = verb.against.as_deref().map(|path| earlier(path, &clock)).transpose()?;
    let asked = AccountRequest { verb: &verb, typed, clock, interrupt: Interrupt::listen()? };
    match (earlier, verb.container.request()) {
        (_, Some(container)) => asked.container(&container),
        // clap requires one of them.
        (_, None) if verb.all => asked.all(),
        (Some(earlier), None) => asked.against(earlier),
        (None, None) => asked.one(),
    }
}

/// The earlier accounts, from an account file or a bundle.
fn earlier(path: &Path, clock: &Clock) -> Result<Vec<AccountDocument>> {
    if Bundle::is_at(path) { Ok(vec![of_bundle(path, clock, String::new())?]) } else { archive::read_accounts(path) }
}

fn of_bundle(path: &Path, clock: &Clock, command: String) -> Result<AccountDocument> {
    let weighed = Bundle::open(path)?.weigh(clock)?;
    let (taken, machine) = (weighed.taken.clone(), weighed.machine.clone());
    Ok(document(weighed, command, taken, machine))
}

/// The parsed command line, and its context.
struct AccountRequest<'a> {
    verb: &'a Verb,
    typed: String,
    clock: Clock,
    interrupt: Interrupt,
}

impl AccountRequest<'_> {
    fn one(&self) -> Result<Code> {
        let document = self.take()?;
        self.show(&document, |details| summarize_account(&document, details))?;
        if !self.verb.json && self.verb.by.is_empty() {
            let mut talk = Progress::new(self.verb.quiet);
            // Without a copy of memory, no chunk has a tag.
            let tag = if document.bundle.is_some() { "" } else { "tag," };
            talk.step(&format!("details: add `--by thread,pool,file,{tag}loader,code,region,flag`"));
        }
        Ok(Code::Yes)
    }

    fn against(&self, earlier: Vec<AccountDocument>) -> Result<Code> {
        let now = self.take()?;
        let file = self.verb.against.iter().map(|file| file.display().to_string()).collect::<String>();
        let document = result::changes(earlier, now, self.typed.clone()).map_err(|error| error.at(file))?;
        self.show(&document, |details| summarize_changes(&document, details))?;
        Ok(Code::Yes)
    }

    /// Shows a container, with or without a JVM.
    fn container(&self, container: &CgroupRequest) -> Result<Code> {
        let (machine, taken) = (series::machine_now(self.clock), utc(self.clock.unix_s()));
        let command = self.typed.clone();
        let document = ChargeDocument { machine, taken, command, ..container.weigh(&self.clock)? };
        self.show(&document, |_| summarize_charge(&document))?;
        Ok(Code::Yes)
    }

    /// Measures the JVMs one by one; after an interrupt, prints those already measured.
    fn all(&self) -> Result<Code> {
        let Self { verb, clock, interrupt, .. } = self;
        let machine = series::machine_now(*clock);
        let taken = utc(clock.unix_s());
        let found = Candidates::find()?;
        let mut talk = Progress::new(verb.quiet);
        let (mut accounts, mut unread) = (Vec::new(), Vec::new());
        for (at, jvm) in found.jvms.iter().enumerate() {
            if interrupt.seen() {
                break;
            }
            talk.live_text(&format!("{} of {}: pid {}, {}", at + 1, found.jvms.len(), jvm.pid, jvm.name));
            let began = utc(clock.unix_s());
            match weigh_candidate(jvm, self.weighing(), clock)? {
                Ok(weighed) => {
                    let command = format!("loadline account {} --json", jvm.pid);
                    accounts.push(document(weighed, command, began, machine.clone()));
                }
                Err(why) => unread.push(why),
            }
        }
        talk.clear_line();
        let refused = unread.iter().filter(|one| one.cause == UnreadCause::Refused).count();
        let document = AccountsDocument {
            schema: ACCOUNTS_SCHEMA.to_owned(),
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            taken,
            command: self.typed.clone(),
            machine,
            accounts,
            unread,
            hidden: found.hidden,
            ..AccountsDocument::default()
        };
        let document = result::ranked(document, verb.sort.unwrap_or_default());
        self.show(&document, |_| summarize_accounts(&document))?;
        match (interrupt.seen(), refused) {
            (true, _) => Err(Error::interrupted()),
            (false, 0) => Ok(Code::Yes),
            (false, refused) => {
                let jvms = several(refused as u64, "JVM");
                Err(Error::new(ErrorKind::Machine, format!("{jvms} could not be read; the others are above"))
                    .hint("run Loadline as root, or as the user of each JVM"))
            }
        }
    }

    fn weighing(&self) -> AccountOptions {
        let verb = self.verb;
        AccountOptions { stop: !verb.no_stop, netty: verb.netty, asking: Asking::typed(verb.attach) }
    }

    /// Measures one JVM, live or from a bundle.
    fn take(&self) -> Result<AccountDocument> {
        let Self { verb, clock, .. } = self;
        if let Some(bundle) = &verb.from {
            return of_bundle(bundle, clock, self.typed.clone());
        }
        let pid = verb.pid.unwrap_or_default();
        let machine = series::machine_now(*clock);
        let taken = utc(clock.unix_s());
        let heap_dump = verb.heap_dump.as_deref().map(new_file).transpose()?;
        let then = Collecting { classes: verb.classes, heap_dump };
        let mut talk = Progress::new(verb.quiet);
        let weighed = self.weighing().weigh_then(pid, clock, &then, &mut |price| talk.step(price))?;
        if self.interrupt.seen() {
            return Err(Error::interrupted());
        }
        Ok(document(weighed, self.typed.clone(), taken, machine))
    }

    /// Prints the document or its summary, with each requested detail once, in command-line order.
    fn show(&self, document: &impl Serialize, summary: impl FnOnce(&[Detail]) -> Page) -> Result<()> {
        let text = match self.verb.json {
            true => report::document(document),
            false => render(&summary(&each_once(self.verb.by.iter().copied()))),
        };
        print(&text)
    }
}

pub(super) fn document(weighed: AccountDocument, command: String, taken: String, machine: Machine) -> AccountDocument {
    let mut document = AccountDocument { taken, command, machine, ..weighed };
    let diagnosis = diagnosis::of_account(&document);
    (document.findings, document.ruled_out) = (diagnosis.findings, diagnosis.ruled_out);
    document
}
