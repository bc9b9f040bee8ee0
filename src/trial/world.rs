//! The traits between a trial and the world: the machine, reports on a subject, and drivers. `here` is the real world;
//! tests simulate one in which time passes without waiting.

use super::engine_thread::LoadProgress;
use super::usage::Spent;
use crate::clock::Clock;
use crate::doubt::Doubt;
use crate::error::Result;
use crate::kernel::ports::Ports;
use crate::load::{Control, Plan};
use crate::observe::agent::SubjectAgent;
use crate::observe::attach::Attach;
use crate::record::{Machine, Sample};
use crate::subject::{DriverEnd, DriverLaunch, Launch, RunningSubject};
use crate::weigh::{Cost, Gate, Inside, Scales, Sources};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(Clone, Copy)]
pub(super) struct Stage<'a> {
    pub(super) world: &'a dyn World,
    pub(super) clock: Clock,
    /// Set when the user wants to stop.
    pub(super) interrupt: &'a AtomicBool,
    /// The machine before the first trial.
    pub(super) machine: &'a Machine,
    pub(super) cpus: &'a [u32],
}

impl Stage<'_> {
    pub(super) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// Starts a trial's processes, and reports the machine's CPU time.
pub(super) trait World {
    /// Starts the subject. Fails if its limit cannot be set or its command cannot be executed.
    fn start(&self, launch: &Launch, log: Option<&Path>) -> Result<Box<dyn RunningSubject>>;

    /// Opens the subject's scales. `agent` is the JVM's agent, if any.
    fn scales(
        &self,
        sources: &Sources,
        agent: Option<SubjectAgent>,
        doubts: &mut Vec<Doubt>,
    ) -> Result<Box<dyn Scales>>;

    /// Begins its timeline.
    fn reports(&self, sources: Sources, inside: Inside) -> Box<dyn Reports>;

    fn start_driver(&self, launch: &DriverLaunch) -> Result<Box<dyn RunningDriver>>;

    /// The CPU time of all programs so far.
    fn spent(&self) -> Spent;

    fn ports(&self) -> Option<Ports>;
}

/// A report during a trial.
pub(super) enum Message {
    /// From the timeline.
    Sample(Sample),
    Load(LoadProgress),
}

/// Reports to a trial's conductor: the timeline and, in a work phase, the load. The conductor waits only here, so this
/// is where a trial's time passes.
pub(super) trait Reports {
    /// The next message; `None` if none arrives in time.
    fn next(&mut self, within: Duration) -> Option<Message>;

    /// Begins a load, whose counts are added to the samples. Its last message is [`LoadProgress::Done`].
    fn begin_load(&mut self, plan: Plan, control: Arc<Control>);

    /// Ends the load, after its last message.
    fn end_load(&mut self);

    /// Adds direct memory to the timeline, queried through `attach`.
    fn watch_direct(&mut self, attach: Arc<Attach>);

    /// The gate that blocks these queries during a mark.
    fn gate(&self) -> Gate;

    /// Ends the timeline and returns its cost. Earlier messages remain available.
    fn end(&mut self) -> Cost;
}

pub(super) trait RunningDriver {
    /// Whether it has ended, alone or with its guardian.
    fn has_ended(&self) -> bool;

    /// CPU time of all ended descendants; `None` if unknown.
    fn cpu(&self) -> Option<Duration>;

    /// Kills the remaining processes.
    fn end(self: Box<Self>) -> DriverEnd;
}
