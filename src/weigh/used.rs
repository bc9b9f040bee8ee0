//! Resource usage of a subject's processes between two points in time: CPU time, collections, and allocated bytes.

use crate::observe::hsperfdata::GcTotal;
use crate::observe::thread_purposes::OwnTimes;
use crate::record::CpuByPurpose;
use loadline_jvm::accounting::AllocatedSoFar;
use std::collections::BTreeMap;
use std::time::Duration;

/// A process's usage, to the extent that it is known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Spending {
    pub(crate) cpu: Option<Duration>,
    /// CPU time of the JVM's own threads.
    pub(crate) own: Option<OwnTimes>,
    pub(crate) gc: Option<GcTotal>,
    /// Bytes allocated in its Java heap.
    pub(crate) allocated: Option<AllocatedSoFar>,
    /// Bytes of machine code compiled.
    pub(crate) compiled: Option<u64>,
}

/// The usage of a subject's processes so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Used {
    /// The serving process.
    pub(crate) main: Spending,
    /// The others, by pid and start time.
    pub(crate) others: BTreeMap<(u32, u64), Spending>,
}

impl Spending {
    /// CPU time by purpose; adds up to the total. If the JVM's own threads exceed the total because they were read
    /// later, they get all of it.
    pub(crate) fn cpu_by_purpose(&self) -> Option<CpuByPurpose> {
        let (mut left, own) = self.cpu.zip(self.own)?;
        let [jit_s, gc_s, vm_s] = [own.jit, own.gc, own.vm].map(|time| {
            let time = time.min(left);
            left -= time;
            time.as_secs_f64()
        });
        Some(CpuByPurpose { app_s: left.as_secs_f64(), jit_s, gc_s, vm_s })
    }
}

