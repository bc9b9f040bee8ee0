//! The blocks of a comparison that several nodes made, as if one had made them: numbered consecutively, judged
//! together. A block never spans nodes, so what is compared within blocks is compared within nodes.

use super::Judgement;
use crate::archive::Archive;
use crate::doubt::{Comparing, Doubt};
use crate::record::{ArchiveRecord, Conditions, Document, DoubtRecord, Trial, each_once};
use loadline_base::order::Order as _;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One node's part of a comparison: its archives, in the order in which they were made.
#[derive(Debug, Clone)]
pub struct NodeBlocks {
    /// The name of the node.
    pub name: String,
    /// The first of its blocks, in the comparison.
    pub first: u32,
    /// The number of blocks it was to make; further blocks repeat some of them.
    pub count: u32,
    /// The archives, each with the folder that it lies in.
    pub archives: Vec<(PathBuf, Archive)>,
}

/// The blocks of several nodes as those of one.
#[derive(Debug, Clone)]
pub struct AllBlocks {
    /// The conditions of the first archive, with the command that merged them.
    pub conditions: Conditions,
    /// The archives, each with what held on its node, in the order of their blocks.
    pub archives: Vec<ArchiveRecord>,
    /// The folders of these.
    pub folders: Vec<PathBuf>,
    /// The trials of all archives, numbered consecutively.
    pub trials: Vec<Trial>,
    /// The data that the archives lack, in words.
    pub missing: Vec<String>,
    /// Reasons why a difference within blocks may not be one of the configurations.
    doubts: Vec<Doubt>,
}

impl AllBlocks {
    /// Puts together what nodes made of a comparison of so many blocks, in any order; `command` is what merges them.
    /// `None` where nothing was made.
    pub fn of(mut nodes: Vec<NodeBlocks>, planned: u32, command: &str) -> Option<Self> {
        nodes.order_by(|one, other| (one.first, &one.name).cmp(&(other.first, &other.name)));
        let (_, first) = nodes.iter().find_map(|node| node.archives.first())?;
        let conditions = Conditions { command: command.to_owned(), ..first.conditions.clone() };
        let (archives, folders, trials, missing) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut all = Self { conditions, archives, folders, trials, missing, doubts: differences(&nodes) };
        let mut beyond = planned;
        for node in nodes {
            all.add(node, &mut beyond);
        }
        Some(all)
    }

    /// Adds the archives of a node; `beyond` is the next number of a block outside the plan.
    fn add(&mut self, node: NodeBlocks, beyond: &mut u32) {
        // Blocks outside the plan: their number on the node, with their number in the comparison.
        let mut more: BTreeMap<u32, u32> = BTreeMap::new();
        let mut number = |own: u32| match own < node.count {
            true => node.first.saturating_add(own),
            false => *more.entry(own).or_insert_with(|| {
                let number = *beyond;
                *beyond = number.saturating_add(1);
                number
            }),
        };
        let mut block_from = 0;
        for (folder, archive) in node.archives {
            let index_from = self.trials.len() as u32;
            let next = archive.trials.iter().map(|trial| trial.block.saturating_add(1)).max().unwrap_or(0);
            let name = match folder.file_name() {
                Some(own) => format!("{}/{}", node.name, own.to_string_lossy()),
                None => node.name.clone(),
            };
            for (at, mut trial) in (index_from..).zip(archive.trials) {
                trial.index = at;
                trial.block = number(trial.block.saturating_add(block_from));
                trial.repeats = trial.repeats.map(|repeated| number(repeated.saturating_add(block_from)));
                trial.folder = trial.folder.map(|folder| format!("{name}/{folder}"));
                self.trials.push(trial);
            }
            self.missing.extend(archive.missing.iter().map(|what| format!("{name}: {what}")));
            self.archives.push(ArchiveRecord { name, index_from, conditions: archive.conditions });
            self.folders.push(folder);
            block_from = next.saturating_add(block_from);
        }
    }
}

impl Judgement {
    /// Returns the document of blocks that several nodes made: the same as if one had made them.
    pub fn of_blocks(&self, all: &AllBlocks) -> Document {
        let mut document = self.document(&all.conditions, &all.trials);
        document.archives.clone_from(&all.archives);
        document.doubts.extend(all.doubts.iter().cloned().map(DoubtRecord::from));
        document
    }
}

/// Returns a doubt if the archives differ in more than their nodes: in their files, or in their Loadline.
fn differences(nodes: &[NodeBlocks]) -> Vec<Doubt> {
    let archives = || nodes.iter().flat_map(|node| &node.archives).map(|(_, archive)| archive);
    let mut differences = Vec::new();
    let mut differ = |what: String, found: Vec<&str>| {
        if found.len() > 1 {
            differences.push(format!("{what}: {}", found.join(" | ")));
        }
    };
    differ("Loadline".to_owned(), each_once(archives().map(|archive| archive.conditions.loadline.as_str())));
    let trials = || archives().flat_map(|archive| &archive.trials);
    for name in each_once(trials().map(|trial| trial.configuration.as_str())) {
        let own = trials().filter(|trial| trial.configuration == name);
        // A trial that does not say what was read differs in nothing that is known.
        let hashes = own.filter_map(|trial| trial.inputs.as_deref()).map(|hash| hash.get(..12).unwrap_or(hash));
        differ(format!("files of {name} (SHA-256)"), each_once(hashes));
    }
    let differ = Doubt::Comparing(Comparing::ArchivesDiffer { differences: differences.clone() });
    (!differences.is_empty()).then_some(differ).into_iter().collect()
}
