//! The nodes of a graph: the objects of a dump, plus statics, stack frames, and kinds of roots, which are not objects.

use crate::classes::Classes;
use crate::classes::Names;
use crate::dominators::NONE;
use crate::graph::References;
use crate::ids::Ids;
use crate::inventory::Inventory;
use crate::layout::Layout;
use crate::records::{Frame, NO_FRAME, Root, RootKind, Type};
use std::collections::HashMap;

/// A node that is not an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extra {
    /// The parent of everything alive.
    Everything,
    JniGlobals,
    /// Objects used as locks.
    Monitors,
    /// Roots whose kind is not in the dump, and roots of threads that are missing from it.
    OtherRoots,
    /// Fields of classes, which dumps omit.
    Reflection,
    /// Locals in a thread's frame; the number is an index into [`Cast::threads`].
    Frame {
        thread: u32,
        frame: u32,
    },
    /// A static field, by class number and index among the statics.
    Static {
        class: u32,
        nth: u32,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// Its object; [`NONE`] for a thread without one.
    pub(crate) node: u32,
    trace: u32,
    /// The nodes of its frames that have locals.
    pub(crate) frames: Vec<u32>,
    pub(crate) name: Option<String>,
}

/// All nodes of a dump, and their kinds.
pub(crate) struct Cast {
    pub(crate) ids: Ids,
    pub(crate) names: Names,
    pub(crate) classes: Classes,
    /// Number of objects; nodes from this number up are [`Cast::extras`].
    pub(crate) objects: u32,
    pub(crate) extras: Vec<Extra>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) thread_of_node: HashMap<u32, u32>,
    /// Nodes by class number; [`NONE`] for classes without one.
    pub(crate) class_nodes: Vec<u32>,
    /// The nodes of unloadable classes, by the loader that holds them.
    pub(crate) loaded: HashMap<u64, Vec<u32>>,
    /// The references of each extra node.
    held: Vec<Vec<u32>>,
    serials: HashMap<u32, u64>,
    frames: HashMap<u64, Frame>,
    traces: HashMap<u32, Vec<u64>>,
    /// The approximate memory that this structure uses.
    pub(crate) bytes: u64,
}

impl Cast {
    /// Builds the nodes from the results of the first pass. The caller has checked that all nodes can be numbered.
    pub(crate) fn new(mut found: Inventory, layout: Layout, id_bytes: u32) -> Self {
        found.ids.finish();
        let bytes = found.bytes();
        let mut classes = Classes::new(found.classes, &found.loaded, &found.names, id_bytes);
        classes.resolve(layout, &found.names);
        let sticky = found.roots.iter().filter(|root| root.kind == RootKind::StickyClass).map(|root| root.object);
        let sticky: Vec<u64> = sticky.collect();
        classes.mark_permanent(&sticky, |loader| found.builtin_loaders.contains(&loader));
        let node_of_class = |id: u64| if id == 0 { NONE } else { found.ids.index(id).unwrap_or(NONE) };
        let class_nodes: Vec<u32> = classes.iter().map(|(_, class)| node_of_class(class.id)).collect();
        let mut loaded: HashMap<u64, Vec<u32>> = HashMap::new();
        for ((_, class), node) in classes.iter().zip(&class_nodes) {
            if !class.is_permanent && *node != NONE {
                loaded.entry(class.loader).or_default().push(*node);
            }
        }
        let mut cast = Self {
            objects: found.ids.count() as u32,
            extras: vec![Extra::Everything, Extra::JniGlobals, Extra::Monitors, Extra::OtherRoots, Extra::Reflection],
            held: vec![Vec::new(); 5],
            ids: found.ids,
            names: found.names,
            classes,
            threads: Vec::new(),
            thread_of_node: HashMap::new(),
            class_nodes,
            loaded,
            serials: found.serials,
            frames: found.frames,
            traces: found.traces,
            bytes,
        };
        cast.add_roots(&found.roots);
        cast.add_statics();
        cast.bytes += cast.extras.len() as u64 * 40;
        cast
    }

    pub(crate) fn nodes(&self) -> usize {
        self.objects as usize + self.extras.len()
    }

    /// The node above everything.
    pub(crate) fn everything(&self) -> u32 {
        self.objects
    }

    /// The meaning of a node that is not an object.
    pub(crate) fn extra(&self, node: u32) -> Option<Extra> {
        self.extras.get(node.checked_sub(self.objects)? as usize).copied()
    }