impl Used {
    /// The usage since an earlier time; collections and allocated bytes only if any process is a JVM. The serving
    /// process needs both times. Another process that is new counts from its start; one that has ended does not count.
    pub(crate) fn since(&self, before: &Self) -> Spending {
        let more = |now: GcTotal, then: GcTotal| GcTotal {
            count: now.count.saturating_sub(then.count),
            ns: now.ns.saturating_sub(then.ns),
        };
        let mut sum = Spending {
            cpu: self.main.cpu.zip(before.main.cpu).map(|(now, then)| now.saturating_sub(then)),
            own: self.main.own.zip(before.main.own).map(|(now, then)| now.since(then)),
            gc: self.main.gc.zip(before.main.gc).map(|(now, then)| more(now, then)),
            allocated: self.main.allocated.zip(before.main.allocated).and_then(|(now, then)| now.since(then)),
            compiled: self.main.compiled.zip(before.main.compiled).map(|(now, then)| now.saturating_sub(then)),
        };
        for (process, now) in &self.others {
            let known = before.others.get(process).copied();
            let then = known.unwrap_or_default();
            // If one process's CPU time is unknown, so is the total; it is not 0.
            let cpu_before = known.map_or(Some(Duration::ZERO), |then| then.cpu);
            let used = now.cpu.zip(cpu_before).map(|(now, then)| now.saturating_sub(then));
            sum.cpu = sum.cpu.zip(used).map(|(cpu, used)| cpu + used);
            // A process that is not a JVM, or is just becoming one, has no JVM threads.
            let own = now.own.unwrap_or_default().since(then.own.unwrap_or_default());
            sum.own = sum.own.map(|sum| sum.and(own));
            if let Some(now) = now.gc {
                let (more, total) = (more(now, then.gc.unwrap_or_default()), sum.gc.get_or_insert_default());
                (total.count, total.ns) = (total.count + more.count, total.ns + more.ns);
            }
            if let Some(now) = now.allocated {
                let bytes = now.bytes.saturating_sub(then.allocated.map_or(0, |then| then.bytes));
                // A sum of counts from two methods is only as exact as the less exact method.
                sum.allocated = sum.allocated.map_or(Some(AllocatedSoFar { bytes, ..now }), |sum| {
                    Some(AllocatedSoFar { bytes: sum.bytes + bytes, by: sum.by.max(now.by) })
                });
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::AllocatedBy;

    #[test]
    fn bytes_counted_differently_are_not_subtracted() {
        let at = |bytes, by| {
            let main = Spending { allocated: Some(AllocatedSoFar { bytes, by }), ..Spending::default() };
            Used { main, ..Used::default() }
        };
        let bytes = |now: Used, then| now.since(&then).allocated.map(|allocated| allocated.bytes);
        assert_eq!(bytes(at(70, AllocatedBy::AllThreads), at(50, AllocatedBy::AllThreads)), Some(20));
        assert_eq!(bytes(at(70, AllocatedBy::ThreadPrint), at(50, AllocatedBy::AllThreads)), None);
    }

    #[test]
    fn new_processes_count_from_their_start_and_ended_ones_do_not_count() {
        let spent = |cpu_ms, gc: Option<u64>| Spending {
            cpu: Some(Duration::from_millis(cpu_ms)),
            own: gc.map(|count| OwnTimes { jit: Duration::from_millis(count), ..OwnTimes::default() }),
            gc: gc.map(|count| GcTotal { count, ns: 1000 * count }),
            allocated: gc.map(|count| AllocatedSoFar { bytes: 100 * count, by: AllocatedBy::AllThreads }),
            ..Spending::default()
        };
        let main = spent(1000, None);
        let before = Used { main, others: [((1, 1), spent(100, Some(5))), ((2, 1), spent(900, None))].into() };
        // Pid 2 was reused by another process.
        let others: BTreeMap<_, _> = [((1, 1), spent(150, Some(7))), ((2, 9), spent(30, None))].into();
        let after = Used { main: spent(1004, None), others: others.clone() };
        let used = after.since(&before);
        assert_eq!(used.cpu, Some(Duration::from_millis(84)));
        assert_eq!(used.gc.map(|gc| (gc.count, gc.ns)), Some((2, 2000)));
        assert_eq!(used.allocated.map(|allocated| allocated.bytes), Some(200));
        let alone = Used { main, ..Used::default() }.since(&before);
        assert_eq!(alone, Spending { cpu: Some(Duration::ZERO), ..Spending::default() });
        let dead = Used { main: Spending::default(), others };
        assert_eq!(dead.since(&before).cpu, None, "the sum is unknown without the server's own process");
        // It existed before, but its CPU time was read at only one of the two times.
        let unread = |cpu: Option<u64>| Used {
            main,
            others: [((1, 1), Spending { cpu: cpu.map(Duration::from_millis), ..Spending::default() })].into(),
        };
        assert_eq!(unread(Some(9000)).since(&unread(None)).cpu, None, "only part of the 9 s may belong to it");
        assert_eq!(unread(None).since(&unread(Some(9000))).cpu, None);
        assert_eq!(unread(Some(9)).since(&unread(Some(4))).cpu, Some(Duration::from_millis(5)));
    }

    #[test]
    fn purposes_add_up_to_all_cpu_time_of_all_processes() {
        let ms = Duration::from_millis;
        let spent = |cpu, own: Option<[u64; 3]>| Spending {
            cpu: Some(ms(cpu)),
            own: own.map(|[jit, gc, vm]| OwnTimes { jit: ms(jit), gc: ms(gc), vm: ms(vm) }),
            ..Spending::default()
        };
        let at = |main, others: &[(u32, Spending)]| Used {
            main,
            others: others.iter().map(|(pid, spent)| ((*pid, 1), *spent)).collect(),
        };
        let before = at(spent(1000, Some([300, 50, 5])), &[(7, spent(400, None))]);
        let split = |after: Used| {
            let told = after.since(&before).cpu_by_purpose()?;
            Some([told.app_s, told.jit_s, told.gc_s, told.vm_s].map(|s| (s * 1e3).round()))
        };
        let jvm = spent(1500, Some([400, 60, 6]));
        assert_eq!(split(at(jvm, &[])), Some([389.0, 100.0, 10.0, 1.0]));
        // Another program counts as application; another JVM has its own compilers.
        let both = [(7, spent(500, None)), (8, spent(90, Some([40, 2, 1])))];
        assert_eq!(split(at(jvm, &both)), Some([536.0, 140.0, 12.0, 2.0]));
        // The threads were read after the process.
        assert_eq!(split(at(spent(1080, Some([390, 50, 5])), &[])), Some([0.0, 80.0, 0.0, 0.0]));
        assert_eq!((split(at(spent(1500, None), &both)), split(at(Spending::default(), &[]))), (None, None));
    }

    #[test]
    fn collections_need_both_readings() {
        let spent = |gc: Option<u64>| Spending { gc: gc.map(|count| GcTotal { count, ns: 7 }), ..Spending::default() };
        let used = |gc| Used { main: spent(gc), ..Used::default() };
        let count = |after, before| used(after).since(&used(before)).gc.map(|gc| gc.count);
        assert_eq!((count(Some(5), Some(3)), count(Some(5), None), count(None, Some(3))), (Some(2), None, None));
    }
}
