//! The real world: processes under guardians, `/proc`, and reporting threads.

use super::engine_thread::Driving;
use super::usage::Spent;
use super::world::{Message, Reports, RunningDriver, World};
use crate::clock::Clock;
use crate::doubt::Doubt;
use crate::error::Result;
use crate::kernel::ports::Ports;
use crate::load::{Control, Plan};
use crate::observe::agent::SubjectAgent;
use crate::observe::attach::Attach;
use crate::observe::procfs;
use crate::subject::{DriverEnd, DriverLaunch, DriverRunning, Launch, RunningSubject, Spawner};
use crate::weigh::{Cost, DirectMemory, Gate, Inside, Processes, Sampler, Scales, Sources};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Starts processes on this machine.
pub(super) struct Here<'a>(pub(super) &'a Spawner);

impl World for Here<'_> {
    fn start(&self, launch: &Launch, log: Option<&Path>) -> Result<Box<dyn RunningSubject>> {
        Ok(Box::new(self.0.start(launch, log)?))
    }

    fn scales(
        &self,
        sources: &Sources,
        agent: Option<SubjectAgent>,
        doubts: &mut Vec<Doubt>,
    ) -> Result<Box<dyn Scales>> {
        Ok(Box::new(Processes::open(sources, agent, doubts)?))
    }

    fn reports(&self, sources: Sources, inside: Inside) -> Box<dyn Reports> {
        let (clock, (sender, receiver)) = (sources.clock, channel());
        let sampler = Some(Sampler::start(sources, inside, sender.clone(), Message::Sample));
        Box::new(Threads { clock, sender, receiver, sampler, direct: None, load: None })
    }

    fn start_driver(&self, launch: &DriverLaunch) -> Result<Box<dyn RunningDriver>> {
        Ok(Box::new(Driver { running: self.0.start_driver(launch)?, clock: self.0.clock }))
    }

    fn spent(&self) -> Spent {
        Spent::now(self.0.clock)
    }

    fn ports(&self) -> Option<Ports> {
        Ports::read()
    }
}

struct Threads {
    clock: Clock,
    sender: Sender<Message>,
    receiver: Receiver<Message>,
    /// `None` after it was stopped.
    sampler: Option<Sampler>,
    /// `None` before attaching to the JVM, and if it has nothing to report.
    direct: Option<DirectMemory>,
    load: Option<JoinHandle<()>>,
}

impl Threads {
    fn watch_load(&self, control: Option<Arc<Control>>) {
        self.sampler.iter().for_each(|sampler| sampler.watch(control.clone()));
    }
}

impl Reports for Threads {
    fn next(&mut self, within: Duration) -> Option<Message> {
        self.receiver.recv_timeout(within).ok()
    }

    fn begin_load(&mut self, plan: Plan, control: Arc<Control>) {
        self.watch_load(Some(Arc::clone(&control)));
        let driving = Driving { plan, clock: self.clock, control, threads: 1, cpus: None };
        let sender = self.sender.clone();
        // The conductor waits for this thread. If the conductor is gone, nobody needs the messages.
        self.load = Some(driving.start(move |told| drop(sender.send(Message::Load(told)))));
    }

    fn end_load(&mut self) {
        self.watch_load(None);
        if let Some(load) = self.load.take() {
            // The load's last message has reported the result.
            let _ = load.join();
        }
    }

    fn watch_direct(&mut self, attach: Arc<Attach>) {
        let sampler = self.sampler.as_ref();
        self.direct = sampler.map(|sampler| DirectMemory::start(attach, self.clock, sampler.direct()));
    }

    fn gate(&self) -> Gate {
        self.direct.as_ref().map(DirectMemory::gate).unwrap_or_default()
    }

    fn end(&mut self) -> Cost {
        self.direct = None;
        self.sampler.take().map(Sampler::stop).unwrap_or_default()
    }
}

struct Driver {
    running: DriverRunning,
    clock: Clock,
}

impl RunningDriver for Driver {
    fn has_ended(&self) -> bool {
        self.running.exit().is_some() || self.running.lost()
    }

    /// Its guardian adds up the CPU time of all descendants.
    fn cpu(&self) -> Option<Duration> {
        let guardian = procfs::Process::open(self.running.guardian_pid()).ok()?;
        guardian.stat(&self.clock).ok().map(|stat| stat.value.children)
    }

    fn end(self: Box<Self>) -> DriverEnd {
        self.running.end()
    }
}
