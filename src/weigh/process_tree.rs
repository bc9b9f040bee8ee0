//! The processes of a subject beside the one that serves, where all form it: found, weighed and counted with it.

use super::sum::Part;
use super::watched::Watched;
use super::weighing::{Moment, Weigh};
use crate::clock::Clock;
use crate::doubt::Doubt;
use crate::observe::hsperfdata::GcTotal;
use crate::record::Observer;
use crate::scenario::Kind;
use crate::subject::jvm::is_jvm;
use crate::subject::processes::Process;
use std::collections::BTreeMap;
use std::time::Duration;

/// More than any subject has; what lies beyond is told and not weighed.
const MEMBERS_MAX: usize = 200;

/// The processes beside the one that serves.
pub(crate) struct ProcessTree {
    /// The one that serves.
    main: u32,
    /// What it may be asked.
    kind: Kind,
    clock: Clock,
    members: Vec<Member>,
}

/// One of them.
struct Member {
    started_ticks: u64,
    name: String,
    watched: Watched,
    observer: Observer,
    /// Whether its last full collection was complete, so that what it holds is live.
    collected: bool,
    /// Whether a mark has it.
    weighed: bool,
}

impl ProcessTree {
    /// None are known yet. Where `kind` says that the subject is no JVM, none of them is asked anything.
    pub(crate) fn new(main: u32, kind: Kind, clock: Clock) -> Self {
        Self { main, kind, clock, members: Vec::new() }
    }

    /// Looks who is there now. Who was weighed before and has ended is told, with the moment at which that was seen.
    pub(crate) fn find(&mut self, living: &[Process], at: &str, doubts: &mut Vec<Doubt>) {
        let lives = |member: &Member| living.iter().any(|process| member.is(process)) && member.watched.lives();
        for member in self.members.iter().filter(|member| !lives(member)) {
            doubts.extend(member.ended(at));
        }
        self.members.retain(lives);
        for process in living.iter().filter(|process| process.pid != self.main) {
            let kind = match (self.kind, is_jvm(process.pid)) {
                (Kind::Jvm, Some(true)) => Kind::Jvm,
                _ => Kind::Native,
            };
            let full = self.members.len() >= MEMBERS_MAX;
            match self.members.iter_mut().find(|member| member.is(process)) {
                // A launcher has become the JVM, a shell the program it executes.
                Some(known) if known.watched.kind == Kind::Native && kind == Kind::Jvm => {
                    if let Ok(watched) = Watched::open(process.pid, false, kind, self.clock, doubts) {
                        known.watched = watched;
                    }
                    known.name.clone_from(&process.name);
                }
                Some(known) => known.name.clone_from(&process.name),
                None if full => {}
                // One that has just ended was never part of what is weighed.
                None => self.members.extend(Member::open(process, kind, self.clock, doubts)),
            }
        }
    }

    /// Weighs each. Who ends meanwhile is in no sum.
    pub(crate) fn weigh(&mut self, weigh: Weigh, mark: &str, doubts: &mut Vec<Doubt>) -> Vec<Part> {
        let mut parts = Vec::new();
        for member in &mut self.members {
            let moment = if member.collected { weigh.moment } else { Moment::Running };
            let mut found = Vec::new();
            let weigh = Weigh { moment, ..weigh };
            let taken = weigh.take(&mut member.watched, mark, &mut member.observer, &mut found);
            if !member.watched.lives() || taken.mark.rss_bytes == 0 {
                doubts.extend(member.ended(mark));
                continue;
            }
            member.weighed = true;
            // One doubt says it for all processes.
            found.retain(|doubt| doubts.iter().all(|known| !same_kind(known, doubt)));
            doubts.append(&mut found);
            let is_jvm = member.watched.kind == Kind::Jvm;
            parts.push(Part { pid: member.watched.process.pid(), name: member.name.clone(), is_jvm, taken });
        }
        parts
    }

