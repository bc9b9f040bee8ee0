//! Cyclic and very long lists of loaders and classes, truncated fields, and moving objects in every form.

use super::super::HotSpot;
use super::super::classes::{Field, NewestClasses};
use super::super::direct::DirectCounters;
use super::classes::{Form, HEAP, Header, Loaded, MIRROR_BYTES, Planted, References, Resident, laws, loaded, planted};
use super::{MadeUpMemory, PlanBytes};
use crate::observe::memory::Memory;
use crate::observe::procfs::Process;
use crate::observe::untouched::Untouched;
use std::cell::Cell;

const PLAIN: Form = Form { references: References::Wide, header: Header::Wide, stream: true, spread: 0 };
/// Offset of the number in a counter.
const VALUE_AT: u64 = 16;
const ATOMIC: &str = "java/util/concurrent/atomic/AtomicLong";

fn many(loaders: u64, classes: u64) -> (Loaded, HotSpot) {
    let mut made = Loaded::of(PLAIN);
    made.loader(0, false);
    let class = made.class(b"java/lang/ClassLoader", vec![planted("parent", "Ljava/lang/ClassLoader;", 24, false, 0)]);
    for _ in 0..loaders {
        let object = made.loader_object(class, 0);
        made.loader(object, false);
        (0..classes).for_each(|n| _ = made.class(format!("C{n}").as_bytes(), Vec::new()));
    }
    let hotspot = made.hotspot();
    (made, hotspot)
}

/// The number of classes passed to the callback; `None` after an error.
fn walked(made: &Loaded, hotspot: &HotSpot) -> Option<u64> {
    let mut count = 0;
    let walk = made.objects(hotspot).classes().walk(&made.memory, |_, _| count += 1);
    walk.ok().map(|()| count)
}

#[test]
fn a_hundred_thousand_classes_of_ten_thousand_loaders_are_counted() {
    let (made, hotspot) = many(10_000, 10);
    assert_eq!(walked(&made, &hotspot), Some(100_001));
    let all = made.all(&hotspot).unwrap();
    assert_eq!(all.len(), 10_001);
    assert_eq!((all[0].classes, all.iter().map(|loader| loader.classes).sum::<u64>()), (1, 100_001));
}

#[test]
fn cycles_are_detected() {
    let (whole, hotspot) = many(5, 20);
    assert_eq!(walked(&whole, &hotspot), Some(101));
    let loaders: Vec<u64> = whole.classes.iter().map(|class| class.loader).collect();
    let next = |at: u64| at + whole.at(0);
    let mut changes: Vec<(u64, u64)> = Vec::new();
    for from in [1, 5, 20] {
        // A loader's oldest class leads to itself or a newer one, and so does a loader.
        changes.extend([1, 2, 3, 7, 16, 20].map(|to| (next(whole.classes[1].at), whole.classes[to].at)));
        changes.extend([from, 40, 60, 100].map(|to| (next(loaders[from]), loaders[to])));
    }
    for (at, to) in changes {
        let mut made = whole.clone();
        made.memory.word(at, to);
        let before = made.memory.asked();
        assert_eq!(walked(&made, &hotspot), None, "a walk in which {at:#x} leads to {to:#x} must fail");
        assert!(made.memory.asked() - before < 3 * 101 * 16, "{} bytes", made.memory.asked() - before);
        assert!(made.all(&hotspot).is_err());
    }
}

