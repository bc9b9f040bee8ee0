//! Who can hold a page, in the order in which claims are heard: the first match wins.

/// An owner of resident pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The Java heap as far as it holds objects, live or dead.
    JavaHeapUsed,
    /// The Java heap right after a full collection: what is reachable.
    JavaHeapLive,
    /// Dead objects; known only where the live set is.
    JavaHeapGarbage,
    /// Resident pages of the Java heap that hold no object.
    JavaHeapFree,
    /// The Java heap where it cannot be split.
    JavaHeap,
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
    /// Free chunks whose pages are resident.
    MallocRetained,
    /// Heaps of malloc that cannot be split.
    MallocUnsplit,
    /// Nobody's.
    Unexplained,
}

impl Owner {
    /// All owners, in the order of the account.
    pub const ALL: [Self; 20] = [
        Self::JavaHeapUsed,
        Self::JavaHeapLive,
        Self::JavaHeapGarbage,
        Self::JavaHeapFree,
        Self::JavaHeap,
        Self::Cds,
        Self::Metaspace,
        Self::ClassSpace,
        Self::CodeCache,
        Self::ThreadStacks,
        Self::Gc,
        Self::Libjvm,
        Self::Libraries,
        Self::MappedFiles,
        Self::MallocLive,
        Self::MallocNonHotspot,
        Self::MallocMmapped,
        Self::MallocRetained,
        Self::MallocUnsplit,
        Self::Unexplained,
    ];

    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::JavaHeapUsed => "java_heap.used",
            Self::JavaHeapLive => "java_heap.live",
            Self::JavaHeapGarbage => "java_heap.garbage",
            Self::JavaHeapFree => "java_heap.free",
            Self::JavaHeap => "java_heap",
            Self::Cds => "cds",
            Self::Metaspace => "metaspace",
            Self::ClassSpace => "class_space",
            Self::CodeCache => "code_cache",
            Self::ThreadStacks => "thread_stacks",
            Self::Gc => "gc",
            Self::Libjvm => "libjvm",
            Self::Libraries => "libraries",
            Self::MappedFiles => "mapped_files",
            Self::MallocLive => "malloc.live",
            Self::MallocNonHotspot => "malloc.non_hotspot",
            Self::MallocMmapped => "malloc.mmapped",
            Self::MallocRetained => "malloc.retained",
            Self::MallocUnsplit => "malloc.unsplit",
            Self::Unexplained => "unexplained",
        }
    }
}
