//! Texts of each kind, most of them from real JVMs and runtimes.

use crate::record::{Lacked, Trace};
use proptest::prelude::*;

fn read(text: &str) -> Vec<Trace> {
    super::read(text).unwrap_or_default()
}

const MIB: u64 = 1 << 20;

#[test]
fn cgroup_event_counts_are_read_on_both_versions() {
    let v2 = "low 0\nhigh 0\nmax 812\noom 3\noom_kill 2\noom_group_kill 0\n";
    assert_eq!(read(v2), [Trace::MemoryEvents { oom_kills: 2, at_limit: Some(812) }]);
    let v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n";
    assert_eq!(read(v1), [Trace::MemoryEvents { oom_kills: 1, at_limit: None }]);
    assert!(read("oom_kill 1\n[ 12.3] java invoked oom-killer\n").is_empty(), "the text is not a memory.events file");
}

/// Excerpts from files by JDK 17.0.15 and 25.0.3 with `-XX:+CrashOnOutOfMemoryError`, Serial and G1.
#[test]
fn a_full_heap_a_crash_and_a_kernel_refusal_are_distinguished() {
    let serial = "\
#
# A fatal error has been detected by the Java Runtime Environment:
#
#  Internal Error (debug.cpp:362), pid=5102, tid=5103
#  fatal error: OutOfMemory encountered: Java heap space
#
# JRE version: OpenJDK Runtime Environment (17.0.15+6)

Time: Sat Nov 28 15:29:46 2026 UTC elapsed time: 0.286966 seconds (0d 0h 0m 0s)

Heap:
 def new generation   total 19648K, used 19458K [0x00000000fc000000, 0x00000000fd550000, 0x00000000fd550000)
  eden space 17472K,  99% used [0x00000000fc000000, 0x00000000fd100820, 0x00000000fd110000)
 tenured generation   total 43712K, used 43459K [0x00000000fd550000, 0x0000000100000000, 0x0000000100000000)
 Metaspace       used 133K, committed 384K, reserved 1114112K

Resident Set Size: 105012K (peak: 105012K) (anon: 84716K, file: 20296K, shmem: 0K)
memory_limit_in_bytes: 524288 k
memory_usage_in_bytes: 1628972 k
";
    let expect = Trace::FatalError {
        problem: "fatal error: OutOfMemory encountered: Java heap space".to_owned(),
        lacked: Lacked::Heap,
        time: "Sat Nov 28 15:29:46 2026 UTC".to_owned(),
        heap_used_bytes: Some((19458 + 43459) << 10),
        heap_max_bytes: Some(64 * MIB),
        rss_bytes: Some(105_012 << 10),
        limit_bytes: Some(512 * MIB),
        usage_bytes: Some(1_628_972 << 10),
    };
    assert_eq!(read(serial), [expect]);
    let lacked = |head: &str| match read(head).as_slice() {
        [Trace::FatalError { lacked, problem, .. }] => (*lacked, problem.clone()),
        other => panic!("{other:?}"),
    };
    let fatal = "#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n";
    let segv = format!("{fatal}#  SIGSEGV (0xb) at pc=0x00007f3b, pid=12, tid=13\n#\n# JRE version: 17\n");
    assert_eq!(lacked(&segv), (Lacked::Nothing, "SIGSEGV (0xb) at pc=0x00007f3b, pid=12, tid=13".to_owned()));
    let metaspace = format!("{fatal}#  fatal error: OutOfMemory encountered: Metaspace\n");
    assert_eq!(lacked(&metaspace).0, Lacked::Metaspace);
    // The wording of `VMError` (JDK 11 to 27), after the program's own output.
    let native = "starting\n#\n# There is insufficient memory for the Java Runtime Environment to continue.\n\
                  # Native memory allocation (mmap) failed to map 65536 bytes for committing reserved memory.\n";
    let problem = "Native memory allocation (mmap) failed to map 65536 bytes for committing reserved memory.";
    assert_eq!(lacked(native), (Lacked::Native, problem.to_owned()));
}

