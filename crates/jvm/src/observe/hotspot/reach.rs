//! The objects reachable from an object, with their sizes, up to a limit: a lower bound for its retained size. Classes,
//! threads, loaders, and referents of weak references are not entered. An object that moves during the walk is skipped.

use super::super::memory::Memory;
use super::classes::supers;
use super::objects::Objects;
use std::collections::{HashMap, HashSet};

/// Maximum number of objects per walk, and in all walks together; each takes a few microseconds.
const ONE_MAX: usize = 30_000;
const ALL_MAX: usize = 150_000;
/// Maximum number of elements followed per array.
const ELEMENTS_MAX: u32 = 1 << 20;
/// Objects of these classes and their subclasses lead to everything, so they are not entered.
const NOT_ENTERED: [&str; 5] =
    ["java/lang/Thread", "java/lang/ThreadGroup", "java/lang/ClassLoader", "java/lang/Class", "java/lang/Module"];
const REFERENCE: &str = "java/lang/ref/Reference";
const SOFT: &str = "java/lang/ref/SoftReference";

/// How the objects of a class refer to others.
#[derive(Debug, Clone)]
enum Shape {
    Ordinary { bytes: u64, fields: Vec<u64> },
    Objects,
    Numbers,
    NotEntered,
}

/// Counts the reachable objects. An object is counted once, in the walk that reaches it first.
pub(super) struct Reach<'a> {
    memory: &'a dyn Memory,
    objects: &'a Objects,
    super_class: u64,
    shapes: HashMap<u64, Option<Shape>>,
    seen: HashSet<u64>,
}

impl<'a> Reach<'a> {
    /// `super_class` is the offset of the pointer to a class's superclass.
    pub(super) fn new(memory: &'a dyn Memory, objects: &'a Objects, super_class: u64) -> Self {
        Self { memory, objects, super_class, shapes: HashMap::new(), seen: HashSet::new() }
    }

    /// Bytes of the object and everything reachable from it; a lower bound if the limit is reached.
    pub(super) fn bytes(&mut self, from: u64) -> u64 {
        let (mut open, mut bytes, mut left) = (vec![from], 0u64, ONE_MAX);
        while let Some(object) = open.pop() {
            if left == 0 || self.seen.len() >= ALL_MAX {
                break;
            }
            if !self.seen.insert(object) {
                continue;
            }
            left -= 1;
            bytes = bytes.saturating_add(self.enter(object, &mut open).unwrap_or(0));
        }
        bytes
    }

    /// Returns the size of an object, and queues the objects that it refers to.
    fn enter(&mut self, object: u64, open: &mut Vec<u64>) -> Option<u64> {
        let (memory, objects) = (self.memory, self.objects);
        let class = objects.class_of(memory, object)?;
        match self.shape(class)? {
            Shape::NotEntered => None,
            Shape::Numbers => objects.array_size(memory, object),
            Shape::Objects => {
                open.extend(objects.elements(memory, object, ELEMENTS_MAX).unwrap_or_default());
                objects.array_size(memory, object)
            }
            Shape::Ordinary { bytes, fields } => {
                let follow = |offset: &u64| objects.follow_at(memory, object.checked_add(*offset)?);
                open.extend(fields.iter().filter_map(follow));
                Some(*bytes)
            }
        }
    }

    fn shape(&mut self, class: u64) -> Option<&Shape> {
        if !self.shapes.contains_key(&class) {
            let shape = self.read_shape(class);
            self.shapes.insert(class, shape);
        }
        self.shapes.get(&class)?.as_ref()
    }

    fn read_shape(&self, class: u64) -> Option<Shape> {
        let (memory, objects) = (self.memory, self.objects);
        let layout = objects.layout_of(memory, class)?;
        if layout < 0 {
            let is_of_objects = layout.cast_unsigned() >> 30 == 0b10;
            return Some(if is_of_objects { Shape::Objects } else { Shape::Numbers });
        }
        let classes = objects.classes();
        let mut fields = Vec::new();
        let mut is_soft = false;
        for class in supers(memory, self.super_class, class) {
            let name = classes.name_of(memory, class)?;
            if NOT_ENTERED.iter().any(|known| name.is(memory, known)) {
                return Some(Shape::NotEntered);
            }
            is_soft |= name.is(memory, SOFT);
            // The collector's own links lead from one reference to the next.
            match name.is(memory, REFERENCE) {
                true if is_soft => fields.extend(classes.field(memory, class, "referent").map(|field| field.offset)),
                true => {}
                false => fields.extend(classes.instance_references(memory, class)?),
            }
        }
        Some(Shape::Ordinary { bytes: u64::from(layout.cast_unsigned() & !7), fields })
    }
}
