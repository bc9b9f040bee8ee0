//! `loadline account`: who holds the resident memory of a running JVM now, what changed since an earlier account, and
//! how the JVMs of a machine compare.

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

/// The id of a process, as it is typed.
pub(super) fn pid(text: &str) -> Result<u32, String> {
    let refuse = || format!("`{text}` is not a process id; write it as a number, such as `4711`");
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(refuse)
}

/// The options that name a subject; one of them is needed.
const WHAT: [&str; 6] = ["pid", "all", "from", "cgroup", "container", "pod"];

/// `loadline account`
#[derive(Debug, Parser)]
#[command(override_usage = "loadline account [OPTIONS] <PID>\n       loadline account [OPTIONS] --all\n       \
    loadline account --cgroup PATH | --container ID | --pod NAME\n       loadline account [OPTIONS] --from BUNDLE")]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(WHAT))]
pub(super) struct Verb {
    /// Process id of the JVM
    #[arg(value_name = "PID", value_parser = pid, conflicts_with_all = ["all", "cgroup", "container", "pod"])]
    pid: Option<u32>,
    /// All JVMs of this machine in one table, those of containers too
    ///
    /// A JVM is recognised by a mapped libjvm.so, not by its name. Loadline reads one after another, as `loadline
    /// account PID` does, in 20 to 100 ms each. It pauses a JVM for 2 to 9 ms of that (longer on a busy machine, never
    /// with `--no-stop`). It uses the attach API only where the tables of a JVM are incomplete or Native Memory
    /// Tracking is on; that adds 0.1 to 0.3 MiB to the RSS of the JVM, once.
    ///
    /// Exit code 0: every JVM found was read. 4: Loadline lacks the permission to read at least one; it lists that one
    /// with the reason and prints the others. A JVM that ends during the reading is listed too and is no failure.
    #[arg(long, conflicts_with_all = ["by", "netty", "against", "classes", "heap_dump"])]
    all: bool,
    /// The JVM of a bundle that `loadline capture` made where Loadline cannot run
    ///
    /// A bundle has no copy of the JVM's memory, so malloc is one row, which includes direct memory.
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["all", "cgroup", "container", "pod"])]
    from: Option<PathBuf>,
    #[command(flatten)]
    container: ContainerOptions,
    /// Column that `--all` is sorted by [default: pss]
    // A `requires` alone does not hold where a pid, which conflicts with `all`, is given.
    #[arg(long, value_name = "COLUMN", requires = "all", conflicts_with = "pid")]
    sort: Option<Column>,
    /// Changes since an earlier account: a file that `loadline account PID --json` printed, or a bundle
    ///
    /// By owner, thread pool, file, NMT tag, code heap and class loader; with `--classes` both times, by class. The
    /// file may also be what `--all --json` or `--against FILE --json` printed. An account of another process is
    /// compared too, with a doubt.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Details by thread (stack, CPU time, what it allocated), pool (threads by name), file, tag (malloc by NMT tag),
    /// loader (classes by class loader), code (its cache by segment), region (address) or flag (those not at
    /// their default); may be repeated. `--json` has all of them
    #[arg(long, value_name = "WHAT", value_delimiter = ',', hide_possible_values = true)]
    by: Vec<Detail>,
    /// Do not pause the JVM's threads; changes while it is read blur the account
    #[arg(long)]
    no_stop: bool,
    /// Use the attach API even for data that can be read from outside; adds 0.2 to 0.3 MiB to the JVM
    #[arg(long)]
    attach: bool,
    /// List Netty's buffer pools, chunk by chunk; loads an agent into the JVM after the account
    #[arg(long)]
    netty: bool,
    /// List live objects by class after the account; a full GC pauses the JVM
    #[arg(long)]
    classes: bool,
    /// Write a heap dump into a new FILE, after everything else: a full GC, then the JVM pauses while it writes
    /// about as much as lives in its heap
    #[arg(long, value_name = "FILE")]
    heap_dump: Option<PathBuf>,
    /// Print the account as a document instead of the summary
    #[arg(long)]
    json: bool,
    /// Print no progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

impl Verb {
    /// Refuses to ask the JVM of a bundle for more, or to weigh two JVMs.
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
                Err(Error::request("a pid names a running JVM, and `--from` the one of a bundle")
                    .hint(format!("leave one of them out; {changes}")))
            }
            (Some(_), None, Some(option)) => Err(Error::request(format!(
                "`{option}` needs a running JVM, and a bundle is a copy without its memory"
            ))
            .hint("leave it out, or ask the JVM by `jcmd` in its container")),
            _ => Ok(()),
        }
    }
}

/// Options that have a JVM to ask.
const OF_A_JVM: [&str; 7] = ["by", "netty", "against", "classes", "heap_dump", "attach", "no_stop"];

