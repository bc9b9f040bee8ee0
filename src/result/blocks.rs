//! Combines a comparison's blocks of several nodes as if one node had run them: renumbered and judged together. Blocks
//! never span nodes, so comparisons within blocks are within nodes.

use super::Judgement;
use crate::archive::Archive;
use crate::doubt::{Comparing, Doubt};
use crate::record::{ArchiveRecord, Conditions, Document, DoubtRecord, Trial, each_once};
use loadline_base::order::Order as _;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One node's part of a comparison: its archives in order of creation.
#[derive(Debug, Clone)]
pub struct NodeBlocks {
    /// The node's name.
    pub name: String,
    /// Its first block's index in the comparison.
    pub first: u32,
    /// The number of planned blocks; further ones are repeats.
    pub count: u32,
    /// The archives with their directories.
    pub archives: Vec<(PathBuf, Archive)>,
}

/// The blocks of several nodes as one comparison.
#[derive(Debug, Clone)]
pub struct AllBlocks {
    /// The conditions of the first archive, with the merge command.
    pub conditions: Conditions,
    /// The archives with their nodes' conditions, sorted by block.
    pub archives: Vec<ArchiveRecord>,
    /// The archives' directories.
    pub folders: Vec<PathBuf>,
    /// The renumbered trials of all archives.
    pub trials: Vec<Trial>,
    /// Descriptions of missing data.
    pub missing: Vec<String>,
    /// Reasons why a difference within blocks may not be due to the configurations.
    doubts: Vec<Doubt>,
}

impl AllBlocks {
    /// Combines the nodes' parts, in any order, of a comparison with this many blocks; `command` is the merge command.
    /// `None` if there are no trials.
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

    /// Adds a node's archives; `beyond` is the next block index outside the plan.
    fn add(&mut self, node: NodeBlocks, beyond: &mut u32) {
        // Blocks outside the plan: from their index on the node to their index in the comparison.
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
    /// The document of combined blocks, the same as if one node had run them.
    pub fn of_blocks(&self, all: &AllBlocks) -> Document {
        let mut document = self.document(&all.conditions, &all.trials);
        document.archives.clone_from(&all.archives);
        document.doubts.extend(all.doubts.iter().cloned().map(DoubtRecord::from));
        document
    }
}

/// A doubt if the archives differ in more than their nodes: in input files, or in Loadline's version.
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
        // A trial without input hashes has no known difference.
        let hashes = own.filter_map(|trial| trial.inputs.as_deref()).map(|hash| hash.get(..12).unwrap_or(hash));
        differ(format!("files of {name} (SHA-256)"), each_once(hashes));
    }
    let differ = Doubt::Comparing(Comparing::ArchivesDiffer { differences: differences.clone() });
    (!differences.is_empty()).then_some(differ).into_iter().collect()
}
