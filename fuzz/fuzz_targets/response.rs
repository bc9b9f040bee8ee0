//! Server responses parsed as by the load engine: whole, in pieces, and compared with a second parser.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| loadline_load::fuzz_response(input));
