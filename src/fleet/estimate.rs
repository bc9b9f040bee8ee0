//! Estimates a night in advance: lines to confirm, searches with their reasons, and the time needed.

use super::known::KnownServices;
use crate::record::{PlanEntry, Task, Why};
use crate::units::{grouped, roughly, several, trimmed};
use loadline_base::order::Order as _;
use std::fmt;

/// The duration of a search on a quiet machine: 14 to 18 trials.
const SEARCH_S: f64 = 240.0;
/// A confirmation takes about 6 trials.
const PROOF_SHARE: f64 = 1.0 / 3.0;

/// The estimate for a plan of services.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimate {
    /// Services whose line is confirmed.
    proofs: u64,
    /// Searches by reason, most frequent first.
    searches: Vec<(Why, u64)>,
    /// The total time in node seconds.
    node_s: f64,
}

impl Estimate {
    /// Estimates these entries from the durations of earlier nights.
    pub fn of(entries: &[PlanEntry], known: &KnownServices) -> Self {
        let mut estimate = Self::default();
        for entry in entries {
            let (search_s, proof_s) = known.took(&entry.name);
            let search_s = search_s.or(proof_s.map(|proof| proof / PROOF_SHARE)).unwrap_or(SEARCH_S);
            match &entry.task {
                Task::Search { why } => {
                    estimate.count(*why);
                    estimate.node_s += search_s;
                }
                Task::Prove => {
                    estimate.proofs += 1;
                    estimate.node_s += proof_s.unwrap_or(search_s * PROOF_SHARE);
                }
                Task::Block { .. } => {}
            }
        }
        estimate.searches.largest_first(|(_, count)| *count);
        estimate
    }

    fn count(&mut self, why: Why) {
        match self.searches.iter_mut().find(|(of, _)| *of == why) {
            Some((_, count)) => *count += 1,
            None => self.searches.push((why, 1)),
        }
    }

    /// The duration on this many nodes, in words.
    pub fn on(&self, nodes: u32) -> String {
        let all = match self.node_s / 3600.0 {
            hours if hours < 1.0 => format!("about {} of one node", roughly(self.node_s)),
            hours => format!("about {} node-hours", trimmed(hours, 1)),
        };
        match nodes {
            0 | 1 => all,
            n => format!("{all}, {} on {n} nodes", roughly(self.node_s / f64::from(n))),
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let searches: u64 = self.searches.iter().map(|(_, count)| count).sum();
        let services = several(searches + self.proofs, "service");
        write!(f, "{services}: {} to confirm, {} to search", grouped(self.proofs), grouped(searches))?;
        let why: Vec<String> =
            self.searches.iter().map(|(why, count)| format!("{} because {}", grouped(*count), words(*why))).collect();
        if why.is_empty() { Ok(()) } else { write!(f, " ({})", why.join(", ")) }
    }
}

/// Why a line is searched for.
fn words(why: Why) -> &'static str {
    match why {
        Why::First => "no load line is known",
        Why::QuestionChanged => "the question changed",
        Why::InputsChanged => "files changed",
        Why::ImageChanged => "the image changed",
        Why::JdkChanged => "the JDK changed",
        Why::LongAgo => "the last search was too long ago",
        Why::LineFailed => "the load line failed",
        Why::StepBelowHeld => "the next smaller limit passed",
        Why::Asked => "it was requested",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::layout::tests::plan;

    fn entry(task: Task) -> PlanEntry {
        PlanEntry { name: "x".to_owned(), task, minutes: 15.0, ..plan("x", 1).entries.remove(0) }
    }

    #[test]
    fn a_plan_estimates_its_duration() {
        let of = |proofs: usize, searches: &[(Why, usize)]| {
            let proofs = (0..proofs).map(|_| entry(Task::Prove));
            let searches = searches.iter().flat_map(|(why, n)| (0..*n).map(|_| entry(Task::Search { why: *why })));
            Estimate::of(&proofs.chain(searches).collect::<Vec<_>>(), &KnownServices::default())
        };
        let night = of(280, &[(Why::First, 8), (Why::LongAgo, 12)]);
        assert_eq!(
            night.to_string(),
            "300 services: 280 to confirm, 20 to search (12 because the last search was too long ago, 8 because no \
             load line is known)"
        );
        assert_eq!(
            (night.on(1), night.on(10)),
            ("about 7.6 node-hours".to_owned(), "about 7.6 node-hours, 45 min on 10 nodes".to_owned())
        );
        let first = of(0, &[(Why::First, 1)]);
        assert_eq!(first.to_string(), "1 service: 0 to confirm, 1 to search (1 because no load line is known)");
        assert_eq!(first.on(1), "about 4 min of one node");
        assert_eq!(of(2, &[]).to_string(), "2 services: 2 to confirm, 0 to search");
    }
}
