//! The traits between a trial and the world: the machine, the reports on a subject, a driver.
//! `here` has the world as it is; tests make one up, in which time passes without waiting.

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

/// The world in which a trial is carried out.
#[derive(Clone, Copy)]
pub(super) struct Stage<'a> {
    pub(super) world: &'a dyn World,
    pub(super) clock: Clock,
    /// Set when the user wants to stop.
    pub(super) interrupt: &'a AtomicBool,
    /// The machine as it was before the first trial.
    pub(super) machine: &'a Machine,
    /// The CPUs Loadline was given.
    pub(super) cpus: &'a [u32],
}

impl Stage<'_> {
    /// Whether the user wants to stop.
    pub(super) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// Starts what a trial needs, and says what the machine spends.
pub(super) trait World {
    /// Starts the subject.
    ///
    /// # Errors
    /// If its limit cannot be set, or its command cannot be executed.
    fn start(&self, launch: &Launch, log: Option<&Path>) -> Result<Box<dyn RunningSubject>>;

    /// Opens what weighs it. `agent` is the one that its JVM was started with, if it was.
    ///
    /// # Errors
    /// `Subject` where the process has gone.
    fn scales(
        &self,
        sources: &Sources,
        agent: Option<SubjectAgent>,
        doubts: &mut Vec<Doubt>,
    ) -> Result<Box<dyn Scales>>;

    /// Begins its timeline.
    fn reports(&self, sources: Sources, inside: Inside) -> Box<dyn Reports>;

    /// Starts a program that drives the load.
    ///
    /// # Errors
    /// If it cannot be started at all.
    fn start_driver(&self, launch: &DriverLaunch) -> Result<Box<dyn RunningDriver>>;

    /// The CPU time of all programs so far.
    fn spent(&self) -> Spent;

    /// The local ports now.
    fn ports(&self) -> Option<Ports>;
}

/// A report that arrives while a trial is under way.
pub(super) enum Message {
    /// From the timeline.
    Sample(Sample),
    /// From the load.
    Load(LoadProgress),
}

/// The reports to the conductor of a trial: the timeline and, in a phase of work, the load. The conductor waits for
/// their messages only, so it is here that the time of a trial passes.
pub(super) trait Reports {
    /// The next message; `None` where none came within this time.
    fn next(&mut self, within: Duration) -> Option<Message>;

    /// Begins a load, whose counts go into the samples. Its last message is [`LoadProgress::Done`].
    fn begin_load(&mut self, plan: Plan, control: Arc<Control>);

    /// Ends it, after its last message.
    fn end_load(&mut self);

    /// Puts direct memory on the timeline, asking by this way from now on.
    fn watch_direct(&mut self, attach: Arc<Attach>);

    /// The gate that keeps these questions off, for a mark.
    fn gate(&self) -> Gate;

    /// Ends the timeline and says what it cost. Messages that were sent before may still be taken.
    fn end(&mut self) -> Cost;
}

/// A driver that was started.
pub(super) trait RunningDriver {
    /// Whether it has ended, by itself or with its guardian.
    fn has_ended(&self) -> bool;

    /// CPU time of all that it has started and that has ended; `None` where it is not known.
    fn cpu(&self) -> Option<Duration>;

    /// Kills what is left of it.
    fn end(self: Box<Self>) -> DriverEnd;
}