#[test]
fn later_walks_return_only_new_classes() {
    let (mut made, hotspot) = many(3, 3);
    let mut seen = NewestClasses::default();
    let new = |made: &Loaded, seen: &mut NewestClasses| {
        let mut handed_out = Vec::new();
        let walk = made.objects(&hotspot).classes().walk_new(&made.memory, seen, |_, class| handed_out.push(class));
        walk.map(|()| handed_out).ok()
    };
    assert_eq!(new(&made, &mut seen).map(|new| new.len()), Some(10));
    assert_eq!(new(&made, &mut seen), Some(Vec::new()));
    let old = made.classes[1].loader;
    let in_the_newest = made.class(b"InTheNewest", Vec::new());
    let newest = made.loader(0, true);
    let in_a_new_one = made.class(b"InANewOne", Vec::new());
    // An unfinished walk does not count.
    let next_of_old = (old + made.at(0), made.memory.u64(old + made.at(0)).unwrap());
    made.memory.word(next_of_old.0, newest);
    assert_eq!(new(&made, &mut seen), None);
    made.memory.word(next_of_old.0, next_of_old.1);
    assert_eq!(new(&made, &mut seen), Some(vec![in_a_new_one, in_the_newest]));
    assert_eq!((new(&made, &mut seen), seen.has(old), seen.has(1)), (Some(Vec::new()), true, false));
}

/// Every form of references, headers, and fields.
fn forms() -> impl Iterator<Item = (u8, u8)> {
    (0..10).flat_map(|kind| (0..12).map(move |number| (kind, number)))
}

#[test]
fn all_forms_are_read() {
    let rest: Vec<u8> = (0..120u32).map(|n| (n * 37 + n / 3) as u8).collect();
    let mut seen: Vec<String> = Vec::new();
    for (kind, number) in forms() {
        let plan = [&[kind, number][..], &rest].concat();
        let mut made = loaded(&mut PlanBytes::of(&plan));
        let hotspot = made.hotspot();
        laws(&made, &hotspot);
        seen.push(format!("{:?} {:?} {}", made.form.references, made.form.header, made.form.stream));
        assert!(made.classes.len() > 10 && made.classes.iter().any(|class| class.fields.len() > 4));
    }
    seen.sort();
    seen.dedup();
    assert!(seen.len() >= 60, "{seen:?}");
}

fn with_fields(stream: bool, name: &[u8], fields: Vec<Planted>) -> (Loaded, HotSpot) {
    let mut made = Loaded::of(Form { stream, ..PLAIN });
    made.loader(0, false);
    made.class(name, fields);
    let hotspot = made.hotspot();
    (made, hotspot)
}

fn five_fields() -> Vec<Planted> {
    vec![
        planted("a", "J", 64, true, 1),
        planted("b<i>", "I", 80, true, 2),
        planted("c", "[Ljava/lang/String;", 1 << 20, false, 0),
        planted("d", "D", 300_000, false, 0),
        planted("e", "J", 96, true, u64::MAX),
    ]
}

#[test]
fn truncated_fields_are_equal_or_rejected() {
    for stream in [true, false] {
        let (whole, hotspot) = with_fields(stream, b"C", five_fields());
        let class = &whole.classes[0];
        let read = |made: &Loaded, name: &str| made.objects(&hotspot).classes().field(&made.memory, class.at, name);
        let fields = whole.memory.u64(class.at + whole.at(5)).unwrap();
        let length = if stream { u64::from(whole.memory.u32(fields).unwrap()) } else { 12 * class.fields.len() as u64 };
        let mut lost = 0;
        for cut in 0..length {
            let mut made = whole.clone();
            match stream {
                true => made.memory.half(fields, cut as u32),
                false => made.memory.put(class.at + whole.at(4), &(cut as u16 / 12).to_le_bytes()),
            }
            for known in &class.fields {
                let found = read(&made, &known.name);
                assert!(found.is_none() || found.as_ref() == Some(&known.field), "{}, cut at {cut}", known.name);
                lost += u64::from(found.is_none());
            }
            made = whole.clone();
            made.memory.hole = fields + 4 + cut..fields + 4 + length;
            assert_eq!(read(&made, "a"), None, "partly unreadable fields are rejected");
        }
        // Each byte belongs to a field, so a field is incomplete before its last byte; the stream ends with a zero.
        assert!(lost >= length * 2, "{lost} of {}", length * 5);
    }
}

