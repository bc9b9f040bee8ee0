//! musl processes with damaged metas, areas, and groups: whatever memory contains, every walk keeps its invariants.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| loadline_jvm::observe::fuzz_mallocng(input));
