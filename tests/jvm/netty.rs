//! Netty's pools as listed by the agent: real Netty versions with known contents, in running JVMs and in trials.
//! `tests/jvm/netty/fetch` fetches the jars; without them, the tests are skipped.

use crate::invocation::{Call, newest, releases};
use crate::standing::{LaunchPlan, Standing};
use loadline::record::{NettyAllocator, NettyChunk, NettyChunksRecord, NettyKind, NettyMemory, NettyPools, Outcome};
use loadline_test_support::skip;
use std::path::{Path, PathBuf};

/// A version without pinned bytes, the last 4.1 release, and 4.2, which has a new default allocator.
const VERSIONS: [&str; 3] = ["4.1.0.CR3", "4.1.140.Final", "4.2.20.Final"];
const LOOPS: u64 = 3;
/// The truth of `NettyCaches`, per event loop.
const BUFFERS: u64 = 64;
const BUFFER_BYTES: u64 = 32 << 10;
const HELD_BYTES: u64 = 1 << 20;
const OPTIONS: &str = "-Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1";
const CHUNKS_OF_16_MIB: &str = "-Dio.netty.allocator.numDirectArenas=2 -Dio.netty.allocator.maxOrder=11";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jvm/netty")
}

/// A version's jars; `None` if not fetched.
fn jars(version: &str) -> Option<String> {
    let jars = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("netty").join(version);
    let there = std::fs::read_dir(&jars).is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "jar")))
    });
    if !there {
        skip(
            "LOADLINE_GALLERY",
            &format!("there is no Netty {version}: run `tests/jvm/netty/fetch`, which needs Maven"),
        );
    }
    there.then(|| format!("{}/*", jars.display()))
}

/// A ready `NettyCaches`.
fn start(version: &str, release: u32, kind: &str) -> Option<Standing> {
    let jars = jars(version)?;
    let source = folder().join("NettyCaches.java");
    let plan = LaunchPlan::on(release, &format!("{OPTIONS} {CHUNKS_OF_16_MIB}"));
    let mut standing = plan.start_source(&jars, &source, &format!("{{port}} {kind} {LOOPS}"));
    standing.says("ready");
    Some(standing)
}

fn pools(standing: &Standing) -> NettyPools {
    standing.document("--netty").mark.netty.unwrap()
}

/// The pooled allocator of the only Netty.
fn pooled(pools: &NettyPools) -> &NettyAllocator {
    let [library] = pools.libraries.as_slice() else { panic!("{pools:?}") };
    assert_eq!((library.event_loops, library.event_loops_read), (LOOPS, LOOPS), "{:?}", pools.unread);
    library.allocators.iter().find(|allocator| allocator.kind == NettyKind::Pooled).unwrap()
}

fn sum(allocator: &NettyAllocator, of: fn(&NettyChunk) -> u64) -> u64 {
    allocator.arenas.iter().flat_map(|arena| &arena.chunks).map(of).sum()
}

#[track_caller]
fn assert_truth(pools: &NettyPools, version: &str) {
    let pooled = pooled(pools);
    let cached = LOOPS * BUFFERS * BUFFER_BYTES;
    assert_eq!(pooled.caches.iter().map(|cache| cache.bytes).sum::<u64>(), cached, "{pooled:?}");
    assert_eq!(sum(pooled, |chunk| chunk.kept_bytes), cached, "{pooled:?}");
    assert_eq!(sum(pooled, NettyChunk::used_bytes), cached + HELD_BYTES, "{pooled:?}");
    assert_eq!(pooled.pinned_direct_bytes, (version != "4.1.0.CR3").then_some(HELD_BYTES));
    assert!(pooled.arenas.iter().flat_map(|arena| &arena.chunks).all(|chunk| chunk.bytes == 16 << 20));
}

#[test]
fn a_running_jvms_netty_pools_are_listed() {
    for release in releases() {
        for version in VERSIONS {
            let Some(standing) = start(version, release, "pooled") else { continue };
            let first = pools(&standing);
            assert_truth(&first, version);
            assert_eq!(first.libraries[0].version.as_deref(), Some(version));
            assert!(first.agent.attached && first.agent.rss_bytes.unwrap() < 24 << 20, "{:?}", first.agent);
            println!("Netty {version} on {release}: {:?}", first.agent);
            let document = standing.document("--netty");
            let again = document.mark.netty.unwrap();
            assert_truth(&again, version);
            // The same counters, read from outside the JVM.
            let outside = document.mark.direct.unwrap();
            assert_eq!(outside.netty_bytes, again.libraries[0].direct_used_bytes, "{version} on {release}");
            assert_eq!(Some(outside.reserved_bytes), again.jdk_direct.reserved_bytes, "{version} on {release}");
            let chunks = document.mark.netty_chunks.unwrap();
            assert_eq!(chunks, as_listed(&again), "{version} on {release}");
            println!("again: {:?}", again.agent);
            // The JVM warns about each late agent; the agent itself prints nothing.
            let warnings = standing.stderr().matches("A Java agent has been loaded dynamically").count();
            assert_eq!(warnings, if release >= 21 { 2 } else { 0 }, "{}", standing.stderr());
            assert!(!standing.stderr().contains("loadline.agent"), "{}", standing.stderr());
            let left = format!("/tmp/.loadline-{}", standing.pid());
            assert!(!Path::new(&left).exists(), "{left} was left behind");
        }
    }
}

