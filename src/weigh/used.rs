//! What the processes of a subject use up: CPU time and collections between two moments.

use crate::observe::hsperfdata::GcTotal;
use std::collections::BTreeMap;
use std::time::Duration;

/// CPU time and collections of one process, as far as they are known.
pub(crate) type Spending = (Option<Duration>, Option<GcTotal>);

/// What the processes of a subject had used up at a moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Used {
    /// Of the one that serves.
    pub(crate) main: Spending,
    /// Of the others, by pid and the moment of their start.
    pub(crate) others: BTreeMap<(u32, u64), Spending>,
}

impl Used {
    /// CPU time, and collections where any of them is a JVM, since an earlier moment. What the one that serves used is
    /// known only where it is known of both moments. Of the others, who came later counts from its start; what one used
    /// that has ended since is not known.
    pub(crate) fn since(&self, before: &Self) -> Spending {
        let more = |now: GcTotal, then: GcTotal| GcTotal {
            count: now.count.saturating_sub(then.count),
            ns: now.ns.saturating_sub(then.ns),
        };
        let mut cpu = self.main.0.zip(before.main.0).map(|(now, then)| now.saturating_sub(then));
        let mut gc = self.main.1.zip(before.main.1).map(|(now, then)| more(now, then));
        for (process, (now_cpu, now_gc)) in &self.others {
            let (then_cpu, then_gc) = before.others.get(process).copied().unwrap_or_default();
            let used = now_cpu.unwrap_or_default().saturating_sub(then_cpu.unwrap_or_default());
            cpu = cpu.map(|cpu| cpu + used);
            if let Some(now) = now_gc {
                let (more, total) = (more(*now, then_gc.unwrap_or_default()), gc.get_or_insert_default());
                (total.count, total.ns) = (total.count + more.count, total.ns + more.ns);
            }
        }
        (cpu, gc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_counts_from_its_start_and_who_went_not_at_all() {
        let spent = |cpu_ms, gc: Option<u64>| {
            (Some(Duration::from_millis(cpu_ms)), gc.map(|count| GcTotal { count, ns: 1000 * count }))
        };
        let main = spent(1000, None);
        let before = Used { main, others: [((1, 1), spent(100, Some(5))), ((2, 1), spent(900, None))].into() };
        // The pid 2 is another process now.
        let others: BTreeMap<_, _> = [((1, 1), spent(150, Some(7))), ((2, 9), spent(30, None))].into();
        let after = Used { main: spent(1004, None), others: others.clone() };
        let (cpu, gc) = after.since(&before);
        assert_eq!(cpu, Some(Duration::from_millis(84)));
        assert_eq!(gc.map(|gc| (gc.count, gc.ns)), Some((2, 2000)));
        let (cpu, gc) = Used { main, ..Used::default() }.since(&before);
        assert_eq!((cpu, gc.is_none()), (Some(Duration::ZERO), true));
        let dead = Used { main: (None, None), others };
        assert_eq!(dead.since(&before).0, None, "without the one that serves the sum is none");
    }

    #[test]
    fn collections_of_the_main_process_need_both_moments() {
        let used = |gc: Option<u64>| Used { main: (None, gc.map(|count| GcTotal { count, ns: 7 })), ..Used::default() };
        let count = |after, before| used(after).since(&used(before)).1.map(|gc| gc.count);
        assert_eq!((count(Some(5), Some(3)), count(Some(5), None), count(None, Some(3))), (Some(2), None, None));
    }
}
