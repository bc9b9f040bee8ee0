//! When a machine is noisy: how much other programs can use before measurements are affected.

/// Using a tenth of a core elsewhere shifts rates by more than the variation on a quiet machine.
const FOREIGN_CORES_MAX: f64 = 0.10;
/// Steal comes in bursts; above this share, the 99th percentile shows it.
const STEAL_SHARE_MAX: f64 = 0.02;
/// With enough memory, programs do not wait for it. Waiting 1% of the time shows in the 99th percentile.
const MEMORY_STALL_SHARE_MAX: f64 = 0.01;

/// Whether other programs or the hypervisor took CPU time that a server lacked. `foreign_cores` is `None` if it is
/// indistinguishable from the server's own.
pub fn takes_cpu(foreign_cores: Option<f64>, steal_share: f64) -> bool {
    foreign_cores.is_some_and(|cores| cores > FOREIGN_CORES_MAX) || steal_share > STEAL_SHARE_MAX
}

/// Whether programs waited for memory for too large a share of the time.
pub fn waits_for_memory(memory_stall_share: Option<f64>) -> bool {
    memory_stall_share.is_some_and(|share| share > MEMORY_STALL_SHARE_MAX)
}
