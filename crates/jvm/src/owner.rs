//! Table of all owners of resident pages: name in documents and on screen, meaning, appearance, and the options that
//! change it. `docs/memory.md` shows the same table.

/// A part of the bar of an account, in the order of the bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The Java heap, used or not.
    Heap,
    /// Class metadata and compiled code.
    Classes,
    /// Chunks in use.
    Live,
    /// Free chunks whose pages are resident.
    Retained,
    /// Pages of files, including the data of libraries.
    Files,
    /// Stacks, GC tables, and memory without an owner.
    Rest,
}

/// The table entry of one owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The owner that this entry describes.
    pub owner: Owner,
    /// Its name in documents; the part before a dot is its family.
    pub name: &'static str,
    /// Its name on screen; at most 25 characters.
    pub label: &'static str,
    /// Its description in plain words; at most 27 characters, which fit into 80 columns.
    pub what: &'static str,
    /// The part of a bar that it is drawn in.
    pub group: Group,
    /// Its color in charts, by name in `report/chart/colours.css`; families share a hue.
    pub colour: &'static str,
    /// Whether it is hatched: memory that contains nothing or has no owner.
    pub hatched: bool,
    /// Options and variables that make it smaller or larger, in the order to try; empty if there are none.
    pub moved_by: &'static [&'static str],
}

const FREE: &[&str] =
    &["-XX:MaxHeapFreeRatio", "-XX:MinHeapFreeRatio", "-Xms", "-XX:G1PeriodicGCInterval", "-XX:ZUncommitDelay"];
const CDS: &[&str] = &["-XX:SharedArchiveFile", "-Xshare:off"];
const METASPACE: &[&str] = &["-XX:MetaspaceReclaimPolicy"];
const CODE: &[&str] = &["-XX:TieredStopAtLevel"];
const COLLECTOR: &[&str] = &["-XX:+UseSerialGC", "-Xmx"];
const COUNTERS: &[&str] = &["-XX:+PerfDisableSharedMem"];
const DIRECT: &[&str] = &["-XX:MaxDirectMemorySize"];
const RETAINED: &[&str] = &["MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "-XX:TrimNativeHeapInterval"];
const HEAP: &[&str] = &["-Xmx"];

use Group::{Classes, Files, Heap, Live, Rest, Retained};
use Owner::{JavaHeap, JavaHeapFree, JavaHeapGarbage, MallocRetained, NativeRetained, Unexplained};

/// Defines the owners and the table, whose rows are: name, label, what, group, colour, and options of an [`Entry`].
macro_rules! owners {
    ($($owner:ident: $name:literal, $label:literal, $what:literal, $group:ident, $colour:literal, $moved:expr;)*) => {
        /// An owner of resident pages, in the order in which claims are considered: the first match wins.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Owner {
            $(#[doc = concat!($label, ": ", $what)] $owner,)*
        }

        impl Owner {
            /// All owners, in the order of the account.
            pub const ALL: [Self; TABLE.len()] = [$(Self::$owner),*];
        }

        const TABLE: [Entry; [$($name),*].len()] =
            [$(entry(Owner::$owner, $name, $label, $what, $group, $colour, $moved)),*];
    };
}

owners! {
    JavaHeap: "java_heap", "Java heap", "objects and free space", Heap, "heap", HEAP;
    JavaHeapUsed: "java_heap.used", "Java heap, used", "objects, live or garbage", Heap, "heap", HEAP;
    JavaHeapLive: "java_heap.live", "Java heap, live", "objects a full GC keeps", Heap, "live", &[];
    JavaHeapGarbage: "java_heap.garbage", "Java heap, garbage", "objects a full GC frees", Heap, "heap2", HEAP;
    JavaHeapFree: "java_heap.free", "Java heap, free-committed", "used before, empty now", Heap, "heap3", FREE;
    Cds: "cds", "CDS archive", "classes mapped from the JDK", Files, "file", CDS;
    Metaspace: "metaspace", "metaspace", "methods, constant pools", Classes, "class", METASPACE;
    ClassSpace: "class_space", "class space", "one header per class", Classes, "class2", &[];
    CodeCache: "code_cache", "code cache", "compiled code and stubs", Classes, "class3", CODE;
    ThreadStacks: "thread_stacks", "thread stacks", "Java and JVM threads", Rest, "rest", &[];
    Gc: "gc", "GC tables", "cards, marks, remsets", Rest, "rest2", COLLECTOR;
    Libjvm: "libjvm", "libjvm", "the JVM itself", Files, "file2", &[];
    Libraries: "libraries", "libraries", "other native libraries", Files, "file3", &[];
    MappedFiles: "mapped_files", "mapped files", "jars, modules, buffers", Files, "file4", COUNTERS;
    MallocLive: "malloc.live", "malloc live", "chunks in use", Live, "malloc", DIRECT;
    MallocNonHotspot: "malloc.non_hotspot", "malloc non-HotSpot", "zlib, JNI, native libraries", Live, "malloc2", &[];
    MallocMmapped: "malloc.mmapped", "malloc mmapped", "large separate mappings", Live, "malloc3", DIRECT;
    MallocDirect: "malloc.direct", "direct memory", "buffers outside the heap", Live, "malloc5", DIRECT;
    MallocRetained: "malloc.retained", "malloc retained", "freed but kept by malloc", Retained, "malloc4", RETAINED;
    MallocUnsplit: "malloc.unsplit", "malloc (not split)", "in use or freed", Live, "malloc2", &[];
    Native: "native", "native library mappings", "mapped by other libraries", Rest, "native", &[];
    NativeRetained: "native.retained", "native libraries retained", "freed but kept by library", Rest, "native2", &[];
    Anonymous: "anonymous", "anonymous (not split)", "classes, code, GC, malloc", Rest, "malloc2", &[];
    Unexplained: "unexplained", "unexplained", "no owner found", Rest, "none", &[];
}

const fn entry(
    owner: Owner,
    name: &'static str,
    label: &'static str,
    what: &'static str,
    group: Group,
    colour: &'static str,
    moved_by: &'static [&'static str],
) -> Entry {
    let hatched = matches!(owner, JavaHeapGarbage | JavaHeapFree | MallocRetained | NativeRetained | Unexplained);
    Entry { owner, name, label, what, group, colour, hatched, moved_by }
}

