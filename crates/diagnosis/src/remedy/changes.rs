//! Changes shared by remedies and findings.

use crate::scenario::Change;
use crate::units::Bytes;

/// The size from which chunks are large: glibc's initial, dynamic value (mallopt(3)).
const THRESHOLD: &str = "131072";
/// The interval of the JVM's trims: long enough to be cheap, short enough to be visible at a mark.
const TRIM_MS: u32 = 2_000;
/// Keeps little of the heap free, and resizes it in small steps.
pub(crate) const NARROW_RATIOS: [&str; 2] = ["-XX:MinHeapFreeRatio=10", "-XX:MaxHeapFreeRatio=20"];
/// The largest direct buffer that the JDK caches per thread (`sun.nio.ch.Util`); file transfers and socket reads use
/// pieces of at most this size anyway.
pub(crate) const KEPT_FOR_A_THREAD: u64 = 256 << 10;

pub(crate) fn jvm(options: impl IntoIterator<Item: Into<String>>) -> Change {
    Change::Jvm(options.into_iter().map(Into::into).collect())
}

/// Sets glibc variables that take a size to [`THRESHOLD`].
pub(crate) fn thresholds(names: impl IntoIterator<Item = &'static str>) -> Change {
    Change::Env(names.into_iter().map(|name| (name.to_owned(), THRESHOLD.to_owned())).collect())
}

/// One malloc arena for all threads (mallopt(3), `M_ARENA_MAX`).
pub(crate) fn one_arena() -> Change {
    Change::Env(vec![("MALLOC_ARENA_MAX".to_owned(), "1".to_owned())])
}

/// Periodic trims by the JVM with this `release`. The option was experimental in 17 and 21 up to 17.0.11 and 21.0.3
/// (17u-dev #2244, 21u-dev #284).
pub(crate) fn trim_often(release: Option<[u64; 3]>) -> Change {
    let is_experimental = matches!(release, Some([17, 0, ..12] | [21, 0, ..4]));
    let unlock = is_experimental.then(|| "-XX:+UnlockExperimentalVMOptions".to_owned());
    jvm(unlock.into_iter().chain([format!("-XX:TrimNativeHeapInterval={TRIM_MS}")]))
}

/// Makes G1 collect after this many milliseconds without a collection (JEP 346).
pub(crate) fn collect_each(ms: u32) -> Change {
    jvm([format!("-XX:G1PeriodicGCInterval={ms}")])
}

pub(crate) fn young_of(size: Bytes) -> Change {
    jvm([format!("-Xmn{}", size.java())])
}

/// Disables C2 (JDK-8269555: levels 2 and 3 are not valid stops).
pub(crate) fn first_compiler() -> Change {
    jvm(["-XX:TieredStopAtLevel=1"])
}

/// A property of Netty's allocator, such as `type=pooled`.
pub(crate) fn netty_allocator(property: &str) -> Change {
    jvm([format!("-Dio.netty.allocator.{property}")])
}

/// Prevents threads from caching direct buffers larger than [`KEPT_FOR_A_THREAD`].
pub(crate) fn small_buffers() -> Change {
    jvm([format!("-Djdk.nio.maxCachedBufferSize={KEPT_FOR_A_THREAD}")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experimental_options_are_unlocked_only_in_releases_that_need_it() {
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
