//! Converts an async-profiler recording to sites (lines of code that allocated native memory) and flame graphs.

use crate::error::Result;
use crate::record::{
    AllocatedRecord, CallPurpose, CallRecord, ExplanationRecord, FlameFrameRecord, FlameMoment, FlameRecord,
    FlameStackRecord, FrameCode, SiteRecord,
};
use crate::units::shortened;
use loadline_base::order::Order as _;
use loadline_profile::calls::Call;
use loadline_profile::owner::{Owner, PROFILER_LIBRARY};
use loadline_profile::recording::{CallSite, HeapUse, NativeUse, Recording, Site};
use loadline_profile::sites::{Place, PlaceKind, code_of};
use loadline_profile::stack::Frame;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::time::Duration;

const SITES_MAX: usize = 100;
const FRAMES_MAX: usize = 60;
/// The maximum number of kinds of memory with a flame graph.
const FLAMES_MAX: usize = 8;
/// A smaller kind gets no flame graph.
const FLAME_BYTES_MIN: u64 = 1 << 20;
/// Stacks per flame graph.
const FLAME_STACKS_MAX: usize = 400;
/// Frames per stack, nearest to the allocation.
const FLAME_DEPTH_MAX: usize = 128;
/// Distinct frames per flame graph; limits a record with hostile names to a few MiB.
const FLAME_FRAMES_MAX: usize = 4096;
/// The maximum length of a name in a flame graph.
const FLAME_NAME_MAX: usize = 200;

/// Adds the file's recording to an explanation. Bytes are reported as of `load_ended`, in time since the Unix epoch, or
/// else as of the recording's end. Fails if the file is not a recording, or cannot be read.
pub(super) fn enter(file: File, load_ended: Option<Duration>, found: &mut ExplanationRecord) -> Result<()> {
    let recording = Recording::read_at(file, load_ended)?;
    // The profiler's own memory does not belong to the measured trial.
    let own = |site: &&Site| site.owner != Owner::Profiler;
    let mut sites: Vec<SiteRecord> = recording.sites.iter().filter(own).map(|site| record(&recording, site)).collect();
    sites.retain(|site| site.peak_bytes > 0);
    sites.largest_first(|site| site.loaded_bytes.max(site.peak_bytes));
    sites.truncate(SITES_MAX);
    found.sites = sites;
    found.flames = flames(&recording);
    found.objects = objects(&recording);
    found.calls = recording.calls.iter().take(SITES_MAX).map(|site| call_record(&recording, site)).collect();
    found.missing.extend(recording.notes.iter().map(|note| format!("Native memory by code: {note}.")));
    Ok(())
}

fn record(recording: &Recording, site: &Site) -> SiteRecord {
    let name = site.place.to_string();
    SiteRecord {
        owner: owner(&site.owner).to_owned(),
        kind: site.owner.to_string(),
        frames: named(&name, &recording.below(site)),
        site: name,
        loaded_bytes: site.uses.bytes_then,
        kept_bytes: site.uses.bytes_end.min(site.uses.bytes_then),
        peak_bytes: site.uses.bytes_peak,
        allocations: site.uses.allocations,
        made: recording.made_at(site),
    }
}

/// Live objects by class and site, most bytes first.
fn objects(recording: &Recording) -> Vec<AllocatedRecord> {
    let mut rows: Vec<AllocatedRecord> = Vec::new();
    let mut known: HashMap<(&str, &Place), usize> = HashMap::new();
    // The stack with the most bytes comes first and represents its site.
    for HeapUse { class, stack, place, samples } in &recording.live {
        let at = *known.entry((class, place)).or_insert_with(|| {
            let site = place.to_string();
            let frames = named(&site, &recording.below_place(place, *stack));
            rows.push(AllocatedRecord { class: class.clone(), site, frames, samples: 0, bytes: 0 });
            rows.len() - 1
        });
        rows[at].samples += samples.objects;
        rows[at].bytes = rows[at].bytes.saturating_add(samples.bytes_estimated as u64);
    }
    rows.largest_first(|row| row.bytes);
    rows.truncate(SITES_MAX);
    rows
}

fn call_record(recording: &Recording, site: &CallSite) -> CallRecord {
    let name = site.place.to_string();
    let purpose = match site.call {
        Call::StartsProcess => CallPurpose::StartsProcess,
        Call::OpensFile => CallPurpose::OpensFile,
    };
    CallRecord {
        purpose,
        frames: named(&name, &recording.below_place(&site.place, site.stack)),
        site: name,
        calls: site.calls,
    }
}

