//! Reads async-profiler recordings (4.1 to 4.4): native memory, live objects, and calls, by stack and site.
//!
//! The events, as `jfr print` shows them:
//!
//! ```text
//! profiler.Malloc { startTime, eventThread = "web-3", stackTrace = […], address = 0x7FC03C05E940, size = 1000 bytes }
//! profiler.Free { startTime, eventThread, address = 0x7FD0B0001130 }
//! profiler.LiveObject { startTime, eventThread, stackTrace, objectClass, allocationSize, allocationTime }
//! jdk.MethodTrace { startTime, duration, eventThread, stackTrace, method }
//! jdk.ActiveSetting { name = "nativemem", value = "0" }
//! ```
//!
//! Threads write their events to buffers that are flushed as they fill up, so each chunk must be sorted by time. Chunks
//! are in order, because a chunk ends only after all buffers are flushed. Only one chunk's events and tables, the live
//! allocations, and one copy of each stack are kept in memory. Each of these is limited, and a note says if a limit was
//! reached.

use crate::calls::{Call, call_of};
use crate::jfr::{Chunk, Event, Fault, Input, InputResult, Plan, RawFrame, RecordingFile, Text, Types, Value};
use crate::ledger::{self, Ledger, Uses};
use crate::owner::{Owner, is_one_each};
use crate::sites::{Place, below, locate};
use crate::stack::{Frame, Stacks};
use loadline_base::error::{Error, Result};
use loadline_base::order::Order as _;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::io::{Read, Seek};
use std::time::Duration;

/// Maximum number of events sorted at once: 160 MiB. Chunks of [`crate::agent`]'s recordings have a third of that.
const EVENTS_MAX: usize = 4 << 20;
/// Maximum size of distinct frames and stacks in bytes: 200,000 stacks of 100 frames take 90 MiB.
const STACKS_BYTES_MAX: usize = 256 << 20;
/// Maximum size of thread and class names in bytes.
const NAMES_BYTES_MAX: usize = 128 << 20;
/// Maximum number of chunks in a recording: 16 hours of async-profiler's, at one a minute.
const CHUNKS_MAX: usize = 1000;
const THREADS_MAX: usize = 8;
const THREADS_KEPT_MAX: usize = 1 << 20;
/// Maximum number of rows of live objects, each with a class and a stack.
const OBJECTS_MAX: usize = 1 << 20;

/// A JVM's recording, aggregated.
#[derive(Debug, Default)]
pub struct Recording {
    stacks: Stacks,
    /// Native memory by stack, largest at the peak or the end first. Stacks that share a site are grouped only in
    /// [`Recording::sites`].
    pub native: Vec<NativeUse>,
    /// Native memory by site, largest at the peak or the end first.
    pub sites: Vec<Site>,
    /// All native memory together.
    pub total: Uses,
    /// Seconds from the start of the recording to the total's peak; `None` if nothing was allocated.
    pub peak_at_s: Option<f64>,
    /// Objects still alive at the end, by class and stack, largest first.
    pub live: Vec<HeapUse>,
    /// Started processes and opened files, by site, most calls first.
    pub calls: Vec<CallSite>,
    /// Frees of allocations made before the recording, or not recorded.
    pub frees_unknown: u64,
    /// The sampling interval of native allocations in bytes; 0 means that all were recorded, and `None` that it is
    /// unknown.
    pub native_every: Option<u64>,
    /// Reasons to interpret the figures with care.
    pub notes: Vec<Note>,
}

/// Native memory of one stack.
#[derive(Debug, Clone)]
pub struct NativeUse {
    /// For [`Recording::frames`].
    pub stack: StackId,
    /// Index into [`Recording::sites`].
    pub site: usize,
    /// Bytes and counts.
    pub uses: Uses,
    /// Bytes live when all memory of the same kind ([`Owner::kind`]) was at its peak, up to the requested moment.
    pub bytes_at_kind_peak: u64,
    /// The names of the first eight allocating threads.
    pub threads: Vec<String>,
    /// The number of further threads.
    pub threads_more: u64,
}

/// Native memory of one line of code, or of one activity of the JVM itself.
#[derive(Debug, Clone)]
pub struct Site {
    /// The purpose of the memory.
    pub owner: Owner,
    /// The line.
    pub place: Place,
    /// Bytes and counts of all its stacks; its own peak is that of their sum.
    pub uses: Uses,
    /// Indices into [`Recording::native`], in its order.
    pub stacks: Vec<usize>,
}

