//! The first pass: objects, names, classes, stacks, and roots.

use crate::budget::Budget;
use crate::classes::Names;
use crate::ids::Ids;
use crate::records::{Array, ClassDump, Frame, Root, Visitor};
use loadline_base::error::{Error, Result};
use std::collections::HashMap;

/// Loaders that live as long as the JVM: the application's and the platform's, both in JDK 9 and newer and in JDK 8.
const BUILTIN_LOADERS: [&str; 5] = [
    "jdk/internal/loader/ClassLoaders$AppClassLoader",
    "jdk/internal/loader/ClassLoaders$PlatformClassLoader",
    "jdk/internal/loader/ClassLoaders$BootClassLoader",
    "sun/misc/Launcher$AppClassLoader",
    "sun/misc/Launcher$ExtClassLoader",
];

/// The results of the first pass.
#[derive(Default)]
pub(crate) struct Inventory {
    pub(crate) ids: Ids,
    pub(crate) names: Names,
    pub(crate) classes: Vec<ClassDump>,
    /// The names of loaded classes by class identifier.
    pub(crate) loaded: HashMap<u64, u64>,
    /// Classes by the serial numbers used in frames.
    pub(crate) serials: HashMap<u32, u64>,
    pub(crate) frames: HashMap<u64, Frame>,
    pub(crate) traces: HashMap<u32, Vec<u64>>,
    pub(crate) roots: Vec<Root>,
    /// Objects of one of the classes in [`BUILTIN_LOADERS`].
    pub(crate) builtin_loaders: Vec<u64>,
    /// Whether an identifier is not a multiple of the granule, which ends the pass with an error.
    pub(crate) is_too_coarse: bool,
    builtin_classes: Vec<u64>,
    fields: u64,
    traced: u64,
    budget: Budget,
    /// Number of additions until the next budget check.
    until_look: u32,
}

impl Inventory {
    pub(crate) fn new(shift: u32, budget: Budget) -> Self {
        Self { ids: Ids::new(shift), budget, ..Self::default() }
    }

    /// The approximate memory that this structure uses.
    pub(crate) fn bytes(&self) -> u64 {
        let maps = self.loaded.capacity() * 17 + self.serials.capacity() * 13 + self.frames.capacity() * 41;
        let lists = self.roots.capacity() * size_of::<Root>() + self.classes.capacity() * size_of::<ClassDump>();
        let fields = self.fields * 40 + self.traced * 8 + self.traces.capacity() as u64 * 29;
        self.ids.bytes() + self.names.bytes() + (maps + lists) as u64 + fields
    }

    fn look(&mut self) -> Result<()> {
        if self.until_look == 0 {
            self.until_look = 4096;
            self.budget.hold(self.bytes())?;
        }
        self.until_look -= 1;
        Ok(())
    }

    #[inline]
    fn object(&mut self, id: u64) -> Result<()> {
        // The format writes null as 0.
        if id != 0 && self.ids.insert(id).is_err() {
            self.is_too_coarse = true;
            return Err(Error::bug(format!("the object {id:#x} is not aligned like the others")));
        }
        self.look()
    }
}

impl Visitor for Inventory {
    fn name(&mut self, id: u64, text: &[u8]) -> Result<()> {
        self.names.insert(id, text);
        self.look()
    }

    fn load_class(&mut self, serial: u32, class: u64, name: u64) -> Result<()> {
        self.loaded.insert(class, name);
        self.serials.insert(serial, class);
        if BUILTIN_LOADERS.iter().any(|builtin| self.names.is(name, builtin)) && self.builtin_classes.len() < 8 {
            self.builtin_classes.push(class);
        }
        self.look()
    }

    fn frame(&mut self, frame: Frame) -> Result<()> {
        self.frames.insert(frame.id, frame);
        self.look()
    }

    fn trace(&mut self, serial: u32, frames: Vec<u64>) -> Result<()> {
        self.traced += frames.len() as u64;
        self.traces.insert(serial, frames);
        self.look()
    }

    fn root(&mut self, root: Root) -> Result<()> {
        self.roots.push(root);
        self.look()
    }

    fn class(&mut self, class: ClassDump) -> Result<()> {
        self.fields += (class.fields.len() + class.statics.len()) as u64;
        let id = class.id;
        if id != 0 {
            self.classes.push(class);
        }
        self.object(id)
    }

    #[inline]
    fn instance(&mut self, id: u64, class: u64, _fields: &[u8]) -> Result<()> {
        if self.builtin_classes.contains(&class) {
            self.builtin_loaders.push(id);
        }
        self.object(id)
    }

    #[inline]
    fn array(&mut self, array: Array) -> Result<bool> {
        self.object(array.id)?;
        Ok(false)
    }
}
