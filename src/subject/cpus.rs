//! Who runs on which CPU: the subject and the load generator apart, so that neither slows the other.

use crate::error::{Error, Result};
use crate::scenario::Cpus;
use rustix::thread::{CpuSet, sched_getaffinity};
use serde::{Deserialize, Serialize};

/// One in this many CPUs is enough for the load: it costs a small server five times what it costs the generator.
const LOAD_SHARE: usize = 4;

/// The CPUs of the subject and of the load; `None` is no pinning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPlan {
    /// The subject's.
    pub subject: Option<Vec<u32>>,
    /// The load generator's.
    pub load: Option<Vec<u32>>,
}

impl CpuPlan {
    /// Divides the available CPUs as asked.
    ///
    /// # Errors
    /// When a CPU is asked for that Loadline may not use.
    pub fn new(wanted: &Cpus, available: &[u32]) -> Result<Self> {
        match wanted {
            Cpus::All => Ok(Self { subject: None, load: None }),
            Cpus::Apart if available.len() < 2 => Ok(Self { subject: None, load: None }),
            Cpus::Apart => {
                let load_count = (available.len() / LOAD_SHARE).max(1);
                let (subject, load) = available.split_at(available.len() - load_count);
                Ok(Self { subject: Some(subject.to_vec()), load: Some(load.to_vec()) })
            }
            Cpus::Only(cpus) => {
                if let Some(missing) = cpus.iter().find(|cpu| !available.contains(cpu)) {
                    let shown = shown(available);
                    return Err(Error::request(format!("CPU {missing} is not available: Loadline may use {shown}"))
                        .hint(format!("choose among {shown}, or `--cpus all`")));
                }
                let rest: Vec<u32> = available.iter().copied().filter(|cpu| !cpus.contains(cpu)).collect();
                Ok(Self { subject: Some(cpus.clone()), load: (!rest.is_empty()).then_some(rest) })
            }
        }
    }
}

/// The CPUs this process may use, ascending.
pub fn available() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

/// `0-2,5`.
pub fn shown(cpus: &[u32]) -> String {
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
    fn subject_and_load_are_kept_apart() {
        let check = |wanted: &str, available: &[u32], expect: Option<(&str, &str)>| {
            let plan = CpuPlan::new(&wanted.parse().unwrap(), available).ok();
            let text = |cpus: Option<Vec<u32>>| cpus.map_or("all".to_owned(), |cpus| shown(&cpus));
            let plan = plan.map(|plan| (text(plan.subject), text(plan.load)));
            assert_eq!(plan, expect.map(|(subject, load)| (subject.to_owned(), load.to_owned())), "{wanted}");
        };
        check("apart", &[0], Some(("all", "all")));
        check("apart", &[0, 1], Some(("0", "1")));
        check("apart", &[0, 1, 2, 3, 4, 5, 6, 7], Some(("0-5", "6-7")));
        check("apart", &[2, 5, 7], Some(("2,5", "7")));
        check("all", &[0, 1], Some(("all", "all")));
        check("0", &[0, 1, 2], Some(("0", "1-2")));
        check("0-1", &[0, 1], Some(("0-1", "all")));
        check("3", &[0, 1], None);
    }

    #[test]
    fn there_is_at_least_one_cpu() {
        assert!(!available().is_empty());
    }
}