/// A site and the frames below it: the site in full, the others without packages.
fn named(site: &str, below: &[&Frame]) -> Vec<String> {
    let below = below.iter().map(|frame| frame.brief()).skip_while(|frame| site.ends_with(frame.as_str()));
    std::iter::once(site.to_owned()).chain(below).take(FRAMES_MAX).collect()
}

/// The account's row for this memory, or a description of its source.
fn owner(of: &Owner) -> &'static str {
    match of {
        Owner::Direct(_) => "malloc.direct",
        Owner::Threads => "thread_stacks",
        Owner::ClassLoading => "metaspace",
        _ => "malloc.live",
    }
}

/// A flame graph for each sufficiently large kind of memory, largest first.
fn flames(recording: &Recording) -> Vec<FlameRecord> {
    let mut kinds: BTreeMap<Owner, Vec<&NativeUse>> = BTreeMap::new();
    for own in &recording.native {
        let site = recording.sites.get(own.site);
        kinds.entry(site.map_or(Owner::Unknown, |site| site.owner.kind())).or_default().push(own);
    }
    kinds.remove(&Owner::Profiler);
    let drawn = kinds.into_iter().filter_map(|(kind, mut uses)| {
        let sum = |bytes: fn(&NativeUse) -> u64| uses.iter().map(|own| bytes(own)).fold(0, u64::saturating_add);
        let (at, bytes): (FlameMoment, fn(&NativeUse) -> u64) = match sum(loaded) >= FLAME_BYTES_MIN {
            true => (FlameMoment::Loaded, loaded),
            false => (FlameMoment::Peak, |own| own.bytes_at_kind_peak),
        };
        let is_large = sum(bytes) >= FLAME_BYTES_MIN;
        uses.largest_first(|own| bytes(own));
        let stacks = uses.into_iter().map(|own| (recording.frames(own.stack).collect(), bytes(own)));
        is_large.then(|| flame(&kind.to_string(), at, stacks))
    });
    let mut flames: Vec<FlameRecord> = drawn.collect();
    flames.largest_first(|flame| flame.bytes);
    flames.truncate(FLAMES_MAX);
    flames
}

fn loaded(own: &NativeUse) -> u64 {
    own.uses.bytes_then
}

/// The flame graph of these stacks, largest first: each has its frames, innermost first, and its bytes.
fn flame<'f>(kind: &str, at: FlameMoment, stacks: impl Iterator<Item = (Vec<&'f Frame>, u64)>) -> FlameRecord {
    let mut flame = FlameRecord { kind: shortened(kind, FLAME_NAME_MAX), at, ..FlameRecord::default() };
    let mut places: HashMap<FlameFrameRecord, u32> = HashMap::new();
    for (frames, bytes) in stacks.filter(|(_, bytes)| *bytes > 0) {
        flame.bytes = flame.bytes.saturating_add(bytes);
        if flame.stacks.len() == FLAME_STACKS_MAX || flame.frames.len() + FLAME_DEPTH_MAX > FLAME_FRAMES_MAX {
            flame.left_out_bytes = flame.left_out_bytes.saturating_add(bytes);
            continue;
        }
        // Omits the profiler's own functions, which are innermost because they intercept the allocation.
        let frames = frames.into_iter().skip_while(|frame| frame.class.starts_with(PROFILER_LIBRARY));
        let frames: Vec<&Frame> = frames.collect();
        let mut place = |frame: &&Frame| {
            let frame = FlameFrameRecord { name: shortened(&frame.to_string(), FLAME_NAME_MAX), code: code(frame) };
            *places.entry(frame).or_insert_with_key(|frame| {
                flame.frames.push(frame.clone());
                flame.frames.len() as u32 - 1
            })
        };
        let kept = frames.iter().take(FLAME_DEPTH_MAX).rev().map(&mut place).collect();
        let outer_left_out = frames.len().saturating_sub(FLAME_DEPTH_MAX) as u64;
        flame.stacks.push(FlameStackRecord { outer_left_out, frames: kept, bytes });
    }
    flame
}

