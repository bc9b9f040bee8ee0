//! Processes on musl with damaged metas, areas and groups: whatever the memory holds, no law of a walk breaks.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| loadline_jvm::observe::fuzz_mallocng(input));
