//! From a node back to its root, and the names of the fields on the path.

use crate::cast::{Cast, Extra};
use crate::dominators::NONE;
use crate::holders::{Draft, Title, Words};
use crate::summary::{Holder, HolderKind, PathStep};
use loadline_base::java_names::plain_class;
use std::collections::HashMap;

/// Maximum number of named steps; in a long chain of objects, those nearest to the root.
const STEPS_MAX: usize = 40;
/// Fields between a thread and the values of its thread-locals, which the holder's kind already implies.
const OF_THREAD_LOCALS: [&str; 2] =
    ["java.lang.ThreadLocal$ThreadLocalMap", "java.lang.ThreadLocal$ThreadLocalMap$Entry"];

/// The nodes from a root to the number `end`, root first; at most [`STEPS_MAX`] of them.
pub(crate) fn way(before: &[u32], nodes: &[u32], end: u32) -> Vec<u32> {
    let mut way = std::collections::VecDeque::new();
    let mut at = end;
    // A shortest path contains no node twice, so this loop ends.
    while at != NONE {
        if way.len() == STEPS_MAX {
            way.pop_back();
        }
        way.push_front(nodes[at as usize]);
        let next = before[at as usize];
        if next == at {
            break;
        }
        at = next;
    }
    way.into()
}

/// The references whose fields must be found, by referring object.
pub(crate) fn wanted<'a>(ways: impl Iterator<Item = &'a Vec<u32>>) -> HashMap<u32, Vec<u32>> {
    let mut wanted: HashMap<u32, Vec<u32>> = HashMap::new();
    for way in ways {
        for pair in way.windows(2) {
            wanted.entry(pair[0]).or_default().push(pair[1]);
        }
    }
    wanted
}

fn steps(cast: &Cast, way: &[u32], labels: &HashMap<(u32, u32), (u32, u64)>) -> Vec<PathStep> {
    let mut steps: Vec<PathStep> = Vec::new();
    for (place, pair) in way.windows(2).enumerate() {
        let is_below_class = place > 0 && cast.class_nodes.contains(&pair[0]);
        let step = match (cast.extra(pair[1]), labels.get(&(pair[0], pair[1]))) {
            // The holder's name contains the static at the start of the path.
            (Some(Extra::Static { class, nth }), _) if is_below_class => {
                let class = cast.classes.get(class);
                let field = class.statics.get(nth as usize).map_or(0, |field| field.name);
                PathStep { class: plain_class(&class.name).to_owned(), field: cast.names.get(field) }
            }
            (_, Some((class, field))) => {
                let class = plain_class(&cast.classes.get(*class).name).to_owned();
                PathStep { class, field: cast.names.get(*field) }
            }
            _ => continue,
        };
        let is_of_thread_local = step.class == "java.lang.Thread" && step.field == "threadLocals";
        let is_wrapper = steps
            .last()
            .is_some_and(|last| last.class.starts_with("java.util.") && step.class.starts_with("java.util."));
        if !is_wrapper && !is_of_thread_local && !OF_THREAD_LOCALS.contains(&step.class.as_str()) {
            steps.push(step);
        }
    }
    steps
}

pub(crate) fn holder(
    cast: &Cast,
    draft: Draft,
    end: String,
    way: &[u32],
    labels: &HashMap<(u32, u32), (u32, u64)>,
    words: &Words,
) -> Holder {
    let text = |number: u32| words.get(number).to_owned();
    let threads = |number: u32| {
        let only = draft.thread.and_then(|thread| cast.threads.get(thread as usize));
        only.and_then(|thread| thread.name.clone()).unwrap_or_else(|| text(number))
    };
    let (kind, name) = match draft.title {
        Title::Static(name) => (HolderKind::StaticField, text(name)),
        Title::Frame { threads: of, method } => (HolderKind::Frame { method: text(method) }, threads(of)),
        Title::ThreadLocal { threads: of, key } => (HolderKind::ThreadLocal { key: text(key) }, threads(of)),
        Title::Thread(of) => (HolderKind::Thread, threads(of)),
        Title::ClassLoader(name) => (HolderKind::ClassLoader, text(name)),
        Title::Classes(name) => (HolderKind::Classes, text(name)),
        Title::Small(name) => (HolderKind::Small, text(name)),
        Title::JniGlobal(name) => (HolderKind::JniGlobal, text(name)),
        Title::OtherRoot(name) => (HolderKind::OtherRoot, text(name)),
        Title::Jointly { origin, .. } => (HolderKind::Jointly, text(origin)),
    };
    let path = steps(cast, way, labels);
    let Draft { members, retained, consists_of, .. } = draft;
    Holder { kind, name, members, path, end, retained, consists_of }
}
