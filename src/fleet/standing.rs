//! The state of a plan's entries: their results, and which result of each entry counts. Results may arrive in any
//! order, and repeatedly.

use super::plan::Plan;
use crate::doubt::Merging;
use crate::error::{Error, Result};
use crate::record::{EntryOutcome, EntryResult, StandingRecord, Task};
use crate::units::unix_s;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A result with the directories of the original and its copies.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultCopies {
    /// Not empty, ascending.
    pub folders: Vec<PathBuf>,
    /// The result.
    pub result: EntryResult,
}

/// A plan's results so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    hash: String,
    blocks: Vec<bool>,
    /// The one that counts comes first.
    found: BTreeMap<u32, Vec<ResultCopies>>,
    left_out: BTreeMap<PathBuf, String>,
}

impl Standing {
    /// The state of a plan without results.
    pub fn of(plan: &Plan) -> Self {
        let blocks = plan.entries.iter().map(|entry| is_block(&entry.task)).collect();
        Self { hash: plan.header.hash.clone(), blocks, found: BTreeMap::new(), left_out: BTreeMap::new() }
    }

    /// Adds a result. Results with the same content are one. A result that cannot belong to this plan, although it has
    /// the plan's hash, is left out. Errors: `Request` if it belongs to another plan.
    pub fn add(&mut self, folder: PathBuf, result: EntryResult) -> Result<()> {
        if result.plan != self.hash {
            let (of, plan) = (short(&result.plan), short(&self.hash));
            return Err(Error::request(format!("{} is from a different plan", folder.display()))
                .at(format!("its plan: {of}"))
                .at(format!("this plan: {plan}"))
                .hint("merge one plan's results at a time; `--plan FILE` specifies the plan"));
        }
        match self.blocks.get(result.index as usize) {
            None => {
                let (index, entries) = (result.index, self.blocks.len());
                self.leave_out(folder, format!("has index {index}, but the plan has {entries} entries"));
            }
            Some(block) if *block != is_block(&result.task) => {
                self.leave_out(folder, "does not match the plan's task at its index".to_owned());
            }
            Some(_) => self.insert(folder, result),
        }
        Ok(())
    }

    /// Leaves out the result that counts for an entry; if there are others, the next one counts.
    pub fn leave_out_of(&mut self, index: u32, why: &str) {
        let Some(same) = self.found.get_mut(&index).filter(|same| !same.is_empty()) else { return };
        for folder in same.remove(0).folders {
            self.leave_out(folder, why.to_owned());
        }
    }

    /// Records an unreadable result.
    pub fn leave_out(&mut self, folder: PathBuf, why: String) {
        self.left_out.insert(folder, why);
    }

    fn insert(&mut self, folder: PathBuf, result: EntryResult) {
        let same = self.found.entry(result.index).or_default();
        match same.iter_mut().find(|found| found.result == result) {
            Some(found) => {
                if let Err(at) = found.folders.binary_search(&folder) {
                    found.folders.insert(at, folder);
                }
            }
            None => {
                let at = same.partition_point(|found| order(&found.result, &result) == Ordering::Less);
                same.insert(at, ResultCopies { folders: vec![folder], result });
            }
        }
    }

    /// The result that counts for an entry: the first one to begin, answered ones before others.
    pub fn counts(&self, index: u32) -> Option<&ResultCopies> {
        self.found.get(&index)?.first()
    }

    /// All distinct results, by index.
    pub fn all(&self) -> impl Iterator<Item = &EntryResult> {
        self.found.values().flatten().map(|found| &found.result)
    }

    /// The results that were left out, each with its reason.
    pub fn left_out(&self) -> Vec<Merging> {
        let left_out = |(folder, why): (&PathBuf, &String)| Merging::ResultUnread {
            folder: folder.display().to_string(),
            why: why.clone(),
        };
        self.left_out.iter().map(left_out).collect()
    }

    /// The number of answered entries, and a list of the others.
    pub fn record(&self) -> StandingRecord {
        let mut record = StandingRecord::default();
        for index in 0..self.blocks.len() as u32 {
            match self.counts(index).map(|found| &found.result) {
                None => record.missing.push(index),
                Some(result) if result.outcome == EntryOutcome::Answered => record.answered += 1,
                Some(_) => record.failed.push(index),
            }
            if self.found.get(&index).is_some_and(|same| same.len() > 1) {
                record.double.push(index);
            }
        }
        record
    }
}

pub(super) fn is_block(task: &Task) -> bool {
    matches!(task, Task::Block { .. })
}

/// Orders two results of an entry, independent of the order of arrival.
fn order(one: &EntryResult, other: &EntryResult) -> Ordering {
    let rank = |result: &EntryResult| {
        let began = unix_s(&result.started).unwrap_or(i64::MAX);
        (result.outcome != EntryOutcome::Answered, began, result.started.clone(), result.node.name.clone())
    };
    // Text that differs if the results do.
    let text = |result: &EntryResult| serde_json::to_string(result).unwrap_or_default();
    rank(one).cmp(&rank(other)).then_with(|| text(one).cmp(&text(other)))
}

/// A short prefix of a hash; the text is untrusted.
fn short(hash: &str) -> String {
    hash.chars().take(12).flat_map(char::escape_default).collect()
}
