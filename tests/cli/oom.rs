//! OOM kills in kernel logs from `oom/`, written by hand in the format of each kernel.

use crate::called::{folder, loadline, read};
use crate::schema::Schema;
use loadline::record::{OomDocument, OomHolder};
use std::io::Write;
use std::process::{Command, Stdio};

/// Each log with the expected holders, latest kill first.
const LOGS: [(&str, &[OomHolder]); 12] = [
    ("linux-6.8-v2-dmesg", &[OomHolder::Jvm]),
    ("linux-5.10-v1-dmesg-T-64k-pages", &[OomHolder::Jvm]),
    ("linux-4.19-v1-journal", &[OomHolder::Jvm]),
    ("group-and-machine-kmsg", &[OomHolder::Unknown, OomHolder::Unknown]),
    ("linux-5.15-v1-docker-helpers", &[OomHolder::OtherProcesses]),
    ("linux-6.1-v2-podman-tmpfs", &[OomHolder::MemoryFiles]),
    ("linux-6.6-v2-k8s-sockets", &[OomHolder::Kernel]),
    ("linux-6.8-v2-aarch64-64k-pages", &[OomHolder::Jvm]),
    ("linux-6.8-machine", &[OomHolder::Jvm]),
    ("linux-6.12-v2-group", &[OomHolder::Jvm]),
    ("linux-4.18-v1-pod-limit", &[OomHolder::Jvm]),
    ("linux-5.14-v2-jsvc", &[OomHolder::Jvm]),
];

fn path(name: &str) -> String {
    folder().join(format!("oom/{name}.txt")).display().to_string()
}

#[test]
fn each_kernel_log_shows_the_victim_and_the_memory_holders() {
    let schema = Schema::published("oom.schema.json");
    for (name, holders) in LOGS {
        let called = loadline(&["post-mortem", "--kernel-log", &path(name), "--json"]).expect(0);
        schema.describes(&called.json(), name);
        let document: OomDocument = serde_json::from_str(&called.stdout).unwrap();
        let told: Vec<OomHolder> = document.kills.iter().map(|kill| kill.holder).collect();
        assert_eq!(told, holders, "{name}");
        for kill in &document.kills {
            let sum: i64 = kill.rows.iter().map(|row| row.bytes).sum();
            assert!(
                kill.usage_bytes.is_none_or(|usage| usage as i64 == sum || kill.rows.is_empty()),
                "{name}: {kill:#?}"
            );
            assert!(!kill.killed.is_empty(), "{name}");
        }
    }
}

