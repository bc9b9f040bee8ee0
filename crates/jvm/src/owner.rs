//! Every owner of resident pages in one table: its name in documents and on the screen, what it is, how it is drawn,
//! and what moves it. `docs/memory.md` shows the same table.

/// An owner of resident pages, in the order in which claims are heard: the first match wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The Java heap where it cannot be split.
    JavaHeap,
    /// The Java heap as far as it holds objects, live or dead.
    JavaHeapUsed,
    /// The Java heap right after a full collection: what is reachable.
    JavaHeapLive,
    /// Dead objects; known only where the live set is.
    JavaHeapGarbage,
    /// Resident pages of the Java heap that hold no object.
    JavaHeapFree,
    /// The archive of classes that JVMs share.
    Cds,
    /// Class metadata.
    Metaspace,
    /// Class metadata that compressed class pointers reach.
    ClassSpace,
    /// Compiled code, stubs and the interpreter.
    CodeCache,
    /// Stacks of threads.
    ThreadStacks,
    /// The collector's tables.
    Gc,
    /// The JVM's own library, with its data.
    Libjvm,
    /// Other libraries, with their data.
    Libraries,
    /// Modules, jars, locale and all other files.
    MappedFiles,
    /// Chunks of malloc in use.
    MallocLive,
    /// Chunks in use that Native Memory Tracking does not know.
    MallocNonHotspot,
    /// Chunks with a mapping of their own.
    MallocMmapped,
    /// Direct buffers, as many bytes of chunks as the JDK and Netty count.
    MallocDirect,
    /// Free chunks whose pages are resident.
    MallocRetained,
    /// Heaps of malloc that cannot be split.
    MallocUnsplit,
    /// Memory that libraries other than the JVM's mapped themselves.
    Native,
    /// Memory that an allocator inside such a library keeps without need.
    NativeRetained,
    /// Memory without a known owner.
    Unexplained,
}

/// A part of the bar of an account, in the order of the bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The Java heap, in use or not.
    Heap,
    /// Class metadata and compiled code.
    Classes,
    /// Chunks in use.
    Live,
    /// Free chunks whose pages are resident.
    Retained,
    /// Pages of files, with the data of libraries.
    Files,
    /// Stacks, the collector's tables, and what has no owner.
    Rest,
}

/// The table entry of one owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Whose entry this is.
    pub owner: Owner,
    /// As in documents; the part before a dot is its family.
    pub name: &'static str,
    /// On the screen; at most 25 characters.
    pub label: &'static str,
    /// Its description in plain words; at most 27 characters, which is what 80 columns leave.
    pub what: &'static str,
    /// The part of a bar that it is drawn in.
    pub group: Group,
    /// The colour in charts, by its name in `report/chart/colours.css`; families share a hue.
    pub colour: &'static str,
    /// Whether it is hatched: memory that holds nothing, or that has no owner.
    pub hatched: bool,
    /// Options and variables that make it smaller or larger, the first one first to try; empty where none does.
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
use Owner::*;

