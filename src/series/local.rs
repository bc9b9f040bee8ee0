//! Runs trials on this machine.

use super::paging::Paging;
use super::{Executor, Made};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::kernel::cgroup::CgroupVersion;
use crate::observe::machine;
use crate::record::{Machine, Trial};
use crate::scenario::{Change, Configuration, Pages, Scenario, TrialPlan};
use crate::subject::{jdk, limit};
use crate::trial::{self, Sink, Tools};
use std::path::PathBuf;

/// The share of free memory available to a trial without a limit.
const ROOM_SHARE: f64 = 0.75;
/// Allowed file pages charged to other cgroups, beyond those that all programs share (libc, locales). With more than
/// this, the trial did not pay for its JDK.
const FOREIGN_MAX: u64 = 8 << 20;

/// Runs trials here, one at a time.
pub struct Local<'a> {
    tools: Tools<'a>,
    /// Prepares the page cache if plans specify who pays for file pages.
    paging: Option<Paging>,
    /// The directory for a private copy of a JDK.
    archive: PathBuf,
    /// Whether the next trial uses a private JDK because other cgroups hold pages of the usual one.
    goes_private: bool,
}

impl<'a> Local<'a> {
    /// Leaves the page cache unchanged.
    pub fn new(tools: Tools<'a>) -> Self {
        Self { tools, paging: None, archive: PathBuf::new(), goes_private: false }
    }

    /// Prepares the page cache before each trial of this configuration, after the existing trials. Errors: `Request` or
    /// `Machine` if its JDK is not found.
    pub fn paging(
        tools: Tools<'a>,
        scenario: &Scenario,
        configuration: &Configuration,
        before: &[Trial],
        archive: PathBuf,
    ) -> Result<Self> {
        let mut paging = Paging::of(scenario, configuration, tools.jdks, tools.clock)?;
        before.iter().for_each(|trial| paging.learn(trial));
        let goes_private = paging.jdk_is_held();
        Ok(Self { tools, paging: Some(paging), archive, goes_private })
    }

    fn try_conduct(&mut self, plan: &TrialPlan, sink: &mut dyn Sink) -> Result<Made> {
        let began_ns = self.tools.clock.now_ns();
        let Some(pages) = plan.pages else { return Ok(self.made(plan, began_ns, sink)) };
        let tools = self.tools;
        let paging = self.paging.as_mut().ok_or_else(|| Error::bug("a plan with file pages but no pager"))?;
        if std::mem::take(&mut self.goes_private) {
            paging.go_private(&self.archive, &|| tools.interrupted(), sink)?;
        }
        paging.prepare(pages, sink);
        let jdk = paging.private_jdk();
        let mut plan = plan.clone();
        if jdk.is_some() && jdk::java_by_path(&plan.subject).is_some() {
            // The given path leads to the JDK whose pages other cgroups hold.
            plan.subject.command[0] = "{jdk}".to_owned();
        }
        jdk.map(Change::Jdk).into_iter().for_each(|change| change.apply(&mut plan.configuration));
        let mut made = self.made(&plan, began_ns, sink);
        let Some(paging) = &mut self.paging else { return Ok(made) };
        paging.learn(&made.trial);
        if plan.list_files {
            made.classes = paging.classes(&made.trial);
            made.read_ahead_bytes = paging.read_ahead_bytes(&made.trial);
        }
        let foreign = made.trial.cgroup.and_then(|cgroup| cgroup.foreign_file_bytes).unwrap_or(0);
        self.goes_private = foreign > FOREIGN_MAX && pages == Pages::Cold && paging.can_go_private();
        made.shared_bytes = Some(foreign).filter(|_| self.goes_private);
        Ok(made)
    }

    fn made(&self, plan: &TrialPlan, began_ns: u64, sink: &mut dyn Sink) -> Made {
        let conducted = trial::conduct(plan, &self.tools, sink);
        let seconds = self.tools.clock.now_ns().saturating_sub(began_ns) as f64 / 1e9;
        Made { error: conducted.error, seconds, ..Made::new(conducted.trial) }
    }
}

impl Executor for Local<'_> {
    fn conduct(&mut self, plan: &TrialPlan, sink: &mut dyn Sink) -> Made {
        self.try_conduct(plan, sink).unwrap_or_else(|error| {
            let mut trial = Trial::new(&plan.configuration.name, plan.block, plan.index);
            trial.why = Some(error.what.clone());
            Made { error: Some(error), ..Made::new(trial) }
        })
    }

    fn interrupted(&self) -> bool {
        self.tools.interrupted()
    }
}

/// The ample limit in bytes: as specified, or most of the free memory.
pub fn room(scenario: &Scenario, configuration: &Configuration, clock: Clock) -> Result<u64> {
    let asked = scenario.find.limit_max.or(configuration.limit);
    if let Some(asked) = asked {
        return Ok(asked.0);
    }
    let activity = machine::Activity::read(&clock).map_err(|cause| Error::machine(cause.to_string()))?;
    let free = (activity.value.memory.available.0 as f64 * ROOM_SHARE) as u64;
    Ok(free.min(limit::outer().map_or(u64::MAX, |outer| outer.bytes.0)))
}

/// The machine's current state.
pub fn machine_now(clock: Clock) -> Machine {
    let fixed = machine::Machine::read();
    let activity = machine::Activity::read(&clock).ok().map(|reading| reading.value);
    Machine {
        cores: fixed.cores_online as u32,
        cpu_model: crate::kernel::machine::cpu_model(),
        memory_bytes: fixed.memory.unwrap_or_default().0,
        kernel: fixed.kernel,
        cgroup: fixed.memory_cgroup.map_or("none", CgroupVersion::name).to_owned(),
        load_average_1m: activity.as_ref().map(|activity| activity.load[0]),
        transparent_huge_pages: fixed.thp,
        swap_used_bytes: activity.map(|activity| activity.memory.swap_used.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;
    use std::path::Path;

    #[test]
    fn the_maximum_limit_is_given_or_most_of_the_free_memory() {
        let of = |configuration: &str, find: &str| {
            let text = format!(
                "name: x\nsubject: {{command: [java]}}\nconfigurations: {{a: {{{configuration}}}}}\nfind: {{{find}}}\n\
                 load: [steady: {{constant: {{rate: 200, duration: 10s}}, get: /}}]\n"
            );
            let scenario = parse(&text, Path::new("/x"), &[17]).unwrap();
            room(&scenario, &scenario.configurations[0], Clock::start()).unwrap()
        };
        assert_eq!(of("limit: 64m", "limit_max: 96m"), 96 << 20);
        assert_eq!(of("limit: 64m", ""), 64 << 20);
        let free = of("", "");
        assert!(free > 16 << 20 && free < machine::Machine::read().memory.unwrap().0, "{free}");
    }
}
