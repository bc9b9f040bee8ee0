//! The data that Loadline can read from a running JVM without attaching to it, including the JVM's flags.

use super::{Section, fact, tried};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::kernel::mapping::Mapping;
use crate::observe::Unavailable;
use crate::observe::attach::{Attach, Attachable};
use crate::observe::hotspot::flags::{FlagOrigin, Flags};
use crate::observe::hotspot::threads::Threads;
use crate::observe::hotspot::{self, HotSpot};
use crate::observe::hsperfdata::{HsPerf, JvmIdentity};
use crate::observe::machine::Access;
use crate::observe::maps::{self, Allocator};
use crate::observe::procfs::Process;
use crate::observe::untouched::Untouched;
use crate::weigh;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    /// All flags.
    All,
    /// Flags that were set, including by the JVM itself.
    Changed,
}

/// A source, or the reason why it is unreadable.
type SourceResult<T> = std::result::Result<T, Unavailable>;

/// Examines JVM `pid` from outside it. Errors: as [`weigh::check_jvm`]; `Subject` if the JVM ends.
pub(crate) fn examine_jvm(pid: u32, listed: Listed, clock: Clock) -> Result<Vec<Section>> {
    weigh::check_jvm(pid, &clock)?;
    let gone = |why: Unavailable| Error::subject(format!("the JVM with pid {pid} has exited: {why}"));
    let process = Process::open(pid).map_err(gone)?;
    let maps = maps::read(&process, &clock).map_err(gone)?.value;
    let hotspot = HotSpot::find(&process, &maps);
    let memory = Untouched::open(&process, &maps);
    let inside = hotspot.as_ref().map_err(Clone::clone).and_then(|of| Ok((of, memory.as_ref().map_err(Clone::clone)?)));
    let flags = inside.clone().and_then(|(of, memory)| Flags::read(memory, &of.tables));
    let counters = HsPerf::open(&process, &clock).and_then(|mut own| Ok(own.counters(&clock)?.value.identity()));
    let mut own = counters.clone().unwrap_or_default();
    own.vm_version =
        own.vm_version.or_else(|| inside.ok().and_then(|(of, memory)| hotspot::version(memory, &of.tables)));
    let mut sources = own_sources(&hotspot, &counters, &flags);
    let access = Access::to(&process, &clock);
    sources.extend([fact("pagemap", tried(&access.pagemap)), fact("memory", tried(&access.memory))]);
    sources.push(fact("attach", attach(&process, &clock)));
    let facts = facts(&process, &maps, &own, flags.as_ref().ok());
    let mut sections = vec![
        Section { title: format!("pid {pid}"), facts },
        Section { title: "what Loadline can read".to_owned(), facts: sources },
    ];
    sections.extend(flags.iter().map(|flags| of_flags(flags, listed)));
    Ok(sections)
}

fn facts(process: &Process, maps: &[Mapping], own: &JvmIdentity, flags: Option<&Flags>) -> Vec<(String, String)> {
    let openj9 = maps::is_openj9(maps).then(|| "OpenJ9 (not HotSpot)".to_owned());
    let collector = flags.and_then(|flags| flags.changed().collector());
    let parts = [
        openj9.or_else(|| own.vm_name.clone()),
        own.vm_version.clone(),
        own.vendor.clone(),
        collector.map(|name| format!("{name} GC")),
    ];
    let jvm = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let mut facts = vec![fact("jvm", if jvm.is_empty() { "not reported".to_owned() } else { jvm })];
    facts.extend(process.exe().ok().map(|exe| fact("program", exe.display().to_string())));
    facts.extend(maps::libjvm(maps).map(|path| fact("library", path)));
    facts.push(fact("malloc", Allocator::of(maps).name()));
    facts.extend(own.vm_args.as_ref().map(|arguments| fact("options", arguments)));
    facts.extend(own.command.as_ref().map(|command| fact("main", command)));
    facts
}

fn own_sources(
    hotspot: &SourceResult<HotSpot>,
    counters: &SourceResult<JvmIdentity>,
    flags: &SourceResult<Flags>,
) -> Vec<(String, String)> {
    let no = |why: &Unavailable| format!("no: {}", why.why);
    let (tables, allocated) = match hotspot {
        Ok(hotspot) => (tables(hotspot).to_owned(), allocated(hotspot)),
        Err(why) => (format!("{}; an account queries the JVM instead", no(why)), no(why)),
    };
    let flags = flags.as_ref().map_or_else(no, |flags| format!("yes: {}", flags.list.len()));
    let counters = counters.as_ref().map_or_else(no, |_| "yes: hsperfdata".to_owned());
    vec![fact("tables", tables), fact("allocated", allocated), fact("flags", flags), fact("counters", counters)]
}