/// In the order of [`Owner`].
const TABLE: [Entry; 23] = [
    entry(JavaHeap, "java_heap", "Java heap", "objects and free space", Heap, "heap", HEAP),
    entry(JavaHeapUsed, "java_heap.used", "Java heap, used", "objects, live or garbage", Heap, "heap", HEAP),
    entry(JavaHeapLive, "java_heap.live", "Java heap, live", "objects a full GC keeps", Heap, "live", &[]),
    entry(JavaHeapGarbage, "java_heap.garbage", "Java heap, garbage", "objects a full GC frees", Heap, "heap2", HEAP),
    entry(JavaHeapFree, "java_heap.free", "Java heap, free-committed", "touched once, empty now", Heap, "heap3", FREE),
    entry(Cds, "cds", "CDS archive", "classes mapped from the JDK", Files, "file", CDS),
    entry(Metaspace, "metaspace", "metaspace", "methods, constant pools", Classes, "class", METASPACE),
    entry(ClassSpace, "class_space", "class space", "a header for each class", Classes, "class2", &[]),
    entry(CodeCache, "code_cache", "code cache", "compiled code and stubs", Classes, "class3", CODE),
    entry(ThreadStacks, "thread_stacks", "thread stacks", "of Java and JVM threads", Rest, "rest", &[]),
    entry(Gc, "gc", "GC tables", "cards, marks, remsets", Rest, "rest2", COLLECTOR),
    entry(Libjvm, "libjvm", "libjvm", "the JVM itself", Files, "file2", &[]),
    entry(Libraries, "libraries", "libraries", "other code and its data", Files, "file3", &[]),
    entry(MappedFiles, "mapped_files", "mapped files", "jars, modules, buffers", Files, "file4", COUNTERS),
    entry(MallocLive, "malloc.live", "malloc live", "chunks in use", Live, "malloc", DIRECT),
    entry(
        MallocNonHotspot,
        "malloc.non_hotspot",
        "malloc non-HotSpot",
        "zlib, JNI, native libraries",
        Live,
        "malloc2",
        &[],
    ),
    entry(MallocMmapped, "malloc.mmapped", "malloc mmapped", "large chunks, mapped alone", Live, "malloc3", DIRECT),
    entry(MallocDirect, "malloc.direct", "direct memory", "buffers outside the heap", Live, "malloc5", DIRECT),
    entry(MallocRetained, "malloc.retained", "malloc retained", "freed, kept by malloc", Retained, "malloc4", RETAINED),
    entry(MallocUnsplit, "malloc.unsplit", "malloc (not split)", "in use or freed, not known", Live, "malloc2", &[]),
    entry(Native, "native", "native library mappings", "mapped by other libraries", Rest, "native", &[]),
    entry(
        NativeRetained,
        "native.retained",
        "native libraries retained",
        "freed, kept by a library",
        Rest,
        "native2",
        &[],
    ),
    entry(Unexplained, "unexplained", "unexplained", "no owner found", Rest, "none", &[]),
];

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
    /// All owners, in the order of the account.
    pub const ALL: [Self; TABLE.len()] = {
        let mut all = [JavaHeap; TABLE.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = TABLE[at].owner;
            at += 1;
        }
        all
    };

    /// Returns the table entry of this owner.
    pub fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }

    /// The name in documents.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The owner of this name in documents; `None` for one of a version to come.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|owner| owner.name() == name)
    }
}

impl Group {
    /// Each part with the letter that draws it and its words, in the order of a bar.
    pub const ALL: [(Self, char, &'static str); 6] = [
        (Heap, 'H', "Java heap"),
        (Classes, 'M', "metaspace, class space, code"),
        (Live, 'L', "malloc in use"),
        (Retained, 'R', "malloc retained"),
        (Files, 'F', "files, libraries, CDS"),
        (Rest, '.', "stacks, GC tables, the rest"),
    ];

    /// The part in which an owner of this name is drawn; one that is not known is among the rest.
    pub fn of(name: &str) -> Self {
        Owner::named(name).map_or(Rest, |owner| owner.entry().group)
    }
}

/// Returns the name of an owner on the screen; one that is not known keeps its name.
pub fn label(name: &str) -> &str {
    Owner::named(name).map_or(name, |owner| owner.entry().label)
}

/// Returns the description of an owner in plain words; empty for one that is not known.
pub fn what(name: &str) -> &'static str {
    Owner::named(name).map_or("", |owner| owner.entry().what)
}

/// Returns the place of an owner in the account; unknown ones come right before the unexplained.
pub fn place(name: &str) -> usize {
    Owner::named(name).map_or(2 * Unexplained as usize - 1, |owner| 2 * owner as usize)
}

/// The owner whose part this is: `java_heap` of `java_heap.used`.
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
    fn unknown_owners_keep_their_name_and_stand_before_the_unexplained() {
        assert_eq!((label("later"), what("later"), Group::of("later")), ("later", "", Rest));
        assert!(place("malloc.unsplit") < place("later") && place("later") < place("unexplained"));
        assert!(is_heap("java_heap.used") && is_heap("java_heap") && !is_heap("java_heaps"));
    }
}
