//! Names of HotSpot's threads as the kernel keeps them, in 15 bytes (`TASK_COMM_LEN`, man prctl): the beginning until
//! JDK 25, `Signal ..atcher` of `Signal Dispatcher` from JDK 26 on (seen with 26 and 27).

/// Bytes that the kernel keeps, and those that JDK 26 keeps of both ends.
const KEPT: usize = 15;
const BEGINNING: usize = 7;
const END: usize = 6;

/// Whether the kernel's name of a thread is made of this one, which has no characters beyond ASCII.
pub fn is_named(kept: &str, whole: &str) -> bool {
    if whole.len() <= KEPT {
        return kept == whole;
    }
    let ends = kept.split_once("..").is_some_and(|ends| ends == (&whole[..BEGINNING], &whole[whole.len() - END..]));
    kept == &whole[..KEPT] || ends
}

/// Whether a thread of this name, whole or as the kernel keeps it, is one of the JIT compilers: `C1 CompilerThread0`.
pub fn is_compiler(name: &str) -> bool {
    ["C1 Comp", "C2 Comp"].iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_cut_a_name_are_known() {
        for kept in ["Signal Dispatch", "Signal ..atcher"] {
            assert!(is_named(kept, "Signal Dispatcher"), "{kept}");
        }
        assert!(is_named("VM Thread", "VM Thread") && is_named("Attach Listener", "Attach Listener"));
        for kept in ["Signal", "Signal Dispatcher", "Signal ..", "VM Thread", ""] {
            assert!(!is_named(kept, "Signal Dispatcher"), "{kept}");
        }
        let compilers = ["C1 CompilerThre", "C2 CompilerThread12", "C1 Comp..hread0", "C2 Comp..read12"];
        assert!(compilers.into_iter().all(is_compiler));
        assert!(!["C1", "Compiler", "G1 Conc#0", "web-1"].into_iter().any(is_compiler));
    }
}