/// Objects of one class, allocated on one stack.
#[derive(Debug, Clone)]
pub struct HeapUse {
    /// With its package; `byte[]` for an array.
    pub class: String,
    /// For [`Recording::frames`].
    pub stack: StackId,
    /// The code that allocated them.
    pub place: Place,
    /// Their samples.
    pub samples: Samples,
}

/// Calls with one purpose from one line of code.
#[derive(Debug, Clone)]
pub struct CallSite {
    /// The purpose.
    pub call: Call,
    /// The line.
    pub place: Place,
    /// Number of calls.
    pub calls: u64,
    /// The stack with the most calls, for [`Recording::frames`].
    pub stack: StackId,
}

/// The sampled objects, and the estimated total.
#[derive(Debug, Default, Clone, Copy)]
pub struct Samples {
    /// Objects recorded.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Estimated bytes of all such objects, sampled or not.
    pub bytes_estimated: f64,
}

/// A stack of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StackId(u32);

/// A reason to interpret the figures with care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The file ends before the recording does: the JVM was killed, or the disk is full.
    Cut,
    /// The last chunk was truncated and has no tables, so its events have no stacks. They are counted as `no stack`.
    WithoutStacks,
    /// The file is damaged. The figures cover the readable part.
    Damaged {
        /// Byte offset in the file.
        at: u64,
        /// The damage.
        why: &'static str,
    },
    /// This many events could not be read.
    EventsDamaged(u64),
    /// Nothing was recorded at all.
    Empty,
    /// The profiler recorded no native allocation: there was none, or `nativemem` was not requested.
    NoNative,
    /// Frees were not recorded (`nofree`), or there were none: live memory is unknown.
    NoFrees,
    /// A chunk has more events than can be sorted at once: live memory may be off by the events that are out of order.
    Unsorted,
    /// This many allocations were not tracked, because too many are live.
    Unfollowed(u64),
    /// There are more distinct stacks than are kept; the others are counted as `no stack`.
    TooManyStacks,
    /// There are more classes and stacks of objects than are kept; the others are omitted.
    TooManyObjects,
    /// There are more chunks than are read.
    TooManyChunks,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => {
                f.write_str("the recording is truncated: the JVM was killed during the recording, or the disk is full")
            }
            Self::WithoutStacks => {
                f.write_str("the last part has no stacks, because the profiler writes them when it stops")
            }
            Self::Damaged { at, why } => write!(f, "the recording is damaged at byte {at}: {why}"),
            Self::EventsDamaged(count) => write!(f, "{count} events cannot be read"),
            Self::Empty => f.write_str("nothing was recorded: the profiler did not start, or nothing was allocated"),
            Self::NoNative => f.write_str("no native allocation was recorded"),
            Self::NoFrees => f.write_str("no frees were recorded, so the bytes include memory that was freed"),
            Self::Unsorted => {
                f.write_str("one part of the recording has too many events to sort at once, so bytes are approximate")
            }
            Self::Unfollowed(count) => write!(f, "{count} allocations were left out because too many are live"),
            Self::TooManyStacks => f.write_str("the recording has too many stacks, so some are counted as `no stack`"),
            Self::TooManyObjects => {
                f.write_str("the recording has too many classes and stacks of objects, so some are left out")
            }
            Self::TooManyChunks => f.write_str("the recording has too many parts, so the last ones are left out"),
        }
    }
}

impl Recording {
    /// Reads a whole recording, or the part that is readable (see [`Recording::notes`]). Fails if the file cannot be
    /// read, or is not a recording.
    pub fn read(file: impl Read + Seek) -> Result<Self> {
        Self::read_at(file, None)
    }

    /// Also computes what was live at a moment since 1970, as [`Uses::bytes_then`].
    pub fn read_at(mut file: impl Read + Seek, then: Option<Duration>) -> Result<Self> {
        let mut reader = RecordingReader::default();
        if let Some(then) = then {
            reader.ledger.keep(u64::try_from(then.as_nanos()).unwrap_or(u64::MAX));
        }
        match reader.chunks(&mut file) {
            Ok(()) => Ok(reader.close()),
            Err(Fault::Io(cause)) => {
                Err(Error::machine(format!("the recording cannot be read: {}", loadline_base::error::plain(&cause))))
            }
            Err(Fault::Damage(why)) => Err(Error::machine(format!("this file is not a recording of a JVM: {why}"))),
        }
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, stack: StackId) -> impl DoubleEndedIterator<Item = &Frame> + Clone {
        self.stacks.frames(stack.0)
    }

