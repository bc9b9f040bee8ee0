//! Reports captured from `tests/jvm/netty/NettyCaches.java`, whose pools are known: truncated, mangled, hostile.

use super::*;
use proptest::prelude::*;

const POOLED: [(&str, &str); 3] = [
    ("4.1.0.CR3", include_str!("../../../../tests/samples/netty/4.1.0.CR3-pooled.json")),
    ("4.1.140.Final", include_str!("../../../../tests/samples/netty/4.1.140-pooled.json")),
    ("4.2.20.Final", include_str!("../../../../tests/samples/netty/4.2.20-pooled.json")),
];
const ADAPTIVE: &str = include_str!("../../../../tests/samples/netty/4.2.20-adaptive.json");
/// Bytes that `NettyCaches` leaves in the cache of each of three event loops.
const CACHED_BYTES: u64 = 64 * 32768;
const HELD_BYTES: u64 = 1 << 20;

#[test]
fn pools_of_every_version_contain_the_planted_buffers() {
    for (version, text) in POOLED {
        let pools = parse(text).unwrap();
        let [library] = pools.libraries.as_slice() else { panic!("{version}: {pools:?}") };
        assert_eq!((library.version.as_deref(), library.package.as_str()), (Some(version), "io.netty"));
        assert_eq!((library.event_loops, library.event_loops_read, library.channels), (3, 3, 1), "{version}");
        let pooled = library.allocators.iter().find(|one| one.kind == NettyKind::Pooled).unwrap();
        assert_eq!((pooled.thread_caches, pooled.thread_caches_read), (Some(3), Some(3)), "{version}");
        assert_eq!(pooled.caches.len(), 3);
        assert!(pooled.caches.iter().all(|cache| (cache.buffers, cache.bytes) == (64, CACHED_BYTES)), "{version}");
        let chunks: Vec<_> = pooled.arenas.iter().flat_map(|arena| &arena.chunks).collect();
        let of = |what: fn(&NettyChunk) -> u64| chunks.iter().map(|chunk| what(chunk)).sum::<u64>();
        assert_eq!(of(|chunk| chunk.cached_bytes), 3 * CACHED_BYTES, "{version}");
        assert_eq!(of(|chunk| chunk.kept_bytes), 3 * CACHED_BYTES, "{version}");
        assert_eq!(of(NettyChunk::used_bytes), 3 * CACHED_BYTES + HELD_BYTES, "{version}");
        let pinned = (version != "4.1.0.CR3").then_some(HELD_BYTES);
        assert_eq!(pooled.pinned_direct_bytes, pinned, "{version}");
        assert_eq!(chunks.iter().map(|chunk| chunk.pinned_bytes).sum::<Option<u64>>(), pinned, "{version}");
        assert_eq!(pools.jdk_direct.max_bytes, Some(128 << 20));
        assert_eq!(pools.unread.is_empty(), version != "4.1.0.CR3", "{:?}", pools.unread);
    }
}

#[test]
fn an_adaptive_allocator_shows_its_reachable_chunks() {
    let pools = parse(ADAPTIVE).unwrap();
    let [allocator] = pools.libraries[0].allocators.as_slice() else { panic!("{pools:?}") };
    assert_eq!(allocator.kind, NettyKind::Adaptive);
    let direct = &allocator.arenas[0];
    let reached: u64 = direct.chunks.iter().map(|chunk| chunk.bytes).sum();
    assert_eq!(Some(reached + direct.unreached_bytes.unwrap()), direct.active_bytes);
    assert!(direct.chunks.iter().all(|chunk| chunk.used_bytes() <= chunk.bytes));
    assert!(direct.chunks.len() > 1);
}

#[test]
fn a_truncated_report_is_rejected() {
    for text in POOLED.map(|(_, text)| text).into_iter().chain([ADAPTIVE]) {
        for at in 0..text.trim_end().len() {
            let cut = String::from_utf8_lossy(&text.as_bytes()[..at]);
            assert!(parse(&cut).is_err(), "{at}");
        }
    }
}

#[test]
fn missing_report_values_are_unknown() {
    let pools = parse(r#"{"libraries":[{"allocators":[{"arenas":[{"chunks":[{"bytes":9}]}]}]}],"later":1}"#).unwrap();
    let allocator = &pools.libraries[0].allocators[0];
    let chunk = &allocator.arenas[0].chunks[0];
    assert_eq!((allocator.kind, chunk.list), (NettyKind::Other, NettyList::Other));
    let later = r#"{"libraries":[{"allocators":[{"kind":"later","arenas":[{"chunks":[{"list":"q101"}]}]}]}]}"#;
    assert_eq!(parse(later).unwrap().libraries[0].allocators[0].arenas[0].chunks[0].list, NettyList::Other);
    assert_eq!((chunk.free_bytes, chunk.pinned_bytes, chunk.used_bytes()), (None, None, 0));
}

#[test]
fn hostile_reports_are_limited() {
    let wide = format!("{{\"unread\":[\"{}\\u001b[2J\\n\"]}}", "x".repeat(150));
    assert_eq!(parse(&wide).unwrap().unread[0], format!("{}\u{fffd}[2J\u{fffd}", "x".repeat(150)));
    let long = format!("{{\"unread\":[\"{}\"]}}", "é".repeat(5000));
    assert_eq!(parse(&long).unwrap().unread[0].chars().count(), TEXT_CHARS_MAX);
    assert!(parse(&"[".repeat(100_000)).is_err());
    assert!(parse(r#"{"agent":{"took_ms":-1e999}}"#).is_err());
    let why = parse(r#"{"libraries":"\u001b[2J"}"#).unwrap_err().why;
    assert!(!why.contains(char::is_control), "{why:?}");
    let chunks = vec!["{}"; ROWS_MAX + 1].join(",");
    let many = format!(r#"{{"libraries":[{{"allocators":[{{"arenas":[{{"chunks":[{chunks}]}}]}}]}}]}}"#);
    assert!(parse(&many).unwrap_err().why.contains("more than"));
    assert!(parse(&" ".repeat(REPORT_BYTES_MAX as usize + 1)).unwrap_err().why.contains("larger"));
}

proptest! {
    #[test]
    fn mangled_reports_never_panic(changes in proptest::collection::vec((0..1000usize, any::<u8>()), 1..20)) {
        let mut bytes = POOLED[1].1.as_bytes().to_vec();
        for (at, byte) in changes {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        if let Ok(pools) = parse(&String::from_utf8_lossy(&bytes)) {
            let chunks = pools.libraries.iter().flat_map(|library| &library.allocators).flat_map(|one| &one.arenas);
            let used = chunks.flat_map(|arena| &arena.chunks).map(|chunk| u128::from(chunk.used_bytes())).sum::<u128>();
            prop_assert!(used < u128::MAX);
        }
    }
}
