//! CPU time used on a machine: up to a reading, and between two readings.

use crate::clock::Clock;
use crate::kernel::machine::{CpuTimes, Pressure};
use std::time::Duration;

/// CPU time of a phase, by consumer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    /// All CPUs, all programs.
    pub(super) machine: Option<CpuTimes>,
    /// Subject, Loadline, and an external driver together.
    pub(super) ours: Duration,
    /// Time in which some program waited for memory. `None` if the subject's own limit may be the cause, or if the
    /// kernel does not report it. (Waits for a CPU are excluded: the subject's threads wait for each other, and the
    /// kernel does not distinguish them from others.)
    pub(super) memory_stalled: Option<Duration>,
    pub(super) elapsed: Duration,
}

/// CPU time of all programs on this machine so far.
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

    /// CPU time since an earlier reading; `ours` has only Loadline's own part, to which the caller adds the others.
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

/// CPU time of all of Loadline's threads.
fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
