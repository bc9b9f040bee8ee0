//! A plan as text: JSON lines with a header and one entry per line, sealed by the hash of the entries.

use super::question::hex;
use crate::error::{Error, Result};
use crate::record::{FLEET_PLAN_SCHEMA, PlanEntry, PlanHeader};

/// Work to be done on nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The header with its identity.
    pub header: PlanHeader,
    /// Sorted by index, from 0.
    pub entries: Vec<PlanEntry>,
}

impl Plan {
    /// A plan of these entries, numbering them; `made` is UTC in ISO 8601. Errors: `Request` if there is nothing to do;
    /// `Bug` if an entry cannot be serialized.
    pub fn new(name: &str, made: String, mut entries: Vec<PlanEntry>) -> Result<Self> {
        if entries.is_empty() {
            return Err(Error::request("the plan has no entries").hint("specify at least one service"));
        }
        (0..).zip(&mut entries).for_each(|(index, entry)| entry.index = index);
        let header = PlanHeader {
            schema: FLEET_PLAN_SCHEMA.to_owned(),
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            name: name.to_owned(),
            made,
            entries: entries.len() as u32,
            hash: hex(lines(&entries)?.as_bytes()),
        };
        Ok(Self { header, entries })
    }

    /// The text of the file.
    pub fn text(&self) -> Result<String> {
        Ok(line(&self.header)? + &lines(&self.entries)?)
    }

    /// Parses a file's text. Errors: `Request` if it is not a plan, has a different version, is truncated, or was
    /// edited.
    pub fn parse(text: &str) -> Result<Self> {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let header: serde_json::Value = serde_json::from_str(first).map_err(|cause| no_plan(&cause))?;
        match header["schema"].as_str() {
            Some(FLEET_PLAN_SCHEMA) => {}
            Some(other) => {
                return Err(Error::request(format!(
                    "the plan has the schema `{other}`; this release reads `{FLEET_PLAN_SCHEMA}`"
                ))
                .hint("create the plan with the Loadline version that will run it"));
            }
            None => return Err(Error::request("the first line has no `schema`").hint(MAKES)),
        }
        let header: PlanHeader = serde_json::from_value(header).map_err(|cause| no_plan(&cause))?;
        let found = rest.lines().count();
        if found != header.entries as usize || !rest.ends_with('\n') {
            return Err(Error::request(format!("the plan should have {} entries, but has {found}", header.entries))
                .hint("recreate it; it was truncated or edited"));
        }
        if hex(rest.as_bytes()) != header.hash {
            return Err(Error::request("the entries of the plan do not match its hash")
                .hint("do not edit a plan; change its source, then recreate it"));
        }
        let entry = |(at, line): (usize, &str)| {
            serde_json::from_slice(line.as_bytes()).map_err(|cause| no_plan(&cause).at(format!("line {}", at + 2)))
        };
        let entries: Vec<PlanEntry> = rest.lines().enumerate().map(entry).collect::<Result<_>>()?;
        match (0..).zip(&entries).find(|(at, entry)| entry.index != *at) {
            Some((at, entry)) => {
                Err(Error::request(format!("entry {at} of the plan has the index {}", entry.index)).hint(MAKES))
            }
            None => Ok(Self { header, entries }),
        }
    }

    /// Returns an entry. Errors: `Request` if the plan has no such index.
    pub fn entry(&self, index: u32) -> Result<&PlanEntry> {
        self.entries.get(index as usize).ok_or_else(|| {
            let last = self.entries.len().saturating_sub(1);
            Error::request(format!("the plan has no entry {index}")).hint(format!("its indexes range from 0 to {last}"))
        })
    }
}

const MAKES: &str = "`loadline plan` creates one";

fn no_plan(cause: &serde_json::Error) -> Error {
    Error::request(format!("this is not a plan: {cause}")).hint(MAKES)
}

fn lines(entries: &[PlanEntry]) -> Result<String> {
    entries.iter().map(line).collect()
}

fn line<T: serde::Serialize>(value: &T) -> Result<String> {
    let text = serde_json::to_string(value).map_err(|cause| Error::bug(format!("cannot encode a plan: {cause}")))?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Task, Why};
    use crate::scenario::{Last, PastLine, Scenario, parse};
    use crate::units::Bytes;
    use proptest::prelude::*;
    use std::path::Path;

    fn scenario(seed: u64, path: &str) -> Scenario {
        let text = "name: x\nsubject: {command: [java, -jar, a.jar], port: 80, env: {A: '1'}}\n\
                    target: ['p99<50ms', 'rate>=98%']\nfind: {step: 1%, headroom: 0.1}\n\
                    load: [{steady: {constant: {rate: 0.3, duration: 1234us}, get: /}}]\n";
        Scenario { seed, ..parse(text, &Path::new("/x").join(path), &[]).unwrap() }
    }

    prop_compose! {
        fn entries()(all in prop::collection::vec(
            (any::<String>(), 0.001..1e6_f64, any::<Option<u64>>(), any::<u64>(), any::<String>(), 0..3_u32), 1..6,
        )) -> Vec<PlanEntry> {
            all.into_iter().map(|(name, minutes, bytes, seed, text, kind)| PlanEntry {
                index: 0,
                task: match kind {
                    0 => Task::Prove,
                    1 => Task::Search { why: Why::LongAgo },
                    _ => Task::Block { first: 7, count: u32::MAX },
                },
                minutes,
                declared_bytes: bytes,
                last: bytes.map(|bytes| Last {
                    jdk: Some(text.clone()),
                    past: vec![PastLine { at: text.clone(), limit_bytes: seed }],
                    ..Last::of(Bytes(bytes))
                }),
                question: text.clone(),
                scenario: scenario(seed, &text.replace('\0', "")),
                name,
            }).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_fleet_plan_round_trips(name in any::<String>(), entries in entries()) {
            let plan = Plan::new(&name, "2026-11-22T00:00:00Z".to_owned(), entries).unwrap();
            let text = plan.text().unwrap();
            let read = Plan::parse(&text).unwrap();
            prop_assert_eq!(&read, &plan);
            prop_assert_eq!(read.text().unwrap(), text);
        }

        #[test]
        fn truncated_or_edited_plans_are_rejected(entries in entries(), place in 0.0..1.0_f64, byte in any::<u8>()) {
            let text = Plan::new("x", "2026-11-22T00:00:00Z".to_owned(), entries).unwrap().text().unwrap().into_bytes();
            let at = (place * text.len() as f64) as usize;
            let cut = String::from_utf8_lossy(&text[..at]).into_owned();
            prop_assert!(Plan::parse(&cut).is_err());
            let head = text.iter().position(|byte| *byte == b'\n').unwrap();
            let mut edited = text.clone();
            edited[at] = byte;
            let is_sealed = at > head && edited != text;
            let read = Plan::parse(&String::from_utf8_lossy(&edited));
            prop_assert!(read.is_err() || !is_sealed);
        }
    }

    #[test]
    fn an_invalid_index_error_lists_the_valid_range() {
        let plan = crate::fleet::layout::tests::plan("x", 3);
        assert_eq!(plan.entry(2).unwrap().index, 2);
        let error = plan.entry(3).unwrap_err();
        assert_eq!(
            (error.what.as_str(), error.hint.as_deref()),
            ("the plan has no entry 3", Some("its indexes range from 0 to 2"))
        );
        assert!(Plan::new("x", String::new(), Vec::new()).unwrap_err().what.contains("has no entries"));
    }
}
