//! Each cause with evidence against it; no cause is both found and ruled out.

use super::*;
use crate::ruled_out;

fn against(trial: &Trial, wanted: &str) -> Option<String> {
    let ruled_out = of_trials(std::slice::from_ref(trial)).ruled_out;
    ruled_out.into_iter().find(|one| one.kind == wanted).map(|one| one.text)
}

#[test]
fn memory_left_by_a_collection_is_not_held_by_garbage() {
    let of = |before: u64, after: u64, compiled_s: [f64; 2]| {
        let mut trial = collected(&[("malloc.live", before)], &[("malloc.live", after)], compiled_s);
        for (mark, mib) in trial.marks.iter_mut().zip([before, before, after]) {
            mark.direct = direct(mib);
        }
        trial
    };
    let text = against(&of(60, 58, [0.0; 2]), "native_held_by_garbage").unwrap();
    let expect = "a full GC freed only 2.0 MiB of the 60.0 MiB of native memory, so unreachable objects do not hold it";
    assert_eq!(text, expect);
    let text = against(&of(60, 58, [0.0; 2]), "direct_memory_waits").unwrap();
    assert_eq!(text, "a full GC left 58.0 MiB of the 60.0 MiB of direct memory, so its buffers are in use");
    // Neither memory freed by compilers nor a found cause is ruled out.
    assert_eq!(against(&of(60, 58, [1.0, 2.0]), "native_held_by_garbage"), None);
    assert_eq!(against(&of(60, 10, [0.0; 2]), "native_held_by_garbage"), None);
    // The freed memory may be from a compiler's pools or from garbage.
    assert_eq!(against(&of(60, 10, [7.0, 7.0]), "native_held_by_garbage"), None);
    assert_eq!(against(&of(60, 53, [0.0; 2]), "native_held_by_garbage"), None);
    assert_eq!(against(&of(60, 10, [0.0; 2]), "direct_memory_waits"), None);
    assert_eq!(against(&of(4, 4, [0.0; 2]), "native_held_by_garbage"), None, "amounts this small are not considered");
}

#[test]
fn live_heap_and_compiler_malloc_rule_out_findings() {
    let heap = |live: u64| {
        with(&loaded(&[("java_heap.used", 80)]), |trial| {
            trial.marks[0].heap.left_by_gc_bytes = Some(live * MIB);
        })
    };
    let text = "the last GC left 40.0 MiB of the 80.0 MiB Java heap, so a smaller heap would leave little headroom";
    assert_eq!(against(&heap(40), "heap_far_above_live").as_deref(), Some(text));
    assert_eq!(against(&heap(20), "heap_far_above_live"), None);
    let malloc = |compilers: u64, growth: u64| {
        with(&loaded(&[("malloc.retained", 40)]), |trial| {
            super::malloc(&mut trial.marks[0]).compilers_retained_bytes = Some(compilers * MIB);
            let (method, rss_growth_bytes) = ("a.B::c".to_owned(), growth * MIB);
            trial.compilations = vec![CompilationRecord { method, rss_growth_bytes, ..Default::default() }];
        })
    };
    let text = "the JIT compilers freed 38.0 MiB of the 40.0 MiB that malloc retains: fewer arenas would not lower \
                that, but a trim might";
    assert_eq!(against(&malloc(38, 20), "malloc_retained").as_deref(), Some(text));
    assert_eq!(against(&malloc(10, 20), "malloc_retained"), None);
    let text = against(&malloc(38, 20), "compiler_peak").unwrap();
    assert_eq!(text, "the largest compilation, of `a.B::c`, used only 20.0 MiB");
}

#[test]
fn stable_metadata_is_ruled_out_and_causes_precede_habits() {
    let marks = ["start", "loaded"].map(|name| mark(name, &[("metaspace", 10)]));
    let mut trial = trial(marks.into());
    trial.marks[1].at_s += 10.0;
    trial.phases = vec![PhaseRecord { at_s: 61.0, ok: 1000, ..PhaseRecord::default() }];
    let text = against(&trial, "metaspace_keeps_growing").unwrap();
    assert_eq!(text, "class metadata grew by only 0.0 MiB over 1,000 responses, from start to loaded");

    let held = [("malloc.live", 60), ("malloc.retained", 30)];
    let cause = collected(&held, &[("malloc.live", 10), ("malloc.retained", 30)], [0.0; 2]);
    assert_eq!(against(&cause, "malloc_retained"), None, "nothing rules out this kind");
    let found = of_trials(std::slice::from_ref(&cause)).findings;
    let kinds: Vec<String> = found.iter().map(|one| one.finding.kind()).collect();
    assert_eq!(kinds, ["native_held_by_garbage", "malloc_retained"]);
    // Similar trials are counted, and one that shows a cause outweighs one that does not.
    let spared = with(&collected(&held, &held, [0.0; 2]), |trial| trial.index = 1);
    let both = of_trials(&[spared.clone(), cause, spared.clone()]).ruled_out;
    assert!(both.iter().all(|one| one.kind != "native_held_by_garbage"), "{both:?}");
    let alike = of_trials(&[spared.clone(), spared]).ruled_out;
    assert_eq!(alike[0].of.as_ref().unwrap().trials_alike, 2);
}

#[test]
fn every_ruled_out_kind_is_a_kind_of_finding() {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/results.schema.json")).unwrap();
    let kinds = schema["$defs"]["Finding"]["oneOf"].as_array().unwrap();
    let page = include_str!("../../../../docs/findings.md");
    for kind in ruled_out::kinds() {
        assert!(kinds.iter().any(|of| of["properties"]["kind"]["const"] == *kind), "{kind}");
        assert!(page.contains(&format!("- `{kind}`: ")), "{kind}");
    }
}
