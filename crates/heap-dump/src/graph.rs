//! References among nodes: compact lists of references, the walk from the roots, and shortest paths to nodes.

use crate::dominators::{NONE, Walked};

/// Marks an object's last reference, which makes a count unnecessary.
const LAST: u32 = 1 << 31;
/// Node numbers are below this.
pub(crate) const NODES_MAX: u64 = LAST as u64 - 1;
/// Positions in the list of references are below this.
pub(crate) const REFERENCES_MAX: u64 = u32::MAX as u64 - 1;

/// References of all nodes, in insertion order.
pub(crate) struct References {
    /// The position of each node's first reference; [`NONE`] if it has none.
    starts: Vec<u32>,
    targets: Vec<u32>,
    open: bool,
}

impl References {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { starts: vec![NONE; nodes], targets: Vec::new(), open: false }
    }

    pub(crate) fn count(&self) -> u64 {
        self.targets.len() as u64
    }

    pub(crate) fn nodes(&self) -> usize {
        self.starts.len()
    }

    /// Begins a node's references; `false` if it already has some, as in a dump that contains an object twice.
    #[inline]
    pub(crate) fn begin(&mut self, node: u32) -> bool {
        let start = &mut self.starts[node as usize];
        let is_new = *start == NONE;
        if is_new {
            *start = self.targets.len() as u32;
            self.open = true;
        }
        is_new
    }

    #[inline]
    pub(crate) fn push(&mut self, target: u32) {
        self.targets.push(target);
    }

    /// Ends a node's references, of which there may be none.
    #[inline]
    pub(crate) fn end(&mut self, node: u32) {
        if self.starts[node as usize] as usize == self.targets.len() {
            self.starts[node as usize] = NONE;
        } else if let Some(last) = self.targets.last_mut().filter(|_| self.open) {
            *last |= LAST;
        }
        self.open = false;
    }

    pub(crate) fn of(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        Targets { targets: &self.targets, at: self.starts[node as usize] }
    }

    /// Walks from `root`, depth first.
    pub(crate) fn walk(&self, root: u32) -> DepthFirstWalk {
        let mut numbers = vec![NONE; self.nodes()];
        let (mut nodes, mut parents) = (vec![root], vec![0u32]);
        numbers[root as usize] = 0;
        // A node, and the position at which to continue in its references.
        let mut stack = vec![(root, self.starts[root as usize])];
        while let Some((node, at)) = stack.pop() {
            let mut targets = Targets { targets: &self.targets, at };
            let number = numbers[node as usize];
            while let Some(target) = targets.next() {
                if numbers[target as usize] == NONE {
                    numbers[target as usize] = nodes.len() as u32;
                    nodes.push(target);
                    parents.push(number);
                    if targets.at != NONE {
                        stack.push((node, targets.at));
                    }
                    if self.starts[target as usize] != NONE {
                        stack.push((target, self.starts[target as usize]));
                    }
                    break;
                }
            }
        }
        DepthFirstWalk { nodes, numbers, parents }
    }

    /// For each node, the previous one on a shortest path from a seed; [`NONE`] if there is no path. A seed is its own
    /// predecessor. Seeds in the first list are at distance 0, those in the second at distance 1, and so on.
    pub(crate) fn shortest_ways(&self, seeds: &[Vec<u32>]) -> Vec<u32> {
        let mut before = vec![NONE; self.nodes()];
        let (mut front, mut next) = (Vec::new(), Vec::new());
        let mut later = seeds.iter();
        loop {
            let here = later.next();
            for seed in here.into_iter().flatten() {
                if before[*seed as usize] == NONE {
                    before[*seed as usize] = *seed;
                    front.push(*seed);
                }
            }
            if front.is_empty() && here.is_none() {
                return before;
            }
            for node in front.drain(..) {
                for target in self.of(node) {
                    if before[target as usize] == NONE {
                        before[target as usize] = node;
                        next.push(target);
                    }
                }
            }
            std::mem::swap(&mut front, &mut next);
        }
    }

    pub(crate) fn turned_round(self, numbers: &[u32], parents: Vec<u32>) -> Walked {
        let count = parents.len();
        let mut starts = vec![0u32; count + 1];
        let of_numbers = || (0..self.nodes() as u32).filter(|node| numbers[*node as usize] != NONE);
        for node in of_numbers() {
            for target in self.of(node) {
                starts[numbers[target as usize] as usize] += 1;
            }
        }
        let mut sum = 0u32;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut sources = vec![0u32; sum as usize];
        for node in of_numbers() {
            for target in self.of(node) {
                let end = &mut starts[numbers[target as usize] as usize];
                *end -= 1;
                sources[*end as usize] = numbers[node as usize];
            }
        }
        Walked { parents, starts, sources }
    }
}

pub(crate) struct DepthFirstWalk {
    /// The node of each number, and the number of each node; [`NONE`] if unreachable.
    pub(crate) nodes: Vec<u32>,
    pub(crate) numbers: Vec<u32>,
    /// The number of each number's parent in the walk.
    pub(crate) parents: Vec<u32>,
}

/// A node's references starting at a position; `at` is [`NONE`] after the last one.
struct Targets<'a> {
    targets: &'a [u32],
    at: u32,
}

impl Iterator for Targets<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let target = *self.targets.get(self.at as usize)?;
        self.at = if target & LAST == 0 { self.at + 1 } else { NONE };
        Some(target & !LAST)
    }
}