/// The expected record of an outside reading, computed from the agent's list.
fn as_listed(pools: &NettyPools) -> NettyChunksRecord {
    let held = |allocator: &&NettyAllocator| allocator.kind == NettyKind::Pooled && sum(allocator, |_| 1) > 0;
    let [library] = pools.libraries.as_slice() else { panic!("{pools:?}") };
    let found: Vec<&NettyAllocator> = library.allocators.iter().filter(held).collect();
    let [allocator] = found[..] else { panic!("{found:?}") };
    let edges = |chunk: &NettyChunk| {
        let handed_out = chunk.pinned_bytes.unwrap_or(chunk.used_bytes());
        (handed_out > chunk.bytes / 8 * 7, handed_out < chunk.bytes / 8)
    };
    let chunks = || allocator.arenas.iter().flat_map(|arena| &arena.chunks).map(edges);
    NettyChunksRecord {
        package: library.package.clone(),
        chunks: sum(allocator, |_| 1),
        full_chunks: chunks().filter(|(is_full, _)| *is_full).count() as u64,
        nearly_empty_chunks: chunks().filter(|(_, is_empty)| *is_empty).count() as u64,
        held_bytes: sum(allocator, |chunk| chunk.bytes),
        used_bytes: sum(allocator, NettyChunk::used_bytes),
        handed_out_bytes: allocator.pinned_direct_bytes,
    }
}

#[test]
fn a_pool_without_a_static_field_is_found_through_thread_caches() {
    for release in releases() {
        for version in VERSIONS {
            let Some(standing) = start(version, release, "own") else { continue };
            let chunks = standing.document("").mark.netty_chunks.unwrap();
            assert!(chunks.chunks > 0, "{chunks:?}");
            assert_eq!(chunks, as_listed(&pools(&standing)), "{version} on {release}");
        }
    }
}

#[test]
fn an_adaptive_allocator_is_listed_as_far_as_possible() {
    for release in newest() {
        let Some(standing) = start("4.2.20.Final", release, "default") else { continue };
        let pools = pools(&standing);
        let adaptive =
            pools.libraries[0].allocators.iter().find(|allocator| allocator.kind == NettyKind::Adaptive).unwrap();
        let direct = adaptive.arenas.iter().find(|arena| arena.memory == NettyMemory::Direct).unwrap();
        let reached: u64 = direct.chunks.iter().map(|chunk| chunk.bytes).sum();
        assert!(direct.active_bytes.unwrap() >= HELD_BYTES, "{direct:?}");
        assert!(reached + direct.unreached_bytes.unwrap() >= direct.active_bytes.unwrap(), "{direct:?}");
    }
}

#[test]
fn a_shaded_netty_is_found() {
    let Some(jars) = jars("shaded") else { return };
    for release in newest() {
        let source = std::fs::read_to_string(folder().join("NettyCaches.java")).unwrap();
        let shaded = tempfile::tempdir().unwrap();
        let file = shaded.path().join("NettyCaches.java");
        std::fs::write(&file, source.replace("io.netty", "io.grpc.netty.shaded.io.netty")).unwrap();
        let shaded_options = CHUNKS_OF_16_MIB.replace("io.netty", "io.grpc.netty.shaded.io.netty");
        let plan = LaunchPlan::on(release, &format!("{OPTIONS} {shaded_options}"));
        let mut standing = plan.start_source(&jars, &file, &format!("{{port}} pooled {LOOPS}"));
        standing.says("ready");
        let mark = standing.document("--netty").mark;
        let pools = mark.netty.unwrap();
        assert_eq!(pools.libraries[0].package, "io.grpc.netty.shaded.io.netty");
        assert_truth(&pools, "shaded");
        assert_eq!(mark.netty_chunks, Some(as_listed(&pools)), "the pools can be read from outside");
    }
}

#[test]
fn a_jvm_without_netty_has_no_pools() {
    for release in releases() {
        let standing = LaunchPlan::on(release, "-Xmx32m").serving("DemoServer");
        let pools = pools(&standing);
        assert!(pools.libraries.is_empty() && pools.unread.is_empty(), "{pools:?}");
        standing.answers();
    }
}

#[test]
fn a_trial_lists_the_pools_at_every_mark() {
    let Some(jars) = jars("4.1.140.Final") else { return };
    for release in releases() {
        let source = folder().join("NettyCaches.java");
        let scenario = format!(
            "name: netty\nsubject:\n  netty: true\n  command: [java, '{{jvm}}', -cp, '{jars}', {}, '{{port}}', pooled, \
             {LOOPS}]\n  ready: {{log: '^ready'}}\nconfigurations:\n  listed: {{heap: 64m, jdk: {release}, jvm: \
             [-Dio.netty.allocator.numDirectArenas=2, -Dio.netty.allocator.maxOrder=11]}}\n  unlisted: {{heap: 64m, \
             jdk: {release}, netty: false}}\nload:\n  - work: {{driver: sleep 0.2}}\n  - rest: {{idle: 200ms}}\nmarks: [start, rested]\n",
            source.display()
        );
        let ran = Call::verb("run --json").of_scenario("netty", &scenario).run().expect(0);
        for trial in &ran.document().trials {
            assert_eq!(trial.outcome, Outcome::Completed, "{trial:?}");
            let names: Vec<&str> = trial.marks.iter().map(|mark| mark.name.as_str()).collect();
            assert_eq!(names, ["start", "rested"]);
            for mark in &trial.marks {
                match (trial.configuration.as_str(), &mark.netty) {
                    ("listed", Some(pools)) => assert_truth(pools, "4.1.140.Final"),
                    ("unlisted", None) => {}
                    (other, pools) => panic!("{other}: {pools:?}, {:?}", trial.doubts),
                }
            }
            // A JVM started with the agent does not warn about it.
            let said = format!("{:?}", trial.end);
            assert!(!said.contains("Java agent"), "{said}");
        }
    }
}
