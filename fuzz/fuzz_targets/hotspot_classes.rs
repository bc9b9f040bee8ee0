//! Damaged loaders, classes, fields, and objects of a HotSpot JVM: whatever memory contains, every walk ends.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| loadline_jvm::observe::fuzz_hotspot_classes(input));