    /// The number of a site's threads or class loaders that still existed at the moment of [`Uses::bytes_then`]; 0
    /// for memory with another purpose, or if libjvm is stripped.
    pub fn made_at(&self, site: &Site) -> u64 {
        let stacks = site.stacks.iter().filter_map(|place| self.native.get(*place));
        let each = stacks.filter(|own| is_one_each(self.frames(own.stack), &site.owner));
        each.map(|own| own.uses.allocations_then).sum()
    }

    /// The frames from a site down to the allocation, on its largest stack.
    pub fn below(&self, site: &Site) -> Vec<&Frame> {
        let largest = site.stacks.first().and_then(|place| self.native.get(*place));
        self.below_place(&site.place, largest.map_or(StackId(u32::MAX), |largest| largest.stack))
    }

    /// The frames of a stack from a place down to the innermost.
    pub fn below_place(&self, place: &Place, stack: StackId) -> Vec<&Frame> {
        below(self.stacks.frames(stack.0), place)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    Malloc,
    Free,
    Live,
    Call,
    Setting,
}

/// Each event's type, and the wanted fields.
const EVENTS: [(&str, EventKind, [&str; 5]); 5] = [
    ("profiler.Malloc", EventKind::Malloc, ["startTime", "eventThread", "stackTrace", "address", "size"]),
    ("profiler.Free", EventKind::Free, ["startTime", "eventThread", "stackTrace", "address", "size"]),
    (
        "profiler.LiveObject",
        EventKind::Live,
        ["startTime", "eventThread", "stackTrace", "objectClass", "allocationSize"],
    ),
    ("jdk.MethodTrace", EventKind::Call, ["startTime", "eventThread", "stackTrace", "", ""]),
    ("jdk.ActiveSetting", EventKind::Setting, ["name", "value", "", "", ""]),
];

/// How to read the events of a chunk, by type id.
#[derive(Debug, Default)]
struct Plans(HashMap<u64, Option<(EventKind, Plan)>>);

impl Plans {
    fn of(&mut self, types: &Types, id: u64) -> InputResult<Option<&(EventKind, Plan)>> {
        let plan = match self.0.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let of = types.get(id);
                let known = of.and_then(|of| Some((of, EVENTS.iter().find(|(name, ..)| *name == of.name)?)));
                new.insert(match known {
                    Some((of, (_, kind, fields))) => Some((*kind, Plan::new(types, of, fields)?)),
                    None => None,
                })
            }
        };
        Ok(plan.as_ref())
    }
}

/// Maps the keys of a chunk's tables to indices in the whole recording.
#[derive(Debug, Default)]
struct Keys {
    stacks: HashMap<u64, u32>,
    frames: HashMap<RawFrame, u32>,
    threads: HashMap<u64, u32>,
}

#[derive(Debug, Default)]
struct StackThreads {
    names: Vec<u32>,
    more: u64,
}

#[derive(Debug, Default)]
struct RecordingReader {
    stacks: Stacks,
    ledger: Ledger,
    /// Sites by owner and place, with their group index in the ledger.
    sites: HashMap<(Owner, Place), u32>,
    site_of: HashMap<u32, u32>,
    /// The index of each kind of owner in the ledger.
    kinds: HashMap<Owner, u32>,
    threads: Vec<(u64, String)>,
    thread_places: HashMap<(u64, String), u32>,
    stack_threads: HashMap<u32, StackThreads>,
    events: Vec<ledger::Event>,
    live: HashMap<(String, u32), Samples>,
    calls: HashMap<u32, u64>,
    native_every: Option<u64>,
    heap_every: Option<u64>,
    /// Bytes of thread and class names.
    names_bytes: usize,
    mallocs: u64,
    frees: u64,
    first_ns: Option<u64>,
    notes: Vec<Note>,
}

/// Converts ticks to nanoseconds since 1970. Each chunk has its own frequency: only differences within a chunk are
/// scaled by it.
fn nanoseconds(chunk: &Chunk, ticks: u64) -> u64 {
    let since = u128::from(ticks.saturating_sub(chunk.start_ticks));
    let scaled = since * 1_000_000_000 / u128::from(chunk.ticks_per_second.max(1));
    chunk.start_ns.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX))
}

impl RecordingReader {
    fn note(&mut self, note: Note) {
        if !self.notes.contains(&note) && self.notes.len() < 32 {
            self.notes.push(note);
        }
    }

