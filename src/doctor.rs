//! The measurements that this machine, or one JVM on it, allows, tried out: each ability with its answer, and how to
//! get what is missing.

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

/// Facts that belong together, each with its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    /// The subject of these facts.
    pub title: String,
    /// Label and text.
    pub facts: Vec<(String, String)>,
}

/// Looks at the machine and tries what a trial would need.
pub(crate) fn examine(clock: Clock) -> Vec<Section> {
    let mut jdks = jdk::discover(&Places::usual(), clock);
    // If two are of one release, the nearer at hand stays first.
    jdks.largest_first(|jdk| jdk.release);
    vec![
        Section { title: "machine".to_owned(), facts: machine_facts(&Machine::read()) },
        Section { title: "JDKs, newest first".to_owned(), facts: jdk_facts(&jdks) },
        Section { title: "what can be measured".to_owned(), facts: abilities(clock, jdks.first()) },
        Section { title: "what can be watched (`loadline watch`)".to_owned(), facts: watching::facts(clock) },
    ]
}

fn fact(label: &str, text: impl Into<String>) -> (String, String) {
    (label.to_owned(), text.into())
}

fn machine_facts(machine: &Machine) -> Vec<(String, String)> {
    let apart = match cpus::available() {
        available if available.len() < 2 => "one CPU: subject and load share it".to_owned(),
        available => format!("may use {}: subject and load are kept apart", cpus::list(&available)),
    };
    let memory = machine.memory.zip(machine.swap);
    let thp = machine.thp.as_deref().unwrap_or("unknown");
    vec![
        fact(
            "kernel",
            format!("Linux {} on {}, pages of {} bytes", machine.kernel, machine.architecture, machine.page.0),
        ),
        fact("memory", memory.map_or("-".to_owned(), |(memory, swap)| format!("{memory}, swap {swap}"))),
        fact("cpus", format!("{} online, {apart}", machine.cores_online)),
        fact("huge pages", thp),
        fact("cgroup", machine.memory_cgroup.map_or("no memory controller", CgroupVersion::name)),
    ]
}

fn jdk_facts(jdks: &[FoundJdk]) -> Vec<(String, String)> {
    if jdks.is_empty() {
        return vec![fact("none", "install a JDK 17 or newer, or set JAVA_HOME")];
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
        let text = format!("{} at {}: no larger one has an effect", outer.bytes, outer.folder.display());
        fact("outer limit", text)
    }));
    facts.extend(file_page_facts(newest));
    facts.push(fact("images", images(clock)));
    facts.extend(own.iter().flat_map(|own| access_facts(&Access::to(own, &clock))));
    facts
}

fn weigh_fact(own: &Process, clock: Clock) -> String {
    match smaps::read(own, &clock) {
        Ok(_) => "yes: RSS, PSS, heap and threads of JVMs of this user; of all users as root".to_owned(),
        Err(cause) => format!("no: {cause}"),
    }
}

/// Whether limits work here, or how to get one; and whether a JVM heeds it.
fn limit_facts(clock: Clock, newest: Option<&FoundJdk>) -> Vec<(String, String)> {
    let parent = match limit::probe(clock) {
        Ok(parent) => parent,
        Err(error) => {
            // The ways below say what to do; without any the error does.
            let ways = limit_ways::ways(MEMORY);
            let hint = error.hint.filter(|_| ways.is_empty()).map(|hint| format!("; {hint}")).unwrap_or_default();
            let why = error.context.first().map(|why| format!(" ({why})")).unwrap_or_default();
            let first = match ways.first() {
                Some(limit_ways::Way::SlurmStep) => format!("by Slurm: no cgroup can be made{why}"),
                _ => format!("no: {}{why}{hint}", error.what),
            };
            let no = fact("limit", first);
            return std::iter::once(no).chain(ways.into_iter().map(|way| fact("a way", way.text()))).collect();
        }
    };
    let mut facts =
        vec![fact("limit", format!("yes: cgroup {} below {}", parent.version.name(), parent.folder.display()))];
    facts.extend(newest.map(|jdk| fact("limit seen", limit_seen(jdk, clock))));
    facts
}

/// Whether a subject can be limited to a share of CPU time.
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
        Ok(LimitSeen::Seen) => format!("yes: JDK {release} sees the one it is given"),
        Ok(LimitSeen::Other(other)) => format!("no: JDK {release} sees another one, {other}; set `--heap`"),
        Ok(LimitSeen::Unseen) => format!("no: JDK {release} sees none; set `--heap`"),
        Ok(LimitSeen::NotSaid) => format!("unknown: JDK {release} does not say; set `--heap`"),
        Err(error) => format!("unknown: {}", error.what),
    }
}

/// Whether a subject can be made to pay for the file pages it reads.
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
            format!("those of JDK {} are held by {who}: a search runs on a copy of it", jdk.release),
        ));
    }
    facts
}

/// How far the kernel reads ahead in the JDK, and how to change that.
fn read_ahead_of(jdk: &FoundJdk) -> Option<String> {
    let file = jdk.home.join("lib/modules");
    let bytes = read_ahead::of(&file)?;
    let (kib, usual) = (bytes / 1024, read_ahead::USUAL_BYTES / 1024);
    if bytes <= 2 * read_ahead::USUAL_BYTES {
        return Some(format!("{kib} KiB on the disk of JDK {}", jdk.release));
    }
    let knob = read_ahead::knob(&file)?;
    Some(format!(
        "{kib} KiB on the disk of JDK {}, where {usual} are usual: load lines are larger here than elsewhere; for \
         those of a usual host: `echo {usual} > {}` as root, for all of that disk",
        jdk.release,
        knob.display()
    ))
}

/// Whether a subject may be a container image, and who runs it then.
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
        (false, true) => format!("yes: by {} (`--image`)", work.join(", else by ")),
        (false, false) => format!("yes: by {} (`--image`); {}", work.join(", else by "), fail.join("; ")),
    }
}

fn eviction(place: &Path, answer: &Eviction) -> String {
    let place = place.display();
    match answer {
        Eviction::Seen => format!("yes: dropped before a trial, so that it pays for its own (tried in {place})"),
        Eviction::NotSeen => format!("asked to be dropped before a trial, but not verified (tried in {place})"),
        Eviction::Impossible(why) => format!("no: they cannot be dropped in {place}: {why}; set TMPDIR to a disk"),
    }
}

/// Says whether a try succeeded, or why it did not.
fn tried(tried: &std::result::Result<(), Unavailable>) -> String {
    tried.as_ref().map_or_else(|cause| format!("no: {}", cause.why), |()| "yes".to_owned())
}

fn access_facts(access: &Access) -> Vec<(String, String)> {
    let attach = match rustix::process::geteuid().is_root() {
        true => "yes: to JVMs of every user",
        false => "yes: to JVMs of this user; as root to all",
    };
    let ptrace = match (access.cap_sys_ptrace, access.ptrace_scope) {
        (true, _) => "yes: to every process (CAP_SYS_PTRACE)".to_owned(),
        (false, None | Some(0)) => "yes: to processes of this user".to_owned(),
        (false, Some(1)) => {
            "own children only (yama ptrace_scope 1); `sysctl kernel.yama.ptrace_scope=0` or root for all".to_owned()
        }
        (false, Some(scope)) => format!("no (yama ptrace_scope {scope}); run as root"),
    };
    vec![
        fact("attach", attach),
        fact("ptrace", ptrace),
        fact("pagemap", tried(&access.pagemap)),
        fact("memory", tried(&access.memory)),
    ]
}
