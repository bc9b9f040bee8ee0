//! The later passes over the file: references, weights, thread names, field names.

use crate::cast::Cast;
use crate::classes::{ClassRole, Coder, Meaning, UNKNOWN, class_of_primitives};
use crate::dominators::NONE;
use crate::graph::References;
use crate::layout::Layout;
use crate::records::{Array, ClassDump, Type, Visitor, number};
use crate::summary::Amount;
use loadline_base::error::{Error, Result};
use std::collections::HashMap;

/// Maximum number of thread-local entries whose keys are recorded; others lack the name of their field.
const KEYS_MAX: usize = 1 << 20;
/// Maximum number of bytes read from a thread's name.
const NAME_BYTES_MAX: usize = 512;

/// A cache of recent class lookups: most objects have one of few classes.
pub(crate) struct Lately<'a> {
    cast: &'a Cast,
    slots: Vec<(u64, u32)>,
}

impl<'a> Lately<'a> {
    pub(crate) fn new(cast: &'a Cast) -> Self {
        Self { cast, slots: vec![(0, UNKNOWN); 1 << 12] }
    }

    /// The number of the class with an identifier.
    #[inline]
    pub(crate) fn find(&mut self, id: u64) -> u32 {
        let slot = &mut self.slots[(id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize];
        if slot.0 != id {
            *slot = (id, self.cast.classes.find(id));
        }
        slot.1
    }
}

/// The second pass: the references.
pub(crate) struct Links<'a> {
    cast: &'a Cast,
    lately: Lately<'a>,
    pub(crate) references: References,
    references_max: u64,
    /// Threads by the strings that contain their names.
    pub(crate) thread_names: HashMap<u32, Vec<u32>>,
    /// Entries of thread-locals with their keys.
    pub(crate) keys: Vec<(u32, u32)>,
    /// Objects that only fields of classes refer to.
    pub(crate) reflection: Vec<u32>,
    /// The array whose elements follow, and its class.
    array: (u32, u32),
    id_bytes: usize,
}

impl<'a> Links<'a> {
    pub(crate) fn new(cast: &'a Cast, references_max: u64, id_bytes: u32) -> Self {
        Self {
            cast,
            lately: Lately::new(cast),
            references: References::new(cast.nodes()),
            references_max,
            thread_names: HashMap::new(),
            keys: Vec::new(),
            reflection: Vec::new(),
            array: (NONE, UNKNOWN),
            id_bytes: id_bytes as usize,
        }
    }

    /// An object holds its class, and thus its loader, unless these are permanent anyway.
    #[inline]
    fn end(&mut self, node: u32, class: u32) -> Result<()> {
        if !self.cast.classes.get(class).is_permanent {
            let class = self.cast.class_nodes[class as usize];
            if class != NONE {
                self.references.push(class);
            }
        }
        self.references.end(node);
        if self.references.count() > self.references_max {
            let count = self.references.count();
            return Err(Error::machine(format!(
                "the heap dump has more than {count} references, the most that fit in the allowed memory"
            )));
        }
        Ok(())
    }

    fn thread(&mut self, node: u32, class: u32, values: &[u8]) {
        let Some(thread) = self.cast.thread_of_node.get(&node) else { return };
        for frame in &self.cast.threads[*thread as usize].frames {
            self.references.push(*frame);
        }
        let name = self.cast.classes.thread_name(class, values, &self.cast.names);
        if let Some(name) = name.and_then(|name| self.cast.ids.index(name)) {
            self.thread_names.entry(name).or_default().push(*thread);
        }
    }
}

