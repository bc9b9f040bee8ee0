//! A dump with one holder of each kind.

use crate::writer::{BYTE, INT, REFERENCE, Writer};

#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) version: &'static str,
    pub(crate) id_bytes: usize,
    /// A divisor of all identifiers.
    pub(crate) granule: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self { version: "1.0.2", id_bytes: 8, granule: 8 }
    }
}

/// Class identifiers, in units of the granule.
const OBJECT: u64 = 1;
const CLASS: u64 = 2;
const STRING: u64 = 3;
const THREAD: u64 = 4;
const REFERENCE_CLASS: u64 = 5;
const WEAK: u64 = 6;
const SOFT: u64 = 7;
const ENTRY: u64 = 8;
const ENTRIES: u64 = 9;
const LOCALS: u64 = 10;
const MAP: u64 = 11;
const NODE: u64 = 12;
const NODES: u64 = 13;
const ORDERS: u64 = 14;
const LOADER: u64 = 15;
const PLUGIN_LOADER: u64 = 16;
const RULES: u64 = 17;
const LOCAL: u64 = 18;
const APP_LOADER: u64 = 19;
const OTHERS: u64 = 20;

/// Writes the dump. The tests state its sizes.
pub(crate) fn made_up(shape: Shape) -> Vec<u8> {
    let mut dump = Writer::new(shape.version, shape.id_bytes);
    let at = |id: u64| id * shape.granule;
    let orders = classes(&mut dump, &at);
    if shape.version != "1.0.1" {
        dump.segment();
    }
    // The cache: 50 nodes, each with an array.
    dump.object(at(100), at(MAP), &[at(101)]);
    dump.array(at(101), at(NODES), &(0..50).map(|nth| at(200 + nth)).collect::<Vec<_>>());
    for nth in 0..50 {
        dump.object(at(200 + nth), at(NODE), &[0, at(300 + nth), 0]);
        dump.byte_array(at(300 + nth), &[1; 1000]);
    }
    // Weak and soft references; garbage; an object held by two statics; an object held by a plug-in's static.
    dump.object(at(110), at(WEAK), &[0, at(112)]);
    dump.object(at(111), at(SOFT), &[0, at(113)]);
    dump.byte_array(at(112), &[0; 7000]);
    dump.byte_array(at(113), &[0; 4000]);
    dump.byte_array(at(114), &[0; 8000]);
    dump.byte_array(at(115), &[0; 9000]);
    dump.byte_array(at(116), &[0; 10_000]);
    dump.object(at(117), at(PLUGIN_LOADER), &[0]);
    dump.object(at(118), at(LOCAL), &[]);
    dump.object(at(119), at(APP_LOADER), &[0]);
    // A root of each kind.
    dump.byte_array(at(120), &[0; 5000]);
    dump.root(0x01, at(120), &[]);
    for (nth, tag) in [0xFF, 0x07].into_iter().enumerate() {
        dump.byte_array(at(121 + nth as u64), &[0; 6000]);
        dump.root(tag, at(121 + nth as u64), &[]);
    }
    // The native stack of a thread that is not in the dump.
    dump.byte_array(at(123), &[0; 6000]);
    dump.root(0x04, at(123), &[99]);
    dump.root(0x05, at(OBJECT), &[]);
    threads(&mut dump, &at, orders);
    dump.end()
}