    fn chunks(&mut self, file: &mut dyn RecordingFile) -> InputResult<()> {
        let (mut input, len) = Input::new(file)?;
        let input = &mut input;
        if len == 0 {
            self.note(Note::Empty);
            return Ok(());
        }
        let (mut start, mut read) = (0, 0);
        while start < len {
            if read == CHUNKS_MAX {
                self.note(Note::TooManyChunks);
                break;
            }
            let mut chunk = match Chunk::open(input, start, len) {
                Ok(chunk) => chunk,
                Err(Fault::Damage(_)) if start == 0 && is_cut_magic(input, len)? => {
                    self.note(Note::Cut);
                    break;
                }
                Err(Fault::Damage(why)) if start > 0 => {
                    let note = if len - start < 68 { Note::Cut } else { Note::Damaged { at: start, why } };
                    self.note(note);
                    break;
                }
                Err(fault) => return Err(fault),
            };
            read += 1;
            self.chunk(input, &mut chunk)?;
            if chunk.cut {
                self.note(Note::Cut);
            }
            start = chunk.end.max(start + 1);
        }
        Ok(())
    }

    fn chunk(&mut self, input: &mut Input<'_>, chunk: &mut Chunk) -> InputResult<()> {
        let (mut plans, mut keys) = (Plans::default(), Keys::default());
        let before = self.mallocs;
        let damaged = chunk.events(input, |chunk, event, input| {
            self.event(&mut plans, &mut keys, chunk, event, input)?;
            if self.events.len() == EVENTS_MAX {
                self.note(Note::Unsorted);
                self.sort();
            }
            Ok(())
        })?;
        self.sort();
        if self.mallocs > before && !chunk.tables.have_stacks() {
            self.note(Note::WithoutStacks);
        }
        for damage in chunk.damage.iter().filter(|damage| !(chunk.cut && damage.why == "the file ends here")) {
            self.note(Note::Damaged { at: damage.at, why: damage.why });
        }
        if damaged > 1 {
            self.note(Note::EventsDamaged(damaged));
        }
        Ok(())
    }

    /// Counts the chunk's events in time order.
    fn sort(&mut self) {
        // The sort is stable: events with equal times keep the order of the file.
        self.events.sort_by_key(|event| event.at_ns);
        if let Some(first) = self.events.first() {
            self.first_ns.get_or_insert(first.at_ns);
        }
        for event in self.events.drain(..) {
            self.ledger.count(event);
        }
    }

    /// Reads one event; native memory events are added to `events`.
    fn event(
        &mut self,
        plans: &mut Plans,
        keys: &mut Keys,
        chunk: &Chunk,
        event: Event,
        input: &mut Input<'_>,
    ) -> InputResult<()> {
        let Some((kind, plan)) = plans.of(&chunk.types, event.of)? else { return Ok(()) };
        let values: [Value; 5] = plan.read(&chunk.types, input)?;
        if *kind == EventKind::Setting {
            self.setting(chunk, &values);
            return Ok(());
        }
        let [start, thread, stack, what, size] = values.map(|value| value.number());
        let at_ns = nanoseconds(chunk, start);
        let thread = self.thread(keys, chunk, thread);
        match kind {
            EventKind::Free => {
                self.frees += 1;
                self.events.push(ledger::Event { at_ns, address: what, bytes: None, stack: 0, thread });
            }
            EventKind::Call => {
                let stack = self.stack(keys, chunk, stack, thread);
                *self.calls.entry(stack).or_default() += 1;
            }
            _ if i64::try_from(size).is_err() => return Err(Fault::Damage("a negative size")),
            EventKind::Malloc => {
                let stack = self.stack(keys, chunk, stack, thread);
                self.mallocs += 1;
                self.allocated_by(stack, thread);
                let bytes = Some(size.max(self.native_every.unwrap_or(0)));
                self.events.push(ledger::Event { at_ns, address: what, bytes, stack, thread });
            }
            _ => {
                let stack = self.stack(keys, chunk, stack, thread);
                let class = chunk.tables.class(what);
                let (len, room) = (self.live.len(), NAMES_BYTES_MAX.saturating_sub(self.names_bytes));
                match self.live.entry((class, stack)) {
                    Entry::Occupied(mut known) => known.get_mut().add(size, self.heap_every),
                    Entry::Vacant(new) if len < OBJECTS_MAX && new.key().0.len() < room => {
                        self.names_bytes += new.key().0.len();
                        new.insert(Samples::default()).add(size, self.heap_every);
                    }
                    Entry::Vacant(_) => self.note(Note::TooManyObjects),
                }
            }
        }
        Ok(())
    }