/// Whether an account needs to attach.
fn tables(hotspot: &HotSpot) -> &'static str {
    if hotspot.metaspace_at.contains(&None) {
        return "partly: `libjvm.so` does not show where metaspace is (it is stripped or too old), so an account \
            queries the JVM";
    }
    "yes: an account reads these and does not attach"
}

/// Whether allocation per request is available.
fn allocated(hotspot: &HotSpot) -> String {
    match (Threads::of(&hotspot.tables, hotspot.exited_allocated_at), hotspot.exited_allocated_at) {
        (Err(why), _) => format!("no: {}", why.why),
        (Ok(_), Some(_)) => "yes: for all threads".to_owned(),
        (Ok(_), None) => "only for live threads: `libjvm.so` does not show the total for exited threads (it is \
            stripped, or older than 11.0.23 or 17.0.11)"
            .to_owned(),
    }
}

/// Whether attaching would work.
fn attach(process: &Process, clock: &Clock) -> String {
    match Attach::possible(process, clock) {
        Ok(Attachable::Listens) => "yes: the JVM is already listening".to_owned(),
        Ok(Attachable::WouldListen) => "yes: for `--attach`, `--classes`, `--heap-dump`, `--netty`, and NMT".to_owned(),
        Err(why) => format!("no: {}", why.why),
    }
}

/// The flags by origin, in command-line form.
fn of_flags(flags: &Flags, listed: Listed) -> Section {
    let changed = flags.list.iter().filter(|flag| flag.origin.is_some()).count();
    let title = match listed {
        Listed::All => format!("flags by origin: all {}", flags.list.len()),
        Listed::Changed => {
            format!("flags that differ from their defaults, by origin: {changed} of {}", flags.list.len())
        }
    };
    let of = |origin: Option<FlagOrigin>| {
        let set = flags.list.iter().filter(|flag| flag.origin == origin);
        let mut set: Vec<(&str, String)> = set.map(|flag| (flag.name.as_str(), flag.spelled())).collect();
        set.sort();
        let lines = set.into_iter().enumerate();
        lines.map(|(n, (_, text))| fact(if n == 0 { word(origin) } else { "" }, text)).collect::<Vec<_>>()
    };
    let defaults = (listed == Listed::All).then_some(None);
    let shown = FlagOrigin::ALL.into_iter().map(Some).chain(defaults);
    Section { title, facts: shown.flat_map(of).collect() }
}

fn word(origin: Option<FlagOrigin>) -> &'static str {
    match origin {
        Some(FlagOrigin::CommandLine) => "command",
        Some(FlagOrigin::Environment) => "variable",
        Some(FlagOrigin::File) => "file",
        Some(FlagOrigin::Other) => "run time",
        Some(FlagOrigin::Ergonomic) => "JVM",
        None => "default",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::hotspot::flags::Flag;

    #[test]
    fn flags_are_grouped_by_origin() {
        let flag = |name: &str, value: &str, origin| Flag { name: name.to_owned(), value: value.to_owned(), origin };
        let flags = Flags {
            list: vec![
                flag("UseSerialGC", "true", Some(FlagOrigin::CommandLine)),
                flag("MaxHeapSize", "8388608", Some(FlagOrigin::CommandLine)),
                flag("AlwaysPreTouch", "false", None),
                flag("UsePerfData", "false", Some(FlagOrigin::Environment)),
                flag("CICompilerCount", "2", Some(FlagOrigin::Ergonomic)),
            ],
        };
        let Section { title, facts } = of_flags(&flags, Listed::Changed);
        assert_eq!(title, "flags that differ from their defaults, by origin: 4 of 5");
        let told: Vec<_> = facts.iter().map(|(label, text)| (label.as_str(), text.as_str())).collect();
        assert_eq!(
            told,
            [
                ("command", "-XX:MaxHeapSize=8388608"),
                ("", "-XX:+UseSerialGC"),
                ("variable", "-XX:-UsePerfData"),
                ("JVM", "-XX:CICompilerCount=2"),
            ]
        );
        let all = of_flags(&flags, Listed::All);
        assert_eq!(all.title, "flags by origin: all 5");
        assert_eq!(all.facts.last(), Some(&fact("default", "-XX:-AlwaysPreTouch")));
        assert!(of_flags(&Flags::default(), Listed::Changed).facts.is_empty());
    }
}
