//! The changes that remedies and findings have in common.

use crate::scenario::Change;
use crate::units::Bytes;

/// The size in bytes from which chunks are large: glibc's own value before it adapts it (mallopt(3)).
const THRESHOLD: &str = "131072";
/// Between two trims by the JVM: seldom enough to cost next to nothing, often enough that a mark sees it.
const TRIM_MS: u32 = 2_000;
/// Little of the heap is free, and it grows and shrinks in small steps.
pub(crate) const NARROW_RATIOS: [&str; 2] = ["-XX:MinHeapFreeRatio=10", "-XX:MaxHeapFreeRatio=20"];
/// The JDK keeps no larger direct buffer for a thread (`sun.nio.ch.Util`): reads and writes go in pieces of so much at
/// most anyway where a file is sent or a socket is read.
pub(crate) const KEPT_FOR_A_THREAD: u64 = 256 << 10;

/// Options of the JVM.
pub(crate) fn jvm(options: impl IntoIterator<Item: Into<String>>) -> Change {
    Change::Jvm(options.into_iter().map(Into::into).collect())
}

/// Variables that glibc reads sizes in bytes from, each with [`THRESHOLD`].
pub(crate) fn thresholds(names: impl IntoIterator<Item = &'static str>) -> Change {
    Change::Env(names.into_iter().map(|name| (name.to_owned(), THRESHOLD.to_owned())).collect())
}

/// One arena of malloc for all threads (mallopt(3), `M_ARENA_MAX`).
pub(crate) fn one_arena() -> Change {
    Change::Env(vec![("MALLOC_ARENA_MAX".to_owned(), "1".to_owned())])
}

/// The JVM trims malloc's heaps from time to time; `release` is that of the JVM, as numbers. Updates of 17 and 21 had
/// the option as an experimental one first, up to 17.0.11 and 21.0.3 (17u-dev #2244, 21u-dev #284).
pub(crate) fn trim_often(release: Option<[u64; 3]>) -> Change {
    let is_experimental = matches!(release, Some([17, 0, ..12] | [21, 0, ..4]));
    let unlock = is_experimental.then(|| "-XX:+UnlockExperimentalVMOptions".to_owned());
    jvm(unlock.into_iter().chain([format!("-XX:TrimNativeHeapInterval={TRIM_MS}")]))
}

/// A collection of a G1 that has not collected for so many milliseconds (JEP 346).
pub(crate) fn collect_each(ms: u32) -> Change {
    jvm([format!("-XX:G1PeriodicGCInterval={ms}")])
}

/// A young generation of this size.
pub(crate) fn young_of(size: Bytes) -> Change {
    jvm([format!("-Xmn{}", size.java())])
}

/// No second compiler (JDK-8269555: 2 and 3 are no levels to stop at).
pub(crate) fn first_compiler() -> Change {
    jvm(["-XX:TieredStopAtLevel=1"])
}

/// One of Netty's properties of its allocator, `type=pooled`.
pub(crate) fn netty_allocator(property: &str) -> Change {
    jvm([format!("-Dio.netty.allocator.{property}")])
}

/// Threads keep no direct buffer above [`KEPT_FOR_A_THREAD`].
pub(crate) fn small_buffers() -> Change {
    jvm([format!("-Djdk.nio.maxCachedBufferSize={KEPT_FOR_A_THREAD}")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_was_experimental_is_unlocked_where_it_was() {
        let plain = ["-XX:TrimNativeHeapInterval=2000"];
        let unlocked = ["-XX:+UnlockExperimentalVMOptions", plain[0]];
        for release in [[17, 0, 11], [21, 0, 3]] {
            assert_eq!(trim_often(Some(release)).typed(), unlocked);
        }
        for release in [Some([17, 0, 12]), Some([21, 0, 4]), Some([25, 0, 3]), None] {
            assert_eq!(trim_often(release).typed(), plain);
        }
    }
}
