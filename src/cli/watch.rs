//! `loadline watch`: running JVMs' memory over time, growth, and time to the limit.

use super::account::pid;
use super::console::{Console, glyphs};
use super::exit::Code;
use super::session::{Call, Interrupt};
use super::supervisor::{Ender, Supervisor};
use super::watch_metrics::{Metrics, Owners, Receivers};
use crate::archive;
use crate::clock::Clock;
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::record::{
    DoubtRecord, GrowthRecord, GrowthWord, Machine, POST_MORTEM_SCHEMA, WATCH_SCHEMA, WatchDocument, WhyWeighed,
};
use crate::report::{self, Keys, Pressed, Progress, Screen, print, render, summarize_post_mortem, summarize_watch};
use crate::scenario::Asking;
use crate::series::machine_now;
use crate::subject::itself;
use crate::units::{Bytes, Span, utc};
use crate::watch::{
    Attaching, Here, Histories, How, Past, ServerTls, Sweeps, Watching, WhenWeighed, Which, World, add_accounts,
    create_folder, keep_within, post_mortem, web_config,
};
use crate::weigh::container::cgroup_path;
use crate::weigh::{AccountOptions, Collecting, check_jvm};
use clap::{ArgGroup, Parser};
use std::cell::LazyCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// `loadline watch`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
#[command(group = ArgGroup::new("which").required(true).multiple(false).args(WHICH))]
pub(super) struct Verb {
    /// PIDs of JVMs
    #[arg(value_name = "PID", value_parser = pid)]
    pids: Vec<u32>,
    /// Watch all JVMs on this machine, including those in containers and those that start later
    #[arg(long)]
    all: bool,
    /// Watch JVMs in this memory cgroup and its children; PATH is relative to the cgroup mount
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,
    /// Watch the JVMs of this systemd service
    #[arg(long, value_name = "NAME")]
    unit: Option<String>,
    /// Sampling interval; the time windows of verdicts scale with it
    #[arg(long, value_name = "TIME", default_value = "10s")]
    every: Span,
    /// Directory for histories and accounts [default: /var/lib/loadline for root, else `loadline` in the user's state
    /// directory]
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Disk space for histories and accounts; the oldest histories of exited JVMs are deleted first
    #[arg(long, value_name = "SIZE", default_value = "256m")]
    keep: Bytes,
    /// When to take an account, which pauses threads for milliseconds (0.1 s with 1,000 threads): `never`, `on-growth`,
    /// `at:75%` of the limit, `every:6h` (repeatable) [default: at:66%, at:75%, at:90%]
    #[arg(long, value_name = "WHEN")]
    account: Vec<Weighings>,
    /// Query each JVM once over its attach socket for its memory layout and, if enabled, Native Memory Tracking; pauses
    /// no threads
    #[arg(long, value_name = "WHEN", default_value = "never", hide_default_value = true)]
    attach: Attach,
    /// Number of owners to export per JVM, largest first, at most `top:20`; the rest are summed as `other`
    #[arg(long, value_name = "top:N", default_value = "top:5")]
    owners: Owners,
    /// Print a verdict on each JVM from its stored history, then exit with code 1 if any is growing, or 4 if it is
    /// too early to judge one
    #[arg(long)]
    once: bool,
    /// Report how a watched JVM exited, its last memory use, prior growth, and the memory it needed
    #[arg(long, value_name = "PID | FILE", conflicts_with_all = ["once", "account", "listen", "otlp", "duration"])]
    post_mortem: Option<String>,
    /// Write the post-mortem as HTML
    #[arg(long, value_name = "FILE", requires = "post_mortem")]
    html: Option<PathBuf>,
    #[command(flatten)]
    receivers: Receivers,
    /// How long to watch
    #[arg(long = "for", value_name = "TIME", conflicts_with = "once")]
    duration: Option<Span>,
    /// Print JSON instead of the summary
    #[arg(long)]
    json: bool,
    /// Print no progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

/// Options that select the JVMs; exactly one is required.
const WHICH: [&str; 5] = ["pids", "all", "cgroup", "unit", "post_mortem"];

const EXAMPLES: &str = "\
Examples:
  loadline watch --all
  loadline watch 4711
  loadline watch --unit shop.service --account on-growth
  loadline watch --all --once";

/// When to take accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weighings {
    Never,
    OnGrowth,
    At(u64),
    Every(Span),
}

