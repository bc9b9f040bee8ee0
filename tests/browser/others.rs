//! Pages other than the report of trials, made by hand: a fleet, the end of a JVM that was watched, and a trial with
//! the code that holds its memory.

use super::fixtures;
use loadline::record::{FleetDocument, Machine, PostMortem};
use loadline::report;
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;

/// A fleet with a service of each verdict, one of which has this name.
pub(crate) fn fleet(name: &str) -> String {
    let line = |mib: u64| {
        json!({
            "limit_bytes": mib * MIB, "heap_bytes": mib * MIB / 2, "direct_bytes": null, "held": 5,
            "failing_share_max": 0.45, "below_bytes": null, "cause": null, "cause_text": [], "edge_width": 0.0
        })
    };
    let verdicts = ["proved", "first", "same", "lower", "higher", "not_held", "unknown", "failed", "missing"];
    let service = |(index, verdict): (usize, &&str)| {
        let mib = (index < 5).then_some(100 + 40 * index as u64);
        let past: Vec<Value> = (10..22)
            .map(|day| json!({"at": format!("2026-11-{day}T01:00:00Z"), "limit_bytes": (90 + day % 3 * 8) * MIB}))
            .collect();
        json!({
            "name": if index == 3 { name.to_owned() } else { format!("service-{index}") }, "index": index,
            "verdict": verdict, "text": format!("{name} became what it is"), "line": mib.map(line),
            "limit_bytes": mib.map(|mib| (mib + mib / 10) * MIB), "options": ["-Xmx64m"], "declared_bytes": 512 * MIB,
            "wasted_bytes": mib.map(|mib| (512 - mib - mib / 10) * MIB), "last_bytes": 100 * MIB, "past": past,
            "node": "n1", "other_cpu": index == 2, "trials": 14, "seconds": 600.0, "last": null
        })
    };
    let services: Vec<Value> = verdicts.iter().enumerate().map(service).collect();
    let machine =
        Machine { cpu_model: Some("AMD EPYC 7B13".to_owned()), ..fixtures::document(Vec::new()).conditions.machine };
    let document: FleetDocument = serde_json::from_value(json!({
        "schema": loadline::record::FLEET_SCHEMA,
        "plan": {"schema": loadline::record::FLEET_PLAN_SCHEMA, "loadline": "0.1.0", "name": "shop",
            "made": "2026-11-23T01:00:00Z", "entries": 9, "hash": "2c26b46b68ff".repeat(5)},
        "standing": {"answered": 6, "missing": [8], "failed": [7], "double": [3]},
        "nodes": [{"name": "n1", "cpus": 4, "restarts": 0, "machine": machine}],
        "services": services, "wasted_bytes": 1500 * MIB, "node_seconds": 9000.0, "comparison": null
    }))
    .unwrap();
    report::fleet_page(&document)
}

/// A trial whose direct memory was allocated at this site, with a flame graph of two stacks, and what keeps its heap.
pub(crate) fn explained(site: &str) -> String {
    let (mut document, evidence) = fixtures::comparison(&["serial"], 1, fixtures::FEW);
    let frames = ["java.lang.Thread.run", site, "java.nio.Bits.reserveMemory", "os::malloc"];
    let codes = ["jdk", "application", "jdk", "native"];
    let frames: Vec<Value> = frames.iter().zip(codes).map(|(name, code)| json!({"name": name, "code": code})).collect();
    let explanation = json!({
        "profiler": "libasyncProfiler.so", "missing": [],
        "sites": [{"owner": "malloc.direct", "kind": "direct memory", "site": site, "frames": [site, "os::malloc"],
            "loaded_bytes": 48 * MIB, "kept_bytes": 40 * MIB, "peak_bytes": 50 * MIB, "allocations": 480, "made": 0}],
        "flames": [{"kind": "direct memory", "at": "loaded", "bytes": 50 * MIB, "left_out_bytes": MIB, "frames": frames,
            "stacks": [{"outer_left_out": 0, "frames": [0, 1, 2, 3], "bytes": 48 * MIB},
                {"outer_left_out": 3, "frames": [2, 3], "bytes": MIB}]}],
        "heap": {"live_bytes": 27 * MIB, "objects": 460_000, "covered_bytes": 26 * MIB,
            "holders": [{"name": site, "path": ["java.util.HashSet.map"], "retained_bytes": 26 * MIB,
                "objects": 450_003, "classes": [{"name": "java.lang.String", "instances": 90_000, "bytes": MIB}]}]}
    });
    document.trials[0].explanation = Some(serde_json::from_value(explanation).unwrap());
    report::html(&document, &evidence, &[])
}

/// A JVM of this name whose heap grew until the kernel killed it.
pub(crate) fn post_mortem(name: &str) -> String {
    let stretches = 180u64;
    let grown = |from: u64, step: u64| (0..stretches).map(|at| (from + at * step / 60) * MIB).collect::<Vec<_>>();
    let owners = [("java_heap", 640), ("metaspace", 70), ("code_cache", 40), ("thread_stacks", 12), ("rest", 90)];
    let owners: Vec<Value> = owners.iter().map(|(owner, mib)| json!({"name": owner, "bytes": mib * MIB})).collect();
    let document: PostMortem = serde_json::from_value(json!({
        "schema": "loadline.post_mortem/1", "loadline": "0.1.0", "command": "loadline watch --post-mortem 4711",
        "name": name, "pid": 4711, "started_unix_s": 1_795_000_000_u64, "ran": format!("java -Xmx640m -jar {name}.jar"),
        "version": "25.0.3+9", "collector": "G1", "age_s": 11_000.0, "end": "killed",
        "killed_by": format!("/kubepods/{name}"), "source": "kernel log", "limit_bytes": 900 * MIB, "cause": "leak",
        "last": {"rss_anon_bytes": 850 * MIB, "heap_used_bytes": 630 * MIB}, "owners": owners,
        "course": {"from_age_s": 200.0, "step_s": 60.0, "limit_bytes": vec![900 * MIB; 180], "parts": [
            {"name": "memory", "values": grown(300, 180)}, {"name": "java_heap", "values": grown(100, 180)},
            {"name": "rest", "values": grown(200, 0)}]},
        "weighed_at_s": [400.0, 9000.0], "accounts": [format!("{name}-1.json"), format!("{name}-2.json")]
    }))
    .unwrap();
    report::post_mortem_page(&document)
}
