//! Parses, calls, maps the outcome to an exit code.

fn main() {}
