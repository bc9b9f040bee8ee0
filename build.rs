//! Compiles the Java parts and packs them for embedding.

fn main() {}
