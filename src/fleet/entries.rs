//! The work for each node tonight: an entry per service, or per group of a comparison's blocks.

use super::economy::why_search;
use super::question::question;
use crate::error::{Error, Result};
use crate::record::{PlanEntry, Task, Why};
use crate::scenario::{Fleet, Scenario, Service};
use crate::units::{Span, several, unix_s};
use std::path::Path;

/// Settings shared by all services of a night.
#[derive(Debug, Clone, Copy)]
pub struct Night<'a> {
    /// The absolute path of the plan's directory.
    pub folder: &'a Path,
    /// The time of the plan: UTC, ISO 8601.
    pub made: &'a str,
    /// After this time, a line that was only confirmed is searched for again.
    pub search_every: Span,
    /// Services to search unconditionally.
    pub search: &'a Searched,
}

/// Services to search in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Searched {
    /// These services.
    Named(Vec<String>),
    /// All services.
    All,
}

impl Searched {
    /// Checks that all names are services. Errors: `Request`, with the first unknown name.
    pub fn check(&self, fleet: &Fleet) -> Result<()> {
        let Self::Named(names) = self else { return Ok(()) };
        names.iter().try_for_each(|name| fleet.check_name(name))
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::Named(names) => names.iter().any(|of| of == name),
            Self::All => true,
        }
    }
}

impl Night<'_> {
    /// The entry of a service whose scenario is settled and has absolute paths and an input hash.
    pub fn entry(&self, service: Service) -> Result<PlanEntry> {
        let Service { name, scenario, within, declared, last } = service;
        let mut scenario = scenario.seen_from(self.folder);
        // A limit that a user wanted to confirm once does not concern a fleet. The last line is not part of the
        // scenario either, because the entry searches with that scenario if the line fails.
        scenario.find.prove = None;
        // Every night confirms the line and adds headroom to it, so a soak is unnecessary.
        scenario.find.soak = Span::default();
        let question = question(&scenario)?;
        let inputs = scenario.configurations.first().and_then(|of| of.inputs.as_deref());
        let made_unix_s = unix_s(self.made).unwrap_or_default();
        let needed = why_search(last.as_ref(), &question, inputs, made_unix_s, self.search_every);
        let task = match needed.or(self.search.has(&name).then_some(Why::Asked)) {
            Some(why) => Task::Search { why },
            None => Task::Prove,
        };
        let declared_bytes = declared.map(|limit| limit.0);
        Ok(PlanEntry { index: 0, name, task, minutes: within.as_s() / 60.0, declared_bytes, last, question, scenario })
    }
}

/// How to distribute a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// The total number of blocks.
    pub blocks: u32,
    /// The number of entries, each on one node; at most one per block is used.
    pub nodes: u32,
    /// Minutes allowed per entry.
    pub minutes: f64,
}

/// The entries of a comparison whose scenario has absolute paths and an input hash. No block spans nodes. Each entry
/// has its own seed; successive single-block entries, which have no order to draw, rotate the configurations. Errors:
/// `Request` if there are fewer blocks than nodes; `Bug` if the scenario cannot be serialized.
pub fn blocks(scenario: &Scenario, folder: &Path, spread: Spread) -> Result<Vec<PlanEntry>> {
    let Spread { blocks, nodes, minutes } = spread;
    if nodes == 0 || nodes > blocks {
        return Err(Error::request(format!(
            "{} for {}",
            several(blocks.into(), "block"),
            several(nodes.into(), "node")
        ))
        .hint("each block runs on one node, so specify at least as many blocks as nodes"));
    }
    let whole = scenario.clone().seen_from(folder);
    let question = question(&whole)?;
    let entry = |index: u32| {
        let count = blocks / nodes + u32::from(index < blocks % nodes);
        let first = index * (blocks / nodes) + index.min(blocks % nodes);
        let mut scenario = Scenario { trials: count, seed: whole.seed.wrapping_add(index.into()), ..whole.clone() };
        // Rules that need all blocks cannot be applied to only some of them.
        (scenario.compare.until_sure, scenario.compare.repeats) = (None, 0);
        let baseline = scenario.configurations.first().map(|first| first.name.clone());
        scenario.compare.baseline = scenario.compare.baseline.take().or(baseline);
        if count == 1 {
            turn(&mut scenario, index as usize);
        }
        PlanEntry {
            index,
            name: whole.name.clone(),
            task: Task::Block { first, count },
            minutes,
            declared_bytes: None,
            last: None,
            question: question.clone(),
            scenario,
        }
    };
    Ok((0..nodes).map(entry).collect())
}

