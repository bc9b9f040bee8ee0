//! Inspects the place of an entry: its CPUs, their other users and throttling, and swap.

use crate::clock::Clock;
use crate::fleet::PlaceSeen;
use crate::kernel::cpu_cgroup;
use crate::kernel::machine::{CpuTimes, MemInfo, cpus_online};
use crate::subject::cpus;
use std::time::Duration;

/// How long to watch for other busy processes: even a quiet machine has daemons that wake up once a second.
const LOOK: Duration = Duration::from_secs(2);

/// Inspects the place before an entry, while no part of it is running. Takes two seconds.
pub fn place_before(clock: Clock) -> PlaceSeen {
    let cpus = cpus::available();
    let began = (CpuTimes::read_of(&cpus), clock.now());
    clock.sleep(LOOK);
    let busy_cores = began.0.zip(CpuTimes::read_of(&cpus)).map(|(before, after)| {
        let seconds = (clock.now() - began.1).as_secs_f64();
        after.since(&before).busy.as_secs_f64() / seconds.max(f64::MIN_POSITIVE)
    });
    PlaceSeen { busy_cores, ..place_after() }
}

/// Inspects the place after an entry.
pub fn place_after() -> PlaceSeen {
    let cpus = cpus::available().len() as u32;
    PlaceSeen {
        cpus,
        online: (cpus_online() as u32).max(cpus),
        has_own_cpus: cpu_cgroup::has_own_cpus(),
        busy_cores: None,
        throttled: cpu_cgroup::throttled(),
        swap_bytes: MemInfo::read().map_or(0, |memory| memory.swap_used.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let before = place_before(Clock::start());
        assert!(before.cpus > 0 && before.online >= before.cpus, "{before:?}");
        // Other processes may keep CPUs busy, but no more than there are; partial ticks count as whole ones.
        assert!(before.busy_cores.is_some_and(|cores| cores <= f64::from(before.cpus) + 0.5), "{before:?}");
        assert_eq!(place_after().busy_cores, None);
    }
}
