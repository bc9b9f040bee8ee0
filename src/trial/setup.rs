//! What a trial is given: what to run and with what, how closely to look, when to end it early.

use super::guard::Guard;
use crate::clock::Clock;
use crate::record::{Machine, Trial};
use crate::scenario::{Configuration, Scenario};
use crate::subject::{FoundJdk, Spawner};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a trial is given.
#[derive(Debug)]
pub struct Setup<'a> {
    /// What to run.
    pub scenario: &'a Scenario,
    /// Which way to run it.
    pub configuration: &'a Configuration,
    /// Which repetition of all configurations, from 0.
    pub block: u32,
    /// The disturbed block that this one repeats.
    pub repeats: Option<u32>,
    /// Position in the run, from 0.
    pub index: u32,
    /// Time.
    pub clock: Clock,
    /// Starts processes.
    pub spawner: &'a Spawner,
    /// The JDKs of this machine.
    pub jdks: &'a [FoundJdk],
    /// The machine as it was before the first trial.
    pub machine: &'a Machine,
    /// Where the subject's output is kept.
    pub log: Option<PathBuf>,
    /// Name of the trial's folder in the archive.
    pub folder: Option<String>,
    /// Set when the user wants to stop.
    pub interrupt: &'a AtomicBool,
    /// How closely the subject is looked at.
    pub look: Look,
    /// What ends the trial early; nothing where `None`.
    pub guard: Option<&'a Guard>,
    /// Completes the record before it is told.
    pub seal: Option<Seal<'a>>,
    /// Whether the files that the subject has mapped or open at the end of the load are listed.
    pub list_files: bool,
}

impl Setup<'_> {
    /// Whether the user wants to stop.
    pub(super) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// How closely a subject is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Look {
    /// It is weighed at the marks of the scenario; the JVM is asked, and given an agent where one is wanted.
    #[default]
    Full,
    /// Nobody speaks to it: its files in `/proc`, its counters and its cgroup are read and nothing else, so that it
    /// needs what it would need without Loadline. There are no marks then, whatever the scenario says.
    Outside,
}

/// Completes the record of a trial when its outcome is known and nothing has been told of it yet, so that whoever is
/// told, such as an archive, has what was added.
#[derive(Clone, Copy)]
pub struct Seal<'a>(pub &'a dyn Fn(&mut Trial));

impl fmt::Debug for Seal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}
