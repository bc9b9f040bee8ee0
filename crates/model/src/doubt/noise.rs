//! When a machine is noisy: how much other programs may take before the measurements show it.

/// A tenth of a core elsewhere shifts rates by more than repeated runs differ on a quiet machine.
const FOREIGN_CORES_MAX: f64 = 0.10;
/// Stolen time comes in bursts; beyond this it shows in the 99th percentile.
const STEAL_SHARE_MAX: f64 = 0.02;
/// On a machine with memory to spare, programs do not wait for memory. A wait of a hundredth of the time shows in the
/// 99th percentile.
const MEMORY_STALL_SHARE_MAX: f64 = 0.01;

/// Whether other programs or the hypervisor took CPU that a server lacked. `foreign_cores` is `None` where it cannot be
/// told from the server's own.
pub fn takes_cpu(foreign_cores: Option<f64>, steal_share: f64) -> bool {
    foreign_cores.is_some_and(|cores| cores > FOREIGN_CORES_MAX) || steal_share > STEAL_SHARE_MAX
}

/// Whether programs waited for memory, for this share of the time.
pub fn waits_for_memory(memory_stall_share: Option<f64>) -> bool {
    memory_stall_share.is_some_and(|share| share > MEMORY_STALL_SHARE_MAX)
}
