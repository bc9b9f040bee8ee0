//! The purpose of native memory, from the frames of its allocation.
//!
//! Frames are examined from the allocation upward, and the first known one decides, because everything above only led
//! to it. Names are those of HotSpot 17 to 25 as async-profiler prints them (`lib`: the library is the class):
//!
//! ```text
//! libasyncProfiler.so`malloc_hook  libjvm.so`os::malloc  libjvm.so`Unsafe_AllocateMemory0  jdk.internal.misc.Unsafe.…
//! ```

use crate::stack::{Frame, FrameKind};
use loadline_jvm::purpose::Purpose;
use std::fmt;

/// The purpose of native memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// Memory outside the heap that Java code requested.
    Direct(DirectBy),
    /// The state of a `java.util.zip.Deflater` or `Inflater`: 262 and 40 KiB each, until `end()` or a collection.
    Zlib,
    /// A native library that is not the JDK's, by its file name.
    Library(String),
    /// A JIT compiler during a compilation.
    Compiler {
        /// `C1`, `C2`, or `JIT` if the frames do not show which.
        name: &'static str,
        /// The method being compiled, `com.shop.Orders.total`, if the recording has it (`features=comptask`).
        method: Option<String>,
    },
    /// Class files, names, and the JVM's class data outside metaspace.
    ClassLoading,
    /// Structures of the garbage collector.
    Gc,
    /// The JVM's own structures for a thread, without its stack.
    Threads,
    /// Other parts of the JVM.
    Jvm,
    /// Native code of the JDK outside the JVM, by its library's file name.
    JdkLibrary(String),
    /// The profiler itself, which reads the symbols of each loaded library.
    Profiler,
    /// The frames do not show the purpose.
    Unknown,
}

/// How Java code requested memory outside the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DirectBy {
    /// `sun.nio.ch.Util.getTemporaryDirectBuffer`: cached per thread that uses channels with heap buffers.
    TemporaryBuffer,
    /// Netty's pools, and its buffers without a cleaner.
    Netty,
    /// `ByteBuffer.allocateDirect`.
    ByteBuffer,
    /// An `Arena` of `java.lang.foreign`.
    Arena,
    /// `Unsafe.allocateMemory` by other callers.
    Unsafe,
}