fn classes(dump: &mut Writer, at: &impl Fn(u64) -> u64) -> u32 {
    let object = at(OBJECT);
    let app = at(119);
    dump.class(object, "java/lang/Object", 0, 0, &[], &[]);
    dump.class(at(CLASS), "java/lang/Class", object, 0, &[], &[]);
    dump.class(at(STRING), "java/lang/String", object, 0, &[], &[("value", REFERENCE), ("coder", BYTE)]);
    let fields = [("name", REFERENCE), ("threadLocals", REFERENCE)];
    dump.class(at(THREAD), "java/lang/Thread", object, 0, &[], &fields);
    let fields = [("queue", REFERENCE), ("referent", REFERENCE)];
    dump.class(at(REFERENCE_CLASS), "java/lang/ref/Reference", object, 0, &[], &fields);
    dump.class(at(WEAK), "java/lang/ref/WeakReference", at(REFERENCE_CLASS), 0, &[], &[]);
    dump.class(at(SOFT), "java/lang/ref/SoftReference", at(REFERENCE_CLASS), 0, &[], &[]);
    let fields = [("value", REFERENCE)];
    dump.class(at(ENTRY), "java/lang/ThreadLocal$ThreadLocalMap$Entry", at(WEAK), 0, &[], &fields);
    dump.class(at(ENTRIES), "[Ljava/lang/ThreadLocal$ThreadLocalMap$Entry;", object, 0, &[], &[]);
    dump.class(at(LOCALS), "java/lang/ThreadLocal$ThreadLocalMap", object, 0, &[], &[("table", REFERENCE)]);
    dump.class(at(MAP), "java/util/HashMap", object, 0, &[], &[("table", REFERENCE)]);
    let fields = [("next", REFERENCE), ("value", REFERENCE), ("key", REFERENCE)];
    dump.class(at(NODE), "java/util/HashMap$Node", object, 0, &[], &fields);
    dump.class(at(NODES), "[Ljava/util/HashMap$Node;", object, 0, &[], &[]);
    dump.class(at(LOADER), "java/lang/ClassLoader", object, 0, &[], &[("parent", REFERENCE)]);
    dump.class(at(APP_LOADER), "jdk/internal/loader/ClassLoaders$AppClassLoader", at(LOADER), 0, &[], &[]);
    dump.class(at(PLUGIN_LOADER), "plugin/Loader", at(LOADER), app, &[], &[]);
    dump.class(at(LOCAL), "java/lang/ThreadLocal", object, 0, &[], &[]);
    let held = [("CACHE", at(100)), ("WEAK", at(110)), ("SOFT", at(111)), ("LEFT", at(115)), ("BUFFER", at(118))];
    let loader = [("LOADER", at(117))];
    let orders = dump.class(at(ORDERS), "app/Orders", object, app, &held, &[("count", INT)]);
    dump.class(at(OTHERS), "app/Others", object, app, &[("RIGHT", at(115)), loader[0]], &[]);
    dump.class(at(RULES), "plugin/Rules", object, at(117), &[("PARSED", at(116))], &[]);
    orders
}

/// Five threads, each with a thread-local and a local variable, and one with neither. All follow the heap as in JDK 17.
fn threads(dump: &mut Writer, at: &impl Fn(u64) -> u64, orders: u32) {
    for nth in 0..6 {
        let (serial, base) = (nth as u32 + 1, 1000 + nth * 20);
        let name = if nth < 5 { format!("web-{nth}") } else { "main".to_owned() };
        dump.byte_array(at(base + 2), name.as_bytes());
        let value = at(base + 2).to_be_bytes();
        let id_bytes = dump.id_bytes();
        dump.instance(at(base + 1), at(STRING), &[&value[8 - id_bytes..], &[0]].concat());
        let locals = if nth < 5 { at(base + 3) } else { 0 };
        dump.object(at(base), at(THREAD), &[at(base + 1), locals]);
        dump.root(0x08, at(base), &[serial, serial + 1]);
        if nth == 5 {
            // A static and this thread hold the plug-in's loader.
            dump.root(0x02, at(117), &[serial, u32::MAX]);
            continue;
        }
        dump.object(at(base + 3), at(LOCALS), &[at(base + 4)]);
        dump.array(at(base + 4), at(ENTRIES), &[0, at(base + 5), 0]);
        dump.object(at(base + 5), at(ENTRY), &[at(base + 6), 0, at(118)]);
        dump.byte_array(at(base + 6), &[0; 2000]);
        dump.byte_array(at(base + 7), &[0; 3000]);
        dump.trace(serial + 1, 5000 + nth, "load", orders, 88);
        dump.root(0x03, at(base + 7), &[serial, 0]);
    }
}