impl Visitor for Links<'_> {
    #[inline]
    fn instance(&mut self, id: u64, class: u64, values: &[u8]) -> Result<()> {
        let Some(node) = self.cast.ids.index(id).filter(|_| id != 0) else { return Ok(()) };
        if !self.references.begin(node) {
            return Ok(());
        }
        let class = self.lately.find(class);
        let (cast, references) = (self.cast, &mut self.references);
        cast.classes.references(class, values, |target| {
            if target != 0
                && let Some(target) = cast.ids.index(target)
            {
                references.push(target);
            }
        });
        let one = cast.classes.get(class);
        if one.meaning == Meaning::Thread {
            self.thread(node, class, values);
        }
        if one.meaning == Meaning::ClassLoader {
            let loaded = cast.loaded.get(&id).into_iter().flatten();
            loaded.for_each(|class| self.references.push(*class));
        }
        if one.part == ClassRole::Reflection {
            self.reflection.push(node);
        }
        if one.part == ClassRole::ThreadLocalEntry && self.keys.len() < KEYS_MAX {
            let key = cast.classes.referent(class, values, &cast.names);
            self.keys.extend(key.and_then(|key| cast.ids.index(key)).map(|key| (node, key)));
        }
        self.end(node, class)
    }

    fn array(&mut self, array: Array) -> Result<bool> {
        if array.elements != Type::Reference || array.id == 0 {
            return Ok(false);
        }
        let Some(node) = self.cast.ids.index(array.id) else { return Ok(false) };
        self.array = (node, self.lately.find(array.class));
        Ok(self.references.begin(node))
    }

    fn elements(&mut self, bytes: &[u8]) -> Result<()> {
        for id in bytes.chunks_exact(self.id_bytes).map(number).filter(|id| *id != 0) {
            if let Some(target) = self.cast.ids.index(id) {
                self.references.push(target);
            }
        }
        Ok(())
    }

    fn array_ends(&mut self) -> Result<()> {
        self.end(self.array.0, self.array.1)
    }
}

/// The third pass: classes and weights.
pub(crate) struct Weights<'a> {
    cast: &'a Cast,
    lately: Lately<'a>,
    layout: Layout,
    numbers: &'a [u32],
    /// The class of each number of the walk; [`NONE`] if it is not an object.
    pub(crate) classes: Vec<u32>,
    /// Shallow size of each number of the walk, in units of the layout's alignment.
    pub(crate) units: Vec<u32>,
    /// By class.
    pub(crate) live: Vec<Amount>,
    pub(crate) unreachable: Vec<Amount>,
    seen: Vec<u64>,
    names: &'a HashMap<u32, Vec<u32>>,
    /// Threads by the arrays that contain the characters of their names.
    pub(crate) characters: HashMap<u32, (Vec<u32>, Coder)>,
}

impl<'a> Weights<'a> {
    /// `names` maps the strings that contain thread names to their threads.
    pub(crate) fn new(
        cast: &'a Cast,
        layout: Layout,
        numbers: &'a [u32],
        live: usize,
        names: &'a HashMap<u32, Vec<u32>>,
    ) -> Self {
        Self {
            cast,
            lately: Lately::new(cast),
            layout,
            numbers,
            classes: vec![NONE; live],
            units: vec![0; live],
            live: vec![Amount::default(); cast.classes.len()],
            unreachable: vec![Amount::default(); cast.classes.len()],
            seen: vec![0; cast.nodes().div_ceil(64)],
            names,
            characters: HashMap::new(),
        }
    }

    #[inline]
    fn weigh(&mut self, node: u32, class: u32, bytes: u64) {
        let seen = &mut self.seen[node as usize / 64];
        if *seen >> (node % 64) & 1 == 1 {
            return;
        }
        *seen |= 1 << (node % 64);
        let number = self.numbers[node as usize];
        if number == NONE {
            self.unreachable[class as usize].add(bytes);
        } else {
            self.live[class as usize].add(bytes);
            self.classes[number as usize] = class;
            let units = bytes / u64::from(self.layout.alignment_bytes);
            self.units[number as usize] = u32::try_from(units).unwrap_or(u32::MAX);
        }
    }
}

impl Visitor for Weights<'_> {
    fn class(&mut self, class: ClassDump) -> Result<()> {
        if let Some(node) = self.cast.ids.index(class.id).filter(|_| class.id != 0) {
            let bytes = self.cast.classes.get(self.cast.classes.find(class.id)).object_bytes;
            self.weigh(node, self.cast.classes.class.unwrap_or(UNKNOWN), bytes);
        }
        Ok(())
    }

    #[inline]
    fn instance(&mut self, id: u64, class: u64, values: &[u8]) -> Result<()> {
        let Some(node) = self.cast.ids.index(id).filter(|_| id != 0) else { return Ok(()) };
        let class = self.lately.find(class);
        let one = self.cast.classes.get(class);
        // The mirrors of `int` and similar types are the only classes dumped as instances.
        let bytes = if Some(class) == self.cast.classes.class { one.object_bytes } else { one.instance_bytes };
        self.weigh(node, class, bytes);
        if Some(class) == self.cast.classes.string
            && let Some(threads) = self.names.get(&node)
        {
            let found = self.cast.classes.characters(values, &self.cast.names);
            if let Some((array, coder)) = found.and_then(|(id, coder)| Some((self.cast.ids.index(id)?, coder))) {
                self.characters.entry(array).or_insert((Vec::new(), coder)).0.extend(threads);
            }
        }
        Ok(())
    }

    fn array(&mut self, array: Array) -> Result<bool> {
        let Some(node) = self.cast.ids.index(array.id).filter(|_| array.id != 0) else { return Ok(false) };
        let class = match array.elements {
            Type::Reference => self.lately.find(array.class),
            Type::Primitive(tag) => class_of_primitives(tag),
        };
        self.weigh(node, class, self.layout.array(array.elements, array.count));
        Ok(false)
    }
}