    fn add_roots(&mut self, roots: &[Root]) {
        let mut by_serial = HashMap::new();
        for root in roots.iter().filter(|root| root.kind == RootKind::Thread) {
            let node = self.ids.index(root.object).unwrap_or(NONE);
            if !by_serial.contains_key(&root.thread) && !self.thread_of_node.contains_key(&node) {
                let number = self.threads.len() as u32;
                by_serial.insert(root.thread, number);
                self.threads.push(Thread { node, trace: root.frame, ..Thread::default() });
                if node != NONE {
                    self.thread_of_node.insert(node, number);
                }
            }
        }
        let mut locals = Vec::new();
        for root in roots {
            let Some(node) = self.ids.index(root.object) else { continue };
            match (root.kind, by_serial.get(&root.thread)) {
                (RootKind::Local, Some(thread)) => locals.push((*thread, root.frame, node)),
                (RootKind::Local | RootKind::Unknown, _) => self.held[3].push(node),
                (RootKind::JniGlobal, _) => self.held[1].push(node),
                (RootKind::Monitor, _) => self.held[2].push(node),
                // A class is held as such; any other object with this root kind is a root of unknown kind.
                (RootKind::StickyClass, _) => self.held[3].push(node),
                (RootKind::Thread, _) => {}
            }
        }
        locals.sort_unstable();
        locals.dedup();
        for group in locals.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (thread, frame, _) = group[0];
            let node = self.nodes() as u32;
            self.threads[thread as usize].frames.push(node);
            self.extras.push(Extra::Frame { thread, frame });
            self.held.push(group.iter().map(|(_, _, node)| *node).collect());
        }
        let classes: std::collections::HashSet<u32> = self.class_nodes.iter().copied().collect();
        self.held[3].retain(|node| !classes.contains(node));
    }

    fn add_statics(&mut self) {
        for (class, one) in self.classes.iter() {
            for (nth, field) in (0..).zip(&one.statics) {
                if field.kind == Type::Reference
                    && field.value != 0
                    && let Some(node) = self.ids.index(field.value)
                {
                    self.extras.push(Extra::Static { class, nth });
                    self.held.push(vec![node]);
                }
            }
        }
    }

    /// Adds all references other than those between objects, which must have been added before. Returns the seeds of
    /// shortest paths: a static explains more than a thread, and a thread more than a JVM root. `reflection` contains
    /// the objects that only classes refer to, in fields that the dump omits.
    pub(crate) fn link(&mut self, references: &mut References, reflection: Vec<u32>) -> Vec<Vec<u32>> {
        self.held[4] = reflection;
        let mut seeds = vec![Vec::new(); 4];
        let mut free_frames: Vec<u32> = Vec::new();
        for thread in &self.threads {
            if thread.node == NONE || references.of(thread.node).next().is_none() {
                free_frames.extend(&thread.frames);
            }
            if thread.node != NONE {
                seeds[1].push(thread.node);
            }
        }
        for (offset, held) in std::mem::take(&mut self.held).into_iter().enumerate().skip(1) {
            let node = self.objects + offset as u32;
            references.begin(node);
            held.into_iter().for_each(|target| references.push(target));
            references.end(node);
        }
        let mut statics = (self.objects..).zip(&self.extras).filter_map(|(node, extra)| match extra {
            Extra::Static { class, .. } => Some((*class, node)),
            _ => None,
        });
        let mut next = statics.next();
        for (class, one) in self.classes.iter() {
            let node = self.class_nodes[class as usize];
            let is_first = node != NONE && references.begin(node);
            while let Some((_, field)) = next.filter(|(of, _)| *of == class) {
                if is_first {
                    references.push(field);
                }
                next = statics.next();
            }
            if is_first {
                let parent = one.parent.map_or(NONE, |parent| self.class_nodes[parent as usize]);
                let kept = [one.loader, one.kept[0], one.kept[1]].into_iter().filter(|id| *id != 0);
                kept.filter_map(|id| self.ids.index(id)).for_each(|target| references.push(target));
                if parent != NONE {
                    references.push(parent);
                }
                references.end(node);
            }
            if node != NONE && one.is_permanent {
                seeds[0].push(node);
            }
        }
        seeds[3].extend((1..5).map(|offset| self.objects + offset));
        seeds[1].extend(free_frames);
        references.begin(self.everything());
        seeds.iter().flatten().for_each(|target| references.push(*target));
        references.end(self.everything());
        seeds
    }

    /// The method and the line of a frame, such as `com.example.Orders.load:88`.
    pub(crate) fn method(&self, thread: u32, frame: u32) -> Option<String> {
        let thread = self.threads.get(thread as usize)?;
        let id = self.traces.get(&thread.trace)?.get(frame as usize).filter(|_| frame != NO_FRAME)?;
        let frame = self.frames.get(id)?;
        let class = self.classes.get(self.classes.find(*self.serials.get(&frame.class_serial)?));
        let line = if frame.line > 0 { format!(":{}", frame.line) } else { String::new() };
        Some(format!("{}.{}{line}", class.name, self.names.get(frame.method)))
    }
}
