//! A HotSpot's tables of names, damaged: whatever memory contains, reading ends and finds what is there.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| loadline_jvm::observe::fuzz_hotspot_tables(input));