/// The fourth pass: thread names.
pub(crate) struct ThreadNames<'a> {
    pub(crate) cast: &'a Cast,
    pub(crate) wanted: &'a HashMap<u32, (Vec<u32>, Coder)>,
    pub(crate) names: Vec<(u32, String)>,
    current: (u32, u8, Vec<u8>),
}

impl<'a> ThreadNames<'a> {
    pub(crate) fn new(cast: &'a Cast, wanted: &'a HashMap<u32, (Vec<u32>, Coder)>) -> Self {
        Self { cast, wanted, names: Vec::new(), current: (NONE, 0, Vec::new()) }
    }
}

impl Visitor for ThreadNames<'_> {
    fn array(&mut self, array: Array) -> Result<bool> {
        let Type::Primitive(tag @ (5 | 8)) = array.elements else { return Ok(false) };
        let node = self.cast.ids.index(array.id).filter(|node| self.wanted.contains_key(node));
        self.current = (node.unwrap_or(NONE), tag, Vec::new());
        Ok(node.is_some())
    }

    fn elements(&mut self, bytes: &[u8]) -> Result<()> {
        let room = NAME_BYTES_MAX.saturating_sub(self.current.2.len()).min(bytes.len());
        self.current.2.extend_from_slice(&bytes[..room]);
        Ok(())
    }

    fn array_ends(&mut self) -> Result<()> {
        let (node, tag, bytes) = &self.current;
        let Some((threads, coder)) = self.wanted.get(node) else { return Ok(()) };
        let pairs = bytes.as_chunks::<2>().0;
        let name = match (tag, coder) {
            // The elements of a `char[]` are written big-endian; a `byte[]` has the machine's byte order.
            (5, _) => String::from_utf16_lossy(&pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect::<Vec<_>>()),
            (_, Coder::Utf16) => {
                String::from_utf16_lossy(&pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect::<Vec<_>>())
            }
            (_, Coder::Latin1) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        };
        self.names.extend(threads.iter().map(|thread| (*thread, name.clone())));
        Ok(())
    }
}

/// The last pass: the fields by which objects refer to others.
pub(crate) struct Labels<'a> {
    pub(crate) cast: &'a Cast,
    /// For each referring object, the wanted targets, by number and identifier.
    pub(crate) wanted: &'a HashMap<u32, Vec<u32>>,
    /// The declaring class and name of the field, by referring object and target.
    pub(crate) found: HashMap<(u32, u32), (u32, u64)>,
    lately: Lately<'a>,
}

impl<'a> Labels<'a> {
    pub(crate) fn new(cast: &'a Cast, wanted: &'a HashMap<u32, Vec<u32>>) -> Self {
        Self { cast, wanted, found: HashMap::new(), lately: Lately::new(cast) }
    }
}

impl Visitor for Labels<'_> {
    fn instance(&mut self, id: u64, class: u64, values: &[u8]) -> Result<()> {
        let Some(node) = self.cast.ids.index(id) else { return Ok(()) };
        let Some(targets) = self.wanted.get(&node) else { return Ok(()) };
        let class = self.lately.find(class);
        let mut ids = Vec::new();
        self.cast.classes.references(class, values, |target| ids.push(target));
        for id in ids.into_iter().filter(|id| *id != 0) {
            if let Some(target) = self.cast.ids.index(id).filter(|target| targets.contains(target))
                && let Some(label) = self.cast.classes.field_with(class, values, id)
            {
                self.found.entry((node, target)).or_insert(label);
            }
        }
        Ok(())
    }
}
