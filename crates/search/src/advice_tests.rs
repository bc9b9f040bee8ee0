//! The advice calculation by example, and its laws on generated data.

use super::*;
use proptest::prelude::*;

fn part(owner: &str, bytes: u64) -> PartSeen {
    PartSeen { owner: owner.to_owned(), bytes, growth: None }
}

/// A week of a server with 40 MiB of live objects.
fn week() -> Seen {
    Seen {
        heap: HeapSeen {
            left: Some(40 * MIB),
            old_collections: 41,
            allocated_per_s: Some(10.0 * MIB as f64),
            committed: Some(200 * MIB),
            max: Some(256 * MIB),
        },
        parts: vec![part("metaspace", 30 * MIB), part("malloc.live", 20 * MIB), part("libjvm", 10 * MIB)],
        kernel: 4 * MIB,
        peak: 250 * MIB,
        heap_at_peak: 200 * MIB,
        watched_s: WEEK_S,
        lives: 3,
        peaks: 1,
        ..Seen::default()
    }
}

#[test]
fn a_week_gives_a_calculated_limit() {
    let advice = advise(&week(), &["java".into(), "-Xmx256m".into(), "-jar".into(), "a b.jar".into()]);
    assert_eq!(advice.heap_bytes, Some(80 * MIB));
    // 80 + 30 + 20 + 10 + 4 = 144, plus a tenth, rounded up to a whole MiB.
    assert_eq!((advice.limit_bytes, advice.request_bytes), (Some(159 * MIB), Some(159 * MIB)));
    // 250 MiB, plus the 56 MiB by which the heap can still grow to its maximum.
    assert_eq!(advice.limit_as_is_bytes, Some(337 * MIB));
    assert_eq!(advice.confidence, AdviceConfidence::High);
    assert_eq!(advice.evidence, "7.0 days, 3 deployments, one peak, 41 old GCs");
    assert_eq!(advice.why, [""; 0]);
    assert_eq!(advice.share_options, RamShare::options(80 * MIB, 159 * MIB));
    let prove = "loadline find --prove 159m --heap 80m --rate RATE --url URL -- java -jar 'a b.jar'";
    assert!(advice.prove == prove && !advice.proved, "{}", advice.prove);
}

#[test]
fn memory_with_spare_room_gets_no_headroom() {
    let limit = |spare: u64| advise(&Seen { spare, ..week() }, &[]).limit_bytes.map(|limit| limit / MIB);
    // 144 MiB in all: a tenth of 134 is 13.4.
    assert_eq!(
        [limit(0), limit(10 * MIB), limit(u64::MAX)],
        [Some(159), Some(158), Some(152)],
        "the heap gets headroom even if other memory has spare room"
    );
}

#[test]
fn a_busy_server_gets_room_up_to_its_largest_heap() {
    let with = |allocated: u64, committed: u64| {
        let mut seen = week();
        seen.heap.allocated_per_s = Some((allocated * MIB) as f64);
        seen.heap.committed = Some(committed * MIB);
        advise(&seen, &[]).heap_bytes.unwrap() / MIB
    };
    assert_eq!([with(10, 200), with(60, 200), with(600, 200), with(10, 50), with(10, 30)], [80, 100, 200, 50, 40]);
}

#[test]
fn advice_for_a_fresh_jvm_uses_an_upper_bound() {
    let mut seen = Seen { watched_s: 0.0, lives: 0, peaks: 0, age_s: Some(42.0), ..week() };
    (seen.heap.old_collections, seen.heap.committed) = (0, Some(50 * MIB));
    let advice = advise(&seen, &[]);
    assert_eq!(advice.confidence, AdviceConfidence::Low);
    assert_eq!(advice.rows[0].kind, AdvicePart::LiveSetAtMost);
    assert_eq!(advice.heap_bytes, Some(80 * MIB), "a fresh heap may grow beyond its current size");
    assert_eq!(advice.evidence, "one reading, 42 s after startup, 0 old GCs");
    assert!(advice.why[0].starts_with("no old GC ran, so the live set is unknown; the 40.0 MiB"), "{advice:?}");
    assert!(advice.why.iter().any(|why| why.starts_with("the JVM started recently")), "{advice:?}");
    assert!(advice.prove.ends_with("-- COMMAND"));
    // The JVM may need all of its heap.
    assert!(advice.limit_bytes.unwrap() >= seen.peak);
}