/// Rotates the configurations, then again in reverse order, so that none benefits from its position.
fn turn(scenario: &mut Scenario, index: usize) {
    let all = &mut scenario.configurations;
    let count = all.len().max(1);
    all.rotate_left(index % count);
    if (index / count) % 2 == 1 {
        all.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Plan;
    use crate::scenario::{Last, parse};
    use crate::units::Bytes;

    const MADE: &str = "2026-11-22T00:00:00Z";

    fn scenario(more: &str, folder: &str) -> Scenario {
        let text = format!(
            "name: x\nsubject: {{command: [java, -jar, a.jar], port: 80}}\n{more}\n\
             load: [{{steady: {{closed: {{requests: 1}}, post: /, body: {{file: body.bin}}}}}}]\n"
        );
        parse(&text, &Path::new(folder).join("app"), &[17]).unwrap_or_else(|error| panic!("{error}"))
    }

    fn service(folder: &str, last: Option<Last>) -> Service {
        let within = Span::seconds(600);
        let declared = Some(Bytes::mib(512));
        Service { name: "a".to_owned(), scenario: scenario("", folder), within, declared, last }
    }

    fn entry(folder: &str, last: Option<Last>, search: Searched) -> PlanEntry {
        let night =
            Night { folder: Path::new(folder), made: MADE, search_every: Span::seconds(7 * 86_400), search: &search };
        night.entry(service(folder, last)).unwrap()
    }

    fn nobody() -> Searched {
        Searched::Named(Vec::new())
    }

    fn last(searched_at: &str) -> Option<Last> {
        Some(Last { searched_at: Some(searched_at.to_owned()), ..Last::of(Bytes::mib(100)) })
    }

    #[test]
    fn a_line_is_proved_unless_there_is_a_reason_to_search() {
        let task = |last, search| entry("/p", last, search).task;
        let soon = || last("2026-11-20T00:00:00Z");
        assert_eq!(task(None, nobody()), Task::Search { why: Why::First });
        assert_eq!(task(soon(), nobody()), Task::Prove);
        assert_eq!(task(last("2026-11-02T00:00:00Z"), nobody()), Task::Search { why: Why::LongAgo });
        assert_eq!(task(soon(), Searched::All), Task::Search { why: Why::Asked });
        assert_eq!(task(soon(), Searched::Named(vec!["a".to_owned()])), Task::Search { why: Why::Asked });
        assert_eq!(task(soon(), Searched::Named(vec!["b".to_owned()])), Task::Prove);
        assert_eq!(task(None, Searched::All), Task::Search { why: Why::First });
    }

    #[test]
    fn a_proof_entry_has_the_line_and_a_scenario_to_search_again() {
        let (proof, search) = (entry("/p", last(MADE), nobody()), entry("/p", None, nobody()));
        assert_eq!(proof.last.map(|last| last.limit_bytes), Some(100 << 20));
        assert_eq!((proof.scenario.find.prove, search.scenario.find.prove), (None, None));
        assert_eq!(proof.question, search.question);
        assert_eq!((proof.minutes, proof.declared_bytes), (10.0, Some(512 << 20)));
    }

    #[test]
    fn plan_entries_do_not_depend_on_the_directory() {
        let text = |folder: &str| {
            let service = entry(folder, last(MADE), nobody());
            let comparison = scenario("configurations: {a: {}, b: {}}", folder);
            let comparison =
                blocks(&comparison, Path::new(folder), Spread { blocks: 3, nodes: 2, minutes: 9.0 }).unwrap();
            let entries = std::iter::once(service).chain(comparison).collect();
            Plan::new("x", MADE.to_owned(), entries).unwrap().text().unwrap()
        };
        let here = text("/home/one/fleet");
        assert_eq!(here, text("/srv/other place"));
        assert!(!here.contains("/home"), "{here}");
        assert_eq!(entry("/p", None, nobody()).scenario.path_outside(), None);
        assert!(scenario("", "/p").path_outside().is_some());
    }

    #[test]
    fn each_block_is_assigned_to_exactly_one_node() {
        let scenario = scenario("configurations: {a: {}, b: {}, c: {}}\ncompare: {until_sure: 30, repeats: 2}", "/p");
        for (count, nodes) in [(20, 10), (7, 3), (5, 5), (1, 1), (1000, 7)] {
            let spread = Spread { blocks: count, nodes, minutes: 9.0 };
            let entries = blocks(&scenario, Path::new("/p"), spread).unwrap();
            let mut next = 0;
            for entry in &entries {
                let Task::Block { first, count } = entry.task else { panic!("{:?}", entry.task) };
                assert_eq!((first, entry.scenario.trials), (next, count));
                assert_eq!((entry.scenario.compare.until_sure, entry.scenario.compare.repeats), (None, 0));
                assert_eq!(entry.scenario.compare.baseline.as_deref(), Some("a"));
                next += count;
            }
            assert_eq!((entries.len(), next), (nodes as usize, count));
            let mut seeds: Vec<u64> = entries.iter().map(|entry| entry.scenario.seed).collect();
            seeds.dedup();
            assert_eq!(seeds.len(), entries.len());
            assert_eq!(entries[0].question, entries[entries.len() - 1].question);
        }
        for nodes in [0, 6] {
            let error = blocks(&scenario, Path::new("/p"), Spread { blocks: 5, nodes, minutes: 9.0 }).unwrap_err();
            assert!(error.what.contains(&format!("5 blocks for {nodes} nodes")), "{error}");
        }
    }

    #[test]
    fn single_blocks_rotate_the_first_configuration() {
        let scenario = scenario("configurations: {a: {}, b: {}, c: {}}", "/p");
        let entries = blocks(&scenario, Path::new("/p"), Spread { blocks: 6, nodes: 6, minutes: 9.0 }).unwrap();
        let order = |entry: &PlanEntry| {
            entry.scenario.configurations.iter().map(|of| of.name.as_str()).collect::<Vec<_>>().concat()
        };
        assert_eq!(entries.iter().map(order).collect::<Vec<_>>(), ["abc", "bca", "cab", "cba", "acb", "bac"]);
    }
}
