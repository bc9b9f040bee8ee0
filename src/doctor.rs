//! Tests what this machine or one JVM allows Loadline to measure: each ability with its result, and how to enable it.

mod jvm;
mod watching;

pub(crate) use jvm::{Listed, examine_jvm};

use crate::clock::Clock;
use crate::kernel::cgroup::{CgroupVersion, MEMORY};
use crate::kernel::read_ahead;
use crate::observe::Unavailable;
use crate::observe::machine::{Access, Machine};
use crate::observe::procfs::Process;
use crate::observe::smaps;
use crate::subject::jdk::{self, Places};
use crate::subject::{
    Eviction, FoundJdk, FoundTool, LimitSeen, Spawner, cpus, file_pages, limit, limit_ways, private_jdk, quota,
};
use loadline_base::order::Order as _;
use std::path::Path;

/// A titled group of facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub title: String,
    /// Label and text.
    pub facts: Vec<(String, String)>,
}

/// Examines the machine and tests what a trial would need.
pub(crate) fn examine(clock: Clock) -> Vec<Section> {
    let mut jdks = jdk::discover(&Places::usual(), clock);
    // Among JDKs of one release, the preferred one stays first.
    jdks.largest_first(|jdk| jdk.release);
    vec![
        Section { title: "machine".to_owned(), facts: machine_facts(&Machine::read()) },
        Section { title: "JDKs, newest first".to_owned(), facts: jdk_facts(&jdks) },
        Section { title: "what Loadline can measure".to_owned(), facts: abilities(clock, jdks.first()) },
        Section { title: "what `loadline watch` can see".to_owned(), facts: watching::facts(clock) },
    ]
}

fn fact(label: &str, text: impl Into<String>) -> (String, String) {
    (label.to_owned(), text.into())
}

fn machine_facts(machine: &Machine) -> Vec<(String, String)> {
    let apart = match cpus::available() {
        available if available.len() < 2 => "the server and the load generator share the only CPU".to_owned(),
        available => format!(
            "available: {}; the server and the load generator run on separate \
            CPUs",
            cpus::list(&available)
        ),
    };
    let memory = machine.memory.zip(machine.swap);
    let thp = machine.thp.as_deref().unwrap_or("unknown");
    vec![
        fact("kernel", format!("Linux {} on {}, {}-byte pages", machine.kernel, machine.architecture, machine.page.0)),
        fact("memory", memory.map_or("-".to_owned(), |(memory, swap)| format!("{memory}, swap {swap}"))),
        fact("cpus", format!("{} online, {apart}", machine.cores_online)),
        fact("huge pages", thp),
        fact("cgroup", machine.memory_cgroup.map_or("no memory controller available", CgroupVersion::name)),
    ]
}

fn jdk_facts(jdks: &[FoundJdk]) -> Vec<(String, String)> {
    if jdks.is_empty() {
        return vec![fact("none", "install JDK 17 or newer, or set JAVA_HOME")];
    }
    let kind = |jdk: &FoundJdk| if jdk.has_javac { "" } else { " (no javac)" };
    jdks.iter().map(|jdk| fact(&jdk.release.to_string(), format!("{jdk}{}", kind(jdk)))).collect()
}

fn abilities(clock: Clock, newest: Option<&FoundJdk>) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let own = Process::open(std::process::id());
    match &own {
        Ok(own) => facts.push(fact("weigh", weigh_fact(own, clock))),
        Err(cause) => facts.push(fact("procfs", format!("no: {cause}"))),
    }
    facts.extend(limit_facts(clock, newest));
    facts.push(fact("cpu limit", cpu_limit(clock)));
    facts.extend(limit::outer().map(|outer| {
        let text = format!("{} at {}; a higher limit has no effect", outer.bytes, outer.folder.display());
        fact("outer limit", text)
    }));
    facts.extend(file_page_facts(newest));
    facts.push(fact("images", images(clock)));
    facts.extend(own.iter().flat_map(|own| access_facts(&Access::to(own, &clock))));
    facts
}

fn weigh_fact(own: &Process, clock: Clock) -> String {
    match smaps::read(own, &clock) {
        Ok(_) => "yes: RSS, PSS, heap, and threads of this user's JVMs; root can measure all users' JVMs".to_owned(),
        Err(cause) => format!("no: {cause}"),
    }
}

/// Whether limits work here, or how to enable them, and whether a JVM respects them.
fn limit_facts(clock: Clock, newest: Option<&FoundJdk>) -> Vec<(String, String)> {
    let parent = match limit::probe(clock) {
        Ok(parent) => parent,
        Err(error) => {
            // Each way below names a remedy. If there are no ways, the error's hint is shown.
            let ways = limit_ways::ways(MEMORY);
            let hint = error.hint.filter(|_| ways.is_empty()).map(|hint| format!("; {hint}")).unwrap_or_default();
            let why = error.context.first().map(|why| format!(" ({why})")).unwrap_or_default();
            let first = match ways.first() {
                Some(limit_ways::Way::SlurmStep) => format!("by Slurm: cannot create a cgroup{why}"),
                _ => format!("no: {}{why}{hint}", error.what),
            };
            let no = fact("limit", first);
            return std::iter::once(no).chain(ways.into_iter().map(|way| fact("option", way.text()))).collect();
        }
    };
    let mut facts =
        vec![fact("limit", format!("yes: cgroup {} below {}", parent.version.name(), parent.folder.display()))];
    facts.extend(newest.map(|jdk| fact("limit seen", limit_seen(jdk, clock))));
    facts
}

