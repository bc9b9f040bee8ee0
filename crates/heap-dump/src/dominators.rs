//! Immediate dominators: which object alone keeps another one alive.
//!
//! The algorithm of Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph" (1979), in its simple
//! form. It takes O(edges × log nodes) on any graph, so no dump can make it slow. It does not recurse.

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// A graph numbered by a depth-first walk: node 0 is the root, and a parent has a smaller number than its children.
pub(crate) struct Walked {
    /// The parent of each node in the walk; the root is its own parent.
    pub(crate) parents: Vec<u32>,
    /// The nodes that refer to each node: `sources[starts[node]..starts[node + 1]]`.
    pub(crate) starts: Vec<u32>,
    pub(crate) sources: Vec<u32>,
}

/// The immediate dominator of each node, which has a smaller number; the root is its own.
pub(crate) fn dominators(graph: Walked) -> Vec<u32> {
    let Walked { parents, starts, sources } = graph;
    let count = parents.len() as u32;
    let mut forest = Forest::new(parents);
    // Nodes with the same semidominator form a linked list: its head is in `first`, and its links are in `dominators`.
    let mut first = vec![NONE; count as usize];
    let mut dominators = vec![0u32; count as usize];
    for node in (1..count).rev() {
        let mut semi = node;
        for source in &sources[starts[node as usize] as usize..starts[node as usize + 1] as usize] {
            let best = forest.best(*source, node);
            semi = semi.min(forest.semi[best as usize]);
        }
        forest.semi[node as usize] = semi;
        dominators[node as usize] = std::mem::replace(&mut first[semi as usize], node);
        let parent = forest.ancestors[node as usize];
        let mut waiting = std::mem::replace(&mut first[parent as usize], NONE);
        while waiting != NONE {
            let next = dominators[waiting as usize];
            let best = forest.best(waiting, node - 1);
            let is_less = forest.semi[best as usize] < forest.semi[waiting as usize];
            dominators[waiting as usize] = if is_less { best } else { parent };
            waiting = next;
        }
    }
    if count > 0 {
        dominators[0] = 0;
    }
    for node in 1..count as usize {
        if dominators[node] != forest.semi[node] {
            dominators[node] = dominators[dominators[node] as usize];
        }
    }
    dominators
}

/// The processed nodes, as trees with compressed paths.
struct Forest {
    /// The parent in the walk, or a higher node after path compression.
    ancestors: Vec<u32>,
    semi: Vec<u32>,
    /// The node with the smallest semidominator on the compressed path.
    labels: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    fn new(parents: Vec<u32>) -> Self {
        let count = parents.len() as u32;
        Self { ancestors: parents, semi: (0..count).collect(), labels: (0..count).collect(), path: Vec::new() }
    }

    /// The node with the smallest semidominator on the path up from `node`, among those with numbers above `done`.
    #[inline]
    fn best(&mut self, node: u32, done: u32) -> u32 {
        if node <= done {
            return node;
        }
        if self.ancestors[node as usize] > done {
            self.shorten(node, done);
        }
        self.labels[node as usize]
    }

    fn shorten(&mut self, node: u32, done: u32) {
        let mut at = node;
        while self.ancestors[at as usize] > done {
            self.path.push(at);
            at = self.ancestors[at as usize];
        }
        while let Some(below) = self.path.pop() {
            let above = self.ancestors[below as usize];
            self.take_in(below, above);
            self.ancestors[below as usize] = self.ancestors[above as usize];
        }
    }

    #[inline]
    fn take_in(&mut self, below: u32, above: u32) {
        let (own, other) = (self.labels[below as usize], self.labels[above as usize]);
        if self.semi[other as usize] < self.semi[own as usize] {
            self.labels[below as usize] = other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers the nodes reachable from node 0 of `successors`, and reverses the references.
    fn walk(successors: &[Vec<usize>]) -> (Walked, Vec<usize>) {
        let mut number = vec![None; successors.len()];
        let (mut order, mut parents, mut stack) = (vec![0], vec![0u32], vec![(0, 0)]);
        number[0] = Some(0u32);
        while let Some((node, next)) = stack.pop() {
            let Some(target) = successors[node].get(next) else { continue };
            stack.push((node, next + 1));
            if number[*target].is_none() {
                number[*target] = Some(order.len() as u32);
                parents.push(number[node].unwrap());
                order.push(*target);
                stack.push((*target, 0));
            }
        }
        let (mut starts, mut sources) = (vec![0u32], Vec::new());
        for node in &order {
            for (source, targets) in successors.iter().enumerate() {
                if let Some(source) = number[source] {
                    sources.extend(targets.iter().filter(|target| *target == node).map(|_| source));
                }
            }
            starts.push(sources.len() as u32);
        }
        (Walked { parents, starts, sources }, order)
    }

    /// Nodes that are unreachable from the root without `left_out`.
    fn lost_without(left_out: usize, successors: &[Vec<usize>]) -> Vec<bool> {
        let mut lost = vec![true; successors.len()];
        let mut open = if left_out == 0 { vec![] } else { vec![0] };
        while let Some(node) = open.pop() {
            if node != left_out && std::mem::replace(&mut lost[node], false) {
                open.extend(&successors[node]);
            }
        }
        lost
    }

    fn check(successors: &[Vec<usize>]) {
        let (graph, order) = walk(successors);
        let found = dominators(graph);
        let lost: Vec<Vec<bool>> = (0..successors.len()).map(|node| lost_without(node, successors)).collect();
        for (number, node) in order.iter().enumerate().skip(1) {
            let dominator = order[found[number] as usize];
            assert!(found[number] < number as u32);
            assert!(
                dominator != *node && lost[dominator][*node],
                "{dominator} does not dominate {node}: {successors:?}"
            );
            // Each other dominator of the node dominates the nearest one.
            for other in order.iter().filter(|other| *other != node && **other != dominator && lost[**other][*node]) {
                assert!(lost[*other][dominator], "{other} is nearer to {node} than {dominator}: {successors:?}");
            }
        }
    }

    #[test]
    fn dominators_of_known_graphs_are_found() {
        check(&[vec![]]);
        check(&[vec![1, 2], vec![3], vec![3], vec![4], vec![1]]);
        check(&[vec![1], vec![2], vec![3], vec![1, 0, 3]]);
        // The example in the paper: R A B C D E F G H I J K L.
        let paper = ["123", "4", "145", "67", "a", "8", "9", "9a", "58", "b", "9", "0b", "8"];
        let node = |c: char| c.to_digit(16).unwrap() as usize;
        check(&paper.map(|targets| targets.chars().map(node).collect::<Vec<_>>()));
    }

    #[test]
    fn a_chain_of_a_million_needs_no_deep_stack() {
        let count = 1_000_000u32;
        let parents = (0..count).map(|node| node.saturating_sub(1)).collect();
        // The nodes before and after each node refer to it.
        let mut starts = vec![0u32];
        let mut sources = Vec::new();
        for node in 0..count {
            if node > 0 {
                sources.push(node - 1);
            }
            if node + 1 < count {
                sources.push(node + 1);
            }
            starts.push(sources.len() as u32);
        }
        let found = dominators(Walked { parents, starts, sources });
        assert!((1..count).all(|node| found[node as usize] == node - 1));
    }

    proptest! {
        #[test]
        fn dominators_match_those_found_by_removing_nodes(
            successors in (1usize..24).prop_flat_map(|count| {
                proptest::collection::vec(proptest::collection::vec(0..count, 0..5), count)
            }),
        ) {
            check(&successors);
        }
    }
}