#[test]
fn missing_data_is_refused() {
    let refused = |seen: &Seen| {
        let advice = advise(seen, &[]);
        assert_eq!((advice.limit_bytes, advice.heap_bytes, advice.prove.as_str()), (None, None, ""));
        advice.refused.unwrap()
    };
    assert!(refused(&Seen::default()).contains("its heap is unknown"));
    assert!(refused(&Seen { grows: true, ..week() }).contains("its memory grows without bound"));
}

#[test]
fn a_smaller_heap_does_not_starve_direct_memory() {
    let options = |direct: u64, command: &[String]| advise(&Seen { direct: direct * MIB, ..week() }, command).options;
    assert_eq!(options(60, &[]), ["-Xmx80m"]);
    assert_eq!(options(100, &[]), ["-Xmx80m", "-XX:MaxDirectMemorySize=129m"]);
    assert_eq!(options(100, &["-XX:MaxDirectMemorySize=1g".to_owned()]), ["-Xmx80m"]);
}

#[test]
fn a_small_limit_does_not_change_the_collector() {
    let options = |limit_now: Option<u64>, collector: &str, command: &[String]| {
        let collector = Some(collector.to_owned());
        advise(&Seen { limit_now: limit_now.map(|mib| mib * MIB), collector, ..week() }, command).options
    };
    assert_eq!(options(None, "G1", &[]), ["-Xmx80m", "-XX:+UseG1GC"]);
    assert_eq!(options(Some(2048), "G1", &[]), ["-Xmx80m", "-XX:+UseG1GC"]);
    let left = [
        options(Some(512), "G1", &[]),
        options(None, "Serial", &[]),
        options(None, "G1", &["-XX:+UseG1GC".to_owned()]),
    ];
    assert_eq!(left, [["-Xmx80m"]; 3]);
}

#[test]
fn trials_have_medium_confidence() {
    let mut seen = Seen { trials: 1, watched_s: 60.0, lives: 0, peaks: 0, ..week() };
    seen.heap.old_collections = 1;
    let advice = advise(&seen, &[]);
    assert_eq!(advice.confidence, AdviceConfidence::Medium);
    assert_eq!(advice.evidence, "60 s, 1 trial under load, 1 old GC");
    // Doubtful advice has low confidence and gives the reason; its archive has the load.
    let doubt = Doubt::CutShort { phase: "steady".to_owned(), why: "time".to_owned() };
    let doubtful = Seen { doubts: vec![doubt.clone()], scenario: "run --only a".to_owned(), ..seen.clone() };
    let advice = advise(&doubtful.with(seen), &["java".to_owned()]);
    assert_eq!((advice.confidence, advice.why.last()), (AdviceConfidence::Low, Some(&doubt.text())));
    assert!(advice.prove.starts_with("loadline find run --only a --prove "), "{}", advice.prove);
}

/// Sizes up to 64 GiB.
fn size() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..64 * MIB, 0_u64..1 << 36]
}

prop_compose! {
    fn heap()(left in size(), old in 0_u64..9, allocated in proptest::option::of(0.0..1e10), committed in size(),
              max in proptest::option::of(size())) -> HeapSeen {
        let committed = Some(committed.max(left));
        let max = max.map(|max| max.max(left));
        HeapSeen { left: Some(left), old_collections: old, allocated_per_s: allocated, committed, max }
    }
}

