//! The tables of names of a HotSpot, damaged: whatever the memory holds, reading ends and finds what is there.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| loadline_jvm::observe::fuzz_hotspot_tables(input));
