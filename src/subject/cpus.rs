//! Separates the subject's CPUs from the load generator's, so that neither slows the other.

use crate::error::{Error, Result};
use crate::scenario::Cpus;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// One CPU in this many is enough for the load: a request costs a small server five times as much as the generator.
const LOAD_SHARE: usize = 4;

/// The CPUs of subject and load; `None` means no pinning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPlan {
    /// The subject's.
    pub subject: Option<Vec<u32>>,
    /// The load generator's.
    pub load: Option<Vec<u32>>,
}

impl CpuPlan {
    /// Divides the available CPUs as requested. Fails if a requested CPU is not available to Loadline.
    pub fn new(subject: &Cpus, load: &Cpus, available: &[u32]) -> Result<Self> {
        check_available(subject, "--cpus", available)?;
        check_available(load, "--load-cpus", available)?;
        let all_but = |taken: &[u32]| -> Option<Vec<u32>> {
            let rest: Vec<u32> = available.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
            (!rest.is_empty()).then_some(rest)
        };
        let (subject, load) = match (subject, load) {
            (Cpus::Apart, Cpus::Apart) if available.len() >= 2 => {
                let load_count = (available.len() / LOAD_SHARE).max(1);
                let (subject, load) = available.split_at(available.len() - load_count);
                (Some(subject.to_vec()), Some(load.to_vec()))
            }
            (Cpus::Only(subject), Cpus::Apart) => (Some(subject.clone()), all_but(subject)),
            (Cpus::Apart, Cpus::Only(load)) => (all_but(load), Some(load.clone())),
            (subject, load) => (listed(subject), listed(load)),
        };
        Ok(Self { subject, load })
    }

    /// Whether a CPU may serve both.
    pub fn shared(&self) -> bool {
        match (&self.subject, &self.load) {
            (Some(subject), Some(load)) => subject.iter().any(|cpu| load.contains(cpu)),
            _ => true,
        }
    }
}

fn listed(cpus: &Cpus) -> Option<Vec<u32>> {
    match cpus {
        Cpus::Only(cpus) => Some(cpus.clone()),
        Cpus::Apart | Cpus::All => None,
    }
}

fn check_available(wanted: &Cpus, option: &str, available: &[u32]) -> Result<()> {
    let Cpus::Only(cpus) = wanted else { return Ok(()) };
    let Some(missing) = cpus.iter().find(|cpu| !available.contains(cpu)) else { return Ok(()) };
    let shown = list(available);
    Err(Error::request(format!("CPU {missing} is not available: Loadline can use {shown}"))
        .hint(format!("choose from {shown}, or use `{option} all`")))
}

/// Pins the calling thread, and threads it starts later, to these CPUs. Errors: `Machine` if the kernel refuses.
pub fn pin_this_thread(cpus: &[u32]) -> Result<()> {
    bind(cpus).map_err(|cause| Error::machine(format!("cannot run on CPUs {}: {cause}", list(cpus))))
}

pub(super) fn bind(cpus: &[u32]) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|&&cpu| (cpu as usize) < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu as usize));
    sched_setaffinity(None, &set)
}

/// The CPUs available to this process, ascending.
pub fn available() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

/// `0-2,5`.
pub fn list(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|left, right| left + 1 == *right);
    let shown = runs.filter_map(|run| match run {
        [] => None,
        [only] => Some(only.to_string()),
        [first, .., last] => Some(format!("{first}-{last}")),
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_and_load_get_separate_cpus() {
        let check = |subject: &str, load: &str, available: &[u32], expect: Option<(&str, &str)>| {
            let plan = CpuPlan::new(&subject.parse().unwrap(), &load.parse().unwrap(), available).ok();
            let text = |cpus: Option<Vec<u32>>| cpus.map_or("all".to_owned(), |cpus| list(&cpus));
            let plan = plan.map(|plan| (text(plan.subject), text(plan.load)));
            let expect = expect.map(|(subject, load)| (subject.to_owned(), load.to_owned()));
            assert_eq!(plan, expect, "{subject} {load}");
        };
        check("apart", "apart", &[0], Some(("all", "all")));
        check("apart", "apart", &[0, 1], Some(("0", "1")));
        check("apart", "apart", &[0, 1, 2, 3, 4, 5, 6, 7], Some(("0-5", "6-7")));
        check("apart", "apart", &[2, 5, 7], Some(("2,5", "7")));
        check("all", "apart", &[0, 1], Some(("all", "all")));
        check("0", "apart", &[0, 1, 2], Some(("0", "1-2")));
        check("0-1", "apart", &[0, 1], Some(("0-1", "all")));
        check("apart", "0", &[0, 1], Some(("1", "0")));
        check("0", "0", &[0, 1], Some(("0", "0")));
        check("3", "apart", &[0, 1], None);
        check("apart", "3", &[0, 1], None);
    }

    #[test]
    fn shared_cpus_are_detected() {
        let plan = |subject: Option<Vec<u32>>, load: Option<Vec<u32>>| CpuPlan { subject, load };
        assert!(!plan(Some(vec![0]), Some(vec![1])).shared());
        assert!(plan(Some(vec![0, 1]), Some(vec![1])).shared());
        assert!(plan(None, Some(vec![1])).shared());
    }
}
