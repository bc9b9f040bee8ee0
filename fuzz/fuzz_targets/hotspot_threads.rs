//! The threads of a HotSpot that goes on while it is read: no sum is one that it never had.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| loadline_jvm::observe::fuzz_hotspot_threads(input));