#[test]
fn the_answer_gives_the_size_of_memory_outside_the_jvm() {
    let answer = |name: &str| {
        let shown = loadline(&["post-mortem", "--kernel-log", &path(name)]).expect(0).stdout;
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let expect = "The kernel itself held 360.0 MiB (socket buffers 300.0 MiB) and JVMs 140.0 MiB. No JVM setting \
                  limits the larger part.";
    assert!(answer("linux-6.6-v2-k8s-sockets").contains(expect), "{}", answer("linux-6.6-v2-k8s-sockets"));
    let expect = "In-memory files held 149.0 MiB and JVMs 100.0 MiB. No JVM setting limits the larger part. JVM \
                  settings can limit only the JVMs' part.";
    assert!(answer("linux-6.1-v2-podman-tmpfs").contains(expect), "{}", answer("linux-6.1-v2-podman-tmpfs"));
}

#[test]
fn a_kill_in_the_containers_cgroup_comes_first() {
    let folder_of_logs = tempfile::tempdir().unwrap();
    let place = |name: &str| folder_of_logs.path().join(name).display().to_string();
    let own = "8c91d2e3f4a5b6c7d8e9";
    let killed = read(path("linux-6.6-v2-k8s-sockets")).replace("8c91.scope", &format!("{own}.scope"));
    let later = read(path("linux-5.10-v1-dmesg-T-64k-pages"));
    std::fs::write(place("kernel.log"), format!("{killed}{later}")).unwrap();
    let answer = |id: &str| {
        let terminated = format!("\"terminated\": {{\"containerID\": \"containerd://{id}\",");
        let status = read(folder().join("traces/pod.json")).replace("\"terminated\": {", &terminated);
        std::fs::write(place("pod.json"), status).unwrap();
        let shown = loadline(&["post-mortem", &place("pod.json"), &place("kernel.log")]).expect(0).stdout;
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let paired = answer(own);
    assert!(paired.contains("The log shows that kill."), "{paired}");
    assert!(paired.contains("Next: `ss -tm` in a running container"), "it must explain the older kill: {paired}");
    let other = answer("ffffffffffffffff");
    assert!(other.contains("The log shows no kill in its cgroup"), "{other}");
    assert!(other.contains("loadline find"), "it must explain the latest kill: {other}");
}

#[test]
fn a_kill_is_shown() {
    let shown = loadline(&["post-mortem", "--kernel-log", &path("linux-6.8-v2-dmesg")]).expect(0).stdout;
    let start = shown.find('\n').unwrap();
    // The first line contains the file name.
    insta::assert_snapshot!(shown[start..]);
}

#[test]
fn only_kills_in_the_requested_cgroup_count() {
    let of = |cgroup: &str| {
        loadline(&["post-mortem", "--kernel-log", &path("group-and-machine-kmsg"), "--cgroup", cgroup, "--json"])
    };
    let kills = |cgroup: &str| serde_json::from_str::<OomDocument>(&of(cgroup).stdout).unwrap().kills.len();
    assert_eq!((kills("/pod"), kills("/pod/"), kills("/po"), kills("/")), (1, 1, 0, 1));
    assert_eq!((of("/pod").code, of("/po").code), (0, 1));
    assert!(of("/po").stderr.contains("--cgroup excludes 2 OOM kills"), "{}", of("/po").stderr);
    assert_eq!(of("/pod").stderr, "");
}

#[test]
fn missing_invalid_and_kill_free_logs_are_reported() {
    let missing = loadline(&["post-mortem", "--kernel-log", "/no/such/log"]);
    assert!(missing.code == 2 && missing.stderr.contains("/no/such/log"), "{missing:?}");
    let none = loadline(&["post-mortem", "--kernel-log", &folder().join("main.rs").display().to_string()]);
    assert!(none.code == 1 && none.stdout.contains("contains no OOM kill"), "{none:?}");
    let folder = loadline(&["post-mortem", "--kernel-log", &folder().display().to_string()]);
    assert!(folder.code == 2 && folder.stdout.is_empty(), "{folder:?}");
    let noise: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let program = env!("CARGO_BIN_EXE_loadline");
    let mut piped = Command::new(program)
        .args(["post-mortem", "--kernel-log", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = piped.stdin.take().unwrap();
    stdin.write_all(&noise).unwrap();
    stdin.write_all(read(path("linux-6.8-v2-dmesg")).as_bytes()).unwrap();
    drop(stdin);
    let done = piped.wait_with_output().unwrap();
    assert!(done.status.success() && String::from_utf8_lossy(&done.stdout).contains("java (pid 50624)"), "{done:?}");
}

/// From real files of JDK 17.0.15 and 25.0.3, and synthetic ones in the formats of Kubernetes, Docker, and Linux 6.8.
#[test]
fn other_evidence_of_an_end_is_recognized_by_format() {
    let schema = Schema::published("oom.schema.json");
    let files =
        ["pod.json", "docker.json", "memory.events", "hs_err-17-serial.log", "hs_err-25-g1.log", "gc-17-g1.log"];
    let files = files.map(|name| format!("traces/{name}"));
    let called = |arguments: &[&str]| loadline(&[&["post-mortem"], arguments].concat());
    for file in &files {
        let json = called(&["--json", file]).expect(0);
        schema.describes(&json.json(), file);
        let document: OomDocument = serde_json::from_str(&json.stdout).unwrap();
        assert!(document.traces.len() == 1 && document.log.is_empty() && document.kills.is_empty(), "{document:?}");
        let whole = read(folder().join(file));
        for end in (0..whole.len()).step_by(97) {
            let cut = loadline::diagnosis::traces::read(&whole[..end]);
            assert!(cut.is_none_or(|found| found.len() <= 1), "{file} cut at {end}");
        }
    }
    let log = "oom/linux-6.8-v2-dmesg.txt";
    let all: Vec<&str> = std::iter::once(log).chain(files.iter().map(String::as_str)).collect();
    let shown = called(&all).expect(0).stdout;
    let answers = shown.split("\n\n").next().unwrap();
    insta::assert_snapshot!(answers);
    let running = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(running.path(), r#"[{"Name": "/a", "State": {"Running": true}}]"#).unwrap();
    let refused = called(&[&running.path().display().to_string()]).expect(2);
    assert!(refused.stderr.contains("no container in this status has exited"), "{refused}");
}