prop_compose! {
    fn made_up()(heap in heap(), parts in proptest::collection::vec((size(), proptest::option::of(size())), 0..6),
                 sizes in proptest::array::uniform7(size()), watched_s in 0.0..1e7, trials in 0_u64..3)
                -> Seen {
        let part = |(at, (bytes, growth)): (usize, (u64, Option<u64>))| {
            PartSeen { owner: format!("owner{at}"), bytes, growth }
        };
        let [kernel, kept_cache, others, spare, peak, heap_at_peak, direct] = sizes;
        let parts = parts.into_iter().enumerate().map(part).collect();
        let heap_at_peak = heap_at_peak.min(peak);
        let none = Seen::default();
        Seen { heap, parts, kernel, kept_cache, others, spare, peak, heap_at_peak, direct, watched_s, trials, ..none }
    }
}

proptest! {
    #[test]
    fn the_rows_add_up_to_the_limit(seen in made_up()) {
        let advice = advise(&seen, &[]);
        let (limit, heap) = (advice.limit_bytes.unwrap(), advice.heap_bytes.unwrap());
        prop_assert_eq!(advice.rows.iter().map(|row| row.bytes).sum::<u64>(), limit);
        prop_assert_eq!(advice.rows[0].bytes + advice.rows[1].bytes, heap);
        prop_assert!(limit % MIB == 0 && heap % MIB == 0 && heap < limit);
    }

    #[test]
    fn the_limit_is_never_below_the_observed_need(seen in made_up()) {
        let advice = advise(&seen, &[]);
        let (limit, heap) = (advice.limit_bytes.unwrap(), advice.heap_bytes.unwrap());
        let given_back = seen.heap_at_peak.saturating_sub(heap);
        prop_assert!(limit >= seen.peak - given_back);
        prop_assert!(heap >= seen.heap.left.unwrap());
        prop_assert!(advice.limit_as_is_bytes.unwrap() >= seen.peak);
        let parts: u64 = seen.parts.iter().map(|part| part.bytes).sum();
        prop_assert!(limit >= heap + parts + seen.kernel + seen.kept_cache + seen.others);
    }

    #[test]
    fn more_observations_never_lower_the_advice(seen in made_up(), more in size(), which in 0_usize..9) {
        let mut larger = seen.clone();
        let add = |bytes: &mut u64| *bytes += more;
        match which {
            0 => {
                let old = larger.heap;
                let above = |bytes: Option<u64>| bytes.map(|bytes| bytes + more);
                let [left, committed, max] = [old.left, old.committed, old.max].map(above);
                larger.heap = HeapSeen { left, committed, max, ..old };
            }
            1 => larger.heap.allocated_per_s = Some(seen.heap.allocated_per_s.unwrap_or(0.0) + more as f64),
            2 => larger.parts.push(part("one more", more)),
            3 => add(&mut larger.kernel),
            4 => add(&mut larger.kept_cache),
            5 => add(&mut larger.others),
            6 => add(&mut larger.peak),
            7 => larger.heap.committed = larger.heap.committed.map(|bytes| bytes + more),
            _ => larger.parts.iter_mut().for_each(|part| part.growth = Some(part.growth.unwrap_or(0) + more)),
        }
        let [before, after] = [advise(&seen, &[]), advise(&larger, &[])];
        prop_assert!(before.heap_bytes <= after.heap_bytes);
        prop_assert!(before.limit_bytes <= after.limit_bytes);
    }

    #[test]
    fn advice_for_two_lives_covers_the_larger_need(one in made_up(), other in made_up()) {
        let of = |seen: &Seen| advise(seen, &[]);
        let both = one.clone().with(other.clone());
        // Together they show more, so the headroom may be smaller.
        let bare = |seen: &Seen| of(seen).rows.iter().rev().skip(1).map(|row| row.bytes).sum::<u64>();
        let same_kind = (one.heap.old_collections > 0) == (other.heap.old_collections > 0);
        if same_kind {
            prop_assert!(of(&both).heap_bytes >= of(&one).heap_bytes.max(of(&other).heap_bytes));
            prop_assert!(bare(&both) >= bare(&one).max(bare(&other)));
        }
    }
}
