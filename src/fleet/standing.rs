//! The standing of the entries of a plan: which results there are, and which one of each entry counts. Results may come
//! in any order and any number of times.

use super::plan::Plan;
use crate::doubt::Merging;
use crate::error::{Error, Result};
use crate::record::{EntryOutcome, EntryResult, StandingRecord, Task};
use crate::units::unix_s;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A result with the folders that it lies in: one, and those that it was copied to.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultCopies {
    /// At least one, ascending.
    pub folders: Vec<PathBuf>,
    /// The result itself.
    pub result: EntryResult,
}

/// The results of a plan so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    hash: String,
    /// Whether each entry is a block.
    blocks: Vec<bool>,
    /// The one that counts first.
    found: BTreeMap<u32, Vec<ResultCopies>>,
    left_out: BTreeMap<PathBuf, String>,
}

impl Standing {
    /// Returns the standing of a plan of which no result is known.
    pub fn of(plan: &Plan) -> Self {
        let blocks = plan.entries.iter().map(|entry| is_block(&entry.task)).collect();
        Self { hash: plan.header.hash.clone(), blocks, found: BTreeMap::new(), left_out: BTreeMap::new() }
    }

    /// Takes a result in. One of the same content as another is that other; one that cannot be of this plan, though it
    /// says its hash, is left out.
    ///
    /// # Errors
    /// `Request` where it is of another plan.
    pub fn add(&mut self, folder: PathBuf, result: EntryResult) -> Result<()> {
        if result.plan != self.hash {
            let (of, plan) = (short(&result.plan), short(&self.hash));
            return Err(Error::request(format!("{} is a result of another plan", folder.display()))
                .at(format!("its plan: {of}"))
                .at(format!("this plan: {plan}"))
                .hint("merge the results of one plan, each plan into its own folder; `--plan FILE` names it"));
        }
        match self.blocks.get(result.index as usize) {
            None => {
                let (index, entries) = (result.index, self.blocks.len());
                self.leave_out(folder, format!("says index {index}, and the plan has {entries} entries"));
            }
            Some(block) if *block != is_block(&result.task) => {
                self.leave_out(folder, "says another task than the plan has at its index".to_owned());
            }
            Some(_) => self.insert(folder, result),
        }
        Ok(())
    }

    /// Leaves out the result of an entry that counts; of several another one counts then.
    pub fn leave_out_of(&mut self, index: u32, why: &str) {
        let Some(same) = self.found.get_mut(&index).filter(|same| !same.is_empty()) else { return };
        for folder in same.remove(0).folders {
            self.leave_out(folder, why.to_owned());
        }
    }

    /// Notes a result that cannot be read.
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

    /// The result of an entry that counts: of several the answered one that began first, else the first that began.
    pub fn counts(&self, index: u32) -> Option<&ResultCopies> {
        self.found.get(&index)?.first()
    }

    /// Every result once, by index.
    pub fn all(&self) -> impl Iterator<Item = &EntryResult> {
        self.found.values().flatten().map(|found| &found.result)
    }

    /// Returns the results that were left out, and why.
    pub fn left_out(&self) -> Vec<Merging> {
        let left_out = |(folder, why): (&PathBuf, &String)| Merging::ResultUnread {
            folder: folder.display().to_string(),
            why: why.clone(),
        };
        self.left_out.iter().map(left_out).collect()
    }

    /// Counts the entries that have an answer, and lists those that have none.
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

/// Whether a task is one of a comparison.
pub(super) fn is_block(task: &Task) -> bool {
    matches!(task, Task::Block { .. })
}

/// Which of two results of an entry comes first, whatever the order in which they were found.
fn order(one: &EntryResult, other: &EntryResult) -> Ordering {
    let rank = |result: &EntryResult| {
        let began = unix_s(&result.started).unwrap_or(i64::MAX);
        (result.outcome != EntryOutcome::Answered, began, result.started.clone(), result.node.name.clone())
    };
    // A text that differs wherever the results do.
    let text = |result: &EntryResult| serde_json::to_string(result).unwrap_or_default();
    rank(one).cmp(&rank(other)).then_with(|| text(one).cmp(&text(other)))
}

/// Cuts a hash to as much as tells it from others; foreign text may be anything.
fn short(hash: &str) -> String {
    hash.chars().take(12).flat_map(char::escape_default).collect()
}