/// Whether the subject's CPU time can be limited.
fn cpu_limit(clock: Clock) -> String {
    match quota::probe(clock) {
        Ok(parent) => format!("yes: cgroup {} below {}", parent.version.name(), parent.folder.display()),
        Err(error) => {
            let why = error.context.first().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("no: {}{why}{}", error.what, error.hint.map(|hint| format!("; {hint}")).unwrap_or_default())
        }
    }
}

fn limit_seen(jdk: &FoundJdk, clock: Clock) -> String {
    let release = jdk.release;
    match Spawner::new(clock).limit_seen(jdk) {
        Ok(LimitSeen::Seen) => format!("yes: JDK {release} detects the limit"),
        Ok(LimitSeen::Other(other)) => format!("no: JDK {release} detects a different limit, {other}; set `--heap`"),
        Ok(LimitSeen::Unseen) => format!("no: JDK {release} detects no limit; set `--heap`"),
        Ok(LimitSeen::NotSaid) => format!("unknown: JDK {release} does not report it; set `--heap`"),
        Err(error) => format!("unknown: {}", error.what),
    }
}

fn file_page_facts(newest: Option<&FoundJdk>) -> Vec<(String, String)> {
    let tried: Vec<_> =
        private_jdk::places(None).iter().map(|place| (place.clone(), file_pages::probe(place))).collect();
    let best = tried.iter().find(|(_, answer)| !matches!(answer, Eviction::Impossible(_))).or(tried.first());
    let mut facts: Vec<_> =
        best.map(|(place, answer)| fact("file pages", eviction(place, answer))).into_iter().collect();
    let Some(jdk) = newest else { return facts };
    facts.extend(read_ahead_of(jdk).map(|text| fact("read-ahead", text)));
    let holders = file_pages::held_by_others(&file_pages::of_jdk(&jdk.home), &[]);
    if let [first, rest @ ..] = &holders.processes[..] {
        let others = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        let who = format!("pid {} ({}){others}", first.pid, first.name);
        facts.push(fact(
            "JDK pages",
            format!("{who} keeps the files of JDK {} in memory, so a search runs a copy of that JDK", jdk.release),
        ));
    }
    facts
}

/// The kernel's read-ahead size for the JDK, and how to change it.
fn read_ahead_of(jdk: &FoundJdk) -> Option<String> {
    let file = jdk.home.join("lib/modules");
    let bytes = read_ahead::of(&file)?;
    let (kib, usual) = (bytes / 1024, read_ahead::USUAL_BYTES / 1024);
    if bytes <= 2 * read_ahead::USUAL_BYTES {
        return Some(format!("{kib} KiB on the disk with JDK {}", jdk.release));
    }
    let knob = read_ahead::knob(&file)?;
    Some(format!(
        "{kib} KiB on the disk with JDK {} (default: {usual}), so load lines are larger on this machine than \
         elsewhere; to use the default for the whole disk, run `echo {usual} > {}` as root",
        jdk.release,
        knob.display()
    ))
}

/// Whether the subject can be a container image, and which tool runs it.
fn images(clock: Clock) -> String {
    let (mut work, mut fail) = (Vec::new(), Vec::new());
    for found in FoundTool::installed(clock) {
        match found.probe() {
            Ok(name) => work.push(name),
            Err(why) => fail.push(format!("{} does not work: {why}", found.tool.word())),
        }
    }
    match (work.is_empty(), fail.is_empty()) {
        (true, true) => "no: neither podman nor docker is installed".to_owned(),
        (true, false) => format!("no: {}", fail.join("; ")),
        (false, true) => format!("yes: with {} (`--image`)", work.join(", otherwise ")),
        (false, false) => format!("yes: with {} (`--image`); {}", work.join(", otherwise "), fail.join("; ")),
    }
}

fn eviction(place: &Path, answer: &Eviction) -> String {
    let place = place.display();
    match answer {
        Eviction::Seen => format!(
            "yes: dropped before a trial, so the server is charged for the pages it reads \
            (tested in {place})"
        ),
        Eviction::NotSeen => format!(
            "probably: Loadline asks the kernel to drop them before a trial, but cannot \
            verify it (tested in {place})"
        ),
        Eviction::Impossible(why) => format!("no: cannot drop them in {place}: {why}; point TMPDIR to a disk"),
    }
}

/// Describes the result of a test.
fn tried(tried: &std::result::Result<(), Unavailable>) -> String {
    tried.as_ref().map_or_else(|cause| format!("no: {}", cause.why), |()| "yes".to_owned())
}

fn access_facts(access: &Access) -> Vec<(String, String)> {
    let attach = match rustix::process::geteuid().is_root() {
        true => "yes: to all users' JVMs",
        false => "yes: to this user's JVMs; root can attach to all",
    };
    let ptrace = match (access.cap_sys_ptrace, access.ptrace_scope) {
        (true, _) => "yes: every process (CAP_SYS_PTRACE)".to_owned(),
        (false, None | Some(0)) => "yes: this user's processes".to_owned(),
        (false, Some(1)) => {
            "only child processes (Yama ptrace_scope 1); for all, use `sysctl kernel.yama.ptrace_scope=0` or \
             root"
                .to_owned()
        }
        (false, Some(scope)) => format!("no (Yama ptrace_scope {scope}); run as root"),
    };
    vec![
        fact("attach", attach),
        fact("ptrace", ptrace),
        fact("pagemap", tried(&access.pagemap)),
        fact("memory", tried(&access.memory)),
    ]
}
