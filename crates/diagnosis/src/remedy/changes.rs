//! The changes that remedies and findings have in common.

use crate::scenario::Change;

/// One arena of malloc for all threads (mallopt(3), `M_ARENA_MAX`).
pub fn one_arena() -> Change {
    Change::Env(vec![("MALLOC_ARENA_MAX".to_owned(), "1".to_owned())])
}

/// Between two trims by the JVM: seldom enough to cost next to nothing, often enough that a mark sees it.
const TRIM_MS: u32 = 2_000;

/// The JVM trims malloc's heaps from time to time; `release` is that of the JVM, as numbers. Updates of 17 and 21 had
/// the option as an experimental one first, up to 17.0.11 and 21.0.3 (17u-dev #2244, 21u-dev #284).
pub fn trim_often(release: Option<[u64; 3]>) -> Change {
    let is_experimental = matches!(release, Some([17, 0, ..12] | [21, 0, ..4]));
    let unlock = is_experimental.then(|| "-XX:+UnlockExperimentalVMOptions".to_owned());
    Change::Jvm(unlock.into_iter().chain([format!("-XX:TrimNativeHeapInterval={TRIM_MS}")]).collect())
}

/// No second compiler (JDK-8269555: 2 and 3 are no levels to stop at).
pub fn first_compiler() -> Change {
    jvm("-XX:TieredStopAtLevel=1")
}

/// One of Netty's properties of its allocator, `type=pooled`.
pub fn netty_allocator(property: &str) -> Change {
    jvm(&format!("-Dio.netty.allocator.{property}"))
}

/// An option of the JVM.
pub(super) fn jvm(option: &str) -> Change {
    Change::Jvm(vec![option.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_was_experimental_is_unlocked_where_it_was() {
        let words = |release| trim_often(release).typed();
        let plain = ["-XX:TrimNativeHeapInterval=2000"];
        let unlocked = ["-XX:+UnlockExperimentalVMOptions", plain[0]];
        assert_eq!(
            (words(Some([17, 0, 11])), words(Some([21, 0, 3]))),
            (unlocked.map(str::to_owned).to_vec(), unlocked.map(str::to_owned).to_vec())
        );
        for release in [Some([17, 0, 12]), Some([21, 0, 4]), Some([25, 0, 3]), None] {
            assert_eq!(words(release), plain);
        }
    }
}
