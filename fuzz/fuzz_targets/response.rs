//! Answers of a server, as the load engine reads them: whole, in pieces, and against a second reader.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| loadline_load::fuzz_response(input));