impl std::str::FromStr for Weighings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse =
            || format!("`{text}` is not an account trigger; write `never`, `on-growth`, `at:75%`, or `every:6h`");
        let percent = |text: &str| text.strip_suffix('%')?.parse().ok().filter(|percent| (1..=100).contains(percent));
        match text.split_once(':') {
            None if text == "never" => Ok(Self::Never),
            None if text == "on-growth" => Ok(Self::OnGrowth),
            Some(("at", share)) => percent(share).map(Self::At).ok_or_else(refuse),
            Some(("every", span)) => span.parse().map(Self::Every).map_err(|_| refuse()),
            _ => Err(refuse()),
        }
    }
}

/// Whether JVMs are queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Attach {
    Never,
    Once,
}

/// The maximum delay before an interrupt is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time spans in a plot, enough for a wide terminal and an image.
const STRETCHES: usize = 240;
/// Enough for a history and a few accounts.
const KEEP_LEAST: Bytes = Bytes(4 << 20);
/// Makes this program take a JVM's account in a separate process.
pub(super) const WEIGH_APART_WORD: &str = "__weigh";
/// Memory for taking an account, so that the watch fits into the 64 MiB of the unit and the DaemonSet. An account with
/// 65,000 file mappings takes 190 to 270 MiB, and is refused.
const WEIGH_BYTES_MAX: u64 = 44 << 20;
/// Loadline gives up on an unresponsive JVM long before this.
const WEIGHED_WITHIN: Duration = Duration::from_secs(60);

pub(super) fn run(verb: Verb, Call { typed, clock }: Call) -> Result<Code> {
    let typed = typed.to_string();
    let folder = verb.history.clone().or_else(usual_folder).ok_or_else(|| {
        Error::request("there is no directory for histories: neither HOME nor XDG_STATE_HOME is set")
            .hint("set the directory with `--history DIR`")
    })?;
    if let Some(of) = &verb.post_mortem {
        return mortem(&verb, of, &folder, typed);
    }
    if verb.html.is_some() {
        return Err(
            Error::request("`--html` is only for post-mortems").hint("specify `--post-mortem PID` instead of the JVMs")
        );
    }
    if verb.json && !verb.once {
        return Err(Error::request("`--json` prints a single document, so it requires `--once`").hint("add `--once`"));
    }
    if verb.keep < KEEP_LEAST {
        let keep = verb.keep;
        return Err(Error::request(format!("`--keep {keep}` is too small for the history of one JVM"))
            .hint(format!("a history takes up to 2 MiB, and its accounts need more; specify at least {KEEP_LEAST}")));
    }
    let tls = verb.receivers.web_config.as_deref().map(web_config).transpose()?.flatten();
    for pid in &verb.pids {
        check_jvm(*pid, &clock)?;
    }
    let histories = if verb.once { Histories::Read } else { Histories::Written };
    let how = How { every_ms: every_ms(&verb)?, folder: folder.clone(), weighing: weighing(&verb), histories };
    let machine = machine_now(clock);
    let weigh = move |pid: u32, why: WhyWeighed, into: &Path| weigh_apart(pid, why, into, clock);
    let here = Here::new(which(&verb)?, clock, Box::new(weigh));
    let mut watching = Watching::new(if verb.once { here.patient() } else { here }, how);
    let about = About { typed, machine, clock, every_ms: every_ms(&verb)? };
    if verb.once {
        return once(&verb, &mut watching, &about);
    }
    create_folder(&folder).map_err(|cause| {
        Error::machine(format!("cannot create the directory for histories, {}: {cause}", folder.display()))
            .hint("set the directory with `--history DIR`")
    })?;
    go_on(&verb, &folder, &mut watching, &about, tls)
}