impl Owner {
    /// Returns the table entry of this owner.
    pub fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }

    /// The name in documents.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The owner with this name in documents; `None` if the name is from a future version.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|owner| owner.name() == name)
    }
}

impl Group {
    /// Each part with its letter and its label, in the order of a bar.
    pub const ALL: [(Self, char, &'static str); 6] = [
        (Heap, 'H', "Java heap"),
        (Classes, 'M', "metaspace, class space, code"),
        (Live, 'L', "malloc in use"),
        (Retained, 'R', "malloc retained"),
        (Files, 'F', "files, libraries, CDS"),
        (Rest, '.', "stacks, GC tables, other"),
    ];

    /// The part in which an owner with this name is drawn; unknown names belong to the rest.
    pub fn of(name: &str) -> Self {
        Owner::named(name).map_or(Rest, |owner| owner.entry().group)
    }
}

/// Returns an owner's name on screen; an unknown name is returned unchanged.
pub fn label(name: &str) -> &str {
    Owner::named(name).map_or(name, |owner| owner.entry().label)
}

/// Returns an owner's description in plain words; empty for an unknown name.
pub fn what(name: &str) -> &'static str {
    Owner::named(name).map_or("", |owner| owner.entry().what)
}

/// Returns an owner's position in the account; unknown names come right before the unexplained.
pub fn place(name: &str) -> usize {
    Owner::named(name).map_or(2 * Unexplained as usize - 1, |owner| 2 * owner as usize)
}

/// The family of an owner: `java_heap` for `java_heap.used`.
pub fn family(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Whether this is the Java heap or a part of it.
pub fn is_heap(name: &str) -> bool {
    family(name) == JavaHeap.name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_owner_has_its_own_entry_that_fits_its_column() {
        for (at, entry) in TABLE.iter().enumerate() {
            let owner = entry.owner;
            assert_eq!((owner as usize, owner.entry(), Owner::named(entry.name)), (at, entry, Some(owner)));
            assert!(entry.what.len() <= 27 && entry.label.len() <= 25, "{}", entry.name);
            assert_eq!(TABLE.iter().filter(|other| other.label == entry.label).count(), 1, "{}", entry.label);
            assert!(Group::ALL.iter().any(|(group, ..)| *group == entry.group), "{}", entry.name);
        }
    }

    #[test]
    fn unknown_owners_keep_their_name_and_precede_the_unexplained() {
        assert_eq!((label("later"), what("later"), Group::of("later")), ("later", "", Rest));
        assert!(place("malloc.unsplit") < place("later") && place("later") < place("unexplained"));
        assert!(is_heap("java_heap.used") && is_heap("java_heap") && !is_heap("java_heaps"));
    }
}
