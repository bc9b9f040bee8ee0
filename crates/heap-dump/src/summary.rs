//! The summary of a heap dump: plain values.

use loadline_base::units::grouped;
use std::fmt;
use std::ops::AddAssign;

/// Objects and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Number of objects.
    pub objects: u64,
    /// Their bytes in the heap, according to the caller's layout.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, more: Self) {
        self.objects += more.objects;
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// The objects of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassAmount {
    /// As in Java: `java.util.HashMap$Node[]`.
    pub class: String,
    /// Its instances, without the objects that they refer to.
    pub amount: Amount,
}

/// A summary of a heap dump.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Objects reachable from the roots. Classes count as objects.
    pub live: Amount,
    /// Unreachable objects: garbage in a dump with `-all`, and objects that only weak references refer to. A dump of
    /// live objects has a few too: names of classes, which are referred to only by fields that dumps omit.
    pub unreachable: Amount,
    /// Live objects by class, most bytes first.
    pub classes: Vec<ClassAmount>,
    /// The objects of [`Summary::unreachable`] by class, most bytes first.
    pub unreachable_classes: Vec<ClassAmount>,
    /// The largest holders, most bytes first. No object is counted in two of them.
    pub holders: Vec<Holder>,
    /// Number of threads in the JVM; virtual ones only if the dump has them as roots.
    pub threads: u64,
    /// Why the file was not read completely, such as `truncated after 7,340,032 of 9,000,000 bytes`; `None` if it was.
    /// Otherwise, all numbers cover only the part before that.
    pub incomplete: Option<String>,
}

impl Summary {
    /// The share of the live bytes explained by [`Summary::holders`], from 0 to 1.
    pub fn covered(&self) -> f64 {
        self.share(|_| true)
    }

    /// The same, excluding holders of the kind [`HolderKind::Small`], which name no field.
    pub fn covered_by_name(&self) -> f64 {
        self.share(|holder| holder.kind != HolderKind::Small)
    }

    fn share(&self, counts: impl Fn(&Holder) -> bool) -> f64 {
        let held: u64 = self.holders.iter().filter(|holder| counts(holder)).map(|holder| holder.retained.bytes).sum();
        if self.live.bytes == 0 { 0.0 } else { held as f64 / self.live.bytes as f64 }
    }
}

/// Something that keeps objects alive, with the name that a developer needs to fix it.
#[derive(Debug, Clone)]
pub struct Holder {
    /// Its kind.
    pub kind: HolderKind,
    /// Its name: `com.example.Orders.CACHE`, a thread's name, a loader's class. In the common name of several similar
    /// ones, `*` replaces digits: `web-*`.
    pub name: String,
    /// The number of similar items merged: threads, loaders, a class's static field in several loaders, objects.
    pub members: u64,
    /// A shortest path from the name down to where the objects fan out. Omits array elements and, in a chain of steps
    /// within `java.util`, all but the first one. For several similar holders, it is the path of the largest.
    pub path: Vec<PathStep>,
    /// The class of the object at the end of [`Holder::path`].
    pub end: String,
    /// Objects that would be garbage without this holder, minus those that other listed holders explain.
    pub retained: Amount,
    /// The classes that make up most of [`Holder::retained`], most bytes first; at most ten.
    pub consists_of: Vec<ClassAmount>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathStep {
    /// The class that declares the field.
    pub class: String,
    /// The field.
    pub field: String,
}

impl fmt::Display for PathStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.class, self.field)
    }
}

impl fmt::Display for Holder {
    /// The name and the path: `com.example.Orders.CACHE -> java.util.HashMap.table`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = if self.members == 1 { String::new() } else { format!("{} ", grouped(self.members)) };
        let plural = if self.members == 1 { "" } else { "s" };
        match &self.kind {
            HolderKind::StaticField => f.write_str(&self.name)?,
            HolderKind::Frame { method } => write!(f, "{many}thread{plural} {} in {method}", self.name)?,
            HolderKind::ThreadLocal { key } => write!(f, "{many}thread{plural} {}, thread-local {key}", self.name)?,
            HolderKind::Thread => write!(f, "{many}thread{plural} {}", self.name)?,
            HolderKind::ClassLoader => write!(f, "{many}class loader{plural} {}", self.name)?,
            HolderKind::Classes => f.write_str(&self.name)?,
            HolderKind::Small => write!(f, "{many}separate object{plural} of {}", self.name)?,
            HolderKind::JniGlobal => write!(f, "{many}JNI global{plural} {}", self.name)?,
            HolderKind::OtherRoot => write!(f, "{many}root{plural} {}", self.name)?,
            HolderKind::Jointly => write!(f, "{} and others", self.name)?,
        }
        self.path.iter().try_for_each(|step| write!(f, " -> {step}"))
    }
}

/// Kinds of [`Holder`]s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderKind {
    /// A static field, `Class.field`. Constants of a class are in a field that HotSpot calls `<resolved_references>`.
    StaticField,
    /// Locals of a running method, in Java or JNI.
    Frame {
        /// `com.example.Orders.load:88`, or `(unknown method)`.
        method: String,
    },
    /// Values of a thread-local.
    ThreadLocal {
        /// The static field with the `ThreadLocal`, or else its class.
        key: String,
    },
    /// A thread with its own fields.
    Thread,
    /// A class loader with its own fields, without the statics of its classes.
    ClassLoader,
    /// Classes themselves, including primitive statics; or their reflection data.
    Classes,
    /// Many small holders whose packages have a common prefix: `org.hibernate.*`.
    Small,
    /// A global reference in native code or the JVM.
    JniGlobal,
    /// A held monitor, or a root about which the dump has no further information.
    OtherRoot,
    /// Two or more holders, none of which alone keeps the objects alive: the name and the path are those of one of
    /// them.
    Jointly,
}
