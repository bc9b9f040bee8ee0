//! What `weigh`, `run` and `demo` share: the machine's conditions, the trials one after another, the archive as a sink
//! of their events, the summary at the end.

use super::args::Output;
use super::exit::Code;
use crate::archive::{TrialFiles, Writer};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Conditions, Trial};
use crate::report::{self, Progress};
use crate::scenario::{PhaseKind, Scenario, Work};
use crate::subject::{FoundJdk, Spawner};
use crate::trial::{self, Event, Setup};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user asked to stop. The second Ctrl-C ends Loadline at once; the guardian then ends the subject.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens to INT, TERM and HUP.
    pub(super) fn listen() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let code = Code::Interrupted as i32;
            signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
                .map_err(|cause| Error::machine(format!("cannot listen to signals: {cause}")))?;
        }
        Ok(Self(flag))
    }

    fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a session needs besides the scenario.
pub(super) struct Session {
    pub(super) clock: Clock,
    pub(super) interrupt: Interrupt,
    pub(super) output: Output,
    /// The command line as it repeats the run.
    pub(super) typed: String,
    pub(super) jdks: Vec<FoundJdk>,
}

impl Session {
    /// Runs every configuration `trials` times, block by block, and reports.
    ///
    /// # Errors
    /// What stopped the session; the summary of the finished trials is printed before it is returned.
    pub(super) fn run(&self, scenario: &Scenario) -> Result<Code> {
        let mut progress = Progress::new(self.output.quiet);
        let spawner = Spawner::new(self.clock)?;
        let cpus = super::super::trial::Placement::choose(scenario)?;
        let conditions = self.conditions(scenario)?;
        let mut store = Store::create(&self.folder(scenario), &conditions, scenario)?;
        self.build(scenario, &spawner, &mut progress)?;
        let mut trials = Vec::new();
        let stopped = self.trials(scenario, &spawner, &cpus, &mut store, &mut progress, &mut trials);
        let interrupted = matches!(&stopped, Err(error) if error.kind == ErrorKind::Interrupted);
        let kept = store.close(interrupted);
        self.print(&conditions, &trials)?;
        progress.step(&format!("archive: {}", store_note(&kept)));
        stopped?;
        kept.map(|_| Code::Yes)
    }
}
