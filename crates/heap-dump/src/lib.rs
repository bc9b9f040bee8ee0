//! Reads HotSpot heap dumps (HPROF, from `jcmd PID GC.heap_dump FILE`) and finds the holders of memory.
//!
//! [`read`] makes five passes over the file, without loading it into memory: objects, references, sizes, thread names,
//! and the names of fields on the path to the largest holders. In between, it computes dominators: an object dominates
//! another if each path from the roots leads through it.
//!
//! A weak or phantom reference does not hold its referent. A soft reference does, because the JVM keeps the referent
//! until memory is short. A finalizer does too, until it has run.
//!
//! This crate must not know about JVMs, trials, or reports.

mod budget;
mod cast;
mod classes;
mod dominators;
mod graph;
mod holders;
mod ids;
mod inventory;
mod layout;
mod passes;
mod paths;
mod records;
mod source;
mod summary;

use budget::Budget;
use cast::Cast;
use dominators::NONE;
use graph::DepthFirstWalk;
use inventory::Inventory;
pub use layout::{Header, Layout, References};
use loadline_base::error::{Error, Result, plain};
use loadline_base::units::grouped;
use passes::{Labels, Links, ThreadNames, Weights};
use records::{Head, PassEnd, Visitor};
use std::collections::HashMap;
use std::fs::File;
pub use summary::{Amount, ClassAmount, Holder, HolderKind, PathStep, Summary};

/// Facts that a dump does not contain, and limits for reading.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How the JVM that wrote the dump lays out objects.
    pub layout: Layout,
    /// The estimated maximum memory for reading, about 45 bytes per object in the dump.
    pub memory_bytes_max: u64,
    /// The maximum number of holders returned.
    pub holders_max: usize,
}

impl Default for Settings {
    /// A JVM with default flags, 1 GiB, 40 holders.
    fn default() -> Self {
        Self { layout: Layout::default(), memory_bytes_max: 1 << 30, holders_max: 40 }
    }
}

/// Reads a dump from the beginning of `file`, regardless of its cursor position.
///
/// If a dump is truncated or damaged after its first object, the summary covers the part before that and says so. Fails
/// if the file cannot be read, is not a heap dump, or contains no complete object. Also fails if it has more objects or
/// references than `memory_bytes_max` allows, or than 31 bits can number (the message has the values). An object
/// alignment that HotSpot does not support is an error too.
pub fn read(file: &File, settings: &Settings) -> Result<Summary> {
    let length = file.metadata().map_err(|cause| cannot_read(&cause))?.len();
    if !settings.layout.is_known() {
        let alignment = settings.layout.alignment_bytes;
        return Err(Error::request(format!(
            "the object alignment is {alignment} bytes; it must be a power of two from 4 to 256"
        )));
    }
    let head = records::head(file, length)?;
    let dump = Dump { file, length, head, settings };
    let (found, ended) = dump.inventory()?;
    let incomplete = match ended {
        PassEnd::Whole => None,
        PassEnd::Cut { at, of } => Some(format!("truncated after {} of {} bytes", grouped(at), grouped(of))),
        PassEnd::Damaged { at, why } => {
            Some(format!("damaged after {} of {} bytes: {why}", grouped(at), grouped(length)))
        }
    };
    if found.ids.count() == 0 {
        let why = incomplete.map_or_else(String::new, |why| format!(": it is {why}"));
        return Err(Error::subject(format!("the heap dump contains no objects{why}")));
    }
    dump.summary(found, incomplete)
}

fn cannot_read(cause: &std::io::Error) -> Error {
    Error::machine(format!("cannot read the heap dump: {}", plain(cause)))
}

struct Dump<'a> {
    file: &'a File,
    length: u64,
    head: Head,
    settings: &'a Settings,
}

struct DominatorTree {
    nodes: Vec<u32>,
    dominators: Vec<u32>,
    /// The predecessor of each number on a shortest path from the roots.
    before: Vec<u32>,
    thread_names: HashMap<u32, Vec<u32>>,
    keys: Vec<(u32, u32)>,
}