#[test]
fn fields_with_absurd_numbers_are_rejected() {
    for stream in [true, false] {
        let (whole, hotspot) = with_fields(stream, b"C", five_fields());
        let class = whole.classes[0].at;
        let read = |made: &Loaded, name: &str| made.objects(&hotspot).classes().field(&made.memory, class, name);
        assert_eq!(read(&whole, "e"), Some(five_fields()[4].field.clone()));
        let (fields, pool) = (class + whole.at(5), class + whole.at(3));
        let length = whole.memory.u64(fields).unwrap();
        let mut changes = vec![
            (fields, 0),
            (fields, u64::MAX),
            (fields, u64::MAX - 4),
            (pool, 0),
            (pool, u64::MAX),
            (pool, u64::MAX - 100),
        ];
        if stream {
            // A field count that exceeds any stream, even at one byte per field.
            changes.extend([(length, u64::MAX), (length, 0xffff_ffff), (length, 0x0101_0101_0000_ffff)]);
        }
        for (at, word) in changes {
            let mut made = whole.clone();
            made.memory.word(at, word);
            assert_eq!(read(&made, "e"), None, "{at:#x} is {word:#x}");
            assert!(made.memory.asked() < 1 << 24);
        }
        // More fields than there are.
        let mut made = whole.clone();
        made.memory.put(class + whole.at(4), &[0xff; 2]);
        assert_eq!(read(&made, "nobody"), None);
    }
}

#[test]
fn names_match_the_jvm() {
    let long = vec![b'x'; 65_535];
    let names: [(&[u8], &str); 5] = [
        (b"<script>alert('x')</script>", "<script>alert('x')</script>"),
        (b"\xc0\x80\xed\xa0\x80x", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}x"),
        (b"a\0b", "a\0b"),
        (b"", ""),
        (&long, std::str::from_utf8(&long).unwrap()),
    ];
    for (name, expected) in names {
        let (made, hotspot) = with_fields(true, name, Vec::new());
        let class = made.classes[0].at;
        let read = |memory: &MadeUpMemory| made.objects(&hotspot).classes().name(memory, class);
        assert_eq!(read(&made.memory).as_deref(), Some(expected));
        let mut damaged = made.memory.clone();
        for symbol in [0, 5, u64::MAX - 5, u64::MAX] {
            damaged.word(class + made.at(1), symbol);
            assert_eq!(read(&damaged), None, "{symbol:#x}");
        }
    }
}

/// A class with a counter object, an object of the counter's class, one of another class, and their addresses.
struct Counting {
    made: Loaded,
    hotspot: HotSpot,
    class: u64,
    atomic: u64,
    counter: Field,
    value: Field,
}

fn counting(kind: u8, number: u8) -> Counting {
    let mut made = Loaded::of(Form::of(&mut PlanBytes::of(&[kind, number])));
    made.loader(0, false);
    let value = planted("value", "J", VALUE_AT, false, 0);
    let atomic = made.class(ATOMIC.as_bytes(), vec![value.clone()]);
    let counter = planted("COUNT", "Ljava/util/concurrent/atomic/AtomicLong;", 64, true, 1234);
    let class = made.class(b"java/nio/Bits", vec![counter.clone()]);
    let hotspot = made.hotspot();
    Counting { made, hotspot, class, atomic, counter: counter.field, value: value.field }
}

impl Counting {
    fn read(&self, memory: &dyn Memory) -> Result<u64, crate::observe::Unavailable> {
        let objects = self.made.objects(&self.hotspot);
        objects.number_within(memory, (self.class, &self.counter), (self.atomic, &self.value))
    }
}