/// Logs of a program that fills a heap of 64 MiB: JDK 17.0.15 (Serial, G1, Shenandoah), 25.0.3 (ZGC, Shenandoah).
#[test]
fn a_heap_is_full_if_full_collections_free_nothing() {
    let of = |lines: &[&str]| match read(&lines.join("\n")).as_slice() {
        [Trace::GcLog { collections, full, left_bytes, heap_bytes, was_full }] => {
            (*collections, *full, left_bytes / MIB, heap_bytes / MIB, *was_full)
        }
        other => panic!("{other:?}"),
    };
    let serial = [
        "[0.240s][info][gc,heap        ] GC(48) DefNew: 19200K(19648K)->19200K(19648K) Eden: 17472K(17472K)",
        "[0.241s][info][gc             ] GC(48) Pause Full (Allocation Failure) 61M->61M(61M) 0.517ms",
        "[0.241s][info][gc             ] GC(49) Pause Full (Allocation Failure) 61M->61M(61M) 0.503ms",
        "[0.242s][info][gc             ] GC(50) Pause Full (Allocation Failure) 61M->61M(61M) 0.564ms",
    ];
    assert_eq!(of(&serial), (3, 3, 61, 61, true));
    assert!(!of(&serial[..3]).4, "two full collections are too few");
    let g1 = [
        "[0.232s][info][gc] GC(60) Pause Full (G1 Compaction Pause) 47M->47M(64M) 3.967ms",
        "[0.234s][info][gc] GC(62) Pause Full (G1 Compaction Pause) 47M->47M(64M) 2.303ms",
        "[0.238s][info][gc] GC(63) Pause Young (Normal) (G1 Evacuation Pause) 47M->47M(64M) 3.373ms",
        "[0.238s][info][gc] GC(64) Pause Full (G1 Compaction Pause) 47M->47M(64M) 2.856ms",
        "[0.241s][info][gc] GC(65) Pause Full (G1 Compaction Pause) 47M->1M(10M) 2.856ms",
    ];
    assert_eq!(of(&g1), (5, 4, 47, 64, true), "a collection after the error does not hide it");
    let zgc = [
        "[0.123s][info][gc          ] GC(19) Minor Collection (Allocation Stall) 64M(100%)->64M(100%) 0.000s",
        "[0.124s][info][gc          ] GC(20) Major Collection (Allocation Stall) 64M(100%)->64M(100%) 0.002s",
        "[0.129s][info][gc          ] GC(22) Major Collection (Allocation Stall) 64M(100%)->4M(6%) 0.003s",
    ];
    assert_eq!(of(&zgc), (3, 2, 4, 66, false));
    assert_eq!(of(&["[1.7s][info][gc] GC(87) Concurrent cleanup 30M->0M(64M) 0.014ms"]), (1, 0, 0, 64, false));
    let shenandoah = [
        "[0.210s][info][gc] GC(13) Pause Degenerated GC (Update Refs) 63M->59M(64M) 0.646ms",
        "[0.229s][info][gc] GC(16) Pause Degenerated GC (Outside of Cycle) 55M->55M(64M) 8.076ms",
        "[0.230s][info][gc] GC(17) Concurrent cleanup (unload classes) 55M->55M(64M) 0.004ms",
        "[0.238s][info][gc] GC(18) Pause Degenerated GC (Outside of Cycle) 55M->55M(64M) 7.034ms",
        "[0.247s][info][gc] GC(19) Pause Degenerated GC (Outside of Cycle) 55M->55M(64M) 7.420ms",
    ];
    assert_eq!(of(&shenandoah), (5, 4, 55, 64, true));
    assert!(!of(&shenandoah[..4]).4, "the first collection freed memory");
    let generational = ["[0.3s][info][gc] GC(42) Pause Degenerated GC (Young) (Roots) 58M->58M(64M) 1ms"; 3];
    assert_eq!(of(&generational), (3, 3, 58, 64, true));
    let healthy = ["[9s][info][gc] GC(3) Pause Young (Allocation Failure) 40M->20M(61M) 2ms"; 4];
    assert_eq!(of(&healthy), (4, 0, 20, 61, false));
}

