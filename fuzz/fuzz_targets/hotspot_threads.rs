//! The threads of a HotSpot JVM that runs while it is read: every sum must have been true at some point.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| loadline_jvm::observe::fuzz_hotspot_threads(input));
