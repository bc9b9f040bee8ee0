//! The CPU time of a machine at a moment, and between two moments.

use crate::clock::Clock;
use crate::kernel::machine::{CpuTimes, Pressure};
use std::time::Duration;

/// CPU time in a phase, by whom.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    /// All CPUs, all programs.
    pub(super) machine: Option<CpuTimes>,
    /// Subject, Loadline and an outside driver together.
    pub(super) ours: Duration,
    /// Time in which some program waited for memory; `None` where it may be the subject under its own limit, and on a
    /// kernel that does not say. (Waiting for a CPU is left out: the subject's own threads wait for each other, and the
    /// kernel does not tell theirs from others'.)
    pub(super) memory_stalled: Option<Duration>,
    /// Length of the phase.
    pub(super) elapsed: Duration,
}

/// The CPU time of all programs of this machine at a moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Spent {
    pub(super) at_ns: u64,
    pub(super) machine: Option<CpuTimes>,
    /// Loadline's own CPU time.
    pub(super) own: Duration,
    pub(super) memory_pressure: Option<Pressure>,
}

impl Spent {
    pub(super) fn now(clock: Clock) -> Self {
        Self {
            at_ns: clock.now_ns(),
            machine: CpuTimes::read(),
            own: own_cpu(),
            memory_pressure: Pressure::read("memory"),
        }
    }

    /// The CPU time from an earlier moment to this one; `ours` is Loadline's part.
    pub(super) fn since(&self, before: &Self) -> Usage {
        let pressure = self.memory_pressure.zip(before.memory_pressure);
        Usage {
            machine: self.machine.as_ref().zip(before.machine.as_ref()).map(|(after, before)| after.since(before)),
            ours: self.own.saturating_sub(before.own),
            memory_stalled: pressure.map(|(after, before)| after.since(&before).some),
            elapsed: Duration::from_nanos(self.at_ns.saturating_sub(before.at_ns)),
        }
    }
}

/// CPU time of Loadline, all threads.
fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
