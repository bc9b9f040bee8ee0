//! Whether a place is suitable for measuring: its state before and after an entry, and the resulting doubts.

use crate::doubt::{Doubt, Place, noise};

/// A smaller increase in swap is normal: even an idle machine swaps that much.
const SWAPPED_MIN: u64 = 16 << 20;

/// The state of a place at a point in time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlaceSeen {
    /// CPUs available to this process.
    pub cpus: u32,
    /// The machine's CPUs.
    pub online: u32,
    /// Whether a cgroup reserves these CPUs for it.
    pub has_own_cpus: bool,
    /// Cores of these CPUs that others used just before; `None` if not measured.
    pub busy_cores: Option<f64>,
    /// How many times this process's cgroups have been throttled so far; `None` if not counted.
    pub throttled: Option<u64>,
    /// Memory in swap.
    pub swap_bytes: u64,
}

/// Doubts about a place, from its state before and after the entry.
pub fn place_doubts(before: &PlaceSeen, after: &PlaceSeen) -> Vec<Doubt> {
    let PlaceSeen { cpus, online, .. } = *before;
    let busy = before.busy_cores.filter(|cores| noise::takes_cpu(Some(*cores), 0.0));
    let is_shared = cpus < online && !before.has_own_cpus;
    // A count that was read only once is no evidence of throttling during the entry.
    let times = after.throttled.zip(before.throttled).map_or(0, |(after, before)| after.saturating_sub(before));
    let swap_bytes = after.swap_bytes.saturating_sub(before.swap_bytes);
    let doubts = [
        busy.map(|busy_cores| Place::NodeBusy { busy_cores, cpus }),
        is_shared.then_some(Place::NodeShared { cpus, online }),
        (times > 0).then_some(Place::NodeThrottled { times }),
        (swap_bytes >= SWAPPED_MIN).then_some(Place::NodeSwapped { swap_bytes }),
    ];
    doubts.into_iter().flatten().map(Doubt::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: PlaceSeen, after: PlaceSeen, expect: &[Place]) {
        let expect: Vec<Doubt> = expect.iter().cloned().map(Doubt::from).collect();
        assert_eq!(place_doubts(&before, &after), expect, "{before:?} {after:?}");
    }

    #[test]
    fn a_busy_shared_throttled_or_swapping_node_raises_doubts() {
        let of = |cpus, online| PlaceSeen { cpus, online, ..PlaceSeen::default() };
        check(of(8, 8), of(8, 8), &[]);
        check(PlaceSeen { busy_cores: Some(0.05), ..of(8, 8) }, of(8, 8), &[]);
        let busy = PlaceSeen { busy_cores: Some(1.5), ..of(8, 8) };
        check(busy, of(8, 8), &[Place::NodeBusy { busy_cores: 1.5, cpus: 8 }]);
        check(of(2, 8), of(2, 8), &[Place::NodeShared { cpus: 2, online: 8 }]);
        check(PlaceSeen { has_own_cpus: true, ..of(2, 8) }, of(2, 8), &[]);
        let throttled = |times| PlaceSeen { throttled: times, ..of(8, 8) };
        check(throttled(Some(3)), throttled(Some(10)), &[Place::NodeThrottled { times: 7 }]);
        check(throttled(Some(3)), throttled(Some(3)), &[]);
        check(throttled(Some(3)), throttled(None), &[]);
        check(throttled(None), throttled(Some(10)), &[]);
        let swapped = |swap_bytes| PlaceSeen { swap_bytes, ..of(8, 8) };
        check(swapped(1 << 30), swapped((1 << 30) + SWAPPED_MIN - 1), &[]);
        check(swapped(0), swapped(SWAPPED_MIN), &[Place::NodeSwapped { swap_bytes: SWAPPED_MIN }]);
        check(swapped(SWAPPED_MIN), swapped(0), &[]);
    }
}