    fn setting(&mut self, chunk: &Chunk, values: &[Value; 5]) {
        let text = |value: &Value| match value {
            Value::Text(text) => chunk.tables.string(text).to_owned(),
            Value::Number(key) => chunk.tables.string(&Text::Pooled(*key)).to_owned(),
            Value::Missing => String::new(),
        };
        // The profiler writes -1 for anything that was not requested.
        let every = || text(&values[1]).parse::<i64>().ok().and_then(|every| u64::try_from(every).ok());
        match text(&values[0]).as_str() {
            "nativemem" => self.native_every = every(),
            "alloc" => self.heap_every = every(),
            _ => {}
        }
    }

    fn thread(&mut self, keys: &mut Keys, chunk: &Chunk, key: u64) -> u32 {
        if let Some(place) = keys.threads.get(&key) {
            return *place;
        }
        let known = (key, chunk.tables.thread(key));
        let place = match self.thread_places.get(&known) {
            Some(place) => *place,
            None if self.threads.len() >= THREADS_KEPT_MAX || self.names_bytes >= NAMES_BYTES_MAX => 0,
            None => {
                self.names_bytes += known.1.len();
                let place = self.threads.len() as u32;
                self.threads.push(known.clone());
                self.thread_places.insert(known, place);
                place
            }
        };
        keys.threads.insert(key, place);
        place
    }

    /// The index of a stack; a new one gets its site.
    fn stack(&mut self, keys: &mut Keys, chunk: &Chunk, key: u64, thread: u32) -> u32 {
        if let Some(place) = keys.stacks.get(&key) {
            return *place;
        }
        let mut places = Vec::new();
        if self.stacks.bytes() < STACKS_BYTES_MAX {
            for raw in chunk.tables.stack(key) {
                let stacks = &mut self.stacks;
                places.push(*keys.frames.entry(*raw).or_insert_with(|| stacks.keep_frame(chunk.tables.frame(*raw))));
            }
        } else {
            self.note(Note::TooManyStacks);
        }
        let place = self.stacks.keep(&places);
        keys.stacks.insert(key, place);
        if !self.site_of.contains_key(&place) {
            let name = self.threads.get(thread as usize).map_or("", |(_, name)| name);
            let site = locate(self.stacks.frames(place), name);
            let next = self.kinds.len() as u32;
            let kind = *self.kinds.entry(site.0.kind()).or_insert(next);
            let next = self.sites.len() as u32;
            let group = *self.sites.entry(site).or_insert(next);
            self.site_of.insert(place, group);
            self.ledger.stack(place, group, kind);
        }
        place
    }

    fn allocated_by(&mut self, stack: u32, thread: u32) {
        let threads = self.stack_threads.entry(stack).or_default();
        if threads.names.contains(&thread) {
            return;
        }
        match threads.names.len() < THREADS_MAX {
            true => threads.names.push(thread),
            false => threads.more += 1,
        }
    }

    fn close(mut self) -> Recording {
        if self.mallocs == 0 && self.live.is_empty() {
            self.note(Note::Empty);
        } else if self.mallocs == 0 {
            self.note(Note::NoNative);
        } else if self.frees == 0 {
            self.note(Note::NoFrees);
        }
        if self.ledger.unfollowed > 0 {
            self.note(Note::Unfollowed(self.ledger.unfollowed));
        }
        let frees_unknown = self.ledger.frees_unknown;
        let closed = self.ledger.close();
        let name = |thread: &u32| self.threads.get(*thread as usize).map(|(_, name)| name.clone()).unwrap_or_default();
        let mut native: Vec<NativeUse> = Vec::new();
        for (stack, uses) in closed.stacks.iter().enumerate().filter(|(_, uses)| uses.allocations > 0) {
            let stack = stack as u32;
            let threads = self.stack_threads.remove(&stack).unwrap_or_default();
            let site = self.site_of.get(&stack).copied().unwrap_or(0) as usize;
            native.push(NativeUse {
                stack: StackId(stack),
                site,
                uses: *uses,
                bytes_at_kind_peak: closed.at_kind_peak.get(stack as usize).copied().unwrap_or(0),
                threads: threads.names.iter().map(name).collect(),
                threads_more: threads.more,
            });
        }
        native.largest_first(|own| weight(&own.uses));
        Recording {
            sites: sites(self.sites, &closed.groups, &mut native),
            native,
            total: closed.total,
            peak_at_s: closed.peak_at_ns.map(|at| at.saturating_sub(self.first_ns.unwrap_or(0)) as f64 / 1e9),
            live: heap_uses(self.live, &self.stacks),
            calls: call_sites(self.calls, &self.stacks),
            frees_unknown,
            native_every: self.native_every,
            notes: self.notes,
            stacks: self.stacks,
        }
    }
}