fn code(frame: &Frame) -> FrameCode {
    match code_of(frame) {
        PlaceKind::Application => FrameCode::Application,
        PlaceKind::Framework => FrameCode::Framework,
        PlaceKind::Jdk => FrameCode::Jdk,
        PlaceKind::Native => FrameCode::Native,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_profile::stack::FrameKind;
    use std::io::Cursor;

    /// A program that retains direct buffers and deflaters.
    const SAMPLE: &[u8] = include_bytes!("../../crates/profile/tests/samples/plants-17.jfr");

    fn java(class: &str, line: u32) -> Frame {
        Frame { class: class.into(), method: "run".into(), line: Some(line), kind: FrameKind::Java }
    }

    /// Checks that stacks and omitted bytes add up to the total, that stacks are sorted by size, and that frames are
    /// unique.
    #[track_caller]
    fn check(flame: &FlameRecord) {
        let told: u64 = flame.stacks.iter().map(|stack| stack.bytes).sum();
        assert_eq!(told + flame.left_out_bytes, flame.bytes);
        assert!(flame.stacks.is_sorted_by_key(|stack| std::cmp::Reverse(stack.bytes)));
        let distinct: std::collections::HashSet<&FlameFrameRecord> = flame.frames.iter().collect();
        assert_eq!(distinct.len(), flame.frames.len());
        assert!(flame.stacks.iter().flat_map(|stack| &stack.frames).all(|at| (*at as usize) < flame.frames.len()));
    }

    #[test]
    fn a_recording_has_a_graph_for_each_kind_with_the_bytes_of_its_sites() {
        // Four buffers of 1 MiB remain at the end; 64 MiB came and went before the first of them.
        let between = Some(Duration::from_nanos(1_795_685_350_240_084_202));
        for (then, at, mib) in [(None, FlameMoment::Loaded, 4), (between, FlameMoment::Peak, 64)] {
            let recording = Recording::read_at(Cursor::new(SAMPLE), then).unwrap();
            let flames = flames(&recording);
            flames.iter().for_each(check);
            assert!(flames.is_sorted_by_key(|flame| std::cmp::Reverse(flame.bytes)));
            assert!(flames.iter().all(|flame| flame.bytes >= FLAME_BYTES_MIN));
            let direct = flames.iter().find(|flame| flame.kind == "direct memory").unwrap();
            assert_eq!(direct.at, at);
            assert_eq!(direct.bytes >> 20, mib);
            let line = if then.is_none() { "Plants.buffer(Plants.java:22)" } else { "Plants.freed(Plants.java:16)" };
            let largest = direct.stacks[0].frames.iter().map(|at| &direct.frames[*at as usize]);
            let largest: Vec<&FlameFrameRecord> = largest.collect();
            let at = largest.iter().position(|frame| frame.name == line).unwrap();
            assert_eq!(largest[at].code, FrameCode::Application);
            assert!(largest[at..].iter().any(|frame| frame.code == FrameCode::Jdk), "{largest:?}");
            assert_eq!(largest.last().unwrap().code, FrameCode::Native, "the innermost frame comes last");
            assert!(direct.frames.iter().all(|frame| !frame.name.starts_with(PROFILER_LIBRARY)));
        }
    }

    #[test]
    fn flame_graphs_are_limited_and_report_omitted_bytes() {
        let all: Vec<Frame> = (0..1000).map(|line| java("A", line)).collect();
        let stacks = (0..1000).map(|at| (all.iter().skip(at).collect(), 1000 - at as u64));
        let flame = flame("zlib", FlameMoment::Peak, stacks);
        check(&flame);
        assert_eq!((flame.stacks.len(), flame.bytes), (FLAME_STACKS_MAX, 500_500));
        assert_eq!(flame.left_out_bytes, (1..=600u64).sum::<u64>());
        let first = &flame.stacks[0];
        assert_eq!((first.frames.len(), first.outer_left_out), (FLAME_DEPTH_MAX, 1000 - 128));
        assert_eq!(flame.frames[*first.frames.last().unwrap() as usize].name, "A.run(A.java:0)", "the innermost");
        let many: Vec<Frame> = (0..100 * 128).map(|line| java("A", line)).collect();
        let flame = super::flame("zlib", FlameMoment::Loaded, many.chunks(128).map(|own| (own.iter().collect(), 1)));
        check(&flame);
        assert_eq!((flame.frames.len(), flame.left_out_bytes), (FLAME_FRAMES_MAX, 100 - 32));
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        let long = java(&format!("<b>\u{202e}{}.Evil", "é".repeat(5000)), 7);
        let flame = flame(&"x".repeat(5000), FlameMoment::Loaded, [(vec![&long], 1)].into_iter());
        assert_eq!([&flame.frames[0].name, &flame.kind].map(|name| name.chars().count()), [FLAME_NAME_MAX; 2]);
        assert!(
            flame.frames[0].name.starts_with("<b>\u{202e}é") && flame.frames[0].name.ends_with(".run(Evil.java:7)")
        );
    }
}