#[test]
fn each_ended_container_has_its_limit_and_reason() {
    let docker = r#"[{"Id": "8c91d2e3f4a5b6c7", "Name": "/shop",
        "State": {"Running": false, "OOMKilled": true, "ExitCode": 137, "Error": "",
        "FinishedAt": "2026-11-28T10:00:00Z"}, "HostConfig": {"Memory": 536870912}},
        {"Name": "/runs", "State": {"Running": true, "OOMKilled": false, "ExitCode": 0}}]"#;
    let shop = Trace::Container {
        name: "shop".to_owned(),
        reason: String::new(),
        oom_killed: true,
        exit_code: 137,
        limit_bytes: Some(512 * MIB),
        time: "2026-11-28T10:00:00Z".to_owned(),
        id: Some("8c91d2e3f4a5b6c7".to_owned()),
        pod_uid: None,
    };
    assert_eq!(read(docker), [shop]);
    let pod = r#"{"kind": "Pod", "metadata": {"uid": "1f2e3d4c-0000-4000-8000-000000000001"}, "spec": {"containers": [
        {"name": "app", "resources": {"limits": {"memory": "768Mi"}}}, {"name": "proxy"}]},
        "status": {"containerStatuses": [
        {"name": "app", "state": {"running": {}}, "lastState": {"terminated":
            {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-28T11:00:00Z",
             "containerID": "containerd://8c91d2e3f4a5b6c7"}}},
        {"name": "proxy", "state": {"running": {}}, "lastState": {}}]}}"#;
    let app = Trace::Container {
        name: "app".to_owned(),
        reason: "OOMKilled".to_owned(),
        oom_killed: true,
        exit_code: 137,
        limit_bytes: Some(768 * MIB),
        time: "2026-11-28T11:00:00Z".to_owned(),
        id: Some("8c91d2e3f4a5b6c7".to_owned()),
        pod_uid: Some("1f2e3d4c-0000-4000-8000-000000000001".to_owned()),
    };
    let list = format!(r#"{{"kind": "List", "items": [{pod}]}}"#);
    assert_eq!((read(pod), read(&list)), (vec![app.clone()], vec![app]));
    for other in ["{}", "[]", "[1, 2]", r#"{"status": {"containerStatuses": 7}}"#, "{\"a\":", &"[".repeat(10_000)] {
        assert!(read(other).is_empty(), "{other:.40}");
    }
    let limit = |text: &str| {
        let pod = pod.replace("768Mi", text);
        let [Trace::Container { limit_bytes, .. }] = read(&pod)[..] else { panic!("{pod}") };
        limit_bytes
    };
    let cases = [("500M", Some(500_000_000)), ("1Gi", Some(1 << 30)), ("134217728", Some(128 * MIB)), ("x", None)];
    cases.into_iter().for_each(|(text, expect)| assert_eq!(limit(text), expect, "{text}"));
}

#[test]
fn a_cgroup_belongs_to_the_container_or_to_the_pod() {
    let [id, uid] = [Some("8c91d2e3f4a5b6c7".to_owned()), Some("1f2e3d4c-0000-4000-8000-000000000001".to_owned())];
    let of = |id: &Option<String>, uid: &Option<String>| Trace::Container {
        name: "app".to_owned(),
        reason: String::new(),
        oom_killed: true,
        exit_code: 137,
        limit_bytes: None,
        time: String::new(),
        id: id.clone(),
        pod_uid: uid.clone(),
    };
    let both = of(&id, &uid);
    for (cgroup, owned) in [
        ("/kubepods/burstable/pod1f2e3d4c-0000-4000-8000-000000000001/8c91d2e3f4a5b6c7", true),
        ("/kubepods/burstable/pod1f2e3d4c-0000-4000-8000-000000000001", true),
        ("/kubepods/burstable/pod1f2e3d4c-0000-4000-8000-000000000001/999999999999", false),
        ("/kubepods.slice/kubepods-pod1f2e3d4c_0000_4000_8000_000000000001.slice", true),
        ("/system.slice/docker-8c91d2e3f4a5b6c7.scope", true),
        ("/docker/999999999999", false),
        ("", false),
    ] {
        assert_eq!(both.owns(cgroup), Some(owned), "{cgroup}");
    }
    assert_eq!(of(&None, &None).owns("/docker/8c91d2e3f4a5b6c7"), None);
    assert_eq!(Trace::MemoryEvents { oom_kills: 1, at_limit: None }.owns("/a"), None);
}

proptest! {
    #[test]
    fn any_trace_text_can_be_read(text in "(#|GC\\(1\\) Pause Full |->|oom_kill|[0-9]{1,20}[KM%]?|[(){}\"\\[ \n:])*") {
        read(&text);
        read(&format!("# There is insufficient memory for the Java Runtime Environment to continue.\n{text}"));
    }
}