/// Runs turns until the end condition.
fn go_on(
    verb: &Verb,
    folder: &Path,
    watching: &mut Watching<Here>,
    about: &About,
    tls: Option<Arc<ServerTls>>,
) -> Result<Code> {
    let clock = about.clock;
    let ends = verb.duration.map(|span| clock.now() + span.0);
    // Clients get responses from the start, even if the first turn is slow.
    let mut metrics =
        Metrics::open(&verb.receivers, verb.owners, verb.quiet, tls, clock, Arc::new(about.document(watching)))?;
    let mut show = Show::open(verb.quiet)?;
    let mut supervisor = Supervisor::of_environment(clock);
    supervisor.ready();
    let _ender = Ender::begin(clock, &show.interrupt, ends);
    let (mut due, mut sweeps) = (clock.now(), Sweeps::default());
    'watching: while !show.is_over() && ends.is_none_or(|ends| clock.now() < ends) {
        let events = watching.turn();
        // All receivers share the turn's document.
        let document = LazyCell::new(|| Arc::new(about.document(watching)));
        show.screen.take(&events, || Arc::clone(&document));
        show.draw(watching);
        if let Some(why) = metrics.take(&events, || Arc::clone(&document)) {
            show.warn(&why);
        }
        if sweeps.is_due(watching.begun) {
            keep_within(folder, verb.keep, &watching.files());
        }
        // A watch that can no longer read anything should be restarted.
        let is_well = !watching.world.is_blind();
        if is_well {
            metrics.turned();
        }
        due = (due + verb.every.0).max(clock.now());
        // All JVMs selected by pid have ended.
        if !verb.pids.is_empty() && watching.is_empty() {
            break;
        }
        while !show.is_over() && clock.now() < due.min(ends.unwrap_or(Duration::MAX)) {
            clock.park(LOOK_EVERY.min(due.saturating_sub(clock.now())));
            if is_well {
                supervisor.alive();
            }
            if show.heed(watching) == Pressed::End {
                break 'watching;
            }
        }
    }
    show.end(|| about.document(watching));
    metrics.end().iter().for_each(|why| Progress::new(false).warn(why));
    Ok(Code::Yes)
}

/// The screen of a watch, its terminal, and the user's keys.
struct Show {
    screen: Screen,
    console: Option<Console>,
    keys: Keys,
    interrupt: Interrupt,
}

impl Show {
    fn open(quiet: bool) -> Result<Self> {
        let console = if quiet { None } else { Console::open()? };
        let (screen, interrupt) = match &console {
            Some(console) => (Screen::drawn(glyphs(), console.keys), Interrupt::patient()?),
            None => (Screen::lines(quiet), Interrupt::listen()?),
        };
        Ok(Self { screen, console, keys: Keys::default(), interrupt })
    }

    fn is_over(&self) -> bool {
        self.interrupt.seen()
    }

    fn draw<W: World>(&mut self, watching: &Watching<W>) {
        if self.console.as_ref().is_some_and(Console::draws) {
            let course = self.screen.in_full().and_then(|pid| watching.course(pid, STRETCHES));
            self.screen.draw(course, Console::size());
        }
    }

    /// Handles keys, and redraws after a resize or stop.
    fn heed<W: World>(&mut self, watching: &Watching<W>) -> Pressed {
        let Some(console) = &mut self.console else { return Pressed::Draw };
        let came = console.came();
        let pressed = self.keys.take(&came.bytes);
        if pressed.iter().any(|key| self.screen.press(*key) == Pressed::End) {
            return Pressed::End;
        }
        if came.spoilt || !pressed.is_empty() {
            self.draw(watching);
        }
        Pressed::Draw
    }

