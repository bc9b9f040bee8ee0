//! Loaders, classes, fields and objects of a HotSpot, damaged: whatever the memory holds, every walk ends.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| loadline_jvm::observe::fuzz_hotspot_classes(input));
