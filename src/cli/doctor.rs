//! `loadline doctor`: what this machine lets Loadline measure, and how to get the rest.

use super::exit::Code;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::observe::Unavailable;
use crate::observe::machine::{Access, Machine, Version};
use crate::observe::procfs::Process;
use crate::observe::smaps;
use crate::report::{Block, Summary, print, render};
use crate::subject::jdk::{self, Places};
use crate::subject::{FoundJdk, cpus, limit};

pub(super) fn doctor(clock: Clock) -> Result<Code> {
    let blocks = vec![
        Block::Heading("machine".to_owned()),
        Block::Facts(machine_facts(&Machine::read())),
        Block::Heading("JDKs, newest first".to_owned()),
        Block::Facts(jdk_facts(&jdk::discover(&Places::usual(), clock))),
        Block::Heading("what can be measured".to_owned()),
        Block::Facts(abilities(clock)),
    ];
    print(&render(&Summary { blocks })).map_err(|cause| Error::io("write to", "standard output", &cause))?;
    Ok(Code::Yes)
}

fn fact(label: &str, text: impl Into<String>) -> (String, String) {
    (label.to_owned(), text.into())
}

fn machine_facts(machine: &Machine) -> Vec<(String, String)> {
    let apart = match cpus::available() {
        available if available.len() < 2 => "one CPU: subject and load share it".to_owned(),
        available => format!("may use {}: subject and load are kept apart", cpus::shown(&available)),
    };
    let thp = machine.thp.as_deref().unwrap_or("unknown");
    vec![
        fact(
            "kernel",
            format!("Linux {} on {}, pages of {} bytes", machine.kernel, machine.architecture, machine.page.0),
        ),
        fact("memory", format!("{}, swap {}", machine.memory, machine.swap)),
        fact("cpus", format!("{} online, {apart}", machine.cores_online)),
        fact("huge pages", thp),
        fact("cgroup", machine.memory_cgroup.map_or("no memory controller", Version::name)),
    ]
}

fn jdk_facts(jdks: &[FoundJdk]) -> Vec<(String, String)> {
    if jdks.is_empty() {
        return vec![fact("none", "install a JDK 17 or newer, or set JAVA_HOME")];
    }
    let mut newest: Vec<_> = jdks.iter().collect();
    newest.sort_by_key(|jdk| std::cmp::Reverse(jdk.release));
    let kind = |jdk: &FoundJdk| if jdk.has_javac { "" } else { " (no javac)" };
    newest.into_iter().map(|jdk| fact(&jdk.release.to_string(), format!("{jdk}{}", kind(jdk)))).collect()
}

fn abilities(clock: Clock) -> Vec<(String, String)> {
    let limit = match limit::probe(clock) {
        Ok(spot) => format!("yes: cgroup {} below {}", spot.version, spot.parent.display()),
        Err(error) => format!("no: {}{}", error.what, error.hint.map(|hint| format!("; {hint}")).unwrap_or_default()),
    };
    let own = match Process::open(std::process::id()) {
        Ok(own) => own,
        Err(cause) => return vec![fact("procfs", format!("no: {cause}")), fact("limit", limit)],
    };
    let weigh = match smaps::read(&own, &clock) {
        Ok(_) => "yes: RSS, PSS, heap and threads of JVMs of this user; of all users as root".to_owned(),
        Err(cause) => format!("no: {cause}"),
    };
    let mut facts = vec![fact("weigh", weigh), fact("limit", limit)];
    facts.extend(access_facts(&Access::to(&own, &clock)));
    facts
}

fn access_facts(access: &Access) -> Vec<(String, String)> {
    let tried = |tried: &std::result::Result<(), Unavailable>| match tried {
        Ok(()) => "yes".to_owned(),
        Err(cause) => format!("no: {}", cause.why),
    };
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