    /// Sends a diagnostic command to every JVM among them.
    pub(crate) fn tell(&mut self, command: &str, doubts: &mut Vec<Doubt>, failed: &mut Vec<String>) {
        for member in self.members.iter_mut().filter(|member| member.watched.kind == Kind::Jvm) {
            member.watched.attach(&mut member.observer, doubts);
            if member.watched.collects_not.is_none() && !member.collected {
                // Its own flags may forbid what those of the other allow; other doubts about them are no news.
                member.watched.identify(&[], &[], &mut Vec::new());
            }
            let pid = member.watched.process.pid();
            let why = match (member.watched.collects_not, member.watched.ask(command)) {
                (Some(why), _) => why.to_owned(),
                (None, Some(Err(why))) => why,
                (None, None) => "it cannot be asked".to_owned(),
                (None, Some(Ok(_))) => {
                    member.collected = true;
                    continue;
                }
            };
            member.collected = false;
            failed.push(format!("no `{command}` in the JVM with pid {pid}: {why}"));
        }
    }

    /// What they have used up so far.
    pub(crate) fn used(&mut self) -> Used {
        let clock = self.clock;
        let of = |member: &mut Member| {
            let counters = member.watched.counters.as_mut();
            let sample = counters.and_then(|counters| counters.sample(&clock).ok()).map(|reading| reading.value);
            let cpu = member.watched.process.cpu_time(&clock).unwrap_or_default();
            ((member.watched.process.pid(), member.started_ticks), (cpu, sample.and_then(|sample| sample.gc)))
        };
        Used(self.members.iter_mut().map(of).collect())
    }

    /// What asking them has added to them.
    pub(crate) fn observer_bytes(&self) -> Option<i64> {
        let added: Vec<i64> = self.members.iter().filter_map(|member| member.observer.attach_rss_bytes).collect();
        (!added.is_empty()).then(|| added.iter().sum())
    }
}

impl Member {
    fn open(process: &Process, kind: Kind, clock: Clock, doubts: &mut Vec<Doubt>) -> Option<Self> {
        let mut found = Vec::new();
        let watched = Watched::open(process.pid, false, kind, clock, &mut found).ok()?;
        found.retain(|doubt| doubts.iter().all(|known| !same_kind(known, doubt)));
        doubts.append(&mut found);
        Some(Self {
            started_ticks: process.started_ticks,
            name: process.name.clone(),
            watched,
            observer: Observer::default(),
            collected: false,
            weighed: false,
        })
    }

    fn is(&self, process: &Process) -> bool {
        self.watched.process.pid() == process.pid && self.started_ticks == process.started_ticks
    }

    /// That it ended, where an earlier mark has it: the next one weighs less.
    fn ended(&self, at: &str) -> Option<Doubt> {
        let (pid, name, at) = (self.watched.process.pid(), self.name.clone(), at.to_owned());
        self.weighed.then_some(Doubt::ProcessEnded { pid, name, at })
    }
}

pub(crate) fn same_kind(one: &Doubt, other: &Doubt) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// CPU time and collections of each of the others.
#[derive(Debug, Default)]
pub(crate) struct Used(BTreeMap<(u32, u64), (Duration, Option<GcTotal>)>);

impl Used {
    /// CPU time, and collections where any of them is a JVM, since an earlier moment. Who came later counts from its
    /// start; what one used that has ended since is not known.
    pub(crate) fn since(&self, before: &Self) -> (Duration, Option<GcTotal>) {
        let mut cpu = Duration::ZERO;
        let mut gc: Option<GcTotal> = None;
        for (process, (now_cpu, now_gc)) in &self.0 {
            let (then_cpu, then_gc) = before.0.get(process).copied().unwrap_or_default();
            cpu += now_cpu.saturating_sub(then_cpu);
            if let Some(now) = now_gc {
                let then = then_gc.unwrap_or_default();
                let total = gc.get_or_insert_default();
                total.count += now.count.saturating_sub(then.count);
                total.ns += now.ns.saturating_sub(then.ns);
            }
        }
        (cpu, gc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_counts_from_its_start_and_who_went_not_at_all() {
        let used = |cpu_ms, gc: Option<u64>| {
            (Duration::from_millis(cpu_ms), gc.map(|count| GcTotal { count, ns: 1000 * count }))
        };
        let before = Used([((1, 1), used(100, Some(5))), ((2, 1), used(900, None))].into());
        // The pid 2 is another process now.
        let after = Used([((1, 1), used(150, Some(7))), ((2, 9), used(30, None))].into());
        let (cpu, gc) = after.since(&before);
        assert_eq!(cpu, Duration::from_millis(80));
        assert_eq!(gc.map(|gc| (gc.count, gc.ns)), Some((2, 2000)));
        let (cpu, gc) = Used::default().since(&before);
        assert_eq!((cpu, gc.is_none()), (Duration::ZERO, true));
    }
}