#[test]
fn other_objects_are_rejected() {
    for (kind, number) in forms() {
        let whole = counting(kind, number);
        let form = whole.made.form;
        assert_eq!(whole.read(&whole.made.memory), Ok(1234), "{form:?}");
        let other = Counting { atomic: whole.class, ..counting(kind, number) };
        assert!(other.read(&other.made.memory).is_err_and(|why| why.is_early), "{form:?}: an object of another class");
        let handle_of = |class: u64| whole.made.memory.u64(class + whole.made.at(2)).unwrap();
        let handle = handle_of(whole.class);
        // The mirror of another class.
        let (objects, number) = (whole.made.objects(&whole.hotspot), planted("n", "J", 64, true, 0).field);
        assert!(objects.number(&whole.made.memory, whole.class, &number).is_ok());
        let mut damaged = whole.made.memory.clone();
        damaged.word(handle, whole.made.memory.u64(handle_of(whole.atomic)).unwrap());
        assert!(objects.number(&damaged, whole.class, &number).is_err_and(|why| why.is_early), "{form:?}");
        for word in [0, 8, u64::MAX, u64::MAX - 7, whole.made.memory.u64(handle).unwrap() ^ 1 << 40] {
            for at in [handle, whole.class + whole.made.at(2)] {
                let mut damaged = whole.made.memory.clone();
                damaged.word(at, word);
                assert!(whole.read(&damaged).is_err_and(|why| why.is_early), "{form:?}: {at:#x} is {word:#x}");
            }
        }
    }
}

/// Memory that is replaced by other memory after this many reads.
struct Moving<'m> {
    before: &'m MadeUpMemory,
    behind: &'m MadeUpMemory,
    after: u64,
    reads: Cell<u64>,
}

impl Memory for Moving<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + 1);
        if self.reads.get() > self.after { self.behind.read(at, into) } else { self.before.read(at, into) }
    }
}

/// A collector copies the counter, updates the field, and reuses the old location.
#[test]
fn a_moving_counter_is_correct_or_rejected() {
    for (kind, number) in forms() {
        let whole = counting(kind, number);
        let mut moved = whole.made.clone();
        let mirror = HEAP + MIRROR_BYTES;
        assert_eq!(moved.memory.u64(mirror + moved.at(3)), Some(whole.class));
        let old = mirror + MIRROR_BYTES;
        let new = moved.object(whole.atomic, 32);
        moved.memory.word(new + VALUE_AT, 1234);
        moved.memory.word(old + VALUE_AT, 666);
        moved.refer(mirror + whole.counter.offset, new);
        let (mut refused, mut reads) = (0, 0);
        loop {
            let (before, behind) = (&whole.made.memory, &moved.memory);
            let moving = Moving { before, behind, after: reads, reads: Cell::new(0) };
            let objects = whole.made.objects(&whole.hotspot);
            let classes = ((whole.class, &whole.counter), (whole.atomic, &whole.value));
            match objects.number_within(&moving, classes.0, classes.1) {
                Ok(number) => assert_eq!(number, 1234, "{:?}, moved after {reads}", whole.made.form),
                Err(why) => refused += u64::from(why.is_early),
            }
            if moving.reads.get() <= reads {
                break;
            }
            reads += 1;
        }
        // Rejected if the move comes between the first and the second read of the field.
        assert!(refused > 0 && refused < reads, "{:?}: {refused} of {reads} reads were rejected", whole.made.form);
    }
}

/// The classes are in the memory of this process.
#[test]
fn endless_classes_are_read_within_the_budget() {
    let classes = 3_000;
    let (jvm, process) = (Resident::with_classes(classes), Process::open(std::process::id()).unwrap());
    let look = |reads: u64| {
        let memory = Untouched::open(&process, &[]).unwrap().within(reads);
        (DirectCounters::of(jvm.objects.clone()).look(&memory).map_err(|why| why.why), memory.left())
    };
    let (looked, left) = look(1 << 20);
    let all = (1 << 20) - left;
    // Each class takes reads of the next class, its name's address and length, and the name itself.
    assert!(looked.is_ok() && (4 * classes..16 * classes).contains(&all), "{looked:?}: {all} reads");
    for budget in [0, 1, 1_000, all / 2, all - 1] {
        let (looked, left) = look(budget);
        assert!(looked.is_err_and(|why| why.contains("could not be")) && left == 0, "{budget} reads: {left} left");
    }
}