    /// Shows an important message; on a screen, among the events.
    fn warn(&mut self, text: &str) {
        match &self.console {
            Some(_) => self.screen.note(text),
            None => Progress::new(false).warn(text),
        }
    }

    /// Restores the terminal before printing the last state. Line output ends with the last verdicts.
    fn end(self, document: impl FnOnce() -> WatchDocument) {
        drop(self.console);
        self.screen.end(document);
    }
}

/// Prints the post-mortem of a history file, or of the last watched JVM with a pid.
fn mortem(verb: &Verb, of: &str, folder: &Path, typed: String) -> Result<Code> {
    let path = match of.parse::<u32>() {
        Ok(pid) => Past::last_of(folder, pid).ok_or_else(|| {
            Error::request(format!("there is no history of pid {pid} in {}", folder.display()))
                .hint("specify the directory with `--history DIR`; only watched JVMs have a history")
        })?,
        Err(_) => PathBuf::from(of),
    };
    let past = Past::read(&path).map_err(|cause| {
        Error::request(format!("{} cannot be read as a history: {cause}", path.display()))
            .hint("specify a file `NAME.START.PID.history`, or a process ID")
    })?;
    let mut told = post_mortem(&past);
    (told.schema, told.loadline) = (POST_MORTEM_SCHEMA.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    told.command = typed;
    add_accounts(&mut told, &path);
    let summary = summarize_post_mortem(&told);
    if let Some(file) = &verb.html {
        let page = report::post_mortem_page(&told);
        std::fs::write(file, page).map_err(|cause| Error::io("write", file, &cause))?;
    }
    let text = if verb.json { report::document(&told) } else { render(&summary) };
    print(&text)?;
    Ok(Code::Yes)
}

/// Parts of a document that are not about JVMs.
struct About {
    typed: String,
    machine: Machine,
    clock: Clock,
    every_ms: u64,
}

impl About {
    fn document<W: World>(&self, watching: &Watching<W>) -> WatchDocument {
        WatchDocument {
            schema: WATCH_SCHEMA.to_owned(),
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            taken: utc(self.clock.unix_s()),
            command: self.typed.clone(),
            machine: self.machine.clone(),
            every_ms: self.every_ms,
            jvms: watching.jvms().into_iter().cloned().collect(),
            hidden: watching.hidden,
            left_out: watching.left_out,
            set_aside: watching.world.set_aside(),
            turns: watching.turns,
            finds_failed: watching.finds_failed,
        }
    }
}

fn once(verb: &Verb, watching: &mut Watching<Here>, about: &About) -> Result<Code> {
    watching.turn();
    let mut document = about.document(watching);
    for jvm in &mut document.jvms {
        jvm.course = watching.course(jvm.pid, STRETCHES);
    }
    let text = if verb.json { report::document(&document) } else { render(&summarize_watch(&document)) };
    print(&text)?;
    let any = |is: fn(&GrowthRecord) -> bool| document.jvms.iter().any(|jvm| is(&jvm.growth));
    Ok(match (any(|growth| growth.verdict == GrowthWord::Grows), any(GrowthRecord::is_open)) {
        (true, _) => Code::No,
        (false, true) => Code::Machine,
        (false, false) => Code::Yes,
    })
}

/// The selected JVMs. Errors: `Request` if there is no such cgroup, because the watch would stay empty forever.
fn which(verb: &Verb) -> Result<Which> {
    Ok(match (&verb.cgroup, &verb.unit) {
        (Some(path), _) => Which::Cgroup(cgroup_path(path)?),
        (None, Some(unit)) if unit.contains('.') => Which::Unit(unit.clone()),
        (None, Some(unit)) => Which::Unit(format!("{unit}.service")),
        (None, None) if verb.all => Which::All,
        (None, None) => Which::Pids(verb.pids.clone()),
    })
}

fn every_ms(verb: &Verb) -> Result<u64> {
    match verb.every.0.as_millis() as u64 {
        ms @ 10..=600_000 => Ok(ms),
        _ => Err(Error::request(format!("cannot sample every {}", verb.every))
            .hint("specify an interval between `10ms` and `10m`; the default is `10s`")),
    }
}

fn weighing(verb: &Verb) -> WhenWeighed {
    let mut when = if verb.account.is_empty() { WhenWeighed::the_kill() } else { WhenWeighed::default() };
    for one in &verb.account {
        match one {
            Weighings::Never => when = WhenWeighed::default(),
            Weighings::OnGrowth => when.on_growth = true,
            Weighings::At(percent) => when.at_percent.push(*percent),
            Weighings::Every(span) => when.every_ms = Some(span.0.as_millis() as u64),
        }
    }
    when.asked = match verb.attach {
        Attach::Never => Attaching::Never,
        Attach::Once => Attaching::Once,
    };
    when
}

/// Takes an account in a separate process: an account of a large JVM takes more memory than the watch may use, and a
/// stuck process can be killed.
fn weigh_apart(pid: u32, why: WhyWeighed, into: &Path, clock: Clock) -> Result<(), String> {
    let Some(into) = into.to_str() else { return Err(format!("{} is not UTF-8 text", into.display())) };
    let how = if why == WhyWeighed::FirstSight { ASKED } else { HELD };
    let done = itself::run(&[WEIGH_APART_WORD, &pid.to_string(), how, into], clock, WEIGHED_WITHIN);
    done.map_err(|why| format!("{why}; `loadline account {pid}` has no limit on memory or time"))
}

const ASKED: &str = "asked";
const HELD: &str = "held";

/// The other side of [`weigh_apart`].
pub(super) fn weigh_here(words: &[OsString]) -> Code {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let (pid, how, into) = match words.as_slice() {
        [pid, how, into] => (pid.parse::<u32>().ok(), *how, Path::new(*into)),
        _ => (None, "", Path::new("")),
    };
    let Some(pid) = pid else { return Code::Request };
    let clock = Clock::start();
    let why = if how == ASKED { WhyWeighed::FirstSight } else { WhyWeighed::Time };
    let bound = itself::bound(WEIGH_BYTES_MAX).map_err(|cause| format!("its memory cannot be limited: {cause}"));
    match bound.and_then(|()| weigh(pid, why, into, &machine_now(clock), clock)) {
        Ok(()) => Code::Yes,
        Err(why) => {
            Progress::new(false).warn(&why);
            Code::Machine
        }
    }
}

/// Writes an account for `loadline account PID --against FILE`. For the first account of a JVM, attaches to it instead
/// of pausing it.
fn weigh(pid: u32, why: WhyWeighed, into: &Path, machine: &Machine, clock: Clock) -> Result<(), String> {
    let taken = utc(clock.unix_s());
    let asks = why == WhyWeighed::FirstSight;
    let how = AccountOptions { stop: !asks, netty: false, asking: Asking::typed(asks) };
    let weighed = how.weigh_then(pid, &clock, &Collecting::default(), &mut |_| ()).map_err(|error| error.what)?;
    let unheard = |record: &DoubtRecord| match &record.doubt {
        Doubt::AttachMissing { why } => Some(format!("did not respond, and will not be queried again: {why}")),
        _ => None,
    };
    if let Some(why) = weighed.doubts.iter().find_map(unheard).filter(|_| asks) {
        return Err(why);
    }
    let typed = format!("loadline account {pid}{} --json", if asks { " --attach --no-stop" } else { "" });
    let document = super::account::document(weighed, typed, taken, machine.clone());
    archive::write_account(into, &document).map_err(|error| error.to_string())
}

pub(super) fn usual_folder() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/loadline"));
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(state.or_else(home)?.join("loadline"))
}