impl Dump<'_> {
    fn scan(&self, visitor: &mut impl Visitor) -> Result<PassEnd> {
        records::scan(self.file, self.length, self.head, visitor)
    }

    /// The first pass. It expects objects at multiples of 8 bytes, as in every heap, or of 1 if that does not fit.
    fn inventory(&self) -> Result<(Inventory, PassEnd)> {
        let budget = Budget(self.settings.memory_bytes_max);
        for shift in [3, 0] {
            let mut found = Inventory::new(shift, budget);
            match self.scan(&mut found) {
                Err(_) if found.is_too_coarse && shift > 0 => {}
                ended => return ended.map(|ended| (found, ended)),
            }
        }
        Err(Error::bug("no alignment fits the objects in the heap dump"))
    }

    fn summary(&self, found: Inventory, incomplete: Option<String>) -> Result<Summary> {
        let settings = self.settings;
        let budget = Budget(settings.memory_bytes_max);
        let (objects, roots) = (found.ids.count(), found.roots.len() as u64);
        let statics: u64 = found.classes.iter().map(|class| class.statics.len() as u64).sum();
        let nodes = objects + roots + statics + 5;
        if nodes > graph::NODES_MAX {
            let (objects, most) = (grouped(objects), grouped(graph::NODES_MAX));
            return Err(Error::machine(format!("the heap dump has {objects} objects; the maximum is {most}")));
        }
        budget
            .hold(Budget::peak(found.bytes(), nodes))
            .map_err(|error| error.at(format!("it has {} objects", grouped(objects))))?;
        let mut cast = Cast::new(found, settings.layout, self.head.id_bytes);
        let found = self.dominators(&mut cast, budget)?;
        let live = found.nodes.len();
        let mut numbers = vec![NONE; cast.nodes()];
        (0..).zip(&found.nodes).for_each(|(number, node)| numbers[*node as usize] = number);
        let mut weights = Weights::new(&cast, settings.layout, &numbers, live, &found.thread_names);
        self.scan(&mut weights)?;
        let Weights { classes, units, live, unreachable, characters, .. } = weights;
        let number = |(entry, key): &(u32, u32)| (numbers[*entry as usize], numbers[*key as usize]);
        let keys = found.keys.iter().map(number).filter(|(entry, key)| *entry != NONE && *key != NONE).collect();
        drop(numbers);
        let mut names = ThreadNames::new(&cast, &characters);
        if !characters.is_empty() {
            self.scan(&mut names)?;
        }
        for (thread, name) in names.names {
            cast.threads[thread as usize].name = Some(name);
        }
        let holders = self.holders(&cast, &found, &classes, &units, &keys)?;
        let by_class = |amounts: &[Amount]| {
            let named = cast.classes.iter().zip(amounts).filter(|(_, amount)| amount.objects > 0);
            let mut all: Vec<_> =
                named.map(|((_, class), amount)| ClassAmount { class: class.name.clone(), amount: *amount }).collect();
            holders::sort(&mut all);
            all
        };
        let sum = |amounts: &[Amount]| {
            let mut sum = Amount::default();
            amounts.iter().for_each(|amount| sum += *amount);
            sum
        };
        Ok(Summary {
            live: sum(&live),
            unreachable: sum(&unreachable),
            classes: by_class(&live),
            unreachable_classes: by_class(&unreachable),
            holders,
            threads: cast.threads.len() as u64,
            incomplete,
        })
    }

    /// The second pass, and everything that uses only references.
    fn dominators(&self, cast: &mut Cast, budget: Budget) -> Result<DominatorTree> {
        let nodes = cast.nodes() as u64;
        let most = budget.references_max(cast.bytes, nodes).min(graph::REFERENCES_MAX - nodes.min(graph::NODES_MAX));
        let mut links = Links::new(cast, most, self.head.id_bytes);
        self.scan(&mut links)?;
        let Links { mut references, thread_names, keys, reflection, .. } = links;
        let mut seeds = cast.link(&mut references, reflection);
        let walk = references.walk(cast.everything());
        let DepthFirstWalk { nodes, numbers, parents } = walk;
        // A static explains more than the path to its class through loaders and threads.
        seeds[0] = cast
            .class_nodes
            .iter()
            .filter(|node| **node != NONE && numbers[**node as usize] != NONE)
            .copied()
            .collect();
        let before = {
            let before = references.shortest_ways(&seeds);
            let number = |node: u32| if node == NONE { NONE } else { numbers[node as usize] };
            nodes.iter().map(|node| number(before[*node as usize])).collect()
        };
        let walked = references.turned_round(&numbers, parents);
        drop(numbers);
        let dominators = dominators::dominators(walked);
        Ok(DominatorTree { nodes, dominators, before, thread_names, keys })
    }

    fn holders(
        &self,
        cast: &Cast,
        found: &DominatorTree,
        classes: &[u32],
        units: &[u32],
        keys: &HashMap<u32, u32>,
    ) -> Result<Vec<Holder>> {
        let tree = holders::Tree {
            cast,
            nodes: &found.nodes,
            dominators: &found.dominators,
            classes,
            units,
            unit_bytes: u64::from(self.settings.layout.alignment_bytes),
            before: &found.before,
            keys,
        };
        let (drafts, words) = holders::holders(&tree, self.settings.holders_max);
        let ways: Vec<Vec<u32>> =
            drafts.iter().map(|draft| paths::way(&found.before, &found.nodes, draft.end)).collect();
        let wanted = paths::wanted(ways.iter());
        let mut labels = Labels::new(cast, &wanted);
        if !wanted.is_empty() {
            self.scan(&mut labels)?;
        }
        let end = |number: u32| match classes.get(number as usize).copied() {
            None | Some(NONE) => String::new(),
            Some(class) => cast.classes.get(class).name.clone(),
        };
        let told = drafts.into_iter().zip(&ways).map(|(draft, way)| {
            let end = end(draft.end);
            paths::holder(cast, draft, end, way, &labels.found, &words)
        });
        Ok(told.collect())
    }
}