/// A container in the place of a JVM.
#[derive(Debug, Parser)]
#[command(next_help_heading = "A whole container")]
struct ContainerOptions {
    /// What a memory cgroup is charged for: its folder, or its path as `/proc/PID/cgroup` has it
    ///
    /// Anonymous memory by process, files in memory, page cache, and the kernel's own, with the part that the kernel
    /// takes back before it kills. It needs no JVM.
    #[arg(long, value_name = "PATH", conflicts_with_all = OF_A_JVM)]
    cgroup: Option<PathBuf>,
    /// The same of a container, by its id or the first digits of it
    #[arg(long, value_name = "ID", conflicts_with_all = OF_A_JVM)]
    container: Option<String>,
    /// The same of a pod of this node with all its containers: `NAME` or `NAMESPACE/NAME`
    #[arg(long, value_name = "NAME", conflicts_with_all = OF_A_JVM)]
    pod: Option<String>,
}

impl ContainerOptions {
    /// The cgroup that was named, if one was.
    fn request(&self) -> Option<CgroupRequest> {
        let path = self.cgroup.clone().map(CgroupRequest::Path);
        let container = self.container.clone().map(CgroupRequest::Container);
        path.or(container).or_else(|| self.pod.clone().map(CgroupRequest::Pod))
    }
}

/// Listens to signals, so that a Ctrl-C waits until the JVM's threads run again.
pub(super) fn run(verb: Verb, Call { typed, clock }: Call) -> Result<Code> {
    let typed = typed.to_string();
    verb.check_bundle()?;
    if verb.against.is_some() && verb.by.contains(&Detail::Region) {
        return Err(Error::request("`--by region` cannot be compared: an address says nothing of another moment")
            .hint("leave it out, or give `thread`, `file`, `tag`, `loader` or `code`"));
    }
    if verb.against.is_some() && verb.by.contains(&Detail::Flag) {
        return Err(Error::request("`--by flag` cannot be compared: flags hardly change while a JVM runs")
            .hint("leave it out; `loadline doctor PID` says who set which"));
    }
    // The file is read before the JVM is touched, so that a slip costs the JVM nothing. It is also read before signals
    // are caught, so that a signal can end the wait for a pipe that never gets a writer.
    let earlier = verb.against.as_deref().map(|path| earlier(path, &clock)).transpose()?;
    let asked = AccountRequest { verb: &verb, typed, clock, interrupt: Interrupt::listen()? };
    match (earlier, verb.container.request()) {
        (_, Some(container)) => asked.container(&container),
        // clap asks for one of them.
        (_, None) if verb.all => asked.all(),
        (Some(earlier), None) => asked.against(earlier),
        (None, None) => asked.one(),
    }
}

/// The accounts of an earlier moment: of a record file, or of a bundle.
fn earlier(path: &Path, clock: &Clock) -> Result<Vec<AccountDocument>> {
    if Bundle::is_at(path) { Ok(vec![of_bundle(path, clock, String::new())?]) } else { archive::read_accounts(path) }
}

/// The account of the JVM of a bundle.
fn of_bundle(path: &Path, clock: &Clock, command: String) -> Result<AccountDocument> {
    let weighed = Bundle::open(path)?.weigh(clock)?;
    let (taken, machine) = (weighed.taken.clone(), weighed.machine.clone());
    Ok(document(weighed, command, taken, machine))
}

/// The parsed command line, with the means to answer it.
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
            // Without a copy of memory no chunk has a tag.
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

    /// A container, whether there is a JVM in it or not.
    fn container(&self, container: &CgroupRequest) -> Result<Code> {
        let (machine, taken) = (series::machine_now(self.clock), utc(self.clock.unix_s()));
        let command = self.typed.clone();
        let document = ChargeDocument { machine, taken, command, ..container.weigh(&self.clock)? };
        self.show(&document, |_| summarize_charge(&document))?;
        Ok(Code::Yes)
    }

    /// One JVM after another; those read before an interruption are printed.
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
                    .hint("run Loadline as root, or as the user of each"))
            }
        }
    }

    fn weighing(&self) -> AccountOptions {
        let verb = self.verb;
        AccountOptions { stop: !verb.no_stop, netty: verb.netty, asking: Asking::typed(verb.attach) }
    }

    /// Weighs one JVM, alive or in a bundle.
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

    /// Prints the document or what there is to say of it, with each detail once, in the order typed.
    fn show(&self, document: &impl Serialize, summary: impl FnOnce(&[Detail]) -> Page) -> Result<()> {
        let text = match self.verb.json {
            true => report::document(document),
            false => render(&summary(&each_once(self.verb.by.iter().copied()))),
        };
        print(&text)
    }
}

/// The document of a JVM that was weighed, with the findings in it.
pub(super) fn document(weighed: AccountDocument, command: String, taken: String, machine: Machine) -> AccountDocument {
    let mut document = AccountDocument { taken, command, machine, ..weighed };
    let diagnosis = diagnosis::of_account(&document);
    (document.findings, document.ruled_out) = (diagnosis.findings, diagnosis.ruled_out);
    let own = format!("jcmd {} ", document.jvm.pid);
    let of_findings = document.findings.iter_mut().map(|one| &mut one.next);
    for next in of_findings.chain(document.doubts.iter_mut().map(|one| &mut one.next)) {
        *next = next.replace("jcmd PID ", &own);
    }
    document
}