impl Owner {
    /// The owner without details within a kind: the method being compiled.
    pub fn kind(&self) -> Self {
        match self {
            Self::Compiler { name, .. } => Self::Compiler { name, method: None },
            other => other.clone(),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct(DirectBy::TemporaryBuffer) => f.write_str("direct memory, NIO temporary buffers"),
            Self::Direct(DirectBy::Netty) => f.write_str("direct memory, Netty"),
            Self::Direct(DirectBy::ByteBuffer) => f.write_str("direct memory"),
            Self::Direct(DirectBy::Arena) => f.write_str("direct memory, java.lang.foreign arenas"),
            Self::Direct(DirectBy::Unsafe) => f.write_str("direct memory, Unsafe"),
            Self::Zlib => f.write_str("zlib"),
            Self::Library(name) => write!(f, "native library {name}"),
            Self::Compiler { name, method: None } => write!(f, "{name} compiler"),
            Self::Compiler { name, method: Some(method) } => write!(f, "{name} compiler, compiling {method}"),
            Self::ClassLoading => f.write_str("class loading"),
            Self::Gc => f.write_str("GC"),
            Self::Threads => f.write_str("threads"),
            Self::Jvm => f.write_str("JVM"),
            Self::JdkLibrary(name) => write!(f, "JDK library {name}"),
            Self::Profiler => f.write_str("the profiler itself"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// The prefix of the profiler's file name.
pub const PROFILER_LIBRARY: &str = "libasyncProfiler";

/// Libraries that allocate on behalf of their callers: the profiler, the C and C++ libraries, the loader, and zlib,
/// which the JDK of some distributions shares with other libraries. File name prefixes.
const PASSING_LIBRARIES: &[&str] = &[
    PROFILER_LIBRARY,
    "libc.so",
    "libc-",
    "libc.musl",
    "ld-linux",
    "ld-musl",
    "libstdc++",
    "libgcc",
    "libpthread",
    "libdl.",
    "libz.so",
    "libm.so",
    "[vdso]",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
];

/// Prefixes of libjvm functions that allocate on behalf of their callers.
const PASSING_FUNCTIONS: &[&str] = &[
    "os::malloc",
    "os::realloc",
    "os::strdup",
    "AllocateHeap",
    "ReallocateHeap",
    "Arena::",
    "ChunkPool::",
    "Chunk::",
    "ResourceArea::",
    "resource_",
    "ResourceObj::",
    "AnyObj::",
    "CHeapObj",
    "CHeapBitMap",
    "BitMap",
    "GrowableArray",
    "GenericGrowableArray",
    "ArrayAllocator",
    "MallocArrayAllocator",
    "BasicHashtable",
    "ConcurrentHashTable",
    "ResourceHashtable",
    "HashTable",
    "operator new",
    "malloc",
    "calloc",
    "realloc",
    "safe_calloc",
    "safe_malloc",
];

/// Memory from `Unsafe`; the search for its caller continues.
const UNSAFE: Owner = Owner::Direct(DirectBy::Unsafe);

/// Functions of libjvm by owner: prefixes; the first match wins.
const FUNCTIONS: &[(&str, Owner)] = &[
    ("Unsafe_AllocateMemory", UNSAFE),
    ("Unsafe_ReallocateMemory", UNSAFE),
    ("JavaThread::JavaThread", Owner::Threads),
    ("Thread::Thread", Owner::Threads),
    ("OSThread", Owner::Threads),
    ("os::create_thread", Owner::Threads),
    ("os::create_attached_thread", Owner::Threads),
    ("os::create_main_thread", Owner::Threads),
    ("JVM_StartThread", Owner::Threads),
    ("JVM_DefineClass", Owner::ClassLoading),
    ("JVM_FindClass", Owner::ClassLoading),
    ("SystemDictionary", Owner::ClassLoading),
    ("ClassFileParser", Owner::ClassLoading),
    ("ClassFileStream", Owner::ClassLoading),
    ("ClassLoader", Owner::ClassLoading),
    ("ClassPath", Owner::ClassLoading),
    ("ClassVerifier", Owner::ClassLoading),
    ("KlassFactory", Owner::ClassLoading),
    ("InstanceKlass", Owner::ClassLoading),
    ("Klass::", Owner::ClassLoading),
    ("ConstantPool", Owner::ClassLoading),
    ("SymbolTable", Owner::ClassLoading),
    ("Symbol::", Owner::ClassLoading),
    ("Metaspace", Owner::ClassLoading),
    ("metaspace::", Owner::ClassLoading),
    ("Method::", Owner::ClassLoading),
    ("MethodData::", Owner::ClassLoading),
    ("Dictionary", Owner::ClassLoading),
    ("PackageEntry", Owner::ClassLoading),
    ("ModuleEntry", Owner::ClassLoading),
    ("Modules::", Owner::ClassLoading),
    ("Verifier", Owner::ClassLoading),
    ("StackMap", Owner::ClassLoading),
    ("Rewriter", Owner::ClassLoading),
    ("LinkResolver", Owner::ClassLoading),
    ("G1", Owner::Gc),
    ("Shenandoah", Owner::Gc),
    ("Parallel", Owner::Gc),
    ("PSOld", Owner::Gc),
    ("PSPromotion", Owner::Gc),
    ("PSYoung", Owner::Gc),
    ("PSCardTable", Owner::Gc),
    ("ParCompaction", Owner::Gc),
    ("Serial", Owner::Gc),
    ("DefNew", Owner::Gc),
    ("Tenured", Owner::Gc),
    ("GenMarkSweep", Owner::Gc),
    ("MarkSweep", Owner::Gc),
    ("MarkStack", Owner::Gc),
    ("CardTable", Owner::Gc),
    ("CollectedHeap", Owner::Gc),
    ("GenCollectedHeap", Owner::Gc),
    ("GenericTaskQueue", Owner::Gc),
    ("OverflowTaskQueue", Owner::Gc),
    ("WorkGang", Owner::Gc),
    ("WorkerThreads", Owner::Gc),
    ("ReferenceProcessor", Owner::Gc),
    ("PreservedMarks", Owner::Gc),
    ("SATBMark", Owner::Gc),
    ("DirtyCard", Owner::Gc),
    ("HeapRegion", Owner::Gc),
    ("Universe::initialize_heap", Owner::Gc),
];

/// Libraries that a JDK ships with libjvm: names without `lib` and `.so`.
const JDK_LIBRARIES: &[&str] = &[
    "attach",
    "awt",
    "awt_headless",
    "awt_xawt",
    "dt_socket",
    "extnet",
    "fontmanager",
    "freetype",
    "instrument",
    "j2gss",
    "j2pcsc",
    "j2pkcs11",
    "jaas",
    "java",
    "javajpeg",
    "jawt",
    "jdwp",
    "jimage",
    "jli",
    "jsig",
    "jsound",
    "jsvml",
    "lcms",
    "le",
    "management",
    "management_agent",
    "management_ext",
    "mlib_image",
    "net",
    "nio",
    "prefs",
    "rmi",
    "saproc",
    "sctp",
    "simdsort",
    "splashscreen",
    "syslookup",
    "verify",
    "zip",
];

fn begins(name: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether a native frame only allocates on behalf of its caller.
pub(crate) fn passes_on(frame: &Frame) -> bool {
    let library = &*frame.class;
    match library {
        "" | "libjvm.so" => begins(&frame.method, PASSING_FUNCTIONS) || frame.method.ends_with("_hook"),
        _ => begins(library, PASSING_LIBRARIES),
    }
}

/// Whether each allocation on this stack represents a started thread or a created class loader: HotSpot 11 to 25
/// allocate one such object for each (`JavaThread`, `ClassLoaderData`). Hidden classes do not count, although they have
/// their own `ClassLoaderData`. False if libjvm has only its exported symbols.
pub(crate) fn is_one_each<'f>(mut frames: impl Iterator<Item = &'f Frame> + Clone, owner: &Owner) -> bool {
    let objects: &[&str] = match owner {
        Owner::Threads => &["Thread::allocate", "JVM_StartThread"],
        Owner::ClassLoading => &["ClassLoaderDataGraph::add"],
        _ => return false,
    };
    const HIDDEN: &[&str] = &["JVM_LookupDefineClass", "Unsafe_DefineAnonymousClass"];
    let is_hidden = frames.clone().any(|frame| begins(&frame.method, HIDDEN));
    let first = frames.find(|frame| !passes_on(frame));
    !is_hidden && first.is_some_and(|frame| !frame.is_java() && begins(&frame.method, objects))
}

/// The owner of memory allocated on this stack (innermost frame first) by this thread.
pub(crate) fn owner_of<'f>(frames: impl Iterator<Item = &'f Frame> + Clone, thread: &str) -> Owner {
    if frames.clone().any(is_of_profiler) {
        return Owner::Profiler;
    }
    if let Some(compiler) = compiler(frames.clone(), thread) {
        return compiler;
    }
    let mut in_jvm = false;
    for frame in frames.clone() {
        let owner = match frame.is_java() {
            true => Some(of_java(frame).unwrap_or(if in_jvm { Owner::Jvm } else { Owner::Unknown })),
            false if frame.kind == FrameKind::Kernel || passes_on(frame) => continue,
            false => of_native(frame),
        };
        match owner {
            Some(UNSAFE) => return Owner::Direct(direct_by(frames)),
            Some(owner) => return owner,
            None => in_jvm = true,
        }
    }
    match (Purpose::of(thread) == Purpose::Gc, in_jvm) {
        (true, _) => Owner::Gc,
        (false, true) => Owner::Jvm,
        (false, false) => Owner::Unknown,
    }
}

/// Whether the profiler does its own work in this frame: its hooks only pass on what the program requests. Functions of
/// its classes have names with `::`; without symbols, nothing counts as its own.
fn is_of_profiler(frame: &Frame) -> bool {
    let is_hook = frame.method.ends_with("_hook");
    frame.class.starts_with(PROFILER_LIBRARY) && frame.method.contains("::") && !is_hook
}

/// The owner that a native frame shows; `None` for a part of the JVM that works for its caller.
fn of_native(frame: &Frame) -> Option<Owner> {
    let library = &*frame.class;
    if library == "libjvm.so" || library.is_empty() {
        let owner = FUNCTIONS.iter().find(|(beginning, _)| frame.method.starts_with(beginning));
        return match owner {
            Some((_, owner)) => Some(owner.clone()),
            None if is_zgc(&frame.method) => Some(Owner::Gc),
            None => frame.method.starts_with("Java_java_util_zip_").then_some(Owner::Zlib),
        };
    }
    let stem = library.strip_prefix("lib").and_then(|name| name.split(".so").next()).unwrap_or_default();
    Some(match stem {
        "zip" => Owner::Zlib,
        _ if JDK_LIBRARIES.contains(&stem) => Owner::JdkLibrary(library.to_owned()),
        _ => Owner::Library(library.to_owned()),
    })
}

/// `ZPageAllocator::`, `ZMark::`, but not `Zip…`.
fn is_zgc(function: &str) -> bool {
    function.starts_with('Z') && function[1..].starts_with(|second: char| second.is_ascii_uppercase())
}

/// The owner that a Java frame shows, if the native frames below it are unknown.
fn of_java(frame: &Frame) -> Option<Owner> {
    match &*frame.class {
        "jdk.internal.misc.Unsafe" | "sun.misc.Unsafe" if frame.method.contains("llocateMemory") => Some(UNSAFE),
        "java.util.zip.Deflater" | "java.util.zip.Inflater" => Some(Owner::Zlib),
        _ => None,
    }
}

fn direct_by<'f>(frames: impl Iterator<Item = &'f Frame> + Clone) -> DirectBy {
    let any = |fits: fn(&Frame) -> bool| frames.clone().any(|frame| frame.is_java() && fits(frame));
    if any(|frame| &*frame.class == "sun.nio.ch.Util" && frame.method.contains("TemporaryDirectBuffer")) {
        DirectBy::TemporaryBuffer
    } else if any(|frame| {
        frame.class.starts_with("io.netty.buffer.")
            || frame.class.starts_with("io.netty.util.internal.PlatformDependent")
            || frame.class.contains(".netty.shaded.io.netty.buffer.")
    }) {
        DirectBy::Netty
    } else if any(|frame| &*frame.class == "java.nio.DirectByteBuffer" || &*frame.class == "java.nio.ByteBuffer") {
        DirectBy::ByteBuffer
    } else if any(|frame| frame.class.starts_with("jdk.internal.foreign.")) {
        DirectBy::Arena
    } else {
        DirectBy::Unsafe
    }
}

/// A compiler's thread and the method being compiled: the only Java frame of its stack, added by `comptask`.
fn compiler<'f>(frames: impl Iterator<Item = &'f Frame> + Clone, thread: &str) -> Option<Owner> {
    let calls = |function: &str| frames.clone().any(|frame| !frame.is_java() && frame.method.starts_with(function));
    // Any thread calls `CompileBroker::compile_method` to request a compilation.
    if Purpose::of(thread) != Purpose::Jit
        && !calls("CompileBroker::compiler_thread_loop")
        && !calls("CompileBroker::invoke_compiler")
    {
        return None;
    }
    let name = match () {
        () if calls("C2Compiler::") || calls("Compile::") || thread.starts_with("C2") => "C2",
        () if calls("Compiler::compile_method") || calls("Compilation::") || thread.starts_with("C1") => "C1",
        () => "JIT",
    };
    let method = frames.filter(|frame| frame.is_java()).last();
    let method = method.map(|frame| format!("{}.{}", frame.class, frame.method));
    Some(Owner::Compiler { name, method })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::tests::frames;

    #[track_caller]
    fn check(stack: &str, thread: &str, expect: &Owner) {
        let frames = frames(stack);
        assert_eq!(owner_of(frames.iter(), thread), *expect, "{stack}");
    }

    #[test]
    fn direct_memory_is_attributed_to_the_kind_of_request() {
        let under = |java: &str, by| {
            let stack = "libasyncProfiler.so`malloc_hook libjvm.so`os::malloc libjvm.so`Unsafe_AllocateMemory0 \
                         jdk.internal.misc.Unsafe.allocateMemory0";
            check(&format!("{stack} {java}"), "web-1", &Owner::Direct(by));
        };
        under("java.nio.DirectByteBuffer.<init> java.nio.ByteBuffer.allocateDirect A.a", DirectBy::ByteBuffer);
        under(
            "java.nio.DirectByteBuffer.<init> java.nio.ByteBuffer.allocateDirect \
             sun.nio.ch.Util.getTemporaryDirectBuffer A.a",
            DirectBy::TemporaryBuffer,
        );
        under("io.netty.util.internal.PlatformDependent.allocateMemory io.netty.buffer.PoolArena.x", DirectBy::Netty);
        // A Netty handler that creates its own buffer.
        under("java.nio.ByteBuffer.allocateDirect A.read io.netty.channel.X.fire", DirectBy::ByteBuffer);
        under("jdk.internal.foreign.NativeMemorySegmentImpl.makeNativeSegment A.a", DirectBy::Arena);
        under("A.a", DirectBy::Unsafe);
    }

    #[test]
    fn threads_and_class_loaders_are_counted_once_each() {
        let one = |stack: &str| {
            let frames = frames(stack);
            is_one_each(frames.iter(), &owner_of(frames.iter(), "main"))
        };
        let jvm = "libasyncProfiler.so`malloc_hook libjvm.so`os::malloc libjvm.so`AllocateHeap";
        let start = "libjvm.so`JVM_StartThread java.lang.Thread.start0 java.lang.Thread.start A.a";
        // JDK 17 and 25.
        assert!(one(&format!("{jvm} libjvm.so`Thread::allocate {start}")));
        assert!(one(&format!("{jvm} {start}")));
        assert!(!one(&format!("{jvm} libjvm.so`JavaThread::JavaThread {start}")));
        let graph = "libjvm.so`ClassLoaderDataGraph::add_to_graph libjvm.so`ClassLoaderDataGraph::add";
        let define = "libjvm.so`SystemDictionary::resolve_class_from_stream libjvm.so`JVM_DefineClassWithSource";
        let hidden = "libjvm.so`SystemDictionary::resolve_hidden_class_from_stream libjvm.so`JVM_LookupDefineClass";
        assert!(one(&format!("{jvm} {graph} {define} java.lang.ClassLoader.defineClass1 A.a")));
        assert!(!one(&format!("{jvm} {graph} {hidden} java.lang.ClassLoader.defineClass0 A.a")));
        assert!(!one(&format!("{jvm} libjvm.so`ClassLoaderData::ClassLoaderData {graph} {define} A.a")));
        assert!(!one(&format!("{jvm} libjvm.so`G1CardSet::add")));
    }

    #[test]
    fn native_memory_is_attributed_to_libraries_and_jvm_parts() {
        let native = "libasyncProfiler.so`malloc_hook libc.so.6`strdup";
        check(
            &format!("{native} librocks.so`DB::Put librocks.so`Java_A_put A.put"),
            "x",
            &Owner::Library("librocks.so".into()),
        );
        check("libz.so.1`deflateInit2_ libzip.so`Java_java_util_zip_Deflater_init A.a", "x", &Owner::Zlib);
        check("libz.so.1`deflateInit2_ libfoo.so`pack A.a", "x", &Owner::Library("libfoo.so".into()));
        check("java.util.zip.Inflater.init A.a", "x", &Owner::Zlib);
        check("libnio.so`Java_sun_nio_fs A.a", "x", &Owner::JdkLibrary("libnio.so".into()));
        let jvm = "libjvm.so`os::malloc libjvm.so`AllocateHeap";
        check(&format!("{jvm} libjvm.so`ClassFileParser::parse_stream A.a"), "x", &Owner::ClassLoading);
        check(&format!("{jvm} libjvm.so`G1CardSet::add"), "x", &Owner::Gc);
        check(&format!("{jvm} libjvm.so`ZPage::x"), "x", &Owner::Gc);
        check(&format!("{jvm} libjvm.so`Foo::x libc.so.6`clone3"), "GC Thread#0", &Owner::Gc);
        check(&format!("{jvm} libjvm.so`JavaThread::JavaThread libjvm.so`JVM_StartThread A.a"), "x", &Owner::Threads);
        check(&format!("{jvm} libjvm.so`ObjectMonitor::enter A.a"), "x", &Owner::Jvm);
        check("", "x", &Owner::Unknown);
    }

    #[test]
    fn memory_allocated_by_the_profiler_is_attributed_to_it() {
        let load = "libjvm.so`os::dll_load libjava.so`Java_jdk_internal_loader_NativeLibraries_load A.a";
        let hook = "libasyncProfiler.so`Profiler::dlopen_hook";
        let parse = "libasyncProfiler.so`realloc_hook libasyncProfiler.so`DwarfParser::addRecord";
        check(&format!("{parse} {hook} {load}"), "x", &Owner::Profiler);
        check(&format!("libstdc++.so.6`operator new libasyncProfiler.so`Symbols::parse {hook}"), "x", &Owner::Profiler);
        // A library that allocates while it is being loaded.
        let own = "libasyncProfiler.so`malloc_hook librocks.so`init ld-linux-x86-64.so.2`_dl_init";
        check(&format!("{own} {hook} {load}"), "x", &Owner::Library("librocks.so".into()));
        // Without symbols.
        check(
            "libasyncProfiler.so`0x12 libasyncProfiler.so`0x34 librocks.so`f",
            "x",
            &Owner::Library("librocks.so".into()),
        );
    }

    #[test]
    fn compilers_name_the_method() {
        let stack = "libjvm.so`os::malloc libjvm.so`Arena::grow libjvm.so`Compile::Compile com.shop.Scores.of \
                     libjvm.so`C2Compiler::compile_method libjvm.so`CompileBroker::invoke_compiler_on_method";
        let method = Some("com.shop.Scores.of".to_owned());
        check(stack, "C2 CompilerThre", &Owner::Compiler { name: "C2", method });
        check("libjvm.so`Arena::grow", "C1 CompilerThre", &Owner::Compiler { name: "C1", method: None });
        // An application thread that requests a compilation.
        check("libjvm.so`CompileTask::x libjvm.so`CompileBroker::compile_method A.a", "web-1", &Owner::Jvm);
    }
}
