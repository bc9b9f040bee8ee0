//! Other handwritten pages: the end of a watched JVM, and a trial with the code that holds its memory.

use super::fixtures;
use loadline::record::PostMortem;
use loadline::report;
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;

/// A trial with direct memory from this site, a flame graph of two stacks, and heap holders.
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

/// A JVM with this name whose heap grew until it was OOM-killed.
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
