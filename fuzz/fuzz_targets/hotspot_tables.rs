//! Damaged tables of names of a HotSpot JVM: whatever memory contains, reading ends and finds the intact names.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| loadline_jvm::observe::fuzz_hotspot_tables(input));