/// Whether a file shorter than a header begins like one.
fn is_cut_magic(input: &mut Input<'_>, len: u64) -> InputResult<bool> {
    if len >= 68 {
        return Ok(false);
    }
    input.enter(0, len)?;
    for expect in b"FLR\0" {
        match input.byte() {
            Ok(byte) if byte == *expect => {}
            Err(Fault::Damage(_)) => return Ok(true),
            other => return other.map(|_| false),
        }
    }
    Ok(true)
}

/// The sort key of rows: bytes at the end or at the peak, whichever is more.
fn weight(uses: &Uses) -> u64 {
    uses.bytes_end.max(uses.bytes_at_peak)
}

/// The sites, largest first; stores their indices in the rows of native memory.
fn sites(known: HashMap<(Owner, Place), u32>, groups: &[Uses], native: &mut [NativeUse]) -> Vec<Site> {
    let mut sites: Vec<(u32, Site)> = known
        .into_iter()
        .map(|((owner, place), group)| {
            let uses = groups.get(group as usize).copied().unwrap_or_default();
            (group, Site { owner, place, uses, stacks: Vec::new() })
        })
        .filter(|(_, site)| site.uses.allocations > 0)
        .collect();
    sites.order_by_key(|(group, site)| (std::cmp::Reverse(weight(&site.uses)), *group));
    let places: HashMap<u32, usize> = sites.iter().enumerate().map(|(at, (group, _))| (*group, at)).collect();
    for (row, own) in native.iter_mut().enumerate() {
        own.site = places.get(&(own.site as u32)).copied().unwrap_or(0);
        if let Some((_, site)) = sites.get_mut(own.site) {
            site.stacks.push(row);
        }
    }
    sites.into_iter().map(|(_, site)| site).collect()
}

impl Samples {
    /// HotSpot samples an allocation of `size` bytes with probability 1 − e^(−size ÷ every), so each sample has the
    /// inverse weight (JEP 331: geometric distribution with mean `every`).
    fn add(&mut self, size: u64, every: Option<u64>) {
        let every = every.unwrap_or(0) as f64;
        let chance = if every > 0.0 { -(-(size as f64) / every).exp_m1() } else { 1.0 };
        let stands_for = if chance > 0.0 { 1.0 / chance } else { 0.0 };
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(size);
        self.bytes_estimated += stands_for * size as f64;
    }
}

fn heap_uses(rows: HashMap<(String, u32), Samples>, stacks: &Stacks) -> Vec<HeapUse> {
    let uses = rows.into_iter().map(|((class, stack), samples)| {
        let place = locate(stacks.frames(stack), "").1;
        HeapUse { class, stack: StackId(stack), place, samples }
    });
    let mut uses: Vec<HeapUse> = uses.collect();
    let bytes = |own: &HeapUse| own.samples.bytes_estimated;
    uses.order_by(|a, b| bytes(b).total_cmp(&bytes(a)).then_with(|| (&a.class, a.stack.0).cmp(&(&b.class, b.stack.0))));
    uses
}

/// The calls with a known purpose, by site.
fn call_sites(rows: HashMap<u32, u64>, stacks: &Stacks) -> Vec<CallSite> {
    let mut rows: Vec<(u32, u64)> = rows.into_iter().collect();
    rows.order_by_key(|(stack, calls)| (std::cmp::Reverse(*calls), *stack));
    let mut sites: Vec<CallSite> = Vec::new();
    let mut known: HashMap<(Call, Place), usize> = HashMap::new();
    for (stack, calls) in rows {
        let Some(call) = call_of(stacks.frames(stack)) else { continue };
        let place = locate(stacks.frames(stack), "").1;
        let at = *known.entry((call, place)).or_insert_with_key(|(call, place)| {
            sites.push(CallSite { call: *call, place: place.clone(), calls: 0, stack: StackId(stack) });
            sites.len() - 1
        });
        sites[at].calls += calls;
    }
    sites.largest_first(|site| site.calls);
    sites
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
